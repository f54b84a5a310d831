"""Other right answers and named wrong answers of the exercises of ch04."""

import math

import numpy as np
import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- by hand


def by_hand(weights, unscaled, output):
    return {"by_hand_weights": weights, "by_hand_unscaled": unscaled, "by_hand_output": output}


right("ch04.by_hand", by_hand([0.1084, 0.4458, 0.4458], [0.0634, 0.4683, 0.4683], [0.8794, 2.2290]))
wrong(
    "ch04.by_hand",
    by_hand([0.063, 0.468, 0.468], [0.108, 0.446, 0.446], [0.721, 2.341]),
    "The two sets of weights have changed places: dividing the scores makes them more alike, not less.",
    see="worked-example",
)
wrong(
    "ch04.by_hand",
    by_hand([0.063, 0.468, 0.468], [0.063, 0.468, 0.468], [0.722, 2.342]),
    "The scaled weights are those of the undivided scores: divide 0, 2, 2 by √d_k before the exponential.",
    see="all-queries-at-once",
)
wrong(
    "ch04.by_hand",
    by_hand([0.155, 0.422, 0.422], [0.063, 0.468, 0.468], [1.044, 2.112]),
    "You divided the scores by d_k; the formula divides by its square root.",
    see="all-queries-at-once",
)
wrong(
    "ch04.by_hand",
    by_hand([0.0, 0.5, 0.5], [0.0, 0.5, 0.5], [0.5, 2.5]),
    "You divided the scores by their sum, or took the winners only: softmax takes exponentials first, so a score of 0 still gets a weight.",
    see="query-key-value",
)
wrong(
    "ch04.by_hand",
    by_hand([0.446, 0.446, 0.108], [0.468, 0.468, 0.063], [1.892, 1.892]),
    "The weights are right as a set, but not in the order of the keys: k₁ = (1, 0) has nothing in common with q₂ = (0, 2).",
    see="query-key-value",
)

# ---------------------------------------------------------------- attention with a mask


@right("ch04.attention")
def one_query_at_a_time(query, key, value, allowed):
    lead = query.shape[:-2]
    query, key, value, allowed = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value, allowed))
    batch = []
    for q, k, v, a in zip(query, key, value, allowed, strict=True):
        rows = []
        for t in range(len(q)):
            may = a[t]
            if not may.any():
                rows.append(0 * v.sum(0))
                continue
            rows.append((k[may] @ q[t] / len(q[t]) ** 0.5).softmax(0) @ v[may])
        batch.append(torch.stack(rows))
    return torch.stack(batch).reshape(*lead, *batch[0].shape)


@right("ch04.attention")
def einsum_and_where(query, key, value, allowed):
    scores = torch.einsum("...td,...sd->...ts", query, key) * query.shape[-1] ** -0.5
    weights = torch.where(allowed, scores, -torch.inf).softmax(-1)
    return torch.einsum("...ts,...sv->...tv", torch.where(allowed, weights, 0.0), value)


@right("ch04.attention")
def nothing_allowed_means_everything_then_zero(query, key, value, allowed):
    empty = ~allowed.any(-1, keepdim=True)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed | empty).masked_fill(empty, 0.0)


