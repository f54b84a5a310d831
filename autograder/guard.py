"""The withheld reference: while tests run, answers cannot call what `course` has solved already.

The code of each function of `course` is swapped for one that raises, so that every name, alias and
wrapper of it fails alike; copies that were made of a function or of a whole module are found by
their code, and modules that are loaded anew in the meantime are withheld as well.
"""

import functools
import gc
import os
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path

OPEN = ("checks", "data", "device", "expressions", "plots", "widgets")
"""Modules of `course` that hold no answers."""
_LOAD = SourceFileLoader.exec_module


class WithheldError(RuntimeError):
    """A function of the course was called by an answer that is being tested."""


class Guard:
    """What is withheld in this process, and what was asked for nevertheless."""

    def __init__(self, package: str = "course"):
        self.package, self.swapped, self.called = package, [], []

    def taken(self) -> list[str]:
        """The withheld names that were called since the last time that this was asked."""
        called, self.called = self.called, []
        return called

    def set(self, allowed: list[str]) -> None:
        """Withhold every function of the course but those allowed and what these call.

        Args:
            allowed: full names, such as ``course.attention.attention``; a module or class stands for all in it.
        """
        self.lift()
        SourceFileLoader.exec_module = lambda loader, module: self._load(loader, module, allowed)
        functions = dict(self._functions())
        kept = _closure(functions, allowed)
        codes = {function.__code__: name for name, function in functions.items() if name not in kept}
        if not codes:
            return
        files = {code.co_filename for code in codes}
        names = {(code.co_filename, code.co_firstlineno, code.co_name): name for code, name in codes.items()}
        found = {id(function): (function, name) for name, function in functions.items() if name not in kept}
        for thing in gc.get_objects():  # copies that were made of a function, or of a module under another name
            if type(thing) is types.FunctionType:
                code = thing.__code__
                name = codes.get(code) or (
                    names.get((code.co_filename, code.co_firstlineno, code.co_name)) if code.co_filename in files else None
                )
                if name is not None:
                    found.setdefault(id(thing), (thing, name))
        for function, name in found.values():
            self.swapped.append((function, function.__code__))
            function.__code__ = _refusing(len(function.__code__.co_freevars), self._error(name))

    def lift(self) -> None:
        """Give everything back."""
        SourceFileLoader.exec_module = _LOAD
        while self.swapped:
            function, code = self.swapped.pop()
            function.__code__ = code

    def _load(self, loader: SourceFileLoader, module: types.ModuleType, allowed: list[str]) -> None:
        """Withhold a module of the course that an answer loads anew."""
        _LOAD(loader, module)
        if loader.path.startswith(os.path.dirname(sys.modules[self.package].__file__)):
            self.set(allowed)

    def _error(self, name: str) -> type[WithheldError]:
        sentence = f"{name} is the course's own answer and cannot be called while yours is tested: write it yourself."

        def __init__(error):
            RuntimeError.__init__(error, sentence)
            self.called.append(name)

        return type("WithheldError", (WithheldError,), {"__init__": __init__})

    def _functions(self):
        """(full name, function) of what the course's modules define."""
        prefix = self.package + "."
        for module_name in modules(self.package):
            if module_name.removeprefix(prefix).split(".")[0] in OPEN or module_name not in sys.modules:
                continue
            for name, thing in list(vars(sys.modules[module_name]).items()):
                if getattr(thing, "__module__", None) == module_name:
                    yield from _inside(f"{module_name}.{name}", thing)


@functools.cache
def modules(package: str) -> list[str]:
    """The full names of the modules below a package, loaded or not; to look through all that is loaded takes longer."""
    folder = Path(sys.modules[package].__file__).parent
    parts = (path.relative_to(folder).with_suffix("").parts for path in sorted(folder.rglob("*.py")))
    return [".".join((package, *inside)).removesuffix(".__init__") for inside in parts]


def _inside(name: str, thing):
    """The functions in a function, class, property or wrapper, each with its full name."""
    if isinstance(thing, types.FunctionType):
        if thing.__code__.co_filename != "<string>":  # a dataclass makes such code, which any other's may be like
            yield name, thing
        if hasattr(thing, "__wrapped__"):
            yield from _inside(f"{name}.__wrapped__", thing.__wrapped__)
    elif isinstance(thing, staticmethod | classmethod):
        yield from _inside(name, thing.__func__)
    elif isinstance(thing, property):
        for part in (thing.fget, thing.fset, thing.fdel):
            yield from _inside(name, part)
    elif isinstance(thing, functools.partial):
        yield from _inside(name, thing.func)
    elif isinstance(thing, type):
        for key, value in list(vars(thing).items()):
            yield from _inside(f"{name}.{key}", value)
    elif hasattr(thing, "__wrapped__"):
        yield from _inside(name, thing.__wrapped__)


def _closure(functions: dict[str, types.FunctionType], allowed: list[str]) -> set[str]:
    """The names of the functions that are allowed, and of those of the course that they call."""
    kept: set[str] = set()
    waiting = [name for name in functions if any(name == a or name.startswith(a + ".") for a in allowed)]
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        function = functions[name]
        for word in _words(function.__code__):
            found = function.__globals__.get(word)
            module = getattr(found, "__module__", None)
            if module is not None and hasattr(found, "__qualname__"):
                full = f"{module}.{found.__qualname__}"
                waiting += [other for other in functions if other == full or other.startswith(full + ".")]
            elif isinstance(found, types.ModuleType):
                waiting += [f"{found.__name__}.{w}" for w in _words(function.__code__) if f"{found.__name__}.{w}" in functions]
    return kept


def _words(code: types.CodeType) -> set[str]:
    """The names that a piece of code reads, its inner functions' too."""
    words = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            words |= _words(const)
    return words


@functools.cache
def _template(free: int) -> types.CodeType:
    """Code with so many free variables that raises its constant."""
    names = [f"v{i}" for i in range(free)]
    outer = "\n".join(
        [
            "def outer():",
            *(f" {name} = None" for name in names),
            " def withheld(*args, **kwargs):",
            "  raise 'withheld'",
            f"  {', '.join(names) or 'None'}",
            " return withheld",
        ]
    )
    space: dict = {}
    exec(outer, space)
    return space["outer"]().__code__


def _refusing(free: int, error: type) -> types.CodeType:
    code = _template(free)
    return code.replace(co_consts=tuple(error if const == "withheld" else const for const in code.co_consts))
