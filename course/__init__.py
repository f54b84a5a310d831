"""The reference code of The Mathematics of Transformers, one module a chapter."""

from importlib.metadata import distributions as _installed

# What pyproject.toml says, as it was installed: the project, or the students' zip
_NAMES = ("mathematics-of-transformers", "mathematics-of-transformers-student")
__version__ = next((found.version for name in _NAMES for found in _installed(name=name)), "unknown (not installed)")
