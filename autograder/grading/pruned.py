"""A notebook's JSON without what is not graded, read piece by piece, so that its size costs no memory.

Outputs are most of a large notebook, and none of them is believed. Here they are skipped byte by byte and never made
into objects; so are attachments, metadata and unknown values beyond a bound. What is left is JSON as it was.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator

CHUNK = 1 << 18  # bytes read at once
LARGEST_VALUE = 1_000_000  # bytes of metadata, a name, or a value that no notebook has
LARGEST_ATTACHMENTS = 20_000_000  # bytes of a cell's attachments
DEEPEST = 1000  # brackets in brackets
MOST_KEYS = 100  # of a cell
TEXTS = "source", "input"  # kept whole; "input" is the source of a code cell in format 3
LISTS = "cells", "worksheets"
EMPTY = {"outputs": b"[]", "attachments": b"{}", "metadata": b"{}"}

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BODY = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,:\[\]{}\"]*+")
_WHOLE = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_CLOSED_THEN_OPEN = re.compile(rb"[\]}]*+[\[{]*+")


class TooLarge(ValueError):
    """What is left is more than was allowed."""


class Damaged(ValueError):
    """A file is no JSON object; the text says why."""


def pruned(read: Callable[[int], bytes], most: int, cells: int) -> tuple[bytes, list[str]]:
    """The JSON of a notebook without outputs, and a phrase for each kind of large thing that was left out.

    Args:
        read: as of a binary file; any encoding that JSON may have.
        most: bytes of the result.
        cells: how many are kept of each list; those beyond go without a phrase.

    Raises:
        TooLarge: if more is left.
        Damaged, ValueError: if it is no JSON object.
    """
    return _Pruning(read, most, cells).all()


class _Pruning:
    def __init__(self, read, most, cells):
        self.pieces, self.most, self.cells = _utf8(read), most, cells
        self.buffer, self.at = b"", 0
        self.kept: list[bytes] = []
        self.size = 0
        self.left_out: dict[str, None] = {}

    def all(self) -> tuple[bytes, list[str]]:
        if self._next() != b"{":
            raise Damaged("it holds no JSON object")
        self._object()
        if self._next():
            raise Damaged("something follows the notebook's end")
        return b"".join(self.kept), list(self.left_out)

    # ------------------------------------------------------------ the parts that are kept

    def _object(self) -> None:
        """A notebook, worksheet or cell: its values by their names."""
        self._keep(b"{")
        self._skip(1)
        count, first = 0, True
        while (byte := self._next()) != b"}":
            if count:
                if byte != b",":
                    raise Damaged("a comma is missing")
                self._skip(1)
                byte = self._next()
            if byte != b'"':
                raise Damaged("a name is missing")
            count += 1
            if count > MOST_KEYS:
                self._rest(1, None)
                self.left_out["some of a cell's entries"] = None
                break
            name = self._value(LARGEST_VALUE)
            if self._next() != b":":
                raise Damaged("a colon is missing")
            self._skip(1)
            byte = self._next()
            if name is None:
                self._value(0)
                self.left_out["a name of more than 1 MB"] = None
                continue
            self._keep((b"" if first else b",") + name + b":")
            first = False
            key = json.loads(name.decode("utf-8", "replace"))
            if key in LISTS and byte == b"[":
                self._list()
            elif key in TEXTS:
                self._keep(self._value(self.most - self.size))
            else:
                limit = {"outputs": 0, "attachments": LARGEST_ATTACHMENTS}.get(key, LARGEST_VALUE)
                value = self._value(limit)
                if value is None and key != "outputs":
                    self.left_out[f"{key if key in EMPTY else 'a value'} of more than {limit // 1_000_000} MB"] = None
                self._keep(EMPTY.get(key, b"null") if value is None else value)
        else:
            self._skip(1)
        self._keep(b"}")

    def _list(self) -> None:
        self._keep(b"[")
        self._skip(1)
        count = 0
        while (byte := self._next()) != b"]":
            if count:
                if byte != b",":
                    raise Damaged("a comma is missing")
                self._skip(1)
                byte = self._next()
            if count == self.cells:
                self._rest(1, None)
                break
            self._keep(b"," if count else b"")
            count += 1
            if byte == b"{":
                self._object()
            else:
                self._keep(self._value(LARGEST_VALUE) or b"null")
        else:
            self._skip(1)
        self._keep(b"]")

    def _keep(self, piece: bytes | None) -> None:
        self.size += self.most + 1 if piece is None else len(piece)
        if self.size > self.most:
            raise TooLarge
        self.kept.append(piece)

    # ------------------------------------------------------------ values, kept or skipped whole

    def _value(self, limit: int) -> bytes | None:
        """Pass a value; its bytes, or None if they are more than the limit."""
        sink = _Sink(limit)
        match self._next():
            case b"":
                raise Damaged("it ends too soon")
            case b'"':
                self._string(sink)
            case b"[" | b"{":
                sink(self._take(1))
                self._rest(1, sink)
            case _:
                start = sink.size
                while True:
                    end = _SCALAR.match(self.buffer, self.at).end()
                    sink(self._take(end - self.at))
                    if self.at < len(self.buffer) or not self._more():
                        break
                if sink.size == start:
                    raise Damaged("a value is missing")
        return sink.bytes()

    def _string(self, sink: "_Sink | None") -> None:
        piece = self._take(1)
        while True:
            if sink:
                sink(piece)
            end = _BODY.match(self.buffer, self.at).end()
            piece = self._take(end - self.at)
            if self.buffer[self.at : self.at + 1] == b'"':
                piece += self._take(1)
                break
            if not self._more():  # at the end of what was read, or at a backslash there
                raise Damaged("it ends too soon")
        if sink:
            sink(piece)

    def _rest(self, depth: int, sink: "_Sink | None") -> None:
        """Pass what is left of a list or object, `depth` brackets deep."""
        while True:
            end = _WHOLE.match(self.buffer, self.at).end()
            part = self.buffer[self.at : end]
            brackets = _STRING.sub(b"", part).translate(None, _NO_BRACKET)
            for _ in range(DEEPEST):
                size = len(brackets)
                brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
                if len(brackets) == size:
                    break
            else:
                raise Damaged("it has brackets in brackets without end")
            if not _CLOSED_THEN_OPEN.fullmatch(brackets):
                raise Damaged("its brackets do not fit")
            closed = brackets.count(b"]") + brackets.count(b"}")
            if closed >= depth:  # the end is in here
                for token in _TOKEN.finditer(part):
                    byte = token[0]
                    depth += (byte in b"[{") - (byte in b"]}")
                    if depth == 0:
                        if sink:
                            sink(part[: token.end()])
                        self.at += token.end()
                        return
            depth += len(brackets) - 2 * closed
            if depth > DEEPEST:
                raise Damaged("it has brackets in brackets without end")
            if sink:
                sink(part)
            self.at = end
            if self.at < len(self.buffer):  # a string that is not all here
                self._string(sink)
            elif not self._more():
                raise Damaged("it ends too soon")

    # ------------------------------------------------------------ bytes

    def _next(self) -> bytes:
        """The next byte that is no space, which stays; nothing at the end."""
        while True:
            self.at = _SPACE.match(self.buffer, self.at).end()
            if self.at < len(self.buffer):
                return self.buffer[self.at : self.at + 1]
            if not self._more():
                return b""

    def _take(self, count: int) -> bytes:
        piece = self.buffer[self.at : self.at + count]
        self.at += count
        return piece

    def _skip(self, count: int) -> None:
        self.at += count

    def _more(self) -> bool:
        piece = next(self.pieces, b"")
        self.buffer, self.at = self.buffer[self.at :] + piece, 0
        return bool(piece)


class _Sink:
    """Bytes up to a limit; beyond it they are only counted."""

    def __init__(self, limit: int):
        self.limit, self.size, self.pieces = limit, 0, []

    def __call__(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size <= self.limit:
            self.pieces.append(piece)
        else:
            self.pieces.clear()

    def bytes(self) -> bytes | None:
        return b"".join(self.pieces) if self.size <= self.limit else None


def _utf8(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The pieces of a file in UTF-8 (or in what its bytes are, if no encoding of JSON), never an empty one."""
    first = read(CHUNK)
    encoding = json.detect_encoding(first[:4])
    if encoding.startswith("utf-8"):
        decoded = iter(lambda: read(CHUNK), b"")
        first = first.removeprefix(codecs.BOM_UTF8)
    else:
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        first = decoder.decode(first).encode("utf-8", "surrogatepass")
        decoded = (decoder.decode(piece).encode("utf-8", "surrogatepass") for piece in iter(lambda: read(CHUNK), b""))
    if first:
        yield first
    yield from filter(None, decoded)
