"""The registries for machines: files at the root of the site."""

import json

from book.registry import Registry
from book.terms import Places


def files(registry: Registry, places: dict[str, Places]) -> dict[str, str]:
    """`formulas.json` and `glossary-data.txt` by name."""
    return {"formulas.json": formulas(registry), "glossary-data.txt": glossary(registry, places)}


def formulas(registry: Registry) -> str:
    """Every formula with its receipt and the address of its entry, as a JSON list."""
    entries = [
        {name: value for name, value in vars(formula).items() if value}
        | {"chapter_title": registry.chapters[formula.chapter], "page": f"reference/formulas.html#formula-{formula.id}"}
        for formula in registry.formulas.values()
    ]
    return json.dumps(entries, ensure_ascii=False, indent=1) + "\n"


def glossary(registry: Registry, places: dict[str, Places]) -> str:
    """Every term as a line of fields between tabs; the first line names them. Mathematics is LaTeX between dollars."""
    rows = [("term", "also", "introduced", "used", "definition")]
    for term in registry.terms.values():
        place = places[term.term]
        first = f"{term.chapter}#{place.section}" if place.section else term.chapter
        rows.append((term.term, "; ".join(term.also), first, "; ".join(place.used), " ".join(term.definition.split())))
    return "".join("\t".join(row) + "\n" for row in rows)
