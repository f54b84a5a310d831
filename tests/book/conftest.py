"""The small course's book and the real one, each built once; a browser, and the real book on a server and on the disk."""

import functools
import os
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from filelock import FileLock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # the book is a folder of the repository, not an installed package

from small_course import TOY, make_course  # noqa: E402

import course.widgets  # noqa: E402
from book import epub, pdf  # noqa: E402
from book.articles import read  # noqa: E402
from book.build import build  # noqa: E402

FACTS = {"title": "The Mathematics of Transformers", "author": "the course's authors", "version": course.__version__}


@pytest.fixture(scope="session")
def toy_widgets(tmp_path_factory):
    """A copy of the widgets' folder, with a toy in it; whole, since it stands in for the real one to the end of the session."""
    folder = tmp_path_factory.mktemp("widgets")
    for path in (*course.widgets.HERE.glob("*.js"), *course.widgets.HERE.glob("*.css")):
        shutil.copy(path, folder)
    (folder / "toy.js").write_text(TOY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course.widgets, "HERE", folder)
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


def once(tmp_path_factory, name: str, make) -> Path:
    """A file or folder that make(path) writes, once for all processes of xdist. Tests only read it."""
    folder = tmp_path_factory.getbasetemp()
    path = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / name
    made = Path(f"{path}.made")
    with FileLock(f"{path}.lock"):
        if not made.exists():
            make(path)
            made.touch()
    return path


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    """The real book without solutions, as a folder of HTML."""
    return once(tmp_path_factory, "real", lambda path: build(target=path)) / "html"


@pytest.fixture(scope="session")
def real_articles(book):
    """The articles of the real book."""
    return read(book.parent / "src", book)


@pytest.fixture(scope="session")
def real_epub(request, tmp_path_factory):
    """The EPUB of the real book."""
    return once(tmp_path_factory, "book.epub", lambda path: epub.write(request.getfixturevalue("real_articles"), path, **FACTS))


@pytest.fixture(scope="session")
def real_pdf(book, real_articles, tmp_path_factory):
    """The PDF of the real book."""
    page = pdf.joined(real_articles, book, **FACTS)
    return pdf.write(page, tmp_path_factory.mktemp("pdf") / "book.pdf")


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium under playwright."""
    from playwright.sync_api import sync_playwright  # starts an event loop that stays in this process

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=pdf.browser())
        yield opened
        opened.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def server(book):
    """The address of the real book on a server of this machine, with a slash at its end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=book)) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


@pytest.fixture(scope="session")
def disk(book):
    """The address of the real book on the disk."""
    return f"{book.as_uri()}/"


@pytest.fixture(scope="session", params=["server", "disk"])
def address(request):
    """Where the real book is read from: a server, then the disk."""
    return request.getfixturevalue(request.param)
