"""What a submission may use, and how a process is held to it."""

import contextlib
import math
import resource
from dataclasses import dataclass
from pathlib import Path

KINDS = ("full", "none")  # of sandboxes


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
    _limit(resource.RLIMIT_AS, address_space() + limits.memory)


def _limit(kind: int, bound: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # an ordinary user cannot go above a lower limit, and need not
        resource.setrlimit(kind, (bound, bound))


def address_space() -> int:
    """Bytes that this process has mapped; where there is no /proc any more, what it had when there was one."""
    with contextlib.suppress(OSError):
        _mapped.append(int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return _mapped[-1]


_mapped = [2 << 30]  # macOS, whose kernel heeds no limit of address space
