from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch02.no_unknowns


@right("ch02.no_unknowns")
class loops:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            if piece in words:
                ids.append(words.index(piece) + 256)
            else:
                for byte in bytes(piece, "utf-8"):
                    ids.append(byte)
        return ids

    def decode(ids, words):
        text, waiting = "", bytearray()
        for i in ids:
            if i < 256:
                waiting.append(i)
            else:
                text += waiting.decode() + words[i - 256]
                waiting = bytearray()
        return text + waiting.decode()

    def never():
        seen = set()
        for start in range(0, 0x110000, 0x800):
            if start != 0xD800:
                seen |= set("".join(map(chr, range(start, start + 0x800))).encode("utf-8"))
        return [b for b in range(256) if b not in seen]


@right("ch02.no_unknowns")
class from_the_standard:
    def encode(text, words):
        return sum(([256 + words.index(p)] if p in words else byte_encode(p) for p in re.findall(r"\w+|\W", text)), [])

    def decode(ids, words):
        return bytes(b for i in ids for b in (byte_encode(words[i - 256]) if i >= 256 else [i])).decode()

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "Code points are not bytes: `ord` gives numbers far above 255, which then look like words or like nothing.",
    see="text-is-bytes",
)
class code_points:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece)] if piece in words else [ord(c) for c in piece]
        return ids

    def decode(ids, words):
        return "".join(chr(i) if i < 256 or i - 256 >= len(words) else words[i - 256] for i in ids)

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "Words that are not in the list are dropped, so the text does not come back: that is what bytes are for.",
    see="text-is-bytes",
)
class drops_unknown_words:
    def encode(text, words):
        return [256 + words.index(p) for p in re.findall(r"\w+|\W", text) if p in words]

    def decode(ids, words):
        return b"".join(bytes([i]) if i < 256 else words[i - 256].encode() for i in ids).decode()

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "Words are numbered from 0, so a word and a byte have the same id and decoding cannot tell them apart.",
    see="text-is-bytes",
)
class ids_that_clash:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [words.index(piece)] if piece in words else list(piece.encode())
        return ids

    def decode(ids, words):
        return b"".join(words[i].encode() if i < len(words) else bytes([i]) for i in ids if i < 256).decode()

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "Each byte is turned into a character by itself. That is right below 128; é, 日 and 🙂 have several bytes.",
    see="text-is-bytes",
)
class decodes_each_byte:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece)] if piece in words else list(piece.encode())
        return ids

    def decode(ids, words):
        return "".join(chr(i) if i < 256 else words[i - 256] for i in ids)

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "Errors are ignored byte by byte, so every character of more than one byte disappears without a word.",
    see="text-is-bytes",
)
class ignores_errors:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece)] if piece in words else list(piece.encode())
        return ids

    def decode(ids, words):
        return "".join(bytes([i]).decode(errors="ignore") if i < 256 else words[i - 256] for i in ids)

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "A known word is also taken out of the middle of a longer word; the task cuts the text first and looks up whole pieces.",
    see="text-is-bytes",
)
class words_inside_words:
    def encode(text, words):
        ids = []
        while text:
            found = [w for w in words if text.startswith(w)]
            ids += [256 + words.index(found[0])] if found else list(text[0].encode())
            text = text[len(found[0]) if found else 1 :]
        return ids

    def decode(ids, words):
        return b"".join(bytes([i]) if i < 256 else words[i - 256].encode() for i in ids).decode()

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns",
    "You followed the bit patterns 110…, 1110…, 11110… alone: two lead bytes would only make overlong spellings, and Unicode ends before the last patterns do.",
    see="text-is-bytes",
)
class only_bit_patterns:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece)] if piece in words else list(piece.encode())
        return ids

    def decode(ids, words):
        return b"".join(bytes([i]) if i < 256 else words[i - 256].encode() for i in ids).decode()

    def never():
        return list(range(0xF8, 0x100))


@wrong(
    "ch02.no_unknowns",
    "You looked at Latin letters only. Other scripts and emoji use many more byte values.",
    see="text-is-bytes",
)
class latin_only:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece)] if piece in words else list(piece.encode())
        return ids

    def decode(ids, words):
        return b"".join(bytes([i]) if i < 256 else words[i - 256].encode() for i in ids).decode()

    def never():
        return sorted(set(range(256)) - set("".join(map(chr, range(256))).encode()))


