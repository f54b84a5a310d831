"""What is installed is complete: the students' zip in an environment of its own, and the project as a package."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_core.paths import jupyter_config_path
from jupyterlab_server.config import get_page_config
from nbconvert.preprocessors import ExecutePreprocessor
from nbgrader.apps import NbGrader
from nbgrader.preprocessors import Execute

from autograder.authoring.bundle import FOLDER, bundle
from autograder.authoring.chapters import find_chapters, grade_id, tags

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = find_chapters(ROOT)
WHOLE = "f01"  # the chapter that is run from end to end
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "JUPYTER_CONFIG_PATH")}
OFFLINE = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]


def files_of(*folders: str) -> set[str]:
    """What git has there, and what it would take in."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The students' zip, unpacked where there is nothing else."""
    place = tmp_path_factory.mktemp("student")
    bundle(CHAPTERS, place / "course.zip")
    zipfile.ZipFile(place / "course.zip").extractall(place)
    return place / FOLDER


@pytest.fixture(scope="module")
def python(unpacked):
    """The Python of an environment that the zip was installed in; what it depends on is borrowed, not downloaded."""
    environment = unpacked / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout.strip())
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")  # after its own; no .pth in there is read
    command = [sys.executable, "-m", "pip", "--python", python, *OFFLINE, unpacked]
    subprocess.run(command, check=True, env=ENVIRONMENT, cwd=unpacked)
    return python


def settings(python: Path) -> Path:
    """Where the environment's Jupyter looks for its configuration."""
    return python.parents[1] / "etc" / "jupyter"


def test_the_zip_has_all_of_the_course(unpacked):
    there = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert {name for name in there if name.startswith(("course/", "jupyter/"))} == files_of("course", "jupyter")


def test_both_readmes_give_the_line_for_a_machine_without_a_gpu(unpacked):
    for readme in (ROOT / "README.md", unpacked / "README.md"):
        assert re.search(r"\n\.venv/bin/pip install .+ --index-url https://download\.pytorch\.org/whl/cpu\n", readme.read_text())


def test_the_zip_installs_all_of_the_course(unpacked, python):
    code = "import course; print(course.__version__); print(course.__file__)"
    told = subprocess.run([python, "-c", code], cwd=unpacked / "chapters", capture_output=True, text=True, env=ENVIRONMENT)
    version, file = told.stdout.splitlines()
    installed = Path(file).parent
    assert version == tomllib.loads((unpacked / "pyproject.toml").read_text())["project"]["version"]
    assert installed.is_relative_to(python.parents[1]), told
    there = {f"course/{p.relative_to(installed).as_posix()}" for p in installed.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert there == files_of("course")


def test_chapters_run_in_the_environment_of_the_zip(unpacked, python, monkeypatch):
    """One whole, as its student finds it; of the others, the cell that sets up."""
    spec = KernelSpec(argv=[str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python")
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: spec)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a student's figures are drawn by the notebook
    (chapter,) = [chapter for chapter in CHAPTERS if chapter.id == WHOLE]
    path = unpacked / "chapters" / chapter.stem / f"{chapter.stem}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    asked = {grade_id(cell) for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")}
    others = [nbformat.read(p, as_version=4).cells[1] for p in sorted((unpacked / "chapters").glob("*/*.ipynb")) if p != path]
    assert len(others) == len(CHAPTERS) - 1
    notebook.cells += others
    ExecutePreprocessor(timeout=600, startup_timeout=300, iopub_timeout=120, allow_errors=True).preprocess(
        notebook, {"metadata": {"path": str(path.parent)}}
    )
    errors = {
        i: f"{output.ename}: {output.evalue}"
        for i, cell in enumerate(notebook.cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error" and grade_id(cell) not in asked
    }
    wanted = {i for i, cell in enumerate(notebook.cells) if "raises-exception" in tags(cell) and i in errors}
    assert {i: error for i, error in errors.items() if i not in wanted} == {}
    kinds = {tag: [shown(c) for c in notebook.cells if tag in tags(c) and c.cell_type == "code"] for tag in ("figure", "widget")}
    assert kinds["figure"] and all("image/svg+xml" in kind for kind in kinds["figure"])
    assert len(kinds["widget"]) == 1 and "application/vnd.jupyter.widget-view+json" in kinds["widget"][0]
    states = [
        model["state"] for model in notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    ]
    assert any(len(state.get("_esm", "")) > 1000 and state.get("_css") for state in states)  # its program and its look came along


def shown(cell) -> set[str]:
    return {kind for output in cell.outputs for kind in output.get("data", {})}


def test_students_see_validate_and_nothing_of_a_teachers_menu(python, monkeypatch):
    for folder in ("labconfig", "jupyter_server_config.d"):
        assert {path.name for path in (settings(python) / folder).iterdir()} == {
            p.name for p in (ROOT / "jupyter" / folder).iterdir()
        }
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(settings(python)))
    extensions = Path(sys.prefix, "share", "jupyter", "labextensions")
    disabled = get_page_config([str(extensions)])["disabledExtensions"]
    program = "".join(path.read_text() for path in (extensions / "@jupyter" / "nbgrader" / "static").glob("*.js"))
    plugins = set(re.findall(r'id: ?"(@jupyter/nbgrader:[a-z-]+)"', program))
    assert plugins - set(disabled) == {"@jupyter/nbgrader:validate-assignment"}
    served = json.loads(Path(sys.prefix, "etc/jupyter/jupyter_server_config.d/nbgrader.json").read_text())
    ours = json.loads((settings(python) / "jupyter_server_config.d" / "students.json").read_text())
    on = served["ServerApp"]["jpserver_extensions"] | ours["ServerApp"]["jpserver_extensions"]
    assert [name for name, is_on in on.items() if is_on] == ["nbgrader.server_extensions.validate_assignment"]


def test_validate_waits_for_a_slow_machine(python, monkeypatch, tmp_path):
    """As nbgrader's Validate button reads it, wherever JupyterLab was started."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(settings(python)))
    monkeypatch.chdir(tmp_path)
    app = NbGrader()
    app.config_file_paths.append(jupyter_config_path())
    app.load_config_file()
    run = Execute(config=app.config)
    assert run.timeout >= 600 and run.iopub_timeout >= 60 and run.startup_timeout >= 300


def test_the_project_as_a_package_is_complete(tmp_path):
    """What git has of its packages is in the sdist, and in the wheel that is made of it, and nothing else."""
    packages = files_of("autograder", "course")
    for name in packages | files_of("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "LICENSE-TEXT", "tests"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "source" / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, tmp_path / "source"]
    subprocess.run(command, check=True, env=ENVIRONMENT, cwd=tmp_path, stdout=subprocess.DEVNULL)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        held = {member.name.partition("/")[2] for member in file if member.isfile()}
    assert {name for name in held if not re.match(r"PKG-INFO|setup\.cfg|.*\.egg-info/", name)} == packages | {
        "pyproject.toml",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
        "LICENSE-TEXT",
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == packages
    assert {Path(name).name for name in names} >= {"LICENSE", "LICENSE-TEXT", "entry_points.txt"}
