"""A submission runs in a process of its own; what goes wrong there costs what it must and no more."""

import os
import signal
import time
from pathlib import Path

import pytest

from autograder.authoring.chapters import find_chapters
from autograder.authoring.release import release
from autograder.authoring.scoring import score
from autograder.engine import supervisor
from autograder.engine.student import NotStarted, Template
from autograder.engine.supervisor import run_notebook
from autograder.errors import CourseError
from autograder.grading.merge import merge
from autograder.limits import Limits
from autograder.wire import frames
from tests.autograder.conftest import RIGHT, HandIn


def test_right_answers_get_full_points(perfect, full):
    assert perfect.run() == full and perfect.flags == []


def test_the_course_may_be_named_from_here(toy, full, monkeypatch):
    monkeypatch.chdir(toy.root)
    assert HandIn(find_chapters(Path())[0]).answer(**RIGHT).run() == full


def test_blank_answers_get_nothing(blank):
    assert blank.run() == {"double": 0.0, "three": 0.0, "letter": 0.0}
    assert "not written yet" in blank.said("ch99-double")


def test_a_wrong_answer_is_named(perfect):
    points = perfect.answer(double="def double(x):\n    return x * x").run()
    assert points["double"] == 1.0  # it leaves the argument alone
    assert "You squared: two and two hide the difference." in perfect.said("ch99-double")


def test_outputs_have_counts_and_results(perfect, full):
    perfect.run()
    assert perfect.result("ch99-double").outputs[-1].data["text/plain"] == "3.0"
    counts = [cell.execution_count for cell in perfect.graded.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("import os; os._exit(0)", "ended itself with exit code 0"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
    ],
)
def test_a_cell_that_ends_its_process_costs_no_other_cell(perfect, full, end, how):
    assert perfect.insert("ch99-three", end).run() == full
    assert len(perfect.flags) == 1 and perfect.flags[0].startswith(f"the process that ran a cell {how}")


@pytest.mark.parametrize("end", ["import os; os._exit(0)", "import ctypes; ctypes.string_at(0)"])
def test_an_answer_that_ends_its_process_costs_its_exercise_only(perfect, end):
    perfect.answer(double=f"def double(x):\n    {end}")
    assert perfect.run() == {"double": 0.0, "three": 1.0, "letter": 1.0}
    assert "The process that ran `double`" in perfect.said("ch99-double")


def test_an_endless_answer_is_stopped_and_the_rest_counts(perfect):
    perfect.answer(double="def double(x):\n    while True:\n        pass")
    assert perfect.run(limits=Limits(call=0.5, cell=20, notebook=60, patience=60)) == {"double": 0.0, "three": 1.0, "letter": 1.0}
    assert "`double` took longer than 0.5 s of processor time and was stopped" in perfect.said("ch99-double")
    assert "secret_name" not in perfect.said("ch99-double")
    assert perfect.flags == ["`double` took longer than 0.5 s of processor time and was stopped"]


def test_an_answer_that_is_endless_for_some_inputs_keeps_the_other_parts(perfect):
    perfect.answer(double="def double(x):\n    while len(x) > 1:\n        pass\n    return 2 * x")
    assert perfect.run(limits=Limits(call=0.5, cell=20, notebook=60, patience=60))["double"] == 1.0


STUBBORN = """while True:
    try:
        while True:
            pass
    except BaseException:
        pass"""


def test_a_loop_that_cannot_be_interrupted_is_killed(perfect, full):
    assert perfect.insert("ch99-three", STUBBORN).run(limits=Limits(call=1, cell=1, notebook=60, patience=60)) == full
    assert perfect.flags == ["the cell took longer than 1 s of processor time and was stopped"]


def test_many_slow_cells_meet_the_notebooks_limit(perfect):
    for _ in range(4):
        perfect.insert("ch99-letter", "import time\nt = time.process_time()\nwhile time.process_time() - t < 0.9: pass")
    points = perfect.run(limits=Limits(cell=5, notebook=2.5, patience=100))
    assert points["double"] == 3.0 and points["letter"] == 0.0
    assert perfect.flags == ["the notebook took longer than its limit of 2.5 s of processor time"]
    assert "The notebook took longer than its limit of 2.5 s" in perfect.said("ch99-letter")


@pytest.mark.parametrize("source", ["raise SystemExit(0)", "exit()", "1 / 0", "def f(:", "raise KeyboardInterrupt"])
def test_an_own_cell_that_fails_costs_nothing(perfect, full, source):
    assert perfect.insert("ch99-double-answer", source).run() == full