@wrong(
    "ch02.no_unknowns",
    "Capitals become small letters before the look-up, so The and the get one id and the text comes back changed.",
    see="text-is-bytes",
)
class case_ignored:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece.lower())] if piece.lower() in words else list(piece.encode())
        return ids

    def decode(ids, words):
        return b"".join(bytes([i]) if i < 256 else words[i - 256].encode() for i in ids).decode()

    def never():
        return [192, 193] + list(range(245, 256))


@wrong(
    "ch02.no_unknowns", "Decoding empties the list that it was given: whoever decodes twice gets nothing.", see="text-is-bytes"
)
class empties_the_list:
    def encode(text, words):
        ids = []
        for piece in re.findall(r"\w+|\W", text):
            ids += [256 + words.index(piece)] if piece in words else list(piece.encode())
        return ids

    def decode(ids, words):
        spelled = b""
        while ids:
            i = ids.pop(0)
            spelled += bytes([i]) if i < 256 else words[i - 256].encode()
        return spelled.decode()

    def never():
        return [192, 193] + list(range(245, 256))


@wrong("ch02.no_unknowns", "It repeats the two examples, whatever text comes.", see="text-is-bytes")
class only_the_examples:
    def encode(text, words):
        return [108, 97, 32, 256, 32, 240, 159, 153, 130]

    def decode(ids, words):
        return "la casa 🙂"

    def never():
        return list(range(13))


# ---------------------------------------------------------------- ch02.by_hand


@right("ch02.by_hand")
def counter_and_key(counts, k, tie="first", end=""):
    from collections import Counter

    words = [(list(word) + ([end] if end else []), n) for word, n in counts.items()]
    result = []
    for _ in range(k):
        totals = Counter()
        for symbols, n in words:
            totals.update({})
            for i in range(1, len(symbols)):
                totals[symbols[i - 1], symbols[i]] += n
        if len(totals) == 0:
            return result
        pairs = sorted(totals, key=lambda p: -totals[p])  # stable: ties stay in reading order
        best = [p for p in pairs if totals[p] == totals[pairs[0]]]
        if tie == "smallest":
            best.sort()
        elif tie == "largest":
            best.sort(reverse=True)
        left, right = best[0]
        result.append([(left, right), totals[left, right], len(best)])
        joined = []
        for symbols, n in words:
            i, new = 0, []
            while i < len(symbols):
                step = 2 if symbols[i : i + 2] == [left, right] else 1
                new.append("".join(symbols[i : i + step]))
                i += step
            joined.append((new, n))
        words = joined
    return result


