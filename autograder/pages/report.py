"""What a teacher reads after grading: scores, how the exercises worked, what to look at; as CSV, HTML and for other gradebooks."""

import math
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from jinja2 import Environment, PackageLoader, select_autoescape
from nbformat import NotebookNode
from nbgrader.utils import is_solution

from autograder.authoring.chapters import SAME_AS, Chapter, grade_id, tags
from autograder.grading.gradebook import of_all, opened, told
from autograder.grading.similarity import Pair, alike, runs
from autograder.pages.feedback import READ, known_score, said, tasks
from autograder.platforms import canvas, moodle
from autograder.platforms.tables import Person, gradebook, number, safe, write_rows

HEADER = ("student", "chapter", "exercise", "score", "max")
FEW = 30  # students; with fewer, a discrimination says little
COMPARED = 500_000  # characters of a submission


@dataclass
class Work:
    """What one student got for one chapter. Scores are by exercise, None where a teacher has yet to read the answer.

    `broken` says why the graded notebook could not be read, if so: then only the gradebook's scores are known.
    """

    person: Person
    chapter: Chapter
    scores: dict[str, float | None]
    most: dict[str, float]
    penalty: float = 0.0
    named: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    seconds: float | None = None
    wording: set[tuple] = field(default_factory=set)
    broken: str = ""

    @property
    def total(self) -> float:
        return max(0.0, sum(score or 0.0 for score in self.scores.values()) - self.penalty)

    @property
    def points(self) -> float:
        return sum(self.most.values())


def collect(chapters: list[Chapter], db_url: str) -> list[Work]:
    """Every graded submission of some chapters, from the gradebook and from `autograded/`, by chapter and student.

    Raises:
        CourseError: if the gradebook cannot be used.
    """
    works = []
    with told(db_url), opened(db_url) as gradebook:
        for chapter in chapters:
            handed_in = gradebook.notebook_submissions(chapter.name, chapter.stem)
            known = {task.name: task.id for task in tasks(chapter)}
            given = runs(_code(chapter.notebook, lambda cell: not is_solution(cell)) + _released(chapter))
            for submission in sorted(handed_in, key=lambda s: s.student.id):
                grades = {grade.name: grade for grade in submission.grades}
                who = submission.student
                work = Work(
                    Person(who.id, who.first_name or "", who.last_name or "", who.email or "", who.lms_user_id or ""),
                    chapter,
                    {id: known_score(grades[name]) for name, id in known.items() if name in grades},
                    {id: float(grades[name].max_score) for name, id in known.items() if name in grades},
                    submission.late_submission_penalty or 0.0,
                )
                path = chapter.folder("autograded", who.id) / f"{chapter.name}.ipynb"
                try:
                    if path.is_file():
                        _read(work, nbformat.read(path, as_version=4), known, given)
                except Exception as error:  # one student's notebook is never another's problem
                    if of_all(error):
                        raise
                    work.broken = f"the graded notebook cannot be read ({type(error).__name__}); grade it again with --again"
                    work.flags.append(work.broken)
                works.append(work)
    return works


def _read(work: Work, notebook: NotebookNode, known: dict[str, str], given: set[tuple]) -> None:
    work.flags = list(notebook.metadata.get("autograder", {}).get("flags", []))
    work.seconds = notebook.metadata.get("seconds", {}).get("total")
    for cell in notebook.cells:
        if grade_id(cell) in known and (named := said(cell).named):
            work.named[known[grade_id(cell)]] = READ.sub("", named.removeprefix(SAME_AS)).strip()
    work.wording = runs(_code(notebook, lambda cell: is_solution(cell) or "own" in tags(cell)), given)


def _code(notebook: NotebookNode, wanted) -> list[str]:
    found, left = [], COMPARED
    for cell in notebook.cells:
        if cell.cell_type != "raw" and wanted(cell):
            found.append(cell.source[:left])
            left -= len(found[-1])
    return found


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


def items(works: list[Work]) -> list[Item]:
    """Classical item statistics of every exercise, in the order of the chapters. Scores that wait are left out."""
    found = []
    for mine in _by_chapter(works).values():
        for exercise in dict.fromkeys(name for work in mine for name in work.scores):
            scored = [work for work in mine if work.scores.get(exercise) is not None]
            own = [work.scores[exercise] for work in scored]
            rest = [sum(score or 0.0 for name, score in work.scores.items() if name != exercise) for work in scored]
            shares = [work.scores[exercise] / work.most[exercise] for work in scored if work.most[exercise]]
            met = Counter(work.named[exercise] for work in mine if exercise in work.named)
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


