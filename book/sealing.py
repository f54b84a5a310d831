"""What the page needs to judge an answer, sealed: `python -m book.sealing` writes `book/sealed`, the build reads it.

An exercise of form numeric, choice, order or derivation whose tests ask for named values, and every prediction, can be answered
in the book. What is accepted is read off the test cell, by running it with the solution's values and words of `check` that take
note; what is wrong, and its sentence, come from `answers.py`. `seal.js` encrypts all of it so that an answer opens what belongs to
it (`assets/judging.js` has the scheme). An exercise whose test asks for functions stays in the notebook, and so does one whose
test cell asks in a way that is not understood here.

**What this hides, and what it cannot.** Nobody reads an answer in the page's text or sees it by the way. But whoever can write down
all possible answers can try them all: a choice of one of four letters takes four tries, one of several of six letters 63, a whole
number below a million as many as it has cells, some 20,000, at about a twentieth of a second each on a laptop and a small part of
that on a graphics card. `ROUNDS` makes this tedious, not impossible. An exercise whose secret matters is graded by a teacher, from
the notebook, by hidden tests; the page's verdict gives no points.
"""

import ast
import builtins
import contextlib
import hashlib
import io
import json
import math
import random
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from autograder.authoring.answers import Answer, load
from autograder.authoring.chapters import Chapter, Exercise, bound_names, find_chapters, regions, tags, without_regions
from book.registry import ROOT
from book.tools import find

FORMS = "numeric", "choice", "order", "derivation", "prediction"
ROUNDS = 150_000  # of PBKDF2 with SHA-256, for each value of an answer
SCHEME = 1  # raise it when what is sealed of the same cells changes
FOLDER = Path("book", "sealed")
SCRIPT = Path(__file__).with_name("seal.js")
ALIKE = 1e-4  # of a wrong number: how near the same mistake is, as autograder.authoring.misconceptions has it
EXACT = 1e-12  # the same, where two mistakes are so near each other
DIGITS = 1e-9  # of a formula's value, computed by the page in float64
POINTS = 6  # at which formulas are compared
STEP = 1e-6  # of the grid for formulas' values


class Unanswerable(Exception):
    """The exercise cannot be answered in the page; the message says why."""


# ---------------------------------------------------------------- what is sealed, kept and read


def sealed(chapter: Chapter) -> dict[str, dict]:
    """The sealed exercises of a chapter by id: those of `book/sealed`, and sealed anew what is not, or no longer, there.

    Raises:
        subprocess.CalledProcessError: if node fails.
    """
    kept = _kept(chapter)
    exercises = [exercise for exercise in chapter.exercises if exercise.form in FORMS]
    stale = [exercise for exercise in exercises if kept.get(exercise.id, {}).get("of") != digest(chapter, exercise)]
    new = seal(chapter, stale) if stale else {}
    return {e.id: found for e in exercises if "why" not in (found := new.get(e.id) or kept[e.id]["sealed"])}


def _kept(chapter: Chapter) -> dict[str, dict]:
    path = chapter.root / FOLDER / f"{chapter.stem}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def digest(chapter: Chapter, exercise: Exercise) -> str:
    """What the seal of an exercise is made of, in short. It is kept in the repository, and in no page."""
    cells = chapter.notebook.cells
    asked = cells[exercise.answer].source, cells[exercise.test].source
    made_of = [SCHEME, ROUNDS, exercise.id, exercise.form, *asked, _written(chapter).get(exercise.id, ""), _written(chapter)[""]]
    return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


@cache
def _written(chapter: Chapter) -> dict[str, str]:
    """What `answers.py` has for each exercise, and under "" what is of none, without running it: that takes seconds."""
    text = chapter.answers.read_text(encoding="utf-8") if chapter.answers.exists() else ""
    lines, found = text.splitlines(), {"": ""}
    ids = {exercise.id for exercise in chapter.exercises}
    for node in ast.parse(text).body:
        start = min(part.lineno for part in (node, *getattr(node, "decorator_list", ())))
        named = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)} & ids
        for id in named or {""}:
            found[id] = found.get(id, "") + "\n".join(lines[start - 1 : node.end_lineno]) + "\n"
    return found


