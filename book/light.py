"""The page of all formulas, made light: MathML that every browser shows, which `reference.js` draws by KaTeX as it comes near.

KaTeX's drawings are two thirds of such a page, and the colours of its proofs most of the rest.
"""

import html
import re

from book.extension import html_of

PAGES = ("reference/formulas",)
DRAWING = re.compile(r'<span class="katex-html"|<svg\b[^>]*\bclass="still"')
TAGS = {"<span": re.compile(r"<span\b|</span>"), "<svg ": re.compile(r"<svg\b[^>]*(?<!/)>|</svg>")}
FORMULA = re.compile(
    r'(?P<display><span class="katex-display">)?<span class="katex"><span class="katex-mathml"><math[^>]*><semantics>'
    r'(?P<inside>.*?)<annotation encoding="application/x-tex">(?P<latex>.*?)</annotation></semantics></math></span><!--.*?--></span>(?(display)</span>)',
    re.DOTALL,
)
LIGHT = re.compile(r'<math( display="block")? data-tex="([^"]*)">.*?</math>', re.DOTALL)
INLINE = re.compile(
    r'<span class="math[^"]*">(<math data-tex[^>]*>)(?:<mrow>(<m[ion]>[^<]*</m[ion]>)</mrow>|(.*?))</math></span>', re.DOTALL
)
PROOF = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.DOTALL)
WRAPPED = re.compile(r'<span class="(?:std std-ref|std std-doc|xref [^"]*|pre)">([^<]*)</span>')


def with_drawings_whole(page: str) -> str:
    """A page whose only comments are the drawings of its formulas and the stills of its widgets."""
    page = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    parts, done = [], 0
    for drawing in DRAWING.finditer(page):
        depth = 0
        for tag in TAGS[drawing[0][:5]].finditer(page, drawing.start()):
            depth += -1 if tag[0].startswith("</") else 1
            if depth == 0:
                break
        parts += [page[done : drawing.start()], "<!--", page[drawing.start() : tag.end()], "-->"]
        done = tag.end()
    return "".join([*parts, page[done:]])


def light(page: str) -> str:
    """A page whose formulas are MathML alone, with their LaTeX, and whose code has no colours."""
    page = FORMULA.sub(_light, with_drawings_whole(page))
    page = PROOF.sub(lambda code: re.sub(r"</?span[^>]*>", "", code[0]), page)
    page = WRAPPED.sub(r"\1", INLINE.sub(lambda m: f"{m[1]}{m[2] or m[3]}</math>", page))
    return page.replace('<a class="reference internal"', "<a").replace(' docutils" id="formula-', '" id="formula-')


def _light(match: re.Match) -> str:
    block = ' display="block"' if match["display"] else ""
    return f'<math{block} data-tex="{match["latex"].strip().replace(chr(34), "&quot;")}">{match["inside"]}</math>'


def drawn(page: str) -> str:
    """A page with the drawings that `light` took out, for the PDF and the EPUB."""

    def draw(match: re.Match) -> str:
        return html_of(html.unescape(match[2]), bool(match[1]))

    return LIGHT.sub(draw, page)


def finish_page(app, pagename, templatename, context, doctree):
    """Make a page of `PAGES` light."""
    if pagename in PAGES:
        context["body"] = light(context["body"])


def setup(app):
    app.connect("html-page-context", finish_page, priority=900)  # when all else is done
    return {"parallel_read_safe": True, "parallel_write_safe": True}
