"""The student's side: runs cells and serves calls on what they defined.

`serve` is all that happens in the student's process. It knows no test: the other end sends arguments,
names and, one at a time, the cells of the student's notebook.
"""

import builtins
import contextlib
import copy
import importlib
import inspect
import json
import os
import signal
import socket
import time
import types

import numpy as np
import torch

from autograder.confined.ban import Ban, operators, tame_scripts, written_in_python
from autograder.confined.guard import Guard, modules
from autograder.walls import syscalls
from autograder.wire import values as wire
from autograder.wire.kinds import FUNCTIONS, PLAIN, RANDOM, SETTERS, randomness
from autograder.wire.peer import Ask, Failed, Peer, innermost, known_error
from autograder.wire.shell import NotebookShell, make_shell, warm_shell
from autograder.wire.values import Decoder, Encoder
from course.checks import changed_in_autograd, in_autograd
from course.checks.grading import refusing

SLACK = 0.5  # seconds beyond a limit that a clock may be wrong by
TIMERS = signal.ITIMER_PROF, signal.ITIMER_REAL  # of processor time, and of time on the clock
OPERATORS = (
    *("len", "getitem", "setitem", "delitem", "contains", "iter", "next", "reversed", "call", "enter", "exit", "bool", "hash"),
    *(
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "neg",
        "pos",
        "abs",
        "invert",
        "round",
        "int",
        "float",
        "index",
        "complex",
        "str",
        "repr",
    ),
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"),
    *("radd", "rsub", "rmul", "rmatmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror", "rxor"),
    *("iadd", "isub", "imul", "imatmul", "itruediv", "format", "array", "aiter", "anext", "await"),
)
KNOWN = {x for x in vars(builtins).values() if isinstance(x, type)} | {torch.nn.Module, torch.Tensor, np.ndarray}
KNOWN |= {x for x in vars(np).values() if isinstance(x, type) and issubclass(x, np.generic)}
_exit = os._exit  # what a student's code puts into os is not called at the end


class TimeLimit(BaseException):
    """Raised inside student code that took too long; not an Exception, so that no answer swallows it by habit."""

    def _render_traceback_(self):
        return [str(self)]


def serve(sock: socket.socket) -> None:
    """Be the student's side of a connection until it closes. Does not return."""
    try:
        Server(sock).run()
    except BaseException:
        pass
    finally:
        _exit(0)


_shell: NotebookShell | None = None


def prepare() -> None:
    """Make the shell that `serve` will use; for a process that is going to be forked."""
    global _shell
    _shell = warm_shell("module://matplotlib_inline.backend_inline")
    modules("course")
    operators()
    written_in_python()
    tame_scripts()
    guard = Guard()
    guard.set([])  # what it makes for each function is kept for those that are forked
    guard.lift()


def _no_input(prompt=""):
    raise RuntimeError("input() has nobody to answer it while your notebook is graded: write the value into the code.")


