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
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import nbformat
from nbgrader.utils import parse_utc

from autograder.chapters import Chapter, CourseError, grade_id
from autograder.merge import KINDS, overlap, read_submission, shown

LARGEST_FILE = 100_000_000  # bytes of one file, unpacked
LARGEST_WORK = 200_000_000  # bytes of all that one student handed in, unpacked
MOST_FILES = 2_000  # of one student
DEEPEST = 3  # zips in zips
TIMESTAMP = "timestamp.txt"

MOODLE = re.compile(r"(?P<student>.+?)_(?P<number>\d+)_assignsubmission_(?P<kind>file|onlinetext)(?:_(?P<file>.*))?")
CANVAS = re.compile(r"(?P<student>[^_]+)(?:_LATE)?_(?P<number>\d+)_(?P<upload>\d+)_(?P<file>.+)")
VERSION = re.compile(r"(?P<name>.+?)(?:-(?P<dash>\d+)| ?\((?P<bracket>\d+)\))")
NOTEBOOK = re.compile(r"(?P<name>.+)\.ipynb(?:\.txt|\.json)?", re.IGNORECASE)  # browsers add an ending


# ---------------------------------------------------------------- what is in submitted/


def handed_in(chapter: Chapter) -> list[tuple[str, Path]]:
    """The students who handed in something for a chapter, with the place of it (which may be anything)."""
    everybody = chapter.folder("submitted", "*")
    root, inner = Path(*everybody.parts[: everybody.parts.index("*")]), everybody.parts[everybody.parts.index("*") + 1 :]
    if not root.is_dir():
        return []
    places = [(entry.name, Path(entry.path, *inner)) for entry in os.scandir(root) if not entry.name.startswith(".")]
    return sorted((student, place) for student, place in places if os.path.lexists(place))


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


@dataclass
class Entry:
    """One file of an export; `data` is where its bytes lie, None if it was refused for `problem`."""

    path: PurePosixPath
    received: datetime
    data: Path | None
    problem: str | None = None


@dataclass
class Collected:
    """What `collect` put into `submitted/` for one student and chapter."""

    student: str
    chapter: str
    flags: list[str] = field(default_factory=list)


def collect(export: Path, chapters: list[Chapter]) -> list[Collected]:
    """Sort an export into `submitted/<student>/<chapter>/`; an older submission there is replaced.

    Args:
        export: a zip or a folder from a learning platform, or one that holds a folder, zip or notebook a student.
        chapters: those that may be in it.

    Raises:
        CourseError: if the export is neither a folder nor a zip that can be opened, or holds no submission.
    """
    if not export.is_dir() and not zipfile.is_zipfile(export):
        raise CourseError(f"{export} is neither a folder nor a zip")
    with tempfile.TemporaryDirectory(prefix="intake-") as scratch:
        works: dict[tuple[str, str], list[tuple[Entry, PurePosixPath]]] = {}
        for entry in _entries(export, Path(scratch)):
            if (known := _student(entry.path, chapters)) is not None:
                works.setdefault(known[:2], []).append((entry, known[2]))
        people: dict[str, list] = {}
        for (name, number), files in works.items():
            people.setdefault(name.casefold(), []).append((name, number, files))
        done = []
        for same in people.values():
            for name, number, files in same:
                student = f"{name}-{number}" if len(same) > 1 and number else name
                flags = [f"several people are called {shown(name)}; this one is number {number}"] if student != name else []
                done += _sort(student, files, chapters, export, flags)
    if not done:
        raise CourseError(f"{export} holds no submission")
    return sorted(done, key=lambda one: (one.student, one.chapter))


def _entries(export: Path, scratch: Path) -> Iterator[Entry]:
    if export.is_dir():
        for path, kind in _walk(export):
            name = PurePosixPath(path.relative_to(export).as_posix())
            when = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
            what = next((what for is_kind, what in KINDS if is_kind(kind)), None)
            if what:
                yield Entry(name, when, None, f"{shown(name.name)} is {what}")
            elif path.stat().st_size > LARGEST_FILE:
                yield Entry(name, when, None, f"{shown(name.name)} is larger than {LARGEST_FILE // 1_000_000} MB")
            else:
                yield from _opened(Entry(name, when, path), scratch)
    else:
        yield from _unzipped(export, PurePosixPath(), None, scratch, depth=0)


