"""Tables of scores that spreadsheets and platforms read."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from autograder.authoring.chapters import Chapter

FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass
class Person:
    """A student as the gradebook knows them; only `id` is always there."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms: str = ""


class Scored(Protocol):
    """What one student got for one chapter."""

    person: Person
    chapter: Chapter
    total: float
    points: float


def safe(text: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def number(value: float | None) -> str:
    """A score as text; empty where there is none yet."""
    return "" if value is None else f"{value:g}"


def write_rows(path: Path, rows: Iterable[Iterable[str]]) -> None:
    """A CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def gradebook(works: Iterable[Scored]) -> tuple[list[Person], list[Chapter], dict[tuple[str, Chapter], float]]:
    """The people by id, the chapters in order, and the total of each by (id, chapter)."""
    works = list(works)
    people = {work.person.id: work.person for work in works}
    totals = {(work.person.id, work.chapter): work.total for work in works}
    return [people[id] for id in sorted(people)], list(dict.fromkeys(work.chapter for work in works)), totals


def heading(chapter: Chapter) -> str:
    """A column's name."""
    return safe(f"{chapter.id} {chapter.title}")
