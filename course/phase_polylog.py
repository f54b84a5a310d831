"""The partition function of a power law of distances, its cumulants, and where its fluctuations peak: chapter ch21.

Distances are 1, 2, …, N with weights r^−γ e^(−λr); `cut` is λ, and 0 without it. Everything is in float64. A `gamma` is a number or a tensor
of any shape (...), which leads the shape of what comes back; through a tensor there are gradients.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from course.decay_law import fit_curve, shares

__all__ = [
    "cumulants",
    "log_partition",
    "log_spread",
    "moments",
    "octave_shares",
    "peak",
    "points",
    "polylog",
    "power_law",
    "profile_cumulants",
    "scaled_mean",
    "scaled_variance",
]

NODES = 16  # points that stand for an octave of distances, or for a piece of it
STEEP = 16  # the largest power of r for which an octave is one piece


# ---------------------------------------------------------------- the sum


def points(N: float, rise: float = 0.0) -> tuple[Tensor, Tensor]:
    """Few distances (M,) and how many each stands for (M,), so that sums over all distances from 1 to N come out to rounding.

    Up to 16 they are the distances themselves. Each octave from there on has 16 of them, of Gauss' rule for equal weights on equidistant
    points, which is exact for polynomials of degree 31; N can be 10^100. Weights that rise like r^`rise` are no such polynomial if `rise`
    is large: for more than 16 an octave is cut into pieces, about `rise` / 16 of them, with 16 points each.

    Raises:
        ValueError: if N is not a whole number from 1 on.
    """
    if not (N >= 1 and math.floor(N) == N):
        raise ValueError(f"the longest distance must be a whole number from 1 on, got {N}")
    distance, count, start = [], [], 1
    while start <= N:
        octave = 1 << (start.bit_length() - 1)
        piece = max(NODES, int(octave * STEEP / rise)) if rise > STEEP else octave
        size = min(piece, 2 * octave - start, int(N) - start + 1)
        if size <= NODES:
            x, w = torch.arange(size, dtype=torch.float64), torch.ones(size, dtype=torch.float64)
        else:
            x, w = _rule(size)
        distance, count, start = [*distance, float(start) + x], [*count, w], start + size
    return torch.cat(distance), torch.cat(count)


@lru_cache(maxsize=2048)
def _rule(size: int) -> tuple[Tensor, Tensor]:
    """Gauss' rule for the sum over 0, 1, …, size − 1: nodes and weights, from the recurrence of the polynomials orthogonal there."""
    n, size = torch.arange(1, NODES, dtype=torch.float64), float(size)
    side = n / 2 * ((1 - n / size) * (1 + n / size) / (4 * n**2 - 1)).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(side, 1) + torch.diag(side, -1))
    return (size - 1) / 2 + size * nodes, size * vectors[0] ** 2


def _rise(gamma: float | Tensor) -> float:
    """The largest power −γ with which weights rise, 0 if they all fall."""
    gamma = torch.as_tensor(gamma)
    return max(0.0, -float(gamma.detach().min())) if gamma.numel() else 0.0


def _log_weights(gamma: float | Tensor, distance: Tensor, cut: float | Tensor) -> Tensor:
    """−γ ln r − λr: gamma (...), distance (M,) → (..., M)."""
    gamma, cut = (torch.as_tensor(x, dtype=torch.float64)[..., None] for x in (gamma, cut))
    return -gamma * distance.log() - cut * distance


def log_partition(gamma: float | Tensor, N: float, cut: float | Tensor = 0.0) -> Tensor:
    """ln Z of the distances 1 to N, formula ch21-partition: gamma (...) → (...).

    With `cut` of the weights r^−γ e^(−λr).

    Raises:
        ValueError: if N is not a whole number from 1 on.
    """
    distance, count = points(N, _rise(gamma))
    return (_log_weights(gamma, distance, cut) + count.log()).logsumexp(dim=-1)


def power_law(gamma: float | Tensor, N: int, cut: float | Tensor = 0.0) -> Tensor:
    """The probabilities of the distances 1 to N, each weight over their sum: gamma (...) → (..., N).

    With `cut` of the weights r^−γ e^(−λr).

    Raises:
        ValueError: if N is not positive.
    """
    if N < 1:
        raise ValueError(f"the longest distance must be 1 or more, got {N}")
    return _log_weights(gamma, torch.arange(1, N + 1, dtype=torch.float64), cut).softmax(dim=-1)


def octave_shares(gamma: float | Tensor, octaves: int) -> Tensor:
    """Share of the weight in each octave of distances, 1, 2–3, 4–7, …, up to 2^octaves − 1: gamma (...) → (..., octaves).

    Raises:
        ValueError: if there is no octave.
    """
    if octaves < 1:
        raise ValueError(f"there must be an octave or more, got {octaves}")
    distance, count = points(2**octaves - 1, _rise(gamma))
    p = (_log_weights(gamma, distance, 0.0) + count.log()).softmax(dim=-1)  # (..., M)
    member = distance.log2().floor().long() == torch.arange(octaves)[:, None]  # (octaves, M)
    return p @ member.T.double()


# ---------------------------------------------------------------- moments and cumulants of ln r


def moments(gamma: float | Tensor, N: float, order: int = 2, cut: float | Tensor = 0.0) -> Tensor:
    """E[ln r], E[(ln r)²], … up to the power `order`, of the distances 1 to N, with `cut` also cut off: gamma (...) → (..., order).

    Raises:
        ValueError: if N is not a whole number from 1 on.
    """
    distance, count = points(N, _rise(gamma))
    p = (_log_weights(gamma, distance, cut) + count.log()).softmax(dim=-1)  # (..., M)
    return torch.stack([(p * distance.log() ** k).sum(dim=-1) for k in range(1, order + 1)], dim=-1)


