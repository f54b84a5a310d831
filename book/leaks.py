"""Which of many lines a text tells: all of them are looked for at once, so that time grows with the text and not with their number."""

from collections import defaultdict
from collections.abc import Iterable

LONG = 40  # characters; a longer line is looked for inside others, too
WIDTH = LONG // 2  # wherever a long line is in a text, one of the blocks of this width that the text is cut into is whole in it


class Lines:
    """Lines that no text should tell.

    Args:
        lines: as `strip` leaves them.
    """

    def __init__(self, lines: Iterable[str]):
        self.all = set(lines)
        self._blocks: dict[str, list[tuple[str, int]]] = defaultdict(list)  # what a block holds: a long line, from this place on
        for line in self.all:
            for place in range(WIDTH if len(line) > LONG else 0):
                self._blocks[line[place : place + WIDTH]].append((line, place))

    def inside(self, text: str) -> set[str]:
        """The long lines that are somewhere in a text."""
        found = set()
        for start in range(0, len(text), WIDTH):
            for line, place in self._blocks.get(text[start : start + WIDTH], ()):
                if start >= place and text.startswith(line, start - place):
                    found.add(line)
        return found

    def told_by(self, text: str) -> set[str]:
        """The lines that are lines of a text, white space at their ends apart, and the long ones anywhere in it."""
        return self.inside(text) | self.all.intersection(line.strip() for line in text.splitlines())
