"""Other right answers and named wrong answers of the exercises of ch21."""

import math

import torch

from autograder.answers import cell, equivalent, right, wrong
from course import decay_law

# ---------------------------------------------------------------- ch21.partition


@right("ch21.partition")
def largest_taken_out(gamma, N):
    scores = -gamma * torch.linspace(1, N, N, dtype=torch.float64).log()
    top = scores.max()
    return top + (scores - top).exp().sum().log()


@wrong(
    "ch21.partition",
    "The weights were added before the logarithm: for steep exponents they leave the range of float64.",
    see="one-sum-that-knows-the-moments",
)
def plain_sum(gamma, N):
    return (torch.arange(1, N + 1, dtype=torch.float64) ** -gamma).sum().log()


@wrong("ch21.partition", "The last distance is missing: the sum goes up to N, N included.", see="one-sum-that-knows-the-moments")
def last_distance_missing(gamma, N):
    return (-gamma * torch.arange(1, max(N, 2), dtype=torch.float64).log()).logsumexp(dim=0)


@wrong(
    "ch21.partition",
    "The weights grow with distance instead of falling: mind the sign of γ.",
    see="one-sum-that-knows-the-moments",
)
def sign_of_gamma(gamma, N):
    return (gamma * torch.arange(1, N + 1, dtype=torch.float64).log()).logsumexp(dim=0)


@wrong("ch21.partition", "That is the sum itself; its logarithm is asked for.", see="one-sum-that-knows-the-moments")
def without_the_logarithm(gamma, N):
    return (torch.arange(1, N + 1, dtype=torch.float64) ** -gamma).sum()


@wrong(
    "ch21.partition",
    "The number was cut off from γ, so that nothing can be differentiated.",
    see="one-sum-that-knows-the-moments",
)
def gradient_cut(gamma, N):
    return (-gamma.detach() * torch.arange(1, N + 1, dtype=torch.float64).log()).logsumexp(dim=0)


@wrong(
    "ch21.partition",
    "Where a plain sum is infinite another number is chosen, but gradients go through both branches and are not a number.",
    see="one-sum-that-knows-the-moments",
)
def mended_by_where(gamma, N):
    r = torch.arange(1, N + 1, dtype=torch.float64)
    plain = (r**-gamma).sum().log()
    return torch.where(plain.isfinite(), plain, (-gamma * r.log()).logsumexp(dim=0))


equivalent("ch21.partition", "`return (-gamma * distances.log()).logsumexp(dim=-1…", "there is one axis")


# ---------------------------------------------------------------- ch21.polylog


@right("ch21.polylog")
def by_halving(gamma, z, rest):
    bound = lambda m: z ** (m + 1) / (1 - z) * (m + 1.0) ** -gamma  # noqa: E731
    low, high = 0, 1
    while bound(high) > rest:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= rest else (middle, high)
    return math.fsum(z**r * r**-gamma for r in range(1, high + 1)), high


@wrong(
    "ch21.polylog",
    "You stopped at the first small term. Near z = 1 many terms of that size are still to come, and together they are large.",
    see="what-goes-wrong-in-practice",
)
def stops_at_a_small_term(gamma, z, rest):
    total, M = z, 1
    while z ** (M + 1) * (M + 1) ** -gamma > rest:
        M += 1
        total += z**M * M**-gamma
    return float(total), M


@wrong(
    "ch21.polylog",
    "One term too many is counted: the bound after M terms begins at M + 1.",
    see="without-a-longest-distance",
)
def bound_begins_at_m(gamma, z, rest):
    total, M = z, 1
    while z**M / (1 - z) * M**-gamma > rest:
        M += 1
        total += z**M * M**-gamma
    return float(total), M


@wrong("ch21.polylog", "z is missing from the terms: that is a sum of the zeta function.", see="without-a-longest-distance")
def zeta_terms(gamma, z, rest):
    total, M = 1.0, 1
    while z ** (M + 1) / (1 - z) * (M + 1) ** -gamma > rest:
        M += 1
        total += M**-gamma
    return float(total) if z else 0.0, M


@wrong("ch21.polylog", "The law is missing from the terms: that is a geometric series.", see="without-a-longest-distance")
def geometric_terms(gamma, z, rest):
    total, M = z, 1
    while z ** (M + 1) / (1 - z) * (M + 1) ** -gamma > rest:
        M += 1
        total += z**M
    return float(total), M


