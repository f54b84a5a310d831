"""Writes each chapter's table of formulas from the registry into its source notebook.

python -m book.tables            write the tables that are stale
python -m book.tables --check    write nothing; exit with 1 if one is stale
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat

from autograder.authoring.chapters import Chapter, find_chapters, tags
from book.mathematics import typeset
from book.registry import ROOT, Formula, Registry, RegistryError, load

MARK = "<!-- receipts -->"


def table(registry: Registry, chapter: str, *, links: bool = False) -> str:
    """The chapter's formulas as a folded Markdown table that JupyterLab and the book read.

    Args:
        registry: where the formulas are.
        chapter: its slug.
        links: whether the receipts link to the reference page, as in the book.
    """
    formulas = registry.of(chapter)
    count = f"{len(formulas)} formula{'s' * (len(formulas) != 1)}"
    summary = f"<summary>The {count} of this chapter, with what the evidence of each shows</summary>"
    if links:  # narrower than JupyterLab: three columns, and each receipt leads to its entry
        lines = [
            MARK,
            "",
            f'<details class="formulas">{summary}',
            "",
            ":::{div} with-receipts",
            "| Formula | Receipt | What the evidence shows |",
            "|:---|:---|:---|",
        ]
        lines += [
            f"| **{_cell(f.name)}** ${in_table(f.latex)}$ {_cell(typeset(f.does))} | {receipt_link(f, f.receipt)} | {_cell(typeset(evidence(f)))} |"
            for f in formulas
        ]
        lines += [":::"]
    else:
        lines = [
            MARK,
            "",
            f"<details>{summary}",
            "",
            "| Formula | What it does | Receipt | What the evidence shows |",
            "|:---|:---|:---|:---|",
        ]
        lines += [f"| {_shown(f)} | {_cell(f.does)} | {f.receipt} | {_cell(evidence(f))} |" for f in formulas]
    return "\n".join([*lines, "", "</details>"])


def receipt_link(formula: Formula, text: str) -> str:
    """A badge of the receipt's kind that leads to the formula's entry, in the book's Markdown."""
    return f"[{{ref}}`{text} <formula-{formula.id}>`]{{.receipt .receipt-{formula.receipt}}}"


def _shown(formula: Formula) -> str:
    return f"{_cell(formula.name)} ({formula.id})<br>${in_table(formula.latex)}$"


def evidence(formula: Formula) -> str:
    """What stands behind a formula, in sentences."""
    said = []
    if formula.wrong:
        said.append(f"Wrong: {formula.wrong}")
    if formula.right:
        said.append(f"Right: {formula.right}")
    if formula.shows:
        said.append(formula.shows)
    if formula.limits:
        said.append(f"Limits: {formula.limits}")
    if formula.source:
        said.append(f"Source: {formula.source}")
    return " ".join(_sentence(text) for text in said)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def in_table(latex: str) -> str:
    """LaTeX that may stand in a Markdown table: no bars, on one line."""
    latex = re.sub(r"\|(?=[a-zA-Z])", lambda _: r"\vert ", latex.replace(r"\|", r"\Vert "))
    return re.sub(r"\s+", " ", latex.replace("|", r"\vert")).strip()


def _cell(text: str) -> str:
    parts = re.split(r"(\$[^$]+\$)", re.sub(r"\s+", " ", text).strip())
    return "".join(in_table(part) if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def update(chapter: Chapter, registry: Registry, *, write: bool) -> list[str]:
    """Bring a chapter's `receipts` cell up to date; what was stale or is missing, one line each."""
    notebook = nbformat.read(chapter.path, as_version=4)
    cells = [cell for cell in notebook.cells if "receipts" in tags(cell)]
    if len(cells) != 1 or cells[0].cell_type != "markdown":
        return [f"{chapter.stem}: one Markdown cell is tagged `receipts`; its text is {MARK}"]
    fresh = table(registry, chapter.stem)
    if cells[0].source == fresh:
        return []
    if write:
        cells[0].source = fresh
        nbformat.write(notebook, chapter.path)
    return [f"{chapter.stem}: the table of formulas {'was' if write else 'is'} stale"]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m book.tables", description="Write the chapters' tables of formulas from the registry."
    )
    parser.add_argument("chapters", nargs="*", help="chapters such as ch04; all without one")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a table is stale")
    options = parser.parse_args(arguments)
    try:
        registry = load(root / "book" / "reference")
    except RegistryError as error:
        print(error, file=sys.stderr)
        return 1
    said = [
        line for chapter in find_chapters(root, options.chapters) for line in update(chapter, registry, write=not options.check)
    ]
    for line in said:
        print(line)
    missing = any("tagged" in line for line in said)
    return int(missing or (options.check and bool(said)))


if __name__ == "__main__":
    sys.exit(main())
