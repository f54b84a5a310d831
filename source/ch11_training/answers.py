"""Right and wrong answers of chapter 11."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch11.pairs


@right("ch11.pairs")
def token_by_token(documents, T, bos):
    inputs, targets = [], []
    for document in documents:
        before = bos
        for place, token in enumerate(document.tolist()):
            if place % T == 0:
                inputs.append([bos] * T)
                targets.append([-100] * T)
            inputs[-1][place % T], targets[-1][place % T] = before, token
            before = token
    return torch.tensor(inputs), torch.tensor(targets)


_PAIRS = """
def pairs(documents, T, bos):
    inputs, targets = [], []
    for document in documents:
        missing = -len(document) % T
        inputs.append(F.pad(document[:-1], (1, missing), value=bos).reshape(-1, T))
        targets.append(F.pad(document, (0, missing), value=-100).reshape(-1, T))
    return torch.cat(inputs), torch.cat(targets)
"""


def _pairs(old, new):
    assert old in _PAIRS, old
    return cell(_PAIRS.replace(old, new))


_TEACHER = "the-text-is-its-own-teacher"
wrong(
    "ch11.pairs",
    _pairs("    for document in documents:", "    for document in [torch.cat(documents)]:"),
    "You made one text of all documents: the first token of each must be guessed from BOS, not from another document.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    _pairs("F.pad(document[:-1], (1, missing), value=bos)", "F.pad(document, (0, missing), value=bos)"),
    "Your inputs are the targets themselves: the model sees what it should guess.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    _pairs("value=-100", "value=bos"),
    "The filled-up places of your targets count in the loss: the model would learn to write what is only filling.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    cell(
        "def pairs(documents, T, bos):\n"
        "    inputs, targets = [], []\n"
        "    for document in documents:\n"
        "        n = len(document) // T * T\n"
        "        inputs.append(F.pad(document[:-1], (1, 0), value=bos)[:n].reshape(-1, T))\n"
        "        targets.append(document[:n].reshape(-1, T))\n"
        "    return torch.cat(inputs), torch.cat(targets)"
    ),
    "You dropped what does not fill a window: every token is to be a target.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    cell(
        "def pairs(documents, T, bos):\n"
        "    inputs, targets = [], []\n"
        "    for document in documents:\n"
        "        missing = -(len(document) - 1) % T\n"
        "        inputs.append(F.pad(document[:-1], (0, missing), value=bos).reshape(-1, T))\n"
        "        targets.append(F.pad(document[1:], (0, missing), value=-100).reshape(-1, T))\n"
        "    return torch.cat(inputs), torch.cat(targets)"
    ),
    "The first token of a document is no target of yours. BOS is there to be its input.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    _pairs(
        "inputs.append(F.pad(document[:-1], (1, missing), value=bos).reshape(-1, T))",
        "inputs.append(F.pad(F.pad(document, (0, missing), value=bos).reshape(-1, T)[:, :-1], (1, 0), value=bos))",
    ),
    "You put BOS in front of every window. Only a document begins with it; elsewhere the token before is known.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    _pairs("missing = -len(document) % T", "missing = T - len(document) % T"),
    "A document that fills its last window gets another one of yours, with nothing in it.",
    see=_TEACHER,
)

wrong(
    "ch11.pairs",
    cell(
        _pairs("value=-100", "value=bos").replace(
            "return torch.cat(inputs), torch.cat(targets)",
            "targets = torch.cat(targets)\n    return torch.cat(inputs), targets.masked_fill(targets == bos, -100)",
        )
    ),
    "You took every target that is `bos` for padding. A document may contain that token: go by the place, not by the value.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    _pairs("(1, missing), value=bos", "(1, missing), value=0"),
    "You padded the inputs, or began them, with 0. BOS may have another number.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    cell(
        _pairs("(1, missing), value=bos", "(1 + missing, 0), value=bos").replace(
            "(0, missing), value=-100", "(missing, 0), value=-100"
        )
    ),
    "You padded at the front. A document is cut from its start, so the padding goes at the end.",
    see=_TEACHER,
)

_JOINED = """
def pairs(documents, T, bos):
    text = torch.cat([F.pad(document, (1, 0), value=bos) for document in documents])
    missing = -(len(text) - 1) % T
    inputs = F.pad(text[:-1], (0, missing), value=bos).reshape(-1, T)
    return inputs, F.pad(text[1:], (0, missing), value=-100).reshape(-1, T)
