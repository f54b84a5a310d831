"""What students handed in: the folders of `submitted/`, and what learning platforms export.

`submitted/<student>/<chapter>/` is nbgrader's own layout. `collect` fills it from a zip or folder as Moodle and
Canvas export it, or as a teacher packs it: each student's files, nested zips unpacked, the latest version of a
notebook under its right name. Beside a student's folder it leaves the collector's record, `<chapter>.collected.json`,
with the time at which the platform received the work and what was odd. No student's file can reach it, so it
is what lateness is counted from.

Nothing here follows a link, leaves the folder that it is to fill, or believes a size that an archive claims.
"""

import contextlib
import json
import os
import re
import shutil
import stat
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

import nbformat
from nbgrader.utils import parse_utc

from autograder.grading import merge
from autograder.authoring.chapters import Chapter, CourseError, grade_id
from autograder.grading.gradebook import FULL
from autograder.grading.merge import FLAGS, KINDS, overlap, read_submission, shown
from autograder.grading.pruned import TooLarge, pruned
from autograder.grading.roster import Record, Roster, Who, identify

LARGEST_FILE = 100_000_000  # bytes of one file, unpacked
LARGEST_WORK = 200_000_000  # bytes of all that one student handed in, unpacked
LARGEST_READ = 2_000_000_000  # bytes of it before the outputs of notebooks are left out
LARGEST_LIST = 10_000_000  # bytes of a zip's list of its files
MOST_FILES = 2_000  # of one student
DEEPEST = 3  # zips in zips
DEEPEST_FOLDER = 50  # folders in folders
TIMESTAMP = "timestamp.txt"

STUDENT = "\N{INVISIBLE SEPARATOR}"  # the name of no student, where a pattern of nbgrader's wants one
LEFT = "__MACOSX", "__pycache__", "node_modules", "Thumbs.db", "desktop.ini"

