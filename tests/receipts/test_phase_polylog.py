"""The evidence behind the formulas of ch21_phase_polylog."""

import torch

from course.phase_polylog import double


def test_ch21_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
