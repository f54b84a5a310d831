"""What a teacher reads: every number is that of its textbook formula, and no file does harm when it is opened."""

import csv
import html
import re

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_output
from nbgrader.api import Gradebook

from autograder.authoring.chapters import grade_id
from autograder.authoring.release import Release
from autograder.errors import CourseError
from autograder.grading.grade import write
from autograder.grading.gradebook import Book
from autograder.grading.merge import merge
from autograder.grading.roster import Roster, person
from autograder.grading.similarity import alike, runs, tokens
from autograder.grading.submission import Graded
from autograder.pages.report import (
    HEADER,
    Work,
    absent,
    collect,
    correlation,
    drift,
    interval,
    items,
    read_earlier,
    reliability,
    reteach,
    similar,
    write_html,
    write_items,
    write_report,
    write_scores,
)
from autograder.platforms import canvas, moodle
from autograder.platforms.tables import Person

MOST = {"ch99.double": 3.0, "ch99.three": 1.0, "ch99.letter": 1.0, "ch99.why": 2.0}
SCORES = [  # of six students; None waits
    (3, 1, 1, 2),
    (3, 1, 0, 1),
    (2, 0, 1, 1),
    (1, 0, 1, 0),
    (0, 0, 0, None),
    (0, 0, 1, 0),
]


@pytest.fixture
def works(toy):
    return [
        Work(Person(f"s{i}"), toy, dict(zip(MOST, scores, strict=True)), MOST, seconds=1.0 + i) for i, scores in enumerate(SCORES)
    ]


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


# ---------------------------------------------------------------- statistics


def test_difficulty_is_the_mean_share_and_leaves_out_what_waits(works):
    found = {item.exercise: item for item in items(works)}
    assert found["ch99.double"].difficulty == pytest.approx(9 / 18) and found["ch99.double"].students == 6
    assert found["ch99.why"].difficulty == pytest.approx(4 / 10) and found["ch99.why"].students == 5


def test_discrimination_is_the_correlation_with_the_sum_of_the_others(works):
    table = np.array([[score or 0 for score in row] for row in SCORES], dtype=float)
    for column, item in enumerate(items(works)[:3]):
        rest = np.delete(table, column, axis=1).sum(axis=1)
        assert item.discrimination == pytest.approx(np.corrcoef(table[:, column], rest)[0, 1])


def test_an_interval_is_that_of_fishers_z_and_holds_the_correlation():
    low, high = interval(0.5, 28)  # z = 0.5493, half of the interval 1.96 / 5
    assert (low, high) == pytest.approx((0.156, 0.736), abs=5e-4)
    assert interval(0.5, 3) is None and interval(None, 30) is None and interval(1.0, 30) is None


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [2, 2, 2])])
def test_where_a_correlation_is_not_defined_there_is_none(x, y):
    assert correlation(x, y) is None


def test_reliability_is_cronbachs_alpha_of_the_complete_sheets(works):
    table = np.array([row for row in SCORES if None not in row], dtype=float)
    alpha = 4 / 3 * (1 - table.var(axis=0, ddof=1).sum() / table.sum(axis=1).var(ddof=1))
    assert reliability(works) == pytest.approx(alpha)
    assert reliability(works[:2]) is None and reliability([works[0]] * 4) is None


def test_a_note_says_where_a_number_is_uncertain(works):
    assert items(works)[0].note == "few students (6): the discrimination is uncertain"
    assert items(works[:2])[0].note == "no discrimination: too few students, or no spread"
    assert items(works * 5)[0].note == ""
    waits = [Work(Person("a"), works[0].chapter, {"ch99.why": None}, {"ch99.why": 2.0})]
    assert items(waits)[0].note == "nobody’s score is known yet" and items(waits)[0].difficulty is None


def test_misconceptions_are_counted_the_most_frequent_first(works):
    for work, named in zip(works, ["You squared.", "Nothing is doubled.", "You squared."], strict=False):
        work.named["ch99.double"] = named
    assert items(works)[0].misconceptions == [("You squared.", 2), ("Nothing is doubled.", 1)]


