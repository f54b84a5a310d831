"""Has notebooks run by the grading daemon, which it starts when there is none.

nbgrader's commands and formgrader ask here. Formgrader lives inside the Jupyter server, which must not fork, and should
not import torch: what is warm and forks is a process of its own (autograder/doors/daemon.py).
"""

import contextlib
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import nbformat
from filelock import FileLock
from nbformat import NotebookNode

from autograder.authoring.chapters import Chapter
from autograder.errors import CourseError
from autograder.limits import Limits

START_LIMIT = 120.0  # seconds until a new daemon must listen
SPARE = 180.0  # seconds beyond a notebook's limit: warm templates, and others who ask at the same time
HERE = Path(__file__).resolve().parent


class DaemonError(CourseError):
    """The notebook was not run; the sentence says why."""

    def __init__(self, text: str, code: int = 2):
        super().__init__(text)
        self.code = code


def run(
    notebook: NotebookNode,
    chapter: Chapter,
    seed: int,
    limits: Limits = Limits(),
    files: Path | None = None,
    sandbox: str = "full",
) -> list[str]:
    """What `autograder.engine.supervisor.run_notebook` does, done by the daemon: fills in the outputs, returns what was hit or broke.

    Raises:
        DaemonError: if the notebook could not be run at all: no sandbox on this machine, no room, a daemon that does not start.
    """
    request = {
        "notebook": notebook,
        "root": str(chapter.root),
        "stem": chapter.stem,
        "name": chapter.name,
        "seed": seed,
        "limits": asdict(limits),
        "files": None if files is None else str(files),
        "sandbox": sandbox,
    }
    answer = _ask(json.dumps(request).encode(), 2 * limits.patience * limits.notebook + SPARE)  # it may run twice
    if "error" in answer:
        raise DaemonError(answer["error"], answer["code"])
    ran = nbformat.from_dict(answer["notebook"])
    notebook.cells, notebook.metadata = ran.cells, ran.metadata
    return answer["flags"]


def stop() -> None:
    """End the daemon, if one runs."""
    with contextlib.suppress(OSError), _connect(address()) as connection:
        _exchange(connection, b'{"stop": true}', 10)


def address() -> Path:
    """The daemon's socket: one for each user, environment and version of the code.

    Raises:
        DaemonError: if somebody else can reach the folder that it must be in.
    """
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"autograder-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    there = folder.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o077:
        raise DaemonError(f"{folder} is not a folder that only you can open; remove it, or set XDG_RUNTIME_DIR to one that is")
    code = sorted(path for name in ("autograder", "course") for path in (HERE.parent / name).rglob("*.py"))
    stamp = [sys.prefix, *(f"{path} {path.stat().st_mtime_ns}" for path in code)]
    return folder / f"{hashlib.sha256(os.linesep.join(stamp).encode()).hexdigest()[:16]}.sock"


def _ask(request: bytes, seconds: float) -> dict:
    place = address()

    def attempt() -> dict:
        with connected(place) as connection:
            return json.loads(_exchange(connection, request, seconds))

    log = place.with_suffix(".log")
    try:
        try:
            return attempt()
        except (ConnectionError, ValueError):  # it ended just now: it was idle, or somebody killed it
            return attempt()
    except TimeoutError:
        raise DaemonError(f"the grading daemon did not answer in {seconds:g} s; its log is {log}") from None
    except (OSError, ValueError):
        raise DaemonError(f"the grading daemon ended while it ran a notebook; its log is {log}") from None


def connected(place: Path) -> socket.socket:
    """A connection to the daemon, a new one if there is none. Only one at a time starts it."""
    with contextlib.suppress(OSError):
        return _connect(place)
    with FileLock(place.with_suffix(".lock"), timeout=START_LIMIT + 30, mode=0o600):
        with contextlib.suppress(OSError):
            return _connect(place)
        return _start(place)


def _connect(place: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(place))
    except OSError:
        connection.close()
        raise
    return connection


def _start(place: Path) -> socket.socket:
    place.unlink(missing_ok=True)
    log = place.with_suffix(".log")
    path = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with log.open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "autograder.doors.daemon", str(place)],
            cwd="/",
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            return _connect(place)
        if process.poll() is not None:
            why = log.read_text(errors="replace").strip().splitlines()
            raise DaemonError(f"the grading daemon did not start: {why[-1] if why else f'it ended with {process.returncode}'}")
        time.sleep(0.05)
    process.kill()
    raise DaemonError(f"the grading daemon did not start in {START_LIMIT:g} s; its log is {log}")


def _exchange(connection: socket.socket, request: bytes, seconds: float) -> bytes:
    connection.settimeout(seconds)
    connection.sendall(request)
    connection.shutdown(socket.SHUT_WR)
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)
