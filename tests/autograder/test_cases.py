"""What students do, honest and not, in one class: each gets what they earned, and an honest neighbour always all of it.

The course is a plain nbgrader one, not ours: asserts, partial credit, no vocabulary of tests.
"""

import copy
import json
import os
import socket
import threading

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.authoring.chapters import grade_id
from autograder.authoring.course_folder import sheets
from autograder.authoring.release import Release
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options
from autograder.limits import Limits

TEST_MEAN = """assert mean([1, 3]) == 2
### BEGIN HIDDEN TESTS
SECRET_MARK = "only in the hidden tests"
for values in ([5], [1, 2, 3, 6], [-1.5, 1.5]):
    assert abs(mean(values) - sum(values) / len(values)) < 1e-12
### END HIDDEN TESTS"""
TEST_SCALE = """np.testing.assert_allclose(scale(np.array([1.0, 2.0])), [0.5, 1.0])
### BEGIN HIDDEN TESTS
given = np.array([3.0, -4.0, 2.0])
got = scale(given)
np.testing.assert_allclose(got, given / np.abs(given).max())
### END HIDDEN TESTS"""
TEST_PARTS = """earned = 0
### BEGIN HIDDEN TESTS
earned += 1 * (mean([2, 4]) == 3)
earned += 1 * (word == "seven")
### END HIDDEN TESTS
earned"""


def named(id, points=None, solution=False):
    given = {"grade": points is not None, "grade_id": id, "locked": not solution, "solution": solution, "task": False}
    return {"nbgrader": {**given, "schema_version": 3} | ({"points": points} if points is not None else {})}


def solved(text):
    return f"### BEGIN SOLUTION\n{text}\n### END SOLUTION"


RIGHT = {
    "mean": "def mean(values):\n    return sum(values) / len(values)",
    "scale": "def scale(x):\n    return x / np.abs(x).max()",
    "word": "word = 'sev' + 'en'",
}
WRONG = {"mean": "def mean(values):\n    return 0", "scale": "def scale(x):\n    return x", "word": "word = ''"}
MOST = 3 + 2 + 2


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("kinds")
    cells = [
        new_code_cell("import numpy as np", metadata=named("setup")),
        new_code_cell(solved(RIGHT["mean"]), metadata=named("mean", solution=True)),
        new_code_cell(TEST_MEAN, metadata=named("test_mean", 3)),
        new_code_cell(solved(RIGHT["scale"]), metadata=named("scale", solution=True)),
        new_code_cell(TEST_SCALE, metadata=named("test_scale", 2)),
        new_code_cell(solved(RIGHT["word"]), metadata=named("word", solution=True)),
        new_code_cell(TEST_PARTS, metadata=named("test_parts", 2)),
    ]
    for step in ("source", "release"):
        (root / step / "hw").mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), root / "source" / "hw" / "hw.ipynb")
    nbformat.write(Release.of(sheets(root, "hw")[0]).released, root / "release" / "hw" / "hw.ipynb")
    return root


# ---------------------------------------------------------------- the class

CASES: dict[str, tuple[float, dict]] = {}


def case(points, base=None, before=None, files=None, name="hw.ipynb", **answers):
    """A case: what it must get, and what is handed in. The decorated function changes the notebook, or makes the file."""

    def add(change):
        CASES[change.__name__] = (
            points,
            {"answers": {**(base or RIGHT), **answers}, "before": before, "files": files or {}, "name": name, "change": change},
        )
        return change

    return add


def unchanged(label, points, base=None, before=None, **answers):
    def change(notebook): ...

    change.__name__ = label
    case(points, base, before, **answers)(change)


# honest, and odd
unchanged("all_right", MOST)
unchanged("all_wrong", 0, WRONG)
unchanged("prints_while_tested", MOST, mean="def mean(values):\n    print('hm', values)\n    return sum(values) / len(values)")
unchanged(
    "warns_while_tested",
    MOST,
    scale="import warnings\ndef scale(x):\n    warnings.warn('careful')\n    return x / np.abs(x).max()",
)
unchanged("does_not_compile", 2, mean="def mean(values)\n    return 1")
unchanged("asks_for_input", 5, before="name = input('who? ')", word="word = input()")
unchanged("other_alphabet", MOST, mean="def mean(Zählwerte):\n    print('Ω \ud83d')\n    return sum(Zählwerte) / len(Zählwerte)")
unchanged("own_types", MOST, mean="class L(list): ...\ndef mean(values):\n    return np.float64(sum(L(values)) / len(values))")
unchanged(
    "own_helper_cell",
    MOST,
    before="def total(v):\n    return sum(v)",
    mean="def mean(values):\n    return total(values) / len(values)",
)


@case(MOST)
def split_answer(notebook):
    cell = find(notebook, "mean")
    first, second = RIGHT["mean"].split("\n")
    cell.source = first
    notebook.cells.insert(notebook.cells.index(cell) + 1, new_code_cell(second, metadata=copy.deepcopy(cell.metadata)))


@case(MOST)
def copied_test_cell(notebook):
    notebook.cells.append(copy.deepcopy(find(notebook, "test_mean")))