def test_a_late_penalty_takes_from_the_total_and_never_below_zero(works):
    works[0].penalty, works[4].penalty = 1.5, 1.0
    assert works[0].total == 5.5 and works[4].total == 0.0


# ---------------------------------------------------------------- who is alike

LOOP = """
def positions(scores, k):
    best = []
    for index, value in enumerate(scores):
        best.append((value, index))
        best.sort(reverse=True)
        best = best[:k]
    return [index for _, index in best if index >= 0]
"""
RENAMED = """
def positions(xs, n):
    # my own idea
    top = []
    for i, x in enumerate(xs):
        top.append((x, i))
        top.sort(reverse=True)
        top = top[:n]
    return [i for _, i in top if i >= 0]
"""
OTHER = """
def positions(scores, k):
    order = sorted(range(len(scores)), key=lambda j: (-scores[j], j))
    chosen = set(order[:k])
    while len(chosen) < k:
        chosen.add(len(chosen))
    return [j for j in order if j in chosen]
"""


def test_renaming_comments_and_layout_hide_nothing():
    assert tokens(LOOP)[6:] == tokens(RENAMED)[6:] and tokens("a=  1 # one") == tokens("b = 1")
    (pair,) = alike({"ada": runs([LOOP]), "ben": runs([RENAMED]), "cem": runs([OTHER])})
    assert (pair.first, pair.second) == ("ada", "ben") and pair.share > 0.95 and pair.runs >= 20


def test_a_copy_inside_a_longer_submission_is_found():
    (pair,) = alike({"ada": runs([LOOP]), "ben": runs([RENAMED, OTHER])})
    assert pair.share > 0.95


def test_what_everybody_writes_is_no_evidence():
    assert alike({name: runs([LOOP]) for name in "abcdefgh"}) == []


def test_what_the_release_gave_is_no_evidence():
    assert alike({"ada": runs([LOOP], runs([LOOP])), "ben": runs([RENAMED], runs([LOOP]))}) == []


def test_short_answers_are_alike_by_nature():
    short = {name: runs(["def f(x):\n    return x + x"]) for name in ("ada", "ben")}
    assert alike(short) == []


@pytest.mark.parametrize("text", ["def f(:", "%%time\nx = 1", "été ≠ hiver", "(", "'''", "\x00"])
def test_what_is_no_python_has_words(text):
    assert isinstance(tokens(text), list)


def test_a_class_of_thousands_is_compared_in_a_moment():
    class_ = {f"s{i}": runs([LOOP.replace("best[:k]", f"best[: k + {i}]")]) for i in range(3000)}
    assert alike(class_) == []


# ---------------------------------------------------------------- files


def test_the_scores_have_a_row_a_student_and_exercise(works, tmp_path):
    write_scores(works, tmp_path / "new" / "scores.csv")
    table = rows(tmp_path / "new" / "scores.csv")
    assert table[0] == list(HEADER) and len(table) == 1 + 6 * 4
    assert ["s0", "ch99_toy", "ch99.double", "3", "3"] in table and ["s4", "ch99_toy", "ch99.why", "", "2"] in table


def test_the_exercises_have_their_numbers(works, tmp_path):
    write_items(items(works), tmp_path / "exercises.csv")
    header, first, *_ = rows(tmp_path / "exercises.csv")
    assert dict(zip(header, first, strict=True))["difficulty"] == "0.500"


def test_moodles_file_has_a_column_a_chapter(works, tmp_path):
    works[0].person = Person("s0", "Ada", "Lovelace", "ada@school.example", username="al")
    left = moodle.write(works, tmp_path / "moodle.csv")
    header, *table = rows(tmp_path / "moodle.csv")
    assert header == ["ID number", "Username", "First name", "Last name", "Email address", "ch99 Toy"]
    assert table == [["", "al", "Ada", "Lovelace", "ada@school.example", "7"]] and len(left) == 5


def test_canvas_file_has_its_five_columns_and_the_points_possible(works, tmp_path):
    works[0].person = Person("s0", "Ada", "Lovelace", lms="4711")
    canvas.write(works, tmp_path / "canvas.csv")
    header, possible, first, second, *_ = rows(tmp_path / "canvas.csv")
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "ch99 Toy"]
    assert possible == ["    Points Possible", "", "", "", "", "7"]
    assert first == ["Lovelace, Ada", "4711", "", "", "", "7"] and second[:2] == ["s1", ""]


