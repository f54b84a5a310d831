"""Right and wrong answers of chapter 3."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch03.rows


@right("ch03.rows")
def in_a_loop(ids, G, V):
    grad = torch.zeros(V, G.shape[-1], dtype=G.dtype)
    for i, row in zip(ids.reshape(-1).tolist(), G.reshape(-1, G.shape[-1])):
        grad[i] += row
    return grad


@right("ch03.rows")
def one_hot_product(ids, G, V):
    X = (ids.reshape(-1, 1) == torch.arange(V)).to(G.dtype)
    return X.T @ G.reshape(-1, G.shape[-1])


@right("ch03.rows")
def accumulating_put(ids, G, V):
    grad = torch.zeros(V, G.shape[-1], dtype=G.dtype)
    return grad.index_put((ids,), G, accumulate=True)


@right("ch03.rows")
def scatter(ids, G, V):
    flat = G.flatten(0, -2)
    return torch.zeros(V, flat.shape[1], dtype=G.dtype).scatter_add(0, ids.flatten()[:, None].expand_as(flat), flat)


@wrong("ch03.rows", "Where a token occurs twice, only its last place counts: the rows must be added up.", see="a-row-of-a-table")
def overwrites(ids, G, V):
    grad = G.new_zeros(V, G.shape[-1])
    for i, row in zip(ids.flatten().tolist(), G.flatten(0, -2)):
        grad[i] = row
    return grad


@wrong(
    "ch03.rows",
    "You averaged over the places of a token. A gradient adds up all the ways in which a number acts.",
    see="a-row-of-a-table",
)
def averages(ids, G, V):
    X = F.one_hot(ids.flatten(), V).to(G.dtype)
    return (X.T @ G.reshape(-1, G.shape[-1])) / X.sum(0)[:, None].clamp(min=1)


@wrong("ch03.rows", "The result must have V rows, also for tokens that do not occur.", see="a-row-of-a-table")
def as_many_rows_as_needed(ids, G, V):
    return G.new_zeros(int(ids.max()) + 1, G.shape[-1]).index_add(0, ids.flatten(), G.flatten(0, -2))


@wrong("ch03.rows", "The gradient has the dtype of G: yours is float32 whatever came in.", see="a-row-of-a-table")
def always_float32(ids, G, V):
    return torch.zeros(V, G.shape[-1]).index_add(0, ids.flatten(), G.flatten(0, -2).float())


@wrong("ch03.rows", "This is right for one line of tokens only: with a batch the ids have more axes.", see="a-row-of-a-table")
def one_line_only(ids, G, V):
    return G.new_zeros(V, G.shape[-1]).index_add(0, ids, G)


@wrong(
    "ch03.rows",
    "You returned a row for each place of the text, not for each token of the vocabulary: that is G itself, sorted.",
    see="a-row-of-a-table",
)
def sorted_rows(ids, G, V):
    return G.flatten(0, -2)[ids.flatten().argsort()]


@wrong("ch03.rows", "You let torch differentiate. Add up the rows of G yourself.", see="a-row-of-a-table")
def by_autograd(ids, G, V):
    with torch.enable_grad():
        E = torch.zeros(V, G.shape[-1], dtype=G.dtype, requires_grad=True)
        return torch.autograd.grad(E[ids], E, G)[0]


@wrong("ch03.rows", "The sign is wrong: this is a step of descent, minus the gradient.", see="a-row-of-a-table")
def a_step(ids, G, V):
    return -G.new_zeros(V, G.shape[-1]).index_add(0, ids.flatten(), G.flatten(0, -2))


@wrong("ch03.rows", "Ids count from 0: all your rows are shifted by one.", see="a-row-of-a-table")
def from_one(ids, G, V):
    return G.new_zeros(V, G.shape[-1]).index_add(0, (ids.flatten() + 1) % V, G.flatten(0, -2))


# ---------------------------------------------------------------- ch03.table

right("ch03.table", {"counts": [38_400_000, 204_800_000], "shares": [30.7, 2.9]})
right("ch03.table", {"counts": (38.4e6, 204.8e6), "shares": (30.72, 2.926)})
right(
    "ch03.table",
    cell("counts = [sympy.Integer(38_400_000), torch.tensor(204_800_000)]\nshares = torch.tensor([30.72, 2.926])"),
)

wrong(
    "ch03.table",
    {"counts": [38_400, 204_800], "shares": [30.7, 2.9]},
    "Your counts are in thousands. The question asks for the numbers of parameters.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.table",
    {"counts": [38_400_000, 204_800_000], "shares": [0.307, 0.029]},
    "Your shares are parts of 1. The question asks for percent.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.table",
    {"counts": [76_800_000, 409_600_000], "shares": [61.4, 5.9]},
    "You counted two tables, one for each end. The question asks for one.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.table",
    {"counts": [38_400_000, 204_800_000], "shares": [23.5, 2.8]},
    "You added the table to a number that has it already: N is everything.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.table",
    {"counts": [38_400_000, 204_800_000], "shares": [44.3, 3.0]},
    "You compared the table with the rest of the model. A share is a part of the whole.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.table",
    {"counts": [50_768, 54_096], "shares": [0.0, 0.0]},
    "You added the sizes. A table has rows times columns.",
    see="how-much-of-a-model-is-its-table",
)

# ---------------------------------------------------------------- ch03.width

right("ch03.width", cell('V, L, s = sympy.symbols("V L s", positive=True)\nwidth = (V / (6 * L)) * (1 / s - 1)'))
right(
    "ch03.width",
    cell(
        'V, L, s, d = sympy.symbols("V L s d", positive=True)\nwidth = sympy.solve(2 * V * d - s * (2 * V * d + 12 * L * d**2), d)[0]'
    ),
)

wrong(
    "ch03.width",
    cell('V, L, s = sympy.symbols("V L s", positive=True)\nwidth = V * (1 - s) / (12 * L * s)'),
    "You counted one table. This model has two.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.width",
    cell('V, L, s = sympy.symbols("V L s", positive=True)\nwidth = V / (6 * L * s)'),
    "You set the tables over the blocks equal to s. The share is of the whole, tables included.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.width",
    cell('V, L, s = sympy.symbols("V L s", positive=True)\nwidth = V * s / (6 * L * (1 - s))'),
    "Yours grows with s, but a larger share of tables belongs to a narrower model.",
    see="how-much-of-a-model-is-its-table",
)
wrong(
    "ch03.width",
    cell('V, L, s = sympy.symbols("V L s", positive=True)\nwidth = sympy.sqrt(V * (1 - s) / (6 * L * s))'),
    "One factor of the width cancels: the tables grow with d, the blocks with its square.",
    see="how-much-of-a-model-is-its-table",
)

# ---------------------------------------------------------------- ch03.complete


@right("ch03.complete")
def by_cosine_similarity(pairs, c, E, exclude=True):
    unit = F.normalize(E, dim=-1)
    x, y = (torch.tensor([pair[i] for pair in pairs]) for i in (0, 1))
    target = unit[c] + (unit[y] - unit[x]).mean(0)
    scores = F.cosine_similarity(E, target, dim=-1)
    banned = {c, *x.tolist(), *y.tolist()} if exclude else set()
    return max((w for w in range(len(E)) if w not in banned), key=lambda w: float(scores[w]))


@right("ch03.complete")
def means_first(pairs, c, E, exclude=True):
    rows = E / E.norm(dim=1, keepdim=True)
    pairs = torch.tensor(pairs)
    direction = rows[pairs[:, 1]].mean(0) - rows[pairs[:, 0]].mean(0)
    order = (rows @ (rows[c] + direction)).argsort(descending=True).tolist()
    out = {c, *pairs.flatten().tolist()}
    return next(w for w in order if not exclude or w not in out)


@wrong(
    "ch03.complete",
    "Your direction points backwards: it should lead from the first word of a pair to the second.",
    see="directions",
)
def turned_around(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    direction = torch.stack([rows[x] - rows[y] for x, y in pairs]).mean(0)
    scores = rows @ (rows[c] + direction)
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong(
    "ch03.complete",
    "The rows in your sum keep their own lengths. Bring all rows to length 1 first.",
    see="directions",
)
def raw_sum(pairs, c, E, exclude=True):
    target = E[c] + torch.stack([E[y] - E[x] for x, y in pairs]).mean(0)
    scores = F.normalize(E, dim=1) @ target
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong(
    "ch03.complete",
    "You rank by inner products with raw rows, so long rows win. For the cosine, divide by their lengths.",
    see="directions",
)
def raw_candidates(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    target = rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).mean(0)
    scores = E @ target
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong("ch03.complete", "You exclude c alone. The words of the pairs are inputs, too.", see="directions")
def excludes_c_only(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    scores = rows @ (rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).mean(0))
    if exclude:
        scores[c] = -torch.inf
    return int(scores.argmax())


@wrong("ch03.complete", "Whatever exclude says, your function leaves the inputs out.", see="directions")
def always_excludes(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    scores = rows @ (rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).mean(0))
    scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong("ch03.complete", "Whatever exclude says, your function lets the inputs come out.", see="directions")
def never_excludes(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    return int((rows @ (rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).mean(0))).argmax())


@wrong("ch03.complete", "Only the first pair gives your direction. Average over all of them.", see="directions")
def first_pair_only(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    x, y = pairs[0]
    scores = rows @ (rows[c] + rows[y] - rows[x])
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong("ch03.complete", "You added the differences up. With several pairs the direction is their mean.", see="directions")
def sum_of_pairs(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    scores = rows @ (rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).sum(0))
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong("ch03.complete", "You ignore the pairs and return the nearest neighbour of c, which is the null model.", see="directions")
def nearest_to_c(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    scores = rows @ rows[c]
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@wrong(
    "ch03.complete",
    "You rank by distance from rows of any length. At length 1 that would rank as the cosine does, which the task asks for.",
    see="directions",
)
def nearest_by_distance(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    target = rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).mean(0)
    scores = -(E - target).norm(dim=1)
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return int(scores.argmax())


@right("ch03.complete")
def a_tensor(pairs, c, E, exclude=True):
    rows = F.normalize(E, dim=1)
    scores = rows @ (rows[c] + torch.stack([rows[y] - rows[x] for x, y in pairs]).mean(0))
    if exclude:
        scores[[c, *(w for p in pairs for w in p)]] = -torch.inf
    return scores.argmax()


# ---------------------------------------------------------------- ch03.prediction

wrong(
    "ch03.prediction",
    5,
    "A share is a number from 0 to 1; five percent is 0.05.",
    see="an-experiment-how-many-analogies-come-out",
)
wrong("ch03.prediction", -0.1, "A share cannot be negative.", see="an-experiment-how-many-analogies-come-out")
wrong(
    "ch03.prediction",
    "few",
    "A prediction that an experiment can refute is a number.",
    see="an-experiment-how-many-analogies-come-out",
)

# ---------------------------------------------------------------- ch03.stack


@right("ch03.stack")
def by_hand(x, W, add):
    hs = [x]
    for W_l in W:
        f = torch.tanh(hs[-1] @ W_l)
        hs.append(hs[-1] + f if add else f)
    slope = torch.ones_like(x)
    for W_l, h in zip(W.flip(0), hs[-2::-1]):
        back = slope * (1 - torch.tanh(h @ W_l) ** 2) @ W_l.T
        slope = slope + back if add else back
    h = hs[-1]
    return h, (h * x).sum(-1) / (h.norm(dim=-1) * x.norm(dim=-1)), slope


@right("ch03.stack")
def with_backward(x, W, add):
    start = torch.tensor(x.tolist(), dtype=x.dtype, requires_grad=True)
    h = 1 * start
    for l in range(len(W)):
        h = add * h + torch.tanh(torch.einsum("td,de->te", h, W[l]))
    h.sum().backward()
    out = h.detach()
    return out, torch.stack([F.cosine_similarity(a, b, dim=0) for a, b in zip(out, x)]), start.grad


@wrong(
    "ch03.stack",
    "You add the input again in every layer. Each layer adds to the stream as the layer before left it.",
    see="a-stream-that-is-added-to",
)
def adds_the_input(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = start + torch.tanh(h @ W_l) if add else torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong("ch03.stack", "Your stack adds even when `add` is false.", see="a-stream-that-is-added-to")
def always_adds(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = h + torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong("ch03.stack", "Your stack replaces even when `add` is true.", see="a-stream-that-is-added-to")
def always_replaces(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong(
    "ch03.stack", "Each layer has a matrix of its own: you used the first one in all of them.", see="a-stream-that-is-added-to"
)
def one_matrix(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for _ in W:
        h = h + torch.tanh(h @ W[0]) if add else torch.tanh(h @ W[0])
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong("ch03.stack", "You forgot tanh: your layers are linear.", see="a-stream-that-is-added-to")
def linear(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = h + h @ W_l if add else h @ W_l
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong(
    "ch03.stack",
    "You put the tanh around the whole sum, so that every layer bends the stream and no term passes through unchanged.",
    see="a-stream-that-is-added-to",
)
def bends_the_sum(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = torch.tanh(h + h @ W_l) if add else torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong("ch03.stack", "Your cosine compares columns. Compare each row with the same row of x.", see="a-stream-that-is-added-to")
def cosine_of_columns(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = h + torch.tanh(h @ W_l) if add else torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=0), slope


@wrong("ch03.stack", "You return the inner products. The cosine divides by both lengths.", see="a-stream-that-is-added-to")
def inner_products(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = h + torch.tanh(h @ W_l) if add else torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), (h.detach() * x).sum(-1), slope


@wrong("ch03.stack", "You differentiate the mean of the entries. The task asks for their sum.", see="a-stream-that-is-added-to")
def gradient_of_the_mean(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = h + torch.tanh(h @ W_l) if add else torch.tanh(h @ W_l)
    (slope,) = torch.autograd.grad(h.mean(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


@wrong(
    "ch03.stack",
    "You multiply by the transposed matrices. A row vector goes on the left: h W.",
    see="a-stream-that-is-added-to",
)
def transposed(x, W, add):
    start = x.detach().clone().requires_grad_(True)
    h = start
    for W_l in W:
        h = h + torch.tanh(h @ W_l.T) if add else torch.tanh(h @ W_l.T)
    (slope,) = torch.autograd.grad(h.sum(), start)
    return h.detach(), F.cosine_similarity(h.detach(), x, dim=-1), slope


# ---------------------------------------------------------------- ch03.is_static


@right("ch03.is_static")
def all_at_once(f, T, V):
    texts = [torch.randint(V, (T,)) for _ in range(80)]
    ids, vectors = torch.cat(texts), torch.cat([f(text) for text in texts])
    for token in range(V):
        mine = vectors[ids == token]
        if len(mine) and float((mine.amax(0) - mine.amin(0)).max()) > 1e-5:
            return False
    return True


@right("ch03.is_static")
def against_texts_of_one_token(f, T, V):
    rows = [f(torch.full((T,), i)) for i in range(V)]
    table = torch.stack([row[0] for row in rows])
    if any(not torch.allclose(row, row[:1].expand_as(row), atol=1e-5, rtol=0) for row in rows):
        return False
    for _ in range(80):
        ids = torch.randint(V, (T,))
        if not torch.allclose(f(ids), table[ids], atol=1e-5, rtol=0):
            return False
    return True


@wrong(
    "ch03.is_static",
    "You compare a token with itself at the same place only, so that an effect of the place goes unseen.",
    see="one-word-in-two-sentences",
)
def same_place_only(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        for t, (i, row) in enumerate(zip(ids.tolist(), f(ids))):
            if (rows.setdefault((i, t), row) - row).abs().max() > 1e-5:
                return False
    return True


@wrong(
    "ch03.is_static",
    "You compare equal tokens within one text only. What the whole text does to all of them goes unseen.",
    see="one-word-in-two-sentences",
)
def within_one_text(f, T, V):
    for _ in range(12):
        rows, ids = {}, torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if (rows.setdefault(i, row) - row).abs().max() > 1e-5:
                return False
    return True


@wrong("ch03.is_static", "You look at the first place only.", see="one-word-in-two-sentences")
def first_place(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        if (rows.setdefault(int(ids[0]), f(ids)[0]) - f(ids)[0]).abs().max() > 1e-5:
            return False
    return True


@wrong(
    "ch03.is_static",
    "Your texts repeat a token only where V < T, and then all are the same text: what repeats or other texts do goes unseen.",
    see="one-word-in-two-sentences",
)
def without_repeats(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randperm(max(T, V))[:T] % V if V >= T else torch.arange(T) % V
        for i, row in zip(ids.tolist(), f(ids)):
            if (rows.setdefault(i, row) - row).abs().max() > 1e-5:
                return False
    return True


@wrong(
    "ch03.is_static",
    "You demand that numbers are equal to the last digit. Differences below 0.00001 are rounding.",
    see="one-word-in-two-sentences",
)
def to_the_last_digit(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if not torch.equal(rows.setdefault(i, row), row):
                return False
    return True


@wrong(
    "ch03.is_static", "Your tolerance is so wide that small effects pass. It should be 0.00001.", see="one-word-in-two-sentences"
)
def too_tolerant(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if (rows.setdefault(i, row) - row).abs().max() > 0.05:
                return False
    return True


@wrong(
    "ch03.is_static",
    "Two tokens may share a vector; that does not make it depend on the context.",
    see="one-word-in-two-sentences",
)
def wants_different_rows(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if (rows.setdefault(i, row) - row).abs().max() > 1e-5:
                return False
    return len({tuple(round(x, 4) for x in row.tolist()) for row in rows.values()}) == len(rows)


@wrong("ch03.is_static", "You compare lengths. Two vectors of one length can still differ.", see="one-word-in-two-sentences")
def compares_lengths(f, T, V):
    lengths = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if (lengths.setdefault(i, row.norm()) - row.norm()).abs() > 1e-5:
                return False
    return True


@wrong(
    "ch03.is_static",
    "You try too few texts: what shows in one text out of ten needs many more than five.",
    see="one-word-in-two-sentences",
)
def five_texts(f, T, V):
    rows = {}
    for _ in range(5):
        ids = torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if (rows.setdefault(i, row) - row).abs().max() > 1e-5:
                return False
    return True


@wrong("ch03.is_static", "Your answer is the wrong way round: True means static.", see="one-word-in-two-sentences")
def answers_the_contrary(f, T, V):
    rows = {}
    for _ in range(12):
        ids = torch.randint(V, (T,))
        for i, row in zip(ids.tolist(), f(ids)):
            if (rows.setdefault(i, row) - row).abs().max() > 1e-5:
                return True
    return False


# ---------------------------------------------------------------- changes that make no difference

first, second = "100 * counts[0] / 125000000.0, 1", "100 * counts[1] / 7000000000.0, 1"
for change in ("100 * counts[0] / 125000000.0, 2", "100 * counts[0] / 124999999.0, 1", "100 * counts[0] / 125000001.0, 1"):
    equivalent("ch03.table", f"`shares = [round({change}), round({second})]`", "the same to one decimal of a percent")
for change in (
    "100 * counts[1] / 7000000000.0, 2",
    "100 * counts[1] / 7000000001.0, 1",
    "100 * counts[1] / 6999999999.0, 1",
    "99 * counts[1] / 7000000000.0, 1",
):
    equivalent("ch03.table", f"`shares = [round({first}), round({change})]`", "the same to one decimal of a percent")
equivalent(
    "ch03.table", f"`shares = [round({first}), round(100 * counts[-1] / 7000000000.0, 1)]`", "the last of two is the second"
)
equivalent("ch03.width", "`V, L, s = sympy.symbols('V L s'…)`", "the names tell the letters, not what is assumed of them")
equivalent("ch03.complete", "`rows = E / E.norm(dim=-1, keepdim=True)`", "of two axes the last is axis 1")
equivalent("ch03.complete", "`return scores.argmax()`", "a tensor without axes is a whole number, too")
for change in ("h.detach(), F.cosine_similarity(h, x, dim=-1), slope", "h, F.cosine_similarity(h.detach(), x, dim=-1), slope"):
    equivalent("ch03.stack", f"`return ({change})`", "the values are asked for, whatever autograd knows of them")
for change in ("x.clone()", "x.detach()"):
    equivalent(
        "ch03.stack", f"`start = {change}.requires_grad_(True)`", "a tensor of its own for autograd, and nothing changes in place"
    )
for change in ("x", "x, dim=1"):
    equivalent(
        "ch03.stack", f"`return (h.detach(), F.cosine_similarity(h.detach(), {change}), slope)`", "of two axes the last is axis 1"
    )
for number in (99, 101, 200):
    equivalent("ch03.is_static", f"`for _ in range({number}):`", "so many texts show it as well, and 200 calls are allowed")
equivalent("ch03.is_static", "`for i, row in zip(ids.tolist(), f(ids)…):`", "f gives T vectors")
for change in ("> 2e-05", ">= 1e-05"):
    equivalent(
        "ch03.is_static", f"`if (rows.setdefault(i, row) - row).abs().max() {change}:`", "a bound between the two of the task"
    )
