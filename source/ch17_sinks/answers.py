"""Other right answers and named wrong answers of the exercises of ch17."""

from autograder.answers import right, wrong

# ---------------------------------------------------------------- ch17.drain


@right("ch17.drain")
def one_more_column(scores, none):
    column = none.expand(scores.shape[:-1]).unsqueeze(-1)
    return torch.cat([column, scores], dim=-1).softmax(dim=-1)[..., 1:]


@right("ch17.drain")
def largest_of_all(scores, none):
    none = none.expand(scores.shape[:-1])[..., None]
    top = torch.maximum(scores.amax(dim=-1, keepdim=True), none).detach()
    powers = (scores - top).exp()
    return powers / ((none - top).exp() + powers.sum(dim=-1, keepdim=True))


@wrong(
    "ch17.drain",
    "e to the power of a large score is infinite, and infinity over infinity is not a number.",
    see="a-place-for-nothing",
)
def overflows(scores, none):
    powers = scores.exp()
    return powers / (none.exp()[..., None] + powers.sum(dim=-1, keepdim=True))


@wrong(
    "ch17.drain",
    "You subtracted the largest score from the scores, and left the logit of nothing where it was.",
    see="what-goes-wrong-in-practice",
)
def forgets_to_shift_the_drain(scores, none):
    top = scores.amax(dim=-1, keepdim=True).clamp_min(-1e30)
    powers = (scores - top).exp()
    return powers / (none.exp()[..., None] + powers.sum(dim=-1, keepdim=True))


@wrong("ch17.drain", "You made the weights sum to one again, so nothing gets nothing.", see="a-place-for-nothing")
def normalised_again(scores, none):
    column = none.expand(scores.shape[:-1])[..., None]
    weights = torch.cat([scores, column], dim=-1).softmax(dim=-1)[..., :-1]
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong("ch17.drain", "You added 1 to the denominator whatever the logit of nothing is.", see="a-place-for-nothing")
def always_plus_one(scores, none):
    column = torch.zeros_like(scores[..., :1]) + 0 * none.clamp(-1, 1).expand(scores.shape[:-1])[..., None]
    return torch.cat([scores, column], dim=-1).softmax(dim=-1)[..., :-1]


@wrong(
    "ch17.drain",
    "You added the logit of nothing itself to the denominator; what is added is its exponential.",
    see="a-place-for-nothing",
)
def logit_instead_of_power(scores, none):
    powers = scores.exp()
    return powers / (none[..., None] + powers.sum(dim=-1, keepdim=True))


@wrong(
    "ch17.drain",
    "Where all keys of a row are hidden, the largest score is minus infinity, and the difference of two infinities is not a number.",
    see="what-goes-wrong-in-practice",
)
def shifts_by_the_largest_score(scores, none):
    top = scores.amax(dim=-1, keepdim=True)
    powers = (scores - top).exp()
    return powers / ((none[..., None] - top).exp() + powers.sum(dim=-1, keepdim=True))


@wrong(
    "ch17.drain",
    "You turned the gate round: it has to open as the scores pass the threshold, and yours closes.",
    see="a-place-for-nothing",
)
def gate_turned_round(scores, none):
    total = scores.logsumexp(dim=-1)
    return torch.sigmoid(none - total)[..., None] * scores.softmax(dim=-1)


@right("ch17.drain")
def gate_of_rows_that_see_something(scores, none):
    hidden = torch.isneginf(scores).all(dim=-1, keepdim=True)
    seen = torch.where(hidden, 0.0, scores)
    weights = torch.sigmoid(seen.logsumexp(dim=-1) - none)[..., None] * seen.softmax(dim=-1)
    return torch.where(hidden, 0.0, weights)


@wrong(
    "ch17.drain",
    "The weights are right, but not the gradients of a row that is hidden as a whole: its own logarithm is −∞, "
    "and on the way back −∞ is taken from −∞.",
    see="what-goes-wrong-in-practice",
)
def logarithm_of_a_hidden_row(scores, none):
    total = torch.logaddexp(scores.logsumexp(dim=-1), none)
    return (scores - total[..., None]).exp()


