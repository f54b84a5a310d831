"""Evidence for the formulas of f01_vectors_matrices_shapes."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from scipy import stats

from course import data
from course.vectors_matrices_shapes import inner, kron, kron_row, matmul, norm, offset, rvec, trace, transpose

EPS = 2**-52
SHAPES = [(1, 1), (1, 4), (3, 1), (2, 3), (3, 2), (4, 4)]
TRIPLES = [(1, 1, 1), (2, 3, 2), (3, 2, 4), (1, 5, 3), (4, 4, 4), (7, 1, 2), (5, 9, 6), (2, 30, 2)]


def random_matrix(*shape, seed=0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def letters(name: str, rows: int, columns: int) -> sp.Matrix:
    """A matrix of independent symbols."""
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i}{j}", real=True))


def by_columns(A: sp.Matrix) -> sp.Matrix:
    return sp.Matrix([A[i, j] for j in range(A.cols) for i in range(A.rows)])


def by_rows(A: sp.Matrix) -> sp.Matrix:
    return sp.Matrix([A[i, j] for i in range(A.rows) for j in range(A.cols)])


def kronecker(A: sp.Matrix, B: sp.Matrix) -> sp.Matrix:
    return sp.Matrix(A.rows * B.rows, A.cols * B.cols, lambda i, j: A[i // B.rows, j // B.cols] * B[i % B.rows, j % B.cols])


def zero(matrix: sp.Matrix) -> bool:
    return sp.expand(matrix) == sp.zeros(*matrix.shape)


@pytest.mark.receipt("f01-norm", "computed")
def test_norm():
    mpmath.mp.dps = 50
    for d in (1, 2, 3, 17, 1000):
        v = random_matrix(d, seed=d)
        exact = mpmath.sqrt(mpmath.fsum(mpmath.mpf(x) ** 2 for x in v.tolist()))
        assert abs(float(norm(v)) - exact) <= (d + 2) * EPS * exact
    assert float(norm(torch.tensor([3.0, 4.0]))) == 5.0


@pytest.mark.receipt("f01-inner", "computed")
def test_inner():
    for d in (1, 2, 3, 17, 1000):
        u, v = random_matrix(2, d, seed=d)
        terms = [Fraction(a) * Fraction(b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
        assert abs(Fraction(float(inner(u, v))) - sum(terms)) <= d * EPS * float(sum(map(abs, terms)))


@pytest.mark.receipt("f01-angle", "derived")
def test_angle():
    for d in (2, 3, 4):
        u, v = letters("u", 1, d), letters("v", 1, d)
        product = sp.Symbol("product")  # ‖u‖ ‖v‖ cos φ
        third_side = (u - v).dot(u - v)
        [solution] = sp.solve(sp.Eq(third_side, u.dot(u) + v.dot(v) - 2 * product), product)
        assert sp.expand(solution - u.dot(v)) == 0
    r, s, a, b = sp.symbols("r s a b", positive=True)  # lengths and directions: no law of cosines
    u, v = r * sp.Matrix([sp.cos(a), sp.sin(a)]), s * sp.Matrix([sp.cos(b), sp.sin(b)])
    assert sp.simplify(u.dot(v) - r * s * sp.cos(a - b)) == 0


@pytest.mark.receipt("f01-cauchy", "derived")
def test_cauchy_schwarz():
    for d in (2, 3, 4):
        u, v = letters("u", 1, d), letters("v", 1, d)
        squares = sum((u[i] * v[j] - u[j] * v[i]) ** 2 for i, j in itertools.combinations(range(d), 2))
        assert sp.expand(u.dot(u) * v.dot(v) - u.dot(v) ** 2 - squares) == 0


@pytest.mark.receipt("f01-matmul", "computed")
def test_matmul():
    for m, n, p in TRIPLES:
        A, B = random_matrix(m, n, seed=m), random_matrix(n, p, seed=p + 50)
        loops, torchs = matmul(A, B), A @ B
        for i, j in itertools.product(range(m), range(p)):
            terms = [Fraction(a) * Fraction(b) for a, b in zip(A[i].tolist(), B[:, j].tolist(), strict=True)]
            bound = n * EPS * float(sum(map(abs, terms)))
            assert abs(Fraction(loops[i, j].item()) - sum(terms)) <= bound
            assert abs(Fraction(torchs[i, j].item()) - sum(terms)) <= bound


@pytest.mark.receipt("f01-block", "derived")
def test_blocks():
    for m, n, p in [(2, 2, 2), (2, 4, 3), (1, 3, 2)]:
        A, B = letters("a", m, n), letters("b", n, p)
        for cut in range(1, n):
            assert zero(A * B - A[:, :cut] * B[:cut, :] - A[:, cut:] * B[cut:, :])


@pytest.mark.receipt("f01-assoc", "derived")
def test_brackets():
    for m, n, p, q in [(2, 2, 2, 2), (1, 3, 2, 3), (2, 3, 1, 2)]:
        A, B, C = letters("a", m, n), letters("b", n, p), letters("c", p, q)
        assert zero((A * B) * C - A * (B * C))


@pytest.mark.receipt("f01-cost", "computed")
def test_cost():
    class Counted:
        """A number that counts its multiplications."""

        count = 0

        def __mul__(self, other):
            Counted.count += 1
            return 1.0

    class Table:
        """Enough of a tensor for the course's loops."""

        dtype = torch.float64

        def __init__(self, *shape):
            self.shape = shape

        def dim(self):
            return 2

        def __getitem__(self, index):
            return Counted()

    for m, n, p in [(1, 1, 1), (2, 3, 4), (5, 1, 5), (1, 9, 1), (4, 4, 4), (10, 2, 3)]:
        Counted.count = 0
        matmul(Table(m, n), Table(n, p))
        assert Counted.count == m * n * p


