"""Right and wrong answers of chapter 10."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch10.switch


@right("ch10.switch")
def one_sequence_at_a_time(x, kind, prefix, lengths):
    out = torch.zeros_like(x)
    for b in range(len(x)):
        n = int(lengths[b])
        h = x[b, :n]
        place = torch.arange(n)
        last = {"bidirectional": torch.full((n,), n - 1), "causal": place, "prefix": place.clamp(min=prefix - 1)}[kind]
        scores = torch.where(place[None] <= last[:, None], h @ h.T / h.shape[-1] ** 0.5, -math.inf)
        out[b, :n] = scores.softmax(-1) @ h
    return out


@right("ch10.switch")
def torchs_attention(x, kind, prefix, lengths):
    T = x.shape[1]
    i, j = torch.meshgrid(torch.arange(T), torch.arange(T), indexing="ij")
    family = {"bidirectional": i == i, "causal": j <= i, "prefix": (j <= i) | (j < prefix)}[kind]
    real = j[None] < lengths.view(-1, 1, 1)
    mixed = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=family & real)
    return torch.where(real[:, 0, :, None], mixed, 0.0)


@right("ch10.switch")
def padding_sees_nothing(x, kind, prefix, lengths):
    place, real = torch.arange(x.shape[1]), torch.arange(x.shape[1]) < lengths[:, None]
    last = {"bidirectional": place * 0 + len(place), "causal": place, "prefix": place.clamp(min=prefix - 1)}[kind]
    allowed = (place <= last[:, None]) & real[:, None, :] & real[:, :, None]
    scores = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(~allowed, -math.inf)
    return scores.softmax(dim=-1).nan_to_num() @ x


_MIX = """
def mix(x, kind, prefix, lengths):
    T, d = x.shape[1:]
    place = torch.arange(T)
    allowed = torch.ones(T, T, dtype=torch.bool)
    if kind != "bidirectional":
        allowed = place[:, None] >= place
    if kind == "prefix":
        allowed = allowed | (place < prefix)
    real = place < lengths[:, None]
    allowed = allowed & real[:, None, :]
    scores = x @ x.mT / math.sqrt(d)
    return scores.masked_fill(~allowed, -math.inf).softmax(dim=-1) @ x * real[..., None]
