"""The doctor command, on this machine and on one that refuses."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.doors import cli, doctor
from autograder.doors.doctor import Finding, possible
from autograder.engine.student import Template
from autograder.limits import Limits
from autograder.walls import cgroup

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found():
    return doctor.examine()


def test_the_whole_works_where_its_parts_do(found):
    *parts, whole = found
    assert whole.part == "all together"
    assert whole.works == all(part.works for part in parts if part.needed), [f.told for f in found if not f.works]


def test_the_command_shows_what_was_found(monkeypatch, found):
    monkeypatch.setattr(doctor, "examine", lambda: found)
    result = CliRunner().invoke(cli.app, ["doctor"])
    assert result.exit_code == (0 if possible(found) else 5)
    for finding in found:
        assert finding.part.split(",")[0] in result.output


def test_a_part_that_is_missing_is_exit_code_5(monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("user namespace", False, "Operation not permitted")])
    result = CliRunner().invoke(cli.app, ["doctor"])
    assert result.exit_code == 5
    assert "Operation not permitted" in result.output
    assert "--sandbox=none" in result.output


def test_a_part_that_one_can_do_without(monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("cgroup", False, "none here", needed=False)])
    assert CliRunner().invoke(cli.app, ["doctor"]).exit_code == 0


def test_a_machine_that_refuses():
    """With the filter of system calls that students get, as containers have one."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from autograder.doors import doctor
from autograder.walls import syscalls
syscalls.no_new_privileges()
syscalls.refuse_system_calls()
doctor._whole = lambda: doctor.Finding("all together", False, "")
for finding in doctor.examine():
    print(finding.works, finding.part, finding.told, sep="|")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    works = {part: flag == "True" for flag, part, _ in (line.split("|", 2) for line in done.stdout.splitlines())}
    assert not works["user namespace"]
    assert not works["read-only environment"]
    assert works["limit on address space"]


def test_another_system(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not possible(doctor.examine())


# ---------------------------------------------------------------- control groups


def test_a_group_tells_whether_memory_ran_out(tmp_path):
    """In a folder with the files that the kernel would make."""
    groups = cgroup.Groups(tmp_path)
    folder = tmp_path / "student-1"
    folder.mkdir()
    (folder / "cgroup.procs").touch()
    groups.join("student-1")
    assert (folder / "cgroup.procs").read_text() == "0"
    for count in (1, 0):
        (folder / "memory.events").write_text(f"low 0\noom {count}\noom_kill {count}\n")
        assert groups.remove("student-1") == bool(count)


def test_no_group_where_the_kernel_has_none(tmp_path):
    with pytest.raises(OSError):  # a new folder there has no memory.max
        cgroup.Groups(tmp_path).make("student-1", Limits())


@pytest.mark.skipif(cgroup.place() is None, reason="no control group may be made here")
def test_a_template_has_a_group_while_it_lives():
    with Template("full", serve="time:sleep") as template:
        template.wait()
        group = template.group
        assert group.is_dir()
    assert not group.exists()
