"""The programs beside Python that the project, its tests and its benchmarks start, and the packages that bring them.

`python -m book.tools` installs what is missing; with names, only those: `python -m book.tools node chromium`.
npm brings axe-core, which judges whether pages can be used by everyone, to tests/book/node_modules.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from book.registry import ROOT

PROGRAMS = {  # what is run: Debian's packages
    "chromium": ("chromium",),  # draws the stills of widgets, prints the PDF, runs the browser tests
    "coqc": ("coq", "libcoq-coquelicot"),  # checks proofs
    "epubcheck": ("epubcheck",),  # judges the EPUB
    "git": ("git",),
    "initdb": ("postgresql",),  # a gradebook on a server
    "java": ("default-jre-headless",),  # runs epubcheck
    "node": ("nodejs",),  # typesets mathematics, runs the widgets' arithmetic
    "npm": ("npm",),
    "npx": ("npm",),  # fetches Lighthouse
    "pdfinfo": ("poppler-utils",),  # reads the PDF back
    "pdftotext": ("poppler-utils",),
    "pg_ctl": ("postgresql",),
    # what every Debian has, and a bare container may not; the launchers of the programs above start some of them
    "bash": ("bash",),
    "find": ("findutils",),
    "findmnt": ("util-linux",),
    "grep": ("grep",),
    "make": ("make",),
    "sed": ("sed",),
    "sh": ("dash",),
    **dict.fromkeys(("cut", "expand", "expr", "id", "ls", "rm", "sleep", "touch", "tr", "true", "uname"), ("coreutils",)),
}
OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome", "google-chrome-stable")}
PLACES = dict.fromkeys(("initdb", "pg_ctl"), "usr/lib/postgresql/*/bin")  # where Debian puts what is not on the PATH
INSTALLERS = ("apt-get", "sudo")  # used where they are there


class ToolError(Exception):
    """A program is missing and cannot be installed here; the message says what to do."""


def find(program: str) -> str | None:
    """The path of a program of the list, under any of its names; None if it is missing."""
    for name in (program, *OTHER_NAMES.get(program, ())):
        if path := shutil.which(name):
            return path
    found = Path("/").glob(f"{PLACES[program]}/{program}") if program in PLACES else ()
    newest = max(found, key=lambda path: float(path.parts[-3]), default=None)
    return newest and str(newest)


def apt_install(*packages: str) -> None:
    """Install packages of Debian with apt-get.

    Raises:
        ToolError: if there is no apt-get, or it may not.
    """
    if shutil.which("apt-get") is None:
        raise ToolError(f"there is no apt-get here to install {' and '.join(packages)}")
    command = [*([] if os.geteuid() == 0 else ["sudo", "-n"]), "apt-get"]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    print(f"Installing {' '.join(packages)}", flush=True)
    for arguments in (["update", "--quiet"], ["install", "--quiet", "--yes", "--no-install-recommends", *packages]):
        try:
            done = subprocess.run([*command, *arguments], stdin=subprocess.DEVNULL, env=quiet, capture_output=True, text=True)
            told = done.stderr.strip() if done.returncode else ""
        except FileNotFoundError:
            told = "there is no sudo"
        if told:
            raise ToolError(
                f"apt-get could not install {' '.join(packages)} ({told}). As root: apt-get install {' '.join(packages)}"
            )


def install(*programs: str) -> None:
    """Install those of the programs that are missing.

    Raises:
        ToolError: if something cannot be installed here.
    """
    missing = [program for program in programs if find(program) is None]
    packages = sorted({package for program in missing for package in PROGRAMS[program]})
    if packages:
        try:
            apt_install(*packages)
        except ToolError as error:
            raise ToolError(f"missing: {', '.join(missing)}; {error}") from None


def install_axe() -> None:
    """Let npm bring axe-core to where the browser tests find it, unless what the lock names is there.

    Raises:
        ToolError: if npm is missing or failed.
    """
    folder = ROOT / "tests" / "book"
    there = folder / "node_modules" / ".package-lock.json"
    if there.is_file() and there.stat().st_mtime >= (folder / "package-lock.json").stat().st_mtime:
        return
    if find("npm") is None:
        raise ToolError("the browser tests need npm: install Node.js 18 or later with npm")
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"npm could not install axe-core: {done.stderr.strip()}")


def main(names: list[str]) -> int:
    """The command; returns its exit code."""
    if unknown := [name for name in names if name not in PROGRAMS]:
        print(f"not in the list of programs: {', '.join(unknown)}; it has {', '.join(PROGRAMS)}", file=sys.stderr)
        return 2
    try:
        install(*(names or PROGRAMS))
        if not names:
            install_axe()
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
