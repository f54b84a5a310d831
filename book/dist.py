"""What a release hands out, in one folder: `python -m book.dist` writes build/dist, and `python -m book.dist v1.2.3` only
if that tag names this version.

The students' zip, the book as PDF and EPUB, wheel and sdist, the changelog's words for this version, and checksums.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from autograder.authoring.bundle import FOLDER, bundle
from autograder.authoring.chapters import find_chapters
from autograder.authoring.release import stale
from autograder.errors import CourseError
from book import epub, pdf
from book.registry import ROOT

NOTES = "notes.md"
SUMS = "SHA256SUMS"


class DistError(Exception):
    """There is nothing to hand out; the message says what to do."""


def version(root: Path = ROOT) -> str:
    """The version that pyproject.toml sets."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def notes(changelog: str, version: str) -> str:
    """What a changelog says of a version.

    Raises:
        DistError: if it says nothing.
    """
    found = re.search(rf"^## \[{re.escape(version)}\] - [^\n]+\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found or not found[1].strip():
        raise DistError(f"CHANGELOG.md has nothing under '## [{version}] - YYYY-MM-DD': move there what is under Unreleased")
    return found[1].strip() + "\n"


def sums(folder: Path) -> str:
    """The SHA-256 of each file, as `sha256sum --check` reads it."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir()))


def make(target: Path, tag: str = "") -> Path:
    """Write all of it into a folder that is made anew.

    Raises:
        DistError: if the tag is of another version, the changelog is silent, or something could not be made.
    """
    number = version()
    if tag and tag != f"v{number}":
        raise DistError(f"the tag {tag} is not v{number}: pyproject.toml has another version")
    told = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), number)
    chapters = find_chapters(ROOT)
    if old := [chapter.stem for chapter in chapters if stale(chapter)]:
        raise DistError(f"stale releases: {', '.join(old)}; run autograder release")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    bundle(chapters, target / f"{FOLDER}-{number}-students.zip")
    for form in (pdf, epub):
        if form.main():
            raise DistError(f"{form.__name__} failed: see above")
        suffix = form.__name__.rpartition(".")[2]
        shutil.copy(ROOT / "build" / "book" / f"{form.NAME}.{suffix}", target / f"{form.NAME}-{number}.{suffix}")
    if subprocess.run([sys.executable, "-m", "build", "--outdir", target, ROOT]).returncode:
        raise DistError("wheel and sdist could not be built: see above")
    (target / SUMS).write_text(sums(target))
    (target / NOTES).write_text(told, encoding="utf-8")
    return target


def main(tag: str = "") -> int:
    """The command; returns its exit code."""
    try:
        print(make(ROOT / "build" / "dist", tag))
    except (CourseError, DistError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
