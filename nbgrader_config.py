"""The course as nbgrader sees it. `nbgrader`, formgrader and `autograder` all read this file."""

c = get_config()  # noqa: F821  (given by traitlets)

c.CourseDirectory.course_id = "mathematics-of-transformers"
# answers.py holds right and wrong answers: it is never released, and never copied beside a submission.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache", "answers.py"]
c.Exchange.path_includes_course = False

c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.LockCells",
    "autograder.preprocessors.ClearSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "autograder.preprocessors.RunPastErrors",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# c.Course.book_url = "https://…"  # where students read the book; without it feedback pages carry the sections to read
# c.Course.attempts = "last"  # which attempt counts: last, best, last-before-due
# c.Course.timezone = "Europe/Berlin"  # of the times in Moodle's grading worksheet; this machine's without it
# A submission is read tolerantly, merged with the source, and run by the grading daemon: split and sandboxed.
c.Autograde.exporter_class = "autograder.dropin.Submissions"
c.Autograde.sanitize_preprocessors = [
    "autograder.dropin.Merge",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "autograder.dropin.Execute",
    "autograder.preprocessors.FailClosed",
    "autograder.preprocessors.Inert",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# c.Execute.sandbox = "none"  # where the kernel allows no sandbox; `autograder doctor` tells
# c.Execute.call_limit = 10  # seconds of processor time of one call by a test; cell_limit and notebook_limit likewise
# c.Execute.patience = 4  # times a limit on the clock, for what sleeps or hangs

# What students wrote does not run in the browser of the person who grades it.
c.HTMLExporter.preprocessors = ["autograder.preprocessors.Inert"]
c.HTMLExporter.filters = {"markdown2html": "autograder.outputs.safe_markdown"}

c.GenerateFeedback.exporter_class = "autograder.feedback.FeedbackPage"
c.GenerateFeedback.preprocessors = []
