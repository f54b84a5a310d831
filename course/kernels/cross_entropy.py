"""The loss of a language model from its last hidden states, without ever holding all logits.

The logits of n tokens are n × V numbers, by far the largest tensor of a small model's training step, and their gradient is as
large again. Here they exist for one chunk of tokens at a time: a matrix product makes them, one kernel turns them into the
loss and, in place, into their gradient, and two matrix products pass that on. The backward pass only scales.

The gradient of a logit is (p − y)/n. Of 2,048 tokens and 50,257 words most entries are about 10⁻⁸, which float16 cannot hold:
so the logits' place holds p − y, products add up in float32, and 1/n comes last, with the gradient of the loss.

The plain twin is `course.softmax_and_cross_entropy.cross_entropy(x @ weight.T, targets)`.

Source: Hsu et al. (2024), Liger Kernel, section 3.2, for the chunks.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from course.kernels import check_device

__all__ = ["linear_cross_entropy"]

BLOCK = 16_384  # logits a step of the kernel
CHUNK = 4096  # tokens whose logits exist at a time
IGNORED = tl.constexpr(-100)  # the target of a token that does not count, as in torch


def linear_cross_entropy(x: Tensor, weight: Tensor, targets: Tensor, chunk: int = CHUNK) -> Tensor:
    """The mean over n tokens of −ln softmax(x Wᵀ)[target], in nats, with gradients of x and weight.

    Args:
        x: (n, d_model), float32, bfloat16 or float16.
        weight: (V, d_model), the head, dtype of x.
        targets: (n,) integers, 0 … V − 1, or −100 for a token that does not count; any other gives a loss of NaN.
        chunk: how many tokens' logits are held at a time.

    Returns:
        A 0-d float32 tensor: the mean over the tokens that count, NaN if there is none.

    Raises:
        TypeError: if the dtypes do not fit.
        ValueError: if the shapes do not fit, or the tensors are where no kernel can reach them.
    """
    check_device(x, weight, targets)
    if x.dtype != weight.dtype or targets.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"x and weight must have one dtype and targets be integers, got {x.dtype}, {weight.dtype}, {targets.dtype}"
        )
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[1] or targets.shape != x.shape[:1] or 0 in x.shape:
        raise ValueError(
            f"x must be (n, d_model), weight (V, d_model), targets (n,), got {tuple(x.shape)}, {tuple(weight.shape)}, {tuple(targets.shape)}"
        )
    if chunk < 1:
        raise ValueError(f"a chunk must have at least 1 token, got {chunk}")
    return _LinearCrossEntropy.apply(x, weight, targets, chunk)


@triton.jit
def _kernel(logits, targets, losses, V, BLOCK: tl.constexpr, GRADIENT: tl.constexpr):
    """One program a token: its loss and, in place of its logits, softmax − one-hot; zeros if it does not count."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * V
    target = tl.load(targets + row)
    top = tl.full([], float("-inf"), tl.float32)
    total = tl.full([], 0.0, tl.float32)  # Σ exp(logit − top)
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(logits + columns, mask=columns < V, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(values, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(values - higher), 0)
        top = higher
    lse = top + tl.log(total)
    right = tl.load(logits + target, mask=(target >= 0) & (target < V), other=float("nan")).to(tl.float32)
    tl.store(losses + row, tl.where(target == IGNORED, 0.0, lse - right))
    if GRADIENT:
        tl.debug_barrier()  # all of the program has read the target's logit before it is overwritten
        for start in range(0, V, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            values = tl.load(logits + columns, mask=columns < V, other=float("-inf")).to(tl.float32)
            grad = tl.where(target == IGNORED, 0.0, tl.exp(values - lse) - tl.where(columns == target, 1.0, 0.0))
            tl.store(logits + columns, grad.to(logits.dtype.element_ty), mask=columns < V)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets, chunk):
        n, V = len(x), len(weight)
        losses = torch.empty(n, dtype=torch.float32, device=x.device)
        learns_x, learns_weight = ctx.needs_input_grad[:2]
        grad_x = torch.empty_like(x) if learns_x else None
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=x.device) if learns_weight else None
        targets = targets.contiguous()
        for start in range(0, n, chunk):
            part = slice(start, min(start + chunk, n))
            logits = x[part] @ weight.T  # (chunk, V)
            _kernel[(len(logits),)](
                logits, targets[part], losses[part], V, BLOCK=BLOCK, GRADIENT=learns_x or learns_weight, num_warps=16
            )
            if learns_x:
                torch.mm(logits, weight, out=grad_x[part])
            if learns_weight:
                grad_weight += _wide_product(logits.T, x[part])
        counted = (targets != IGNORED.value).sum()
        ctx.save_for_backward(grad_x, grad_weight, counted)
        ctx.dtype = x.dtype
        return losses.sum() / counted

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        *grads, counted = ctx.saved_tensors
        scale = (grad_loss / counted)[None]  # with an axis, so that products are float32 before they are rounded
        return *(g if g is None else torch.mul(g, scale, out=torch.empty_like(g, dtype=ctx.dtype)) for g in grads), None, None


def _wide_product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b, not rounded to their dtype: float32."""
    if a.is_cuda and a.dtype != torch.float32:
        return torch.mm(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()
