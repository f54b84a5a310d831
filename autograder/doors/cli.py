"""The `autograder` command."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors; must be set before torch is imported

import multiprocessing
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

import autograder
from autograder.authoring.chapters import Chapter, find_chapters, find_root
from autograder.errors import CourseError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Release, check and grade the chapters of the course, beside nbgrader."
)


def show_version(wanted: bool):
    if wanted:
        typer.echo(f"autograder {autograder.__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Say which version this is, and end.")
    ] = False,
):
    pass


def plain_console(**given) -> Console:
    """A console that prints text as it is: no name of a file or a student is taken for rich's markup or emoji."""
    return Console(markup=False, emoji=False, **given)


console = plain_console()

Chapters = Annotated[list[str] | None, typer.Argument(help="Chapters, such as ch04 or ch04_attention; all without one.")]
Root = Annotated[Path | None, typer.Option(help="The course folder; without it the one that this folder is in.")]
Course = Annotated[
    Path | None, typer.Option(help="Any nbgrader course folder; then name its assignment, such as --course DIR ps1.")
]
Jobs = Annotated[int, typer.Option(min=1, help="How many processes at once.")]
Lists = Annotated[
    list[Path] | None,
    typer.Option(
        "--roster",
        help="A list beside students.csv of the course folder: participants, grades or a grading worksheet as Moodle or Canvas "
        "exports them (CSV), the submissions of Canvas' API (JSON).",
    ),
]
LISTS = ".csv", ".tsv", ".txt", ".json"
Database = Annotated[str | None, typer.Option(help="The gradebook; nbgrader's own without it.")]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen(names: list[str] | None, root: Path | None) -> list[Chapter]:
    try:
        return find_chapters(find_root(root), names)
    except CourseError as error:
        stop(error)


def notebooks(names: list[str] | None, root: Path | None, course: Path | None) -> list[Chapter]:
    """The chapters that were named, or the notebooks of assignments of another course."""
    from autograder.authoring.course_folder import sheets

    if course is None:
        return chosen(names, root)
    if not names:
        stop("name the assignment, such as --course DIR ps1")
    try:
        return [sheet for name in names for sheet in sheets(course, name)]
    except CourseError as error:
        stop(error)


def stop(error: object, code: int = 2):
    """Say one clear sentence and end: 1 means a check failed, 2 that the command could not be carried out."""
    plain_console(stderr=True).print(Text.assemble(("autograder:", "red"), f" {error}"), highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=plain_console(stderr=True),
        transient=True,
    )


@app.command()
def run(names: Chapters = None, root: Root = None):
    """Execute source notebooks and store their outputs (for authors)."""
    from autograder.authoring.run import run_chapter

    for chapter in chosen(names, root):
        with progress() as bar:
            bar.add_task(f"{chapter.stem}: running")
            try:
                seconds = run_chapter(chapter)
            except CourseError as error:
                stop(error, 1)
        console.print(f"{chapter.stem}: {seconds:.1f} s")