@pytest.mark.receipt("f01-transpose", "computed")
def test_transpose():
    for shape in SHAPES:
        A = random_matrix(*shape)
        assert torch.equal(transpose(A), A.T) and np.array_equal(transpose(A).numpy(), A.numpy().transpose())
        assert torch.equal(transpose(transpose(A)), A)


@pytest.mark.receipt("f01-transpose-product", "derived")
def test_transpose_of_a_product():
    for m, n, p in [(2, 2, 2), (1, 3, 2), (3, 2, 4)]:
        A, B = letters("a", m, n), letters("b", n, p)
        assert zero((A * B).T - B.T * A.T)


@pytest.mark.receipt("f01-offset", "computed")
def test_offset():
    for shape in [(5,), (1, 4), (4, 1), (3, 5), (2, 3, 4), (2, 1, 3, 2), (2, 2, 3, 1, 4)]:
        line = torch.arange(math.prod(shape)).reshape(shape)
        for index in itertools.product(*map(range, shape)):
            strides = sum(i * stride for i, stride in zip(index, line.stride(), strict=True))
            assert offset(shape, index) == line[index].item() == strides == np.ravel_multi_index(index, shape)


@pytest.mark.receipt("f01-trace", "computed")
def test_trace():
    for n in (1, 2, 5):
        A, B = (torch.randint(-9, 10, (n, n), generator=torch.Generator().manual_seed(seed)) for seed in (n, n + 9))
        assert trace(A) == torch.trace(A) and trace(matmul(A, B)) == trace(matmul(B, A))


@pytest.mark.receipt("f01-frobenius", "derived")
def test_frobenius():
    for m, n in [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3)]:
        A = letters("a", m, n)
        assert sp.expand(sum(x**2 for x in A) - (A.T * A).trace()) == 0


@pytest.mark.receipt("f01-trace-vec", "derived")
def test_trace_vec():
    for m, n in [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3)]:
        A, B = letters("a", m, n), letters("b", n, m)
        for order in (by_columns, by_rows):
            assert sp.expand((A * B).trace() - order(A.T).dot(order(B))) == 0


