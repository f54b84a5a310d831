"""Where chapters are and what is in them."""

import ast
import contextlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.errors import CourseError

HEADER = re.compile(
    r"\*\*Exercise (?P<id>\S+)\*\* · (?P<points>\d+) points? · (?P<stars>★{1,5}) · (?P<minutes>\d+) min · (?P<form>\w+)"
)
SAME_AS = "What you wrote gives the same as this mistake: "  # begins the line of a test that names a misconception
RUN_WHAT_IS_BELOW = ("capture", "prun", "time", "timeit")  # cell magics whose cell is Python
MAGICS, LONGEST = 100, 20_000  # lines with %, ! or ?, and characters, of a cell that is read as IPython does: once for each line
REGION = r"^[^\n]*### BEGIN {0}[^\n]*\n(?P<inside>.*?)^[^\n]*### END {0}[^\n]*$"


@dataclass(frozen=True)
class Form:
    """What is asked of the exercises of one form."""

    wrong: int = 2  # wrong answers in answers.py, at least
    right: bool = False  # whether answers.py has another right answer
    hidden: bool = True  # whether hidden tests decide the points; without, any possible answer gets them
    by_hand: bool = False  # whether a teacher decides


FORMS = {
    "code": Form(wrong=4, right=True),
    "numeric": Form(),
    "choice": Form(),
    "order": Form(),
    "derivation": Form(),
    "property": Form(),
    "prediction": Form(hidden=False),
    "written": Form(wrong=0, hidden=False, by_hand=True),
}


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter; the cells are indices into the source notebook."""

    id: str
    points: float
    stars: int
    minutes: int
    form: str
    header: int
    answer: int
    test: int

    @property
    def by_hand(self) -> bool:
        return self.answer == self.test


@dataclass(frozen=True)
class Chapter:
    """A chapter of a course folder, such as `ch04_attention`."""

    root: Path
    stem: str

    @property
    def id(self) -> str:
        return self.stem.split("_")[0]

    @property
    def name(self) -> str:
        """The notebook's name; an assignment of another course may have several."""
        return self.stem

    def folder(self, step: str, student: str = ".") -> Path:
        """Where nbgrader keeps a step of somebody's work: `submitted`, `autograded` or `feedback`."""
        return self.root / step / student / self.stem

    @property
    def path(self) -> Path:
        return self.root / "source" / self.stem / f"{self.stem}.ipynb"

    @property
    def answers(self) -> Path:
        return self.path.parent / "answers.py"

    @property
    def release(self) -> Path:
        return self.root / "release" / self.stem / f"{self.stem}.ipynb"

    @property
    def title(self) -> str:
        """The chapter's first heading."""
        return next((c.source.splitlines()[0].lstrip("# ") for c in self.notebook.cells if c.source.startswith("# ")), self.stem)

    @cached_property
    def notebook(self) -> NotebookNode:
        return nbformat.read(self.path, as_version=4)

    @cached_property
    def exercises(self) -> list[Exercise]:
        """The exercises in their order.

        Raises:
            CourseError: if a header, an answer cell or a test cell is missing or does not fit the others.
        """
        by_id = {nbgrader_id(grade_id(cell)): i for i, cell in enumerate(self.notebook.cells) if grade_id(cell)}
        found = []
        for i, cell in enumerate(self.notebook.cells):
            match = HEADER.search(cell.source) if cell.cell_type == "markdown" else None
            if match is None:
                continue
            id, form = match["id"], match["form"]
            if form not in FORMS:
                raise CourseError(f"{id}: unknown form {form!r}; one of {', '.join(FORMS)}")
            name = nbgrader_id(id)
            if name not in by_id:
                raise CourseError(f"{id}: no test cell with the nbgrader id {name}")
            test = by_id[name]
            answer = test if FORMS[form].by_hand else by_id.get(f"{name}-answer")
            if answer is None:
                raise CourseError(f"{id}: no answer cell with the nbgrader id {name}-answer")
            points = self.notebook.cells[test].metadata.nbgrader.get("points")
            if points != int(match["points"]):
                raise CourseError(f"{id}: the header says {match['points']} points, the test cell {points}")
            if id in {exercise.id for exercise in found}:
                raise CourseError(f"{id}: two exercises have this id")
            found.append(Exercise(id, float(points), len(match["stars"]), int(match["minutes"]), form, i, answer, test))
        graded = {nbgrader_id(grade_id(c)) for c in self.notebook.cells if c.metadata.get("nbgrader", {}).get("grade")}
        if orphans := graded - {nbgrader_id(exercise.id) for exercise in found}:
            raise CourseError(f"{self.stem}: graded cells without an exercise header: {', '.join(sorted(orphans))}")
        return found

    @cached_property
    def sections(self) -> dict[str, str]:
        """The chapter's headings by their slugs."""
        lines = "\n".join(
            without_regions(c.source, "MARK SCHEME") for c in self.notebook.cells if c.cell_type == "markdown"
        ).splitlines()
        headings = [line.lstrip("# ").rstrip() for line in lines if re.match(r"#{1,4} ", line)]
        return {slug(heading): heading for heading in headings}

    @cached_property
    def imported(self) -> dict[str, str]:
        """The import of each name that the chapter's own cells import and that no cell defines."""
        found, defined = {}, set()
        for cell in self.notebook.cells:
            if cell.cell_type != "code" or "slow" in tags(cell):
                continue
            with contextlib.suppress(SyntaxError):  # a cell with magics
                defined.update(bound_names(cell.source))
                given = cell.metadata.get("nbgrader", {})
                if given.get("solution") or given.get("grade"):
                    continue
                for node in ast.parse(cell.source).body:
                    for name in node.names if isinstance(node, ast.Import | ast.ImportFrom) else []:
                        node.names = [name]
                        found[(name.asname or name.name).split(".")[0]] = ast.unparse(node)
        return {name: line for name, line in found.items() if name not in defined}

    def asked(self, exercise: Exercise) -> list[str]:
        """The names that the answer cell defines and the test cell uses."""
        cells = self.notebook.cells
        used = {node.id for node in ast.walk(ast.parse(cells[exercise.test].source)) if isinstance(node, ast.Name)}
        return [name for name in bound_names(cells[exercise.answer].source) if name in used]


