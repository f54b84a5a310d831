"""A class of submissions to scores in nbgrader's gradebook.

Each result has an address: the hash of what was handed in, the source, the environment and the limits. A
submission whose graded notebook bears the address that it would get, and whose scores the gradebook has, is not
run again. One that hit a limit and lost points is run once more when all others are done, and only that is
recorded (autograder/grading/rerun.py). The gradebook is written before the graded notebook: whenever a run is killed, the next one finds
either both or runs that submission again, and writes the same rows once more.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path

from nbformat import NotebookNode, v4

from autograder.authoring.chapters import Chapter
from autograder.authoring.release import Release
from autograder.errors import CourseError
from autograder.grading import rerun
from autograder.grading.address import source_of
from autograder.grading.attempts import BEST, LAST, Kept, due_of, time
from autograder.grading.gradebook import CLOSED, FULL, Book, DiskError, GradebookError, told
from autograder.grading.merge import shown
from autograder.grading.submission import Found, Graded, Options, Taken, failed, failure, grade_submission
from autograder.grading.submitted import handed_in, record_of

Workers = Callable[[Callable, list, Options], Iterator[list[Graded]]]
"""Grade some items: what makes one of an item, the items, the options; the results as they come."""


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
            new[0].flags = [failure(error)]
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
            one.failed, one.flags = True, [failure(error)]
        one.notebook = NotebookNode()  # it is in the file now; a large class would not fit into memory


def grade(
    chapters: list[Chapter],
    book: Book,
    options: Options = Options(),
    jobs: int = 1,
    again: bool = False,
    workers: Workers | None = None,
    done: Callable[[Graded], None] = lambda _: None,
    attempts: str = LAST,
    until: dict[tuple[str, str], datetime] | None = None,
) -> list[Graded]:
    """Grade every submission of some chapters, `jobs` at a time.

    A submission that cannot be graded has no points and a flag that says why.

    Args:
        chapters: notebooks; several may be of one assignment.
        again: run what has not changed, too.
        workers: what does the work instead of threads here, such as `autograder.doors.cluster.on_cluster` at an address.
        done: called after each submission is in the gradebook.
        attempts: which attempt of a student counts, of `autograder.grading.attempts.POLICIES`.
        until: extensions that a teacher wrote down, in UTC, by assignment and student; they go into the gradebook.

    Raises:
        CourseError: if there is nothing to grade, a release is missing, the gradebook or the disk cannot be
            used, or there is no sandbox here; the exit code is its `code`.
    """
    names: dict[str, list[str]] = {}
    for chapter in chapters:
        names.setdefault(chapter.stem, []).append(chapter.name)
        if not chapter.release.is_file():
            raise CourseError(f"{chapter.id} has no release ({chapter.release.name}); make it before you grade")
    work = [(chapter, *one) for chapter in chapters for one in handed_in(chapter)]
    if not work:
        raise CourseError("no submissions in submitted/<student>/<chapter>/ for " + ", ".join(c.id for c in chapters))
    graded: list[Graded] = []
    with told(book.db_url), book:
        wanted = {chapter for chapter, *_ in work}
        releases = {chapter: Release.of(chapter) for chapter in wanted}
        for chapter in chapters:
            if chapter in wanted:
                book.register(chapter, releases[chapter])
        sources = {chapter: source_of(chapter) for chapter in wanted}
        known = {chapter: {} if again else book.known(chapter) for chapter in wanted}

        addresses: dict[tuple, tuple] = {}  # the items by chapter, student and address of their results

        def found_at(item) -> tuple[Found, str]:
            chapter, student, folder = item
            found = Found.of(chapter, student, folder, tuple(n for n in names[chapter.stem] if n != chapter.name))
            return found, found.address(sources[chapter], options)

        def one(item, run: Callable[[Taken], Graded]) -> Graded:
            chapter, student = item[:2]
            try:
                if shown(student) != student[:80]:
                    raise ValueError("the name of the student's folder cannot stand in a gradebook; rename it")
                found, address = found_at(item)
                addresses[chapter, student, address] = item
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
            if workers is not None:
                return workers(one, items, options)
            return _in_threads(
                lambda item: one(item, lambda taken: grade_submission(taken, options, releases[taken.chapter])), items, jobs
            )

        def final(items: list) -> Iterator[list[Graded]]:
            """The results that count: of what hit a limit and lost points, those of a second run at the end."""
            late: list[tuple[tuple, int, list[str]]] = []  # what is to run again: the item, its seed, the limits that it hit
            for batch in results(items, options, jobs):
                counts = []
                for result in batch:
                    if hit := rerun.hit(result.notebook):
                        about = result.notebook.metadata.autograder
                        late.append((addresses[result.chapter, result.student, about.address], about.seed, hit))
                    else:
                        counts.append(result)
                yield counts
            for item, seed, hit in late:
                for batch in results([item], replace(options, seed=seed), 1):
                    for result in batch:
                        if not result.failed and not result.unchanged:
                            result.flags = [*result.flags, rerun.sentence(hit, rerun.hit(result.notebook))]
                            result.notebook.metadata.autograder.flags = result.flags
                    yield batch

        def record(batch: list[Graded]) -> None:
            if not batch:
                return
            write(book, batch)
            for chapter in {one.chapter for one in batch if one.unchanged}:
                book.penalize(chapter, {one.student: one.received for one in batch if one.unchanged and one.chapter == chapter})
            for result in batch:
                done(result)
            graded.extend(batch)

        _settle(book, work, attempts, until or {}, partial(_score, final, addresses, lambda item: found_at(item)[1]))
        for batch in final(work):
            record(batch)
    return graded


def _settle(book: Book, work: list[tuple], policy: str, until: dict, score: Callable) -> None:
    """Let the attempt of each student count that the policy says, and write extensions into the gradebook."""
    chapters: dict[str, list[Chapter]] = {}
    for chapter, *_ in work:
        if chapter not in chapters.setdefault(chapter.stem, []):
            chapters[chapter.stem].append(chapter)
    for stem, sheets in chapters.items():
        chapter = sheets[0]
        students = dict.fromkeys(student for other, student, _ in work if other.stem == stem)
        kept = {student: Kept.of(chapter, student) for student in students if record_of(chapter, student).is_file()}
        told = {
            student: when
            for student, mine in kept.items()
            if (when := next((time(one.due) for one in mine.attempts if one.extended and one.due), None)) is not None
        }
        book.extend(chapter, told, over=False)
        book.extend(chapter, {student: until[stem, student] for student in students if (stem, student) in until}, over=True)
        several = {student: mine for student, mine in kept.items() if len(mine.attempts) > 1}
        if policy == BEST and several:
            score(sheets, several)
        base, extensions = book.due(stem) if several else (None, {})
        for student, mine in several.items():
            due = due_of(base, extensions.get(student), until.get((stem, student)) or told.get(student))
            mine.settle(mine.chosen(policy, due))


def _score(final: Callable, addresses: dict, address: Callable, sheets: list[Chapter], several: dict[str, Kept]) -> None:
    """Grade each attempt of some students that was not graded yet, and keep what it got in their records."""
    places, items = {}, []
    for student, mine in several.items():
        for one in mine.attempts:
            places[mine.place(one.number)] = one
            for sheet in sheets:
                item = sheet, student, mine.place(one.number)
                if one.scored.get(sheet.name) != address(item):
                    one.points.pop(sheet.name, None)
                    items.append(item)
    for batch in final(items):
        for result in batch:
            at = result.address or result.notebook.get("metadata", {}).get("autograder", {}).get("address")
            item = addresses.get((result.chapter, result.student, at))
            if item is not None and not result.failed:
                attempt, name = places[item[2]], result.chapter.name
                attempt.points[name], attempt.scored[name] = sum(value or 0.0 for value in result.points.values()), at
    for mine in several.values():
        mine.save()


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
