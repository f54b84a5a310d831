"""Softmax over the last dimension in one pass, the fast twin of `course.softmax_and_cross_entropy.softmax`.

Bound by memory: forward reads and writes each number once, backward reads two and writes one.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from course.kernels import check_device

__all__ = ["softmax"]

ELEMENTS = 8192  # of a tile: whole rows, as many as fit


def softmax(x: Tensor) -> Tensor:
    """exp(x_i) / Σ_j exp(x_j), with gradients.

    Args:
        x: (..., V), float32, bfloat16 or float16; V at most 65,536; minus infinity is allowed, but not for a whole row.

    Returns:
        (..., V) in the dtype of x; computed in float32 and rounded once.

    Raises:
        ValueError: if V is not between 1 and 65,536, or x is where no kernel can reach it.
    """
    check_device(x)
    if not 0 < x.shape[-1] <= 65_536:
        raise ValueError(f"a row must have between 1 and 65536 scores, got {x.shape[-1]}")
    return _Softmax.apply(x)


@triton.jit
def _forward_kernel(x, out, n, V, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    inside = (rows[:, None] < n) & (columns[None, :] < V)
    at = rows[:, None] * V + columns[None, :]
    scores = tl.load(x + at, mask=inside, other=float("-inf")).to(tl.float32)  # (ROWS, WIDTH)
    top = tl.where(rows < n, tl.max(scores, 1), 0.0)
    powers = tl.exp(scores - top[:, None])
    tl.store(out + at, (powers / tl.sum(powers, 1)[:, None]).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _backward_kernel(out, grad_out, grad_x, n, V, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """∂x_i = p_i (g_i − Σ_j p_j g_j)."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    inside = (rows[:, None] < n) & (columns[None, :] < V)
    at = rows[:, None] * V + columns[None, :]
    p = tl.load(out + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(grad_out + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(p * g, 1)
    tl.store(grad_x + at, (p * (g - mean[:, None])).to(grad_x.dtype.element_ty), mask=inside)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        _launch(_forward_kernel, x.contiguous(), out)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (out,) = ctx.saved_tensors
        grad_x = torch.empty_like(out)
        _launch(_backward_kernel, out, grad_out.contiguous(), grad_x)
        return grad_x


def _launch(kernel, *tensors: Tensor) -> None:
    V = tensors[0].shape[-1]
    n, width = tensors[0].numel() // V, triton.next_power_of_2(V)
    rows = max(1, min(16, ELEMENTS // width))
    if n:
        kernel[(triton.cdiv(n, rows),)](*tensors, n, V, ROWS=rows, WIDTH=width, num_warps=min(32, max(8, width // 2048)))
