"""What chapters look at in the trained model of `course.pretrained`, beside the small models that they understand whole.

A look takes seconds where the model is on this machine; elsewhere it is read from the record that `experiments/looks.py` wrote.
"""

import math
import os
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from course import data, pretrained
from course.attention_maps import (
    FIRST,
    all_maps,
    distance_profile,
    head_score,
    hooked,
    other_targets,
    p_of_maximum,
    previous_targets,
    sink_mass,
)
from course.attention_maps import look as look_at
from course.checkpoint import load_gpt
from course.decay_law import CURVES, decay_fit, gains
from course.fractional import depth_test
from course.kv_compression import cache_shelf
from course.long_context import gapped
from course.model import GPT
from course.multi_head import induction_score, previous_score, said_twice
from course.phase_polylog import log_spread
from course.position_rope import rope_frequencies, wavelengths
from course.taxonomy import window_recall
from course.thermo_dictionary import head_response
from course.tokens import bpe_encode, vocabulary

__all__ = [
    "LOOKS",
    "MODEL",
    "atlas_dot",
    "cached_text",
    "context_loss",
    "decay_heads",
    "distance_spread",
    "first_tokens",
    "heads",
    "layer_maps",
    "look",
    "neighbours",
    "previous_heads",
    "responses",
    "rope_pairs",
    "rope_scores",
    "sinks",
    "walks_back",
]

MODEL = "smollm2-135m"
WORDS = (" king", " London", " seven", " happy", " ran")
SINK_HEADS = ((14, 3), (25, 4), (18, 8), (11, 1))  # layer and head
STARTS = ("The capital of France is", "One, two, three, four,", "Water is made of hydrogen and")


def look(name: str) -> dict:
    """A look by its name in `LOOKS`: made anew where the model is here, else as it was recorded, which is said.

    With the environment variable `COURSE_LOOKS=recorded` it is always the record: tests, which make each look anew once, spare
    the notebooks that.

    Raises:
        KeyError: if there is no such look.
    """
    made, recorded = LOOKS[name], data.record("looks")["results"]
    if os.environ.get("COURSE_LOOKS") == "recorded":
        return recorded[name]
    if pretrained.is_here(MODEL):
        return made()
    print(f"{MODEL} is not on this machine: these numbers were recorded. To make them here: python -m course.pretrained {MODEL}")
    return recorded[name]


@torch.no_grad()
def neighbours(k: int = 4, pairs: int = 2000) -> dict:
    """The nearest tokens of some words in the embedding, by cosine, and the cosines of random pairs of tokens (`pairs` of them)."""
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    unit = F.normalize(model.embedding.weight, dim=-1)  # (V, d_model)
    near = {}
    for word in WORDS:
        (i,) = tokenizer.encode(word)
        cosines, ids = (unit @ unit[i]).topk(k + 1)  # the word itself comes first
        near[word] = [[tokenizer.decode([int(j)]), round(float(c), 3)] for j, c in zip(ids[1:], cosines[1:], strict=True)]
    chosen = torch.randint(len(unit), (2, pairs), generator=torch.Generator().manual_seed(0))
    return {"near": near, "random": _rounded((unit[chosen[0]] * unit[chosen[1]]).sum(dim=-1))}


@torch.no_grad()
def heads(n: int = 64) -> dict:
    """The induction score of every head on n random tokens that repeat, (L, H)."""
    model, scores = pretrained.load(MODEL), []
    ids = said_twice(2, n, model.config.V, torch.Generator().manual_seed(0))
    look_at(model, ids, lambda layer, weights, stream: scores.append(induction_score(weights, n).mean(dim=0)))
    return {"induction": [_rounded(row) for row in scores]}