@app.command()
def new(
    stem: Annotated[str, typer.Argument(help="Such as ch13_attention_maps; its title is in book/reference/chapters.yml.")],
    root: Root = None,
):
    """Make the skeleton of a chapter in every place that a chapter touches (for authors)."""
    from autograder.authoring.skeleton import new as make

    try:
        folder = root or find_root()
        for path in make(folder, stem):
            console.print(str(path.relative_to(folder)), highlight=False, soft_wrap=True)
    except CourseError as error:
        stop(error)
    console.print(f"next: autograder run {stem.partition('_')[0]}, make tables, autograder release {stem.partition('_')[0]}")


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Chapters, such as ch04 or ch04_attention, or exercises, such as ch04.scaling; all without one."),
    ] = None,
    root: Root = None,
    jobs: Jobs = CORES,
):
    """Try every right and wrong answer of answers.py on the tests of the chapters (for authors).

    Right answers must get full points; wrong ones must lose points of their exercise, and the
    feedback must name the misconception. Exits with 1 on any miss.
    """
    from autograder.authoring.skeleton import missing

    only = {name for name in names or () if "." in name}
    chapters = chosen(list(dict.fromkeys(name.split(".")[0] for name in names or ())), root)
    table = Table(Column("exercise", no_wrap=True), "right\naccepted", "wrong\nrejected", "misconceptions\nnamed", "seconds")
    start, found = time.perf_counter(), []
    misses = [(chapter.stem, told) for chapter in chapters for told in missing(chapter)]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["autograder.doors.warm"])
    with progress() as bar, ProcessPoolExecutor(min(jobs, len(chapters) or 1), mp_context=context) as pool:
        task = bar.add_task("checking", total=len(chapters))
        for chapter, future in [(chapter, pool.submit(_check, chapter, _of(chapter, only))) for chapter in chapters]:
            bar.update(task, description=f"checking {chapter.stem}")
            results, error = future.result()
            if error:
                misses.append((chapter.stem, error))
            found += results
            for result in results:
                style = "red" if result.misses else None
                table.add_row(
                    result.exercise, str(result.right), str(result.wrong), str(result.named), f"{result.seconds:.1f}", style=style
                )
                misses += [(result.exercise, miss) for miss in result.misses]
    console.print(table)
    sums = [sum(getattr(result, name) for result in found) for name in ("right", "wrong", "named")]
    console.print(
        f"{len(found)} exercises, {sums[0]} right accepted, {sums[1]} wrong rejected, {sums[2]} misconceptions named, "
        f"{len(misses)} misses, {time.perf_counter() - start:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    for where, miss in misses:
        console.print(Text.assemble((where, "red"), f": {miss}"), highlight=False, soft_wrap=True)
    if misses:
        raise typer.Exit(1)


def _of(chapter: Chapter, only: set[str]) -> set[str]:
    """Those of the exercises that belong to a chapter."""
    return {name for name in only if chapter.stem.startswith(name.split(".")[0])}


def _check(chapter: Chapter, only: set[str]):
    from autograder.authoring.check import check_chapter

    try:
        return check_chapter(chapter, only=only), None
    except CourseError as error:
        return [], str(error)
    except Exception:  # a slip in answers.py, say: the other chapters go on
        return [], traceback.format_exc(limit=-3)


@app.command()
def mutate(
    names: Chapters = None,
    root: Root = None,
    most: Annotated[
        int | None, typer.Option(min=1, help="So many changes of a solution, drawn at random; all without it.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the changes and the hidden inputs.")] = 0,
    jobs: Jobs = CORES,
):
    """Do the tests notice small faults in the chapters' own solutions? Such as: autograder mutate ch04 --most 20 (for authors)

    Prints each change that keeps full points: add the test that tells it apart, or say in answers.py why it is
    right too, such as equivalent("ch04.scaling", "`the changed line`", "the reason"). Exits with 1 if one has no reason.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # its processes are forks, which a GPU does not allow
    from autograder.authoring.mutate import mutate_chapter

    tried, accepted, misses = 0, 0, 0
    for chapter in chosen(names, root):
        try:
            for result in mutate_chapter(chapter, most, seed, jobs):
                alive = len(result.survivors) + len(result.accepted)
                console.print(f"{result.exercise}: {result.tried - alive} of {result.tried} noticed", highlight=False)
                for told, reason in result.accepted:
                    console.print(f"  equivalent: {told} ({reason})", highlight=False, soft_wrap=True, markup=False)
                for told in [f"survives: {told}" for told in result.survivors] + result.misses:
                    console.print(f"  {told}", style="red", highlight=False, soft_wrap=True, markup=False)
                tried, accepted = tried + result.tried, accepted + len(result.accepted)
                misses += len(result.survivors) + len(result.misses)
        except CourseError as error:
            stop(error, 1)
    console.print(f"{tried} changes tried, {accepted} equivalent with a reason, {misses} misses", highlight=False)
    if misses:
        raise typer.Exit(1)


@app.command()
def release(
    names: Chapters = None,
    root: Root = None,
    dry_run: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a release is stale.")] = False,
):
    """Make the students' notebooks, release/, from source/."""
    from autograder.authoring.release import stale
    from autograder.grading.gradebook import publish

    for chapter in chosen(names, root):
        try:
            if not dry_run:
                publish(chapter)
                console.print(f"{chapter.stem}: written to {chapter.release.parent.relative_to(chapter.root)}")
            elif changed := stale(chapter):
                stop(f"{chapter.stem}: stale ({', '.join(changed)}); run autograder release {chapter.id}", 1)
            else:
                console.print(f"{chapter.stem}: fresh")
        except CourseError as error:
            stop(error, 1)


@app.command()
def bundle(names: Chapters = None, root: Root = None, out: Annotated[Path | None, typer.Option(help="The zip to write.")] = None):
    """Make the zip that students get: notebooks, course package, environment, README."""
    from autograder.authoring.bundle import FOLDER
    from autograder.authoring.bundle import bundle as make

    chapters = chosen(names, root)
    target = out or chapters[0].root / "build" / f"{FOLDER}.zip"
    try:
        count = make(chapters, target)
    except CourseError as error:
        stop(error, 1)
    console.print(f"{target}: {count} files, {target.stat().st_size / 1e6:.1f} MB", soft_wrap=True)


class Policy(StrEnum):
    fair = "fair"
    compat = "compat"


class Sandbox(StrEnum):
    full = "full"
    none = "none"


class Attempts(StrEnum):
    last = "last"
    best = "best"
    before_due = "last-before-due"


Sandboxed = Annotated[
    Sandbox,
    typer.Option(
        envvar="AUTOGRADER_SANDBOX",
        help="full: student code in namespaces of its own, with limits; none: in a process of its own, for code that you trust.",
    ),
]


@app.command()
def grade(
    names: Chapters = None,
    root: Root = None,
    course: Course = None,
    export: Annotated[
        list[Path] | None,
        typer.Option(
            "--from", help="First sort a zip or folder that Moodle or Canvas exported into submitted/; as `intake` does."
        ),
    ] = None,
    roster: Lists = None,
    jobs: Jobs = CORES,
    db: Annotated[
        str | None, typer.Option(help="The gradebook, such as postgresql+psycopg://HOST/NAME; nbgrader's own without it.")
    ] = None,
    only_changed: Annotated[
        bool,
        typer.Option("--only-changed/--again", help="Keep results whose notebook, source, environment and limits are the same."),
    ] = True,
    policy: Annotated[
        Policy, typer.Option(help="fair: fail closed, and a warning costs nothing; compat: nbgrader's rule to the letter.")
    ] = Policy.fair,
    scheduler: Annotated[
        str | None, typer.Option(help="A dask.distributed scheduler, such as tcp://HOST:8786, whose workers do the work.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Processor time that one cell may take.")] = 30.0,
    memory: Annotated[float, typer.Option(help="The limit of one submission's memory, in GiB.")] = 4.0,
    attempts: Annotated[
        Attempts | None, typer.Option(help="Which attempt counts: last, best, or last-before-due; without it c.Course.attempts.")
    ] = None,
    sandbox: Sandboxed = Sandbox.full,
):
    """Grade submitted/<student>/<chapter>/ into nbgrader's gradebook and autograded/, such as: autograder grade ch04

    Safe to interrupt: run the same command again, and only what is missing is run. Exit codes: 0 all graded; 1 a
    submission could not be graded; 2 unknown chapter, missing release or nothing to grade; 3 the gradebook cannot
    be used; 4 no space left, or no permission to write; 5 no sandbox on this machine; 130 interrupted.
    """
    from autograder.authoring.scoring import shown_scores
    from autograder.grading.extensions import read_extensions
    from autograder.grading.gradebook import Book
    from autograder.grading.settings import settings
    from autograder.grading.submission import Options
    from autograder.grading.submitted import handed_in
    from autograder.limits import Limits

    try:
        chapters = notebooks(names, root, course)
        for sheet in chapters if course is not None else []:
            for told in shown_scores(sheet.notebook):
                console.print(Text.assemble((sheet.id, "yellow"), f" {told}"), highlight=False, soft_wrap=True)
        root, book = chapters[0].root, Book(chapters[0].root, db)
        course_settings, until = settings(root), read_extensions(root, chapters, settings(root).zone)
        lost = take_in(export, chapters, roster or [], book) if export else 0
        chapters = [chapter for chapter in chapters if names or handed_in(chapter)]
        if not chapters:
            stop("nothing in submitted/<student>/<chapter>/")
        workers = None
        if scheduler is not None:
            from autograder.doors.cluster import on_cluster

            workers = partial(on_cluster, scheduler)
        options = Options(Limits(cell=seconds, memory=int(memory * 2**30)), policy=policy.value, sandbox=sandbox.value)
        policy_of_attempts = attempts.value if attempts else course_settings.attempts
        grade_with_progress(chapters, book, options, jobs, not only_changed, workers, policy_of_attempts, until)
        if lost:
            stop(f"{lost} hand-ins could not be put into submitted/; see above", 1)
    except CourseError as error:
        stop(error, getattr(error, "code", 2))


def take_in(given: list[Path], chapters: list[Chapter], more: list[Path], book) -> int:
    """Sort exports into submitted/ and say what was odd; how many hand-ins could not be put there.

    Raises:
        CourseError: if an export, a list or an answer of the teacher cannot be used.
    """
    from autograder.grading.intake import collect, read_lists
    from autograder.grading.roster import class_list, read_answers, write_review
    from autograder.grading.settings import settings

    root = chapters[0].root
    exports = [path for path in given if path.suffix.lower() not in LISTS or path.is_dir()]
    lists = read_lists([*(path for path in given if path not in exports), *more], settings(root).zone)
    known, answers = class_list(root, lists.rosters, book), read_answers(root)
    lost, questions, stems, timeless = 0, [], set(), set()
    for path in exports:
        took = collect(path, chapters, known, lists, answers)
        for one in took:
            for flag in one.flags:
                say(f"{one.student} {one.chapter}: {flag}")
            for old in one.before:
                rename(book, one.chapter, old, one.student)
            questions += one.questions
            stems.add(one.chapter)
            if one.timeless:
                timeless.add(one.chapter)
        lost += sum(one.failed for one in took)
        console.print(f"{sum(not one.failed for one in took)} submissions taken from {path}", soft_wrap=True)
    if timeless:
        say(
            f"no time is known of hand-ins for {', '.join(sorted(timeless))}: the zips of Moodle and Canvas have none. Give Moodle's "
            "grading worksheet (CSV) or the list of submissions of Canvas' API (JSON) with the zip"
        )
    review = write_review(root, questions, known, {*stems, ""})
    if questions:
        say(
            f"{len(questions)} hand-ins are of somebody whom the class list does not tell: answer in {review}, then `autograder intake`"
        )
    return lost


def rename(book, stem: str, old: str, new: str):
    """Bring the scores and graded notebooks of an assignment along to the student as whom it is filed now."""
    from autograder.grading.renamed import bring_along

    if bring_along(book, stem, old, new):
        say(f"{stem}: {old} is {new} now")
    else:
        say(f"{stem}: {old} is {new} now, who had scores already; those of {old} stay in the gradebook")


def say(line: str):
    console.print(line, highlight=False, soft_wrap=True)


@app.command()
def intake(
    given: Annotated[
        list[Path] | None,
        typer.Argument(
            help="What the platform exported: the zip (or folder) of hand-ins, Moodle's grading worksheet or participants, Canvas' "
            "gradebook (CSV), the submissions of Canvas' API (JSON)."
        ),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="The chapters that are handed in, such as ch04; all without it.")] = None,
    root: Root = None,
    course: Course = None,
    roster: Lists = None,
    review: Annotated[bool, typer.Option("--review", help="Show what is open: whose a hand-in is, with the candidates.")] = False,
    db: Database = None,
):
    """Sort hand-ins into submitted/<student>/<chapter>/, such as: autograder intake "Chapter 4.zip" Grades.csv --only ch04

    Whom the class list does not tell for sure is asked about in intake-review.csv: write the student's id (or new) into its first
    column, and run `autograder intake` again. Nothing is lost until then: the work is filed and graded under the platform's name.
    """
    from autograder.grading.gradebook import Book
    from autograder.grading.intake import read_lists, refile
    from autograder.grading.roster import REVIEW, class_list, open_questions, read_answers
    from autograder.grading.settings import settings

    chapters = notebooks(only, root, course)
    book = Book(chapters[0].root, db)
    try:
        lost = take_in(given, chapters, roster or [], book) if given else 0
        if not given:
            lists = read_lists(roster or [], settings(chapters[0].root).zone)
            known, answers = class_list(chapters[0].root, lists.rosters, book), read_answers(chapters[0].root)
            for stem, old, new in refile(chapters, known, answers):
                rename(book, stem, old, new)
        asked = open_questions(chapters[0].root)
    except CourseError as error:
        stop(error, getattr(error, "code", 2))
    if review:
        table = Table("hand-in of", "number", "assignment", "filed as", "may be", title=f"Answer in {REVIEW}")
        for one in asked:
            table.add_row(one.who.name, one.who.number, one.assignment, one.filed, "\n".join(one.candidates) or "nobody alike")
        console.print(table if asked else "nothing is open")
    elif not given:
        say(f"{len(asked)} questions are open; `autograder intake --review` shows them" if asked else "nothing is open")
    if lost:
        stop(f"{lost} hand-ins could not be put into submitted/; see above", 1)


