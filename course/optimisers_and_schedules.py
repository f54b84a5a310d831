"""Optimisers and schedules: the reference code of chapter f07.

A step gets parameters w, a gradient g of the same shape and what the optimiser remembers, and returns the new ones; nothing
is changed in place. Steps are counted from 1. A rate may be a number or a tensor that broadcasts with w: one run a row.
"""

import math
from collections.abc import Callable

import torch

__all__ = [
    "EPS",
    "RULES",
    "adam_l2_step",
    "adam_step",
    "adamw_step",
    "best_heavy_ball",
    "bowl",
    "clip_global_norm",
    "cosine",
    "inverse_sqrt",
    "momentum_ema",
    "momentum_heavy",
    "noam",
    "optimiser",
    "rmsprop_step",
    "sgd",
    "walk",
    "warmup",
    "wsd",
]

EPS = 1e-8  # against a division by zero


def sgd(w: torch.Tensor, g: torch.Tensor, rate: float, decay: float = 0.0) -> torch.Tensor:
    """w − η(g + λw): a step of gradient descent, formula f02-descent, on the loss plus λ/2 times the squared length of w."""
    return w - rate * (g + decay * w)


def momentum_ema(w, g, m, rate: float, beta: float = 0.9) -> tuple[torch.Tensor, torch.Tensor]:
    """A step along the running mean of the gradients, formulas f07-momentum-mean and f07-momentum. w, g, m (...); the first m is 0.

    Returns:
        w and m, shape of w.
    """
    m = beta * m + (1 - beta) * g
    return w - rate * m, m


def momentum_heavy(w, g, m, rate: float, beta: float = 0.9) -> tuple[torch.Tensor, torch.Tensor]:
    """A heavy-ball step along the fading sum of the gradients, formula f07-heavy. w, g, m (...); the first m is 0.

    Returns:
        w and m, shape of w.

    Source: Polyak (1964), Some methods of speeding up the convergence of iteration methods.
    """
    m = beta * m + g
    return w - rate * m, m


def rmsprop_step(w, g, v, rate: float, beta2: float = 0.99, eps: float = EPS) -> tuple[torch.Tensor, torch.Tensor]:
    """A step divided by the root of the running mean square of the gradients, formula f07-rms. w, g, v (...); the first v is 0.

    Returns:
        w and v, shape of w.
    """
    v = beta2 * v + (1 - beta2) * g**2
    return w - rate * g / (v**0.5 + eps), v


def adam_step(w, g, m, v, t: int, rate: float, beta1: float = 0.9, beta2: float = 0.999, eps: float = EPS):
    """Step t of Adam, formulas f07-first-moment, f07-second-moment, f07-hat and f07-adam. The first m and v are 0.

    Args:
        t: number of the step, the first is 1.

    Returns:
        w, m and v, shape of w.

    Raises:
        ValueError: if t is not 1 or more, for which the corrections divide by zero.

    Source: Kingma and Ba (2014), Adam: A Method for Stochastic Optimization.
    """
    if t < 1:
        raise ValueError(f"steps are counted from 1, got {t}")
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return w - rate * m_hat / (v_hat**0.5 + eps), m, v


def adam_l2_step(w, g, m, v, t: int, rate: float, decay: float, **betas):
    """Adam with an L2 penalty, formula f07-l2: λw is added to the gradient, and divided by √v with it."""
    return adam_step(w, g + decay * w, m, v, t, rate, **betas)


def adamw_step(w, g, m, v, t: int, rate: float, decay: float, **betas):
    """Adam with decoupled weight decay, formula f07-adamw: w shrinks by 1 − ηλ, whatever the gradients.

    Source: Loshchilov and Hutter (2019), Decoupled Weight Decay Regularization.
    """
    step = adam_step(w, g, m, v, t, rate, **betas)
    return step[0] - rate * decay * w, *step[1:]


RULES = ("SGD", "EMA momentum", "heavy ball", "RMSprop", "Adam", "Adam + L2", "AdamW")


def optimiser(rule: str, rate, decay=0.0, beta: float = 0.9) -> Callable:
    """A rule of `RULES` with its memory: `step(w, g)` returns the new w, and `step(w, g, s)` uses the rate times s.

    Args:
        rate: number, or tensor that broadcasts with w.
        decay: λ of the last two rules, likewise.
        beta: of the momentum rules, β₁ of the three Adams.

    Raises:
        ValueError: if there is no such rule.
    """
    if rule not in RULES:
        raise ValueError(f"no rule {rule!r}; there are {', '.join(RULES)}")
    m, v, t = 0.0, 0.0, 0

    def step(w, g, s: float = 1.0):
        nonlocal m, v, t
        t += 1
        if rule == "SGD":
            return sgd(w, g, s * rate)
        if rule == "RMSprop":
            w, v = rmsprop_step(w, g, v, s * rate)
        elif rule in ("EMA momentum", "heavy ball"):
            w, m = (momentum_ema if rule == "EMA momentum" else momentum_heavy)(w, g, m, s * rate, beta)
        elif rule == "AdamW":
            w, m, v = adamw_step(w, g, m, v, t, s * rate, decay, beta1=beta)
        else:
            w, m, v = adam_l2_step(w, g, m, v, t, s * rate, decay if rule == "Adam + L2" else 0.0, beta1=beta)
        return w

    return step


