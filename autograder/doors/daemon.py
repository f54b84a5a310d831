"""The grading daemon: keeps the warm templates for nbgrader's commands and formgrader, and ends when it is idle.

One request is one connection: a notebook with its chapter, seed and limits as JSON, answered with the notebook that
ran and its flags. It is started by `autograder.doors.ask`, in a folder that only its user can open.
"""

import contextlib
import json
import os
import signal
import socketserver
import sys
import threading
import time
import traceback
from pathlib import Path

import nbformat
from filelock import FileLock

from autograder.authoring.course_folder import Sheet
from autograder.engine.supervisor import run_notebook
from autograder.errors import CourseError
from autograder.grading import rerun
from autograder.limits import Limits

IDLE = float(os.environ.get("AUTOGRADER_DAEMON_IDLE", 900))  # seconds
AT_ONCE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LARGEST = 200_000_000  # bytes of a request


class Daemon(socketserver.ThreadingUnixStreamServer):
    """Answers requests on a socket in the file system, `AT_ONCE` at a time."""

    daemon_threads, request_queue_size = True, 64

    def __init__(self, place: Path):
        self.place, self.stopped = place, threading.Event()
        self.running, self.used, self.room = 0, time.monotonic(), threading.Semaphore(AT_ONCE)
        self.lock, self.taking = threading.Lock(), threading.Lock()
        part = place.with_suffix(".part")
        part.unlink(missing_ok=True)
        super().__init__(str(part), Request)
        part.chmod(0o600)
        part.rename(place)  # who sees it can connect

    def serve(self) -> None:
        """Answer until nobody has asked for `IDLE` seconds, nobody can ask any more, or somebody asks it to stop."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        while not self.stopped.wait(min(1.0, IDLE / 10)) and (self.running or self.place.exists()):
            if self.idle():
                with FileLock(self.place.with_suffix(".lock"), mode=0o600):  # nobody starts another meanwhile
                    if self.idle():
                        self.place.unlink(missing_ok=True)
        self.place.unlink(missing_ok=True)
        self.shutdown()
        self.server_close()

    def idle(self) -> bool:
        with self.lock:
            return not self.running and time.monotonic() - self.used > IDLE

    @contextlib.contextmanager
    def busy(self, alone: bool = False):
        """Have room to run a notebook: one place, or all of them."""
        with self.lock:
            self.running += 1
        places = 0
        try:
            with self.taking if alone else contextlib.nullcontext():  # two that have half of the places would wait for ever
                for _ in range(AT_ONCE if alone else 1):
                    self.room.acquire()
                    places += 1
            yield
        finally:
            for _ in range(places):
                self.room.release()
            with self.lock:
                self.running, self.used = self.running - 1, time.monotonic()


class Request(socketserver.StreamRequestHandler):
    """One notebook."""

    def handle(self) -> None:
        given = json.loads(self.rfile.read(LARGEST))
        if given.get("stop"):
            self.server.stopped.set()
            return
        with self.server.busy():
            answer = answered(given)
        if first := rerun.hit(answer.get("notebook", {})):
            with self.server.busy(alone=True):
                answer = answered(given)
            if "flags" in answer:
                answer["flags"].append(rerun.sentence(first, rerun.hit(answer["notebook"])))
        self.wfile.write(json.dumps(answer).encode())


def answered(given: dict) -> dict:
    """Run the notebook of a request: its outputs and flags, or the sentence that says why it could not be run."""
    try:
        notebook = nbformat.from_dict(given["notebook"])
        sheet = Sheet(Path(given["root"]), given["stem"], given["name"])
        files = None if given["files"] is None else Path(given["files"])
        flags = run_notebook(notebook, sheet, given["seed"], Limits(**given["limits"]), files, given["sandbox"])
        return {"notebook": notebook, "flags": flags}
    except CourseError as error:
        return {"error": str(error), "code": getattr(error, "code", 2)}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"the notebook could not be run: {type(error).__name__}: {error}", "code": 2}


def main() -> None:
    daemon = Daemon(Path(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: daemon.stopped.set())
    daemon.serve()


if __name__ == "__main__":
    main()
