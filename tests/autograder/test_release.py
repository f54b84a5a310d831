"""What students get: fresh, runnable, the same bytes every time, and without anything they must not see."""

import os
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory

from autograder.authoring.bundle import FOLDER, bundle
from autograder.authoring.chapters import find_chapters, grade_id
from autograder.authoring.course_folder import sheets
from autograder.authoring.release import Release, _different, course_config, leaks, release, secrets, stale
from autograder.errors import CourseError
from autograder.grading.gradebook import Book, publish

ROOT_FILES = {"README.md", "pyproject.toml", "environment.yml", "LICENSE", "LICENSE-TEXT"}


@pytest.fixture
def course(toy, tmp_path):
    """A copy of the course with its release, to change."""
    shutil.copytree(toy.root, tmp_path / "course")
    return find_chapters(tmp_path / "course")[0]


def test_a_release_is_fresh_until_the_source_changes(course):
    assert stale(course) == []
    notebook = course.notebook
    notebook.cells[2].source = "## Doubled"
    nbformat.write(notebook, course.path)
    assert stale(find_chapters(course.root)[0]) == ["ch99_toy.ipynb"]


def rows(db_url: str) -> dict:
    """What a gradebook knows of its assignments' cells."""
    with Gradebook(db_url) as gradebook:
        return {
            notebook.name: (
                notebook.kernelspec,
                {c.name: (c.max_score, c.cell_type) for c in notebook.grade_cells},
                {c.name for c in notebook.solution_cells},
                {c.name: (c.cell_type, c.source, c.locked, c.checksum) for c in notebook.source_cells},
            )
            for assignment in gradebook.assignments
            for notebook in assignment.notebooks
        }


def test_it_is_what_nbgrader_itself_makes(course, tmp_path):
    (course.path.parent / "data").mkdir()
    (course.path.parent / "data" / "small.csv").write_text("1,2\n")
    (course.path.parent / "__pycache__").mkdir()
    (course.path.parent / "__pycache__" / "answers.pyc").write_text("x")
    (course.root / "gradebook.db").unlink()
    publish(course)
    made = tmp_path / "nbgrader"
    config = course_config(course.root)
    config.CourseDirectory.assignment_id = course.stem
    config.CourseDirectory.release_directory = str(made)
    config.CourseDirectory.db_url = f"sqlite:///{tmp_path}/other.db"
    GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
    assert (made / course.stem / "data" / "small.csv").is_file()
    assert _different(made / course.stem, course.release.parent) == []
    known = rows(f"sqlite:///{course.root}/gradebook.db")
    assert known == rows(config.CourseDirectory.db_url) and known.keys() == {course.name}


def test_a_notebook_that_is_gone_leaves_the_gradebook(course):
    other = course.path.with_name("other.ipynb")
    shutil.copy(course.path, other)
    one, two = sheets(course.root, course.stem)
    with Book(course.root) as book:
        for sheet in (one, two):
            book.register(sheet, Release.of(sheet))
    assert rows(book.db_url).keys() == {"ch99_toy", "other"}
    other.unlink()
    one.notebook.cells[5].metadata.nbgrader.points = 4  # something to write
    with Book(course.root) as book:
        book.register(one, Release.of(one))
    assert rows(book.db_url).keys() == {"ch99_toy"}


def test_a_missing_changed_or_additional_file_is_different(tmp_path):
    made, there = tmp_path / "made", tmp_path / "there"
    for folder in (made, there):
        (folder / "images").mkdir(parents=True)
        (folder / "same.txt").write_text("same")
    (made / "images" / "missing.txt").write_text("new")
    (made / "changed.txt").write_text("new")
    (there / "changed.txt").write_text("old")
    (there / "left.txt").write_text("old")
    assert _different(made, there) == ["changed.txt", "images/missing.txt", "left.txt"]


def test_the_stub_says_where_to_write(released):
    sources = {grade_id(cell): cell.source for cell in released.cells if grade_id(cell)}
    assert sources["ch99-double-answer"] == "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    assert sources["ch99-three-answer"] == "three = None  # replace None\n# YOUR CODE HERE"
    assert sources["ch99-why"] == "YOUR ANSWER HERE"


def test_the_visible_test_is_there_and_the_hidden_one_is_not(released):
    test = next(cell.source for cell in released.cells if grade_id(cell) == "ch99-double")
    assert 'exercise.part("the example")' in test and "any shape" not in test and test.endswith("exercise.score()")


def test_run_all_goes_on_after_a_blank_answer(released):
    assert all(
        "raises-exception" in c.metadata.tags
        for c in released.cells
        if c.cell_type == "code" and grade_id(c) not in ("ch99-setup", None)
    )


