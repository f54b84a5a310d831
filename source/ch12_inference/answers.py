"""Other right answers and named wrong answers of chapter ch12."""

import math

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch12.temperature


@right("ch12.temperature")
def by_hand(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    lead = logits - logits.max(dim=-1, keepdim=True).values
    powers = (lead == 0).to(lead.dtype) if tau == 0 else (lead / tau).exp()
    return powers / powers.sum(-1, keepdim=True)


@right("ch12.temperature")
def in_float64(logits, tau):
    if tau < 0:
        raise ValueError(f"{tau} is negative")
    wide = logits.double() - logits.double().amax(-1, keepdim=True)
    wide = torch.where(wide == 0, 0.0, -math.inf) if tau == 0 else wide / tau
    return torch.nn.functional.softmax(wide, dim=-1).to(logits.dtype)


@wrong(
    "ch12.temperature",
    "Divided before the largest was taken off: a small temperature makes infinities, and their difference is no number.",
    see="from-logits-to-a-token",
)
def overflows(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    if tau == 0:
        top = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
        return top / top.sum(-1, keepdim=True)
    return (logits / tau).softmax(-1)


@wrong(
    "ch12.temperature", "You multiply by the temperature, so that heat sharpens. It should flatten.", see="from-logits-to-a-token"
)
def multiplies(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    return ((logits - logits.amax(-1, keepdim=True)) * tau).softmax(-1)


@wrong(
    "ch12.temperature",
    "You divide probabilities by the temperature; normalised again, they are as before. It acts on logits.",
    see="from-logits-to-a-token",
)
def on_probabilities(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    p = logits.softmax(-1) / max(tau, 1e-3)
    return p / p.sum(-1, keepdim=True)


@wrong(
    "ch12.temperature", "At temperature 0 equal largest logits share: you gave all to one of them.", see="from-logits-to-a-token"
)
def one_winner(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    if tau == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return ((logits - logits.amax(-1, keepdim=True)) / tau).softmax(-1)


@wrong("ch12.temperature", "Temperature 0 is asked for, too: you divide by it.", see="from-logits-to-a-token")
def divides_by_zero(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    return ((logits - logits.amax(-1, keepdim=True)) / tau).softmax(-1)


@wrong(
    "ch12.temperature",
    "You put in a smallest temperature to avoid dividing by 0. Colder ones then come out wrong.",
    see="from-logits-to-a-token",
)
def clamped(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    return ((logits - logits.amax(-1, keepdim=True)) / max(tau, 1e-8)).softmax(-1)


@wrong(
    "ch12.temperature",
    "At 0 you treat logits that are only close as equal. The limit allows no tolerance: the larger one gets everything.",
    see="from-logits-to-a-token",
)
def close_is_equal(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    lead = logits - logits.amax(-1, keepdim=True)
    if tau == 0:
        top = (lead > -1e-3).to(logits.dtype)
        return top / top.sum(-1, keepdim=True)
    return (lead / tau).softmax(-1)


@wrong(
    "ch12.temperature",
    "For 0 you took a very small temperature. Logits that differ by less than it then share the probability.",
    see="from-logits-to-a-token",
)
def small_for_zero(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    return ((logits - logits.amax(-1, keepdim=True)) / (tau or 1e-8)).softmax(-1)


@wrong(
    "ch12.temperature",
    "You replaced −∞ by a large negative number: at a high temperature that token has a probability again.",
    see="from-logits-to-a-token",
)
def large_for_infinite(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    if tau == 0:
        top = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
        return top / top.sum(-1, keepdim=True)
    return ((logits.clamp_min(-1e4) - logits.amax(-1, keepdim=True)) / tau).softmax(-1)


@wrong("ch12.temperature", "A negative temperature must raise a ValueError.", see="from-logits-to-a-token")
def takes_any(logits, tau):
    lead = logits - logits.amax(-1, keepdim=True)
    if tau == 0:
        return (lead == 0).to(lead.dtype) / (lead == 0).sum(-1, keepdim=True)
    return (lead / abs(tau)).softmax(-1)


@wrong(
    "ch12.temperature",
    "You refuse a temperature only when it is well below 0. Any negative one is refused, however near to 0.",
    see="from-logits-to-a-token",
)
def rounds_first(logits, tau):
    if round(tau, 6) < 0:
        raise ValueError("negative")
    lead = logits - logits.amax(-1, keepdim=True)
    if tau == 0:
        return (lead == 0).to(lead.dtype) / (lead == 0).sum(-1, keepdim=True)
    return (lead / tau).softmax(-1)


@wrong(
    "ch12.temperature",
    "The softmax went over the first dimension. The tokens are along the last one.",
    see="from-logits-to-a-token",
)
def first_dimension(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    lead = logits - logits.amax(0, keepdim=True)
    if tau == 0:
        return (lead == 0).to(lead.dtype) / (lead == 0).sum(0, keepdim=True)
    return (lead / tau).softmax(0)


@wrong(
    "ch12.temperature",
    "At 0 your result is float32, whatever the logits are: their dtype was asked for.",
    see="from-logits-to-a-token",
)
def float32_at_zero(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    lead = logits - logits.amax(-1, keepdim=True)
    if tau == 0:
        return (lead == 0).float() / (lead == 0).sum(-1, keepdim=True)
    return (lead / tau).softmax(-1)


@wrong("ch12.temperature", "At 0 you look along dimension 1. The tokens are along the last one.", see="from-logits-to-a-token")
def second_dimension_at_zero(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    if tau == 0:
        dim = min(1, logits.ndim - 1)
        top = (logits == logits.amax(dim, keepdim=True)).to(logits.dtype)
        return top / top.sum(dim, keepdim=True)
    return ((logits - logits.amax(-1, keepdim=True)) / tau).softmax(-1)


@wrong(
    "ch12.temperature",
    "You subtract the largest logit of the whole tensor. In a row that lies far below it, a small temperature leaves only −∞.",
    see="from-logits-to-a-token",
)
def largest_of_all(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    if tau == 0:
        top = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
        return top / top.sum(-1, keepdim=True)
    return ((logits - logits.amax()) / tau).softmax(-1)


@wrong(
    "ch12.temperature",
    "You turn nan into 0 afterwards. The overflow has happened by then, and the row no longer sums to 1.",
    see="from-logits-to-a-token",
)
def nan_is_zero(logits, tau):
    if tau < 0:
        raise ValueError("negative")
    if tau == 0:
        top = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
        return top / top.sum(-1, keepdim=True)
    return torch.nan_to_num((logits / tau).softmax(-1))


# ---------------------------------------------------------------- ch12.top_p


@right("ch12.top_p")
def by_cumulative_sum(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    return order[before < p].tolist()


@right("ch12.top_p")
def with_sorted(probs, p):
    order = sorted(range(len(probs)), key=lambda i: (-probs[i].item(), i))
    for n in range(1, len(order)):
        if math.fsum(probs[i].item() for i in order[:n]) >= p:
            return order[:n]
    return order


@wrong("ch12.top_p", "The token that crosses p belongs to the nucleus; you leave it out.", see="cutting-the-tail")
def drops_the_crossing(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    return order[ordered.cumsum(0) <= p].tolist()


@wrong(
    "ch12.top_p",
    "The token that crosses p belongs to the nucleus; you leave it out, and repair only the empty case.",
    see="cutting-the-tail",
)
def at_least_one_but_short(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    kept = order[ordered.cumsum(0) <= p].tolist()
    return kept or [int(order[0])]


@wrong("ch12.top_p", "You go on although the sum has reached p exactly: at least p is enough.", see="cutting-the-tail")
def one_too_many(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    return order[(before <= p) & (ordered > 0)].tolist()


@wrong(
    "ch12.top_p",
    "You add in the order of the vocabulary. The nucleus is built from the most probable token down.",
    see="cutting-the-tail",
)
def unsorted(probs, p):
    before = probs.cumsum(0) - probs
    return torch.arange(len(probs))[(before < p) & (probs > 0)].tolist()


@wrong(
    "ch12.top_p",
    "The right tokens in the order of their ids: the most probable one was to come first.",
    see="cutting-the-tail",
)
def by_id(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    return sorted(order[ordered.cumsum(0) - ordered < p].tolist())


@wrong("ch12.top_p", "Among equals the smaller id comes first; you take the larger.", see="cutting-the-tail")
def larger_id_first(probs, p):
    order = sorted(range(len(probs)), key=lambda i: (-float(probs[i]), -i))
    kept, total = [], 0.0
    for i in order:
        if total >= p:
            break
        kept.append(i)
        total += float(probs[i])
    return kept


@wrong("ch12.top_p", "With p = 1 you keep everything. A token of probability 0 is never needed.", see="cutting-the-tail")
def all_for_one(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    return order.tolist() if p == 1 else order[ordered.cumsum(0) - ordered < p].tolist()


@wrong(
    "ch12.top_p",
    "Each token is compared with the most probable one. That is min-p; top-p asks what a set sums to.",
    see="cutting-the-tail",
)
def min_p(probs, p):
    order = probs.argsort(descending=True, stable=True)
    return [i for i in order.tolist() if float(probs[i]) >= (1 - p) * float(probs.max()) and float(probs[i]) > 0]


@wrong(
    "ch12.top_p", "You stop a little before p is reached. Sums are exact here, so no tolerance is needed.", see="cutting-the-tail"
)
def nearly_reached(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    return order[ordered.cumsum(0) - ordered < p - 1e-6].tolist()


@wrong("ch12.top_p", "A p near 1 is not 1: you keep the tail that it cuts off.", see="cutting-the-tail")
def nearly_one(probs, p):
    ordered, order = probs.sort(descending=True, stable=True)
    return order[ordered.cumsum(0) - ordered < (1 if p > 0.985 else p)].tolist()


# ---------------------------------------------------------------- ch12.tree


@right("ch12.tree")
class by_listing:
    def greedy_path(tree):
        if not tree:
            return [], 1.0
        top = max(p for p, _ in tree.values())
        token = next(name for name, (p, _) in tree.items() if p == top)
        path, q = greedy_path(tree[token][1])  # noqa: F821
        return [token, *path], top * q

    def best_path(tree):
        todo, found = [([], 1.0, tree)], []
        while todo:
            path, p, here = todo.pop()
            if not here:
                found.append((path, p))
            todo += [([*path, name], p * q, after) for name, (q, after) in reversed(here.items())]
        return max(found, key=lambda pair: pair[1])


@right("ch12.tree")
class with_logarithms:
    def greedy_path(tree):
        path, total = [], 0.0
        while tree:
            token, (p, tree) = sorted(tree.items(), key=lambda item: -item[1][0])[0]
            path, total = [*path, token], total + math.log(p)
        return path, math.exp(total)

    def best_path(tree):
        def walk(here):
            if not here:
                return 0.0, []
            options = []
            for token, (p, after) in here.items():
                total, path = walk(after)
                options.append((total + math.log(p), [token, *path]))
            return max(options, key=lambda option: option[0])

        total, path = walk(tree)
        return path, math.exp(total)


@wrong(
    "ch12.tree",
    "Your best path is the greedy one: it never looks past a less probable first step.",
    see="the-likeliest-sequence",
)
class greedy_twice:
    def greedy_path(tree):
        path, product = [], 1.0
        while tree:
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree):
        path, product = [], 1.0
        while tree:
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product


@wrong(
    "ch12.tree",
    "Your greedy path looks ahead. It should take the most probable next token and no more.",
    see="the-likeliest-sequence",
)
class best_twice:
    def greedy_path(tree):
        best, most = [], 1.0 if not tree else -1.0
        for token, (p, after) in tree.items():
            path, q = greedy_path(after)  # noqa: F821
            if p * q > most:
                best, most = [token, *path], p * q
        return best, most

    def best_path(tree):
        best, most = [], 1.0 if not tree else -1.0
        for token, (p, after) in tree.items():
            path, q = best_path(after)  # noqa: F821
            if p * q > most:
                best, most = [token, *path], p * q
        return best, most


@wrong("ch12.tree", "You add probabilities. The probability of a text is the product of its steps.", see="the-likeliest-sequence")
class sums:
    def greedy_path(tree):
        path, total = [], 0.0
        while tree:
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            total += tree[token][0]
            tree = tree[token][1]
        return path, total

    def best_path(tree):
        best, most = [], 0.0
        for token, (p, after) in tree.items():
            path, q = best_path(after)  # noqa: F821
            if p + q > most:
                best, most = [token, *path], p + q
        return best, most


@wrong("ch12.tree", "You go two steps deep only. Texts may be longer, or shorter.", see="the-likeliest-sequence")
class two_steps:
    def greedy_path(tree):
        path, product = [], 1.0
        for _ in range(2):
            if not tree:
                break
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree):
        pairs = [([], 1.0)] if not tree else []
        for a, (p, after) in tree.items():
            pairs += [([a, b], p * q) for b, (q, _) in after.items()] or [([a], p)]
        return max(pairs, key=lambda pair: pair[1])


@wrong(
    "ch12.tree",
    "Among equal first steps you take the last one: the token that comes first in the dict was asked for.",
    see="the-likeliest-sequence",
)
class last_of_equals:
    def greedy_path(tree):
        path, product = [], 1.0
        while tree:
            token = max(reversed(tree), key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree):
        best, most = [], 1.0 if not tree else -1.0
        for token, (p, after) in tree.items():
            path, q = best_path(after)  # noqa: F821
            if p * q >= most:
                best, most = [token, *path], p * q
        return best, most


@wrong(
    "ch12.tree",
    "You rank by the mean logarithm of a step, which can put a longer text before a likelier one. The probability of the whole was asked for.",
    see="the-likeliest-sequence",
)
class per_step:
    def greedy_path(tree):
        path, product = [], 1.0
        while tree:
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree):
        todo, found = [([], 1.0, tree)], []
        while todo:
            path, p, here = todo.pop()
            if not here:
                found.append((path, p))
            todo += [([*path, name], p * q, after) for name, (q, after) in reversed(here.items())]
        return max(found, key=lambda pair: math.log(pair[1]) / max(len(pair[0]), 1))


@wrong(
    "ch12.tree",
    "Among equals you take the first of the alphabet: the token that comes first in the dict was asked for.",
    see="the-likeliest-sequence",
)
class by_name:
    def greedy_path(tree):
        path, product = [], 1.0
        while tree:
            token = min(tree, key=lambda name: (-tree[name][0], name))
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree):
        found = []
        for token, (p, after) in tree.items():
            path, q = best_path(after)  # noqa: F821
            found.append((-p * q, [token, *path]))
        least, path = min(found, default=(-1.0, []))
        return path, -least


@wrong("ch12.tree", "You stop after six tokens. A text may be longer.", see="the-likeliest-sequence")
class six_steps:
    def greedy_path(tree):
        path, product = [], 1.0
        while tree and len(path) < 6:
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree, most_steps=6):
        best, most = [], 1.0 if not tree or most_steps == 0 else -1.0
        for token, (p, after) in tree.items() if most_steps else ():
            path, q = best_path(after, most_steps - 1)  # noqa: F821
            if p * q > most:
                best, most = [token, *path], p * q
        return best, most


@wrong(
    "ch12.tree",
    "You keep the best few beginnings only, a beam. The likeliest text may begin with one that it drops.",
    see="the-likeliest-sequence",
)
class beam:
    def greedy_path(tree):
        path, product = [], 1.0
        while tree:
            token = max(tree, key=lambda name: tree[name][0])
            path.append(token)
            product *= tree[token][0]
            tree = tree[token][1]
        return path, product

    def best_path(tree):
        beams, found = [([], 1.0, tree)], []
        while beams:
            found += [(path, p) for path, p, here in beams if not here]
            longer = [([*path, name], p * q, after) for path, p, here in beams for name, (q, after) in here.items()]
            beams = sorted(longer, key=lambda beam: -beam[1])[:6]
        return max(found, key=lambda pair: pair[1])


# ---------------------------------------------------------------- ch12.likeliest

wrong("ch12.likeliest", None, "Nothing is predicted yet.", see="likely-is-not-typical")
wrong("ch12.likeliest", "none of them", "A prediction is one of the four words.", see="likely-is-not-typical")

# ---------------------------------------------------------------- ch12.step


@right("ch12.step")
def with_torch(x, W_q, W_k, W_v, keys, values):
    keys = torch.cat((keys, (x @ W_k).unsqueeze(1)), 1)
    values = torch.cat((values, (x @ W_v).unsqueeze(1)), 1)
    out = torch.nn.functional.scaled_dot_product_attention((x @ W_q).unsqueeze(1), keys, values)
    return out.squeeze(1), keys, values


@right("ch12.step")
def sequence_by_sequence(x, W_q, W_k, W_v, keys, values):
    outs, new_keys, new_values = [], [], []
    for row, key, value in zip(x, keys, values, strict=True):
        key, value = torch.vstack([key, row @ W_k]), torch.vstack([value, row @ W_v])
        weights = (key @ (row @ W_q) / math.sqrt(key.shape[1])).softmax(0)
        outs.append(weights @ value)
        new_keys.append(key)
        new_values.append(value)
    return torch.stack(outs), torch.stack(new_keys), torch.stack(new_values)


@wrong(
    "ch12.step",
    "The new token does not see itself: attention comes before its key and value are appended.",
    see="remember-keys-and-values",
)
def attends_first(x, W_q, W_k, W_v, keys, values):
    scores = (x @ W_q)[:, None] @ keys.mT / math.sqrt(W_k.shape[1])
    out = (scores.softmax(-1) @ values)[:, 0] if keys.shape[1] else x @ W_v
    return out, torch.cat([keys, (x @ W_k)[:, None]], 1), torch.cat([values, (x @ W_v)[:, None]], 1)


@wrong("ch12.step", "The scores are not divided by the root of d_head.", see="remember-keys-and-values")
def no_scale(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat([keys, (x @ W_k)[:, None]], 1), torch.cat([values, (x @ W_v)[:, None]], 1)
    return (((x @ W_q)[:, None] @ keys.mT).softmax(-1) @ values)[:, 0], keys, values


@wrong(
    "ch12.step",
    "Divide by the root of the width of a head, the length of a key, not of the width of the stream.",
    see="remember-keys-and-values",
)
def scaled_by_d_model(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat([keys, (x @ W_k)[:, None]], 1), torch.cat([values, (x @ W_v)[:, None]], 1)
    return (((x @ W_q)[:, None] @ keys.mT / math.sqrt(x.shape[1])).softmax(-1) @ values)[:, 0], keys, values


@wrong("ch12.step", "You put the new row before the cache. The newest token comes last.", see="remember-keys-and-values")
def prepends(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat([(x @ W_k)[:, None], keys], 1), torch.cat([(x @ W_v)[:, None], values], 1)
    return (((x @ W_q)[:, None] @ keys.mT / math.sqrt(W_k.shape[1])).softmax(-1) @ values)[:, 0], keys, values


@wrong("ch12.step", "You swapped keys and values in the cache.", see="remember-keys-and-values")
def exchanged(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat([keys, (x @ W_v)[:, None]], 1), torch.cat([values, (x @ W_k)[:, None]], 1)
    return (((x @ W_q)[:, None] @ keys.mT / math.sqrt(W_k.shape[1])).softmax(-1) @ values)[:, 0], keys, values


@wrong(
    "ch12.step",
    "You return the new row of keys and values; the whole cache was asked for, with the row in it.",
    see="remember-keys-and-values",
)
def returns_the_row(x, W_q, W_k, W_v, keys, values):
    key, value = (x @ W_k)[:, None], (x @ W_v)[:, None]
    keys, values = torch.cat([keys, key], 1), torch.cat([values, value], 1)
    return (((x @ W_q)[:, None] @ keys.mT / math.sqrt(W_k.shape[1])).softmax(-1) @ values)[:, 0], key, value


@wrong(
    "ch12.step",
    "The weights are of the new token only. Its query is compared with all keys in the cache.",
    see="remember-keys-and-values",
)
def forgets_the_past(x, W_q, W_k, W_v, keys, values):
    return x @ W_v, torch.cat([keys, (x @ W_k)[:, None]], 1), torch.cat([values, (x @ W_v)[:, None]], 1)


@wrong(
    "ch12.step",
    "The query is kept where the key should be. A query is used once; it is the key that later tokens look for.",
    see="remember-keys-and-values",
)
def keeps_the_query(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat([keys, (x @ W_q)[:, None]], 1), torch.cat([values, (x @ W_v)[:, None]], 1)
    return (((x @ W_q)[:, None] @ keys.mT / math.sqrt(W_k.shape[1])).softmax(-1) @ values)[:, 0], keys, values


@wrong("ch12.step", "Your cache has room for 16 tokens. S may be any number.", see="remember-keys-and-values")
def room_for_16(x, W_q, W_k, W_v, keys, values):
    B, S, d_head = keys.shape
    room = x.new_zeros(2, B, 16, d_head)
    room[0, :, :S], room[1, :, :S] = keys, values
    room[0, :, S], room[1, :, S] = x @ W_k, x @ W_v
    keys, values = room[:, :, : S + 1]
    return (((x @ W_q)[:, None] @ keys.mT / math.sqrt(d_head)).softmax(-1) @ values)[:, 0], keys, values


@wrong("ch12.step", "You look at the newest tokens only. The query is compared with all keys.", see="remember-keys-and-values")
def window(x, W_q, W_k, W_v, keys, values):
    keys, values = torch.cat([keys, (x @ W_k)[:, None]], 1), torch.cat([values, (x @ W_v)[:, None]], 1)
    scores = (x @ W_q)[:, None] @ keys[:, -16:].mT / math.sqrt(W_k.shape[1])
    return (scores.softmax(-1) @ values[:, -16:])[:, 0], keys, values


# ---------------------------------------------------------------- ch12.exact


@right("ch12.exact")
def with_every_first_size(full, cached):
    generator = torch.Generator().manual_seed(3)
    for first in [*range(1, 29, 3), 29]:
        ids = torch.randint(10, (30,), generator=generator).tolist()
        for chunks in ([ids[:first], ids[first:]], [ids[:first], ids[first : first + 1], ids[first + 1 :]]):
            chunks = [chunk for chunk in chunks if chunk]
            if (torch.cat(cached(chunks)) - full(ids)).abs().max() > 1e-8:
                return False
    ids = torch.randint(10, (30,), generator=generator).tolist()
    return bool((torch.cat(cached([[i] for i in ids])) - full(ids)).abs().max() < 1e-8)


@right("ch12.exact")
def row_by_row(full, cached):
    generator = torch.Generator().manual_seed(1)
    for sizes in ([4, 3, 10, 12], [1] * 29, [29], [1, 1, 13, 14]):
        ids = torch.randint(10, (29,), generator=generator).tolist()
        chunks, at = [], 0
        for size in sizes:
            chunks.append(ids[at : at + size])
            at += size
        right = full(ids)
        rows = [row for logits in cached(chunks) for row in logits]
        if any(abs(a - b).max() > 3e-8 for a, b in zip(rows, right, strict=True)):
            return False
    return True


@wrong(
    "ch12.exact",
    "You compare without a tolerance: a right cache that rounds in another order is rejected.",
    see="the-same-logits",
)
def to_the_bit(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        if not torch.equal(torch.cat(cached([part.tolist() for part in ids.split(sizes)])), full(ids.tolist())):
            return False
    return True


@wrong(
    "ch12.exact",
    "You read one token at a time only. Masks and positions go wrong where one chunk follows another.",
    see="the-same-logits",
)
def one_by_one(full, cached):
    for seed in range(3):
        ids = torch.randint(10, (30,), generator=torch.Generator().manual_seed(seed)).tolist()
        if not torch.allclose(torch.cat(cached([[i] for i in ids])), full(ids), rtol=0, atol=1e-8):
            return False
    return True


@wrong("ch12.exact", "You read the whole text as one chunk: then nothing comes out of the cache at all.", see="the-same-logits")
def one_chunk(full, cached):
    for seed in range(3):
        ids = torch.randint(10, (30,), generator=torch.Generator().manual_seed(seed)).tolist()
        if not torch.allclose(torch.cat(cached([ids])), full(ids), rtol=0, atol=1e-8):
            return False
    return True


@wrong("ch12.exact", "Your texts are short. A cache that forgets after some twenty tokens passes.", see="the-same-logits")
def short_texts(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([12], [1] * 12, [3, 1, 1, 4, 3], [1, 11], [6, 6], [2, 3, 7], [12]):
        ids = torch.randint(10, (12,), generator=generator)
        if not torch.allclose(
            torch.cat(cached([part.tolist() for part in ids.split(sizes)])), full(ids.tolist()), rtol=0, atol=1e-8
        ):
            return False
    return True


@wrong("ch12.exact", "You call the cache once. Whether it starts empty shows in a second call.", see="the-same-logits")
def one_call(full, cached):
    ids = torch.randint(10, (30,), generator=torch.Generator().manual_seed(0))
    chunks = [part.tolist() for part in ids.split([1, 4, 1, 1, 15, 8])]
    return torch.allclose(torch.cat(cached(chunks)), full(ids.tolist()), rtol=0, atol=1e-8)


@wrong("ch12.exact", "Your tolerance is wide: errors of a few millionths pass.", see="the-same-logits")
def wide_tolerance(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        if not torch.allclose(
            torch.cat(cached([part.tolist() for part in ids.split(sizes)])), full(ids.tolist()), rtol=0, atol=5e-6
        ):
            return False
    return True


@wrong(
    "ch12.exact",
    "Your tolerance grows with the logits, as `rtol` does in `torch.allclose`: among large ones an error of a millionth passes.",
    see="the-same-logits",
)
def relative_tolerance(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        if not torch.allclose(torch.cat(cached([part.tolist() for part in ids.split(sizes)])), full(ids.tolist())):
            return False
    return True


@wrong("ch12.exact", "Your tolerance is narrower than the rounding that a right cache may have.", see="the-same-logits")
def narrow_tolerance(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        if (torch.cat(cached([part.tolist() for part in ids.split(sizes)])) - full(ids.tolist())).abs().max() > 3e-10:
            return False
    return True


@wrong(
    "ch12.exact", "You look for logits that are too large. They can be too small: take the absolute value.", see="the-same-logits"
)
def without_absolute_value(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        if (torch.cat(cached([part.tolist() for part in ids.split(sizes)])) - full(ids.tolist())).max() > 1e-8:
            return False
    return True


@wrong("ch12.exact", "You compare the last position only. A cache can be right there and wrong before.", see="the-same-logits")
def last_position(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        last = cached([part.tolist() for part in ids.split(sizes)])[-1][-1]
        if not torch.allclose(last, full(ids.tolist())[-1], rtol=0, atol=1e-8):
            return False
    return True


@wrong("ch12.exact", "Your texts have 22 tokens. A cache may fail after any number below 30.", see="the-same-logits")
def texts_of_22(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([22], [1] * 22, [7, 1, 1, 12, 1], [1, 21], [11, 11], [2, 3, 17], [22]):
        ids = torch.randint(10, (22,), generator=generator)
        if not torch.allclose(
            torch.cat(cached([part.tolist() for part in ids.split(sizes)])), full(ids.tolist()), rtol=0, atol=1e-8
        ):
            return False
    return True


@wrong(
    "ch12.exact",
    "You split into a few chunks. Reading one token at a time makes as many as there are tokens: a cache may fail then.",
    see="the-same-logits",
)
def few_chunks(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        chunks = [part.tolist() for part in ids.split(sizes)]
        if not torch.allclose(torch.cat(cached(chunks)), full(ids.tolist()), rtol=0, atol=1e-8):
            return False
    return True


@wrong(
    "ch12.exact",
    "You compare the last chunk only. An earlier chunk may be wrong and leave the last one right.",
    see="the-same-logits",
)
def last_chunk(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        last = cached([part.tolist() for part in ids.split(sizes)])[-1]
        if not torch.allclose(last, full(ids.tolist())[-len(last) :], rtol=0, atol=1e-8):
            return False
    return True


@wrong(
    "ch12.exact",
    "You split one by one and in two halves. A long chunk may go wrong only when several came before it.",
    see="the-same-logits",
)
def halves(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([1] * 30, [15, 15]):
        ids = torch.randint(10, (30,), generator=generator)
        chunks = [part.tolist() for part in ids.split(sizes)]
        if not torch.allclose(torch.cat(cached(chunks)), full(ids.tolist()), rtol=0, atol=1e-8):
            return False
    return True


@wrong(
    "ch12.exact",
    "You look at the mean difference. An error at a single logit disappears among hundreds: take the largest.",
    see="the-same-logits",
)
def mean_difference(full, cached):
    generator = torch.Generator().manual_seed(0)
    for sizes in ([30], [1] * 30, [7, 1, 1, 12, 9], [1, 29], [15, 15], [2, 3, 25], [30]):
        ids = torch.randint(10, (30,), generator=generator)
        if (torch.cat(cached([part.tolist() for part in ids.split(sizes)])) - full(ids.tolist())).abs().mean() > 1e-8:
            return False
    return True


# ---------------------------------------------------------------- ch12.cost

wrong(
    "ch12.cost",
    cell('n = sympy.Symbol("n", positive=True, integer=True)\nratio = n'),
    "That is the last pass alone. Earlier passes are shorter, and gain less.",
    see="what-a-step-costs",
)
wrong(
    "ch12.cost",
    cell('n = sympy.Symbol("n", positive=True, integer=True)\nratio = (n + 1) / 2'),
    "That is the ratio of the tokens that go through the linear layers. Scores grow with the square of the length.",
    see="what-a-step-costs",
)
wrong(
    "ch12.cost",
    cell('n = sympy.Symbol("n", positive=True, integer=True)\nratio = 3 / (2 * n + 1)'),
    "Upside down: divide the total without the cache by the total with it.",
    see="what-a-step-costs",
)
wrong(
    "ch12.cost",
    cell('n = sympy.Symbol("n", positive=True, integer=True)\nratio = 2 * n / 3'),
    "That is right for a long text only: nothing may be left out.",
    see="what-a-step-costs",
)
wrong(
    "ch12.cost",
    cell('n = sympy.Symbol("n", positive=True, integer=True)\nratio = n * (n + 1) * (2 * n + 1) / 6'),
    "That is the total without the cache; it is still to be divided by the total with it.",
    see="what-a-step-costs",
)

# ---------------------------------------------------------------- ch12.bytes

wrong("ch12.bytes", {"kib": 960, "users": 3}, "You counted the heads of queries. Only keys and values are kept.", see="bytes")
wrong(
    "ch12.bytes",
    {"kib": 96, "users": 32},
    "Half of it is missing: keys and values are kept, or the two bytes of a number.",
    see="bytes",
)
wrong("ch12.bytes", {"kib": 4, "users": 768}, "That is one layer. Each layer has a cache of its own.", see="bytes")
wrong("ch12.bytes", {"kib": 192, "users": 26}, "The weights are on the card, too, and leave 48 GiB.", see="bytes")
wrong("ch12.bytes", {"kib": 196608, "users": 16}, "The size of the cache was asked for in KiB, not in bytes.", see="bytes")

# ---------------------------------------------------------------- changes of the solutions that make no difference

equivalent(
    "ch12.top_p", "`for i in probs.argsort(descending=True, stable=True):`", "a tensor without axes is a whole number, too"
)
equivalent("ch12.top_p", "`kept, total = ([], -0.0)`", "the same number")
equivalent("ch12.tree", "`best, most = ([], 1.0 if not tree else -2.0)`", "any number below all probabilities will do")
equivalent("ch12.tree", "`best, most = ([], 1.0 if not tree else -0.0)`", "some text of a tree has a probability above 0")
equivalent("ch12.tree", "`tree = tree[token][-1]`", "the last of two is the second")
equivalent(
    "ch12.step",
    "`return ((scores.softmax(dim=-1) @ values)[:, -1], keys, values)`",
    "there is one row of queries, first and last",
)
for tolerance in ("rtol=0, atol=2e-08", "rtol=0"):
    equivalent(
        "ch12.exact",
        f"`if not torch.allclose(torch.cat(cached(chunks)), full(ids.tolist()), {tolerance}):`",
        "an absolute tolerance between the two that the task names",
    )
for change in (
    "generator = torch.Generator().manual_seed(1)",
    "generator = torch.Generator().manual_seed(-1)",
    "generator = torch.manual_seed(0)",
    "ids = torch.randint(10, (30,))",
):
    equivalent("ch12.exact", f"`{change}`", "other random texts show it as well")
equivalent(
    "ch12.exact", "`ids = torch.randint(9, (30,), generator=generator)`", "faults lie in splits, lengths and calls, not in tokens"
)
equivalent("ch12.cost", "`n = sympy.Symbol('n', …)`", "a letter is known by its name")
for change in (
    "(81 - 32) // (kib * 16384 / 2 ** 20)",
    "(80 - 31) // (kib * 16384 / 2 ** 20)",
    "(80 - 32) // (kib * 16383 / 2 ** 20)",
):
    equivalent("ch12.bytes", f"`users = {change}`", "the same after rounding down")
equivalent("ch12.bytes", "`users = (80 - 32) / (kib * 16384 / 2 ** 20)`", "48 is 16 times 3, and nothing is left over")
