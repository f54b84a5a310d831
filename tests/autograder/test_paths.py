"""No path of the machine that grades reaches a student."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

import course
from autograder.engine.paths import shorten
from autograder.pages.feedback import page

ROOT = Path("/srv/a course")
SITE, STDLIB = sysconfig.get_paths()["purelib"], sysconfig.get_paths()["stdlib"]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (f"File {SITE}/torch/nn/functional.py:12, in f(x)", "File torch/nn/functional.py:12, in f(x)"),
        (f'File "{STDLIB}/json/decoder.py", line 3', 'File "json/decoder.py", line 3'),
        (f"({course.__file__})", "(course/__init__.py)"),
        (f"{ROOT}/source/ch04/x.csv is missing", "source/ch04/x.csv is missing"),
        (f"['', '{SITE}', 3]", "['', '…', 3]"),
        (f"file://{SITE}/torch/a.py", "torch/a.py"),
        ("<ipython-input-3-37d8c793cab8>:3: UserWarning: mine", "<your answer>:3: UserWarning: mine"),
        ("File <your answer 37d8c7>:2, in half", "File <your answer>:2, in half"),
        (f"/another{SITE}/torch", f"/another{SITE}/torch"),
        (f"{ROOT}s/b and 2{ROOT}/c", f"{ROOT}s/b and 2{ROOT}/c"),
        ("/usr/bin/env /tmp/notebook/a.txt 1/2", "/usr/bin/env /tmp/notebook/a.txt 1/2"),
    ],
)
def test_what_a_student_knows_of_a_path_is_left(text, short):
    assert shorten(text, ROOT) == short


def test_the_home_folder_is_cut_however_it_is_written(monkeypatch):
    monkeypatch.setenv("HOME", "/home/teacher")
    text = "/home/teacher/a.py ~/lib/python/b.py ~/courses/t/source/c.py ~/other/d.py"
    root = Path("/home/teacher/courses/t")
    assert shorten(text, root) == "a.py ~/lib/python/b.py source/c.py ~/other/d.py"


TELLING = [
    "import json\njson.loads('x')",
    "torch.nn.functional.softmax('x')",
    "from course.checks import nothing",
    "import sys, course\nprint(sys.executable, torch.__file__, course.__file__, sys.path, sys.prefix)\ncourse",
    "import warnings\nwarnings.warn('mine')\nwarnings.warn_explicit('theirs', UserWarning, torch.__file__, 3)",
    "%pip list",
    "torch.load('nothing')",
    "torch.nn.functional.softmax??",
    "%nothing\n%load_ext nothing\n%tb",
]


def test_no_page_has_a_path_of_the_machine(perfect):
    """Tracebacks, messages, warnings and prints, of own cells and of answers that are tested."""
    for source in TELLING:
        perfect.insert("ch99-three", source)
    body = "    warnings.warn('in a test')\n    print(torch.__file__)\n    from course.checks import nothing\n"
    perfect.answer(
        double=f"import warnings\ndef double(x):\n{body}",
        three="three = type('T', (), {'__init__': lambda self: torch.nn.functional.linear(1, 2)})()",
        letter="import torch\nletter = torch.__file__",
    )
    perfect.run()
    perfect.graded.metadata.autograder = {"flags": perfect.flags}
    text = page(perfect.chapter, "ada", {}, {}, perfect.graded, "book") + str([c.get("outputs") for c in perfect.graded.cells])
    for place in (
        sys.prefix,
        sys.base_prefix,
        SITE,
        STDLIB,
        os.path.dirname(course.__file__),
        perfect.chapter.root,
        torch.__file__,
    ):
        assert str(place) not in text, text[text.index(str(place)) - 300 :][:600]
    assert "torch/nn/functional.py" in text and "json/decoder.py" in text and "course/checks/__init__.py" in text
