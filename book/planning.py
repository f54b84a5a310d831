"""The page that tells what grading a large class costs, reckoned from the record of `benchmarks/grading.py`."""

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
    work = STUDENTS * CHAPTERS
    limit = cpu / writing["seconds"]
    table = "\n".join(
        f"| {r['submissions']} | {r['per_minute']['autograder']:,.0f} | {r['per_minute']['nbgrader']:,.1f} | {r['ratio_wall']:g} | {r['ratio_cpu']:g} |"
        for r in sizes
    )
    a_submission = {n: max(cpu / n, writing["seconds"]) for n in (2, 8, 16, 32, 64)}
    hours = "\n".join(f"| {n} | {_duration(work * t)} | {_duration(STUDENTS * t)} |" for n, t in a_submission.items())
    return f"""# What a large class costs

All figures on this page are reckoned from one record, `benchmarks/grading.json`: `{record["chapter"]}`, a chapter with torch and
plots, on {cores} cores of {record["machine"]["processor"]}, {record["when"]}. Measure your own machine with `python -m benchmarks.grading`.

## Measured

Submissions a minute, whole commands, start-up included, the same submissions for both:

| Submissions | autograder | nbgrader autograde | times as many | CPU time, nbgrader's to ours |
|---:|---:|---:|---:|---:|
{table}

One submission more costs {cpu:.2f} CPU seconds ({theirs:.1f} with `nbgrader autograde`); a run's start costs {start:.0f}.
It uses {one_job:,.0f} MB with one job, and about {a_job:,.0f} MB more with each job more. The gradebook takes {writing["rows"]} rows and
{writing["gradebook_bytes"] / 1000:.1f} kB a submission, written in {1000 * writing["seconds"]:.1f} ms as a transaction of its own; the graded notebook
takes {writing["file_bytes"] / 1000:.0f} kB.

## {STUDENTS:,} students, {CHAPTERS} chapters

{work:,} submissions cost

- **{work * cpu / 3600:,.0f} core-hours** ({work * theirs / 3600:,.0f} with `nbgrader autograde`),
- {work * writing["rows"] / 1e6:,.1f} million rows, {work * writing["gradebook_bytes"] / 1e9:,.1f} GB of gradebook, and {work * writing["file_bytes"] / 1e9:,.0f} GB of graded notebooks,
- {_duration(work * writing["seconds"])} of the writer's time.

| Cores | the whole course | one chapter of everybody |
|---:|---:|---:|
{hours}

A machine with 16 cores and 16 jobs needs about {(one_job + 15 * a_job) / 1000:,.0f} GB of memory.

## Where the first limit is

One process writes to the gradebook. It takes {1 / writing["seconds"]:,.0f} submissions a second one by one, which is what **{limit:,.0f} cores** grade;
more cores than that wait for it, as the table says. (Submissions that arrive together share a transaction, so in truth the writer does
better.) A gradebook of {work * writing["gradebook_bytes"] / 1e9:,.1f} GB is no trouble for SQLite, but only one program at a time can write to it. On
PostgreSQL several runs, each of other chapters, write at the same time, and teachers use formgrader meanwhile.

Only what changed is run again, so a correction of one chapter costs {STUDENTS * cpu / 3600:,.1f} core-hours and not {work * cpu / 3600:,.0f}.
"""


def _median(result: dict, name: str, what: str) -> float:
    values = sorted(run[what] for run in result["runs"][name])
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} seconds"
