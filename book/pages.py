"""A reader's page from a chapter's source notebook: no hidden tests, solutions only on demand."""

import html
import re
from copy import deepcopy

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme

from autograder.authoring.chapters import HEADER, Chapter, Exercise, regions, tags
from autograder.authoring.preprocessors import ClearSolutions
from autograder.authoring.release import course_config
from book import answers, elsewhere, figures, follow, sealing, transformer_map
from book.registry import Registry
from book.render import render
from book.still import StillError, has_module, island, still
from book.tables import MARK, receipt_link, table
from course.widgets import MIME

FORMULA_LINE = re.compile(r"^\*Formula ([\w-]+)\.\*$", re.MULTILINE)
FORMULA_LIKE = re.compile(r"^\W*Formulas? [a-z0-9]+[\w-]*\.?\*+\s*$", re.MULTILINE)
CHAPTER_LINK = re.compile(r"\]\((\.\./(\w+)/\w+\.ipynb)(?:#[^)]*)?\)")
EQUATION = re.compile(r"^\$\$\n([^$]+)\n\$\$\s*\n\*Formula ([\w-]+)\.\*[ \t]*$", re.MULTILINE)
DISPLAY = re.compile(r"(```.*?```|`[^`\n]+`)|(?<![$\\])\$\$([^$]+)\$\$", re.DOTALL)
DETAILS = re.compile(r"<details>\s*<summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
PROTECTED = re.compile(r"(```.*?```|`[^`\n]+`|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>)", re.DOTALL)
TIME = re.compile(r"^\*\*Time\*\* (\d+) minutes to read · (\d+) minutes of exercises[ \t]*$", re.MULTILINE)
BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


class PageError(Exception):
    """A chapter's notebook that cannot become a page; each line says what to mend."""


def page(chapter: Chapter, registry: Registry, there: set[str], *, solutions: bool = False) -> NotebookNode:
    """The notebook that the book shows for a chapter.

    Args:
        chapter: where the source notebook is.
        registry: the formulas and terms that the text names.
        there: the chapters of the book, which links may point to.
        solutions: whether a folded solution follows each answer cell.

    Raises:
        PageError: every unknown formula, dead link and missing text alternative.
        RegistryError: if the section that its stage of the sentence belongs to is gone.
    """
    source = chapter.notebook
    exercises = {part: (exercise, role) for exercise in chapter.exercises for part, role in _parts(exercise)}
    cells, problems, linked = [], [], set()
    numbers, figure_numbers = equation_numbers(chapter), figures.numbered(chapter)
    sealed = sealing.sealed(chapter)
    for number, cell in enumerate(cleared(chapter).cells):
        exercise, role = exercises.get(number, (None, None))
        where = f"{chapter.stem}, cell {number}"
        cell.metadata = NotebookNode({"tags": tags(cell), **{k: v for k, v in cell.metadata.items() if k in ("alt", "caption")}})
        if cell.cell_type == "markdown":
            problems += [f"{where}: {problem}" for problem in _problems(cell.source, registry, there)]
            if not problems:
                cell.source = _text(cell.source, chapter, registry, linked, numbers, first=number == 0)
            if role == "header":
                cell.source = _header(
                    cell.source, exercise, answers.form(chapter, exercise, anchor(exercise.id), sealed.get(exercise.id))
                )
        else:
            problems += [f"{where}: {problem}" for problem in _code(cell, first=number == 1)]
        if number in figure_numbers:
            problems += [f"{where}: {problem}" for problem in figures.caption(cell, figure_numbers[number])]
        if "map" in tags(cell):
            _fold(cell, "the code of this figure")
            cell.outputs = [new_output("display_data", {"text/html": transformer_map.whole(registry.chapters, there, "../")})]
        if role in ("answer", "test"):
            _dress(cell, exercise, role)
        cells.append(cell)
        if solutions and role == "answer":
            cells.append(solution(source.cells[number], exercise))
    if problems:
        raise PageError("\n".join(problems))
    result = deepcopy(source)
    result.cells = follow.placed(cells, chapter.stem, there)
    result.metadata = NotebookNode(kernelspec=source.metadata.get("kernelspec", {}), language_info={"name": "python"})
    return result


def cleared(chapter: Chapter) -> NotebookNode:
    """The source notebook after nbgrader's preprocessors, without the outputs that could tell an answer.

    Raises:
        PageError: if nbgrader refuses a cell's marks.
    """
    notebook, config = deepcopy(chapter.notebook), course_config(chapter.root)
    for cell in notebook.cells:
        if cell.cell_type == "code" and (_nbgrader(cell, "solution") or _nbgrader(cell, "grade")):
            cell.outputs, cell.execution_count = [], None
    for step in (ClearSolutions, ClearHiddenTests, ClearMarkScheme):
        try:
            notebook, _ = step(config=config).preprocess(notebook, {})
        except RuntimeError as error:
            raise PageError(f"{chapter.stem}: nbgrader cannot clear the notebook: {error}") from error
    return notebook


def _nbgrader(cell: NotebookNode, flag: str) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get(flag))


