"""A course of two small chapters that has every form a page knows, and what tests of sites share."""

import html
import json
import re
import shutil
from pathlib import Path

import nbformat
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import course.widgets

ROOT = Path(__file__).resolve().parents[2]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3" width="40" height="30"><rect width="4" height="3" fill="#0072B2"/></svg>'
TOY = """
export default {
  render({ model, el }) {
    el.classList.add("course-widget");
    const said = element("p", { class: "course-said", "aria-live": "polite" });
    const draw = () => { said.textContent = `heads with probability ${model.get("p").toFixed(2)}`; };
    el.append(slider({ label: "p", min: 0, max: 1, step: 0.01, value: model.get("p"), onInput: (x) => { model.set("p", x); model.save_changes(); } }), said);
    const bar = drawing("a bar", (width) => [30, svg("rect", { width: width / 4, height: 20, fill: "var(--weights)" }), text(0, 28, "heads")]);
    bar.redraw();
    el.append(bar);
    model.on("change:p", draw);
    draw();
  },
};
"""
FIRST = """# Coins

*A coin that lands on its edge breaks most textbooks.*

**You will be able to**

- count heads
- say what $p$ means

**Builds on** [Dice](../t02_dice/t02_dice.ipynb)

**Time** 5 minutes to read · 10 minutes of exercises

**In a hurry** On the fast path. Skip nothing."""
CAPTION = "The bar has height $p = 1$, and no less."
IDEA = """## The idea of odds

The **odds** of an event with **probability** $p$ are $p/(1-p)$. Once more, **odds** are not chances.

$$
o = \\frac{p}{1-p}
$$

*Formula t01-odds.*"""
TASK = """**Exercise t01.odds** · 2 points · ★★ · 5 min · code

Write `odds(p)` for a probability $p$ below one. Return $p/(1-p)$ as a float.
```python
odds(0.5)  # **odds** of $p$, $$x$$ | 1
```

<details><summary>Hint 1</summary>What is $1-p$ for <code>p = 0.5 * x[-1]</code>?</details>
<details><summary>Hint 2</summary>Divide.</details>"""
ANSWER = """def odds(p):
    ### BEGIN SOLUTION
    # Why: heads against tails is a ratio of two probabilities.
    # Tempting: dividing by p gives the inverse.
    return float(p) / (1.0 - float(p))
    ### END SOLUTION"""
TEST = """exercise = Exercise("t01.odds", points=2)
with exercise.part("the fair coin"):
    check(odds).on(0.5).returns(1.0)
### BEGIN HIDDEN TESTS
with exercise.part("any coin", points=2):
    check(odds).on(0.8).returns(4.0, see="hidden-sentinel")
### END HIDDEN TESTS
exercise.score()"""
WRITTEN = """Because one minus p is below one, the quotient is above p.

### BEGIN MARK SCHEME
One point for the denominator being below one.
### END MARK SCHEME"""


def graded(id, points=None, solution=False):
    cell = {
        "grade": points is not None,
        "grade_id": id,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    return {"nbgrader": cell | ({"points": points} if points is not None else {})}


def bundle(module="toy"):
    return {"module": module, "state": {"p": 0.25}, "text": "A slider for p < 1 at 0.25."}


def coins():
    """The chapter that has everything."""
    widget = new_output("display_data", {"text/plain": "A slider", course.widgets.MIME: bundle()})
    figure = new_output("display_data", {"image/svg+xml": SVG, "text/plain": "<Figure>"})
    stream = new_output("stream", text="the answer is hidden-in-output\n")
    return new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[
            new_markdown_cell(FIRST),
            new_code_cell("from course.checks import Exercise, check", metadata=graded("t01.setup")),
            new_markdown_cell(IDEA),
            new_code_cell(
                "draw()", metadata={"tags": ["figure"], "alt": "A bar of height one.", "caption": CAPTION}, outputs=[figure]
            ),
            new_code_cell("Toy()", metadata={"tags": ["widget"], "caption": "A slider sets $p < 1$."}, outputs=[widget]),
            new_markdown_cell(TASK),
            new_code_cell(ANSWER, metadata=graded("t01.odds.answer", solution=True), outputs=[stream]),
            new_code_cell(TEST, metadata=graded("t01.odds", points=2), outputs=[stream]),
            new_markdown_cell(
                "**Exercise t01.why** · 1 point · ★ · 5 min · written\n\nSay in two sentences why odds exceed probabilities."
            ),
            new_markdown_cell(WRITTEN, metadata=graded("t01.why", points=1, solution=True)),
            new_markdown_cell("## What is known and how"),
            new_markdown_cell("<!-- receipts -->", metadata={"tags": ["receipts"]}),
        ],
    )


def dice():
    first = (
        FIRST.replace("Coins", "Dice")
        .replace("On the fast path. ", "")
        .replace("[Dice](../t02_dice/t02_dice.ipynb)", "nothing; see [the idea](../t01_coins/t01_coins.ipynb#the-idea-of-odds)")
    )
    return new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}, cells=[new_markdown_cell(first)]
    )


