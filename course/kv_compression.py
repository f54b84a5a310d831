"""Keeping less than the whole cache: how many keys a power law needs, which to keep, in how many bits, and what is lost: chapter ch20.

Shapes: B texts of T tokens, H heads, G groups of them that share keys and values, S keys kept.

Source: Xiao et al. (2023), Efficient Streaming Language Models with Attention Sinks, for the first tokens and a window; Zhang et al.
(2023), H2O: Heavy-Hitter Oracle for Efficient Generative Inference of Large Language Models, for the weight a key has had; Liu et al.
(2024), KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache, for keys by channel and values by token.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course import data, pretrained
from course.attention_maps import hooked
from course.model import GPT
from course.position_rope import rope

__all__ = [
    "GROUP",
    "METHODS",
    "RULES",
    "SHELF",
    "Kept",
    "Method",
    "cache_shelf",
    "chosen",
    "cut",
    "eviction_error",
    "keys_needed",
    "principal",
    "quantised",
    "quantised_cache",
    "read_in_blocks",
    "shelf",
    "tail_bounds",
    "token_bytes",
    "tokens_for",
]

# ---------------------------------------------------------------- how many keys


def keys_needed(gamma: float, share: float, N: int) -> int:
    """The fewest nearest keys that hold a share of the mass if weights fall as r^−γ, formula ch20-window.

    Args:
        gamma: the exponent, any number.
        share: of the mass, above 0, at most 1; 1 needs all N.
        N: how many keys there are, at distances 1 to N.

    Raises:
        ValueError: if share is not in (0, 1] or N is not positive.
    """
    if not 0 < share <= 1 or N < 1:
        raise ValueError(f"a share in (0, 1] of at least one key is needed, got {share} and N = {N}")
    if share == 1:
        return N
    mass = torch.arange(1, N + 1, dtype=torch.float64).pow(-gamma).cumsum(dim=0)  # (N,)
    return int((mass < share * mass[-1]).sum()) + 1


def tail_bounds(gamma: float, D: int, N: int) -> tuple[float, float]:
    """Two bounds of the share of mass that lies beyond the D nearest of N keys, formula ch20-tail: lower, upper.

    Args:
        gamma: the exponent, positive.
        D: from 1 to N.
        N: how many keys there are.

    Raises:
        ValueError: if gamma is not positive or D is not between 1 and N.
    """
    if gamma <= 0 or not 1 <= D <= N:
        raise ValueError(f"gamma > 0 and 1 ≤ D ≤ N are needed, got {gamma}, {D} and {N}")
    near = float(torch.arange(1, D + 1, dtype=torch.float64).pow(-gamma).sum())

    def area(a: float, b: float) -> float:
        """Of x^−γ between a and b."""
        return math.log(b / a) if gamma == 1 else (b ** (1 - gamma) - a ** (1 - gamma)) / (1 - gamma)

    low, high = area(D + 1, N + 1), area(D, N)
    return low / (near + low), high / (near + high)


# ---------------------------------------------------------------- what is lost


def eviction_error(weights: Tensor, value: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Mass and error of a head that sees only some keys, formula ch20-gone.

    Args:
        weights: (..., T, S), rows that sum to one.
        value: (..., S, d_head).
        kept: (..., S), true for a key that stays; each row must give some weight to those that stay.

    Returns:
        The mass of the kept keys, (..., T), and the length of the change of the output over the length of the output, (..., T). The
        weights of those that stay are divided by their sum, as a softmax over them gives.
    """
    some = weights * kept[..., None, :]  # (..., T, S)
    mass = some.sum(dim=-1)  # (..., T)
    whole, part = weights @ value, (some / mass[..., None]) @ value  # (..., T, d_head)
    return mass, (part - whole).norm(dim=-1) / whole.norm(dim=-1)


# ---------------------------------------------------------------- fewer bits

GROUP = 32  # numbers that share a scale and an offset