@case(MOST)
def deleted_answer_cell_written_anew(notebook):
    notebook.cells[notebook.cells.index(find(notebook, "mean"))] = new_code_cell(RIGHT["mean"])


@case(MOST)
def other_order(notebook):
    notebook.cells.reverse()


@case(MOST)
def no_metadata_at_all(notebook):
    notebook.metadata.clear()
    for cell in notebook.cells:
        cell.metadata = {}


@case(MOST)
def another_kernel(notebook):
    notebook.metadata.kernelspec = {"name": "julia-9", "display_name": "Julia", "language": "julia"}


@case(MOST)
def schema_of_the_past(notebook):
    find(notebook, "mean").metadata.nbgrader.schema_version = 0
    find(notebook, "test_mean").metadata.nbgrader.schema_version = 99


@case(MOST, name="hw (3).ipynb", files={"notes.txt": "mine"})
def renamed_file(notebook): ...


@case(0)
def no_bytes(notebook):
    return b""


@case(0)
def half_a_file(notebook):
    return nbformat.writes(notebook).encode()[:900]


@case(MOST, files={"hw.ipynb.bak": "{", "scratch.ipynb": "[]"})
def more_files(notebook): ...


# dishonest: cells, metadata
@case(0, WRONG)
def emptied_tests(notebook):
    for name in ("test_mean", "test_scale", "test_parts"):
        find(notebook, name).source = ""


@case(0, WRONG)
def points_of_its_own(notebook):
    find(notebook, "test_mean").metadata.nbgrader.points = 100
    notebook.cells.append(new_code_cell("100", metadata=named("extra", 100)))


@case(0, WRONG)
def made_tests_text_or_skipped(notebook):
    find(notebook, "test_mean").cell_type = "raw"
    find(notebook, "test_scale").metadata.tags = ["skip-execution", "slow", "widget"]
    find(notebook, "test_parts").metadata.nbgrader.update(grade=False, solution=True, locked=False)


@case(0, WRONG)
def gave_tests_other_names(notebook):
    for name in ("test_mean", "test_scale", "test_parts"):
        find(notebook, name).metadata.nbgrader.grade_id = f"my_{name}"


@case(0, WRONG)
def outputs_written_by_hand(notebook):
    for cell in notebook.cells:
        cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "3"})]


# dishonest: code
LIAR = "class Liar:\n    def __eq__(self, other): return True\n    __ne__ = lambda self, other: False\n"
LIAR += "    __lt__ = __le__ = __eq__\n    __sub__ = __rsub__ = __abs__ = __float__ = lambda self, *other: self\n"
unchanged("equal_to_everything", 0, WRONG, mean=LIAR + "def mean(values):\n    return Liar()", word="word = Liar()")
unchanged(
    "patches_the_comparison", 0, WRONG, before="np.testing.assert_allclose = lambda *a, **k: None\nnp.abs = lambda x: 0 * x"
)
unchanged("patches_builtins", 0, WRONG, before="import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.sum = lambda x: 0")
unchanged(
    "removes_asserts",
    0,
    WRONG,
    before="import ast\nclass Drop(ast.NodeTransformer):\n    def visit_Assert(self, node): return ast.Pass()\n"
    "get_ipython().ast_transformers.append(Drop())",
)
unchanged("hides_errors", 0, WRONG, before="get_ipython().showtraceback = lambda *a, **k: None")
unchanged("runs_nothing", 0, WRONG, before="get_ipython().run_cell = get_ipython().run_code = lambda *a, **k: None")
unchanged(
    "looks_into_the_caller",
    0,
    WRONG,
    scale="import gc\ndef scale(x):\n    for d in gc.get_objects():\n        if isinstance(d, dict) and 'given' in d and 'np' in d:\n"
    "            return d['given'] / d['np'].abs(d['given']).max()\n    return x",
)
unchanged("changes_what_it_is_given", 0, WRONG, scale="def scale(x):\n    x[:] = 0\n    return x")
unchanged(
    "searches_the_disk",
    0,
    WRONG,
    before="import glob, subprocess\nfor pattern in ('*', '../*', '../../*', '/proc/*/environ', '/tmp/*/source/*/*'):\n"
    "    for path in glob.glob(pattern):\n        try: print(open(path, errors='replace').read())\n        except OSError: pass\n"
    "print(subprocess.run('grep -rl SECRET_MARK / --include=*.ipynb 2>/dev/null', shell=True, capture_output=True, text=True, timeout=3).stdout)",
)
unchanged(
    "kills_its_parents", 0, WRONG, before="import os, signal\nfor pid in (os.getppid(), -1):\n    os.kill(pid, signal.SIGKILL)"
)
unchanged("ends_itself", 2, mean="import os\ndef mean(values):\n    os._exit(0)", word="word = ''")
unchanged(
    "never_ends",
    2,
    mean="def mean(values):\n    while True:\n        try: pass\n        except BaseException: pass",
    word="word = ''",
)
unchanged(
    "never_ends_at_all",
    2,
    mean="import signal\nfor s in range(1, 60):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ndef mean(values):\n    while True: pass",
    word="word = ''",
)
unchanged(
    "takes_all_memory", 2, mean="def mean(values):\n    return len([bytearray(1 << 28) for _ in range(64)])", word="word = ''"
)
unchanged("crashes", 2, mean="import ctypes\ndef mean(values):\n    return ctypes.string_at(0)", word="word = ''")
unchanged("says_exit", 2, mean="def mean(values):\n    raise SystemExit", word="word = ''")
unchanged("prints_without_end", MOST, before="for _ in range(300):\n    print('x' * 100_000)")
unchanged("shows_a_script", MOST, before="from IPython.display import HTML\nHTML('<script>alert(1)</script>')")


