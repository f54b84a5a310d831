"""The students' notebooks on other people's machines: links of a page to them, and copies that bring the course along.

The environment says where, in one place for all links; without BOOK_REPOSITORY there are neither links nor copies.

    BOOK_REPOSITORY   https://github.com/owner/name, the public repository
    BOOK_BRANCH       its branch that has the copies (notebooks): what `build/book/notebooks` holds, and nothing else
    BOOK_PACKAGE      what pip installs as the course: a name on PyPI; without it, the repository
    BOOK_URL          where the book stands; links between chapters lead there
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from autograder.authoring.chapters import Chapter
from book.render import render

PACKAGE = "mathematics-of-transformers"
REPOSITORY = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
LINK = re.compile(r"\]\(\.\./(\w+)/(\w+)\.ipynb(#[^)]*)?\)")


class ElsewhereError(ValueError):
    """A setting that names no place; the message says what to write."""


@dataclass(frozen=True)
class Place:
    """Where the copies are, and what they install."""

    repository: str  # owner/name
    branch: str
    package: str
    book: str  # the address of the book, with a slash at its end; empty if it has none


def place() -> Place | None:
    """What the environment says; None without BOOK_REPOSITORY.

    Raises:
        ElsewhereError: if BOOK_REPOSITORY is no repository of GitHub, whose notebooks alone Colab opens.
    """
    given = os.environ.get("BOOK_REPOSITORY", "").strip()
    if not given:
        return None
    if not (match := REPOSITORY.fullmatch(given)):
        raise ElsewhereError(f"BOOK_REPOSITORY is https://github.com/owner/name, not {given!r}")
    url = os.environ.get("BOOK_URL", "").strip()
    return Place(
        repository=match[1],
        branch=os.environ.get("BOOK_BRANCH", "").strip() or "notebooks",
        package=os.environ.get("BOOK_PACKAGE", "").strip() or f"{PACKAGE} @ git+https://github.com/{match[1]}",
        book=f"{url.rstrip('/')}/" if url else "",
    )


def links(stem: str) -> dict[str, str]:
    """The addresses under which each service opens a chapter's copy, by the service's name; none without a repository."""
    where = place()
    if where is None:
        return {}
    file, on_github = f"{stem}/{stem}.ipynb", f"{where.repository}/blob/{where.branch}"
    return {
        "Colab": f"https://colab.research.google.com/github/{on_github}/{file}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{on_github}/{file}",
        "Binder": f"https://mybinder.org/v2/gh/{where.repository}/{where.branch}?labpath={file}",
        "VS Code": f"https://vscode.dev/github/{on_github}/{file}",
    }


def notebook(chapter: Chapter, where: Place) -> str:
    """The student's notebook with one more cell, after its title, that installs the course where it is missing."""
    copy = nbformat.read(chapter.release, as_version=4)
    copy.cells.insert(1, new_code_cell(render("install.txt", package=where.package).rstrip(), id="install-course"))
    if where.book:
        for cell in copy.cells:
            if cell.cell_type == "markdown":
                cell.source = LINK.sub(lambda m: f"]({where.book}{m[1]}/{m[2]}.html{m[3] or ''})", cell.source)
    return nbformat.writes(copy) + "\n"


def copies(chapters: list[Chapter]) -> dict[str, str]:
    """The files of the branch: each chapter's copy, and what Binder installs before it starts. None without a repository."""
    where = place()
    if where is None:
        return {}
    made = {f"{c.stem}/{c.stem}.ipynb": notebook(c, where) for c in chapters if c.release.exists()}
    return made | {"requirements.txt": f"{where.package}\n"}


def write(chapters: list[Chapter], folder: Path) -> None:
    """Write the files of the branch into a folder, and take away what is not one of them."""
    files = copies(chapters)
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
