"""From `source/` to `release/` through nbgrader, checked for leaks and for staleness."""

import glob
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.authoring.chapters import Chapter, regions, without_regions
from autograder.authoring.scoring import shown_scores
from autograder.errors import CourseError

SHORT = 12  # characters; shorter lines stand everywhere and tell nothing
HIDDEN = ("HIDDEN TESTS", "SOLUTION", "MARK SCHEME")


def course_config(root: Path) -> Config:
    """The course's `nbgrader_config.py`, where it has one, with the course folder as its root."""
    config = Config()
    if (root / "nbgrader_config.py").is_file():
        config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    config.CourseDirectory.root = str(root)
    return config


def default_database(root: Path) -> str:
    """The gradebook's address: nbgrader's default, or what the configuration says."""
    return CourseDirectory(config=course_config(root)).db_url


def generate(chapter: Chapter, release: Path, db_url: str) -> Path:
    """Make the student's notebook of a chapter below `release` and register its cells in a gradebook.

    Returns:
        The folder that was written.

    Raises:
        CourseError: if nbgrader cannot make it; the message has nbgrader's own words.
    """
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    )  # nbgrader calls alembic by name
    config = course_config(chapter.root)
    config.CourseDirectory.assignment_id = chapter.stem
    config.CourseDirectory.release_directory = str(release)
    config.CourseDirectory.db_url = db_url
    config.GenerateAssignment.force = True
    said = _Said()
    with tempfile.TemporaryDirectory(prefix="course-") as scratch:
        root = chapter.root
        if glob.escape(str(root)) != str(root):  # nbgrader takes the folder's own name for a pattern
            root = Path(scratch, "course")
            root.symlink_to(chapter.root.resolve())
        config.CourseDirectory.root = str(root)
        converter = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        converter.log = said.logger
        try:
            converter.start()
        except (Exception, SystemExit) as error:
            raise CourseError(f"{chapter.stem}: nbgrader could not make the release: {error}\n{said.text}") from error
    return release / chapter.stem


class _Said(logging.Handler):
    """Keeps nbgrader's log for the case that something goes wrong."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []
        self.logger = logging.Logger("nbgrader", logging.INFO)
        self.logger.addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def release(chapter: Chapter) -> None:
    """Write `release/<chapter>/`.

    Raises:
        CourseError: if it would leak, or a test shows its score where it should end in it; nothing is replaced then.
    """
    if told := shown_scores(chapter.notebook):
        raise CourseError("\n".join(told))
    with tempfile.TemporaryDirectory() as scratch:
        made = generate(chapter, Path(scratch) / "release", default_database(chapter.root))
        if found := leaks(chapter, made):
            raise CourseError(f"{chapter.stem}: the release would leak:\n" + "\n".join(found))
        target = chapter.release.parent
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)


def stale(chapter: Chapter) -> list[str]:
    """The files of `release/<chapter>/` that are not what `source/` makes today."""
    with tempfile.TemporaryDirectory() as scratch:
        made = generate(chapter, Path(scratch) / "release", f"sqlite:///{scratch}/gradebook.db")
        return _different(made, chapter.release.parent)


def _different(made: Path, there: Path) -> list[str]:
    names = {
        p.relative_to(folder)
        for folder in (made, there)
        for p in folder.rglob("*")
        if p.is_file() and ".ipynb_checkpoints" not in p.parts
    }
    changed = []
    for name in sorted(names):
        new, old = made / name, there / name
        if not (new.exists() and old.exists() and new.read_bytes() == old.read_bytes()):
            changed.append(str(name))
    return changed


def public_lines(chapter: Chapter) -> set[str]:
    """The lines of the source that stand in no hidden region."""
    public = set()
    for cell in chapter.notebook.cells:
        text = cell.source
        for region in HIDDEN:
            text = without_regions(text, region)
        public.update(line.strip() for line in text.splitlines())
    return public


def secrets(chapter: Chapter) -> dict[str, str]:
    """The lines that students must not receive, each with what it is.

    A line that also stands in the chapter for all to read is no secret.
    """
    from autograder.authoring.answers import load  # imports torch, which nbgrader's server need not

    cells = chapter.notebook.cells
    public, found = public_lines(chapter), {}
    for cell in cells:
        for region in HIDDEN:
            for inside in regions(cell.source, region):
                found.update({line.strip(): f"{region.lower()} of {chapter.stem}" for line in inside.splitlines()})
        if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution"):
            found.update({line.strip(): f"written solution of {chapter.stem}" for line in cell.source.splitlines()})
            public -= {line.strip() for line in cell.source.splitlines()}

    for answer in load(chapter.answers) if chapter.answers.exists() else []:
        if answer.sentence:
            found[answer.sentence] = f"misconception of {answer.exercise}"
    return {line: what for line, what in found.items() if len(line) >= SHORT and not any(line in shown for shown in public)}


def leaks(chapter: Chapter, folder: Path) -> list[str]:
    """What of the chapter's secrets stands in the files below `folder`, one line each."""
    told, hidden = [], secrets(chapter)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.name == "answers.py":
            told.append(f"{path.name} is in the release")
        text = path.read_text(errors="replace")
        if path.suffix == ".ipynb":
            notebook = nbformat.reads(text, as_version=4)
            text = "\n".join(cell.source for cell in notebook.cells) + "\n".join(
                str(c.get("outputs", "")) for c in notebook.cells
            )
        lines = {line.strip() for line in text.splitlines()}
        for line, what in hidden.items():
            if line in lines or (len(line) > 40 and line in text):
                told.append(f"{path.name}: {what}: {line}")
    return told
