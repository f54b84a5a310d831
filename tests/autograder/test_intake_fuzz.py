"""Whatever one student hands in, the others' work is taken as it was, and what was wrong is a flag on that one."""

import io
import os
import shutil
import struct
import tarfile
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.authoring.chapters import find_chapters
from autograder.authoring.release import Release
from autograder.errors import CourseError
from autograder.grading import merge, submitted, unpacking
from autograder.grading.intake import collect
from autograder.grading.submission import Found, Taken
from autograder.grading.submitted import handed_in

NOTEBOOK = "ch99_toy.ipynb"
CODECS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
PLATFORM = {
    "moodle": "{}_{}_assignsubmission_file_/{}",
    "canvas": "{0}_{1}_9{1}_{2}",
    "flat": "{0}_{1}_assignsubmission_file_{2}",
    "folders": "{}{}/{}",
}


@pytest.fixture(scope="module")
def chapter(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("intake") / "course"
    shutil.copytree(toy.root, folder, ignore=shutil.ignore_patterns("gradebook.db", "submitted", "autograded"))
    return find_chapters(folder)[0]


def zipped(files: dict, codec=zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", codec) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def taken(chapter, uploads, platform="moodle"):
    """Collect an export in which eve handed in some files and two others their notebooks; what was flagged of eve."""
    work, name = chapter.release.read_bytes(), PLATFORM[platform]
    shutil.rmtree(chapter.root / "submitted", ignore_errors=True)
    export = chapter.root.parent / "export.zip"
    files = {name.format("ada", 1, NOTEBOOK): work, **{name.format("eve", 2, n): data for n, data in uploads.items()}}
    export.write_bytes(zipped({**files, name.format("bob", 3, NOTEBOOK): work}))
    before = {path for path in chapter.root.parent.rglob("*") if "submitted" not in path.parts}
    found = {one.student.partition("-")[0].rstrip("123"): one for one in collect(export, [chapter])}
    assert set(found) == {"ada", "eve", "bob"} and found["ada"].flags == found["bob"].flags == []
    assert {path for path in chapter.root.parent.rglob("*") if "submitted" not in path.parts} == before
    flags = found["eve"].flags
    assert len(flags) <= merge.FLAGS + 1
    assert all(type(flag) is str and flag.isprintable() and len(flag) < 300 for flag in flags), flags
    for student, folder in handed_in(chapter):
        there = Found.of(chapter, student, folder)
        files = chapter.root.parent / "files"
        files.mkdir()
        try:
            read = Taken.of(there, files)
        finally:
            shutil.rmtree(files)
        if student.startswith("eve"):
            assert read.notebook is not None or read.flags or flags
            merge.merge(chapter, read.notebook, released(chapter))
        else:
            assert there.notebook.read_bytes() == work and read.flags == []
    return flags


RELEASES = {}


def released(chapter):
    return RELEASES.setdefault(chapter.stem, Release.of(chapter))


QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@QUICK
@given(
    codec=st.sampled_from(CODECS),
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 40)), min_size=1, max_size=4),
    tail=st.integers(0, 400),
    platform=st.sampled_from(sorted(PLATFORM)),
)
def test_damaged_zips(chapter, codec, changes, tail, platform):
    """Half of the changes are where a zip has its lists, in its last bytes."""
    data = zipped(
        {NOTEBOOK: chapter.release.read_bytes(), "data/a.csv": b"1,2\n" * 99, "in.zip": zipped({"x.ipynb": b"{}"})}, codec
    )
    for place, new, length in changes:
        at = place % len(data) if place % 2 else max(0, len(data) - tail + place % (tail + 1))
        data = (data[:at] + new + data[at + length :]) or b"P"
    taken(chapter, {"w.zip": data}, platform)


NAMES = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "C:", "x", NOTEBOOK, "é", "e\u0301", "a" * 300, "\0", "\n", "con", "nul.txt", " ", "ch99_toy"]
    )
    | st.text(max_size=6),
    min_size=1,
    max_size=5,
).map("/".join)


@QUICK
@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True), data=st.binary(max_size=30), nested=st.booleans())
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_odd_names_in_a_zip(chapter, names, data, nested):
    inside = zipped({name: data for name in names if name.split("\0")[0] and name.encode("utf-8", "ignore").decode() == name})
    taken(chapter, {"w.zip": zipped({"in.zip": inside}) if nested else inside})


@QUICK
@given(name=st.text(min_size=1, max_size=30), data=st.binary(max_size=50), platform=st.sampled_from(["moodle", "flat", "canvas"]))
def test_odd_uploads(chapter, name, data, platform):
    taken(chapter, {(name.encode("utf-8", "ignore").decode().replace("/", "") or "x").lstrip(".") or "x": data}, platform)


