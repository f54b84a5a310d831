"""Somebody as a learning platform names them, and what it tells of what they handed in."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import PurePosixPath


@lru_cache(100_000)
def folded(name: str) -> str:
    """A name without what writers differ in: case, form of accents, spaces, order around a comma."""
    last, comma, first = name.partition(",")
    name = f"{first} {last}" if comma else name
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


@dataclass(frozen=True)
class Who:
    """Somebody as an export names them: `number` is the platform's, if it tells one."""

    platform: str  # "moodle", "canvas", or "" for what a teacher packed
    name: str
    number: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same for the same person: Canvas's number alone, else name and number."""
        return self.platform, "" if self.platform == "canvas" and self.number else folded(self.name), self.number

    @property
    def called(self) -> tuple[str, str]:
        """What is the same for namesakes."""
        return self.platform, folded(self.name)


@dataclass(frozen=True)
class Owned:
    """What the name of an entry of an export says.

    Attributes:
        place: where the file is in the work.
        late: whether the platform says that it came late; None where it says neither.
        file: the platform's number of the file, which grows with time; 0 without one.
    """

    who: Who
    place: PurePosixPath
    late: bool | None = None
    file: int = 0


@dataclass(frozen=True)
class Told:
    """What a platform's list says of what somebody handed in, beside the files. Times are in UTC.

    Attributes:
        number: as in `Who`.
        group: the name of the group that handed in, if one did.
        due: until when this person had time, if the list says so.
        extended: whether `due` is an extension for this person.
        files: the platform's numbers of the files of this attempt.
    """

    number: str
    received: datetime | None = None
    late: bool | None = None
    due: datetime | None = None
    extended: bool = False
    attempt: int = 0
    files: frozenset[int] = frozenset()
    group: str = ""
