"""Scores for a teacher: CSV, and what a class found hard."""

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder.chapters import Chapter, exercise_id
from autograder.feedback import READ, said
from autograder.grade import Book

HEADER = ("student", "chapter", "exercise", "score", "max")


def rows(chapters: list[Chapter], book: Book) -> list[tuple]:
    """One row a student and exercise, in the order of `HEADER`."""
    return [
        (student, chapter.stem, exercise, score, most)
        for chapter in chapters
        for student, exercise, score, most in book.scores(chapter)
    ]


def write_csv(table: list[tuple], path: Path) -> None:
    """Write `rows` as CSV; whole points have no decimals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows((*row[:3], f"{row[3]:g}", f"{row[4]:g}") for row in table)


@dataclass
class Item:
    """What a class did with one exercise."""

    exercise: str
    students: int
    mean: float  # share of the points, 0 to 1
    misconceptions: list[tuple[str, int]]


def items(chapters: list[Chapter], book: Book) -> list[Item]:
    """Each exercise's mean share of points and the misconceptions that were met, most frequent first."""
    shares: dict[str, list[float]] = {}
    for _, _, exercise, score, most in rows(chapters, book):
        shares.setdefault(exercise, []).append(score / most)
    met: dict[str, Counter] = {exercise: Counter() for exercise in shares}
    for chapter in chapters:
        for path in sorted((chapter.root / "autograded").glob(f"*/{chapter.stem}/{chapter.stem}.ipynb")):
            for cell in nbformat.read(path, as_version=4).cells:
                given = cell.metadata.get("nbgrader", {})
                if given.get("grade") and (named := said(cell).named):
                    met.setdefault(exercise_id(given["grade_id"]), Counter())[READ.sub("", named).strip()] += 1
    return [Item(exercise, len(s), sum(s) / len(s), met[exercise].most_common()) for exercise, s in shares.items()]
