"""A new chapter in every place that a chapter touches, and what of an old one is missing."""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

from autograder.authoring.chapters import Chapter
from autograder.authoring.run import tidy
from autograder.errors import CourseError

TEMPLATES = Path(__file__).resolve().with_suffix("")
STEM = re.compile(r"(?P<id>(?:f|ch)\d\d)_(?P<name>[a-z][a-z0-9_]*)")
TITLES = "book/reference/chapters.yml"
CONTENTS = "book/_toc.yml"


@dataclass(frozen=True)
class Place:
    """A file that each chapter has, or one for all of them that has something of each.

    `{id}`, `{name}` and `{stem}` in a path are `ch04`, `attention` and `ch04_attention`.
    """

    path: str
    what: str
    template: str | None = None
    entry: str | None = None  # what a file for all chapters has of each, as a pattern

    def at(self, root: Path, stem: str) -> Path:
        return root / self.path.format(stem=stem, **_parts(stem))


PLACES = (
    Place("source/{stem}/{stem}.ipynb", "the notebook", "chapter.py.txt"),
    Place("source/{stem}/answers.py", "right and wrong answers", "answers.py.txt"),
    Place("course/{name}.py", "the reference code", "module.py.txt"),
    Place("tests/course/test_{name}.py", "tests of the reference code", "test_module.py.txt"),
    Place("course/widgets/{name}.py", "the figure to play with", "widget.py.txt"),
    Place("course/widgets/{name}.js", "the drawing of that figure", "widget.js.txt"),
    Place("tests/receipts/test_{name}.py", "the evidence of its formulas", "test_receipts.py.txt"),
    Place("book/reference/formulas.yml", "its formulas", "formulas.yml.txt", r"^  chapter: {stem}$"),
    Place("book/reference/glossary.yml", "its terms", "glossary.yml.txt", r"^  chapter: {stem}$"),
    Place(CONTENTS, "its place in the book", None, r"^ *- file: {stem}/{stem}$"),
    Place("release/{stem}/{stem}.ipynb", "the student's notebook, by `autograder release`"),
)


def _parts(stem: str) -> dict[str, str]:
    match = STEM.fullmatch(stem)
    if match is None:
        raise CourseError(f"a chapter is called like ch04_attention, not {stem!r}")
    return match.groupdict()


def missing(chapter: Chapter) -> list[str]:
    """The places of a chapter that are empty, one sentence each; none for a course that has no book of this form."""
    if not (chapter.root / TITLES).is_file():
        return []
    told = []
    for place in PLACES:
        path = place.at(chapter.root, chapter.stem)
        entry = place.entry and place.entry.format(stem=re.escape(chapter.stem))
        if not path.is_file() or (entry and not re.search(entry, path.read_text(encoding="utf-8"), re.MULTILINE)):
            told.append(f"{path.relative_to(chapter.root)} lacks {place.what}" if entry else _absent(path, chapter.root, place))
    return told


def _absent(path: Path, root: Path, place: Place) -> str:
    return f"{path.relative_to(root)} is missing: {place.what}"


def new(root: Path, stem: str) -> list[Path]:
    """Write the skeleton of a chapter, which runs and passes its own tests.

    Returns:
        The files that were written or added to.

    Raises:
        CourseError: if the name is none of the course's chapters, or a file is there already; nothing is written then.
    """
    import jupytext  # students' and teachers' environments need not have it

    parts = _parts(stem)
    if not (root / TITLES).is_file():
        raise CourseError(f"{root} has no {TITLES}, which names the chapters of a course of this form")
    titles = yaml.safe_load((root / TITLES).read_text(encoding="utf-8"))
    if stem not in titles:
        raise CourseError(f"{TITLES} has no chapter {stem}; add its title there first")
    fresh = [place for place in PLACES if place.template and not place.entry]
    if there := [path for place in fresh if (path := place.at(root, stem)).exists()]:
        raise CourseError(f"{', '.join(str(path.relative_to(root)) for path in there)} is there already")
    words = {"stem": stem, "title": titles[stem], "widget": "".join(map(str.capitalize, parts["name"].split("_"))), **parts}
    written = []
    for place in PLACES:
        path = place.at(root, stem)
        if place.template:
            text = re.sub(r"\{\{(\w+)\}\}", lambda match: words[match[1]], (TEMPLATES / place.template).read_text("utf-8"))
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".ipynb":
                notebook = jupytext.reads(text, fmt="py:percent")
                tidy(notebook)
                nbformat.write(notebook, path)
            else:
                with path.open("a", encoding="utf-8") as file:
                    file.write(text)
            written.append(path)
        elif place.path == CONTENTS:
            _into_contents(path, stem, list(titles))
            written.append(path)
    return written


def _into_contents(path: Path, stem: str, order: list[str]) -> None:
    """Put a chapter after the last one of the book that comes before it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    before = set(order[: order.index(stem)])
    place = max(i for i, line in enumerate(lines) if line.partition("- file: ")[2].partition("/")[0] in before)
    indent = lines[place].partition("-")[0]
    lines.insert(place + 1, f"{indent}- file: {stem}/{stem}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
