"""Moodle: the files of an assignment's "Download all submissions", its grading worksheet, and what it imports."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath

from autograder.errors import CourseError
from autograder.platforms.tables import Person, Scored, gradebook, heading, number, read_rows, safe, write_rows
from autograder.platforms.who import Owned, Told, Who

# Ada Lovelace_12345 (the number is another one in each assignment), Participant_12345 (blind marking), Team A_12 (a group,
# the number is its own) or Default group (all who are in none)
ENTRY = re.compile(r"(?P<student>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL)
BLIND = {"participant"}  # what Moodle calls everybody where names are hidden
WORKSHEET = "identifier", "grade", "last modified (grade)"  # what its import asks a worksheet to have
SUBMITTED, STATUS = "last modified (submission)", "status"
LATE = re.compile(r"(?:^| - )[^-]*\d[^-]* late(?: -|$)")
EXTENSION = re.compile(r"Extension granted until:? *(?P<until>.+?)(?: -|$)")
TIMES = "%d %B %Y %I:%M %p", "%d %B %Y %H:%M", "%d %b %Y %I:%M %p", "%d %b %Y %H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"


def place_of(parts: list[str]) -> Owned | None:
    """Whose an entry of an export is, and its place in the work; None if it is not named as Moodle does.

    Args:
        parts: the names along its path.
    """
    for i, part in enumerate(parts):
        if match := ENTRY.fullmatch(part):
            rest = [match["file"]] if match["file"] else []
            place = PurePosixPath(*rest, *parts[i + 1 :])
            return Owned(Who("moodle", match["student"], match["number"] or ""), place if place.parts else PurePosixPath(part))
    return None


# ---------------------------------------------------------------- the grading worksheet


def is_worksheet(header: list[str]) -> bool:
    """Whether a table's first row is that of a grading worksheet, in English."""
    names = [name.strip().casefold() for name in header]
    return WORKSHEET[0] in names and (WORKSHEET[2] in names or SUBMITTED in names)


def worksheet(rows: list[list[str]], zone: tzinfo | None = None) -> list[Told]:
    """What a grading worksheet says of times.

    Args:
        rows: of the worksheet.
        zone: the zone of its times, that of the teacher's profile in Moodle; this machine's without one.

    Raises:
        CourseError: if it has a time that is not as Moodle writes it in English.
    """
    columns = {name.strip().casefold(): i for i, name in reversed(list(enumerate(rows[0])))}

    def cell(row: list[str], name: str) -> str:
        i = columns.get(name, len(row))
        return row[i].strip() if i < len(row) else ""

    found = []
    for row in rows[1:]:
        if match := re.search(r"(\d+)\s*$", cell(row, WORKSHEET[0])):
            status, sent = cell(row, STATUS), cell(row, SUBMITTED)
            extended = EXTENSION.search(status)
            found.append(
                Told(
                    match[1],
                    None if sent in ("", "-") else time_of(sent, zone),
                    True if LATE.search(status) else False if STATUS in columns and status.startswith("Submitted") else None,
                    time_of(extended["until"], zone) if extended else None,
                    extended is not None,
                    group=cell(row, "group"),
                )
            )
    return found


def time_of(text: str, zone: tzinfo | None = None) -> datetime:
    """A time as Moodle writes it in English, such as "Monday, 30 November 2026, 3:36 AM", in UTC.

    Raises:
        CourseError: if it is written otherwise.
    """
    plain = " ".join(text.replace("\u202f", " ").replace(",", " ").split())
    plain = re.sub(r"^[A-Za-z]+ (?=\d)", "", plain)
    for form in TIMES:
        try:
            when = datetime.strptime(plain.upper() if "%p" in form else plain, form)
        except ValueError:
            continue
        return (when.replace(tzinfo=zone) if zone else when.astimezone()).astimezone(UTC)
    raise CourseError(
        f"the time {text[:80]!r} of the grading worksheet is not as Moodle writes it in English; "
        "set Moodle's language to English and download the worksheet again"
    )


