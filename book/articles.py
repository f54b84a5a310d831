"""The articles of the built site, in reading order and without what only a browser can do: for the PDF and the EPUB."""

import copy
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup, Comment, Tag

from book import light
from book.registry import read_yaml

# Scripts and what they bring to life, permanent links, and the way to files that a page has beside it
GONE = {"script", "template", "noscript", "style", "form", "button"}
GONE_CLASSES = {"headerlink", "notebook", "only-dark", "toctree-wrapper", "map-narrow", "map-small", "progress", "follow-ways"}
CAMEL = {name.lower(): name for name in ("viewBox", "refX", "refY", "markerWidth", "markerHeight")}  # in SVG, letter by letter


class Drawing(Comment):
    """KaTeX's drawing of a formula or a still of a widget, as it stands in the page: most of all tags, and nobody looks for one in it."""

    PREFIX = SUFFIX = ""


@dataclass(frozen=True)
class Article:
    """One page of the book; its links inside the book are `key#id`, its pictures absolute paths."""

    key: str  # unique and short: ch04_attention, formulas
    title: str
    part: str  # the caption of its part; empty for the first page
    body: Tag


def read(source: Path, site: Path) -> list[Article]:
    """All pages of the table of contents.

    Args:
        source: the folder that Jupyter Book read.
        site: the folder that it wrote.
    """
    toc = read_yaml(source / "_toc.yml")
    names = {toc["root"]: ""} | {entry["file"]: part["caption"] for part in toc["parts"] for entry in part["chapters"]}
    found = {}
    for name in names:
        text = light.with_drawings_whole(light.drawn((site / f"{name}.html").read_text(encoding="utf-8")))
        page = BeautifulSoup(text, "html.parser", element_classes={Comment: Drawing})
        found[name] = page.select_one("article.bd-article")
    ids = {name: {node["id"] for node in body.find_all(id=True)} for name, body in found.items()}
    bodies = {name: _cleaned(name, body, site, ids) for name, body in found.items()}
    return [Article(key(name), bodies[name].h1.get_text().strip(), part, bodies[name]) for name, part in names.items()]


def key(name: str) -> str:
    """ch04_attention/ch04_attention is ch04_attention, reference/formulas is formulas."""
    return name.rpartition("/")[2]


def _cleaned(name: str, body: Tag, site: Path, ids: dict[str, set[str]]) -> Tag:
    for node in body.find_all(lambda tag: tag.name in GONE or not GONE_CLASSES.isdisjoint(tag.get("class", ()))):
        node.decompose()
    for host in body.find_all(class_="course-widget-host"):
        host["class"] = "widget-still"
    for cell in body.find_all("div", class_="cell"):
        _unfold(cell)
    for fold in body.find_all("details", class_="formulas"):  # paper cannot unfold
        fold.summary.decompose()
        fold.unwrap()
    _gather_hints(body)
    for link in body.find_all("a", href=True):
        _resolve(link, name, ids)
    for node in (inside for svg in body.find_all("svg") for inside in (svg, *svg.find_all(True))):
        node.attrs = {CAMEL.get(name, name): value for name, value in node.attrs.items()}
    for link in body.select("svg a[aria-label]"):  # EPUB asks for its name in an element of its own
        title = Tag(name="title")
        title.string = link["aria-label"]
        link.insert(0, title)
    for picture in body.find_all("img", src=True):
        picture["src"] = str((site / posixpath.dirname(name) / unquote(picture["src"])).resolve())
        del picture["loading"]
    return body


def _unfold(cell: Tag) -> None:
    """Show the folded tests; drop folded imports and the code of figures, which the notebook has."""
    test = "tag_exercise-test" in cell["class"]
    for fold in cell.find_all("details"):
        if test:
            fold.summary.decompose()
            fold.unwrap()
        else:
            fold.decompose()


def _gather_hints(body: Tag) -> None:
    """Paper cannot fold: hints stand at the chapter's end, away from their exercises."""
    rows = []
    for exercise in body.find_all(class_="exercise"):
        hints = exercise.find_all("details")
        if not hints:
            continue
        label = exercise.select_one(".exercise-id").get_text()
        place = f"hints-{exercise['id']}"
        rows.append(f'<h3 id="{place}"><a href="#{exercise["id"]}">{label}</a></h3>')
        for hint in hints:
            title = hint.summary.extract().get_text()
            rows.append(f'<div class="hint"><p><strong>{title}</strong></p>{hint.decode_contents()}</div>')
            hint.decompose()
        exercise.append(
            _parsed(f'<p class="to-hints"><a href="#{place}">{_count(len(hints), "hint")} at the end of the chapter</a></p>')
        )
    if rows:
        body.append(_parsed(f'<section class="hints"><h2>Hints</h2>{"".join(rows)}</section>'))


def _parsed(text: str) -> Tag:
    return BeautifulSoup(text, "html.parser").contents[0]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _resolve(link: Tag, name: str, ids: dict[str, set[str]]) -> None:
    """Links inside the book become `key#id`; what leads to no page of it becomes text; the web stays."""
    address = link["href"]
    if re.match(r"[a-z]+:", address):
        return
    path, _, anchor = address.partition("#")
    page = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)).removesuffix(".html") if path else name
    made_here = anchor.startswith("hints-")
    if page not in ids or (anchor and anchor not in ids[page] and not made_here):
        link.unwrap()
        return
    link["href"] = f"{key(page)}#{anchor}"


def mathml(body: Tag) -> Tag:
    """A copy whose formulas are MathML alone, without KaTeX's drawing of them."""
    body = copy.copy(body)
    for formula in body.find_all("span", class_="katex"):
        math = formula.find("math").extract()
        _mend(math)
        display = formula.find_parent(class_="katex-display")
        (display or formula).replace_with(math)
    return body


def _mend(math: Tag) -> None:
    """Take out what KaTeX writes and MathML does not know: operators inside one token, and applied functions as scripts."""
    for token in math.find_all(["mi", "mo"]):
        if token.find(True):
            token.name, token.attrs = "mrow", {}
        elif token.get_text() == "\u2061" and token.parent.name.startswith(("msu", "mun", "mov", "mfr")):
            token.decompose()
