"""nbgrader's own commands with the course's nbgrader_config.py: they use the engine, and all that is nbgrader's keeps working."""

import contextlib
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.authoring.chapters import find_chapters, grade_id
from autograder.authoring.release import course_config
from autograder.doors import ask
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options

RIGHT = {"double": "def double(x):\n    return x + x", "three": "three = 3", "letter": "letter = 'B'", "why": "Twice."}
SQUARES = {**RIGHT, "double": "def double(x):\n    return x * x"}
NAMES = ("double", "three", "letter", "why")
SCRIPT = "<script>window.probe = 1</script>"
WARNS = "import warnings\n\n\ndef double(x):\n    warnings.warn('careful')\n    return x + x"


def nbgrader(root: Path, *words: str) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "nbgrader", *words], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def api(root: Path, extra: Config | None = None) -> NbGraderAPI:
    """What formgrader's buttons call; it spares a command's start."""
    config = course_config(root)
    config.merge(extra or Config())
    return NbGraderAPI(CourseDirectory(config=config), config=config)


def autograde(root: Path, extra: Config | None = None) -> dict:
    return api(root, extra).autograde("ch99_toy", "ada")


def feedback(root: Path) -> str:
    done = api(root).generate_feedback("ch99_toy", "ada")
    assert done["success"], done
    return (root / "feedback" / "ada" / "ch99_toy" / "ch99_toy.html").read_text()


def hand_in(root: Path, student: str, answers: dict, change=lambda notebook: None) -> Path:
    notebook = nbformat.read(root / "release" / "ch99_toy" / "ch99_toy.ipynb", as_version=4)
    for cell in notebook.cells:
        name = (grade_id(cell) or "").removeprefix("ch99-").removesuffix("-answer")
        if cell.metadata.get("nbgrader", {}).get("solution") and name in answers:
            cell.source = answers[name]
    change(notebook)
    folder = root / "submitted" / student / "ch99_toy"
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / "ch99_toy.ipynb")
    return folder


def skip_tests(notebook):
    for cell in notebook.cells:
        if grade_id(cell) in ("ch99-double", "ch99-three"):
            cell.metadata.tags = ["skip-execution"]  # nbgrader runs no such cell, and gives it full points