@case(0, WRONG)
def calls_home(notebook):
    port = LISTENER.getsockname()[1]
    notebook.cells.insert(1, new_code_cell(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2).send(b'hello')"))


@case(MOST, files={"timestamp.txt": "2000-01-01 00:00:00 UTC"})
def forges_its_time(notebook): ...


@case(0, WRONG)
def writes_to_its_neighbour(notebook):
    path = f"{os.getcwd()}/submitted/all_right/hw/hw.ipynb"
    for place in ("../../../submitted/all_right/hw/hw.ipynb", path):
        notebook.cells.insert(1, new_code_cell(f"open({place!r}, 'w').write('')"))


LISTENER = socket.create_server(("127.0.0.1", 0))
HEARD: list[bytes] = []


def find(notebook, name):
    return next(cell for cell in notebook.cells if grade_id(cell) == name)


def listen():
    while True:
        try:
            HEARD.append(LISTENER.accept()[0].recv(100))
        except OSError:
            return


@pytest.fixture(scope="module")
def graded(course):
    """The course after the whole class was graded, and what was flagged by student."""
    threading.Thread(target=listen, daemon=True).start()
    for student, (_, given) in CASES.items():
        folder = course / "submitted" / student / "hw"
        folder.mkdir(parents=True)
        notebook = nbformat.read(course / "release" / "hw" / "hw.ipynb", as_version=4)
        for name, source in given["answers"].items():
            find(notebook, name).source = source
        if given["before"]:
            notebook.cells.insert(1, new_code_cell(given["before"]))
        made = given["change"](notebook)
        text = json.dumps(notebook) if made is None else made  # plain JSON: nothing mends it on the way
        (folder / given["name"]).write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        for name, content in given["files"].items():
            (folder / name).write_text(content)
    limits = Limits(call=4, cell=8, notebook=60, patience=30)
    done = grade(sheets(course, "hw"), Book(course), Options(limits=limits, seed=1), jobs=2)
    LISTENER.close()
    return course, {one.student: one for one in done}


@pytest.mark.parametrize("student", CASES)
def test_everybody_gets_what_they_earned(graded, student):
    course, _ = graded
    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        sheet = gradebook.find_submission_notebook("hw", "hw", student)
        assert {grade.name: grade.needs_manual_grade for grade in sheet.grades} == dict.fromkeys(
            ("test_mean", "test_scale", "test_parts"), False
        )
        assert sum(grade.auto_score for grade in sheet.grades) == CASES[student][0], [
            (grade.name, grade.auto_score) for grade in sheet.grades
        ]


FLAGS = {
    "split_answer": "mean: 2 cells were joined",
    "copied_test_cell": "test_mean: a second copy of the test cell was left out",
    "deleted_answer_cell_written_anew": "mean: the answer cell had lost its name; what stood in its place was taken",
    "renamed_file": "hw (3).ipynb was taken for hw.ipynb",
    "no_bytes": "hw.ipynb is empty",
    "half_a_file": "hw.ipynb is not a notebook (it ends too soon)",
    "more_files": "scratch.ipynb was not asked for and is not graded",
    "ends_itself": "ended itself",
    "never_ends": "took longer than 4 s of processor time and was stopped",
    "never_ends_at_all": "took longer than 4 s of processor time and was stopped",
    "crashes": "crashed",
    "forges_its_time": "timestamp.txt says 2000-01-01 00:00",
}


@pytest.mark.parametrize("student", FLAGS)
def test_what_a_teacher_should_look_at_is_flagged(graded, student):
    assert any(FLAGS[student] in flag for flag in graded[1][student].flags), graded[1][student].flags


def test_nothing_hidden_got_out_and_nothing_came_in(graded):
    course, _ = graded
    assert HEARD == []
    assert nbformat.read(course / "submitted" / "all_right" / "hw" / "hw.ipynb", as_version=4).cells
    for student in CASES:
        path = course / "autograded" / student / "hw" / "hw.ipynb"
        assert path.stat().st_size < 5_000_000
        for cell in json.loads(path.read_text())["cells"]:
            if not cell["metadata"].get("nbgrader", {}).get("grade"):
                assert "only in the hidden tests" not in json.dumps(cell.get("outputs")), student


def test_what_is_honest_and_usual_has_no_flag(graded):
    for student in ("all_right", "all_wrong", "prints_while_tested", "warns_while_tested", "own_types", "another_kernel"):
        assert graded[1][student].flags == [], student
