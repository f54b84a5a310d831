"""Paths in what a student reads: those of this machine are cut to what the student knows, such as torch/nn/functional.py."""

import os
import re
import site
import sys
import sysconfig
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

COMMON = {"/", "/usr", "/usr/local", "/opt", "/tmp"}  # they tell nothing of a machine
CELL = re.compile(r"<(?:ipython-input-\d+-\w+|your answer \w+)>")
BEFORE, AFTER = r"(?<![\w./-])(?:file://)?", r"(?:/+|(?![\w./-]))"


def shortened(outputs: list[NotebookNode], root: Path) -> list[NotebookNode]:
    """The outputs of a cell with the paths of the environment, of the course and of its folder cut; changes them in place.

    Args:
        root: the course folder.
    """
    for output in outputs:
        for key in ("text", "evalue"):
            if key in output:
                output[key] = shorten(output[key], root)
        if "traceback" in output:
            output.traceback = [shorten(line, root) for line in output.traceback]
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/") and isinstance(data, str):
                output.data[kind] = shorten(data, root)
    return outputs


def shorten(text: str, root: Path) -> str:
    """A text without the paths of this machine."""
    found = _places(str(root)).sub(lambda match: "" if match[0].endswith("/") else "…", text)
    return CELL.sub("<your answer>", found)


@cache
def _places(root: str) -> re.Pattern:
    """What leads to packages, to Python's own modules, to `course` and to the course folder, the longest first."""
    import course

    installed = (sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib", "platstdlib"))
    packages = (*installed, site.getusersitepackages(), os.path.dirname(os.path.dirname(course.__file__)), *sys.path)
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    home = os.path.expanduser("~")
    found = {
        way for path in (*packages, *prefixes, root, home) if path for way in (os.path.abspath(path), os.path.realpath(path))
    }
    found -= COMMON
    found |= {"~" + path.removeprefix(home) for path in found if home not in COMMON and path.startswith(home + "/")}
    return re.compile(BEFORE + f"(?:{'|'.join(map(re.escape, sorted(found, key=len, reverse=True)))})" + AFTER)