@wrong(
    "ch21.polylog",
    "The bound was used without the law, so more terms are added than it asks for.",
    see="without-a-longest-distance",
)
def bound_of_a_geometric_series(gamma, z, rest):
    total, M = z, 1
    while z ** (M + 1) / (1 - z) > rest:
        M += 1
        total += z**M * M**-gamma
    return float(total), M


@wrong(
    "ch21.polylog",
    "A bound that is equal to rest is at most rest: nothing more is to be added.",
    see="without-a-longest-distance",
)
def bound_must_be_below(gamma, z, rest):
    total, M = z, 1
    while z ** (M + 1) / (1 - z) * (M + 1) ** -gamma >= rest:
        M += 1
        total += z**M * M**-gamma
    return float(total), M


@wrong("ch21.polylog", "A fixed number ends your loop before the bound does.", see="without-a-longest-distance")
def at_most_ten_thousand_terms(gamma, z, rest):
    total, M = z, 1
    while z ** (M + 1) / (1 - z) * (M + 1) ** -gamma > rest and M < 10_000:
        M += 1
        total += z**M * M**-gamma
    return float(total), M


# ---------------------------------------------------------------- ch21.response

_SYMBOLS = 'g, a = sympy.symbols("g a", positive=True)\n'
right(
    "ch21.response",
    cell(
        _SYMBOLS
        + "log_z = (1 - g) * sympy.log(a) - sympy.log(g - 1)\nmean = -sympy.diff(log_z, g)\n"
        + "answer_to_gamma = sympy.diff(log_z, g, 2)\nthird = -sympy.diff(log_z, g, 3)"
    ),
)
wrong(
    "ch21.response",
    cell(_SYMBOLS + "mean = sympy.log(a) + 1 / (g - 1)\nanswer_to_gamma = 1 / (g - 1)\nthird = 2 / (g - 1) ** 3"),
    "You gave the mean's own distance from the start as its response: it has to be differentiated once more.",
    see="how-far-and-how-strongly-it-answers",
)
wrong(
    "ch21.response",
    cell(_SYMBOLS + "mean = 1 / (g - 1)\nanswer_to_gamma = 1 / (g - 1) ** 2\nthird = 2 / (g - 1) ** 3"),
    "That is the mean of a law which starts at 1; where it starts moves the mean.",
    see="how-far-and-how-strongly-it-answers",
)
wrong(
    "ch21.response",
    cell(_SYMBOLS + "mean = sympy.log(a) + 1 / (g - 1)\nanswer_to_gamma = 1 / (g - 1) ** 2\nthird = -2 / (g - 1) ** 3"),
    "The sign of the third cumulant: the long tail is on the far side. Odd derivatives of ln Z are cumulants with the sign turned.",
    see="one-sum-that-knows-the-moments",
)
wrong(
    "ch21.response",
    cell(_SYMBOLS + "mean = sympy.log(a) + 1 / (g - 1)\nanswer_to_gamma = -1 / (g - 1) ** 2\nthird = 2 / (g - 1) ** 3"),
    "A variance is never negative: the mean falls as the exponent grows, and the minus in the question makes that positive.",
    see="one-sum-that-knows-the-moments",
)
wrong(
    "ch21.response",
    cell(_SYMBOLS + "mean = sympy.log(a) + 1 / (g - 1)\nanswer_to_gamma = 1 / (g - 1) ** 2\nthird = 1 / (g - 1) ** 3"),
    "A power was differentiated without its factor.",
    see="how-far-and-how-strongly-it-answers",
)
equivalent("ch21.response", "`g, a = sympy.symbols(…", "letters are told apart by their names")


# ---------------------------------------------------------------- ch21.scaled


@right("ch21.scaled")
def by_exponentials(u):
    x = u.abs()
    safe = torch.where(x < 0.05, torch.ones_like(x), x)
    fraction = (-safe).exp() / torch.expm1(-safe) ** 2
    return torch.where(x < 0.05, 1 / 12 - x**2 / 240 + x**4 / 6048, safe**-2 - fraction)


@wrong(
    "ch21.scaled",
    "The formula as it is written: near 0 it subtracts two huge numbers that are nearly equal, and no digits are left.",
    see="one-curve-for-all-lengths",
)
def as_it_is_written(u):
    return 1 / u**2 - 1 / (4 * torch.sinh(u / 2) ** 2)