@wrong(
    "ch04.attention", "A query that may read nothing gets NaN: a softmax over −∞ alone is 0/0.", see="keys-that-must-not-be-read"
)
def nan_in_empty_rows(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.masked_fill(~allowed, -math.inf).softmax(-1) @ value


@wrong(
    "ch04.attention",
    "A query that may read nothing gets the average of all values: equal scores, however small, make uniform weights.",
    see="keys-that-must-not-be-read",
)
def uniform_in_empty_rows(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.masked_fill(~allowed, -1e9).softmax(-1) @ value


@wrong(
    "ch04.attention",
    "The output is right, its gradient is NaN: replacing the NaN at the end does not repair what flows back through the softmax.",
    see="keys-that-must-not-be-read",
)
def nan_in_gradients(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores * 1.0 + allowed.to(scores.dtype).log()
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return (powers / powers.sum(-1, keepdim=True)).nan_to_num(0.0) @ value


@wrong(
    "ch04.attention",
    "The scores are not divided by the square root of d_k, so their spread grows with the width.",
    see="why-divide-by-the-square-root",
)
def no_scale(query, key, value, allowed):
    scores = query @ key.mT
    return (scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-1) * allowed) @ value


@wrong(
    "ch04.attention",
    "Scaled by the width of the values: d_v equals d_k in the example, not in general.",
    see="why-divide-by-the-square-root",
)
def scaled_by_value_width(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(value.shape[-1])
    return (scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-1) * allowed) @ value


@wrong(
    "ch04.attention",
    "You normalised over the queries: it is each query's weights over the keys that sum to one.",
    see="all-queries-at-once",
)
def softmax_over_queries(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return (scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-2) * allowed) @ value


@wrong(
    "ch04.attention",
    "You zeroed the forbidden weights after the softmax, so the others no longer sum to one.",
    see="keys-that-must-not-be-read",
)
def masked_after_softmax(query, key, value, allowed):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return (weights * allowed) @ value


@wrong("ch04.attention", "A score of 0 is not a forbidden key: e⁰ = 1, so it keeps a weight.", see="keys-that-must-not-be-read")
def zero_scores(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return ((scores * allowed).softmax(-1) * allowed.any(-1, keepdim=True)) @ value


@wrong(
    "ch04.attention",
    "Computed in float32 whatever came in: float64 values must give a float64 output.",
    see="all-queries-at-once",
)
def forces_float32(query, key, value, allowed):
    scores = query.float() @ key.float().mT / math.sqrt(query.shape[-1])
    return (scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-1) * allowed) @ value.float()


@wrong(
    "ch04.attention",
    "Your number for a forbidden score is not small enough: when the allowed scores are lower still, it wins.",
    see="keys-that-must-not-be-read",
)
def mask_not_low_enough(query, key, value, allowed):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return (scores.masked_fill(~allowed, -1e4).softmax(-1) * allowed) @ value


@wrong(
    "ch04.attention",
    "Exponentials of large scores overflow: subtract each row's maximum first, as softmax does.",
    see="saturation-needs-a-gap",
)
def overflows(query, key, value, allowed):
    powers = (query @ key.mT / math.sqrt(query.shape[-1])).exp() * allowed
    return powers / (powers.sum(-1, keepdim=True) + ~allowed.any(-1, keepdim=True)) @ value


# ---------------------------------------------------------------- scaling


@right("ch04.scaling")
class numpy_and_moments:
    def spread_of_scores(query, key, scaled):
        dots = [float(dot) for q in query for dot in key @ q]
        return np.std(dots) / (np.sqrt(query.shape[1]) if scaled else 1)

    def divisor(d_k, mean, std):
        return (d_k * ((std**2 + mean**2) ** 2 - mean**4)) ** 0.5


right(
    "ch04.scaling",
    cell("""
def spread_of_scores(query, key, scaled):
    scores = torch.einsum("td,sd->ts", query, key)
    return scores.std(unbiased=False) / (query.shape[1] ** 0.5 if scaled else 1)


def divisor(d_k, mean, std):
    return torch.sqrt(torch.tensor(d_k * (std**4 + 2 * mean**2 * std**2)))  # float32
"""),
)


def spread(body):
    return f"def spread_of_scores(query, key, scaled):\n    {body}"


def divides(by):
    return f"def divisor(d_k, mean, std):\n    return {by}"


SPREAD = spread("return ((query @ key.T) / (math.sqrt(query.shape[-1]) if scaled else 1)).std().item()")
DIVISOR = divides("math.sqrt(d_k * (std**4 + 2 * mean**2 * std**2))")

for label, sentence in [
    (
        spread("return (query @ key.T).std().item()"),
        "Your spread is the same with and without the division: `scaled` is not used.",
    ),
    (
        spread("return ((query @ key.T) / (query.shape[-1] if scaled else 1)).std().item()"),
        "You divided by d_k: then the scaled spread shrinks as the vectors get wider.",
    ),
    (
        spread("return ((query @ key.T) / (math.sqrt(query.shape[-1]) if scaled else 1)).var().item()"),
        "That is the variance. The standard deviation is its square root.",
    ),
    (
        spread("return ((query @ key.T) / (math.sqrt(query.shape[-1]) if scaled else 1)).std(dim=-1).mean().item()"),
        "You averaged the spreads of single queries: the scores of all queries together spread more than that.",
    ),
    (
        spread("return ((query @ key.T) / (math.sqrt(query.shape[-1]) if scaled else 1)).square().mean().sqrt().item()"),
        "That is the root of the mean square, which is the standard deviation only if the mean is zero.",
    ),
    (
        spread("return 1.0 if scaled else math.sqrt(query.shape[-1])"),
        "You returned what theory says for mean 0 and standard deviation 1. Measure what came in.",
    ),
]:
    wrong("ch04.scaling", cell(label + "\n\n" + DIVISOR), sentence, see="why-divide-by-the-square-root")

for label, sentence in [
    (divides("math.sqrt(d_k)"), "√d_k is right for mean 0 and standard deviation 1 only: your divisor ignores both."),
    (
        divides("math.sqrt(d_k) * std**2"),
        "Your divisor is right for a mean of zero. Where did the derivation use that the mean is zero?",
    ),
    (
        divides("math.sqrt(d_k) * (std**2 + mean**2)"),
        "You took the mean square of a product for its variance: the square of its mean has to be subtracted.",
    ),
    (
        divides("math.sqrt(d_k * (std**4 + mean**2 * std**2))"),
        "One of the two cross terms is missing: the mean of q meets the spread of k, and the mean of k meets the spread of q.",
    ),
    (
        divides("d_k * (std**4 + 2 * mean**2 * std**2)"),
        "That is the variance of the score. To bring a standard deviation to 1, divide by a standard deviation.",
    ),
]:
    wrong("ch04.scaling", cell(SPREAD + "\n\n" + label), sentence, see="why-divide-by-the-square-root")

# ---------------------------------------------------------------- saturation


@right("ch04.saturation")
class entropy_of_torch:
    def entropy_after_scale(scores, factor):
        return torch.special.entr(torch.softmax(scores * factor, -1)).sum(-1)

    def factor_for(gap, others, share):
        if gap == 0:
            return float("inf")
        return (math.log(others) + math.log(share) - math.log(1 - share)) / gap


@right("ch04.saturation")
class log_sum_exp:
    def entropy_after_scale(scores, factor):
        s = factor * scores
        s = s - s.max(dim=-1, keepdim=True).values
        return s.logsumexp(-1) - (s.softmax(-1) * s).sum(-1)

    def factor_for(gap, others, share):
        low, high = 0.0, 1e6 / gap if gap else 0.0
        if not gap:
            return math.inf
        for _ in range(300):
            middle = (low + high) / 2
            low, high = (low, middle) if 1 / (1 + others * math.exp(-min(middle * gap, 700))) >= share else (middle, high)
        return high


right(
    "ch04.saturation",
    cell("""
def entropy_after_scale(scores, factor):
    p = (factor * scores).softmax(-1)
    return -(p * (p + 1e-12).log()).sum(-1)


def factor_for(gap, others, share):
    return (torch.tensor(others * share / (1 - share)).log() / gap).item() if gap else float("inf")
"""),
)


def entropy(body):
    return f"def entropy_after_scale(scores, factor):\n    {body}"


def factor(body):
    return f"def factor_for(gap, others, share):\n    {body}"


ENTROPY = entropy(
    "log_weights = (factor * scores).log_softmax(dim=-1)\n    return -(log_weights.exp() * log_weights).sum(dim=-1)"
)
FACTOR = factor("return math.log(others * share / (1 - share)) / gap if gap > 0 else math.inf")

for body, sentence in [
    (
        "p = (factor * scores).softmax(-1)\n    return -(p * p.log()).sum(-1)",
        "A weight that underflows to 0 makes 0 · log 0 = NaN: its share of the entropy is 0.",
    ),
    (
        "p = (factor * scores).exp()\n    p = p / p.sum(-1, keepdim=True)\n    return torch.special.entr(p).sum(-1)",
        "exp overflows for scores in the thousands: subtract the maximum first, or use the library's softmax.",
    ),
    (
        "p = (factor * scores).log_softmax(-1)\n    return -(p.exp() * p).sum(-1) / math.log(2)",
        "That is the entropy in bits: nats use the natural logarithm.",
    ),
    (
        "p = (factor * scores).log_softmax(-1)\n    return -(p.exp() * p).sum()",
        "You added the entropies of all rows: one number a row is asked for.",
    ),
    (
        "p = (factor * scores).log_softmax(-1)\n    return (p.exp() * p).sum(-1)",
        "The sign is missing: logarithms of weights are negative, an entropy is not.",
    ),
    (
        "p = (scores / factor).log_softmax(-1) if factor else (0 * scores).log_softmax(-1)\n    return -(p.exp() * p).sum(-1)",
        "You divided by the factor, as by a temperature: here scores are multiplied by it.",
    ),
]:
    wrong("ch04.saturation", cell(entropy(body) + "\n\n" + FACTOR), sentence, see="saturation-needs-a-gap")

for body, sentence in [
    (
        "return math.log(share / (1 - share)) / gap if gap > 0 else math.inf",
        "You counted one other key whatever their number: all the others share what is left.",
    ),
    (
        "return math.log(others * share / (1 - share)) / gap",
        "A gap of zero cannot be divided by: no factor breaks a tie, and the answer is infinity.",
    ),
    (
        "return math.log(others * share / (1 - share)) / max(gap, 1e-12)",
        "Your factor for a tie is a very large number: no number at all breaks a tie.",
    ),
    (
        "return math.log(others * share / (1 - share)) if gap > 0 else math.inf",
        "That is factor times gap. Half the gap needs twice the factor.",
    ),
    ("return math.log(9.9 * others / 0.1) / gap if gap > 0 else math.inf", "You used 0.99 for every share."),
]:
    wrong("ch04.saturation", cell(ENTROPY + "\n\n" + factor(body)), sentence, see="saturation-needs-a-gap")

# ---------------------------------------------------------------- prediction

right("ch04.prediction", {"predicted_unscaled": 4.0, "predicted_scaled": 0.0})
right("ch04.prediction", {"predicted_unscaled": 0, "predicted_scaled": 4.16})
wrong(
    "ch04.prediction",
    {"predicted_unscaled": 1, "predicted_scaled": 64},
    "64 is the number of keys. The entropy of 64 weights is at most its logarithm.",
    see="saturation-needs-a-gap",
)
wrong(
    "ch04.prediction",
    {"predicted_unscaled": -1.0, "predicted_scaled": 4.0},
    "An entropy of weights is never negative: it is 0 when one key has everything.",
    see="saturation-needs-a-gap",
)
wrong(
    "ch04.prediction",
    {"predicted_unscaled": "falls", "predicted_scaled": "stays"},
    "Give two numbers, in nats.",
    see="an-experiment-that-can-fail",
)

# ---------------------------------------------------------------- fidelity


@right("ch04.fidelity")
class loops_and_definitions:
    def share(weights, value):
        terms = torch.stack([(w * v).norm() for w, v in zip(weights, value, strict=True)])
        return terms / terms.sum()

    def sensitivity(weights, value, j):
        return torch.diag(torch.full((value.shape[1],), float(weights[j]), dtype=value.dtype))

    def removal(weights, value):
        output, moved = (weights[:, None] * value).sum(0), []
        for j in range(len(weights)):
            keep = torch.arange(len(weights)) != j
            moved.append(torch.linalg.vector_norm(weights[keep] @ value[keep] / weights[keep].sum() - output))
        return torch.stack(moved)


FIDELITY = {
    "share": "def share(weights, value):\n    lengths = weights * value.norm(dim=-1)\n    return lengths / lengths.sum()",
    "sensitivity": "def sensitivity(weights, value, j):\n    return weights[j] * torch.eye(value.shape[-1], dtype=value.dtype)",
    "removal": "def removal(weights, value):\n    return weights / (1 - weights) * (weights @ value - value).norm(dim=-1)",
}

for name, body, sentence in [
    (
        "share",
        "return weights / weights.sum()",
        "You returned the weights: the values are not used. A large weight on a tiny value adds little.",
    ),
    (
        "share",
        "return weights * value.norm(dim=-1)",
        "These are the lengths of the contributions. Each key's part of their sum is asked for.",
    ),
    (
        "share",
        "return weights * value.norm(dim=-1) / (weights @ value).norm()",
        "You divided by the length of the output. Contributions can point in different directions, so their lengths sum to more than that.",
    ),
    (
        "share",
        "lengths = (weights[:, None] * value).abs().sum(dim=-1)\n    return lengths / lengths.sum()",
        "You added absolute values: the length of a vector is the root of the sum of its squares.",
    ),
    (
        "share",
        "sums = weights * value.sum(dim=-1)\n    return sums / sums.sum()",
        "You added the entries of each value, where positive and negative ones cancel: a contribution is measured by its length.",
    ),
    (
        "sensitivity",
        "return weights[j] * value[j].norm() * torch.eye(value.shape[-1], dtype=value.dtype)",
        "Your derivative depends on how long the value is. The output is linear in the value, so its slope does not.",
    ),
    (
        "sensitivity",
        "return weights[j] * torch.ones(value.shape[-1], value.shape[-1], dtype=value.dtype)",
        "Coordinate b of a value reaches coordinate b of the output only: off the diagonal the derivative is 0.",
    ),
    (
        "sensitivity",
        "return (1 - weights[j]) * torch.eye(value.shape[-1], dtype=value.dtype)",
        "You have the large and the small the wrong way round: the output follows the value that has the weight.",
    ),
    (
        "removal",
        "return weights * value.norm(dim=-1)",
        "You zeroed the value and kept its weight. When a key is removed, the other weights grow until they sum to one.",
    ),
    (
        "removal",
        "return weights * (weights @ value - value).norm(dim=-1)",
        "The other weights have not been divided by their sum, which is 1 − α_j after the removal.",
    ),
    (
        "removal",
        "rest = (weights @ value - weights[:, None] * value) / (1 - weights)[:, None]\n    return rest.norm(dim=-1)",
        "That is the length of the new output. How far it is from the old one is asked for.",
    ),
]:
    parts = FIDELITY | {name: FIDELITY[name].split("\n")[0] + "\n    " + body}
    wrong("ch04.fidelity", cell("\n\n".join(parts.values())), sentence, see="a-weight-is-not-an-influence")

# ---------------------------------------------------------------- backward


@right("ch04.backward")
def row_by_row(query, key, value, bias, grad_output):
    grads = [np.zeros(x.shape) for x in (query, key, value, bias)]
    root = query.shape[-1] ** 0.5
    for b in range(query.shape[0]):
        for t in range(query.shape[1]):
            s = key[b] @ query[b, t] / root + bias[t]
            p = np.exp(s - np.logaddexp.reduce(s))
            g = (np.diag(p) - np.outer(p, p)) @ (value[b] @ grad_output[b, t])
            grads[0][b, t] = g @ key[b] / root
            grads[1][b] += np.outer(g, query[b, t]) / root
            grads[2][b] += np.outer(p, grad_output[b, t])
            grads[3][t] += g
    return tuple(grads)


@right("ch04.backward")
def einsum(query, key, value, bias, grad_output):
    d = query.shape[-1]
    s = np.einsum("btd,bsd->bts", query, key) / np.sqrt(d) + bias
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    output = np.einsum("bts,bsv->btv", p, value)
    g = p * (np.einsum("btv,bsv->bts", grad_output, value) - (grad_output * output).sum(-1)[..., None])
    return [
        np.einsum("bts,bsd->btd", g, key) / np.sqrt(d),
        np.einsum("bts,btd->bsd", g, query) / np.sqrt(d),
        np.einsum("bts,btv->bsv", p, grad_output),
        g.sum(0),
    ]


BACKWARD = """\
def backward(query, key, value, bias, grad_output):
    scale = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.swapaxes(-1, -2) * scale + bias
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    grad_value = weights.swapaxes(-1, -2) @ grad_output
    grad_weights = grad_output @ value.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))
    grad_query = grad_scores @ key * scale
    grad_key = grad_scores.swapaxes(-1, -2) @ query * scale
    grad_bias = grad_scores.sum(axis=0)
    return grad_query, grad_key, grad_value, grad_bias
"""


def changed(*pairs):
    source = BACKWARD
    for old, new in pairs:
        assert old in source, old
        source = source.replace(old, new)
    return cell(source)


AUTOGRAD = """\
def backward(query, key, value, bias, grad_output):
    leaves = [torch.tensor(x, requires_grad=True) for x in (query, key, value, bias)]
    output = (leaves[0] @ leaves[1].mT / leaves[0].shape[-1] ** 0.5 + leaves[3]).softmax(-1) @ leaves[2]
    return tuple(g.numpy() for g in torch.autograd.grad(output, leaves, torch.tensor(grad_output)))
"""

JACOBIAN = "weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))"

for answer, sentence in [
    (
        changed(("grad_scores @ key * scale", "grad_scores @ key"), ("@ query * scale", "@ query")),
        "The gradients of query and key lack a factor: what did the scores go through on the way in?",
    ),
    (
        changed((JACOBIAN, "weights * (1 - weights) * grad_weights")),
        "You used the diagonal of the softmax Jacobian only: raising one score also lowers all other weights.",
    ),
    (
        changed((JACOBIAN, "grad_weights")),
        "The gradient passed the softmax unchanged: its Jacobian is missing.",
    ),
    (
        changed((JACOBIAN, "weights * (grad_weights - (weights * grad_weights).sum(axis=-2, keepdims=True))")),
        "The row average was taken over the queries: each row of the softmax has its own, over the keys.",
    ),
    (
        changed((JACOBIAN, "weights * (grad_weights - grad_weights.mean(axis=-1, keepdims=True))")),
        "You subtracted the plain mean of the row: the softmax Jacobian has the mean weighted by the weights.",
    ),
    (
        changed(("grad_scores.sum(axis=0)", "grad_scores.sum(axis=0) * scale")),
        "The bias is added after the division by √d_k, so its gradient is not divided.",
    ),
    (
        changed(("grad_scores.sum(axis=0)", "grad_scores.mean(axis=0)")),
        "You averaged the bias's gradients over the batch: each sequence uses the bias, so its gradients add.",
    ),
    (
        changed(("grad_scores.sum(axis=0)", "grad_scores")),
        "The bias is one table for the whole batch, and its gradient must have its shape.",
    ),
    (
        changed(("* scale + bias", "* scale")),
        "The weights were computed without the bias.",
    ),
    (
        changed(("scores - scores.max(axis=-1, keepdims=True)", "scores")),
        "Large scores overflow in the exponential: subtract each row's maximum first.",
    ),
    (
        cell(AUTOGRAD),
        "You used automatic differentiation, which the test switches off: the way back is to be written by hand.",
    ),
]:
    wrong("ch04.backward", answer, sentence, see="the-way-back")

# ---------------------------------------------------------------- property


@right("ch04.property")
def by_known_numbers(f):
    """Weights in the ratio e, then shapes that are all different, without any reference implementation."""
    try:
        generator = torch.Generator().manual_seed(3)
        for T, S, d_k, d_v in [(3, 5, 7, 6), (2, 6, 4, 9), (5, 2, 16, 3)]:
            key = torch.zeros(S, d_k)
            key[:, 0] = torch.arange(S) * d_k**0.5  # scores 0, 1, 2, … for a query that starts with 1
            query = torch.zeros(T, d_k)
            query[:, 0] = torch.linspace(-1, 1, T)
            value = torch.randn(S, d_v, generator=generator)
            out = f(query, key, value)
            if tuple(out.shape) != (T, d_v):
                return False
            for t in range(T):
                r = math.exp(float(query[t, 0]))
                expected = sum(r**j * value[j] for j in range(S)) / sum(r**j for j in range(S))
                if (out[t] - expected).abs().max() > 1e-4 * max(1.0, float(expected.abs().max())):
                    return False
        return True
    except Exception:
        return False


@right("ch04.property")
def against_the_library(f):
    torch.manual_seed(1)
    for T, S, d_k, d_v in [(4, 6, 9, 3), (7, 2, 4, 5)]:
        inputs = torch.randn(T, d_k), torch.randn(S, d_k), torch.randn(S, d_v)
        expected = torch.nn.functional.scaled_dot_product_attention(*inputs)
        try:
            out = f(*inputs)
            if out.shape != expected.shape or (out - expected).abs().max().item() > 5e-4:
                return False
        except Exception:
            return False
    return True


@right("ch04.property")
def with_large_scores(f):
    generator = torch.Generator().manual_seed(0)
    for size, dtype in [(1.0, torch.float32), (60.0, torch.float32), (1.0, torch.float64)]:
        q, k, v = (torch.randn(*shape, generator=generator).to(dtype) for shape in [(3, 9), (5, 9), (5, 2)])
        expected = ((size * q) @ k.T / 3).softmax(1) @ v
        try:
            out = f(size * q, k, v)
            if out.shape != expected.shape or not np.allclose(out.numpy(), expected.numpy(), rtol=0, atol=1e-4):
                return False
        except Exception:
            return False
    return True


@wrong("ch04.property", "Your examiner passes everything.", see="what-goes-wrong-in-practice")
def always_true(f):
    return True


@wrong("ch04.property", "Your examiner passes nothing, not even the formula itself.", see="all-queries-at-once")
def always_false(f):
    return False


@wrong(
    "ch04.property", "You looked at the shape only. A uniform average has the right shape too.", see="what-goes-wrong-in-practice"
)
def shape_only(f):
    try:
        return tuple(f(torch.randn(2, 4), torch.randn(3, 4), torch.randn(3, 5)).shape) == (2, 5)
    except Exception:
        return False


@wrong(
    "ch04.property",
    "You checked that weights sum to one. Softmax does that whatever the scale, and so does a choice of one key.",
    see="what-goes-wrong-in-practice",
)
def weights_sum_to_one(f):
    try:
        out = f(torch.randn(2, 4), torch.randn(3, 4), torch.ones(3, 5))
        return tuple(out.shape) == (2, 5) and torch.allclose(out, torch.ones(2, 5), atol=1e-4)
    except Exception:
        return False


@wrong(
    "ch04.property",
    "Your one case has d_k = d_v, as the worked example has: it cannot tell which width the scale was taken from.",
    see="worked-example",
)
def the_worked_example(f):
    try:
        out = f(
            torch.tensor([[1.0, 0, 1], [0, 1, 1]]), torch.tensor([[1.0, 1, 0], [1, 0, 1]]), torch.tensor([[2.0, 0, 1], [1, 1, 0]])
        )
        return bool((out - torch.tensor([[1.360, 0.640, 0.360], [1.5, 0.5, 0.5]])).abs().max() < 1e-3)
    except Exception:
        return False


@wrong(
    "ch04.property",
    "Your case has one query: what goes wrong between queries, such as one softmax over all scores, does not show.",
    see="all-queries-at-once",
)
def one_query(f):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(*shape, generator=generator) for shape in [(1, 7), (5, 7), (5, 4)])
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    try:
        out = f(q, k, v)
        return out.shape == expected.shape and torch.allclose(out, expected, atol=1e-4)
    except Exception:
        return False


@wrong(
    "ch04.property",
    "Your case has one key: its weight is 1 whatever the score, so no mistake in the scores shows.",
    see="query-key-value",
)
def one_key(f):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(*shape, generator=generator) for shape in [(4, 7), (1, 7), (1, 3)])
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    try:
        out = f(q, k, v)
        return out.shape == expected.shape and torch.allclose(out, expected, atol=1e-4)
    except Exception:
        return False


