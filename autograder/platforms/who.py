"""Somebody as a learning platform names them."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache


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
