"""Other right answers and named wrong answers of chapter f08."""

import math

import numpy as np
import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f08.penalty


@right("f08.penalty")
def by_second_moments(X, y, w, rho):
    parts = X * w  # (N, d)
    mean_square = parts.sum(dim=1) ** 2 + (1 / (1 - rho) - 1) * (parts**2).sum(dim=1)
    return (y**2 - 2 * y * parts.sum(dim=1) + mean_square).mean()


@right("f08.penalty")
def example_by_example(X, y, w, rho):
    total = torch.zeros((), dtype=X.dtype)
    for x, target in zip(X, y, strict=True):
        total = total + (target - x @ w) ** 2
        for a, b in zip(x, w, strict=True):
            total = total + rho / (1 - rho) * (a * b) ** 2
    return total / len(y)


@wrong(
    "f08.penalty",
    "The factors have mean one, but their squares do not: the error also has a variance.",
    see="dropout-a-random-factor-of-mean-one",
)
def no_variance(X, y, w, rho):
    return ((y - X @ w) ** 2).mean()


@wrong(
    "f08.penalty",
    "You took ρ(1 − ρ), the variance of a factor that is 0 or 1. Here the kept entries are divided by 1 − ρ.",
    see="dropout-a-random-factor-of-mean-one",
)
def of_zero_or_one(X, y, w, rho):
    return ((y - X @ w) ** 2 + rho * (1 - rho) * (X**2 @ w**2)).mean()


@wrong(
    "f08.penalty", "The variance of a factor is not ρ: compute the mean of its square.", see="dropout-a-random-factor-of-mean-one"
)
def rho_itself(X, y, w, rho):
    return ((y - X @ w) ** 2 + rho * (X**2 @ w**2)).mean()


@wrong(
    "f08.penalty",
    "You took the mean of the square of a factor for its variance: the squared mean, 1, must come off.",
    see="dropout-a-random-factor-of-mean-one",
)
def square_for_variance(X, y, w, rho):
    return ((y - X @ w) ** 2 + (X**2 @ w**2) / (1 - rho)).mean()


@wrong(
    "f08.penalty",
    "One factor for the whole sum: you squared the sum. Each input has a factor of its own, so squares are summed.",
    see="dropout-a-random-factor-of-mean-one",
)
def one_factor_for_all(X, y, w, rho):
    return ((y - X @ w) ** 2 + rho / (1 - rho) * (X @ w) ** 2).mean()


@wrong(
    "f08.penalty",
    "Your penalty forgets the inputs: a weight on a large input is shaken more than one on a small input.",
    see="dropout-a-random-factor-of-mean-one",
)
def weights_only(X, y, w, rho):
    return ((y - X @ w) ** 2).mean() + rho / (1 - rho) * (w**2).sum()


@wrong("f08.penalty", "You summed over the examples: the loss is their mean.", see="dropout-a-random-factor-of-mean-one")
def summed(X, y, w, rho):
    return ((y - X @ w) ** 2 + rho / (1 - rho) * (X**2 @ w**2)).sum()


@wrong(
    "f08.penalty",
    "You took the mean of the penalty over the inputs too. The contributions of the inputs add.",
    see="dropout-a-random-factor-of-mean-one",
)
def mean_over_inputs(X, y, w, rho):
    return ((y - X @ w) ** 2).mean() + rho / (1 - rho) * (X**2 * w**2).mean()


# ---------------------------------------------------------------- f08.is_dropout


@right("f08.is_dropout")
def by_neighbours(f):
    x = torch.cat([torch.full((5000,), 1.5), torch.full((5000,), -2.0)])[torch.arange(10_000) * 7 % 10_000].reshape(50, 200)
    for rho in (0.0, 0.25, 0.75):
        if not torch.equal(f(x, rho, False), x):
            return False
        calls = [f(x, rho, True) for _ in range(10)]
        kept = torch.stack([(out != 0).double() for out in calls])  # (10, 50, 200)
        for out, k in zip(calls, kept, strict=True):
            if (out - k * x / (1 - rho)).abs().max() > 1e-5 or abs(k.mean() - 1 + rho) > 0.03:
                return False
        if rho == 0:
            continue
        centred = (kept - (1 - rho)) / math.sqrt(rho * (1 - rho))
        products = [centred[1:] * centred[:-1], centred[:, 1:] * centred[:, :-1], centred[..., 1:] * centred[..., :-1]]
        if any(abs(product.mean()) > 0.03 for product in products) or len({int(k.sum()) for k in kept}) == 1:
            return False
    return True