@app.command()
def roster(
    given: Annotated[
        list[Path] | None,
        typer.Argument(help="Moodle's participants, Canvas' gradebook (CSV), or another nbgrader gradebook (gradebook.db)."),
    ] = None,
    root: Root = None,
    course: Annotated[Path | None, typer.Option(help="Any nbgrader course folder.")] = None,
    db: Database = None,
):
    """Make or extend the class list, students.csv, such as: autograder roster participants.csv

    It has the id, name, email address and the platforms' names of everybody. Lines that share an id, email address, username or id
    number are one person. Edit it as you like; it is read by `intake`, `grade` and `report`.
    """
    from autograder.grading.gradebook import Book
    from autograder.grading.roster import OWN, class_list, write_list

    try:
        folder = course or find_root(root)
        databases = [path for path in given or [] if path.suffix.lower() in (".db", ".sqlite", ".sqlite3")]
        for path in databases:
            if not path.is_file():
                stop(f"{path} is no file")
        lists = [path for path in given or [] if path not in databases]
        books = [Book(folder, db), *(Book(folder, f"sqlite:///{path.resolve()}") for path in databases)]
        known = class_list(folder, lists, *books)
        if not known.people:
            stop("there is nobody: give Moodle's participants or Canvas' gradebook as CSV, or nbgrader's gradebook.db")
        people = write_list(known, folder / OWN[0])
    except CourseError as error:
        stop(error, getattr(error, "code", 2))
    say(f"{folder / OWN[0]}: {len(people)} students")


