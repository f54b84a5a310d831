"""The evidence behind the formulas of ch04_attention."""

import math

import mpmath
import numpy as np
import pytest
import sympy
import torch

from course.attention import attention, attention_backward, attention_weights, contribution, entropy_of_weights, std_of_scores

EPS = torch.finfo(torch.float64).eps


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sizes():
    rng = np.random.default_rng(0)
    for seed in range(20):
        T, S, d_k, d_v = (int(x) for x in rng.integers(1, 17, 4))
        yield normal(T, d_k, seed=3 * seed), normal(S, d_k, seed=3 * seed + 1), normal(S, d_v, seed=3 * seed + 2)


@pytest.mark.receipt("ch04-score", "computed")
def test_score():
    for query, key, _ in sizes():
        scores = query @ key.mT
        for t in range(len(query)):
            for j in range(len(key)):
                by_hand = math.fsum(a * b for a, b in zip(query[t].tolist(), key[j].tolist(), strict=True))
                assert abs(float(scores[t, j]) - by_hand) <= len(query[t]) * EPS * float((query[t] * key[j]).abs().sum())


@pytest.mark.receipt("ch04-weights", "computed")
def test_weights():
    for query, key, _ in sizes():
        weights = attention_weights(query, key)
        scores = (query @ key.mT / math.sqrt(query.shape[-1])).tolist()
        for row, told in zip(scores, weights, strict=True):
            total = math.fsum(math.exp(s) for s in row)
            np.testing.assert_allclose(told, [math.exp(s) / total for s in row], rtol=1e-13)
        assert (weights > 0).all() and ((weights.sum(-1) - 1).abs() <= 4 * EPS * len(key)).all()


@pytest.mark.receipt("ch04-output", "computed")
def test_average():
    for query, key, value in sizes():
        weights = attention_weights(query, key)
        for t, output in enumerate(attention(query, key, value)):
            by_hand = [math.fsum((weights[t] * value[:, c]).tolist()) for c in range(value.shape[1])]
            np.testing.assert_allclose(output, by_hand, rtol=0, atol=1e-14 * len(key))


@pytest.mark.receipt("ch04-attention", "computed")
def test_attention_is_torchs():
    for query, key, value in sizes():
        theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        assert float((attention(query, key, value) - theirs).abs().max()) < 1e-13


@pytest.mark.receipt("ch04-steps", "computed")
def test_worked_example():
    Q, K, V = (
        torch.tensor(x, dtype=torch.float64) for x in ([[1, 0, 1], [0, 1, 1]], [[1, 1, 0], [1, 0, 1]], [[2, 0, 1], [1, 1, 0]])
    )
    root = sympy.sqrt(3)
    scores = sympy.Matrix([[1, 2], [1, 1]]) / root
    powers = scores.applyfunc(sympy.exp)
    weights = sympy.Matrix(2, 2, lambda i, j: powers[i, j] / (powers[i, 0] + powers[i, 1]))
    exact = (weights * sympy.Matrix([[2, 0, 1], [1, 1, 0]])).evalf(30)
    np.testing.assert_allclose(attention(Q, K, V), np.array(exact.tolist(), dtype=float), rtol=0, atol=4 * EPS)
    assert [round(float(x), 3) for x in weights.row(0).evalf(30)] == [0.360, 0.640]


SIGMA, MU, D = sympy.symbols("sigma mu d_k", positive=True)


def mean_of(polynomial, entries, mean):
    """E of a polynomial in independent entries with this mean and standard deviation σ, none to a power above 2."""
    moments = (1, mean, SIGMA**2 + mean**2)
    terms = sympy.Poly(sympy.expand(polynomial), *entries).terms()
    return sympy.expand(sum(factor * sympy.prod([moments[power] for power in powers]) for powers, factor in terms))


def variance_of_score(d_k, mean):
    """Var(q·k) = E[(q·k)²] − E[q·k]², with the square of the whole sum multiplied out."""
    q, k = sympy.symbols(f"q0:{d_k}"), sympy.symbols(f"k0:{d_k}")
    score = sum(a * b for a, b in zip(q, k, strict=True))
    return sympy.expand(mean_of(score**2, q + k, mean) - mean_of(score, q + k, mean) ** 2)


