"""What a student defined in another process is used as if it were here, and nothing it does harms this one."""

import copy
import inspect

import numpy as np
import pytest
import torch

from autograder.authoring.misconceptions import same
from autograder.engine.supervisor import student_template
from autograder.limits import Limits
from autograder.trusted.session import Session
from autograder.wire.shell import make_shell
from course import checks
from course.checks import CheckFailed, Exercise, Stopped, check

QUICK = Limits(call=1.0, cell=2.0, notebook=60.0, patience=60.0)  # a busy machine changes nothing


class Process:
    """A student's process without a sandbox."""

    def __init__(self, limits):
        self.limits, self.student = limits, None

    def start(self):
        self.student = student_template("none").fork(self.limits)
        return self.student.socket

    def cpu(self):
        return self.student.processor_time()

    def end(self):
        how = self.student.how_it_ended(0.5)
        self.student.kill()
        return how


@pytest.fixture
def session(monkeypatch):
    process = Process(QUICK)
    session = Session(process, QUICK, frozenset({"Vector", "Broken"}))
    monkeypatch.setattr(checks.grader, "invoke", session.called)
    monkeypatch.setattr(checks.Exercise, "_current", None)
    yield session
    if process.student:
        process.student.kill()


@pytest.fixture
def student(session):
    """student(source, *names): what a cell of the student defines."""

    def student(source: str, *names: str):
        said = session.run_cell(source)
        assert not [o for o in said if o.output_type == "error"], said
        values = [session.value(name)[name] for name in names]
        return values[0] if len(values) == 1 else values

    return student


# ---------------------------------------------------------------- cells and values


def test_a_cell_says_what_a_notebook_would_show(session):
    stream, result = session.run_cell("print('a')\n6 * 7")
    assert stream.text == "a\n" and result.data["text/plain"] == "42"
    assert session.run_cell("1 / 0")[0].ename == "ZeroDivisionError"
    assert session.value("nothing") == {}


def test_values_come_as_copies(session, student):
    x = student("import torch\nx = torch.zeros(2)", "x")
    x += 1
    assert torch.equal(session.value("x")["x"], torch.zeros(2))


def test_arguments_are_copies_and_come_back_to_be_compared(student):
    spoil, keep = student("def spoil(x):\n    x[0] = 9\n    return 1\ndef keep(x): return 1", "spoil", "keep")
    x = [1, 2]
    assert spoil(x) == 1 and x == [1, 2]
    check(keep).on([1, 2]).leaves_arguments_alone()
    with pytest.raises(CheckFailed, match="changed an argument in place"):
        check(spoil).on([1, 2]).leaves_arguments_alone()
    with pytest.raises(CheckFailed, match="changed an argument in place"):
        check(spoil).on(torch.ones(2)).leaves_arguments_alone()


CHANGES = """
import torch
def needs(x): return x.requires_grad_().detach()
def leaves(x): return x.requires_grad_().sum().backward()
def slope(x): return torch.autograd.grad((x**2).sum(), x)[0]
def behind(x): (x**2).sum().backward()
"""


def test_what_changes_of_an_argument_in_autograd_is_told(student):
    needs, leaves, slope, behind = student(CHANGES, "needs", "leaves", "slope", "behind")
    free, bound = torch.ones(2), torch.ones(2, requires_grad=True)
    for f, x, name in ((needs, free, "requires_grad"), (leaves, free, "requires_grad"), (behind, bound, "grad")):
        with pytest.raises(CheckFailed, match=f"changed the `{name}` of an argument"):
            check(f).on(x).leaves_arguments_alone()
    check(slope).on(bound).leaves_arguments_alone()
    check(needs).on(bound).leaves_arguments_alone()


def test_a_function_has_its_name_signature_and_attributes(student):
    f = student('def f(a, b=2, *, c=None):\n    "Adds."\n    return a + b\nf.count = 3', "f")
    assert (f.__name__, f.__doc__, f.count, f(1), f(1, b=5)) == ("f", "Adds.", 3, 3, 6)
    assert str(inspect.signature(f)) == "(a, b=2, *, c=None)"
    with pytest.raises(AttributeError):
        _ = f.missing


