"""What learning platforms export, sorted into `submitted/<student>/<chapter>/`, nbgrader's own layout.

`collect` takes a zip or folder as Moodle and Canvas export it, or as a teacher packs it: each student's files, nested
zips unpacked, the latest version of a notebook under its right name. Beside a student's folder it leaves the collector's record, `<chapter>.collected.json`,
with the time at which the platform received the work, all attempts, and what was odd. No student's file can reach it, so it
is what lateness is counted from. The time is what the platform says in its lists (`read_lists`), never that of a file in its zip, which
is the time of the download.
"""

import contextlib
import json
import re
import shutil
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from pathlib import Path, PurePosixPath

import nbformat

from autograder.authoring.chapters import Chapter, grade_id
from autograder.errors import CourseError
from autograder.grading import attempts
from autograder.grading.attempts import Attempt, Kept
from autograder.grading.merge import FLAGS, read_submission, shown
from autograder.grading.roster import Question, Record, Roster, identify
from autograder.grading.submitted import TIMESTAMP, record_of
from autograder.grading.submitted import students as students_of
from autograder.grading.unpacking import Entry, entries, hidden, raise_if_full, why
from autograder.platforms import canvas, folders, moodle
from autograder.platforms.folders import NOTEBOOK, stem_of
from autograder.platforms.tables import read_rows
from autograder.platforms.who import Owned, Told, Who, folded

TEXTS = "onlinetext.html", "text.html", "link.html"
ARCHIVE = re.compile(r"\.(7z|rar|tar|tgz|gz|bz2|xz|zst)$", re.IGNORECASE)
# x-1 and x (1); Canvas, from the eighth file of one name on, x-<a uuid>
VERSION = re.compile(
    r"(?P<name>.+?)(?:-(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|-(?P<dash>\d+)| ?\((?P<bracket>\d+)\))"
)


@dataclass
class Collected:
    """What `collect` put into `submitted/` for one student and chapter.

    Attributes:
        failed: whether nothing could be put there.
        questions: what the teacher is to be asked about whose work it is.
        before: the names under which it was filed before.
        timeless: whether the platform's time is not known.
    """

    student: str
    chapter: str
    flags: list[str] = field(default_factory=list)
    failed: bool = False
    questions: list[Question] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    timeless: bool = False


@dataclass
class Lists:
    """What the platforms' lists say beside the files: of submissions, by platform; and the class lists among them."""

    told: dict[str, list[Told]] = field(default_factory=lambda: {"moodle": [], "canvas": []})
    rosters: list[Path] = field(default_factory=list)

    def of(self, who: Who, file: int) -> Told | None:
        """What is said of a hand-in: by the number of its file, else of the last attempt of this person or group."""
        known = self.told.get(who.platform, [])
        found = [told for told in known if file and file in told.files]
        found = found or [told for told in known if who.number and told.number == who.number]
        found = found or [told for told in known if told.group and told.group != "-" and folded(told.group) == folded(who.name)]
        return max(found, key=lambda told: (told.attempt, told.received is not None, told.received or told.due), default=None)


def read_lists(paths: Iterable[Path], zone: tzinfo | None = None) -> Lists:
    """The lists that platforms export beside the files: grading worksheets, class lists, the answers of Canvas' API.

    Args:
        zone: that of the times in Moodle's worksheets; this machine's without one.

    Raises:
        CourseError: if one cannot be read.
    """
    lists = Lists()
    for path in paths:
        if path.suffix.lower() == ".json":
            lists.told["canvas"] += canvas.submissions(path)
            continue
        lists.rosters.append(path)
        rows = read_rows(path, "the class list")
        if rows and moodle.is_worksheet(rows[0]):
            lists.told["moodle"] += moodle.worksheet(rows, zone)
    return lists