def variance_of_any_score(mean):
    """For a symbol d_k: d_k variances of a product and d_k (d_k − 1) covariances of two, each multiplied out."""
    q1, k1, q2, k2 = entries = sympy.symbols("q1 k1 q2 k2")
    alone = mean_of((q1 * k1) ** 2, entries, mean) - mean_of(q1 * k1, entries, mean) ** 2
    pair = mean_of(q1 * k1 * q2 * k2, entries, mean) - mean_of(q1 * k1, entries, mean) * mean_of(q2 * k2, entries, mean)
    return D * alone + D * (D - 1) * pair


@pytest.mark.receipt("ch04-variance", "derived")
def test_variance():
    assert sympy.expand(variance_of_any_score(0) - D * SIGMA**4) == 0
    for d_k in range(1, 6):
        assert variance_of_score(d_k, 0) == d_k * SIGMA**4


@pytest.mark.receipt("ch04-variance", "computed")
def test_variance_by_enumeration():
    # Every sign pattern of entries ±1 is equally likely: mean 0, variance 1. The exact variance is d_k.
    for d_k in range(1, 6):
        signs = np.array(np.meshgrid(*[[-1, 1]] * (2 * d_k))).reshape(2 * d_k, -1)
        scores = (signs[:d_k] * signs[d_k:]).sum(axis=0)
        assert scores.var() == d_k


@pytest.mark.receipt("ch04-scale", "derived")
def test_scale():
    variance = sympy.expand(variance_of_any_score(0) / D)  # Var(x/√d_k) = Var(x)/d_k
    assert variance == SIGMA**4
    for d_k in range(1, 6):
        assert sympy.expand(variance_of_score(d_k, 0) / d_k) == SIGMA**4


@pytest.mark.receipt("ch04-scale", "computed")
def test_scale_measured():
    for d_k in (4, 64, 4096):  # 4000 pairs: the sd of the measured sd is below 1.7 %
        spread = std_of_scores(d_k, True, generator=torch.Generator().manual_seed(d_k))
        assert spread == pytest.approx(1, rel=0.05)


@pytest.mark.receipt("ch04-variance-means", "derived")
def test_variance_with_means():
    assert sympy.expand(variance_of_any_score(MU) - D * (SIGMA**4 + 2 * MU**2 * SIGMA**2)) == 0
    for d_k in range(1, 5):
        assert sympy.expand(variance_of_score(d_k, MU) - d_k * (SIGMA**4 + 2 * MU**2 * SIGMA**2)) == 0


@pytest.mark.receipt("ch04-variance-means", "computed")
def test_variance_with_means_by_enumeration():
    for mean, std, d_k in [(1.0, 1.0, 2), (-0.5, 1.3, 3), (2.0, 0.7, 4)]:
        signs = np.array(np.meshgrid(*[[-1, 1]] * (2 * d_k))).reshape(2 * d_k, -1)
        entries = mean + std * signs
        scores = (entries[:d_k] * entries[d_k:]).sum(axis=0)
        assert scores.var() == pytest.approx(d_k * (std**4 + 2 * mean**2 * std**2), rel=1e-12)


@pytest.mark.receipt("ch04-hull", "computed")
def test_outputs_stay_in_the_hull():
    for query, key, value in sizes():
        output, slack = attention(10 * query, key, value), 8 * EPS * len(value) * float(value.abs().max())
        assert (output >= value.amin(0) - slack).all() and (output <= value.amax(0) + slack).all()
        for direction in normal(20, value.shape[-1], seed=99):  # the hull lies on one side of each supporting plane
            assert (output @ direction <= (value @ direction).max() + slack * float(direction.abs().sum())).all()


@pytest.mark.receipt("ch04-gap", "derived")
def test_gap():
    c, g, p = sympy.symbols("c g p", positive=True)
    weight = 1 / (1 + sympy.exp(-c * g))
    assert sympy.simplify(weight - sympy.exp(c * g) / (sympy.exp(c * g) + 1)) == 0  # softmax of (cg, 0)
    assert sympy.simplify(weight.subs(c, sympy.log(p / (1 - p)) / g) - p) == 0  # equality at cg = ln(p/(1 − p))
    slope = c * sympy.exp(-c * g) / (1 + sympy.exp(-c * g)) ** 2
    assert sympy.simplify(sympy.diff(weight, g) - slope) == 0 and slope.is_positive  # strictly increasing
    assert sympy.log(sympy.Rational(99, 100) / sympy.Rational(1, 100)).equals(sympy.log(99))
    assert round(float(sympy.log(99) / 10), 2) == 0.46


