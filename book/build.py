"""Builds the book: `python -m book.build` writes pages to build/book/src and the site to build/book/html.

Solutions are in the book only when the environment has SOLUTIONS=show.
"""

import filecmp
import json
import os
import sys
import time
import warnings
from functools import cache
from itertools import chain
from pathlib import Path

import nbformat
import yaml

import course
from autograder.authoring.chapters import Chapter, find_chapters
from autograder.authoring.release import secrets
from autograder.errors import CourseError
from book import (
    atlas,
    data,
    elsewhere,
    evidence_pages,
    follow,
    front,
    generated,
    kernels,
    metadata,
    pages,
    planning,
    proofs,
    still,
    trained,
    transformer_map,
)
from book.extension import KATEX
from book.leaks import Lines
from book.registry import ROOT, Registry, RegistryError, load, read_yaml, titles
from book.terms import places
from book.tools import find
from course.data import record
from course.gamma_atlas import atlas_table
from course.widgets import HERE as WIDGETS


class BuildError(Exception):
    """The book cannot be built; the message says what to mend."""


def prepare(root: Path = ROOT, source: Path | None = None, *, solutions: bool = False) -> Path:
    """Write all pages that changed and take away those that are gone.

    Args:
        root: the course folder.
        source: where to; `build/book/src` without it.
        solutions: whether solutions are shown.

    Returns:
        The folder that Jupyter Book reads.

    Raises:
        BuildError: everything that is wrong with the chapters and the registries.
    """
    source = source or root / "build" / "book" / "src"
    try:
        elsewhere.place()
        registry = load(root / "book" / "reference")
    except (RegistryError, elsewhere.ElsewhereError) as error:
        raise BuildError(str(error)) from error
    chapters = {chapter.stem: chapter for chapter in find_chapters(root)}
    toc = contents(read_yaml(root / "book" / "_toc.yml"), set(chapters), solutions=solutions)
    files = {"_toc.yml": yaml.safe_dump(toc, sort_keys=False, allow_unicode=True)}
    hidden = {stem: secrets(chapter) for stem, chapter in chapters.items()}
    files |= _notebooks(chapters, registry, {} if solutions else hidden, solutions=solutions)
    files |= _reference(root, chapters, registry, toc, solutions=solutions)
    answers = [line for chapter in chapters.values() for line in evidence_pages.lines_of_answers(chapter)]
    files |= evidence_pages.pages(registry, root, [*answers, *chain.from_iterable(hidden.values())], chapters.values())
    assets = {
        f"assets/{path.relative_to(root / 'book' / 'assets')}": path
        for path in (root / "book" / "assets").rglob("*")
        if path.is_file()
    }
    assets["assets/katex/katex.min.js"] = KATEX
    assets["assets/library.css"] = WIDGETS / "library.css"
    assets |= {f"extra/notebooks/{c.release.name}": c.release for c in chapters.values() if c.release.exists()}
    records = Path("course", "data", "records")
    tables = (ROOT / records).glob("*.csv.gz")  # the atlas' page is of this course, whatever the chapters
    assets |= {f"extra/records/{path.name}": path for path in (*(root / records).glob("*.json"), *tables)}
    assets["assets/social.png"] = metadata.social_picture(read_yaml(root / "_config.yml")["title"])
    assets["assets/transformer-map-told.js"] = transformer_map.script()
    assets |= {"assets/follow.js": follow.script(), "assets/follow-weights.js": follow.weights()}
    del assets["assets/follow-model.js"]  # is in follow.js
    assets |= _drawn()
    assets |= {f"proofs/{path.name}": path for path in (root / proofs.FOLDER).glob("*.v")}
    for name, content in {**files, **assets}.items():
        write(source / name, _bytes(content))
    (source / "extra").mkdir(parents=True, exist_ok=True)
    kept = {source / name for name in (*files, *assets)}
    for path in source.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    return source


@cache
def _drawn() -> dict[str, bytes]:
    """The figures of the pages of kernels, of the trained model and of the atlas."""
    drawn = kernels.figures(kernels.records(ROOT)) | trained.figures(record("pretrained"))
    return drawn | atlas.figures(atlas_table(None))


def contents(toc: dict, there: set[str], *, solutions: bool = False) -> dict:
    """The table of contents without the chapters that are not in `source/`, and without solutions unless asked for.

    Raises:
        BuildError: if `source/` has a chapter that it does not name.
    """
    parts, named = [], set()
    for part in toc["parts"]:
        entries = [entry for entry in part["chapters"] if _slug(entry) in there | {None}]
        entries = [entry for entry in entries if solutions or entry["file"] != "reference/solutions"]
        named |= {_slug(entry) for entry in part["chapters"]}
        if entries:
            parts.append({**part, "chapters": entries})
    if missing := sorted(there - named):
        raise BuildError(f"book/_toc.yml does not name {', '.join(missing)}: add it to a part")
    return {**toc, "parts": parts}


def _slug(entry: dict) -> str | None:
    folder, _, name = entry["file"].partition("/")
    return folder if folder == name else None


