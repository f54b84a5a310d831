"""The book as PDF: `python -m book.pdf` writes build/book/mathematics-of-transformers.pdf.

The pages of the built site are joined into one HTML file and printed by Chromium: tagged, with an outline, and
with links that stay inside the file.
"""

import copy
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import course
from book.articles import Article, read
from book.build import BuildError, build
from book.registry import ROOT, read_yaml
from book.render import render
from book.tools import find

STYLE = Path(__file__).with_name("styles") / "print.css"
NAME = "mathematics-of-transformers"
SECONDS = 600


class PrintError(Exception):
    """The book cannot be printed; the message says what to do."""


def joined(articles: list[Article], site: Path, *, title: str, author: str, version: str) -> str:
    """All articles as one HTML page that needs nothing but the site's style sheets, fonts and pictures."""
    sheets = ["katex/katex.min.css", *_own_sheets(site)]
    parts = [
        (part, [{"key": article.key, "title": article.title, "text": _article(article)} for article in members])
        for part, members in groupby(articles, key=lambda article: article.part)
        if part
    ]
    styles = [(site / "_static" / sheet).as_uri() for sheet in sheets]
    facts = {"title": title, "author": author, "version": version}
    return render("print.html", **facts, sheets=[*styles, STYLE.as_uri()], parts=parts)


def _own_sheets(site: Path) -> list[str]:
    names = (
        "fonts.css",
        "library.css",
        "course.css",
        "reference.css",
        "transformer-map.css",
        "reading.css",
        "follow.css",
        "figures.css",
    )
    return [name for name in names if (site / "_static" / name).is_file()]


def _article(article: Article) -> str:
    """An article whose ids start with its key, one level of headings below the parts."""
    body = copy.copy(article.body)
    for node in body.find_all(id=True):
        node["id"] = f"{article.key}--{node['id']}"
    for link in body.find_all("a", href=True):
        key, sharp, anchor = link["href"].partition("#")
        if sharp and ":" not in key:
            link["href"] = f"#{key}--{anchor}" if anchor else f"#{key}"
    for image in body.find_all("img", src=True):
        image["src"] = Path(image["src"]).as_uri()
    for heading in body.find_all(["h1", "h2", "h3", "h4"]):
        heading.name = f"h{int(heading.name[1]) + 1}"
    body["id"] = article.key
    return str(body)


def browser() -> str:
    """The path of Chromium.

    Raises:
        PrintError: if there is none.
    """
    if path := find("chromium"):
        return path
    raise PrintError("printing needs Chromium: `make tools` installs it where there is apt-get")


def write(page: str, target: Path) -> Path:
    """Print a page that is one HTML file into a PDF.

    Raises:
        PrintError: if there is no Chromium, or it failed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "book.html"), Path(folder, "book.pdf")
        source.write_text(page, encoding="utf-8")
        command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--no-pdf-header-footer", "--generate-pdf-document-outline"]
        try:
            done = subprocess.run(
                [*command, f"--print-to-pdf={made}", source.as_uri()], capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise PrintError(f"Chromium did not finish in {SECONDS} s") from None
        if not made.is_file():
            raise PrintError(f"Chromium printed nothing: {done.stderr.strip()[-500:]}")
        shutil.move(made, target)
    return target


def main() -> int:
    """The command; returns its exit code."""
    try:
        site = build(solutions=os.environ.get("SOLUTIONS") == "show")
        config = read_yaml(ROOT / "_config.yml")
        facts = {"title": config["title"], "author": config["author"], "version": course.__version__}
        page = joined(read(site.parent / "src", site), site, **facts)
        print(write(page, site.parent / f"{NAME}.pdf"))
    except (BuildError, PrintError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