@wrong(
    "ch17.drain",
    "You replaced nan by zero in the weights of a hidden row. The gradients still go through what was not a number.",
    see="what-goes-wrong-in-practice",
)
def nan_to_zero(scores, none):
    gate = torch.sigmoid(scores.logsumexp(dim=-1) - none)
    return (gate[..., None] * scores.softmax(dim=-1)).nan_to_num(nan=0.0)


@wrong(
    "ch17.drain",
    "You hide a key by a score of −10,000. Where the scores are themselves that small, it is a key among others.",
    see="a-place-for-nothing",
)
def hides_by_a_small_number(scores, none):
    scores = scores.masked_fill(torch.isneginf(scores), -1e4)
    column = none.expand(scores.shape[:-1])[..., None]
    return torch.cat([scores, column], dim=-1).softmax(dim=-1)[..., :-1]


@wrong(
    "ch17.drain",
    "Your denominator overflows where the logit of nothing is far above the scores. One over infinity is rightly zero, "
    "but its gradient is nan.",
    see="what-goes-wrong-in-practice",
)
def overflows_on_the_way_back(scores, none):
    top = scores.amax(dim=-1, keepdim=True)
    top = torch.where(torch.isneginf(top), 0.0, top).detach()
    powers = (scores - top).exp()
    return powers / ((none[..., None] - top).exp() + powers.sum(dim=-1, keepdim=True))


# ---------------------------------------------------------------- ch17.guess

right("ch17.guess", "none of them")
right("ch17.guess", "BOS, plus one and gate")
wrong("ch17.guess", "gate", "Choose one of the four texts, word for word.", see="a-head-with-nothing-to-do")
wrong("ch17.guess", 2, "The prediction is one of the four texts, not a number.", see="a-head-with-nothing-to-do")

# ---------------------------------------------------------------- ch17.stream


