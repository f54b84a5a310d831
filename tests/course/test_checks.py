"""The vocabulary of the exercises' tests: it accepts every right answer, sees a fault, and says what is wrong."""

import functools
import linecache
import math
import random
import re
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch

from course import checks
from course.checks import CheckFailed, Exercise, check, difference, draw
from course.checks.words import kind_of, show


@pytest.fixture(autouse=True)
def no_exercise(monkeypatch):
    monkeypatch.setattr(Exercise, "_current", None)
    checks.grader.set()
    monkeypatch.delenv(checks.SEED_VARIABLE, raising=False)


def failure(test) -> str:
    """What the student reads when a test fails."""
    with pytest.raises(CheckFailed) as caught:
        test()
    return str(caught.value)


def student(source: str, name: str):
    """A function as a student's cell defines it: in a file of its own."""
    file = f"<cell {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace = {"torch": torch, "np": np, "math": math}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


# ---------------------------------------------------------------- difference

T = torch.tensor
EQUAL = [
    (T([1.0, 2.0]), T([1.0, 2.0])),
    (T([1.0]), torch.nn.Parameter(T([1.0]))),
    (T([math.nan, math.inf]), T([math.nan, math.inf])),
    (T([1 + 2j]), T([1 + 2j])),
    (T([], dtype=torch.int64), T([], dtype=torch.int64)),
    (np.array([1, 2]), np.array([1, 2])),
    (1, 1.0),
    (2.5, np.float64(2.5)),
    (3, np.int64(3)),
    (3.0, T(3.0)),
    (3.0, np.array(3.0)),
    (np.float32(0.5), 0.5),
    (math.nan, math.nan),
    (True, np.bool_(True)),
    (True, T(True)),
    ([1, 2], (1, 2)),
    ((T([1.0]), 2), [T([1.0]), 2]),
    ((T(2.0), T(1)), torch.max(T([1.0, 2.0]), dim=0)),
    ((1, 2), namedtuple("Pair", "a b")(1, 2)),
    ({"a": [1]}, OrderedDict(a=(1,))),
    ("abc", "abc"),
    (None, None),
    (10**30, 10**30),
]
DIFFERENT = [
    (T([1.0, 2.0]), T([[1.0, 2.0]]), "shape (2,) was expected, shape (1, 2) came".replace("shape (1", "(1")),
    (T([1.0, 1.0]), T(1.0), "shape (2,) was expected, () came"),
    (T([[1.0], [1.0]]), T([[1.0, 1.0]]), "shape (2, 1) was expected"),
    (T([1.0]), T([1.0]).double(), "dtype float32 was expected, float64 came"),
    (T([1.0]), np.array([1.0]), "a tensor was expected, a numpy array"),
    (np.array([1.0]), T([1.0]), "a numpy array was expected, a tensor"),
    (T([1.0]), [1.0], "a tensor was expected, a list came"),
    ([1.0], T([1.0]), "a list was expected, a tensor"),
    (T([1.0, 5.0, 3.0]), T([1.0, 2.0, 3.0]), "1 of 3 numbers are off, most at [1]: 5 was expected, 2 came"),
    (T([0.0]), T([math.nan]), "nan came"),
    (T([math.nan]), T([0.0]), "nan was expected"),
    (T([math.inf]), T([-math.inf]), "inf was expected, -inf came"),
    (T([True]), T([1]), "dtype bool was expected, int64 came"),
    (1, True, "a number was expected, a bool (True) came"),
    (True, 1, "True was expected, 1 came"),
    (True, T([True]), "True was expected"),
    (1, T([1]), "a number was expected, a tensor of shape (1,) came"),
    (1, "1", "a number was expected, a str ('1') came"),
    (1, None, "a number was expected, nothing came"),
    (1, ..., "the ellipsis `...` came"),
    ([1, 2], [1, 2, 3], "length 2 was expected, 3 came"),
    ([1, 2], {1, 2}, "a list was expected, a set came"),
    ([1, [2, 3]], [1, [2, 4]], "at [1] at [1]"),
    ({"a": 1}, {"b": 1}, "keys differ"),
    ({"a": 1}, {"a": 2}, "at ['a']"),
    ({"a": 1}, [1], "a dict was expected, a list came"),
    ("abc", "abd", "'abc' was expected, 'abd' came"),
    (None, 0, "nothing was expected, an int (0) came"),
    (10**30, 10**30 + 1, "was expected"),
]


@pytest.mark.parametrize(("expected", "value"), EQUAL, ids=str)
def test_equal_results_have_no_difference(expected, value):
    assert difference(expected, value) is None


@pytest.mark.parametrize(("expected", "value", "text"), DIFFERENT, ids=str)
def test_a_difference_is_told_in_words(expected, value, text):
    assert text in difference(expected, value)


class AlwaysEqual:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return AlwaysEqual()


class LyingTensor(torch.Tensor):
    def __eq__(self, other):
        return torch.ones(self.shape, dtype=torch.bool)


class LyingFloat(float):
    def __eq__(self, other):
        return True


class LyingArray(np.ndarray):
    def __eq__(self, other):
        return np.ones(self.shape, bool)


@pytest.mark.parametrize("expected", [T([1.0]), np.array([1.0]), 1.0, True, "abc", [1], {"a": 1}, None], ids=str)
@pytest.mark.parametrize(
    "liar",
    [AlwaysEqual(), T([0.0]).as_subclass(LyingTensor), LyingFloat(0.0), np.array([0.0]).view(LyingArray)],
    ids=lambda x: type(x).__name__,
)
def test_an_eq_that_lies_does_not_help(expected, liar):
    assert difference(expected, liar) is not None


@pytest.mark.parametrize("value", [5.0, -math.inf, math.nan])
@pytest.mark.parametrize("tolerance", [{"atol": 1e9}, {"rtol": 1.0}, {"bounds": math.inf}])
def test_no_tolerance_makes_a_number_near_to_infinity(value, tolerance):
    assert difference(math.inf, value, **tolerance) is not None


