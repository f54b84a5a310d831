"""What those who carry the project on expect: one version everywhere, a changelog, a citation, workflows, images."""

import ast
import datetime
import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import check_jsonschema
import pytest
import yaml
from click.testing import CliRunner

import autograder
import course
from autograder.authoring.bundle import FOLDER, bundle
from autograder.authoring.chapters import find_chapters
from book import dist
from book.registry import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
DISTRIBUTIONS = packages_distributions()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
CONTAINERFILE = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()


def test_readme_names_the_chapters_that_there_are():
    readme, stems = (ROOT / "README.md").read_text(encoding="utf-8"), [chapter.stem for chapter in find_chapters(ROOT)]
    assert re.findall(r"\]\(source/(\w+)\)", readme) == stems
    assert f"There are {len(stems)} chapters so far" in readme


# ---------------------------------------------------------------- what is needed


def named(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in requirements}


@pytest.mark.parametrize(
    "package, extras",
    [
        ("course", ("trained", "dev")),
        ("autograder", ("student", "grader", "postgres", "cluster", "dev")),
        ("book", ("grader", "book")),
    ],
)
def test_what_a_package_imports_is_required_by_name(package, extras):
    """What comes only with something else goes when that goes."""
    asked = named(PROJECT["dependencies"]).union(*(named(PROJECT["optional-dependencies"][extra]) for extra in extras))
    ours, missing = {"course", "autograder", "book", "experiments", "benchmarks"}, set()
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for module in {name.partition(".")[0] for name in names} - ours - sys.stdlib_module_names:
                if not {name.lower().replace("_", "-") for name in DISTRIBUTIONS.get(module, ())} & asked:
                    missing.add(f"{path.relative_to(ROOT)} imports {module}")
    assert not missing


# ---------------------------------------------------------------- one version


def test_the_package_has_the_version_of_pyproject():
    told = "after an edit of pyproject.toml the environment is made anew by `make setup`"
    assert course.__version__ == autograder.__version__ == VERSION, told
    assert subprocess.run(["autograder", "--version"], capture_output=True, text=True).stdout == f"autograder {VERSION}\n"


def test_the_students_zip_has_it(tmp_path):
    bundle(find_chapters(ROOT)[:1], tmp_path / "course.zip")
    with zipfile.ZipFile(tmp_path / "course.zip") as file:
        project = tomllib.loads(file.read(f"{FOLDER}/pyproject.toml").decode())["project"]
        assert f"version {VERSION} of the course" in file.read(f"{FOLDER}/README.md").decode()
    assert project["version"] == VERSION
    assert (PROJECT["name"], project["name"]) == course._NAMES  # under which it looks for itself
    extras = PROJECT["optional-dependencies"]
    assert project["optional-dependencies"] == {extra: extras[extra] for extra in ("student", "trained")}


def test_the_changelog_and_the_citation_have_it():
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", CHANGELOG, re.MULTILINE)
    assert released[0] == (VERSION, CITATION["date-released"]) and CITATION["version"] == VERSION
    datetime.date.fromisoformat(CITATION["date-released"])
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings == ["[Unreleased]", *(f"[{number}] - {date}" for number, date in released)]
    assert [number for number, _ in released] == sorted((number for number, _ in released), key=numbers, reverse=True)


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


# ---------------------------------------------------------------- what a release hands out


def test_the_notes_of_a_release_are_the_changelogs():
    assert dist.notes(CHANGELOG, VERSION).startswith("The first version.\n" if VERSION == "0.1.0" else "#")
    two = "# C\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-01\n\n- b\n\n## [0.1.0] - 2026-01-01\n\n- a\n"
    assert (dist.notes(two, "0.2.0"), dist.notes(two, "0.1.0")) == ("- b\n", "- a\n")
    for unknown in ("0.3.0", "0.2", "0x2.0"):
        with pytest.raises(dist.DistError, match="Unreleased"):
            dist.notes(two, unknown)


def test_a_tag_of_another_version_makes_nothing(tmp_path, capsys):
    with pytest.raises(dist.DistError, match=rf"v9\.9\.9 is not v{re.escape(VERSION)}"):
        dist.make(tmp_path / "dist", "v9.9.9")
    assert not (tmp_path / "dist").exists()
    assert dist.main("v9.9.9") == 1 and "v9.9.9" in capsys.readouterr().err


def test_the_release_has_all_files_and_their_sums(tmp_path, monkeypatch):
    """Without the printing of the book, which tests/book does."""
    for form in (dist.pdf, dist.epub):
        path = tmp_path / "build" / "book" / f"{form.NAME}.{form.__name__.rpartition('.')[2]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(form.__name__)
        monkeypatch.setattr(form, "main", lambda: 0)
    built = []
    monkeypatch.setattr(dist, "stale", lambda chapter: [])
    monkeypatch.setattr(dist.subprocess, "run", lambda command: built.append(command) or subprocess.CompletedProcess(command, 0))
    monkeypatch.setattr(dist, "bundle", lambda chapters, target: target.write_text("zip"))
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    monkeypatch.setattr(dist, "find_chapters", lambda root: [])
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    folder = dist.make(tmp_path / "dist", f"v{VERSION}")
    files = {f"{FOLDER}-{VERSION}-students.zip", f"{FOLDER}-{VERSION}.pdf", f"{FOLDER}-{VERSION}.epub"}
    assert {path.name for path in folder.iterdir()} == files | {dist.SUMS, dist.NOTES}
    sums = dict(reversed(line.split("  ")) for line in (folder / dist.SUMS).read_text().splitlines())
    assert sums == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
    assert [command[1:4] for command in built] == [["-m", "build", "--outdir"]]


