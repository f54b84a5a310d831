"""Nothing that a student must find out is told: not by a page, not by search, not by the EPUB, not by the PDF."""

import filecmp
import html
import json
import re
import subprocess
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import nbformat
import pytest
import sphinx
from small_course import ROOT

from autograder.authoring.answers import load as load_answers
from autograder.authoring.chapters import Chapter, find_chapters
from autograder.authoring.release import secrets
from book.leaks import LONG, Lines
from book.registry import load

CHAPTERS = find_chapters(ROOT)
TEXT = (".html", ".js", ".json", ".txt", ".tsv", ".inv", ".ipynb", ".xml", ".svg", ".v", ".css", ".xhtml", ".opf")
SPHINX = Path(sphinx.__file__).parent / "themes" / "basic" / "static"
LINE_END = re.compile(r"(?<!\\)(?:\\\\)*\\n")  # in a string of JSON, where a line of code has \\n for its own \n
# A tag, and not what lies between the signs of 0 < x and y > 0
TAG = re.compile(r"</?[a-zA-Z][\w:-]*(?:\s[^<>]*=[^<>]*)?\s*/?>|<[!?][^<>]*>")
COMMON = ("import ", "from ", "@", "def ", "class ", "#")  # how lines of an answer begin that a task may give, too


def squeezed(text: str) -> str:
    """Text without white space, and without the backslashes and line ends that a notebook or a script adds to it."""
    return re.sub(r"\\+n|\s|\\", "", text)


def key(line: str) -> str:
    """What a line is recognised by where it is a line of its own."""
    return squeezed(line).strip('",')


class Told:
    """What one file tells: its lines, and all of it in one."""

    def __init__(self, text: str):
        text = html.unescape(TAG.sub("", text))
        self.lines = {key(part) for line in text.splitlines() for part in (line, *LINE_END.split(line))}
        self.whole = squeezed(text)


def tellers(told: dict[str, Told], lines: Iterable[str]) -> dict[str, list[str]]:
    """The files that tell a line, for each line that one tells: long lines are looked for inside others, however they are broken."""
    of_long = {squeezed(line): line for line in lines if len(squeezed(line)) > LONG}
    of_short = {key(line): line for line in lines if len(squeezed(line)) <= LONG}
    long, found = Lines(of_long), defaultdict(list)
    for name, file in told.items():
        for line in (*map(of_long.get, long.inside(file.whole)), *map(of_short.get, of_short.keys() & file.lines)):
            found[line].append(name)
    return found


@pytest.fixture(scope="module")
def told(book, real_epub, real_pdf):
    """All text that the site, the EPUB and the PDF tell, by file; but for KaTeX's files and those that are Sphinx's to the byte."""
    found = {
        str(path.relative_to(book)): Told(path.read_text(encoding="utf-8", errors="replace"))
        for path in book.rglob("*")
        if path.suffix in TEXT
        and "katex" not in path.parts
        and not ((SPHINX / path.name).is_file() and filecmp.cmp(path, SPHINX / path.name, shallow=False))
    }
    with zipfile.ZipFile(real_epub) as file:
        found |= {f"epub/{name}": Told(file.read(name).decode(errors="replace")) for name in file.namelist()}
    words = subprocess.run(["pdftotext", real_pdf, "-"], capture_output=True, text=True, check=True).stdout
    return found | {"book.pdf": Told(words)}


# ---------------------------------------------------------------- what is looked for


@cache
def hidden_lines(chapter: Chapter) -> set[str]:
    """The lines of hidden tests and solutions, but for those that another chapter shows: a loop over steps, say."""
    return {line for line in secrets(chapter) if key(line) not in released()}


@cache
def released() -> set[str]:
    """The lines of all release notebooks."""
    return {key(line) for c in CHAPTERS for cell in nbformat.read(c.release, 4).cells for line in cell.source.splitlines()}


@cache
def lines_of_answers(chapter: Chapter) -> set[str]:
    """The lines of wrong and other right answers that students do not have, and what a wrong answer's author is told."""
    lines = {line.strip() for line in chapter.answers.read_text(encoding="utf-8").splitlines()}
    sentences = {answer.sentence for answer in load_answers(chapter.answers) if answer.sentence}
    long = {line for line in lines if len(line) > 30 and not line.strip('",').startswith(COMMON)}
    return sentences | {line for line in long if squeezed(line) not in public()}


@cache
def public() -> str:
    """What students have: every release notebook and the course's code."""
    files = [*(chapter.release for chapter in CHAPTERS), *(ROOT / "course").rglob("*.py")]
    return squeezed("\n".join(file.read_text(encoding="utf-8") for file in files))


@pytest.fixture(scope="module")
def leaks(told):
    """The files that tell what they should not, by line."""
    return tellers(told, set().union(*(find(chapter) for find in (hidden_lines, lines_of_answers) for chapter in CHAPTERS)))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
@pytest.mark.parametrize("lines", [hidden_lines, lines_of_answers], ids=["hidden tests and solutions", "answers"])
def test_no_hidden_line_no_solution_and_no_wrong_answer_is_told(leaks, chapter, lines):
    assert lines(chapter), "a chapter has hidden tests and wrong answers"
    assert {line: leaks[line] for line in lines(chapter) & leaks.keys()} == {}


def test_a_planted_secret_would_be_found(told):
    exercise = CHAPTERS[0].exercises[0]
    [short] = [line for line in CHAPTERS[0].notebook.cells[exercise.test].source.splitlines() if line.startswith("exercise = ")]
    long = load().formulas["ch04-attention"].does
    found = tellers(told, {short, long})
    for line, page in ((short, f"{CHAPTERS[0].stem}.xhtml"), (long, "formulas.xhtml")):
        assert {"book.pdf", f"epub/book/{page}"} <= set(found[line]), line
    assert {"reference/formulas.html", "formulas.json"} <= set(found[long])


SECRET = r'print("the answer is\n", a < b, "\\")'


@pytest.mark.parametrize("line", [SECRET, SECRET * 2, "x = 1,", '"a", "b"'])
@pytest.mark.parametrize("form", [
    lambda line: f"before\n    {line}  \nafter",
    lambda line: json.dumps({"source": ["before\n", f"{line}\n", "after"]}, indent=1),
    lambda line: json.dumps({"source": f"before\n{line}\nafter"}),
    lambda line: f"<pre>before\n<span>{html.escape(line)}</span>\nafter</pre>",
    lambda line: html.escape(json.dumps({"esm": f"before\n{line}\nafter"})),
])  # fmt: skip
def test_a_line_is_found_in_every_form_that_a_file_gives_it(form, line):
    told = {"it": Told(form(line)), "not it": Told(form(line.replace("a", "c").replace("x", "y")))}
    assert tellers(told, {line}) == {line: ["it"]}


def test_a_long_line_is_found_wherever_and_however_it_is_broken():
    line = "".join(chr(97 + i % 26) for i in range(LONG + 1))
    for before in range(2 * LONG):
        text = "-" * before + line[:13] + "\n " + line[13:] + "-"
        assert tellers({"it": Told(text)}, {line}) == {line: ["it"]}
    assert tellers({"it": Told(line[:-1] + "\n")}, {line}) == {}


def test_the_search_index_is_among_what_is_read(told):
    assert len(told["search-passages.js"].whole) > 10_000
