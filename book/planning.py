"""The page that tells what grading a large class costs, reckoned from the record of `benchmarks/grading.py`."""

from book.render import render

STUDENTS, CHAPTERS = 10_000, 48


def page(record: dict) -> str:
    """The page as Markdown.

    Args:
        record: `benchmarks/grading.json`; its largest two sizes give what one submission more costs.
    """
    sizes = sorted(record["results"], key=lambda result: result["submissions"])
    large, small = sizes[-1], sizes[-2]
    first, last = _median(small, "autograder", "cpu"), _median(large, "autograder", "cpu")
    cpu = (last - first) / (large["submissions"] - small["submissions"])
    start = max(0.0, first - cpu * small["submissions"])
    theirs = (_median(large, "nbgrader", "cpu") - _median(small, "nbgrader", "cpu")) / (
        large["submissions"] - small["submissions"]
    )
    ten = next(result for result in sizes if result["submissions"] == 10)
    one_job = next(run["one_job"]["megabytes"] for run in ten["runs"]["autograder"] if run["one_job"])
    cores = record["machine"]["cores"]
    all_jobs = _median(ten, "autograder", "megabytes")
    a_job = max(0.0, (all_jobs - one_job) / (cores - 1)) if cores > 1 else one_job
    writing = large["writing"]
    return render(
        "planning.md",
        record=record,
        sizes=sizes,
        students=STUDENTS,
        chapters=CHAPTERS,
        work=STUDENTS * CHAPTERS,
        cpu=cpu,
        theirs=theirs,
        start=start,
        one_job=one_job,
        a_job=a_job,
        writing=writing,
        a_submission={n: max(cpu / n, writing["seconds"]) for n in (2, 8, 16, 32, 64)},
        duration=_duration,
    )


def _median(result: dict, name: str, what: str) -> float:
    values = sorted(run[what] for run in result["runs"][name])
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} seconds"