def test_the_release_leaks_nothing(toy):
    assert leaks(toy, toy.release.parent) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "        check(double).on(case.normal(case.integer(1, 5))).agrees_with(lambda secret_name: secret_name + secret_name)",
            "hidden tests",
        ),
        ("    # Why: twice is what doubling means.", "solution"),
        ("You squared: two and two hide the difference.", "misconception of ch99.double"),
        ("Two points for the word twice.", "written solution"),
        ("Twice as much.", "written solution"),
    ],
)
def test_a_leak_is_found_in_a_cell(course, text, what):
    notebook = nbformat.read(course.release, as_version=4)
    notebook.cells.append(nbformat.v4.new_markdown_cell(f"x\n{text}\ny"))
    nbformat.write(notebook, course.release)
    (told,) = leaks(course, course.release.parent)
    assert what in told and text.strip() in told


def test_a_leak_is_found_in_an_output(course):
    notebook = nbformat.read(course.release, as_version=4)
    told = "You squared: two and two hide the difference."
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text=f"{told}\n")]
    nbformat.write(notebook, course.release)
    assert leaks(course, course.release.parent) == [f"ch99_toy.ipynb: misconception of ch99.double: {told}"]


def test_answers_are_found_beside_the_notebook(course):
    shutil.copy(course.answers, course.release.parent)
    assert "answers.py is in the release" in leaks(course, course.release.parent)


def test_lines_that_all_may_read_are_no_secret(toy):
    assert "exercise.score()" not in secrets(toy)


def test_a_release_that_would_leak_is_not_written(make, cells):
    cells[2].source = "## Doubling\n\nYou squared: two and two hide the difference."
    cells[2].source += "\n" + cells[4].source.splitlines()[2]  # the author's reason, in a cell for all
    chapter = make(cells=[*cells[:3], *cells[3:]])
    notebook = chapter.notebook
    assert "You squared: two and two hide the difference." not in secrets(chapter)  # public on purpose
    notebook.cells[1].source += "\n'''\n### BEGIN HIDDEN TESTS\nleft = 'in the open by an unclosed mark'\n'''"
    nbformat.write(notebook, chapter.path)
    with pytest.raises(CourseError, match="nbgrader could not make the release"):
        release(find_chapters(chapter.root)[0])
    assert not chapter.release.exists()


# ---------------------------------------------------------------- the bundle


@pytest.fixture(scope="module")
def zipped(toy, tmp_path_factory):
    """The bundle of the toy chapter with the real course package."""
    root = tmp_path_factory.mktemp("bundle") / "course"
    shutil.copytree(toy.root, root)
    shutil.rmtree(root / "course")
    shutil.copytree(os.path.dirname(__import__("course").__file__), root / "course", ignore=shutil.ignore_patterns("__pycache__"))
    (chapter,) = find_chapters(root)
    target = root / "build" / "bundle.zip"
    bundle([chapter], target)
    return chapter, target


def test_the_bundle_has_what_students_need_and_nothing_else(zipped):
    _, target = zipped
    names = {name.removeprefix(f"{FOLDER}/") for name in zipfile.ZipFile(target).namelist()}
    others = {name for name in names if not name.startswith("course/")}
    assert others == ROOT_FILES | {"chapters/ch99_toy/ch99_toy.ipynb"}
    assert {"course/checks/__init__.py", "course/widgets/library.js"} <= names
    assert not any("answers" in name or "__pycache__" in name for name in names)


def test_the_same_files_give_the_same_bytes(zipped, tmp_path):
    chapter, target = zipped
    bundle([chapter], tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == target.read_bytes()


def test_a_bundle_that_would_leak_is_refused(course, tmp_path):
    shutil.copy(course.answers, course.release.parent)
    with pytest.raises(CourseError, match=r"answers\.py is in the release"):
        bundle([course], tmp_path / "bundle.zip")
    assert not (tmp_path / "bundle.zip").exists()


def test_a_chapter_without_a_release_is_told(course, tmp_path):
    shutil.rmtree(course.release.parent)
    with pytest.raises(CourseError, match="ch99_toy has no release; run autograder release ch99"):
        bundle([course], tmp_path / "bundle.zip")


def test_the_unpacked_notebook_runs_where_there_is_nothing_else(zipped, tmp_path):
    """With right answers the visible tests pass; a blank one says so; the course package is the bundle's."""
    zipfile.ZipFile(zipped[1]).extractall(tmp_path)
    folder = tmp_path / FOLDER
    notebook = nbformat.read(folder / "chapters" / "ch99_toy" / "ch99_toy.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    cells[1] = "def double(x):\n    return x + x"
    run = """
import json, sys
from autograder.wire.shell import make_shell
import course
shell = make_shell()
said = [shell.run(cell) for cell in json.load(sys.stdin)]
print(json.dumps([course.__file__, "".join(o.get("text", "") for o in said[2]), said[4][-1]["evalue"]]))
"""
    # The autograder only lends its shell here: the course package comes first from the bundle.
    env = {**os.environ, "PYTHONPATH": f"{folder}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", run], input=__import__("json").dumps(cells), cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, visible, blank = __import__("json").loads(done.stdout.splitlines()[-1])
    assert where == str(folder / "course" / "__init__.py")
    assert visible == "ch99.double: the tests you can see pass; hidden tests decide the 3 points.\n"
    assert blank == "ch99.three: the tests you can see do not pass yet.\n- a number: three should be a number, nothing came."
