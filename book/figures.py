"""Numbers and captions of a chapter's figures, those one can play with among them."""

from nbformat import NotebookNode

from autograder.authoring.chapters import Chapter, tags
from book.names import number

TAGS = {"figure", "widget"}


def numbered(chapter: Chapter) -> dict[int, str]:
    """The numbers of a chapter's figures by their cells: 4.1, 4.2, … in ch04, F3.1, … in f03."""
    cells = [place for place, cell in enumerate(chapter.notebook.cells) if TAGS & set(tags(cell))]
    return {cell: f"{number(chapter.stem)}.{count}" for count, cell in enumerate(cells, start=1)}


def caption(cell: NotebookNode, figure: str):
    """Make the output of a page's cell the figure of this number; yields what is wrong with it."""
    said = cell.metadata.pop("caption", "")
    if not said:
        yield 'a figure has a caption that says in a sentence what it shows: cell metadata "caption"'
    label = f"figure-{figure.lower().replace('.', '-')}"
    given = {"caption": f"[Figure {figure}]{{.figure-number}} {said}", "name": label}
    cell.metadata.setdefault("mystnb", NotebookNode())["figure"] = NotebookNode(given)