def test_an_answer_that_exits_costs_its_exercise_only(perfect):
    assert perfect.answer(double="def double(x):\n    raise SystemExit(0)").run() == {"double": 0.0, "three": 1.0, "letter": 1.0}


def test_input_is_answered_with_a_clear_error(perfect):
    perfect.answer(three="three = int(input('three? '))")
    assert perfect.run()["three"] == 0.0
    cell = perfect.result("ch99-three-answer")
    assert "nobody to answer it" in cell.outputs[-1].evalue


def test_an_answer_that_prints_much_keeps_its_points(perfect, full):
    noisy = "def double(x):\n    print('x' * 2_000_000)\n    return x + x"
    assert perfect.answer(double=noisy).run() == full
    assert "ch99.double: 3 of 3 points." in perfect.said("ch99-double")
    assert len(perfect.said("ch99-double")) < 1_200_000


def test_a_warning_costs_nothing(perfect, full):
    assert perfect.answer(double="import warnings\ndef double(x):\n    warnings.warn('slow')\n    return x + x").run() == full


def test_text_that_no_file_can_hold_is_replaced(perfect, full):
    perfect.answer(double="def double(x):\n    print(chr(0xd800))\n    return x + x")
    assert perfect.run() == full
    perfect.said("ch99-double").encode("utf-8")


def test_an_output_that_is_no_json_does_no_harm(perfect, full):
    shown = "class Odd:\n    def _repr_mimebundle_(self, **_):\n        return {'text/plain': 'odd', 'application/json': {(1, 2): {3}, 'b': b'x'}}\nOdd()"
    assert perfect.insert("ch99-three", shown).run() == full


@pytest.mark.parametrize(
    "source",
    [
        "class Exercise:\n    def __init__(self, *a, **k): self.part = lambda *a, **k: __import__('contextlib').nullcontext()\n    def score(self): return 3.0",
        "check = draw = lambda *a, **k: []",
        "import numpy as torch",
    ],
)
def test_a_name_that_the_tests_import_cannot_be_taken(perfect, full, source):
    perfect.answer(double="def double(x):\n    return x", three="three = 5").insert("ch99-double", source)
    points = perfect.run()
    assert points["double"] == 1.0 and points["three"] == 0.0 and points["letter"] == 1.0


def test_a_display_of_the_full_points_is_not_the_score(perfect):
    perfect.answer(double="def double(x):\n    get_ipython().displayhook(3.0)\n    return x")
    assert perfect.run()["double"] == 1.0


def test_the_seed_decides_the_hidden_inputs(perfect):
    perfect.answer(double="seen = []\ndef double(x):\n    seen.append(x.tolist())\n    return x + x").insert(
        "ch99-letter", "print(seen)"
    )

    def inputs(seed):
        perfect.run(seed)
        return [c.outputs[0].text for c in perfect.graded.cells if c.source == "print(seen)"]

    first, again, other = inputs(1), inputs(1), inputs(2)
    assert first == again and first != other


def test_each_submission_starts_anew(perfect, blank):
    perfect.run()
    assert blank.insert("ch99-double", "print('double' in globals(), 'seen' in globals())").run()["double"] == 0.0


def test_files_beside_the_notebook_are_there_and_the_folder_is_not_the_graders(perfect, tmp_path, toy):
    from autograder.engine.supervisor import run_notebook
    from autograder.grading.merge import merge

    (tmp_path / "data.txt").write_text("seven")
    perfect.insert(
        "ch99-double", "import os; print(open('data.txt').read(), sorted(os.listdir())); open('data.txt', 'w').write('')"
    )
    merged = merge(toy, perfect.notebook)
    run_notebook(merged.notebook, toy, 1, files=tmp_path)
    printed = next(c.outputs[0].text for c in merged.notebook.cells if c.source.startswith("import os; print"))
    assert printed == "seven ['data.txt']\n" and (tmp_path / "data.txt").read_text() == "seven"


def test_what_a_submission_started_ends_with_it(perfect, tmp_path):
    pid = tmp_path / "pid"
    perfect.insert(
        "ch99-letter", f"import subprocess; p = subprocess.Popen(['sleep', '60']); open({str(pid)!r}, 'w').write(str(p.pid))"
    )
    perfect.run()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid.read_text()}/stat").read_text().split()[2]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    os.kill(int(pid.read_text()), 9)
    pytest.fail("the process is still there")


