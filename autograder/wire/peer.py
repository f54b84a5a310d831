"""What both ends of the connection do alike: calls there and back, and gradients through them.

Each end answers one question at a time. While it waits for an answer it answers the other end's own
questions, so that a function of the tests can be called by the student's function that they call.

**Graphs.** Tensors that need gradients are *linked*: the end that computes with them keeps its part
of the graph, and `Bridge` makes it one node of the other end's graph, whose backward asks for the
gradients; their own backward asks again, so that second derivatives work.

**Twins.** A parameter that lives on both ends has a number. Before an end asks or answers, it tells
what has changed since the two were last equal: values, gradients, whether gradients are needed.
"""

import builtins
import itertools
import socket
import sysconfig
import traceback
from collections import Counter

import torch

from autograder.wire import frames
from autograder.wire import values as wire
from autograder.wire.frames import WireError
from autograder.wire.values import Decoder, Encoder

MESSAGE_LIMIT = 20_000  # characters of an exception's text
FRAMES = 10  # of a traceback, the innermost
# Files whose frames say nothing about the answer.
QUIET = ("/autograder/", "/IPython/", "/course/checks/", "/site-packages/", sysconfig.get_paths()["stdlib"])


class Ask:
    """A thing of the other end, by its number."""

    def __init__(self, number: int):
        self.number = number


class Hold:
    """Keeps a thing of the other end alive as long as this, or another hold of the same number, lives."""

    __slots__ = ("dropped", "held", "number", "rootless")

    def __init__(self, number: int, held: Counter, dropped: list):
        self.number, self.held, self.dropped, self.rootless = number, held, dropped, False
        held[number] += 1

    def __del__(self):
        self.held[self.number] -= 1
        if not self.held[self.number]:
            del self.held[self.number]
            self.dropped.append(self.number)


class Failed(Exception):
    """The other end's code raised; `told` is what it sent about it."""

    def __init__(self, told):
        self.told = told


class Bridge(torch.autograd.Function):
    """A computation of the other end as one node of this end's graph."""

    @staticmethod
    def forward(ctx, peer, hold, values, *inputs):
        ctx.set_materialize_grads(False)
        ctx.peer, ctx.hold = peer, hold
        ctx.save_for_backward(*inputs)
        return tuple(values)

    @staticmethod
    def backward(ctx, *gradients):
        found = ctx.peer.gradients(ctx.hold, list(gradients), list(ctx.saved_tensors))
        return (None, None, None, *found)


