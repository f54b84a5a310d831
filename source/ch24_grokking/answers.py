"""Other right answers and named wrong answers of the exercises of ch24."""

import math

import torch

from autograder.answers import equivalent, right, wrong

# ---------------------------------------------------------------- ch24.curve


@right("ch24.curve")
def last_failure(log, learned=0.99, grokked=0.95):
    steps = sorted(look[0] for look in log)
    found = []
    for column, level in ((1, learned), (2, grokked)):
        below = [look[0] for look in log if look[column] < level]
        held = [step for step in steps if not below or step > max(below)]
        found.append(held[0] if held else None)
    t_train, t_test = found
    return (t_train, t_test, None) if None in found else (t_train, t_test, t_test - t_train)


@wrong(
    "ch24.curve",
    "The first look at the level is not enough: a curve can fall back below it, and then the phase had not been reached.",
    see="three-phases",
)
def first_time_at_the_level(log, learned=0.99, grokked=0.95):
    first = lambda column, level: next((look[0] for look in sorted(log) if look[column] >= level), None)  # noqa: E731
    t_train, t_test = first(1, learned), first(2, grokked)
    return t_train, t_test, None if t_train is None or t_test is None else t_test - t_train


@wrong("ch24.curve", "The log is in any order: the last entry need not be the last look.", see="three-phases")
def in_the_order_given(log, learned=0.99, grokked=0.95):
    def settled(column, level):
        first = None
        for look in reversed(log):
            if look[column] < level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, learned), settled(2, grokked)
    return t_train, t_test, None if t_train is None or t_test is None else t_test - t_train


@wrong("ch24.curve", "An accuracy that equals the level has reached it.", see="three-phases")
def above_the_level(log, learned=0.99, grokked=0.95):
    def settled(column, level):
        first = None
        for look in sorted(log, reverse=True):
            if look[column] <= level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, learned), settled(2, grokked)
    return t_train, t_test, None if t_train is None or t_test is None else t_test - t_train


@wrong(
    "ch24.curve",
    "A run that has not grokked by the last look gets that look as its time. It is later than that, by an unknown amount.",
    see="three-phases",
)
def last_step_for_never(log, learned=0.99, grokked=0.95):
    looks = sorted(log)

    def settled(column, level):
        first = looks[-1][0]
        for look in reversed(looks):
            if look[column] < level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, learned), settled(2, grokked)
    return t_train, t_test, t_test - t_train


@wrong("ch24.curve", "The two levels are exchanged.", see="three-phases")
def levels_exchanged(log, learned=0.99, grokked=0.95):
    looks = sorted(log)

    def settled(column, level):
        first = None
        for look in reversed(looks):
            if look[column] < level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, grokked), settled(2, learned)
    return t_train, t_test, None if t_train is None or t_test is None else t_test - t_train


@wrong(
    "ch24.curve",
    "Step 0 is a time like any other. A test such as `if t_train` takes it for none, so ask whether it `is None`.",
    see="three-phases",
)
def zero_is_no_time(log, learned=0.99, grokked=0.95):
    looks = sorted(log)

    def settled(column, level):
        first = None
        for look in reversed(looks):
            if look[column] < level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, learned), settled(2, grokked)
    return t_train, t_test, t_test - t_train if t_train and t_test else None


@wrong("ch24.curve", "The caller's log was sorted: `log.sort()` works in place, `sorted` makes a new list.", see="three-phases")
def sorts_the_log_itself(log, learned=0.99, grokked=0.95):
    log.sort()

    def settled(column, level):
        first = None
        for look in reversed(log):
            if look[column] < level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, learned), settled(2, grokked)
    return t_train, t_test, None if t_train is None or t_test is None else t_test - t_train


@wrong(
    "ch24.curve",
    "If one time is missing, the other is known all the same: only the gap is missing with it.",
    see="three-phases",
)
def all_three_or_none(log, learned=0.99, grokked=0.95):
    looks = sorted(log)

    def settled(column, level):
        first = None
        for look in reversed(looks):
            if look[column] < level:
                break
            first = look[0]
        return first

    t_train, t_test = settled(1, learned), settled(2, grokked)
    return (None, None, None) if t_train is None or t_test is None else (t_train, t_test, t_test - t_train)


# ---------------------------------------------------------------- ch24.restricted