class Server(Peer):
    """The student's end."""

    asked = ("cell", "names", "call", "get", "set", "delete", "operate", "next", "signature", "copy", "gradients", "guard")

    def __init__(self, sock: socket.socket):
        super().__init__(sock)
        self.shell = _shell or make_shell("module://matplotlib_inline.backend_inline")
        builtins.input = _no_input
        self.guard, self.ban = Guard(), Ban()
        self.described, self.states = set(), []
        self.before = None
        self.alone = False  # whether no program can be started any more
        self.clock = Clock()

    def run(self) -> None:
        """Answer questions until the other end is gone."""
        while True:
            frame, bulk = self.read()
            self.serve(frame, bulk)

    # ------------------------------------------------------------ what is asked

    def take_head(self, decoder: Decoder, head) -> None:
        limits, randomness, self.refused = head
        if self.nested == 0:
            self.clock.set(limits)
        for set_state, state in zip(SETTERS, randomness, strict=True):
            if state is not None:
                set_state(decoder.decode(state))

    def guarded(self, what, decoder, values, inputs):
        first = self.nested <= 1  # what is asked inside a call is watched by the call
        if first:
            self.ban.set(() if what in ("cell", "gradients", "guard") else self.refused)
        if not first or what == "gradients":  # what is printed belongs to the call that is running
            around = contextlib.nullcontext()
        else:
            self.before = randomness()
            around = self._first()
        try:
            with around:
                try:
                    self.clock.start()
                    value = getattr(self, f"do_{what}")(decoder, values, inputs)
                    result = self.told(value, inputs)
                finally:
                    self.clock.stop()
                self.clock.check()
            if first and (refused := self.ban.met()):
                raise refused
        except BaseException as error:
            self.clock.stop()
            result = self.failed(self.ban.met(error) if first else error)
        return result

    @contextlib.contextmanager
    def _first(self):
        with self.shell.captured(), refusing(self.ban.names, None):
            yield

    def give_tail(self, encoder: Encoder):
        self.clock.stop()  # the last of what the student's code had part in
        outputs = self.shell.outputs
        text = json.dumps(outputs, default=str, skipkeys=True) if outputs else None
        used = [a != b for a, b in zip(self.before or (), randomness(), strict=False)]
        return [text, used, self.guard.taken(), self.clock.own, processor_time()]

    def do_cell(self, decoder, values, inputs):
        """Run a cell of the notebook; its outputs go with the answer."""
        self.shell.run_cell(decoder.decode(values[0]), store_history=True)

    def do_names(self, decoder, values, inputs):
        """The values of those names that there are."""
        wanted = decoder.decode(values[0])
        return {name: self.shell.user_ns[name] for name in wanted if name in self.shell.user_ns}

    def do_call(self, decoder, values, inputs):
        """The result, and what was made of the arguments if that is asked for."""
        target, args, kwargs, after = (decoder.decode(x) for x in values)
        if not after:
            return target(*args, **kwargs)
        before = in_autograd([args, kwargs, inputs])
        value = target(*args, **kwargs)
        changed = changed_in_autograd(before, in_autograd([args, kwargs, inputs]))
        return [value, plain(args), plain(kwargs), changed]

    def do_get(self, decoder, values, inputs):
        thing, name = (decoder.decode(x) for x in values)
        return getattr(thing, name)

    def do_set(self, decoder, values, inputs):
        thing, name, value = (decoder.decode(x) for x in values)
        setattr(thing, name, value)

    def do_delete(self, decoder, values, inputs):
        thing, name = (decoder.decode(x) for x in values)
        delattr(thing, name)

    def do_operate(self, decoder, values, inputs):
        """A method with two underscores on each side, looked up as Python does."""
        name, thing, args = (decoder.decode(x) for x in values)
        return getattr(type(thing), f"__{name}__")(thing, *args)

    def do_next(self, decoder, values, inputs):
        """The next value in a list; an empty one at the end."""
        try:
            return [next(decoder.decode(values[0]))]
        except StopIteration:
            return []

    def do_signature(self, decoder, values, inputs):
        """Name, kind and default of each parameter."""
        found = inspect.signature(decoder.decode(values[0])).parameters.values()
        return [
            [p.name, int(p.kind), p.default is not p.empty, p.default if type(p.default) in (*PLAIN, type(None)) else None]
            for p in found
        ]

    def do_copy(self, decoder, values, inputs):
        return copy.deepcopy(decoder.decode(values[0]))

    def do_guard(self, decoder, values, inputs):
        """Withhold the functions of `course`, but for those named; None gives them back."""
        allowed = decoder.decode(values[0])
        if allowed is None:
            self.guard.lift()
        else:
            if os.getpid() == 1:  # in the sandbox: a process of an earlier cell could call for an answer what is withheld here
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                if not self.alone:  # a new Python would know nothing of what is withheld and forbidden
                    syscalls.refuse_programs()
                    self.alone = True
            self.guard.set(allowed)

    # ------------------------------------------------------------ what is sent

    def frames(self, error):
        return innermost(error)

    def encode_error(self, encoder, error):
        if isinstance(error, TimeLimit):
            return ["TimeLimit", None, None, str(error), [], None, None]
        return super().encode_error(encoder, error)

    def encode_other(self, encoder: Encoder, x):
        kind = type(x)
        foreign = getattr(x, "__foreign__", None) if kind in (types.FunctionType, Foreign) else None
        if foreign is not None:
            return [wire.HERE, foreign.number]
        if kind is Ask:
            return [wire.HERE, x.number]
        if isinstance(x, type):
            return self._class(encoder, x)
        if isinstance(x, torch.nn.Module):
            return self._module(encoder, x, set())
        if isinstance(x, FUNCTIONS):
            doc = getattr(x, "__doc__", None)
            name = getattr(x, "__name__", kind.__name__)
            return [wire.FUNCTION, self.give(x), clean(name), clean(doc) if type(doc) is str else None]
        if isinstance(x, tuple) and type(getattr(kind, "_fields", None)) is tuple:
            return [wire.NAMED_TUPLE, clean(kind.__name__), [clean(f) for f in kind._fields], *map(encoder.encode, tuple(x))]
        for base in PLAIN:
            if issubclass(kind, base):
                return [wire.DERIVED, self.give(x), self._class(encoder, kind), encoder.encode(bare(base, x))]
        if kind in RANDOM:
            return [wire.RANDOM, kind.__name__, encoder.encode(RANDOM[kind][0](x))]
        return [wire.OBJECT, self.give(x), self._class(encoder, kind)]

    def _class(self, encoder, kind: type):
        if kind in KNOWN:
            return [wire.TYPE, kind.__module__, kind.__qualname__]
        number = self.give(kind)
        if number in self.described:
            return [wire.CLASS, number, None]
        self.described.add(number)
        bases = [self._class(encoder, base) for base in kind.__bases__ if base is not object]
        operators = [name for name in OPERATORS if _defines(kind, f"__{name}__")]
        doc = kind.__dict__.get("__doc__")
        return [wire.CLASS, number, [clean(kind.__name__), clean(doc) if type(doc) is str else None, bases, operators]]

    def _module(self, encoder, module: torch.nn.Module, seen: set):
        number = self.give(module)
        if number in seen or len(seen) > 1000:
            return [wire.MODULE, number, None, None]
        seen.add(number)
        tensors = [
            [
                clean(name),
                self.twin(x),
                type(x) is torch.nn.Parameter or isinstance(x, torch.nn.Parameter),
                wire.tensor(encoder, x.detach()),
                x.requires_grad,
            ]
            for name, x in [*module._parameters.items(), *module._buffers.items()]
            if x is not None
        ]
        children = [
            [clean(name), self._module(encoder, child, seen)] for name, child in module._modules.items() if child is not None
        ]
        return [wire.MODULE, number, self._class(encoder, type(module)), [bool(module.training), tensors, children]]

    # ------------------------------------------------------------ what comes

    def decode_other(self, decoder: Decoder, x):
        tag, *rest = x
        if tag == wire.LINK:
            return decoder.links[rest[0]]
        if tag == wire.HERE:
            return self.things[rest[0]]
        if tag == wire.TWIN:
            number, value = rest
            found = decoder.decode(value)
            self.twin(found, number)
            return found
        if tag == wire.FUNCTION:
            return self._function(*rest)
        if tag == wire.ITERATOR:
            return Foreign(self, self.hold(rest[0]))
        if tag == wire.TYPE:
            return named(*rest)
        if tag == wire.RANDOM:
            name, state = rest
            return next(make for kind, (_, make) in RANDOM.items() if kind.__name__ == name)(decoder.decode(state))
        if tag == wire.BUILT:
            return self._built(decoder, *rest)
        if tag == wire.OBJECT:
            name, attributes = rest
            return types.new_class(name)() if not attributes else _filled(types.new_class(name)(), decoder.decode(attributes))
        raise ValueError(tag)

    def _function(self, number, name, doc):
        """A function of the tests, as a function of this process."""
        hold = self.hold(number)

        def function(*args, **kwargs):
            return self.ask_tests("call", Ask(hold.number), list(args), kwargs)

        function.__name__ = function.__qualname__ = name
        function.__doc__, function.__module__ = doc, "__main__"
        function.__foreign__ = hold
        return function

    def _built(self, decoder, module, qualname, state):
        """An object of a class that both sides can import, from its attributes."""
        kind = named(module, qualname)
        thing = kind.__new__(kind)
        state = decoder.decode(state)
        if isinstance(thing, torch.nn.Module):
            torch.nn.Module.__init__(thing)
        return _filled(thing, state)

    def ask(self, what, *values, also=()):
        """The limits wait: this is not the student's time, and an interrupted question would leave the ends out of step."""
        running = self.clock.stop()
        try:
            return super().ask(what, *values, also=also)
        finally:
            if running:
                self.clock.start()

    def ask_tests(self, what, *values):
        try:
            return self.ask(what, *values)
        except Failed as failed:
            raise self._rebuilt(*failed.told) from None

    def _rebuilt(self, decoder, told):
        known, _, args, text, *_ = told
        kind = known_error(known)
        with contextlib.suppress(Exception):
            error = kind(*decoder.decode(args))
            if str(error) == text:
                return error
        return kind(text)


