"""What a teacher reads after grading: scores, how the exercises worked, what to look at; as CSV, HTML and for other gradebooks."""

import math
import os
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from jinja2 import Environment, PackageLoader, select_autoescape
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution

from autograder.authoring.chapters import SAME_AS, Chapter, grade_id, tags
from autograder.errors import CourseError
from autograder.grading.address import source_of
from autograder.grading.attempts import Kept, due_of
from autograder.grading.gradebook import of_all, opened, told
from autograder.grading.roster import Roster
from autograder.grading.similarity import Pair, alike, runs
from autograder.grading.submission import Found
from autograder.grading.submitted import record_of
from autograder.pages.feedback import READ, known_score, said, tasks
from autograder.platforms import canvas, moodle
from autograder.platforms.tables import Person, gradebook, number, read_rows, safe, write_rows

HEADER = ("student", "chapter", "exercise", "score", "max")
FEW = 30  # students; with fewer, a discrimination says little
COMPARED = 500_000  # characters of a submission


@dataclass
class Work:
    """What one student got for one chapter. Scores are by exercise, None where a teacher has yet to read the answer.

    `broken` says why the graded notebook could not be read, if so: then only the gradebook's scores are known. `marks` are words that
    stand beside the score, of `MARKS`; `again` says why it should be graded again, if so.
    """

    person: Person
    chapter: Chapter
    scores: dict[str, float | None]
    most: dict[str, float]
    penalty: float = 0.0
    named: dict[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    seconds: float | None = None
    wording: set[tuple] = field(default_factory=set)
    broken: str = ""
    marks: list[str] = field(default_factory=list)
    again: str = ""

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
            source, siblings = (
                source_of(chapter),
                tuple(c.name for c in chapters if c.stem == chapter.stem and c.name != chapter.name),
            )
            blank = _answers(nbformat.read(chapter.release, as_version=4)) if chapter.release.is_file() else None
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
                        notebook = nbformat.read(path, as_version=4)
                        _read(work, notebook, known, given)
                        _mark(work, notebook, blank)
                        work.again = _again(work, notebook, source, siblings)
                except Exception as error:  # one student's notebook is never another's problem
                    if of_all(error):
                        raise
                    work.broken = f"the graded notebook cannot be read ({type(error).__name__}); grade it again with --again"
                    work.flags.append(work.broken)
                    work.again = "the graded notebook cannot be read"
                _mark_time(work, submission.assignment)
                works.append(work)
    return works


UNREADABLE, BLANK, LATE, LIMIT, WAITS = "unreadable", "blank", "late", "limit", "to be read"
MARKS = {
    UNREADABLE: "nothing could be read or run: the 0 says nothing of what the student knows",
    BLANK: "no answer was begun",
    LATE: "handed in after the due date",
    LIMIT: "a limit of time or memory cost points",
    WAITS: "an answer waits for you",
}


def _answers(notebook: NotebookNode) -> list[str]:
    return [cell.source.strip() for cell in notebook.cells if is_solution(cell)]


def _mark(work: Work, notebook: NotebookNode, blank: list[str] | None) -> None:
    outputs = [output for cell in notebook.cells if is_grade(cell) for output in cell.get("outputs", [])]
    errors = [output for output in outputs if output.output_type == "error"]
    if any(e.get("ename") == "NotRun" and str(e.get("evalue", "")).startswith("Nothing was run") for e in errors):
        work.marks.append(UNREADABLE)
    elif blank is not None and _answers(notebook) == blank:
        work.marks.append(BLANK)
    if notebook.metadata.get("hit"):
        work.marks.append(LIMIT)
    if None in work.scores.values():
        work.marks.append(WAITS)


def _mark_time(work: Work, submission) -> None:
    """What the gradebook and the collector's record say of when it came, and which attempt it is."""
    if not record_of(work.chapter, work.person.id).is_file():
        late = submission.total_seconds_late > 0
    else:
        kept = Kept.of(work.chapter, work.person.id)
        now = next((one for one in kept.attempts if one.number == kept.current), None)
        due = submission.assignment.duedate
        late = bool(now and now.is_late(due_of(due, submission.extension, None)))
        if len(kept.attempts) > 1:
            work.marks.append(f"attempt {kept.current} of {len(kept.attempts)}")
    if late:
        work.marks.append(LATE)


def _again(work: Work, notebook: NotebookNode, source: str, siblings: tuple[str, ...]) -> str:
    """Why a submission should be graded again; empty if it need not be."""
    folder, about = work.chapter.folder("submitted", work.person.id), notebook.metadata.get("autograder", {})
    if not os.path.lexists(folder) or "settings" not in about:  # gone, or graded by nbgrader's own command
        return ""
    if Found.of(work.chapter, work.person.id, folder, siblings).is_graded(source, about):
        return ""
    return "the hand-in, the chapter or the software changed since it was graded"


def absent(works: list[Work], roster: Roster) -> list[Person]:
    """Those of the class list of whom some of the chapters has no submission; all of them if they handed in nothing."""
    if not roster.given:
        return []
    stems = {work.chapter for work in works}
    done: dict[str, set[Chapter]] = defaultdict(set)
    for work in works:
        done[work.person.id].add(work.chapter)
    found = []
    for person in roster.people:
        id = person.student or person.told.get("name", "")
        if id and stems - done.get(id, set()):
            found.append(Person(id, name=person.told.get("name", ""), email=person.told.get("email", "")))
    return found


def _read(work: Work, notebook: NotebookNode, known: dict[str, str], given: set[tuple]) -> None:
    work.flags = list(notebook.metadata.get("autograder", {}).get("flags", []))
    work.seconds = notebook.metadata.get("seconds", {}).get("total")
    for cell in notebook.cells:
        if grade_id(cell) in known and (named := said(cell).named):
            if match := READ.search(named):
                work.read[known[grade_id(cell)]] = match["slug"]
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
    who: dict[str, list[Person]] = field(default_factory=dict)

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
                    {text: [work.person for work in mine if work.named.get(exercise) == text] for text in met},
                )
            )
    return found


