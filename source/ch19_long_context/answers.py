"""Other right answers and named wrong answers of the exercises of ch19."""

import math

import torch

from autograder.answers import equivalent, right, wrong
from course.position_rope import rope_frequencies

ANGLES, WAYS, RAMPS, TEST = "angles-it-has-never-met", "three-ways-to-turn-slower", "two-ramps", "a-fair-passkey-test"


# ---------------------------------------------------------------- ch19.unseen


@right("ch19.unseen")
def by_all_pairs(omega, used, length, T):
    i = torch.arange(T)
    gap = (i[:, None] - i)[(i[:, None] - i) >= 0].double()
    bound = omega * (length - 1)
    new = (torch.remainder(gap[:, None] * used, 2 * math.pi) > bound + 1e-9) & (bound < 2 * math.pi)
    return new.double().mean(dim=0)


@wrong("ch19.unseen", "You counted each distance once; in a text short distances occur more often than long ones.", see=ANGLES)
def each_distance_once(omega, used, length, T):
    r = torch.arange(T, dtype=torch.float64)
    angles, bound, weight = torch.remainder(r[:, None] * used, 2 * math.pi), omega * (length - 1), torch.ones_like(r)
    new = (angles > bound + 1e-9) & (bound < 2 * math.pi)
    return weight @ new.double() / weight.sum()


@wrong("ch19.unseen", "Angles are the same after a whole turn: you compared them without taking whole turns off.", see=ANGLES)
def no_whole_turns(omega, used, length, T):
    r = torch.arange(T, dtype=torch.float64)
    angles, bound, weight = r[:, None] * used, omega * (length - 1), T - r
    new = angles > bound + 1e-9
    return weight @ new.double() / weight.sum()


@wrong("ch19.unseen", "The weights are turned around: the longest distance occurs once in a text, not most often.", see=ANGLES)
def long_ones_most(omega, used, length, T):
    r = torch.arange(T, dtype=torch.float64)
    angles, bound, weight = torch.remainder(r[:, None] * used, 2 * math.pi), omega * (length - 1), r + 1
    new = (angles > bound + 1e-9) & (bound < 2 * math.pi)
    return weight @ new.double() / weight.sum()


@wrong("ch19.unseen", "The longest distance of training is one less than its number of tokens.", see=ANGLES)
def one_too_far(omega, used, length, T):
    r = torch.arange(T, dtype=torch.float64)
    angles, bound, weight = torch.remainder(r[:, None] * used, 2 * math.pi), omega * length, T - r
    new = (angles > bound + 1e-9) & (bound < 2 * math.pi)
    return weight @ new.double() / weight.sum()


@wrong("ch19.unseen", "The text is read with the frequencies of now; you turned it with those of training.", see=ANGLES)
def frequencies_of_training(omega, used, length, T):
    r = torch.arange(T, dtype=torch.float64)
    angles, bound, weight = torch.remainder(r[:, None] * omega, 2 * math.pi), omega * (length - 1), T - r
    new = (angles > bound + 1e-9) & (bound < 2 * math.pi)
    return weight @ new.double() / weight.sum()


@wrong("ch19.unseen", "What training has met is decided by its own frequencies, not by those of now.", see=ANGLES)
def met_with_those_of_now(omega, used, length, T):
    r = torch.arange(T, dtype=torch.float64)
    angles, bound, weight = torch.remainder(r[:, None] * used, 2 * math.pi), used * (length - 1), T - r
    new = (angles > bound + 1e-9) & (bound < 2 * math.pi)
    return weight @ new.double() / weight.sum()


# ---------------------------------------------------------------- ch19.base


BASE = {"new_base": 10_000 * 4 ** (64 / 62), "slower": 10 ** (62 / 64), "middle": 4 ** (16 / 31)}
wrong("ch19.base", BASE | {"new_base": 40_000.0}, "With that base the slowest pair slows down by less than the factor.", see=WAYS)
wrong("ch19.base", BASE | {"slower": 10.0}, "The slowest pair's exponent is near −1, but it is not −1.", see=WAYS)
wrong("ch19.base", BASE | {"middle": 2.0}, "Pair 16 lies a little past the middle of pairs 0 to 31.", see=WAYS)
wrong("ch19.base", BASE | {"middle": 4.0}, "That is how interpolation slows every pair; here it depends on the pair.", see=WAYS)


# ---------------------------------------------------------------- ch19.stretch


@right("ch19.stretch")
def pair_by_pair(d_head, theta, s):
    n = d_head // 2
    omega = [theta ** (-i / n) for i in range(n)]
    return torch.tensor([[w / s for w in omega], [w / s ** (i / (n - 1)) for i, w in enumerate(omega)]], dtype=torch.float64)


