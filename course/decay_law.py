"""How attention falls with distance: fits, their rivals and their nulls: chapter ch15.

A profile has the mean weight at each distance, from 0 on, as `course.attention_maps.distance_profile` makes it. Fits look at a window
of distances, from `low` to `high`, R of them.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor

__all__ = [
    "CURVES",
    "PUBLIC",
    "atlas_answer",
    "budgets",
    "decay_fit",
    "even_profile",
    "fit_curve",
    "gains",
    "gamma_pade",
    "maxent",
    "multipliers",
    "permuted_keys",
    "shares",
    "small_models",
]

CURVES = {
    "flat": (None,),
    "power law": (None,),
    "exponential": (None,),
    "stretched exponential": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "log-normal": (None,),
    "truncated power law": (None,),
    "broken power law": (1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6),
}
"""The rivals, each with the shapes that it tries: a power of the distance, or where it breaks, as a share of ln(high / low)."""

PUBLIC = (
    ("pythia-1.4b", "text", 10_000, 0.7051),
    ("pythia-14m", "random", 10_000, 1.0037),
    ("pythia-160m", "random", 10_000, 1.0171),
    ("pythia-1b", "text", 10_000, 0.9311),
    ("pythia-2.8b", "text", 10_000, 0.6742),
    ("pythia-31m", "text", 10_000, 1.235),
    ("pythia-410m", "text", 10_000, 1.0219),
    ("pythia-70m", "text", 10_000, 0.7476),
    ("gemma-2-9b-it", "text", 10_000, 0.6276),
    ("gemma-2-9b-it", "random", 10_000, 1.1348),
    ("Llama-2-7b", "text", 10_000, 0.2871),
    ("Llama-2-7b", "random", 10_000, 0.8266),
    ("Llama-3-8B", "text", 500_000, 1.0455),
    ("Llama-3-8B", "random", 500_000, 0.7589),
    ("Mistral-7B-v0.1", "text", 10_000, 1.0608),
    ("Mistral-7B-v0.1", "random", 10_000, 0.8296),
    ("Qwen2.5-7B", "text", 1_000_000, 0.9967),
    ("Qwen2.5-0.5B", "random", 1_000_000, 0.7992),
    ("SmolLM2-135M", "random", 10_000, 0.9019),
    ("SmolLM2-360M", "random", 10_000, 0.9192),
)
"""The rows of a public table that state a base: model, kind of tokens, base, exponent (Marin 2026, data/master_gamma_results.json).

All exponents but those of SmolLM2 and Qwen2.5-0.5B are the slopes at the seven distances from 30 to 2,000 in data/e4_gamma of the same
repository, where the two SmolLM2 have the base 100,000."""


# ---------------------------------------------------------------- a line through logarithms


def decay_fit(profile: Tensor, low: int = 4, high: int | None = None) -> dict[str, Tensor]:
    """Exponent of a power law and rate of an exponential that fit a profile of distances: (..., D + 1) → (...) each.

    Least squares of the logarithm of the mean weight in bins of about half an octave, equally wide in the logarithm of the distance,
    so that each scale counts the same: formula ch15-slope. `power` is a in weight ∝ distance^−a, `rate` is b in weight ∝ e^(−b distance),
    with the shares of the spread that each explains, `R2 of the power law` and `R2 of the exponential`. A bin is placed at the
    geometric mean of its distances.

    Args:
        low, high: first and last distance of the fit; high is D / 2 without it.

    Raises:
        ValueError: if there are fewer than four bins between them, or low is not positive.
    """
    D = profile.shape[-1] - 1
    high = D // 2 if high is None else min(high, D)
    n = round(2 * math.log2((high + 1) / low)) if 1 <= low <= high else 0
    edges = sorted({round(low * ((high + 1) / low) ** (i / n)) for i in range(n + 1)} if n else ())
    if len(edges) < 5:
        raise ValueError(f"distances from {low} to {high} make {max(len(edges) - 1, 0)} bins of half an octave; a fit needs four")
    at, means = [], []
    for start, end in pairwise(edges):
        at.append(torch.arange(start, end, dtype=torch.float64).log().mean())
        means.append(profile[..., start:end].mean(dim=-1))
    y = torch.stack(means, dim=-1).clamp_min(1e-12).log().double()  # (..., bins)
    log_distance = torch.stack(at)  # (bins,)
    power, power_r2 = _line(log_distance, y)
    rate, rate_r2 = _line(log_distance.exp(), y)
    return {"power": -power, "rate": -rate, "R2 of the power law": power_r2, "R2 of the exponential": rate_r2}


def _line(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and R² of the line that fits y (..., n) over x (n,)."""
    x, centred = x - x.mean(), y - y.mean(dim=-1, keepdim=True)
    slope = (x * centred).sum(dim=-1) / x.square().sum()
    rest = (centred - slope[..., None] * x).square().sum(dim=-1)
    total = centred.square().sum(dim=-1)
    return slope, torch.where(total > 0, 1 - rest / total, torch.ones_like(total))


