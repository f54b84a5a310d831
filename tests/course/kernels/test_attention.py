"""The fast attention against the plain one in float64: values and gradients, every shape, and what it refuses."""

import pytest
import torch

from course.attention import attention as plain
from course.kernels import attention as kernels
from course.model import attend

# The interpreter has no products of bfloat16.
DTYPES = [torch.float16, torch.bfloat16] if torch.cuda.is_available() else [torch.float16]

# B, H, kv_heads, T, S, d_head, causal
SHAPES = [
    (1, 1, 1, 1, 1, 64, True),
    (2, 2, 2, 33, 33, 64, True),
    (1, 4, 2, 70, 70, 64, False),
    (1, 6, 1, 17, 50, 64, True),  # the queries are the last of more keys; one key for all heads
    (1, 2, 1, 40, 7, 64, False),
    (1, 2, 2, 1, 45, 128, True),  # one step of decoding
    (1, 1, 1, 130, 130, 128, True),
]
if torch.cuda.is_available():
    SHAPES += [(2, 4, 2, 1000, 1000, 128, True), (1, 2, 2, 777, 1500, 64, True), (1, 2, 1, 512, 1025, 128, False)]


@pytest.fixture(params=["small tiles", "own tiles"])
def tiles(request, monkeypatch):
    """Small tiles take many of them for a short sequence, so that every loop and every mask is used."""
    if request.param == "small tiles":
        for name, sizes in {"FORWARD": (16, 32), "KEY_BACKWARD": (32, 16), "QUERY_BACKWARD": (16, 16)}.items():
            tile = kernels.Tile(*sizes, warps=4, stages=2)
            monkeypatch.setattr(kernels, name, {d_head: tile for d_head in (64, 128)})


def exact(query, key, value, causal):
    if causal:
        return attend(query, key, value)
    groups = query.shape[1] // key.shape[1]
    return plain(query, key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients_are_those_of_the_plain_form(shape, dtype, tiles, drawn, agree):
    B, H, kv_heads, T, S, d_head, causal = shape
    query = drawn((B, H, T, d_head), dtype)
    key, value = (drawn((B, kv_heads, S, d_head), dtype, seed) for seed in (1, 2))
    agree(
        lambda *inputs: kernels.attention(*inputs, causal=causal),
        lambda *inputs: exact(*inputs, causal),
        [query, key, value],
        times=2,
    )


def test_heads_beside_each_other_in_memory_are_read_in_place(drawn, agree):
    """(B, T, H, d_head) seen as (B, H, T, d_head), as the projections of a model give it."""
    inputs = [drawn((2, 20, 2, 64), torch.float16, seed).transpose(1, 2) for seed in (1, 2, 3)]
    assert all(kernels._readable(each) is each for each in inputs)
    agree(kernels.attention, attend, inputs, times=2)
    results = [each.detach().requires_grad_() for each in inputs]
    out = kernels.attention(*results)
    grads = torch.autograd.grad(out, results, torch.ones_like(out))
    assert all(each.transpose(1, 2).is_contiguous() for each in (out, *grads))  # and so the model takes them back


def test_what_the_copy_engine_cannot_read_is_copied(drawn, agree):
    wide = [drawn((1, 2, 20, 66), torch.float16, seed) for seed in (1, 2, 3)]
    odd = [each[..., 1:65] for each in wide]  # rows begin at any multiple of 2 bytes
    assert all(kernels._readable(each).data_ptr() % 16 == 0 for each in odd)
    agree(kernels.attention, attend, odd, times=2)
    one = torch.ones((), dtype=torch.float16, device=odd[0].device).expand(1, 2, 20, 64)  # as the gradient of a sum
    assert kernels._readable(one).stride() == (2560, 1280, 64, 1)


def test_large_scores_neither_overflow_nor_vanish(drawn):
    """Scores of some thousands, and a tail of keys after which the sum must not have grown."""
    query, key, value = (drawn((1, 1, 37, 64), torch.float16, seed) for seed in (1, 2, 3))
    for factor in (40.0, -40.0):
        inputs = [factor * query, 40.0 * query.abs() + key, value]
        results = [each.detach().requires_grad_() for each in inputs]
        out = kernels.attention(*results, causal=False)
        grads = torch.autograd.grad(out.float().sum(), results)
        assert all(each.isfinite().all() for each in (out, *grads))
        want = exact(*(each.double() for each in inputs), causal=False)
        assert float((out.detach().double() - want).norm() / want.norm()) < 2e-3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="so many programs take the interpreter minutes")
def test_more_heads_than_an_axis_of_the_grid_has_room_for(drawn, agree):
    inputs = [drawn((65_537, 1, 3, 64), torch.float16, seed) for seed in (1, 2, 3)]
    agree(kernels.attention, attend, inputs, times=2)


def test_the_memory_for_the_backward_pass_does_not_grow_with_the_square_of_the_length(drawn):
    kept = []
    query, key, value = (drawn((1, 2, 96, 64), torch.float16, seed).requires_grad_() for seed in (1, 2, 3))
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        kernels.attention(query, key, value)
    assert sum(each.numel() for each in kept) == 4 * query.numel() + 2 * 2 * 96  # query, key, value, output, two numbers a query


@pytest.mark.parametrize(
    "shapes, kind, says",
    [
        (((1, 2, 8, 64), (1, 2, 8, 32)), ValueError, "agree in B and d_head"),
        (((1, 3, 8, 64), (1, 2, 8, 64)), ValueError, "do not divide"),
        (((1, 2, 8, 32), (1, 2, 8, 32)), ValueError, "d_head must be one of 64, 128"),
        (((1, 2, 9, 64), (1, 2, 8, 64)), ValueError, "last of 8 keys"),
        (((2, 8, 64), (2, 8, 64)), ValueError, "must be"),
        (((1, 2, 0, 64), (1, 2, 8, 64)), ValueError, "must be"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(shapes, kind, says, drawn):
    query, key = (drawn(shape, torch.float16) for shape in shapes)
    with pytest.raises(kind, match=says):
        kernels.attention(query, key, key)


def test_other_dtypes_are_refused(drawn):
    query = drawn((1, 2, 8, 64))
    with pytest.raises(TypeError, match="bfloat16 or float16"):
        kernels.attention(query, query, query)
