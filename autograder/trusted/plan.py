"""Which cells of a notebook the student's side and the tests' side have to run, and what answers may call.

A chapter has many cells that show and plot. A side runs those of the source that define a name it
needs, change what has such a name, or set something up; a student's own cells always run.
"""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from autograder.authoring.chapters import as_python

SKIPPED = {"slow", "widget"}  # tags of experiments and widgets, which no test may need
SETTING = re.compile(r"setup|use|set_\w+|\w*filter\w*|chdir|register\w*|update|insert|append|install")
"""Names of functions that are called for what they set up for later cells."""
SEEDING = re.compile(r"(manual_)?seed")
"""Names of functions that are called for the random numbers that later cells draw."""
QUIET = re.compile(r"(math|sympy(?!\.stats|\.rand)|course\.(checks|device|plots))(\..*)?|(numpy|torch)\.(set_\w+|float\d+)")
"""Full names of what draws no number from the generators that everybody shares; sympy has its own."""
HARMLESS = sys.stdlib_module_names | {"course", "matplotlib", "numpy", "sympy", "torch"}
"""Packages that draw no such number when they are imported."""
LONGEST = 100_000  # characters of a cell whose syntax tree is made: a tree takes a thousand times the memory
UNNAMED = "lambda", "listcomp", "setcomp", "dictcomp", "genexpr"
BUILTIN = frozenset(dir(builtins))
REFLECTING = {"globals", "locals", "vars", "dir", "eval", "exec", "get_ipython", "inspect", "In", "Out", "_ih", "__main__"}
"""Names by which a cell can use others that are not written in it."""


@dataclass(frozen=True)
class Uses:
    """What a cell has to do with names.

    Args:
        binds: names that it gives a value at its top level.
        now: names that must have a value before it runs.
        later: names that must have one when the functions are called that it defines.
        changes: names whose things it changes in place.
        sets: names of which it calls or sets something that holds for later cells.
        seeds: names whose random numbers it seeds.
        classes: names of classes that it defines.
        imports: (name, import statement, full name) of what it imports.
        dotted: names that it uses, with the attributes that it takes of them, such as ``tokens.parallel``.
        runs: of `dotted`, what it uses when it runs; what is in functions does not.
        local: names that have a value in it for a while, as in a comprehension.
        functions: names of functions and classes that it defines.
        loads: packages that it imports.
        plain: whether it could be read as Python; if not, `now` has all its words.
    """

    binds: frozenset[str] = frozenset()
    now: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    seeds: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    imports: tuple[tuple[str, str, str], ...] = ()
    dotted: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    loads: frozenset[str] = frozenset()
    plain: bool = True

    @property
    def reads(self) -> frozenset[str]:
        return self.now | self.later


@lru_cache(4096)
def uses(source: str) -> Uses:
    """Read a cell."""
    try:
        if len(source) > LONGEST:  # it may need anything
            return Uses(now=frozenset(REFLECTING), plain=False)
        source = as_python(source)
        tree = ast.parse(source)
        table = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Uses(now=frozenset(word[0] for word in re.finditer(r"[^\W\d]\w*", source)), plain=False)
    binds = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    order, later, called = _Order(), set(), set()
    order.visit(tree)
    top = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    for scope in table.get_children():
        inside = set()
        for inner in (scope, *_scopes(scope)):
            for s in inner.get_symbols():
                if s.is_global():
                    (binds if s.is_declared_global() and s.is_assigned() else inside).add(s.get_name())
        later |= inside
        if scope.get_name() in top or scope.get_name() in UNNAMED:  # the cell itself calls it, most likely
            called |= inside
    changes, sets, seeds = _effects(tree)
    nodes = list(ast.walk(tree))
    return Uses(
        frozenset(binds),
        frozenset(order.read | (called - binds)),
        frozenset(later - binds),
        frozenset(changes),
        frozenset(sets),
        frozenset(seeds),
        frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef)),
        tuple(_imports(tree)),
        frozenset(_dotted(tree)),
        local=frozenset(node.arg for node in nodes if isinstance(node, ast.arg))
        | frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)),
        functions=frozenset(node.name for node in nodes if isinstance(node, _DEFINITIONS)),
        loads=frozenset(_loads(nodes)),
        runs=frozenset(_dotted(_Running().visit(tree))),  # last, since it changes the tree
    )


