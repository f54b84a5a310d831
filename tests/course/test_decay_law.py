"""The reference code of chapter 15 against numpy, scipy, brute force and the widget's JavaScript."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import torch
import traitlets

from course import data, decay_law, gamma_atlas, widgets
from course.decay_law import CURVES, budgets, fit_curve, gains, maxent, multipliers, permuted_keys, shares
from course.widgets.decay_law import LEAST, DecayWindow

DISTANCE = torch.arange(1001, dtype=torch.float64).clamp_min(1)


def noisy(seed, *shape, gamma=0.8, D=80):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(*shape, D + 1, generator=generator, dtype=torch.float64)
    return DISTANCE[: D + 1] ** -gamma * (0.4 * noise).exp()


# ---------------------------------------------------------------- a line


@pytest.mark.parametrize("power", [0.3, 1.0, 2.0])
def test_a_power_law_is_told_from_an_exponential(power):
    distance = torch.arange(1001, dtype=torch.float64)
    found = decay_law.decay_fit(distance.clamp_min(1) ** -power)
    assert float(found["power"]) == pytest.approx(power, abs=0.001) and found["R2 of the power law"] > 0.999
    assert found["R2 of the exponential"] < 0.95
    falling = decay_law.decay_fit((-0.01 * distance).exp())
    assert float(falling["rate"]) == pytest.approx(0.01, rel=0.03) and falling["R2 of the exponential"] > 0.99
    assert falling["R2 of the power law"] < 0.95


def test_the_bins_reach_to_both_ends_of_the_window():
    """A weight that is changed anywhere in the window changes the fit, one outside does not."""
    plain = DISTANCE[:201] ** -1.0
    for low, high in ((4, 100), (40, 160), (1, 9), (7, 200)):
        before = decay_law.decay_fit(plain, low, high)["power"]
        for r in range(1, 201):
            other = plain.clone()
            other[r] *= 3
            moved = abs(float(decay_law.decay_fit(other, low, high)["power"] - before)) > 1e-9
            middle = low * high
            assert moved == (low <= r <= high) or abs(r * r / middle - 1) < 0.6, (low, high, r)  # the middle bin has no lever


def test_windows_that_are_none_are_refused():
    for low, high in ((0, 10), (5, 5), (9, 3), (4, 7)):
        with pytest.raises(ValueError, match="four"):
            decay_law.decay_fit(DISTANCE[:101], low, high)
    for low, high in ((0, 10), (5, 5), (9, 3), (4, 101)):
        with pytest.raises(ValueError, match="ends at distance 100"):
            shares(DISTANCE[:101], low, high)


# ---------------------------------------------------------------- curves


@pytest.mark.parametrize("gamma", [-1.0, 0.0, 0.4, 1.3, 5.0])
def test_a_planted_exponent_comes_back(gamma):
    found = fit_curve(DISTANCE[:301] ** -gamma, "power law", 3, 300)
    assert float(found["eta"]) == pytest.approx(gamma, abs=1e-8)


@pytest.mark.parametrize(
    "curve, planted, expected, shape",
    [
        ("exponential", lambda r: (-0.3 * r).exp(), [0.3], None),
        ("truncated power law", lambda r: r**-0.7 * (-0.02 * r).exp(), [0.7, 0.02], None),
        ("log-normal", lambda r: (-((r.log() - 2) ** 2) / 2).exp() / r, [-1.0, 0.5], None),
        ("stretched exponential", lambda r: (-2 * r**0.4).exp(), [2.0], 0.4),
    ],
)
def test_planted_curves_come_back(curve, planted, expected, shape):
    found = fit_curve(planted(DISTANCE[:201])[None], curve, 2, 200)
    assert found["eta"][0].tolist() == pytest.approx(expected, abs=1e-6)
    assert np.isnan(float(found["shape"][0])) if shape is None else float(found["shape"][0]) == shape


def test_a_broken_law_is_found_where_it_breaks():
    low, high = 4, 256
    r = DISTANCE[:301]
    at = low * (high / low) ** 0.5  # half of the logarithm
    found = fit_curve(torch.where(r < at, r**-0.5, at**1.5 * r**-2.0), "broken power law", low, high)
    assert float(found["shape"]) == 0.5 and found["eta"].tolist() == pytest.approx([0.5, 1.5], abs=1e-8)


def test_curves_that_would_bend_up_or_grow_are_power_laws():
    for planted in ((DISTANCE[:201].log() ** 2).exp(), DISTANCE[:201] ** -1 * (0.01 * DISTANCE[:201]).exp()):
        for curve in ("log-normal", "truncated power law"):
            found, plain = (fit_curve(planted, name, 2, 200) for name in (curve, "power law"))
            assert float(found["eta"][1]) == 0 and torch.allclose(found["log_q"], plain["log_q"], atol=1e-9)


def test_a_rival_that_contains_the_power_law_fits_no_worse():
    train = noisy(0, 5, 3)
    found = gains(train, train, 3, 80)
    for curve in ("log-normal", "truncated power law", "broken power law"):
        assert (found[curve] >= found["power law"] - 1e-9).all()
    for curve in CURVES:
        assert (found["profile itself"] >= found[curve] - 1e-9).all()
    assert found["flat"].abs().max() < 1e-12


def test_many_profiles_are_fitted_as_each_alone():
    train, test = noisy(1, 2, 3), noisy(2, 2, 3)
    together = gains(train, test, 2, 60)
    for i in range(2):
        for j in range(3):
            alone = gains(train[i, j], test[i, j], 2, 60)
            for curve, value in alone.items():
                assert float(together[curve][i, j]) == pytest.approx(float(value), abs=1e-9)


def test_unknown_curves_are_refused():
    with pytest.raises(ValueError, match="no curve"):
        budgets("parabola", DISTANCE[1:9])
    with pytest.raises(ValueError, match="no curve"):
        fit_curve(DISTANCE[:20], "parabola", 1, 9)


def test_means_that_no_shares_have_are_refused():
    log = DISTANCE[1:11].log()[None]
    for mean in (0.0, float(log.max()), -1.0, 3.0):
        with pytest.raises(ValueError, match="means"):
            maxent(log, torch.tensor([mean]))
    assert multipliers(torch.zeros(4, 0), torch.zeros(0, 9)).shape == (4, 0)


# ---------------------------------------------------------------- nulls


def test_permuted_keys_keep_the_weights_of_a_query_and_the_first_keys():
    weights = torch.rand(2, 12, 12, generator=torch.Generator().manual_seed(0)).tril()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    found = permuted_keys(weights, 3, torch.Generator().manual_seed(1))
    assert torch.equal(found[..., :3], weights[..., :3]) and float(found.triu(1).abs().max()) == 0
    assert torch.equal(found.sort(dim=-1).values, weights.sort(dim=-1).values) and not torch.equal(found, weights)


def test_bad_arguments_of_nulls_and_the_closed_form():
    with pytest.raises(ValueError):
        decay_law.even_profile(0)
    for theta, T in ((0, 5), (5, -1)):
        with pytest.raises(ValueError):
            decay_law.gamma_pade(theta, T)
    assert [round(decay_law.gamma_pade(1e4, T), 3) for T in (2048, 4096, 8192)] == [0.747, 0.551, 0.266]


# ---------------------------------------------------------------- the atlas


def test_the_small_models_differ_in_base_and_length_only():
    found = decay_law.small_models()
    assert list(found) == [(theta, T) for theta in (100, 1_000, 10_000, 100_000) for T in (256, 512, 1024)]
    assert {len(exponents) for exponents in found.values()} == {5}
    rows = {(row["theta"], row["T"], row["seed"]): row["gamma"] for row in gamma_atlas.atlas_table() if row["text"] == "austen"}
    assert found[100, 1024] == [rows[100, 1024, seed] for seed in range(5)]


def test_the_atlas_answers_what_it_was_asked():
    found = decay_law.atlas_answer("base")
    means = [np.mean([np.mean(decay_law.small_models()[theta, T]) for T in (256, 512, 1024)]) for theta in (100, 100_000)]
    assert found["mean"] == pytest.approx(means[1] - means[0], abs=1e-12) and found["low"] < found["mean"] < found["high"]
    with pytest.raises(ValueError, match="no question"):
        decay_law.atlas_answer("weather")


# ---------------------------------------------------------------- the widget

CASES = [(4, 150), (1, 300), (40, 47), (2, 30), (100, 300)]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the widget's arithmetic")
def test_the_widget_computes_what_the_reference_computes():
    source = (widgets.HERE / "decay_law.js").read_text().split("export default")[0]
    profile = {k: v[:301] for k, v in data.record("decay_law")["results"]["gpt"]["profile"].items()}
    bending = {"train": (DISTANCE[:301] ** -0.2 * (-((DISTANCE[:301].log() - 3) ** 2)).exp() + 1e-4).tolist()}
    bending["test"] = bending["train"]
    cases = [{**p, "low": low, "high": high} for p in (profile, bending) for low, high in CASES]
    script = (widgets.HERE / "library.js").read_text() + source + f"\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => { const f = fits(c); return [f.exponent, f.itself, "
    script += "...CURVES.map(([n]) => f.curves[n].gain), said(c)]; })));"
    told = json.loads(subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True).stdout)
    for case, (*numbers, said) in zip(cases, told, strict=True):
        widget = DecayWindow(**case)
        found = widget.fits()
        expected = [found[k] for k in ("exponent", "profile itself", "power law", "exponential", "log-normal")]
        assert numbers == pytest.approx(expected, abs=1e-6)
        assert said == widget.describe()


def test_the_widget_refuses_what_it_cannot_show():
    widget = DecayWindow()
    assert len(widget.train) == len(widget.test) == 301 and "exponent 1.0" in widget.describe()
    for case in ({"low": 50, "high": 50 + LEAST - 1}, {"high": 301}, {"low": 0}, {"axes": "polar"}):
        with pytest.raises(traitlets.TraitError):
            DecayWindow(**case)