def test_an_error_in_an_answer_is_told_with_the_students_own_line(perfect):
    perfect.answer(double="def half(x):\n    return x / 0\n\n\ndef double(x):\n    return half(2)")
    perfect.run()
    assert "ZeroDivisionError: division by zero, in half: `return x / 0`" in perfect.said("ch99-double")


def test_tests_that_an_answer_keeps_busy_are_ended_and_the_next_ones_run(make, cells, monkeypatch):
    monkeypatch.setattr(supervisor, "GRACE", 1.0)
    cells[8].source = cells[8].source.replace("check(three=three).is_number()", "sum(range(three))")
    chapter = make(cells=cells)
    release(chapter)
    student = HandIn(chapter).answer(**RIGHT | {"three": "three = 10**14"})
    assert student.run(limits=Limits(call=1, cell=1, notebook=60)) == {"double": 3.0, "three": 0.0, "letter": 1.0}
    assert student.flags == ["the tests of a cell did not end and were stopped"]


SHELL_LINES = {
    "double": "!pip install torch\n%matplotlib inline\nfiles = !ls\ndef double(x):\n    return 2 * x\n%timeit -n1 -r1 double(3)",
    "three": "%%time\nthree = 3",
    "letter": "%load_ext nothing\n%nothing at all\nget_ipython().system('echo hi')\nletter = 'B'",
}


def test_shell_lines_and_magics_cost_no_points(perfect, full):
    perfect.answer(**SHELL_LINES).insert("ch99-letter", "%%bash\necho hi")
    assert perfect.run() == full and perfect.flags == []
    said = "".join(o.get("text", "") for o in perfect.result("ch99-double-answer").outputs)
    assert "not run: !pip install torch\n" in said and "not run: !ls\n" in said and "per loop" in said


def test_an_answer_with_magics_that_lost_its_name_is_found(perfect, full):
    for name, source in SHELL_LINES.items():
        cell = perfect.cell(f"ch99-{name}-answer")
        cell.source, cell.metadata, cell.id = source, {}, f"new-{name}"
    assert perfect.run() == full


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    "source",
    [
        "data = '" + "QUJD" * 1_500_000 + "'",
        "# " + " ".join(f"w{i}" for i in range(700_000)),
        "data = [" + "1," * 100_000 + "]",
        "'" + "a" * 6_000_000,
    ],
    ids=["text", "words", "list", "no Python"],
)
def test_an_own_cell_of_any_size_costs_nothing(perfect, full, source):
    assert perfect.insert("ch99-double-answer", source).run() == full


def test_an_answer_of_any_size_counts(perfect, full):
    assert perfect.answer(three="three = 3 # " + "x" * 6_000_000).run() == full


def test_cells_that_no_frame_holds_end_their_own_run_only(perfect, blank, full, monkeypatch):
    monkeypatch.setattr(frames, "BULK_LIMIT", 1 << 20)
    assert sum(blank.insert("ch99-double-answer", "#" * 2_000_000).run().values()) == 0
    assert blank.flags[-1] == "its cells take more than 1 MB" and "its cells take" in blank.said("ch99-double")
    assert perfect.run() == full


def test_processes_of_the_tests_that_are_gone_are_started_anew(perfect, full, toy):
    perfect.run()
    os.kill(supervisor.tests_template(toy).pid, signal.SIGKILL)
    assert perfect.run() == full
    os.kill(supervisor.tests_base().pid, signal.SIGKILL)
    supervisor._chapters.clear()
    assert perfect.run() == full


def test_answers_that_do_not_load_are_the_authors_matter(make):
    chapter = make()
    release(chapter)
    chapter.answers.write_text("1 / 0")
    for _ in range(2):
        with pytest.raises(CourseError, match=r"is answers\.py of ch99_toy in order"):
            HandIn(chapter).run()


def test_files_that_cannot_be_copied_are_left_out_and_the_answers_count(perfect, full, tmp_path, toy, monkeypatch):
    fork = Template.fork

    def refusing(self, limits, files=None):
        if files is not None:
            raise NotStarted("no room")
        return fork(self, limits)

    monkeypatch.setattr(Template, "fork", refusing)
    (tmp_path / "data.csv").write_text("1")
    merged = merge(toy, perfect.notebook)
    flags = run_notebook(merged.notebook, toy, 1, files=tmp_path)
    perfect.graded = merged.notebook
    assert score(perfect.result("ch99-double")) == full["double"]
    assert flags == ["the files beside the notebook could not be copied (no room) and were left out"]
