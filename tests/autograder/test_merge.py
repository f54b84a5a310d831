"""The graded notebook: locked cells from the source, answers and own cells from the student, whatever they did to the file."""

import copy
import json
import os
import socket
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.authoring.chapters import grade_id
from autograder.grading.merge import LARGEST_FILE, _cell, merge, read_submission

ANSWER = "def double(x):\n    return x + x"


def by_id(notebook, name: str) -> NotebookNode:
    (cell,) = [cell for cell in notebook.cells if grade_id(cell) == name]
    return cell


def answered(merged) -> str:
    return by_id(merged.notebook, "ch99-double-answer").source


@pytest.fixture
def copied(released):
    """A student's copy with one answer."""
    by_id(released, "ch99-double-answer").source = ANSWER
    return released


def locked_are_the_sources(toy, merged):
    for cell in toy.notebook.cells:
        if grade_id(cell) and not cell.metadata.nbgrader.solution:
            graded = by_id(merged.notebook, grade_id(cell))
            assert (graded.source, graded.cell_type) == (cell.source, cell.cell_type)
            assert graded.metadata.nbgrader.get("points") == cell.metadata.nbgrader.get("points")


def test_an_honest_copy_needs_no_repair(toy, copied):
    merged = merge(toy, copied)
    assert merged.flags == [] and answered(merged) == ANSWER
    assert [grade_id(c) for c in merged.notebook.cells] == [grade_id(c) for c in toy.notebook.cells]


def test_hidden_tests_come_back(toy, copied):
    assert "HIDDEN" not in by_id(copied, "ch99-double").source
    assert by_id(merge(toy, copied).notebook, "ch99-double").source == by_id(toy.notebook, "ch99-double").source


def test_nothing_handed_in_is_the_blank_notebook(toy, released):
    merged = merge(toy, None)
    assert merged.flags == []
    for name in ("ch99-double-answer", "ch99-three-answer", "ch99-why"):
        assert by_id(merged.notebook, name).source == by_id(released, name).source


def test_the_source_is_not_changed(toy, copied):
    before = copy.deepcopy(toy.notebook)
    merge(toy, copied)
    assert toy.notebook == before


def test_the_submission_is_not_changed(toy, copied):
    before = copy.deepcopy(copied)
    merge(toy, copied)
    assert copied == before


def test_outputs_are_dropped(toy, copied):
    for cell in copied.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "3.0"})]
    assert all(not cell.get("outputs") for cell in merge(toy, copied).notebook.cells)


# ---------------------------------------------------------------- what students do to cells


@pytest.mark.parametrize("source", ["3.0", "exercise = 3", ""])
def test_an_edited_test_cell_is_the_sources(toy, copied, source):
    cell = by_id(copied, "ch99-double")
    cell.source, cell.metadata.nbgrader.points = source, 100
    graded = by_id(merge(toy, copied).notebook, "ch99-double")
    assert graded.source == by_id(toy.notebook, "ch99-double").source and graded.metadata.nbgrader.points == 3


def test_an_edited_setup_cell_is_the_sources(toy, copied):
    by_id(copied, "ch99-setup").source = "class Exercise: ..."
    assert by_id(merge(toy, copied).notebook, "ch99-setup").source == by_id(toy.notebook, "ch99-setup").source


def test_a_split_answer_is_joined(toy, copied):
    cell = by_id(copied, "ch99-double-answer")
    cell.source = "def double(x):\n    y = x"
    copied.cells.insert(copied.cells.index(cell) + 1, new_code_cell("    return x + y", metadata=copy.deepcopy(cell.metadata)))
    merged = merge(toy, copied)
    compile(answered(merged), "answer", "exec")
    assert "return x + y" in answered(merged) and merged.flags == ["ch99-double-answer: 2 cells were joined"]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("other", ["blank", "same"])
def test_a_copy_of_an_answer_does_no_harm(toy, copied, released, place, other):
    cell = by_id(copied, "ch99-double-answer")
    stub = by_id(merge(toy, None).notebook, "ch99-double-answer").source
    twin = new_code_cell(stub if other == "blank" else ANSWER, metadata=copy.deepcopy(cell.metadata))
    copied.cells.insert(copied.cells.index(cell) + place, twin)
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER and merged.flags == []


