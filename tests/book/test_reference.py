"""The reference pages: what each row says, where it leads, and what machines may read."""

import html
import importlib
import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from small_course import ROOT, coins, dice

from autograder.authoring.chapters import find_chapters
from book import generated
from book.build import build, contents, prepare
from book.evidence_pages import WITHHELD
from book.generated import WIDTH
from book.registry import Formula, Registry, Term, load
from book.terms import places
from course.cookbook import RECIPES


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def text(node) -> str:
    return re.sub(r"\s+", " ", node.get_text(" "))


@pytest.fixture(scope="module")
def real(book):
    """The pages of the real course, before Sphinx."""
    return book.parent / "src"


# ---------------------------------------------------------------- formulas


def test_each_formula_has_its_row(site):
    rows = soup(site / "reference" / "formulas.html").select(".formula")
    assert [row["id"] for row in rows] == ["formula-t01-odds", "formula-t01-edges", "formula-t02-half", "formula-t02-luck"]
    odds = rows[0]
    said = text(odds)
    for part in (
        "Odds",
        "computed",
        "t01-odds",
        "Turns a probability into odds.",
        "Equal to counted odds",
        "Limits:",
        "test_odds",
    ):
        assert part in said, part
    assert odds.select_one("math")["data-tex"].strip() == r"o = \frac{p}{1-p}, \quad |p| < 1" and not odds.select(".katex")
    assert {"is-t01", "is-computed"} <= set(odds["class"])
    links = [link["href"] for link in odds.select("a")]
    assert links == ["../evidence/test_coins.html#evidence-test-coins-test-odds"]
    assert odds.find_parent("section").h2.a["href"] == "../t01_coins/t01_coins.html"


def test_a_measurement_leads_to_its_experiment_and_record(site):
    [row] = [row for row in soup(site / "reference" / "formulas.html").select(".formula") if row["id"] == "formula-t01-edges"]
    assert "../evidence/experiments/coins.html#experiment-coins" in [link["href"] for link in row.select("a")]
    page = soup(site / "evidence" / "experiments" / "coins.html")
    assert "Throws coins." in text(page) and "seeds" in text(page) and "heads" not in text(page)
    assert json.loads((site / "records" / "coins.json").read_text())["seeds"] == [1, 2]
    assert page.select_one('a[download][href="../../records/coins.json"]')
    assert page.select_one("meta[name=description]")["content"].startswith("Edges, in Coins: Some coins stay")
    assert page.select_one('a[href="../../reference/formulas.html#formula-t01-edges"]')  # what it is evidence for
    assert page.select_one('a[href="../../t01_coins/t01_coins.html"]')  # and the way back


def test_a_proof_leads_to_its_file(site):
    [row] = [row for row in soup(site / "reference" / "formulas.html").select(".formula") if row["id"] == "formula-t02-half"]
    assert "Proved in Rocq" in text(row) and "The odds of one half are one." in text(row)
    [link] = [link["href"] for link in row.select("a") if "evidence" in link["href"]]
    assert link == "../evidence/proofs/odds.html#evidence-odds-odds-of-half"
    page = text(soup(site / "evidence" / "proofs" / "odds.html"))
    assert "Theorem odds_of_half" in page and "Qed" in page and "proof assistant checks" in page


def test_lines_that_show_a_theorem_stand_in_its_row():
    formula = Formula("p", "P", "x", "d", "f01", "proved", "tests/receipts/proofs/a.v::t", "s")
    made = generated.formulas(Registry({"f01": "One"}, {"p": formula}, {}, {}, {}), set(), {}, {formula.evidence: ["*in words*"]})
    assert made.index("(formula-p)=") < made.index("*in words*") < made.index("{ref}`t <evidence-a-t>`")


def test_evidence_is_shown_with_what_it_is_for_and_without_answers(site):
    page = soup(site / "evidence" / "test_coins.html")
    section = page.select_one("#evidence-test-coins-test-odds")
    section = section if section.name == "section" else section.parent
    assert "counted(0.5)" in text(page).replace(" ( ", "(").replace(" )", ")")
    assert page.select_one('a[href="../reference/formulas.html#formula-t01-odds"]')
    assert page.select_one('a[href="../reference/errata.html#erratum-1"]')
    assert page.select_one('a[href="../t01_coins/t01_coins.html#equation-t01-odds"]').get_text() == "(T1.1)"
    first = page.select_one("h2 + ul").get_text()
    assert "Equal to counted odds to" in first and page.get_text().index(first) < page.get_text().index("pytest")
    assert WITHHELD in page.get_text() and "hidden-sentinel" not in page.get_text()


