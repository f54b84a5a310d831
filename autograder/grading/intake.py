"""What learning platforms export, sorted into `submitted/<student>/<chapter>/`, nbgrader's own layout.

`collect` takes a zip or folder as Moodle and Canvas export it, or as a teacher packs it: each student's files, nested
zips unpacked, the latest version of a notebook under its right name. Beside a student's folder it leaves the collector's record, `<chapter>.collected.json`,
with the time at which the platform received the work and what was odd. No student's file can reach it, so it
is what lateness is counted from.
"""

import contextlib
import json
import os
import re
import shutil
import tempfile
import unicodedata
import zipfile
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

import nbformat

from autograder.authoring.chapters import Chapter, grade_id
from autograder.errors import CourseError
from autograder.grading.merge import FLAGS, read_submission, shown
from autograder.grading.roster import Record, Roster, identify
from autograder.grading.submitted import TIMESTAMP, record_of
from autograder.grading.submitted import students as students_of
from autograder.grading.unpacking import Entry, entries, hidden, raise_if_full, why
from autograder.platforms import canvas, folders, moodle
from autograder.platforms.folders import NOTEBOOK, stem_of
from autograder.platforms.who import Who

TEXTS = "onlinetext.html", "text.html", "link.html"
ARCHIVE = re.compile(r"\.(7z|rar|tar|tgz|gz|bz2|xz|zst)$", re.IGNORECASE)
VERSION = re.compile(r"(?P<name>.+?)(?:-(?P<dash>\d+)| ?\((?P<bracket>\d+)\))")


@dataclass
class Collected:
    """What `collect` put into `submitted/` for one student and chapter; `failed` if nothing could be put there."""

    student: str
    chapter: str
    flags: list[str] = field(default_factory=list)
    failed: bool = False


def collect(export: Path, chapters: list[Chapter], roster: Roster | None = None) -> list[Collected]:
    """Sort an export into `submitted/<student>/<chapter>/`; an older submission of the same student there is replaced.

    Whatever is wrong with a hand-in becomes a flag on it; the others are taken.

    Args:
        export: a zip or a folder from a learning platform, or one that holds a folder, zip or notebook a student.
        chapters: those that may be in it.
        roster: the class list, which tells people apart who have one name.

    Raises:
        CourseError: if the export is neither a folder nor a zip that can be opened, or holds no submission.
    """
    if not export.is_dir() and not (export.is_file() and zipfile.is_zipfile(export)):
        raise CourseError(f"{export} is neither a folder nor a zip")
    with tempfile.TemporaryDirectory(prefix="intake-") as scratch:
        works: dict[Who, Work] = {}
        keys: dict[tuple, Who] = {}
        for entry in entries(export, Path(scratch), partial(_owner, chapters=chapters)):
            if (known := _owner(entry.path, chapters)) is not None:
                who, place = known
                works.setdefault(keys.setdefault(who.key, who), []).append(
                    (entry, place / entry.inside if entry.inside.parts else place)
                )
        if not works:
            raise CourseError(f"{export} holds no submission")
        placed = {who: _placed(files, chapters) for who, files in works.items()}
        records, there = _records(chapters), {student for chapter in chapters for student, _ in students_of(chapter)}
        students = identify({who: set(stems) for who, stems in placed.items()}, roster or Roster(), records, there, _safe)
        earlier: dict[tuple, list[Record]] = {}
        for record in records:
            earlier.setdefault((record.chapter, record.who.key), []).append(record)
        done = []
        for who, stems in placed.items():
            student, flags = students[who]
            for stem, files in stems.items():
                old = {record.student for record in earlier.get((stem, who.key), []) if record.student != student}
                done.append(_taken(student, stem, files, chapters, export, who, flags, old))
    return sorted(done, key=lambda one: (one.student, one.chapter))


Work = list[tuple[Entry, PurePosixPath]]  # files, with their places in what was handed in


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


def _owner(path: PurePosixPath, chapters: list[Chapter]) -> tuple[Who, PurePosixPath] | None:
    """Whose an entry of an export is, and its place in the work; None if it is nobody's.

    Only what the platform or the teacher wrote is looked at: what is in a student's zip cannot say whose it is.
    """
    parts = [part for part in path.parts if part != "."]
    if not parts or hidden(path):
        return None
    return moodle.place_of(parts) or canvas.place_of(parts) or folders.place_of(parts, {chapter.stem for chapter in chapters})


