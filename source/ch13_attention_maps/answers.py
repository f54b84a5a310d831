"""Other right answers and named wrong answers of the exercises of ch13."""

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch13.maps


def maps(per_text, shape, seen):
    return {"per_text": per_text, "shape": shape, "seen": seen}


right("ch13.maps", maps(1024.0, [32, 2, 32, 512, 512], 131328))
right(
    "ch13.maps",
    cell("per_text = torch.tensor(1024)\nshape = torch.zeros(32, 2, 32, 512, 512, device='meta').shape\nseen = 131_328"),
)
wrong(
    "ch13.maps",
    maps(32, (32, 2, 32, 512, 512), 131328),
    "That is one map for each layer, or for each head. Every head of every layer has matrices of its own.",
    see="one-map",
)
wrong(
    "ch13.maps",
    maps(1024, (32, 2, 32, 512, 512), 130816),
    "Your triangle has no diagonal: a token sees itself as well.",
    see="one-map",
)
wrong(
    "ch13.maps",
    maps(1024, (32, 2, 32, 512, 512), 262144),
    "Those are all pairs. The mask hides the later tokens from each query.",
    see="one-map",
)
wrong(
    "ch13.maps",
    maps(2048, (2, 32, 32, 512, 512), 131328),
    "The maps of both texts were counted, and the axes are not in the order that was asked for.",
    see="one-map",
)

wrong(
    "ch13.maps",
    maps(2048, (32, 2, 32, 512, 512), 131328),
    "The maps of both texts were counted, and the question is about one.",
    see="one-map",
)
wrong(
    "ch13.maps",
    maps(1024, (2, 32, 32, 512, 512), 131328),
    "A batch often comes first in a shape. Here another order was asked for.",
    see="one-map",
)
wrong(
    "ch13.maps",
    maps(1024, (32, 2, 32, 512, 512), 131072),
    "That is half of the square, which cuts through the diagonal. Each token sees itself in full.",
    see="one-map",
)
wrong(
    "ch13.maps",
    maps(1024, (32, 2, 32, 512, 512), 1024 * 131328),
    "You counted the weights of all maps of a text. The question is about one map.",
    see="one-map",
)

equivalent("ch13.maps", "`seen = 512 * 513 / 2`", "a whole number as a float is the same number")

# ---------------------------------------------------------------- ch13.sink


@right("ch13.sink")
def by_mean(weights, start):
    T = weights.shape[-1]
    if not start < T:
        raise ValueError("no query is left")
    return weights[..., start:, 0].mean(-1), float((1 / torch.arange(start + 1, T + 1, dtype=torch.float64)).mean())


@right("ch13.sink")
def one_query_after_another(weights, start):
    T, total, even = weights.shape[-1], 0, 0.0
    if T - start <= 0:
        raise ValueError(f"start is {start}, but there are {T} tokens")
    for i in range(start, T):
        total = total + weights[..., i, 0]
        even += 1 / (i + 1)
    return total / (T - start), even / (T - start)


