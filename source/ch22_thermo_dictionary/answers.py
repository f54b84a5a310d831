"""Other right answers and named wrong answers of the exercises of ch22."""

import math

import torch

from autograder.answers import equivalent, right, wrong

# ---------------------------------------------------------------- ch22.heat


@right("ch22.heat")
def by_numpy_and_pairs_of_moments(gamma, N):
    import numpy as np

    x = np.log(np.arange(1, N + 1, dtype=np.float64))
    z = -float(gamma) * x
    w = np.exp(z - z.max())
    p = w / w.sum()
    variance = float(np.dot(p, (x - np.dot(p, x)) ** 2))
    return variance, float(gamma) ** 2 * variance


@right("ch22.heat")
def from_logs_about_the_heaviest(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    x = x - (x[0] if gamma > 0 else x[-1])  # a constant in the energies changes nothing
    p = torch.exp(torch.log_softmax(-gamma * x, dim=0))
    mean = torch.dot(p, x)
    variance = torch.dot(p, (x - mean).square()).item()
    return variance, variance * gamma * gamma


@wrong(
    "ch22.heat",
    "The variance was taken as a difference of two mean squares, and where they are nearly equal, nothing but rounding is left.",
    see="what-goes-wrong-in-practice",
)
def difference_of_squares(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    variance = float(p @ x**2 - (p @ x) ** 2)
    return variance, gamma**2 * variance


@wrong(
    "ch22.heat",
    "Powers of distances leave the range of floats for a steep rise. Only ratios of weights matter.",
    see="what-goes-wrong-in-practice",
)
def powers_overflow(gamma, N):
    r = torch.arange(1, N + 1, dtype=torch.float64)
    p = r ** (-gamma) / (r ** (-gamma)).sum()
    x = r.log()
    variance = float((p * (x - p @ x) ** 2).sum())
    return variance, gamma**2 * variance


@wrong(
    "ch22.heat",
    "You divided where the dictionary multiplies: which of the two numbers grows with γ²?",
    see="one-variance-four-names",
)
def heat_divided(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    variance = float((p * (x - p @ x) ** 2).sum())
    return variance, variance / gamma**2 if gamma else 0.0


@wrong(
    "ch22.heat",
    "The mean energy changes with the temperature 1/β, and you differentiated by β: one factor of γ is missing.",
    see="one-variance-four-names",
)
def one_factor_of_gamma(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    variance = float((p * (x - p @ x) ** 2).sum())
    return variance, gamma * variance


@wrong("ch22.heat", "That is the mean square of ln r. The deviation is from the mean, not from 0.", see="one-variance-four-names")
def second_moment(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    square = float((p * x**2).sum())
    return square, gamma**2 * square


@wrong("ch22.heat", "Energies in bits: the information about γ needs natural logarithms.", see="what-the-proof-shows")
def in_bits(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    x = x / math.log(2)
    variance = float((p * (x - p @ x) ** 2).sum())
    return variance, gamma**2 * variance


@wrong("ch22.heat", "That is the standard deviation; the Fisher information is its square.", see="one-variance-four-names")
def standard_deviation(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    spread = float((p * (x - p @ x) ** 2).sum().sqrt())
    return spread, gamma**2 * spread


@wrong(
    "ch22.heat",
    "Seven digits came where eight were asked: the logarithm of a tensor of whole numbers is float32.",
    see="what-goes-wrong-in-practice",
)
def logarithms_in_float32(gamma, N):
    x = torch.arange(1, N + 1).log()
    p = (-gamma * x).softmax(0)
    variance = float((p * (x - p @ x) ** 2).sum())
    return variance, gamma**2 * variance


@wrong("ch22.heat", "The right two numbers, the other way round.", see="one-variance-four-names")
def heat_first(gamma, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    variance = float((p * (x - p @ x) ** 2).sum())
    return gamma**2 * variance, variance


@wrong(
    "ch22.heat",
    "Finite differences show what the two quantities are; for eight digits they cancel too much.",
    see="one-variance-four-names",
)
def by_finite_differences(gamma, N, h=1e-4):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = lambda g: (-g * x).softmax(0)  # noqa: E731
    slope = (p(gamma + h).log() - p(gamma - h).log()) / (2 * h)
    return float(p(gamma) @ slope**2), float(-(gamma**2) * ((p(gamma + h) - p(gamma - h)) @ x) / (2 * h))


@wrong(
    "ch22.heat",
    "Dividing all weights by that of the longest distance helps where they rise. Where they fall, the first one overflows.",
    see="what-goes-wrong-in-practice",
)
def weights_over_the_last(gamma, N):
    r = torch.arange(1, N + 1, dtype=torch.float64)
    w = (r / N) ** (-gamma)
    p, x = w / w.sum(), r.log()
    variance = float((p * (x - p @ x) ** 2).sum())
    return variance, gamma**2 * variance


# ---------------------------------------------------------------- ch22.receipt

wrong(
    "ch22.receipt",
    ["formal", "empirical", "empirical", "neither", "empirical", "neither"],
    "A number does not make a statement empirical: statement 3 speaks of a finite sum.",
    see="what-the-proof-shows",
)
wrong(
    "ch22.receipt",
    ["formal", "empirical", "formal", "neither", "formal", "neither"],
    "Statement 5 would follow if the scores were −γ ln r up to a constant. Whether a head's are is a question to the head.",
    see="a-prediction-that-can-fail",
)
wrong(
    "ch22.receipt",
    ["formal", "empirical", "formal", "empirical", "empirical", "empirical"],
    "Statements 4 and 6 sound like findings. Which measurement could come out against them, as they are written?",
    see="what-the-proof-shows",
)
wrong(
    "ch22.receipt",
    ["empirical", "empirical", "formal", "neither", "empirical", "neither"],
    "Statement 1 held for random numbers as well: no measurement could have made it false.",
    see="two-numbers-that-cannot-disagree",
)

wrong(
    "ch22.receipt",
    ["formal", "empirical", "formal", "empirical", "empirical", "neither"],
    "Statement 4 sounds like a finding. Which measurement could come out against it?",
    see="what-the-proof-shows",
)
wrong(
    "ch22.receipt",
    ["formal", "empirical", "formal", "neither", "empirical", "empirical"],
    "An exponent can be measured. Can what attention wants? Statement 6 speaks of that.",
    see="what-the-proof-shows",
)
wrong(
    "ch22.receipt",
    ["formal", "formal", "formal", "neither", "empirical", "neither"],
    "No proof knows what a trained model does on a novel: statement 2 could come out otherwise.",
    see="what-the-proof-shows",
)

# ---------------------------------------------------------------- ch22.erratum


@right("ch22.erratum")
def by_stieltjes_constants(N):
    import mpmath

    L = math.log(N)
    if N <= 10**5:
        r = torch.arange(1, N + 1, dtype=torch.float64)
        p = (1 / r) / (1 / r).sum()
        x = r.log()
        return L * L / 12, float((p * (x - p @ x) ** 2).sum())
    S = [L ** (k + 1) / (k + 1) + float(mpmath.stieltjes(k)) for k in range(3)]
    return L * L / 12, S[2] / S[0] - (S[1] / S[0]) ** 2


@right("ch22.erratum")
def with_half_of_the_last_term(N):
    n = min(N, 20_000)
    x = [math.log(r) for r in range(1, n + 1)]
    L = math.log(N)
    S = []
    for k in range(3):
        total = math.fsum(each**k / r for r, each in enumerate(x, 1))
        if N > n:
            total += (L ** (k + 1) - x[-1] ** (k + 1)) / (k + 1) - x[-1] ** k / (2 * n)
        S.append(total)
    return L**2 / 12, S[2] / S[0] - (S[1] / S[0]) ** 2


@wrong("ch22.erratum", "The squared mean came out in place of the variance: the slip that the source made.", see="the-erratum")
def the_source_s_slip(N):
    n = min(N, 300_000)
    r = torch.arange(1, n + 1, dtype=torch.float64)
    S = [float((r.log() ** k / r).sum()) for k in range(3)]
    S = [S[k] + (math.log(N) ** (k + 1) - math.log(n) ** (k + 1)) / (k + 1) for k in range(3)]
    return math.log(N) ** 2 / 4, S[2] / S[0] - (S[1] / S[0]) ** 2


@wrong(
    "ch22.erratum", "Both numbers are the density's. Whole distances have a sum, and it is not its integral.", see="the-erratum"
)
def the_density_twice(N):
    return math.log(N) ** 2 / 12, math.log(N) ** 2 / 12


@wrong(
    "ch22.erratum",
    "Two terms of an expansion: the next one does not grow, but it is there, and for few distances there are more.",
    see="the-erratum",
)
def two_terms(N):
    L = math.log(N)
    return L**2 / 12, L**2 / 12 + 0.5772156649015329 * L / 6


@wrong(
    "ch22.erratum", "An expansion for large N, used for all: for few distances its error is no longer small.", see="the-erratum"
)
def three_terms(N):
    L, e = math.log(N), 0.5772156649015329
    return L**2 / 12, L**2 / 12 + e * L / 6 - 5 * e * e / 12 + 0.0728158454836767


@wrong("ch22.erratum", "The sum was cut off, as if there were no distances beyond.", see="the-erratum")
def cut_off(N):
    n = min(N, 300_000)
    r = torch.arange(1, n + 1, dtype=torch.float64)
    S = [float((r.log() ** k / r).sum()) for k in range(3)]
    return math.log(N) ** 2 / 12, S[2] / S[0] - (S[1] / S[0]) ** 2


@wrong(
    "ch22.erratum",
    "Beyond what you can sum you took the integrals alone, and lost what the sums have beside them.",
    see="the-erratum",
)
def integral_beyond_a_million(N):
    L = math.log(N)
    if N > 300_000:
        return L**2 / 12, L**2 / 12
    r = torch.arange(1, N + 1, dtype=torch.float64)
    S = [float((r.log() ** k / r).sum()) for k in range(3)]
    return L**2 / 12, S[2] / S[0] - (S[1] / S[0]) ** 2


@wrong("ch22.erratum", "The mean square alone: the squared mean has to be taken off.", see="the-erratum")
def mean_square(N):
    n = min(N, 300_000)
    r = torch.arange(1, n + 1, dtype=torch.float64)
    S = [float((r.log() ** k / r).sum()) for k in range(3)]
    S = [S[k] + (math.log(N) ** (k + 1) - math.log(n) ** (k + 1)) / (k + 1) for k in range(3)]
    return math.log(N) ** 2 / 3, S[2] / S[0]


@wrong("ch22.erratum", "The right two numbers, the other way round: the density's comes first.", see="the-erratum")
def whole_distances_first(N):
    n = min(N, 300_000)
    r = torch.arange(1, n + 1, dtype=torch.float64)
    S = [float((r.log() ** k / r).sum()) for k in range(3)]
    S = [S[k] + (math.log(N) ** (k + 1) - math.log(n) ** (k + 1)) / (k + 1) for k in range(3)]
    return S[2] / S[0] - (S[1] / S[0]) ** 2, math.log(N) ** 2 / 12


@wrong(
    "ch22.erratum",
    "Only the normaliser got its constant. The sums of ln r / r and (ln r)²/r differ from their integrals too.",
    see="the-erratum",
)
def constant_of_the_normaliser_only(N):
    L = math.log(N)
    if N <= 10**6:
        r = torch.arange(1, N + 1, dtype=torch.float64)
        p, x = (1 / r) / (1 / r).sum(), r.log()
        return L**2 / 12, float((p * (x - p @ x) ** 2).sum())
    Z = L + 0.5772156649015329
    return L**2 / 12, L**3 / 3 / Z - (L**2 / 2 / Z) ** 2


# ---------------------------------------------------------------- ch22.thermometer


@right("ch22.thermometer")
def by_newton_and_halving(r, N):
    import numpy as np
    from scipy.optimize import brentq

    x = np.log(np.arange(1, N + 1))
    mean = np.log(r.numpy().astype(float)).mean()
    if int(r.min()) == int(r.max()) and int(r.min()) in (1, N):
        raise ValueError("no likeliest exponent")

    def weights(gamma):
        w = np.exp(-gamma * x - max(0.0, -gamma * x[-1]))
        return w / w.sum()

    gamma = brentq(lambda g: weights(g) @ x - mean, -30, 30, xtol=1e-12)
    p = weights(gamma)
    return float(gamma), float(1 / np.sqrt(len(r) * (p @ (x - p @ x) ** 2)))


@right("ch22.thermometer")
def by_newton(r, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = r.double().log().mean()
    if target <= 0 or bool((r == N).all()):
        raise ValueError("no likeliest exponent")
    gamma = torch.tensor(0.0, dtype=torch.float64)
    for _ in range(400):
        p = (-gamma * x).softmax(0)
        variance = (p * (x - p @ x).square()).sum()
        gamma = gamma + ((p @ x - target) / variance).clamp(-0.5, 0.5)
    return float(gamma), float((len(r) * variance).rsqrt())


@wrong(
    "ch22.thermometer",
    "The formula of real distances without an end: it gives at least 1, and these distances are whole and end at N.",
    see="a-thermometer",
)
def without_an_end(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    gamma = 1 + len(r) / float(r.double().log().sum())
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    p = (-gamma * x).softmax(0)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "That is the error of one draw. How does the information of independent draws add up?",
    see="a-thermometer",
)
def error_of_one_draw(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((p * (x - p @ x) ** 2).sum() ** -0.5)


@wrong("ch22.thermometer", "More information is less error: the spread of ln r stands below the line.", see="a-thermometer")
def error_upside_down(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float(((p * (x - p @ x) ** 2).sum() / len(r)) ** 0.5)


@wrong(
    "ch22.thermometer",
    "The information is the variance of ln r in the law at the likeliest exponent; you took the sample's.",
    see="a-thermometer",
)
def spread_of_the_sample(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * r.double().log().var(correction=0).clamp_min(1e-12)) ** -0.5)


@wrong(
    "ch22.thermometer",
    "A line through the logarithms of counts: where counts are 0 or 1 it says nothing of the law.",
    see="a-thermometer",
)
def line_through_counts(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    count = torch.bincount(r, minlength=N + 1)[1:].double()
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    a, b = x[count > 0], count[count > 0].log()
    a = a - a.mean()
    gamma = -float((a * b).sum() / (a * a).sum().clamp_min(1e-12))
    p = (-gamma * x).softmax(0)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "Where all draws are at one end, you return where your search stopped. No exponent is likeliest there.",
    see="a-thermometer",
)
def the_end_of_the_search(r, N):
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "The law's mean distance was set equal to the sample's: likeliest is the law with the right mean of ln r.",
    see="a-thermometer",
)
def matches_the_mean_distance(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x.exp()) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong("ch22.thermometer", "Any equal draws were refused. Only at the two ends is no exponent likeliest.", see="a-thermometer")
def refuses_equal_draws(r, N):
    if int(r.min()) == int(r.max()):
        raise ValueError("no spread")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "The largest draw was taken for the longest distance there is. Distances that were never drawn count as well.",
    see="a-thermometer",
)
def largest_draw_for_the_end(r, N):
    N = int(r.max())
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "The search is good, and what it aims at has seven digits: the logarithm of a tensor of whole numbers is float32.",
    see="a-thermometer",
)
def logarithms_in_float32_of_draws(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "The search stopped too early for six digits after the point.",
    see="a-thermometer",
)
def a_coarse_search(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(22):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "The search knows only the exponents of attention, and laws can rise or fall more steeply.",
    see="a-thermometer",
)
def attention_s_exponents_only(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = 0.0, 5.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "A mean of equal logarithms can be rounded to a hair below them: ask the draws themselves whether they are all at one end.",
    see="a-thermometer",
)
def compares_rounded_means(r, N):
    mean = float(r.double().log().mean())
    if not 0 < mean < math.log(N):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "A single draw was refused. Unless it lies at an end, some exponent is likeliest for it.",
    see="a-thermometer",
)
def refuses_a_single_draw(r, N):
    if len(r) < 2 or bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("too few")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float((len(r) * (p * (x - p @ x) ** 2).sum()) ** -0.5)


@wrong(
    "ch22.thermometer",
    "The information of n draws is n times that of one: n − 1 belongs to another estimate.",
    see="a-thermometer",
)
def one_degree_of_freedom_less(r, N):
    if bool((r == 1).all()) or bool((r == N).all()):
        raise ValueError("no exponent is likeliest")
    x = torch.arange(1, N + 1, dtype=torch.float64).log()
    target = float(r.double().log().mean())
    low, high = -40.0, 40.0
    for _ in range(80):
        gamma = (low + high) / 2
        p = (-gamma * x).softmax(0)
        low, high = (gamma, high) if float(p @ x) > target else (low, gamma)
    return gamma, float(((len(r) - 1) * (p * (x - p @ x) ** 2).sum()) ** -0.5) if len(r) > 1 else math.inf


# ---------------------------------------------------------------- ch22.response


@right("ch22.response")
def by_the_jacobian(scores, f, tau):
    p = torch.softmax(scores / tau, dim=-1)
    s = scores.masked_fill(p == 0, 0.0)
    slope = -p * (s - (p * s).sum(-1, keepdim=True)) / tau**2  # (..., N) of p in τ
    return slope @ f.to(scores.dtype)


@right("ch22.response")
def by_pairs(scores, f, tau):
    p = torch.softmax(scores / tau, dim=-1)
    s = torch.where(p > 0, scores, torch.zeros_like(scores))
    f = f.to(scores.dtype)
    products = (f[:, None] - f) * (s[..., :, None] - s[..., None, :])  # (..., N, N)
    return -torch.einsum("...i,...j,...ij->...", p, p, products) / (2 * tau**2)


@wrong("ch22.response", "That is the slope in b = 1/τ. When the temperature rises, b falls.", see="a-prediction-that-can-fail")
def slope_in_b(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    f = f.to(scores.dtype)
    deviation = f - (p * f).sum(-1, keepdim=True)
    s = torch.where(p > 0, scores, 0)
    return (p * deviation * s).sum(-1) / tau**2


@wrong(
    "ch22.response", "The factor of the chain rule is missing: how fast does 1/τ change with τ?", see="a-prediction-that-can-fail"
)
def without_the_chain_rule(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    f = f.to(scores.dtype)
    deviation = f - (p * f).sum(-1, keepdim=True)
    s = torch.where(p > 0, scores, 0)
    return -(p * deviation * s).sum(-1)


@wrong(
    "ch22.response",
    "You took the variance of f for its covariance with the scores: right for a power law, not for a head.",
    see="a-prediction-that-can-fail",
)
def variance_of_f(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    f = f.to(scores.dtype)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return (p * deviation**2).sum(-1) / tau**2


@wrong(
    "ch22.response", "The weights are those at the temperature 1, whatever the temperature is.", see="a-prediction-that-can-fail"
)
def weights_at_one(scores, f, tau):
    p = (scores / 1.0).softmax(dim=-1)
    f = f.to(scores.dtype)
    deviation = f - (p * f).sum(-1, keepdim=True)
    s = torch.where(p > 0, scores, 0)
    return -(p * deviation * s).sum(-1) / tau**2


@wrong(
    "ch22.response",
    "A mean of products is no covariance before the product of the means is taken off.",
    see="a-prediction-that-can-fail",
)
def mean_of_products(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    s = torch.where(p > 0, scores, 0)
    return -(p * f.to(scores.dtype) * s).sum(-1) / tau**2


@wrong(
    "ch22.response",
    "A masked key has the score −∞ and the weight 0, and their product is not a number.",
    see="what-goes-wrong-in-practice",
)
def masked_keys_spoil_the_sum(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    f = f.to(scores.dtype)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * scores).sum(-1) / tau**2


@wrong(
    "ch22.response",
    "Half of the chain rule: d(1/τ) is −dτ/τ², and you divided by τ once.",
    see="a-prediction-that-can-fail",
)
def divided_once(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * torch.where(p > 0, scores, 0)).sum(-1) / tau


@wrong(
    "ch22.response",
    "τ was divided out twice: once inside the scores, and then by the whole chain rule.",
    see="a-prediction-that-can-fail",
)
def divided_three_times(scores, f, tau):
    z = scores / tau
    p = z.softmax(dim=-1)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * torch.where(p > 0, z, 0)).sum(-1) / tau**2


@wrong(
    "ch22.response",
    "The scores that you were given have changed: −∞ was overwritten in place.",
    see="a-prediction-that-can-fail",
)
def overwrites_masked_scores(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    scores[scores == -math.inf] = 0
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * scores).sum(-1) / tau**2


@wrong(
    "ch22.response",
    "Exponentials of scores as they are leave the range of floats. What may you subtract from all of them first?",
    see="what-goes-wrong-in-practice",
)
def exponentials_overflow(scores, f, tau):
    e = (scores / tau).exp()
    p = e / e.sum(-1, keepdim=True)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * torch.where(p > 0, scores, 0)).sum(-1) / tau**2


@wrong(
    "ch22.response",
    "A masked key got the score 0 before the softmax, and with it a weight.",
    see="what-goes-wrong-in-practice",
)
def unmasks(scores, f, tau):
    s = scores.masked_fill(scores == -math.inf, 0)
    p = (s / tau).softmax(dim=-1)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * s).sum(-1) / tau**2


@wrong("ch22.response", "All dimensions of length 1 were dropped, those of the scores too.", see="a-prediction-that-can-fail")
def drops_dimensions(scores, f, tau):
    p = (scores / tau).softmax(dim=-1)
    deviation = f - (p * f).sum(-1, keepdim=True)
    return -(p * deviation * torch.where(p > 0, scores, 0)).sum(-1, keepdim=True).squeeze() / tau**2


@wrong(
    "ch22.response",
    "A quotient of differences: near the slope, but digits are lost, and it was not to be used.",
    see="a-prediction-that-can-fail",
)
def quotient_of_differences(scores, f, tau, h=1e-4):
    mean = lambda t: ((scores / t).softmax(dim=-1) * f).sum(-1)  # noqa: E731
    return (mean(tau + h) - mean(tau - h)) / (2 * h)


# ---------------------------------------------------------------- ch22.guess

right("ch22.guess", "0 to 6")
right("ch22.guess", "more than 30")
wrong(
    "ch22.guess",
    "most of them",
    "A guess has to be one of the four ranges, or it cannot be compared.",
    see="the-experiment-is-a-head-a-gas",
)
wrong("ch22.guess", 7, "A number is no range: say one of the four texts.", see="the-experiment-is-a-head-a-gas")

# ---------------------------------------------------------------- changes that make no difference

equivalent("ch22.erratum", "`n = min(N, …)`", "a few terms more or less that are summed; the constants are as good")
equivalent("ch22.thermometer", "`low, high = (…)`", "any start around the exponents that occur leads to the same one")
equivalent(
    "ch22.thermometer", "`for _ in range(…):`", "one halving fewer leaves the exponent right to far more digits than are asked"
)
equivalent("ch22.thermometer", "`target = r.double().log().mean()`", "a tensor of one number compares like a float")
equivalent(
    "ch22.response",
    "`safe = torch.where(p > 0, scores, …)`",
    "the weight of such a key is 0, whatever number stands for its score",
)
