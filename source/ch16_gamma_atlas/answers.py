"""Other right answers and named wrong answers of the exercises of ch16."""

import math

import numpy as np

from autograder.answers import cell, equivalent, right, wrong
from course import data

# ---------------------------------------------------------------- ch16.below


@right("ch16.below")
def by_scipy(gamma, null, setting):
    from scipy.stats import binomtest

    gamma, null = np.array(gamma), np.array(null)
    if np.isnan(gamma).any() or np.isnan(null).any():
        raise ValueError
    setting = np.array(setting)
    means = np.array([gamma[setting == name].mean() for name in sorted(set(setting.tolist()))])
    below, above = int((means < 1).sum()), int((means > 1).sum())
    p = binomtest(below, below + above).pvalue if below + above else 1.0
    return float((gamma < 1).mean()), float((null < 1).mean()), float(p)


_BELOW = """
def below_one(gamma, null, setting):
    if any(math.isnan(g) for g in {seen}):
        raise ValueError("an exponent is missing")
    by_setting = {{}}
    for {name}, g in {pairs}:
        by_setting.setdefault({name}, []).append(g)
    means = [{mean} for each in by_setting.values()]
    below, above = sum(m < 1 for m in means), sum({above} for m in means)
    n, few = below + above, min(below, above)
    p = {p}
    return sum(g < 1 for g in gamma) / len(gamma), sum(g < 1 for g in {of}) / len(null), p
"""
_PLAIN = {
    "seen": "(*gamma, *null)",
    "name": "name",
    "pairs": "zip(setting, gamma, strict=True)",
    "mean": "sum(each) / len(each)",
    "above": "m > 1",
    "p": "min(1.0, 2 * sum(math.comb(n, k) for k in range(few + 1)) / 2**n)",
    "of": "null",
}


def _below(**changed: str) -> cell:
    return cell(_BELOW.format(**(_PLAIN | changed)))


wrong(
    "ch16.below",
    _below(pairs="enumerate(gamma)"),
    "Every model voted. Seeds of one setting are not independent witnesses; the setting has the vote.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(p="sum(math.comb(n, k) for k in range(few + 1)) / 2**n"),
    "That is one side. Nobody said beforehand on which side the majority would be.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(p="2 * sum(math.comb(n, k) for k in range(few + 1)) / 2**n"),
    "Some of your probabilities exceed 1: the even split is counted from both sides.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(above="m >= 1"),
    "A setting whose mean is exactly 1 was made to vote.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(p="min(1.0, 2 * math.comb(n, few) / 2**n)"),
    "Only the split that came was counted, without those that are more lopsided.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(seen="gamma"),
    "A NaN among the untrained models went through: every comparison with it is false, so it counted as not below.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(of="gamma"),
    "Both shares are those of the trained models. The null is the same models before training.",
    see="reading-the-map",
)
wrong(
    "ch16.below",
    _below(mean="sorted(each)[len(each) // 2]"),
    "A setting voted by its middle model. The task asks for the mean.",
    see="reading-the-map",
)

# ---------------------------------------------------------------- ch16.median


@right("ch16.median")
def by_statistics(by_seed, draws, level):
    from statistics import median

    values = sorted(median(g for s in drawn for g in by_seed[s]) for drawn in draws)

    def at(share):
        place = share * (len(values) - 1)
        i = min(int(place), len(values) - 1)
        j = min(i + 1, len(values) - 1)
        return values[i] + (place - i) * (values[j] - values[i])

    return median(g for each in by_seed for g in each), at((1 - level) / 2), at((1 + level) / 2)


@wrong(
    "ch16.median",
    "Where the number is even you took the lower of the two middle exponents instead of their mean.",
    see="one-number-and-its-interval",
)
def the_lower_median(by_seed, draws, level):
    lower = lambda values: sorted(values)[(len(values) - 1) // 2]  # noqa: E731
    medians = [lower([g for s in drawn for g in by_seed[s]]) for drawn in draws]
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(lower([g for each in by_seed for g in each])), float(low), float(high)


@wrong(
    "ch16.median",
    "You took the median of the seeds' medians. A seed with more models should weigh more, and pooled medians differ.",
    see="one-number-and-its-interval",
)
def median_of_medians(by_seed, draws, level):
    each = [np.median(one) for one in by_seed]
    medians = [np.median([each[s] for s in drawn]) for drawn in draws]
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(each)), float(low), float(high)


