"""Slopes, gradients and gradient descent: the reference code of chapter f02."""

from collections.abc import Callable

import torch

__all__ = ["gd", "gd_1d", "grad_axb", "grad_check", "num_grad"]


def num_grad(f: Callable, x: torch.Tensor, step: float = 1e-5) -> torch.Tensor:
    """The gradient of f at x by central differences, one entry at a time.

    Formula f02-central: each entry is right up to about step²/6 times the third derivative,
    plus the rounding of f divided by step.

    Args:
        f: takes a tensor of the shape of x, returns one number.
        x: any shape, float64; not changed.
        step: half the distance between the two points, in the unit of x.

    Returns:
        A tensor of the shape of x.

    Raises:
        ValueError: if x is not float64, whose 16 digits the differences need, or step is not positive.
    """
    if x.dtype != torch.float64:
        raise ValueError(f"x must be float64, got {x.dtype}: use x.double()")
    if not step > 0:
        raise ValueError(f"step must be positive, got {step}")
    grad = torch.zeros(x.numel(), dtype=x.dtype)
    for i in range(x.numel()):
        change = torch.zeros(x.numel(), dtype=x.dtype)
        change[i] = step
        change = change.view(x.shape)
        grad[i] = (f(x + change) - f(x - change)) / (2 * step)
    return grad.view(x.shape)


def gd_1d(derivative: Callable, x: float, rate: float, steps: int) -> list[float]:
    """Gradient descent on a line: formula f02-descent-line.

    Returns:
        The steps + 1 points, the start among them.

    Raises:
        ValueError: if steps is negative.
    """
    if steps < 0:
        raise ValueError(f"steps must be zero or more, got {steps}")
    path = [x]
    for _ in range(steps):
        path.append(path[-1] - rate * derivative(path[-1]))
    return path


def gd(gradient: Callable, w: torch.Tensor, rate: float, steps: int) -> torch.Tensor:
    """Gradient descent in many dimensions: formula f02-descent.

    Args:
        gradient: takes and returns tensors of the shape of w.
        w: the start, any shape; not changed.

    Returns:
        (steps + 1, *w.shape): all points, the start first.

    Raises:
        ValueError: if steps is negative.
    """
    if steps < 0:
        raise ValueError(f"steps must be zero or more, got {steps}")
    path = [w]
    for _ in range(steps):
        path.append(path[-1] - rate * gradient(path[-1]))
    return torch.stack(path)


def grad_axb(A: torch.Tensor, G: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """The gradient in X of a loss of Y = A X B, from its gradient G in Y: formula f02-axb.

    Args:
        A: (m, r)
        G: (m, n), the gradient of the loss in Y
        B: (s, n)

    Returns:
        (r, s), the shape of X.

    Raises:
        ValueError: if the shapes do not fit.
    """
    if G.shape != (A.shape[0], B.shape[1]):
        raise ValueError(f"G must have the shape of AXB, {(A.shape[0], B.shape[1])}, got {tuple(G.shape)}")
    return A.T @ G @ B.T  # (r, m) @ (m, n) @ (n, s)


def grad_check(f: Callable, gradient: Callable, x: torch.Tensor, step: float = 1e-5) -> float:
    """How far a gradient is from central differences at x (any shape), relative to the larger of the two.

    Returns:
        max |difference| / max |entry|; 0.0 where both are zero. Below about 1e-7 for a right
        gradient of a smooth f whose values are of ordinary size.

    Raises:
        ValueError: if the gradient has not the shape of x; see also `num_grad`.
    """
    theirs, ours = gradient(x), num_grad(f, x, step)
    if theirs.shape != x.shape:
        raise ValueError(f"a gradient has the shape of its x, {tuple(x.shape)}, got {tuple(theirs.shape)}")
    size = max(theirs.abs().max(), ours.abs().max())
    return float((theirs - ours).abs().max() / size) if size > 0 else 0.0