def test_every_evidence_of_the_course_has_its_page(real):
    registry = load()
    named = {formula.evidence for formula in registry.formulas.values()} | {e.check for e in registry.errata.values()}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (real / "evidence").rglob("*.md"))
    for evidence in filter(None, named):
        assert f"(evidence-{Path(evidence.partition('::')[0]).stem}-{evidence.partition('::')[2]})=" in pages, evidence


def test_filters_offer_the_chapters_and_receipts_that_there_are(site):
    form = soup(site / "reference" / "formulas.html").select_one("form.filter")
    assert form.has_attr("hidden")  # until the script is there
    options = {select["name"]: [o["value"] for o in select.select("option")] for select in form.select("select")}
    assert options == {"chapter": ["", "t01", "t02"], "receipt": ["", "proved", "computed", "measured", "analogy"]}
    assert all(field.find_parent("label") for field in form.select("input, select"))


def test_six_hundred_formulas_make_a_page(make):
    registry = [
        {"id": f"t01-m{i}", "name": f"Formula {i}", "latex": rf"x_{{{i}}} = \frac{{1}}{{{i}}}", "does": "Counts.", "chapter": "t01_coins", "receipt": "open"}
        for i in range(600)
    ]  # fmt: skip
    notebook = coins()
    notebook.cells[2].source = notebook.cells[2].source.replace("*Formula t01-odds.*", "*Formula t01-m1.*")
    site = build(make(formulas=registry, errata=[], chapters={"t01_coins": notebook, "t02_dice": dice()}))
    page = (site / "reference" / "formulas.html").read_text(encoding="utf-8")
    assert page.count('<div class="formula ') == 600
    assert len(page) < 4_000_000


# ---------------------------------------------------------------- glossary


def test_the_glossary_says_where_a_term_comes_in_and_where_it_is_used(site):
    terms = {dt.get("id"): text(dt.find_next("dd")) for dt in soup(site / "reference" / "glossary.html").select("dl.glossary dt")}
    assert "Introduced in Coins , The idea of odds ." in terms["term-odds"]
    assert "Used in" not in terms["term-odds"]  # Dice only links the section
    assert "Also: chance." in terms["term-probability"]


def test_places_are_found_by_every_name_and_not_inside_code_or_mathematics(make):
    notebook = dice()
    notebook.cells[0].source += "\n\nTwo chances, `odds` and $odds$."
    root = make(chapters={"t01_coins": coins(), "t02_dice": notebook})
    found = places(load(root / "book" / "reference"), find_chapters(root))
    assert found["odds"].section == "the-idea-of-odds" and found["odds"].used == ()
    assert found["probability"].used == ("t02_dice",)


@pytest.mark.parametrize(("name", "sentence", "used"), [
    ("PE", "Some pe here.", False),
    ("PE", "A PE here.", True),
    ("RoPE", "rope", False),
    ("score", "Scores here", True),
    ("score", "underscored", False),
    ("bias", "two biases", True),
    ("key", "a key-value store", False),
])  # fmt: skip
def test_a_name_is_a_word_and_capitals_count(make, name, sentence, used):
    notebook = dice()
    notebook.cells[0].source += f"\n\n{sentence}"
    root = make(chapters={"t02_dice": notebook})
    registry = Registry({}, {}, {name: Term(name, "t01_coins", "d")}, {}, {})
    assert places(registry, find_chapters(root))[name].used == (("t02_dice",) if used else ())


def test_every_term_of_a_chapter_of_the_book_says_its_section(real):
    registry, there = load(), {chapter.stem for chapter in find_chapters(ROOT)}
    found = places(registry, find_chapters(ROOT))
    assert [term.term for term in registry.terms.values() if term.chapter in there and not found[term.term].section] == []


