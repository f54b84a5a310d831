"""The book as EPUB 3: `python -m book.epub` writes build/book/mathematics-of-transformers.epub.

Made from the pages of the built site, with native MathML, and checked by epubcheck where it is installed.
"""

import mimetypes
import os
import re
import subprocess
import sys
import time
import uuid
import zipfile
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from bs4 import Tag

import course
from book.articles import Article, mathml, read
from book.build import BuildError, build
from book.registry import ROOT, read_yaml
from book.render import render
from book.tools import find

STYLE = Path(__file__).with_name("styles") / "epub.css"
NAME = "mathematics-of-transformers"


def write(articles: list[Article], target: Path, *, title: str, author: str, version: str) -> Path:
    """Write the articles as one EPUB file.

    Args:
        articles: from `book.articles.read`.
        target: the file to write.
        title: the book's.
        author: the book's.
        version: the book's.
    """
    pictures: dict[Path, str] = {}
    pages = {}
    for article in articles:
        body = mathml(article.body)
        body.name, body.attrs = "article", {"id": "top"}
        for link in body.find_all("a", href=True):
            page, sharp, anchor = link["href"].partition("#")
            if sharp and ":" not in page:
                link["href"] = f"{page}.xhtml" + (f"#{anchor}" if anchor else "")
        for image in body.find_all("img", src=True):
            path = Path(image["src"])
            image["src"] = pictures.setdefault(path, f"images/{path.name}")
        _once(body)
        pages[article.key] = render("page.xhtml", title=article.title, body=body.decode(formatter="minimal"))
    files = {f"{key}.xhtml": text.encode() for key, text in pages.items()}
    files |= {"nav.xhtml": navigation(articles).encode(), "style.css": STYLE.read_bytes()}
    files |= {name: picture(path) for path, name in pictures.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), UTC)
    package = render(
        "package.opf",
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, NAME),
        title=title,
        author=author,
        version=version,
        modified=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        items=[_item(name, content) for name, content in files.items()],
        spine=pages,
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as epub:
        epub.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)  # the first entry, not compressed
        epub.writestr("META-INF/container.xml", render("container.xml"))
        epub.writestr("book/package.opf", package)
        for name, content in files.items():
            epub.writestr(f"book/{name}", content)
    return target


def _item(name: str, content: bytes) -> dict[str, str | None]:
    """A file's entry in the manifest."""
    page = name.endswith(".xhtml")
    found = [word for word, mark in (("nav", b"<nav "), ("mathml", b"<math"), ("svg", b"<svg")) if mark in content]
    return {
        "id": name.removesuffix(".xhtml") if page else "f-" + name.replace("/", "-"),
        "href": name,
        "kind": "application/xhtml+xml" if page else mimetypes.guess_type(name)[0],
        "properties": " ".join(found) if page else "",
    }


def picture(path: Path) -> bytes:
    """A picture's file as EPUB allows it: an SVG without a document type, and each path with its data."""
    if path.suffix != ".svg":
        return path.read_bytes()
    svg = re.sub(r"<!DOCTYPE[^>]*>", "", path.read_text(encoding="utf-8"))
    return re.sub(r"<path(?![^>]*\sd=)", '<path d=""', svg).encode()


def _once(body: Tag) -> None:
    """An id stands once in a file of XML."""
    seen = set()
    for node in body.find_all(id=True):
        if node["id"] in seen:
            del node["id"]
        else:
            seen.add(node["id"])


def navigation(articles: list[Article]) -> str:
    """The contents: parts, and in them pages with their sections."""
    parts = [
        (
            part,
            [
                {
                    "key": article.key,
                    "title": article.title,
                    "sections": [(h.parent["id"], h.get_text().strip()) for h in article.body.select("section[id] > h2")],
                }
                for article in members
            ],
        )
        for part, members in groupby(articles, key=lambda article: article.part)
    ]
    return render("nav.xhtml", title="Contents", parts=parts)


def check(path: Path) -> str:
    """What epubcheck says against a file; empty if it is valid.

    Raises:
        FileNotFoundError: if epubcheck is not installed.
    """
    command = find("epubcheck")
    if command is None:
        raise FileNotFoundError("epubcheck")
    command = ["java", "-jar", command] if zipfile.is_zipfile(command) else [command]  # Debian's is the archive itself
    done = subprocess.run([*command, "--quiet", str(path)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """The command; returns its exit code."""
    try:
        site = build(solutions=os.environ.get("SOLUTIONS") == "show")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    config = read_yaml(ROOT / "_config.yml")
    facts = {"title": config["title"], "author": config["author"], "version": course.__version__}
    path = write(read(site.parent / "src", site), site.parent / f"{NAME}.epub", **facts)
    try:
        if told := check(path):
            print(told, file=sys.stderr)
            return 1
    except FileNotFoundError:
        print("epubcheck is not installed, so the file was not checked: `make tools` installs it where there is apt-get")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
