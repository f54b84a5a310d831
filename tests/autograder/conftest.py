"""A course of one tiny chapter that has every form of exercise, and a way to hand something in."""

import copy
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader import api

from autograder.authoring.chapters import Chapter, find_chapters, grade_id
from autograder.authoring.check import check_chapter
from autograder.authoring.scoring import score
from autograder.doors import demo
from autograder.engine.supervisor import run_notebook
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book, publish
from autograder.grading.merge import merge
from autograder.grading.submission import Graded, Options
from autograder.limits import Limits

ROOT = Path(__file__).resolve().parents[2]
QUICK = Limits(cell=20, notebook=60)

FIRST = """# Toy

*A promise.*

**You will be able to**

- double

**Builds on** nothing

**Time** 1 minutes to read · 2 minutes of exercises"""

DOUBLE = """exercise = Exercise("ch99.double", points=3)
with exercise.part("the example"):
    check(double).on(torch.tensor([2.0])).returns([4.0], see="doubling")
### BEGIN HIDDEN TESTS
with exercise.part("any shape", points=2):
    for case in draw(3):
        check(double).on(case.normal(case.integer(1, 5))).agrees_with(lambda secret_name: secret_name + secret_name)
with exercise.part("the argument", points=1):
    check(double).on(torch.tensor([3.0])).satisfies(torch.is_tensor, "a tensor comes back").leaves_arguments_alone()
### END HIDDEN TESTS
exercise.score()"""

THREE = """exercise = Exercise("ch99.three", points=1)
with exercise.part("a number"):
    check(three=three).is_number()
### BEGIN HIDDEN TESTS
with exercise.part("the value", points=1):
    check(three=three).equals(3, see="doubling")
### END HIDDEN TESTS
exercise.score()"""

LETTER = """exercise = Exercise("ch99.letter", points=1)
with exercise.part("a letter"):
    check(letter=letter).is_one_of("A", "B", "C")
### BEGIN HIDDEN TESTS
with exercise.part("the right one", points=1):
    check(letter=letter).equals("B")
### END HIDDEN TESTS
exercise.score()"""

ANSWERS = """
@right("ch99.double")
def adds(x):
    return x + x


@wrong("ch99.double", "You squared: two and two hide the difference.", see="doubling")
def squares(x):
    return x**2


@wrong("ch99.double", "Nothing is doubled.", see="doubling")
def same(x):
    return x


@wrong("ch99.double", "It is four only for two.")
def four(x):
    return x * 0 + 4


@wrong("ch99.double", "The argument is changed in place.")
def in_place(x):
    x *= 2
    return x


wrong("ch99.three", 4, "That is four.")
wrong("ch99.three", 2, "That is two.")
wrong("ch99.letter", "A", "A is for apple.")
wrong("ch99.letter", "C", "C is for cat.")
"""


def nbgrader(id: str, points: float | None = None, solution: bool = False) -> dict:
    given = {"grade": points is not None, "grade_id": id, "locked": not solution, "solution": solution, "task": False}
    return {"nbgrader": {**given, "schema_version": 3} | ({"points": points} if points is not None else {})}


def header(id: str, points: str, form: str) -> NotebookNode:
    return new_markdown_cell(f"**Exercise ch99.{id}** · {points} · ★ · 5 min · {form}\n\nThe task.")


def toy_cells() -> list[NotebookNode]:
    """The cells of the chapter, new in each call."""
    double = (
        "def double(x):\n    ### BEGIN SOLUTION\n    # Why: twice is what doubling means.\n    return 2 * x\n    ### END SOLUTION"
    )
    three = "three = None  # replace None\n### BEGIN SOLUTION\nthree = 1 + 1 + 1\n### END SOLUTION"
    letter = "letter = None  # replace None\n### BEGIN SOLUTION\nletter = chr(66)\n### END SOLUTION"
    why = "Twice as much.\n\n### BEGIN MARK SCHEME\nTwo points for the word twice.\n### END MARK SCHEME"
    setup = "import torch\n\nfrom course.checks import Exercise, check, draw\nfrom course.device import setup\n\nsetup(seed=0)"
    return [
        new_markdown_cell(FIRST),
        new_code_cell(setup, metadata=nbgrader("ch99-setup")),
        new_markdown_cell("## Doubling"),
        header("double", "3 points", "code"),
        new_code_cell(double, metadata=nbgrader("ch99-double-answer", solution=True)),
        new_code_cell(DOUBLE, metadata=nbgrader("ch99-double", 3)),
        header("three", "1 point", "numeric"),
        new_code_cell(three, metadata=nbgrader("ch99-three-answer", solution=True)),
        new_code_cell(THREE, metadata=nbgrader("ch99-three", 1)),
        header("letter", "1 point", "choice"),
        new_code_cell(letter, metadata=nbgrader("ch99-letter-answer", solution=True)),
        new_code_cell(LETTER, metadata=nbgrader("ch99-letter", 1)),
        header("why", "2 points", "written"),
        new_markdown_cell(why, metadata=nbgrader("ch99-why", 2, solution=True)),
    ]


