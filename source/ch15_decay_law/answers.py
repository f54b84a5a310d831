"""Other right answers and named wrong answers of the exercises of ch15."""

import math

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch15.slope


@right("ch15.slope")
def by_polyfit(d, A):
    import numpy as np

    pairs = [(math.log(x), math.log(y)) for x, y in zip(d.tolist(), A.tolist(), strict=True) if y > 0]
    slope = np.polyfit([x for x, _ in pairs], [y for _, y in pairs], 1)[0]
    return float(-slope), "B" if slope < -1 else "A"


@right("ch15.slope")
def by_lstsq(d, A):
    d, A = d[A > 0].double(), A[A > 0].double()
    table = torch.stack([d.log(), torch.ones_like(d)], dim=1)
    gamma = -torch.linalg.lstsq(table, A.log()[:, None]).solution[0].item()
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope", "The exponent is the slope downwards: a weight that falls has a positive one.", see="a-line-through-logarithms"
)
def slope_with_its_sign(d, A):
    x, y = d[A > 0].double().log(), A[A > 0].double().log()
    x = x - x.mean()
    gamma = float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope",
    "You fitted over the distance itself: that slope is the rate of an exponential, not an exponent.",
    see="a-line-through-logarithms",
)
def rate_of_an_exponential(d, A):
    x, y = d[A > 0].double(), A[A > 0].double().log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope",
    "A line through two points: the nearest and the farthest distance alone. Least squares counts every pair.",
    see="a-line-through-logarithms",
)
def first_and_last(d, A):
    d, A = d[A > 0].double(), A[A > 0].double()
    i, j = int(d.argmin()), int(d.argmax())
    gamma = -float((A[j].log() - A[i].log()) / (d[j].log() - d[i].log()))
    return gamma, "A" if gamma < 1 else "B"


@wrong("ch15.slope", "The phases are exchanged: a slow fall, below 1, is phase A.", see="a-line-through-logarithms")
def phases_exchanged(d, A):
    x, y = d[A > 0].double().log(), A[A > 0].double().log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "B" if gamma < 1 else "A"


@wrong(
    "ch15.slope",
    "Weights of zero were raised to a tiny number instead of being left out, and such points pull the line far down.",
    see="what-goes-wrong-in-practice",
)
def zeros_made_tiny(d, A):
    x, y = d.double().log(), A.double().clamp_min(1e-12).log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope",
    "The line was forced through the origin: its height is a second unknown, so take the means off first.",
    see="a-line-through-logarithms",
)
def through_the_origin(d, A):
    x, y = d[A > 0].double().log(), A[A > 0].double().log()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


@right("ch15.slope")
def by_numpy_with_its_own_float(d, A):
    import numpy as np

    keep = A > 0
    gamma = -np.polyfit(np.log(d[keep].double().numpy()), np.log(A[keep].double().numpy()), 1)[0]
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope",
    "The phase goes by the size of the exponent without its sign, so a steep rise counts as a steep fall.",
    see="a-line-through-logarithms",
)
def phase_without_the_sign(d, A):
    x, y = d[A > 0].double().log(), A[A > 0].double().log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if abs(gamma) < 1 else "B"


@wrong(
    "ch15.slope",
    "Small weights were left out as if they were zeros. However small, a positive weight has a logarithm.",
    see="a-line-through-logarithms",
)
def small_weights_left_out(d, A):
    x, y = d[A > 1e-12].double().log(), A[A > 1e-12].double().log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope",
    "Pairs at the same distance replaced each other, as keys of a dict do. Each pair counts.",
    see="a-line-through-logarithms",
)
def one_pair_for_each_distance(d, A):
    import numpy as np

    kept = {x: y for x, y in zip(d.tolist(), A.tolist(), strict=True) if y > 0}
    slope = np.polyfit([math.log(x) for x in kept], [math.log(y) for y in kept.values()], 1)[0]
    return float(-slope), "B" if slope < -1 else "A"


@wrong("ch15.slope", "Computed in float32, which has seven digits.", see="a-line-through-logarithms")
def with_seven_digits(d, A):
    x, y = d[A > 0].float().log(), A[A > 0].float().log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


@wrong(
    "ch15.slope",
    "What is not positive was marked in the caller's own tensor. Work on a copy or a selection.",
    see="a-line-through-logarithms",
)
def marks_the_zeros_in_place(d, A):
    if A.is_floating_point():
        A[A <= 0] = math.nan
    keep = (A > 0) & ~A.isnan()
    x, y = d[keep].double().log(), A[keep].double().log()
    x = x - x.mean()
    gamma = -float((x * y).sum() / (x * x).sum())
    return gamma, "A" if gamma < 1 else "B"


