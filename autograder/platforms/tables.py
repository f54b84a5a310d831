"""Tables that spreadsheets and platforms read and write."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from autograder.authoring.chapters import Chapter
from autograder.errors import CourseError

FORMULA = ("=", "+", "-", "@", "\t", "\r")
LARGEST = 20_000_000  # bytes of a table that is read


@dataclass
class Person:
    """A student as the gradebook and the class list know them; only `id` is always there.

    `lms` is Canvas's number of the user, `login` and `sis` are as Canvas calls them, `username` and `idnumber` as Moodle does.
    """

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms: str = ""
    name: str = ""
    username: str = ""
    idnumber: str = ""
    login: str = ""
    sis: str = ""

    @property
    def whole_name(self) -> str:
        return self.name or " ".join(part for part in (self.first, self.last) if part)


class Scored(Protocol):
    """What one student got for one chapter."""

    person: Person
    chapter: Chapter
    total: float
    points: float


def safe(text: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def bare(text: str) -> str:
    """What `safe` was given."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA) else text


def read_rows(path: Path, what: str = "the table") -> list[list[str]]:
    """The rows of a CSV file as spreadsheets and platforms write it: commas, semicolons or tabs, UTF-8, UTF-16 or Windows' Latin.

    Args:
        what: how an error calls the file.

    Raises:
        CourseError: if the file cannot be read, is too large, or is no CSV.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise CourseError(f"{what} {path} cannot be read ({error.strerror})") from None
    if len(raw) > LARGEST:
        raise CourseError(f"{what} {path} is larger than {LARGEST // 1_000_000} MB")
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    text = text.replace("\0", "")
    if text[:4].lower() == "sep=":  # what Excel is told its columns are parted by
        text = text.partition("\n")[2]
    first = text.partition("\n")[0]
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count)))
    except csv.Error as error:
        raise CourseError(f"{what} {path} cannot be read ({error}); save it as CSV again") from None


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
