"""The evidence behind the formulas of ch13_attention_maps."""

import torch

from course.attention_maps import double


def test_ch13_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
