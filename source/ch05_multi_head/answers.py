"""Other right answers and named wrong answers of the exercises of ch05."""

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch05.split


def split(width_16, width_8, fitting):
    return {"width_16": width_16, "width_8": width_8, "fitting": fitting}


right("ch05.split", split(64.0, 128.0, (8, 12, 16, 24)))
right(
    "ch05.split",
    cell("width_16 = sympy.Integer(64)\nwidth_8 = torch.tensor(128)\nfitting = torch.tensor([8, 12, 16, 24])"),
)
wrong(
    "ch05.split",
    split(128, 64, [8, 12, 16, 24]),
    "The two widths have changed places: more heads are narrower heads.",
    see="several-heads",
)
wrong(
    "ch05.split",
    split(1024, 1024, [8, 12, 16, 24]),
    "That is the width of the model. Side by side, all heads together have it.",
    see="several-heads",
)
wrong(
    "ch05.split",
    split(64, 128, [8, 16]),
    "The number of heads need not be a power of two. It must divide the width.",
    see="several-heads",
)
wrong(
    "ch05.split",
    split(64, 128, [8, 12, 14, 16, 24]),
    "One of these leaves a remainder, so the heads side by side would not be as wide as the model.",
    see="several-heads",
)

# ---------------------------------------------------------------- ch05.multi_head


@right("ch05.multi_head")
def one_head_after_another(x, W_q, W_k, W_v, W_o, H, allowed=None):
    d_head, left = divmod(W_q.shape[1], H)
    if left:
        raise ValueError("the heads do not fit")
    heads = []
    for h in range(H):
        mine = slice(h * d_head, (h + 1) * d_head)
        scores = (x @ W_q[:, mine]) @ (x @ W_k[:, mine]).transpose(-1, -2) / d_head**0.5
        if allowed is not None:
            scores = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
        heads.append(torch.softmax(scores, -1) @ (x @ W_v[:, mine]))
    return torch.cat(heads, dim=-1) @ W_o


@right("ch05.multi_head")
def torchs_attention(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    return torch.einsum("...htd,hdm->...tm", mixed, W_o.unflatten(0, (H, -1)))


@wrong(
    "ch05.multi_head",
    "You cut into heads by one view. It cuts the list of tokens, and each head gets some tokens instead of some columns.",
    see="split-then-turn",
)
def one_view(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    lead, T = x.shape[:-2], x.shape[-2]
    query, key, value = ((x @ W).reshape(*lead, H, T, -1) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) @ W_o


@wrong(
    "ch05.multi_head",
    "The heads were joined without turning the axes back, so each row mixes tokens of one head.",
    see="split-then-turn",
)
def joins_without_a_turn(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).reshape(x.shape) @ W_o


@wrong("ch05.multi_head", "Head h took every H-th column. The columns of a head lie next to each other.", see="split-then-turn")
def interleaved_heads(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (-1, H)).movedim(-1, -3) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).movedim(-3, -1).flatten(-2) @ W_o


@wrong(
    "ch05.multi_head",
    "The scores were divided by the root of the model's width. A score is a sum of d_head products.",
    see="what-goes-wrong-in-practice",
)
def scaled_by_the_width_of_the_model(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / x.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) @ W_o


@wrong(
    "ch05.multi_head",
    "The heads are side by side, but nothing mixes them: the output projection is missing.",
    see="several-heads",
)
def no_output_projection(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) + 0 * W_o[0]


@wrong(
    "ch05.multi_head",
    "Your mask is always the causal one. Use the one that is given, and none if none is given.",
    see="several-heads",
)
def always_causal(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).tril()
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) @ W_o


