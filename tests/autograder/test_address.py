"""What a kept result depends on: what decides points, and nothing else."""

from autograder.grading.address import COURSE, HERE, _reference, decisive


def test_what_decides_points_is_in_the_address():
    rooms = {path.relative_to(HERE).parts[0] for path in decisive()}
    assert {"wire", "walls", "confined", "trusted", "engine", "errors.py", "limits.py"} <= rooms
    names = {path.relative_to(HERE).as_posix() for path in decisive()}
    for room in ("wire", "walls", "confined", "trusted", "engine"):
        there = {path.relative_to(HERE).as_posix() for path in (HERE / room).glob("*.py")}
        assert there <= names | {f"{room}/__init__.py"}
    assert {"grading/merge.py", "grading/submission.py", "authoring/scoring.py", "authoring/answers.py"} <= names
    course = {path.relative_to(COURSE).as_posix() for path in _reference()}
    assert {"attention.py", "checks/__init__.py", "expressions.py", "kernels/attention.py"} <= course


def test_what_only_shows_or_starts_is_not():
    rooms = {path.relative_to(HERE).parts[0] for path in decisive()}
    assert not rooms & {"doors", "pages"}
    names = {path.relative_to(HERE).as_posix() for path in decisive()}
    assert not names & {
        "grading/gradebook.py",
        "grading/roster.py",
        "platforms/moodle.py",
        "authoring/check.py",
        "authoring/bundle.py",
    }
    assert not any("widgets" in path.parts or path.name == "plots.py" for path in _reference())
