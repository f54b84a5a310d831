"""What moves on the pages, driven by keyboard and touch: its effects are those of the course's Python."""

import json
import re
from collections import Counter
from urllib.parse import parse_qs, urlparse

import pytest
import torch
from playwright.sync_api import expect

from autograder.authoring.chapters import find_chapters
from book.registry import ROOT, load
from course.attention import attention, attention_weights, contribution
from course.position_rope import rope
from course.softmax_and_cross_entropy import entropy, softmax
from course.tokens import bpe_encode
from course.widgets.architectures import MaskPainter
from course.widgets.embeddings import WORDS, WordSums
from course.widgets.ffn import NAMES, ActivationChooser
from course.widgets.inference import Filters
from course.widgets.multi_head import HeadCount
from course.widgets.residual_norm import TokenCloud
from course.widgets.training import ComputeBudget

REGISTRY = load()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    yield opened
    context.close()


@pytest.fixture
def phone(browser):
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    opened = context.new_page()
    yield opened
    context.close()


def widget(page, address: str, module: str):
    """The widget of a chapter, alive, with the state that it started from."""
    [stem] = [chapter.stem for chapter in find_chapters(ROOT) if chapter.stem.endswith(f"_{module}")]
    page.goto(f"{address}{stem}/{stem}.html")
    host = page.locator(f'.course-widget-host[data-module="{module}"]')
    state = json.loads(host.locator("script").text_content())["state"]
    host.scroll_into_view_if_needed()
    expect(host).to_have_attribute("data-state", "alive")
    return host, state


def said(host) -> str:
    return host.locator(".course-said").text_content()