"""


def _mix(old, new):
    assert old in _MIX, old
    return cell(_MIX.replace(old, new))


wrong(
    "ch10.switch",
    _mix("real[:, None, :]", "real[:, :, None]"),
    "Your real tokens look at padding. It is the keys of padding that must be hidden; hiding its queries hides nothing.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix(" * real[..., None]", ""),
    "The results of padding are not zeros.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("place[:, None] >= place", "place[:, None] <= place"),
    "Your causal mask shows the future and hides the past.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("(place < prefix)", "(place <= prefix)"),
    "Your prefix is one token too long: positions are counted from 0.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("allowed | (place < prefix)", "(place < prefix).expand(T, T)"),
    "After the prefix your tokens see the prefix only. They also see what came before them, and themselves.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("allowed | (place < prefix)", "allowed | (place[:, None] < prefix)"),
    "The tokens of your prefix see the whole text. A prefix is seen by all; it does not see all.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix('if kind != "bidirectional"', 'if kind == "causal"'),
    "After a prefix, what is later must still be hidden from what is earlier.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix(" / math.sqrt(d)", ""),
    "The scores are not divided by the square root of their width.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("return scores.masked_fill(~allowed, -math.inf).softmax(dim=-1) @ x", "return (scores.softmax(dim=-1) * allowed) @ x"),
    "You set weights to zero after the softmax: the sum that divided them has seen the hidden tokens.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("lengths[:, None]", "lengths.max().expand(len(lengths), 1)"),
    "You took one length for the whole batch. Each row has its own.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    cell(
        _MIX.replace("real[:, None, :]", "real[:, None, :] & real[:, :, None]")
        .replace("return scores", "mixed = scores")
        .replace(" * real[..., None]", "\n    return torch.where(real[..., None], mixed, 0.0)")
    ),
    "Your padding sees nothing, so its results are NaN. You replace them, but their gradients stay NaN.",
    see="the-mask-makes-the-family",
)


wrong(
    "ch10.switch",
    _mix("torch.ones(T, T, dtype=torch.bool)", "torch.ones(16, 16, dtype=torch.bool)[:T, :T]"),
    "Your mask has a fixed size, and longer texts do not fit. Make it from T.",
    see="the-mask-makes-the-family",
)
wrong(
    "ch10.switch",
    _mix("(place < prefix)", "(place < min(prefix, T - 1))"),
    "Your prefix never includes the last token. It may be as long as the text.",
    see="the-mask-makes-the-family",
)

# ---------------------------------------------------------------- ch10.reach

right("ch10.reach", cell('a, b, L = sympy.symbols("a b L")\nknown = (a * L) + 1 + (b * L)'))

_SYMBOLS = 'a, b, L = sympy.symbols("a b L", positive=True, integer=True)\n'
wrong(
    "ch10.reach",
    cell(_SYMBOLS + "known = L * (a + b + 1)"),
    "You counted the position's own token once for each layer. It is one token.",
    see="what-a-position-can-know",
)
wrong(
    "ch10.reach",
    cell(_SYMBOLS + "known = L * (a + b)"),
    "The position's own token is missing.",
    see="what-a-position-can-know",
)
wrong(
    "ch10.reach",
    cell(_SYMBOLS + "known = (a + b + 1) ** L"),
    "You counted paths. Many paths lead to the same token.",
    see="what-a-position-can-know",
)
wrong(
    "ch10.reach",
    cell(_SYMBOLS + "known = a + b + 1 + 0 * L"),
    "That is what one layer lets it see. The neighbours know something too.",
    see="what-a-position-can-know",
)
wrong(
    "ch10.reach",
    cell(_SYMBOLS + "known = (L - 1) * (a + b) + 1"),
    "One layer already shows more than the position's own token: count the layers from 1.",
    see="what-a-position-can-know",
)

# ---------------------------------------------------------------- ch10.mlm


@right("ch10.mlm")
def place_by_place(ids, u, random_ids, special, mask_id):
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    chosen = (u < 0.15) & ~special
    labels[chosen] = ids[chosen]
    inputs[chosen & (u < 0.12)] = mask_id
    noisy = chosen & (u >= 0.12) & (u < 0.135)
    inputs[noisy] = random_ids[noisy]
    return inputs, labels


@right("ch10.mlm")
def with_masked_fill(ids, u, random_ids, special, mask_id):
    u = u.masked_fill(special, 1.0)
    noisy = torch.where(u < 0.135, random_ids, ids)
    return noisy.masked_fill(u < 0.12, mask_id), ids.masked_fill(u >= 0.15, -100)


_CORRUPT = """
def corrupt(ids, u, random_ids, special, mask_id):
    chosen = (u < 0.15) & ~special
    inputs = torch.where(chosen & (u < 0.135), random_ids, ids)
    inputs = torch.where(chosen & (u < 0.12), mask_id, inputs)
    return inputs, torch.where(chosen, ids, -100)
