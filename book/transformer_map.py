"""The map of the whole transformer on the first page and in chapter ch01, and the small one on each chapter's page.

Each part of the drawing and each chapter of the list has the attribute `data-chapter`, the chapter's stem, for a script that
marks what a reader has read.
"""

import json
import re
from functools import cache

from markupsafe import Markup, escape

from book import follow
from book.extension import html_of
from book.names import place
from book.registry import ROOT, RegistryError, read_yaml
from book.render import render
from course import transformer_map
from course.transformer_map import NARROW, PARTS, TEXT, WIDE, Layout, Part

FIRST = "mix"  # the part that is told of before the reader touches one
ANCHOR = "transformer-map"


def parts(captions: dict[str, str], titles: dict[str, str]) -> dict[str, list[str]]:
    """The chapters of each part of the course, those that are not written too.

    Args:
        captions: the first chapter of each part, by the part's caption (`parts.yml`).
        titles: of all chapters, in their order (`chapters.yml`).

    Raises:
        RegistryError: if a part begins with no chapter of `chapters.yml`, or the first one begins no part.
    """
    firsts = {stem: caption for caption, stem in captions.items()}
    if unknown := sorted(set(firsts) - set(titles)):
        raise RegistryError(f"parts.yml: {', '.join(unknown)}: none of the chapters in chapters.yml")
    found: dict[str, list[str]] = {}
    for stem in titles:
        if stem in firsts:
            found[firsts[stem]] = members = []
        elif not found:
            raise RegistryError(f"parts.yml: no part begins with {stem}, the first chapter")
        members.append(stem)
    return found


@cache
def _told() -> dict[str, dict[str, str]]:
    """What is said of each part, with its formula as HTML."""
    said = read_yaml(ROOT / "book" / "reference" / "map.yml")
    return {id: {"does": each["does"], "formula": html_of(rf"\displaystyle {each['latex']}")} for id, each in said.items()}


def script() -> str:
    """What `transformer-map.js` shows and the page has not: the formulas as KaTeX draws them, and the sizes of all models."""
    told = {"formulas": {id: each["formula"] for id, each in _told().items()}, "sizes": _sizes()}
    return f"const TRANSFORMER = {json.dumps(told, ensure_ascii=False)};\n"


@cache
def _sizes() -> dict[str, dict[str, list[str]]]:
    """The shape and the number of parameters of each part, by model."""
    told = {}
    for name, config in transformer_map.configs().items():
        counted, shaped = transformer_map.parameters(config), transformer_map.shapes(config)
        told[name] = {id: [shaped[id], _count(counted[id], counted["model"])] for id in PARTS}
    return told


def _count(number: int, of: int) -> str:
    """3,049,920, with its share of all parameters."""
    return "none" if not number else f"{number:,}" + (f", {number / of:.1%} of all" if number < of else "")


def chapter(stem: str, titles: dict[str, str], there: set[str], prefix: str) -> dict:
    """What a map needs of a chapter: its title, what it is called, and where it is, if it is written."""
    return {
        "stem": stem,
        "title": titles[stem],
        "place": place(stem),
        "address": f"{prefix}{stem}/{stem}.html" if stem in there else "",
    }


def whole(titles: dict[str, str], there: set[str], prefix: str = "") -> str:
    """The map as HTML: the drawing, wide and for a phone, and below it what each part is.

    Args:
        titles: of all chapters.
        there: the chapters of the book, which parts open.
        prefix: from the page to the folder of the site: "" or "../".
    """
    drawn = {name: Markup(_linked(layout, name, titles, there, prefix)) for name, layout in (("wide", WIDE), ("narrow", NARROW))}
    entries = [
        {
            "part": part,
            "does": _told()[part.id]["does"],
            "formula": Markup(re.search("<math.*</math>", _told()[part.id]["formula"], re.DOTALL)[0]),  # drawn by the script
            "chapters": [chapter(stem, titles, there, prefix) for stem in (part.chapter, *part.more) if stem in titles],
            "follow": follow.address(part.chapter, there, prefix),
        }
        for part in PARTS.values()
    ]
    layer, head = transformer_map.HEAD
    return render(
        "map.html",
        anchor=ANCHOR,
        drawn=drawn,
        entries=entries,
        first=FIRST,
        sizes=_sizes(),
        text=TEXT,
        layer=layer + 1,
        head=head + 1,
        prefix=prefix,
    )


def _linked(layout: Layout, name: str, titles: dict[str, str], there: set[str], prefix: str) -> str:
    """The drawing with each part a link to its chapter, or to what the page says of it where that is not written."""

    def link(part: Part, inside: str) -> str:
        title = titles.get(part.chapter, "")
        written = part.chapter in there
        address = f"{prefix}{part.chapter}/{part.chapter}.html" if written else f"#map-{part.id}"
        words = " ".join(re.findall(">([^<]+)</text>", inside))  # an accessible name has what is to be seen
        name = part.name if words.lower() in part.name.lower() else f"{words}: {part.name}"
        label = f"{name}. {place(part.chapter)}, {escape(title)}" if written else f"{name}, not written yet"
        shown = ' class="is-shown"' if part.id == FIRST else ""
        return f'<a href="{address}" data-part="{part.id}" data-chapter="{part.chapter}" aria-label="{label}"{shown}>{inside}</a>'

    return transformer_map.drawing(layout, link, f"map-{name}", style="")


def small(stem: str) -> str:
    """A chapter's place as a small map that leads to the whole one; empty if the drawing has no place for it."""
    here = [part.id for part in PARTS.values() if stem in (part.chapter, *part.more)]
    if not here:
        return ""
    names = ", ".join(PARTS[id].name.lower() for id in here)
    return render("map-small.html", anchor=ANCHOR, names=names, here=here, layout=WIDE, parts=PARTS)
