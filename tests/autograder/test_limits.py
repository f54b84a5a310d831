"""Limits are of the student's own processor time, so that a busy machine costs nobody points; what hangs meets the clock."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.grading import rerun, submission
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.submission import Options
from autograder.limits import Limits
from autograder.pages import report
from autograder.trusted.session import Session
from course.checks import Stopped
from tests.autograder.test_grade import answered, copy_of, hand_in, scores
from tests.autograder.test_session import Process

PATIENT = {"cell": 20.0, "notebook": 60.0, "patience": 100.0}  # the clock ends nothing here, however busy the machine is
BURN = "import time\ndef burn(s):\n    t = time.process_time()\n    while time.process_time() - t < s: pass\n    return s\n"


@pytest.fixture
def started(monkeypatch):
    """started(source, *names, **limits): a session and what a cell of the student defines."""
    processes = []

    def started(source: str, *names: str, **limits):
        limits = Limits(**{**PATIENT, "call": 1.0, **limits})
        processes.append(Process(limits))
        session = Session(processes[-1], limits)
        assert not [o for o in session.run_cell(BURN + source) if o.output_type == "error"]
        return session, *(session.value(name)[name] for name in names)

    yield started
    for process in processes:
        process.student.kill()


# ---------------------------------------------------------------- the student's own time


def test_what_waits_takes_no_processor_time(started):
    session, f = started("def f():\n    time.sleep(1.3)\n    return 8", "f")
    assert f() == 8 and session.hit == [] and session.used < 1


def test_what_sleeps_too_long_meets_the_clock(started):
    session, f = started("def f(): time.sleep(1000)\n", "f", call=0.5, patience=4.0)
    start = time.monotonic()
    with pytest.raises(Stopped, match=r"`f` was not done after 2 s and was stopped"):
        f()
    assert time.monotonic() - start > 1.9 and session.hit == ["`f` was not done after 2 s and was stopped"]
    assert session.starts == 1  # it was interrupted, not killed


ENDLESS = {
    "a loop": "while True: pass",
    "a loop in C": "sum(range(10**13))",
    "another process": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])",
    "threads": "import threading; t = [threading.Thread(target=burn, args=(9,), daemon=True) for _ in range(3)]\n"
    "    [x.start() for x in t]; [x.join() for x in t]",
    "what swallows the limit": "\n    while True:\n        try: burn(1)\n        except BaseException: pass",
}


@pytest.mark.parametrize("how", ENDLESS)
def test_what_computes_for_ever_meets_its_processor_time(started, how):
    session, f, g = started(f"def f():\n    {ENDLESS[how]}\ndef g(): return 8", "f", "g")
    with pytest.raises(Stopped, match=r"`f` took longer than 1 s of processor time and was stopped"):
        f()
    assert session.hit == ["`f` took longer than 1 s of processor time and was stopped"] and session.breaches == 1
    assert g() == 8


def test_a_process_that_was_waited_for_counts(started):
    source = "import subprocess, sys\nwork = 'import time\\nwhile time.process_time() < '\n"
    source += "def f(s): subprocess.run([sys.executable, '-c', work + f'{s}: pass'])"
    session, f = started(source, "f", call=1.5)
    f(0.6)  # children are counted in hundredths
    assert session.used > 0.5
    with pytest.raises(Stopped, match=r"of processor time"):
        f(3)


def test_the_calls_of_a_test_have_a_limit_together(started):
    session, burn = started("", "burn", cell=1.5)
    with session.testing(lambda output: None, []):
        assert burn(0.6) == burn(0.6)
        with pytest.raises(Stopped, match=r"What one test called took longer than its limit of 1\.5 s of processor time"):
            burn(0.6)
    with session.testing(lambda output: None, []):
        assert burn(0.6) == 0.6


def test_cells_that_run_again_take_no_time_of_the_notebook(started):
    session, f, g = started("import os\nburn(0.8)\ndef f(): os._exit(1)\ndef g(): return 8", "f", "g")
    before = session.used
    assert before >= 0.8
    with pytest.raises(Stopped):
        f()
    assert g() == 8 and session.starts == 2 and session.used - before < 0.5


def test_a_time_that_is_no_number_is_no_answer(started):
    _, f = started("import autograder.confined.server as r\ndef f():\n    r.processor_time = lambda: float('nan')", "f")
    with pytest.raises(Stopped, match="no answer"):
        f()


@pytest.mark.parametrize(("used", "now", "said"), [(61, 0, "60 s of processor time"), (0, 6001, "not done after 6000 s")])
def test_nothing_is_asked_after_the_end(monkeypatch, used, now, said):
    session = Session(None, Limits(**PATIENT))
    session.used, session.end = used, session.end - now
    with pytest.raises(Stopped, match=f"The notebook .*{said}"):
        session.value("x")
    assert said in session.hit[0] and session.starts == 0


# ---------------------------------------------------------------- calls back


def test_the_time_of_calls_back_is_not_the_students(started):
    session, f = started("def f(g): return sum(g(i) for i in range(150))", "f")

    def slow(i):
        start = time.process_time()
        while time.process_time() - start < 0.01:
            pass
        return i

    start = time.process_time()
    assert f(slow) == sum(range(150)) and time.process_time() - start > 1.5
    assert session.hit == [] and session.used < 1


def test_a_call_may_call_back_so_many_times(started):
    _, f, g = started("def f(g, n): return sum(g(i) for i in range(n))\ndef g(h):\n    for x in h: pass", "f", "g", callbacks=50)
    assert f(lambda i: 1, 50) == 50 and f(lambda i: 1, 50) == 50
    with pytest.raises(RuntimeError, match="50 times, not more"):
        f(lambda i: 1, 51)
    with pytest.raises(RuntimeError, match="50 times, not more"):
        g(iter(range(51)))


def test_what_calls_back_for_ever_meets_the_clock(started):
    source = "def f(g):\n    while True:\n        try: g()\n        except RuntimeError: pass"
    session, f = started(source, "f", call=0.3, patience=5.0, callbacks=20)
    with pytest.raises(Stopped, match=r"not done after 1\.5 s|0\.3 s of processor time"):
        f(lambda: 1)
    assert session.breaches == 1


def test_a_call_back_that_is_stopped_stops_the_call_and_counts_once(started):
    session, f, h = started("def f(g): return g(3)\ndef h(x): return burn(x)", "f", "h", cell=30)
    with session.testing(lambda output: None, []):
        with pytest.raises(Stopped, match="`f` took longer than 1 s of processor time"):
            f(lambda x: h(x))
        assert session.breaches == 1 and h(0.1) == 0.1


# ---------------------------------------------------------------- a busy machine

LOADED = """
import json, os, subprocess, sys, tempfile
from pathlib import Path
from tests.autograder.conftest import RIGHT, HandIn, make_course
from autograder.authoring.release import release
from autograder.limits import Limits

cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})  # with everything that is started from here
chapter = make_course(Path(tempfile.mkdtemp()))
release(chapter)
HandIn(chapter).answer(**RIGHT).run()  # the templates are warm before it gets busy
# Each in a session of its own: a kernel that shares a processor by sessions would count them as one.
work = f"import os\\nwhile os.getppid() == {os.getpid()}: pass"  # ends with this program, however that ends
busy = [subprocess.Popen([sys.executable, "-c", work], start_new_session=True) for _ in range(4)]
try:
    slow = "import time\\ndef double(x):\\n    t = time.process_time()\\n    while time.process_time() - t < 0.4: pass\\n    return 2 * x"
    student = HandIn(chapter).answer(**{**RIGHT, "double": slow})
    points = student.run(limits=Limits(call=0.8, cell=20, notebook=60, patience=100))
finally:
    for process in busy:
        process.kill()
print(json.dumps([points, student.flags, student.graded.metadata.seconds["tests"]]))
"""


def test_right_answers_keep_their_points_on_a_busy_machine():
    """Six calls of 0.4 s and a limit of 0.8 s each: on a fifth of a processor each takes 2 s and more."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=root, capture_output=True, text=True, check=True)
    points, flags, seconds = json.loads(done.stdout.splitlines()[-1])
    assert points == {"double": 3.0, "three": 1.0, "letter": 1.0} and flags == []
    assert seconds > 6 * 0.8


