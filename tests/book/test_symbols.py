"""The table of symbols keeps its promise: in a chapter each symbol of a display formula has one meaning."""

import pytest

from autograder.authoring.chapters import find_chapters, tags
from book.registry import ROOT
from book.symbols import formulas_of, meanings, symbols, table

ROWS = table(ROOT / "book" / "reference" / "symbols.md")
CHAPTERS = find_chapters(ROOT)


@pytest.mark.parametrize(
    "latex, expected",
    [
        (r"z_i = x W^Q + b", ["z", "x", "W", "b"]),
        (r"\hat{p}_j \ge \tfrac12", [r"\hatp"]),
        (r"d_{\text{model}} = H\, d_{\text{head}}", ["d_{model}", "H", "d_{head}"]),
        (
            r"\mathcal{L}(N, D) = \mathcal{L}_\infty + c_N N^{-\alpha_N}",
            [r"\mathcalL", "N", "D", r"\mathcalL_{infty}", "c", r"\alpha"],
        ),
        (r"\mathrm{softmax}(QK^\top)_{ij} \in \mathbb{R}", ["Q", "K", "i", "j"]),
        (r"N^* = f'(x)", ["N*", "f'", "x"]),
        (r"\overline{x^2}", ["x"]),
        (r"\begin{aligned} a \end{aligned}", ["a"]),
    ],
)
def test_symbols_of_a_formula(latex, expected):
    assert symbols(latex) == expected


def test_rows_of_one_chapter_go_before_general_ones():
    assert [row.chapters for row in meanings("r", "f06", ROWS)] == [("f06",)]
    assert [row.chapters for row in meanings("r", "ch07", ROWS)] == [()]
    assert meanings(r"\Omega", "ch04", ROWS) == []
    assert meanings("f'", "f02", ROWS) == meanings("f", "f02", ROWS)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_each_symbol_has_one_meaning_in_a_chapter(chapter):
    text = "\n".join(
        cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown" and "receipts" not in tags(cell)
    )
    used = dict.fromkeys(symbol for formula in formulas_of(text) for symbol in symbols(formula))
    assert used
    found = {symbol: [row.text for row in meanings(symbol, chapter.id, ROWS)] for symbol in used}
    assert {symbol: texts for symbol, texts in found.items() if len(texts) != 1} == {}


def test_a_row_speaks_of_chapters_that_there_are():
    known = {chapter.id for chapter in CHAPTERS}
    assert {id for row in ROWS for id in row.chapters} <= known


def test_no_symbol_has_two_rows_for_the_same_chapters():
    seen: dict[tuple[str, str], str] = {}
    for row in ROWS:
        for symbol in row.symbols:
            for chapter in row.chapters or ("",):
                assert seen.setdefault((symbol, chapter), row.text) == row.text, symbol