@dataclass
class Drift:
    """How an exercise went in earlier classes: their mean share, their students, and whether the difference is more than chance."""

    earlier: float
    students: int
    difference: float
    clear: bool


def read_earlier(paths) -> dict[str, tuple[float, int]]:
    """The mean share and the number of students of each exercise, of `exercises.csv` of earlier reports together.

    Raises:
        CourseError: if a file is none.
    """
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for path in paths:
        rows = read_rows(path, "the earlier report")
        if not rows or {"exercise", "students", "difficulty"} - set(rows[0]):
            raise CourseError(f"{path} is no exercises.csv of an earlier report: it lacks exercise, students or difficulty")
        for row in rows[1:]:
            cell = dict(zip(rows[0], row, strict=False))
            try:
                share, students = float(cell["difficulty"]), int(cell["students"])
            except (KeyError, ValueError):  # of an exercise without scores
                continue
            if 0 <= share <= 1 and students > 0:
                sums[cell["exercise"]][0] += share * students
                sums[cell["exercise"]][1] += students
    return {exercise: (share / students, int(students)) for exercise, (share, students) in sums.items()}


def drift(item: Item, earlier: dict[str, tuple[float, int]]) -> Drift | None:
    """An exercise beside earlier classes. A share lies between 0 and 1, so its variance is at most p (1 - p)."""
    if item.exercise not in earlier or item.difficulty is None:
        return None
    then, students = earlier[item.exercise]
    spread = math.sqrt(item.difficulty * (1 - item.difficulty) / item.students + then * (1 - then) / students)
    return Drift(then, students, item.difficulty - then, abs(item.difficulty - then) > 1.96 * spread)


@dataclass
class Reteach:
    """An exercise that cost the class many points, with what went wrong and where it is taught."""

    item: Item
    chapter: Chapter
    lost: float
    sections: list[str]


