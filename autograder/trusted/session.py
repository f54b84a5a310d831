"""The tests' side: what a student defined, as objects that tests can use as if they were here.

A `Session` runs cells in the student's process and asks for the values of names. Plain values come
as copies; functions, classes and objects come as stand-ins whose every use is a question to the
student's process, within the limits. Whatever that process sends, nothing here runs or trusts it:
stand-ins are compared by what they are, and results are plain values or stand-ins again.
"""

import builtins
import itertools
import linecache
import math
import random
import sys
import time
import types
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import torch
from nbformat import NotebookNode

from autograder.trusted.said import error_output, outputs
from autograder.trusted.stand_ins import (
    COMPARING,
    COMPUTING,
    NO_ANSWER,
    READING,
    RemoteFunction,
    RemoteModule,
    RemoteObject,
    RemoteType,
    base_of,
    is_stand_in,
    keep,
    kept,
    made,
    name_of,
    new_class,
    operator_of,
    unknown_class,
)
from autograder.wire import frames, peer
from autograder.wire import values as wire
from autograder.wire.frames import Closed, Late, WireError
from autograder.wire.kinds import FUNCTIONS, GETTERS, PLAIN, RANDOM, randomness
from autograder.wire.peer import Failed, Peer, known_error
from autograder.wire.values import Decoder, Encoder
from course.checks import AUTOGRAD, Stopped
from course.checks.grading import invoke as _invoke
from course.checks.grading import refusing as _refusing

GRACE = 2.0  # seconds that code gets to end by itself after its limit
NESTING = 20  # of calls there and back
BREACHES = 2  # limits hit in one test cell, after which its other calls are not made
RESTARTS = 40  # of the student's process in one notebook
CROSSING = 0.01  # seconds that a call back may take on its way there and back
CLASSES = 1000  # of one student
IMPORTABLE = {"torch", "numpy", "math", "cmath", "builtins", "operator", "itertools", "functools", "collections", "fractions"}
IMPORTABLE |= {"random", "re", "string", "statistics", "sympy", "course", "dataclasses", "types", "enum", "abc", "typing"}
STEPS = (lambda: torch.rand((), generator=torch.default_generator), np.random.random, random.random)
NOTEBOOK, ONE_TEST = "The notebook", "What one test called"
LOST = "It was lost when the process of the student ended."