@wrong(
    "ch13.sink",
    "You made the rows sum to one first. What went to no token is then handed back to the tokens, and nobody sees that it was gone.",
    see="the-first-token",
)
def rows_made_whole(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    whole = weights / weights.sum(dim=-1, keepdim=True)
    return whole[..., start:, 0].mean(dim=-1), sum(1 / (i + 1) for i in range(start, T)) / (T - start)


@wrong(
    "ch13.sink", "All queries are averaged, the first ones too, which have hardly anywhere else to look.", see="the-first-token"
)
def start_forgotten(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    return weights[..., 0].mean(dim=-1), sum(1 / (i + 1) for i in range(T)) / T


@wrong("ch13.sink", "Even attention is 1/T in no row but the last: a query shares among the tokens that it sees.", see="one-map")
def even_over_all_tokens(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    return weights[..., start:, 0].mean(dim=-1), 1 / T


@wrong("ch13.sink", "You read a row. What one token gets from every query is a column.", see="one-map")
def row_for_column(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    return weights[..., 0, start:].mean(dim=-1), sum(1 / (i + 1) for i in range(start, T)) / (T - start)


@wrong(
    "ch13.sink", "Without a query there is no mean: a start that leaves none is an error and not a number.", see="the-first-token"
)
def no_query_no_error(weights, start):
    T = weights.shape[-1]
    even = sum(1 / (i + 1) for i in range(start, T)) / max(T - start, 1)
    return weights[..., start:, 0].sum(dim=-1) / max(T - start, 1), even


@wrong("ch13.sink", "Query i sees i + 1 tokens, itself among them. Your even share is that of i tokens.", see="one-map")
def even_without_itself(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    return weights[..., start:, 0].mean(dim=-1), sum(1 / max(i, 1) for i in range(start, T)) / (T - start)


@right("ch13.sink")
def evenly_in_float32(weights, start):
    T = weights.shape[-1]
    counted = torch.arange(T) >= start
    if not counted.any():
        raise ValueError("no query is left")
    return weights[..., counted, 0].mean(dim=-1), (1 / torch.arange(1, T + 1))[counted].mean().item()


@wrong("ch13.sink", "The queries from start on were asked for. Yours begin one later.", see="the-first-token")
def start_left_out(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    n = max(T - start - 1, 1)
    return weights[..., start + 1 :, 0].sum(dim=-1) / n, sum(1 / (i + 1) for i in range(start + 1, T)) / n


@wrong(
    "ch13.sink",
    "You took the mean over the leading axes as well. Each map has its own first column, and the mean of many is nobody's.",
    see="an-average-is-nobodys-map",
)
def mean_of_all_maps(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    return weights[..., start:, 0].mean(), sum(1 / (i + 1) for i in range(start, T)) / (T - start)


@wrong(
    "ch13.sink",
    "One over the mean length of the rows is not the mean of one over their lengths: short rows give the first token more.",
    see="the-first-token",
)
def one_over_the_mean_length(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    return weights[..., start:, 0].mean(dim=-1), (T - start) / sum(i + 1 for i in range(start, T))


@wrong(
    "ch13.sink",
    "Your even share spreads what is left in each row. What to compare with spreads a weight of 1, whatever the map does.",
    see="the-first-token",
)
def evenly_what_the_row_has(weights, start):
    T = weights.shape[-1]
    if start >= T:
        raise ValueError("no query is left")
    shares = weights.sum(dim=-1) / torch.arange(1, T + 1)
    return weights[..., start:, 0].mean(dim=-1), float(shares[..., start:].mean())


equivalent("ch13.sink", "`T = weights.shape[-2]`", "a map has as many rows as columns")

# ---------------------------------------------------------------- ch13.distance


@right("ch13.distance")
def reversed_rows(weights, queries):
    D = min(queries) - 1
    return torch.stack([weights[..., i, i - D : i + 1].flip(-1) for i in queries]).mean(dim=0)


@right("ch13.distance")
def diagonals_cut(weights, queries):
    kept = weights[..., queries, :]
    columns = torch.tensor(queries)[:, None] - torch.arange(min(queries))
    return torch.gather(kept, -1, columns.expand(*kept.shape[:-1], -1)).sum(dim=-2) / len(queries)


@wrong(
    "ch13.distance",
    "You averaged whole diagonals, over all queries that have such a distance. Ask every distance of the queries that were given.",
    see="position-and-distance",
)
def all_queries(weights, queries):
    return torch.stack([weights.diagonal(-r, -2, -1).mean(dim=-1) for r in range(min(queries))], dim=-1)


@wrong(
    "ch13.distance",
    "At your last distance one of the queries reads token 0, and the sink is in the profile.",
    see="position-and-distance",
)
def first_token_read(weights, queries):
    at = torch.tensor(queries)
    return torch.stack([weights[..., at, at - r].mean(dim=-1) for r in range(min(queries) + 1)], dim=-1)


@wrong(
    "ch13.distance",
    "Your D fits the query with the most keys before it. At such a distance others have no key, or only token 0.",
    see="position-and-distance",
)
def as_far_as_the_last_query(weights, queries):
    found = []
    for r in range(max(queries)):
        there = torch.tensor([i for i in queries if i - r >= 1])
        found.append(weights[..., there, there - r].mean(dim=-1))
    return torch.stack(found, dim=-1)


@wrong(
    "ch13.distance",
    "The curve was made to sum to one. A mean weight is a weight: what went to the first token, or farther back than D, is missing on purpose.",
    see="position-and-distance",
)
def made_to_sum_to_one(weights, queries):
    at = torch.tensor(queries)
    found = torch.stack([weights[..., at, at - r].mean(dim=-1) for r in range(min(queries))], dim=-1)
    return found / found.sum(dim=-1, keepdim=True)


@wrong(
    "ch13.distance",
    "Place r of your result is a position in the text and not a distance from the query.",
    see="position-and-distance",
)
def positions_for_distances(weights, queries):
    return weights[..., queries, :].mean(dim=-2)[..., 1 : min(queries) + 1]


@wrong("ch13.distance", "Your curve begins with the farthest key. Place 0 is the query itself.", see="position-and-distance")
def farthest_first(weights, queries):
    D = min(queries) - 1
    return torch.stack([weights[..., i, i - D : i + 1] for i in queries]).mean(dim=0)


@wrong("ch13.distance", "Distance 0 is missing: a token sees itself, and that weight counts, too.", see="position-and-distance")
def without_itself(weights, queries):
    at = torch.tensor(queries)
    found = [weights[..., at, at - r].mean(dim=-1) for r in range(1, min(queries))]
    return torch.stack(found, dim=-1) if found else weights[..., 0, :0]


@wrong(
    "ch13.distance",
    "You averaged over every query from the smallest on. The list may have gaps.",
    see="position-and-distance",
)
def all_from_the_smallest_on(weights, queries):
    at = torch.arange(min(queries), weights.shape[-1])
    return torch.stack([weights[..., at, at - r].mean(dim=-1) for r in range(min(queries))], dim=-1)


@wrong(
    "ch13.distance",
    "The leading axes were averaged as well. Each map has a curve of its own.",
    see="an-average-is-nobodys-map",
)
def one_curve_for_all(weights, queries):
    at = torch.tensor(queries)
    return torch.stack([weights[..., at, at - r].mean() for r in range(min(queries))])


@wrong("ch13.distance", "You sorted the list that you were given, and its owner will be surprised.", see="position-and-distance")
def sorts_the_list(weights, queries):
    queries.sort()
    D = queries[0] - 1
    return torch.stack([weights[..., i, i - D : i + 1].flip(-1) for i in queries]).mean(dim=0)


@wrong(
    "ch13.distance",
    "D was taken from the first query of the list. They come in any order.",
    see="position-and-distance",
)
def first_of_the_list(weights, queries):
    D = queries[0] - 1
    return torch.stack([weights[..., i, i - D : i + 1].flip(-1) for i in queries]).mean(dim=0)


# ---------------------------------------------------------------- ch13.null


@right("ch13.null")
def in_tensors(scores, null, level):
    best = null.amax(dim=(1, 2))
    p = (1 + (best[:, None, None] >= scores).sum(dim=0)).double() / (len(null) + 1)
    order = sorted(range(scores.numel()), key=lambda k: (-float(scores.flatten()[k]), k))
    places = [(k // scores.shape[1], k % scores.shape[1]) for k in order]
    return [(i, j, float(p[i, j])) for i, j in places if p[i, j] <= level]


@wrong(
    "ch13.null",
    "Each head was compared with its own draws. You took the best of many heads: compare it with the best of many.",
    see="a-head-with-a-name",
)
def own_draws(scores, null, level):
    p = (1 + (null >= scores).sum(dim=0)) / (len(null) + 1)
    kept = [(i, j, float(p[i, j])) for i in range(p.shape[0]) for j in range(p.shape[1]) if p[i, j] <= level]
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "All draws of all heads went into one heap. What counts is the best head of each draw.",
    see="a-head-with-a-name",
)
def one_heap(scores, null, level):
    heap, kept = null.flatten(), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((heap >= scores[i, j]).sum())) / (len(heap) + 1)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "The pattern that you asked for is one of those that could have come. Without it your p can be zero, which no finite number of draws shows.",
    see="a-head-with-a-name",
)
def without_the_real_one(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = int((best >= scores[i, j]).sum()) / len(best)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "A draw that is as good as the real score speaks against it as much as a better one. You leave it out.",
    see="a-head-with-a-name",
)
def only_better_ones(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best > scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "Your maximum is over the draws of one head. It should be over the heads of one draw.",
    see="a-head-with-a-name",
)
def maximum_over_draws(scores, null, level):
    best, kept = null.amax(dim=0).flatten(), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong("ch13.null", "The heads are in the order of the model. Put the highest score first.", see="a-head-with-a-name")
def unsorted(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    return kept


@wrong("ch13.null", "A head whose p is the level itself belongs to the list.", see="a-head-with-a-name")
def below_the_level(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p < level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "You compared each head with the best of its own layer only. You looked for heads in all layers.",
    see="a-head-with-a-name",
)
def best_of_a_layer(scores, null, level):
    best, kept = null.amax(dim=2), []  # (R, L)
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best[:, i] >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "You sorted by p. Heads that beat all draws share one p, whatever their scores.",
    see="a-head-with-a-name",
)
def sorted_by_p(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: row[2])


@wrong(
    "ch13.null",
    "Where scores are equal, your order is that of the model turned round.",
    see="a-head-with-a-name",
)
def ties_turned_round(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: (float(scores[row[0], row[1]]), row), reverse=True)


@wrong(
    "ch13.null",
    "Heads with equal scores are one entry to you, and only the last of them is in the list.",
    see="a-head-with-a-name",
)
def one_head_for_each_score(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
            kept += [(i, j, p)] if p <= level else []
    kept = {float(scores[i, j]): (i, j, p) for i, j, p in kept}
    return [kept[score] for score in sorted(kept, reverse=True)]


@wrong(
    "ch13.null",
    "You took the p of each head's own draws times the number of heads. That bound ignores what the heads have in common, and needs many draws.",
    see="a-head-with-a-name",
)
def times_the_number_of_heads(scores, null, level):
    kept = []
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = min(1.0, scores.numel() * (1 + int((null[:, i, j] >= scores[i, j]).sum())) / (len(null) + 1))
            kept += [(i, j, p)] if p <= level else []
    return sorted(kept, key=lambda row: -float(scores[row[0], row[1]]))


@wrong(
    "ch13.null",
    "You overwrote the scores that you were given, to find the next best. Whoever called has lost them.",
    see="a-head-with-a-name",
)
def best_crossed_out(scores, null, level):
    best, kept = null.flatten(1).amax(dim=1), []
    for _ in range(scores.numel()):
        i, j = divmod(int(scores.argmax()), scores.shape[1])
        p = (1 + int((best >= scores[i, j]).sum())) / (len(best) + 1)
        kept += [(i, j, p)] if p <= level else []
        scores[i, j] = -torch.inf
    return kept


equivalent(
    "ch13.null",
    "`best, (L, H) = (null.flatten(1).amax(dim=-1), scores.shape)`",
    "flattened from axis 1 on, the draws have two axes, and the last is the second",
)

equivalent(
    "ch13.null",
    "`p = (1 + (best >= scores[layer, head]).sum()) / (len(best) + 1)`",
    "a tensor of one number counts as a number",
)

# ---------------------------------------------------------------- ch13.effect


@right("ch13.effect")
def term_by_term(weights, value, W_o):
    found = []
    for j in range(len(weights)):
        others = torch.cat([value[:j], value[j + 1 :]]).mean(dim=0)
        found.append((weights[j] * ((others - value[j]) @ W_o)).square().sum().sqrt())
    return torch.stack(found)


@right("ch13.effect")
def from_the_mean_of_all(weights, value, W_o):
    T = len(value)
    return torch.linalg.norm((value - value.mean(dim=0)) @ W_o, dim=1) * weights * T / (T - 1)


@wrong(
    "ch13.effect",
    "The mean that you put in is that of all values, the replaced one among them.",
    see="what-a-weight-brings",
)
def mean_of_all(weights, value, W_o):
    return weights * ((value - value.mean(dim=0)) @ W_o).norm(dim=-1)


@wrong(
    "ch13.effect",
    "That is what token j brings, its removal by zeros. Here something else takes its place.",
    see="what-a-weight-brings",
)
def by_zeros(weights, value, W_o):
    return weights * (value @ W_o).norm(dim=-1)


@wrong(
    "ch13.effect",
    "You measured in the width of the head. The stream comes after the output projection, which turns and stretches.",
    see="what-a-weight-brings",
)
def before_the_projection(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return weights * (others - value).norm(dim=-1)


@wrong(
    "ch13.effect",
    "You measured how far apart the values are. How much of that arrives depends on the weight.",
    see="what-a-weight-brings",
)
def without_the_weight(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return ((others - value) @ W_o).norm(dim=-1)


@wrong(
    "ch13.effect",
    "That is the sum of the sizes of all coordinates. A length is the root of a sum of squares.",
    see="what-a-weight-brings",
)
def sum_of_sizes(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return weights * ((others - value) @ W_o).abs().sum(dim=-1)


@wrong(
    "ch13.effect",
    "You turned the output projection round. Its rows belong to the head, its columns to the stream.",
    see="what-a-weight-brings",
)
def projection_turned_round(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return weights * ((others - value) @ W_o.mT).norm(dim=-1)


@wrong(
    "ch13.effect",
    "The other values were averaged by their weights. Their plain mean was asked for.",
    see="what-a-weight-brings",
)
def mean_by_weight(weights, value, W_o):
    total, mass = weights @ value, weights.sum()
    others = (total - weights[:, None] * value) / (mass - weights)[:, None]
    return weights * ((others - value) @ W_o).norm(dim=-1)


@wrong("ch13.effect", "That is the square of a length.", see="what-a-weight-brings")
def squares(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return (weights[:, None] * (others - value) @ W_o).square().sum(dim=-1)


@wrong(
    "ch13.effect",
    "You compared two lengths. A vector can turn without becoming longer: ask for the length of the difference.",
    see="what-a-weight-brings",
)
def difference_of_lengths(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    before = weights @ value @ W_o
    return ((before + weights[:, None] * (others - value) @ W_o).norm(dim=-1) - before.norm()).abs()


@wrong(
    "ch13.effect",
    "Each replaced value stayed replaced when the next one's turn came. Only one is to change at a time.",
    see="what-a-weight-brings",
)
def one_after_the_other(weights, value, W_o):
    before, value, found = weights @ value @ W_o, value.clone(), []
    for j in range(len(value)):
        value[j] = torch.cat([value[:j], value[j + 1 :]]).mean(dim=0)
        found.append((weights @ value @ W_o - before).norm())
    return torch.stack(found)


@wrong(
    "ch13.effect",
    "You made the weights sum to one. They were to stay as they are.",
    see="what-a-weight-brings",
)
def weights_made_whole(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return weights / weights.sum() * ((others - value) @ W_o).norm(dim=-1)


equivalent(
    "ch13.effect",
    "`return (weights[:, None] * (others - value) @ W_o).norm(dim=1)`",
    "the rows of a table are lengths along axis 1, which is the last",
)

# ---------------------------------------------------------------- ch13.fidelity


@right("ch13.fidelity")
def value_of_the_mean(T, seen, cause):
    query, key, value = torch.tensor([[10.0, 0.0]]), torch.zeros(T, 2), torch.zeros(T, 2)
    key[seen, 0] = 0.9
    value[cause, 1] = 1900.0
    value[seen, 1] = 1900.0 / (T - 1)
    return query, key, value


@wrong(
    "ch13.fidelity",
    "A value of zero is not the mean of the values. Put the mean in its place, and the output moves.",
    see="what-a-weight-brings",
)
def zero_but_not_the_mean(T, seen, cause):
    query, key, value = torch.tensor([[6.0]]), torch.zeros(T, 1), torch.zeros(T, 1)
    key[seen] = 1.0
    value[cause] = 1000.0
    return query, key, value


@wrong(
    "ch13.fidelity",
    "All values are alike, so no token has an effect. One should.",
    see="what-a-weight-brings",
)
def no_effect_at_all(T, seen, cause):
    query, key = torch.tensor([[6.0]]), torch.zeros(T, 1)
    key[seen] = 1.0
    return query, key, torch.ones(T, 1)


@wrong(
    "ch13.fidelity",
    "The weight is on the token that matters, so the map tells the truth. It should point at the other.",
    see="what-a-weight-brings",
)
def an_honest_head(T, seen, cause):
    query, key, value = torch.tensor([[6.0]]), torch.zeros(T, 1), torch.zeros(T, 1)
    key[cause] = 1.0
    other = next(j for j in range(T) if j not in (seen, cause))
    value[cause], value[other] = 1000.0, -1000.0
    return query, key, value


@wrong(
    "ch13.fidelity",
    "The places are those of one example. They are arguments.",
    see="what-a-weight-brings",
)
def the_same_places_always(T, seen, cause):
    query, key, value = torch.tensor([[6.0]]), torch.zeros(T, 1), torch.zeros(T, 1)
    key[0] = 1.0
    value[1], value[2] = 1000.0, -1000.0
    return query, key, value


@wrong(
    "ch13.fidelity",
    "With many tokens the weight on the seen one falls below 0.9: each of the others takes a little.",
    see="what-a-weight-brings",
)
def too_little_weight_for_many(T, seen, cause):
    query, key, value = torch.tensor([[4.0]]), torch.zeros(T, 1), torch.zeros(T, 1)
    key[seen] = 1.0
    other = next(j for j in range(T) if j not in (seen, cause))
    value[cause], value[other] = 1000.0, -1000.0
    return query, key, value


@wrong(
    "ch13.fidelity",
    "The place next to cause may be that of seen, and then replacing the value of seen moves the output.",
    see="what-a-weight-brings",
)
def counterweight_next_to_cause(T, seen, cause):
    query, key, value = torch.tensor([[6.0]]), torch.zeros(T, 1), torch.zeros(T, 1)
    key[seen] = 1.0
    value[cause], value[(cause + 1) % T] = 1000.0, -1000.0
    return query, key, value


@wrong(
    "ch13.fidelity",
    "Your scores are divided by the root of the width, and in so wide a head too little is left of them.",
    see="what-a-weight-brings",
)
def wide_and_weak(T, seen, cause):
    query, key, value = torch.zeros(1, 16), torch.zeros(T, 16), torch.zeros(T, 1)
    query[0, 0], key[seen, 0] = 6.0, 1.0
    other = next(j for j in range(T) if j not in (seen, cause))
    value[cause], value[other] = 1000.0, -1000.0
    return query, key, value


@wrong(
    "ch13.fidelity",
    "The weight on seen is so near to one that the value of cause is too small for what is left.",
    see="what-a-weight-brings",
)
def nothing_left_for_cause(T, seen, cause):
    query, key, value = torch.tensor([[10.0]]), torch.zeros(T, 1), torch.zeros(T, 1)
    key[seen] = 1.0
    other = next(j for j in range(T) if j not in (seen, cause))
    value[cause], value[other] = 1000.0, -1000.0
    return query, key, value


equivalent(
    "ch13.fidelity",
    "`query, key, value = (torch.tensor([[6.0]]), torch.zeros(T, 1), torch.zeros(T, 2))`",
    "values may have any width; both columns are filled alike",
)

# ---------------------------------------------------------------- ch13.guess

right("ch13.guess", "nearness")
right("ch13.guess", "no difference")
wrong("ch13.guess", "both", "Set one of the three texts, word for word.", see="attention-against-effect")
wrong("ch13.guess", "0.7", "That is a correlation. Choose one of the three texts.", see="attention-against-effect")
