"""Each attempt of a student is kept: the one that counts in `submitted/<student>/<chapter>/`, the others in `submitted/.attempts/`.

The collector's record beside the student's folder lists them with what the platform said of each: when it came, whether that was
late, until when there was time. What is collected once more is known by its content: no new attempt, and no later time.
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

from autograder.authoring.chapters import Chapter
from autograder.grading.submitted import TIMESTAMP, attempts_of, record_of, submitted_files
from autograder.platforms.who import Who

LAST, BEST, BEFORE_DUE = "last", "best", "last-before-due"
POLICIES = LAST, BEST, BEFORE_DUE
FORM = "%Y-%m-%d %H:%M:%S UTC"


@dataclass
class Attempt:
    """What was handed in once.

    Attributes:
        received: when, if the platform or, for what a teacher packed, the file told it; in UTC, as text.
        late: whether the platform says so; None where it says neither.
        due: until when there was time, if the platform told it; `extended` if that is this student's own.
        file: the platform's number of the notebook, which grows with time; 0 without one.
        seen: how manieth collection of this student's work it was last in.
        uploaded: the name of the notebook in the export, by which Canvas knows it again.
        work: whether there is more than a text that was entered at the platform.
        points: what it got, by notebook, where the best attempt counts; `scored` are the addresses of these results.
    """

    number: int
    digest: str
    received: str | None = None
    late: bool | None = None
    due: str | None = None
    extended: bool = False
    file: int = 0
    seen: int = 0
    export: str = ""
    flags: list[str] = field(default_factory=list)
    uploaded: str = ""
    work: bool = True
    points: dict[str, float] = field(default_factory=dict)
    scored: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.points.values()) if self.points else -1.0

    def is_late(self, due: datetime | None = None) -> bool | None:
        """Whether it came after the due date; None where nobody can tell.

        Args:
            due: the course's own, or an extension of it, in UTC; without one what the platform says.
        """
        until, when = due or time(self.due), time(self.received)
        if until is not None and when is not None:
            return when > until
        return self.late


def time(text: str | None) -> datetime | None:
    """A time of a record, in UTC without a zone, as the gradebook has it."""
    try:
        return datetime.strptime(text, FORM) if text else None
    except (ValueError, TypeError):
        return None


def text(when: datetime | None) -> str | None:
    """A time as records have it."""
    return f"{when.astimezone(UTC):{FORM}}" if when is not None else None


class Kept:
    """What is kept of one student's work for one assignment.

    Attributes:
        who: as the platform names them; None where it was not collected by this program.
        current: the number of the attempt that counts, which lies in `submitted/`.
    """

    def __init__(self, chapter: Chapter, student: str, who: Who | None = None):
        self.chapter, self.student, self.who = chapter, student, who
        self.attempts: list[Attempt] = []
        self.current = 0

    @classmethod
    def of(cls, chapter: Chapter, student: str) -> "Kept":
        """What there is; a folder without a record, or with one of an older version, is one attempt."""
        kept = cls(chapter, student)
        data: dict = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            data = json.loads(record_of(chapter, student).read_text(encoding="utf-8"))
            kept.who = Who(*(str(data["who"][name]) for name in ("platform", "name", "number")))
            known = {one.name for one in fields(Attempt)}
            kept.attempts = [Attempt(**{k: v for k, v in one.items() if k in known}) for one in data.get("attempts", [])]
            kept.current = int(data.get("current", 0))
        kept.attempts = [one for one in kept.attempts if kept.place(one.number).is_dir()]
        known = {one.number for one in kept.attempts}
        aside = attempts_of(chapter, student)
        for path in sorted(aside.iterdir()) if aside.is_dir() else ():  # of a record that was damaged
            if path.name.isdecimal() and int(path.name) not in known and path.is_dir():
                kept.attempts.append(Attempt(int(path.name), digest(path)))
        folder = chapter.folder("submitted", student)
        if folder.is_dir() and not folder.is_symlink() and not any(one.number == kept.current for one in kept.attempts):
            old = data if isinstance(data, dict) else {}
            received, flags = old.get("received"), old.get("flags")
            number = 1 + max((one.number for one in kept.attempts), default=0)
            made = Attempt(number, digest(folder), received if isinstance(received, str) else None)
            made.export, made.flags = str(old.get("from", "")), [str(flag) for flag in flags] if isinstance(flags, list) else []
            kept.attempts.append(made)
            kept.current = number
        return kept

    def place(self, number: int) -> Path:
        """Where an attempt lies."""
        if number == self.current:
            return self.chapter.folder("submitted", self.student)
        return attempts_of(self.chapter, self.student) / str(number)

    def add(self, folder: Path, attempt: Attempt) -> Attempt:
        """Take a new attempt from a folder, which is used up; one with the same content is the same attempt."""
        seen = 1 + max((one.seen for one in self.attempts), default=0)
        same = next((one for one in self.attempts if one.digest == attempt.digest and self.place(one.number).is_dir()), None)
        if same is not None:
            for name in ("late", "due", "file", "uploaded", "export"):
                setattr(same, name, getattr(attempt, name) or getattr(same, name))
            if attempt.received and (self.who is None or self.who.platform or not same.received):
                same.received = attempt.received
            same.extended, same.flags, same.seen = same.extended or attempt.extended, attempt.flags, seen
            shutil.rmtree(folder)
            return same
        attempt.number, attempt.seen = 1 + max((one.number for one in self.attempts), default=0), seen
        target = self.place(attempt.number)
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove(target)
        os.replace(folder, target)
        self.attempts.append(attempt)
        return attempt

    def last(self) -> Attempt:
        """The latest with files: by the platform's times or numbers where all have them, else by the order of collecting."""
        return _last(self.attempts)

    def chosen(self, policy: str, due: datetime | None = None) -> Attempt:
        """The attempt that counts. Of several equally good ones it is the last.

        Args:
            policy: of `POLICIES`.
            due: the due date in UTC, with this student's extension; without one what the platform says.
        """
        if policy == BEFORE_DUE:
            return _last([one for one in self.attempts if not one.is_late(due)] or self.attempts)
        if policy == BEST:
            return _last([one for one in self.attempts if one.total == max(other.total for other in self.attempts)])
        return self.last()

    def settle(self, attempt: Attempt) -> bool:
        """Let an attempt count; the one that counted is put aside. Whether it is another one than before."""
        if attempt.number == self.current:
            self.save()
            return False
        source, target = self.place(attempt.number), self.chapter.folder("submitted", self.student)
        if os.path.lexists(target):
            if self.current and target.is_dir() and not target.is_symlink():
                aside = attempts_of(self.chapter, self.student) / str(self.current)
                aside.parent.mkdir(parents=True, exist_ok=True)
                _remove(aside)
                os.replace(target, aside)
            else:
                _remove(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)
        with contextlib.suppress(OSError):  # until one is not empty
            for empty in source.parents[:3]:
                empty.rmdir()
        self.current = attempt.number
        self.save()
        return True

    def save(self) -> None:
        """Write the record, and `timestamp.txt` for nbgrader's own commands."""
        now = next(one for one in self.attempts if one.number == self.current)
        stamp = self.chapter.folder("submitted", self.student) / TIMESTAMP
        if now.received:
            stamp.write_text(f"{now.received}\n")
        else:
            stamp.unlink(missing_ok=True)
        record = {
            "received": now.received,
            "from": now.export,
            "flags": now.flags,
            "student": self.student,
            "chapter": self.chapter.stem,
            "who": asdict(self.who or Who("", self.student)),
            "current": self.current,
            "attempts": [asdict(one) for one in self.attempts],
        }
        path = record_of(self.chapter, self.student)
        part = path.with_name(f".{path.name}.part")
        part.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
        os.replace(part, path)