@right("f08.is_dropout")
def by_the_spread_of_counts(f):
    x = torch.arange(1.0, 10_001.0).reshape(100, 100)
    x = torch.where(torch.arange(100) % 3 == 0, -x, x)
    if not (f(x, 0.5, False) == x).all() or not (f(x, 0.0, False) == x).all() or not (f(x, 0.0, True) == x).all():
        return False
    for rho in (0.2, 0.7):
        outs = [f(x, rho, True) for _ in range(12)]
        if not (f(x, rho, False) == x).all():
            return False
        zeros = torch.stack([out == 0 for out in outs]).double()
        if abs(zeros.mean() - rho) > 0.015:
            return False
        for out in outs:
            if not torch.allclose(out[out != 0], (x / (1 - rho))[out != 0], rtol=1e-5):
                return False
        if zeros.sum(dim=(1, 2)).unique().numel() < 3:
            return False
        for axis in range(3):
            n = zeros.shape[axis]
            spread = zeros.mean(dim=axis).std() / math.sqrt(rho * (1 - rho) / n)
            if abs(spread - 1) > 0.2:
                return False
    return True


@wrong(
    "f08.is_dropout",
    "You test the mean over many calls only. Noise of another form, or one mask for a whole row, has the right mean too.",
    see="dropout-a-random-factor-of-mean-one",
)
def the_mean_only(f):
    x = torch.ones(100, 50)
    for rho in (0.2, 0.5):
        mean = torch.stack([f(x, rho, True) for _ in range(20)]).mean()
        if abs(mean - 1) > 0.2 or not torch.equal(f(x, rho, False), torch.ones(100, 50)):
            return False
    return True


@wrong("f08.is_dropout", "Your test never asks what happens in evaluation.", see="training-and-evaluation")
def training_only(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.0, 0.3, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.02:
            return False
        for dim in (0, 1, 2) if rho else ():
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * rho * (1 - rho)) < 1.6:
                return False
        if rho > 0 and len(kept.sum(dim=(1, 2)).unique()) == 1:
            return False
    return True


@wrong(
    "f08.is_dropout",
    "You check values and rate, but not independence: one mask for all rows, or the same mask in every call, passes your test.",
    see="dropout-a-random-factor-of-mean-one",
)
def no_independence(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.0, 0.3, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.1:
            return False
    return True


@wrong(
    "f08.is_dropout",
    "Your test never counts how many entries are dropped: a wrong rate passes.",
    see="dropout-a-random-factor-of-mean-one",
)
def no_rate(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.3, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)):
            return False
        share = kept.mean()
        for dim in (0, 1, 2):
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * share * (1 - share) + 1e-9) < 1.6:
                return False
        if len(kept.sum(dim=(1, 2)).unique()) == 1:
            return False
    return True


@wrong(
    "f08.is_dropout",
    "You try one half as the only rate. There, dropping with ρ and keeping with ρ are the same.",
    see="dropout-a-random-factor-of-mean-one",
)
def one_half_only(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    outputs = torch.stack([f(x, 0.5, True) for _ in range(8)])
    kept = (outputs != 0).float()
    if not torch.equal(f(x, 0.5, False), x):
        return False
    if not torch.allclose(outputs, kept * x / 0.5) or abs(kept.mean() - 0.5) > 0.02:
        return False
    for dim in (0, 1, 2):
        if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] / 4) < 1.6:
            return False
    return len(kept.sum(dim=(1, 2)).unique()) > 1


@wrong(
    "f08.is_dropout",
    "All your entries are positive. A function that spares negative ones passes.",
    see="dropout-a-random-factor-of-mean-one",
)
def positive_only(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50)
    for rho in (0.0, 0.3, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.02:
            return False
        for dim in (0, 1, 2) if rho else ():
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * rho * (1 - rho)) < 1.6:
                return False
        if rho > 0 and len(kept.sum(dim=(1, 2)).unique()) == 1:
            return False
    return True


