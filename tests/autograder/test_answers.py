"""answers.py: every form becomes the answer cell's source, and a mistake is named only when all of it matches."""

import pytest
import torch

from autograder.authoring.answers import load
from autograder.authoring.misconceptions import explainer, misconception
from course import checks
from course.checks import Exercise, check


@pytest.fixture
def read(tmp_path):
    """read(text): the answers of an answers.py."""

    def read(text: str):
        path = tmp_path / "answers.py"
        path.write_text("from autograder.authoring.answers import cell, right, wrong\n" + text)
        return load(path)

    return read


def source(answers, *names):
    (answer,) = answers
    return answer.source(list(names))


def test_a_function_takes_the_name_that_was_asked_for(read):
    text = source(read('@right("ch99.f")\ndef loop(n):\n    return 1 if n == 0 else n * loop(n - 1)\n'), "f")
    namespace = {}
    exec(text, namespace)
    assert namespace["f"](4) == 24 and "loop" not in text and "right" not in text


def test_other_decorators_stay(read):
    assert "@torch.no_grad()" in source(read('import torch\n@right("ch99.f")\n@torch.no_grad()\ndef g(x):\n    return x\n'), "f")


def test_a_class_takes_the_name_that_was_asked_for(read):
    text = source(
        read('@wrong("ch99.Norm", "No scale.")\nclass no_scale:\n    def forward(self):\n        return no_scale()\n'), "Norm"
    )
    assert text.startswith("class Norm:") and "no_scale" not in text


def test_a_class_can_hold_several_functions(read):
    text = source(
        read(
            '@wrong("ch99.codec", "…")\nclass bad:\n    def encode(t):\n        return t\n    def decode(t):\n        return t\n'
        ),
        "encode",
        "decode",
    )
    namespace = {}
    exec(text, namespace)
    assert {"encode", "decode"} <= namespace.keys() and "bad" not in namespace


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ('wrong("ch99.x", 0.5, "…")', ["x"], "x = 0.5"),
        ('wrong("ch99.x", [1, "a"], "…")', ["x"], "x = [1, 'a']"),
        ('wrong("ch99.x", {"a": 1}, "…")', ["x"], "x = {'a': 1}"),
        ('wrong("ch99.x", {"a": 1, "b": 2}, "…")', ["a", "b"], "a = 1\nb = 2"),
        ('wrong("ch99.x", cell("""\n    a = 1\n    b = a\n"""), "…")', ["a", "b"], "a = 1\nb = a"),
        ('right("ch99.x", 3)', ["x"], "x = 3"),
    ],
)
def test_a_value_becomes_an_assignment(read, text, names, expected):
    assert source(read(text), *names) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('wrong("ch99.x", 0.5, "…")', ["a", "b"]),
        ('wrong("ch99.x", {"a": 1}, "…")', ["a", "b"]),
        ('@right("ch99.x")\ndef f(): ...\n', ["a", "b"]),
        ('@right("ch99.x")\nclass c:\n    def a(): ...\n', ["a", "b"]),
    ],
)
def test_an_answer_that_defines_too_little_is_refused(read, text, names):
    with pytest.raises(ValueError, match=r"ch99\.x"):
        source(read(text), *names)


def test_a_wrong_answer_needs_a_sentence(read):
    with pytest.raises(TypeError, match="a sentence"):
        read('wrong("ch99.x", 3)')


def test_answers_keep_their_order_and_kind(read):
    answers = read('right("ch99.x", 1)\nwrong("ch99.x", 2, "Two.", see="twos")\n')
    assert [(a.right, a.sentence, a.see) for a in answers] == [(True, None, None), (False, "Two.", "twos")]


def test_each_file_is_read_alone(read):
    read('right("ch99.x", 1)')
    assert len(read('right("ch99.x", 2)')) == 1


# ---------------------------------------------------------------- naming the misconception

