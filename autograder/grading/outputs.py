"""What of a cell's outputs may be shown: nothing that runs in a reader's browser, nothing of the hidden tests."""

import contextlib
import re
from collections.abc import Mapping

import bleach
from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode, v4

LONGEST_HTML = 100_000  # characters; what is longer is shown as its plain text
TAGS = bleach.ALLOWED_TAGS | set(
    re.findall(
        r"\w+",
        "br caption dd del div dl dt h1 h2 h3 h4 h5 h6 hr img p pre s small span sub sup table tbody td tfoot th thead tr u",
    )
)
PICTURE = re.compile(r"data:image/(png|jpeg|gif|svg\+xml);base64,[A-Za-z0-9+/=\s]*")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
PLAIN = ("text/plain", "text/latex", "image/svg+xml")  # SVG is drawn as an <img>, where no script runs
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
NUMBERED = re.compile(r"^(?:-+>)?\s*\d+ ?(?P<code>.*)$")
EXPECTED = re.compile(
    r"^\s*(ACTUAL|DESIRED|x:|y:|(First|Second) (differing|list|tuple|sequence)|array\(|tensor\(|\[|[-+?] )"
    r"|==|!=|\bexpected\b.*\bgot\b",
    re.IGNORECASE,
)


def inert(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs of a cell without anything that a browser would execute or fetch.

    HTML is cut down to text, tables and embedded pictures. JavaScript, Markdown, widgets and what is not known are left
    out, and so is every metadata entry, which nbconvert writes into tags unquoted.
    """
    kept = []
    for output in outputs:
        if output.output_type in ("execute_result", "display_data"):
            count = {"execution_count": output.get("execution_count")} if output.output_type == "execute_result" else {}
            kept.append(v4.new_output(output.output_type, _data(output.get("data", {})), **count))
        else:
            kept.append(output)
    return kept


def _data(data: dict) -> dict:
    kept = {kind: text for kind, text in data.items() if kind in PLAIN and isinstance(text, str)}
    for kind in ("image/png", "image/jpeg"):
        if isinstance(data.get(kind), str) and BASE64.fullmatch(data[kind]):
            kept[kind] = data[kind]
    html = data.get("text/html")
    if isinstance(html, str) and len(html) <= LONGEST_HTML:
        with contextlib.suppress(Exception):  # whatever a parser trips over is not shown
            kept["text/html"] = clean_html(html)
    return kept


def clean_html(text: str) -> str:
    """HTML without scripts, styles, event handlers, forms, frames, and anything loaded from elsewhere."""
    text = re.sub(r"<(script|style)\b.*?(</\1\s*>|\Z)", "", text, flags=re.IGNORECASE | re.DOTALL)
    return bleach.clean(text, tags=TAGS, attributes=_allowed, protocols={"http", "https", "mailto", "data"}, strip=True)


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img":
        return name == "alt" or (name == "src" and PICTURE.fullmatch(value) is not None)
    if tag == "a":
        return name == "href" and not value.lower().startswith("data:")
    return tag in ("td", "th") and name in ("colspan", "rowspan") and value.isdigit()


@pass_context
def safe_markdown(context: Mapping, text: str) -> str:
    """A filter of nbconvert's templates: Markdown as clean HTML, with the pictures that were pasted into the cell.

    Mathematics stays as it is.
    """
    pictures = context.get("cell", {}).get("attachments", {})
    return clean_html(MarkdownWithMath(renderer=IPythonRenderer(escape=False, attachments=pictures)).render(text))


def plain(text: str) -> str:
    """Text without the codes that colour a terminal."""
    return ANSI.sub("", text)


def error_shown(output: NotebookNode, written: str) -> str:
    """An error that a test cell ended with, as the student may see it.

    Args:
        output: of type "error".
        written: all that the student wrote. Of the traceback only frames in it are shown; lines of the message that
            give an expected value are left out.
    """
    own = {line.strip() for line in written.splitlines()}
    frames = [frame for entry in output.get("traceback", []) if _is_own(frame := plain(str(entry)), own)]
    return "\n".join([*frames, message(output)])


def _is_own(frame: str, own: set[str]) -> bool:
    code = [match["code"].strip() for line in frame.splitlines() if (match := NUMBERED.match(line))]
    return any(code) and all(line in own for line in code if line)


def message(output: NotebookNode) -> str:
    """An error's class and message, without the lines that say which value was expected."""
    lines = plain(str(output.get("evalue", ""))).strip().splitlines()
    shown = [line for line in lines if not (output.get("ename") == "AssertionError" and EXPECTED.search(line))]
    return f"{output.get('ename', 'Error')}: {' '.join(' '.join(shown).split())}".strip().removesuffix(":")
