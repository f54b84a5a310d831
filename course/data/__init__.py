"""Texts that the chapters read and records that experiments wrote. README.md tells where each is from."""

import json
import lzma
from pathlib import Path

HERE = Path(__file__).resolve().parent


def read(name: str, characters: int | None = None) -> str:
    """The text `name`: "austen" (six novels) or "shakespeare" (38 plays), or its first `characters`.

    Raises:
        FileNotFoundError: if there is no such text; the message names those there are.
    """
    path = HERE / f"{name}.txt.xz"
    if not path.exists():
        there = ", ".join(sorted(p.name.removesuffix(".txt.xz") for p in HERE.glob("*.txt.xz")))
        raise FileNotFoundError(f"no text {name!r} in course/data; there are: {there}")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read(-1 if characters is None else characters)


def record(stem: str) -> dict:
    """What `experiments/<stem>.py` measured: its settings, machine, versions and results.

    Raises:
        FileNotFoundError: if the experiment has no record; the message says how to make one.
    """
    path = HERE / "records" / f"{stem}.json"
    if not path.exists():
        raise FileNotFoundError(f"no record of {stem}: run python experiments/{stem}.py")
    return json.loads(path.read_text())
