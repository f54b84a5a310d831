"""What a teacher packed: nbgrader's own folders, or a folder, a zip or a notebook a student."""

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from autograder.platforms.who import Owned, Who

NOTEBOOK = re.compile(r"(?P<name>.+)\.ipynb(?:\.txt|\.json)?", re.IGNORECASE)  # browsers add an ending


def stem_of(name: str) -> str:
    """A notebook's name without its ending."""
    match = NOTEBOOK.fullmatch(name)
    return match["name"] if match else name


def place_of(parts: list[str], stems: Collection[str]) -> Owned | None:
    """Whose an entry is, and its place in the work; None if it is nobody's.

    Args:
        parts: the names along its path.
        stems: the chapters'.
    """
    named = [i for i, part in enumerate(parts[:-1]) if part in stems]
    if named and named[0] > 0:  # …/<student>/<chapter>/…, nbgrader's own
        return Owned(Who("", parts[named[0] - 1]), PurePosixPath(*parts[named[0] :]))
    if named:  # <chapter>/<student>/…
        parts, prefix = parts[1:], parts[:1]
    else:
        prefix = []
    student = parts[0] if len(parts) > 1 else stem_of(parts[0]).removesuffix(".zip")
    if len(parts) == 1 and not (NOTEBOOK.fullmatch(parts[0]) or parts[0].lower().endswith(".zip")):
        return None  # a list of grades, a note: nobody's
    for stem in stems:
        student = re.sub(r"\.zip$", "", student, flags=re.IGNORECASE).removesuffix(f"_{stem}").removesuffix(f"-{stem}")
    rest = parts[1:] if len(parts) > 1 else [] if parts[0].lower().endswith(".zip") else parts
    return Owned(Who("", student or parts[0]), PurePosixPath(*prefix, *rest))
