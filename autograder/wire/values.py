"""Values in the frames between the student's process and the tests' process: nothing that can execute.

A value is what msgpack takes: None, booleans, numbers, text and bytes are themselves, everything else is a
list that starts with a tag. What a tag means is decoded here for plain values, and by the two ends for
what stays where it is (functions, objects). The bytes of arrays and tensors stand behind the structure.

The tests' side reads values that student code may have written. Each limit is kept before memory is taken for
what is beyond it, and whatever is not as it should be is a `WireError`.
"""

import array
import collections
import decimal
import fractions
import keyword
import math
import operator
import re
import sys
from collections.abc import Callable

import numpy as np
import torch

from autograder.wire.frames import BULK_LIMIT, WireError

COUNT_LIMIT = 1_000_000  # values in a frame
DEPTH_LIMIT = 100  # of lists in lists
DIGIT_LIMIT = 20_000  # of a whole number
DECIMAL_LIMIT = 4000  # digits of a fraction or a decimal number, and its largest exponent
MATRIX_LIMIT = 1000  # entries of a matrix of expressions
EXPRESSION = 100  # plain values that take as long as an expression
WHY_LIMIT = 200  # characters of the reason why an expression is refused
FIELD_LIMIT = 100  # of a named tuple
PACKED = 16  # plain numbers in a row from which they travel as one array
_ALIGN = 16

(
    LIST,
    TUPLE,
    SET,
    FROZENSET,
    DICT,
    NAMED_TUPLE,
    INTEGER,
    COMPLEX,
    TEXT,
    RANGE,
    SLICE,
    ELLIPSIS,
    FLOATS,
    INTEGERS,
    SCALAR,
    ARRAY,
    TENSOR,
    DTYPE,
    SIZE,
    DEVICE,
    MAPPING,
    QUEUE,
    SYMBOLIC,
    MATRIX,
    FRACTION,
    DECIMAL,
    TYPE,
    HERE,
    FUNCTION,
    ITERATOR,
    CLASS,
    OBJECT,
    DERIVED,
    MODULE,
    BUILT,
    RANDOM,
    LINK,
    TWIN,
) = range(38)
"""Tags. From TYPE on they are the ends' own: types known on both sides, and things that stay on one."""

_MAPPINGS = {"OrderedDict": collections.OrderedDict, "Counter": collections.Counter}
_DTYPES = {str(x).removeprefix("torch."): x for x in vars(torch).values() if isinstance(x, torch.dtype)}
_TENSORS = {name: x for name, x in _DTYPES.items() if not x.is_complex or x.itemsize >= 8}
_KINDS = "biufcSUmM"  # of numpy arrays that hold no objects
_DTYPE = re.compile(rf"[<>|=]?[{_KINDS}]\d{{1,10}}(\[\d{{0,9}}[a-zA-Zμ]{{1,7}}\])?|[<>]?[mM]8")


# ---------------------------------------------------------------- values


class Encoder:
    """Turns values into the structure and the bulk of one frame.

    Args:
        other: called with this encoder and what is no plain value; gives its structure or raises TypeError.
        link: called with this encoder and a tensor; gives the structure that stands for it, or None.
    """

    def __init__(self, other: Callable | None = None, link: Callable | None = None):
        self.other, self.link, self.bulk, self.size = other, link, [], 0
        self.depth = 0

    def encode(self, x):
        """The structure of a value.

        Raises:
            TypeError: if it, or something in it, cannot travel.
            WireError: if it is too deep or too large.
        """
        kind = type(x)
        if x is None or kind is bool or kind is float or kind is bytes:
            return x
        if kind is int:
            return x if -(1 << 63) <= x < 1 << 64 else [INTEGER, _digits(x)]
        if kind is str:
            return x if x.isascii() else _text(x)
        how = _ENCODE.get(kind)
        if how is None:
            how = _encode_other
        if self.depth >= DEPTH_LIMIT:
            raise WireError(f"it is nested more than {DEPTH_LIMIT} deep")
        self.depth += 1
        try:
            return how(self, x)
        finally:
            self.depth -= 1

    def add(self, data) -> int:
        """Put bytes behind the structure; returns where they are."""
        at, data = self.size, bytes(data)
        padded = -len(data) % _ALIGN
        self.bulk.append(data + bytes(padded))
        self.size += len(data) + padded
        if self.size > BULK_LIMIT:
            raise WireError(f"it takes more than {BULK_LIMIT >> 20} MB")
        return at


def _digits(x: int) -> str:
    if x.bit_length() > DIGIT_LIMIT * 3:
        raise WireError(f"a number of more than {DIGIT_LIMIT} digits")
    return hex(x)


def _text(x: str):
    try:
        x.encode()
    except UnicodeEncodeError:  # half a character
        return [TEXT, x.encode("utf-8", "surrogatepass")]
    return x


def _numbers(encoder, x):
    if len(x) >= PACKED:
        if all(type(y) is float for y in x):
            return [FLOATS, len(x), encoder.add(array.array("d", x).tobytes())]
        if all(type(y) is int and -(1 << 63) <= y < 1 << 63 for y in x):
            return [INTEGERS, len(x), encoder.add(array.array("q", x).tobytes())]
    return None


def _encode_list(encoder, x):
    packed = _numbers(encoder, x)
    return [LIST, packed] if packed else [LIST, None, *map(encoder.encode, x)]


def _encode_tuple(encoder, x):
    packed = _numbers(encoder, x)
    return [TUPLE, packed] if packed else [TUPLE, None, *map(encoder.encode, x)]


def _encode_dict(encoder, x):
    flat = [DICT]
    for key, value in list(x.items()):
        flat += (encoder.encode(key), encoder.encode(value))
    return flat


def _encode_mapping(encoder, x):
    return [MAPPING, type(x).__name__, encoder.encode(dict(x))]


def _encode_scalar(encoder, x):
    return [SCALAR, x.dtype.str, x.tobytes()]


def _encode_array(encoder, x):
    if x.dtype.kind == "O":
        return [ARRAY, "O", list(x.shape), [encoder.encode(y) for y in x.ravel().tolist()], False]
    if x.dtype.kind not in _KINDS or x.dtype.names:
        raise TypeError(f"an array of {x.dtype}")
    fortran = x.flags.f_contiguous and not x.flags.c_contiguous
    return [ARRAY, x.dtype.str, list(x.shape), encoder.add(x.tobytes("F" if fortran else "C")), fortran]


def _encode_tensor(encoder, x):
    if encoder.link is not None and (found := encoder.link(encoder, x)) is not None:
        return found
    return tensor(encoder, x)


def tensor(encoder: Encoder, x: torch.Tensor) -> list:
    """The structure of a tensor's values, whatever graph it is part of.

    Raises:
        TypeError: if it is sparse, quantized, nested or without data.
    """
    if x.layout is not torch.strided or x.is_quantized or x.is_meta or x.is_nested:
        raise TypeError("a tensor that is not dense")
    name, needs = str(x.dtype).removeprefix("torch."), x.requires_grad
    plain = x.detach().cpu().resolve_conj().resolve_neg()
    strides = None
    if not plain.is_contiguous() and 0 not in plain.stride():
        extent = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True))
        strides = list(plain.stride()) if extent <= 4 * plain.numel() else None
    data = plain.contiguous().reshape(-1).view(torch.uint8).numpy() if plain.numel() else b""
    # A leaf, what was computed from leaves, or a parameter: in-place changes are allowed to some only.
    grad = 0 if not needs else 3 if type(x) is torch.nn.Parameter else 1 if x.is_leaf else 2
    return [TENSOR, name, list(x.shape), strides, encoder.add(data), grad if needs or type(x) is torch.Tensor else 4]


def _encode_symbolic(encoder, x):
    from course import expressions

    try:
        return [SYMBOLIC, expressions.to_plain(x)]
    except expressions.ExpressionError as error:
        return _refused(error)


def _refused(error: Exception) -> list:
    return [SYMBOLIC, ["Refused", str(error)[:WHY_LIMIT].encode("utf-8", "replace").decode()]]


