"""The fast SwiGLU against torch's functions in float64, as `course.model.FeedForward` uses them."""

import pytest
import torch
from torch.nn import functional as F

from course.kernels.swiglu import swiglu

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def plain(gate, up):
    return F.silu(gate) * up


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (3, 5, 48), (70, 129), (0, 8)], ids=str)
def test_values_and_gradients_are_those_of_the_plain_form(shape, dtype, drawn, agree):
    agree(swiglu, plain, [drawn(shape, dtype), drawn(shape, dtype, 1)])


def test_halves_of_one_product_and_large_gates(drawn, agree):
    agree(swiglu, plain, list(drawn((7, 32)).chunk(2, dim=-1)))
    agree(swiglu, plain, [300 * drawn((7, 32)), drawn((7, 32), seed=1)])


def test_shapes_and_dtypes_must_be_alike(drawn):
    with pytest.raises(ValueError, match="one shape"):
        swiglu(drawn((3, 8)), drawn((8,)))
    with pytest.raises(TypeError, match="one dtype"):
        swiglu(drawn((3, 8)), drawn((3, 8), torch.float16))
