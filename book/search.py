"""The book's search: gathers what it finds as pages are read, and writes it as a script.

It takes the place of Sphinx's own search, which finds pages and not sections, and has no snippets on pages from a disk.
"""

from pathlib import Path

from sphinx.environment.collectors import EnvironmentCollector

from book import passages
from book.registry import load, titles

SCRIPT = "search-passages.js"


class Collector(EnvironmentCollector):
    """Keeps the passages of each page with what Sphinx keeps of it."""

    def clear_doc(self, app, env, docname):
        _kept(env).pop(docname, None)

    def merge_other(self, app, env, docnames, other):
        _kept(env).update({name: _kept(other)[name] for name in docnames if name in _kept(other)})

    def process_doc(self, app, doctree):
        _kept(app.env)[app.env.docname] = passages.read(app.env.docname, doctree)


def _kept(env) -> dict[str, list[passages.Passage]]:
    if not hasattr(env, "course_passages"):
        env.course_passages = {}
    return env.course_passages


def own_page(app):
    """The search page without Sphinx's index."""
    app.builder.search = False
    app.config.html_additional_pages = {**app.config.html_additional_pages, "search": "search.html"}


def write(app, error):
    """Write what the search loads when it opens."""
    if error:
        return
    pages = {name: _kept(app.env)[name] for name in sorted(_kept(app.env))}
    reference = Path(app.config.course_root, "book", "reference")
    Path(app.outdir, SCRIPT).write_text(passages.told(pages, load(reference), titles(reference)), encoding="utf-8")


def setup(app):
    app.add_config_value("course_root", "", "")
    app.add_env_collector(Collector)
    app.connect("builder-inited", own_page)
    app.connect("build-finished", write)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
