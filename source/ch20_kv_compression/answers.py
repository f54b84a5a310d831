"""Other right answers and named wrong answers of the exercises of ch20."""

import math

import torch

from autograder.answers import equivalent, right, wrong

BYTES, KEYS, TAIL, WHICH = "what-a-byte-buys", "how-many-keys", "where-the-tail-ends", "which-keys"

# ---------------------------------------------------------------- ch20.budget

RIGHT = {"mib": 45.0, "plain": 128, "weighed": 126, "four": 409, "two": 682}
wrong("ch20.budget", RIGHT | {"four": 512, "two": 1024}, "You left out the steps and offsets that each group stores.", see=BYTES)
wrong("ch20.budget", RIGHT | {"mib": 22.5}, "Keys and values are two tensors; you counted one.", see=BYTES)
wrong("ch20.budget", RIGHT | {"mib": 47.186}, "That is in millions of bytes; a MiB is a little more.", see=BYTES)
wrong("ch20.budget", RIGHT | {"mib": 135.0}, "You counted the heads of the queries; three of them share one cache.", see=BYTES)
wrong("ch20.budget", RIGHT | {"weighed": 128}, "The weight that is stored beside each key takes room as well.", see=BYTES)
wrong(
    "ch20.budget",
    RIGHT | {"four": 455, "two": 819},
    "Each group stores an offset beside its step: you counted one of the two.",
    see=BYTES,
)
wrong(
    "ch20.budget",
    RIGHT | {"four": 410, "two": 683},
    "You rounded to the nearest: a token that fits only in part is not kept.",
    see=BYTES,
)
wrong(
    "ch20.budget",
    RIGHT | {"plain": 256, "weighed": 252, "four": 819, "two": 1365},
    "Your budget is an eighth of the bytes.",
    see=BYTES,
)
wrong("ch20.budget", RIGHT | {"mib": 2.8125}, "That is the budget; asked is the whole cache, before anything is cut.", see=BYTES)
wrong("ch20.budget", RIGHT | {"mib": 90.0}, "You counted something twice: numbers of 16 bits take two bytes each.", see=BYTES)

# ---------------------------------------------------------------- ch20.windows


@right("ch20.windows")
def in_a_loop(gamma, shares, N):
    partial = (torch.arange(1, N + 1).double() ** -gamma).cumsum(0)
    found = []
    for share in shares:
        enough = (partial >= share * partial[-1]).nonzero()
        found.append(N if share == 1 else int(enough[0]) + 1)
    return found


@right("ch20.windows")
def by_counting(gamma, shares, N):
    partial = torch.cumsum(torch.linspace(1, N, N, dtype=torch.float64).pow(-gamma), 0)
    return [N if f == 1 else 1 + int((partial < f * partial[-1]).sum()) for f in shares]


