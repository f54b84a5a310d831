"""The evidence behind the formulas of ch14_aliasing."""

import torch

from course.aliasing import double


def test_ch14_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
