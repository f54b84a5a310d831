"""Answers in the page: what judges them, what hides them, what is kept of them, and the form in Chromium.

That the page judges every answer of `answers.py` as the tests do, a test of tests/autograder/test_course.py shows.
"""

import json
import math
import random
import subprocess

import nbformat
import pytest
import sympy
from small_course import ROOT

from autograder.authoring.answers import load
from autograder.authoring.chapters import find_chapters, grade_id, nbgrader_id
from book import answers, sealing
from book.tools import find
from course.checks import difference
from tests.autograder.in_the_page import ROUNDS, verdicts

CHAPTERS = find_chapters(ROOT)
JUDGING = json.dumps(str(ROOT / "book" / "assets" / "judging.js"))


def node(script: str, given) -> list:
    """What a script says to `given`, as JSON, with judging.js at hand."""
    script = f'const judging = require({JUDGING}); const given = JSON.parse(require("fs").readFileSync(0, "utf8")); {script}'
    done = subprocess.run([find("node"), "-e", script], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def sealed_by_node(exercises: list[dict]) -> list[dict]:
    done = subprocess.run([find("node"), sealing.SCRIPT], input=json.dumps(exercises), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def numeric(id: str, expected, wrong=(), **tolerance) -> dict:
    """A numeric exercise in the form that seal.js takes."""
    many = expected if isinstance(expected, list) else [expected]
    field = {"name": "x", "kind": "numbers" if isinstance(expected, list) else "number", "count": None}
    right = sealing.box([sealing.accepted(x, tolerance.get("atol", 0.0), tolerance.get("rtol", 0.0)) for x in many])
    field, places = sealing.ranges(field, right, [x if isinstance(x, list) else [x] for x in wrong])
    mistakes = [{"classes": [place], "say": f"That is {x}."} for place, x in zip(places, wrong, strict=True)]
    return {
        "id": id,
        "rounds": ROUNDS,
        "points": 1,
        "parts": [{"points": 1, "names": ["x"]}],
        "fields": [field],
        "mistakes": mistakes,
    }


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize(("text", "value"), [
    ("48.19", 48.19), ("1e-3", 1e-3), ("22_500", 22500), (".5", 0.5), ("-3**2", -9), ("2**-1", 0.5), ("2**3**2", 512), ("8-3-2", 3),
    ("12/3/2", 2), ("7//2", 3), ("1/9", 1 / 9), ("2·3 − 1", 5), ("√(2)/2", math.sqrt(2) / 2), ("3²", 9), ("2^10", 1024),
    ("math.log(9) + math.log(49_999)", math.log(9 * 49_999)), ("sympy.log(8, 2)", 3), ("math.degrees(math.acos(10 / 15))", 48.18968510422),
    ("2*π", 2 * math.pi), ("sympy.Rational(1, 9)", 1 / 9), ("e**2", math.e**2), ("max(1, abs(-4))", 4),
])  # fmt: skip
def test_numbers_can_be_written_as_one_computes_them(text, value):
    [found] = node("console.log(JSON.stringify([judging.formula(given).value({})]))", text)
    assert found == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "2x", "22,500", "foo(1)", "exp 2", "(1", "1)", "x", "1 2", "*3", "3 +", "constructor", "1" * 501]
)
def test_what_cannot_be_read_is_a_problem_in_words(text):
    script = "try { judging.formula(given); console.log('null') } catch (e) { console.log(JSON.stringify([e instanceof judging.Problem, e.message])) }"
    known, words = node(script, text)
    assert known and words