def test_a_copy_of_a_test_is_left_out_and_flagged(toy, copied):
    copied.cells.append(copy.deepcopy(by_id(copied, "ch99-double")))
    merged = merge(toy, copied)
    by_id(merged.notebook, "ch99-double")
    assert merged.flags == ["ch99-double: a second copy of the test cell was left out"]


def test_a_deleted_answer_is_empty_and_flagged(toy, copied):
    copied.cells.remove(by_id(copied, "ch99-double-answer"))
    merged = merge(toy, copied)
    assert answered(merged) == "" and merged.flags == ["ch99-double-answer: the answer cell is missing"]


def test_an_answer_written_into_a_new_cell_in_its_place_is_taken(toy, copied):
    cell = by_id(copied, "ch99-double-answer")
    place = copied.cells.index(cell)
    copied.cells[place : place + 1] = [new_code_cell("helper = 2"), new_code_cell(ANSWER)]
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER and "helper = 2" in [cell.source for cell in merged.notebook.cells]
    assert merged.flags == ["ch99-double-answer: the answer cell had lost its name; what stood in its place was taken"]


def test_an_answer_written_far_from_its_cell_still_holds(toy, copied):
    """The empty answer cell must not undo what an own cell above it defined."""
    copied.cells.remove(by_id(copied, "ch99-double-answer"))
    copied.cells.insert(0, new_code_cell(ANSWER))
    sources = [cell.source for cell in merge(toy, copied).notebook.cells]
    assert sources[0] == ANSWER and not any("raise NotImplementedError" in source for source in sources)


def test_a_written_answer_in_a_new_cell_is_taken(toy, copied):
    copied.cells[copied.cells.index(by_id(copied, "ch99-why"))] = new_markdown_cell("Twice as much.")
    merged = merge(toy, copied)
    assert by_id(merged.notebook, "ch99-why").source == "Twice as much." and len(merged.flags) == 1


def test_without_any_name_cells_are_found_by_their_text(toy, copied):
    for cell in copied.cells:
        cell.pop("id")
        cell.metadata = NotebookNode()
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER
    assert len(merged.notebook.cells) == len(toy.notebook.cells)


def test_a_picture_in_a_written_answer_is_kept(toy, copied):
    by_id(copied, "ch99-why").attachments = {"a.png": {"image/png": "aGk="}, "b.svg": {"image/svg+xml": "<svg/>"}}
    notebook = merge(toy, NotebookNode(cells=[_cell(cell) for cell in copied.cells])).notebook
    assert by_id(notebook, "ch99-why").attachments == {"a.png": {"image/png": "aGk="}}
    nbformat.validate(notebook)


def test_a_deleted_test_is_put_back_and_flagged(toy, copied):
    copied.cells.remove(by_id(copied, "ch99-double"))
    merged = merge(toy, copied)
    locked_are_the_sources(toy, merged)
    assert merged.flags == ["ch99-double: the test cell was missing and has been put back"]


def test_reordered_cells_are_in_the_sources_order(toy, copied):
    copied.cells.reverse()
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER
    assert [grade_id(c) for c in merged.notebook.cells] == [grade_id(c) for c in toy.notebook.cells]


def test_a_renamed_answer_is_found_by_its_cell_id(toy, copied):
    by_id(copied, "ch99-double-answer").metadata.nbgrader.grade_id = "mine"
    assert answered(merge(toy, copied)) == ANSWER


def test_an_answer_without_metadata_is_found_by_its_cell_id(toy, copied):
    for cell in copied.cells:
        cell.metadata.pop("nbgrader", None)
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER and merged.flags == []


def test_an_answer_without_a_cell_id_is_found_by_its_name(toy, copied):
    for cell in copied.cells:
        cell.pop("id")
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER and merged.flags == []


def test_a_retyped_answer_is_code_again_and_flagged(toy, copied):
    cell = by_id(copied, "ch99-double-answer")
    copied.cells[copied.cells.index(cell)] = new_markdown_cell(ANSWER, metadata=cell.metadata)
    merged = merge(toy, copied)
    assert by_id(merged.notebook, "ch99-double-answer").cell_type == "code" and answered(merged) == ANSWER
    assert merged.flags == ["ch99-double-answer: the cell's type was changed"]