def _safe(name: str) -> str:
    """A student's name as the name of a folder and in a gradebook."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    name = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name).strip().lstrip(".")
    return name.encode()[:100].decode(errors="ignore").strip() or "unnamed"


def _placed(files: Work, chapters: list[Chapter]) -> dict[str, Work]:
    """The files of one student by the assignment that they are for."""
    placed: dict[str, Work] = {}
    loose: Work = []
    for entry, place in files:
        try:
            chapter = _chapter(entry, place, chapters)
        except Exception as error:  # whatever a notebook may hold
            raise_if_full(error)
            chapter = None
        if chapter is None:
            loose.append((entry, place))
            continue
        if chapter.stem in place.parts[:-1]:
            place = PurePosixPath(*place.parts[place.parts.index(chapter.stem) + 1 :])
        placed.setdefault(chapter.stem, []).append((entry, place))
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
    mine = [_sources(entry.data) for entry, place in files if entry.data and NOTEBOOK.fullmatch(place.name)]
    return not any(entry.problem for entry, _ in files) and all(sources is not None and sources in given for sources in mine)


def _sources(path: Path) -> list[str] | None:
    notebook = read_submission(path)[0]
    return None if notebook is None else [cell.source.strip() for cell in notebook.cells]


def _taken(
    student: str, stem: str, files: Work, chapters: list[Chapter], export: Path, who: Who, flags: list[str], old: set[str]
) -> Collected:
    """Write the work of one student for one assignment; where they were called otherwise before, it is removed."""
    names = tuple(chapter.name for chapter in chapters if chapter.stem == stem)
    chapter = next(chapter for chapter in chapters if chapter.stem == stem)
    try:
        flags = flags + _write(chapter, names, student, files, export, who, flags)
        for name in old:
            _remove(chapter.folder("submitted", name))
            record_of(chapter, name).unlink(missing_ok=True)
        return Collected(student, stem, flags)
    except Exception as error:  # one hand-in is never another's problem
        raise_if_full(error)
        return Collected(student, stem, [*flags, f"it could not be put into submitted/ ({why(error)})"], failed=True)


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
        return match["name"], int((match["dash"] or match["bracket"])[:9])
    return None


def _write(
    chapter: Chapter, names: tuple[str, ...], student: str, files: Work, export: Path, who: Who, before: list[str]
) -> list[str]:
    """Write one submission and its record; the sentences on what was odd, beside those from before."""
    flags = [entry.problem for entry, _ in files if entry.problem]
    files = [(entry, place) for entry, place in files if entry.data is not None]
    flags += [f"{shown(place.name)}: a text entered at the platform is not graded" for _, place in files if place.name in TEXTS]
    flags += [
        f"{shown(place.name)} is an archive that is not opened; only zips are" for _, place in files if ARCHIVE.search(place.name)
    ]
    depth = min((len(place.parts) - 1 for _, place in files), default=0)
    common = next((i for i in range(depth) if len({place.parts[i] for _, place in files}) > 1), depth)
    files = [(entry, PurePosixPath(*place.parts[common:])) for entry, place in files]  # without the folder that was zipped
    latest: dict[PurePosixPath, tuple[tuple, Entry, PurePosixPath]] = {}
    for entry, place in files:
        if place.name == TIMESTAMP:
            flags.append(f"{TIMESTAMP} in the submission is not believed")
            continue
        versioned = _versioned(place.name, names) if NOTEBOOK.fullmatch(place.name) else None
        target = place.with_name(f"{versioned[0]}.ipynb") if versioned else place
        rank = (versioned[1] if versioned else 0, entry.received)
        if target in latest:
            older = min(latest[target], (rank, entry, place), key=lambda one: one[0])
            flags.append(f"an older version, {shown(older[2].name)}, was left out")
        if target not in latest or rank >= latest[target][0]:
            latest[target] = (rank, entry, place)
    folder = chapter.folder("submitted", student)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".intake-", dir=folder.parent))
    try:
        for target, (_, entry, _) in latest.items():
            try:
                (scratch / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(entry.data, scratch / target)
            except (OSError, ValueError, RecursionError) as error:  # a name too long, two names that clash
                raise_if_full(error)
                flags.append(f"{shown(target.name)} was left out ({why(error)})")
        flags = flags[:FLAGS] + ([f"{len(flags) - FLAGS} more of this kind"] if len(flags) > FLAGS else [])
        when = max((entry.received for _, entry, _ in latest.values()), default=None)
        if when is not None:
            (scratch / TIMESTAMP).write_text(f"{when:%Y-%m-%d %H:%M:%S} UTC\n")
        scratch.chmod(0o755)
        _remove(folder)
        os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    record = {
        "received": f"{when:%Y-%m-%d %H:%M:%S} UTC" if when else None,
        "from": shown(export.name),
        "flags": [*before, *flags],
        "student": student,
        "chapter": chapter.stem,
        "who": asdict(who),
    }
    record_of(chapter, student).write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    return flags


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