def test_definitions_are_one_or_two_sentences():
    for term in load().terms.values():
        assert len(re.findall(r"[.?](?= [A-Z$])", term.definition)) <= 2, term.term
        assert len(term.definition.split()) <= 45, term.term


# ---------------------------------------------------------------- exercises, solutions, errata, sources, recipes


def test_exercises_have_points_difficulty_and_a_link(site):
    page = soup(site / "reference" / "exercises.html")
    rows = page.select(".entry")
    assert [row.a["href"] for row in rows] == [f"../t01_coins/t01_coins.html#exercise-t01-{name}" for name in ("odds", "why")]
    assert "2 points · ★★ · 5 min · code" in text(rows[0]) and {"is-t01", "is-stars-2", "is-code"} <= set(rows[0]["class"])
    assert "2 exercises, 3 points" in text(page)


def test_solutions_have_a_page_only_when_asked(site, solved):
    assert not (site / "reference" / "solutions.html").exists()
    page = text(soup(solved / "reference" / "solutions.html"))
    assert "Solution of t01.odds" in page and "heads against tails" in page and "below one, the quotient" in page
    assert "hidden-sentinel" not in page
    toc = {"parts": [{"caption": "R", "chapters": [{"file": "reference/solutions"}, {"file": "reference/errata"}]}]}
    assert contents(toc, set())["parts"][0]["chapters"] == [{"file": "reference/errata"}]
    assert contents(toc, set(), solutions=True)["parts"] == toc["parts"]


def test_errata_lead_to_the_check(site):
    page = soup(site / "reference" / "errata.html")
    assert "Odds are chances." in text(page)
    assert page.select_one('.erratum a[href="../evidence/test_coins.html#evidence-test-coins-test-odds"]')


def test_sources_say_which_chapter_uses_them(make):
    notebook = dice()
    notebook.cells[0].source += "\n\n[Bernoulli](https://example.org/ars)"
    source = prepare(make(chapters={"t01_coins": coins(), "t02_dice": notebook}))
    page = (source / "reference" / "bibliography.md").read_text()
    assert "(source-b)=" in page and "[In [Dice](../t02_dice/t02_dice.ipynb)]{.facts}" in page


def test_the_cookbook_shows_what_its_commands_print(site, capsys, monkeypatch):
    page = soup(site / "reference" / "cookbook.html")
    assert len(page.select("section > h2")) == len(RECIPES) + 1  # and the profile
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for command in [pre.get_text().strip() for pre in page.select(".highlight-bash pre")][1:]:
        _, _, module, *arguments = command.split()
        assert importlib.import_module(module).main(arguments) == 0
        printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.strip().splitlines())
        assert html.escape(printed, quote=False) in html.escape(page.get_text(), quote=False), command


# ---------------------------------------------------------------- for machines


def test_formulas_for_machines(site):
    formulas = json.loads((site / "formulas.json").read_text(encoding="utf-8"))
    assert [formula["id"] for formula in formulas] == ["t01-odds", "t01-edges", "t02-half", "t02-luck"]
    odds = formulas[0]
    assert odds["latex"] == r"o = \frac{p}{1-p}, \quad |p| < 1" and odds["receipt"] == "computed"
    assert odds["chapter_title"] == "Coins"
    assert odds["equations"] == [{"number": "T1.1", "page": "t01_coins/t01_coins.html#equation-t01-odds"}]
    assert formulas[1]["equations"] == []
    assert list(odds["symbols"]) == ["o", "p"] and "probabilities" in odds["symbols"]["p"][0]
    for formula in formulas:
        page, _, anchor = formula["page"].partition("#")
        assert f'id="{anchor}"' in (site / page).read_text(encoding="utf-8")


def test_glossary_for_machines(site):
    head, *rows = (line.split("\t") for line in (site / "glossary.tsv").read_text(encoding="utf-8").splitlines())
    assert head == ["term", "also", "introduced", "used", "definition"]
    assert rows == [
        ["odds", "", "t01_coins#the-idea-of-odds", "", "Probability $p$ over $1-p$."],
        ["probability", "chance", "t01_coins#the-idea-of-odds", "", "A number between 0 and 1."],
    ]
