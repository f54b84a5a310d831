"""The evidence behind the formulas of ch03_embeddings."""

import math

import numpy as np
import pytest
import sympy as sp
import torch
from torch.nn import functional as F

from course import data
from course.embeddings import (
    analogy,
    austen_vectors,
    embedding,
    questions,
    residual_trace,
    skip_gram_loss,
    tied_logits,
)
from course.model import GPT, Config


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tied_model(seed=0, tied=True) -> GPT:
    torch.manual_seed(seed)
    model = GPT(Config(V=11, d_model=12, n_layers=2, n_heads=2, tied=tied)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.ndim == 2 else 1)
    return model


# ---------------------------------------------------------------- the table


@pytest.mark.receipt("ch03-embedding", "computed")
def test_a_lookup_is_a_product_with_one_hot_rows():
    for V, d, shape in ((1, 1, (1,)), (7, 5, (4,)), (50, 8, (3, 6))):
        E, ids = normal(V, d), torch.randint(V, shape, generator=torch.Generator().manual_seed(1))
        X = (ids[..., None] == torch.arange(V)).double()
        error = float((X @ E - embedding(ids, E)).abs().max())
        assert error <= 0.0
        assert all(
            torch.equal(row, E[i]) for i, row in zip(ids.flatten().tolist(), embedding(ids, E).flatten(0, -2), strict=True)
        )


def test_the_gradient_of_a_lookup_adds_up_repeated_tokens():
    for seed, (V, T) in enumerate(((3, 8), (9, 4), (5, 20))):
        E = normal(V, 4, seed=seed).requires_grad_(True)
        ids, G = torch.randint(V, (T,), generator=torch.Generator().manual_seed(seed)), normal(T, 4, seed=10 + seed)
        (E[ids] * G).sum().backward()
        X = F.one_hot(ids, V).double()
        error = float((X.T @ G - E.grad).abs().max())
        assert error <= 1e-14
        assert float(E.grad[torch.bincount(ids, minlength=V) == 0].abs().sum()) <= 0.0


@pytest.mark.receipt("ch03-share", "derived")
def test_the_share_of_the_table():
    V, L, d = sp.symbols("V L d", positive=True)
    share = V / (V + 12 * L * d)
    assert sp.simplify(V * d / (V * d + 12 * L * d**2) - share) == 0
    for size in (d, L):  # it falls as the model grows, and towards nothing
        assert sp.simplify(sp.diff(share, size)).is_negative and sp.limit(share, size, sp.oo) == 0
    for V, d, L in ((500, 64, 1), (1000, 128, 3), (3000, 192, 2)):  # counted in models with d_ff = 4 d and two matrices
        with torch.device("meta"):
            model = GPT(Config(V, d, L, 4, d_ff=4 * d, ffn="gelu_tanh", tied=True))
            N = sum(p.numel() for p in model.parameters() if p.ndim == 2)  # without the norms
        assert V * d + 12 * L * d**2 == N


@pytest.mark.receipt("ch03-err-share", "erratum")
def test_the_table_is_a_third_of_one_model_and_a_fiftieth_of_another():
    found = []
    for c in (
        Config(50_257, 768, 12, 12, d_ff=3072, norm="layer", position="learned", ffn="gelu_tanh", tied=True, bias=True),
        Config(32_000, 4096, 32, 32, d_ff=11_008),
    ):
        with torch.device("meta"):
            found.append((c.V * c.d_model, sum(p.numel() for p in GPT(c).parameters())))
    assert found == [(38_597_376, 124_439_808), (131_072_000, 6_738_415_616)]
    assert [round(100 * table / whole, 1) for table, whole in found] == [31.0, 1.9]


# ---------------------------------------------------------------- back to tokens


@pytest.mark.receipt("ch03-tied-head", "computed")
def test_a_tied_head_is_a_softmax_of_inner_products():
    h, E = normal(3, 6), normal(9, 6, seed=1)
    p = tied_logits(h, E).softmax(dim=-1)
    for t in range(3):
        powers = [math.exp(math.fsum((h[t] * row).tolist())) for row in E]
        for w in range(9):
            assert abs(float(p[t, w]) - powers[w] / math.fsum(powers)) <= 1e-14