def _scopes(table):
    for child in table.get_children():
        yield child
        yield from _scopes(child)


class _Order(ast.NodeVisitor):
    """Names that are read before they are bound, in the order in which a cell runs from top to bottom."""

    def __init__(self):
        self.bound, self.read = set(), set()

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id not in self.bound:
            self.read.add(node.id)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node):
        for part in (node.value, node.annotation, node.target):
            if part is not None:
                self.visit(part)

    def visit_AugAssign(self, node):
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.visit(ast.Name(node.target.id, ast.Load()))
        self.visit(node.target)

    def visit_For(self, node):
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_Import(self, node):
        self.bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node):
        arguments = node.args
        for part in (*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)):
            self.visit(part)
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)

    def visit_ClassDef(self, node):
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.visit(part)
        inside = _Order()
        for part in node.body:
            inside.visit(part)
        self.read |= inside.read - self.bound
        self.bound.add(node.name)

    def visit_ListComp(self, node):
        inside, results = _Order(), [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in node.generators:
            for piece in (part.iter, part.target, *part.ifs):
                inside.visit(piece)
        for part in results:
            inside.visit(part)
        self.read |= inside.read - self.bound

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Running(ast.NodeTransformer):
    """Leaves of definitions what runs when they are made: decorators, defaults, and the statements of a class."""

    def visit_FunctionDef(self, node):
        arguments = node.args
        kinds = filter(None, [*(part.annotation for part in ast.walk(arguments) if isinstance(part, ast.arg)), node.returns])
        calls = [kind for kind in kinds if any(isinstance(part, ast.Call) for part in ast.walk(kind))]
        parts = [*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults), *calls]
        return [ast.Expr(part) for part in parts]

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        bases = [base for base in node.bases if not isinstance(base, ast.Attribute)]  # those with a dot are of libraries
        parts = [*node.decorator_list, *bases, *(keyword.value for keyword in node.keywords)]
        return [*map(ast.Expr, parts), *self.visit(ast.Module(node.body, [])).body]


def _effects(tree: ast.Module) -> tuple[set[str], set[str], set[str]]:
    """Names whose things are changed, of which something is set up, and whose random numbers are seeded."""
    changed, sets, seeds = set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            changed.add(_root(node))
            sets.add(_root(node))
        elif isinstance(node, ast.AugAssign):
            changed.add(_root(node.target))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute):
                changed.add(_root(function))
            name = getattr(function, "attr", getattr(function, "id", ""))
            if SETTING.fullmatch(name):
                sets.add(_root(function))
            if SEEDING.fullmatch(name):
                seeds.add(_root(function))
    return changed - {None}, sets - {None}, seeds - {None}


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _dotted(tree: ast.Module):
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner and (root := _root(node)) is not None:
            path = []
            while isinstance(node, ast.Attribute):
                path.append(node.attr)
                node = node.value
            yield ".".join([root, *reversed(path)]) if isinstance(node, ast.Name) else root


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


def _loads(nodes: list[ast.AST]):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level else node.module.partition(".")[0]


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
    wanted = [(name, cell.index) for cell in theirs for name in cell.uses.now]
    wanted += [(name, None) for cell in theirs for name in cell.uses.later]
    return _needed(ours, wanted, theirs)


def tests_side(cells: list[Cell], words: Mapping[str, Iterable[str]]) -> set[int]:
    """The indices of the source's cells that the tests' side runs.

    Args:
        words: by the name of a test cell, what it needs beside its own names, such as those of its wrong answers.
    """
    ours = [cell for cell in cells if cell.kind == "source" and not SKIPPED & set(cell.tags)]
    tests = [cell for cell in cells if cell.kind == "test"]
    if any(REFLECTING & cell.uses.reads for cell in tests):
        return {cell.index for cell in ours}
    wanted = [(name, cell.index) for cell in tests for name in {*cell.uses.reads, *words.get(cell.name, ())}]
    # An Exercise seeds all generators, whatever was drawn before.
    return _needed(ours, wanted, [cell for cell in tests if not cell.source.startswith("exercise = Exercise(")])


