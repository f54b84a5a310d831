"""What is in `submitted/<student>/<chapter>/`, nbgrader's own layout, and when it was handed in.

Nothing here follows a link.
"""

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.authoring.chapters import Chapter
from autograder.grading.merge import KINDS, overlap, read_submission, shown
from autograder.platforms.folders import NOTEBOOK, stem_of

LARGEST_FILE = 100_000_000  # bytes of one file, unpacked
LARGEST_WORK = 200_000_000  # bytes of all that one student handed in, unpacked
MOST_FILES = 2_000  # of one student
TIMESTAMP = "timestamp.txt"
STUDENT = "\N{INVISIBLE SEPARATOR}"  # the name of no student, where a pattern of nbgrader's wants one


def handed_in(chapter: Chapter) -> list[tuple[str, Path]]:
    """The students who handed in something for a chapter, with the place of it (which may be anything)."""
    return sorted((student, place) for student, place in students(chapter) if os.path.lexists(place))


def students(chapter: Chapter) -> list[tuple[str, Path]]:
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
    others = [path for path in notebooks(folder) if stem_of(path.name) not in siblings and path != folder / wanted]
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


def attempts_of(chapter: Chapter, student: str) -> Path:
    """Where the attempts of a student are that do not count: in a hidden folder of `submitted/`, each in one with its number."""
    everybody = chapter.folder("submitted", STUDENT)
    root = Path(*everybody.parts[: everybody.parts.index(STUDENT)])
    return root / ".attempts" / student / chapter.stem


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
