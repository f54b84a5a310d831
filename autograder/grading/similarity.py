"""Which submissions share more of their own wording than chance gives: a reason to look, never a proof.

Each submission becomes the set of its runs of `RUN` tokens. Names that a student chose are all the same token, so that
renaming hides nothing; comments and layout do not count; runs that the release contains are nobody's. A run counts the
more, the fewer of the class have it: what everybody writes says nothing about two of them.
"""

import ast
import builtins
import io
import keyword
import math
import re
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

from autograder.authoring.chapters import as_python

RUN = 5  # tokens
RARE, MOST = 0.2, 20  # a run that more of the class have than this share, or than this many, is common wording
LEAST = 20  # rare runs that two submissions must share
ALIKE = 0.8  # of the smaller one's weight
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass
class Pair:
    """Two submissions that are alike: `share` of the smaller one's weight is in the other, `runs` rare runs of tokens."""

    first: str
    second: str
    share: float
    runs: int


def tokens(source: str) -> list[str]:
    """The tokens of a piece of Python, or the words of what is no Python."""
    try:
        source = as_python(source)
        chosen = _chosen(ast.parse(source))
        found = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in SKIPPED]
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError):
        return re.findall(r"\w+|[^\w\s]", source)
    return ["·" if t.type == tokenize.NAME and t.string in chosen else t.string for t in found]


def _chosen(tree: ast.AST) -> set[str]:
    """The names that a piece of code binds: its variables, arguments and functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names - set(keyword.kwlist) - set(dir(builtins))


def runs(sources: list[str], given: set[tuple] = frozenset()) -> set[tuple]:
    """The runs of tokens of some cells, without those that were given to everybody."""
    found = set()
    for source in sources:
        row = tokens(source)
        found |= {tuple(row[i : i + RUN]) for i in range(len(row) - RUN + 1)}
    return found - given


def alike(submissions: dict[str, set[tuple]], least: int = LEAST, share: float = ALIKE) -> list[Pair]:
    """The pairs of submissions that share most of what is rare in them, the most alike first.

    Args:
        submissions: `runs` of each submission, by a name for it.
        least: how many rare runs they must share.
        share: how much of the smaller one's weight must be in the other.
    """
    number = len(submissions)
    having = Counter(run for mine in submissions.values() for run in mine)
    weight = {run: math.log((number + 1) / count) for run, count in having.items()}
    total = {name: sum(weight[run] for run in mine) for name, mine in submissions.items()}
    owners = defaultdict(list)
    for name, mine in submissions.items():
        for run in mine:
            if 2 <= having[run] <= max(2, min(RARE * number, MOST)):
                owners[run].append(name)
    common = Counter(pair for names in owners.values() for pair in combinations(sorted(names), 2))
    found = []
    for (first, second), count in common.items():
        if count >= least:
            both = sum(weight[run] for run in submissions[first] & submissions[second])
            part = both / min(total[first], total[second])
            if part >= share:
                found.append(Pair(first, second, part, count))
    return sorted(found, key=lambda pair: (-pair.share, pair.first, pair.second))