def tar(kind):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:
        archive.addfile(tarfile.TarInfo("x"))
    return out.getvalue()


def encrypted():
    data = bytearray(zipped({NOTEBOOK: b"{}"}))
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + at] |= 1
    return bytes(data)


def method(number):
    data = bytearray(zipped({NOTEBOOK: b"{}"}, zipfile.ZIP_STORED))
    for mark, at in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        struct.pack_into("<H", data, data.index(mark) + at, number)
    return bytes(data)


def zip64():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("a.csv", "w", force_zip64=True) as file:
        file.write(b"1")
    return out.getvalue()


def many_names(count):
    """A zip that lists one file many times, as few bytes when it is packed."""
    data = zipped({"a": b""})
    at, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    return (
        data[:at]
        + data[at:end] * count
        + data[end:-14]
        + struct.pack("<HHIIH", count & 0xFFFF, count & 0xFFFF, (end - at) * count, at, 0)
    )


def deep(levels):
    return zipped({"/".join(["d"] * levels) + "/" + NOTEBOOK: b"{}"})


HEIC = b"\0\0\0\x24ftypheic" + bytes(100)


@pytest.mark.parametrize(
    ("name", "data", "flag"),
    [
        ("w.zip", b"", "is not a zip that can be opened"),
        ("w.zip", b"Rar!\x1a\x07\0", "is not a zip that can be opened"),
        ("w.zip", lambda: zipped({}), "w.zip holds no work"),
        ("w.zip", lambda: zipped({"x/": b"", "__MACOSX/x": b"1"}), "w.zip holds no work"),
        ("w.zip", lambda: encrypted(), "cannot be unpacked"),
        ("w.zip", lambda: method(9), "cannot be unpacked"),
        ("w.zip", lambda: method(99), "cannot be unpacked"),
        ("w.zip", lambda: many_names(300_000), "lists too many files"),
        ("w.zip", lambda: deep(30), None),
        ("w.zip", lambda: deep(3000), "is in too many folders and was left out"),
        ("w.zip", lambda: zipped({f"{NOTEBOOK}/a.txt": b"1"}), None),
        ("w.zip", lambda: zipped({"a": b"1", "a/b": b"2", "A": b"3"}), "b was left out"),
        ("w.zip", lambda: zipped({"e\u0301.ipynb": b"{}", "é.ipynb": b"{}"}), "an older version, é.ipynb, was left out"),
        ("w.zip", lambda: zip64(), None),
        ("w.rar", b"Rar!", "w.rar is an archive that is not opened; only zips are"),
        ("w.7z", b"7z", "w.7z is an archive that is not opened; only zips are"),
        ("w.tar.gz", lambda: tar("gz"), "w.tar.gz is an archive that is not opened; only zips are"),
        ("w.tar", lambda: tar(""), "w.tar is an archive that is not opened; only zips are"),
        ("photo.heic", HEIC, None),
        (NOTEBOOK, HEIC, None),
        (NOTEBOOK, b"", None),
        (NOTEBOOK, lambda: zipped({NOTEBOOK: b"{}"}), None),
        ("ü" * 200 + ".txt", b"1", "was left out (File name too long)"),
    ],
    ids=range(23),
)
@pytest.mark.parametrize("platform", ["moodle", "canvas"])
def test_each_kind_of_bad_upload_is_told(chapter, name, data, flag, platform):
    flags = taken(chapter, {name: data() if callable(data) else data}, platform)
    assert any(flag in told for told in flags) if flag else flags == []


@QUICK
@given(
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=4), st.integers(0, 40)), min_size=1, max_size=3),
    tail=st.integers(0, 600),
)
def test_a_damaged_export_is_an_error_or_taken_as_far_as_it_goes(chapter, changes, tail):
    work = chapter.release.read_bytes()
    data = zipped({f"s{i}_{i}_assignsubmission_file_/{NOTEBOOK}": work for i in range(4)})
    for place, new, length in changes:
        at = place % len(data) if place % 2 else max(0, len(data) - tail + place % (tail + 1))
        data = data[:at] + new + data[at + length :]
    shutil.rmtree(chapter.root / "submitted", ignore_errors=True)
    export = chapter.root.parent / "export.zip"
    export.write_bytes(data)
    try:
        collect(export, [chapter])
    except CourseError as error:
        assert "export.zip" in str(error)