def quantised(x: Tensor, bits: int, group: int = GROUP) -> Tensor:
    """Each number as the nearest of 2^bits levels between the least and the greatest of its group, formula ch20-quantise.

    Args:
        x: (..., n), n a multiple of group: neighbours along the last dimension are a group.
        bits: of a number.
        group: numbers that share a step and an offset, which are kept in float16.

    Raises:
        ValueError: if group does not divide n.
    """
    if x.shape[-1] % group:
        raise ValueError(f"groups of {group} do not divide {x.shape[-1]} numbers")
    each = x.unflatten(-1, (-1, group))  # (..., n / group, group)
    low, high = each.amin(dim=-1, keepdim=True), each.amax(dim=-1, keepdim=True)
    step, low = ((high - low) / (2**bits - 1)).half().to(x.dtype), low.half().to(x.dtype)
    level = ((each - low) / step.clamp_min(1e-12)).round().clamp(0, 2**bits - 1)
    return (low + step * level).flatten(-2)


def quantised_cache(key: Tensor, value: Tensor, bits: int, by_channel: bool = True) -> tuple[Tensor, Tensor]:
    """Keys and values in few bits, key, value (..., T, d_head) → the same: values by token, keys by channel, in groups of `GROUP` tokens.

    Args:
        key, value: (..., T, d_head).
        bits: of a number.
        by_channel: whether a group of keys is one channel of `GROUP` tokens; else it is `GROUP` channels of one token, as of values.
    """
    if by_channel:
        return quantised(key.mT, bits).mT, quantised(value, bits)
    return quantised(key, bits), quantised(value, bits)


def token_bytes(d_head: int, bits: float = 16, group: int = GROUP) -> float:
    """Bytes of a token's key and value of one head, formula ch20-bytes: below 16 bits with a step and an offset of 2 bytes for each group."""
    return 2 * (d_head * bits / 8 + (4 * d_head / group if bits < 16 else 0))


def tokens_for(budget: float, each: float, first: int = 0, first_each: float = 0.0) -> int:
    """How many tokens fit into a budget of bytes, if the first ones take other room: each and first_each are bytes of a token."""
    return first + max(0, math.floor((budget - first * first_each) / each))


# ---------------------------------------------------------------- a cache that is held to a budget


@dataclass(frozen=True)
class Kept:
    """What one layer keeps: key, value (B, G, S, d_head), the weight that each key has had, mass (B, G, S), and its position, place (B, G, S)."""

    key: Tensor
    value: Tensor
    mass: Tensor
    place: Tensor

    def only(self, index: Tensor) -> "Kept":
        """The keys of these numbers, index (B, G, n)."""
        wide = index[..., None].expand(-1, -1, -1, self.key.shape[-1])  # (B, G, n, d_head)
        return Kept(self.key.gather(2, wide), self.value.gather(2, wide), self.mass.gather(2, index), self.place.gather(2, index))


FIRST = 4  # tokens at the start that most rules keep
RULES = ("all", "window", "sinks", "hitters", "value", "value and sinks", "random")
"""Which keys stay. All but the first two, and "sinks", keep the last n / 2, and fill the rest by: the weight a key has had; that times
the length of its value; the same after the first four; the first four and then chance, one draw for all caches and texts."""


def chosen(kept: Kept, rule: str, n: int, seed: int = 0) -> Tensor:
    """The numbers of the n keys that a rule of `RULES` keeps in each group, in their order: (B, G, n).

    Raises:
        ValueError: if the rule is unknown, or n is too few for the first four tokens.
    """
    S, place = kept.place.shape[-1], kept.place
    if rule not in RULES or n <= FIRST:
        raise ValueError(f"a rule of {', '.join(RULES)} and more than {FIRST} tokens are needed, got {rule!r} and {n}")
    if rule == "all" or n >= S:
        return torch.arange(S, device=place.device).expand_as(place)
    if rule in ("window", "sinks"):
        priority = place.double()
    else:
        length = kept.value.norm(dim=-1) if rule.startswith("value") else 1.0
        draw = torch.rand(int(place.max()) + 1, generator=torch.Generator().manual_seed(seed)).to(place.device)
        priority = draw[place].double() if rule == "random" else (kept.mass * length).double()  # (B, G, S)
        recent = torch.arange(S, device=place.device) >= S - n // 2
        priority = priority.masked_fill(recent, math.inf)
    if rule in ("sinks", "value and sinks", "random"):
        priority = priority.masked_fill(place < FIRST, math.inf)
    return priority.topk(n, dim=-1).indices.sort(dim=-1).values


Change = Callable[[int, Tensor, Tensor, int], tuple[Tensor, Tensor]]