# ---------------------------------------------------------------- the second run

LOOP = "def double(x):\n    while True:\n        pass"


@pytest.fixture
def runs(monkeypatch):
    """Who was run, in order; in a first run a call has 0.1 s, as if the machine were busy."""
    runs, real = [], submission.run_notebook

    def run_notebook(notebook, chapter, seed, limits, *rest):
        who = next(cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.source[:2] == "# ")
        runs.append((who, seed))
        return real(notebook, chapter, seed, Limits(call=0.1 if [w for w, _ in runs].count(who) == 1 else 1.0, **PATIENT), *rest)

    monkeypatch.setattr(submission, "run_notebook", run_notebook)
    return runs


SLOW = BURN + "def double(x):\n    burn(0.3)\n    return 2 * x"


def test_what_hit_a_limit_runs_once_more_alone_before_it_costs_points(toy, tmp_path, released, runs):
    chapter = copy_of(toy, tmp_path)
    for student, double in {"ada": SLOW, "bob": LOOP, "eve": "def double(x):\n    return 2 * x"}.items():
        hand_in(chapter, student, answered(released, double=double, three=f"# {student}\nthree = 3"))
    told = []
    book = Book(chapter.root)
    grade([chapter], book, Options(), jobs=2, done=lambda one: told.append((one.student, len(runs))))
    order = [who.split()[1] for who, _ in runs]
    assert sorted(order[:3]) == ["ada", "bob", "eve"] and sorted(order[3:]) == ["ada", "bob"]
    assert len(set(runs)) == 3  # the second run has the seed of the first
    assert told[0] == ("eve", 3) and [n for _, n in told] == [3, 4, 5]  # nothing of the others is recorded before
    assert {who: s[0] for who, s in scores(chapter, book).items()} == {"ada": 3, "bob": 0, "eve": 3}

    works = {work.person.id: work for work in report.collect([chapter], book.db_url)}
    assert works["eve"].flags == []
    assert works["ada"].flags == [
        "a limit was hit (`double` took longer than 0.1 s of processor time and was stopped), so it was run once more, alone: "
        "it kept within all limits"
    ]
    assert works["bob"].flags[-1].endswith("it hit a limit again")
    report.write_html(list(works.values()), tmp_path / "report.html")
    assert "run once more, alone" in (tmp_path / "report.html").read_text()
    grade([chapter], book, Options())
    assert len(runs) == 5  # what the second run found is kept


def test_a_first_run_is_not_kept_as_if_it_were_final(toy, tmp_path, released, runs, monkeypatch):
    chapter = copy_of(toy, tmp_path)
    book = Book(chapter.root)
    hand_in(chapter, "ada", answered(released, double=SLOW, three="# ada\nthree = 3"))
    with monkeypatch.context() as patch:
        patch.setattr(rerun, "sentence", interrupted)
        with pytest.raises(KeyboardInterrupt):
            grade([chapter], book, Options())
    assert len(runs) == 2 and not list(chapter.root.glob("autograded/*/*/*.ipynb"))
    grade([chapter], book, Options())
    assert len(runs) == 3 and scores(chapter, book)["ada"][0] == 3


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_limit_that_cost_nothing_is_not_run_again(perfect, full):
    perfect.insert("ch99-three", "while True: pass")
    assert perfect.run(limits=Limits(cell=0.5, notebook=60, patience=100)) == full
    assert perfect.graded.metadata.hit and rerun.hit(perfect.graded) == []
