"""Receipts of ch02_tokens."""

import itertools
import math
import random
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats

from course import data
from course.tokens import (
    bits_per_byte,
    bpe_decode,
    bpe_encode,
    bpe_train,
    parallel,
    pretokenize,
    special_encode,
    vocabulary,
)

CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def replace(symbols, pair, new):
    """`pair` replaced from left to right."""
    out, i = [], 0
    while i < len(symbols):
        both = tuple(symbols[i : i + 2]) == tuple(pair)
        out.append(new if both else symbols[i])
        i += 2 if both else 1
    return out


def count(spelled, times):
    """How often each pair of neighbours occurs, in the order in which the pairs are met."""
    totals = {}
    for symbols, n in zip(spelled, times, strict=True):
        for i in range(len(symbols) - 1):
            pair = (symbols[i], symbols[i + 1])
            totals[pair] = totals.get(pair, 0) + n
    return totals


def in_order(text, merges):
    """Encoding as the merges applied one after the other to every piece: another algorithm than course.tokens."""
    pieces = [list(piece.encode()) for piece in pretokenize(text)]
    for i, pair in enumerate(merges):
        pieces = [replace(ids, pair, 256 + i) for ids in pieces]
    return [x for ids in pieces for x in ids]


def utf8(c):
    """The bytes of code point `c` by the table of RFC 3629, section 3."""
    if c < 0x80:
        return [c]
    if c < 0x800:
        return [0xC0 | c >> 6, 0x80 | c & 63]
    if c < 0x10000:
        return [0xE0 | c >> 12, 0x80 | c >> 6 & 63, 0x80 | c & 63]
    return [0xF0 | c >> 18, 0x80 | c >> 12 & 63, 0x80 | c >> 6 & 63, 0x80 | c & 63]


@pytest.mark.receipt("ch02-utf8", "computed")
@pytest.mark.receipt("ch02-byte-values", "erratum")
def test_utf8():
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    by_table = {b for c in points for b in utf8(c)}
    by_codec = set("".join(map(chr, points)).encode())
    assert by_table == by_codec
    assert len(by_table) == 243
    assert set(range(256)) - by_table == {0xC0, 0xC1, *range(0xF5, 0x100)}


@pytest.mark.receipt("ch02-merge", "computed")
def test_merge():
    draw = random.Random(0)
    for _ in range(40):
        words = {"".join(draw.choices("abcé", k=draw.randint(1, 7))): draw.randint(1, 5) for _ in range(draw.randint(1, 8))}
        spelled, times = [list(word.encode()) for word in words], list(words.values())
        merges = bpe_train(words, 20)
        for i, pair in enumerate(merges):
            totals = count(spelled, times)
            assert totals[pair] == max(totals.values())
            assert pair == min(p for p, n in totals.items() if n == totals[pair])  # the tie rule
            spelled = [replace(ids, pair, 256 + i) for ids in spelled]
        assert len(merges) == 20 or not count(spelled, times)


@pytest.mark.receipt("ch02-wordpiece", "computed")
def test_wordpiece():
    draw = random.Random(1)
    corpora = [CORPUS]
    corpora += [{"".join(draw.choices("abcde", k=draw.randint(2, 7))): draw.randint(1, 5) for _ in range(6)} for _ in range(40)]
    chosen = []
    for words in corpora:
        letters, pairs = sorted({x for word in words for x in word}), count([list(word) for word in words], list(words.values()))
        single = {x: sum(word.count(x) * n for word, n in words.items()) for x in letters}
        score = {(a, b): Fraction(n, single[a] * single[b]) for (a, b), n in pairs.items()}
        share = {x: n / sum(single.values()) for x, n in single.items()}
        information = {(a, b): np.log(n / sum(pairs.values()) / (share[a] * share[b])) for (a, b), n in pairs.items()}
        constant = np.log(sum(single.values()) ** 2 / sum(pairs.values()))
        assert max(abs(information[p] - np.log(float(score[p])) - constant) for p in pairs) <= 1e-12  # so the order is the same
        chosen.append((max(score, key=score.get), max(pairs, key=pairs.get)))
    assert chosen[0] == (("i", "d"), ("e", "s")) and sum(a != b for a, b in chosen) >= 10


@pytest.mark.receipt("ch02-encode", "computed")
def test_encode():
    text = data.read("shakespeare", 20_000)
    merges = bpe_train(data.read("austen", 50_000), 300)
    ids = bpe_encode(text, merges)
    assert ids == in_order(text, merges)
    assert bpe_decode(ids, merges, errors="strict") == text


