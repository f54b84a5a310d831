"""The book's Sphinx extension: mathematics that does not typeset is a warning, and each formula is typeset once.

`sphinxcontrib.katex` brings KaTeX and writes its HTML into the pages; here is the process that typesets.
Its own server is a socket that refuses connections on a busy machine, and it only marks errors red.
"""

import atexit
import json
import re
import subprocess
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinxcontrib import katex

KATEX = Path(katex.__file__).with_name("katex.min.js")
SCRIPT = """
const katex = require(process.argv[1]);
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [latex, displayMode] = JSON.parse(line);
  let answer;
  try { answer = { html: katex.renderToString(latex, { displayMode, strict: "error" }) }; } catch (error) { answer = { error: error.message }; }
  console.log(JSON.stringify(answer));
});
"""
LITERAL = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)
logger = logging.getLogger(__name__)


class MathError(ValueError):
    """LaTeX that KaTeX does not understand."""


@cache
def _node() -> subprocess.Popen:
    process = subprocess.Popen(
        ["node", "-e", SCRIPT, str(KATEX)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
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


def setup(app):
    def folder() -> str:  # the same in each build: with another name Sphinx would write all pages again
        path = Path(app.doctreedir, "katex")
        path.mkdir(parents=True, exist_ok=True)
        return str(path)

    katex.mkdtemp = folder
    katex.render_latex = typeset
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
