"""What search engines and social networks read of a page: description, structured data, a picture, a sitemap.

Addresses are relative unless the environment has BOOK_URL, where the site will stand: https://…/
"""

import html
import io
import json
import os
import re
from functools import cache
from pathlib import Path

from docutils import nodes

from book.generated import Card
from book.render import render

BOOK = "How a language model works, one formula at a time: each one derived, computed, and tested by you."
DESCRIPTIONS = {
    "index": BOOK,
    "reference/formulas": "Every formula of the course with its receipt: the proof, derivation, computation or measurement behind it.",
    "reference/symbols": "What each letter means in all chapters, and the shape of each tensor.",
    "reference/glossary": "The terms of the mathematics of transformers, each defined in one or two sentences.",
    "reference/exercises": "Every exercise of the course with its points, difficulty and minutes.",
    "reference/solutions": "The solutions of the exercises.",
    "reference/cookbook": "Recipes that end in a number for your own model: parameters, FLOPs, cache, memory, wavelengths.",
    "reference/trained": "The trained language model of the course, its size, its work, and what its attention does on two texts.",
    "reference/atlas": "Small models of our own, one setting changed at a time: what moves the exponent of attention's decay, and what does not.",
    "reference/bibliography": "The sources of the course, and where each is used.",
    "reference/errata": "What texts on transformers have wrong, the right statements, and the tests that show them.",
}
LICENSE = "https://creativecommons.org/licenses/by/4.0/"
CARDS = "cards.json"  # in the book's source; what is told of each chapter


def cards(chapters: list[Card]) -> str:
    """What is told of each chapter, for `CARDS`."""
    told = {}
    for position, card in enumerate(chapters, start=1):
        first = card.chapter.notebook.cells[0].source
        abilities = first.partition("**You will be able to**")[2].partition("\n**")[0]
        told[f"{card.chapter.stem}/{card.chapter.stem}"] = {
            "title": card.title,
            "description": _plain(card.promise),
            "teaches": [_plain(line) for line in re.findall(r"^- (.+)$", abilities, re.MULTILINE)],
            "minutes": card.reading + card.working,
            "position": position,
        }
    return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


def _plain(markdown: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"[`*$]", "", text).replace("\\", "").strip()


def add(app, pagename, templatename, context, doctree):
    """Put a page's description, picture and structured data into its head."""
    if doctree is None:
        return
    told = _told(app.srcdir).get(pagename, {})
    description = told.get("description") or DESCRIPTIONS.get(pagename) or _first_words(doctree)
    title = context["title"] if pagename != "index" else app.config.html_title
    title = html.unescape(re.sub(r"<[^>]+>", "", title))
    url = app.config.book_url
    data = json.dumps(structured(pagename, title, description, told, app.config), ensure_ascii=False).replace("<", "\\u003c")
    context["metatags"] = context.get("metatags", "") + render(
        "meta.html",
        title=title,
        description=description,
        book=app.config.html_title,
        first=pagename == "index",
        picture=(url or context["pathto"]("", 1)) + "_static/social.png",
        address=f"{url}{pagename}.html" if url else "",
        data=data,
    )


def structured(pagename: str, title: str, description: str, told: dict, config) -> dict:
    """A page in the words of schema.org."""
    book = {
        "@type": ["Book", "Course"],
        "name": config.html_title,
        "version": config.release,
        "license": LICENSE,
        "inLanguage": "en",
        "isAccessibleForFree": True,
    }
    if config.book_url:
        book["url"] = config.book_url
    shared = {"@context": "https://schema.org", "name": title, "description": description}
    if pagename == "index":
        return {**book, **shared, "provider": {"@type": "Organization", "name": config.author}}
    kind = {"reference/glossary": "DefinedTermSet"}.get(pagename, "LearningResource" if told else "WebPage")
    page = {**shared, "@type": kind, "isPartOf": book, "license": LICENSE, "inLanguage": "en"}
    if told:
        page |= {
            "learningResourceType": "chapter with exercises",
            "timeRequired": f"PT{told['minutes']}M",
            "teaches": told["teaches"],
            "position": told["position"],
        }
    return page


@cache
def _told(source: str) -> dict:
    path = Path(source, CARDS)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _first_words(doctree: nodes.document) -> str:
    paragraphs = ("".join(c.astext() for c in p if not isinstance(c, nodes.raw)) for p in doctree.findall(nodes.paragraph))
    text = next((words for words in paragraphs if len(words) > 20), "")
    return re.sub(r"\s+", " ", text)[:200]


def sitemap(app, error):
    """Write `sitemap.xml` with every page that has words of its own."""
    if error:
        return
    addresses = [f"{app.config.book_url}{name}.html" for name in sorted(app.env.found_docs)]
    Path(app.outdir, "sitemap.xml").write_text(render("sitemap.xml", addresses=addresses), encoding="utf-8")


@cache
def social_picture(title: str) -> bytes:
    """The picture that a shared link shows, 1200 by 630 pixels: the title, attention's formula and a map of weights."""
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    from course.plots import COLOURS

    tokens = 9
    rng = np.random.default_rng(4)
    scores = np.tril(rng.normal(scale=1.6, size=(tokens, tokens)))
    weights = np.exp(scores) * np.tri(tokens)
    weights /= weights.sum(axis=1, keepdims=True)
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#FBFAF7")
    axes = figure.add_axes((0.63, 0.12, 0.4, 0.76))
    axes.imshow(weights, cmap=LinearSegmentedColormap.from_list("weights", ["#FBFAF7", COLOURS["weights"]]), vmax=0.8)
    axes.set_axis_off()
    head, _, last = title.rpartition(" ")
    figure.text(0.06, 0.72, f"{head}\n{last}", fontsize=40, family="serif", color="#16181D", va="center", linespacing=1.25)
    formula = r"$\mathrm{softmax}\left(\dfrac{QK^{\top}}{\sqrt{d_k}}\right)V$"
    figure.text(0.06, 0.36, formula, fontsize=38, color="#16181D", va="center", math_fontfamily="cm")
    for x, (name, colour) in zip((0.06, 0.09, 0.12, 0.15), list(COLOURS.items())[:4], strict=True):
        figure.text(x, 0.12, "■", fontsize=22, color=colour, va="center", gid=name)
    made = io.BytesIO()
    figure.savefig(made, format="png", metadata={"Software": None})
    return made.getvalue()


def setup(app):
    url = os.environ.get("BOOK_URL", "").strip()
    app.add_config_value("book_url", f"{url.rstrip('/')}/" if url else "", "html")
    app.connect("html-page-context", add)
    app.connect("build-finished", sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
