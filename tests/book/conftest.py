"""The small course's book, built once."""

import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # the book is a folder of the repository, not an installed package

from small_course import TOY, make_course  # noqa: E402

import course.widgets  # noqa: E402
from book import pages  # noqa: E402
from book.build import build  # noqa: E402


@pytest.fixture(scope="session")
def toy_widgets(tmp_path_factory):
    """A copy of the widgets' folder, with a toy in it; whole, since it stands in for the real one to the end of the session."""
    folder = tmp_path_factory.mktemp("widgets")
    for path in (*course.widgets.HERE.glob("*.js"), *course.widgets.HERE.glob("*.css")):
        shutil.copy(path, folder)
    (folder / "toy.js").write_text(TOY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course.widgets, "HERE", folder)
        patch.setattr(pages, "WIDGETS", folder)
        yield folder


@pytest.fixture
def make(tmp_path, toy_widgets):
    """make(chapters=…, formulas=…): a course in a temporary folder."""
    return lambda **given: make_course(tmp_path / "course", **given)


@pytest.fixture(scope="session")
def site(tmp_path_factory, toy_widgets):
    """The small course's book without solutions, as a folder of HTML."""
    return build(make_course(tmp_path_factory.mktemp("book") / "course"))


@pytest.fixture(scope="session")
def solved(tmp_path_factory, toy_widgets):
    """The small course's book with solutions."""
    return build(make_course(tmp_path_factory.mktemp("solved") / "course"), solutions=True)
