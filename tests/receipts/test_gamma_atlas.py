"""The evidence behind the formulas of ch16_gamma_atlas."""

import torch

from course.gamma_atlas import double


def test_ch16_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