"""
wrong(
    "ch11.pairs",
    cell(_JOINED),
    "You joined the documents with BOS between them before cutting: windows then hold two documents, and BOS becomes a target.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    cell(
        "def pairs(documents, T, bos):\n"
        "    inputs = torch.cat([F.pad(document[:-1], (1, 0), value=bos) for document in documents])\n"
        "    targets = torch.cat(documents)\n"
        "    missing = -len(targets) % T\n"
        "    return F.pad(inputs, (0, missing), value=bos).reshape(-1, T), F.pad(targets, (0, missing), value=-100).reshape(-1, T)"
    ),
    "You joined the shifted documents before cutting them into windows, so that a window can hold the end of one and the start of another.",
    see=_TEACHER,
)
wrong(
    "ch11.pairs",
    cell(
        "def pairs(documents, T, bos):\n"
        "    inputs, targets = [], []\n"
        "    for document in documents:\n"
        "        for start in range(0, len(document), max(T - 1, 1)):\n"
        "            window = document[start : start + max(T - 1, 1)]\n"
        "            inputs.append(F.pad(window[: T - 1], (1, 0), value=bos)[:T])\n"
        "            inputs[-1] = F.pad(inputs[-1], (0, T - len(inputs[-1])), value=bos)\n"
        "            targets.append(F.pad(window, (0, T - len(window)), value=-100))\n"
        "    return torch.stack(inputs), torch.stack(targets)"
    ),
    "Each of your windows starts with BOS and has room for T − 1 tokens only. BOS comes once, before the first token of a document.",
    see=_TEACHER,
)


wrong(
    "ch11.pairs",
    _pairs(
        "    missing =",
        "    document = document[1:] if document[0] == bos and len(document) > 1 else document\n        missing =",
    ),
    "You dropped a first token that is `bos`. It is a token of the document, and a target like the others.",
    see="the-text-is-its-own-teacher",
)

# ---------------------------------------------------------------- ch11.perplexity


@right("ch11.perplexity")
def by_hand(logits, targets):
    counts = targets != -100
    logs = logits[counts].double().log_softmax(-1)
    return float(torch.exp(-logs[torch.arange(len(logs)), targets[counts]].mean()))


_PPL = """
def ppl(logits, targets):
    V = logits.shape[-1]
    nats = F.cross_entropy(logits.double().reshape(-1, V), targets.reshape(-1), reduction="none")
    nats = nats[targets.reshape(-1) != -100]
    return float(nats.mean().exp())
