"""Other right answers and named wrong answers of the exercises of ch23."""

import math

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch23.walks

_WALKS = """
def flight(u, sides, gamma):
    return (sides * u ** (-1 / (gamma - 1))).cumsum(dim=1)

def pace(places):
    at = [2**i for i in range(6, 64) if 2**i <= places.shape[1]]
    y = torch.stack([places[:, n - 1].abs().median() for n in at]).log()
    x = torch.tensor(at, dtype=torch.float64).log()
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())
"""


def _walks(old, new):
    assert _WALKS.count(old) == 1, old
    return cell(_WALKS.replace(old, new))


@right("ch23.walks")
class by_numpy:
    def flight(u, sides, gamma):
        import numpy as np

        lengths = np.exp(np.log(u.numpy()) / (1 - gamma))
        return torch.from_numpy(np.cumsum(sides.numpy() * lengths, axis=1))

    def pace(places):
        import numpy as np

        at = np.array([2**i for i in range(6, 40) if 2**i <= places.shape[1]])
        return np.polyfit(np.log(at), np.log(np.median(np.abs(places.numpy()[:, at - 1]), axis=0)), 1)[0]


wrong(
    "ch23.walks",
    _walks("-1 / (gamma - 1)", "-1 / gamma"),
    "You inverted with the exponent of the density. The chance to exceed a length has another one.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks("-1 / (gamma - 1)", "1 / (gamma - 1)"),
    "Lengths come out below 1: a small chance to be exceeded belongs to a long jump.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks("(sides * u ** (-1 / (gamma - 1))).cumsum(dim=1)", "sides * u ** (-1 / (gamma - 1))"),
    "These are the jumps. A place is the sum of all jumps so far.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks("(sides * u ** (-1 / (gamma - 1))).cumsum(dim=1)", "(sides * u ** (-1 / (gamma - 1))).cumsum(dim=0)"),
    "You summed over the walks. Each walk, a row, sums its own jumps.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks(".abs().median()", ".std()"),
    "A standard deviation of heavy tails is what the longest flight of the sample makes it.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks(".abs().median()", ".abs().mean()"),
    "A mean of heavy tails hangs on a few walks, and for some exponents it does not exist.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks("range(6, 64)", "range(0, 64)"),
    "The slope was taken from the first jump on; asked for is the growth from 64 jumps on.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks("n - 1", "n - 2"),
    "Off by one: the place after n jumps is in column n − 1.",
    see="how-far-n-jumps-go",
)

wrong(
    "ch23.walks",
    _walks("places[:, n - 1].abs()", "places[:, n - 1].abs_()"),
    "The places that were given lost their sides: a function ending in an underscore changes what it is called on.",
    see="how-far-n-jumps-go",
)
wrong(
    "ch23.walks",
    _walks("for i in range(6, 64) if 2**i <= places.shape[1]]", "for i in (6, int(math.log2(places.shape[1])))]"),
    "The slope was drawn through the two ends. A least-squares line uses all numbers of jumps in between.",
    see="how-far-n-jumps-go",
)

# ---------------------------------------------------------------- ch23.caveat

_CAVEAT = {"low": 1, "high": 3, "outside": 155 / 185, "felt": 64}
wrong(
    "ch23.caveat",
    _CAVEAT | {"low": 0, "high": 2},
    "These are the ends for the index α. Asked for are those for γ.",
    see="the-range-and-what-it-leaves-out",
)
wrong(
    "ch23.caveat",
    _CAVEAT | {"outside": 30 / 185},
    "That is the share inside the range.",
    see="the-range-and-what-it-leaves-out",
)
wrong(
    "ch23.caveat",
    _CAVEAT | {"outside": 0.0},
    "You looked at the upper end only. A law needs a finite sum as well.",
    see="the-range-and-what-it-leaves-out",
)
wrong(
    "ch23.caveat",
    _CAVEAT | {"felt": 4096**1.5},
    "The exponent of the crossover is that of the chance to exceed a length, not that of the density.",
    see="a-cut-off-brings-gauss-back",
)

