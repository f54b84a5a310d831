"""What a result depends on, as one hash: the same notebook, source, environment and limits need not be run again."""

import hashlib
import platform
import stat
from functools import cache
from importlib import metadata
from pathlib import Path

import autograder
import course
from autograder.authoring.chapters import Chapter
from autograder.grading.intake import LARGEST_FILE, submitted_files

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
    """The hash of the versions that matter and of the code of `course` and `autograder` (64 hexadecimal digits)."""
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for package in (autograder, course):
        folder = Path(package.__file__).parent
        _add(digest, folder, sorted(folder.rglob("*.py")))
    return digest.hexdigest()


def source(chapter: Chapter) -> str:
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
