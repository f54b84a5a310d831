"""The evidence behind the formulas of ch18_taxonomy."""

import torch

from course.taxonomy import double


def test_ch18_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
