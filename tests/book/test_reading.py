"""Reading and copying: formulas in sentences, LaTeX on the clipboard, symbols that light up, titles, a light page of formulas."""

import re

import pytest
from playwright.sync_api import expect
from small_course import ROOT

from autograder.authoring.chapters import find_chapters
from book.evidence_pages import figures
from book.extension import html_of
from book.light import drawn, light
from book.mathematics import typeset
from book.registry import load, titles


@pytest.mark.parametrize(("text", "shown"), [
    ("equal to 1e-12 for n rows", "equal to $10^{-12}$ for $n$ rows"),
    ("with N = 1,000, where C_V is 31 % above", "with $N = 1{,}000$, where $C_{V}$ is 31 % above"),
    ("|1 + β − ηλ| ≤ r + β/r", r"$|1 + \beta - \eta \lambda | \le r + \beta /r$"),
    ("at most ((1 + r)/(1 − r))², so", "at most $((1 + r)/(1 - r))^{2}$, so"),
    ("by √d_k, and 2√x", r"by $\sqrt{d_k}$, and $2\sqrt{x}$"),
    ("a hidden row of SmolLM2-135M, `x = 1`, $y$ and test_x", "a hidden row of SmolLM2-135M, `x = 1`, $y$ and test_x"),
    ("128 steps, 95% intervals, 3 to 5", "128 steps, 95% intervals, 3 to 5"),
])  # fmt: skip
def test_formulas_in_sentences(text, shown):
    assert re.sub(r"_\{(k)\}", r"_\1", typeset(text)) == shown


def test_every_formula_in_a_sentence_of_the_registry_typesets():
    found = [
        latex
        for formula in load().formulas.values()
        for text in (formula.does, formula.shows, formula.limits, formula.wrong, formula.right)
        for latex in re.findall(r"\$([^$]+)\$", typeset(text))
    ]
    assert len(found) > 500
    for latex in set(found):
        html_of(latex)


def test_each_exercise_has_one_title():
    ids = [exercise.id for chapter in find_chapters(ROOT) for exercise in chapter.exercises]
    given = titles()
    assert sorted(ids) == sorted(given), "book/reference/exercises.yml has a title for each exercise and for no other"
    assert len(set(given.values())) == len(given)


def test_figures_are_those_that_a_chapter_draws_from_a_record():
    found = figures(find_chapters(ROOT, ["f01", "ch07"]))
    assert set(found) == {"vectors_matrices_shapes", "residual_norm"}
    assert all(alt and "<svg" in svg for drawings in found.values() for alt, svg in drawings)


def test_a_light_page_has_all_its_drawings_again():
    page = f"<p>{html_of('a^2')} and {html_of(chr(92) + 'htmlClass{query}{Q}', True)}</p>"
    made = light(page)
    assert len(made) < len(page) / 2 and "katex" not in made and made.count("<math") == 2
    assert drawn(made) == page


def test_the_page_of_formulas_is_light(book):
    assert (book / "reference" / "formulas.html").stat().st_size < 1_000_000


# ---------------------------------------------------------------- in a browser


@pytest.fixture
def page(browser, server):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server}ch04_attention/ch04_attention.html")
    yield page
    context.close()


SELECTED = """(id) => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(`#${id} div.math`));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


def test_a_copied_formula_is_its_latex(page):
    page.locator("#equation-ch04-attention").scroll_into_view_if_needed()
    page.evaluate(SELECTED, "equation-ch04-attention")
    page.keyboard.press("Control+C")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert r"\sqrt{d_k}" in copied and copied.count("$$") == 2 and "htmlClass" not in copied


def test_a_symbol_lights_up_where_its_section_has_it(page):
    row = page.locator("#equation-ch04-attention")
    row.scroll_into_view_if_needed()
    width = row.locator(".mathnormal", has_text=re.compile("^d$")).first
    box = width.bounding_box()  # KaTeX's boxes lie over each other, so that one cannot ask for the hover of a letter
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    lit = page.locator(".lit")
    expect(lit.first).to_be_visible()
    assert lit.count() > 2
    assert {re.sub(r"[\u200b\s]", "", text) for text in lit.all_text_contents()} <= {"dk", "d_k"}
    page.mouse.move(5, 5)
    expect(lit).to_have_count(0)


def test_a_formula_stands_in_the_middle_whatever_its_badge(page):
    for row in page.locator(".equation").all()[:6]:
        row.scroll_into_view_if_needed()
        middle = row.evaluate(
            """(row) => {
                const [all, own, badge] = [row, row.querySelector(".katex-html"), row.querySelector("p")].map((n) => n.getBoundingClientRect());
                return [own.left + own.width / 2 - all.left - all.width / 2, own.width + 2 * badge.width < all.width - 64];
            }"""
        )
        assert abs(middle[0]) < 2 or not middle[1]


def test_what_is_written_from_right_to_left_keeps_its_mathematics(page):
    page.evaluate("document.documentElement.dir = 'rtl'")
    sides = "[...document.querySelectorAll('.katex, pre, .equation')].map((node) => getComputedStyle(node).direction)"
    assert set(page.evaluate(sides)) == {"ltr"}
    assert page.evaluate("getComputedStyle(document.querySelector('.bd-article p')).direction") == "rtl"