def best_heavy_ball(a: float, b: float) -> tuple[float, float]:
    """η and β of the fastest heavy ball in a bowl with curvatures from a to b, formula f07-polyak.

    Raises:
        ValueError: unless 0 < a ≤ b.

    Source: Polyak (1964), Some methods of speeding up the convergence of iteration methods.
    """
    if not 0 < a <= b:
        raise ValueError(f"curvatures 0 < a ≤ b are needed, got {a} and {b}")
    small, large = math.sqrt(a), math.sqrt(b)
    return 4 / (small + large) ** 2, ((large - small) / (large + small)) ** 2


def bowl(kappa: float, degrees: float) -> torch.Tensor:
    """The matrix A of the bowl wAwᵀ/2 with curvatures 1 and κ, the flat axis turned from the first by an angle.

    Returns:
        (2, 2) float64.

    Raises:
        ValueError: unless κ ≥ 1.
    """
    if kappa < 1:
        raise ValueError(f"a condition number is 1 or more, got {kappa}")
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)  # rows: the flat and the steep axis
    return turn.T @ torch.diag(torch.tensor([1.0, kappa], dtype=torch.float64)) @ turn


def walk(step: Callable, A: torch.Tensor, w: torch.Tensor, steps: int, bottom: torch.Tensor | float = 0.0) -> torch.Tensor:
    """The path of an optimiser in a bowl.

    Args:
        step: as `optimiser` makes it.
        A: (2, 2)
        w: (..., 2) the start.
        bottom: (2,) the lowest point, or 0.

    Returns:
        (steps + 1, ..., 2), the start first.
    """
    path = [w]
    for _ in range(steps):
        path.append(step(path[-1], (path[-1] - bottom) @ A))
    return torch.stack(path)


def clip_global_norm(grads: list[torch.Tensor], longest: float) -> list[torch.Tensor]:
    """min(1, g_max/‖g‖) g for each g of grads, with ‖g‖ over all tensors together, formula f07-clip. Shapes stay.

    Args:
        longest: g_max, the longest length that is let through.

    Raises:
        ValueError: if it is not positive.

    Source: Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural networks.
    """
    if not longest > 0:
        raise ValueError(f"the longest length must be positive, got {longest}")
    norm = math.sqrt(sum(float((g**2).sum()) for g in grads))
    factor = 1.0 if norm <= longest else longest / norm
    return [factor * g for g in grads]


def warmup(t: int, peak: float, warm: int) -> float:
    """The rate at step t: linear to the peak, then level; formula f07-warmup.

    Raises:
        ValueError: if t or warm is below 1.
    """
    if t < 1 or warm < 1:
        raise ValueError(f"steps are counted from 1, got t = {t} and warm = {warm}")
    return peak * min(t / warm, 1.0)


def cosine(t: int, peak: float, warm: int, end: int) -> float:
    """Linear to the peak, then half a cosine down to 0 at the end, and 0 from there on; formulas f07-warmup and f07-cosine.

    Raises:
        ValueError: if the end is not after the warmup; see also `warmup`.

    Source: Loshchilov and Hutter (2017), SGDR.
    """
    if end <= warm:
        raise ValueError(f"the end must come after the warmup, got {end} and {warm}")
    if t <= warm:
        return warmup(t, peak, warm)
    return peak * (1 + math.cos(math.pi * min((t - warm) / (end - warm), 1.0))) / 2


def inverse_sqrt(t: int, peak: float, warm: int) -> float:
    """Linear to the peak, then down with the root of the step: formula f07-root.

    Raises:
        ValueError: see `warmup`.
    """
    return warmup(t, peak, warm) if t <= warm else peak * math.sqrt(warm / t)


def noam(t: int, d_model: int, warm: int) -> float:
    """The original transformer's rate, formula f07-noam: `inverse_sqrt` with the peak 1/√(d_model · warm).

    Raises:
        ValueError: if a number is below 1.

    Source: Vaswani et al. (2017), Attention Is All You Need.
    """
    if min(t, d_model, warm) < 1:
        raise ValueError(f"t, d_model and warm must be 1 or more, got {t}, {d_model} and {warm}")
    return d_model**-0.5 * min(t**-0.5, t * warm**-1.5)


def wsd(t: int, peak: float, warm: int, fall: int, end: int) -> float:
    """Warmup, stable, decay: linear to the peak, level up to step `fall`, linear to 0 at the end; formula f07-wsd.

    Raises:
        ValueError: unless 1 ≤ warm ≤ fall < end; see also `warmup`.

    Source: Hu et al. (2024), MiniCPM.
    """
    if not warm <= fall < end:
        raise ValueError(f"warm ≤ fall < end is needed, got {warm}, {fall} and {end}")
    return min(warmup(t, peak, warm), peak * max(end - t, 0) / (end - fall))