# ---------------------------------------------------------------- maximum likelihood, and maximum entropy


def shares(profile: Tensor, low: int, high: int) -> Tensor:
    """The weight at each distance of a window as a share of all in the window: profile (..., D + 1) → (..., R), float64.

    Raises:
        ValueError: if the window is not in the profile.
    """
    if not 1 <= low < high < profile.shape[-1]:
        raise ValueError(
            f"a window needs 1 ≤ low < high, and the profile ends at distance {profile.shape[-1] - 1}: got {low}, {high}"
        )
    p = profile[..., low : high + 1].double()
    return p / p.sum(dim=-1, keepdim=True)


def budgets(curve: str, distance: Tensor, shape: float | None = None) -> Tensor:
    """The functions of the distance whose means a curve keeps: distance (R,) → (K, R).

    The logarithm of every curve of `CURVES` is minus a sum of them, each times a multiplier, less a constant that makes shares.

    Raises:
        ValueError: if the curve is unknown.
    """
    r = distance.double()
    log = r.log()
    if curve == "broken power law":
        break_at = log[0] + shape * (log[-1] - log[0])
        return torch.stack([log, (log - break_at).clamp_min(0)])
    known = {
        "flat": (),
        "power law": (log,),
        "exponential": (r,),
        "stretched exponential": (r ** (shape or 1.0),),
        "log-normal": (log, log.square()),
        "truncated power law": (log, r),
    }
    if curve not in known:
        raise ValueError(f"no curve {curve!r}; there are {', '.join(CURVES)}")
    return torch.stack(known[curve]) if known[curve] else r.new_zeros(0, len(r))


def multipliers(means: Tensor, budget: Tensor, steps: int = 100) -> Tensor:
    """η for which shares ∝ e^(−η · budget) have the given means: means (..., K), budget (K, R) → (..., K), float64.

    The same shares are the likeliest of this form for any profile with these means, and of all with these means they have the largest
    entropy: formulas ch15-likelihood and ch15-maxent. Newton's method, with steps halved until the convex loss falls.
    """
    if not len(budget):
        return means.new_zeros(means.shape)
    centre, width = budget.mean(dim=1), budget.std(dim=1, correction=0)
    f, means = ((budget.T - centre) / width).T, (means - centre) / width  # (K, R), (..., K)
    eta = torch.zeros_like(means)
    loss = lambda eta: (eta * means).sum(dim=-1) + (-eta @ f).logsumexp(dim=-1)  # noqa: E731
    for _ in range(steps):
        q = (-eta @ f).softmax(dim=-1)  # (..., R)
        now = q @ f.T  # (..., K)
        spread = torch.einsum("...r,kr,lr->...kl", q, f, f) - now[..., :, None] * now[..., None, :]
        step = torch.linalg.solve(spread + 1e-13 * torch.eye(len(f), dtype=f.dtype), now - means)  # (..., K)
        falls, at, start = ((now - means) * step).sum(dim=-1), torch.ones_like(eta[..., :1]), loss(eta)
        for _ in range(40):
            short = loss(eta + at * step) > start - 1e-4 * at[..., 0] * falls + 1e-14
            if not short.any():
                break
            at = torch.where(short[..., None], at / 2, at)
        eta = eta + at * step
        if step.abs().max() < 1e-10:
            break
    return eta / width


def maxent(budget: Tensor, means: Tensor) -> Tensor:
    """Of all shares (R,) with the means (K,) of budget (K, R) those with the largest entropy: formula ch15-maxent.

    Raises:
        ValueError: if a mean is not between the smallest and the largest value of its row. That several means can hold at once is
            not tested.
    """
    budget, means = budget.double(), means.double()
    if not ((means > budget.amin(dim=1)) & (means < budget.amax(dim=1))).all():
        raise ValueError("no shares that are all positive have these means")
    return (-multipliers(means, budget) @ budget).softmax(dim=-1)


def fit_curve(profile: Tensor, curve: str, low: int, high: int) -> dict:
    """The likeliest of the curves called `curve` for profiles (..., D + 1).

    Returns:
        `log_q`, logarithms of its shares (..., R); `eta`, multipliers (..., K), that of the power law is its exponent; `shape` (...),
        the best of the curve's shapes, nan where it has none. A log-normal that would bend up, and a cut-off that would grow, are
        power laws.

    Raises:
        ValueError: if the curve is unknown or the window is not in the profile.
    """
    p = shares(profile, low, high)
    distance = torch.arange(low, high + 1, dtype=torch.float64)
    found = None
    for shape in CURVES.get(curve, (None,)):
        budget = budgets(curve, distance, shape)
        eta = multipliers(p @ budget.T, budget)
        if curve in ("log-normal", "truncated power law"):
            plain = multipliers(p @ budget[:1].T, budget[:1])
            eta = torch.where(eta[..., 1:] >= 0, eta, torch.cat([plain, torch.zeros_like(plain)], dim=-1))
        log_q = (-eta @ budget).log_softmax(dim=-1)  # (..., R)
        likelihood = (p * log_q).sum(dim=-1)
        here = {"log_q": log_q, "eta": eta, "shape": torch.full_like(likelihood, math.nan if shape is None else shape)}
        if found is None:
            found, best = here, likelihood
            continue
        better = likelihood > best
        best = torch.where(better, likelihood, best)
        found = {k: torch.where(better if k == "shape" else better[..., None], here[k], found[k]) for k in found}
    return found


