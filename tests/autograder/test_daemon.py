"""The grading daemon: started once, warm for all who ask, only for its user, gone when idle, missed by nobody."""

import copy
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nbgrader.utils import is_grade

from autograder.authoring.chapters import grade_id
from autograder.authoring.scoring import score
from autograder.doors import ask, daemon
from autograder.grading.merge import merge
from autograder.limits import Limits


@pytest.fixture(scope="module")
def place():
    """The folder that a daemon of these tests' own may use; the daemon ends with them."""
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", place)  # a socket's path must be short
        yield Path(place)
        ask.stop()


def run(hand_in, **given) -> tuple[dict, list[str]]:
    notebook = merge(hand_in.chapter, copy.deepcopy(hand_in.notebook)).notebook
    flags = ask.run(notebook, hand_in.chapter, 1, **given)
    tests = [cell for cell in notebook.cells if cell.cell_type == "code" and is_grade(cell)]
    points = {grade_id(cell): score(cell) for cell in tests}
    return points, flags


FULL = {"ch99-double": 3.0, "ch99-three": 1.0, "ch99-letter": 1.0}


def daemon_pid() -> int:
    """The process that answers; it is started where there is none."""
    with ask.connected(ask.address()) as connection:
        return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


def test_who_ask_at_the_same_time_start_one_daemon(place, perfect):
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: run(perfect), range(3)))
    for points, flags in results:
        assert points == FULL and flags == []
    assert len(list(place.rglob("*.sock"))) == 1


def test_only_its_user_can_reach_it(place, perfect):
    run(perfect)
    assert ask.address().parent.stat().st_mode & 0o777 == 0o700 and ask.address().stat().st_mode & 0o777 == 0o600


def test_the_limits_and_the_sandbox_go_with_the_request(place, perfect):
    perfect.answer(double="def double(x):\n    while True:\n        pass")
    points, flags = run(perfect, limits=Limits(call=0.5, patience=60), sandbox="none")
    assert points["ch99-double"] == 0 and points["ch99-three"] == 1 and "0.5 s" in " ".join(flags)
    assert flags[-1].endswith("so it was run once more, alone: it hit a limit again")


def test_a_second_run_has_all_places_and_two_of_them_do_not_wait_for_each_other(place, monkeypatch):
    monkeypatch.setattr(daemon, "AT_ONCE", 3)
    server, inside, most = daemon.Daemon(place / "alone.sock"), [], []

    def work(alone: bool) -> None:
        with server.busy(alone):
            inside.append(alone)
            most.append(tuple(inside))
            time.sleep(0.02)
            inside.remove(alone)

    with ThreadPoolExecutor(9) as pool:
        list(pool.map(work, [False, True, False, False, True, False, True, False, False]))
    server.server_close()
    assert len(most) == 9 and all(len(seen) <= 3 and (True not in seen or len(seen) == 1) for seen in most)
    assert server.room._value == 3 and server.running == 0


def test_a_daemon_that_was_killed_is_started_again(place):
    before = daemon_pid()
    os.kill(before, signal.SIGKILL)
    os.waitpid(before, 0)
    assert daemon_pid() != before


def test_what_cannot_be_run_is_told_and_the_daemon_goes_on(place, perfect, make):
    broken = make(answers="1 / 0")
    with pytest.raises(ask.DaemonError, match=r"answers\.py"):
        ask.run(merge(broken, None).notebook, broken, 1)
    assert run(perfect)[0] == FULL


def test_it_ends_when_nobody_asks(place, monkeypatch):
    ask.stop()
    monkeypatch.setenv("AUTOGRADER_DAEMON_IDLE", "0.5")
    daemon_pid()
    end = time.monotonic() + 60
    while ask.address().exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_it_ends_when_nobody_can_ask():
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as own, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", own)
        pid = daemon_pid()
    assert os.waitpid(pid, 0) == (pid, 0)


def test_to_stop_what_does_not_run_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    ask.stop()


def test_a_folder_that_others_can_open_is_refused(tmp_path, monkeypatch, toy):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / f"autograder-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(ask.DaemonError, match="not a folder that only you can open"):
        ask.run(merge(toy, None).notebook, toy, 1)


def test_a_daemon_that_does_not_start_says_why(tmp_path, monkeypatch, toy):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(ask.sys, "executable", "/bin/false")
    with pytest.raises(ask.DaemonError, match="did not start: it ended with 1"):
        ask.run(merge(toy, None).notebook, toy, 1)


def test_the_jupyter_server_imports_no_torch():
    modules = "autograder.dropin, autograder.preprocessors, autograder.feedback, autograder.outputs"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ask.HERE.parent).returncode == 0