"""


def _ppl(old, new):
    assert old in _PPL, old
    return cell(_PPL.replace(old, new))


wrong(
    "ch11.perplexity",
    _ppl("nats.mean().exp()", "nats.exp().mean()"),
    "You averaged exponentials. Average the losses first: it is the geometric mean of the probabilities that counts.",
    see="perplexity",
)
wrong("ch11.perplexity", _ppl("nats.mean().exp()", "nats.mean()"), "This is the loss, not its exponential.", see="perplexity")
wrong(
    "ch11.perplexity",
    _ppl("nats.mean().exp()", "2 ** nats.mean()"),
    "You raised 2 to a loss in nats. Nats go with e, bits with 2.",
    see="perplexity",
)
wrong(
    "ch11.perplexity",
    _ppl("nats.mean().exp()", "1 / (-nats).exp().mean()"),
    "You took one over the mean probability. The mean of the logarithms is another mean.",
    see="perplexity",
)
wrong(
    "ch11.perplexity",
    _ppl("    nats = nats[targets.reshape(-1) != -100]\n", ""),
    "Padding counts in your mean as if it had been guessed with certainty.",
    see="sum-or-mean",
)
wrong(
    "ch11.perplexity",
    _ppl("nats.mean().exp()", "nats.sum().exp()"),
    "You took the sum of the losses. Perplexity is about the mean token.",
    see="perplexity",
)
wrong(
    "ch11.perplexity",
    _ppl("float(nats.mean().exp())", "min(float(nats.mean().exp()), float(V))"),
    "You cut perplexity off at V. It has no upper end.",
    see="perplexity",
)
wrong(
    "ch11.perplexity",
    cell(
        "def ppl(logits, targets):\n"
        "    counts = targets != -100\n"
        "    powers = logits[counts].double().exp()\n"
        "    p = powers.gather(-1, targets[counts][:, None])[:, 0] / powers.sum(-1)\n"
        "    return float((-p.log()).mean().exp())"
    ),
    "Your exponentials overflow at large logits. Take the logarithm of the softmax in one step.",
    see="perplexity",
)

wrong(
    "ch11.perplexity",
    _ppl("logits.double()", "logits"),
    "You computed in the precision of the logits. In float32, e to a loss of 89 is infinite already.",
    see="perplexity",
)
wrong(
    "ch11.perplexity",
    cell(
        "def ppl(logits, targets):\n"
        "    counts = targets != -100\n"
        "    p = logits[counts].double().softmax(-1).gather(-1, targets[counts][:, None])\n"
        "    return float((-(p + 1e-9).log()).mean().exp())"
    ),
    "You added a little to each probability. That hides how sure and wrong a model is; take log-probabilities instead.",
    see="perplexity",
)
wrong(
    "ch11.perplexity",
    cell(
        "def ppl(logits, targets):\n"
        "    counts = targets != -100\n"
        "    logs = logits.double().log_softmax(-1).gather(-1, targets.where(counts, 0)[..., None])[..., 0]\n"
        "    return float((-logs.where(counts, 0).sum(-1) / counts.sum(-1)).mean().exp())"
    ),
    "You averaged the means of the rows. A position of a short row then weighs more than one of a long row.",
    see="sum-or-mean",
)


wrong(
    "ch11.perplexity",
    cell(
        """
def ppl(logits, targets):
    counts = targets != -100
    logs = logits.double().log_softmax(-1).clamp_min(-700).gather(-1, targets.clamp_min(0)[..., None])[..., 0]
    return float((-logs[counts]).mean().exp())
"""
    ),
    "You cut off the loss of a single token. Only the mean is at most 600; one loss may be larger.",
    see="perplexity",
)

# ---------------------------------------------------------------- ch11.leaks


@right("ch11.leaks")
def with_windows(learned, held, n):
    marks = torch.zeros(len(held), dtype=torch.bool)
    if min(len(learned), len(held)) < n:
        return marks
    same = (held.unfold(0, n, 1)[:, None] == learned.unfold(0, n, 1)[None]).all(-1).any(-1)
    for shift in range(n):
        marks[shift : shift + len(same)] |= same
    return marks


_LEAKS = """
def leaks(learned, held, n):
    text, judged = learned.tolist(), held.tolist()
    known = {tuple(text[i : i + n]) for i in range(len(text) - n + 1)}
    marks = torch.zeros(len(judged), dtype=torch.bool)
    for i in range(len(judged) - n + 1):
        if tuple(judged[i : i + n]) in known:
            marks[i : i + n] = True
    return marks
