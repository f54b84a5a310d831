"""Grading for notebooks, as a plug for nbgrader."""

import sys

# nbformat imports jsonschema, which would compile a grammar of internet addresses: a second, for nothing.
sys.modules.setdefault("rfc3987_syntax", None)


def __getattr__(name: str) -> str:
    """`autograder.__version__` is the course's."""
    if name != "__version__":
        raise AttributeError(f"module 'autograder' has no attribute {name!r}")
    import course

    return course.__version__
