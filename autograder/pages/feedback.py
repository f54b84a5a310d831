"""What a student reads after grading: one page a chapter, no script, nothing from elsewhere."""

import ast
import base64
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import nbformat
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup, escape
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader.api import SubmittedNotebook
from nbgrader.utils import is_grade, is_solution, is_task
from traitlets import Unicode

from autograder.authoring.chapters import HEADER, SAME_AS, Chapter, grade_id, nbgrader_id, slug, tags, without_regions
from autograder.authoring.course_folder import Sheet
from autograder.errors import CourseError
from autograder.grading.gradebook import of_all, opened, told
from autograder.grading.outputs import BASE64, error_shown, message, plain, safe_markdown
from autograder.grading.settings import settings

READ = re.compile(r"Read: (?P<title>.+?) \(#(?P<slug>[\w-]+)\)\.")
VERDICT = re.compile(r"[\w-]+(\.[\w-]+)+: .* points?\.|[\w-]+(\.[\w-]+)+: the tests you can see .*\.")
NOT_WRITTEN = "not written yet (NotImplementedError)"
LONGEST = 4000  # characters of what was printed, or of one error
LONGEST_ANSWER = 50_000  # characters of an answer as a page shows it
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


class NotGraded(CourseError):
    """The gradebook has no submission of a chapter."""


@dataclass
class Said:
    """What the tests of one exercise said.

    `stopped` tells why the test did not run to its end; `printed` is what the student's code wrote on the way.
    """

    failures: list[str] = field(default_factory=list)
    named: str | None = None
    stopped: str | None = None
    printed: str = ""
    ended: bool = False


@dataclass
class Part:
    """One part of an exercise's tests; `failure` is None where it passed."""

    name: str
    points: float
    failure: str | None = None


def said(cell: NotebookNode, own: str = "") -> Said:
    """Take the outputs of a test cell apart.

    Only what follows the last verdict is the test's own: a student's code can print all else.

    Args:
        own: what the student wrote; frames of a traceback in it may be shown.
    """
    told, printed, verdict = Said(), [], []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            lines = plain("".join(output.text)).splitlines()
            last = max((i for i, line in enumerate(lines) if VERDICT.fullmatch(line)), default=None)
            if last is None:
                printed += lines
            else:
                printed, verdict = [*printed, *verdict, *lines[:last]], lines[last:]
        elif output.output_type == "error" and output.ename == "CheckFailed":
            printed, verdict = [*printed, *verdict], plain(output.evalue).splitlines()
        elif output.output_type == "error":
            told.stopped = error_shown(output, own)[:LONGEST]
    told.ended = bool(verdict) and told.stopped is None and VERDICT.fullmatch(verdict[0]) is not None
    if verdict and not told.ended and told.stopped is None:
        told.stopped = "\n".join(verdict)
    for line in verdict[1:] if told.ended else []:
        if line.startswith(SAME_AS):
            told.named = line
        elif line.startswith("- "):
            told.failures.append(line[2:])
        elif told.failures:
            told.failures[-1] += f"\n{line}"
    told.printed = "\n".join(line for line in printed if line.strip())[:LONGEST]
    return told


def parts(source: str) -> list[Part]:
    """The parts of an exercise in a test cell's source; those whose names are computed are left out."""
    found = []
    with contextlib.suppress(SyntaxError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.With) and isinstance(call := node.items[0].context_expr, ast.Call):
                given = {"name": None, "points": 0}
                given |= dict(zip(given, (a.value for a in call.args if isinstance(a, ast.Constant)), strict=False))
                given |= {key.arg: key.value.value for key in call.keywords if isinstance(key.value, ast.Constant)}
                if getattr(call.func, "attr", None) == "part" and isinstance(given["name"], str):
                    found.append(Part(given["name"], given["points"]))
    return found


def results(test: str, told: Said) -> list[Part]:
    """The parts of a test that ran, with what they said; what is said twice is said once."""
    shown = parts(test) if told.ended else []
    for failure in told.failures:
        name, _, text = failure.partition(": ")
        part = next((p for p in shown if failure.startswith(f"{p.name}: ")), None)
        if part is None:
            shown.append(Part(name if text else "", 0, text or failure))
        else:
            part.failure = failure[len(part.name) + 2 :]
    seen = set()
    for part in shown:
        if part.failure is not None and part.failure in seen:
            part.failure = "As above."
        seen.add(part.failure)
    return shown


@dataclass
class Own:
    """A cell of the student's as the page shows it."""

    source: str
    error: str | None
    text: str
    pictures: list[str]


