"""Follow one sentence: the page computes what `course.model` computes, every number can be opened, and the choice goes along."""

import json
import re
import subprocess

import pytest
import torch
from bs4 import BeautifulSoup
from nbformat.v4 import new_markdown_cell
from playwright.sync_api import expect
from small_course import ROOT

from autograder.authoring.chapters import find_chapters
from book import follow, transformer_map
from book.registry import RegistryError, load
from course.follow import load_follow
from course.tokens import bpe_encode

CHAPTERS = {chapter.stem: chapter for chapter in find_chapters(ROOT)}
MODEL, MERGES = load_follow()
TEXTS = (
    *follow.SENTENCES,
    "Ça va? 12 naïve  foxes, 3½!\n“Zürich”",
    "It is a truth universally acknowledged, that a single man in",
)
LARGEST = 1_500_000  # bytes of what a page asks for
# Every number of every vector of a few kinds is compared with torch's, and each kind's way back with itself.
PROBE = """
const weights = unpacked(globalThis.FOLLOW_WEIGHTS);
const ranks = rankOf(weights.merges);
const encoded = (text) => piecesOf(text).flatMap((piece) => mergeSteps(piece, ranks, weights.merges).at(-1)[0]);
const runs = TEXTS.map((text) => computed(weights, [weights.config.V - 1, ...encoded(text)]));
const named = (id) => `<${id}>`;
const [D, H, L, V] = [weights.config.d_head, weights.config.n_heads, weights.config.n_layers, weights.config.V];
const sizes = { gate: weights.config.hidden, up: weights.config.hidden, hidden: weights.config.hidden, logit: V, probability: V };
const ofHead = ["query0", "key0", "query", "key", "value", "mix"];
const whole = [...ofHead, "stream", "middle", "norm1", "norm2", "norm", "out", "gate", "up", "hidden", "ffn", "logit", "probability", "score", "share"];
const off = {};
let opened = 0;
function check(run, node, depth) {
  const made = explained(run, node, named);
  opened += 1;
  const { how, left, right, value, scale, root, step, result } = made;
  const i = node.i;
  let again = value;
  if (how === "sum of products") again = scale * left.values.reduce((sum, x, k) => sum + x * right.values[k], 0);
  if (how === "sum") again = left.values[i] + right.values[i];
  if (how === "norm") again = (left.values[i] / root) * right.values[i];
  if (how === "swish") again = (left.values[i] / (1 + Math.exp(-left.values[i]))) * right.values[i];
  if (how === "share") again = Math.exp(left.values[i]) / left.values.reduce((sum, x) => sum + Math.exp(x), 0);
  if (how === "byte") again = left.values[i] * step;
  off[node.kind] = Math.max(off[node.kind] ?? 0, Math.abs(again - value), result ? Math.abs(result.values[i] - value) : 0);
  if (typeof made.name !== "string" || /undefined|NaN/.test(made.name)) throw new Error(`a number is called ${made.name}`);
  if (!depth) return;
  for (const list of [left, right]) {
    if (!list?.open) continue;
    for (const k of new Set([0, i % list.values.length, list.values.length - 1])) {
      const child = explained(run, list.open(k), named).value;
      off[`from ${node.kind}`] = Math.max(off[`from ${node.kind}`] ?? 0, Math.abs(child - list.values[k]));
      check(run, list.open(k), depth - 1);
    }
  }
}
const run = runs[0];
const t = run.ids.length - 1;
for (const kind of whole)
  for (const layer of kind === "stream" ? [0, 1, L] : kind === "norm" || kind === "logit" || kind === "probability" ? [undefined] : [0, L - 1])
    for (const head of ofHead.includes(kind) || ["score", "share"].includes(kind) ? [0, H - 1] : [undefined]) {
      const size = ["score", "share"].includes(kind) ? t + 1 : ofHead.includes(kind) ? D : sizes[kind] ?? weights.config.d_model;
      for (const i of [0, Math.floor(size / 2), size - 1]) check(run, { kind, layer, head, t, i }, kind === "logit" || kind === "probability" ? 1 : 3);
    }
const { layers, stream, norm, probabilities } = run;
console.log(JSON.stringify({
  ids: runs.map(({ ids }) => ids), logits: runs.map(({ logits }) => logits), off, opened,
  first: { stream, norm, probabilities, layers: layers.map(({ query, key, value, weights, out, middle, ffn }) => ({ query, key, value, weights, out, middle, ffn })) },
}));
"""


@pytest.fixture(scope="module")
def page():
    """What the page's own script computes, run by node without a page."""
    code = (
        follow.script()
        .removeprefix("(() => {")
        .rpartition("// ---------------------------------------------------------------- numbers that")[0]
    )
    script = f"{follow.weights()}\n{code}\nconst TEXTS = {json.dumps(TEXTS)};\n{PROBE}"
    return json.loads(subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True).stdout)


def largest_difference(told, tensor) -> float:
    return float((torch.tensor(told, dtype=torch.float64) - tensor.double()).abs().max())


def test_the_page_gives_the_models_logits(page):
    for text, ids, logits in zip(TEXTS, page["ids"], page["logits"], strict=True):
        assert ids == [MODEL.config.V - 1, *bpe_encode(text, MERGES)]
        with torch.no_grad():
            assert largest_difference(logits, MODEL(torch.tensor([ids]))[0]) < 1e-4


