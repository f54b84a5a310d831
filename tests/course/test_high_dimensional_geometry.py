"""The reference code of chapter f06 against torch, numpy, scipy and node."""

import itertools
import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import scipy.integrate
import scipy.spatial.distance
import scipy.stats
import torch

from course import widgets
from course.high_dimensional_geometry import (
    auc,
    chance_cosine,
    cosine,
    cosine_density,
    effective_dimension,
    euclid,
    mips,
    soft_mips,
)
from course.widgets.high_dimensional_geometry import ChanceCosines


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("d", [1, 2, 17, 1000])
def test_cosine_and_distance_are_scipys(d):
    u, v = normal(d), normal(d, seed=1)
    assert math.isclose(cosine(u, v), 1 - scipy.spatial.distance.cosine(u, v), abs_tol=1e-14 * d)
    assert math.isclose(euclid(u, v), scipy.spatial.distance.euclidean(u, v), rel_tol=1e-14)


def test_shapes_broadcast_and_dtypes_stay():
    for dtype in (torch.float32, torch.float64):
        u, v = normal(4, 1, 5, dtype=dtype), normal(3, 5, seed=1, dtype=dtype)
        assert torch.allclose(cosine(u, v), torch.nn.functional.cosine_similarity(u, v, dim=-1), atol=1e-6)
        assert torch.allclose(euclid(u, v), torch.cdist(u[:, 0], v), atol=1e-6)
        assert cosine(u, v).dtype == euclid(u, v).dtype == dtype and cosine(u, v).shape == (4, 3)


def test_cosine_of_vectors_whose_product_of_lengths_is_beyond_the_format():
    long = torch.full((1024,), 10.0, dtype=torch.float16)
    assert abs(cosine(long, long).item() - 1) <= 0.01 and abs(cosine(long, -long).item() + 1) <= 0.01


@pytest.mark.parametrize("d", [2, 3, 4, 50, 10_000])
def test_density_is_that_of_a_stretched_beta_law(d):
    c = torch.linspace(-0.99, 0.99, 101, dtype=torch.float64)
    wanted = scipy.stats.beta((d - 1) / 2, (d - 1) / 2).pdf((1 + c.numpy()) / 2) / 2
    assert np.allclose(cosine_density(c, d), wanted, rtol=1e-9, atol=1e-300)
    if d > 2:
        area = scipy.integrate.quad(lambda x: float(cosine_density(torch.tensor(x, dtype=torch.float64), d)), -1, 1, points=[0])[
            0
        ]
        assert abs(area - 1) <= 1e-6


