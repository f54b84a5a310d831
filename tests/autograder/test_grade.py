"""A class of submissions to scores in nbgrader's gradebook: nothing is lost and nothing stops the others."""

import errno
import json
import os
import shutil
import sqlite3
from datetime import datetime, timedelta

import nbformat
import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from autograder.authoring.chapters import find_chapters, grade_id
from autograder.doors.cli import app
from autograder.errors import CourseError
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options

SEED = Options(seed=1)


def hand_in(chapter, student, notebook=None, name="ch99_toy.ipynb", raw=None):
    folder = chapter.root / "submitted" / student / chapter.stem
    folder.mkdir(parents=True, exist_ok=True)
    if raw is not None:
        (folder / name).write_bytes(raw)
    elif notebook is not None:
        nbformat.write(notebook, folder / name)
    return folder


def answered(released, **answers):
    notebook = nbformat.from_dict(released)
    for cell in notebook.cells:
        for name, source in answers.items():
            if grade_id(cell) == (f"ch99-{name}-answer" if name != "why" else "ch99-why"):
                cell.source = source
    return notebook


RIGHT = {
    "double": "def double(x):\n    return x + x",
    "three": "three = 3",
    "letter": "letter = 'B'",
    "why": "Twice as <b>much</b>.",
}
HTML = "def double(x):\n    print('<script>alert(1)</script>')\n    return x * x"


def copy_of(toy, folder):
    shutil.copytree(toy.root, folder / "course", ignore=shutil.ignore_patterns("gradebook.db", "submitted", "autograded"))
    return find_chapters(folder / "course")[0]


@pytest.fixture(scope="module")
def graded(toy, tmp_path_factory):
    """The chapter and gradebook after a class of odd submissions was graded, and what was flagged."""
    chapter = copy_of(toy, tmp_path_factory.mktemp("class"))
    released = nbformat.read(chapter.release, as_version=4)
    hand_in(chapter, "perfect", answered(released, **RIGHT))
    hand_in(chapter, "blank", released)
    hand_in(chapter, "broken", raw=b'{"cells": [')
    hand_in(chapter, "nothing")
    hand_in(chapter, "renamed", answered(released, **RIGHT), name="Copy of toy.ipynb")
    hand_in(chapter, "several", answered(released, **RIGHT), name="a.ipynb")
    hand_in(chapter, "several", answered(released, **RIGHT), name="b.ipynb")
    hand_in(chapter, "squares", answered(released, **{**RIGHT, "double": HTML, "letter": "letter = None"}))
    (hand_in(chapter, "crash", answered(released, **{**RIGHT, "letter": "import os; os._exit(1)"})) / "timestamp.txt").write_text(
        "not a time"
    )
    folder = chapter.folder("submitted", "perfect")
    (folder / "timestamp.txt").write_text("2026-01-02T03:04:05+02:00")
    os.utime(folder / "ch99_toy.ipynb", (1.7e9, 1.7e9))  # as `nbgrader submit` leaves it: not changed after it was handed in
    book = Book(chapter.root)
    done = grade([chapter], book, SEED)
    return chapter, book, {one.student: one for one in done}


def scores(chapter, book) -> dict[str, list[float]]:
    table = {}
    for student, _, score, _ in book.scores(chapter):
        table.setdefault(student, []).append(score)
    return table


@pytest.mark.parametrize(
    ("student", "points"),
    [
        ("perfect", [3, 1, 1, 0]),  # the written answer waits
        ("blank", [0, 0, 0, 0]),
        ("broken", [0, 0, 0, 0]),
        ("nothing", [0, 0, 0, 0]),
        ("renamed", [3, 1, 1, 0]),
        ("several", [3, 1, 1, 0]),
        ("squares", [1, 1, 0, 0]),
        ("crash", [3, 1, 0, 0]),
    ],
)
def test_everybody_gets_what_they_earned(graded, student, points):
    chapter, book, _ = graded
    assert scores(chapter, book)[student] == points


