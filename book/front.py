"""The first page of the book."""

from collections import Counter

from book.generated import RECEIPT_MEANS, Card
from book.pages import place
from book.registry import Registry

FORMULA = r"\mathrm{softmax}\!\left(\frac{\htmlClass{query}{Q}\,\htmlClass{key}{K}^{\top}}{\sqrt{d_k}}\right)\htmlClass{value}{V}"


def index(parts: list[tuple[str, list[Card]]], registry: Registry) -> str:
    """What the course is, its chapters by part, and how its formulas are known.

    Args:
        parts: captions with the chapters of each part, in the order of the book.
        registry: counts the formulas by receipt.
    """
    cards = [card for _, members in parts for card in members]
    exercises = sum(len(card.exercises) for card in cards)
    kinds = Counter(formula.receipt for formula in registry.formulas.values())
    lines = [
        "# The Mathematics of Transformers",
        "",
        ":::{div} promise",
        "How a language model works, one formula at a time: each one derived, computed, and tested by you.",
        ":::",
        "",
        ":::{div} hero-formula",
        f"$$\n{FORMULA}\n$$",
        ":::",
        "",
        "Here [queries]{.of-query} look for [keys]{.of-key}, and the output is an average of [values]{.of-value}. "
        "These colours mean the same in every figure of the book.",
        "",
        "Every chapter is a notebook. It starts with a puzzle, takes you from an idea to a formula to the code that is the formula, "
        "gives you a figure to play with, and asks you to write the next step yourself. An autograder marks what you write and names the mistake.",
        "",
        *_ways_in(cards),
        "",
        f'<ul class="chapter-facts"><li>{len(cards)} chapters</li><li>{exercises} exercises</li>'
        f"<li>{sum(kinds.values())} formulas with receipts</li></ul>",
    ]
    for part, members in parts:
        lines += ["", f"## {part}", "", ":::::{div} part-cards"]
        for card in members:
            stem = card.chapter.stem
            lines += [
                "::::{div} chapter-card",
                f"[{place(stem)}]{{.facts}}",
                "",
                f"**[{card.title}]({stem}/{stem}.ipynb)**",
                "",
                card.promise,
                "",
                f"[{card.reading} min to read · {len(card.exercises)} exercises, {card.working} min]{{.facts}}",
                "::::",
            ]
        lines += [":::::"]
    lines += [
        "",
        "## How we know",
        "",
        "Each formula has a *receipt*: what stands behind it, and a line that says what that does not show. "
        "The first four kinds run whenever the course is tested.",
        "",
        "| Receipt | What stands behind the formula | Formulas |",
        "|:---|:---|---:|",
    ]
    lines += [
        f"| [{kind}]{{.receipt .receipt-{kind}}} | {means} | {kinds[kind]} |"
        for kind, means in RECEIPT_MEANS.items()
        if kinds[kind]
    ]
    return "\n".join(lines) + "\n"


def _ways_in(cards: list[Card]) -> list[str]:
    """Where to go from here: the first chapter, and the pages to look things up in."""
    links = [f"[Begin with the first chapter]({card.chapter.stem}/{card.chapter.stem}.ipynb)" for card in cards[:1]]
    links += [
        "[Formulas](reference/formulas.md)",
        "[Exercises](reference/exercises.md)",
        "[Symbols and shapes](reference/symbols.md)",
    ]
    return [":::{div} ways-in", *(f"- {link}" for link in links), ":::"]
