"""The evidence behind the formulas of ch15_decay_law."""

import torch

from course.decay_law import double


def test_ch15_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