@wrong(
    "ch16.median",
    "A seed that was drawn twice came in once. Repetitions are what makes draws differ in the right way.",
    see="one-number-and-its-interval",
)
def repetitions_lost(by_seed, draws, level):
    medians = [np.median([g for s in set(drawn) for g in by_seed[s]]) for drawn in draws]
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median([g for each in by_seed for g in each])), float(low), float(high)


@wrong(
    "ch16.median",
    "All that the level leaves out was cut off on each side, so twice as much is missing.",
    see="one-number-and-its-interval",
)
def cuts_twice(by_seed, draws, level):
    medians = [np.median([g for s in drawn for g in by_seed[s]]) for drawn in draws]
    low, high = np.quantile(medians, sorted([1 - level, level]))
    return float(np.median([g for each in by_seed for g in each])), float(low), float(high)


@wrong("ch16.median", "You drew means; the task asks for medians.", see="one-number-and-its-interval")
def draws_means(by_seed, draws, level):
    means = [np.mean([g for s in drawn for g in by_seed[s]]) for drawn in draws]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median([g for each in by_seed for g in each])), float(low), float(high)


@wrong(
    "ch16.median",
    "The first number is the middle of the draws. The task asks for the median of what was measured.",
    see="one-number-and-its-interval",
)
def middle_of_the_draws(by_seed, draws, level):
    medians = [np.median([g for s in drawn for g in by_seed[s]]) for drawn in draws]
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(medians)), float(low), float(high)


@wrong(
    "ch16.median",
    "You put the lists that you were given in order, where they lie. Whoever gave them still needs them as they were.",
    see="one-number-and-its-interval",
)
def sorts_what_was_given(by_seed, draws, level):
    for each in by_seed:
        each.sort()
    medians = [np.median([g for s in drawn for g in by_seed[s]]) for drawn in draws]
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median([g for each in by_seed for g in each])), float(low), float(high)


# ---------------------------------------------------------------- ch16.guess

wrong("ch16.guess", "everything", "Name one of the four, before you look.", see="one-thing-at-a-time")
wrong(
    "ch16.guess",
    "author",
    "The author is another question; the four are base, length, order and depth.",
    see="one-thing-at-a-time",
)

# ---------------------------------------------------------------- ch16.confounded


@right("ch16.confounded")
def by_taking_parts_off(x, z, m, m_z, noise):
    n = len(x)
    x, z = [a - sum(x) / n for a in x], [a - sum(z) / n for a in z]
    gamma = [m * a + m_z * b + c for a, b, c in zip(x, z, noise, strict=True)]
    dot = lambda v, w: math.fsum(a * b for a, b in zip(v, w, strict=True))  # noqa: E731
    rest = [a - dot(x, z) / dot(z, z) * b for a, b in zip(x, z, strict=True)]
    if dot(rest, rest) < 1e-12 * dot(x, x):
        raise ValueError
    return dot(x, gamma) / dot(x, x), dot(rest, gamma) / dot(rest, rest)


@right("ch16.confounded")
def as_one_array(x, z, m, m_z, noise):
    table = np.stack([np.ones(len(x)), x, z], axis=1)
    if np.linalg.matrix_rank(table) < 3:
        raise ValueError
    gamma = table @ [0.9, m, m_z] + noise
    return np.array([np.polyfit(x, gamma, 1)[0], np.linalg.lstsq(table, gamma, rcond=None)[0][1]])


_CONFOUNDED = """
def confounded(x, z, m, m_z, noise):
    x, z, noise = (np.array(each, dtype=float) for each in (x, z, noise))
    gamma = 0.9 + m * x + m_z * z{noise}
    table = np.stack([np.ones_like(x), x, z], axis=1)
    if {refused}:
        raise ValueError("x and z rise together")
    alone = np.linalg.lstsq(table[:, :2], gamma, rcond=None)[0][1]
    beside = {beside}
    return {back}
"""
_SLOPES = {
    "noise": " + noise",
    "refused": "np.linalg.matrix_rank(table) < 3",
    "beside": "np.linalg.lstsq(table, gamma, rcond=None)[0][1]",
    "back": "float(alone), float(beside)",
}