# ---------------------------------------------------------------- ch23.averages


@right("ch23.averages")
def column_by_column(layer, n):
    zero = torch.zeros(n, dtype=torch.float64)
    sums, columns = zero.clone(), []
    for j in range(n):
        one = zero.clone()
        one[j] = 1.0
        column = layer(one)
        if bool((column < -2e-6).any()) or bool((column[:j].abs() > 2e-6).any()):
            return False
        columns.append(column)
        sums += column
    if bool(((sums - 1).abs() > 2e-6).any()):
        return False
    generator = torch.Generator().manual_seed(5)
    for _ in range(20):
        f = 10 * torch.randn(n, generator=generator, dtype=torch.float64).clamp(-1, 1)
        if bool(((layer(f) - sum(x * c for x, c in zip(f, columns, strict=True))).abs() > 2e-6).any()):
            return False
    return True


@wrong(
    "ch23.averages",
    "Results that stay between the smallest and the largest input are not enough: nonlinear layers do that, too.",
    see="the-symbol-of-a-kernel",
)
def stays_between(layer, n):
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        f = 20 * torch.rand(n, generator=generator, dtype=torch.float64) - 10
        out = layer(f)
        if out.max() > f.max() + 1e-5 or out.min() < f.min() - 1e-5:
            return False
    return True


@wrong(
    "ch23.averages",
    "A constant that passes unchanged shows only that rows sum to one.",
    see="the-symbol-of-a-kernel",
)
def constants_pass(layer, n):
    return bool((layer(torch.full((n,), 3.0, dtype=torch.float64)) - 3).abs().max() < 1e-5)


@wrong(
    "ch23.averages",
    "Linearity was taken for granted: unit vectors describe a layer only if sums of them become sums.",
    see="the-symbol-of-a-kernel",
)
def no_test_of_linearity(layer, n):
    P = torch.stack([layer(e) for e in torch.eye(n, dtype=torch.float64)], dim=1)
    return bool(P.min() > -1e-5 and (P.sum(dim=1) - 1).abs().max() < 1e-5 and P.triu(1).abs().max() < 1e-5)


@wrong(
    "ch23.averages",
    "You refused weights that are only rounded. What may be off by a billionth must pass.",
    see="the-symbol-of-a-kernel",
)
def too_strict(layer, n):
    P = torch.stack([layer(e) for e in torch.eye(n, dtype=torch.float64)], dim=1)
    f = 10 * torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 5
    even = bool((P >= 0).all()) and bool(((P.sum(dim=1) - 1).abs() < 1e-12).all()) and bool((P.triu(1) == 0).all())
    return even and torch.allclose(layer(f), P @ f, rtol=0, atol=1e-12)


@wrong(
    "ch23.averages",
    "Weights on later places were not looked for.",
    see="the-symbol-of-a-kernel",
)
def no_test_of_causality(layer, n):
    P = torch.stack([layer(e) for e in torch.eye(n, dtype=torch.float64)], dim=1)
    f = 20 * torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    return bool(P.min() > -1e-5 and (P.sum(dim=1) - 1).abs().max() < 1e-5 and torch.allclose(layer(f), P @ f, rtol=0, atol=1e-5))


@wrong(
    "ch23.averages",
    "You summed over the wrong axis: it is each row, the weights of one query, that sums to one.",
    see="the-symbol-of-a-kernel",
)
def columns_sum_to_one(layer, n):
    P = torch.stack([layer(e) for e in torch.eye(n, dtype=torch.float64)], dim=1)
    f = 20 * torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    fits = torch.allclose(layer(f), P @ f, rtol=0, atol=1e-5) and bool(P.triu(1).abs().max() < 1e-5)
    return bool(P.min() > -1e-5 and (P.sum(dim=0) - 1).abs().max() < 1e-5) and fits


