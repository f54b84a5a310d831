"""The first page of the book."""

from collections import Counter

from book import transformer_map
from book.generated import Card
from book.names import number
from book.registry import EVIDENCE, KINDS, Registry
from book.render import render


def index(cards: list[Card], parts: dict[str, list[str]], registry: Registry) -> str:
    """What the course is, the map of a transformer, all chapters by part, and how the formulas are known.

    Args:
        cards: the chapters that are written, in the order of the book.
        parts: the stems of the chapters of each part, written or not (`transformer_map.parts`).
        registry: has the titles, and counts the formulas by receipt.
    """
    told = {card.chapter.stem: card for card in cards}
    return render(
        "index.md",
        parts=parts,
        cards=cards,
        told=told,
        titles=registry.chapters,
        map=transformer_map.whole(registry.chapters, set(told)),
        number=number,
        shortest=[card for card in cards if card.shortest],
        exercises=sum(len(card.exercises) for card in cards),
        counts=Counter(formula.receipt for formula in registry.formulas.values()),
        kinds=KINDS,
        evidence=EVIDENCE,
    )
