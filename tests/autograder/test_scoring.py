"""From outputs to points: what is fair, what nbgrader's rule says, and that the guard makes nbgrader fair."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import v4
from nbgrader.utils import determine_grade

from autograder.authoring.scoring import points, score
from autograder.grading.preprocessors import FailClosed


def cell(*outputs, source="exercise.score()", ran=True):
    given = {
        "grade": True,
        "grade_id": "ch99-a",
        "locked": True,
        "points": 4,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    return v4.new_code_cell(source, metadata={"nbgrader": given}, outputs=list(outputs), execution_count=1 if ran else None)


def result(text):
    return v4.new_output("execute_result", {"text/plain": text})


PRINTED = v4.new_output("stream", name="stdout", text="4.0")
WARNED = v4.new_output("stream", name="stderr", text="a warning")
ERROR = v4.new_output("error", ename="CheckFailed", evalue="no", traceback=["no"])
NUMBERS = [
    ([result("3.0")], 3.0),
    ([result("4")], 4.0),
    ([result("0.0")], 0.0),
    ([result("5.0")], 4.0),
    ([result("-1.0")], 0.0),
    ([result("nan")], 0.0),
    ([result("inf")], 0.0),
    ([result("1e-1")], 0.1),
    ([result("np.float64(0.25)")], 0.25),
    ([result("np.int64(3)")], 3.0),
    ([result("np.float64(nan)")], 0.0),
    ([result("tensor(4.)")], 4.0),
    ([result("tensor(0.5000, dtype=torch.float64)")], 0.5),
    ([result("tensor([2.])")], 2.0),
    ([result("array(0.25, dtype=float32)")], 0.25),
    ([PRINTED, result("2.5")], 2.5),
    ([result("4.0"), result("1.0")], 1.0),
    ([ERROR], 0.0),
    ([result("4.0"), ERROR], 0.0),
    ([ERROR, result("4.0")], 0.0),
]
SILENT = [  # a test that ends in exercise.score() owes a number
    [],
    [PRINTED],
    [result("True")],
    [result("False")],
    [result("'4.0'")],
    [result("tensor([1., 2.])")],
    [v4.new_output("display_data", {"text/plain": "4.0"})],
    [v4.new_output("execute_result", {"text/html": "4.0"})],
]


@pytest.mark.parametrize(("outputs", "earned"), [*NUMBERS, *((outputs, 0.0) for outputs in SILENT)], ids=str)
def test_a_test_that_ends_in_a_score(outputs, earned):
    assert score(cell(*outputs)) == earned


@pytest.mark.parametrize(
    ("outputs", "earned"),
    [*NUMBERS, *((outputs, 0.0 if "'False'" in str(outputs) else 4.0) for outputs in SILENT)],
    ids=str,
)
def test_plain_asserts(outputs, earned):
    """Asserts that all hold say nothing, and a last expression need not be a score."""
    assert score(cell(*outputs, source="assert f(1) == 1")) == earned


@pytest.mark.parametrize("source", ["exercise.score()", "assert f(1) == 1"])
@pytest.mark.parametrize("outputs", [[], [PRINTED], [result("4.0")]], ids=str)
def test_a_cell_that_did_not_run_earns_nothing(source, outputs):
    assert score(cell(*outputs, source=source, ran=False)) == 0


@pytest.mark.parametrize(("outputs", "earned"), [*NUMBERS, *((outputs, 0.0) for outputs in SILENT)], ids=str)
def test_nbgrader_agrees_after_fail_closed(outputs, earned):
    guarded, _ = FailClosed().preprocess_cell(cell(*copy.deepcopy(outputs)), {}, 0)
    assert determine_grade(guarded)[0] == earned


@given(st.text(max_size=20) | st.floats().map(repr) | st.floats().map(lambda x: f"np.float64({x!r})"))
def test_no_result_is_worth_more_than_the_cell(text):
    assert 0 <= score(cell(result(text))) <= 4


@pytest.mark.parametrize(("outputs", "_"), NUMBERS, ids=str)
@pytest.mark.parametrize("stream", [[], [WARNED]])
def test_compat_is_nbgraders_rule(outputs, _, stream):
    ran = cell(*stream, *outputs)
    try:
        expected = determine_grade(ran)[0]
    except ValueError:
        expected = None
    assert points(ran, "compat") == expected


def test_compat_where_nbgrader_is_known_to_be_odd():
    assert points(cell(), "compat") == 4 and points(cell(result("np.float64(0.25)")), "compat") == 4
    assert points(cell(WARNED, result("4.0")), "compat") == 0 and points(cell(result("9.0")), "compat") is None


def test_a_warning_costs_nothing():
    assert score(cell(WARNED, result("4.0"))) == 4.0
