"""Whoever reads from f01 on meets no term before it is introduced and no function before its chapter."""

import ast
import re
from pathlib import Path

import pytest
from nbformat import v4

from autograder.authoring.chapters import Chapter, find_chapters, tags, without_regions
from book.registry import Registry, Term, load
from book.terms import terms_in

ROOT = Path(__file__).resolve().parents[2]

EVERYDAY = {"batch", "byte", "contribution", "cosine similarity", "gap", "score", "value"}
"""Terms with a name that is also an everyday or a school word (cosine), used as such before a chapter makes it a term."""

LATER = re.compile(r"\b(?:below|next|section)\b")  # how a chapter points at what itself introduces later


def texts(chapter: Chapter):
    """Number and text of each Markdown cell that is read in order; the table of receipts is looked up."""
    for i, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "markdown" and "receipts" not in tags(cell):
            yield i, without_regions(cell.source, "MARK SCHEME")


def too_early(chapters: list[Chapter], registry: Registry) -> list[str]:
    """The uses of terms before a chapter introduces them in bold, or a cell says which chapter will.

    A chapter's first section, its puzzle, may use what the chapter is about to introduce.

    Args:
        chapters: in the order of reading.
    """
    order = {stem: i for i, stem in enumerate(registry.chapters)}
    known, told = set(EVERYDAY), []
    for chapter in chapters:
        here, sections = order[chapter.stem], 0
        for i, text in texts(chapter):
            sections += text.startswith("## ")
            for bold in re.findall(r"\*\*([^*\n]+)\*\*", text):
                known.update(term for term in terms_in(bold, registry) if order[registry.terms[term].chapter] == here)
            for term in terms_in(text, registry):
                home = registry.terms[term].chapter
                if order[home] > here and re.search(rf"\b{home.split('_')[0]}(?![^\W_])", text):
                    known.add(term)  # the reader is told where it comes
                mine = order[home] == here and (sections < 2 or LATER.search(text))
                if order[home] >= here and term not in known and not mine:
                    told.append(f"{chapter.id}, cell {i}: “{term}” comes in {home}")
    return told


def imported(chapter: Chapter) -> set[str]:
    """The modules of `course` that a chapter's cells import, hidden tests among them; of a widget, the chapter it belongs to."""
    found = set()
    for cell in chapter.notebook.cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                for name in _modules(node):
                    found.update(re.findall(r"^course\.(?:widgets\.)?(\w+)", name))
    return found


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [f"{node.module}.{alias.name}" if node.module == "course" else node.module for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def chapters(registry):
    order = list(registry.chapters)
    return sorted(find_chapters(ROOT), key=lambda chapter: order.index(chapter.stem))


def test_no_term_is_used_before_its_chapter(chapters, registry):
    assert too_early(chapters, registry) == []


def test_no_function_is_used_before_its_chapter(chapters, registry):
    of_module = {stem.split("_", 1)[1]: i for i, stem in enumerate(registry.chapters)}
    early = [
        f"{chapter.id} imports {module}"
        for chapter in chapters
        for module in sorted(imported(chapter))
        if of_module.get(module, -1) > list(registry.chapters).index(chapter.stem)
    ]
    assert early == []


# ---------------------------------------------------------------- the check itself


def a_chapter(stem: str, *cells) -> Chapter:
    chapter = Chapter(ROOT, stem)
    chapter.__dict__["notebook"] = v4.new_notebook(
        cells=[v4.new_code_cell(c[1]) if isinstance(c, tuple) else v4.new_markdown_cell(c) for c in cells]
    )
    return chapter


@pytest.mark.parametrize(("first", "second", "told"), [
    ("A slope.", "A **slope** is steep.", ["f01, cell 1: “slope” comes in f02_b"]),
    ("A slope, see [chapter f02](../f02_b/f02_b.ipynb). A slope.", "A **slope** is steep.", []),
    ("A slope, see [there](../f02_b/f02_b.ipynb).", "A **slope** is steep.", []),
    ("A slope in f021.", "A **slope** is steep.", ["f01, cell 1: “slope” comes in f02_b"]),
    ("`slope` and $slope$.", "Slopes first.\n\nThen a **slope**.", []),
    ("Nothing.", "A slope is steep.", []),
    ("Nothing.", "## Steep\n\nA slope.", ["f02, cell 2: “slope” comes in f02_b"]),
    ("Nothing.", "## Steep\n\nA slope, see below.", []),
    ("A slope in chapter f02.", "A slope is steep.", []),
])  # fmt: skip
def test_a_term_is_introduced_or_announced_before_it_is_used(first, second, told):
    registry = Registry({"f01_a": "A", "f02_b": "B"}, {}, {"slope": Term("slope", "f02_b", "d")}, {}, {})
    assert (
        too_early([a_chapter("f01_a", "# A", first), a_chapter("f02_b", "# B: slopes", "## A puzzle", second)], registry) == told
    )


@pytest.mark.parametrize(("line", "module"), [
    ("from course.b import f", "b"),
    ("from course import b", "b"),
    ("import course.b as c", "b"),
    ("from course.widgets.b import W", "b"),
    ("def g():\n    from course.b import f", "b"),
])  # fmt: skip
def test_imports_are_found_however_they_are_written(line, module):
    assert imported(a_chapter("f01_a", "# A", ("code", line))) == {module}
