"""What a chapter's notebook must have, and the words when it has not."""

import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.authoring.chapters import (
    FORMS,
    bound_names,
    exercise_id,
    find_chapters,
    find_root,
    nbgrader_id,
    regions,
    slug,
    without_regions,
)
from autograder.errors import CourseError


def test_exercises_are_found_with_their_cells(toy):
    double, *_, why = toy.exercises
    assert [e.id for e in toy.exercises] == ["ch99.double", "ch99.three", "ch99.letter", "ch99.why"]
    assert (double.points, double.stars, double.minutes, double.form) == (3.0, 1, 5, "code")
    assert (double.header, double.answer, double.test) == (3, 4, 5)
    assert why.by_hand and not double.by_hand


def test_the_guide_names_the_forms():
    guide = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    *others, last = FORMS
    assert f"The last word is the form: {', '.join(others)} or {last}." in guide
    least = {form.wrong for form in FORMS.values() if not form.by_hand and form != FORMS["code"]}
    assert re.search(r"At least (\d+) wrong answers for a code exercise and (\d+) for any other", guide).groups() == (
        str(FORMS["code"].wrong),
        *map(str, least),
    )


def test_the_names_asked_for_are_those_that_the_test_uses(toy):
    assert [toy.asked(e) for e in toy.exercises[:3]] == [["double"], ["three"], ["letter"]]


def test_title_and_sections(toy):
    assert toy.title == "Toy" and toy.id == "ch99"
    assert toy.sections == {"toy": "Toy", "doubling": "Doubling"}


@pytest.mark.parametrize(
    ("index", "old", "new", "message"),
    [
        (3, "code", "essay", "unknown form 'essay'"),
        (3, "3 points", "4 points", "the header says 4 points, the test cell 3"),
        (3, "**Exercise ch99.double**", "Exercise ch99.double", "without an exercise header: ch99-double"),
        (3, "★", "easy", "without an exercise header: ch99-double"),
        (3, "ch99.double", "ch99.treble", "ch99.treble: no test cell with the nbgrader id ch99-treble"),
        (3, "ch99.double", "ch99.three", "ch99.three: the header says 3 points, the test cell 1"),
    ],
)
def test_a_bad_header_is_told(make, cells, index, old, new, message):
    cells[index].source = cells[index].source.replace(old, new)
    with pytest.raises(CourseError, match=message):
        _ = make(cells=cells).exercises


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cells: cells.pop(4), "no answer cell with the nbgrader id ch99-double-answer"),
        (lambda cells: cells.pop(5), "no test cell with the nbgrader id ch99-double"),
        (lambda cells: cells[5].metadata.nbgrader.pop("points"), "the header says 3 points, the test cell None"),
        (lambda cells: cells.append(new_markdown_cell(cells[3].source)), "two exercises have this id"),
    ],
)
def test_missing_cells_are_told(make, cells, change, message):
    change(cells)
    with pytest.raises(CourseError, match=message):
        _ = make(cells=cells).exercises


def test_chapters_are_found_by_id_stem_and_path(toy):
    for name in ("ch99", "ch99_toy", "source/ch99_toy/"):
        assert [c.stem for c in find_chapters(toy.root, [name])] == ["ch99_toy"]
    with pytest.raises(CourseError, match="no chapter 'ch98'; there are: ch99_toy"):
        find_chapters(toy.root, ["ch98"])


def test_foundations_come_first(tmp_path):
    for stem in ("ch01_a", "f02_b", "f01_c"):
        (tmp_path / "source" / stem).mkdir(parents=True)
        (tmp_path / "source" / stem / f"{stem}.ipynb").write_text("{}")
    (tmp_path / "source" / "ch01_a" / "other.ipynb").write_text("{}")
    assert [c.stem for c in find_chapters(tmp_path)] == ["f01_c", "f02_b", "ch01_a"]


def test_the_root_is_found_upwards(toy, tmp_path):
    assert find_root(toy.path.parent) == toy.root.resolve()
    with pytest.raises(CourseError, match="not inside a course"):
        find_root(tmp_path)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(x):\n    y = 1", ["f"]),
        ("class A:\n    b = 1", ["A"]),
        ("a = b = 1\n(c, d), e = f", ["a", "b", "c", "d", "e"]),
        ("a: int = 3\na = 4", ["a"]),
        ("import math\nprint(x)", []),
        ("!pip install torch\nx = 1\n%timeit x\ny = !ls\nx?", ["x", "y"]),
        ("%%time\ndef f(x):\n    %matplotlib inline\n    return 1", ["f"]),
        ("%%capture out\n%%time\nx = 1", ["x"]),
        ("%%bash\nx=1", []),
        ('x = """\n%time\n"""\n%time y = 1\nz = (1\n% 2)', ["x", "z"]),
    ],
)
def test_bound_names(source, names):
    assert sorted(bound_names(source)) == names


def test_regions():
    text = "a\n    ### BEGIN SOLUTION\n    b\n    ### END SOLUTION\nc\n### BEGIN SOLUTION\nd\n### END SOLUTION"
    assert regions(text, "SOLUTION") == ["    b\n", "d\n"]
    assert without_regions(text, "SOLUTION") == "a\nc\n"
    assert without_regions(text, "HIDDEN TESTS") == text


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Softmax over keys", "softmax-over-keys"), ("The $d_k$ of `x`", "the-of-x"), ("Why? Because", "why-because")],
)
def test_slug(heading, anchor):
    assert slug(heading) == anchor


def test_ids_go_both_ways():
    assert nbgrader_id("ch04.by_hand") == "ch04-by_hand" and exercise_id("ch04-by_hand") == "ch04.by_hand"


def test_imported_names_are_those_that_no_cell_defines(make, cells):
    cells.insert(
        2, new_code_cell("import math as m, random\nfrom course.attention import attention as double\n%matplotlib inline")
    )
    cells.insert(2, new_code_cell("import math as m, random, statistics\nrandom = 3"))
    cells.insert(2, new_markdown_cell("import os"))
    imported = make(cells=cells).imported
    assert imported["m"] == "import math as m" and imported["check"] == "from course.checks import check"
    assert not {"random", "double", "os"} & imported.keys()