def test_the_worst_of_several_faults_is_shown():
    assert "2 of 4 numbers are off, most at [1, 0]: 3 was expected, 9 came" in difference(
        T([[1.0, 2.0], [3.0, 4.0]]), T([[1.0, 2.5], [9.0, 4.0]])
    )


@np.printoptions(precision=1, floatmode="fixed", sign="+", formatter={"float": str})
def test_what_is_told_does_not_depend_on_how_numpy_prints():
    with pytest.raises(CheckFailed, match=re.escape("([0.125, 2. ] float32)")):
        check(lambda x: x).on(T([0.125, 2.0])).returns([0.0, 0.0])


def test_numbers_that_print_alike_are_shown_with_all_digits():
    assert difference(0.1, 0.1000000001) == "off: 0.1 was expected, 0.1000000001 came"


@pytest.mark.parametrize(("off", "fails"), [(0.9, False), (1.1, True)])
def test_atol_is_the_largest_gap(off, fails):
    assert (difference(T([1.0]), T([1.0 + 0.01 * off]), atol=0.01) is not None) == fails


# ---------------------------------------------------------------- the derived tolerance

DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def attention(query, key, value):
    return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1) @ value


def attention_in_another_order(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query * query.shape[-1] ** -0.5, key)
    scores = (scores - scores.amax(-1, keepdim=True)).exp()
    return sum(scores[..., s, None] * value[..., s, None, :] for s in reversed(range(value.shape[-2]))) / scores.sum(
        -1, keepdim=True
    )


def attention_in_numpy(query, key, value):
    q, k, v = (x.double().numpy() for x in (query, key, value))
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.from_numpy(scores / scores.sum(-1, keepdims=True) @ v).to(value.dtype)


@pytest.mark.parametrize("other", [attention_in_another_order, attention_in_numpy])
@pytest.mark.parametrize("std", [1.0, 12.0])  # with 12 the logits reach hundreds
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_another_order_of_summation_agrees(dtype, std, other):
    for seed in range(30):
        case = checks.Draw(seed)
        T, S, d_k, d_v = case.integer(1, 9), case.integer(1, 30), case.integer(1, 64), case.integer(1, 17)
        arguments = [case.normal(n, d, std=std, dtype=dtype) for n, d in ((T, d_k), (S, d_k), (S, d_v))]
        check(other).on(*arguments).agrees_with(attention)


def softmax(x):
    return x.softmax(-1)


@pytest.mark.parametrize("std", [10.0, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_large_logits_do_not_reject_a_softmax_in_another_form(dtype, std):
    def by_logarithms(x):
        return (x - x.logsumexp(-1, keepdim=True)).exp()

    for seed in range(30):
        check(by_logarithms).on(checks.Draw(seed).normal(4, 50, std=std, dtype=dtype)).agrees_with(softmax)


def rmsnorm(x, scale):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * scale


RMSNORM_MISTAKES = {
    "epsilon outside the root": lambda x, scale: x / (torch.sqrt((x * x).mean(-1, keepdim=True)) + 1e-5) * scale,
    "mean instead of the root mean square": lambda x, scale: x / (x.mean(-1, keepdim=True).abs() + 1e-5) * scale,
    "sum instead of mean": lambda x, scale: x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-5) * scale,
    "no scale": lambda x, scale: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5),
    "the mean is taken out first": lambda x, scale: rmsnorm(x - x.mean(-1, keepdim=True), scale),
    "the wrong axis": lambda x, scale: x / torch.sqrt((x * x).mean(0, keepdim=True) + 1e-5) * scale,
}


