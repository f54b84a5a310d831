"""The notebook that is graded: locked cells from the source, answers and own cells from the student."""

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum, is_grade, is_solution

from autograder.chapters import Chapter, grade_id
from autograder.preprocessors import ClearSolutions

LARGEST = 20_000_000  # bytes of a submitted notebook


@dataclass
class Merged:
    """A notebook ready to run, and what had to be repaired on the way."""

    notebook: NotebookNode
    flags: list[str] = field(default_factory=list)


def read_submission(path: Path) -> tuple[NotebookNode | None, str | None]:
    """A submitted notebook, or None and one sentence that says why it cannot be read."""
    try:
        if path.is_symlink() or not path.is_file():
            return None, f"{path.name} is not a file"
        if path.stat().st_size > LARGEST:
            return None, f"{path.name} is larger than {LARGEST // 1_000_000} MB"
        raw = path.read_bytes()
        if not raw.strip():
            return None, f"{path.name} is empty"
        notebook = nbformat.from_dict(json.loads(raw))
        if "worksheets" in notebook and "cells" not in notebook:
            notebook = nbformat.convert(notebook, 4)
        cells = notebook.get("cells")
        if not isinstance(cells, list):
            return None, f"{path.name} has no cells"
        notebook.cells = [tidied for cell in cells if (tidied := _cell(cell)) is not None]
        return notebook, None
    except Exception as error:  # whatever a file may hold
        return None, f"{path.name} is not a notebook ({type(error).__name__})"


def _cell(cell) -> NotebookNode | None:
    """The parts of a cell that count, whatever else it holds; None if it is no cell."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    source = cell.get("source", "")
    source = "".join(map(str, source)) if isinstance(source, list) else source if isinstance(source, str) else ""
    metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
    given = metadata.get("nbgrader") if isinstance(metadata.get("nbgrader"), dict) else {}
    name = given.get("grade_id")
    return NotebookNode(
        cell_type=cell["cell_type"],
        id=str(cell.get("id", "")),
        source=_clean(source),
        metadata=NotebookNode(nbgrader=NotebookNode(grade_id=_clean(name))) if isinstance(name, str) else NotebookNode(),
    )


def _clean(text: str) -> str:
    """Without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def merge(chapter: Chapter, submission: NotebookNode | None) -> Merged:
    """Put the student's answers and own cells among the cells of the source.

    Answers are found by nbgrader id, else by cell id. Cells that share an answer's id (a cell split
    in JupyterLab) are joined in their order, but for copies and untouched ones. Everything that is not an answer comes from the source;
    own cells keep their place after the source cell that they followed. `submission=None` gives the
    notebook of somebody who handed in nothing.
    """
    source = [copy.deepcopy(cell) for cell in chapter.notebook.cells]
    by_name = {grade_id(cell): i for i, cell in enumerate(source) if grade_id(cell)}
    by_id = {cell.get("id"): i for i, cell in enumerate(source)}
    answers: dict[int, list[NotebookNode]] = {}
    own: dict[int, list[NotebookNode]] = {}
    flags, place, seen = [], -1, set()
    for cell in submission.cells if submission is not None else []:
        index = by_name.get(grade_id(cell), by_id.get(cell.get("id") or None))
        if index is None:
            if grade_id(cell):
                flags.append(f"unknown nbgrader id {grade_id(cell)!r}: treated as the student's own cell")
            own.setdefault(place, []).append(cell)
            continue
        place = max(place, index)
        if is_solution(source[index]):
            answers.setdefault(index, []).append(cell)
            if cell.cell_type != source[index].cell_type:
                flags.append(f"{grade_id(source[index])}: the cell's type was changed")
        elif index in seen and is_grade(source[index]):
            flags.append(f"{grade_id(source[index])}: a second copy of the test cell was left out")
        seen.add(index)
    cells = [_own(cell) for cell in own.get(-1, [])]
    for i, cell in enumerate(source):
        if is_solution(cell):
            blank = ClearSolutions().preprocess_cell(copy.deepcopy(cell), {"language": "python"}, i)[0]
            cell.metadata.nbgrader.checksum = compute_checksum(blank)
            written = _written(answers.get(i, []), blank)
            cell.source = "\n\n".join(written)
            if len(written) > 1:
                flags.append(f"{grade_id(cell)}: {len(written)} cells were joined")
            if submission is not None and i not in answers:
                flags.append(f"{grade_id(cell)}: the answer cell is missing")
        elif is_grade(cell):
            cell.metadata.nbgrader.checksum = compute_checksum(cell)
            if submission is not None and i not in seen:
                flags.append(f"{grade_id(cell)}: the test cell was missing and has been put back")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cells.append(cell)
        cells += [_own(cell) for cell in own.get(i, [])]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(chapter.notebook.metadata))
    return Merged(notebook, flags)


def _written(cells: list[NotebookNode], blank: NotebookNode) -> list[str]:
    """The texts of an answer, each once; what was left as it was released only if there is nothing else."""
    same_type = [cell for cell in cells if cell.cell_type == blank.cell_type] or cells
    texts = list(dict.fromkeys(cell.source for cell in same_type))
    return [text for text in texts if text.strip() != blank.source.strip()] or texts[:1] or [blank.source]


def _own(cell: NotebookNode) -> NotebookNode:
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell, "raw": nbformat.v4.new_raw_cell}[
        cell.cell_type
    ]
    return make(cell.source, metadata={"tags": ["own"]})