def grade_with_progress(
    chapters: list[Chapter], book, options, jobs: int, again: bool = False, workers=None, attempts: str = "last", until=None
):
    from autograder.grading.grade import grade
    from autograder.grading.merge import shown
    from autograder.grading.submitted import handed_in

    graded = []
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=plain_console(stderr=True),
    ) as bar:
        task = bar.add_task("grading", total=sum(len(handed_in(chapter)) for chapter in chapters))

        def done(one):
            bar.update(task, advance=1, description=f"{shown(one.student)} {one.chapter.id}")
            graded.append(one)

        try:
            grade(chapters, book, options, jobs, again, workers, done, attempts, until)
        except CourseError as error:
            stop(error, getattr(error, "code", 2))
        except KeyboardInterrupt:
            stop(f"interrupted after {len(graded)} submissions; run the same command again to go on", 130)
    for one in sorted(graded, key=lambda g: (g.student, g.chapter.id)):
        for flag in one.flags:
            console.print(f"{shown(one.student)} {one.chapter.id}: {flag}", highlight=False, soft_wrap=True)
    same, failed = sum(one.unchanged for one in graded), sum(one.failed for one in graded)
    console.print(f"{len(graded) - failed} submissions graded" + (f", {same} of them unchanged" if same else ""))
    if failed:
        stop(f"{failed} submissions could not be graded; run the same command again", 1)


