"""The program of the template process: imports what notebooks import, enters the sandbox, forks on request.

Started by `autograder.engine.student.Template`. Its children call `autograder.confined.server.serve`.
"""

import contextlib
import fcntl
import gc
import importlib
import io
import json
import linecache
import os
import random
import select
import shutil
import signal
import socket
import sys
import tarfile
import tempfile
from collections.abc import Callable
from typing import NoReturn

from autograder.confined.guard import modules
from autograder.confined.sandbox import SANDBOXES, Sandbox, memory_by_child
from autograder.errors import SandboxError
from autograder.limits import Limits
from autograder.walls.steps import environment_paths

WARM = (
    "IPython.core.interactiveshell",
    "course.device",
    "course.plots",
    "course.widgets",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "numpy",
    "sympy",
    "course.expressions",
    "torch",
    "torch._dynamo",  # the first optimizer imports it
    "torch.optim",
)
_PLACES = ("TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR")
_WATCH = 0.25  # seconds between two looks at how much memory the children use
_CONNECTION, _PACKED, _TOLD = 3, 4, 5  # the open files of a child


def main() -> NoReturn:
    """Read what to do from the standard input, and answer requests until the trusted process ends."""
    config = json.loads(sys.stdin.readline())
    control = socket.socket(fileno=config["control"])
    parent = os.pidfd_open(os.getppid()) if hasattr(os, "pidfd_open") else None
    sandbox = SANDBOXES[config["sandbox"]]()
    try:
        if config["matplotlib"]:
            os.environ["MPLCONFIGDIR"] = config["matplotlib"]
        serve = _imported(config["serve"])
        _one_thread()  # the kernel wants it for namespaces, and a fork later on
        sandbox.enter(control)
        _warm()
    except SandboxError as error:
        _send(control, {"part": error.part, "why": error.why})
        os._exit(error.code)
    except Exception as error:
        _send(control, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _send(control, {"group": sandbox.group})
    Children(serve, sandbox).answer(control, parent)
    os._exit(0)


def _send(control: socket.socket, answer: dict) -> None:
    control.sendall(json.dumps(answer).encode() + b"\n")


def _imported(serve: str) -> Callable[[socket.socket], None]:
    """Import and prepare everything; the function that children call, given as `module:function`."""
    module, function = serve.split(":")
    for name in WARM:
        importlib.import_module(name)
    found = importlib.import_module(module)
    for name in modules("course"):  # in the sandbox there are no sources of them
        with contextlib.suppress(ImportError):  # for a GPU
            importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    if hasattr(found, "prepare"):
        found.prepare()
    return getattr(found, function)


def _warm() -> None:
    """Load what the first figure would load, which shows too that the sandbox holds all of it."""
    from matplotlib import pyplot

    shown = environment_paths()
    course = os.path.dirname(os.path.dirname(sys.modules["course"].__file__))
    inside = [path for path in sys.path if path == course or any(path == top or path.startswith(f"{top}/") for top in shown)]
    sys.path[:] = ["", *dict.fromkeys(inside)]

    figure, axes = pyplot.subplots()
    axes.plot([0, 1], label=r"$\alpha^2$")
    axes.set(title="a title", xlabel="x", ylabel=r"$\frac{1}{2}$")
    axes.legend()
    for kind in ("png", "svg"):
        figure.savefig(io.BytesIO(), format=kind, bbox_inches="tight")
    pyplot.close(figure)
    linecache.clearcache()
    _one_thread()
    gc.collect()
    gc.freeze()  # a collection in a child would write to every page that it shares with the template


def _one_thread() -> None:
    """A process with several threads must not fork: a lock that another one holds stays locked in the child."""
    with contextlib.suppress(FileNotFoundError):  # no /proc
        threads = len(os.listdir("/proc/self/task"))
        if threads != 1:
            raise RuntimeError(f"the template has {threads} threads and must have one")


class Children:
    """The template's children: starts, watches, ends and buries them.

    Args:
        serve: what they call with their socket.
        sandbox: the one that this process has entered.
    """

    def __init__(self, serve: Callable[[socket.socket], None], sandbox: Sandbox):
        self._serve, self._sandbox = serve, sandbox
        self._count = 0
        self._names: dict[int, str] = {}  # of those not buried, by pid
        self._folders: dict[int, str | None] = {}  # of those not buried, by pid
        self._limits: dict[int, Limits] = {}
        self._greedy: set[int] = set()  # ended for the memory that they used

    def answer(self, control: socket.socket, parent: int | None) -> None:
        """Answer requests until the trusted process ends or closes its side."""
        watched = select.poll()  # select.select knows no file numbers above 1023
        for file in [control] if parent is None else [control, parent]:
            watched.register(file, select.POLLIN)
        while True:
            ready = [number for number, _ in watched.poll(1000 * _WATCH if self._folders and self._sandbox.sees_memory else None)]
            if not ready:
                self._watch_memory()
                continue
            line, descriptors = (b"", []) if parent in ready else _received(control)
            if not line:
                break
            answer = self._do(json.loads(line), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            _send(control, answer)
        for pid in list(self._folders):
            self.end(pid, kill=True)

    def _do(self, request: dict, descriptors: list[int]) -> dict:
        try:
            if "fork" in request:
                return {"pid": self.fork(Limits(**request["fork"]), *descriptors)}
            if "kill" in request:
                return {"end": self.end(request["kill"], kill=True)}
            if "time of" in request:
                return {"seconds": self._sandbox.processor_time(request["time of"])}
            return {"end": self.end(request["end of"], kill=False)}
        except SandboxError as error:
            return {"part": error.part, "why": error.why}
        except OSError as error:
            return {"error": str(error)}

    def fork(self, limits: Limits, connection: int, packed: int) -> int:
        """Start a child; its pid, once it is in the sandbox.

        Raises:
            SandboxError, OSError: what went wrong on its way there.
        """
        folder = self._sandbox.folder()
        reader, writer = os.pipe()
        self._count += 1
        name = f"student-{self._count}"
        self._sandbox.before_fork(name, limits)
        try:
            pid = os.fork()
            if pid == 0:
                _child(limits, folder, [connection, packed, writer], self._serve, self._sandbox, name)
        finally:
            os.close(writer)
            self._sandbox.after_fork()
        self._folders[pid], self._limits[pid], self._names[pid] = folder, limits, name
        with open(reader, "rb") as file:
            told = file.read()
        if told != b"in":
            self.end(pid, kill=True)
            answer = json.loads(told or b'{"error": "it ended on its way into the sandbox"}')
            raise SandboxError(**answer) if "part" in answer else OSError(answer["error"])
        return pid

    def end(self, pid: int, kill: bool) -> str | None:
        """How a child ended, in words; None if it runs on."""
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if not found and not kill:
            return None
        self._sandbox.kill(pid, ended=bool(found))
        if not found:
            os.waitpid(pid, 0)
        limits, folder, name = self._limits.pop(pid), self._folders.pop(pid), self._names.pop(pid)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        if self._sandbox.end(name) or pid in self._greedy:
            self._greedy.discard(pid)
            return f"was ended: it and what it started used more than {limits.memory >> 20} MB of memory"
        if found and status == signal.SIGKILL and usage.ru_utime + usage.ru_stime > limits.processor - 1:
            return f"was ended: it used {limits.processor} s of processor time"
        return words(status) if found else "was stopped"

    def _watch_memory(self) -> None:
        """End a child whose processes together use more than its limit: the kernel's own limit is for each process."""
        if not os.path.exists("/proc/self"):  # a container that hides parts of it; `autograder doctor` tells
            return
        for pid, used in memory_by_child().items():
            if pid in self._limits and used > self._limits[pid].memory:
                self._greedy.add(pid)
                os.kill(pid, signal.SIGKILL)


def words(status: int) -> str:
    """The status that waitpid gives, so that it goes after "the student's process"."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended itself with exit code {code}"
    if -code in (signal.SIGSEGV, signal.SIGBUS):
        return "crashed: a recursion without end, or a fault in compiled code (segmentation fault)"
    if -code == signal.SIGKILL:
        return "was killed, most likely for want of memory"
    return f"was ended by the signal {signal.Signals(-code).name}"


def _received(control: socket.socket) -> tuple[bytes, list[int]]:
    """The next request, with the open files that came beside it; empty at the end."""
    line, descriptors = b"", []
    while not line.endswith(b"\n"):
        more, came, *_ = socket.recv_fds(control, 65536, 2)
        if not more:
            return b"", []
        line, descriptors = line + more, descriptors + came
    return line, descriptors


# ---------------------------------------------------------------- in a child


def _child(
    limits: Limits,
    folder: str | None,
    descriptors: list[int],
    serve: Callable[[socket.socket], None],
    sandbox: Sandbox,
    name: str,
) -> NoReturn:
    leave = os._exit  # bound before a student can put something else there
    try:
        os.setsid()
        sandbox.join(name)
        _keep_only(descriptors)
        sandbox.enter_child(limits, folder)
        os.environ.update(dict.fromkeys(_PLACES, folder or "/tmp"), HOME=os.getcwd())
        tempfile.tempdir = None
        _unpack()
        _seed()
        sandbox.lock()
        os.write(_TOLD, b"in")
        os.close(_TOLD)
    except BaseException as error:
        answer = {"part": error.part, "why": error.why} if isinstance(error, SandboxError) else {"error": repr(error)}
        os.write(_TOLD, json.dumps(answer).encode())
        leave(1)
    code = 1
    try:
        serve(socket.socket(fileno=_CONNECTION))
        code = 0
    finally:
        leave(code)


def _keep_only(descriptors: list[int]) -> None:
    """Make these open files 3, 4 and 5, and close all others; 0, 1 and 2 lead nowhere."""
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in descriptors]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for place, descriptor in enumerate([nowhere, nowhere, nowhere, *high]):
        os.dup2(descriptor, place)
    os.closerange(_TOLD + 1, os.sysconf("SC_OPEN_MAX"))


def _unpack() -> None:
    """The files that came with the submission, into the working folder."""
    if os.fstat(_PACKED).st_size:
        with open(_PACKED, "rb", closefd=False) as file, tarfile.open(fileobj=file) as tar:
            tar.extractall(filter="fully_trusted")  # as `autograder.engine.student.pack` made it
    os.close(_PACKED)


def _seed() -> None:
    """Fresh random numbers: otherwise all children would draw the same ones."""
    import numpy as np
    import torch

    random.seed()
    np.random.seed(int.from_bytes(os.urandom(4), "big"))
    torch.default_generator.manual_seed(int.from_bytes(os.urandom(7), "big"))