@wrong("ch19.stretch", "You multiplied the base by the factor: the slowest pair then turns less than s times slower.", see=WAYS)
def base_times_factor(d_head, theta, s):
    first, second = rope_frequencies(d_head, theta) / s, rope_frequencies(d_head, theta * s)
    return torch.stack([first, second])


@wrong("ch19.stretch", "The exponent is upside down.", see=WAYS)
def exponent_upside_down(d_head, theta, s):
    first, second = rope_frequencies(d_head, theta) / s, rope_frequencies(d_head, theta * s ** ((d_head - 2) / d_head))
    return torch.stack([first, second])


@wrong("ch19.stretch", "The two rows are exchanged.", see=WAYS)
def rows_exchanged(d_head, theta, s):
    first, second = rope_frequencies(d_head, theta) / s, rope_frequencies(d_head, theta * s ** (d_head / (d_head - 2)))
    return torch.stack([first, second]).flip(0)


@wrong("ch19.stretch", "Interpolation turns all pairs slower; you turned them faster.", see=WAYS)
def faster(d_head, theta, s):
    first, second = rope_frequencies(d_head, theta) * s, rope_frequencies(d_head, theta * s ** (d_head / (d_head - 2)))
    return torch.stack([first, second])


@wrong("ch19.stretch", "Your frequencies are float32; the statement asks for float64.", see=WAYS)
def in_float32(d_head, theta, s):
    first, second = rope_frequencies(d_head, theta) / s, rope_frequencies(d_head, theta * s ** (d_head / (d_head - 2)))
    return torch.stack([first, second]).float()


# ---------------------------------------------------------------- ch19.ramp


