"""Runs a notebook's code cells in this process, as a kernel would, and records their outputs.

Used where a kernel's start would cost more than the cells: in `autograder check` and in the forked
child that runs a submission.
"""

import ast
import contextlib
import io
import os
import sys
from collections.abc import Callable
from types import CodeType

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import LSString, SList
from nbformat import NotebookNode, from_dict
from traitlets import Type
from traitlets.config import Config

OUTPUT_LIMIT = 1_000_000  # characters a cell
TAIL = 20_000  # characters that are kept of the end of what is longer: a test says its result last
ERROR_LIMIT = 20_000  # characters of an error
NEED_A_SHELL = {"!", "!!", "sx", "system", "bash", "sh", "script", "cmd", "pip", "conda", "mamba", "micromamba", "uv"}
NEED_A_SHELL |= {"python", "python2", "python3", "pypy", "perl", "ruby", "killbgscripts"}
NEED_A_PERSON = {"debug", "pdb", "edit", "ed"}
RUN_PYTHON = {"time", "timeit", "prun", "run", "rerun", "macro", "capture"}
"""Magics whose errors are those of the code that they run."""


def new_output(kind: str, **fields) -> NotebookNode:
    """A notebook output as nbformat makes it, without its validation, which costs more than most cells."""
    return from_dict({"output_type": kind, **fields})


def result(data: dict, metadata: dict | None = None, count: int | None = None) -> NotebookNode:
    """The output that shows a cell's last value."""
    return new_output("execute_result", data=data, metadata=metadata or {}, execution_count=count)


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.record(result(format_dict, md_dict, self.shell.execution_count))

    def finish_displayhook(self):
        pass


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, *, transient=None, update=False, **kwargs):
        self.shell.record(new_output("display_data", data=data, metadata=metadata or {}))

    def clear_output(self, wait=False):
        self.shell.outputs.clear()


class _Stream(io.TextIOBase):
    """Text goes to the cell's outputs, in the order in which it was written."""

    def __init__(self, shell, name):
        self.shell, self.stream_name = shell, name

    def write(self, text):
        self.shell.record_stream(self.stream_name, str(text))
        return len(text)

    def writable(self):
        return True