# ---------------------------------------------------------------- what cannot run here is linted

SCHEMAS = {
    "vendor.citation-file-format": "CITATION.cff",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/*.yml",
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
}
# Versions of Debian's and pip's packages come from the release and from requirements.lock; the user has a name
IGNORED = ["--ignore=DL3008", "--ignore=DL3013", "--ignore=DL3066"]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_of_a_known_form_have_it(schema):
    files = sorted(ROOT.glob(SCHEMAS[schema]))
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, *map(str, files)])
    assert files and done.exit_code == 0, done.output


def test_workflows_have_no_known_weakness():
    done = subprocess.run(["zizmor", "--offline", "--no-progress", ".github"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_containerfile_has_no_known_fault():
    done = subprocess.run(["hadolint", *IGNORED, "Containerfile"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- workflows


def steps(workflow: str) -> list[dict]:
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job["steps"]]


def test_workflows_run_what_there_is():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = {name: [line for step in steps(name) for line in step.get("run", "").splitlines()] for name in WORKFLOWS}
    made = {name: {line.split()[1] for line in told if line.startswith("make ")} for name, told in lines.items()}
    assert made == {"test": set(), "book": {"book"}, "release": {"dist"}, "weekly": {"audit", "newest"}}
    assert set().union(*made.values()) <= targets
    assert {name for name in lines if ".ci/run" in lines[name]} == {"test", "weekly"}


def test_all_tests_run_on_each_python_that_is_promised():
    (job,) = WORKFLOWS["test"]["jobs"].values()
    versions = job["strategy"]["matrix"]["python"]
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    assert versions == [f"3.{minor}" for minor in range(int(low), int(high))]
    assert job["env"]["CI_PYTHONS"] == "${{ matrix.python }}" and "matrix.python" in job["container"]["image"]


def test_the_newest_versions_are_of_all_extras():
    (extras,) = re.findall(r"--editable '\.\[(.*)\]'", (ROOT / "Makefile").read_text())
    assert set(extras.split(",")) == set(PROJECT["optional-dependencies"])


def test_make_takes_torch_for_cpus_from_where_readme_says():
    """Without TORCH=cpu it is pip's own."""
    (line,) = re.findall(r"^\.venv/bin/pip install .* --index-url (\S+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    for target in ("setup", "newest"):
        command = ["make", "--dry-run", "--always-make", target]
        asked = {
            torch: subprocess.run([*command, f"TORCH={torch}"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
            for torch in ("cpu", "")
        }
        assert 'if [ "cpu" = cpu ]; then .venv/bin/pip install --quiet torch' in asked["cpu"]
        assert f" --index-url {line}; fi" in asked["cpu"] and 'if [ "" = cpu ]' in asked[""]


# ---------------------------------------------------------------- images


def stages() -> dict[str, tuple[str, list[list[str]]]]:
    """Each stage of the Containerfile: what it begins from, and its instructions as words."""
    found, name = {}, ""
    for line in CONTAINERFILE:
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[0] == "FROM":
            name = words[3]
            found[name] = words[1], []
        else:
            found[name][1].append(words)
    return found


def copies(name: str) -> list[list[str]]:
    return [words[1:] for words in stages()[name][1] if words[0] == "COPY"]


def test_an_image_takes_what_exists_and_nothing_of_a_class():
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    listed = subprocess.run(["git", "ls-files", *let_in], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert {path.partition("/")[0] for path in listed} == set(let_in)  # all are the repository's, and there
    named = {word for name in stages() for words in copies(name) for word in words[:-1] if not word.startswith("--")}
    assert named - {".", "/tmp/zip/mathematics-of-transformers"} <= set(let_in)
    assert f"/tmp/zip/{FOLDER}" in named and PROJECT["readme"] in let_in


def test_no_solution_is_in_the_students_image():
    name, taken = "hub", []
    while name in stages():
        taken += copies(name)
        name = stages()[name][0]
    assert name == "debian:bookworm-slim"
    assert [[word for word in words if word != "--chown=course"] for words in taken] == [
        ["--from=zip", f"/tmp/zip/{FOLDER}", f"/opt/{FOLDER}"],
        ["README.md", "requirements.lock", "./"],
    ]


def test_the_dev_container_names_a_stage_and_what_make_has():
    text = re.sub(r"^\s*//.*$", "", (ROOT / ".devcontainer" / "devcontainer.json").read_text(), flags=re.MULTILINE)
    told = json.loads(text)
    assert told["build"]["target"] in stages()
    assert (ROOT / ".devcontainer" / told["build"]["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert ["USER", told["remoteUser"]] in stages()[told["build"]["target"]][1]
    comments = "\n".join(line for line in (ROOT / "Containerfile").read_text().splitlines() if line.startswith("#"))
    assert all(option.removeprefix("--security-opt=") in comments for option in told["runArgs"])
