"""Kernels for nbval that are forked from a process that has imported what notebooks import.

A seventh of the notebooks runs in kernels of their own, another one each day. This module is the program of that process, too: it reads requests from its standard input, lines of JSON, and answers each.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from unittest import mock

from jupyter_client import BlockingKernelClient, write_connection_file
from nbval.kernel import RunningKernel

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = dict(os.environ)  # before tests change it
WARM = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "matplotlib.pyplot",
    "numpy",
    "sympy",
    "torch",
    "torch._dynamo",
    "torch.optim",
)


class Server:
    """The warm process, and what it is asked."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm_kernel"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=ENVIRONMENT | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},  # as ipykernel sets it
            text=True,
        )

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        if not (answer := self.process.stdout.readline()):
            raise RuntimeError("the process from which kernels are forked is gone")
        return json.loads(answer)


@functools.cache
def server() -> Server:
    return Server()


@functools.cache
def day() -> int | None:
    """The day of the last commit, counted from 1970; None outside a repository."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return None if done.returncode else int(done.stdout) // 86_400


def own(folder: str, day: int | None) -> bool:
    """Whether a notebook runs in a kernel of its own: on one of seven days, and always where there are no commits."""
    return day is None or (day + zlib.crc32(os.path.basename(folder).encode())) % 7 == 0


def kernel(kernel_name: str, cwd: str, startup_timeout: float = 60) -> RunningKernel:
    """What nbval runs a notebook in."""
    if not own(cwd, day()):
        return WarmKernel(kernel_name, cwd, startup_timeout)
    with mock.patch.dict(os.environ, ENVIRONMENT, clear=True):
        return RunningKernel(kernel_name, cwd, startup_timeout)


class WarmKernel(RunningKernel):
    """A forked kernel with nbval's face of one."""

    language = "python"

    def __init__(self, kernel_name, cwd=None, startup_timeout=60):
        self.folder = tempfile.TemporaryDirectory(prefix="kernel-")
        self.connection = os.path.join(self.folder.name, "kernel.json")
        write_connection_file(self.connection, transport="ipc", ip=os.path.join(self.folder.name, "k"))
        self.pid = server().ask(start=self.connection, folder=str(cwd))
        self.kc = BlockingKernelClient(connection_file=self.connection)
        self.kc.load_connection_file()
        self.kc.start_channels()
        self.kc.wait_for_ready(timeout=startup_timeout)
        self._ensure_iopub_up()

    def is_alive(self):
        return self.pid is not None and server().ask(alive=self.pid)

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def restart(self):
        raise NotImplementedError("a forked kernel is not started again")

    def stop(self):
        self.kc.stop_channels()
        server().ask(end=self.pid)
        self.pid = None
        self.folder.cleanup()


# ---------------------------------------------------------------- the warm process


def main() -> None:
    for name in WARM:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a child would write to every page that it shares with this process
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer = os.fork()
            if answer == 0:
                serve(request["start"], request["folder"])
        elif "alive" in request:
            with contextlib.suppress(ChildProcessError):
                answer = os.waitpid(request["alive"], os.WNOHANG)[0] == 0
        else:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(request["end"], signal.SIGKILL)
                os.waitpid(request["end"], 0)
            answer = None
        print(json.dumps(answer), flush=True)


def serve(connection: str, folder: str) -> None:
    """Be a kernel, as in a process of its own."""
    import numpy
    from ipykernel.kernelapp import IPKernelApp

    parent = os.getppid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir(folder)
    random.seed()
    numpy.random.seed()
    sys.argv[:] = ["ipykernel_launcher"]
    sys.path[:] = ["", *sys.path[1:]]  # the first was this program's folder
    code = 1
    try:
        app = IPKernelApp.instance(parent_handle=parent)
        app.initialize(["-f", connection])
        app.start()
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