def test_the_bound_for_chance_is_the_tail_of_n_candidates():
    for d, n, risk in [(3, 1, 0.5), (100, 1000, 0.05), (768, 1_000_000, 0.01)]:
        assert math.isclose(n * math.exp(-d * chance_cosine(d, n, risk) ** 2 / 2), risk, rel_tol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_effective_dimension_is_the_inverse_of_the_summed_squared_shares(seed):
    variances = normal(4, 30, seed=seed).square()
    shares = (variances / variances.sum(-1, keepdim=True)).numpy()
    assert np.allclose(effective_dimension(variances), 1 / (shares**2).sum(-1), rtol=1e-13)


def test_search_by_loops():
    queries, stored = normal(2, 7, 5), normal(40, 5, seed=1)
    found = mips(queries, stored)
    assert found.shape == (2, 7)
    for i in range(2):
        for j in range(7):
            products = [float(queries[i, j] @ row) for row in stored]
            assert found[i, j] == int(np.argmax(products))
            powers = np.exp(np.array(products) / 0.7 - max(products) / 0.7)
            wanted = (powers / powers.sum()) @ stored.numpy()
            assert np.allclose(soft_mips(queries[i, j], stored, 0.7), wanted, atol=1e-12)


def test_a_cold_soft_search_is_the_hard_one_and_a_hot_one_the_mean():
    query, stored = normal(5), normal(20, 5, seed=1)
    assert torch.allclose(soft_mips(query, stored, 1e-4), stored[mips(query, stored)])
    assert torch.allclose(soft_mips(query, stored, 1e9), stored.mean(0), atol=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_auc_counts_pairs(seed):
    rng = np.random.default_rng(seed)
    related, unrelated = rng.integers(0, 5, size=13) / 4, rng.integers(0, 4, size=9) / 4
    pairs = [(a > b) + (a == b) / 2 for a in related for b in unrelated]
    found = auc(torch.from_numpy(related), torch.from_numpy(unrelated))
    assert math.isclose(found, np.mean(pairs), rel_tol=1e-14)
    assert math.isclose(auc(torch.from_numpy(unrelated), torch.from_numpy(related)), 1 - found, rel_tol=1e-12)


def test_auc_of_scores_that_are_a_column_of_a_table():
    table = normal(6, 2)
    assert auc(table[:, 0], table[:, 1]) == auc(table[:, 0].clone(), table[:, 1].clone())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cosine(torch.zeros(3), torch.ones(3)), "no direction"),
        (lambda: cosine_density(torch.zeros(1), 1), "at least 2"),
        (lambda: chance_cosine(0, 5), "d > 0"),
        (lambda: chance_cosine(5, 0), "n ≥ 1"),
        (lambda: chance_cosine(5, 5, 1.0), "risk < 1"),
        (lambda: effective_dimension(torch.zeros(3)), "at least one is positive"),
        (lambda: effective_dimension(torch.tensor([1.0, -1.0])), "not negative"),
        (lambda: soft_mips(torch.ones(2), torch.ones(3, 2), 0.0), "use mips"),
        (lambda: auc(torch.ones(0), torch.ones(1)), "at least one score"),
        (lambda: auc(torch.tensor([math.nan]), torch.ones(1)), "nan"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_nothing_changes_its_arguments():
    u, v, s = normal(3, 4), normal(3, 4, seed=1), normal(9).abs()
    before = u.clone(), v.clone(), s.clone()
    (cosine(u, v), euclid(u, v), mips(u, v), soft_mips(u, v), auc(s, s), effective_dimension(s), cosine_density(s / 9, 5))
    assert all(torch.equal(a, b) for a, b in zip((u, v, s), before, strict=True))


def test_the_widgets_arithmetic_is_the_courses():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "high_dimensional_geometry.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    cases = [(2, 1), (3, 1000), (10, 50), (100, 1), (768, 1_000_000), (10_000, 20_000)]
    script = f"{library}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map(([d, n]) => [density(0.01, d), density(-0.3, d), chanceCosine(d, n), said(d, n)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for (d, n), (near, far, bound, text) in zip(cases, told, strict=True):
        wanted = cosine_density(torch.tensor([0.01, -0.3], dtype=torch.float64), d).tolist()
        assert np.allclose([near, far], wanted, rtol=1e-9, atol=1e-300)
        assert math.isclose(bound, chance_cosine(d, n), rel_tol=1e-14)
        assert text == ChanceCosines(dimension=d, candidates=n).describe()


def test_every_stop_of_a_slider_is_a_state_that_the_widget_accepts():
    source = (widgets.HERE / "high_dimensional_geometry.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    script = f"{library}{source}\nconsole.log(JSON.stringify([stops(2, 10000, 20), stops(1, 1000000, 10)]));"
    found = subprocess.run([shutil.which("node"), "-e", script], capture_output=True, text=True, check=True).stdout
    dimensions, candidates = json.loads(found)
    assert (min(dimensions), max(dimensions), min(candidates), max(candidates)) == (2, 10_000, 1, 1_000_000)
    assert {2, 3, 10, 100, 1000} <= set(dimensions) and {1, 10, 100, 1000, 10_000, 100_000} <= set(candidates)
    assert all(isinstance(x, int) for x in dimensions + candidates)
    assert all(one < other for each in (dimensions, candidates) for one, other in itertools.pairwise(each))
