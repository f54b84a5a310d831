"""The evidence behind the formulas of ch11_training."""

import itertools
import math
from fractions import Fraction

import pytest
import sympy as sp
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course import data
from course.checkpoint import load_gpt
from course.model import GPT, Config
from course.tokens import bpe_encode, vocabulary
from course.training import PUBLISHED, REFIT, Law, bigram, chinchilla_opt, lm_loss, perplexity


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- loss


@pytest.mark.receipt("ch11-cost", "computed")
def test_what_a_token_costs():
    logits, targets = 3 * normal(20, 7), torch.arange(20) % 7
    for row, target in zip(logits, targets, strict=True):
        share = math.exp(row[target]) / math.fsum(math.exp(z) for z in row.tolist())
        assert float(lm_loss(row[None], target[None])) == pytest.approx(-math.log(share), abs=1e-12)
        assert float(F.cross_entropy(row, target)) == pytest.approx(-math.log(share), abs=1e-12)
    assert float(lm_loss(torch.zeros(1, 7).double(), targets[:1])) == pytest.approx(math.log(7), abs=1e-12)
    assert float(lm_loss(torch.tensor([[1000.0, 0.0]]), torch.tensor([0]))) == 0


@pytest.mark.receipt("ch11-objective", "computed")
def test_next_tokens_make_a_text():
    torch.manual_seed(0)
    model, total, bos = GPT(Config(V=4, d_model=8, n_layers=2, n_heads=2)).double(), 0.0, 3
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    with torch.no_grad():
        for text in itertools.product(range(3), repeat=4):  # BOS is a token that is never written
            ids = torch.tensor([[bos, *text]])
            logits = model(ids)[:, :, :bos]  # (1, 5, 3)
            one_pass = float(lm_loss(logits[:, :-1], ids[:, 1:], "sum"))
            factors = [model(ids[:, :t])[0, -1, :bos].softmax(-1)[ids[0, t]].item() for t in range(1, 5)]
            assert one_pass == pytest.approx(-math.log(math.prod(factors)), abs=1e-12)
            total += math.exp(-one_pass)
    assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.receipt("ch11-parts", "computed")
def test_parts_make_the_mean_of_the_whole():
    logits, targets = (3 * normal(6, 5, 7)).requires_grad_(), torch.arange(30).reshape(6, 5) % 7
    for row, length in enumerate((5, 5, 5, 1, 1, 1)):
        targets[row, length:] = -100
    whole = lm_loss(logits, targets)
    (gradient,) = torch.autograd.grad(whole, logits)
    n = int((targets != -100).sum())
    for rows in (1, 2, 3):
        parts = list(zip(logits.split(rows), targets.split(rows), strict=True))
        means = [lm_loss(z, t) for z, t in parts]
        added = sum(int((t != -100).sum()) / n * mean for (_, t), mean in zip(parts, means, strict=True))
        assert added.item() == pytest.approx(whole.item(), abs=1e-12)
        assert torch.allclose(torch.autograd.grad(added, logits, retain_graph=True)[0], gradient, rtol=0, atol=1e-12)
        assert abs(sum(mean.item() for mean in means) / len(means) - whole.item()) > 0.01


@pytest.mark.receipt("ch11-perplexity", "computed")
def test_perplexity_has_a_lower_end_and_no_upper_end():
    V = 50
    assert perplexity(torch.zeros(10)) == 1
    assert perplexity(torch.full((10,), math.log(V), dtype=torch.float64)) == pytest.approx(V, rel=1e-12)
    assert perplexity(-torch.tensor([0.5, 0.125] * 2, dtype=torch.float64).log()) == pytest.approx(4, rel=1e-12)  # with V = 4
    sure_and_wrong = torch.tensor([0.9, 0.9, 0.9, 1e-9], dtype=torch.float64)
    assert perplexity(-sure_and_wrong.log()) > 3 * V
    assert perplexity(-torch.tensor([0.9, 0.0]).log()) == math.inf


@pytest.mark.receipt("ch11-text-perplexity", "computed")
def test_perplexity_is_one_over_a_geometric_mean():
    for seed in range(5):
        shares = [Fraction(int(k), 97) for k in torch.randint(1, 97, (6,), generator=torch.Generator().manual_seed(seed))]
        expected = float(1 / math.prod(shares)) ** (1 / 6)
        nats = torch.tensor([-math.log(share) for share in shares], dtype=torch.float64)
        assert perplexity(nats) == pytest.approx(expected, rel=1e-12)


@pytest.mark.receipt("ch11-bigram", "measured")
def test_counts_are_beaten_on_held_out_text():
    """The record's figures; and window by window the shipped model against bigrams of the bytes of the same author."""
    record = data.record("training")
    assert record["mode"] == "full" and record["results"]["texts"]["held_out_characters"] == 200_000
    shown = {"austen": (1.36, 2.01, 1.72), "shakespeare": (1.67, 2.31, 2.03)}
    for text, figures in shown.items():
        rows = {name: row["bits_per_byte"] for name, row in record["results"]["held_out"][text].items()}
        assert tuple(round(rows[name], 2) for name in ("gpt", "2-gram", "5-gram")) == figures
    text = torch.tensor(list(data.read("austen", 1_000_000).encode()))
    pairs_need = -bigram(text[:-12_800], V=256)[text[-12_800:-1], text[-12_799:]].mean().item() / math.log(2)
    small = record["results"]["small_model"]["bits_per_byte"]
    assert len(small) == 8 and max(small) < pairs_need - 0.3
    assert [round(x, 2) for x in (*data.interval(small), pairs_need)] == [3.07, 0.07, 3.54]
    mean, half = data.interval(gains_over_bigrams(windows=16))  # bits per byte, one a window
    assert (round(mean, 2), round(half, 2)) == (2.21, 0.05)


