"""Values cross as they are; whatever else comes is a WireError."""

import collections
import contextlib
import copy
import decimal
import fractions
import math
import socket
import struct
import threading
import time

import msgpack
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.wire import frames
from autograder.wire import values as wire
from autograder.wire.frames import Closed, Late, WireError
from autograder.wire.values import Decoder, Encoder
from course.checks import difference
from course.expressions import Refused

Pair = collections.namedtuple("Pair", "left right")


def there(x):
    """A value as the other side gets it, by way of real bytes."""
    encoder = Encoder()
    packed = msgpack.packb(encoder.encode(x), use_bin_type=True)
    return Decoder(bytearray(b"".join(encoder.bulk))).decode(msgpack.unpackb(packed, raw=False))


PLAIN = [
    None,
    True,
    3,
    -(1 << 63),
    1 << 200,
    -(1 << 100),
    0.1,
    math.inf,
    "ñ日🙂",
    chr(0xD800),
    b"\x00\xff",
    1 + 2j,
    fractions.Fraction(1, 3),
    decimal.Decimal("-0.010"),
    decimal.Decimal("Infinity"),
    ...,
    range(1, 9, 2),
    slice(None, 3),
    [1, [2.5, "x"], ()],
    list(range(50)),
    tuple(x / 7 for x in range(40)),
    [1, 2.0] * 20,
    {"a": 1, (2, 3): [4]},
    {1, 2},
    frozenset({2, 7}),
    collections.Counter("aab"),
    collections.OrderedDict(b=1, a=2),
    collections.deque([1, 2], 5),
    torch.float32,
    torch.Size([2, 3]),
    torch.device("cpu"),
]


@pytest.mark.parametrize("x", PLAIN, ids=repr)
def test_plain_values_come_as_they_are(x):
    assert there(x) == x and type(there(x)) is type(x)


@pytest.mark.parametrize("x", [np.int64(42), np.float32(0.1), np.bool_(True), np.complex128(1j), np.str_("x")], ids=repr)
def test_numpy_scalars_keep_their_type(x):
    assert there(x) == x and type(there(x)) is type(x)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.zeros((0, 3), dtype=np.float32),
        np.array(3.5),
        np.array(["a", "bc"]),
        np.array([True, False]),
    ],
)
def test_arrays_keep_dtype_shape_and_order(x):
    y = there(x)
    assert np.array_equal(y, x) and (y.dtype, y.shape, y.flags.f_contiguous) == (x.dtype, x.shape, x.flags.f_contiguous)
    assert y.flags.writeable


def test_an_array_of_objects_is_one():
    x = np.empty(2, object)
    x[:] = [1, [2]]
    assert there(x).tolist() == [1, [2]] and there(x).dtype == object


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_tensors_keep_dtype_and_shape(dtype, shape):
    x = (torch.arange(math.prod(shape)).reshape(shape) % 2).to(dtype)
    assert there(x).dtype == dtype and torch.equal(there(x), x)


def test_tensors_keep_strides_and_what_they_are():
    x = torch.arange(6.0).reshape(2, 3)
    assert there(x.T).stride() == (1, 3) and torch.equal(there(x.T), x.T)
    assert torch.equal(there(x[:, :1].expand(2, 100)), x[:, :1].expand(2, 100))
    assert there(x.requires_grad_()).requires_grad and there(x).is_leaf
    assert type(there(torch.nn.Parameter(x.detach()))) is torch.nn.Parameter
    assert torch.equal(there(torch.tensor([1 + 2j]).conj()), torch.tensor([1 - 2j]))


def test_a_named_result_of_torch_keeps_its_fields():
    assert there(torch.max(torch.eye(2), 0)).indices.tolist() == [0, 1]


@pytest.mark.parametrize(
    "x",
    [
        sympy.Symbol("P", positive=True) ** (sympy.Symbol("a") / 3),
        sympy.sin(sympy.pi * sympy.Symbol("x")) + sympy.E,
        -sympy.oo,
        sympy.Float("0.1", 30),
        sympy.Piecewise((sympy.Max(sympy.Symbol("x"), 1), sympy.Symbol("x") > 0), (0, True)),
        sympy.Sum(sympy.Symbol("x") ** 2, (sympy.Symbol("x"), 1, sympy.Symbol("n"))),
        sympy.ImmutableMatrix([[1, 2]]),
        sympy.Matrix([[1, sympy.Symbol("x")]]),
        sympy.Eq(sympy.Symbol("x"), 2),
    ],
    ids=str,
)
def test_sympy_expressions_are_built_again(x):
    assert there(x) == x


