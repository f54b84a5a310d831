"""Do the tests of a chapter notice small faults in its own solutions?

Each solution is changed in one small place at a time (an operator, a number, an argument, a statement that is left out), and the
changed solution, a mutant, is graded as `autograder check` grades an answer. A mutant that has full points with every part passed
survives: a hole in the tests, or a change that makes no difference, which `answers.py` then says with its reason.
"""

import ast
import difflib
import os
import random
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

from autograder.authoring.answers import Equivalent, load_equivalents
from autograder.authoring.chapters import FORMS, Chapter
from autograder.authoring.check import Trial, trials

SECONDS = 20  # of processor time for one mutant; one that takes longer would be stopped while grading, too
SURVIVES = 3  # the exit code of a process in which a mutant survived
SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass
class Result:
    """What became of the mutants of one solution."""

    exercise: str
    tried: int = 0
    survivors: list[str] = field(default_factory=list)  # the changes that no test noticed, without those with a reason
    accepted: list[tuple[str, str]] = field(default_factory=list)  # a change that no test noticed, and the author's reason
    misses: list[str] = field(default_factory=list)  # what is wrong with the solution or with a reason


def mutate_chapter(chapter: Chapter, most: int | None = None, seed: int = 0, jobs: int = 1) -> Iterator[Result]:
    """Try mutants of each machine-graded exercise's solution.

    Args:
        most: so many mutants of a solution, drawn by `seed`; all without it.
        seed: draws the mutants and the hidden inputs.
        jobs: how many processes at once.
    """
    known = load_equivalents(chapter.answers) if chapter.answers.exists() else []
    for trial in trials(chapter):
        if FORMS[trial.exercise.form].hidden:  # without, its points are for any possible answer
            yield _mutate_exercise(trial, [e for e in known if e.exercise == trial.exercise.id], most, seed, jobs)


def _mutate_exercise(trial: Trial, known: list[Equivalent], most: int | None, seed: int, jobs: int) -> Result:
    result = Result(trial.exercise.id)
    solution = ast.unparse(ast.parse(trial.cells[trial.exercise.answer].source))
    made = mutants(solution)
    possible = {change(solution, mutant) for mutant in made}
    random.Random(f"{seed}/{trial.exercise.id}").shuffle(made)
    made = made[:most]
    if not all(_survive(trial, [solution], seed, 1)):
        result.misses.append("the solution itself does not pass its tests with this seed")
        return result
    result.tried = len(made)
    alive = [change(solution, mutant) for mutant, lives in zip(made, _survive(trial, made, seed, jobs), strict=True) if lives]
    for told in alive:
        reason = next((e.reason for e in known if e.covers(told)), None)
        if reason is None:
            result.survivors.append(told)
        else:
            result.accepted.append((told, reason))
    tried = {change(solution, mutant) for mutant in made}
    for e in known:
        if not any(e.covers(told) for told in possible):
            result.misses.append(f"answers.py calls {e.change} equivalent, which is no change of the solution that is tried")
        elif any(e.covers(told) for told in tried) and not any(e.covers(told) for told in alive):
            result.misses.append(f"answers.py calls {e.change} equivalent, but the tests tell it from the solution")
    return result


def _survive(trial: Trial, sources: list[str], seed: int, jobs: int) -> list[bool]:
    """Whether each of the sources, in a process of its own, has full points with every part passed."""
    survived, running, waiting = [False] * len(sources), {}, list(enumerate(sources))
    while waiting or running:
        while waiting and len(running) < jobs:
            i, source = waiting.pop(0)
            pid = os.fork()
            if pid == 0:
                _try(trial, source, seed)
            running[pid] = i
        pid, status = os.wait()
        if pid in running:
            survived[running.pop(pid)] = os.waitstatus_to_exitcode(status) == SURVIVES
    return survived


def _try(trial: Trial, source: str, seed: int):
    """In a forked process: grade one mutant, and end."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10 * SECONDS)  # for one that sleeps
        points, _ = trial.grade(source, seed)
        os._exit(SURVIVES if trial.complete(points) else 0)
    finally:
        os._exit(1)


def change(solution: str, mutant: str) -> str:
    """What is new in a mutant's lines, or what is gone from them, in one line."""
    lines = list(difflib.ndiff(solution.splitlines(), mutant.splitlines()))
    new = [line[2:].strip() for line in lines if line.startswith("+ ")]
    gone = [line[2:].strip() for line in lines if line.startswith("- ")]
    return f"`{' | '.join(new)}`" if new else f"without `{' | '.join(gone)}`"


def mutants(source: str) -> list[str]:
    """The source changed in one place, in every way that is known here, in order and each once."""
    tree, found = ast.parse(source), set()
    whole = ast.unparse(tree)
    negated = [node.operand for node in ast.walk(tree) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)]
    for node in ast.walk(tree):
        for name, value in list(_changes(node)):
            if node in negated and isinstance(node, ast.Constant) and value < 0:
                continue  # - -1 is 1 without its sign, which is tried, too
            old = getattr(node, name)
            setattr(node, name, value)
            found.add(ast.unparse(ast.fix_missing_locations(tree)))
            setattr(node, name, old)
    return sorted(found - {whole})


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """The changes of one node: a field and its new value."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            yield "op", SWAPS[type(op)]()
        case ast.Compare(ops=[op, *others]) if type(op) in SWAPS:
            yield "ops", [SWAPS[type(op)](), *others]
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int(value) | float(value)):
            for other in (value + 1, value - 1, -value, value * 2):
                yield "value", other
        case ast.Call(args=args, keywords=keywords):
            if len(args) > 1:
                yield "args", args[:-1]
            for i in range(len(keywords)):
                yield "keywords", keywords[:i] + keywords[i + 1 :]
        case ast.FunctionDef(body=body) if len(body) > 1:
            for i, statement in enumerate(body):
                if not isinstance(statement, ast.Return | ast.FunctionDef) and not _is_text(statement):
                    yield "body", body[:i] + body[i + 1 :]
        case ast.For(body=body) | ast.While(body=body) | ast.If(body=body) | ast.With(body=body) if len(body) > 1:
            for i in range(len(body)):
                yield "body", body[:i] + body[i + 1 :]
    if isinstance(node, ast.If):
        yield "test", ast.Constant(value=False)
    for name, value in ast.iter_fields(node):
        for i, one in enumerate(value if isinstance(value, list) else [value]):
            for other in _instead(one, isinstance(node, ast.Assign | ast.Return | ast.BinOp | ast.keyword)):
                yield name, [*value[:i], other, *value[i + 1 :]] if isinstance(value, list) else other


def _instead(value: object, a_step: bool) -> Iterator[ast.expr]:
    """What an expression may be without its operator; without its call, if it is a step of its own."""
    match value:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(op=ast.Mult() | ast.Add(), left=left, right=right):
            yield left
            yield right
        case ast.BinOp(op=ast.Div() | ast.Sub() | ast.MatMult(), left=left):
            yield left
        case ast.Call(args=[first, *_]) if a_step:
            yield first
        case ast.Call(func=ast.Attribute(value=inner), args=[]):
            yield inner


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
