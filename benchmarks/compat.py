"""nbgrader's own scores of hundreds of honest submissions, recorded, and ours under policy `compat` beside them.

python -m benchmarks.compat             every chapter whose record is stale; writes benchmarks/compat.json
python -m benchmarks.compat ch04 --size 10

nbgrader runs with its own Execute and its own rule. Both sides draw the same hidden inputs. The record keeps the
score of every cell; a test runs our side on a sample and compares. Exits with 1 if a score differs.
"""

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from itertools import accumulate
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.authoring.chapters import Chapter, find_chapters
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options
from benchmarks.classes import PLAIN, ROOT, make_class
from course.checks import SEED_VARIABLE

RECORD = ROOT / "benchmarks" / "compat.json"
SIZE = 40  # submissions a chapter
SEED = 1
CORES = len(os.sched_getaffinity(0))
Scores = dict[str, dict[str, float | None]]  # by student and cell; None waits for a teacher


def sources(chapter: Chapter) -> str:
    """The hash of what makes a class and its scores: nbgrader, the chapter's code, its answers.

    The vocabulary of tests is not among them: where a change of it changes a score, the sample's differ. Nor are the sentences of
    wrong answers, which only a student reads.
    """
    digest = hashlib.sha256(metadata.version("nbgrader").encode())
    for cell in chapter.notebook.cells:
        if cell.cell_type == "code":
            digest.update(json.dumps([cell.source, cell.metadata.get("nbgrader")], sort_keys=True).encode())
    digest.update(without_sentences(chapter.answers.read_text(encoding="utf-8")))
    return digest.hexdigest()[:16]


def without_sentences(answers: str) -> bytes:
    """The text of an answers.py, the sentence of each wrong answer left out: the last of what `wrong` is given in a row."""
    lines = answers.encode().splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    calls = [
        node for node in ast.walk(ast.parse(answers)) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "wrong"
    ]
    left = answers.encode()
    for said in sorted((call.args[-1] for call in calls), key=lambda node: -node.lineno):
        left = left[: starts[said.lineno - 1] + said.col_offset] + left[starts[said.end_lineno - 1] + said.end_col_offset :]
    return left


def table(folder: Path, chapter: Chapter) -> Scores:
    """The automatic scores that a course folder's gradebook has."""
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        return {
            submission.student.id: {g.name: g.auto_score for notebook in submission.notebooks for g in notebook.grades}
            for submission in gradebook.assignment_submissions(chapter.stem)
        }


def theirs(wanted: str, size: int) -> Scores:
    """nbgrader's scores of a chapter's class, by `nbgrader autograde`, half of the class in each of two runs at once."""
    with tempfile.TemporaryDirectory(prefix="compat-") as place:
        chapter = make_class(Path(place), wanted, size)
        Path(place, "nbgrader_config.py").write_text(PLAIN)
        env = {**os.environ, "OMP_NUM_THREADS": "1", SEED_VARIABLE: str(SEED), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "nbgrader", "autograde", "--assignment", chapter.stem]

        def run(student: int) -> None:
            done = subprocess.run(
                [*command, "--student", f"student???{student}"], cwd=place, env=env, capture_output=True, text=True
            )
            if done.returncode and "No notebooks were matched" not in done.stderr:
                raise SystemExit(f"nbgrader autograde failed:\n{done.stderr[-3000:]}")

        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(run, range(10)))
        return table(Path(place), chapter)


def ours(wanted: str, size: int, students: list[str] | None = None, jobs: int = CORES) -> Scores:
    """Our scores of the same class, or of some of it, under policy `compat`."""
    with tempfile.TemporaryDirectory(prefix="compat-") as place:
        chapter = make_class(Path(place), wanted, size, students)
        grade([chapter], Book(Path(place)), Options(seed=SEED, policy="compat"), jobs)
        return table(Path(place), chapter)


def differences(expected: Scores, got: Scores) -> list[str]:
    """What differs in the students of `got`, one line a cell; scores are equal but for rounding of a sum."""
    lines = []
    for student, cells in got.items():
        for cell, score in cells.items():
            right = expected[student][cell]
            if (score is None) != (right is None) or (score is not None and abs(score - right) > 1e-9):
                lines.append(f"{student} {cell}: nbgrader {right}, autograder {score}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--out", type=Path, default=RECORD)
    given = parser.parse_args()
    record = json.loads(given.out.read_text()) if given.out.exists() else {}
    wrong = []
    for chapter in find_chapters(ROOT, given.chapters or None):
        known = record.get(chapter.stem, {})
        if not given.chapters and known.get("sources") == sources(chapter) and len(known["scores"]) >= given.size:
            continue
        scores = theirs(chapter.id, given.size)
        record[chapter.stem] = {"sources": sources(chapter), "size": given.size, "scores": scores}
        given.out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        found = differences(scores, ours(chapter.id, given.size))
        cells = sum(map(len, scores.values()))
        print(f"{chapter.stem}: {len(scores)} submissions, {cells} scores, {len(found)} differ", flush=True)
        wrong += [f"{chapter.stem} {line}" for line in found]
    print("\n".join(wrong))
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