"""


def _leaks(old, new):
    assert old in _LEAKS, old
    return cell(_LEAKS.replace(old, new))


_COMPARE = "what-to-compare-with"
wrong(
    "ch11.leaks",
    _leaks("marks[i : i + n] = True", "marks[i] = True"),
    "You mark where a known run starts, not all its tokens.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    _leaks("range(len(judged) - n + 1)", "range(0, len(judged) - n + 1, n)"),
    "You cut the held-out text into runs side by side. A run may start at any token.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    _leaks("range(len(text) - n + 1)", "range(0, len(text) - n + 1, n)"),
    "You cut the training text into runs side by side. A run may start at any token.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    _leaks("range(len(judged) - n + 1)", "range(len(judged) - n)"),
    "You miss the last run of the held-out text.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    _leaks("range(len(text) - n + 1)", "range(len(text) - n)"),
    "You miss the last run of the training text.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    cell("def leaks(learned, held, n):\n    return torch.isin(held, learned)"),
    "You ask of each token whether it occurs. Ask it of runs of n tokens.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    cell(_leaks("range(len(judged) - n + 1)", "range(len(judged))").replace("range(len(text) - n + 1)", "range(len(text))")),
    "Your runs at the end of the texts are shorter than n. They do not count.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    cell(
        _LEAKS.replace("known = {tuple(text[i : i + n])", "known = {frozenset(text[i : i + n])").replace(
            "if tuple(judged", "if frozenset(judged"
        )
    ),
    "Your runs have no order. The same tokens in another order are another run.",
    see=_COMPARE,
)

wrong(
    "ch11.leaks",
    _leaks("return marks", "return torch.isin(held, held[marks])"),
    "You mark a token wherever it occurs, once it leaked somewhere. Mark the places of the runs only.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    cell(
        "def leaks(learned, held, n):\n"
        "    text, judged = bytes(learned.tolist()), bytes(held.tolist())\n"
        "    marks = torch.zeros(len(judged), dtype=torch.bool)\n"
        "    for i in range(len(judged) - n + 1):\n"
        "        if judged[i : i + n] in text:\n"
        "            marks[i : i + n] = True\n"
        "    return marks"
    ),
    "You turn tokens into bytes. The id of a token may be larger than 255.",
    see=_COMPARE,
)
wrong(
    "ch11.leaks",
    _leaks("marks[i : i + n] = True", "marks[i : i + n + 1] = True"),
    "You mark one token too many after each known run.",
    see=_COMPARE,
)


wrong(
    "ch11.leaks",
    cell(
        """
def leaks(learned, held, n):
    def key(run):
        return "".join(map(str, run))

    text, judged = learned.tolist(), held.tolist()
    known = {key(text[i : i + n]) for i in range(len(text) - n + 1)}
    marks = torch.zeros(len(judged), dtype=torch.bool)
    for i in range(len(judged) - n + 1):
        if key(judged[i : i + n]) in known:
            marks[i : i + n] = True
    return marks
"""
    ),
    "You write the ids of a run one after the other without a gap: 1, 12 and 11, 2 are both 112.",
    see="what-to-compare-with",
)
wrong(
    "ch11.leaks",
    cell(
        """
def leaks(learned, held, n):
    text, judged, first = learned.tolist(), held.tolist(), min(n, 6)
    known = {tuple(text[i : i + first]) for i in range(len(text) - n + 1)}
    marks = torch.zeros(len(judged), dtype=torch.bool)
    for i in range(len(judged) - n + 1):
        if tuple(judged[i : i + first]) in known:
            marks[i : i + n] = True
    return marks
"""
    ),
    "You compare the first tokens of a run only. All n of them must be the same.",
    see="what-to-compare-with",
)

_SHORT = "Pieces shorter than n are only compared with runs of n tokens, so they match nothing."
equivalent("ch11.leaks", "`known = {tuple(text[i:i + n]) for i in range(len(text) + 1)}`", _SHORT)
equivalent("ch11.leaks", "`for i in range(len(judged) - n + 2):`", _SHORT)
equivalent("ch11.leaks", "`known = {tuple(text[i:i + n]) for i in range(len(text) - n + 2)}`", _SHORT)
equivalent("ch11.leaks", "`known = {tuple(text[i:i + n]) for i in range(len(text) + n + 1)}`", _SHORT)
equivalent("ch11.leaks", "`for i in range(len(judged) + 1):`", _SHORT)
equivalent("ch11.leaks", "`for i in range(len(judged) + n + 1):`", _SHORT)

# ---------------------------------------------------------------- ch11.prediction

wrong(
    "ch11.prediction", 12.0, "More than 8 bits for a byte is worse than a uniform guess.", see="an-experiment-a-gpt-reads-austen"
)
wrong("ch11.prediction", 0.0, "0 bits would be certain knowledge of every byte.", see="an-experiment-a-gpt-reads-austen")

# ---------------------------------------------------------------- ch11.weights


@right("ch11.weights")
def a_list(targets, micro):
    parts = [int((part != -100).sum()) for part in torch.split(targets, micro)]
    return [count / sum(parts) for count in parts]


@right("ch11.weights")
def one_part_after_another(targets, micro):
    real = (targets != -100).sum(dim=1).tolist()
    sums = [sum(real[start : start + micro]) for start in range(0, len(real), micro)]
    return torch.tensor([s / sum(real) for s in sums], dtype=torch.float64)


@wrong(
    "ch11.weights",
    "You gave each part the same weight. A part with more positions that count has to count more.",
    see="sum-or-mean",
)
def equal(targets, micro):
    n = len(targets.split(micro))
    return torch.full((n,), 1 / n, dtype=torch.float64)


@wrong("ch11.weights", "You weighted by rows. What counts are positions, and padding is none.", see="sum-or-mean")
def by_rows(targets, micro):
    return torch.tensor([len(part) / len(targets) for part in targets.split(micro)], dtype=torch.float64)


@wrong("ch11.weights", "Your tensor is float32: divided in float64, the weights keep all their digits.", see="sum-or-mean")
def in_float32(targets, micro):
    n = torch.stack([(part != -100).sum() for part in targets.split(micro)])
    return n / n.sum()


@wrong("ch11.weights", "These are the counts. They must be divided by their sum.", see="sum-or-mean")
def counts(targets, micro):
    return torch.stack([(part != -100).sum() for part in targets.split(micro)]).double()


@wrong(
    "ch11.weights", "You took token 0 for padding. It is a token like others; −100 marks what does not count.", see="sum-or-mean"
)
def zero_is_padding(targets, micro):
    n = torch.stack([((part != -100) & (part != 0)).sum() for part in targets.split(micro)]).double()
    return n / n.sum()


@wrong("ch11.weights", "You left out the last part if it has fewer rows than the others.", see="sum-or-mean")
def whole_parts_only(targets, micro):
    whole = max(len(targets) // micro, 1) * micro
    n = torch.stack([(part != -100).sum() for part in targets[:whole].split(micro)]).double()
    return n / n.sum()


@wrong(
    "ch11.weights",
    "You divided by all places of the batch, padding among them, so your weights do not add up to 1.",
    see="sum-or-mean",
)
def of_all_places(targets, micro):
    return torch.stack([(part != -100).sum() for part in targets.split(micro)]).double() / targets.numel()


@wrong(
    "ch11.weights",
    "You let a row end at its first −100. Places that do not count may come first, with others after them.",
    see="sum-or-mean",
)
def rows_end_at_the_first(targets, micro):
    n = torch.stack([(part != -100).cumprod(dim=1).sum() for part in targets.split(micro)]).double()
    return n / n.sum()


@wrong("ch11.weights", "`micro` is the number of rows in a part, not the number of parts.", see="sum-or-mean")
def micro_parts(targets, micro):
    n = torch.stack([(part != -100).sum() for part in targets.chunk(micro)]).double()
    return n / n.sum()


@wrong(
    "ch11.weights",
    "You compared the shares of positions that count in each part. The last part has fewer rows: compare numbers.",
    see="sum-or-mean",
)
def shares_of_parts(targets, micro):
    shares = torch.stack([(part != -100).double().mean() for part in targets.split(micro)])
    return shares / shares.sum()


# ---------------------------------------------------------------- ch11.loop


@right("ch11.loop")
def without_an_optimiser(E, W, batches, peak, warm, g_max):
    w, m, v, losses = [E.clone(), W.clone()], [0, 0], [0, 0], []
    for t, (inputs, targets) in enumerate(batches, start=1):
        for each in w:
            each.requires_grad_()
        parts = zip(inputs.split(3), targets.split(3), strict=True)
        sums = [F.cross_entropy(forward(*w, x).flatten(0, 1), y.flatten(), reduction="sum") for x, y in parts]  # noqa: F821
        loss = sum(sums) / (targets != -100).sum()
        g = torch.autograd.grad(loss, w)
        size = sum(each.square().sum() for each in g).sqrt()
        rate, factor = peak * min(1, t / warm), min(1.0, float(g_max / size))
        w = [each.detach() * (1 - 0.1 * rate) for each in w]
        for i in range(2):
            m[i] = 0.9 * m[i] + 0.1 * factor * g[i]
            v[i] = 0.95 * v[i] + 0.05 * (factor * g[i]) ** 2
            w[i] = w[i] - rate * (m[i] / (1 - 0.9**t)) / ((v[i] / (1 - 0.95**t)).sqrt() + 1e-8)
        losses.append(float(loss))
    return *w, losses


_LOOP = """
def train(E, W, batches, peak, warm, g_max):
    E, W = E.clone().requires_grad_(), W.clone().requires_grad_()
    optimiser = torch.optim.AdamW([E, W], betas=(0.9, 0.95), weight_decay=0.1)
    losses = []
    for t, (inputs, targets) in enumerate(batches, start=1):
        n, loss = (targets != -100).sum(), 0.0
        optimiser.zero_grad()
        for x, y in zip(inputs.split(4), targets.split(4), strict=True):
            part = F.cross_entropy(forward(E, W, x).flatten(0, 1), y.flatten(), reduction="sum") / n
            part.backward()
            loss += part.item()
        torch.nn.utils.clip_grad_norm_([E, W], g_max)
        for group in optimiser.param_groups:
            group["lr"] = peak * min(1, t / warm)
        optimiser.step()
        losses.append(loss)
    return E.detach(), W.detach(), losses
