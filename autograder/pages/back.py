"""The way back to the platforms: scores and feedback pages as Moodle and Canvas take them in."""

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.authoring.chapters import Chapter
from autograder.grading.attempts import Kept
from autograder.grading.roster import Roster
from autograder.grading.submitted import record_of, students
from autograder.platforms import canvas, moodle
from autograder.platforms.tables import Person, Scored, write_rows


@dataclass
class Sent:
    """A file for a platform; `left` are the students whom it cannot tell of, with the reason."""

    path: Path
    count: int = 0
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def zip_feedback(chapter: Chapter, pages: Iterable[Path], folder: Path) -> list[Sent]:
    """A zip of feedback pages for each platform that hand-ins came from: Moodle's "Upload multiple feedback files in a zip",
    Canvas' "Upload Submissions".

    Args:
        pages: of this chapter, in `feedback/<student>/<chapter>/`.
        folder: where to write `<chapter>-moodle.zip` and `<chapter>-canvas.zip`.
    """
    by_folder = {chapter.folder("feedback", student).resolve(): student for student, _ in students(chapter)}
    sent: dict[str, Sent] = {}
    names: dict[str, dict[str, Path]] = {}
    for page in pages:
        student = by_folder.get(page.parent.resolve())
        kept = Kept.of(chapter, student) if student else None
        if kept is None or kept.who is None or not kept.who.platform:
            continue
        platform = kept.who.platform
        one = sent.setdefault(platform, Sent(folder / f"{chapter.stem}-{platform}.zip"))
        if platform == "moodle":
            name = moodle.feedback_name(kept.who, page.name) if kept.who.number else None
            why = "Moodle gives those who are in no group no number"
        else:
            now = next((attempt for attempt in kept.attempts if attempt.number == kept.current), None)
            name = canvas.feedback_name(now.uploaded, page.name) if now else None
            why = "what was handed in is no file of Canvas'"
        if name is None:
            one.left.append(f"{student}: {why}")
        else:
            names.setdefault(platform, {})[name] = page
    for platform, files in names.items():
        sent[platform].path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(sent[platform].path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, page in sorted(files.items()):
                archive.write(page, name)
        sent[platform].count = len(files)
    return list(sent.values())


def complete(people: Iterable[Person], roster: Roster, chapters: Iterable[Chapter]) -> None:
    """Write into people what the class list and the records of their hand-ins know of them."""
    listed = {person.student: person.told for person in roster.people if person.student}
    chapters = list(chapters)
    for person in people:
        told = listed.get(person.id)
        if told is None:
            found = roster.answered(person.id)
            told = found.told if found else {}
        person.first, person.last = person.first or told.get("first", ""), person.last or told.get("last", "")
        person.name, person.email = person.name or told.get("name", ""), person.email or told.get("email", "")
        person.username, person.idnumber = told.get("username", ""), told.get("key", "")
        person.login, person.sis = told.get("login", ""), told.get("sis", "")
        person.lms = person.lms or told.get("canvas", "") or _canvas(person.id, chapters)


def _canvas(student: str, chapters: list[Chapter]) -> str:
    """Canvas's number of a student, from what was handed in."""
    for chapter in chapters:
        if record_of(chapter, student).is_file():
            who = Kept.of(chapter, student).who
            if who is not None and who.platform == "canvas" and who.number.isdecimal():
                return who.number
    return ""


def write_worksheets(works: Iterable[Scored], folder: Path, given: Iterable[Path] = ()) -> list[Sent]:
    """Grading worksheets with the scores, `moodle-<chapter>.csv`, for Moodle's "Upload grading worksheet".

    Args:
        given: worksheets as they were downloaded, which are filled in; for other chapters a new one is made of what Moodle's
            import needs.

    Raises:
        CourseError: if a given file is no worksheet in English.
    """
    scores: dict[str, dict[str, tuple[float, float]]] = {}
    groups: dict[str, dict[str, tuple[float, float]]] = {}
    people: dict[str, list[tuple[str, str, str, float, float]]] = {}
    for work in works:
        if not record_of(work.chapter, work.person.id).is_file():
            continue
        who, stem = Kept.of(work.chapter, work.person.id).who, work.chapter.stem
        if who is None or who.platform != "moodle":
            continue
        key = who.number or who.name
        before = scores.setdefault(stem, {}).get(key, (0.0, 0.0))  # of another notebook of the assignment
        scores[stem][key] = groups.setdefault(stem, {})[who.name] = before[0] + work.total, before[1] + work.points
        rows = people.setdefault(stem, [])
        rows[:] = [row for row in rows if row[0] != who.number]
        if who.number:
            rows.append((who.number, work.person.whole_name or who.name, work.person.email, *scores[stem][key]))
    sent, tables = [], [(path, moodle.read_worksheet(path)) for path in given]
    for stem, known in scores.items():

        def score(number: str, group: str, stem: str = stem) -> tuple[float, float] | None:
            return scores[stem].get(number) or (groups[stem].get(group) if group else None)

        best = None
        for path, rows in tables:
            filled, scaled = moodle.fill(rows, score)
            at = [name.strip().casefold() for name in rows[0]].index("grade")
            count = sum(new[at] != (old[at] if at < len(old) else "") for new, old in zip(filled[1:], rows[1:], strict=True))
            if count and (best is None or count > best[1]):
                best = filled, count, scaled, path
        one = Sent(folder / f"moodle-{stem}.csv")
        if best is not None:
            write_rows(one.path, best[0])
            one.count = best[1]
            if best[2]:
                one.notes.append(f"scores were brought to the maximum grade that {best[3].name} has")
        else:
            write_rows(one.path, moodle.new_worksheet(people.get(stem, [])))
            one.count = len(people.get(stem, []))
            one.left = [f"{name}: Moodle gives those who are in no group no number" for name in known if not name.isdecimal()]
        sent.append(one)
    return sent
