"""A new chapter is in every place at once, and works before a word of it is written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.authoring.chapters import find_chapters
from autograder.authoring.skeleton import PLACES, missing, new
from autograder.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]
STEM = "ch40_safety"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """This project with chapter 12 and what chapters share, before and after `new`."""
    root = tmp_path_factory.mktemp("project")
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    ignored = shutil.ignore_patterns("__pycache__", "data.npz")
    shutil.copytree(ROOT / "course", root / "course", ignore=ignored)
    shutil.copytree(ROOT / "book" / "reference", root / "book" / "reference")
    shutil.copy(ROOT / "book" / "_toc.yml", root / "book")
    for place in PLACES:
        path = place.at(ROOT, "ch12_inference").relative_to(ROOT)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, root / path)
    assert missing(find_chapters(root)[0]) == []
    return root, new(root, STEM)


def test_it_is_in_every_place_but_the_release(project):
    root, written = project
    assert len(written) == len(PLACES) - 1 == len(set(written))
    assert missing(find_chapters(root, ["ch40"])[0]) == [
        f"release/{STEM}/{STEM}.ipynb is missing: the student's notebook, by `autograder release`"
    ]
    lines = (root / "book" / "_toc.yml").read_text().splitlines()
    (place,) = [number for number, line in enumerate(lines) if f"file: {STEM}/" in line]
    before = [line.split("/")[-1] for line in lines[:place] if "file: ch" in line]
    assert "file: ch" in lines[place - 1]  # in the part of the last chapter before it
    assert before == sorted(before) and before[-1] < STEM
    assert not any("file: ch" in line for line in lines[place + 1 :])


def test_what_an_old_chapter_lacks_is_named(project, tmp_path):
    root = shutil.copytree(project[0], tmp_path / "project")
    (root / "course" / "inference.py").unlink()
    path = root / "book" / "reference" / "formulas.yml"
    path.write_text(path.read_text().replace("chapter: ch12_inference", "chapter: ch11_training"))
    assert missing(find_chapters(root, ["ch12"])[0]) == [
        "course/inference.py is missing: the reference code",
        "book/reference/formulas.yml lacks its formulas",
    ]


def test_it_runs_passes_its_own_tests_and_is_released(project):
    root, environment = project[0], os.environ | {"PYTHONPATH": os.pathsep.join([str(project[0]), str(ROOT)])}
    for command in (["autograder", "run", "ch40"], ["autograder", "release", "ch40"], ["autograder", "check", "ch40"]):
        done = subprocess.run([sys.executable, "-m", *command], cwd=root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    files = [f"tests/{kind}/test_safety.py" for kind in ("course", "receipts")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *files], cwd=root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("stem", "told"),
    [
        ("ch13-attention", "a chapter is called like ch04_attention"),
        ("ch99_unheard", "chapters.yml has no chapter ch99_unheard"),
        ("ch12_inference", "is there already"),
    ],
)
def test_what_cannot_be_made_is_said(project, stem, told):
    before = {path: path.read_bytes() for path in project[0].rglob("*") if path.is_file()}
    with pytest.raises(CourseError, match=told):
        new(project[0], stem)
    assert before == {path: path.read_bytes() for path in project[0].rglob("*") if path.is_file()}


def test_a_course_of_another_form_lacks_nothing(toy):
    assert missing(toy) == []
