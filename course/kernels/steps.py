"""The steps from the plain formula to `course.kernels.attention`: one small kernel that learns one thing at a time.

    1  tiles    the weights never leave the chip; every query passes over all keys, the mask decides what counts
    2  stop     a tile of queries stops at its diagonal: half of the work is gone
    3  clear    only tiles on the diagonal are masked
    4  late     programs with most keys start first

Tiles, warps and stages are the same in all steps. What comes after them, the copy engine and smaller tiles, is in `attention`.
README.md beside this file has what was predicted of each step and what was measured.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from course.kernels import check_device

__all__ = ["STEPS", "attention"]

STEPS = ("tiles", "stop", "clear", "late")
M, N, WARPS, STAGES = 128, 128, 8, 2


def attention(query: Tensor, key: Tensor, value: Tensor, step: str) -> Tensor:
    """Causal attention without gradients: query, key, value (B, H, T, d_head), half precision, contiguous → the same.

    Args:
        step: the last of STEPS that is taken; those before it are, too.

    Raises:
        ValueError: if the step is unknown or the tensors are not alike and contiguous.
    """
    check_device(query, key, value)
    if step not in STEPS:
        raise ValueError(f"step must be one of {', '.join(STEPS)}, got {step!r}")
    if not (query.shape == key.shape == value.shape and all(each.is_contiguous() for each in (query, key, value))):
        raise ValueError("the steps are for query, key and value of one shape, contiguous")
    B, H, T, d_head = query.shape
    out = torch.empty_like(query)
    taken = STEPS.index(step)
    _kernel[(triton.cdiv(T, M) * B * H,)](
        query, key, value, out, math.log2(math.e) / math.sqrt(d_head), T, STOP=taken >= 1, CLEAR=taken >= 2, LATE=taken >= 3,
        D=d_head, M=M, N=N, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out


@triton.jit
def _kernel(
    query, key, value, out, scale, T, STOP: tl.constexpr, CLEAR: tl.constexpr, LATE: tl.constexpr,
    D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(T, M)
    block = tl.program_id(0) % blocks
    if LATE:
        block = blocks - 1 - block
    head = (tl.program_id(0) // blocks).to(tl.int64) * T * D
    rows = block * M + tl.arange(0, M)
    at = head + rows[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(query + at, mask=rows[:, None] < T, other=0.0)  # (M, D)
    acc = tl.zeros([M, D], tl.float32)
    top = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    stop = tl.minimum((block + 1) * M, T) if STOP else T
    clear = block * M // N * N if CLEAR else 0
    acc, top, total = _pass_keys(q, key + head, value + head, rows, 0, clear, T, scale, acc, top, total, D, N, False)
    acc, top, total = _pass_keys(q, key + head, value + head, rows, clear, stop, T, scale, acc, top, total, D, N, True)
    tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), mask=rows[:, None] < T)


@triton.jit
def _pass_keys(
    q, key, value, rows, start, stop, T, scale, acc, top, total, D: tl.constexpr, N: tl.constexpr, MASKED: tl.constexpr
):  # fmt: skip
    for n in tl.range(start, stop, N):
        columns = n + tl.arange(0, N)
        at = columns[:, None] * D + tl.arange(0, D)[None, :]
        k = tl.load(key + at, mask=columns[:, None] < T, other=0.0)  # (N, D)
        scores = tl.dot(q, k.T)  # (M, N)
        if MASKED:
            scores = tl.where(columns[None, :] <= rows[:, None], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.exp2(scores * scale - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(value + at, mask=columns[:, None] < T, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    return acc, top, total