def own_cell(cell: NotebookNode) -> Own:
    """What a student wrote into a cell, and what came of it."""
    error, texts, pictures = None, [], []
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            trace = "\n".join(map(str, output.get("traceback", []))) or message(output)
            error = re.sub(r"^-+\n", "", plain(trace))[-LONGEST:]
        elif output.output_type == "stream":
            texts.append(plain("".join(output.text)))
        else:
            data = output.get("data", {})
            kind = next((kind for kind in PICTURES if kind in data), None)
            if kind == "image/svg+xml":
                encoded = base64.b64encode(data[kind].encode("utf-8", "replace")).decode()
                pictures.append(f"data:{kind};base64,{encoded}")
            elif kind and BASE64.fullmatch(data[kind]):
                pictures.append(f"data:{kind};base64,{data[kind]}")
            else:
                texts.append(plain(str(data.get("text/plain", ""))))
    source = cell.source
    if len(source) > LONGEST_ANSWER:
        source = f"{source[:LONGEST_ANSWER]}\n… and {len(source) - LONGEST_ANSWER:,} more characters"
    return Own(source, error, "\n".join(texts)[:LONGEST].strip("\n"), pictures)


@cache
def _templates() -> Environment:
    """The pages' templates, which are compiled once."""
    return Environment(loader=PackageLoader("autograder.pages"), autoescape=select_autoescape())


def page(
    chapter: Chapter, student: str, grades: dict, comments: dict, notebook: NotebookNode, book: str | None, penalty: float = 0.0
) -> str:
    """The feedback page of one graded notebook as HTML.

    Args:
        grades: nbgrader's grade by nbgrader id.
        comments: the teacher's comment by nbgrader id.
        notebook: the autograded notebook.
        book: where the book's pages are, for the links "Read: …"; without it they lead to the sections' text on the page itself.
        penalty: points taken off because the submission was late.
    """
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    own, reading = _written(notebook), {}

    def link(to: str, title: str) -> Markup:
        heading = escape(chapter.sections.get(to, title))
        if book:
            return Markup(f'<a href="{escape(book)}/{chapter.stem}/{chapter.stem}.html#{to}">{heading}</a>')
        if to not in reading:
            reading[to] = {"slug": to, "heading": heading, "text": Markup(section_text(chapter, to))}
        return Markup(f'<a href="#read-{to}">{heading}</a>') if reading[to]["text"] else heading

    def text(line: str) -> Markup:
        def anchor(match: re.Match) -> str:
            return f"Read: {link(match['slug'], match['title'])}."

        shown = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(line)))
        return Markup(READ.sub(anchor, shown))

    def item(task: Task) -> dict:
        grade, graded = grades.get(task.name), cells.get(task.name)
        told = said(graded, own) if graded is not None else Said()  # an exercise that is newer than the grading
        score, points = known_score(grade), float(task.test.metadata.nbgrader.points)
        by_hand = is_solution(task.test) or is_task(task.test)
        names = [task.name] if by_hand else [grade_id(cell) for cell in task.cells if is_solution(cell)]
        tested = results(task.test.source, told)
        empty = bool(told.failures) and all(NOT_WRITTEN in line for line in told.failures) and all(p.failure for p in tested)
        section = None
        if task.section in chapter.sections and not READ.search("\n".join([*told.failures, told.named or ""])):
            lost = score is not None and score < points
            section = link(task.section, "") if lost else None
        return {
            "id": task.id,
            "short": task.id.partition(".")[2] or task.id,
            "anchor": task.name,
            "points": points,
            "score": score,
            "state": "waits" if score is None else "won" if score >= points else "some" if score > 0 else "lost",
            "by_hand": by_hand,
            "empty": empty,
            "parts": [] if empty else [{**vars(part), "failure": part.failure and text(part.failure)} for part in tested],
            "stopped": told.stopped and text(told.stopped),
            "named": told.named and text(told.named.removeprefix(SAME_AS)),
            "comments": [comments[name] for name in dict.fromkeys([*names, task.name]) if comments.get(name)],
            "answers": [own_cell(cells[name]) for name in names if name in cells],
            "broken": [cell for cell in map(own_cell, between.get(task.name, [])) if cell.error],
            "printed": told.printed,
            "section": section,
        }

    between = _own_before(notebook)
    items = [item(task) for task in tasks(chapter)]
    template = _templates().get_template("feedback.html")
    return template.render(
        student=student,
        title=chapter.title,
        exercises=items,
        score=max(0.0, sum(i["score"] or 0 for i in items) - penalty),
        penalty=penalty,
        points=sum(i["points"] for i in items),
        waiting=sum(i["score"] is None for i in items),
        flags=notebook.metadata.get("autograder", {}).get("flags", []),
        reading=[section for section in reading.values() if section["text"]],
    )


def section_text(chapter: Chapter, name: str) -> str:
    """The text of a section of a chapter as clean HTML without links to other files; empty if there is no such section.

    Args:
        name: the slug of its heading.
    """
    cells = [cell for cell in chapter.notebook.cells if cell.cell_type == "markdown" and "receipts" not in tags(cell)]
    cells = [c for c in cells if not (is_solution(c) or is_grade(c) or is_task(c) or HEADER.search(c.source))]
    lines, level = [], 0
    for line in "\n\n".join(without_regions(cell.source, "MARK SCHEME") for cell in cells).splitlines():
        heading = re.match(r"(#{1,4}) (.*)", line)
        if heading and level and len(heading[1]) <= level:
            break
        if level:
            lines.append(line)
        elif heading and slug(heading[2].rstrip()) == name:
            level = len(heading[1])
    html = safe_markdown({}, "\n".join(lines).strip())
    html = re.sub(r"<img\b[^>]*>", "", html)
    return re.sub(r'<a href="(?!https?://)[^"]*">(.*?)</a>', r"\1", html, flags=re.DOTALL)


