"""The reference code of ch21 against independent oracles."""

import json
import math
import shutil
import subprocess

import mpmath
import numpy as np
import pytest
import torch
import traitlets

from course import phase_polylog as pp
from course import widgets
from course.gamma_atlas import atlas_table
from course.widgets.phase_polylog import Octaves

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node runs the widget's module")


def plain(gamma, N, cut=0.0):
    """Distances, logarithms and probabilities by numpy, one by one."""
    r = np.arange(1, N + 1, dtype=np.float64)
    w = r**-gamma * np.exp(-cut * r)
    return np.log(r), w / w.sum(), math.log(math.fsum(w))


@pytest.mark.parametrize("N", [1, 2, 16, 17, 33, 1000, 10**6 + 7, 10**12, 10**30])
@pytest.mark.parametrize("gamma", [-2.0, 0.0, 0.5, 1.0, 1.3, 4.0])
def test_partition_function_is_a_difference_of_zetas(N, gamma):
    with mpmath.workdps(60):
        exact = mpmath.harmonic(N) if gamma == 1 else mpmath.zeta(gamma) - mpmath.zeta(gamma, N + 1)
        assert float(pp.log_partition(gamma, N)) == pytest.approx(float(mpmath.log(exact)), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("gamma, N, cut", [(1.0, 1, 0.0), (0.7, 40, 0.0), (1.3, 5000, 0.0), (0.9, 3000, 0.01), (-1.0, 700, 0.1)])
def test_few_points_give_what_all_distances_give(gamma, N, cut):
    log_r, p, log_z = plain(gamma, N, cut)
    assert float(pp.log_partition(gamma, N, cut)) == pytest.approx(log_z, abs=1e-12)
    assert np.allclose(pp.power_law(gamma, N, cut).numpy(), p, rtol=1e-12, atol=0)
    assert np.allclose(pp.moments(gamma, N, 3, cut), [p @ log_r, p @ log_r**2, p @ log_r**3], rtol=1e-12)
    mean = p @ log_r
    second, third, fourth = (p @ (log_r - mean) ** k for k in (2, 3, 4))
    exact = [mean, second, third, fourth - 3 * second**2]
    assert np.allclose(pp.cumulants(gamma, N, 4, cut), exact, rtol=1e-10, atol=1e-12)
    assert pp.cumulants(gamma, N, 1, cut).shape == (1,)


@pytest.mark.parametrize("gamma", [-20_000.0, -1000.0, -300.0, -60.0, -17.0, 300.0])
def test_steep_weights_are_summed_as_well(gamma):
    """Sixteen points for an octave were too few: the variance was 19% off at −300."""
    N = 2000
    with mpmath.workdps(30):
        x = [mpmath.log(r) for r in range(1, N + 1)]
        heaviest = x[-1] if gamma < 0 else x[0]
        w = [mpmath.exp(-gamma * (each - heaviest)) for each in x]
        Z = mpmath.fsum(w)
        mean = mpmath.fsum(a * b for a, b in zip(w, x, strict=True)) / Z
        variance, third = (mpmath.fsum(a * (b - mean) ** k for a, b in zip(w, x, strict=True)) / Z for k in (2, 3))
        log_z = mpmath.log(Z) - gamma * heaviest
    assert float(pp.log_partition(gamma, N)) == pytest.approx(float(log_z), rel=1e-13, abs=1e-13)
    found = pp.cumulants(torch.tensor([gamma, 1.0], dtype=torch.float64), N, 3)
    assert found[0].tolist() == pytest.approx([float(mean), float(variance), float(third)], rel=1e-9, abs=1e-150)
    assert torch.allclose(found[1], pp.cumulants(1.0, N, 3), rtol=1e-12)
    p = pp.power_law(gamma, 2**11 - 1)
    assert torch.allclose(
        pp.octave_shares(gamma, 11), torch.stack([p[2**k - 1 : 2 ** (k + 1) - 1].sum() for k in range(11)]), atol=1e-13
    )


def test_cumulants_are_derivatives():
    gamma = torch.tensor([0.4, 1.0, 1.7], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(pp.log_partition(gamma, 300).sum(), gamma, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), gamma, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), gamma)
    found = pp.cumulants(gamma.detach(), 300, 3)
    assert torch.allclose(found, torch.stack([-first, second, -third], dim=-1).detach(), atol=1e-10)


def test_shapes_follow_gamma():
    gamma = torch.rand(2, 3)
    assert pp.log_partition(gamma, 50).shape == (2, 3) and pp.power_law(gamma, 50).shape == (2, 3, 50)
    assert pp.cumulants(gamma, 50, 3).shape == (2, 3, 3) and pp.octave_shares(gamma, 5).shape == (2, 3, 5)
    assert pp.polylog(gamma, 0.3).shape == (2, 3) and pp.scaled_variance(gamma).shape == (2, 3)