class Session(Peer):
    """The tests' end of the connection to a student's process.

    Args:
        student: its `start()` gives the socket of a fresh student's process, its `end()` ends that process
            and says how it had ended by itself, if it had.
        limits: of a call, a cell and the notebook.
        classes: the names of classes that the source's answers define: their operators may be used.
    """

    asked = ("call", "next", "gradients")

    def __init__(self, student, limits, classes: frozenset[str] = frozenset()):
        self.student, self.limits, self.asked_for = student, limits, classes
        self.end = time.monotonic() + limits.patience * limits.notebook
        self.used = self.test_used = 0.0  # seconds of the student's own code: in all, and in this test cell
        self.own = self.total = 0.0  # seconds that its process has told: of the student's own code, and with all else
        self.replaying = False
        self.flags: list[str] = []
        self.hit: list[str] = []  # of the flags, those that say of a limit
        self.finished: list[str] = []  # cells to be run again in a new process
        self.allowed: list[str] | None = None
        self.generation = self.starts = 0
        self.why: str | None = None
        self.subject = "a cell"  # what is running there
        self.show: Callable[[NotebookNode], None] = lambda output: None  # takes what a call printed or displayed
        self.test_end, self.breaches = None, 0
        self.refused: tuple[str, ...] = ()  # what the task forbids an answer
        super().__init__(None)
        self.numbers = itertools.count(-1, -1)  # not the other end's

    def forget(self) -> None:
        super().forget()
        self.generation += 1
        self.stand_ins = weakref.WeakValueDictionary()  # by number
        self.classes: dict[int, type] = {}
        self.last = None  # the generators' states that the other end knows of

    # ------------------------------------------------------------ what a test run needs

    def run_cell(self, source: str) -> list[NotebookNode]:
        """Run a cell of the student's notebook in the student's process, and give its outputs."""
        said, self.subject = [], "a cell"
        self.show = said.append
        try:
            self._ask("cell", source, limit=self.limits.cell, subject="The cell")
            stopped = [str(output.get("evalue")) for output in said if output.get("ename") == "TimeLimit"]
            if stopped:
                self.flag(self._sentence(stopped[0]), limit=True)
            else:
                self.finished.append(source)
        except Exception as error:  # its answer could not be told
            said.append(error_output(type(error).__name__, str(error)))
        except Stopped as error:
            said.append(error_output("Stopped", str(error)))
        finally:
            self.show = lambda output: None
        return said

    def value(self, name: str) -> dict:
        """{name: value} of a name of the student's notebook; empty if it is not there.

        Raises:
            Stopped: if it cannot be had.
        """
        found = self.ask("names", [name])
        if type(found) is not dict or not set(found) <= {name}:
            raise self.lose(f"{NO_ANSWER}.")
        for value in found.values():
            if is_stand_in(value):
                keep(value, "_origin", name)
        return found

    @contextmanager
    def testing(self, show: Callable[[NotebookNode], None], allowed: list[str]) -> Iterator[None]:
        """While a test cell runs: its limits hold, the course is withheld, and what calls print goes to `show`."""
        self.test_end = time.monotonic() + self.limits.patience * self.limits.cell
        self.test_used, self.breaches, self.allowed = 0.0, 0, allowed
        try:
            if self.sock is not None:
                self.ask("guard", allowed)
            self.show = show
            yield
        finally:
            self.test_end, self.breaches, self.allowed, self.show = None, 0, None, lambda output: None
            if self.sock is not None:
                with suppress(Stopped):
                    self.ask("guard", None)

    def called(self, answer, args: tuple, kwargs: dict) -> tuple:
        """A call of an answer; for `course.checks.grader`."""
        __tracebackhide__ = True
        if not is_stand_in(answer):
            return _invoke(answer, args, kwargs)
        found = self.ask("call", answer, list(args), kwargs, True)
        parts = [type(part) for part in found[1:]] if type(found) is list else []
        if parts not in ([list, dict, type(None)], [list, dict, str]) or found[3] not in (None, *AUTOGRAD):
            raise self.lose(f"{NO_ANSWER}.")
        value, args, kwargs, changed = found
        return value, (tuple(args), kwargs), changed

    @contextmanager
    def refusing(self, names: tuple[str, ...], file: str | None) -> Iterator[None]:
        """While answers are held to what their task allows, those of `answers.py` here; for `course.checks.grader`."""
        self.refused = names
        try:
            with _refusing(names, file):
                yield
        finally:
            self.refused = ()

    # ------------------------------------------------------------ questions

    def ask(self, what: str, *values, also=()):
        """A question about the student's things; its limit is that of a call.

        Raises:
            Stopped: if a limit was hit or the process ended; whatever the student's code raised, rebuilt.
        """
        __tracebackhide__ = True
        if self.nested == 0:
            self.subject = _subject(what, values)
        return self._ask(what, *values, also=also, limit=self.limits.call, subject=self.subject)

    def _ask(self, what: str, *values, limit: float, subject: str, also=()):
        __tracebackhide__ = True
        if self.nested == 0:
            self._left(limit, subject)  # raises before a process is started
            self._awake()
            self._begin(self._left(limit, subject))
        elif self.sock is None:
            raise Stopped(LOST)
        try:
            return super().ask(what, *values, also=also)
        except Failed as failed:
            told = failed.told
        except Late:
            raise self.lose(self.over, limit=True) from None
        except Closed:
            raise self.lose(None) from None
        except Exception as error:
            if self.writing:  # what the tests wanted to hand over
                raise error if not isinstance(error, WireError) else ValueError(f"an argument is too large: {error}") from None
            raise self.lose(f"{NO_ANSWER} ({error if isinstance(error, WireError) else type(error).__name__}).") from None
        except BaseException as error:  # a limit of the tests, or of the student in a call back: the ends are out of step
            if self.nested == 0 and self.sock is not None:
                self.lose(str(error) if isinstance(error, Stopped) else "The tests ended early.")
            raise
        try:
            error = self._rebuilt(*told)
        except Exception as problem:
            raise self.lose(f"{NO_ANSWER} ({type(problem).__name__}).") from None
        raise error

    def _left(self, limit: float, subject: str) -> list[tuple[float, str]]:
        """The seconds that are left for a question, of processor time and on the clock, and what is said when they are over.

        Raises:
            Stopped: if there are none.
        """
        if self.test_end is not None and self.breaches >= BREACHES:
            raise Stopped(f"{self.subject} was not called again, since it had to be stopped before.")
        now, patience = time.monotonic(), self.limits.patience
        own = [(limit, f"{subject} took longer than {limit:g} s of processor time and was stopped.")]
        clock = [(patience * limit, f"{subject} was not done after {patience * limit:g} s and was stopped.")]
        wholes = [(NOTEBOOK, self.limits.notebook, self.used, self.end)]
        if self.test_end is not None:
            wholes.append((ONE_TEST, self.limits.cell, self.test_used, self.test_end))
        for what, most, used, end in wholes:
            own.append((most - used, f"{what} took longer than its limit of {most:g} s of processor time."))
            clock.append((end - now, f"{what} was not done after {patience * most:g} s."))
        left = [min(own), min(clock)]
        for seconds, sentence in left:
            if seconds <= 0:
                self.flag(sentence, limit=True)
                raise Stopped(sentence)
        return left

    def _begin(self, left: list[tuple[float, str]]) -> None:
        """Set the clocks for a question."""
        now = time.monotonic()
        self.left, self.called_back = left, 0
        self.before = self.total
        self.deadline = now + left[1][0] + GRACE
        self.latest = max(min(self.end, self.test_end or self.end) + GRACE, self.deadline)  # whatever is called back
        self.look = min(now + left[0][0] + GRACE, self.deadline)  # when it can have hit its limit of processor time
        self.over = left[1][1]

    def _taken(self) -> bool:
        """Whether the student's process has taken the processor time of this question; if not, when to look again."""
        total = self.student.cpu()
        if total is not None:
            allowed = self.left[0][0] + CROSSING * self.called_back + GRACE / 2
            taken = total - self.before
            if taken > allowed:
                self.over = self.left[0][1]
                return True
            self.look = time.monotonic() + allowed - taken + GRACE / 2
        else:
            self.look = self.deadline
        return False

    def _count(self, own, total) -> None:
        """Add what the student's process tells of its time. A lie gains no more than the limits on the clock leave."""
        if not all(type(x) is float and 0 <= x < math.inf for x in (own, total)):
            raise WireError("no time")
        taken, self.own, self.total = max(own - self.own, 0.0), own, total
        if not self.replaying:
            self.used, self.test_used = self.used + taken, self.test_used + taken

    def _sentence(self, said: str) -> str:
        """The sentence of the limit that the student's process says was hit."""
        sentence = self.left[said == self.left[1][1]][1]
        if sentence.startswith(f"{NOTEBOOK} took"):  # clocks differ by a tick: what was hit has no room left
            self.used = max(self.used, self.limits.notebook)
        elif sentence.startswith(f"{ONE_TEST} took"):
            self.test_used = max(self.test_used, self.limits.cell)
        return sentence

    def lose(self, why: str | None, limit: bool = False) -> Stopped:
        """Give the student's process up; the next question starts a new one.

        Args:
            limit: whether a limit was hit.
        """
        if self.sock is not None:
            self.breaches += 1
            self.sock.close()
            self.sock = None
            ended = self.student.end()
            self.why = why or f"The process that ran {self.subject} {ended or 'ended'}."
            self.flag(self.why, limit)
        return Stopped(self.why or LOST)

    def flag(self, sentence: str, limit: bool = False) -> None:
        """Note what a teacher should know, and whether it is a limit that was hit."""
        sentence = sentence[0].lower() + sentence[1:].rstrip(".")
        for flags in (self.flags, self.hit) if limit else (self.flags,):
            if sentence not in flags and len(flags) < 100:
                flags.append(sentence)

    def _awake(self) -> None:
        """Have a student's process, in which all finished cells have run."""
        if self.sock is not None:
            return
        if self.starts > RESTARTS:
            raise Stopped("The process of the student had to be started anew too often.")
        self.starts += 1
        self.forget()
        self.sock = self.student.start()
        self.own = self.total = 0.0
        start, again, test_end, show = time.monotonic(), self.finished[:], self.test_end, self.show
        self.test_end, self.show, self.replaying = None, lambda output: None, True
        try:
            for source in again:
                with suppress(Exception):
                    self._ask("cell", source, limit=self.limits.cell, subject="A cell that was run again")
            if self.allowed is not None:
                self.ask("guard", self.allowed)
        finally:
            self.test_end, self.show, self.replaying = test_end, show, False
            if test_end is not None:  # replaying is not the test's time
                self.test_end = test_end + time.monotonic() - start

    def _rebuilt(self, decoder: Decoder, told) -> BaseException:
        """An exception like the one that the student's code raised."""
        known, own, args, text, where, name, number = told
        if type(text) is not str or type(known) is not str:
            raise WireError("no error")
        if known == "TimeLimit":
            self.breaches += self.nested == 0  # a call back that is stopped stops the call, which counts
            self.flag(self._sentence(text), limit=True)
            return Stopped(self._sentence(text))
        kind = known_error(known)
        if not issubclass(kind, Exception):
            return Stopped(f"{self.subject} ended with {kind.__name__}.")
        if own is not None:
            found = decoder.decode(own)
            kind = found if isinstance(found, type) and issubclass(found, Exception) else kind
        if issubclass(kind, StopIteration | StopAsyncIteration):  # would end a loop of the tests, as if all were done
            return RuntimeError(f"{self.subject} raised {kind.__name__}, which is for iterators.")
        error = None
        with suppress(Exception):
            error = kind.__new__(kind, *decoder.decode(args))
            error.args = tuple(decoder.decode(args))
            if own is None:
                error.__init__(*error.args)
            error = error if str(error) == text else None
        if error is None:
            kind = (
                kind
                if issubclass(kind, (known_error(known), RemoteObject)) and not issubclass(kind, BaseExceptionGroup)
                else Exception
            )
            error = kind.__new__(kind, text)
            error.args = (text,)
        if type(name) is str and isinstance(error, NameError | AttributeError | ImportError):
            error.name = name
        if own is not None and type(number) is int:
            self._keep(error, number)
        return error.with_traceback(self._traceback(where))

    def _traceback(self, where) -> types.TracebackType | None:
        found = None
        for name, number, line in reversed(where[: peer.FRAMES]):
            if type(name) is not str or type(number) is not int or type(line) is not str:
                raise WireError("no frame")
            cells = enumerate(reversed(self.finished), 1)
            lines = next((c for _, c in cells if _line(c, number) == line), None)
            text, number = (lines, number) if lines is not None else (line, 1)
            file = f"<your answer {zlib.crc32(text.encode('utf-8', 'replace')) & 0xFFFFFF:06x}>"
            linecache.cache[file] = len(text), None, text.splitlines(True), file
            code = _ONE_LINE.replace(co_name=name, co_qualname=name, co_filename=file, co_firstlineno=number)
            found = types.TracebackType(found, types.FunctionType(code, globals())(), 0, number)
        return found

    # ------------------------------------------------------------ frames

    def write(self, frame, bulk):
        self.writing = True
        frames.send(self.sock, frame, bulk, self.deadline, frames.BULK_LIMIT)  # a cell of any length
        self.writing = False

    def read(self):
        self.writing = False
        while self.look < self.deadline and not frames.ready(self.sock, self.look):
            if self._taken():
                raise Late
        return frames.receive(self.sock, self.deadline)

    def serve(self, frame, bulk):
        """A call back: what it takes is not the time of the call that it comes from, but the test's and the notebook's."""
        start = time.monotonic()
        self.called_back += 1
        super().serve(frame, bulk)
        if self.called_back <= self.limits.callbacks:
            more = time.monotonic() - start + CROSSING
            self.deadline, self.look = min(self.deadline + more, self.latest), self.look + more

    def head(self, encoder):
        self.writing = True
        now = randomness()
        known = self.last or (None,) * len(now)
        self.last = now
        fresh = [encoder.encode(get()) if a != b else None for get, a, b in zip(GETTERS, now, known, strict=True)]
        return [self.left, fresh, list(self.refused)]

    def tail(self, decoder, tail):
        text, used, withheld, own, total = tail
        self._count(own, total)
        for step, was_used in zip(STEPS, used, strict=True):
            if was_used is True:  # ours moves too, so that seeding it as before is seen to be a change
                step()
        if any(used):
            self.last = randomness()
        for name in withheld:
            self.flag(f"an answer called {str(name)[:100]}, which is withheld while tests run")
        if text is not None:
            for output in outputs(text):
                self.show(output)

    def replace(self, number, tensor, data):
        if number > 0 or (data.shape == tensor.shape and data.dtype == tensor.dtype):
            super().replace(number, tensor, data)

    # ------------------------------------------------------------ what the student's side may ask

    def guarded(self, what, decoder, values, inputs):
        try:
            if self.nested > NESTING:
                raise RecursionError(f"calls there and back are nested more than {NESTING} deep")
            if self.called_back > (most := self.limits.callbacks):
                raise RuntimeError(f"one call may use the functions that it is given {most:,} times, not more")
            return self.told(getattr(self, f"do_{what}")(decoder, values, inputs), inputs)
        except Exception as error:
            return self.failed(error)

    def do_call(self, decoder, values, inputs):
        """Call a function that the tests handed over."""
        (tag, number), args, kwargs = values
        if tag != wire.HERE:
            raise WireError("no function")
        return self.things[number](*decoder.decode(args), **decoder.decode(kwargs))

    def do_next(self, decoder, values, inputs):
        """The next value of an iterator that the tests handed over, in a list; an empty one at the end."""
        ((tag, number),) = values
        if tag != wire.HERE:
            raise WireError("no iterator")
        return list(itertools.islice(self.things[number], 1))

    # ------------------------------------------------------------ what is handed over

    def encode_other(self, encoder: Encoder, x):
        kind = type(x)
        if is_stand_in(x):
            if isinstance(x, torch.nn.Module) and torch.is_grad_enabled() and encoder.link is not None:
                for parameter in x.parameters():
                    if parameter.requires_grad:
                        encoder.link(encoder, parameter)
            return [wire.HERE, self.number(x)]
        if kind in RANDOM:
            return [wire.RANDOM, kind.__name__, encoder.encode(RANDOM[kind][0](x))]
        if isinstance(x, (type, *FUNCTIONS)):
            place = _importable(x)
            if place and (place[0].partition(".")[0] != "course" or ".".join(place) in (self.allowed or ())):
                return [wire.TYPE, *place]
            return [wire.FUNCTION, self.give(x), getattr(x, "__name__", "function"), getattr(x, "__doc__", None)]
        if hasattr(kind, "__next__"):
            return [wire.ITERATOR, self.give(x)]
        if isinstance(x, tuple):
            return [wire.NAMED_TUPLE, kind.__name__, list(getattr(kind, "_fields", ())), *map(encoder.encode, tuple(x))]
        place = _importable(kind)
        if place and hasattr(x, "__dict__") and not isinstance(x, PLAIN) and not isinstance(x, BaseException):
            return [wire.BUILT, *place, encoder.encode(dict(vars(x)))]
        if callable(x):
            return [wire.FUNCTION, self.give(x), kind.__name__, kind.__doc__]
        if not place and hasattr(x, "__dict__"):
            public = {name: value for name, value in vars(x).items() if not name.startswith("_")}
            methods = {name: getattr(x, name) for name in dir(kind) if not name.startswith("_") and callable(getattr(x, name))}
            return [wire.OBJECT, kind.__name__, encoder.encode(methods | public)]
        raise TypeError(f"{kind.__name__} cannot be handed to an answer that runs in another process")

    def number(self, stand_in) -> int:
        """The number of a stand-in's thing; after a restart, that of the thing that has its name now."""
        if kept(stand_in, "_generation") == self.generation:
            return kept(stand_in, "_hold").number
        origin = kept(stand_in, "_origin")
        if origin is None:
            raise Stopped(LOST)
        found = self.value(origin).get(origin)
        if not is_stand_in(found) or type(found).__name__ != type(stand_in).__name__:
            raise Stopped(LOST)
        for name in ("_hold", "_generation"):
            keep(stand_in, name, kept(found, name))
        if isinstance(stand_in, type):
            self.classes[stand_in._hold.number] = stand_in
        return kept(stand_in, "_hold").number

    # ------------------------------------------------------------ what comes back

    def decode_other(self, decoder: Decoder, x):
        tag, *rest = x
        if tag == wire.LINK:
            return decoder.links[rest[0]]
        if tag == wire.HERE:
            return self.things[rest[0]]
        if tag == wire.TYPE:
            return _known(*rest)
        if tag == wire.FUNCTION:
            number, name, doc = rest
            return self._stand_in(number, lambda: made(RemoteFunction, name=name_of(name), doc=doc if type(doc) is str else None))
        if tag == wire.CLASS:
            return self._class(decoder, *rest)
        if tag == wire.OBJECT:
            number, kind = rest
            kind = decoder.decode(kind)
            if not isinstance(kind, RemoteType):
                kind = unknown_class(getattr(kind, "__name__", "object"))
            if not issubclass(kind, RemoteObject):
                kind = unknown_class(kind.__name__)
            return self._stand_in(number, lambda: object.__new__(kind))
        if tag == wire.DERIVED:
            number, kind, value = rest
            return self._derived(number, decoder.decode(kind), decoder.decode(value))
        if tag == wire.MODULE:
            return self._module(decoder, rest, 0)
        if tag == wire.RANDOM:
            return self._stand_in(self._no_number(), lambda: object.__new__(unknown_class(name_of(rest[0]))))
        raise WireError("an unknown tag")

    def _no_number(self) -> int:
        return next(self.numbers)

    def _stand_in(self, number, make):
        if type(number) is not int:
            raise WireError("no number")
        found = self.stand_ins.get(number)
        if found is None:
            found = make()
            self._keep(found, number)
            self.stand_ins[number] = found
        return found

    def _keep(self, stand_in, number: int) -> None:
        for name, value in (
            ("_session", self),
            ("_hold", self.hold(number)),
            ("_generation", self.generation),
            ("_origin", None),
        ):
            keep(stand_in, name, value)

    def _class(self, decoder, number, told):
        if number in self.classes:
            return self.classes[number]
        if type(number) is not int or told is None or len(self.classes) >= CLASSES:
            raise WireError("no class")
        name, doc, bases, operators = told
        bases = tuple(dict.fromkeys(b for base in bases if (b := base_of(decoder.decode(base)))))
        kind = new_class(name_of(name), bases, doc if type(doc) is str else None)
        keep(kind, "_asked_for", name in self.asked_for)
        for operator in (
            set(operators) & {*READING, *COMPUTING, *COMPARING, "eq", "str", "repr"} if issubclass(kind, RemoteObject) else ()
        ):
            type.__setattr__(kind, f"__{operator}__", operator_of(operator))
        self._keep(kind, number)
        self.classes[number] = kind
        return kind

    def _derived(self, number, kind, value):
        base = next((b for b in PLAIN if isinstance(value, b)), None)
        if base is None or not isinstance(kind, RemoteType) or not issubclass(kind, base):
            return value  # of a class that cannot be rebuilt: the value is what counts
        found = kind.__new__(kind, value) if base not in (list, dict, set) else kind.__new__(kind)
        if base in (list, dict, set):
            base.__init__(found, value)
        self._keep(found, number)
        return found

    def _module(self, decoder, told, depth: int):
        number, kind, inside = told
        found = self.stand_ins.get(number)
        if inside is None:
            if not isinstance(found, RemoteModule):
                raise WireError("no module")
            return found
        kind = decoder.decode(kind)
        if not isinstance(kind, RemoteType) or not issubclass(kind, RemoteModule) or depth > wire.DEPTH_LIMIT:
            raise WireError("no module")
        training, tensors, children = inside
        if not isinstance(found, kind):
            found = object.__new__(kind)
            torch.nn.Module.__init__(found)
            self._keep(found, number)
            self.stand_ins[number] = found
        found.__dict__["training"] = training is True
        for name, twin, is_parameter, data, needs in tensors:
            tensor = self.twins.get(twin)
            if tensor is None:
                tensor = decoder.decode(data)
                tensor = torch.nn.Parameter(tensor, requires_grad=needs is True) if is_parameter is True else tensor
                self.twin(tensor, twin)
            found.__dict__["_parameters" if is_parameter is True else "_buffers"][name_of(name)] = tensor
        for name, child in children:
            found._modules[str(name)[:100]] = self._module(decoder, child[1:], depth + 1)
        return found


