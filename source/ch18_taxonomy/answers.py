"""Other right answers and named wrong answers of the exercises of ch18."""

from autograder.answers import equivalent, right, wrong

TILES, STATE, DELTA = "the-same-function-not-the-same-bits", "a-sum-that-forgets", "a-sum-that-corrects"

# ---------------------------------------------------------------- ch18.merge


@right("ch18.merge")
def by_stacking(left, right):
    largest, total, mixed = (torch.stack(pair) for pair in zip(left, right, strict=True))
    top = largest.amax(dim=0)
    factor = (largest - top.clamp_min(torch.finfo(top.dtype).min)).exp()
    return top, (factor * total).sum(dim=0), (factor * mixed).sum(dim=0)


@right("ch18.merge")
def nan_to_zero(left, right):
    largest = torch.maximum(left[0], right[0])
    a, b = ((each[0] - largest).exp().nan_to_num(nan=0.0) for each in (left, right))
    return largest, a * left[1] + b * right[1], a * left[2] + b * right[2]


@wrong("ch18.merge", "You added the sums as they are, but the two blocks measure from different largest scores.", see=TILES)
def adds(left, right):
    return torch.maximum(left[0], right[0]), left[1] + right[1], left[2] + right[2]


@wrong("ch18.merge", "Where both blocks are hidden, −∞ is taken from −∞, which is not a number.", see=TILES)
def infinity_less_infinity(left, right):
    largest = torch.maximum(left[0], right[0])
    a, b = (left[0] - largest).exp(), (right[0] - largest).exp()
    return largest, a * left[1] + b * right[1], a * left[2] + b * right[2]


@wrong("ch18.merge", "You measured all from zero on the way. The exponential of a score in the thousands is infinite.", see=TILES)
def through_plain_powers(left, right):
    largest = torch.maximum(left[0], right[0])
    a, b = left[0].exp(), right[0].exp()
    down = torch.where(torch.isneginf(largest), 0.0, (-largest).exp())
    return largest, down * (a * left[1] + b * right[1]), down * (a * left[2] + b * right[2])


@wrong("ch18.merge", "Only the right block is brought to the common score: you took the left one's for the largest.", see=TILES)
def left_is_the_largest(left, right):
    shift = torch.where(torch.isneginf(left[0]), right[0], left[0])
    shift = torch.where(torch.isneginf(shift), 0.0, shift)
    b = (right[0] - shift).exp()
    return torch.maximum(left[0], right[0]), left[1] + b * right[1], left[2] + b * right[2]


@wrong("ch18.merge", "You divided already: a triple holds sums, so that it can be united with the next block.", see=TILES)
def divides_at_once(left, right):
    largest = torch.maximum(left[0], right[0])
    shift = torch.where(torch.isneginf(largest), 0.0, largest)
    a, b = (left[0] - shift).exp(), (right[0] - shift).exp()
    total = a * left[1] + b * right[1]
    return largest, total, (a * left[2] + b * right[2]) / total.clamp_min(1e-30)


@wrong("ch18.merge", "The exponent has the wrong sign: the block of the smaller scores must count less, not more.", see=TILES)
def wrong_sign(left, right):
    largest = torch.maximum(left[0], right[0])
    shift = torch.where(torch.isneginf(largest), 0.0, largest)
    a, b = (torch.where(torch.isneginf(each[0]), 0.0, (shift - each[0]).exp()) for each in (left, right))
    return largest, a * left[1] + b * right[1], a * left[2] + b * right[2]


@wrong("ch18.merge", "The weighted values are brought to the common score, but the sums of the exponentials are not.", see=TILES)
def sums_left_behind(left, right):
    largest = torch.maximum(left[0], right[0])
    shift = torch.where(torch.isneginf(largest), 0.0, largest)
    a, b = (left[0] - shift).exp(), (right[0] - shift).exp()
    return largest, left[1] + right[1], a * left[2] + b * right[2]