def collect(
    export: Path,
    chapters: list[Chapter],
    roster: Roster | None = None,
    lists: Lists | None = None,
    answers: dict[tuple[str, ...], str] | None = None,
) -> list[Collected]:
    """Sort an export into `submitted/<student>/<chapter>/`; an older attempt of the same student is kept beside.

    Whatever is wrong with a hand-in becomes a flag on it; the others are taken.

    Args:
        export: a zip or a folder from a learning platform, or one that holds a folder, zip or notebook a student.
        chapters: those that may be in it.
        roster: the class list, which tells people apart who have one name.
        lists: what the platform says of times.
        answers: the teacher's, to earlier questions about whose work something is.

    Raises:
        CourseError: if the export is neither a folder nor a zip that can be opened, or holds no submission, or an answer names nobody.
    """
    if not export.is_dir() and not (export.is_file() and zipfile.is_zipfile(export)):
        raise CourseError(f"{export} is neither a folder nor a zip")
    with tempfile.TemporaryDirectory(prefix="intake-") as scratch:
        works: dict[Who, Work] = {}
        keys: dict[tuple, Who] = {}
        for entry in entries(export, Path(scratch), partial(_owner, chapters=chapters)):
            if (known := _owner(entry.path, chapters)) is not None:
                place = known.place / entry.inside if entry.inside.parts else known.place
                works.setdefault(keys.setdefault(known.who.key, known.who), []).append((entry, place, known))
        if not works:
            raise CourseError(f"{export} holds no submission")
        placed = {who: _placed(files, chapters) for who, files in works.items()}
        records, there = _records(chapters), {student for chapter in chapters for student, _ in students_of(chapter)}
        students = identify(
            {who: set(stems) for who, stems in placed.items()}, roster or Roster(), records, there, _safe, answers
        )
        earlier: dict[tuple, list[Record]] = {}
        for record in records:
            earlier.setdefault((record.chapter, record.who.key), []).append(record)
        done = []
        for who, stems in placed.items():
            student, flags, questions = students[who]
            for stem, files in stems.items():
                old = sorted({record.student for record in earlier.get((stem, who.key), []) if record.student != student})
                asked = [question for question in questions if question.assignment in ("", stem)]
                one = _taken(student, stem, files, chapters, export, who, flags, old, lists or Lists())
                done.append(replace(one, questions=asked))
    return sorted(done, key=lambda one: (one.student, one.chapter))


Work = list[tuple[Entry, PurePosixPath, Owned]]  # files, with their places in what was handed in, and what their names say


