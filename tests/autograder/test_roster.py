"""Whose a hand-in is: the class list by the platforms' own ids first, and a question to the teacher where it does not tell.

Columns are those that the exports of Canvas' gradebook and of Moodle's participants list show; the code that writes these two was not read.
"""

import csv
import zipfile
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from autograder.doors.cli import app
from autograder.errors import CourseError
from autograder.grading.gradebook import Book
from autograder.grading.intake import collect, read_lists, refile
from autograder.grading.renamed import bring_along
from autograder.grading.roster import REVIEW, class_list, open_questions, read_answers, write_list, write_review
from autograder.grading.submitted import handed_in

NOTEBOOK = "ch99_toy.ipynb"
STUDENTS = (
    "id,name,email,canvas\nada,Ada Lovelace,ada@x.org,5\njan1,Jan K,jan@x.org,6\njan2,Jan K,jk@x.org,7\nbob,Bob B,bob@x.org,\n"
)
CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Attention (1234)\n"
    "    Points Possible,,,,,36\n"
    '"Lovelace, Ada",5,s5,ada,A,\n"K, Jan",6,s6,jan,A,\n"Student, Test",99,,abc,A,\n'
)


@pytest.fixture
def export(tmp_path):
    """export(names): a zip of hand-ins with these names."""

    def export(*names, name="export.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for number, entry in enumerate(names):
                archive.writestr(entry, b"%d" % number)
        return tmp_path / name

    return export


def moodle(*people):
    return [f"{person}_assignsubmission_file/{NOTEBOOK}" for person in people]


def take(chapter, path, lists=()):
    roster = class_list(chapter.root, lists, Book(chapter.root))
    took = collect(path, [chapter], roster, None, read_answers(chapter.root))
    write_review(chapter.root, [q for one in took for q in one.questions], roster, [chapter.stem, ""])
    return {one.student: one for one in took}


def students(chapter, text=STUDENTS, encoding="utf-8"):
    (chapter.root / "students.csv").write_text(text, encoding=encoding)


def review(chapter) -> list[dict]:
    with (chapter.root / REVIEW).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def answer(chapter, **answers):
    """Write the teacher's answers by the number of the hand-in, as a spreadsheet with semicolons saves them."""
    rows = review(chapter)
    with (chapter.root / REVIEW).open("w", newline="", encoding="cp1252") as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter=";")
        table.writeheader()
        table.writerows({**row, "answer": answers.get(f"n{row['number']}", row["answer"])} for row in rows)


# ---------------------------------------------------------------- who it is


def test_the_platforms_own_id_goes_before_the_name(chapter, export):
    students(chapter)
    found = take(chapter, export(f"kjan_7_70_{NOTEBOOK}", f"kjan_6_71_{NOTEBOOK}", f"otherada_5_72_{NOTEBOOK}"))
    assert set(found) == {"jan1", "jan2", "ada"} and not (chapter.root / REVIEW).exists()


def test_a_name_on_the_list_with_another_id_is_a_question(chapter, export):
    students(chapter)
    (one,) = take(chapter, export(f"lovelaceada_55_70_{NOTEBOOK}")).values()
    assert one.student == "lovelaceada-55" and one.questions[0].candidates[0] == "ada"


def test_namesakes_and_strangers_are_questions_with_candidates_and_nothing_is_lost(chapter, export):
    students(chapter)
    found = take(chapter, export(*moodle("Jan K_1", "Jan K_2", "Ada Lovelace_3", "Bobby B_4", "Zoe Quark_5")))
    assert set(found) == {"Jan K-1", "Jan K-2", "ada", "Bobby B", "Zoe Quark"}
    rows = {row["number"]: row for row in review(chapter)}
    assert set(rows) == {"1", "2", "4", "5"} and all(row["answer"] == "" for row in rows.values())
    assert rows["1"]["candidates"] == "jan1 Jan K jan@x.org; jan2 Jan K jk@x.org" and rows["1"]["filed as"] == "Jan K-1"
    assert rows["4"]["candidates"].startswith("bob ") and rows["5"]["candidates"] == ""
    assert {question.assignment for question in open_questions(chapter.root)} == {"ch99_toy"}