def _last(attempts: list[Attempt]) -> Attempt:
    found = [one for one in attempts if one.work] or attempts
    if all(one.received for one in found):
        return max(found, key=lambda one: (one.received, one.file, one.seen))
    if all(one.file for one in found):
        return max(found, key=lambda one: (one.file, one.seen))
    return max(found, key=lambda one: one.seen)


def move(chapter: Chapter, old: str, new: str, who: Who | None = None) -> None:
    """File all attempts of a student for an assignment under another name, beside what is there."""
    theirs, mine = Kept.of(chapter, old), Kept.of(chapter, new)
    mine.who = who or theirs.who or mine.who
    for attempt in sorted(theirs.attempts, key=lambda one: one.seen):
        source = theirs.place(attempt.number)
        if not source.is_dir():
            continue
        with tempfile.TemporaryDirectory(prefix=".intake-", dir=source.parent) as scratch:
            os.replace(source, Path(scratch) / "work")
            mine.add(Path(scratch) / "work", attempt)
    _remove(chapter.folder("submitted", old))
    _remove(attempts_of(chapter, old))
    with contextlib.suppress(OSError):  # until one is not empty
        for empty in attempts_of(chapter, old).parents[:2]:
            empty.rmdir()
    record_of(chapter, old).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty: other chapters
        record_of(chapter, old).parent.rmdir()
    if mine.attempts:
        mine.settle(mine.last())


def digest(folder: Path) -> str:
    """The hash of what is in a folder, names and bytes."""
    found = hashlib.sha256()
    for path, kind in submitted_files(folder):
        name = path.relative_to(folder).as_posix()
        if name == TIMESTAMP:
            continue
        found.update(repr((name, stat.S_IFMT(kind))).encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(kind):
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def due_of(base: datetime | None, extension: timedelta | None, until: datetime | None) -> datetime | None:
    """When the work of one student is due: the extension that a teacher wrote down, else the gradebook's date and extension."""
    return until or (base + (extension or timedelta(0)) if base is not None else None)


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
