"""A control group (version 2) for each student: one bound on the memory and the number of processes of all together.

Only where this process may make groups: as root under systemd, or in a part of the tree that was delegated to the
user. `autograder doctor` tells; elsewhere each process has its own limits, and the template adds up their memory.
"""

import contextlib
import os
from pathlib import Path

from autograder.limits import Limits
from autograder.walls.steps import NOBODY

CONTROLLERS = {"memory", "pids"}


class Groups:
    """A group that holds the template's group and one for each student.

    Files are opened relative to a folder that stays open, since students' root holds no cgroup file system.
    """

    def __init__(self, path: Path):
        self.path = path
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def make(self, name: str, limits: Limits) -> None:
        """A group for a student. Raises OSError."""
        os.mkdir(name, dir_fd=self._folder)
        self._write(f"{name}/memory.max", str(limits.memory))
        with contextlib.suppress(FileNotFoundError):  # a kernel without swap
            self._write(f"{name}/memory.swap.max", "0")
        self._write(f"{name}/memory.oom.group", "1")
        self._write(f"{name}/pids.max", str(limits.processes))

    def join(self, name: str) -> None:
        """Put this process into the group. Raises OSError."""
        self._write(f"{name}/cgroup.procs", "0")

    def remove(self, name: str) -> bool:
        """Remove the group of a student that has ended; whether its memory ran out."""
        events = ""
        with contextlib.suppress(OSError), open(f"{name}/memory.events", opener=self._open) as file:
            events = file.read()
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=self._folder)
        return any(line.split()[0] == "oom_kill" and line.split()[1] != "0" for line in events.splitlines())

    def _write(self, name: str, text: str) -> None:
        with open(name, "w", opener=self._open) as file:
            file.write(text)

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags & ~(os.O_CREAT | os.O_TRUNC), dir_fd=self._folder)


def place() -> Path | None:
    """The nearest group, from this process' own upwards, in which it may make groups with both controllers."""
    if not os.path.exists("/proc/self/cgroup"):
        return None
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounts = [Path(fields[4]) for fields in mounts if fields[fields.index("-") + 1] == "cgroup2"]
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    if not mounts or not own:
        return None
    start = mounts[0] / own[0].lstrip("/")
    for group in (start, *start.parents):
        with contextlib.suppress(OSError):
            if set((group / "cgroup.subtree_control").read_text().split()) >= CONTROLLERS and os.access(
                group / "cgroup.procs", os.W_OK
            ):
                return group
        if group == mounts[0]:
            return None
    return None


def enter() -> Groups | None:
    """Make a group for the template and its students, and move this process into it; None where that is not allowed.

    When root calls, the group is given to the user that root becomes in the sandbox.
    """
    parent = place()
    if parent is None:
        return None
    top = parent / f"autograder-{os.getpid()}"
    own = top / "template"
    try:
        top.mkdir()
        (top / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(CONTROLLERS)))
        own.mkdir()
        (own / "cgroup.procs").write_text(str(os.getpid()))
        if os.geteuid() == 0:
            for path in (top, top / "cgroup.procs", own, own / "cgroup.procs"):
                os.chown(path, NOBODY, NOBODY)
        return Groups(top)
    except OSError:
        remove(top)
        return None


def remove(top: Path) -> None:
    """Remove the template's group after its end."""
    for path in (top / "template", top):
        with contextlib.suppress(OSError):
            path.rmdir()
