"""Embeddings and the residual stream: chapter ch03.

The table from tokens to vectors and back, vectors trained from a text, directions among them, and what is written into
the stream of a GPT. E (V, d) has one row for each token. Vectors are rows.
"""

import re
from collections import Counter

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from course.data import HERE
from course.model import GPT

__all__ = [
    "ANALOGIES",
    "analogy",
    "austen_vectors",
    "embedding",
    "nearest",
    "neighbour_counts",
    "noise_counts",
    "principal_components",
    "questions",
    "residual_trace",
    "skip_gram_loss",
    "text_as_ids",
    "thinned",
    "tied_logits",
    "train_vectors",
    "unit_rows",
    "vocabulary",
    "words_of",
]

# ---------------------------------------------------------------- into the model and out of it


def embedding(ids: Tensor, E: Tensor) -> Tensor:
    """E[i] for each id i, formula ch03-embedding: ids (...) of integers, E (V, d) → (..., d).

    Raises:
        TypeError: if ids are not integers.
        ValueError: if an id is not between 0 and V − 1; a negative one would count from the end.
    """
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"ids must be integers (torch.int64), got {ids.dtype}")
    if ids.numel() and not (ids.min() >= 0 and ids.max() < len(E)):
        raise ValueError(f"ids must be between 0 and V − 1 = {len(E) - 1}, got {int(ids.min())} to {int(ids.max())}")
    return E[ids]  # (..., d)


def tied_logits(h: Tensor, E: Tensor) -> Tensor:
    """h Eᵀ, the scores in formula ch03-tied-head: h (..., d), E (V, d) → (..., V).

    Source: Press and Wolf (2017), Using the Output Embedding to Improve Language Models.
    """
    return h @ E.T  # (..., V)