SQUARES = '@wrong("ch99.double", "You squared.", see="doubling")\ndef squares(x):\n    return x**2\n'


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(Exercise, "_current", None)
    monkeypatch.setattr(checks.grader, "explain", checks.Grader().explain)


def tried(double, inputs=(2.0, 3.0)) -> Exercise:
    exercise = Exercise("ch99.double", points=1)
    with exercise.part("doubles", points=1):
        for x in inputs:
            check(double).on(torch.tensor([x])).agrees_with(lambda x: x + x)
    return exercise


def double(x):
    raise NotImplementedError()


def named(read, answer, answers=SQUARES, namespace=None, **inputs):
    answer.__name__ = "double"
    found = misconception(tried(answer, **inputs), read(answers), namespace or {})
    return found and found.sentence


def test_the_same_outputs_name_the_mistake(read):
    assert named(read, lambda x: x * x * 1.0000001) == "You squared."


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x**2 if x.item() == 2 else x,  # agrees on one input only
        lambda x: (x**2).double(),  # another dtype
        lambda x: (x**2).tolist(),
        lambda x: x.mul_(x),  # changes its argument besides
        lambda x: x / 0 if x.item() == 2 else 1 / 0,
        double,
    ],
)
def test_other_outputs_name_nothing(read, answer):
    assert named(read, answer) is None


def test_the_first_failing_input_is_tried_too(read):
    answers = '@wrong("ch99.double", "Only for two.")\ndef four(x):\n    return x * 0 + 4\n' + SQUARES
    assert named(read, lambda x: x**2, answers) == "You squared."


def test_the_same_error_names_the_mistake(read):
    answers = '@wrong("ch99.double", "A tensor is no list.")\ndef lists(x):\n    return x.append(x)\n'
    assert named(read, lambda x: x.append(1), answers) == "A tensor is no list."
    assert named(read, lambda x: x.extend(1), answers) is None


def test_a_wrong_answer_may_use_the_notebooks_names(read):
    answers = '@wrong("ch99.double", "Helped.")\ndef helped(x):\n    return helper(x)\n'
    assert named(read, lambda x: x - 1, answers, {"helper": lambda x: x - 1}) == "Helped."
    assert named(read, lambda x: x - 1, answers, {}) is None


def test_the_notebooks_names_are_left_alone(read):
    namespace = {"double": 1}
    named(read, lambda x: x**2, namespace=namespace)
    assert namespace == {"double": 1}


@pytest.mark.parametrize(
    "broken", ["wrong('ch99.double', cell('1/0'), 'Broken.')\n", "wrong('ch99.double', cell('double = 3'), 'No function.')\n"]
)
def test_an_answer_that_cannot_run_is_passed_over(read, broken):
    assert named(read, lambda x: x**2, broken + SQUARES) == "You squared."


def test_right_answers_and_other_exercises_name_nothing(read):
    answers = SQUARES.replace("ch99.double", "ch99.other") + '@right("ch99.double")\ndef f(x):\n    return x**2\n'
    assert named(read, lambda x: x**2, answers) is None


WEAK = """
@wrong("ch99.search", "You search above one only.")
def above(x):
    return 1.0 if x < 1 else x ** 0.5


@right("ch99.search")
def root(x):
    return x ** 0.5
"""


def test_mistakes_that_were_not_told_apart_are_not_named(read):
    def search(x):
        return 1.0 if x < 1 else x**0.5

    exercise = Exercise("ch99.search", points=1)
    for _ in range(3):
        with exercise.part("below", points=0):
            check(search).on(0.2).agrees_with(lambda x: x**0.5)
    other = (
        WEAK.replace("above one only", "one thing only")
        .replace("def above", "def never")
        .replace("x ** 0.5\n\n\n@right", "2.0\n\n\n@right")
    )
    assert misconception(exercise, read(WEAK), {}).label == "above"
    assert misconception(exercise, read(WEAK + other), {}) is None  # two that end at one bound are not told apart
    for bias, said in ((1.0, "You search above one only."), (1.5, None)):

        def search(x):
            return x**0.5 + bias  # noqa: B023

        exercise = Exercise("ch99.search", points=1)
        for number in (2.0, 3.0):
            with exercise.part("above", points=0):
                check(search).on(number).agrees_with(lambda x: x**0.5)
        found = misconception(exercise, read(WEAK.replace("1.0 if x < 1 else x ** 0.5", "x ** 0.5 + 1")), {})
        assert (found and found.sentence) == said


