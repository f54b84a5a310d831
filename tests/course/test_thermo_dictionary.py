"""The reference code of chapter 22 against mpmath, brute force, autograd and the widget's JavaScript."""

import json
import math
import shutil
import subprocess

import mpmath
import numpy as np
import pytest
import torch
import traitlets

from course import thermo_dictionary as thermo
from course import widgets
from course.attention_maps import FIRST
from course.phase_polylog import cumulants, power_law
from course.widgets.thermo_dictionary import SIZES, Levels


def by_hand(gamma: float, N: int) -> dict[str, float]:
    """Z, mean, variance and entropy in 40 digits."""
    with mpmath.workdps(40):
        x = [mpmath.log(r) for r in range(1, N + 1)]
        w = [mpmath.exp(-gamma * each) for each in x]
        Z = mpmath.fsum(w)
        p = [each / Z for each in w]
        mean = mpmath.fsum(a * b for a, b in zip(p, x, strict=True))
        variance = mpmath.fsum(a * (b - mean) ** 2 for a, b in zip(p, x, strict=True))
        entropy = -mpmath.fsum(a * mpmath.log(a) for a in p)
        free = -mpmath.log(Z) / gamma if gamma else -mpmath.inf
        return {"fisher": float(variance), "heat": float(gamma**2 * variance), "entropy": float(entropy), "free": float(free)}


@pytest.mark.parametrize("gamma", [-2.0, 0.0, 0.7, 1.0, 1.3, 6.0])
@pytest.mark.parametrize("N", [2, 17, 400])
def test_the_dictionary_is_mpmaths(gamma, N):
    expected = by_hand(gamma, N)
    assert float(thermo.fisher(gamma, N)) == pytest.approx(expected["fisher"], rel=1e-11)
    assert float(thermo.heat_capacity(gamma, N)) == pytest.approx(expected["heat"], rel=1e-11, abs=1e-14)
    assert float(thermo.entropy(gamma, N)) == pytest.approx(expected["entropy"], rel=1e-11)
    if gamma:
        assert float(thermo.free_energy(gamma, N)) == pytest.approx(expected["free"], rel=1e-11)


def test_a_tensor_of_exponents_leads_the_shape():
    gamma = torch.tensor([[0.5, 1.0, 2.0]], dtype=torch.float64)
    for f in (thermo.fisher, thermo.heat_capacity, thermo.entropy, thermo.free_energy):
        found = f(gamma, 50)
        assert found.shape == (1, 3)
        assert found[0, 1] == pytest.approx(float(f(1.0, 50)), rel=1e-12)


def test_pairs_are_a_double_loop():
    p, energy = power_law(torch.tensor([0.4, 1.2]), 9), torch.arange(9, dtype=torch.float64) ** 1.5
    expected = [sum(float(q[i] * q[j] * (energy[i] - energy[j]) ** 2) for j in range(9) for i in range(j)) for q in p]
    assert thermo.spread_by_pairs(p, energy).tolist() == pytest.approx(expected, rel=1e-12)


def test_a_blend_of_power_laws_spreads_more_than_the_law_with_its_mean():
    generator = np.random.default_rng(0)
    for _ in range(50):
        N = int(generator.integers(3, 400))
        exponents, shares = torch.tensor(generator.uniform(-1, 3, 4)), torch.tensor(generator.dirichlet(np.ones(4)))
        blend, x = shares @ power_law(exponents, N), torch.arange(1, N + 1).double().log()  # (N,)
        mean = blend @ x
        gamma = thermo.fit_exponent(mean, N)
        quotient = blend / power_law(gamma, N)
        above = (quotient > 1).tolist()
        assert float(blend @ (x - mean) ** 2) > float(thermo.fisher(gamma, N))
        assert above[0] and above[-1] and sum(a != b for a, b in zip(above, above[1:])) == 2  # noqa: B905, RUF007


@pytest.mark.parametrize("N", [2, 10, 1000, 10**6])
def test_the_heat_capacity_is_largest_at_its_peak(N):
    at, most = thermo.heat_peak(N)
    grid = torch.linspace(0, 6, 1201, dtype=torch.float64)
    values = thermo.heat_capacity(grid, N)
    assert abs(float(grid[values.argmax()]) - at) <= 0.005 and most >= float(values.max()) - 1e-9
    assert at > 1


def test_one_distance_has_no_peak():
    with pytest.raises(ValueError, match="2 or more"):
        thermo.heat_peak(1)


def test_constants_are_mpmaths():
    assert pytest.approx(float(mpmath.euler), rel=1e-15) == thermo.EULER
    assert pytest.approx(float(mpmath.stieltjes(1)), rel=1e-13) == thermo.STIELTJES


@pytest.mark.parametrize("gamma", [-3.0, 0.2, 1.0, 2.5])
def test_an_exponent_comes_back_from_its_mean(gamma):
    mean = cumulants(torch.tensor([gamma, 0.5]), 300, 1)[..., 0]
    assert thermo.fit_exponent(mean, 300).tolist() == pytest.approx([gamma, 0.5], abs=1e-8)