x = sympy.Symbol("x")


@pytest.mark.parametrize(
    "refused",
    [
        sympy.Function("f")(x),
        sympy.Function("__import__('os').system")(x),
        sympy.Symbol("__import__('os').system('id')"),
        sympy.Symbol("A", commutative=False),
        sympy.Pow(10, sympy.Pow(10, 10, evaluate=False), evaluate=False),
        sympy.exp(sympy.exp(sympy.exp(sympy.Integer(100)))),
        sympy.Integer(10) ** 5000,
        sympy.factorial(sympy.Integer(10) ** 12, evaluate=False),
        sympy.Subs(sympy.Derivative(sympy.sin(x), x), x, 1),
        sympy.Poly(x + 1),
        sympy.Lambda(x, x),
        sympy.Interval(0, 1),
        sum((x**i for i in range(2, 2000)), x),
    ],
    ids=lambda e: type(e).__name__,
)
def test_an_expression_of_another_kind_comes_as_the_reason_why_it_is_refused(refused):
    start = time.monotonic()
    came = there([refused])[0]
    assert type(came) is Refused and came.why.startswith(("holds", "is a formula")) and time.monotonic() - start < 5


def test_an_expression_that_grows_on_the_way_is_refused_in_time():
    tree = x
    for _ in range(49):  # shared here, 2**49 nodes as a tree
        tree = sympy.Add(tree, tree, evaluate=False)
    assert type(there(tree)) is Refused


SYMBOL = ["Symbol", "x"]


@pytest.mark.parametrize(
    "told",
    [
        "x + 1",
        ["Function", "f", SYMBOL],
        ["sympify", SYMBOL],
        ["Basic"],
        ["Symbol", "__import__('os')"],
        ["Symbol", "x" * 51],
        ["Symbol", ["x"]],
        ["Symbol", "x", "commutative", False],
        ["Symbol", "x", "cls", True],
        ["Symbol", "x", "positive", True, "negative", True],
        ["Rational", "0x1", "0x0"],
        ["Rational", "0x" + "f" * 2000, "0x1"],
        ["Rational", 1, 1],
        ["Float", "0x1", 1 << 40, 53],
        ["Float", "0x1", 0, 1 << 40],
        ["Pow", ["Rational", "0xa", "0x1"], ["Pow", ["Rational", "0xa", "0x1"], ["Rational", "0xa", "0x1"]]],
        ["Pow", SYMBOL],
        ["sin", SYMBOL, SYMBOL, SYMBOL],
        ["Add", ["Tuple", SYMBOL]],
        ["Add", ["BooleanTrue"]],
        ["Piecewise", SYMBOL],
        ["Pi", SYMBOL],
        ["Sum"],
        ["Refused", "x" * 1000],
        ["Refused", 1],
        ["Add", *([SYMBOL] * 2000)],
    ],
    ids=lambda told: str(told)[:40],
)
def test_a_forged_expression_is_refused(told):
    with contextlib.suppress(WireError):
        assert type(Decoder(bytearray()).decode([wire.SYMBOLIC, told])) is Refused


def test_forged_names_reach_no_evaluator():
    fields = ["a", "b=print(1)", "class", "_x", "a"]
    for field in fields[1:]:
        came = Decoder(bytearray()).decode([wire.NAMED_TUPLE, "Pair", ["a", field], 1, 2])
        assert type(came) is tuple
    came = Decoder(bytearray()).decode([wire.NAMED_TUPLE, "Pair", ["left", "right"], 1, 2])
    assert (came.left, came.right, repr(came), came) == (1, 2, "Pair(left=1, right=2)", (1, 2))
    assert copy.deepcopy(came) == came and type(came)(*came) == came
    for name in ("O", "(2,3)f8", "i4,(2,3)f8", "{'names': ['a'], 'formats': ['O']}", "<f8" * 9):
        with pytest.raises(WireError):
            Decoder(bytearray(64)).decode([wire.SCALAR, name, bytes(8)])


@pytest.mark.parametrize(
    "told",
    [[0, "1", 10**9], [0, "1", -(10**9)], [0, "1" * 5000, 0], [0, "1x", 0], [0, "1", "x"], [0, ["1"], 0]],
    ids=lambda told: str(told)[:20],
)
def test_forged_decimals_are_refused(told):
    with pytest.raises(WireError):
        Decoder(bytearray()).decode([wire.DECIMAL, *told])