@pytest.mark.receipt("ch04-entropy", "computed")
def test_entropy_and_its_bounds():
    for query, key, _ in sizes():
        weights = attention_weights(query, key)
        entropy = entropy_of_weights(weights)
        theirs = torch.distributions.Categorical(weights).entropy()
        assert float((entropy - theirs).abs().max()) < 1e-12
        assert (entropy >= 0).all() and (entropy <= math.log(len(key)) + 1e-12).all()
    assert entropy_of_weights(torch.tensor([0.0, 1.0, 0.0])).item() == 0


@pytest.mark.receipt("ch04-entropy-normal", "computed")
def test_entropy_of_normal_scores():
    # The limit n → ∞ at fixed s, at n = 2²⁰: the deviation falls like e^(s²)/n.
    for s in (0.5, 1.0, 1.5):
        scores = s * normal(2**20, seed=7)
        assert float(entropy_of_weights(scores.softmax(0))) == pytest.approx(math.log(2**20) - s**2 / 2, abs=0.02)


@pytest.mark.receipt("ch04-contribution", "computed")
def test_contribution():
    for query, key, value in sizes():
        weights = attention_weights(query, key)
        terms = weights.unsqueeze(-1) * value  # (T, S, d_v)
        assert float((contribution(weights, value) - terms.norm(dim=-1)).abs().max()) < 1e-13
        assert float((terms.sum(1) - attention(query, key, value)).abs().max()) < 1e-13


@pytest.mark.receipt("ch04-do-dv", "derived")
def test_derivative_with_respect_to_a_value():
    S, d_v = 3, 2
    alpha = sympy.symbols(f"alpha0:{S}")
    v = sympy.Matrix(S, d_v, sympy.symbols(f"v0:{S * d_v}"))
    output = sympy.Matrix([alpha]) * v
    for j in range(S):
        assert output.jacobian(v.row(j)) == alpha[j] * sympy.eye(d_v)


@pytest.mark.receipt("ch04-do-dv", "computed")
def test_derivative_by_autograd():
    weights = torch.tensor([0.01, 0.99], dtype=torch.float64)
    value = torch.tensor([[3.0, 4.0], [0.001, 0.0]], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda v: weights @ v, value)  # (d_v, S, d_v)
    torch.testing.assert_close(jacobian[:, 1], 0.99 * torch.eye(2, dtype=torch.float64), rtol=0, atol=EPS)


@pytest.mark.receipt("ch04-gradients", "computed")
def test_gradients_against_autograd():
    for query, key, value in sizes():
        arguments = [x.requires_grad_() for x in (query, key, value)]
        output = attention(*arguments)
        upstream = normal(*output.shape, seed=5)
        theirs = torch.autograd.grad(output, arguments, upstream)
        for mine, other in zip(attention_backward(*arguments, upstream), theirs, strict=True):
            assert float((mine - other).detach().abs().max()) < 1e-12


@pytest.mark.receipt("ch04-mips", "erratum")
def test_attention_is_not_the_search():
    scores, value = torch.tensor([1.0, 1.5, 0.0], dtype=torch.float64), torch.tensor([4.0, 8.0, 0.0], dtype=torch.float64)
    found = value[scores.argmax()]
    assert abs((scores.softmax(0) @ value) - found) > 2  # the claim "exactly" fails
    # The limit: with a gap g the other keys hold less than S·e^(−cg).
    for c in (10, 100, 1000):
        assert abs(((c * scores).softmax(0) @ value) - found) <= 8 * 3 * math.exp(-c * 0.5) + 8 * EPS
    tie = torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert (1e6 * tie).softmax(0).tolist() == [0.5, 0.5]  # without a gap there is no limit at one key


@pytest.mark.receipt("ch04-do-dv-tiny", "erratum")
def test_changing_a_tiny_value_is_not_zeroing_it():
    weights, value = (
        torch.tensor([0.01, 0.99], dtype=torch.float64),
        torch.tensor([[3.0, 4.0], [0.001, 0.0]], dtype=torch.float64),
    )
    output, step = weights @ value, torch.tensor([1.0, 0.0], dtype=torch.float64)
    changed = value.clone()
    changed[1] += step
    assert float((weights @ changed - output).norm()) == pytest.approx(0.99, abs=1e-12)  # "hardly alters" is false
    zeroed = value.clone()
    zeroed[1] = 0
    assert float((weights @ zeroed - output).norm()) < 0.001  # what is true