def test_who_handed_in_one_chapter_of_two_has_an_empty_cell(works, tmp_path):
    other = type(works[0].chapter)(works[0].chapter.root, "ch98_other")
    other.__dict__["notebook"] = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Other")])
    works.append(Work(Person("s0"), other, {"ch98.one": 1.0}, {"ch98.one": 1.0}))
    for work in works:
        work.person.email = "x@school.example"
    moodle.write(works, tmp_path / "moodle.csv")
    assert [row[5:] for row in rows(tmp_path / "moodle.csv")[:3]] == [["ch99 Toy", "ch98 Other"], ["7", "1"], ["5", ""]]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(works, tmp_path, start):
    works[0].person = Person(f"{start}cmd()", f"{start}1", f"{start}2", f"{start}3", f"{start}4")
    works[0].named["ch99.double"] = f"{start}x"
    for path in write_report(works, tmp_path)[0][2:]:
        assert not [cell for row in rows(path) for cell in row if cell.startswith(start) and not cell[1:2].isdigit()]


def test_the_page_has_everything_and_needs_nothing(works, tmp_path):
    works[0].flags = ["2 cells were joined"]
    works[1].named["ch99.double"] = "You squared."
    works[0].wording, works[1].wording = runs([LOOP]), runs([RENAMED])
    write_html(works, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert not re.findall(r'(?:src|href|url)[=(]"(?!#|reteach\.html")', text) and "<script" not in text
    plain = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
    assert "6 submissions, mean 45 %" in plain and "graded in 3.5 s (median; at most 6.0 s)" in plain
    assert "1 submission waits for you to read an answer." in plain
    assert "s0 ch99 2 cells were joined" in plain and "1 × You squared." in plain and "ch99 s0, s1 100 %" in plain
    assert "With fewer than 30 students a discrimination is uncertain" in plain
    assert text.count('<rect class="bar"') == len({min(int(10 * work.total / 7), 9) for work in works})


def test_what_students_wrote_is_inert_on_the_page(works, tmp_path):
    works[0].person, works[0].flags = Person("<script>1</script>"), ["<script>2</script>"]
    works[0].named["ch99.double"] = "<script>3</script>"
    write_html(works, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<script" not in text and text.count("&lt;script&gt;") >= 3


# ---------------------------------------------------------------- from the gradebook


def test_everything_is_collected_from_the_gradebook_and_the_graded_notebooks(make, perfect):
    chapter = make()
    book = Book(chapter.root)
    book.register(chapter, Release.of(chapter))
    perfect.answer(double=LOOP)
    notebook = merge(chapter, perfect.notebook).notebook
    told = "ch99.double: 1 of 3 points.\n- any shape: off. Read: Doubling (#doubling).\n"
    named = "What you wrote gives the same as this mistake: You squared. Read: Doubling (#doubling)."
    for cell in notebook.cells:
        if grade_id(cell) == "ch99-double":
            cell.outputs = [new_output("stream", name="stdout", text=told + named)]
    notebook.metadata.autograder, notebook.metadata.seconds = {"seed": 1, "flags": ["2 cells were joined"]}, {"total": 1.5}
    points = {"ch99-double": 1.0, "ch99-three": 1.0, "ch99-letter": 1.0, "ch99-why": None}
    write(book, [Graded("ada", chapter, notebook, points)])
    with Gradebook(book.db_url) as gradebook:
        gradebook.update_or_create_student("ada", first_name="Ada", email="ada@school.example")
    (work,) = collect([chapter], book.db_url)
    assert work.person == Person("ada", "Ada", "", "ada@school.example")
    assert work.scores == {"ch99.double": 1.0, "ch99.three": 1.0, "ch99.letter": 1.0, "ch99.why": None}
    assert work.most == MOST and work.total == 3.0 and work.points == 7.0
    assert work.named == {"ch99.double": "You squared."} and work.flags == ["2 cells were joined"] and work.seconds == 1.5
    assert runs([LOOP]) - work.wording <= runs(["def double(x):\n    pass"]) and similar([work]) == []


def test_a_gradebook_without_the_chapter_gives_nothing(toy, tmp_path):
    assert collect([toy], f"sqlite:///{tmp_path}/empty.db") == []


# ---------------------------------------------------------------- what a teacher acts on


def test_a_zero_for_an_unreadable_file_is_told_from_a_blank_one_and_from_nothing(works, tmp_path):
    works[4].marks, works[5].marks = ["unreadable"], ["blank", "late"]
    write_html(works, tmp_path / "report.html", [Person("s9", name="Zoe Q")])
    text = (tmp_path / "report.html").read_text()
    row = {who: re.search(rf'<th scope="row">{who}.*?</tr>', text).group() for who in ("s3", "s4", "s5", "s9")}
    assert '<span class="mark bad">unreadable</span> 0' in row["s4"] and "mark" not in row["s3"]
    assert '<span class="mark">blank</span> <span class="mark">late</span> 1' in row["s5"]
    assert "Zoe Q" in row["s9"] and ">nothing<" in row["s9"] and "1 of the class list handed in nothing at all" in text
    assert "the 0 says nothing of what the student knows" in text


def test_each_misconception_has_its_students(works, tmp_path):
    works[0].named["ch99.double"] = works[2].named["ch99.double"] = "You squared."
    works[2].person = Person("s2", "Ada", "L", "a@x.org")
    files, _ = write_report(works, tmp_path)
    assert rows(tmp_path / "misconceptions.csv")[1:] == [
        ["ch99.double", "You squared.", "s0", "", ""],
        ["ch99.double", "You squared.", "s2", "Ada L", "a@x.org"],
    ]
    assert re.search(r"2 ×</span> You squared\.</summary><p class=\"names\">s0, s2", files[0].read_text())


def test_drift_is_told_where_it_is_more_than_chance(works, tmp_path):
    (tmp_path / "a.csv").write_text("exercise,students,difficulty\nch99.double,100,1.0\nch99.three,2,0.5\nch99.why,0,\n")
    (tmp_path / "b.csv").write_text("exercise;students;difficulty\nch99.double;300;0.96\n")
    earlier = read_earlier([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert earlier["ch99.double"] == pytest.approx((0.97, 400)) and "ch99.why" not in earlier
    found = {item.exercise: drift(item, earlier) for item in items(works)}
    assert found["ch99.double"].clear and found["ch99.double"].difference == pytest.approx(-0.47)
    assert not found["ch99.three"].clear and found["ch99.letter"] is None
    write_report(works, tmp_path, earlier=earlier)
    assert "harder than before" in (tmp_path / "report.html").read_text()
    assert "Harder than for earlier classes (97 % of 400 students)" in (tmp_path / "reteach.html").read_text()
    (tmp_path / "c.csv").write_text("a,b\n")
    with pytest.raises(CourseError, match=r"no exercises\.csv"):
        read_earlier([tmp_path / "c.csv"])


def test_what_to_teach_again_leaves_out_who_handed_in_nothing_readable(works, tmp_path):
    for work in works[3:]:
        work.marks = ["unreadable"]
    works[2].named["ch99.three"], works[2].read["ch99.three"] = "That is two.", "doubling"
    found = reteach(works)
    assert [(one.item.exercise, one.lost) for one in found] == [
        ("ch99.why", 2.0),
        ("ch99.double", 1.0),
        ("ch99.three", 1.0),
        ("ch99.letter", 1.0),
    ]
    assert found[2].sections == ["Doubling"]
    write_report(works, tmp_path)
    text = (tmp_path / "reteach.html").read_text()
    assert "3 that are blank or could not be read are left out" in text and "That is two." in text


def test_who_is_on_the_list_and_handed_in_nothing(works):
    roster = Roster([person("s0", ["Ada"]), person("s8", ["Zoe"]), person("", ["Max M"])], given=True)
    assert [one.id for one in absent(works, roster)] == ["s8", "Max M"]
    assert absent(works, Roster([person("s8", ["Zoe"])])) == []
