"""The run behind the shipped model: its baselines against brute force, its scores, and what its record says."""

import json
import math
from collections import Counter, defaultdict
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course import data
from course.model import GPT, Config
from experiments import training

RECORD = data.record("training")
FOUND = RECORD["results"]


def brute(learned: list[int], context: tuple[int, ...], token: int, V: int, order: int, discount: float = 0.75) -> float:
    """Interpolated Kneser–Ney, one probability, by its definition."""
    if order == 0:
        return 1 / V
    n = len(context) + 1
    grams = [tuple(learned[i : i + n]) for i in range(len(learned) - n + 1)]
    if n < brute.top:
        longer = {tuple(learned[i : i + n + 1]) for i in range(len(learned) - n)}
        counts = Counter(gram[1:] for gram in longer)
    else:
        counts = Counter(grams)
    after = defaultdict(dict)
    for gram, count in counts.items():
        after[gram[:-1]][gram[-1]] = count
    lower = brute(learned, context[1:], token, V, order - 1)
    if context not in after:
        return lower
    seen = after[context]
    own = max(seen.get(token, 0) - discount, 0)
    return (own + discount * len(seen) * lower) / sum(seen.values())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_n_gram_models_are_interpolated_kneser_ney(order):
    draw = np.random.default_rng(order)
    learned, unseen = draw.integers(0, 5, 60), draw.integers(0, 6, 20)  # token 5 has never been seen
    p = training.kneser_ney(learned, unseen, 6, order)
    brute.top = order
    for i in range(order - 1, 20):
        context = tuple(unseen[i - order + 1 : i].tolist())
        assert p[i] == pytest.approx(brute(learned.tolist(), context, int(unseen[i]), 6, order), rel=1e-12)


def test_the_probabilities_of_all_next_tokens_sum_to_one():
    learned = np.random.default_rng(0).integers(0, 5, 60)
    for context in ([0, 1], [5, 5], [4, 2]):
        total = sum(training.kneser_ney(learned, np.array([*context, token]), 6, 3)[-1] for token in range(6))
        assert total == pytest.approx(1.0, abs=1e-12)


def test_n_grams_that_do_not_fit_into_a_number_are_refused():
    with pytest.raises(ValueError, match="6 tokens of 2047 do not fit into 64 bits"):
        training.kneser_ney(np.arange(9), np.arange(9), 2047, 6)


def test_every_counted_token_has_half_a_window_before_it():
    torch.manual_seed(0)
    model = GPT(Config(V=20, d_model=16, n_layers=1, n_heads=2)).eval()
    tokens = torch.randint(19, (20,))
    nats = training.nats_of_each(model, tokens, 8)
    expected = []
    for start in (0, 4, 8, 12):
        ids = torch.cat([torch.tensor([19]), tokens[start : start + 7]])[None]
        logits = model(ids)[0, 4:]
        expected.append(F.cross_entropy(logits, tokens[start + 4 : start + 8], reduction="none"))
    assert nats == pytest.approx(torch.cat(expected).detach().numpy(), rel=1e-5)


def test_the_parts_are_the_texts_in_order_and_apart():
    pieces = training.parts(1000)
    for i, name in enumerate(training.TEXTS):
        assert "".join(pieces[part][i] for part in ("training", "validation", "held_out")) == data.read(name, 1000)
    assert [len(text) for text in pieces["held_out"] + pieces["validation"]] == [100] * 4


def test_samples_do_not_depend_on_the_cache_and_are_never_bos():
    torch.manual_seed(0)
    model = GPT(Config(V=20, d_model=16, n_layers=1, n_heads=2)).eval()
    drawn = training.sample(model, [3, 4], 200, 1.0, torch.Generator().manual_seed(1))
    assert set(drawn) == set(range(19))
    cold = training.sample(model, [3, 4], 5, 1e-6, torch.Generator())
    ids = torch.tensor([[19, 3, 4]])
    for token in cold:
        assert int(model(ids)[0, -1, :19].argmax()) == token
        ids = torch.cat([ids, torch.tensor([[token]])], dim=1)


# ---------------------------------------------------------------- the record


def test_the_record_is_of_the_settings_in_the_script():
    now = json.loads(json.dumps(asdict(training.FULL)))
    assert RECORD["mode"] == "full" and RECORD["settings"] | {"model": None} == now | {"model": None}
    assert Config(**RECORD["settings"]["model"]) == training.FULL.model  # a part that came later was not there, as by default
    assert FOUND["curve"][-1]["step"] == training.FULL.steps


def test_the_seeds_are_of_the_chapters_model():
    small = FOUND["small_model"]
    assert Config(**small["model"]) == training.CHAPTER and len(small["bits_per_byte"]) == 8


@pytest.mark.parametrize("text", training.TEXTS)
def test_the_model_is_better_than_every_n_gram_model(text):
    scores = FOUND["held_out"][text]
    assert scores["gpt"]["bits_per_byte"] < min(score["bits_per_byte"] for name, score in scores.items() if name != "gpt") - 0.3
    for score in scores.values():
        assert score["perplexity"] == pytest.approx(math.exp(score["nats_per_token"]), rel=1e-3)
        bits = score["nats_per_token"] * score["tokens"] / (math.log(2) * score["bytes"])
        assert score["bits_per_byte"] == pytest.approx(bits, abs=2e-4)


def test_the_model_learned_rather_than_remembered():
    """The loss on the validation text does not rise again."""
    losses = [row["validation"] for row in FOUND["curve"]]
    assert losses[-1] < min(losses) + 0.005


def test_the_settings_are_the_best_of_those_that_were_compared():
    compared = FOUND["sweep"]
    assert {row["candidate"] for row in compared} == set(training.CANDIDATES)
    best = min(compared, key=lambda row: row["bits_per_byte"])["candidate"]
    assert training.changed(replace(training.BASE, steps=training.FULL.steps), training.CANDIDATES[best]) == training.FULL
