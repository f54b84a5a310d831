"""Nothing is run twice without need, and a run that is killed at any moment loses nothing and counts nothing twice."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.authoring.chapters import find_chapters, grade_id
from autograder.grading import submission as module
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options
from autograder.limits import Limits

DOUBLES = ["def double(x):\n    return x + x", "def double(x):\n    return x * x", "def double(x):\n    return x"]


def answered(chapter, answer: str) -> nbformat.NotebookNode:
    notebook = nbformat.read(chapter.release, as_version=4)
    next(cell for cell in notebook.cells if grade_id(cell) == "ch99-double-answer").source = answer
    return notebook


def hand_in(chapter, student: str, answer: str) -> Path:
    folder = chapter.folder("submitted", student)
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(answered(chapter, answer), folder / "ch99_toy.ipynb")
    return folder


@pytest.fixture
def chapter(toy, tmp_path):
    shutil.copytree(toy.root, tmp_path / "course")
    chapter = find_chapters(tmp_path / "course")[0]
    for i, answer in enumerate(DOUBLES):
        hand_in(chapter, f"s{i}", answer)
    return chapter


@pytest.fixture
def runs(monkeypatch) -> list[str]:
    """The answers that were run, in place of running them: what is asked here is only what is run again."""
    ran = []

    def run(notebook, *_, **__):
        ran.append(next(cell.source for cell in notebook.cells if grade_id(cell) == "ch99-double-answer"))
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = 1
                cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "1.0"})]
        return []

    monkeypatch.setattr(module, "run_notebook", run)
    return ran


def test_what_has_not_changed_is_not_run_again(chapter, runs):
    book = Book(chapter.root)
    assert not any(one.unchanged for one in grade([chapter], book))
    done = grade([chapter], book)
    assert all(one.unchanged for one in done) and len(runs) == 3
    assert [one.points["ch99-double"] for one in done] == [1, 1, 1]


@pytest.mark.parametrize(
    "change",
    [
        "notebook",
        "file",
        "timestamp",
        "source",
        "answers",
        "released file",
        "limits",
        "policy",
        "versions",
        "scores",
        "graded notebook",
    ],
)
def test_what_matters_to_the_scores_is_run_again_and_only_that(chapter, runs, monkeypatch, change):
    book, options, again = Book(chapter.root), Options(), ["s0", "s1", "s2"]
    grade([chapter], book, options)
    folder = chapter.folder("submitted", "s1")
    if change == "notebook":
        hand_in(chapter, "s1", "def double(x):\n    return 2 * x")
    elif change == "file":
        (folder / "data.csv").write_text("1")
    elif change == "timestamp":
        (folder.parent / "ch99_toy.collected.json").write_text(json.dumps({"received": "2026-01-01 00:00:00 UTC", "flags": []}))
    elif change == "source":
        chapter.path.write_text(chapter.path.read_text().replace("any shape", "each shape"))
    elif change == "answers":
        chapter.answers.write_text(chapter.answers.read_text() + "\n")
    elif change == "released file":
        (chapter.release.parent / "data.csv").write_text("1")
    elif change == "limits":
        options = Options(Limits(cell=9))
    elif change == "policy":
        options = Options(policy="compat")
    elif change == "versions":
        monkeypatch.setattr("autograder.grading.address.environment", lambda: "another")
    elif change == "scores":
        with sqlite3.connect(chapter.root / "gradebook.db") as db:
            db.execute(
                "update grade set auto_score = 9 where notebook_id in (select n.id from submitted_notebook n "
                "join submitted_assignment a on a.id = n.assignment_id where a.student_id = 's1')"
            )
    elif change == "graded notebook":
        (chapter.folder("autograded", "s1") / "ch99_toy.ipynb").unlink()
    if change in ("notebook", "file", "scores", "graded notebook"):
        again = ["s1"]
    if change == "timestamp":  # a penalty is reckoned anew without a run
        again = []
    chapter = find_chapters(chapter.root)[0]
    assert [one.student for one in grade([chapter], book, options) if not one.unchanged] == again


def test_again_runs_everything(chapter, runs):
    grade([chapter], Book(chapter.root))
    grade([chapter], Book(chapter.root), again=True)
    assert len(runs) == 6


def test_a_gradebook_that_was_lost_is_filled_again(chapter, runs):
    grade([chapter], Book(chapter.root))
    (chapter.root / "gradebook.db").unlink()
    grade([chapter], Book(chapter.root))
    assert len(runs) == 6 and len(Book(chapter.root).known(chapter)) == 3


def test_what_failed_is_tried_again(chapter, runs, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(module, "stage", lambda *_: 1 / 0)
        assert all(one.failed for one in grade([chapter], Book(chapter.root)))
    assert not any(one.failed or one.unchanged for one in grade([chapter], Book(chapter.root)))


@pytest.mark.parametrize("step", ["commit", "file"])
def test_a_kill_between_gradebook_and_file_is_mended(chapter, runs, monkeypatch, step):
    """The two writes of a result: whichever came last, the next run ends with both, once."""
    with monkeypatch.context() as broken:
        target = (Book, "store") if step == "commit" else (os, "replace")

        def kill(*_):
            raise KeyboardInterrupt

        broken.setattr(*target, kill)
        with pytest.raises(KeyboardInterrupt):
            grade([chapter], Book(chapter.root))
    grade([chapter], Book(chapter.root))
    whole(chapter, 3)


def whole(chapter, students: int) -> None:
    """Every submission is in the gradebook once, with as many rows as it has cells, and has its graded notebook."""
    with Gradebook(f"sqlite:///{chapter.root}/gradebook.db") as gradebook:
        submissions = gradebook.assignment_submissions("ch99_toy")
        assert len(submissions) == len({submission.student.id for submission in submissions}) == students
        for submission in submissions:
            (notebook,) = submission.notebooks
            assert sorted(g.name for g in notebook.grades) == ["ch99-double", "ch99-letter", "ch99-three", "ch99-why"]
            kept = nbformat.read(chapter.folder("autograded", submission.student.id) / "ch99_toy.ipynb", as_version=4)
            assert kept.metadata.autograder.points == {g.name: g.auto_score for g in notebook.grades}


STAND_IN = """
import os, random, signal, sys, time