def reteach(works: list[Work], most: int = 6) -> list[Reteach]:
    """What to teach again: the exercises that cost the class most points, blank and unreadable hand-ins aside."""
    found = []
    counted = [work for work in works if not {UNREADABLE, BLANK} & set(work.marks)]
    for item in items(counted):
        mine = [work for work in counted if work.scores.get(item.exercise) is not None]
        lost = sum(work.most[item.exercise] - work.scores[item.exercise] for work in mine)
        if lost > 0:
            chapter = mine[0].chapter
            read = Counter(work.read[item.exercise] for work in mine if item.exercise in work.read)
            sections = [chapter.sections[slug] for slug, _ in read.most_common(3) if slug in chapter.sections]
            if not sections:
                section = next((task.section for task in tasks(chapter) if task.id == item.exercise), "")
                sections = [chapter.sections[section]] if section in chapter.sections else []
            found.append(Reteach(item, chapter, lost, sections))
    return sorted(found, key=lambda one: -one.lost)[:most]


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


def write_misconceptions(found: list[Item], path: Path) -> None:
    """One row a misconception and student."""
    header = ("exercise", "misconception", "student", "name", "email")
    rows = [
        (item.exercise, safe(text), *map(safe, (person.id, person.whole_name, person.email)))
        for item in found
        for text, _ in item.misconceptions
        for person in item.who[text]
    ]
    write_rows(path, [header, *rows])


def write_reteach(works: list[Work], path: Path, earlier: dict[str, tuple[float, int]] | None = None) -> None:
    """One page for the next lesson: what cost the class most points, which mistakes were behind it, what to read again."""
    counted = [work for work in works if not {UNREADABLE, BLANK} & set(work.marks)]
    rows = [{"one": one, "drift": drift(one.item, earlier or {})} for one in reteach(works)]
    _render("reteach.html", path, rows=rows, works=counted, left=len(works) - len(counted))


def _render(name: str, path: Path, **given) -> None:
    template = Environment(loader=PackageLoader("autograder.pages"), autoescape=select_autoescape()).get_template(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(r"\n\s*\n+", "\n", template.render(**given)), encoding="utf-8")


def write_html(
    works: list[Work], path: Path, missing: list[Person] | None = None, earlier: dict[str, tuple[float, int]] | None = None
) -> None:
    """The report as one page that needs no other file, no script and no network.

    Args:
        missing: those of the class list who did not hand in everything.
        earlier: what earlier classes had, as `read_earlier` gives it.
    """
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
    missing = missing or []
    nothing = [person for person in missing if person.id not in {one.id for one in people}]
    _render(
        "report.html",
        path,
        chapters=chapters,
        people=people,
        nothing=nothing,
        listed={person.id for person in missing},
        shown=shown,
        totals=totals,
        marks={(work.person.id, work.chapter): work.marks for work in works},
        legend={mark: MARKS[mark] for mark in MARKS if any(mark in work.marks for work in works)},
        unreadable=UNREADABLE,
        most={work.chapter: work.points for work in works},
        flagged=[work for work in works if work.flags],
        again=[work for work in works if work.again],
        pairs=similar(works),
        drifts={item.exercise: drift(item, earlier or {}) for item in found.values()},
        few=FEW,
    )


def write_report(
    works: list[Work], folder: Path, missing: list[Person] | None = None, earlier: dict[str, tuple[float, int]] | None = None
) -> tuple[list[Path], dict[str, list[Person]]]:
    """Every form of the report, in one folder.

    Returns:
        The files, and by the platform's file the students whom the platform cannot find by it.
    """
    names = "report.html", "reteach.html", "scores.csv", "exercises.csv", "misconceptions.csv", "moodle.csv", "canvas.csv"
    files = [folder / name for name in names]
    found = items(works)
    write_html(works, files[0], missing, earlier)
    write_reteach(works, files[1], earlier)
    write_scores(works, files[2])
    write_items(found, files[3])
    write_misconceptions(found, files[4])
    return files, {"moodle.csv": moodle.write(works, files[5]), "canvas.csv": canvas.write(works, files[6])}
