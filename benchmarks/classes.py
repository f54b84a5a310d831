"""Classes of honest students, made from a chapter's own answers, as many as one likes."""

import random
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_solution

from autograder.authoring.answers import Answer, load
from autograder.authoring.chapters import Chapter, find_chapters, grade_id, nbgrader_id
from autograder.authoring.release import Release
from autograder.grading.gradebook import Book

ROOT = Path(__file__).resolve().parents[1]

# nbgrader as it comes, but for what is released, and with a limit that no cell reaches.
PLAIN = """
c = get_config()
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "answers.py"]
c.Execute.timeout = 120
"""


def honest(chapter: Chapter, answers: list[Answer], number: int) -> NotebookNode:
    """The submission of student `number`, who gives some answer to every exercise, or leaves it as it is.

    Students 0, 1, 2, … give each exercise's answers in turn, from a random place on, so that many students
    give all of them, in ever other company.
    """
    notebook = nbformat.read(chapter.release, as_version=4)
    source = {grade_id(cell): cell.source for cell in chapter.notebook.cells if is_solution(cell)}
    for exercise in chapter.exercises:
        name = nbgrader_id(exercise.id) if exercise.by_hand else f"{nbgrader_id(exercise.id)}-answer"
        solution = source[name].split("### BEGIN MARK SCHEME")[0].rstrip()
        given = [] if exercise.by_hand else [a.source(chapter.asked(exercise)) for a in answers if a.exercise == exercise.id]
        choices = [solution, None, *given]
        random.Random(exercise.id).shuffle(choices)
        turn, place = divmod(number, len(choices))
        choice = choices[(place + random.Random(f"{exercise.id} {turn}").randrange(len(choices))) % len(choices)]
        cell = next(cell for cell in notebook.cells if grade_id(cell) == name)
        cell.source = cell.source if choice is None else choice
    return notebook


def make_class(folder: Path, wanted: str, size: int) -> Chapter:
    """A course folder with one chapter, its release, its gradebook and `size` submissions."""
    source = find_chapters(ROOT, [wanted])[0]
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    for step in ("source", "release"):
        shutil.copytree(ROOT / step / source.stem, folder / step / source.stem, ignore=shutil.ignore_patterns("__pycache__"))
    chapter = find_chapters(folder)[0]
    answers = load(chapter.answers)
    for number in range(size):
        target = chapter.folder("submitted", f"student{number:04}") / f"{chapter.stem}.ipynb"
        target.parent.mkdir(parents=True)
        nbformat.write(honest(chapter, answers, number), target)
    with Book(folder) as book:
        book.register(chapter, Release.of(chapter))
    return chapter