# ---------------------------------------------------------------- ch15.null


@right("ch15.null")
def by_differences_of_sums(T, start):
    sums = torch.cat([torch.zeros(1, dtype=torch.float64), (1 / torch.arange(1, T + 1, dtype=torch.float64)).cumsum(0)])
    first = torch.maximum(torch.arange(T), torch.tensor(start - 1))
    return (sums[T] - sums[first]) / (T - first)


@right("ch15.null")
def from_the_far_end(T, start):
    import numpy as np

    found, total = np.zeros(T), 0.0
    for i in range(T, start - 1, -1):
        total += 1 / i
        found[i - 1] = total / (T - i + 1)
    found[: start - 1] = found[start - 1]
    return torch.from_numpy(found)


@wrong(
    "ch15.null",
    "You divided by T at every distance. Far distances have fewer queries, and only these have a weight there.",
    see="what-even-attention-gives",
)
def divided_by_all_tokens(T, start):
    inverse = 1 / torch.arange(1, T + 1, dtype=torch.float64)
    return inverse.flip(0).cumsum(0).flip(0)[torch.arange(T).clamp_min(start - 1)] / T


@wrong(
    "ch15.null",
    "That is the logarithm, which only comes close to the sum. Ten digits need the sum itself.",
    see="what-even-attention-gives",
)
def the_logarithm(T, start):
    first = torch.arange(T, dtype=torch.float64).clamp_min(start - 1)
    return torch.log(T / first.clamp_min(0.5)) / (T - first)


@wrong("ch15.null", "All queries were counted, whatever `start` says.", see="what-even-attention-gives")
def all_queries(T, start):
    inverse = 1 / torch.arange(1, T + 1, dtype=torch.float64)
    return inverse.flip(0).cumsum(0).flip(0) / torch.arange(T, 0, -1)


@wrong(
    "ch15.null",
    "Off by one: query i has the distances 0 to i − 1, so the first query with distance r is r + 1.",
    see="what-even-attention-gives",
)
def one_query_too_many(T, start):
    inverse = 1 / torch.arange(1, T + 1, dtype=torch.float64)
    first = (torch.arange(T) - 1).clamp_min(0).clamp_min(start - 1)
    return inverse.flip(0).cumsum(0).flip(0)[first] / (T - first)


@wrong(
    "ch15.null",
    "You gave each query 1/T to each key. Its keys are those up to itself, and it shares its whole weight among them.",
    see="what-even-attention-gives",
)
def the_same_for_all(T, start):
    return torch.full((T,), 1 / T, dtype=torch.float64)


@wrong("ch15.null", "Computed in float32, which does not have ten digits.", see="what-even-attention-gives")
def in_single_precision(T, start):
    inverse = 1 / torch.arange(1, T + 1, dtype=torch.float32)
    first = torch.arange(T).clamp_min(start - 1)
    return (inverse.flip(0).cumsum(0).flip(0)[first] / (T - first)).double()


@wrong(
    "ch15.null",
    "One number of queries was used at all distances. Beyond `start` every further distance loses one.",
    see="what-even-attention-gives",
)
def the_same_count_everywhere(T, start):
    inverse = 1 / torch.arange(1, T + 1, dtype=torch.float64)
    return inverse.flip(0).cumsum(0).flip(0)[torch.arange(T).clamp_min(start - 1)] / (T - start + 1)


# ---------------------------------------------------------------- ch15.maxent


@right("ch15.maxent")
def by_newton(N, target):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    if target <= 0 or target >= math.log(N):
        raise ValueError("no such mean")

    def miss(gamma):
        return float((-gamma * log_r).softmax(0) @ log_r) - target

    low, high = -100.0, 100.0
    gamma = 0.0
    for _ in range(500):
        p = (-gamma * log_r).softmax(0)
        gap = miss(gamma)
        low, high = (gamma, high) if gap > 0 else (low, gamma)
        spread = float(p @ log_r.square() - (p @ log_r) ** 2)
        step = gamma + gap / max(spread, 1e-12)
        gamma = step if low < step < high else (low + high) / 2
    return (-gamma * log_r).softmax(0)


