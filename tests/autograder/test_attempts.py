"""When work came and which attempt counts: what the platforms say, never what a download says.

Names of files and fields are those of Canvas' app/models/content_zipper.rb, of its API's Submission, and of Moodle's
mod/assign/gradingtable.php (col_status, col_timesubmitted) and mod/assign/classes/downloader.php.
"""

import json
import os
import zipfile
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.authoring.chapters import grade_id
from autograder.errors import CourseError
from autograder.grading.attempts import Kept, time
from autograder.grading.extensions import read_extensions
from autograder.grading.grade import grade
from autograder.grading.gradebook import Book
from autograder.grading.intake import collect, read_lists
from autograder.grading.settings import settings
from autograder.grading.submission import Options
from autograder.grading.submitted import attempts_of, handed_in, received
from autograder.platforms import canvas, moodle

NOTEBOOK = "ch99_toy.ipynb"
HEADER = "Identifier,Full name,Email address,Status,Group,Grade,Maximum grade,Grade can be changed,"
HEADER += "Last modified (submission),Last modified (grade),Feedback comments\n"


@pytest.fixture
def work(chapter) -> bytes:
    return chapter.release.read_bytes()


@pytest.fixture
def taken(chapter, tmp_path):
    """taken(files, lists, day): what is made of an export that was downloaded on a day of March 2026."""

    def taken(files, lists=(), day=1):
        export = tmp_path / "export.zip"
        with zipfile.ZipFile(export, "w") as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name, (2026, 3, day, 12, 0, 0)), data)
        return {one.student: one for one in collect(export, [chapter], lists=read_lists(lists, UTC))}

    return taken


@pytest.fixture
def worksheet(tmp_path):
    """worksheet(rows): a grading worksheet of (number, name, status, group, time)."""

    def worksheet(*rows):
        lines = [
            f'Participant {n},{name},{name[0]}@x.org,"{status}",{group},,7.00,Yes,"{sent}",-,'
            for n, name, status, group, sent in rows
        ]
        (tmp_path / "worksheet.csv").write_text(HEADER + "\n".join(lines), encoding="utf-8-sig")
        return tmp_path / "worksheet.csv"

    return worksheet


def ada(number=12345, name=NOTEBOOK, folder="Ada Lovelace"):
    return f"{folder}_{number}_assignsubmission_file/{name}"


def at(chapter, student):
    return received(chapter, student, None)[0]


# ---------------------------------------------------------------- times


def test_the_time_of_a_download_is_nobodys(taken, chapter, work):
    for platform, student in ((ada(), "Ada Lovelace"), (f"lovelaceada_5_6_{NOTEBOOK}", "lovelaceada-5")):
        assert taken({platform: work})[student].timeless and at(chapter, student) is None
        assert not (chapter.folder("submitted", student) / "timestamp.txt").exists()


def test_moodles_worksheet_tells_the_time_and_that_it_was_late(taken, chapter, work, worksheet):
    assert moodle.LATE.search("Submitted for grading - 3 hours late - ".strip())
    status = "Submitted for grading - 2 hours 5 mins late - Graded - Extension granted until: Monday, 2 March 2026, 1:00 PM"
    sheet = worksheet(
        (12345, "Ada Lovelace", status, "", "Monday, 2 March 2026, 3:05 PM"),
        (2, "Bob B", "Submitted for grading - ", "", "Sunday, 1 March 2026, 9:00\u202fAM"),
        (3, "Eve E", "No submission", "", "-"),
    )
    found = taken({ada(): work, ada(2, folder="Bob B"): work}, [sheet])
    assert not found["Ada Lovelace"].timeless and str(at(chapter, "Ada Lovelace")) == "2026-03-02 15:05:00"
    (one,) = Kept.of(chapter, "Ada Lovelace").attempts
    assert (one.late, one.extended, one.due) == (True, True, "2026-03-02 13:00:00 UTC") and one.is_late()
    (other,) = Kept.of(chapter, "Bob B").attempts
    assert other.late is False and other.received == "2026-03-01 09:00:00 UTC" and not other.is_late()


