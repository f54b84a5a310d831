"""The shell records what a kernel would show, in order and within limits."""

import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

from autograder.wire.shell import ERROR_LIMIT, OUTPUT_LIMIT, make_shell


@pytest.fixture(scope="module")
def shell():
    return make_shell()


def kinds(outputs) -> list[str]:
    return [output.get("name", output.output_type) for output in outputs]


def test_streams_displays_and_results_keep_their_order(shell):
    outputs = shell.run("import sys\nprint('a')\nprint('b')\ndisplay(1)\nprint('c', file=sys.stderr)\nprint('d')\n2")
    assert kinds(outputs) == ["stdout", "display_data", "stderr", "stdout", "execute_result"]
    assert outputs[0].text == "a\nb\n" and outputs[-1].data["text/plain"] == "2"


def test_none_and_a_semicolon_show_nothing(shell):
    assert shell.run("None") == [] and shell.run("3;") == []


def test_an_error_is_an_output_and_the_next_cell_runs(shell):
    outputs = shell.run("print(1)\nlist(range(3))[7]\nprint(2)")
    assert kinds(outputs) == ["stdout", "error"]
    assert (outputs[1].ename, outputs[1].evalue) == ("IndexError", "list index out of range")
    assert shell.run("4")[0].data["text/plain"] == "4"


def test_a_syntax_error_is_an_output(shell):
    assert shell.run("def f(:")[0].ename == "SyntaxError"


@pytest.mark.parametrize(
    "source", ["print(1)\n2", "3;", "x = 4", "None", "1 / 0", "raise SystemExit(0)", "%timeit -n 1 -r 1 1", "def f(:", ""]
)
@pytest.mark.filterwarnings("ignore:To exit")
def test_a_cell_that_is_prepared_shows_what_it_shows_otherwise(source):
    shell = make_shell()
    expected = shell.run(source)
    shell.prepare(source)
    found = shell.run(source)
    assert kinds(found) == kinds(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.get("data") == other.get("data") and one.get("ename") == other.get("ename")


def test_an_error_that_cannot_be_formatted_is_an_error_without_its_frames(shell, monkeypatch):
    def broken(*args, **kwargs):
        raise AssertionError("hidden")

    monkeypatch.setattr(shell.InteractiveTB, "structured_traceback", broken)
    (output,) = shell.run("1 / 0")
    assert (output.ename, output.evalue, output.traceback) == ("ZeroDivisionError", "division by zero", [])


@pytest.mark.filterwarnings("ignore:To exit")
def test_the_exit_of_a_cell_is_an_error_of_its_own(shell):
    assert shell.run("raise SystemExit(0)")[0].ename == "SystemExit"
    assert shell.run("5")[0].data["text/plain"] == "5"


def test_html_is_recorded(shell):
    (output,) = shell.run("from IPython.display import HTML\nHTML('<b>x</b>')")
    assert output.data["text/html"] == "<b>x</b>"


def test_magics_and_await_work(shell):
    assert "execute_result" in kinds(shell.run("import asyncio\nawait asyncio.sleep(0, 7)"))
    assert shell.run("%timeit -n 1 -r 1 1")[0].name == "stdout"


def test_a_failed_check_shows_its_message_only(shell):
    (output,) = shell.run("from course.checks import CheckFailed\nraise CheckFailed('two\\nlines')")
    assert output.traceback == ["two", "lines"]


def test_long_output_is_cut_and_its_end_is_kept(shell):
    outputs = shell.run(f"print('x' * {3 * OUTPUT_LIMIT})\nprint('the end')\n6")
    assert sum(len(o.get("text", "")) for o in outputs) < 1.1 * OUTPUT_LIMIT
    assert "output cut" in outputs[0].text and outputs[-1].text.endswith("the end\n")


def test_a_result_after_much_output_is_still_the_result(shell):
    outputs = shell.run(f"for _ in range(3): print('x' * {OUTPUT_LIMIT})\n2.5")
    assert [o.data["text/plain"] for o in outputs if o.output_type == "execute_result"] == ["2.5"]


def test_a_huge_display_is_left_out(shell):
    assert shell.run(f"from IPython.display import HTML\ndisplay(HTML('x' * {2 * OUTPUT_LIMIT}))") == []


@pytest.mark.parametrize("error", ["ValueError('x' * 10**7)", "type('E', (Exception,), {'__str__': lambda self: 1 / 0})()"])
def test_an_unfriendly_error_is_kept_short(shell, error):
    errors = [o for o in shell.run(f"raise {error}") if o.output_type == "error"]
    assert errors and all(len(o.evalue) <= ERROR_LIMIT and sum(map(len, o.traceback)) <= 10 * ERROR_LIMIT for o in errors)


def test_each_cell_starts_empty(shell):
    shell.run("print('x')")
    assert kinds(shell.run("1")) == ["execute_result"]


def test_a_shell_takes_the_place_of_one_that_a_library_made():
    type(InteractiveShell.instance()).clear_instance()
    other = InteractiveShell.instance()
    for _ in range(2):
        shell = make_shell()
        assert shell is not other and shell is InteractiveShell.instance()


def test_a_new_shell_knows_nothing_of_the_old(shell):
    shell.run("old = 1")
    assert make_shell().run("old")[0].ename == "NameError"


# ---------------------------------------------------------------- shell lines and magics


def text(outputs) -> str:
    return "".join(o.text for o in outputs if o.output_type == "stream")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("!echo hi", "!echo hi"),
        ("!!echo hi", "!echo hi"),
        ("get_ipython().system('echo hi')", "!echo hi"),
        ("get_ipython().system_raw('echo hi')", "!echo hi"),
        ("%sx echo hi", "%sx echo hi"),
        ("%pip install torch", "%pip install torch"),
        ("%conda list", "%conda list"),
        ("%ls", "!ls"),
        ("%debug", "%debug"),
        ("%pdb on", "%pdb on"),
        ("%edit", "%edit"),
    ],
)
def test_what_needs_a_shell_or_a_person_says_so_and_the_cell_goes_on(shell, line, told):
    outputs = shell.run(f"{line}\nx = 3\nx")
    assert outputs[-1].output_type == "execute_result" and "error" not in kinds(outputs)
    assert "was not run" in text(outputs) and told in text(outputs) and sys.prefix not in text(outputs)
    assert "hi\r\n" not in text(outputs)


