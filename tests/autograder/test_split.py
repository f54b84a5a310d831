"""A submission gets the same points and is told the same in two processes as in one, whatever ran there before."""

import contextlib

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.answers import load
from autograder.authoring.chapters import find_chapters, grade_id, tags
from autograder.authoring.misconceptions import explainer
from autograder.authoring.scoring import score
from autograder.engine.supervisor import run_notebook
from autograder.grading.merge import merge
from autograder.trusted import plan
from autograder.wire.kinds import randomness
from autograder.wire.shell import make_shell
from course import checks
from tests.autograder.conftest import ROOT

SEED = 1
CHAPTERS = find_chapters(ROOT)


def hand_in(chapter, turn: int) -> NotebookNode:
    """A merged notebook with an answer of answers.py to each exercise, another one each turn."""
    submission = nbformat.read(chapter.path, as_version=4)
    answers = load(chapter.answers)
    for number, exercise in enumerate(chapter.exercises):
        mine = [a for a in answers if a.exercise == exercise.id]
        if mine and not exercise.by_hand:
            submission.cells[exercise.answer].source = mine[(turn + number) % len(mine)].source(chapter.asked(exercise))
    return merge(chapter, submission).notebook


def in_one_process(chapter, notebook: NotebookNode) -> None:
    """Run the cells that matter here, as a kernel would."""
    kinds = [(c, "student" if is_solution(c) else "test" if is_grade(c) else "source") for c in notebook.cells]
    cells = [
        plan.Cell(i, c.source, kind, grade_id(c), tuple(tags(c))) for i, (c, kind) in enumerate(kinds) if c.cell_type == "code"
    ]
    words = dict.fromkeys((cell.name for cell in cells), plan.uses(chapter.answers.read_text()).reads)
    needed = plan.student_side(cells) | plan.tests_side(cells, words) | {cell.index for cell in cells if cell.kind != "source"}
    run = [cell for cell in cells if cell.index in needed]
    quiet = plan.draw_nothing([cell for cell in run if cell.kind != "test"])
    shell = make_shell()
    checks.grader.set(explain=explainer(load(chapter.answers), shell.user_ns))
    with contextlib.chdir(chapter.path.parent):
        for cell in run:
            before = randomness()
            notebook.cells[cell.index].update(outputs=shell.run(cell.source), execution_count=1)
            if quiet and cell.kind != "test" and not cell.uses.sets:  # what sets up may seed
                assert randomness() == before, cell.source


@pytest.fixture
def seeded(monkeypatch):
    monkeypatch.setenv(checks.SEED_VARIABLE, str(SEED))
    yield
    checks.grader.set()


def told(notebook: NotebookNode) -> dict[str, tuple[float, str]]:
    found = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            # Not stderr: a warning names its cell by how many ran before it.
            said = [o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout"]
            said += [o.evalue for o in cell.outputs if o.output_type == "error"]
            found[grade_id(cell)] = score(cell), "".join(said).strip()
    return found


@pytest.mark.parametrize("turn", [2])
@pytest.mark.parametrize("chapter", CHAPTERS, ids=[chapter.id for chapter in CHAPTERS])
def test_two_processes_give_what_one_gives(chapter, turn, seeded):
    split, whole = hand_in(chapter, turn), hand_in(chapter, turn)
    flags = run_notebook(split, chapter, SEED)
    in_one_process(chapter, whole)
    withheld = [flag for flag in flags if "withheld" in flag]
    assert flags == withheld
    mine, theirs = told(split), told(whole)
    for name, (points, said) in theirs.items():
        if "WithheldError" not in mine[name][1]:  # an answer that may not call the course gets nothing for it
            assert mine[name] == (points, said)


SETTINGS = """import numpy as np
import torch
np.set_printoptions(precision=1, floatmode="fixed", sign="+")
np.seterr(all="raise")
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)"""


def test_what_a_notebook_set_ends_with_it(toy, seeded):
    """Chapter ch04 sets how numpy prints and f07 the default dtype: neither may show in the chapter that runs next."""
    alone, after = hand_in(toy, 2), hand_in(toy, 2)
    in_one_process(toy, alone)
    assert not any(output.output_type == "error" for output in make_shell().run(SETTINGS))
    in_one_process(toy, after)
    assert told(after) == told(alone)
    assert "double([2.] float32)" in told(alone)["ch99-double"][1]


def test_stages_have_their_seconds(perfect, full):
    assert perfect.run() == full
    seconds = perfect.graded.metadata.seconds
    assert {"start", "cells", "tests", "cpu", "total"} <= set(seconds) and all(x >= 0 for x in seconds.values())
