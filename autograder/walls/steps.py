"""The steps into a confinement that the student's side and the tests' side both take."""

import contextlib
import os
import site
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder.errors import SandboxError
from autograder.walls import syscalls

NOBODY = 65534  # the uid and gid that root changes to
STUDENT = 1000  # the uid and gid that a student sees
PACKAGE = Path(__file__).resolve().parents[1]  # autograder
TOP = "/sys"  # every Linux has this folder, and no side needs what is in it: a place to build a new root, or to write


@contextlib.contextmanager
def needs(part: str) -> Iterator[None]:
    """Turn the kernel's refusal into a SandboxError that names the part."""
    try:
        yield
    except OSError as error:
        raise SandboxError(part, error.strerror or str(error)) from error


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
