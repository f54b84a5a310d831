"""The notebook that is graded: locked cells from the source, answers and own cells from the student."""

import copy
import json
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum, is_grade, is_solution

from autograder.authoring.chapters import Chapter, bound_names, grade_id
from autograder.authoring.release import Release
from autograder.grading.pruned import Damaged, TooLarge, pruned

LARGEST = 50_000_000  # bytes of a submitted notebook without its outputs
LARGEST_FILE = 1_000_000_000  # with them
CELLS = 1000  # of a submitted notebook
FLAGS = 50
LONGEST = 100_000  # characters of a cell whose syntax tree is made: a tree takes a thousand times the memory
PICTURES = ("image/png", "image/jpeg", "image/gif")


@dataclass
class Merged:
    """A notebook ready to run, and what had to be repaired on the way."""

    notebook: NotebookNode
    flags: list[str] = field(default_factory=list)


def shown(text: object) -> str:
    """A name that a student chose, fit for one line of a sentence."""
    clean = str(text).encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else "?" for c in clean)[:80]


def read_submission(path: Path) -> tuple[NotebookNode | None, str | None]:
    """A submitted notebook without its outputs, and one sentence if something else was left out.

    None and one sentence that says why, if it cannot be read.
    """
    name = shown(path.name)
    try:
        kind = path.lstat().st_mode
        for is_kind, what in KINDS:
            if is_kind(kind):
                return None, f"{name} is {what}, not a notebook file"
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_FILE or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None, f"{name} is larger than {LARGEST_FILE // 1_000_000} MB"
            if not file.read(1 << 16).strip(b"\0 \t\r\n"):
                return None, f"{name} is empty"
            file.seek(0)
            raw, left_out = pruned(file.read, LARGEST, CELLS + 1)  # one cell more than `merge` takes, so that it tells
    except OSError as error:
        return None, f"{name} cannot be read ({error.strerror or error})"
    except TooLarge:
        return None, f"{name} is larger than {LARGEST // 1_000_000} MB without its outputs"
    except Damaged as error:
        return None, f"{name} is not a notebook ({error})"
    except Exception as error:  # whatever a file may hold
        return None, f"{name} is not a notebook ({type(error).__name__})"
    try:
        parsed = _parsed(raw)
        notebook = nbformat.from_dict(parsed)
        if "worksheets" in notebook and "cells" not in notebook:
            notebook = nbformat.convert(notebook, 4)
        cells = notebook.get("cells")
        if not isinstance(cells, list):
            return None, f"{name} has no cells"
        notebook.cells = [tidied for cell in cells if (tidied := _cell(cell)) is not None]
        return notebook, f"left out of {name}: {', '.join(left_out)}" if left_out else None
    except Exception as error:  # whatever a file may hold
        return None, f"{name} is not a notebook ({type(error).__name__})"


KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISBLK(mode) or stat.S_ISCHR(mode), "a device"),
)


def _parsed(raw: bytes):
    try:
        return json.loads(raw)  # finds UTF-8, -16 and -32 by itself
    except UnicodeDecodeError:
        return json.loads(raw.decode("cp1252", "replace"))


def _cell(cell) -> NotebookNode | None:
    """The parts of a cell that count, whatever else it holds; None if it is no cell."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        return None
    source = cell.get("source", "")
    source = "".join(map(str, source)) if isinstance(source, list) else source if isinstance(source, str) else ""
    metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
    given = metadata.get("nbgrader") if isinstance(metadata.get("nbgrader"), dict) else {}
    name = given.get("grade_id")
    tidied = NotebookNode(
        cell_type=cell["cell_type"],
        id=str(cell.get("id", "")),
        source=_clean(source),
        metadata=NotebookNode(nbgrader=NotebookNode(grade_id=_clean(name))) if isinstance(name, str) else NotebookNode(),
    )
    if pictures := _pictures(cell.get("attachments")):
        tidied.attachments = pictures
    return tidied


def _pictures(attachments) -> NotebookNode:
    """The pictures that were pasted into a text cell."""
    found = NotebookNode()
    for name, data in attachments.items() if isinstance(attachments, dict) else ():
        kept = {kind: data[kind] for kind in PICTURES if isinstance(data, dict) and isinstance(data.get(kind), str)}
        if kept:
            found[_clean(name)] = NotebookNode({kind: _clean(text) for kind, text in kept.items()})
    return found


def _clean(text: str) -> str:
    """Without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def overlap(chapter: Chapter, submission: NotebookNode | None) -> int:
    """How many cells of a submitted notebook are the chapter's, by nbgrader id, cell id or text."""
    cells = submission.cells if submission is not None else []
    known = {key for cell in chapter.notebook.cells for key in (grade_id(cell), cell.get("id"), cell.source) if key}
    return sum(bool({grade_id(cell), cell.get("id"), cell.source} & known) for cell in cells)