@pytest.mark.parametrize(
    ("student", "flag"),
    [
        ("broken", "ch99_toy.ipynb is not a notebook (it ends too soon)"),
        ("nothing", "ch99_toy.ipynb was not handed in"),
        ("renamed", "Copy of toy.ipynb was taken for ch99_toy.ipynb"),
        ("several", "of 2 notebooks b.ipynb was taken for ch99_toy.ipynb"),
        ("crash", "the process that ran a cell ended itself with exit code 1"),
    ],
)
def test_what_was_odd_is_flagged_and_kept_with_the_notebook(graded, student, flag):
    chapter, _, done = graded
    told = ["timestamp.txt says no time", flag] if student == "crash" else [flag]
    assert done[student].flags == told
    kept = nbformat.read(chapter.root / "autograded" / student / chapter.stem / "ch99_toy.ipynb", as_version=4)
    assert kept.metadata.autograder.flags == told and kept.metadata.autograder.seed == 1


@pytest.mark.parametrize("student", ["perfect", "blank", "squares"])
def test_what_is_usual_has_no_flags(graded, student):
    assert graded[2][student].flags == []


def test_a_written_answer_waits_and_a_blank_one_is_zero(graded):
    _, _, done = graded
    assert done["perfect"].points["ch99-why"] is None and done["blank"].points["ch99-why"] == 0


def test_the_time_is_kept_and_a_forged_one_does_no_harm(graded):
    chapter, book, _ = graded
    with Gradebook(book.db_url) as gradebook:
        assert str(gradebook.find_submission(chapter.stem, "perfect").timestamp) == "2026-01-02 01:04:05"
        assert gradebook.find_submission(chapter.stem, "crash").timestamp is None