def test_an_answer_files_the_work_and_holds_for_the_next_export(chapter, export):
    students(chapter)
    path = export(*moodle("Jan K_1", "Jan K_2", "Zoe Quark_5"))
    take(chapter, path)
    answer(chapter, n1="jan2", n2="jan1 Jan K jan@x.org", n5="new")
    roster, answers = class_list(chapter.root, [], Book(chapter.root)), read_answers(chapter.root)
    moved = refile([chapter], roster, answers)
    assert sorted(moved) == [("ch99_toy", "Jan K-1", "jan2"), ("ch99_toy", "Jan K-2", "jan1")]
    assert {s: (p / NOTEBOOK).read_bytes() for s, p in handed_in(chapter)} == {"jan2": b"0", "jan1": b"1", "Zoe Quark": b"2"}
    assert set(take(chapter, path)) == {"jan1", "jan2", "Zoe Quark"} and open_questions(chapter.root) == []
    assert refile([chapter], roster, answers) == []


def test_two_accounts_of_one_student_are_their_attempts(chapter, export):
    students(chapter)
    take(chapter, export(*moodle("Ada Lovelace_1", "A Lovelace_2")))
    answer(chapter, n2="ada")
    refile([chapter], class_list(chapter.root, [], Book(chapter.root)), read_answers(chapter.root))
    assert [student for student, _ in handed_in(chapter)] == ["ada"]
    kept = chapter.root / "submitted" / ".attempts" / "ada"
    assert len(list(kept.rglob("*.ipynb"))) == 1


def test_an_answer_that_names_nobody_is_told(chapter, export):
    students(chapter)
    path = export(*moodle("Zoe Quark_5"))
    take(chapter, path)
    answer(chapter, n5="zoe")
    with pytest.raises(CourseError, match="the answer 'zoe' for Zoe Quark is nobody's id"):
        take(chapter, path)
    (chapter.root / REVIEW).write_text("a;b\n")
    with pytest.raises(CourseError, match="its first line has to be answer, name"):
        read_answers(chapter.root)


def test_a_name_that_is_a_formula_is_asked_about_without_being_one(chapter, export):
    students(chapter)
    path = export(*moodle("=cmd()_5"))
    take(chapter, path)
    assert review(chapter)[0]["name"] == "'=cmd()"
    answer(chapter, n5="bob")
    assert set(take(chapter, path)) == {"bob"}


def test_who_is_hidden_is_no_question(chapter, export):
    students(chapter)
    names = [*moodle("Participant_9"), f"Default group_assignsubmission_file/{NOTEBOOK}", f"anon_Ab3xY_9_{NOTEBOOK}"]
    found = take(chapter, export(*names))
    assert set(found) == {"Participant-9", "Default group", "anon-Ab3xY"} and not (chapter.root / REVIEW).exists()
    assert "part them by hand" in found["Default group"].flags[0]


def test_a_group_of_the_worksheet_is_no_question(chapter, export, tmp_path):
    students(chapter)
    (tmp_path / "w.csv").write_text("Identifier,Full name,Email address,Group\nParticipant 1,Ada Lovelace,ada@x.org,Team A\n")
    take(chapter, export(*moodle("Team A_12")), [tmp_path / "w.csv"])
    assert not (chapter.root / REVIEW).exists()


def test_without_a_list_nobody_is_asked(chapter, export):
    assert all(not one.questions for one in take(chapter, export(*moodle("Jan K_1", "Jan K_2"))).values())


# ---------------------------------------------------------------- the list


@pytest.mark.parametrize(
    ("text", "encoding", "ids"),
    [
        (CANVAS, "utf-8", {"ada": "Ada Lovelace", "jan": "Jan K"}),
        (
            '"First name","Last name","Email address",Groups\nAda,Lovelace,ada@x.org,A\n',
            "utf-8-sig",
            {"ada@x.org": "Ada Lovelace"},
        ),
        ("Vorname;Nachname;E-Mail-Adresse\nZoë;Ångström;z@x.org\n", "cp1252", {"z@x.org": "Zoë Ångström"}),
        ("sep=;\nid;name\n=1+1;Eve\n", "utf-16", {"=1+1": "Eve"}),
        ("id,name\n../../etc,Eve\n,Jan\n,Jan\n", "utf-8", {"../../etc": "Eve", "Jan": "Jan"}),
        ("name\nJan K\n\0\n", "utf-8", {"Jan K": "Jan K"}),
    ],
    ids=["canvas", "participants", "german", "excel", "paths", "nul"],
)
def test_what_platforms_export_becomes_students_csv(chapter, tmp_path, text, encoding, ids):
    (tmp_path / "list.csv").write_text(text, encoding=encoding)
    roster = class_list(chapter.root, [tmp_path / "list.csv"], Book(chapter.root))
    assert dict(write_list(roster, chapter.root / "students.csv")) == ids
    again = class_list(chapter.root, [], Book(chapter.root))
    assert dict(write_list(again, tmp_path / "again.csv")) == ids
    assert (tmp_path / "again.csv").read_text() == (chapter.root / "students.csv").read_text()
    assert not [line for line in (tmp_path / "again.csv").read_text().splitlines() if line.startswith("=")]