"""


def _loop(*changes):
    text = _LOOP
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return cell(text)


_STEPS = "the-first-steps-and-the-long-ones"
_CLIP = "        torch.nn.utils.clip_grad_norm_([E, W], g_max)\n"
_RATE = "peak * min(1, t / warm)"
wrong(
    "ch11.loop",
    _loop(
        ('reduction="sum") / n', 'reduction="sum") / max(int((y != -100).sum()), 1) / len(inputs.split(4))'),
    ),
    "You took the mean of the parts' means. A part with more positions that count has to count more.",
    see="sum-or-mean",
)
wrong(
    "ch11.loop",
    _loop(("n, loss = (targets != -100).sum(), 0.0", "n, loss = targets.numel(), 0.0")),
    "You divided by all places of the batch, padding among them.",
    see="sum-or-mean",
)
wrong(
    "ch11.loop",
    _loop(("        optimiser.zero_grad()\n", "")),
    "Your gradients are never set to zero: each step still has those of all steps before in it.",
    see=_STEPS,
)
wrong(
    "ch11.loop",
    _loop(
        ("        optimiser.zero_grad()\n", ""),
        ("            part.backward()", "            optimiser.zero_grad()\n            part.backward()"),
    ),
    "You set the gradients to zero before every part, so that only the last part is left when the step is taken.",
    see="sum-or-mean",
)
wrong("ch11.loop", _loop((_CLIP, "")), "You did not clip: the gradient may be longer than g_max.", see=_STEPS)
wrong(
    "ch11.loop",
    _loop((_CLIP, ""), ("            part.backward()\n", "            part.backward()\n    " + _CLIP)),
    "You clip after each part, while the gradients are still being added up. Clip the sum, once.",
    see=_STEPS,
)
wrong(
    "ch11.loop",
    _loop(("clip_grad_norm_([E, W], g_max)", "clip_grad_norm_([E], g_max)\n        torch.nn.utils.clip_grad_norm_([W], g_max)")),
    "You clip E and W each by itself. The gradient of all parameters is one vector, and it keeps its direction.",
    see=_STEPS,
)
wrong(
    "ch11.loop",
    _loop((_CLIP, "        torch.nn.utils.clip_grad_value_([E, W], g_max)\n")),
    "You clip the entries of the gradient. What is bounded is its length.",
    see=_STEPS,
)
wrong("ch11.loop", _loop((_RATE, "peak")), "There is no warmup: your first step already has the full rate.", see=_STEPS)
wrong(
    "ch11.loop",
    _loop((_RATE, "peak * min(1, (t - 1) / warm)")),
    "You count steps from 0, so that your first step has the rate 0. Step 1 has a share of 1 / warm.",
    see=_STEPS,
)
wrong(
    "ch11.loop",
    _loop(("torch.optim.AdamW(", "torch.optim.Adam(")),
    "That is Adam with a penalty in its gradient. AdamW takes the decay outside.",
    see=_STEPS,
)
wrong(
    "ch11.loop",
    _loop(
        ("    E, W = E.clone().requires_grad_(), W.clone().requires_grad_()", "    E, W = E.requires_grad_(), W.requires_grad_()")
    ),
    "You train the tensors that you were given. Work on copies: the caller still needs them as they were.",
    see=_STEPS,
)

wrong(
    "ch11.loop",
    _loop(
        (
            "    E, W = E.clone().requires_grad_(), W.clone().requires_grad_()",
            "    E, W = E.float().requires_grad_(), W.float().requires_grad_()",
        ),
        ("return E.detach(), W.detach()", "return E.detach().double(), W.detach().double()"),
    ),
    "You trained in float32. All is float64 here, and your digits end after the seventh.",
    see=_STEPS,
)

equivalent("ch11.loop", "`return (E.detach(), W, losses)`", "a tensor that wants a gradient has the same entries")
equivalent("ch11.loop", "`return (E, W.detach(), losses)`", "a tensor that wants a gradient has the same entries")
equivalent("ch11.loop", "`loss += part`", "a loss may be a tensor of one number")
equivalent("ch11.loop", "`n, loss = ((targets != -100).sum(), -0.0)`", "the same number")
equivalent(
    "ch11.loop", "`for x, y in zip(inputs.split(4), targets.split(4)…):`", "there are as many parts of inputs as of targets"
)

# ---------------------------------------------------------------- ch11.cheapest


@right("ch11.cheapest")
def by_halving(loss, E, A, B, alpha, beta):
    if not loss > E:
        raise ValueError("out of reach")

    def best(C):
        N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (C / 6) ** (beta / (alpha + beta))
        return N, C / 6 / N

    low, high = 0.0, 200.0
    for _ in range(300):
        middle = (low + high) / 2
        N, D = best(10**middle)
        low, high = (middle, high) if A / N**alpha + B / D**beta > loss - E else (low, middle)
    return 10**low, *best(10**low)


_CHEAPEST = """
def cheapest(loss, E, A, B, alpha, beta):
    if loss <= E:
        raise ValueError("out of reach")
    u = (loss - E) * beta / (alpha + beta)
    v = (loss - E) * alpha / (alpha + beta)
    N, D = (A / u) ** (1 / alpha), (B / v) ** (1 / beta)
    return 6 * N * D, N, D
