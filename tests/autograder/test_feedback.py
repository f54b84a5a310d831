"""What a student reads: what passed, what failed and why, nothing hidden, nothing that runs."""

import re
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.api import Gradebook

from autograder.authoring.chapters import grade_id
from autograder.authoring.course_folder import Sheet
from autograder.authoring.release import Release
from autograder.authoring.scoring import score
from autograder.errors import CourseError
from autograder.grading.grade import write
from autograder.grading.gradebook import Book
from autograder.grading.merge import merge
from autograder.grading.outputs import clean_html, error_shown, inert, safe_markdown
from autograder.grading.submission import Graded
from autograder.pages.feedback import page, said, write_feedback

BOOK = "https://book.example"
SCRIPT = "<script>alert(1)</script>"
SQUARED = "ch99.double: 1 of 3 points.\n- any shape: double(float32 (3,)): 3 of 3 numbers are off, most at [1]: 0.5 was expected, 0.25 came. Read: Doubling (#doubling).\nWhat you wrote gives the same as this mistake: You squared. Read: Doubling (#doubling)."


def result(points: float):
    return new_output("execute_result", {"text/plain": repr(points)}, execution_count=1)


def printed(text: str):
    return new_output("stream", name="stdout", text=text)


def failed(text: str, ename: str = "CheckFailed", traceback: tuple = ()):
    return new_output("error", ename=ename, evalue=text, traceback=list(traceback) or text.splitlines())


ALL_RIGHT = {
    "ch99-double": [printed("ch99.double: 3 of 3 points.\n"), result(3.0)],
    "ch99-three": [printed("ch99.three: 1 of 1 points.\n"), result(1.0)],
    "ch99-letter": [printed("ch99.letter: 1 of 1 points.\n"), result(1.0)],
}


@pytest.fixture
def graded(toy, perfect):
    """graded(outputs by id, prepare=…): the notebook of somebody who has everything right but for these outputs."""

    def graded(outputs: dict | None = None, prepare=lambda hand_in: None):
        prepare(perfect)
        notebook = merge(toy, perfect.notebook).notebook
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = {**ALL_RIGHT, **(outputs or {})}.get(grade_id(cell), []), 1
        return notebook

    return graded


@pytest.fixture
def shown(toy, graded):
    """shown(outputs by id, …): the page of such a notebook."""

    def shown(outputs: dict | None = None, prepare=lambda hand_in: None, flags=(), comments=None, penalty=0.0):
        notebook = graded(outputs, prepare)
        notebook.metadata.autograder = {"seed": 1, "flags": list(flags)}
        grades = {}
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader", {}).get("grade"):
                points = None if grade_id(cell) == "ch99-why" else score(cell)
                grades[grade_id(cell)] = SimpleNamespace(
                    needs_manual_grade=points is None, manual_score=None, auto_score=points, score=points or 0.0
                )
        return page(toy, "ada", grades, comments or {}, notebook, BOOK, penalty)

    return shown


def article(text: str, name: str) -> str:
    """What the page says of one exercise, without tags."""
    inside = re.search(rf'<article [^>]*id="ch99-{name}".*?</article>', text, re.DOTALL).group()
    return " ".join(re.sub(r"<[^>]+>", " ", inside).split())


def test_who_has_everything_right_sees_every_part_passed(shown):
    told = article(shown(), "double")
    assert "3 of 3 points" in told and "All tests pass." in told
    assert re.findall(r"(Passed|Failed): (.+?)(?= ✓| ✗| Your answer)", told) == [
        ("Passed", "the example"),
        ("Passed", "any shape · 2 points"),
        ("Passed", "the argument · 1 point"),
    ]


def test_who_failed_sees_what_passed_what_failed_and_the_misconception(shown):
    text = shown({"ch99-double": [printed(SQUARED), result(1.0)]})
    told = article(text, "double")
    assert "1 of 3 points" in told and "Passed: the example" in told and "Failed: any shape · 2 points" in told
    assert "0.5 was expected, 0.25 came" in told
    assert "What you wrote gives the same as this mistake You squared. Read: Doubling ." in told
    assert f'<a href="{BOOK}/ch99_toy/ch99_toy.html#doubling">Doubling</a>' in text


def test_a_failure_without_a_link_names_the_section_it_was_taught_in(shown):
    text = shown({"ch99-letter": [failed("ch99.letter: 0 of 1 points.\n- the right one: letter = 'A' is not right.")]})
    assert "Read: Doubling ." in article(text, "letter") and "Read:" not in article(text, "three")


def test_what_is_not_written_yet_is_said_once(shown):
    lines = [
        f"- {part}: double(2.0): not written yet (NotImplementedError)." for part in ("the example", "any shape", "the argument")
    ]
    told = article(shown({"ch99-double": [failed("\n".join(["ch99.double: 0 of 3 points.", *lines]))]}), "double")
    assert "You have not written this yet." in told and "NotImplementedError" not in told