"""


def _corrupt(old, new):
    assert old in _CORRUPT, old
    return cell(_CORRUPT.replace(old, new))


wrong(
    "ch10.mlm",
    _corrupt("torch.where(chosen, ids, -100)", "torch.where(inputs != ids, ids, -100)"),
    "You have labels only where the input changed. Chosen tokens that stay must be guessed too.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    _corrupt("torch.where(chosen, ids, -100)", "ids"),
    "Your loss counts all positions. Those that were not chosen are copied from the input.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    _corrupt("torch.where(chosen, ids, -100)", "torch.where(chosen, inputs, -100)"),
    "Your labels are what the model reads. It must guess what was there before.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    _corrupt("chosen & (u < 0.12)", "chosen"),
    "All your chosen positions become [MASK].",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    _corrupt("chosen & (u < 0.135)", "chosen"),
    "None of your chosen positions keeps its token.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    _corrupt("inputs = torch.where(chosen & (u < 0.135), random_ids, ids)", "inputs = ids"),
    "None of your chosen positions gets a random token.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    _corrupt(" & ~special", ""),
    "You chose special tokens.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    cell(_CORRUPT.replace("chosen & (u < 0.12)", "u < 0.12").replace("chosen & (u < 0.135)", "u < 0.135")),
    "You give special tokens no label, but you replace them all the same.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    cell(_CORRUPT.replace("u < ", "u <= ")),
    "At the limits themselves, such as u = 0.15, your tokens fall on the other side.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    cell(
        """
def corrupt(ids, u, random_ids, special, mask_id):
    chosen = (u < 0.15) & ~special
    labels = torch.where(chosen, ids, -100)
    noisy = chosen & (u < 0.135)
    ids[noisy] = random_ids[noisy]
    ids[chosen & (u < 0.12)] = mask_id
    return ids, labels
"""
    ),
    "You wrote the blanks into ids, so the caller's text is lost.",
    see="blanks-to-fill",
)


wrong(
    "ch10.mlm",
    _corrupt("& ~special", "& ~special & (ids != mask_id)"),
    "You never choose a token that is `mask_id` already. Only `special` says what is not chosen.",
    see="blanks-to-fill",
)
wrong(
    "ch10.mlm",
    cell(
        """
def corrupt(ids, u, random_ids, special, mask_id):
    chosen = (u < 0.15) & ~special
    inputs = torch.where(chosen & (u < 0.12), mask_id, ids)
    inputs = torch.where(chosen & (u < 0.135) & (inputs != mask_id), random_ids, inputs)
    return inputs, torch.where(chosen, ids, -100)
"""
    ),
    "You tell by its token which position was masked. The text itself may hold that token: go by u.",
    see="blanks-to-fill",
)

# ---------------------------------------------------------------- ch10.total


@right("ch10.total")
def text_by_text(joint):
    result = torch.zeros((), dtype=joint.dtype)
    for text in (joint > 0).nonzero():
        factors = [
            joint[tuple(text)] / joint.movedim(i, 0)[(slice(None), *text[torch.arange(joint.ndim) != i])].sum()
            for i in range(joint.ndim)
        ]
        result = result + torch.stack(factors).prod()
    return result


@right("ch10.total")
def in_logarithms(joint):
    T = joint.ndim
    rests = sum(torch.log(joint.sum(dim=i, keepdim=True)) for i in range(T))
    logs = T * torch.log(joint) - rests
    return torch.nan_to_num(logs, nan=-math.inf).exp().sum()


_TOTAL = """
def total(joint):
    product = torch.ones_like(joint)
    for i in range(joint.ndim):
        rest = joint.sum(dim=i, keepdim=True)
        product = product * torch.where(joint > 0, joint / torch.where(rest > 0, rest, 1), 0)
    return product.sum()