"""


def _cheapest(*changes):
    text = _CHEAPEST
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return cell(text)


_SPEND = "how-to-spend-compute"
wrong(
    "ch11.cheapest",
    _cheapest(("* beta / (alpha + beta)", "/ 2"), ("* alpha / (alpha + beta)", "/ 2")),
    "You split the excess into halves. That is the balance only if alpha = beta.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("* beta /", "* gamma /"), ("* alpha /", "* beta /"), ("* gamma /", "* alpha /")),
    "Your shares are the wrong way round: the term with the larger exponent gets the smaller share.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("6 * N * D", "N * D")),
    "You forgot the 6 operations for each parameter and token.",
    see="what-a-training-costs",
)
wrong(
    "ch11.cheapest",
    _cheapest(("(loss - E) * beta", "loss * beta"), ("(loss - E) * alpha", "loss * alpha")),
    "You let the two terms make up the whole loss. E is there whatever you spend.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(('    if loss <= E:\n        raise ValueError("out of reach")\n', "")),
    "You give an answer where the law reaches no such loss.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("loss <= E", "loss < E")),
    "A loss of exactly E takes infinitely many parameters and tokens: it is out of reach too.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    cell(
        "def cheapest(loss, E, A, B, alpha, beta):\n"
        "    if loss <= E:\n"
        '        raise ValueError("out of reach")\n'
        "    N = ((A / 20**0 + B / 20**beta) / (loss - E)) ** (1 / alpha)\n"
        "    return 6 * N * 20 * N, N, 20 * N"
    ),
    "You took 20 tokens a parameter for granted. The law has a balance of its own.",
    see=_SPEND,
)

wrong(
    "ch11.cheapest",
    _cheapest(("loss <= E", "loss <= E + 0.05")),
    "You refuse a loss that is close to E. Every loss above E can be reached; it only costs more and more.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("** (1 / alpha), (B", "** (1 / beta), (B"), ("(B / v) ** (1 / beta)", "(B / v) ** (1 / alpha)")),
    "You exchanged the exponents: alpha belongs to the parameters, beta to the tokens.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("(B / v) ** (1 / beta)", "(B / v) ** (1 / alpha)")),
    "You took alpha for both terms. The tokens have an exponent of their own, beta.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("return 6 * N * D, N, D", "return N, D, 6 * N * D")),
    "Your numbers are in another order: the compute C comes first, then N and D.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(("return 6 * N * D, N, D", "return 6 * N * D, D, N")),
    "You exchanged N and D: the parameters come before the tokens.",
    see=_SPEND,
)
wrong(
    "ch11.cheapest",
    _cheapest(('raise ValueError("out of reach")', "return math.inf, math.inf, math.inf")),
    "You return infinite sizes for a loss out of reach. The task asks for a ValueError.",
    see=_SPEND,
)

# ---------------------------------------------------------------- ch11.flat

right(
    "ch11.flat",
    cell('k, alpha = sympy.symbols("k alpha", positive=True)\nfactor = sympy.cosh(alpha * sympy.log(k))'),
)

_SYMBOLS = 'k, alpha = sympy.symbols("k alpha", positive=True)\n'
wrong(
    "ch11.flat",
    cell(_SYMBOLS + "factor = k**alpha"),
    "This is what one term does. The other goes the opposite way.",
    see=_SPEND,
)
wrong(
    "ch11.flat",
    cell(_SYMBOLS + "factor = k**alpha + k**-alpha"),
    "At k = 1 nothing has changed, so the factor must be 1 there.",
    see=_SPEND,
)
wrong(
    "ch11.flat",
    cell(_SYMBOLS + "factor = (1 + k**-alpha) / 2"),
    "You kept the tokens as they were. At the same compute, more parameters see fewer tokens.",
    see=_SPEND,
)
wrong(
    "ch11.flat",
    cell(_SYMBOLS + "factor = (k**(2 * alpha) + k**-alpha) / 2"),
    "With k times the parameters the tokens are divided by k, not by k².",
    see=_SPEND,
)
wrong(
    "ch11.flat",
    cell(_SYMBOLS + "factor = (k**alpha + k**-alpha) / 2 - 1"),
    "This is by how much the excess grows. The factor is what it is multiplied by.",
    see=_SPEND,
)
wrong(
    "ch11.flat",
    cell(_SYMBOLS + "factor = (k**alpha - k**-alpha) / 2"),
    "The two terms add up; you subtracted one from the other.",
    see=_SPEND,
)

_NAMES = "Symbols are compared by their names; what they are assumed to be does not matter."
equivalent("ch11.flat", "`k, alpha = sympy.symbols('k alpha')`", _NAMES)
equivalent("ch11.flat", "`k, alpha = sympy.symbols('k alpha', positive=False)`", _NAMES)