def _parts(exercise: Exercise):
    yield exercise.header, "header"
    yield exercise.answer, "answer"
    if not exercise.by_hand:
        yield exercise.test, "test"


# ---------------------------------------------------------------- text


def _problems(text: str, registry: Registry, there: set[str]):
    known = FORMULA_LINE.findall(text)
    yield from (
        f"formula {id} is not in book/reference/formulas.yml: add its entry or mend the id"
        for id in known
        if id not in registry.formulas
    )
    if len(FORMULA_LIKE.findall(text)) > len(known):
        yield "a line that names a formula has the form *Formula ch04-scale.* and stands alone"
    for target, slug in CHAPTER_LINK.findall(text):
        if slug not in there or target != f"../{slug}/{slug}.ipynb":
            yield f"the link to {target} is dead: the book has no such chapter; name it without a link until it is there"


def _text(text: str, chapter: Chapter, registry: Registry, linked: set[str], numbers: dict[str, str], first: bool) -> str:
    if text.lstrip().startswith(MARK):
        return table(registry, chapter.stem, links=True)
    text = DETAILS.sub(_folded, text)
    if first:
        text = _lead(text, chapter)
    text = DISPLAY.sub(_display, text)
    text = _link_terms(text, chapter, registry, linked)
    text = EQUATION.sub(lambda m: _equation(m, chapter, registry, numbers), text)
    return FORMULA_LINE.sub(lambda m: _badge(registry, m[1]), text)