@right("ch24.restricted")
def by_fft(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    kept = torch.fft.irfft(spectrum * keep, n=p, dim=0)
    return torch.nn.functional.cross_entropy(kept, torch.arange(p)).item()


@wrong(
    "ch24.restricted",
    "You averaged over all pairs with a sum, not only over those that were given, so what was memorised about the others leaks in.",
    see="not-so-sudden",
)
def over_all_pairs(logits, frequencies, pairs):
    p = logits.shape[-1]
    pairs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    table = (
        torch.zeros(p, p, dtype=torch.float64).index_add(0, pairs.sum(dim=1) % p, logits[pairs[:, 0], pairs[:, 1]].double()) / p
    )
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    return float(torch.nn.functional.cross_entropy(torch.fft.irfft(spectrum * keep, n=p, dim=0), torch.arange(p)))


@wrong(
    "ch24.restricted",
    "The frequencies run along the answers. What is to stay depends on the sum, so they must run along s.",
    see="not-so-sudden",
)
def along_the_answers(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=1)
    keep = torch.zeros(spectrum.shape[1], dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    return float(torch.nn.functional.cross_entropy(torch.fft.irfft(spectrum * keep, n=p, dim=1), torch.arange(p)))


@wrong("ch24.restricted", "The mean over s was thrown away together with the other frequencies; it stays.", see="not-so-sudden")
def without_the_mean(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[list(frequencies)] = 1
    return float(torch.nn.functional.cross_entropy(torch.fft.irfft(spectrum * keep, n=p, dim=0), torch.arange(p)))


@wrong(
    "ch24.restricted",
    "Only the cosines were kept. A wave along s has a phase, so it needs the sine as well.",
    see="not-so-sudden",
)
def cosines_only(logits, frequencies, pairs):
    p = logits.shape[-1]
    s = torch.arange(p, dtype=torch.float64)
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    kept = table.mean(dim=0, keepdim=True).expand(p, p).clone()
    for k in frequencies:
        wave = torch.cos(2 * math.pi * k * s / p)
        kept += 2 / p * torch.outer(wave, wave @ table)
    return float(torch.nn.functional.cross_entropy(kept, torch.arange(p)))


@wrong(
    "ch24.restricted",
    "You summed over the pairs of a sum instead of averaging: sums that more pairs have get larger logits.",
    see="not-so-sudden",
)
def sums_instead_of_means(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    return float(torch.nn.functional.cross_entropy(torch.fft.irfft(spectrum * keep, n=p, dim=0), torch.arange(p)))


@wrong("ch24.restricted", "The given frequencies were taken away, not kept: that is the excluded loss.", see="not-so-sudden")
def excluded_instead(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.ones(len(spectrum), 1, dtype=torch.float64)
    keep[list(frequencies)] = 0
    return float(torch.nn.functional.cross_entropy(torch.fft.irfft(spectrum * keep, n=p, dim=0), torch.arange(p)))


@wrong(
    "ch24.restricted",
    "You calculated in float32: with large logits its rounding alone is more than 1e-6.",
    see="not-so-sudden",
)
def in_float32(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].float())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1)
    keep[[0, *frequencies]] = 1
    return float(torch.nn.functional.cross_entropy(torch.fft.irfft(spectrum * keep, n=p, dim=0), torch.arange(p)))


@wrong(
    "ch24.restricted",
    "The loss is averaged over the given pairs. Every sum counts the same, however many pairs it has.",
    see="not-so-sudden",
)
def mean_over_the_pairs(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    kept = torch.fft.irfft(spectrum * keep, n=p, dim=0)
    return float(torch.nn.functional.cross_entropy(kept[total], total))


@wrong(
    "ch24.restricted",
    "Sums without a pair were left out of the mean at the end. Their row of zeros is filtered like the others, and counts.",
    see="not-so-sudden",
)
def mean_over_the_sums_that_were_there(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    kept = torch.fft.irfft(spectrum * keep, n=p, dim=0)
    there = total.unique()
    return float(torch.nn.functional.cross_entropy(kept[there], there))


@wrong(
    "ch24.restricted",
    "You divided 0 by 0 for a sum that none of the pairs has; its mean is set to zeros.",
    see="not-so-sudden",
)
def zero_over_zero(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[[0, *frequencies]] = 1
    kept = torch.fft.irfft(spectrum * keep, n=p, dim=0)
    return float(torch.nn.functional.cross_entropy(kept, torch.arange(p)))


@wrong(
    "ch24.restricted",
    "The waves come back at half of their height: a cosine over p steps has p/2 as its inner product with itself.",
    see="not-so-sudden",
)
def waves_at_half_height(logits, frequencies, pairs):
    p = logits.shape[-1]
    total = pairs.sum(dim=1) % p
    table = torch.zeros(p, p, dtype=torch.float64).index_add(0, total, logits[pairs[:, 0], pairs[:, 1]].double())
    table = table / total.bincount(minlength=p).clamp_min(1)[:, None]
    spectrum = torch.fft.rfft(table, dim=0)
    keep = torch.zeros(len(spectrum), 1, dtype=torch.float64)
    keep[list(frequencies)] = 0.5
    keep[0] = 1
    kept = torch.fft.irfft(spectrum * keep, n=p, dim=0)
    return float(torch.nn.functional.cross_entropy(kept, torch.arange(p)))


# ---------------------------------------------------------------- ch24.engine


@right("ch24.engine")
def model_by_model(w, g, m, v, t, rate, decays):
    news = []
    for i, decay in enumerate(decays):
        m_i = m[i] + 0.1 * (g[i] - m[i])
        v_i = v[i] + 0.02 * (g[i].square() - v[i])
        adam = (m_i / (1 - 0.9**t)) / ((v_i / (1 - 0.98**t)).sqrt() + 1e-8)
        news.append((w[i] * (1 - rate * decay) - rate * adam, m_i, v_i))
    return tuple(torch.stack(each) for each in zip(*news, strict=True))


@wrong(
    "ch24.engine",
    "The decay went into the gradient. Adam divides by the gradient's size, so it divides the decay as well.",
    see="the-engine",
)
def decay_in_the_gradient(w, g, m, v, t, rate, decays):
    g = g + torch.tensor(decays, dtype=w.dtype).view(-1, *[1] * (w.ndim - 1)) * w
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    return w - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8), m, v


@wrong("ch24.engine", "The shrinking is not multiplied by the rate: weights go to zero within a few steps.", see="the-engine")
def decay_without_the_rate(w, g, m, v, t, rate, decays):
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    shrink = (1 - torch.tensor(decays, dtype=w.dtype)).view(-1, *[1] * (w.ndim - 1))
    return shrink * w - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8), m, v


@wrong("ch24.engine", "One decay for all models: each has its own, along the first axis.", see="the-engine")
def mean_decay_for_all(w, g, m, v, t, rate, decays):
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    shrink = 1 - rate * sum(decays) / len(decays)
    return shrink * w - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8), m, v


@wrong("ch24.engine", "The averages are not corrected for their start at zero.", see="the-engine")
def without_bias_correction(w, g, m, v, t, rate, decays):
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    shrink = (1 - rate * torch.tensor(decays, dtype=w.dtype)).view(-1, *[1] * (w.ndim - 1))
    return shrink * w - rate * m / (v.sqrt() + 1e-8), m, v


@wrong("ch24.engine", "You shrank after the step, and so shrank the step too: the weights shrink first.", see="the-engine")
def shrinks_the_step_too(w, g, m, v, t, rate, decays):
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    shrink = (1 - rate * torch.tensor(decays, dtype=w.dtype)).view(-1, *[1] * (w.ndim - 1))
    return shrink * (w - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8)), m, v


@wrong("ch24.engine", "The averages were changed in place, so the caller's own tensors changed.", see="the-engine")
def averages_in_place(w, g, m, v, t, rate, decays):
    m.mul_(0.9).add_(0.1 * g)
    v.mul_(0.98).add_(0.02 * g * g)
    shrink = (1 - rate * torch.tensor(decays, dtype=w.dtype)).view(-1, *[1] * (w.ndim - 1))
    return shrink * w - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8), m, v


@wrong(
    "ch24.engine",
    "`torch.tensor` of a list of floats is float32, and its rounding went into weights of float64.",
    see="the-engine",
)
def decays_in_float32(w, g, m, v, t, rate, decays):
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    shrink = (1 - rate * torch.tensor(decays)).view(-1, *[1] * (w.ndim - 1))
    return shrink * w - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8), m, v


