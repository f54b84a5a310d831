"""The registries of `book/reference`: formulas with their receipts, glossary, bibliography, errata, chapters.

Loading validates. What is wrong is collected and raised as one `RegistryError` whose lines say where
and what to do.
"""

import re
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "book" / "reference"


@dataclass(frozen=True)
class Kind:
    """A kind of receipt."""

    means: str  # what is behind a formula that has it
    family: str  # "evidence" names a test, a proof or a record, "claim" none of ours, "correction" one against what others wrote
    strength: int = 0  # a proof may carry the claim of a derivation; a measurement, 0, only its own


KINDS = {
    "proved": Kind("checked by a proof assistant", "evidence", 3),
    "derived": Kind("derived with symbols by a computer algebra system, in a test", "evidence", 2),
    "computed": Kind("equal to an independent computation up to a stated bound, in a test", "evidence", 1),
    "measured": Kind("measured by an experiment of ours, with its script, seeds and interval", "evidence"),
    "reported": Kind("from the literature, cited, not checked here", "claim"),
    "analogy": Kind("a way of seeing, not a claim", "claim"),
    "open": Kind("not known", "claim"),
    "refuted": Kind("claimed by others and shown false by a test", "correction"),
    "erratum": Kind("printed wrong in a text that the course grew from; the test shows the right statement", "correction"),
}
EVIDENCE, CORRECTIONS = (
    tuple(name for name, kind in KINDS.items() if kind.family == family) for family in ("evidence", "correction")
)


class RegistryError(ValueError):
    """One or more entries of a registry are wrong; each line says where and what to do."""


@dataclass(frozen=True)
class Formula:
    """One formula and what stands behind it."""

    id: str
    name: str
    latex: str
    does: str
    chapter: str
    receipt: str
    evidence: str = ""
    shows: str = ""
    limits: str = ""
    source: str = ""
    wrong: str = ""
    right: str = ""


@dataclass(frozen=True)
class Term:
    """One term of the glossary."""

    term: str
    chapter: str
    definition: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """One entry of the bibliography."""

    key: str
    text: str
    url: str


@dataclass(frozen=True)
class Erratum:
    """One error of the texts that the course grew from, and the test that shows what is right."""

    id: str
    chapter: str
    wrong: str
    right: str
    check: str


@dataclass(frozen=True)
class Registry:
    """Everything that the reference pages are made from, in the order of the files."""

    chapters: dict[str, str]  # slug: title
    formulas: dict[str, Formula]
    terms: dict[str, Term]
    sources: dict[str, Source]
    errata: dict[str, Erratum]

    def of(self, chapter: str) -> list[Formula]:
        """The formulas of one chapter."""
        return [formula for formula in self.formulas.values() if formula.chapter == chapter]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # libyaml's, where it is, takes a tenth of the time
    """Safe YAML that refuses a key given twice."""


def _mapping(loader, node):
    names = [key.value for key, _ in node.value]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RegistryError(
            f"{node.start_mark.name}, line {node.start_mark.line + 1}: {', '.join(twice)} is given twice in one entry"
        )
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path):
    """The content of a YAML file.

    Raises:
        RegistryError: if it is missing, is not YAML, or has a key twice in one mapping.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.load(file, _Loader)
    except FileNotFoundError:
        raise RegistryError(f"{path} is missing") from None
    except yaml.YAMLError as error:
        raise RegistryError(f"{path} is not YAML: {error}. Put text with a colon, a backslash or a quote into '…'") from None


def load(reference: Path = REFERENCE) -> Registry:
    """Read and validate all registries of a folder.

    Raises:
        RegistryError: every problem found, one a line.
    """
    problems: list[str] = []
    chapters = read_yaml(reference / "chapters.yml") or {}

    def entries(name: str, kind: type, key: str) -> dict:
        found = _entries(reference / name, kind, key, problems)
        for label, entry in found.items():
            if hasattr(entry, "chapter") and entry.chapter not in chapters:
                problems.append(f"{name}, {label}: chapter {entry.chapter!r} is none of the chapters in chapters.yml")
        return found

    registry = Registry(
        chapters,
        entries("formulas.yml", Formula, "id"),
        entries("glossary.yml", Term, "term"),
        entries("bibliography.yml", Source, "key"),
        entries("errata.yml", Erratum, "id"),
    )
    for formula in registry.formulas.values():
        problems += [f"formulas.yml, {formula.id}: {problem}" for problem in _problems_of(formula)]
    problems += _doubled_names(registry.terms)
    if problems:
        raise RegistryError("\n".join(problems))
    return registry


def titles(reference: Path = REFERENCE) -> dict[str, str]:
    """The written titles of exercises by id; none if the folder has no `exercises.yml`.

    Raises:
        RegistryError: if it is not YAML, or has an id twice.
    """
    path = reference / "exercises.yml"
    return (read_yaml(path) or {}) if path.is_file() else {}


def _entries(path: Path, kind: type, key: str, problems: list[str]) -> dict:
    known = {field.name: field.default is MISSING for field in fields(kind)}  # name: required
    found = {}
    for number, given in enumerate(read_yaml(path) or [], start=1):
        if not isinstance(given, dict) or not given.get(key):
            problems.append(f"{path.name}, entry {number}: every entry is a mapping that has {key!r}")
            continue
        label = str(given[key])
        where = f"{path.name}, {label}"
        if label in found:
            problems.append(f"{where}: there are two entries of this {key}: merge them")
        unknown = sorted(set(given) - set(known))
        missing = sorted(name for name, required in known.items() if required and not given.get(name))
        if unknown:
            problems.append(f"{where}: unknown {', '.join(unknown)}; an entry has {', '.join(known)}")
        if missing:
            problems.append(f"{where}: say {', '.join(missing)}")
        if unknown or missing:
            continue
        also = given.get("also")
        if also is not None and not isinstance(also, list):
            problems.append(f"{where}: also is a list of names")
            continue
        found[label] = kind(
            **{name: tuple(map(str, value)) if name == "also" else str(value).strip() for name, value in given.items()}
        )
    return found


def _problems_of(formula: Formula):
    chapter = formula.chapter.partition("_")[0]
    if not re.fullmatch(rf"{re.escape(chapter)}(-[a-z0-9]+)+", formula.id):
        yield f"its id says its chapter and, in small letters, what it is: {chapter}-…"
    if formula.receipt not in KINDS:
        yield f"receipt {formula.receipt!r} is none of {', '.join(KINDS)}"
        return
    if formula.receipt in EVIDENCE + CORRECTIONS:
        if "::" not in formula.evidence:
            yield f"a {formula.receipt} receipt names its evidence: tests/receipts/test_….py::test_…, or tests/receipts/proofs/….v::theorem"
        if not formula.shows:
            yield f"a {formula.receipt} receipt says in `shows` what the evidence shows, and no more"
    elif formula.evidence:
        yield f"a {formula.receipt} receipt claims no evidence of ours: take `evidence` out, or claim what it is ({', '.join(EVIDENCE)})"
    if formula.receipt == "reported" and not formula.source:
        yield "a reported receipt cites its `source`"
    if formula.receipt == "erratum" and not (formula.wrong and formula.right):
        yield "an erratum says what was `wrong` and what is `right`"


def _doubled_names(terms: dict[str, Term]):
    owner: dict[str, str] = {}
    for term in terms.values():
        for name in (term.term, *term.also):
            first = owner.setdefault(name.casefold(), term.term)
            if first != term.term or (name != term.term and name.casefold() == term.term.casefold()):
                yield f"glossary.yml, {term.term}: {name!r} already names {first!r}: one name for one thing"