from nbformat import v4

from autograder.grading import submission as module
from autograder.doors.cli import app

POINTS = {"x + x": 3.0, "x * x": 1.0, "x": 0.0}


def run(notebook, *_, **__):  # stands in for what takes minutes; everything else is the command's own
    time.sleep(random.random() / 50)
    answer = next(c.source for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "ch99-double-answer")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            text = repr(POINTS[answer.split("return ")[-1]])
            cell.execution_count, cell.outputs = 1, [v4.new_output("execute_result", {"text/plain": text})]
    return []


module.run_notebook = run
"""

KILLER = (
    STAND_IN
    + """
moments, killed = random.Random(7), 0
while True:
    child = os.fork()  # the same imports for every run
    if not child:
        sys.stderr = sys.stdout = open(os.devnull, "w")
        try:
            app(["grade", "--root", sys.argv[1], "--jobs", "2"], standalone_mode=False)
        except SystemExit as end:
            os._exit(end.code or 0)
        os._exit(0)
    time.sleep(moments.random() * 2 ** (killed / 4) / 8)
    os.kill(child, signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended != -signal.SIGKILL:
        break
    killed += 1
print(killed, ended)
"""
)


def test_killed_at_random_moments_nothing_is_lost_or_counted_twice(chapter):
    """SIGKILL after a random time, which grows, again and again until a run comes to its end."""
    for i in range(30):
        hand_in(chapter, f"t{i:02}", DOUBLES[i % 3])
    done = subprocess.run([sys.executable, "-c", KILLER, str(chapter.root)], capture_output=True, text=True, check=True)
    killed, ended = map(int, done.stdout.split())
    assert killed >= 5 and ended == 0
    whole(chapter, 33)
    assert {student: points["ch99-double"] for student, points in Book(chapter.root).known(chapter).items()} == {
        **{f"s{i}": (3, 1, 0)[i] for i in range(3)},
        **{f"t{i:02}": (3, 1, 0)[i % 3] for i in range(30)},
    }


def test_several_runs_at_once_write_every_row_once(chapter):
    for i in range(9):
        hand_in(chapter, f"t{i:02}", DOUBLES[i % 3])
    code = STAND_IN + 'app(["grade", "--root", sys.argv[1], "--jobs", "2"])'
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(chapter.root)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for _ in range(3)
    ]
    said = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    whole(chapter, 12)