class Clock:
    """Takes the time of the student's own code, and stops it by a TimeLimit when a question has taken too much.

    Attributes:
        own: seconds of processor time that the student's code has taken in this process.
    """

    def __init__(self):
        self.own, self.began, self.left, self.sentences = 0.0, None, [0.0, 0.0], ("", "")
        signal.signal(signal.SIGPROF, lambda *_: self._over(0))
        signal.signal(signal.SIGALRM, lambda *_: self._over(1))

    def set(self, limits) -> None:
        """Begin a question: [seconds, sentence] of processor time and of time on the clock."""
        self.left, self.sentences = [seconds for seconds, _ in limits], [sentence for _, sentence in limits]

    def start(self) -> None:
        """From here on the student's code runs."""
        self.began = processor_time(), time.monotonic()
        for timer, left in zip(TIMERS, self.left, strict=True):
            signal.setitimer(timer, max(left, 0.01))

    def stop(self) -> bool:
        """From here on it does not. Whether it did."""
        if self.began is None:
            return False
        for timer in TIMERS:
            signal.setitimer(timer, 0)
        used = [now - before for now, before in zip((processor_time(), time.monotonic()), self.began, strict=True)]
        self.left, self.began = [left - x for left, x in zip(self.left, used, strict=True)], None
        self.own += used[0]
        return True

    def check(self) -> None:
        """Raise if more was taken than there was: by processes that the student's code started, say."""
        if self.left[0] < -SLACK:
            self._over(0)

    def _over(self, which: int):
        raise TimeLimit(self.sentences[which])


