"""Other right answers and named wrong answers of chapter f03."""

import math

import numpy as np
import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f03.invariance

right("f03.invariance", "fca")
right("f03.invariance", "a, c, f")
right("f03.invariance", ["a", "c", "f"])
right("f03.invariance", "ACF")
wrong(
    "f03.invariance",
    "a",
    "A change need not look like a sum to be a shift: ask of each letter whether it adds one number to all entries.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.invariance",
    "ac",
    "You missed that a logarithm of a fraction is a difference: one of the letters is a shift in disguise.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.invariance",
    "acdf",
    "Dividing by the largest score changes the differences between scores: softmax is not scale-invariant.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.invariance",
    "abcf",
    "Doubling keeps the order of the probabilities, not their values: all ratios are squared.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.invariance",
    "abcdf",
    "Keeping the order of the classes is not enough: the question is about the probabilities themselves.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.invariance",
    "abcdef",
    "Not every change is harmless: taking absolute values can turn the worst score into the best.",
    see="shift-yes-scale-no",
)

# ---------------------------------------------------------------- f03.lead

right("f03.lead", 13.02)
right("f03.lead", cell("lead = math.log(9) + math.log(49_999)"))
right("f03.lead", cell("lead = sympy.log(449991)"))
wrong(
    "f03.lead",
    math.log(9),
    "That is the lead over a single rival. The other 49 999 tokens have to be outweighed together.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.lead",
    math.log(0.9 * 50_000),
    "You took each rival's probability to be 1/50 000. But the rivals share only what is left, one tenth.",
    see="shift-yes-scale-no",
)
wrong("f03.lead", math.log10(9 * 49_999), "That is the logarithm to base 10; softmax is built on e.", see="shift-yes-scale-no")
wrong(
    "f03.lead",
    9 * 49_999.0,
    "That is the ratio of the probabilities, e to the power of the lead. The logit is its logarithm.",
    see="shift-yes-scale-no",
)
wrong(
    "f03.lead", math.log(50_000), "That gives the token as much as all others together, about one half.", see="shift-yes-scale-no"
)

for rivals in (49_998, 50_000):
    equivalent("f03.lead", f"`lead = math.log(0.9 / (0.1 / {rivals}))`", "the same in two decimals")

# ---------------------------------------------------------------- f03.ensemble


@right("f03.ensemble")
def by_logsumexp(log_probs):
    return torch.logsumexp(log_probs, dim=0) - math.log(log_probs.shape[0])


@right("f03.ensemble")
def two_at_a_time(log_probs):
    total = log_probs[0]
    for row in log_probs[1:]:
        total = torch.logaddexp(total, row)
    return total - math.log(len(log_probs))


@right("f03.ensemble")
def text_by_text_in_numpy(log_probs):
    flat = log_probs.numpy().reshape(len(log_probs), -1).astype(np.float64)
    means = []
    for column in flat.T:
        top = column.max()
        means.append(top if np.isinf(top) else top + np.log(np.mean(np.exp(column - top))))
    return torch.tensor(np.array(means).reshape(log_probs.shape[1:]), dtype=log_probs.dtype)


@right("f03.ensemble")
def with_a_tensor_for_n(log_probs):
    # The logarithm of N is float32 here: right to seven digits.
    return torch.logsumexp(log_probs, dim=0) - torch.tensor(float(len(log_probs))).log()


@wrong(
    "f03.ensemble",
    "You averaged the logarithms. That gives the geometric mean of the probabilities: one model that calls a text nearly impossible overrules all the others.",
    see="when-the-exponential-overflows",
)
def geometric_mean(log_probs):
    return log_probs.mean(dim=0)


@wrong(
    "f03.ensemble",
    "The exponential of −1000 is rounded to zero before you average, and the logarithm of zero is minus infinity.",
    see="when-the-exponential-overflows",
)
def plain(log_probs):
    return log_probs.exp().mean(dim=0).log()


@wrong(
    "f03.ensemble",
    "That is the logarithm of the sum. The average also divides by the number of models.",
    see="when-the-exponential-overflows",
)
def sum_not_average(log_probs):
    return torch.logsumexp(log_probs, dim=0)


