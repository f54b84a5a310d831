"""The programs beside Python that print and check the book: `python -m book.tools` installs what is missing.

Chromium prints the PDF and runs the browser tests, epubcheck judges the EPUB, and axe-core, which npm brings
to tests/book/node_modules, judges whether pages can be used by everyone.
"""

import os
import shutil
import subprocess
import sys

from book.registry import ROOT

PROGRAMS = {"chromium": "chromium", "epubcheck": "epubcheck"}  # what is run: Debian's package


class ToolError(Exception):
    """A program is missing and cannot be installed here; the message says what to do."""


def apt_install(*packages: str) -> None:
    """Install packages of Debian with apt-get.

    Raises:
        ToolError: if there is no apt-get, or it may not.
    """
    if shutil.which("apt-get") is None:
        raise ToolError(f"there is no apt-get here to install {' and '.join(packages)}")
    command = [*([] if os.geteuid() == 0 else ["sudo", "-n"]), "apt-get"]
    print(f"Installing {' '.join(packages)}", flush=True)
    for arguments in (["update", "--quiet"], ["install", "--quiet", "--yes", "--no-install-recommends", *packages]):
        try:
            done = subprocess.run([*command, *arguments], capture_output=True, text=True)
            told = done.stderr.strip() if done.returncode else ""
        except FileNotFoundError:
            told = "there is no sudo"
        if told:
            raise ToolError(
                f"apt-get could not install {' '.join(packages)} ({told}). As root: apt-get install {' '.join(packages)}"
            )


def install() -> None:
    """Install what is missing.

    Raises:
        ToolError: if something cannot be installed here.
    """
    if missing := [package for program, package in PROGRAMS.items() if shutil.which(program) is None]:
        apt_install(*missing)
    if shutil.which("npm") is None:
        raise ToolError("the browser tests need npm: install Node.js 18 or later with npm")
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=ROOT / "tests" / "book", capture_output=True, text=True
    )
    if done.returncode:
        raise ToolError(f"npm could not install axe-core: {done.stderr.strip()}")


def main() -> int:
    """The command; returns its exit code."""
    try:
        install()
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
