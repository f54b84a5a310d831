"""The table of symbols, read: which meanings a letter has in a chapter, and which letters a formula has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ONLY = re.compile(r"\bin chapters? ((?:f|ch)\d\d(?:(?:, (?:f|ch)\d\d)*(?: and (?:f|ch)\d\d))?) only")
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
DECORATED = r"\\(?:hat|tilde|bar|overline|mathcal|mathbb|mathbf|vec)\s*"
GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "varepsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "pi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "varphi",
    "chi",
    "psi",
    "omega",
    "Gamma",
    "Delta",
    "Theta",
    "Lambda",
    "Xi",
    "Pi",
    "Sigma",
    "Phi",
    "Psi",
    "Omega",
    "ell",
]
_WORDS = re.compile(r"\\(?:text|mathrm|operatorname\*?|begin|end|texttt|color|htmlClass)\s*\{[^{}]*\}")
_TOKEN = re.compile(
    rf"(?P<base>{DECORATED}(?:\{{\s*(?:\\[a-zA-Z]+|[a-zA-Z])\s*\}}|\\[a-zA-Z]+|[a-zA-Z])|\\(?:{'|'.join(GREEK)})(?![a-zA-Z])|[a-zA-Z])"
    r"(?P<primes>'*)"
)
_NAMED = re.compile(r"\\(?:text|mathrm)\{([^{}]*)\}|\\(max|min|cos|infty)")
_STAR = re.compile(r"\^\s*(?:\*|\\star|\{\*\})")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_SEVERAL = re.compile(r"^(?:\\(?:mathrm|lVert|langle|cos)|\()|\\(?:otimes|odot|circ|nabla|top)|\^[QKVO]")
_SUBSCRIPT = re.compile(r"_(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[a-zA-Z]+|.))")


@dataclass(frozen=True)
class Meaning:
    """A row of the table.

    `chapters` are the only ones in which it holds, by id such as `ch04`; empty: all.
    """

    symbols: tuple[str, ...]
    text: str
    chapters: tuple[str, ...]

    def holds_in(self, chapter: str) -> bool:
        return not self.chapters or chapter in self.chapters


def symbols(latex: str) -> list[str]:
    r"""The symbols of a formula in their order, once each: `W`, `\\hat{p}` as `\\hatp`, `d_{model}`, `N*`, `f'`.

    Indices in letters and numbers are left out, indices in words belong to the symbol. Names in roman letters (`\\mathrm{softmax}`)
    and what a superscript only marks (`^\\top`, `W^Q`) are no symbols.
    """
    latex = re.sub(r"\^\s*(?:\\top|T\b|\{\\top\}|\{\(\w\)\}|\{[QKVO]\}|[QKVO](?![a-zA-Z]))", " ", latex)
    latex = re.sub(r"\\mathbb\{[RN]\}|\\(?:left|right|big|Big|bigl|bigr)(?=[^a-zA-Z])", " ", latex)
    return list(dict.fromkeys(_read(latex)))


def _read(latex: str) -> Iterator[str]:
    place = 0
    while place < len(latex):
        if word := _WORDS.match(latex, place):
            place = word.end()
            if index := _SUBSCRIPT.match(latex, place):
                place = index.end()
        elif token := _TOKEN.match(latex, place):
            base, place = re.sub(r"[\s{}]+", "", token["base"]), token.end()
            star, words = "", ""
            for _ in range(2):  # an index and a star, in either order
                if index := _SUBSCRIPT.match(latex, place):
                    place = index.end()
                    named = _NAMED.findall(index[1] or index[2])
                    words = f"_{{{','.join(filter(None, chain(*named)))}}}" if named else ""
                elif starred := _STAR.match(latex, place):
                    star, place = "*", starred.end()
            yield base + token["primes"] + star + words
        elif command := _COMMAND.match(latex, place):
            place = command.end()
        else:
            place += 1


def formulas_of(text: str) -> list[str]:
    """The display formulas of a text in Markdown."""
    return DISPLAY.findall(text)


def table(path: Path) -> list[Meaning]:
    """The rows of the table of symbols. What is written of several symbols, such as a norm or a function, is not taken apart.

    Args:
        path: `book/reference/symbols.md`.
    """
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("| $"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        known = [
            symbol
            for formula in re.findall(r"\$([^$]+)\$", cells[0])
            if not _SEVERAL.search(formula)
            for symbol in symbols(formula)
        ]
        only = ONLY.search(line)
        chapters = tuple(re.findall(r"(?:f|ch)\d\d", only[1])) if only else ()
        rows.append(Meaning(tuple(dict.fromkeys(known)), cells[2], chapters))
    return rows


def meanings(symbol: str, chapter: str, rows: list[Meaning]) -> list[Meaning]:
    """What a symbol means in a chapter by the table: rows of this chapter go before general ones.

    A symbol with primes or an index in words that has no row of its own means what it means without.
    """
    for key in dict.fromkeys((symbol, re.sub(r"_\{.*", "", symbol), re.sub(r"['*]+|_\{.*", "", symbol))):
        here = [row for row in rows if key in row.symbols and row.holds_in(chapter)]
        if here:
            return [row for row in here if row.chapters] or here
    return []