def rank_factors(M: sp.Matrix) -> tuple[sp.Matrix, sp.Matrix]:
    """M as (m, r) times (r, n), r the number of pivots of exact elimination: pivot columns, and nonzero rows of the reduced form."""
    reduced, pivots = M.rref()
    return M[:, list(pivots)], reduced[: len(pivots), :]


@pytest.mark.receipt("f01-rank", "computed")
def test_rank_is_the_least_number_of_outer_products():
    draw = np.random.default_rng(0)
    for m, n, inner_size in [(1, 1, 1), (3, 4, 1), (4, 3, 2), (5, 5, 3), (4, 6, 4), (5, 4, 6)]:
        M = sp.Matrix(draw.integers(-5, 6, (m, inner_size))) * sp.Matrix(draw.integers(-5, 6, (inner_size, n)))
        left, right = rank_factors(M)  # this many are enough
        r = left.cols
        assert left * right == M and r <= min(m, n, inner_size)
        assert r == np.linalg.matrix_rank(np.array(M, dtype=float))
        minors = itertools.product(itertools.combinations(range(m), r), itertools.combinations(range(n), r))
        assert any(M.extract(list(rows), list(columns)).det() != 0 for rows, columns in minors)
    for r in (2, 3):  # fewer are not: a sum of r - 1 outer products has no r × r minor
        assert sp.expand((letters("a", r, r - 1) * letters("b", r - 1, r)).det()) == 0


@pytest.mark.receipt("f01-svd", "computed")
def test_singular_values():
    A, left, right = sp.Matrix([[3, 0], [4, 5]]), sp.Matrix([[1, 3], [3, -1]]), sp.Matrix([[1, 1], [1, -1]])
    values = [sp.sqrt(45), sp.sqrt(5)]
    terms = [values[k] * (left[k, :].T / sp.sqrt(10)) * (right[k, :] / sp.sqrt(2)) for k in range(2)]
    assert (
        sp.simplify(terms[0] + terms[1] - A) == sp.zeros(2)
        and left * left.T == 10 * sp.eye(2)
        and right * right.T == 2 * sp.eye(2)
    )
    for m, n in [(1, 4), (4, 1), (3, 5), (5, 5), (9, 6)]:
        M = random_matrix(m, n, seed=m)
        U, s, Vh = torch.linalg.svd(M, full_matrices=False)
        assert torch.allclose(sum(s[k] * U[:, k].outer(Vh[k]) for k in range(len(s))), M, rtol=0, atol=1e-12)
        assert torch.allclose(U.T @ M, s[:, None] * Vh, rtol=0, atol=1e-12)  # u_k M = s_k v_k
        squares = torch.linalg.eigvalsh(M @ M.T if m <= n else M.T @ M).flip(0)
        assert torch.allclose(s**2, squares, rtol=0, atol=1e-11)


def test_no_matrix_of_lower_rank_is_nearer_than_the_cut():
    """Least squares for one factor and then the other, from random starts, never ends below the bound and reaches it."""
    for m, n, j in [(4, 5, 1), (6, 4, 2), (7, 7, 3)]:
        M = random_matrix(m, n, seed=j)
        bound = torch.linalg.svdvals(M)[j:].pow(2).sum().sqrt()
        found = []
        for seed in range(10):
            right = random_matrix(j, n, seed=100 + seed)
            for _ in range(500):
                left = torch.linalg.lstsq(right.T, M.T).solution.T  # (m, j)
                right = torch.linalg.lstsq(left, M).solution  # (j, n)
            found.append(float((M - left @ right).norm()))
        assert min(found) >= bound - 1e-12 and min(found) <= bound + 1e-6


@pytest.mark.receipt("f01-kron", "computed")
def test_kronecker():
    for (m, n), (p, q) in itertools.pairwise([*SHAPES, (2, 5)]):
        A, B = random_matrix(m, n), random_matrix(p, q, seed=1)
        for mine, numpys in [(kron(A, B), np.kron(A, B)), (kron(A.T, B.T), np.kron(A.T, B.T))]:
            assert mine.shape == numpys.shape and np.abs(mine.numpy() - numpys).max() <= 0