def reliability(works: list[Work]) -> float | None:
    """Cronbach's alpha of one chapter, of the submissions whose scores are all known."""
    whole = [list(work.scores.values()) for work in works if None not in work.scores.values()]
    if len(whole) < 3 or len(whole[0]) < 2 or (spread := statistics.variance(map(sum, whole))) == 0:
        return None
    k = len(whole[0])
    return k / (k - 1) * (1 - sum(statistics.variance(column) for column in zip(*whole, strict=True)) / spread)


def similar(works: list[Work]) -> list[tuple[Chapter, Pair]]:
    """Pairs of submissions that are nearly the same where the release is not."""
    return [
        (chapter, pair)
        for chapter, mine in _by_chapter(works).items()
        for pair in alike({work.person.id: work.wording for work in mine})
    ]


def _by_chapter(works: list[Work]) -> dict[Chapter, list[Work]]:
    found = defaultdict(list)
    for work in works:
        found[work.chapter].append(work)
    return found


# ---------------------------------------------------------------- files


def write_scores(works: list[Work], path: Path) -> None:
    """One row a student and exercise, in the order of `HEADER`; a score that waits for a teacher is empty."""
    rows = [
        (safe(work.person.id), work.chapter.stem, exercise, number(score), number(work.most[exercise]))
        for work in works
        for exercise, score in work.scores.items()
    ]
    write_rows(path, [HEADER, *rows])


def write_items(found: list[Item], path: Path) -> None:
    """One row an exercise: how hard it was, how well it tells students apart, what went wrong most."""
    header = ("exercise", "students", "difficulty", "discrimination", "low", "high", "note", "misconceptions")
    rows = []
    for item in found:
        low, high = item.interval or (None, None)
        numbers = [f"{x:.3f}" if x is not None else "" for x in (item.difficulty, item.discrimination, low, high)]
        met = "; ".join(f"{n} x {text}" for text, n in item.misconceptions)
        rows.append((item.exercise, str(item.students), *numbers, item.note, safe(met)))
    write_rows(path, [header, *rows])


def write_html(works: list[Work], path: Path) -> None:
    """The report as one page that needs no other file, no script and no network."""
    found = {item.exercise: item for item in items(works)}
    chapters = []
    for mine in _by_chapter(works).values():
        shares = [work.total / work.points for work in mine if work.points]
        bins = Counter(min(int(10 * share), 9) for share in shares)
        seconds = sorted(work.seconds for work in mine if work.seconds is not None)
        exercises = [found[name] for name in dict.fromkeys(name for work in mine for name in work.scores)]
        chapters.append(
            {
                "chapter": mine[0].chapter,
                "works": mine,
                "bins": [bins[i] for i in range(10)],
                "tallest": max(bins.values(), default=1),
                "mean": statistics.fmean(shares) if shares else None,
                "median": statistics.median(shares) if shares else None,
                "alpha": reliability(mine),
                "waiting": sum(None in work.scores.values() for work in mine),
                "seconds": (statistics.median(seconds), seconds[-1]) if seconds else None,
                "items": exercises,
                "dots": [item for item in exercises if item.discrimination is not None],
            }
        )
    people, shown, totals = gradebook(works)
    template = Environment(loader=PackageLoader("autograder.pages"), autoescape=select_autoescape()).get_template("report.html")
    text = template.render(
        chapters=chapters,
        people=people,
        shown=shown,
        totals=totals,
        most={work.chapter: work.points for work in works},
        flagged=[work for work in works if work.flags],
        pairs=similar(works),
        few=FEW,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(r"\n\s*\n+", "\n", text), encoding="utf-8")


def write_report(works: list[Work], folder: Path) -> list[Path]:
    """Every form of the report, in one folder."""
    files = [folder / name for name in ("report.html", "scores.csv", "exercises.csv", "moodle.csv", "canvas.csv")]
    write_html(works, files[0])
    write_scores(works, files[1])
    write_items(items(works), files[2])
    moodle.write(works, files[3])
    canvas.write(works, files[4])
    return files
