"""Handles of the student side: a warm template process, and its children, which run one submission each.

The template is started as a program of its own (autograder/confined/template.py), so that nothing of the process that
holds tests is in its memory. Requests and answers are lines of JSON on a socket; sockets and files go beside them.
"""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO

from autograder.errors import CourseError, SandboxError
from autograder.limits import KINDS, Limits
from autograder.walls import cgroup

START_LIMIT = 120.0  # seconds until the template must be ready
ANSWER_LIMIT = 30.0  # seconds until it must answer
FILES, DEPTH = 10_000, 32  # of what is copied into a working folder
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS")
_PROGRAM = """import json, sys
sys.path[:] = json.loads(sys.stdin.readline())
from autograder.confined.template import main
main()"""


class NotStarted(Exception):
    """One student's process could not be started; the template goes on."""


class TemplateGone(CourseError):
    """The template has ended or does not answer."""

    def __init__(self, process: subprocess.Popen, why: object):
        self.process = process
        super().__init__(f"the process that starts students' processes is gone ({why})")


class Student:
    """A process that runs one submission.

    Attributes:
        socket: a stream connected to `autograder.confined.server.serve` in that process.
        left_out: the names of files that were not copied, since they are no plain files or too large.
    """

    def __init__(self, template: "Template", pid: int, connection: socket.socket, left_out: list[str]):
        self.socket, self.left_out = connection, left_out
        self._template, self._parent, self._pid, self._end = template, template.process, pid, None

    def kill(self) -> None:
        """End the process and everything that it started. A second time does nothing."""
        self._learn("kill")
        self.socket.close()

    def how_it_ended(self, wait: float = 1.0) -> str | None:
        """In words that go after "the student's process", or None if it still runs after `wait` seconds.

        Its end of the socket closes a little before it is gone.
        """
        end = time.monotonic() + wait
        self._learn("end of")
        while self._end is None and time.monotonic() < end:
            time.sleep(0.005)
            self._learn("end of")
        return self._end

    def processor_time(self) -> float | None:
        """Seconds that the process and those that it started have taken; None where that cannot be seen."""
        with contextlib.suppress(CourseError):
            return self._template.ask({"time of": self._pid}, of=self._parent)["seconds"]
        return None

    def _learn(self, request: str) -> None:
        if self._end is None:
            try:
                self._end = self._template.ask({request: self._pid}, of=self._parent)["end"]
            except CourseError as error:  # its children are gone with it
                self._end = f"is gone: {error}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Template:
    """A warm process of the student side, which has imported what notebooks import and has computed nothing.

    It starts in the background; the first `fork`, or `wait`, waits until it is ready. It may be used from
    several threads. It ends with this process, or by `close`.

    Args:
        sandbox: "full" or "none".
        serve: what its children call with their socket, as `module:function`.

    Attributes:
        group: the control group of its children, where there can be one; known when it is ready.
    """

    def __init__(self, sandbox: str = "full", serve: str = "autograder.confined.server:serve"):
        if sandbox not in KINDS:
            raise CourseError(f"the sandbox is one of {', '.join(KINDS)}, not {sandbox}")
        self._lock, self._sandbox, self._serve = threading.Lock(), sandbox, serve
        self._start()

    def _start(self) -> None:
        self._ready, self._buffer, self.group = False, b"", None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._control, theirs = socket.socketpair()
        environment = {
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYTHONDONTWRITEBYTECODE": "1",
            **dict.fromkeys(_THREADS, "1"),
        }
        config = {
            "control": theirs.fileno(),
            "sandbox": self._sandbox,
            "serve": self._serve,
            "matplotlib": os.environ.get("MPLCONFIGDIR"),
        }
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env=environment,
                start_new_session=True,  # Ctrl-C is for this process alone
            )
        with contextlib.suppress(BrokenPipeError), self.process.stdin as stdin:
            for line in ([os.path.abspath(path) for path in sys.path], config):
                stdin.write(json.dumps(line).encode() + b"\n")

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
            NotStarted: if this one cannot be started.
            CourseError: if the template is gone, and one that was started anew too.
        """
        ours, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as packed:
            left_out = [] if files is None else pack(files, packed, min(limits.file_size, limits.folder // 2))
            packed.seek(0)
            request = {"fork": asdict(limits)}, theirs.fileno(), packed.fileno()
            try:
                try:
                    answer = self.ask(*request)
                except TemplateGone as gone:  # killed from outside: begin anew, once
                    self._restart(gone.process)
                    answer = self.ask(*request)
            except BaseException:
                ours.close()
                raise
        return Student(self, answer["pid"], ours, left_out)

    def ask(self, request: dict, *descriptors: int, of: subprocess.Popen | None = None) -> dict:
        """Send a request, with open files, and get the template's answer.

        Raises:
            TemplateGone: if there is no template, or another one than the process that is asked `of`.
        """
        with self._lock:
            if of not in (None, self.process):
                raise TemplateGone(of, "another one was started")
            self._wait()
            try:
                self._control.settimeout(ANSWER_LIMIT)
                socket.send_fds(self._control, [json.dumps(request).encode() + b"\n"], list(descriptors))
            except OSError as error:
                raise self._gone(error) from error
            return self._receive(ANSWER_LIMIT)

    def _restart(self, gone: subprocess.Popen) -> None:
        with self._lock:
            if self.process is gone:
                self.close()
                self._start()

    def close(self) -> None:
        """End it, with all its children."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._errors.close()
        if self.group:
            cgroup.remove(self.group)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _wait(self) -> None:
        if not self._ready:
            group = self._receive(START_LIMIT)["group"]
            self._ready, self.group = True, group and Path(group)

    def _receive(self, seconds: float) -> dict:
        try:
            self._control.settimeout(seconds)
            while b"\n" not in self._buffer:
                more = self._control.recv(65536)
                if not more:
                    raise OSError("it ended")
                self._buffer += more
        except OSError as error:
            raise self._gone(error) from error
        line, self._buffer = self._buffer.split(b"\n", 1)
        answer = json.loads(line)
        if "part" in answer:
            raise SandboxError(answer["part"], answer["why"])
        if "error" in answer:
            kind = NotStarted if self._ready else CourseError
            raise kind(f"a student's process could not be started: {answer['error']}")
        return answer

    def _gone(self, error: OSError) -> "TemplateGone":
        said = ""
        if not self._errors.closed:
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip()
        return TemplateGone(self.process, said.splitlines()[-1] if said else error)


