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

        x_hat = normed(b.norm_1, x)
        heads = [
            (x_hat @ each.weight.T).reshape(2, 7, 4, 6).permute(0, 2, 1, 3)
            for each in (b.attention.query, b.attention.key, b.attention.value)
        ]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True).permute(0, 2, 1, 3).reshape(2, 7, 24)
        h1 = x + mixed @ b.attention.out.weight.T
        h1_hat = normed(b.norm_2, h1)
        up = h1_hat @ b.ffn.up.weight.T
        hidden = F.gelu(up) if ffn == "gelu" else F.silu(h1_hat @ b.ffn.gate.weight.T) * up
        y = h1 + hidden @ b.ffn.down.weight.T
        assert float((b(x, torch.arange(7)) - y).abs().max()) <= 1e-11
        assert float((y - h1).abs().max()) > 0.1 and float((h1 - x).abs().max()) > 0.1


@pytest.mark.receipt("ch09-first-norm", "computed")
@pytest.mark.receipt("ch09-attention", "computed")
@pytest.mark.receipt("ch09-second-norm", "computed")
@pytest.mark.receipt("ch09-ffn", "computed")
def test_the_four_lines_are_torchs_pre_norm_layer():
    layer = torch.nn.TransformerEncoderLayer(24, 4, 40, 0.0, "gelu", batch_first=True, norm_first=True).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64) + (parameter.ndim == 1))
    x, future = 3 * normal(2, 7, 24), torch.ones(7, 7, dtype=torch.bool).triu(1)
    x_hat = F.layer_norm(x, (24,), layer.norm1.weight, layer.norm1.bias, layer.norm1.eps)
    h1 = x + layer.self_attn(x_hat, x_hat, x_hat, attn_mask=future, need_weights=False)[0]
    h1_hat = F.layer_norm(h1, (24,), layer.norm2.weight, layer.norm2.bias, layer.norm2.eps)
    y = h1 + layer.linear2(F.gelu(layer.linear1(h1_hat)))
    assert float((layer(x, src_mask=future) - y).detach().abs().max()) <= 1e-11


@pytest.mark.receipt("ch09-final-norm", "erratum")
def test_a_block_ends_with_a_stream_that_is_not_normed():
    model = model_of(0, n_layers=4)
    kept = {}
    model.norm.register_forward_hook(lambda module, args, out: kept.update(stream=args[0], normed=out / module.weight))
    model(ids_of(20))
    assert float(kept["stream"].square().mean(dim=-1).min()) > 10
    error = float((kept["normed"].square().mean(dim=-1) - 1).abs().max())
    assert error <= 1e-5


def llama(V, L, d, H, H_kv, d_ff, d_head=None):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": V, "hidden_size": d, "intermediate_size": d_ff, "num_hidden_layers": L}
    heads = {"num_attention_heads": H, "num_key_value_heads": H_kv, "head_dim": d_head or d // H}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, tie_word_embeddings=False))


@pytest.mark.receipt("ch09-final-norm", "erratum")
def test_known_models_have_a_norm_after_their_last_block():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = GPT2Config(vocab_size=23, n_positions=16, n_embd=24, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    for model, norm in ((llama(23, 2, 24, 4, 2, 10), "model.norm"), (GPT2LMHeadModel(sizes), "transformer.ln_f")):
        ids, model = ids_of(9), model.eval()
        with torch.no_grad():
            before = model(ids).logits
            model.get_submodule(norm).forward = lambda x: x  # the last norm taken out
            assert float((model(ids).logits - before).abs().max()) > 0.1


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
    row = torch.tensor([30.0, -30.0, 0.5, 7.0])
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
        torchs = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        assert float((found - torchs).abs().max()) <= 1e-13


@pytest.mark.receipt("ch09-latent", "computed")
def test_latent_attention_keeps_two_short_vectors_a_token():
    """What Hugging Face's models have in their cache after five tokens, in numbers a token and layer."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, DynamicCache

    def kept(model):
        cache = DynamicCache(config=model.config)
        with torch.no_grad():
            model(ids_of(5), cache=cache)
        layers = [layer.keys.numel() + layer.values.numel() for layer in cache.layers]
        assert len(layers) == 2 and len(set(layers)) == 1
        return layers[0] / 5

    heads = {"num_hidden_layers": 2, "first_k_dense_replace": 2, "vocab_size": 23, "hidden_size": 24, "intermediate_size": 10}
    for H, latent, rotated in ((4, 10, 6), (8, 16, 4), (128, 512, 64)):
        sizes = {
            "kv_lora_rank": latent,
            "qk_rope_head_dim": rotated,
            "q_lora_rank": 8,
            "num_attention_heads": H,
            "num_key_value_heads": H,
        }
        assert kept(DeepseekV3ForCausalLM(DeepseekV3Config(**heads, **sizes)).eval()) == latent + rotated
    for H, H_kv, d_head in ((4, 2, 6), (8, 1, 4), (128, 128, 128)):
        assert kept(llama(23, 2, max(24, H), H, H_kv, 10, d_head).eval()) == 2 * H_kv * d_head


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
            model, theirs = GPT(Config(sizes[0], sizes[2], sizes[1], *sizes[3:])), llama(*sizes)
        counted = sum(parameter.numel() for parameter in model.parameters())
        error = abs(int(N.subs(dict(zip((V, L, d, H, K, f), sizes, strict=True)))) - counted)
        assert error <= 0 and sum(parameter.numel() for parameter in theirs.parameters()) == counted
    assert counted == 8_030_261_248


# ---------------------------------------------------------------- copying


@pytest.mark.receipt("ch09-copy", "measured")
def test_two_layers_copy_and_one_does_not():
    record = data.record("block")
    rows = {row["model"]: row for row in record["results"]}
    assert record["mode"] == "full" and len(record["seeds"]) == 8
    for name in ("1 layer", "1 layer, twice as wide"):
        assert len(rows[name]["accuracy"]) == 8 and max(rows[name]["accuracy"]) < 0.29
        assert min(rows[name]["accuracy"]) > rows[name]["best_offset"] > 0.17  # better than one distance
    assert min(rows["2 layers"]["accuracy"]) > 0.99 and min(rows["3 layers"]["accuracy"]) > 0.98
    one_length = sorted(rows["1 layer, always 12 tokens"]["accuracy"])
    assert 0.89 < one_length[0] < 0.9 and one_length[1] > 0.99
