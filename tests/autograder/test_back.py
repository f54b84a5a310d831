"""The way back: what is written is read here as each platform's importer reads it.

The parsers follow Moodle's mod/assign/feedback/file/importziplib.php (is_valid_filename_for_import),
mod/assign/feedback/offline/importgradeslib.php (init, next) and grade/import/csv/classes/load_data.php (check_user_exists), and
Canvas' lib/gradebook_importer.rb (update_column_count, process_student) and Assignment#infer_comment_context_from_filename.
"""

import csv
import re
import zipfile

import pytest

from autograder.errors import CourseError
from autograder.grading.gradebook import Book
from autograder.grading.intake import collect
from autograder.grading.roster import class_list
from autograder.grading.submitted import handed_in
from autograder.pages.back import complete, write_worksheets, zip_feedback
from autograder.pages.feedback import section_text
from autograder.pages.report import Work
from autograder.platforms import canvas, moodle
from autograder.platforms.tables import Person

NOTEBOOK = "ch99_toy.ipynb"
NAMES = [
    f"Ada_Lovelace O'N_12345_assignsubmission_file/{NOTEBOOK}".replace("Ada_", "Ada "),
    f"Participant_77_assignsubmission_file/{NOTEBOOK}",
    f"Team A_12_assignsubmission_file/{NOTEBOOK}",
    f"Default group_assignsubmission_file/{NOTEBOOK}",
    f"lovelaceada_LATE_5_60_{NOTEBOOK}",
    "byronada_6_61_ch99_toy-1.ipynb",
    f"team_blue_7_8_62_{NOTEBOOK}",
    f"anon_Ab3xY_63_{NOTEBOOK}",
]


@pytest.fixture
def chapter(chapter, tmp_path):
    """A chapter with hand-ins from both platforms, and a page of feedback for each."""
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for number, name in enumerate(NAMES):
            archive.writestr(name, b"%d" % number)
    collect(tmp_path / "export.zip", [chapter])
    for student, _ in handed_in(chapter):
        (chapter.folder("feedback", student)).mkdir(parents=True)
        (chapter.folder("feedback", student) / "ch99_toy.html").write_text(student)
    return chapter


@pytest.fixture
def works(chapter):
    return [
        Work(Person(student), chapter, {"ch99.double": score}, {"ch99.double": 7.0})
        for score, (student, _) in enumerate(handed_in(chapter))
    ]


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


# ---------------------------------------------------------------- feedback


def sent(chapter):
    pages = sorted((chapter.root / "feedback").rglob("*.html"))
    return {one.path.stem.rpartition("-")[2]: one for one in zip_feedback(chapter, pages, chapter.root / "build" / "feedback")}


def moodle_takes(name: str) -> tuple[str, str, str, str] | None:
    """(number, kind of plugin, plugin, file), or None where Moodle ignores the file."""
    parts = name.split("/")
    if parts[-1].startswith((".", "~")):
        return None
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) >= 4 and info[1].isdigit():
            return info[1], info[2], info[3], "/".join([*info[4:], *parts]).lstrip("/")
    return None


def canvas_takes(name: str) -> tuple[str, int] | None:
    """(the person's number or anonymous id, the file's), or None where Canvas ignores the file."""
    parts = name.rpartition("/")[2].split("_")
    if parts[-1].startswith("link") or name.startswith("._"):
        return None
    if "anon" in parts:
        at = parts.index("anon")
        return parts[at + 1], int(parts[at + 2])
    numbers = [part for part in parts if part.isdigit()][:2]
    return (numbers[0], int(numbers[1])) if len(numbers) == 2 else None


def test_moodle_takes_the_zip_of_feedback(chapter):
    one = sent(chapter)["moodle"]
    with zipfile.ZipFile(one.path) as archive:
        taken = {moodle_takes(name): archive.read(name).decode() for name in archive.namelist()}
    page = "assignfeedback", "file", "ch99_toy.html"
    assert {key[0]: key[1:] for key in taken} == {"12345": page, "77": page, "12": page}
    assert taken["77", *page] == "Participant-77" and taken["12", *page] == "Team A"
    assert one.left == ["Default group: Moodle gives those who are in no group no number"]


def test_canvas_takes_the_zip_of_feedback(chapter):
    one = sent(chapter)["canvas"]
    with zipfile.ZipFile(one.path) as archive:
        taken = {canvas_takes(name): archive.read(name).decode() for name in archive.namelist()}
        assert all(name.endswith("ch99_toy.html") and "/" not in name for name in archive.namelist())
    assert taken["5", 60] == "lovelaceada-5" and taken["6", 61] == "byronada-6" and taken["Ab3xY", 63] == "anon-Ab3xY"


def test_a_name_with_underscores_does_not_shift_moodles_number():
    from autograder.platforms.who import Who

    name = moodle.feedback_name(Who("moodle", "../a_9_b/c", "12"), "x.html")
    assert moodle_takes(name)[0] == "12" and name.count("/") == 1


# ---------------------------------------------------------------- scores