@torch.no_grad()
def test_all_between_tokens_and_logits_is_the_models(page):
    ids = torch.tensor(page["ids"][0])
    x, positions = MODEL.embedding(ids)[None], torch.arange(len(ids))
    for block, told in zip(MODEL.blocks, page["first"]["layers"], strict=True):
        normed = block.norm_1(x)
        for name, tensor in zip(("query", "key", "value"), block.attention.project(normed, positions), strict=True):
            assert largest_difference(told[name], tensor[0]) < 1e-4
        out = block.attention(normed, positions)
        middle = x + out
        ffn = block.ffn(block.norm_2(middle))
        for name, tensor in (("out", out), ("middle", middle), ("ffn", ffn)):
            assert largest_difference(told[name], tensor[0]) < 1e-4
        for head in told["weights"]:
            assert all(sum(row) == pytest.approx(1) and len(row) == t + 1 for t, row in enumerate(head))
        x = middle + ffn
    assert largest_difference(page["first"]["stream"], x[0]) < 1e-4
    assert largest_difference(page["first"]["norm"], MODEL.norm(x)[0]) < 1e-4
    assert largest_difference(page["first"]["probabilities"], MODEL(ids[None])[0].softmax(dim=-1)) < 1e-4


def test_every_number_is_what_it_was_made_of(page):
    assert page["opened"] > 1000
    assert {name: off for name, off in page["off"].items() if not off < 1e-6} == {}
    assert {"parameter", "share", "from logit", "from mix", "from query", "from stream", "from middle"} <= set(page["off"])


# ---------------------------------------------------------------- what pages have


def test_stages_stand_at_the_end_of_their_sections():
    for stem, stage in follow.stages().items():
        cells = follow.placed(list(CHAPTERS[stem].notebook.cells), stem, set(CHAPTERS))
        at = next(number for number, cell in enumerate(cells) if 'class="follow"' in cell.source)
        titles = [cell.source.partition("\n")[0] for cell in cells[:at] if cell.source.startswith("## ")]
        assert titles[-1] == f"## {stage['after']}" and cells[at + 1].source.startswith("## ")
        told = BeautifulSoup(cells[at].source, "html.parser")
        links = told.select("nav a")
        assert [link["href"].split("/")[1] for link in links] == list(follow.stages())
        assert [link["href"].split("/")[1] for link in links if link.get("aria-current")] == [stem]
        assert follow.SENTENCES[0] in told.select_one(".follow-words").text


def test_a_stage_without_its_section_is_refused():
    with pytest.raises(RegistryError, match="ch04_attention has no section 'Worked example'"):
        follow.placed([new_markdown_cell("## Another")], "ch04_attention", set(CHAPTERS))
    cells = [new_markdown_cell("## Another")]
    assert follow.placed(cells, "t01_coins", set(CHAPTERS)) == cells


def test_the_map_leads_to_the_stages():
    told = BeautifulSoup(transformer_map.whole(load().chapters, {"ch04_attention", "ch09_block"}), "html.parser")
    ways = {entry["data-part"]: [link["href"] for link in entry.select("a.map-follow")] for entry in told.select(".map-entry")}
    assert ways["query"] == ways["mix"] == ["ch04_attention/ch04_attention.html#follow"]
    assert ways["block"] == ["ch09_block/ch09_block.html#follow"] and ways["tokens"] == ways["update"] == []


def test_the_weights_are_light():
    assert len(follow.weights()) + len(follow.script()) < LARGEST


# ---------------------------------------------------------------- in a browser, from the disk


def test_a_number_is_opened_down_to_the_table_and_the_sentence_goes_along(browser, book):
    page = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).new_page()
    told = []
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(f"{book.as_uri()}/ch04_attention/ch04_attention.html#follow")
    figure, panel = page.locator("#follow"), page.locator(".follow-panel")
    expect(figure).to_have_attribute("data-state", "alive", timeout=20_000)
    figure.get_by_role("combobox", name="Sentence").select_option("")
    figure.get_by_label("Your sentence").fill("The king is")
    figure.get_by_role("button", name="king", exact=True).tap()
    figure.get_by_role("group", name="Head").get_by_role("button", name="2").tap()
    ids = torch.tensor([[MODEL.config.V - 1, *bpe_encode("The king is", MERGES)]])
    with torch.no_grad():
        query, *_ = MODEL.blocks[0].attention.project(MODEL.blocks[0].norm_1(MODEL.embedding(ids)), torch.arange(ids.shape[1]))
    strip = figure.get_by_role("slider", name="query of “king”").first
    strip.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(panel.locator(".follow-name")).to_contain_text("query of “king”, head 2 of block 1, number 4")
    assert shown(panel) == pytest.approx(float(query[0, 1, 2, 3]), abs=6e-4)
    names = []
    while (into := panel.locator(".follow-into")).count():
        into.first.click()
        names.append(panel.locator(".follow-name").text_content())
    assert [name.split(",")[0] for name in names] == ["query of “king” before its turn", "“king”", "vector of “king”"]
    assert re.search(r"× .*training found them", panel.locator(".follow-sum").text_content(), re.IGNORECASE)
    while panel.locator(".follow-back").is_enabled():
        panel.locator(".follow-back").click()
    expect(panel.locator(".follow-name")).to_contain_text("query of “king”, head 2")
    page.goto(f"{book.as_uri()}/ch12_inference/ch12_inference.html#follow")
    expect(figure.locator(".follow-text")).to_have_text("The king is", timeout=20_000)
    figure.get_by_role("button", name="Draw the next token").tap()
    expect(figure.locator(".follow-text strong")).not_to_be_empty()
    expect(figure.locator(".follow-stage .course-said")).to_contain_text("was drawn and fell on")
    expect(figure.locator(".follow-sentence button")).to_have_count(len(ids[0]) + 1)
    figure.get_by_role("button", name="Begin again").tap()
    expect(figure.locator(".follow-text")).to_have_text("The king is")
    assert told == [] and page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.context.close()


def shown(panel) -> float:
    return float(panel.locator("output").text_content().replace("−", "-"))
