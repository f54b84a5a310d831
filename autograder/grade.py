"""A class of submissions to scores in nbgrader's gradebook."""

import contextlib
import os
import secrets
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import compute_checksum, is_grade, is_solution, parse_utc
from sqlalchemy.exc import SAWarning

from autograder.chapters import Chapter, CourseError, exercise_id, grade_id
from autograder.engine import Limits, run_notebook
from autograder.merge import merge, read_submission
from autograder.release import default_database, generate
from autograder.scoring import score


@dataclass
class Graded:
    """One submission after grading. `points` are by nbgrader id; None waits for a teacher."""

    student: str
    chapter: Chapter
    notebook: NotebookNode
    points: dict[str, float | None]
    flags: list[str] = field(default_factory=list)


def submissions(chapter: Chapter) -> list[tuple[str, Path]]:
    """The students who handed in something for a chapter, with the folders of what they handed in."""
    folders = sorted((chapter.root / "submitted").glob(f"*/{chapter.stem}"))
    return [(folder.parent.name, folder) for folder in folders if not folder.parent.name.startswith(".")]


def grade_submission(chapter: Chapter, student: str, folder: Path, limits: Limits = Limits(), seed: int | None = None) -> Graded:
    """Merge, run and score one submission. Nothing that a student hands in makes this raise.

    `seed` is that of the hidden inputs; without it, it is drawn anew. It is kept in the graded notebook.
    """
    submitted, flags = _find(chapter, folder)
    merged = merge(chapter, submitted)
    seed = secrets.randbits(31) if seed is None else seed
    flags += merged.flags
    flags += run_notebook(merged.notebook, chapter, seed, limits, folder if folder.is_dir() else None)
    merged.notebook.metadata.autograder = NotebookNode(seed=seed, flags=flags)
    points = {grade_id(cell): _points(cell) for cell in merged.notebook.cells if is_grade(cell)}
    return Graded(student, chapter, merged.notebook, points, flags)


def _find(chapter: Chapter, folder: Path) -> tuple[NotebookNode | None, list[str]]:
    path = folder / f"{chapter.stem}.ipynb"
    if not path.exists():
        others = sorted(folder.glob("*.ipynb")) if folder.is_dir() else []
        if len(others) != 1:
            return None, [f"{path.name} was not handed in"]
        notebook, why = read_submission(others[0])
        other = others[0].name.encode("utf-8", "replace").decode()
        return notebook, [why or f"{other} was taken for {path.name}"]
    notebook, why = read_submission(path)
    return notebook, [why] if why else []


def _points(cell: NotebookNode) -> float | None:
    if not is_solution(cell):
        return score(cell)
    # A written answer that was not touched is zero; any other waits for the teacher.
    return 0.0 if cell.metadata.nbgrader.checksum == compute_checksum(cell) else None


class Book:
    """The one writer to nbgrader's gradebook."""

    def __init__(self, root: Path, db_url: str | None = None):
        self.root, self.db_url = root, db_url or default_database(root)
        self._lock = threading.Lock()

    def register(self, chapter: Chapter) -> None:
        """Make the gradebook know the chapter's cells and points as they are in the source."""
        with tempfile.TemporaryDirectory() as scratch:
            generate(chapter, Path(scratch), self.db_url)

    def write(self, graded: Graded) -> None:
        """Store a graded notebook and its scores; manual scores and comments stay."""
        chapter = graded.chapter
        folder = self.root / "autograded" / graded.student / chapter.stem
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{chapter.stem}.ipynb"
        part = target.with_suffix(".part")
        nbformat.write(graded.notebook, part)
        os.replace(part, target)
        stamp = self.root / "submitted" / graded.student / chapter.stem / "timestamp.txt"
        when = {}
        if stamp.is_file():
            with contextlib.suppress(ValueError, OverflowError):  # what a student wrote there is no reason to stop
                when = {"timestamp": parse_utc(stamp.read_text().strip())}
        with self._lock, warnings.catch_warnings(), Gradebook(self.db_url) as gradebook:
            warnings.simplefilter("ignore", SAWarning)  # nbgrader's own way of adding rows
            gradebook.update_or_create_student(graded.student)
            gradebook.update_or_create_submission(chapter.stem, graded.student, **when)
            for cell in graded.notebook.cells:
                name = grade_id(cell)
                if is_grade(cell):
                    grade = gradebook.find_grade(name, chapter.stem, chapter.stem, graded.student)
                    grade.auto_score = graded.points[name]
                    grade.needs_manual_grade = grade.auto_score is None or grade.manual_score is not None
                if is_solution(cell):
                    comment = gradebook.find_comment(name, chapter.stem, chapter.stem, graded.student)
                    untouched = cell.metadata.nbgrader.checksum == compute_checksum(cell)
                    comment.auto_comment = "No response." if untouched else None
            gradebook.db.commit()

    def scores(self, chapter: Chapter) -> Iterator[tuple[str, str, float, float]]:
        """(student, exercise, score, max) of every submission of a chapter, in order."""
        with Gradebook(self.db_url) as gradebook:
            try:
                handed_in = gradebook.assignment_submissions(chapter.stem)
            except MissingEntry:
                return
            order = [exercise.id for exercise in chapter.exercises]
            for submission in sorted(handed_in, key=lambda s: s.student.id):
                grades = {exercise_id(g.name): g for notebook in submission.notebooks for g in notebook.grades}
                for exercise in order:
                    if exercise in grades:
                        yield submission.student.id, exercise, grades[exercise].score, grades[exercise].max_score


def grade(
    chapters: list[Chapter],
    book: Book,
    jobs: int = 1,
    limits: Limits = Limits(),
    seed: int | None = None,
    done: Callable[[Graded], None] = lambda _: None,
) -> list[Graded]:
    """Grade every submission of some chapters, `jobs` at a time.

    A submission that cannot be graded has no points and a flag that says why.

    Args:
        done: called after each submission is in the gradebook.

    Raises:
        CourseError: if there is nothing to grade.
    """
    work = [(chapter, *one) for chapter in chapters for one in submissions(chapter)]
    if not work:
        raise CourseError("no submissions in submitted/<student>/<chapter>/ for " + ", ".join(c.stem for c in chapters))
    for chapter in {chapter for chapter, *_ in work}:
        book.register(chapter)

    def one(chapter, student, folder):
        try:
            graded = grade_submission(chapter, student, folder, limits, seed)
            book.write(graded)
        except Exception as error:  # one submission is never another one's problem
            graded = Graded(student, chapter, NotebookNode(), {}, [f"not graded: {type(error).__name__}: {error}"])
        done(graded)
        return graded

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda job: one(*job), work))
