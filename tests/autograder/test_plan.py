"""Cells that seed are run where something that runs may draw, and only there."""

import pytest
from nbformat.v4 import new_code_cell

from autograder.authoring.release import release
from autograder.trusted import plan
from autograder.trusted.plan import Cell
from autograder.wire.kinds import randomness
from autograder.wire.shell import make_shell
from tests.autograder.conftest import RIGHT, HandIn

SETUP = """import math
import random
import numpy as np
import sympy
import torch
from torch import nn
from course.attention import attention
from course.device import setup
setup(seed=0)
np.set_printoptions(precision=3)"""
TRAINING = "torch.manual_seed(3)\nmodel = torch.nn.Linear(2, 2)"
TEST = 'exercise = Exercise("ch99.answer", points=1)\nexercise.score()'

QUIET = [
    "answer = None\nanswer = round(math.sqrt(3) / 2, 1)",
    "x, y = sympy.symbols('x y')\nanswer = sympy.exp(x) * y",
    "answer = [a + b for a, b in zip([1, 2], [3, 4])]\nprint(answer, max(answer))",
    "def answer(n: torch.Tensor, p=0.5) -> torch.Tensor:\n    return torch.rand(n) < p",
    "class Answer(nn.Module):\n    width = 3\n    def __init__(self):\n        self.w = torch.randn(3)",
    "import torch.nn.functional as F\nfrom collections import Counter",
    "for i in range(3):\n    if i:\n        answer = 'abc'.upper()",
]
MAY_DRAW = [
    "answer = torch.rand(3)",
    "answer = nn.Linear(2, 2)",
    "answer = np.random.rand()",
    "answer = random.random()",
    "draw = torch.rand\nanswer = draw(3)",
    "answer = list(map(torch.rand, [1]))",
    "def f():\n    return torch.rand(3)\nanswer = f()",
    "def f():\n    return torch.rand(3)\nanswer = [g() for g in [f]]",
    "answer = (lambda: torch.rand(1))()",
    "def f(x=torch.rand(1)):\n    return x",
    "def f(x: torch.rand(1)):\n    return x",
    "def f(g):\n    return torch.rand(1)\n@f\ndef g():\n    pass",
    "class A:\n    x = torch.rand(1)",
    "class A:\n    def __init_subclass__(cls):\n        torch.rand(1)\nclass B(A):\n    pass",
    "class A(type):\n    def __new__(*args):\n        torch.rand(1)\nclass B(metaclass=A):\n    pass",
    "class A:\n    def __add__(self, other):\n        return torch.rand(1)\nanswer = A() + 1",
    "answer = eval('torch.rand(1)')",
    "answer = __import__('torch').rand(1)",
    "answer = attention(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))",
    "from torch import *\nanswer = rand(1)",
    "import helper",
    "print = torch.rand\nanswer = print(1)",
    "math.sqrt = torch.rand\nanswer = math.sqrt(1)",
    "answer = sympy.randMatrix(2)",
    "!python -c ''",
]


def cells(answer: str, *more: str) -> list[Cell]:
    kinds = [
        (SETUP, "source"),
        (TRAINING, "source"),
        (answer, "student"),
        *((source, "source") for source in more),
        (TEST, "test"),
    ]
    return [Cell(index, source, kind) for index, (source, kind) in enumerate(kinds)]


@pytest.mark.parametrize("source", QUIET)
def test_nothing_is_seeded_for_cells_that_draw_nothing(source):
    assert plan.student_side(cells(source)) == plan.tests_side(cells(source), {}) == {0}


@pytest.mark.parametrize("source", QUIET)
def test_such_a_cell_draws_nothing_indeed(source):
    shell = make_shell()
    shell.run(SETUP)
    before = randomness()
    assert not any(output.output_type == "error" for output in shell.run(source))
    assert randomness() == before


@pytest.mark.parametrize("source", MAY_DRAW)
def test_all_is_seeded_as_in_the_notebook_where_a_cell_may_draw(source):
    assert plan.student_side(cells(source)) == {0, 1}


def test_a_cell_of_the_source_that_draws_is_seeded_on_both_sides():
    drawing = "noise = torch.randn(3)"
    given = cells("answer = 3", drawing)
    given[-1].source = 'exercise = Exercise("ch99.answer", points=1)\ncheck(f).on(noise)'
    assert plan.tests_side(given, {}) == {0, 1, 3} and plan.student_side(given) == {0}
    given = cells("answer = 3", drawing)
    given.append(Cell(9, "def f():\n    return noise", "student"))
    assert plan.student_side(given) == {0, 1, 3}


def test_what_a_wrong_answer_needs_is_run_only_if_it_stands_before_its_test():
    kinds = [(SETUP, "source"), ("t = 1", "source"), ("t = 2", "source"), (TEST, "test"), ("t = torch.zeros(9**6)", "source")]
    given = [Cell(index, source, kind, "ch99-answer" if kind == "test" else None) for index, (source, kind) in enumerate(kinds)]
    assert plan.tests_side(given, {}) == {0}
    assert plan.tests_side(given, {"ch99-answer": {"t"}}) == {0, 2}
    assert plan.tests_side(given, {"ch99-other": {"t"}}) == {0}


def test_tests_without_an_exercise_are_seeded_as_in_the_notebook():
    given = cells("answer = 3")
    given[-1].source = "assert torch.rand(1) > 0"
    assert plan.tests_side(given, {}) == {0, 1}


def test_what_a_student_draws_has_the_seed_of_the_source(make, cells, full):
    """Half of the points hang on a number that is drawn after a cell of the source has set the seed."""
    test = next(cell for cell in cells if "check(three=three).equals(3" in cell.source)
    test.source = test.source.replace("equals(3, see", "equals(round(float(expected), 4), atol=1e-3, see").replace(
        "exercise = ", "torch.manual_seed(7)\nexpected = torch.rand(2)[1]\nexercise = "
    )
    cells.insert(6, new_code_cell("torch.manual_seed(7)\nfirst = torch.rand(1)"))
    chapter = make(cells=cells)
    release(chapter)
    student = HandIn(chapter).answer(**RIGHT)
    assert student.answer(three="three = round(torch.rand(1).item(), 4)").run() == full
    assert student.answer(three="three = 3.0").run() == {**full, "three": 0.0}


def test_what_a_cell_with_a_magic_needs_is_known():
    plain, magic = plan.uses("def f(x): return g(x)"), plan.uses("!ls\n%matplotlib inline\ndef f(x): return g(x)")
    assert magic.plain and magic.binds == plain.binds and magic.reads == plain.reads | {"get_ipython"}
    assert plan.uses("%%time\ndef f(x): return g(x)") == plain
    assert plan.student_side(cells("%timeit f(model)")) == {0, 1}  # no syntax tree shows the names in its line