def test_what_cannot_travel_is_said():
    with pytest.raises(TypeError, match="cannot travel"):
        there([object()])
    nested: list = []
    for _ in range(200):
        nested = [nested]
    with pytest.raises(WireError, match="nested"):
        there(nested)
    loop: list = []
    loop.append(loop)
    with pytest.raises(WireError, match="nested"):
        there(loop)
    with pytest.raises(WireError, match="MB"):
        there(torch.zeros(40_000_000))


# ---------------------------------------------------------------- frames


@pytest.fixture
def ends():
    a, b = socket.socketpair()
    yield a, b
    a.close()
    b.close()


def soon(seconds=0.2):
    return time.monotonic() + seconds


def test_a_frame_arrives(ends):
    frames.send(ends[0], ["x", 1], [bytes(16)])
    assert frames.receive(ends[1], soon()) == (["x", 1], bytearray(16))


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<II", 1 << 30, 0),
        struct.pack("<II", 0, 1 << 31),
        struct.pack("<II", 0, 0),
        struct.pack("<II", 1, 0) + b"\xc1",
        struct.pack("<II", 2, 0) + b"\x01\x02",
        struct.pack("<II", 3, 0) + b"\x81\x01\x02",  # a map
        struct.pack("<II", 3, 0) + b"\xd4\x01\x02",  # an extension
        struct.pack("<II", 5, 0) + b"\xdd\xff\xff\xff\xff",  # an array of four billion
        struct.pack("<II", 3000, 0) + b"\x91" * 3000,  # nested 3,000 deep
        struct.pack("<II", 2, 0) + b"\xa1\xff",  # no UTF-8
    ],
)
def test_what_is_no_frame_is_refused(ends, data):
    ends[0].sendall(data)
    with pytest.raises(WireError):
        frames.receive(ends[1], soon())


def test_half_a_frame_is_late_and_a_closed_side_is_closed(ends):
    ends[0].sendall(struct.pack("<II", 10, 0) + b"\x91")
    with pytest.raises(Late):
        frames.receive(ends[1], soon(0.05))
    ends[0].close()
    with pytest.raises(Closed):
        frames.receive(ends[1], soon())


def test_a_frame_that_drips_is_late(ends):
    def drip():
        for _ in range(20):
            ends[0].send(b"\x01")
            time.sleep(0.02)

    thread = threading.Thread(target=drip)
    ends[0].sendall(struct.pack("<II", 1000, 0))
    thread.start()
    with pytest.raises(Late):
        frames.receive(ends[1], soon(0.1))
    thread.join()


def test_nobody_who_reads_is_late(ends):
    with pytest.raises(Late):
        frames.send(ends[0], [], [bytes(1 << 24)], soon(0.1))


# ---------------------------------------------------------------- fuzzing

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(), st.text(max_size=8), st.binary(max_size=9)
)
TAGGED = st.recursive(
    ATOMS | st.sampled_from(["float32", "<f8", "Pow", "Symbol", "PCG64", "<U9", "O", 1, 16, 1 << 40]),
    lambda inner: (
        st.lists(inner, max_size=5).map(list)
        | st.tuples(st.integers(0, 40), st.lists(inner, max_size=6)).map(lambda p: [p[0], *p[1]])
    ),
    max_leaves=25,
)


@settings(max_examples=200)
@given(TAGGED)
def test_random_structures_are_values_or_refused(structure):
    with contextlib.suppress(WireError):
        Decoder(bytearray(64)).decode(structure)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=9)
    | st.complex_numbers(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=15,
)


@settings(max_examples=200)
@given(VALUES)
def test_random_values_come_as_they_are(x):
    assert difference(x, there(x)) is None and type(there(x)) is type(x)


SAMPLE = [
    torch.eye(3),
    np.arange(5.0),
    sympy.sympify("x**2 + sin(y)/3"),
    list(range(30)),
    {"a": (1, 2.5), "b": np.int32(7)},
    "text",
]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 10_000))
def test_mutated_frames_are_values_or_refused(changes, cut):
    encoder = Encoder()
    packed = bytearray(msgpack.packb(encoder.encode(SAMPLE), use_bin_type=True))
    for place, byte in changes:
        packed[place % len(packed)] = byte
    if cut % 3 == 0:
        del packed[cut % len(packed) :]
    a, b = socket.socketpair()
    with a, b:
        a.sendall(struct.pack("<II", len(packed), encoder.size) + packed + b"".join(encoder.bulk))
        try:
            structure, bulk = frames.receive(b, soon(5))
            Decoder(bulk).decode(structure)
        except WireError:
            pass


def test_a_bomb_of_lists_is_refused_before_it_is_built():
    with pytest.raises(WireError, match="values"):
        Decoder(bytearray()).decode([wire.LIST, None, *([[wire.LIST, None]] * 600_000)])
