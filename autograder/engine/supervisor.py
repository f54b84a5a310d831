"""Runs a merged notebook: the student's cells in a process of theirs, the source's tests in another.

This process, the supervisor, gives both sides their sockets, keeps the time and ends what must end. It
runs no student code and unpickles nothing. The tests' side is forked from a template that is kept
warm (autograder/trusted/runner.py), the student's side from another (autograder/engine/student.py).
"""

import atexit
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path

from nbformat import NotebookNode, from_dict, v4
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.chapters import Chapter, grade_id, tags
from autograder.engine.paths import shortened
from autograder.engine.student import NotStarted, Student, Template
from autograder.errors import CourseError, SandboxError
from autograder.limits import Limits
from autograder.wire import frames

__all__ = ["Limits", "run_notebook"]

GRACE = 15.0  # seconds that the tests' side has beyond the limits before it is ended
RESTARTS = 3  # of the tests' side in one notebook
START_LIMIT = 120.0  # seconds of the tests' template


def run_notebook(
    notebook: NotebookNode,
    chapter: Chapter,
    seed: int,
    limits: Limits = Limits(),
    files: Path | None = None,
    sandbox: str = "full",
) -> list[str]:
    """Run the code cells of a merged notebook and fill in their outputs.

    Args:
        notebook: as `merge` makes it; changed in place. Its metadata get the seconds of each stage, and the
            sentences of the limits that were hit.
        chapter: whose source has the tests and whose `answers.py` name the misconceptions.
        seed: the seed of the hidden inputs.
        limits: of what the student's side may use.
        files: a folder whose files the student's cells may read; they are copied.
        sandbox: "full", or "none" for no more than a process of their own.

    Returns:
        What was hit or broke, one sentence each.

    Raises:
        SandboxError: if this machine does not allow the sandbox.
        CourseError: if a template cannot be started.
        ProcessGone, NotStarted: if a process of this run cannot; others may have more luck.
    """
    run = _Run(notebook, chapter, seed, limits, files, sandbox)
    try:
        run.all()
    finally:
        run.close()
    return run.flags


class _Run:
    def __init__(self, notebook, chapter, seed, limits, files, sandbox):
        self.notebook, self.chapter, self.seed, self.limits, self.files = notebook, chapter, seed, limits, files
        self.template, self.confined = student_template(sandbox), sandbox == "full"
        self.student: Student | None = None
        self.tests: _Tests | None = None
        self.flags: list[str] = []
        self.hit: list[str] = []  # of the flags, those that say of a limit
        self.done: set[int] = set()
        self.cells = [
            {"index": i, "source": cell.source, "kind": _kind(cell), "name": grade_id(cell), "tags": list(tags(cell))}
            for i, cell in enumerate(notebook.cells)
            if cell.cell_type == "code"
        ]
        self.count = 0

    def all(self) -> None:
        start = time.monotonic()
        self.end = start + self.limits.patience * self.limits.notebook
        seconds = {}
        for cell in self.cells:
            self.notebook.cells[cell["index"]].update(outputs=[], execution_count=None)
        for _ in range(1 + RESTARTS):
            seconds = self._attempt()
            if seconds is not None:
                break
        seconds = (seconds or {}) | {"total": time.monotonic() - start}
        self.notebook.metadata.seconds = NotebookNode({name: round(x, 3) for name, x in seconds.items()})
        self.notebook.metadata.hit = self.hit
        why = self.flags[-1] if self.flags else "the notebook was not run"
        for cell in self.cells:
            if cell["index"] not in self.done and cell["kind"] == "test":
                text = f"This cell did not run: {why}."
                self.notebook.cells[cell["index"]].outputs = [
                    v4.new_output("error", ename="NotRun", evalue=text, traceback=[text])
                ]

    def _attempt(self) -> dict | None:
        """Let the tests' side run what has not run yet; None if it had to be ended before."""
        request = {
            "cells": self.cells,
            "done": sorted(self.done),
            "seed": self.seed,
            "limits": asdict(self.limits),
            "left": self.end - time.monotonic(),
            "confined": self.confined,
        }
        try:
            self.tests = tests_template(self.chapter).fork(request)
        except ProcessGone:  # killed from outside: begin anew, once
            self.tests = tests_template(self.chapter).fork(request)
        except frames.WireError as error:
            self.flags.append(str(error))
            return {}
        current, until = None, self.end + GRACE

        def test_end() -> float:
            return min(self.end, time.monotonic() + self.limits.patience * self.limits.cell) + GRACE

        try:
            while True:
                frame, bulk = frames.receive(self.tests.control, until)
                match frame:
                    case ["start"]:
                        self._end_student()
                        self.student = self._student()
                        until = test_end() if current is not None else until  # what ran before runs again
                        socket.send_fds(self.tests.control, [b"s"], [self.student.socket.fileno()])
                        self.student.socket.close()
                    case ["unconfined", part, why]:
                        raise SandboxError(part, why)
                    case ["kill"]:
                        how = self.student and self.student.how_it_ended(0.2)
                        self._end_student()
                        frames.send(self.tests.control, how or "", [], until)
                    case ["cpu"]:
                        frames.send(self.tests.control, self.student and self.student.processor_time(), [], until)
                    case ["test", current]:
                        until = test_end()
                    case ["cell", index, size]:
                        self._outputs(index, json.loads(bytes(bulk[:size])))
                        current, until = None, self.end + GRACE
                    case ["end", flags, hit, seconds]:
                        self.flags += flags
                        self.hit += hit
                        return dict(seconds)
        except frames.Late:
            self.flags.append(
                "the tests of a cell did not end and were stopped" if current is not None else "the notebook took too long"
            )
            self.hit.append(self.flags[-1])
        except frames.Closed:
            self.flags.append("the process of the tests ended")
        finally:
            self._end_student()
            self.tests.end()
        if current is None:
            return {}
        text = f"The tests did not run to their end: {self.flags[-1]}."
        self._outputs(current, [v4.new_output("error", ename="Stopped", evalue=text, traceback=[text])])
        return None if time.monotonic() < self.end else {}

    def _student(self) -> Student:
        try:
            return self.template.fork(self.limits, self.files)
        except NotStarted as error:
            if self.files is None:
                raise
            self.files = None
            self.flags.append(f"the files beside the notebook could not be copied ({error}) and were left out")
            return self.template.fork(self.limits)

    def _outputs(self, index: int, outputs: list) -> None:
        if index in self.done:
            return
        self.count += 1
        self.done.add(index)
        cell = self.notebook.cells[index]
        cell.outputs = shortened([from_dict(output) for output in outputs], self.chapter.root)
        cell.execution_count = self.count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = self.count

    def _end_student(self) -> None:
        if self.student is not None:
            self.student.kill()
            self.student = None

    def close(self) -> None:
        self._end_student()
        if self.tests is not None:
            self.tests.end()


