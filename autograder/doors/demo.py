"""A class of a dozen or so made from the chapters' own answers, graded from start to end.

Ada has everything right. In the first chapter Ben hands in an empty notebook and Cem's file is broken. Dia
empties the test cells and writes herself points. The others, and Ben and Cem in later chapters, mix right
answers with the wrong ones of `answers.py`, so that every wrong answer is handed in by somebody; where an
exercise has more of them than the class has heads, further students join. Who finds all answers to an exercise taken leaves
it out, unless other exercises build on it.
"""

import shutil
from collections import Counter
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.answers import Answer, load
from autograder.authoring.chapters import Chapter, Exercise, bound_names, find_chapters, grade_id, nbgrader_id
from autograder.errors import CourseError
from autograder.grading.gradebook import Book
from autograder.trusted.plan import uses

PERFECT, BLANK, BROKEN, CHEAT = "ada", "ben", "cem", "dia"
MIXED = [
    "eli",
    "fay",
    "gus",
    "hana",
    "ivo",
    "joy",
    "kai",
    "lea",
    "mia",
    "noa",
    "ole",
    "pia",
    "rui",
    "sol",
    "tia",
    "uma",
    "vic",
    "wyn",
]
LEFT_OUT = "left out"
LEAST = 8  # of MIXED: with the four above, a dozen
SEED = 1  # of the hidden inputs, so that the scores can be compared with what `check` finds
EXTRAS = ("nbgrader_config.py", "pyproject.toml", "environment.yml", "LICENSE", "LICENSE-TEXT", "_config.yml")


def prepare(root: Path, folder: Path, names: list[str] | None = None) -> list[Chapter]:
    """Make a course folder with the class's submissions; an older one is replaced.

    Returns:
        The chapters of the new folder.

    Raises:
        CourseError: if a chapter has no release.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for extra in EXTRAS:
        if (root / extra).exists():
            shutil.copy(root / extra, folder / extra)
    for chapter in find_chapters(root, names):
        if not chapter.release.is_file():
            raise CourseError(f"{chapter.stem} has no release; run autograder release {chapter.id}")
        shutil.copytree(chapter.path.parent, folder / "source" / chapter.stem, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        shutil.copytree(chapter.release.parent, folder / "release" / chapter.stem, ignore=shutil.ignore_patterns(".*"))
    chapters = find_chapters(folder)
    for chapter in chapters:
        answers, first = load(chapter.answers), chapter == chapters[0]
        for student in sorted({PERFECT, BLANK, BROKEN, CHEAT, *mixed(answers, first)}):
            path = folder / "submitted" / student / chapter.stem / f"{chapter.stem}.ipynb"
            path.parent.mkdir(parents=True)
            notebook = submission(chapter, answers, student, first)
            nbformat.write(notebook, path)
            if student == BROKEN and first:
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return chapters


def submission(chapter: Chapter, answers: list[Answer], student: str, first: bool = True) -> NotebookNode:
    """What a student of the class hands in for a chapter; `first` says whether it is the first one."""
    notebook = nbformat.read(chapter.release, as_version=4)
    if first and student in (BLANK, BROKEN):
        return notebook
    written = {cell.metadata.nbgrader.grade_id: cell.source for cell in chapter.notebook.cells if is_solution(cell)}
    empty = {grade_id(cell): cell.source for cell in notebook.cells if is_solution(cell)}
    others, wanted = mixed(answers, first), needed(chapter)
    for number, exercise in enumerate(chapter.exercises):
        if exercise.by_hand:
            written[nbgrader_id(exercise.id)] = written[nbgrader_id(exercise.id)].split("### BEGIN MARK SCHEME")[0].rstrip()
            continue
        name, answer = f"{nbgrader_id(exercise.id)}-answer", choice(exercise, answers, student, number, others, wanted)
        if answer == LEFT_OUT:
            written[name] = empty[name]
        elif answer is not None:
            written[name] = answer.source(chapter.asked(exercise))
    for cell in notebook.cells:
        if is_solution(cell):
            cell.source = written[grade_id(cell)]
        elif is_grade(cell) and student == CHEAT:
            cell.source = f"{chapter.exercises[0].points:g}"
            cell.metadata.nbgrader.points = 100.0
    return notebook


def mixed(answers: list[Answer], first: bool = True) -> list[str]:
    """The students who mix right and wrong answers in a chapter; the cheat takes one wrong answer more."""
    most = max(Counter(a.exercise for a in answers if not a.right).values(), default=0)
    others = MIXED if first else [BLANK, BROKEN, *MIXED]
    return others[: max(LEAST + len(others) - len(MIXED), most - 1)]


def leans_on(chapter: Chapter) -> dict[str, set[str]]:
    """For each exercise those whose answers its solution reads: a wrong one there costs points here, too."""
    cells = {
        exercise.id: chapter.notebook.cells[exercise.answer].source for exercise in chapter.exercises if not exercise.by_hand
    }
    return {
        id: {other for other in cells if other != id and uses(source).reads & set(bound_names(cells[other]))}
        for id, source in cells.items()
    }


def needed(chapter: Chapter) -> set[str]:
    """The exercises that others lean on."""
    return set().union(*leans_on(chapter).values())


def choice(
    exercise: Exercise, answers: list[Answer], student: str, number: int, mixed: list[str], needed: set[str]
) -> Answer | str | None:
    """The answer a student gives to the exercise number `number` of a chapter; None is the author's solution.

    The cheat gives the wrong answer that the others have no room for, and otherwise the last. `LEFT_OUT` is given by those for whom
    none is left, in exercises that are not `needed` by others.
    """
    mine = [a for a in answers if a.exercise == exercise.id]
    right, wrong = [None, *(a for a in mine if a.right)], [a for a in mine if not a.right]
    if student == PERFECT:
        return None
    if student == CHEAT:
        return wrong[min(len(mixed), len(wrong) - 1)] if wrong else None
    turn = (mixed.index(student) + number) % len(mixed)
    if turn < len(wrong):
        return wrong[turn]
    again = turn - len(wrong)
    return LEFT_OUT if again >= len(right) and exercise.id not in needed else right[again % len(right)]


def grade_by_hand(chapters: list[Chapter], book: Book) -> int:
    """Play the teacher: full points for every written answer that was handed in.

    Returns:
        How many answers were read.
    """
    read = 0
    with Gradebook(book.db_url) as gradebook:
        for chapter in chapters:
            written = {nbgrader_id(exercise.id): exercise.points for exercise in chapter.exercises if exercise.by_hand}
            for sheet in gradebook.assignment_submissions(chapter.stem):
                for grade in [
                    g
                    for n in sheet.notebooks
                    for g in n.grades
                    if g.name in written and g.auto_score is None and g.needs_manual_grade
                ]:
                    grade.manual_score, grade.needs_manual_grade = written[grade.name], False
                    read += 1
        gradebook.db.commit()
    return read