def _slopes(**changed: str) -> cell:
    return cell(_CONFOUNDED.format(**(_SLOPES | changed)))


wrong(
    "ch16.confounded",
    _slopes(beside="np.polyfit(x, gamma - np.polyval(np.polyfit(z, gamma, 1), z), 1)[0]"),
    "You took z's part off γ only. x still carries its own part of z, so the slope comes out too small.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(beside="np.linalg.lstsq(table[:, 1:], gamma, rcond=None)[0][0]"),
    "With z in the table the column of ones was left out, so the line has to go through the origin.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(noise=""),
    "The noise was left out of γ.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(refused="False"),
    "Where x and z lie on a line you answered all the same. Many pairs of slopes fit equally well there, and lstsq picks one of them.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(beside="m"),
    "You returned the slope that you put in. With noise a fit finds it only roughly; return what the fit finds.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(beside="np.linalg.lstsq(table, gamma, rcond=None)[0][2]"),
    "The second slope is that of z. The task asks for that of x, beside z.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(refused="abs(np.corrcoef(x, z)[0, 1]) > 0.9"),
    "You gave up where x and z are merely alike. As long as they are not exactly on a line, the slopes can be told apart.",
    see="a-confounded-comparison",
)

wrong(
    "ch16.confounded",
    _slopes(refused="np.linalg.det(table.T @ table) == 0"),
    "You asked whether a computed number is exactly 0 or 1. Rounding decides that; leave it a margin.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.confounded",
    _slopes(refused="np.corrcoef(x, z)[0, 1] > 1 - 1e-12"),
    "Only lines that rise were refused. On a line that falls the slopes cannot be told apart either.",
    see="a-confounded-comparison",
)

# ---------------------------------------------------------------- ch16.design

wrong(
    "ch16.design",
    {"isolates": "bce", "trivial": "g"},
    "A base that is changed after training tells what the trained model does with a base it does not know: another question.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.design",
    {"isolates": "b", "trivial": "g"},
    "One more design isolates the base: crossing it with another setting takes nothing away, and shows whether the answer depends on it.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.design",
    {"isolates": "be", "trivial": "f"},
    "The closed form knows nothing of where a model looks: it has base and length only.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.design",
    {"isolates": "be", "trivial": "h"},
    "The closed form contains no training, so none can stop in it.",
    see="a-confounded-comparison",
)
wrong(
    "ch16.design",
    {"isolates": "abde", "trivial": "h"},
    "In some of your designs the base changes together with something else. And no training enters the closed form.",
    see="a-confounded-comparison",
)

# ---------------------------------------------------------------- ch16.left_out


@right("ch16.left_out")
def by_loops(theta, T, gamma):
    groups = {}
    for a, b, g in zip(theta, T, gamma, strict=True):
        groups.setdefault((a, b), []).append(g)
    if len(groups) < 3:
        raise ValueError
    formula = lambda pair: (1 - pair[1] / (math.sqrt(2) * pair[0])) / (1 + pair[1] / (math.sqrt(2) * pair[0]))  # noqa: E731
    total = [0.0, 0.0, 0.0]
    for out, values in groups.items():
        rest = [(formula(pair), g) for pair, each in groups.items() if pair != out for g in each]
        truth, mean_x = sum(values) / len(values), sum(a for a, _ in rest) / len(rest)
        mean_y = sum(b for _, b in rest) / len(rest)
        slope = sum((a - mean_x) * (b - mean_y) for a, b in rest) / sum((a - mean_x) ** 2 for a, _ in rest)
        for k, told in enumerate((mean_y, formula(out), mean_y + slope * (formula(out) - mean_x))):
            total[k] += abs(told - truth) / len(groups)
    return tuple(total)


