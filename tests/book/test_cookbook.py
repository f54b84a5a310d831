"""The recipes against independent oracles: torch's own modules, counters and tensors, and numbers that others published."""

import math

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from course.cookbook import (
    PRESETS,
    RECIPES,
    Config,
    attention_memory,
    attention_overtakes,
    chinchilla_tokens,
    decode_speed,
    forward_flops,
    gpu_days,
    kv_cache,
    main,
    parameters,
    rope_base,
    rope_wavelengths,
    score_spread,
    training_flops,
    training_memory,
    uniform_loss,
    weights_memory,
)

SMALL = Config(vocabulary=101, layers=3, d_model=24, heads=6, kv_heads=2, d_head=8, d_ff=40, dtype="float32")


class Block(nn.Module):
    """One block of torch's modules, for counting on the meta device."""

    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        norm = nn.LayerNorm if c.norm_biases else nn.RMSNorm
        self.norms = nn.ModuleList([norm(c.d_model), norm(c.d_model)])
        sizes = [c.heads, c.key_heads, c.key_heads]
        self.qkv = nn.ModuleList(nn.Linear(c.d_model, n * c.head_width, bias=c.biases) for n in sizes)
        self.out = nn.Linear(c.heads * c.head_width, c.d_model, bias=c.biases)
        self.up = nn.ModuleList(nn.Linear(c.d_model, c.hidden, bias=c.biases) for _ in range(1 + c.gated))
        self.down = nn.Linear(c.hidden, c.d_model, bias=c.biases)

    def forward(self, x):
        h = self.norms[0](x)  # (T, d_model)
        q, k, v = (f(h).view(len(x), -1, self.c.head_width).transpose(0, 1) for f in self.qkv)  # (heads, T, d_head)
        k, v = (t.repeat_interleave(self.c.heads // self.c.key_heads, 0) for t in (k, v))
        out = (q @ k.mT).softmax(-1) @ v  # (heads, T, d_head)
        x = x + self.out(out.transpose(0, 1).flatten(1))
        hidden = [f(self.norms[1](x)) for f in self.up]
        return x + self.down(math.prod(hidden))


def decoder(c: Config) -> tuple[nn.Embedding, nn.Sequential]:
    with torch.device("meta"):
        tables = nn.ModuleList([nn.Embedding(c.vocabulary, c.d_model)])
        if c.positions:
            tables.append(nn.Embedding(c.positions, c.d_model))
        norm = nn.LayerNorm if c.norm_biases else nn.RMSNorm
        head = nn.Linear(c.d_model, c.vocabulary, bias=False)
        if c.tied:
            head.weight = tables[0].weight
        return tables, nn.Sequential(*(Block(c) for _ in range(c.layers)), norm(c.d_model), head)


SHAPES = [SMALL, PRESETS["gpt-2"], PRESETS["mistral-7b"], Config(biases=True, gated=True, positions=7)]


@pytest.mark.parametrize("config", SHAPES)
def test_parameters_are_those_of_torch_modules(config):
    tables, body = decoder(config)
    counted = {p for module in (tables, body) for p in module.parameters()}  # a tied matrix once
    assert parameters(config)["all"] == sum(p.numel() for p in counted)


@pytest.mark.parametrize(("preset", "published"), [
    ("gpt-2", 124_439_808), ("llama-2-7b", 6_738_415_616), ("llama-3-8b", 8_030_261_248), ("llama-3-70b", 70_553_706_496),
    ("mistral-7b", 7_241_732_096),
])  # fmt: skip
def test_presets_have_the_published_number_of_parameters(preset, published):
    assert parameters(PRESETS[preset])["all"] == published


@pytest.mark.parametrize("config", [SMALL, Config(vocabulary=11, layers=2, d_model=12, heads=3, gated=True)])
def test_forward_flops_are_those_that_torch_counts(config):
    _, body = decoder(config)
    with FlopCounterMode(display=False) as counter:
        body(torch.empty(13, config.d_model, device="meta"))
    assert forward_flops(config, tokens=13)["all"] == counter.get_total_flops()


def test_training_is_six_operations_a_weight_and_token():
    _, body = decoder(config := Config(vocabulary=4001, layers=2, d_model=64, heads=4))
    with FlopCounterMode(display=False) as counter:
        body(torch.empty(1, 64, device="meta", requires_grad=True)).sum().backward()
    assert training_flops(config, train_tokens=1)["FLOPs"] == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_days_are_operations_over_what_is_reached():
    config = PRESETS["llama-3-8b"]
    found = gpu_days(config, train_tokens=1e12, peak=1e15, utilisation=0.5)
    assert found["days"] * 86400 * 5e14 == pytest.approx(training_flops(config, 1e12)["FLOPs"])
    assert chinchilla_tokens(config)["tokens"] == 20 * 8_030_261_248


def test_attention_overtakes_where_the_counts_meet():
    for config in (SMALL, PRESETS["llama-3-8b"]):
        length = attention_overtakes(config)["tokens"]
        for tokens, more in ((math.floor(length) - 1, False), (math.ceil(length) + 1, True)):
            one = forward_flops(config, tokens)
            assert (one["scores and averages"] > one["projections"] + one["feed-forward"]) is more
    assert attention_overtakes(Config())["tokens"] == 6 * 768


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16", "int8"])
def test_memory_is_that_of_tensors(dtype):
    kind = getattr(torch, dtype)
    config = Config(vocabulary=11, layers=3, d_model=24, heads=6, kv_heads=2, dtype=dtype)
    cache = torch.empty(2, config.layers, 5, config.kv_heads, 17, config.head_width, dtype=kind, device="meta")
    assert kv_cache(config, tokens=17, batch=5)["bytes"] == cache.nbytes
    maps = torch.empty(5, config.heads, 17, 17, dtype=kind, device="meta")
    assert attention_memory(config, tokens=17, batch=5)["bytes"] == maps.nbytes
    assert weights_memory(config)["bytes"] == torch.empty(parameters(config)["all"], dtype=kind, device="meta").nbytes


def test_known_caches():
    assert kv_cache(PRESETS["llama-2-7b"])["bytes per token"] == 2**19
    assert kv_cache(PRESETS["llama-3-8b"])["bytes per token"] == 2**17


def test_training_memory_is_what_adam_holds():
    weight = nn.Parameter(torch.ones(1000))
    adam = torch.optim.Adam([weight])
    weight.grad = torch.ones(1000)
    adam.step()
    moments = sum(t.nbytes for t in adam.state[weight].values() if t.numel() == 1000)
    mixed = 1000 * (2 + 2) + weight.nbytes + moments
    assert training_memory(Config())["all, GiB"] * 2**30 == pytest.approx(mixed / 1000 * parameters(Config())["all"])


def test_decoding_reads_weights_once_and_every_cache():
    config = PRESETS["llama-3-8b"]
    one, many = (decode_speed(config, tokens=100, batch=b)["bytes read per step"] for b in (1, 9))
    assert many - one == 8 * kv_cache(config, tokens=100)["bytes"]
    read = weights_memory(config)["bytes"] - 2 * config.vocabulary * config.d_model
    assert one - kv_cache(config, tokens=100)["bytes"] == read
    assert decode_speed(config, bandwidth=1e12)["tokens per second"] == pytest.approx(
        1e12 / decode_speed(config)["bytes read per step"]
    )


def test_wavelengths_are_those_of_rotations():
    config = Config(d_model=64, heads=1, theta=10_000.0)
    turns = torch.outer(
        torch.arange(0, 2048, dtype=torch.float64), 10_000.0 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    )
    found = rope_wavelengths(config, tokens=2047)
    assert found["pairs"] == turns.shape[1] == 32
    assert found["pairs that turn fully"] == int((turns[-1] >= 2 * math.pi).sum())
    assert found["longest"] == pytest.approx(47_117, abs=1)  # of d_head 64, not 2πθ
    slow = rope_wavelengths(Config(d_model=64, heads=1, theta=rope_base(config, 4.0)["base"]))
    assert slow["longest"] / found["longest"] == pytest.approx(4, rel=1e-12) and slow["shortest"] == found["shortest"]


def test_spread_is_that_of_drawn_scores():
    config = Config(d_model=128, heads=2)
    generator = torch.Generator().manual_seed(0)
    q, k = (1.5 + 0.5 * torch.randn(200_000, 64, generator=generator) for _ in range(2))
    drawn = (q * k).sum(-1)
    assert score_spread(config, sigma=0.5, mu=1.5)["unscaled"] == pytest.approx(float(drawn.std()), rel=0.01)
    assert score_spread(config)["scaled"] == 1


def test_an_ignorant_model_loses_the_logarithm_of_the_vocabulary():
    loss = nn.functional.cross_entropy(torch.zeros(1, 50257, dtype=torch.float64), torch.tensor([7]))
    assert uniform_loss(Config())["nats per token"] == pytest.approx(float(loss), rel=1e-14)
    assert 2 ** uniform_loss(Config())["bits per token"] == pytest.approx(50257)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_a_command(recipe, capsys):
    assert main([recipe, "--preset", "llama-3-8b"]) == 0
    numbers = capsys.readouterr().out.splitlines()
    assert len(numbers) == len(RECIPES[recipe](PRESETS["llama-3-8b"]))
    doc = RECIPES[recipe].__doc__
    assert doc.splitlines()[0].endswith("?") and len(doc.splitlines()) > 2


def test_sizes_change_a_preset(capsys):
    main(["kv-cache", "--preset", "llama-2-7b", "--kv-heads", "8", "--tokens", "2"])
    assert "262,144" in capsys.readouterr().out  # 2 tokens of 2^17 bytes
    main(["parameters", "--layers", "1", "--d-model", "8", "--heads", "2", "--vocabulary", "10", "--tied", "--gated"])
    assert f"{80 + 4 * 64 + 3 * 8 * 32 + 3 * 8:,}" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "told"), [
    (["--heads", "5"], "5 heads do not divide d_model 768: give d_head"),
    (["--kv-heads", "5"], "kv_heads 5 does not divide 12 heads"),
    (["--layers", "0"], "layers is 0"),
    (["--d-ff", "-1"], "d_ff is -1"),
    (["--theta", "1"], "above 1"),
    (["--dtype", "float12"], "one of float64"),
    (["--tokens", "0"], "tokens is 0; it must be positive"),
])  # fmt: skip
def test_sizes_that_make_no_model_are_refused_in_a_sentence(arguments, told, capsys):
    assert main(["kv-cache", *arguments]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="at most 1"):
        gpu_days(Config(), utilisation=1.5)
    with pytest.raises(ValueError, match="even"):
        rope_wavelengths(Config(d_head=7))
    with pytest.raises(ValueError, match="one pair"):
        rope_base(Config(d_head=2))
    with pytest.raises(ValueError, match="not negative"):
        score_spread(Config(), sigma=-1)
