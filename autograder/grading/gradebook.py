"""The one writer to nbgrader's gradebook: plain rows of nbgrader's own tables, one transaction a batch.

nbgrader's API commits after every cell and mirrors an assignment object by object; here a submission is a few
statements. What teachers did by hand (scores, extra credit, comments, extensions) is never written over.
"""

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import nbformat
from nbformat import NotebookNode
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Notebook,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from nbgrader.utils import compute_checksum, is_grade, is_solution
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SAWarning,
    SQLAlchemyError,
)
from sqlalchemy.orm import Session

from autograder.authoring.chapters import Chapter, exercise_id, grade_id
from autograder.authoring.release import Release, course_config, default_database, release
from autograder.errors import CourseError

FULL = (errno.ENOSPC, errno.EDQUOT)
CLOSED = (*FULL, errno.EACCES, errno.EPERM, errno.EROFS)
PATIENCE = 60  # seconds for another writer to finish with an SQLite file


class GradebookError(CourseError):
    """The gradebook cannot be used."""

    code = 3


class DiskError(CourseError):
    """Nothing can be written: no space left, or no permission."""

    code = 4


@contextlib.contextmanager
def told(db_url: str) -> Iterator[None]:
    """Errors of the gradebook as a whole, and of the disk, in one sentence each."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        why = str(error.orig).strip().splitlines()[0]
        if "disk is full" in why or "No space left" in why:
            raise DiskError(f"the gradebook cannot be written: {why}; make room and run the same command again") from None
        raise GradebookError(f"the gradebook {shown_url(db_url)} cannot be used: {why}") from None
    except DatabaseError as error:
        if type(error) is not DatabaseError:  # of one row, not of the file
            raise
        why = str(error.orig).strip().splitlines()[0]
        raise GradebookError(
            f"the gradebook {shown_url(db_url)} is damaged: {why}; put back a copy, or move it away to start a new one"
        ) from None
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise GradebookError(f"the gradebook's address {shown_url(db_url)!r} cannot be used: {error}") from None
    except OSError as error:
        if error.errno in CLOSED:
            where = f" ({error.filename})" if error.filename else ""
            raise DiskError(f"{os.strerror(error.errno)}{where}; mend that and run the same command again") from None
        raise


def of_all(error: Exception) -> bool:
    """Whether an error is the gradebook's or the disk's, so that no other submission would fare better."""
    return isinstance(error, SQLAlchemyError) or (isinstance(error, OSError) and error.errno in CLOSED)


def shown_url(db_url: str) -> str:
    """A gradebook's address without its password."""
    with contextlib.suppress(ArgumentError):
        return make_url(db_url).render_as_string(hide_password=True)
    return db_url


def opened(db_url: str) -> Gradebook:
    """nbgrader's gradebook; a new one is made where there is none."""
    # nbgrader calls alembic by name when it makes a new gradebook
    here = str(Path(sys.executable).parent)
    if here not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", "")])
    return Gradebook(_url(db_url))


def _url(db_url: str) -> str:
    """A gradebook's address, with patience for other writers where it is a file."""
    url = make_url(db_url)
    if url.get_backend_name() == "sqlite" and "timeout" not in url.query:
        url = url.update_query_dict({"timeout": str(PATIENCE)})
    return url.render_as_string(hide_password=False)


@dataclass(frozen=True)
class Layout:
    """The ids of an assignment's rows: the cells of each notebook by (type, name)."""

    id: str
    due: datetime | None
    notebooks: dict[str, str]
    cells: dict[str, dict[tuple[str, str], str]]


