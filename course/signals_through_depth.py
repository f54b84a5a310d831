"""Signals through depth: chapter f05.

Second moments through layers, initial weights, the limits of floats, loss scaling, and residual stacks.
Vectors are rows: a layer computes z = hW with h (..., n_in) and W (n_in, n_out).
"""

import itertools
import math
from collections.abc import Callable

import torch

from course.softmax_and_cross_entropy import logsumexp

__all__ = [
    "euler_resnet",
    "he_std",
    "largest_float",
    "logsumexp",
    "loss_scale",
    "residual_growth",
    "spread_through_depth",
    "var_through_depth",
    "xavier_std",
]


def xavier_std(n_in: int, n_out: int) -> float:
    """√(2/(n_in + n_out)), formula f05-xavier: between what the signal and what the gradient wants.

    Raises:
        ValueError: if a width is not positive.

    Source: Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks.
    """
    if min(n_in, n_out) < 1:
        raise ValueError(f"widths are positive, got {n_in} and {n_out}")
    return math.sqrt(2 / (n_in + n_out))


def he_std(n_in: int) -> float:
    """√(2/n_in), formula f05-he: keeps the second moment through layers with ReLU.

    Raises:
        ValueError: if the width is not positive.

    Source: He et al. (2015), Delving Deep into Rectifiers.
    """
    if n_in < 1:
        raise ValueError(f"the width is positive, got {n_in}")
    return math.sqrt(2 / n_in)


def var_through_depth(widths: list[int], std: Callable[[int, int], float], seed: int = 0, relu: bool = True) -> torch.Tensor:
    """Mean square of the pre-activations z of each layer of one random network, for one random input.

    Args:
        widths: n_0 … n_L.
        std: the weights' standard deviation for (n_in, n_out).
        seed: of the input and the weights, which are normal with mean 0.
        relu: whether max(0, z) goes into the next layer, or z itself.

    Returns:
        (L,) float64; the input's mean square is exactly 1.

    Raises:
        ValueError: if there are fewer than two widths.
    """
    if len(widths) < 2:
        raise ValueError("a layer needs two widths")
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(widths[0], generator=generator, dtype=torch.float64)  # (n_0,)
    h, squares = h / h.square().mean().sqrt(), []
    for n_in, n_out in itertools.pairwise(widths):
        z = h @ (std(n_in, n_out) * torch.randn(n_in, n_out, generator=generator, dtype=torch.float64))  # (n_out,)
        squares.append(z.square().mean())
        h = z.clamp(min=0) if relu else z
    return torch.stack(squares)


def spread_through_depth(L: int, gain: float, width: int) -> tuple[float, float, float]:
    """log10 of the mean square after L ReLU layers, relative to the first: expected, and the ends for 19 of 20 networks.

    The expected value is gain^2L; ln of the mean square is taken as normal with variance 5L/n and mean half of that
    below, formula f05-wander.

    Args:
        L: number of layers.
        gain: what He's standard deviation is multiplied by, positive.
        width: n, of all layers.

    Source: Hanin and Nica (2018), Products of Many Large Random Matrices and Gradients in Deep Neural Networks.
    """
    expected, variance = 2 * L * math.log10(gain), 5 * L / width
    middle, half = expected - variance / 2 / math.log(10), 1.96 * math.sqrt(variance) / math.log(10)
    return expected, middle - half, middle + half


def largest_float(mantissa_bits: int, exponent_bits: int) -> float:
    """(2 − 2^−m) · 2^e with e = 2^(bits − 1) − 1, formula f05-largest: the largest finite float of an IEEE-like format.

    Raises:
        ValueError: if a number of bits is too small, or the result is no float64.
    """
    if mantissa_bits < 0 or not 2 <= exponent_bits <= 11:
        raise ValueError(f"0 or more mantissa bits and 2 to 11 exponent bits, got {mantissa_bits} and {exponent_bits}")
    return (2 - 2.0**-mantissa_bits) * 2.0 ** (2 ** (exponent_bits - 1) - 1)


def loss_scale(gradient: torch.Tensor, scale: float, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """What is left of a gradient that passes a 16-bit format times `scale` and is divided by it in float32.

    Args:
        gradient: (...) float32, as it would be without rounding.
        scale: positive; a power of two costs no digits.
        dtype: of the pass.

    Returns:
        (...) float32, formula f05-scale with rounding.

    Raises:
        ValueError: if the scale is not positive.

    Source: Micikevicius et al. (2018), Mixed Precision Training.
    """
    if not scale > 0:
        raise ValueError(f"the scale is positive, got {scale}")
    return (gradient * scale).to(dtype).float() / scale


def residual_growth(L: int, alpha: float, normed: bool) -> float:
    """Expected second moment after L residual steps h + αF(h), if that of h was 1: formulas f05-normed and f05-plain.

    Args:
        L: number of steps.
        alpha: the branch's factor.
        normed: whether F's output has second moment 1 whatever h is, or that of h.
    """
    return 1 + L * alpha**2 if normed else (1 + alpha**2) ** L


def euler_resnet(F: Callable, h: torch.Tensor, L: int, time: float = 1.0) -> torch.Tensor:
    """L residual blocks h ← h + (time/L) F(h): Euler's steps for dh/dt = F(h), formulas f05-euler and f05-ode.

    Args:
        F: from h to its rate of change, same shape.
        h: (...) the start.
        L: number of blocks, one or more.

    Returns:
        (...) the state after `time`, off by an error in proportion to 1/L for smooth F.

    Raises:
        ValueError: if L is not positive.
    """
    if L < 1:
        raise ValueError(f"at least one block, got {L}")
    for _ in range(L):
        h = h + time / L * F(h)
    return h
