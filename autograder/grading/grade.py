"""A class of submissions to scores in nbgrader's gradebook.

Each result has an address: the hash of what was handed in, the source, the environment and the limits. A
submission whose graded notebook bears the address that it would get, and whose scores the gradebook has, is not
run again. One that hit a limit and lost points is run once more when all others are done, and only that is
recorded (autograder/grading/rerun.py). The gradebook is written before the graded notebook: whenever a run is killed, the next one finds
either both or runs that submission again, and writes the same rows once more.
"""

import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from nbformat import NotebookNode, v4
from nbgrader.utils import is_grade

from autograder.grading import address as environment, rerun
from autograder.authoring.chapters import Chapter, CourseError, grade_id
from autograder.authoring.course_folder import Release
from autograder.engine.engine import Limits, run_notebook
from autograder.grading.gradebook import CLOSED, FULL, Book, DiskError, GradebookError, told
from autograder.grading.intake import find_notebook, handed_in, received, stage
from autograder.grading.merge import merge, read_submission, shown
from autograder.grading.outputs import inert
from autograder.authoring.scoring import points

__all__ = ["Book", "Graded", "Options", "grade", "grade_submission", "submissions"]
submissions = handed_in


@dataclass(frozen=True)
class Options:
    """How submissions are graded. `seed` is that of the hidden inputs; without it, each submission gets its own."""

    limits: Limits = Limits()
    seed: int | None = None
    policy: str = "fair"
    sandbox: str = "full"


@dataclass
class Graded:
    """One notebook of a submission after grading. `points` are by nbgrader id; None waits for a teacher."""

    student: str
    chapter: Chapter
    notebook: NotebookNode
    points: dict[str, float | None]
    flags: list[str] = field(default_factory=list)
    received: datetime | None = None
    failed: bool = False  # nothing was recorded: something other than the submission broke
    unchanged: bool = False  # what is there already was kept


