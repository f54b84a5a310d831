"""The tests' side: a warm process that has the tests, from which one is forked for each submission.

Started as a program by `autograder.engine.supervisor`. What comes out of a run goes back as frames without
anything executable. No student code is ever run or unpickled here.
"""

import contextlib
import gc
import importlib
import json
import os
import random
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from nbformat import NotebookNode

from autograder.authoring.answers import load
from autograder.authoring.chapters import bound_names, exercise_id
from autograder.authoring.misconceptions import compiled, explainer
from autograder.errors import SandboxError
from autograder.limits import Limits, limit_memory
from autograder.trusted import session
from autograder.trusted.confinement import confine_tests, tests_paths
from autograder.trusted.plan import Cell, read_source, student_side, tests_side, uses, without_prints
from autograder.trusted.session import Session
from autograder.wire import frames, peer
from autograder.wire import values as wire
from autograder.wire.shell import NotebookShell, new_output, warm_shell
from course import checks

WARM = (
    "course.device",
    "course.plots",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "sympy",
    "course.expressions",
    "sympy.tensor.tensor",  # what compares expressions imports it
    "torch.fx.experimental.symbolic_shapes",  # the first gradient imports it
)
SLACK = 4.0  # seconds after a limit in which the student's side ends by itself or is ended
QUIET = peer.__file__, session.__file__, wire.__file__
_exit = os._exit