# Ada Lovelace_12345 (the number is another one in each assignment), Participant_12345 (blind marking), Team A_12 (a group,
# the number is its own) or Default group (all who are in none)
MOODLE = re.compile(r"(?P<student>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL)
# lovelaceada or a group's name, LATE or not, the person's number, the file's
CANVAS = re.compile(
    r"(?P<student>.+?)(?:_LATE)?_(?P<number>\d+)_(?:\d+_(?P<file>.+)|(?P<entry>text\.html|link\.html))", re.DOTALL | re.IGNORECASE
)
CANVAS_ANONYMOUS = re.compile(
    r"(?:LATE_)?anon_(?P<number>[A-Za-z0-9]{5})_(?:\d+_(?P<file>.+)|(?P<entry>text\.html|link\.html))", re.DOTALL
)
TEXTS = "onlinetext.html", "text.html", "link.html"
ARCHIVE = re.compile(r"\.(7z|rar|tar|tgz|gz|bz2|xz|zst)$", re.IGNORECASE)
VERSION = re.compile(r"(?P<name>.+?)(?:-(?P<dash>\d+)| ?\((?P<bracket>\d+)\))")
NOTEBOOK = re.compile(r"(?P<name>.+)\.ipynb(?:\.txt|\.json)?", re.IGNORECASE)  # browsers add an ending


# ---------------------------------------------------------------- what is in submitted/


def handed_in(chapter: Chapter) -> list[tuple[str, Path]]:
    """The students who handed in something for a chapter, with the place of it (which may be anything)."""
    return sorted((student, place) for student, place in _students(chapter) if os.path.lexists(place))


def _students(chapter: Chapter) -> list[tuple[str, Path]]:
    """All students of `submitted/`, with the place where what they handed in for a chapter would be."""
    everybody = chapter.folder("submitted", STUDENT)
    at = everybody.parts.index(STUDENT)
    root, inner = Path(*everybody.parts[:at]), everybody.parts[at + 1 :]
    if not root.is_dir():
        return []
    return [(entry.name, Path(entry.path, *inner)) for entry in os.scandir(root) if not entry.name.startswith(".")]


def find_notebook(chapter: Chapter, folder: Path, siblings: tuple[str, ...] = ()) -> tuple[Path | None, list[str]]:
    """The notebook of a chapter in what was handed in, and a sentence on all that is not as it should be.

    The right name wins; else the only notebook; else the one with most cells of the chapter, of several such
    the one that was changed last.

    Args:
        siblings: names of the other notebooks of the same assignment.
    """
    wanted = f"{chapter.name}.ipynb"
    if folder.is_symlink() or folder.parent.is_symlink():
        return None, ["what was handed in is a link, not a folder"]
    if not folder.is_dir():
        return None, ["what was handed in is not a folder"]
    others = [path for path in notebooks(folder) if _stem(path.name) not in siblings and path != folder / wanted]
    if os.path.lexists(folder / wanted):
        extra = [f"{shown(path.name)} was not asked for and is not graded" for path in others]
        return folder / wanted, [] if siblings else extra
    if not others:
        return None, [f"{wanted} was not handed in"]
    if len(others) == 1 and not siblings:
        return others[0], [f"{shown(others[0].name)} was taken for {wanted}"]
    fits = {path: overlap(chapter, read_submission(path)[0]) for path in others[:20]}
    best = max(fits, key=lambda path: (fits[path], path.lstat().st_mtime, path.name))
    if not fits[best]:
        return None, [f"{wanted} was not handed in"]
    return best, [f"of {len(others)} notebooks {shown(best.name)} was taken for {wanted}"]


def notebooks(folder: Path, depth: int = 4) -> list[Path]:
    """The notebooks in a folder and its folders, without checkpoints; links are not followed."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if NOTEBOOK.fullmatch(entry.name):
                found.append(Path(entry.path))
            elif depth and not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    found += notebooks(Path(entry.path), depth - 1)
    return found


def _stem(name: str) -> str:
    match = NOTEBOOK.fullmatch(name)
    return match["name"] if match else name


def stage(chapter: Chapter, folder: Path, notebook: Path | None, target: Path) -> list[str]:
    """Copy the files that the notebook's cells may read: the student's own, then the released ones over them.

    Returns:
        A sentence for each file that was left out.
    """
    flags, total = [], 0
    for path, kind in submitted_files(notebook.parent if notebook else folder):
        name = path.relative_to(notebook.parent if notebook else folder)
        if NOTEBOOK.fullmatch(path.name) or path.name == TIMESTAMP:
            continue
        what = next((what for is_kind, what in KINDS if is_kind(kind)), None)
        total += path.lstat().st_size if what is None else 0
        if what or total > LARGEST_WORK:
            flags.append(f"{shown(name)} is {what or 'too much'} and was left out")
            continue
        try:
            _copy(path, target / name)
        except OSError as error:
            flags.append(f"{shown(name)} cannot be read ({error.strerror or error})")
    given = chapter.release.parent
    for path, kind in submitted_files(given) if given.is_dir() else ():
        if stat.S_ISREG(kind) and path.suffix != ".ipynb":
            (target / path.relative_to(given)).unlink(missing_ok=True)
            _copy(path, target / path.relative_to(given))
    return flags[:10] + ([f"{len(flags) - 10} more files were left out"] if len(flags) > 10 else [])


def submitted_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """All that is no folder below a folder, with its mode; hidden things and links' targets are not looked at."""
    count = 0
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted([*names, *links]):
            if not name.startswith("."):
                count += 1
                if count > MOST_FILES:
                    return
                yield Path(place, name), os.lstat(os.path.join(place, name)).st_mode


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file, target.open("wb") as out:
        shutil.copyfileobj(file, out)


# ---------------------------------------------------------------- when it was handed in


def record_of(chapter: Chapter, student: str) -> Path:
    """Where the collector's record of a submission is: beside the student's folder, never in it."""
    folder = chapter.folder("submitted", student)
    return folder.with_name(f"{folder.name}.collected.json")


def received(chapter: Chapter, student: str, notebook: Path | None) -> tuple[datetime | None, list[str]]:
    """When a submission was handed in (UTC, without a zone, as the gradebook has it) and what is odd about it.

    The collector's record counts. Without one a `timestamp.txt`, which `nbgrader submit` leaves and a student
    can write, is believed only if the notebook was not changed after it; else the notebook's own time counts.
    """
    record = record_of(chapter, student)
    if record.is_file():
        try:
            kept = json.loads(record.read_text())
            return parse_utc(kept["received"]) if kept["received"] else None, list(kept["flags"])
        except (ValueError, KeyError, TypeError):
            return None, [f"the collector's record {record.name} cannot be read"]
    stamp = chapter.folder("submitted", student) / TIMESTAMP
    if stamp.is_symlink() or not stamp.is_file() or stamp.stat().st_size > 1000:
        return None, []
    try:
        claimed = parse_utc(stamp.read_text(errors="replace").strip())
    except (ValueError, OverflowError):
        return None, [f"{TIMESTAMP} says no time"]
    if notebook is None or notebook.is_symlink() or not notebook.exists():
        return claimed, []
    changed = datetime.fromtimestamp(notebook.lstat().st_mtime, UTC).replace(tzinfo=None)
    if (changed - claimed).total_seconds() > 60:
        flag = (
            f"{TIMESTAMP} says {claimed:%Y-%m-%d %H:%M}, but the notebook was changed at {changed:%Y-%m-%d %H:%M}, which counts"
        )
        return changed.replace(microsecond=0), [flag]
    return claimed, []


# ---------------------------------------------------------------- exports of learning platforms


NO_ZIP = PurePosixPath()


@dataclass
class Entry:
    """One file that somebody handed in.

    Attributes:
        path: its place in the export, if the platform or a teacher put it there; else that of the zip that it was in.
        inside: its place in that zip, which is the student's word.
        data: where its bytes lie; None if it was refused for `problem`.
    """

    path: PurePosixPath
    received: datetime
    data: Path | None
    problem: str | None = None
    inside: PurePosixPath = NO_ZIP

    @property
    def name(self) -> str:
        return (self.inside.name if self.inside.parts else self.path.name) or "it"


@dataclass
class Room:
    """What one student's zips may still unpack to."""

    kept: int = field(default_factory=lambda: LARGEST_WORK)  # bytes on the disk
    read: int = field(default_factory=lambda: LARGEST_READ)  # bytes with what is left out of notebooks
    files: int = field(default_factory=lambda: MOST_FILES)


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
        for entry in _entries(export, Path(scratch), chapters):
            if (known := _owner(entry.path, chapters)) is not None:
                who, place = known
                works.setdefault(keys.setdefault(who.key, who), []).append(
                    (entry, place / entry.inside if entry.inside.parts else place)
                )
        if not works:
            raise CourseError(f"{export} holds no submission")
        placed = {who: _placed(files, chapters) for who, files in works.items()}
        records, there = _records(chapters), {student for chapter in chapters for student, _ in _students(chapter)}
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
    places = {record_of(chapter, student).parent: chapter for chapter in chapters for student, _ in _students(chapter)}
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


def _entries(export: Path, scratch: Path, chapters: list[Chapter]) -> Iterator[Entry]:
    """The files of an export; nothing that is wrong with one of them keeps the next from coming."""
    rooms: dict[Who, Room] = {}

    def room(path: PurePosixPath) -> Room:
        known = _owner(path, chapters)
        return rooms.setdefault(known[0], Room()) if known else Room()

    if export.is_dir():
        for path, kind in _walk(export):
            yield from _guarded(_clean(path.relative_to(export).as_posix()), partial(_from_folder, path, kind), scratch, room)
        return
    try:
        opened = zipfile.ZipFile(export)
    except Exception as error:  # whatever a damaged one may hold
        raise CourseError(f"{export} cannot be opened ({_why(error)}); export it again") from None
    with opened:
        for info in opened.infolist():
            if not info.is_dir():
                inner = _inner(info) or PurePosixPath(*(p for p in _clean(info.filename).parts if p not in ("/", "..")))
                yield from _guarded(inner, partial(_from_zip, opened, info), scratch, room)


def _guarded(path: PurePosixPath, read: Callable, scratch: Path, room: Callable[[PurePosixPath], Room]) -> Iterator[Entry]:
    """One entry of an export and, if it is a zip, what is in it."""
    try:
        entry = read(path, scratch)
        yield from _opened(entry, scratch, room(path))
    except Exception as error:
        _raise_if_full(error)
        yield Entry(path, datetime.now(UTC), None, f"{shown(path.name)} cannot be read ({_why(error)})")


def _from_folder(path: Path, kind: int, name: PurePosixPath, scratch: Path) -> Entry:
    when = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    if what := next((what for is_kind, what in KINDS if is_kind(kind)), None):
        return Entry(name, when, None, f"{shown(name.name)} is {what}")
    limit = merge.LARGEST_FILE if NOTEBOOK.fullmatch(name.name) else LARGEST_FILE
    if path.stat().st_size > limit:
        return Entry(name, when, None, f"{shown(name.name)} is larger than {limit // 1_000_000} MB")
    return Entry(name, when, path)


def _from_zip(opened: zipfile.ZipFile, info: zipfile.ZipInfo, name: PurePosixPath, scratch: Path) -> Entry:
    when = _time(info)
    if _inner(info) is None or stat.S_ISLNK(info.external_attr >> 16):
        what = "leads out of its folder" if _inner(info) is None else "is a link"
        return Entry(name, when, None, f"{shown(info.filename)} {what} and was left out")
    try:
        return Entry(name, when, _unpacked(opened, info, scratch, Room(LARGEST_READ, LARGEST_READ)))
    except Refused as refused:
        return Entry(name, when, None, str(refused))


def _why(error: Exception) -> str:
    text = shown((error.strerror if isinstance(error, OSError) else None) or error)
    return text if text.strip() else type(error).__name__


def _raise_if_full(error: Exception) -> None:
    if isinstance(error, OSError) and error.errno in FULL:
        raise error


def _walk(folder: Path) -> Iterator[tuple[Path, int]]:
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = sorted(set(folders) - set(links))
        for name in sorted([*names, *links]):
            with contextlib.suppress(OSError):  # gone by now
                yield Path(place, name), os.lstat(os.path.join(place, name)).st_mode


def _opened(entry: Entry, scratch: Path, room: Room, depth: int = 0) -> Iterator[Entry]:
    """The entry, or, if it is a zip, what is in it."""
    if entry.data is None or PurePosixPath(entry.name).suffix.lower() != ".zip":
        yield entry
    elif depth >= DEEPEST:
        yield replace(entry, data=None, problem=f"{shown(entry.name)}: zips in zips in zips are not opened")
    else:
        try:
            yield from _unzipped(entry, scratch, room, depth)
        except Exception as error:  # whatever a zip may hold
            _raise_if_full(error)
            yield replace(entry, data=None, problem=f"{shown(entry.name)} is not a zip that can be opened ({_why(error)})")


class Refused(Exception):
    """An entry of a zip is left out; the text says why."""


class Ended(Refused):
    """The rest of a zip is left out, too."""


def _unzipped(entry: Entry, scratch: Path, room: Room, depth: int) -> Iterator[Entry]:
    """What is in a zip that a student made: its names, sizes and times are the student's."""
    _check_directory(entry.data)
    with zipfile.ZipFile(entry.data) as opened:
        infos = [
            info
            for info in opened.infolist()
            if not info.is_dir() and not _hidden(PurePosixPath(info.filename.replace("\\", "/")))
        ]
        infos.sort(key=lambda info: NOTEBOOK.fullmatch(PurePosixPath(info.filename).name) is None)  # if not all are taken
        if not infos:
            yield replace(entry, data=None, problem=f"{shown(entry.name)} holds no work")
        for info in infos:
            inner = _inner(info)
            if room.files == 0:
                told = f"{shown(entry.name)} holds more than {MOST_FILES} files; the rest was left out"
                yield replace(entry, data=None, problem=told)
                return
            room.files -= 1
            if inner is None or stat.S_ISLNK(info.external_attr >> 16):
                what = "leads out of its folder" if inner is None else "is a link"
                yield replace(entry, data=None, problem=f"{shown(info.filename)} {what} and was left out")
                continue
            member = replace(entry, inside=entry.inside / inner)
            if len(member.inside.parts) > DEEPEST_FOLDER:
                told = f"{shown(inner.name)} is in too many folders and was left out"
                yield replace(entry, data=None, problem=told)
                continue
            try:
                member = replace(member, data=_unpacked(opened, info, scratch, room))
            except Ended:
                told = f"{shown(entry.name)} unpacks to more than {LARGEST_WORK // 1_000_000} MB"
                yield replace(entry, data=None, problem=told)
                return
            except Refused as refused:
                member = replace(member, data=None, problem=str(refused))
            except Exception as error:  # damage, a codec that is not known, a password
                _raise_if_full(error)
                member = replace(member, data=None, problem=f"{shown(inner.name)} cannot be unpacked ({_why(error)})")
            yield from _opened(member, scratch, room, depth + 1)


def _check_directory(archive: Path) -> None:
    """A zip of a few MB can list millions of files, and all of the list would be read into memory."""
    with archive.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - (1 << 16) - 200))
        tail = file.read()
    for mark, at, width in ((b"PK\5\6", 12, 4), (b"PK\6\6", 40, 8)):
        for found in re.finditer(re.escape(mark), tail):
            length = int.from_bytes(tail[found.start() + at : found.start() + at + width], "little")
            if LARGEST_LIST < length <= size:
                raise Refused("it lists too many files")


