"""RMSNorm in one pass over the rows, the fast twin of `course.model.RMSNorm`.

Bound by memory: forward reads x and writes the result, backward reads x and the gradient and writes one; nothing between is
stored but one float32 a row.

Source: Zhang and Sennrich (2019), Root Mean Square Layer Normalization, equation 4.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from course.kernels import check_device, multiprocessors

__all__ = ["rms_norm"]

ELEMENTS = 8192  # of a tile: whole rows, as many as fit
WARPS, STAGES = 16, 3  # in the backward pass: warps a multiprocessor, rows under way at once


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """weight · x / √(mean(x²) + eps) over the last dimension, with gradients.

    Args:
        x: (..., d_model), float32, bfloat16 or float16; d_model at most 65,536.
        weight: (d_model,), any of these dtypes.

    Returns:
        (..., d_model) in the dtype of x; computed in float32 and rounded once.

    Raises:
        ValueError: if the shapes do not fit, or the tensors are where no kernel can reach them.
    """
    check_device(x, weight)
    if weight.shape != x.shape[-1:] or not 0 < x.shape[-1] <= 65_536:
        raise ValueError(
            f"weight must have the width of x, between 1 and 65536, got {tuple(weight.shape)} for x of {tuple(x.shape)}"
        )
    return _RMSNorm.apply(x, weight, eps)


@triton.jit
def _forward_kernel(x, weight, out, inverse, n, d, eps, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    inside = (rows[:, None] < n) & (columns[None, :] < d)
    at = rows[:, None] * d + columns[None, :]
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)  # (ROWS, WIDTH)
    r = tl.rsqrt(tl.sum(values * values, 1) / d + eps)  # (ROWS,)
    w = tl.load(weight + columns, mask=columns < d, other=0.0).to(tl.float32)
    tl.store(out + at, (values * r[:, None] * w[None, :]).to(out.dtype.element_ty), mask=inside)
    tl.store(inverse + rows, r, mask=rows < n)


@triton.jit
def _backward_kernel(x, weight, inverse, grad_out, grad_x, partial, n, d, WIDTH: tl.constexpr, STAGES: tl.constexpr):
    """With u = x·r: ∂x = r·(g w − u·mean(g w u)), ∂w = Σ_rows g u, of which each program adds up its own rows."""
    columns = tl.arange(0, WIDTH)
    inside = columns < d
    w = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    grad_weight = tl.zeros([WIDTH], tl.float32)
    for row in tl.range(tl.program_id(0), n, tl.num_programs(0), num_stages=STAGES):
        at = tl.cast(row, tl.int64) * d + columns
        r = tl.load(inverse + row)
        u = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * r
        g = tl.load(grad_out + at, mask=inside, other=0.0).to(tl.float32)
        grad_weight += g * u
        g *= w
        mean = tl.sum(g * u, 0) / d
        tl.store(grad_x + at, ((g - u * mean) * r).to(grad_x.dtype.element_ty), mask=inside)
    tl.store(partial + tl.program_id(0) * d + columns, grad_weight, mask=inside)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        x, weight = x.contiguous(), weight.contiguous()
        d, n = x.shape[-1], x.numel() // x.shape[-1]
        out = torch.empty_like(x)
        inverse = torch.empty(n, dtype=torch.float32, device=x.device)  # 1 / √(mean(x²) + eps)
        rows, width = _tile(d)
        if n:
            _forward_kernel[(triton.cdiv(n, rows),)](x, weight, out, inverse, n, d, eps, ROWS=rows, WIDTH=width, num_warps=8)
        ctx.save_for_backward(x, weight, inverse)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x, weight, inverse = ctx.saved_tensors
        d, n = x.shape[-1], x.numel() // x.shape[-1]
        grad_x = torch.empty_like(x)
        width = triton.next_power_of_2(d)
        warps = min(8, max(1, width // 512))  # of a program, which has one row at a time
        programs = max(1, min(WARPS // warps * multiprocessors(x.device), n))
        partial = torch.empty(programs, d, dtype=torch.float32, device=x.device)
        _backward_kernel[(programs,)](
            x, weight, inverse, grad_out.contiguous(), grad_x, partial, n, d,
            WIDTH=width, STAGES=STAGES, num_warps=warps,
        )  # fmt: skip
        return grad_x, partial.sum(dim=0).to(weight.dtype), None


def _tile(d: int) -> tuple[int, int]:
    """Rows and columns of a tile: Triton's tiles have powers of two."""
    width = triton.next_power_of_2(d)
    return max(1, min(16, ELEMENTS // width)), width
