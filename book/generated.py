"""The pages that no one writes by hand: the index and the reference pages."""

import re
from dataclasses import dataclass
from itertools import groupby

from autograder.chapters import HEADER, Chapter, Exercise
from book.pages import anchor
from book.registry import Formula, Registry
from book.tables import evidence

RECEIPT_MEANS = {
    "proved": "checked by a proof assistant",
    "derived": "derived with symbols by a computer algebra system, in a test",
    "computed": "equal to an independent computation up to a stated bound, in a test",
    "measured": "measured by an experiment of ours, with its script, seeds and interval",
    "reported": "from the literature, cited, not checked here",
    "analogy": "a way of seeing, not a claim",
    "open": "not known",
    "refuted": "claimed by others and shown false by a test",
    "erratum": "printed wrong in a text that the course grew from; the test shows the right statement",
}


@dataclass(frozen=True)
class Card:
    """What the index says of a chapter, from its first cell."""

    chapter: Chapter
    title: str
    promise: str
    reading: int
    working: int
    exercises: list[Exercise]


class CardError(Exception):
    """A chapter's first cell that does not have the form of CONTRIBUTING.md."""


def card(chapter: Chapter) -> Card:
    """Read a chapter's first cell.

    Raises:
        CardError: if its title, promise or time is missing.
    """
    text = chapter.notebook.cells[0].source
    title, promise = re.match(r"# (.+)", text), re.search(r"^\*([^*].*)\*$", text, re.MULTILINE)
    time = re.search(r"\*\*Time\*\* (\d+) minutes to read · (\d+) minutes of exercises", text)
    for found, what in (
        (title, "# Title"),
        (promise, "*one sentence that promises*"),
        (time, "**Time** 45 minutes to read · 90 minutes of exercises"),
    ):
        if not found:
            raise CardError(f"{chapter.stem}: the first cell lacks a line of the form: {what}")
    return Card(chapter, title[1].strip(), promise[1].strip(), int(time[1]), int(time[2]), chapter.exercises)


def index(parts: list[tuple[str, list[Card]]]) -> str:
    """The first page: what the course is, and its chapters by part."""
    cards = [card for _, members in parts for card in members]
    exercises = sum(len(card.exercises) for card in cards)
    lines = [
        "# The Mathematics of Transformers",
        "",
        ":::{div} promise",
        "How a language model works, one formula at a time: each one derived, computed, and tested by you.",
        ":::",
        "",
        "Every chapter is a notebook. It starts with a puzzle, takes you from an idea to a formula to the code that is the formula, "
        "gives you a figure to play with, and asks you to write the next step yourself. An autograder marks what you write and names the mistake.",
        "",
        "Each formula has a *receipt* that says how we know it: a proof, a derivation, a computation or a measurement that runs "
        "whenever the course is tested. What is only reported, or an analogy, or open, is marked as that. "
        "The [formulas](reference/formulas.md) page has them all; [symbols and shapes](reference/symbols.md) fixes what each letter means.",
        "",
        f"{_count(len(cards), 'chapter')} and {_count(exercises, 'exercise')} so far. Work through a chapter with **Open as notebook** on its page.",
    ]
    for part, members in parts:
        lines += ["", f"## {part}", ""]
        for card in members:
            stem = card.chapter.stem
            lines += [
                "::::{div} chapter-card",
                f"**[{card.title}]({stem}/{stem}.ipynb)**",
                "",
                card.promise,
                "",
                f"[{card.reading} min to read · {_count(len(card.exercises), 'exercise')}, {card.working} min]{{.facts}}",
                "::::",
                "",
            ]
    return _lines(lines)


def formulas(registry: Registry, there: set[str]) -> str:
    """All formulas with their receipts, by chapter."""
    lines = ["# Formulas and their receipts", "", "A receipt says how we know. From strong to weak:", ""]
    counts = {kind: sum(formula.receipt == kind for formula in registry.formulas.values()) for kind in RECEIPT_MEANS}
    lines += ["| Receipt | Means | Formulas |", "|:---|:---|---:|"]
    lines += [f"| [{kind}]{{.receipt .receipt-{kind}}} | {means} | {counts[kind]} |" for kind, means in RECEIPT_MEANS.items()]
    for chapter, title in registry.chapters.items():
        if members := registry.of(chapter):
            lines += ["", f"## {title}", ""]
            if chapter in there:
                lines += [f"[To the chapter](../{chapter}/{chapter}.ipynb)", ""]
            for formula in members:
                lines += _formula(formula)
    return _lines(lines)