@wrong(
    "f03.ensemble",
    "You averaged over the texts of each model; the average is over the models, dimension 0.",
    see="when-the-exponential-overflows",
)
def over_the_texts(log_probs):
    return torch.logsumexp(log_probs, dim=-1) - math.log(log_probs.shape[-1])


@wrong(
    "f03.ensemble",
    "You made the result sum to one over the texts. These texts are not a complete list, so their probabilities need not.",
    see="when-the-exponential-overflows",
)
def made_to_sum_to_one(log_probs):
    return torch.log_softmax(torch.logsumexp(log_probs, dim=0), dim=-1)


@wrong(
    "f03.ensemble",
    "One maximum for the whole table is not enough: the texts far below it are still rounded to zero. Take one for each text.",
    see="when-the-exponential-overflows",
)
def one_maximum_for_all(log_probs):
    top = log_probs.max()
    return top + (log_probs - top).exp().mean(dim=0).log()


@wrong(
    "f03.ensemble",
    "For a text that all models call impossible, minus infinity minus minus infinity gives nan.",
    see="when-the-exponential-overflows",
)
def nan_for_the_impossible(log_probs):
    top = log_probs.max(dim=0).values
    return top + (log_probs - top).exp().mean(dim=0).log()


@wrong(
    "f03.ensemble",
    "The values are right, but you subtracted in place: the caller's log_probs are changed.",
    see="when-the-exponential-overflows",
)
def changes_its_argument(log_probs):
    top = log_probs.max(dim=0).values
    top = top.masked_fill(top == -torch.inf, 0.0)
    log_probs -= top
    return top + log_probs.exp().mean(dim=0).log()


@wrong(
    "f03.ensemble",
    "The result is always float32: a float64 argument should give a float64 result.",
    see="when-the-exponential-overflows",
)
def always_float32(log_probs):
    return (torch.logsumexp(log_probs, dim=0) - math.log(len(log_probs))).float()


@wrong(
    "f03.ensemble",
    "You took out some model's logarithm, not the largest. Where another model is hundreds above it, the exponential overflows.",
    see="when-the-exponential-overflows",
)
def not_the_largest(log_probs):
    top = log_probs.median(dim=0).values
    top = top.masked_fill(top == -torch.inf, 0.0)
    return top + (log_probs - top).exp().mean(dim=0).log()


@wrong(
    "f03.ensemble",
    "You called the course's own log-sum-exp. The task asks you to write it yourself, or to take torch's.",
    see="when-the-exponential-overflows",
)
def with_the_courses_module(log_probs):
    from course.softmax_and_cross_entropy import logsumexp

    return logsumexp(log_probs.movedim(0, -1)) - math.log(len(log_probs))


for number in ("-1.0", "1.0", "-0.0"):
    equivalent(
        "f03.ensemble",
        f"`top = top.masked_fill(top == -torch.inf, {number})`",
        "any finite number does where all are minus infinity",
    )

# ---------------------------------------------------------------- f03.brier_gradient


@right("f03.brier_gradient")
def through_the_jacobian(probs, y):
    jacobian = torch.diag_embed(probs) - torch.einsum("...i,...j->...ij", probs, probs)
    return torch.einsum("...i,...ij->...j", 2 * (probs - y), jacobian)


@right("f03.brier_gradient")
def entry_by_entry(probs, y):
    out = torch.zeros_like(probs)
    for j in range(probs.shape[-1]):
        for i in range(probs.shape[-1]):
            out[..., j] += 2 * (probs[..., i] - y[..., i]) * probs[..., i] * (float(i == j) - probs[..., j])
    return out


@wrong(
    "f03.brier_gradient",
    "That is the gradient in the probabilities. The scores act on them only through the softmax: the Jacobian is missing.",
    see="how-probabilities-answer-to-scores",
)
def without_the_jacobian(probs, y):
    return 2 * (probs - y)


