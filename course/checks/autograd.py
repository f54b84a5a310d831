"""What autograd keeps with arguments, and the gradients that go through an answer."""

import torch

from course.checks.arguments import copy_of, leaves, map_leaves
from course.checks.comparing import difference
from course.checks.outcomes import CheckFailed

__all__ = ["AUTOGRAD", "changed_in_autograd", "gradients", "in_autograd"]

AUTOGRAD = "requires_grad", "grad"
"""What autograd keeps with a tensor beside its values."""


def in_autograd(x) -> list[tuple]:
    """`AUTOGRAD` of each tensor in arguments, a module's parameters among them."""
    parts = (p for y in leaves(x) for p in (y.parameters() if isinstance(y, torch.nn.Module) else [y]))
    tensors = [p for p in parts if isinstance(p, torch.Tensor)]
    return [(p.requires_grad, p.grad.clone() if p.is_leaf and p.grad is not None else None) for p in tensors]


def changed_in_autograd(before: list[tuple], after: list[tuple]) -> str | None:
    """The first of `AUTOGRAD` that differs."""
    pairs = ((name, b, a) for old, new in zip(before, after, strict=False) for name, b, a in zip(AUTOGRAD, old, new, strict=True))
    return next((name for name, b, a in pairs if difference(b, a) is not None), None)


def gradients(answer, args, kwargs) -> list[torch.Tensor]:
    """The gradients of a random sum of the results with respect to each float tensor argument, in float64: any shape, as theirs is.

    Raises:
        CheckFailed: if autograd does not see the arguments in the result.
    """

    def leaf(x):
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.detach().double().requires_grad_(True)
        return x

    args, kwargs = map_leaves(leaf, (copy_of(args), copy_of(kwargs)))
    inputs = [x for x in leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad]
    outputs = [x for x in leaves(answer(*args, **kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not outputs:
        raise CheckFailed("the result does not depend on the arguments for autograd (detached, or computed outside torch)")
    generator = torch.Generator().manual_seed(0)
    loss = sum((x * torch.randn(x.shape, generator=generator, dtype=x.dtype)).sum() for x in outputs)
    grads = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, grads, strict=True)]
