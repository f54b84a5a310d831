"""Still pictures of the widgets: the first state of each as SVG, drawn by the widget's own code in Chromium.

They stand in the page until its script runs, and for good on paper, in the EPUB and without scripts. A picture is kept in
`build/stills` under a hash of all that it is made of; what changed is drawn anew by the next build.
"""

import hashlib
import html
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import course.widgets
from autograder.authoring.chapters import Chapter, tags
from book.registry import ROOT
from book.tools import find
from course.widgets import MIME, esm

KEPT = ROOT / "build" / "stills"
SCRIPT = Path(__file__).with_name("still.js")
ASSETS = ROOT / "book" / "assets"
WIDTH = 640  # pixels; what a drawing has before it knows its room, and nearly that of a printed line
SECONDS = 120


class StillError(Exception):
    """A widget cannot be drawn; the message says what to do."""


def island(bundle: dict) -> str:
    """What `widgets.js` brings to life in a page: a widget's module and state as an inert script."""
    held = json.dumps({"esm": esm(bundle["module"]), "state": bundle["state"]}, sort_keys=True).replace("<", "\\u003c")
    return f'<script type="application/json">{held}</script>'


def has_module(bundle: dict) -> bool:
    """Whether the module of a stored widget is one of `course/widgets`."""
    return bool(re.fullmatch(r"\w+", bundle["module"])) and (course.widgets.HERE / f"{bundle['module']}.js").exists()


def bundles(chapter: Chapter) -> list[dict]:
    """The stored widgets of a chapter whose modules are there."""
    outputs = [output for cell in chapter.notebook.cells if "widget" in tags(cell) for output in cell.get("outputs", [])]
    stored = [output.data[MIME] for output in outputs if MIME in output.get("data", {})]
    return [bundle for bundle in stored if has_module(bundle)]


def still(bundle: dict) -> str:
    """The SVG of a widget's stored state.

    Raises:
        StillError: if there is no Chromium, or the widget failed.
    """
    draw([bundle])
    return _place(bundle).read_text(encoding="utf-8")


def draw(bundles: Iterable[dict]) -> None:
    """Draw those of the widgets that are not kept, all in one page.

    Raises:
        StillError: if there is no Chromium, or a widget failed.
    """
    missing = {place: bundle for bundle in bundles if not (place := _place(bundle)).exists()}
    if not missing:
        return
    drawn = _drawn(list(missing.values()))
    KEPT.mkdir(parents=True, exist_ok=True)
    for place, svg in zip(missing, drawn, strict=True):
        with tempfile.NamedTemporaryFile("w", dir=KEPT, delete=False, encoding="utf-8") as file:
            file.write(svg + "\n")
        Path(file.name).replace(place)  # whole, though two builds write it


def _place(bundle: dict) -> Path:
    made_of = [island(bundle).encode(), *(path.read_bytes() for path in (SCRIPT, *_styles(), ASSETS / "widgets.js"))]
    return KEPT / f"{bundle['module']}-{hashlib.sha256(b'|'.join(made_of)).hexdigest()[:16]}.svg"


def _styles() -> list[Path]:
    return [ASSETS / "fonts.css", course.widgets.HERE / "library.css", ASSETS / "course.css"]


def _drawn(bundles: list[dict]) -> list[str]:
    hosts = "".join(
        f'<div class="course-widget-host" data-module="{html.escape(bundle["module"])}">{island(bundle)}'
        '<p class="course-alternative"></p></div>'
        for bundle in bundles
    )
    sheets = "".join(f'<link rel="stylesheet" href="{path.as_uri()}">' for path in _styles())
    scripts = "".join(f'<script src="{path.as_uri()}"></script>' for path in (ASSETS / "widgets.js", SCRIPT))
    room = f"<style>.course-widget-host {{ width: {WIDTH}px; padding: 0; border: none }} .course-widget {{ max-width: none }}</style>"
    page = f'<!DOCTYPE html><html data-theme="light"><meta charset="utf-8">{sheets}{room}<body>{hosts}{scripts}</body></html>'
    chromium = find("chromium")
    if chromium is None:
        raise StillError("the still pictures of the widgets need Chromium: `make tools` installs it where there is apt-get")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "stills.html")
        source.write_text(page, encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files", "--force-prefers-reduced-motion"]
        command += ["--window-size=1280,900", "--virtual-time-budget=60000", "--dump-dom", source.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise StillError(f"Chromium did not draw the widgets in {SECONDS} s") from None
    told = re.search(r'<script type="application/json" id="stills">(.*?)</script>', done.stdout, re.DOTALL)
    if told is None:
        raise StillError(f"Chromium drew no widget: {done.stderr.strip()[-500:]}")
    answer = json.loads(told[1])
    if answer["failed"]:
        raise StillError(
            f"these widgets failed in Chromium: {', '.join(answer['failed'])}; their chapter's page says more in its console"
        )
    return answer["made"]
