"""course.tokens against plain recounting, the `regex` module, unicodedata and the JavaScript of its widget."""

import json
import math
import random
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import data, tokens
from course.tokens import (
    bpe_decode,
    bpe_encode,
    bpe_train,
    bpe_word,
    bpe_word_by_heap,
    byte_encode,
    merge_pair,
    pretokenize,
    special_encode,
    vocabulary,
)

TEXT = data.read("austen", 60_000)
MERGES = bpe_train(TEXT, 300)


def recount(words, merges):
    """Byte-pair merges by counting everything anew before each merge."""
    segments = {word: list(word.encode()) for word in words}
    learned = []
    for _ in range(merges):
        counts = Counter()
        for word, ids in segments.items():
            for pair in pairwise(ids):
                counts[pair] += words[word]
        if not counts:
            break
        pair = min(counts, key=lambda p: (-counts[p], p))
        new = 256 + len(learned)
        learned.append(pair)
        segments = {word: by_pattern(ids, pair, new) for word, ids in segments.items()}
    return learned


def by_pattern(ids, pair, new):
    """merge_pair with a regular expression over one character a token."""
    text = "".join(map(chr, ids))
    return [ord(c) for c in re.sub(re.escape(chr(pair[0]) + chr(pair[1])), chr(new), text)]


# ---------------------------------------------------------------- training


def test_the_fast_trainer_learns_what_recounting_learns():
    words = Counter(pretokenize(TEXT[:8_000]))
    assert bpe_train(words, 150) == recount(words, 150)


@given(st.dictionaries(st.text("abé ", min_size=1, max_size=7), st.integers(1, 9), max_size=8), st.integers(0, 25))
@settings(max_examples=150, deadline=None)
def test_the_fast_trainer_on_any_words(words, merges):
    assert bpe_train(words, merges) == recount(words, merges)


def test_training_has_prefixes_and_does_not_change_its_argument():
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    kept = dict(words)
    assert bpe_train(words, 6)[:4] == bpe_train(words, 4)
    assert words == kept
    assert bpe_train("", 5) == []
    with pytest.raises(ValueError, match="zero or more"):
        bpe_train("a", -1)


@given(st.lists(st.integers(0, 2), max_size=12))
def test_merge_pair(ids):
    letters = [i + 65 for i in ids]  # so that each is a plain character
    for pair in [(65, 65), (65, 66), (67, 66)]:
        assert merge_pair(letters, pair, 74) == by_pattern(letters, pair, 74)


# ---------------------------------------------------------------- text to tokens and back


@given(st.text())
@settings(deadline=None)
def test_round_trip(text):
    assert bytes(byte_encode(text)).decode() == text
    assert "".join(pretokenize(text)) == text
    assert bpe_decode(bpe_encode(text, MERGES), MERGES) == text


def test_encoding_is_the_merges_applied_in_order():
    ranks = {pair: 256 + i for i, pair in enumerate(MERGES)}
    for piece in set(pretokenize(TEXT)):
        ids = byte_encode(piece)
        for i, pair in enumerate(MERGES):
            ids = by_pattern(ids, pair, 256 + i)
        assert tokens.bpe_word(byte_encode(piece), ranks) == ids


def test_the_training_text_is_cut_as_training_left_it():
    counts = Counter(pretokenize(TEXT))
    total = sum(n * len(bpe_encode(word, MERGES)) for word, n in counts.items())
    assert len(bpe_encode(TEXT, MERGES)) == total


def test_decoding_part_of_a_character():
    ids = byte_encode("é")
    assert bpe_decode(ids[:1], []) == "\ufffd"
    with pytest.raises(UnicodeDecodeError):
        bpe_decode(ids[:1], [], errors="strict")
    with pytest.raises(ValueError, match="not in the vocabulary"):
        bpe_decode([256], [])
    with pytest.raises(ValueError, match="joins"):
        vocabulary([(256, 1)])


def test_special_tokens():
    end = 256 + len(MERGES)
    assert special_encode("a<|end|>b", MERGES, ["<|end|>"]) == [97, end, 98]
    assert end not in bpe_encode("a<|end|>b", MERGES)
    assert special_encode("abc", MERGES, []) == bpe_encode("abc", MERGES)
    assert special_encode("<|a|><|a|>x", MERGES, ["<|a|>", "<|a|>x"]) == [end, end + 1]


def test_measures():
    assert tokens.tokens_per_byte("é", []) == 1.0
    assert math.isclose(tokens.bits_per_byte(math.log(256), 7, 7), 8.0)
    for call in (lambda: tokens.tokens_per_byte("", []), lambda: tokens.bits_per_byte(1.0, 1, 0)):
        with pytest.raises(ValueError):
            call()


