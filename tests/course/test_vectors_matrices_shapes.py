"""The reference code of chapter f01 against torch, numpy and node."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch

from course import widgets
from course.vectors_matrices_shapes import (
    check_shapes,
    inner,
    kron,
    kron_col,
    kron_row,
    matmul,
    norm,
    offset,
    rvec,
    trace,
    trace_vec,
    transpose,
    vec,
)
from course.widgets.vectors_matrices_shapes import TwoVectors

EPS = {torch.float32: 2**-23, torch.float64: 2**-52}
TRIPLES = [(1, 1, 1), (2, 3, 4), (4, 3, 2), (5, 1, 5), (1, 8, 1), (6, 6, 6)]


def normal(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5), (2, 3, 7)])
@pytest.mark.parametrize("dtype", EPS)
def test_norm_and_inner_are_torchs(shape, dtype):
    u, v = normal(*shape, dtype=dtype), normal(*shape, dtype=dtype, seed=1)
    bound = 8 * shape[-1] * EPS[dtype]
    assert norm(u).dtype == inner(u, v).dtype == dtype
    assert (norm(u) - torch.linalg.vector_norm(u, dim=-1)).abs().max() <= bound * norm(u).max()
    assert (inner(u, v) - torch.linalg.vecdot(u, v)).abs().max() <= bound * (norm(u) * norm(v)).max()


@pytest.mark.parametrize("sizes", TRIPLES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_matmul_is_torchs(sizes, dtype):
    m, n, p = sizes
    A, B = (5 * normal(m, n)).to(dtype), (5 * normal(n, p, seed=1)).to(dtype)
    assert matmul(A, B).dtype == dtype
    bound = 0 if dtype == torch.int64 else 4 * n * EPS[dtype] * float((A.abs() @ B.abs()).max())
    assert (matmul(A, B) - A @ B).abs().max() <= bound


@pytest.mark.parametrize("sizes", TRIPLES)
def test_transpose_trace_and_vec_are_numpys(sizes):
    m, n, _ = sizes
    A, B = normal(m, n), normal(n, m, seed=1)
    assert torch.equal(transpose(A), A.T)
    assert np.array_equal(vec(A).numpy(), A.numpy().flatten(order="F"))
    assert np.array_equal(rvec(A).numpy(), A.numpy().flatten(order="C"))
    assert math.isclose(trace(A @ B), np.trace((A @ B).numpy()), rel_tol=1e-13, abs_tol=1e-13)
    assert math.isclose(trace_vec(A, B), np.trace((A @ B).numpy()), rel_tol=1e-13, abs_tol=1e-13)


@pytest.mark.parametrize("shapes", [((1, 2), (2, 2), (2, 3)), ((3, 2), (2, 4), (4, 1)), ((2, 2), (2, 2), (2, 2))])
def test_kronecker_matrices_do_what_they_say(shapes):
    A, X, B = (normal(*shape, seed=seed) for seed, shape in enumerate(shapes))
    assert np.array_equal(kron(A, B).numpy(), np.kron(A.numpy(), B.numpy()))
    assert torch.allclose(kron_col(A, B) @ vec(X), vec(A @ X @ B), rtol=0, atol=1e-13)
    assert torch.allclose(kron_row(A, B) @ rvec(X), rvec(A @ X @ B), rtol=0, atol=1e-13)


def test_offset_follows_torchs_strides():
    X = torch.arange(120).reshape(2, 3, 4, 5)
    assert offset(X.shape, (1, 0, 2, 3)) == X[1, 0, 2, 3] == 73
    assert offset((), ()) == 0


def test_check_shapes_names_sizes():
    assert check_shapes("T d, d h, h", normal(3, 2), normal(2, 5), normal(5)) == {"T": 3, "d": 2, "h": 5}


@pytest.mark.parametrize(
    "call, error, told",
    [
        (lambda: norm(torch.tensor([3, 4])), TypeError, "float"),
        (lambda: inner(normal(2, 3), normal(3)), ValueError, "equal shapes"),
        (lambda: matmul(normal(2, 3), normal(2, 3)), ValueError, "inner sizes 3 and 2 differ"),
        (lambda: matmul(normal(2, 3), normal(3)), ValueError, "two axes"),
        (lambda: transpose(normal(3)), ValueError, "two axes"),
        (lambda: trace(normal(2, 3)), ValueError, "square"),
        (lambda: trace_vec(normal(2, 3), normal(2, 3)), ValueError, r"B must be \(3, 2\)"),
        (lambda: vec(normal(2, 3, 4)), ValueError, "two axes"),
        (lambda: kron(normal(2), normal(2, 2)), ValueError, "two axes"),
        (lambda: offset((2, 3), (1, 3)), ValueError, "does not fit"),
        (lambda: offset((2, 3), (1,)), ValueError, "does not fit"),
        (lambda: check_shapes("N, N", normal(3, 1), normal(3)), ValueError, "names 1 axes"),
        (lambda: check_shapes("T d, d h", normal(3, 2), normal(3, 2)), ValueError, "axis d has size 2 in one place and 3"),
        (lambda: check_shapes("T d", normal(3, 2), normal(3, 2)), ValueError, "1 groups of names for 2 tensors"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "vectors_matrices_shapes.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    cases = [
        ([3, 4], [4, 3]),
        ([-6, 0.5], [6, -0.5]),
        ([0, 0], [1, 2]),
        ([2, 2], [-1, 1]),
        ([1, 2], [0, 0]),
        ([1.5, 1.5], [3, 3]),
    ]
    script = f"{library}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map(([u, v]) => [compare(u, v), said(u, v)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for (u, v), (found, text) in zip(cases, told, strict=True):
        a, b = torch.tensor([u, v], dtype=torch.float64)
        assert math.isclose(found["product"], inner(a, b), abs_tol=1e-12)
        assert np.allclose(found["lengths"], [float(norm(a)), float(norm(b))], rtol=0, atol=1e-12)
        rest = a - torch.tensor(found["along"], dtype=torch.float64)
        assert abs(float(inner(rest, b))) <= 1e-12
        assert text == TwoVectors(u=u, v=v).describe()
        if found["cosine"] is not None:
            assert math.isclose(found["cosine"], inner(a, b) / (norm(a) * norm(b)), abs_tol=1e-12)
            assert math.isclose(math.cos(math.radians(found["angle"])), found["cosine"], abs_tol=1e-12)