@wrong(
    "f03.brier_gradient",
    "You used only the diagonal of the Jacobian. A score moves all probabilities, not only its own.",
    see="how-probabilities-answer-to-scores",
)
def diagonal_only(probs, y):
    return 2 * (probs - y) * probs * (1 - probs)


@wrong("f03.brier_gradient", "The factor 2 of the square is lost.", see="how-probabilities-answer-to-scores")
def without_the_two(probs, y):
    return probs * ((probs - y) - (probs * (probs - y)).sum(dim=-1, keepdim=True))


@wrong("f03.brier_gradient", "That is the gradient of the cross-entropy, not of the Brier score.", see="the-gradient-p-y")
def of_cross_entropy(probs, y):
    return probs - y


@wrong(
    "f03.brier_gradient",
    "The sign is reversed: this is the direction of descent, minus the gradient.",
    see="how-probabilities-answer-to-scores",
)
def negative(probs, y):
    slope = 2 * (probs - y)
    return -probs * (slope - (probs * slope).sum(dim=-1, keepdim=True))


@wrong(
    "f03.brier_gradient",
    "Right for one forecast only: with several rows you sum over all of them, and each row is its own forecast.",
    see="how-probabilities-answer-to-scores",
)
def sums_over_everything(probs, y):
    slope = 2 * (probs - y)
    return probs * (slope - (probs * slope).sum())


@wrong(
    "f03.brier_gradient",
    "The sum in the second term must be weighted by the probabilities: p − y alone sums to zero.",
    see="how-probabilities-answer-to-scores",
)
def unweighted_sum(probs, y):
    slope = 2 * (probs - y)
    return probs * (slope - slope.sum(dim=-1, keepdim=True))


@wrong(
    "f03.brier_gradient",
    "The values are right, but you worked in place: the caller's y is changed.",
    see="how-probabilities-answer-to-scores",
)
def works_in_place(probs, y):
    y -= probs
    y *= -2
    return probs * (y - (probs * y).sum(dim=-1, keepdim=True))


@wrong(
    "f03.brier_gradient",
    "You wrote the formula for a truth that is one class. The truth may also be a list of probabilities.",
    see="how-probabilities-answer-to-scores",
)
def one_hot_only(probs, y):
    y = torch.nn.functional.one_hot(y.argmax(dim=-1), y.shape[-1]).to(y.dtype)
    slope = 2 * (probs - y)
    return probs * (slope - (probs * slope).sum(dim=-1, keepdim=True))


# ---------------------------------------------------------------- f03.honesty


@right("f03.honesty")
def by_the_lowest_point(score):
    grid = np.arange(1, 100) / 100
    for q in grid[4:95]:
        expected = q * score(grid, 1) + (1 - q) * score(grid, 0)
        best = np.flatnonzero(expected <= expected.min() + 1e-10)
        if len(best) != 1 or not math.isclose(grid[best[0]], q):
            return False
    return True


@right("f03.honesty")
def pair_by_pair(score):
    grid = [k / 100 for k in range(1, 100)]
    loss = {(p, o): float(score(np.array([p]), o)[0]) for p in grid for o in (0, 1)}
    for q in grid[4:95]:
        honest = q * loss[q, 1] + (1 - q) * loss[q, 0]
        if any(q * loss[p, 1] + (1 - q) * loss[p, 0] <= honest + 1e-10 for p in grid if p != q):
            return False
    return True


@right("f03.honesty")
def all_at_once(score):
    grid = np.linspace(0.01, 0.99, 99)
    table = np.outer(grid, score(grid, 1)) + np.outer(1 - grid, score(grid, 0))
    gap = table - np.diag(table)[:, None] + np.eye(99)
    return bool((gap[4:95] > 1e-10).all())


@right("f03.honesty")
def on_a_finer_grid(score):
    grid = np.linspace(0.001, 0.999, 999)
    for q in np.arange(0.05, 0.955, 0.01):
        expected = q * score(grid, 1) + (1 - q) * score(grid, 0)
        honest = q * score(np.array([q]), 1) + (1 - q) * score(np.array([q]), 0)
        if not (expected[abs(grid - q) > 1e-6] > honest).all():
            return False
    return True