@pytest.mark.parametrize("mistake", RMSNORM_MISTAKES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_real_mistake_is_seen(dtype, mistake):
    case = checks.Draw(1)  # small inputs, so that the epsilon matters
    x, scale = case.normal(3, 8, std=0.003, dtype=dtype), case.uniform(8, low=0.5, high=2.0, dtype=dtype)
    failure(lambda: check(RMSNORM_MISTAKES[mistake]).on(x, scale).agrees_with(rmsnorm))


def test_a_number_beside_a_tensor_of_low_precision_widens_no_bound():
    """An exponent's base is a Python float: it is not rounded as the tensor is."""

    def powers(x, base):
        return x * torch.tensor([base**n for n in range(1, 5)], dtype=torch.float64)

    x = torch.tensor([1.0, 1.0, 1.0, 1.0]).bfloat16()
    failure(lambda: check(lambda x, base: powers(x, base * 1.06)).on(x, 1.01).agrees_with(powers))
    check(lambda x, base: powers(x.double(), base)).on(x, 1.01).agrees_with(powers)


@pytest.mark.parametrize(("dtype", "visible"), [(torch.float32, 1e-5), (torch.float64, 1e-13), (torch.bfloat16, 0.3)], ids=str)
def test_how_small_a_fault_can_be_seen(dtype, visible):
    """A softmax of ten logits of spread one that is off by this share of its largest number is rejected."""
    x = checks.Draw(3).normal(10, dtype=dtype)
    failure(lambda: check(lambda x: softmax(x) * (1 + visible)).on(x).agrees_with(softmax))


def test_a_reference_that_makes_its_floats_itself_has_its_rounding_allowed():
    def positions(T, d):
        return torch.arange(T)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)

    def by_exponentials(T, d):
        return torch.sin(torch.arange(T)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(10000) / d)))

    check(by_exponentials).on(2000, 64).agrees_with(lambda T, d: positions(T, d).sin())
    failure(lambda: check(by_exponentials).on(2000, 64).agrees_with(lambda T, d: positions(T, d + 2)[:, : d // 2].sin()))


def test_a_reference_that_draws_random_numbers_does_not_widen_the_tolerance():
    def dropout(x):
        return x * (torch.rand_like(x) > 0.5)

    x = torch.randn(50)
    check(dropout).on(x).agrees_with(dropout)
    failure(lambda: check(lambda x: x * 1.0).on(x).agrees_with(dropout))


def test_the_reference_is_called_once_for_an_answer_that_is_as_good_as_the_same():
    calls = []

    def counted(x):
        calls.append(x.dtype)
        return softmax(x)

    x = torch.randn(4, 50)
    check(softmax).on(x).agrees_with(counted)
    assert calls == [torch.float32]
    check(lambda x: softmax(x) * (1 + 1e-6)).on(x).agrees_with(counted)
    assert calls.count(torch.float64) == 4


def test_complex_results_have_a_tolerance():
    x = torch.view_as_complex(torch.randn(8, 2))
    angle = T(2.0)

    def turn(x):
        return x * torch.polar(torch.ones(()), angle)

    def by_parts(x):
        c, s = math.cos(2.0), math.sin(2.0)
        return torch.complex(x.real * c - x.imag * s, x.real * s + x.imag * c)

    check(by_parts).on(x).agrees_with(turn)
    failure(lambda: check(lambda x: x.conj() * 1).on(x).agrees_with(turn))


def test_a_float_argument_stays_a_python_float():
    def scaled(x, by):
        assert type(by) is float
        return x * by

    check(lambda x, by: by * x).on(torch.randn(3), 0.1).agrees_with(scaled)


def test_the_same_kind_of_error_agrees():
    def root(x):
        if x < 0:
            raise ValueError("negative")
        return math.sqrt(x)

    def other(x):
        if x < 0:
            raise ValueError("no root")
        return x**0.5

    check(other).on(-1.0).agrees_with(root)
    assert "ValueError was expected, but a result came" in failure(lambda: check(abs).on(-1.0).agrees_with(root))


def test_a_result_of_another_dtype_does_not_agree():
    assert "dtype float32" in failure(lambda: check(lambda x: softmax(x.double())).on(torch.randn(3)).agrees_with(softmax))


# ---------------------------------------------------------------- gradients


def test_gradients_of_another_form_agree():
    check(lambda x: (x - x.logsumexp(-1, keepdim=True)).exp()).on(torch.randn(3, 4)).gradients_agree_with(softmax)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda x: softmax(x).detach() * x / x, "the gradient is off"),
        (lambda x: softmax(x).detach(), "does not depend on the arguments for autograd"),
        (lambda x: T(softmax(x.detach()).tolist()), "does not depend on the arguments for autograd"),
        (lambda x: x.no_such_name, "its gradients cannot be computed: AttributeError"),
    ],
)
def test_a_wrong_gradient_is_told(answer, text):
    assert text in failure(lambda: check(answer).on(torch.randn(3, 4)).gradients_agree_with(softmax))


def test_a_reference_without_gradients_is_the_authors_error():
    with pytest.raises(ValueError, match="the reference has no gradients"):
        check(softmax).on(torch.randn(3)).gradients_agree_with(lambda x: x.detach())


# ---------------------------------------------------------------- other checks of a function


def doubles_in_place(x):
    x *= 2
    return x


def test_a_changed_argument_is_told():
    assert "changed an argument in place" in failure(lambda: check(doubles_in_place).on(T([1.0])).leaves_arguments_alone())
    check(lambda x: 2 * x).on(T([1.0])).leaves_arguments_alone()


def test_an_argument_that_cannot_be_compared_is_left_out():
    check(lambda x, generator: x).on(T([1.0]), torch.Generator()).leaves_arguments_alone()


IN_AUTOGRAD = {
    "requires_grad": lambda x: x.requires_grad_(not x.requires_grad).detach() * 2,
    "grad": lambda x: (x.requires_grad_().sum().backward(), x.requires_grad_(False), 1)[-1],
}


@pytest.mark.parametrize("name", IN_AUTOGRAD)
def test_what_changes_of_an_argument_in_autograd_is_told(name):
    changes, x = IN_AUTOGRAD[name], T([1.0])
    assert f"changed the `{name}` of an argument" in failure(lambda: check(changes).on(x).leaves_arguments_alone())
    assert x.grad is None and not x.requires_grad


def test_a_gradient_that_is_left_behind_is_told():
    def slope(x):
        (x**2).sum().backward()
        return x.grad

    call = check(slope).on(torch.ones(2, requires_grad=True)).returns([2.0, 2.0])
    assert "changed the `grad` of an argument" in failure(call.leaves_arguments_alone)
    call = check(lambda layer: layer(T([1.0, 2.0])).sum().backward()).on(torch.nn.Linear(2, 2))
    assert "changed the `grad` of an argument" in failure(call.leaves_arguments_alone)
    check(lambda x: torch.autograd.grad((x**2).sum(), x)[0]).on(torch.ones(2, requires_grad=True)).leaves_arguments_alone()


def test_a_changed_module_is_told():
    def zero(layer):
        layer.weight.data.zero_()

    assert "changed an argument" in failure(lambda: check(zero).on(torch.nn.Linear(2, 2)).leaves_arguments_alone())
    check(lambda layer: layer(T([1.0, 2.0]))).on(torch.nn.Linear(2, 2)).leaves_arguments_alone()


@pytest.mark.parametrize("x", [torch.ones(2), np.ones(2), [1, [2]], {"a": torch.ones(2)}], ids=str)
def test_the_tests_own_arguments_are_safe(x):
    before = str(x)

    def spoil(x):
        if isinstance(x, list):
            x[1].append(3)
        elif isinstance(x, dict):
            x["a"] *= 0
        else:
            x *= 0

    check(spoil).on(x)
    assert str(x) == before


def test_arguments_keep_their_strides():
    x = torch.arange(12.0).reshape(3, 4)
    for view in (x.T, x[:, ::2], x[1:], x.expand(2, 3, 4)[0]):
        check(lambda x: x.stride()).on(view).returns(tuple(view.stride()))


def test_an_argument_that_requires_grad_still_does():
    check(lambda x: x.requires_grad).on(torch.ones(2, requires_grad=True)).returns(True)