@wrong(
    "f08.is_dropout",
    "All your entries have the same size. A function that drops large entries more often than small ones passes.",
    see="dropout-a-random-factor-of-mean-one",
)
def one_size_only(f):
    x = torch.ones(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.0, 0.3, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.02:
            return False
        for dim in (0, 1, 2) if rho else ():
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * rho * (1 - rho)) < 1.6:
                return False
        if rho > 0 and len(kept.sum(dim=(1, 2)).unique()) == 1:
            return False
    return True


@wrong(
    "f08.is_dropout",
    "You miss a dependence between all entries of a call: if the number of zeros is always the same, they are not independent.",
    see="dropout-a-random-factor-of-mean-one",
)
def fixed_number_accepted(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.0, 0.3, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.02:
            return False
        for dim in (0, 1, 2) if rho else ():
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * rho * (1 - rho)) < 1.6:
                return False
    return True


@wrong(
    "f08.is_dropout",
    "You allow the rate to be off by a tenth. A wrong rate may be off by 0.05 only.",
    see="dropout-a-random-factor-of-mean-one",
)
def rate_to_a_tenth(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.0, 0.2, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(8)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.1:
            return False
        for dim in (0, 1, 2) if rho else ():
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * rho * (1 - rho)) < 1.6:
                return False
        if rho > 0 and len(kept.sum(dim=(1, 2)).unique()) == 1:
            return False
    return True


@wrong(
    "f08.is_dropout",
    "You demand exactly the share ρ of zeros in every call. Independent entries give a number that varies from call to call.",
    see="dropout-a-random-factor-of-mean-one",
)
def exact_share(f):
    x = torch.linspace(1, 3, 10_000)
    return all(
        int((f(x.clone(), rho, True) == 0).sum()) == round(10_000 * rho) and torch.equal(f(x.clone(), rho, False), x)
        for rho in (0.3, 0.8)
    )


@wrong(
    "f08.is_dropout",
    "You call f more often than the task allows. Each call gives up to 10,000 entries: a few calls are enough.",
    see="dropout-a-random-factor-of-mean-one",
)
def thousand_calls(f):
    x = torch.linspace(1, 3, 2500).reshape(50, 50) * (-1) ** torch.arange(50)
    for rho in (0.0, 0.2, 0.8):
        outputs = torch.stack([f(x, rho, True) for _ in range(400)])
        kept = (outputs != 0).float()
        if not torch.equal(f(x, rho, False), x):
            return False
        if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) > 0.02:
            return False
        for dim in (0, 1, 2) if rho else ():
            if not 0.6 < kept.sum(dim=dim).var() / (kept.shape[dim] * rho * (1 - rho)) < 1.6:
                return False
        if rho > 0 and len(kept.sum(dim=(1, 2)).unique()) == 1:
            return False
    return True


equivalent("f08.is_dropout", "`if not 0.6 <= ratio < 1.6:`", "no ratio hits the limit itself")
for calls in (7, 9, 16):
    equivalent(
        "f08.is_dropout",
        f"`outputs = torch.stack([f(x, rho, True) for _ in range({calls})])`",
        "the number of calls is free, up to 60 in all",
    )
equivalent("f08.is_dropout", "`for rho in (-0.0, 0.3, 0.8):`", "the same number")
equivalent("f08.is_dropout", "`for rho in (0.0, 0.6, 0.8):`", "a wrong rate shows at 0.8 alone")
for limit in ("> 0.04", ">= 0.02"):
    equivalent(
        "f08.is_dropout",
        f"`if not torch.allclose(outputs, kept * x / (1 - rho)) or abs(kept.mean() - (1 - rho)) {limit}:`",
        "chance stays below 0.02, and a wrong rate is off by 0.05",
    )
equivalent(
    "f08.is_dropout", "`x = torch.linspace(…`", "a tester may take any numbers of both signs and several sizes that are not 0"
)

# ---------------------------------------------------------------- f08.convention

