"""The template of the student side and its children, with and without the sandbox."""

import io
import os
import signal
import tarfile
import threading

import pytest

from autograder.confined.template import words
from autograder.engine.student import DEPTH, FILES, Template, pack
from autograder.errors import CourseError, SandboxError
from autograder.limits import KINDS, Limits
from tests.autograder.inside import Asked

SERVE = "tests.autograder.inside:serve"


@pytest.fixture(scope="module", params=KINDS)
def template(request):
    with Template(request.param, serve=SERVE) as started:
        try:
            started.wait()
        except SandboxError as error:
            pytest.skip(str(error))
        yield started


@pytest.fixture
def student(template):
    with template.fork() as started:
        yield Asked(started)


# ---------------------------------------------------------------- what is warm


def test_one_thread_and_all_imported(student):
    assert student("result = len(os.listdir('/proc/self/task')) if os.path.exists('/proc/self/task') else 1") == 1
    assert (
        student(
            "result = [n for n in ('torch', 'torch._dynamo', 'matplotlib.pyplot', 'sympy', 'IPython') if n not in sys.modules]"
        )
        == []
    )
    assert student("import torch; result = torch.get_num_threads(), torch.cuda.is_initialized()") == [1, False]


def test_nothing_of_the_grader_is_imported(student):
    names = student("result = [name for name in sys.modules if name.startswith(('autograder', 'nbgrader', 'source'))]")
    rooms = {name.split(".")[1] for name in names if name != "autograder"}
    assert rooms <= {"confined", "walls", "errors", "limits"}
    assert not any(name.startswith("nbgrader") for name in names)


def test_notebook_code_works(student):
    assert student("import torch; w = torch.ones(3, requires_grad=True); (w * w).sum().backward(); result = w.grad.tolist()") == [
        2,
        2,
        2,
    ]
    assert student("o = torch.optim.Adam([w]); o.step(); result = bool((w < 1).all())") is True
    code = "import io; from matplotlib import pyplot; f = io.BytesIO(); pyplot.plot([1, 2]); pyplot.title('α $x^2$'); pyplot.savefig(f)"
    assert student(f"{code}; result = f.getvalue()[:4]") == repr(b"\x89PNG")
    assert student("from course import attention; result = attention.__name__") == "course.attention"
    nothing_of_tests = "from course import checks; result = checks.grader == checks.Grader() and checks.Exercise._current is None"
    assert student(nothing_of_tests) is True


def test_modules_beside_the_notebook_are_found(template, tmp_path):
    (tmp_path / "helper.py").write_text("six = 6")
    with template.fork(files=tmp_path) as started:
        assert Asked(started)("import helper; result = helper.six") == 6


def test_random_numbers_are_fresh(template):
    code = "import random, numpy, torch; result = [random.random(), float(numpy.random.rand()), float(torch.rand(()))]"
    seen = []
    for _ in range(3):
        with template.fork() as started:
            seen.append(Asked(started)(code))
    for numbers in zip(*seen, strict=True):
        assert len(set(numbers)) == 3


# ---------------------------------------------------------------- how it ends


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("os._exit(3)", "ended itself with exit code 3"),
        ("os._exit(0)", "ended itself with exit code 0"),
        (
            "import ctypes; ctypes.string_at(0)",
            "crashed: a recursion without end, or a fault in compiled code (segmentation fault)",
        ),
        ("import socket; socket.socket(fileno=3).close()", "ended itself with exit code 1"),
    ],
)
def test_how_it_ended(student, code, how):
    assert student.ends(code) == how


def test_what_computes_beside_all_questions_is_ended_too(template):
    limits = Limits(notebook=-4.5)  # which leaves one second for a process
    with template.fork(limits) as started:
        assert limits.processor == 1 and Asked(started).ends("while True: pass") == "was ended: it used 1 s of processor time"


def test_it_runs(student):
    assert student.student.how_it_ended(wait=0) is None
    student.student.kill()
    assert student.student.how_it_ended() == "was stopped"
    student.student.kill()