@wrong("ch18.merge", "Each block was multiplied by the factor of the other one.", see=TILES)
def factors_exchanged(left, right):
    largest = torch.maximum(left[0], right[0])
    shift = torch.where(torch.isneginf(largest), 0.0, largest)
    a, b = (left[0] - shift).exp(), (right[0] - shift).exp()
    return largest, b * left[1] + a * right[1], b * left[2] + a * right[2]


@wrong("ch18.merge", "Where neither block is seen you return 0 as the largest score; no score is as large as that.", see=TILES)
def zero_as_the_largest(left, right):
    largest = torch.maximum(left[0], right[0])
    shift = torch.where(torch.isneginf(largest), 0.0, largest)
    a, b = (left[0] - shift).exp(), (right[0] - shift).exp()
    return shift, a * left[1] + b * right[1], a * left[2] + b * right[2]


@wrong("ch18.merge", "One largest score for all queries: a query of much smaller scores is left with zeros.", see=TILES)
def one_largest_for_all(left, right):
    largest = torch.maximum(left[0], right[0])
    shift = torch.where(torch.isneginf(largest.max()), 0.0, largest.max())
    a, b = (left[0] - shift).exp(), (right[0] - shift).exp()
    return largest, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- ch18.cache

RIGHT = {
    "grouped": 0.25,
    "single": 1 / 32,
    "work": 1.0,
    "gib": 4.0,
    "same_bits": 1 - 34_560 / 194_560,
    "own_heads": 1 - 576 / 32_768,
}
wrong(
    "ch18.cache",
    RIGHT | {"work": 0.25},
    "Each query head still makes a score with every key, whoever owns the key.",
    see="shared-keys-short-keys",
)
wrong(
    "ch18.cache",
    RIGHT | {"grouped": 0.75, "single": 31 / 32},
    "That is what is saved; the question is what is left.",
    see="shared-keys-short-keys",
)
wrong("ch18.cache", RIGHT | {"gib": 2.0}, "Keys and values are two tensors; you counted one.", see="shared-keys-short-keys")
wrong(
    "ch18.cache", RIGHT | {"gib": 16.0}, "That is the cache with a key head for every query head.", see="shared-keys-short-keys"
)
wrong(
    "ch18.cache",
    RIGHT | {"same_bits": 0.9334},
    "Six bits against sixteen are in that number; here both are stored alike.",
    see="shared-keys-short-keys",
)
wrong(
    "ch18.cache",
    RIGHT | {"own_heads": 0.8224},
    "That is the saving against DeepSeek 67B, with its grouped heads and more layers.",
    see="shared-keys-short-keys",
)

wrong("ch18.cache", RIGHT | {"gib": 4.295}, "That is in billions of bytes; a GiB is a little more.", see="shared-keys-short-keys")
wrong(
    "ch18.cache",
    RIGHT | {"same_bits": 1 - 30_720 / 194_560, "own_heads": 1 - 512 / 32_768},
    "The cache keeps more of a token than its latent row. Look at the numbers that the chapter counts.",
    see="shared-keys-short-keys",
)
wrong(
    "ch18.cache",
    RIGHT | {"same_bits": 1 - 34_560 / 97_280, "own_heads": 1 - 576 / 16_384},
    "The baselines keep a value beside each key; you counted the keys.",
    see="shared-keys-short-keys",
)
wrong(
    "ch18.cache",
    RIGHT | {"same_bits": 34_560 / 194_560, "own_heads": 576 / 32_768},
    "That is the share that is left; these two ask for what is saved.",
    see="shared-keys-short-keys",
)

# ---------------------------------------------------------------- ch18.dual


@right("ch18.dual")
def values_are_units(decay, query, key):
    T = key.shape[-2]
    state, rows = torch.zeros(*key.shape[:-2], key.shape[-1], T, dtype=key.dtype), []
    for t in range(T):
        state = decay[..., t, :, None] * state + key[..., t, :, None] * torch.eye(T, dtype=key.dtype)[t]
        rows.append(torch.einsum("...d,...ds->...s", query[..., t, :], state))
    return torch.stack(rows, dim=-2)


