"""What of a student's graded work goes where, when their hand-in is filed under another name."""

import shutil

from autograder.authoring.course_folder import Sheet
from autograder.grading.gradebook import Book


def bring_along(book: Book, stem: str, old: str, new: str) -> bool:
    """Give what a student got for an assignment, with the graded notebooks and feedback, to the student as whom it is filed now.

    Returns:
        Whether that was done; False if the other one has scores already, which then both stay.
    """
    if not book.rename(stem, old, new):
        return False
    sheet = Sheet(book.root, stem, stem)
    for step in ("autograded", "feedback"):
        source, target = sheet.folder(step, old), sheet.folder(step, new)
        if source.is_dir() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(source, target)
            if not any(source.parent.iterdir()):
                source.parent.rmdir()
    return True
