"""What plugs into nbgrader's own commands through `nbgrader_config.py`."""

import re

from nbformat import NotebookNode, v4
from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

from autograder.grading.outputs import inert
from autograder.authoring.scoring import score

STUB_AT_TOP = re.compile(r"^# YOUR CODE HERE\nraise NotImplementedError\(\)$", re.MULTILINE)


class ClearSolutions(preprocessors.ClearSolutions):
    """nbgrader's stub, but a value that has its name outside the marks is left to be replaced.

    ``weights = None`` followed by ``raise NotImplementedError()`` would be two stubs for one answer.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int):
        cell, resources = super().preprocess_cell(cell, resources, index)
        if cell.cell_type == "code":
            cell.source = STUB_AT_TOP.sub("# YOUR CODE HERE", cell.source)
        return cell, resources


class RunPastErrors(NbGraderPreprocessor):
    """In the student's notebook "Run All" goes on after an exercise that is not solved yet."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int):
        if cell.cell_type == "code" and (is_grade(cell) or is_solution(cell)):
            cell.metadata.tags = [*cell.metadata.get("tags", []), "raises-exception"]
        return cell, resources


class FailClosed(NbGraderPreprocessor):
    """A test cell that ran without saying a score gets no points.

    nbgrader gives full points to a cell without an output, and to a result that is no number, nan
    or negative; every test cell of this course ends in a score, so a missing one means that the
    cell did not run to its end. A right answer that warns on stderr, which nbgrader counts as an error, keeps its points.
    """

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int):
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            failed = any(output.output_type == "error" for output in cell.outputs)
            earned = score(cell)
            cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
            if earned > 0:
                for output in cell.outputs:
                    if output.output_type == "stream":
                        output.name = "stdout"
                cell.outputs.append(v4.new_output("execute_result", {"text/plain": repr(earned)}))
            elif not failed:
                text = "The test cell did not run to its end, so it gives no points."
                cell.outputs.append(v4.new_output("error", ename="NoScore", evalue=text, traceback=[text]))
        return cell, resources


class Inert(NbGraderPreprocessor):
    """Nothing that a student put into an output runs in the browser of the person who grades it."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, index: int):
        if cell.cell_type == "code":
            cell.outputs = inert(cell.outputs)
        return cell, resources


def written(notebook: NotebookNode) -> str:
    """All code that the student has seen or written: every cell but the tests."""
    return "\n".join(c.source for c in notebook.cells if c.cell_type == "code" and (is_solution(c) or not is_grade(c)))