@right("f03.honesty")
def scalars_in_a_loop(score):
    for k in range(5, 96):
        p = k / 100

        def cost(q, p=p):
            q = np.array([q])
            return float(p * score(q, 1)[0] + (1 - p) * score(q, 0)[0])

        honest = cost(p)
        if any(cost(j / 100) <= honest + 1e-13 for j in range(1, 100) if j != k):
            return False
    return True


@wrong("f03.honesty", "You test one true probability, 0.5. Every symmetric rule looks honest there.", see="honest-forecasts")
def at_one_half_only(score):
    grid = np.linspace(0.01, 0.99, 99)
    expected = 0.5 * score(grid, 1) + 0.5 * score(grid, 0)
    return bool((np.delete(expected, 49) > expected[49] + 1e-12).all())


@wrong(
    "f03.honesty",
    "A tie counts as a win in your test: strictly proper means that no other forecast does as well.",
    see="honest-forecasts",
)
def ties_are_fine(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(4, 95):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if expected[i] > expected.min() + 1e-12:
            return False
    return True


@wrong(
    "f03.honesty",
    "You only ask that the loss falls as the forecast approaches the outcome. Every sensible loss does that, honest or not.",
    see="honest-forecasts",
)
def falls_towards_the_truth(score):
    grid = np.linspace(0.01, 0.99, 99)
    return bool((np.diff(score(grid, 1)) < 0).all() and (np.diff(score(grid, 0)) > 0).all())


@wrong(
    "f03.honesty",
    "You recognise the curvature of a square. Other honest rules, such as the log score, have another shape.",
    see="honest-forecasts",
)
def is_it_a_square(score):
    grid = np.linspace(0.01, 0.99, 99)
    second = np.diff(score(grid, 1), 2), np.diff(score(grid, 0), 2)
    return bool(np.allclose(second[0], second[1], atol=1e-9) and np.ptp(second[0]) < 1e-9 and second[0][0] > 1e-9)


@wrong(
    "f03.honesty", "You try true probabilities in steps of 0.05. A rule can be dishonest between them.", see="honest-forecasts"
)
def in_steps_of_five(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(4, 95, 5):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if not (np.delete(expected, i) > expected[i] + 1e-12).all():
            return False
    return True


@wrong("f03.honesty", "You try every other true probability. A rule can be dishonest for a single one.", see="honest-forecasts")
def every_other(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(4, 95, 2):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if not (np.delete(expected, i) > expected[i]).all():
            return False
    return True


@wrong(
    "f03.honesty",
    "You compare with forecasts within 0.05 of the honest one only. One that is far away can be cheaper.",
    see="honest-forecasts",
)
def nearby_only(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(4, 95):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        near = np.r_[expected[max(0, i - 5) : i], expected[i + 1 : i + 6]]
        if not (near > expected[i]).all():
            return False
    return True


@wrong(
    "f03.honesty",
    "Your true probabilities run from 0.1 to 0.9: a rule can be dishonest for rare and for near-certain events only.",
    see="honest-forecasts",
)
def not_at_the_ends(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(9, 90):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if not (np.delete(expected, i) > expected[i] + 1e-12).all():
            return False
    return True


@wrong(
    "f03.honesty",
    "At one end you miss a tie: the last true probability is 0.95 itself (range and arange stop before their end), and argmin names only the first of equals.",
    see="honest-forecasts",
)
def stops_one_short(score):
    grid = np.arange(1, 100) / 100
    for i in range(4, 94):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if expected.argmin() != i:
            return False
    return True


@wrong(
    "f03.honesty",
    "You compare with the two neighbouring forecasts only. A forecast further away can be cheaper still.",
    see="honest-forecasts",
)
def neighbours_only(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(4, 95):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if not min(expected[i - 1], expected[i + 1]) > expected[i] + 1e-12:
            return False
    return True


@wrong(
    "f03.honesty",
    "Your forecasts run from 0.05 to 0.95, like the true probabilities. But one may forecast 0.99.",
    see="honest-forecasts",
)
def forecasts_stop_at_the_truths(score):
    grid = np.linspace(0.05, 0.95, 91)
    for i in range(91):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if not (np.delete(expected, i) > expected[i] + 1e-12).all():
            return False
    return True


@wrong(
    "f03.honesty",
    "You also ask about true probabilities below 0.05 and above 0.95. The task does not, and rejects no rule because of them.",
    see="honest-forecasts",
)
def wider_than_asked(score):
    grid = np.linspace(0.01, 0.99, 99)
    for i in range(99):
        expected = grid[i] * score(grid, 1) + (1 - grid[i]) * score(grid, 0)
        if not (np.delete(expected, i) > expected[i] + 1e-12).all():
            return False
    return True


equivalent("f03.honesty", "`if not expected[i] < others.min():`", "a tie of equal numbers is exact")
equivalent("f03.honesty", "`if not expected[i] < others.min() - 2e-12:`", "honest rules win by more")
equivalent("f03.honesty", "`if not expected[i] <= others.min() - 1e-12:`", "no rule wins by just this much")

# ---------------------------------------------------------------- f03.temperature


@right("f03.temperature")
def safeguarded_newton(logits, target):
    z = logits.double()
    if not 0 < target < math.log(z.numel()):
        raise ValueError("unreachable")
    low, high, tau = 0.0, math.inf, float(z.max() - z.min())
    for _ in range(500):
        log_p = torch.log_softmax(z / tau, dim=-1)
        p = log_p.exp()
        h = -(p * log_p).sum().item()
        if abs(h - target) < 1e-10:
            break
        low, high = (tau, high) if h < target else (low, tau)
        variance = (p * (z - (p * z).sum()) ** 2).sum().item()
        step = tau - (h - target) * tau**3 / variance if variance > 0 else math.nan
        middle = 2 * tau if high == math.inf else (low + high) / 2
        tau = step if low < step < high else middle
    return tau


@right("f03.temperature")
def search_of_inverse_temperature(logits, target):
    z = logits.double().tolist()
    if target <= 0 or target >= math.log(len(z)):
        raise ValueError("no such temperature")

    def h(beta):
        powers = [math.exp(beta * (x - max(z))) for x in z]
        total = sum(powers)
        return -sum(w / total * math.log(w / total) for w in powers if w > 0)

    low, high = 0.0, 1.0
    while h(high) > target:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if h(middle) > target else (low, middle)
    return torch.tensor(1 / low, dtype=torch.float64)


@wrong("f03.temperature", "You return 1/τ, the inverse temperature.", see="temperature-and-entropy")
def inverse(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.double() / math.exp(middle), dim=-1)).sum()
        low, high = (middle, high) if h < target else (low, middle)
    return math.exp(-(low + high) / 2)


@wrong(
    "f03.temperature",
    "You measure the entropy in bits (logarithm to base 2); the target is in nats.",
    see="the-floor-under-the-loss",
)
def in_bits(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.double() / math.exp(middle), dim=-1)).sum() / math.log(2)
        low, high = (middle, high) if h < target else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f03.temperature",
    "Your search goes the wrong way: the entropy rises with the temperature, so a middle that is too cold puts the answer above it.",
    see="temperature-and-entropy",
)
def searches_the_wrong_half(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.double() / math.exp(middle), dim=-1)).sum()
        low, high = (middle, high) if h > target else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f03.temperature",
    "Your interval of temperatures is too narrow: logits of 1000 or of 0.001 need others.",
    see="temperature-and-entropy",
)
def fixed_interval(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = 0.01, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.double() / middle, dim=-1)).sum()
        low, high = (middle, high) if h < target else (low, middle)
    return (low + high) / 2


