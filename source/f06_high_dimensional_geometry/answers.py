"""Other right answers and named wrong answers of chapter f06."""

import math

import numpy as np
import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f06.changes

right("f06.changes", "fdca")
right("f06.changes", "ACDF")
right("f06.changes", "a, c, d, f")
right("f06.changes", ["a", "c", "d", "f"])
wrong(
    "f06.changes",
    "abde",
    "Those are the changes that do not touch the order by cosine. A distance depends on the lengths too.",
    see="when-they-agree",
)
wrong(
    "f06.changes",
    "acd",
    "One is missing: a term that is the same for all candidates changes every distance, and no order.",
    see="when-they-agree",
)
wrong("f06.changes", "cd", "Distances may change, as long as all of them change alike.", see="when-they-agree")
wrong(
    "f06.changes",
    "acdef",
    "A longer query moves nearer to long candidates: in the figure, C would win at three times the query.",
    see="when-they-agree",
)
wrong("f06.changes", "adf", "Moving the query and all candidates together changes no difference.", see="when-they-agree")

# ---------------------------------------------------------------- f06.ranks_by_angle


@right("f06.ranks_by_angle")
def by_ranks(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        scores, far = score(query, candidates), cosines[:, None] - cosines > 1e-6
        if not (scores[:, None] > scores)[far].all():
            return False
    return True


@right("f06.ranks_by_angle")
def five_at_a_time(score):
    rng = np.random.default_rng(0)
    for d in range(2, 21):
        for _ in range(8):
            rows = torch.from_numpy(rng.normal(size=(6, d)))
            rows = rows / rows.norm(dim=-1, keepdim=True) * torch.from_numpy(10 ** rng.uniform(-2, 2, size=(6, 1)))
            query, some = rows[0], rows[1:]
            cosines = (some @ query / (some.norm(dim=-1) * query.norm())).tolist()
            both = list(zip(cosines, score(query, some).tolist(), strict=True))
            if any(near > far + 1e-6 and not high > low for near, high in both for far, low in both):
                return False
    return True


@right("f06.ranks_by_angle")
def ladder_of_angles(score):
    # Candidates of random lengths at angles of my choice, so that every part of the scale is seen.
    generator = torch.Generator().manual_seed(3)
    for d in [d for d in range(2, 21) for _ in range(4)]:
        basis = torch.linalg.qr(torch.randn(d, 2, generator=generator, dtype=torch.float64))[0].T
        angles = torch.linspace(0.02, 3.12, 200, dtype=torch.float64)[:, None]
        sides = torch.randn(200, d, generator=generator, dtype=torch.float64)
        sides = torch.nn.functional.normalize(sides - (sides @ basis[0])[:, None] * basis[0], dim=-1)
        ladder = angles.cos() * basis[0] + angles.sin() * sides
        lengths = 10 ** (4 * torch.rand(201, 1, generator=generator, dtype=torch.float64) - 2)
        if not (score(lengths[0] * basis[0], lengths[1:] * ladder).diff() < 0).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You compare the scores with the cosine itself. Minus the angle has other values and ranks just the same.",
    see="when-they-agree",
)
def compares_values(score):
    generator = torch.Generator().manual_seed(7)
    for d in range(2, 21):
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        if not torch.allclose(score(query, candidates), cosines, atol=1e-6):
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "All your vectors have length 1. There distance and inner product rank like the cosine, and cannot show that they are wrong.",
    see="when-they-agree",
)
def all_of_length_one(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (torch.zeros(81, 1, dtype=torch.float64))
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "Your entries are all positive, so that no angle is larger than 90°. What happens on the other side?",
    see="when-they-agree",
)
def positive_entries(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.rand(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "The entries of your candidates are all positive. A score that drops their signs is right for those, and wrong for others.",
    see="when-they-agree",
)
def positive_candidates(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        unit[1:] = unit[1:].abs()
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You let two candidates have the same score. The one at the smaller angle has to score strictly higher.",
    see="when-they-agree",
)
def ties_allowed(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() >= 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You check only who comes first. All the others have to be in order too.",
    see="when-they-agree",
)
def the_best_only(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        scores = score(query, candidates)
        if scores.argmax() != cosines.argmax():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You try a single dimension. A score can be right there and wrong elsewhere.",
    see="when-they-agree",
)
def one_dimension(score):
    generator = torch.Generator().manual_seed(7)
    for d in [8] * 30:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "All your vectors are long. A score can go wrong for short ones.",
    see="when-they-agree",
)
def long_vectors_only(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (2 * torch.rand(81, 1, generator=generator, dtype=torch.float64))
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "All your vectors are short. A score can go wrong for long ones.",
    see="when-they-agree",
)
def short_vectors_only(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (-2 * torch.rand(81, 1, generator=generator, dtype=torch.float64))
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "Your order is upside down: a smaller angle means a larger cosine and has to score higher.",
    see="when-they-agree",
)
def falls_with_the_cosine(score):
    generator = torch.Generator().manual_seed(7)
    for d in range(2, 21):
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() < 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You sort and compare the two orders. A sort gives nan a place, and ties as well, though neither scores strictly higher. Compare the scores.",
    see="when-they-agree",
)
def compares_orders(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        if not torch.equal(score(query, candidates).argsort(stable=True), cosines.argsort(stable=True)):
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You refuse a right score for two candidates whose cosines differ by less than a millionth. These may come in any order.",
    see="when-they-agree",
)
def no_tolerance(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 21) for _ in range(4)]:
        unit = torch.nn.functional.normalize(torch.randn(401, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(401, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        if not (score(query, candidates)[cosines.argsort()].diff() > 0).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "You go beyond d = 20. What a score does there is not promised: a right one may fail.",
    see="when-they-agree",
)
def up_to_twenty_four(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 25) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


@wrong(
    "f06.ranks_by_angle",
    "Your dimensions end at 19: range leaves out its end. A score can go wrong at d = 20.",
    see="when-they-agree",
)
def up_to_nineteen(score):
    generator = torch.Generator().manual_seed(7)
    for d in [d for d in range(2, 20) for _ in range(2)]:
        unit = torch.nn.functional.normalize(torch.randn(81, d, generator=generator, dtype=torch.float64), dim=-1)
        rows = unit * 10 ** (4 * torch.rand(81, 1, generator=generator, dtype=torch.float64) - 2)
        query, candidates, cosines = rows[0], rows[1:], unit[1:] @ unit[0]
        order = cosines.argsort()
        if not ((score(query, candidates)[order].diff() > 0) | (cosines[order].diff() < 1e-6)).all():
            return False
    return True


for line in (
    "lengths = 10 ** (4 * torch.rand(101, 1, generator=generator) - 2)",
    "lengths = 9 ** (4 * torch.rand(101, 1, generator=generator, dtype=torch.float64) - 2)",
    "lengths = 10 ** (4 * torch.rand(101, 1, dtype=torch.float64) - 2)",
    "for _ in range(3):",
    "for _ in range(5):",
    "for _ in range(8):",
    "directions = torch.randn(101, d, dtype=torch.float64)",
    "generator = torch.Generator().manual_seed(-1)",
    "generator = torch.Generator().manual_seed(1)",
    "generator = torch.manual_seed(0)",
):
    equivalent("f06.ranks_by_angle", f"`{line}`", "other random numbers of the ranges that the task names")
for line in (
    "order = (unit[1:] @ unit[1]).argsort()",
    "order = (unit[1:] @ unit[-1]).argsort()",
    "order = (unit[2:] @ unit[0]).argsort()",
    "order = unit[1:].argsort()",
):
    equivalent("f06.ranks_by_angle", f"`{line}`", "in any list, the score must rise wherever the cosine does")
for line in ("unit[0:] @ unit[0]", "unit[1:] @ unit[1]", "unit[1:] @ unit[-1]"):
    equivalent(
        "f06.ranks_by_angle",
        f"`cosines, scores = (({line})[order], score(query, candidates)[order])`",
        "half of the neighbours are left out, and the other half suffice",
    )
for line in ("< 2e-06", "< -1e-06", "<= 1e-06", "< -0.999999"):
    equivalent(
        "f06.ranks_by_angle",
        f"`if not ((scores.diff() > 0) | (cosines.diff() {line})).all():`",
        "its own draws have no cosines as near as 2e-6",
    )
equivalent(
    "f06.ranks_by_angle",
    "`lengths = -10 ** (4 * torch.rand(101, 1, generator=generator, dtype=torch.float64) - 2)`",
    "all vectors turn around, and no angle changes",
)
equivalent(
    "f06.ranks_by_angle",
    "`directions = torch.randn(101, d, generator=generator)`",
    "cosines of float32 are off by less than 1e-6, and the score gets float64",
)
equivalent("f06.ranks_by_angle", "`unit = directions / directions.norm(dim=1, keepdim=True)`", "dimension 1 is the last")
equivalent("f06.ranks_by_angle", "without `generator = torch.Generator().manual_seed(0)`", "an earlier cell has a generator")

# ---------------------------------------------------------------- f06.strangers


@right("f06.strangers")
def one_stranger_at_a_time(strangers, stored, rare):
    bests = [float(torch.nn.functional.cosine_similarity(row[None], stored).max()) for row in strangers]
    place = (len(bests) + 1) // rare
    return sorted(bests)[-place] if place else math.inf


@right("f06.strangers")
def tries_all_bounds(strangers, stored, rare):
    u, v = (np.asarray(rows, dtype=np.float64) for rows in (strangers, stored))
    cosines = (u @ v.T) / np.linalg.norm(u, axis=1)[:, None] / np.linalg.norm(v, axis=1)
    bests = np.sort(cosines.max(axis=1))[::-1]
    enough = [bests[j - 1] for j in range(1, len(bests) + 1) if j * rare <= len(bests) + 1]
    return float(min(enough, default=float("inf")))


@wrong(
    "f06.strangers",
    "You rank the m bests among themselves. The new stranger has a place as well: there are m + 1.",
    see="not-every-cosine-tends-to-zero",
)
def without_the_new_one(strangers, stored, rare):
    best = torch.stack([torch.cosine_similarity(row[None], stored).max() for row in strangers])
    j = len(best) // rare
    return best.sort(descending=True).values[j - 1].item() if j else math.inf


@wrong(
    "f06.strangers",
    "A quantile lies between two of the bests and forgets the place of the new stranger. The task asks for one of the bests.",
    see="not-every-cosine-tends-to-zero",
)
def quantile(strangers, stored, rare):
    best = torch.stack([torch.cosine_similarity(row[None], stored).max() for row in strangers])
    return best.quantile(1 - 1 / rare).item()


@wrong(
    "f06.strangers",
    "With too few strangers not even the largest best is rare enough. Then there is no finite bound.",
    see="not-every-cosine-tends-to-zero",
)
def the_largest_if_none(strangers, stored, rare):
    best = torch.stack([torch.cosine_similarity(row[None], stored).max() for row in strangers])
    return best.sort(descending=True).values[max((len(best) + 1) // rare, 1) - 1].item()


@wrong(
    "f06.strangers",
    "You count equal bests once. Each stranger has a place of its own, whatever it found.",
    see="not-every-cosine-tends-to-zero",
)
def equal_bests_once(strangers, stored, rare):
    best = torch.stack([torch.cosine_similarity(row[None], stored).max() for row in strangers]).unique()
    j = (len(strangers) + 1) // rare
    return best[-min(j, len(best))].item() if j else math.inf


@wrong(
    "f06.strangers",
    "You multiply by 1/rare, which is rounded: 49 times 1/49 is less than 1 in floats. Divide whole numbers with `//`.",
    see="not-every-cosine-tends-to-zero",
)
def times_a_rounded_share(strangers, stored, rare):
    best = torch.stack([torch.cosine_similarity(row[None], stored).max() for row in strangers])
    j = int((len(best) + 1) * (1 / rare))
    return best.sort(descending=True).values[j - 1].item() if j else math.inf


@wrong(
    "f06.strangers",
    "You compare inner products. The task asks for cosines: divide by both lengths first.",
    see="two-measures",
)
def inner_products(strangers, stored, rare):
    best = (strangers @ stored.T).amax(dim=-1)
    j = (len(best) + 1) // rare
    return best.sort(descending=True).values[j - 1].item() if j else math.inf


@wrong(
    "f06.strangers",
    "You rank all cosines of all pairs. A search reports only its best, and the best of n is higher than most.",
    see="random-directions",
)
def all_pairs(strangers, stored, rare):
    pairs = torch.cosine_similarity(strangers[:, None], stored[None], dim=-1).flatten()
    j = (len(pairs) + 1) // rare
    return pairs.sort(descending=True).values[j - 1].item() if j else math.inf


@wrong(
    "f06.strangers",
    "You took the best stranger for each stored row. It is the strangers that search among the stored rows.",
    see="not-every-cosine-tends-to-zero",
)
def best_of_each_stored_row(strangers, stored, rare):
    best = torch.cosine_similarity(strangers[:, None], stored[None], dim=-1).amax(dim=0)
    j = (len(best) + 1) // rare
    return best.sort(descending=True).values[j - 1].item() if j else math.inf


@wrong(
    "f06.strangers",
    "You counted from the smallest best. A new stranger exceeds that one nearly always.",
    see="not-every-cosine-tends-to-zero",
)
def from_the_smallest(strangers, stored, rare):
    best = torch.stack([torch.cosine_similarity(row[None], stored).max() for row in strangers])
    j = (len(best) + 1) // rare
    return best.sort().values[j - 1].item() if j else math.inf


@wrong(
    "f06.strangers",
    "That is the bound for random directions. These rows may well prefer a side: rank what the strangers found.",
    see="not-every-cosine-tends-to-zero",
)
def as_for_random_directions(strangers, stored, rare):
    return math.sqrt(2 * math.log(len(stored) * rare) / stored.shape[-1])


for line in (
    "best = (rows @ (stored / stored.norm(dim=1, keepdim=True)).T).amax(dim=-1)",
    "best = (rows @ (stored / stored.norm(dim=-1, keepdim=True)).T).amax(dim=1)",
    "rows = strangers / strangers.norm(dim=1, keepdim=True)",
):
    equivalent("f06.strangers", f"`{line}`", "dimension 1 is the last")
equivalent(
    "f06.strangers",
    "`return best.sort(descending=True).values[j - 1] if j else math.inf`",
    "a tensor without axes is a number",
)

# ---------------------------------------------------------------- f06.offset

right(
    "f06.offset",
    cell(
        "m, w = sympy.symbols('m w', real=True)\ns, t = sympy.symbols('s t', positive=True)\nlimit = m / sympy.sqrt(m**2 + s**2) * w / sympy.sqrt(w**2 + t**2)"
    ),
)
right(
    "f06.offset",
    cell("m, s, w, t = sympy.symbols('m s w t')\nlimit = m * w / (sympy.sqrt(m**2 + s**2) * sympy.sqrt(w**2 + t**2))"),
)
for formula, sentence in {
    "sympy.Integer(0)": "Independent vectors are nearly orthogonal only if a mean is 0. Here both may have an offset.",
    "m * w / (s * t)": "You divided by the standard deviations. A length is a second moment: variance plus squared mean.",
    "m * w / sympy.sqrt((m + s) * (w + t))": "Second moments are made of squares: of the mean and of the standard deviation.",
    "m * w / ((m**2 + s**2) * (w**2 + t**2))": "You divided by the squared lengths. The roots are missing.",
    "m**2 / (m**2 + s**2)": "That is right if both vectors follow one rule. Here they may differ.",
    "m * w / sqrt_of_sum": "You added the two second moments. The lengths are multiplied.",
    "(m * w + s * t) / sympy.sqrt((m**2 + s**2) * (w**2 + t**2))": "The deviations are independent: the mean of their product is 0.",
    "abs(m * w) / sympy.sqrt((m**2 + s**2) * (w**2 + t**2))": "Means of opposite signs make an obtuse angle: the limit is negative.",
    "sympy.Integer(1)": "Only without spread, s = t = 0, do all entries agree and all vectors point one way.",
}.items():
    source = formula.replace("sqrt_of_sum", "sympy.sqrt(m**2 + s**2 + w**2 + t**2)")
    wrong(
        "f06.offset",
        cell(f"m, w = sympy.symbols('m w', real=True)\ns, t = sympy.symbols('s t', positive=True)\nlimit = {source}"),
        sentence,
        see="not-every-cosine-tends-to-zero",
    )

for line in (
    "m, w = sympy.symbols('m w', real=False)",
    "m, w = sympy.symbols('m w')",
    "s, t = sympy.symbols('s t', positive=False)",
    "s, t = sympy.symbols('s t')",
):
    equivalent("f06.offset", f"`{line}`", "letters are known by their names")

# ---------------------------------------------------------------- f06.effective_dimension


@right("f06.effective_dimension")
def by_singular_values(X):
    squares = torch.linalg.svdvals(X - X.mean(dim=0, keepdim=True)) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


@right("f06.effective_dimension")
def by_pairs_of_rows(X):
    A = (X - X.mean(dim=0)).numpy()
    products = np.array([[u @ v for v in A] for u in A])
    return float(np.trace(products) ** 2 / (products**2).sum())


@wrong(
    "f06.effective_dimension",
    "You took the variances of the columns. That is right only if no column depends on another.",
    see="what-dimension-does-to-distances",
)
def columns_only(X):
    variances = X.var(dim=0)
    return (variances.sum() ** 2 / variances.square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "The mean is not subtracted: an offset counts as one large direction.",
    see="what-dimension-does-to-distances",
)
def not_centred(X):
    gram = X @ X.T
    return (gram.trace() ** 2 / gram.square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "You centred the rows. The mean to subtract is that of each column.",
    see="what-dimension-does-to-distances",
)
def rows_centred(X):
    A = X - X.mean(dim=1, keepdim=True)
    gram = A @ A.T
    return (gram.trace() ** 2 / gram.square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "The formula is right, but you build a matrix of d rows and d columns. Turn the factors of the trace around.",
    see="what-dimension-does-to-distances",
)
def builds_the_large_matrix(X):
    A = X - X.mean(dim=0)
    C = A.T @ A / len(X)
    return (C.trace() ** 2 / (C @ C).trace()).item()


@wrong(
    "f06.effective_dimension",
    "You squared the entries on the diagonal. The square of a matrix has the whole matrix in its trace.",
    see="what-dimension-does-to-distances",
)
def diagonal_of_gram(X):
    A = X - X.mean(dim=0)
    gram = A @ A.T
    return (gram.trace() ** 2 / gram.diagonal().square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "The trace in the numerator is not squared, so the result changes with the unit of the data.",
    see="what-dimension-does-to-distances",
)
def trace_not_squared(X):
    A = X - X.mean(dim=0)
    gram = A @ A.T / len(X)
    return (gram.trace() / gram.square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "You used the singular values of the data. The variances are in proportion to their squares.",
    see="what-dimension-does-to-distances",
)
def singular_values_unsquared(X):
    values = torch.linalg.svdvals(X - X.mean(dim=0))
    return (values.sum() ** 2 / values.square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "The value is right, but you subtracted the mean in place: the caller's X is changed.",
    see="what-dimension-does-to-distances",
)
def changes_its_argument(X):
    X -= X.mean(dim=0)
    gram = X @ X.T
    return (gram.trace() ** 2 / gram.square().sum()).item()


@wrong(
    "f06.effective_dimension",
    "That is the rank: it counts small directions as much as large ones.",
    see="what-dimension-does-to-distances",
)
def rank(X):
    return float(torch.linalg.matrix_rank(X - X.mean(dim=0)))


equivalent("f06.effective_dimension", "`return gram.trace() ** 2 / gram.square().sum()`", "a tensor without axes is a number")

# ---------------------------------------------------------------- f06.cold

right("f06.cold", 0.0187)
right("f06.cold", cell("tau = sympy.Rational(1, 5) / sympy.log(9 * 4999)"))
right("f06.cold", cell("tau = -0.2 / math.log(0.1 / 0.9 / 4999)"))
wrong("f06.cold", 0.2 / math.log(9), "That is for a single rival. Many small weights add up.", see="search-by-inner-product")
wrong("f06.cold", 0.2 / math.log(4999), "There the best has one half. The question asks for 0.9.", see="search-by-inner-product")
wrong("f06.cold", math.log(9 * 4999) / 0.2, "That is one over the temperature.", see="search-by-inner-product")
wrong(
    "f06.cold",
    0.2 / math.log10(9 * 4999),
    "That is the logarithm to base 10; softmax is built on e.",
    see="search-by-inner-product",
)
wrong(
    "f06.cold",
    0.2 / math.log(10 * 4999),
    "You took the weight of the best as 1. It has 0.9, and all others together have 0.1.",
    see="search-by-inner-product",
)
wrong("f06.cold", 1 / math.log(9 * 4999), "You left out the lead of 0.2.", see="search-by-inner-product")
wrong(
    "f06.cold",
    0.2 / math.log(0.9 * 4999),
    "Each rival may have no more than its part of the remaining tenth, not 1/4,999.",
    see="search-by-inner-product",
)

for rivals in (4998, 5000):
    equivalent("f06.cold", f"`tau = 0.2 / math.log(9 * {rivals})`", "the same in four decimals")

# ---------------------------------------------------------------- f06.reduce


@right("f06.reduce")
def row_by_row(vectors):
    squares = [float((row.double() ** 2).sum()) for row in vectors]
    extra = torch.tensor([math.sqrt(max(squares) - square) for square in squares], dtype=vectors.dtype)
    return torch.cat([vectors, extra[:, None]], dim=1)


@right("f06.reduce")
def product_of_sum_and_difference(vectors):
    lengths = torch.linalg.vector_norm(vectors, dim=-1)
    largest = lengths.max()
    return torch.nn.functional.pad(vectors, (0, 1)) + torch.nn.functional.pad(
        ((largest - lengths) * (largest + lengths)).sqrt()[:, None], (vectors.shape[-1], 0)
    )


@wrong(
    "f06.reduce",
    "You added the missing length. The new entry is at a right angle to the row: use Pythagoras.",
    see="search-by-inner-product",
)
def missing_length(vectors):
    lengths = vectors.norm(dim=-1, keepdim=True)
    return torch.cat([vectors, lengths.max() - lengths], dim=-1)


@wrong("f06.reduce", "The root is missing: that is the square of the new entry.", see="search-by-inner-product")
def without_the_root(vectors):
    squares = vectors.square().sum(dim=-1, keepdim=True)
    return torch.cat([vectors, squares.max() - squares], dim=-1)


@wrong(
    "f06.reduce",
    "You divided the rows by their lengths. That gives the search by cosine; the given rows have to stay.",
    see="when-they-agree",
)
def normalised(vectors):
    lengths = vectors.norm(dim=-1, keepdim=True)
    unit = vectors / lengths.clamp(min=1e-12) * lengths.max()
    return torch.cat([unit, torch.zeros_like(lengths)], dim=-1)


@wrong("f06.reduce", "Your lengths are those of the columns: sum the squares along each row.", see="search-by-inner-product")
def column_lengths(vectors):
    squares = vectors.square().sum(dim=0)
    extra = (squares.max() - squares)[: len(vectors)]
    extra = torch.nn.functional.pad(extra, (0, len(vectors) - len(extra)))
    return torch.cat([vectors, extra.clamp(min=0).sqrt()[:, None]], dim=-1)


@wrong(
    "f06.reduce",
    "Rounding can make the difference of two equal squares a little negative, and its root is nan.",
    see="search-by-inner-product",
)
def nan_by_rounding(vectors):
    largest = torch.linalg.vector_norm(vectors, dim=-1).max() ** 2
    return torch.cat([vectors, (largest - vectors.square().sum(dim=-1, keepdim=True)).sqrt()], dim=-1)


@wrong(
    "f06.reduce",
    "You took the largest entry for the longest row.",
    see="search-by-inner-product",
)
def largest_entry(vectors):
    squares = vectors.square().sum(dim=-1, keepdim=True)
    return torch.cat([vectors, (vectors.abs().max() ** 2 - squares).clamp(min=0).sqrt()], dim=-1)


@wrong("f06.reduce", "The result has to have the dtype of the rows.", see="search-by-inner-product")
def always_float32(vectors):
    squares = vectors.square().sum(dim=-1, keepdim=True)
    return torch.cat([vectors, (squares.max() - squares).clamp(min=0).sqrt()], dim=-1).float()


@wrong("f06.reduce", "The new entry comes last: a query gets its 0 at the end.", see="search-by-inner-product")
def at_the_front(vectors):
    squares = vectors.square().sum(dim=-1, keepdim=True)
    return torch.cat([(squares.max() - squares).clamp(min=0).sqrt(), vectors], dim=-1)


@wrong(
    "f06.reduce",
    "All rows get equal lengths, but longer ones than the longest row has. The new entry of that row should be 0.",
    see="search-by-inner-product",
)
def longer_than_the_longest(vectors):
    squares = vectors.square().sum(dim=-1, keepdim=True)
    return torch.cat([vectors, (squares.sum() - squares).clamp(min=0).sqrt()], dim=-1)


@wrong(
    "f06.reduce",
    "You set small entries to 0. With short rows a small entry is all that is missing.",
    see="search-by-inner-product",
)
def small_entries_dropped(vectors):
    squares = vectors.square().sum(dim=-1, keepdim=True)
    extra = (squares.max() - squares).sqrt()
    return torch.cat([vectors, torch.where(extra < 1e-3, 0 * extra, extra)], dim=-1)


equivalent("f06.reduce", "`squares = vectors.square().sum(dim=1, keepdim=True)`", "dimension 1 is the last")
equivalent("f06.reduce", "`return torch.cat([vectors, (squares.max() - squares).sqrt()], dim=1)`", "dimension 1 is the last")

# ---------------------------------------------------------------- f06.prediction

right("f06.prediction", 1.0)
right("f06.prediction", 0.5)
wrong(
    "f06.prediction",
    61,
    "That looks like a percentage. An AUC is a probability.",
    see="an-experiment-who-tells-friends-from-strangers",
)
wrong(
    "f06.prediction", "about 0.6", "The task asks for a number, not a text.", see="an-experiment-who-tells-friends-from-strangers"
)
