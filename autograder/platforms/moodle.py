"""Moodle: the files of an assignment's "Download all submissions", and the grade import."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from autograder.platforms.tables import Scored, gradebook, heading, number, safe, write_rows
from autograder.platforms.who import Who

# Ada Lovelace_12345 (the number is another one in each assignment), Participant_12345 (blind marking), Team A_12 (a group,
# the number is its own) or Default group (all who are in none)
ENTRY = re.compile(r"(?P<student>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL)


def place_of(parts: list[str]) -> tuple[Who, PurePosixPath] | None:
    """Whose an entry of an export is, and its place in the work; None if it is not named as Moodle does.

    Args:
        parts: the names along its path.
    """
    for i, part in enumerate(parts):
        if match := ENTRY.fullmatch(part):
            rest = [match["file"]] if match["file"] else []
            place = PurePosixPath(*rest, *parts[i + 1 :])
            return Who("moodle", match["student"], match["number"] or ""), place if place.parts else PurePosixPath(part)
    return None


def write(works: Iterable[Scored], path: Path) -> None:
    """A file for Moodle's grade import (Grades, Import, CSV file): map Username, or Email address, to the user."""
    people, chapters, totals = gradebook(works)
    header = ["Username", "First name", "Last name", "Email address", *map(heading, chapters)]
    rows = [
        [
            *map(safe, (person.id, person.first, person.last, person.email)),
            *(number(totals.get((person.id, chapter))) for chapter in chapters),
        ]
        for person in people
    ]
    write_rows(path, [header, *rows])
