"""The evidence behind the formulas of ch09_block."""

import math

import pytest
import sympy as sp
import torch
from torch.nn import functional as F

from course import data
from course.block import causal_mask
from course.model import GPT, Config, attend

EPS = torch.finfo(torch.float64).eps


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def model_of(seed, **sizes) -> GPT:
    """A model with random numbers in all its parameters, in float64."""
    model, generator = (
        GPT(Config(**({"V": 23, "d_model": 24, "n_heads": 4} | sizes))).double(),
        torch.Generator().manual_seed(seed),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64) + (parameter.ndim == 1))
    return model.requires_grad_(False)


def ids_of(T, V=23, seed=0):
    return torch.randint(V, (1, T), generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- the block


@pytest.mark.receipt("ch09-first-norm", "computed")
@pytest.mark.receipt("ch09-attention", "computed")
@pytest.mark.receipt("ch09-second-norm", "computed")
@pytest.mark.receipt("ch09-ffn", "computed")
def test_the_four_lines_of_the_block():
    """With torch's norms, and torch's attention and activation between plain matrix products."""
    for seed, (norm, ffn) in enumerate([("layer", "gelu"), ("rms", "gelu"), ("layer", "swiglu")]):
        model = model_of(seed, norm=norm, ffn=ffn, position="learned")
        b, x = model.blocks[0], 3 * normal(2, 7, 24, seed=seed)

        def normed(of, x, norm=norm):
            return (
                F.layer_norm(x, (24,), of.weight, of.bias, of.eps) if norm == "layer" else F.rms_norm(x, (24,), of.weight, of.eps)
            )

        h1 = normed(b.norm_1, x)
        heads = [
            (h1 @ each.weight.T).reshape(2, 7, 4, 6).permute(0, 2, 1, 3)
            for each in (b.attention.query, b.attention.key, b.attention.value)
        ]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True).permute(0, 2, 1, 3).reshape(2, 7, 24)
        h2 = x + mixed @ b.attention.out.weight.T
        h3 = normed(b.norm_2, h2)
        up = h3 @ b.ffn.up.weight.T
        hidden = F.gelu(up) if ffn == "gelu" else F.silu(h3 @ b.ffn.gate.weight.T) * up
        y = h2 + hidden @ b.ffn.down.weight.T
        assert float((b(x, torch.arange(7)) - y).abs().max()) <= 1e-11
        assert float((y - h2).abs().max()) > 0.1 and float((h2 - x).abs().max()) > 0.1


@pytest.mark.receipt("ch09-final-norm", "erratum")
def test_a_block_ends_with_a_stream_that_is_not_normed():
    model = model_of(0, n_layers=4)
    kept = {}
    model.norm.register_forward_hook(lambda module, args, out: kept.update(stream=args[0], normed=out / module.weight))
    model(ids_of(20))
    assert float(kept["stream"].square().mean(dim=-1).min()) > 10
    error = float((kept["normed"].square().mean(dim=-1) - 1).abs().max())
    assert error <= 1e-5


# ---------------------------------------------------------------- the mask


@pytest.mark.receipt("ch09-causal-mask", "computed")
def test_the_masked_weights_are_shares_of_what_may_be_seen():
    for T in (1, 2, 9):
        query, key = 2 * normal(T, 8, seed=T), 2 * normal(T, 8, seed=100 + T)
        weights = (query @ key.T / math.sqrt(8) + causal_mask(T).double()).softmax(dim=-1)
        for i in range(T):
            powers = [math.exp(math.fsum((query[i] * key[j]).tolist()) / math.sqrt(8)) for j in range(i + 1)]
            for j in range(T):
                expected = powers[j] / math.fsum(powers) if j <= i else 0.0
                assert abs(float(weights[i, j]) - expected) <= 1e-13


@pytest.mark.receipt("ch09-causal", "computed")
def test_no_logit_depends_on_a_later_token():
    for seed, sizes in enumerate(({"n_layers": 3}, {"norm": "layer", "position": "learned", "ffn": "gelu"}, {"n_kv_heads": 1})):
        model, ids = model_of(seed, **sizes), ids_of(6, seed=seed)
        table = model.embedding.weight

        def logits(vectors, model=model, ids=ids):
            model.embedding.forward = lambda ids: vectors[None]
            return model(ids)[0]

        jacobian = torch.autograd.functional.jacobian(logits, table[ids[0]])  # (T, V, T, d_model)
        sizes_of = jacobian.abs().amax(dim=(1, 3))  # (T, T)
        assert float(sizes_of.triu(1).max()) <= 0.0
        assert float(sizes_of.tril()[sizes_of.tril() > 0].min()) > 1e-6 and int((sizes_of > 0).sum()) == 21


