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

from autograder.authoring.chapters import Chapter, tags
from book.evidence import read_tests, record_stems
from book.leaks import Lines
from book.mathematics import typeset
from book.pages import equation_anchor, equations
from book.proofs import theorems
from book.registry import Registry
from book.render import render
from book.tables import evidence as sentences
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


def pages(registry: Registry, root: Path, secrets: Iterable[str] = (), chapters: Iterable[Chapter] = ()) -> dict[str, str]:
    """The pages of all evidence that is there, and their pictures, by their path in the book's source.

    Args:
        registry: names the tests and proofs.
        root: the course folder.
        secrets: lines of hidden tests and solutions; where the evidence has one, the page says so instead.
        chapters: of the book, to which the pages lead back, and whose figures show what experiments measured.
    """
    hide = _hider(secrets)
    chapters = list(chapters)
    uses = _uses(registry, chapters)
    files: dict[str, set[str]] = defaultdict(set)  # file: its functions that are named
    for evidence in uses:
        file, _, name = evidence.partition("::")
        files[file].add(name)
    made, known = {}, theorems(root)
    for file, names in sorted(files.items()):
        path = root / file
        if path.is_file():
            name = f"evidence/{path.stem}.md" if path.suffix == ".py" else f"evidence/proofs/{path.stem}.md"
            text = path.read_text(encoding="utf-8")
            speaks_of = {n: known[claim].definitions for n in names if (claim := f"{file}::{n}") in known}
            made[name] = _page(text, file, {n: uses[f"{file}::{n}"] for n in names}, speaks_of, hide)
    read, drawn = records(root), figures(chapters)
    for path in sorted((root / "experiments").glob("*.py")):
        if data.record_path(path.stem, root=root).is_file():
            behind = [use for evidence, stems in read.items() if path.stem in stems for use in uses.get(evidence, [])]
            pictures = {f"{path.stem}-{n}.svg": figure for n, figure in enumerate(drawn.get(path.stem, []), start=1)}
            alts = {name: alt for name, (alt, _) in pictures.items()}
            made[f"evidence/experiments/{path.stem}.md"] = _experiment(root, path.stem, hide, behind, alts)
            made |= {f"evidence/experiments/{name}": svg for name, (_, svg) in pictures.items()}
    return made


def _uses(registry: Registry, chapters: list[Chapter]) -> dict[str, list[dict[str, str]]]:
    """What each test or theorem is evidence for: a link to the entry, one to the chapter, and what is shown."""
    numbered = {}
    for chapter in chapters:
        for id, number in equations(chapter).items():
            own = registry.formulas.get(id)
            if own and own.chapter == chapter.stem:
                numbered[id] = f"{{ref}}`({number}) <{equation_anchor(chapter, id)}>` in "
    there = {chapter.stem for chapter in chapters}

    def where(id: str, stem: str, depth: str) -> str:
        return f"{numbered.get(id, 'in ')}[{registry.chapters[stem]}]({depth}{stem}/{stem}.ipynb)" if stem in there else ""

    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for formula in registry.formulas.values():
        if formula.evidence:
            depth = "../../" if formula.evidence.partition("::")[0].endswith(".v") else "../"
            named = formula.name.replace("$", "")  # a link's words here are plain text
            link = f"{{ref}}`{named} <formula-{formula.id}>`"
            found[formula.evidence].append(
                {"link": link, "where": where(formula.id, formula.chapter, depth), "shows": typeset(sentences(formula))}
            )
    for erratum in registry.errata.values():
        link = f"{{ref}}`an erratum <erratum-{erratum.id}>`"
        depth = "../../" if erratum.check.partition("::")[0].endswith(".v") else "../"
        found[erratum.check].append({"link": link, "where": where("", erratum.chapter, depth), "shows": erratum.right})
    return found


def figures(chapters: Iterable[Chapter]) -> dict[str, list[tuple[str, str]]]:
    """The figures that chapters draw from records, by the record's stem: (text alternative, SVG)."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for chapter in chapters:
        drawn_from: dict[str, set[str]] = defaultdict(set)  # name: stems of the records that its value was made of
        for cell in chapter.notebook.cells:
            if cell.cell_type != "code":
                continue
            used = _follow(cell.source, drawn_from)
            if "figure" not in tags(cell):
                continue
            for output in cell.get("outputs", []):
                if svg := output.get("data", {}).get("image/svg+xml"):
                    for stem in sorted(used):
                        found[stem].append((" ".join(cell.metadata.get("alt", "").split()), svg))
    return found


def _follow(code: str, drawn_from: dict[str, set[str]]) -> set[str]:
    """Note which names a cell makes from records; returns the stems of all that it uses itself."""
    used: set[str] = set()
    try:
        statements = ast.parse(code).body
    except SyntaxError:  # a cell that shows an error, or a magic
        return used
    for statement in statements:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        stems = set(record_stems(statement)).union(*(drawn_from[n.id] for n in names if isinstance(n.ctx, ast.Load)))
        made = [n.id for n in names if isinstance(n.ctx, ast.Store)]
        if isinstance(statement, ast.FunctionDef):
            made.append(statement.name)
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            for name in made:
                drawn_from[name] = stems
            used |= stems
    return used


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


def _page(
    text: str, file: str, uses: dict[str, list[dict[str, str]]], speaks_of: dict[str, tuple[str, ...]], hide: Callable[[str], str]
) -> str:
    """A file with what each named part is evidence for, and the definitions of other files that a theorem speaks of."""
    proof = file.endswith(".v")
    parts = [
        {
            "name": name,
            "label": label(f"{file}::{name}"),
            "title": _words(name),
            "uses": uses.get(name),
            "borrowed": _fenced("\n\n".join(lines), "coq")
            if (lines := [d for d in speaks_of.get(name, ()) if d not in text])
            else "",
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


def _experiment(root: Path, stem: str, hide: Callable[[str], str], uses: list[dict], pictures: dict[str, str]) -> str:
    record = json.loads(data.record_path(stem, root=root).read_text(encoding="utf-8"))
    script = (root / "experiments" / f"{stem}.py").read_text(encoding="utf-8")
    results = record["results"] if isinstance(record["results"], dict) else {}
    return render(
        "experiment.md",
        stem=stem,
        label=experiment_label(stem),
        about=typeset((ast.get_docstring(ast.parse(script)) or "").split("\n\n")[0].replace("\n", " ")),
        uses=[{**use, "where": use["where"].replace("](../", "](../../").replace("../../../", "../../")} for use in uses],
        pictures=[(name, alt.replace("[", "(").replace("]", ")")) for name, alt in pictures.items()],
        results=_shown(results),
        facts=_shown({key: value for key, value in record.items() if key != "results"}),
        script=_fenced(hide(script), "python"),
    )


def _shown(facts: dict) -> dict[str, str]:
    """Those that fit into a table."""
    return {key: _short(value) for key, value in facts.items() if value and len(str(value)) < FACT}


def _short(value) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"{key}: {_short(inside)}" for key, inside in value.items())
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "`" + text.replace("`", "'").replace("|", r"\|") + "`"
