"""The evidence behind the formulas of ch19_long_context."""

import torch

from course.long_context import double


def test_ch19_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