def find_root(start: Path | None = None) -> Path:
    """The course folder: the nearest one upwards that has a `source/` and an `nbgrader_config.py`.

    Raises:
        CourseError: if there is none.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "source").is_dir() and (folder / "nbgrader_config.py").is_file():
            return folder
    raise CourseError(f"{start} is not inside a course (a folder with source/ and nbgrader_config.py); use --root")


def find_chapters(root: Path, wanted: list[str] | None = None) -> list[Chapter]:
    """The chapters of a course by stem (`ch04_attention`) or id (`ch04`); all without a wish.

    Raises:
        CourseError: if one is unknown; the message names those there are.
    """
    there = [Chapter(root, p.parent.name) for p in sorted((root / "source").glob("*/*.ipynb")) if p.stem == p.parent.name]
    there.sort(key=lambda chapter: (not chapter.stem.startswith("f"), chapter.stem))
    if not wanted:
        return there
    chosen = []
    for name in wanted:
        match = [c for c in there if name.rstrip("/").split("/")[-1] in (c.stem, c.id)]
        if not match:
            raise CourseError(f"no chapter {name!r}; there are: {', '.join(c.stem for c in there)}")
        chosen += match
    return chosen


def grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def nbgrader_id(exercise: str) -> str:
    """An exercise's id as nbgrader's schema allows it: `ch04.by_hand` is `ch04-by_hand` there."""
    return exercise.replace(".", "-")


def exercise_id(nbgrader_id: str) -> str:
    """The exercise's own id: `ch04-by_hand` is `ch04.by_hand`."""
    return nbgrader_id.replace("-", ".", 1)


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def as_python(source: str) -> str:
    """A cell with IPython's shell lines and magics as the calls that they are; what is Python already, as it is.

    A cell magic that runs what is below it, such as %%time, counts as that; what is below any other is no Python.
    """
    with contextlib.suppress(SyntaxError):
        ast.parse(source)
        return source
    if first := re.match(r"\s*%%([\w!]*)[^\n]*\n?", source):
        return as_python(source[first.end() :]) if first[1] in RUN_WHAT_IS_BELOW else ""
    if len(source) > LONGEST or sum(bool({*"%!?"} & {*line}) for line in source.splitlines()) > MAGICS:
        return source
    from IPython.core.inputtransformer2 import TransformerManager  # takes longer to load than most commands

    with contextlib.suppress(SyntaxError, RuntimeError):
        return TransformerManager().transform_cell(source)
    return source


def bound_names(source: str) -> list[str]:
    """The names that a cell defines at its top level, in order."""
    names = []
    for node in ast.parse(as_python(source)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return list(dict.fromkeys(names))


def regions(source: str, name: str) -> list[str]:
    """What stands between `### BEGIN name` and `### END name`, for each such region."""
    return [m["inside"] for m in re.finditer(REGION.format(name), source, re.MULTILINE | re.DOTALL)]


def without_regions(source: str, name: str) -> str:
    """`source` without its regions, marks and all."""
    return re.sub(REGION.format(name) + r"\n?", "", source, flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """A heading's anchor: "Softmax over keys" is `softmax-over-keys`."""
    heading = re.sub(r"\$[^$]*\$|[`*]", "", heading.lower())
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading)).strip("-")