def test_formulas_have_the_values_that_sympy_gives_them():
    letters = sympy.symbols("x y w1 theta", positive=True)
    x, y, w, theta = letters
    written = [
        x**2 * sympy.exp(-x * y) / (1 + sympy.exp(x)), sympy.sqrt(x) * theta ** sympy.Rational(3, 4), sympy.erf(x / 3) - sympy.erf(w),
        sympy.tanh(w * x) / sympy.cosh(y) ** 2, sympy.log(x, 2) + sympy.log(y), sympy.Abs(x - y) * sympy.pi, -((x - y) ** -3) * sympy.E,
    ]  # fmt: skip
    draws = random.Random(0)
    points = [{str(letter): draws.uniform(0.1, 4) for letter in letters} for _ in range(5)]
    script = "console.log(JSON.stringify(given[0].map((text) => given[1].map((at) => judging.formula(text, Object.keys(at)).value(at)))))"
    for formula, values in zip(written, node(script, [[str(one) for one in written], points]), strict=True):
        assert values == pytest.approx(
            [float(formula.subs({letter: at[str(letter)] for letter in letters})) for at in points], rel=1e-12
        ), formula


# ---------------------------------------------------------------- the verdict


def test_numbers_at_the_edges_are_judged_as_the_grader_judges():
    draws, questions, wanted = random.Random(1), [], []
    plain = []
    for i in range(40):
        expected = draws.choice(
            [draws.uniform(-3, 3), draws.uniform(-1, 1) * 10 ** draws.randint(-6, 12), float(draws.randint(-9, 10**6)), 0.0]
        )
        tolerance = draws.choice(
            [{}, {"atol": 10 ** draws.uniform(-9, -1)}, {"rtol": 10 ** draws.uniform(-6, -1)}, {"atol": 1e-3, "rtol": 1e-3}]
        )
        wrong = [expected * 2 + 1, -expected - 0.5, expected + 17, 10 * expected + 1]
        plain.append((numeric(f"toy.{i}", expected, wrong, **tolerance), expected, tolerance))
    for sealed, (_, expected, tolerance) in zip(sealed_by_node([one for one, *_ in plain]), plain, strict=True):
        edge = tolerance.get("atol", 0) + tolerance.get("rtol", 0) * abs(expected)
        near = [
            expected,
            *(
                end
                for x in (expected - edge, expected + edge)
                for end in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))
            ),
        ]
        for x in [*near, expected + draws.uniform(-2, 2) * edge, expected * (1 + 1e-7), expected + 1]:
            questions.append((sealed, {"x": repr(x)}))
            wanted.append(difference(expected, x, **tolerance) is None)
    assert [verdict["right"] for verdict in verdicts(questions)] == wanted
    assert 100 < sum(wanted) < len(wanted) - 100


def test_a_sentence_is_said_to_its_mistake_alone():
    [sealed] = sealed_by_node([numeric("toy.lists", [8, 12, 16], [[8, 16], [8, 12, 14, 16], [16, 12, 8], [8.0, 12.0, 16.5]])])
    given = {
        "8, 16": "[8, 16]",
        "[8, 12, 14, 16]": "[8, 12, 14, 16]",
        "(16, 12, 8)": "[16, 12, 8]",
        "8, 12, 16.5005": "[8.0, 12.0, 16.5]",
    }
    given |= dict.fromkeys(["8, 12, 16", "8", "8, 12, 17", "16, 8", "8, 12, 16.51"])
    found = verdicts([(sealed, {"x": text}) for text in given])
    said = [f"That is {x}." if x else None for x in given.values()]
    assert [verdict.get("mistake", {}).get("say") for verdict in found] == said
    assert [text for text, verdict in zip(given, found, strict=True) if verdict["right"]] == ["8, 12, 16"]


def test_two_mistakes_near_each_other_are_told_apart_to_all_digits_only():
    [sealed] = sealed_by_node([numeric("toy.near", 3.0, [1.0, 1.00005])])
    found = verdicts([(sealed, {"x": x}) for x in ("1", "1.00005", "1.00002")])
    assert [verdict.get("mistake", {}).get("say") for verdict in found] == ["That is 1.0.", "That is 1.00005.", None]


