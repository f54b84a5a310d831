"""Every program that the project, its tests or its benchmarks start is in the list of book/tools.py, and the list is enough."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from book import tools
from book.registry import ROOT
from tests import run

STARTERS = {"run", "Popen", "call", "check_call", "check_output", "which", "find", "execv", "execvp", "system", "popen"}
MODULES = {"subprocess", "shutil", "os", "asyncio", "tools", "book.tools"}
SCRIPTS = {path.name for path in Path(sysconfig.get_path("scripts")).iterdir()}  # of Python packages, in the environment
LISTED = {*tools.PROGRAMS, *tools.INSTALLERS, *(name for names in tools.OTHER_NAMES.values() for name in names)}
# Calls whose program is not written there: what they run, and where it is named.
PASSED_ON = {
    "benchmarks/grading.py": "Python; measured() gets the whole command",
    "book/pdf.py": "what browser() found",
    "book/tools.py": "the list itself",
    "experiments/training.py": "Python; one command for each candidate",
    "tests/autograder/as_user.py": "Python; what its caller names",
    "tests/run.py": "PARTS, below",
    "tests/test_tools.py": "the list itself",
}


# ---------------------------------------------------------------- what Python starts


def started(tree: ast.Module) -> list[tuple[int, str | None]]:
    """The programs that a module names in calls that start or look for one: line and name, None for one that is not plain."""
    imported = {
        a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module in MODULES for a in n.names
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and starts(node, imported & STARTERS)]
    return [(call.lineno, name) for call in calls for name in programs(first_argument(call), tree, call)]


def starts(call: ast.Call, imported: set[str]) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in imported
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.value.id in MODULES and (function.attr in STARTERS or function.attr.startswith("create_subprocess"))


def first_argument(call: ast.Call) -> ast.expr:
    return call.args[0] if call.args else next(keyword.value for keyword in call.keywords if keyword.arg == "args")


def programs(node: ast.expr, tree: ast.Module, call: ast.Call, seen: tuple = ()) -> list[str | None]:
    """What a first argument may name; Python itself is nothing."""
    match node:
        case ast.Constant(value=str(text)):
            return [shlex.split(text)[0]] if text else []
        case ast.List(elts=[ast.Starred(value=inner), *_]) | ast.Tuple(elts=[ast.Starred(value=inner), *_]):
            return programs(inner, tree, call, seen)
        case ast.List(elts=[]):
            return []
        case ast.List(elts=[inner, *_]) | ast.Tuple(elts=[inner, *_]):
            return programs(inner, tree, call, seen)
        case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
            return []
        case ast.IfExp():
            return [*programs(node.body, tree, call, seen), *programs(node.orelse, tree, call, seen)]
        case ast.BinOp(op=ast.Add()):
            return programs(node.left, tree, call, seen)
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str(text))):
            return [text]
        case ast.Call() if starts(node, STARTERS):  # subprocess.run([shutil.which("node"), ...]): named there
            return []
        case ast.Name(id=name) if name in seen:  # command = [..., *command]
            return []
        case ast.Name(id=name):
            values = assigned(name, tree, call)
            return [found for value in values for found in programs(value, tree, call, (*seen, name))] if values else [None]
    return [None]


def assigned(name: str, tree: ast.Module, call: ast.Call) -> list[ast.expr]:
    """What a name is given in the function around a call, or in the module."""
    around = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.lineno <= call.lineno <= f.end_lineno]
    for place in [*sorted(around, key=lambda f: -f.lineno), tree]:
        values = []
        for node in ast.walk(place):
            if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    pairs = [(target, node.value)]
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        pairs = list(zip(target.elts, node.value.elts, strict=True))
                    values += [value for t, value in pairs if isinstance(t, ast.Name) and t.id == name and value is not None]
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name:
                values.append(node.iter)
        if values:
            return values
    return []


def python_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True
    )
    return [ROOT / name for name in listed.stdout.decode().splitlines() if (ROOT / name).is_file()]


def test_what_python_starts_is_in_the_list():
    found = {path.relative_to(ROOT).as_posix(): started(ast.parse(path.read_text(encoding="utf-8"))) for path in python_files()}
    missing = [
        f"{path}:{line} {name}" for path, calls in found.items() for line, name in calls if name and name not in LISTED | SCRIPTS
    ]
    unclear = {path for path, calls in found.items() for _, name in calls if name is None}
    assert missing == []
    assert unclear == set(PASSED_ON)
    named = {name for calls in found.values() for _, name in calls}
    assert named >= {"chromium", "coqc", "epubcheck", "java", "node", "npm", "npx", "pdftotext", "initdb"}  # the search sees


def test_what_students_code_starts_in_the_sandboxs_tests_is_in_the_list():
    inner = re.compile(r"""subprocess\.\w+\(\[?\s*['"]([\w/.-]+)""")
    found = {
        (path.name, program)
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for program in inner.findall(node.value)
    }
    assert {(name, program) for name, program in found if Path(program).name not in LISTED | SCRIPTS} == set()


def test_no_script_of_a_page_or_a_browser_test_starts_a_program():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.js", "*.mjs"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert listed and [name for name in listed if "child_process" in (ROOT / name).read_text(encoding="utf-8")] == []


# ---------------------------------------------------------------- what a shell starts

BUILTINS = set(
    [
        ".",
        ":",
        "[",
        "break",
        "case",
        "cd",
        "command",
        "do",
        "done",
        "echo",
        "elif",
        "else",
        "esac",
        "exec",
        "exit",
        "export",
        "fi",
        "for",
        "if",
        "in",
        "set",
        "test",
        "then",
        "while",
    ]
)
BEFORE_A_COMMAND = {";", "&&", "||", "|", "(", "$(", "{", "!", "if", "then", "else", "elif", "do", "while", "exec"}


def commands(line: str) -> list[str]:
    """The programs that a line of shell starts."""
    line = re.sub(r"\$\(([A-Z_]+)\)", r"$\1", line)  # make's variables
    line = re.sub(r"\$\{[^}]*\}|\$\(\([^)]*\)\)", "$VALUE", line)
    line = line.replace('"$(', '"\n$(')  # a command inside quotes is a command
    words = re.findall(r"""'[^']*'|\$\(|&&|\|\||[;|(){}!]|(?:"[^"\n]*"|[^\s;|(){}])+""", line)
    found, first = [], True
    for word in words:
        if word in BEFORE_A_COMMAND:
            first = True
        elif first and not re.match(r"\w+=", word):
            found.append(word.strip('"@'))
            first = False
    return found


def unknown(program: str) -> bool:
    if program.startswith("$"):
        program = {"$PYTHON": "python", "$python": "python"}.get(program, program.rpartition("/")[2])
    return program not in LISTED | SCRIPTS | BUILTINS | {"python", ".ci/python"}


def test_what_the_makefile_starts_is_in_the_list():
    recipes = [line.strip().lstrip("@-") for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("\t")]
    programs = [program for line in recipes for program in commands(line)]
    assert {"grep", "python", "jupyter", "$PYTHON"} <= set(programs)
    assert [program for program in programs if unknown(program)] == []


@pytest.mark.parametrize("name", ["run", "python"])
def test_what_ci_starts_is_in_the_list(name):
    lines = [line for line in (ROOT / ".ci" / name).read_text().splitlines() if line and not line.lstrip().startswith("#")]
    programs = [p for line in lines if not re.match(r"\s*(for|home=|complete=|pythons)|[^$]*=\$\{", line) for p in commands(line)]
    assert programs and [program for program in programs if unknown(program)] == []


def test_what_the_parts_start_is_in_the_list():
    programs = [shlex.split(c)[0] for part in run.PARTS.values() for line in part for c in line.split(" & ")]
    assert [program for program in programs if unknown(program)] == []


# ---------------------------------------------------------------- the list is enough


@pytest.fixture(scope="module")
def only_the_list(tmp_path_factory):
    """A PATH with the programs of the list and of the Python environment, and nothing else."""
    folder = tmp_path_factory.mktemp("programs")
    for program in tools.PROGRAMS:
        if path := tools.find(program):
            (folder / program).symlink_to(path)
    return os.pathsep.join([sysconfig.get_path("scripts"), str(folder)])


QUIET = ("epubcheck", "java", "pdfinfo", "pdftotext", "sh")  # know no --version; Debian's epubcheck is an archive that java runs
ENTRIES = [
    *(f"{program} --version" for program in tools.PROGRAMS if program not in QUIET),
    *(f"{program} -v" for program in ("pdfinfo", "pdftotext")),
    "java -version",
    "make help",
    "make --dry-run test arithmetics demo book pdf epub lab newest dist audit",
    "bash .ci/python",
    "python -m book.tools node bash",
    "python -m book.proofs --help",
    "python tests/run.py --help",
    "autograder --help",
    "autograder doctor",
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_point_runs_with_the_programs_of_the_list_alone(entry, only_the_list):
    environment = os.environ | {"PATH": only_the_list}
    if (program := entry.split()[0]) in tools.PROGRAMS and tools.find(program) is None:
        pytest.fail(f"{program} is missing: make tools")
    done = subprocess.run(entry.split(), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert "not found" not in done.stderr, done.stderr
    assert done.returncode in ((0, 2) if entry.startswith(("python tests/run", "autograder doctor")) else (0,)), (
        done.stdout + done.stderr
    )


# ---------------------------------------------------------------- what is missing is installed, or told


@pytest.fixture
def bare(monkeypatch):
    """A machine with nothing of the list; returns what apt-get was asked for."""
    asked = []
    monkeypatch.setattr(tools, "find", lambda program: None)
    monkeypatch.setattr(tools, "apt_install", lambda *packages: asked.extend(packages))
    return asked


def test_what_is_missing_is_installed(bare):
    tools.install("pdftotext", "pdfinfo", "coqc")
    assert bare == ["coq", "libcoq-coquelicot", "poppler-utils"]


def test_where_nothing_can_be_installed_a_sentence_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    assert tools.main(["pdftotext", "chromium"]) == 1
    told = capsys.readouterr().err
    assert "missing: pdftotext, chromium" in told and "there is no apt-get here to install chromium and poppler-utils" in told


def test_an_unknown_program_is_told(capsys):
    assert tools.main(["word"]) == 2
    assert "not in the list of programs: word" in capsys.readouterr().err


# ---------------------------------------------------------------- the parts of `make test`


def test_a_part_that_fails_does_not_keep_the_next_from_running(capfd):
    parts = {"first": ["python -c 'print(1)'"], "second": ["false", "python -c 'print(2)'"], "third": ["python -c 'print(3)'"]}
    assert run.run([], parts) == 1
    said = capfd.readouterr().out
    assert [line for line in said.splitlines() if line in "123" and line] == ["1", "2", "3"]
    assert re.search(r"first +\d+\nsecond +\d+  FAILED\nthird +\d+\n$", said)
    assert run.run(["first", "third"], parts) == 0
    assert run.run(["fourth"], parts) == 2


def test_book_and_notebooks_run_at_the_same_time_and_tell_one_after_the_other(tmp_path, capfd):
    """Each waits for what the other writes."""
    wait = "bash -c 'echo {0} begins; touch {2}/{0}; until [ -e {2}/{1} ]; do sleep 0.05; done; echo {0} ends'"
    parts = {name: [wait.format(name, other, tmp_path)] for name, other in (("book", "notebooks"), ("notebooks", "book"))}
    assert run.run([], {"code": ["python -c 'print(0)'"], **parts}) == 0
    said = [line for line in capfd.readouterr().out.splitlines() if line.endswith(("begins", "ends"))]
    assert said == ["book begins", "book ends", "notebooks begins", "notebooks ends"]


def test_the_old_arithmetic_runs_when_it_is_named(tmp_path, monkeypatch, capfd):
    show = ["python -c 'import os; print(os.environ.get(\"ATEN_CPU_CAPABILITY\"))'"]
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert run.run([], {"notebooks": show, "arithmetic": show}) == 0
    assert "\ndefault\n" not in capfd.readouterr().out
    assert run.run(["notebooks", "arithmetic"], {"notebooks": show, "arithmetic": show}) == 0
    said = capfd.readouterr().out
    assert "\nNone\n" in said and "\ndefault\n" in said


# ---------------------------------------------------------------- which Python CI takes


@pytest.fixture
def clone(tmp_path):
    """A repository with .ci/python; returns a function: the Pythons there are, to what it says of a new commit."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "python", tmp_path / ".ci" / "python")
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    def choose(versions: set[str], number: int, named: str = "") -> subprocess.CompletedProcess:
        shutil.rmtree(tmp_path / "bin", ignore_errors=True)
        (tmp_path / "bin").mkdir()
        for program in ("bash", "git"):
            (tmp_path / "bin" / program).symlink_to(tools.find(program))
        for version in versions:
            (tmp_path / "bin" / f"python{version}").symlink_to(tools.find("true"))
        words = ["commit", "--quiet", "--allow-empty", "--message", str(number), "--date", "2026-01-01T00:00:00Z"]
        dated = os.environ | {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        subprocess.run(["git", *who, *words], cwd=tmp_path, env=dated, check=True)
        where = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)} | ({"CI_PYTHONS": named} if named else {})
        return subprocess.run(["bash", ".ci/python"], cwd=tmp_path, env=where, capture_output=True, text=True, check=True)

    return choose


def test_ci_takes_another_python_by_the_commit(clone):
    chosen = {clone({"3.11", "3.12", "3.13"}, number).stdout.strip() for number in range(20)}
    assert chosen == {"python3.11", "python3.12", "python3.13"}


def test_where_there_is_one_python_ci_takes_it_and_says_so(clone):
    done = clone({"3.12"}, 0)
    assert done.stdout == "python3.12\n" and "only one Python of 3.11 3.12 3.13 is installed" in done.stderr
    assert clone({"3.10"}, 0).stdout == "python3\n"


def test_ci_takes_only_pythons_that_are_named(clone):
    assert {clone({"3.11", "3.12", "3.13"}, number, "3.11").stdout for number in range(9)} == {"python3.11\n"}
    assert {clone({"3.11", "3.12", "3.13"}, number, "3.12 3.13").stdout for number in range(9)} == {
        "python3.12\n",
        "python3.13\n",
    }
