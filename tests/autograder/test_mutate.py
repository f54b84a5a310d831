"""Small faults of a solution are told where no test notices them and `answers.py` has no reason."""

import pytest

from autograder.authoring.answers import equivalent
from autograder.authoring.check import trials
from autograder.authoring.mutate import change, mutants, mutate_chapter
from tests.autograder.test_cli import call

SLOW = "def double(x):\n    ### BEGIN SOLUTION\n    while x.numel() > 7:\n        x = x\n    return 2 * x\n    ### END SOLUTION"


@pytest.fixture(autouse=True)
def stay(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("source", "among"),
    [
        ("y = a + b", {"y = a - b", "y = a", "y = b"}),
        ("y = a @ b", {"y = a"}),
        ("y = a < b", {"y = a <= b"}),
        ("y = a and b", {"y = a or b"}),
        ("y = 3", {"y = 4", "y = 2", "y = -3", "y = 6"}),
        ("y = True", {"y = False"}),
        ("y = x.sum(-1)", {"y = x.sum(1)", "y = x.sum(-2)", "y = x.sum(-0)", "y = -1"}),
        ("f(-a, b * c)", {"f(a, b * c)", "f(-a, b)", "f(-a, c)", "f(-a, b / c)", "f(-a)"}),
        ("y = f(a, k=b)", {"y = f(a)", "y = a"}),
        ("y = x.clone()", {"y = x"}),
        ("if a:\n    y = b", {"if False:\n    y = b"}),
        ('def f(x):\n    """Text."""\n    x = g\n    return x', {'def f(x):\n    """Text."""\n    return x'}),
        ("for x in y:\n    a\n    b", {"for x in y:\n    a", "for x in y:\n    b"}),
    ],
)
def test_what_is_changed(source, among):
    made = mutants(source)
    assert among == set(made) and source not in made and made == sorted(made)


def test_a_change_is_told_in_one_line():
    assert change("a = 1\nb = 2", "a = 1\nb = 3") == "`b = 3`"
    assert change("a = 1\nb = 2", "a = 1") == "without `b = 2`"


def test_a_sound_chapter_has_no_survivor(toy):
    results = list(mutate_chapter(toy))
    assert [(r.exercise, r.survivors, r.misses) for r in results] == [
        ("ch99.double", [], []),
        ("ch99.three", [], []),
        ("ch99.letter", [], []),
    ]
    assert [r.tried for r in results] == [7, 13, 5]


def weak(make, cells, reasons=""):
    """A chapter whose tests of `double` do not look at a promise of it."""
    cells[4].source = cells[4].source.replace("return 2 * x\n", "return 2 * x if x.numel() < 7 else None\n")
    answers = "from autograder.authoring.answers import equivalent\n" + reasons
    return make(cells=cells, answers=answers)


def test_a_hole_in_the_tests_is_found_and_a_reason_accepted(make, cells):
    ours = {"`return 2 * x if x.numel() < 8 else None`", "`return 2 * x if x.numel() <= 7 else None`"}
    (found, *_) = mutate_chapter(weak(make, cells))
    assert ours < set(found.survivors) and not found.accepted and not found.misses
    reasons = 'equivalent("ch99.double", "`return 2 * x if x.numel() …`", "no test is so long")'
    (found, *_) = mutate_chapter(weak(make, cells, reasons))
    assert not found.survivors and not found.misses and ours < {told for told, _ in found.accepted}
    assert {reason for _, reason in found.accepted} == {"no test is so long"}


@pytest.mark.parametrize(
    ("told", "miss"),
    [("`return 5 * x`", "which is no change of the solution"), ("`return 3 * x…`", "but the tests tell it from the solution")],
)
def test_a_reason_that_does_not_fit_is_told(make, cells, told, miss):
    (found, *_) = mutate_chapter(weak(make, cells, f'equivalent("ch99.double", "{told}", "a slip")'))
    assert len(found.misses) == 1 and miss in found.misses[0]


def test_a_reason_is_a_sentence():
    with pytest.raises(ValueError, match="say why"):
        equivalent("ch99.double", "`return x`", " ")


def test_a_solution_that_its_own_tests_refuse_is_told(make, cells):
    cells[4].source = cells[4].source.replace("2 * x", "3 * x")
    (found, *_) = mutate_chapter(make(cells=cells))
    assert found.misses == ["the solution itself does not pass its tests with this seed"] and not found.tried


def test_a_mutant_that_never_ends_is_noticed(make, cells, monkeypatch):
    monkeypatch.setattr("autograder.authoring.mutate.SECONDS", 1)
    cells[4].source = SLOW
    (found, *_) = mutate_chapter(make(cells=cells), jobs=2)
    assert "`while x.numel() >= 7:`" in found.survivors
    assert "`while x.numel() > -7:`" not in found.survivors and "`while x:`" not in found.survivors


def test_a_mutant_leaves_nothing(toy):
    trial = next(trials(toy))
    before = dict(trial.shell.user_ns)
    list(mutate_chapter(toy, most=1))
    assert trial.before == before


def test_the_draw_is_the_seeds(make, cells):
    chapter = weak(make, cells)
    first, again, other = ([r.survivors for r in mutate_chapter(chapter, most=4, seed=seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_the_command(make, cells):
    chapter = weak(make, cells)
    done = call("mutate", "--root", chapter.root, "--jobs", 1)
    assert done.exit_code == 1 and "survives: `return 2 * x if x.numel() < 8 else None`" in done.output
    assert "ch99.three: 13 of 13 noticed" in done.output
    cells[4].source = cells[4].source.replace(" if x.numel() < 7 else None", "")
    make(cells=cells)
    done = call("mutate", "ch99", "--root", chapter.root, "--jobs", 1)
    assert done.exit_code == 0 and "25 changes tried, 0 equivalent with a reason, 0 misses" in done.output