@cache
def _loaded(chapter: Chapter) -> list[Answer]:
    return load(chapter.answers) if chapter.answers.exists() else []


def answers_of(chapter: Chapter, exercise: Exercise) -> list[Answer]:
    """The right and wrong answers of an exercise."""
    return [answer for answer in _loaded(chapter) if answer.exercise == exercise.id]


def seal(chapter: Chapter, exercises: list[Exercise], rounds: int = ROUNDS) -> dict[str, dict]:
    """Exercises of a chapter, sealed anew; of one that stays in the notebook the reason, `{"why": …}`.

    Raises:
        subprocess.CalledProcessError: if node fails.
    """
    found, open_ones = {}, []
    for exercise in exercises:
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # what cells print
                open_ones.append({"rounds": rounds, **understood(chapter, exercise)})
        except Unanswerable as why:
            found[exercise.id] = {"why": str(why)}
        except Exception as error:  # of a cell or an answer that does not run alone, in a chapter that is being written
            found[exercise.id] = {"why": f"{type(error).__name__}: {error}"}
    done = subprocess.run([find("node"), SCRIPT], input=json.dumps(open_ones), capture_output=True, text=True, check=True).stdout
    return found | {one["id"]: one for one in json.loads(done)}


def write(chapter: Chapter) -> bool:
    """Bring a chapter's file of `book/sealed` up to date; returns whether it changed."""
    kept = _kept(chapter)
    digests = {exercise.id: digest(chapter, exercise) for exercise in chapter.exercises if exercise.form in FORMS}
    if {id: one["of"] for id, one in kept.items()} == digests:
        return False
    stale = [e for e in chapter.exercises if e.id in digests and kept.get(e.id, {}).get("of") != digests[e.id]]
    new = seal(chapter, stale)
    now = {id: {"of": of, "sealed": new.get(id) or kept[id]["sealed"]} for id, of in digests.items()}
    path = chapter.root / FOLDER / f"{chapter.stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(now, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return True


# ---------------------------------------------------------------- from a test cell to what it accepts


@dataclass
class _Asked:
    """What a test asks of one named value."""

    words: list[tuple[str, tuple, dict]] = field(default_factory=list)
    points: list[tuple[str, tuple, dict]] = field(default_factory=list)  # in parts that give points

    def all(self, name: str) -> list[tuple[tuple, dict]]:
        return [(args, given) for word, args, given in self.words if word == name]


class _Listening:
    """Stands in for `check` and `Exercise` while a test cell runs: it takes note of what is asked, and judges nothing."""

    def __init__(self):
        self.parts: list[tuple[float, list[str]]] = []
        self.asked: dict[str, _Asked] = {}
        self.worth = 0.0

    def exercise(self, id, points, without=()):
        return self

    @contextlib.contextmanager
    def part(self, name, points=0):
        self.parts.append((points, []))
        self.worth = points
        yield

    def score(self):
        return None

    def check(self, answer=None, /, **named):
        if answer is not None:
            raise Unanswerable("its test asks for a function")
        ((name, _),) = named.items()
        return _Noting(self, name)


class _Noting:
    def __init__(self, listening: _Listening, name: str):
        self.listening, self.name = listening, name

    def __getattr__(self, word):
        def note(*args, **given):
            asked = self.listening.asked.setdefault(self.name, _Asked())
            asked.words.append((word, args, given))
            names = self.listening.parts[-1][1]
            if self.listening.worth:
                asked.points.append((word, args, given))
                names += [self.name] if self.name not in names else []
            return self

        return note


