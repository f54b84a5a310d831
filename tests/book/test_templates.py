"""Documents of the book are templates, each used, and none is made with a name that is missing."""

import ast
import re

import pytest
from jinja2 import UndefinedError
from small_course import ROOT

from book.render import render

MODULES = sorted((ROOT / "book").glob("*.py"))
FOLDER = ROOT / "book" / "templates"
LONGEST = 8  # lines of text between quotes; what is longer is a document


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_document_is_a_string_of_python(module):
    tree = ast.parse(module.read_text(encoding="utf-8"))
    documented = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = {id(node.body[0].value) for node in documented if ast.get_docstring(node, clean=False) is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in docstrings:
            text = ast.unparse(node) if isinstance(node, ast.JoinedStr) else str(node.value)
            assert text.count("\n") + text.count(r"\n") <= LONGEST, f"line {node.lineno}: make it a template of book/templates"


def test_each_template_is_used():
    code = "\n".join(path.read_text(encoding="utf-8") for path in (*MODULES, *FOLDER.iterdir()))
    assert {path.name for path in FOLDER.iterdir()} == set(
        re.findall(r'(?:render\(|extends|from|include)\s*"([\w-]+\.\w+)"', code)
    )


def test_a_name_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        render("notebook.html", stem="ch04_attention")


def test_markup_is_escaped_in_html_and_xml_alone():
    assert "a &lt; b" in render("page.xhtml", title="a < b", body="<p>")
    assert "<body><p></body>" in render("page.xhtml", title="", body="<p>")
    given = {"label": "", "about": "", "uses": [], "pictures": [], "results": {}, "facts": {}, "script": ""}
    assert "# Experiment: `a < b`" in render("experiment.md", stem="a < b", **given)