def numbers(text: str) -> list[float]:
    return [float(x.replace("−", "-").replace(",", "")) for x in re.findall(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?(?![\w])", text)]


# ---------------------------------------------------------------- widgets


def check_softmax(host):
    """The sentence's probabilities and entropy are those of its scores and temperature."""
    text = said(host)
    scores = torch.tensor(numbers(text.partition(" at temperature ")[0]), dtype=torch.float64)
    tau, *rest = numbers(text.partition(" at temperature ")[2].replace(". Their", " Their"))
    probs = softmax(scores, tau)
    assert rest[:3] == pytest.approx(probs.tolist(), abs=5.1e-4)
    assert rest[3] == pytest.approx(float(entropy(probs)), abs=5.1e-4)
    return scores.tolist(), tau


def test_softmax_by_keyboard(page, disk):
    host, state = widget(page, disk, "softmax_and_cross_entropy")
    before, tau = check_softmax(host)
    assert before == pytest.approx(state["scores"]) and tau == pytest.approx(state["tau"])
    host.get_by_role("slider", name="score of a").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    host.get_by_role("slider", name="temperature τ").focus()
    page.keyboard.press("Home")
    expect(host.locator(".course-said")).to_contain_text("temperature 0.10")
    after, tau = check_softmax(host)
    assert after == pytest.approx([before[0] + 0.3, *before[1:]]) and tau == 0.1


def test_softmax_by_touch(phone, disk):
    host, _ = widget(phone, disk, "softmax_and_cross_entropy")
    before, _ = check_softmax(host)
    host.get_by_role("button", name="Double every score").tap()
    expect(host.locator(".course-said")).to_contain_text(f"Scores {2 * before[0]:.1f}")
    after, _ = check_softmax(host)
    assert after == pytest.approx([2 * x for x in before])
    heat = host.get_by_role("slider", name="temperature τ")
    heat.tap(position={"x": heat.bounding_box()["width"] * 0.8, "y": heat.bounding_box()["height"] / 2})
    expect(host.locator(".course-said")).not_to_contain_text("temperature 1.00")
    assert check_softmax(host)[1] == pytest.approx(4, abs=0.5)


def check_tokens(host, merges, text: str, applied: int):
    ids = bpe_encode(text, [tuple(pair) for pair in merges[:applied]])
    plural = "s" if len(ids) != 1 else ""
    expect(host.locator(".course-said")).to_contain_text(f"{len(ids)} token{plural} for {len(text)} character")
    shown = host.locator(".course-tokens .course-chip")
    assert [int(chip.get_attribute("title").split()[1]) for chip in shown.all()] == ids


def test_tokens_by_keyboard(page, disk):
    host, state = widget(page, disk, "tokens")
    check_tokens(host, state["merges"], state["text"], state["applied"])
    host.get_by_label("Your text").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("the thing and the year 2026: größer 😀")
    check_tokens(host, state["merges"], "the thing and the year 2026: größer 😀", state["applied"])
    host.get_by_role("slider", name="merges applied").focus()
    page.keyboard.press("End")
    check_tokens(host, state["merges"], "the thing and the year 2026: größer 😀", len(state["merges"]))


def test_tokens_by_touch(phone, disk):
    host, state = widget(phone, disk, "tokens")
    count = host.get_by_role("slider", name="merges applied")
    count.tap(position={"x": 2, "y": count.bounding_box()["height"] / 2})
    applied = int(count.input_value())
    assert applied < state["applied"] / 2
    check_tokens(host, state["merges"], state["text"], applied)


def check_attention(host, query, key, value, row: int, scaled: bool):
    query, key, value = (torch.tensor(x, dtype=torch.float64) for x in (query, key, value))
    stretched = query if scaled else query * query.shape[-1] ** 0.5
    weights = attention_weights(stretched, key)
    text = said(host)
    assert text.startswith(f"Query {row + 1} ")
    told = numbers(text.partition("weights ")[2])
    expected = [
        *weights[row].tolist(),
        *attention(stretched, key, value)[row].tolist(),
        *contribution(weights, value)[row].tolist(),
    ]
    assert told == pytest.approx(expected, abs=5.1e-4)


def test_attention_by_keyboard(page, disk):
    host, state = widget(page, disk, "attention")
    query, key, value = state["query"], state["key"], state["value"]
    check_attention(host, query, key, value, state["row"], state["scaled"])
    cell = host.get_by_label("Keys K, k2, column 1")
    cell.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("2.5")
    key = [key[0], [2.5, *key[1][1:]], *key[2:]]
    page.wait_for_timeout(300)
    check_attention(host, query, key, value, state["row"], state["scaled"])
    host.get_by_role("button", name="scaled by").focus()
    page.keyboard.press("Enter")
    expect(host.locator(".course-said")).to_contain_text("without scaling" if state["scaled"] else "with scaling")
    check_attention(host, query, key, value, state["row"], not state["scaled"])


def test_attention_by_touch(phone, disk):
    host, state = widget(phone, disk, "attention")
    host.get_by_role("button", name=re.compile(r"query \d of")).tap()
    row = (state["row"] + 1) % len(state["query"])
    expect(host.locator(".course-said")).to_contain_text(f"Query {row + 1} ")
    check_attention(host, state["query"], state["key"], state["value"], row, state["scaled"])


def check_rope(host, d_head: int):
    """The sentence's share of the score is that of two equal contents turned by Python's RoPE."""
    theta = numbers(said(host).partition("base ")[2].partition(": the")[0])[0]
    ahead, at = (int(x) for x in re.search(r"position (\d+), key \(.*?\) at (\d+)", said(host)).groups())
    share = numbers(said(host).rpartition("score is ")[2])[0]
    ones = torch.ones(1, d_head, dtype=torch.float64)
    query, key = (rope(ones, torch.tensor([float(place)], dtype=torch.float64), theta=theta) for place in (ahead, at))
    assert share == pytest.approx(float((query * key).sum()) / d_head, abs=2e-3)  # the base is told rounded
    return theta, at, ahead - at


def test_clocks_by_keyboard(page, disk):
    host, state = widget(page, disk, "position_rope")
    theta, at, distance = check_rope(host, state["d_head"])
    assert (theta, at, distance) == (state["theta"], state["position"], state["distance"])
    host.get_by_role("slider", name="distance", exact=True).focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(host.locator(".course-said")).to_contain_text(f"position {at + distance + 4},")
    assert check_rope(host, state["d_head"]) == (theta, at, distance + 4)
    host.get_by_role("slider", name="base θ").focus()
    page.keyboard.press("Home")
    expect(host.locator(".course-said")).to_contain_text("base 10:")
    assert check_rope(host, state["d_head"])[0] == 10


def test_clocks_by_touch(phone, disk):
    host, state = widget(phone, disk, "position_rope")
    slider = host.get_by_role("slider", name="key's position")
    box = slider.bounding_box()
    slider.tap(position={"x": box["width"] * 0.5, "y": box["height"] / 2})
    expect(host.locator(".course-said")).not_to_contain_text(f"at {state['position']},")
    _, at, distance = check_rope(host, state["d_head"])
    assert at == pytest.approx(500, abs=60) and distance == state["distance"]


def says(host, twin):
    """The widget says what its Python twin says."""
    expect(host.locator(".course-said")).to_have_text(twin.describe())


def check_words(host, twin):
    ranked = ", ".join(f"{word} {cosine:.2f}" for word, cosine in twin.ranked()).replace("-", "−")
    says(host, twin)
    assert host.locator(".course-drawing").get_attribute("aria-label").endswith(f": {ranked}.")


def test_word_sums_by_keyboard(page, disk):
    host, state = widget(page, disk, "embeddings")
    a, b, c = (state[name] for name in "abc")
    check_words(host, WordSums(a=a, b=b, c=c, exclude=state["exclude"]))
    host.get_by_role("checkbox", name="leave out the three words").focus()
    page.keyboard.press("Space")
    check_words(host, WordSums(a=a, b=b, c=c, exclude=not state["exclude"]))
    host.get_by_role("combobox", name="add c").focus()
    page.keyboard.press("ArrowDown")
    check_words(host, WordSums(a=a, b=b, c=WORDS[WORDS.index(c) + 1], exclude=not state["exclude"]))


def test_word_sums_by_touch(phone, disk):
    host, state = widget(phone, disk, "embeddings")
    for label, word in (("start from a", "she"), ("subtract b", "he"), ("add c", "uncle")):
        host.get_by_role("combobox", name=label).select_option(word)
    check_words(host, WordSums(a="she", b="he", c="uncle", exclude=state["exclude"]))
    host.get_by_role("checkbox", name="leave out the three words").tap()
    check_words(host, WordSums(a="she", b="he", c="uncle", exclude=not state["exclude"]))


def test_heads_by_keyboard(page, disk):
    host, state = widget(page, disk, "multi_head")
    says(host, HeadCount(heads=state["heads"], T=state["T"]))
    host.get_by_role("slider", name="heads").focus()
    page.keyboard.press("End")
    says(host, HeadCount(heads=768, T=state["T"]))
    page.keyboard.press("ArrowLeft")  # the next smaller divisor
    says(host, HeadCount(heads=384, T=state["T"]))
    host.get_by_role("slider", name="tokens T").focus()
    page.keyboard.press("ArrowRight")
    says(host, HeadCount(heads=384, T=state["T"] + 128))


def test_heads_by_touch(phone, disk):
    host, state = widget(phone, disk, "multi_head")
    heads, tokens = host.get_by_role("slider", name="heads"), host.get_by_role("slider", name="tokens T")
    heads.tap(position={"x": 2, "y": heads.bounding_box()["height"] / 2})
    says(host, HeadCount(heads=1, T=state["T"]))
    tokens.tap(position={"x": tokens.bounding_box()["width"] / 2, "y": tokens.bounding_box()["height"] / 2})
    given = int(tokens.input_value())
    assert given == pytest.approx(4160, abs=400)
    says(host, HeadCount(heads=1, T=given))


def test_activations_by_keyboard(page, disk):
    host, state = widget(page, disk, "ffn")
    name, other, x = state["name"], state["other"], state["x"]
    says(host, ActivationChooser(name=name, other=other, x=x))
    host.get_by_role("slider", name="x", exact=True).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    says(host, ActivationChooser(name=name, other=other, x=x + 0.03))
    host.get_by_role("combobox", name="compared with").focus()
    page.keyboard.press("ArrowDown")
    says(host, ActivationChooser(name=name, other=NAMES[NAMES.index(other) + 1], x=x + 0.03))


def test_activations_by_touch(phone, disk):
    host, state = widget(phone, disk, "ffn")
    host.get_by_role("combobox", name="function").select_option("SiLU")
    says(host, ActivationChooser(name="SiLU", other=state["other"], x=state["x"]))
    place = host.get_by_role("slider", name="x", exact=True)
    place.tap(position={"x": place.bounding_box()["width"] * 0.8, "y": place.bounding_box()["height"] / 2})
    x = float(place.input_value())
    assert x == pytest.approx(2.4, abs=0.4)
    says(host, ActivationChooser(name="SiLU", other=state["other"], x=x))


def test_token_cloud_by_keyboard(page, disk):
    host, state = widget(page, disk, "residual_norm")
    says(host, TokenCloud(**state))
    host.get_by_role("slider", name="layers").focus()
    page.keyboard.press("End")
    says(host, TokenCloud(**{**state, "depth": 12}))
    host.get_by_role("checkbox", name="skip connections").focus()
    page.keyboard.press("Space")
    says(host, TokenCloud(**{**state, "depth": 12, "skip": not state["skip"]}))


def test_token_cloud_by_touch(phone, disk):
    host, state = widget(phone, disk, "residual_norm")
    host.get_by_role("combobox", name="norm").select_option("pre-norm")
    says(host, TokenCloud(**{**state, "norm": "pre"}))
    host.get_by_role("checkbox", name="causal").tap()
    says(host, TokenCloud(**{**state, "norm": "pre", "causal": not state["causal"]}))


def check_mask(host, **state):
    """What the widget says, and which of its cells look painted, are those of this mask."""
    says(host, MaskPainter(**state))
    cells = host.get_by_role("button", name=re.compile(r"position \d sees token \d"))
    pressed = [cell.get_attribute("aria-pressed") for cell in cells.all()]
    assert pressed == [("false", "true")[x] for row in state["mask"] for x in row]


def test_masks_by_keyboard(page, disk):
    host, state = widget(page, disk, "architectures")
    check_mask(host, **state)
    host.get_by_role("button", name="position 0 sees token 0").focus()
    for key in ("ArrowUp", "ArrowLeft", "ArrowLeft", "Enter"):  # over the edges to position 5, token 4
        page.keyboard.press(key)
    state["mask"][5][4] = 1 - state["mask"][5][4]
    check_mask(host, **state)
    host.get_by_role("slider", name="layers").focus()
    page.keyboard.press("Home")
    check_mask(host, **{**state, "n_layers": 1})


def test_masks_by_touch(phone, disk):
    host, state = widget(phone, disk, "architectures")
    host.get_by_role("button", name="all but itself").tap()
    state["mask"] = (1 - torch.eye(6, dtype=torch.int64)).tolist()
    check_mask(host, **state)
    host.get_by_role("checkbox", name="residual stream").tap()
    check_mask(host, **{**state, "residual": not state["residual"]})
    host.get_by_role("button", name="position 2 sees token 2").tap()
    state["mask"][2][2] = 1
    check_mask(host, **{**state, "residual": not state["residual"]})


def test_decoding_by_keyboard(page, disk):
    host, state = widget(page, disk, "inference")
    says(host, Filters(**state))
    host.get_by_role("slider", name="temperature τ").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    state["tau"] += 0.2
    says(host, Filters(**state))
    host.get_by_role("slider", name="top-p").focus()
    page.keyboard.press("End")  # keeps all
    says(host, Filters(**{**state, "top_p": 1.0}))
    host.get_by_role("slider", name="min-p").focus()
    page.keyboard.press("End")  # leaves the most probable one
    says(host, Filters(**{**state, "top_p": 1.0, "min_p": 1.0}))


def test_decoding_by_touch(phone, disk):
    host, state = widget(phone, disk, "inference")
    for label, name in (("temperature", "tau"), ("min-p", "min_p")):
        knob = host.get_by_role("slider", name=label)
        knob.tap(position={"x": knob.bounding_box()["width"] * 0.2, "y": knob.bounding_box()["height"] / 2})
        state[name] = float(knob.input_value())
    assert state["tau"] == pytest.approx(0.96, abs=0.2) and state["min_p"] == pytest.approx(0.2, abs=0.1)
    says(host, Filters(**state))
    heat = host.get_by_role("slider", name="temperature τ")
    heat.tap(position={"x": heat.bounding_box()["width"] - 2, "y": heat.bounding_box()["height"] / 2})
    first = Filters(**{**state, "tau": float(heat.input_value())})
    says(host, first)
    host.get_by_role("checkbox", name="temperature last").tap()
    last = Filters(**{**state, "tau": first.tau, "last": not state["last"]})
    assert (first.drawn() > 0).sum() > (last.drawn() > 0).sum()  # heat in front of the filters opens them
    says(host, last)


def test_a_compute_budget_by_keyboard(page, disk):
    host, state = widget(page, disk, "training")
    says(host, ComputeBudget(**state))
    knob = host.get_by_role("slider", name="compute C in FLOPs")
    knob.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    lower = {**state, "exponent": float(knob.input_value())}
    assert lower["exponent"] == pytest.approx(state["exponent"] - 0.3)
    says(host, ComputeBudget(**lower))
    page.keyboard.press("End")
    says(host, ComputeBudget(**{**state, "exponent": 26.0}))
    host.get_by_role("checkbox", name="constants of the refit").press("Space")
    says(host, ComputeBudget(exponent=26.0, refit=not state["refit"]))


def test_a_compute_budget_by_touch(phone, disk):
    host, state = widget(phone, disk, "training")
    host.get_by_role("checkbox", name="constants of the refit").tap()
    says(host, ComputeBudget(**{**state, "refit": not state["refit"]}))
    knob = host.get_by_role("slider", name="compute C in FLOPs")
    knob.tap(position={"x": knob.bounding_box()["width"] * 0.25, "y": knob.bounding_box()["height"] / 2})
    exponent = float(knob.input_value())
    assert exponent == pytest.approx(20.0, abs=0.6)
    says(host, ComputeBudget(exponent=exponent, refit=not state["refit"]))


# ---------------------------------------------------------------- filters


def shown(page, items: str = ".formula") -> list[str]:
    return page.evaluate("(items) => [...document.querySelectorAll(items)].filter((i) => !i.hidden).map((i) => i.id)", items)


def test_formulas_are_filtered_and_the_link_keeps_it(page, address):
    page.goto(f"{address}reference/formulas.html")
    form, every = page.locator("form.filter"), len(REGISTRY.formulas)
    expect(form.locator("output")).to_have_text(f"{every} of {every} formulas")
    of_chapter = REGISTRY.of("f03_softmax_and_cross_entropy")
    [(receipt, count)] = Counter(formula.receipt for formula in of_chapter).most_common(1)
    form.get_by_label("Receipt").select_option(receipt)
    form.get_by_label("Chapter").select_option("f03")
    expected = [f"formula-{f.id}" for f in of_chapter if f.receipt == receipt]
    assert shown(page) == expected and count > 2
    assert page.locator("h2:visible").count() == 1  # chapters without a formula are gone
    form.get_by_label("Words").focus()
    page.keyboard.type(f"{expected[0].removeprefix('formula-').upper()} {receipt}")
    words = shown(page)
    assert expected[0] in words and set(words) < set(expected)
    assert {name: value for name, [value] in parse_qs(urlparse(page.url).query).items()} == {
        "words": f"{expected[0].removeprefix('formula-').upper()} {receipt}",
        "chapter": "f03",
        "receipt": receipt,
    }
    page.goto(page.url)
    assert shown(page) == words
    expect(form.get_by_label("Chapter")).to_have_value("f03")
    form.get_by_role("button", name="Show all").press("Enter")
    expect(form.locator("output")).to_have_text(f"{every} of {every} formulas")
    assert urlparse(page.url).query == ""


def test_no_formula_has_these_words(page, address):
    page.goto(f"{address}reference/formulas.html?words=unobtainium")
    expect(page.locator("form.filter output")).to_have_text(f"0 of {len(REGISTRY.formulas)} formulas")
    assert page.locator("h2:visible").count() == 0


def test_latex_and_links_are_copied(browser, server):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server}reference/formulas.html?receipt=computed")
    formula = next(f for f in REGISTRY.formulas.values() if f.receipt == "computed")
    page.locator(f"#formula-{formula.id}").scroll_into_view_if_needed()
    page.locator(f"#formula-{formula.id}").get_by_role("button", name=f"Copy LaTeX of {formula.name}").press("Enter")
    expect(page.locator(f"#formula-{formula.id} .copy-latex")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == formula.latex
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("form.filter output")).to_have_text("The link is copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"{server}reference/formulas.html?receipt=computed"
    context.close()


def test_exercises_and_terms_are_filtered(page, address):
    page.goto(f"{address}reference/exercises.html?difficulty=stars-1")
    every = [exercise for chapter in find_chapters(ROOT) for exercise in chapter.exercises]
    easy = sum(exercise.stars == 1 for exercise in every)
    expect(page.locator("form.filter output")).to_have_text(f"{easy} of {len(every)} exercises")
    page.goto(f"{address}reference/glossary.html?words=rotary")
    assert 0 < len(shown(page, "dl.glossary > dt")) < 5
    assert page.locator("dl.glossary > dd:visible").count() == len(shown(page, "dl.glossary > dt"))


def test_filters_by_touch(phone, address):
    phone.goto(f"{address}reference/formulas.html")
    form = phone.locator("form.filter")
    form.get_by_label("Receipt").select_option("erratum")
    expect(form.locator("output")).to_contain_text(f"{sum(f.receipt == 'erratum' for f in REGISTRY.formulas.values())} of")
    form.get_by_role("button", name="Show all").tap()
    expect(form.locator("output")).to_contain_text(f"{len(REGISTRY.formulas)} of")


# ---------------------------------------------------------------- the page itself


def test_a_term_shows_its_card_by_mouse_and_keyboard(page, address):
    page.goto(f"{address}ch04_attention/ch04_attention.html")
    link = page.locator('a[href*="glossary.html#term-self-attention"]').first
    card = page.locator("#hover-card")
    link.hover()
    expect(card).to_be_visible()
    expect(card).to_contain_text(REGISTRY.terms["self-attention"].definition)
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.mouse.move(0, 0)
    link.focus()
    expect(card).to_be_visible()
    assert link.get_attribute("aria-describedby") == "hover-card"
    link.blur()
    expect(card).to_be_hidden()


def test_light_and_dark_are_chosen_and_kept(page, address):
    page.goto(f"{address}index.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.locator("#theme-button").press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    if address.startswith("http"):  # pages from a disk share no memory
        page.goto(f"{address}reference/glossary.html")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_contents_open_on_a_phone(phone, address):
    phone.goto(f"{address}index.html")
    contents = phone.get_by_role("navigation", name="Book")
    expect(contents.get_by_role("link", name="Glossary")).to_be_hidden()
    phone.locator("#menu-button").tap()
    contents.get_by_role("link", name="Glossary").tap()
    expect(phone).to_have_url(re.compile("glossary"))