@pytest.mark.receipt("ch02-vocabulary", "computed")
def test_vocabulary():
    merges = bpe_train(data.read("austen", 20_000), 100)
    specials = ["<a>", "<b>", "<c>"]
    pieces = vocabulary(merges)
    written = b"".join(pieces[:128]).decode() + "".join(p.decode() for p in pieces[256:]) + "".join(specials)
    ids = special_encode(written, merges, specials)
    assert max(ids) + 1 == 256 + 100 + 3
    assert len(pieces) == 256 + 100 and [i for i in ids if i >= 356] == [356, 357, 358]


@pytest.mark.receipt("ch02-doubling", "computed")
def test_doubling():
    tokens = [97, 98]
    texts = ["".join(letters) for n in range(1, 7) for letters in itertools.product("ab", repeat=n)]
    lists = [[]]
    for new in (256, 257, 258):  # every pair of the tokens that there are, as the next merge
        lists += [[*known, pair] for known in lists if len(known) == new - 256 for pair in itertools.product(tokens, repeat=2)]
        tokens.append(new)
    assert len(lists) == 1 + 4 + 4 * 9 + 4 * 9 * 16
    for merges in lists:
        assert max(map(len, vocabulary(merges))) <= 2 ** len(merges)
        for text in texts[:: 1 if len(merges) < 3 else 7]:
            assert 1 <= len(text) / len(in_order(text, merges)) <= 2 ** len(merges)
    for text in (data.read("austen", 30_000), "ab" * 700, "aaab" * 100):
        merges = bpe_train(text, 40)
        pieces = vocabulary(merges)
        for m in range(len(merges) + 1):
            longest = max(len(piece) for piece in pieces[: 256 + m])
            assert longest <= 2**m
        for m in (0, 3, len(merges)):
            rate = len(text.encode()) / len(bpe_encode(text, merges[:m]))
            assert 1 <= rate <= 2**m
    run = "a" * 1024
    assert 1024 / len(bpe_encode(run, bpe_train(run, 10))) == 2**10  # the bound is reached


@pytest.mark.receipt("ch02-floor", "computed")
def test_floor():
    merges = bpe_train(data.read("austen", 100_000), 2000)
    for text in (data.read("austen", 20_000), data.read("shakespeare", 20_000), "a  b\n\nc 12", ""):
        for m in (0, 10, 2000):
            assert len(pretokenize(text)) <= len(bpe_encode(text, merges[:m]))
    assert len(bpe_encode(" the and", merges)) == len(pretokenize(" the and"))  # the bound is reached


def tax_of(merges, pairs, draws):
    """The tax and its bootstrap interval, with the encoder of this file."""
    tokens = np.array([[len(in_order(s, merges)) for s in pair] for pair in pairs])
    drawn, middle = tokens[draws].sum(axis=1), tokens.sum(axis=0)
    return middle[1] / middle[0], *np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975])


@pytest.mark.receipt("ch02-tax", "computed")
def test_tax():
    pairs = parallel()
    order = np.random.default_rng(5).permutation(len(pairs))
    train, tested = [pairs[i] for i in order[:80]], [pairs[i] for i in order[80:]]
    draws = np.random.default_rng(6).integers(0, len(tested), size=(2000, len(tested)))
    english, spanish = ("\n".join(side) for side in zip(*train, strict=True))
    tax, low, _ = tax_of(bpe_train(english, 200), tested, draws)
    assert low >= 1.3 and abs(tax - 1.5) <= 0.1
    tax, low, high = tax_of(bpe_train(english + "\n" + spanish, 200), tested, draws)
    assert abs(tax - 1.05) <= 0.06 and high <= 1.2
    tax, _, high = tax_of(bpe_train(spanish, 200), tested, draws)
    assert high <= 0.9
    by_bytes, *_ = tax_of([], tested, draws)
    en, es = (sum(len(pair[side].encode()) for pair in tested) for side in (0, 1))
    assert abs(by_bytes - es / en) <= 1e-12


