"""swish(gate) ⊙ up in one pass: the fast twin of what `course.model.FeedForward` does between its matrices.

Bound by memory: forward reads two numbers and writes one, backward reads three and writes two.

Source: Shazeer (2020), GLU Variants Improve Transformer, equation 6.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from course.kernels import check_device

__all__ = ["swiglu"]

BLOCK = 4096  # numbers a program


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """gate · σ(gate) · up, with gradients.

    Args:
        gate, up: (..., d_ff), one dtype: float32, bfloat16 or float16.

    Returns:
        (..., d_ff) in that dtype; computed in float32 and rounded once.

    Raises:
        TypeError: if the dtypes differ.
        ValueError: if the shapes differ, or the tensors are where no kernel can reach them.
    """
    check_device(gate, up)
    if gate.dtype != up.dtype:
        raise TypeError(f"gate and up must have one dtype, got {gate.dtype} and {up.dtype}")
    if gate.shape != up.shape:
        raise ValueError(f"gate and up must have one shape, got {tuple(gate.shape)} and {tuple(up.shape)}")
    return _SwiGLU.apply(gate, up)


@triton.jit
def _forward_kernel(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(gate + at, mask=at < n).to(tl.float32)
    b = tl.load(up + at, mask=at < n).to(tl.float32)
    tl.store(out + at, (a * tl.sigmoid(a) * b).to(out.dtype.element_ty), mask=at < n)


@triton.jit
def _backward_kernel(gate, up, grad_out, grad_gate, grad_up, n, BLOCK: tl.constexpr):
    """With s = σ(a): ∂(a s)/∂a = s (1 + a (1 − s))."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(gate + at, mask=at < n).to(tl.float32)
    b = tl.load(up + at, mask=at < n).to(tl.float32)
    g = tl.load(grad_out + at, mask=at < n).to(tl.float32)
    s = tl.sigmoid(a)
    tl.store(grad_gate + at, (g * b * s * (1 + a * (1 - s))).to(grad_gate.dtype.element_ty), mask=at < n)
    tl.store(grad_up + at, (g * a * s).to(grad_up.dtype.element_ty), mask=at < n)


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        ctx.save_for_backward(gate, up)
        out = torch.empty_like(gate)
        _launch(_forward_kernel, gate, up, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        gate, up = ctx.saved_tensors
        grads = torch.empty_like(gate), torch.empty_like(up)
        _launch(_backward_kernel, gate, up, grad_out.contiguous(), *grads)
        return grads


def _launch(kernel, *tensors: Tensor) -> None:
    n = tensors[0].numel()
    if n:
        kernel[(triton.cdiv(n, BLOCK),)](*tensors, n, BLOCK=BLOCK, num_warps=8)
