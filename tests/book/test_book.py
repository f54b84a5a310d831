"""The real book: it builds without a warning, shows every chapter, and tells nothing that students must find out."""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_course import ROOT, broken_links

from autograder.authoring.chapters import find_chapters, tags
from book.pages import FORMULA_LINE
from book.proofs import theorems
from book.registry import load
from book.tables import main as tables

CHAPTERS = find_chapters(ROOT)


@pytest.fixture(scope="module")
def registry():
    return load()


def page(book, chapter) -> str:
    return (book / chapter.stem / f"{chapter.stem}.html").read_text(encoding="utf-8")


def test_it_builds_and_every_chapter_has_its_page(book):
    for chapter in CHAPTERS:
        assert (book / chapter.stem / f"{chapter.stem}.html").is_file()


def test_the_readme_names_the_chapters_of_source():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(source/(\w+)\)", readme) == [chapter.stem for chapter in CHAPTERS]
    assert f"There are {len(CHAPTERS)} chapters so far" in readme


def test_the_registry_calls_chapters_as_they_call_themselves(registry):
    assert {chapter.stem: registry.chapters.get(chapter.stem) for chapter in CHAPTERS} == {c.stem: c.title for c in CHAPTERS}
    assert [stem for stem in registry.chapters if stem in {c.stem for c in CHAPTERS}] == [c.stem for c in CHAPTERS]


def test_the_contents_name_the_chapters_of_source():
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())
    named = [entry["file"].split("/")[0] for part in toc["parts"] for entry in part["chapters"]]
    assert [name for name in named if name not in ("reference", "teaching")] == [chapter.stem for chapter in CHAPTERS]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_every_form_reaches_the_page(book, chapter):
    shown = page(book, chapter)
    cells = chapter.notebook.cells
    for exercise in chapter.exercises:
        assert f">Exercise {exercise.id}<" in shown
    assert shown.count('class="course-widget-host"') == sum("widget" in tags(cell) for cell in cells)
    for cell in cells:
        if "figure" in tags(cell):
            assert f'alt="{cell.metadata.alt}"' in html.unescape(shown)
        for id in FORMULA_LINE.findall(cell.source) if cell.cell_type == "markdown" else []:
            assert f"formulas.html#formula-{id}" in shown
    assert "glossary.html#term-" in shown


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_every_source_linked_is_in_the_bibliography(registry, chapter):
    known = {source.url for source in registry.sources.values()}
    text = "\n".join(cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown")
    linked = {url.split("#")[0] for url in re.findall(r"\]\((https?://[^)\s]+)\)", text)}
    assert sorted(linked - known) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_every_term_of_a_chapter_is_bold_in_it(registry, chapter):
    text = "\n".join(cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown").casefold()
    bold = {match.strip(".,:;") for match in re.findall(r"\*\*([^*\n]+)\*\*", text)}
    terms = [term for term in registry.terms.values() if term.chapter == chapter.stem]
    missing = [t.term for t in terms if not any(n.casefold() in bold or f"{n.casefold()}s" in bold for n in (t.term, *t.also))]
    assert missing == []


def test_tables_of_formulas_are_fresh(capsys):
    assert tables(["--check"]) == 0, capsys.readouterr().out


def test_every_link_inside_the_book_resolves(book):
    assert broken_links(book) == []


def test_a_proved_formula_shows_its_theorem(book, registry):
    words = lambda name: html.unescape(re.sub(r"<[^>]+>", "", (book / name).read_text(encoding="utf-8")))  # noqa: E731
    page = words("reference/formulas.html")
    proofs = "\n".join(words(f"evidence/proofs/{path.name}") for path in (book / "evidence" / "proofs").glob("*.html"))
    proved = [formula for formula in registry.formulas.values() if formula.evidence in theorems()]
    assert proved
    for formula in proved:
        theorem = theorems()[formula.evidence]
        assert theorem.statement in page and all(text in proofs for text in theorem.definitions), formula.id
    assert {Path(f.evidence.partition("::")[0]).name for f in proved} < {path.name for path in book.glob("_downloads/*/*.v")}


def test_the_command_builds_with_solutions_when_asked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("book.build.build", lambda **given: asked.append(given) or tmp_path)
    from book.build import main

    for value, expected in (("show", True), ("hide", False), ("", False)):
        monkeypatch.setenv("SOLUTIONS", value)
        assert main() == 0
        assert asked.pop() == {"solutions": expected}


def test_the_modules_run_as_commands():
    done = subprocess.run([sys.executable, "-m", "book.tables", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "--check" in done.stdout