@wrong(
    "ch04.property",
    "Your tolerance is so wide that results off by 0.005 pass.",
    see="worked-example",
)
def too_wide_a_tolerance(f):
    generator = torch.Generator().manual_seed(0)
    for T, S, d_k, d_v in [(3, 5, 9, 2), (2, 4, 16, 3)]:
        shapes = [(T, d_k), (S, d_k), (S, d_v)]
        q, k, v = (torch.randn(*shape, generator=generator) for shape in shapes)
        expected = (q @ k.T / d_k**0.5).softmax(1) @ v
        try:
            out = f(q, k, v)
            if out.shape != expected.shape or (out - expected).abs().max() > 0.01:
                return False
        except Exception:
            return False
    return True


@wrong(
    "ch04.property",
    "You asked for equality to the last bit: right implementations add in another order.",
    see="all-queries-at-once",
)
def equal_to_the_bit(f):
    try:
        q, k, v = torch.randn(3, 7), torch.randn(5, 7), torch.randn(5, 2)
        return torch.equal(f(q, k, v), (q @ k.T / 7**0.5).softmax(1) @ v)
    except Exception:
        return False


@wrong(
    "ch04.property",
    "When the examined function raises an error, your examiner does too: the answer to that is False.",
    see="what-goes-wrong-in-practice",
)
def raises_with_it(f):
    torch.manual_seed(1)
    for T, S, d_k, d_v in [(4, 6, 9, 3), (7, 2, 4, 5)]:
        q, k, v = torch.randn(T, d_k), torch.randn(S, d_k), torch.randn(S, d_v)
        out, expected = f(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v)
        if out.shape != expected.shape or (out - expected).abs().max().item() > 1e-4:
            return False
    return True