def test_raises_wants_the_error():
    def fails(x):
        raise KeyError(x)

    check(fails).on(1).raises(LookupError)
    assert "ValueError was expected, KeyError: 1" in failure(lambda: check(fails).on(1).raises(ValueError))
    assert "ValueError was expected, but a result came: 1" in failure(lambda: check(abs).on(-1).raises(ValueError))


@pytest.mark.parametrize("error", [RuntimeError, Exception])
def test_the_stubs_error_is_no_answer(error):
    def stub(x):
        raise NotImplementedError()

    assert "not written yet" in failure(lambda: check(stub).on(1).raises(error))


def test_satisfies_says_the_claim_and_what_came():
    assert "it does not hold that it is even (3 came)" in failure(
        lambda: check(abs).on(-3).satisfies(lambda n: n % 2 == 0, "it is even")
    )
    check(abs).on(-4).satisfies(lambda n: n % 2 == 0, "it is even")


def test_a_predicate_that_fails_is_a_failed_test():
    assert "AttributeError" in failure(lambda: check(abs).on(-3).satisfies(lambda n: n.sum() == 1, "it sums to one"))


class Counter:
    def __init__(self):
        self.n = 0

    def add(self):
        self.n += 1
        return self.n


class ForgetfulCounter(Counter):
    def add(self):
        return 1


def twice(make):
    counter = make()
    return [counter.add(), counter.add()]


def test_using_compares_what_a_class_does():
    check(Counter).using(twice).agrees_with(Counter)
    told = failure(lambda: check(ForgetfulCounter).using(twice, what="when add is called twice").agrees_with(Counter))
    assert told.startswith("ForgetfulCounter, when add is called twice: at [1]")


def test_using_allows_for_rounding():
    x, w = torch.randn(5, 300), torch.randn(300, 7)
    backwards = lambda x: sum(x[:, i : i + 1] * w[i] for i in reversed(range(300)))  # noqa: E731
    check(backwards).using(lambda f: f(x)).agrees_with(lambda x: x @ w)


def test_a_call_is_repeated_with_autograd_on_or_off_as_it_was_made():
    def records(x=None):
        return torch.ones(1, requires_grad=True).exp().requires_grad

    with torch.no_grad():
        off = [check(records).on(0.0), check(records).using(lambda f: f())]
    assert [call.returns(False).observe(records).value for call in off] == [False, False]
    assert check(records).on(0.0).returns(True).observe(records).value


DRAWS = [torch.rand, np.random.rand, lambda n: [random.random() for _ in range(n)]]


@pytest.mark.parametrize("draws", DRAWS, ids=["torch", "numpy", "python"])
def test_random_numbers_of_an_answer_are_seeded(draws):
    for _ in range(2):
        check(lambda n: draws(n)).on(5).agrees_with(lambda n: draws(n))
        check(lambda n: draws(n)).using(lambda f: f(5)).agrees_with(draws)


@pytest.mark.parametrize("draws", DRAWS, ids=["torch", "numpy", "python"])
def test_what_a_test_draws_does_not_depend_on_what_ran_before(draws):
    def drawn():
        draws(1)
        Exercise("ch99.x", points=1)
        return draws(3)

    assert difference(drawn(), drawn()) is None


# ---------------------------------------------------------------- what a task forbids

NORMS = {
    "by hand": "(x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)",
    "functional": "torch.nn.functional.layer_norm(x, x.shape[-1:])",
    "torch": "torch.layer_norm(x, x.shape[-1:])",
    "native": "torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)[0]",
    "module": "torch.nn.LayerNorm(x.shape[-1], elementwise_affine=False)(x)",
    "operator": "torch.ops.aten.layer_norm.default(x, x.shape[-1:])",
}
LEAF = "leaf = x.detach().clone().requires_grad_()\n    with torch.enable_grad(): y = (leaf**2).sum()\n    "
SLOPES = {
    "by hand": "return 2 * x",
    "grad": f"{LEAF}return torch.autograd.grad(y, leaf)[0]",
    "backward": f"{LEAF}y.backward()\n    return leaf.grad",
    "of several": f"{LEAF}torch.autograd.backward([y])\n    return leaf.grad",
    "func": "return torch.func.grad(lambda x: (x**2).sum())(x)",
    "forward": "return torch.func.jacfwd(lambda x: (x**2).sum())(x)",
    "jacobian": "return torch.autograd.functional.jacobian(lambda x: (x**2).sum(), x)",
}
OPTIMISERS = {
    "by hand": "return x - 0.1 * 2 * x",
    "torch": "w = torch.nn.Parameter(x.clone())\n    w.grad = 2 * x\n    torch.optim.SGD([w], lr=0.1).step()\n    return w.detach()",
}


def norm_reference(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


FORBIDDEN = [(("layer_norm",), "return " + body, norm_reference, how) for how, body in NORMS.items()]
FORBIDDEN += [(("autograd",), body, lambda x: 2 * x, how) for how, body in SLOPES.items()]
FORBIDDEN += [(("torch.optim", "rms_norm"), body, lambda x: 0.8 * x, how) for how, body in OPTIMISERS.items()]


@pytest.mark.parametrize(("without", "body", "reference", "how"), FORBIDDEN, ids=[f"{f[0][0]}: {f[3]}" for f in FORBIDDEN])
@pytest.mark.parametrize("use", ["on", "using"])
def test_what_a_task_forbids_is_refused_however_it_is_called(without, body, reference, how, use):
    f, x = student(f"def f(x):\n    {body}", "f"), torch.randn(2, 5)
    for forbidden in (without, ()):
        exercise = Exercise("ch99.f", points=1, without=forbidden)
        with exercise.part("all", points=1):
            (check(f).on(x) if use == "on" else check(f).using(lambda g: g(x))).agrees_with(reference)
        told = exercise.parts[0][2]
        if how == "by hand" or not forbidden:
            assert told is None
        else:
            named = without[0] if without[0] == "autograd" else f"`{without[0]}`"
            assert f"PermissionError: {named}" in told
            assert "is not allowed in this exercise: write out yourself what it does, in " in told


def test_functions_of_the_tests_may_use_what_an_answer_may_not():
    calls = student("def calls(f): return f(torch.ones(3))", "calls")
    Exercise("ch99.calls", points=1, without=("layer_norm",))
    check(calls).using(lambda g: g(norm_reference)).returns([0.0] * 3)
    assert "not allowed" in failure(lambda: check(calls).on(torch.nn.LayerNorm(3)).satisfies(lambda y: True, "all is well"))


def test_what_is_forbidden_is_said_in_a_tuple():
    with pytest.raises(TypeError, match="autograd"):
        Exercise("ch99.f", points=1, without="autograd")


# ---------------------------------------------------------------- plain numbers for tensors


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ([0.1, 0.2], T([0.1, 0.2])),
        ([0.1, 0.2], T([0.1, 0.2], dtype=torch.float64)),
        ([[1, 2]], np.array([[1, 2]])),
        ([0.1], np.array([0.1], np.float32)),
        (0.1, T(0.1)),
        (0.1, np.float32(0.1)),
        (([1.0], [2, 3]), (T([1.0]), T([2, 3]))),
    ],
    ids=str,
)
def test_lists_and_numbers_stand_for_what_came(expected, value):
    check(lambda: value).on().returns(expected)


