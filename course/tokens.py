"""Bytes, pre-tokens and byte-pair merges: chapter ch02.

A token is a number: ids 0 … 255 are the byte values, id 256 + i is what merge i makes, special tokens come last.

Source: Sennrich, Haddow and Birch (2016), Neural Machine Translation of Rare Words with Subword Units, sections 3.1 and 3.2,
for merges in words; Radford et al. (2019), Language Models are Unsupervised Multitask Learners, section 2.2, for a base of 256
bytes and the cut into pre-tokens.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise

from course.data import HERE

__all__ = [
    "BYTES",
    "PIECES",
    "Pair",
    "bits_per_byte",
    "bpe_decode",
    "bpe_encode",
    "bpe_train",
    "bpe_word",
    "bpe_word_by_heap",
    "byte_encode",
    "merge_pair",
    "pair_counts",
    "parallel",
    "pretokenize",
    "special_encode",
    "tokens_per_byte",
    "vocabulary",
]

Pair = tuple[int, int]

BYTES = 256

# GPT-2's pattern with the standard library's `re`: a letter is [^\W\d_], so ² and ½ count as letters, not as numbers,
# and white space includes the control characters 1C to 1F.
PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


# ---------------------------------------------------------------- bytes and pre-tokens


def byte_encode(text: str) -> list[int]:
    """The UTF-8 bytes of `text`, each a number from 0 to 255."""
    return list(text.encode("utf-8"))


def pretokenize(text: str) -> list[str]:
    """Cut `text` into pieces that no merge may cross: words with the space before them, numbers, marks, spaces.

    The pieces joined are the text.
    """
    return PIECES.findall(text)


# ---------------------------------------------------------------- learning merges


def pair_counts(words: list[list[int]], times: list[int]) -> Counter:
    """How often each pair of neighbours occurs: word i counts `times[i]` times."""
    totals = Counter()
    for ids, n in zip(words, times, strict=True):
        for pair in pairwise(ids):
            totals[pair] += n
    return totals


def merge_pair(ids: list[int], pair: Pair, new: int) -> list[int]:
    """`ids` with every occurrence of `pair`, from left to right and without overlap, replaced by `new`."""
    out, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def bpe_train(text: str | Mapping[str, int], merges: int) -> list[Pair]:
    """Learn `merges` merges: each time the pair with the largest count.

    Tie rule: among pairs with the same count the smallest pair of ids wins, so that
    bytes are ordered by value and older tokens come first.

    Args:
        text: a text, cut by `pretokenize`; or pre-tokens with their counts.
        merges: how many merges; fewer come back when no pair is left.

    Returns:
        The merges in order. Merge i makes the token 256 + i.

    Raises:
        ValueError: if `merges` is negative.
    """
    if merges < 0:
        raise ValueError(f"merges must be zero or more, got {merges}")
    counts = Counter(pretokenize(text)) if isinstance(text, str) else text
    words, times = [byte_encode(word) for word in counts], list(counts.values())
    totals, where = pair_counts(words, times), _where(words)
    heap = [(-n, pair) for pair, n in totals.items()]
    heapify(heap)  # smallest first: largest count, then smallest pair
    learned = []
    while heap and len(learned) < merges:
        n, pair = heappop(heap)
        if totals[pair] == -n and n < 0:  # else the count has changed since it was pushed
            for changed in _apply(pair, BYTES + len(learned), words, times, totals, where):
                heappush(heap, (-totals[changed], changed))
            learned.append(pair)
    return learned


def _where(words: list[list[int]]) -> dict[Pair, set[int]]:
    """In which words each pair occurs."""
    where = defaultdict(set)
    for i, ids in enumerate(words):
        for pair in pairwise(ids):
            where[pair].add(i)
    return where


def _apply(pair: Pair, new: int, words, times, totals, where) -> set[Pair]:
    """Merge `pair` in the words that hold it and correct the counts there. Returns the pairs whose count changed."""
    changed = set()
    for i in where.pop(pair):
        before, after = words[i], merge_pair(words[i], pair, new)
        if len(after) == len(before):
            continue  # the pair has gone from this word with an earlier merge
        words[i] = after
        for old in pairwise(before):
            totals[old] -= times[i]
            changed.add(old)
        for made in pairwise(after):
            totals[made] += times[i]
            where[made].add(i)
            changed.add(made)
    return {p for p in changed if totals[p] > 0}


# ---------------------------------------------------------------- text to tokens and back


def bpe_word(ids: list[int], ranks: Mapping[Pair, int]) -> list[int]:
    """The tokens of one pre-token: while any pair of neighbours is a merge, apply the one that was learned first."""
    while len(ids) > 1:
        pair = min(pairwise(ids), key=lambda p: ranks.get(p, float("inf")))
        if pair not in ranks:
            break
        ids = merge_pair(ids, pair, ranks[pair])
    return ids


def bpe_word_by_heap(ids: list[int], ranks: Mapping[Pair, int]) -> list[int]:
    """The same tokens as `bpe_word` in n log n steps: only the neighbours of a merge are looked at again.

    A heap has the pairs that are merges, the one learned first on top and of equal ones the leftmost; places that were
    merged away are linked past.
    """
    n, ids = len(ids), list(ids)
    after, before = list(range(1, n + 1)), list(range(-1, n - 1))  # the places beside each place
    heap = [(ranks[pair], i, pair) for i, pair in enumerate(pairwise(ids)) if pair in ranks]
    heapify(heap)
    while heap:
        new, i, pair = heappop(heap)
        j = after[i]
        if j == n or (ids[i], ids[j]) != pair:
            continue  # one of the two has been merged since
        ids[i], ids[j], after[i] = new, None, after[j]
        if after[i] < n:
            before[after[i]] = i
        for k in (before[i], i):
            if k >= 0 and after[k] < n and (made := (ids[k], ids[after[k]])) in ranks:
                heappush(heap, (ranks[made], k, made))
    return [x for x in ids if x is not None]


def bpe_encode(text: str, merges: list[Pair]) -> list[int]:
    """The tokens of `text`. Nothing in the text is special: no string can make a special token.

    Of a merge that is listed twice the first counts.
    """
    ranks: dict[Pair, int] = {}
    for i, pair in enumerate(merges):
        ranks.setdefault(pair, BYTES + i)
    known: dict[str, list[int]] = {}
    ids = []
    for piece in pretokenize(text):
        if piece not in known:
            known[piece] = bpe_word_by_heap(byte_encode(piece), ranks)
        ids += known[piece]
    return ids


def vocabulary(merges: list[Pair]) -> list[bytes]:
    """The bytes that each token stands for: 256 + len(merges) entries.

    Raises:
        ValueError: if a merge uses a token that does not exist yet.
    """
    spelled = [bytes([b]) for b in range(BYTES)]
    for i, (left, right) in enumerate(merges):
        if not (0 <= left < len(spelled) and 0 <= right < len(spelled)):
            raise ValueError(f"merge {i} joins {(left, right)}, but there are only tokens 0 to {len(spelled) - 1} before it")
        spelled.append(spelled[left] + spelled[right])
    return spelled


def bpe_decode(ids: list[int], merges: list[Pair], errors: str = "replace") -> str:
    """The text of `ids`: the bytes are joined first, then read as UTF-8.

    Raises:
        ValueError: if an id is not in the vocabulary, or (errors="strict") if the bytes are not UTF-8.
    """
    spelled = vocabulary(merges)
    for i in ids:
        if not 0 <= i < len(spelled):
            raise ValueError(
                f"token {i} is not in the vocabulary of {len(spelled)}: special tokens are not text, take them out first"
            )
    return b"".join(spelled[i] for i in ids).decode("utf-8", errors)


def special_encode(text: str, merges: list[Pair], specials: list[str]) -> list[int]:
    """The tokens of a text that you wrote yourself, in which the strings `specials` stand for special tokens.

    Special token j has the id 256 + len(merges) + j. Never call it on a text that somebody else wrote.
    """
    if not specials:
        return bpe_encode(text, merges)
    ids = []
    longest_first = sorted(specials, key=len, reverse=True)
    for part in re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text):
        if part in specials:
            ids.append(BYTES + len(merges) + specials.index(part))
        else:
            ids += bpe_encode(part, merges)
    return ids


# ---------------------------------------------------------------- measures


def tokens_per_byte(text: str, merges: list[Pair]) -> float:
    """Tokens of `text` divided by its bytes, in (0, 1].

    Raises:
        ValueError: if the text is empty.
    """
    if not text:
        raise ValueError("an empty text has no tokens per byte")
    return len(bpe_encode(text, merges)) / len(byte_encode(text))


def bits_per_byte(nats_per_token: float, tokens: int, n_bytes: int) -> float:
    """The loss of a language model in bits for each byte of text, which does not depend on the tokenizer's units.

    Raises:
        ValueError: if `n_bytes` is not positive.
    """
    if n_bytes <= 0:
        raise ValueError(f"n_bytes must be positive, got {n_bytes}")
    return nats_per_token * tokens / (n_bytes * 0.6931471805599453)


def parallel() -> list[tuple[str, str]]:
    """Our own short sentences in English and Spanish, (English, Spanish) pairs of the same meaning."""
    with open(HERE / "parallel.tsv", encoding="utf-8", newline="") as file:
        return [(english, spanish) for english, spanish in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
