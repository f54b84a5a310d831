"""The pages that no one writes by hand: the index and the reference pages."""

import html
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from autograder.chapters import HEADER, Chapter, Exercise
from book import evidence_pages
from book.pages import anchor, solution
from book.registry import CORRECTIONS, KINDS, Formula, Registry
from book.tables import evidence
from book.terms import Places
from course.cookbook import PRESETS, RECIPES, arguments_of, table


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
    all_ = registry.formulas.values()
    counts = {kind: sum(formula.receipt == kind for formula in all_) for kind in KINDS}
    chapters = {c: title for c, title in registry.chapters.items() if registry.of(c)}
    lines = [
        "# Formulas and their receipts",
        "",
        *_filter(
            ".formula",
            "formulas",
            chapter={chapter_id(c): title for c, title in chapters.items()},
            receipt={kind: f"{kind} ({n})" for kind, n in counts.items() if n},
        ),
        "<details><summary>A receipt says how we know</summary>",
        "",
        "| Receipt | Means | Formulas |",
        "|:---|:---|---:|",
        *(f"| [{name}]{{.receipt .receipt-{name}}} | {kind.means} | {counts[name]} |" for name, kind in KINDS.items()),
        "",
        "</details>",
    ]
    for chapter, title in chapters.items():
        lines += ["", f"## {title}", ""]
        for formula in registry.of(chapter):
            lines += _formula(
                formula, _to(chapter, registry, there), records.get(formula.evidence, []), proofs.get(formula.evidence, [])
            )
    return _lines(lines)


def _filter(items: str, what: str, **choices: dict[str, str]) -> list[str]:
    """The form that `reference.js` brings to life; without the script it stays hidden."""
    fields = ['<label>Words<input type="search" name="words" autocomplete="off"></label>']
    for name, values in choices.items():
        options = "".join(f'<option value="{value}">{html.escape(shown)}</option>' for value, shown in values.items())
        fields.append(f'<label>{name.capitalize()}<select name="{name}"><option value="">all</option>{options}</select></label>')
    return [
        f'<form class="filter" role="search" aria-label="Filter the {what}" data-items="{items}" data-what="{what}" hidden>',
        *fields,
        '<button type="reset">Show all</button><button type="button" data-copy-link>Copy link</button><output></output>',
        '</form><script defer src="../_static/reference.js"></script>',
        "",
    ]


def _formula(formula: Formula, chapter: str, records: list[str], proof: list[str]) -> list[str]:
    said = evidence(formula)
    links = (
        [f"{{ref}}`{formula.evidence.rpartition('::')[2]} <{evidence_pages.label(formula.evidence)}>`"]
        if formula.evidence
        else []
    )
    links += [f"{{ref}}`experiment and record <{evidence_pages.experiment_label(stem)}>`" for stem in records]
    return [
        f"(formula-{formula.id})=",
        f"::::{{div}} formula is-{chapter_id(formula.chapter)} is-{formula.receipt}",
        f"**{formula.name}** [{formula.receipt}]{{.receipt .receipt-{formula.receipt}}} [{formula.id}]{{.formula-id}}",
        "",
        "$$",
        re.sub(r"\n\s*\n", "\n", formula.latex),
        "$$",
        "",
        formula.does,
        "",
        *([f"[{said}]{{.facts}}", ""] if said else []),
        *proof,
        f"[{' · '.join([chapter, *links])}]{{.facts}}",
        "::::",
        "",
    ]


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
    lines = ["# Glossary", "", *_filter("dl.glossary > dt", "terms")]
    lines += ["A term in **bold** in a chapter leads here from its first use.", "", ":::{glossary}"]
    for term in sorted(registry.terms.values(), key=lambda term: term.term.casefold()):
        place = places[term.term]
        first = _to(term.chapter, registry, there)
        if place.section:
            first += f", [{place.heading}](../{term.chapter}/{term.chapter}.ipynb#{place.section})"
        others = [name for name in term.also if name.removesuffix("s") != term.term.removesuffix("s")]
        facts = [f"Also: {', '.join(others)}."] if others else []
        facts.append(f"Introduced in {first}.")
        if place.used:
            facts.append(f"Used in {', '.join(_to(chapter, registry, there) for chapter in place.used)}.")
        lines += [term.term, "  " + re.sub(r"\s+", " ", term.definition), "", f"  [{' '.join(facts)}]{{.facts}}", ""]
    return _lines([*lines, ":::"])


def exercises(cards: list[Card]) -> str:
    """Every exercise of the book with a link to it, and a filter."""
    every = [exercise for card in cards for exercise in card.exercises]
    forms = {form: form for form in sorted({exercise.form for exercise in every})}
    stars = {f"stars-{n}": f"{n} of 5" for n in sorted({exercise.stars for exercise in every})}
    minutes, points = sum(e.minutes for e in every), sum(e.points for e in every)
    lines = [
        "# Exercises",
        "",
        f"{_count(len(every), 'exercise')}, {points:g} points, about {_count(round(minutes / 60), 'hour')}. "
        "★ takes a look back at the text, ★★★★★ an idea of your own. Minutes are those of a first try.",
        "",
        *_filter(
            ".entry",
            "exercises",
            chapter={card.chapter.id: card.title for card in cards if card.exercises},
            difficulty=stars,
            form=forms,
        ),
    ]
    for card in cards:
        if card.exercises:
            lines += [f"## {card.title}", ""]
        for exercise in card.exercises:
            task = first_words(card.chapter.notebook.cells[exercise.header].source)
            facts = f"{_count(exercise.points, 'point')} · {'★' * exercise.stars} · {exercise.minutes} min · {exercise.form}"
            lines += [
                f"::::{{div}} entry is-{card.chapter.id} is-stars-{exercise.stars} is-{exercise.form}",
                f"{{ref}}`{exercise.id} <{anchor(exercise.id)}>` {task}",
                "",
                facts,
                "::::",
                "",
            ]
    return _lines(lines)


