"""Where the terms of the glossary stand in the chapters."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.authoring.chapters import Chapter, slug, without_regions
from book.registry import Registry, Term

UNREAD = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)|<[^>\n]+>", re.DOTALL)


@dataclass(frozen=True)
class Places:
    """Where one term stands."""

    heading: str = ""  # of the section that introduces it; empty if the book has no such chapter
    section: str = ""  # that section's anchor
    used: tuple[str, ...] = ()  # the other chapters that have it, by stem


def places(registry: Registry, chapters: Iterable[Chapter]) -> dict[str, Places]:
    """For each term: the section that has it in bold first, and the other chapters whose text has it."""
    pattern, owner = _pattern(registry.terms.values())
    used: dict[str, list[str]] = {term: [] for term in registry.terms}
    first: dict[str, tuple[str, str]] = {}
    for chapter in chapters:
        for term in _found(prose(chapter), pattern, owner):
            if registry.terms[term].chapter != chapter.stem:
                used[term].append(chapter.stem)
        for term, heading in _introduced(chapter, registry, pattern, owner):
            first.setdefault(term, (heading, slug(heading)))
    return {term: Places(*first.get(term, ("", "")), tuple(used[term])) for term in registry.terms}


def prose(chapter: Chapter) -> str:
    """A chapter's text without its rubrics."""
    return "\n\n".join(without_regions(c.source, "MARK SCHEME") for c in chapter.notebook.cells if c.cell_type == "markdown")


def terms_in(text: str, registry: Registry) -> list[str]:
    """The terms of the glossary that a text names, by any of their names and outside of code and mathematics."""
    return list(_found(text, *_pattern(registry.terms.values())))


def _pattern(terms: Iterable[Term]) -> tuple[re.Pattern, dict[str, str]]:
    """One pattern for all names, the longest first, and the term of each name. A short or capital name keeps its case."""
    owner = {_key(name): term.term for term in terms for name in (term.term, *term.also)}
    names = sorted(owner, key=len, reverse=True)
    forms = [re.escape(name) if _exact(name) else f"(?i:{re.escape(name)})" for name in names]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(forms) or '(?!)'})(?:s|es)?(?![\w-])"), owner


def _exact(name: str) -> bool:
    return len(name) < 4 or name[1:] != name[1:].lower()


def _key(name: str) -> str:
    return name if _exact(name) else name.lower()


def _found(text: str, pattern: re.Pattern, owner: dict[str, str]) -> dict[str, None]:
    found = {}
    for match in pattern.findall(UNREAD.sub(" ", text)):
        for name in (match, match.removesuffix("s"), match.removesuffix("es")):
            if term := owner.get(_key(name)):
                found[term] = None
                break
    return found


def _introduced(chapter: Chapter, registry: Registry, pattern: re.Pattern, owner: dict[str, str]):
    """The chapter's own terms with the heading under which each is bold first."""
    heading = chapter.title
    for block in re.split(r"(?m)^(?=#{1,4} )", prose(chapter)):
        if title := re.match(r"#{1,4} (.+)", block):
            heading = title[1].strip()
        for bold in re.findall(r"\*\*([^*\n]+)\*\*", block):
            for term in _found(bold, pattern, owner):
                if registry.terms[term].chapter == chapter.stem:
                    yield term, heading
