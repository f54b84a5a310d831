"""What a teacher reads after grading: scores, how the exercises worked, what to look at; as CSV, HTML and for other gradebooks."""

import csv
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from jinja2 import Environment, PackageLoader, select_autoescape
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import is_solution

from autograder.answers import SAME_AS
from autograder.chapters import Chapter, grade_id, tags
from autograder.feedback import READ, known_score, said, tasks
from autograder.similarity import Pair, alike, runs

HEADER = ("student", "chapter", "exercise", "score", "max")
FEW = 30  # students; with fewer, a discrimination says little
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass
class Person:
    """A student as the gradebook knows them; only `id` is always there."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms: str = ""


@dataclass
class Sheet:
    """What one student got for one chapter. Scores are by exercise, None where a teacher has yet to read the answer."""

    person: Person
    chapter: Chapter
    scores: dict[str, float | None]
    most: dict[str, float]
    penalty: float = 0.0
    named: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    seconds: float | None = None
    wording: set[tuple] = field(default_factory=set)

    @property
    def total(self) -> float:
        return max(0.0, sum(score or 0.0 for score in self.scores.values()) - self.penalty)

    @property
    def points(self) -> float:
        return sum(self.most.values())


def collect(chapters: list[Chapter], db_url: str) -> list[Sheet]:
    """Every graded submission of some chapters, from the gradebook and from `autograded/`, by chapter and student."""
    sheets = []
    with Gradebook(db_url) as gradebook:
        for chapter in chapters:
            try:
                handed_in = gradebook.assignment_submissions(chapter.stem)
            except MissingEntry:
                continue
            known = {task.name: task.id for task in tasks(chapter)}
            given = runs(_code(chapter.notebook, lambda cell: not is_solution(cell)) + _released(chapter))
            for submission in sorted(handed_in, key=lambda s: s.student.id):
                grades = {g.name: g for sheet in submission.notebooks for g in sheet.grades}
                who = submission.student
                sheet = Sheet(
                    Person(who.id, who.first_name or "", who.last_name or "", who.email or "", who.lms_user_id or ""),
                    chapter,
                    {id: known_score(grades[name]) for name, id in known.items() if name in grades},
                    {id: float(grades[name].max_score) for name, id in known.items() if name in grades},
                    sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks),
                )
                path = chapter.root / "autograded" / who.id / chapter.stem / f"{chapter.stem}.ipynb"
                if path.is_file():
                    _read(sheet, nbformat.read(path, as_version=4), known, given)
                sheets.append(sheet)
    return sheets


def _read(sheet: Sheet, notebook: NotebookNode, known: dict[str, str], given: set[tuple]) -> None:
    sheet.flags = list(notebook.metadata.get("autograder", {}).get("flags", []))
    sheet.seconds = notebook.metadata.get("seconds")
    for cell in notebook.cells:
        if grade_id(cell) in known and (named := said(cell).named):
            sheet.named[known[grade_id(cell)]] = READ.sub("", named.removeprefix(SAME_AS)).strip()
    sheet.wording = runs(_code(notebook, lambda cell: is_solution(cell) or "own" in tags(cell)), given)


def _code(notebook: NotebookNode, wanted) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type != "raw" and wanted(cell)]


def _released(chapter: Chapter) -> list[str]:
    return _code(nbformat.read(chapter.release, as_version=4), lambda cell: True) if chapter.release.is_file() else []


# ---------------------------------------------------------------- how the exercises worked


@dataclass
class Item:
    """What a class did with one exercise.

    `difficulty` is the mean share of the points, 0 to 1 (the classical p-value: high is easy). `discrimination` is the
    correlation of the exercise's score with the sum of the chapter's other exercises (the corrected item-total
    correlation), with its 95 % interval by Fisher's z; None where all scores are the same or there are fewer than three.
    """

    exercise: str
    students: int
    difficulty: float | None
    discrimination: float | None
    interval: tuple[float, float] | None
    misconceptions: list[tuple[str, int]]

    @property
    def note(self) -> str:
        if self.students == 0:
            return "nobody’s score is known yet"
        if self.discrimination is None:
            return "no discrimination: too few students, or no spread"
        return f"few students ({self.students}): the discrimination is uncertain" if self.students < FEW else ""


def items(sheets: list[Sheet]) -> list[Item]:
    """Classical item statistics of every exercise, in the order of the chapters. Scores that wait are left out."""
    found = []
    for mine in _by_chapter(sheets).values():
        for exercise in dict.fromkeys(name for sheet in mine for name in sheet.scores):
            scored = [sheet for sheet in mine if sheet.scores.get(exercise) is not None]
            own = [sheet.scores[exercise] for sheet in scored]
            rest = [sum(score or 0.0 for name, score in sheet.scores.items() if name != exercise) for sheet in scored]
            shares = [sheet.scores[exercise] / sheet.most[exercise] for sheet in scored if sheet.most[exercise]]
            met = Counter(sheet.named[exercise] for sheet in mine if exercise in sheet.named)
            r = correlation(own, rest)
            found.append(
                Item(
                    exercise,
                    len(scored),
                    statistics.fmean(shares) if shares else None,
                    r,
                    interval(r, len(scored)),
                    met.most_common(),
                )
            )
    return found


def correlation(x: list[float], y: list[float]) -> float | None:
    """Pearson's, or None where it is not defined."""
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        return None
    return statistics.correlation(x, y)