@pytest.mark.receipt("ch03-tied", "computed")
def test_two_gradients_meet_in_a_tied_table():
    ids, targets, kept = torch.tensor([3, 7, 3, 9]), torch.tensor([7, 3, 9, 0]), {}
    for tied in (True, False):
        model = tied_model(tied=tied)
        model.embedding.register_forward_hook(lambda module, args, out: kept.update(vectors=out))
        model.norm.register_forward_hook(lambda module, args, out: kept.update(h=out))
        logits = model(ids[None])[0]
        kept["vectors"].retain_grad()
        F.cross_entropy(logits, targets).backward()
        X, y = F.one_hot(ids, 11).double(), F.one_hot(targets, 11).double()
        expected = X.T @ kept["vectors"].grad[0]
        if tied:
            expected = expected + ((logits.softmax(dim=-1) - y) / 4).T @ kept["h"][0]  # a mean over four places
        error = float((model.embedding.weight.grad - expected).abs().max().detach())
        assert error <= 1e-13
        assert int((model.embedding.weight.grad.abs().sum(dim=1) > 0).sum()) == (11 if tied else 3)


@pytest.mark.receipt("ch03-ends", "measured")
def test_tying_does_not_pay_in_a_short_training():
    record = data.record("embeddings")
    rates = record["settings"]["lm_rates"]
    rows = {(row["model"], row["rate"]): row for row in record["results"]["tied"]["rows"]}
    assert record["mode"] == "full" and len(rows) == 3 * len(rates) and all(len(row["runs"]) == 8 for row in rows.values())
    best = {name: min(rates, key=lambda rate: rows[name, rate]["mean"]) for name in ("tied", "untied", "untied, narrow")}
    assert set(best.values()) == {rates[1]}  # inside the grid, and the same for all
    size = {name: rows[name, rate]["parameters"] for name, rate in best.items()}
    assert abs(size["tied"] / size["untied, narrow"] - 1) < 0.012 and size["untied"] > 1.4 * size["tied"]
    for other, gain in (("untied", 0.12), ("untied, narrow", 0.09)):
        pairs = zip(rows["tied", best["tied"]]["runs"], rows[other, best[other]]["runs"], strict=True)
        gains = [a - b for a, b in pairs]
        assert min(gains) > 0
        mean, half = data.interval(gains, 2)
        assert (mean, half) == (gain, 0.04)


# ---------------------------------------------------------------- neighbours


@pytest.mark.receipt("ch03-sgns", "computed")
def test_the_loss_is_that_of_a_classifier_of_true_and_noise():
    E, U, n, noise = normal(6, 4), normal(6, 4, seed=1), normal(6, 6, seed=2).abs(), normal(6, 6, seed=3).abs()
    scores = (E @ U.T).flatten()
    loss = F.binary_cross_entropy_with_logits
    both = loss(scores, torch.ones(36).double(), n.flatten(), reduction="sum") + loss(
        scores, torch.zeros(36).double(), noise.flatten(), reduction="sum"
    )
    assert abs(float(skip_gram_loss(E, U, n, noise)) - float(both / n.sum())) <= 1e-13


def test_the_best_score_is_the_logarithm_of_true_over_noise():
    s, n, q = sp.symbols("s n q", positive=True)
    sigma = 1 / (1 + sp.exp(-s))
    loss = -(n * sp.log(sigma) + q * sp.log(1 - sigma))
    slope = sp.diff(loss, s)
    assert sp.simplify(slope - ((n + q) * sigma - n)) == 0
    assert sp.simplify(slope.subs(s, sp.log(n / q))) == 0
    assert sp.simplify(sp.diff(slope, s) - (n + q) * sigma * (1 - sigma)) == 0  # positive: the only minimum


# ---------------------------------------------------------------- directions


@pytest.mark.receipt("ch03-analogy", "computed")
def test_a_planted_direction_is_found_and_an_input_comes_first_without_the_rule():
    E = torch.tensor([[2.0, 0, 0, 0], [2.0, 0, 1, 0], [0, 4.0, 0, 0], [0, 2.0, 1, 2], [1.0, 1, -1, 1]], dtype=torch.float64)
    unit = (E.numpy().T / np.linalg.norm(E.numpy(), axis=1)).T
    point = unit[1] - unit[0] + unit[2]
    cosines = unit @ point / np.linalg.norm(point)
    assert cosines.argmax() == 2 and analogy(1, 0, 2, E, exclude=False) == 2
    assert max((w for w in range(5) if w > 2), key=lambda w: cosines[w]) == 3 and analogy(1, 0, 2, E) == 3


