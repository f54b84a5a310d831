"""Notebooks on other people's machines: links where a repository is named, and copies that bring the course along."""

import json
import types

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from small_course import ROOT

from autograder.authoring.chapters import find_chapters
from autograder.grading.merge import merge
from book import elsewhere
from book.build import BuildError, prepare

SETTINGS = ("BOOK_REPOSITORY", "BOOK_BRANCH", "BOOK_PACKAGE", "BOOK_URL")


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def chapter():
    return next(chapter for chapter in find_chapters(ROOT) if chapter.id == "ch04")


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "https://github.com/owner/name.git")


def test_without_a_repository_there_are_no_links_and_no_copies(make, tmp_path, chapter):
    assert elsewhere.links("ch04_attention") == {} and elsewhere.copies([chapter]) == {}
    page = (prepare(make()) / "t01_coins" / "t01_coins.ipynb").read_text()
    assert "Open as notebook" in page and "colab" not in page
    (tmp_path / "stale").mkdir()
    (tmp_path / "stale" / "old.ipynb").touch()
    elsewhere.write([chapter], tmp_path / "stale")
    assert not (tmp_path / "stale" / "old.ipynb").exists()


def test_links_name_the_branch_with_the_copies(named, make, monkeypatch):
    assert elsewhere.links("ch04_attention") == {
        "Colab": "https://colab.research.google.com/github/owner/name/blob/notebooks/ch04_attention/ch04_attention.ipynb",
        "Kaggle": "https://kaggle.com/kernels/welcome?src=https://github.com/owner/name/blob/notebooks/ch04_attention/ch04_attention.ipynb",
        "Binder": "https://mybinder.org/v2/gh/owner/name/notebooks?labpath=ch04_attention/ch04_attention.ipynb",
        "VS Code": "https://vscode.dev/github/owner/name/blob/notebooks/ch04_attention/ch04_attention.ipynb",
    }
    page = (prepare(make()) / "t01_coins" / "t01_coins.ipynb").read_text()
    assert all(address.replace("ch04_attention", "t01_coins") in page for address in elsewhere.links("ch04_attention").values())
    monkeypatch.setenv("BOOK_BRANCH", "v1")
    assert "/blob/v1/" in elsewhere.links("ch04_attention")["Colab"]


def test_a_repository_elsewhere_is_refused(make, monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "https://example.org/owner/name")
    with pytest.raises(BuildError, match=r"https://github\.com/owner/name, not 'https://example.org"):
        prepare(make())


def test_a_copy_is_the_release_and_one_cell(named, monkeypatch, chapter):
    files = elsewhere.copies([chapter])
    assert files["requirements.txt"] == "mathematics-of-transformers @ git+https://github.com/owner/name\n"
    copy = nbformat.reads(files["ch04_attention/ch04_attention.ipynb"], as_version=4)
    nbformat.validate(copy)
    released = nbformat.read(chapter.release, as_version=4)
    assert [cell.id for cell in copy.cells if cell.id != "install-course"] == [cell.id for cell in released.cells]
    assert copy.cells.pop(1).source.splitlines()[-1] == f'    %pip install --quiet "{files["requirements.txt"].strip()}"'
    assert copy == released
    monkeypatch.setenv("BOOK_URL", "https://example.org/book")
    linked = elsewhere.copies([chapter])["ch04_attention/ch04_attention.ipynb"]
    assert "](https://example.org/book/ch02_tokens/ch02_tokens.html)" in linked and "](../" not in json.dumps(linked)


@pytest.mark.parametrize("there", [True, False])
def test_the_cell_installs_the_course_where_it_is_missing(named, monkeypatch, chapter, there):
    monkeypatch.setenv("BOOK_PACKAGE", "mathematics-of-transformers==0.1.0")
    copy = nbformat.reads(elsewhere.copies([chapter])["ch04_attention/ch04_attention.ipynb"], as_version=4)
    asked = []
    shell = types.SimpleNamespace(run_line_magic=lambda *given: asked.append(given))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there or None)
    exec(TransformerManager().transform_cell(copy.cells[1].source), {"get_ipython": lambda: shell})
    assert asked == ([] if there else [("pip", 'install --quiet "mathematics-of-transformers==0.1.0"')])


def test_a_copy_that_is_handed_in_is_graded_as_the_release_is(named, chapter):
    copy = nbformat.reads(elsewhere.copies([chapter])["ch04_attention/ch04_attention.ipynb"], as_version=4)
    with_it, without = merge(chapter, copy), merge(chapter, nbformat.read(chapter.release, as_version=4))
    assert with_it.flags == without.flags
    assert [cell.source for cell in with_it.notebook.cells if "find_spec" not in cell.source] == [
        cell.source for cell in without.notebook.cells
    ]