@app.command()
def doctor():
    """Tell what of the sandbox for student code works on this machine. Exits with 5 when it is not possible in full."""
    from autograder.doors.doctor import examine, possible

    with progress() as bar:
        bar.add_task("trying each part of the sandbox")
        findings = examine()
    table = Table(Column("part", no_wrap=True), "works", "")
    for finding in findings:
        style = None if finding.works else "red" if finding.needed else "yellow"
        table.add_row(finding.part, "yes" if finding.works else "no", finding.told, style=style)
    console.print(table)
    console.print(told_of_the_book(), soft_wrap=True)
    if not possible(findings):
        stop("the full sandbox is not possible here; `--sandbox=none` grades without it, code that you trust only.", 5)


def told_of_the_book() -> str:
    """Where the book is that feedback pages link to, or how to say it."""
    from autograder.grading.settings import settings

    try:
        address = settings(find_root()).book_url
    except CourseError as error:
        return f"the published book: {error}"
    if address:
        return f"the published book: {address}; feedback pages link to it"
    return (
        "the published book: not set, so feedback pages carry the sections to read; where your students can open the book, "
        'write its address into nbgrader_config.py: c.Course.book_url = "https://…"'
    )


@app.command()
def feedback(
    names: Chapters = None,
    root: Root = None,
    course: Course = None,
    db: Annotated[str | None, typer.Option(help="The gradebook; nbgrader's own without it.")] = None,
    book: Annotated[
        str | None, typer.Option(help="The book's address, for links; without it c.Course.book_url, or the text itself.")
    ] = None,
):
    """Write a feedback page for every graded submission: feedback/<student>/<chapter>/.

    For chapters that came from Moodle or Canvas, build/feedback/ has a zip that the platform takes in: Moodle by "Upload multiple
    feedback files in a zip", Canvas by "Upload Submissions" of the assignment.
    """
    from autograder.authoring.release import default_database
    from autograder.pages.back import zip_feedback
    from autograder.pages.feedback import NotGraded, write_feedback

    pages, missing, assignments = [], [], {}
    for chapter in notebooks(names, root, course):

        def failed(student: str, error: Exception, chapter: Chapter = chapter):
            why = str(error).partition("\n")[0]
            console.print(f"{student} {chapter.id}: no page ({type(error).__name__}: {why})", highlight=False, soft_wrap=True)
            missing.append(student)

        try:
            made = write_feedback(chapter, db or default_database(chapter.root), book, failed)
            assignments.setdefault(chapter.stem, (chapter, []))[1].extend(made)
            pages += made
        except NotGraded as error:
            if names:
                stop(error)
        except CourseError as error:
            stop(error, getattr(error, "code", 2))
    console.print(f"{len(pages)} pages in feedback/")
    for chapter, made in assignments.values():
        tell_sent(zip_feedback(chapter, made, chapter.root / "build" / "feedback"), "pages")
    if missing:
        stop(f"{len(missing)} pages could not be made; grade these again with --again", 1)


