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
    "You made the rows sum to one first. What goes to no token is then handed back to the tokens, and a drain that works is not seen.",
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
    "Your D fits the query with the most keys behind it. Others have no key at such a distance.",
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
    "The curve was made to sum to one. A mean weight is a weight, and what went to the first token is missing on purpose.",
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
    "A draw that is as good as the real score speaks against it as much as a better one. Yours are not counted.",
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
    "You measured in the width of the head. The stream is behind the output projection, which turns and stretches.",
    see="what-a-weight-brings",
)
def before_the_projection(weights, value, W_o):
    others = (value.sum(dim=0) - value) / (len(value) - 1)
    return weights * (others - value).norm(dim=-1)


@wrong(
    "ch13.effect",
    "How far the values are apart is one thing. How much of it arrives, the query decides.",
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
