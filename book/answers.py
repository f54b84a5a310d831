"""How a reader answers an exercise: in the page, where it can judge the answer, and in the notebook.

As a Sphinx extension it gives a chapter's page what answers and progress need: `judging.js`, `answers.js`, and the chapter's name.
"""

import json
import re

from markupsafe import Markup

from autograder.authoring.chapters import Chapter, Exercise
from book.render import render


def form(chapter: Chapter, exercise: Exercise, anchor: str, sealed: dict | None) -> str:
    """The end of an exercise's card, as HTML without an empty line.

    Args:
        chapter: names the notebook; a chapter without a release has no link to it.
        exercise: the cells are places in the source notebook, whose order the release keeps.
        anchor: of the exercise on its page.
        sealed: what `book.sealing` has of it; None if the page cannot judge it.
    """
    island = json.dumps(sealed, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return render(
        "answer.html",
        id=exercise.id,
        anchor=anchor,
        sealed=sealed,
        island=Markup(island),
        cell=exercise.answer + 1,
        name=chapter.release.name if chapter.release.exists() else None,
    )


def add(app, pagename, templatename, context, doctree):
    """Name the chapter and its number of exercises in the page's head, and load the scripts where there is something to answer."""
    folder, _, name = pagename.partition("/")
    if doctree is None or folder != name:
        return
    exercises = len(re.findall(r'class="answer"', context["body"]))
    context["metatags"] += f'<meta name="course-chapter" content="{folder}" data-exercises="{exercises}">'
    if exercises:
        for script in ("judging.js", "answers.js"):
            app.add_js_file(script, priority=900, defer="defer")  # after progress.js, which is on every page


def setup(app):
    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
