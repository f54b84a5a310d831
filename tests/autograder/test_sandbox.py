"""What the sandbox promises, tried from inside; as the user that runs the tests, and by root as an ordinary user too."""

import errno
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import matplotlib
import pytest

from autograder.engine.student import Template
from autograder.errors import SandboxError
from autograder.limits import Limits
from autograder.walls import syscalls
from autograder.walls.steps import environment_paths
from tests.autograder import as_user
from tests.autograder.inside import Asked

ROOT = Path(__file__).resolve().parents[2]
SERVE = "tests.autograder.inside:serve"
SECRET = "a-secret-of-the-grader"


@pytest.fixture(scope="module")
def template():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("API_TOKEN", SECRET)
        started = Template("full", serve=SERVE)
    with started:
        try:
            started.wait()
        except SandboxError as error:
            pytest.skip(str(error))
        yield started


@pytest.fixture
def student(template):
    with template.fork() as started:
        yield Asked(started)


def running(mark):
    """The processes of this machine whose command line holds the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def gone(mark):
    """Whether they are gone in a while."""
    end = time.monotonic() + 20
    while running(mark) and time.monotonic() < end:
        time.sleep(0.02)
    return not running(mark)


def escapes(mark):
    """Student code that starts a process which nothing ties to it; the mark is in its command line."""
    return f"""
import os, signal, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "{mark}"])
    os._exit(0)
os.wait()
import time
while True:
    try:
        if any(b"{mark}" in open(f"/proc/{{p}}/cmdline", "rb").read() for p in os.listdir("/proc") if p.isdigit()):
            break
    except OSError:
        pass
    time.sleep(0.01)
"""


# ---------------------------------------------------------------- who and where


def test_an_unprivileged_user_without_capabilities(student):
    status = dict(
        line.split(":\t", 1) for line in student("result = open('/proc/self/status').read()").splitlines() if ":\t" in line
    )
    assert status["Uid"].split() == ["1000"] * 4
    assert status["Groups"].split() in ([], ["1000"])
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    inside, _, count = student("result = open('/proc/self/uid_map').read()").split()
    assert (inside, count) == ("1000", "1")


def test_outside_it_is_not_root(student):
    mark = f"who-{os.getpid()}"
    student(escapes(mark))
    [pid] = running(mark)
    assert os.stat(f"/proc/{pid}").st_uid == (os.getuid() or 65534)


def test_only_its_own_processes_are_seen(student):
    assert student("import os; result = [p for p in os.listdir('/proc') if p.isdigit()]") == ["1"]
    assert student.error(f"os.kill({os.getpid()}, 9)").startswith("ProcessLookupError")


def test_nothing_but_the_environment_is_seen(student):
    assert set(student("import os; result = os.listdir('/')")) <= {
        *("bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "tmp", "usr"),
        *(Path(path).parts[1] for path in (sys.prefix, sys.base_prefix, ROOT)),
    }
    seen = student(f"result = os.listdir({str(ROOT)!r})")
    assert set(seen) <= {"course", ".venv"}
    hidden = [
        __file__,
        ROOT / "source",
        ROOT / "autograder",
        "/etc/shadow",
        "/etc/hostname",
        "/var",
        "/run",
        "/sys",
        Path.home() / ".cache",
    ]
    assert student(f"result = [p for p in {[str(path) for path in hidden]} if os.path.exists(p)]") == []
    assert student("result = sorted(os.listdir('/etc'))") == sorted(
        {
            "passwd",
            "group",
            *(n for n in ("ld.so.cache", "fonts", "alternatives", "localtime", "mime.types") if Path("/etc", n).exists()),
        }
    )


def test_files_of_the_grader_cannot_be_read(student, tmp_path):
    (tmp_path / "gradebook.db").write_text("points")
    assert student.error(f"open({str(tmp_path / 'gradebook.db')!r})").startswith("FileNotFoundError")
    assert student.error("open('/proc/1/root/etc/shadow')").startswith("FileNotFoundError")


def test_the_environment_variables_hold_no_secret(student):
    assert student("result = 'API_TOKEN' in os.environ") is False
    assert SECRET not in student("result = open('/proc/self/environ').read() + open('/proc/1/cmdline').read()")
    assert set(student("result = list(os.environ)")) >= {"PATH", "HOME", "OMP_NUM_THREADS"}


def test_no_file_of_the_template_is_open(student):
    assert student(
        "import stat; result = sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}'))"
    ) == [0, 1, 2, 3]
    assert student("result = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]") == ["/dev/null"] * 3


def test_nothing_outside_tmp_can_be_written(student):
    code = """
import os, sys, sysconfig, course
result = []
places = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", sys.prefix + "/lib", sysconfig.get_paths()["purelib"], sysconfig.get_paths()["stdlib"],
          os.path.dirname(course.__file__)]
for place in places:
    for way in (lambda: open(place + "/new", "w"), lambda: os.mkdir(place + "/folder"), lambda: os.rename(course.__file__, place + "/x")):
        try:
            way()
            result.append(place)
        except OSError:
            pass