def rows() -> dict:
    record = data.record("embeddings")
    assert record["mode"] == "full"
    return {row["kind"]: row for row in record["results"]["analogies"]["rows"]}


@pytest.mark.receipt("ch03-err-analogy", "erratum")
def test_without_exclusion_an_input_comes_out():
    for row in rows().values():
        assert len(row["not excluding"]["runs"]) == 8
        pairs = zip(row["excluding"]["runs"], row["not excluding"]["runs"], strict=True)
        assert all(kept > free for kept, free in pairs)
    gender = rows()["gender"]
    assert gender["questions"] == 182 and round(100 * gender["an input"]["mean"]) == 96
    assert [round(100 * end(gender["an input"]["runs"])) for end in (min, max)] == [95, 98]
    assert max(gender["not excluding"]["runs"]) < 0.05
    assert [round(100 * end(gender["excluding"]["runs"])) for end in (min, max)] == [30, 51]
    others = rows()["past"]["an input"]["runs"] + rows()["house"]["an input"]["runs"]
    assert [round(100 * end(others)) for end in (min, max)] == [64, 91]
    names, E = austen_vectors()  # the stored vectors, asked here and now
    asked = questions("gender", names)
    unit = E.numpy() / np.linalg.norm(E.numpy(), axis=1, keepdims=True)
    free = [int(np.argmax(unit @ (unit[a] - unit[b] + unit[c]))) for a, b, c, _ in asked]
    assert np.mean([x in question[:3] for x, question in zip(free, asked, strict=True)]) > 0.94
    assert "queen" not in names


def test_mismatched_pairs_share_more_than_half_of_a_direction_of_past_or_house():
    """By single loops: the cosine of two differences without a pair in common, of words that are a pair and that are none."""
    names, E = austen_vectors()
    found = {}
    for kind in ("gender", "past", "house"):
        pairs = sorted({(b, a) for a, b, _, _ in questions(kind, names)})
        moves = {(i, k): E[y] - E[x] for i, (x, _) in enumerate(pairs) for k, (_, y) in enumerate(pairs)}
        cosines = {True: [], False: []}
        for (i, k), one in moves.items():
            for (j, m), other in moves.items():
                if (i == k) == (j == m) and {i, k}.isdisjoint({j, m}):
                    cosines[i == k].append(float(one @ other / one.norm() / other.norm()))
        found[kind] = [round(float(np.mean(cosines[own])), 2) for own in (True, False)]
    assert found == {"gender": [0.12, 0.06], "past": [0.39, 0.23], "house": [0.42, 0.27]}


@pytest.mark.receipt("ch03-null", "measured")
def test_the_null_models_explain_gender_or_half_of_the_others():
    def gain(row, null) -> tuple:
        over_seeds = data.interval([a - b for a, b in zip(row["excluding"]["runs"], row[null]["runs"], strict=True)])
        n, left = len(row["pairs"]), row["without one pair"]
        values = [n * over_seeds[0] - (n - 1) * (a - b) for a, b in zip(left["excluding"], left[null], strict=True)]
        assert abs(np.mean(values) - over_seeds[0]) < 0.005  # each question is left out equally often
        return over_seeds, data.interval(values)

    expected = {"gender": (-0.07, 0.08, 0.16), "past": (0.50, 0.05, 0.19), "house": (0.41, 0.10, 0.20)}
    for kind, (mean, seeds, pairs) in expected.items():
        found, over_pairs = gain(rows()[kind], "null")
        assert abs(found[0] - mean) < 0.0055 and abs(found[1] - seeds) < 0.0055 and abs(over_pairs[1] - pairs) < 0.0055
        found, over_pairs = gain(rows()[kind], "mismatched")
        assert found[0] > found[1] and over_pairs[0] > over_pairs[1]
    for kind in ("past", "house"):
        assert 0.45 < rows()[kind]["mismatched"]["mean"] / rows()[kind]["excluding"]["mean"] < 0.55


