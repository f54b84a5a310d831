"""What student code is held in: its own namespaces, a read-only environment, an unprivileged user, limits.

The way in has two steps, so that each student pays for the second only:

1. `enter_view`, once, in the process that becomes the template: user, mount, pid, ipc, uts and network
   namespaces, and a root folder that holds the Python environment, the package `course` and nothing else.
2. `enter`, in each child: mount, ipc, uts and network namespaces of its own (the pid namespace is made by the
   fork), a private tmpfs at /tmp, limits, no capabilities, and a filter of system calls.

Where the kernel does not allow a part, SandboxError names it. Nothing here goes on without a part, apart from
the memory and pids cgroup and /proc, which `autograder doctor` tells of.
"""

import contextlib
import os
import platform
import resource
import signal
import socket
import sys
import tempfile
from pathlib import Path

from autograder.confined.guard import OPEN
from autograder.errors import SandboxError
from autograder.limits import KINDS, Limits, address_space, set_limits
from autograder.walls import cgroup, syscalls
from autograder.walls.steps import PACKAGE, STUDENT, TOP, become_nobody, enter_user_namespace, environment_paths, needs

WORK = "/tmp/notebook"  # the working folder of a student in the sandbox
OTHERS = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWNET


# ---------------------------------------------------------------- the view of the file system


def _build(root: str) -> None:
    """Fill an empty folder with a root of the file system for students."""
    syscalls.mount_new("tmpfs", root, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755,size=1m")
    shown: set[str] = set()

    def show(path: str, devices: bool = False) -> None:
        if any(path == other or path.startswith(other + "/") for other in shown):
            return
        target = root + path
        if os.path.isdir(path):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(target).touch()
        syscalls.bind(path, target)
        syscalls.make_read_only(target, devices)
        shown.add(path)

    for path in environment_paths():
        if os.path.islink(path) and os.path.dirname(path) == "/":  # /lib is usr/lib on most systems
            os.symlink(os.readlink(path), root + path)
        else:
            show(path)
            show(os.path.realpath(path))
    _hide_answers(root)
    package = str(PACKAGE)
    if any(package.startswith(other + "/") for other in shown):  # installed beside the environment's packages
        syscalls.mount_new("tmpfs", root + package, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755,size=4k")
        syscalls.make_read_only(root + package)

    for name in ("null", "zero", "full", "random", "urandom"):
        show(f"/dev/{name}", devices=True)
    for name, target in {
        "fd": "/proc/self/fd",
        "stdin": "/proc/self/fd/0",
        "stdout": "/proc/self/fd/1",
        "shm": "/tmp/shm",
    }.items():
        os.symlink(target, f"{root}/dev/{name}")
    for folder in ("/tmp", "/proc"):
        os.makedirs(root + folder, exist_ok=True)
    os.makedirs(root + "/etc", exist_ok=True)
    Path(root + "/etc/passwd").write_text(f"student:x:{STUDENT}:{STUDENT}:student:{WORK}:/bin/sh\n")
    Path(root + "/etc/group").write_text(f"student:x:{STUDENT}:\n")
    syscalls.bind("/proc", root + "/proc")  # a new /proc may be mounted in a user namespace only where one is seen already


def _hide_answers(root: str) -> None:
    """Leave of the modules of `course` that hold answers the names of their files: they are imported already."""
    import course

    package = Path(course.__file__).resolve().parent
    inside = Path(f"{root}{package}")
    syscalls.mount_new("tmpfs", str(inside), syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755,size=1m")
    for path in sorted(package.iterdir()):
        target = inside / path.name
        if path.is_dir() and (path.name in OPEN or not any(path.glob("*.py"))):
            if path.name != "__pycache__":
                target.mkdir()
                syscalls.bind(str(path), str(target))
        elif path.is_dir():
            target.mkdir()
            for file in path.glob("*.py"):
                (target / file.name).touch()
        else:
            target.touch()
            if path.stem in OPEN or path.name == "__init__.py":
                syscalls.bind(str(path), str(target))
    syscalls.make_read_only(str(inside))


def _change_root() -> None:
    with needs("mounts in a mount namespace"):
        syscalls.make_private("/")
    with needs("read-only mounts of the environment (Linux 5.12 or later)"):
        _build(TOP)
        syscalls.change_root(TOP)
        syscalls.make_read_only("/", recursive=False)


# ---------------------------------------------------------------- the way in


def enter_view() -> None:
    """Move this process into its namespaces and onto a root that shows the environment only.

    Its next child is the first process of the new pid namespace, and must call `enter_processes`. It has all
    capabilities in the user namespace and none outside, and when root called, is nobody outside.

    Raises:
        SandboxError: naming the part that the kernel does not allow.
    """
    if sys.platform != "linux":
        raise SandboxError("namespaces", f"{platform.system()} has none")
    if platform.machine() not in syscalls.MACHINES:
        raise SandboxError("a filter of system calls", f"its numbers on {platform.machine()} are not known here")
    changed = False
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):  # root of a container, which may do no more than any user
            syscalls.unshare(syscalls.CLONE_NEWNS)
            _change_root()  # as root, who can reach the environment wherever it is
            changed = True
        become_nobody()
    enter_user_namespace()
    with needs("mount, pid, ipc, uts and network namespaces"):
        syscalls.unshare(OTHERS)
    if not changed:
        _change_root()


def enter_processes() -> None:
    """In the first process of the pid namespace: end with the parent, and see only the own processes in /proc."""
    syscalls.die_with_parent(signal.SIGKILL)
    address_space()
    _mount_proc()


def _mount_proc() -> None:
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    try:
        syscalls.mount_new("proc", "/proc", flags)
    except PermissionError:  # in a container that hides parts of /proc: none instead of one that shows too much
        syscalls.mount_new("tmpfs", "/proc", flags, "mode=555,size=4k")


def enter(limits: Limits) -> None:
    """In a student's process, the first of its pid namespace: everything but the filter and the capabilities.

    Raises:
        SandboxError: naming the part that the kernel does not allow.
    """
    with needs("mount, ipc, uts and network namespaces"):
        syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWNET)
    with needs("a private /tmp and /proc"):
        _mount_proc()
        _mount_tmp(f"mode=755,size={limits.folder},nr_inodes=20000,uid={STUDENT},gid={STUDENT}")
    for folder in (WORK, "/tmp/shm"):
        os.mkdir(folder)
    os.chdir(WORK)
    with contextlib.suppress(OSError):  # where memory runs out, students' processes go first
        Path("/proc/self/oom_score_adj").write_text("1000")
    set_limits(limits)
    if os.path.exists("/proc/self"):  # a user's processes are counted in each user namespace for itself (Linux 5.14)
        enter_user_namespace()
    with needs("a limit on processes"):
        resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))


