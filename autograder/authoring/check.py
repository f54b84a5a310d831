"""Do the tests of a chapter accept every right and reject every wrong answer?

The notebook is run once; at each exercise the solution, the empty stub and every answer of
`answers.py` are put into the answer cell in turn, and the test cell is graded as nbgrader grades it.
"""

import ast
import contextlib
import os
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from nbformat import NotebookNode

from autograder.authoring.answers import Answer, load
from autograder.authoring.chapters import FORMS, Chapter, Exercise, regions, tags
from autograder.authoring.misconceptions import explainer
from autograder.authoring.scoring import score
from autograder.errors import CourseError

SEEDS = (1, 2, 3)
CONSTANTS = "True", "False", "None", "0"  # what ignores the question earns nothing


@dataclass
class Result:
    """What the check of one exercise found."""

    exercise: str
    right: int = 0
    wrong: int = 0
    named: int = 0
    seconds: float = 0.0
    misses: list[str] = field(default_factory=list)
    points: dict[str, float] = field(default_factory=dict)  # of each answer by label, with the first seed


def check_chapter(chapter: Chapter, seeds: tuple[int, ...] = SEEDS, only: Collection[str] = ()) -> list[Result]:
    """Check the machine-graded exercises of a chapter, with hidden inputs drawn from each of `seeds`.

    Args:
        only: ids of the exercises to check; all without one.

    Raises:
        CourseError: if a cell of the notebook fails, or the chapter has no exercise of `only`.
    """
    answers = load(chapter.answers) if chapter.answers.exists() else []
    known = {exercise.id for exercise in chapter.exercises}
    if strange := sorted(set(only) - known):
        raise CourseError(f"no exercise {', '.join(strange)}; there are: {', '.join(sorted(known))}")
    results = [_check_exercise(trial, answers, seeds) for trial in trials(chapter) if not only or trial.exercise.id in only]
    strays = sorted({a.exercise for a in answers} - known)
    if strays and results:
        results[0].misses.append(f"answers.py names unknown exercises: {', '.join(strays)}")
    return results


def trials(chapter: Chapter) -> Iterator["Trial"]:
    """Run the notebook once, and stop at each machine-graded exercise to try answers there.

    Raises:
        CourseError: if a cell of the notebook fails.
    """
    import matplotlib
    import torch

    from autograder.wire.shell import make_shell

    torch.set_num_threads(1)
    matplotlib.use("agg")
    by_answer = {exercise.answer: exercise for exercise in chapter.exercises}
    shell, tested = make_shell(), set()
    shell.InteractiveTB.set_mode("Minimal")  # the lines around an error are read by nobody here
    with contextlib.chdir(chapter.path.parent):
        for i, cell in enumerate(chapter.notebook.cells):
            if cell.cell_type != "code" or {"slow", "widget"} & set(tags(cell)) or i in tested:
                continue
            exercise = by_answer.get(i)
            if exercise is not None and not exercise.by_hand:
                tested.add(exercise.test)
                trial = Trial(chapter, exercise, shell)
                yield trial
                trial.close()
                continue
            outputs = shell.run(cell.source)
            error = next((o for o in outputs if o.output_type == "error"), None)
            if error is not None and "raises-exception" not in tags(cell):
                raise CourseError(f"{chapter.stem}: cell {i} fails: {error.ename}: {error.evalue}\n{cell.source}")


class Trial:
    """A place where answers of one exercise are tried: the notebook has run to its answer cell."""

    def __init__(self, chapter: Chapter, exercise: Exercise, shell):
        self.chapter, self.exercise, self.shell = chapter, exercise, shell
        self.cells = chapter.notebook.cells
        self.before = dict(shell.user_ns)
        shell.prepare(self.cells[exercise.test].source)

    def grade(self, source: str, seed: int, answers: list[Answer] = ()) -> tuple[float, str]:
        """The points of `source` as the answer cell, and what the test cell says; a mistake of `answers` is named."""
        from course import checks

        cells, exercise, test = self.cells, self.exercise, self.cells[self.exercise.test]
        self._reset()
        checks.grader.set(explain=explainer(answers, self.before))
        os.environ[checks.SEED_VARIABLE] = str(seed)
        for between in cells[exercise.answer + 1 : exercise.test]:
            if between.cell_type == "code" and "slow" not in tags(between):
                source += "\n" + between.source
        if source not in self.shell.prepared:  # by another seed
            self.shell.prepare(source)
        self.shell.run(source)
        graded = NotebookNode(test, outputs=self.shell.run(test.source), execution_count=1)
        return score(graded), _said(graded)

    def complete(self, points: float) -> bool:
        """Whether the answer that was graded last has full points and passed every part, those worth nothing too."""
        parts = getattr(self.shell.user_ns.get("exercise"), "parts", [])
        return points == self.exercise.points and not any(text for *_, text in parts)

    def drew(self) -> bool:
        """Whether the tests of the answer that was graded last drew hidden inputs; if not, every seed gives the same."""
        return getattr(self.shell.user_ns.get("exercise"), "draws", 1) > 0

    def close(self) -> None:
        """Go on with the solution."""
        from course import checks

        self._reset()
        checks.grader.set()
        self.shell.run(self.cells[self.exercise.answer].source)

    def _reset(self) -> None:
        self.shell.user_ns.clear()
        self.shell.user_ns.update(self.before)


