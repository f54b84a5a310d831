"""The evidence behind the formulas of ch22_thermo_dictionary."""

import torch

from course.thermo_dictionary import double


def test_ch22_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
