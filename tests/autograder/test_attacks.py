"""What a student can try to get points for nothing, or to take them from others. Nothing of it works.

Each attack is one submission with four wrong answers: no exercise may give a point. Each sabotage is one with
right answers, one of which breaks something: the other exercises keep their points. What is graded can be
written and read, holds no hidden line, and the honest submission beside it has all points.
"""

import copy
import textwrap

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from autograder.authoring.chapters import grade_id
from autograder.authoring.release import release
from autograder.authoring.scoring import score
from autograder.engine.supervisor import run_notebook
from autograder.errors import SandboxError
from autograder.grading.merge import merge
from autograder.limits import Limits
from tests.autograder.conftest import header, make_course, nbgrader, toy_cells

LIMITS = Limits(call=1, cell=4, notebook=30, memory=1 << 30)
HIDDEN = "secret_name"

DOUBLE = """exercise = Exercise("ch99.double", points=3)
with exercise.part("the example"):
    check(double).on(torch.tensor([2.0])).returns([4.0])
### BEGIN HIDDEN TESTS
with exercise.part("any shape", points=3):
    for case in draw(3):
        check(double).on(case.normal(case.integer(1, 5))).agrees_with(lambda secret_name: secret_name + secret_name)
### END HIDDEN TESTS
exercise.score()"""

SQUARES = """assert squares(3) == [1, 4, 9]
assert 16 in squares(4)
### BEGIN HIDDEN TESTS
assert len(squares(7)) == 7 and isinstance(squares(2), list)
for secret_name, right in zip(map(squares, [1, 2, 5]), [[1], [1, 4], [1, 4, 9, 16, 25]]):
    assert secret_name == right
try:
    squares(0)
except ValueError:
    pass
else:
    raise AssertionError("no ValueError")
### END HIDDEN TESTS"""

SOFTMAX = """import numpy as np

x = np.array([0.0, 1.0, 2.0])
assert abs(softmax(x).sum() - 1) < 1e-9
### BEGIN HIDDEN TESTS
for secret_name in np.random.default_rng(3).normal(size=(3, 5)):
    right = np.exp(secret_name) / np.exp(secret_name).sum()
    np.testing.assert_allclose(softmax(secret_name), right)
    assert (abs(softmax(secret_name) - right) < 1e-9).all()
    assert np.allclose(softmax(secret_name), right) and not np.isnan(softmax(secret_name)).any()
### END HIDDEN TESTS"""

ANSWER = """assert isinstance(answer, (int, np.integer))
### BEGIN HIDDEN TESTS
secret_name = 42
assert answer == secret_name
assert not answer != secret_name
assert abs(answer - secret_name) == 0
### END HIDDEN TESTS"""

RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "squares": "def squares(n):\n    if n < 1:\n        raise ValueError(n)\n    return [i * i for i in range(1, n + 1)]",
    "softmax": "def softmax(x):\n    e = np.exp(x - np.max(x))\n    return e / e.sum()",
    "answer": "answer = 42",
}
WRONG = {
    "double": "def double(x):\n    return x",
    "squares": "def squares(n):\n    return []",
    "softmax": "def softmax(x):\n    return x",
    "answer": "answer = 0",
}


def exercise(name, start, test):
    solution = RIGHT[name].splitlines()
    inside = solution[1:] if start else solution
    source = "\n".join([*([solution[0]] if start else ["answer = None"]), "### BEGIN SOLUTION", *inside, "### END SOLUTION"])
    return [
        header(name, "3 points", "code"),
        new_code_cell(source, metadata=nbgrader(f"ch99-{name}-answer", solution=True)),
        new_code_cell(test, metadata=nbgrader(f"ch99-{name}", 3)),
    ]


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    cells = [*toy_cells()[:3], new_code_cell("import numpy as np", metadata=nbgrader("ch99-numpy"))]
    for name, test in (("double", DOUBLE), ("squares", SQUARES), ("softmax", SOFTMAX), ("answer", ANSWER)):
        cells += exercise(name, name != "answer", test)
    made = make_course(tmp_path_factory.mktemp("attacked"), cells=cells)
    release(made)
    return made


@pytest.fixture
def graded(chapter):
    """graded(answers, cell): the points by exercise of a submission, an own cell of which runs first, without an error."""

    def graded(answers, cell="", files=None, limits=LIMITS, may_fail=False):
        notebook = nbformat.read(chapter.release, as_version=4)
        for one in list(notebook.cells):
            name = (grade_id(one) or "").removeprefix("ch99-").removesuffix("-answer")
            if (grade_id(one) or "").endswith("-answer"):
                one.source = textwrap.dedent(answers[name])
        notebook.cells.insert(4, new_code_cell(textwrap.dedent(cell)))
        merged = merge(chapter, copy.deepcopy(notebook))
        try:
            flags = merged.flags + run_notebook(merged.notebook, chapter, 1, limits, files)
        except SandboxError as error:
            pytest.skip(str(error))
        own = next(one for one in merged.notebook.cells if one.source == textwrap.dedent(cell))
        assert may_fail or not any(output.output_type == "error" for output in own.outputs), own.outputs
        written = nbformat.writes(merged.notebook).encode()
        assert len(written) < 8 << 20
        nbformat.validate(nbformat.reads(written.decode(), as_version=4))
        assert all(type(flag) is str and len(flag) < 500 for flag in flags)
        for one in merged.notebook.cells:
            if one.cell_type == "code" and (grade_id(one) or "").removeprefix("ch99-") not in RIGHT:
                assert HIDDEN not in str(one.outputs)
        return {name: score(next(one for one in merged.notebook.cells if grade_id(one) == f"ch99-{name}")) for name in RIGHT}

    return graded