def test_the_end_comes_before_the_kill(student):
    student.ends("os._exit(7)")
    student.student.kill()
    assert student.student.how_it_ended() == "ended itself with exit code 7"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (signal.SIGKILL, "was killed, most likely for want of memory"),
        (signal.SIGBUS, "crashed"),
        (signal.SIGABRT, "was ended by the signal SIGABRT"),
        (9 << 8, "ended itself with exit code 9"),
    ],
)
def test_words(status, told):
    assert words(status).startswith(told)


def test_a_kill_stops_what_runs(student):
    student.stream.write(
        b'"import signal\\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\\nwhile True:\\n    try:\\n        while True: pass\\n    except BaseException: pass"\n'
    )
    student.stream.flush()
    student.student.kill()
    assert student.student.how_it_ended() == "was stopped"


def test_the_working_folder_is_removed(template):
    with template.fork() as started:
        place = Asked(started)("result = os.getcwd()")
    assert not os.path.exists(place)


# ---------------------------------------------------------------- several, and none


def test_several_threads_use_one_template(template):
    answers = []

    def use(number):
        with template.fork() as started:
            answers.append(Asked(started)(f"result = {number} * 2"))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 2, 4, 6, 8, 10]


def test_an_unknown_kind():
    with pytest.raises(CourseError, match="full, none, not half"):
        Template("half")


def test_a_template_that_cannot_start():
    with Template("none", serve="no_such_module:serve") as template, pytest.raises(CourseError, match="no_such_module"):
        template.fork()


def test_a_template_that_is_gone_is_started_anew():
    with Template("none", serve="tests.autograder.inside:serve") as template:
        lost = template.fork()
        template.process.kill()
        with template.fork() as student:
            assert "is gone" in lost.how_it_ended()
            lost.kill()
            assert Asked(student)("result = 6 * 7") == 42


# ---------------------------------------------------------------- files


def packed(folder, size=1000):
    archive = io.BytesIO()
    left_out = pack(folder, archive, size)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        return {
            member.name: tar.extractfile(member).read() if member.isfile() else member.linkname or None for member in tar
        }, left_out


def test_files_and_folders_are_packed(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_bytes(b"1,2")
    (tmp_path / "b.txt").write_bytes(b"b")
    for name in ("ch99.ipynb", ".hidden"):
        (tmp_path / name).write_text("no")
    assert packed(tmp_path) == ({"b.txt": b"b", "data": None, "data/a.csv": b"1,2"}, [])


def test_links_stay_links(tmp_path):
    (tmp_path / "secret").write_text("of another student")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    assert packed(folder) == ({"file": str(tmp_path / "secret"), "folder": str(tmp_path)}, [])


def test_what_is_no_file_is_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes(1001))
    (tmp_path / "ok").write_bytes(b"ok")
    assert packed(tmp_path) == ({"ok": b"ok"}, ["large", "pipe"])


def test_the_sum_of_sizes_counts(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(bytes(400))
    files, left_out = packed(tmp_path)
    assert (list(files), left_out) == (["a", "b"], ["c"])


def test_deep_folders_and_many_names_are_cut(tmp_path):
    deep = tmp_path
    for _ in range(DEPTH + 5):
        deep = deep / "d"
        deep.mkdir()
    files, left_out = packed(tmp_path)
    assert len(files) <= DEPTH + 1
    assert left_out
    many = tmp_path / "many"
    many.mkdir()
    for number in range(FILES + 1):
        os.symlink("x", many / str(number))
    files, left_out = packed(many)
    assert len(files) == FILES
    assert len(left_out) == 1


def test_a_folder_that_is_not_there(tmp_path):
    assert packed(tmp_path / "none") == ({}, [""])


def test_odd_names_arrive(template, tmp_path):
    names = ["with space", "ünïcode", os.fsdecode(b"latin-\xe9"), "new\nline"]
    for name in names:
        (tmp_path / name).write_text(name.encode("ascii", "replace").decode())
    (tmp_path / "outside").symlink_to("/etc/hostname")
    with template.fork(files=tmp_path) as started:
        assert started.left_out == []
        assert sorted(Asked(started)("result = os.listdir()")) == sorted([*names, "outside"])


def test_files_beyond_the_folder_are_told(template, tmp_path):
    (tmp_path / "large").write_bytes(bytes(3 << 20))
    with template.fork(Limits(folder=4 << 20), tmp_path) as started:
        assert started.left_out == ["large"]
        assert Asked(started)("result = os.listdir()") == []