@wrong(
    "ch24.engine",
    "You returned the corrected averages. The next step corrects again, so it needs them as they were before.",
    see="the-engine",
)
def hands_on_the_corrected(w, g, m, v, t, rate, decays):
    m, v = (0.9 * m + 0.1 * g) / (1 - 0.9**t), (0.98 * v + 0.02 * g * g) / (1 - 0.98**t)
    shrink = (1 - rate * torch.tensor(decays, dtype=w.dtype)).view(-1, *[1] * (w.ndim - 1))
    return shrink * w - rate * m / (v.sqrt() + 1e-8), m, v


@wrong("ch24.engine", "The small ε stands beside the root, not under it.", see="the-engine")
def epsilon_under_the_root(w, g, m, v, t, rate, decays):
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    shrink = (1 - rate * torch.tensor(decays, dtype=w.dtype)).view(-1, *[1] * (w.ndim - 1))
    return shrink * w - rate * (m / (1 - 0.9**t)) / (v / (1 - 0.98**t) + 1e-8).sqrt(), m, v


# ---------------------------------------------------------------- ch24.survival


@right("ch24.survival")
def one_run_after_the_other(times, seen, at):
    order = sorted(range(len(times)), key=lambda i: (times[i], not seen[i]))  # events before those cut off at their time
    share, answer, median, there = 1.0, 1.0, None, len(times)
    for i in order:
        if seen[i]:
            share *= (there - 1) / there
            if times[i] <= at:
                answer = share
            if median is None and share <= 0.5 + 1e-12:
                median = times[i]
        there -= 1
    return answer, median


