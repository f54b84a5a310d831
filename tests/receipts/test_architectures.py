"""The evidence behind the formulas of ch10_architectures."""

import itertools
import math

import pytest
import sympy as sp
import torch

from course import data
from course.architectures import (
    FAMILIES,
    Family,
    Layer,
    cross_attention,
    gradient_influence,
    mask_for,
    mlm_batch,
    mlm_loss,
    product_total,
    reach,
    reversal,
)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def stack(allowed, n_layers, seed=0):
    torch.manual_seed(seed)
    layers = [Layer(12, 2, 16).double() for _ in range(n_layers)]

    def f(x):
        h = x[None]
        for layer in layers:
            h = layer(h, allowed)
        return h[0]

    return f


# ---------------------------------------------------------------- masks


@pytest.mark.receipt("ch10-mask", "computed")
def test_each_position_depends_on_what_its_mask_shows():
    """The gradients of a random layer, pair by pair, against the three rules."""
    rules = {"bidirectional": lambda i, j: True, "causal": lambda i, j: j <= i, "prefix": lambda i, j: j <= i or j < 3}
    for kind, rule in rules.items():
        influence = gradient_influence(stack(mask_for(kind, 7, prefix=3), 1), normal(7, 12))
        for i, j in itertools.product(range(7), repeat=2):
            assert bool(influence[i, j] > 1e-9) is rule(i, j)
            assert bool(influence[i, j] == 0) is not rule(i, j)


@pytest.mark.receipt("ch10-reach", "computed")
def test_gradients_flow_where_the_power_of_the_mask_is_positive():
    for seed in range(6):
        drawn = torch.rand(6, 6, generator=torch.Generator().manual_seed(seed)) < 0.25
        for sure in (torch.eye(6), torch.eye(6).roll(seed % 5 + 1, 0)):  # itself, or another: no row is empty
            allowed = drawn | sure.bool()
            for n_layers in (1, 2, 3):
                flows = gradient_influence(stack(allowed, n_layers, seed), normal(6, 12, seed=seed)) > 0
                power = torch.eye(6)
                for _ in range(n_layers):
                    power = power @ (allowed.float() + torch.eye(6))
                assert torch.equal(flows, power > 0)


