"""What a student's process printed, displayed and raised, as outputs of a notebook that are made anew here."""

import json
import re

from nbformat import NotebookNode

from autograder.wire.shell import new_output, result

OUTPUT_LIMIT = 2_000_000  # characters of the outputs of a cell


def outputs(text) -> list[NotebookNode]:
    """Notebook outputs made anew from what a process sent as JSON; what is no output is left out."""
    try:
        told = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return []
    found, room = [], OUTPUT_LIMIT
    for output in told if isinstance(told, list) else []:
        made = _output(output) if isinstance(output, dict) else None
        room -= len(json.dumps(made)) if made is not None else 0
        if made is not None and room > 0:
            found.append(made)
    return found


def _output(told: dict) -> NotebookNode | None:
    kind = told.get("output_type")
    if kind == "stream":
        name = told.get("name")
        return new_output("stream", name=name if name in ("stdout", "stderr") else "stdout", text=_printed(told.get("text")))
    if kind == "error":
        lines = told.get("traceback")
        lines = [_printed(line) for line in lines[:200]] if isinstance(lines, list) else []
        return error_output(_printed(told.get("ename")), _printed(told.get("evalue")), lines)
    if kind in ("display_data", "execute_result"):
        data = told.get("data")
        if not isinstance(data, dict):
            return None
        data = {
            _printed(mime): _whole(value) if _is_json(mime) else _printed(value)
            for mime, value in data.items()
            if isinstance(mime, str)
        }
        return result(data) if kind == "execute_result" else new_output(kind, data=data, metadata={})
    return None


def _is_json(mime: str) -> bool:
    return re.fullmatch(r"application/(json|(vnd\.)?[\w.+-]+\+json)", mime) is not None


def _whole(x):
    """A value of JSON without halves of characters, which no file can hold."""
    return json.loads(json.dumps(x, ensure_ascii=False).encode("utf-8", "replace"))


def _printed(x) -> str:
    if isinstance(x, list):
        x = "".join(map(str, x))
    return str("" if x is None else x).encode("utf-8", "replace").decode()


def error_output(name: str, text: str, lines: list[str] | None = None) -> NotebookNode:
    return new_output("error", ename=name, evalue=text, traceback=lines or [text])