def _mount_tmp(options: str) -> None:
    """A new /tmp, in which what the environment has below the old one is seen again."""
    shown = {place for path in environment_paths() for place in (path, os.path.realpath(path))}
    below = sorted((place for place in shown if place.startswith("/tmp/")), key=len)
    old = os.open("/tmp", os.O_PATH | os.O_DIRECTORY)
    syscalls.mount_new("tmpfs", "/tmp", syscalls.MS_NOSUID | syscalls.MS_NODEV, options)
    os.fchdir(old)  # relative paths lead below the new mount, absolute ones to it
    for path in below:
        if os.path.exists(path):  # below another one that has been shown
            continue
        if os.path.isdir(os.path.relpath(path, "/tmp")):
            os.makedirs(path)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).touch()
        syscalls.bind(os.path.relpath(path, "/tmp"), path)
    os.close(old)


def lock() -> None:
    """The last step: give up every capability, for good, and have the system calls filtered."""
    with needs("giving up capabilities"):
        syscalls.no_new_privileges()
        syscalls.drop_bounding_set()
        syscalls.set_capabilities()
        syscalls.die_with_parent(signal.SIGKILL)  # a change of capabilities may have cleared it
    with needs("a filter of system calls (seccomp)"):
        syscalls.refuse_system_calls()


# ---------------------------------------------------------------- what the template uses


