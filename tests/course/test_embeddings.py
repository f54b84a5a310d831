"""Reference code of chapter ch03 against plain Python, numpy, autograd and the model itself."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course import widgets
from course.embeddings import (
    ANALOGIES,
    analogy,
    austen_vectors,
    embedding,
    nearest,
    neighbour_counts,
    noise_counts,
    principal_components,
    questions,
    residual_trace,
    skip_gram_loss,
    text_as_ids,
    thinned,
    tied_logits,
    train_vectors,
    unit_rows,
    vocabulary,
    words_of,
)
from course.model import GPT, Config
from course.widgets.embeddings import WORDS, WordSums


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- into the model and out of it


def test_a_lookup_and_the_scores_of_a_tied_head_are_torchs():
    E, h, ids = normal(7, 5), normal(2, 3, 5, seed=1), torch.tensor([[6, 0, 2], [2, 2, 1]])
    assert torch.equal(embedding(ids, E), F.embedding(ids, E))
    scores = np.einsum("btd,vd->btv", h.numpy(), E.numpy())
    assert np.allclose(tied_logits(h, E).numpy(), scores, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("ids", "error", "told"),
    [([0.0], TypeError, "integers"), ([-1], ValueError, "between 0 and V − 1 = 6"), ([7], ValueError, "got 7 to 7")],
)
def test_an_id_that_is_no_row_is_refused(ids, error, told):
    with pytest.raises(error, match=told):
        embedding(torch.tensor(ids), normal(7, 5))


def test_no_ids_have_no_vectors():
    assert embedding(torch.zeros(0, dtype=torch.int64), normal(7, 5)).shape == (0, 5)


# ---------------------------------------------------------------- a text


def test_words_and_their_numbers():
    words = words_of("It's a _truth_, a truth—2 universally; A")
    assert words == ["it's", "a", "truth", "a", "truth", "universally", "a"]
    names, counts = vocabulary(words, 2)
    assert names == ["a", "truth"] and counts.tolist() == [3.0, 2.0]
    names, counts, ids = text_as_ids("It's a truth, a truth, a", 2)
    assert names == ["a", "truth"] and ids.tolist() == [0, 1, 0, 1, 0] and counts.tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match="no word occurs 9 times"):
        vocabulary(words, 9)


def test_frequent_words_are_thinned_and_rare_ones_kept():
    counts = torch.tensor([90_000.0, 10_000.0])
    ids = torch.repeat_interleave(torch.arange(2), counts.long())
    kept = thinned(ids, counts, 0.225, torch.Generator().manual_seed(0))
    assert int((kept == 1).sum()) == 10_000  # its share 0.1 is below 0.225
    assert abs(int((kept == 0).sum()) - 45_000) < 5 * math.sqrt(90_000 * 0.25)  # √(0.225 / 0.9) = 1/2


def test_neighbours_are_counted_as_by_hand():
    ids, V, window = torch.tensor([0, 2, 1, 2, 2, 0]), 4, 3
    expected = np.zeros((V, V))
    for i in range(len(ids)):
        for j in range(len(ids)):
            if 0 < abs(i - j) <= window:
                expected[ids[i], ids[j]] += 1 - (abs(i - j) - 1) / window
    assert np.allclose(neighbour_counts(ids, V, window).numpy(), expected, rtol=0, atol=1e-5)


def test_noise_has_k_pairs_for_each_true_one():
    n, counts = normal(4, 4).abs(), torch.tensor([16.0, 1.0, 81.0, 1.0], dtype=torch.float64)
    noise = noise_counts(n, counts, 5)
    assert torch.allclose(noise.sum(dim=1), 5 * n.sum(dim=1))
    assert torch.allclose(noise[0] / noise[0, 1], torch.tensor([8.0, 1.0, 27.0, 1.0], dtype=torch.float64))


def test_the_loss_is_the_mean_cross_entropy_of_true_and_noise():
    E, U, n = normal(4, 3), normal(4, 3, seed=1), normal(4, 4, seed=2).abs()
    noise = normal(4, 4, seed=3).abs()
    total = 0.0
    for c in range(4):
        for o in range(4):
            p = 1 / (1 + math.exp(-float(E[c] @ U[o])))
            total -= float(n[c, o]) * math.log(p) + float(noise[c, o]) * math.log(1 - p)
    assert math.isclose(float(skip_gram_loss(E, U, n, noise)), total / float(n.sum()), rel_tol=1e-12)


def test_training_follows_autograd_and_comes_near_the_best_scores():
    n = neighbour_counts(torch.randint(6, (4000,), generator=torch.Generator().manual_seed(0)), 6, 2)
    noise = noise_counts(n, torch.full((6,), 667.0), 2)
    E, U = train_vectors(n, noise, d=6, steps=600, seed=1)  # room for every pair
    assert torch.allclose(E @ U.T, (n / noise).log(), atol=0.02)
    first, start = train_vectors(n, noise, d=6, steps=0, seed=1)
    first, start = first.requires_grad_(True), start.requires_grad_(True)
    optimiser = torch.optim.Adam([first, start], lr=0.05, betas=(0.9, 0.99))
    skip_gram_loss(first, start, n, noise).backward()
    optimiser.step()
    assert torch.allclose(first, train_vectors(n, noise, d=6, steps=1, seed=1)[0], atol=1e-4)


# ---------------------------------------------------------------- directions


def test_analogies_by_brute_force():
    E = normal(12, 4) * normal(12, 1, seed=1).exp()
    unit = E / E.norm(dim=1, keepdim=True)
    for a, b, c in ((0, 1, 2), (3, 7, 3), (11, 4, 0)):
        point = unit[a] - unit[b] + unit[c]
        cosines = [float(row @ point / point.norm()) for row in unit]
        order = sorted(range(12), key=lambda w: -cosines[w])
        assert analogy(a, b, c, E, exclude=False) == order[0]
        assert analogy(a, b, c, E) == next(w for w in order if w not in (a, b, c))
        assert nearest(point, E, n=3) == order[:3]


def test_questions_ask_every_pair_by_every_other():
    names = ["man", "woman", "brother", "sister", "king", "he", "she"]
    asked = questions("gender", names)
    words = {tuple(names[i] for i in question) for question in asked}
    assert len(asked) == len(words) == 6
    assert ("woman", "man", "brother", "sister") in words and ("she", "he", "man", "woman") in words


@pytest.mark.parametrize("kind", sorted(ANALOGIES))
def test_pairs_are_pairs(kind):
    assert all(len(pair.split()) == 2 for pair in ANALOGIES[kind].split(", "))


def test_principal_components_are_numpys():
    x = normal(9, 5) @ normal(5, 5, seed=1)
    coordinates, shares = principal_components(x, 3)
    variances, axes = np.linalg.eigh(np.cov(x.numpy().T))
    assert np.allclose(shares.numpy(), variances[::-1][:3] / variances.sum(), rtol=1e-9)
    expected = (x - x.mean(0)).numpy() @ axes[:, ::-1][:, :3]
    assert np.allclose(np.abs(coordinates.numpy()), np.abs(expected), atol=1e-9)
    assert all(float(column[column.abs().argmax()]) > 0 for column in coordinates.T)


def test_the_stored_vectors_are_directions_of_distinct_words():
    names, E = austen_vectors()
    assert len(set(names)) == len(names) == len(E) and E.shape[1] == 64
    assert torch.allclose(E.norm(dim=1), torch.ones(len(E)), atol=1e-6)


# ---------------------------------------------------------------- the stream


@pytest.mark.parametrize("sizes", [{}, {"norm": "layer", "position": "learned", "ffn": "gelu", "bias": True, "tied": True}])
def test_the_writes_add_up_to_the_stream_behind_the_last_block(sizes):
    torch.manual_seed(0)
    model = GPT(Config(V=13, d_model=16, n_layers=3, n_heads=2, **sizes)).double().requires_grad_(False)
    ids, kept = torch.randint(13, (2, 5)), {}
    model.norm.register_forward_hook(lambda module, args, out: kept.update(stream=args[0]))
    model(ids)
    writes = residual_trace(model, ids)
    assert len(writes) == 7 + ("position" in sizes)
    assert torch.allclose(sum(writes.values()), kept["stream"], rtol=0, atol=1e-14)
    assert torch.equal(writes["embedding"], model.embedding.weight[ids])


# ---------------------------------------------------------------- the widget


def test_the_widget_ranks_as_the_vectors_do():
    names, E = austen_vectors()
    rows = unit_rows(E[[names.index(word) for word in WORDS]].double())
    for a, b, c in (("woman", "man", "brother"), ("went", "go", "come"), ("netherfield", "bingley", "darcy")):
        point = rows[WORDS.index(a)] - rows[WORDS.index(b)] + rows[WORDS.index(c)]
        cosines = (rows @ point / point.norm()).tolist()
        best, cosine = WordSums(a=a, b=b, c=c).ranked()[0]
        assert best == WORDS[max(range(len(WORDS)), key=lambda w: cosines[w])] and abs(cosine - max(cosines)) < 2e-3


def test_the_widget_computes_what_python_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "embeddings.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    shown = [
        WordSums(a="woman", b="man", c="brother"),
        WordSums(a="woman", b="man", c="brother", exclude=True),
        WordSums(a="house", b="house", c="he", exclude=True),
    ]
    script = f"{library}{source}\nconst cases = {json.dumps([widget.state() for widget in shown])};\n"
    script += "console.log(JSON.stringify(cases.map((s) => [ranked(s), said(s)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for widget, (ranked, text) in zip(shown, told, strict=True):
        assert [word for word, _ in ranked] == [word for word, _ in widget.ranked()]
        assert np.allclose([x for _, x in ranked], [x for _, x in widget.ranked()], rtol=0, atol=1e-12)
        assert text == widget.describe()
