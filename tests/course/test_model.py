"""The course's GPT against Hugging Face's Llama and GPT-2 with the same random weights, and what a decoder must hold."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from course import cookbook
from course.model import GPT, Attention, Config, FeedForward, KVCache, RMSNorm, attend

os.environ["HF_HUB_OFFLINE"] = "1"

LLAMA = Config(V=61, d_model=48, n_layers=3, n_heads=6, n_kv_heads=2, d_ff=40, theta=500.0, eps=1e-6)
GPT2 = Config(
    V=61, d_model=48, n_layers=3, n_heads=4, T_max=32, norm="layer", position="learned", ffn="gelu_tanh", tied=True, bias=True
)  # fmt: skip
SHAPES = {
    "llama": LLAMA,
    "gpt-2": GPT2,
    "llama, tied, no groups": replace(LLAMA, tied=True, n_kv_heads=0),
    "one head for all queries, biases": replace(LLAMA, n_kv_heads=1, bias=True, d_ff=0),
    "gpt-2, exact GELU, untied": replace(GPT2, ffn="gelu", tied=False, bias=False, n_kv_heads=2),
}
every_shape = pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)


def model_of(config: Config, dtype=torch.float64, seed=0) -> GPT:
    """Every parameter is random, norms and biases too: nothing is hidden by a one or a zero."""
    model = GPT(config).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64) + (parameter.ndim == 1))
    return model.requires_grad_(False)


def ids_of(B: int, T: int, V: int = 61, seed=1) -> torch.Tensor:
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- equal to Hugging Face's


def loaded(theirs, state: dict[str, torch.Tensor]):
    """Their model with our weights, none rounded."""
    theirs.to(next(iter(state.values())).dtype).load_state_dict(state)
    return theirs.eval()


def llama_of(model: GPT):
    from transformers import LlamaConfig, LlamaForCausalLM

    c = model.config
    theirs = LlamaForCausalLM(LlamaConfig(
        vocab_size=c.V, hidden_size=c.d_model, intermediate_size=c.hidden, num_hidden_layers=c.n_layers,
        num_attention_heads=c.n_heads, num_key_value_heads=c.kv_heads, rms_norm_eps=c.eps, tie_word_embeddings=c.tied,
        rope_parameters={"rope_type": "default", "rope_theta": c.theta}, attn_implementation="eager",
    ))  # fmt: skip
    names = {
        "embedding.": "model.embed_tokens.", "blocks.": "model.layers.", "norm_1": "input_layernorm", "norm_2": "post_attention_layernorm",
        "attention.query": "self_attn.q_proj", "attention.key": "self_attn.k_proj", "attention.value": "self_attn.v_proj",
        "attention.out": "self_attn.o_proj", "ffn.": "mlp.", ".gate": ".gate_proj", ".up": ".up_proj", ".down": ".down_proj",
        "head.": "lm_head.",
    }  # fmt: skip
    state = {}
    for name, tensor in model.state_dict().items():
        for ours, other in names.items():
            name = name.replace(ours, other)
        state["model.norm.weight" if name == "norm.weight" else name] = tensor
    return loaded(theirs, state)


def gpt2_of(model: GPT):
    from transformers import GPT2Config, GPT2LMHeadModel

    c = model.config
    theirs = GPT2LMHeadModel(GPT2Config(
        vocab_size=c.V, n_positions=c.T_max, n_embd=c.d_model, n_layer=c.n_layers, n_head=c.n_heads, n_inner=c.hidden,
        activation_function={"gelu_tanh": "gelu_new", "gelu": "gelu"}[c.ffn], layer_norm_epsilon=c.eps,
        tie_word_embeddings=c.tied, attn_implementation="eager", bos_token_id=0, eos_token_id=0,
    ))  # fmt: skip
    state = {"transformer.wte.weight": model.embedding.weight, "transformer.wpe.weight": model.position.weight}
    state |= {f"transformer.ln_f.{kind}": getattr(model.norm, kind) for kind in ("weight", "bias")}
    state |= {"lm_head.weight": model.head.weight}
    for i, block in enumerate(model.blocks):
        a, f, into = block.attention, block.ffn, f"transformer.h.{i}."
        for kind in ("weight", "bias"):  # their layers store W where nn.Linear stores its transpose
            state[f"{into}ln_1.{kind}"], state[f"{into}ln_2.{kind}"] = getattr(block.norm_1, kind), getattr(block.norm_2, kind)
            state[f"{into}attn.c_attn.{kind}"] = torch.cat([getattr(part, kind) for part in (a.query, a.key, a.value)]).t()
            for name, part in {"attn.c_proj": a.out, "mlp.c_fc": f.up, "mlp.c_proj": f.down}.items():
                state[f"{into}{name}.{kind}"] = getattr(part, kind).t()
    return loaded(theirs, state)


PAIRS = [(LLAMA, llama_of), (SHAPES["llama, tied, no groups"], llama_of), (replace(LLAMA, n_kv_heads=1, d_ff=0), llama_of)]
PAIRS += [(GPT2, gpt2_of), (replace(GPT2, ffn="gelu"), gpt2_of)]
every_pair = pytest.mark.parametrize(("config", "theirs_of"), PAIRS, ids=["llama", "tied", "one kv head", "gpt-2", "exact GELU"])


@every_pair
def test_float64_logits_are_hugging_faces(config, theirs_of, full_width):
    model, ids = model_of(config), ids_of(2, 31)
    full_width(torch.float64)
    theirs = theirs_of(model)(ids).logits.detach()
    assert theirs.dtype == torch.float64 and theirs.std() > 0.1
    assert torch.allclose(model(ids), theirs, rtol=1e-11, atol=1e-11)


@every_pair
def test_float32_logits_are_hugging_faces(config, theirs_of):
    model, ids = model_of(config, torch.float32), ids_of(2, 31)
    theirs = theirs_of(model)(ids).logits.detach()
    assert torch.allclose(model(ids), theirs, rtol=1e-4, atol=1e-4 * theirs.std().item())


@every_pair
def test_gradients_are_hugging_faces(config, theirs_of, full_width):
    model, ids = model_of(config).requires_grad_(True), ids_of(2, 9)
    full_width(torch.float64)
    theirs = theirs_of(model)
    for logits in (model(ids), theirs(ids).logits):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    matrix = {llama_of: "model.layers.0.mlp.up_proj", gpt2_of: "transformer.h.0.mlp.c_fc"}[theirs_of]
    expected, found = theirs.get_submodule(matrix).weight.grad, model.blocks[0].ffn.up.weight.grad
    assert torch.allclose(found if theirs_of is llama_of else found.T, expected, rtol=1e-9, atol=1e-12)
    assert torch.allclose(model.embedding.weight.grad, theirs.get_input_embeddings().weight.grad, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- parts


def test_rms_norm_is_torchs_and_averages_half_precision_in_float32():
    x = torch.randn(3, 5, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours, theirs = RMSNorm(16, 1e-3).double(), torch.nn.RMSNorm(16, 1e-3).double()
    assert torch.allclose(ours(x), theirs(x), rtol=0, atol=1e-13)
    large = torch.full((1, 16), 300.0, dtype=torch.float16)  # its square overflows
    assert torch.equal(RMSNorm(16).half()(large), torch.ones_like(large))


@pytest.mark.parametrize(("T", "S"), [(6, 6), (1, 6), (3, 8), (1, 1)])
def test_attend_is_torchs_grouped_attention(T, S):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, h, n, 4, generator=generator, dtype=torch.float64) for h, n in ((6, T), (3, S), (3, S)))
    seen = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    oracle = F.scaled_dot_product_attention(query, key, value, attn_mask=seen, enable_gqa=True)
    assert torch.allclose(attend(query, key, value), oracle, rtol=0, atol=1e-13)


def test_the_usual_hidden_widths():
    assert Config(V=9, ffn="gelu").hidden == 256
    assert Config(V=9).hidden == 176  # 8/3 · 64 = 170.7, up to a multiple of 8
    assert Config(V=9, d_ff=10).hidden == 10
    assert FeedForward(Config(V=9, d_ff=10)).down.weight.shape == (64, 10)


# ---------------------------------------------------------------- cache


@every_shape
@pytest.mark.parametrize("chunks", [[1] * 12, [5, 1, 1, 5], [12], [11, 1], [2, 7, 3]], ids=str)
def test_a_cache_changes_no_logit(config, chunks):
    model, ids = model_of(config), ids_of(2, 12)
    cache, parts = model.cache(), []
    for part in ids.split(chunks, dim=1):
        parts.append(model(part, cache))
    assert torch.allclose(torch.cat(parts, dim=1), model(ids), rtol=1e-11, atol=1e-11)
    assert len(cache) == 12


def test_an_empty_cache_is_a_cache():
    assert model_of(LLAMA).cache() and len(KVCache(2)) == 0 and KVCache(2).keys == KVCache(2).values == []


@pytest.mark.parametrize("at", [0, 4])
def test_a_pass_that_fails_leaves_the_cache_as_it_was(at, monkeypatch):
    model, ids = model_of(LLAMA), ids_of(2, 9)
    cache = model.cache()
    if at:
        model(ids[:, :at], cache)
    with monkeypatch.context() as failing:
        failing.setattr(model.blocks[-1].ffn, "forward", lambda x: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(ids[:, at : at + 3], cache)
    assert len(cache) == at
    rest = model(ids[:, at:], cache)
    assert torch.allclose(rest, model(ids)[:, at:], rtol=1e-11, atol=1e-11) and len(cache) == 9


@torch.no_grad()
def test_a_cache_can_be_cut_and_copied():
    model, ids = model_of(LLAMA), ids_of(2, 12)
    model(ids[:, :8], cache := model.cache())
    twin = cache.copy()
    model(ids_of(2, 3) + 1, twin)
    twin.cut(6)
    for kept in (cache, twin):
        n = len(kept)
        assert torch.allclose(model(ids[:, n:], kept), model(ids)[:, n:], rtol=1e-11, atol=1e-11)
    cache.cut(20)
    assert len(cache) == 12
    cache.cut(0)
    assert torch.equal(model(ids[:1], cache), model(ids[:1]))  # of another number of sequences
    with pytest.raises(ValueError, match="a number of tokens, got -1"):
        cache.cut(-1)


@torch.no_grad()
def test_a_step_copies_no_token_but_the_new_one():
    model = model_of(LLAMA)
    model(ids_of(1, 8), cache := model.cache())
    places = []
    for _ in range(200):
        model(ids_of(1, 1), cache)
        places.append(cache.keys[0].data_ptr())
    assert len(set(places)) <= 5  # rooms: 8, 17, 35, … tokens


def test_a_cache_keeps_what_gradients_need():
    model, ids = model_of(LLAMA).requires_grad_(), ids_of(2, 6)
    cache = model.cache()
    parts = torch.cat([model(ids[:, :3], cache), model(ids[:, 3:4], cache), model(ids[:, 4:], cache)], dim=1)
    weight = model.blocks[0].attention.key.weight
    (ours,), (whole,) = (torch.autograd.grad(x.square().sum(), weight) for x in (parts, model(ids)))
    assert torch.allclose(ours, whole, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_the_norm_gives_back_the_dtype_of_x(dtype):
    norm, x = RMSNorm(8), torch.randn(3, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(0.5, 2, 8))
    exact = torch.nn.functional.rms_norm(x.double(), (8,), norm.weight.double(), 1e-5)
    assert norm(x).dtype == dtype and torch.allclose(norm(x).double(), exact, rtol=torch.finfo(dtype).eps, atol=0)


def test_bytes_of_the_cache_are_the_cookbooks():
    for dtype, name in ((torch.float32, "float32"), (torch.bfloat16, "bfloat16")):
        model = model_of(LLAMA, dtype)
        model(ids_of(3, 7), cache := model.cache())
        assert cache.nbytes == cookbook.kv_cache(LLAMA.shape(name), tokens=7, batch=3)["bytes"]
    assert len(KVCache(2)) == KVCache(2).nbytes == 0


# ---------------------------------------------------------------- causality, gradients, sizes


@every_shape
def test_a_later_token_changes_no_earlier_logit(config):
    model, ids = model_of(config), ids_of(1, 9)
    before = model(ids)
    for t in range(1, 9):
        changed = ids.clone()
        changed[0, t] = (changed[0, t] + 1) % config.V
        moved = (model(changed) - before).abs().amax(dim=-1)[0]  # (T,)
        assert moved[:t].max() == 0 and moved[t:].min() > 0


@every_shape
def test_every_parameter_gets_a_gradient(config):
    model, ids = model_of(config).requires_grad_(True), ids_of(2, 12)
    F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    for name, parameter in model.named_parameters():
        if not name.endswith("key.bias") or config.position == "rope":  # what all keys share, softmax takes away
            assert parameter.grad.abs().max() > 1e-9, name


def test_gradients_are_those_of_finite_differences():
    config = Config(V=7, d_model=8, n_layers=1, n_heads=2, n_kv_heads=1, d_ff=6)
    model, ids = model_of(config), ids_of(1, 4, V=7)
    norm = model.blocks[0].norm_2.weight
    assert torch.autograd.gradcheck(
        lambda w: torch.func.functional_call(model, {"blocks.0.norm_2.weight": w}, (ids,)), norm.clone().requires_grad_(True)
    )


@every_shape
def test_the_cookbook_counts_the_parameters(config):
    model, counted = GPT(config), cookbook.parameters(config.shape())
    assert sum(parameter.numel() for parameter in model.parameters()) == counted["all"]
    assert sum(p.numel() for block in model.blocks for p in block.attention.parameters()) == counted["attention"]
    assert sum(p.numel() for block in model.blocks for p in block.ffn.parameters()) == counted["feed-forward"]


@pytest.mark.parametrize(("config", "preset"), [
    (Config(50257, 768, 12, 12, norm="layer", position="learned", ffn="gelu_tanh", tied=True, bias=True), "gpt-2"),
    (Config(128256, 4096, 32, 32, 8, 14336, theta=500_000.0), "llama-3-8b"),
])  # fmt: skip
def test_known_models_have_the_shape_of_the_cookbooks_presets(config, preset):
    known = cookbook.PRESETS[preset]
    assert cookbook.parameters(config.shape()) == cookbook.parameters(known)
    assert cookbook.forward_flops(config.shape(known.dtype)) == cookbook.forward_flops(known)
    with torch.device("meta"):
        model = GPT(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == cookbook.parameters(known)["all"]


def test_weights_start_small_and_the_tied_head_is_one_matrix():
    torch.manual_seed(0)
    config = Config(V=500, d_model=128, n_layers=8, n_heads=4, bias=True, tied=True)
    model, block = GPT(config), None
    assert model.head.weight is model.embedding.weight
    for block in model.blocks:
        assert block.attention.query.weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert block.attention.out.weight.std().item() == pytest.approx(0.005, rel=0.05)  # 0.02 / √16
        assert block.ffn.down.weight.std().item() == pytest.approx(0.005, rel=0.05)
        assert not block.ffn.up.bias.any() and (block.norm_1.weight == 1).all()
    ids = ids_of(4, 32, V=500)
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids_of(4, 32, V=500, seed=2).flatten())
    assert loss.item() == pytest.approx(cookbook.uniform_loss(config.shape())["nats per token"], abs=0.1)


def test_it_learns_to_repeat_a_sequence():
    torch.manual_seed(0)
    model, ids = GPT(Config(V=11, d_model=32, n_layers=1, n_heads=2)), ids_of(1, 16, V=11)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = F.cross_entropy(model(ids)[0, :-1], ids[0, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(("sizes", "message"), [
    ({"V": 0}, "V must be at least 1"),
    ({"norm": "batch"}, "norm must be one of rms, layer, got 'batch'"),
    ({"position": "alibi"}, "position must be one of"),
    ({"ffn": "relu"}, "ffn must be one of"),
    ({"n_heads": 5}, "5 heads do not divide d_model = 64"),
    ({"n_kv_heads": 3}, "n_kv_heads = 3 does not divide 4 heads"),
    ({"n_kv_heads": -1}, "n_kv_heads = -1"),
    ({"d_model": 12}, "d_model / n_heads is 3: RoPE turns pairs"),
    ({"d_ff": -1}, "d_ff must be"),
])  # fmt: skip
def test_a_config_that_makes_no_model_says_why(sizes, message):
    with pytest.raises(ValueError, match=message):
        Config(**({"V": 9} | sizes))


@pytest.mark.parametrize(("ids", "error", "message"), [
    (torch.zeros(1, 3), TypeError, "ids must be integers"),
    (torch.zeros(3, dtype=torch.int64), ValueError, r"shape \(B, T\)"),
    (torch.zeros(1, 0, dtype=torch.int64), ValueError, r"at least one token each, got \(1, 0\)"),
    (torch.tensor([[0, 61]]), ValueError, "between 0 and V − 1 = 60, got 0 to 61"),
    (torch.tensor([[-1, 4]]), ValueError, "got -1 to 4"),
    (torch.zeros(1, 33, dtype=torch.int64), ValueError, "33 tokens are more than the T_max = 32"),
])  # fmt: skip
def test_ids_that_cannot_be_read_say_why(ids, error, message):
    with pytest.raises(error, match=message):
        GPT(GPT2)(ids)


def test_a_cache_of_other_sequences_says_why():
    model = GPT(GPT2)
    model(ids_of(2, 30), cache := model.cache())
    with pytest.raises(ValueError, match="the cache is of 2 sequences, ids of 1"):
        model(ids_of(1, 1), cache)
    with pytest.raises(ValueError, match="33 tokens are more"):
        model(ids_of(2, 3), cache)


def test_the_course_does_not_import_transformers():
    code = "import sys, course.model; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_attention_alone_can_be_used():
    attention = Attention(LLAMA, layer=0)
    assert attention(torch.zeros(2, 5, 48), torch.arange(5)).shape == (2, 5, 48)
