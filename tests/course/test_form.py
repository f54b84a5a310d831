"""What a reader can rely on in every module of `course`: its names, and what their docstrings say.

The form is in CONTRIBUTING.md. Modules are read as syntax trees; nothing here runs them.
"""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (ROOT / "course").rglob("*.py") if path != ROOT / "course" / "__init__.py")
CHAPTERS = {path.name.partition("_")[2]: path.name.partition("_")[0] for path in (ROOT / "source").iterdir() if path.is_dir()}
PAPERS = {entry["text"] for entry in yaml.safe_load((ROOT / "book/reference/bibliography.yml").read_text())}
FORMULAS = {entry["id"] for entry in yaml.safe_load((ROOT / "book/reference/formulas.yml").read_text())}
AUTHORS = re.compile(r"([A-Z][\w’'-]*)((?:,? (?:and )?[A-Z][\w-]+)*(?: et al\.)?) (\((?:1[89]|20)\d\d\))")
SECTIONS = "Args", "Returns", "Raises", "Source"
SHAPE = re.compile(r"\((\.\.\.|…|at most \w+|[\w′]+( ?[-+−·*/] ?[\w²]+)*)(, [^()]*|,)?\)|any shape")
LITERATURE = re.compile(r"\((1[89]|20)\d\d\)|\bet al\b|\b[A-Z][a-z]+ (1[89]|20)\d\d\b")
DEFINITION = ast.FunctionDef | ast.ClassDef


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def documented(node: ast.Module | ast.ClassDef, before: tuple = ()):
    """(name, definition, docstrings of what it is in) of all that is public."""
    around = (*before, ast.get_docstring(node) or "")
    for inside in node.body:
        if (
            isinstance(inside, DEFINITION) and not inside.name.startswith("_") and inside.name != "describe"
        ):  # see Widget.describe
            yield inside.name, inside, around
            if isinstance(inside, ast.ClassDef):
                yield from ((f"{inside.name}.{name}", *rest) for name, *rest in documented(inside, around))


every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "course")))


def sections(text: str) -> dict[str, str]:
    """The text of each section by its name; what comes before them is that of ""."""
    cut = re.split(rf"^({'|'.join(SECTIONS)}):", text, flags=re.MULTILINE)
    return {"": cut[0], **dict(zip(cut[1::2], cut[2::2], strict=True))}


def called(node: ast.FunctionDef | ast.ClassDef) -> ast.FunctionDef | None:
    """The function that a call runs: of a class, its `__init__`."""
    if isinstance(node, ast.FunctionDef):
        return node
    return next((inside for inside in node.body if isinstance(inside, ast.FunctionDef) and inside.name == "__init__"), None)


def arguments(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    return [arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs) if arg.arg not in ("self", "cls")]


def holds_tensor(annotation: ast.expr | None) -> bool:
    """Whether it is a tensor or array, or some of them; not a function of them."""
    text = ast.unparse(annotation) if annotation is not None else ""
    return re.search(r"\b(Tensor|ndarray)\b", text) is not None and "Callable" not in text


def raised(function: ast.FunctionDef) -> set[str]:
    """The classes of errors that a function raises itself; what is re-raised or raised by a function inside is not among them."""
    found, waiting = set(), list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, DEFINITION | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found.add(ast.unparse(error).rpartition(".")[2])
        waiting += ast.iter_child_nodes(node)
    return {name for name in found if name[0].isupper()}


# ---------------------------------------------------------------- modules


