"""Reading beyond the length of training: RoPE's frequencies changed three ways, and tests of what a model still finds: chapter ch19."""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from course import data, pretrained
from course.model import GPT, Attention, KVCache, attend
from course.position_rope import rope_frequencies

__all__ = [
    "KEY_MARK",
    "METHODS",
    "SIGNS_OF_A_KEY",
    "V_KEYS",
    "LongAttention",
    "effective_length",
    "exact_answers",
    "extended",
    "frequencies",
    "gapped",
    "hidden",
    "hidden_keys",
    "ntk_base",
    "ntk_freqs",
    "passkey",
    "pi_freqs",
    "position_losses",
    "score_factor",
    "turn",
    "unseen",
    "verdicts",
    "wilson",
    "yarn_freqs",
    "yarn_ramp",
]

METHODS = ("unchanged", "PI", "NTK", "YaRN")

# ---------------------------------------------------------------- frequencies


def pi_freqs(omega: Tensor, s: float) -> Tensor:
    """Position interpolation: every pair turns s times slower; formula ch19-pi. omega (n,) → (n,).

    Source: Chen et al. (2023), Extending Context Window of Large Language Models via Positional Interpolation.
    """
    return omega / s


def ntk_base(theta: float, s: float, d_head: int) -> float:
    """θ s^{d/(d−2)}: the base whose slowest pair turns s times slower, and whose fastest turns as before; formula ch19-ntk.

    Raises:
        ValueError: if d_head is below 4, for one pair is both the fastest and the slowest.

    Source: Peng et al. (2023), YaRN: Efficient Context Window Extension of Large Language Models.
    """
    if d_head < 4:
        raise ValueError(f"two pairs are needed, so d_head must be at least 4, got {d_head}")
    return theta * s ** (d_head / (d_head - 2))


def ntk_freqs(omega: Tensor, s: float) -> Tensor:
    """The same from the frequencies: pair i of n turns s^{i/(n−1)} times slower; formula ch19-ntk-pairs. omega (n,) → (n,)."""
    n = len(omega)
    return omega / s ** (torch.arange(n, dtype=omega.dtype, device=omega.device) / (n - 1))


def yarn_ramp(omega: Tensor, length: int, low: float = 1.0, high: float = 32.0) -> Tensor:
    """How much of its frequency a pair keeps: 0 if it turns at most `low` times within `length`, 1 from `high` turns on; formula ch19-yarn.

    omega (n,) → (n,), a line in the number of turns between.

    Source: Peng et al. (2023), YaRN: Efficient Context Window Extension of Large Language Models.
    """
    turns = omega * length / (2 * math.pi)
    return ((turns - low) / (high - low)).clamp(0, 1)


def yarn_freqs(omega: Tensor, s: float, length: int, low: float = 1.0, high: float = 32.0) -> Tensor:
    """Pairs that turn often keep their frequency, those that turn at most once are interpolated, the rest mix; formula ch19-yarn.

    omega (n,) → (n,).
    """
    kept = yarn_ramp(omega, length, low, high)
    return kept * omega + (1 - kept) * omega / s


def score_factor(s: float) -> float:
    """(0.1 ln s + 1)²: what YaRN multiplies all scores by; formula ch19-temperature.

    Source: Peng et al. (2023), YaRN: Efficient Context Window Extension of Large Language Models.
    """
    return (0.1 * math.log(s) + 1) ** 2