_LEFT_OUT = """
def left_out(theta, T, gamma):
    pairs = list(zip(theta, T, strict=True))
    if {refused}:
        raise ValueError("at least three settings are needed")
    gamma = np.array(gamma, dtype=float)
    pade = np.array([decay_law.gamma_pade(*pair) for pair in pairs])
    errors = []
    for pair in {units}:
        here = np.array([{inside} for i, each in enumerate(pairs)])
        rest = {rest}
        slope, offset = np.polyfit(pade[{fit}], gamma[{fit}], 1)
        guesses = np.array([{constant}, pade[here][0], offset + slope * pade[here][0]])
        errors.append({error})
    return tuple(float(e) for e in {mean})
"""
_LEAVING = {
    "refused": "len(set(pairs)) < 3",
    "units": "dict.fromkeys(pairs)",
    "inside": "each == pair",
    "rest": "~here",
    "fit": "rest",
    "constant": "gamma[rest].mean()",
    "error": "abs(guesses - gamma[here].mean())",
    "mean": "np.mean(errors, axis=0)",
}


def _leaving(**changed: str) -> cell:
    return cell(_LEFT_OUT.format(**(_LEAVING | changed)))


wrong(
    "ch16.left_out",
    _leaving(units="range(len(pairs))", inside="i == pair"),
    "You left out one model at a time. Its sisters with other seeds stay in, and they know the answer.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(rest="here | True"),
    "Nothing was left out: the fit and the constant have seen what they predict.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(fit="here | True"),
    "The line was fitted to all models, those of the setting that it then predicts among them.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(error="np.abs(guesses[:, None] - gamma[here]).mean(axis=1)"),
    "You compared with single models, whose noise no prediction of a setting can know. The truth is the mean of the setting.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(constant="np.mean([gamma[[p == q for p in pairs]].mean() for q in set(pairs) if q != pair])"),
    "Your constant is the mean of the settings' means. Where seeds are missing that is not the mean of the models.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(error="(guesses - gamma[here].mean()) ** 2", mean="np.sqrt(np.mean(errors, axis=0))"),
    "That is the root of the mean squared error. The task asks for the mean absolute one.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(inside="each[0] == pair[0]"),
    "You left out all settings with the same base. A setting is a pair of base and length.",
    see="a-prediction-against-a-constant",
)
wrong(
    "ch16.left_out",
    _leaving(refused="len(pairs) < 3"),
    "You counted models where the task counts settings.",
    see="a-prediction-against-a-constant",
)

wrong(
    "ch16.left_out",
    _leaving(units="dict.fromkeys(pade.tolist())", inside="pade[i] == pair"),
    "Settings with the same value of the closed form were taken for one. Two bases and two lengths can have it in common.",
    see="a-prediction-against-a-constant",
)

# ---------------------------------------------------------------- ch16.shares

wrong(
    "ch16.shares",
    {"of_text": 0.75, "of_base": 0.1429, "of_both": 0.0357, "of_seeds": 0.0714},
    "These are shares of the effects themselves. Variance is made of squares.",
    see="where-the-variance-is",
)
wrong(
    "ch16.shares",
    {"of_text": 0.9629, "of_base": 0.0349, "of_both": 0.0022, "of_seeds": 0.0},
    "The spread within the cells is missing from the whole.",
    see="where-the-variance-is",
)
wrong(
    "ch16.shares",
    {"of_text": 0.9545, "of_base": 0.0346, "of_both": 0.0087, "of_seeds": 0.0022},
    "The last two are exchanged: cells lie 0.01 off the sum of the factors, seeds 0.02 off their cell.",
    see="where-the-variance-is",
)

# ---------------------------------------------------------------- ch16.trust


@right("ch16.trust")
def by_polyfit(parts, low, high):
    x = np.log(np.arange(low, high + 1))

    def fit(profile):
        y = np.log(np.asarray(profile, dtype=float)[low : high + 1])
        slope, offset = np.polyfit(x, y, 1)
        rest, total = ((y - offset - slope * x) ** 2).sum(), ((y - y.mean()) ** 2).sum()
        return -float(slope), float(1 - rest / total) if np.ptp(y) > 0 else 0.0

    gamma, r2 = fit(np.mean(parts, axis=0))
    return gamma, float(data.interval([fit(part)[0] for part in parts])[1]), r2