def test_keyword_and_star_arguments_arrive(student):
    f = student("def f(*a, **k): return [a, k]", "f")
    assert f(1, (2, 3), x={4}) == [(1, (2, 3)), {"x": {4}}]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        ("ValueError('no')", ValueError, "no"),
        ("KeyError('k')", KeyError, "'k'"),
        ("OSError(2, 'gone')", FileNotFoundError, "gone"),
        ("UnicodeDecodeError('utf-8', b'x', 0, 1, 'bad')", UnicodeDecodeError, "bad"),
        ("Own('mine')", LookupError, "mine"),
        ("StopIteration(3)", RuntimeError, "`f` raised StopIteration"),  # it would end a loop of the tests
        ("ExceptionGroup('many', [ValueError()])", Exception, "many"),
    ],
)
def test_errors_are_of_their_kind(student, raised, kind, text):
    f = student(f"class Own(LookupError): pass\ndef f():\n    raise {raised}", "f")
    with pytest.raises(kind, match=text) as info:
        f()
    if "Own" in raised:
        assert type(info.value).__name__ == "Own"


def test_a_students_own_error_can_be_expected_by_name(student):
    Own, f = student("class Own(Exception):\n    code = 7\ndef f():\n    raise Own('x')", "Own", "f")
    with pytest.raises(Own) as info:
        f()
    assert info.value.code == 7


@pytest.mark.parametrize("answer", ["def f(x):\n    return x / 0", "def f(x):\n    return [\n        x / 0\n    ]"])
def test_an_error_that_a_test_lets_through_is_shown_with_the_students_line(student, answer):
    shell = make_shell()
    shell.user_ns["f"] = student(answer, "f")
    (error,) = shell.run("assert f(1) == 1")
    number, line = next((n, line) for n, line in enumerate(answer.splitlines(), 1) if "x / 0" in line)
    assert error.ename == "ZeroDivisionError" and f"----> {number} {line}" in "".join(error.traceback)


def test_an_error_shows_the_students_line(student, monkeypatch):
    f = student("def helper(x):\n    return x[5]\n\ndef f(x):\n    return helper(x)", "f")
    weights = student("import torch\ndef weights(x):\n    return torch.nn.functional.softmax(x, dim=7)", "weights")
    monkeypatch.setattr(checks.grader, "quiet", (inspect.getfile(Session), inspect.getfile(Session.__mro__[1])))
    with pytest.raises(CheckFailed, match=r"IndexError: list index out of range, in helper: `return x\[5\]`"):
        check(f).on([1]).returns(1)
    with pytest.raises(CheckFailed, match=r", in weights: `return torch.nn.functional.softmax\(x, dim=7\)`"):
        check(weights).on(torch.ones(2)).returns(1)


@pytest.mark.parametrize("end", ["raise SystemExit(0)", "raise KeyboardInterrupt", "raise GeneratorExit"])
def test_what_is_no_exception_stops(student, end):
    with pytest.raises(Stopped, match="`f` ended with"):
        student(f"def f():\n    {end}", "f")()


# ---------------------------------------------------------------- functions, generators


def test_functions_of_the_tests_can_be_called_there(student):
    apply, make = student("def apply(f, x): return [f(y) for y in x]\ndef make(f): return lambda x: f(f(x))", "apply", "make")
    assert apply(lambda y: y + 1, [1, 2]) == [2, 3]
    assert make(lambda x: 3 * x)(2) == 18
    with pytest.raises(ZeroDivisionError):
        apply(lambda y: 1 / y, [0])
    assert apply(torch.nn.functional.relu, [torch.tensor(-1.0)])[0] == 0
    assert apply(len, ["abc"]) == [3]


def test_one_function_of_the_tests_may_be_several_arguments(student):
    """What was let go of twice and is needed again is still there."""
    block = student("def block(x, a, f, n1, n2):\n    h = x + a(n1(x))\n    return h + f(n2(h))", "block")

    def reference(x, a, f, n1, n2):
        h = x + a(n1(x))
        return h + f(n2(h))

    def half(h):
        return h / 2

    def less(h):
        return h - 1

    for _ in range(4):
        x = torch.ones(2, 2)
        checks.check(block).on(x, torch.sin, torch.tanh, half, less).agrees_with(reference)
        checks.check(block).on(x, torch.zeros_like, torch.zeros_like, half, half).returns(x.tolist())
        checks.check(block).on(x, torch.zeros_like, torch.tanh, less, half).agrees_with(reference)


def test_an_error_of_a_callback_can_be_caught_there(student):
    f = student("def f(g):\n    try:\n        g()\n    except ValueError as e:\n        return str(e)", "f")

    def g():
        raise ValueError("from here")

    assert f(g) == "from here"


