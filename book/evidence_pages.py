"""The tests, proofs and experiments behind the formulas as pages of the book, so that a receipt leads to what it rests on.

Each file that the registry names becomes one page outside the table of contents; `label` is the place of one
test or theorem on it.
"""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from autograder.authoring.chapters import Chapter
from book.evidence import read_tests
from book.leaks import Lines
from book.registry import Registry
from book.render import render
from course import data

WITHHELD = "# withheld: this line answers an exercise"
ANSWER = 30  # characters; shorter lines of answers stand everywhere
FACT = 1000  # characters; what is longer in a record are its results
THEOREM = r"\b(?:Theorem|Lemma|Corollary|Fact|Proposition)\s+{}\b"


def label(evidence: str) -> str:
    """The target of a test or theorem: tests/receipts/test_attention.py::test_gap is evidence-test_attention-test_gap."""
    file, _, name = evidence.partition("::")
    return f"evidence-{Path(file).stem}-{name}"


def experiment_label(stem: str) -> str:
    """The target of an experiment's page."""
    return f"experiment-{stem}"


def records(root: Path) -> dict[str, list[str]]:
    """The stems of the records that each test reads, by `path::name`."""
    return {name: list(dict.fromkeys(test.records)) for name, test in read_tests(root)[0].items() if test.records}


def pages(registry: Registry, root: Path, secrets: Iterable[str] = ()) -> dict[str, str]:
    """The pages of all evidence that is there, by their path in the book's source.

    Args:
        registry: names the tests and proofs.
        root: the course folder.
        secrets: lines of hidden tests and solutions; where the evidence has one, the page says so instead.
    """
    hide = _hider(secrets)
    files: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))  # file: function: links back
    for formula in registry.formulas.values():
        if formula.evidence:
            file, _, name = formula.evidence.partition("::")
            files[file][name].append(f"{{ref}}`{formula.name} <formula-{formula.id}>`")
    for erratum in registry.errata.values():
        file, _, name = erratum.check.partition("::")
        files[file][name].append(f"{{ref}}`an erratum <erratum-{erratum.id}>`")
    made = {}
    for file, uses in sorted(files.items()):
        path = root / file
        if path.is_file():
            name = f"evidence/{path.stem}.md" if path.suffix == ".py" else f"evidence/proofs/{path.stem}.md"
            made[name] = _page(path.read_text(encoding="utf-8"), file, uses, hide)
    for path in sorted((root / "experiments").glob("*.py")):
        if data.record_path(path.stem, root=root).is_file():
            made[f"evidence/experiments/{path.stem}.md"] = _experiment(root, path.stem, hide)
    return made


def lines_of_answers(chapter: Chapter) -> set[str]:
    """The lines of a chapter's other right and wrong answers that are long enough to tell something."""
    if not chapter.answers.is_file():
        return set()
    return {line.strip() for line in chapter.answers.read_text(encoding="utf-8").splitlines() if len(line.strip()) > ANSWER}


def _hider(secrets: Iterable[str]) -> Callable[[str], str]:
    hidden = Lines(secrets)

    def shown(line: str) -> str:
        if not hidden.told_by(line):
            return line
        return line[: len(line) - len(line.lstrip())] + WITHHELD

    return lambda text: "\n".join(map(shown, text.splitlines()))


def _page(text: str, file: str, uses: dict[str, list[str]], hide: Callable[[str], str]) -> str:
    proof = file.endswith(".v")
    parts = [
        {
            "name": name,
            "label": label(f"{file}::{name}"),
            "title": _words(name),
            "uses": uses.get(name),
            "code": _fenced(hide(code), "coq" if proof else "python"),
        }
        for name, code in (_theorems if proof else _functions)(text, set(uses))
    ]
    return render("evidence.md", file=file, name=Path(file).name, proof=proof, parts=parts)


def _words(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ").capitalize()


def _fenced(code: str, language: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", code) or [""]))
    return f"{fence}{language}\n{code}\n{fence}"


def _functions(text: str, named: set[str]):
    """A module cut before each named function and after it: (name or nothing, code)."""
    rows = text.splitlines()
    cuts = [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1, node.end_lineno, node.name)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name in named
    ]
    yield from _cut(rows, cuts)


def _theorems(text: str, named: set[str]):
    rows = text.splitlines()
    cuts = []
    for name in named:
        for number, row in enumerate(rows):
            if re.search(THEOREM.format(re.escape(name)), row):
                end = next((i for i in range(number, len(rows)) if re.search(r"\b(?:Qed|Defined)\.", rows[i])), len(rows) - 1)
                cuts.append((number, end + 1, name))
                break
    yield from _cut(rows, sorted(cuts))


def _cut(rows: list[str], cuts: list[tuple[int, int, str]]):
    at = 0
    for start, end, name in [*cuts, (len(rows), len(rows), "")]:
        if between := "\n".join(rows[at:start]).strip("\n"):
            yield "", between
        if name:
            yield name, "\n".join(rows[start:end])
        at = end


def _experiment(root: Path, stem: str, hide: Callable[[str], str]) -> str:
    record = json.loads(data.record_path(stem, root=root).read_text(encoding="utf-8"))
    results = record["results"]
    facts = record | {"results": {}} | {f"results: {key}": results[key] for key in results if isinstance(results, dict)}
    return render(
        "experiment.md",
        stem=stem,
        label=experiment_label(stem),
        facts={key: _short(value) for key, value in facts.items() if value and len(str(value)) < FACT},
        script=_fenced(hide((root / "experiments" / f"{stem}.py").read_text(encoding="utf-8")), "python"),
    )


def _short(value) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"{key}: {_short(inside)}" for key, inside in value.items())
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "`" + text.replace("`", "'").replace("|", r"\|") + "`"
