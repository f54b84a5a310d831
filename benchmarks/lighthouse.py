"""Lighthouse's judgement of the built book: `python -m benchmarks.lighthouse`, or `make lighthouse`.

A small server compresses what it sends, as a real one does. Writes build/benchmarks/lighthouse.json and fails
when a category is below its bar.
"""

import argparse
import functools
import gzip
import json
import os
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from autograder.authoring.chapters import find_chapters
from book.pdf import browser
from book.registry import ROOT

VERSION = "lighthouse@12"
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
BARS = {"desktop": dict.fromkeys(CATEGORIES, 95), "mobile": {"performance": 80}}
COMPRESSED = (".html", ".css", ".js", ".json", ".svg", ".txt", ".xml")


class Compressing(SimpleHTTPRequestHandler):
    """Serves a folder with gzip and with a time to keep what never changes."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if path.suffix not in COMPRESSED or not path.is_file():
            super().do_GET()
            return
        content = _packed(path)
        self.send_response(200)
        self.send_header("Content-Type", f"{self.guess_type(str(path))}; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=31536000" if "/_static/" in self.path else "max-age=600")
        super().end_headers()

    def log_message(self, *args):
        pass


@functools.cache
def _packed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes())


def judge(address: str, form: str) -> dict[str, int]:
    """The scores of one page, of 100.

    Args:
        address: the page's.
        form: desktop or mobile.
    """
    command = ["npx", "--yes", VERSION, address, "--quiet", "--output=json", "--output-path=stdout"]
    command += [f"--only-categories={','.join(CATEGORIES)}", "--chrome-flags=--headless=new --no-sandbox --disable-gpu"]
    if form == "desktop":
        command.append("--preset=desktop")
    environment = {**os.environ, "CHROME_PATH": browser()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    report = json.loads(done.stdout)
    below = {
        audit["id"]: audit.get("displayValue", "")
        for audit in report["audits"].values()
        if audit["score"] is not None and audit["score"] < 0.5
    }
    scores = {name: round(100 * report["categories"][name]["score"]) for name in CATEGORIES}
    print(f"{form:8} {address.rpartition('/')[2]:40} {scores} {below}", flush=True)
    return scores


def main() -> int:
    """The command; returns its exit code: 1 if a score is below its bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="pages such as index.html; without one: the first, a chapter and the formulas")
    site = ROOT / "build" / "book" / "html"
    if not (site / "index.html").is_file():
        print("there is no book yet: make book", file=sys.stderr)
        return 1
    longest = max(find_chapters(ROOT), key=lambda chapter: (site / chapter.stem / f"{chapter.stem}.html").stat().st_size)
    pages = parser.parse_args().pages or ["index.html", f"{longest.stem}/{longest.stem}.html", "reference/formulas.html"]
    found = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Compressing, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in pages:
            for form in BARS:
                found[f"{page}, {form}"] = judge(f"http://127.0.0.1:{server.server_port}/{page}", form)
        server.shutdown()
    target = ROOT / "build" / "benchmarks" / "lighthouse.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")
    short = [
        f"{name}: {category} {scores[category]} is below {bar}"
        for name, scores in found.items()
        for category, bar in BARS[name.rpartition(", ")[2]].items()
        if scores[category] < bar
    ]
    print("\n".join(short))
    return int(bool(short))


if __name__ == "__main__":
    sys.exit(main())
