"""`extensions.csv` of the course folder: who has more time for an assignment, and until when.

Its columns are `student`, `chapter` (or `assignment`) and `until`, such as 2026-12-04 12:00. They go into nbgrader's gradebook
when the class is graded, and count before what a platform says.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from autograder.authoring.chapters import Chapter
from autograder.errors import CourseError
from autograder.platforms.tables import bare, read_rows

EXTENSIONS = "extensions.csv"


def read_extensions(root: Path, chapters: Iterable[Chapter], zone: tzinfo | None = None) -> dict[tuple[str, str], datetime]:
    """The extensions in UTC without a zone, as the gradebook has times, by (assignment, student).

    Args:
        zone: that of times without one; this machine's without it.

    Raises:
        CourseError: if the file cannot be read, lacks a column, or has a time that is none; it says in which line.
    """
    path = root / EXTENSIONS
    if not path.is_file():
        return {}
    rows = read_rows(path, "the list of extensions")
    header = [name.strip().casefold() for name in rows[0]] if rows else []
    header = ["chapter" if name == "assignment" else name for name in header]
    if missing := {"student", "chapter", "until"} - set(header):
        raise CourseError(
            f"{path} lacks the column {' and '.join(sorted(missing))}; its first line has to be student,chapter,until"
        )
    stems = {name: chapter.stem for chapter in chapters for name in (chapter.id, chapter.stem)}
    found = {}
    for number, row in enumerate(rows[1:], 2):
        cell = {name: bare(row[i].strip()) if i < len(row) else "" for i, name in enumerate(header)}
        if not any(cell.values()):
            continue
        try:
            when = datetime.fromisoformat(re.sub(r"^(\d{4}-\d\d-\d\d)$", r"\1 23:59:59", cell["until"]))
        except ValueError:
            raise CourseError(f"{path}, line {number}: {cell['until'][:40]!r} is no time; write it as 2026-12-04 12:00") from None
        when = when if when.tzinfo else when.replace(tzinfo=zone) if zone else when.astimezone()
        if cell["chapter"] in stems:  # others are not graded now
            found[stems[cell["chapter"]], cell["student"]] = when.astimezone(UTC).replace(tzinfo=None)
    return found
