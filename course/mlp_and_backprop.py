"""Multilayer perceptrons and backpropagation: the reference code of chapter f04."""

import math
from itertools import pairwise

import torch

__all__ = ["Scalar", "in_order", "mlp_backward", "mlp_forward", "parameter_count", "two_spirals"]


def mlp_forward(
    X: torch.Tensor, W1: torch.Tensor, b1: torch.Tensor, W2: torch.Tensor, b2: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """One hidden layer of tanh units and a linear output: formula f04-forward.

    Args:
        X: (N, d_in)
        W1: (d_in, d_hidden), b1: (d_hidden,)
        W2: (d_hidden, d_out), b2: (d_out,)

    Returns:
        Z1 (N, d_hidden) before the nonlinearity, A1 (N, d_hidden) after it, Z2 (N, d_out).

    Raises:
        RuntimeError: by torch, if the shapes do not fit.
    """
    Z1 = X @ W1 + b1  # (N, d_hidden)
    A1 = torch.tanh(Z1)  # (N, d_hidden)
    return Z1, A1, A1 @ W2 + b2  # (N, d_out)


def mlp_backward(
    X: torch.Tensor, Y: torch.Tensor, W1: torch.Tensor, b1: torch.Tensor, W2: torch.Tensor, b2: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """The gradients of the mean squared error of `mlp_forward`, formula f04-backward.

    The loss is the mean over the N rows of the squared distance to Y, without a factor 1/2.

    Args:
        X: (N, d_in), Y: (N, d_out), the others as in `mlp_forward`.

    Returns:
        The gradients in W1, b1, W2 and b2, each in the shape of its parameter.

    Raises:
        RuntimeError: by torch, if the shapes do not fit.
    """
    _, A1, Z2 = mlp_forward(X, W1, b1, W2, b2)
    delta2 = 2 / len(X) * (Z2 - Y)  # (N, d_out)
    delta1 = delta2 @ W2.T * (1 - A1**2)  # (N, d_hidden): the slope of tanh is 1 − tanh²
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


class Scalar:
    """A number that remembers how it was made, so that `backward` can send a gradient to all that it came from.

    Args:
        value: a number.
        parents: the (Scalar, local slope) pairs that it was made from.

    After ``loss.backward()`` each Scalar that the loss depends on has in `grad` the derivative of the loss in it.
    """

    def __init__(self, value: float, parents: tuple = ()):
        self.value, self.parents, self.grad = float(value), parents, 0.0

    def __add__(self, other):
        other = _scalar(other)
        return Scalar(self.value + other.value, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        other = _scalar(other)
        return Scalar(self.value * other.value, ((self, other.value), (other, self.value)))

    def __sub__(self, other):
        return self + _scalar(other) * -1.0

    def tanh(self) -> "Scalar":
        """The hyperbolic tangent, whose slope is 1 − tanh²."""
        t = math.tanh(self.value)
        return Scalar(t, ((self, 1 - t * t),))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return _scalar(other) - self

    def backward(self) -> None:
        """Fill in the gradients: formula f04-reverse, from this number back to the first ones."""
        order = in_order(self)
        for node in order:
            node.grad = 0.0
        self.grad = 1.0
        for node in reversed(order):
            for parent, slope in node.parents:
                parent.grad += node.grad * slope


def _scalar(x) -> Scalar:
    return x if isinstance(x, Scalar) else Scalar(x)


def in_order(node: Scalar) -> list[Scalar]:
    """All that a Scalar was made from and itself, each after its parents."""
    order, seen = [], set()

    def visit(node):
        if id(node) not in seen:
            seen.add(id(node))
            for parent, _ in node.parents:
                visit(parent)
            order.append(node)

    visit(node)
    return order


def parameter_count(*widths: int) -> int:
    """Weights and biases of a perceptron with layers of these widths, the input first: formula f04-count.

    Raises:
        ValueError: if there are fewer than two widths or one is not positive.
    """
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"at least two positive widths are needed, got {widths}")
    return sum((d_in + 1) * d_out for d_in, d_out in pairwise(widths))


def two_spirals(n: int, turns: float = 1.0, noise: float = 0.05, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two classes that wind around each other.

    Args:
        n: points of each class.
        turns: of each spiral.
        noise: standard deviation of the points about it.
        seed: of the points.

    Returns:
        X (2n, 2) and Y (2n, 1), which is 1 for the first n points and −1 for the others, float32.

    Raises:
        ValueError: if n is not positive.
    """
    if n < 1:
        raise ValueError(f"n must be positive, got {n}")
    generator = torch.Generator().manual_seed(seed)
    t = torch.rand(n, generator=generator).sqrt()  # (n,): even along the arm
    angle = 2 * math.pi * turns * t
    arm = t[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)  # (n, 2)
    X = torch.cat([arm, -arm]) + noise * torch.randn(2 * n, 2, generator=generator)
    return X, torch.cat([torch.ones(n, 1), -torch.ones(n, 1)])