# ---------------------------------------------------------------- pre-tokens


def kind(c):
    """The class of a character in our pattern, from unicodedata."""
    category = unicodedata.category(c)
    if c.isspace():
        return "space"
    if category == "Nd":
        return "digit"
    return "letter" if category[0] == "L" or category in ("Nl", "No") else "mark"


def scan(text):
    """pretokenize as a loop."""
    pieces, i = [], 0
    while i < len(text):
        tail = next((t for t in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(t, i)), None)
        j = i + 1 if text[i] == " " and i + 1 < len(text) and kind(text[i + 1]) != "space" else i
        if tail:
            end = i + len(tail)
        else:
            end = j + 1
            while end < len(text) and kind(text[end]) == kind(text[j]):
                end += 1
            if kind(text[j]) == "space" and end < len(text) and end - j > 1:
                end -= 1
        pieces.append(text[i:end])
        i = end
    return pieces


@given(st.text("a Z9½²_'stré \n\t.,!日Ⅷ\u0301", max_size=25) | st.text(max_size=25))
@settings(max_examples=400, deadline=None)
def test_pretokenize_is_the_scan(text):
    assert pretokenize(text) == scan(text)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@given(st.text("a Z9_'stré \n\t.,!日\u0301", max_size=25))
@settings(max_examples=300, deadline=None)
def test_pretokenize_is_gpt2s_where_numbers_are_digits(text):
    regex = pytest.importorskip("regex")
    assert pretokenize(text) == regex.findall(GPT2, text)


def test_pretokenize_differs_from_gpt2_for_other_numbers():
    regex = pytest.importorskip("regex")
    assert pretokenize("x² ½") == ["x²", " ½"]
    assert regex.findall(GPT2, "x² ½") == ["x", "²", " ½"]


# ---------------------------------------------------------------- data, record, widget


def test_parallel():
    pairs = tokens.parallel()
    assert len(pairs) >= 100 and len(set(pairs)) == len(pairs)
    for side in zip(*pairs, strict=True):
        assert sum(len(sentence.split()) for sentence in side) > 800
        assert all(sentence.endswith(".") and sentence == sentence.strip() for sentence in side)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_widget_counts_as_python_does(tmp_path):
    from course.widgets.tokens import Tokens

    widget = Tokens()
    texts = [
        widget.text,
        "",
        "  the  house's\n\n x² ½ 12é",
        "日本語 🙂 ok",
        "aaaaaaa \u00a0b\u0085c\x1cd\ufeffe",
        TEXT[:2_000],
    ]
    module = (Path(tokens.__file__).parent / "widgets" / "tokens.js").read_text().replace("export default", "const widget =")
    cases = json.dumps([texts, [0, 5, 300], widget.merges])
    script = module + (
        f"\nconst [texts, sizes, merges] = {cases};"
        "\nconsole.log(JSON.stringify(texts.map((t) => sizes.map((n) => tokenize(t, merges.slice(0, n))))));"
    )
    path = tmp_path / "tokens.mjs"
    path.write_text(script)
    out = json.loads(subprocess.run(["node", path], capture_output=True, text=True, check=True).stdout)
    merges = [tuple(pair) for pair in widget.merges]
    assert out == [[bpe_encode(text, merges[:n]) for n in (0, 5, 300)] for text in texts]
    assert str(len(bpe_encode(widget.text, merges[: widget.applied]))) in widget.describe()


def test_the_heap_gives_what_the_plain_form_gives():
    words = random.Random(0)
    merges = bpe_train("the cat sat on the mat and the rat ate the oats " * 3 + "aaaa aaab baaa abab", 60)
    ranks = {pair: 256 + i for i, pair in enumerate(merges)}
    for length in [0, 1, 2, *range(3, 60)] * 4:
        ids = [ord(words.choice("aabteh ")) for _ in range(length)]
        assert bpe_word_by_heap(ids, ranks) == bpe_word(ids, ranks)


def test_a_long_word_takes_steps_in_proportion():
    merges = bpe_train("".join(random.Random(1).choices("abcd", k=3000)), 300)
    ranks, looks = {pair: 256 + i for i, pair in enumerate(merges)}, []

    class Counted(dict):
        def __contains__(self, pair):
            looks.append(pair)
            return super().__contains__(pair)

    bpe_word_by_heap(list(map(ord, random.Random(2).choices("abcd", k=20_000))), Counted(ranks))
    assert len(looks) < 5 * 20_000  # the plain form looks at all neighbours again for each kind of pair


def test_of_a_merge_listed_twice_the_first_counts():
    merges = [(97, 98), (99, 100), (97, 98)]
    assert bpe_encode("abcd", merges) == [256, 257]
