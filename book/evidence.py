"""Whether the evidence that the registry names is there and can carry what is claimed.

That it runs and passes is shown by the tests themselves: `tests/receipts/conftest.py` makes a skipped
or expectedly failing receipt a failure, and `tests/receipts/test_proofs.py` checks every proof with Rocq.
"""

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from book import proofs
from book.registry import CORRECTIONS, EVIDENCE, KINDS, ROOT, Formula, Registry
from course import data

CLOSE = {"allclose", "approx", "assert_allclose", "assert_array_equal", "assert_close", "equal", "isclose", "gradcheck"}


@dataclass
class Test:
    """A test function of `tests/receipts`."""

    name: str  # path::function
    receipts: dict[str, str]  # formula id: kind
    escapes: list[str] = field(default_factory=list)  # skip, xfail and their like
    sympy: bool = False
    bounded: bool = False
    records: list[str] = field(default_factory=list)  # stems given to course.data.record
    text: str = ""


def problems(registry: Registry, root: Path = ROOT) -> list[str]:
    """All that is wrong between the registry's claims and the tests, one line each."""
    tests, told = read_tests(root)
    for formula in registry.formulas.values():
        if formula.receipt in EVIDENCE + CORRECTIONS:
            told += [f"{formula.id}: {problem}" for problem in _problems_of(formula, tests, root)]
    for test in tests.values():
        for id, kind in test.receipts.items():
            if id not in registry.formulas:
                told.append(f"{test.name}: is marked as the receipt of {id}, which has no entry in book/reference/formulas.yml")
            if kind not in EVIDENCE + CORRECTIONS:
                told.append(f"{test.name}: kind {kind!r} is none of {', '.join(EVIDENCE + CORRECTIONS)}")
    return told


def _problems_of(formula: Formula, tests: dict[str, Test], root: Path):
    if ".v::" in formula.evidence and carries("proved", formula.receipt):
        yield from proofs.problems_of(formula.evidence, root)
        return
    if formula.receipt == "proved":
        yield "a proof's evidence is tests/receipts/proofs/….v::theorem"
        return
    test = tests.get(formula.evidence)
    if test is None:
        yield f"there is no test {formula.evidence}: write it, or claim a receipt without evidence"
        return
    kind = test.receipts.get(formula.id)
    if kind is None:
        yield f'{test.name} is not its receipt: mark it with @pytest.mark.receipt("{formula.id}", "{formula.receipt}")'
        return
    if not carries(kind, formula.receipt):
        yield f"claims {formula.receipt}, but {test.name} is only {kind}: claim that, or strengthen the test"
    if test.escapes:
        yield f"{test.name} uses {', '.join(test.escapes)}: evidence must run"
    if "derived" in (kind, formula.receipt) and not test.sympy:
        yield f"{test.name} derives nothing: a derivation uses sympy with symbols"
    if "computed" in (kind, formula.receipt) and not test.bounded:
        yield f"{test.name} asserts no bound: compare with an independent oracle, `assert error <= bound`"
    if "measured" in (kind, formula.receipt):
        yield from (f"{test.name}: {problem}" for problem in _records(test, root))


def carries(kind: str, claim: str) -> bool:
    """Whether evidence of a kind is enough for a claim: a correction needs any evidence, a measurement a measurement."""
    if claim in CORRECTIONS:
        return kind in EVIDENCE + CORRECTIONS
    if "measured" in (kind, claim):
        return kind == claim
    return kind in KINDS and KINDS[kind].strength >= KINDS[claim].strength


def _records(test: Test, root: Path):
    """A measurement has its script, its seeds, and an interval in the record or made by the test from the seeds."""
    if not test.records:
        yield 'reads no record: a measurement is read with course.data.record("stem")'
    for stem in test.records:
        path, script = data.record_path(stem, root=root), root / "experiments" / f"{stem}.py"
        if not script.is_file():
            yield f"the record's script experiments/{stem}.py is not there"
        if not path.is_file():
            yield f"there is no record course/data/records/{stem}.json: run the script"
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        yield from data.problems_of_record(stem, record)
        if not record.get("interval") and "interval" not in test.text:
            yield f"neither the record {stem} nor the test has an interval"


# ---------------------------------------------------------------- reading tests


def read_tests(root: Path = ROOT) -> tuple[dict[str, Test], list[str]]:
    """The test functions of `tests/receipts` by `path::name`, and what cannot be read of them."""
    tests, told = {}, []
    for path in sorted((root / "tests" / "receipts").glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        symbolic = _names_from(tree, "sympy")
        for name, function in functions.items():
            if not name.startswith("test"):
                continue
            label = f"{path.relative_to(root)}::{name}"
            marks, unread = _marks(function)
            if unread:
                told.append(f"{label}: write the id and the kind of a receipt as two strings")
            reached = _reached(function, functions)
            tests[label] = Test(
                label,
                marks,
                sorted({word for node in reached for word in _escapes(node)} | set(_escapes(tree, only_mark=True))),
                any(isinstance(n, ast.Name) and n.id in symbolic for node in reached for n in ast.walk(node)),
                any(_bounds(n) for node in reached for n in ast.walk(node)),
                [stem for node in reached for stem in record_stems(node)],
                "\n".join(ast.unparse(node) for node in reached),
            )
    return tests, told


def _marks(function: ast.FunctionDef) -> tuple[dict[str, str], bool]:
    marks, unread = {}, False
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.receipt":
            values = [a.value for a in decorator.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if len(values) == 2 and not decorator.keywords:
                marks[values[0]] = values[1]
            else:
                unread = True
    return marks, unread


def _reached(function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The function, and those of its module that it calls or asks for as fixtures."""
    found, open_ = {function.name: function}, [function]
    while open_:
        node = open_.pop()
        named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {a.arg for a in node.args.args}
        for name in sorted(named & set(functions) - set(found)):
            found[name] = functions[name]
            open_.append(functions[name])
    return list(found.values())


def _names_from(tree: ast.Module, package: str) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names if a.name.split(".")[0] == package}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            names |= {a.asname or a.name for a in node.names}
    return names


def _escapes(node: ast.AST, only_mark: bool = False):
    """What lets a test pass without running: a decorator or a call; of a module, only its `pytestmark`."""
    if only_mark:
        node = ast.Module([n for n in node.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "pytestmark"], [])
    for inside in ast.walk(node):
        if isinstance(inside, ast.Attribute) and re.fullmatch(
            r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)", ast.unparse(inside)
        ):
            yield ast.unparse(inside)


def _bounds(node: ast.AST) -> bool:
    """Whether a node compares with a bound; equality is a bound of zero."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).split(".")[-1] in CLOSE
    if isinstance(node, ast.Assert | ast.Return) and (compared := getattr(node, "test", None) or getattr(node, "value", None)):
        comparisons = [n for n in ast.walk(compared) if isinstance(n, ast.Compare)]
        return any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq) for n in comparisons for op in n.ops)
    return False


def record_stems(node: ast.AST):
    """The stems that a piece of code gives to `course.data.record`."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "record":
            yield from (a.value for a in call.args[:1] if isinstance(a, ast.Constant))
