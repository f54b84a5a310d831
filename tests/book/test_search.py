"""The search: what it gathers of a page, which section it puts first, and how one uses it."""

import json
import subprocess

import pytest
from docutils import nodes
from playwright.sync_api import expect
from small_course import ROOT

from book.passages import read
from book.plain import plain

ASSETS = ROOT / "book" / "assets"
# What a student types, and the section that answers it
ANSWERS = {
    "why divide by sqrt d": "ch04_attention#why-divide-by-the-square-root",
    "layer norm": "ch07_residual_norm#two-norms",
    "rope": "ch08_position_rope#many-clocks",
    "kv cache": "ch12_inference#remember-keys-and-values",
    "perplexity": "ch11_training#perplexity",
    "softmax temperature": "f03_softmax_and_cross_entropy#temperature-and-entropy",
    "beam search": "ch12_inference#the-likeliest-sequence",
    "induction head": "ch05_multi_head#the-induction-pattern",
    "adamw": "f07_optimisers_and_schedules#weight-decay-is-not-l2",
    "what is a token": "ch02_tokens#text-is-bytes",
}
# More, of other kinds: other names, acronyms, questions, and sections that stand before their terms and formulas
MORE = {
    "how does attention work": "ch04_attention#all-queries-at-once",
    "positional encoding": "ch08_position_rope#add-a-wave",
    "gqa": "ch09_block#heads-that-share-keys",
    "nucleus sampling": "ch12_inference#cutting-the-tail",
    "kl divergence": "f03_softmax_and_cross_entropy#the-floor-under-the-loss",
    "logsumexp": "f03_softmax_and_cross_entropy#when-the-exponential-overflows",
    "gradient clipping": "f07_optimisers_and_schedules#clipping-long-gradients",
    "pre norm vs post norm": "ch07_residual_norm#before-or-after",
    "overfitting": "f08_regularisation_and_calibration#learnt-by-heart",
    "online softmax": "ch04_attention#one-key-at-a-time",
    "linear attention": "ch18_taxonomy#a-sum-in-place-of-a-list",
    "scaling laws": "ch11_training#how-to-spend-compute",
    "visualize attention": "ch13_attention_maps#one-map",
}


@pytest.mark.parametrize(("latex", "text"), [
    (r"1/\sqrt{d_k}", "1/√d_k"),
    (r"\frac{QK^\top}{\sqrt{d_{k}}}", "QKᵀ/√d_k"),
    (r"\tfrac12 \htmlClass{query}{q}", "1/2 q"),
    (r"\frac{p}{1-p} \le \gamma^{2}", "p/(1-p) ≤ γ²"),
    (r"\begin{aligned} a &= b \\ c \end{aligned}", "a = b c"),
    (r"\mathrm{softmax}\!\left(\frac{1}{\frac{a}{b}}\right)", "softmax(1/a/b)"),
])  # fmt: skip
def test_a_formula_as_text(latex, text):
    assert plain(latex) == text


def test_a_hint_is_no_part_of_what_is_found():
    section = nodes.section("", nodes.title(text="Idea"), ids=["idea"])
    section += [
        nodes.paragraph(text="Seen."),
        nodes.raw(text="<details>"),
        nodes.paragraph(text="Hidden."),
        nodes.raw(text="</details>"),
    ]
    document = nodes.document(None, None)
    document += section
    assert [passage.text for passage in read("ch01_idea/ch01_idea", document)] == ["Seen."]


