"""From a test cell that ran to its points."""

import math

from nbformat import NotebookNode


def score(cell: NotebookNode) -> float:
    """The points of a machine-graded test cell that ran, fail closed.

    nbgrader's rule where a score was given: an error is zero, else the result is the score; of
    several results the last, which is the test's own. Where nbgrader gives full points by default (no result, not a number, nan, negative), zero.
    """
    points = float(cell.metadata.nbgrader.points)
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    if not results or any(output.output_type == "error" for output in cell.outputs):
        return 0.0
    try:
        earned = float(results[-1].data.get("text/plain", ""))
    except (TypeError, ValueError):
        return 0.0
    return min(earned, points) if math.isfinite(earned) and earned >= 0 else 0.0