def test_calls_nest_both_ways_to_a_depth(student):
    f = student("def f(n, g): return 0 if n == 0 else 1 + g(n - 1)", "f")

    def g(n):
        return f(n, g)

    assert f(5, g) == 5
    with pytest.raises(RecursionError):
        f(100, g)


def test_generators_and_iterators_are_lazy_on_both_sides(student):
    naturals, take = student(
        "def naturals():\n    n = 0\n    while True:\n        yield n\n        n += 1\ndef take(it): return [next(it), next(it)]",
        "naturals",
        "take",
    )
    numbers = naturals()
    assert [next(numbers), next(numbers)] == [0, 1]
    assert take(iter([5, 6, 7])) == [5, 6]
    pairs = student("pairs = zip([1, 2], 'ab')", "pairs")
    assert list(pairs) == [(1, "a"), (2, "b")]


def test_random_generators_arrive_with_their_state(student):
    f = student("import torch\ndef f(g): return torch.rand(2, generator=g)\ndef h(g): return g.random()", "f")
    assert torch.equal(f(torch.Generator().manual_seed(3)), torch.rand(2, generator=torch.Generator().manual_seed(3)))


def test_the_shared_generators_are_seeded_as_here(student):
    f = student("import torch, numpy as np, random\ndef f(): return [torch.rand(3), np.random.random(), random.random()]", "f")

    def here():
        return [torch.rand(3), np.random.random(), random.random()]

    import random

    for _ in range(2):
        for seed in (torch.manual_seed, np.random.seed, random.seed):
            seed(5)
        mine = f()
        again = f()
        for seed in (torch.manual_seed, np.random.seed, random.seed):
            seed(5)
        assert checks.difference(here(), mine) is None
        assert checks.difference(mine, again) is not None
        for _ in range(2):
            check(f).on().agrees_with(here)


FORBIDDEN = """
import torch
from torch.nn import functional as F
at_once = F.layer_norm(torch.ones(2), (2,))
def norm(x): return F.layer_norm(x, (2,))
def calls(f): return f(torch.ones(2))
class Norm:
    def __call__(self, x): return norm(x)
"""


def test_what_a_task_forbids_is_refused_in_the_other_process(session, student, monkeypatch):
    monkeypatch.setattr(checks.grader, "refusing", session.refusing)
    norm, calls, kind = student(FORBIDDEN, "norm", "calls", "Norm")
    zeros = torch.zeros(2)

    def told(use):
        exercise = Exercise("ch99.norm", points=1, without=("layer_norm",))
        with exercise.part("all", points=1):
            use()
        return exercise.parts[0][2] or ""

    refused = (
        "PermissionError: `layer_norm` is not allowed in this exercise: write out yourself what it does, in norm: `def norm(x)"
    )
    assert refused in told(lambda: check(norm).on(torch.ones(2)).returns(zeros))
    assert refused in told(lambda: check(kind).using(lambda K: K()(torch.ones(2))).returns(zeros))
    assert told(lambda: check(calls).using(lambda f: f(lambda x: torch.layer_norm(x, (2,)))).returns(zeros)) == ""
    here = {"F": torch.nn.functional}
    exec(compile("def norm(x): return F.layer_norm(x, (2,))", "a wrong answer", "exec"), here)
    told(lambda: check(norm).on(torch.ones(2)).returns(zeros))
    assert same(*(p.observe(f) for p in Exercise._current.probes for f in (norm, here["norm"])), False)
    session.lose("It was lost.")  # the cell above runs again, which calls it too
    assert refused in told(lambda: check(norm).on(torch.ones(2)).returns(zeros))
    Exercise("ch99.other", points=1)
    check(norm).on(torch.ones(2)).returns(zeros)


# ---------------------------------------------------------------- classes and objects

VECTOR = """
class Vector:
    "Two numbers."
    zero = 0
    def __init__(self, x, y): self.x, self.y = x, y
    def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
    def __eq__(self, other): return (self.x, self.y) == (other.x, other.y)
    def __len__(self): return 2
    def __getitem__(self, i): return (self.x, self.y)[i]
    def __repr__(self): return f"Vector({self.x}, {self.y})"
    def norm2(self): return self.x ** 2 + self.y ** 2
    @staticmethod
    def unit(): return Vector(1, 0)
class Sub(Vector): pass
"""


