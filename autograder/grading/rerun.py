"""The second run: a submission that hit a limit and lost points is run once more, with no other beside it.

What the first run says may be the work of a busy machine, so it is not recorded. The second one decides.
"""

from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.scoring import score


def hit(notebook: NotebookNode) -> list[str]:
    """The limits that a notebook hit when it ran, if it lost points: one sentence each."""
    if not (limits := notebook.get("metadata", {}).get("hit")):
        return []
    tests = (cell for cell in notebook.cells if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell))
    lost = any(score(cell) < float(cell.metadata.nbgrader.points) for cell in tests)
    return list(limits) if lost else []


def sentence(first: list[str], second: list[str]) -> str:
    """What a teacher is told.

    Args:
        first, second: the limits that were hit in each run.
    """
    end = "it hit a limit again" if second else "it kept within all limits"
    return f"a limit was hit ({'; '.join(first)}), so it was run once more, alone: {end}"