def fill(rows: list[list[str]], score: Callable[[str, str], tuple[float, float] | None]) -> tuple[list[list[str]], bool]:
    """A grading worksheet with scores in it, for Moodle's "Upload grading worksheet".

    Args:
        rows: the worksheet as it was downloaded; all but the grade stays.
        score: the score and the points possible by number and group; None where there is none yet.

    Returns:
        The rows, and whether scores were brought to Moodle's maximum, which is another one.
    """
    names = [name.strip().casefold() for name in rows[0]]
    who, grade = names.index(WORKSHEET[0]), names.index(WORKSHEET[1])
    most = names.index("maximum grade") if "maximum grade" in names else None
    group = names.index("group") if "group" in names else None
    made, scaled = [rows[0]], False
    for row in rows[1:]:
        row = [*row, *[""] * (len(names) - len(row))]
        match = re.search(r"(\d+)\s*$", row[who])
        known = score(match[1], row[group].strip() if group is not None else "") if match else None
        if known is not None:
            earned, points = known
            largest = _float(row[most]) if most is not None else None
            if largest and points and largest != points:
                earned, scaled = min(earned, points) * largest / points, True
            row[grade] = number(round(earned, 5))
        made.append([cell if cell == "-" else safe(cell) for cell in row])  # "-" is Moodle's "no time"
    return made, scaled


def _float(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def new_worksheet(rows: Iterable[tuple[str, str, str, float, float]]) -> list[list[str]]:
    """A worksheet with the columns that Moodle's import asks for: of (number, name, email, score, points possible)."""
    header = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade"]
    header += ["Grade can be changed", "Last modified (submission)", "Last modified (grade)"]
    return [header] + [
        [f"Participant {id}", safe(name), safe(email), "", number(score), number(points), "Yes", "-", "-"]
        for id, name, email, score, points in rows
    ]


def read_worksheet(path: Path) -> list[list[str]]:
    """The rows of a grading worksheet.

    Raises:
        CourseError: if it is none, or not in English.
    """
    rows = read_rows(path, "the grading worksheet")
    if not rows or set(WORKSHEET) - {name.strip().casefold() for name in rows[0]}:
        raise CourseError(f"{path} is no grading worksheet in English: its first line has to have {', '.join(WORKSHEET)}")
    return rows


# ---------------------------------------------------------------- the way back


def write(works: Iterable[Scored], path: Path) -> list[Person]:
    """A file for Moodle's grade import (Grades, Import, CSV file): map ID number, Username or Email address to the user.

    Who has none of the three cannot be mapped and is left out, since Moodle refuses the whole file for one such row.

    Returns:
        Those who are left out.
    """
    people, chapters, totals = gradebook(works)
    header = ["ID number", "Username", "First name", "Last name", "Email address", *map(heading, chapters)]
    mapped = [person for person in people if person.idnumber or person.username or person.email]
    rows = [
        [
            *map(safe, (person.idnumber, person.username, *_names(person), person.email)),
            *(number(totals.get((person.id, chapter))) for chapter in chapters),
        ]
        for person in mapped
    ]
    write_rows(path, [header, *rows])
    return [person for person in people if person not in mapped]


def _names(person: Person) -> tuple[str, str]:
    if person.first or person.last or not person.name:
        return person.first, person.last
    first, _, last = person.name.rpartition(" ")
    return first, last


def feedback_name(who: Who, page: str) -> str:
    """The name of a page in a zip for Moodle's "Upload multiple feedback files in a zip".

    Moodle parts the folder's name at underscores and takes the second part for the number.
    """
    name = re.sub(r'[\\/:*?"<>|_\x00-\x1f]', " ", who.name).strip(" .") or "Participant"
    return f"{name}_{who.number}_assignfeedback_file_/{page}"
