"""Grading on a dask.distributed cluster.

Student code never comes near dask. A worker hands each submission, as JSON, to a grading process that it
started fresh (`python -m autograder.doors.cluster`): that one holds no socket of dask's, has a warm template of its
own and runs student code in its sandbox; what comes back is the graded notebook as JSON. A task is ten
submissions. Only the loss of a worker makes dask run a task again.

Between machines use TLS: a scheduler at tls://…, and dask's own configuration of certificates.
"""

import base64
import json
import os
import queue
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import nbformat
from distributed import Client, WorkerPlugin, get_worker, wait

from autograder.authoring.chapters import Chapter
from autograder.authoring.course_folder import Sheet
from autograder.authoring.release import Release
from autograder.errors import CourseError
from autograder.grading.address import environment
from autograder.grading.submission import Graded, Options, Taken, failed, grade_submission
from autograder.limits import Limits

BATCH = 10  # submissions a task: a task costs about 5 ms
PATIENCE = "30s"  # to reach the scheduler
PLUGIN = "autograder"
GONE = "the grading process ended"


class Stopped(CourseError):
    """What stops the whole run, said by a grading process."""

    def __init__(self, said: str, code: int):
        super().__init__(said)
        self.code = code


# ---------------------------------------------------------------- in the command


def on_cluster(
    address: str, one: Callable[[tuple, Callable], Graded | dict], work: Iterable[tuple], options: Options
) -> Iterator[list[Graded]]:
    """Grade `work` on the workers of a scheduler; the results as they come.

    Args:
        one: `one(item, pack)` is what is known of an item already, or `pack(taken)` of what is to be graded.

    Raises:
        CourseError: if the scheduler cannot be reached or has no worker.
    """
    try:
        client = Client(address, timeout=PATIENCE)
        client.wait_for_workers(1, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise CourseError(f"the scheduler {address} cannot be used: {error}") from None
    with client:
        client.register_plugin(GradingProcesses(), name=PLUGIN)
        chapters: dict[str, Chapter] = {}

        def batches() -> Iterator[list]:
            batch = []
            for item in work:
                batch.append(one(item, _packed))
                chapters[_key(item[0])] = item[0]
                if len(batch) == BATCH:
                    yield batch
                    batch = []
            if batch:
                yield batch

        running: dict = {}
        for batch in batches():
            if known := [result for result in batch if isinstance(result, Graded)]:
                yield known
            if jobs := [job for job in batch if not isinstance(job, Graded)]:
                parcels = {job["chapter"]: parcel(chapters[job["chapter"]]) for job in jobs}
                message = json.dumps({"chapters": parcels, "options": asdict(options), "environment": environment()})
                future = client.submit(grade_batch, message, [json.dumps(job) for job in jobs], pure=False, retries=0)
                running[future] = jobs
            while len(running) >= 2 * max(1, sum(client.nthreads().values())):
                yield from _finished(running, chapters)
        while running:
            yield from _finished(running, chapters)


def _finished(running: dict, chapters: dict[str, Chapter]) -> Iterator[list[Graded]]:
    for future in wait(list(running), return_when="FIRST_COMPLETED").done:
        jobs = running.pop(future)
        try:
            replies = [json.loads(reply) for reply in future.result()]
        except Exception as error:  # of dask: a task that killed three workers, say
            yield [failed(chapters[job["chapter"]], job["student"], error) for job in jobs]
            continue
        yield [_graded(chapters[job["chapter"]], job, reply) for job, reply in zip(jobs, replies, strict=True)]


def _graded(chapter: Chapter, job: dict, reply: dict) -> Graded:
    if "stop" in reply:
        raise Stopped(reply["stop"], reply["code"])
    if "failed" in reply:
        return failed(chapter, job["student"], RuntimeError(reply["failed"]))
    received = datetime.fromisoformat(job["received"]) if job["received"] else None
    notebook = nbformat.from_dict(reply["notebook"])
    return Graded(job["student"], chapter, notebook, reply["points"], reply["flags"], received)


def _key(chapter: Chapter) -> str:
    return f"{chapter.stem}/{chapter.name}"


def _packed(taken: Taken) -> dict:
    """What counts of a submission, as JSON."""
    return {
        "chapter": _key(taken.chapter),
        "student": taken.student,
        "notebook": taken.notebook,
        "files": _bytes(taken.files, taken.files.rglob("*")),
        "flags": taken.flags,
        "received": taken.received.isoformat() if taken.received else None,
        "address": taken.address,
    }


def parcel(chapter: Chapter) -> dict:
    """The files of a chapter that its grading reads, as JSON."""
    root = chapter.root
    paths = [root / "nbgrader_config.py", chapter.path, chapter.answers, *chapter.release.parent.rglob("*")]
    sheet = {"name": chapter.name} if isinstance(chapter, Sheet) else {}
    return {"stem": chapter.stem, **sheet, "files": _bytes(root, paths)}


def _bytes(root: Path, paths: Iterable[Path]) -> dict[str, str]:
    return {str(path.relative_to(root)): base64.b64encode(path.read_bytes()).decode() for path in paths if path.is_file()}


# ---------------------------------------------------------------- in a worker


class GradingProcesses(WorkerPlugin):
    """One grading process for each of a worker's threads, started at its first task."""

    def setup(self, worker) -> None:
        self.all: list[GradingProcess] = []
        self.idle: queue.Queue = queue.Queue()
        for _ in range(worker.state.nthreads):
            self.idle.put(None)

    def teardown(self, worker) -> None:
        for process in self.all:
            process.end()

    def take(self) -> "GradingProcess":
        process = self.idle.get()
        if process is None or process.over:
            process = GradingProcess()
            self.all.append(process)
        return process


class GradingProcess:
    """The worker's end of a grading process: a line of JSON for each question and each answer."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "autograder.doors.cluster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        self.over = False

    def ask(self, line: str) -> str:
        """The answer; one that says so, if the process is gone."""
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            if answer := self.process.stdout.readline():
                return answer.decode()
        except OSError:
            pass
        self.over = True
        self.end()
        return json.dumps({"failed": GONE})

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def grade_batch(message: str, jobs: list[str]) -> list[str]:
    """A task: grade some submissions one after the other; the answers as JSON."""
    plugin = get_worker().plugins[PLUGIN]
    process, answers = plugin.take(), []
    try:
        process.ask(message)
        for job in jobs:
            if process.over:
                process = GradingProcess()
                plugin.all.append(process)
                process.ask(message)
            answers.append(process.ask(job))
    finally:
        plugin.idle.put(process)
    return answers


# ---------------------------------------------------------------- in a grading process


def main() -> None:
    """Answer questions on the standard input until it ends: it does when the worker is gone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything prints is no answer
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        chapters: dict[str, tuple[Chapter, Release]] = {}
        options, refused = Options(), None
        for number, line in enumerate(sys.stdin):
            asked = json.loads(line)
            if "chapters" in asked:
                options = Options(**{**asked["options"], "limits": Limits(**asked["options"]["limits"])})
                if asked["environment"] != environment():
                    refused = {"stop": "a worker has other versions of the course or its packages than this machine", "code": 2}
                chapters = {key: _unpacked(given, Path(folder, str(number), key)) for key, given in asked["chapters"].items()}
                answer = {}
            else:
                answer = refused or _answer(asked, *chapters[asked["chapter"]], options)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _unpacked(given: dict, root: Path) -> tuple[Chapter, Release]:
    _write(root, given["files"])
    chapter = Sheet(root, given["stem"], given["name"]) if "name" in given else Chapter(root, given["stem"])
    return chapter, Release.of(chapter)


def _answer(job: dict, chapter: Chapter, release: Release, options: Options) -> dict:
    try:
        with tempfile.TemporaryDirectory(prefix="files-") as place:
            _write(Path(place), job["files"])
            notebook = nbformat.from_dict(job["notebook"]) if job["notebook"] is not None else None
            taken = Taken(chapter, job["student"], notebook, Path(place), job["flags"], None, job["address"])
            graded = grade_submission(taken, options, release)
        return {"notebook": graded.notebook, "points": graded.points, "flags": graded.flags}
    except CourseError as error:
        return {"stop": str(error), "code": getattr(error, "code", 2)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _write(root: Path, files: dict[str, str]) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))


if __name__ == "__main__":
    main()