def _unpacked(opened: zipfile.ZipFile, info: zipfile.ZipInfo, scratch: Path, room: Room) -> Path:
    """The bytes of an entry in a new file. A notebook that is too large is unpacked without its outputs."""
    name = info.filename.replace("\\", "/").rpartition("/")[2]
    handle, place = tempfile.mkstemp(dir=scratch)
    data = Path(place)
    try:
        with os.fdopen(handle, "wb") as out:
            limit = min(LARGEST_FILE, room.kept, room.read)
            with opened.open(info) as file:
                size = _pour(file, out, limit)
            room.read -= size
            if size > limit and NOTEBOOK.fullmatch(name) and room.read > 0:
                out.seek(0)
                out.truncate()
                with opened.open(info) as file:
                    counted = _Counted(file, min(merge.LARGEST_FILE, room.read))
                    try:
                        kept, _ = pruned(counted.read, min(merge.LARGEST, room.kept), merge.CELLS + 1)
                    except TooLarge:
                        most = merge.LARGEST // 1_000_000
                        raise Refused(f"{shown(name)} is larger than {most} MB without its outputs") from None
                    except ValueError as error:
                        raise Refused(f"{shown(name)} is larger than {limit // 1_000_000} MB, and no notebook") from error
                    finally:
                        room.read -= counted.size
                size, limit = out.write(kept), len(kept)
        if size > limit:
            if limit < LARGEST_FILE:
                raise Ended
            raise Refused(f"{shown(name)} unpacks to more than {limit // 1_000_000} MB")
    except BaseException:
        data.unlink()
        raise
    room.kept -= size
    return data


