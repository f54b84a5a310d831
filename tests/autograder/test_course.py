"""The real chapters keep the promises of the guide: form, tests, release, and what is stored in them."""

import contextlib
import re
from pathlib import Path

import pytest

from autograder.authoring.bundle import bundle
from autograder.authoring.chapters import find_chapters, grade_id, tags
from autograder.authoring.release import leaks, stale
from book import sealing
from book.generated import FAST
from tests.autograder.in_the_page import ROUNDS, Unwritable, verdicts, written

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = find_chapters(ROOT)
EXERCISES = [(chapter, exercise) for chapter in CHAPTERS for exercise in chapter.exercises]
each = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.id)
each_exercise = pytest.mark.parametrize(("chapter", "exercise"), EXERCISES, ids=[e.id for _, e in EXERCISES])

FIRST = re.compile(
    r"# (?P<title>[^\n]+)\n\n\*(?P<promise>[^\n]+)\*\n\n\*\*You will be able to\*\*\n\n(?P<goals>(- [^\n]+\n([ ]{2}[^\n]+\n)*)+)\n"
    r"\*\*Builds on\*\* (?P<before>[^\n]+(\n[^\n]+)*)\n\n\*\*Time\*\* \d+ minutes to read · (?P<minutes>\d+) minutes of exercises\n\n"
    r"\*\*In a hurry\*\* [^\n]+\s*"
)
LARGEST_SVG = 150_000
TAGS = {"slow", "raises-exception", "widget", "receipts", "figure", "map", "trains"}
PLACES = re.compile(r"/(?:home|Users|root|work|mnt|var|opt)/\w|[A-Z]:\\\\Users|/tmp/\w|ipykernel_\d|site-packages")
TIMINGS = re.compile(r"(?<![\w.])\d+(?:\.\d+)? ?(?:µs|us|ms|s|sec|seconds|minutes)\b(?! (?:of|to|per))|(?:CPU times|Wall time)")


def words(text: str) -> int:
    """Words of a Markdown cell; a formula or a piece of code in a line counts as one, a displayed one as none."""
    text = re.sub(r"\$\$.*?\$\$|```.*?```|<[^>]+>|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]+`|\$[^$\n]+\$", " x ", text)
    return len(re.findall(r"\w[\w'’-]*", text))


def belongs_to_exercise(chapter) -> set[int]:
    return {i for e in chapter.exercises for i in (e.header, e.answer, e.test)}


def texts(output) -> list[str]:
    if output.output_type == "stream":
        return [output.text]
    if output.output_type == "error":
        return [output.evalue, *output.traceback]
    return [text for kind, text in output.data.items() if kind.startswith("text/") and isinstance(text, str)]


def code_outputs(chapter):
    return [
        (i, cell, output) for i, cell in enumerate(chapter.notebook.cells) if cell.cell_type == "code" for output in cell.outputs
    ]


# ---------------------------------------------------------------- the tests and the release


@each
def test_every_right_answer_is_accepted_and_every_wrong_one_rejected_and_named(chapter, checked):
    assert [f"{r.exercise}: {miss}" for r in checked(chapter) for miss in r.misses] == []


@each
def test_the_page_judges_every_answer_as_the_tests_do(chapter, checked):
    points = {result.exercise: result.points for result in checked(chapter)}
    asked = [exercise for exercise in chapter.exercises if exercise.form in sealing.FORMS]
    questions, answers = [], []
    for id, sealed in sealing.seal(chapter, asked, ROUNDS).items():
        if "why" in sealed:
            assert sealed["why"] == "its test asks for a function"
            continue
        exercise = next(exercise for exercise in asked if exercise.id == id)
        space, names = sealing.namespace(chapter, exercise), chapter.asked(exercise)
        sources = {"the solution": (None, chapter.notebook.cells[exercise.answer].source)}
        sources |= {a.label: (a.sentence, a.source(names)) for a in sealing.answers_of(chapter, exercise)}
        for label, (sentence, source) in sources.items():
            values = sealing.run(space, source)
            with contextlib.suppress(Unwritable):
                questions.append(
                    (sealed, {field["name"]: written(field, values.get(field["name"])) for field in sealed["fields"]})
                )
                answers.append((exercise, label, sentence))
    for (exercise, label, sentence), verdict in zip(answers, verdicts(questions), strict=True):
        assert verdict["points"] == points[exercise.id][label], f"{exercise.id}, {label}"
        if exercise.form != "prediction" and not verdict["problems"]:
            assert verdict.get("mistake", {}).get("say") == sentence, f"{exercise.id}, {label}"


@each
def test_the_release_is_fresh_and_leaks_nothing(chapter):
    assert stale(chapter) == []
    assert leaks(chapter, chapter.release.parent) == []


# ---------------------------------------------------------------- form


@each
def test_the_first_cell_is_the_contract(chapter):
    first = FIRST.fullmatch(chapter.notebook.cells[0].source)
    assert first, chapter.notebook.cells[0].source
    assert 3 <= len(re.findall(r"^- ", first["goals"], re.MULTILINE)) <= 6
    assert int(first["minutes"]) == sum(exercise.minutes for exercise in chapter.exercises)


def test_the_shortest_way_is_marked():
    """The book's first page lists these chapters."""
    assert [chapter.id for chapter in CHAPTERS if FAST in chapter.notebook.cells[0].source] == ["f01", "f03", "f04", "ch01"]


@each
def test_the_second_cell_sets_up(chapter):
    cell = chapter.notebook.cells[1]
    assert cell.cell_type == "code" and grade_id(cell) == f"{chapter.id}-setup" and cell.metadata.nbgrader.locked
    assert {"plots", "Exercise", "check", "setup"} <= chapter.imported.keys()
    assert "setup(seed=0)" in cell.source and "plots.use()" in cell.source