TESTERS = """
@wrong("ch99.tester", "Only the sign is looked at.")
def sign(f):
    return f(1.0) > 0


@wrong("ch99.tester", "Anything passes.")
def anything(f):
    return True


@right("ch99.tester")
def at_points(f):
    return f(1.0) == 2.0 and f(2.0) == 4.0
"""


def test_few_verdicts_name_no_mistake(read):
    def tried(*wrong):
        def tester(f):
            return f(1.0) > 0

        exercise = Exercise("ch99.tester", points=1)
        with exercise.part("all", points=1):
            check(tester).tells_apart(right=[lambda x: 2 * x], wrong=wrong)
        found = misconception(exercise, read(TESTERS), {})
        return found and found.label

    wrong = [lambda x: x + 5, lambda x: x**2 + 3, lambda x: 7.0]
    negative = [lambda x: -x, lambda x: -1.0, lambda x: x - 9]
    assert tried(wrong[0], negative[0]) is None
    assert tried(*wrong, *negative) == "sign"


def test_where_an_answer_failed_the_others_are_compared_first(read):
    calls = []

    def tester(f):
        return f(1.0) > 0

    def planted(number, value):
        return lambda x: calls.append(number) or value * x

    exercise = Exercise("ch99.tester", points=1)
    with exercise.part("all", points=1):
        check(tester).tells_apart(
            right=[planted(0, 1), planted(1, 2)], wrong=[planted(2, 3), planted(3, 4), planted(4, 5), planted(5, -1)]
        )
    assert [probe.failed for probe in exercise.probes].count(True) == 3
    calls.clear()
    misconception(exercise, read(TESTERS), {})
    assert set(calls[:3]) == {2, 3, 4}


def test_a_value_is_named(read):
    answers = read('wrong("ch99.three", 4, "That is four.")\nwrong("ch99.three", 2, "That is two.")\n')
    for value, sentence in [(2, "That is two."), (4.0, "That is four."), (5, None), (None, None)]:
        exercise = Exercise("ch99.three", points=1)
        with exercise.part("three", points=1):
            check(three=value).equals(3)
        found = misconception(exercise, answers, {})
        assert (found and found.sentence) == sentence


def test_our_own_answers_warn_nobody(read, recwarn):
    warns = SQUARES.replace("return", "import warnings\n    warnings.warn('a line of ours')\n    return")
    assert named(read, lambda x: x * x, warns) == "You squared." and not recwarn.list


def test_a_function_that_is_not_there_is_not_a_mistake(read):
    answers = read(
        '@wrong("ch99.codec", "The second is wrong.")\nclass bad:\n    def encode(t):\n        return t\n    def decode(t):\n        return 0\n'
    )
    exercise = Exercise("ch99.codec", points=1)
    with exercise.part("both", points=1):
        check(lambda t: t).on(1).returns(1)
        check(decode).on(1).returns(1)  # noqa: F821
    exercise.probes[0].name = "encode"
    assert misconception(exercise, answers, {}) is None


def test_the_sentence_reaches_the_student_with_its_link(read, monkeypatch):
    monkeypatch.setattr(checks.grader, "explain", explainer(read(SQUARES), {}))

    def double(x):
        return x**2

    with pytest.raises(checks.CheckFailed, match=r"this mistake: You squared\. Read: Doubling \(#doubling\)\."):
        tried(double).score()