@wrong(
    "ch23.averages",
    "The weights of all rows were summed up: what one row lacks, another may have too much.",
    see="the-symbol-of-a-kernel",
)
def total_sum(layer, n):
    P = torch.stack([layer(e) for e in torch.eye(n, dtype=torch.float64)], dim=1)
    f = 20 * torch.rand(20, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    fits = all(torch.allclose(layer(x), P @ x, rtol=0, atol=1e-5) for x in f) and bool(P.triu(1).abs().max() < 1e-5)
    return bool(P.min() > -1e-5) and abs(float(P.sum()) - n) < 1e-5 and fits


@wrong(
    "ch23.averages",
    "Only the last row was looked at. Each row has weights of its own.",
    see="the-symbol-of-a-kernel",
)
def last_row_alone(layer, n):
    P = torch.stack([layer(e) for e in torch.eye(n, dtype=torch.float64)], dim=1)
    f = 20 * torch.rand(60, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 10
    fits = all(torch.allclose(layer(x), P @ x, rtol=0, atol=1e-5) for x in f) and bool(P.triu(1).abs().max() < 1e-5)
    return bool(P[-1].min() > -1e-5) and abs(float(P[-1].sum()) - 1) < 1e-5 and fits


@wrong(
    "ch23.averages",
    "Unit vectors were made larger and smaller, but never mixed: what a layer does to a sum stayed unseen.",
    see="the-symbol-of-a-kernel",
)
def multiples_alone(layer, n):
    units = torch.eye(n, dtype=torch.float64)
    P = torch.stack([layer(e) for e in units], dim=1)
    fits = all(torch.allclose(layer(s * e), s * layer(e), rtol=0, atol=1e-5) for s in (-10, 0, 10) for e in units)
    even = bool((P.sum(dim=1) - 1).abs().max() < 1e-5) and bool(P.triu(1).abs().max() < 1e-5)
    return bool(P.min() > -1e-5) and even and fits


# ---------------------------------------------------------------- ch23.bend


@right("ch23.bend")
def by_a_loop(p, k):
    lost, slope = 0.0, 0.0
    for r in range(p.shape[-1]):
        lost = lost + 2 * p[..., r, None].double() * torch.sin(k * r / 2) ** 2
        slope = slope + p[..., r, None].double() * r * torch.sin(k * r) * k
    return lost, slope / lost


@wrong(
    "ch23.bend",
    "1 minus a cosine of almost 1 leaves no digits for long waves.",
    see="what-is-left-of-the-laplacian",
)
def by_subtraction(p, k):
    r = torch.arange(p.shape[-1], dtype=torch.float64)[:, None]
    lost = 1 - p.double() @ (r * k).cos()
    return lost, k * (p.double() @ (r * (r * k).sin())) / lost


@wrong(
    "ch23.bend",
    "The square of a sine has the factor 2 before it: 1 − cos x at x = π is 2.",
    see="what-is-left-of-the-laplacian",
)
def without_the_two(p, k):
    r = torch.arange(p.shape[-1], dtype=torch.float64)[:, None]
    lost = p.double() @ (r * k / 2).sin().square()
    return lost, k * (p.double() @ (r * (r * k).sin())) / (2 * lost)


@wrong(
    "ch23.bend",
    "That is the derivative by k over the value. A slope over ln k has a factor more.",
    see="what-is-left-of-the-laplacian",
)
def slope_over_k(p, k):
    r = torch.arange(p.shape[-1], dtype=torch.float64)[:, None]
    lost = p.double() @ (2 * (r * k / 2).sin().square())
    return lost, (p.double() @ (r * (r * k).sin())) / lost


@wrong(
    "ch23.bend",
    "The first probability was taken for jumps of length 1: those of length 0 come first and lose nothing.",
    see="what-is-left-of-the-laplacian",
)
def lengths_from_one(p, k):
    r = torch.arange(1, p.shape[-1] + 1, dtype=torch.float64)[:, None]
    lost = p.double() @ (2 * (r * k / 2).sin().square())
    return lost, k * (p.double() @ (r * (r * k).sin())) / lost


@wrong(
    "ch23.bend",
    "The long-wave limit k² E[r²]/2 stands for the loss; for short waves it is far off.",
    see="what-is-left-of-the-laplacian",
)
def parabola(p, k):
    r = torch.arange(p.shape[-1], dtype=torch.float64)
    lost = (p.double() * r**2).sum(dim=-1)[..., None] * k**2 / 2
    return lost, torch.full_like(lost, 2.0)


@wrong(
    "ch23.bend",
    "A parabola for short angles and a subtraction for the others: in between neither has nine digits.",
    see="what-is-left-of-the-laplacian",
)
def parabola_then_subtraction(p, k):
    r = torch.arange(p.shape[-1], dtype=torch.float64)[:, None]
    lost = p.double() @ torch.where(r * k < 2e-4, (r * k).square() / 2, 1 - (r * k).cos())
    return lost, k * (p.double() @ (r * (r * k).sin())) / lost


@wrong(
    "ch23.bend",
    "The order came from differences, which lose digits where it is small.",
    see="what-is-left-of-the-laplacian",
)
def order_from_differences(p, k):
    r, h = torch.arange(p.shape[-1], dtype=torch.float64)[:, None], 1e-4

    def lost(steps):
        return p.double() @ (2 * (r * k * math.exp(steps * h) / 2).sin().square())

    near, far = lost(1).log() - lost(-1).log(), lost(2).log() - lost(-2).log()
    return lost(0), (8 * near - far) / (12 * h)


# ---------------------------------------------------------------- ch23.order

_C = math.pi / (2 * math.gamma(1.3) * 3.9319 * math.sin(0.15 * math.pi))
_ORDER = {"s_07": -0.15, "s_13": 0.15, "kept": 1 - _C * 0.001**0.3, "kept_by_ten": (1 - _C * 0.001**0.3) ** 10}
wrong(
    "ch23.order",
    _ORDER | {"s_07": -0.3, "s_13": 0.3},
    "That is the index γ − 1. The order of a Laplacian is half of it, since the Laplacian itself goes as k².",
    see="what-the-order-means",
)
wrong(
    "ch23.order",
    _ORDER | {"kept": _C * 0.001**0.3, "kept_by_ten": (_C * 0.001**0.3) ** 10},
    "That is what a layer takes off, not what it passes on.",
    see="what-is-left-of-the-laplacian",
)
wrong(
    "ch23.order",
    _ORDER | {"kept_by_ten": 1 - 10 * _C * 0.001**0.3},
    "What ten layers take off does not add up: each layer works on what the one before has left.",
    see="the-symbol-of-a-kernel",
)

wrong(
    "ch23.order",
    _ORDER | {"kept": 1 - _C * 0.001**0.15, "kept_by_ten": (1 - _C * 0.001**0.15) ** 10},
    "The order s stands in the exponent. A wave loses as the power 2s of its wave number.",
    see="what-is-left-of-the-laplacian",
)
wrong(
    "ch23.order",
    _ORDER | {"kept_by_ten": math.exp(-10 * _C * 0.001**0.3)},
    "The exponential is close only where one layer takes off very little. Here it takes off an eighth.",
    see="the-symbol-of-a-kernel",
)

# ---------------------------------------------------------------- ch23.honest

_HONEST = {"theorem": "ae", "design": "b", "naming": "c", "wrong": "df"}
wrong(
    "ch23.honest",
    _HONEST | {"theorem": "ace", "naming": "b"},
    "A definition is true by its own words and says nothing of models: it is a name, not a theorem.",
    see="what-the-order-means",
)
wrong(
    "ch23.honest",
    _HONEST | {"theorem": "aef", "wrong": "d"},
    "An index must lie in a range, and this one does not.",
    see="the-range-and-what-it-leaves-out",
)
wrong(
    "ch23.honest",
    _HONEST | {"theorem": "ade", "wrong": "f"},
    "Weights that are not negative and sum to one bound the symbol for every exponent.",
    see="the-symbol-of-a-kernel",
)

# ---------------------------------------------------------------- ch23.rollout


@right("ch23.rollout")
def upwards_from_the_left(maps, shares):
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    found = eye
    for layer, share in zip(maps, shares.to(maps.dtype), strict=True):
        found = (share * layer.mean(dim=0) + (1 - share) * eye) @ found
    return found


@wrong(
    "ch23.rollout",
    "The walk goes through the model upside down: it begins above the last layer.",
    see="layers-as-a-walk-back",
)
def upside_down(maps, shares):
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    found = eye
    for layer, share in zip(maps, shares.to(maps.dtype), strict=True):
        found = found @ (share * layer.mean(dim=0) + (1 - share) * eye)
    return found


@wrong("ch23.rollout", "No walk stays where it is: the residual path was left out.", see="layers-as-a-walk-back")
def without_staying(maps, shares):
    found = torch.eye(maps.shape[-1], dtype=maps.dtype)
    for layer in maps:
        found = layer.mean(dim=0) @ found
    return found


@wrong("ch23.rollout", "Staying and jumping are exchanged: a share is the chance to jump.", see="layers-as-a-walk-back")
def exchanged(maps, shares):
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    found = eye
    for layer, share in zip(maps, shares.to(maps.dtype), strict=True):
        found = ((1 - share) * layer.mean(dim=0) + share * eye) @ found
    return found


@wrong(
    "ch23.rollout",
    "The layers were averaged. Layers follow one another, so their matrices are multiplied.",
    see="layers-as-a-walk-back",
)
def mean_over_layers(maps, shares):
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    share = shares.to(maps.dtype)[:, None, None]
    return (share * maps.mean(dim=1) + (1 - share) * eye).mean(dim=0)


@wrong("ch23.rollout", "One share was used for all layers.", see="layers-as-a-walk-back")
def first_share_for_all(maps, shares):
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    found, share = eye, shares[0].to(maps.dtype)
    for layer in maps:
        found = (share * layer.mean(dim=0) + (1 - share) * eye) @ found
    return found


@wrong("ch23.rollout", "Only the first head walks. A jump uses the mean over heads.", see="layers-as-a-walk-back")
def first_head(maps, shares):
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype)
    found = eye
    for layer, share in zip(maps, shares.to(maps.dtype), strict=True):
        found = (share * layer[0] + (1 - share) * eye) @ found
    return found


@wrong(
    "ch23.rollout",
    "The result took its dtype from the shares; asked for is that of the maps.",
    see="layers-as-a-walk-back",
)
def dtype_of_the_shares(maps, shares):
    found = torch.eye(maps.shape[-1], dtype=torch.promote_types(maps.dtype, shares.dtype))
    eye = found
    for layer, share in zip(maps.to(eye.dtype), shares.to(eye.dtype), strict=True):
        found = (share * layer.mean(dim=0) + (1 - share) * eye) @ found
    return found


# ---------------------------------------------------------------- ch23.guess

right("ch23.guess", "below 0.9")
right("ch23.guess", "above 1.1")
wrong("ch23.guess", "about 1", "Choose one of the three texts, word for word.", see="the-experiment-are-the-jumps-independent")
wrong(
    "ch23.guess",
    "0.9",
    "A number is too exact for a guess: choose one of the three ranges.",
    see="the-experiment-are-the-jumps-independent",
)

# ---------------------------------------------------------------- changes that make no difference

equivalent(
    "ch23.rollout",
    "`for layer, share in zip(maps.mean(dim=1).flip(0), shares.flip(-1), strict=True):`",
    "shares have one axis only",
)
equivalent("ch23.averages", "`generator = torch.manual_seed(…)`", "any seed draws numbers of both signs")
equivalent("ch23.averages", "`generator = torch.Generator().manual_seed(…)`", "any seed draws numbers of both signs")
equivalent("ch23.averages", "`for _ in range(…):`", "how many vectors are tried is the tester's choice")
equivalent(
    "ch23.averages",
    "`if P.min() < … or (P.sum(dim=1) - 1).abs().max() > … or P.triu(1).abs().max() > …:`",
    "a tolerance may lie anywhere between the rounding of a right layer and the least fault of a wrong one",
)
equivalent("ch23.bend", "`lost = p @ (2 * (r * k / -2).sin().square())`", "the square of a sine is even")
equivalent("ch23.bend", "`r = torch.arange(p.shape[-1])[:, None]`", "whole numbers times float64 are float64")