@each
def test_code_cells_are_short(chapter):
    tests = {e.test for e in chapter.exercises} | {1}
    long = {
        i: n
        for i, c in enumerate(chapter.notebook.cells)
        if c.cell_type == "code" and i not in tests and (n := len(c.source.splitlines())) > 15
    }
    answers = {e.answer for e in chapter.exercises}
    assert {i: n for i, n in long.items() if i not in answers} == {}


@each
def test_text_cells_are_short(chapter):
    exempt = belongs_to_exercise(chapter) | {i for i, c in enumerate(chapter.notebook.cells) if "receipts" in tags(c)}
    counts = {i: words(c.source) for i, c in enumerate(chapter.notebook.cells) if c.cell_type == "markdown" and i not in exempt}
    assert {i: n for i, n in counts.items() if n > 150} == {}


@each
def test_the_chapter_is_as_long_as_a_chapter(chapter):
    exempt = belongs_to_exercise(chapter) | {i for i, c in enumerate(chapter.notebook.cells) if "receipts" in tags(c)}
    total = sum(words(c.source) for i, c in enumerate(chapter.notebook.cells) if c.cell_type == "markdown" and i not in exempt)
    assert 2500 <= total <= 4500


@each
def test_there_are_four_to_eight_exercises_of_several_forms(chapter):
    forms = [exercise.form for exercise in chapter.exercises]
    assert 4 <= len(forms) <= 8 and len(set(forms)) >= 3 and forms.count("written") <= 1


@each_exercise
def test_an_exercise_has_three_hints_and_a_short_task(chapter, exercise):
    source = chapter.notebook.cells[exercise.header].source
    assert re.findall(r"<details><summary>(Hint \d)</summary>", source) == ["Hint 1", "Hint 2", "Hint 3"]
    task = source.partition("\n")[2].partition("<details>")[0]
    assert words(task) <= 100


@each_exercise
def test_a_solution_says_why_and_what_is_tempting(chapter, exercise):
    if not exercise.by_hand:
        source = chapter.notebook.cells[exercise.answer].source
        assert re.search(r"### BEGIN SOLUTION\n\s*# Why: .+(\n\s*#.*)*\n\s*# Tempting: .+", source)


@each
def test_figures_have_an_alternative_text(chapter):
    figures = [c for c in chapter.notebook.cells if c.cell_type == "code" and "figure" in tags(c)]
    assert figures and all(len(c.metadata.get("alt", "")) > 20 for c in figures)
    assert all(
        {"figure", "map"} & set(tags(cell))
        for _, cell, output in code_outputs(chapter)
        if "image/svg+xml" in output.get("data", {})
    )


@each
def test_there_is_something_to_play_with_and_a_place_for_the_receipts(chapter):
    for tag in ("widget", "receipts"):
        assert sum(tag in tags(cell) for cell in chapter.notebook.cells) == 1


@each
def test_tags_are_those_of_the_guide_and_no_test_cell_trains(chapter):
    assert {tag for cell in chapter.notebook.cells for tag in tags(cell)} <= TAGS
    tested = {exercise.test for exercise in chapter.exercises}
    trained = {i for i, cell in enumerate(chapter.notebook.cells) if "trains" in tags(cell)}
    assert all(chapter.notebook.cells[i].cell_type == "code" for i in trained)
    assert trained & tested == set()  # points are exact


# ---------------------------------------------------------------- what is stored


@each
def test_what_runs_answers_of_other_notebooks_never_runs_beside_the_tests(chapter):
    """`course.mine` runs what students wrote; the tests' side skips cells with this tag."""
    runs = re.compile(r"import mine\b|\bmine\.(?:collect|assemble)\b")
    cells = [cell for cell in chapter.notebook.cells if cell.cell_type == "code" and runs.search(cell.source)]
    assert all("slow" in tags(cell) for cell in cells)
    assert bool(cells) == (chapter.id == "ch12")


@each
def test_every_code_cell_has_run_in_order(chapter):
    counts = [c.execution_count for c in chapter.notebook.cells if c.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


@each
def test_figures_are_vectors_and_small(chapter):
    kinds = {kind for _, _, output in code_outputs(chapter) for kind in output.get("data", {})}
    sizes = {
        i: len(output.data["image/svg+xml"])
        for i, _, output in code_outputs(chapter)
        if "image/svg+xml" in output.get("data", {})
    }
    assert "image/png" not in kinds
    assert {i: size for i, size in sizes.items() if size > LARGEST_SVG} == {}


@each
def test_an_error_is_stored_only_where_it_is_wanted(chapter):
    wrong = [
        (i, output.ename)
        for i, cell, output in code_outputs(chapter)
        if output.output_type == "error" and "raises-exception" not in tags(cell)
    ]
    wanted = [
        i
        for i, c in enumerate(chapter.notebook.cells)
        if "raises-exception" in tags(c) and not any(o.output_type == "error" for o in c.outputs)
    ]
    assert (wrong, wanted) == ([], [])


@each
def test_nothing_was_warned_of(chapter):
    assert [(i, output.text) for i, _, output in code_outputs(chapter) if output.get("name") == "stderr"] == []


@each
def test_no_place_of_a_machine_and_no_time_is_stored(chapter):
    found = [
        (i, text)
        for i, _, output in code_outputs(chapter)
        for text in texts(output)
        if PLACES.search(text) or TIMINGS.search(text)
    ]
    found += [(i, cell.source) for i, cell in enumerate(chapter.notebook.cells) if PLACES.search(cell.source)]
    assert found == []


def test_the_students_zip_can_be_made(tmp_path):
    assert bundle(CHAPTERS, tmp_path / "course.zip") > len(CHAPTERS)