def passages(site) -> dict:
    text = (site / "search-passages.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("globalThis.bookPassages = ").removesuffix(";\n"))


def found(site, queries, **options) -> dict[str, list[str]]:
    """What the search of a site finds for each query, as page#anchor, the best first."""
    script = f"""
        const MiniSearch = require("{ASSETS}/minisearch/minisearch.js");
        require("{site}/search-passages.js"); require("{ASSETS}/search-engine.js");
        const at = ({{ passage: p }}) => p.address.replace(/^.*\\/|\\.html$/g, "") + "#" + p.anchor;
        const queries = {json.dumps(list(queries))}, options = {json.dumps(options)};
        bookEngine(bookPassages, MiniSearch).then(({{ search }}) =>
            console.log(JSON.stringify(Object.fromEntries(queries.map((q) => [q, search(q, options).map(at)])))));
    """
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_sections_exercises_terms_and_formulas_are_found(site):
    told = passages(site)
    assert ["t01_coins/t01_coins.html", "Coins", ""] in told["pages"]
    first = {query: hits[0] for query, hits in found(site, ["odds", "idea", "t01.odds", "luck", "chance"]).items()}
    assert first == {
        "odds": "t01_coins#the-idea-of-odds",
        "idea": "t01_coins#the-idea-of-odds",
        "t01.odds": "t01_coins#exercise-t01-odds",
        "luck": "formulas#formula-t02-luck",
        "chance": "t01_coins#the-idea-of-odds",  # another name of probability
    }


def test_the_search_tells_no_hint_and_no_answer(site):
    told = passages(site)
    page = next(number for number, (address, *_) in enumerate(told["pages"]) if address.startswith("t01"))
    text = json.dumps([row for row in told["passages"] if row[1] == page])
    assert "heads" in text and "Divide." not in text and "hidden" not in text and "denominator" not in text


def test_each_section_that_is_found_is_there(book):
    told = passages(book)
    pages = {address: (book / address).read_text(encoding="utf-8") for address, _, _ in told["pages"]}
    gone = [row[:4] for row in told["passages"] if row[2] and f'id="{row[2]}"' not in pages[told["pages"][row[1]][0]]]
    assert gone == []


def test_a_question_leads_to_the_section_that_answers_it(book):
    assert {query: hits[0] for query, hits in found(book, ANSWERS | MORE).items()} == ANSWERS | MORE


@pytest.mark.parametrize(("forms", "place"), [
    (("layer normalization", "layernorm", "Layer-Norm", "layer norms"), "ch07_residual_norm#two-norms"),
    (("perplexty", "perplexities"), "ch11_training#perplexity"),
    (("multi-head attention", "multihead attention", "multi head attention"), "ch05_multi_head#several-heads"),
    (("√d_k", "sqrt(d_k)", "square root of d_k"), "ch04_attention#why-divide-by-the-square-root"),
])  # fmt: skip
def test_spelling_does_not_matter(book, forms, place):
    assert {query: hits[0] for query, hits in found(book, forms).items()} == dict.fromkeys(forms, place)


def test_the_beginning_of_a_word_is_enough_while_one_types(book):
    typed = found(book, ["induc", "perplex", "kv ca"], typing=True)
    assert [hits[0] for hits in typed.values()] == [ANSWERS[query] for query in ("induction head", "perplexity", "kv cache")]


# ---------------------------------------------------------------- in a browser, from a server and from the disk


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_one_searches_by_keyboard(page, address):
    loaded = []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    page.goto(f"{address}ch04_attention/ch04_attention.html")
    assert "search-passages.js" not in loaded  # only when it opens
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search the book")
    expect(box).to_be_focused()
    page.keyboard.type("kv cache")
    options = page.get_by_role("option")
    expect(options.first).to_contain_text("Remember keys and values", timeout=20_000)  # a busy machine makes the index in seconds
    assert "search-passages.js" in loaded
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowUp")  # to the last one
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ch12_inference.html#remember-keys-and-values")
    page.keyboard.press("/")
    page.keyboard.type("unobtainium")
    expect(page.get_by_text("Nothing found")).to_be_visible(timeout=20_000)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(box).not_to_be_focused()


def test_the_page_of_results(page, address):
    page.goto(f"{address}index.html")
    page.get_by_role("combobox", name="Search the book").fill("shift invariance")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    results = page.locator("#search-results a")
    expect(results.filter(has_text="Shift yes, scale no")).to_be_visible(timeout=20_000)
    expect(results.filter(has_text="Shift yes, scale no").locator("mark").first).to_be_visible()  # a snippet with what was found
    results.filter(has_text="Shift invariance of softmax").click()
    assert page.url.endswith("reference/formulas.html#formula-f03-shift")
