"""Formulas that stand as plain text in a registry's sentences, found and written as LaTeX: x ≤ 1e-12, α = γ − 1, O(n²)."""

import re

from book.plain import GREEK

LETTERS = {sign: rf"\{name}" for name, sign in reversed(GREEK.items())}
OPERATORS = {
    "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "·": r"\cdot", "×": r"\times", "±": r"\pm", "→": r"\to", "⊗": r"\otimes",
    "⊙": r"\odot", "∝": r"\propto", "∈": r"\in", "−": "-", "<": "<", ">": ">", "=": "=", "+": "+", "/": "/", "↦": r"\mapsto",
}  # fmt: skip
HIGH = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ", "0123456789-n")
LOW = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ᵢₙ", "0123456789+-in")
NAMES = ("ln", "log", "exp", "cos", "sin", "tanh", "max", "min")

_GREEK = "".join(LETTERS)
_SUB = r"(?:_(?:[A-Za-z0-9]+)|[₀-₉₊₋ᵢₙ]+)"
_SUP = r"(?:\^(?:\([^()\s]*\)|[−-]?[\w.]+(?:/\w+)?)|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+|ᵀ)"
_LATIN = r"(?:[B-HJ-Zb-z](?![A-Za-z0-9'’])|[aAI](?=[_^²³ᵀ₀-₉(]| [−<>=≤≥] ))"
_AFTER = rf"(?:{_SUB}?{_SUP}?(?:\([^()\s]{{1,12}}(?:, [^()\s]{{1,6}})*\))?)"
_GREEKS = rf"(?:√?[{_GREEK}](?![a-z]{{3}}){_AFTER})"
_SYMBOL = rf"(?:(?:(?<![\w.-])\d+(?:\.\d+)?)?(?:(?:√|(?<![A-Za-z_'’.-])(?<![-\d]\d)){_LATIN}{_AFTER}|{_GREEKS})(?:{_GREEKS}|(?<=[{_GREEK}]){_LATIN}{_AFTER})*)"
_NUMBER = r"(?:(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w%]))"
_SMALL = r"(?:(?<![\w.,])\d+(?:\.\d+)?e[-−]?\d+(?!\w))"
_ATOM = rf"(?:(?:{'|'.join(NAMES)}) (?:{_SYMBOL}|{_NUMBER})|{_SMALL}|{_SYMBOL}|√?{_NUMBER}|√?(?<![\w.,])\d+{_SUP}|∞)"
_INSIDE = rf"[−-]?{_ATOM}(?:(?: ?[−+·×/⊗⊙±] ?| ){_ATOM})*"
_SIMPLE = rf"(?:(?<![A-Za-z])√?\({_INSIDE}\){_SUP}?|\|{_INSIDE}\||{_ATOM})"
_GROUP = rf"(?:(?<![A-Za-z])\({_SIMPLE}(?: ?[−+·×/⊗⊙±] ?{_SIMPLE})*\){_SUP}?|{_SIMPLE})"
_BETWEEN = r" ?[≤≥≠≈·×±→⊗⊙∝∈−<>=+/↦] ?"
FORMULA = re.compile(rf"[−-]?(?:{_GROUP})(?:(?:{_BETWEEN}|(?<=[\w)]) (?=[{_GREEK}]|ln ))[−-]?(?:{_GROUP}))*")
WORTH = re.compile(rf"[B-HJ-Zb-z{_GREEK}√∞⁰¹²³⁴⁵⁶⁷⁸⁹]|e[-−]?\d|\^")  # a number alone stays a word
KEPT = re.compile(
    r"(\$[^$]*\$|`[^`]*`|\[[^\]]*\]\([^)]*\)|\b[\w/]+\.(?:py|v|json)(?:::\w+)?|\b\w+_\w+(?:_\w+)*(?=[^\w]|$)(?<![A-Za-z]_\w)|\b[a-zA-Z]\b-\w+)"
)


def typeset(text: str) -> str:
    """A sentence with its formulas between dollars; what is so already, code and file names stay."""
    return "".join(part if i % 2 else FORMULA.sub(_written, part) for i, part in enumerate(KEPT.split(text)))


def _written(match: re.Match) -> str:
    found = match[0]
    return f"${_latex(found)}$" if WORTH.search(found) else found


def _latex(text: str) -> str:
    text = re.sub(r"√\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(rf"√([\w{_GREEK}.]+)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\d.])1e([-−]?\d+)", r"10^{\1}", text)
    text = re.sub(r"(\d)e([-−]?\d+)", r"\1\\cdot 10^{\2}", text)
    text = re.sub(r"\^\(([^()]*)\)", r"^{\1}", text)
    text = re.sub(r"\^([−-]?[\w.]+(?:/\w+)?)", r"^{\1}", text)
    text = re.sub(r"_([A-Za-z0-9]+)", lambda m: f"_{{{m[1]}}}" if len(m[1]) < 3 else rf"_{{\text{{{m[1]}}}}}", text)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+", lambda m: f"^{{{m[0].translate(HIGH)}}}", text)
    text = re.sub(r"[₀-₉₊₋ᵢₙ]+", lambda m: f"_{{{m[0].translate(LOW)}}}", text)
    text = text.replace("ᵀ", r"^\top").replace("∞", r"\infty ")
    text = re.sub(rf"\b({'|'.join(NAMES)})\b", r"\\\1", text)
    text = re.sub(r"(\d),(?=\d{3})", r"\1{,}", text)
    text = re.sub(f"[{_GREEK}]", lambda m: LETTERS[m[0]] + " ", text)
    text = re.sub(
        "[" + "".join(OPERATORS) + "]", lambda m: f"{OPERATORS[m[0]]} " if len(OPERATORS[m[0]]) > 1 else OPERATORS[m[0]], text
    )
    return re.sub(r" +", " ", text).strip()