SETS = [(1, 2, 2, 1), (2, 3, 2, 2), (2, 1, 3, 2), (2, 2, 2, 2)]  # A (m, r), X (r, s), B (s, n)


def test_the_symbolic_helpers_are_numpys():
    A, B = sp.Matrix(2, 3, range(6)), sp.Matrix(2, 2, range(5, 9))
    assert np.array_equal(
        np.array(kronecker(A, B), dtype=int), np.kron(np.arange(6).reshape(2, 3), np.arange(5, 9).reshape(2, 2))
    )
    assert list(by_columns(A)) == [0, 3, 1, 4, 2, 5] and list(by_rows(A)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.receipt("f01-kron-column", "derived")
def test_kron_column():
    for m, r, s, n in SETS:
        A, X, B = letters("a", m, r), letters("x", r, s), letters("b", s, n)
        assert zero(by_columns(A * X * B) - kronecker(B.T, A) * by_columns(X))


@pytest.mark.receipt("f01-kron-row", "derived")
def test_kron_by_rows():
    for m, r, s, n in SETS:
        A, X, B = letters("a", m, r), letters("x", r, s), letters("b", s, n)
        assert zero(by_rows(A * X * B) - kronecker(A, B.T) * by_rows(X))


@pytest.mark.receipt("f01-tokens", "derived")
def test_one_map_for_every_row():
    for T, d, p in [(2, 2, 2), (3, 2, 1), (2, 3, 2)]:
        X, W = letters("x", T, d), letters("w", d, p)
        assert zero(by_rows(X * W).T - by_rows(X).T * kronecker(sp.eye(T), W))


@pytest.mark.receipt("f01-loops", "measured")
def test_time_of_loops():
    record = data.record("vectors_matrices_shapes")
    runs = {row["n"]: row["runs"] for row in record["results"]["rows"] if row["way"] == "three loops" and row["n"] >= 32}
    assert len(record["seeds"]) == 7 and all(len(times) == 7 for times in runs.values()) and "Student's t" in record["interval"]
    sizes, times = np.log(list(runs)), np.log(np.array(list(runs.values())))  # (4,), (4, 7)
    exponents = np.polyfit(sizes, times, 1)[0]  # (7,)
    half = stats.t.ppf(0.975, 6) * stats.sem(exponents)
    assert abs(exponents.mean() - 3.07) <= 0.005 and abs(half - 0.01) <= 0.005
    of_means = np.log(np.exp(times).mean(axis=1))
    for power, told in [(3, 0.08), (2, 0.83)]:
        off = of_means - power * sizes
        assert abs(np.sqrt(np.mean((off - off.mean()) ** 2)) - told) <= 0.005


@pytest.mark.receipt("f01-err-related", "computed")
def test_a_high_inner_product_need_not_mean_a_similar_direction():
    word, other = torch.tensor([3.0, 4.0]), torch.tensor([40.0, 0.0])
    assert inner(word, other) == 120 and inner(word, word) == 25
    angle = math.degrees(math.acos(float(inner(word, other) / (norm(word) * norm(other)))))
    assert abs(angle - 53.13) <= 0.005


@pytest.mark.receipt("f01-err-vec", "computed")
def test_the_printed_kronecker_identity_fails_in_row_order():
    A, X, B = torch.tensor([[1.0, 2, 0], [0, 1, 3]]), torch.arange(1.0, 7).reshape(3, 2), torch.tensor([[1.0, 2], [0, 1]])
    right = rvec(A @ X @ B)
    assert torch.equal(kron_row(A, B) @ rvec(X), right)
    assert (kron(B.T, A) @ rvec(X) - right).tolist() == [-2, -13, 6, -13]


def test_storage_does_not_change_a_product():
    A, B = random_matrix(4, 6), random_matrix(6, 5, seed=1)
    A_columns, B_columns = A.T.contiguous().T, B.T.contiguous().T
    assert A_columns.stride() == (1, 4) and A.stride() == (6, 1)
    assert torch.allclose(A_columns @ B_columns, A @ B, rtol=0, atol=1e-13)