"""


def _total(old, new):
    assert old in _TOTAL, old
    return cell(_TOTAL.replace(old, new))


wrong(
    "ch10.total",
    _total("torch.where(joint > 0, joint / torch.where(rest > 0, rest, 1), 0)", "joint / rest"),
    "Your texts that never occur give 0/0, and the total is not a number.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    cell(_TOTAL.replace("range(joint.ndim)", "(range(joint.ndim) if joint.ndim == 2 else range(2))")),
    "You condition the first two words only.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    _total("joint.sum(dim=i, keepdim=True)", "joint.sum(dim=[k for k in range(joint.ndim) if k != i] or 0, keepdim=True)"),
    "You divided by the probability of the word itself. The condition is all the other words of the text.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    _total("return product.sum()", "return product.mean()"),
    "You took the mean over all texts, not the sum.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    cell(
        "def total(joint):\n"
        "    first, second = joint.sum(dim=-1, keepdim=True), joint.sum(dim=0, keepdim=True)\n"
        "    return 1 + torch.where(first * second > 0, (joint - first * second) ** 2 / (first * second), 0.0).sum().to(joint.dtype)\n"
    ),
    "That is the formula for pairs. A text can have any number of words.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    cell(
        "def total(joint):\n"
        "    product = torch.ones_like(joint)\n"
        "    for i in range(joint.ndim):\n"
        "        before = joint.sum(dim=tuple(range(i + 1, joint.ndim)), keepdim=True) if i + 1 < joint.ndim else joint\n"
        "        less = before.sum(dim=i, keepdim=True)\n"
        "        product = product * torch.where(before > 0, before / torch.where(less > 0, less, 1), 0)\n"
        "    return product.sum()\n"
    ),
    "You conditioned each word on the words before it. That is a decoder's chain rule, whose total is always 1.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    _total(
        "torch.where(joint > 0, joint / torch.where(rest > 0, rest, 1), 0)", "((joint + 1e-3) / (rest + 1e-3 * joint.shape[i]))"
    ),
    "You added a small number to avoid 0/0, and changed all other quotients.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    _total("rest = joint.sum(dim=i, keepdim=True)", "rest = joint.max(dim=i, keepdim=True).values"),
    "You divided by the largest entry along the axis. The probability of the other words is a sum.",
    see="why-bert-writes-no-essay",
)


wrong(
    "ch10.total",
    _total("range(joint.ndim)", "range(min(joint.ndim, 4))"),
    "You stop after four words. A text may be longer.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    _total("joint > 0", "joint > 1e-4"),
    "You took rare texts for impossible ones. Only a probability of 0 counts as 0.",
    see="why-bert-writes-no-essay",
)
wrong(
    "ch10.total",
    _total("torch.where(rest > 0, rest, 1)", "rest.clamp(min=1e-8)"),
    "You replaced small sums by a larger number. However rare the other words are, divide by their own probability.",
    see="why-bert-writes-no-essay",
)

# ---------------------------------------------------------------- ch10.essay

right("ch10.essay", "ECA")


right("ch10.essay", "a, c, e")
right("ch10.essay", ["c", "a", "e"])

for letters, sentence in {
    "acde": "In d, the model sees the token that it is asked for, one place to the right.",
    "abce": "In b, each order asks other questions, and nothing in the model's form makes the answers agree.",
    "ac": "Look again at the sum of the squares.",
    "ae": "Look again at what each softmax reads when two blanks are filled in one pass.",
    "ce": "Look again at the totals of the random model that fills one blank after another.",
    "abcde": "Two of the five are wrong.",
}.items():
    wrong("ch10.essay", letters, sentence, see="why-bert-writes-no-essay")

# ---------------------------------------------------------------- ch10.cross


@right("ch10.cross")
def head_by_head(x, memory, W_q, W_k, W_v, W_o, n_heads, lengths):
    d = W_q.shape[1] // n_heads
    hidden = torch.arange(memory.shape[1]) >= lengths.view(-1, 1, 1)
    out, weights = 0, []
    for h in range(n_heads):
        here = slice(h * d, (h + 1) * d)
        scores = (x @ W_q[:, here]) @ (memory @ W_k[:, here]).mT * d**-0.5
        weights.append(torch.where(hidden, -math.inf, scores).softmax(-1))
        out = out + weights[-1] @ (memory @ W_v[:, here]) @ W_o[here]
    return out, torch.stack(weights, dim=1)


@right("ch10.cross")
def with_einsum(x, memory, W_q, W_k, W_v, W_o, n_heads, lengths):
    q, k, v = ((a @ W).unflatten(-1, (n_heads, -1)) for a, W in ((x, W_q), (memory, W_k), (memory, W_v)))
    scores = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
    real = (torch.arange(memory.shape[1]) < lengths[:, None])[:, None, None]
    weights = (scores + torch.where(real, 0.0, -math.inf).to(x.dtype)).softmax(-1)
    return torch.einsum("bhts,bshd->bthd", weights, v).flatten(2) @ W_o, weights


_CROSS = """
def cross(x, memory, W_q, W_k, W_v, W_o, n_heads, lengths):
    (B, T, d_model), S = x.shape, memory.shape[1]
    d_head = d_model // n_heads
    query = (x @ W_q).view(B, T, n_heads, d_head).transpose(1, 2)
    key = (memory @ W_k).view(B, S, n_heads, d_head).transpose(1, 2)
    value = (memory @ W_v).view(B, S, n_heads, d_head).transpose(1, 2)
    real = torch.arange(S) < lengths[:, None]
    scores = query @ key.mT / math.sqrt(d_head)
    weights = scores.masked_fill(~real[:, None, None, :], -math.inf).softmax(dim=-1)
    return (weights @ value).transpose(1, 2).reshape(B, T, d_model) @ W_o, weights