@dataclass
class Found:
    """What one student handed in for one notebook, found but not yet read."""

    chapter: Chapter
    student: str
    folder: Path
    notebook: Path | None
    flags: list[str]
    received: datetime | None

    @classmethod
    def of(cls, chapter: Chapter, student: str, folder: Path, siblings: tuple[str, ...] = ()) -> "Found":
        notebook, flags = find_notebook(chapter, folder, siblings)
        when, odd = received(chapter, student, notebook)
        return cls(chapter, student, folder, notebook, flags + odd, when)

    @property
    def target(self) -> Path:
        return self.chapter.folder("autograded", self.student) / f"{self.chapter.name}.ipynb"

    def address(self, source: str, options: Options) -> str:
        return environment.fingerprint(source, self.folder, self.notebook, repr(options), str(self.received))

    def kept(self, address: str, known: dict[str, float | None] | None) -> Graded | None:
        """What was graded before, if it is at this address and the gradebook has its scores."""
        try:
            notebook = json.loads(self.target.read_bytes())["metadata"]["autograder"]
            if known is None or notebook["address"] != address or notebook["points"] != known:
                return None
            return Graded(
                self.student, self.chapter, NotebookNode(), known, list(notebook["flags"]), self.received, unchanged=True
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None


@dataclass
class Taken:
    """What counts of a submission, read: the student's notebook, if there is one, and the folder of its files."""

    chapter: Chapter
    student: str
    notebook: NotebookNode | None
    files: Path
    flags: list[str]
    received: datetime | None
    address: str | None = None

    @classmethod
    def of(cls, found: Found, files: Path, address: str | None = None) -> "Taken":
        """Read a notebook and copy its files into the empty folder `files`."""
        notebook, why = read_submission(found.notebook) if found.notebook is not None else (None, None)
        flags = found.flags + ([why] if why else [])
        if notebook is not None:
            flags += stage(found.chapter, found.folder, found.notebook, files)
        return cls(found.chapter, found.student, notebook, files, flags, found.received, address)


def grade_submission(taken: Taken, options: Options = Options(), release: Release | None = None) -> Graded:
    """Merge, run and score one notebook. Nothing that a student hands in makes this raise.

    The seed of the hidden inputs is kept in the graded notebook.
    """
    start = time.monotonic()
    merged = merge(taken.chapter, taken.notebook, release)
    notebook, flags = merged.notebook, taken.flags + merged.flags
    seed = secrets.randbits(31) if options.seed is None else options.seed
    if taken.notebook is None:
        _not_run(notebook, flags[0])
    else:
        files = taken.files if any(taken.files.iterdir()) else None
        flags += run_notebook(notebook, taken.chapter, seed, options.limits, files, options.sandbox)
    earned = {grade_id(cell): points(cell, options.policy) for cell in notebook.cells if is_grade(cell)}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = inert(cell.outputs)
    notebook.metadata.autograder = NotebookNode(
        seed=seed,
        flags=flags,
        policy=options.policy,
        points=earned,
        address=taken.address,
        seconds=round(time.monotonic() - start, 3),
    )
    return Graded(taken.student, taken.chapter, notebook, earned, flags, taken.received)


def _not_run(notebook: NotebookNode, why: str) -> None:
    text = f"Nothing was run: {why}."
    for cell in notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            cell.outputs = [v4.new_output("error", ename="NotRun", evalue=text, traceback=[text])]


def write(book: Book, batch: list[Graded], last: bool = False) -> None:
    """Put graded notebooks into the gradebook, all in one transaction, then into `autograded/`.

    One that the gradebook does not take is tried once more by itself, since another run may just have made the same
    rows. One that it does not take then (`last`) is marked as failed.
    """
    new = [one for one in batch if not one.failed and not one.unchanged]
    try:
        with book.session() as db:
            for one in new:
                book.store(one.chapter, one.student, one.notebook, one.points, one.received, db)
    except (GradebookError, DiskError):
        raise
    except Exception as error:
        if last:
            new[0].failed = True
            new[0].flags = [_failure(error)]
            return
        for one in new:
            write(book, [one], last=True)
        return
    for one in new:
        try:
            folder = one.chapter.folder("autograded", one.student)
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / f".{one.chapter.name}.{os.getpid()}.part"  # several runs may write at once
            part.write_text(v4.writes(one.notebook), encoding="utf-8")
            os.replace(part, folder / f"{one.chapter.name}.ipynb")
        except Exception as error:  # a file where this student's folder should be
            if isinstance(error, OSError) and error.errno in CLOSED:
                raise
            one.failed, one.flags = True, [_failure(error)]
        one.notebook = NotebookNode()  # it is in the file now; a large class would not fit into memory


def _failure(error: Exception) -> str:
    return f"not graded: {type(error).__name__}: {error}".splitlines()[0]


def failed(chapter: Chapter, student: str, error: Exception) -> Graded:
    """The result of a submission that something else than itself kept from being graded."""
    return Graded(student, chapter, NotebookNode(), {}, [_failure(error)], failed=True)


def grade(
    chapters: list[Chapter],
    book: Book,
    options: Options = Options(),
    jobs: int = 1,
    again: bool = False,
    scheduler: str | None = None,
    done: Callable[[Graded], None] = lambda _: None,
) -> list[Graded]:
    """Grade every submission of some chapters, `jobs` at a time.

    A submission that cannot be graded has no points and a flag that says why.

    Args:
        chapters: notebooks; several may be of one assignment.
        again: run what has not changed, too.
        scheduler: the address of a dask.distributed scheduler, whose workers then do the work instead.
        done: called after each submission is in the gradebook.

    Raises:
        CourseError: if there is nothing to grade, a release is missing, the gradebook or the disk cannot be
            used, or there is no sandbox here; the exit code is its `code`.
    """
    names: dict[str, list[str]] = {}
    for chapter in chapters:
        names.setdefault(chapter.stem, []).append(chapter.name)
        if not chapter.release.is_file():
            raise CourseError(f"{chapter.id} has no release ({chapter.release.name}); make it before you grade")
    work = [(chapter, *one) for chapter in chapters for one in submissions(chapter)]
    if not work:
        raise CourseError("no submissions in submitted/<student>/<chapter>/ for " + ", ".join(c.id for c in chapters))
    graded: list[Graded] = []
    with told(book.db_url), book:
        wanted = {chapter for chapter, *_ in work}
        releases = {chapter: Release.of(chapter) for chapter in wanted}
        for chapter in chapters:
            if chapter in wanted:
                book.register(chapter, releases[chapter])
        sources = {chapter: environment.source(chapter) for chapter in wanted}
        known = {chapter: {} if again else book.known(chapter) for chapter in wanted}

        def one(item, run: Callable[[Taken], Graded]) -> Graded:
            chapter, student, folder = item
            try:
                if shown(student) != student[:80]:
                    raise ValueError("the name of the student's folder cannot stand in a gradebook; rename it")
                found = Found.of(chapter, student, folder, tuple(n for n in names[chapter.stem] if n != chapter.name))
                address = found.address(sources[chapter], options)
                if kept := found.kept(address, known[chapter].get(student)):
                    return kept
                with tempfile.TemporaryDirectory(prefix="files-") as files:
                    return run(Taken.of(found, Path(files), address))
            except CourseError:
                raise
            except Exception as error:  # one submission is never another one's problem
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                return failed(chapter, student, error)

        def results(items: list, options: Options, jobs: int) -> Iterator[list[Graded]]:
            if scheduler is not None:
                from autograder.doors.cluster import on_cluster

                return on_cluster(scheduler, one, items, options)
            return _in_threads(
                lambda item: one(item, lambda taken: grade_submission(taken, options, releases[taken.chapter])), items, jobs
            )

        def record(batch: list[Graded]) -> None:
            if not batch:
                return
            write(book, batch)
            for chapter in {one.chapter for one in batch if one.unchanged}:
                book.penalize(chapter, [one.student for one in batch if one.unchanged and one.chapter == chapter])
            for result in batch:
                done(result)
            graded.extend(batch)

        items = {(chapter, student): (chapter, student, folder) for chapter, student, folder in work}
        late: list[tuple[tuple, int, list[str]]] = []  # what is to run again: the item, its seed, the limits that it hit
        for batch in results(work, options, jobs):
            final = []
            for result in batch:
                if hit := rerun.hit(result.notebook):
                    late.append((items[result.chapter, result.student], result.notebook.metadata.autograder.seed, hit))
                else:
                    final.append(result)
            record(final)
        for item, seed, hit in late:
            for batch in results([item], replace(options, seed=seed), 1):
                for result in batch:
                    if not result.failed and not result.unchanged:
                        result.flags = [*result.flags, rerun.sentence(hit, rerun.hit(result.notebook))]
                        result.notebook.metadata.autograder.flags = result.flags
                record(batch)
    return graded


def _in_threads(one: Callable, work: Iterable, jobs: int) -> Iterator[list[Graded]]:
    """The results as they come; only a few are asked for at a time."""
    work, waiting = iter(work), set()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while True:
                waiting |= {pool.submit(one, item) for item in islice(work, 2 * jobs - len(waiting))}
                if not waiting:
                    return
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield [future.result() for future in finished]
        finally:
            for future in waiting:
                future.cancel()
