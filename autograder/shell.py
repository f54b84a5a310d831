"""Runs a notebook's code cells in this process, as a kernel would, and records their outputs.

Used where a kernel's start would cost more than the cells: in `autograder check` and in the forked
child that runs a submission.
"""

import contextlib
import io
import os
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode, v4
from traitlets import Type
from traitlets.config import Config

OUTPUT_LIMIT = 1_000_000  # characters a cell
TAIL = 20_000  # characters that are kept of the end of what is longer: a test says its result last
ERROR_LIMIT = 20_000  # characters of an error


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.record(
            v4.new_output("execute_result", format_dict, metadata=md_dict or {}, execution_count=self.shell.execution_count)
        )

    def finish_displayhook(self):
        pass


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, *, transient=None, update=False, **kwargs):
        self.shell.record(v4.new_output("display_data", data, metadata=metadata or {}))

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
        super().__init__(**kwargs)

    def record(self, output: NotebookNode) -> None:
        self._size += sum(len(str(x)) for x in output.get("data", {}).values())
        if self._size <= OUTPUT_LIMIT:
            self.outputs.append(output)
        elif output.output_type == "execute_result":  # the score of a test that printed much
            self.outputs.append(v4.new_output("execute_result", {"text/plain": str(output.data.get("text/plain"))[:TAIL]}))

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
            self.outputs.append(v4.new_output("stream", name=name, text=text))

    def _showtraceback(self, etype, evalue, stb):
        try:
            text = str(evalue)[:ERROR_LIMIT]
        except Exception:
            text = "(an error that cannot be printed)"
        lines = [str(line)[:ERROR_LIMIT] for line in list(stb)[:100]]
        self.outputs.append(v4.new_output("error", ename=etype.__name__, evalue=text, traceback=lines))

    def enable_gui(self, gui=None):
        pass

    def ask_exit(self):
        pass

    def run(self, source: str) -> list[NotebookNode]:
        """Run one cell and return its outputs. Errors are outputs too."""
        with self.captured():
            self.run_cell(source, store_history=True)
        return self.outputs

    @contextlib.contextmanager
    def captured(self):
        """Record what is printed and shown inside as the outputs, instead of what was there."""
        self.outputs, self._size, self._tail = [], 0, ""
        with contextlib.redirect_stdout(_Stream(self, "stdout")), contextlib.redirect_stderr(_Stream(self, "stderr")):
            yield
        if self._tail:
            self.outputs.append(v4.new_output("stream", name="stdout", text=f"[…]{self._tail}"))


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
    sys.modules["__main__"].__dict__.setdefault("__builtins__", __builtins__)
    shell.builtin_trap.activate()
    return shell


def warm_shell(backend: str) -> NotebookShell:
    """A shell that has run something of each kind, so that what is loaded with the first cell is there; for a fork."""
    shell = make_shell(backend)
    for source in ("import sys\nprint(1)\nprint(2, file=sys.stderr)\n[3]", "1 / 0"):
        shell.run(source)
    shell.reset()
    shell.execution_count, shell.outputs = 1, []
    shell.user_ns["__name__"] = "__main__"
    return shell
