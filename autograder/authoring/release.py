"""From `source/` to `release/` by nbgrader's steps, checked for leaks and for staleness."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader
from traitlets.utils.importstring import import_item

from autograder.authoring.answers import load
from autograder.authoring.chapters import Chapter, regions, without_regions
from autograder.authoring.scoring import shown_scores
from autograder.errors import CourseError

SHORT = 12  # characters; shorter lines stand everywhere and tell nothing
HIDDEN = ("HIDDEN TESTS", "SOLUTION", "MARK SCHEME")
UNGRADED = ("IncludeHeaderFooter", "InstantiateTests", "CheckCellMetadata")


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


@dataclass(frozen=True)
class Release:
    """A source notebook on its way to the students, made in memory by nbgrader's own steps.

    `registered` is what the gradebook knows (solutions cleared, hidden tests in place), `released` what students get.
    """

    registered: NotebookNode
    released: NotebookNode

    @classmethod
    def of(cls, chapter: Chapter, config: Config | None = None, whole: bool = False) -> "Release":
        """Take the steps of the configuration's `GenerateAssignment`, but for the one that writes the gradebook.

        Args:
            whole: with the steps that change no cell that is graded, or need a kernel.

        Raises:
            CourseError: if a step cannot be taken; the message has nbgrader's own words.
        """
        from nbgrader.converters import GenerateAssignment  # takes longer to load than most commands

        config = course_config(chapter.root) if config is None else config
        notebook, registered = nbformat.from_dict(chapter.notebook), None
        resources = {"nbgrader": {"notebook": chapter.name, "assignment": chapter.stem}}
        for step in GenerateAssignment(config=config).preprocessors:
            step = import_item(step) if isinstance(step, str) else step
            if step.__name__ == "SaveCells":
                registered = nbformat.from_dict(notebook)
            elif whole or step.__name__ not in UNGRADED:
                try:
                    notebook, resources = step(config=config)(notebook, resources)
                except Exception as error:
                    raise CourseError(f"{chapter.stem}: nbgrader could not make the release: {error}") from error
        return cls(registered or notebook, notebook)

    def write(self, chapter: Chapter, folder: Path) -> None:
        """Write what students get into an empty folder: the notebook, and the files beside its source that are not ignored."""
        places = CourseDirectory(config=course_config(chapter.root))
        source = chapter.path.parent
        for name in find_all_files(str(source), [*places.ignore, "*.ipynb"]):
            target = folder / Path(name).relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, target)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{chapter.name}.ipynb").write_text(nbformat.writes(self.released) + "\n", encoding="utf-8")


def release(chapter: Chapter) -> Release:
    """Write `release/<chapter>/`.

    Raises:
        CourseError: if it cannot be made, would leak, or a test shows its score where it should end in it; nothing is
            replaced then.
    """
    if told := shown_scores(chapter.notebook):
        raise CourseError("\n".join(told))
    made = Release.of(chapter, whole=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, chapter.stem)
        made.write(chapter, folder)
        if found := leaks(chapter, folder):
            raise CourseError(f"{chapter.stem}: the release would leak:\n" + "\n".join(found))
        target = chapter.release.parent
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
    return made


def stale(chapter: Chapter) -> list[str]:
    """The files of `release/<chapter>/` that are not what `source/` makes today."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, chapter.stem)
        Release.of(chapter, whole=True).write(chapter, folder)
        return _different(folder, chapter.release.parent)


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
