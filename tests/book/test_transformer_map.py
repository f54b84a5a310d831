"""The map on the first page: every part leads to its chapter, by mouse, finger and keyboard, and says what is true of a model."""

import re

import pytest
import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import expect
from small_course import ROOT

from autograder.authoring.chapters import find_chapters
from book import transformer_map
from book.registry import RegistryError, load
from course.transformer_map import PARTS, configs, parameters, shapes

REGISTRY = load()
WRITTEN = {chapter.stem for chapter in find_chapters(ROOT)}
CAPTIONS = yaml.safe_load((ROOT / "book" / "reference" / "parts.yml").read_text())
LIGHT = 150_000  # bytes of the first page


# ---------------------------------------------------------------- without a browser


def test_the_parts_of_the_course_have_all_chapters_and_are_those_of_the_contents():
    parts = transformer_map.parts(CAPTIONS, REGISTRY.chapters)
    assert [stem for stems in parts.values() for stem in stems] == list(REGISTRY.chapters) and len(parts) == 8
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())["parts"]
    of_chapters = [part for part in toc if part["chapters"][0]["file"].partition("/")[0] in REGISTRY.chapters]
    for part in of_chapters:
        stems = [entry["file"].partition("/")[0] for entry in part["chapters"]]
        assert stems == [stem for stem in parts[part["caption"]] if stem in WRITTEN]


def test_parts_that_begin_nowhere_are_refused():
    with pytest.raises(RegistryError, match="t9_none: none of the chapters"):
        transformer_map.parts({"A": "t9_none"}, {"t01_coins": "Coins"})
    with pytest.raises(RegistryError, match="no part begins with t01_coins"):
        transformer_map.parts({"A": "t02_dice"}, {"t01_coins": "Coins", "t02_dice": "Dice"})


def test_each_part_opens_its_chapter_and_tells_its_sizes():
    page = BeautifulSoup(transformer_map.whole(REGISTRY.chapters, WRITTEN, "../"), "html.parser")
    config = next(iter(configs().values()))
    told, counted = shapes(config), parameters(config)
    for kind in ("wide", "narrow"):
        links = {link["data-part"]: link for link in page.select(f".map-{kind} a")}
        assert set(links) == set(PARTS)
        for id, link in links.items():
            chapter = PARTS[id].chapter
            assert link["data-chapter"] == chapter
            assert link["href"] == (f"../{chapter}/{chapter}.html" if chapter in WRITTEN else f"#map-{id}")
            assert PARTS[id].name in link["aria-label"]
    for id, part in PARTS.items():
        entry = page.select_one(f"#map-{id}")
        assert entry.select_one("math") and entry.select_one("[data-told='0']").text == told[id]
        number = re.match(r"none|[\d,]+", entry.select_one("[data-told='1']").text)[0]
        assert int(number.replace("none", "0").replace(",", "")) == counted[id]
        named = {link["href"].split("/")[1] for link in entry.select("a")}
        assert named == {part.chapter, *part.more} & WRITTEN
        for stem in {part.chapter, *part.more} - WRITTEN:
            assert REGISTRY.chapters[stem] in entry.select_one(".unwritten").text


def test_a_part_whose_chapter_is_not_written_says_so():
    page = BeautifulSoup(transformer_map.whole(REGISTRY.chapters, {"ch01_overview"}), "html.parser")
    assert page.select_one(".map-wide a[data-part=key]")["aria-label"] == "Key, not written yet"
    assert page.select_one(".map-wide a[data-part=text]")["href"] == "ch01_overview/ch01_overview.html"


def test_a_chapter_finds_its_place_on_the_small_map():
    shown = transformer_map.small("ch08_position_rope")
    assert "On the map: position<" in shown and shown.count("is-here") == 2  # the clocks of queries and of keys
    assert transformer_map.small("t01_coins") == ""
    assert all(0 < len(transformer_map.small(stem)) < 5000 for stem in REGISTRY.chapters)


def test_the_first_page_has_all_chapters_and_is_light(book):
    text = (book / "index.html").read_text(encoding="utf-8")
    page = BeautifulSoup(text, "html.parser").select_one("article")
    words = page.get_text(" ").replace("\xa0", " ")
    assert all(title in words for title in REGISTRY.chapters.values())
    marked = {mark["data-chapter"] for mark in page.select(".chapter-row .chapter-mark")}
    assert marked == WRITTEN
    assert len(text.encode()) < LIGHT
    for stem in WRITTEN:
        chapter = (book / stem / f"{stem}.html").read_text(encoding="utf-8")
        assert 'class="map-small" href="../index.html#transformer-map"' in chapter
    assert 'class="map-wide"' in (book / "ch01_overview" / "ch01_overview.html").read_text(encoding="utf-8")


# ---------------------------------------------------------------- in a browser, from the disk


def opened(browser, book, **given):
    page = browser.new_context(**given).new_page()
    page.goto(f"{book.as_uri()}/index.html")
    return page, page.locator(".map-entry")


def test_mouse_and_keyboard_show_a_part_and_open_its_chapter(browser, book):
    page, entries = opened(browser, book, viewport={"width": 1280, "height": 900})
    shown = entries.locator("visible=true")
    before = page.locator(".map-panel").bounding_box()
    for id, part in PARTS.items():
        page.locator(f".map-wide a[data-part={id}]").first.focus()
        expect(shown).to_have_attribute("data-part", id)
        expect(shown.locator(".map-name")).to_have_text(part.name)
        expect(shown.locator(".map-formula .katex")).to_be_visible()
    assert page.locator(".map-panel").bounding_box() == before  # whatever is told, nothing below moves
    page.locator(".map-wide a[data-part=weights]").hover()
    expect(shown).to_have_attribute("data-part", "weights")
    page.get_by_label("Sizes of").select_option("Llama 3 8B")
    config = configs()["Llama 3 8B"]
    page.locator(".map-wide a[data-part=key]").focus()
    expect(shown.locator("dl")).to_contain_text(shapes(config)["key"])
    expect(shown.locator("dl")).to_contain_text(f"{parameters(config)['key']:,}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ch04_attention.html")
    page.locator("a.map-small").click()
    page.wait_for_url("**/index.html#transformer-map")
    page.context.close()


def test_a_finger_reads_first_and_opens_then(browser, book):
    page, entries = opened(browser, book, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    part = page.locator(".map-narrow a[data-part=scores]").first
    part.tap()
    expect(entries.locator("visible=true")).to_have_attribute("data-part", "scores")
    assert page.url.endswith("index.html")
    expect(page.locator(".map-panel")).to_be_in_viewport(ratio=1)
    assert (
        min(
            min(box["width"], box["height"]) for box in map(lambda link: link.bounding_box(), page.locator(".map-narrow a").all())
        )
        >= 24
    )
    part.tap()
    page.wait_for_url("**/ch04_attention.html")
    page.context.close()


def test_without_scripts_and_on_paper_every_part_is_told(browser, book):
    page, entries = opened(browser, book, java_script_enabled=False)
    assert entries.locator("visible=true").count() == len(PARTS)
    page.context.close()
    page, entries = opened(browser, book, viewport={"width": 1280, "height": 900})
    page.emulate_media(media="print")
    assert entries.locator("visible=true").count() == len(PARTS)
    expect(page.locator(".map-wide")).to_be_visible()
    page.context.close()
