"""A notebook of any size is read in little memory: what is not graded is skipped, the rest is as it was."""

import contextlib
import io
import json
import resource
import time

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.grading import merge, pruned
from autograder.grading.merge import read_submission
from autograder.grading.pruned import TooLarge
from tests.autograder.conftest import RIGHT

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
NAMES = st.sampled_from(["cells", "worksheets", "source", "input", "outputs", "metadata", "attachments", 'x"\\', "é", ""])
JSON = st.recursive(
    PLAIN, lambda inside: st.lists(inside, max_size=4) | st.dictionaries(NAMES, inside, max_size=4), max_leaves=20
)


def without_outputs(value):
    """What must be left, told by Python's own reader."""
    return {
        name: [without_outputs(x) if isinstance(x, dict) else x for x in inside]
        if name in pruned.LISTS and isinstance(inside, list)
        else []
        if name == "outputs"
        else inside
        for name, inside in value.items()
    }


def read(content: bytes, most=10**6, cells=1000):
    kept, left_out = pruned.pruned(io.BytesIO(content).read, most, cells)
    return json.loads(kept), left_out


@given(
    content=st.dictionaries(NAMES, JSON, max_size=5),
    chunk=st.sampled_from([1, 2, 3, 7, 64, 4096]),
    indent=st.sampled_from([None, 1]),
    escaped=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-be"]),
)
def test_all_but_outputs_is_as_it_was(content, chunk, indent, escaped, encoding):
    text = json.dumps(content, indent=indent, ensure_ascii=escaped)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruned, "CHUNK", max(chunk, 4))
        data = io.BytesIO(text.encode(encoding, "surrogatepass"))
        kept, left_out = pruned.pruned(lambda n: data.read(min(n, max(chunk, 4))), 10**6, 1000)
    assert json.loads(kept) == without_outputs(content) and left_out == []


@given(content=JSON, changes=st.lists(st.tuples(st.integers(0, 999), st.binary(max_size=3), st.integers(0, 9)), max_size=4))
def test_damaged_bytes_are_an_error_or_a_notebook(content, changes):
    data = json.dumps({"cells": [{"source": "1", "outputs": content, "metadata": content}]}).encode()
    for place, new, length in changes:
        data = data[: place % len(data)] + new + data[place % len(data) + length :]
    with contextlib.suppress(ValueError):
        pruned.pruned(io.BytesIO(data).read, 10**6, 1000)


@pytest.mark.parametrize("what", ["metadata", "attachments", "anything", "id"])
@pytest.mark.parametrize(
    "value",
    ['"' + "x" * 5000 + '"', "[" * 400 + "]" * 400 + " " * 5000, "[" + "[{}]," * 999 + "1]", "1" * 5000],
    ids=["text", "brackets", "list", "number"],
)
def test_a_large_value_is_left_out_and_told(monkeypatch, what, value):
    monkeypatch.setattr(pruned, "LARGEST_VALUE", 1000)
    monkeypatch.setattr(pruned, "LARGEST_ATTACHMENTS", 1000)
    found, left_out = read(f'{{"cells": [{{"{what}": {value}, "source": "1"}}, {{"source": "2"}}], "nbformat": 4}}'.encode())
    assert [cell["source"] for cell in found["cells"]] == ["1", "2"] and found["nbformat"] == 4
    assert len(left_out) == (0 if value.rstrip() != value else 1)
    assert left_out or what in found["cells"][0]


@pytest.mark.parametrize(
    "value", ["[" * 300_000 + "]" * 300_000, '{"a":' * 99_999 + "1" + "}" * 99_999, "[[", '"', '{"x": "', "]", ""], ids=range(7)
)
def test_what_cannot_be_skipped_is_an_error_at_once(value):
    start = time.process_time()
    with pytest.raises(ValueError):
        read(f'{{"cells": [{{"outputs": {value}'.encode())
    assert time.process_time() - start < 5


def test_names_cells_and_texts_have_bounds(monkeypatch):
    monkeypatch.setattr(pruned, "LARGEST_VALUE", 100)
    name = "n" * 1000
    found, left_out = read(f'{{"{name}": 1, "cells": [{{"source": "1"}}]}}'.encode())
    assert found == {"cells": [{"source": "1"}]} and left_out == ["a name of more than 1 MB"]
    many = json.dumps({"cells": [{str(i): i for i in range(200)}] + [{"source": "1"}] * 50}).encode()
    found, left_out = read(many, cells=3)
    assert len(found["cells"]) == 3 and len(found["cells"][0]) == pruned.MOST_KEYS and len(left_out) == 1
    with pytest.raises(TooLarge):
        read(json.dumps({"cells": [{"source": "x" * 600}] * 2}).encode(), most=1000)


def large(notebook, cell, **more) -> bytes:
    """The JSON of a notebook with something large in one of its cells."""
    content = json.loads(nbformat.writes(notebook))
    content["cells"][cell] |= more
    return json.dumps(content).encode()


def test_outputs_of_any_size_cost_no_memory_and_nothing_else(perfect, tmp_path, monkeypatch):
    monkeypatch.setattr(merge, "LARGEST", 100_000)
    text = [{"output_type": "stream", "name": "stdout", "text": ['a line "of" text\n' * 40] * 1000}] * 60
    picture = [{"output_type": "display_data", "metadata": {}, "data": {"image/png": "QUJD" * 2_000_000, "x": [[1, 2]] * 9999}}]
    path = tmp_path / "ch99_toy.ipynb"
    path.write_bytes(large(perfect.notebook, 5, outputs=text + picture))
    assert path.stat().st_size > 45_000_000
    read_submission(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    notebook, why = read_submission(path)
    assert why is None and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in perfect.notebook.cells]


def test_an_attachment_that_is_too_large_is_told_and_the_answers_hold(perfect, tmp_path, monkeypatch):
    monkeypatch.setattr(pruned, "LARGEST_ATTACHMENTS", 1_000_000)
    path = tmp_path / "ch99_toy.ipynb"
    path.write_bytes(large(perfect.notebook, -1, attachments={"a.png": {"image/png": "QUJD" * 500_000}}))
    notebook, why = read_submission(path)
    assert why == "left out of ch99_toy.ipynb: attachments of more than 1 MB"
    assert notebook.cells[-1].source == RIGHT["why"]