@pytest.mark.receipt("ch09-mask-inside", "erratum")
def test_a_finite_mask_inside_the_division_is_another_mask():
    scores, finite, infinite = normal(5, 5), normal(5, 5, seed=1), causal_mask(5).double()
    inside = lambda M: ((scores + M) / 8).softmax(dim=-1)  # noqa: E731
    outside = lambda M: (scores / 8 + M).softmax(dim=-1)  # noqa: E731
    assert float((inside(infinite) - outside(infinite)).abs().max()) <= 4 * EPS
    assert float((inside(finite) - outside(finite)).abs().max()) > 0.1
    assert float((inside(8 * finite) - outside(finite)).abs().max()) <= 10 * EPS


@pytest.mark.receipt("ch09-finite-mask", "erratum")
def test_a_large_number_is_no_cure():
    assert torch.tensor(-1e9).half().item() == -math.inf
    row = normal(4).float()
    assert bool((row - math.inf).softmax(dim=-1).isnan().all())
    error = float(((row - 1e9).softmax(dim=-1) - 0.25).abs().max())
    assert error <= 1e-7
    x = normal(3, 3).requires_grad_(True)
    (x + causal_mask(3).double()).softmax(dim=-1).square().sum().backward()
    assert bool(x.grad.isfinite().all())  # a row that may see something has no NaN, forward or backward


@pytest.mark.receipt("ch09-after-softmax", "erratum")
def test_a_mask_after_the_softmax_leaks():
    scores = normal(4, 4)
    other = scores.clone()
    other[:, 3] += 3.0  # the last key only
    after = lambda s: s.softmax(dim=-1).tril()  # noqa: E731
    before = lambda s: (s + causal_mask(4).double()).softmax(dim=-1)  # noqa: E731
    assert float((after(other) - after(scores))[:3].abs().amax(dim=-1).min()) > 0.02
    assert float((before(other) - before(scores))[:3].abs().max()) <= 0.0


# ---------------------------------------------------------------- heads, head, count


@pytest.mark.receipt("ch09-gqa", "computed")
def test_a_query_head_reads_the_key_head_of_its_group():
    for H, H_kv in ((4, 2), (6, 3), (6, 1), (3, 3), (8, 2)):
        query, key, value = normal(1, H, 5, 4, seed=1), normal(1, H_kv, 5, 4, seed=2), normal(1, H_kv, 5, 4, seed=3)
        found = attend(query, key, value)
        for h in range(H):
            g = h * H_kv // H
            alone = F.scaled_dot_product_attention(query[:, h], key[:, g], value[:, g], is_causal=True)
            assert float((found[:, h] - alone).abs().max()) <= 1e-13


@pytest.mark.receipt("ch09-tied", "computed")
def test_tied_logits_are_inner_products_with_the_embeddings():
    model, kept = model_of(5, tied=True), {}
    model.norm.register_forward_hook(lambda module, args, out: kept.update(stream=args[0]))
    logits = model(ids_of(6))
    normed = F.rms_norm(kept["stream"], (24,), model.norm.weight, model.norm.eps)
    for t in range(6):
        for token in range(23):
            expected = math.fsum((normed[0, t] * model.embedding.weight[token]).tolist())
            assert abs(float(logits[0, t, token]) - expected) <= 1e-12 * max(1.0, abs(expected))


@pytest.mark.receipt("ch09-count", "computed")
def test_the_formula_counts_every_parameter():
    V, L, d, H, K, f = sp.symbols("V L d H K f", positive=True)
    N = 2 * V * d + L * (2 * d**2 + 2 * d * K * d / H + 3 * d * f + 2 * d) + d
    for sizes in ((23, 2, 24, 4, 2, 10), (50, 1, 64, 8, 1, 33), (128_256, 32, 4096, 32, 8, 14_336)):
        with torch.device("meta"):
            model = GPT(Config(sizes[0], sizes[2], sizes[1], *sizes[3:]))
        counted = sum(parameter.numel() for parameter in model.parameters())
        error = abs(int(N.subs(dict(zip((V, L, d, H, K, f), sizes, strict=True)))) - counted)
        assert error <= 0
    assert counted == 8_030_261_248


# ---------------------------------------------------------------- copying


@pytest.mark.receipt("ch09-copy", "measured")
def test_two_layers_copy_and_one_does_not():
    record = data.record("block")
    rows = {row["model"]: row for row in record["results"]}
    assert record["mode"] == "full" and len(record["seeds"]) == 8
    for name in ("1 layer", "1 layer, twice as wide"):
        assert len(rows[name]["accuracy"]) == 8 and max(rows[name]["accuracy"]) < 0.35
        assert rows[name]["mean"] - rows[name]["half_width"] > rows[name]["best_offset"]  # better than one distance
    for name in ("2 layers", "3 layers"):
        assert min(rows[name]["accuracy"]) > 0.98
    assert min(rows["1 layer, always 12 tokens"]["accuracy"]) > 0.85