@pytest.mark.receipt("ch02-bpb", "computed")
def test_bpb():
    draw, letters = random.Random(2), "abcé"
    pairs = list(itertools.product(letters, repeat=2))
    for _ in range(20):
        weights = [draw.randint(1, 9) for _ in pairs]
        together = {pair: Fraction(w, sum(weights)) for pair, w in zip(pairs, weights, strict=True)}  # tokens of two letters
        first = {a: sum(together[a, b] for b in letters) for a in letters}
        text = "".join(draw.choices(letters, k=40))
        by_pairs = [together[a, b] for a, b in zip(text[::2], text[1::2], strict=True)]
        by_letters = [q for a, b in zip(text[::2], text[1::2], strict=True) for q in (first[a], together[a, b] / first[a])]
        exact = math.prod(by_pairs)
        assert exact == math.prod(by_letters)  # the same probability of the text
        bits = math.log2(exact.denominator) - math.log2(exact.numerator)
        losses = []
        for probabilities in (by_pairs, by_letters):  # of what came; the other class has what is left
            logits = torch.tensor([[math.log(q), math.log(1 - q)] for q in probabilities], dtype=torch.float64)
            losses.append(float(torch.nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))))
            found = bits_per_byte(losses[-1], len(probabilities), len(text.encode()))
            assert abs(found - bits / len(text.encode())) <= 1e-9
        assert abs(losses[0] / losses[1] - 2) <= 1e-9


@pytest.mark.receipt("ch02-sweep", "measured")
def test_sweep():
    record = data.record("tokens")
    settings, results = record["settings"], record["results"]
    assert record["device"] and record["date"] and {"python", "torch", "numpy"} <= set(record["versions"])
    seeds, sizes = record["seeds"], settings["vocabularies"]
    assert len(set(seeds)) >= 3 and len(sizes) >= 3
    assert {(r["V"], r["seed"]) for r in results} == {(V, seed) for V in sizes for seed in seeds}
    trained = [r["training_bytes"] for r in results]
    assert max(trained) / min(trained) <= 1.01  # equal bytes of training, but for whole tokens in a window
    interval = {}  # 95 %, of the mean over seeds
    for V in sizes:
        runs = [r for r in results if r["V"] == V]
        bpb = np.array([r["bits_per_byte"] for r in runs])
        half = stats.t.ppf(0.975, len(bpb) - 1) * bpb.std(ddof=1) / len(bpb) ** 0.5
        interval[V] = (bpb.mean() - half, bpb.mean() + half)
        assert interval[V][1] - interval[V][0] <= 0.3
        for r in runs:
            by_hand = r["nats_per_token"] * r["tokens"] / r["bytes"] / np.log(2)
            assert abs(by_hand - r["bits_per_byte"]) <= 1e-9
            assert r["bits_per_byte"] < r["unigram_bits_per_byte"]
    assert interval[512][1] < interval[256][0]  # the one step that is larger than the seeds' spread
    above = {V: [r["unigram_bits_per_byte"] - r["bits_per_byte"] for r in results if r["V"] == V] for V in sizes}
    assert all(max(above[small]) > max(above[large]) for small, large in itertools.pairwise(sizes))
    level = [r["bits_per_byte"] for r in results if r["V"] in (512, 1024, 2048)]
    assert max(r["bits_per_byte"] for r in results if r["V"] >= 4096) < min(level)
    for small, large in ((512, 1024), (1024, 2048)):
        assert interval[small][0] < interval[large][1] and interval[large][0] < interval[small][1]


# ---------------------------------------------------------------- what the source texts got wrong


@pytest.mark.receipt("ch02-tie", "erratum")
def test_tie():
    spelled, times = [list(word) for word in CORPUS], list(CORPUS.values())
    counts = []
    for pair in (("e", "s"), ("es", "t"), ("l", "o"), ("lo", "w")):
        totals = count(spelled, times)
        assert totals[pair] == max(totals.values())
        counts.append(totals[pair])
        spelled = [replace(symbols, pair, "".join(pair)) for symbols in spelled]
    totals = count(spelled, times)
    tied = [pair for pair, n in totals.items() if n == max(totals.values())]
    assert counts == [9, 9, 7, 7] and max(totals.values()) == 6
    assert tied == [("n", "e"), ("e", "w"), ("w", "est")]
    assert (tied[0], min(tied), max(tied)) == (("n", "e"), ("e", "w"), ("w", "est"))


@pytest.mark.receipt("ch02-double-space", "erratum")
def test_double_space():
    assert pretokenize("the") == ["the"]
    assert pretokenize(" the") == [" the"]
    assert pretokenize("  the") == [" ", " the"]
    # the same alternatives written out for these characters, without course.tokens
    assert re.findall(r" ?[a-z]+|\s+(?!\S)|\s+", "  the") == [" ", " the"]


@pytest.mark.receipt("ch02-any-unicode", "erratum")
def test_any_unicode():
    text, unseen = data.read("austen", 50_000), "日本 🙂"
    characters = set(text)
    assert not characters >= set(unseen)  # over characters: unknown
    merges = bpe_train(text, 50)
    assert bpe_decode(bpe_encode(unseen, merges), merges, errors="strict") == unseen  # over bytes: not