@wrong(
    "ch21.scaled",
    "Only u = 0 itself was mended. The digits are lost long before.",
    see="one-curve-for-all-lengths",
)
def only_zero_mended(u):
    safe = torch.where(u == 0, torch.ones_like(u), u)
    return torch.where(u == 0, torch.full_like(u, 1 / 12), 1 / safe**2 - 1 / (2 * torch.sinh(safe / 2)) ** 2)


@wrong(
    "ch21.scaled",
    "The limit at 0 was used for a whole stretch around it, where the curve already bends.",
    see="one-curve-for-all-lengths",
)
def flat_near_zero(u):
    near = u.abs() < 0.1
    safe = torch.where(near, torch.ones_like(u), u)
    return torch.where(near, torch.full_like(u, 1 / 12), 1 / safe**2 - 1 / (2 * torch.sinh(safe / 2)) ** 2)


@wrong("ch21.scaled", "The series was used too far out: its first terms are good near 0 only.", see="one-curve-for-all-lengths")
def series_too_far_out(u):
    near = u.abs() < 1
    safe = torch.where(near, torch.ones_like(u), u)
    return torch.where(near, 1 / 12 - u**2 / 240 + u**4 / 6048, 1 / safe**2 - 1 / (2 * torch.sinh(safe / 2)) ** 2)


@wrong("ch21.scaled", "The 4 under the fraction is missing.", see="one-curve-for-all-lengths")
def without_the_four(u):
    near = u.abs() < 0.1
    safe = torch.where(near, torch.ones_like(u), u)
    return torch.where(near, 1 / 12 - u**2 / 240 + u**4 / 6048, 1 / safe**2 - 1 / torch.sinh(safe / 2) ** 2)


@wrong(
    "ch21.scaled",
    "Negative u was taken for small: the test for nearness needs the absolute value.",
    see="one-curve-for-all-lengths",
)
def negative_taken_for_small(u):
    near = u < 0.1
    safe = torch.where(near, torch.ones_like(u), u)
    return torch.where(near, 1 / 12 - u**2 / 240 + u**4 / 6048, 1 / safe**2 - 1 / (2 * torch.sinh(safe / 2)) ** 2)


equivalent("ch21.scaled", "`near = u.abs() <= …`", "around 0.1 series and formula are both right to eight digits")
equivalent("ch21.scaled", "`near = u.abs() < …`", "around 0.1 series and formula are both right to eight digits")
equivalent(
    "ch21.scaled", "`return torch.where(near, 1 / 12 - u ** 2 / 240 + u ** 4 / 604…", "below 0.1 the change is a part in 10¹⁰"
)


@wrong(
    "ch21.scaled", "Numbers are taken row by row, but u may have any number of axes, or none.", see="one-curve-for-all-lengths"
)
def row_by_row(u):
    def one(x):
        if abs(x) < 0.1:
            return 1 / 12 - x**2 / 240 + x**4 / 6048
        return 1 / x**2 - (0 if abs(x) > 600 else 1 / (2 * math.sinh(x / 2)) ** 2)

    if u.dim() == 1:
        return torch.tensor([one(x) for x in u.tolist()], dtype=u.dtype)
    return torch.tensor([[one(x) for x in row] for row in u.tolist()], dtype=u.dtype)


# ---------------------------------------------------------------- ch21.peak

equivalent("ch21.peak", "`low, high = (…", "an interval that holds the peak may be longer")
equivalent("ch21.peak", "`p = (-gamma * log_r).softmax(dim=-1…", "there is one axis")
equivalent("ch21.peak", "`for _ in range(…", "50 halvings are more than the nine digits need")


@right("ch21.peak")
def by_a_root_of_the_skew(N):
    from scipy.optimize import brentq

    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()

    def cumulant(gamma, power):
        p = torch.exp(-gamma * (log_r - log_r.mean()))
        p = p / p.sum()
        return float(p @ (log_r - p @ log_r) ** power)

    place = brentq(lambda gamma: cumulant(gamma, 3), -0.6, 1.1, xtol=1e-12)
    return float(place), cumulant(place, 2)


@wrong("ch21.peak", "The peak of a continuum is at 1. Whole distances move it.", see="where-the-peak-is")
def always_at_one(N):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-log_r).softmax(dim=0)
    return 1.0, float((p * (log_r - (p * log_r).sum()) ** 2).sum())