@wrong("ch02.by_hand", "Each word counts once, however often it occurs in the text.", see="one-merge")
def words_count_once(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word, end] if end else [*word] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for _, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + 1
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong("ch02.by_hand", "The tie rule is ignored: the pair met first is always taken.", see="the-tie-rule")
def tie_ignored(counts, k, tie="first", end=""):
    spelled = {word: [*word, end] if end else [*word] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        pair = max(totals, key=totals.get)
        learned.append((pair, totals[pair], sum(n == totals[pair] for n in totals.values())))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong(
    "ch02.by_hand",
    "Among tied pairs you take the one met last where the task says first: `>=` instead of `>`.",
    see="the-tie-rule",
)
def last_met(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[-1], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word, end] if end else [*word] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong(
    "ch02.by_hand",
    "The pairs are counted once, at the start. After a merge old pairs are gone and new ones have come: count again.",
    see="one-merge",
)
def counts_once(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    totals = {}
    for word in counts:
        symbols = [*word, end] if end else [*word]
        for pair in zip(symbols, symbols[1:]):
            totals[pair] = totals.get(pair, 0) + counts[word]
    learned = []
    while totals and len(learned) < k:
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        del totals[pair]
    return learned


@wrong(
    "ch02.by_hand",
    "Replacing in a string joined by spaces also hits the end of one symbol and the start of the next: `b c` is found inside `ab c`.",
    see="one-merge",
)
def replaces_in_a_string(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: " ".join([*word, end] if end else [*word]) for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            symbols = symbols.split(" ")
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: symbols.replace(" ".join(pair), "".join(pair)) for word, symbols in spelled.items()}
    return learned


@wrong("ch02.by_hand", "In each word only the first place where the pair occurs is merged.", see="one-merge")
def merges_once_a_word(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word, end] if end else [*word] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        for symbols in spelled.values():
            for i in range(len(symbols) - 1):
                if (symbols[i], symbols[i + 1]) == pair:
                    symbols[i : i + 2] = [pair[0] + pair[1]]
                    break
    return learned


@wrong(
    "ch02.by_hand",
    "The end marker is glued to the last letter. Here it is a symbol of its own, which merges like any other.",
    see="the-tie-rule",
)
def marker_glued(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word[:-1], word[-1] + end] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong("ch02.by_hand", "The end marker is left out: words are merged as if they had no end.", see="the-tie-rule")
def marker_forgotten(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong("ch02.by_hand", "When no pair is left, the largest of nothing is an error: stop early.", see="one-merge")
def never_stops(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word, end] if end else [*word] for word in counts}
    learned = []
    for _ in range(k):
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong(
    "ch02.by_hand",
    "The symbols are bytes, each written as a character: ñ is split in two. The task starts from characters.",
    see="one-merge",
)
def bytes_for_characters(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word.encode().decode("latin1")] + [end] * bool(end) for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            for pair in zip(symbols, symbols[1:]):
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


@wrong(
    "ch02.by_hand",
    "In a run of one symbol you count only the places that can be merged at once; here overlapping places count too.",
    see="one-merge",
)
def no_overlaps(counts, k, tie="first", end=""):
    choose = {"first": lambda pairs: pairs[0], "smallest": min, "largest": max}[tie]
    spelled = {word: [*word, end] if end else [*word] for word in counts}
    learned = []
    while len(learned) < k:
        totals = {}
        for word, symbols in spelled.items():
            used = -1
            for i, pair in enumerate(zip(symbols, symbols[1:])):
                if pair[0] == pair[1] and used == i:
                    continue
                used = i + 1 if pair[0] == pair[1] else -1
                totals[pair] = totals.get(pair, 0) + counts[word]
        if not totals:
            break
        top = max(totals.values())
        tied = [pair for pair in totals if totals[pair] == top]
        pair = choose(tied)
        learned.append((pair, top, len(tied)))
        spelled = {word: merge_pair(symbols, pair, pair[0] + pair[1]) for word, symbols in spelled.items()}
    return learned


# ---------------------------------------------------------------- ch02.space


@right("ch02.space")
def reads_from_the_left(text):
    def kind(c):
        if c.isspace():
            return "space"
        if re.fullmatch(r"\d", c):
            return "digit"
        return "letter" if re.fullmatch(r"[^\W\d_]", c) else "mark"

    runs = []
    for c in text:
        if runs and kind(runs[-1][0]) == kind(c) and not (kind(c) == "digit" and len(runs[-1]) == 3):
            runs[-1] += c
        else:
            runs.append(c)
    for i in range(1, len(runs)):
        if kind(runs[i][0]) in ("letter", "mark") and runs[i - 1].endswith(" "):
            runs[i], runs[i - 1] = " " + runs[i], runs[i - 1][:-1]
    return [run for run in runs if run]


@wrong(
    "ch02.space",
    "Splitting at spaces throws the spaces away: the pieces joined are no longer the text.",
    see="pieces-before-merges",
)
def splits_at_spaces(text):
    return text.split()


@wrong(
    "ch02.space",
    "All spaces before a word go with it. Only one does; the others are a piece of their own.",
    see="pieces-before-merges",
)
def takes_all_spaces(text):
    return re.findall(r" *[^\W\d_]+|\d{1,3}| *(?:[^\s\w]|_)+|\s+", text)


@wrong("ch02.space", "The space goes with the word before it; the rule gives it to the word after.", see="pieces-before-merges")
def space_after(text):
    return re.findall(r"[^\W\d_]+ ?|\d{1,3}|(?:[^\s\w]|_)+ ?|\s+", text)


@wrong("ch02.space", "A letter is more than a to z: ñ, é and 日 fall out or become marks.", see="pieces-before-merges")
def letters_a_to_z(text):
    return re.findall(r" ?[A-Za-z]+|\d{1,3}| ?[^\sA-Za-z\d]+|\s+(?= [^\s\d])|\s+", text)


@wrong(
    "ch02.space",
    "These are GPT-2's rules, which cut off endings such as 's and let digits run on, with the space before them. Here digits go in groups of at most three, without the space.",
    see="pieces-before-merges",
)
def as_gpt2(text):
    return pretokenize(text)


@wrong(
    "ch02.space",
    "The digits are grouped from the right, as thousands are written; the rule says from the left.",
    see="pieces-before-merges",
)
def digits_from_the_right(text):
    pieces = []
    for piece in re.findall(r" ?[^\W\d_]+|\d+| ?(?:[^\s\w]|_)+|\s+(?= [^\s\d])|\s+", text):
        if re.fullmatch(r"\d+", piece):
            first = len(piece) % 3
            pieces += [piece[:first]] * (first > 0) + [piece[i : i + 3] for i in range(first, len(piece), 3)]
        else:
            pieces.append(piece)
    return pieces


@wrong("ch02.space", "`\\w` takes the underscore for a letter; the rule calls it a mark.", see="pieces-before-merges")
def underscore_is_a_letter(text):
    return re.findall(r" ?[^\W\d]+|\d{1,3}| ?[^\s\w]+|\s+(?= [^\s\d])|\s+", text)


@wrong("ch02.space", "Only spaces are kept; line breaks and tabs are lost.", see="pieces-before-merges")
def loses_line_breaks(text):
    return re.findall(r" ?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+| +(?= [^\s\d])| +", text)


@wrong(
    "ch02.space",
    "A run of white space takes the last space too and leaves none for the word after it.",
    see="pieces-before-merges",
)
def keeps_the_last_space(text):
    return re.findall(r"(?<!\s) [^\W\d_]+|[^\W\d_]+|\d{1,3}|(?<!\s) (?:[^\s\w]|_)+|(?:[^\s\w]|_)+|\s+", text)


@wrong(
    "ch02.space",
    "`isalpha` and `isdigit` are other classes than the task's: ² and ½ change sides.",
    see="pieces-before-merges",
)
def by_string_methods(text):
    def kind(c):
        return "space" if c.isspace() else "digit" if c.isdigit() else "letter" if c.isalpha() else "mark"

    runs = []
    for c in text:
        if runs and kind(runs[-1][0]) == kind(c) and not (kind(c) == "digit" and len(runs[-1]) == 3):
            runs[-1] += c
        else:
            runs.append(c)
    for i in range(1, len(runs)):
        if kind(runs[i][0]) in ("letter", "mark") and runs[i - 1].endswith(" "):
            runs[i], runs[i - 1] = " " + runs[i], runs[i - 1][:-1]
    return [run for run in runs if run]


@wrong(
    "ch02.space",
    "Your list of marks stops at ASCII, ¿ and ¡: dashes, curly quotes and emoji belong to no piece and are lost.",
    see="pieces-before-merges",
)
def ascii_marks(text):
    return re.findall(r" ?[^\W\d_]+|\d{1,3}| ?[!-/:-@\[-`{-~¿¡]+|\s+(?= [^\s\d])|\s+", text)


# ---------------------------------------------------------------- ch02.encoder_test


@right("ch02.encoder_test")
def properties(encode):
    a, b, c, space = 97, 98, 99, 32
    cases = [
        ("abc", [(b, c), (a, b)], [97, 256]),
        ("abc", [(a, b), (b, c)], [256, 99]),
        ("aaaa", [(a, a), (256, 256)], [257]),
        ("aaaaa", [(a, a)], [256, 256, 97]),
        ("abab", [(a, b)], [256, 256]),
        ("a b", [(a, space)], [97, 32, 98]),
        (" É", [], [32, 195, 137]),
        (" B ", [], [32, 66, 32]),
        ("abcd", [(b, c), (c, 100), (a, b)], [97, 256, 100]),
        ("a1a!", [(a, 49), (a, 33)], [97, 49, 97, 33]),
    ]
    return all(list(encode(text, merges)) == expected for text, merges, expected in cases)


@wrong(
    "ch02.encoder_test",
    "Only the round trip is tested. Every encoder that keeps the bytes passes it, whatever its pieces are.",
    see="text-to-tokens",
)
def round_trip_only(encode):
    texts = ["", "abc", "aaaaaaa", "ab ab abcab", " the Lowest", "  newest É 日本🙂"]
    learned = bpe_train({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 12)
    return all(bpe_decode(encode(text, learned), learned) == text for text in texts)


@wrong(
    "ch02.encoder_test",
    "Only the numbers of tokens are compared. Two cuts of a text can have equally many pieces.",
    see="text-to-tokens",
)
def counts_only(encode):
    texts = ["abc", "aaaaaaa", " the Lowest", "  newest É 日本🙂", "a b"]
    lists = [bpe_train({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 12), [(98, 99), (97, 98)], [(97, 97)], [(97, 32)]]
    return all(len(encode(text, learned)) == len(bpe_encode(text, learned)) for learned in lists for text in texts)


@wrong("ch02.encoder_test", "One easy word shows nothing: nearly every wrong encoder is right on it.", see="text-to-tokens")
def one_easy_word(encode):
    learned = bpe_train({"low": 5}, 2)
    return encode("low", learned) == bpe_encode("low", learned)


@wrong(
    "ch02.encoder_test",
    "Your merges never join a letter with a space, so an encoder that merges across cuts passes.",
    see="pieces-before-merges",
)
def nothing_crosses(encode):
    lists = [
        bpe_train({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 12),
        [(98, 99), (97, 98)],
        [(97, 98), (98, 99), (97, 257)],
        [(97, 97), (256, 256)],
    ]
    texts = ["", "abc", "aaaaaaa", " the Lowest", "  newest É 日本🙂", "abcabc bc", "abcd"]
    return all(encode(text, learned) == bpe_encode(text, learned) for learned in lists for text in texts)


@wrong(
    "ch02.encoder_test",
    "The texts are small English letters only: what becomes of capitals and other scripts is never tested.",
    see="text-is-bytes",
)
def small_letters_only(encode):
    lists = [
        bpe_train({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 12),
        [(98, 99), (97, 98)],
        [(97, 98), (98, 99), (97, 257)],
        [(97, 97), (256, 256)],
        [(97, 32)],
    ]
    texts = ["", "abc", "aaaaaaa", " the lowest", "  newest", "abcabc bc", "abcd", "a b"]
    return all(encode(text, learned) == bpe_encode(text, learned) for learned in lists for text in texts)


@wrong(
    "ch02.encoder_test",
    "No text holds the same pair twice in one piece, so an encoder that merges it once passes.",
    see="one-merge",
)
def nothing_twice(encode):
    lists = [
        bpe_train({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 12),
        [(98, 99), (97, 98)],
        [(97, 98), (98, 99), (97, 257)],
        [(97, 32)],
    ]
    texts = ["", "abc", " the Lowest", "  newest É 日本🙂", "abcd", "a b"]
    return all(encode(text, learned) == bpe_encode(text, learned) for learned in lists for text in texts)


@wrong(
    "ch02.encoder_test",
    "The ids are sorted before they are compared, so their order in the text is never tested.",
    see="text-to-tokens",
)
def order_forgotten(encode):
    lists = [
        bpe_train({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 12),
        [(98, 99), (97, 98)],
        [(97, 98), (98, 99), (97, 257)],
        [(97, 97), (256, 256)],
        [(97, 32)],
    ]
    texts = ["", "abc", "aaaaaaa", " the Lowest", "  newest É 日本🙂", "abcabc bc", "abcd", "a b"]
    return all(sorted(encode(text, learned)) == sorted(bpe_encode(text, learned)) for learned in lists for text in texts)


@wrong(
    "ch02.encoder_test",
    "Random merges seldom meet in random texts, so little happens in your cases: make a text for each mistake.",
    see="text-to-tokens",
)
def random_texts(encode):
    rng = np.random.default_rng(0)
    for _ in range(60):
        made = []
        for i in range(int(rng.integers(0, 7))):
            pair = tuple(int(x) for x in rng.choice([97, 98, 99, 32, *range(256, 256 + i)], 2))
            if pair in made:
                break
            made.append(pair)
        for _ in range(4):
            text = "".join(rng.choice(list("abc AÉ"), size=int(rng.integers(0, 12))))
            if encode(text, made) != bpe_encode(text, made):
                return False
    return True


@wrong("ch02.encoder_test", "Everything is accepted.", see="text-to-tokens")
def accepts_everything(encode):
    return True


@wrong(
    "ch02.encoder_test",
    "Only the function that you know is accepted. Another encoder can be right as well: compare what it does.",
    see="text-to-tokens",
)
def by_identity(encode):
    return encode is bpe_encode


# ---------------------------------------------------------------- ch02.injection

wrong(
    "ch02.injection",
    "a",
    "special_encode reads the stranger's text too, so an <|end|> in the message ends the turn.",
    see="special-tokens",
)
wrong("ch02.injection", "b", "Taking a string out can put it together again from what was on either side.", see="special-tokens")
wrong(
    "ch02.injection",
    "d",
    "The turn is over before any instruction is read: tokens are made before the model sees them.",
    see="special-tokens",
)

# ---------------------------------------------------------------- ch02.tax


@right("ch02.tax")
def with_arrays(training, k, english, spanish):
    learned = bpe_train(training, k)
    totals = [np.sum([(len(bpe_encode(s, learned)), len(s)) for s in side], axis=0) for side in (english, spanish)]
    tokens, characters = totals[1] / totals[0]
    return float(tokens), float(tokens / characters)


@right("ch02.tax")
def with_a_function_for_one_language(training, k, english, spanish):
    learned = bpe_train(training, k)

    def totals(sentences):
        return sum(len(bpe_encode(s, learned)) for s in sentences), len("".join(sentences))

    (en, characters_en), (es, characters_es) = totals(english), totals(spanish)
    return [es / en, (es / characters_es) / (en / characters_en)]


@wrong("ch02.tax", "Divided by bytes instead of characters: what ñ and é cost disappears.", see="the-language-tax")
def per_byte(training, k, english, spanish):
    learned = bpe_train(training, k)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    lengths = sum(len(s.encode()) for s in english) / sum(len(s.encode()) for s in spanish)
    return es / en, es / en * lengths


@wrong(
    "ch02.tax",
    "The characters are missing from the second number, which still includes how much longer one of the two texts is.",
    see="the-language-tax",
)
def tokens_twice(training, k, english, spanish):
    learned = bpe_train(training, k)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    return es / en, es / en


@wrong(
    "ch02.tax",
    "The first number is what a user pays, and nobody pays less because a text has many characters: do not divide by them there.",
    see="the-language-tax",
)
def characters_twice(training, k, english, spanish):
    learned = bpe_train(training, k)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en * characters, es / en * characters


@wrong("ch02.tax", "The two numbers have changed places: the tax comes first.", see="the-language-tax")
def exchanged(training, k, english, spanish):
    learned = bpe_train(training, k)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en * characters, es / en


@wrong("ch02.tax", "Upside down: English over Spanish.", see="the-language-tax")
def upside_down(training, k, english, spanish):
    learned = bpe_train(training, k)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return en / es, en / es / characters


@wrong(
    "ch02.tax",
    "The mean of the sentences' own rates gives a short sentence the weight of a long one; the task takes totals.",
    see="the-language-tax",
)
def mean_of_rates(training, k, english, spanish):
    learned = bpe_train(training, k)

    def rate(sentences):
        return sum(len(bpe_encode(s, learned)) / max(len(s), 1) for s in sentences) / len(sentences)

    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    return es / en, rate(spanish) / rate(english)


@wrong(
    "ch02.tax",
    "The tokenizer also learned from the test sentences, so it knows them: train on `training` alone.",
    see="the-language-tax",
)
def trains_on_the_test(training, k, english, spanish):
    learned = bpe_train(training + " " + " ".join(english) + " " + " ".join(spanish), k)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en, es / en * characters


@wrong("ch02.tax", "No merge is used: the texts are only spelled in bytes.", see="text-to-tokens")
def bytes_only(training, k, english, spanish):
    en, es = (sum(len(s.encode()) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en, es / en * characters


@wrong(
    "ch02.tax",
    "The merges of the chapter's first cell are used instead of `k` merges learned from `training`.",
    see="the-language-tax",
)
def other_merges(training, k, english, spanish):
    en, es = (sum(len(bpe_encode(s, merges[:k])) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en, es / en * characters


@wrong(
    "ch02.tax",
    "The sentences are glued together before they are encoded, so the last word of one and the first of the next share a piece.",
    see="pieces-before-merges",
)
def glued(training, k, english, spanish):
    learned = bpe_train(training, k)
    en, es = (len(bpe_encode("".join(side), learned)) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en, es / en * characters


@wrong("ch02.tax", "A sentence that occurs twice in the list is counted once.", see="the-language-tax")
def each_sentence_once(training, k, english, spanish):
    learned = bpe_train(training, k)
    english, spanish = set(english), set(spanish)
    en, es = (sum(len(bpe_encode(s, learned)) for s in side) for side in (english, spanish))
    characters = sum(map(len, english)) / sum(map(len, spanish))
    return es / en, es / en * characters


# ---------------------------------------------------------------- ch02.perplexity

right(
    "ch02.perplexity",
    cell('P, n_A, n_B = sympy.symbols("P n_A n_B", positive=True)\nequal_perplexity = 2 ** (sympy.log(P, 2) * n_A / n_B)'),
)
right("ch02.perplexity", cell('equal_perplexity = sympy.sympify("P ** (1.0 * n_A / n_B)")'))

right(
    "ch02.perplexity",
    cell('P, n_A, n_B = sympy.symbols("P n_A n_B", positive=True)\nequal_perplexity = sympy.exp(sympy.log(P) * n_A / n_B)'),
)
wrong(
    "ch02.perplexity",
    cell('P, n_A, n_B = sympy.symbols("P n_A n_B", positive=True)\nequal_perplexity = P * n_A / n_B'),
    "Losses scale with the number of tokens; perplexities are their exponentials and do not.",
    see="bits-per-byte",
)
wrong(
    "ch02.perplexity",
    cell('P, n_A, n_B = sympy.symbols("P n_A n_B", positive=True)\nequal_perplexity = P ** (n_B / n_A)'),
    "Upside down: with fewer tokens B may be more perplexed at each, not less.",
    see="bits-per-byte",
)
wrong(
    "ch02.perplexity",
    cell('P, n_A, n_B = sympy.symbols("P n_A n_B", positive=True)\nequal_perplexity = P'),
    "The same perplexity per token on fewer tokens is a higher probability of the text: that is a better model, not an equal one.",
    see="bits-per-byte",
)
wrong(
    "ch02.perplexity",
    cell('P, n_A, n_B = sympy.symbols("P n_A n_B", positive=True)\nequal_perplexity = sympy.log(P) * n_A / n_B'),
    "That is the loss of B in nats per token; its perplexity is the exponential of it.",
    see="bits-per-byte",
)

# ---------------------------------------------------------------- ch02.prediction

wrong("ch02.prediction", None, "Nothing is chosen: replace None by one of the letters.", see="an-experiment-that-can-fail")
wrong("ch02.prediction", 9.0, "A letter was asked for, not a number.", see="an-experiment-that-can-fail")

# ---------------------------------------------------------------- changes that make no difference

for change in (
    "[*range(55295), *range(57344, 1114112)]",
    "[*range(55296), *range(57345, 1114112)]",
    "[*range(55296), *range(57344, 1114111)]",
):
    equivalent(
        "ch02.no_unknowns", f"`characters = ''.join(map(chr, {change}))`", "the bytes of the character left out occur in others"
    )
equivalent(
    "ch02.no_unknowns",
    "`spelled = b''.join((bytes([i]) if i < 255 else words[i - 256].encode() for i in ids))`",
    "the byte 255 is in no text",
)
equivalent(
    "ch02.by_hand",
    "`spelled = {word: merge_pair(symbols, pair, pair[0] + pair[-1]) for word, symbols in spelled.items()}`",
    "the last of two is the second",
)
equivalent(
    "ch02.perplexity", "`P, n_A, n_B = sympy.symbols('P n_A n_B'…)`", "the names tell the letters, not what is assumed of them"
)