def frequencies(method: str, omega: Tensor, s: float, length: int) -> tuple[Tensor, float]:
    """The frequencies of a method of `METHODS`, omega (n,) → (n,), and the factor of its scores.

    Raises:
        ValueError: if there is no such method.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "YaRN":
        return yarn_freqs(omega, s, length), score_factor(s)
    return {"unchanged": omega, "PI": pi_freqs(omega, s), "NTK": ntk_freqs(omega, s)}[method], 1.0


def unseen(omega: Tensor, used: Tensor, length: int, T: int) -> Tensor:
    """Of each pair, the share of the distances 0 … T − 1 whose angle it did not meet in training; formula ch19-unseen.

    Args:
        omega: (n,) the frequencies of training, with distances 0 … length − 1.
        used: (n,) those that are used now.
        length: tokens of training.
        T: tokens now.

    Returns:
        (n,) float64. A pair that made a whole turn in training has met all angles.
    """
    angles = torch.arange(T, dtype=torch.float64)[:, None] * used.double() % (2 * math.pi)  # (T, n)
    furthest = omega.double() * (length - 1)
    return ((angles > furthest + 1e-9) & (furthest < 2 * math.pi)).double().mean(dim=0)


# ---------------------------------------------------------------- a model with other frequencies


def turn(x: Tensor, positions: Tensor, omega: Tensor) -> Tensor:
    """`rope` with any frequencies: x (..., T, d_head), positions (T,), omega (d_head / 2,) → (..., T, d_head), dtype of x."""
    angles = positions.double()[:, None] * omega.double()  # (T, d_head / 2)
    wide = torch.promote_types(x.dtype, torch.float32)
    cos, sin = angles.cos().to(wide), angles.sin().to(wide)
    a, b = x.chunk(2, dim=-1)  # (..., T, d_head / 2) twice
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


class LongAttention(Attention):
    """`course.model.Attention` that turns with given frequencies and, without a cache, never holds a T × T matrix."""

    omega: Tensor
    factor: float

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x (B, T, d_model) at positions (T,) → queries (B, H, T, d_head), keys and values (B, kv_heads, T, d_head).

        Queries are multiplied by `factor`, and so are all scores.
        """
        query, key, value = (self.split_heads(f(x)) for f in (self.query, self.key, self.value))
        if self.config.qk_norm:
            query, key = self.query_norm(query), self.key_norm(key)
        return turn(query, positions, self.omega) * self.factor, turn(key, positions, self.omega), value

    def forward(self, x: Tensor, positions: Tensor, cache: KVCache | None = None) -> Tensor:
        """x (B, T, d_model) at positions (T,) → (B, T, d_model); with a cache, after the tokens that it holds."""
        query, key, value = self.project(x, positions)
        if cache is not None:
            mixed = attend(query, *cache.append(self.layer, key, value))  # (B, H, T, d_head)
        else:
            group = self.config.n_heads // self.config.kv_heads
            key, value = (each.repeat_interleave(group, dim=1) for each in (key, value))  # (B, H, T, d_head)
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))  # (B, T, d_model)


def extended(model: GPT, method: str = "unchanged", s: float = 1.0, length: int = 0) -> GPT:
    """A model that shares all weights with `model`, and whose RoPE is changed by a method of `METHODS` with the factor s.

    Args:
        model: of RoPE.
        method: of `METHODS`.
        s: the factor.
        length: tokens that it was trained on, which YaRN asks for.

    Raises:
        ValueError: if the model has no RoPE, the method is unknown, or YaRN is not told a length.
    """
    if model.config.position != "rope":
        raise ValueError(f'position is "{model.config.position}": only RoPE has frequencies')
    if method == "YaRN" and length < 1:
        raise ValueError("YaRN counts turns within the length of training: say length")
    twin = copy.deepcopy(model, {id(p): p for p in model.parameters()})
    omega, factor = frequencies(method, rope_frequencies(model.config.d_head, model.config.theta), s, length)
    for block in twin.blocks:
        block.attention.__class__ = LongAttention
        block.attention.omega, block.attention.factor = omega.to(model.embedding.weight.device), factor
    return twin


# ---------------------------------------------------------------- loss by position, hidden keys


def hidden(model: GPT, ids: Tensor, positions: Tensor | None = None) -> Tensor:
    """What the head reads: ids (B, T), at positions (T,) or, without them, 0 … T − 1 → (B, T, d_model)."""
    positions, x = torch.arange(ids.shape[1], device=ids.device) if positions is None else positions, model.embedding(ids)
    for block in model.blocks:
        x = block(x, positions)
    return model.norm(x)


def position_losses(model: GPT, ids: Tensor, chunk: int = 2048) -> Tensor:
    """The loss of each next token, in nats: ids (B, T) → (B, T − 1). Scores of all the vocabulary are held for `chunk` tokens only."""
    x, targets = hidden(model, ids)[:, :-1], ids[:, 1:]
    parts = [
        F.cross_entropy(model.head(a).float().mT, b, reduction="none")
        for a, b in zip(x.split(chunk, 1), targets.split(chunk, 1), strict=True)
    ]
    return torch.cat(parts, dim=1)


def passkey(filler: Sequence[int], needle: Sequence[int], question: Sequence[int], length: int, depth: float) -> list[int]:
    """A prompt of exactly `length` tokens: the needle after a share `depth` of the filler, the question at the end.

    Args:
        filler: tokens, at least as many as are needed; its first are used.
        needle: what is hidden.
        question: what comes last.
        length: of the prompt.
        depth: from 0, the needle first, to 1, right before the question.

    Raises:
        ValueError: if depth is not within 0 and 1, the two parts do not fit, or the filler is too short.
    """
    room = length - len(needle) - len(question)
    if not 0 <= depth <= 1:
        raise ValueError(f"depth is a share between 0 and 1, got {depth}")
    if not 0 <= room <= len(filler):
        raise ValueError(f"{room} tokens of filler are needed, and {len(filler)} are there")
    at = round(depth * room)
    return [*filler[:at], *needle, *filler[at:room], *question]


