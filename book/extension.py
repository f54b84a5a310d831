"""The book's Sphinx extension: the theme, mathematics, hover cards, and figures for light and dark pages.

`sphinxcontrib.katex` brings KaTeX and writes its HTML into the pages; here is the process that typesets.
Its own server is a socket that refuses connections on a busy machine, and it only marks errors red.
A formula that does not typeset is a warning, and each is typeset once.
"""

import atexit
import json
import re
import subprocess
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util import logging
from sphinxcontrib import katex

from book.names import place
from course.plots import COLOURS, DARK, INK

KATEX = Path(katex.__file__).with_name("katex.min.js")
SCRIPT = Path(__file__).with_name("typeset.js")
LITERAL = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
logger = logging.getLogger(__name__)


class MathError(ValueError):
    """LaTeX that KaTeX does not understand."""


@cache
def _node() -> subprocess.Popen:
    process = subprocess.Popen(
        ["node", str(SCRIPT), str(KATEX)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    atexit.register(process.kill)
    return process


@cache
def html_of(latex: str, display: bool = False) -> str:
    """A formula as HTML that needs no script.

    Raises:
        MathError: if KaTeX does not understand it; the message says where.
    """
    node = _node()
    node.stdin.write(json.dumps([latex, display]) + "\n")
    node.stdin.flush()
    answer = json.loads(node.stdout.readline())
    if "error" in answer:
        raise MathError(answer["error"])
    return answer["html"]


def typeset(latex: str, options: dict | None = None) -> str:
    """What stands in for `sphinxcontrib.katex.render_latex`: a refused formula stays as it is (`check` has warned)."""
    try:
        return html_of(latex, bool(options and options.get("displayMode")))
    except MathError:
        return latex.replace("&", "&amp;").replace("<", "&lt;")


def check(app, doctree):
    """Warn of each formula of a page that KaTeX does not understand, and of mathematics that stayed text."""
    for node in doctree.findall(nodes.Text):
        if re.search(r"\$[^$]*\$|\$\$|\\[a-zA-Z]{2,}", node) and not any(isinstance(up, LITERAL) for up in _above(node)):
            logger.warning("mathematics stayed text: %s", node.strip()[:200], location=node.parent)
    for node in doctree.findall(lambda n: isinstance(n, nodes.math | nodes.math_block)):
        try:
            html_of(node.astext(), isinstance(node, nodes.math_block))
        except MathError as error:
            logger.warning("KaTeX cannot typeset %s: %s", node.astext(), error, location=node)


def _above(node):
    while node.parent is not None:
        node = node.parent
        yield node


# ---------------------------------------------------------------- hover cards

CARD_LINK = re.compile(r'href="[^"#]*reference/(?:glossary|formulas)\.html#((?:term|formula)-[\w-]+)"')


class Cards:
    """What the links of a page to terms and formulas lead to, put at the page's end for course.js to show beside the link."""

    def __init__(self):
        self.read: set[str] = set()
        self.said: dict[str, str] = {}

    def reading(self, app, env, docnames):
        """Note the pages that are read in this build."""
        self.read = set(docnames)

    def written_again(self, app, env):
        """All pages, when the glossary or the formulas were read: their cards may have changed."""
        return list(env.found_docs) if self.read & {"reference/glossary", "reference/formulas"} else []

    def add(self, app, pagename, templatename, context, doctree):
        """Append the cards to the page."""
        if doctree is None:
            return
        self.said = self.said or {id: _fragment(app, found) for id, found in _entries(app.env).items()}
        for id in dict.fromkeys(CARD_LINK.findall(context["body"])):
            if id in self.said:
                context["body"] += f'<template id="card-{id}">{self.said[id]}</template>\n'


def _entries(env) -> dict[str, list[nodes.Node]]:
    """For each anchor of the glossary and of the page of formulas: a name, a formula, a sentence."""
    found = {}
    for term in env.get_doctree("reference/glossary").findall(nodes.term):
        definition = next(iter(term.parent.findall(nodes.definition)))
        for id in term["ids"]:
            found[id] = [nodes.paragraph("", "", nodes.strong(text=term.astext())), *definition.children[:1]]
    for formula in env.get_doctree("reference/formulas").findall(nodes.container):
        for id in formula["ids"]:
            found[id] = [node for node in formula if isinstance(node, nodes.paragraph | nodes.math_block)][:3]
    return found


def _fragment(app, found: list[nodes.Node]) -> str:
    content = nodes.container("", *(node.deepcopy() for node in found))
    for link in list(content.findall(lambda node: isinstance(node, pending_xref | nodes.reference))):
        link.replace_self(link.children)
    return app.builder.render_partial(content)["fragment"]


# ---------------------------------------------------------------- pages and pictures

SVG_IMAGE = re.compile(r'<img (?P<alt>alt="[^"]*") [^>]*?src="(?P<folder>[^"]*_images/)(?P<name>[\w.-]+)\.svg"[^>]*>')
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
LIGHT_INK, DARK_INK = "#4A505A", "#B4BBC6"
ON_LIGHT = {INK: LIGHT_INK}
ON_DARK = {  # of a figure as it was drawn, or as an earlier build left it for light pages
    INK: DARK_INK,
    LIGHT_INK: DARK_INK,
    **{COLOURS[name]: DARK[name] for name in COLOURS},
}


def finish_page(app, pagename, templatename, context, doctree):
    """Tables get a box that scrolls, folds their own name, and figures a twin for dark pages."""
    if doctree is None:
        return
    context["chapter"] = place(pagename)
    body = TABLE.sub(lambda table: f'<div class="table-scroll">{table[0]}</div>', context["body"])
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    context["body"] = SVG_IMAGE.sub(lambda image: _twins(app, image), body)


def _twins(app, image: re.Match) -> str:
    source = next(path for path, name in app.builder.images.items() if name == f"{image['name']}.svg")
    head = Path(app.srcdir, source).read_text(encoding="utf-8")[:2000]
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', head)
    size = f' width="{float(box[1]) * 4 / 3:.0f}" height="{float(box[2]) * 4 / 3:.0f}"' if box else ""  # points to pixels
    forms = [("", "light"), ("-dark", "dark")]
    return "".join(
        f'<img {image["alt"]} src="{image["folder"]}{image["name"]}{suffix}.svg"{size} loading="lazy" class="only-{page}">'
        for suffix, page in forms
    )


def recolour(svg: str, colours: dict[str, str]) -> str:
    """An SVG with some of its colours replaced."""
    known = {old.lower(): new for old, new in colours.items()}
    return re.sub("|".join(known), lambda match: known[match[0].lower()], svg, flags=re.IGNORECASE)


def colour_pictures(app, error):
    """Write the light and the dark form of each figure of the site."""
    if error:
        return
    for path in Path(app.outdir, "_images").glob("*.svg"):
        if not path.stem.endswith("-dark"):
            svg = path.read_text(encoding="utf-8")
            path.with_stem(f"{path.stem}-dark").write_text(recolour(svg, ON_DARK), encoding="utf-8")
            path.write_text(recolour(svg, ON_LIGHT), encoding="utf-8")


def own_options(app, config):
    """Drop what Jupyter Book tells its own theme, and its numbers of figures: `book.figures` has those of chapters."""
    config.html_theme_options.clear()
    config.numfig = False


def setup(app):
    def folder() -> str:  # the same in each build: with another name Sphinx would write all pages again
        path = Path(app.doctreedir, "katex")
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    katex.mkdtemp = folder
    katex.render_latex = typeset
    app.add_html_theme("course", str(Path(__file__).with_name("theme")))
    app.connect("config-inited", own_options, priority=1000)  # after Jupyter Book
    app.connect("doctree-read", check)
    cards = Cards()
    app.connect("env-before-read-docs", cards.reading)
    app.connect("env-updated", cards.written_again)
    app.connect("html-page-context", cards.add)
    app.connect("html-page-context", finish_page)
    app.connect("build-finished", colour_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