def old_schema(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.schema_version = 1


def twice(notebook):
    again = next(cell for cell in notebook.cells if grade_id(cell) == "ch99-letter").copy()
    notebook.cells.append(nbformat.from_dict({**again, "id": "again"}))


def shows_html(notebook):
    source = f"from IPython.display import HTML, display\ndisplay(HTML({SCRIPT!r}))"
    notebook.cells.insert(2, nbformat.v4.new_code_cell(source))


def scores(root: Path) -> dict[str, list]:
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        sheets = gradebook.notebook_submissions("ch99_toy", "ch99_toy")
        grades = {sheet.student.id: {g.name: g.auto_score for g in sheet.grades} for sheet in sheets}
    return {student: [mine[f"ch99-{name}"] for name in NAMES] for student, mine in grades.items()}


@pytest.fixture(scope="module")
def daemon():
    """A grading daemon of these tests' own, ended with them."""
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", place)  # a socket's path must be short
        yield
        ask.stop()


@pytest.fixture(scope="module")
def graded(toy, daemon, tmp_path_factory):
    root = tmp_path_factory.mktemp("nbgrader") / "course"
    shutil.copytree(toy.root, root, ignore=shutil.ignore_patterns("release", "gradebook.db"))
    nbgrader(root, "generate_assignment", "ch99_toy")
    hand_in(root, "ada", RIGHT)
    hand_in(root, "ben", {})
    hand_in(root, "eli", SQUARES, shows_html)
    hand_in(root, "out", RIGHT, skip_tests)
    hand_in(root, "old", RIGHT, old_schema)
    hand_in(root, "two", RIGHT, twice)
    hand_in(root, "war", {**RIGHT, "double": WARNS})
    hand_in(root, "end", {**RIGHT, "letter": "import os\n\nos._exit(1)"})
    (hand_in(root, "nil", {}) / "ch99_toy.ipynb").write_bytes(b"")
    folder = hand_in(root, "lnk", RIGHT)
    (folder / "look.db").symlink_to(root / "gradebook.db")
    (folder / "timestamp.txt").write_text("not a time")
    nbgrader(root, "autograde", "ch99_toy")
    nbgrader(root, "generate_feedback", "ch99_toy")
    return root


@pytest.mark.parametrize(
    ("student", "points"),
    [
        ("ada", [3, 1, 1, None]),
        ("ben", [0, 0, 0, 0]),
        ("eli", [1, 1, 1, None]),
        ("out", [3, 1, 1, None]),
        ("old", [3, 1, 1, None]),
        ("two", [3, 1, 1, None]),
        ("war", [3, 1, 1, None]),
        ("end", [3, 1, 0, None]),
        ("nil", [0, 0, 0, 0]),
        ("lnk", [3, 1, 1, None]),
    ],
)
def test_everybody_gets_what_they_earned_and_nobody_stops_the_batch(graded, student, points):
    assert scores(graded)[student] == points


def test_the_fast_path_gives_the_same_scores(graded, tmp_path):
    root = tmp_path / "course"
    shutil.copytree(graded, root, ignore=shutil.ignore_patterns("gradebook.db", "autograded", "feedback"), symlinks=True)
    (chapter,) = find_chapters(root)
    grade([chapter], Book(root), Options(seed=1))
    assert scores(root) == scores(graded)


@pytest.mark.parametrize(
    ("student", "flag"),
    [
        ("nil", "ch99_toy.ipynb is empty"),
        ("lnk", "timestamp.txt says no time"),
        ("two", "a second copy"),
    ],
)
def test_what_was_odd_is_kept_with_the_notebook(graded, student, flag):
    notebook = nbformat.read(graded / "autograded" / student / "ch99_toy" / "ch99_toy.ipynb", as_version=4)
    assert flag in " ".join(notebook.metadata.autograder.flags)


def test_what_a_link_points_to_reaches_neither_the_graded_folder_nor_the_feedback(graded):
    assert not [path for step in ("autograded", "feedback") for path in (graded / step).rglob("look.db")]


@pytest.mark.parametrize("student", ["ada", "eli", "ben", "end", "nil"])
def test_the_feedback_is_the_courses_own_and_shows_no_hidden_test(graded, student):
    page = (graded / "feedback" / student / "ch99_toy" / "ch99_toy.html").read_text()
    assert "secret_name" not in page and "Two points for the word" not in page and 'id="ch99-double-title"' in page
    assert "default-src 'none'" in page and "<script" not in page


def test_what_a_student_displays_is_inert_in_the_graded_notebook(graded):
    notebook = nbformat.read(graded / "autograded" / "eli" / "ch99_toy" / "ch99_toy.ipynb", as_version=4)
    (shown,) = [cell.outputs for cell in notebook.cells if "display(HTML" in cell.source]
    assert shown[0].data["text/plain"] and "<script" not in str(shown)


def test_nbgrader_exports_the_scores(graded):
    nbgrader(graded, "export", "--to", "scores.csv")
    with (graded / "scores.csv").open(newline="") as file:
        table = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert table["ada"] == 5 and table["eli"] == 3 and table["nil"] == 0


@pytest.fixture
def course(graded, tmp_path):
    """A course of its own, with nobody's submission, to change."""
    root = tmp_path / "course"
    shutil.copytree(graded, root, ignore=shutil.ignore_patterns("submitted", "autograded", "feedback"))
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        for student in list(gradebook.students):
            gradebook.remove_student(student.id)
    return root


@contextlib.contextmanager
def submission(root: Path):
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        yield gradebook, gradebook.find_submission_notebook("ch99_toy", "ch99_toy", "ada")
        gradebook.db.commit()


def seed(root: Path) -> int:
    return nbformat.read(root / "autograded" / "ada" / "ch99_toy" / "ch99_toy.ipynb", as_version=4).metadata.autograder.seed


def test_a_regrade_keeps_the_seed_the_manual_score_and_the_comment(course):
    hand_in(course, "ada", RIGHT)
    assert autograde(course)["success"]
    before = seed(course)
    with submission(course) as (gradebook, _):
        written = gradebook.find_grade("ch99-why", "ch99_toy", "ch99_toy", "ada")
        written.manual_score, written.needs_manual_grade, written.extra_credit = 1.5, False, 0.5
        gradebook.find_comment("ch99-why", "ch99_toy", "ch99_toy", "ada").manual_comment = "Say <why>."
    hand_in(course, "ada", {**RIGHT, "three": "three = 4"})
    assert autograde(course)["success"]
    assert seed(course) == before
    with submission(course) as (gradebook, sheet):
        assert sheet.score == 3 + 0 + 1 + 2
        assert gradebook.find_comment("ch99-why", "ch99_toy", "ch99_toy", "ada").comment == "Say <why>."
    page = feedback(course)
    assert "Your teacher: Say &lt;why&gt;." in page and "<strong>6 of 7 points</strong>" in page


def test_a_late_submission_loses_what_the_configuration_says(course):
    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment("ch99_toy", duedate=datetime(2026, 1, 1))
    folder = hand_in(course, "ada", RIGHT)
    (folder / "timestamp.txt").write_text("2026-01-02 00:00:00 UTC")
    os.utime(folder / "ch99_toy.ipynb", (1.7e9, 1.7e9))
    assert autograde(course, Config(LateSubmissionPlugin={"penalty_method": "zero"}))["success"]
    with submission(course) as (_, sheet):
        assert sheet.late_submission_penalty == 5.0
    page = feedback(course)
    assert "5 points were taken off because you handed in late." in page and "<strong>0 of 7 points</strong>" in page


def test_a_forged_time_does_not_count(course):
    folder = hand_in(course, "ada", RIGHT)
    (folder / "timestamp.txt").write_text("2001-01-01 00:00:00 UTC")  # long before the notebook was changed
    assert autograde(course)["success"]
    with submission(course) as (gradebook, _):
        assert gradebook.find_submission("ch99_toy", "ada").timestamp.year > 2001


def test_without_execution_nothing_is_run_and_nothing_is_given(course):
    hand_in(course, "ada", RIGHT)
    assert autograde(course, Config(Execute={"enabled": False}))["success"]  # what --no-execute sets
    assert scores(course)["ada"] == [0, 0, 0, None]


def test_the_limits_and_the_sandbox_are_those_of_the_configuration(course):
    hand_in(course, "ada", {**RIGHT, "double": "def double(x):\n    while True:\n        pass"})
    done = autograde(course, Config(Execute={"call_limit": 0.5, "patience": 60.0, "sandbox": "none"}))
    assert done["success"] and scores(course)["ada"] == [0, 1, 1, None]
    assert "0.5 s" in feedback(course)


def test_where_the_engine_cannot_run_no_score_is_recorded(course):
    hand_in(course, "ada", RIGHT)
    (course / "source" / "ch99_toy" / "answers.py").write_text("1 / 0")
    done = autograde(course)
    assert not done["success"] and "answers.py" in done["log"] + done.get("error", "")
    assert not (course / "autograded" / "ada" / "ch99_toy").exists() and scores(course)["ada"] == [None, None, None, None]