# ---------------------------------------------------------------- what is hidden


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_what_is_sealed_is_of_today_and_tells_nothing(chapter):
    kept = json.loads((ROOT / sealing.FOLDER / f"{chapter.stem}.json").read_text(encoding="utf-8"))
    asked = [exercise for exercise in chapter.exercises if exercise.form in sealing.FORMS]
    assert {id: one["of"] for id, one in kept.items()} == {e.id: sealing.digest(chapter, e) for e in asked}, "make answers"
    said = {answer.sentence for answer in load(chapter.answers) if answer.sentence}
    for exercise in asked:
        sealed, text = kept[exercise.id]["sealed"], json.dumps(kept[exercise.id], ensure_ascii=False)
        assert not any(sentence in text for sentence in said)
        if "why" in sealed or sealed.get("prediction"):
            continue
        allowed = {"name", "kind", "letters", "options", "count", "once", "each", "defined", "shown", "points", "grid", "entries"}
        for field in sealed["fields"]:
            assert set(field) <= allowed and list(field["entries"]) == sorted(field["entries"])
            assert len({len(entry) for entry in field["entries"].values()}) == 1, "what is right is as long as what is wrong"


def test_what_is_sealed_opens_with_the_rounds_of_the_book():
    chapter = next(chapter for chapter in CHAPTERS if chapter.id == "ch01")
    found = sealing.sealed(chapter)
    assert {one["rounds"] for one in found.values()} == {sealing.ROUNDS}
    right, wrong = verdicts(
        [(found["ch01.pairs"], {"every": "22500", "causal": "150*151/2", "ratio": x}) for x in ("3.987", "4")]
    )
    assert right["right"] and wrong["points"] == 1 and wrong["wrong"] == ["ratio"] and "mistake" in wrong


def test_sealing_again_gives_the_same():
    chapter = next(chapter for chapter in CHAPTERS if chapter.id == "f02")
    asked = [exercise for exercise in chapter.exercises if exercise.id in ("f02.steps", "f02.best_step")]
    assert sealing.seal(chapter, asked, ROUNDS) == sealing.seal(chapter, asked, ROUNDS)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_cell_that_is_named_is_the_answer_cell_of_the_release(chapter):
    cells = nbformat.read(chapter.release, as_version=4).cells
    for exercise in chapter.exercises:
        html = answers.form(chapter, exercise, "anchor", None)
        assert f"in cell {exercise.answer + 1} of" in html and "\n\n" not in html
        assert grade_id(cells[exercise.answer]) == nbgrader_id(exercise.id) + ("" if exercise.by_hand else "-answer")


# ---------------------------------------------------------------- in Chromium

PAGE = "ch01_overview/ch01_overview.html"