def _formula(formula: Formula) -> list[str]:
    named = f"`{formula.evidence}`" if formula.evidence else ""
    return [
        f"(formula-{formula.id})=",
        "::::{div} formula",
        f"**{formula.name}** [{formula.receipt}]{{.receipt .receipt-{formula.receipt}}} [{formula.id}]{{.formula-id}}",
        "",
        "$$",
        re.sub(r"\n\s*\n", "\n", formula.latex),
        "$$",
        "",
        formula.does,
        "",
        *([f"[{evidence(formula)} {named}]{{.facts}}"] if evidence(formula) or named else []),
        "::::",
        "",
    ]


def glossary(registry: Registry, there: set[str]) -> str:
    """All terms in the order of the alphabet."""
    lines = ["# Glossary", "", "A term in **bold** in a chapter leads here from its first use.", "", ":::{glossary}"]
    for term in sorted(registry.terms.values(), key=lambda term: term.term.casefold()):
        where = registry.chapters[term.chapter]
        if term.chapter in there:
            where = f"[{where}](../{term.chapter}/{term.chapter}.ipynb)"
        others = [name for name in term.also if name.removesuffix("s") != term.term.removesuffix("s")]
        also = f"Also: {', '.join(others)}. " if others else ""
        lines += [term.term, "  " + re.sub(r"\s+", " ", term.definition), "", f"  [{also}{where}]{{.facts}}", ""]
    return _lines([*lines, ":::"])


def exercises(cards: list[Card]) -> str:
    """Every exercise of the book with a link to it."""
    lines = [
        "# Exercises",
        "",
        "★ takes a look back at the text, ★★★★★ an idea of your own. Minutes are those of a first try.",
        "",
    ]
    for card in cards:
        lines += [
            f"## {card.title}",
            "",
            "| Exercise | Task | Points | Difficulty | Minutes | Form |",
            "|:---|:---|---:|:---|---:|:---|",
        ]
        for exercise in card.exercises:
            task = first_words(card.chapter.notebook.cells[exercise.header].source)
            lines.append(
                f"| {{ref}}`{exercise.id} <{anchor(exercise.id)}>` | {task} | {exercise.points:g} | {'★' * exercise.stars} | {exercise.minutes} | {exercise.form} |"
            )
        lines.append("")
    return _lines(lines)


def first_words(text: str, count: int = 14) -> str:
    """The first words of an exercise's task, never inside mathematics or code."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*$", "\n", HEADER.sub("", text), flags=re.MULTILINE | re.DOTALL)
    text = text.split("<details>")[0].strip()
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.split("\n\n")[0]).replace("**", "")
    words = [match[0] for match in re.finditer(r"(?:\$[^$]*\$|`[^`]*`|[^\s$`])+", text)]
    short = " ".join(words[:count]).replace("|", r"\|")
    return short if len(words) <= count else short.rstrip(".,:;") + " …"


def bibliography(registry: Registry) -> str:
    """The sources in the order of the alphabet."""
    lines = ["# Bibliography", "", "Every entry was looked up. Chapters link the source where they use it.", ""]
    lines += [
        f"- {source.text.rstrip('.')}. [{re.sub(r'^https?://', '', source.url)}]({source.url})"
        for source in sorted(registry.sources.values(), key=lambda s: s.text.casefold())
    ]
    return _lines(lines)


def errata(registry: Registry) -> str:
    """What the texts that the course grew from have wrong."""
    lines = [
        "# Errata",
        "",
        "The course grew from texts of others. Each statement below stood in one of them and is false or incomplete; the named test shows what is right.",
    ]
    corrected = [
        (f.chapter, f.name, f.wrong or f.does, f.right or f.limits, f.evidence)
        for f in registry.formulas.values()
        if f.receipt in ("erratum", "refuted")
    ]
    corrected += [(e.chapter, "", e.wrong, e.right, e.check) for e in registry.errata.values()]
    order = list(registry.chapters)
    corrected.sort(key=lambda row: order.index(row[0]))
    for chapter, rows in groupby(corrected, key=lambda row: row[0]):
        lines += ["", f"## {registry.chapters[chapter]}", ""]
        for _, name, wrong, right, check in rows:
            lines += [
                "::::{div} erratum",
                *([f"**{name}**", ""] if name else []),
                f"[Wrong]{{.wrong-word}} {wrong}",
                "",
                f"[Right]{{.right-word}} {right}",
                "",
                f"[Shown by `{check}`]{{.facts}}",
                "::::",
                "",
            ]
    return _lines(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _lines(lines: list[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