class Sandbox:
    """The full one, step by step as the template takes them.

    Attributes:
        group: the control group of the template, if one is allowed here.
        sees_memory: whether what children use together can be seen, and is to be watched.
    """

    sees_memory = True

    def __init__(self):
        self._groups: cgroup.Groups | None = None
        self._own = -1  # the open file of the template's own pid namespace

    @property
    def group(self) -> str | None:
        return str(self._groups.path) if self._groups else None

    def enter(self, control: socket.socket) -> None:
        """Go on in the sandbox, as the first process of its pid namespace; the process that was waits for its end."""
        self._groups = cgroup.enter()
        enter_view()
        pid = os.fork()
        if pid:
            control.close()
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0x7F)
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        enter_processes()

    def folder(self) -> str | None:
        """A working folder for a child; None if it makes its own, which nobody else sees."""
        return None

    def before_fork(self, name: str, limits: Limits) -> None:
        """Raises OSError."""
        if self._groups:
            self._groups.make(name, limits)
        syscalls.unshare(syscalls.CLONE_NEWPID)  # the next child is the first process of a new pid namespace

    def after_fork(self) -> None:
        """In the template."""
        syscalls.setns(self._own, syscalls.CLONE_NEWPID)

    def join(self, name: str) -> None:
        """In a child, while all files are open still."""
        if self._groups:
            with needs("a control group for a student"):
                self._groups.join(name)

    def enter_child(self, limits: Limits, folder: str | None) -> None:
        """In a child: everything but what `lock` does."""
        enter(limits)

    def lock(self) -> None:
        """In a child, the last step."""
        lock()

    def processor_time(self, pid: int) -> float | None:
        """Seconds that a child and what it started have taken; None where that cannot be seen."""
        return _processor_time(pid, full=True)

    def kill(self, pid: int, ended: bool) -> None:
        """End a child and all that it started; the end of its first process is that of all."""
        if not ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def end(self, name: str) -> bool:
        """After a child's end: whether its memory ran out."""
        return self._groups is not None and self._groups.remove(name)


class NoSandbox(Sandbox):
    """A process of its own with limits, in a folder of its own."""

    sees_memory = False

    def enter(self, control: socket.socket) -> None:
        pass

    def folder(self) -> str:
        return tempfile.mkdtemp(prefix="autograder-")

    def before_fork(self, name: str, limits: Limits) -> None:
        pass

    def after_fork(self) -> None:
        pass

    def enter_child(self, limits: Limits, folder: str | None) -> None:
        os.chdir(folder)
        set_limits(limits)
        if sys.platform == "linux":
            syscalls.die_with_parent(signal.SIGKILL)

    def lock(self) -> None:
        pass

    def processor_time(self, pid: int) -> float | None:
        return _processor_time(pid, full=False)

    def kill(self, pid: int, ended: bool) -> None:
        for stop in (os.kill, os.killpg):  # what it started may live on
            with contextlib.suppress(ProcessLookupError, PermissionError):
                stop(pid, signal.SIGKILL)


SANDBOXES = dict(zip(KINDS, (Sandbox, NoSandbox), strict=True))


def memory_by_child() -> dict[int, int]:
    """Bytes of memory of the pid namespaces below this process' own, without what they share with it.

    The keys are the pids, as seen here, of their first processes.
    """
    own = _resident("self")
    first: dict[int, int] = {}
    used: dict[int, int] = {}
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        with contextlib.suppress(OSError, ValueError):
            space = os.stat(f"/proc/{name}/ns/pid").st_ino
            used[space] = used.get(space, 0) + max(0, _resident(name) - own)
            if Path(f"/proc/{name}/status").read_text().split("NSpid:")[1].split("\n")[0].split()[-1] == "1":
                first[space] = int(name)
    return {first[space]: size for space, size in used.items() if space in first}


def _resident(process: str) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _processor_time(child: int, full: bool) -> float | None:
    """Seconds that a child and what it started have taken: its pid namespace, or its session where there is none.

    None where there is no /proc.
    """
    ticks = None
    with contextlib.suppress(OSError):
        own = os.stat(f"/proc/{child}/ns/pid").st_ino
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError):  # it has just ended
                told = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if os.stat(f"/proc/{name}/ns/pid").st_ino == own if full else int(told[3]) == child:
                    ticks = (ticks or 0) + sum(map(int, told[11:15]))
    return None if ticks is None else ticks / os.sysconf("SC_CLK_TCK")