def _encode_matrix(encoder, x):
    from course import expressions

    if x.rows * x.cols > MATRIX_LIMIT:
        raise WireError(f"a matrix of more than {MATRIX_LIMIT:,} entries")
    try:
        return [MATRIX, x.rows, x.cols, isinstance(x, _immutable()), [expressions.to_plain(y) for y in x.flat()]]
    except expressions.ExpressionError as error:
        return _refused(error)


def _immutable() -> type:
    import sympy

    return sympy.ImmutableDenseMatrix


def _encode_decimal(encoder, x):
    sign, digits, exponent = x.as_tuple()
    if type(exponent) is int and (len(digits) > DECIMAL_LIMIT or abs(exponent) > DECIMAL_LIMIT):
        raise WireError(f"a number of more than {DECIMAL_LIMIT} digits")
    return [DECIMAL, sign, "".join(map(str, digits)), exponent]


def _encode_other(encoder, x):
    kind = type(x)
    if isinstance(x, np.generic) and kind.__module__ == "numpy" and x.dtype.kind in _KINDS:
        return _encode_scalar(encoder, x)
    if isinstance(x, tuple) and kind.__module__ == "torch.return_types":
        return [NAMED_TUPLE, kind.__name__, list(kind.__match_args__), *map(encoder.encode, x)]
    if (sympy := sys.modules.get("sympy")) and isinstance(x, sympy.Basic | sympy.MatrixBase):
        return (_encode_matrix if isinstance(x, sympy.MatrixBase) else _encode_symbolic)(encoder, x)
    if encoder.other is not None:
        return encoder.other(encoder, x)
    raise TypeError(f"{kind.__name__} cannot travel")


_ENCODE = {
    list: _encode_list,
    tuple: _encode_tuple,
    dict: _encode_dict,
    set: lambda e, x: [SET, *map(e.encode, x)],
    frozenset: lambda e, x: [FROZENSET, *map(e.encode, x)],
    fractions.Fraction: lambda e, x: [FRACTION, _digits(x.numerator), _digits(x.denominator)],
    decimal.Decimal: _encode_decimal,
    complex: lambda e, x: [COMPLEX, x.real, x.imag],
    range: lambda e, x: [RANGE, *map(e.encode, (x.start, x.stop, x.step))],
    slice: lambda e, x: [SLICE, *map(e.encode, (x.start, x.stop, x.step))],
    type(...): lambda e, x: [ELLIPSIS],
    bytearray: lambda e, x: bytes(x),
    np.ndarray: _encode_array,
    torch.Tensor: _encode_tensor,
    torch.nn.Parameter: _encode_tensor,
    torch.dtype: lambda e, x: [DTYPE, str(x).removeprefix("torch.")],
    torch.Size: lambda e, x: [SIZE, *x],
    torch.device: lambda e, x: [DEVICE, x.type],
    collections.deque: lambda e, x: [QUEUE, e.encode(list(x)), x.maxlen],
} | dict.fromkeys(_MAPPINGS.values(), _encode_mapping)


class Decoder:
    """Turns the structure and the bulk of one frame back into values.

    Args:
        bulk: as `receive` gives it.
        other: called with this decoder and a structure whose tag is an end's own.
    """

    def __init__(self, bulk: bytearray, other: Callable | None = None):
        self.bulk, self.other = bulk, other
        self.count = self.depth = 0

    def decode(self, x):
        """The value of a structure.

        Raises:
            WireError: if it is none.
        """
        kind = type(x)
        if x is None or kind is bool or kind is int or kind is float or kind is str or kind is bytes:
            return x
        self.count += 1
        if kind is not list or not x or type(x[0]) is not int or self.depth >= DEPTH_LIMIT:
            raise WireError("no value")
        self.count += len(x)
        if self.count > COUNT_LIMIT:
            raise WireError(f"more than {COUNT_LIMIT:,} values")
        how = _DECODE.get(x[0])
        self.depth += 1
        try:
            if how is not None:
                return how(self, x)
            if self.other is not None:
                return self.other(self, x)
        except WireError:
            raise
        except Exception as error:
            raise WireError(f"no value ({type(error).__name__})") from None
        finally:
            self.depth -= 1
        raise WireError("an unknown tag")

    def take(self, at, size: int) -> memoryview:
        """`size` bytes of the bulk from `at` on."""
        if type(at) is not int or not 0 <= at <= at + size <= len(self.bulk) or at % _ALIGN:
            raise WireError("bytes that are not there")
        return memoryview(self.bulk)[at : at + size]