@torch.no_grad()
def rope_pairs(tokens: int = 256) -> dict:
    """The wavelength of each pair of RoPE, and its share of the length of queries and keys, early and late layers apart.

    A pair's share is the mean over tokens and heads of |q_i| |k_i|, the largest score that it can give, over the sum of all pairs'.
    """
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    ids = torch.tensor([tokenizer.encode(data.read("austen", 4 * 4 * tokens), errors="ignore")[:tokens]])
    shares: list[Tensor] = []

    def before(attention, given):
        query, key, _ = attention.project(*given[:2])
        lengths = [each.unflatten(-1, (2, -1)).norm(dim=-2).mean(dim=(0, 2)) for each in (query, key)]  # (heads, d_head / 2)
        product = lengths[0] * lengths[1].repeat_interleave(len(lengths[0]) // len(lengths[1]), dim=0)  # (H, d_head / 2)
        shares.append((product / product.sum(dim=-1, keepdim=True)).mean(dim=0))

    with hooked(block.attention.register_forward_pre_hook(before) for block in model.blocks):
        model(ids)
    found, half = torch.stack(shares), len(shares) // 2  # (L, d_head / 2)
    waves = wavelengths(model.config.d_head, model.config.theta)
    told = {"theta": model.config.theta, "trained": model.config.T_max, "wavelengths": [round(float(w), 1) for w in waves]}
    return told | {"early": _rounded(found[:half].mean(dim=0)), "late": _rounded(found[half:].mean(dim=0))}


@torch.no_grad()
def context_loss(windows: int = 24, n_bytes: int = 600) -> dict:
    """Bits a byte of the trained model and of the course's own GPT on the same windows of Austen that ours never read.

    Both begin each window with nothing read. `ours` and `theirs` have one number for each window, `ours by part` and
    `theirs by part` for each sixth of a window the mean over windows.
    """
    gpt, merges = load_gpt()
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    held_out = data.read("austen")[-60_000:].encode("utf-8")
    starts = [round(i * (len(held_out) - n_bytes) / (windows - 1)) for i in range(windows)]
    pieces = [held_out[start : start + n_bytes].decode("utf-8", "ignore") for start in starts]
    spelled, bos = vocabulary(merges), gpt.config.V - 1
    ours = torch.stack([_bits(gpt, [bos, *bpe_encode(piece, merges)], spelled) for piece in pieces])  # (windows, parts)
    theirs = torch.stack([_bits(model, [0, *tokenizer.encode(piece, errors="ignore")], tokenizer.bytes_of) for piece in pieces])
    told = {
        "bytes": n_bytes,
        "windows": windows,
        "parameters": [sum(p.numel() for p in each.parameters()) for each in (gpt, model)],
    }
    told |= {"ours": _rounded(ours.mean(dim=1)), "theirs": _rounded(theirs.mean(dim=1))}
    return told | {"ours by part": _rounded(ours.mean(dim=0)), "theirs by part": _rounded(theirs.mean(dim=0))}


def _bits(model: GPT, ids: list[int], spelled, parts: int = 6) -> Tensor:
    """Bits a byte of each part of a text, whose first token is one that marks the start: (parts,)."""
    x = torch.tensor([ids])
    bits = F.cross_entropy(model(x[:, :-1])[0].float(), x[0, 1:], reduction="none") / math.log(2)  # (T - 1,)
    sizes = torch.tensor([float(len(spelled[i])) for i in ids[1:]])
    part = ((sizes.cumsum(0) - sizes / 2) * parts / sizes.sum()).long()  # by the place of a token's middle byte
    return torch.zeros(parts).index_add_(0, part, bits) / torch.zeros(parts).index_add_(0, part, sizes)


@torch.no_grad()
def cached_text(new: int = 5) -> dict:
    """What the trained model writes after some beginnings, always the likeliest token, and the bytes of its cache."""
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    written, least = {}, float("inf")
    for start in STARTS:
        cache, ids = model.cache(), tokenizer.encode(start)
        step = torch.tensor([ids])
        for _ in range(new):
            best = model(step, cache)[0, -1].topk(2)
            least = min(least, float(best.values[0] - best.values[1]))
            step = best.indices[:1][None]
            ids.append(int(step))
        written[start] = tokenizer.decode(ids)
    told = {"tokens": len(cache), "bytes": cache.nbytes, "bytes a token": cache.nbytes // len(cache)}
    return {"written": written, "smallest lead": round(least, 2), "cache": told}


@torch.no_grad()
def decay_heads(windows: int = 4, tokens: int = 512, low: int = 4, high: int = 150) -> dict:
    """How each head's weight falls with distance on windows of Austen, the first keys left out.

    (L, H) each: `exponent`, mean over windows, `half` of its 95% interval over windows, `R2` of the power law in the mean profile, and
    `sink`, the weight on the first token; then `shuffled`, the exponents on one window with its tokens in another order. Of
    the curves that are fitted to every second window and scored on the others, `best` has the share of heads that each wins, and
    `gains` what each gains on the profile of all heads together.
    """
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    text = data.read("austen")
    starts = [round((i + 0.5) * len(text) / windows) for i in range(windows)]
    ids = [tokenizer.encode(text[start : start + 8 * tokens], errors="ignore")[:tokens] for start in starts]
    ids.append([ids[0][i] for i in torch.randperm(tokens, generator=torch.Generator().manual_seed(0)).tolist()])
    profiles, sinks = [], []
    for one in ids:
        layers: list[Tensor] = []
        first: list[Tensor] = []

        def see(layer: int, weights: Tensor, stream: Tensor, layers=layers, first=first):
            layers.append(distance_profile(weights[0].float()))
            first.append(weights[0, :, tokens // 10 :, 0].float().mean(dim=1))

        look_at(model, torch.tensor([one]), see)
        profiles.append(torch.stack(layers))
        sinks.append(torch.stack(first))
    profile, sink = torch.stack(profiles), torch.stack(sinks[:-1]).mean(dim=0)  # (windows + 1, L, H, D + 1), (L, H)
    slopes = decay_fit(profile, low, high)["power"]
    ends = [data.interval(x) for x in slopes[:-1].flatten(1).T]
    half = torch.tensor([h for _, h in ends]).view_as(sink)
    train, test = profile[:-1:2].mean(dim=0), profile[1:-1:2].mean(dim=0)
    of_heads = torch.stack([v for k, v in gains(train, test, low, high).items() if k in CURVES])  # (curves, L, H)
    whole = gains(train.mean(dim=(0, 1)), test.mean(dim=(0, 1)), low, high)
    told = {"windows": windows, "tokens": tokens, "low": low, "high": high}
    for name, values in {
        "exponent": slopes[:-1].mean(dim=0),
        "half": half,
        "R2": decay_fit(profile[:-1].mean(dim=0), low, high)["R2 of the power law"],
        "sink": sink,
        "shuffled": slopes[-1],
    }.items():
        told[name] = [_rounded(row) for row in values]
    told["whole"] = round(float(decay_fit(profile[:-1].mean(dim=(0, 1, 2)), low, high)["power"]), 3)
    told["best"] = {k: round(float((of_heads.argmax(dim=0) == i).float().mean()), 3) for i, k in enumerate(CURVES)}
    return told | {"gains": {k: round(float(v), 4) for k, v in whole.items()}}


@torch.no_grad()
def sinks(tokens: int = 192) -> dict:
    """Heads that look at the first token when they have nothing to do: the scores of four heads on a sentence, and the weight on
    the first token by layer; on a text, the weight that one head gives it where a token is new and where it has been said before.
    """
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    said = "The king asked the queen for her crown, but the queen kept the crown."
    ids = tokenizer.encode(said)
    scores: dict[int, Tensor] = {}

    def before(attention, given):
        if attention.layer in {layer for layer, _ in SINK_HEADS}:
            query, key, _ = attention.project(*given[:2])
            key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
            scores[attention.layer] = (query @ key.mT / math.sqrt(query.shape[-1]))[0]  # (H, T, T)

    layers: list[Tensor] = []
    with hooked(block.attention.register_forward_pre_hook(before) for block in model.blocks):
        look_at(model, torch.tensor([ids]), lambda layer, weights, stream: layers.append(weights[0, :, 2:, 0].mean()))
    rows = {f"{layer}.{head}": [_rounded(scores[layer][head, i, : i + 1]) for i in range(len(ids))] for layer, head in SINK_HEADS}
    (layer, head), kept = SINK_HEADS[0], {}
    text = tokenizer.encode(data.read("austen", 120_000)[100_000:], errors="ignore")[:tokens]
    look_at(
        model, torch.tensor([text]), lambda at, weights, stream: kept.update({at: weights[0, head, :, 0]} if at == layer else {})
    )
    again = torch.tensor([token in text[:i] for i, token in enumerate(text)])[tokens // 10 :]
    weight = kept[layer][tokens // 10 :]
    told = {"new": weight[~again], "said before": weight[again]}
    return {
        "words": [tokenizer.decode([i]) for i in ids],
        "layers": _rounded(torch.stack(layers)),
        "scores": rows,
        "text": {name: {"n": len(each), "weight on the first": round(float(each.mean()), 3)} for name, each in told.items()},
    }


@torch.no_grad()
def first_tokens(tokens: int = 96) -> dict:
    """Weight on the first token by layer, queries after a tenth, on a passage of Austen and with other first tokens in its place."""
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    ids = tokenizer.encode(data.read("austen")[-60_000:-58_000], errors="ignore")[:tokens]
    firsts = [ids[0], *(tokenizer.encode(word)[0] for word in (" the", " king", ",", " because"))]
    weights = all_maps(model, torch.tensor([[first, *ids[1:]] for first in firsts]))  # (L, texts, H, T, T)
    mass = sink_mass(weights, tokens // 10)  # (L, texts, H)
    told = {
        "tokens": tokens,
        "by layer": _rounded(mass[:, 0].mean(dim=-1)),
        "largest of a head": round(float(mass[:, 0].max()), 3),
    }
    names = [tokenizer.decode([first]) for first in firsts]
    return told | {"first tokens": [[name, round(float(x), 3)] for name, x in zip(names, mass.mean(dim=(0, 2)), strict=True)]}


@torch.no_grad()
def previous_heads(tokens: int = 96, draws: int = 199) -> dict:
    """Scores of previous-token heads on a passage of Austen, and how many pass a null of a maximum over all heads, and of their own.

    The null asks for another earlier token, any of them (`far`) or one of the eight last (`near`). `shuffled` are the ten best
    heads' scores on the same tokens in another order.
    """
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    ids = torch.tensor(tokenizer.encode(data.read("austen")[-60_000:-58_000], errors="ignore")[:tokens])
    generator, targets = torch.Generator().manual_seed(0), previous_targets(tokens)
    both = torch.stack([ids, ids[torch.randperm(tokens, generator=generator)]])
    seen, other = all_maps(model, both).transpose(0, 1).flatten(1, 2)  # (heads, T, T) each
    scores = head_score(seen, targets)
    told, best = {"tokens": tokens, "draws": draws}, scores.argsort(descending=True)[:10]
    for name, near in (("far", None), ("near", 8)):
        null = head_score(seen, other_targets(targets, draws, generator, near))  # (draws, heads)
        alone = (1 + (null >= scores).sum(dim=0)) / (draws + 1)
        told[name] = {
            "95% of the maximum": round(float(null.amax(dim=-1).quantile(0.95)), 2),
            "heads": int((p_of_maximum(scores, null) <= 0.05).sum()),
            "heads by their own null": int((alone <= 0.05).sum()),
        }
    told["best"] = [[*divmod(int(k), model.config.n_heads), round(float(scores[k]), 3)] for k in best]
    return told | {"shuffled": _rounded(head_score(other, targets)[best])}


DISTANCES = [0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000]
BELOW = [1, 2, 16, 128, 1024]


@torch.no_grad()
def rope_scores(tokens: int = 256, n: int = 64) -> dict:
    """How the score of a query and a key of a text changes if the key is moved to distances 0 … 1,023, over all layers and heads.

    For each head n pairs of tokens, the key's before the query's. `real`: the mean score at `distances`, each as a share of the
    largest that its pairs of RoPE can give together; `scrambled`: the same with every pair's angle at distance 0 drawn anew;
    `real falls` and `scrambled falls`: by how much it is lower at 1,000 than at 0, in each layer.
    `real peaks` and `scrambled peaks`: the shares of scores that peak at a distance below each of `below`, and not below the one
    before. `fast`: quartiles over heads of the share of the pairs that turn in at most `tokens`; `previous`: the heads
    that look at the previous token, as layer, head, score, share of the fast pairs, and peak of the mean score.
    """
    model, generator = pretrained.load(MODEL), torch.Generator().manual_seed(0)
    found, follows = _products(model, tokens, n, generator)  # (L, H, n, d_head / 2), (L, H)
    omega = rope_frequencies(model.config.d_head, model.config.theta)
    turns = torch.polar(torch.ones(1, dtype=torch.float64), omega[:, None] * torch.arange(BELOW[-1]))  # (d_head / 2, far)
    fast = (found.abs()[..., 2 * math.pi / omega <= tokens].sum(dim=-1) / found.abs().sum(dim=-1)).mean(dim=-1)  # (L, H)
    peaks = (found.mean(dim=2) @ turns).real.argmax(dim=-1)  # (L, H)
    told = {"distances": DISTANCES, "below": BELOW, "fast": _rounded(torch.quantile(fast, fast.new_tensor([0.25, 0.5, 0.75])))}
    told["previous"] = [
        [layer, head, *_rounded(torch.stack([follows[layer, head], fast[layer, head]])), int(peaks[layer, head])]
        for layer, head in (follows > 0.3).nonzero().tolist()
    ]
    anew = torch.polar(found.abs(), 2 * math.pi * torch.rand(found.shape, generator=generator, dtype=torch.float64))
    for name, z in (("real", found), ("scrambled", anew)):
        scores = (z @ turns).real / z.abs().sum(dim=-1, keepdim=True)  # (L, H, n, far)
        counts = torch.bucketize(scores.argmax(dim=-1), torch.tensor(BELOW), right=True).flatten().bincount(minlength=len(BELOW))
        told |= {name: _rounded(scores[..., DISTANCES].mean(dim=(0, 1, 2))), f"{name} peaks": _rounded(counts / counts.sum())}
        told[f"{name} falls"] = _rounded((scores[..., 0] - scores[..., 1000]).mean(dim=(1, 2)))  # (L,)
    return told


def _products(model: GPT, tokens: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Queries times conjugate keys of n pairs of tokens, not turned, as complex numbers (L, H, n, d_head / 2), and previous scores (L, H)."""
    text = data.read("austen", 4 * 4 * tokens)
    ids = torch.tensor([pretrained.tokenizer(MODEL).encode(text, errors="ignore")[:tokens]])
    products, previous = [], []

    def before(attention, given):
        query, key, _ = attention.project(given[0], torch.zeros_like(given[1]))
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # (1, H, T, d_head)
        i = torch.randint(FIRST + 1, tokens, (n,), generator=generator)
        j = FIRST + (torch.rand(n, generator=generator) * (i - FIRST)).long()  # FIRST ≤ j < i
        q, k = (torch.complex(*x.double().chunk(2, dim=-1)) for x in (query[0, :, i], key[0, :, j]))  # (H, n, d_head / 2)
        products.append(q * k.conj())

    with hooked(block.attention.register_forward_pre_hook(before) for block in model.blocks):
        look_at(model, ids, lambda layer, weights, stream: previous.append(previous_score(weights)[0]))
    return torch.stack(products), torch.stack(previous)


@torch.no_grad()
def distance_spread(windows: int = 2, tokens: int = 512, low: int = 4, high: int = 150) -> dict:
    """Of each layer, and of all together (`whole`), by the mean over heads and windows of Austen: the `exponent` of the power law that has
    the mean of ln r, the `variance` of ln r, and its `ratio` to that power law's. Layers (L,)."""
    model, tokenizer, text = pretrained.load(MODEL), pretrained.tokenizer(MODEL), data.read("austen")
    profiles = []
    for i in range(windows):
        start = round((i + 0.5) * len(text) / windows)
        ids = tokenizer.encode(text[start : start + 8 * tokens], errors="ignore")[:tokens]
        look_at(model, torch.tensor([ids]), lambda _, w, stream: profiles.append(distance_profile(w[0].float()).mean(dim=0)))
    profile = torch.stack(profiles).unflatten(0, (windows, -1)).mean(dim=0)  # (L, D + 1)
    profile = torch.cat([profile, profile.mean(dim=0, keepdim=True)])  # (L + 1, D + 1)
    told = {name: _rounded(values) for name, values in log_spread(profile, low, high).items()}
    whole = {name: values.pop() for name, values in told.items()}
    return {"windows": windows, "tokens": tokens, "low": low, "high": high} | told | {"whole": whole}


@torch.no_grad()
def responses(texts: int = 2, tokens: int = 400, N: int = 200) -> dict:
    """How each head's mean of ln r answers to a factor of its scores, and what a power law with this mean would do, on Austen.

    (L H,) each, means over texts: `exponent`, `predicted` and `response` of `course.thermo_dictionary.head_response`; `parts` are the
    medians over heads of the three ratios that lead from the prediction to the response.
    """
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    text, rows = data.read("austen"), []
    for i in range(texts):
        start = round((i + 0.5) * len(text) / texts)
        ids = tokenizer.encode(text[start : start + 8 * tokens], errors="ignore")[:tokens]
        layers: list[dict[str, Tensor]] = []
        see = lambda layer, weights, stream, layers=layers: layers.append(head_response(weights[0], N))  # noqa: E731
        look_at(model, torch.tensor([ids]), see)
        rows.append({k: torch.cat([layer[k] for layer in layers]) for k in layers[0]})
    found = {k: torch.stack([row[k] for row in rows]).mean(dim=0) for k in rows[0]}  # (L H,) each
    own = -found["exponent"] * found["within"]
    parts = (found["law"] / found["profile"], found["profile"] / found["within"], own / found["response"])
    told = {"texts": texts, "tokens": tokens, "N": N, "parts": [round(float(x.median()), 2) for x in parts]}
    return told | {k: _rounded(found[k]) for k in ("exponent", "predicted", "response")}


@torch.no_grad()
def layer_maps(name: str, text: str, windows: int, tokens: int) -> Tensor:
    """The maps of each layer, mean over heads, on windows of a text: (windows, L, tokens, tokens), float32.

    `name` is `MODEL`, which reads windows from all over the text, or "gpt", the course's own, which reads what it was not trained on, the last
    60,000 characters, and puts BOS first.
    """
    whole = data.read(text)
    if name == "gpt":
        (model, merges), whole = load_gpt(), whole[-60_000:]
        encode = lambda piece: [model.config.V - 1, *bpe_encode(piece, merges)]  # noqa: E731
    else:
        model, tokenizer = pretrained.load(name), pretrained.tokenizer(name)
        encode = lambda piece: tokenizer.encode(piece, errors="ignore")  # noqa: E731
    found = []
    for i in range(windows):
        start = round((i + 0.5) * (len(whole) - 8 * tokens) / windows)
        layers: list[Tensor] = []
        ids = torch.tensor([encode(whole[start : start + 8 * tokens])[:tokens]])
        look_at(model, ids, lambda layer, weights, stream, layers=layers: layers.append(weights[0].float().mean(dim=0)))
        found.append(torch.stack(layers))
    return torch.stack(found)


@torch.no_grad()
def walks_back(windows: int = 4, tokens: int = 160) -> dict:
    """Attention over depth as a walk, on windows of Austen: what `course.fractional.depth_test` finds, and `first`, the weight on the four
    first keys by layer.
    """
    maps = layer_maps(MODEL, "austen", windows, tokens)
    found = {
        name: [_rounded(row) for row in torch.tensor(values)] if isinstance(values[0], list) else _rounded(torch.tensor(values))
        for name, values in depth_test(maps).items()
    }
    first = maps[:, :, tokens // 2 :, :FIRST].sum(dim=-1).mean(dim=(0, 2))
    return {"windows": windows, "tokens": tokens, "first": _rounded(first)} | found


@torch.no_grad()
def atlas_dot(windows: int = 2, lengths: tuple[int, ...] = (256, 512), low: int = 4, high: int = 128) -> dict:
    """γ of the trained model as the models of the atlas are read: the mean profile over layers and heads at distances low to high.

    On windows of Austen that end at the same tokens, in each of the lengths: `own`, one γ for each window; `shuffled`, the same
    of the shortest length with the window's tokens in another order.
    """
    model, tokenizer = pretrained.load(MODEL), pretrained.tokenizer(MODEL)
    text, longest = data.read("austen"), max(lengths)
    starts = [round((i + 0.5) * len(text) / windows) for i in range(windows)]
    ids = [tokenizer.encode(text[start : start + 8 * longest], errors="ignore")[:longest] for start in starts]
    order = torch.randperm(min(lengths), generator=torch.Generator().manual_seed(0)).tolist()

    def gamma(one: list[int]) -> float:
        layers: list[Tensor] = []
        look_at(
            model,
            torch.tensor([one]),
            lambda layer, weights, stream: layers.append(distance_profile(weights[0].float()).mean(dim=0)),
        )
        return round(float(decay_fit(torch.stack(layers).mean(dim=0), low, high)["power"]), 3)

    told = {"lengths": list(lengths), "own": {str(n): [gamma(one[-n:]) for one in ids] for n in lengths}}
    return told | {"shuffled": [gamma([one[-min(lengths) :][i] for i in order]) for one in ids]}


def _rounded(values: Tensor) -> list[float]:
    return [round(float(x), 3) for x in values]


LOOKS: dict[str, Callable[[], dict]] = {
    f.__name__: f
    for f in (
        neighbours,
        heads,
        rope_pairs,
        context_loss,
        cached_text,
        first_tokens,
        previous_heads,
        rope_scores,
        decay_heads,
        sinks,
        window_recall,
        distance_spread,
        responses,
        walks_back,
        atlas_dot,
        cache_shelf,
        gapped,
    )
}