def _kind(cell: NotebookNode) -> str:
    if is_solution(cell) or "own" in tags(cell):
        return "student"
    return "test" if is_grade(cell) else "source"


# ---------------------------------------------------------------- templates


def student_template(sandbox: str) -> Template:
    """The warm process from which those that run student code are forked."""
    with _making:
        return _student_template(sandbox)


@cache
def _student_template(sandbox: str) -> Template:
    template = Template(sandbox)
    atexit.register(template.close)
    return template


class ProcessGone(Exception):
    """A process of the tests' side ended, or does not answer."""


class _Tests:
    """A process of the tests' side."""

    def __init__(self, control: socket.socket, pid: int):
        self.control, self.pid = control, pid
        self.over = False

    def end(self) -> None:
        """Kill it, if it is still there. A second time does nothing."""
        if self.over:
            return
        self.over = True
        self.control.settimeout(0)
        with contextlib.suppress(OSError):
            while self.control.recv(1 << 16):
                pass
            self.control.close()  # it closed its side: it has ended
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.control.close()

    def fork(self, request: dict) -> "_Tests":
        """A process forked from this one, which is a template.

        Raises:
            ProcessGone: if this one ended or does not answer; a new one is made for the next that asks.
            WireError: if the request is too large.
        """
        data = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
        if len(data) > frames.BULK_LIMIT:
            raise frames.WireError(f"its cells take more than {frames.BULK_LIMIT >> 20} MB")
        with _lock:
            ours, theirs = socket.socketpair()
            try:
                socket.send_fds(self.control, [b"f"], [theirs.fileno()])
                frames.send(self.control, len(data), [data])
                pid, _ = frames.receive(self.control, time.monotonic() + START_LIMIT)
            except (frames.Closed, frames.Late, OSError) as error:
                ours.close()
                _chapters.clear()
                tests_base.cache_clear()
                raise ProcessGone("the process of the tests cannot be started") from error
            finally:
                theirs.close()
        return _Tests(ours, pid)

    def ready(self) -> "_Tests":
        """This one, a template, once it has loaded what it is made of.

        Raises:
            ProcessGone: if it cannot.
        """
        try:
            frames.receive(self.control, time.monotonic() + START_LIMIT)
        except (frames.Closed, frames.Late) as error:
            self.end()
            raise ProcessGone("the process of the tests cannot be started") from error
        return self


_lock = threading.Lock()
_chapters: dict[str, _Tests] = {}


@cache
def tests_base() -> _Tests:
    """The warm process of the tests' side, which knows no chapter."""
    ours, theirs = socket.socketpair()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.trusted.runner", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    atexit.register(process.kill)
    return _Tests(ours, process.pid)


def tests_template(chapter: Chapter) -> _Tests:
    """The warm process from which those that test a chapter are forked; a new one when the source has changed."""
    cells = [
        {
            "source": cell.source,
            "kind": "answer" if is_solution(cell) else "test" if is_grade(cell) else "source",
            "name": grade_id(cell),
            "allowed": list(cell.metadata.get("course_allowed", ())),
        }
        for cell in chapter.notebook.cells
        if cell.cell_type == "code"
    ]
    answers = chapter.answers.absolute() if chapter.answers.is_file() else None  # it is read from another working folder
    request = {"cells": cells, "answers": answers and str(answers), "folder": str(chapter.path.parent.absolute())}
    key = hashlib.sha256(json.dumps([request, answers and answers.read_text()]).encode()).hexdigest()
    with _making:
        if key not in _chapters:
            try:
                try:
                    made = tests_base().fork(request)
                except ProcessGone:  # killed from outside: begin anew, once
                    made = tests_base().fork(request)
                _chapters[key] = made.ready()
            except ProcessGone as error:
                raise CourseError(
                    f"the process of the tests cannot be started; is {chapter.answers.name} of {chapter.stem} in order?"
                ) from error
        return _chapters[key]


_making = threading.Lock()
