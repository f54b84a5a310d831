"""LaTeX as a line of text, for where nothing can be typeset: what the search finds and shows."""

import re

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "ell": "ℓ",
}  # fmt: skip
SIGNS = {
    "le": "≤", "ge": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "cdot": " · ", "times": "×", "pm": "±", "to": "→", "infty": "∞",
    "partial": "∂", "nabla": "∇", "sum": "Σ", "prod": "∏", "int": "∫", "in": "∈", "notin": "∉", "propto": "∝", "sim": "∼",
    "odot": "⊙", "otimes": "⊗", "circ": "∘", "dots": "…", "cdots": "…", "vdots": "…", "langle": "⟨", "rangle": "⟩",
    "lVert": "‖", "rVert": "‖", "Vert": "‖", "lvert": "|", "rvert": "|", "vert": "|", "mid": "|", "top": "ᵀ", "prime": "′",
    "iff": "⇔", "implies": "⇒", "Rightarrow": "⇒", "gets": "←", "leftarrow": "←", "mapsto": "↦", "equiv": "≡", "star": "*",
    "ll": "≪", "gg": "≫", "lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "bigcup": "∪", "quad": " ", "qquad": " ",
}  # fmt: skip
HIGH = "⁰¹²³⁴⁵⁶⁷⁸⁹"
WORDS = {"max", "min", "ln", "log", "exp", "cos", "sin", "tanh", "sinh", "arg", "lim", "bmod"}
INSIDE = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"  # braces up to three deep
CLASSED = re.compile(rf"\\htmlClass\{{[^}}]*\}}{INSIDE}")
ROOT = re.compile(rf"\\sqrt(?:\[[^\]]*\])?\s*(?:{INSIDE}|(\\[a-zA-Z]+|\S))")
QUOTIENT = re.compile(rf"\\[dt]?frac\s*(?:{INSIDE}\s*{INSIDE}|(\d)\s*(\d))")
ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^}]*\}(?:\{[^}]*\})?")


def plain(latex: str) -> str:
    r"""A formula on one line: `1/\\sqrt{d_k}` as 1/√d_k. Commands that have no sign are left out, what they hold stays."""
    text = ENVIRONMENT.sub(" ", latex)
    for pattern, form in ((CLASSED, r"\1"), (ROOT, _root), (QUOTIENT, _quotient)):
        while (done := pattern.sub(form, text)) != text:
            text = done
    text = re.sub(r"\\([a-zA-Z]+)\*?", _sign, text.replace(r"\!", ""))
    text = re.sub(r"\\[,;: ]|\\\\|[~&]", " ", text).replace("\\", "")
    text = re.sub(r"\^\s*\{?ᵀ\}?", "ᵀ", text)
    text = re.sub(r"([_^])\{([^{}\s]{1,12})\}", r"\1\2", text)
    text = re.sub(r"\^(\d)(?![\w.])", lambda m: HIGH[int(m[1])], text)
    text = re.sub(r"\s+", " ", re.sub(r"[{}]", "", text))
    return re.sub(r"(?<=[(⟨/]) | (?=[)⟩,/])", "", text).strip()


def _root(match: re.Match) -> str:
    inside = match[1] or match[2] or ""
    return f"√{_one(inside)}"


def _quotient(match: re.Match) -> str:
    above, below = (match[1], match[2]) if match[1] is not None else (match[3], match[4])
    return f" {_one(above)}/{_one(below)} "


def _one(text: str) -> str:
    """What binds more weakly than the sign before or after it, in parentheses."""
    text = text.strip()
    return f"({text})" if re.search(r"[\s+=,-]", re.sub(r"\\[a-zA-Z]+\{[^}]*\}|_\{[^}]*\}", "", text)) else text


def _sign(match: re.Match) -> str:
    name = match[1]
    if name in WORDS:
        return f" {name} "
    return GREEK.get(name) or SIGNS.get(name, "")
