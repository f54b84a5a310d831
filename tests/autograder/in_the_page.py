"""The verdicts of the book's page, asked for in Node: what a reader would write for an answer in Python, and what comes of it."""

import json
import subprocess
from numbers import Real

import sympy

from book import sealing
from book.tools import find

ROUNDS = 100  # enough where nobody guesses
ASK = f"""
const judging = require({json.dumps(str(sealing.SCRIPT.parent / "assets" / "judging.js"))});
const told = JSON.parse(require("fs").readFileSync(0, "utf8"));
Promise.all(told.map(([exercise, given]) => judging.judge(exercise, given))).then((all) => console.log(JSON.stringify(all)));
"""


class Unwritable(Exception):
    """A value of Python that no field of a page can hold: an array of texts, a text where a formula is asked for."""


def verdicts(questions: list[tuple[dict, dict]]) -> list[dict]:
    """What judging.js says to sealed exercises with what was given to them."""
    done = subprocess.run([find("node"), "-e", ASK], input=json.dumps(questions), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def written(field: dict, value):
    """A value of Python as a reader would give it to a field.

    Raises:
        Unwritable: if nobody can.
    """
    value = value if isinstance(value, sympy.Expr) else sealing.plain(list(value) if isinstance(value, tuple) else value)
    kind = field["kind"]
    if value is None:
        return ""
    if kind == "letters" and isinstance(value, str | list):
        return "".join(value)
    if kind in ("number", "formula") and isinstance(value, Real | sympy.Expr):
        return str(value) if isinstance(value, sympy.Expr) else repr(value)
    if kind in ("number", "choice") and isinstance(value, str):
        return value
    if kind == "numbers" and isinstance(value, list):
        return str(value)
    if kind == "words" and isinstance(value, list):
        return value
    raise Unwritable(f"{field['name']} = {value!r}")
