"""The pages that no one writes by hand: the index and the reference pages."""

import inspect
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rich.console import Console

from autograder.authoring.chapters import HEADER, Chapter, Exercise
from book import evidence_pages
from book.mathematics import typeset
from book.pages import anchor, solution
from book.registry import CORRECTIONS, KINDS, Formula, Registry, Term
from book.render import render
from book.tables import evidence
from book.terms import Places
from course import profile
from course.cookbook import PRESETS, RECIPES, arguments_of, table

WIDTH = 84  # columns of what a terminal prints


@dataclass(frozen=True)
class Card:
    """What the index says of a chapter, from its first cell."""

    chapter: Chapter
    title: str
    promise: str
    reading: int
    working: int
    exercises: list[Exercise]
    shortest: bool = False  # whether it is on the fast path


FAST = "**In a hurry** On the fast path."


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
    return Card(chapter, title[1].strip(), promise[1].strip(), int(time[1]), int(time[2]), chapter.exercises, FAST in text)


def formulas(
    registry: Registry, there: set[str], records: Mapping[str, list[str]], proofs: Mapping[str, list[str]] = MappingProxyType({})
) -> str:
    """All formulas with their receipts, by chapter, with a filter.

    Args:
        registry: the formulas.
        there: the chapters that the book has.
        records: the stems of the records that a test reads, by its name as evidence.
        proofs: the lines that show a theorem, by its name as evidence.
    """
    counts = Counter(formula.receipt for formula in registry.formulas.values())
    chapters = {stem: title for stem, title in registry.chapters.items() if registry.of(stem)}

    def row(formula: Formula) -> dict:
        links = [_shown_by(formula.evidence)] if formula.evidence else []
        links += [
            f"{{ref}}`experiment and record <{evidence_pages.experiment_label(stem)}>`"
            for stem in records.get(formula.evidence, [])
        ]
        return {
            "formula": formula,
            "chapter": chapter_id(formula.chapter),
            "latex": re.sub(r"\n\s*\n", "\n", formula.latex),
            "does": typeset(formula.does),
            "said": typeset(evidence(formula)),
            "proof": proofs.get(formula.evidence, []),
            "links": links,
        }

    return render(
        "formulas.md",
        chapters={chapter_id(stem): title for stem, title in chapters.items()},
        receipts={kind: f"{kind} ({counts[kind]})" for kind in KINDS if counts[kind]},
        kinds=KINDS,
        counts=counts,
        sections=[(_to(stem, registry, there), [row(formula) for formula in registry.of(stem)]) for stem in chapters],
    )


def _shown_by(evidence: str) -> str:
    """A link to a test or theorem."""
    return f"{{ref}}`{evidence.rpartition('::')[2]} <{evidence_pages.label(evidence)}>`"


def _to(chapter: str, registry: Registry, there: set[str]) -> str:
    """A chapter's title, with a link from a reference page if the book has it."""
    title = registry.chapters[chapter]
    return f"[{title}](../{chapter}/{chapter}.ipynb)" if chapter in there else title


def chapter_id(stem: str) -> str:
    """ch04_attention is ch04."""
    return stem.partition("_")[0]


def glossary(registry: Registry, there: set[str], places: dict[str, Places]) -> str:
    """All terms in the order of the alphabet: what each means, where it comes in and where it comes back.

    Args:
        registry: the terms.
        there: the chapters that the book has.
        places: where each term stands (`book.terms.places`).
    """

    def facts(term: Term) -> list[str]:
        place = places[term.term]
        first = _to(term.chapter, registry, there)
        if place.section:
            first += f", [{place.heading}](../{term.chapter}/{term.chapter}.ipynb#{place.section})"
        others = [name for name in term.also if name.removesuffix("s") != term.term.removesuffix("s")]
        said = [f"Also: {', '.join(others)}."] if others else []
        said.append(f"Introduced in {first}.")
        if place.used:
            said.append(f"Used in {', '.join(_to(chapter, registry, there) for chapter in place.used)}.")
        return said

    terms = sorted(registry.terms.values(), key=lambda term: term.term.casefold())
    return render("glossary.md", terms=[(term, facts(term)) for term in terms])