NOTHING = dict.fromkeys(RIGHT, 0.0)
ALL = dict.fromkeys(RIGHT, 3.0)


def test_honest(graded):
    assert graded(RIGHT) == ALL
    assert graded(WRONG) == NOTHING


# ---------------------------------------------------------------- answers that lie

LIAR = """
class Liar:
    def _true(self, *args, **kwargs):
        return True
    def _zero(self, *args, **kwargs):
        return 0.0
    def __ne__(self, other):
        return False
    def __len__(self):
        return 7
    def __iter__(self):
        return iter([self])
    def __getitem__(self, i):
        return self
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self
    def __call__(self, *args, **kwargs):
        return self
    def __hash__(self):
        return hash(42)
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true
    __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __abs__ = __neg__ = __float__ = _zero
    __array_priority__ = 1e9

def lying(base, *args):
    plain = ("__dict__", "__weakref__", "__doc__", "__module__", "__getattr__", "__iter__", "__getitem__", "__len__", "__call__")
    return type("Lying", (base,), {k: v for k, v in vars(Liar).items() if k not in plain})(*args)
"""

LIES = {
    "objects that are equal to everything": {
        "double": "def double(x):\n    return Liar()",
        "squares": "def squares(n):\n    if n < 1:\n        raise ValueError\n    return Liar()",
        "softmax": "def softmax(x):\n    return Liar()",
        "answer": "answer = Liar()",
    },
    "subclasses of plain types": {
        "double": "def double(x):\n    return lying(float, 1)",
        "squares": "def squares(n):\n    if n < 1:\n        raise ValueError\n    return lying(list, [0] * n)",
        "softmax": "def softmax(x):\n    return lying(float, 0.0)",
        "answer": "answer = lying(int, 7)",
    },
    "subclasses of tensors and arrays": {
        "double": """
            class T(torch.Tensor):
                @classmethod
                def __torch_function__(cls, function, types, args=(), kwargs=None):
                    return True
            def double(x):
                return torch.Tensor._make_subclass(T, x)""",
        "squares": """
            class A(np.ndarray):
                __eq__ = lambda self, other: np.bool_(True)
                __len__ = lambda self: 7
                __contains__ = lambda self, other: True
            def squares(n):
                if n < 1:
                    raise ValueError
                return np.zeros(n).view(A)""",
        "softmax": """
            class B(np.ndarray):
                __lt__ = __eq__ = lambda self, other: np.ones(5, bool)
                __sub__ = __abs__ = lambda self, *other: np.zeros(5).view(B)
                sum = lambda self: 1.0
                __array_ufunc__ = __array_function__ = lambda self, *args, **kwargs: np.zeros(5)
            def softmax(x):
                return x.view(B)""",
        "answer": "answer = np.array(7).view(A)",
    },
    "a false __class__": {
        "double": "class C:\n    __class__ = torch.Tensor\ndef double(x):\n    return C()",
        "squares": """
            class D(list):
                __class__ = list
                __eq__ = __contains__ = lambda self, other: True
                __len__ = lambda self: 7
            def squares(n):
                if n < 1:
                    raise ValueError
                return D()""",
        "softmax": "class E:\n    __class__ = np.ndarray\n    sum = lambda self: 1.0\ndef softmax(x):\n    return E()",
        "answer": "class F:\n    __class__ = int\n    __eq__ = lambda self, other: True\nanswer = F()",
    },
    "classes that say that everything is theirs": {
        "double": """
            class M(type):
                __instancecheck__ = __subclasscheck__ = __eq__ = lambda cls, other: True
                __hash__ = type.__hash__
            class K(metaclass=M):
                pass
            def double(x):
                return K""",
        "squares": "def squares(n):\n    return K",
        "softmax": "softmax = K",
        "answer": "answer = K",
    },
    "nothing, in shapes that compare to nothing": {
        "double": "def double(x):\n    return torch.full_like(x, float('nan'))",
        "squares": "def squares(n):\n    if n < 1:\n        raise ValueError\n    return np.ma.masked_all(n)",
        "softmax": "def softmax(x):\n    return np.empty((0, 5))",
        "answer": "answer = np.ma.masked",
    },
    "arrays of anything": {
        "double": "def double(x):\n    return np.array([Liar()] * len(x), dtype=object)",
        "squares": "def squares(n):\n    if n < 1:\n        raise ValueError\n    return [Liar()] * n",
        "softmax": "def softmax(x):\n    return np.array([Liar()] * len(x), dtype=object)",
        "answer": "answer = np.array(Liar(), dtype=object)",
    },
    "the types themselves": {"double": "double = dict", "squares": "squares = list", "softmax": "softmax = type", "answer": "answer = True"},
    "arguments made to agree": {
        "double": "def double(x):\n    x.zero_()\n    return x",
        "squares": "def squares(n):\n    import sys\n    return sys._getframe(1).f_locals.get('right', [])",
        "softmax": "def softmax(x):\n    x[:] = 0\n    return np.full(len(x), 1 / len(x))",
        "answer": "import gc\nanswer = next((v for d in gc.get_objects() if type(d) is dict for k, v in list(d.items()) if k == 'secret' + '_name'), 0)",
    },
    "ranges and strings without end": {
        "double": "def double(x):\n    return 'x' * 200_000_000",
        "squares": "def squares(n):\n    return range(10**15)",
        "softmax": "def softmax(x):\n    return iter(int, 1)",
        "answer": "import sympy\nanswer = sympy.Pow(10, sympy.Pow(10, 12, evaluate=False), evaluate=False)",
    },
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_lies(graded, lie):
    assert graded(LIES[lie], LIAR) == NOTHING


# ---------------------------------------------------------------- exceptions

# Right where the visible tests look, and an exception that ends a loop where the hidden ones do.
ENDS_THE_LOOP = """
class Both(ValueError, StopIteration):
    pass
class Iterator:
    def __getattr__(self, name):
        raise StopIteration
def squares(n):
    if n < 1:
        raise ValueError
    if n in (3, 4):
        return [i * i for i in range(1, n + 1)]
    if n in (2, 7):
        return [0] * n
    {}
"""


@pytest.mark.parametrize("how", ["raise StopIteration", "raise Both", "raise StopAsyncIteration", "return Iterator()"])
def test_an_exception_ends_no_loop_of_the_tests(graded, how):
    rest = {
        "double": f"{ENDS_THE_LOOP.format(how)}\ndouble = lambda x: squares(1)",
        "softmax": f"def softmax(x):\n    {how}",
        "answer": "answer = 0",
    }
    assert graded({**WRONG, "squares": ENDS_THE_LOOP.format(how), **rest}) == NOTHING


def test_exceptions_that_are_no_errors(graded):
    answers = {
        "double": "def double(x):\n    raise SystemExit(0)",
        "squares": "import unittest\ndef squares(n):\n    raise unittest.SkipTest",
        "softmax": "def softmax(x):\n    raise BaseExceptionGroup('two', [KeyboardInterrupt(), GeneratorExit()])",
        "answer": "raise GeneratorExit",
    }
    assert graded(answers) == NOTHING


def test_exceptions_that_lie_about_themselves(graded):
    answers = {
        "double": "from course.checks import CheckFailed\nclass C(CheckFailed):\n    __str__ = lambda self: 1 / 0\ndef double(x):\n    raise C",
        "squares": "class E(ValueError):\n    __eq__ = lambda self, other: True\n    __class__ = AssertionError\ndef squares(n):\n    raise E(E(E('x' * 10**7)))",
        "softmax": "def softmax(x):\n    e = ValueError()\n    e.__cause__ = e.__context__ = e\n    e.__traceback__ = None\n    raise e",
        "answer": "class B(BaseException):\n    pass\nraise B",
    }  # fmt: skip
    assert graded(answers) == NOTHING


# ---------------------------------------------------------------- patches of the own process

PATCHES = {
    "what tests compare with": """
        import builtins, math, operator, sys, numpy.testing
        import course.checks as checks
        yes = lambda *args, **kwargs: True
        torch.equal = torch.allclose = np.allclose = np.array_equal = np.testing.assert_allclose = math.isclose = operator.eq = yes
        for name, module in list(sys.modules.items()):
            if name.startswith("course.checks"):
                module.difference, module.like, module.observed = lambda *args, **kwargs: None, yes, yes
                module.told_of, module.allowed_gaps = str, lambda *args: math.inf
        checks.grader.set(invoke=lambda answer, args, kwargs: (None, (args, kwargs), None), explain=lambda exercise: "right")
        checks.check = lambda *args, **kwargs: type("C", (), {"__getattr__": lambda self, name: lambda *a, **k: self})()
        checks.Exercise.score = lambda self: 3.0
        checks.Exercise.part = yes
        builtins.abs = lambda x: 0
        builtins.all = builtins.isinstance = builtins.any = yes
        """,
    "the shell": """
        import ast
        from IPython import get_ipython
        shell = get_ipython()
        class NoAsserts(ast.NodeTransformer):
            def visit_Assert(self, node):
                return ast.Pass()
        shell.ast_transformers.append(NoAsserts())
        shell.input_transformers_post.append(lambda lines: ["3.0\\n"])
        shell.showtraceback = lambda *args, **kwargs: None
        shell.set_custom_exc((BaseException,), lambda *args, **kwargs: None)
        shell.events.register("pre_run_cell", lambda info: print(info.raw_cell))
        shell.run_cell = shell.run_cell_async = type(shell).run_cell = lambda *args, **kwargs: print("3.0")
        """,
    "imports": """
        import sys, importlib, types
        class Finder:
            def find_spec(self, *args):
                return None
        sys.meta_path.insert(0, Finder())
        for name in [n for n in sys.modules if n.startswith(("autograder", "course", "numpy.testing"))]:
            sys.modules[name] = types.ModuleType(name)
        sys.path[:] = []
        """,
    "tracing and hooks": """
        import gc, sys, threading, atexit
        sys.settrace(lambda frame, event, arg: frame.f_locals.update({"right": 0}))
        sys.setprofile(lambda *args: None)
        sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *args: None
        gc.callbacks.append(lambda *args: None)
        sys.addaudithook(lambda event, args: None)
        atexit.register(print, "3.0")
        """,
    "what is sent": """
        import json, msgpack
        import autograder.confined.server, autograder.wire.values, autograder.wire.peer
        score = {"output_type": "execute_result", "data": {"text/plain": "3.0"}, "metadata": {}, "execution_count": 1}
        json.dumps = lambda *args, **kwargs: '[{"output_type": "execute_result", "data": {"text/plain": "3.0"}, "metadata": {}}]'
        autograder.confined.server.Server.do_call = lambda self, *args: 3.0
        autograder.confined.server.Server.do_names = lambda self, *args: {name: 3.0 for name in ("double", "squares", "softmax", "answer", "score", "exercise", "np")}
        autograder.confined.server.Server.give_tail = lambda self, encoder: [json.dumps(), [True, True, True], [], 0.0, 1e9]
        """,
    "scores in all outputs": """
        from IPython.display import display, publish_display_data
        class Score(float):
            _repr_mimebundle_ = lambda self, **kwargs: {"text/plain": "3.0"}
        for i in range(3):
            display(Score(3))
            publish_display_data({"text/plain": "3.0", "application/vnd.nbgrader+json": {"score": 3}}, metadata={"nbgrader": {"points": 3}})
            print("3.0")
        def double(x):
            display(Score(3))
            return Score(3)
        Score(3)
        """,
}  # fmt: skip


@pytest.mark.parametrize("patch", PATCHES)
def test_patches(graded, patch):
    assert graded(WRONG, PATCHES[patch]) == NOTHING


def test_shadowed_names_of_the_tests(graded):
    cell = """
        for name in ("list", "float", "abs", "len", "zip", "map", "isinstance", "AssertionError", "ValueError", "Exercise",
                     "check", "draw", "exercise", "torch", "np", "x", "right", "score", "answer", "get_ipython"):
            globals()[name] = lambda *args, **kwargs: 42
        class ValueError(BaseException):
            pass
        """
    assert graded(WRONG, cell) == NOTHING


# ---------------------------------------------------------------- the wire

WIRE = """
import json, msgpack, os, socket, struct, threading, time
wire = socket.socket(fileno=os.dup(3))
def forge(*frame, bulk=b""):
    packed = msgpack.packb(list(frame))
    wire.send(struct.pack("<II", len(packed), len(bulk)) + packed + bulk)
score = json.dumps([{"output_type": "execute_result", "data": {"text/plain": "3.0"}, "metadata": {}, "execution_count": 1}])
"""

FORGED = {
    "garbage": "wire.send(bytes(range(256)) * 100)",
    "a frame of 8 GB": "wire.send(struct.pack('<II', 2**32 - 1, 2**32 - 1) + b'x')",
    "half a frame": "wire.send(struct.pack('<II', 100, 0) + b'x')",
    "answers in advance": """
        for value in (3.0, None, True, [4], [0, None], [4, "double", 3.0]):
            for _ in range(20):
                forge("ok", None, [], value, [], [], [score, [False] * 3, [], 0.0, 0.0])
        """,
    "errors in advance": """
        for name in ("StopIteration", "SystemExit", "Exception", "TimeLimit", "NoSuchError", 7):
            forge("raise", [name, None, [0, None], "text", [["f", 1, "line"]], None], [], [], [score, [True] * 3, [], 0.0, 0.0])
        """,
    "questions to the tests": """
        for what in ("call", "next", "gradients", "cell", "names", "get", "guard", "lose", "__init__", "do_call"):
            for number in range(5):
                forge("do", what, [True, "float32", [], [], None], [], [], [[27, number], [0, None], [4]])
        """,
    "things let go and changed": """
        for number in range(-20, 20):
            forge("ok", number, [[37, number]], [27, number], list(range(50)), [[number, None, None, True, True]], [score, [1], ["x"], -1.0, "x"])
        """,
    "deep and odd frames": """
        deep = []
        for _ in range(400):
            deep = [0, None, deep]
        for value in (deep, [99], [15, "O", [10**9], [], False], [16, "float32", [2**40], None, 0, 0], [14, "<f8", b""], [12, 10**9, 0]):
            forge("ok", None, [], value, [], [], [score, [False] * 3, [], 0.0, 0.0])
        """,
    "a thread that answers": """
        def answer():
            while True:
                forge("ok", None, [], 3.0, [], [], [score, [False] * 3, [], 0.0, 0.0])
                time.sleep(0.001)
        threading.Thread(target=answer, daemon=True).start()
        """,
    "a child that answers": """
        if os.fork() == 0:
            while True:
                wire.recv(1 << 20)
                forge("ok", None, [], 3.0, [], [], [score, [False] * 3, [], 0.0, 0.0])
        """,
    "the socket closed": "os.closerange(0, 100)",
}


@pytest.mark.parametrize("frames", FORGED)
def test_forged_frames(graded, frames):
    assert graded(WRONG, WIRE + textwrap.dedent(FORGED[frames]), may_fail=True) == NOTHING


# ---------------------------------------------------------------- formulas

SLOPE = """exercise = Exercise("ch99.slope", points=2)
with exercise.part("a formula"):
    check(slope=slope).is_expression_in("x", "a")
    check(slope=slope).has_value(4, at={"x": 1, "a": 2})
### BEGIN HIDDEN TESTS
secret_name, own_a = sympy.symbols("x a", real=True)
with exercise.part("the slope", points=2):
    check(slope=slope).is_equivalent_to(2 * own_a * secret_name)
### END HIDDEN TESTS
exercise.score()"""

RATE = """exercise = Exercise("ch99.rate", points=2)
with exercise.part("a number"):
    check(rate=rate).is_number()
### BEGIN HIDDEN TESTS
with exercise.part("the rate", points=1):
    check(rate=rate).equals(0.25)
with exercise.part("as a formula", points=1):
    check(rate=rate).is_equivalent_to(sympy.Rational(1, 4))
### END HIDDEN TESTS
exercise.score()"""


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    """formulas(answer, rate=…): the points of `slope` and `rate`, and whether the mark was made that a payload makes."""
    mark = tmp_path_factory.mktemp("mark") / "ran"
    cells = [*toy_cells()[:3], new_code_cell("import sympy", metadata=nbgrader("ch99-sympy"))]
    for name, test in (("slope", SLOPE), ("rate", RATE)):
        source = f"{name} = None\n### BEGIN SOLUTION\n{name} = 1\n### END SOLUTION"
        cells += [
            header(name, "2 points", "derivation"),
            new_code_cell(source, metadata=nbgrader(f"ch99-{name}-answer", solution=True)),
            new_code_cell(test, metadata=nbgrader(f"ch99-{name}", 2)),
        ]
    made = make_course(tmp_path_factory.mktemp("formulas"), cells=cells)
    release(made)

    def formulas(answer, rate="rate = None"):
        notebook = nbformat.read(made.release, as_version=4)
        for one in notebook.cells:
            if grade_id(one) == "ch99-slope-answer":
                one.source = PAYLOAD.format(mark=mark) + textwrap.dedent(answer)
            if grade_id(one) == "ch99-rate-answer":
                one.source = rate
        merged = merge(made, notebook)
        try:
            run_notebook(merged.notebook, made, 1, LIMITS)
        except SandboxError as error:
            pytest.skip(str(error))
        tests = {grade_id(one): one for one in merged.notebook.cells}
        assert HIDDEN not in str([tests[f"ch99-{name}"].outputs for name in ("slope", "rate")])
        assert not mark.exists()
        return score(tests["ch99-slope"]), score(tests["ch99-rate"])

    return formulas


# Code of the student that sends what it likes in the place of a formula.
WIRE_OF_FORMULAS = """
import sys
wire = sys.modules["autograder.wire.values"]
wire._ENCODE[sympy.Symbol] = lambda encoder, value: [wire.SYMBOLIC, {}]
slope = x
"""

# What a payload does where it is evaluated: it leaves a mark outside the sandbox and gives itself all points.
PAYLOAD = """import sympy, numpy as np, torch
code = "exec(\\"open('{mark}', 'w').close()\\\\nimport course.checks as c\\\\nc.Exercise.score = lambda self: self.points\\")"
x, a = sympy.symbols("x a", real=True)
right = 2 * a * x
"""

EVALUATED = {
    "text": "slope = code",
    "text of the right formula": "slope = '2*a*x'",
    "text of numpy": "slope = np.str_(code)",
    "bytes": "slope = code.encode()",
    "an array of text": "slope = np.array(code)",
    "an array of anything": "slope = np.array(code, dtype=object)",
    "text that says that it is a formula": """
        class T(str):
            __class__ = sympy.Expr
            free_symbols = {x, a}
        slope = T(code)""",
    "an object that sympify asks": """
        class S:
            free_symbols = {x, a}
            def _sympy_(self):
                return right
            __str__ = __repr__ = lambda self: code
        slope = S()""",
    "a class that sympify asks": "class S:\n    _sympy_ = staticmethod(lambda: right)\nslope = S",
    "a letter named like code": "slope = sympy.Symbol(code, real=True)",
    "a letter named like code in the right formula": "slope = right + sympy.Symbol(code) - sympy.Symbol(code + ' ')",
    "a function named like code": "slope = sympy.Function(code)(x)",
    "a function that evaluates": "slope = sympy.Function('eval')(sympy.Symbol(code))",
    "an own kind of sum": """
        class Add(sympy.Add):
            def _eval_evalf(self, digits):
                return sympy.Integer(4)
            __eq__ = equals = lambda self, other: True
            __hash__ = sympy.Add.__hash__
        slope = Add(x, a, evaluate=False)""",
    "an own kind of letter": """
        class S(sympy.Symbol):
            _eval_subs = lambda self, old, new: sympy.Integer(4)
            _assumptions_orig = property(lambda self: {"positive": True})
        slope = S(code)""",
    "an own kind of number": """
        class F(sympy.Float):
            __eq__ = lambda self, other: True
            __hash__ = sympy.Float.__hash__
            __sub__ = __rsub__ = __abs__ = lambda self, *other: 0
        slope = object.__new__(F)
        slope._mpf_, slope._prec = sympy.Float(7)._mpf_, 53""",
    "fields named like code": """
        class N(tuple):
            _fields = ("a", f"b={code}")
        slope = N((x, a))""",
    "a matrix": "slope = sympy.Matrix([[right]])",
    "a lambda": "slope = sympy.Lambda((x, a), right)",
    "a polynomial": "slope = sympy.Poly(right)",
    "an equation": "slope = sympy.Eq(x, right)",
    "a derivative": "slope = sympy.Derivative(a * x**2, x)",
    "a limit": "h = sympy.Symbol('h')\nslope = sympy.Limit((a * (x + h)**2 - a * x**2) / h, h, 0)",
    "an integral": "slope = sympy.Integral(2 * a, (x, 0, x))",
    "a sum": "k = sympy.Symbol('k')\nslope = sympy.Sum(a * x, (k, 1, 2))",
    "a product": "k = sympy.Symbol('k')\nslope = sympy.Product(right, (k, 1, 1))",
    "a substitution": "slope = sympy.Subs(a * x, x, 2 * x)",
    "a derivative inside": "slope = x * sympy.Derivative(a * x**2, x) / x",
    "forged names": WIRE_OF_FORMULAS.format("['Symbol', code]"),
    "a forged kind": WIRE_OF_FORMULAS.format("['sympify', ['Symbol', code]]"),
    "forged text": WIRE_OF_FORMULAS.format("code"),
}  # fmt: skip

ENDLESS = {
    "a power of powers": "slope = sympy.Pow(10, sympy.Pow(10, sympy.Pow(10, 10, evaluate=False), evaluate=False), evaluate=False)",
    "a power of powers beside the right formula": """
        slope = x ** sympy.Pow(10, sympy.Pow(10, 10, evaluate=False), evaluate=False)
        slope = sympy.Add(right, sympy.Mul(0, slope, evaluate=False), evaluate=False)""",
    "powers of letters": "slope = x ** (x ** (x ** (x ** x)))",
    "a large power": "slope = (right + 1) ** (10**9)",
    "exponentials": "slope = sympy.exp(sympy.exp(sympy.exp(sympy.exp(sympy.exp(x)))))",
    "factorials": "slope = right + sympy.factorial(10**15, evaluate=False)",
    "a long number": "slope = right + sympy.Integer(7) ** 200_000",
    "a number that is nearly nothing": "slope = right * sympy.Float('1e-400000')",
    "a tree that is a thousand times itself": """
        slope = right
        for _ in range(300):
            slope = sympy.Add(slope, slope, evaluate=False)""",
    "a deep tree": "slope = right\nfor _ in range(3000):\n    slope = sympy.sin(slope, evaluate=False)",
    "what simplify takes for ever": "slope = sum((sympy.sin(x) ** i * sympy.cos(x) ** (400 - i) for i in range(400)), right)",
    "a series without end": "k = sympy.Symbol('k')\nslope = right + sympy.Sum(1 / k**2, (k, 1, 10**15))",
    "keys that all meet": "slope = {k * (2**61 - 1): 0 for k in range(1, 20_000)}",
    "a decimal without end": "import decimal\nslope = decimal.Decimal('1e999999999')",
    "a fraction of long numbers": "import fractions\nslope = fractions.Fraction(7**200_000, 3**200_000)",
}  # fmt: skip


@pytest.mark.parametrize("answer", EVALUATED)
def test_no_answer_is_evaluated(formulas, answer):
    assert formulas(EVALUATED[answer], "rate = 0.25") == (0.0, 2.0)


@pytest.mark.parametrize("answer", ENDLESS)
def test_no_formula_takes_long(formulas, answer):
    assert formulas(ENDLESS[answer], "rate = sympy.Rational(1, 4)") == (0.0, 2.0)


@pytest.mark.parametrize(
    "answer",
    [
        "slope = right",
        "slope = sympy.diff(a * x**2, x)",
        "slope = sympy.sympify('x * a * 2')",
        "x, a = sympy.symbols('x a')\nslope = (a * x + 0.5 * a * x * 2)",
        "slope = sympy.Symbol('x') * sympy.Dummy('a') * 2",
        "slope = sympy.Piecewise((2 * a * x, x > 0), (a * x + x * a, True))",
        "slope = sympy.log(sympy.exp(2 * a * x))",
    ],
)
def test_right_formulas(formulas, answer):
    assert formulas(answer) == (2.0, 0.0)


@pytest.mark.parametrize(
    "rate",
    [
        "0.25",
        "sympy.Rational(1, 4)",
        "sympy.Float(0.25)",
        "1 / sympy.sqrt(16)",
        "sympy.sqrt(sympy.pi) ** 2 / sympy.pi / 4",
        "__import__('fractions').Fraction(1, 4)",
        "__import__('decimal').Decimal('0.25')",
        "np.float32(0.25)",
        "torch.tensor(0.25)",
    ],
)
def test_right_numbers(formulas, rate):
    assert formulas("slope = None", f"rate = {rate}") == (0.0, 2.0)


@pytest.mark.parametrize(
    "rate",
    [
        "'0.25'",
        "np.str_('0.25')",
        "np.array('0.25', dtype=object)",
        "[0.25]",
        "torch.tensor([0.25])",
        "type('F', (float,), {'__eq__': lambda s, o: True})(3)",
    ],
)
def test_what_is_no_number(formulas, rate):
    assert formulas("slope = right", f"rate = {rate}") == (2.0, 0.0)


# ---------------------------------------------------------------- sabotage: what breaks costs its own exercise only

ENDS = {
    "os._exit": "import os\ndef squares(n):\n    os._exit(0)",
    "a crash": "import ctypes\ndef squares(n):\n    ctypes.string_at(0)",
    "a signal": "import os, signal\ndef squares(n):\n    os.kill(0, signal.SIGKILL)\n    os.abort()",
    "another program": "import os, sys\ndef squares(n):\n    os.execv(sys.executable, [sys.executable, '-c', '0'])",
    "exit": "def squares(n):\n    exit()",
    "a thread that ends it": "import os, threading, time\ndef squares(n):\n    threading.Timer(0.01, os._exit, [0]).start()\n    time.sleep(9)",
    "an end in __del__ and atexit": "import atexit, os\nclass D:\n    def __del__(self):\n        os._exit(3)\ndef squares(n):\n    D()",
    "the socket closed": "import os\ndef squares(n):\n    os.close(3)",
    "memory": "def squares(n):\n    return b'x' * (6 << 30)",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef squares(n):\n    return squares(n + 1)",
    "a loop that swallows": "def squares(n):\n    while True:\n        try:\n            while True:\n                pass\n        except BaseException:\n            pass",
    "a generator without end": "def squares(n):\n    while True:\n        yield 1",
    "no signals": "import signal\ndef squares(n):\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True:\n        pass",
    "a result of 100 MB": "def squares(n):\n    return np.zeros(100 << 17).tolist()",
    "processes": "import os\ndef squares(n):\n    while True:\n        try:\n            os.fork()\n        except OSError:\n            pass",
    "a full folder": "def squares(n):\n    for i in range(99):\n        open(f'{i}', 'wb').write(bytes(100 << 20))",
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_what_breaks_costs_its_own_exercise(graded, end):
    assert graded({**RIGHT, "squares": ENDS[end]}) == {**ALL, "squares": 0.0}


OUTPUTS = """
import sys
from IPython.display import HTML, clear_output, display, publish_display_data, update_display
print("x" * 20_000_000)
sys.stderr.write("y" * 5_000_000)
display(HTML("<script>alert(1)</script>" * 100_000))
print("\\ud800 \\x00 \\x1b[31m \\x1b]0;title\\x07")
publish_display_data({"application/json": {"\\ud800": ["\\udfff", float("nan"), float("inf")]}, "text/\\udc00": "\\ud800", "": "", "a/b": 5})
deep = 0
for _ in range(900):
    deep = [deep]
publish_display_data({"application/json": deep})
display(display_id="one"); update_display(1, display_id="one"); clear_output()
class Odd:
    def _repr_html_(self):
        return 7
    def _repr_mimebundle_(self, **kwargs):
        return {1: 2, "text/html": object(), "image/png": b"\\xff"}
    def __repr__(self):
        raise SystemExit
display(Odd())
Odd()
"""


def test_outputs(graded):
    assert graded(RIGHT, OUTPUTS, may_fail=True) == ALL


def test_prints_while_tested(graded):
    loud = {name: source.replace("    return", "    print('3.0' * 1_000_000)\n    import sys; sys.stderr.write('no')\n    return") for name, source in RIGHT.items()}  # fmt: skip
    assert graded({**loud, "answer": RIGHT["answer"]}) == ALL


def test_files_beside_the_notebook(graded, tmp_path):
    evil = "raise SystemExit('loaded from the submission')"
    for name in ("torch", "numpy", "json", "msgpack", "sitecustomize", "usercustomize", "conftest", "inspect", "copy"):
        (tmp_path / f"{name}.py").write_text(evil)
    for name in ("course", "autograder", "IPython", "matplotlib", "nbformat"):
        (tmp_path / name).mkdir()
        for file in ("__init__.py", "checks.py", "remote.py", "session.py"):
            (tmp_path / name / file).write_text(evil)
    (tmp_path / "answers.py").write_text(evil)
    (tmp_path / "pyvenv.cfg").write_text("home = /tmp")
    (tmp_path / "x.pth").write_text(f"import sys; {evil}")
    assert graded(RIGHT, files=tmp_path) == ALL
    assert graded(WRONG, files=tmp_path) == NOTHING


# ---------------------------------------------------------------- secrets

SEARCH = """
import gc, glob, os, sys
word = ("secret" + "_name").encode()
found = []
for top in ("/", "/proc/self", "/tmp"):
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/usr", "/proc", sys.prefix, sys.base_prefix, "/lib")]
        for file in files:
            path = os.path.join(folder, file)
            if file.endswith((".py", ".ipynb", ".db", ".json", "environ", "cmdline")):
                try:
                    found += [path] if word in open(path, "rb").read(1 << 20) else []
                except OSError:
                    pass
for thing in gc.get_objects():
    if type(thing) is dict:
        found += [k for k, v in list(thing.items()) if type(v) is str and word.decode() in v]
print("found", len(found), found)
"""


def test_the_hidden_tests_are_nowhere(graded, chapter):
    assert HIDDEN in chapter.path.read_text()
    late = f"def double(x):\n    exec({SEARCH!r}, {{}})\n    return x"
    assert graded({**WRONG, "double": late}, SEARCH, limits=Limits(call=20, cell=30, notebook=60)) == NOTHING


# ---------------------------------------------------------------- the reference

REFERENCE = """
import copy, functools, importlib, importlib.util, sys, types
import course.softmax_and_cross_entropy as module
reference = module.softmax
def tensor(x):
    return torch.as_tensor(x)
def load():
    spec = importlib.util.spec_from_file_location("mine", module.__file__)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
early = load()
copied = types.FunctionType(reference.__code__, reference.__globals__)
deep, partial, cached = copy.deepcopy(reference), functools.partial(reference), functools.cache(reference)
def thread(x):
    import threading
    found = []
    one = threading.Thread(target=lambda: found.append(reference(x)))
    one.start()
    one.join()
    return found[0]
import inspect, linecache, marshal, os, pathlib, subprocess
code = reference.__code__
def made_now(x):
    return types.FunctionType(code, module.__dict__)(x)
def from_marshal(x):
    return types.FunctionType(marshal.loads(marshal.dumps(code)), module.__dict__)(x)
def run(text):
    space = dict(module.__dict__)
    del space["softmax"]
    exec(text, space)
    return space["softmax"]
def caught(f):
    try:
        return f()
    except Exception:
        return None
texts = [caught(lambda: inspect.getsource(reference)), caught(lambda: inspect.getsource(module)), "".join(linecache.getlines(module.__file__))]
texts += [caught(lambda: pathlib.Path(module.__file__).read_text()), caught(lambda: module.__loader__.get_source(module.__name__))]
folders = [os.path.dirname(module.__file__), os.path.dirname(module.__cached__)]
files = [os.path.join(folder, file) for folder in folders if os.path.isdir(folder) for file in os.listdir(folder) if "softmax" in file]
def from_source(x):
    return run(inspect.getsource(reference))(x)
def from_file(x):
    return run(open(module.__file__).read())(x)
def from_loader(x):
    return run(module.__loader__.get_code(module.__name__))(x)
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    while True:
        numbers = np.frombuffer(os.read(there[0], 1 << 16))
        os.write(back[1], reference(tensor(numbers)).numpy().tobytes())
def asked(x):
    os.write(there[1], x.numpy().tobytes())
    return torch.from_numpy(np.frombuffer(os.read(back[0], 1 << 16)).copy())
def from_program(x):
    program = "import sys, torch, course.softmax_and_cross_entropy as m; print(m.softmax(torch.tensor(eval(sys.argv[1]))).tolist())"
    return torch.tensor(eval(subprocess.run([sys.executable, "-c", program, str(x.tolist())], capture_output=True, text=True).stdout))
"""
WAYS = ["module.softmax", "copied", "deep", "partial", "cached", "early.softmax", "load().softmax", "importlib.reload(module).softmax", "thread"]  # fmt: skip
WAYS += ["made_now", "from_marshal", "from_source", "from_file", "from_loader", "asked", "from_program"]


@pytest.mark.parametrize("way", WAYS)
def test_the_reference_is_withheld(graded, way):
    assert graded({**WRONG, "softmax": f"def softmax(x):\n    return {way}(tensor(x)).numpy()"}, REFERENCE) == NOTHING


def test_the_course_has_no_sources_there(graded):
    look = "assert not any(text and text.strip() for text in texts), texts\nassert all(os.path.getsize(file) == 0 for file in files), files"
    data = "from course import data\nassert data.__file__ and open(data.__file__).read()\nimport course.kernels.softmax"
    assert graded(WRONG, f"{REFERENCE}\n{look}\n{data}") == NOTHING


def test_honest_after_all_of_that(graded):
    assert graded(RIGHT) == ALL
