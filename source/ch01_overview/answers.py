"""Other right answers and named wrong answers of chapter ch01."""

import functools
import math

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch01.finish


@right("ch01.finish")
def with_memory(needs, minutes):
    @functools.cache
    def end(i):
        return minutes[i] + max((end(j) for j in needs[i]), default=0)

    return max((end(i) for i in range(len(needs))), default=0)


@right("ch01.finish")
def backwards(needs, minutes):
    still = list(minutes)  # minutes from the start of an operation to the end of the longest chain after it
    for i in reversed(range(len(needs))):
        for j in needs[i]:
            still[j] = max(still[j], minutes[j] + still[i])
    return max(still, default=0)


@wrong(
    "ch01.finish",
    "That is the work: the minutes of a single helper. Operations that do not wait for each other overlap.",
    see="work-and-depth",
)
def work(needs, minutes):
    return sum(minutes)


@wrong("ch01.finish", "You took the end of the last operation in the list. Another may end later.", see="work-and-depth")
def end_of_the_last(needs, minutes):
    ends = []
    for before, duration in zip(needs, minutes, strict=True):
        ends.append(duration + max([ends[j] for j in before], default=0))
    return ends[-1] if ends else 0


@wrong("ch01.finish", "An operation waits only for the slowest of those it needs; you add them all up.", see="work-and-depth")
def waits_add_up(needs, minutes):
    ends = []
    for before, duration in zip(needs, minutes, strict=True):
        ends.append(duration + sum(ends[j] for j in before))
    return max(ends, default=0)


@wrong("ch01.finish", "You counted steps. Here each operation has its own number of minutes.", see="work-and-depth")
def steps(needs, minutes):
    ends = []
    for before in needs:
        ends.append(1 + max([ends[j] for j in before], default=0))
    return max(ends, default=0)


@wrong(
    "ch01.finish", "An operation begins when all those it needs have ended, not when the first of them has.", see="work-and-depth"
)
def begins_too_early(needs, minutes):
    ends = []
    for before, duration in zip(needs, minutes, strict=True):
        ends.append(duration + min([ends[j] for j in before], default=0))
    return max(ends, default=0)


@wrong("ch01.finish", "You look only one operation back, but that one may have had to wait too.", see="work-and-depth")
def one_step_back(needs, minutes):
    totals = [minutes[i] + max([minutes[j] for j in before], default=0) for i, before in enumerate(needs)]
    return max(totals, default=0)


@wrong(
    "ch01.finish",
    "You look at only one of the operations that are needed. Any of them can be the slow one.",
    see="work-and-depth",
)
def one_of_the_needed(needs, minutes):
    ends = []
    for before, duration in zip(needs, minutes, strict=True):
        ends.append(duration + (ends[before[0]] if before else 0))
    return max(ends, default=0)


@wrong("ch01.finish", "The chain with the most operations need not be the one with the most minutes.", see="work-and-depth")
def chain_with_most_steps(needs, minutes):
    best = []  # (operations, minutes) of the longest chain
    for before, duration in zip(needs, minutes, strict=True):
        count, total = max([best[j] for j in before], default=(0, 0))
        best.append((count + 1, total + duration))
    return max(best, default=(0, 0))[1]


@wrong("ch01.finish", "With nothing to do, everything is done at minute 0.", see="work-and-depth")
def fails_on_nothing(needs, minutes):
    ends = []
    for before, duration in zip(needs, minutes, strict=True):
        ends.append(duration + max([ends[j] for j in before], default=0))
    return max(ends)


# ---------------------------------------------------------------- ch01.serial

wrong("ch01.serial", "a", "Only time is a chain. The batch and the entries of the state are free.", see="reading-step-by-step")
wrong(
    "ch01.serial",
    "c",
    "Computed as written, each step waits for the one before. A scan needs steps that join into one step of the same form, and with tanh they do not.",
    see="a-chain-that-can-be-cut",
)
wrong(
    "ch01.serial", "d", "In every row of the first table, attention has the larger number of multiply-adds.", see="a-puzzle-first"
)

# ---------------------------------------------------------------- ch01.prefixes