@wrong(
    "ch04.property",
    "You compared numbers that broadcast: a result with an axis too many passes for the right one.",
    see="all-queries-at-once",
)
def compares_by_broadcasting(f):
    torch.manual_seed(1)
    for T, S, d_k, d_v in [(4, 6, 9, 3), (7, 2, 4, 5)]:
        q, k, v = torch.randn(T, d_k), torch.randn(S, d_k), torch.randn(S, d_v)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        try:
            if not torch.allclose(f(q, k, v), expected, atol=1e-4):
                return False
        except Exception:
            return False
    return True


# ---------------------------------------------------------------- changes that make no difference

equivalent("ch04.scaling", "`return scores.std()`", "a tensor without axes is a number, too")
equivalent("ch04.scaling", "`scores = scores / math.sqrt(query.shape[1])`", "of two axes the last is axis 1")
for change in (
    "lengths = weights * value.norm(dim=1)",
    "return weights[j] * torch.eye(value.shape[1], dtype=value.dtype)",
    "return weights / (1 - weights) * (output - value).norm(dim=1)",
):
    equivalent("ch04.fidelity", f"`{change}`", "of two axes the last is axis 1")
for cases in ("[(2, 5, 9), (…, …, …)]", "[(…, …, …), (4, 3, 16)]"):
    equivalent("ch04.property", f"`for T, S, d_k in {cases}:`", "the other case, four different sizes, shows every mistake")