@wrong("ch20.windows", "You count the keys that are not enough; the one that crosses the share belongs to them.", see=KEYS)
def one_too_few(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(-gamma).cumsum(0)
    return [N if f == 1 else int((partial < f * partial[-1]).sum()) for f in shares]


@wrong("ch20.windows", "A share of the mass is not the same share of the keys, unless all weights are equal.", see=KEYS)
def share_of_the_keys(gamma, shares, N):
    return [math.ceil(f * N) for f in shares]


@wrong("ch20.windows", "The area under a power is not the sum: it misses most at the first keys.", see=KEYS)
def by_the_integral(gamma, shares, N):
    found = []
    for f in shares:
        if gamma == 1:
            found.append(min(N, math.ceil((N + 1) ** f - 1)) or 1)
        else:
            e = 1 - gamma
            found.append(min(N, max(1, math.ceil((1 + f * ((N + 1) ** e - 1)) ** (1 / e) - 1))))
    return found


@wrong("ch20.windows", "You weigh the far keys more: the exponent has the wrong sign.", see=KEYS)
def wrong_sign(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(gamma).cumsum(0)
    return [N if f == 1 else 1 + int((partial < f * partial[-1]).sum()) for f in shares]


@wrong("ch20.windows", "That is the share that may be lost, not the one that is to be kept.", see=KEYS)
def share_that_is_lost(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(-gamma).cumsum(0)
    return [1 + int((partial < (1 - f) * partial[-1]).sum()) for f in shares]


@wrong("ch20.windows", "You looked for the share in the sum itself: divide by what all N keys have together.", see=KEYS)
def not_normalised(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(-gamma).cumsum(0)
    return [min(N, 1 + int((partial < f).sum())) for f in shares]


@wrong("ch20.windows", "You add up in 32 bits: many small weights are lost in a large sum.", see=KEYS)
def in_float32(gamma, shares, N):
    partial = torch.arange(1, N + 1).float().pow(-gamma).cumsum(0)
    return [N if f == 1 else 1 + int((partial < f * partial[-1]).sum()) for f in shares]


@wrong("ch20.windows", "Your shares are rounded to 32 bits before they are compared.", see=KEYS)
def shares_in_float32(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(-gamma).cumsum(0)
    wanted = (torch.tensor(shares) * partial[-1]).double()
    return [N if f == 1 else 1 + int((partial < w).sum()) for f, w in zip(shares, wanted, strict=True)]


@wrong("ch20.windows", "You write into the list that you were given: whoever called still needs the shares.", see=KEYS)
def into_the_list_of_shares(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(-gamma).cumsum(0)
    for i, f in enumerate(shares):
        shares[i] = N if f == 1 else 1 + int((partial < f * partial[-1]).sum())
    return shares


@wrong("ch20.windows", "A share just below one does not need all keys.", see=KEYS)
def all_for_nearly_one(gamma, shares, N):
    partial = torch.arange(1, N + 1).double().pow(-gamma).cumsum(0)
    return [N if f > 0.999 else 1 + int((partial < f * partial[-1]).sum()) for f in shares]


# ---------------------------------------------------------------- ch20.tail


@right("ch20.tail")
def case_by_case(gamma, D, N):
    pairs = []
    for a, b in ((D + 1, N + 1), (D, N)):
        if gamma == 1:
            pairs.append(math.log(b) - math.log(a))
        elif gamma < 1:
            pairs.append((b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma))
        else:
            pairs.append((a ** (1 - gamma) - (0.0 if b == math.inf else b ** (1 - gamma))) / (gamma - 1))
    return tuple(pairs)


@wrong("ch20.tail", "Both of your areas begin at D + 1: then the upper one is smaller than the sum.", see=TAIL)
def both_from_the_next(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D + 1, N + 1), area(D + 1, N)


@wrong("ch20.tail", "Both of your areas begin at D: the lower one is larger than the sum.", see=TAIL)
def both_from_the_last(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D, N), area(D, N + 1)


@wrong("ch20.tail", "You gave the upper area first.", see=TAIL)
def upper_first(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D, N), area(D + 1, N + 1)


@wrong("ch20.tail", "The lower area ends at N: it leaves out the last step of the sum.", see=TAIL)
def ends_too_early(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D + 1, N), area(D, N)


@wrong("ch20.tail", "You used the area without an end for every N.", see=TAIL)
def never_ends(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D + 1, math.inf), area(D, math.inf)


@wrong("ch20.tail", "The antiderivative of a power has one more in its exponent: yours has one less.", see=TAIL)
def one_power_less(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (-1 - gamma) / (gamma + 1)
        return (a ** (-1 - gamma) - b ** (-1 - gamma)) / (gamma + 1)

    return area(D + 1, N + 1), area(D, N)


@wrong("ch20.tail", "Only at γ = 1 is the antiderivative a logarithm: near it it is still a power.", see=TAIL)
def logarithm_near_one(gamma, D, N):
    def area(a, b):
        if abs(gamma - 1) < 0.2:
            return math.log(b / a)
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D + 1, N + 1), area(D, N)


@wrong("ch20.tail", "You move γ a little to get round the division by zero: that costs more digits than are allowed.", see=TAIL)
def never_quite_one(gamma, D, N):
    def area(a, b):
        if b == math.inf:
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        s = 1 - gamma + 1e-9
        return (b**s - a**s) / s

    return area(D + 1, N + 1), area(D, N)


@wrong("ch20.tail", "You take a large N for infinite: what lies beyond a million keys is not nothing.", see=TAIL)
def large_is_infinite(gamma, D, N):
    def area(a, b):
        if b > 100_000 and (gamma > 1 or b == math.inf):
            return a ** (1 - gamma) / (gamma - 1) if gamma > 1 else math.inf
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    return area(D + 1, N + 1), area(D, N)


# ---------------------------------------------------------------- ch20.rules


@right("ch20.rules")
def by_a_mask(mass, value, n, recent, aware):
    S = mass.shape[-1]
    score = mass * value.square().sum(dim=-1).sqrt() if aware else mass
    last = torch.arange(S) >= S - recent
    order = torch.where(last, math.inf, score).argsort(dim=-1, descending=True, stable=True)
    stays = torch.zeros(mass.shape, dtype=torch.bool).scatter(-1, order[..., :n], True)
    return stays.nonzero()[:, -1].reshape(*mass.shape[:-1], -1)


@right("ch20.rules")
def old_and_new_apart(mass, value, n, recent, aware):
    S = mass.shape[-1]
    recent = min(recent, S)
    score = (mass * value.norm(dim=-1) if aware else mass)[..., : S - recent]
    best = score.argsort(dim=-1, descending=True, stable=True)[..., : max(0, n - recent)]
    last = torch.arange(S - recent, S).expand(*mass.shape[:-1], -1)
    return torch.cat([best.sort(dim=-1).values, last], dim=-1)


@wrong("ch20.rules", "The last keys have no place of their own: with few queries so far they go first.", see=WHICH)
def without_the_last(mass, value, n, recent, aware):
    score = (mass * value.norm(dim=-1) if aware else mass).clone()
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "You give the numbers in the order of the scores, not of the text.", see=WHICH)
def in_the_order_of_scores(mass, value, n, recent, aware):
    score = (mass * value.norm(dim=-1) if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best


@wrong("ch20.rules", "The length of the value counts for nothing in your rule, aware or not.", see=WHICH)
def never_aware(mass, value, n, recent, aware):
    score = (mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "You went by the length of the value alone: a key that nobody looks at brings nothing.", see=WHICH)
def by_length_alone(mass, value, n, recent, aware):
    score = (value.norm(dim=-1) if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "You multiply by the square of the length.", see=WHICH)
def by_the_square(mass, value, n, recent, aware):
    score = (mass * value.square().sum(dim=-1) if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "The last keys come on top of the n: more stay than the budget pays for.", see=WHICH)
def last_on_top(mass, value, n, recent, aware):
    score = mass * value.norm(dim=-1) if aware else mass
    score = (score).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., : min(mass.shape[-1], n + recent)]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "A sum of the numbers of a value is not its length: numbers of both signs cancel.", see=WHICH)
def by_the_sum(mass, value, n, recent, aware):
    score = (mass * value.sum(dim=-1).abs() if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "Among equal keys you keep the later one.", see=WHICH)
def later_of_equals(mass, value, n, recent, aware):
    S = mass.shape[-1]
    score = (mass * value.norm(dim=-1) if aware else mass).clone()
    score[..., max(0, S - recent) :] = math.inf
    order = S - 1 - score.flip(-1).argsort(dim=-1, descending=True, stable=True)
    return order[..., :n].sort(dim=-1).values


@wrong("ch20.rules", "You add up the absolute numbers of a value: its length is another sum.", see=WHICH)
def by_absolute_numbers(mass, value, n, recent, aware):
    score = (mass * value.abs().sum(dim=-1) if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "You take the greatest number of a value for its length.", see=WHICH)
def by_the_greatest_number(mass, value, n, recent, aware):
    score = (mass * value.abs().amax(dim=-1) if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = math.inf
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "The score that you give the last keys can be beaten: a mass is a sum over many queries.", see=WHICH)
def a_score_that_can_be_beaten(mass, value, n, recent, aware):
    score = (mass * value.norm(dim=-1) if aware else mass).clone()
    score[..., max(0, score.shape[-1] - recent) :] = 1000.0
    best = score.argsort(dim=-1, descending=True, stable=True)[..., :n]
    return best.sort(dim=-1).values


@wrong("ch20.rules", "You count keys before the first one: `recent` may be more than there are.", see=WHICH)
def keys_before_the_first(mass, value, n, recent, aware):
    S = mass.shape[-1]
    score = (mass * value.norm(dim=-1) if aware else mass)[..., : max(0, S - recent)]
    best = score.argsort(dim=-1, descending=True, stable=True)[..., : n - recent]
    last = torch.arange(S - recent, S).expand(*mass.shape[:-1], -1)
    return torch.cat([best, last], dim=-1).sort(dim=-1).values


equivalent("ch20.rules", "`score[..., max(1, S - recent):] = math.inf`", "the first key is among the last only if all stay")

# ---------------------------------------------------------------- ch20.lost


@right("ch20.lost")
def values_that_cancel(share):
    weights = torch.tensor([share / 2, share / 2, (1 - share) / 2, (1 - share) / 2], dtype=torch.float64)
    value = torch.tensor([[0.5, 0.0, 1e-5], [-0.5, 0.0, 1e-5], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    return weights, value, [0, 1]


@wrong("ch20.lost", "The keys that you keep do not have the share of the mass: you threw out the sink.", see=WHICH)
def throws_out_the_sink(share):
    weights = torch.tensor([share, (1 - share) * 0.6, (1 - share) * 0.4], dtype=torch.float64)
    return weights, torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]).double(), [1, 2]


@wrong("ch20.lost", "One of your values is longer than 1.", see=WHICH)
def a_value_too_long(share):
    weights = torch.tensor([share / 2, share / 2, 1 - share], dtype=torch.float64)
    return weights, torch.tensor([[0.0, 0.5], [0.0, 0.5], [2.0 / (1 - share), 0.0]]).double(), [0, 1]


@wrong(
    "ch20.lost", "Your kept values are long and point the same way: with more than half of the mass they decide the output.", see=WHICH
)
def equally_long(share):
    weights = torch.tensor([share / 2, share / 2, 1 - share], dtype=torch.float64)
    return weights, torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).double(), [0, 1]


@wrong("ch20.lost", "The same coordinate is the largest before and after: nothing is lost.", see=WHICH)
def same_answer(share):
    weights = torch.tensor([share / 2, share / 2, 1 - share], dtype=torch.float64)
    return weights, torch.tensor([[0.5, 0.0], [0.5, 0.0], [1.0, 0.0]]).double(), [0, 1]


@wrong("ch20.lost", "Your example is right for 99 % only: short values must be short enough for any share.", see=WHICH)
def for_99_per_cent(share):
    weights = torch.tensor([share / 2, share / 2, 1 - share], dtype=torch.float64)
    return weights, torch.tensor([[0.0, 0.009], [0.0, 0.009], [1.0, 0.0]]).double(), [0, 1]


@right("ch20.lost")
def in_single_precision(share):
    value = torch.tensor([[0.0, 1e-5, 0.0], [0.6, 0.0, 0.8], [0.0, 1e-5, 0.0]])
    return torch.tensor([share / 2, 1 - share, share / 2]), value, torch.tensor([0, 2])


@wrong("ch20.lost", "One head serves for every share: the mass that stays is not the one that was asked for.", see=WHICH)
def one_for_all(share):
    return torch.tensor([0.4995, 0.4995, 0.001]), torch.tensor([[0.0, 1e-5], [0.0, 1e-5], [1.0, 0.0]]), [0, 1]


@wrong("ch20.lost", "The values that stay are nothing at all: then no coordinate is the largest.", see=WHICH)
def values_of_nothing(share):
    weights = torch.tensor([share / 2, share / 2, 1 - share], dtype=torch.float64)
    return weights, torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), [0, 1]


equivalent(
    "ch20.lost", "`value = torch.tensor([[0.0, 0.0001], [0.0, 0.0001], [1.0, 0.0]])`", "any dtype will do; the test reads float64"
)

# ---------------------------------------------------------------- ch20.settle

wrong("ch20.settle", "a", "Equal tokens are not equal bytes: one of the two stores more beside each token.", see="at-equal-bytes")
wrong("ch20.settle", "abd", "Look once more at what is equal in a.", see="at-equal-bytes")
wrong("ch20.settle", "bdf", "That a budget has no parameters says nothing of what it keeps.", see="at-equal-bytes")
wrong("ch20.settle", "b", "A comparison of two says nothing while chance could have done as well.", see="at-equal-bytes")
wrong("ch20.settle", "bde", "One mean over a book can stay where it is while an answer is lost.", see="at-equal-bytes")

wrong("ch20.settle", "bcd", "Whoever picks a share for each method has looked at the result.", see="at-equal-bytes")

# ---------------------------------------------------------------- ch20.guess

wrong("ch20.guess", "window", "That is none of the four that the question names.", see="at-equal-bytes")
wrong("ch20.guess", "all of them", "A prediction names one of the four.", see="at-equal-bytes")