def _records(chapters: list[Chapter]) -> list[Record]:
    """What was collected before, of all chapters of the course."""
    places = {record_of(chapter, student).parent: chapter for chapter in chapters for student, _ in students_of(chapter)}
    found = []
    for place, chapter in places.items():
        for path in sorted(place.glob("*.collected.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # of an older version, or damaged
                kept = json.loads(path.read_text(encoding="utf-8"))
                who = Who(*(str(kept["who"][name]) for name in ("platform", "name", "number")))
                record = Record(str(kept["student"]), str(kept["chapter"]), who)
                if record_of(replace(chapter, stem=record.chapter), record.student) == path:
                    found.append(record)
    return found


def _owner(path: PurePosixPath, chapters: list[Chapter]) -> Owned | None:
    """Whose an entry of an export is, and its place in the work; None if it is nobody's.

    Only what the platform or the teacher wrote is looked at: what is in a student's zip cannot say whose it is.
    """
    parts = [part for part in path.parts if part != "."]
    if not parts or hidden(path):
        return None
    return (
        moodle.place_of(parts)
        or canvas.place_of(parts, [chapter.name for chapter in chapters])
        or folders.place_of(parts, {chapter.stem for chapter in chapters})
    )


def _safe(name: str) -> str:
    """A student's name as the name of a folder and in a gradebook."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    name = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name).strip().lstrip(".")
    return name.encode()[:100].decode(errors="ignore").strip() or "unnamed"


def _placed(files: Work, chapters: list[Chapter]) -> dict[str, Work]:
    """The files of one student by the assignment that they are for."""
    placed: dict[str, Work] = {}
    loose: Work = []
    for entry, place, owned in files:
        try:
            chapter = _chapter(entry, place, chapters)
        except Exception as error:  # whatever a notebook may hold
            raise_if_full(error)
            chapter = None
        if chapter is None:
            loose.append((entry, place, owned))
            continue
        if chapter.stem in place.parts[:-1]:
            place = PurePosixPath(*place.parts[place.parts.index(chapter.stem) + 1 :])
        placed.setdefault(chapter.stem, []).append((entry, place, owned))
    if len(placed) > 1:  # the course folder, zipped: chapters that were not begun are no hand-ins
        begun = {stem: mine for stem, mine in placed.items() if not _untouched(mine, stem, chapters)}
        placed = begun or placed
    if loose:  # data beside a notebook, what was refused
        placed.setdefault(next(iter(placed), chapters[0].stem), []).extend(loose)
    return placed


def _untouched(files: Work, stem: str, chapters: list[Chapter]) -> bool:
    """Whether the notebooks are as they were released."""
    released = {chapter.release for chapter in chapters if chapter.stem == stem and chapter.release.is_file()}
    given = [_sources(path) for path in released]
    mine = [_sources(entry.data) for entry, place, _ in files if entry.data and NOTEBOOK.fullmatch(place.name)]
    return not any(entry.problem for entry, _, _ in files) and all(sources is not None and sources in given for sources in mine)


def _sources(path: Path) -> list[str] | None:
    notebook = read_submission(path)[0]
    return None if notebook is None else [cell.source.strip() for cell in notebook.cells]


def _taken(
    student: str,
    stem: str,
    files: Work,
    chapters: list[Chapter],
    export: Path,
    who: Who,
    flags: list[str],
    old: list[str],
    lists: Lists,
) -> Collected:
    """Write the work of one student for one assignment; where they were called otherwise before, it is brought along."""
    names = tuple(chapter.name for chapter in chapters if chapter.stem == stem)
    chapter = next(chapter for chapter in chapters if chapter.stem == stem)
    try:
        for name in old:
            attempts.move(chapter, name, student, who)
        flags, timeless = _write(chapter, names, student, files, export, who, flags, lists)
        return Collected(student, stem, flags, before=old, timeless=timeless)
    except Exception as error:  # one hand-in is never another's problem
        raise_if_full(error)
        return Collected(student, stem, [*flags, f"it could not be put into submitted/ ({why(error)})"], failed=True)


def refile(chapters: list[Chapter], roster: Roster, answers: dict[tuple[str, ...], str]) -> list[tuple[str, str, str]]:
    """File what was collected before under those whom the teacher's answers and the class list name now.

    Returns:
        (assignment, earlier name, student) of what was filed anew.

    Raises:
        CourseError: if an answer names nobody of the class list.
    """
    records, stems = _records(chapters), {chapter.stem: chapter for chapter in reversed(chapters)}
    works: dict[Who, set[str]] = {}
    for record in records:
        works.setdefault(record.who, set()).add(record.chapter)
    there = {student for chapter in chapters for student, _ in students_of(chapter)}
    found, done = identify(works, roster, records, there, _safe, answers), []
    for record in records:
        student = found[record.who][0]
        if student != record.student and record.chapter in stems:
            attempts.move(stems[record.chapter], record.student, student, record.who)
            done.append((record.chapter, record.student, student))
    return done


def _chapter(entry: Entry, place: PurePosixPath, chapters: list[Chapter]) -> Chapter | None:
    """The chapter that a file belongs to; None if only its neighbours can tell."""
    for part in place.parts[:-1]:
        if found := next((chapter for chapter in chapters if part == chapter.stem), None):
            return found
    if not NOTEBOOK.fullmatch(place.name):
        return None
    if found := next((chapter for chapter in chapters if _versioned(place.name, (chapter.name,))), None):
        return found
    if len({chapter.stem for chapter in chapters}) == 1 or entry.data is None:
        return chapters[0]
    notebook = read_submission(entry.data)[0]
    fits = {chapter: _known_cells(chapter, notebook) for chapter in chapters}
    best = max(chapters, key=fits.get)
    return best if fits[best] else None


def _known_cells(chapter: Chapter, notebook: nbformat.NotebookNode | None) -> int:
    names = {grade_id(cell) for cell in chapter.notebook.cells if grade_id(cell)}
    return sum(grade_id(cell) in names for cell in notebook.cells) if notebook else 0


def _versioned(name: str, wanted: tuple[str, ...]) -> tuple[str, int] | None:
    """`x-1.ipynb` and `x (1).ipynb` are versions 1 of a wanted notebook x; None if it is no wanted one."""
    stem = stem_of(name)
    if stem in wanted:
        return stem, 0
    match = VERSION.fullmatch(stem)
    if match and match["name"] in wanted:
        return match["name"], int((match["dash"] or match["bracket"] or "8")[:9])
    return None


def _write(
    chapter: Chapter, names: tuple[str, ...], student: str, files: Work, export: Path, who: Who, before: list[str], lists: Lists
) -> tuple[list[str], bool]:
    """Write one submission and its record; the sentences on what was odd, those from before first, and whether it has no time."""
    flags = [entry.problem for entry, _, _ in files if entry.problem]
    files = [(entry, place, owned) for entry, place, owned in files if entry.data is not None]
    flags += [
        f"{shown(place.name)}: a text entered at the platform is not graded" for _, place, _ in files if place.name in TEXTS
    ]
    flags += [
        f"{shown(place.name)} is an archive that is not opened; only zips are"
        for _, place, _ in files
        if ARCHIVE.search(place.name)
    ]
    depth = min((len(place.parts) - 1 for _, place, _ in files), default=0)
    common = next((i for i in range(depth) if len({place.parts[i] for _, place, _ in files}) > 1), depth)
    latest: dict[PurePosixPath, tuple[tuple, Entry, PurePosixPath, Owned]] = {}
    for entry, whole, owned in files:
        place = PurePosixPath(*whole.parts[common:])  # without the folder that was zipped
        if place.name == TIMESTAMP:
            flags.append(f"{TIMESTAMP} in the submission is not believed")
            continue
        versioned = _versioned(place.name, names) if NOTEBOOK.fullmatch(place.name) else None
        target = place.with_name(f"{versioned[0]}.ipynb") if versioned else place
        rank = (owned.file, versioned[1] if versioned else 0, entry.received)
        if target in latest:
            older = min(latest[target], (rank, entry, place, owned), key=lambda one: one[0])
            flags.append(f"an older version, {shown(older[2].name)}, was left out")
        if target not in latest or rank >= latest[target][0]:
            latest[target] = (rank, entry, place, owned)
    folder = chapter.folder("submitted", student)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".intake-", dir=folder.parent))
    try:
        for target, (_, entry, _, _) in latest.items():
            try:
                (scratch / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(entry.data, scratch / target)
            except (OSError, ValueError, RecursionError) as error:  # a name too long, two names that clash
                raise_if_full(error)
                flags.append(f"{shown(target.name)} was left out ({why(error)})")
        flags = flags[:FLAGS] + ([f"{len(flags) - FLAGS} more of this kind"] if len(flags) > FLAGS else [])
        scratch.chmod(0o755)
        attempt = _attempt(latest, who, lists)
        attempt.export, attempt.flags = shown(export.name), [*before, *flags]
        attempt.digest = attempts.digest(scratch)
        kept = Kept.of(chapter, student)
        kept.who = who
        added = kept.add(scratch, attempt)
        counts = kept.last()
        kept.settle(counts)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if counts is not added:
        what = (
            "an older attempt than the one that counts" if added.work else "a text without files is not the attempt that counts"
        )
        flags.append(f"{what}; it is kept")
    return [*before, *flags], added.received is None and bool(who.platform)


def _attempt(latest: dict, who: Who, lists: Lists) -> Attempt:
    """What the platform says of an attempt: its lists, and the names of its files."""
    owned = [one for _, _, _, one in latest.values()]
    main = max((one for one in owned if NOTEBOOK.fullmatch(one.place.name)), key=lambda one: one.file, default=None)
    file = max((one.file for one in owned), default=0)
    told = lists.of(who, file) or Told(who.number)
    when = max((entry.received for _, entry, _, _ in latest.values()), default=None) if not who.platform else told.received
    late = told.late if told.late is not None else next((one.late for one in owned if one.late is not None), None)
    return Attempt(
        0,
        "",
        attempts.text(when),
        late,
        attempts.text(told.due),
        told.extended,
        main.file if main else file,
        work=any(place.name not in TEXTS for place in latest),
        uploaded=next((e.path.name for _, e, _, one in latest.values() if one is main), ""),
    )