def merge(chapter: Chapter, submission: NotebookNode | None, release: Release | None = None) -> Merged:
    """Put the student's answers and own cells among the cells of the source.

    Cells are found by nbgrader id, else by cell id, else by the text that was released, else, for an answer,
    by standing where the answer stood (code: and binding a name that it is to bind). Cells that share an
    answer's id (a cell split in JupyterLab) are joined in their order, but for copies and untouched ones.
    Everything that is not an answer comes from the source; own cells keep their place after the source cell
    that they followed, without points or name. An answer cell that is missing is left empty, so that what
    the student wrote elsewhere holds. `submission=None` gives the notebook of somebody who handed in nothing.

    Args:
        release: of the chapter, where the caller has it already.
    """
    source = [nbformat.from_dict(cell) for cell in chapter.notebook.cells]
    blanks = (release or Release.of(chapter)).released.cells
    answers: dict[int, list[NotebookNode]] = {}
    own: dict[int, list[NotebookNode]] = {}
    flags, place, seen = [], -1, set()
    theirs = submission.cells[:CELLS] if submission else []
    if submission and len(submission.cells) > CELLS:
        flags.append(f"only the first {CELLS} cells were taken")
    for cell, index in zip(theirs, _found(theirs, source, blanks), strict=True):
        if index is None:
            if grade_id(cell):
                flags.append(f"unknown nbgrader id '{shown(grade_id(cell))}': treated as the student's own cell")
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
    if submission is not None:
        flags += _adopt(source, blanks, answers, own, seen)
    cells = [_own(cell) for cell in own.get(-1, [])]
    for i, (cell, blank) in enumerate(zip(source, blanks, strict=True)):
        if is_solution(cell):
            cell.metadata.nbgrader.checksum = compute_checksum(blank)
            written = _written(answers.get(i, []), blank)
            cell.source = "\n\n".join(written)
            for part in answers.get(i, []) if cell.cell_type == "markdown" else []:
                cell.setdefault("attachments", NotebookNode()).update(part.get("attachments", {}))
            if len(written) > 1:
                flags.append(f"{grade_id(cell)}: {len(written)} cells were joined")
            if submission is not None and i not in answers:
                flags.append(f"{grade_id(cell)}: the answer cell is missing")
                cell.source = "" if cell.cell_type == "code" else cell.source
        elif is_grade(cell):
            cell.metadata.nbgrader.checksum = compute_checksum(cell)
            if submission is not None and i not in seen:
                flags.append(f"{grade_id(cell)}: the test cell was missing and has been put back")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cells.append(cell)
        cells += [_own(cell) for cell in own.get(i, [])]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(chapter.notebook.metadata))
    return Merged(notebook, flags if len(flags) <= FLAGS else [*flags[:FLAGS], f"{len(flags) - FLAGS} more of this kind"])


def _found(cells: list[NotebookNode], source: list[NotebookNode], blanks: list[NotebookNode]) -> list[int | None]:
    """For each cell of the submission the source cell that it is, or None."""
    by_name = {grade_id(cell): i for i, cell in enumerate(source) if grade_id(cell)}
    by_id = {cell.id: i for i, cell in enumerate(source) if cell.get("id")}
    texts = Counter(cell.source.strip() for cell in blanks)
    by_text = {blank.source.strip(): i for i, blank in enumerate(blanks) if texts[blank.source.strip()] == 1}
    found = [by_name.get(grade_id(cell), by_id.get(cell.get("id") or None)) for cell in cells]
    for i, cell in enumerate(cells):
        if found[i] is None and cell.source.strip() and (index := by_text.get(cell.source.strip())) not in found:
            found[i] = index
    return found


def _adopt(source, blanks, answers: dict[int, list], own: dict[int, list], seen: set[int]) -> list[str]:
    """Take own cells that stand where a missing answer stood for that answer; changes `answers` and `own`."""
    flags = []
    for i, cell in enumerate(source):
        if not is_solution(cell) or i in answers:
            continue
        place = max((index for index in seen if index < i), default=-1)
        if cell.cell_type == "code":
            wanted = _names(cell.source)
            mine = [c for c in own.get(place, []) if c.cell_type == "code" and wanted & _names(c.source)]
        else:
            mine = [c for c in own.get(place, []) if c.cell_type == "markdown"]
        if mine:
            answers[i] = mine
            own[place] = [c for c in own[place] if not any(c is taken for taken in mine)]
            flags.append(f"{grade_id(cell)}: the answer cell had lost its name; what stood in its place was taken")
    return flags


def _names(source: str) -> set[str]:
    try:
        return set(bound_names(source)) if len(source) <= LONGEST else set()
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # whatever a student may have written
        return set()


def _written(cells: list[NotebookNode], blank: NotebookNode) -> list[str]:
    """The texts of an answer, each once; what was left as it was released only if there is nothing else."""
    same_type = [cell for cell in cells if cell.cell_type == blank.cell_type] or cells
    texts = list(dict.fromkeys(cell.source for cell in same_type))
    return [text for text in texts if text.strip() != blank.source.strip()] or texts[:1] or [blank.source]


def _own(cell: NotebookNode) -> NotebookNode:
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell, "raw": nbformat.v4.new_raw_cell}[
        cell.cell_type
    ]
    made = make(cell.source, metadata={"tags": ["own"]})
    if cell.cell_type == "markdown" and cell.get("attachments"):
        made.attachments = cell.attachments
    return made
