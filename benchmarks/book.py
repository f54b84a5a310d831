"""How long the book takes to build: from nothing, again without a change, after an edit of prose, and for 48 chapters.

    python -m benchmarks.book               # the chapters there are
    python -m benchmarks.book --chapters 48 # as many, copies of those there are

Writes build/benchmarks/book.json and prints it. Builds run in a copy of the course.
"""

import argparse
import json
import os
import platform
import re
import shutil
import tempfile
import time
from pathlib import Path

import nbformat
import yaml

from book.build import build
from book.registry import ROOT, read_yaml

FILES = ("nbgrader_config.py", "_config.yml")
FOLDERS = ("book", "source", "release", "experiments", "course", "tests/receipts")


def course_of(root: Path, chapters: int) -> list[str]:
    """Copy the course into `root`, with copies of its chapters until there are as many; returns their stems."""
    for name in FILES:
        shutil.copy(ROOT / name, root / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    stems = sorted(path.parent.name for path in (root / "source").glob("*/*.ipynb") if path.stem == path.parent.name)
    toc = read_yaml(root / "book" / "_toc.yml")
    titles = read_yaml(root / "book" / "reference" / "chapters.yml")
    copies = [{"file": f"{copy}/{copy}"} for copy in (_copied(root, stems, n) for n in range(chapters - len(stems)))]
    if copies:
        toc["parts"].insert(-1, {"caption": "Copies", "chapters": copies})
        (root / "book" / "_toc.yml").write_text(yaml.safe_dump(toc, sort_keys=False))
        named = titles | {entry["file"].partition("/")[0]: "A copy" for entry in copies}
        (root / "book" / "reference" / "chapters.yml").write_text(yaml.safe_dump(named, sort_keys=False))
    return [*stems, *(entry["file"].partition("/")[0] for entry in copies)]


def _copied(root: Path, stems: list[str], number: int) -> str:
    """A copy of a chapter whose exercises and grade ids have a name of their own."""
    stem = stems[number % len(stems)]
    old, new = stem.partition("_")[0], f"c{number:02}"
    for folder in ("source", "release"):
        text = (root / folder / stem / f"{stem}.ipynb").read_text(encoding="utf-8")
        text = re.sub(rf"\b{old}([.-])(?=[a-z])", rf"{new}\1", text)
        text = re.sub(rf"\*Formula {new}-", f"*Formula {old}-", text)
        path = root / folder / f"{new}_copy" / f"{new}_copy.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return f"{new}_copy"


def seconds(root: Path) -> float:
    """How long one build takes."""
    start = time.monotonic()
    build(root)
    return round(time.monotonic() - start, 1)


def edit(path: Path) -> None:
    """Add a sentence to a chapter's text."""
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells[2:] if cell.cell_type == "markdown" and cell.source[0].isalpha())
    cell.source += " One more sentence."
    nbformat.write(notebook, path)


def measure(chapters: int) -> dict:
    """The times of all kinds of builds, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "course")
        root.mkdir()
        stems = course_of(root, chapters)
        found = {"chapters": len(stems), "from nothing": seconds(root), "no change": seconds(root)}
        edit(root / "source" / stems[-1] / f"{stems[-1]}.ipynb")
        found["one sentence more"] = seconds(root)
        site = [path for path in (root / "build" / "book" / "html").rglob("*") if path.is_file()]
        found["site, MB"] = round(sum(path.stat().st_size for path in site) / 1e6, 1)
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chapters", type=int, default=0, help="make copies until there are so many")
    found = measure(parser.parse_args().chapters)
    found |= {"processors": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    target = ROOT / "build" / "benchmarks" / "book.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