def cumulants(gamma: float | Tensor, N: float, order: int = 2, cut: float | Tensor = 0.0) -> Tensor:
    """κ₁ = E[ln r], κ₂ = Var[ln r], κ₃, … of the distances 1 to N, formulas ch21-mean and ch21-variance: gamma (...) → (..., order).

    κ_k, up to k = `order`, is (−1)^k times the k-th derivative of ln Z by γ, with `cut` that of the sum which is cut off.

    Raises:
        ValueError: if N is not a whole number from 1 on.
    """
    distance, count = points(N, _rise(gamma))
    return _cumulants((_log_weights(gamma, distance, cut) + count.log()).softmax(dim=-1), distance.log(), order)


def _cumulants(p: Tensor, x: Tensor, order: int) -> Tensor:
    """Cumulants of x (M,) under p (..., M), from moments about the mean: (..., order)."""
    mean = (p * x).sum(dim=-1, keepdim=True)  # (..., 1)
    about = [(p * (x - mean) ** k).sum(dim=-1) for k in range(order + 1)]
    about[1:2] = [torch.zeros_like(about[0])]
    found = [torch.zeros_like(about[0])] * 2
    for k in range(2, order + 1):
        found.append(about[k] - sum(math.comb(k - 1, j - 1) * found[j] * about[k - j] for j in range(2, k)))
    return torch.stack([mean[..., 0], *found[2:]][:order], dim=-1)


def profile_cumulants(profile: Tensor, low: int, high: int, order: int = 2) -> Tensor:
    """Cumulants of ln r under a measured profile, its shares in a window of distances: profile (..., D + 1) → (..., order).

    Raises:
        ValueError: if the window is not in the profile.
    """
    p = shares(profile, low, high)  # (..., R)
    return _cumulants(p, torch.arange(low, high + 1, dtype=torch.float64).log(), order)


def log_spread(profile: Tensor, low: int, high: int) -> dict[str, Tensor]:
    """How widely measured weight spreads over ln r, beside the power law with the same mean: profile (..., D + 1) → (...) each.

    `exponent` is that power law's, the likeliest one; `variance` is Var[ln r] of the profile, and `ratio` what it is over the power
    law's, formula ch21-excess.

    Raises:
        ValueError: if the window is not in the profile.
    """
    exponent = fit_curve(profile, "power law", low, high)["eta"][..., 0]  # (...)
    log_distance = torch.arange(low, high + 1, dtype=torch.float64).log()
    of_law = _cumulants((-exponent[..., None] * log_distance).softmax(dim=-1), log_distance, 2)[..., 1]
    variance = profile_cumulants(profile, low, high)[..., 1]
    return {"exponent": exponent, "variance": variance, "ratio": variance / of_law}


# ---------------------------------------------------------------- without end


def polylog(gamma: float | Tensor, z: float) -> Tensor:
    """Li_γ(z) = Σ z^r r^−γ over all distances, for 0 ≤ z ≤ 1, formula ch21-polylog: gamma (...) → (...).

    At z = 1 it is Riemann's zeta of γ, infinite for γ ≤ 1.

    Raises:
        ValueError: if z is not from 0 to 1.
    """
    if not 0 <= z <= 1:
        raise ValueError(f"z must be from 0 to 1, got {z}")
    gamma = torch.as_tensor(gamma, dtype=torch.float64)
    if z == 0:
        return torch.zeros_like(gamma)
    if z < 1:
        cut = -math.log(z)
        far = 60 + 4 * max(0.0, float(-gamma.min()))  # from here on, in units of 1/λ, nothing is left
        return log_partition(gamma, math.ceil(far * max(1.0, -math.log(cut)) / cut), cut).exp()
    N = 2**20
    rest = N ** (1 - gamma) / (gamma - 1) - N**-gamma / 2  # what is beyond N, by Euler and Maclaurin
    return torch.where(gamma > 1, log_partition(gamma, N).exp() + rest, torch.inf)


# ---------------------------------------------------------------- the peak, and the curve that all N share


def peak(N: float) -> tuple[float, float]:
    """The γ at which Var[ln r] of the distances 1 to N is largest, and this variance: formula ch21-peak.

    There the third cumulant, minus the slope of the variance, changes its sign; the place is found by halving.

    Raises:
        ValueError: if N is not a whole number from 2 on.
    """
    if N < 2:
        raise ValueError(f"one distance has no spread: N must be 2 or more, got {N}")
    low, high = -1.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        if cumulants(middle, N, 3)[2] < 0:
            low = middle
        else:
            high = middle
    return middle, float(cumulants(middle, N)[1])


def scaled_mean(u: float | Tensor) -> Tensor:
    """E[ln r] / ln N of a continuum of distances, by u = (γ − 1) ln N, formula ch21-collapse: u (...) → (...)."""
    u = torch.as_tensor(u, dtype=torch.float64)
    near = u.abs() < 0.1
    v = torch.where(near, 1.0, u)
    return torch.where(near, 0.5 - u / 12 + u**3 / 720 - u**5 / 30240, 1 / v - 1 / torch.expm1(v))


def scaled_variance(u: float | Tensor) -> Tensor:
    """Var[ln r] / (ln N)² of a continuum of distances, by u = (γ − 1) ln N, formula ch21-collapse: u (...) → (...)."""
    u = torch.as_tensor(u, dtype=torch.float64)
    near = u.abs() < 0.1
    v = torch.where(near, 1.0, u)
    return torch.where(near, 1 / 12 - u**2 / 240 + u**4 / 6048, 1 / v**2 - 1 / (2 * torch.sinh(v / 2)) ** 2)