def test_objects_do_what_their_class_says(student):
    Vector, Sub = student(VECTOR, "Vector", "Sub")
    v = Vector(1, 2)
    assert (v.x, v.norm2(), len(v), v[1], list(v), repr(v), Vector.zero) == (1, 5, 2, 2, [1, 2], "Vector(1, 2)", 0)
    assert isinstance(v, Vector) and type(v).__name__ == "Vector" and issubclass(Sub, Vector) and isinstance(Sub(1, 1), Vector)
    assert v + Vector(1, 1) == Vector(2, 3) and v != Vector(0, 0) and isinstance(Vector.unit(), Vector)
    v.x = 10
    assert v.norm2() == 104 and copy.deepcopy(v) == v and v is not copy.deepcopy(v)
    with pytest.raises(AttributeError):
        _ = v.missing
    with pytest.raises(TypeError):
        v()


LIARS = """
class Liar:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __gt__(self, other): return True
    def __sub__(self, other): return self
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__
    def __abs__(self): return self
    def __array_ufunc__(self, *a, **k): return self
    @classmethod
    def __torch_function__(cls, *a, **k): return True
    __hash__ = None
class Equal(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
class Tensor(__import__("torch").Tensor):
    @classmethod
    def __torch_function__(cls, *a, **k): return True
import torch
def liar(): return Liar()
def equal(): return Equal(0)
def tensor(): return torch.zeros(2).as_subclass(Tensor)
class Claims:
    __class__ = int
def claims(): return Claims()
"""


@pytest.mark.parametrize("name", ["liar", "equal", "tensor", "claims"])
def test_what_compares_equal_to_all_is_equal_to_nothing(student, name):
    value = student(LIARS, name)()
    assert not (value == 42) and not (42 == value) and value != 42  # noqa: SIM201, SIM300
    for expected in (42, 42.0, torch.ones(2), np.ones(2), "x", [1], True):
        assert checks.difference(expected, value) is not None
    with pytest.raises((TypeError, AssertionError)):
        assert abs(value - 42) < 1e-6


def test_a_lie_in_a_class_that_was_asked_for_reaches_no_plain_value(student):
    Broken = student(LIARS.replace("class Liar", "class Broken").replace("Liar()", "Broken()"), "Broken")
    assert Broken() != 3 and not (Broken() == 3)  # noqa: SIM201
    with pytest.raises(TypeError):
        assert abs(Broken() - 3) < 1e-6


def test_subclasses_of_plain_types_keep_value_and_kind(student):
    n, words, point = student(
        "from collections import namedtuple\nclass N(int):\n    extra = 5\nn = N(3)\nclass W(dict): pass\nwords = W(a=1)\n"
        "point = namedtuple('Point', 'x y')(1, 2)",
        "n",
        "words",
        "point",
    )
    assert n + 1 == 4 and type(n).__name__ == "N" and n.extra == 5
    assert words == {"a": 1} and isinstance(words, dict) and point.y == 2


# ---------------------------------------------------------------- gradients and modules


def test_gradients_go_through(student):
    f = student("def f(x, y): return (x ** 3 * y).sum()", "f")
    check(f).on(torch.ones(3), torch.arange(3.0)).gradients_agree_with(lambda x, y: (x**3 * y).sum())
    x, y = (torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(f, (x, y)) and torch.autograd.gradgradcheck(f, (x, y))


def test_gradients_go_through_a_function_of_the_tests(student):
    slope = student(
        "import torch\ndef slope(f, x):\n    x = torch.tensor(x, requires_grad=True)\n    f(x).backward()\n    return x.grad.item()",
        "slope",
    )
    assert slope(lambda x: x**3, 2.0) == 12.0


def test_autograd_is_off_there_where_it_is_off_here(student):
    slope = student("def slope(x):\n    x = x.clone().requires_grad_(True)\n    x.exp().backward()\n    return x.grad", "slope")
    check(slope).on(torch.zeros(())).returns(torch.ones(()))
    with torch.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):
        slope(torch.zeros(()))


def test_a_result_that_is_cut_off_is_seen(student):
    f, same = student("def f(x): return x.detach() * 2\ndef same(x): return x", "f", "same")
    x = torch.ones(2, requires_grad=True)
    assert not f(x).requires_grad
    assert torch.autograd.grad(same(x).sum(), x)[0].tolist() == [1, 1]
    with torch.no_grad():
        assert not same(x * 2).requires_grad


MODULE = """
import torch
class Head(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.inner = torch.nn.Linear(d, 2)
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("calls", torch.zeros(()))
        self.drop = torch.nn.Dropout(0.9)
        self.d = d
    def forward(self, x):
        self.calls += 1
        return self.drop(self.inner(x) * self.scale)
def step(model, x):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(x).sum().backward()
    optimizer.step()
"""


