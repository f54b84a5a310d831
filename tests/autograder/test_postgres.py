"""nbgrader's gradebook on PostgreSQL: the same scores as on SQLite, from our grading and through nbgrader's own API."""

import getpass
import os
import shutil
import subprocess
import tempfile
from datetime import datetime
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder.authoring.chapters import find_chapters, grade_id
from autograder.doors.cli import app
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book, GradebookError
from autograder.grading.submission import Options
from autograder.pages.feedback import write_feedback
from book.tools import find

ANSWERS = {
    "right": {"double": "def double(x):\n    return x + x", "three": "three = 3", "letter": "letter = 'B'", "why": "Twice."},
    "wrong": {"double": "def double(x):\n    return x * x", "three": "three = 4", "letter": "letter = 'B'"},
    "blank": {},
}


@pytest.fixture(scope="module")
def server():
    """The address of an empty database on a server of our own, on a socket in a temporary folder."""
    initdb, pg_ctl = find("initdb"), find("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("no PostgreSQL here: make tools")
    pytest.importorskip("psycopg", reason="pip install 'mathematics-of-transformers[postgres]'")
    place = Path(tempfile.mkdtemp(prefix="postgres-"))
    user = "postgres" if os.geteuid() == 0 else getpass.getuser()  # the server refuses to run as root
    if os.geteuid() == 0:
        shutil.chown(place, user)
    as_user = {"cwd": place, "user": user if os.geteuid() == 0 else None, "check": True, "capture_output": True}
    subprocess.run([initdb, "-D", place / "data", "-U", "teacher", "-A", "trust", "--no-sync"], **as_user)
    options = f"-c listen_addresses='' -c unix_socket_directories={place} -c fsync=off"
    start = [pg_ctl, "-D", place / "data", "-w", "-l", place / "log", "-o", options, "start"]
    subprocess.run(start, **{**as_user, "capture_output": False, "stdout": subprocess.DEVNULL})
    try:
        yield f"postgresql+psycopg://teacher@/postgres?host={place}"
    finally:
        subprocess.run([pg_ctl, "-D", place / "data", "-m", "immediate", "stop"], **as_user)
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def course(toy, tmp_path_factory):
    root = shutil.copytree(
        toy.root, tmp_path_factory.mktemp("postgres") / "course", ignore=shutil.ignore_patterns("gradebook.db")
    )
    chapter = find_chapters(root)[0]
    for student, answers in ANSWERS.items():
        notebook = nbformat.read(chapter.release, as_version=4)
        for cell in notebook.cells:
            name = (grade_id(cell) or "").removeprefix("ch99-").removesuffix("-answer")
            if cell.metadata.get("nbgrader", {}).get("solution"):
                cell.source = answers.get(name, cell.source)
        folder = chapter.folder("submitted", student)
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / "ch99_toy.ipynb")
    return chapter


@pytest.fixture(scope="module")
def both(server, course):
    """The course graded into SQLite by us, and into PostgreSQL by the command."""
    done = CliRunner().invoke(app, ["grade", "--root", str(course.root), "--db", server, "--jobs", "1"], env={"COLUMNS": "200"})
    assert done.exit_code == 0 and "3 submissions graded" in done.output, done.output
    sqlite = Book(course.root)
    grade([course], sqlite, Options())
    return sqlite.db_url, server


def by_hand(url: str) -> None:
    """What a teacher does in formgrader."""
    with Gradebook(url) as gradebook:
        gradebook.update_or_create_assignment("ch99_toy", duedate=datetime(2026, 1, 1))
        written = gradebook.find_grade("ch99-why", "ch99_toy", "ch99_toy", "right")
        written.manual_score, written.needs_manual_grade, written.extra_credit = 1.5, False, 0.5
        gradebook.find_comment("ch99-why", "ch99_toy", "ch99_toy", "right").manual_comment = "Good."
        gradebook.grant_extension("ch99_toy", "right", days=1)
        gradebook.update_or_create_student("right", first_name="Ada", last_name="L.", email="a@b.c")
        gradebook.db.commit()


def asked(url: str) -> dict:
    """All that formgrader and the exporters ask the gradebook for."""
    with Gradebook(url) as gradebook:

        def plain(thing):
            if isinstance(thing, list):
                return sorted((plain(x) for x in thing), key=str)
            return {k: v for k, v in thing.items() if k != "id" or v in ANSWERS} if isinstance(thing, dict) else thing

        a, n = "ch99_toy", "ch99_toy"
        answers = {
            "students": gradebook.student_dicts(),
            "submissions": gradebook.submission_dicts(a),
            "notebooks": gradebook.notebook_submission_dicts(n, a),
            "assignment": gradebook.find_assignment(a).to_dict(),
            "notebook": gradebook.find_notebook(n, a).to_dict(),
            "one": gradebook.find_submission(a, "right").to_dict(),
            "sheet": gradebook.find_submission_notebook(n, a, "right").to_dict(),
            "grades": [g.to_dict() for g in gradebook.find_submission_notebook(n, a, "right").grades],
            "comments": [c.to_dict() for c in gradebook.find_submission_notebook(n, a, "right").comments],
            "late": gradebook.find_submission(a, "right").total_seconds_late,
            **{
                f"average {kind}": getattr(gradebook, f"average_assignment_{kind}")(a)
                for kind in ("score", "code_score", "written_score", "task_score")
            },
            **{
                f"average notebook {kind}": getattr(gradebook, f"average_notebook_{kind}")(n, a)
                for kind in ("score", "code_score", "written_score", "task_score")
            },
        }
        return {key: plain(value) for key, value in answers.items()}


def test_both_have_the_same_scores(both, course):
    sqlite, postgres = (list(Book(course.root, url).scores(course)) for url in both)
    assert sqlite == postgres and sum(score for _, _, score, _ in postgres) == 5 + 2 + 0


def test_nbgraders_api_answers_the_same_on_both(both):
    for url in both:
        by_hand(url)
    sqlite, postgres = map(asked, both)
    assert postgres == sqlite and postgres["one"]["score"] == 7


def test_what_a_teacher_did_stays_on_a_regrade(both, course):
    for url in both:
        by_hand(url)
        grade([course], Book(course.root, url), Options(), again=True)
        with Gradebook(url) as gradebook:
            written = gradebook.find_grade("ch99-why", "ch99_toy", "ch99_toy", "right")
            assert (written.score, written.needs_manual_grade) == (2.0, True)
            assert gradebook.find_comment("ch99-why", "ch99_toy", "ch99_toy", "right").comment == "Good."


def test_feedback_is_made_from_it(both, course):
    assert len(write_feedback(course, both[1])) == len(ANSWERS)


def test_submissions_can_be_removed_with_nbgraders_api(both):
    """Last: it empties both."""
    for url in both:
        with Gradebook(url) as gradebook:
            gradebook.remove_submission("ch99_toy", "blank")
            gradebook.remove_assignment("ch99_toy")
            assert gradebook.assignments == []


def test_a_server_that_is_not_there_is_told_without_the_password(course, tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(GradebookError) as told:
        grade([course], Book(course.root, f"postgresql+psycopg://teacher:secret@/x?host={tmp_path}"))
    assert "secret" not in str(told.value) and "cannot be used" in str(told.value) and "\n" not in str(told.value)
