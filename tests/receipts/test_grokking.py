"""The evidence behind the formulas of ch24_grokking."""

import torch

from course.grokking import double


def test_ch24_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
