"""From outputs to points, fail closed; and nbgrader's own rule comes to the same after our guard."""

import copy

import pytest
from nbformat import v4
from nbgrader.utils import determine_grade

from autograder.preprocessors import FailClosed, HideTests
from autograder.scoring import score


def cell(*outputs):
    given = {
        "grade": True,
        "grade_id": "ch99-a",
        "locked": True,
        "points": 4,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    return v4.new_code_cell("exercise.score()", metadata={"nbgrader": given}, outputs=list(outputs))


def result(text):
    return v4.new_output("execute_result", {"text/plain": text})


PRINTED = v4.new_output("stream", name="stdout", text="4.0")
WARNED = v4.new_output("stream", name="stderr", text="a warning")
ERROR = v4.new_output("error", ename="CheckFailed", evalue="no", traceback=["no"])
CASES = [
    ([result("3.0")], 3.0),
    ([result("4")], 4.0),
    ([result("0.0")], 0.0),
    ([result("5.0")], 4.0),
    ([result("-1.0")], 0.0),
    ([result("nan")], 0.0),
    ([result("inf")], 0.0),
    ([result("np.float64(0.25)")], 0.0),
    ([result("tensor(4.)")], 0.0),
    ([result("True")], 0.0),
    ([result("False")], 0.0),
    ([result("'4.0'")], 0.0),
    ([], 0.0),
    ([PRINTED], 0.0),
    ([PRINTED, result("2.5")], 2.5),
    ([ERROR], 0.0),
    ([result("4.0"), ERROR], 0.0),
    ([ERROR, result("4.0")], 0.0),
    ([result("4.0"), result("1.0")], 1.0),
    ([v4.new_output("display_data", {"text/plain": "4.0"})], 0.0),
    ([v4.new_output("execute_result", {"text/html": "4.0"})], 0.0),
]


@pytest.mark.parametrize(("outputs", "points"), CASES, ids=str)
def test_score(outputs, points):
    assert score(cell(*outputs)) == points


@pytest.mark.parametrize(("outputs", "points"), CASES, ids=str)
def test_nbgrader_agrees_after_fail_closed(outputs, points):
    guarded, _ = FailClosed().preprocess_cell(cell(*copy.deepcopy(outputs)), {}, 0)
    assert determine_grade(guarded)[0] == points


def test_a_warning_costs_nothing():
    assert score(cell(WARNED, result("4.0"))) == 4.0


def test_feedback_shows_no_line_of_a_hidden_test():
    error = v4.new_output(
        "error", ename="ValueError", evalue="bad", traceback=["----> 3 secret = reference(x)", "ValueError: bad"]
    )
    shown = cell(error, ERROR)
    shown.source = "a\n### BEGIN HIDDEN TESTS\nsecret = reference(x)\n### END HIDDEN TESTS\nb"
    shown, _ = HideTests().preprocess_cell(shown, {}, 0)
    assert "secret" not in str(shown) and shown.outputs[1].traceback == ["no"]