def _whole(x, most: int = 1 << 40) -> int:
    if type(x) is not int or not 0 <= x <= most:
        raise WireError("no size")
    return x


def _shape(x) -> tuple[tuple[int, ...], int]:
    if type(x) is not list or len(x) > 64:
        raise WireError("no shape")
    shape = tuple(_whole(n) for n in x)
    return shape, math.prod(shape)


def _sequence(decoder, x, make):
    packed = x[1]
    if packed is None:
        return make(map(decoder.decode, x[2:]))
    tag, n, at = packed
    code = {FLOATS: "d", INTEGERS: "q"}[tag]
    numbers = array.array(code)
    numbers.frombytes(decoder.take(at, 8 * _whole(n, BULK_LIMIT)))
    decoder.count += len(numbers) // 8
    return make(numbers)


def _decode_dict(decoder, x):
    if len(x) % 2 == 0:
        raise WireError("a key without a value")
    values = [decoder.decode(y) for y in x[1:]]
    found = {}
    for key, value in zip(values[::2], values[1::2], strict=True):  # step by step: a limit of time may end it
        found[key] = value
    return found


def _integer(x) -> int:
    if type(x) is not str or len(x) > DIGIT_LIMIT:
        raise WireError("no number")
    return int(x, 16)


def _decode_decimal(decoder, x):
    _, sign, digits, exponent = x
    if type(digits) is not str or not digits.isascii() or len(digits) > DECIMAL_LIMIT:
        raise WireError("no number")
    if exponent not in ("F", "n", "N"):
        _whole(abs(exponent), DECIMAL_LIMIT)
    return decimal.Decimal((sign, tuple(map(int, digits)), exponent))


def _decode_scalar(decoder, x):
    _, name, data = x
    dtype = _numpy_dtype(name)
    if type(data) is not bytes or len(data) != dtype.itemsize:
        raise WireError("no scalar")
    return np.frombuffer(data, dtype, 1)[0] if dtype.itemsize else dtype.type()


def _numpy_dtype(name) -> np.dtype:
    if type(name) is not str or not _DTYPE.fullmatch(name):
        raise WireError("no dtype")
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS or dtype.names or dtype.subdtype:
        raise WireError("no dtype")
    return dtype


def _decode_array(decoder, x):
    _, name, shape, data, fortran = x
    shape, size = _shape(shape)
    if name == "O":
        if type(data) is not list or len(data) != size:
            raise WireError("no array")
        flat = np.empty(size, object)
        for i, y in enumerate(data):
            flat[i] = decoder.decode(y)
        return flat.reshape(shape)
    dtype = _numpy_dtype(name)
    raw = (
        np.frombuffer(decoder.take(data, size * dtype.itemsize), dtype, size)
        if size and dtype.itemsize
        else np.zeros(size, dtype)
    )
    return raw.reshape(shape, order="F" if fortran is True else "C").copy("K")


def _decode_tensor(decoder, x):
    _, name, shape, strides, at, grad = x
    dtype = _TENSORS[name]
    shape, size = _shape(shape)
    raw = decoder.take(at, size * dtype.itemsize)
    # Its own memory: a tensor that shares the frame's would keep all of it.
    tensor = torch.frombuffer(bytearray(raw), dtype=dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)
    if strides is not None:
        strides, _ = _shape(strides)
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if size and (0 in strides or extent > 4 * size):
            raise WireError("no strides")
        tensor = torch.empty_strided(shape, strides, dtype=dtype).copy_(tensor)
    if grad not in (0, 1, 2, 3, 4):
        raise WireError("no tensor")
    if grad == 4:
        return torch.nn.Parameter(tensor, requires_grad=False)
    if grad:
        return torch.nn.Parameter(tensor) if grad == 3 else tensor.requires_grad_()
    return tensor


def dtype(name) -> torch.dtype:
    """The torch dtype of a name."""
    return _DTYPES[name]


