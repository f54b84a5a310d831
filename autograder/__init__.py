"""Grading for notebooks, as a plug for nbgrader."""

import sys

from course import __version__ as __version__

# nbformat imports jsonschema, which would compile a grammar of internet addresses: a second, for nothing.
sys.modules.setdefault("rfc3987_syntax", None)