class Peer:
    """One end of the connection.

    Subclasses say what they send of what is no plain value (`encode_other`), how they read it
    (`decode_other`), and what they do when asked (`do_call` and so on).
    """

    asked = ()  # what the other end may ask for

    def __init__(self, sock: socket.socket | None):
        self.sock = sock
        self.numbers = itertools.count(1)
        self.forget()

    def forget(self) -> None:
        """Begin anew with another process at the other end."""
        self.things, self.number_of = {}, {}  # of this end, held by the other
        self.records = {}  # graphs: number to (inputs, outputs)
        self.twins, self.equal, self.twin_of = {}, {}, {}
        self.held = Counter()  # holds of the other end's things, by number
        self.dropped = []  # numbers of the other end's things that are not needed any more
        self.nested = 0
        self.sharing = False  # whether leaves that are sent become twins

    # ------------------------------------------------------------ things

    def give(self, thing) -> int:
        """The number under which the other end can ask for something of this end."""
        number = self.number_of.get(id(thing))
        if number is None:
            number = next(self.numbers)
            self.things[number], self.number_of[id(thing)] = thing, number
        return number

    def drop(self, numbers) -> None:
        for number in numbers if type(numbers) is list else ():
            if type(number) is int:
                self.records.pop(number, None)
                thing = self.things.pop(number, None)
                if thing is not None:
                    self.number_of.pop(id(thing), None)

    def hold(self, number: int) -> Hold:
        """Take over a thing of the other end."""
        if number in self.dropped:
            self.dropped.remove(number)
        return Hold(number, self.held, self.dropped)

    # ------------------------------------------------------------ twins

    def twin(self, tensor: torch.Tensor, number: int | None = None) -> int:
        """Begin to keep a tensor equal on both ends; the two are equal now."""
        if id(tensor) in self.twin_of:
            return self.twin_of[id(tensor)]
        number = next(self.numbers) if number is None else number
        self.twins[number], self.twin_of[id(tensor)] = tensor, number
        self.equal[number] = _State(tensor)
        return number

    def _changes(self, encoder: Encoder) -> list:
        changes = []
        for number, tensor in self.twins.items():
            before = self.equal[number]
            data, grad = before is None or before.data_changed(tensor), before is None or before.grad_changed(tensor)
            if not data and not grad and before.needs == tensor.requires_grad:
                continue
            self.equal[number] = _State(tensor)
            changes.append(
                [
                    number,
                    wire.tensor(encoder, tensor.detach()) if data else None,
                    wire.tensor(encoder, tensor.grad.detach()) if grad and tensor.grad is not None else None,
                    tensor.grad is None,
                    tensor.requires_grad,
                ]
            )
        return changes

    def _apply(self, decoder: Decoder, changes) -> None:
        for number, data, grad, no_grad, needs in changes:
            tensor = self.twins.get(number)
            if tensor is None:
                continue
            if data is not None:
                self.replace(number, tensor, decoder.decode(data))
            if grad is not None:
                tensor.grad = decoder.decode(grad)
            elif no_grad:
                tensor.grad = None
            if tensor.is_leaf and tensor.requires_grad is not needs:
                tensor.requires_grad_(needs is True)
            self.equal[number] = _State(tensor)

    def replace(self, number: int, tensor: torch.Tensor, data) -> None:
        """Give a twin the values of the other end's."""
        if data.shape == tensor.shape and data.dtype == tensor.dtype:
            tensor.data.copy_(data)
        else:
            tensor.data = data

    # ------------------------------------------------------------ asking

    def ask(self, what: str, *values, also: tuple | list = ()):
        """Let the other end do something.

        Args:
            values: that it gets.
            also: tensors that it has, which the result depends on.

        Raises:
            Failed: if its code raised.
            WireError, Late, Closed: if it cannot be asked or its answer is none.
        """
        links, inputs = [], []

        def link(encoder, x):
            number = self.twin_of.get(id(x))
            if number is not None:
                links.append([wire.TWIN, number])
            elif self.sharing and x.requires_grad and x.is_leaf:
                links.append([wire.TWIN, self.twin(x), wire.tensor(encoder, x)])
            elif x.requires_grad and torch.is_grad_enabled():
                links.append(wire.tensor(encoder, x))
            else:
                return None
            if x.requires_grad and torch.is_grad_enabled():
                inputs.append((len(links) - 1, x))
            return [wire.LINK, len(links) - 1]

        encoder = Encoder(self.encode_other, link)
        head = [
            torch.is_grad_enabled(),
            str(torch.get_default_dtype()).removeprefix("torch."),
            self._let_go(),
            self._changes(encoder),
            self.head(encoder),
        ]
        values = [encoder.encode(value) for value in values]
        self.write(["do", what, head, links, [i for i, _ in inputs], values], encoder.bulk)
        return self._answer([x for _, x in inputs] + list(also))

    def _let_go(self) -> list[int]:
        numbers = self.dropped[:]
        self.dropped.clear()
        return numbers

    def _answer(self, inputs: list[torch.Tensor]):
        while True:
            frame, bulk = self.read()
            if type(frame) is not list or not frame:
                raise WireError("no answer")
            if frame[0] == "do":
                self.serve(frame, bulk)
            elif frame[0] == "ok":
                return self._result(frame, bulk, inputs)
            elif frame[0] == "raise":
                _, told, dropped, changes, tail = frame
                self.drop(dropped)
                decoder = Decoder(bulk, self.decode_other)
                self._apply(decoder, changes)
                self.tail(decoder, tail)
                raise Failed((decoder, told))
            else:
                raise WireError("no answer")

    def _result(self, frame, bulk, inputs):
        try:
            _, record, links, value, dropped, changes, tail = frame
            self.drop(dropped)
            decoder = Decoder(bulk, self.decode_other)
            self._apply(decoder, changes)
            linked = [self._linked(decoder, x) for x in links]
            if record is not None:
                own = [i for i, x in enumerate(links) if x[0] != wire.TWIN]
                values = [linked[i] for i in own]
                hold = self.hold(record)
                hold.rootless = not inputs  # the graph begins at the other end
                given = inputs or [torch.zeros((), requires_grad=True)]
                with torch.enable_grad():
                    for i, x in zip(own, Bridge.apply(self, hold, values, *given), strict=True):
                        linked[i] = x
            decoder.links = linked
            result = decoder.decode(value)
            self.tail(decoder, tail)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
            raise WireError(f"no answer ({type(error).__name__})") from None
        return result

    def _linked(self, decoder: Decoder, x):
        if type(x) is list and len(x) == 2 and x[0] == wire.TWIN:
            return self.twins[x[1]]
        found = decoder.decode(x)
        if not isinstance(found, torch.Tensor):
            raise WireError("no tensor")
        return found

    def gradients(self, hold: Hold, gradients: list, inputs: list) -> list:
        """The gradients of a record's inputs, given those of its outputs; with a graph of their own if one is recorded."""
        deeper = torch.is_grad_enabled()
        found = self.ask("gradients", hold.number, gradients, deeper, also=inputs if deeper and not hold.rootless else ())
        if hold.rootless:
            return [None] * len(inputs)
        if type(found) is not list or len(found) != len(inputs):
            raise WireError("no gradients")
        for x, y in zip(inputs, found, strict=True):
            if y is not None and (not isinstance(y, torch.Tensor) or y.shape != x.shape):
                raise WireError("no gradients")
        return found

    # ------------------------------------------------------------ answering

    def serve(self, frame, bulk) -> None:
        """Do what the other end asks for, and answer."""
        try:
            _, what, (grad, dtype, dropped, changes, head), links, needing, values = frame
            if what not in self.asked:
                raise WireError("an unknown question")
            self.drop(dropped)
            decoder = Decoder(bulk, self.decode_other)
            self._apply(decoder, changes)
            self.take_head(decoder, head)
            leaves = [self._linked(decoder, x) for x in links]
            inputs = [leaves[i] for i in needing]
            # What was computed from a leaf may be changed in place, a leaf may not.
            decoder.links = [x.view_as(x) if type(s) is list and s[-1] == 2 else x for x, s in zip(leaves, links, strict=True)]
            dtype = wire.dtype(dtype)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError) as error:
            raise WireError(f"no question ({type(error).__name__})") from None
        self.nested += 1
        usual = torch.get_default_dtype()
        try:
            if dtype != usual:
                torch.set_default_dtype(dtype)
            with torch.set_grad_enabled(grad is True):
                answer = self.guarded(what, decoder, values, inputs)
        finally:
            self.nested -= 1
            if dtype != usual:
                torch.set_default_dtype(usual)
        try:
            self.write(*answer)
        except WireError as error:  # nothing was written
            self.write(*self.failed(ValueError(f"the result cannot be handed over: {error}")))

    def guarded(self, what: str, decoder: Decoder, values, inputs):
        """The frame that answers a question, whatever happens on the way."""
        try:
            value = getattr(self, f"do_{what}")(decoder, values, inputs)
            return self.told(value, inputs)
        except BaseException as error:
            return self.failed(error)

    def told(self, value, inputs: list):
        links, outputs = [], []
        given = {id(x) for x in inputs}

        def link(encoder, x):
            number = self.twin_of.get(id(x))
            if number is not None:
                links.append([wire.TWIN, number])
            elif x.requires_grad and torch.is_grad_enabled() and (not x.is_leaf or id(x) in given):
                links.append(wire.tensor(encoder, x.detach()))
                outputs.append(x)
            else:
                return None
            return [wire.LINK, len(links) - 1]

        encoder = Encoder(self.encode_other, link)
        value = encoder.encode(value)
        record = None
        if outputs:
            record = next(self.numbers)
            self.records[record] = inputs, outputs
        return ["ok", record, links, value, self._let_go(), self._changes(encoder), self.give_tail(encoder)], encoder.bulk

    def failed(self, error: BaseException):
        encoder = Encoder(self.encode_other)
        try:
            told = self.encode_error(encoder, error)
        except Exception:  # an error that cannot be told
            told = ["Exception", None, None, "(an error that cannot be shown)", [], None, None]
        return ["raise", told, self._let_go(), self._changes(encoder), self.give_tail(encoder)], encoder.bulk

    def do_gradients(self, decoder: Decoder, values, inputs):
        number, gradients, deeper = (decoder.decode(x) for x in values)
        ins, outs = self.records[number]
        pairs = [(out, g) for out, g in zip(outs, gradients, strict=True) if g is not None]
        if not ins or not pairs:
            return [None] * len(ins)
        outs, gradients = zip(*pairs, strict=True)
        with torch.enable_grad():
            found = torch.autograd.grad(outs, ins, gradients, retain_graph=True, create_graph=deeper is True, allow_unused=True)
        inputs += [x for x in ins if deeper]
        return list(found)

    def encode_error(self, encoder: Encoder, error: BaseException) -> list:
        """Known class, own class, arguments, text, innermost frames, name that was missing, number if the class is its own."""
        kind = type(error)
        known = next(c for c in kind.__mro__ if c.__module__ == "builtins")
        try:
            args = encoder.encode(list(error.args))
        except Exception:
            args = None
        name = getattr(error, "name", None)
        own = None if known is kind else self.encode_other(encoder, kind)
        text = str(error)[:MESSAGE_LIMIT].encode("utf-8", "replace").decode()
        return [
            known.__name__,
            own,
            args,
            text,
            self.frames(error),
            name if type(name) is str else None,
            own and self.give(error),
        ]

    def frames(self, error: BaseException) -> list:
        return []

    # ------------------------------------------------------------ for subclasses

    def head(self, encoder: Encoder):
        """What else goes with a question."""

    def take_head(self, decoder: Decoder, head) -> None:
        """Take it."""

    def give_tail(self, encoder: Encoder):
        """What else goes with an answer."""

    def tail(self, decoder: Decoder, tail) -> None:
        """Take it."""

    def write(self, frame, bulk) -> None:
        frames.send(self.sock, frame, bulk)

    def read(self):
        return frames.receive(self.sock, most=frames.BULK_LIMIT)

    def encode_other(self, encoder: Encoder, x):
        raise NotImplementedError

    def decode_other(self, decoder: Decoder, x):
        raise NotImplementedError


