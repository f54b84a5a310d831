"""The registries for machines: files at the root of the site."""

import json
from collections.abc import Iterable
from pathlib import Path

from autograder.authoring.chapters import Chapter
from book import symbols
from book.pages import equation_anchor, equations
from book.registry import Registry
from book.terms import Places


def files(registry: Registry, places: dict[str, Places], chapters: Iterable[Chapter], letters: Path) -> dict[str, str]:
    """`formulas.json` and `glossary.tsv` by name.

    Args:
        registry: the formulas and terms.
        places: where each term stands.
        chapters: of the book, for the numbers of equations.
        letters: `book/reference/symbols.md`.
    """
    return {"formulas.json": formulas(registry, chapters, letters), "glossary.tsv": glossary(registry, places)}


def formulas(registry: Registry, chapters: Iterable[Chapter], letters: Path) -> str:
    """Every formula with its receipt, its equations in the chapters, what its symbols mean, and the address of its entry.

    A symbol has each meaning that the table of symbols gives it in the formula's chapter; none if it has no row there.
    """
    rows = symbols.table(letters)
    shown: dict[str, list[dict[str, str]]] = {}
    for chapter in chapters:
        for id, number in equations(chapter).items():
            page = f"{chapter.stem}/{chapter.stem}.html#{equation_anchor(chapter, id)}"
            shown.setdefault(id, []).append({"number": number, "page": page})

    def entry(formula) -> dict:
        here = formula.chapter.partition("_")[0]
        means = {symbol: [row.text for row in symbols.meanings(symbol, here, rows)] for symbol in symbols.symbols(formula.latex)}
        return {name: value for name, value in vars(formula).items() if value} | {
            "chapter_title": registry.chapters[formula.chapter],
            "equations": shown.get(formula.id, []),
            "symbols": means,
            "page": f"reference/formulas.html#formula-{formula.id}",
        }

    return json.dumps([entry(formula) for formula in registry.formulas.values()], ensure_ascii=False, indent=1) + "\n"


def glossary(registry: Registry, places: dict[str, Places]) -> str:
    """Every term as a line of fields between tabs; the first line names them. Mathematics is LaTeX between dollars."""
    rows = [("term", "also", "introduced", "used", "definition")]
    for term in registry.terms.values():
        place = places[term.term]
        first = f"{term.chapter}#{place.section}" if place.section else term.chapter
        rows.append((term.term, "; ".join(term.also), first, "; ".join(place.used), " ".join(term.definition.split())))
    return "".join("\t".join(row) + "\n" for row in rows)