def _as_it_is(layer: int, key: Tensor, value: Tensor, start: int) -> tuple[Tensor, Tensor]:
    return key, value


@torch.no_grad()
def read_in_blocks(
    model: GPT,
    ids: Tensor,
    block: int,
    rule: str = "all",
    n: int = 1 << 40,
    change: Change = _as_it_is,
    start: int = 0,
    layers: list[Kept] | None = None,
    see: Callable[[int, Tensor, Kept], None] | None = None,
    logits_from: int = 0,
) -> tuple[Tensor, list[Kept]]:
    """Read a text with a cache that is cut down after every block: ids (B, T) → logits (B, T − logits_from, V), and what is kept.

    A query sees what was kept before its block, and the block up to itself, so up to `block` − 1 keys more than n. Keys stay where they
    were: each has the rotation of its own position.

    Args:
        rule, n: what `chosen` keeps after each block, for each group of heads.
        change: layer, key and value of the block (B, G, block, d_head) and its first position → what is stored of them.
        start, layers: the position of the first token, and what was kept before it.
        see: is called with the layer, the weights (B, G, H / G, block, S + block) and the keys before anything is forgotten.
        logits_from: of earlier tokens no logits are made.
    """
    layers, found = list(layers or [None] * len(model.blocks)), []
    for at in range(0, ids.shape[1], block):
        new = ids[:, at : at + block]
        x = model.embedding(new)  # (B, b, d_model)
        for i, each in enumerate(model.blocks):
            mixed, layers[i], weights = _attend(each.attention, each.norm_1(x), layers[i], start + at, change)
            if see:
                see(i, weights, layers[i])
            layers[i] = layers[i].only(chosen(layers[i], rule, n)) if rule != "all" else layers[i]
            x = x + each.attention.out(mixed)
            x = x + each.ffn(each.norm_2(x))
        late = x[:, max(0, logits_from - at) :]
        if late.shape[1]:
            found.append(model.head(model.norm(late)))
    return torch.cat(found, dim=1), layers


def _attend(attention, x: Tensor, old: Kept | None, start: int, change: Change) -> tuple[Tensor, Kept, Tensor]:
    """One layer's reading of a block: x (B, b, d_model) → (B, b, H · d_head), what it would keep, weights (B, G, H / G, b, S + b)."""
    b, positions = x.shape[1], torch.arange(start, start + x.shape[1], device=x.device)
    query, key, value = attention.project(x, positions)
    G, place = key.shape[1], positions.expand(*key.shape[:2], -1)
    seen = [key, value] if old is None else [torch.cat(pair, dim=2) for pair in ((old.key, key), (old.value, value))]
    S = seen[0].shape[2]  # before and in the block
    grouped = query.unflatten(1, (G, -1))  # (B, G, H / G, b, d_head)
    scores = grouped @ seen[0].mT[:, :, None] / math.sqrt(query.shape[-1])  # (B, G, H / G, b, S)
    future = torch.ones(b, S, dtype=torch.bool, device=x.device).triu(S - b + 1)
    weights = scores.masked_fill_(future, -math.inf).softmax(dim=-1)
    mixed = (weights @ seen[1][:, :, None]).flatten(1, 2).transpose(1, 2).flatten(2)  # (B, b, H · d_head)
    got = weights.sum(dim=(2, 3))  # (B, G, S)
    stored = change(attention.layer, key, value, start)
    if old is None:
        return mixed, Kept(*stored, got, place), weights
    got[..., : S - b] += old.mass
    kept = [torch.cat(pair, dim=2) for pair in ((old.key, stored[0]), (old.value, stored[1]))]
    return mixed, Kept(*kept, got, torch.cat([old.place, place], dim=2)), weights


# ---------------------------------------------------------------- methods with their bytes