@wrong(
    "ch24.survival",
    "Runs that were cut off were left out. What they lived through counts; without them only the quick ones are left.",
    see="runs-that-never-end",
)
def leaves_out_the_censored(times, seen, at):
    there = sorted(t for t, event in zip(times, seen, strict=True) if event)
    if not there:
        return 1.0, None
    share = lambda x: sum(t > x for t in there) / len(there)  # noqa: E731
    return share(at), next(t for t in there if share(t) <= 0.5)


@wrong(
    "ch24.survival",
    "A run that was cut off counts as one that grokked then. It only says that it had not by that time.",
    see="runs-that-never-end",
)
def cut_off_is_an_event(times, seen, at):
    share = lambda x: sum(t > x for t in times) / len(times)  # noqa: E731
    return share(at), next(t for t in sorted(times) if share(t) <= 0.5)


@wrong(
    "ch24.survival",
    "You divided by all runs at every time. Those that were cut off before are no longer among those at risk.",
    see="runs-that-never-end",
)
def censored_live_for_ever(times, seen, at):
    share = lambda x: 1 - sum(event and t <= x for t, event in zip(times, seen, strict=True)) / len(times)  # noqa: E731
    events = sorted(t for t, event in zip(times, seen, strict=True) if event)
    return share(at), next((t for t in events if share(t) <= 0.5 + 1e-12), None)


@wrong("ch24.survival", "A run that is cut off at the time of an event was still there at it.", see="runs-that-never-end")
def cut_off_before_the_event(times, seen, at):
    share, answer, median = 1.0, 1.0, None
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        there = sum(other > t or (other == t and bool(event)) for other, event in zip(times, seen, strict=True))
        share *= 1 - sum(bool(event) for other, event in zip(times, seen, strict=True) if other == t) / there
        answer = share if t <= at else answer
        median = t if median is None and share <= 0.5 + 1e-12 else median
    return answer, median


@wrong(
    "ch24.survival",
    "The median is the first time at which the share is at most ½, and you waited until it is below.",
    see="runs-that-never-end",
)
def median_below_a_half(times, seen, at):
    share, answer, median = 1.0, 1.0, None
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        there = sum(other >= t for other in times)
        share *= 1 - sum(bool(event) for other, event in zip(times, seen, strict=True) if other == t) / there
        answer = share if t <= at else answer
        median = t if median is None and share < 0.5 - 1e-12 else median
    return answer, median


@wrong("ch24.survival", "An event at the time `at` itself counts.", see="runs-that-never-end")
def before_the_time_itself(times, seen, at):
    share, answer, median = 1.0, 1.0, None
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        there = sum(other >= t for other in times)
        share *= 1 - sum(bool(event) for other, event in zip(times, seen, strict=True) if other == t) / there
        answer = share if t < at else answer
        median = t if median is None and share <= 0.5 + 1e-12 else median
    return answer, median


@wrong(
    "ch24.survival",
    "Where the share never comes down to ½ there is no median: the last time is only a bound.",
    see="runs-that-never-end",
)
def last_time_for_no_median(times, seen, at):
    share, answer, median = 1.0, 1.0, None
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        there = sum(other >= t for other in times)
        share *= 1 - sum(bool(event) for other, event in zip(times, seen, strict=True) if other == t) / there
        answer = share if t <= at else answer
        median = t if median is None and share <= 0.5 + 1e-12 else median
    return answer, max(times) if median is None else median


