"""The author's exam of the tests finds every hole that it promises to find."""

import pytest
from nbformat.v4 import new_code_cell

from autograder.authoring.check import Trial, check_chapter
from autograder.errors import CourseError


@pytest.fixture(autouse=True)
def stay(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def look(make, cells, answers):
    """look(change, old, new): the misses after a change of the cells or a replacement in answers.py."""

    def look(change=lambda cells: None, old="", new="", seeds=(1,)) -> list[str]:
        change(cells)
        assert old in answers
        results = check_chapter(make(cells=cells, answers=answers.replace(old, new, 1) if old else answers), seeds)
        return [miss for result in results for miss in result.misses]

    return look


def test_a_sound_chapter_has_no_misses(toy):
    double, three, letter = check_chapter(toy)
    assert [r.misses for r in (double, three, letter)] == [[], [], []]
    assert (double.right, double.wrong, double.named) == (2, 4, 4)
    assert (three.right, three.wrong, three.named) == (1, 2, 2)
    assert double.points == {"the solution": 3.0, "adds": 3.0, "squares": 1.0, "same": 1.0, "four": 1.0, "in_place": 2.0}


def in_test(old, new, index=5):
    def change(cells):
        assert old in cells[index].source
        cells[index].source = cells[index].source.replace(old, new)

    return change


@pytest.mark.parametrize(
    ("change", "miss"),
    [
        (
            in_test("double).on(case.normal(case.integer(1, 5)))", "double).on(torch.tensor([2.0]))"),
            "wrong answer squares is accepted",
        ),
        (
            in_test("agrees_with(lambda secret_name: secret_name + secret_name)", "agrees_with(lambda x: 3 * x)"),
            "the solution gets 1 of 3 points",
        ),
        (
            in_test("returns([4.0]", "returns([5.0]"),
            "the solution gets 1.5 of 3 points (seed 1): ch99.double: 1.5 of 3 points, since a test that you can see failed. - the example",
        ),
        (in_test("\nexercise.score()", ""), "the test cell must end with exercise.score()"),
        (in_test("### BEGIN HIDDEN TESTS\n", ""), "no hidden tests"),
        (in_test(", points=2", ""), "the solution gets 0"),
        (in_test('see="doubling"', 'see="tripling"'), "see='tripling' in the test cell is no section of the chapter"),
        (in_test("    return 2 * x", "    raise ValueError", 4), "the solution gets 0 of 3 points"),
        (in_test("    check(three=three).is_number()", "    pass", 8), None),
        (in_test('    check(three=three).equals(3, see="doubling")', "    pass", 8), "the empty stub gets 0.5 points"),
    ],
)
def test_a_hole_in_the_tests_is_found(look, change, miss):
    misses = look(change)
    assert any(miss in found for found in misses) if miss else misses == []


@pytest.mark.parametrize("value", ["True", "False", "None", "0"])
def test_a_function_that_ignores_the_question_earns_nothing(look, value):
    misses = look(in_test('.satisfies(torch.is_tensor, "a tensor comes back")', ""))
    assert any(f"functions that always return {value} get 1 points" in miss for miss in misses)


def test_hidden_parts_without_points_are_found(look):
    def change(cells):
        in_test(", points=2", "")(cells)
        in_test(", points=1):\n    check(double).on(torch.tensor([3.0]))", "):\n    check(double).on(torch.tensor([3.0]))")(cells)

    assert "no hidden part gives points" in look(change)


@pytest.mark.parametrize(
    ("old", "new", "miss"),
    [
        ("return x + x", "return (x + x).double()", "right answer adds gets 1 of 3"),
        ("return x**2", "return 2 * x", "wrong answer squares is accepted"),
        ("return x * 0 + 4", "return x**2", "wrong answer four is rejected, but not named"),
        ("Nothing is doubled.", "You squared: two and two hide the difference.", "two wrong answers share a sentence"),
        ('see="doubling"', 'see="tripling"', "squares: see='tripling' is no section of the chapter"),
        ('@right("ch99.double")', '@wrong("ch99.double", "Adding is right.")', "wrong answer adds is accepted"),
        ('@right("ch99.double")', '@right("ch99.treble")', "answers.py names unknown exercises: ch99.treble"),
        ('wrong("ch99.three", 4, "That is four.")', "", "1 wrong answers; a numeric exercise needs 2"),
        ("def same(x)", "def squares(x)", "two answers are called squares"),
        (
            'wrong("ch99.three", 4, "That is four.")',
            'wrong("ch99.three", cell("four = 4"), "That is four.")',
            "answer 1 is rejected, but not named",
        ),
    ],
)
def test_a_slip_in_the_answers_is_found(look, old, new, miss):
    assert any(miss in found for found in look(old=old, new=new))


def test_a_wrong_answer_that_is_accepted_by_luck_is_found(look):
    lucky = "return x**2 if torch.initial_seed() < 0 else (2 * x if x.numel() in (1, 5) else x)"
    told = look(
        in_test("case.normal(case.integer(1, 5))", "case.normal(case.choice([4, 5]))"),
        old="return x**2",
        new=lucky,
        seeds=tuple(range(1, 30)),
    )
    assert any("wrong answer squares is accepted" in miss for miss in told)


def test_only_the_exercises_that_were_named_are_checked(toy):
    assert [result.exercise for result in check_chapter(toy, (1,), only={"ch99.three"})] == ["ch99.three"]
    with pytest.raises(CourseError, match=r"no exercise ch99\.four; there are: .*ch99\.letter"):
        check_chapter(toy, (1,), only={"ch99.four"})


def test_other_seeds_are_tried_where_hidden_inputs_are_drawn(toy, monkeypatch):
    """Of ch99.double the tests draw; of a number and a letter they do not, and another seed would give the same."""
    tried: dict[str, list[tuple[str, int]]] = {}
    grade = Trial.grade

    def noted(trial, source, seed, answers=()):
        tried.setdefault(trial.exercise.id, []).append((source, seed))
        return grade(trial, source, seed, answers)

    monkeypatch.setattr(Trial, "grade", noted)
    assert all(not result.misses for result in check_chapter(toy, (1, 2, 3)))
    assert len([seed for _, seed in tried["ch99.double"] if seed == 3]) == 1 + 5  # the solution and each answer
    assert {seed for id in ("ch99.three", "ch99.letter") for _, seed in tried[id]} == {1}


def test_a_solution_that_repeats_the_course_is_found(make, cells):
    chapter = make(cells=cells)
    (chapter.root / "course" / "doubling.py").write_text('def twice(x):\n    """Twice."""\n    return 2 * x\n')
    assert "the solution is the same code as course.doubling.twice" in check_chapter(chapter, (1,))[0].misses


def test_a_cell_that_fails_is_told_with_its_source(make, cells):
    cells.insert(3, new_code_cell("1 / 0"))
    with pytest.raises(CourseError, match="cell 3 fails: ZeroDivisionError: division by zero\n1 / 0"):
        check_chapter(make(cells=cells), (1,))


def test_a_pitfall_may_fail_and_an_experiment_is_skipped(make, cells):
    cells[3:3] = [
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}),
        new_code_cell("1 / 0", metadata={"tags": ["slow"]}),
    ]
    assert all(not result.misses for result in check_chapter(make(cells=cells), (1,)))


def test_a_cell_between_answer_and_test_runs_with_each_answer(make, cells):
    cells.insert(5, new_code_cell("double = (lambda f: lambda x: f(x))(double)"))
    assert all(not result.misses for result in check_chapter(make(cells=cells), (1,)))