@pytest.mark.receipt("ch04-rounding", "erratum")
def test_the_rounded_row():
    weights = attention_weights(
        torch.tensor([[1.0, 0, 1]], dtype=torch.float64), torch.tensor([[1.0, 1, 0], [1, 0, 1]], dtype=torch.float64)
    )
    told = [round(x, 3) for x in weights[0].tolist()]
    assert told == [0.36, 0.64] and told != [0.359, 0.641]


# ---------------------------------------------------------------- relatives


@pytest.mark.receipt("ch04-kernel", "derived")
def test_attention_is_a_kernel_average_for_keys_of_one_length():
    """The two exponents differ by (‖q‖² + ‖k‖²)/(2√d_k), the same for all keys of one length: it cancels."""
    for d_k in (1, 2, 5):
        q, k = sympy.Matrix(sympy.symbols(f"q0:{d_k}")), sympy.Matrix(sympy.symbols(f"k0:{d_k}"))
        gap = q.dot(k) / sympy.sqrt(d_k) + (q - k).dot(q - k) / (2 * sympy.sqrt(d_k))
        assert sympy.expand(gap - (q.dot(q) + k.dot(k)) / (2 * sympy.sqrt(d_k))) == 0
    for query, key, value in sizes():
        bell = np.exp(-np.square(query[:, None].numpy() - key.numpy()).sum(-1) / (2 * math.sqrt(key.shape[1])))
        long = np.linalg.norm(key.numpy(), axis=1)
        found = attention(query, key, value)
        if len(key) > 1:  # with their own lengths the two are not equal
            assert np.abs(found.numpy() - bell @ value.numpy() / bell.sum(1, keepdims=True)).max() > 1e-3
        same = torch.from_numpy(1.5 * key.numpy() / long[:, None])
        bell = np.exp(-np.square(query[:, None].numpy() - same.numpy()).sum(-1) / (2 * math.sqrt(key.shape[1])))
        smooth = bell @ value.numpy() / bell.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(attention(query, same, value), smooth, rtol=0, atol=1e-12)


@pytest.mark.receipt("ch04-cap", "derived")
def test_a_soft_cap_is_a_lid_that_keeps_the_order():
    s, cap = sympy.symbols("s s_cap", positive=True)  # tanh is odd, so the negative side is the mirror image
    capped = cap * sympy.tanh(s / cap)
    slope = sympy.diff(capped, s)
    assert sympy.simplify(slope - (1 - sympy.tanh(s / cap) ** 2)) == 0 and sympy.limit(slope, s, 0) == 1
    assert sympy.simplify(slope.rewrite(sympy.exp) - 4 / (sympy.exp(s / cap) + sympy.exp(-s / cap)) ** 2) == 0  # above 0
    assert sympy.limit(capped, s, sympy.oo) == cap and capped.subs(s, -s) == -capped


@pytest.mark.receipt("ch04-online", "computed")
def test_the_online_softmax_is_the_softmax():
    """Against sums of exactly rounded exponentials of all scores at once, small and large, rising and falling."""
    for query, key, value in sizes():
        for size in (1.0, 100.0):
            scores = (size * query @ key.mT / math.sqrt(key.shape[1])).tolist()
            for row in (scores[0], sorted(scores[0]), sorted(scores[0], reverse=True)):
                largest, total, mixed = -math.inf, 0.0, torch.zeros_like(value[0])
                for s, v in zip(row, value, strict=True):
                    before, largest = largest, max(largest, s)
                    total = math.exp(before - largest) * total + math.exp(s - largest)
                    mixed = math.exp(before - largest) * mixed + math.exp(s - largest) * v
                powers = [mpmath.exp(mpmath.mpf(s)) for s in row]
                exact = [mpmath.fsum(p * x for p, x in zip(powers, column.tolist(), strict=True)) for column in value.T]
                exact = [float(x / mpmath.fsum(powers)) for x in exact]
                np.testing.assert_allclose(mixed / total, exact, rtol=0, atol=1e-13)
