"""From a test cell that ran to its points."""

import math

from nbformat import NotebookNode


def score(cell: NotebookNode) -> float:
    """The points of a machine-graded test cell that ran, fail closed.

    nbgrader's rule where a score was given: an error is zero, else the first result is the score.
    Where nbgrader gives full points by default (no result, not a number, nan, negative), zero.
    """
    points = float(cell.metadata.nbgrader.points)
    for output in cell.outputs:
        if output.output_type == "error":
            return 0.0
        if output.output_type == "execute_result":
            try:
                earned = float(output.data.get("text/plain", ""))
            except (TypeError, ValueError):
                return 0.0
            return min(earned, points) if math.isfinite(earned) and earned >= 0 else 0.0
    return 0.0
