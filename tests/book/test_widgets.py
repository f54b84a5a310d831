"""All widgets of the book on one page in Chromium, without the book: every slider goes its whole way, dots move by all means."""

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
        f'<main class="bd-article"><section><section>{body}</section></section></main><script type="module">{script}</script></html>',
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


def test_every_slider_goes_from_one_end_to_the_other(pages):
    page, told = pages(1280)
    assert page.evaluate(PRESSES, HELD) == [] and told == []
    text = page.evaluate(
        "document.body.innerText + [...document.querySelectorAll('[aria-label]')].map((x) => x.ariaLabel).join(' ')"
    )
    assert re.findall(r"\S*\d\^[\d{+−-]\S*", text) == []  # a power is written as one


# Each dot that can be dragged: its widget and its label.
DOTS = [
    ("vectors_matrices_shapes", "tip of u"),
    ("gradients_and_descent", "start, on the parabola"),
    ("softmax_and_cross_entropy", "temperature, on the curve"),
    ("softmax_and_cross_entropy", "top of bar a"),
    ("signals_through_depth", "depth, on the line"),
    ("overview", "token"),
    ("attention", "tip of k2"),
    ("ffn", "input x"),
    ("ffn", "x, on the curve"),
    ("position_rope", "distance, on the curve"),
    ("training", "model size N"),
]


@pytest.mark.parametrize("by", ["mouse", "finger"])
def test_dots_move_by_mouse_finger_and_keyboard(pages, by):
    page, told = pages(1280) if by == "mouse" else pages(390, has_touch=True, is_mobile=True)
    for module, label in DOTS:
        dot = host(page, module).get_by_role("slider", name=label, exact=True)
        dot.scroll_into_view_if_needed()
        before = dot.get_attribute("aria-valuetext")
        dot.press("ArrowLeft")
        stepped = dot.get_attribute("aria-valuetext")
        assert stepped != before, f"{module}, {label}: no key moves it"
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused == label, f"{module}, {label}: the key lost the dot"
        box = dot.locator("circle").last.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        kind = {"pointerType": "mouse" if by == "mouse" else "touch", "bubbles": True}
        dot.dispatch_event("pointerdown", {**kind, "clientX": x, "clientY": y})
        for far in (15, 30):
            page.evaluate(
                "(given) => window.dispatchEvent(new PointerEvent('pointermove', given))",
                {**kind, "clientX": x + far, "clientY": y - far},
            )
        page.evaluate("window.dispatchEvent(new PointerEvent('pointerup'))")
        assert dot.get_attribute("aria-valuetext") != stepped, f"{module}, {label}: no {by} moves it"
    assert told == []


def test_the_picture_stays_in_view_on_a_telephone_while_an_input_moves(pages):
    page, _ = pages(390, 640, has_touch=True, is_mobile=True)
    hidden = page.evaluate("""() => [...document.querySelectorAll('.course-drawing:first-child')].flatMap((drawing) => {
        const [host, told] = [drawing.closest('.course-widget-host'), []];
        for (const input of drawing.parentElement.querySelectorAll('input[type=range]')) {
            input.scrollIntoView({ block: 'center' });
            const [seen, place] = [drawing.getBoundingClientRect(), input.getBoundingClientRect()];
            const room = Math.min(seen.bottom, innerHeight) - Math.max(seen.top, 0);
            if (room < Math.min(seen.height, 0.4 * innerHeight) || seen.bottom > place.top + 1) told.push(`${host.dataset.module}: ${Math.round(room)} pixels are seen, to ${Math.round(seen.bottom)}, beside ${input.closest('label').textContent} at ${Math.round(place.top)}`);
        }
        return told;
    })""")
    assert hidden == []


def test_the_race_is_played_and_who_wants_less_motion_goes_by_steps(pages):
    page, _ = pages(1280)
    race = host(page, "optimisers_and_schedules")
    race.get_by_role("button", name="Play").click()
    page.wait_for_timeout(400)
    race.get_by_role("button", name="Pause").click()
    assert 1 <= int(race.get_by_role("slider", name="step", exact=True).input_value()) < 60
    page, _ = pages(1280, reduced_motion="reduce")
    race = host(page, "optimisers_and_schedules")
    for step in ("0", "1"):
        race.get_by_role("button", name="Next step").click()
        assert race.get_by_role("slider", name="step", exact=True).input_value() == step


def test_a_block_is_clicked_a_head_chosen_and_a_word_drawn(pages):
    page, told = pages(1280)
    block = host(page, "block")
    block.get_by_role("button", name="feed-forward").press("Enter")
    assert block.get_by_text("Each token by itself").is_visible()
    heads = host(page, "multi_head")
    heads.get_by_role("button", name="glad").click()
    assert heads.get_by_text(re.compile("Layer 4, head 4: “glad” looks at “was”")).is_visible()
    words = host(page, "inference")
    words.get_by_label("Prompt").fill("Elizabeth")
    words.get_by_role("button", name="Draw the next word").click()
    assert re.fullmatch(r"Elizabeth(\.| \w+)", words.get_by_label("Prompt").input_value())
    assert told == []


def test_the_two_grids_of_a_mask_stand_in_line(pages):
    page, _ = pages(1280)
    rows = (
        host(page, "architectures")
        .locator("table")
        .evaluate_all(
            "(tables) => tables.map((table) => [...table.rows].map((row) => Math.round(row.getBoundingClientRect().top)))"
        )
    )
    assert len(rows) == 2 and rows[0] == rows[1]
