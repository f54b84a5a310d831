"""The rooms of the autograder, read off its imports: what may know of what."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "autograder"
GROUND = {"errors", "limits"}
FACES = {"answers", "preprocessors", "dropin", "outputs", "feedback"}
"""Modules beside the rooms: the names that `nbgrader_config.py` and the chapters' `answers.py` use."""
MAY = {
    "limits": {"errors"},
    "wire": GROUND,
    "walls": GROUND,
    "confined": GROUND | {"wire", "walls"},
    "authoring": GROUND | {"wire"},
    "trusted": GROUND | {"wire", "walls", "authoring"},
    "engine": GROUND | {"wire", "walls", "authoring"},
    "platforms": GROUND | {"authoring"},
    "grading": GROUND | {"authoring", "engine", "platforms"},
    "pages": GROUND | {"authoring", "grading", "platforms"},
    "doors": GROUND | {"wire", "walls", "confined", "trusted", "engine", "authoring", "grading", "platforms", "pages"},
}
"""What each room may import; nothing imports `doors`, but for the command's own `__main__` and the faces."""
ONLY_DOORS = {"typer", "distributed"}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path):
    """(top package, the rest of the name) of each import in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"autograder.{alias.name}" for alias in node.names] if node.module == "autograder" else [node.module]
        else:
            continue
        yield from (name.partition(".")[::2] for name in names)


FILES = sorted(ROOT.rglob("*.py"))
ARROWS: dict[str, set[str]] = {}
for file in FILES:
    inside = {rest.partition(".")[0] for top, rest in imports(file) if top == "autograder" and rest}
    ARROWS.setdefault(room_of(file), set()).update(inside - {room_of(file)})


def test_every_module_is_in_a_room():
    assert {room_of(path) for path in FILES} == MAY.keys() | FACES | {"errors", "__init__", "__main__"}


@pytest.mark.parametrize("room", MAY)
def test_a_room_imports_what_it_may(room):
    assert ARROWS[room] <= MAY[room]


def test_the_two_sides_do_not_know_each_other():
    assert "trusted" not in ARROWS["confined"] and "confined" not in ARROWS["trusted"]
    assert not ARROWS["engine"] & {"trusted", "confined"}, "the engine starts both by name"
    beside = {top for path in FILES if room_of(path) == "confined" for top, rest in imports(path) if rest and top == "nbgrader"}
    assert not beside


@pytest.mark.parametrize("face", sorted(FACES))
def test_a_face_only_passes_names_on(face):
    tree = ast.parse((ROOT / f"{face}.py").read_text())
    kinds = [type(node) for node in tree.body]
    assert kinds[1:-1] == [ast.ImportFrom] * (len(kinds) - 2) and kinds[-1] is ast.Assign
    assert face not in set().union(*ARROWS.values())


def test_there_is_no_circle():
    waiting = {room: set(found) for room, found in ARROWS.items()}
    while free := [room for room, found in waiting.items() if not found & waiting.keys()]:
        for room in free:
            del waiting[room]
    assert waiting == {}


def test_only_the_doors_know_the_command_line_and_clusters():
    assert {room_of(path) for path in FILES for top, _ in imports(path) if top in ONLY_DOORS} <= {"doors"}
