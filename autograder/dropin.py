"""The engine inside nbgrader: what `nbgrader_config.py` puts in the place of nbgrader's own parts.

`nbgrader autograde` and formgrader's buttons then read a submission tolerantly, merge it with the source, and run it
split and sandboxed. The notebooks run in the grading daemon (autograder/daemon.py), never in the process that asks.
"""

import contextlib
import json
import os
import secrets
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, v4
from nbgrader import preprocessors
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, Float

from autograder import ask
from autograder.course_folder import Sheet
from autograder.merge import merge, read_submission
from autograder.sandbox import Limits


class Submissions(NotebookExporter):
    """Reads whatever a student handed in as a notebook, and remembers the seeds of an earlier grading.

    nbgrader deletes what was graded before its preprocessors run: the seeds are read when the exporter is made.
    """

    def __init__(self, **given):
        super().__init__(**given)
        self.places: CourseDirectory = self.parent.coursedir
        self.seeds = kept_seeds(self.places)

    def from_filename(self, filename: str, resources: dict | None = None, **kw):
        where = resources["nbgrader"]
        submitted = self.places.format_path(self.places.submitted_directory, where["student"], where["assignment"])
        if Path(filename).parent != Path(submitted):
            return super().from_filename(filename, resources, **kw)
        notebook, why = read_submission(Path(filename))
        resources["metadata"] = {"name": where["notebook"], "path": submitted}
        resources["unreadable"] = why
        return self.from_notebook_node(notebook or v4.new_notebook(), resources, **kw)


def kept_seeds(places: CourseDirectory) -> dict[Path, int]:
    """The seeds of the hidden inputs with which notebooks were graded before, by their path in `autograded/`."""
    pattern = places.format_path(places.autograded_directory, places.student_id, places.assignment_id)
    found = {}
    for path in Path(places.root).glob(os.path.join(os.path.relpath(pattern, places.root), "*.ipynb")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # graded by something else
            found[path] = int(json.loads(path.read_text())["metadata"]["autograder"]["seed"])
    return found


class InCourse(NbGraderPreprocessor):
    """A preprocessor that knows where in the course it works."""

    def chapter(self, resources: dict) -> Sheet:
        where = resources["nbgrader"]
        return Sheet(Path(self.parent.places.root), where["assignment"], where["notebook"])

    def folder(self, step: str, resources: dict) -> Path:
        return self.chapter(resources).folder(step, resources["nbgrader"]["student"])


class Merge(InCourse):
    """The guard: what is graded is the source with the student's answers, whatever a submission looks like.

    Nothing that a student hands in makes it raise, so that no submission stops a batch.
    """

    def preprocess(self, nb: NotebookNode, resources: dict):
        why = resources["unreadable"]
        merged = merge(self.chapter(resources), None if why else nb)
        flags = [*filter(None, [why]), *merged.flags, *self._links(resources)]
        merged.notebook.metadata.autograder = NotebookNode(flags=flags)
        for flag in flags:
            self.log.warning("%s: %s", resources["nbgrader"]["student"], flag)
        return merged.notebook, resources

    def _links(self, resources: dict) -> list[str]:
        """nbgrader has copied what the student's links point to, be it the gradebook: take it away again."""
        submitted, graded, flags = self.folder("submitted", resources), self.folder("autograded", resources), []
        for path in sorted(submitted.rglob("*")):
            copy = graded / path.relative_to(submitted)
            if path.is_symlink() and copy.is_file():
                copy.unlink()
                flags.append(f"{path.name} is a link and was left out")
        return flags


class Execute(InCourse, preprocessors.Execute):
    """Runs the merged notebook split and sandboxed; it has the name of nbgrader's own, so that `--no-execute` is heard.

    When a notebook cannot be run at all, because this machine has no sandbox, say, it raises: nbgrader then records no
    score and says so, and goes on with the next submission.
    """

    call_limit = Float(Limits.call, help="Seconds of one call of a student's function by a test.").tag(config=True)
    cell_limit = Float(Limits.cell, help="Seconds of one cell.").tag(config=True)
    notebook_limit = Float(Limits.notebook, help="Seconds of a whole notebook.").tag(config=True)
    sandbox = Enum(("full", "none"), "full", help="Whether student code is shut in; none where a kernel cannot.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict, km=None):
        limits = Limits(call=self.call_limit, cell=self.cell_limit, notebook=self.notebook_limit)
        graded = self.folder("autograded", resources) / f"{resources['nbgrader']['notebook']}.ipynb"
        seed = self.parent.seeds.get(graded, secrets.randbits(31))
        before = nb.metadata.get("autograder", {}).get("flags", [])
        flags = ask.run(nb, self.chapter(resources), seed, limits, self.folder("submitted", resources), self.sandbox)
        nb.metadata.autograder = NotebookNode(seed=seed, flags=[*before, *flags])
        for flag in flags:
            self.log.warning("%s: %s", resources["nbgrader"]["student"], flag)
        return nb, resources
