"""The planning page reckons with the record's figures, and the record is there."""

import copy
import json

import pytest

from book import planning
from book.build import ROOT

RECORD = json.loads((ROOT / "benchmarks" / "grading.json").read_text())


def made(ours: tuple[float, float], theirs: tuple[float, float], seconds: float) -> dict:
    """A record of 10 and 110 submissions with these CPU seconds."""

    def result(size, a, b):
        run = {"cpu": a, "megabytes": 3000, "wall": a, "one_job": {"megabytes": 1000}}
        return {
            "submissions": size,
            "per_minute": {"autograder": 100, "nbgrader": 5},
            "ratio_wall": 20,
            "ratio_cpu": 10,
            "writing": {"seconds": seconds, "rows": 20, "gradebook_bytes": 5000, "file_bytes": 100_000},
            "runs": {"autograder": [run], "nbgrader": [run | {"cpu": b}]},
        }

    machine = {"cores": 3, "processor": "a processor"}
    results = [result(110, ours[1], theirs[1]), result(10, ours[0], theirs[0])]
    return {"chapter": "ch04", "when": "2026-01-01", "machine": machine, "results": results}


def test_the_figures_follow_from_the_record():
    page = planning.page(made((15, 65), (80, 680), 0.005))
    assert "One submission more costs 0.50 CPU seconds (6.0 with `nbgrader autograde`); a run's start costs 10." in page
    assert "1,000 MB with one job, and about 1,000 MB more with each job more" in page
    assert "480,000 submissions" in page and "**67 core-hours** (800 with" in page  # 480000 · 0.5 / 3600
    assert "9.6 million rows, 2.4 GB of gradebook, and 48 GB" in page
    assert "200 submissions a second one by one, which is what **100 cores** grade" in page
    assert "| 16 | 4.2 hours | 5.2 minutes |" in page


def test_a_slower_machine_needs_more_hours():
    page = planning.page(made((15, 115), (80, 680), 0.005))
    assert "**133 core-hours**" in page and "**200 cores**" in page


def test_more_cores_than_the_writer_can_serve_help_no_more():
    page = planning.page(made((15, 65), (80, 680), 0.05))
    assert "| 8 | 8.3 hours | 10.4 minutes |" in page  # 0.5 s / 8 cores is more than the writer's 0.05 s
    assert "| 32 | 6.7 hours | 8.3 minutes |" in page and "| 64 | 6.7 hours | 8.3 minutes |" in page


def test_the_committed_record_makes_a_page():
    page = planning.page(RECORD)
    assert page.startswith("# What a large class costs\n") and "nan" not in page and "inf" not in page


@pytest.mark.parametrize("result", RECORD["results"], ids=lambda result: str(result["submissions"]))
def test_the_recorded_ratios_are_those_of_the_recorded_runs(result):
    again = copy.deepcopy(result)
    walls = {name: planning._median(again, name, "wall") for name in ("autograder", "nbgrader")}
    assert result["ratio_wall"] == round(walls["nbgrader"] / walls["autograder"], 1)
    assert result["per_minute"]["autograder"] == round(60 * result["submissions"] / walls["autograder"], 1)
