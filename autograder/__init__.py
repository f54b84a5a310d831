"""Grading for notebooks, as a plug for nbgrader."""

import sys
from importlib.metadata import PackageNotFoundError, version

try:  # not from `course`: a teacher's folder may have one of that name
    __version__ = version("mathematics-of-transformers")
except PackageNotFoundError:
    __version__ = "unknown (not installed)"

# nbformat imports jsonschema, which would compile a grammar of internet addresses: a second, for nothing.
sys.modules.setdefault("rfc3987_syntax", None)