@wrong("ch21.peak", "Place and height are those of the continuum; whole distances have others.", see="where-the-peak-is")
def of_the_continuum(N):
    return 1.0, math.log(N) ** 2 / 12


@wrong(
    "ch21.peak",
    "The leading terms for large N were taken for the values: at these lengths they are not good enough.",
    see="where-the-peak-is",
)
def leading_terms(N):
    return 1 - 5.63 / math.log(N) ** 3, math.log(N) ** 2 / 12 + 0.5772156649 * math.log(N) / 6


@wrong("ch21.peak", "The best of a grid of exponents is known only to within the grid's step.", see="where-the-peak-is")
def best_of_a_grid(N):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()

    def variance(gamma):
        p = (-gamma * log_r).softmax(dim=0)
        return float((p * (log_r - (p * log_r).sum()) ** 2).sum())

    place = max((i / 100 for i in range(-50, 101)), key=variance)
    return place, variance(place)


@wrong(
    "ch21.peak",
    "That is the peak of γ² times the variance, the heat capacity, which has its maximum elsewhere.",
    see="what-goes-wrong-in-practice",
)
def peak_of_the_heat_capacity(N):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()

    def central(gamma, power):
        p = (-gamma * log_r).softmax(dim=0)
        return float((p * (log_r - (p * log_r).sum()) ** power).sum())

    low, high = 0.5, 6.0
    for _ in range(50):
        middle = (low + high) / 2
        rises = 2 * central(middle, 2) - middle * central(middle, 3) > 0
        low, high = (middle, high) if rises else (low, middle)
    return middle, middle**2 * central(middle, 2)


@wrong("ch21.peak", "The spread of the distance was made largest; asked for is that of its logarithm.", see="where-the-peak-is")
def spread_of_the_distance(N):
    r = torch.arange(1, N + 1, dtype=torch.float64)
    log_r = r.log()

    def slope(gamma):
        p = (-gamma * log_r).softmax(dim=0)
        mean = (p * r).sum()
        return float((p * (r - mean) ** 2 * ((p * log_r).sum() - log_r)).sum())

    low, high = -8.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    p = (-middle * log_r).softmax(dim=0)
    return middle, float((p * (r - (p * r).sum()) ** 2).sum())


@wrong(
    "ch21.peak",
    "Heights were compared. At the top they agree to all digits over a stretch that is wider than the place may be off.",
    see="where-the-peak-is",
)
def by_comparing_heights(N):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()

    def variance(gamma):
        p = (-gamma * log_r).softmax(dim=0)
        return float((p * (log_r - (p * log_r).sum()) ** 2).sum())

    low, high = -0.5, 1.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if variance(left) < variance(right) else (low, right)
    return low, variance(low)


# ---------------------------------------------------------------- ch21.guess

right("ch21.guess", "larger")
right("ch21.guess", "smaller")
wrong("ch21.guess", "a little", "Not one of the three answers.", see="the-experiment-measured-profiles")
wrong("ch21.guess", 0.15, "A number is no answer here: choose one of the three texts.", see="the-experiment-measured-profiles")


# ---------------------------------------------------------------- ch21.spread


@right("ch21.spread")
def by_a_root(profile, low, high):
    from scipy.optimize import brentq

    log_r = torch.arange(low, high + 1).double().log()
    p = profile[low : high + 1].double() / profile[low : high + 1].double().sum()

    def law(gamma):
        return (-gamma * log_r).softmax(dim=0)

    gamma = brentq(lambda x: float((law(x) - p) @ log_r), -60, 60, xtol=1e-13)
    spread = [float(x @ log_r**2 - (x @ log_r) ** 2) for x in (p, law(gamma))]
    return spread[0] / spread[1] - 1


@wrong(
    "ch21.spread",
    "You took the least-squares slope of bins. The law that is asked for has the mean of ln r of the profile.",
    see="the-experiment-measured-profiles",
)
def least_squares_slope(profile, low, high):
    log_r = torch.arange(low, high + 1, dtype=torch.float64).log()
    p = profile[low : high + 1].double()
    p = p / p.sum()
    y = p.clamp_min(1e-12).log()
    x = log_r - log_r.mean()
    gamma = -(x @ y) / (x @ x)
    q = (-gamma * log_r).softmax(dim=0)
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return measured / of_law - 1