@pytest.mark.parametrize("gamma", [-1.5, 0.0, 0.5, 1.0, 1.01, 2.0, 3.5])
def test_polylog_is_mpmaths(gamma):
    for z in (1e-9, 0.2, 0.99, 1 - 1e-9):
        assert float(pp.polylog(gamma, z)) == pytest.approx(float(mpmath.polylog(gamma, mpmath.mpf(z)).real), rel=1e-11)
    end = float(mpmath.zeta(gamma)) if gamma > 1 else math.inf
    assert float(pp.polylog(gamma, 1.0)) == pytest.approx(end, rel=1e-12) and float(pp.polylog(gamma, 0.0)) == 0


def test_octaves_share_the_weight():
    _, p, _ = plain(1.2, 2**9 - 1)
    assert np.allclose(pp.octave_shares(1.2, 9), [p[2**k - 1 : 2 ** (k + 1) - 1].sum() for k in range(9)])
    even = pp.octave_shares(1.0, 40)
    assert float(even[0] / even[-1]) == pytest.approx(1 / math.log(2), rel=1e-9)  # the first is a distance, the last an area


def test_measured_profiles_are_compared_with_their_law():
    law = torch.arange(301, dtype=torch.float64).clamp_min(1) ** -0.8
    found = pp.log_spread(torch.stack([law, law * 3]), 4, 256)
    assert torch.allclose(found["exponent"], torch.tensor(0.8, dtype=torch.float64), atol=1e-6)
    assert torch.allclose(found["ratio"], torch.ones(2, dtype=torch.float64), atol=1e-6)
    profile = torch.tensor(atlas_table()[0]["profile"])
    p = (profile[4:257] / profile[4:257].sum()).double()
    x = torch.arange(4, 257).double().log()
    assert float(pp.profile_cumulants(profile, 4, 256)[1]) == pytest.approx(float(p @ x**2 - (p @ x) ** 2), rel=1e-5)


def test_bad_input_is_told():
    for call in (
        lambda: pp.log_partition(1.0, 0),
        lambda: pp.points(2.5),
        lambda: pp.power_law(1.0, 0),
        lambda: pp.peak(1),
        lambda: pp.polylog(1.0, 1.1),
        lambda: pp.octave_shares(1.0, 0),
        lambda: pp.profile_cumulants(torch.ones(10), 4, 10),
    ):
        with pytest.raises(ValueError):
            call()


# ---------------------------------------------------------------- the figure to play with


def test_the_widget_says_what_it_shows():
    octaves = Octaves(gamma=1.0, octaves=40)
    assert octaves.near() == pytest.approx(0.51, abs=0.005) and sum(octaves.shares()) == pytest.approx(1)
    assert octaves.describe() == (
        "γ = 1.00, 40 octaves of distances (ln N = 27.7): the near half has 51.0% of the weight (u = 0.0). Neither half has nine tenths."
    )
    assert Octaves(gamma=0.5, octaves=30).describe().endswith("(u = −10.4). The far half has nine tenths.")
    for wrong in ({"gamma": -0.1}, {"gamma": 2.1}, {"octaves": 1}, {"octaves": 61}):
        with pytest.raises(traitlets.TraitError):
            Octaves(**wrong)


@needs_node
def test_the_page_adds_up_the_same_octaves(tmp_path):
    own = (widgets.HERE / "phase_polylog.js").read_text().partition("export default")[0]
    states = [{"gamma": g, "octaves": n} for g in (0.0, 0.73, 1.0, 1.1, 2.0) for n in (2, 13, 60)]
    script = f"{(widgets.HERE / 'library.js').read_text()}\n{own}\nconst states = {json.dumps(states)};\n"
    script += "console.log(JSON.stringify(states.map((s) => [shares(s), near(s), said(s), exponent(1.3, s.octaves)])));"
    (tmp_path / "script.mjs").write_text(script)
    run = subprocess.run(["node", tmp_path / "script.mjs"], capture_output=True, text=True, check=True)
    for state, (shares, near, said, gamma) in zip(states, json.loads(run.stdout), strict=True):
        widget = Octaves(**state)
        assert np.allclose(shares, widget.shares(), rtol=1e-7) and near == pytest.approx(widget.near(), abs=1e-7)
        assert said == widget.describe()
        last = state["octaves"] * float(pp.octave_shares(gamma, state["octaves"])[-1])
        assert last == pytest.approx(1.3, rel=0.01 * state["octaves"])