@right("ch01.prefixes")
def blocks(combine, items):
    row, size = list(items), 1
    while size < len(row):
        targets = [i for i in range(len(row)) if (i // size) % 2]  # in the right half of a block of 2 · size
        lefts = [row[(i // size) * size - 1] for i in targets]
        for i, value in zip(targets, combine(lefts, [row[i] for i in targets]), strict=True):
            row[i] = value
        size *= 2
    return row


@right("ch01.prefixes")
def by_index(combine, items):
    row, distance = items[:], 1
    for _ in range(math.ceil(math.log2(max(len(items), 1)))):
        new = combine([row[i - distance] for i in range(distance, len(row))], [row[i] for i in range(distance, len(row))])
        row = [row[i] if i < distance else new[i - distance] for i in range(len(row))]
        distance = distance * 2
    return row


@wrong("ch01.prefixes", "Right, but one after the other: that takes T − 1 rounds.", see="a-chain-that-can-be-cut")
def one_after_the_other(combine, items):
    row = list(items)
    for i in range(1, len(row)):
        row[i] = combine([row[i - 1]], [row[i]])[0]
    return row


@wrong(
    "ch01.prefixes", "Left and right are exchanged. What comes first in the text is the left one.", see="a-chain-that-can-be-cut"
)
def exchanged(combine, items):
    row, distance = list(items), 1
    while distance < len(row):
        row = row[:distance] + combine(row[distance:], row[:-distance])
        distance *= 2
    return row


@wrong("ch01.prefixes", "The distance has to double: what a place knows doubles in each round.", see="a-chain-that-can-be-cut")
def distance_grows_by_one(combine, items):
    row, distance = list(items), 1
    while distance < len(row):
        row = row[:distance] + combine(row[:-distance], row[distance:])
        distance += 1
    return row


@wrong(
    "ch01.prefixes",
    "The distance stays 1: each round looks at the neighbour, which knows nearly the same.",
    see="a-chain-that-can-be-cut",
)
def neighbour_only(combine, items):
    row, distance = list(items), 1
    while distance < len(row):
        row = row[:1] + combine(row[:-1], row[1:])
        distance *= 2
    return row


@wrong("ch01.prefixes", "You stop one round too early when T is not a power of two: round up.", see="a-chain-that-can-be-cut")
def rounded_down(combine, items):
    row, distance = list(items), 1
    while 2 * distance <= len(row):
        row = row[:distance] + combine(row[:-distance], row[distance:])
        distance *= 2
    return row


@wrong(
    "ch01.prefixes",
    "The first places of a round are lost: those without a partner stay as they are.",
    see="a-chain-that-can-be-cut",
)
def first_places_lost(combine, items):
    row, distance = list(items), 1
    while distance < len(row):
        row = combine(row[:-distance], row[distance:])
        distance *= 2
    return row


@wrong(
    "ch01.prefixes",
    "Only the last of the results joins all items; the exercise asks for every result on the way.",
    see="a-chain-that-can-be-cut",
)
def total_only(combine, items):
    row = list(items)
    while len(row) > 1:
        even = len(row) // 2 * 2
        row = combine(row[0:even:2], row[1:even:2]) + row[even:]
    return row


@wrong("ch01.prefixes", "The list that you were given is changed.", see="a-chain-that-can-be-cut")
def changes_its_argument(combine, items):
    distance = 1
    while distance < len(items):
        items[distance:] = combine(items[:-distance], items[distance:])
        distance *= 2
    return items


@wrong("ch01.prefixes", "You start with the empty result: each place then lacks its own item.", see="a-chain-that-can-be-cut")
def without_own_item(combine, items):
    row, distance = list(items), 1
    while distance < len(row):
        row = row[:distance] + combine(row[:-distance], row[distance:])
        distance *= 2
    return row[:1] + row[:-1]


# ---------------------------------------------------------------- ch01.can_scan


@right("ch01.can_scan")
def grid(combine):
    line = torch.linspace(-10, 10, 41, dtype=torch.float64)
    x, y, z = (axis.reshape(-1) for axis in torch.meshgrid(line, line, line, indexing="ij"))
    gap = (combine(combine(x, y), z) - combine(x, combine(y, z))).abs()
    return bool((gap <= 1e-8 * (1 + combine(combine(x, y), z).abs())).all())


@right("ch01.can_scan")
def many_draws(combine):
    generator = torch.Generator().manual_seed(7)
    for _ in range(5):
        x, y, z = (torch.rand(1000, generator=generator, dtype=torch.float64) * 20 - 10 for _ in range(3))
        if (combine(combine(x, y), z) - combine(x, combine(y, z))).abs().max() > 1e-7:
            return False
    return True


@wrong(
    "ch01.can_scan",
    "You test whether left and right may be exchanged. The question is whether brackets may be moved.",
    see="a-chain-that-can-be-cut",
)
def commutative(combine):
    x, y = 20 * torch.rand(2, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.allclose(combine(x, y), combine(y, x), rtol=1e-9, atol=1e-9)


@wrong(
    "ch01.can_scan",
    "You ask for equal digits. Floats are rounded, and even addition differs in the last ones.",
    see="a-chain-that-can-be-cut",
)
def equal_digits(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.equal(combine(combine(x, y), z), combine(x, combine(y, z)))


@wrong("ch01.can_scan", "You try positive numbers only.", see="a-chain-that-can-be-cut")
def positive_only(combine):
    x, y, z = 10 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-9, atol=1e-9)


@wrong(
    "ch01.can_scan", "You try small numbers only: some operations go wrong when results are large.", see="a-chain-that-can-be-cut"
)
def small_only(combine):
    x, y, z = 2 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-9, atol=1e-9)


@wrong("ch01.can_scan", "You try three equal numbers, which tell you little.", see="a-chain-that-can-be-cut")
def equal_numbers(combine):
    x = 20 * torch.rand(2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.allclose(combine(combine(x, x), x), combine(x, combine(x, x)), rtol=1e-9, atol=1e-9)


@wrong(
    "ch01.can_scan", "A single triple can agree by chance. Try many, and not only whole numbers.", see="a-chain-that-can-be-cut"
)
def one_triple(combine):
    x, y, z = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-9, atol=1e-9)


@wrong("ch01.can_scan", "Your tolerance is too wide: an operation that is off by a little passes.", see="a-chain-that-can-be-cut")
def wide_tolerance(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-2, atol=1e-2)


@wrong(
    "ch01.can_scan",
    "Unless `rtol` says otherwise, `torch.allclose` allows a gap of 10⁻⁵ of the result, which is 10⁻² if the result is 1000.",
    see="a-chain-that-can-be-cut",
)
def usual_tolerance(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), atol=1e-9)


@wrong(
    "ch01.can_scan",
    "You try numbers a little beyond 10. What an operation does with those does not count.",
    see="a-chain-that-can-be-cut",
)
def up_to_eleven(combine):
    x, y, z = 22 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 11
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-9, atol=1e-9)


@wrong(
    "ch01.can_scan",
    "You try numbers beyond −10 and 10. What an operation does with those does not count.",
    see="a-chain-that-can-be-cut",
)
def beyond_the_range(combine):
    x, y, z = 200 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 100
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-9, atol=1e-9)


@wrong(
    "ch01.can_scan",
    "An operation is associative only if all triples agree, not if some or most do.",
    see="a-chain-that-can-be-cut",
)
def most_agree(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return bool(torch.isclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-9, atol=1e-9).double().mean() > 0.5)


@wrong(
    "ch01.can_scan",
    "Your tolerance grows with the result: a millionth of 1000 is ten times the gap that you must find.",
    see="a-chain-that-can-be-cut",
)
def six_digits(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.allclose(combine(combine(x, y), z), combine(x, combine(y, z)), rtol=1e-6, atol=1e-9)


@wrong("ch01.can_scan", "You take the mean of the gaps, in which a few small ones disappear.", see="a-chain-that-can-be-cut")
def mean_of_the_gaps(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return bool((combine(combine(x, y), z) - combine(x, combine(y, z))).abs().mean() < 1e-5)


@wrong("ch01.can_scan", "You look for gaps of one sign only. Take their size.", see="a-chain-that-can-be-cut")
def gaps_of_one_sign(combine):
    x, y, z = 20 * torch.rand(3, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return bool((combine(combine(x, y), z) - combine(x, combine(y, z))).max() < 1e-6)


@wrong("ch01.can_scan", "Two of your three numbers are always equal. Draw all three freely.", see="a-chain-that-can-be-cut")
def two_equal_numbers(combine):
    x, y = 20 * torch.rand(2, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return torch.allclose(combine(combine(x, x), y), combine(x, combine(x, y)), rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- ch01.pairs

right("ch01.pairs", {"every": 22500.0, "causal": 11325, "ratio": 3.987})
wrong(
    "ch01.pairs",
    {"every": 22500, "causal": 11175, "ratio": 44850 / 11175},
    "A token sees itself too.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.pairs",
    {"every": 22500, "causal": 11325, "ratio": 4.0},
    "Four is the ratio of all pairs; the causal one is near it, and the third digit shows the difference.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.pairs",
    {"every": 22500, "causal": 11250, "ratio": 4.0},
    "The causal share is a half for long texts only: count 1 + 2 + … + T.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.pairs",
    {"every": 11325, "causal": 22500, "ratio": 45150 / 11325},
    "You exchanged the two: causal is the smaller number.",
    see="looking-at-everything-at-once",
)

# ---------------------------------------------------------------- ch01.window

right("ch01.window", cell("r, T = sympy.symbols('r T')\nwindow = r * T - r**2 / 2 + r / 2"))
wrong(
    "ch01.window",
    cell("r, T = sympy.symbols('r T', positive=True)\nwindow = r * T"),
    "The first tokens have fewer than r tokens to see.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.window",
    cell("r, T = sympy.symbols('r T', positive=True)\nwindow = r * T - r * (r + 1) / 2"),
    "Try r = 1: each token sees itself, which gives T pairs.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.window",
    cell("r, T = sympy.symbols('r T', positive=True)\nwindow = r * (T - r)"),
    "The pairs of the first r tokens are missing.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.window",
    cell("r, T = sympy.symbols('r T', positive=True)\nwindow = T * (T + 1) / 2"),
    "That is without a window: each token sees all that came before.",
    see="looking-at-everything-at-once",
)
wrong(
    "ch01.window",
    cell("r, T = sympy.symbols('r T', positive=True)\nwindow = (r + 1) * T - r * (r + 1) / 2"),
    "The token itself is among the r that it sees.",
    see="looking-at-everything-at-once",
)

# ---------------------------------------------------------------- ch01.layers

right("ch01.layers", {"plain": 1000.0, "dilated": 5.0})
wrong(
    "ch01.layers",
    {"plain": 834, "dilated": 5},
    "One layer reaches k − 1 tokens back: the token itself is one of the k.",
    see="how-far-a-word-has-to-travel",
)
wrong(
    "ch01.layers",
    {"plain": 999, "dilated": 4},
    "Rounded down, the last token does not hear of the first.",
    see="how-far-a-word-has-to-travel",
)
wrong("ch01.layers", {"plain": 5, "dilated": 5}, "The logarithm is for dilated layers only.", see="how-far-a-word-has-to-travel")
wrong(
    "ch01.layers",
    {"plain": 1000, "dilated": 13},
    "That is the logarithm to base 2; reach grows by the factor k in each layer.",
    see="how-far-a-word-has-to-travel",
)

# ---------------------------------------------------------------- ch01.prediction

wrong("ch01.prediction", 1e6, "No float holds ten to a power as large as this.", see="an-experiment-the-way-back")
wrong("ch01.prediction", "tiny", "A prediction that an experiment can refute is a number.", see="an-experiment-the-way-back")

# ---------------------------------------------------------------- changes that make no difference

equivalent("ch01.finish", "`for before, duration in zip(needs, minutes…):`", "the two lists are equally long")
for number in (1999, 2001, 4000):
    equivalent(
        "ch01.can_scan", f"`x, y, z = 20 * torch.rand(3, {number}, dtype=torch.float64) - 10`", "a few triples more or fewer"
    )
for tolerances in ("rtol=2e-09, atol=1e-09", "rtol=1e-09, atol=2e-09", "rtol=1e-09"):
    equivalent(
        "ch01.can_scan", f"`return torch.allclose(left, right, {tolerances})`", "tolerances between the two that the task names"
    )
for change in ("45150 / 11326", "45151 / 11325", "45149 / 11325", "45150 / 11324"):
    equivalent("ch01.pairs", f"`ratio = {change}`", "the same to three digits after the point")
equivalent("ch01.window", "`r, T = sympy.symbols('r T'…)`", "the names tell the letters, not what is assumed of them")
