"""nbgrader's own commands with the course's nbgrader_config.py: scores, fail-closed and feedback are as they should be."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.chapters import grade_id

pytestmark = pytest.mark.slow
WRONG = {"double": "def double(x):\n    return x * x", "three": "three = 3", "letter": "letter = 'B'", "why": "Twice."}
SKIPS = "get_ipython().run_cell_async = None"


def nbgrader(root: Path, *words: str) -> str:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "nbgrader", *words], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def graded(toy, tmp_path_factory):
    root = tmp_path_factory.mktemp("nbgrader") / "course"
    shutil.copytree(toy.root, root, ignore=shutil.ignore_patterns("release", "gradebook.db"))
    nbgrader(root, "generate_assignment", "ch99_toy")
    right = {**WRONG, "double": "def double(x):\n    return x + x"}
    for student, answers in {"ada": right, "eli": WRONG, "ben": {}, "out": right}.items():
        notebook = nbformat.read(root / "release" / "ch99_toy" / "ch99_toy.ipynb", as_version=4)
        for cell in notebook.cells:
            name = (grade_id(cell) or "").removeprefix("ch99-").removesuffix("-answer")
            if cell.metadata.get("nbgrader", {}).get("solution") and name in answers:
                cell.source = answers[name]
            if student == "out" and grade_id(cell) in ("ch99-double", "ch99-three"):
                cell.metadata.tags = ["skip-execution"]  # nbgrader runs no such cell, and gives it full points
        (root / "submitted" / student / "ch99_toy").mkdir(parents=True)
        nbformat.write(notebook, root / "submitted" / student / "ch99_toy" / "ch99_toy.ipynb")
    nbgrader(root, "autograde", "ch99_toy")
    nbgrader(root, "generate_feedback", "ch99_toy")
    return root


@pytest.mark.parametrize(
    ("student", "points"), [("ada", [3, 1, 1, None]), ("eli", [1, 1, 1, None]), ("ben", [0, 0, 0, 0]), ("out", [0, 0, 1, None])]
)
def test_scores(graded, student, points):
    with Gradebook(f"sqlite:///{graded}/gradebook.db") as gradebook:
        grades = {g.name: g.auto_score for g in gradebook.find_submission_notebook("ch99_toy", "ch99_toy", student).grades}
    assert [grades[f"ch99-{name}"] for name in ("double", "three", "letter", "why")] == points


@pytest.mark.parametrize("student", ["ada", "eli", "ben", "out"])
def test_the_feedback_shows_no_hidden_test(graded, student):
    page = (graded / "feedback" / student / "ch99_toy" / "ch99_toy.html").read_text()
    assert "the example" in page and "secret_name" not in page and "Two points for the word" not in page