def _check_exercise(trial: Trial, answers: list[Answer], seeds) -> Result:
    chapter, exercise = trial.chapter, trial.exercise
    start, result = time.perf_counter(), Result(exercise.id)
    mine = [a for a in answers if a.exercise == exercise.id]
    cells = chapter.notebook.cells
    names = chapter.asked(exercise)
    result.misses += _lint(chapter, exercise, mine, names)
    for seed in seeds:
        points, said = trial.grade(cells[exercise.answer].source, seed, mine)
        result.points.setdefault("the solution", points)
        if not trial.complete(points):
            result.misses.append(f"the solution gets {points:g} of {exercise.points:g} points (seed {seed}): {said}")
        if not trial.drew():
            break
    points, said = trial.grade(stub(cells[exercise.answer]), seeds[0], mine)
    if points != 0:
        result.misses.append(f"the empty stub gets {points:g} points: {said}")
    for value in CONSTANTS if _functions(cells[exercise.answer].source) else ():
        constant = "\n".join(f"{name} = lambda *args, **kwargs: {value}" for name in names)
        points, said = trial.grade(constant, seeds[0], mine)
        if points != 0:
            result.misses.append(f"functions that always return {value} get {points:g} points: {said}")
    for answer in mine:
        try:
            source = answer.source(names)
        except ValueError as error:
            result.misses.append(str(error))
            continue
        rejected, named = True, True
        for seed in seeds:
            points, said = trial.grade(source, seed, mine)
            result.points.setdefault(answer.label, points)
            if answer.right and not trial.complete(points):
                result.misses.append(f"right answer {answer.label} gets {points:g} of {exercise.points:g} (seed {seed}): {said}")
                rejected = False
            elif not answer.right and points >= exercise.points:
                result.misses.append(f"wrong answer {answer.label} is accepted (seed {seed})")
                rejected = False
            elif not answer.right and not _named(exercise, answer, said):
                result.misses.append(f"wrong answer {answer.label} is rejected, but not named (seed {seed}): {said}")
                named = False
            if not trial.drew():
                break
        result.right += answer.right and rejected
        result.wrong += not answer.right and rejected
        result.named += not answer.right and rejected and named
    result.right += not any("the solution" in miss for miss in result.misses)
    result.seconds = time.perf_counter() - start
    return result


def _named(exercise: Exercise, answer: Answer, said: str) -> bool:
    """Whether the sentence of a wrong answer was said, or, of a tester, what got past it: few verdicts tell no mistake."""
    got_past = exercise.form == "property" and re.search(
        "it (let pass|refused) what is (wrong|right): |was expected, .* came: ", said
    )
    return " ".join(answer.sentence.split()) in said or bool(got_past)


def _said(cell: NotebookNode) -> str:
    parts = [o.get("text", "") if o.output_type == "stream" else o.get("evalue", "") for o in cell.outputs]
    return " ".join("".join(parts).split())


def stub(cell: NotebookNode) -> str:
    """What the student finds in an answer cell."""
    from autograder.authoring.preprocessors import ClearSolutions

    blank = NotebookNode(cell, metadata=NotebookNode(cell.metadata))
    return ClearSolutions().preprocess_cell(blank, {"language": "python"}, 0)[0].source


def _lint(chapter: Chapter, exercise: Exercise, answers: list[Answer], names: list[str]) -> list[str]:
    misses, test = [], chapter.notebook.cells[exercise.test].source
    if not names:
        misses.append("the test cell uses no name that the answer cell defines")
    if not test.rstrip().endswith("exercise.score()"):
        misses.append("the test cell must end with exercise.score()")
    hidden = regions(test, "HIDDEN TESTS")
    if hidden and not re.search(r"points\s*=", "".join(hidden)):
        misses.append("no hidden part gives points")
    form = FORMS[exercise.form]
    if form.hidden and not hidden:
        misses.append("no hidden tests")
    wrong = sum(not a.right for a in answers)
    if wrong < form.wrong:
        misses.append(f"{wrong} wrong answers; a {exercise.form} exercise needs {form.wrong}")
    if form.right and not any(a.right for a in answers):
        misses.append("no other right answer in answers.py")
    for answer in answers:
        if answer.see and answer.see not in chapter.sections:
            misses.append(f"{answer.label}: see={answer.see!r} is no section of the chapter")
    sentences = [" ".join(a.sentence.split()) for a in answers if not a.right]
    if len(set(sentences)) < len(sentences):
        misses.append("two wrong answers share a sentence")
    labels = [a.label for a in answers]
    misses += [f"two answers are called {label}" for label in sorted(set(labels)) if labels.count(label) > 1]
    for node in ast.walk(ast.parse(test)):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "see"
            and isinstance(node.value, ast.Constant)
            and node.value.value not in chapter.sections
        ):
            misses.append(f"see={node.value.value!r} in the test cell is no section of the chapter")
    misses += [f"the solution is the same code as course.{module}.{name}" for module, name in copies(chapter, exercise)]
    return misses


def copies(chapter: Chapter, exercise: Exercise) -> list[tuple[str, str]]:
    """The functions of `course` that the solution repeats, but for names of the function and its docstring."""
    theirs = {}
    for path in sorted((chapter.root / "course").glob("*.py")):
        theirs |= {shape: (path.stem, name) for name, shape in _functions(path.read_text())}
    mine = _functions(chapter.notebook.cells[exercise.answer].source)
    return [theirs[shape] for _, shape in mine if shape in theirs]


@lru_cache(256)
def _functions(source: str) -> list[tuple[str, str]]:
    """The functions of a module, and what they do: their bodies without docstrings."""
    found = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    bodies = [function.body[1:] if ast.get_docstring(function) else function.body for function in found]
    return [
        (function.name, ast.dump(ast.Module(body=body, type_ignores=[]))) for function, body in zip(found, bodies, strict=True)
    ]