def test_a_ragged_list_is_no_tensor():
    assert "a list was expected, a tensor" in failure(lambda: check(lambda: torch.ones(2)).on().returns([[1], [2, 3]]))


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("right", [3, 0.125, "B", [2, 0, 1], T([1.0, 2.0]), True], ids=str)
@pytest.mark.parametrize("wrong", [7, 0.5, "A", [0, 1, 2], T([5.0, 6.0]), T([5.0]), None, 1 + 1j], ids=str)
def test_equals_never_tells_what_is_right(right, wrong):
    told = failure(lambda: check(x=wrong).equals(right))
    kinds = {f"x should be {kind}, " for kind in ("a number", "a text", "a list of numbers", "True or False")}
    assert told == f"x = {show(wrong)} is not right." or any(told.startswith(kind) for kind in kinds)
    assert str(right) not in told.replace(show(wrong), "").replace("True or False", "").replace(kind_of(wrong), "")


@pytest.mark.parametrize(
    ("wrong", "right", "asked"),
    [
        ("0.5", 0.5, "a number, a str ('0.5') came"),
        (T([0.5]), 0.5, "a number, a tensor of shape (1,) came"),
        ([0.5], 0.5, "a number, a list came"),
        (True, 1, "a number, a bool (True) came"),
        (["1", "2"], [1, 2], "a list of numbers, a list came"),
        (1, "B", "a text, an int (1) came"),
        (1, True, "True or False, an int (1) came"),
    ],
    ids=str,
)
def test_a_right_value_of_the_wrong_kind_is_not_called_wrong(wrong, right, asked):
    assert failure(lambda: check(x=wrong).equals(right)) == f"x should be {asked}."


def test_a_right_value_equals():
    check(x=0.359).equals(0.3592, atol=5e-4)
    check(x=[2, 0, 1]).equals((2, 0, 1))


HALF = [
    0.5,
    np.float32(0.5),
    np.array(0.5),
    T(0.5),
    T(0.5, dtype=torch.bfloat16),
    Fraction(1, 2),
    Decimal("0.5"),
    sympy.Rational(1, 2),
]


@pytest.mark.parametrize("half", [*HALF, sympy.Float(0.5)], ids=repr)
def test_a_number_is_a_number_of_whatever_kind(half):
    check(x=half).is_number().equals(0.5)
    check(x=[half, 2]).equals([0.5, 2.0])
    check(lambda: half).on().returns(0.5)
    check(lambda: half).on().is_number().satisfies(lambda x: type(x) is float and x == 0.5, "a half comes")


@pytest.mark.parametrize(
    "two", [2, 2.0, np.int64(2), T(2), T(2, dtype=torch.uint8), Fraction(2), Decimal(2), sympy.Integer(2)], ids=repr
)
def test_a_whole_number_is_one_of_whatever_kind(two):
    check(x=two).equals(2)
    check(lambda: two).on().returns(2)


@pytest.mark.parametrize(
    "wrong", ["0.5", b"0.5", [0.5], T([0.5]), np.array([0.5]), True, 0.5 + 0j, T(0.5 + 0j), None, math.nan, -math.inf], ids=repr
)
def test_what_is_no_number(wrong):
    assert "number" in failure(lambda: check(x=wrong).is_number())
    assert "number was expected" in failure(lambda: check(lambda: wrong).on().is_number())


@pytest.mark.parametrize(
    "value",
    [
        Decimal("nan"),
        Decimal("sNaN"),
        Decimal("inf"),
        Decimal("-1e999999999"),
        sympy.nan,
        sympy.oo,
        sympy.Symbol("x"),
        Fraction(10**400, 3),
    ],
    ids=repr,
)
def test_what_has_no_finite_value_is_no_number(value):
    assert "should be a number" in failure(lambda: check(x=value).is_number())


@pytest.mark.parametrize(
    "vector", [[0.5, 2], (0.5, 2), T([0.5, 2.0]), np.array([0.5, 2], np.float32), [T(0.5), Fraction(2)]], ids=repr
)
def test_a_vector_is_one_of_whatever_kind(vector):
    check(x=vector).equals([0.5, 2.0])
    check(x=vector).equals(T([0.5, 2.0]))
    check(x={"a": vector}).equals({"a": [0.5, 2]})


def test_letters_and_words_are_equal_in_either_case():
    check(x=" b ").equals("B")
    check(x=["Attention", "ffn"]).equals(["attention", "FFN"])
    check(x="GREEDY").is_one_of("greedy", "beam")


@pytest.mark.parametrize("chosen", ["ace", "A, C, E", "e c a", ["a", "c", "e"], {"E", "a", "C"}, ("ac", "e"), "ACEA"])
def test_letters_may_be_chosen_in_any_form(chosen):
    check(x=chosen).chooses("ace")
    check(x=chosen).chooses_from("abcde")