@wrong(
    "ch05.multi_head", "Your mask lets through what it should hide: True means that a query may read a key.", see="several-heads"
)
def true_hides(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    least = torch.finfo(x.dtype).min
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(allowed, least)
    return (scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) @ W_o


@wrong(
    "ch05.multi_head",
    "With heads that do not fit, columns are dropped without a word. Ask whether H divides the width first.",
    see="what-goes-wrong-in-practice",
)
def rounds_down(x, W_q, W_k, W_v, W_o, H, allowed=None):
    d_head = x.shape[-1] // H
    query, key, value = ((x @ W)[..., : H * d_head].unflatten(-1, (H, d_head)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / max(d_head, 1) ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) @ W_o[: H * d_head]


@wrong(
    "ch05.multi_head",
    "One leading axis, the batch, is taken for granted. Count the axes from the end, and any number of them may come first.",
    see="split-then-turn",
)
def one_batch_axis(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    B, T, d_model = x.shape
    query, key, value = ((x @ W).view(B, T, H, -1).transpose(1, 2) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(B, T, d_model) @ W_o


@wrong("ch05.multi_head", "The result is right in float32 and has lost half of the digits of float64.", see="several-heads")
def forces_float32(x, W_q, W_k, W_v, W_o, H, allowed=None):
    if x.shape[-1] % H:
        raise ValueError("the heads do not fit")
    query, key, value = ((x @ W).float().unflatten(-1, (H, -1)).transpose(-3, -2) for W in (W_q, W_k, W_v))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    return ((scores.softmax(dim=-1) @ value).transpose(-3, -2).flatten(-2) @ W_o.float()).to(x.dtype)


# ---------------------------------------------------------------- ch05.parts


@right("ch05.parts")
def one_einsum(weights, value, W_o):
    H = weights.shape[1]
    d_head = value.shape[2] // H
    return torch.einsum("bhts,bshd,hdm->bhtm", weights, value.unflatten(2, (H, d_head)), W_o.unflatten(0, (H, d_head)))


@right("ch05.parts")
def zeros_for_the_others(weights, value, W_o):
    B, H, T, _ = weights.shape
    d = value.shape[2] // H
    parts = []
    for h in range(H):
        whole = torch.zeros(B, T, H * d, dtype=value.dtype)
        whole[:, :, h * d : (h + 1) * d] = weights[:, h] @ value[:, :, h * d : (h + 1) * d]
        parts.append(whole @ W_o)
    return torch.stack(parts, dim=1)


@right("ch05.parts")
def in_numpy(weights, value, W_o):
    weights, value, W_o = (x.detach().numpy() for x in (weights, value, W_o))
    B, H, _, S = weights.shape
    split = value.reshape(B, S, H, -1).transpose(0, 2, 1, 3)
    return torch.from_numpy(weights @ split @ W_o.reshape(H, -1, W_o.shape[1]))


@wrong("ch05.parts", "Each head met its columns of W_o. A head's output is a row: it meets rows.", see="heads-add-up")
def columns_of_the_output_projection(weights, value, W_o):
    B, H, T, S = weights.shape
    split = value.reshape(B, S, H, -1).transpose(1, 2)
    return (weights @ split) @ W_o.T.reshape(H, -1, W_o.shape[1])


@wrong("ch05.parts", "The values were split by one view, which cuts the list of tokens into pieces.", see="split-then-turn")
def view_without_a_turn(weights, value, W_o):
    B, H, T, S = weights.shape
    return (weights @ value.reshape(B, H, S, -1)) @ W_o.reshape(H, -1, W_o.shape[1])


@wrong("ch05.parts", "Head h took every H-th column. Its columns lie next to each other.", see="split-then-turn")
def interleaved_columns(weights, value, W_o):
    B, H, T, S = weights.shape
    split = value.reshape(B, S, -1, H).permute(0, 3, 1, 2)
    return (weights @ split) @ W_o.reshape(H, -1, W_o.shape[1])


@wrong("ch05.parts", "The parts were divided by the number of heads. Heads are added, not averaged.", see="heads-add-up")
def averages_the_heads(weights, value, W_o):
    B, H, T, S = weights.shape
    split = value.reshape(B, S, H, -1).transpose(1, 2)
    return (weights @ split) @ W_o.reshape(H, -1, W_o.shape[1]) / H


@wrong("ch05.parts", "You returned the sum over the heads. The task asks what each of them adds.", see="heads-add-up")
def the_sum(weights, value, W_o):
    B, H, T, S = weights.shape
    split = value.reshape(B, S, H, -1).transpose(1, 2)
    return (weights @ split).transpose(1, 2).flatten(2) @ W_o


@wrong("ch05.parts", "A softmax was taken of weights that are a softmax already.", see="several-heads")
def softmax_again(weights, value, W_o):
    B, H, T, S = weights.shape
    split = value.reshape(B, S, H, -1).transpose(1, 2)
    return (weights.softmax(dim=-1) @ split) @ W_o.reshape(H, -1, W_o.shape[1])


@wrong("ch05.parts", "Every head was multiplied by the block of the first head. Each has rows of its own.", see="heads-add-up")
def first_block_for_all(weights, value, W_o):
    B, H, T, S = weights.shape
    split = value.reshape(B, S, H, -1).transpose(1, 2)
    return (weights @ split) @ W_o[: W_o.shape[0] // H]


# ---------------------------------------------------------------- ch05.cost

right("ch05.cost", cell('crossover = sympy.sympify("2*d")\nratio = sympy.sympify("H*T**2/(8*d**2)")'))

_SYMBOLS = 'd, T, H = sympy.symbols("d T H", positive=True)\n'
wrong(
    "ch05.cost",
    cell(_SYMBOLS + "crossover = 4 * d\nratio = H * T**2 / (8 * d**2)"),
    "You counted the scores only. The averages take as many multiplications again.",
    see="what-heads-cost",
)
wrong(
    "ch05.cost",
    cell(_SYMBOLS + "crossover = d / 2\nratio = H * T**2 / (8 * d**2)"),
    "Your crossover is upside down: solve 4 T d² = 2 T² d for T once more.",
    see="what-heads-cost",
)
wrong(
    "ch05.cost",
    cell(_SYMBOLS + "crossover = 3 * d / 2\nratio = H * T**2 / (6 * d**2)"),
    "The output projection is missing: there are four matrices.",
    see="what-heads-cost",
)
wrong(
    "ch05.cost",
    cell(_SYMBOLS + "crossover = 2 * d\nratio = T**2 / (8 * d**2)"),
    "Each head has a map of its own.",
    see="what-heads-cost",
)
wrong(
    "ch05.cost",
    cell(_SYMBOLS + "crossover = 2 * d\nratio = H * T**2 / (4 * d**2)"),
    "That is a ratio of counts. In bytes a weight takes half as much as a parameter.",
    see="what-heads-cost",
)

# ---------------------------------------------------------------- ch05.induction


@right("ch05.induction")
def by_a_dict(tokens):
    if not tokens:
        return None
    after = {tokens[i]: tokens[i + 1] for i in range(len(tokens) - 1)}
    return after.get(tokens[-1])


@right("ch05.induction")
def by_all_places(tokens):
    places = [j for j, token in enumerate(tokens[:-1]) if token == tokens[-1]]
    return tokens[places[-1] + 1] if places else None


@wrong("ch05.induction", "You took the first match. The rule takes the last earlier one.", see="the-induction-pattern")
def first_match(tokens):
    for j in range(len(tokens) - 1):
        if tokens[j] == tokens[-1]:
            return tokens[j + 1]
    return None


@wrong(
    "ch05.induction",
    "You returned what comes before the match. What follows it is the prediction.",
    see="the-induction-pattern",
)
def what_came_before(tokens):
    for j in range(len(tokens) - 2, 0, -1):
        if tokens[j] == tokens[-1]:
            return tokens[j - 1]
    return None


@wrong(
    "ch05.induction",
    "A token may be 0 or an empty text, which count as false: ask whether the list is empty, not whether the token is.",
    see="the-induction-pattern",
)
def falsy_tokens(tokens):
    last = tokens[-1] if tokens else None
    if not last:
        return None
    for j in range(len(tokens) - 2, -1, -1):
        if tokens[j] == last:
            return tokens[j + 1]
    return None


@wrong("ch05.induction", "You returned the matching token itself, which you already have.", see="the-induction-pattern")
def the_match_itself(tokens):
    for j in range(len(tokens) - 2, -1, -1):
        if tokens[j] == tokens[-1]:
            return tokens[j]
    return None


@wrong(
    "ch05.induction",
    "The place just before the last one was left out, but a token can come twice in a row.",
    see="the-induction-pattern",
)
def skips_the_neighbour(tokens):
    for j in range(len(tokens) - 3, -1, -1):
        if tokens[j] == tokens[-1]:
            return tokens[j + 1]
    return None


@wrong(
    "ch05.induction",
    "Without a match you return the last token. Nothing is known then, so return None.",
    see="the-induction-pattern",
)
def falls_back_to_the_last(tokens):
    for j in range(len(tokens) - 2, -1, -1):
        if tokens[j] == tokens[-1]:
            return tokens[j + 1]
    return tokens[-1] if tokens else None


@wrong(
    "ch05.induction", "You predict what followed most often. The rule asks for what followed last.", see="the-induction-pattern"
)
def the_most_frequent(tokens):
    following = [b for a, b in zip(tokens[:-1], tokens[1:], strict=True) if a == tokens[-1]]
    return max(following, key=following.count) if following else None


@wrong("ch05.induction", "Your function changed the list: work on a copy, or only look.", see="the-induction-pattern")
def takes_the_last_away(tokens):
    if not tokens:
        return None
    now = tokens.pop()
    for j in range(len(tokens) - 1, -1, -1):
        if tokens[j] == now:
            return tokens[j + 1] if j + 1 < len(tokens) else now
    return None


# ---------------------------------------------------------------- ch05.score


@right("ch05.score")
def by_comparison(weights, ids):
    T = len(ids)
    same = (ids[:, None] == ids[None, :]) & torch.ones(T, T, dtype=torch.bool).tril(-1)
    rows = same.any(dim=1).nonzero().flatten()
    if len(rows) == 0:
        return weights.new_zeros(weights.shape[0])
    last = (same * torch.arange(1, T + 1)).amax(dim=1)[rows]  # j + 1 already
    return weights[:, rows, last].mean(dim=1)


@right("ch05.score")
def one_sum(weights, ids):
    total, count = torch.zeros(weights.shape[0], dtype=weights.dtype), 0
    for i in range(len(ids)):
        for j in reversed(range(i)):
            if ids[j] == ids[i]:
                total, count = total + weights[:, i, j + 1], count + 1
                break
    return total / max(count, 1)


@wrong("ch05.score", "That is the attention to the same token, not to what followed it.", see="the-induction-pattern")
def the_token_itself(weights, ids):
    last, rows, columns = {}, [], []
    for i, token in enumerate(ids.tolist()):
        if token in last:
            rows.append(i)
            columns.append(last[token])
        last[token] = i
    return weights[:, rows, columns].mean(dim=-1) if rows else torch.zeros(weights.shape[0], dtype=weights.dtype)


@wrong(
    "ch05.score", "You looked at the first earlier place of the token. The rule takes the last one.", see="the-induction-pattern"
)
def the_first_place(weights, ids):
    first, rows, columns = {}, [], []
    for i, token in enumerate(ids.tolist()):
        if token in first:
            rows.append(i)
            columns.append(first[token] + 1)
        first.setdefault(token, i)
    return weights[:, rows, columns].mean(dim=-1) if rows else torch.zeros(weights.shape[0], dtype=weights.dtype)


@wrong(
    "ch05.score",
    "You divided by all places. Those whose token is new say nothing, and do not count.",
    see="the-induction-pattern",
)
def divides_by_all(weights, ids):
    last, total = {}, torch.zeros(weights.shape[0], dtype=weights.dtype)
    for i, token in enumerate(ids.tolist()):
        if token in last:
            total = total + weights[:, i, last[token] + 1]
        last[token] = i
    return total / len(ids)


@wrong(
    "ch05.score",
    "Rows and columns have changed places: a row of weights belongs to the token that reads.",
    see="the-induction-pattern",
)
def transposed(weights, ids):
    last, rows, columns = {}, [], []
    for i, token in enumerate(ids.tolist()):
        if token in last:
            rows.append(i)
            columns.append(last[token] + 1)
        last[token] = i
    return weights[:, columns, rows].mean(dim=-1) if rows else torch.zeros(weights.shape[0], dtype=weights.dtype)


@wrong(
    "ch05.score", "Without any repetition you return NaN, the mean of nothing. Return zeros then.", see="the-induction-pattern"
)
def nan_without_repetition(weights, ids):
    last, rows, columns = {}, [], []
    for i, token in enumerate(ids.tolist()):
        if token in last:
            rows.append(i)
            columns.append(last[token] + 1)
        last[token] = i
    return weights[:, rows, columns].mean(dim=-1)


@wrong("ch05.score", "You returned the sum. The score is the mean over the places.", see="the-induction-pattern")
def a_sum(weights, ids):
    last, total = {}, torch.zeros(weights.shape[0], dtype=weights.dtype)
    for i, token in enumerate(ids.tolist()):
        if token in last:
            total = total + weights[:, i, last[token] + 1]
        last[token] = i
    return total


@wrong(
    "ch05.score",
    "You left out tokens that come twice in a row. Such a token looks at itself, and that counts.",
    see="the-induction-pattern",
)
def leaves_out_neighbours(weights, ids):
    last, rows, columns = {}, [], []
    for i, token in enumerate(ids.tolist()):
        if token in last and last[token] + 1 < i:
            rows.append(i)
            columns.append(last[token] + 1)
        last[token] = i
    return weights[:, rows, columns].mean(dim=-1) if rows else torch.zeros(weights.shape[0], dtype=weights.dtype)


# ---------------------------------------------------------------- ch05.guess

right("ch05.guess", "50 to 90")
right("ch05.guess", "Less than 50")
wrong("ch05.guess", "97", "Set one of the three texts, word for word.", see="remove-a-head")
wrong("ch05.guess", "more than 50", "Two of the three texts say that: choose one of them.", see="remove-a-head")

# ---------------------------------------------------------------- ch05.rank


@right("ch05.rank")
def by_the_rise(loss, n_layers, H):
    intact = loss(torch.ones(n_layers, H, dtype=torch.bool))
    rises = []
    for k in range(n_layers * H):
        keep = torch.ones(n_layers * H, dtype=torch.bool)
        keep[k] = False
        rises.append((intact - loss(keep.view(n_layers, H)), k // H, k % H))
    return [(layer, head) for _, layer, head in sorted(rises)]


@right("ch05.rank")
def removes_and_puts_back(loss, n_layers, H):
    keep, found = torch.ones(n_layers, H, dtype=torch.bool), []
    for layer in range(n_layers):
        for head in range(H):
            keep[layer, head] = False
            found.append((loss(keep.clone()), (layer, head)))
            keep[layer, head] = True
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [head for _, head in found]


@wrong("ch05.rank", "You never put a head back: the second call misses two, the third three.", see="remove-a-head")
def never_puts_back(loss, n_layers, H):
    keep, rise, before = torch.ones(n_layers, H, dtype=torch.bool), {}, loss(torch.ones(n_layers, H, dtype=torch.bool))
    for layer in range(n_layers):
        for head in range(H):
            keep[layer, head] = False
            now = loss(keep.clone())
            rise[layer, head] = now - before
            before = now
    return sorted(rise, key=lambda head: -rise[head])


@wrong("ch05.rank", "Your order begins with the head that is needed least.", see="remove-a-head")
def least_needed_first(loss, n_layers, H):
    rise = {}
    for layer in range(n_layers):
        for head in range(H):
            keep = torch.ones(n_layers, H, dtype=torch.bool)
            keep[layer, head] = False
            rise[layer, head] = loss(keep)
    return sorted(rise, key=lambda head: rise[head])


@wrong("ch05.rank", "You kept one head and removed all others. Remove one at a time and keep the others.", see="remove-a-head")
def keeps_only_one(loss, n_layers, H):
    alone = {}
    for layer in range(n_layers):
        for head in range(H):
            keep = torch.zeros(n_layers, H, dtype=torch.bool)
            keep[layer, head] = True
            alone[layer, head] = loss(keep)
    return sorted(alone, key=lambda head: alone[head])


@wrong("ch05.rank", "A head whose removal lowers the loss is not needed. The sign of the change counts.", see="remove-a-head")
def size_of_the_change(loss, n_layers, H):
    intact, rise = loss(torch.ones(n_layers, H, dtype=torch.bool)), {}
    for layer in range(n_layers):
        for head in range(H):
            keep = torch.ones(n_layers, H, dtype=torch.bool)
            keep[layer, head] = False
            rise[layer, head] = abs(loss(keep) - intact)
    return sorted(rise, key=lambda head: -rise[head])


@wrong("ch05.rank", "Your tuples are (head, layer). They should be (layer, head).", see="remove-a-head")
def head_before_layer(loss, n_layers, H):
    rise = {}
    for layer in range(n_layers):
        for head in range(H):
            keep = torch.ones(n_layers, H, dtype=torch.bool)
            keep[layer, head] = False
            rise[head, layer] = loss(keep)
    return sorted(rise, key=lambda pair: (-rise[pair], pair[1], pair[0]))


@wrong("ch05.rank", "Equal rises come in the wrong order: the lower layer first, then the lower head.", see="remove-a-head")
def ties_from_the_end(loss, n_layers, H):
    rise = {}
    for layer in range(n_layers):
        for head in range(H):
            keep = torch.ones(n_layers, H, dtype=torch.bool)
            keep[layer, head] = False
            rise[layer, head] = loss(keep)
    return sorted(rise, key=lambda head: (rise[head], head), reverse=True)


@wrong(
    "ch05.rank",
    "You ranked within each layer, and put the layers one after the other. All heads make one list.",
    see="remove-a-head",
)
def layer_by_layer(loss, n_layers, H):
    order = []
    for layer in range(n_layers):
        rise = []
        for head in range(H):
            keep = torch.ones(n_layers, H, dtype=torch.bool)
            keep[layer, head] = False
            rise.append(loss(keep))
        order += [(layer, head) for head in sorted(range(H), key=lambda head, rise=rise: -rise[head])]
    return order


@wrong("ch05.rank", "You rounded the losses. Two heads whose rises differ by less then count as equal.", see="remove-a-head")
def rounds_the_losses(loss, n_layers, H):
    rise = {}
    for layer in range(n_layers):
        for head in range(H):
            keep = torch.ones(n_layers, H, dtype=torch.bool)
            keep[layer, head] = False
            rise[layer, head] = round(loss(keep), 1)
    return sorted(rise, key=lambda head: -rise[head])


# ---------------------------------------------------------------- changes that make no difference

equivalent("ch05.multi_head", "`raise ValueError(f'{H} heads do not divide…`", "the words of the error are free")
equivalent("ch05.parts", "`split = value.reshape(B, S, H, -1).transpose(1, -2)`", "of four axes the last but one is axis 2")
for axis in (0, -1):
    equivalent("ch05.parts", f"`blocks = W_o.reshape(H, -1, W_o.shape[{axis}])`", "W_o is square")
equivalent("ch05.cost", "`d, T, H = sympy.symbols('d T H'…)`", "the names tell the letters, not what is assumed of them")
equivalent("ch05.score", "`return weights[:, rows, columns].mean(dim=1)`", "of two axes the last is axis 1")
