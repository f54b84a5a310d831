"""The evidence behind the formulas of ch17_sinks."""

import torch

from course.sinks import double


def test_ch17_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
