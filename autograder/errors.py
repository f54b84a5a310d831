"""What goes wrong for a reason that the person at the keyboard can mend."""


class CourseError(Exception):
    """Something about the course or a submission that the person at the keyboard can mend."""


class SandboxError(CourseError):
    """This machine does not allow a part of the sandbox."""

    code = 5

    def __init__(self, part: str, why: str):
        self.part, self.why = part, why
        super().__init__(
            f"the sandbox cannot be set up: this machine does not allow {part} ({why}). `autograder doctor` tells what is "
            "missing; `--sandbox=none` would run student code without the sandbox."
        )