def interval(r: float | None, n: int) -> tuple[float, float] | None:
    """The 95 % interval of a correlation of `n` pairs, by Fisher's z."""
    if r is None or n < 4 or abs(r) >= 1:
        return None
    z, half = math.atanh(r), 1.96 / math.sqrt(n - 3)
    return math.tanh(z - half), math.tanh(z + half)


def reliability(sheets: list[Sheet]) -> float | None:
    """Cronbach's alpha of one chapter, of the submissions whose scores are all known."""
    whole = [list(sheet.scores.values()) for sheet in sheets if None not in sheet.scores.values()]
    if len(whole) < 3 or len(whole[0]) < 2 or (spread := statistics.variance(map(sum, whole))) == 0:
        return None
    k = len(whole[0])
    return k / (k - 1) * (1 - sum(statistics.variance(column) for column in zip(*whole, strict=True)) / spread)


def similar(sheets: list[Sheet]) -> list[tuple[Chapter, Pair]]:
    """Pairs of submissions that are nearly the same where the release is not."""
    return [
        (mine[0].chapter, pair)
        for mine in _by_chapter(sheets).values()
        for pair in alike({sheet.person.id: sheet.wording for sheet in mine})
    ]


def _by_chapter(sheets: list[Sheet]) -> dict[str, list[Sheet]]:
    found = defaultdict(list)
    for sheet in sheets:
        found[sheet.chapter.stem].append(sheet)
    return found


# ---------------------------------------------------------------- files