_TRUST = """
def trust(parts, low, high):
    x = np.log({distances})
    x = x - x.mean()

    def line(profile):
        y = np.log(np.array(profile, dtype=float)[{window}])
        slope = float(x @ y / (x @ x))
        total = float(((y - y.mean()) ** 2).sum())
        if y.max() == y.min():
            return -slope, {flat}
        return -slope, {r2}

    each = [line(part)[0] for part in parts]
    gamma, r2 = line({mean})
    return {gamma}, float({half}), {told}
"""
_TRUSTED = {
    "distances": "np.arange(low, high + 1)",
    "window": "low : high + 1",
    "flat": "0.0",
    "r2": "1 - float(((y - y.mean() - slope * x) ** 2).sum()) / total",
    "mean": "np.mean(np.array(parts, dtype=float), axis=0)",
    "gamma": "gamma",
    "half": "data.interval(each)[1]",
    "told": "r2",
}


def _trust(**changed: str) -> cell:
    return cell(_TRUST.format(**(_TRUSTED | changed)))


wrong(
    "ch16.trust",
    _trust(half="1.96 * np.std(each, ddof=1) / len(each) ** 0.5"),
    "1.96 belongs to many parts. With a few of them Student's t is larger.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(half="data.interval(each)[1] * len(each) ** 0.5"),
    "That is how far one part may lie, not how far their mean: the square root of their number is missing.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(gamma="float(np.mean(each))"),
    "Your γ is the mean of the parts' exponents. The exponent of the mean profile is another number.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(told="float(np.mean([line(part)[1] for part in parts]))"),
    "Your R² is the mean over the parts. Asked is that of the mean profile, which is smoother.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(flat="1.0"),
    "A flat profile leaves nothing to explain, and the task calls that 0.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(distances="np.arange(low, high)", window="low : high"),
    "The last distance of the window is missing.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(gamma="-gamma"),
    "The exponent is the slope downwards: a weight that falls has a positive one.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(r2="(1 - float(((y - y.mean() - slope * x) ** 2).sum()) / total) ** 0.5"),
    "That is the correlation without its sign. Its square is asked for.",
    see="what-a-straight-line-does-not-say",
)

wrong(
    "ch16.trust",
    _trust(told="0.0 if all(np.ptp(part[low : high + 1]) == 0 for part in parts) else r2", flat="1.0"),
    "You asked whether the parts are flat. The mean can be flat where they are not.",
    see="what-a-straight-line-does-not-say",
)
wrong(
    "ch16.trust",
    _trust(mean="np.exp(np.mean(np.log(np.array(parts, dtype=float)), axis=0))"),
    "You took the mean of the logarithms. Asked are the logarithms of the mean.",
    see="what-a-straight-line-does-not-say",
)

# ---------------------------------------------------------------- small changes that make no difference

for height in ("m * x", "1.8 + m * x"):
    equivalent("ch16.confounded", f"`gamma = {height} + m_z * z + noise`", "the height of a line has no part in its slope")
equivalent(
    "ch16.confounded",
    "`return (float(alone), float(np.linalg.lstsq(table, gamma)[0][1]))`",
    "the cut of singular values that numpy takes without rcond is one of rounding",
)
equivalent(
    "ch16.confounded",
    "`alone = np.linalg.lstsq(table[:, :2], gamma, rcond=None)[0][-1]`",
    "of two numbers the last is the second",
)
equivalent(
    "ch16.confounded",
    "`table = np.stack([np.ones_like(x), x, z], axis=-1)`",
    "the new axis of three vectors is the second and the last",
)
for given in ("theta, T", "theta, T, strict=False"):
    equivalent("ch16.left_out", f"`pairs = list(zip({given}))`", "the task's lists have one length")
equivalent(
    "ch16.left_out",
    "`guesses = [gamma[~here].mean(), pade[here][0], offset + slope * pade[here][0]]`",
    "a list less a number of numpy is an array",
)
for first, second in (("-1", "0"), ("0", "-1")):
    equivalent(
        "ch16.left_out",
        f"`guesses = np.array([gamma[~here].mean(), pade[here][{first}], offset + slope * pade[here][{second}]])`",
        "all models of a setting have one closed form",
    )
equivalent("ch16.trust", "`slope = x @ y / (x @ x)`", "a number of numpy is a number")
equivalent("ch16.trust", "`return (-slope, -0.0 if flat …`", "zero has no sign that a test of numbers sees")