def exact_answers(model: GPT, prompts: Tensor, answers: Tensor) -> Tensor:
    """Whether greedy writing after each prompt gives the answer, all of it: prompts (B, T), answers (B, K) → (B,) of bool.

    The answer is read along with the prompt: greedy writing gives it if and only if each of its tokens scores highest after
    the prompt and the tokens of the answer before it.
    """
    K = answers.shape[1]
    x = hidden(model, torch.cat([prompts, answers[:, :-1]], dim=1))[:, -K:]  # (B, K, d_model)
    return (model.head(x).argmax(dim=-1) == answers).all(dim=1)


def wilson(right: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: formula ch19-wilson.

    Raises:
        ValueError: if `right` is not between 0 and `trials`, or there are no trials.

    Source: Wilson (1927), Probable Inference, the Law of Succession, and Statistical Inference.
    """
    if not 0 <= right <= trials or trials < 1:
        raise ValueError(f"{right} right of {trials} trials is no share")
    share = right / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def effective_length(lengths: Sequence[int], right: Sequence[int], trials: Sequence[int], floor: float) -> int:
    """The longest of the rising lengths at which, and at all before it, Wilson's interval lies above `floor`; 0 if there is none.

    Raises:
        ValueError: if the lengths do not rise.
    """
    if list(lengths) != sorted(set(lengths)):
        raise ValueError(f"lengths must rise, got {list(lengths)}")
    good = 0
    for length, k, n in zip(lengths, right, trials, strict=True):
        if wilson(k, n)[0] <= floor:
            break
        good = length
    return good


# ---------------------------------------------------------------- hidden keys for small models

SIGNS, SIGNS_OF_A_KEY = 128, 4  # which stand in no text
KEY_MARK = 256  # comes before a key, where it is hidden and where it is asked for; no byte
V_KEYS = KEY_MARK + 1 + SIGNS


def hidden_keys(text: Tensor, generator: torch.Generator, depth: float | None = None, signs: int = SIGNS_OF_A_KEY) -> Tensor:
    """Windows of bytes with a key hidden in each and asked for at the end: text (B, T) → (B, T), the text's end left out.

    A mark and different signs, four of them if nothing is said, stand somewhere in the text, and again as its last tokens. `depth`
    None draws the place.
    """
    B, T = text.shape
    size = 1 + signs
    room = T - 2 * size
    drawn = torch.rand(B, SIGNS, generator=generator).argsort(dim=1)[:, :signs] + KEY_MARK + 1  # (B, signs)
    keys = torch.cat([torch.full((B, 1), KEY_MARK), drawn], dim=1)  # (B, size)
    at = torch.randint(room + 1, (B,), generator=generator) if depth is None else torch.full((B,), round(depth * room))
    place = torch.arange(T - size) - at[:, None]  # (B, T − size), 0 where the mark goes
    order = torch.where(place < 0, place, place - size) + at[:, None]
    inside = (place >= 0) & (place < size)
    body = torch.where(inside, keys.gather(1, place.clamp(0, size - 1)), text.gather(1, order.clamp(min=0)))
    return torch.cat([body, keys], dim=1)


# ---------------------------------------------------------------- the trained model


@torch.no_grad()
def gapped(texts: int = 2, tokens: int = 64, gaps: tuple[int, ...] = (0, 8192, 16384, 32768)) -> dict:
    """SmolLM2's loss on the second of two halves of a text, where positions jump by a gap between the halves.

    Only distances change, and only those between the halves. `alone` is the loss of the second half without the first, in the
    unchanged model. The texts are places of one book.
    """
    model, tokenizer = pretrained.load("smollm2-135m"), pretrained.tokenizer("smollm2-135m")
    text, arms = data.read("austen"), {"unchanged": ("unchanged", 1), "YaRN 4": ("YaRN", 4)}
    starts = [round((i + 0.5) * len(text) / texts) for i in range(texts)]
    ids = torch.tensor([tokenizer.encode(text[at : at + 16 * tokens], errors="ignore")[: 2 * tokens] for at in starts])

    def loss(arm: str, ids: Tensor, positions: Tensor) -> float:
        one = extended(model, *arms[arm], model.config.T_max)
        logits = one.head(hidden(one, ids, positions)[:, -tokens:-1])  # of the second half, its first token left out
        return round(float(F.cross_entropy(logits.mT, ids[:, 1 - tokens :])), 3)

    first, place = torch.arange(2 * tokens) < tokens, torch.arange(2 * tokens)
    told = {arm: [loss(arm, ids, torch.where(first, place, place + gap)) for gap in gaps] for arm in arms}
    return {"gaps": list(gaps), "alone": loss("unchanged", ids[:, tokens:], place[:tokens])} | told


# ---------------------------------------------------------------- predictions against the record


def verdicts(record: dict) -> dict[str, tuple[str, bool | None, str]]:
    """Of each prediction of `experiments/long_context.py`: the claim, whether it held (None: it could not be tested), and numbers."""
    results = record["results"]
    edges, rows, anew = (results["loss"][key] for key in ("edges", "rows", "anew"))
    places = {name: i for i, name in enumerate(edges[1:])}

    def loss(text: str, arm: str, *ends: int) -> float:
        return float(torch.tensor(rows[text][arm])[:, [places[end] for end in ends]].mean())

    def said(values) -> str:
        return ", ".join(f"{x:.2f}" for x in values)

    texts, late, far = list(rows), (32768,), (20480, 24576, 28672, 32768)
    rise = [loss(t, "unchanged", 16384) - loss(t, "unchanged", 8192) for t in texts]
    near = {a: [loss(t, "PI 4", 128, 512, 2048) - loss(t, a, 128, 512, 2048) for t in texts] for a in ("NTK 4", "YaRN 4")}
    last = {a: [loss(t, "NTK 4", 28672, *late) - loss(t, a, 28672, *late) for t in texts] for a in ("NTK 8", "YaRN 4")}
    arms = list(rows[texts[0]])
    gain = [max(sum(anew[t]["8192"]) / len(anew[t]["8192"]) - loss(t, a, *far) for a in arms) for t in texts]
    found, each = results["keys"]["found"], results["keys"]["trials"] * len(results["keys"]["depths"])
    flat = [a for a in arms if max(loss(t, a, *far) - loss(t, a, 8192) for t in texts) < 0.15]
    fall = {a: (sum(found[a]["4096"]) - sum(found[a]["32768"])) / each for a in flat}
    told = {
        "P1": ("unchanged, the loss rises by more than 0.5", min(rise) > 0.5, said(rise)),
        "P2": (
            "near the start PI 4 costs over 0.05 more",
            min(map(min, near.values())) > 0.05,
            said(x for row in near.values() for x in row),
        ),
        "P3": (
            "at the end NTK 8 and YaRN 4 beat NTK 4",
            min(map(min, last.values())) > 0,
            said(x for row in last.values() for x in row),
        ),
        "P4": ("no arm gains over 0.02 on the model that starts anew", max(gain) <= 0.02, f"best {said(gain)}"),
        "P5": (
            "an arm of flat loss finds fewer keys by 0.3",
            any(x >= 0.3 for x in fall.values()),
            f"{len(flat)} flat arms, {said(fall.values())}",
        ),
    }
    return told | _verdicts_of_small(results["small"], 5 * record["settings"]["tested"]["keys"])


def _verdicts_of_small(small: dict, trials: int) -> dict[str, tuple[str, bool | None, str]]:
    claims = {
        "P6": "at 512 unchanged finds under a quarter of the keys, the best 0.2 more",
        "P7": "trained a little, all find 0.9 and differ less",
        "P8": "at 1,024 all fall by more than 0.2",
    }
    able = [sum(row["128"]) >= 0.9 * trials for row in small["as trained"]["unchanged"]["keys"]]
    if not any(able):
        return {name: (claim, None, "no seed found 0.9 of the keys at 128") for name, claim in claims.items()}

    def mean(kind: str, arm: str, n: str) -> float:
        shares = [sum(row[n]) / trials for row, good in zip(small[kind][arm]["keys"], able, strict=True) if good]
        return sum(shares) / len(shares)

    tuned = [arm for arm in small["tuned"] if arm != "more at 128"]
    before, after = ([mean(kind, arm, "512") for arm in tuned] for kind in ("as trained", "tuned"))
    best = max(mean("as trained", arm, "512") for arm in small["as trained"]) - before[0]
    more, falls = (
        mean("tuned", "more at 128", "512") - before[0],
        [mean("tuned", a, "512") - mean("tuned", a, "1024") for a in tuned],
    )
    spread = [max(each) - min(each) for each in (before, after)]
    held = (before[0] < 0.25 and best >= 0.2, min(after) >= 0.9 and 3 * spread[1] < spread[0] and more < 0.1, min(falls) > 0.2)
    numbers = ((before[0], best), (*after, *spread, more), falls)
    told = [", ".join(f"{x:.2f}" for x in each) for each in numbers]
    return {name: (claims[name], good, line) for name, good, line in zip(claims, held, told, strict=True)}
