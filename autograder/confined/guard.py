"""The withheld reference: while tests run, answers cannot call what `course` has solved already.

The code of each function of `course` is swapped for one that raises, so that every name, alias and
wrapper of it fails alike; copies that were made of a function or of a whole module are found by
their code, and modules that are loaded anew in the meantime are withheld as well. Code that was kept makes no
function either, and no program is started that could call what is withheld here: Python refuses it, and in the sandbox
the kernel does from the first test on. Code that was changed in between, or
copied as text, is not known for what it was; in the sandbox the modules have no sources to be copied.
"""

import functools
import gc
import os
import sys
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path

OPEN = ("checks", "data", "device", "expressions", "plots", "widgets")
"""Modules of `course` that hold no answers."""
_LOAD = SourceFileLoader.exec_module
_CODES = {"function.__new__": 0, "exec": 0, "object.__setattr__": 2}
"""Where the code is in what Python tells of these events."""
_PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"}

refusals: list[Callable[[types.CodeType], type[Exception] | None]] = []
"""Those that say now what making a function of a piece of code, or running it, raises."""


class WithheldError(RuntimeError):
    """A function of the course was called by an answer that is being tested."""


class Guard:
    """What is withheld in this process, and what was asked for nevertheless."""

    def __init__(self, package: str = "course"):
        self.package, self.swapped, self.withheld = package, [], {}
        _called.clear()

    def taken(self) -> list[str]:
        """The withheld names that were called since the last time that this was asked."""
        called = _called[:]
        _called.clear()
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
        names = {_place(code): name for code, name in codes.items()}
        found = {id(function): (function, name) for name, function in functions.items() if name not in kept}
        for thing in gc.get_objects():  # copies that were made of a function, or of a module under another name
            if type(thing) is types.FunctionType:
                code = thing.__code__
                name = codes.get(code) or (names.get(_place(code)) if code.co_filename in files else None)
                if name is not None:
                    found.setdefault(id(thing), (thing, name))
        for function, name in found.values():
            self.swapped.append((function, function.__code__))
            function.__code__ = _withheld(len(function.__code__.co_freevars), name)
        self.withheld = names
        refusals.append(self._refusal)
        _watch()

    def lift(self) -> None:
        """Give everything back."""
        SourceFileLoader.exec_module = _LOAD
        if self._refusal in refusals:
            refusals.remove(self._refusal)
        while self.swapped:
            function, code = self.swapped.pop()
            function.__code__ = code

    def _refusal(self, code: types.CodeType) -> type[WithheldError] | None:
        name = self.withheld.get(_place(code))
        return _error(name) if name is not None else None

    def _load(self, loader: SourceFileLoader, module: types.ModuleType, allowed: list[str]) -> None:
        """Withhold a module of the course that an answer loads anew."""
        _LOAD(loader, module)
        if loader.path.startswith(os.path.dirname(sys.modules[self.package].__file__)):
            self.set(allowed)

    def _functions(self):
        """(full name, function) of what the course's modules define."""
        prefix, folder = self.package + ".", os.path.dirname(sys.modules[self.package].__file__) + os.sep
        for module_name in modules(self.package):
            if module_name.removeprefix(prefix).split(".")[0] in OPEN or module_name not in sys.modules:
                continue
            for name, thing in list(vars(sys.modules[module_name]).items()):
                if getattr(thing, "__module__", None) == module_name:
                    found = _inside(f"{module_name}.{name}", thing)
                    yield from ((full, function) for full, function in found if function.__code__.co_filename.startswith(folder))


_called: list[str] = []  # the withheld names that were called and are still to be told


@functools.cache
def _error(name: str) -> type[WithheldError]:
    sentence = f"{name} is the course's own answer and cannot be called while yours is tested: write it yourself."

    def __init__(error):
        RuntimeError.__init__(error, sentence)
        _called.append(name)

    return type("WithheldError", (WithheldError,), {"__init__": __init__})


@functools.cache
def _withheld(free: int, name: str) -> types.CodeType:
    return raising(free, _error(name))


def _place(code: types.CodeType) -> tuple[str, int, str]:
    """What a copy of a piece of code has in common with it."""
    return code.co_filename, code.co_firstlineno, code.co_name


@functools.cache
def _watch() -> None:
    """Have Python ask `refusals` from now on; it knows no way back."""

    def audit(event, args):
        if refusals and event in _CODES:
            code = args[_CODES[event]]
            for refusal in refusals if type(code) is types.CodeType else ():
                if error := refusal(code):
                    raise error
        elif refusals and event in _PROGRAMS:
            raise PermissionError("no program can be started while your answer is tested.")

    sys.addaudithook(audit)


@functools.cache
def modules(package: str) -> list[str]:
    """The full names of the modules below a package, loaded or not; to look through all that is loaded takes longer."""
    folder = Path(sys.modules[package].__file__).parent
    parts = (path.relative_to(folder).with_suffix("").parts for path in sorted(folder.rglob("*.py")))
    return [".".join((package, *inside)).removesuffix(".__init__") for inside in parts]


def _inside(name: str, thing, seen: tuple = ()):
    """The functions in a function, class, property or wrapper, each with its full name; `seen` is what it is in."""
    if any(thing is other for other in seen):
        return
    seen = *seen, thing
    if isinstance(thing, types.FunctionType):
        yield name, thing
        if hasattr(thing, "__wrapped__"):
            yield from _inside(f"{name}.__wrapped__", thing.__wrapped__, seen)
    elif isinstance(thing, staticmethod | classmethod):
        yield from _inside(name, thing.__func__, seen)
    elif isinstance(thing, property):
        for part in (thing.fget, thing.fset, thing.fdel):
            yield from _inside(name, part, seen)
    elif isinstance(thing, functools.partial):
        yield from _inside(name, thing.func, seen)
    elif isinstance(thing, type):
        for key, value in list(vars(thing).items()):
            yield from _inside(f"{name}.{key}", value, seen)
    elif "__wrapped__" in getattr(thing, "__dict__", ()):  # what a kernel is without Triton has every attribute
        yield from _inside(name, thing.__wrapped__, seen)


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
    exec(compile(outer, __file__, "exec"), space)  # a frame of ours, which is not shown
    return space["outer"]().__code__


def raising(free: int, error: type) -> types.CodeType:
    """The code of a function with so many free variables that raises this error whatever it is given."""
    code = _template(free)
    return code.replace(co_consts=tuple(error if const == "withheld" else const for const in code.co_consts))