# ---------------------------------------------------------------- vectors trained from a text


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without digits and signs; an apostrophe inside a word stays."""
    return re.findall(r"[a-z]+(?:['’][a-z]+)*", text.lower())


def vocabulary(words: list[str], least: int) -> tuple[list[str], Tensor]:
    """The words that occur at least `least` times, the most frequent first, and how often each does: (V,) float32.

    Raises:
        ValueError: if there is none.
    """
    counts = [(word, n) for word, n in Counter(words).most_common() if n >= least]
    if not counts:
        raise ValueError(f"no word occurs {least} times: take a longer text or a smaller number")
    return [word for word, _ in counts], torch.tensor([float(n) for _, n in counts])


def text_as_ids(text: str, least: int) -> tuple[list[str], Tensor, Tensor]:
    """The vocabulary of a text, its counts (V,), and the text without its rare words as ids (N,)."""
    words = words_of(text)
    names, counts = vocabulary(words, least)
    place = {name: i for i, name in enumerate(names)}
    return names, counts, torch.tensor([place[word] for word in words if word in place])


def thinned(ids: Tensor, counts: Tensor, rarity: float, generator: torch.Generator) -> Tensor:
    """The text without many of its most frequent words: each is kept with the probability √(rarity / its share).

    ids (N,), counts (V,) → (at most N,).

    Source: Mikolov et al. (2013), Distributed Representations of Words and Phrases, section 2.3.
    """
    keep = (rarity * counts.sum() / counts).sqrt()  # (V,), above 1 for rare words
    return ids[torch.rand(len(ids), generator=generator) < keep[ids]]


def neighbour_counts(ids: Tensor, V: int, window: int) -> Tensor:
    """How often two words stand at most `window` places apart: ids (N,) → (V, V), symmetric, float32.

    A pair k places apart counts 1 − (k − 1) / window, so that near words count more.
    """
    n = torch.zeros(V * V)
    for k in range(1, window + 1):
        n += (1 - (k - 1) / window) * torch.bincount(ids[:-k] * V + ids[k:], minlength=V * V)
    return n.view(V, V) + n.view(V, V).T


def noise_counts(n: Tensor, counts: Tensor, k: float) -> Tensor:
    """What n would be with k random neighbours for each true one, drawn in proportion to counts^(3/4): (V, V)."""
    return k * n.sum(dim=1, keepdim=True) * (counts**0.75 / (counts**0.75).sum())


def skip_gram_loss(E: Tensor, U: Tensor, n: Tensor, noise: Tensor) -> Tensor:
    """Formula ch03-sgns: −Σ [n ln σ(s) + noise ln σ(−s)] / Σ n with the scores s = E Uᵀ, in nats a pair.

    E, U (V, d): the vectors of words in the middle and of their neighbours; n, noise (V, V).

    Source: Mikolov et al. (2013), equation 4, summed over all pairs as in Levy and Goldberg (2014), section 3.1.
    """
    s = E @ U.T  # (V, V)
    return -(n * F.logsigmoid(s) + noise * F.logsigmoid(-s)).sum() / n.sum()


def train_vectors(
    n: Tensor, noise: Tensor, d: int = 64, steps: int = 200, seed: int = 0, lr: float = 0.05
) -> tuple[Tensor, Tensor]:
    """E and U (V, d) that make `skip_gram_loss` small, by Adam on all pairs at once.

    The gradient by a score is (n + noise) σ(s) − n, divided by Σ n: written out, since it is faster than autograd's.
    """
    generator = torch.Generator().manual_seed(seed)
    E, U = (0.3 * torch.randn(len(n), d, generator=generator) / d**0.5 for _ in range(2))  # (V, d)
    both, true = (n + noise) / n.sum(), n / n.sum()  # (V, V)
    optimiser = torch.optim.Adam([E, U], lr=lr, betas=(0.9, 0.99))
    for step in range(steps):
        slope = both * torch.sigmoid(E @ U.T) - true  # (V, V)
        E.grad, U.grad = slope @ U, slope.T @ E  # (V, d)
        optimiser.param_groups[0]["lr"] = lr * (1 - step / steps)
        optimiser.step()
    return E, U


def austen_vectors() -> tuple[list[str], Tensor]:
    """The words of six novels of Jane Austen and their vectors, rows of length 1: (V,), (V, 64).

    The first seed of `experiments/embeddings.py`, stored in bytes: directions are right to about 1 part in 100.
    """
    with np.load(HERE / "austen_vectors.npz") as stored:
        return stored["words"].tolist(), unit_rows(torch.from_numpy(stored["vectors"]).float())


# ---------------------------------------------------------------- directions


def unit_rows(E: Tensor) -> Tensor:
    """Each row divided by its length: E (..., d) → (..., d)."""
    return F.normalize(E, dim=-1)


def analogy(a: int, b: int, c: int, E: Tensor, exclude: bool = True) -> int:
    """The word whose vector has the largest cosine with a − b + c, formula ch03-analogy; E (V, d).

    Rows are brought to length 1 first. With `exclude`, the three words themselves cannot be the answer.

    Source: Mikolov, Yih and Zweig (2013), Linguistic Regularities in Continuous Space Word Representations.
    """
    rows = unit_rows(E)  # (V, d)
    scores = rows @ (rows[a] - rows[b] + rows[c])  # (V,), the cosines times one length
    if exclude:
        scores[[a, b, c]] = -torch.inf
    return int(scores.argmax())


def principal_components(x: Tensor, n: int = 2) -> tuple[Tensor, Tensor]:
    """Coordinates of the rows along the n directions in which they vary most, and each direction's share of the variance.

    x (N, d) → (N, n), (n,). The sign of each direction is such that its largest coordinate in size is positive.
    """
    left, sizes, _ = torch.linalg.svd(x - x.mean(dim=0), full_matrices=False)  # (N, k), (k,), (k, d)
    coordinates = left[:, :n] * sizes[:n]  # (N, n)
    signs = coordinates.gather(0, coordinates.abs().argmax(dim=0, keepdim=True)).sign()  # (1, n)
    return coordinates * signs, (sizes**2 / (sizes**2).sum())[:n]


def nearest(x: Tensor, E: Tensor, exclude: tuple[int, ...] = (), n: int = 1) -> list[int]:
    """The n words whose vectors, rows of E (V, d), have the largest cosine with x (d,), the nearest first."""
    scores = unit_rows(E) @ x  # (V,)
    scores[list(exclude)] = -torch.inf
    return scores.topk(n).indices.tolist()


ANALOGIES = {
    "gender": (
        "he she, him her, himself herself, man woman, men women, boy girl, father mother, brother sister, son daughter, "
        "brothers sisters, sons daughters, uncle aunt, husband wife, gentleman lady, gentlemen ladies, sir madam, mr mrs"
    ),
    "past": (
        "is was, has had, does did, says said, come came, go went, know knew, think thought, see saw, feel felt, "
        "take took, make made, give gave, find found, speak spoke"
    ),
    "house": (
        "bingley netherfield, bennet longbourn, collins hunsford, knightley donwell, woodhouse hartfield, weston randalls, "
        "elliot kellynch, bertram mansfield, tilney northanger, musgrove uppercross, rushworth sotherton, darcy pemberley"
    ),
}  # pairs of words in the same relation


def questions(kind: str, names: list[str]) -> list[tuple[int, int, int, int]]:
    """All analogies of a kind as ids a, b, c and the right answer: a is to b as the answer is to c.

    Pairs with a word outside the vocabulary `names` are left out.
    """
    place = {name: i for i, name in enumerate(names)}
    pairs = [pair.split() for pair in ANALOGIES[kind].split(", ")]
    known = [(place[x], place[y]) for x, y in pairs if x in place and y in place]
    return [(y, x, u, v) for x, y in known for u, v in known if (x, y) != (u, v)]


# ---------------------------------------------------------------- the stream


def residual_trace(model: GPT, ids: Tensor) -> dict[str, Tensor]:
    """What is written into the residual stream: the embedding, then each attention and feed-forward network.

    ids (B, T) → a name for each write and what it adds, (B, T, d_model). Their sum is the stream after the last
    block, formula ch03-stream.
    """
    writes = {"embedding": embedding(ids, model.embedding.weight)}
    positions = torch.arange(ids.shape[1], device=ids.device)
    if model.config.position == "learned":
        writes["position"] = model.position(positions).expand(len(ids), -1, -1)
    x = sum(writes.values())  # (B, T, d_model)
    for layer, block in enumerate(model.blocks):
        writes[f"attention {layer}"] = block.attention(block.norm_1(x), positions)
        x = x + writes[f"attention {layer}"]
        writes[f"ffn {layer}"] = block.ffn(block.norm_2(x))
        x = x + writes[f"ffn {layer}"]
    return writes