def main() -> NoReturn:
    """Answer requests on the socket whose number is the program's argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in WARM:
        importlib.import_module(name)
    torch.set_num_threads(1)
    warm_shell("agg")
    gc.collect()
    gc.freeze()  # a collection in a child would write to every page that it shares with this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(frames.Closed):
        _template(control, None)
    _exit(0)


def _template(control: socket.socket, chapter: "Chapter | None") -> None:
    """Fork on request: a process for a chapter, which is a template too, or one that runs a submission."""
    if chapter is not None:
        frames.send(control, "ready", [])
    while True:
        data, descriptors, *_ = socket.recv_fds(control, 1, 1)
        if not data:
            raise frames.Closed
        length, data = frames.receive(control)
        request = json.loads(bytes(data[:length]))
        with contextlib.suppress(ChildProcessError):  # those that have ended; their processor time is counted as this process'
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        theirs = socket.socket(fileno=descriptors[0])
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                control.close()
                if chapter is None:
                    _template(theirs, Chapter(**request))
                else:
                    Run(theirs, chapter, request).run()
                code = 0
            except frames.Closed:
                code = 0
            finally:
                _exit(code)
        theirs.close()
        frames.send(control, pid, [])


class Chapter:
    """What all runs of a chapter share.

    Args:
        cells: source, kind ("source", "answer" or "test"), name and allowed names of the source's code cells.
        answers: the path of `answers.py`, or None.
        folder: the working folder of the tests.
    """

    def __init__(self, cells: list[dict], answers: str | None, folder: str):
        os.chdir(folder)
        self.answers = load(Path(answers)) if answers is not None else []
        right: dict[str, list[str]] = {}
        words: dict[str, set[str]] = {}
        for test in (cell for cell in cells if cell["kind"] == "test"):
            exercise, read = exercise_id(test["name"]), uses(test["source"]).reads
            asked = [name for c in cells if c["kind"] == "answer" for name in _bound(c["source"]) if name in read]
            for answer in self.answers:
                with contextlib.suppress(ValueError, SyntaxError):  # told by `autograder check`
                    if answer.exercise == exercise:
                        names = tuple(dict.fromkeys(asked))
                        source = answer.source(list(names))
                        if answer.right:
                            right.setdefault(test["name"], []).append(source)
                        else:
                            words.setdefault(test["name"], set()).update(uses(source).reads)
                            compiled(answer, names)  # kept for those that are forked
        self.told, self.words = read_source(cells, right), words
        for cell in (cell for cell in cells if cell["kind"] != "answer"):
            NotebookShell.instance().prepare(cell["source"] if cell["kind"] == "test" else without_prints(cell["source"]))
            for _, line, _ in uses(cell["source"]).imports:
                with contextlib.suppress(Exception):  # a cell that fails shows it when it runs
                    exec(line, {})
        if any("torch.optim" in cell["source"] for cell in cells):
            importlib.import_module("torch._dynamo")  # the first optimizer imports it, in a second and a half
        gc.collect()
        gc.freeze()


def _bound(source: str) -> list[str]:
    try:
        return bound_names(source)
    except SyntaxError:
        return []


class Run:
    """One submission: its cells in order, the student's there and the tests here."""

    def __init__(self, control: socket.socket, chapter: Chapter, job: dict):
        self.control, self.chapter, self.seed = control, chapter, job["seed"]
        self.cells = [Cell(**{**cell, "tags": tuple(cell["tags"])}) for cell in job["cells"]]
        self.done, self.limits, self.confined = set(job["done"]), Limits(**job["limits"]), job["confined"]
        self.session = Session(self, self.limits, chapter.told.classes)
        self.session.end = time.monotonic() + job["left"]
        self.until = 0.0, 0.0  # of this side: processor time, and on the clock
        self.busy = False  # while a signal must wait
        self.seconds = dict.fromkeys(("start", "cells", "tests"), 0.0)

    def run(self) -> None:
        """Run the cells; the outputs of tests and of the student's are sent as they come, those of others if they fail."""
        limit_memory(self.limits)  # a range of a student is small until a test makes a list of it
        shell = NotebookShell.instance()
        answers = self.chapter.told
        os.environ[checks.SEED_VARIABLE] = str(self.seed)
        explain = explainer(self.chapter.answers, shell.user_ns)
        checks.grader.set(explain=explain, invoke=self.session.called, refusing=self.session.refusing, quiet=QUIET)
        for seed in (random.seed, np.random.seed, torch.default_generator.manual_seed):
            seed(self.seed)
        for name in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(name, self._too_long)
        _limit_memory(self.limits.memory)
        if self.confined:
            try:
                confine_tests(tests_paths())
            except SandboxError as error:
                self.tell("unconfined", error.part, error.why)
                return
        there, here = student_side(self.cells), tests_side(self.cells, self.chapter.words)
        read = frozenset().union(*(cell.uses.reads for cell in self.cells if cell.index in here))
        student: set[str] = set()  # names that are the student's as of this cell
        for line in answers.imports:
            with contextlib.suppress(Exception):
                exec(line, shell.user_ns)
        for cell in self.cells:
            start = time.monotonic()
            if cell.kind == "test":
                if cell.index not in self.done:
                    self.tell("test", cell.index)
                    allowed = answers.allowed.get(cell.name, [])
                    self._tell_outputs(cell, self._test(shell, cell, student & (cell.uses.reads | read), allowed))
                self.seconds["tests"] += time.monotonic() - start
                continue
            if cell.kind == "student":
                self._tell_outputs(cell, self.session.run_cell(cell.source))
                student |= answers.binds.get(cell.name, frozenset())
            else:
                source, outputs = without_prints(cell.source), []
                if cell.index in there:
                    outputs += self.session.run_cell(source)
                if cell.index in here:
                    outputs += self._here(shell, source, student & cell.uses.reads)
                    student -= cell.uses.binds
                if "raises-exception" not in cell.tags:  # the rest is for readers, who have it in the source
                    self._tell_outputs(cell, [o for o in outputs if o.output_type == "error"])
            self.seconds["cells"] += time.monotonic() - start
        self.seconds["cells"] -= self.seconds["start"]
        self.seconds["cpu"] = time.process_time()
        self.tell("end", self.session.flags, self.session.hit, list(self.seconds.items()))

    def _test(self, shell: NotebookShell, cell: Cell, names: set[str], allowed: list[str]) -> list:
        """Run a test cell with the student's values of some names."""
        try:
            with self._limited():
                self._fetch(shell, names)
                with self.session.testing(lambda output: _record(shell, output), allowed):
                    shell.run(cell.source)
            return shell.outputs
        except checks.Stopped as error:
            return [*shell.outputs, _told("Stopped", f"The tests did not run to their end: {error}")]
        except Exception as error:
            return [*shell.outputs, _told(type(error).__name__, f"The tests did not run to their end: {error}")]

    def _here(self, shell: NotebookShell, source: str, names: set[str]) -> list:
        """Run a cell of the source on this side."""
        try:
            with self._limited():
                self._fetch(shell, names)
                shell.run(source)
        except (Exception, checks.Stopped) as error:
            return [*shell.outputs, _told(type(error).__name__, str(error))]
        return shell.outputs

    def _fetch(self, shell: NotebookShell, names: set[str]) -> None:
        shell.outputs = []
        for name in sorted(names):
            shell.user_ns.pop(name, None)
            try:
                shell.user_ns.update(self.session.value(name))
            except Exception as error:
                raise ValueError(f"`{name}` cannot be tested: {error}") from None

    # ------------------------------------------------------------ limits

    @contextlib.contextmanager
    def _limited(self):
        """The limit of a cell for what runs on this side; what asks the student's side has its own."""
        limits = self.limits.cell, self.limits.patience * self.limits.cell
        self.until = time.process_time() + limits[0], time.monotonic() + limits[1]
        for timer, limit in zip((signal.ITIMER_PROF, signal.ITIMER_REAL), limits, strict=True):
            signal.setitimer(timer, limit + SLACK, SLACK)
        try:
            yield
        finally:
            for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
                signal.setitimer(timer, 0)

    def _too_long(self, *_):
        if self.busy:
            return
        took, end = self.until[0], max(self.until[1], self.session.test_end or 0.0)
        if time.process_time() > took + SLACK / 2:
            why = f"The tests took longer than their limit of {self.limits.cell:g} s of processor time."
        elif time.monotonic() > end + SLACK / 2:
            why = f"The tests were not done after {self.limits.patience * self.limits.cell:g} s."
        else:
            return
        self.session.flag(why, limit=True)
        raise checks.Stopped(why)

    # ------------------------------------------------------------ the supervisor

    def start(self) -> socket.socket:
        """A new student's process; the socket of its side."""
        begin = time.monotonic()
        self.busy = True
        try:
            self.tell("start")
            data, descriptors, *_ = socket.recv_fds(self.control, 1, 1)
            if not data or not descriptors:
                raise frames.Closed
        finally:
            self.busy = False
            self.seconds["start"] += time.monotonic() - begin
        return socket.socket(fileno=descriptors[0])

    def end(self) -> str:
        """End the student's process; how it had ended."""
        self.busy = True
        try:
            self.tell("kill")
            told, _ = frames.receive(self.control)
        finally:
            self.busy = False
        return told

    def cpu(self) -> float | None:
        """Seconds of processor time that the student's processes have taken; None where that cannot be seen."""
        self.busy = True
        try:
            self.tell("cpu")
            told, _ = frames.receive(self.control)
        finally:
            self.busy = False
        return told

    def tell(self, *what) -> None:
        frames.send(self.control, list(what), [])

    def _tell_outputs(self, cell: Cell, outputs: list) -> None:
        data = json.dumps(outputs, default=str, skipkeys=True).encode("utf-8", "replace")
        frames.send(self.control, ["cell", cell.index, len(data)], [data])


def _limit_memory(more: int) -> None:
    """Let this process grow by so many bytes at most, whatever the student's side sends."""
    with contextlib.suppress(OSError, ValueError):  # no /proc
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _record(shell: NotebookShell, output: NotebookNode) -> None:
    if output.output_type == "stream":
        shell.record_stream(output.name, output.text)
    elif output.output_type == "display_data":  # a result can only be the test's own
        shell.record(output)


def _told(name: str, text: str) -> NotebookNode:
    return new_output("error", ename=name, evalue=text, traceback=[text])


if __name__ == "__main__":
    main()