def make_course(root: Path, cells: list[NotebookNode] | None = None, answers: str = ANSWERS) -> Chapter:
    """Write a course folder with the chapter ch99_toy."""
    folder = root / "source" / "ch99_toy"
    folder.mkdir(parents=True, exist_ok=True)
    (root / "course").mkdir(exist_ok=True)
    for name in ("nbgrader_config.py", "pyproject.toml", "environment.yml", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, root / name)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells or toy_cells(), metadata=kernel), folder / "ch99_toy.ipynb")
    (folder / "answers.py").write_text("from autograder.authoring.answers import cell, right, wrong\n\n" + answers)
    return find_chapters(root)[0]


@pytest.fixture
def make(tmp_path):
    """make(cells=…, answers=…): a course of its own for a test that changes it."""
    return lambda **given: make_course(tmp_path / "course", **given)


@pytest.fixture
def cells():
    """The toy chapter's cells, to change and give to `make`."""
    return toy_cells()


@pytest.fixture(scope="session", autouse=True)
def the_version_of_gradebooks_is_asked_for_once():
    """nbgrader starts alembic for each new gradebook to ask for its version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "get_alembic_version", cache(api.get_alembic_version))
        yield


@pytest.fixture(scope="session")
def checked():
    """checked(chapter): what `autograder check` finds, once for all tests that ask."""
    found: dict[str, list] = {}

    def checked(chapter: Chapter) -> list:
        if chapter.stem not in found:
            here = os.getcwd()
            found[chapter.stem] = check_chapter(chapter)
            os.chdir(here)
        return found[chapter.stem]

    return checked


@dataclass
class Class:
    """The demo's class of one chapter, graded: the chapter of the demo's folder, the gradebook, what came for each student."""

    chapter: Chapter
    book: Book
    graded: dict[str, Graded]

    def notebook(self, student: str, step: str) -> NotebookNode:
        return nbformat.read(self.chapter.folder(step, student) / f"{self.chapter.stem}.ipynb", as_version=4)


@pytest.fixture(scope="session")
def graded_class(tmp_path_factory):
    """graded_class(chapter): the demo's class, graded in two processes, once for all tests that ask."""
    found: dict[str, Class] = {}

    def graded_class(chapter: Chapter) -> Class:
        if chapter.stem not in found:
            folder = tmp_path_factory.mktemp("demo") / "demo"
            (copy,) = demo.prepare(chapter.root, folder, [chapter.stem])
            book = Book(folder)
            graded = grade([copy], book, Options(seed=demo.SEED))
            found[chapter.stem] = Class(copy, book, {one.student: one for one in graded})
        return found[chapter.stem]

    return graded_class


@pytest.fixture
def answers() -> str:
    """The toy chapter's answers.py, to change and give to `make`."""
    return ANSWERS


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Chapter:
    """The toy chapter with its release; tests do not change it."""
    chapter = make_course(tmp_path_factory.mktemp("toy"))
    publish(chapter)
    return chapter


@pytest.fixture
def chapter(toy, tmp_path) -> Chapter:
    """The toy chapter in a course of a test's own, with its release and no gradebook."""
    shutil.copytree(toy.root, tmp_path / "course", ignore=shutil.ignore_patterns("gradebook.db"))
    return find_chapters(tmp_path / "course")[0]


@pytest.fixture
def released(toy) -> NotebookNode:
    """A student's copy of the toy chapter, nothing answered."""
    return nbformat.read(toy.release, as_version=4)


class HandIn:
    """What a student does to their copy, and what they get for it."""

    def __init__(self, chapter: Chapter):
        self.chapter = chapter
        self.notebook = nbformat.read(chapter.release, as_version=4)
        self.flags: list[str] = []

    def cell(self, id: str) -> NotebookNode:
        return next(cell for cell in self.notebook.cells if grade_id(cell) == id)

    def index(self, id: str) -> int:
        return self.notebook.cells.index(self.cell(id))

    def answer(self, **answers: str) -> "HandIn":
        for name, source in answers.items():
            self.cell(f"ch99-{name}-answer" if name != "why" else "ch99-why").source = source
        return self

    def insert(self, before: str, source: str) -> "HandIn":
        self.notebook.cells.insert(self.index(before), new_code_cell(source))
        return self

    def run(self, seed: int = 1, limits: Limits = QUICK) -> dict[str, float]:
        """Merge, run and score; the points by exercise."""
        merged = merge(self.chapter, copy.deepcopy(self.notebook))
        self.graded = merged.notebook
        self.flags = merged.flags + run_notebook(merged.notebook, self.chapter, seed, limits)
        return {name: score(self.result(f"ch99-{name}")) for name in ("double", "three", "letter")}

    def result(self, id: str) -> NotebookNode:
        return next(cell for cell in self.graded.cells if grade_id(cell) == id)

    def said(self, id: str) -> str:
        outputs = self.result(id).outputs
        return "".join(o.get("text", "") + o.get("evalue", "") + "".join(o.get("traceback", [])) for o in outputs)


RIGHT = {"double": "def double(x):\n    return x + x", "three": "three = 3", "letter": "letter = 'B'", "why": "Twice."}
FULL = {"double": 3.0, "three": 1.0, "letter": 1.0}


@pytest.fixture
def blank(toy) -> HandIn:
    return HandIn(toy)


@pytest.fixture
def perfect(toy) -> HandIn:
    return HandIn(toy).answer(**RIGHT)


@pytest.fixture(scope="session")
def full() -> dict[str, float]:
    """The points of somebody who has everything right."""
    return dict(FULL)