def _pour(file, out, limit: int) -> int:
    size = 0
    while size <= limit and (block := file.read(1 << 20)):
        size += len(block)
        out.write(block)
    return size


class _Counted:
    def __init__(self, file, most: int):
        self.file, self.most, self.size = file, most, 0

    def read(self, count: int) -> bytes:
        block = self.file.read(count)
        self.size += len(block)
        if self.size > self.most:
            raise ValueError("too much")
        return block


def _clean(name: str) -> PurePosixPath:
    """A path as text that can be written and compared."""
    return PurePosixPath(unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode()))


def _inner(info: zipfile.ZipInfo) -> PurePosixPath | None:
    """Where an entry says it is; None if that is outside."""
    name = info.filename.replace("\\", "/")
    if not info.flag_bits & 0x800:  # no flag for UTF-8, and many write it all the same
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    path = _clean(name)
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:/", name) or "\0" in name or not path.name:
        return None
    return path


def _hidden(path: PurePosixPath) -> bool:
    """Whether it is no work: what systems and editors leave, packages that were zipped with the course folder."""
    return any(part in LEFT or (part.startswith(".") and part not in (".", "..")) for part in path.parts)


def _time(info: zipfile.ZipInfo) -> datetime:
    """A zip has local times without a zone: those of the platform, taken as this machine's."""
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime(*info.date_time).astimezone(UTC)
    return datetime.now(UTC)