for columns in (1, 3, 4):
    equivalent(
        "ch04.property",
        f"`value = torch.cat([torch.eye(S), torch.randn(S, {columns}, generator=generator)], dim=1)`",
        "the four sizes still differ in one of the two cases",
    )
for change in (
    "generator = torch.Generator().manual_seed(1)",
    "generator = torch.Generator().manual_seed(-1)",
    "generator = torch.manual_seed(0)",
    "query, key = (torch.randn(T, d_k), torch.randn(S, d_k, generator=generator))",
    "query, key = (torch.randn(T, d_k, generator=generator), torch.randn(S, d_k))",
    "value = torch.cat([torch.eye(S), torch.randn(S, 2)], dim=1)",
):
    equivalent("ch04.property", f"`{change}`", "other normal numbers show the mistakes as well")
equivalent("ch04.property", "without `generator = torch.Generator().manual_seed(0)`", "the generator of the cell above is taken")
equivalent(
    "ch04.property",
    "`if result.shape != expected.shape or not torch.allclose(result, expected, atol=0.0002):`",
    "a tolerance between the two that the task names",
)
for change in (
    "value = torch.cat([torch.eye(S), torch.randn(S, 2, generator=generator)], dim=-1)",
    "expected = powers / powers.sum(-1, keepdim=True) @ value",
):
    equivalent("ch04.property", f"`{change}`", "of two axes the last is axis 1")
equivalent(
    "ch04.property",
    "`powers = torch.tensor([[math.exp(q @ k / math.sqrt(d_k)) for k in key] for q in query])`",
    "exp takes a tensor without axes for the number",
)
