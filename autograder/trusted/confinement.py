"""The second wall: what the process of the tests is shut in with before it reads what a student's side sends."""

import contextlib
import os
import platform
import sys
import tempfile

from autograder.errors import SandboxError
from autograder.walls import syscalls
from autograder.walls.steps import NOBODY, PACKAGE, TOP, enter_user_namespace, environment_paths, needs


def tests_paths() -> list[str]:
    """What a process that runs tests reads: its working folder, its packages, this Python, and what tells of the machine."""
    here = os.getcwd()
    packages = [path for path in map(os.path.abspath, sys.path) if os.path.isdir(path) and not f"{here}/".startswith(f"{path}/")]
    machine = ["/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/dev/null", "/dev/urandom", TOP]
    return [here, str(PACKAGE), *environment_paths(), *packages, *machine]


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
        syscalls.mount_new("tmpfs", TOP, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=1777,size=64m,nr_inodes=1000")
        tempfile.tempdir = os.environ["TMPDIR"] = TOP
    with needs("giving up capabilities"):
        syscalls.no_new_privileges()
        kept = syscalls.see_only(paths)
        if os.geteuid() == 0:
            with contextlib.suppress(PermissionError):  # root of a container, which may have few capabilities
                syscalls.drop_bounding_set()
            _become_nobody_who_reads([os.getcwd(), str(PACKAGE), sys.prefix, sys.base_prefix])
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
