"""Right and wrong answers of exercises, written by the authors of a chapter in its `answers.py`.

::

    @right("ch04.attention")
    def einsum(query, key, value): ...

    @wrong("ch04.attention", "The scores are not divided by the square root of d_k.", see="scaling")
    def no_scale(query, key, value): ...

    wrong("ch04.by_hand", 0.359, "Rounded twice: keep the digits until the end.", see="worked-example")
    wrong("ch04.pair", {"first": 1, "second": 2}, "…")          # a cell that defines two names
    wrong("ch04.formula", cell("formula = p + y"), "…")          # anything else: the cell's source

    @wrong("ch02.bytes", "…")
    class drops_bytes:                                            # a cell that defines two functions
        def encode(text): ...
        def decode(ids): ...

    equivalent("ch04.scaling", "`a = y * x`", "a product in either order")  # a change that `autograder mutate` cannot tell apart

The function's name is the mistake's name. Every answer becomes the source of the exercise's answer
cell, so it sees the notebook's names, not those of `answers.py`.
"""

import ast
import inspect
import re
import runpy
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_UNSET = object()
_collected: list["Answer"] = []
_equivalents: list["Equivalent"] = []


class cell(str):
    """An answer given as the source of the whole answer cell."""


@dataclass(eq=False)
class Answer:
    """One right or wrong answer.

    `source(names)` is the text of the answer cell, for the names that the solution defines.
    """

    exercise: str
    label: str
    written: object  # ast of a function or class, a `cell`, or a value
    sentence: str | None = None  # None: a right answer
    see: str | None = None

    @property
    def right(self) -> bool:
        return self.sentence is None

    def source(self, names: list[str]) -> str:
        """The answer cell's source.

        Raises:
            ValueError: if the answer does not define what the solution cell defines.
        """
        if isinstance(self.written, cell):
            return textwrap.dedent(self.written).strip()
        if isinstance(self.written, ast.ClassDef):
            members = [node for node in self.written.body if hasattr(node, "name")]
            if set(names) <= {node.name for node in members}:
                return "\n\n".join(ast.unparse(node) for node in members)
            if len(names) > 1:
                raise ValueError(f"{self.exercise}, {self.label}: define {', '.join(names)} in the class")
        if isinstance(self.written, ast.AST):
            if len(names) != 1:
                raise ValueError(
                    f"{self.exercise}, {self.label}: the solution defines {', '.join(names)}; use a class or cell(…)"
                )
            return ast.unparse(_Rename(self.written.name, names[0]).visit(self.written))
        if isinstance(self.written, dict) and set(names) <= set(self.written):
            return "\n".join(f"{name} = {value!r}" for name, value in self.written.items())
        if isinstance(self.written, dict) and len(names) > 1:
            raise ValueError(f"{self.exercise}, {self.label}: give a value for each of {', '.join(names)}")
        if len(names) != 1:
            raise ValueError(f"{self.exercise}, {self.label}: the solution defines {', '.join(names)}; give a dict")
        return f"{names[0]} = {self.written!r}"


@dataclass(frozen=True)
class Equivalent:
    """A small change of a solution that is right too, and why."""

    exercise: str
    change: str  # as `autograder mutate` prints it; … in it is any text
    reason: str

    def covers(self, change: str) -> bool:
        return re.fullmatch(".*".join(map(re.escape, self.change.split("…"))), change) is not None


class _Rename(ast.NodeTransformer):
    def __init__(self, old: str, new: str):
        self.old, self.new = old, new

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.name = self.new if node.name == self.old else node.name
        node.decorator_list = [d for d in node.decorator_list if not _registers(d)]
        return node

    visit_ClassDef = visit_FunctionDef

    def visit_Name(self, node):
        node.id = self.new if node.id == self.old else node.id
        return node


def _registers(decorator: ast.AST) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) in ("right", "wrong")


def right(exercise: str, value=_UNSET):
    """Another right answer: a decorator, or, with a value, a plain call."""
    return _register(exercise, None, None, value)


def wrong(exercise: str, *told, see: str | None = None):
    """A wrong answer and the sentence that names the misconception to the student.

    ``@wrong(exercise, sentence)`` above a function or class, or ``wrong(exercise, value, sentence)``.
    `see` is the slug of the section to read.
    """
    if len(told) not in (1, 2) or not isinstance(told[-1], str):
        raise TypeError(f"{exercise}: wrong takes a sentence, or a value and a sentence")
    return _register(exercise, told[-1], see, told[0] if len(told) == 2 else _UNSET)


def _register(exercise, sentence, see, value):
    if value is not _UNSET:
        number = sum(a.exercise == exercise for a in _collected)
        label = f"answer {number + 1}" if isinstance(value, cell) else repr(value)
        _collected.append(Answer(exercise, label, value, sentence, see))
        return None

    def decorate(answer: Callable):
        node = ast.parse(textwrap.dedent(inspect.getsource(answer))).body[0]
        _collected.append(Answer(exercise, answer.__name__, node, sentence, see))
        return answer

    return decorate


def equivalent(exercise: str, change: str, reason: str) -> None:
    """Say why the tests cannot tell a small change of the solution from it: `autograder mutate` accepts it then.

    Args:
        change: as `autograder mutate` prints it, backticks and all; `…` in it is any text, for a number that is free.
    """
    if not reason.strip():
        raise ValueError(f"{exercise}: say why {change!r} is as right as the solution")
    _equivalents.append(Equivalent(exercise, change, reason))


def load(path: Path) -> list[Answer]:
    """The answers of an `answers.py`, in order.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    return _run(path)[0]


def load_equivalents(path: Path) -> list[Equivalent]:
    """The changes that an `answers.py` says to be as right as the solution."""
    return _run(path)[1]


def _run(path: Path) -> tuple[list[Answer], list[Equivalent]]:
    _collected.clear()
    _equivalents.clear()
    runpy.run_path(str(path))
    return list(_collected), list(_equivalents)
