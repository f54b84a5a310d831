"""Which cells of a notebook the student's side and the tests' side have to run, and what answers may call.

A chapter has many cells that show and plot. A side runs those of the source that define a name it
needs, change what has such a name, or set something up; a student's own cells always run.
"""

import ast
import builtins
import re
import symtable
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

SKIPPED = {"slow", "widget"}  # tags of experiments and widgets, which no test may need
SETTING = re.compile(
    r"^\s*[%!]|\b(seed|manual_seed|setup|use|set_\w+|filterwarnings|simplefilter|rcParams|environ|chdir|register\w*|default_rng)\b"
    r"|\b\w+(\.\w+)+\s*=[^=]",
    re.MULTILINE,
)
"""What a cell has in it that sets something up for later cells, without a name of its own."""
REFLECTING = {"globals", "locals", "vars", "dir", "eval", "exec", "get_ipython", "inspect", "In", "Out", "_ih", "__main__"}
"""Names by which a cell can use others that are not written in it."""


@dataclass(frozen=True)
class Uses:
    """The names that a piece of code binds at its top level, reads from outside, and changes in place."""

    binds: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    imports: tuple[tuple[str, str, str], ...] = ()  # (name, import statement, full name)
    sets_up: bool = False
    plain: bool = True  # whether it was read as Python


@lru_cache(4096)
def uses(source: str) -> Uses:
    """What a cell binds and reads; all its words, if it is not plain Python."""
    try:
        tree = ast.parse(source)
        table = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        words = frozenset(re.findall(r"[^\W\d]\w*", source))
        return Uses(reads=words, sets_up=True, plain=False)
    top = {s.get_name(): s for s in table.get_symbols()}
    binds = {name for name, s in top.items() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    reads = {name for name, s in top.items() if s.is_referenced()}
    for inner in _scopes(table):
        for s in inner.get_symbols():
            if s.is_global():
                (binds if s.is_assigned() and s.is_declared_global() else reads).add(s.get_name())
    return Uses(
        frozenset(binds),
        frozenset(reads),
        frozenset(_changed(tree)),
        frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        tuple(_imports(tree)),
        bool(SETTING.search(source)),
    )


def _scopes(table):
    for child in table.get_children():
        yield child
        yield from _scopes(child)


def _imports(tree: ast.Module):
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                yield name, ast.unparse(ast.Import([alias])), alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                statement = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
                yield alias.asname or alias.name, statement, f"{node.module}.{alias.name}"


def _changed(tree: ast.Module):
    """Names whose things a cell changes: an item or attribute is set, or a method is called for its effect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            target = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            target = node.value.func
        elif isinstance(node, ast.AugAssign):
            target = node.target
        else:
            continue
        while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            yield target.id


@dataclass
class Cell:
    """A code cell of the notebook that is graded.

    Args:
        index: its place in the notebook.
        kind: "source", "student" (an answer or a cell of their own) or "test".
        name: its nbgrader id, if it has one.
    """

    index: int
    source: str
    kind: str
    name: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def uses(self) -> Uses:
        return uses(self.source)


def student_side(cells: list[Cell]) -> set[int]:
    """The indices of the source's cells that the student's side runs before tests; the student's own come on top."""
    ours = [cell for cell in cells if cell.kind == "source" and not SKIPPED & set(cell.tags)]
    theirs = [cell for cell in cells if cell.kind == "student"]
    if any(REFLECTING & cell.uses.reads for cell in theirs):
        return {cell.index for cell in ours}
    return _needed(ours, set().union(*(cell.uses.reads for cell in theirs)))


def tests_side(cells: list[Cell], words: Iterable[str]) -> set[int]:
    """The indices of the source's cells that the tests' side runs.

    Args:
        words: names that are needed beside those of the tests, such as those of the chapter's wrong answers.
    """
    ours = [cell for cell in cells if cell.kind == "source" and not SKIPPED & set(cell.tags)]
    tests = [cell for cell in cells if cell.kind == "test"]
    if any(REFLECTING & cell.uses.reads for cell in tests):
        return {cell.index for cell in ours}
    return _needed(ours, set(words).union(*(cell.uses.reads for cell in tests)))


def _needed(cells: list[Cell], names: set[str]) -> set[int]:
    """The cells that define or change one of the names, those that these need, and those that set something up."""
    found: set[int] = set()
    again = True
    while again:
        again = False
        for cell in cells:
            if cell.index in found:
                continue
            told = cell.uses
            quiet = "raises-exception" not in cell.tags and "figure" not in cell.tags
            if (told.binds | told.changes) & names or (told.sets_up and quiet):
                found.add(cell.index)
                names |= told.reads
                again = True
    return found


@dataclass
class Answers:
    """What the source's answer cells say about the tests: names, classes, imports, and what may be called.

    `binds` has the names by the nbgrader id of the answer cell, `allowed`, by that of the test cell, the full
    names of `course` that the answers use.
    """

    binds: dict[str, frozenset[str]] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()
    allowed: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """All names that answers bind."""
        return frozenset().union(*self.binds.values())


def read_source(cells: list[dict], right: dict[str, list[str]]) -> Answers:
    """Read the source notebook's code cells.

    Args:
        cells: source, kind ("source", "answer", "test"), name and `course_allowed` of each, in order.
        right: sources of other right answers by the nbgrader id of their test cell.
    """
    told = [uses(cell["source"]) for cell in cells]
    places: dict[str, str] = {}  # full names of what the notebook imports
    for some in told:
        places |= {name: full for name, _, full in some.imports}
    definitions: dict[str, Uses] = {}
    for cell, some in zip(cells, told, strict=True):
        if cell["kind"] != "test":
            definitions |= dict.fromkeys(some.binds, some)
    answers = Answers()
    for cell, some in zip(cells, told, strict=True):
        if cell["kind"] == "answer":
            answers.binds[cell["name"]] = some.binds - {name for name, *_ in some.imports}
            answers.classes |= some.classes
            answers.imports += tuple(line for _, line, _ in some.imports)
    waiting: list[str] = []
    for cell, some in zip(cells, told, strict=True):
        if cell["kind"] == "answer":
            waiting.append(cell["source"])
        elif cell["kind"] == "test":
            asked = some.reads & answers.names
            sources = [s for s in waiting if uses(s).binds & asked] or [
                c["source"] for c, t in zip(cells, told, strict=True) if c["kind"] == "answer" and t.binds & asked
            ]
            found = set(cell.get("allowed") or ())
            for source in [*sources, *right.get(cell["name"], ())]:
                found |= course_names(source, places, definitions)
            answers.allowed[cell["name"]] = sorted(_full(name, places) for name in found)
            waiting = []
    return answers


def _full(name: str, places: dict[str, str]) -> str:
    return name if "." in name else places.get(name, name)


def course_names(source: str, places: dict[str, str], definitions: dict[str, Uses]) -> set[str]:
    """The full names of `course` that a piece of code uses, by itself or through what the notebook defines."""
    own = uses(source)
    local = places | {name: full for name, _, full in own.imports}
    names, waiting = set(), set(own.reads)
    while waiting:
        name = waiting.pop()
        names.add(name)
        if name in definitions and not hasattr(builtins, name):
            waiting |= definitions[name].reads - names
    found = {full for name in names if (full := local.get(name, "")).startswith("course")}
    modules = {name: full for name in names if (full := local.get(name, "")).startswith("course")}
    for name, full in modules.items():  # of a module that is imported whole, what is taken from it
        taken = re.findall(rf"\b{re.escape(name)}((?:\.\w+)+)", source)
        if taken:
            found.discard(full)
            found |= {full + rest for rest in taken}
    return found
