"""The EPUB and the PDF: made from the site's pages, valid, whole, and readable without the site."""

import re
import subprocess
import zipfile
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from small_course import REFERENCE

import course
from book import epub, pdf
from book.articles import mathml, read
from book.registry import load

XHTML = "{http://www.w3.org/1999/xhtml}"
FACTS = {"title": "The Mathematics of Transformers", "author": "the course's authors", "version": course.__version__}


@pytest.fixture(scope="module")
def articles(site):
    return read(site.parent / "src", site)


@pytest.fixture(scope="module")
def small_epub(articles, tmp_path_factory):
    """The EPUB of the small course."""
    return epub.write(articles, tmp_path_factory.mktemp("epub") / "small.epub", **FACTS)


@pytest.fixture(scope="module")
def small_pdf(articles, site, tmp_path_factory):
    """The PDF of the small course."""
    page = pdf.joined(articles, site, **FACTS)
    return pdf.write(page, tmp_path_factory.mktemp("pdf") / "small.pdf")


def words(path) -> str:
    """A PDF's text."""
    return subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True).stdout


# ---------------------------------------------------------------- articles


def test_articles_are_in_reading_order_with_their_parts(articles):
    assert [(article.part, article.key) for article in articles][:3] == [
        ("", "index"),
        ("Chance", "t01_coins"),
        ("Chance", "t02_dice"),
    ]
    assert {article.part for article in articles[3:]} == {"Teaching", "Reference"}
    assert articles[1].title == "Coins"


def test_what_only_a_browser_can_do_is_gone(articles):
    coins = articles[1].body
    assert coins.select("script, button, template, details, .headerlink, .notebook") == []
    assert "A slider for p < 1 at 0.25." in coins.get_text()
    assert coins.select_one("figure .widget-still .still-frame").decode_contents().startswith("<svg ")
    assert "the fair coin" in coins.get_text() and "draw()" not in coins.get_text()  # the test, not the figure's code


def test_hints_stand_at_the_end_of_the_chapter(articles):
    coins = articles[1].body
    exercise = coins.select_one("#exercise-t01-odds")
    assert "Divide." not in exercise.get_text()
    assert exercise.select_one(".to-hints a")["href"] == "t01_coins#hints-exercise-t01-odds"
    hints = coins.select("section")[-1]
    assert "Divide." in hints.get_text() and hints.select_one("#hints-exercise-t01-odds")
    assert hints.select_one("h3 a")["href"] == "t01_coins#exercise-t01-odds"


def test_links_stay_in_the_book_or_become_text(articles):
    ids = {article.key: {node["id"] for node in article.body.select("[id]")} for article in articles}
    for article in articles:
        for link in article.body.select("a[href]"):
            if not link["href"].startswith("http"):
                key, _, anchor = link["href"].partition("#")
                assert key in ids and (not anchor or anchor in ids[key]), link
    formulas = next(article.body for article in articles if article.key == "formulas")
    assert "test_odds" in formulas.get_text() and not formulas.select('a[href*="evidence"]')


def test_mathematics_is_mathml_that_epub_knows(articles):
    body = mathml(articles[1].body)
    assert body.select("math") and not body.select(".katex-html")
    odd = BeautifulSoup(
        '<p><span class="katex"><math><mi><munder><mo>max</mo><mi>x</mi></munder></mi>'
        "<msub><mi>a</mi><mi>max</mi><mo>\u2061</mo></msub></math></span></p>",
        "html.parser",
    )
    assert str(mathml(odd)) == (
        "<p><math><mrow><munder><mo>max</mo><mi>x</mi></munder></mrow><msub><mi>a</mi><mi>max</mi></msub></math></p>"
    )


# ---------------------------------------------------------------- EPUB


def test_epubcheck_finds_the_real_book_valid(real_epub):
    assert epub.check(real_epub) == ""
    assert real_epub.stat().st_size < 30e6


def test_the_epub_has_every_page_formula_and_figure(small_epub):
    with zipfile.ZipFile(small_epub) as file:
        assert file.infolist()[0].filename == "mimetype" and file.infolist()[0].compress_type == zipfile.ZIP_STORED
        pages = {name: file.read(name) for name in file.namelist() if name.endswith(".xhtml")}
        assert any(name.endswith(".svg") for name in file.namelist())
    trees = {name.removeprefix("book/"): ElementTree.fromstring(text) for name, text in pages.items()}
    assert {"nav.xhtml", "index.xhtml", "t01_coins.xhtml", "formulas.xhtml"} <= set(trees)
    text = "".join(trees["formulas.xhtml"].itertext())
    for formula in REFERENCE["formulas"]:
        assert formula["name"] in text and formula["latex"] in text
    figure = trees["t01_coins.xhtml"].findall(f".//{XHTML}figure")[1]
    assert "Figure T1.2 A slider sets" in "".join(figure.find(f"{XHTML}figcaption").itertext())
    assert figure.find(".//{http://www.w3.org/2000/svg}svg").get("viewBox").startswith("0 0 640 ")
    for name, tree in trees.items():
        assert tree.find(f"{XHTML}body//{XHTML}h1") is not None, name
        assert [image for image in tree.iter(f"{XHTML}img") if not image.get("alt")] == []
        for node in tree.iter():
            for attribute in ("src", "href"):
                assert not (node.tag != f"{XHTML}a" and (node.get(attribute) or "").startswith("http")), (name, node.attrib)


def test_a_file_that_is_no_epub_is_told(tmp_path):
    path = tmp_path / "bad.epub"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "text/plain")
    assert "ERROR" in epub.check(path)


def test_the_epub_tells_its_version_and_from_the_environment_its_date(articles, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    path = epub.write(articles, tmp_path / "dated.epub", **FACTS)
    package = zipfile.ZipFile(path).read("book/package.opf").decode()
    assert "1970-01-02T00:00:00Z" in package and f'<meta property="schema:version">{course.__version__}</meta>' in package


# ---------------------------------------------------------------- PDF


def test_the_pdf_is_tagged_titled_and_has_an_outline(small_pdf):
    facts = subprocess.run(["pdfinfo", small_pdf], capture_output=True, text=True, check=True).stdout
    assert re.search(r"Title:\s+The Mathematics of Transformers", facts) and re.search(r"Tagged:\s+yes", facts)
    assert re.search(r"Page size:.*A4", facts)
    structure = subprocess.run(["pdfinfo", "-struct-text", small_pdf], capture_output=True, text=True, check=True).stdout
    for kind in ("H1", "H2", "P", "Figure", "Table", "Link"):
        assert f"\n{kind}" in structure.replace("  ", "") or f" {kind}" in structure, kind
    assert b"/Outlines" in small_pdf.read_bytes()


def test_the_pdf_has_what_the_pages_have(small_pdf):
    text = re.sub(r"\s+", " ", words(small_pdf))
    for said in (
        f"Version {course.__version__}",
        "Contents",
        "Chance",
        "Coins",
        "The idea of odds",
        "the fair coin",
        "Divide.",
        "Figure T1.2",
        "Turns a probability into odds.",
        "Ars Conjectandi",
    ):
        assert said in text, said


def test_links_of_the_pdf_lead_inside_it(articles, site):
    page = BeautifulSoup(pdf.joined(articles, site, **FACTS), "html.parser")
    ids = [node["id"] for node in page.select("[id]")]
    assert len(ids) == len(set(ids))
    for link in page.select("a[href]"):
        assert link["href"].startswith("http") or link["href"].removeprefix("#") in ids, link
    for node in page.select("[src], link[href]"):
        assert (node.get("src") or node["href"]).startswith("file:///")


def test_without_a_browser_one_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf, "find", lambda program: None)
    with pytest.raises(pdf.PrintError, match="make tools"):
        pdf.write("<p>page</p>", tmp_path / "none.pdf")


def test_the_registry_of_the_real_book_is_whole(real_epub):
    with zipfile.ZipFile(real_epub) as file:
        pages = {key: ElementTree.fromstring(file.read(f"book/{key}.xhtml")) for key in ("formulas", "glossary")}
    entries = [node for node in pages["formulas"].iter(f"{XHTML}div") if "formula" in node.get("class", "").split()]
    assert len(entries) == len(load().formulas)
    terms = [list_ for list_ in pages["glossary"].iter(f"{XHTML}dl") if "glossary" in list_.get("class", "").split()]
    assert sum(len(list_.findall(f"{XHTML}dt")) for list_ in terms) == len(load().terms)