def gains(train: Tensor, test: Tensor, low: int, high: int, curves: tuple[str, ...] = tuple(CURVES)) -> dict[str, Tensor]:
    """Held-out gain of each curve in nats, formula ch15-gain: fitted to train (..., D + 1), scored on test (..., D + 1) → (...) each.

    It is the mean of the logarithm of the curve's shares, by the shares of the test, above that of the flat curve. `profile itself`
    takes the training profile for the curve: what a description that is free at every distance gains.

    Raises:
        ValueError: if a curve is unknown or the window is not in the profiles.
    """
    p = shares(test, low, high)
    found = {curve: fit_curve(train, curve, low, high)["log_q"] for curve in curves}
    found["profile itself"] = shares(train, low, high).clamp_min(1e-12).log()
    return {curve: (p * log_q).sum(dim=-1) + math.log(p.shape[-1]) for curve, log_q in found.items()}


# ---------------------------------------------------------------- nulls, and a closed form


def even_profile(T: int) -> Tensor:
    """Mean weight at distances 0 … T − 1 of even causal attention, over all queries that have the distance: (T,), float64.

    Formula ch15-null. Query i, counted from 1, gives 1/i to each of its i keys.

    Raises:
        ValueError: if T is not positive.
    """
    if T < 1:
        raise ValueError(f"T must be positive, got {T}")
    inverse = 1 / torch.arange(1, T + 1, dtype=torch.float64)
    return inverse.flip(0).cumsum(0).flip(0) / torch.arange(T, 0, -1)


def permuted_keys(weights: Tensor, first: int, generator: torch.Generator) -> Tensor:
    """The weights of each query on the keys from `first` on in a random order, so that nothing is left of distance.

    weights (..., T, T) → (..., T, T); the first keys and those that a query may not read keep theirs.
    """
    T = weights.shape[-1]
    noise = torch.rand(weights.shape, generator=generator)
    place = torch.arange(T)
    free = (place[None, :] >= first) & (place[None, :] <= place[:, None])  # (T, T), what a query may exchange
    order = torch.where(free, noise, place + 2.0).argsort(dim=-1)  # those that are free come first, in a random order
    target = torch.where(free, place.float() - T, place + 2.0).argsort(dim=-1)  # the same places, in their own order
    return torch.empty_like(weights).scatter_(-1, target.expand_as(order), weights.gather(-1, order))


def gamma_pade(theta: float, T: float) -> float:
    """(2θ − T√2) / (2θ + T√2), formula ch15-pade, for a base θ and a length T.

    Raises:
        ValueError: if one of them is not positive.
    """
    if theta <= 0 or T <= 0:
        raise ValueError(f"base and length must be positive, got {theta} and {T}")
    return (2 * theta - T * math.sqrt(2)) / (2 * theta + T * math.sqrt(2))


# ---------------------------------------------------------------- small models of the γ atlas


def small_models() -> dict[tuple[int, int], list[float]]:
    """Exponents of sixty models by base and length, in which alone they differ, five seeds of each.

    They are a part of the γ atlas, chapter ch16: `course.gamma_atlas.BASE` says what they have in common. Each is read at the length of
    its training; the exponent is that of the mean over heads at distances 4 to 128.

    Raises:
        FileNotFoundError: if the atlas is not there.
    """
    from course import gamma_atlas  # which builds on this module

    same = {name: value for name, value in gamma_atlas.BASE.items() if name not in ("theta", "T")}
    found: dict[tuple[int, int], list[float]] = {}
    for row in gamma_atlas.atlas_table():
        if all(row[name] == value for name, value in same.items()):
            found.setdefault((int(row["theta"]), row["T"]), []).append(row["gamma"])
    return {setting: found[setting] for setting in sorted(found)}


def atlas_answer(question: str) -> dict:
    """What the γ atlas, chapter ch16, answers to a question by its name: `mean`, and `low` and `high` end of the interval, and more.

    The questions are in `course.gamma_atlas.QUESTIONS`. The interval is widened for the number of comparisons that were planned.

    Raises:
        ValueError: if there is no such question.
    """
    from course import gamma_atlas  # which builds on this module

    asked = {each.name: each for each in gamma_atlas.QUESTIONS}
    if question not in asked:
        raise ValueError(f"no question {question!r}; there are {', '.join(asked)}")
    return gamma_atlas.answer(gamma_atlas.atlas_table(read=None), asked[question])