def test_what_every_part_says_is_said_once(shown):
    lines = [f"- {part}: `double` does not exist yet." for part in ("the example", "any shape", "the argument")]
    text = shown({"ch99-double": [failed("\n".join(["ch99.double: 0 of 3 points.", *lines]))]})
    told = article(text, "double")
    assert told.count("does not exist yet.") == 1 and told.count("As above.") == 2 and told.count("Failed:") == 3


def test_the_limit_that_was_hit_is_told(shown):
    text = "This cell did not run: stopped after 300 s."
    told = article(shown({"ch99-three": [failed(text, "NotRun")]}), "three")
    assert "did not run to its end, so it gives no points. NotRun: This cell did not run: stopped after 300 s." in told
    assert "Passed" not in told and "0 of 1 point" in told


def test_the_error_of_an_answer_and_of_a_cell_of_ones_own_is_shown(toy, shown, graded):
    trace = ["\x1b[31mZeroDivisionError\x1b[0m", "----> 1 letter = 1 / 0", "ZeroDivisionError: division by zero"]
    told = article(shown({"ch99-letter-answer": [failed("division by zero", "ZeroDivisionError", trace)]}), "letter")
    assert "Your answer’s cell stopped with an error: ZeroDivisionError ----&gt; 1 letter = 1 / 0" in told and "\x1b" not in told
    notebook = graded(prepare=lambda hand_in: hand_in.insert("ch99-three-answer", "1 / 0"))
    (own,) = [cell for cell in notebook.cells if cell.metadata.get("tags") == ["own"]]
    own.outputs = [failed("division by zero", "ZeroDivisionError", ["----> 1 1 / 0"])]
    told = article(page(toy, "ada", {}, {}, notebook, BOOK), "three")
    assert "A cell of your own before this exercise stopped with an error: ----&gt; 1 1 / 0" in told


def test_a_verdict_that_a_student_printed_is_not_believed():
    forged = "ch99.double: 3 of 3 points.\n- look: all is well\n"
    told = said(new_code_cell(outputs=[printed(forged), failed("ch99.double: 0 of 3 points.\n- any shape: wrong")]))
    assert told.failures == ["any shape: wrong"] and "look: all is well" in told.printed
    told = said(new_code_cell(outputs=[printed(forged + SQUARED), result(1.0)]))
    assert len(told.failures) == 1 and told.named.endswith("You squared. Read: Doubling (#doubling).")


def test_a_verdict_without_a_score_is_no_result(shown):
    told = article(shown({"ch99-double": [printed("ch99.double: 3 of 3 points."), failed("", "KeyboardInterrupt")]}), "double")
    assert "0 of 3 points" in told and "Passed" not in told


@pytest.mark.parametrize(
    "trace",
    [
        ("Cell In[9], line 9\n----> 9 hidden = f(3)",),
        ("Cell In[9], line 9\n      8 secret_name = 1\n----> 9     return x + x",),
    ],
)
def test_of_a_traceback_through_the_tests_only_the_students_frames_are_shown(trace):
    own = "Cell In[4], line 2, in double(x)\n      1 def double(x):\n----> 2     return x + x"
    error = failed("unsupported", "TypeError", [*trace, own])
    assert error_shown(error, "def double(x):\n    return x + x") == f"{own}\nTypeError: unsupported"


@pytest.mark.parametrize(
    "text",
    [
        "\nNot equal to tolerance rtol=1e-07\n\nMismatched elements: 1 / 3\n ACTUAL: array([1, 2, 3])\n DESIRED: array([1, 2, 77])",
        "Not equal\n x: array([1, 2, 3])\n y: array([1, 2, 77])",
        "Scalars are not close!\n\nExpected 77 but got 2.",
        "3 != 77 : look again",
        "assert 3 == 77",
        "Lists differ: [1] != [77]\n\n- [1]\n+ [77]",
    ],
)
def test_expected_values_of_other_test_libraries_are_left_out(text):
    assert "77" not in error_shown(failed(text, "AssertionError"), "")


@pytest.mark.parametrize("text", ["the rows do not sum to one", "You left the first row out.", "xs is empty"])
def test_the_message_that_an_author_wrote_for_students_stays(text):
    assert error_shown(failed(text, "AssertionError"), "") == f"AssertionError: {text}"


def test_no_hidden_line_and_no_mark_scheme_is_shown(shown):
    trace = ["Cell In[9]\n----> 5         check(double).agrees_with(lambda secret_name: secret_name + secret_name)"]
    text = shown({"ch99-double": [failed("boom", "RuntimeError", trace)]})
    assert "secret_name" not in text and "Two points for the word" not in text