for file in (course.__file__, sys.executable, "/etc/passwd", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
    for way in (lambda: open(file, "a"), lambda: os.unlink(file), lambda: os.chmod(file, 0o777)):
        try:
            way()
            result.append(file)
        except OSError:
            pass
"""
    assert student(code) == []


def test_each_student_has_its_own_tmp(template):
    with template.fork() as one, template.fork() as other:
        one, other = Asked(one), Asked(other)
        one("open('/tmp/mine', 'w').write('x'); open('mine', 'w').write('x')")
        environment = {path.split("/")[2] for path in environment_paths() if path.startswith("/tmp/")}
        assert other("import os; result = os.getcwd(), os.listdir(), sorted(os.listdir('/tmp'))") == [
            "/tmp/notebook",
            [],
            sorted({"notebook", "shm"} | environment),
        ]
    assert not Path("/tmp/mine").exists()


def test_programs_and_shared_memory_work(student):
    assert (
        student(
            "import subprocess; result = subprocess.run(['sh', '-c', 'echo $((6 * 7)); id -un'], capture_output=True, text=True).stdout"
        )
        == "42\nstudent\n"
    )
    assert (
        student(
            "from multiprocessing import shared_memory; s = shared_memory.SharedMemory(create=True, size=100); s.unlink(); result = s.size"
        )
        >= 100
    )
    assert (
        student(
            "import sys; result = subprocess.run([sys.executable, '-c', 'import numpy; print(1)'], capture_output=True, text=True).stdout"
        )
        == "1\n"
    )


# ---------------------------------------------------------------- network


def test_no_network(student):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0autograder-test-{os.getpid()}")
        local.listen()
        server.settimeout(0.2)
        port = server.getsockname()[1]
        assert student.error(f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)").startswith("OSError")
        assert student.error(f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))").startswith(
            "OSError"
        )
        assert student.error(f"socket.socket(socket.AF_UNIX).connect('\\0autograder-test-{os.getpid()}')").startswith(
            "ConnectionRefusedError"
        )
        assert student.error("socket.create_connection(('1.1.1.1', 53), 5)").startswith("OSError")
        assert student.error("socket.getaddrinfo('example.org', 80)").startswith("gaierror")
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("family", [16, 17, 38, 40])  # netlink, packet, alg, vsock
def test_no_other_family_of_sockets(student, family):
    assert student.error(f"import socket; socket.socket({family}, socket.SOCK_RAW)").startswith(
        f"OSError: [Errno {errno.EAFNOSUPPORT}]"
    )


# ---------------------------------------------------------------- system calls


def test_refused_system_calls(student):
    pairs = {
        name: number for name, number in ((n, syscalls._number(p)) for n, p in syscalls._REFUSED.items()) if number is not None
    }
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
result = {{}}
for name, number in {pairs}.items():
    ctypes.set_errno(0)
    result[name] = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 5), ctypes.get_errno()
"""
    assert student(code) == {name: [-1, errno.EPERM] for name in pairs}


def test_no_new_namespaces_by_clone(student):
    clone, clone3 = (syscalls._number(syscalls._SYSTEM[name]) for name in ("clone", "clone3"))
    code = """
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
result = []
for number, flag in {}:
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), ctypes.c_long(flag | signal.SIGCHLD), *[ctypes.c_long(0)] * 4)
    result.append(ctypes.get_errno())
"""
    kinds = [syscalls.CLONE_NEWUSER, syscalls.CLONE_NEWNS, syscalls.CLONE_NEWPID, syscalls.CLONE_NEWNET, syscalls.CLONE_NEWIPC]
    assert student(code.format([(clone, kind) for kind in kinds])) == [errno.EPERM] * len(kinds)
    assert student(code.format([(clone3, 0)])) == [errno.ENOSYS]


# ---------------------------------------------------------------- limits


def test_memory_of_a_process(template):
    with template.fork(Limits(memory=200 << 20)) as started:
        student = Asked(started)
        assert student.error("x = bytearray(300 << 20)").startswith("MemoryError")
        assert "allocate memory" in student.error("import torch; torch.ones(100 << 20)")
        assert student("result = len(bytearray(100 << 20))") == 100 << 20


def test_memory_of_all_processes_together(template):
    with template.fork(Limits(memory=200 << 20)) as started:
        code = """
import os, time
for i in range(5):
    if os.fork() == 0:
        x = b"x" * (100 << 20)
        time.sleep(60)
time.sleep(60)
"""
        assert Asked(started).ends(code) == "was ended: it and what it started used more than 200 MB of memory"


def test_processes_and_a_fork_bomb(template):
    with template.fork(Limits(processes=20)) as bomb, template.fork(Limits(processes=20)) as beside:
        student, mark = Asked(bomb), f"bomb-{os.getpid()}"
        count = student("""
import os, time
result = 0
try:
    while result < 1000:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        result += 1
except BlockingIOError:
    pass
""")
        assert 0 < count < 20
        assert Asked(beside)("import subprocess; result = subprocess.run(['true']).returncode") == 0
        student.stream.write(b'"import os\\nwhile True:\\n    try:\\n        os.fork()\\n    except OSError:\\n        pass"\n')
        student.stream.flush()
        assert Asked(beside)("result = 6 * 7") == 42
        bomb.kill()
        with template.fork() as after:
            assert Asked(after)("result = 6 * 7") == 42
    assert not running(mark)


def test_files(template):
    with template.fork(Limits(file_size=1 << 20, folder=3 << 20, open_files=64)) as started:
        student = Asked(started)
        assert f"[Errno {errno.EFBIG}]" in student.error(
            "f = open('big', 'wb', buffering=0); f.write(bytes(1 << 20)); f.write(b'x')"
        )
        assert f"[Errno {errno.ENOSPC}]" in student.error("for i in range(9): open(f'f{i}', 'wb').write(bytes(1 << 20))")
        assert f"[Errno {errno.EMFILE}]" in student.error("files = [open('/dev/null') for i in range(99)]")
        assert student("import resource; result = resource.getrlimit(resource.RLIMIT_CORE)") == [0, 0]


def test_limits_cannot_be_raised(template):
    with template.fork(Limits(memory=200 << 20)) as started:
        student = Asked(started)
        for name in ("AS", "NPROC", "FSIZE", "NOFILE", "CORE"):
            code = f"import resource; resource.setrlimit(resource.RLIMIT_{name}, (1 << 40, 1 << 40))"
            assert student.error(code).split(":")[0] in ("ValueError", "PermissionError")


# ---------------------------------------------------------------- the end


def test_whatever_it_started_ends_with_it(template):
    mark = f"escaped-{os.getpid()}"
    with template.fork() as started:
        Asked(started)(escapes(mark))
        assert len(running(mark)) == 1
    assert not running(mark)


def test_all_end_with_the_template(template):
    mark = f"orphan-{os.getpid()}"
    with Template("full", serve=SERVE) as other:
        student = other.fork()
        Asked(student)(escapes(mark))
        assert running(mark)
        other.process.kill()
        assert gone(mark)
        assert "is gone" in student.how_it_ended()


def test_all_end_with_the_grader(template):
    mark = f"left-{os.getpid()}"
    code = f"""
import os, signal, sys
sys.path[:0] = [{str(ROOT)!r}]
from autograder.engine.student import Template
from tests.autograder import as_user
from tests.autograder.inside import Asked
student = Template("full", serve={SERVE!r}).fork()
Asked(student)({escapes(mark)!r})
print("started", flush=True)
signal.pause()
"""
    grader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with grader:
        assert grader.stdout.readline() == b"started\n"
        assert running(mark)
        grader.kill()
    assert gone(mark)


def test_a_thread_may_start_it_and_end(template):
    started = []
    thread = threading.Thread(target=lambda: started.append(template.fork()))
    thread.start()
    thread.join()
    with started[0] as student:
        assert Asked(student)("result = 6 * 7") == 42


# ---------------------------------------------------------------- other users, other machines


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("kind", "tests"),
    [
        ("user", "not end_with and not refuses"),  # what starts templates of its own is the same for all users
        ("container", "unprivileged or not_root or nothing or no_network or end_with_it"),
        ("masked", "nothing_outside or own_tmp or no_network or refused or memory_of_a_process or thread_may"),
    ],
    ids=["user", "container", "masked"],
)
def test_all_of_this_as_somebody_else(template, tmp_path, kind, tests):
    cache = tmp_path / "matplotlib"
    shutil.copytree(matplotlib.get_cachedir(), cache)
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, as_user.UID, as_user.UID)
    reached = [sys.prefix, sys.base_prefix, str(ROOT), str(tmp_path)]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'tmp'}",
        "-k",
        f"({tests}) and not somebody_else",
        __file__,
    ]
    done = subprocess.run(
        [sys.executable, as_user.__file__, kind, *reached, "--", *command],
        env={**os.environ, "HOME": str(tmp_path), "MPLCONFIGDIR": str(cache), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 5


REFUSING = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from autograder.walls import syscalls
syscalls.no_new_privileges()
syscalls.refuse_system_calls()
"""


def test_a_machine_that_refuses_says_so():
    """A container's usual filter refuses namespaces, as students' own filter does."""
    code = f"""{REFUSING}
from autograder.errors import SandboxError
from autograder.engine.student import Template
from tests.autograder import as_user
from tests.autograder.inside import Asked
try:
    Template("full", serve={SERVE!r}).fork()
except SandboxError as error:
    print(error.code, error)
print(Asked(Template("none", serve={SERVE!r}).fork())("result = 6 * 7"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told, other = done.stdout.splitlines()
    assert told.startswith("5 the sandbox cannot be set up: this machine does not allow ")
    assert "namespace" in told
    assert "--sandbox=none" in told
    assert other == "42"
