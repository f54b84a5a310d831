"""The student side: a warm process that computes nothing, and its children, which run one submission each.

`Template` and `Student` are handles in the trusted process. The template itself is started as a program of its
own, so that nothing of the trusted process is in its memory; it imports what notebooks import, moves into the
sandbox and forks on request. Its children call `autograder.remote.serve`.

The template's requests and answers are lines of JSON on a socket; sockets and files go beside them.
"""

import contextlib
import fcntl
import gc
import io
import json
import os
import importlib
import random
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import IO, NoReturn

from autograder import sandbox, syscalls
from autograder.chapters import CourseError
from autograder.sandbox import KINDS, Limits, SandboxError

START_LIMIT = 120.0  # seconds until the template must be ready
FORK_LIMIT = 30.0  # seconds until it must answer
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")
_PLACES = ("TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR")
FILES, DEPTH = 10_000, 32
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
    "torch",
    "torch._dynamo",  # the first optimizer imports it
    "torch.optim",
)
_START = """import json, sys
config = json.loads(sys.stdin.readline())
sys.path[:] = config["path"]
from autograder.student import main
main(config)"""


class Student:
    """A process that runs one submission.

    Attributes:
        socket: a stream connected to `autograder.remote.serve` in that process.
        left_out: the names of files that were not copied, since they are no plain files or too large.
    """

    def __init__(self, template: "Template", pid: int, connection: socket.socket, left_out: list[str]):
        self.socket, self.left_out = connection, left_out
        self._template, self._pid, self._end = template, pid, None

    def kill(self) -> None:
        """End the process and everything that it started. A second time does nothing."""
        if self._pid is not None:
            with contextlib.suppress(CourseError):  # the template is gone, and its children with it
                self._end = self._end or self._template._ask({"kill": self._pid})["end"]
            self._pid = None
        self.socket.close()

    def how_it_ended(self) -> str | None:
        """In words that finish "the student's process …", or None while it runs."""
        if self._end is None and self._pid is not None:
            try:
                self._end = self._template._ask({"end of": self._pid})["end"]
            except CourseError as error:
                self._end = str(error)
        return self._end

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Template:
    """A warm process of the student side.

    Args:
        sandbox: "full" or "none".
        serve: what its children call with their socket, as `module:function`.

    It starts in the background; the first `fork`, or `wait`, waits until it is ready. It may be used from
    several threads. It ends with this process or by `close`.
    """

    def __init__(self, sandbox: str = "full", serve: str = "autograder.remote:serve"):
        if sandbox not in KINDS:
            raise ValueError(f"the sandbox is one of {', '.join(KINDS)}, not {sandbox!r}")
        self._lock, self._ready, self._buffer = threading.Lock(), False, b""
        self._control, theirs = socket.socketpair()
        with theirs:
            environment = {
                "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]),
                "LANG": "C.UTF-8",
                "MPLBACKEND": "module://matplotlib_inline.backend_inline",
                "PYTHONDONTWRITEBYTECODE": "1",
                **dict.fromkeys(_THREADS, "1"),
            }
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-c", _START],
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=environment,
                start_new_session=True,
            )
            config = {
                "control": theirs.fileno(),
                "path": [os.path.abspath(path) for path in sys.path],
                "sandbox": sandbox,
                "serve": serve,
                "matplotlib": os.environ.get("MPLCONFIGDIR"),
            }
            with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:
                stdin.write(json.dumps(config).encode() + b"\n")

    def wait(self) -> None:
        """Wait until it is ready.

        Raises:
            SandboxError: if this machine does not allow a part of the sandbox.
            CourseError: if it could not be started.
        """
        with self._lock:
            self._wait()

    def fork(self, limits: Limits = Limits(), files: Path | None = None) -> Student:
        """A new student's process, with a working folder of its own.

        Args:
            limits: of memory, processes and files; deadlines are the caller's to keep.
            files: a folder whose files are copied into the working folder, apart from notebooks and hidden files.

        Raises:
            SandboxError: if this machine does not allow a part of the sandbox.
        """
        ours, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as packed:
            left_out = [] if files is None else pack(files, packed, min(limits.file_size, limits.folder // 2))
            packed.seek(0)
            try:
                answer = self._ask({"fork": asdict(limits)}, theirs.fileno(), packed.fileno())
            except BaseException:
                ours.close()
                raise
        return Student(self, answer["pid"], ours, left_out)

    def close(self) -> None:
        """End it, with all its children."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _wait(self) -> None:
        if not self._ready:
            self._receive(START_LIMIT)
            self._ready = True

    def _ask(self, request: dict, *descriptors: int) -> dict:
        with self._lock:
            self._wait()
            try:
                self._control.settimeout(FORK_LIMIT)
                socket.send_fds(self._control, [json.dumps(request).encode() + b"\n"], list(descriptors))
            except OSError as error:
                raise CourseError(f"the process that starts students' processes is gone ({error.strerror or error})") from error
            return self._receive(FORK_LIMIT)

    def _receive(self, seconds: float) -> dict:
        self._control.settimeout(seconds)
        try:
            while b"\n" not in self._buffer:
                more = self._control.recv(65536)
                if not more:
                    raise OSError("it ended")
                self._buffer += more
        except OSError as error:
            raise CourseError(f"the process that starts students' processes is gone ({error})") from error
        line, self._buffer = self._buffer.split(b"\n", 1)
        answer = json.loads(line)
        if "part" in answer:
            raise SandboxError(answer["part"], answer["why"])
        if "error" in answer:
            raise CourseError(f"a student's process could not be started: {answer['error']}")
        return answer


# ---------------------------------------------------------------- files


def pack(folder: Path, archive: IO[bytes], size: int) -> list[str]:
    """Write the files of a folder into a tar archive; notebooks and hidden files are not meant to be there.

    Links stay links, so that none leads to what the reader may see and the student may not.

    Returns:
        The names of what was left out: devices and the like, and what goes beyond `size` bytes, FILES files or
        DEPTH folders in folders.
    """
    left_out, found = [], 0
    waiting = [("", 0)]
    with tarfile.open(fileobj=archive, mode="w") as tar:
        while waiting:
            inside, depth = waiting.pop()
            try:
                entries = sorted(os.scandir(folder / inside), key=lambda entry: entry.name)
            except OSError:
                left_out.append(inside)
                continue
            for entry in entries:
                name = os.path.join(inside, entry.name)
                if entry.name.startswith(".") or entry.name.endswith(".ipynb"):
                    continue
                found += 1
                member = tarfile.TarInfo(name)
                if found > FILES or depth > DEPTH:
                    left_out.append(name)
                    return left_out
                if entry.is_symlink():
                    member.type, member.linkname = tarfile.SYMTYPE, os.readlink(entry.path)
                    tar.addfile(member)
                elif entry.is_dir(follow_symlinks=False):
                    member.type, member.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(member)
                    waiting.append((name, depth + 1))
                else:
                    size -= _add(tar, member, entry.path, size, left_out)
    return left_out


def _add(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, size: int, left_out: list[str]) -> int:
    """Add a plain file of at most `size` bytes; its size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # opening a pipe would wait
    except OSError:
        left_out.append(member.name)
        return 0
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > size:
            left_out.append(member.name)
            return 0
        member.size, member.mtime = status.st_size, status.st_mtime
        tar.addfile(member, file)
        return member.size


# ---------------------------------------------------------------- in the template


def main(config: dict) -> NoReturn:
    """The template's program."""
    control = socket.socket(fileno=config["control"])
    parent = os.pidfd_open(os.getppid()) if hasattr(os, "pidfd_open") else None
    try:
        serve = _prepare(config)
    except SandboxError as error:
        _send(control, {"part": error.part, "why": error.why})
        os._exit(error.code)
    except Exception as error:
        _send(control, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _send(control, {"ready": True})
    Children(config["sandbox"] == "full", serve).answer(control, parent)
    os._exit(0)


def _send(control: socket.socket, answer: dict) -> None:
    control.sendall(json.dumps(answer).encode() + b"\n")


def _prepare(config: dict):
    """Import all, enter the sandbox and warm up; what children call."""
    if config["matplotlib"]:
        os.environ["MPLCONFIGDIR"] = config["matplotlib"]
    module, function = config["serve"].split(":")
    serve = getattr(importlib.import_module(module), function)
    for name in WARM:
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    _one_thread()
    if config["sandbox"] == "full":
        sandbox.enter_view()
        pid = os.fork()
        if pid:  # the first process of the pid namespace is the template; this one waits for its end
            os.close(config["control"])
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0x7F)
        sandbox.enter_processes()
    sys.path[:] = ["", *(path for path in sys.path if os.path.exists(path))]
    _draw()
    _one_thread()
    gc.collect()
    gc.freeze()
    return serve


def _one_thread() -> None:
    """A process with several threads must not fork: a lock that another one holds stays locked in the child."""
    with contextlib.suppress(FileNotFoundError):  # no /proc
        threads = len(os.listdir("/proc/self/task"))
        if threads != 1:
            raise RuntimeError(f"the template has {threads} threads, and must have one")


def _draw() -> None:
    """Load the fonts and all that a figure's first drawing loads."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot([0, 1], label=r"$\alpha^2$")
    axes.set(title="a title", xlabel="x", ylabel=r"$\frac{1}{2}$")
    axes.legend()
    for kind in ("png", "svg"):
        figure.savefig(io.BytesIO(), format=kind, bbox_inches="tight")
    pyplot.close(figure)


class Children:
    """The template's children: starts, ends and buries them as the trusted process asks."""

    def __init__(self, full: bool, serve):
        self._full, self._serve = full, serve
        self._folders: dict[int, str | None] = {}  # of those not buried yet, by pid
        self._processes = os.open("/proc/self/ns/pid", os.O_RDONLY) if full else None

    def answer(self, control: socket.socket, parent: int | None) -> None:
        """Answer requests until the trusted process ends or closes its side."""
        watched = [control] if parent is None else [control, parent]
        while parent not in (ready := select.select(watched, [], [])[0]):
            line, descriptors = b"", []
            while not line.endswith(b"\n"):
                more, received, *_ = socket.recv_fds(control, 65536, 2)
                if not more:
                    break
                line, descriptors = line + more, descriptors + received
            if not line:
                break
            _send(control, self._do(json.loads(line), descriptors))
            for descriptor in descriptors:
                os.close(descriptor)
        for pid in list(self._folders):
            self.end(pid, kill=True)

    def _do(self, request: dict, descriptors: list[int]) -> dict:
        try:
            if "fork" in request:
                return {"pid": self.fork(Limits(**request["fork"]), *descriptors)}
            if "kill" in request:
                return {"end": self.end(request["kill"], kill=True)}
            return {"end": self.end(request["end of"], kill=False)}
        except SandboxError as error:
            return {"part": error.part, "why": error.why}
        except OSError as error:
            return {"error": str(error)}

    def fork(self, limits: Limits, connection: int, packed: int) -> int:
        """Start a child; its pid, once it is in the sandbox."""
        folder = None if self._full else tempfile.mkdtemp(prefix="autograder-")
        reader, writer = os.pipe()
        if self._full:
            syscalls.unshare(syscalls.CLONE_NEWPID)  # for the next child
        try:
            pid = os.fork()
            if pid == 0:
                _child(limits, folder, connection, packed, writer, self._serve)
        finally:
            os.close(writer)
            if self._full:
                syscalls.setns(self._processes, syscalls.CLONE_NEWPID)
        self._folders[pid] = folder
        with open(reader, "rb") as file:
            told = file.read()
        if told != b"in":
            self.end(pid, kill=True)
            answer = json.loads(told or b'{"error": "it ended on its way into the sandbox"}')
            raise SandboxError(**answer) if "part" in answer else OSError(answer["error"])
        return pid

    def end(self, pid: int, kill: bool) -> str | None:
        """How a child ended, in words; None if it runs on."""
        found, status = os.waitpid(pid, os.WNOHANG)
        if not found and not kill:
            return None
        how = "was stopped"
        if found:
            how = words(status)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not self._full:  # in the sandbox the end of the first process is that of all
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        if not found:
            os.waitpid(pid, 0)
        if folder := self._folders.pop(pid):
            shutil.rmtree(folder, ignore_errors=True)
        return how


def words(status: int) -> str:
    """The status that waitpid gives, so that it finishes the sentence "the student's process …"."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended itself with exit code {code}"
    if -code in (signal.SIGSEGV, signal.SIGBUS):
        return "crashed: a recursion without end, or a fault in compiled code (segmentation fault)"
    if -code == signal.SIGKILL:
        return "was killed, most likely for want of memory"
    return f"was ended by the signal {signal.Signals(-code).name}"


def _child(limits: Limits, folder: str | None, connection: int, packed: int, writer: int, serve) -> NoReturn:
    leave = os._exit  # bound before a student can put something else there
    try:
        os.setsid()
        if folder is None:
            sandbox.enter(limits)
        else:
            os.chdir(folder)
            sandbox.set_limits(limits)
            if sys.platform == "linux":
                syscalls.die_with_parent(signal.SIGKILL)
        os.environ.update(dict.fromkeys(_PLACES, folder or "/tmp"), HOME=os.getcwd())
        tempfile.tempdir = None
        with open(packed, "rb", closefd=False) as file:
            if os.fstat(packed).st_size:
                tarfile.open(fileobj=file).extractall(filter="fully_trusted")
        _keep_only(connection, writer)
        if folder is None:
            sandbox.lock()
        _seed()
        os.write(4, b"in")
        os.close(4)
    except BaseException as error:
        answer = {"part": error.part, "why": error.why} if isinstance(error, SandboxError) else {"error": repr(error)}
        os.write(writer, json.dumps(answer).encode())
        leave(1)
    code = 1
    try:
        serve(socket.socket(fileno=3))
        code = 0
    finally:
        leave(code)


def _keep_only(connection: int, writer: int) -> None:
    """Make the two open files 3 and 4, and close all others; 0, 1 and 2 lead nowhere."""
    connection, writer = (fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (connection, writer))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for place, descriptor in enumerate([nowhere, nowhere, nowhere, connection, writer]):
        os.dup2(descriptor, place)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))


def _seed() -> None:
    """Fresh random numbers: all children would draw the same ones."""
    import numpy as np
    import torch

    random.seed()
    np.random.seed(int.from_bytes(os.urandom(4)))
    torch.default_generator.manual_seed(int.from_bytes(os.urandom(8), signed=True))
