"""The engine inside nbgrader: what `nbgrader_config.py` puts in the place of nbgrader's own parts.

`nbgrader autograde` and formgrader's buttons then read a submission tolerantly, merge it with the source, and run it
split and sandboxed. The notebooks run in the grading daemon (autograder/doors/daemon.py), never in the process that asks.
"""

import contextlib
import json
import logging
import os
import re
import secrets
import tempfile
from datetime import datetime
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, v4
from nbgrader import preprocessors
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, Float, default

from autograder.authoring.course_folder import Sheet
from autograder.authoring.release import Release
from autograder.doors import ask
from autograder.grading.merge import merge, read_submission
from autograder.grading.submitted import received, stage
from autograder.limits import Limits


class Submissions(NotebookExporter):
    """Reads whatever a student handed in as a notebook, and knows the course that it is made for.

    `seeds` are those of an earlier grading by graded notebook: nbgrader deletes it before the preprocessors run.
    """

    def __init__(self, **given):
        super().__init__(**given)
        self.places = self.parent.coursedir
        self.seeds = self._seeds()
        self._known: dict[tuple[str, str], tuple[Sheet, Release]] = {}
        # nbgrader believes a timestamp.txt that students can write, and gives up on one that says no time.
        self.places.get_existing_timestamp = self._received

    def from_filename(self, filename: str, resources: dict | None = None, **kw):
        where = resources["nbgrader"]
        submitted = self.places.format_path(self.places.submitted_directory, where["student"], where["assignment"])
        if Path(filename).parent != Path(submitted):
            return super().from_filename(filename, resources, **kw)
        notebook, why = read_submission(Path(filename))
        resources |= {"unreadable": notebook is None, "read": why}
        resources["metadata"] = {"name": where["notebook"], "path": submitted}
        return self.from_notebook_node(notebook or v4.new_notebook(), resources, **kw)

    def known(self, resources: dict) -> tuple[Sheet, Release]:
        """The source of a notebook, and what was released of it."""
        key = resources["nbgrader"]["assignment"], resources["nbgrader"]["notebook"]
        if key not in self._known:
            sheet = Sheet(Path(self.places.root), *key)
            self._known[key] = sheet, Release.of(sheet)
        return self._known[key]

    def _seeds(self) -> dict[Path, int]:
        pattern = self.places.format_path(self.places.autograded_directory, self.places.student_id, self.places.assignment_id)
        found = {}
        for path in Path(self.places.root).glob(os.path.join(os.path.relpath(pattern, self.places.root), "*.ipynb")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # graded by something else
                found[path] = int(json.loads(path.read_text())["metadata"]["autograder"]["seed"])
        return found

    def _received(self, folder: str) -> datetime | None:
        pattern = self.places.format_path(
            self.places.submitted_directory, "(?P<student_id>.*)", "(?P<assignment_id>.*)", escape=True
        )
        where = re.fullmatch(pattern, str(folder))
        if where is None:
            return CourseDirectory.get_existing_timestamp(self.places, folder)
        sheet = Sheet(Path(self.places.root), where["assignment_id"], where["assignment_id"])
        return received(sheet, where["student_id"], next(iter(sorted(Path(folder).glob("*.ipynb"))), None))[0]


class Merge(NbGraderPreprocessor):
    """The guard: what is graded is the source with the student's answers, whatever a submission looks like.

    Nothing that a student hands in makes it raise, so that no submission stops a batch.
    """

    def preprocess(self, nb: NotebookNode, resources: dict):
        (sheet, release), student = self.parent.known(resources), resources["nbgrader"]["student"]
        merged = merge(sheet, None if resources["unreadable"] else nb, release)
        path = sheet.folder("submitted", student) / f"{sheet.name}.ipynb"
        flags = [*filter(None, [resources["read"]]), *received(sheet, student, path)[1], *merged.flags]
        _without_links(sheet.folder("submitted", student), sheet.folder("autograded", student))
        merged.notebook.metadata.autograder = NotebookNode(flags=flags)
        _tell(self.log, student, flags)
        return merged.notebook, resources


def _tell(log: logging.Logger, student: str, flags: list[str]) -> None:
    for flag in flags:
        log.warning("%s: %s", student, flag)


def _without_links(submitted: Path, graded: Path) -> None:
    # nbgrader has copied what a student's links point to, be it the gradebook, and would copy it into the feedback.
    for path in submitted.rglob("*"):
        copy = graded / path.relative_to(submitted)
        if path.is_symlink() and copy.is_file():
            copy.unlink()


class Execute(preprocessors.Execute):
    """Runs the merged notebook split and sandboxed; it has the name of nbgrader's own, so that `--no-execute` is heard.

    When a notebook cannot be run at all, because this machine has no sandbox, say, it raises: nbgrader then records no
    score and says so, and goes on with the next submission.
    """

    call_limit = Float(Limits.call, help="Seconds of processor time of one call of a student's function by a test.").tag(
        config=True
    )
    cell_limit = Float(Limits.cell, help="Seconds of processor time of one cell.").tag(config=True)
    notebook_limit = Float(Limits.notebook, help="Seconds of processor time of a whole notebook.").tag(config=True)
    patience = Float(Limits.patience, help="So many times a limit may pass on the clock: for what sleeps or hangs.").tag(
        config=True
    )
    sandbox = Enum(
        ("full", "none"), help="Whether student code is shut in; none for code that you trust. AUTOGRADER_SANDBOX sets it, too."
    ).tag(config=True)

    @default("sandbox")
    def _sandbox_default(self) -> str:
        return os.environ.get("AUTOGRADER_SANDBOX", "full")

    def preprocess(self, nb: NotebookNode, resources: dict, km=None):
        (sheet, _), student = self.parent.known(resources), resources["nbgrader"]["student"]
        limits = Limits(call=self.call_limit, cell=self.cell_limit, notebook=self.notebook_limit, patience=self.patience)
        seed = self.parent.seeds.get(sheet.folder("autograded", student) / f"{sheet.name}.ipynb", secrets.randbits(31))
        folder = sheet.folder("submitted", student)
        with tempfile.TemporaryDirectory(prefix="files-") as place:
            flags = stage(sheet, folder, folder / f"{sheet.name}.ipynb", Path(place))
            flags += ask.run(nb, sheet, seed, limits, Path(place), self.sandbox)
        before = nb.metadata.autograder.flags
        nb.metadata.autograder = NotebookNode(seed=seed, flags=[*before, *flags])
        _tell(self.log, student, flags)
        return nb, resources
