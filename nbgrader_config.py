"""The course as nbgrader sees it. `nbgrader`, formgrader and `autograder` all read this file."""

c = get_config()  # noqa: F821  (given by traitlets)

c.CourseDirectory.course_id = "mathematics-of-transformers"
# answers.py holds right and wrong answers: it is never released, and never copied beside a submission.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache", "answers.py"]
c.Exchange.path_includes_course = False
c.Execute.timeout = 120

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
c.Autograde.autograde_preprocessors = [
    "nbgrader.preprocessors.Execute",
    "autograder.preprocessors.FailClosed",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "autograder.preprocessors.HideTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