def test_what_a_folder_may_hold_stops_nobody(chapter, tmp_path):
    work = chapter.release.read_bytes()
    shutil.rmtree(chapter.root / "submitted", ignore_errors=True)
    for name in ("ada", "bob", "eve"):
        (tmp_path / name).mkdir()
        (tmp_path / name / NOTEBOOK).write_bytes(work)
    os.mkfifo(tmp_path / "eve" / "pipe")
    (tmp_path / "eve" / "loop").symlink_to("loop")
    (tmp_path / "eve" / "dir").symlink_to("/etc")
    with open(os.path.join(os.fsencode(tmp_path / "eve"), b"\xff\xfe.csv"), "wb") as file:
        file.write(b"1")
    (tmp_path / "eve" / "w.zip").write_bytes(b"PK\5\6")
    (tmp_path / "eve" / "x.ipynb").mkdir()
    found = {one.student: one for one in collect(tmp_path, [chapter])}
    assert found["ada"].flags == found["bob"].flags == [] and len(found["eve"].flags) == 4


def test_one_who_cannot_be_written_is_told_and_the_others_are_taken(chapter, tmp_path):
    shutil.rmtree(chapter.root / "submitted", ignore_errors=True)
    for name in ("ada", "eve"):
        (tmp_path / name).mkdir()
        (tmp_path / name / NOTEBOOK).write_bytes(chapter.release.read_bytes())
    (chapter.root / "submitted").mkdir()
    (chapter.root / "submitted" / "eve").write_text("a file where her folder should be")
    found = {one.student: one for one in collect(tmp_path, [chapter])}
    assert not found["ada"].failed and found["eve"].failed and "could not be put into submitted/" in found["eve"].flags[0]


def test_a_full_disk_is_nobodys_flag(chapter, tmp_path, monkeypatch):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / NOTEBOOK).write_bytes(chapter.release.read_bytes())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space"):
        collect(tmp_path, [chapter])


# ---------------------------------------------------------------- sizes


@pytest.fixture
def small(monkeypatch):
    """Limits of a few hundred kB, so that a try costs little."""
    monkeypatch.setattr(unpacking, "LARGEST_FILE", 300_000)
    monkeypatch.setattr(unpacking, "LARGEST_WORK", 600_000)
    monkeypatch.setattr(submitted, "LARGEST_WORK", 600_000)
    monkeypatch.setattr(unpacking, "LARGEST_READ", 5_000_000)
    monkeypatch.setattr(merge, "LARGEST", 300_000)
    monkeypatch.setattr(merge, "LARGEST_FILE", 4_000_000)


def with_outputs(chapter, size):
    outputs = b'"outputs": [{"output_type": "stream", "name": "stdout", "text": "' + b"x" * size + b'"}]'
    return chapter.release.read_bytes().replace(b'"outputs": []', outputs, 1)


@pytest.mark.parametrize("pack", [lambda name, data: {name: data}, lambda name, data: {"w.zip": zipped({name: data})}])
def test_a_notebook_of_outputs_is_taken_without_them(chapter, small, pack):
    assert taken(chapter, pack(NOTEBOOK, with_outputs(chapter, 3_000_000))) == []


def test_a_notebook_that_is_larger_is_told(chapter, small):
    for size, packed in ((4_500_000, 1), (4_500_000, 0)):
        data = with_outputs(chapter, size)
        (flag,) = taken(chapter, {"w.zip": zipped({NOTEBOOK: data})} if packed else {NOTEBOOK: data})
        assert "is larger than" in flag or "unpacks to more" in flag


def test_a_notebook_of_text_is_told(chapter, small):
    data = chapter.release.read_bytes().replace(b'"source": [', b'"source": ["' + b"x" * 900_000 + b'", ', 1)
    assert taken(chapter, {"w.zip": zipped({NOTEBOOK: data})}) == [f"{NOTEBOOK} is larger than 0 MB without its outputs"]


def test_zips_in_zips_share_one_room(chapter, small):
    bomb = zipped({f"{i}.csv": bytes(250_000) for i in range(9)})
    many = {f"{i}.zip": zipped({f"{j}.zip": bomb for j in range(9)}) for i in range(9)}
    flags = taken(chapter, {"w.zip": zipped(many)})
    assert all("unpacks to more than" in flag for flag in flags)
    size = sum(path.stat().st_size for path in (chapter.root / "submitted").rglob("*"))
    assert size < 2_000_000 and len(flags) < 200
    notebooks = zipped({f"{i}.ipynb": with_outputs(chapter, 1_000_000) for i in range(30)})
    assert any("unpacks to more" in flag or "larger than" in flag for flag in taken(chapter, {"w.zip": notebooks}))