def _walk(folder: Path) -> Iterator[tuple[Path, int]]:
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = sorted(set(folders) - set(links))
        for name in sorted([*names, *links]):
            yield Path(place, name), os.lstat(os.path.join(place, name)).st_mode


def _opened(entry: Entry, scratch: Path, depth: int = 0) -> Iterator[Entry]:
    """The entry, or, if it is a zip, what is in it."""
    if entry.path.suffix.lower() != ".zip":
        yield entry
    elif depth >= DEEPEST:
        yield Entry(entry.path, entry.received, None, f"{shown(entry.path.name)}: zips in zips in zips are not opened")
    else:
        yield from _unzipped(entry.data, entry.path, entry.received, scratch, depth)


def _unzipped(archive: Path, at: PurePosixPath, received: datetime | None, scratch: Path, depth: int) -> Iterator[Entry]:
    """What is in a zip. In one that a student made (`received` is given) sizes and times are the student's."""
    name, when = shown(at.name or archive.name), received or datetime.now(UTC)
    room, count = LARGEST_WORK, 0
    try:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if info.is_dir():
                    continue
                count += 1
                inner = _inner(info)
                when = received or _time(info)
                if received is not None and count > MOST_FILES:
                    yield Entry(at, when, None, f"{name} holds more than {MOST_FILES} files; the rest was left out")
                    return
                if inner is None or stat.S_ISLNK(info.external_attr >> 16):
                    what = "leads out of its folder" if inner is None else "is a link"
                    place = at if received else PurePosixPath(*(inner or PurePosixPath(shown(info.filename))).parts)
                    yield Entry(place, when, None, f"{shown(info.filename)} {what} and was left out")
                    continue
                limit = min(LARGEST_FILE, room if received else LARGEST_FILE)
                handle, place = tempfile.mkstemp(dir=scratch)
                data = Path(place)
                try:
                    with os.fdopen(handle, "wb") as out, opened.open(info) as file:
                        size = _pour(file, out, limit)
                except (RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
                    yield Entry(at / inner, when, None, f"{shown(inner.name)} cannot be unpacked ({shown(error)})")
                    continue
                if size > limit:
                    data.unlink()
                    if limit < LARGEST_FILE:
                        yield Entry(at, when, None, f"{name} unpacks to more than {LARGEST_WORK // 1_000_000} MB")
                        return
                    yield Entry(at / inner, when, None, f"{shown(inner.name)} unpacks to more than {limit // 1_000_000} MB")
                    continue
                room -= size
                yield from _opened(Entry(at / inner, when, data), scratch, depth + 1)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        yield Entry(at, when, None, f"{name} is not a zip that can be opened ({shown(error)})")


def _pour(file, out, limit: int) -> int:
    size = 0
    while size <= limit and (block := file.read(1 << 20)):
        size += len(block)
        out.write(block)
    return size


def _inner(info: zipfile.ZipInfo) -> PurePosixPath | None:
    """Where an entry says it is; None if that is outside."""
    name = info.filename.replace("\\", "/")
    if not info.flag_bits & 0x800:  # no flag for UTF-8, and many write it all the same
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:/", name) or "\0" in name or not path.name:
        return None
    return path


def _time(info: zipfile.ZipInfo) -> datetime:
    """A zip has local times without a zone: those of the platform, taken as this machine's."""
    with contextlib.suppress(ValueError):
        return datetime(*info.date_time).astimezone(UTC)
    return datetime.now(UTC)


def _student(path: PurePosixPath, chapters: list[Chapter]) -> tuple[str, str, PurePosixPath] | None:
    """(student, the platform's number, the file's place in the work) of an export's entry; None if it is nobody's."""
    parts = [part for part in path.parts if part not in (".", "__MACOSX")]
    if "__MACOSX" in path.parts or not parts or any(part.startswith(".") for part in parts):
        return None
    stems = {chapter.stem for chapter in chapters}
    for i, part in enumerate(parts):
        if match := MOODLE.fullmatch(part):
            rest = [match["file"]] if match["file"] else []
            return _safe(match["student"]), match["number"], PurePosixPath(*rest, *parts[i + 1 :])
        if (match := CANVAS.fullmatch(part)) and (i == 0 or parts[0].startswith("submi")):
            return _safe(f"{match['student']}-{match['number']}"), "", PurePosixPath(match["file"], *parts[i + 1 :])
    named = [i for i, part in enumerate(parts[:-1]) if part in stems]
    if named and named[0] > 0:  # …/<student>/<chapter>/…, nbgrader's own
        return _safe(parts[named[0] - 1]), "", PurePosixPath(*parts[named[0] :])
    if named:  # <chapter>/<student>/…
        parts, prefix = parts[1:], parts[:1]
    else:
        prefix = []
    student = parts[0] if len(parts) > 1 else _stem(parts[0]).removesuffix(".zip")
    if len(parts) == 1 and not (NOTEBOOK.fullmatch(parts[0]) or parts[0].lower().endswith(".zip")):
        return None  # a list of grades, a note: nobody's
    for stem in stems:
        student = student.removesuffix(".zip").removesuffix(f"_{stem}").removesuffix(f"-{stem}")
    return _safe(student), "", PurePosixPath(*prefix, *parts[1:]) if len(parts) > 1 else PurePosixPath(*prefix, parts[0])


def _safe(name: str) -> str:
    """A student's name as the name of a folder and in a gradebook."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    name = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name).strip().lstrip(".")
    return name.encode()[:100].decode(errors="ignore") or "unnamed"


def _sort(student: str, files: list[tuple[Entry, PurePosixPath]], chapters, export: Path, flags: list[str]) -> list[Collected]:
    """Write the work of one student."""
    placed: dict[str, list[tuple[Entry, PurePosixPath]]] = {}
    loose: list[tuple[Entry, PurePosixPath]] = []
    for entry, place in files:
        chapter = _chapter(entry, place, chapters)
        placed.setdefault(chapter.stem, []).append((entry, place)) if chapter else loose.append((entry, place))
    if loose:  # data beside a notebook, what was refused
        placed.setdefault(next(iter(placed), chapters[0].stem), []).extend(loose)
    done = []
    for stem, mine in placed.items():
        names = tuple(chapter.name for chapter in chapters if chapter.stem == stem)
        chapter = next(chapter for chapter in chapters if chapter.stem == stem)
        done.append(Collected(student, stem, flags + _write(chapter, names, student, mine, export)))
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
    stem = _stem(name)
    if stem in wanted:
        return stem, 0
    match = VERSION.fullmatch(stem)
    if match and match["name"] in wanted:
        return match["name"], int((match["dash"] or match["bracket"])[:9])
    return None


def _write(chapter: Chapter, names: tuple[str, ...], student: str, files, export: Path) -> list[str]:
    """Write one submission and its record; the sentences on what was odd."""
    flags = [entry.problem for entry, _ in files if entry.problem]
    files = [(entry, place) for entry, place in files if entry.data is not None]
    while len({place.parts[0] for _, place in files}) == 1 and all(len(place.parts) > 1 for _, place in files):
        files = [(entry, PurePosixPath(*place.parts[1:])) for entry, place in files]  # the folder that was zipped
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
    for target, (_, entry, _) in latest.items():
        with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):  # two names that clash
            (scratch / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry.data, scratch / target)
    when = max((entry.received for _, entry, _ in latest.values()), default=None)
    if when is not None:
        (scratch / TIMESTAMP).write_text(f"{when:%Y-%m-%d %H:%M:%S} UTC\n")
    scratch.chmod(0o755)
    _remove(folder)
    os.replace(scratch, folder)
    record = {"received": f"{when:%Y-%m-%d %H:%M:%S} UTC" if when else None, "from": export.name, "flags": flags}
    record_of(chapter, student).write_text(json.dumps(record, indent=1, ensure_ascii=False))
    return flags


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