class Book:
    """A course's gradebook.

    Args:
        root: the course folder.
        db_url: the gradebook's address; without it nbgrader's default or what the configuration says.
    """

    def __init__(self, root: Path, db_url: str | None = None):
        self.root, self.db_url = root, db_url or default_database(root)
        self._open: Gradebook | None = None
        self._layouts: dict[str, Layout] = {}

    def __enter__(self) -> "Book":
        with told(self.db_url):
            self._open = opened(self.db_url)
        return self

    def __exit__(self, *_) -> None:
        self._open.close()
        self._open, self._layouts = None, {}

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """A transaction: all of it is in the gradebook afterwards, or nothing."""
        with self if self._open is None else contextlib.nullcontext(), told(self.db_url), warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)
            try:
                yield self._open.db
                self._open.db.commit()
            except BaseException:
                self._open.db.rollback()
                raise
            finally:
                self._open.db.expunge_all()

    def register(self, chapter: Chapter, release: Release) -> None:
        """Make the gradebook know a notebook's cells and points as they are in the source, where it does not yet.

        Raises:
            CourseError: if cells came or went and there are submissions already.
        """
        wanted = {
            grade_id(cell): (cell.cell_type, cell.source, bool(cell.metadata.nbgrader.get("locked")))
            for cell in release.registered.cells
            if grade_id(cell)
        }
        with self.session() as db:
            rows = db.execute(
                select(SourceCell.name, SourceCell.cell_type, SourceCell.source, SourceCell.locked)
                .join(Notebook, Notebook.id == SourceCell.notebook_id)
                .join(Assignment, Assignment.id == Notebook.assignment_id)
                .where(Assignment.name == chapter.stem, Notebook.name == chapter.name)
            )
            known = {name: tuple(rest) for name, *rest in rows}
        points = {grade_id(c): float(c.metadata.nbgrader.points) for c in release.registered.cells if is_grade(c)}
        if known == wanted and self._points(chapter) == points:
            return
        self._layouts.pop(chapter.stem, None)
        with told(self.db_url):
            self._save(chapter, release)

    def _save(self, chapter: Chapter, release: Release) -> None:
        """As `nbgrader generate_assignment` writes an assignment's cells into the gradebook."""
        there = {path.stem for path in chapter.path.parent.glob("*.ipynb")}
        with opened(self.db_url) as gradebook:
            assignment = gradebook.update_or_create_assignment(chapter.stem)
            gone = {notebook.name for notebook in assignment.notebooks} - there
            if gone and assignment.submissions:
                raise CourseError(
                    f"{chapter.stem}: {', '.join(sorted(gone))} cannot be taken away: there are submissions already"
                )
            for name in gone:
                gradebook.remove_notebook(name, chapter.stem)
        resources = {"nbgrader": {"notebook": chapter.name, "assignment": chapter.stem, "db_url": _url(self.db_url)}}
        try:
            SaveCells(config=course_config(self.root)).preprocess(nbformat.from_dict(release.registered), resources)
        except RuntimeError as error:
            raise CourseError(f"{chapter.stem}: {error}") from error

    def _points(self, chapter: Chapter) -> dict[str, float]:
        with self.session():
            try:
                notebook = self._open.find_notebook(chapter.name, chapter.stem)
            except MissingEntry:
                return {}
            return {cell.name: cell.max_score for cell in notebook.grade_cells}

    def people(self, all: bool = False) -> list[tuple[str, str, str, str, str]]:
        """(id, first name, last name, email, number on the platform) of the students of whom more than the id is known, or of all."""
        with told(self.db_url):
            url = make_url(self.db_url)
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
            return []
        columns = Student.id, Student.first_name, Student.last_name, Student.email, Student.lms_user_id
        with self.session() as db:
            rows = [tuple(cell or "" for cell in row) for row in db.execute(select(*columns)).all()]
        return [row for row in rows if all or any(row[1:])]

    def known(self, chapter: Chapter) -> dict[str, dict[str, float | None]]:
        """The automatic scores that the gradebook has, by student and nbgrader id."""
        with self.session() as db:
            rows = db.execute(
                select(SubmittedAssignment.student_id, BaseCell.name, Grade.auto_score)
                .select_from(Grade)
                .join(BaseCell, BaseCell.id == Grade.cell_id)
                .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
                .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
                .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
                .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
                .where(Assignment.name == chapter.stem, Notebook.name == chapter.name, BaseCell.type == "GradeCell")
            ).all()
        found: dict[str, dict[str, float | None]] = {}
        for student, name, score in rows:
            found.setdefault(student, {})[name] = score
        return found

    def store(
        self,
        chapter: Chapter,
        student: str,
        notebook: NotebookNode,
        points: dict[str, float | None],
        received: datetime | None,
        db: Session,
    ) -> None:
        """Write one graded notebook's scores in the session `db`; manual scores and comments stay."""
        layout = self._layout(db, chapter)
        sheet = self._sheet(db, layout, chapter, student, received)
        cells = layout.cells[chapter.name]
        grades = {
            cell: (id, manual)
            for id, cell, manual in db.execute(
                select(Grade.id, Grade.cell_id, Grade.manual_score).where(Grade.notebook_id == sheet)
            )
        }
        comments = dict(db.execute(select(Comment.cell_id, Comment.id).where(Comment.notebook_id == sheet)).all())
        scored, said = [], []
        for cell in notebook.cells:
            name = grade_id(cell)
            if is_grade(cell):
                id, manual = grades[cells["GradeCell", name]]
                waits = points[name] is None or manual is not None
                scored.append({"id": id, "auto_score": points[name], "needs_manual_grade": waits})
            if is_solution(cell):
                untouched = cell.metadata.nbgrader.checksum == compute_checksum(cell)
                comment = "No response." if untouched else None
                said.append({"id": comments[cells["SolutionCell", name]], "auto_comment": comment})
        for table, rows in ((Grade, scored), (Comment, said)):
            if rows:
                db.execute(update(table), rows)
        self._penalize(db, layout, student, sheet)

    def penalize(self, chapter: Chapter, received: dict[str, datetime | None]) -> None:
        """Reckon the late penalties of submissions anew: the time, a due date or an extension may have changed.

        Args:
            received: when each student's work came; None leaves what the gradebook has.
        """
        with self.session() as db:
            layout = self._layout(db, chapter)
            for student, when in received.items():
                if layout.due is not None or when is not None:
                    self._penalize(db, layout, student, self._sheet(db, layout, chapter, student, when))

    def due(self, stem: str) -> tuple[datetime | None, dict[str, timedelta]]:
        """When an assignment is due, in UTC, and the extension of each student who has one."""
        with self.session() as db:
            base = db.scalar(select(Assignment.duedate).where(Assignment.name == stem))
            rows = db.execute(
                select(SubmittedAssignment.student_id, SubmittedAssignment.extension)
                .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
                .where(Assignment.name == stem, SubmittedAssignment.extension.is_not(None))
            ).all()
        return base, dict(tuple(row) for row in rows)

    def extend(self, chapter: Chapter, until: dict[str, datetime], over: bool) -> None:
        """Write extensions: until when students have time, in UTC. Without a due date in the gradebook nothing is written.

        Args:
            over: write them over what the gradebook has; else only where it has none.
        """
        with self.session() as db:
            layout = self._layout(db, chapter)
            for student, when in until.items() if layout.due is not None else ():
                self._sheet(db, layout, chapter, student, None)
                mine = (SubmittedAssignment.assignment_id == layout.id, SubmittedAssignment.student_id == student)
                if over or db.scalar(select(SubmittedAssignment.extension).where(*mine)) is None:
                    extension = max(when - layout.due, timedelta(0))
                    db.execute(update(SubmittedAssignment).where(*mine).values(extension=extension))

    def rename(self, stem: str, old: str, new: str) -> bool:
        """Give a student's scores, comments and extension for an assignment to another student who has none for it.

        Returns:
            Whether that was done; else the other one has scores already, and both stay.
        """
        with self.session() as db:
            here = select(SubmittedAssignment.id).join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            here = here.where(Assignment.name == stem)
            mine = db.scalar(here.where(SubmittedAssignment.student_id == old))
            if mine is None:
                return True
            if db.scalar(here.where(SubmittedAssignment.student_id == new)) is not None:
                return False
            if db.scalar(select(Student.id).where(Student.id == new)) is None:
                db.execute(insert(Student).values(id=new))
            db.execute(update(SubmittedAssignment).where(SubmittedAssignment.id == mine).values(student_id=new))
            bare = select(Student.id).where(Student.id == old, Student.first_name.is_(None), Student.email.is_(None))
            others = select(SubmittedAssignment.id).where(SubmittedAssignment.student_id == old)
            if db.scalar(bare) is not None and db.scalar(others) is None:  # made for this work alone
                db.execute(delete(Student).where(Student.id == old))
        return True

    def _penalize(self, db: Session, layout: Layout, student: str, sheet: str) -> None:
        """nbgrader's own rule, with the plugin of the configuration."""
        if layout.due is None:
            return
        handed_in, extension = db.execute(
            select(SubmittedAssignment.timestamp, SubmittedAssignment.extension).where(
                SubmittedAssignment.assignment_id == layout.id, SubmittedAssignment.student_id == student
            )
        ).one()
        due = layout.due + extension if extension is not None else layout.due
        late = max(0.0, (handed_in - due).total_seconds()) if handed_in is not None else 0.0
        penalty = None
        if late:
            score = db.scalar(select(func.coalesce(func.sum(Grade.score), 0.0)).where(Grade.notebook_id == sheet))
            rule = AssignLatePenalties(config=course_config(self.root))
            rule.init_plugin()
            penalty = rule.plugin_inst.late_submission_penalty(student, score, late)
            if penalty is not None:
                penalty = rule._check_late_penalty(SimpleNamespace(score=score), penalty)
        db.execute(update(SubmittedNotebook).where(SubmittedNotebook.id == sheet).values(late_submission_penalty=penalty))

    def _layout(self, db: Session, chapter: Chapter) -> Layout:
        if chapter.stem not in self._layouts:
            id, due = db.execute(select(Assignment.id, Assignment.duedate).where(Assignment.name == chapter.stem)).one()
            notebooks = dict(db.execute(select(Notebook.name, Notebook.id).where(Notebook.assignment_id == id)).all())
            cells = {
                name: {
                    (kind, cell): row
                    for row, cell, kind in db.execute(
                        select(BaseCell.id, BaseCell.name, BaseCell.type).where(BaseCell.notebook_id == notebook)
                    )
                }
                for name, notebook in notebooks.items()
            }
            self._layouts[chapter.stem] = Layout(id, due, notebooks, cells)
        return self._layouts[chapter.stem]

    def _sheet(self, db: Session, layout: Layout, chapter: Chapter, student: str, received: datetime | None) -> str:
        """The id of a student's notebook, with rows for each of its cells, which are made where there are none."""
        if db.scalar(select(Student.id).where(Student.id == student)) is None:
            db.execute(insert(Student).values(id=student))
        submission = db.scalar(
            select(SubmittedAssignment.id).where(
                SubmittedAssignment.assignment_id == layout.id, SubmittedAssignment.student_id == student
            )
        )
        if submission is None:
            submission = new_uuid()
            db.execute(insert(SubmittedAssignment).values(id=submission, assignment_id=layout.id, student_id=student))
        if received is not None:
            db.execute(update(SubmittedAssignment).where(SubmittedAssignment.id == submission).values(timestamp=received))
        there = dict(
            db.execute(
                select(SubmittedNotebook.notebook_id, SubmittedNotebook.id).where(SubmittedNotebook.assignment_id == submission)
            ).all()
        )
        for name, notebook in layout.notebooks.items():
            if notebook in there:
                continue
            there[notebook] = new_uuid()
            db.execute(insert(SubmittedNotebook).values(id=there[notebook], notebook_id=notebook, assignment_id=submission))
            for table, kinds in ((Grade, ("GradeCell", "TaskCell")), (Comment, ("SolutionCell", "TaskCell"))):
                rows = [
                    {"id": new_uuid(), "cell_id": cell, "notebook_id": there[notebook]}
                    for (kind, _), cell in layout.cells[name].items()
                    if kind in kinds
                ]
                if rows:
                    db.execute(insert(table), rows)
        return there[layout.notebooks[chapter.name]]

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


def publish(chapter: Chapter) -> None:
    """Write `release/<chapter>/`, and make the gradebook know its cells.

    Raises:
        CourseError: if the release cannot be made or would leak; nothing is replaced then.
    """
    made = release(chapter)
    with Book(chapter.root) as book:
        book.register(chapter, made)
