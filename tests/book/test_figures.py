"""Figures have a number and a caption, and the course's captions are sentences."""

import re

import pytest
from bs4 import BeautifulSoup
from small_course import ROOT

from autograder.authoring.chapters import find_chapters, tags
from book import figures
from book.build import BuildError, prepare


@pytest.mark.parametrize("chapter", find_chapters(ROOT), ids=lambda chapter: chapter.id)
def test_each_caption_is_one_sentence_or_two(chapter):
    for cell, number in figures.numbered(chapter).items():
        caption = chapter.notebook.cells[cell].metadata.get("caption", "")
        assert 25 <= len(caption) <= 200 and re.search(r"[.]$", caption), f"figure {number}: {caption}"
        assert not re.match(r"(A|The|This) (figure|plot|picture|widget|slider)\b", caption), f"figure {number}: say what is so"


def test_figures_count_through_a_chapter_in_its_order():
    chapter = next(chapter for chapter in find_chapters(ROOT) if chapter.id == "f03")
    numbers = figures.numbered(chapter)
    assert list(numbers.values())[:2] == ["F3.1", "F3.2"] and list(numbers) == sorted(numbers)
    assert all({"figure", "widget"} & set(tags(chapter.notebook.cells[cell])) for cell in numbers)


def test_a_page_has_figures_with_numbers_captions_and_typeset_mathematics(site):
    page = BeautifulSoup((site / "t01_coins" / "t01_coins.html").read_text(), "html.parser")
    first, second = page.select("figure")
    assert first["id"] == "figure-t1-1" and first.img["alt"] == "A bar of height one."
    captions = [figure.figcaption.get_text(" ", strip=True) for figure in (first, second)]
    assert captions[0].startswith("Figure T1.1 The bar has height") and captions[1].startswith("Figure T1.2 A slider sets")
    assert first.figcaption.select(".katex") and "Fig." not in captions[0]
    assert second.select(".course-widget-host svg.still")


@pytest.mark.parametrize("cell", [3, 4])
def test_a_figure_without_a_caption_is_refused(make, cell):
    root = make()
    path = root / "source" / "t01_coins" / "t01_coins.ipynb"
    path.write_text(
        re.sub(
            r'\n *"caption": "(The bar|A slider)[^\n]*',
            lambda m: "" if (m[1] == "The bar") == (cell == 3) else m[0],
            path.read_text(),
        )
    )
    with pytest.raises(BuildError, match=f'cell {cell}: a figure has a caption .*cell metadata "caption"'):
        prepare(root)