@pytest.mark.parametrize("chosen", ["", "ac", "acef", [], {"a"}], ids=str)
def test_other_letters_are_not_right(chosen):
    assert failure(lambda: check(x=chosen).chooses("ace")).endswith("is not right.")


@pytest.mark.parametrize("chosen", [None, 3, [1, 2], {"a": 1}, b"ace", ["a", None]], ids=str)
def test_what_is_no_choice_of_letters_is_said(chosen):
    assert "should be a text of letters" in failure(lambda: check(x=chosen).chooses("ace"))
    assert "should be a text of letters" in failure(lambda: check(x=chosen).chooses_from("abcde"))


@pytest.mark.parametrize("chosen", ["", [], "af", ["a", "f"], "a and e", "1"], ids=str)
def test_a_choice_of_no_letters_or_of_others_is_said(chosen):
    assert "should be some of the letters a to e, " in failure(lambda: check(x=chosen).chooses_from("abcde"))


def test_is_one_of_names_the_options():
    check(x="A").is_one_of("A", "B")
    assert failure(lambda: check(x="c").is_one_of("A", "B")) == "x = 'c' is none of 'A', 'B'."


# ---------------------------------------------------------------- testers that a student wrote


def the_double(x):
    return 2 * x


def by_adding(x):
    return x + x


def the_square(x):
    return x * x


def one_more(x):
    return x + 1


RIGHT, WRONG = [the_double, by_adding], [the_square, one_more]


def test_a_tester_that_tells_all_apart_passes():
    check(lambda f: all(f(x) == 2 * x for x in range(4))).tells_apart(RIGHT, WRONG)
    check(lambda f: np.bool_(f(3) == 6)).tells_apart(RIGHT, WRONG)
    check(lambda f: T(f(3) == 6)).tells_apart({"half of four": RIGHT[0]}, WRONG)
    check(lambda f, n: f(n) == 2 * n).tells_apart(RIGHT, WRONG, then=(3,))
    check(lambda f, g: f(3) == g(3)).tells_apart([(the_double, by_adding)], {"another": (the_double, one_more)})


