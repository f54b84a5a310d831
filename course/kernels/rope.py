"""Rotary positions in one pass, the fast twin of `course.position_rope.rope` in its layout "half".

Bound by memory: each number is read once and written once. The cosines and sines are a table that all layers share; a program
reads its rows once for all of its heads.

Source: Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding, section 3.4.2.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from course.kernels import check_device
from course.position_rope import rope_frequencies

__all__ = ["rope", "rotations"]

TOKENS = 32  # a tile, of one head
HEADS = 4  # that share what a program has read of the table


def rotations(positions: Tensor, d_head: int, theta: float = 10_000.0) -> Tensor:
    """The cosines and sines of all angles, computed in float64: positions (T,) → (2, T, d_head / 2) float32.

    Raises:
        ValueError: if d_head is not a positive even number.
    """
    angles = positions.double()[:, None] * rope_frequencies(d_head, theta).to(positions.device)  # (T, d_head / 2)
    return torch.stack([angles.cos(), angles.sin()]).float()


def rope(x: Tensor, rotations: Tensor) -> Tensor:
    """Turn pair i, the dimensions i and i + d_head/2, of each head by its angle, with gradients.

    Args:
        x: (B, H, T, d_head), float32, bfloat16 or float16, any strides; d_head a power of two.
        rotations: (2, T, d_head / 2) float32, of the function of that name.

    Returns:
        (B, H, T, d_head) in the dtype of x; computed in float32 and rounded once.

    Raises:
        ValueError: if the shapes do not fit, or the tensors are where no kernel can reach them.
    """
    check_device(x, rotations)
    if x.ndim != 4 or x.shape[3] < 2 or x.shape[3] & (x.shape[3] - 1):
        raise ValueError(f"x must be (B, H, T, d_head) with d_head a power of two, got {tuple(x.shape)}")
    if rotations.shape != (2, x.shape[2], x.shape[3] // 2) or rotations.dtype != torch.float32:
        raise ValueError(
            f"rotations must be {(2, x.shape[2], x.shape[3] // 2)} float32, got {tuple(rotations.shape)} {rotations.dtype}: "
            "make them with rotations(positions, d_head)"
        )
    return _RoPE.apply(x, rotations)


@triton.jit
def _kernel(
    x, out, rotations, H, T, step_b, step_h, step_t, step_d, out_b, out_h, out_t, turn,
    HALF: tl.constexpr, TOKENS: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    # All programs are on the grid's first axis, since the others end at 65,535.
    blocks, groups = tl.cdiv(T, TOKENS), tl.cdiv(H, HEADS)
    tokens = tl.program_id(0) % blocks * TOKENS + tl.arange(0, TOKENS)
    pairs = tl.arange(0, HALF)
    inside = (tokens < T)[:, None] & (pairs >= 0)[None, :]
    table = rotations + tokens[:, None] * HALF + pairs[None, :]
    cos = tl.load(table, mask=inside, other=0.0)  # (TOKENS, HALF)
    sin = tl.load(table + T * HALF, mask=inside, other=0.0) * turn
    b = (tl.program_id(0) // (blocks * groups)).to(tl.int64)
    first = tl.program_id(0) // blocks % groups * HEADS
    for h in range(first, tl.minimum(first + HEADS, H)):
        at = x + b * step_b + h * step_h + tokens.to(tl.int64)[:, None] * step_t + pairs[None, :] * step_d
        left = tl.load(at, mask=inside).to(tl.float32)
        right = tl.load(at + HALF * step_d, mask=inside).to(tl.float32)
        to = out + b * out_b + h * out_h + tokens.to(tl.int64)[:, None] * out_t + pairs[None, :]
        tl.store(to, (left * cos - right * sin).to(out.dtype.element_ty), mask=inside)
        tl.store(to + HALF, (left * sin + right * cos).to(out.dtype.element_ty), mask=inside)


class _RoPE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rotations):
        ctx.save_for_backward(rotations)
        return _turned(x, rotations, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (rotations,) = ctx.saved_tensors
        return _turned(grad_out, rotations, -1.0), None  # the transpose of a rotation turns back


def _turned(x: Tensor, rotations: Tensor, turn: float) -> Tensor:
    B, H, T, d_head = x.shape
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        _kernel[(triton.cdiv(T, TOKENS) * triton.cdiv(H, HEADS) * B,)](
            x,
            out,
            rotations.contiguous(),
            H,
            T,
            *x.stride(),
            *out.stride()[:3],
            turn,
            HALF=d_head // 2,
            TOKENS=TOKENS,
            HEADS=HEADS,
        )
    return out