def understood(chapter: Chapter, exercise: Exercise) -> dict:
    """An exercise in the plain form that `seal.js` takes.

    Raises:
        Unanswerable: if the page cannot judge it.
    """
    cells, names = chapter.notebook.cells, chapter.asked(exercise)
    test = cells[exercise.test].source
    if any(isinstance(node, ast.FunctionDef) for node in ast.parse(cells[exercise.answer].source).body):
        raise Unanswerable("its test asks for a function")
    space = namespace(chapter, exercise)
    right = run(space, cells[exercise.answer].source)
    listening = _Listening()
    try:
        exec(test, {**right, "check": listening.check, "Exercise": listening.exercise})
    except Unanswerable:
        raise
    except Exception as error:
        raise Unanswerable(f"its test cannot be read: {error!r}") from error
    if set(listening.asked) != set(names):
        raise Unanswerable("its test asks for other values than the cell defines")
    common = {"id": exercise.id, "points": exercise.points}
    visible = without_regions(test, "HIDDEN TESTS")
    if exercise.form == "prediction":
        fields = [_prediction(name, listening.asked[name], visible, right) for name in names]
        return common | {"prediction": True, "fields": fields, "mistakes": []}
    parts = [{"points": points, "names": asked} for points, asked in listening.parts if points]
    if not math.isclose(sum(part["points"] for part in parts), exercise.points) or not all(part["names"] for part in parts):
        raise Unanswerable("a part of its tests asks for more than named values")
    mistakes = []
    for answer in answers_of(chapter, exercise):
        if not answer.right:
            mistakes.append((answer, run(space, answer.source(names))))
    given = run(space, _public(cells[exercise.answer].source))
    fields, classes = [], []
    for name in names:
        made, of_mistakes = _field(
            name, listening.asked[name], visible, given, [values.get(name) for _, values in mistakes], exercise
        )
        fields.append(made)
        classes.append(of_mistakes)
    told = [
        {"classes": list(places), "say": answer.sentence, "see": answer.see, "title": chapter.sections.get(answer.see)}
        for (answer, _), places in zip(mistakes, zip(*classes, strict=True), strict=True)
        if None not in places and any(places)
    ]
    return common | {"parts": parts, "fields": fields, "mistakes": told}


def _public(source: str) -> str:
    """An answer cell without its solution."""
    return without_regions(source, "SOLUTION") if regions(source, "SOLUTION") else source


def run(space: dict, source: str) -> dict:
    """The names after some code ran; `space` stays as it is."""
    values = dict(space)
    exec(source, values)
    return values


def namespace(chapter: Chapter, exercise: Exercise) -> dict:
    """The notebook's names that the answer and the wrong answers use, and its imports for the test: no cell is run but for these."""
    cells, space, done = chapter.notebook.cells, {}, set()
    tests = {other.test for other in chapter.exercises}
    binds = {
        number: bound_names(cell.source)
        for number, cell in enumerate(cells[: exercise.answer])
        if cell.cell_type == "code" and number not in tests and not {"slow", "widget"} & set(tags(cell))
    }

    def bring(source: str, before: int) -> None:
        for name in sorted(_free(source) - space.keys()):
            at = max((number for number, bound in binds.items() if number < before and name in bound), default=None)
            if at is not None and at not in done:
                done.add(at)
                bring(cells[at].source, at)
                exec(cells[at].source, space)
            elif name in chapter.imported and name not in space:
                exec(chapter.imported[name], space)

    names = chapter.asked(exercise)
    for source in (cells[exercise.answer].source, *(answer.source(names) for answer in answers_of(chapter, exercise))):
        bring(source, exercise.answer)
    for name in sorted(_free(cells[exercise.test].source) & chapter.imported.keys()):
        exec(chapter.imported[name], space)
    return space