def test_nothing_to_grade_is_told(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    with pytest.raises(CourseError, match="no submissions in submitted/"):
        grade([chapter], Book(chapter.root))


def test_a_submission_that_cannot_be_graded_stops_nobody(toy, tmp_path, monkeypatch):
    from autograder.grading import submission as module

    chapter = copy_of(toy, tmp_path)
    released = nbformat.read(chapter.release, as_version=4)
    hand_in(chapter, "bad", released)
    hand_in(chapter, "good", answered(released, **RIGHT))
    real = module.merge
    monkeypatch.setattr(
        module,
        "merge",
        lambda chapter, notebook, *rest: 1 / 0 if "YOUR CODE" in str(notebook) else real(chapter, notebook, *rest),
    )
    bad, good = grade([chapter], Book(chapter.root), SEED)
    assert bad.flags == ["not graded: ZeroDivisionError: division by zero"] and bad.points == {}
    assert good.points["ch99-double"] == 3.0


@pytest.mark.parametrize("break_", ["missing release", "no database", "bad address"])
def test_what_stops_a_whole_run_says_so(toy, tmp_path, break_):
    chapter = copy_of(toy, tmp_path)
    hand_in(chapter, "ada", nbformat.read(chapter.release, as_version=4))
    book, code = Book(chapter.root), 3
    if break_ == "missing release":
        chapter.release.unlink()
        code = None
    elif break_ == "no database":
        (chapter.root / "gradebook.db").write_bytes(b"no gradebook" * 1000)
    else:
        book = Book(chapter.root, "postgres:nonsense")
    with pytest.raises(CourseError) as told:
        grade([chapter], book, SEED)
    assert getattr(told.value, "code", None) == code and "\n" not in str(told.value)


@pytest.mark.parametrize("where", ["file", "scratch", "gradebook"])
def test_no_space_left_stops_with_its_own_code_and_can_go_on(toy, tmp_path, monkeypatch, where):
    from autograder.grading import submission as module

    chapter = copy_of(toy, tmp_path)
    hand_in(chapter, "ada", answered(nbformat.read(chapter.release, as_version=4), **RIGHT))
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if where == "gradebook":
        full = OperationalError("", {}, sqlite3.OperationalError("database or disk is full"))

    def fail(*_):
        raise full

    with monkeypatch.context() as broken:
        broken.setattr(*{"file": (os, "replace"), "scratch": (module, "stage"), "gradebook": (Book, "store")}[where], fail)
        done = CliRunner().invoke(app, ["grade", "--root", str(chapter.root)], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 4 and "run the same command again" in done.output, done.output
    grade([chapter], Book(chapter.root), SEED)
    assert scores(chapter, Book(chapter.root)) == {"ada": [3, 1, 1, 0]}


def test_a_gradebook_that_does_not_take_one_submission_takes_the_others(toy, tmp_path, monkeypatch):
    chapter = copy_of(toy, tmp_path)
    released = nbformat.read(chapter.release, as_version=4)
    hand_in(chapter, "bad", answered(released, **RIGHT))
    hand_in(chapter, "good", answered(released, **RIGHT))
    real = Book.store

    def store(self, chapter, student, *rest):
        real(self, chapter, student, *rest)
        if student == "bad":
            raise ValueError("no such row")

    monkeypatch.setattr(Book, "store", store)
    found = {one.student: one for one in grade([chapter], Book(chapter.root), SEED, jobs=2)}
    assert found["bad"].failed and found["bad"].flags == ["not graded: ValueError: no such row"]
    assert scores(chapter, Book(chapter.root)) == {"good": [3, 1, 1, 0]}


def test_a_device_a_pipe_and_a_huge_file_stop_nobody(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    released = nbformat.read(chapter.release, as_version=4)
    hand_in(chapter, "good", answered(released, **RIGHT))
    (chapter.root / "submitted" / "file").mkdir()
    (chapter.root / "submitted" / "file" / chapter.stem).write_text("")
    (hand_in(chapter, "folder") / "ch99_toy.ipynb").mkdir()
    (hand_in(chapter, "link") / "ch99_toy.ipynb").symlink_to(chapter.path)
    os.mkfifo(hand_in(chapter, "pipe") / "ch99_toy.ipynb")
    with (hand_in(chapter, "huge") / "ch99_toy.ipynb").open("wb") as file:
        file.truncate(2_000_000_000)
    found = {one.student: one for one in grade([chapter], Book(chapter.root), SEED, jobs=2)}
    assert {student: one.flags for student, one in found.items()} == {
        "good": [],
        "file": ["what was handed in is not a folder"],
        "folder": ["ch99_toy.ipynb is a folder, not a notebook file"],
        "link": ["ch99_toy.ipynb is a link, not a notebook file"],
        "pipe": ["ch99_toy.ipynb is a pipe, not a notebook file"],
        "huge": ["ch99_toy.ipynb is larger than 1000 MB"],
    }
    table = scores(chapter, Book(chapter.root))
    assert table.pop("good") == [3, 1, 1, 0] and set(map(tuple, table.values())) == {(0, 0, 0, 0)}


def test_a_name_that_no_gradebook_holds_is_told_and_stops_nobody(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    hand_in(chapter, os.fsdecode(b"a\xffb"), raw=b"")
    hand_in(chapter, "good", raw=b"")
    done = CliRunner().invoke(app, ["grade", "--root", str(chapter.root)], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 1 and "a?b ch99: not graded: ValueError: the name of the student's folder" in done.output
    assert "1 submissions graded" in done.output and set(scores(chapter, Book(chapter.root))) == {"good"}


def test_manual_scores_and_comments_survive_a_regrade(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    released, book = nbformat.read(chapter.release, as_version=4), Book(chapter.root)
    hand_in(chapter, "ada", answered(released, **RIGHT))
    grade([chapter], book, SEED)
    with Gradebook(book.db_url) as gradebook:
        written = gradebook.find_grade("ch99-why", chapter.stem, chapter.stem, "ada")
        written.manual_score, written.needs_manual_grade, written.extra_credit = 1.5, False, 0.5
        gradebook.find_comment("ch99-why", chapter.stem, chapter.stem, "ada").manual_comment = "Say <why>."
        gradebook.db.commit()
    hand_in(chapter, "ada", answered(released, **{**RIGHT, "three": "three = 4"}))
    grade([chapter], book, SEED)
    assert scores(chapter, book)["ada"] == [3, 0, 1, 2.0]
    with Gradebook(book.db_url) as gradebook:
        assert gradebook.find_comment("ch99-why", chapter.stem, chapter.stem, "ada").manual_comment == "Say <why>."


LATE = """
from nbgrader.plugins import BasePlugin


class PointADay(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return total_seconds_late / 86400


c.AssignLatePenalties.plugin_class = PointADay
"""


def test_late_penalties_are_nbgraders_and_follow_an_extension(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    with (chapter.root / "nbgrader_config.py").open("a") as config:
        config.write(LATE)
    released, book = nbformat.read(chapter.release, as_version=4), Book(chapter.root)
    due = datetime(2026, 1, 1)
    for student, days, answers in (("early", -1, RIGHT), ("late", 2, RIGHT), ("very", 99, RIGHT), ("nothing", 2, {})):
        folder = hand_in(chapter, student, answered(released, **answers))
        (folder / "timestamp.txt").write_text(f"{due + timedelta(days=days)} UTC")
        os.utime(folder / "ch99_toy.ipynb", (1.7e9, 1.7e9))
    grade([chapter], book, SEED)  # before there is a due date
    with Gradebook(book.db_url) as gradebook:
        gradebook.update_or_create_assignment(chapter.stem, duedate=due)

    def penalties():
        grade([chapter], book, SEED)
        with Gradebook(book.db_url) as gradebook:
            return {s.student.id: s.late_submission_penalty for s in gradebook.assignment_submissions(chapter.stem)}

    assert penalties() == {"early": 0, "late": 2, "very": 5, "nothing": 0}
    with Gradebook(book.db_url) as gradebook:
        gradebook.grant_extension(chapter.stem, "late", days=1)
    assert penalties()["late"] == 1


def test_compat_takes_points_for_a_warning_and_fair_does_not(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    released, book = nbformat.read(chapter.release, as_version=4), Book(chapter.root)
    noisy = "import sys\n\ndef double(x):\n    print('careful', file=sys.stderr)\n    return x + x"
    hand_in(chapter, "ada", answered(released, **{**RIGHT, "double": noisy}))
    for policy, points in (("fair", 3), ("compat", 0)):
        grade([chapter], book, Options(seed=1, policy=policy))
        assert scores(chapter, book)["ada"][0] == points


def test_two_at_a_time_get_the_same(toy, tmp_path, graded):
    chapter = copy_of(toy, tmp_path)
    shutil.copytree(graded[0].root / "submitted", chapter.root / "submitted")
    book = Book(chapter.root)
    grade([chapter], book, SEED, jobs=2)
    assert scores(chapter, book) == scores(*graded[:2])


# ---------------------------------------------------------------- one student's sizes, damage and markup are no other's


def test_right_answers_beside_anything_large_have_all_points_and_nobody_is_stopped(toy, tmp_path, monkeypatch):
    from autograder.grading import merge

    monkeypatch.setattr(merge, "LARGEST", 8_000_000)
    chapter = copy_of(toy, tmp_path)
    released = nbformat.read(chapter.release, as_version=4)
    right = answered(released, **RIGHT)
    text = "QUJD" * 1_500_000
    for student in ("ada", "outputs", "cell", "metadata", "attachment", "name", "text", "zoe"):
        notebook = json.loads(nbformat.writes(right))
        cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
        match student:
            case "outputs":
                cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}] * 3
            case "cell":
                notebook["cells"].insert(2, {"cell_type": "code", "source": f"data = '{text}'", "metadata": {}, "outputs": []})
            case "metadata":
                cell["metadata"]["x"] = notebook["metadata"]["widgets"] = text
            case "attachment":
                notebook["cells"][0]["attachments"] = {"a.png": {"image/png": text}}
            case "name":
                cell[text] = 1
            case "text":
                notebook["cells"].insert(2, {"cell_type": "markdown", "source": text * 2, "metadata": {}})
        hand_in(chapter, student, raw=json.dumps(notebook).encode())
    found = {one.student: one for one in grade([chapter], Book(chapter.root), SEED, jobs=2)}
    full = {"ch99-double": 3.0, "ch99-three": 1.0, "ch99-letter": 1.0, "ch99-why": None}
    for student, one in found.items():
        assert not one.failed
        if student == "text":
            assert one.flags == ["ch99_toy.ipynb is larger than 8 MB without its outputs"]
        else:
            assert one.points == full, student
    assert {s: one.flags for s, one in found.items() if one.flags and s != "text"} == {
        "metadata": ["left out of ch99_toy.ipynb: metadata of more than 1 MB"],
        "name": ["left out of ch99_toy.ipynb: a name of more than 1 MB"],
    }


def test_a_run_that_cannot_start_is_that_students_failure(toy, tmp_path, monkeypatch):
    from autograder.engine.student import NotStarted, Template

    chapter = copy_of(toy, tmp_path)
    right = answered(nbformat.read(chapter.release, as_version=4), **RIGHT)
    for student in ("ada", "bob", "eve"):
        hand_in(chapter, student, right)
    (hand_in(chapter, "eve") / "data.csv").write_text("1")
    fork, count = Template.fork, []

    def failing(self, limits, files=None):
        if files is not None or (count and count.pop()):
            count.append(True)
            raise NotStarted("no room")
        return fork(self, limits, files)

    monkeypatch.setattr(Template, "fork", failing)
    found = {one.student: one for one in grade([chapter], Book(chapter.root), SEED)}
    assert [found[name].failed for name in ("ada", "bob", "eve")] == [False, False, True]
    assert found["eve"].flags == ["not graded: NotStarted: no room"]


def test_a_place_that_is_taken_costs_its_student_only(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    right = answered(nbformat.read(chapter.release, as_version=4), **RIGHT)
    for student in ("ada", "eve"):
        hand_in(chapter, student, right)
    (chapter.root / "autograded").mkdir()
    (chapter.root / "autograded" / "eve").write_text("")
    found = {one.student: one for one in grade([chapter], Book(chapter.root), SEED)}
    assert not found["ada"].failed and found["eve"].failed and found["eve"].flags[0].startswith("not graded: ")


@pytest.fixture
def command(monkeypatch):
    """command(…): what `autograder …` says in this course and its exit code."""

    def command(root, *words):
        monkeypatch.chdir(root)
        result = CliRunner().invoke(app, [*words])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, " ".join(result.output.split())

    return command


MARKUP = "[b]Ada [link=x]<i>&:smile:"


def test_names_and_paths_are_printed_as_they_are(toy, tmp_path, command):
    """What looks like rich's markup, a pattern of files or HTML is a name."""
    place = tmp_path / "a [b] 'q\" *é [/red]"
    place.mkdir(parents=True)
    chapter = copy_of(toy, place)
    right = answered(nbformat.read(chapter.release, as_version=4), **RIGHT)
    hand_in(chapter, MARKUP, right)
    code, said = command(chapter.root, "grade")
    assert (code, "1 submissions graded" in said) == (0, True), said
    assert command(chapter.root, "feedback") == (0, "1 pages in feedback/")
    page = (chapter.root / "feedback" / MARKUP / "ch99_toy" / "ch99_toy.html").read_text()
    assert "[b]Ada [link=x]&lt;i&gt;&amp;:smile:" in page and "<i>&" not in page
    code, said = command(chapter.root, "report")
    assert code == 0 and "[b]Ada" in said and "[link=x]<i>&:smile:" in said
    assert str(place).replace("  ", " ") in said
    assert "&lt;i&gt;&amp;:smile:" in (chapter.root / "build" / "report" / "report.html").read_text()
    (chapter.root / "[b].zip").write_bytes(b"")
    code, said = command(chapter.root, "grade", "--from", "[b].zip")
    assert code == 2 and "[b].zip is neither a folder nor a zip" in said
    code, said = command(chapter.root, "grade", "[red]ch01")
    assert code == 2 and "no chapter '[red]ch01'" in said


def test_feedback_and_report_go_on_after_a_student_whose_notebook_broke(toy, tmp_path, command):
    chapter = copy_of(toy, tmp_path)
    right = answered(nbformat.read(chapter.release, as_version=4), **RIGHT)
    for student in ("ada", "eve", "zoe"):
        hand_in(chapter, student, right)
    assert command(chapter.root, "grade")[0] == 0
    graded = chapter.root / "autograded" / "eve" / "ch99_toy" / "ch99_toy.ipynb"
    graded.write_text(graded.read_text()[:500])
    code, said = command(chapter.root, "feedback")
    assert code == 1 and "eve ch99: no page (" in said and "2 pages in feedback/" in said
    assert sorted(path.parts[-3] for path in (chapter.root / "feedback").rglob("*.html")) == ["ada", "zoe"]
    code, said = command(chapter.root, "report")
    assert code == 1 and "eve ch99: the graded notebook cannot be read" in said
    report = (chapter.root / "build" / "report" / "report.html").read_text()
    assert "the graded notebook cannot be read" in report and "zoe" in report
    assert command(chapter.root, "grade")[0] == 0 and command(chapter.root, "feedback")[0] == 0


def test_a_hand_in_that_cannot_be_filed_is_told_and_the_others_are_graded(toy, tmp_path, command):
    chapter = copy_of(toy, tmp_path)
    right = nbformat.writes(answered(nbformat.read(chapter.release, as_version=4), **RIGHT)).encode()
    for student in ("ada", "eve"):
        (tmp_path / "export" / student).mkdir(parents=True)
        (tmp_path / "export" / student / "ch99_toy.ipynb").write_bytes(right)
    (chapter.root / "submitted").mkdir()
    (chapter.root / "submitted" / "eve").write_text("")
    code, said = command(chapter.root, "grade", "--from", str(tmp_path / "export"))
    assert code == 1 and "eve ch99_toy: it could not be put into submitted/" in said
    assert "1 submissions taken" in said and "1 submissions graded" in said


def test_a_class_list_decides_who_it_is(toy, tmp_path, command):
    chapter = copy_of(toy, tmp_path)
    right = nbformat.writes(answered(nbformat.read(chapter.release, as_version=4), **RIGHT)).encode()
    for number in (1, 2):
        (tmp_path / "export" / f"Jan K_{number}_assignsubmission_file_").mkdir(parents=True)
        (tmp_path / "export" / f"Jan K_{number}_assignsubmission_file_" / "ch99_toy.ipynb").write_bytes(right)
    (chapter.root / "roster.csv").write_text("student,name,email\njan1,Jan K,a@x.org\njan2,Jan K,b@x.org\n")
    (tmp_path / "w.csv").write_text(
        "Identifier,Full name,Email address\nParticipant 1,Jan K,b@x.org\nParticipant 2,Jan K,a@x.org\n"
    )
    code, said = command(chapter.root, "grade", "--from", str(tmp_path / "export"), "--roster", str(tmp_path / "w.csv"))
    assert code == 0, said
    assert sorted(os.listdir(chapter.root / "submitted")) == ["jan1", "jan2"]
    record = json.loads((chapter.root / "submitted" / "jan1" / "ch99_toy.collected.json").read_text())
    assert record["who"] == {"platform": "moodle", "name": "Jan K", "number": "2"}
    assert command(chapter.root, "grade", "--from", str(tmp_path / "export"), "--roster", "nowhere.csv")[0] == 2