def _subject(what: str, values: tuple) -> str:
    """What a question is about, in words."""
    thing = values[1] if what == "operate" else values[0] if values else None
    name = (
        getattr(type(thing), "__name__", "")
        if isinstance(thing, RemoteObject | RemoteModule)
        else getattr(thing, "__name__", None)
    )
    if what == "names":
        name = values[0][0]
    return f"`{name}`" if name else "the answer"


def _known(module, qualname):
    """A class that both sides have, of the few that may be named."""
    if module == "builtins":
        found = getattr(builtins, qualname, None) if type(qualname) is str else None
        if isinstance(found, type):
            return found
    if module == "numpy" and type(qualname) is str:
        found = getattr(np, qualname, None)
        if isinstance(found, type) and issubclass(found, np.generic | np.ndarray):
            return found
    if (module, qualname) in (("torch.nn.modules.module", "Module"), ("torch", "Tensor")):
        return torch.nn.Module if qualname == "Module" else torch.Tensor
    raise WireError("an unknown type")


def _importable(thing) -> tuple[str, str] | None:
    """Where the other process can import a function or class from."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in IMPORTABLE:
        return None
    found = sys.modules.get(module)
    with suppress(AttributeError):
        for part in name.split("."):
            found = getattr(found, part)
        return (module, name) if found is thing else None
    return None


def _line(source: str, number: int) -> str | None:
    lines = source.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else None


def _here():
    return sys._getframe()


# Each two bytes say of eight units of the code that they are of the first line, without columns.
_ONE_LINE = _here.__code__.replace(co_linetable=b"\xef\x00" * (len(_here.__code__.co_code) // 16 + 1))