@wrong(
    "ch21.spread",
    "The spread of the distance instead of that of its logarithm.",
    see="the-experiment-measured-profiles",
)
def spread_of_distances(profile, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    p = decay_law.shares(profile, low, high)
    q = decay_law.fit_curve(profile, "power law", low, high)["log_q"].exp()
    measured, of_law = (float((w * (r - (w * r).sum()) ** 2).sum()) for w in (p, q))
    return measured / of_law - 1


@wrong(
    "ch21.spread", "The ratio itself: 1 was to be taken off, so that a power law has 0.", see="the-experiment-measured-profiles"
)
def one_not_taken_off(profile, low, high):
    log_r = torch.arange(low, high + 1, dtype=torch.float64).log()
    p = decay_law.shares(profile, low, high)
    q = decay_law.fit_curve(profile, "power law", low, high)["log_q"].exp()
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return measured / of_law


@wrong("ch21.spread", "A ratio of standard deviations; variances are asked for.", see="the-experiment-measured-profiles")
def standard_deviations(profile, low, high):
    log_r = torch.arange(low, high + 1, dtype=torch.float64).log()
    p = decay_law.shares(profile, low, high)
    q = decay_law.fit_curve(profile, "power law", low, high)["log_q"].exp()
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return math.sqrt(measured / of_law) - 1


@wrong("ch21.spread", "The last distance of the window is missing.", see="the-experiment-measured-profiles")
def last_distance_left_out(profile, low, high):
    log_r = torch.arange(low, high, dtype=torch.float64).log()
    p = decay_law.shares(profile, low, high - 1)
    q = decay_law.fit_curve(profile, "power law", low, high - 1)["log_q"].exp()
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return measured / of_law - 1


@wrong(
    "ch21.spread",
    "The weights of the window were not made shares: they do not sum to one.",
    see="the-experiment-measured-profiles",
)
def weights_for_shares(profile, low, high):
    log_r = torch.arange(low, high + 1, dtype=torch.float64).log()
    p = profile[low : high + 1].double()
    q = decay_law.fit_curve(profile, "power law", low, high)["log_q"].exp()
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return measured / of_law - 1


@wrong(
    "ch21.spread",
    "The size of the excess without its sign: a profile that bends down spreads less than a power law.",
    see="the-experiment-measured-profiles",
)
def without_its_sign(profile, low, high):
    log_r = torch.arange(low, high + 1, dtype=torch.float64).log()
    p = decay_law.shares(profile, low, high)
    q = decay_law.fit_curve(profile, "power law", low, high)["log_q"].exp()
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return abs(measured / of_law - 1)


@wrong(
    "ch21.spread",
    "The exponent was looked for among positive ones only; a profile may rise.",
    see="the-experiment-measured-profiles",
)
def exponents_from_zero(profile, low, high):
    log_r = torch.arange(low, high + 1, dtype=torch.float64).log()
    p = decay_law.shares(profile, low, high)
    least, most = 0.0, 6.0
    for _ in range(60):
        gamma = (least + most) / 2
        q = (-gamma * log_r).softmax(dim=0)
        least, most = (gamma, most) if float((q - p) @ log_r) > 0 else (least, gamma)
    measured, of_law = (float((w * (log_r - (w * log_r).sum()) ** 2).sum()) for w in (p, q))
    return measured / of_law - 1


equivalent("ch21.spread", "`log_r = torch.arange(low, high + 1).log()`", "seven digits of ln r are enough for six of the excess")


# ---------------------------------------------------------------- ch21.claims

wrong(
    "ch21.claims",
    "abc",
    "Growing with N is not diverging at an N: what bounds the variance at each of them?",
    see="where-the-peak-is",
)
wrong("ch21.claims", "abce", "A statement about some finite N is among yours that the bound forbids.", see="where-the-peak-is")
wrong(
    "ch21.claims",
    "acde",
    "You call two points on one smooth slope two phases. How wide is the crossover at that length?",
    see="one-curve-for-all-lengths",
)
wrong("ch21.claims", "acef", "That formulas are the same says nothing of equilibrium.", see="an-analogy-and-its-price")
wrong("ch21.claims", "ae", "One is missing: what is true of the limit may be said of the limit.", see="a-kink-in-the-limit")
wrong(
    "ch21.claims",
    "acd",
    "Of two exponents on either side of 1 the width of the hump tells more than their sides. And what did the experiment find?",
    see="one-curve-for-all-lengths",
)
wrong("ch21.claims", "ac", "What was measured, with its limits, may be said too.", see="the-experiment-measured-profiles")
