"""The first page of the book."""

from collections import Counter

from book.generated import Card
from book.pages import place
from book.registry import EVIDENCE, KINDS, Registry
from book.render import render


def index(parts: list[tuple[str, list[Card]]], registry: Registry) -> str:
    """What the course is, its chapters by part, and how its formulas are known.

    Args:
        parts: captions with the chapters of each part, in the order of the book.
        registry: counts the formulas by receipt.
    """
    cards = [card for _, members in parts for card in members]
    return render(
        "index.md",
        parts=parts,
        cards=cards,
        shortest=[card for card in cards if card.shortest],
        exercises=sum(len(card.exercises) for card in cards),
        counts=Counter(formula.receipt for formula in registry.formulas.values()),
        kinds=KINDS,
        evidence=EVIDENCE,
        place=place,
    )