right("f08.convention", 0.1111)
right("f08.convention", cell("eps_for_torch = 1 / 9"))
right("f08.convention", cell("eps_for_torch = sympy.Rational(1, 9)"))
wrong("f08.convention", 0.1, "With 0.1, torch leaves the true class more than 0.9.", see="label-smoothing-a-mixed-target")
wrong(
    "f08.convention",
    0.09,
    "You went the other way: that is what the paper's program needs to copy torch's 0.1.",
    see="label-smoothing-a-mixed-target",
)
wrong(
    "f08.convention",
    0.1 / 9,
    "That is what each wrong class gets. torch's ε is shared by all the classes.",
    see="label-smoothing-a-mixed-target",
)
wrong(
    "f08.convention",
    0.11,
    "Close, but the share that torch gives back to the true class is a tenth of the new ε, not of the old one.",
    see="label-smoothing-a-mixed-target",
)

# ---------------------------------------------------------------- f08.honest


@right("f08.honest")
def by_numpy_polynomials(confidence, bins):
    c = confidence.detach().numpy()
    total = 0.0
    for m in range(1, bins + 1):
        inside = c[np.ceil(c * bins) == m]
        chances = np.ones(1)
        for x in inside:
            chances = np.polymul(chances, [x, 1 - x])  # highest number of right ones first
        total += np.abs(np.arange(len(inside), -1, -1) - inside.sum()) @ chances
    return float(total / len(c))


@right("f08.honest")
def by_a_table_of_counts(confidence, bins):
    by_bin = {}
    for c in confidence.tolist():
        by_bin.setdefault(math.ceil(c * bins), []).append(c)
    total = 0.0
    for inside in by_bin.values():
        table = {0: 1.0}
        for c in inside:
            new = {}
            for k, chance in table.items():
                new[k] = new.get(k, 0.0) + chance * (1 - c)
                new[k + 1] = new.get(k + 1, 0.0) + chance * c
            table = new
        total += math.fsum(chance * abs(k - math.fsum(inside)) for k, chance in table.items())
    return total / len(confidence)


@right("f08.honest")
def with_torch(confidence, bins):
    total = torch.zeros((), dtype=torch.float64)
    where = (confidence * bins).ceil()
    for m in range(1, bins + 1):
        inside = confidence[where == m]
        chances = torch.ones(1, dtype=torch.float64)
        for c in inside:
            padded = torch.zeros(len(chances) + 1, dtype=torch.float64)
            padded[:-1] += chances * (1 - c)
            padded[1:] += chances * c
            chances = padded
        total += (chances * (torch.arange(len(chances)) - inside.sum()).abs()).sum()
    return (total / len(confidence)).item()


@wrong(
    "f08.honest",
    "The mean of right minus confidence is 0, but the ECE takes its size before the mean.",
    see="how-much-of-it-is-noise",
)
def zero(confidence, bins):
    return 0.0


@wrong(
    "f08.honest",
    "That is the formula with √(2/π). It is an approximation for bins with many forecasts; the task asks for the exact mean.",
    see="how-much-of-it-is-noise",
)
def normal_approximation(confidence, bins):
    where = torch.ceil(confidence * bins)
    roots = [(confidence * (1 - confidence))[where == m].sum().sqrt().item() for m in range(1, bins + 1)]
    return math.sqrt(2 / math.pi) * sum(roots) / len(confidence)


@wrong(
    "f08.honest",
    "That is the bound by standard deviations. The mean size of a number of mean 0 is mostly smaller than its standard deviation.",
    see="how-much-of-it-is-noise",
)
def the_bound(confidence, bins):
    where = torch.ceil(confidence * bins)
    return sum((confidence * (1 - confidence))[where == m].sum().sqrt().item() for m in range(1, bins + 1)) / len(confidence)


@wrong(
    "f08.honest",
    "You replaced every confidence by the mean of its bin. The forecasts differ, and so do their coins.",
    see="how-much-of-it-is-noise",
)
def binomial_with_the_mean(confidence, bins):
    where, total = torch.ceil(confidence * bins), 0.0
    for m in range(1, bins + 1):
        inside = confidence[where == m]
        n = len(inside)
        if n:
            c = inside.mean().item()
            total += sum(math.comb(n, k) * c**k * (1 - c) ** (n - k) * abs(k - n * c) for k in range(n + 1))
    return total / len(confidence)


