"""What stands on the tests' side for what a student defined: each use is a question to the student's process.

Stand-ins are compared by what they are, and what comes back is plain data or a stand-in again.
"""

import inspect
from contextlib import suppress

import torch

from autograder.wire.kinds import PLAIN

NO_ANSWER = "The process of the student sent something that is no answer"
READING = (
    *("len", "getitem", "contains", "iter", "next", "reversed", "call", "enter", "exit", "bool", "int", "float", "index"),
    *("complex", "round", "array", "setitem", "delitem"),
)
"""Operators that any stand-in has if its class defines them: what comes back is data, which the tests judge."""
COMPARING = "lt", "le", "gt", "ge"
COMPUTING = (
    *("neg", "pos", "abs", "invert", "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rmatmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror", "rxor"),
    *("iadd", "isub", "imul", "imatmul", "itruediv"),
)
"""Operators that only the instances of classes that were asked for have: others could answer a test with anything."""


class RemoteType(type):
    """The class of stand-ins for classes."""

    def __call__(cls, *args, **kwargs):
        __tracebackhide__ = True
        if "_hold" not in cls.__dict__:
            return super().__call__(*args, **kwargs)
        session = cls._session
        session.sharing = True  # an optimizer's parameters are to be those of the tests
        try:
            return session.ask("call", cls, list(args), kwargs, False)
        finally:
            session.sharing = False

    def __getattr__(cls, name):
        if name.startswith("_") or "_hold" not in cls.__dict__:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return cls._session.ask("get", cls, name)

    @property
    def __signature__(cls):
        return _signature(cls)


class RemoteFunction:
    """A function or method of the student."""

    def __call__(self, *args, **kwargs):
        __tracebackhide__ = True
        return self._session.ask("call", self, list(args), kwargs, False)

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__wrapped__", "__defaults__", "__annotations__"):
            raise AttributeError(name)
        return self._session.ask("get", self, name)

    @property
    def __signature__(self):
        return _signature(self)

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return f"<function {self.__name__}>"


class RemoteObject(metaclass=RemoteType):
    """An object of a class of the student."""

    def __getattr__(self, name):
        if name.startswith("__") or "_hold" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._session.ask("get", self, name)

    def __setattr__(self, name, value):
        self._session.ask("set", self, name, value)

    def __delattr__(self, name):
        self._session.ask("delete", self, name)

    def __deepcopy__(self, memo):
        return self._session.ask("copy", self)

    def __copy__(self):
        raise TypeError("an object of another process cannot be copied without what is in it; use copy.deepcopy")

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return f"<{type(self).__name__} object>"


class RemoteModule(torch.nn.Module, metaclass=RemoteType):
    """An `nn.Module` of the student: its parameters are here too, its forward and backward there."""

    def forward(self, *args, **kwargs):
        return self._session.ask("call", self, list(args), kwargs, False)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__") or "_hold" not in self.__dict__:
                raise
        return self._session.ask("get", self, name)

    def __setattr__(self, name, value):
        session = self.__dict__.get("_session")
        if session is None:
            super().__setattr__(name, value)
        elif name in self._parameters or name in self._buffers:
            old = self._parameters.get(name, self._buffers.get(name))
            super().__setattr__(name, value)
            number = session.twin_of.pop(id(old), None)
            if number is not None and isinstance(value, torch.Tensor):
                session.twins[number], session.twin_of[id(value)], session.equal[number] = value, number, None
        else:
            if name == "training":
                self.__dict__["training"] = value
            session.ask("set", self, name, value)

    def __deepcopy__(self, memo):
        return self._session.ask("copy", self)


def operator_of(name: str):
    """The method of a stand-in that asks for an operator."""

    def method(self, *args):
        __tracebackhide__ = True
        if name in COMPUTING and not type(self)._asked_for:
            return NotImplemented
        if name in ("eq", *COMPARING):
            other = args[0]
            if self is other and name == "eq":
                return True
            if not (type(self)._asked_for and isinstance(other, RemoteObject) and type(other)._asked_for):
                return NotImplemented
        if name == "contains" and not type(self)._asked_for:  # an object could say that it holds everything
            return any(x == args[0] for x in self)
        if name == "next":
            found = self._session.ask("next", self)
            if type(found) is not list or len(found) > 1:
                raise self._session.lose(f"{NO_ANSWER}.")
            if not found:
                raise StopIteration
            return found[0]
        found = self._session.ask("operate", name, self, list(args))
        if name in ("repr", "str") and type(found) is not str:
            return f"<{type(self).__name__} object>"
        return bool(found) if name in ("bool", "contains") and not is_stand_in(found) else found

    method.__name__ = f"__{name}__"
    return method


def new_class(name: str, bases: tuple, doc: str | None) -> type:
    bases = bases or (RemoteObject,)
    names = {"__module__": "__main__", "__doc__": doc, "__qualname__": name}
    if not any(issubclass(base, RemoteObject | RemoteModule) for base in bases):
        names["__getattr__"] = RemoteObject.__getattr__
    for some in (bases, bases[:1]):
        with suppress(TypeError):
            return RemoteType(name, some, dict(names))
    return RemoteType(name, (RemoteObject,), names)


def unknown_class(name: str) -> type:
    return RemoteType(name, (RemoteObject,), {"__module__": "builtins", "_asked_for": False} | _iteration())


def _iteration() -> dict:
    return {"__iter__": lambda self: self, "__next__": operator_of("next")}


def base_of(kind) -> type | None:
    """What a stand-in's class can have as a base here."""
    if not isinstance(kind, type) or kind is object:
        return None
    if isinstance(kind, RemoteType) or kind in PLAIN or issubclass(kind, BaseException):
        return kind if kind is not bool else None
    return RemoteModule if kind is torch.nn.Module else None


def made(kind: type, name: str, doc: str | None):
    thing = kind.__new__(kind)
    thing.__dict__.update(__name__=name, __qualname__=name, __doc__=doc, __module__="__main__")
    return thing


def is_stand_in(x) -> bool:
    return isinstance(x, RemoteFunction | RemoteObject | RemoteModule) or (
        isinstance(type(x), RemoteType) if not isinstance(x, type) else isinstance(x, RemoteType) and "_hold" in x.__dict__
    )


def keep(stand_in, name: str, value) -> None:
    if isinstance(stand_in, type):
        type.__setattr__(stand_in, name, value)
    else:
        stand_in.__dict__[name] = value


def kept(stand_in, name: str):
    return stand_in.__dict__.get(name)


def _signature(stand_in) -> inspect.Signature:
    told = stand_in._session.ask("signature", stand_in)
    parameters = [
        inspect.Parameter(
            name_of(name), inspect._ParameterKind(kind), default=default if has_default is True else inspect.Parameter.empty
        )
        for name, kind, has_default, default in told
    ]
    return inspect.Signature(parameters)


def name_of(x) -> str:
    return x if type(x) is str and len(x) <= 200 else "name"
