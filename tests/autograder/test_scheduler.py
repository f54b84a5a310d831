"""Grading on a cluster of two workers on this machine, one of which is killed in the middle: the same scores."""

import json
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.authoring.chapters import find_chapters, grade_id
from autograder.errors import CourseError
from autograder.grading import submission
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options
from autograder.limits import Limits

pytest.importorskip("distributed", reason="pip install 'mathematics-of-transformers[cluster]'")

from autograder.doors import cluster

ANSWERS = {
    "right": "def double(x):\n    return x + x",
    "wrong": "def double(x):\n    return x * x",
    "error": "def double(x):\n    raise ValueError('no')",
}
POINTS = {"right": 3, "wrong": 1, "error": 0}
CLASS = [f"{answer}{i}" for i in range(4) for answer in ANSWERS]


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """(the scheduler's address, the workers' processes)."""
    place = tmp_path_factory.mktemp("cluster")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": place}
    where = ["--scheduler-file", str(place / "scheduler.json")]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen([*command, *where], **quiet)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny"]
    workers = [subprocess.Popen([*command, "--no-dashboard", *where], **quiet) for _ in range(2)]
    try:
        while not (place / "scheduler.json").exists():
            assert scheduler.poll() is None
            time.sleep(0.05)
        address = json.loads((place / "scheduler.json").read_text())["address"]
        with cluster.Client(address) as client:
            client.wait_for_workers(2, timeout=120)
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def chapter(toy, tmp_path):
    root = shutil.copytree(toy.root, tmp_path / "course", ignore=shutil.ignore_patterns("gradebook.db"))
    chapter = find_chapters(root)[0]
    for student in CLASS:
        notebook = nbformat.read(chapter.release, as_version=4)
        next(c for c in notebook.cells if grade_id(c) == "ch99-double-answer").source = ANSWERS[student[:5]]
        folder = chapter.folder("submitted", student)
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / "ch99_toy.ipynb")
    (chapter.folder("submitted", CLASS[0]) / "data.csv").write_text("1")
    chapter.folder("submitted", "nothing").mkdir(parents=True)
    return chapter


def test_a_worker_that_is_killed_in_the_middle_loses_no_score(workers, chapter, monkeypatch):
    address, processes = workers
    monkeypatch.setattr(cluster, "BATCH", 2)
    monkeypatch.setattr(submission, "run_notebook", lambda *_: 1 / 0)  # nothing may run in this process
    done = []

    def count(one):
        done.append(one)
        if len(done) == 4:
            processes[0].send_signal(signal.SIGKILL)

    book = Book(chapter.root)
    graded = grade([chapter], book, Options(seed=1), workers=partial(cluster.on_cluster, address), done=count)
    assert [one.flags for one in graded if one.failed] == []
    assert processes[0].poll() is not None and processes[1].poll() is None
    assert len(graded) == len(CLASS) + 1
    with Gradebook(book.db_url) as gradebook:
        submissions = gradebook.assignment_submissions("ch99_toy")
        assert len(submissions) == len(graded)
    known = book.known(chapter)
    assert {student: known[student]["ch99-double"] for student in CLASS} == {s: POINTS[s[:5]] for s in CLASS}
    assert set(known["nothing"].values()) == {0}
    assert all(one.unchanged for one in grade([chapter], book, Options(seed=1), workers=partial(cluster.on_cluster, address))), (
        "their addresses are the same"
    )


def test_what_hit_a_limit_is_sent_out_once_more_alone(workers, toy, tmp_path):
    root = shutil.copytree(toy.root, tmp_path / "limits", ignore=shutil.ignore_patterns("gradebook.db"))
    chapter = find_chapters(root)[0]
    for student, answer in {"ada": ANSWERS["right"], "bob": "def double(x):\n    while True:\n        pass"}.items():
        notebook = nbformat.read(chapter.release, as_version=4)
        next(c for c in notebook.cells if grade_id(c) == "ch99-double-answer").source = answer
        chapter.folder("submitted", student).mkdir(parents=True)
        nbformat.write(notebook, chapter.folder("submitted", student) / "ch99_toy.ipynb")
    options = Options(limits=Limits(call=0.5, cell=20, notebook=60, patience=60))
    graded = {one.student: one for one in grade([chapter], Book(root), options, workers=partial(cluster.on_cluster, workers[0]))}
    assert graded["ada"].points["ch99-double"] == 3 and graded["ada"].flags == []
    assert graded["bob"].points["ch99-double"] == 0 and graded["bob"].flags[-1].endswith("alone: it hit a limit again")


def test_a_grading_process_answers_and_says_what_broke(chapter, tmp_path):
    """Without dask: what is sent, what comes back, and what is said when the process is gone."""
    process = cluster.GradingProcess()
    options = cluster.asdict(Options(seed=1))
    hello = {"chapters": {"k": cluster.parcel(chapter)}, "options": options, "environment": "another"}
    try:
        assert process.ask(json.dumps(hello)) == "{}\n"
        job = {"chapter": "k", "student": "ada", "notebook": None, "files": {}, "flags": ["gone"], "address": "a"}
        assert "other versions" in json.loads(process.ask(json.dumps(job)))["stop"]
        process.process.kill()
        assert json.loads(process.ask(json.dumps(job))) == {"failed": cluster.GONE} and process.over
    finally:
        process.end()


def test_a_scheduler_that_is_not_there_is_told(chapter, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", "1s")
    with pytest.raises(CourseError, match=r"the scheduler tcp://127\.0\.0\.1:9 cannot be used"):
        grade([chapter], Book(chapter.root), workers=partial(cluster.on_cluster, "tcp://127.0.0.1:9"))