class NotebookShell(InteractiveShell):
    """An IPython shell whose output is a list of notebook outputs."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    def __init__(self, **kwargs):
        self.outputs, self._size, self._tail = [], 0, ""
        self.prepared: dict[str, tuple[CodeType, CodeType | None]] = {}
        super().__init__(**kwargs)

    def record(self, output: NotebookNode) -> None:
        self._size += sum(len(str(x)) for x in output.get("data", {}).values())
        if self._size <= OUTPUT_LIMIT:
            self.outputs.append(output)
        elif output.output_type == "execute_result":  # the score of a test that printed much
            self.outputs.append(result({"text/plain": str(output.data.get("text/plain"))[:TAIL]}))

    def record_stream(self, name: str, text: str) -> None:
        room = OUTPUT_LIMIT - self._size
        self._size += len(text)
        if len(text) > room:
            self._tail = (self._tail + text[max(room, 0) :])[-TAIL:]
            if room <= 0:
                return
            text = text[:room] + f"\n[output cut at {OUTPUT_LIMIT:,} characters]\n"
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.outputs.append(new_output("stream", name=name, text=text))

    def _showtraceback(self, etype, evalue, stb):
        try:
            text = str(evalue)[:ERROR_LIMIT]
        except Exception:
            text = "(an error that cannot be printed)"
        lines = [str(line)[:ERROR_LIMIT] for line in list(stb)[:100]]
        self.outputs.append(new_output("error", ename=etype.__name__, evalue=text, traceback=lines))

    def showtraceback(self, *args, **kwargs):
        """Record the exception that is handled now. One that IPython cannot format is an error too, without its frames."""
        before = len(self.outputs)
        super().showtraceback(*args, **kwargs)
        if not any(output.output_type == "error" for output in self.outputs[before:]):
            del self.outputs[before:]  # IPython's own error, with the lines of the tests
            kind, error, _ = sys.exc_info()
            self._showtraceback(kind, error, [])

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        """Figures are shown inline, whatever a notebook asks for."""
        return super().enable_matplotlib("inline")

    def ask_exit(self):
        pass

    # ------------------------------------------------------------ shell lines and magics

    def system(self, cmd):
        """`!cmd`: a sentence, and the cell goes on."""
        self._not_run(f"!{cmd}")
        self.user_ns["_exit_code"] = 127  # what a shell says of a program that it does not find

    system_piped = system_raw = system

    def getoutput(self, cmd, split=True, depth=0):
        """`x = !cmd`: a sentence, and nothing as its output."""
        self._not_run(f"!{cmd}")
        return SList() if split else LSString()

    def _not_run(self, what: str) -> None:
        print(f"There is no shell here, so this was not run: {what[:200]}")

    def run_line_magic(self, magic_name, line, _stack_depth=1):
        return self._magic(
            magic_name, f"%{magic_name} {line}", lambda: InteractiveShell.run_line_magic(self, magic_name, line, _stack_depth + 3)
        )

    def run_cell_magic(self, magic_name, line, cell):
        return self._magic(
            magic_name, f"%%{magic_name} {line}", lambda: InteractiveShell.run_cell_magic(self, magic_name, line, cell)
        )

    def _magic(self, name: str, text: str, run: Callable[[], object]) -> object:
        """Run a magic. One that is not known or cannot work here says so, and the cell goes on."""
        if name in NEED_A_SHELL:
            self._not_run(text.strip())
            return None
        if name in NEED_A_PERSON:
            print(f"Nobody is here to answer, so this was not run: {text.strip()[:200]}")
            return None
        try:
            return run()
        except Exception as error:
            if name in RUN_PYTHON and not isinstance(error, UsageError):
                raise
            print(f"{type(error).__name__}: {error}"[:ERROR_LIMIT], file=sys.stderr)
            return None

    def run(self, source: str) -> list[NotebookNode]:
        """Run one cell and return its outputs. Errors are outputs too."""
        with self.captured():
            if source in self.prepared:
                self._run_prepared(*self.prepared[source])
            else:
                self.run_cell(source, store_history=True)
        return self.outputs

    def prepare(self, source: str) -> None:
        """Compile a cell that `run` will be given later, here or in a process that is forked from this one.

        Its statements and the expression that it ends in, if it does; a cell that IPython has to run is left to it.
        """
        try:
            cell = self.transform_cell(source)
            name = self.compile.cache(cell, raw_code=source)
            tree = ast.parse(cell, name)
            if self.displayhook.semicolon_at_end_of_expression(cell):
                return
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            body, last = compile(tree, name, "exec"), last and compile(ast.Expression(last.value), name, "eval")
        except SyntaxError:
            return
        self.prepared[source] = body, last

    def _run_prepared(self, body: CodeType, last: CodeType | None) -> None:
        try:
            exec(body, self.user_ns)
            value = eval(last, self.user_ns) if last else None
            if value is not None:
                self.record(result(*self.display_formatter.format(value)))
        except BaseException:  # as IPython does
            self.showtraceback(running_compiled_code=True)
        self.execution_count += 1

    @contextlib.contextmanager
    def captured(self):
        """Record what is printed and shown inside as the outputs, instead of what was there."""
        self.outputs, self._size, self._tail = [], 0, ""
        with contextlib.redirect_stdout(_Stream(self, "stdout")), contextlib.redirect_stderr(_Stream(self, "stderr")):
            yield
        if self._tail:
            self.outputs.append(new_output("stream", name="stdout", text=f"[…]{self._tail}"))


def reset_settings() -> None:
    """Undo what a notebook before may have set for the whole process, as is right in a kernel of one's own.

    The dtype, the gradients and the printing of torch, the printing and the warnings of numpy, matplotlib's style and
    its open figures are those of a new process. What has not been imported needs nothing.
    """
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.set_printoptions(profile="default")
    if numpy := sys.modules.get("numpy"):
        numpy.set_printoptions(precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False, formatter=None)
        numpy.set_printoptions(nanstr="nan", infstr="inf", sign="-", floatmode="maxprec", legacy=False)
        numpy.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
        pyplot.rcdefaults()


def make_shell(backend: str = "agg") -> NotebookShell:
    """A fresh shell; `get_ipython()` is it. `backend` is matplotlib's."""
    os.environ["MPLBACKEND"] = backend
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Context"
    for kind in (NotebookShell, InteractiveShell):  # a library that formats an object outside IPython makes one of the second
        kind.clear_instance()
    shell = NotebookShell.instance(config=config)
    shell.user_ns["__name__"] = "__main__"
    reset_settings()
    sys.modules["__main__"].__dict__.setdefault("__builtins__", __builtins__)
    shell.builtin_trap.activate()
    return shell


def warm_shell(backend: str) -> NotebookShell:
    """A shell that has run something of each kind, so that what is loaded with the first cell is there; for a fork."""
    shell = make_shell(backend)
    # The last reads the files of the functions that are running then, for a stack trace that torch keeps.
    for source in ("import sys\nprint(1)\nprint(2, file=sys.stderr)\n[3]", "1 / 0", "import torch\ntorch.manual_seed(0)"):
        shell.run(source)
    shell.reset()
    shell.execution_count, shell.outputs = 1, []
    shell.user_ns["__name__"] = "__main__"
    return shell
