"""Canvas: the files of an assignment's "Download Submissions", the submissions of its API, and what it imports."""

import json
import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from autograder.errors import CourseError
from autograder.platforms.tables import Scored, gradebook, heading, number, safe, write_rows
from autograder.platforms.who import Owned, Told, Who

# lovelaceada or a group's name, LATE or not, the person's number, the file's; or a text or a link
REST = r"(?P<number>{})_(?:(?P<id>\d+)_(?P<file>.+)|(?P<entry>text\.html|link\.html))"
NAMED = re.compile("_" + REST.format(r"\d+"), re.DOTALL | re.IGNORECASE)
NAMELESS = re.compile(
    r"(?P<late>LATE_)?(?:anon_)?" + REST.format(r"(?<=anon_)[A-Za-z0-9]{5}|(?<!anon_)\d+"), re.DOTALL | re.IGNORECASE
)
LARGEST = 200_000_000  # bytes of an API export


def place_of(parts: list[str], stems: Collection[str] = ()) -> Owned | None:
    """Whose an entry of an export is, and its place in the work; None if it is not named as Canvas does.

    Args:
        parts: the names along its path: a file, or one in the folder `submissions`.
        stems: names of notebooks. A group's name may end in a number, as the group team_7 in team_7_77_900_ch04.ipynb: of several
            ways to read a name that one is taken whose file is called like a notebook.
    """
    if not (len(parts) == 1 or (len(parts) == 2 and parts[0].lower().startswith("submi"))):
        return None
    name = parts[-1]
    if match := NAMELESS.fullmatch(name):
        return _owned(match, "anon", match["late"] is not None)
    ways = []
    for at in (match.start() for match in re.finditer(r"_(?=\d)", name)):
        if at and (match := NAMED.fullmatch(name, at)):
            late = re.search(r"(?<=.)_LATE$", name[:at], re.IGNORECASE)
            ways.append(_owned(match, name[: late.start() if late else at], late is not None))
    wanted = [way for way in ways if stems and way.place.name.startswith(tuple(stems))]
    return next(iter(wanted or ways), None)


def _owned(match: re.Match, name: str, late: bool) -> Owned:
    place = PurePosixPath((match["file"] or match["entry"]).replace("/", "_"))
    return Owned(Who("canvas", name, match["number"]), place, late, int((match["id"] or "0")[:18]))


# ---------------------------------------------------------------- the submissions of its API


def submissions(path: Path) -> list[Told]:
    """What the API's list of an assignment's submissions says, each attempt that it tells of by itself.

    The list is what `GET /api/v1/courses/:course/assignments/:assignment/submissions?include[]=submission_history` answers.

    Raises:
        CourseError: if the file is no such list.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise CourseError(f"{path} is larger than {LARGEST // 1_000_000} MB")
        given = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise CourseError(f"{path} is no JSON ({str(error)[:100]}); save the API's answer as it is") from None
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise CourseError(f"{path} is no list of submissions, as Canvas' API gives it")
    found = []
    for one in given:
        number = one.get("user_id") or one.get("anonymous_id")
        history = one.get("submission_history")
        versions = [v for v in history if isinstance(v, dict)] if isinstance(history, list) else []
        for version in versions or [one]:
            sent = _time(version.get("submitted_at"), path)
            if number is not None and sent is not None:
                files = version.get("attachments")
                found.append(
                    Told(
                        str(number),
                        sent,
                        version["late"] if isinstance(version.get("late"), bool) else None,
                        _time(version.get("cached_due_date", one.get("cached_due_date")), path),
                        False,
                        version["attempt"] if isinstance(version.get("attempt"), int) else 0,
                        frozenset(
                            file["id"]
                            for file in (files if isinstance(files, list) else [])
                            if isinstance(file, dict) and isinstance(file.get("id"), int)
                        ),
                    )
                )
    if given and not any("user_id" in one or "anonymous_id" in one for one in given):
        raise CourseError(f"{path} is no list of submissions: none has a user_id")
    return found


def _time(text: object, path: Path) -> datetime | None:
    if not isinstance(text, str) or not text:
        return None
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise CourseError(f"{path}: {text[:40]!r} is no time, as Canvas' API gives it") from None


# ---------------------------------------------------------------- the way back


def write(works: Iterable[Scored], path: Path) -> list:
    """A file for the import of Canvas's gradebook; the second row has the points possible.

    Canvas finds a person by its own number, the column ID, then by SIS User ID or SIS Login ID.

    Returns:
        Those whose number is not known, so that Canvas asks who they are.
    """
    works = list(works)
    people, chapters, totals = gradebook(works)
    most = {work.chapter: work.points for work in works}
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(heading, chapters)]
    possible = ["    Points Possible", "", "", "", "", *(number(most[chapter]) for chapter in chapters)]
    rows = [
        [
            safe(", ".join(part for part in (person.last, person.first) if part) or person.name or person.id),
            *map(safe, (person.lms, person.sis, person.login)),
            "",
            *(number(totals.get((person.id, chapter))) for chapter in chapters),
        ]
        for person in people
    ]
    write_rows(path, [header, possible, *rows])
    return [person for person in people if not (person.lms or person.sis or person.login)]


def feedback_name(uploaded: str, page: str) -> str | None:
    """The name of a page in a zip for Canvas' "Upload Submissions": that of the file that was downloaded, with another end.

    Canvas parts it at underscores and takes the first two parts that are numbers for the person and the file.

    Args:
        uploaded: the name in the export; None comes back if Canvas could not read it.
    """
    owned = place_of([uploaded])
    if owned is None or not owned.file:
        return None
    at = uploaded.find(f"_{owned.file}_")
    return f"{uploaded[:at]}_{owned.file}_{page}"