@wrong(
    "f03.temperature",
    "You pick the best of a grid of temperatures: that is near, not right to a millionth of a nat.",
    see="temperature-and-entropy",
)
def coarse_grid(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    grid = torch.logspace(-6, 6, 6001, dtype=torch.float64)
    h = torch.special.entr(torch.softmax(logits.double() / grid[:, None], dim=-1)).sum(dim=-1)
    return grid[(h - target).abs().argmin()].item()


@wrong(
    "f03.temperature",
    "You took the entropy to grow in proportion to the temperature. Its slope is Var/τ³, which is not constant.",
    see="temperature-and-entropy",
)
def in_proportion(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    return target / torch.special.entr(torch.softmax(logits.double(), dim=-1)).sum().item()


@wrong(
    "f03.temperature",
    "For a target that no temperature reaches you return a number instead of raising ValueError.",
    see="the-floor-under-the-loss",
)
def never_refuses(logits, target):
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.double() / math.exp(middle), dim=-1)).sum()
        low, high = (middle, high) if h < target else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f03.temperature",
    "Your exponentials overflow for large logits over a small temperature: take the maximum out first.",
    see="when-the-exponential-overflows",
)
def plain_exponentials(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        powers = (logits.double() / math.exp(middle)).exp()
        h = torch.special.entr(powers / powers.sum()).sum()
        low, high = (middle, high) if h < target else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f03.temperature",
    "A probability that underflows to 0 makes p · ln p a nan, and a comparison with nan is False: your search goes astray there.",
    see="the-floor-under-the-loss",
)
def zero_times_infinity(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        p = torch.softmax(logits.double() / math.exp(middle), dim=-1)
        low, high = (middle, high) if -(p * p.log()).sum() < target else (low, middle)
    return math.exp((low + high) / 2)


@wrong("f03.temperature", "The task asks for a number; you return a tensor with one entry.", see="temperature-and-entropy")
def tensor_of_one_entry(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.double() / math.exp(middle), dim=-1)).sum()
        low, high = (middle, high) if h < target else (low, middle)
    return torch.tensor([math.exp((low + high) / 2)], dtype=torch.float64)


