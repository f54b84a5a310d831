"""The reference code of ch23 against numpy, brute force, counting, and the widget's JavaScript."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch
import traitlets

from course import fractional, widgets
from course.widgets.fractional import Flights


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def stack(*shape, seed=0):
    A = torch.rand(*shape, generator=generator(seed), dtype=torch.float64).pow(4).tril() + 1e-3 * torch.eye(shape[-1]).double()
    return A / A.sum(dim=-1, keepdim=True)


# ---------------------------------------------------------------- jumps


@pytest.mark.parametrize("gamma, N", [(0.6, 50), (1.0, 50), (1.3, math.inf), (2.5, 100), (4.0, math.inf)])
def test_jumps_have_their_distribution(gamma, N):
    r = np.sort(fractional.jumps(gamma, (20_000,), generator(), N).numpy())
    assert r[0] >= 1 and r[-1] <= N
    end = N if math.inf > N else 1e12
    whole = math.log(end) if gamma == 1 else (end ** (1 - gamma) - 1) / (1 - gamma)
    for at in (1.5, 3.0, 10.0, 40.0):
        share = (math.log(at) if gamma == 1 else (at ** (1 - gamma) - 1) / (1 - gamma)) / whole
        assert abs(np.searchsorted(r, at) / len(r) - share) < 0.015
    for wrong in ((0.9, math.inf), (2.0, 1.0), (1.0, math.inf)):
        with pytest.raises(ValueError, match="no distribution"):
            fractional.jumps(wrong[0], (3,), generator(), wrong[1])


def test_walks_are_sums_of_jumps_to_both_sides():
    places = fractional.levy_walk(2.0, 500, 300, generator())
    steps = places.diff(dim=1)
    assert places.shape == (300, 500) and steps.abs().min() >= 1
    assert abs(float((steps > 0).double().mean()) - 0.5) < 0.01
    assert abs(float(torch.corrcoef(torch.stack([steps[:, 1:].flatten().sign(), steps[:, :-1].flatten().sign()]))[0, 1])) < 0.02


def test_growth_is_numpys_slope():
    places, at = fractional.levy_walk(2.2, 64, 51, generator(1)), [1, 4, 16, 64]
    y = np.log(np.median(np.abs(places.numpy()), axis=0)[np.array(at) - 1])
    assert fractional.growth(places, at) == pytest.approx(np.polyfit(np.log(at), y, 1)[0])
    assert fractional.crossover(1.5, 4_096) == 64
    with pytest.raises(ValueError, match="no Lévy index"):
        fractional.crossover(0.9, 100)


# ---------------------------------------------------------------- layers


def test_contraction_by_all_pairs():
    P = stack(2, 7, 7)
    found = fractional.contraction(P)
    for one, value in zip(P, found, strict=True):
        assert float(value) == pytest.approx(max(float((a - b).abs().sum()) / 2 for a in one for b in one))
    assert float(fractional.contraction(P[0] @ P[1])) <= float(found[0] * found[1]) + 1e-12
    f = torch.randn(7, generator=generator(), dtype=torch.float64)
    assert float((P[0] @ f).max() - (P[0] @ f).min()) <= float(found[0] * (f.max() - f.min()))


def test_rollouts_and_their_spread_by_loops():
    A, share = stack(3, 4, 9, 9), 0.3
    walks = fractional.rollout(A, share)
    eye = torch.eye(9, dtype=torch.float64)
    for w in range(3):
        now = eye
        for n, layer in enumerate(reversed(range(4))):
            now = now @ (share * A[w, layer] + (1 - share) * eye)
            assert torch.allclose(walks[w, n], now)
    for n in range(4):
        back = [(i - j, float(walks[0, n, i, j]) / 4) for i in range(5, 9) for j in range(9)]
        mean = sum(r * m for r, m in back)
        assert float(fractional.spread(walks[0, n], 5)) == pytest.approx(math.sqrt(sum((r - mean) ** 2 * m for r, m in back)))
    m = walks[0, 3, 5:].mean(dim=0)
    assert float(fractional.reached(walks[0, 3], 5)) == pytest.approx(1 / float((m * m).sum()))
    assert float(fractional.reached(eye, 5)) == pytest.approx(4)


def test_the_law_of_distance_is_found_again():
    law = torch.tensor([3.0, 1, 2, 0.5, 0.1, 1, 1, 0.4], dtype=torch.float64)
    matrix = fractional.walk_matrix(law)
    assert torch.allclose(matrix.sum(dim=-1), torch.ones(8, dtype=torch.float64)) and matrix.triu(1).abs().max() == 0
    assert torch.allclose(fractional.distance_law(matrix), law / law.sum(), atol=1e-6)
    A = stack(6, 6)
    fitted = fractional.walk_matrix(fractional.distance_law(A))
    for r in range(6):  # the likeliest law keeps the weight at each distance
        assert float(fitted.diagonal(-r).sum()) == pytest.approx(float(A.diagonal(-r).sum()), abs=1e-6)


def test_independent_jumps_pass_the_test_and_dependent_ones_do_not():
    law = torch.stack([torch.arange(1, 61, dtype=torch.float64) ** -g for g in (1.1, 1.4, 1.2, 1.3)])
    maps = fractional.walk_matrix(law).expand(5, 4, 60, 60)
    found = fractional.depth_test(maps, first=0)
    assert all(mean == pytest.approx(1, abs=1e-6) and half < 1e-6 for mean, half in fractional.ratios(found))
    assert found["open"][-1] > found["null"][-1] and len(found["wall"]) == 4
    many = maps[:1].expand(12, 4, 60, 60)
    same = fractional.depth_test(fractional.planted(many, 0.5, 1.0, generator()), first=0)
    anew = fractional.depth_test(fractional.planted(many, 0.5, 1.0, generator(), anew=True), first=0)
    assert fractional.ratios(same)[-1][0] > fractional.ratios(anew)[-1][0] + 0.005
    first = fractional.without_first(stack(2, 9, 9), 3)
    assert first.shape == (2, 6, 6) and torch.allclose(first.sum(dim=-1), torch.ones(2, 6, dtype=torch.float64))


# ---------------------------------------------------------------- the widget

STATES = [(0.1, 3, -3.0), (1.0, 10, -1.5), (1.7, 12, 0.45), (2.0, 10, -0.3), (4.0, 6, -2.05)]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "fractional.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    states = [{"gamma": g, "cut": n, "wave": k} for g, n, k in STATES]
    script = f"{library}\n{{{source}\nconsole.log(JSON.stringify({json.dumps(states)}.map((s) => [walks(s), gain(s, 10 ** s.wave), said(s)])));}}"
    told = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True).stdout
    for state, (both, gain, said) in zip(states, json.loads(told), strict=True):
        widget = Flights(**state)
        for found, expected in zip(both, widget.walks(), strict=True):
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert gain == pytest.approx(widget.gain(), abs=1e-9)
        law = torch.arange(1, 2 ** state["cut"] + 1, dtype=torch.float64) ** -state["gamma"]
        k = torch.tensor([10 ** state["wave"]], dtype=torch.float64)
        assert gain == pytest.approx(float(fractional.symbol(law / law.sum(), k, first=1).real), abs=1e-9)
        assert said == widget.describe()
    for wrong in ({"gamma": 5.0}, {"cut": 1}, {"wave": 1.0}):
        with pytest.raises(traitlets.TraitError):
            Flights(**wrong)