def test_what_a_student_wrote_printed_or_drew_is_inert(shown):
    picture = new_output("display_data", {"image/svg+xml": f"<svg onload='alert(1)'>{SCRIPT}</svg>", "text/plain": ""})
    html = new_output("display_data", {"text/html": SCRIPT, "text/plain": "<b>bold</b>"})
    fake = new_output("display_data", {"image/png": f'"/>{SCRIPT}', "text/plain": "png"})
    error = failed(SCRIPT, SCRIPT, [SCRIPT])
    text = shown(
        {
            "ch99-double-answer": [printed(SCRIPT), picture, html, fake],
            "ch99-three-answer": [error],
            "ch99-letter": [printed(f"{SCRIPT}\n"), failed(f"ch99.letter: 0 of 1 points.\n- {SCRIPT}: `{SCRIPT}`")],
        },
        prepare=lambda hand_in: hand_in.answer(why=SCRIPT),
        flags=[SCRIPT],
        comments={"ch99-why": SCRIPT},
    )
    assert "<script" not in text and text.count("&lt;script&gt;") >= 8
    assert "<svg" not in text and '<img src="data:image/svg+xml;base64,' in text and "image/png" not in text
    assert "default-src 'none'" in text


def test_a_page_asks_nothing_of_the_network(shown):
    assert re.findall(r'(?:src|href|url)[=(]"(?!#|data:|https://book\.example/)', shown()) == []


def test_notes_comments_and_what_waits_are_shown(shown):
    text = shown(flags=["a cell was joined"], comments={"ch99-why": "Say <why>.", "ch99-double-answer": "Neat."}, penalty=1.5)
    assert "<strong>3.5 of 7 points</strong> so far: your teacher has yet to read 1 answer<" in text
    assert "1.5 points were taken off because you handed in late." in text and "Note: a cell was joined." in text
    assert "Your teacher: Say &lt;why&gt;." in article(text, "why") and "Your teacher: Neat." in article(text, "double")
    assert "to be read" in article(text, "why")


def test_an_exercise_newer_than_the_grading_waits(toy, graded):
    notebook = graded()
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) != "ch99-three"]
    assert "to be read" in article(page(toy, "ada", {}, {}, notebook, BOOK), "three")


# ---------------------------------------------------------------- from the gradebook


@pytest.fixture
def book(toy, make, graded):
    """A gradebook with one graded submission, of somebody named ada."""
    chapter = make()
    book = Book(chapter.root)
    book.register(chapter, Release.of(chapter))
    notebook = graded({"ch99-double": [printed(SQUARED), result(1.0)]})
    write(book, [Graded("ada", chapter, notebook, {"ch99-double": 1.0, "ch99-three": 1.0, "ch99-letter": 1.0, "ch99-why": None})])
    return chapter, book


def test_pages_carry_what_to_read_where_no_book_is_published(book):
    chapter, gradebook = book
    (path,) = write_feedback(chapter, gradebook.db_url)
    assert path == chapter.root / "feedback" / "ada" / "ch99_toy" / "ch99_toy.html"
    text = path.read_text()
    assert "<strong>3 of 7 points</strong> so far" in text
    assert 'Read: <a href="#read-doubling">Doubling</a>' in text and 'id="read-doubling"' in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text), "nothing leads to the teacher's disk"


def test_pages_link_to_the_book_that_the_configuration_names(book):
    chapter, gradebook = book
    with (chapter.root / "nbgrader_config.py").open("a") as file:
        file.write(f'c.Course.book_url = "{BOOK}/"\n')
    (path,) = write_feedback(chapter, gradebook.db_url)
    text = path.read_text()
    assert f'href="{BOOK}/ch99_toy/ch99_toy.html#doubling"' in text and 'id="read-' not in text


def test_a_manual_score_and_a_comment_are_shown(book):
    chapter, gradebook = book
    with Gradebook(gradebook.db_url) as open_book:
        written = open_book.find_grade("ch99-why", chapter.stem, chapter.stem, "ada")
        written.manual_score, written.needs_manual_grade, written.extra_credit = 1.5, False, 0.5
        open_book.find_comment("ch99-why", chapter.stem, chapter.stem, "ada").manual_comment = "Say <why>."
        open_book.db.commit()
    text = write_feedback(chapter, gradebook.db_url)[0].read_text()
    assert "<strong>5 of 7 points</strong></p>" in text and "Your teacher: Say &lt;why&gt;." in text


def test_a_chapter_that_was_not_graded_is_told(toy, tmp_path):
    with pytest.raises(CourseError, match="not in the gradebook"):
        write_feedback(toy, f"sqlite:///{tmp_path}/empty.db")


# ---------------------------------------------------------------- what a teacher opens


