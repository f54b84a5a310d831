"""Executes a source notebook, stores its outputs, and tidies what would differ from run to run."""

import os
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from autograder.authoring.chapters import Chapter, grade_id, nbgrader_id
from autograder.errors import CourseError

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


def run_chapter(chapter: Chapter, timeout: int = 120) -> float:
    """Run the notebook in a fresh kernel and write it back with its outputs.

    Returns:
        The seconds that the cells took, the kernel's start included.

    Raises:
        CourseError: if a cell fails that is not tagged `raises-exception`; nothing is written then.
    """
    notebook = nbformat.read(chapter.path, as_version=4)
    client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", store_widget_state=False)
    client.resources["metadata"] = {"path": str(chapter.path.parent)}
    start = time.perf_counter()
    try:
        client.execute(env=os.environ | {"OMP_NUM_THREADS": "1"})
    except CellExecutionError as error:
        raise CourseError(f"{chapter.stem}: {error}") from None
    seconds = time.perf_counter() - start
    tidy(notebook)
    nbformat.write(notebook, chapter.path)
    return seconds


def tidy(notebook: NotebookNode) -> None:
    """Drop what says when and where the notebook ran."""
    notebook.metadata = NotebookNode(kernelspec=NotebookNode(KERNELSPEC), language_info=NotebookNode(name="python"))
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for cell in notebook.cells:
        for key in ("execution", "collapsed", "scrolled", "jupyter", "ExecuteTime"):
            cell.metadata.pop(key, None)
        if grade_id(cell):  # nbgrader allows no dots
            cell.metadata.nbgrader.grade_id = nbgrader_id(grade_id(cell))
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = joined(cell.outputs)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
            if output.output_type == "error":  # frames name the paths of this machine
                output.traceback = [f"{output.ename}: {output.evalue}"]
            if "data" in output:
                output.data.pop(WIDGET_VIEW, None)


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs whose neighbouring pieces of one stream are one: how a kernel cuts a stream is chance."""
    whole = []
    for output in outputs:
        if whole and output.output_type == "stream" and whole[-1].output_type == "stream" and whole[-1].name == output.name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole
