"""Steps of nbgrader's way from a notebook that ran to scores and pages; `nbgrader_config.py` names them."""

from nbformat import NotebookNode, v4
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.scoring import score
from autograder.grading.outputs import inert


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