@wrong(
    "f03.temperature",
    "You compute in float32: with logits near 10 000 that differ by 0.001, the differences are rounded away.",
    see="when-the-exponential-overflows",
)
def in_float32(logits, target):
    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = torch.special.entr(torch.softmax(logits.float() / math.exp(middle), dim=-1)).sum()
        low, high = (middle, high) if h < target else (low, middle)
    return math.exp((low + high) / 2)


@wrong(
    "f03.temperature",
    "You called the course's own softmax and entropy. The task asks you to do without them.",
    see="temperature-and-entropy",
)
def with_the_courses_entropy(logits, target):
    from course.softmax_and_cross_entropy import entropy, softmax

    if not 0 < target < math.log(len(logits)):
        raise ValueError
    low, high = -40.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        h = entropy(softmax(logits.double(), math.exp(middle)))
        low, high = (middle, high) if h < target else (low, middle)
    return math.exp((low + high) / 2)


for bounds in ("-39.0, 40.0", "-41.0, 40.0", "-80.0, 40.0", "-40.0, 39.0", "-40.0, 41.0", "-40.0, 80.0"):
    equivalent("f03.temperature", f"`low, high = ({bounds})`", "wide enough for all logits that are promised")
for times in (99, 101, 200):
    equivalent("f03.temperature", f"`for _ in range({times}):`", "60 halvings of 80 exhaust the digits of a float64")
equivalent(
    "f03.temperature",
    "`too_cold = torch.special.entr(p).sum() <= target`",
    "an entropy that is met exactly may lie in either half",
)
equivalent("f03.temperature", "`p = torch.softmax(logits.double() / math.exp(middle), dim=-0)`", "a vector has one dimension")

# ---------------------------------------------------------------- f03.prediction

wrong(
    "f03.prediction",
    12.0,
    "More than ln 65 536 = 11.09 nats cannot be lost, because the entropy is never below zero.",
    see="the-floor-under-the-loss",
)
wrong("f03.prediction", -0.5, "A negative loss would put the entropy above its maximum, ln n.", see="the-floor-under-the-loss")
wrong(
    "f03.prediction",
    "half",
    "A prediction that an experiment can refute is a number.",
    see="an-experiment-entropy-lost-by-random-scores",
)
