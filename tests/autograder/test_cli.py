"""The command says what it did, and its exit code tells: 0 done, 1 a check failed, 2 it could not be carried out."""

import shutil

import nbformat
import pytest
from typer.testing import CliRunner

import autograder
from autograder.authoring.chapters import find_chapters
from autograder.doors.cli import app

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
OF_CHAPTERS = [name for name in COMMANDS if name not in ("doctor", "new", "intake", "roster")]


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.fixture
def root(toy, tmp_path):
    shutil.copytree(toy.root, tmp_path / "course", ignore=shutil.ignore_patterns("gradebook.db"))
    return tmp_path / "course"


def test_the_commands_are_those_of_the_guide():
    work = {
        "new",
        "run",
        "check",
        "mutate",
        "release",
        "bundle",
        "roster",
        "intake",
        "grade",
        "feedback",
        "report",
        "demo",
        "doctor",
    }
    assert set(COMMANDS) == work


def test_the_version_is_told_before_anything_else():
    done = call("--version", "check", "ch98")
    assert done.exit_code == 0 and done.output == f"autograder {autograder.__version__}\n"


@pytest.mark.parametrize("command", OF_CHAPTERS)
def test_help_says_what_a_command_does(command):
    done = call(command, "--help")
    assert done.exit_code == 0 and "Usage" in done.output and "ch04" in done.output


@pytest.mark.parametrize("command", OF_CHAPTERS)
def test_an_unknown_chapter_is_told_with_those_there_are(toy, command):
    done = call(command, "ch98", "--root", toy.root)
    assert done.exit_code == 2 and "no chapter 'ch98'; there are: ch99_toy" in done.output


def test_a_new_chapter_that_cannot_be_made_is_told(toy):
    done = call("new", "ch98", "--root", toy.root)
    assert done.exit_code == 2 and "a chapter is called like ch04_attention, not 'ch98'" in done.output
    done = call("new", "ch98_unheard", "--root", toy.root)
    assert done.exit_code == 2 and "book/reference/chapters.yml" in done.output


def test_outside_of_a_course_the_way_in_is_told(tmp_path):
    done = call("check", "--root", tmp_path)
    assert done.exit_code == 2 and "use --root" in done.output


def test_check_ends_with_one_on_a_miss(root):
    assert call("check", "--root", root, "--jobs", 1).exit_code == 0
    path = root / "source" / "ch99_toy" / "answers.py"
    path.write_text(path.read_text().replace("x**2", "2 * x"))
    done = call("check", "--root", root, "--jobs", 1)
    assert done.exit_code == 1 and "wrong answer squares is accepted" in done.output


def test_check_tells_of_a_slip_in_the_answers(root):
    (root / "source" / "ch99_toy" / "answers.py").write_text("1 / 0")
    done = call("check", "--root", root, "--jobs", 1)
    assert done.exit_code == 1 and "ZeroDivisionError" in done.output


def test_release_check_ends_with_one_when_stale(root):
    assert "ch99_toy: fresh" in call("release", "--check", "--root", root).output
    chapter = find_chapters(root)[0]
    chapter.notebook.cells[2].source = "## Doubled"
    nbformat.write(chapter.notebook, chapter.path)
    done = call("release", "--check", "--root", root)
    assert done.exit_code == 1 and "stale (ch99_toy.ipynb); run autograder release ch99" in done.output


def test_run_ends_with_one_when_a_cell_fails_and_writes_nothing(root):
    chapter = find_chapters(root)[0]
    chapter.notebook.cells[1].source = "1 / 0"
    nbformat.write(chapter.notebook, chapter.path)
    before = chapter.path.read_bytes()
    done = call("run", "--root", root)
    assert done.exit_code == 1 and "ZeroDivisionError" in done.output and chapter.path.read_bytes() == before


def test_nothing_to_grade_and_nothing_to_report_are_told(root):
    done = call("grade", "--root", root)
    assert done.exit_code == 2 and "nothing in submitted/<student>/<chapter>/" in done.output
    done = call("report", "--root", root)
    assert done.exit_code == 2 and "run autograder grade first" in done.output
    done = call("feedback", "ch99", "--root", root)
    assert done.exit_code == 2 and "run autograder grade first" in done.output


def test_a_demo_without_a_release_says_what_to_do(root):
    shutil.rmtree(root / "release")
    done = call("demo", "--root", root)
    assert done.exit_code == 2 and "run autograder release ch99" in done.output


def test_from_bundle_to_report(root):
    """The teacher's way through the commands, with one submission."""
    done = call("bundle", "--root", root, "--out", root / "b.zip")
    assert done.exit_code == 0 and (root / "b.zip").is_file(), done.output
    folder = root / "submitted" / "ada" / "ch99_toy"
    folder.mkdir(parents=True)
    shutil.copy(root / "release" / "ch99_toy" / "ch99_toy.ipynb", folder)
    assert "1 submissions graded" in call("grade", "--root", root, "--jobs", 1).output
    assert "1 pages in feedback/" in call("feedback", "--root", root).output
    assert (root / "feedback" / "ada" / "ch99_toy" / "ch99_toy.html").is_file()
    assert "report.html" in call("report", "--root", root).output
    assert (root / "build" / "report" / "scores.csv").read_text().splitlines()[1] == "ada,ch99_toy,ch99.double,0,3"
