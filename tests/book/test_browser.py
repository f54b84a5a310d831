"""Every kind of page in Chromium: nothing is fetched from elsewhere, nothing fails, everyone can use it, it fits a phone."""

from pathlib import Path

import pytest
from small_course import ROOT

from autograder.authoring.chapters import find_chapters

AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
MODES = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2},
}
CHAPTERS = [f"{chapter.stem}/{chapter.stem}.html" for chapter in find_chapters(ROOT)]
KINDS = [
    "index.html",
    CHAPTERS[0],
    *(
        f"reference/{n}.html"
        for n in (
            "formulas",
            "symbols",
            "glossary",
            "exercises",
            "cookbook",
            "kernels",
            "trained",
            "atlas",
            "bibliography",
            "errata",
        )
    ),
    "search.html?q=softmax",
    "evidence/test_attention.html",
    "evidence/proofs/softmax.html",
    "evidence/experiments/attention.html",
]
# Formulas that are not looked into are emptied, which halves the work; their boxes stay, so that what scrolls still does.
EMPTIED = """() => {
    const drawings = [...document.querySelectorAll('.katex-html')];
    const boxes = drawings.map((drawing) => drawing.getBoundingClientRect());
    drawings.forEach((drawing, i) => {
        const box = document.createElement('span');
        box.style.cssText = `display: inline-block; width: ${boxes[i].width}px; height: ${boxes[i].height}px`;
        drawing.replaceChildren(box);
    });
}"""
# Each kind of page in each mode; of the other chapters each in one, the modes in turn.
VISITS = [(page, mode) for page in KINDS for mode in MODES]
VISITS += [(page, list(MODES)[i % len(MODES)]) for i, page in enumerate(CHAPTERS[1:])]


@pytest.fixture(scope="module")
def contexts(browser):
    opened = {name: browser.new_context(**given) for name, given in MODES.items()}
    yield opened
    for context in opened.values():
        context.close()


def visit(context, home: str, name: str):
    """Open a page; returns it with what it asked of others and what it complained of."""
    page = context.new_page()
    foreign, told = [], []
    page.on("request", lambda request: request.url.startswith((home, "data:", "blob:")) or foreign.append(request.url))
    page.on("console", lambda message: message.type in ("error", "warning") and told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(home + name)
    for widget in page.locator(".course-widget-host").all():
        widget.scroll_into_view_if_needed()
    page.evaluate("document.querySelector('.follow')?.scrollIntoView()")  # lays out what is not in view first
    page.wait_for_function("[...document.querySelectorAll('.course-widget-host, .follow')].every((host) => host.dataset.state)")
    return page, foreign, told


def laid_out(page):
    """Lay out all of a page, with the fonts that this asks for."""
    page.add_style_tag(content="section, .formula { content-visibility: visible !important }")
    for _ in range(2):
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.evaluate("() => document.fonts.ready.then(() => true)")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def violations(page, exclude=(".katex",), rules: tuple[str, ...] = ()) -> list[str]:
    """What axe finds wrong by these rules, or by all if none is given, one line each.

    The inside of formulas is KaTeX's: spans hidden from readers, and MathML.
    """
    if not AXE.is_file():
        pytest.fail("axe-core is not installed: make tools")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    if exclude:
        page.evaluate(EMPTIED)
    found = page.evaluate(
        """async ([exclude, rules]) => {
            const only = rules.length ? { runOnly: rules } : {};
            return (await axe.run({ exclude }, { resultTypes: ["violations"], ...only })).violations;
        }""",
        [[[name] for name in exclude], list(rules)],
    )
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


@pytest.mark.parametrize(("name", "mode"), VISITS)
def test_a_page_from_the_disk(contexts, book, name, mode):
    page, foreign, told = visit(contexts[mode], f"{book.as_uri()}/", name)
    try:
        assert foreign == [] and told == []
        laid_out(page)
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"the page is {wide} pixels wider than the window"
        # what is asked in the light as well is asked in the dark of colours only: they are all that differs
        assert violations(page, rules=("color-contrast",) if mode == "dark" and name in KINDS else ()) == []
        assert page.evaluate("[...document.querySelectorAll('img')].filter((i) => i.complete && !i.naturalWidth).length") == 0
    finally:
        page.close()


@pytest.mark.parametrize("name", KINDS)
def test_a_page_from_a_server(contexts, server, name):
    page, foreign, told = visit(contexts["light"], server, name)
    page.close()
    assert foreign == [] and told == []


def test_the_inside_of_formulas_can_be_used_by_everyone_too(contexts, book):
    page, _, _ = visit(contexts["light"], f"{book.as_uri()}/", "reference/glossary.html")
    assert page.locator(".katex").count() > 10
    laid_out(page)
    assert violations(page, exclude=()) == []
    page.close()


@pytest.mark.parametrize("name", ["index.html", CHAPTERS[0], "reference/formulas.html"])
def test_a_page_without_scripts_says_all(browser, book, name):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{book.as_uri()}/{name}")
    assert page.locator("form.filter").count() == page.locator("form.filter[hidden]").count()
    assert all(alternative.is_visible() for alternative in page.locator(".course-alternative").all())
    assert all(still.bounding_box()["width"] > 500 for still in page.locator(".still").all())
    mathematics = "math" if name == "reference/formulas.html" else ".katex"  # the page of all formulas is drawn by a script
    assert page.locator(mathematics).first.is_visible() or name == "index.html"
    context.close()
