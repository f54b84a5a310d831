"""The profile of a model against counters, loops and Hugging Face's attention, and what it says to what makes none."""

import json
import math
import re

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course import cookbook, pretrained, profile
from course.model import GPT, Config
from tests.course.test_model import ids_of, model_of

SMALL = Config(V=61, d_model=48, n_layers=3, n_heads=6, n_kv_heads=2, d_ff=40, theta=500.0)


# ---------------------------------------------------------------- without weights


def test_the_work_of_a_token_is_what_a_counter_counts():
    model = GPT(SMALL).eval()
    T, cache = 37, model.cache()
    with torch.no_grad(), FlopCounterMode(display=False) as prefill:
        model(ids_of(1, T), cache)
    with torch.no_grad(), FlopCounterMode(display=False) as decode:
        model(ids_of(1, 1), cache)
    told = profile.work(SMALL.shape(), T)
    assert [each["FLOPs"] for each in told] == [prefill.get_total_flops(), decode.get_total_flops()]


def test_bytes_are_those_of_weights_and_cache():
    shape = SMALL.shape("float32")
    prefill, decode = profile.work(shape, 20)
    read = 4 * sum(p.numel() for name, p in GPT(SMALL).named_parameters() if name != "embedding.weight")
    cache = 20 * 2 * 3 * 2 * 8 * 4
    assert prefill["bytes"] == read + cache and decode["bytes"] == read + cache * 21 / 20


def test_a_card_is_bound_by_what_is_slower():
    for row in profile.roofline(cookbook.PRESETS["llama-3-8b"], 1024):
        assert row["prefill waits for"] == "arithmetic" and row["decode waits for"] == "memory"
    assert profile.roofline(cookbook.PRESETS["llama-3-8b"], 1)[0]["prefill waits for"] == "memory"
    h100 = profile.roofline(cookbook.PRESETS["llama-3-8b"], 1024)[1]
    assert h100["decode, ms"] == pytest.approx(15.144e9 / 3.35e12 * 1000, rel=1e-3)


def test_sizes_come_from_a_preset_a_file_or_a_folder(tmp_path):
    said = {"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24}
    said |= {"num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True, "rope_theta": 1e6}
    (tmp_path / "config.json").write_text(json.dumps(said | {"torch_dtype": "bfloat16"}))
    for name in (tmp_path, tmp_path / "config.json"):
        shape = profile.shape_of(str(name))
        assert cookbook.parameters(shape)["all"] == 494_032_768  # Qwen2-0.5B, as its makers count
        assert shape.dtype == "bfloat16" and shape.theta == 1e6
    assert profile.shape_of("gpt-2") is cookbook.PRESETS["gpt-2"]
    assert cookbook.parameters(profile.shape_of("smollm2-135m"))["all"] == 134_515_008


@pytest.mark.parametrize(
    "content, told",
    [("{", "is not JSON"), ("[]", "is not a config.json"), ('{"model_type": "mamba"}', "'mamba' is not supported")],
)
def test_a_file_that_tells_of_no_model(content, told, tmp_path, capsys):
    (tmp_path / "config.json").write_text(content)
    assert profile.main([str(tmp_path)]) == 2
    assert told in capsys.readouterr().err


# ---------------------------------------------------------------- attention


def test_what_is_found_of_a_small_model():
    model = model_of(SMALL).float()
    windows = ids_of(3, 64)
    steps = []
    found = profile.attention_on(model, windows, steps.append)
    shapes = {name: tuple(values.shape) for name, values in found.items()}
    assert shapes == {
        "sink": (3, 3, 6), "entropy": (3, 3, 6), "profile": (3, 3, 6, 36), "rank": (3, 3), "loss": (3,), "power": (3, 3, 6),
        "rate": (3, 3, 6), "R2 of the power law": (3, 3, 6), "R2 of the exponential": (3, 3, 6), "shuffled": (3, 3, 6),
        "induction": (3, 6), "previous": (3, 6),
    }  # fmt: skip
    assert all(values.isfinite().all() for values in found.values())
    assert (found["entropy"] > 0).all() and (found["entropy"] <= 1 + 1e-6).all()
    with torch.no_grad():
        losses = [torch.nn.functional.cross_entropy(model(w[None])[0, :-1], w[1:]) for w in windows]
    assert torch.allclose(found["loss"], torch.stack(losses), atol=1e-5)
    assert len(steps) == 7
    told = profile.summary(found, n_bytes=4.0)
    assert told["bits a byte"]["mean"] == pytest.approx(told["nats a token"]["mean"] / (4 * math.log(2)), rel=1e-6)
    json.dumps(told)


def test_even_attention_is_all_entropy_and_no_sink():
    model = model_of(SMALL).float()
    with torch.no_grad():
        for block in model.blocks:
            block.attention.query.weight.zero_()
    found = profile.attention_on(model, ids_of(2, 64))
    assert torch.allclose(found["entropy"], torch.ones(()), atol=1e-5)
    assert torch.allclose(found["sink"], (1 / torch.arange(7.0, 65)).mean().expand_as(found["sink"]), atol=1e-6)


def test_the_trained_model_on_austen(tmp_path, capsys):
    """Head 18.6 is its induction head, and the first token of a text gets much of the later layers' weight."""
    out = tmp_path / "profile.html"
    assert profile.main(["smollm2-135m", "--tokens", "128", "--windows", "2", "--json", "--html", str(out)]) == 0
    said = json.loads(capsys.readouterr().out)
    told = said["attention"]
    assert (told["induction heads"][0]["layer"], told["induction heads"][0]["head"]) == (18, 6)
    sink = told["weight on the first token by layer"]
    assert sum(sink[12:]) / 18 > sum(sink[:12]) / 12 + 0.1
    assert set(said["limits"]) == set(profile.LIMITS)
    page = out.read_text()
    assert page.count("<svg") == 3 and "Apache-2.0" in page and not re.search(r'(?:src|href)="(?!#|data:)', page)
    for _, _, rows, limits in profile.tables(profile.profile("gpt-2")):
        assert rows and limits


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["llama-9"], "no model 'llama-9': a preset (gpt-2, llama-2-7b"),
        (["gpt-2", "--tokens", "0"], "tokens is 0"),
        (["smollm2-135m", "--text", "SHORT", "--tokens", "64"], "4 windows of 64 need 256: give a longer one, or fewer"),
        (["smollm2-135m", "--tokens", "8"], "a fit needs four"),
        (["smollm2-135m", "--tokens", "128", "--windows", "1"], "an interval over windows needs at least two"),
        (["smollm2-135m", "--tokens", "1000000"], "GiB"),
        (["smollm2-135m", "--text", "missing.txt"], "missing.txt"),
    ],
)
def test_what_makes_no_profile_is_told_in_a_sentence(arguments, told, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("A short text.")
    assert profile.main([str(tmp_path / "short.txt") if a == "SHORT" else a for a in arguments]) == 2
    said = capsys.readouterr().err
    assert told in said and "Traceback" not in said


def test_learned_positions_end(tmp_path, capsys):
    pytest.importorskip("tokenizers")
    from tests.course.test_pretrained import small

    small("GPT2").save_pretrained(tmp_path)
    from tokenizers import Tokenizer, models

    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    assert profile.main([str(tmp_path), "--tokens", "128"]) == 2
    assert "the model has 64 learned positions: ask for at most as many --tokens" in capsys.readouterr().err
    assert pretrained.load(tmp_path).config.T_max == 64
