"""What chapters are called."""

import re


def place(stem: str) -> str:
    """How a chapter is called above its title: "Chapter 4" for ch04_…, "Foundations 3" for f03_…; empty for other pages."""
    match = re.match(r"(ch|f)(\d+)_", stem)
    return f"{ {'ch': 'Chapter', 'f': 'Foundations'}[match[1]] } {int(match[2])}" if match else ""


def number(stem: str) -> str:
    """A chapter's number in a list: 4 for ch04_…, F3 for f03_…"""
    kind, digits = re.match(r"([a-z]*)(\d*)", stem).groups()
    return f"{'' if kind == 'ch' else kind.upper()}{int(digits or 0)}"
