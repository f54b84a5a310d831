"""The fast RMSNorm against the course's own in float64."""

import pytest
import torch

from course.kernels import norm
from course.model import RMSNorm

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def plain(x, weight, eps=1e-5):
    module = RMSNorm(weight.shape[0], eps)
    del module.weight
    module.weight = weight
    return module(x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 3), (3, 5, 48), (70, 129), (2, 4096), (0, 8)], ids=str)
def test_values_and_gradients_are_those_of_the_plain_form(shape, dtype, drawn, agree):
    agree(norm.rms_norm, plain, [drawn(shape, dtype), drawn(shape[-1:], dtype, 1)])


def test_more_rows_than_the_programs_take_at_once(drawn, agree, monkeypatch):
    monkeypatch.setattr(norm, "multiprocessors", lambda device: 1)
    monkeypatch.setattr(norm, "WARPS", 3)
    agree(norm.rms_norm, plain, [drawn((301, 16)), drawn((16,), seed=1)])


def test_a_row_of_zeros_and_rows_beside_others_in_memory(drawn, agree):
    x = drawn((6, 16))
    x[2] = 0
    agree(norm.rms_norm, plain, [x, drawn((16,), seed=1)])
    agree(norm.rms_norm, plain, [drawn((16, 6)).T, drawn((16,), seed=1)])


def test_a_weight_of_another_width_is_refused(drawn):
    with pytest.raises(ValueError, match="width of x"):
        norm.rms_norm(drawn((3, 8)), drawn((1,)))