def gains_over_bigrams(windows: int) -> torch.Tensor:
    """What bigrams of bytes need more than the shipped GPT, in the second halves of windows that lie far apart in held-out Austen."""
    (model, merges), T, whole = load_gpt(), 512, data.read("austen")
    table = bigram(torch.tensor(list(whole[:-300_000].encode())), V=256)
    held_out = whole[-200_000:]
    starts = range(0, len(held_out), len(held_out) // windows)
    tokens = torch.tensor([bpe_encode(held_out[start : start + 3_000], merges)[:T] for start in starts])
    with torch.no_grad():
        ids = F.pad(tokens[:, :-1], (1, 0), value=model.config.V - 1)
        nats = F.cross_entropy(model(ids)[:, T // 2 :].mT, tokens[:, T // 2 :], reduction="none").sum(dim=1)
    spelled, gains = vocabulary(merges), []
    for row, mine in zip(tokens[:, T // 2 - 1 :].tolist(), nats.tolist(), strict=True):
        text = torch.tensor(list(b"".join(spelled[i] for i in row)))[len(spelled[row[0]]) - 1 :]  # with the byte before
        gains.append((-table[text[:-1], text[1:]].sum().item() - mine) / (len(text) - 1) / math.log(2))
    return torch.tensor(gains)


def test_adams_first_step_does_not_see_the_size_of_the_gradient():
    for scale in (1e-3, 1.0, 1e3):
        w = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
        w.grad = scale * torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
        torch.optim.AdamW([w], lr=0.01).step()
        assert torch.allclose(w.data, torch.tensor([-0.01, 0.01, -0.01], dtype=torch.float64), rtol=2e-5)


# ---------------------------------------------------------------- compute


@pytest.mark.receipt("ch11-flops", "computed")
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_six_operations_a_parameter_and_token(kv_heads):
    B, T, config = 2, 24, Config(V=50, d_model=32, n_layers=3, n_heads=4, n_kv_heads=kv_heads)
    model = GPT(config)
    with FlopCounterMode(display=False) as counter:
        lm_loss(model(torch.zeros(B, T, dtype=torch.int64)), torch.zeros(B, T, dtype=torch.int64)).backward()
    weights = sum(p.numel() for name, p in model.named_parameters() if p.ndim == 2 and name != "embedding.weight")
    assert counter.get_total_flops() == B * T * (6 * weights + 12 * config.n_layers * T * config.d_model)


c_N, c_D, C, floor, N, D, alpha_N, alpha_D, x = sp.symbols("c_N c_D C floor N D alpha_N alpha_D x", positive=True)
BEST = (alpha_N * c_N / (alpha_D * c_D)) ** (1 / (alpha_N + alpha_D)) * (C / 6) ** (alpha_D / (alpha_N + alpha_D))


@pytest.mark.receipt("ch11-balance", "derived")
def test_the_balance_is_where_the_loss_is_least():
    """N = e^x, and D = C / (6 e^x)."""
    along = floor + c_N * sp.exp(-alpha_N * x) + c_D * (C / 6) ** -alpha_D * sp.exp(alpha_D * x)
    first, second = sp.diff(along, x), sp.diff(along, x, 2)
    sides = alpha_D * c_D / D**alpha_D - alpha_N * c_N / N**alpha_N
    at = {N: sp.exp(x), D: C / 6 * sp.exp(-x)}
    assert sp.simplify(sp.expand_power_base(first - sides.subs(at), force=True)) == 0
    assert second.is_positive  # convex, so that the balance is the one least point


@pytest.mark.receipt("ch11-opt", "derived")
def test_the_optimum_keeps_the_balance():
    ratio = alpha_N * c_N / (alpha_D * c_D) * (C / 6 / BEST) ** alpha_D / BEST**alpha_N
    assert sp.simplify(sp.expand_log(sp.log(ratio), force=True)) == 0


LAWS = {  # billions of parameters, trillions of tokens and tokens a parameter at the compute of Gopher
    PUBLISHED: (32, 2.98, 93),
    Law(1.6934, 406.4, 410.7, 0.3392, 0.2849): (40, 2.38, 59),
    REFIT: (72, 1.33, 18),
}


@pytest.mark.receipt("ch11-opt", "derived")
@pytest.mark.receipt("ch11-rule", "erratum")
def test_the_constants_ask_for_what_is_said():
    """By a search over N on a grid of the law itself, which knows no formula of the optimum."""
    for law, (billions, trillions, tokens) in LAWS.items():
        sizes = torch.logspace(9, 13, 400_001, dtype=torch.float64)
        losses = law.floor + law.c_N / sizes**law.alpha_N + law.c_D / (5.76e23 / 6 / sizes) ** law.alpha_D
        least = float(sizes[losses.argmin()])
        other = 5.76e23 / 6 / least
        assert (round(least / 1e9), round(other / 1e12, 2), round(other / least)) == (billions, trillions, tokens)
        assert chinchilla_opt(5.76e23, law) == pytest.approx((least, other), rel=1e-3)


@pytest.mark.receipt("ch11-rule", "erratum")
def test_twenty_tokens_a_parameter_are_no_law():
    slope = sp.diff(sp.expand_log(sp.log(C / 6 / BEST**2), force=True), C) * C
    assert sp.simplify(slope - (alpha_N - alpha_D) / (alpha_N + alpha_D)) == 0
