"""What the search finds: each section, exercise, term and formula of a page with its words.

`read` takes them from a page's doctree, `told` writes those of all pages as the script that the search loads.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from docutils import nodes
from sphinx.addnodes import glossary, pending_xref

from book.names import place
from book.plain import plain
from book.registry import Registry

KINDS = ("section", "exercise", "term", "formula", "reference", "evidence", "sources")  # as search-engine.js numbers them
SOURCES = ("reference/bibliography", "reference/errata")  # long lists, which have every word of the book
UNREAD = (nodes.raw, nodes.comment, nodes.image, nodes.literal_block, nodes.target, nodes.title, glossary)
ASIDE = {
    "cell",
    "exercise",
    "exercise-written",
    "formula",
    "entry",
    "notebook",
    "chapter-facts",
}  # containers that are no text of their section


@dataclass
class Passage:
    """A place that a search can lead to."""

    kind: str  # of KINDS
    anchor: str  # empty: the page itself
    title: str
    text: str = ""
    above: str = ""  # the title of the section that it is a part of
    terms: list[str] = field(default_factory=list)  # of the glossary, where they are linked
    formulas: list[str] = field(default_factory=list)  # their ids


def read(name: str, document: nodes.document) -> list[Passage]:
    """The passages of one page, in its order.

    Args:
        name: of the page, without its ending.
        document: its doctree as it was read.
    """
    folder, _, last = name.partition("/")
    kind = "section" if folder == last else "sources" if name in SOURCES else folder
    kind = kind if kind in KINDS else "reference"
    sections = list(document.findall(nodes.section))
    found = []
    for number, section in enumerate(sections):
        passage = _section(section, kind, first=number == 0)
        if number == 0 or passage.text or kind == "evidence":  # a heading over entries alone says nothing itself
            found.append(passage)
        found += [boxed for box in _own(section) if (boxed := _boxed(box))]
    for term in document.findall(nodes.term):
        definition = next(iter(term.parent.findall(nodes.definition)))
        found.append(Passage("term", term["ids"][0], _line(term), _line(definition[0])))
    return found


def _section(section: nodes.section, kind: str, *, first: bool) -> Passage:
    box = section.parent
    above = _line(box[0]) if isinstance(box, nodes.section) and isinstance(box.parent, nodes.section) else ""
    passage = Passage(kind, "" if first else section["ids"][0], _line(section[0]), above=above)
    words = []
    for node in _paragraphs(section):
        if isinstance(node, nodes.container):  # an equation
            passage.formulas += [id.removeprefix("equation-") for id in node["ids"] if id.startswith("equation-")]
            words += [_line(part) for part in node if isinstance(part, nodes.math_block)]
            continue
        words.append(_line(node))
        passage.terms += [link["reftarget"] for link in node.findall(pending_xref) if link["reftype"] == "term"]
    passage.text = " ".join(filter(None, words)) if kind != "evidence" else ""
    return passage


def _own(section: nodes.section) -> Iterator[nodes.Element]:
    """The containers of a section that stand for themselves."""
    return (node for node in section.children if isinstance(node, nodes.container))


def _boxed(box: nodes.container) -> Passage | None:
    """An exercise or a formula."""
    anchor = next(iter(box["ids"]), "")
    if "exercise" in box["classes"] and anchor:
        id = re.search(r"Exercise ([\w.]+)", box.astext())
        return Passage("exercise", anchor, id[1] if id else anchor, " ".join(_line(node) for node in _outside_folds(box)))
    if "formula" in box["classes"] and anchor:
        return Passage("formula", anchor, "", formulas=[anchor.removeprefix("formula-")])
    return None


def _paragraphs(section: nodes.section) -> Iterator[nodes.Element]:
    """What a section says itself: not its subsections, cells and exercises."""
    for node in _outside_folds(section):
        if isinstance(node, nodes.section) or (isinstance(node, nodes.container) and ASIDE & set(node["classes"])):
            continue
        if isinstance(node, nodes.container) and "equation" not in node["classes"]:
            yield from _outside_folds(node)
        else:
            yield node


def _outside_folds(box: nodes.Element) -> Iterator[nodes.Element]:
    """The children that are in sight: no hints, no solutions, no table of formulas, no code."""
    depth = 0
    for node in box.children:
        if isinstance(node, nodes.raw):
            depth += node.astext().count("<details") - node.astext().count("</details>")
        elif depth == 0 and not isinstance(node, UNREAD):
            yield node


def _line(node: nodes.Node) -> str:
    """What a node says, on one line; its formulas as text."""
    return re.sub(r"\s+", " ", _text(node)).strip()


def _text(node: nodes.Node) -> str:
    if isinstance(node, nodes.math | nodes.math_block):
        return plain(node.astext()) + (" " if isinstance(node, nodes.math_block) else "")
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, nodes.raw | nodes.comment | nodes.image):
        return ""
    apart = isinstance(node, nodes.paragraph | nodes.entry | nodes.list_item | nodes.literal_block)
    return "".join(map(_text, node.children)) + (" " if apart else "")


def told(pages: Mapping[str, list[Passage]], registry: Registry, titles: Mapping[str, str]) -> str:
    """The script that the search loads: pages, passages, and the words that mean the same.

    Args:
        pages: the passages of each page.
        registry: names formulas and terms.
        titles: of the exercises, by id.
    """
    usual = Counter(passage.title for passages in pages.values() for passage in passages)
    names = list(pages)
    rows = []
    for number, name in enumerate(names):
        for passage in pages[name]:
            row = _row(passage, registry, titles, chapter=name.partition("/")[0])
            # A heading that many chapters have says little of what is under it
            rows.append([KINDS.index(passage.kind), number, passage.anchor, *row, int(usual[passage.title] > 3)])
    data = {
        "pages": [[f"{name}.html", pages[name][0].title if pages[name] else "", place(name)] for name in names],
        "passages": rows,
        "same": [[term.term, *term.also] for term in registry.terms.values() if term.also],
    }
    return f"globalThis.bookPassages = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n"


def _row(passage: Passage, registry: Registry, titles: Mapping[str, str], chapter: str) -> list:
    """Title, text, title above, names of what the passage introduces, names of its formulas."""
    formulas = [registry.formulas[id] for id in passage.formulas if id in registry.formulas]
    title, text = passage.title, passage.text
    names: list[str] = []
    if passage.kind == "section":
        own = [registry.terms[term] for term in dict.fromkeys(passage.terms) if term in registry.terms]
        names = [name for term in own if term.chapter == chapter for name in (term.term, *term.also)]
    elif passage.kind == "term":
        names = list(registry.terms[title].also) if title in registry.terms else []
    elif passage.kind == "exercise":
        names, title = [title], titles.get(title, title)
    elif passage.kind == "formula" and formulas:
        [formula] = formulas
        title, text = formula.name, f"{_markdown(formula.does)} {plain(formula.latex)}"
        names, formulas = [formula.id], []
    return [title, text, passage.above, names, [formula.name for formula in formulas]]


def _markdown(text: str) -> str:
    text = re.sub(r"\$([^$]+)\$", lambda m: plain(m[1]), text)
    return re.sub(r"\s+", " ", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", "")).strip()