@wrong(
    "ch18.dual",
    "You divided one cumulative product by another: with a decay of 0, or in a long text, that is 0/0.",
    see="what-goes-wrong-in-practice",
)
def ratio_of_products(decay, query, key):
    product = decay.cumprod(dim=-2)
    return ((query * product) @ (key / product).mT).tril()


@wrong("ch18.dual", "A key fades by the decays of the tokens after it; you let it fade by its own as well.", see=STATE)
def own_decay_too(decay, query, key):
    T, rows, carried = key.shape[-2], [], key[..., :0, :]
    for i in range(T):
        carried = torch.cat([carried, key[..., i : i + 1, :]], dim=-2) * decay[..., i : i + 1, :]
        rows.append(F.pad((carried @ query[..., i, :, None])[..., 0], (0, T - 1 - i)))
    return torch.stack(rows, dim=-2)


@wrong("ch18.dual", "You stopped one decay too early: the token that asks lets the state fade before it reads.", see=STATE)
def fades_after_reading(decay, query, key):
    T, rows, carried = key.shape[-2], [], key[..., :0, :]
    for i in range(T):
        carried = torch.cat([carried, key[..., i : i + 1, :]], dim=-2)
        rows.append(F.pad((carried @ query[..., i, :, None])[..., 0], (0, T - 1 - i)))
        carried = carried * decay[..., i : i + 1, :]
    return torch.stack(rows, dim=-2)


@wrong("ch18.dual", "You took one decay for all coordinates; here each fades at a rate of its own.", see=STATE)
def one_decay_for_all(decay, query, key):
    T, rows, carried = key.shape[-2], [], key[..., :0, :]
    for i in range(T):
        carried = torch.cat([carried * decay[..., i : i + 1, :].mean(dim=-1, keepdim=True), key[..., i : i + 1, :]], dim=-2)
        rows.append(F.pad((carried @ query[..., i, :, None])[..., 0], (0, T - 1 - i)))
    return torch.stack(rows, dim=-2)


@wrong(
    "ch18.dual",
    "Rows are the tokens that ask and columns the tokens that were written: yours are the other way round.",
    see=STATE,
)
def transposed(decay, query, key):
    T, rows, carried = key.shape[-2], [], key[..., :0, :]
    for i in range(T):
        carried = torch.cat([carried * decay[..., i : i + 1, :], key[..., i : i + 1, :]], dim=-2)
        rows.append(F.pad((carried @ query[..., i, :, None])[..., 0], (0, T - 1 - i)))
    return torch.stack(rows, dim=-1)


@wrong("ch18.dual", "Nothing fades in your matrix: it is the masked product of linear attention.", see="a-sum-in-place-of-a-list")
def without_fading(decay, query, key):
    return (query @ key.mT).tril() + 0 * decay.sum()


@wrong(
    "ch18.dual",
    "Sums of logarithms are safe in a long text; a decay of 0 has the logarithm −∞, and −∞ less −∞ is not a number.",
    see="what-goes-wrong-in-practice",
)
def logarithm_of_zero(decay, query, key):
    log = decay.log().cumsum(dim=-2)
    gap = log[..., :, None, :] - log[..., None, :, :]
    later = torch.ones(key.shape[-2], key.shape[-2], dtype=torch.bool).triu(1)[..., None]
    return (query[..., :, None, :] * key[..., None, :, :] * gap.masked_fill(later, -math.inf).exp()).sum(dim=-1)


@wrong("ch18.dual", "You forget keys that are far away. Where little fades, they still count.", see=STATE)
def only_what_is_near(decay, query, key):
    T, rows, carried = key.shape[-2], [], key[..., :0, :]
    for i in range(T):
        carried = torch.cat([carried * decay[..., i : i + 1, :], key[..., i : i + 1, :]], dim=-2)
        rows.append(F.pad((carried @ query[..., i, :, None])[..., 0], (0, T - 1 - i)))
    return torch.stack(rows, dim=-2).triu(-40)


