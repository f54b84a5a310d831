"""A class of submissions to scores in nbgrader's gradebook: nothing is lost and nothing stops the others."""

import shutil

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.chapters import CourseError, find_chapters, grade_id
from autograder.grade import Book, grade


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
    (chapter.root / "submitted" / "perfect" / chapter.stem / "timestamp.txt").write_text("2026-01-02T03:04:05+02:00")
    book = Book(chapter.root)
    done = grade([chapter], book, seed=1)
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
        ("several", [0, 0, 0, 0]),
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
        ("broken", "ch99_toy.ipynb is not a notebook (JSONDecodeError)"),
        ("nothing", "ch99_toy.ipynb was not handed in"),
        ("renamed", "Copy of toy.ipynb was taken for ch99_toy.ipynb"),
        ("several", "ch99_toy.ipynb was not handed in"),
        ("crash", "the student's process ended in the middle of the notebook"),
    ],
)
def test_what_was_odd_is_flagged_and_kept_with_the_notebook(graded, student, flag):
    chapter, _, done = graded
    assert done[student].flags == [flag]
    kept = nbformat.read(chapter.root / "autograded" / student / chapter.stem / "ch99_toy.ipynb", as_version=4)
    assert kept.metadata.autograder.flags == [flag] and kept.metadata.autograder.seed == 1


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
    from autograder import grade as module

    chapter = copy_of(toy, tmp_path)
    released = nbformat.read(chapter.release, as_version=4)
    hand_in(chapter, "bad", released)
    hand_in(chapter, "good", answered(released, **RIGHT))
    real = module.merge
    monkeypatch.setattr(
        module, "merge", lambda chapter, notebook: 1 / 0 if "YOUR CODE" in str(notebook) else real(chapter, notebook)
    )
    bad, good = grade([chapter], Book(chapter.root), seed=1)
    assert bad.flags == ["not graded: ZeroDivisionError: division by zero"] and bad.points == {}
    assert good.points["ch99-double"] == 3.0


def test_manual_scores_and_comments_survive_a_regrade(toy, tmp_path):
    chapter = copy_of(toy, tmp_path)
    released, book = nbformat.read(chapter.release, as_version=4), Book(chapter.root)
    hand_in(chapter, "ada", answered(released, **RIGHT))
    grade([chapter], book, seed=1)
    with Gradebook(book.db_url) as gradebook:
        written = gradebook.find_grade("ch99-why", chapter.stem, chapter.stem, "ada")
        written.manual_score, written.needs_manual_grade, written.extra_credit = 1.5, False, 0.5
        gradebook.find_comment("ch99-why", chapter.stem, chapter.stem, "ada").manual_comment = "Say <why>."
        gradebook.db.commit()
    hand_in(chapter, "ada", answered(released, **{**RIGHT, "three": "three = 4"}))
    grade([chapter], book, seed=1)
    assert scores(chapter, book)["ada"] == [3, 0, 1, 2.0]
    with Gradebook(book.db_url) as gradebook:
        assert gradebook.find_comment("ch99-why", chapter.stem, chapter.stem, "ada").manual_comment == "Say <why>."


def test_two_at_a_time_get_the_same(toy, tmp_path, graded):
    chapter = copy_of(toy, tmp_path)
    shutil.copytree(graded[0].root / "submitted", chapter.root / "submitted")
    book = Book(chapter.root)
    grade([chapter], book, jobs=2, seed=1)
    assert scores(chapter, book) == scores(*graded[:2])