def safe(text: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _write(path: Path, rows: Iterable[Iterable[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def write_scores(sheets: list[Sheet], path: Path) -> None:
    """One row a student and exercise, in the order of `HEADER`; a score that waits for a teacher is empty."""
    rows = [
        (safe(sheet.person.id), sheet.chapter.stem, exercise, _number(score), _number(sheet.most[exercise]))
        for sheet in sheets
        for exercise, score in sheet.scores.items()
    ]
    _write(path, [HEADER, *rows])


def write_items(found: list[Item], path: Path) -> None:
    """One row an exercise: how hard it was, how well it tells students apart, what went wrong most."""
    header = ("exercise", "students", "difficulty", "discrimination", "low", "high", "note", "misconceptions")
    rows = []
    for item in found:
        low, high = item.interval or (None, None)
        numbers = [f"{x:.3f}" if x is not None else "" for x in (item.difficulty, item.discrimination, low, high)]
        met = "; ".join(f"{n} x {text}" for text, n in item.misconceptions)
        rows.append((item.exercise, str(item.students), *numbers, item.note, safe(met)))
    _write(path, [header, *rows])


def write_moodle(sheets: list[Sheet], path: Path) -> None:
    """A file for Moodle's grade import (Grades, Import, CSV file): map Username, or Email address, to the user."""
    people, chapters, totals = _gradebook(sheets)
    header = ["Username", "First name", "Last name", "Email address", *(_heading(chapter) for chapter in chapters)]
    rows = [
        [
            *map(safe, (person.id, person.first, person.last, person.email)),
            *(_number(totals.get((person.id, chapter.stem))) for chapter in chapters),
        ]
        for person in people
    ]
    _write(path, [header, *rows])


def write_canvas(sheets: list[Sheet], path: Path) -> None:
    """A file for the import of Canvas's gradebook; the second row has the points possible."""
    people, chapters, totals = _gradebook(sheets)
    most = {sheet.chapter.stem: sheet.points for sheet in sheets}
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(_heading(chapter) for chapter in chapters)]
    possible = ["    Points Possible", "", "", "", "", *(_number(most[chapter.stem]) for chapter in chapters)]
    rows = [
        [
            safe(", ".join(part for part in (person.last, person.first) if part) or person.id),
            *map(safe, (person.lms, "", person.id)),
            "",
            *(_number(totals.get((person.id, chapter.stem))) for chapter in chapters),
        ]
        for person in people
    ]
    _write(path, [header, possible, *rows])


def _gradebook(sheets: list[Sheet]) -> tuple[list[Person], list[Chapter], dict[tuple[str, str], float]]:
    people = {sheet.person.id: sheet.person for sheet in sheets}
    chapters = {sheet.chapter.stem: sheet.chapter for sheet in sheets}
    totals = {(sheet.person.id, sheet.chapter.stem): sheet.total for sheet in sheets}
    return [people[id] for id in sorted(people)], list(chapters.values()), totals


def _heading(chapter: Chapter) -> str:
    return safe(f"{chapter.id} {chapter.title}")


def write_html(sheets: list[Sheet], path: Path) -> None:
    """The report as one page that needs no other file, no script and no network."""
    found = {item.exercise: item for item in items(sheets)}
    chapters = []
    for mine in _by_chapter(sheets).values():
        shares = [sheet.total / sheet.points for sheet in mine if sheet.points]
        bins = Counter(min(int(10 * share), 9) for share in shares)
        seconds = sorted(sheet.seconds for sheet in mine if sheet.seconds is not None)
        exercises = [found[name] for name in dict.fromkeys(name for sheet in mine for name in sheet.scores)]
        chapters.append(
            {
                "chapter": mine[0].chapter,
                "sheets": mine,
                "bins": [bins[i] for i in range(10)],
                "tallest": max(bins.values(), default=1),
                "mean": statistics.fmean(shares) if shares else None,
                "median": statistics.median(shares) if shares else None,
                "alpha": reliability(mine),
                "waiting": sum(None in sheet.scores.values() for sheet in mine),
                "seconds": (statistics.median(seconds), seconds[-1]) if seconds else None,
                "items": exercises,
                "dots": [item for item in exercises if item.discrimination is not None],
            }
        )
    people, shown, totals = _gradebook(sheets)
    template = Environment(loader=PackageLoader("autograder"), autoescape=select_autoescape()).get_template("report.html")
    text = template.render(
        chapters=chapters,
        people=people,
        shown=shown,
        totals=totals,
        most={sheet.chapter.stem: sheet.points for sheet in sheets},
        flagged=[sheet for sheet in sheets if sheet.flags],
        pairs=similar(sheets),
        few=FEW,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(r"\n\s*\n+", "\n", text), encoding="utf-8")


def write_report(sheets: list[Sheet], folder: Path) -> list[Path]:
    """Every form of the report, in one folder."""
    files = [folder / name for name in ("report.html", "scores.csv", "exercises.csv", "moodle.csv", "canvas.csv")]
    write_html(sheets, files[0])
    write_scores(sheets, files[1])
    write_items(items(sheets), files[2])
    write_moodle(sheets, files[3])
    write_canvas(sheets, files[4])
    return files