def tell_sent(sent: list, what: str):
    """Say which files for platforms were written, and whom they leave out."""
    for one in sent:
        if one.count:
            console.print(f"{one.path}: {one.count} {what}", soft_wrap=True)
        for line in [*one.notes, *(f"left out: {line}" for line in one.left)]:
            say(f"  {line}")


@app.command()
def report(
    names: Chapters = None,
    root: Root = None,
    course: Course = None,
    db: Database = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write; build/report without it.")] = None,
    roster: Lists = None,
    worksheet: Annotated[
        list[Path] | None,
        typer.Option(help="Moodle's grading worksheet as you downloaded it: moodle-<chapter>.csv is that, filled in."),
    ] = None,
    earlier: Annotated[
        list[Path] | None, typer.Option(help="exercises.csv of an earlier class, to see which exercises have become harder.")
    ] = None,
):
    """Scores, how hard the exercises were, misconceptions met, what to look at, to grade again and to teach again.

    Writes report.html, reteach.html, scores.csv, exercises.csv, misconceptions.csv, and the scores as Moodle and Canvas import
    them: moodle.csv (grade import), moodle-<chapter>.csv (grading worksheet), canvas.csv.
    """
    from autograder.authoring.release import default_database

    chapters = notebooks(names, root, course)
    folder = out or chapters[0].root / "build" / "report"
    show_report(chapters, db or default_database(chapters[0].root), folder, roster or [], worksheet or [], earlier or [])