@pytest.mark.parametrize("magic", ["bash", "sh", "script bash", "python3", "perl", "sx", "!"])
def test_cells_for_other_programs_say_so(shell, magic):
    outputs = shell.run(f"%%{magic}\necho hi")
    assert kinds(outputs) == ["stdout"] and "was not run" in text(outputs)


def test_the_output_of_a_shell_line_is_an_empty_list(shell):
    outputs = shell.run("x = !ls\ny = get_ipython().getoutput('ls', split=False)\nx == [] and x.n == '' and y == ''")
    assert "not run" in text(outputs) and outputs[-1].data["text/plain"] == "True"


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline\nx = 3",
        "%matplotlib widget\nx = 3",
        "%matplotlib notebook\nx = 3",
        "%config InlineBackend.figure_format = 'retina'\nx = 3",
        "%load_ext autoreload\n%autoreload 2\nx = 3",
        "%time x = 3",
        "%%time\nx = 3",
        "%%capture\nprint(1)\nx = 3",
        "%timeit -n1 -r1 1 + 1\nx = 3",
        "%prun -q 1 + 1\nx = 3",
        "%xmode Plain\nx = 3",
        "%env TOY=1\nx = 3",
        "%pylab inline\nx = 3",
        "len?\nx = 3",
        "x = 3\n%who",
    ],
)
def test_harmless_magics_work(shell, source):
    outputs = shell.run(source)
    assert "error" not in kinds(outputs) and "Error" not in text(outputs), outputs
    assert shell.user_ns["x"] == 3


@pytest.mark.parametrize(
    "line", ["%nothing here", "%store x", "%load_ext nothing", "%matplotlib --nothing", "%env NOTHING", "%less a"]
)
def test_a_magic_that_is_unknown_or_fails_prints_and_the_cell_goes_on(shell, line):
    outputs = shell.run(f"{line}\nx = 3")
    assert "error" not in kinds(outputs) and "Error" in text(outputs) and shell.user_ns["x"] == 3
    assert "Cell magic `%%nothing` not found" in text(shell.run("%%nothing\nx = 3"))


@pytest.mark.parametrize("source", ["%time 1 / 0", "%timeit -n1 -r1 1 / 0", "%%time\n1 / 0", "%%capture\n1 / 0"])
def test_an_error_in_what_a_magic_runs_is_an_error(shell, source):
    assert kinds(shell.run(source))[-1] == "error" and shell.run(source)[-1].ename == "ZeroDivisionError"


def test_a_magic_reads_the_names_of_the_cell(shell):
    outputs = shell.run("name = 5\n%timeit -n1 -r2 name + 1\n%env TOY={name + 1}\n%time y = name + 1\ny")
    assert "2 runs" in text(outputs) and "TOY=6" in text(outputs) and outputs[-1].data["text/plain"] == "6"