@dataclass(frozen=True)
class Method:
    """A way to compress a cache: a rule of `RULES`, and what is stored of a token.

    kind: "full" 16-bit numbers; "bits" fewer of them, keys by channel if `by_channel`; "rank" as many principal directions as the budget
    pays for, of the keys of all groups before their rotation and of their values; "group" one key and value, the mean of all groups'.
    """

    rule: str
    kind: str = "full"
    bits: int = 16
    by_channel: bool = True

    def bytes_of(self, d_head: int, G: int) -> float:
        """Of a token, of one group."""
        if self.kind == "group":
            return token_bytes(d_head) / G
        extra = 4 if self.rule in ("hitters", "value", "value and sinks") else 0  # the weight it has had
        return token_bytes(d_head, self.bits) + extra

    def keeps(self, share: float, T: int, d_head: int, G: int) -> tuple[int, float]:
        """Tokens of T that stay at a share of the bytes of the whole cache, and the share that they take."""
        whole = T * token_bytes(d_head)  # of a group
        if self.kind == "rank":
            return T, math.floor(share * G * d_head) / (G * d_head)
        first = FIRST if self.kind != "full" else 0  # those tokens stay in 16 bits
        n = min(T, tokens_for(share * whole, self.bytes_of(d_head, G), first, token_bytes(d_head)))
        return n, (first * token_bytes(d_head) + (n - first) * self.bytes_of(d_head, G)) / whole

    def change(self, model: GPT, share: float, bases: list[tuple[Tensor, Tensor]] | None = None) -> Change:
        """What is stored of a block, for `read_in_blocks`: key, value (B, G, T, d_head) → the same, the first four tokens of a text as they are.

        Args:
            model: whose cache it is.
            share: of the bytes; only "rank" stores less of a token for a smaller share.
            bases: for "rank", what `principal` gives, (G · d_head, G · d_head) of keys and of values for each layer.
        """

        def changed(layer: int, key: Tensor, value: Tensor, start: int) -> tuple[Tensor, Tensor]:
            if self.kind == "full":
                return key, value
            skip = max(0, FIRST - start)
            old, (k, v) = (key, value), (x.clone() for x in (key, value))
            for x in (k, v):  # so that the first tokens, which are unlike others, do not widen a group's range
                x[:, :, :skip] = x[:, :, skip : skip + 1]
            if self.kind == "bits":
                k, v = quantised_cache(k, v, self.bits, self.by_channel)
            elif self.kind == "group":
                k, v = (x.mean(dim=1, keepdim=True).expand_as(x).clone() for x in (k, v))
            else:
                places = torch.arange(start, start + k.shape[2], device=k.device)
                k = _turned(_projected(_turned(k, -places, model), bases[layer][0], share), places, model)
                v = _projected(v, bases[layer][1], share)
            for new, was in ((k, old[0]), (v, old[1])):
                new[:, :, :skip] = was[:, :, :skip]
            return k, v

        return changed


def _turned(key: Tensor, places: Tensor, model: GPT) -> Tensor:
    return rope(key, places, model.config.theta)


def _projected(x: Tensor, basis: Tensor, share: float) -> Tensor:
    """Of x (B, G, T, d_head), all groups together, what lies along the first directions of the basis (G d_head, G d_head)."""
    flat = x.transpose(1, 2).flatten(2)  # (B, T, G · d_head)
    few = basis[:, : math.floor(share * basis.shape[1])]
    return (flat @ few @ few.mT).unflatten(2, (x.shape[1], -1)).transpose(1, 2)