def knows_so_many(window, n_layers, T=14):
    """In how many tokens the last position of Hugging Face's Mistral has a gradient."""
    from transformers import MistralConfig, MistralModel

    torch.manual_seed(window + n_layers)
    sizes = {"vocab_size": 9, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": n_layers}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "initializer_range": 0.3, "attn_implementation": "eager"}
    model = MistralModel(MistralConfig(**sizes, **heads, sliding_window=window)).eval()
    x = torch.randn(1, T, 16).requires_grad_(True)
    model(inputs_embeds=x, use_cache=False).last_hidden_state[0, -1].sin().sum().backward()
    return int((x.grad[0].abs().amax(dim=-1) > 0).sum())


@pytest.mark.receipt("ch10-window", "computed")
def test_a_sliding_window_reaches_farther_with_each_layer():
    for window, n_layers in itertools.product((2, 3, 4), (1, 2, 3)):
        assert knows_so_many(window, n_layers) == 1 + n_layers * (window - 1)
    for window, T in itertools.product(range(1, 6), range(5, 13)):
        pairs = [(i, j) for i, j in itertools.product(range(T), repeat=2) if j <= i < j + window]
        assert len(pairs) == window * T - window * (window - 1) // 2


@pytest.mark.receipt("ch10-transitive", "computed")
def test_a_mask_keeps_its_pattern_exactly_if_it_is_transitive():
    """All 4,096 masks of four tokens that see themselves."""
    places = [(i, j) for i, j in itertools.product(range(4), repeat=2) if i != j]
    for ones in itertools.product([False, True], repeat=9):  # all masks of three, which need not see themselves
        allowed = torch.tensor(ones).view(3, 3)
        A = allowed.tolist()
        transitive = all(A[i][j] for i, k, j in itertools.product(range(3), repeat=3) if A[i][k] and A[k][j])
        same = all(torch.equal(reach(allowed, n_layers), allowed) for n_layers in (1, 2, 3, 5))
        assert same is (transitive and all(A[i][i] for i in range(3)))
    kept = 0
    for ones in itertools.product([False, True], repeat=12):
        allowed = torch.eye(4, dtype=torch.bool)
        for place, one in zip(places, ones, strict=True):
            allowed[place] = one
        A = allowed.tolist()
        transitive = all(A[i][j] for i, k, j in itertools.product(range(4), repeat=3) if A[i][k] and A[k][j])
        same = all(torch.equal(reach(allowed, n_layers), allowed) for n_layers in (2, 3, 5))
        assert same is transitive
        kept += same
    assert kept == 355  # the number of preorders on four labelled elements, OEIS A000798
    for kind in ("bidirectional", "causal", "prefix"):
        assert torch.equal(reach(mask_for(kind, 9, prefix=4), 6), mask_for(kind, 9, prefix=4))


@pytest.mark.receipt("ch10-cloze-leak", "erratum")
def test_hiding_a_token_from_itself_leaks_in_two_layers():
    others = ~torch.eye(6, dtype=torch.bool)
    tokens, places = normal(6, 8), normal(6, 8, seed=1)

    def look(query, content):
        return (query @ content.T / math.sqrt(8)).masked_fill(~others, -math.inf).softmax(dim=-1) @ content

    one = gradient_influence(lambda x: look(places, x), tokens).diagonal()
    two = gradient_influence(lambda x: look(look(places, x), look(places, x)), tokens).diagonal()
    assert float(one.abs().max()) <= 0.0
    assert float(two.min()) > 1e-3
    for T in range(2, 8):
        A = (1 - torch.eye(T)).long()
        for i in range(T):
            paths = [k for k in range(T) if k != i]  # from i to another token and back
            assert int((A @ A)[i, i]) == len(paths) == T - 1


# ---------------------------------------------------------------- blanks


@pytest.mark.receipt("ch10-mlm", "computed")
def test_the_loss_is_the_mean_over_the_chosen():
    for seed in range(3):
        logits, generator = 2 * normal(3, 9, 5, seed=seed), torch.Generator().manual_seed(seed)
        ids, chosen = torch.randint(5, (3, 9), generator=generator), torch.rand(3, 9, generator=generator) < 0.3
        terms = []
        for b, t in chosen.nonzero().tolist():
            powers = [math.exp(z) for z in logits[b, t].tolist()]
            terms.append(-math.log(powers[ids[b, t]] / math.fsum(powers)))
        assert abs(float(mlm_loss(logits, ids, chosen)) - math.fsum(terms) / len(terms)) <= 1e-12


@pytest.mark.receipt("ch10-signals", "computed")
def test_how_many_positions_teach():
    """A mean over 2,000 texts against its expectation, within five standard errors."""
    ids = torch.zeros(2000, 512, dtype=torch.long)
    _, chosen = mlm_batch(ids, 10, 10, torch.Generator().manual_seed(0))
    error = abs(float(chosen.sum(dim=1).double().mean()) - 0.15 * 512)
    assert error <= 5 * math.sqrt(512 * 0.15 * 0.85 / 2000)
    guesses = len(list(itertools.pairwise(ids[0].tolist())))  # each token from those before it, but for the first
    assert guesses == 512 - 1 and round(guesses / (0.15 * 512), 2) == 6.65


@pytest.mark.receipt("ch10-total", "derived")
def test_the_total_is_one_plus_a_sum_of_squares():
    p, q = sp.symbols("p q", positive=True)  # p(a, b), and p(a) p(b)
    assert sp.expand((p - q) ** 2 / q - (p**2 / q - 2 * p + q)) == 0  # pair by pair; p²/q is p(a | b) p(b | a)
    table = sp.Matrix(3, 4, sp.symbols("p:12", positive=True))
    rows, columns = [sum(table.row(i)) for i in range(3)], [sum(table.col(j)) for j in range(4)]
    products = sum(row * column for row, column in itertools.product(rows, columns))
    # Summed over all pairs, −2 Σ p + Σ q is −2 + 1, since Σ p = 1 and Σ q = (Σ p)².
    assert sp.expand(products - sum(table) ** 2) == 0
    for seed in range(3):
        joint = normal(4, 5, seed=seed).exp()
        joint = joint / joint.sum()
        apart = joint.sum(dim=1, keepdim=True) * joint.sum(dim=0, keepdim=True)
        error = abs(float(product_total(joint)) - 1 - float(((joint - apart).square() / apart).sum()))
        assert error <= 1e-13


@pytest.mark.receipt("ch10-orders", "computed")
def test_each_order_of_filling_is_another_distribution():
    for seed in range(3):
        torch.manual_seed(seed)
        layer, table, positions = Layer(16, 2, 32).double(), normal(4, 16, seed=seed), normal(2, 16, seed=seed + 10)

        def fill(ids, layer=layer, table=table, positions=positions):
            h = layer(table[ids][None] + positions, mask_for("bidirectional", 2))[0]
            return (h @ table[:3].T / 4).softmax(dim=-1).detach()

        left = torch.stack([fill([3, 3])[0, a] * fill([a, 3])[1] for a in range(3)])
        right = torch.stack([fill([3, 3])[1, b] * fill([3, b])[0] for b in range(3)], dim=1)
        error = max(abs(float(left.sum()) - 1), abs(float(right.sum()) - 1))
        assert error <= 1e-14
        assert float((left - right).abs().max()) > 0.01


# ---------------------------------------------------------------- two texts


@pytest.mark.receipt("ch10-pairs", "derived")
def test_pairs_of_an_encoder_decoder_are_those_of_a_prefix_mask():
    S, T, i = sp.symbols("S T i", positive=True, integer=True)
    told = S**2 + S * T + T * (T + 1) / 2
    assert sp.expand(S * S + sp.summation(S + i, (i, 1, T)) - told) == 0  # S rows of S, then S + 1 up to S + T
    for source, target in itertools.product(range(1, 7), repeat=2):
        one_row = mask_for("prefix", source + target, prefix=source)
        two_stacks = [mask_for("bidirectional", source), torch.ones(target, source), mask_for("causal", target)]
        assert int(one_row.sum()) == sum(int(mask.sum()) for mask in two_stacks) == told.subs({S: source, T: target})


@pytest.mark.receipt("ch10-cross", "computed")
def test_cross_attention_weight_by_weight():
    x, memory, W = normal(1, 3, 4), normal(1, 5, 4, seed=1), normal(4, 4, 4, seed=2)
    W_q, W_k, W_v, _ = W
    found = cross_attention(x, memory, W_q, W_k, W_v, torch.eye(4, dtype=torch.float64), 1)[0]
    for t in range(3):
        query = x[0, t] @ W_q
        powers = [math.exp(float(query @ (memory[0, s] @ W_k)) / 2) for s in range(5)]
        expected = sum(power / math.fsum(powers) * (memory[0, s] @ W_v) for s, power in enumerate(powers))
        assert float((found[t] - expected).abs().max()) <= 1e-12


@pytest.mark.receipt("ch10-teacher", "computed")
def test_one_pass_gives_all_factors():
    for kind in FAMILIES[1:]:
        torch.manual_seed(0)
        model = Family(kind, V=16, n=8).double()
        source, target = reversal(4, 8, 16, torch.Generator().manual_seed(1))
        with torch.no_grad():
            forced = model(source, target).log_softmax(dim=-1).gather(-1, target[..., None])[..., 0]
            for k in range(8):
                so_far = torch.where(torch.arange(8) < k, target, 0)
                alone = model(source, so_far)[:, k].log_softmax(dim=-1).gather(-1, target[:, k, None])[:, 0]
                assert float((alone - forced[:, k]).abs().max()) <= 1e-12


# ---------------------------------------------------------------- the experiment


def rows_of(task):
    record = data.record("architectures")
    assert record["mode"] == "full" and len(record["seeds"]) == 5
    assert len({row["parameters"] // 100 for row in record["results"]}) == 1  # equal but for one norm
    return {(row["model"], row["steps"]): row for row in record["results"] if row["task"] == task}


@pytest.mark.receipt("ch10-reversal", "measured")
def test_all_four_learn_to_reverse():
    rows = rows_of("reversal")
    for kind in FAMILIES:
        assert min(rows[kind, 100]["lists"]) > 0.99
        assert max(rows[kind, 25]["lists"]) < 0.5


@pytest.mark.receipt("ch10-either", "measured")
def test_all_places_at_once_mix_two_right_answers():
    rows = rows_of("either order")
    for steps in (300, 1000):
        assert max(rows["encoder", steps]["lists"]) < 0.02 and min(rows["encoder", steps]["tokens"]) > 0.99
    encoder = rows["encoder", 1000]
    mean, half_width = data.interval(encoder["lists"])
    assert abs(mean - 2 * 2**-8) < half_width < mean
    assert (round(100 * mean, 2), round(100 * half_width, 2)) == (0.74, 0.4)
    for kind in FAMILIES[1:]:
        assert max(rows[kind, 1000]["lists"]) > 0.9
