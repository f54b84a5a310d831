"""`autograder grade --course` on a course folder that is nbgrader's and not ours: several notebooks, plain asserts,
partial credit, answers and tasks for a teacher, beside nbgrader's own autograde on the same submissions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder.authoring.chapters import grade_id
from autograder.authoring.course_folder import sheets
from autograder.authoring.release import Release
from autograder.authoring.scoring import shown_scores
from autograder.doors.cli import app
from autograder.errors import CourseError

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def named(id: str, points: float | None = None, solution=False, task=False) -> dict:
    given = {"grade": points is not None and not task, "grade_id": id, "locked": not solution, "solution": solution, "task": task}
    return {"nbgrader": {**given, "schema_version": 3} | ({"points": points} if points is not None else {})}


AREA = """def area(radius):
    \"\"\"The area of a disc.\"\"\"
    ### BEGIN SOLUTION
    if radius < 0:
        raise ValueError("a radius is not negative")
    return math.pi * radius**2
    ### END SOLUTION"""
TEST_AREA = """assert area(0) == 0
### BEGIN HIDDEN TESTS
assert abs(area(2) - 12.566370614359172) < 1e-9
try:
    area(-1)
except ValueError:
    pass
else:
    raise AssertionError("a negative radius")
### END HIDDEN TESTS"""
PARTIAL = """earned = 0.0
### BEGIN HIDDEN TESTS
earned += 1.5 * (abs(area(1) - math.pi) < 1e-9)
earned += 0.5 * (sides == 4)
### END HIDDEN TESTS
np.float64(earned)"""


def discs():
    return [
        new_markdown_cell("# Discs"),
        new_code_cell("import math\n\nimport numpy as np", metadata=named("setup")),
        new_code_cell(AREA, metadata=named("area", solution=True)),
        new_code_cell(TEST_AREA, metadata=named("test_area", 3)),
        new_code_cell("### BEGIN SOLUTION\nsides = 4\n### END SOLUTION", metadata=named("sides", solution=True)),
        new_code_cell(PARTIAL, metadata=named("test_partial", 2)),
        new_code_cell("### BEGIN SOLUTION\nprint('a plot')\n### END SOLUTION", metadata=named("by_hand", 4, solution=True)),
        new_markdown_cell("Why is it so?", metadata=named("why", 5, solution=True)),
    ]


def words():
    return [
        new_code_cell(
            "def count(text):\n    ### BEGIN SOLUTION\n    return len(text.split())\n    ### END SOLUTION",
            metadata=named("count", solution=True),
        ),
        new_code_cell(
            'import pathlib\n\nassert count("a b") == 2\n### BEGIN HIDDEN TESTS\nassert count("") == 0\n### END HIDDEN TESTS\n'
            'assert count(pathlib.Path("poem.txt").read_text()) == 3',
            metadata=named("test_count", 2),
        ),
        new_markdown_cell("Make a poem of your own.", metadata=named("poem", 6, task=True)),
    ]


RIGHT = {
    "area": "def area(radius):\n    if radius < 0:\n        raise ValueError\n    return math.pi * radius * radius",
    "sides": "sides = 2 + 2",
    "by_hand": "print('mine')",
    "why": "Because of Archimedes.",
    "count": "def count(text):\n    return len(text.split())",
}
STUDENTS = {
    "right": RIGHT,
    "blank": {},
    "half": {**RIGHT, "area": "def area(radius):\n    return math.pi * radius * radius", "sides": "sides = 5"},
    "error": {**RIGHT, "area": "def area(radius):\n    return radius / 0", "count": "def count(text):\n    return 2"},
}
SCORES = {  # test_area, test_partial, by_hand, why, test_count, poem; None waits for a teacher
    "right": [3, 2, None, None, 2, None],
    "blank": [0, 0, 0, 0, 0, None],
    "half": [0, 1.5, None, None, 2, None],
    "error": [0, 0, None, None, 0, None],
    "renamed": [3, 2, None, None, 2, None],
    "missing": [3, 2, None, None, 0, None],
}


def nbgrader(root: Path, *words: str) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "nbgrader", *words], cwd=root, env=env, capture_output=True, check=True)