@right("ch19.ramp")
def interpolated_first(d_head, theta, s, length, low=1, high=32):
    i = torch.arange(d_head // 2, dtype=torch.float64)
    wave = 2 * math.pi * theta ** (2 * i / d_head)
    edge = [d_head * math.log(length / (2 * math.pi * n)) / math.log(theta) / 2 for n in (high, low)]
    first, last = max(0, math.floor(edge[0])), min(d_head - 1, math.ceil(edge[1]))
    ramp = ((i - first) / (last - first)).clamp(0, 1)
    return 2 * math.pi / wave * (1 - ramp) + 2 * math.pi / (s * wave) * ramp


@wrong(
    "ch19.ramp",
    "That is the paper's ramp, a line in the number of turns; asked for is a line in the number of the pair.",
    see=RAMPS,
)
def in_turns(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    kept = ((omega * length / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
    return omega * (kept + (1 - kept) / s)


@wrong("ch19.ramp", "You interpolate the fast pairs and leave the slow ones: it is the other way round.", see=RAMPS)
def other_way_round(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    first, last = (d_head * math.log(length / (2 * math.pi * n)) / (2 * math.log(theta)) for n in (high, low))
    first, last = max(math.floor(first), 0), min(math.ceil(last), d_head - 1)
    kept = (1 - (torch.arange(d_head // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    kept = 1 - kept
    return omega * (kept + (1 - kept) / s)


@wrong("ch19.ramp", "The two ends of the ramp are whole numbers: the first is rounded down, the last up.", see=RAMPS)
def ends_not_rounded(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    first, last = (d_head * math.log(length / (2 * math.pi * n)) / (2 * math.log(theta)) for n in (high, low))
    first, last = max(float(first), 0), min(float(last), d_head - 1)
    kept = (1 - (torch.arange(d_head // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    return omega * (kept + (1 - kept) / s)


@wrong("ch19.ramp", "The beginning of the ramp may come out negative, and is then 0.", see=RAMPS)
def negative_beginning(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    first, last = (d_head * math.log(length / (2 * math.pi * n)) / (2 * math.log(theta)) for n in (high, low))
    first, last = max(math.floor(first), -100), min(math.ceil(last), d_head - 1)
    kept = (1 - (torch.arange(d_head // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    return omega * (kept + (1 - kept) / s)


@wrong("ch19.ramp", "You solved for the dimension, of which a pair has two, and not for the number of the pair.", see=RAMPS)
def dimension_for_pair(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    first, last = (d_head * math.log(length / (2 * math.pi * n)) / (1 * math.log(theta)) for n in (high, low))
    first, last = max(math.floor(first), 0), min(math.ceil(last), d_head - 1)
    kept = (1 - (torch.arange(d_head // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    return omega * (kept + (1 - kept) / s)


@wrong("ch19.ramp", "You rounded to the nearest number: one end is rounded down, and the other up.", see=RAMPS)
def rounded_to_nearest(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    first, last = (d_head * math.log(length / (2 * math.pi * n)) / (2 * math.log(theta)) for n in (high, low))
    first, last = max(round(first), 0), min(round(last), d_head - 1)
    kept = (1 - (torch.arange(d_head // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    return omega * (kept + (1 - kept) / s)


@wrong("ch19.ramp", "You left `low` and `high` at 1 and 32, whatever was handed over.", see=RAMPS)
def always_one_and_thirty_two(d_head, theta, s, length, low=1, high=32):
    omega = rope_frequencies(d_head, theta)
    first, last = (d_head * math.log(length / (2 * math.pi * n)) / (2 * math.log(theta)) for n in (32, 1))
    first, last = max(math.floor(first), 0), min(math.ceil(last), d_head - 1)
    kept = (1 - (torch.arange(d_head // 2, dtype=torch.float64) - first) / (last - first)).clamp(0, 1)
    return omega * (kept + (1 - kept) / s)


# ---------------------------------------------------------------- ch19.trials


TRIALS = {"low": 12 / (12 + 1.96**2), "high": 1.96**2 / (24 + 1.96**2), "needed": 35, "digits_right": 0.9**5}
wrong("ch19.trials", TRIALS | {"low": 1.0, "high": 0.0}, "An interval has a width even where all or none were right.", see=TEST)
wrong("ch19.trials", TRIALS | {"needed": 9}, "Nine of nine leaves a lower end far below that.", see=TEST)
wrong("ch19.trials", TRIALS | {"needed": 34}, "With that number the interval still reaches below the floor.", see=TEST)
wrong("ch19.trials", TRIALS | {"digits_right": 0.9}, "A key counts only if all of its digits are right.", see=TEST)


# ---------------------------------------------------------------- ch19.passkey


@right("ch19.passkey")
def with_randoms_own(write, filler, lengths, depths, trials, seed):
    dice = __import__("random").Random(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = [dice.randrange(10) for _ in range(5)]
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


@right("ch19.passkey")
def by_slices(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = torch.randint(10, (5,), generator=generator).tolist()
                written = write(list(filler)[:at] + [10] + key + list(filler)[at:room] + [10], 5)
                found += all(a == b for a, b in zip(written, key, strict=True))
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "One key for all prompts: a model that always writes it would pass.", see=TEST)
def one_key_for_all(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    key = torch.randint(10, (5,), generator=generator).tolist()
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "You counted a key as found when its digits are there in another order.", see=TEST)
def any_order(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = torch.randint(10, (5,), generator=generator).tolist()
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += sorted(written) == sorted(key)
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "You counted a key as found when most of its digits are right.", see=TEST)
def most_digits(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = torch.randint(10, (5,), generator=generator).tolist()
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += sum(a == b for a, b in zip(written, key, strict=True)) >= 3
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "The key and the question came on top of the filler, so the prompt is longer than its length.", see=TEST)
def longer_than_said(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = torch.randint(10, (5,), generator=generator).tolist()
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "Depth is counted from the end here; 0 is the beginning of the text.", see=TEST)
def from_the_end(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round((1 - depth) * room)
            for _ in range(trials):
                key = torch.randint(10, (5,), generator=generator).tolist()
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "The digits are drawn once for each depth; they are to be new in each prompt.", see=TEST)
def one_key_a_depth(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            key = torch.randint(10, (5,), generator=generator).tolist()
            for _ in range(trials):
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "The digits are drawn from fewer than ten.", see=TEST)
def no_nine(write, filler, lengths, depths, trials, seed):
    generator = torch.Generator().manual_seed(seed)
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = torch.randint(9, (5,), generator=generator).tolist()
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


@wrong("ch19.passkey", "The seed is not used: two calls with one seed give different prompts.", see=TEST)
def seed_forgotten(write, filler, lengths, depths, trials, seed):
    grid = []
    for length in lengths:
        room, row = length - 7, []
        for depth in depths:
            found, at = 0, round(depth * room)
            for _ in range(trials):
                key = torch.randint(10, (5,)).tolist()
                written = write([*filler[:at], 10, *key, *filler[at:room], 10], 5)
                found += list(written) == key
            row.append(int(found))
        grid.append(row)
    return grid


# ---------------------------------------------------------------- ch19.predict


wrong(
    "ch19.predict",
    {"lowest": "RoPE", "dearest": "PI 4"},
    "That is none of the six that are measured.",
    see="predict-then-change-frequencies",
)
wrong(
    "ch19.predict",
    {"lowest": "anew", "dearest": "anew"},
    "The rival changes no frequency, so it costs nothing there.",
    see="predict-then-change-frequencies",
)


# ---------------------------------------------------------------- changes that make no difference

equivalent("ch19.unseen", "`new = (angles >= bound + 1e-09) …`", "no angle of the tests lies exactly a billionth above the bound")
equivalent("ch19.base", "`new_base = 9999 * …`", "a ten-thousandth less, within the part in a thousand that is allowed")
equivalent(
    "ch19.passkey",
    "`generator, grid = (torch.manual_seed(seed), [])`",
    "the shared generator, seeded, draws as evenly and repeatably",
)