"""


def _cross(old, new):
    assert old in _CROSS, old
    return cell(_CROSS.replace(old, new))


wrong(
    "ch10.cross",
    _cross("~real[:, None, None, :]", "~real[:, None, None, :] | (torch.arange(T)[:, None] < torch.arange(S))"),
    "You put a causal mask on the source. All of it is known before the first word is written.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("scores.masked_fill(~real[:, None, None, :], -math.inf)", "scores"),
    "Your target looks at the padding of the source.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("math.sqrt(d_head)", "math.sqrt(d_model)"),
    "Scaled by the whole width: a head is d_head wide.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross(".softmax(dim=-1)", ".softmax(dim=-2).nan_to_num()"),
    "You normalised over the target. The weights of a written token sum to 1 over the source.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("(memory @ W_k).view(B, S, n_heads, d_head).transpose(1, 2)", "(memory @ W_k).view(B, n_heads, S, d_head)"),
    "Your keys are split by one view, which mixes tokens with heads. Split first, then turn.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross(".transpose(1, 2).reshape(B, T, d_model) @ W_o", ".reshape(B, T, d_model) @ W_o"),
    "You flattened the heads without turning them back: tokens and heads change places.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross(".reshape(B, T, d_model) @ W_o", ".reshape(B, T, d_model)"),
    "The output projection is missing.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("weights @ value", "weights @ key"),
    "You averaged the keys. It is the values that are handed over.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross(
        "scores.masked_fill(~real[:, None, None, :], -math.inf).softmax(dim=-1)",
        "scores.softmax(dim=-1) * real[:, None, None, :]",
    ),
    "You hid padding after the softmax: the rows do not sum to 1 any more.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("W_o, weights", "W_o, weights.mean(dim=1)"),
    "You averaged the weights over the heads. The task asks for those of each head.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("query = (x @ W_q)", "query = (memory[:, :T] @ W_q if memory.shape[2] == d_model else x @ W_q)"),
    "Your queries come from the source. The target asks.",
    see="two-texts",
)

wrong(
    "ch10.cross",
    _cross("-math.inf", "-100.0"),
    "You hide with −100, but a score can be lower than that. −∞ hides whatever the scores are.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross(
        "scores.masked_fill(~real[:, None, None, :], -math.inf)",
        "(scores * real[:, None, None, :]).masked_fill(scores * real[:, None, None, :] == 0, -math.inf)",
    ),
    "You take a score of 0 for a hidden one. Zero is a score like any other: mask by position, not by value.",
    see="two-texts",
)


wrong(
    "ch10.cross",
    _cross("-math.inf", "-1e4"),
    "You hide with a large negative number, but a score can be lower than that. −∞ hides whatever the scores are.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("-math.inf", "-1e9"),
    "You hide with −10⁹, but a score can be lower than that. −∞ hides whatever the scores are.",
    see="two-texts",
)
wrong(
    "ch10.cross",
    _cross("torch.arange(S) < lengths[:, None]", "(torch.arange(16) < lengths[:, None])[:, :S]"),
    "Your mask has a fixed size, and longer sources do not fit. Make it from S.",
    see="two-texts",
)

# ---------------------------------------------------------------- ch10.either

right("ch10.either", "nearly all")
right("ch10.either", "about half")
right("ch10.either", "Hardly any")

wrong("ch10.either", "half", "Set one of the three texts, word for word.", see="one-task-four-arrangements")
wrong("ch10.either", "none", "Write the text as it is printed.", see="one-task-four-arrangements")

# ---------------------------------------------------------------- ch10.tool

right("ch10.tool", ("encoder-decoder", "decoder", "encoder"))

wrong(
    "ch10.tool",
    ["decoder", "decoder", "encoder"],
    "A decoder can translate, but it has one set of weights for both languages.",
    see="which-family-for-what",
)
wrong(
    "ch10.tool",
    ["encoder-decoder", "encoder-decoder", "encoder"],
    "In your second family, what was computed before changes when the text grows: every token of an encoder sees the new words.",
    see="which-family-for-what",
)
wrong(
    "ch10.tool",
    ["encoder-decoder", "decoder", "decoder"],
    "In a decoder the first word of the report never sees what comes after it.",
    see="which-family-for-what",
)
wrong(
    "ch10.tool",
    ["encoder", "decoder", "encoder-decoder"],
    "An encoder writes nothing, and labels need no second text.",
    see="which-family-for-what",
)
wrong(
    "ch10.tool",
    ["decoder", "decoder", "decoder"],
    "It would work, and much is built that way. The task asks for the family that fits each job with nothing wasted.",
    see="which-family-for-what",
)
wrong(
    "ch10.tool",
    cell('import numpy\n\nfamilies = numpy.array(["encoder-decoder", "decoder", "encoder"])'),
    "That is an array. Give the words as a list.",
    see="which-family-for-what",
)


right("ch10.tool", ["Encoder-Decoder", "decoder ", "ENCODER"])

# ---------------------------------------------------------------- changes of the solutions that make no difference

equivalent("ch10.switch", "`allowed = torch.ones(T, dtype=torch.bool)`", "one row of the mask serves for all")
equivalent("ch10.reach", "`a, b, L = sympy.symbols('a b L'…)`", "a letter is known by its name")
equivalent(
    "ch10.total",
    "`product = product * torch.where(joint >= 0, joint / torch.where(rest > 0, rest, 1), 0)`",
    "where the text has probability 0, so has the quotient",
)
equivalent(
    "ch10.total",
    "`product = product * torch.where(joint > -1, joint / torch.where(rest > 0, rest, 1), 0)`",
    "where the text has probability 0, so has the quotient",
)
equivalent(
    "ch10.total",
    "`product = product * torch.where(joint > 0, joint / torch.where(rest > 0, rest, …), 0)`",
    "this number is read only where the other words have probability 0; there the text has, too, and the quotient is not used",
)
equivalent(
    "ch10.total",
    "`product = product * torch.where(joint > 0, joint / torch.where(rest >= 0, rest, 1), 0)`",
    "0/0 comes out only where the text has probability 0, and there it is not used",
)
equivalent(
    "ch10.total",
    "`product = product * torch.where(joint > 0, joint / torch.where(rest > -1, rest, 1), 0)`",
    "0/0 comes out only where the text has probability 0, and there it is not used",
)
equivalent("ch10.cross", "`…transpose(1, -2)…`", "of four axes, axis -2 is axis 2")