def test_canvas_and_moodle_make_one_person(chapter, tmp_path, export):
    (tmp_path / "canvas.csv").write_text(CANVAS)
    (tmp_path / "moodle.csv").write_text("First name,Last name,Username,Email address\nAda,Lovelace,ada,ada@x.org\n")
    roster = class_list(chapter.root, [tmp_path / "canvas.csv", tmp_path / "moodle.csv"], Book(chapter.root))
    (ada,) = [person for person in roster.people if "ada lovelace" in person.names]
    assert ada.told["email"] == "ada@x.org" and ada.told["sis"] == "s5" and ada.numbers == {("canvas", "5")}


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "NO_COLOR": "1"})


def test_the_commands_of_a_teacher_with_a_list(chapter, export, tmp_path):
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as gradebook:
        gradebook.add_student("eli")
        gradebook.add_student("ada", first_name="Ada", last_name="Lovelace", lms_user_id="5")
    done = call("roster", tmp_path / "gradebook.db", "--root", chapter.root)
    assert done.exit_code == 0 and "students.csv: 2 students" in done.output, done.output
    path = export(f"lovelaceada_5_50_{NOTEBOOK}", f"strangeeli_8_51_{NOTEBOOK}")
    done = call("intake", path, "--root", chapter.root)
    assert done.exit_code == 0 and "1 hand-ins are of somebody whom the class list does not tell" in done.output
    assert "no time is known of hand-ins for ch99_toy" in done.output
    done = call("intake", "--review", "--root", chapter.root)
    assert done.exit_code == 0 and "strangeeli" in done.output and "Answer in intake-review.csv" in done.output
    answer(chapter, n8="eli")
    done = call("intake", "--root", chapter.root)
    assert done.exit_code == 0 and "strangeeli-8 is eli now" in done.output and "nothing is open" in done.output
    assert {student for student, _ in handed_in(chapter)} == {"ada", "eli"}
    assert call("roster", tmp_path / "none.db", "--root", chapter.root).exit_code == 2
    assert call("intake", tmp_path / "none.zip", "--root", chapter.root).exit_code == 2


def test_scores_and_comments_come_along_to_the_new_name(chapter):
    book = Book(chapter.root)
    with Gradebook(book.db_url) as gradebook:
        gradebook.add_assignment("ch99_toy")
        for student in ("Jan K-1", "eve", "bob"):
            gradebook.add_student(student)
            gradebook.add_submission("ch99_toy", student)
    for step in ("autograded", "feedback"):
        (chapter.folder(step, "Jan K-1")).mkdir(parents=True)
        (chapter.folder(step, "Jan K-1") / "x").write_text(step)
    assert bring_along(book, "ch99_toy", "Jan K-1", "jan1") and not bring_along(book, "ch99_toy", "eve", "bob")
    with Gradebook(book.db_url) as gradebook:
        assert {s.student.id for s in gradebook.assignment_submissions("ch99_toy")} == {"jan1", "eve", "bob"}
        assert {s.id for s in gradebook.students} == {"jan1", "eve", "bob"}
    assert (chapter.folder("autograded", "jan1") / "x").is_file() and not (chapter.root / "autograded" / "Jan K-1").exists()


@pytest.mark.parametrize("name", ["x.csv", "x.json"])
def test_a_list_that_is_none_is_told(tmp_path, name):
    (tmp_path / name).write_bytes(b"\xff\xfe\0\0\0")
    with pytest.raises(CourseError, match="x"):
        lists = read_lists([tmp_path / name])
        class_list(Path(tmp_path), lists.rosters, Book(tmp_path))