def _needed(cells: list[Cell], wanted: list[tuple[str, int | None]], beside: list[Cell]) -> set[int]:
    """The cells that give names their values, those that these need, and those that set something up.

    Those that seed are needed only if something that runs may draw.

    Args:
        wanted: names, each with the place before which it needs its value, or None if it is read at any time.
        beside: cells that run on this side as well.
    """
    imported = {name for cell in cells for name, *_ in cell.uses.imports}
    found: set[int] = set()
    asked: set[tuple[str, int | None]] = set()

    def take(cell: Cell) -> None:
        if cell.index not in found:
            found.add(cell.index)
            wanted.extend((name, cell.index) for name in cell.uses.now)
            wanted.extend((name, None) for name in cell.uses.later - cell.uses.now)

    def follow() -> None:
        while wanted:
            name, before = wanted.pop()
            if (name, before) in asked:
                continue
            asked.add((name, before))
            for cell in reversed(cells):
                if before is not None and cell.index >= before:
                    continue
                if name in cell.uses.binds:
                    take(cell)
                    if before is not None and name not in cell.uses.now:
                        break
                elif name in cell.uses.changes - imported - BUILTIN:
                    take(cell)

    for cell in cells:
        if not cell.uses.plain or cell.uses.sets & imported:
            take(cell)
    follow()
    if not draw_nothing([*beside, *(cell for cell in cells if cell.index in found)]):
        for cell in cells:
            if cell.uses.seeds & imported:
                take(cell)
        follow()
    return found


def draw_nothing(cells: list[Cell]) -> bool:
    """Whether these cells, and no others, can run without a number from the generators that everybody shares.

    So it is if they use only builtins, what QUIET names, and values that such cells made: nothing that they
    define is called then, and there is no object whose methods or operators could draw.
    """
    told = [cell.uses for cell in cells]
    places = {(name, full) for some in told for name, _, full in some.imports}
    imported = {name for name, _ in places}
    functions = frozenset().union(*(some.functions for some in told))
    values = frozenset().union(*(some.binds | some.local for some in told))

    def quiet(text: str) -> bool:
        root, dot, rest = text.partition(".")
        if root in functions | REFLECTING or "__" in text:
            return False
        if root in imported:
            return all(QUIET.fullmatch(full + dot + rest) for name, full in places if name == root)
        return root in values | BUILTIN

    return all(some.plain and some.loads <= HARMLESS and all(map(quiet, some.runs)) for some in told)


@lru_cache(4096)
def without_prints(source: str) -> str:
    """A cell of the source that is run for its names only: what it prints is computed for readers."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    kept = [node for node in tree.body if not _prints(node)]
    return source if len(kept) == len(tree.body) else ast.unparse(ast.Module(kept, []))


def _prints(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "print"


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
            found = {name if "." in name else places.get(name, name) for name in cell.get("allowed") or ()}
            for source in [*sources, *right.get(cell["name"], ())]:
                found |= course_names(uses(source), places, definitions)
            answers.allowed[cell["name"]] = sorted(found)
            waiting = []
    return answers


def course_names(own: Uses, places: dict[str, str], definitions: dict[str, Uses]) -> set[str]:
    """The full names of `course` that a piece of code uses, by itself or through what the notebook defines."""
    local = places | {name: full for name, _, full in own.imports}
    seen, waiting, found = set(), [own], set()
    while waiting:
        some = waiting.pop()
        for text in some.dotted:
            root, dot, rest = text.partition(".")
            if (full := local.get(root, "")).partition(".")[0] == "course":
                found.add(full + dot + rest)
        for name in some.reads - seen:
            seen.add(name)
            if name in definitions and name not in local:
                waiting.append(definitions[name])
    return found
