"""Nothing that a student must find out is told: not by a page, not by search, not by the EPUB, not by the PDF."""

import html
import re
import subprocess
import zipfile

import pytest
from small_course import ROOT

from autograder.authoring.answers import load as load_answers
from autograder.authoring.chapters import find_chapters
from autograder.authoring.release import secrets
from book.registry import load

CHAPTERS = find_chapters(ROOT)
TEXT = (".html", ".js", ".json", ".txt", ".inv", ".ipynb", ".xml", ".svg", ".v", ".css", ".xhtml", ".opf")


LONG = 40  # characters from which on a line is looked for inside others, however they are broken


class Told:
    """What one file tells: its lines, and all of it in one, both without white space and tags."""

    def __init__(self, text: str):
        text = html.unescape(re.sub(r"<[^>]+>", "", text)).replace('\\"', '"').replace("\\n", "\n")
        self.lines = {squeezed(line).strip(",").strip('"') for line in text.splitlines()}
        self.whole = squeezed(text)

    def tells(self, line: str) -> bool:
        line = squeezed(line)
        return line in self.whole if len(line) > LONG else line in self.lines


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def public() -> str:
    """What students have: every release notebook and the course's code."""
    files = [*(chapter.release for chapter in CHAPTERS), *(ROOT / "course").rglob("*.py")]
    return "\n".join(file.read_text(encoding="utf-8").replace("\\n", "\n").replace('\\"', '"') for file in files)


PUBLIC = squeezed(public())


@pytest.fixture(scope="module")
def told(book, real_epub, real_pdf):
    """All text that the site, the EPUB and the PDF tell, by file."""
    found = {
        str(path.relative_to(book)): Told(path.read_text(encoding="utf-8", errors="replace"))
        for path in book.rglob("*")
        if path.suffix in TEXT and "katex" not in path.parts
    }
    with zipfile.ZipFile(real_epub) as file:
        found |= {f"epub/{name}": Told(file.read(name).decode(errors="replace")) for name in file.namelist()}
    words = subprocess.run(["pdftotext", real_pdf, "-"], capture_output=True, text=True, check=True).stdout
    return found | {"book.pdf": Told(words)}


def lines_of_answers(chapter) -> set[str]:
    """The lines of wrong and other right answers that students do not have, and what a wrong answer's author is told."""
    lines = {line.strip() for line in chapter.answers.read_text(encoding="utf-8").splitlines()}
    common = ("import ", "from ", "@", "def ", "class ", "#")
    sentences = {answer.sentence for answer in load_answers(chapter.answers) if answer.sentence}
    return sentences | {line for line in lines if len(line) > 30 and squeezed(line) not in PUBLIC and not line.startswith(common)}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_no_hidden_line_and_no_solution_is_told(told, chapter):
    hidden = {line for line in secrets(chapter) if squeezed(line) not in PUBLIC}
    assert hidden, "a chapter has hidden tests"
    assert [(name, line) for name, file in told.items() for line in hidden if file.tells(line)] == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_no_wrong_answer_is_told(told, chapter):
    lines = lines_of_answers(chapter)
    assert lines
    assert [(name, line) for name, file in told.items() for line in lines if file.tells(line)] == []


def test_a_planted_secret_would_be_found(told):
    exercise = CHAPTERS[0].exercises[0]
    [short] = [line for line in CHAPTERS[0].notebook.cells[exercise.test].source.splitlines() if line.startswith("exercise = ")]
    long = load().formulas["e23"].does
    for line, page in ((short, f"{CHAPTERS[0].stem}.xhtml"), (long, "formulas.xhtml")):
        found = {name for name, file in told.items() if file.tells(line)}
        assert {"book.pdf", f"epub/book/{page}"} <= found, line
    assert {"reference/formulas.html", "formulas.json"} <= found


def test_the_search_index_is_among_what_is_read(told):
    assert len(told["searchindex.js"].whole) > 10_000