def pack(folder: Path, archive: IO[bytes], size: int) -> list[str]:
    """Write the files of a folder into a tar archive, apart from notebooks and hidden files.

    Links stay links, so that none leads to what the reader may see and the student may not.

    Args:
        folder: a student's, with anything in it.
        archive: a file to write to.
        size: bytes of all files together.

    Returns:
        The names of what was left out: devices and the like, what cannot be read, and what goes beyond `size`,
        FILES names or DEPTH folders in folders.
    """
    left_out, names, waiting = [], 0, [""]
    with tarfile.open(fileobj=archive, mode="w") as tar:
        while waiting:
            inside = waiting.pop()
            try:
                entries = sorted(os.scandir(folder / inside), key=lambda entry: entry.name)
            except OSError:
                left_out.append(inside)
                continue
            for entry in entries:
                if entry.name.startswith(".") or entry.name.endswith(".ipynb"):
                    continue
                name = os.path.join(inside, entry.name)
                names += 1
                if names > FILES or name.count(os.sep) > DEPTH:
                    return [*left_out, name]
                member = tarfile.TarInfo(name)
                if entry.is_symlink():
                    member.type, member.linkname = tarfile.SYMTYPE, os.readlink(entry.path)
                    tar.addfile(member)
                elif entry.is_dir(follow_symlinks=False):
                    member.type, member.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(member)
                    waiting.append(name)
                elif _add(tar, member, entry.path, size):
                    size -= member.size
                else:
                    left_out.append(name)
    return left_out


def _add(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, size: int) -> bool:
    """Add a file to the archive if it is a plain one of at most `size` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # opening a pipe would wait
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > size:
            return False
        member.size, member.mtime = status.st_size, int(status.st_mtime)
        tar.addfile(member, file)
    return True