def test_half_an_answer_as_text_is_not_code(toy, copied):
    cell = by_id(copied, "ch99-double-answer")
    copied.cells.insert(copied.cells.index(cell) + 1, new_markdown_cell("I doubled it.", metadata=copy.deepcopy(cell.metadata)))
    assert answered(merge(toy, copied)) == ANSWER


def test_a_test_turned_into_text_is_code_again(toy, copied):
    cell = by_id(copied, "ch99-double")
    copied.cells[copied.cells.index(cell)] = new_markdown_cell(cell.source, metadata=cell.metadata)
    locked_are_the_sources(toy, merge(toy, copied))


def test_flags_that_the_student_set_do_not_count(toy, copied):
    for cell in copied.cells:
        if grade_id(cell):
            cell.metadata.nbgrader.update(grade=False, solution=False, locked=False, schema_version=1)
        cell.metadata.tags = ["skip-execution", "slow"]
    merged = merge(toy, copied)
    assert answered(merged) == ANSWER and by_id(merged.notebook, "ch99-double").metadata.nbgrader.grade
    assert all("slow" not in cell.metadata.get("tags", []) for cell in merged.notebook.cells)


def test_own_cells_keep_their_place(toy, copied):
    copied.cells.insert(copied.cells.index(by_id(copied, "ch99-double-answer")), new_code_cell("helper = 1"))
    copied.cells.insert(0, new_markdown_cell("my notes"))
    copied.cells.append(new_code_cell("last = 1"))
    sources = [cell.source for cell in merge(toy, copied).notebook.cells]
    assert sources[0] == "my notes" and sources[-1] == "last = 1"
    assert sources[sources.index("helper = 1") + 1] == ANSWER


def test_an_own_cell_runs_after_all_that_stood_above_it(toy, copied):
    moved = by_id(copied, "ch99-double-answer")
    copied.cells.remove(moved)
    copied.cells += [moved, new_code_cell("print(double(three))")]
    assert merge(toy, copied).notebook.cells[-1].source == "print(double(three))"


def test_own_cells_have_no_name_and_no_points(toy, copied):
    given = {
        "grade": True,
        "grade_id": "extra",
        "points": 9,
        "solution": False,
        "locked": True,
        "schema_version": 3,
        "task": False,
    }
    copied.cells.append(new_code_cell("9.0", metadata={"nbgrader": given}))
    merged = merge(toy, copied)
    assert "nbgrader" not in merged.notebook.cells[-1].metadata
    assert merged.flags == ["unknown nbgrader id 'extra': treated as the student's own cell"]


def test_the_checksum_of_a_blank_is_that_of_the_release(toy, released):
    cell = by_id(merge(toy, released).notebook, "ch99-why")
    assert cell.metadata.nbgrader.checksum == by_id(released, "ch99-why").metadata.nbgrader.checksum


# ---------------------------------------------------------------- what students do to files


@pytest.fixture
def read(tmp_path):
    """read(bytes): the submission in a file with these bytes."""

    def read(content):
        path = tmp_path / "ch99_toy.ipynb"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return read_submission(path)

    return read


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_an_encoding_that_an_editor_chose_is_read(toy, copied, read, encoding):
    by_id(copied, "ch99-double-answer").source = f"{ANSWER}  # zwölf"
    text = json.dumps(copied, ensure_ascii=False).replace("·", "-").replace("★", "*")
    notebook, why = read(text.encode(encoding))
    assert why is None and answered(merge(toy, notebook)) == f"{ANSWER}  # zwölf"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"{", "is not a notebook"),
        (b"\xff\x00\xfe", "is not a notebook"),
        (b"[" * 100_000, "is not a notebook"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_a_broken_file_says_why(read, content, message):
    notebook, why = read(content)
    assert notebook is None and message in why


@pytest.mark.parametrize(
    "content",
    [None, 3, "text", [], {}, {"cells": 3}, {"cells": {}}, {"worksheets": 3}, {"nbformat": 3, "worksheets": [1]}],
    ids=str,
)
def test_json_that_is_no_notebook_says_why(read, content):
    notebook, why = read(content)
    assert notebook is None and why.startswith("ch99_toy.ipynb ")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("none", "cannot be read (No such file or directory)"),
        ("folder", "is a folder, not a notebook file"),
        ("link", "is a link, not a notebook file"),
        ("loop", "is a link, not a notebook file"),
        ("pipe", "is a pipe, not a notebook file"),
        ("socket", "is a socket, not a notebook file"),
    ],
)
def test_what_is_no_file_is_told(tmp_path, monkeypatch, kind, said):
    monkeypatch.chdir(tmp_path)
    Path("folder.ipynb").mkdir()
    Path("real").write_text("{}")
    Path("link.ipynb").symlink_to("real")
    Path("loop.ipynb").symlink_to("loop.ipynb")
    os.mkfifo("pipe.ipynb")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.ipynb")
        assert read_submission(tmp_path / f"{kind}.ipynb") == (None, f"{kind}.ipynb {said}")