@pytest.mark.parametrize(
    ("tester", "told"),
    [
        (lambda f: f(2) == 4, "it let pass what is wrong: the square"),
        (lambda f: True, "it let pass what is wrong: "),
        (lambda f: False, "it refused what is right: "),
        (lambda f: None, "True was expected, None came"),
        (lambda f: 1, "True was expected, 1 came"),
        (lambda f: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_tester_is_told_what_it_took_for_something_else(tester, told):
    assert told in failure(lambda: check(tester).tells_apart(RIGHT, WRONG))


def test_all_that_got_past_a_tester_is_said():
    told = failure(lambda: check(lambda f: True).tells_apart(RIGHT, WRONG, see="some-section"))
    assert {"the square", "one more"} == set(told.partition("wrong: ")[2].split(", "))


@pytest.mark.parametrize("read", [lambda f: f.__name__, lambda f: f.__qualname__, lambda f: f.__doc__, lambda f: vars(f), repr])
def test_nothing_but_a_call_tells_planted_functions_apart(read):
    seen = []
    check(lambda f: (seen.append(re.sub("0x[0-9a-f]+", "", str(read(f)))), f(3) == 6)[1]).tells_apart(RIGHT, WRONG)
    assert len(seen) == 4 and len(set(seen)) == 1


def test_planted_functions_come_in_an_order_drawn_anew(monkeypatch):
    orders = set()
    for seed in range(40):
        monkeypatch.setenv(checks.SEED_VARIABLE, str(seed))
        Exercise("ch99.tester", points=1)
        order = []
        check(lambda f, order=order: (order.append(f(3)), f(3) == 6)[1]).tells_apart([the_double], [the_square, one_more])
        orders.add(tuple(order))
    assert len(orders) == 6


def test_a_tester_may_have_more_than_two_verdicts():
    kinds = {"double": RIGHT, "square": [the_square], "neither": [one_more]}
    check(lambda f: {6: "double", 9: "square"}.get(f(3), "neither")).sorts(kinds)
    told = failure(lambda: check(lambda f: "double").sorts(kinds))
    assert "'square' was expected, 'double' came: the square" in told and ": one more" in told


def test_functions_that_remember_are_made_anew_for_each_tester():
    def first_call_only(factor):
        calls = []
        return lambda x: (calls.append(x), factor * x if len(calls) == 1 else 2 * x)[1]

    tester = check(lambda f: f(3) == 6)
    for _ in range(2):
        tester.tells_apart({"two": 2}, {"three": 3}, make=first_call_only)


@pytest.mark.parametrize("kinds", [{True: RIGHT}, {True: RIGHT, False: []}, {}])
def test_a_tester_is_tried_on_more_than_one_kind(kinds):
    with pytest.raises(ValueError, match="not on one kind only"):
        check(lambda f: True).sorts(kinds)


@pytest.mark.parametrize("value", [None, "3", True, math.nan, math.inf, [3], T([3.0]), 1j], ids=str)
def test_is_number_rejects(value):
    assert "x should be a number" in failure(lambda: check(x=value).is_number())


@pytest.mark.parametrize("value", [3, 0.5, np.float32(2), np.int64(2), T(1.5)], ids=str)
def test_is_number_accepts(value):
    check(x=value).is_number()


@pytest.mark.parametrize(
    ("example", "value"),
    [([1.0, 2.0], T([math.nan, 7.0])), (0.0, 5), (True, False), ("some text", "another"), ({"a": 1}, {"a": 2})],
    ids=str,
)
def test_is_like_asks_for_type_and_shape_only(example, value):
    check(x=value).is_like(example)


@pytest.mark.parametrize(
    ("example", "value", "text"),
    [
        ([1.0, 2.0], T([1.0]), "shape (2,) was expected"),
        (0.0, "5", "a number was expected"),
        ("text", 3, "a text was expected"),
        (True, 1, "True"),
    ],
    ids=str,
)
def test_is_like_says_what_form_is_wanted(example, value, text):
    assert text in failure(lambda: check(x=value).is_like(example))


def test_equivalent_formulas_are_equal():
    p = sympy.Symbol("p", positive=True)
    check(x=(p + 1) ** 2).is_equivalent_to(p**2 + 2 * p + 1)
    check(x=sympy.Symbol("p") ** 2).is_equivalent_to(p * p)  # a student's own symbol of the same name
    check(x=sympy.log(p**2)).is_equivalent_to(2 * sympy.log(p))
    x = sympy.Symbol("x", positive=True)
    check(x=2 ** (x * sympy.log(p, 2))).is_equivalent_to(p**x)  # what simplify does not bring together
    check(x=p ** (0.5 * x)).is_equivalent_to(p ** (x / 2))
    assert "is not the same function" in failure(lambda: check(x=2 ** (x * sympy.log(p, 2))).is_equivalent_to(x**p))
    real = sympy.Symbol("r", real=True)
    assert "is not the same function" in failure(lambda: check(x=abs(real)).is_equivalent_to(real))
    assert "is not the same function" in failure(lambda: check(x=p + 1).is_equivalent_to(p - 1))
    k, m = sympy.symbols("k m", real=True)  # and sorted before two positive ones, which take numbers too
    assert "is not the same function" in failure(lambda: check(x=abs(k * m) + p + x).is_equivalent_to(k * m + p + x))
    check(x=k * (1 + sympy.tanh(k * p**2 / 2))).is_equivalent_to(2 * k / (1 + sympy.exp(-k * p**2)))
    tiny = sympy.exp(-1000 * p)
    check(x=tiny * (1 - sympy.tanh(p) ** 2)).is_equivalent_to(tiny / sympy.cosh(p) ** 2)
    assert "is not the same function" in failure(lambda: check(x=2 * tiny).is_equivalent_to(tiny))
    check(x=sympy.I * p * p).is_equivalent_to(sympy.I * p**2)
    check(x=p - p).is_equivalent_to(sympy.Integer(0))
    check(x=sympy.log(2 * p) - sympy.log(p)).is_equivalent_to(sympy.log(2))
    assert "is text, which is not read" in failure(lambda: check(x="p").is_equivalent_to(p))


# ---------------------------------------------------------------- random cases


def numbers(id="ch99.a", n=3):
    exercise = Exercise(id, points=1)
    return [case.integer(0, 10**9) for case in draw(n)], exercise.seed


def test_the_same_seed_draws_the_same(monkeypatch):
    monkeypatch.setenv(checks.SEED_VARIABLE, "5")
    assert numbers() == numbers()


def test_every_run_draws_anew():
    assert numbers() != numbers()


def test_exercises_and_cases_draw_different_numbers(monkeypatch):
    monkeypatch.setenv(checks.SEED_VARIABLE, "5")
    drawn = numbers("ch99.a")[0] + numbers("ch99.b")[0]
    assert len(set(drawn)) == 6


def test_a_draw_is_what_it_says():
    case = checks.Draw(0)
    assert {case.integer(1, 3) for _ in range(100)} == {1, 2, 3}
    assert case.normal(2, 3, dtype=torch.float64).shape == (2, 3)
    assert case.normal(20000, mean=5.0, std=2.0).mean().item() == pytest.approx(5.0, abs=0.1)  # 7 standard errors
    uniform = case.uniform(1000, low=-1.0, high=3.0)
    assert uniform.min() >= -1 and uniform.max() <= 3 and uniform.max() > 2.9
    assert set(case.integers(200, low=0, high=2).tolist()) == {0, 1, 2}
    assert sorted(case.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    assert case.choice([(), (3,)]) in [(), (3,)]
    assert 2 <= case.number(2, 3) <= 3


# ---------------------------------------------------------------- the score


def exercise(*parts, points=4):
    """An exercise whose parts (points, passes) have run."""
    made = Exercise("ch99.a", points=points)
    for number, (worth, passes) in enumerate(parts):
        with made.part(f"part {number}", points=worth):
            if not passes:
                raise CheckFailed("something is wrong")
    return made


@pytest.mark.parametrize(
    ("parts", "score"),
    [
        ([(0, True), (3, True), (1, True)], 4.0),
        ([(0, True), (3, True), (1, False)], 3.0),
        ([(0, False), (3, False), (1, True)], 1.0),
        ([(0.7 * 4, True), (0.2 * 4, True), (0.1 * 4, True)], 4.0),
        ([(0, False), (4, True)], 2.0),  # a visible part that fails costs half
        ([(0, False), (0, True), (1, False), (3, True)], 2.0),
    ],
)
def test_the_score_is_the_points_of_the_parts_that_passed(parts, score):
    earned = exercise(*parts).score()
    assert earned == score and type(earned) is float


@pytest.mark.parametrize("parts", [[(0, True), (4, False)], [(0, False)], [(0, True), (0, False)], []])
def test_no_points_is_an_error_so_that_nbgrader_gives_zero(parts):
    failure(exercise(*parts).score)


def test_the_score_says_what_failed(capsys):
    exercise((0, True), (3, True), (1, False)).score()
    assert capsys.readouterr().out == "ch99.a: 3 of 4 points.\n- part 2: something is wrong\n"


def test_a_visible_part_that_fails_is_said_to_cost(capsys):
    exercise((0, False), (4, True)).score()
    said = "ch99.a: 2 of 4 points, since a test that you can see failed.\n- part 0: something is wrong\n"
    assert capsys.readouterr().out == said


def test_without_hidden_parts_no_points_are_promised(capsys):
    assert exercise((0, True)).score() is None
    assert capsys.readouterr().out == "ch99.a: the tests you can see pass; hidden tests decide the 4 points.\n"


@pytest.mark.parametrize("parts", [[(3, True)], [(3, True), (2, True)], [(3, False)]])
def test_parts_that_do_not_add_up_are_the_authors_error(parts):
    with pytest.raises(ValueError, match="its parts are worth"):
        exercise(*parts).score()


@pytest.mark.parametrize("points", [0, -1])
def test_an_exercise_is_worth_something(points):
    with pytest.raises(ValueError, match="must be positive"):
        Exercise("ch99.a", points=points)


def test_an_explanation_that_fails_costs_nothing(monkeypatch):
    monkeypatch.setattr(checks.grader, "explain", lambda exercise: 1 / 0)
    assert exercise((3, True), (1, False)).score() == 3.0


# ---------------------------------------------------------------- what a student reads


def told(test) -> str:
    """The text of an exercise with one part that fails."""
    made = Exercise("ch99.a", points=1)
    with made.part("the part", points=1):
        test()
    return failure(made.score).partition("- the part: ")[2]


def test_a_stub_is_not_written_yet():
    stub = student("def f(x):\n    raise NotImplementedError()\n", "f")
    assert told(lambda: check(stub).on(1).returns(2)) == "f(1): not written yet (NotImplementedError)."


def test_a_name_that_is_not_there_is_named():
    assert told(lambda: check(attentoin)) == "`attentoin` does not exist yet: write it in the cell above and run that cell."  # noqa: F821


def test_a_value_in_place_of_a_function():
    assert told(lambda: check(None)) == "a function was expected, nothing came."


def test_an_error_shows_the_students_own_line():
    f = student("def f(x):\n    y = x + 1\n    return y.sqrt()\n", "f")
    assert (
        told(lambda: check(f).on(1).returns(2))
        == "f(1): AttributeError: 'int' object has no attribute 'sqrt', in f: `return y.sqrt()`"
    )


def test_an_error_inside_the_test_shows_no_line_of_it():
    f = student("def f(x):\n    return 1\n", "f")
    said = told(lambda: check(f).using(lambda f: f(1).hidden_attribute).returns(2))
    assert said == "f: AttributeError: 'int' object has no attribute 'hidden_attribute'"


def test_none_where_the_test_needs_a_value_is_said_in_words():
    sentence = "None came where a value was expected: is an answer not filled in yet, or a return missing?"
    f = student("def f(x):\n    pass\n", "f")
    assert told(lambda: check(f).using(lambda f: f(1).hidden_attribute).returns(2)) == f"f: {sentence}"
    exercise = Exercise("x.y", points=1)
    with exercise.part("letters", points=1):
        set(None)
    assert exercise.parts == [("letters", 1, sentence)]
    assert (
        told(lambda: check(slope=None).is_equivalent_to(sympy.Symbol("x"))) == "slope should be a sympy expression, nothing came."
    )


def test_an_error_inside_the_library_shows_the_students_line():
    f = student("import statistics\ndef f(x):\n    return statistics.mean(x)\n", "f")
    assert told(lambda: check(f).on([]).returns(2)).endswith("in f: `return statistics.mean(x)`")


def test_a_lambda_and_an_alias_are_called_as_they_were_asked_for():
    namespace = {"check": check}
    exec("double = lambda x: x\nhalf = abs\npart = __import__('functools').partial(pow, 2)", namespace)
    for name in ("double", "half", "part"):
        with pytest.raises(CheckFailed, match=rf"^{name}\(3\): "):
            exec(f"check({name}).on(3).returns(7)", namespace)


def test_a_link_to_the_section_is_given():
    assert failure(lambda: exercise_that_fails().score()).endswith("Read: Worked example (#worked-example).")


def exercise_that_fails():
    made = Exercise("ch99.a", points=1)
    with made.part("the part", points=1):
        check(abs).on(-1).returns(2, see="worked-example")
    return made


def test_a_long_input_is_shortened():
    told = failure(lambda: check(len).on("x" * 10_000).returns(3))
    assert len(told) < 300 and "…" in told


def test_the_traceback_shows_no_test_lines():
    with pytest.raises(CheckFailed) as caught:
        exercise((4, False)).score()
    assert caught.value._render_traceback_() == ["ch99.a: 0 of 4 points.", "- part 0: something is wrong"]


def test_an_interrupted_part_shows_no_test_lines():
    def interrupted():
        made = Exercise("ch99.a", points=1)
        with made.part("the part", points=1):
            raise KeyboardInterrupt

    assert failure(interrupted) == "ch99.a: stopped in the part “the part” before it ended."


@pytest.mark.parametrize("arguments", [((), {}), ((abs,), {"x": 1}), ((), {"x": 1, "y": 2})], ids=str)
def test_check_takes_one_thing(arguments):
    with pytest.raises((TypeError, CheckFailed)):
        check(*arguments[0], **arguments[1])


def test_a_decorated_function_keeps_its_name():
    @functools.lru_cache
    def double(x):
        return x

    assert failure(lambda: check(double).on(2).returns(4)).startswith("double(2): ")


# ---------------------------------------------------------------- a grader


def test_a_grader_calls_and_explains_in_its_own_way(capsys):
    called = []

    def invoke(answer, args, kwargs):
        called.append(answer)
        return checks.grading.invoke(answer, args, kwargs)

    checks.grader.set(invoke=invoke, explain=lambda exercise: f"{exercise.id} was explained.")
    exercise = Exercise("ch99.two", points=2)
    for expected in (2, 3):
        with exercise.part(f"{expected}", points=1):
            check(abs).on(-2).returns(expected)
    assert exercise.score() == 1.0
    assert called == [abs, abs] and "ch99.two was explained." in capsys.readouterr().out


def test_what_a_grader_does_not_name_is_plain_again():
    checks.grader.set(explain=lambda exercise: "a sentence", quiet=("grader.py",))
    checks.grader.set(quiet=("other.py",))
    assert checks.grader == checks.Grader(quiet=("other.py",))
    checks.grader.set()
    assert checks.grader == checks.Grader()


def test_a_grader_has_nothing_else():
    with pytest.raises(TypeError, match="explains"):
        checks.grader.set(explains=lambda exercise: None)
    assert checks.grader == checks.Grader()
