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
import math
import os
import platform
import resource
import signal
import site
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.walls import syscalls
from autograder.authoring.chapters import CourseError
from autograder.confined.guard import OPEN

KINDS = ("full", "none")
WORK = "/tmp/notebook"  # the working folder of a student in the sandbox
NOBODY = 65534  # the uid and gid that root changes to
STUDENT = 1000  # the uid and gid that a student sees
OTHERS = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWNET
_TOP = "/sys"  # every Linux has this folder, and the sandbox needs nothing in it: a place to build the new root


class SandboxError(CourseError):
    """This machine does not allow a part of the sandbox."""

    code = 5

    def __init__(self, part: str, why: str):
        self.part, self.why = part, why
        super().__init__(
            f"the sandbox cannot be set up: this machine does not allow {part} ({why}). `autograder doctor` tells what is "
            "missing; `--sandbox=none` would run student code without the sandbox."
        )


@dataclass(frozen=True)
class Limits:
    """What a submission may use. Sizes are bytes, times are seconds of processor time that its own code takes.

    A busy machine takes none of it, nor does a test's function that an answer calls, or the way there and back.
    """

    call: float = 10.0
    """One call of a student's function by a test."""
    cell: float = 30.0
    """One cell of the student's, and all calls of one test cell together; the tests of a cell have as much for themselves."""
    notebook: float = 300.0
    patience: float = 4.0
    """So many times a limit may pass on the clock before what sleeps, waits or hangs is ended."""
    callbacks: int = 20_000
    """How often one call of a student's function may call functions of the tests."""
    memory: int = 4 << 30
    """Address space of a process, beyond that of the environment; of all processes together where there is a cgroup."""
    processes: int = 64
    """Processes and threads at a time."""
    file_size: int = 256 << 20
    folder: int = 512 << 20
    """All files in the working folder and /tmp together."""
    open_files: int = 256
    output: int = 1_000_000
    """Characters of a cell's outputs."""

    @property
    def processor(self) -> int:
        """Seconds of processor time of one process, with what goes on in the background and the way to the tests and back."""
        return math.ceil(2 * self.notebook) + 10


@contextlib.contextmanager
def needs(part: str) -> Iterator[None]:
    """Turn the kernel's refusal into a SandboxError that names the part."""
    try:
        yield
    except OSError as error:
        raise SandboxError(part, error.strerror or str(error)) from error


# ---------------------------------------------------------------- the view of the file system


def environment_paths() -> list[str]:
    """Files and folders outside which a student sees nothing: this Python, shared libraries, programs, fonts, `course`.

    Of a prefix only the folders that Python installs to are taken, since a course may lie in one. Entries of
    sys.path outside the prefixes are left out, apart from the user's site-packages.
    """
    import course

    inside = ("bin", "lib", "lib64", "libexec", "include", "share", "etc/fonts", "pyvenv.cfg")
    prefixes = dict.fromkeys([sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix])
    paths = [f"{prefix}/{name}" for prefix in prefixes for name in inside if prefix not in ("/", "/usr")]
    paths += [f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share")]
    paths += [f"/usr/local/{name}" for name in ("bin", "lib", "share")]
    paths += ["/bin", "/sbin", "/lib", "/lib32", "/lib64"]
    paths += [f"/etc/{name}" for name in ("ld.so.cache", "fonts", "alternatives", "localtime", "mime.types")]
    if site.getusersitepackages() in sys.path:
        paths.append(site.getusersitepackages())
    paths.append(str(Path(course.__file__).resolve().parent))
    return [path for path in paths if os.path.exists(path)]


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
    package = str(Path(__file__).resolve().parent)
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
        _build(_TOP)
        syscalls.change_root(_TOP)
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


def become_nobody() -> None:
    """Change from root to an unprivileged user for good, who can just make a user namespace."""
    with needs("the change of root to an unprivileged user"):
        syscalls.keep_capabilities(True)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        syscalls.keep_capabilities(False)
        try:  # some systems let none but administrators make the namespace
            syscalls.set_capabilities(syscalls.CAP_SYS_ADMIN)
        except PermissionError:
            syscalls.set_capabilities()
        syscalls.own_proc_files()


def enter_user_namespace() -> None:
    """Have all capabilities in a new user namespace, and none outside."""
    uid, gid = os.geteuid(), os.getegid()
    with needs("user namespaces"):
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        syscalls.own_proc_files()
        Path("/proc/self/setgroups").write_text("deny")  # the kernel asks for this first
        Path("/proc/self/uid_map").write_text(f"{STUDENT} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{STUDENT} {gid} 1")


def enter_processes() -> None:
    """In the first process of the pid namespace: end with the parent, and see only the own processes in /proc."""
    syscalls.die_with_parent(signal.SIGKILL)
    _address_space()
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


def set_limits(limits: Limits) -> None:
    """The limits that every system has."""
    limit_memory(limits)  # first: it opens a file, which a process with many open ones can no longer do below their limit
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.processor,
    }
    if hasattr(resource, "RLIMIT_MSGQUEUE"):
        bounds[resource.RLIMIT_MSGQUEUE] = 0
    for kind, bound in bounds.items():
        _limit(kind, bound)