class _State:
    """What a tensor was at a moment. It keeps its memory, so that no other tensor is taken for it later."""

    __slots__ = ("data", "grad", "grad_version", "needs", "version")

    def __init__(self, tensor: torch.Tensor):
        self.data, self.version, self.needs, self.grad = tensor.detach(), tensor._version, tensor.requires_grad, tensor.grad
        self.grad_version = None if self.grad is None else self.grad._version

    def data_changed(self, tensor: torch.Tensor) -> bool:
        data = self.data
        return (data.data_ptr(), self.version, data.shape, data.dtype) != (
            tensor.data_ptr(),
            tensor._version,
            tensor.shape,
            tensor.dtype,
        )

    def grad_changed(self, tensor: torch.Tensor) -> bool:
        grad = tensor.grad
        return grad is not self.grad or (grad is not None and grad._version != self.grad_version)


def innermost(error: BaseException) -> list:
    """(function, line number, line) of the innermost frames of an error that are the student's."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not any(q in f.filename for q in QUIET)]
    return [[f.name[:100], int(f.lineno or 0), (f.line or "")[:200]] for f in frames[-FRAMES:]]


def known_error(name) -> type[BaseException]:
    """The built-in exception class of a name, or Exception."""
    found = getattr(builtins, name, None) if type(name) is str else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else Exception