def _owner(path: PurePosixPath, chapters: list[Chapter]) -> tuple[Who, PurePosixPath] | None:
    """Whose an entry of an export is, and its place in the work; None if it is nobody's.

    Only what the platform or the teacher wrote is looked at: what is in a student's zip cannot say whose it is.
    """
    parts = [part for part in path.parts if part != "."]
    if not parts or _hidden(path):
        return None
    stems = {chapter.stem for chapter in chapters}
    for i, part in enumerate(parts):
        if match := MOODLE.fullmatch(part):
            rest = [match["file"]] if match["file"] else []
            place = PurePosixPath(*rest, *parts[i + 1 :])
            return Who("moodle", match["student"], match["number"] or ""), place if place.parts else PurePosixPath(part)
    if len(parts) == 1 or (len(parts) == 2 and parts[0].lower().startswith("submi")):
        if match := CANVAS.fullmatch(parts[-1]):
            return Who("canvas", match["student"], match["number"]), PurePosixPath(match["file"] or match["entry"])
        if match := CANVAS_ANONYMOUS.fullmatch(parts[-1]):
            return Who("canvas", "anon", match["number"]), PurePosixPath(match["file"] or match["entry"])
    named = [i for i, part in enumerate(parts[:-1]) if part in stems]
    if named and named[0] > 0:  # …/<student>/<chapter>/…, nbgrader's own
        return Who("", parts[named[0] - 1]), PurePosixPath(*parts[named[0] :])
    if named:  # <chapter>/<student>/…
        parts, prefix = parts[1:], parts[:1]
    else:
        prefix = []
    student = parts[0] if len(parts) > 1 else _stem(parts[0]).removesuffix(".zip")
    if len(parts) == 1 and not (NOTEBOOK.fullmatch(parts[0]) or parts[0].lower().endswith(".zip")):
        return None  # a list of grades, a note: nobody's
    for stem in stems:
        student = re.sub(r"\.zip$", "", student, flags=re.IGNORECASE).removesuffix(f"_{stem}").removesuffix(f"-{stem}")
    rest = parts[1:] if len(parts) > 1 else [] if parts[0].lower().endswith(".zip") else parts
    return Who("", student or parts[0]), PurePosixPath(*prefix, *rest)


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
            _raise_if_full(error)
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
        _raise_if_full(error)
        return Collected(student, stem, [*flags, f"it could not be put into submitted/ ({_why(error)})"], failed=True)


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
    stem = _stem(name)
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
                _raise_if_full(error)
                flags.append(f"{shown(target.name)} was left out ({_why(error)})")
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