def test_a_module_is_one_here_too(student):
    Head = student(MODULE, "Head")
    torch.manual_seed(0)
    model = Head(3)
    assert isinstance(model, torch.nn.Module) and isinstance(model, Head) and model.d == 3
    assert [n for n, _ in model.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
    assert sum(p.numel() for p in model.parameters()) == 9
    model.eval()
    x = torch.rand(4, 3)
    expected = torch.nn.functional.linear(x, model.inner.weight, model.inner.bias)
    assert torch.allclose(model(x), expected) and model.calls == 1
    (model(x) ** 2).sum().backward()
    mine = torch.autograd.grad((expected**2).sum(), [model.inner.weight])[0]
    assert torch.allclose(model.inner.weight.grad, mine)
    model.train()
    assert not torch.allclose(model(x), expected)


def test_what_is_done_to_parameters_is_done_on_both_sides(student):
    Head, step = student(MODULE, "Head", "step")
    model, x = Head(3).eval(), torch.rand(4, 3)
    with torch.no_grad():
        model.inner.weight.zero_()
        model.inner.bias.fill_(2.0)
    assert torch.allclose(model(x), torch.full((4, 2), 2.0))
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    model(x).sum().backward()
    optimizer.step()
    assert torch.allclose(model(x)[0, 1], (x[0] @ model.inner.weight[1] + model.inner.bias[1]) * model.scale)
    before = model.inner.bias.clone()
    step(model, x)
    assert not torch.allclose(model.inner.bias, before)
    model.inner.bias = torch.nn.Parameter(torch.zeros(2))
    model.double()
    assert torch.allclose(model(x.double()), (x.double() @ model.inner.weight.T) * model.scale)
    model.load_state_dict(Head(3).double().state_dict())


def test_an_optimizer_of_the_student_moves_parameters_of_the_tests(student):
    SGD = student(
        "import torch\nclass SGD:\n    def __init__(self, params, lr): self.params, self.lr = list(params), lr\n"
        "    @torch.no_grad()\n    def step(self):\n        for p in self.params: p -= self.lr * p.grad\n",
        "SGD",
    )
    w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = SGD([w], 0.5)
    for _ in range(2):
        w.grad = None
        (w**2).sum().backward()
        optimizer.step()
    assert w.tolist() == [0.0, 0.0]


def test_a_module_of_torch_can_be_handed_over(student):
    count = student(
        "def count(model): return sum(p.numel() for p in model.parameters()), model(torch.ones(2)).shape\nimport torch", "count"
    )
    assert count(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())) == (9, torch.Size([3]))


# ---------------------------------------------------------------- limits


def test_what_takes_too_long_is_stopped_and_what_came_before_stays(session, student):
    f, g = student("kept = []\ndef f():\n    kept.append(1)\n    while True: pass\ndef g(): return len(kept)", "f", "g")
    with pytest.raises(Stopped, match="`f` took longer than 1 s of processor time and was stopped"):
        f()
    assert g() == 1 and session.starts == 1


def test_what_cannot_be_interrupted_is_ended_and_its_cells_run_again(session, student):
    source = "def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\ndef g(): return 8"
    f, g = student(source, "f", "g")
    with pytest.raises(Stopped, match="`f` took longer than 1 s of processor time"):
        f()
    assert g() == 8


def test_a_process_that_ends_is_started_again(session, student):
    f, g, v = student("import os\ndef f(): os._exit(3)\ndef g(): return 8\nclass V: pass\nv = V()", "f", "g", "v")
    made = student("made = [V() for _ in range(2)]", "made")
    with pytest.raises(Stopped, match="ended itself with exit code 3"):
        f()
    assert g() == 8 and isinstance(v.__class__, type)
    v.x = 1
    assert v.x == 1
    with pytest.raises(Stopped, match="lost"):
        made[0].x = 1


def test_a_test_cell_gives_up_after_two_limits(session, student):
    f = student("import os\ndef f(): os._exit(3)", "f")
    with session.testing(lambda o: None, []):
        for _ in range(2):
            with pytest.raises(Stopped, match="exit code 3"):
                f()
        with pytest.raises(Stopped, match="not called again"):
            f()
    with pytest.raises(Stopped, match="exit code 3"):
        f()


