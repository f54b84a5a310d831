"""The evidence behind the formulas of ch20_kv_compression."""

import torch

from course.kv_compression import double


def test_ch20_double():
    for n in range(1, 9):
        x = torch.arange(n, dtype=torch.float64)
        assert double(x).tolist() == [2 * i for i in range(n)]