REFERENCE = {
    "chapters": {"t01_coins": "Coins", "t02_dice": "Dice"},
    "parts": {"Chance": "t01_coins"},
    "formulas": [
        {
            "id": "t01-odds",
            "name": "Odds",
            "latex": r"o = \frac{p}{1-p}, \quad |p| < 1",
            "does": "Turns a probability into odds.",
            "chapter": "t01_coins",
            "receipt": "computed",
            "evidence": "tests/receipts/test_coins.py::test_odds",
            "shows": "equal to counted odds to 1e-12",
            "limits": "$|p| < 1$",
        },
        {
            "id": "t01-edges",
            "name": "Edges",
            "latex": "e > 0",
            "does": "Coins on their edge.",
            "chapter": "t01_coins",
            "receipt": "measured",
            "evidence": "tests/receipts/test_coins.py::test_edge",
            "shows": "some coins stay on their edge",
        },
        {
            "id": "t02-half",
            "name": "Half",
            "latex": "1 = 1",
            "does": "The odds of a half.",
            "chapter": "t02_dice",
            "receipt": "proved",
            "evidence": "tests/receipts/proofs/odds.v::odds_of_half",
            "shows": "the odds of one half are one",
        },
        {"id": "t02-luck", "name": "Luck", "latex": "l", "does": "Nothing.", "chapter": "t02_dice", "receipt": "analogy"},
    ],
    "glossary": [
        {"term": "odds", "chapter": "t01_coins", "definition": "Probability $p$ over $1-p$."},
        {"term": "probability", "chapter": "t01_coins", "definition": "A number between 0 and 1.", "also": ["chance"]},
    ],
    "bibliography": [{"key": "b", "text": "Bernoulli (1713). Ars Conjectandi", "url": "https://example.org/ars"}],
    "errata": [
        {
            "id": "1",
            "chapter": "t01_coins",
            "wrong": "Odds are chances.",
            "right": "They are $p/(1-p)$.",
            "check": "tests/receipts/test_coins.py::test_odds",
        }
    ],
}


EVIDENCE = {
    "tests/receipts/test_coins.py": """import pytest

from course.data import record


def counted(p):
    return p / (1 - p)


@pytest.mark.receipt("t01-odds", "computed")
def test_odds():
    assert counted(0.5) == 1.0


@pytest.mark.receipt("t01-edges", "measured")
def test_edge():
    check(odds).on(0.8).returns(4.0, see="hidden-sentinel")
    assert record("coins")["results"]["p"][0] > 0
""",
    "tests/receipts/proofs/odds.v": """(** Odds of a coin. *)

(** The odds of one half are one. *)
Theorem odds_of_half : 1 = 1.
Proof. reflexivity. Qed.
""",
    "experiments/coins.py": '"""Throws coins."""\n',
    "course/data/records/coins.json": json.dumps(
        dict.fromkeys(("experiment", "mode", "date", "device"), "coins")
        | {
            "versions": {},
            "settings": {},
            "seeds": [1, 2],
            "interval": "95%",
            "results": {"p": [0.1, 0.2], "runs": "heads " * 300},
        }
    ),
}


def make_course(root, chapters=None, **reference):
    """Write a course folder; `reference` replaces registries."""
    (root / "book" / "reference").mkdir(parents=True, exist_ok=True)
    for name in ("nbgrader_config.py", "_config.yml"):
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "book" / "assets", root / "book" / "assets", dirs_exist_ok=True)
    shutil.copy(ROOT / "book" / "reference" / "symbols.md", root / "book" / "reference")
    for name, content in (REFERENCE | reference).items():
        (root / "book" / "reference" / f"{name}.yml").write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    for name, content in EVIDENCE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    chapters = {"t01_coins": coins(), "t02_dice": dice()} if chapters is None else chapters
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())
    listed = [{"file": f"{stem}/{stem}"} for stem in ("t01_coins", "t02_dice", "t03_not_written")]
    toc["parts"] = [{"caption": "Chance", "chapters": listed}, *toc["parts"][-2:]]  # and the pages that are no chapters
    (root / "book" / "_toc.yml").write_text(yaml.safe_dump(toc, sort_keys=False))
    for stem, notebook in chapters.items():
        (root / "source" / stem).mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, root / "source" / stem / f"{stem}.ipynb")
    (root / "release" / "t01_coins").mkdir(parents=True, exist_ok=True)
    nbformat.write(dice(), root / "release" / "t01_coins" / "t01_coins.ipynb")
    return root


def broken_links(site) -> list[str]:
    """Links and sources of a site's pages that lead nowhere inside it."""
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if "_static" not in path.parts}
    anchors = {path.resolve(): set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            target, _, fragment = html.unescape(link).partition("#")
            if re.match(r"[a-z]+:|//", target):
                continue
            there = (path.parent / target.split("?")[0]).resolve() if target else path.resolve()
            if not there.exists() or (fragment and there in anchors and fragment not in anchors[there]):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken
