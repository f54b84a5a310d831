"""Records have one form, and intervals are Student's."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from course import data

STEMS = sorted(path.stem for path in (data.HERE / "records").glob("*.json"))
ROUNDING = 1.1e-4  # of numbers with four digits after the point, computed from such numbers
TABLE = 2e-4  # of a half width, by a table of t with three digits after the point


@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_an_interval_is_that_of_scipy(n):
    values = np.random.default_rng(n).normal(3.0, 2.0, size=n)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(), scale=stats.sem(values))
    for kind in (list, np.asarray, torch.from_numpy):
        mean, half = data.interval(kind(values))
        assert mean - half == pytest.approx(low, rel=1e-12) and mean + half == pytest.approx(high, rel=1e-12)
    assert data.interval(values, 2) == (round(mean, 2), round(half, 2))


def test_an_interval_holds_its_mean_in_95_of_100():
    generator = np.random.default_rng(0)
    held = [abs(mean) <= half for mean, half in (data.interval(generator.normal(size=4)) for _ in range(4000))]
    assert abs(np.mean(held) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf]])
def test_an_interval_takes_two_finite_values(values):
    with pytest.raises(ValueError, match="two finite values or more"):
        data.interval(values)


# ---------------------------------------------------------------- records


@pytest.fixture
def folder(tmp_path, monkeypatch):
    where = data.record_path
    monkeypatch.setattr(data, "record_path", lambda stem, mode="full": where(stem, mode, tmp_path))
    return tmp_path


def keep(**changed):
    whole = {"settings": {"steps": 3}, "seeds": range(2), "interval": None}
    return data.keep_record("coins", **({"results": {"heads": [0.5, 0.25]}} | whole | changed))


def test_a_record_is_read_as_it_was_kept(folder):
    path = keep(what="coins, thrown", packages=("torch", "numpy"))
    record = data.record("coins")
    assert path == folder / "course/data/records/coins.json" and list(record) == [*data.RECORD, "what"]
    assert record["experiment"] == "experiments/coins.py" and record["mode"] == "full" and record["seeds"] == [0, 1]
    assert set(record["versions"]) == {"python", "torch", "numpy"} and record["device"].startswith("CPU, ")
    assert record["results"] == {"heads": [0.5, 0.25]} and record["what"] == "coins, thrown"


def test_a_small_run_leaves_the_courses_record(folder):
    keep()
    assert keep(small=True, results=[0.0]) == folder / "build/records/coins.json"
    assert data.record("coins")["results"] == {"heads": [0.5, 0.25]}


def test_results_are_added_to_a_record(folder):
    with pytest.raises(FileNotFoundError, match="no record of coins to add to"):
        data.add_to_record("coins", tails=[0.5])
    keep()
    data.add_to_record("coins", tails=[0.5])
    assert data.record("coins")["results"] == {"heads": [0.5, 0.25], "tails": [0.5]}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"seeds": []}, "names no seed"),
        ({"settings": None}, "its settings as NoneType"),
        ({"results": 0.5}, "its results as float"),
    ],
)
def test_a_record_that_lacks_something_is_not_kept(folder, changed, told):
    with pytest.raises(ValueError, match=told):
        keep(**changed)
    assert not list(folder.rglob("*.json"))


def test_a_number_that_json_does_not_have_is_not_kept(folder):
    with pytest.raises(ValueError, match="JSON"):
        keep(results=[math.nan])


def test_a_record_that_is_not_there_says_how_to_make_it(folder):
    with pytest.raises(FileNotFoundError, match=r"python experiments/coins\.py"):
        data.record("coins")


@pytest.mark.parametrize("stem", STEMS)
def test_the_courses_records_have_the_form(stem):
    record = data.record(stem)
    assert data.problems_of_record(stem, record) == []
    assert list(record)[: len(data.RECORD)] == list(data.RECORD)
    assert record["experiment"] == f"experiments/{stem}.py" and (data.HERE.parents[1] / record["experiment"]).is_file()
    assert record["mode"] in ("full", "small") and record["versions"]["python"]


def with_runs(stem: str):
    """(values, mean, half width) wherever a record has all three."""
    results = data.record(stem)["results"]
    match stem:
        case "architectures":
            yield from ((row["lists"], row["mean"], row["half_width"]) for row in results)
            yield from ((row["tokens"], row["mean_tokens"], row["half_width_tokens"]) for row in results)
        case "block":
            yield from ((row["accuracy"], row["mean"], row["half_width"]) for row in results)
        case "ffn":
            yield from ((row["losses"], row["mean"], row["half_width"]) for row in results)
        case "residual_norm":
            yield from ((row["loss"], row["mean"], row["half_width"]) for row in results["training"])
        case "embeddings":
            told = [
                cell for row in results["analogies"]["rows"] for cell in row.values() if isinstance(cell, dict) and "runs" in cell
            ]
            told += [results["analogies"]["loss"], *results["tied"]["rows"]]
            yield from ((cell["runs"], cell["mean"], cell["half_width"]) for cell in told)
        case "overview":
            yield from ((row["runs"], row["log10"], row["half_width"]) for row in results["gradients"])
        case "position_rope":
            for scheme, runs in results["runs"].items():
                summary = results["summary"][scheme]
                columns = zip(*runs, strict=True), summary["loss_mean"], summary["loss_half_width"]
                yield from zip(*columns, strict=True)
                yield [run[-1] - run[0] for run in runs], summary["change_mean"], summary["change_half_width"]
        case "multi_head":
            for row in results["lists"]:
                yield [seed["right"]["none"] for seed in row["seeds"]], row["right"]["mean"], row["right"]["half_width"]


@pytest.mark.parametrize("stem", ["architectures", "block", "embeddings", "ffn", "multi_head", "position_rope", "residual_norm"])
def test_the_intervals_on_record_are_those_of_their_values(stem):
    assert "Student's t" in data.record(stem)["interval"]
    told = list(with_runs(stem))
    assert told
    for values, mean, half in told:
        expected = data.interval(values)
        assert mean == pytest.approx(expected[0], abs=ROUNDING)
        assert half == pytest.approx(expected[1], abs=ROUNDING + TABLE * half)
