"""From a test cell that ran to its points, by one of two policies.

`fair`, the default, fails closed: an error is zero, a cell that did not run is zero, a test that ends in
`….score()` and says no number is zero. A warning on stderr costs nothing, and what a test ends in is read as
the number that it is: `np.float64(0.25)` and `tensor(0.25)` are 0.25. `compat` is nbgrader's own rule to the letter.
"""

import ast
import math
import re

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution

from autograder.authoring.chapters import grade_id

NUMBER = re.compile(
    r"(?:(?:\w+\.)*\w+\(\[*)?"  # np.float64( array([ tensor(
    r"(?P<number>[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf))"
    r"(?:\]*(?:, ?\w+=[^()]*)?\))?"  # , dtype=float32)
)
SAYS_A_SCORE = re.compile(r"\.score\(\)\s*$")


def points(cell: NotebookNode, policy: str = "fair") -> float | None:
    """The points of any graded cell that ran; None waits for a teacher."""
    if policy == "compat":
        try:
            return determine_grade(cell)[0]
        except ValueError:  # nbgrader stops at more than the maximum and records no score
            return None
    if is_solution(cell) or cell.cell_type != "code":
        # A written answer that was not touched is zero; any other waits for the teacher.
        return 0.0 if is_solution(cell) and cell.metadata.nbgrader.get("checksum") == compute_checksum(cell) else None
    return score(cell)


def score(cell: NotebookNode) -> float:
    """The points of a machine-graded test cell, policy `fair`.

    Of several results the last counts, which is the test's own. A test that ran to its end without a result
    (plain asserts), or whose result is no number, passed; so did one that ends in True, and False is zero.
    """
    most = float(cell.metadata.nbgrader.points)
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    if cell.execution_count is None or any(output.output_type == "error" for output in cell.outputs):
        return 0.0
    text = str(results[-1].get("data", {}).get("text/plain", "")).strip() if results else ""
    if number := NUMBER.fullmatch(text):
        earned = float(number["number"])
        return min(max(earned, 0.0), most) if math.isfinite(earned) else 0.0
    return 0.0 if SAYS_A_SCORE.search(cell.source) or text == "False" else most


def shown_scores(notebook: NotebookNode) -> list[str]:
    """A sentence for each test cell that prints or displays its score last: nbgrader gives it full points, whatever it shows."""
    told = []
    for cell in notebook.cells:
        if cell.cell_type != "code" or not is_grade(cell) or is_solution(cell):
            continue
        try:
            last = ast.parse(TransformerManager().transform_cell(cell.source)).body[-1:]
        except SyntaxError:
            continue
        match last:
            case [ast.Expr(ast.Call(ast.Name("print" | "display" as how), [ast.Name(what)]))]:
                told.append(f"{grade_id(cell)}: the test ends in {how}({what}), which gives full points; end it in {what}")
    return told
