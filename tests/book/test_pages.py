"""Pages drawn from a small chapter that has every form: what is shown, what is hidden, what is refused."""

import html
import json
import re
import subprocess

import nbformat
import pytest
from nbformat.v4 import new_output
from small_course import ROOT, SVG, broken_links, bundle, coins, dice

import course.widgets
from book import extension
from book.build import BuildError, build, main, prepare
from book.generated import first_words
from book.names import place
from book.pages import fenced
from book.tables import in_table
from book.tables import main as tables
from course import plots


def read(folder, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def visible(page: str) -> str:
    """A page's words without tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)))


# ---------------------------------------------------------------- what a reader sees


def test_hidden_tests_and_solutions_are_nowhere(site):
    for path in [*site.parent.glob("src/**/*"), *site.glob("**/*")]:
        if path.is_file():
            text = path.read_text(errors="replace")
            for secret in (
                "hidden-sentinel",
                "HIDDEN TESTS",
                "float(p)",
                "heads against tails",
                "below one, the quotient",
                "One point for",
                "hidden-in-output",
            ):
                assert secret not in text and html.escape(secret) not in text, (path, secret)


def test_solutions_are_shown_on_demand(solved):
    page = visible(read(solved, "t01_coins/t01_coins.html"))
    for shown in (
        "Solution of t01.odds",
        "heads against tails",
        "float ( p )",
        "Solution of t01.why",
        "below one, the quotient",
        "Mark scheme",
        "One point for",
    ):
        assert shown in page
    for secret in ("hidden-sentinel", "HIDDEN TESTS", "hidden-in-output", "BEGIN SOLUTION", "### "):
        assert secret not in page


def test_an_exercise_is_a_card_with_hints(site):
    page = read(site, "t01_coins/t01_coins.html")
    assert '<div class="exercise docutils" id="exercise-t01-odds">' in page
    assert page.count('<details class="hint">') == 2
    hint = page[page.index("<summary>Hint 1</summary>") :][:3000]
    assert "katex" in hint and "p = 0.5 * x[-1]" in visible(hint)  # typeset, and the code untouched by Markdown
    assert "2 points" in visible(page) and 'aria-label="difficulty 2 of 5"' in page
    assert "raise NotImplementedError" in visible(page).replace("raise  ", "raise ")
    assert "the fair coin" in page  # the visible test


def test_formulas_and_terms_are_linked(site):
    page = read(site, "t01_coins/t01_coins.html")
    assert re.search(
        r'<span class="receipt receipt-computed"><a [^>]*href="\.\./reference/formulas\.html#formula-t01-odds"', page
    )
    assert page.count("glossary.html#term-odds") == 1  # the first use only
    assert page.count("glossary.html#term-probability") == 1
    assert 'id="formula-t01-odds"' in read(site, "reference/formulas.html")
    assert "Also: chance." in visible(read(site, "reference/glossary.html"))


def test_figures_have_their_text_and_a_form_for_light_and_for_dark(site):
    page = read(site, "t01_coins/t01_coins.html")
    shown = re.findall(r'<img alt="A bar of height one\." src="\.\./_images/(\w+)(-dark)?\.svg" [^>]*class="only-(\w+)"', page)
    assert [(dark, theme) for _, dark, theme in shown] == [("", "light"), ("-dark", "dark")]
    [name] = {name for name, _, _ in shown}
    assert read(site, f"_images/{name}.svg").strip() == SVG
    assert read(site, f"_images/{name}-dark.svg").strip() == SVG.replace(plots.COLOURS["query"], plots.DARK["query"])


def test_colours_of_a_figure_change_together():
    ink, query = plots.INK.lower(), plots.COLOURS["query"]
    light = extension.recolour(f"fill:{ink};stroke:{query}", extension.ON_LIGHT)
    assert light == f"fill:{extension.LIGHT_INK};stroke:{query}"
    for earlier in (light, f"fill:{ink};stroke:{query}"):
        assert extension.recolour(earlier, extension.ON_DARK) == f"fill:{extension.DARK_INK};stroke:{plots.DARK['query']}"


def test_a_display_formula_has_its_number_and_receipt(site):
    page = read(site, "t01_coins/t01_coins.html")
    equation = page[page.index('<div class="equation docutils" id="equation-t01-odds">') :].split("</div>\n</div>")[0]
    assert 'class="katex-display"' in equation and ">(T1.1)<" in equation
    assert "(T1.1) computed" in visible(equation) and "t01-odds computed" not in visible(equation)  # its card says the id
    assert page.count('class="equation docutils"') == 1


def test_hover_cards_say_what_a_page_links_to(site):
    page = read(site, "t01_coins/t01_coins.html")
    [term] = re.findall(r'<template id="card-term-odds">(.*?)</template>', page, re.DOTALL)
    assert "odds" in visible(term) and 'class="katex"' in term
    [formula] = re.findall(r'<template id="card-formula-t01-odds">(.*?)</template>', page, re.DOTALL)
    assert "Turns a probability into odds." in visible(formula) and "computed" in formula and "<a " not in formula
    assert "<template" not in read(site, "reference/glossary.html")


def test_pages_are_light_and_have_their_landmarks(site):
    for name in ("index.html", "search.html", "t01_coins/t01_coins.html", "reference/formulas.html"):
        page = read(site, name)
        for unwanted in ("fontawesome", "bootstrap", "jquery", "sphinx-design", "mystnb"):
            assert unwanted not in page
        assert page.index('<a class="skip-link" href="#main-content">') < page.index('<header class="bar">')
        for landmark in (
            '<main id="main-content"',
            '<nav class="book-nav" id="book-nav" aria-label="Book">',
            'class="search" role="search" aria-label="Book"',
            "<footer",
        ):
            assert page.count(landmark) == 1
        assert f", version {course.__version__}. " in page.partition("<footer")[2]
        assert page.count("<h1") == 1
        assert 'aria-label="Toggle hidden content"' not in page


def test_a_chapter_says_where_it_stands_and_what_it_asks(site):
    page = visible(read(site, "t01_coins/t01_coins.html"))
    assert "5 min to read" in page and "2 exercises, 10 min, 3 points" in page
    assert place("ch04_attention/ch04_attention") == "Chapter 4"
    assert place("f03_softmax/f03_softmax") == "Foundations 3"
    assert place("reference/formulas") == ""


def test_code_in_a_task_stays_code(site):
    page = read(site, "t01_coins/t01_coins.html")
    card = page[page.index('<div class="exercise docutils" id="exercise-t01-odds">') :].split(
        '<div class="cell tag_exercise-answer'
    )[0]
    assert "# **odds** of $p$, $$x$$ | 1" in visible(card)
    assert card.count("<summary>Hint") == 2  # inside the card, after the code
    assert "::" not in visible(card)
    assert "**odds**" not in visible(read(site, "reference/exercises.html"))


def test_a_solution_may_have_fences_of_its_own():
    assert fenced("a = 1") == "```python\na = 1\n```"
    assert fenced('"""\n```\nx\n```\n"""').startswith("````python\n")


def test_a_widget_lives_without_a_kernel(site):
    page = read(site, "t01_coins/t01_coins.html")
    [island] = re.findall(
        r'<div class="course-widget-host" data-module="toy">\s*<script type="application/json">(.*?)</script>', page, re.DOTALL
    )
    given = json.loads(island)
    assert given["state"] == bundle()["state"]
    assert given["esm"] == course.widgets.esm("toy") and "<" not in island
    assert "A slider for p &lt; 1 at 0.25." in page
    for name in ("widgets.js", "library.css", "course.css", "katex/katex.min.css"):
        assert (site / "_static" / name).is_file()


def test_the_model_of_widgets_runs_in_node(tmp_path):
    script = (
        read(ROOT, "book/assets/widgets.js").split("async function bring")[0]
        + """
    const it = model({ p: 1, q: [1] }); let calls = 0, saved = 0;
    it.on("change:p", () => calls++); it.on("change", () => saved++);
    it.set("p", 1); it.set("p", 2); it.set({ p: 3, q: [1] }); it.save_changes(); it.save_changes(); it.off("change:p"); it.set("p", 4);
    console.log(JSON.stringify([it.get("p"), calls, saved]));
    """
    )
    (tmp_path / "model.mjs").write_text(script)
    done = subprocess.run(["node", tmp_path / "model.mjs"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [4, 2, 1]


def test_the_notebook_is_one_click_away(site):
    assert 'href="../notebooks/t01_coins.ipynb" download="">Open as notebook</a>' in read(site, "t01_coins/t01_coins.html")
    assert (site / "notebooks" / "t01_coins.ipynb").is_file()
    assert "Open as notebook" not in read(site, "t02_dice/t02_dice.html")  # it has no release


def test_the_table_of_formulas_is_drawn_from_the_registry(site):
    page = read(site, "t01_coins/t01_coins.html")
    assert "Turns a probability into odds." in page and "Limits:" in page
    assert re.search(
        r'class="receipt receipt-computed"><a [^>]*href="\.\./reference/formulas\.html#formula-t01-odds"[^>]*><span[^>]*>computed<',
        page,
    )


def test_the_index_tells_promise_time_and_exercises(site):
    index = visible(read(site, "index.html"))
    assert "A coin that lands on its edge breaks most textbooks." in index
    assert "5 min to read · 2 exercises, 10 min" in index
    shortest = index.split("In a hurry")[1].split("How we know")[0]
    assert "Coins , 5 minutes" in shortest and "Dice" not in shortest


def test_reference_pages_have_their_rows(site):
    exercises = read(site, "reference/exercises.html")
    assert 'href="../t01_coins/t01_coins.html#exercise-t01-odds"' in exercises
    assert "Say in two sentences" in exercises
    assert "Ars Conjectandi" in read(site, "reference/bibliography.html")
    assert "Odds are chances." in read(site, "reference/errata.html")
    assert "no test" not in visible(read(site, "reference/formulas.html"))


def test_every_link_inside_the_site_resolves(site):
    assert broken_links(site) == []


def test_no_page_asks_another_site_for_anything(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|img|iframe|source)[^>]+src="(?:https?:)?//[^"]*"', text) == [], path
        assert re.findall(r'<link(?![^>]*rel="(?:canonical|license)")[^>]+href="(?:https?:)?//[^"]*"', text) == [], path
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", path.read_text(errors="replace")) == [], path


def test_the_palette_is_that_of_the_figures():
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6});", block)) for block in read(ROOT, "course/widgets/library.css").split("}")[:2]
    )
    assert (light, dark) == (plots.COLOURS, plots.DARK)


# ---------------------------------------------------------------- what is refused


def refused(make, change=None, **given) -> str:
    notebook = coins()
    if change:
        change(notebook)
    with pytest.raises(BuildError) as error:
        prepare(make(chapters={"t01_coins": notebook, "t02_dice": dice()}, **given))
    return str(error.value)


def replace(number, old, new):
    def change(notebook):
        assert old in notebook.cells[number].source
        notebook.cells[number].source = notebook.cells[number].source.replace(old, new)

    return change


def test_an_unknown_formula_is_refused(make):
    assert "t01_coins, cell 2: formula t01-nine is not in book/reference/formulas.yml" in refused(
        make, replace(2, "Formula t01-odds", "Formula t01-nine")
    )
    assert "has the form *Formula ch04-scale.*" in refused(make, replace(2, "*Formula t01-odds.*", "**Formula t01-odds**"))


def test_a_link_to_no_chapter_is_refused(make):
    assert "the link to ../t07_cards/t07_cards.ipynb is dead" in refused(
        make, replace(0, "t02_dice/t02_dice", "t07_cards/t07_cards")
    )


def test_a_figure_without_its_text_is_refused(make):
    assert 'cell metadata "alt"' in refused(make, lambda notebook: notebook.cells[3].metadata.pop("alt"))


def test_a_widget_that_did_not_run_is_refused(make):
    assert "run the notebook" in refused(make, lambda notebook: notebook.cells[4].outputs.clear())
    assert "course/widgets/gone.js" in refused(
        make, lambda notebook: notebook.cells[4].outputs[0].data[course.widgets.MIME].update(module="gone")
    )


def test_a_page_that_tells_a_hidden_test_is_refused(make):
    def change(notebook):
        notebook.cells[3].outputs.append(new_output("stream", text='check(odds).on(0.8).returns(4.0, see="hidden-sentinel")\n'))

    assert "the page would tell" in refused(make, change)


def test_marks_that_nbgrader_cannot_read_are_refused(make):
    assert "nbgrader cannot clear" in refused(make, replace(6, "### END SOLUTION", ""))


def test_a_registry_with_errors_is_refused(make):
    assert "'t09' is none of the chapters" in refused(make, glossary=[{"term": "a", "chapter": "t09", "definition": "b"}])


def test_a_first_cell_without_its_lines_is_refused(make):
    assert "lacks a line of the form: **Time**" in refused(make, replace(0, "**Time**", "Time"))


def test_a_chapter_outside_the_contents_is_refused(make):
    root = make(chapters={"t01_coins": coins(), "t02_dice": dice(), "t08_extra": dice()})
    with pytest.raises(BuildError, match=r"_toc.yml does not name t08_extra"):
        prepare(root)


def test_mathematics_that_does_not_typeset_is_refused(make, capfd):
    first, second = coins(), dice()
    first.cells[0].source += "\n\n$\\notacommand{p}$"
    second.cells[0].source += "\n\nprice \\$p\\$ or \\\\frac"
    with pytest.raises(BuildError, match="a warning is an error"):
        build(make(chapters={"t01_coins": first, "t02_dice": second}))
    told = capfd.readouterr().err
    assert re.search(r"t01_coins\.ipynb.*KaTeX cannot typeset", told) and re.search(
        r"t02_dice\.ipynb.*mathematics stayed text", told
    )


# ---------------------------------------------------------------- preparing and tables


def test_a_page_is_written_only_if_it_changed_and_taken_away_with_its_chapter(make):
    root = make()
    source = prepare(root)
    before = {path: path.stat().st_mtime_ns for path in source.rglob("*") if path.is_file()}
    prepare(root)
    assert {path: path.stat().st_mtime_ns for path in source.rglob("*") if path.is_file()} == before
    (root / "source" / "t02_dice" / "t02_dice.ipynb").unlink()
    notebook = root / "source" / "t01_coins" / "t01_coins.ipynb"
    notebook.write_text(notebook.read_text().replace("[Dice](../t02_dice/t02_dice.ipynb)", "nothing"))
    prepare(root)
    assert not (source / "t02_dice" / "t02_dice.ipynb").exists()


def test_a_style_that_changed_reaches_every_page(make):
    root = make()
    site = build(root)
    style, page = root / "book" / "assets" / "course.css", site / "index.html"
    version = re.search(r"course\.css\?v=(\w+)", page.read_text())[1]
    style.write_text(style.read_text() + "\n/* another */\n")
    build(root)
    assert (site / "_static" / "course.css").read_text() == style.read_text()
    assert version not in page.read_text()


def test_a_display_formula_inside_a_paragraph_becomes_a_block(make):
    root = make(chapters={"t01_coins": coins(), "t02_dice": dice()})
    notebook = root / "source" / "t01_coins" / "t01_coins.ipynb"
    notebook.write_text(notebook.read_text().replace("Once more,", "So: $$a = b$$ once more, and `$$` stays,"))
    page = read(prepare(root), "t01_coins/t01_coins.ipynb")
    assert '"$$\\n",\n    "a = b\\n",\n    "$$\\n"' in page and "`$$` stays" in page


def test_tables_are_written_and_checked(make, capsys):
    root = make()
    assert tables(["--check"], root) == 1
    assert "t01_coins: the table of formulas is stale" in capsys.readouterr().out
    tables(["t01"], root)
    assert tables(["t01", "--check"], root) == 0
    [cell] = [
        cell
        for cell in nbformat.read(root / "source/t01_coins/t01_coins.ipynb", as_version=4).cells
        if "receipts" in cell.metadata.get("tags", [])
    ]
    summary = "<summary>The 2 formulas of this chapter, with what the evidence of each shows</summary>"
    assert cell.source.startswith(f"<!-- receipts -->\n\n<details>{summary}\n\n| Formula |")
    assert cell.source.endswith(" |\n\n</details>")
    assert (
        r"| Odds (t01-odds)<br>$o = \frac{p}{1-p}, \quad \vert p\vert < 1$ | Turns a probability into odds. | computed | Equal to counted odds"
        in cell.source
    )
    assert tables(["t02"], root) == 1  # it has no cell for one
    assert "tagged `receipts`" in capsys.readouterr().out


def test_bars_do_not_end_a_cell_of_a_table():
    assert in_table(r"\|x\| = |y|") == r"\Vert x\Vert = \vert y\vert"


def test_first_words_do_not_cut_mathematics():
    text = "**Exercise t01.odds** · 2 points · ★ · 5 min · code\n\nWrite **a** [link](x.ipynb) for $a + b$ and `f(x, y)` again, please.\n\nMore."
    assert first_words(text, 7) == "Write a link for $a + b$ and `f(x, y)` …"
    assert first_words(text, 70).endswith("please.")


def test_the_command_tells_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr("book.build.build", lambda **given: (_ for _ in ()).throw(BuildError("mend this")))
    assert main() == 1
    assert "mend this" in capsys.readouterr().err
