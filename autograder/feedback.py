"""What a student reads after grading: one page a chapter, no script, nothing from elsewhere."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup, escape
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograder.chapters import Chapter, CourseError, Exercise, nbgrader_id

READ = re.compile(r"Read: (?P<title>.+?) \(#(?P<slug>[\w-]+)\)\.")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Said:
    """What the tests of one exercise said."""

    failures: list[str]
    named: str | None
    printed: str


def said(cell: NotebookNode) -> Said:
    """Take the outputs of a test cell apart: failed parts, the misconception, what the student printed."""
    from autograder.answers import SAME_AS

    texts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append("".join(output.text))
        elif output.output_type == "error":  # other tracebacks show lines of the tests
            hidden = output.ename != "CheckFailed"
            texts.append(f"{output.ename}: {output.evalue}" if hidden else "\n".join(output.traceback))
    failures, named, printed = [], None, []
    inside = False
    for line in ANSI.sub("", "\n".join(texts)).splitlines():
        if line.startswith(SAME_AS):
            named = line
        elif inside and line.startswith("- "):
            failures.append(line[2:])
        elif re.match(r"\w+\.\w+: .* points?\.$", line):
            inside = True
        elif line.strip():
            printed.append(line)
    return Said(failures, named, "\n".join(printed)[:4000])


def page(chapter: Chapter, student: str, grades: dict, comments: dict, notebook: NotebookNode, book: str) -> str:
    """The feedback page of one graded notebook as HTML.

    Args:
        grades: nbgrader's grade by nbgrader id.
        comments: the teacher's comment by nbgrader id.
        notebook: the autograded notebook.
        book: where the book's pages are, for the links "Read: …".
    """
    cells = {
        cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id")
    }

    def link(text: str) -> Markup:
        def anchor(match: re.Match) -> str:
            heading = escape(chapter.sections.get(match["slug"], match["title"]))
            return f'Read: <a href="{escape(book)}/{chapter.stem}/{chapter.stem}.html#{match["slug"]}">{heading}</a>.'

        return Markup(READ.sub(anchor, str(escape(text))))

    def item(exercise: Exercise) -> dict:
        name = nbgrader_id(exercise.id)
        grade = grades.get(name)
        told = said(cells[name]) if name in cells else Said([], None, "")  # an exercise that is newer than the grading
        waiting = grade is None or (grade.needs_manual_grade and grade.manual_score is None and grade.auto_score is None)
        answer = cells.get(name if exercise.by_hand else f"{name}-answer")
        return {
            "id": exercise.id,
            "points": exercise.points,
            "score": None if waiting else grade.score,
            "failures": [link(line) for line in told.failures],
            "named": link(told.named) if told.named else None,
            "comment": comments.get(name),
            "answer": answer.source if answer is not None else "",
            "output": told.printed,
        }

    items = [item(exercise) for exercise in chapter.exercises]
    template = Environment(loader=PackageLoader("autograder"), autoescape=select_autoescape()).get_template("feedback.html")
    return template.render(
        student=student,
        title=chapter.title,
        exercises=items,
        score=sum(i["score"] or 0 for i in items),
        points=sum(i["points"] for i in items),
        waiting=sum(i["score"] is None for i in items),
        flags=notebook.metadata.get("autograder", {}).get("flags", []),
    )


def write_feedback(chapter: Chapter, db_url: str, book: str | None = None) -> list[Path]:
    """Write `feedback/<student>/<chapter>/<chapter>.html` for every graded submission.

    Args:
        book: the address of the book; without it, the built one in this folder.

    Raises:
        CourseError: if the chapter has not been graded.
    """
    written = []
    with Gradebook(db_url) as gradebook:
        handed_in = gradebook.assignment_submissions(chapter.stem)
        if not handed_in:
            raise CourseError(f"{chapter.stem} is not in the gradebook; run autograder grade first")
        for submission in handed_in:
            student = submission.student.id
            graded = chapter.root / "autograded" / student / chapter.stem / f"{chapter.stem}.ipynb"
            if not graded.is_file():
                continue
            grades = {grade.name: grade for sheet in submission.notebooks for grade in sheet.grades}
            comments = {comment.name: comment.manual_comment for sheet in submission.notebooks for comment in sheet.comments}
            target = chapter.root / "feedback" / student / chapter.stem / f"{chapter.stem}.html"
            target.parent.mkdir(parents=True, exist_ok=True)
            pages = book or os.path.relpath(chapter.root / "build" / "book" / "html", target.parent)
            text = page(chapter, student, grades, comments, nbformat.read(graded, as_version=4), pages)
            target.write_text(text, encoding="utf-8")
            written.append(target)
    return written