def test_a_part_fails_and_the_next_one_counts(student):
    f = student("import os\ndef f(x):\n    if x > 1: os._exit(3)\n    return 2 * x", "f")
    exercise = Exercise("x.y", points=2)
    with exercise.part("large", points=1):
        check(f).on(5).returns(10)
    with exercise.part("small", points=1):
        check(f).on(1).returns(2)
    assert exercise.score() == 1.0


def test_prints_of_a_call_are_shown_and_results_are_not(session, student):
    shown = []
    f = student("def f():\n    print('hello')\n    get_ipython().displayhook(3.0)\n    return 1", "f")
    with session.testing(shown.append, []):
        assert f() == 1
    assert [o.output_type for o in shown if o.output_type == "stream"] == ["stream"] and shown[0].text == "hello\n"


def test_what_is_too_large_fails_alone(session, student):
    huge = "import torch\ndef huge(): return torch.zeros(40_000_000)\ndef words(): return ['a word'] * 900_000\ndef small(): return 1"
    huge, words, small = student(huge, "huge", "words", "small")
    with pytest.raises(Exception, match="MB"):
        huge()
    with pytest.raises(ValueError, match="the result cannot be handed over: it takes more than 4 MB"):
        words()
    with pytest.raises(ValueError, match="too large"):
        small(torch.zeros(40_000_000))
    assert small() == 1 and session.starts == 1


# ---------------------------------------------------------------- an enemy

HOSTILE = """
import gc, struct, msgpack, socket
from autograder.confined.server import Server
server = next(x for x in gc.get_objects() if type(x) is Server)
def raw(data):
    server.sock.sendall(data)
def frame(structure, size=None):
    packed = msgpack.packb(structure)
    raw(struct.pack("<II", len(packed) if size is None else size, 0) + packed)
def attack():
    {attack}
"""


@pytest.mark.parametrize(
    "attack",
    [
        "raw(bytes(100))",
        "raw(bytes([255]) * 100)",
        "frame([])",
        "frame(None)",
        "frame(['ok'])",
        "frame(['ok', None, [], [99], [], [], [None, [], []]])",
        "frame(['ok', 7, [[15, 'float32', [9], None, 0, 0]], 1, [], [], [None, [], []]])",
        "frame(['ok', None, [], 1, 5, [[1, 2, 3]], [None, [], []]])",
        "frame(['ok', None, [], 1, [], [], None])",
        "frame(['raise', None, [], [], [None, [], []]])",
        "frame(['raise', ['ValueError', [28, 5, ['X', None, [[28, 5, None]], []]], [0, None], 'x', [], None], [], [], [None, [], []]])",
        "frame(['raise', ['SystemExit', None, [0, None], 'x', [], None], [], [], [None, [], []]])",
        "frame(['raise', ['ValueError', None, [0, None], 'x', [[1, 2, 3]] * 9, None], [], [], [None, [], []]])",
        "frame(['do', 'call', [True, 'float32', [], [], None], [], [], [[25, -1], [0, None], [4]]])",
        "frame(['do', 'lose', [True, 'float32', [], [], None], [], [], []])",
        "frame(['do', 'gradients', [True, 'float32', [], [], None], [], [], [1, [0, None], True]])",
        "frame(['ok', None, [], [29, 3, [24, 'os', 'system']], [], [], [None, [], []]])",
        "frame(['ok', None, [], [24, 'builtins', 'eval'], [], [], [None, [], []]])",
        "frame(['ok', None, [], [31, 9, [24, 'torch.nn.modules.module', 'Module'], [True, [], []]], [], [], [None, [], []]])",
        "frame(['ok', None, [], 1, [], [], ['[' * 100000, [], []]])",
        'frame([\'ok\', None, [], 1, [], [], [\'[{"output_type": 5}, 3, {"output_type": "stream", "text": 1}]\', [1, 2], [3]]])',
        "server.sock.close()",
        "server.sock.shutdown(2)",
    ],
)
def test_nothing_that_it_sends_gets_through(session, student, attack):
    f, g = student(HOSTILE.replace("{attack}", attack) + "def g(): return 8", "attack", "g")
    with pytest.raises(BaseException) as info:
        raise ValueError(f"{f()}")
    assert isinstance(info.value, Stopped | ValueError | TypeError | AttributeError | ConnectionError | OSError)
    for _ in range(3):  # what is left over of an attack is the student's own loss
        try:
            value = g()
        except (Stopped, Exception):
            continue
        if value == 8:
            break
    else:
        raise AssertionError("the session did not recover")
    assert torch.equal(torch.eye(1), torch.ones(1, 1))
