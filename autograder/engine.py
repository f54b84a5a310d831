"""Runs a merged notebook in a process of its own, forked from a warm template.

The template imports torch and matplotlib once and computes nothing; each submission gets a fork of
it, a temporary folder, a time limit a cell and one for all. What the child sends back is JSON, a
cell at a time, so that what ran before a crash is not lost.
"""

import builtins
import contextlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode, from_dict, v4
from nbgrader.utils import is_grade, is_solution

from autograder.chapters import Chapter, tags


@dataclass(frozen=True)
class Limits:
    """Seconds of wall time."""

    cell: float = 30.0
    notebook: float = 300.0


class CellTimeout(BaseException):
    """Raised inside a cell that took too long; not an Exception, so that no answer swallows it."""

    def _render_traceback_(self):
        return [f"The cell took longer than its limit of {self.args[0]:g} s and was stopped."]


def template():
    """The forkserver whose processes are forked with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["autograder.warm"])
    return context


def run_notebook(
    notebook: NotebookNode, chapter: Chapter, seed: int, limits: Limits = Limits(), files: Path | None = None
) -> list[str]:
    """Run the code cells of a merged notebook and fill in their outputs.

    Args:
        notebook: as `merge` makes it; changed in place.
        chapter: whose `answers.py` name the misconceptions.
        seed: the seed of the hidden inputs.
        limits: of time.
        files: a folder whose files the cells may read; it is copied.

    Returns:
        What was hit or broke, one sentence each.
    """
    context = template()
    receive, send = context.Pipe(duplex=False)
    cells = [(i, cell.source, imports(chapter, cell)) for i, cell in enumerate(notebook.cells) if _runs(cell)]
    flags, done, place = [], set(), tempfile.mkdtemp(prefix="autograder-")
    try:
        if files is not None:
            shutil.copytree(files, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.ipynb", ".*"), symlinks=True)
        process = context.Process(
            target=_child, args=(send, json.dumps(cells), str(chapter.answers), seed, limits.cell, place), daemon=True
        )
        process.start()
        send.close()
        end = time.monotonic() + limits.notebook
        while len(done) < len(cells):
            if not receive.poll(max(0.0, min(end - time.monotonic(), limits.cell + 5))):
                flags.append(
                    f"stopped after {limits.notebook:g} s"
                    if time.monotonic() >= end
                    else f"a cell did not stop at its limit of {limits.cell:g} s"
                )
                break
            try:
                index, outputs = json.loads(receive.recv_bytes())
            except (EOFError, OSError, ValueError):
                flags.append("the student's process ended in the middle of the notebook")
                break
            notebook.cells[index].outputs = [from_dict(output) for output in outputs]
            notebook.cells[index].execution_count = len(done) + 1
            done.add(index)
            if any(o.get("ename") == "CellTimeout" for o in outputs):
                flags.append(f"cell {index} took longer than {limits.cell:g} s")
    finally:
        with contextlib.suppress(Exception):
            os.killpg(process.pid, signal.SIGKILL)  # what it started, too
        with contextlib.suppress(Exception):
            process.kill()
            process.join()
        receive.close()
        shutil.rmtree(place, ignore_errors=True)
    for index, *_ in cells:
        if index not in done:
            text = f"This cell did not run: {flags[-1]}."
            notebook.cells[index].outputs = [v4.new_output("error", ename="NotRun", evalue=text, traceback=[text])]
    return flags


def imports(chapter: Chapter, cell: NotebookNode) -> str:
    """What is imported again before a test cell: a student may have used such a name for something else."""
    if not is_grade(cell) or is_solution(cell):
        return ""
    return "\n".join(line for name, line in chapter.imported.items() if re.search(rf"\b{name}\b", cell.source))


def _no_input(prompt=""):
    raise RuntimeError("input() has nobody to answer it while your notebook is graded: write the value into the code.")


def _runs(cell: NotebookNode) -> bool:
    # Experiments and widgets are the source's own, and no test may need them.
    return cell.cell_type == "code" and not {"slow", "widget"} & set(tags(cell))


def _child(send, cells: str, answers: str, seed: int, cell_seconds: float, place: str) -> None:
    os.setsid()
    os.chdir(place)
    builtins.input = _no_input
    from autograder.answers import explainer, load
    from autograder.shell import make_shell
    from course import checks

    os.environ[checks.SEED_VARIABLE] = str(seed)
    shell = make_shell("module://matplotlib_inline.backend_inline")
    checks.explain = explainer(load(Path(answers)) if Path(answers).exists() else [], shell.user_ns)

    def too_long(*_):
        raise CellTimeout(cell_seconds)

    signal.signal(signal.SIGALRM, too_long)
    for index, source, needed in json.loads(cells):
        try:
            exec(needed, shell.user_ns)
            signal.setitimer(signal.ITIMER_REAL, cell_seconds)
            outputs = shell.run(source)
            sent = json.dumps([index, outputs], default=str, skipkeys=True, ensure_ascii=False)
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
            sent = json.dumps([index, [v4.new_output("error", ename=type(error).__name__, evalue=text, traceback=[text])]])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        send.send_bytes(sent.encode("utf-8", "replace"))
    os._exit(0)