@right("ch15.maxent")
def by_scipy(N, target):
    import numpy as np
    from scipy.optimize import brentq

    if not 0 < target < math.log(N):
        raise ValueError("no such mean")
    log_r = np.log(np.arange(1, N + 1))

    def law(gamma):
        z = -gamma * log_r
        p = np.exp(z - z.max())
        return p / p.sum()

    return torch.from_numpy(law(brentq(lambda gamma: law(gamma) @ log_r - target, -80, 80, xtol=1e-14)))


@wrong(
    "ch15.maxent",
    "You fixed the mean of the distance, and so got an exponential. The task fixes the mean of its logarithm.",
    see="what-maximum-entropy-assumes",
)
def fixes_the_mean_distance(N, target):
    r = torch.arange(1, N + 1, dtype=torch.float64)
    if not 0 < target < math.log(N):
        raise ValueError
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float((-middle * r).softmax(0) @ r) > math.exp(target) else (low, middle)
    return (-middle * r).softmax(0)


@wrong(
    "ch15.maxent",
    "1 + 1/target belongs to a continuous law without an upper end. Whole distances that end at N need the equation solved.",
    see="what-maximum-entropy-assumes",
)
def formula_without_an_end(N, target):
    if not 0 < target < math.log(N):
        raise ValueError
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    return (-(1 + 1 / target) * log_r).softmax(0)


@wrong(
    "ch15.maxent",
    "Only exponents from 0 on were tried. A large mean of ln r needs more weight far away, so a negative exponent.",
    see="what-maximum-entropy-assumes",
)
def only_falling_laws(N, target):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    if not 0 < target < float(log_r[-1]):
        raise ValueError
    low, high = 0.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float((-middle * log_r).softmax(0) @ log_r) > target else (low, middle)
    return (-middle * log_r).softmax(0)


@wrong("ch15.maxent", "Impossible means are answered instead of refused.", see="what-maximum-entropy-assumes")
def answers_everything(N, target):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float((-middle * log_r).softmax(0) @ log_r) > target else (low, middle)
    return (-middle * log_r).softmax(0)


@wrong(
    "ch15.maxent",
    "The weights r^−γ do not sum to one: probabilities must.",
    see="what-maximum-entropy-assumes",
)
def not_normalised(N, target):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    if not 0 < target < float(log_r[-1]):
        raise ValueError
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float((-middle * log_r).softmax(0) @ log_r) > target else (low, middle)
    return (-middle * log_r).exp()


@wrong(
    "ch15.maxent",
    "Your search stops early: the mean is right to two or three digits, and the task asks for nine places.",
    see="what-maximum-entropy-assumes",
)
def a_coarse_search(N, target):
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    if not 0 < target < float(log_r[-1]):
        raise ValueError
    tried = torch.arange(-6, 6, 0.01, dtype=torch.float64)
    means = torch.stack([(-g * log_r).softmax(0) @ log_r for g in tried])
    return (-tried[(means - target).abs().argmin()] * log_r).softmax(0)


# ---------------------------------------------------------------- ch15.heldout


@right("ch15.heldout")
def by_gradient_and_scipy(train, test, low, high):
    import numpy as np
    from scipy.optimize import minimize_scalar

    r = np.arange(low, high + 1)
    p, p_test = (np.array(x.tolist())[low : high + 1] for x in (train, test))
    p, p_test = p / p.sum(), p_test / p_test.sum()

    def log_q(eta, f):
        z = -eta * f
        return z - z.max() - np.log(np.exp(z - z.max()).sum())

    found = []
    for f in (np.log(r), r.astype(float)):
        best = minimize_scalar(lambda eta, f=f: -(p @ log_q(eta, f)), bracket=(-1, 1), tol=1e-12)
        found.append(float(p_test @ log_q(best.x, f)) + math.log(len(r)))
    return tuple(found)


@right("ch15.heldout")
def by_newton_with_care(train, test, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    cut = slice(low, high + 1)
    p, p_test = train[cut].double() / train[cut].double().sum(), test[cut].double() / test[cut].double().sum()
    found = []
    for f in (r.log(), r):
        low_eta, high_eta, eta = -30.0, 30.0, 0.0
        for _ in range(300):
            q = (-eta * f).softmax(0)
            gap = float(q @ f - p @ f)
            low_eta, high_eta = (eta, high_eta) if gap > 0 else (low_eta, eta)
            step = eta + gap / max(float(q @ f**2 - (q @ f) ** 2), 1e-15)
            eta = step if low_eta < step < high_eta else (low_eta + high_eta) / 2
        found.append(float(p_test @ (-eta * f).log_softmax(0)) + math.log(high - low + 1))
    return found[0], found[1]


def _scored(
    fit_on: str, score_on: str, extra: str = "math.log(len(f))", window: str = "low : high + 1", first: str = "low"
) -> cell:
    return cell(f"""
def held_out(train, test, low, high):
    r = torch.arange({first}, {first} + high - low + 1, dtype=torch.float64)
    p, p_test = (x[{window}].double() / x[{window}].double().sum() for x in (train, test))
    r = r[: len(p)]

    def gain(f):
        left, right = -20.0, 20.0
        for _ in range(100):
            eta = (left + right) / 2
            if float((-eta * f).softmax(0) @ f) > float({fit_on} @ f):
                left = eta
            else:
                right = eta
        return float({score_on} @ (-eta * f).log_softmax(0)) + {extra}

    return gain(r.log()), gain(r)
""")


wrong(
    "ch15.heldout",
    _scored("p", "p"),
    "The score is taken on the profile that was fitted. Held out means: another one.",
    see="the-contest",
)
wrong(
    "ch15.heldout", _scored("p_test", "p_test"), "The curves were fitted to the test, so nothing was held out.", see="the-contest"
)
wrong(
    "ch15.heldout",
    _scored("p", "p_test", extra="0.0"),
    "That is the mean logarithm itself. The gain is what it has beyond the flat curve.",
    see="the-contest",
)
wrong(
    "ch15.heldout",
    _scored("p", "p_test", window="low:high"),
    "The last distance of the window is missing: both ends belong to it.",
    see="the-contest",
)
wrong(
    "ch15.heldout",
    _scored("p", "p_test", first="1"),
    "Your distances begin at 1 wherever the window begins. A power law knows how far away it is.",
    see="from-weights-to-shares",
)


@wrong(
    "ch15.heldout",
    "You drew lines through logarithms. That weighs all distances alike, and the likeliest curve weighs them by their share.",
    see="from-weights-to-shares",
)
def lines_through_logarithms(train, test, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    p, p_test = (x[low : high + 1].double() / x[low : high + 1].double().sum() for x in (train, test))
    found = []
    for f in (r.log(), r):
        slope = ((f - f.mean()) * p.log()).sum() / (f - f.mean()).square().sum()
        found.append(float(p_test @ (slope * f).log_softmax(0)) + math.log(len(f)))
    return tuple(found)


@wrong(
    "ch15.heldout",
    "Only positive multipliers were tried. A profile that rises needs a negative one.",
    see="from-weights-to-shares",
)
def only_curves_that_fall(train, test, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    p, p_test = (x[low : high + 1].double() / x[low : high + 1].double().sum() for x in (train, test))
    found = []
    for f in (r.log(), r):
        left, right = 0.0, 20.0
        for _ in range(100):
            eta = (left + right) / 2
            left, right = (eta, right) if float((-eta * f).softmax(0) @ f) > float(p @ f) else (left, eta)
        found.append(float(p_test @ (-eta * f).log_softmax(0)) + math.log(len(f)))
    return tuple(found)


@wrong(
    "ch15.heldout",
    "Your search ends before the steepest curves that the task allows.",
    see="from-weights-to-shares",
)
def not_steep_enough(train, test, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    p, p_test = (x[low : high + 1].double() / x[low : high + 1].double().sum() for x in (train, test))
    found = []
    for f in (r.log(), r):
        left, right = -3.0, 3.0
        for _ in range(100):
            eta = (left + right) / 2
            left, right = (eta, right) if float((-eta * f).softmax(0) @ f) > float(p @ f) else (left, eta)
        found.append(float(p_test @ (-eta * f).log_softmax(0)) + math.log(len(f)))
    return tuple(found)


@wrong(
    "ch15.heldout",
    "e^(−η r) overflows at long distances. Subtract the largest exponent first, as log-softmax does.",
    see="from-weights-to-shares",
)
def overflows(train, test, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    p, p_test = (x[low : high + 1].double() / x[low : high + 1].double().sum() for x in (train, test))
    found = []
    for f in (r.log(), r):
        left, right = -4.0, 4.0
        for _ in range(100):
            eta = (left + right) / 2
            q = (-eta * f).exp() / (-eta * f).exp().sum()
            left, right = (eta, right) if float(q @ f) > float(p @ f) else (left, eta)
        found.append(float((p_test * q.log()).sum()) + math.log(len(f)))
    return tuple(found)


@wrong(
    "ch15.heldout",
    "You took the logarithm of the weights themselves, and a weight of 0 has none. The score asks for that of the curve only.",
    see="what-goes-wrong-in-practice",
)
def logarithm_of_a_weight(train, test, low, high):
    r = torch.arange(low, high + 1, dtype=torch.float64)
    p, p_test = (x[low : high + 1].double() / x[low : high + 1].double().sum() for x in (train, test))
    found = []
    for f in (r.log(), r):
        left, right = -20.0, 20.0
        for _ in range(100):
            eta = (left + right) / 2
            left, right = (eta, right) if float((-eta * f).softmax(0) @ f) > float(p @ f) else (left, eta)
        kl = (p_test * (p_test.log() - (-eta * f).log_softmax(0))).sum()
        found.append(float((p_test * p_test.log()).sum() - kl) + math.log(len(f)))
    return tuple(found)


# ---------------------------------------------------------------- ch15.guess

right("ch15.guess", "none")
right("ch15.guess", "more than 24")
wrong("ch15.guess", "all", "Choose one of the four answers that the task names.", see="the-experiment-head-by-head")
wrong("ch15.guess", "about half", "The answers are ranges: choose one of the four.", see="the-experiment-head-by-head")

# ---------------------------------------------------------------- ch15.tool


@right("ch15.tool")
def with_the_cayley_map(theta, T, A):
    x = T / (math.sqrt(2) * theta)
    gamma, phase = fit_gamma(torch.arange(1, A.numel() + 1), A)  # noqa: F821
    pade = (1 - x) / (1 + x)
    return {"phase": phase, "gamma_obs": gamma, "gamma_pade": pade, "valid": pade > 0, "possible": abs(gamma) < 1}


@right("ch15.tool")
def with_the_closed_form_of_the_course(theta, T, A):
    gamma, phase = fit_gamma(torch.arange(1, len(A) + 1), A)  # noqa: F821
    pade = decay_law.gamma_pade(theta, T)  # noqa: F821
    return {"gamma_pade": pade, "gamma_obs": gamma, "phase": phase, "valid": pade > 0, "possible": -1 < gamma < 1}


_REPORT = """
def profile_tool(theta, T, A):
    gamma_obs, phase = fit_gamma(torch.arange({first}, len(A) + {first}), A)
    gamma_pade = {pade}
    return {{
        "gamma_pade": gamma_pade,
        "gamma_obs": gamma_obs,
        "phase": {phase},
        "valid": {valid},
        "possible": {possible},
    }}
"""


def _report(**given) -> cell:
    usual = {
        "first": 1,
        "pade": "(2 * theta - T * math.sqrt(2)) / (2 * theta + T * math.sqrt(2))",
        "phase": "phase",
        "valid": "T < math.sqrt(2) * theta",
        "possible": "-1 < gamma_obs < 1",
    }
    return cell(_REPORT.format(**usual | given))


wrong(
    "ch15.tool",
    _report(phase='"A" if gamma_pade < 1 else "B"'),
    "The phase is taken from the closed form, by which every model is in phase A. Take it from what was measured.",
    see="a-closed-form-of-the-base",
)
wrong("ch15.tool", _report(valid="True"), "Nothing is ever flagged, however long the text.", see="a-closed-form-of-the-base")
wrong(
    "ch15.tool",
    _report(valid="T < theta"),
    "The closed form changes sign at another length: solve it for 0.",
    see="a-closed-form-of-the-base",
)
wrong(
    "ch15.tool",
    _report(possible="gamma_obs > 0"),
    "That a value is positive does not make it possible: the closed form has an upper bound, too.",
    see="a-closed-form-of-the-base",
)
wrong(
    "ch15.tool",
    _report(possible="0 < gamma_obs < 1"),
    "Negative values are possible as well: look at the range of the closed form again.",
    see="a-closed-form-of-the-base",
)
wrong(
    "ch15.tool",
    _report(possible="gamma_obs < 1"),
    "The closed form has a lower bound as well.",
    see="a-closed-form-of-the-base",
)
wrong(
    "ch15.tool",
    _report(pade="(2 * theta - T) / (2 * theta + T)"),
    "The root of 2 is missing in the closed form.",
    see="a-closed-form-of-the-base",
)
wrong(
    "ch15.tool",
    _report(first=2),
    "The first weight is that of distance 1.",
    see="a-line-through-logarithms",
)

# ---------------------------------------------------------------- ch15.honest


def honest(of_predicted, of_measured, cannot):
    return {"of_predicted": of_predicted, "of_measured": of_measured, "cannot": cannot}


right("ch15.honest", honest(-0.214, 0.273, "e, c, a"))
wrong(
    "ch15.honest",
    honest(-0.273, 0.214, "ace"),
    "The two shares have changed places: of which number is each taken?",
    see="a-sum-that-always-fits",
)
wrong("ch15.honest", honest(0.214, 0.273, "ace"), "Signs count: measured is below predicted.", see="a-sum-that-always-fits")
wrong(
    "ch15.honest",
    honest(-0.15, 0.15, "ace"),
    "That is the gap itself. A share of a number is the gap divided by it.",
    see="a-sum-that-always-fits",
)
wrong(
    "ch15.honest",
    honest(-0.214, 0.273, "e"),
    "A statement that names the size of a cause says more than a gap can: something besides the whole must have been measured.",
    see="a-sum-that-always-fits",
)
wrong(
    "ch15.honest",
    honest(-0.214, 0.273, "abcde"),
    "Two of the statements only repeat what the two numbers are.",
    see="a-sum-that-always-fits",
)

wrong(
    "ch15.honest",
    honest(-21.4, 27.3, "ace"),
    "These are percent. A share of the whole is a number like 0.1.",
    see="a-sum-that-always-fits",
)
wrong(
    "ch15.honest",
    honest(-0.214, 0.273, "bd"),
    "You listed what the gap does support. The others are asked for.",
    see="a-sum-that-always-fits",
)

# ---------------------------------------------------------------- changes that make no difference

equivalent(
    "ch15.slope",
    "`return (gamma, 'A' if gamma <= 1 else 'B')`",
    "an exponent that is 1 to the last bit comes of no logarithms; rounding decides there",
)
equivalent("ch15.null", "`sums = inverse.flip(…).cumsum(…).flip(…)`", "the only axis of a vector is its first and its last")
equivalent("ch15.maxent", "`low, high = (…)`", "any interval that holds the exponents from −5 to 5 will do")
for halvings in ("199", "201", "400"):
    equivalent("ch15.maxent", f"`for _ in range({halvings}):`", "the interval has shrunk to one float long before")
equivalent(
    "ch15.maxent",
    "`if float((-middle * log_r).softmax(0) @ log_r) >= target:`",
    "where the mean is right, either half of the interval ends there",
)
for changed in ("return (-middle * log_r).softmax(-1)", "if float((-middle * log_r).softmax(-1) @ log_r) > target:"):
    equivalent("ch15.maxent", f"`{changed}`", "the only axis of a vector is its first and its last")
equivalent("ch15.heldout", "`left, right = (…)`", "any interval that holds the multipliers from −4 to 4 will do")
equivalent(
    "ch15.heldout",
    "`return float(p_test @ (-eta * f).log_softmax(-1)) + math.log(len(f))`",
    "the only axis of a vector is its first and its last",
)
equivalent(
    "ch15.heldout",
    "`return p_test @ (-eta * f).log_softmax(0) + math.log(len(f))`",
    "a tensor with one number counts as a number",
)
for halvings in ("99", "101", "200"):
    equivalent("ch15.heldout", f"`for _ in range({halvings}):`", "the interval has shrunk to one float long before")
equivalent(
    "ch15.heldout",
    "`if float((-eta * f).softmax(0) @ f) >= float(p @ f):`",
    "where the mean is right, either half of the interval ends there",
)
equivalent(
    "ch15.heldout",
    "`if float((-eta * f).softmax(-1) @ f) > float(p @ f):`",
    "the only axis of a vector is its first and its last",
)
equivalent(
    "ch15.heldout",
    "`p, p_test = (x[low:high + 1].double() / x[low:high + 1].sum() for x in (train, test))`",
    "a sum of a few float32 weights is right to seven digits, and the task asks for six places",
)
equivalent(
    "ch15.tool",
    "`return {'gamma_pade': gamma_pade, 'gamma_obs': gamma_obs, 'phase': phase, 'valid': T <= math.sqrt(2) * theta, …}`",
    "the root of 2 is irrational: no length and base are equal there",
)
equivalent(
    "ch15.tool",
    "`return {…'possible': -1 <= gamma_obs < 1}`",
    "an exponent that is −1 to the last bit comes of no logarithms; rounding decides there",
)
