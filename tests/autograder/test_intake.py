"""What students and platforms hand in: everybody's latest work under the right name, whatever else is in the export."""

import io
import json
import os
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook

from autograder.authoring.chapters import find_chapters
from autograder.errors import CourseError
from autograder.grading import submitted as folders
from autograder.grading import unpacking
from autograder.grading.gradebook import Book
from autograder.grading.intake import collect
from autograder.grading.roster import class_list
from autograder.grading.submitted import find_notebook, handed_in, received, record_of, stage

NOTEBOOK = "ch99_toy.ipynb"


@pytest.fixture
def work(chapter) -> bytes:
    """A notebook as a student has it."""
    return chapter.release.read_bytes()


def zipped(files: dict, when=(2026, 3, 1, 12, 0, 0)) -> bytes:
    """A zip of names and bytes; a key may be a ZipInfo."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(
                name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name, when), data, zipfile.ZIP_DEFLATED
            )
    return out.getvalue()


@pytest.fixture
def taken(chapter, tmp_path):
    """taken(files): what `collect` makes of a zip of these files, by student."""

    def taken(files, chapters=None):
        export = tmp_path / "export.zip"
        export.write_bytes(files if isinstance(files, bytes) else zipped(files))
        return {one.student: one for one in collect(export, chapters or [chapter])}

    return taken


def submitted(chapter) -> set[str]:
    root = chapter.root / "submitted"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.suffix == ".ipynb"}


# ---------------------------------------------------------------- platforms


@pytest.mark.parametrize(
    ("name", "student"),
    [
        (f"Ada Lovelace_12345_assignsubmission_file_/{NOTEBOOK}", "Ada Lovelace"),
        (f"Ada Lovelace_12345_assignsubmission_file/{NOTEBOOK}", "Ada Lovelace"),
        (f"Ada Lovelace_12345_assignsubmission_file_{NOTEBOOK}", "Ada Lovelace"),
        (f"Class 3/Ada Lovelace_12345_assignsubmission_file_/{NOTEBOOK}", "Ada Lovelace"),
        (f"lovelaceada_123_456_{NOTEBOOK}", "lovelaceada-123"),
        ("lovelaceada_LATE_123_456_ch99_toy-2.ipynb", "lovelaceada-123"),
        (f"submissions/lovelaceada_123_456_{NOTEBOOK}", "lovelaceada-123"),
        (f"ada/ch99_toy/{NOTEBOOK}", "ada"),
        (f"submitted/ada/ch99_toy/{NOTEBOOK}", "ada"),
        (f"ada/{NOTEBOOK}", "ada"),
        ("ada/homework.ipynb", "ada"),
        ("ada.ipynb", "ada"),
        ("ada_ch99_toy.ipynb", "ada"),
        (f"ch99_toy/ada/{NOTEBOOK}", "ada"),
        (f"Zoë Ångström_1_assignsubmission_file_/{NOTEBOOK}", "Zoë Ångström"),
        (f"a:b*c_1_assignsubmission_file_/{NOTEBOOK}", "a_b_c"),
    ],
)
def test_names_of_an_export(taken, chapter, work, name, student):
    assert set(taken({name: work})) == {student}
    path, _ = find_notebook(chapter, chapter.folder("submitted", student))
    assert path.read_bytes() == work


def test_a_folder_is_an_export_too(chapter, work, tmp_path):
    folder = tmp_path / "unpacked" / "Ada_1_assignsubmission_file_"
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(work)
    (folder / "link.csv").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")
    (one,) = collect(tmp_path / "unpacked", [chapter])
    assert (one.student, one.flags) == ("Ada", ["link.csv is a link", "pipe is a pipe"])
    assert submitted(chapter) == {f"Ada/ch99_toy/{NOTEBOOK}"}


def test_nested_zips_and_their_folders_are_unpacked(taken, chapter, work):
    inner = zipped({f"homework/{NOTEBOOK}": work, "homework/data/numbers.csv": b"1,2"})
    taken({"Ada_1_assignsubmission_file_/homework.zip": inner})
    folder = chapter.folder("submitted", "Ada")
    assert (folder / NOTEBOOK).read_bytes() == work and (folder / "data" / "numbers.csv").read_bytes() == b"1,2"


def test_a_zip_a_student(taken, work):
    assert set(taken({"ada.zip": zipped({NOTEBOOK: work}), "eli.zip": zipped({f"x/{NOTEBOOK}": work})})) == {"ada", "eli"}


def test_of_several_versions_the_latest_counts(taken, chapter, work):
    files = {"a_1_2_ch99_toy.ipynb": b"old", "a_1_3_ch99_toy-1.ipynb": b"older", "a_1_4_ch99_toy-10.ipynb": work}
    one = taken(files)["a-1"]
    assert chapter.folder("submitted", "a-1").joinpath(NOTEBOOK).read_bytes() == work
    assert one.flags == [
        "an older version, ch99_toy.ipynb, was left out",
        "an older version, ch99_toy-1.ipynb, was left out",
    ]


def test_of_two_with_one_name_the_later_counts(taken, chapter, work):
    early, late = (zipfile.ZipInfo(f"ada{x}/{NOTEBOOK}", (2026, 3, day, 12, 0, 0)) for x, day in (("", 1), ("", 2)))
    with pytest.warns(UserWarning, match="Duplicate"):
        export = zipped({late: work, early: b"early"})
    taken(export)
    assert chapter.folder("submitted", "ada").joinpath(NOTEBOOK).read_bytes() == work


def test_two_people_of_one_name_stay_apart(taken, work):
    found = taken({f"Ada_{n}_assignsubmission_file_/{NOTEBOOK}": work for n in (1, 2)})
    assert set(found) == {"Ada-1", "Ada-2"} and "several people are called Ada" in found["Ada-1"].flags[0]


def test_work_for_several_chapters_is_told_apart_by_its_cells(taken, chapter, work):
    """A renamed notebook belongs to the chapter whose cells it has."""
    folder = chapter.root / "source" / "ch98_other"
    folder.mkdir()
    nbformat.write(new_notebook(), folder / "ch98_other.ipynb")
    chapters = find_chapters(chapter.root)
    found = taken({"Ada_1_assignsubmission_file_/final version.ipynb": work}, chapters)
    assert found["Ada"].chapter == "ch99_toy" and [c.stem for c in chapters] == ["ch98_other", "ch99_toy"]


def test_a_new_export_replaces_the_old_work(taken, chapter, work):
    taken({f"ada/{NOTEBOOK}": b"old", "ada/old.csv": b""})
    taken({f"ada/{NOTEBOOK}": work})
    assert [path.name for path in sorted(chapter.folder("submitted", "ada").iterdir())] == [NOTEBOOK, "timestamp.txt"]


# ---------------------------------------------------------------- who is who


def moodle(*people, name=NOTEBOOK):
    """The names in a Moodle export of some people with their numbers there."""
    return [f"{person}_assignsubmission_file_/{name}" for person in people]


@pytest.fixture
def course(chapter):
    """The toy chapter, and another one of the same course with the same cells."""
    for folder, name in (("source", NOTEBOOK), ("release", NOTEBOOK)):
        shutil.copytree(chapter.root / folder / "ch99_toy", chapter.root / folder / "ch98_other")
        (chapter.root / folder / "ch98_other" / name).rename(chapter.root / folder / "ch98_other" / "ch98_other.ipynb")
    other, toy = find_chapters(chapter.root)
    return toy, other


def people(chapter) -> dict[str, bytes]:
    """What is in submitted/ for a chapter, by student."""
    return {student: (place / f"{chapter.name}.ipynb").read_bytes() for student, place in handed_in(chapter)}


def test_namesakes_stay_two_people_over_many_exports(taken, chapter):
    first, second = moodle("Jan K_1", "Jan K_2")
    taken({first: b"a"})
    assert people(chapter) == {"Jan K": b"a"}
    found = taken({second: b"b"})
    assert people(chapter) == {"Jan K": b"a", "Jan K-2": b"b"}
    assert "several people are called Jan K; this one is number 2" in found["Jan K-2"].flags[0]
    taken({first: b"a2", second: b"b2"})
    taken({second: b"b3"})
    assert people(chapter) == {"Jan K": b"a2", "Jan K-2": b"b3"}


def test_namesakes_in_one_export_stay_apart_when_one_comes_again(taken, chapter):
    first, second = moodle("Jan K_1", "Jan K_2")
    taken({first: b"a", second: b"b"})
    taken({first: b"a2"})
    assert people(chapter) == {"Jan K-1": b"a2", "Jan K-2": b"b"}


def test_numbers_that_stay_are_peoples_and_lead_through_all_chapters(taken, course):
    toy, other = course
    taken(dict.fromkeys(moodle("Ada_1", "Jan K_2"), b"x"), [toy])
    taken(dict.fromkeys(moodle("Ada_1", "Jan K_3", name="ch98_other.ipynb"), b"x"), [other])
    assert set(people(toy)) == {"Ada", "Jan K"} and set(people(other)) == {"Ada", "Jan K-3"}


def test_numbers_that_change_with_the_chapter_as_moodles_do_are_followed_by_unique_names(taken, course):
    toy, other = course
    taken(dict.fromkeys(moodle("Ada_1", "Bob_2", "Jan K_3", "Jan K_4"), b"x"), [toy])
    found = taken(dict.fromkeys(moodle("Ada_11", "Bob_12", "Jan K_13", name="ch98_other.ipynb"), b"x"), [other])
    assert set(people(other)) == {"Ada", "Bob", "Jan K-13"}, "which of the two Jan K it is, nobody can tell"
    assert "by the name alone" in found["Ada"].flags[0]
    taken(dict.fromkeys(moodle("Eli_5"), b"x"), [toy])
    taken(dict.fromkeys(moodle("Eli_15", name="ch98_other.ipynb"), b"x"), [other])
    assert "Eli" in people(other)


def test_a_name_alone_is_nobody(taken, course):
    toy, other = course
    taken(dict.fromkeys(moodle("Jan K_1"), b"x"), [toy])
    taken(dict.fromkeys(moodle("Jan K_2", name="ch98_other.ipynb"), b"x"), [other])
    assert set(people(toy)) == {"Jan K"} and set(people(other)) == {"Jan K-2"}


def test_a_students_own_folder_name_takes_no_platforms_student(taken, chapter):
    taken({f"Ada/{NOTEBOOK}": b"packed by hand"})
    (one,) = taken(dict.fromkeys(moodle("Ada_1"), b"moodle")).values()
    assert people(chapter) == {"Ada": b"packed by hand", "Ada-1": b"moodle"} and "Ada is another student" in one.flags[0]


def test_canvas_follows_its_number_whatever_the_name(taken, chapter):
    taken({f"team_blue_77_900_{NOTEBOOK}": b"1", f"lovelaceada_5_901_{NOTEBOOK}": b"1"})
    taken({"team_blue_77_902_ch99_toy-1.ipynb": b"2", "byronada_LATE_5_903_ch99_toy-1.ipynb": b"2"})
    assert people(chapter) == {"team_blue-77": b"2", "lovelaceada-5": b"2"}


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["Default group_assignsubmission_file/x.ipynb", "Team A_12_assignsubmission_file/x.ipynb"], {"Default group", "Team A"}),
        (["Participant_11_assignsubmission_file/x.ipynb"], {"Participant-11"}),
        (["anon_Ab3xY_9_x.ipynb", "LATE_anon_Cd4xY_10_x.ipynb"], {"anon-Ab3xY", "anon-Cd4xY"}),
        (["Anne-Marie O'Neill_7_assignsubmission_file_/x.ipynb"], {"Anne-Marie O'Neill"}),
        (["o_neill_jr_12_34_my_file_1_2.ipynb"], {"o_neill_jr-12"}),
    ],
)
def test_groups_and_blind_marking(taken, chapter, work, names, students):
    for _ in range(2):
        taken(dict.fromkeys(names, work))
        assert {student for student, _ in handed_in(chapter)} == students


def test_a_text_beside_files_is_told(taken, work):
    found = taken({"ada_5_text.html": b"<p>see my file", f"bob_6_7_{NOTEBOOK}": work, "eli_8_link.html": b""})
    assert found["ada-5"].flags == ["text.html: a text entered at the platform is not graded"] and found["bob-6"].flags == []
    assert found["eli-8"].flags == ["link.html: a text entered at the platform is not graded"]
    both = {moodle("Ada_1")[0]: work, "Ada_1_assignsubmission_onlinetext/onlinetext.html": b"see above"}
    assert taken(both)["Ada"].flags == ["onlinetext.html: a text entered at the platform is not graded"]


def listed(chapter, text, name="roster.csv", encoding="utf-8"):
    (chapter.root / name).write_text(text, encoding=encoding)
    return class_list(chapter.root, [] if name == "roster.csv" else [chapter.root / name], Book(chapter.root))


def test_a_class_list_names_students(chapter, work, tmp_path):
    roster = listed(chapter, "student,name,email\njan1,Jan K,jan@a.org\nada,Ada Lovelace,ada@a.org\n")
    worksheet = "Identifier,Full name,Email address,Grade\nParticipant 7,Jan K,other@a.org,\nParticipant 8,Jan K,jan@a.org,\n"
    (tmp_path / "worksheet.csv").write_text(worksheet, encoding="utf-8-sig")
    export = tmp_path / "export.zip"
    export.write_bytes(zipped(dict.fromkeys(moodle("Jan K_7", "Jan K_8", "ADA  Lovelace_9"), work)))
    both = class_list(chapter.root, [tmp_path / "worksheet.csv"], Book(chapter.root))
    assert {one.student for one in collect(export, [chapter], both)} == {"other@a.org", "jan1", "ada"}
    shutil.rmtree(chapter.root / "submitted")
    found = {one.student: one.flags for one in collect(export, [chapter], roster)}
    assert set(found) == {"Jan K-7", "Jan K-8", "ada"}, "the list has one of two who handed in"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("First name,Last name,ID number,Email address\nZoë,Ångström,77,z@a.org\nBob,B,78,b@a.org\n", "utf-8-sig"),
        ("First name\tSurname\tEmail address\nZoë\tÅngström\tz@a.org\n", "utf-16"),
        ("Full name;Username\nZoë Ångström;zoe\n", "cp1252"),
        ('Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"Ångström, Zoë",5,s5,zoe,A\n', "utf-8"),
    ],
    ids=["participants", "tabs", "semicolons", "canvas"],
)
def test_lists_of_platforms_are_class_lists(taken, chapter, work, tmp_path, text, encoding):
    roster = listed(chapter, text, encoding=encoding)
    export = tmp_path / "export.zip"
    export.write_bytes(zipped(dict.fromkeys(moodle("Zoë Ångström_1"), work)))
    assert [one.student for one in collect(export, [chapter], roster)] == ["Zoë Ångström"]
    export.write_bytes(zipped({f"ångströmzoë_5_6_{NOTEBOOK}": work}))
    (one,) = collect(export, [chapter], roster)
    assert one.student == "Zoë Ångström", "the same person on another platform"


def test_a_class_list_that_comes_later_renames_what_was_filed(chapter, work, tmp_path):
    export = tmp_path / "export.zip"
    export.write_bytes(zipped(dict.fromkeys(moodle("Ada_1", "Bob_2"), work)))
    collect(export, [chapter])
    collect(export, [chapter], listed(chapter, "student,name\nal17,Ada\n"))
    assert set(people(chapter)) == {"al17", "Bob"} and not record_of(chapter, "Ada").exists()


def test_the_gradebook_is_a_class_list(chapter, work, tmp_path):
    with Gradebook(Book(chapter.root).db_url) as gradebook:
        gradebook.add_student("al17", first_name="Ada", last_name="Lovelace", lms_user_id="123")
        gradebook.add_student("Bob")
    roster = class_list(chapter.root, [], Book(chapter.root))
    export = tmp_path / "export.zip"
    for name in (*moodle("Ada Lovelace_1"), f"lovelaceada_123_4_{NOTEBOOK}"):
        export.write_bytes(zipped({name: work}))
        assert [one.student for one in collect(export, [chapter], roster)] == ["al17"]
    assert len(roster.people) == 1, "an id alone, as grading leaves it, names nobody"


def test_a_class_list_that_is_none_is_told(chapter):
    for text in ("", "a,b\n1,2\n", "\0"):
        with pytest.raises(CourseError, match="class list"):
            listed(chapter, text)
    (chapter.root / "roster.csv").unlink()
    with pytest.raises(CourseError, match="cannot be read"):
        class_list(chapter.root, [chapter.root / "nowhere.csv"], Book(chapter.root))


def test_the_uploader_is_whose_account_it_was(taken, chapter, work):
    """Whatever names are in a zip, it is filed under who handed it in."""
    for inside in (*moodle("Bob_2"), f"bob_2_3_{NOTEBOOK}", f"bob/ch99_toy/{NOTEBOOK}", f"submitted/bob/ch99_toy/{NOTEBOOK}"):
        assert set(taken({"ada.zip": zipped({inside: work})})) == {"ada"}
        assert set(taken({"Eli_1_assignsubmission_file_/x.zip": zipped({inside: work})})) == {"Eli"}
        assert set(taken({"eli_4_5_x.zip": zipped({"bob.zip": zipped({inside: work})})})) == {"eli-4"}
    assert {student for student, _ in handed_in(chapter)} == {"ada", "Eli", "eli-4"}


def test_who_zips_the_course_folder_hands_in_what_they_began(taken, course, work):
    toy, other = course
    begun = work.replace(b"three = None", b"three = 3")
    files = {f"chapters/ch99_toy/{NOTEBOOK}": begun, "chapters/ch98_other/ch98_other.ipynb": work, "chapters/README.md": b""}
    environment = {f".venv/lib/{i}.py": b"" for i in range(unpacking.MOST_FILES + 1)}
    found = taken({name: zipped({**environment, **files}) for name in ("ada.zip", "bob.zip")}, [other, toy])
    assert people(toy) == {"ada": begun, "bob": begun} and people(other) == {} and found["ada"].flags == []
    assert set(taken({"ada.zip": zipped({**files, f"chapters/ch99_toy/{NOTEBOOK}": work})}, [other, toy])) == {"ada"}


# ---------------------------------------------------------------- what is wrong with an export


def test_a_zip_that_leads_out_of_its_folder_writes_nothing_there(taken, chapter, work, tmp_path):
    before = {path for path in tmp_path.rglob("*") if "submitted" not in path.parts}
    files = dict.fromkeys(["../../out.txt", "/etc/out.txt", "C:\\out.txt", "a/../../../out.txt", "..\\..\\out.txt"], b"out")
    one = taken({"ada.zip": zipped({NOTEBOOK: work, **files}), "eli.zip": zipped({NOTEBOOK: work})})
    assert sum("leads out of its folder" in flag for flag in one["ada"].flags) == 5
    assert submitted(chapter) == {f"ada/ch99_toy/{NOTEBOOK}", f"eli/ch99_toy/{NOTEBOOK}"}
    after = {path for path in tmp_path.rglob("*") if "submitted" not in path.parts}
    assert after - before == {tmp_path / "export.zip"} and not Path("/etc/out.txt").exists()


def test_a_link_in_a_zip_is_left_out(taken, work):
    link = zipfile.ZipInfo("passwd")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    one = taken({"ada.zip": zipped({NOTEBOOK: work, link: b"/etc/passwd"})})
    assert one["ada"].flags == ["passwd is a link and was left out"]


def test_a_bomb_is_stopped_and_the_others_are_taken(taken, chapter, work, monkeypatch):
    monkeypatch.setattr(unpacking, "LARGEST_FILE", 1_000_000)
    monkeypatch.setattr(unpacking, "LARGEST_WORK", 2_000_000)
    bomb = zipped({f"{i}.csv": bytes(900_000) for i in range(9)})
    one = taken({"ada.zip": bomb, "eli.zip": zipped({NOTEBOOK: work}), "big.zip": zipped({"x.csv": bytes(5_000_000)})})
    assert one["ada"].flags == ["ada.zip unpacks to more than 2 MB"] and one["big"].flags == ["x.csv unpacks to more than 1 MB"]
    assert one["eli"].flags == [] and f"eli/ch99_toy/{NOTEBOOK}" in submitted(chapter)


def test_a_size_that_a_zip_claims_is_not_believed(taken, work, monkeypatch):
    monkeypatch.setattr(unpacking, "LARGEST_FILE", 1_000_000)
    bomb = zipped({"x.csv": bytes(3_000_000)})
    bomb = bomb.replace((3_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    one = taken({"ada.zip": bomb, "eli.zip": zipped({NOTEBOOK: work})})
    assert len(one["ada"].flags) == 1 and one["eli"].flags == []


@pytest.mark.parametrize(
    ("data", "flag"),
    [
        (b"PK\x03\x04 no zip", "is not a zip that can be opened"),
        (b"", "is not a zip that can be opened"),
        (zipped({"a.zip": zipped({"b.zip": zipped({"c.zip": zipped({"x.ipynb": b""})})})}), "zips in zips in zips"),
        (zipped({f"{i}.txt": b"" for i in range(unpacking.MOST_FILES + 1)}), "holds more than 2000 files"),
    ],
    ids=["broken", "empty", "nested", "many"],
)
def test_a_zip_that_is_of_no_use_is_told_of(taken, chapter, work, data, flag):
    found = taken({"Ada_1_assignsubmission_file_/x.zip": data, f"Eli_2_assignsubmission_file_/{NOTEBOOK}": work})
    assert any(flag in told for told in found["Ada"].flags) and found["Eli"].flags == []
    assert dict(handed_in(chapter)).keys() == {"Ada", "Eli"}


def test_what_belongs_to_nobody_is_left(taken, work):
    others = {"__MACOSX/ada/._x.ipynb": b"", ".DS_Store": b"", "grades.csv": b"", "ada/.ipynb_checkpoints/x.ipynb": b""}
    assert set(taken({f"ada/{NOTEBOOK}": work, **others})) == {"ada"}


def test_an_export_of_nothing_is_an_error(taken, tmp_path, chapter):
    with pytest.raises(CourseError, match=r"export\.zip holds no submission"):
        taken({"grades.csv": b""})
    (tmp_path / "x.tar").write_bytes(b"x")
    with pytest.raises(CourseError, match="neither a folder nor a zip"):
        collect(tmp_path / "x.tar", [chapter])


# ---------------------------------------------------------------- when it was handed in


def test_the_platforms_time_counts_and_a_forged_one_does_not(taken, chapter, work):
    when = (2026, 3, 1, 12, 0, 0)
    forged = {f"ada/{NOTEBOOK}": work, "ada/timestamp.txt": b"2000-01-01 00:00:00 UTC"}
    one = taken(forged)["ada"]
    assert one.flags == ["timestamp.txt in the submission is not believed"]
    expected = datetime.fromtimestamp(datetime(*when).timestamp(), tz=UTC).replace(tzinfo=None)
    folder = chapter.folder("submitted", "ada")
    assert received(chapter, "ada", folder / NOTEBOOK) == (expected, one.flags)
    # nbgrader's own autograde reads this one
    assert (folder / "timestamp.txt").read_text() == f"{expected} UTC\n"
    (folder / "timestamp.txt").write_text("2000-01-01 00:00:00 UTC")
    assert received(chapter, "ada", folder / NOTEBOOK)[0] == expected


def test_times_in_a_students_zip_are_the_students(taken, chapter, work):
    outer = zipfile.ZipInfo("ada.zip", (2026, 3, 9, 12, 0, 0))
    taken({outer: zipped({NOTEBOOK: work}, when=(2000, 1, 1, 0, 0, 0))})
    assert received(chapter, "ada", None)[0].day in (8, 9, 10)


@pytest.mark.parametrize(
    ("stamp", "changed", "received_at", "flag"),
    [
        ("2026-01-02T03:04:05+02:00", "2026-01-01", "2026-01-02 01:04:05", None),
        ("2000-01-01 00:00:00 UTC", "2026-01-01", "2026-01-01 00:00:00", "which counts"),
        ("yesterday", "2026-01-01", "None", "timestamp.txt says no time"),
        (None, "2026-01-01", "None", None),
    ],
)
def test_without_a_record_timestamp_txt_must_fit_the_notebook(chapter, work, stamp, changed, received_at, flag):
    folder = chapter.folder("submitted", "ada")
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).write_bytes(work)
    os.utime(folder / NOTEBOOK, (datetime.fromisoformat(f"{changed}T00:00:00+00:00").timestamp(),) * 2)
    if stamp:
        (folder / "timestamp.txt").write_text(stamp)
    when, flags = received(chapter, "ada", folder / NOTEBOOK)
    assert str(when) == received_at and (flag in flags[0] if flag else not flags)


def test_a_broken_record_is_told(taken, chapter, work):
    taken({f"ada/{NOTEBOOK}": work})
    record_of(chapter, "ada").write_text("{}")
    assert received(chapter, "ada", None)[1] == ["the collector's record ch99_toy.collected.json cannot be read"]


# ---------------------------------------------------------------- one folder


@pytest.fixture
def folder(chapter) -> Path:
    folder = chapter.folder("submitted", "ada")
    folder.mkdir(parents=True)
    return folder


def test_the_right_name_wins_and_the_rest_is_told(chapter, folder, work):
    (folder / NOTEBOOK).write_bytes(work)
    (folder / "scratch.ipynb").write_text("{}")
    assert find_notebook(chapter, folder) == (folder / NOTEBOOK, ["scratch.ipynb was not asked for and is not graded"])


@pytest.mark.parametrize("name", ["Copy of toy.ipynb", "ch99_toy.ipynb.txt", "CH99_TOY.IPYNB", "deep/er/ch99_toy.ipynb"])
def test_the_only_notebook_is_taken(chapter, folder, work, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(work)
    assert find_notebook(chapter, folder) == (folder / name, [f"{Path(name).name} was taken for {NOTEBOOK}"])


def test_of_several_the_chapters_own_is_taken(chapter, folder, work):
    (folder / "a.ipynb").write_bytes(work)
    (folder / "b.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": "1", "metadata": {}}]}))
    assert find_notebook(chapter, folder) == (folder / "a.ipynb", [f"of 2 notebooks a.ipynb was taken for {NOTEBOOK}"])


def test_a_place_that_is_no_folder_is_told(chapter, folder, tmp_path):
    shutil.rmtree(folder)
    folder.write_text("")
    assert find_notebook(chapter, folder) == (None, ["what was handed in is not a folder"])
    folder.unlink()
    folder.symlink_to(tmp_path)
    assert find_notebook(chapter, folder) == (None, ["what was handed in is a link, not a folder"])
    folder.unlink()
    folder.symlink_to("nowhere")
    assert dict(handed_in(chapter)) == {"ada": folder}


def test_the_files_beside_a_notebook_are_staged_without_what_is_none(chapter, folder, work, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "LARGEST_WORK", 1000)
    (folder / NOTEBOOK).write_bytes(work)
    (folder / "data").mkdir()
    (folder / "data" / "small.csv").write_text("1")
    (folder / "data" / "z_large.csv").write_bytes(bytes(2000))
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / "given.csv").write_text("forged")
    (chapter.release.parent / "given.csv").write_text("right")
    flags = stage(chapter, folder, folder / NOTEBOOK, tmp_path / "staged")
    assert sorted(flags) == [
        "data/z_large.csv is too much and was left out",
        "link is a link and was left out",
        "pipe is a pipe and was left out",
    ]
    staged = {str(path.relative_to(tmp_path / "staged")) for path in (tmp_path / "staged").rglob("*") if path.is_file()}
    assert staged == {"data/small.csv", "given.csv"} and (tmp_path / "staged" / "given.csv").read_text() == "right"