def test_the_times_of_a_worksheet_are_in_the_teachers_zone():
    told = moodle.time_of("Monday, 2 March 2026, 3:05 PM", ZoneInfo("Europe/Berlin"))
    assert told == datetime(2026, 3, 2, 14, 5, tzinfo=UTC)
    with pytest.raises(CourseError, match="set Moodle's language to English"):
        moodle.time_of("Montag, 2. März 2026, 15:05")


def test_a_group_has_the_time_of_its_members(taken, chapter, work, worksheet):
    rows = [
        (i, name, "Submitted for grading", group, "Monday, 2 March 2026, 3:05 PM")
        for i, name, group in ((1, "Ada A", "Team A"), (2, "Bob B", "Team A"), (3, "Cem C", "Default group"))
    ]
    taken({ada(77, folder="Team A"): work, f"Default group_assignsubmission_file/{NOTEBOOK}": work}, [worksheet(*rows)])
    assert at(chapter, "Team A") == at(chapter, "Default group") == datetime(2026, 3, 2, 15, 5)


def test_canvas_says_late_in_the_name_and_when_in_its_api(taken, chapter, work, tmp_path):
    taken({f"lovelaceada_LATE_5_60_{NOTEBOOK}": work, f"byronada_6_61_{NOTEBOOK}": work, f"LATE_anon_Ab3xY_62_{NOTEBOOK}": work})
    late = {student: Kept.of(chapter, student).attempts[0].is_late() for student, _ in handed_in(chapter)}
    assert late == {"lovelaceada-5": True, "byronada-6": False, "anon-Ab3xY": True}
    answer = [
        {
            "user_id": 5,
            "submission_history": [
                {"attempt": 1, "submitted_at": "2026-03-01T10:00:00Z", "late": False, "attachments": [{"id": 59}]},
                {"attempt": 2, "submitted_at": "2026-03-03T10:00:00+01:00", "late": True, "attachments": [{"id": 60}]},
            ],
            "cached_due_date": "2026-03-02T00:00:00Z",
        },
        {"anonymous_id": "Ab3xY", "submitted_at": "2026-03-04T10:00:00Z", "late": True, "attachments": [{"id": 62}]},
        {"user_id": 7, "submitted_at": None},
    ]
    (tmp_path / "submissions.json").write_text(json.dumps(answer))
    taken({f"lovelaceada_LATE_5_60_{NOTEBOOK}": work, f"LATE_anon_Ab3xY_62_{NOTEBOOK}": work}, [tmp_path / "submissions.json"])
    assert at(chapter, "lovelaceada-5") == datetime(2026, 3, 3, 9) and at(chapter, "anon-Ab3xY") == datetime(2026, 3, 4, 10)
    assert Kept.of(chapter, "lovelaceada-5").attempts[0].due == "2026-03-02 00:00:00 UTC"


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[{"id": 1}]', "[" * 100_000, '[{"user_id": 1, "submitted_at": "soon"}]', "\0"]
)
def test_what_is_no_answer_of_the_api_is_told(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(CourseError, match=r"x\.json"):
        canvas.submissions(tmp_path / "x.json")


def test_the_same_class_downloaded_again_tomorrow_is_the_same(taken, chapter, work):
    names = {ada(): work, f"lovelaceada_5_6_{NOTEBOOK}": work, f"eli/{NOTEBOOK}": work}
    taken(names)
    before = {student: (at(chapter, student), Kept.of(chapter, student).attempts[0].digest) for student, _ in handed_in(chapter)}
    taken(names, day=9)
    after = {student: (at(chapter, student), Kept.of(chapter, student).attempts[0].digest) for student, _ in handed_in(chapter)}
    assert before == after and len(Kept.of(chapter, "eli").attempts) == 1


# ---------------------------------------------------------------- attempts


def content(chapter, student) -> bytes:
    return (chapter.folder("submitted", student) / NOTEBOOK).read_bytes()


def test_each_attempt_is_kept_and_the_last_counts(taken, chapter):
    for number, data in enumerate((b"1", b"2", b"3"), 900):
        taken({f"team_blue_77_{number}_ch99_toy{f'-{number - 900}' if number > 900 else ''}.ipynb": data})
    kept = Kept.of(chapter, "team_blue-77")
    assert content(chapter, "team_blue-77") == b"3" and len(kept.attempts) == 3
    assert [(kept.place(one.number) / NOTEBOOK).read_bytes() for one in kept.attempts] == [b"1", b"2", b"3"]
    old = taken({f"team_blue_77_900_{NOTEBOOK}": b"1"})["team_blue-77"]
    assert content(chapter, "team_blue-77") == b"3" and old.flags == ["an older attempt than the one that counts; it is kept"]
    assert {student for student, _ in handed_in(chapter)} == {"team_blue-77"}


def test_the_eighth_upload_has_a_name_of_its_own(taken, chapter):
    """Attachment.make_unique_filename: x-1 to x-7, then x-<uuid>."""
    taken({f"a_5_{900 + i}_ch99_toy-{i}.ipynb": bytes([i]) for i in range(1, 8)})
    taken({"a_5_950_ch99_toy-0b6f0f5e-51f1-4a3c-9f0c-2a1d3f4b5c6d.ipynb": b"eighth"})
    assert content(chapter, "a-5") == b"eighth"


def test_a_text_after_the_file_is_not_what_counts(taken, chapter, work):
    taken({f"a_5_900_{NOTEBOOK}": work})
    one = taken({"a_5_text.html": b"<p>see my file"})["a-5"]
    assert content(chapter, "a-5") == work and one.flags[-1] == "a text without files is not the attempt that counts; it is kept"


def test_work_that_was_put_there_by_hand_is_kept(taken, chapter, work):
    folder = chapter.folder("submitted", "ada")
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(b"by hand")
    taken({f"ada/{NOTEBOOK}": work})
    assert content(chapter, "ada") == work
    assert [path.read_bytes() for path in attempts_of(chapter, "ada").rglob("*.ipynb")] == [b"by hand"]


def sent(*times):
    """The answer of Canvas' API for attempts of one student at some times of March."""
    return [
        {
            "user_id": 5,
            "submission_history": [
                {"attempt": i, "submitted_at": f"2026-03-{day:02}T10:00:00Z", "attachments": [{"id": 900 + i}]}
                for i, day in enumerate(times)
            ],
        }
    ]


@pytest.mark.parametrize(
    ("policy", "due", "counts"),
    [
        ("last", 2, b"2"),
        ("last-before-due", 2, b"0"),
        ("last-before-due", 4, b"1"),
        ("last-before-due", None, b"2"),
        ("last-before-due", 0, b"2"),
    ],
)
def test_the_policy_says_which_counts(taken, chapter, tmp_path, policy, due, counts):
    (tmp_path / "s.json").write_text(json.dumps(sent(1, 3, 5)))
    for i in (2, 0, 1):  # in whatever order they are collected
        taken({f"a_5_{900 + i}_{NOTEBOOK}": b"%d" % i}, [tmp_path / "s.json"])
    kept = Kept.of(chapter, "a-5")
    assert content(chapter, "a-5") == b"2"
    date = due if due is None else datetime(2026, 3, 1) + timedelta(days=due - 1)
    kept.settle(kept.chosen(policy, date))
    assert content(chapter, "a-5") == counts and len(Kept.of(chapter, "a-5").attempts) == 3


RIGHT = {"double": "def double(x):\n    return x + x", "three": "three = 3", "letter": "letter = 'B'"}


def answered(work: bytes, **answers) -> bytes:
    notebook = nbformat.reads(work.decode(), as_version=4)
    for cell in notebook.cells:
        name = (grade_id(cell) or "").removeprefix("ch99-").removesuffix("-answer")
        if name in answers:
            cell.source = answers[name]
    return nbformat.writes(notebook).encode()


def test_the_best_attempt_counts_where_it_is_to(taken, chapter, work):
    good, bad = answered(work, three="three = 3"), answered(work, three="three = 4")
    taken({f"a_5_900_{NOTEBOOK}": good, f"b_6_901_{NOTEBOOK}": good})
    taken({f"a_5_902_{NOTEBOOK}": bad})
    book = Book(chapter.root)
    first = {one.student: one for one in grade([chapter], book, Options(), attempts="best")}
    assert sum(value or 0 for value in first["a-5"].points.values()) == 1.0 and content(chapter, "a-5") == good
    again = {one.student: one for one in grade([chapter], book, Options(), attempts="best")}
    assert all(one.unchanged for one in again.values())
    last = {one.student: one for one in grade([chapter], book, Options())}
    assert content(chapter, "a-5") == bad and not any(last["a-5"].points.values()) and last["b-6"].unchanged


def test_a_time_that_comes_later_makes_late_and_grades_nobody_anew(taken, chapter, work, worksheet):
    taken({ada(): work})
    book = Book(chapter.root)
    grade([chapter], book, Options())
    with Gradebook(book.db_url) as gradebook:
        gradebook.update_or_create_assignment("ch99_toy", duedate="2026-03-01 00:00:00 UTC")
    taken({ada(): work}, [worksheet((12345, "Ada Lovelace", "", "", "Monday, 2 March 2026, 3:05 PM"))], day=9)
    (one,) = grade([chapter], book, Options())
    assert one.unchanged
    with Gradebook(book.db_url) as gradebook:
        submission = gradebook.find_submission("ch99_toy", "Ada Lovelace")
        assert submission.timestamp == datetime(2026, 3, 2, 15, 5) and submission.total_seconds_late == 39 * 3600 + 300
    (chapter.root / "extensions.csv").write_text("student;chapter;until\nAda Lovelace;ch99;2026-03-02\nx;ch98;2026-03-02\n")
    until = read_extensions(chapter.root, [chapter], UTC)
    assert until == {("ch99_toy", "Ada Lovelace"): datetime(2026, 3, 2, 23, 59, 59)}
    grade([chapter], book, Options(), until=until)
    with Gradebook(book.db_url) as gradebook:
        assert gradebook.find_submission("ch99_toy", "Ada Lovelace").total_seconds_late == 0


@pytest.mark.parametrize(
    ("text", "told"), [("a,b\n", "lacks the column"), ("student,chapter,until\na,ch99,soon\n", "line 2: 'soon' is no time")]
)
def test_extensions_that_cannot_be_read_are_told(chapter, text, told):
    (chapter.root / "extensions.csv").write_text(text)
    with pytest.raises(CourseError, match=told):
        read_extensions(chapter.root, [chapter])


def test_settings_are_in_the_configuration(chapter):
    assert settings(chapter.root).attempts == "last" and settings(chapter.root).zone is None
    config = chapter.root / "nbgrader_config.py"
    before = config.read_text()
    config.write_text(
        before + 'c.Course.attempts = "best"\nc.Course.timezone = "Europe/Berlin"\nc.Course.book_url = "https://b.org/"\n'
    )
    found = settings(chapter.root)
    assert (found.attempts, str(found.zone), found.book_url) == ("best", "Europe/Berlin", "https://b.org")
    for line in ('attempts = "first"', 'timezone = "Moon/Crater"', 'timezone = "../x"', 'book_url = "file:///x"', "attempts = 3"):
        config.write_text(f"{before}c.Course.{line}\n")
        with pytest.raises(CourseError, match=r"c\.Course"):
            settings(chapter.root)


def test_a_record_that_is_damaged_costs_no_work(taken, chapter, work):
    taken({f"ada/{NOTEBOOK}": b"1"})
    record = chapter.folder("submitted", "ada").with_name("ch99_toy.collected.json")
    for text in (
        "",
        "[]",
        '{"attempts": 3}',
        '{"who": {"platform": "", "name": "a", "number": ""}, "attempts": [{"number": "x"}]}',
    ):
        record.write_text(text)
        taken({f"ada/{NOTEBOOK}": text.encode() or b"0"})
    kept = Kept.of(chapter, "ada")
    assert content(chapter, "ada") == text.encode() and time(kept.attempts[-1].received)
    assert b"1" in {path.read_bytes() for path in chapter.root.joinpath("submitted").rglob("*.ipynb")}
    assert os.listdir(chapter.root / "submitted" / "ada") != []