def _decode_symbolic(decoder, x):
    """An expression of the few kinds of nodes that `course.expressions` knows, as it was written; or why it is none."""
    from course import expressions

    _, told = x
    decoder.count += EXPRESSION
    if type(told) is list and told[:1] == ["Refused"]:
        _, why = told
        if type(why) is not str or len(why) > WHY_LIMIT:
            raise WireError("no expression")
        return expressions.Refused(why)
    try:
        return expressions.from_plain(told)
    except expressions.ExpressionError as error:
        return expressions.Refused(str(error))


def _decode_matrix(decoder, x):
    import sympy

    from course import expressions

    _, rows, columns, immutable, flat = x
    if _whole(rows) * _whole(columns) > MATRIX_LIMIT or type(flat) is not list or len(flat) != rows * columns:
        raise WireError("no matrix")
    decoder.count += EXPRESSION * len(flat)
    if decoder.count > COUNT_LIMIT:
        raise WireError(f"more than {COUNT_LIMIT:,} values")
    kind = sympy.ImmutableDenseMatrix if immutable is True else sympy.MutableDenseMatrix
    try:
        return kind(rows, columns, [expressions.from_plain(y) for y in flat])
    except expressions.ExpressionError as error:
        return expressions.Refused(str(error))


def _decode_named_tuple(decoder, x):
    _, name, fields, *values = x
    values = [decoder.decode(y) for y in values]
    fits = type(fields) is list and 0 < len(fields) == len(values) <= FIELD_LIMIT
    if not fits or not _is_name(name) or not all(map(_is_name, fields)) or len(set(fields)) < len(fields):
        return tuple(values)
    return _named_tuple(name, tuple(fields))(*values)


def _named_tuple(name: str, fields: tuple[str, ...]) -> type:
    """What `collections.namedtuple` makes, which evaluates a text with these names."""
    return type(
        name,
        (tuple,),
        {
            "__slots__": (),
            "_fields": fields,
            "__new__": lambda kind, *values: tuple.__new__(kind, values),
            "__getnewargs__": lambda self: tuple(self),
            "__repr__": lambda self: f"{name}({', '.join(f'{f}={v!r}' for f, v in zip(fields, self, strict=True))})",
        }
        | {field: property(operator.itemgetter(i)) for i, field in enumerate(fields)},
    )


def _is_name(x) -> bool:
    return type(x) is str and len(x) < 100 and x.isidentifier() and not x.startswith("_") and not keyword.iskeyword(x)


_DECODE = {
    LIST: lambda d, x: _sequence(d, x, list),
    TUPLE: lambda d, x: _sequence(d, x, tuple),
    SET: lambda d, x: set(map(d.decode, x[1:])),
    FROZENSET: lambda d, x: frozenset(map(d.decode, x[1:])),
    DICT: _decode_dict,
    NAMED_TUPLE: _decode_named_tuple,
    INTEGER: lambda d, x: _integer(x[1]),
    FRACTION: lambda d, x: fractions.Fraction(*map(_integer, x[1:])),
    DECIMAL: _decode_decimal,
    COMPLEX: lambda d, x: complex(float(x[1]), float(x[2])),
    TEXT: lambda d, x: bytes(x[1]).decode("utf-8", "surrogatepass"),
    RANGE: lambda d, x: range(*map(d.decode, x[1:])),
    SLICE: lambda d, x: slice(*map(d.decode, x[1:])),
    ELLIPSIS: lambda d, x: ...,
    SCALAR: _decode_scalar,
    ARRAY: _decode_array,
    TENSOR: _decode_tensor,
    DTYPE: lambda d, x: _DTYPES[x[1]],
    SIZE: lambda d, x: torch.Size(_whole(n) for n in x[1:]),
    DEVICE: lambda d, x: torch.device("cpu"),
    MAPPING: lambda d, x: _MAPPINGS[x[1]](d.decode(x[2])),
    QUEUE: lambda d, x: collections.deque(d.decode(x[1]), x[2]),
    SYMBOLIC: _decode_symbolic,
    MATRIX: _decode_matrix,
}