def exercises(cards: list[Card], titles: Mapping[str, str] = MappingProxyType({})) -> str:
    """Every exercise of the book with a link to it, and a filter.

    Args:
        cards: the chapters.
        titles: of the exercises; one without shows the first words of its task.
    """
    every = [exercise for card in cards for exercise in card.exercises]
    return render(
        "exercises.md",
        cards=cards,
        every=every,
        hours=round(sum(exercise.minutes for exercise in every) / 60),
        chapters={card.chapter.id: card.title for card in cards if card.exercises},
        stars={f"stars-{n}": f"{n} of 5" for n in sorted({exercise.stars for exercise in every})},
        forms={form: form for form in sorted({exercise.form for exercise in every})},
        anchor=anchor,
        task=lambda card, exercise: titles.get(exercise.id) or first_words(card.chapter.notebook.cells[exercise.header].source),
    )


def solutions(cards: list[Card]) -> str:
    """The solution of every exercise with a link back to its task; made only for a build that shows solutions."""
    return render(
        "solutions.md",
        cards=cards,
        anchor=anchor,
        solution=lambda card, exercise: solution(card.chapter.notebook.cells[exercise.answer], exercise).source,
    )


def first_words(text: str, count: int = 14) -> str:
    """The first words of an exercise's task, never inside mathematics or code."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*$", "\n", HEADER.sub("", text), flags=re.MULTILINE | re.DOTALL)
    text = text.split("<details>")[0].strip()
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.split("\n\n")[0]).replace("**", "")
    words = [match[0] for match in re.finditer(r"(?:\$[^$]*\$|`[^`]*`|[^\s$`])+", text)]
    short = " ".join(words[:count]).replace("|", r"\|")
    return short if len(words) <= count else short.rstrip(".,:;") + " …"


def cookbook(model: str = "llama-3-8b") -> str:
    """The recipes of `course.cookbook`, each with its command and what that prints for a known model, and `course.profile`."""
    recipes = []
    for name, recipe in RECIPES.items():
        question, text = (recipe.__doc__ or "").split("\n", 1)
        recipes.append(
            {
                "name": name,
                "question": question.strip(),
                "text": inspect.cleandoc(text),
                "options": [option.replace("_", "-") for option in arguments_of(recipe)],
                "printed": table(recipe(PRESETS[model])),
            }
        )
    paper = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    profile.show(profile.profile(model), paper)
    all_ = "\n".join(line.rstrip() for line in paper.file.getvalue().splitlines())
    return render("cookbook.md", model=model, presets=PRESETS, recipes=recipes, profile=all_)


def bibliography(registry: Registry, chapters: Iterable[Chapter]) -> str:
    """The sources in the order of the alphabet, with the chapters that link them."""
    texts = {c.stem: "\n".join(cell.source for cell in c.notebook.cells if cell.cell_type == "markdown") for c in chapters}
    sources = [
        (source, [_to(stem, registry, set(texts)) for stem, text in texts.items() if f"]({source.url}" in text])
        for source in sorted(registry.sources.values(), key=lambda s: s.text.casefold())
    ]
    return render("bibliography.md", sources=sources)


def errata(registry: Registry) -> str:
    """What the literature and the texts that the course grew from have wrong."""
    rows = [
        {
            "chapter": f.chapter,
            "target": "",
            "name": f"{{ref}}`{f.name} <formula-{f.id}>`",
            "wrong": typeset(f.wrong or f.does),
            "right": typeset(f.right or f.limits),
            "shown_by": _shown_by(f.evidence),
        }
        for f in registry.formulas.values()
        if f.receipt in CORRECTIONS
    ]
    rows += [
        {
            "chapter": e.chapter,
            "target": f"erratum-{e.id}",
            "name": "",
            "wrong": e.wrong,
            "right": e.right,
            "shown_by": _shown_by(e.check),
        }
        for e in registry.errata.values()
    ]
    sections = [(title, [row for row in rows if row["chapter"] == stem]) for stem, title in registry.chapters.items()]
    return render("errata.md", sections=[(title, rows) for title, rows in sections if rows])
