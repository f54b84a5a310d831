"""Processor seconds are counted where they are spent, told by chapter, and held to a budget; a queue begins with its longest."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests import run, seconds
from tests.seconds import ROOT

SPIN = "import time\nwhile time.process_time() < 0.4: pass\n"


def spent(work) -> float:
    before = seconds.busy()
    work()
    return seconds.busy() - before


def test_a_child_that_ended_counts_and_waiting_does_not():
    assert 0.3 < spent(lambda: subprocess.run([sys.executable, "-c", SPIN], check=True)) < 1.5
    assert spent(lambda: time.sleep(0.5)) < 0.3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of children that run")
def test_a_child_that_runs_counts_and_so_does_its_child():
    code = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {SPIN!r} + 'time.sleep(60)'])\nprint(1, flush=True)\ninput()"
    before = seconds.busy()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        until = time.monotonic() + 60
        while seconds.busy() - before < 0.3 and time.monotonic() < until:
            time.sleep(0.05)
        found = seconds.busy() - before
        for pid in seconds.descendants(child.pid):
            os.kill(pid, signal.SIGKILL)
    assert 0.3 <= found < 3


@pytest.mark.parametrize(
    ("nodeid", "chapter", "scope"),
    [
        ("tests/autograder/test_course.py::test_a[ch04.attention]", "ch04", "[ch04"),
        ("tests/autograder/test_demo.py::test_a[f01]", "f01", "[f01"),
        ("tests/autograder/test_demo.py::test_a[toy]", "", "tests/autograder/test_demo.py"),
        ("tests/course/test_attention.py::test_a[3]", "ch04", "tests/course/test_attention.py"),
        ("tests/receipts/test_attention.py::test_e23", "ch04", "tests/receipts/test_attention.py"),
        ("tests/course/kernels/test_attention.py::test_a", "", "tests/course/kernels/test_attention.py"),
        ("tests/course/test_model.py::test_a", "", "tests/course/test_model.py"),
        ("source/ch04_attention/ch04_attention.ipynb::Cell 3", "ch04", "source/ch04_attention/ch04_attention.ipynb"),
        (f"{seconds.INTERPRETED}::test_a[decoding]", "", f"{seconds.INTERPRETED}::test_a[decoding]"),
    ],
)
def test_whose_part_a_test_is_and_what_shares_its_process(nodeid, chapter, scope):
    assert (seconds.chapter_of(nodeid), seconds.scope(nodeid)) == (chapter, scope)


def test_the_record_is_of_scopes():
    record = {
        "tests/autograder/test_a.py": {"ch04": 1.0, "": 2.0},
        "tests/autograder/test_b.py": {"ch04": 3.0},
        "b.py": {"f01": 5.0},
    }
    assert seconds.expected(record) == {"[ch04": 4.0, "tests/autograder/test_a.py": 2.0, "b.py": 5.0}


class Item:
    def __init__(self, nodeid):
        self.nodeid = nodeid


def test_a_queue_begins_with_what_is_new_and_what_takes_longest(tmp_path, monkeypatch):
    (tmp_path / "seconds.json").write_text(json.dumps({"a.py": {"": 1.0}, "b.py": {"": 9.0}}))
    monkeypatch.setattr(seconds, "RECORD", tmp_path / "seconds.json")
    items = [Item(nodeid) for nodeid in ("a.py::x", "b.py::x", "new.py::x", "a.py::y", "b.py::y")]
    seconds.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["new.py::x", "b.py::x", "b.py::y", "a.py::x", "a.py::y"]


TESTS = """import time, pytest
@pytest.mark.parametrize("chapter", ["ch04"])
def test_spin(chapter):
    start = time.process_time()
    while time.process_time() < start + 0.4:
        pass
"""


@pytest.fixture
def part(tmp_path, monkeypatch):
    """part(*options): a part whose test of chapter ch04 takes 0.4 s of the processor."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "test_it.py").write_text(TESTS)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take seconds to import
    command = f"pytest -q -p no:cacheprovider -p xdist -p tests.seconds --rootdir {tmp_path} {tmp_path}"
    return lambda *options: {"part": [" ".join([command, *options])]}


@pytest.mark.parametrize("options", [(), ("-n 1", "--dist loadfile", "--no-loadscope-reorder")], ids=["alone", "a worker"])
def test_the_run_tells_the_seconds_and_fails_beyond_the_budget(part, options, capfd, monkeypatch):
    assert run.run([], part(*options)) == 0
    said = capfd.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("ch04 ")]
    assert 0.3 < float(line.split()[-1]) < 5 and "test_it.py" in said
    monkeypatch.setattr(seconds, "BUDGET", 0.1)
    monkeypatch.setattr(seconds, "YARDSTICK", 1e9)  # a fast processor has no less
    assert run.run([], part(*options)) == 1
    assert "the tests of ch04 take 0 s of the processor; a chapter's part has 0" in capfd.readouterr().out
    monkeypatch.setattr(seconds, "YARDSTICK", 1e-9)  # and a slow one more
    assert run.run([], part(*options)) == 0


def test_what_was_recorded_of_other_files_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(seconds, "RECORD", tmp_path / "seconds.json")
    for file, taken in (("conftest.py", 1.04), ("Makefile", 2.0), ("gone.py", 3.0)):
        seconds.keep({"seconds": {file: {"": taken}}})
    assert json.loads(seconds.RECORD.read_text()) == {"conftest.py": {"": 1.0}, "Makefile": {"": 2.0}}


def test_the_record_is_of_files_that_are_there():
    assert [file for file in json.loads(seconds.RECORD.read_text()) if not (ROOT / file).exists()] == []