@torch.no_grad()
def principal(model: GPT, ids: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each layer the principal directions of keys before RoPE and of values, the largest first, (G d_head, G d_head) each, on a text ids (B, T)."""
    found: list[tuple[Tensor, Tensor]] = []

    def before(attention, given):
        pair = []
        for x in (attention.key(given[0]), attention.value(given[0])):  # (B, T, G · d_head)
            flat = x[:, FIRST:].flatten(0, 1).double()
            pair.append(torch.linalg.eigh(flat.mT @ flat).eigenvectors.flip(1).to(x.dtype))
        found.append((pair[0], pair[1]))

    with hooked(block.attention.register_forward_pre_hook(before) for block in model.blocks):
        model(ids)
    return found


METHODS = {
    "window": Method("window"),
    "sinks + window": Method("sinks"),
    "random + window": Method("random"),
    "heavy hitters": Method("hitters"),
    "value-aware": Method("value"),
    "value-aware + sinks": Method("value and sinks"),
    "8 bits": Method("sinks", "bits", 8),
    "4 bits": Method("sinks", "bits", 4),
    "2 bits": Method("sinks", "bits", 2),
    "4 bits, keys by token": Method("sinks", "bits", 4, by_channel=False),
    "2 bits, keys by token": Method("sinks", "bits", 2, by_channel=False),
    "4 bits, heavy hitters": Method("hitters", "bits", 4),
    "low rank": Method("all", "rank"),
    "one group": Method("sinks", "group"),
}
"""What `experiments/kv_compression.py` compares at equal bytes."""


# ---------------------------------------------------------------- the cache as a shelf

SHELF = ("sinks + window", "random + window", "heavy hitters", "value-aware + sinks", "4 bits")
SAY, ASK = "\n\nThe pass key is {}. Remember it. {} is the pass key.\n\n", "\n\nWhat is the pass key? The pass key is"


@torch.no_grad()
def shelf(T: int, budgets: tuple[float, ...], methods: tuple[str, ...] = SHELF, key: str = "52814", depth: float = 0.3) -> dict:
    """SmolLM2 reads T tokens of Austen with a passkey in them; its cache is then cut by each method to each budget, and it is asked.

    Returns:
        "tokens": the text in pieces; "answer": the places of the key's digits; "full": what is said with the whole cache; "found": for
        each method and budget the tokens kept, "stays": for each token of the text how many of the layers and groups keep it, as a
        digit from 0, none, to 9, all, and "says": the five tokens that follow the question, the most probable each; "first": the share of
        the caches in which a quarter of the tokens by weight, and by weight times length, has the first token among them.
    """
    model, tokenizer = pretrained.load("smollm2-135m"), pretrained.tokenizer("smollm2-135m")
    encode = lambda text: tokenizer.encode(text, errors="ignore")  # noqa: E731
    said, asked = encode(SAY.format(key, key)), encode(ASK + " ")
    filler = encode(data.read("austen", 400_000)[350_000:])[: T - len(said)]
    at = round(depth * len(filler))
    text = filler[:at] + said + filler[at:]
    _, whole = read_in_blocks(model, torch.tensor([text]), T, logits_from=T - 1)
    found = []
    for name in methods:
        for budget in budgets:
            layers, n = cut(model, whole, METHODS[name], budget, T)
            places = torch.cat([each.place.flatten() for each in layers])
            counts = places.bincount(minlength=T) / (len(layers) * model.config.kv_heads)  # (T,)
            stays = "".join(str(round(9 * float(x))) for x in counts)
            found.append(
                {"method": name, "budget": budget, "n": n, "stays": stays, "says": _says(model, tokenizer, layers, asked, T)}
            )
    first = {}
    for rule in ("hitters", "value"):
        stays = [bool(index[0] == 0) for each in whole for index in chosen(each, rule, T // 4)[0]]
        first[rule] = round(sum(stays) / len(stays), 3)
    tokens, digits = (
        [tokenizer.decode([i]) for i in text],
        [at + i for i, token in enumerate(said) if tokenizer.decode([token]).isdigit()],
    )
    return {
        "tokens": tokens,
        "answer": digits,
        "key": key,
        "full": _says(model, tokenizer, whole, asked, T),
        "found": found,
        "first": first,
    }


def cut(model: GPT, layers: list[Kept], method: Method, share: float, T: int) -> tuple[list[Kept], int]:
    """What a method keeps of a cache of T tokens, read in full, at a share of its bytes, and the number of tokens; not for "rank"."""
    n = method.keeps(share, T, model.config.d_head, model.config.kv_heads)[0]
    change, few = method.change(model, share), []
    for i, each in enumerate(layers):
        new = Kept(*change(i, each.key, each.value, 0), each.mass, each.place)
        few.append(new.only(chosen(new, method.rule, n)))
    return few, n


def _says(model: GPT, tokenizer, layers: list[Kept], asked: list[int], start: int, n: int = 5) -> str:
    """The n most probable tokens, one after the other, after a question."""
    new, said = asked, []
    for _ in range(n):
        logits, layers = read_in_blocks(
            model, torch.tensor([new]), len(new), start=start, layers=layers, logits_from=len(new) - 1
        )
        start, new = start + len(new), [int(logits[0, -1].argmax())]
        said += new
    return tokenizer.decode(said)


def cache_shelf() -> dict:
    """A look: what stays of 128 tokens at a quarter of their bytes, by method, and what the model then answers."""
    told = shelf(128, (0.25,), ("sinks + window", "heavy hitters", "4 bits"))
    return {name: told[name] for name in ("answer", "full", "found", "first")}