@pytest.mark.parametrize(
    "html",
    [
        SCRIPT,
        "<script>alert(1)",
        "<b onclick='alert(1)'>b</b>",
        "<img src=x onerror=alert(1)>",
        "<img src='https://elsewhere.example/pixel.png'>",
        "<img src='data:text/html;base64,PHNjcmlwdD4='>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<svg/onload=alert(1)>",
        "<a href='javascript:alert(1)'>a</a>",
        "<a href=' JaVaScRiPt:alert(1)'>a</a>",
        "<a href='data:text/html,<script>alert(1)</script>'>a</a>",
        "<style>@import 'https://elsewhere.example/x.css'</style>",
        "<div style='background:url(https://elsewhere.example)'>d</div>",
        "<form action='https://elsewhere.example'><input></form>",
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
        "<base href='https://elsewhere.example'>",
        "<scr<script>ipt>alert(1)</script>",
    ],
)
@pytest.mark.parametrize("clean", [clean_html, lambda text: safe_markdown({}, text)])
def test_nothing_in_html_runs_or_loads(html, clean):
    tags = re.findall(r"<[^>]*>", clean(html))
    allowed = r'</?(b|p|a|div|table|tbody|img|h1)>|<img alt="[^"<>]*">'
    assert [tag for tag in tags if not re.fullmatch(allowed, tag)] == []


def test_a_table_and_an_embedded_picture_stay():
    table = '<table><tr><td colspan="2">1</td></tr></table>'
    assert clean_html(table).replace("<tbody>", "").replace("</tbody>", "") == table
    picture = '<img alt="a" src="data:image/png;base64,iVBORw0KGgo=">'
    assert clean_html(picture) == picture
    assert "$a &lt; b$" in safe_markdown({}, "so $a < b$")
    pasted = {"cell": {"attachments": {"page.png": {"image/png": "iVBORw0KGgo="}, "bad.png": {"image/png": "x' onerror='1"}}}}
    assert safe_markdown(pasted, "![a](attachment:page.png)") == '<p><img src="data:image/png;base64,iVBORw0KGgo=" alt="a"></p>\n'
    assert safe_markdown(pasted, "![b](attachment:bad.png)") == '<p><img alt="b"></p>\n'


def test_outputs_keep_what_is_safe_and_lose_the_rest():
    many = new_output(
        "display_data",
        {
            "text/plain": "x",
            "text/html": f"<b>x</b>{SCRIPT}",
            "text/markdown": SCRIPT,
            "application/javascript": "alert(1)",
            "application/vnd.jupyter.widget-view+json": {"model_id": "x"},
            "image/png": "iVBORw0KGgo=\n",
            "image/jpeg": "'onerror=alert(1)",
        },
        metadata={"image/png": {"width": "1 onerror=alert(1)"}, "text/html": {"isolated": True}},
    )
    kept, number, stream = inert([many, result(2.0), printed(SCRIPT)])
    assert kept.data == {"text/plain": "x", "text/html": "<b>x</b>", "image/png": "iVBORw0KGgo=\n"} and kept.metadata == {}
    assert number == result(2.0) and stream == printed(SCRIPT)  # nbconvert escapes streams itself
    assert inert([kept]) == [kept]
    nbformat.validate(nbformat.v4.new_notebook(cells=[new_code_cell(outputs=[kept, number, stream])]))


def test_html_that_is_too_long_is_shown_as_its_plain_text():
    long = new_output("display_data", {"text/plain": "x", "text/html": "<b>" * 100_000})
    assert inert([long])[0].data == {"text/plain": "x"}


def test_a_notebook_of_another_course_has_a_page_too(tmp_path):
    """Plain asserts, a task for a teacher, no header and no book."""
    given = {
        "grade": True,
        "grade_id": "test_f",
        "locked": True,
        "points": 2,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }
    task = {"grade": False, "grade_id": "poem", "locked": True, "points": 6, "schema_version": 3, "solution": False, "task": True}
    test = new_code_cell("assert f(1) == 77", metadata={"nbgrader": given})
    cells = [new_markdown_cell("# Functions\n\n## One"), test, new_markdown_cell("A poem.", metadata={"nbgrader": task})]
    (tmp_path / "source" / "ps1").mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()")
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "source" / "ps1" / "p1.ipynb")
    sheet = Sheet(tmp_path, "ps1", "p1")
    notebook = nbformat.from_dict(sheet.notebook)
    notebook.cells[1].outputs = [failed("assert 3 == 77", "AssertionError", ["----> 1 assert f(1) == 77"])]
    zero = SimpleNamespace(needs_manual_grade=False, manual_score=None, auto_score=0.0, score=0.0)
    text = page(sheet, "ada", {"test_f": zero}, {"poem": "Rhymes."}, notebook, BOOK)
    assert "0 of 2 points" in text and "77" not in text and "href=" not in text.replace('href="#', "")
    assert "to be read" in text and "Your teacher: Rhymes." in text
