"""The evidence behind the formulas of ch03_embeddings."""

import math

import numpy as np
import pytest
import sympy as sp
import torch
from torch.nn import functional as F

from course import data
from course.embeddings import analogy, embedding, residual_trace, skip_gram_loss, tied_logits
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
    assert sp.simplify(V * d / (V * d + 12 * L * d**2) - V / (V + 12 * L * d)) == 0
    assert sp.limit(V / (V + 12 * L * d), d, sp.oo) == 0


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
    ends = {row["model"]: row for row in record["results"]["tied"]["rows"]}
    tied, narrow = ends["tied"], ends["untied, narrow"]
    assert record["mode"] == "full" and len(tied["runs"]) == 5
    assert abs(tied["parameters"] / narrow["parameters"] - 1) < 0.02 and ends["untied"]["parameters"] > 1.4 * tied["parameters"]
    for other in (narrow, ends["untied"]):
        assert all(a > b for a, b in zip(tied["runs"], other["runs"], strict=True))
        assert tied["mean"] - tied["half_width"] > other["mean"] + other["half_width"]


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
        assert len(row["not excluding"]["runs"]) == 8 and max(row["not excluding"]["runs"]) < 0.25
        assert min(row["an input"]["runs"]) > 0.6
        assert row["not excluding"]["mean"] + row["not excluding"]["half_width"] < row["excluding"]["mean"]
    assert min(rows()["gender"]["an input"]["runs"]) > 0.94 and max(rows()["gender"]["not excluding"]["runs"]) < 0.05


@pytest.mark.receipt("ch03-null", "measured")
def test_the_null_model_explains_gender_and_not_the_others():
    for kind in ("past", "house"):
        row = rows()[kind]
        assert all(a > b for a, b in zip(row["excluding"]["runs"], row["null"]["runs"], strict=True))
        assert row["null"]["mean"] + row["null"]["half_width"] < row["excluding"]["mean"] - row["excluding"]["half_width"]
        assert max(row["null"]["runs"]) < 0.12 and min(row["excluding"]["runs"]) > 0.2
    gender = rows()["gender"]
    gaps = [a - b for a, b in zip(gender["excluding"]["runs"], gender["null"]["runs"], strict=True)]
    assert sum(gaps) < 0  # the nearest neighbour is right at least as often on average


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
    rho = (kept["stream"].square().mean(dim=-1, keepdim=True) + model.config.eps).sqrt()  # (B, T, 1)
    parts = [(model.norm.weight * write) @ model.embedding.weight.T / rho for write in writes.values()]  # (B, T, V) each
    error = float((sum(parts) - logits).abs().max() / logits.abs().max())
    assert error <= 1e-13


@pytest.mark.receipt("ch03-direct", "computed")
def test_the_gradient_has_a_direct_way():
    model, ids = tied_model(1).requires_grad_(False), torch.tensor([[3, 7, 3]])
    start = model.embedding.weight[ids].clone()

    def written(x, part):
        model.embedding.forward = lambda ids: x
        after, positions = [x], torch.arange(3)
        for block in model.blocks:
            for norm, f in ((block.norm_1, lambda h, b=block: b.attention(h, positions)), (block.norm_2, block.ffn)):
                after.append(after[-1] + f(norm(after[-1])))
        return after[-1] if part is None else after[part + 1] - after[part]

    jacobian = lambda part: torch.autograd.functional.jacobian(lambda x: written(x, part), start).reshape(36, 36)  # noqa: E731
    expected = torch.eye(36, dtype=torch.float64) + sum(jacobian(part) for part in range(4))
    error = float((jacobian(None) - expected).abs().max() / jacobian(None).abs().max())
    assert error <= 1e-12
    assert float(jacobian(0).abs().max()) > 1e-3


@pytest.mark.receipt("ch03-senses", "measured")
def test_two_senses_part_with_depth_and_one_sense_does_not():
    found = data.record("embeddings")["results"]["encoder"]
    same, two = (np.array(found["cosines"][kind]) for kind in ("same sense", "two senses"))
    assert len(found["words"]) == 6 and same.shape == (12, 8) and two.shape == (24, 8)
    assert np.allclose(same[:, 0], 1, atol=1e-6) and np.allclose(two[:, 0], 1, atol=1e-6)  # the table: one row
    assert same[:, -1].mean() > 0.85 and two[:, -1].mean() < 0.8
    parts = (same[:, -1][:, None] > two[:, -1][None]).mean()  # how often a pair of one sense is the nearer one
    assert parts > 0.9
    assert found["V"] * found["d_model"] / found["parameters"] > 0.5