def solutions(cards: list[Card]) -> str:
    """The solution of every exercise with a link back to its task; made only for a build that shows solutions."""
    lines = ["# Solutions", "", "Try first: a solution read is not a solution found.", ""]
    for card in cards:
        if card.exercises:
            lines += [f"## {card.title}", ""]
        for exercise in card.exercises:
            lines += [f"{{ref}}`To the task of {exercise.id} <{anchor(exercise.id)}>`", ""]
            lines += [solution(card.chapter.notebook.cells[exercise.answer], exercise).source, ""]
    return _lines(lines)


def first_words(text: str, count: int = 14) -> str:
    """The first words of an exercise's task, never inside mathematics or code."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*$", "\n", HEADER.sub("", text), flags=re.MULTILINE | re.DOTALL)
    text = text.split("<details>")[0].strip()
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.split("\n\n")[0]).replace("**", "")
    words = [match[0] for match in re.finditer(r"(?:\$[^$]*\$|`[^`]*`|[^\s$`])+", text)]
    short = " ".join(words[:count]).replace("|", r"\|")
    return short if len(words) <= count else short.rstrip(".,:;") + " …"


def cookbook(model: str = "llama-3-8b") -> str:
    """The recipes of `course.cookbook`, each with its command and what that prints for a known model."""
    lines = [
        "# Cookbook",
        "",
        "Recipes that end in a number for your own model. Each is a function of `course.cookbook` and a command; "
        f"the examples are for the shape of `{model}`. Give your own sizes instead of a preset, or a preset with some of them changed:",
        "",
        "```bash",
        "python -m course.cookbook kv-cache --layers 16 --d-model 2048 --heads 32 --kv-heads 8 --tokens 4096",
        "python -m course.cookbook kv-cache --help",
        "```",
        "",
        f"Presets: {', '.join(f'`{name}`' for name in PRESETS)}.",
    ]
    for name, recipe in RECIPES.items():
        question, text = (recipe.__doc__ or "").split("\n", 1)
        options = ", ".join(f"`--{option.replace('_', '-')}`" for option in arguments_of(recipe))
        lines += [
            "",
            f"({'recipe-' + name})=",
            f"## {question.strip()}",
            "",
            inspect.cleandoc(text),
            *(["", f"Takes {options} too."] if options else []),
            "",
            "```bash",
            f"python -m course.cookbook {name} --preset {model}",
            "```",
            "",
            "```text",
            table(recipe(PRESETS[model])),
            "```",
        ]
    return _lines(lines)


def bibliography(registry: Registry, chapters: Iterable[Chapter]) -> str:
    """The sources in the order of the alphabet, with the chapters that link them."""
    lines = ["# Bibliography", "", "Every entry was looked up. Chapters link the source where they use it.", ""]
    texts = {c.stem: "\n".join(cell.source for cell in c.notebook.cells if cell.cell_type == "markdown") for c in chapters}
    for source in sorted(registry.sources.values(), key=lambda s: s.text.casefold()):
        used = [_to(stem, registry, set(texts)) for stem, text in texts.items() if f"]({source.url}" in text]
        lines += [
            f"(source-{source.key})=",
            "::::{div} source",
            f"{source.text.rstrip('.')}. [{re.sub(r'^https?://', '', source.url)}]({source.url})",
            *([f"[In {', '.join(used)}]{{.facts}}"] if used else []),
            "::::",
            "",
        ]
    return _lines(lines)


def errata(registry: Registry) -> str:
    """What the literature and the texts that the course grew from have wrong."""
    lines = [
        "# Errata",
        "",
        "Each statement below stood in a text that the course grew from, or is common in the literature, and is false or incomplete. "
        "The named test shows what is right, whenever the course is tested.",
    ]
    corrected = [
        (f.chapter, f"{{ref}}`{f.name} <formula-{f.id}>`", f.wrong or f.does, f.right or f.limits, f.evidence, "")
        for f in registry.formulas.values()
        if f.receipt in CORRECTIONS
    ]
    corrected += [(e.chapter, "", e.wrong, e.right, e.check, f"(erratum-{e.id})=") for e in registry.errata.values()]
    order = list(registry.chapters)
    corrected.sort(key=lambda row: order.index(row[0]))
    for chapter, rows in groupby(corrected, key=lambda row: row[0]):
        lines += ["", f"## {registry.chapters[chapter]}", ""]
        for _, name, wrong, right, check, target in rows:
            lines += [
                *([target] if target else []),
                "::::{div} erratum",
                *([f"**{name}**", ""] if name else []),
                f"[Wrong]{{.wrong-word}} {wrong}",
                "",
                f"[Right]{{.right-word}} {right}",
                "",
                f"[Shown by {{ref}}`{check.rpartition('::')[2]} <{evidence_pages.label(check)}>`]{{.facts}}",
                "::::",
                "",
            ]
    return _lines(lines)


def _count(number: float, what: str) -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}"


def _lines(lines: list[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
