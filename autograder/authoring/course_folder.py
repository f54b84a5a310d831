"""Any nbgrader course folder: assignments of several notebooks, in the places that its configuration names."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.nbgraderformat import ValidationError
from nbgrader.nbgraderformat import read as read_nbgrader
from nbgrader.nbgraderformat.common import SchemaMismatchError

from autograder.authoring.chapters import Chapter
from autograder.authoring.release import course_config
from autograder.errors import CourseError


@dataclass(frozen=True)
class Sheet(Chapter):
    """One notebook of an assignment (`stem`) of a course folder that need not be this project's."""

    name: str = ""

    @property
    def id(self) -> str:
        return self.stem if self.name == self.stem else f"{self.stem}/{self.name}"

    @cached_property
    def places(self) -> CourseDirectory:
        return CourseDirectory(config=course_config(self.root))

    def folder(self, step: str, student: str = ".") -> Path:
        return Path(self.places.format_path(getattr(self.places, f"{step}_directory"), student, self.stem))

    @property
    def path(self) -> Path:
        return self.folder("source") / f"{self.name}.ipynb"

    @property
    def release(self) -> Path:
        return self.folder("release") / f"{self.name}.ipynb"

    @property
    def exercises(self) -> list:
        return []  # headers are a form of this project's chapters

    @cached_property
    def notebook(self) -> NotebookNode:
        try:
            return read_nbgrader(self.path, as_version=4)
        except (SchemaMismatchError, ValidationError) as error:
            raise CourseError(f"{self.path.name}: {str(error).splitlines()[0]}") from None


def sheets(root: Path, assignment: str) -> list[Chapter]:
    """The notebooks of an assignment.

    Raises:
        CourseError: if there is no such assignment; the message names those there are.
    """
    root = root.resolve()
    if not root.is_dir():
        raise CourseError(f"{root} is no folder")
    places = CourseDirectory(config=course_config(root))
    source = Path(places.format_path(places.source_directory, ".", assignment))
    names = sorted(path.stem for path in source.glob("*.ipynb"))
    if not names:
        everything = Path(places.format_path(places.source_directory, ".", "*"))
        there = sorted({path.parent.name for path in root.glob(str(everything.relative_to(root) / "*.ipynb"))})
        raise CourseError(f"no assignment {assignment!r} in {root}; there are: {', '.join(there) or 'none'}")
    return [Sheet(root, assignment, name) for name in names]