def _free(source: str) -> set[str]:
    """The names that code reads and does not bind itself."""
    nodes = list(ast.walk(ast.parse(source)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - bound - set(dir(builtins))


# ---------------------------------------------------------------- fields


def _field(name: str, asked: _Asked, visible: str, given: dict, wrong: list, exercise: Exercise) -> tuple[dict, list[int | None]]:
    """A field of the form with its classes of answers, and the class of each mistake; None where the page cannot take it."""
    deciding = [note for note in asked.points if note[0] in ("equals", "chooses", "is_equivalent_to")]
    if len(deciding) != 1:
        raise Unanswerable(f"{name} is not asked for by one value")
    [(word, (expected, *_), how)] = deciding
    if word == "is_equivalent_to":
        return _formula(name, asked, expected, given, wrong, exercise)
    if word == "chooses":
        letters = next((args[0] for args, _ in asked.all("chooses_from")), None)
        if letters is None:
            raise Unanswerable(f"{name} has no letters to choose from")
        return _texts({"name": name, "kind": "letters", "letters": letters}, _letters(expected), [_letters(x) for x in wrong])
    expected = plain(expected)
    if isinstance(expected, str):
        options = next((list(args) for args, _ in asked.all("is_one_of")), None)
        if options is None or expected not in map(plain, options):
            raise Unanswerable(f"{name} has no options to choose from")
        keys = [x if isinstance(x, str) else None for x in map(plain, wrong)]
        return _texts({"name": name, "kind": "choice", "options": options}, expected, keys)
    if isinstance(expected, list) and all(isinstance(x, str) for x in expected):
        return _texts(
            {"name": name, "kind": "words", **_options(name, visible, len(expected))},
            _words(expected),
            [_words(plain(x)) for x in wrong],
        )
    if not _numbers(expected):
        raise Unanswerable(f"{name} is no number, text, list or formula")
    field = {"name": name, "kind": "numbers" if isinstance(expected, list) else "number"}
    if isinstance(expected, list):
        field["count"] = next((len(args[0]) for args, _ in asked.all("is_like")), None)
    elif _conditions(name, visible):
        raise Unanswerable(f"{name} has conditions of its own")
    as_list = expected if isinstance(expected, list) else [expected]
    bounds = [accepted(x, how.get("atol", 0.0), how.get("rtol", 0.0)) for x in as_list]
    values = [plain(x) for x in wrong]
    values = [x if _numbers(x) and isinstance(x, list) == isinstance(expected, list) else None for x in values]
    values = [x if x is None or isinstance(x, list) else [x] for x in values]
    return ranges(field, box(bounds), values)


def plain(x):
    """A value as a text, a number or a list of these; anything else as it is."""
    from course.checks.comparing import simple

    return simple(x)


def _numbers(x) -> bool:
    return all(
        isinstance(y, int | float) and not isinstance(y, bool) and math.isfinite(y) for y in (x if isinstance(x, list) else [x])
    )


def _letters(x) -> str | None:
    parts = x if isinstance(x, list | tuple | set | frozenset) else [x]
    if not all(isinstance(part, str) for part in parts):
        return None
    return "".join(sorted({letter for letter in "".join(parts).casefold() if letter.isalnum()}))


def _words(x) -> str | None:
    return "\n".join(x) if isinstance(x, list) and all(isinstance(y, str) for y in x) else None


def _texts(field: dict, right: str, wrong: list[str | None]) -> tuple[dict, list[int | None]]:
    keys = list(dict.fromkeys([right, *(key for key in wrong if key)]))
    places = [keys.index(key) if key else None for key in wrong]
    return {**field, "classes": [{"key": key} for key in keys]}, places


def accepted(expected: float, atol: float, rtol: float) -> tuple[float, float]:
    """The least and the greatest float that `equals` accepts."""
    from course.checks.comparing import difference

    def end(side: int) -> float:
        inside, outside = expected, expected + side * 2 * (atol + rtol * abs(expected))
        while (middle := (inside + outside) / 2) not in (inside, outside):
            accepted = difference(expected, middle, atol=atol, rtol=rtol) is None
            inside, outside = (middle, outside) if accepted else (inside, middle)
        return inside

    expected = float(expected)
    return (expected, expected) if atol == rtol == 0 else (end(-1), end(1))


def box(bounds: list[tuple[float, float]]) -> dict:
    return {"low": [low for low, _ in bounds], "high": [high for _, high in bounds]}


def around(values: list[float], near: float) -> dict:
    return box([(x - near * abs(x), x + near * abs(x)) for x in values])


def _meet(a: dict, b: dict) -> bool:
    return len(a["low"]) == len(b["low"]) and all(
        a["low"][i] <= b["high"][i] and b["low"][i] <= a["high"][i] for i in range(len(a["low"]))
    )


def ranges(
    field: dict, right: dict, wrong: list[list | None], near: float = ALIKE, exact: float = EXACT
) -> tuple[dict, list[int | None]]:
    classes, values, places = [right], [None], []
    for value in wrong:
        if value is None or _meet(around(value, 0), right):
            places.append(None if value is None else 0)
        elif value in values:
            places.append(values.index(value))
        else:
            classes.append(around(value, near))
            values.append(value)
            places.append(len(values) - 1)
    wide = list(classes)
    for i in range(1, len(classes)):  # two mistakes that are near each other: only the same to all digits counts
        if any(_meet(wide[i], other) for j, other in enumerate(wide) if j not in (0, i)):
            classes[i] = around(values[i], exact)
    return {**field, "classes": classes}, places


def _formula(name: str, asked: _Asked, wanted, given: dict, wrong: list, exercise: Exercise) -> tuple[dict, list[int | None]]:
    import sympy

    from course import expressions

    letters, how = next(((args, how) for args, how in asked.all("is_expression_in")), ((), {}))
    if not letters:
        raise Unanswerable(f"{name} has no letters")
    wanted = expressions.read(wanted)
    readable = []
    for x in wrong:
        try:
            found = expressions.read(x) if isinstance(x, sympy.Expr | int | float) else None
        except expressions.ExpressionError:
            found = None
        readable.append(found if found is not None and expressions.letters(found) <= set(letters) else None)
    shown = [
        {"at": note["at"], "value": args[0], "within": note.get("atol", 0.0) + note.get("rtol", 0.0) * abs(args[0])}
        for args, note in asked.all("has_value")
    ]
    defined = {
        key: str(x)
        for key, x in given.items()
        if isinstance(x, sympy.Expr) and not x.is_Symbol and expressions.letters(x) <= set(letters)
    }
    field = {
        "name": name,
        "kind": "formula",
        "letters": list(letters),
        "each": how.get("each", False),
        "defined": defined,
        "shown": shown,
    }
    points, values = _values(f"{exercise.id} {name}", letters, wanted, readable)
    field |= {"points": points, "steps": [STEP]}
    right, *others = values
    return ranges(field, around(right, DIGITS), others, DIGITS, DIGITS)


def _values(seed: str, letters: tuple[str, ...], wanted, wrong: list) -> tuple[list[dict], list[list[float] | None]]:
    """Points, and the values there of the right formula and of each wrong one; all of them have some."""
    from course import expressions

    assumed = {symbol.name: symbol for symbol in wanted.free_symbols}
    draws = random.Random(seed)

    def drawn(letter: str, low: float) -> float:
        symbol = assumed.get(letter)
        whole = symbol is not None and symbol.is_integer
        size = draws.randint(2, 9) if whole else low + draws.randint(50, 950) / 1000
        return size if symbol is None or symbol.is_positive else size * draws.choice([-1, 1])

    def at(points, x):
        found = [expressions.number(x, point) for point in points]
        if any(value.imag for value in found):
            raise expressions.NoValue
        return [float(value.real) for value in found]

    for attempt in range(50):
        lows = {letter: draws.choice([0.0, 1.0]) if attempt else 1.0 for letter in letters}  # above one, x - 1 has a logarithm
        points = [{letter: drawn(letter, lows[letter]) for letter in letters} for _ in range(POINTS)]
        try:
            return points, [at(points, wanted), *(None if x is None else at(points, x) for x in wrong)]
        except expressions.NoValue:
            continue
    raise Unanswerable("its formula has no values")


# ---------------------------------------------------------------- conditions that a test cell writes out


def _prediction(name: str, asked: _Asked, visible: str, space: dict) -> dict:
    """A field whose possible answers are all as good."""
    if options := next((list(args) for args, _ in asked.all("is_one_of")), None):
        return {"name": name, "kind": "choice", "options": options}
    if not asked.all("is_number"):
        raise Unanswerable(f"{name} is neither a number nor a choice")
    limits = [limit for condition, said in _conditions(name, visible) for limit in _limits(condition, name, said, space)]
    for (expected,), how in asked.all("equals"):
        low, high = accepted(expected, how.get("atol", 0.0), how.get("rtol", 0.0))
        said = f"lies between {low:g} and {high:g}"
        limits += [_limit("value", "<=", high, said), _limit("minus", "<=", -low, said)]
    return {"name": name, "kind": "number", "limits": limits}


def _limit(of: str, sign: str, than: float | None, said: str) -> dict:
    return {"of": of, "sign": sign, "than": than, "said": said}


def _conditions(name: str, visible: str) -> list[tuple[ast.expr, str]]:
    """What a test cell refuses by an `if` of its own, with the words that it has for it."""
    found = []
    for node in ast.walk(ast.parse(visible)):
        if (
            isinstance(node, ast.If)
            and isinstance(node.body[0], ast.Raise)
            and any(isinstance(x, ast.Name) and x.id == name for x in ast.walk(node.test))
        ):
            words = [x.value for x in ast.walk(node.body[0]) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
            found.append((node.test, words[0].rstrip(".")))
    return found


def _limits(refused: ast.expr, name: str, said: str, space: dict) -> list[dict]:
    """`not 0 < x <= 8`, `not abs(x) < 300` and `x != round(x) or …` as limits.

    Raises:
        Unanswerable: if it is of another form.
    """
    if isinstance(refused, ast.BoolOp) and isinstance(refused.op, ast.Or):
        return [limit for part in refused.values for limit in _limits(part, name, said, space)]
    if ast.unparse(refused) == f"{name} != round({name})":
        return [_limit("value", "whole", None, said)]
    if not (isinstance(refused, ast.UnaryOp) and isinstance(refused.operand, ast.Compare)):
        raise Unanswerable(f"the condition on {name} is not understood")
    compare, found = refused.operand, []
    sides = [compare.left, *compare.comparators]
    for left, sign, right in zip(sides, compare.ops, sides[1:], strict=False):
        if isinstance(sign, ast.Gt | ast.GtE):
            left, right = right, left
        sign = "<" if isinstance(sign, ast.Lt | ast.Gt) else "<="
        of = {name: "value", f"abs({name})": "size"}
        if ast.unparse(left) in of:
            found.append(_limit(of[ast.unparse(left)], sign, _constant(right, space), said))
        elif ast.unparse(right) == name:
            found.append(_limit("minus", sign, -_constant(left, space), said))
        else:
            raise Unanswerable(f"the condition on {name} is not understood")
    return found


def _constant(node: ast.expr, space: dict) -> float:
    return float(eval(compile(ast.Expression(node), "<test cell>", "eval"), dict(space)))


def _options(name: str, visible: str, length: int) -> dict:
    """The words of a list, as the visible part of the test cell names them: a set of which each is one, or a list of all."""
    for node in ast.walk(ast.parse(visible)):
        if (
            isinstance(node, ast.Set | ast.List)
            and node.elts
            and all(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in node.elts)
        ):
            options = sorted(x.value for x in node.elts)
            return {"options": options, "count": length, "once": isinstance(node, ast.List)}
    raise Unanswerable(f"{name} has no words to choose from")


def main() -> int:
    """The command: `make answers`."""
    chapters = find_chapters(ROOT)
    for path in (ROOT / FOLDER).glob("*.json"):
        if path.stem not in {chapter.stem for chapter in chapters}:
            path.unlink()
    for chapter in chapters:
        if write(chapter):
            print(FOLDER / f"{chapter.stem}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
