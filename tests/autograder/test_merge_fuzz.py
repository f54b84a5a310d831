"""Honest notebooks mutated at random, and large ones: merging never fails, and never gives a test or its points away."""

import copy
import json
from functools import cache

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.chapters import grade_id
from autograder.authoring.release import Release
from autograder.grading.merge import CELLS, FLAGS, LONGEST, merge, read_submission
from tests.autograder.conftest import RIGHT

ANSWERS = [f"ch99-{name}-answer" if name != "why" else "ch99-why" for name in RIGHT]
TESTS = ["ch99-double", "ch99-three", "ch99-letter"]

PLAIN = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
JSON = st.recursive(PLAIN, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3), max_leaves=5)  # fmt: skip
KEYS = ["grade_id", "grade", "solution", "locked", "points", "task", "schema_version", "checksum", "cell_type"]
PLACE = st.integers(0, 30)


def mutations(names):
    """What is done to one cell: (what, which cell, with what)."""
    return st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["delete", "copy", "split"]), PLACE, PLACE),
            st.tuples(st.just("move"), PLACE, PLACE),
            st.tuples(st.just("type"), PLACE, st.sampled_from(["code", "markdown", "raw", "heading", ""]) | JSON),
            st.tuples(st.just("name"), PLACE, names),
            st.tuples(st.just("nbgrader"), PLACE, st.tuples(st.sampled_from(KEYS[1:]), JSON)),
            st.tuples(st.just("source"), PLACE, st.text(max_size=20) | st.lists(st.text(max_size=9), max_size=3) | JSON),
            st.tuples(st.sampled_from(["id", "metadata", "outputs", "attachments", "execution_count"]), PLACE, JSON),
            st.tuples(st.just("drop"), PLACE, st.sampled_from(["id", "metadata", "outputs", "source", "cell_type"])),
            st.tuples(st.just("insert"), PLACE, JSON),
        ),
        max_size=8,
    )


def mutate(cells, done, allowed=lambda cell: True):
    """Do it, to those cells that are allowed."""
    for what, place, value in done:
        if not cells or not isinstance(cells[place % len(cells)], dict) or not allowed(cells[place % len(cells)]):
            continue
        place %= len(cells)
        cell = cells[place]
        metadata = cell.get("metadata")
        match what:
            case "delete":
                del cells[place]
            case "copy":
                cells.insert(value % (len(cells) + 1), copy.deepcopy(cell))
            case "split":
                cells.insert(place + 1, {**copy.deepcopy(cell), "source": str(cell.get("source"))[value:]})
            case "move":
                cells.insert(value % len(cells), cells.pop(place))
            case "insert":
                cells.insert(place, value)
            case "type":
                cell["cell_type"] = value
            case "name" | "nbgrader" if isinstance(metadata, dict) and isinstance(metadata.get("nbgrader", {}), dict):
                key, content = ("grade_id", value) if what == "name" else value
                metadata.setdefault("nbgrader", {})[key] = content
            case "drop":
                cell.pop(value, None)
            case "id" | "source" | "metadata" | "outputs" | "attachments" | "execution_count":
                cell[what] = value


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "ch99_toy.ipynb"


def honest(chapter):
    """The JSON of a notebook with all answers right."""
    notebook = nbformat.read(chapter.release, as_version=4)
    for cell in notebook.cells:
        if grade_id(cell) in ANSWERS:
            cell.source = RIGHT[grade_id(cell).removeprefix("ch99-").removesuffix("-answer")]
    return json.loads(nbformat.writes(notebook))


@cache
def released(chapter):
    return Release.of(chapter)


def merged(chapter, file, content):
    """What comes of a file with this content, with all that must hold for every one."""
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    submission, why = read_submission(file)
    if submission is None:
        assert type(why) is str and len(why) < 300 and "\n" not in why
    found = merge(chapter, submission, released(chapter))
    nbformat.validate(found.notebook)
    nbformat.writes(found.notebook).encode()
    assert len(found.flags) <= FLAGS + 1
    assert all(type(flag) is str and len(flag) < 300 and flag.isprintable() for flag in found.flags)
    locked = [
        cell for cell in found.notebook.cells if cell.metadata.get("nbgrader") or "own" not in cell.metadata.get("tags", ())
    ]
    for mine, theirs in zip(locked, chapter.notebook.cells, strict=True):
        assert mine.cell_type == theirs.cell_type
        assert {**mine.metadata.get("nbgrader", {}), "checksum": 0} == {
            **theirs.metadata.get("nbgrader", {}),
            "checksum": 0,
        } or not (is_grade(theirs) or is_solution(theirs))
        if not is_solution(theirs):
            assert mine.source == theirs.source
    for cell in found.notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
    return found


def texts(found, names):
    return {grade_id(cell): cell.source for cell in found.notebook.cells if grade_id(cell) in names}


@settings(max_examples=100)
@given(done=mutations(st.sampled_from([*ANSWERS, *TESTS, "x", ""]) | JSON))
def test_mutated_notebooks(toy, file, done):
    notebook = honest(toy)
    mutate(notebook["cells"], done)
    first = merged(toy, file, notebook)
    again = merged(toy, file, notebook)
    assert (first.flags, [cell.source for cell in first.notebook.cells]) == (
        again.flags,
        [cell.source for cell in again.notebook.cells],
    )


@settings(max_examples=100)
@given(done=mutations(st.sampled_from([*TESTS, "x", ""])))
def test_untouched_answers_hold_whatever_happens_around_them(toy, file, done):
    notebook = honest(toy)
    before = texts(merged(toy, file, notebook), ANSWERS)
    mutate(
        notebook["cells"],
        done,
        lambda cell: (
            not isinstance(cell.get("metadata"), dict) or cell["metadata"].get("nbgrader", {}).get("grade_id") not in ANSWERS
        ),
    )
    assert texts(merged(toy, file, notebook), ANSWERS) == before


@settings(max_examples=100)
@given(
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=4), st.integers(0, 50)), min_size=1, max_size=5),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-32", "latin-1"]),
)
def test_mutated_bytes(toy, file, changes, encoding):
    content = json.dumps(honest(toy)).encode(encoding)
    for place, new, length in changes:
        content = content[: place % len(content)] + new + content[place % len(content) + length :]
        if not content:
            break
    merged(toy, file, content)


# ---------------------------------------------------------------- large ones


def code(source, name=None):
    metadata = {"nbgrader": {"grade_id": name}} if name else {}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


@pytest.mark.parametrize(
    "cells",
    [
        [code("x = 1")] * (3 * CELLS),
        [code("x = 1", f"name-{i}") for i in range(3 * CELLS)],
        [code(f"x = {i}", "ch99-double-answer") for i in range(3 * CELLS)],
        [code(f"def double(x):\n    return {i}") for i in range(3 * CELLS)],
        [code("double = " + "1," * LONGEST)],
        [code("double = " + "(" * LONGEST + ")" * LONGEST)] * 5,
    ],
    ids=["own cells", "unknown names", "one answer", "one definition", "a long line", "brackets"],
)
def test_large_notebooks(toy, file, cells):
    found = merged(toy, file, {**honest(toy), "cells": cells})
    assert len(found.notebook.cells) <= CELLS + len(toy.notebook.cells)
    assert any("first 1000 cells" in flag for flag in found.flags) == (len(cells) > CELLS)