def equation_numbers(chapter: Chapter) -> dict[str, str]:
    """The numbers of a chapter's registered formulas in the order of the text: 4.1, 4.2, … in ch04, F3.1, … in f03."""
    kind, number = re.match(r"([a-z]*)(\d*)", chapter.stem).groups()
    prefix = {"ch": "", "f": "F"}.get(kind, kind.upper()) + str(int(number or 0))
    text = "\n".join(cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown")
    return {id: f"{prefix}.{place}" for place, id in enumerate(dict.fromkeys(FORMULA_LINE.findall(text)), start=1)}


def equations(chapter: Chapter) -> dict[str, str]:
    """The numbers of those formulas that stand as numbered rows, where their anchors are: not in a figure or a sentence."""
    numbers = equation_numbers(chapter)
    cells = [DISPLAY.sub(_display, cell.source) for cell in chapter.notebook.cells if cell.cell_type == "markdown"]
    return {id: numbers[id] for cell in cells for _, id in EQUATION.findall(cell) if id in numbers}


def equation_anchor(chapter: Chapter, formula_id: str) -> str:
    """The anchor of a formula on a chapter's page: equation-ch04-scale, or equation-ch09-ch07-rmsnorm for another chapter's."""
    own = formula_id.startswith(f"{chapter.id}-")
    return f"equation-{formula_id if own else f'{chapter.id}-{formula_id}'}"


def _equation(match: re.Match, chapter: Chapter, registry: Registry, numbers: dict[str, str]) -> str:
    """A display formula with its number and its receipt; where the text shows it again, without an anchor of its own."""
    latex, id = match.groups()
    number = numbers.pop(id, "")
    target = f"({equation_anchor(chapter, id)})=\n" if number else ""
    label = f"[({number})]{{.equation-number}} " if number else ""
    return f"{target}::::{{div}} equation\n$$\n{latex}\n$$\n\n{label}{_badge(registry, id)}\n::::"


def _badge(registry: Registry, id: str) -> str:
    formula = registry.formulas[id]
    return receipt_link(formula, formula.receipt)  # its card says the id


def _lead(text: str, chapter: Chapter) -> str:
    """The first cell with the promise and the facts set apart, and the way to the student's notebook."""
    title, _, rest = text.partition("\n")
    promise, _, rest = rest.strip().partition("\n")
    lead = f"{transformer_map.small(chapter.stem)}\n:::{{div}} promise\n{promise.strip('*')}\n:::\n\n{_facts(rest, chapter)}"
    if chapter.release.exists():
        lead += "\n" + render("notebook.html", name=chapter.release.name, stem=chapter.stem, links=elsewhere.links(chapter.stem))
    abilities, builds_on, rest = TIME.sub("", rest).partition("**Builds on**")
    return f"{title}\n\n{lead}\n:::{{div}} abilities\n{abilities.strip()}\n:::\n\n{builds_on}{rest.rstrip()}"


def _facts(text: str, chapter: Chapter) -> str:
    """One line of how long the chapter takes and what it asks for."""
    time = TIME.search(text)
    points = sum(exercise.points for exercise in chapter.exercises)
    count = len(chapter.exercises)
    facts = [f"{time[1]} min to read"] if time else []
    if time and count:
        facts.append(f"{count} exercise{'s' * (count != 1)}, {time[2]} min, {points:g} point{'s' * (points != 1)}")
    return '<ul class="chapter-facts">' + "".join(f"<li>{fact}</li>" for fact in facts) + "</ul>\n"


def _display(match: re.Match) -> str:
    """A display formula as a block of its own: JupyterLab also takes it in the middle of a paragraph, MyST does not."""
    if match[1] or "|" in match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]:  # code, or a table's cell
        return match[0]
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 :]
    indent = " " * len(re.match(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?", line)[0])
    inside = "\n".join(indent + part.strip() for part in match[2].strip().splitlines())
    return f"\n\n{indent}$$\n{inside}\n{indent}$$\n\n{indent}"


def _folded(match: re.Match) -> str:
    """Hints as HTML that both JupyterLab and the book read: here their mathematics and code become Markdown."""
    body = match[2].strip()
    if "\n\n" not in body:  # JupyterLab reads such a body as HTML
        body = re.sub(
            r"<pre>(?:<code>)?\n?(.*?)\n?(?:</code>)?</pre>",
            lambda m: f"\n\n```python\n{html.unescape(m[1])}\n```\n\n",
            body,
            flags=re.DOTALL,
        )
        body = re.sub(
            r"<code>(.*?)</code>",
            lambda m: f"``{html.unescape(m[1])}``" if "`" in m[1] else f"`{html.unescape(m[1])}`",
            body,
            flags=re.DOTALL,
        )
        body = re.sub(r"<br\s*/?>", "\n\n", body)
    return f'<details class="hint"><summary>{match[1]}</summary>\n\n{body.strip()}\n\n</details>\n'


def _link_terms(text: str, chapter: Chapter, registry: Registry, linked: set[str]) -> str:
    """Link each bold glossary term where the chapter first has it."""
    names = {name.casefold(): term for term in registry.terms.values() for name in (term.term, *term.also)}

    def link(match: re.Match) -> str:
        shown = match[1]
        folded = shown.casefold().strip(".,:;")
        term = names.get(folded) or names.get(folded.removesuffix("s"))
        if term is None or term.term in linked or re.search(r"[`$<>\[]", shown):
            return match[0]
        linked.add(term.term)
        return f"**{{term}}`{shown} <{term.term}>`**"

    return "".join(part if i % 2 else BOLD.sub(link, part) for i, part in enumerate(PROTECTED.split(text)))


# ---------------------------------------------------------------- exercises


def anchor(exercise_id: str) -> str:
    """The page's anchor of an exercise: ch04.scaling is exercise-ch04-scaling."""
    return "exercise-" + re.sub(r"[^a-z0-9]+", "-", exercise_id.lower())


def _header(text: str, exercise: Exercise, answer: str) -> str:
    match = HEADER.search(text)
    points = f"{exercise.points:g} point{'s' if exercise.points != 1 else ''}"
    facts = [
        f'<span class="exercise-id">Exercise {exercise.id}</span>',
        f"<span>{points}</span>",
        f'<span role="img" aria-label="difficulty {exercise.stars} of 5">{"★" * exercise.stars}<span class="rest">{"★" * (5 - exercise.stars)}</span></span>',
        f"<span>{exercise.minutes} min</span>",
        f"<span>{exercise.form}</span>",
    ]
    head = f'<p class="exercise-head">{"".join(facts)}</p>'
    return f"({anchor(exercise.id)})=\n:::::{{div}} exercise\n{head}\n\n{(text[: match.start()] + text[match.end() :]).strip()}\n\n{answer}:::::"


def _dress(cell: NotebookNode, exercise: Exercise, role: str) -> None:
    cell.metadata.tags = [*cell.metadata.tags, f"exercise-{role}"]
    if role == "test":
        _fold(cell, "the test that you see")
    elif cell.cell_type == "markdown":
        cell.source = f"::::{{div}} exercise-written\n{cell.source}\n::::"


def solution(cell: NotebookNode, exercise: Exercise) -> NotebookNode:
    """A folded solution, from the answer cell of the source."""
    lines = [line for line in cell.source.splitlines() if not re.search(r"### (BEGIN|END) (SOLUTION|MARK SCHEME)", line)]
    inside = "\n".join(lines)
    if cell.cell_type == "code":
        inside = fenced(inside)
    elif marks := regions(cell.source, "MARK SCHEME"):
        inside = inside.replace(marks[0].strip(), f"**Mark scheme**\n\n{marks[0].strip()}")
    summary = f"<summary>Solution of {exercise.id}</summary>"
    return new_markdown_cell(f'<details class="solution">{summary}\n\n{inside}\n\n</details>')


def fenced(code: str) -> str:
    """Python code as a block of Markdown, whatever backticks it has itself."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}python\n{code}\n{fence}"


# ---------------------------------------------------------------- code cells and their outputs


def _code(cell: NotebookNode, first: bool):
    """Give a code cell its look on the page; yields what is wrong with it."""
    found = tags(cell)
    for output in cell.get("outputs", []):
        output.pop("execution_count", None)
    if first:
        _fold(cell, "the imports")
    if "figure" in found:
        _fold(cell, "the code of this figure")
        if not cell.metadata.get("alt"):
            yield 'a figure has a text alternative: cell metadata "alt"'
        cell.metadata["mystnb"]["image"] = {"alt": cell.metadata.pop("alt", "")}
        for output in cell.outputs:
            if "image/svg+xml" in output.get("data", {}):
                output.data = NotebookNode({"image/svg+xml": output.data["image/svg+xml"]})
    if "widget" in found:
        _fold(cell, "the code of this figure")
        bundles = [output.data[MIME] for output in cell.outputs if MIME in output.get("data", {})]
        if len(bundles) != 1:
            yield "a widget cell has one stored output that is a widget: run the notebook (autograder run)"
            return
        try:
            cell.outputs = [new_output("display_data", {"text/html": widget(bundles[0])})]
        except FileNotFoundError as error:
            yield f"the widget's module is missing: {error}"
        except StillError as error:
            yield str(error)


def _fold(cell: NotebookNode, what: str) -> None:
    cell.metadata.tags = [*cell.metadata.tags, "hide-input"]
    cell.metadata.setdefault("mystnb", NotebookNode()).update(code_prompt_show=f"Show {what}", code_prompt_hide=f"Hide {what}")


def widget(bundle: dict) -> str:
    """The page's copy of a widget: module and state for `widgets.js`; until it runs, and for everybody else, a picture and a text.

    Raises:
        FileNotFoundError: if `course/widgets` has no such module.
        StillError: if the picture cannot be drawn.
    """
    module = bundle["module"]
    if not has_module(bundle):
        raise FileNotFoundError(f"course/widgets/{module}.js")
    return (
        f'<div class="course-widget-host" data-module="{module}">\n{island(bundle)}\n'
        f'<div class="course-alternative"><div class="still-frame">{still(bundle).rstrip()}</div>'
        f"<p>{html.escape(bundle['text'])}</p></div>\n</div>"
    )
