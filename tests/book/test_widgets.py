"""All widgets of the book on one page in Chromium, without the book: every slider goes its whole way, dots move by all means."""

import json
import re

import pytest

from autograder.authoring.chapters import find_chapters
from book.pages import widget
from book.registry import ROOT
from course.widgets import MIME

# A press of an arrow key is a step and an `input` event; thousands of real ones would take minutes. Of a long way the first and
# the last of it is gone by steps.
PRESSES = """(held) => {
    const told = [];
    for (const host of document.querySelectorAll('.course-widget-host')) {
        host.querySelectorAll('input[type=range]').forEach((_, i) => {
            const input = () => host.querySelectorAll('input[type=range]')[i]; // a redraw may have made it anew
            const name = `${host.dataset.module}, ${input().closest('label').textContent}`;
            if (held.includes(name)) return;
            const change = (how) => { how(input()); input().dispatchEvent(new Event('input', { bubbles: true })); };
            const put = (value) => change((it) => (it.value = value));
            const press = (move, end, most) => {
                const texts = new Set();
                for (let presses = 1; presses <= most && input().value !== end; presses++) {
                    const before = input().value;
                    change((it) => it[move]());
                    texts.add(input().getAttribute('aria-valuetext'));
                    if (input().value === before) told.push(`${name}: ${move} is stuck at ${before}`);
                    if (presses === most && texts.size < 0.3 * presses) told.push(`${name}: ${presses} steps say ${texts.size} things`);
                }
            };
            const { value, min, max, step } = input();
            put(min);
            press('stepUp', max, 15);
            put(Math.max(max - 15 * step, min));
            press('stepUp', max, 16);
            if (input().value !== max) told.push(`${name}: ends at ${input().value} of ${max}`);
            press('stepDown', min, 5);
            put(value);
        });
    }
    return told;
}"""
HELD = ["decay_law, from distance", "decay_law, to distance"]  # the ends of a window hold each other


def outputs():
    """Each chapter's widget as its notebook stores it."""
    for chapter in find_chapters(ROOT):
        for cell in chapter.notebook.cells:
            if "widget" in cell.metadata.get("tags", []):
                yield cell.outputs[0].data[MIME]


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """open(width, **context): a page with every widget alive, and what it complained of."""
    script = (ROOT / "book" / "assets" / "widgets.js").read_text(encoding="utf-8")
    styles = [ROOT / "book" / "assets" / "course.css", ROOT / "course" / "widgets" / "library.css"]
    head = "".join(f"<style>{path.read_text(encoding='utf-8')}</style>" for path in styles)
    body = "\n".join(widget(bundle) for bundle in outputs())
    path = tmp_path_factory.mktemp("widgets") / "page.html"
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">{head}'
        f'<main>{body}</main><script type="module">{script}</script></html>',
        encoding="utf-8",
    )
    opened = []

    def open_(width: int, height: int = 780, **given):
        context = browser.new_context(viewport={"width": width, "height": height}, **given)
        opened.append(context)
        page, told = context.new_page(), []
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("console", lambda message: message.type == "error" and told.append(message.text))
        page.goto(path.as_uri())
        page.wait_for_function("[...document.querySelectorAll('.course-widget-host')].every((host) => host.dataset.state)")
        return page, told

    yield open_
    for context in opened:
        context.close()


def host(page, module: str):
    return page.locator(f'.course-widget-host[data-module="{module}"]')


def state(page, module: str) -> dict:
    return json.loads(host(page, module).locator("script").text_content())["state"]


def test_every_slider_goes_from_one_end_to_the_other(pages):
    page, told = pages(1280)
    assert page.evaluate(PRESSES, HELD) == [] and told == []
    text = page.evaluate("document.body.innerText + [...document.querySelectorAll('[aria-label]')].map((x) => x.ariaLabel).join(' ')")
    assert re.findall(r"\S*\d\^[\d{+−-]\S*", text) == []  # a power is written as one
