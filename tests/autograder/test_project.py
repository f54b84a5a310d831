"""One set of dependencies behind three doors: pyproject.toml, environment.yml and requirements.lock."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCK = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line and not line.startswith("#")]
PINS = {canonicalize_name(name): version.partition(" ")[0] for name, _, version in (line.partition("==") for line in LOCK)}
CONDA = {"torch": "pytorch"}


def test_conda_and_pip_ask_for_the_same():
    wanted = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    plain = {canonicalize_name(r.name): r.specifier for text in wanted if isinstance(text, str) for r in [Requirement(text)]}
    python, _ = plain.pop("python"), plain.pop("pip")
    pip = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTRAS["student"]]]
    assert plain == {CONDA.get(r.name, canonicalize_name(r.name)): r.specifier for r in pip}
    assert str(python) == str(Requirement(f"python{PROJECT['requires-python']}").specifier)
    assert {"pip": ["."]} in wanted  # the course package itself


@pytest.mark.parametrize("text", [*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)])
def test_the_lock_pins_every_dependency_within_its_bounds(text):
    wanted = Requirement(text)
    assert Version(PINS[canonicalize_name(wanted.name)]) in wanted.specifier


def test_every_line_of_the_lock_is_a_plain_pin():
    """No path, no address, no local version: it must install anywhere, and Triton is for Linux only."""
    assert [
        line for line in LOCK if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+( ; sys_platform == \"linux\")?", line)
    ] == []


def test_what_the_lock_pins_installs_on_the_first_release_of_every_python_that_is_promised():
    """Debian 12 has Python 3.11.2, for one."""
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    refused = []
    for found in metadata.distributions():
        asked = SpecifierSet(found.metadata.get("Requires-Python") or "")
        for minor in range(int(low), int(high)):
            if canonicalize_name(found.name) in PINS and f"3.{minor}.0" not in asked:
                refused.append(f"{found.name} {found.version} wants Python {asked}, not 3.{minor}.0")
    assert refused == []


def test_nothing_is_pinned_twice():
    assert len(PINS) == len(LOCK)