@every_module
def test_a_module_lists_its_public_names(path):
    """All functions and classes that it defines, and of its other names those that are meant for others."""
    module, listed, bound = tree(path), None, set()
    for node in module.body:
        if isinstance(node, DEFINITION):
            bound.add(node.name)
        for target in getattr(node, "targets", [node.target] if isinstance(node, ast.AnnAssign) else []):
            names = [inside.id for inside in ast.walk(target) if isinstance(inside, ast.Name)]
            bound.update(names)
            if names == ["__all__"]:
                listed = ast.literal_eval(node.value)
    defined = {node.name for node in module.body if isinstance(node, DEFINITION) and not node.name.startswith("_")}
    imported = {alias.asname or alias.name for node in module.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert listed is not None and len(set(listed)) == len(listed)
    assert defined <= set(listed)
    assert set(listed) <= bound | imported
    assert not any(name.startswith("_") for name in listed)


@pytest.mark.parametrize("stem", CHAPTERS)
def test_a_chapters_module_says_its_subject_and_its_chapter(stem):
    module = tree(ROOT / "course" / f"{stem}.py")
    first = ast.get_docstring(module).split("\n\n")[0]
    assert re.fullmatch(rf"[^:]+(: .*)?\bchapter {CHAPTERS[stem]}\.", first)
    assert list(has_its_source_in_the_bibliography(module, ())) == []


@every_module
def test_a_module_says_what_it_is_for_and_where_it_is_from(path):
    module = tree(path)
    assert list(begins_with_a_sentence(module, ())) == [] == list(gives_literature_as_its_source(module, ()))


def test_imports_between_modules_have_no_circle():
    """Those at the top of a module; what a function imports when it is called may point anywhere in `course`."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    arrows = {name: set() for name in names}
    for name, path in names.items():
        for node in tree(path).body:
            if isinstance(node, ast.ImportFrom):
                arrows[name] |= {found for alias in node.names if (found := f"{node.module}.{alias.name}") in names}
                arrows[name] |= {node.module} & set(names)
            elif isinstance(node, ast.Import):
                arrows[name] |= {alias.name for alias in node.names} & set(names)
    while ends := [name for name, to in arrows.items() if not to]:
        for name in ends:
            del arrows[name]
        for to in arrows.values():
            to -= set(ends)
    assert arrows == {}


# ---------------------------------------------------------------- functions and classes
# Each rule gets a definition and the docstrings of the class and module that it is in, and gives what breaks it.


def begins_with_a_sentence(node: DEFINITION, around: tuple):
    text = ast.get_docstring(node)
    if not text or text.startswith(SECTIONS):
        yield "has no docstring that begins with a sentence"


def has_sections_in_order(node: DEFINITION, around: tuple):
    text = ast.get_docstring(node) or ""
    named = [name for pair in re.findall(r"^(\w+):\s*$|^(Source):", text, flags=re.MULTILINE) for name in pair if name]
    if not set(named) <= set(SECTIONS) or named != sorted(set(named), key=SECTIONS.index):
        yield f"has the sections {', '.join(named)}; there are {', '.join(SECTIONS)}, in this order"
    yield from (f"has nothing under {name}" for name, told in sections(text).items() if name and not told.strip())


def names_tensors_with_their_shapes(node: DEFINITION, around: tuple):
    """Each tensor that is given, and one that is returned: in the text, or in `Args` and `Returns`."""
    function, text = called(node), ast.get_docstring(node) or ""
    if function is None:
        return
    given = [arg.arg for arg in arguments(function) if holds_tensor(arg.annotation)]
    yield from (f"does not name {name}" for name in given if not re.search(rf"(?<!\w){name}(?!\w)", text))
    returned = isinstance(node, ast.FunctionDef) and holds_tensor(node.returns)
    if (given or returned) and not SHAPE.search(text) and not re.search(r"\bas (for|in) `\w+`", text):
        yield "tells no shape"


def lists_arguments_that_are_there(node: DEFINITION, around: tuple):
    """Where they are not written out, as the fields of a dataclass and the traits of a widget: names of the body."""
    function, text = called(node), sections(ast.get_docstring(node) or "").get("Args", "")
    rows = re.findall(r"^    (\S[^:]*):", text, flags=re.MULTILINE)
    told = {name.strip(" `*") for row in rows for name in re.sub(r"\([^()]*\)", "", row).split(",")} - {""}
    if function is not None and function.args.kwarg is None:
        given = {arg.arg for arg in (*arguments(function), function.args.vararg) if arg}
    else:
        given = {inside.id for inside in ast.walk(node) if isinstance(inside, ast.Name)}
    yield from (f"lists {name}, which is no argument" for name in sorted(told - given))


def tells_the_errors_that_it_raises(node: DEFINITION, around: tuple):
    """In `Raises` of the function, of its class, or of its module."""
    makes = ("__init__", "__post_init__")
    inside = node.body if isinstance(node, ast.ClassDef) else [node]
    functions = [f for f in inside if isinstance(f, ast.FunctionDef) and (f is node or f.name in makes)]
    told = " ".join(sections(text).get("Raises", "") for text in (*around, ast.get_docstring(node) or ""))
    yield from (f"raises {name} and does not say so" for f in functions for name in sorted(raised(f)) if name not in told)


def gives_literature_as_its_source(node: DEFINITION, around: tuple):
    """`Source: Author (year), Title, place.`"""
    parts = sections(ast.get_docstring(node) or "")
    if any(LITERATURE.search(text) for name, text in parts.items() if name != "Source"):
        yield "names a paper outside Source"
    if "Source" in parts and not re.match(r"[A-Z][\w’'., -]*( and [A-Z][\w-]+| et al\.)? \(\d{4}\), \S", parts["Source"].strip()):
        yield "has a Source that is not: Author (year), Title, place."


def has_its_source_in_the_bibliography(node: DEFINITION, around: tuple):
    for first, _, year in AUTHORS.findall(sections(ast.get_docstring(node) or "").get("Source", "")):
        if not any(re.match(rf"{first}\b[^(]*{re.escape(year)}", paper) for paper in PAPERS):
            yield f"has the Source {first} {year}, which is not in book/reference/bibliography.yml"


RULES = (
    begins_with_a_sentence,
    has_sections_in_order,
    names_tensors_with_their_shapes,
    lists_arguments_that_are_there,
    tells_the_errors_that_it_raises,
    gives_literature_as_its_source,
    has_its_source_in_the_bibliography,
)


def problems(module: ast.Module) -> list[str]:
    return [f"{name} {told}" for name, node, around in documented(module) for rule in RULES for told in rule(node, around)]


@every_module
def test_all_that_is_public_is_documented_in_one_form(path):
    assert problems(tree(path)) == []


BROKEN = '''
class C:
    def __init__(self): raise ValueError

def f(x: Tensor, y: Tensor) -> Tensor:
    """x twice. Somebody et al. 2020.

    Returns:
        (V,).

    Args:
        z: (V,).
    """
    raise KeyError

def g(x: Tensor):
    """x once.

    Source: a paper.
    """

def h(x: Tensor):
    """x (N,).

    Source: Nobody and Others (1999), On x.
    """
'''


def test_each_rule_sees_what_breaks_it():
    assert problems(ast.parse(BROKEN)) == [
        "C has no docstring that begins with a sentence",
        "C raises ValueError and does not say so",
        "f has the sections Returns, Args; there are Args, Returns, Raises, Source, in this order",
        "f does not name y",
        "f lists z, which is no argument",
        "f raises KeyError and does not say so",
        "f names a paper outside Source",
        "g tells no shape",
        "g has a Source that is not: Author (year), Title, place.",
        "h has the Source Nobody (1999), which is not in book/reference/bibliography.yml",
    ]


@every_module
def test_formulas_that_are_named_are_in_the_registry(path):
    named = re.findall(r"\bformulas? ([a-z][\w-]*\w)(?: and ([a-z][\w-]*\w))?", path.read_text(encoding="utf-8"))
    assert {id for pair in named for id in pair if re.search(r"\d", id)} - FORMULAS == set()