@right("ch17.stream")
def by_a_mask(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    place = torch.arange(keys.shape[1])
    kept = (place < first) | (place >= keys.shape[1] - window)
    keys, values = keys[:, kept], values[:, kept]
    out = torch.nn.functional.scaled_dot_product_attention(query[:, None], keys, values)
    return out[:, 0], keys, values


@right("ch17.stream")
def forgets_one_row(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    while keys.shape[1] > window + first:
        keys, values = (torch.cat([each[:, :first], each[:, first + 1 :]], dim=1) for each in (keys, values))
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong(
    "ch17.stream",
    "In a short text the first tokens and the last ones overlap, and you keep the overlap twice.",
    see="cut-the-first-token-away",
)
def keeps_twice(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    keys, values = (torch.cat([each[:, :first], each[:, -window:]], dim=1) for each in (keys, values))
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong("ch17.stream", "A plain sliding window: the first tokens leave with the others.", see="cut-the-first-token-away")
def only_the_window(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    keys, values = keys[:, -window:], values[:, -window:]
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong("ch17.stream", "The new token looked at the rows that you forget afterwards.", see="cut-the-first-token-away")
def forgets_too_late(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    out = torch.einsum("bn,bnd->bd", weights, values)
    cut = max(keys.shape[1] - window, first)
    return out, *(torch.cat([each[:, :first], each[:, cut:]], dim=1) for each in (keys, values))


@wrong(
    "ch17.stream", "The window counts the new token, too: you keep one row more than it allows.", see="cut-the-first-token-away"
)
def window_beside_the_new_token(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    cut = max(keys.shape[1] - window - 1, first)
    keys, values = (torch.cat([each[:, :first], each[:, cut:]], dim=1) for each in (keys, values))
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong(
    "ch17.stream", "You took the first tokens out of the window's share; they are kept beside it.", see="cut-the-first-token-away"
)
def first_out_of_the_window(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    cut = max(keys.shape[1] - max(window - first, 1), first)
    keys, values = (torch.cat([each[:, :first], each[:, cut:]], dim=1) for each in (keys, values))
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong("ch17.stream", "The scores are not divided by the square root of d_head.", see="cut-the-first-token-away")
def no_scale(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    cut = max(keys.shape[1] - window, first)
    keys, values = (torch.cat([each[:, :first], each[:, cut:]], dim=1) for each in (keys, values))
    weights = torch.einsum("bd,bnd->bn", query, keys).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong(
    "ch17.stream",
    "With a window of one your slice starts at −0, which is the start of the sequence: nothing is forgotten.",
    see="cut-the-first-token-away",
)
def slice_from_minus_zero(query, key, value, keys, values, window, first):
    if keys.shape[1] >= window + first:
        keys, values = (torch.cat([each[:, :first], each[:, -(window - 1) :]], dim=1) for each in (keys, values))
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong(
    "ch17.stream",
    "You forget a row as soon as there are more than the window holds; the first tokens have their places beside it.",
    see="cut-the-first-token-away",
)
def forgets_too_soon(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    if keys.shape[1] > window:
        keys, values = (torch.cat([each[:, :first], each[:, first + 1 :]], dim=1) for each in (keys, values))
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    return torch.einsum("bn,bnd->bd", weights, values), keys, values


@wrong("ch17.stream", "The weights were made while the old rows still had their share.", see="cut-the-first-token-away")
def forgets_after_the_softmax(query, key, value, keys, values, window, first):
    keys, values = torch.cat([keys, key[:, None]], dim=1), torch.cat([values, value[:, None]], dim=1)
    weights = (torch.einsum("bd,bnd->bn", query, keys) * query.shape[-1] ** -0.5).softmax(-1)
    place = torch.arange(keys.shape[1])
    kept = (place < first) | (place >= keys.shape[1] - window)
    keys, values = keys[:, kept], values[:, kept]
    return torch.einsum("bn,bnd->bd", weights[:, kept], values), keys, values


# ---------------------------------------------------------------- ch17.control


@right("ch17.control")
def at_frequencies(query, key, theta, factor):
    H, T, d = query.shape
    omega = (theta * factor) ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    turn = torch.polar(torch.ones(T, d // 2, dtype=torch.float64), torch.arange(T)[:, None] * omega)
    a, b = (torch.complex(each[..., : d // 2].double(), each[..., d // 2 :].double()) * turn for each in (query, key))
    scores = (a @ b.conj().mT).real / math.sqrt(d)
    weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
    sink = weights[:, math.ceil(0.1 * T) :, 0].mean()
    return float(decay_fit(distance_profile(weights.mean(dim=0)))["power"]), float(sink)


@wrong(
    "ch17.control",
    "You stretched the positions. That slows every pair by the same factor; another base leaves the fastest pair as it is.",
    see="one-model-another-base",
)
def stretches_positions(query, key, theta, factor):
    T = query.shape[1]
    weights = causal_weights(*(rope(each, torch.arange(T) / factor, theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(sinks.sink_mass(weights).mean())


@wrong(
    "ch17.control",
    "Queries and keys are turned with different bases, so that scores no longer depend on the distance alone.",
    see="one-model-another-base",
)
def turns_queries_only(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(rope(query, T, factor * theta), rope(key, T, theta))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(sinks.sink_mass(weights).mean())


@wrong(
    "ch17.control",
    "You averaged the exponents of the heads. The task asks for the exponent of the average profile.",
    see="one-model-another-base",
)
def mean_of_exponents(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(*(rope(each, T, factor * theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights))["power"].mean()), float(sinks.sink_mass(weights).mean())


@wrong(
    "ch17.control",
    "All queries are counted in your sink mass, the first one with its weight of 1 among them.",
    see="a-head-that-looks-at-the",
)
def all_queries(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(*(rope(each, T, factor * theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(weights[:, :, 0].mean())


@wrong("ch17.control", "The base is the old one: the factor plays no part.", see="one-model-another-base")
def ignores_the_factor(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(*(rope(each, T, theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(sinks.sink_mass(weights).mean())


@wrong("ch17.control", "You gave the rate of the exponential, not the power of the power law.", see="one-model-another-base")
def rate_for_power(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(*(rope(each, T, factor * theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["rate"]), float(sinks.sink_mass(weights).mean())


@wrong("ch17.control", "You divided the base by the factor.", see="one-model-another-base")
def divides_the_base(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(*(rope(each, T, theta / factor) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(sinks.sink_mass(weights).mean())


@wrong(
    "ch17.control",
    "You count one query too many in the sink mass: a tenth of the text is rounded up.",
    see="a-head-that-looks-at-the",
)
def tenth_rounded_down(query, key, theta, factor):
    T = query.shape[1]
    weights = causal_weights(*(rope(each, torch.arange(T), factor * theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(weights[:, T // 10 :, 0].mean())


@wrong(
    "ch17.control",
    "Your profile is of all keys and queries, so that the sink bends the slope.",
    see="what-goes-wrong-in-practice",
)
def profile_with_the_sink(query, key, theta, factor):
    T = query.shape[1]
    weights = causal_weights(*(rope(each, torch.arange(T), factor * theta) for each in (query, key)))
    profile = torch.stack([weights.diagonal(-r, 1, 2).mean() for r in range(T // 2)])
    return float(decay_fit(profile)["power"]), float(sinks.sink_mass(weights).mean())


@wrong(
    "ch17.control",
    "You turned what had been turned: the old base is still in the scores.",
    see="one-model-another-base",
)
def turned_twice(query, key, theta, factor):
    T = torch.arange(query.shape[1])
    weights = causal_weights(*(rope(rope(each, T, theta), T, factor * theta) for each in (query, key)))
    return float(decay_fit(distance_profile(weights).mean(dim=0))["power"]), float(sinks.sink_mass(weights).mean())


# ---------------------------------------------------------------- ch17.independence


@right("ch17.independence")
def by_standard_scores(x, y):
    import numpy as np

    x, y = x.double().numpy(), y.double().numpy()
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("constant")
    r = float(np.corrcoef(x, y)[0, 1])
    if abs(r) > 1 - 1e-12:
        return float(np.sign(r)), float(np.sign(r)), float(np.sign(r))
    z, half = 0.5 * np.log((1 + r) / (1 - r)), 1.96 / np.sqrt(len(x) - 3)
    return r, float(np.tanh(z - half)), float(np.tanh(z + half))


@wrong(
    "ch17.independence",
    "Your interval is symmetric around the correlation. Fisher's is symmetric in artanh, and never leaves −1 to 1.",
    see="no-correlation-is-not-independence",
)
def symmetric_interval(x, y):
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    if a.norm() == 0 or b.norm() == 0:
        raise ValueError("constant")
    r = float(a @ b / (a.norm() * b.norm()))
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, r - half, r + half


@wrong(
    "ch17.independence",
    "The series are not centred, so that a shift changes the result.",
    see="no-correlation-is-not-independence",
)
def not_centred(x, y):
    x, y = x.double(), y.double()
    if x.std() == 0 or y.std() == 0:
        raise ValueError("constant")
    r = min(float(x @ y / (x.norm() * y.norm())), 1 - 1e-15)
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "The spread in artanh is 1 over the root of n − 3; you divided by the root of n.",
    see="no-correlation-is-not-independence",
)
def root_of_n(x, y):
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    if a.norm() < 1e-9 or b.norm() < 1e-9:
        raise ValueError("constant")
    r = float(a @ b / (a.norm() * b.norm()))
    if abs(r) > 1 - 1e-12:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x))
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "That is the slope of a line. It changes with the unit of a series; a correlation does not.",
    see="no-correlation-is-not-independence",
)
def slope_for_correlation(x, y):
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    if a.norm() == 0 or b.norm() == 0:
        raise ValueError("constant")
    r = max(min(float(a @ b / (a @ a)), 1 - 1e-15), -1 + 1e-15)
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "You correlated the ranks. The formula is for Pearson's correlation of the numbers themselves.",
    see="no-correlation-is-not-independence",
)
def ranks(x, y):
    if x.min() == x.max() or y.min() == y.max():
        raise ValueError("constant")
    a, b = (each.argsort().argsort().double() - (len(x) - 1) / 2 for each in (x, y))
    r = float(a @ b / (a.norm() * b.norm()))
    if abs(r) > 1 - 1e-12:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "A series that does not vary has no correlation, not a correlation of 0.",
    see="no-correlation-is-not-independence",
)
def zero_for_constants(x, y):
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    r = float(a @ b / (a.norm() * b.norm()).clamp_min(1e-9))
    if abs(r) > 1 - 1e-12:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "Pairs that lie near a line are not on it: your bound for a line is too wide.",
    see="no-correlation-is-not-independence",
)
def nearly_a_line(x, y):
    if x.min() == x.max() or y.min() == y.max():
        raise ValueError("constant")
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    r = float(a @ b / (a.norm() * b.norm()))
    if abs(r) > 0.9999:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "Whether a series varies does not depend on its unit: your bound for a spread of nothing does.",
    see="no-correlation-is-not-independence",
)
def bound_with_a_unit(x, y):
    if x.std() < 1e-6 or y.std() < 1e-6:
        raise ValueError("constant")
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    r = float(a @ b / (a.norm() * b.norm()))
    if abs(r) > 1 - 1e-12:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "You take the product of two means from the mean of products. After a large shift both are large, "
    "and rounding eats their difference.",
    see="no-correlation-is-not-independence",
)
def difference_of_large_means(x, y):
    if x.min() == x.max() or y.min() == y.max():
        raise ValueError("constant")
    x, y = x.double(), y.double()
    both = (x * y).mean() - x.mean() * y.mean()
    spread = (x.square().mean() - x.mean() ** 2).abs().sqrt() * (y.square().mean() - y.mean() ** 2).abs().sqrt()
    r = max(min(float(both / spread.clamp_min(1e-300)), 1.0), -1.0)
    if abs(r) > 1 - 1e-12:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


@wrong(
    "ch17.independence",
    "The spread of equal numbers, when computed, need not be exactly zero: their mean is rounded.",
    see="no-correlation-is-not-independence",
)
def exactly_zero(x, y):
    a, b = x.double() - x.double().mean(), y.double() - y.double().mean()
    if a.norm() == 0 or b.norm() == 0:
        raise ValueError("constant")
    r = float(a @ b / (a.norm() * b.norm()))
    if abs(r) > 1 - 1e-12:
        return (math.copysign(1.0, r),) * 3
    half = 1.96 / math.sqrt(len(x) - 3)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


# ---------------------------------------------------------------- ch17.models

right("ch17.models", {"models": 77, "smallest": 0.07})
wrong(
    "ch17.models",
    {"models": 76, "smallest": 0.07},
    "Rounded down, the test sees the difference a little too rarely.",
    see="no-correlation-is-not-independence",
)
wrong(
    "ch17.models",
    {"models": 38, "smallest": 0.049},
    "That is without the power: such a test misses the difference every second time.",
    see="no-correlation-is-not-independence",
)
wrong(
    "ch17.models",
    {"models": 9, "smallest": 0.28},
    "The first quotient is not squared, and in the second the root of n divides; you multiplied by it.",
    see="no-correlation-is-not-independence",
)
wrong(
    "ch17.models",
    {"models": 77, "smallest": 0.14},
    "Four models halve the difference that one model would see.",
    see="no-correlation-is-not-independence",
)

wrong(
    "ch17.models",
    {"models": 61, "smallest": 0.0622},
    "Those are the quantiles of a test that looks to one side only.",
    see="no-correlation-is-not-independence",
)
wrong(
    "ch17.models",
    {"models": 154, "smallest": 0.099},
    "You planned for two groups of models. Here each model is its own control, and its change is what is measured.",
    see="no-correlation-is-not-independence",
)
wrong(
    "ch17.models",
    {"models": 77, "smallest": 0.035},
    "The root of n is missing: a spread falls with the root of the number of models, not with the number.",
    see="no-correlation-is-not-independence",
)


# ---------------------------------------------------------------- ch17.axes

right("ch17.axes", "ECA")
right("ch17.axes", ["a", "c", "e"])
for letters, sentence in {
    "abce": "In b, ask how far the heads look, not what they do when they find nothing.",
    "acde": "In d, the question is a distance.",
    "ac": "Look again at the pitfall of a slope with a planted sink.",
    "ae": "Look again at the column that all words share, whatever the first word is.",
    "ce": "Look again at what the sliding window forgets first.",
    "bd": "Those two are about distances: you chose the other quantity.",
    "abcde": "Two of the five are about distances.",
}.items():
    wrong("ch17.axes", letters, sentence, see="no-correlation-is-not-independence")