def _notebooks(
    chapters: dict[str, Chapter], registry: Registry, hidden: dict[str, dict[str, str]], *, solutions: bool
) -> dict[str, str]:
    made, problems = {}, []
    try:
        still.draw(bundle for chapter in chapters.values() for bundle in still.bundles(chapter))
    except still.StillError as error:
        raise BuildError(str(error)) from error
    for stem, chapter in chapters.items():
        try:
            text = nbformat.writes(pages.page(chapter, registry, set(chapters), solutions=solutions)) + "\n"
        except (pages.PageError, CourseError, RegistryError) as error:
            problems.append(str(error))
            continue
        if told := leaks(hidden.get(stem, {}), text):
            problems.append(f"{stem}: the page would tell:\n" + "\n".join(told))
        made[f"{stem}/{stem}.ipynb"] = text
    if problems:
        raise BuildError("\n".join(problems))
    return made


def leaks(hidden: dict[str, str], page: str) -> list[str]:
    """The lines of hidden tests and solutions that are in a page's notebook, each with what it is."""
    cells = nbformat.reads(page, as_version=4).cells
    text = "\n".join(cell.source + "\n" + "\n".join(map(str, cell.get("outputs", []))) for cell in cells)
    told = Lines(hidden).told_by(text)
    return [f"{what}: {line}" for line, what in hidden.items() if line in told]


def _reference(root: Path, chapters: dict[str, Chapter], registry: Registry, toc: dict, *, solutions: bool) -> dict[str, str]:
    try:
        cards = {stem: generated.card(chapter) for stem, chapter in chapters.items()}
        course_parts = transformer_map.parts(read_yaml(root / "book" / "reference" / "parts.yml"), registry.chapters)
    except (generated.CardError, CourseError, RegistryError) as error:
        raise BuildError(str(error)) from error
    in_order = [cards[slug] for part in toc["parts"] for entry in part["chapters"] if (slug := _slug(entry))]
    where = places(registry, [card.chapter for card in in_order])
    made = {
        "index.md": front.index(in_order, course_parts, registry),
        "reference/formulas.md": generated.formulas(registry, set(chapters), evidence_pages.records(root), proofs.entries(root)),
        "reference/glossary.md": generated.glossary(registry, set(chapters), where),
        "reference/exercises.md": generated.exercises(in_order, titles(root / "book" / "reference")),
        "reference/cookbook.md": generated.cookbook(),
        "reference/bibliography.md": generated.bibliography(registry, [card.chapter for card in in_order]),
        "reference/errata.md": generated.errata(registry),
        "reference/symbols.md": (root / "book" / "reference" / "symbols.md").read_text(encoding="utf-8"),
    }
    made["teaching/grading.md"] = (ROOT / "book" / "teaching" / "grading.md").read_text(encoding="utf-8")
    made["teaching/planning.md"] = planning.page(json.loads((ROOT / "benchmarks" / "grading.json").read_text()))
    made[f"{kernels.FOLDER}/kernels.md"] = kernels.page(kernels.records(ROOT))
    made[f"{trained.FOLDER}/trained.md"] = trained.page(record("pretrained"))
    made[f"{atlas.FOLDER}/atlas.md"] = atlas.page(atlas_table(None), record("gamma_atlas"))
    if solutions:
        made["reference/solutions.md"] = generated.solutions(in_order)
    made[metadata.CARDS] = metadata.cards(in_order)
    return made | {
        f"extra/{name}": text
        for name, text in data.files(registry, where, chapters.values(), root / "book" / "reference" / "symbols.md").items()
    }


def _bytes(content: str | bytes | Path) -> bytes:
    if isinstance(content, Path):
        return content.read_bytes()
    return content if isinstance(content, bytes) else content.encode()


def write(path: Path, content: bytes) -> bool:
    """Write a file if that changes it, so that Sphinx reads again only what is new."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def build(root: Path = ROOT, target: Path | None = None, *, solutions: bool = False) -> Path:
    """Build the site; a warning is an error.

    Args:
        root: the course folder.
        target: holds `src`, `html` and Sphinx's cache; `build/book` without it.
        solutions: whether solutions are shown.

    Returns:
        The folder of the site.

    Raises:
        BuildError: if a page cannot be made, or Sphinx warned.
    """
    from jupyter_book.sphinx import build_sphinx  # takes seconds to import

    if find("node") is None:
        raise BuildError("the book needs node to typeset its mathematics: install Node.js 18 or later")
    target = target or root / "build" / "book"
    source = prepare(root, target / "src", solutions=solutions)
    elsewhere.write(find_chapters(root), target / "notebooks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's, in libraries; Sphinx has its own, and they count
        status = build_sphinx(
            source,
            target / "html",
            doctreedir=target / "doctrees",
            noconfig=True,  # no conf.py: all of it is in _config.yml
            path_config=root / "_config.yml",
            confoverrides={
                "version": course.__version__,
                "release": course.__version__,
                "external_toc_path": str(source / "_toc.yml"),
                "latex_individualpages": False,
                "course_root": str(root),
            },
            warningiserror=True,
            keep_going=True,
            quiet=True,
            force_all=_assets_differ(source / "assets", target / "html" / "_static"),  # each page names their versions
        )
    if status:
        raise BuildError(f"Sphinx warned or failed ({status}): see above; a warning is an error here")
    return target / "html"


def _assets_differ(assets: Path, copies: Path) -> bool:
    """Whether a style, script, font or picture is not yet what the site has; Sphinx looks at pages only."""
    files = [path for path in assets.rglob("*") if path.is_file()]
    return any(
        not (copy := copies / path.relative_to(assets)).is_file() or not filecmp.cmp(path, copy, shallow=False) for path in files
    )


def main() -> int:
    """The command; returns its exit code."""
    start = time.monotonic()
    try:
        site = build(solutions=os.environ.get("SOLUTIONS") == "show")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{site / 'index.html'} ({time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
