"""The atlas's page says what its table says; here of models that were made up, with effects that were planted."""

import re

import numpy as np
import pytest

from book import atlas
from course.gamma_atlas import QUESTIONS, setting_of
from experiments.gamma_atlas import cells

READS = {"own": 0.0, "short": 0.0, "shuffled": -0.2, "foreign": 0.02, "untrained": -0.8}
RECORD = {"device": "a card", "seeds": [0, 1, 2], "results": {"table": "gamma_atlas.csv.gz"}}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """The grid with γ = 0.8, less 0.3 for shuffled words and 0.05 for each doubling of the blocks; seeds differ by about 0.02."""
    random, made = np.random.default_rng(0), []
    for setting in cells():
        for seed in (0, 1, 2):
            gamma = (
                0.9
                - 0.3 * (setting["text"] == "shuffled")
                - 0.05 * np.log2(setting["n_layers"])
                + 0.02 * random.standard_normal()
            )
            for read, shift in READS.items():
                value = float(gamma + shift + 0.005 * random.standard_normal())
                profile = [d**-value / 5 for d in range(1, int(0.6 * setting["T"]) - 3)]
                numbers = dict.fromkeys(("R2_power", "bits", "entropy", "heads_50"), 0.5) | {
                    "first": 0.01 + 0.2 * setting["mark"]
                }
                numbers |= {"exponential_gain": 0.001 * random.standard_normal(), "gamma_relative": value + 0.1}
                made.append(setting | {"seed": seed, "read": read, "gamma": value, "profile_held": profile} | numbers)
    return made


def test_planted_effects_are_the_answers(rows):
    told = {question.name: each["verdict"] for question, each, _ in atlas.answers(rows)}
    yes = {"order", "depth", "sink", "training", "tokens read"}
    assert {name for name, verdict in told.items() if verdict == "yes"} <= yes and {
        "order",
        "sink",
        "training",
        "tokens read",
    } <= {name for name, verdict in told.items() if verdict == "yes"}
    assert told["base"] == told["length"] == told["kind"] == told["text read"] == "no"


def test_the_page_has_each_answer_and_each_model_once(rows):
    page = atlas.page(rows, RECORD)
    for question, each, _ in atlas.answers(rows):
        line = next(line for line in page.splitlines() if line.startswith(f"| {question.asks}<br>"))
        assert f"| {each['mean']:+.3f} | **{each['verdict']}**<br>".replace("-", "−") in line
    models = {(setting_of(row), row["seed"]) for row in rows}
    assert (
        page.count('<tr class="model ') == len(models)
        and f"{len(models)} small models of our own in {len(cells())} settings" in page
    )
    assert sum(page.count(f"| **{verdict}**<br>") for verdict in ("yes", "no", "unknown")) == len(QUESTIONS)


def test_each_choice_of_the_filter_finds_models_and_each_model_is_found(rows):
    models = atlas.joined(rows)
    table = atlas.table(models)
    for offered in atlas.choices(models).values():
        found = [len(re.findall(rf'class="model [^"]*\bis-{re.escape(name)}[ "]', table)) for name in offered]
        assert min(found) > 0 and sum(found) == len(models)


def test_what_predicts_nothing_does_not_beat_the_constant(rows):
    told = atlas.predictors(atlas.joined(rows))
    assert told["γ_Padé"]["high"] < 0 and told["γ_Padé, slope and offset fitted"]["gain"] < 0.02


def test_the_core_is_balanced_and_its_variance_is_the_texts(rows):
    core = atlas.balanced(atlas.joined(rows))
    assert len(core) == 3 * 2 * 2 * 3
    shares = dict(atlas.variance(core, atlas.CORE, draws=30))
    assert shares["text"][0] > 0.8 and all(abs(shares[name][0]) < 0.1 for name in ("base", "length", "together"))
    assert all(low <= value + 0.1 and value - 0.1 <= high for value, low, high in shares.values())


def test_the_figures_are_those_of_the_page(rows):
    drawn = atlas.figures(rows)
    assert sorted(re.findall(r"\((atlas-\w+\.svg)\)", atlas.page(rows, RECORD))) == sorted(
        name.rpartition("/")[2] for name in drawn
    )
    assert all(picture.startswith(b"<?xml") and len(picture) < 150_000 for picture in drawn.values())
