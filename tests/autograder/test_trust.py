"""No evaluator is called where students' values are: the syntax trees of all that runs outside the sandbox are read.

A name that evaluates, parses into something that runs, or loads objects may be called only in the places of ALLOWED, each
for its reason. A new place is a decision, to be written there.
"""

import ast
from pathlib import Path

import pytest
from nbgrader.utils import is_grade

from autograder.authoring.chapters import find_chapters, grade_id

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ROOT / "autograder"
MODULES = [path for path in sorted(ROOMS.rglob("*.py")) if path.parent.name != "confined"]  # that one runs in the sandbox
MODULES += [*sorted((ROOT / "course/checks").glob("*.py")), ROOT / "course/expressions.py"]


def name_of(path: Path) -> str:
    """`wire/frames.py`, `course/expressions.py`."""
    return str(path.relative_to(ROOMS if ROOMS in path.parents else ROOT))


BANNED = {
    # Python's own
    *(
        "eval",
        "exec",
        "compile",
        "__import__",
        "import_module",
        "run_path",
        "run_module",
        "run_cell",
        "literal_eval",
        "namedtuple",
    ),
    *("getsource", "format_map", "vformat", "deepcopy", "popen"),
    # sympy's: what makes formulas of anything, and what computes for as long as it likes
    *("sympify", "_sympify", "parse_expr", "S", "lambdify", "nsimplify", "simplify", "evalf", "subs", "xreplace", "doit"),
    *("nsolve", "solveset", "integrate", "summation"),
    # what loads objects
    *("Unpickler", "unpackb", "load", "frombytes"),
}
LOADERS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "code", "codeop", "pdb"}
"""Modules that make objects of bytes, or run text."""

ALLOWED = {
    ("authoring/answers.py", "getsource"): "of answers.py, which the author of the chapter wrote",
    ("authoring/answers.py", "run_path"): "answers.py, before any student's process is there",
    ("authoring/misconceptions.py", "compile"): "an answer of answers.py",
    (
        "authoring/misconceptions.py",
        "exec",
    ): "an answer of answers.py; names that are the student's are values or stand-ins there",
    ("authoring/check.py", "load"): "answers.py",
    ("authoring/skeleton.py", "yaml"): "the course's own list of chapters, by safe_load",
    ("doors/demo.py", "load"): "answers.py",
    ("authoring/release.py", "load"): "answers.py",
    ("trusted/runner.py", "load"): "answers.py",
    ("trusted/runner.py", "exec"): "import statements of the source",
    ("trusted/runner.py", "import_module"): "modules of the list WARM",
    ("trusted/runner.py", "run_cell"): "of a session: it lets the student's process run the cell",
    ("wire/shell.py", "compile"): "a cell of the source, in the tests' template",
    ("wire/shell.py", "exec"): "a cell of the source that was compiled before the student's process was there",
    ("wire/shell.py", "eval"): "the last line of such a cell",
    ("wire/shell.py", "run_cell"): "a cell of the source that IPython has to run; in the student's process, the student's",
    ("wire/frames.py", "unpackb"): "lists, text, bytes and numbers of msgpack; its extensions and maps are refused",
    ("wire/values.py", "frombytes"): "numbers of eight bytes",
    ("grading/merge.py", "deepcopy"): "metadata of the source",
    (
        "course/checks/arguments.py",
        "deepcopy",
    ): "arguments that a test gives; a stand-in among them asks the student's process for its copy",
}


def called(tree: ast.AST):
    """(name, line) of each call, and of each banned name that is handed on as a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
            if name == "compile" and ast.unparse(function) == "re.compile":
                continue
            yield name, node.lineno
        if isinstance(node, ast.Name) and node.id in ("eval", "exec", "compile", "__import__") and isinstance(node.ctx, ast.Load):
            yield node.id, node.lineno


def loaded(tree: ast.AST):
    """(module, line) of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name.partition(".")[0], node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0], node.lineno


def found_in(source: str) -> set[str]:
    tree = ast.parse(source)
    return {name for name, _ in called(tree) if name in BANNED} | {name for name, _ in loaded(tree) if name in LOADERS}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_outside_the_sandbox_calls_an_evaluator(path):
    assert {name for name in found_in(path.read_text()) if (name_of(path), name) not in ALLOWED} == set()


def test_what_is_allowed_is_there():
    names = {name_of(path): found_in(path.read_text()) for path in MODULES}
    assert [place for place in ALLOWED if place[1] not in names[place[0]]] == []


@pytest.mark.parametrize("chapter", find_chapters(ROOT), ids=lambda chapter: chapter.stem)
def test_no_test_cell_calls_an_evaluator(chapter):
    tests = [cell for cell in chapter.notebook.cells if cell.cell_type == "code" and is_grade(cell)]
    assert tests and {grade_id(cell): found for cell in tests if (found := found_in(cell.source))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "sympy.sympify(slope)",
        "value = float(eval(answer))",
        "list(map(eval, answers))",
        "slope.subs(x, 1)",
        "from sympy import S as sum_of\nsympy.S(slope)",
        "import pickle",
        "from pickle import loads",
        "run = exec\nrun(answer)",
        "np.load(file, allow_pickle=True)",
        "def f():\n    return sympy.lambdify(x, slope)",
    ],
)
def test_a_banned_call_is_seen(source):
    assert found_in(source)