@pytest.fixture
def reader(browser):
    """A new reader's browser."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, accept_downloads=True)
    yield context
    context.close()


def verdict_of(page, id: str) -> str:
    output = page.locator(f'form[data-exercise="{id}"] output[data-state]:not([data-state=""])')
    output.wait_for()
    return output.inner_text()


def test_an_answer_is_judged_by_keyboard_and_kept(reader, book, tmp_path):
    page = reader.new_page()
    told = []
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(f"{book.as_uri()}/{PAGE}")
    form = page.locator('form[data-exercise="ch01.pairs"]')
    form.get_by_label("every").focus()
    for text in ("22500", "11325", "4"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said = verdict_of(page, "ch01.pairs")
    assert said.startswith("Right in part: 1 of 2 points. Not right: ratio.") and "Read: " in said
    assert form.locator("output a").get_attribute("href").startswith("#")
    assert page.locator(form.locator("output a").get_attribute("href")).count() == 1
    assert form.locator("output").get_attribute("aria-live") == "polite"
    form.get_by_label("ratio").fill("22500 / 11175")
    assert form.locator("output").inner_text() == ""
    form.get_by_label("ratio").fill("two")
    form.get_by_label("ratio").press("Enter")
    assert "two" in verdict_of(page, "ch01.pairs") and form.get_by_label("ratio").get_attribute("aria-invalid") == "true"
    choice = page.locator('form[data-exercise="ch01.serial"]')
    choice.get_by_label("b", exact=True).check()
    choice.get_by_role("button").click()
    assert verdict_of(page, "ch01.serial") == "Right."
    page.reload()
    assert page.locator("#exercise-ch01-serial .answer-state").inner_text() == "✓ right"
    assert page.locator('form[data-exercise="ch01.serial"]').get_by_label("b", exact=True).is_checked()
    page.goto(f"{book.as_uri()}/index.html")
    panel = page.locator(".progress")
    assert "1 chapter begun, 1 exercise done." in panel.text_content()
    with page.expect_download() as download:
        panel.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "progress.json")
    page.on("dialog", lambda dialog: dialog.accept())
    panel.get_by_role("button", name="Forget").click()
    assert "Nothing yet" in panel.text_content()
    panel.get_by_label("Import").set_input_files(tmp_path / "progress.json")
    panel.get_by_role("link").wait_for()
    panel.get_by_role("link").click()
    page.wait_for_url(f"**/{PAGE}*")
    assert told == []


def test_a_file_that_is_no_progress_changes_nothing(reader, book, tmp_path):
    page = reader.new_page()
    page.goto(f"{book.as_uri()}/index.html")
    for name, text in {"a.json": "[1, 2", "b.json": '{"form": "other"}', "c.json": "null"}.items():
        (tmp_path / name).write_text(text)
        page.get_by_label("Import").set_input_files(tmp_path / name)
        page.get_by_text("That is no progress file of this book.").wait_for()
    assert page.evaluate("localStorage.getItem('course-progress')") is None


def test_marks_on_the_map(reader, book):
    page = reader.new_page()
    kept = {
        "form": "course-progress",
        "last": "ch01_overview",
        "exercises": {"ch01.serial": {"state": "right", "chapter": "ch01_overview"}},
    }
    kept["chapters"] = {"ch01_overview": {"title": "Overview", "read": True, "count": 6}, "../evil": {"title": "x"}}
    page.add_init_script(f"localStorage.setItem('course-progress', {json.dumps(json.dumps(kept))})")
    marked = '<a href="x" data-chapter="ch01_overview" aria-label="Overview">1</a><p data-chapter="ch01_overview">1</p><p data-chapter="ch02_tokens">2</p>'
    page.add_init_script(
        f"addEventListener('readystatechange', () => document.readyState === 'interactive' && document.querySelector('article').insertAdjacentHTML('beforeend', {json.dumps(marked)}), true)"
    )
    page.goto(f"{book.as_uri()}/index.html")
    link, text, other = (
        page.locator(f"article > {selector}")
        for selector in ("a[data-chapter]", "p[data-chapter=ch01_overview]", "p[data-chapter=ch02_tokens]")
    )
    assert link.get_attribute("aria-label") == "Overview, read, 1 of 6 exercises done"
    assert text.get_attribute("data-progress") == "read" and "1 of 6" in text.inner_text()
    assert other.get_attribute("data-progress") is None and other.inner_text() == "2"


def test_where_a_browser_lends_no_cryptography_the_page_says_so(reader, book):
    page = reader.new_page()
    page.add_init_script("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })")
    page.goto(f"{book.as_uri()}/{PAGE}")
    form = page.locator('form[data-exercise="ch01.serial"]')
    form.get_by_label("b", exact=True).check()
    form.get_by_role("button").click()
    assert "http" in verdict_of(page, "ch01.serial")


def test_where_nothing_can_be_kept_answers_are_judged_all_the_same(reader, book):
    page = reader.new_page()
    told = []
    page.on("pageerror", lambda error: told.append(str(error)))
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no storage'); } })")
    page.goto(f"{book.as_uri()}/{PAGE}")
    page.locator('form[data-exercise="ch01.serial"]').get_by_label("b", exact=True).check()
    page.locator('form[data-exercise="ch01.serial"]').get_by_role("button").click()
    assert verdict_of(page, "ch01.serial") == "Right."
    page.goto(f"{book.as_uri()}/index.html")
    assert page.locator(".progress").is_hidden() and told == []