def test_a_device_is_told():
    assert read_submission(Path("/dev/zero")) == (None, "zero is a device, not a notebook file")


def test_a_huge_file_is_not_read(tmp_path):
    with (tmp_path / "a.ipynb").open("wb") as file:
        file.truncate(2_000_000_000)  # sparse
    assert read_submission(tmp_path / "a.ipynb") == (None, f"a.ipynb is larger than {LARGEST_FILE // 1_000_000} MB")


def test_a_name_of_any_bytes_makes_one_line(tmp_path):
    path = tmp_path / os.fsdecode(b"a\n\xff\x1b[31m.ipynb")
    path.write_bytes(b"")
    notebook, why = read_submission(path)
    assert notebook is None and why.isprintable() and why.endswith("is empty")


@pytest.mark.parametrize("version", [None, "4", 4.0, 99])
def test_the_format_number_does_not_matter(toy, copied, read, version):
    copied["nbformat"] = version
    notebook, why = read(dict(copied))
    assert why is None and answered(merge(toy, notebook)) == ANSWER


def test_an_old_format_is_read(toy, copied, read):
    notebook, why = read(dict(nbformat.convert(copied, 3)))
    assert why is None and answered(merge(toy, notebook)) == ANSWER


def test_source_as_a_list_of_lines_is_read(toy, copied, read):
    by_id(copied, "ch99-double-answer").source = ANSWER.splitlines(keepends=True)
    assert answered(merge(toy, read(dict(copied))[0])) == ANSWER


def test_lone_surrogates_can_be_written(toy, copied, read):
    by_id(copied, "ch99-double-answer").source = ANSWER + "  # \ud800"
    by_id(copied, "ch99-why").source = "Twice \udfff"
    copied.cells.append(new_code_cell("'\ud800'", metadata={"nbgrader": {"grade_id": "\ud800"}}))
    merged = merge(toy, read(dict(copied))[0])
    nbformat.writes(merged.notebook).encode("utf-8")
    "".join(merged.flags).encode("utf-8")
    assert answered(merged) == ANSWER + "  # ?"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["nbgrader", "grade_id", "tags", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
CELL = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading"]) | JSON,
        "source": st.text(max_size=9) | st.lists(st.text(max_size=5), max_size=3) | JSON,
        "metadata": st.fixed_dictionaries(
            {"nbgrader": st.fixed_dictionaries({"grade_id": st.sampled_from(["ch99-double-answer", "ch99-double", "x"])})}
        )
        | JSON,
        "id": st.text(max_size=5) | JSON,
        "outputs": JSON,
    },
)
NOTEBOOK = st.fixed_dictionaries(
    {}, optional={"cells": st.lists(CELL | JSON, max_size=6) | JSON, "nbformat": JSON, "metadata": JSON, "worksheets": JSON}
)


@given(NOTEBOOK)
def test_whatever_json_holds_is_read_and_merged(toy, tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "garbage.ipynb"
    path.write_text(json.dumps(content))
    notebook, why = read_submission(path)
    assert (notebook is None) == (why is not None)
    merged = merge(toy, notebook)
    locked_are_the_sources(toy, merged)
    nbformat.writes(merged.notebook).encode("utf-8")
