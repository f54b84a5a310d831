"""Vectors, matrices and their shapes: chapter f01.

Everything is written as its definition says, with loops where the definition has a sum, so that it can be
compared with torch's own operations. Vectors are rows; a matrix has the shape (rows, columns).
"""

import torch

__all__ = [
    "check_shapes",
    "inner",
    "kron",
    "kron_col",
    "kron_row",
    "matmul",
    "norm",
    "offset",
    "rvec",
    "trace",
    "trace_vec",
    "transpose",
    "vec",
]


def norm(v: torch.Tensor) -> torch.Tensor:
    """The length ‖v‖ = √Σ v_i², formula f01-norm.

    Args:
        v: (..., d) floats.

    Returns:
        (...) in the dtype of `v`. Squares above the dtype's largest number overflow to infinity.

    Raises:
        TypeError: if `v` does not hold floats.
    """
    _check_floats(v)
    return (v * v).sum(dim=-1).sqrt()  # (...)


def inner(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The inner product Σ u_i v_i, formula f01-inner.

    Args:
        u, v: (..., d), the same shape: nothing is repeated to make it fit.

    Returns:
        (...) in the dtype of the arguments.

    Raises:
        ValueError: if the shapes differ.
    """
    if u.shape != v.shape:
        raise ValueError(f"an inner product needs equal shapes: {tuple(u.shape)} and {tuple(v.shape)} came")
    return (u * v).sum(dim=-1)  # (...)


def matmul(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """The product (AB)_ij = Σ_k A_ik B_kj, formula f01-matmul, with the three loops that it stands for.

    Args:
        A: (m, n).
        B: (n, p), same dtype.

    Returns:
        (m, p), by m·n·p multiplications.

    Raises:
        ValueError: if A's columns and B's rows differ in number, or an argument is no matrix.
    """
    (m, n), (rows, p) = _matrix(A), _matrix(B)
    if n != rows:
        raise ValueError(f"({m}, {n}) times ({rows}, {p}): the inner sizes {n} and {rows} differ")
    C = torch.zeros(m, p, dtype=A.dtype)
    for i in range(m):
        for j in range(p):
            for k in range(n):
                C[i, j] += A[i, k] * B[k, j]
    return C


def transpose(A: torch.Tensor) -> torch.Tensor:
    """(Aᵀ)_ij = A_ji, formula f01-transpose, as a new matrix.

    Args:
        A: (m, n).

    Returns:
        (n, m).

    Raises:
        ValueError: if A is no matrix.
    """
    m, n = _matrix(A)
    out = torch.empty(n, m, dtype=A.dtype)
    for i in range(m):
        for j in range(n):
            out[j, i] = A[i, j]
    return out


def trace(A: torch.Tensor) -> torch.Tensor:
    """tr(A) = Σ A_ii, formula f01-trace, for a square matrix (n, n); a 0-d tensor.

    Raises:
        ValueError: if A is not square.
    """
    m, n = _matrix(A)
    if m != n:
        raise ValueError(f"a trace needs a square matrix, ({m}, {n}) came")
    return sum((A[i, i] for i in range(n)), start=torch.zeros((), dtype=A.dtype))


def vec(A: torch.Tensor) -> torch.Tensor:
    """The columns of A (m, n) under one another: (m·n,), column by column.

    Raises:
        ValueError: if A is no matrix.

    Source: Henderson and Searle (1981), The vec-permutation matrix.
    """
    _matrix(A)
    return A.T.reshape(-1)  # (n·m,)


def rvec(A: torch.Tensor) -> torch.Tensor:
    """The rows of A (m, n) after one another: (m·n,), the order in which torch and numpy store a new matrix.

    Raises:
        ValueError: if A is no matrix.
    """
    _matrix(A)
    return A.reshape(-1)  # (m·n,)


def trace_vec(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """tr(AB) = vec(Aᵀ)ᵀ vec(B), formula f01-trace-vec, without computing AB.

    Args:
        A: (m, n).
        B: (n, m).

    Returns:
        A 0-d tensor, by m·n multiplications instead of m·n·m.

    Raises:
        ValueError: if AB is not square.
    """
    (m, n), of_B = _matrix(A), _matrix(B)
    if of_B != (n, m):
        raise ValueError(f"the product of ({m}, {n}) and {of_B} has no trace: B must be ({n}, {m})")
    return inner(vec(A.T), vec(B))


def kron(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """The Kronecker product A ⊗ B: every entry A_ij replaced by the block A_ij·B, formula f01-kron.

    Args:
        A: (m, n).
        B: (p, q).

    Returns:
        (m·p, n·q).

    Raises:
        ValueError: if an argument is no matrix.
    """
    (m, n), (p, q) = _matrix(A), _matrix(B)
    blocks = A[:, None, :, None] * B[None, :, None, :]  # (m, p, n, q)
    return blocks.reshape(m * p, n * q)


def kron_col(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """The matrix M with vec(AXB) = M vec(X), which is Bᵀ ⊗ A: formula f01-kron-column, column order.

    Args:
        A: (m, r).
        B: (s, n).

    Returns:
        (n·m, s·r).
    """
    return kron(B.T, A)


def kron_row(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """The matrix M with rvec(AXB) = M rvec(X), which is A ⊗ Bᵀ: formula f01-kron-row, row order.

    Args:
        A: (m, r).
        B: (s, n).

    Returns:
        (m·n, r·s).
    """
    return kron(A, B.T)


def offset(shape: tuple[int, ...], index: tuple[int, ...]) -> int:
    """The place of an entry in row-major storage, counted from 0: formula f01-offset.

    Args:
        shape: the sizes of all axes.
        index: one number for each axis, counted from 0.

    Raises:
        ValueError: if the index does not fit the shape.
    """
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=True)):
        raise ValueError(f"the index {tuple(index)} does not fit the shape {tuple(shape)}")
    place = 0
    for i, size in zip(index, shape, strict=True):
        place = place * size + i
    return place


def check_shapes(names: str, *tensors: torch.Tensor) -> dict[str, int]:
    """Give the axes of tensors names, and make sure that one name has one size.

    ``check_shapes("T d, d h", X, W)`` is ``{"T": 3, "d": 2, "h": 5}`` for X (3, 2) and W (2, 5).

    Args:
        names: for each tensor its axes' names, with spaces between; commas between tensors.
        tensors: as many as there are groups of names.

    Raises:
        ValueError: if a tensor has another number of axes, or a name gets two sizes.
    """
    groups, sizes = [group.split() for group in names.split(",")], {}
    if len(groups) != len(tensors):
        raise ValueError(f"{len(groups)} groups of names for {len(tensors)} tensors: separate the groups by commas")
    for group, x in zip(groups, tensors, strict=True):
        if len(group) != x.dim():
            raise ValueError(f"'{' '.join(group)}' names {len(group)} axes, the tensor has shape {tuple(x.shape)}")
        for name, size in zip(group, x.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"axis {name} has size {sizes[name]} in one place and {size} in another")
    return sizes


def _matrix(A: torch.Tensor) -> tuple[int, int]:
    if A.dim() != 2:
        raise ValueError(f"a matrix has two axes, the shape {tuple(A.shape)} came")
    return A.shape[0], A.shape[1]


def _check_floats(x: torch.Tensor) -> None:
    if not x.is_floating_point():
        raise TypeError(f"a length is a float, got {x.dtype}: convert with .float()")
