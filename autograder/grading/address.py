"""What decides points, as one hash: the same notebook, source, environment and limits need not be run again."""

import ast
import hashlib
import platform
import stat
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import course
from autograder.authoring.chapters import Chapter
from autograder.grading.submitted import LARGEST_FILE, TIMESTAMP, submitted_files

HERE, COURSE = Path(__file__).resolve().parents[1], Path(course.__file__).resolve().parent
ROOTS = (
    "autograder.grading.submission",  # read, merged, scored
    "autograder.trusted.runner",
    "autograder.confined.template",
    "autograder.confined.server",  # the engine starts these three by name
    "autograder.answers",
)
SHOWS = {"plots.py", "widgets"}
# Whose versions can change what a cell gives or how it is graded.
MATTER = (
    "ipython",
    "matplotlib",
    "matplotlib-inline",
    "mpmath",
    "nbformat",
    "nbgrader",
    "numpy",
    "pandas",
    "scipy",
    "sympy",
    "torch",
)


def versions() -> dict[str, str]:
    """The versions that matter, of what is installed here."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in MATTER:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


@cache
def environment() -> str:
    """The hash of the versions that matter and of the code that decides points (64 hexadecimal digits)."""
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for folder, paths in ((HERE, decisive()), (COURSE, sorted(_reference()))):
        _add(digest, folder, paths)
    return digest.hexdigest()


def decisive() -> list[Path]:
    """The files of `autograder` that decide points: what the processes of a run import, and what those import.

    Commands, pages, platforms and the gradebook are not among them, so that a class is not graded anew for their sake.
    """
    found: set[Path] = set()
    waiting = list(ROOTS)
    while waiting:
        path = _file(waiting.pop())
        if path is None or path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "autograder":
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return sorted(found)


def _file(module: str) -> Path | None:
    path = HERE.joinpath(*module.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _reference() -> Iterator[Path]:
    """The files of `course` but for what only shows."""
    for path in COURSE.rglob("*.py"):
        if path.relative_to(COURSE).parts[0] not in SHOWS:
            yield path


def source_of(chapter: Chapter) -> str:
    """The hash of what a chapter's grading reads: its notebook, its answers, the files that were released with it."""
    digest = hashlib.sha256(environment().encode())
    _add(digest, chapter.root, [path for path in (chapter.path, chapter.answers) if path.is_file()])
    given = chapter.release.parent
    _add(digest, given, sorted(path for path in given.rglob("*") if path.is_file() and path.suffix != ".ipynb"))
    return digest.hexdigest()


def fingerprint(source: str, folder: Path, notebook: Path | None, *settings: object) -> str:
    """The address of a result: the hash of the source, of all that was handed in, and of the settings it is run with."""
    digest = hashlib.sha256(repr((source, settings)).encode())
    if notebook is not None:
        _add(digest, folder, [notebook])
    for path, kind in submitted_files(notebook.parent if notebook else folder):
        if path.name == TIMESTAMP:  # no cell sees it, and it says when, not what
            continue
        digest.update(repr((str(path), stat.S_IFMT(kind))).encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(kind):
            _add(digest, folder, [path])
    return digest.hexdigest()


def _add(digest, root: Path, paths: list[Path]) -> None:
    for path in paths:
        about = path.lstat()
        digest.update(repr((str(path.relative_to(root)), about.st_size)).encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST_FILE:
            digest.update(path.read_bytes())
        else:  # too large to be read for this
            digest.update(repr(about.st_mtime_ns).encode())