def processor_time() -> float:
    """Seconds of this process, of all its threads, and of those that it started and has waited for."""
    return time.process_time() + sum(os.times()[2:4])


class Foreign:
    """An iterator of the tests."""

    def __init__(self, server: Server, hold):
        self.__server__, self.__foreign__ = server, hold

    def __iter__(self):
        return self

    def __next__(self):
        found = self.__server__.ask_tests("next", Ask(self.__foreign__.number))
        if not found:
            raise StopIteration
        return found[0]


# ---------------------------------------------------------------- small things


def plain(x):
    """What of the arguments can be compared, as `course.checks` does it: of a module its tensors, of any other object its kind."""
    kind = type(x)
    if isinstance(x, list | tuple):
        parts = [plain(y) for y in x]
        return kind(*parts) if hasattr(x, "_fields") else kind(parts)
    if kind is dict:
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, torch.nn.Module):
        return dict(x.state_dict())
    simple = isinstance(x, torch.Tensor | np.ndarray | np.generic | str | bytes | int | float | complex) or x is None
    return x if simple or getattr(x, "__foreign__", None) is not None else kind.__name__


def bare(base: type, x):
    """The plain value in an instance of a subclass, whatever that class defines."""
    if base in (list, tuple, set, frozenset):
        return base(base.__iter__(x))
    if base is dict:
        return dict(dict.items(x))
    if base is str:
        return str.__str__(x)
    if base is bytes:
        return bytes.__getitem__(x, slice(None))
    return getattr(base, {int: "__int__", float: "__float__", complex: "__complex__"}[base])(x)


def clean(text: str) -> str:
    return str(text)[:10_000].encode("utf-8", "replace").decode()


def named(module: str, qualname: str):
    """Something that both sides can import."""
    thing = importlib.import_module(module)
    for part in qualname.split("."):
        thing = getattr(thing, part)
    return thing


def _filled(thing, attributes: dict):
    thing.__dict__.update(attributes)
    return thing


def _defines(kind: type, name: str) -> bool:
    """Whether a class says itself what an operator does."""
    found = next((c for c in kind.__mro__ if name in c.__dict__), object)
    return found is not object and found is not torch.nn.Module and found.__dict__[name] is not None