def test_a_mean_at_an_end_has_no_exponent():
    for mean in (0.0, math.log(50), -1.0, 9.0):
        with pytest.raises(ValueError, match="between 0 and ln 50"):
            thermo.fit_exponent(torch.tensor(mean), 50)


def test_response_is_autograds():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(3, 4, 12, generator=generator, dtype=torch.float64)
    f = torch.randn(12, generator=generator, dtype=torch.float64)
    b = torch.ones(3, 4, 1, dtype=torch.float64, requires_grad=True)
    ((b * scores).softmax(-1) @ f).sum().backward()
    assert torch.allclose(thermo.response(scores, f), b.grad[..., 0], rtol=1e-10, atol=1e-13)


def test_a_key_without_weight_changes_no_response():
    scores, f = torch.tensor([0.3, -1.0, -math.inf]), torch.tensor([1.0, 2.0, 50.0]).double()
    assert float(thermo.response(scores, f)) == pytest.approx(float(thermo.response(scores[:2], f[:2])), rel=1e-12)


def causal(T, seed=0):
    scores = torch.randn(2, T, T, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return scores.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf).softmax(-1)


def test_windows_are_the_keys_before_each_query():
    weights, N = causal(20), 7
    found = thermo.windows(weights, N)
    assert found.shape == (2, 20 - N - FIRST, N)
    for k, i in enumerate(range(N + FIRST, 20)):
        assert found[:, k].tolist() == [[float(weights[h, i, i - r]) for r in range(1, N + 1)] for h in range(2)]
    for wrong in (0, 16, 30):
        with pytest.raises(ValueError, match="windows of 1 to 15"):
            thermo.windows(weights, wrong)


def test_what_is_said_of_heads_is_brute_force():
    weights, N = causal(24), 9
    found = thermo.head_response(weights, N)
    x = np.log(np.arange(1, N + 1))
    for h in range(2):
        rows = [weights[h, i, i - N : i].flip(0).numpy() for i in range(N + FIRST, 24)]
        rows = [row / row.sum() for row in rows]
        blend = np.mean(rows, axis=0)
        mean = blend @ x
        assert float(found["profile"][h]) == pytest.approx(blend @ (x - mean) ** 2, rel=1e-10)
        assert float(found["within"][h]) == pytest.approx(np.mean([row @ (x - row @ x) ** 2 for row in rows]), rel=1e-10)
        h_step = 1e-5
        moved = [
            (row ** (1 + h_step) / (row ** (1 + h_step)).sum() - row ** (1 - h_step) / (row ** (1 - h_step)).sum()) @ x
            for row in rows
        ]
        assert float(found["response"][h]) == pytest.approx(np.mean(moved) / (2 * h_step), rel=1e-6)
        gamma = float(found["exponent"][h])
        law = np.exp(-gamma * x) / np.exp(-gamma * x).sum()
        assert law @ x == pytest.approx(mean, abs=1e-9)
        entropy_of = lambda q: -float((q * np.log(q)).sum())  # noqa: E731
        assert float(found["law entropy"][h]) == pytest.approx(entropy_of(law), rel=1e-9)
        assert float(found["profile entropy"][h]) == pytest.approx(entropy_of(blend), rel=1e-9)
        assert float(found["entropy"][h]) == pytest.approx(np.mean([entropy_of(row) for row in rows]), rel=1e-9)
        assert float(found["predicted"][h]) == pytest.approx(-gamma * (law @ (x - mean) ** 2), rel=1e-8)


def test_of_a_planted_power_law_the_prediction_is_the_response():
    N, T = 30, 50
    i, j = torch.arange(T)[:, None], torch.arange(T)
    scores = torch.where(j < i, -1.3 * (i - j).clamp_min(1).double().log(), torch.where(j == i, 0.0, -math.inf))
    found = thermo.head_response(scores.softmax(-1), N)
    assert float(found["exponent"]) == pytest.approx(1.3, abs=1e-8)
    assert float(found["predicted"]) == pytest.approx(float(found["response"]), rel=1e-8)


# ---------------------------------------------------------------- the widget

CASES = [(gamma, N) for gamma in (0.0, 1.0, 1.35, 4.0) for N in SIZES]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the widget's arithmetic")
def test_the_widget_computes_what_the_reference_computes():
    source = (widgets.HERE / "thermo_dictionary.js").read_text().split("export default")[0]
    script = (widgets.HERE / "library.js").read_text() + source
    script += f"\nconsole.log(JSON.stringify({json.dumps(CASES)}.map(([g, N]) => [values(g, N), said({{ gamma: g, N }})])));"
    told = json.loads(subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True).stdout)
    for (gamma, N), (found, said) in zip(CASES, told, strict=True):
        widget = Levels(gamma=gamma, N=N)
        assert found == pytest.approx(widget.values(), abs=1e-6)
        assert said == widget.describe()


def test_the_widget_refuses_what_it_cannot_show():
    assert "largest at γ = 1.30" in Levels().describe()
    for case in ({"gamma": -0.1}, {"gamma": 4.5}, {"N": 50}):
        with pytest.raises(traitlets.TraitError):
            Levels(**case)