@wrong(
    "f08.honest",
    "You gave every bin the same weight. In the ECE a bin counts by its share of the forecasts.",
    see="the-expected-calibration-error",
)
def bins_count_alike(confidence, bins):
    where, means = torch.ceil(confidence * bins), []
    for m in range(1, bins + 1):
        inside = confidence[where == m].tolist()
        chances = np.ones(1)
        for c in inside:
            chances = np.convolve(chances, [1 - c, c])
        if inside:
            means.append(float(chances @ abs(np.arange(len(chances)) - sum(inside))) / len(inside))
    return sum(means) / len(means)


@wrong("f08.honest", "You forgot to divide by the number of forecasts.", see="the-expected-calibration-error")
def not_divided(confidence, bins):
    where, total = torch.ceil(confidence * bins), 0.0
    for m in range(1, bins + 1):
        inside = confidence[where == m].tolist()
        chances = np.ones(1)
        for c in inside:
            chances = np.convolve(chances, [1 - c, c])
        total += float(chances @ abs(np.arange(len(chances)) - sum(inside)))
    return total


@wrong("f08.honest", "You ignore the bins: gaps in different bins cannot cancel.", see="the-expected-calibration-error")
def all_in_one_bin(confidence, bins):
    chances = np.ones(1)
    for c in confidence.tolist():
        chances = np.convolve(chances, [1 - c, c])
    return float(chances @ abs(np.arange(len(chances)) - confidence.sum().item())) / len(confidence)


@wrong(
    "f08.honest",
    "A simulation is close, not exact: a thousand runs leave an error in the third digit.",
    see="how-much-of-it-is-noise",
)
def a_simulation(confidence, bins):
    generator = torch.Generator().manual_seed(0)
    where, total = (torch.ceil(confidence * bins) - 1).long(), 0.0
    for _ in range(1000):
        gap = (torch.rand(len(confidence), generator=generator, dtype=torch.float64) < confidence).double() - confidence
        total += torch.zeros(bins, dtype=torch.float64).index_add(0, where, gap).abs().sum().item()
    return total / 1000 / len(confidence)


@wrong(
    "f08.honest",
    "You took the mean of the size of each forecast's own gap. Within a bin gaps of both signs cancel before the size is taken.",
    see="the-expected-calibration-error",
)
def forecast_by_forecast(confidence, bins):
    return (2 * confidence * (1 - confidence)).mean().item()


for line in (
    "chances = [a * (1 - c) + b * c for a, b in zip([*chances, 0.0], [-0.0, *chances], strict=True)]",
    "chances = [a * (1 - c) + b * c for a, b in zip([*chances, -0.0], [0.0, *chances], strict=True)]",
    "total = -0.0",
):
    equivalent("f08.honest", f"`{line}`", "the same number")
for same in (", strict=False", ""):
    equivalent(
        "f08.honest",
        f"`chances = [a * (1 - c) + b * c for a, b in zip([*chances, 0.0], [0.0, *chances]{same})]`",
        "the two lists are equally long",
    )
for inside in ("> m / bins) & (confidence <", ">= m / bins) & (confidence <="):
    equivalent(
        "f08.honest",
        f"`inside = confidence[(confidence {inside} (m + 1) / bins)].tolist()`",
        "no forecast is on the edge of a bin",
    )
equivalent(
    "f08.honest",
    "`inside = confidence[(confidence > m / bins) & (confidence <= (m + 1) / bins)]`",
    "a tensor without axes is a number",
)

# ---------------------------------------------------------------- f08.match