@wrong("ch18.dual", "A decay of 0 in one coordinate wiped the others as well.", see=STATE)
def one_zero_wipes_all(decay, query, key):
    wiped = (decay == 0).any(dim=-1).cumsum(dim=-1)
    log = torch.where(decay == 0, 1.0, decay).log().cumsum(dim=-2)
    left = (log[..., :, None, :] - log[..., None, :, :]).clamp_max(0.0).exp()
    left = left * (wiped[..., :, None] == wiped[..., None, :])[..., None]
    return (query[..., :, None, :] * key[..., None, :, :] * left).sum(dim=-1).tril()


@wrong("ch18.dual", "You took a power of the asking token's decay; each token in between has a decay of its own.", see=STATE)
def power_of_one_decay(decay, query, key):
    T = key.shape[-2]
    steps = (torch.arange(T)[:, None] - torch.arange(T)).clamp_min(0)[..., None]
    return (query[..., :, None, :] * key[..., None, :, :] * decay[..., :, None, :] ** steps).sum(dim=-1).tril()


# ---------------------------------------------------------------- ch18.delta


@right("ch18.delta")
def by_turning_matrices(decay, beta, query, key, value):
    state, out = torch.zeros(*key.shape[:-2], key.shape[-1], value.shape[-1], dtype=value.dtype), []
    for t in range(key.shape[-2]):
        k = key[..., t, :]
        outer = k[..., :, None] * k[..., None, :] * beta[..., t, None, None]
        turned = state - torch.einsum("...ab,...bc->...ac", outer, state)
        state = decay[..., t, None, None] * turned + (beta[..., t, None] * k)[..., :, None] * value[..., t, None, :]
        out.append((query[..., t, :, None] * state).sum(dim=-2))
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "You took the difference from what the key gave before the state faded.", see=DELTA)
def corrects_the_unfaded(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state + beta[..., t, None, None] * k.mT @ (v - k @ state)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "The state faded after the write, so that the new value fades, too.", see=DELTA)
def fades_last(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * (state + beta[..., t, None, None] * k.mT @ (v - k @ state))
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "You read before you wrote: a token sees its own value.", see=DELTA)
def reads_first(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state
        out.append((q @ state)[..., 0, :])
        state = state + beta[..., t, None, None] * k.mT @ (v - k @ state)
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "You wrote the value itself, not the difference from what the key gives already.", see=DELTA)
def adds_without_looking(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state + beta[..., t, None, None] * k.mT @ v
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "β weighs the value only; what the key gave is taken away in full.", see=DELTA)
def beta_on_the_value_only(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state
        state = state + k.mT @ (beta[..., t, None, None] * v - k @ state)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "You made the keys' length 1. The task takes them as they are.", see="what-goes-wrong-in-practice")
def normalises_keys(decay, beta, query, key, value):
    key = F.normalize(key, dim=-1)
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state
        state = state + beta[..., t, None, None] * k.mT @ (v - k @ state)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@right("ch18.delta")
def state_by_coordinates(decay, beta, query, key, value):
    state, out = torch.zeros(*value.shape[:-2], key.shape[-1], value.shape[-1], dtype=value.dtype), torch.empty_like(value)
    for t in range(value.shape[-2]):
        state *= decay[..., t, None, None]
        missing = value[..., t, :] - torch.einsum("...k,...kv->...v", key[..., t, :], state)
        state += torch.einsum("...,...k,...v->...kv", beta[..., t], key[..., t, :], missing)
        out[..., t, :] = torch.einsum("...k,...kv->...v", query[..., t, :], state)
    return out