@wrong(
    "ch24.survival",
    "The median does not depend on `at`: go on after it.",
    see="runs-that-never-end",
)
def stops_at_the_time(times, seen, at):
    share, answer, median = 1.0, 1.0, None
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        if t > at:
            break
        there = sum(other >= t for other in times)
        share *= 1 - sum(bool(event) for other, event in zip(times, seen, strict=True) if other == t) / there
        answer = share if t <= at else answer
        median = t if median is None and share <= 0.5 + 1e-12 else median
    return answer, median


@wrong(
    "ch24.survival",
    "Several runs grok at one time, and you counted one of them.",
    see="runs-that-never-end",
)
def one_event_at_a_time(times, seen, at):
    share, answer, median = 1.0, 1.0, None
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        there = sum(other >= t for other in times)
        share *= 1 - 1 / there
        answer = share if t <= at else answer
        median = t if median is None and share <= 0.5 + 1e-12 else median
    return answer, median


# ---------------------------------------------------------------- ch24.guess, ch24.early, ch24.few

wrong("ch24.guess", "0.7", "That is none of the six decays.", see="sixty-transformers")
wrong("ch24.guess", "yes", "A decay is asked for, as a text.", see="sixty-transformers")

wrong(
    "ch24.early", "a", "Others have published early signs: to be first is a claim about their work.", see="what-few-runs-can-say"
)
wrong("ch24.early", "b", "What comes first need not be a cause: something else may move both.", see="what-few-runs-can-say")
wrong(
    "ch24.early",
    "d",
    "Every run in the sample grokked, so there was no run for which the prediction could have failed.",
    see="what-few-runs-can-say",
)
wrong("ch24.early", "e", "A necessary condition needs runs that violate it; none was made.", see="what-few-runs-can-say")

wrong(
    "ch24.few",
    {"low": 0.326, "high": 1.174, "enough": 20},
    "That is the normal approximation: with four runs it leaves the range of a probability.",
    see="what-few-runs-can-say",
)
wrong(
    "ch24.few",
    {"low": 0.301, "high": 0.954, "enough": 20},
    "That is Wilson's interval, an approximation; the exact one inverts the binomial tails.",
    see="what-few-runs-can-say",
)
wrong(
    "ch24.few",
    {"low": 0.249, "high": 0.987, "enough": 20},
    "Each tail has 2.5%, half of what a 95% interval leaves out, not 5%.",
    see="what-few-runs-can-say",
)
wrong(
    "ch24.few",
    {"low": 0.194, "high": 0.994, "enough": 16},
    "For the number of runs you used 5% in one tail: an interval of 95% leaves 2.5% on each side.",
    see="what-few-runs-can-say",
)

wrong(
    "ch24.few",
    {"low": 0.094, "high": 0.992, "enough": 42},
    "That is for two of three runs, the case in the text; here three of four grok.",
    see="what-few-runs-can-say",
)

equivalent(
    "ch24.restricted",
    "`return float(-kept.log_softmax(dim=-1).diagonal().mean())`",
    "of a table with two axes, axis 1 is the last",
)
equivalent("ch24.restricted", "`return -kept.log_softmax(dim=1).diagonal().mean()`", "a tensor with one number is a number")
equivalent("ch24.restricted", "`p = logits.shape[…]`", "all three axes are equally long")
equivalent("ch24.restricted", "`kept = table.mean(dim=0…).expand(p, p).clone()`", "expanding puts a missing axis in front")
equivalent(
    "ch24.restricted",
    "`for wave in (torch.cos(…2 * math.pi * k * s / p), torch.sin(…2 * math.pi * k * s / p)):`",
    "each wave is used twice, so that its sign drops out",
)
equivalent("ch24.restricted", "`table[total] = logits[mine[:, 0], mine[:, -1]].double().mean(dim=0)`", "a pair has two entries")
equivalent("ch24.restricted", "`mine = pairs[pairs.sum(dim=-1) % p == total]`", "of two axes the last is axis 1")
equivalent(
    "ch24.survival",
    "`if median is None and share …0.5…:`",
    "rounding: where many factors give ½, the tests accept the next event too; with few, the product is ½ itself",
)
equivalent("ch24.few", "`enough = next(…)`", "a number is asked for, and it is the same")
