"""The book's Sphinx extension: mathematics that does not typeset is a warning, and each formula is typeset once."""

from functools import lru_cache

from docutils import nodes
from sphinx.util import logging
from sphinxcontrib import katex

logger = logging.getLogger(__name__)
_render = katex.render_latex


@lru_cache(maxsize=None)
def _typeset(latex: str, display: bool) -> str:
    return _render(latex, {"displayMode": display, "throwOnError": True})


def typeset(latex: str, options: dict | None = None) -> str:
    """HTML of a formula; one that KaTeX refuses stands as its source (`check` has warned of it)."""
    try:
        return _typeset(latex, bool(options and options.get("displayMode")))
    except katex.KaTeXError:
        return latex.replace("&", "&amp;").replace("<", "&lt;")


def check(app, doctree):
    """Warn of each formula of a page that KaTeX does not understand."""
    for node in doctree.findall(lambda n: isinstance(n, nodes.math | nodes.math_block)):
        try:
            _typeset(node.astext(), isinstance(node, nodes.math_block))
        except katex.KaTeXError as error:
            logger.warning("KaTeX cannot typeset %s: %s", node.astext(), error, location=node)


def setup(app):
    katex.render_latex = typeset
    app.connect("doctree-read", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