WORKSHEET = (
    "\ufeffIdentifier,Full name,Email address,Status,Group,Grade,Maximum grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
    'Participant 12345,Ada,a@x.org,Submitted,,,100.00,Yes,"Monday, 2 March 2026, 3:05 PM",-,=1+1\n'
    "Participant 77,,,Submitted,,,100.00,Yes,-,-,\n"
    "Participant 90,Bob,b@x.org,Submitted,Team A,,100.00,Yes,-,-,\n"
    "Participant 91,Cem,c@x.org,Submitted,Team A,,100.00,Yes,-,-,\n"
    "Participant 92,Dia,d@x.org,Submitted,Default group,,100.00,Yes,-,-,\n"
    "Participant 99,Eve,e@x.org,No submission,,,100.00,Yes,-,-,\n"
)


def worksheet_takes(table) -> dict[str, float]:
    """The grades by number, as the importer finds them; those without a value are skipped."""
    header = table[0]
    who, grade, _ = (header.index(name) for name in ("Identifier", "Grade", "Last modified (grade)"))
    return {row[who].removeprefix("Participant "): float(row[grade]) for row in table[1:] if row[grade] != ""}


def test_moodles_worksheet_comes_back_filled_for_people_and_groups(chapter, works, tmp_path):
    (tmp_path / "w.csv").write_text(WORKSHEET, encoding="utf-8")
    (one,) = write_worksheets(works, tmp_path / "out", [tmp_path / "w.csv"])
    score = {work.person.id: work.total * 100 / 7 for work in works}
    team, alone = score["Team A"], score["Default group"]
    wanted = {"12345": score["Ada Lovelace O'N"], "77": score["Participant-77"], "90": team, "91": team, "92": alone}
    assert worksheet_takes(rows(one.path)) == pytest.approx(wanted, abs=1e-4)
    assert one.notes == ["scores were brought to the maximum grade that w.csv has"]
    assert one.count == 5 and rows(one.path)[1][9] == "-"
    assert rows(one.path)[1][-1] == "'=1+1" and rows(one.path)[1][8] == "Monday, 2 March 2026, 3:05 PM"


def test_without_a_worksheet_one_is_made_with_what_the_import_asks_for(chapter, works, tmp_path):
    (one,) = write_worksheets(works, tmp_path)
    assert set(worksheet_takes(rows(one.path))) == {"12345", "77", "12"}
    assert one.left and one.left[0].startswith("Default group")
    (tmp_path / "x.csv").write_text("Teilnehmer,Bewertung\n")
    with pytest.raises(CourseError, match="no grading worksheet in English"):
        write_worksheets(works, tmp_path, [tmp_path / "x.csv"])


def test_moodles_grade_import_finds_everybody_by_the_column_that_is_mapped(chapter, works, tmp_path):
    text = "id,name,email,username,idnumber,canvas,sis,login\n"
    text += "byronada-6,Ada Byron,ab@x.org,abyron,i6,6,s6,ab\nlovelaceada-5,Ada L,al@x.org,alove,i5,5,s5,al\n"
    (chapter.root / "students.csv").write_text(text)
    complete([work.person for work in works], class_list(chapter.root, [], Book(chapter.root)), [chapter])
    left = moodle.write(works, tmp_path / "moodle.csv")
    header, *table = rows(tmp_path / "moodle.csv")
    users = {"ID number": {"i5", "i6"}, "Username": {"alove", "abyron"}, "Email address": {"al@x.org", "ab@x.org"}}
    for column, known in users.items():
        assert {row[header.index(column)] for row in table} == known
    assert len(left) == 6 and {row[header.index("Last name")] for row in table} == {"L", "Byron"}


def canvas_finds(table) -> dict[int, str]:
    """The score by Canvas's number of the user, as the importer takes it."""
    header = table[0]
    assert "Student" in header[0] and "ID" in header[1] and len(header) > 3
    columns = 3
    assert re.search(r"SIS\s+User\s+ID", header[2]) and re.search(r"SIS\s+Login\s+ID", header[3])
    columns += 2
    assert "Section" in header[columns - 1]
    people = [row for row in table[1:] if "Points Possible" not in row[0]]
    return {int(row[1]): row[columns] for row in people if row[1].isdigit()}


def test_canvas_finds_everybody_by_its_own_number(chapter, works, tmp_path):
    complete([work.person for work in works], class_list(chapter.root, [], Book(chapter.root)), [chapter])
    left = canvas.write(works, tmp_path / "canvas.csv")
    score = {work.person.id: f"{work.total:g}" for work in works}
    found = canvas_finds(rows(tmp_path / "canvas.csv"))
    assert found == {5: score["lovelaceada-5"], 6: score["byronada-6"], 8: score["team_blue_7-8"]}
    assert {person.id for person in left} == {"Ada Lovelace O'N", "Default group", "Participant-77", "Team A", "anon-Ab3xY"}


# ---------------------------------------------------------------- what a page links to


def test_the_text_of_a_section_leads_nowhere_and_shows_no_answer(make, cells):
    cells[
        2
    ].source = "## Doubling\n\nSee [it](../ch98/x.ipynb), ![p](x.png), <script>1</script> and [the web](https://x.org).\n\n### More\n\nTwice."
    cells.insert(3, type(cells[2])(cells[2] | {"source": "## Next\n\nNot this.", "id": "next"}))
    chapter = make(cells=cells)
    text = section_text(chapter, "doubling")
    assert "Twice." in text and "Not this" not in text and "<script" not in text and "<img" not in text
    assert re.findall(r'href="([^"]*)"', text) == ["https://x.org"] and section_text(chapter, "none") == ""
    assert "MARK SCHEME" not in section_text(chapter, "next") and "Twice as much" not in section_text(chapter, "next")
