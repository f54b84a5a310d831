"""What a teacher sets for a course in `nbgrader_config.py`, as `c.Course.…`."""

from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from traitlets import Enum, TraitError, Unicode
from traitlets.config import Configurable

from autograder.authoring.release import course_config
from autograder.errors import CourseError
from autograder.grading.attempts import LAST, POLICIES


class Course(Configurable):
    """The settings, with their values without one."""

    attempts = Enum(POLICIES, LAST, help="Which attempt of a student counts.").tag(config=True)
    timezone = Unicode("", help="That of the times in Moodle's worksheets, such as Europe/Berlin; this machine's without.").tag(
        config=True
    )
    book_url = Unicode("", help="Where students read the book, https://…; without it pages carry the sections' text.").tag(
        config=True
    )

    @property
    def zone(self) -> tzinfo | None:
        """The zone, or None for this machine's."""
        return ZoneInfo(self.timezone) if self.timezone else None


def settings(root: Path) -> Course:
    """The settings of a course folder.

    Raises:
        CourseError: if one has a value that cannot be.
    """
    try:
        found = Course(config=course_config(root))
        _ = found.zone
    except TraitError as error:
        raise CourseError(f"nbgrader_config.py: c.Course: {error}") from None
    except (ValueError, OSError, LookupError):
        raise CourseError("nbgrader_config.py: c.Course.timezone is no time zone; write one such as 'Europe/Berlin'") from None
    if found.book_url and not found.book_url.startswith(("https://", "http://")):
        raise CourseError(f"nbgrader_config.py: c.Course.book_url has to begin with https://, not be {found.book_url!r}")
    found.book_url = found.book_url.rstrip("/")
    return found
