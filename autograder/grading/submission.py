"""One submission: found, read, merged with the source, run and scored."""

import json
import re
import secrets
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nbformat import NotebookNode, v4
from nbgrader.utils import is_grade

from autograder.authoring.chapters import Chapter, grade_id
from autograder.authoring.release import Release
from autograder.authoring.scoring import points
from autograder.engine.supervisor import run_notebook
from autograder.grading.address import fingerprint
from autograder.grading.merge import merge, read_submission
from autograder.grading.outputs import inert
from autograder.grading.submitted import find_notebook, received, stage
from autograder.limits import Limits


@dataclass(frozen=True)
class Options:
    """How submissions are graded. `seed` is that of the hidden inputs; without it, each submission gets its own."""

    limits: Limits = Limits()
    seed: int | None = None
    policy: str = "fair"
    sandbox: str = "full"


@dataclass
class Graded:
    """One notebook of a submission after grading. `points` are by nbgrader id; None waits for a teacher."""

    student: str
    chapter: Chapter
    notebook: NotebookNode
    points: dict[str, float | None]
    flags: list[str] = field(default_factory=list)
    received: datetime | None = None
    failed: bool = False  # nothing was recorded: something other than the submission broke
    unchanged: bool = False  # what is there already was kept
    address: str = ""  # of what was kept


@dataclass
class Found:
    """What one student handed in for one notebook, found but not yet read."""

    chapter: Chapter
    student: str
    folder: Path
    notebook: Path | None
    flags: list[str]
    received: datetime | None

    @classmethod
    def of(cls, chapter: Chapter, student: str, folder: Path, siblings: tuple[str, ...] = ()) -> "Found":
        notebook, flags = find_notebook(chapter, folder, siblings)
        when, odd = received(chapter, student, notebook)
        return cls(chapter, student, folder, notebook, flags + odd, when)

    @property
    def target(self) -> Path:
        return self.chapter.folder("autograded", self.student) / f"{self.chapter.name}.ipynb"

    def address(self, source: str, options: Options) -> str:
        return fingerprint(source, self.folder, self.notebook, repr(options))

    def is_graded(self, source: str, about: dict) -> bool:
        """Whether a graded notebook is of what is handed in now, and of today's source and software.

        Args:
            source: the hash of the chapter, `address.source_of`.
            about: what the graded notebook tells of its grading; a second run has a seed that its address does not.
        """
        told = str(about.get("settings"))
        ways = {told, re.sub(r"\bseed=\d+", "seed=None", told)}
        return about.get("address") in {fingerprint(source, self.folder, self.notebook, way) for way in ways}

    def kept(self, address: str, known: dict[str, float | None] | None) -> Graded | None:
        """What was graded before, if it is at this address and the gradebook has its scores."""
        try:
            notebook = json.loads(self.target.read_bytes())["metadata"]["autograder"]
            if known is None or notebook["address"] != address or notebook["points"] != known:
                return None
            flags = list(notebook["flags"])
            return Graded(
                self.student, self.chapter, NotebookNode(), known, flags, self.received, unchanged=True, address=address
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None


@dataclass
class Taken:
    """What counts of a submission, read: the student's notebook, if there is one, and the folder of its files."""

    chapter: Chapter
    student: str
    notebook: NotebookNode | None
    files: Path
    flags: list[str]
    received: datetime | None
    address: str | None = None

    @classmethod
    def of(cls, found: Found, files: Path, address: str | None = None) -> "Taken":
        """Read a notebook and copy its files into the empty folder `files`."""
        notebook, why = read_submission(found.notebook) if found.notebook is not None else (None, None)
        flags = found.flags + ([why] if why else [])
        if notebook is not None:
            flags += stage(found.chapter, found.folder, found.notebook, files)
        return cls(found.chapter, found.student, notebook, files, flags, found.received, address)


def grade_submission(taken: Taken, options: Options = Options(), release: Release | None = None) -> Graded:
    """Merge, run and score one notebook. Nothing that a student hands in makes this raise.

    The seed of the hidden inputs is kept in the graded notebook.
    """
    start = time.monotonic()
    merged = merge(taken.chapter, taken.notebook, release)
    notebook, flags = merged.notebook, taken.flags + merged.flags
    seed = secrets.randbits(31) if options.seed is None else options.seed
    if taken.notebook is None:
        _not_run(notebook, flags[0])
    else:
        files = taken.files if any(taken.files.iterdir()) else None
        flags += run_notebook(notebook, taken.chapter, seed, options.limits, files, options.sandbox)
    earned = {grade_id(cell): points(cell, options.policy) for cell in notebook.cells if is_grade(cell)}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = inert(cell.outputs)
    notebook.metadata.autograder = NotebookNode(
        seed=seed,
        flags=flags,
        policy=options.policy,
        points=earned,
        address=taken.address,
        settings=repr(options),
        seconds=round(time.monotonic() - start, 3),
    )
    return Graded(taken.student, taken.chapter, notebook, earned, flags, taken.received)


def _not_run(notebook: NotebookNode, why: str) -> None:
    text = f"Nothing was run: {why}."
    for cell in notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            cell.outputs = [v4.new_output("error", ename="NotRun", evalue=text, traceback=[text])]


def failure(error: Exception) -> str:
    return f"not graded: {type(error).__name__}: {error}".splitlines()[0]


def failed(chapter: Chapter, student: str, error: Exception) -> Graded:
    """The result of a submission that something else than itself kept from being graded."""
    return Graded(student, chapter, NotebookNode(), {}, [failure(error)], failed=True)