@wrong("ch18.delta", "You took β for a number up to 1. Up to 2 it is of use: it turns an answer over.", see=DELTA)
def beta_at_most_one(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state
        state = state + beta[..., t, None, None].clamp(0.0, 1.0) * k.mT @ (v - k @ state)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong(
    "ch18.delta",
    "You divided by cumulative products of the decays: after a decay of 0 that is no number.",
    see="what-goes-wrong-in-practice",
)
def divides_by_products(decay, beta, query, key, value):
    faded = decay.cumprod(dim=-1)[..., None]
    before = beta[..., None] * ((key * faded) @ (key / faded).mT).tril(-1)
    written = torch.linalg.solve_triangular(before, beta[..., None] * value, upper=False, unitriangular=True)
    return ((query * faded) @ (key / faded).mT).tril() @ written


@wrong("ch18.delta", "You read with the key; the query was not used.", see=DELTA)
def reads_with_the_key(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        k, v = (each[..., t, None, :] for each in (key, value))
        state = decay[..., t, None, None] * state
        state = state + beta[..., t, None, None] * k.mT @ (v - k @ state)
        out.append((k @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "Nothing fades in your state: it is the delta rule without its gate.", see=DELTA)
def without_the_gate(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        state = state + beta[..., t, None, None] * k.mT @ (v - k @ state)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


@wrong("ch18.delta", "The faded state gave the difference, but you wrote it into the state from before it faded.", see=DELTA)
def writes_to_the_unfaded(decay, beta, query, key, value):
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []
    for t in range(key.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))
        given = k @ (decay[..., t, None, None] * state)
        state = state + beta[..., t, None, None] * k.mT @ (v - given)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


# ---------------------------------------------------------------- ch18.guess

right("ch18.guess", "no clear difference")
right("ch18.guess", "delta")
wrong("ch18.guess", "list", "Choose one of the four texts as they stand.", see="recall-tells-them-apart")
wrong("ch18.guess", 12, "The prediction is one of the four texts, not a number.", see="recall-tells-them-apart")

# ---------------------------------------------------------------- ch18.dated

for letters, sentence in {
    "abdf": "The number in f is right. Look at what it is a share of.",
    "abde": "A cell of this chapter computes what e denies.",
    "abcd": "Look for two models of 2025 in the table.",
    "bd": "Exact and bit-for-bit are not the same. What does a say?",
    "ab": "Compare two rows of one lab in the table.",
    "ad": "Count the layers of Jamba once more in the table.",
    "cef": "You chose those that this chapter refutes.",
}.items():
    wrong("ch18.dated", letters, sentence, see="who-won-and-when")

# ---------------------------------------------------------------- changes that make no difference

for finite in ("-0.0", "-1.0", "1.0"):
    equivalent(
        "ch18.merge",
        f"`shift = torch.where(torch.isneginf(largest), {finite}, largest)`",
        "where both are hidden, any finite shift leaves the exponential of −∞ at zero",
    )
equivalent("ch18.dual", "`row = (carried @ query[..., i, :, None])[..., -1]`", "the axis has one entry, the first and the last")
equivalent("ch18.delta", "`out.append((q @ state)[..., -1, :])`", "the axis has one entry, the first and the last")
for zeros in (
    "key[..., 0, :, None] * value[..., -1, None, :]",
    "key[..., -1, :, None] * value[..., 0, None, :]",
    "key[..., 0, :, None] / value[..., 0, None, :]",
):
    equivalent(
        "ch18.delta",
        f"`state, out = (torch.zeros_like({zeros}), [])`",
        "only the shape of the first state is taken from the key and the value, and all tokens have the same",
    )
equivalent(
    "ch18.delta",
    "`state, out = (torch.zeros_like(key[..., 0, :, None]), [])`",
    "a first state of one column of zeros broadcasts to the width of the value",
)
for change in (
    "own_heads = 1 - 577 / (2 * 128 * 128)",
    "own_heads = 1 - 575 / (2 * 128 * 128)",
    "own_heads = 1 - 576 / (2 * 127 * 128)",
    "own_heads = 1 - 576 / (2 * 129 * 128)",
    "own_heads = 1 - 576 / (2 * 128 * 127)",
    "own_heads = 1 - 576 / (2 * 128 * 129)",
    "same_bits = 1 - 60 * 575 / (2 * 95 * 8 * 128)",
    "same_bits = 1 - 60 * 577 / (2 * 95 * 8 * 128)",
    "gib = kv_bytes(32, 8, 128, 32767) / 2 ** 30",
    "gib = kv_bytes(32, 8, 128, 32769) / 2 ** 30",
):
    equivalent("ch18.cache", f"`{change}`", "the answer changes by less than the tolerance of one part in a thousand")
