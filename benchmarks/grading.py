"""Grading against `nbgrader autograde`, on the same submissions of a chapter with torch and plots.

python -m benchmarks.grading                       1, 10 and 100 submissions; writes benchmarks/grading.json
python -m benchmarks.grading --sizes 1 10 --rounds 1 --out x  fewer

Both are whole commands, from their start to the last score in the gradebook, on fresh copies of the same course.
nbgrader runs with its own Execute; what is released and tested is the same. The rounds of the two alternate, so that
a machine that slows down slows both; compare the ratios, not the seconds.
"""

import argparse
import ctypes
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.chapters import Chapter, grade_id
from autograder.authoring.release import Release
from autograder.grading.address import versions
from autograder.grading.gradebook import Book
from benchmarks.classes import PLAIN, ROOT, make_class

RECORD = ROOT / "benchmarks" / "grading.json"
CHAPTER = "ch04"
ROUNDS = {1: 3, 10: 2, 100: 1}
SUBREAPER = 36  # prctl: processes whose parent ends become ours, so that their memory is counted
CORES = len(os.sched_getaffinity(0))

COMMANDS = {
    "autograder": lambda stem: [sys.executable, "-c", "from autograder.doors.cli import app; app()", "grade", stem],
    "nbgrader": lambda stem: [sys.executable, "-m", "nbgrader", "autograde", "--assignment", stem],
}


def measured(command: list[str], folder: Path) -> dict:
    """Run a command: wall and CPU seconds of it and all that it started, and the most memory they had together.

    The CPU seconds are the machine's, which should have nothing else to do: those of a process whose parent does not
    wait for it are counted nowhere else. Memory is the proportional set size: pages that several processes share count once.
    """
    before, start = busy(), time.perf_counter()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak, over = [0], threading.Event()

    def watch():
        while not over.wait(0.25):
            peak[0] = max(peak[0], sum(memory(pid) for pid in descendants(os.getpid()) - {os.getpid()}))

    watcher = threading.Thread(target=watch)
    watcher.start()
    said = process.communicate()[0]
    wall = time.perf_counter() - start
    over.set()
    watcher.join()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:  # templates that outlive their command by a moment
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        except ChildProcessError:
            break
    cpu = busy() - before
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return {"wall": round(wall, 3), "cpu": round(cpu, 3), "megabytes": round(peak[0] / 1e6)}


def busy() -> float:
    """The seconds that all processors have worked since the start of the machine."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> set[int]:
    found = {pid}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found |= descendants(int(child))
        except OSError:
            continue
    return found


def memory(pid: int) -> int:
    """The proportional set size of a process in bytes; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def scores(folder: Path, chapter: Chapter) -> dict[str, float]:
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        return {s.student.id: s.score for s in gradebook.assignment_submissions(chapter.stem)}


def compare(size: int, rounds: int, wanted: str = CHAPTER) -> dict:
    """Both commands on the same `size` submissions, `rounds` times, in turn."""
    runs: dict[str, list[dict]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        made = Path(place, "made")
        made.mkdir()
        chapter = make_class(made, wanted, size)
        for number in range(rounds):
            for name in list(COMMANDS)[:: 1 if number % 2 == 0 else -1]:
                folder = Path(place, f"{name}{number}")
                shutil.copytree(made, folder)
                if name == "nbgrader":
                    (folder / "nbgrader_config.py").write_text(PLAIN)
                run = measured(COMMANDS[name](chapter.stem), folder)
                if len(scores(folder, chapter)) != size:
                    raise SystemExit(f"{name} graded {len(scores(folder, chapter))} of {size}")
                if name == "autograder":
                    run |= where_the_time_goes(folder, chapter, run["wall"])
                    if number == rounds - 1:
                        written = writing(folder, chapter)
                runs[name].append(run)
                print(f"{size:4} {name:10} {run['wall']:8.1f} s wall {run['cpu']:8.1f} s cpu {run['megabytes']:6} MB", flush=True)
    ours, theirs = (statistics.median(run["wall"] for run in runs[name]) for name in COMMANDS)
    return {
        "submissions": size,
        "per_minute": {"autograder": round(60 * size / ours, 1), "nbgrader": round(60 * size / theirs, 2)},
        "ratio_wall": round(theirs / ours, 1),
        "ratio_cpu": round(
            statistics.median(run["cpu"] for run in runs["nbgrader"])
            / statistics.median(run["cpu"] for run in runs["autograder"]),
            1,
        ),
        "writing": written,
        "runs": runs,
    }


def where_the_time_goes(folder: Path, chapter: Chapter, wall: float) -> dict:
    """Of a run of ours: the seconds of merging, running and scoring, summed over the jobs, and the wall time of all the rest.

    A second run, which finds nothing changed, is the start-up and the comparing alone; a third, of one job, tells
    what a job more costs in memory.
    """
    about = [json.loads(path.read_text())["metadata"] for path in graded(folder, chapter)]
    seconds = [metadata["autograder"]["seconds"] for metadata in about]
    command = COMMANDS["autograder"](chapter.stem)
    unchanged = measured(command, folder)
    one_job = measured([*command, "--again", "--jobs", "1"], folder) if len(seconds) == 10 else {}
    stages = {
        name: round(sum(m["seconds"].get(name, 0) for m in about if "seconds" in m), 3) for name in ("start", "cells", "tests")
    }
    return {
        "running": round(sum(seconds), 3),
        "stages": stages,
        "outside": round(wall - sum(seconds) / min(CORES, len(seconds)), 3),
        "unchanged": unchanged,
        "one_job": one_job,
    }


def graded(folder: Path, chapter: Chapter) -> list[Path]:
    return sorted(folder.glob(f"autograded/*/{chapter.stem}/{chapter.stem}.ipynb"))


def writing(folder: Path, chapter: Chapter) -> dict:
    """What one submission costs the writer: seconds of a transaction of its own, rows and bytes in the gradebook, bytes of the file."""
    notebooks = [nbformat.read(path, as_version=4) for path in graded(folder, chapter)]
    database, book = folder / "gradebook.db", Book(folder)
    before = database.stat().st_size
    with book:
        release = Release.of(chapter)
        book.register(chapter, release)
        start = time.perf_counter()
        for number in range(100):
            notebook = notebooks[number % len(notebooks)]
            with book.session() as db:
                book.store(chapter, f"copy{number:03}", notebook, notebook.metadata.autograder.points, None, db)
        seconds = (time.perf_counter() - start) / 100
    cells = [cell for cell in release.registered.cells if grade_id(cell)]
    return {
        "seconds": round(seconds, 5),
        "rows": 2 + sum(is_grade(cell) for cell in cells) + sum(is_solution(cell) for cell in cells),
        "gradebook_bytes": round((database.stat().st_size - before) / 100),
        "file_bytes": round(statistics.mean(path.stat().st_size for path in graded(folder, chapter))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(ROUNDS))
    parser.add_argument("--rounds", type=int, help="of each size; fewer for more submissions without it")
    parser.add_argument("--chapter", default=CHAPTER)
    parser.add_argument("--out", type=Path, default=RECORD)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    results = [compare(size, given.rounds or ROUNDS.get(size, 1), given.chapter) for size in given.sizes]
    record = {
        "when": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": {"cores": CORES, "processor": processor(), "versions": versions()},
        "chapter": given.chapter,
        "results": results,
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n")
    for result in results:
        print(
            f"{result['submissions']} submissions: {result['ratio_wall']} times as many a minute, for 1/{result['ratio_cpu']} of the CPU"
        )


def processor() -> str:
    names = [line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