def answered(path: Path, answers: dict) -> nbformat.NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = answers.get(grade_id(cell), cell.source)
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course made by nbgrader's own commands, with a class's submissions."""
    root = tmp_path_factory.mktemp("foreign")
    source = root / "source" / "week1"
    source.mkdir(parents=True)
    nbformat.write(new_notebook(cells=discs(), metadata=KERNEL), source / "discs.ipynb")
    nbformat.write(new_notebook(cells=words(), metadata=KERNEL), source / "words.ipynb")
    (source / "poem.txt").write_text("one two three")
    nbgrader(root, "generate_assignment", "week1")
    release = root / "release" / "week1"
    for student, answers in STUDENTS.items():
        folder = root / "submitted" / student / "week1"
        folder.mkdir(parents=True)
        for path in release.glob("*.ipynb"):
            nbformat.write(answered(path, answers), folder / path.name)
        shutil.copy(release / "poem.txt", folder)
    renamed = shutil.copytree(root / "submitted" / "right", root / "submitted" / "renamed") / "week1"
    (renamed / "discs.ipynb").rename(renamed / "my discs.ipynb")
    (renamed / "words.ipynb").rename(renamed / "words (1).ipynb")
    (renamed / "poem.txt").write_text("a poem of another length")
    missing = shutil.copytree(root / "submitted" / "right", root / "submitted" / "missing") / "week1"
    (missing / "words.ipynb").unlink()
    return root


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "NO_COLOR": "1"})


def table(root: Path) -> dict[str, list[float | None]]:
    order = [("discs", n) for n in ("test_area", "test_partial", "by_hand", "why")] + [("words", "test_count"), ("words", "poem")]
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        return {
            submission.student.id: [
                gradebook.find_grade(name, notebook, "week1", submission.student.id).auto_score for notebook, name in order
            ]
            for submission in gradebook.assignment_submissions("week1")
        }


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    root = shutil.copytree(course, tmp_path_factory.mktemp("ours") / "course")
    done = call("grade", "--course", root, "week1", "--jobs", 1)
    assert done.exit_code == 0, done.output
    return root, done.output


@pytest.mark.parametrize("student", SCORES)
def test_scores(graded, student):
    assert table(graded[0])[student] == SCORES[student]


def test_what_was_odd_is_told_for_each_notebook(graded):
    assert "renamed week1/discs: of 2 notebooks my discs.ipynb was taken for discs.ipynb" in graded[1]
    assert "renamed week1/words: of 2 notebooks words (1).ipynb was taken for words.ipynb" in graded[1]
    assert "missing week1/words: words.ipynb was not handed in" in graded[1]
    assert not any(line.startswith(("right", "half", "blank", "error")) for line in graded[1].splitlines())


def test_what_waits_for_a_teacher_is_what_waits_in_nbgrader(graded):
    with Gradebook(f"sqlite:///{graded[0]}/gradebook.db") as gradebook:
        waiting = {
            submission.student.id: sorted(g.name for n in submission.notebooks for g in n.grades if g.needs_manual_grade)
            for submission in gradebook.assignment_submissions("week1")
        }
    assert waiting["right"] == ["by_hand", "poem", "why"] and waiting["blank"] == ["poem"]


def test_nbgraders_own_autograde_comes_to_the_same_under_compat(course, tmp_path):
    """One submission each: nbgrader's own run of all would take a minute."""
    ours, theirs = (shutil.copytree(course, tmp_path / name) for name in ("ours", "theirs"))
    for root in (ours, theirs):
        for path in (root / "submitted").iterdir():
            if path.name not in ("half", "blank"):
                shutil.rmtree(path)
    call("grade", "--course", ours, "week1", "--policy", "compat", "--jobs", 1)
    nbgrader(theirs, "autograde", "week1")
    assert table(ours) == table(theirs)
    assert table(ours)["half"][1] == 2, "nbgrader reads np.float64(1.5) as full points; fair does not"
    # and nbgrader's other commands go on from our grading
    nbgrader(ours, "generate_feedback", "week1")
    assert (ours / "feedback" / "half" / "week1" / "discs.html").is_file()


def test_a_gradebook_is_made_where_there_is_none(course, tmp_path):
    root = shutil.copytree(course, tmp_path / "course")
    (root / "gradebook.db").unlink()
    for path in (root / "submitted").iterdir():
        if path.name != "blank":
            shutil.rmtree(path)
    assert call("grade", "--course", root, "week1", "--jobs", 1).exit_code == 0
    assert table(root) == {"blank": SCORES["blank"]}


def test_folders_are_where_the_configuration_says(course, tmp_path):
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.source_directory = 'masters'\n"
        "c.CourseDirectory.submitted_directory = 'inbox'\nc.CourseDirectory.directory_structure = '{nbgrader_step}/{student_id}/hw/{assignment_id}'"
    )
    shutil.copytree(course / "source" / "week1", tmp_path / "masters" / "hw" / "week1")
    discs, words = sheets(tmp_path, "week1")
    assert discs.path == tmp_path / "masters" / "hw" / "week1" / "discs.ipynb" and words.id == "week1/words"
    assert discs.folder("submitted", "ada") == tmp_path / "inbox" / "ada" / "hw" / "week1"


def test_a_release_made_in_memory_is_nbgraders(course):
    for sheet in sheets(course, "week1"):
        release = Release.of(sheet)
        there = nbformat.read(sheet.release, as_version=4)
        assert [cell.source for cell in release.released.cells] == [cell.source for cell in there.cells]
        assert "HIDDEN" in str(release.registered) and "HIDDEN" not in str(release.released)
        assert "HIDDEN" in str(sheet.notebook) and "BEGIN SOLUTION" in str(sheet.notebook)


def test_an_unknown_assignment_is_told_with_those_there_are(course, tmp_path):
    with pytest.raises(CourseError, match=r"no assignment 'week2' in .*; there are: week1"):
        sheets(course, "week2")
    done = call("grade", "--course", tmp_path / "none", "week1")
    assert done.exit_code == 2 and "is no folder" in done.output
    assert call("grade", "--course", course).exit_code == 2


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("score = 1\nprint(score)", "print(score)"),
        ("%matplotlib inline\nearned = 1\ndisplay(earned)", "display(earned)"),
        ("score = 1\nscore", None),
        ("%%capture\nassert True", None),
        ("assert True\nprint('done')", None),
        ("", None),
        ("def f(:", None),
    ],
)
def test_a_test_that_shows_its_score_in_place_of_ending_in_it_is_told(source, told):
    found = shown_scores(new_notebook(cells=[new_code_cell(source, metadata=named("test_a", 2))]))
    assert found == (
        [f"test_a: the test ends in {told}, which gives full points; end it in {told[told.index('(') + 1 : -1]}"] if told else []
    )


def test_a_source_of_an_old_schema_is_told(tmp_path):
    folder = tmp_path / "source" / "old"
    folder.mkdir(parents=True)
    cells = words()
    cells[0].metadata.nbgrader.schema_version = 1
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), folder / "old.ipynb")
    with pytest.raises(CourseError, match=r"old\.ipynb: "):
        _ = sheets(tmp_path, "old")[0].notebook
