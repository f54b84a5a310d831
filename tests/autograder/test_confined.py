"""The second wall: the process that runs the tests can do no more than read what it needs and compute."""

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from autograder.authoring.chapters import grade_id
from autograder.authoring.release import release
from autograder.authoring.scoring import score
from autograder.engine.supervisor import run_notebook
from autograder.errors import SandboxError
from autograder.grading.merge import merge
from autograder.limits import Limits
from autograder.trusted.confinement import confine_tests, tests_paths
from autograder.walls import syscalls
from tests.autograder.conftest import make_course, nbgrader, toy_cells

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no namespaces")
HERE = Path(__file__)


def confined(do, before=lambda: None):
    """What `do()` gives in a process that is shut in: its value, or the name of its error."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            before()
            try:
                kept = confine_tests([*tests_paths(), str(HERE)])
                told = {"kept": kept, "value": do()}
            except SandboxError as error:
                told = {"sandbox": error.part}
            except OSError as error:
                told = {"error": type(error).__name__, "kept": kept}
            os.write(writer, json.dumps(told).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        told = json.loads(file.read() or b'{"died": true}')
    os.waitpid(pid, 0)
    if "sandbox" in told and before.__name__ == "<lambda>":
        pytest.skip(f"this machine does not allow {told['sandbox']}")
    return told


REFUSED = {
    "a process": os.fork,
    "a program": lambda: subprocess.run(["true"]),
    "another program": lambda: os.execv(sys.executable, [sys.executable]),
    "the network": socket.socket,
    "a local socket": lambda: socket.socket(socket.AF_UNIX),
    "a signal to others": lambda: os.kill(os.getppid(), 0),
    "a signal to all": lambda: os.kill(-1, 0),
    "a handle of another process": lambda: os.pidfd_open(os.getppid()),
    "memory of another process": lambda: Path(f"/proc/{os.getppid()}/mem").read_bytes(),
    "a file": lambda: (HERE.parent / "written").write_text(""),
    "a file in a shared folder": lambda: Path("/tmp/written").write_text(""),
    "a file that is there": lambda: os.open(HERE, os.O_RDWR),
    "a folder": lambda: os.mkdir(HERE.parent / "made"),
    "to remove": lambda: os.unlink(HERE),
    "to rename": lambda: os.rename(HERE, HERE.with_suffix(".txt")),
    "to change who may": lambda: os.chmod(HERE, 0o777),
    "a link": lambda: os.symlink("a", HERE.parent / "b"),
    "a pipe with a name": lambda: os.mkfifo(HERE.parent / "pipe"),
    "memory without a limit": lambda: os.memfd_create("x"),
    "a namespace": lambda: syscalls.unshare(syscalls.CLONE_NEWUSER),
    "a mount": lambda: syscalls.mount_new("tmpfs", "/tmp", 0),
    "more capabilities": lambda: syscalls.set_capabilities(syscalls.CAP_SYS_ADMIN),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    assert confined(REFUSED[what]).get("error") in ("PermissionError", "OSError")
    assert not list(HERE.parent.glob("written")) and HERE.is_file()


def test_what_tests_need_works():
    def compute():
        import torch

        x = torch.rand(50, 50, requires_grad=True)
        (x @ x).sum().backward()
        thread = threading.Thread(target=lambda: found.append(1))
        found: list[int] = []
        thread.start()
        thread.join()
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write("text")
        a, b = socket.socketpair()
        a.send(b"x")
        return [len(HERE.read_text()) > 0, found, b.recv(1).decode(), x.grad.shape[0]]

    assert confined(compute)["value"] == [True, [1], "x", 50]


def test_only_what_it_needs_is_read(tmp_path):
    (tmp_path / "gradebook.db").write_text("points")
    told = confined(lambda: (tmp_path / "gradebook.db").read_text())
    if told["kept"]:
        assert told["error"] == "PermissionError"
    else:
        pytest.skip("this kernel has no Landlock")


def test_no_root_and_no_capability():
    told = confined(lambda: [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")])[
        "value"
    ]
    assert [line.split()[1] for line in told if line.startswith(("CapEff", "CapPrm", "CapInh"))] == ["0" * 16] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root is an ordinary user already")
def test_an_ordinary_user_can_shut_it_in():
    def become_somebody():
        os.setgroups([])
        os.setresgid(12345, 12345, 12345)
        os.setresuid(12345, 12345, 12345)
        syscalls.own_proc_files()

    if (told := confined(os.fork, become_somebody)).get("sandbox"):
        pytest.skip(f"this machine does not allow an ordinary user {told['sandbox']}")
    assert told["error"] == "PermissionError"


def test_a_kernel_that_refuses_is_said():
    def refuse():
        syscalls.no_new_privileges()
        syscalls.refuse_system_calls()

    assert confined(os.fork, refuse) == {"sandbox": "user namespaces"}


def test_an_unknown_machine_is_said(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "m68k")
    with pytest.raises(SandboxError, match="m68k"):
        confine_tests([])


ESCAPES = """import os
try:
    os.fork()
    secret_name = "a process"
except PermissionError:
    secret_name = "none"
assert double(2) == 4 and secret_name == {wanted!r}"""


@pytest.mark.parametrize(("kind", "wanted"), [("full", "none"), ("none", "a process")])
def test_the_engine_shuts_the_tests_in_with_the_sandbox(tmp_path, kind, wanted):
    cells = toy_cells()[:6]
    source = ESCAPES.format(wanted=wanted).replace("os.fork()\n", "os.fork() or os._exit(0)\n")
    cells[5] = new_code_cell(source, metadata=nbgrader("ch99-double", 3))
    chapter = make_course(tmp_path, cells=cells)
    release(chapter)
    notebook = merge(chapter, chapter.notebook).notebook
    try:
        run_notebook(notebook, chapter, 1, Limits(cell=20, notebook=60), sandbox=kind)
    except SandboxError as error:
        pytest.skip(str(error))
    assert score(next(cell for cell in notebook.cells if grade_id(cell) == "ch99-double")) == 3


def test_the_engine_does_not_go_on_without_the_wall(tmp_path, monkeypatch):
    """The tests' template is told of a machine of an unknown kind."""
    chapter = make_course(tmp_path)
    release(chapter)
    sitecustomize = tmp_path / "sitecustomize.py"
    sitecustomize.write_text("import platform\nplatform.machine = lambda: 'm68k'\n")
    code = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(HERE.parents[2])!r}]
from pathlib import Path
from autograder.engine import supervisor
from autograder.authoring.chapters import find_chapters
from autograder.grading.merge import merge
from autograder.errors import SandboxError
chapter = find_chapters(Path({str(tmp_path)!r}))[0]
supervisor.student_template = lambda sandbox: None
try:
    supervisor.run_notebook(merge(chapter, chapter.notebook).notebook, chapter, 1)
except SandboxError as error:
    print(error.part)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "a filter of system calls", ran.stderr


def test_what_it_costs():
    """A few milliseconds of this process' time; a submission takes hundreds."""
    import time

    def cost():
        return time.process_time() - start

    start = time.process_time()
    assert confined(cost)["value"] < 0.1
