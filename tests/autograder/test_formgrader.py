"""Formgrader in a real browser: grade a submission by button, read its scores, give a manual grade; nothing a student displays runs."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from playwright.sync_api import expect, sync_playwright

from autograder.authoring.chapters import grade_id
from autograder.doors import ask
from book.tools import find

CHROMIUM = find("chromium")
PATIENCE = 60  # seconds for each step: the machine may be busy
PROBES = """
from IPython.display import HTML, Javascript, SVG, Markdown, display

display(HTML("<script>window.probe = 'html'</script><img src=x onerror=\\"window.probe = 'handler'\\">"))
display(Javascript("window.probe = 'javascript'"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg'><script>window.probe = 'svg'</script></svg>"))
display(Markdown("<script>window.probe = 'markdown'</script>"))
display({"image/png": "x' onerror='window.probe = 1"}, raw=True, metadata={"image/png": {"width": "1 onerror=window.probe=1"}})
"""
WHY = "Twice. <script>window.probe = 'answer'</script><img src=x onerror=\"window.probe = 'answer'\"> **Bold.**"


@pytest.fixture
def course(toy, tmp_path):
    """A course in which one student has handed in."""
    root = tmp_path / "course"
    shutil.copytree(toy.root, root)
    notebook = nbformat.read(toy.release, as_version=4)
    answers = {"ch99-double-answer": "def double(x):\n    return x * x", "ch99-three-answer": "three = 3", "ch99-why": WHY}
    for cell in notebook.cells:
        cell.source = answers.get(grade_id(cell), cell.source)
    notebook.cells.insert(2, nbformat.v4.new_code_cell(PROBES))
    folder = root / "submitted" / "ada" / "ch99_toy"
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / "ch99_toy.ipynb")
    return root


@pytest.fixture
def server(course):
    """The address of a Jupyter server with formgrader on the course."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", place)  # a socket's path must be short
        log = (course.parent / "server.log").open("w+")
        settings = {
            "ServerApp": {"root_dir": str(course), "jpserver_extensions": {"nbgrader.server_extensions.formgrader": True}},
            "IdentityProvider": {"token": ""},
        }
        (course.parent / "jupyter_server_config.json").write_text(json.dumps(settings))
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "server", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"],
            cwd=course,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "JUPYTER_CONFIG_DIR": str(course.parent),
            },
            stdout=log,
            stderr=log,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    urllib.request.urlopen(f"{address}/api", timeout=5)
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < end, Path(log.name).read_text()
                    time.sleep(0.1)
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE)
            log.close()
            ask.stop()


@pytest.fixture
def page():
    assert CHROMIUM is not None, "this test needs Chromium: `make tools` installs it where there is apt-get"
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.route(lambda url: not url.startswith(("http://127.0.0.1:", "file:")), lambda route: route.abort())
        yield page
        browser.close()


def test_a_submission_is_graded_by_button_and_a_written_answer_by_hand(course, server, page):
    expect.set_options(timeout=1000 * PATIENCE)
    page.goto(f"{server}/formgrader/manage_submissions/ch99_toy")
    row = page.locator("tr", has=page.locator("td.student-id", has_text="ada"))
    expect(row.locator(".status")).to_have_text("needs autograding")
    row.locator(".autograde a").click()
    page.locator("#success-modal").wait_for()
    page.locator("#success-modal button.btn-primary").click()
    expect(row.locator(".status")).to_have_text("needs manual grading")
    expect(row.locator(".score")).to_have_text("2 / 7")

    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        submission = gradebook.find_submission_notebook("ch99_toy", "ch99_toy", "ada").id
    page.goto(f"{server}/formgrader/submissions/{submission}/")
    expect(page.locator("#ch99-double")).to_have_attribute("placeholder", "1")
    expect(page.locator("#ch99-three")).to_have_attribute("placeholder", "1")
    expect(page.locator("strong", has_text="Bold.")).to_be_visible()
    assert page.evaluate("window.probe") is None
    page.locator("#ch99-why").fill("1.5")
    page.locator("#ch99-why").press("Tab")
    expect(page.locator("#ch99-why")).to_have_class("score tabbable")  # no longer waits
    page.locator("#ch99-why-comment").fill("Say why.")
    with page.expect_response(lambda response: "/api/comment/" in response.url and response.request.method == "PUT"):
        page.locator("#ch99-why-comment").press("Tab")

    page.goto(f"{server}/formgrader/manage_submissions/ch99_toy")
    expect(row.locator(".status")).to_have_text("graded")
    expect(row.locator(".score")).to_have_text("3.5 / 7")
    row.locator(".generate-feedback a").click()
    page.locator("#success-modal").wait_for()
    feedback = course / "feedback" / "ada" / "ch99_toy" / "ch99_toy.html"
    page.goto(feedback.as_uri())
    expect(page.locator(".sum")).to_have_text("3.5 of 7 points")
    expect(page.locator("article#ch99-why")).to_contain_text("Your teacher: Say why.")
    assert page.evaluate("window.probe") is None