@dataclass
class Task:
    """A graded cell of the source.

    `name` is nbgrader's id, `id` the one that people read, `section` the slug of the section that an exercise of a
    chapter stands in, `cells` are those since the last graded one.
    """

    name: str
    id: str
    section: str
    cells: list[NotebookNode]
    test: NotebookNode


def tasks(chapter: Chapter) -> list[Task]:
    """The graded cells of a chapter in their order, by hand or by machine."""
    found, ids, section, since = [], {}, "", []
    for cell in chapter.notebook.cells:
        if cell.cell_type == "markdown":
            ids |= {nbgrader_id(match["id"]): match["id"] for match in HEADER.finditer(cell.source)}
            headings = re.findall(r"^##+ (.*)$", cell.source, re.MULTILINE)
            section = slug(headings[-1]) if headings else section
        since.append(cell)
        if is_grade(cell) or is_task(cell):
            name = grade_id(cell)
            found.append(Task(name, ids.get(name, name), section if name in ids else "", since, cell))
            since = []
    return found


def known_score(grade) -> float | None:
    """The score of a grade of nbgrader's gradebook; None where a person has yet to give it."""
    if grade is None or (grade.needs_manual_grade and grade.manual_score is None and grade.auto_score is None):
        return None
    return float(grade.score)


def _own_before(notebook: NotebookNode) -> dict[str, list[NotebookNode]]:
    """The student's own code cells by the graded cell that they stand before."""
    found, since = {}, []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "own" in tags(cell):
            since.append(cell)
        elif is_grade(cell):
            found[grade_id(cell)], since = since, []
    return found


def sheet_page(chapter: Chapter, sheet: SubmittedNotebook, notebook: NotebookNode, book: str | None) -> str:
    """The page of a graded notebook with what nbgrader's gradebook has of it."""
    grades = {grade.name: grade for grade in sheet.grades}
    comments = {comment.name: comment.manual_comment for comment in sheet.comments}
    return page(chapter, sheet.student.id, grades, comments, notebook, book, sheet.late_submission_penalty or 0.0)


def write_feedback(
    chapter: Chapter, db_url: str, book: str | None = None, failed: Callable[[str, Exception], None] | None = None
) -> list[Path]:
    """Write `feedback/<student>/<chapter>/<notebook>.html` for every graded submission.

    Args:
        book: the address of the book; without it `c.Course.book_url`, and without that the sections' text is on the pages.
        failed: called with the student and the error where a page could not be made, and the next one is; without
            it, the error is raised.

    Raises:
        NotGraded: if the gradebook has nothing of the chapter.
        CourseError: if the gradebook cannot be used.
    """
    pages, address = [], book or settings(chapter.root).book_url or None
    with told(db_url), opened(db_url) as gradebook:
        handed_in = gradebook.notebook_submissions(chapter.name, chapter.stem)
        if not handed_in:
            raise NotGraded(f"{chapter.id} is not in the gradebook; run autograder grade first")
        for sheet in handed_in:
            student = sheet.student.id
            graded = chapter.folder("autograded", student) / f"{chapter.name}.ipynb"
            if not graded.is_file():
                continue
            try:
                target = chapter.folder("feedback", student) / f"{chapter.name}.html"
                target.parent.mkdir(parents=True, exist_ok=True)
                text = sheet_page(chapter, sheet, nbformat.read(graded, as_version=4), address)
                target.write_text(text, encoding="utf-8")
            except Exception as error:  # one student's page is never another's problem
                if failed is None or of_all(error):
                    raise
                failed(student, error)
            else:
                pages.append(target)
    return pages


class FeedbackPage(HTMLExporter):
    """The same page from `nbgrader generate_feedback` and formgrader's button."""

    book = Unicode(help="The address of the book, for links; c.Course.book_url without it.").tag(config=True)

    def from_notebook_node(self, nb: NotebookNode, resources: dict | None = None, **kw):
        where, root = resources["nbgrader"], Path(self.parent.coursedir.root)
        sheet = Sheet(root, where["assignment"], where["notebook"])
        with opened(where["db_url"]) as gradebook:
            submission = gradebook.find_submission_notebook(sheet.name, sheet.stem, where["student"])
            text = sheet_page(sheet, submission, nb, self.book or settings(root).book_url or None)
        return text, {**resources, "output_extension": self.file_extension}


def _written(notebook: NotebookNode) -> str:
    """All code that the student has seen or written: every cell but the tests."""
    return "\n".join(c.source for c in notebook.cells if c.cell_type == "code" and (is_solution(c) or not is_grade(c)))
