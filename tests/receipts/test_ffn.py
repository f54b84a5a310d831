"""The evidence behind the formulas of ch06_ffn."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from scipy.stats import t as student
from torch.nn import functional as F

from course import data, ffn


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- the network


@pytest.mark.receipt("ch06-ffn", "computed")
@pytest.mark.receipt("ch06-gelu-ffn", "computed")
def test_the_network_row_by_row_and_number_by_number():
    """Against sums in plain Python, in which no row meets another."""
    x, W1, b1, W2, b2 = normal(4, 3), normal(3, 6, seed=1), normal(6, seed=2), normal(6, 3, seed=3), normal(3, seed=4)
    bends = {torch.relu: lambda z: max(0.0, z), ffn.gelu: lambda z: float(z * mpmath.ncdf(z)), torch.tanh: math.tanh}
    for sigma, bend in bends.items():
        out = ffn.ffn(x, W1, b1, W2, b2, sigma)
        for t in range(4):
            hidden = [bend(math.fsum(float(x[t, i] * W1[i, u]) for i in range(3)) + float(b1[u])) for u in range(6)]
            for o in range(3):
                exact = math.fsum(hidden[u] * float(W2[u, o]) for u in range(6)) + float(b2[o])
                assert abs(float(out[t, o]) - exact) <= 1e-13


@pytest.mark.receipt("ch06-rows", "computed")
def test_shuffled_rows_give_shuffled_results():
    x, W1, W2 = normal(4, 3), normal(3, 12, seed=1), normal(12, 3, seed=2)
    zero = torch.zeros(12, dtype=x.dtype), torch.zeros(3, dtype=x.dtype)
    for sigma, order in itertools.product((torch.relu, ffn.gelu), itertools.permutations(range(4))):
        order = list(order)
        straight = ffn.ffn(x, W1, zero[0], W2, zero[1], sigma)
        assert torch.allclose(ffn.ffn(x[order], W1, zero[0], W2, zero[1], sigma), straight[order], rtol=0, atol=1e-13)
        assert torch.allclose(ffn.ffn(x[:1], W1, zero[0], W2, zero[1], sigma), straight[:1], rtol=0, atol=1e-13)


@pytest.mark.receipt("ch06-rank", "computed")
def test_a_product_has_at_most_the_rank_of_its_narrowest_place():
    """By exact elimination of matrices of whole numbers."""
    rng = np.random.default_rng(0)
    for d, d_ff in itertools.product(range(1, 6), repeat=2):
        first, second = (sp.Matrix(rng.integers(-3, 4, shape).tolist()) for shape in ((d, d_ff), (d_ff, d)))
        assert (first * second).rank() <= min(d, d_ff)
    assert (sp.ones(5, 1) * sp.ones(1, 5)).rank() == 1


@pytest.mark.receipt("ch06-chosen-map", "computed")
def test_with_relu_each_token_has_a_linear_map_of_its_own():
    x, W1, W2 = normal(20, 5), normal(5, 16, seed=1), normal(16, 5, seed=2)
    for row in x:
        D = torch.diag((row @ W1 > 0).double())
        assert torch.allclose(row @ (W1 @ D @ W2), torch.relu(row @ W1) @ W2, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- activation functions


@pytest.mark.receipt("ch06-gelu", "computed")
def test_gelu_and_its_minimum():
    for x in np.linspace(-8, 8, 161):
        exact = mpmath.mpf(x) * mpmath.ncdf(mpmath.mpf(x))
        ours = ffn.gelu(torch.tensor(x, dtype=torch.float64)).item()
        assert abs(ours - exact) <= 1e-13 * abs(exact)
    with mpmath.workdps(30):
        place = mpmath.findroot(lambda x: mpmath.ncdf(x) + x * mpmath.npdf(x), -0.75)
        assert mpmath.nstr(place, 4) == "-0.7518" and mpmath.nstr(place * mpmath.ncdf(place), 5) == "-0.16997"
    x = torch.arange(-400, 401, dtype=torch.float64) / 100
    below = x[x < -0.76]
    assert bool((ffn.gelu(below).diff() < 0).all()) and bool((ffn.gelu(x[x > -0.75]).diff() > 0).all())


@pytest.mark.receipt("ch06-gelu-slope", "derived")
def test_the_slope_of_gelu():
    x = sp.symbols("x", real=True)
    probability = (1 + sp.erf(x / sp.sqrt(2))) / 2
    bell = sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)
    assert sp.simplify(sp.diff(probability, x) - bell) == 0
    assert sp.simplify(sp.diff(x * probability, x) - (probability + x * bell)) == 0


@pytest.mark.receipt("ch06-gelu-mask", "erratum")
def test_the_larger_an_input_the_surer_it_survives():
    x, z = sp.symbols("x z", real=True)
    survives = sp.integrate(sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi), (z, -sp.oo, x)).rewrite(sp.erf)
    assert sp.simplify(x * survives - x * (1 + sp.erf(x / sp.sqrt(2))) / 2) == 0
    assert sp.simplify(sp.diff(survives, x)).is_positive


@pytest.mark.receipt("ch06-silu", "computed")
def test_silu_and_its_minimum():
    with mpmath.workdps(30):
        for x in np.linspace(-20, 20, 81):
            exact = mpmath.mpf(x) / (1 + mpmath.exp(-mpmath.mpf(x)))
            assert abs(ffn.silu(torch.tensor(x, dtype=torch.float64)).item() - exact) <= 1e-14 * max(abs(exact), 1e-9)
        place = mpmath.findroot(lambda x: 1 + x + mpmath.exp(x), -1.28)  # where the slope is 0
        value = place / (1 + mpmath.exp(-place))
        assert mpmath.nstr(place, 5) == "-1.2785" and mpmath.nstr(value, 4) == "-0.2785"
        assert abs(value - (place + 1)) < 1e-25  # the minimum is one above its place


def largest_error(approximation) -> tuple[float, float]:
    """The largest distance from the exact GELU between −10 and 10 and where it is; beyond, both are x or 0 to 1e-6."""
    x = torch.arange(-1_000_000, 1_000_001, dtype=torch.float64) / 100_000
    gap = (approximation(x) - ffn.gelu(x)).abs()
    return gap.max().item(), abs(x[gap.argmax()].item())


@pytest.mark.receipt("ch06-gelu-tanh", "computed")
def test_the_error_of_the_tanh_form():
    worst, place = largest_error(ffn.gelu_tanh)
    assert worst == pytest.approx(4.73e-4, abs=5e-7) and 2.6 < place < 2.8
    x = normal(500) * 3
    assert torch.allclose(ffn.gelu_tanh(x), F.gelu(x, approximate="tanh"), rtol=0, atol=1e-14)


@pytest.mark.receipt("ch06-gelu-sigmoid", "computed")
def test_the_error_of_the_sigmoid_form():
    worst, place = largest_error(ffn.gelu_sigmoid)
    assert worst == pytest.approx(0.0203, abs=5e-5) and 2.2 < place < 2.4


# ---------------------------------------------------------------- the gate and the count


@pytest.mark.receipt("ch06-swiglu", "computed")
def test_the_gated_network_number_by_number():
    x, gate, up, down = normal(3, 4), normal(4, 5, seed=1), normal(4, 5, seed=2), normal(5, 4, seed=3)
    out = ffn.swiglu(x, gate, up, down)
    for t in range(3):
        g, u = ([math.fsum(float(x[t, i] * W[i, k]) for i in range(4)) for k in range(5)] for W in (gate, up))
        for o in range(4):
            exact = math.fsum(g[k] / (1 + math.exp(-g[k])) * u[k] * float(down[k, o]) for k in range(5))
            assert abs(float(out[t, o]) - exact) <= 1e-13
    one, *matrices = (torch.tensor([[number]], dtype=torch.float64) for number in (1.0, 2.0, 3.0, 4.0))
    assert round(ffn.swiglu(one, *matrices).item(), 4) == 21.1391


@pytest.mark.receipt("ch06-count", "computed")
def test_the_count_is_that_of_torchs_layers():
    for d, d_ff in [*itertools.product((1, 3, 16), (2, 5)), (4, 16), (768, 3072), (1024, 4096)]:
        with torch.device("meta"):
            layers = torch.nn.Sequential(torch.nn.Linear(d, d_ff), torch.nn.Linear(d_ff, d))
            plain = torch.nn.Sequential(torch.nn.Linear(d, d_ff, bias=False), torch.nn.Linear(d_ff, d, bias=False))
        count = sum(p.numel() for p in plain.parameters())
        assert ffn.ffn_params(d, d_ff) == count == 2 * d * d_ff
        assert ffn.ffn_params(d, d_ff, bias=True) == sum(p.numel() for p in layers.parameters()) == count + d_ff + d
        assert d_ff != 4 * d or count == 8 * d**2
    assert ffn.ffn_params(1024, 4096) == 8_388_608


@pytest.mark.receipt("ch06-experts", "computed")
def test_a_mixture_of_experts_is_hugging_faces():
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    x = normal(11, 6)
    for k in (1, 2, 8):
        config = MixtralConfig(hidden_size=6, intermediate_size=10, num_local_experts=8, num_experts_per_tok=k)
        theirs = MixtralSparseMoeBlock(config).double().eval()
        with torch.no_grad():
            for seed, parameter in enumerate(theirs.parameters()):
                parameter.copy_(normal(*parameter.shape, seed=seed))
            expected = theirs(x[None])[0]
        weights = zip(theirs.experts.gate_up_proj.detach(), theirs.experts.down_proj.detach(), strict=True)
        networks = [lambda r, g=g, d=d: ffn.swiglu(r, g[:10].T, g[10:].T, d.T) for g, d in weights]
        router = theirs.gate.weight.detach().T
        found = ffn.experts(x, router, networks, k)
        assert float((found - expected).abs().max()) <= 1e-6 * float(expected.abs().max())
        if k == 8:
            p = (x @ router).softmax(dim=-1)
            total = sum(p[:, i, None] * network(x) for i, network in enumerate(networks))
            assert torch.allclose(found, total, rtol=0, atol=1e-12)


@pytest.mark.receipt("ch06-budget", "derived")
def test_the_budget_of_a_gated_network():
    d, width = sp.symbols("d width", positive=True)
    (solution,) = sp.solve(sp.Eq(3 * d * width, 2 * d * 4 * d), width)
    assert sp.simplify(solution - sp.Rational(8, 3) * d) == 0
    assert ffn.ffn_params(48, 128, gated=True) == ffn.ffn_params(48, 192)


@pytest.mark.receipt("ch06-race", "measured")
def test_what_the_bend_does_in_a_small_model():
    """Each difference, taken seed by seed, over the half width of its 95% interval: beyond ±1 it is more than noise."""
    record = data.record("ffn")
    rows = {row["kind"]: row for row in record["results"]}
    assert record["mode"] == "full" and len(record["seeds"]) == 6
    assert len({row["parameters"] for row in rows.values()}) == 1
    nine = student.ppf(1 - 0.025 / 9, 5) / student.ppf(0.975, 5)

    def apart(first, second):
        mean, half = data.interval(np.subtract(rows[first]["losses"], rows[second]["losses"]))
        return mean / half

    bends = ("ReLU", "GELU", "SiLU", "SwiGLU")
    for bend in bends:
        assert apart(f"{bend}, larger start", "no bend, larger start") < -nine
    for first, second in itertools.combinations(bends, 2):
        assert abs(apart(f"{first}, larger start", f"{second}, larger start")) < 1
    larger = {kind: apart(f"{kind}, larger start", kind) for kind in ("no bend", *bends)}
    assert larger["GELU"] < -1 and larger["SiLU"] < -1 and larger["SwiGLU"] > 1
    assert abs(larger["ReLU"]) < 1 and abs(larger["no bend"]) < 1 and max(map(abs, larger.values())) < nine


@pytest.mark.receipt("ch06-silent", "measured")
def test_how_many_units_are_silent():
    rows = {row["kind"]: row for row in data.record("ffn")["results"]}
    assert all(0.48 < share < 0.53 for share in rows["ReLU"]["zero, fresh"])
    assert all(share > 0.7 for share in rows["ReLU"]["zero, trained"])
    means = [float(np.mean(rows["ReLU"][f"zero, {when}"])) for when in ("fresh", "trained")]
    assert [round(mean, 2) for mean in means] == [0.5, 0.74]
    for kind in ("no bend", "GELU", "SiLU", "SwiGLU"):
        assert max(rows[kind]["zero, trained"]) < 1e-3


# ---------------------------------------------------------------- memory


@pytest.mark.receipt("ch06-memory", "computed")
def test_the_network_is_a_sum_over_its_units():
    x, W1, W2 = normal(7, 5), normal(5, 20, seed=1), normal(20, 5, seed=2)
    for sigma in (torch.relu, ffn.gelu):
        total = sum(torch.outer(sigma((x * W1[:, i]).sum(dim=1)), W2[i]) for i in range(20))
        assert torch.allclose(total, sigma(x @ W1) @ W2, rtol=0, atol=1e-12)


@pytest.mark.receipt("ch06-interference", "erratum")
def test_the_edit_meets_its_target_and_moves_the_others():
    """Identities in all entries, for every u; and a pair of rows at no right angle, of which the second must move."""
    for d_ff, d_out in ((2, 1), (3, 2)):
        W2, h, u, other, target = (
            sp.Matrix(*shape, lambda i, j, name=name: sp.Symbol(f"{name}{i}{j}"))
            for name, shape in (("w", (d_ff, d_out)), ("h", (1, d_ff)), ("u", (1, d_ff)), ("o", (1, d_ff)), ("t", (1, d_out)))
        )
        edited = W2 + u.T * (target - h * W2) / (h * u.T)[0]
        assert (h * edited - target).applyfunc(sp.simplify) == sp.zeros(1, d_out)
        share = (other * u.T)[0] / (h * u.T)[0]
        assert (other * edited - other * W2 - share * (target - h * W2)).applyfunc(sp.simplify) == sp.zeros(1, d_out)
    h, other = torch.relu(normal(2, 40))
    W2 = normal(40, 3, seed=1)
    edited = ffn.edit_rank1(W2, h, normal(3, seed=2))
    assert float((other @ edited - other @ W2).norm()) > 0.1


@pytest.mark.receipt("ch06-arc-cosine", "computed")
def test_the_cosine_of_two_relu_hidden_rows():
    """Against the mean over a million random keys, to five standard errors; and 1/π at a right angle."""
    keys = normal(1_000_000, 2)
    for cosine in (-0.7, 0.0, 0.3, 0.9):
        first, second = torch.relu(keys[:, 0]), torch.relu(cosine * keys[:, 0] + math.sqrt(1 - cosine**2) * keys[:, 1])
        products = first * second / 0.5  # 1/2 is the mean of the square of each
        error = products.std().item() / 1000
        assert abs(products.mean().item() - ffn.relu_cosine(cosine)) < 5 * error
    assert ffn.relu_cosine(0.0) == pytest.approx(1 / math.pi, abs=1e-15)
    assert ffn.relu_cosine(1.0) == 1.0


@pytest.mark.receipt("ch06-right-angle", "computed")
def test_the_cosine_of_two_hidden_rows_at_a_right_angle():
    """Two pre-activations of a unit are independent there: integrals over the bell curve, and a million random keys."""
    bends = {
        "ReLU": (0.318, lambda z: max(z, mpmath.mpf(0))),
        "GELU": (0.187, lambda z: z * mpmath.ncdf(z)),
        "SiLU": (0.120, lambda z: z / (1 + mpmath.exp(-z))),
    }
    first, second = normal(2, 1_000_000)
    for name, (told, bend) in bends.items():
        with mpmath.workdps(30):
            mean, square = (mpmath.quad(lambda z, n=n, b=bend: b(z) ** n * mpmath.npdf(z), [-20, 0, 20]) for n in (1, 2))
            cosine = float(mean**2 / square)
        assert round(cosine, 3) == told
        sigma = ffn.ACTIVATIONS[name]
        products = sigma(first) * sigma(second) / float(square)
        assert abs(products.mean().item() - cosine) < 5 * products.std().item() / 1000
        assert name != "ReLU" or abs(cosine - 1 / math.pi) <= 1e-15