@right("f08.match")
def by_false_position(logits, classes):
    z = logits.double()
    accuracy = (z.argmax(dim=1) == classes).double().mean().item()
    if not 1 / z.shape[1] + 1e-12 < accuracy < 1:
        raise ValueError("no temperature makes the mean confidence this accuracy")

    def ahead(x):
        return torch.softmax(z * math.exp(-x), dim=1).amax(dim=1).mean().item() - accuracy

    low, high = -1.0, 1.0
    while ahead(low) <= 0:
        low -= 2
    while ahead(high) >= 0:
        high += 2
    for step in range(300):
        a, b = ahead(low), ahead(high)
        x = (low + high) / 2 if step % 2 else low + (high - low) * a / (a - b)
        now = ahead(x)
        if abs(now) < 1e-9:
            break
        low, high = (x, high) if now > 0 else (low, x)
    return math.exp(x)


@right("f08.match")
def in_the_inverse_temperature(logits, classes):
    z = logits.double().numpy()
    z = z - z.max(axis=1, keepdims=True)
    right = int((z.argmax(axis=1) == classes.numpy()).sum())
    n, v = z.shape
    if right == n or right * v <= n:
        raise ValueError("the accuracy must be above chance and below one")
    high = 1.0
    while (1 / np.exp(high * z).sum(axis=1)).mean() < right / n:
        high *= 2
    low = 0.0
    for _ in range(200):
        beta = (low + high) / 2
        if (1 / np.exp(beta * z).sum(axis=1)).mean() < right / n:
            low = beta
        else:
            high = beta
    return float(1 / high)


