"""The files of an export, entry by entry, nested zips unpacked.

Nothing here follows a link, leaves the folder that it is to fill, or believes a size that an archive claims; nothing that
is wrong with an entry keeps the next from coming.
"""

import contextlib
import os
import re
import stat
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

from autograder.errors import CourseError
from autograder.grading import merge
from autograder.grading.gradebook import FULL
from autograder.grading.merge import KINDS, shown
from autograder.grading.pruned import TooLarge, pruned
from autograder.grading.submitted import LARGEST_FILE, LARGEST_WORK, MOST_FILES
from autograder.platforms.folders import NOTEBOOK
from autograder.platforms.who import Owned, Who

LARGEST_READ = 2_000_000_000  # bytes of what one student handed in before the outputs of notebooks are left out
LARGEST_LIST = 10_000_000  # bytes of a zip's list of its files
DEEPEST = 3  # zips in zips
DEEPEST_FOLDER = 50  # folders in folders
LEFT = "__MACOSX", "__pycache__", "node_modules", "Thumbs.db", "desktop.ini"


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


def entries(export: Path, scratch: Path, owner: Callable[[PurePosixPath], Owned | None]) -> Iterator[Entry]:
    """The files of an export; nothing that is wrong with one of them keeps the next from coming."""
    rooms: dict[Who, Room] = {}

    def room(path: PurePosixPath) -> Room:
        known = owner(path)
        return rooms.setdefault(known.who, Room()) if known else Room()

    if export.is_dir():
        for path, kind in _walk(export):
            yield from _guarded(_clean(path.relative_to(export).as_posix()), partial(_from_folder, path, kind), scratch, room)
        return
    try:
        opened = zipfile.ZipFile(export)
    except Exception as error:  # whatever a damaged one may hold
        raise CourseError(f"{export} cannot be opened ({why(error)}); export it again") from None
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
        raise_if_full(error)
        yield Entry(path, datetime.now(UTC), None, f"{shown(path.name)} cannot be read ({why(error)})")


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


def why(error: Exception) -> str:
    text = shown((error.strerror if isinstance(error, OSError) else None) or error)
    return text if text.strip() else type(error).__name__


def raise_if_full(error: Exception) -> None:
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
            raise_if_full(error)
            yield replace(entry, data=None, problem=f"{shown(entry.name)} is not a zip that can be opened ({why(error)})")


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
            if not info.is_dir() and not hidden(PurePosixPath(info.filename.replace("\\", "/")))
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
                raise_if_full(error)
                member = replace(member, data=None, problem=f"{shown(inner.name)} cannot be unpacked ({why(error)})")
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


def hidden(path: PurePosixPath) -> bool:
    """Whether it is no work: what systems and editors leave, packages that were zipped with the course folder."""
    return any(part in LEFT or (part.startswith(".") and part not in (".", "..")) for part in path.parts)


def _time(info: zipfile.ZipInfo) -> datetime:
    """A zip has local times without a zone: those of the platform, taken as this machine's."""
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime(*info.date_time).astimezone(UTC)
    return datetime.now(UTC)
