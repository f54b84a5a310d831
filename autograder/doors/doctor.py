"""What of the sandbox works on this machine: each part is tried for itself, in a process of its own."""

import contextlib
import json
import mmap
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from autograder.confined import sandbox
from autograder.engine.student import Template
from autograder.errors import CourseError, SandboxError
from autograder.limits import Limits, set_limits
from autograder.trusted.confinement import confine_tests, tests_paths
from autograder.walls import cgroup, steps, syscalls


@dataclass(frozen=True)
class Finding:
    """One line of the table."""

    part: str
    works: bool
    told: str
    needed: bool = True
    """Whether the full sandbox is impossible without it."""


def examine() -> list[Finding]:
    """Try every part. The last line is the whole: a template, and one child of it."""
    if sys.platform != "linux":
        return [Finding("namespaces", False, f"{platform.system()} has none: grade in a Linux machine or container")]
    found = [_tried(part, step, told) for part, step, told in PARTS]
    found.append(_cgroup())
    found.append(_whole())
    return found


def possible(findings: list[Finding]) -> bool:
    """Whether the full sandbox can be had."""
    return all(finding.works for finding in findings if finding.needed)


def _tried(part: str, step: Callable[[], object], told: str) -> Finding:
    """Take a step in a child and report whether the kernel allowed it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = [True, step() or told]
        except SandboxError as error:
            answer = [False, f"{error.part}: {error.why}"]
        except Exception as error:
            answer = [False, getattr(error, "strerror", None) or repr(error)]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return Finding(part, *json.loads(answer or b'[false, "the process that tried it ended"]'))


def _user_namespace() -> None:
    if os.geteuid() == 0:
        steps.become_nobody()
    steps.enter_user_namespace()


def _namespaces() -> None:
    _user_namespace()
    syscalls.unshare(sandbox.OTHERS)


def _view() -> str:
    sandbox.enter_view()
    return f"{len(steps.environment_paths())} paths of the environment, nothing else"


NO_PROC = (
    "no /proc: this container hides parts of it, so students get none, and only a cgroup bounds their processes' memory together"
)


def _student() -> str:
    sandbox.enter_view()
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    sandbox.enter_processes()
    sandbox.enter(Limits())
    return "seen" if os.path.exists("/proc/self") else NO_PROC


def _filter() -> str:
    syscalls.no_new_privileges()
    syscalls.refuse_system_calls()
    with contextlib.suppress(PermissionError):
        syscalls.unshare(0)
        raise OSError("the filter lets pass what it should refuse")
    return f"on {platform.machine()}"


def _tests() -> str:
    kept = confine_tests(tests_paths())
    with contextlib.suppress(PermissionError):
        os.fork()
        raise OSError("the filter lets pass what it should refuse")
    who = "root without capabilities" if os.geteuid() == 0 else f"uid {os.geteuid()}"
    seen = "what they need" if kept else "all that this user may read (no Landlock)"
    return f"no processes, no network, files read-only; {who}; {seen} is read"


def _address_space() -> str:
    limits = Limits()
    set_limits(limits)
    try:
        mmap.mmap(-1, limits.memory + (1 << 20))  # new addresses, where a bytearray may take what was freed; not touched
    except (MemoryError, OSError):
        return f"{limits.memory >> 30} GiB a process, {limits.processes} processes"
    raise OSError("a process got more than its limit")


PARTS: list[tuple[str, Callable[[], object], str]] = [
    (
        "unprivileged user",
        lambda: steps.become_nobody() if os.geteuid() == 0 else None,
        f"not root: uid {os.geteuid() or steps.NOBODY}",
    ),
    ("user namespace", _user_namespace, ""),
    ("mount, pid, ipc, uts and network namespaces", _namespaces, ""),
    ("read-only environment", _view, ""),
    ("private /tmp, own /proc", _student, ""),
    ("filter of system calls", _filter, ""),
    ("the tests' process shut in", _tests, ""),
    ("limit on address space", _address_space, ""),
]


def _cgroup() -> Finding:
    part, parent = "memory and pids cgroup", cgroup.place()
    if parent:
        return Finding(part, True, f"below {parent}", needed=False)
    told = "none may be made here: each process has its own limits, and a submission that uses more in several is ended"
    return Finding(part, False, told, needed=False)


def _whole() -> Finding:
    start = time.perf_counter()
    try:
        with Template("full", serve="time:sleep") as template:
            template.wait()
            ready = time.perf_counter()
            template.fork().kill()
            forked = time.perf_counter()
    except CourseError as error:
        return Finding("all together", False, str(error))
    return Finding(
        "all together", True, f"ready in {ready - start:.1f} s, a student's process in {1000 * (forked - ready):.0f} ms"
    )
