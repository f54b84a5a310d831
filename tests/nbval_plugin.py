"""How nbval compares stored outputs: exactly, but for numbers of cells that train.

What a training gives differs between processors in its last digits. In a cell with the tag `trains` a number may differ by one
unit of its last printed digit. Its digits after the point, words and shapes, and all of every other cell, stay exact.
"""

import re
from decimal import Decimal

from nbval.plugin import IPyNbCell

# A number of prose or of a table: not a part of a word or a name (float32, GPT-2, ch11.pairs), of a version (2.13.0),
# or the unit's (2d). A thousand may have its comma.
NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z][-−])(?P<sign>[-−+]?)(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
    r"(?:(?P<point>\.)(?P<part>[0-9]*))?(?P<exponent>e[-+]?[0-9]+)?(?!\.?[0-9])(?(point)|(?![A-Za-z_]))"
)
# Sizes: (3, 4), [64], (5,), 3 × 4, 3x4
SHAPE = re.compile(r"[(\[]\s*[0-9]+\s*(?:,\s*[0-9]+\s*)*,?\s*[)\]]|[0-9]+(?:\s*[×x]\s*[0-9]+)+(?![\w.])")


def pytest_itemcollected(item):
    if isinstance(item, IPyNbCell) and "trains" in item.cell.metadata.get("tags", []):
        exact = item.sanitize
        item.sanitize = lambda value: Trained(text) if isinstance(text := exact(value), str) else text


class Trained(str):
    """An output of a cell that trains: equal to another that is the same but for the last digits of its numbers."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return same_but_for_last_digits(self, other)

    def __ne__(self, other):
        return not self == other


def same_but_for_last_digits(one: str, other: str) -> bool:
    numbers, others = printed_numbers(one), printed_numbers(other)
    if len(numbers) != len(others) or not all(map(near, numbers, others)):
        return False
    words, other_words = between(one, numbers), between(other, others)
    if any(len(a[0]) != len(b[0]) for a, b in zip(numbers, others, strict=True)):  # 9.9 and 10.0 move the columns of a table
        words, other_words = map(without_widths, words), map(without_widths, other_words)
    return list(words) == list(other_words)


def printed_numbers(text: str) -> list[re.Match]:
    shapes = [shape.span() for shape in SHAPE.finditer(text)]
    return [n for n in NUMBER.finditer(text) if not any(start <= n.start() < end for start, end in shapes)]


def near(one: re.Match, other: re.Match) -> bool:
    if form(one) != form(other):
        return False
    a, b = (Decimal(number[0].replace(",", "").replace("−", "-")) for number in (one, other))
    return abs(a - b) <= min(Decimal(1).scaleb(value.as_tuple().exponent) for value in (a, b))


def form(number: re.Match) -> tuple:
    return number["point"], len(number["part"] or ""), number["exponent"] is None, "," in number["whole"]


def between(text: str, numbers: list[re.Match]) -> list[str]:
    edges = [0, *(edge for number in numbers for edge in number.span()), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def without_widths(words: str) -> str:
    """Blanks beside a number, and rules, are as wide as their column."""
    return re.sub(r"([-─=])\1+", r"\1", re.sub(r" +", " ", words)).strip(" ")
