"""Steps of nbgrader's way from a source to what students get; `nbgrader_config.py` names them."""

import re

from nbformat import NotebookNode
from nbgrader import preprocessors
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

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