def limit_memory(limits: Limits) -> None:
    """Bound the address space that this process may take beyond what it has."""
    _limit(resource.RLIMIT_AS, _address_space() + limits.memory)


def _limit(kind: int, bound: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # an ordinary user cannot go above a lower limit, and need not
        resource.setrlimit(kind, (bound, bound))


def _address_space() -> int:
    """Bytes that this process has mapped; where there is no /proc any more, what it had when there was one."""
    with contextlib.suppress(OSError):
        _mapped.append(int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return _mapped[-1]


_mapped = [2 << 30]  # macOS, whose kernel heeds no limit of address space


def lock() -> None:
    """The last step: give up every capability, for good, and have the system calls filtered."""
    with needs("giving up capabilities"):
        syscalls.no_new_privileges()
        syscalls.drop_bounding_set()
        syscalls.set_capabilities()
        syscalls.die_with_parent(signal.SIGKILL)  # a change of capabilities may have cleared it
    with needs("a filter of system calls (seccomp)"):
        syscalls.refuse_system_calls()


def tests_paths() -> list[str]:
    """What a process that runs tests reads: its working folder, its packages, this Python, and what tells of the machine."""
    here = os.getcwd()
    packages = [path for path in map(os.path.abspath, sys.path) if os.path.isdir(path) and not f"{here}/".startswith(f"{path}/")]
    machine = ["/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/dev/null", "/dev/urandom", _TOP]
    return [here, str(Path(__file__).resolve().parent), *environment_paths(), *packages, *machine]


def confine_tests(paths: list[str]) -> bool:
    """Shut in a process that runs tests: what a student could make of it would have no way out.

    It keeps what is open. It can start no process, reach no other one and no network, and write only into a small
    folder of its own; it has no capabilities, and is nobody where root called and nobody may read what it needs.

    Args:
        paths: what it may read, where the kernel can keep it to that.

    Returns:
        Whether the kernel can.

    Raises:
        SandboxError: naming the part that the kernel does not allow.
    """
    if platform.machine() not in syscalls.MACHINES:
        raise SandboxError("a filter of system calls", f"its numbers on {platform.machine()} are not known here")
    with needs("a mount namespace"):
        try:
            syscalls.unshare(syscalls.CLONE_NEWNS)
        except PermissionError:  # not root, or root of a container
            enter_user_namespace()
            syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.make_private("/")
        syscalls.make_read_only("/", devices=True)
        syscalls.mount_new("tmpfs", _TOP, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=1777,size=64m,nr_inodes=1000")
        tempfile.tempdir = os.environ["TMPDIR"] = _TOP
    with needs("giving up capabilities"):
        syscalls.no_new_privileges()
        kept = syscalls.see_only(paths)
        if os.geteuid() == 0:
            with contextlib.suppress(PermissionError):  # root of a container, which may have few capabilities
                syscalls.drop_bounding_set()
            _become_nobody_who_reads([os.getcwd(), os.path.dirname(__file__), sys.prefix, sys.base_prefix])
        syscalls.set_capabilities()
    with needs("a filter of system calls (seccomp)"):
        syscalls.refuse_system_calls(tests=True)
    return kept


def _become_nobody_who_reads(folders: list[str]) -> None:
    """Change from root to an unprivileged user, unless this one could not read the folders: a home may be closed."""
    with contextlib.suppress(OSError):  # no such user in this user namespace
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        reads = all(os.access(folder, os.R_OK | os.X_OK, effective_ids=True) for folder in folders)
        os.seteuid(0)
        os.setegid(0)
        if reads:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            syscalls.own_proc_files()
