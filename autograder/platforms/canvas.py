"""Canvas: the files of an assignment's "Download Submissions", and the gradebook's import."""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from autograder.platforms.tables import Scored, gradebook, heading, number, safe, write_rows
from autograder.platforms.who import Who

# lovelaceada or a group's name, LATE or not, the person's number, the file's
ENTRY = re.compile(
    r"(?P<student>.+?)(?:_LATE)?_(?P<number>\d+)_(?:\d+_(?P<file>.+)|(?P<entry>text\.html|link\.html))", re.DOTALL | re.IGNORECASE
)
ANONYMOUS = re.compile(
    r"(?:LATE_)?anon_(?P<number>[A-Za-z0-9]{5})_(?:\d+_(?P<file>.+)|(?P<entry>text\.html|link\.html))", re.DOTALL
)


def place_of(parts: list[str]) -> tuple[Who, PurePosixPath] | None:
    """Whose an entry of an export is, and its place in the work; None if it is not named as Canvas does.

    Args:
        parts: the names along its path: a file, or one in the folder `submissions`.
    """
    if len(parts) == 1 or (len(parts) == 2 and parts[0].lower().startswith("submi")):
        if match := ENTRY.fullmatch(parts[-1]):
            return Who("canvas", match["student"], match["number"]), PurePosixPath(match["file"] or match["entry"])
        if match := ANONYMOUS.fullmatch(parts[-1]):
            return Who("canvas", "anon", match["number"]), PurePosixPath(match["file"] or match["entry"])
    return None


def write(works: Iterable[Scored], path: Path) -> None:
    """A file for the import of Canvas's gradebook; the second row has the points possible."""
    works = list(works)
    people, chapters, totals = gradebook(works)
    most = {work.chapter: work.points for work in works}
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(heading, chapters)]
    possible = ["    Points Possible", "", "", "", "", *(number(most[chapter]) for chapter in chapters)]
    rows = [
        [
            safe(", ".join(part for part in (person.last, person.first) if part) or person.id),
            *map(safe, (person.lms, "", person.id)),
            "",
            *(number(totals.get((person.id, chapter))) for chapter in chapters),
        ]
        for person in people
    ]
    write_rows(path, [header, possible, *rows])