@wrong(
    "f08.match",
    "That is the temperature of the least surprise. It is near, but it does not make the mean confidence equal to the accuracy.",
    see="temperature-scaling",
)
def least_surprise(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    true = z.gather(1, classes[:, None]).mean()
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        expected = (torch.softmax(z / math.exp(middle), dim=1) * z).sum(dim=1).mean()
        low, high = (middle, high) if expected > true else (low, middle)
    return math.exp((low + high) / 2)


@wrong("f08.match", "You return 1/τ, the inverse temperature.", see="temperature-scaling")
def inverse(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return math.exp(-(low + high) / 2)


@wrong(
    "f08.match",
    "Your search goes the wrong way: confidence falls as the temperature rises.",
    see="temperature-scaling",
)
def wrong_half(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence < right / len(z) else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f08.match",
    "You took the probability of the true class. The confidence is the largest probability, whether it is right or not.",
    see="learnt-by-heart",
)
def probability_of_the_truth(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).gather(1, classes[:, None]).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f08.match",
    "Your interval of temperatures is too narrow: logits of a hundred or of a thousandth need others.",
    see="temperature-scaling",
)
def fixed_interval(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = 0.05, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / middle, dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return (low + high) / 2


@wrong(
    "f08.match",
    "You pick the best of a grid of temperatures: that is near, not right to a millionth.",
    see="temperature-scaling",
)
def coarse_grid(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    grid = torch.logspace(-5, 5, 1001, dtype=torch.float64)
    means = torch.stack([torch.softmax(z / tau, dim=1).amax(dim=1).mean() for tau in grid])
    return grid[(means - right / len(z)).abs().argmin()].item()


@wrong(
    "f08.match",
    "You divide by the ratio of mean confidence and accuracy. The confidence does not fall in proportion to the temperature.",
    see="temperature-scaling",
)
def in_proportion(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    return torch.softmax(z, dim=1).amax(dim=1).mean().item() * len(z) / right


@wrong(
    "f08.match",
    "For an accuracy that no temperature reaches you return a number instead of raising ValueError.",
    see="temperature-scaling",
)
def never_refuses(logits, classes):
    z = logits.double()
    accuracy = (z.argmax(dim=1) == classes).double().mean()
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > accuracy else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f08.match",
    "You refuse only an accuracy of 1. A model that is no better than chance cannot be matched either: confidence never falls below 1/n.",
    see="temperature-scaling",
)
def chance_accepted(logits, classes):
    z = logits.double()
    accuracy = (z.argmax(dim=1) == classes).double().mean()
    if accuracy == 1:
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > accuracy else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f08.match",
    "You accept an accuracy of exactly 1/n. The mean confidence comes near to it as the temperature rises, and never meets it.",
    see="temperature-scaling",
)
def exactly_chance_accepted(logits, classes):
    z = logits.double()
    accuracy = (z.argmax(dim=1) == classes).double().mean()
    if accuracy == 1 or accuracy < 1 / z.shape[1]:
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > accuracy else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f08.match",
    "You took the number of classes from the largest class that came true. It is the number of logits in a row.",
    see="temperature-scaling",
)
def classes_that_came_true(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * max(2, int(classes.max()) + 1) <= len(z):
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f08.match",
    "Your temperatures end too early: just above chance, logits near 1000 need one of tens of thousands.",
    see="temperature-scaling",
)
def too_cold_for_chance(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = -20.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return math.exp((low + high) / 2)


@wrong("f08.match", "You return a string. A temperature is a number that others compute with.", see="temperature-scaling")
def as_text(logits, classes):
    z = logits.double()
    right = int((z.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return repr(math.exp((low + high) / 2))


@wrong(
    "f08.match",
    "You compute in float32: with logits near 1000 that differ by 0.001, few digits of the differences are left.",
    see="temperature-scaling",
)
def in_float32(logits, classes):
    z = logits.float()
    right = int((logits.argmax(dim=1) == classes).sum())
    if right == len(z) or right * z.shape[1] <= len(z):
        raise ValueError
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        confidence = torch.softmax(z / math.exp(middle), dim=1).amax(dim=1).mean()
        low, high = (middle, high) if confidence > right / len(z) else (low, middle)
    return math.exp((low + high) / 2)


for last in (
    "torch.softmax(z / math.exp(middle), dim=-1).amax(dim=1)",
    "torch.softmax(z / math.exp(middle), dim=1).amax(dim=-1)",
):
    equivalent("f08.match", f"`confidence = {last}.mean()`", "dimension 1 is the last")
equivalent("f08.match", "`right = int((z.argmax(dim=-1) == classes).sum())`", "dimension 1 is the last")
equivalent("f08.match", "`right = (z.argmax(dim=1) == classes).sum()`", "a tensor without axes is a number")
equivalent(
    "f08.match",
    "`low, high = (middle, high) if confidence >= right / N else (low, middle)`",
    "where both are equal, the middle is an end of either half",
)
for bounds in ("-20.0, 40.0", "-20.0, 21.0", "-20.0, 19.0", "-21.0, 20.0", "-19.0, 20.0", "-40.0, 20.0"):
    equivalent("f08.match", f"`low, high = ({bounds})`", "wide enough for all logits that are promised")
for times in (59, 61, 120):
    equivalent("f08.match", f"`for _ in range({times}):`", "59 halvings leave less than the task allows")

# ---------------------------------------------------------------- f08.unchanged

right("f08.unchanged", "eca")
right("f08.unchanged", "ACE")
right("f08.unchanged", "a, c, e")
right("f08.unchanged", ["a", "c", "e"])
wrong(
    "f08.unchanged",
    "ac",
    "You missed one: with two classes, how does the confidence depend on the logits?",
    see="temperature-scaling",
)
wrong(
    "f08.unchanged",
    "acde",
    "Within a row the order is kept; between rows of three or more classes it need not be: the number of close rivals matters.",
    see="temperature-scaling",
)
wrong(
    "f08.unchanged",
    "ae",
    "More than the verdict is kept: think of the whole row.",
    see="temperature-scaling",
)
wrong(
    "f08.unchanged",
    "abce",
    "If the surprise stayed the same, there would be nothing to fit.",
    see="temperature-scaling",
)
wrong(
    "f08.unchanged",
    "acef",
    "Every confidence changes with the temperature and the outcomes do not: the gaps cannot all stay.",
    see="the-expected-calibration-error",
)
wrong("f08.unchanged", "a", "The accuracy stays because an order stays. Which orders?", see="temperature-scaling")

# ---------------------------------------------------------------- f08.prediction

wrong(
    "f08.prediction",
    0.0,
    "At temperature 0 nothing can be divided: the colder, the nearer to 0, but never 0.",
    see="temperature-scaling",
)
wrong("f08.prediction", -0.5, "A negative temperature would turn the order of the classes around.", see="temperature-scaling")
wrong(
    "f08.prediction", "below 1", "A prediction that an experiment can refute is a number.", see="an-experiment-smooth-then-scale"
)