# ---------------------------------------------------------------- the stream


@pytest.mark.receipt("ch03-stream", "computed")
@pytest.mark.receipt("ch03-split", "computed")
def test_the_stream_is_a_sum_and_so_is_a_logit():
    model, ids, kept = tied_model(3).requires_grad_(False), torch.tensor([[3, 7, 3, 9]]), {}
    with torch.no_grad():
        model.norm.weight.copy_(normal(12, seed=5))
    model.norm.register_forward_hook(lambda module, args, out: kept.update(stream=args[0]))
    logits = model(ids)
    writes = residual_trace(model, ids)
    assert len(writes) == 5 and min(float(write.norm()) for write in writes.values()) > 0.5
    assert float((sum(writes.values()) - kept["stream"]).abs().max()) <= 1e-13
    rms = (kept["stream"].square().mean(dim=-1, keepdim=True) + model.config.eps).sqrt()  # (B, T, 1)
    parts = [(model.norm.weight * write) @ model.embedding.weight.T / rms for write in writes.values()]  # (B, T, V) each
    error = float((sum(parts) - logits).abs().max() / logits.abs().max())
    assert error <= 1e-13


@pytest.mark.receipt("ch03-direct", "computed")
def test_the_gradient_has_a_direct_way():
    """Slopes of the whole model by differences, against the identity and autograd's slopes of what each branch gave."""
    model, ids, kept = tied_model(1).requires_grad_(False), torch.tensor([[3, 7, 3]]), {}
    start = model.embedding.weight[ids].clone()  # (1, T, d)
    for layer, block in enumerate(model.blocks):
        for name in ("attention", "ffn"):
            getattr(block, name).register_forward_hook(lambda module, args, out, key=(layer, name): kept.update({key: out}))
    model.norm.register_forward_hook(lambda module, args, out: kept.update(stream=args[0]))

    def hooked(x, key):
        model.embedding.forward = lambda ids: x
        model(ids)
        return kept[key]

    by_writes = torch.eye(36, dtype=torch.float64)  # (T d, T d)
    writes = [(layer, name) for layer in range(2) for name in ("attention", "ffn")]
    for key in writes:
        by_writes += torch.autograd.functional.jacobian(lambda x, key=key: hooked(x, key), start).reshape(36, 36)
    step, columns = 1e-5, []
    for i in range(36):
        push = step * torch.eye(36, dtype=torch.float64)[i].reshape(start.shape)
        columns.append((hooked(start + push, "stream") - hooked(start - push, "stream")).flatten() / (2 * step))
    by_differences = torch.stack(columns, dim=1)
    assert len(writes) == 4 and float((by_writes - torch.eye(36)).abs().max()) > 0.1
    error = float((by_differences - by_writes).abs().max() / by_differences.abs().max())
    assert error <= 1e-7


@pytest.mark.receipt("ch03-senses", "measured")
def test_two_senses_part_little_more_than_the_sentences_do():
    found = data.record("embeddings")["results"]["encoder"]

    def gap(cosines):
        same, two = (np.array(cosines[kind]) for kind in ("same sense", "two senses"))
        assert same.shape == (12, 8) and two.shape == (24, 8)
        assert np.allclose(same[:, 0], 1, atol=1e-6) and np.allclose(two[:, 0], 1, atol=1e-6)  # the table: one row
        return same[:, -1].reshape(6, 2).mean(1) - two[:, -1].reshape(6, 4).mean(1)  # a value for each word

    own, controls = gap(found["cosines"]), [gap(kept) for kept in found["controls"].values()]
    assert len(found["words"]) == 6 and len(controls) == 3
    control = np.mean(controls, axis=0)
    assert abs(own.mean() - 0.13) < 0.005 and abs(control.mean() - 0.06) < 0.005
    extra = own - control
    mean, half = data.interval(extra, 2)
    assert (mean, half) == (0.07, 0.07) and 0 < np.subtract(*data.interval(extra)) < 0.001
    assert sum(extra > 0.06) == 4 and sum(extra < 0.01) == 2
    assert found["V"] * found["d_model"] / found["parameters"] > 0.5