def show_report(chapters: list[Chapter], db_url: str, out: Path, roster=(), worksheets=(), earlier=()):
    from autograder.grading.gradebook import Book
    from autograder.grading.roster import class_list
    from autograder.pages.back import complete, write_worksheets
    from autograder.pages.report import absent, collect, items, read_earlier, similar, write_report

    try:
        known = class_list(chapters[0].root, roster, Book(chapters[0].root, db_url))
        before = read_earlier(earlier)
        works = collect(chapters, db_url)
        complete([work.person for work in works], known, chapters)
    except CourseError as error:
        stop(error, getattr(error, "code", 2))
    if not works:
        stop("the gradebook has no scores; run autograder grade first")
    totals = {(work.person.id, work.chapter): work for work in works}
    shown = list({work.chapter: work for work in works}.values())
    grid = Table("student", *(f"{work.chapter.id} (of {work.points:g})" for work in shown), title="Scores")
    for student in sorted({work.person.id for work in works}):
        row = [totals.get((student, work.chapter)) for work in shown]
        grid.add_row(student, *(f"{mine.total:g}" if mine else "–" for mine in row))
    console.print(grid)
    hard = Table("exercise", "students", "mean", "discrimination", "misconception met most", title="Exercises", expand=True)
    for item in items(works):
        hard.add_row(
            item.exercise,
            str(item.students),
            "–" if item.difficulty is None else f"{item.difficulty:.0%}",
            "–" if item.discrimination is None else f"{item.discrimination:.2f}",
            "".join(f"{n}× {text}" for text, n in item.misconceptions[:1]),
        )
    console.print(hard)
    flagged, pairs = sum(bool(work.flags) for work in works), len(similar(works))
    console.print(f"to look at: {flagged} submissions with flags, {pairs} pairs that are nearly the same")
    if again := sum(bool(work.again) for work in works):
        console.print(f"to grade again: {again} submissions; the report says why")
    missing = absent(works, known)
    if nothing := sum(not any(work.person.id == person.id for work in works) for person in missing):
        console.print(f"{nothing} of the class list handed in nothing")
    try:
        sheets = write_worksheets(works, out, worksheets)
        files, unmapped = write_report(works, out, missing, before)
    except CourseError as error:
        stop(error, getattr(error, "code", 2))
    for path in files:
        console.print(path, soft_wrap=True)
    tell_sent(sheets, "scores")
    for file, people in unmapped.items():
        if known.given and 0 < len(people) < len({work.person.id for work in works}):
            say(
                f"{file}: {len(people)} students have no identifier that it takes, such as {people[0].id}; add them to students.csv"
            )
    if broken := [work for work in works if work.broken]:
        for work in broken:
            console.print(f"{work.person.id} {work.chapter.id}: {work.broken}", highlight=False, soft_wrap=True)
        stop(f"{len(broken)} graded notebooks could not be read; the report has their scores only", 1)


@app.command()
def demo(names: Chapters = None, root: Root = None, jobs: Jobs = CORES, sandbox: Sandboxed = Sandbox.full):
    """Make a class from the chapters' own answers, grade it, and show everything.

    Its submissions are the course's own code: where the sandbox is not possible, it says so and goes on without.
    """
    from autograder.doors.demo import SEED, grade_by_hand, prepare
    from autograder.engine.supervisor import student_template
    from autograder.errors import SandboxError
    from autograder.grading.gradebook import Book
    from autograder.grading.submission import Options
    from autograder.pages.feedback import write_feedback

    here = chosen(names, root)
    folder = here[0].root / "build" / "demo"
    try:
        chapters = prepare(here[0].root, folder, names)
    except CourseError as error:
        stop(error)
    book = Book(folder)
    try:
        student_template(sandbox.value).wait()
    except SandboxError as error:
        console.print(Text.assemble(("without a sandbox", "yellow"), f": {error}"), highlight=False, soft_wrap=True)
        sandbox = Sandbox.none
    grade_with_progress(chapters, book, Options(seed=SEED, sandbox=sandbox.value), jobs)
    if read := grade_by_hand(chapters, book):
        console.print(f"{read} written answers read by hand")
    pages = [page for chapter in chapters for page in write_feedback(chapter, book.db_url)]
    show_report(chapters, book.db_url, folder / "report")
    console.print(f"feedback: {len(pages)} pages, such as {pages[-1]}", soft_wrap=True)
