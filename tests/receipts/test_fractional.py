"""The evidence behind the formulas of ch23_fractional."""

import torch

from course.fractional import double


def test_ch23_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
