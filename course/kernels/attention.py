"""Exact attention that never stores the T × S weights: the fast twin of `course.model.attend`.

Memory grows with T, not with T²: the forward pass keeps the output and two numbers a query, its largest score and
log₂ Σ_j exp(score_j − largest), and the backward pass computes the weights again from them, tile by tile. A score is compared
with the largest before it is scaled: the difference is exact, so that the largest has the weight 1 whatever its size.

Shapes: query (B, H, T, d_head); key, value (B, kv_heads, S, d_head); heads share a key in groups of H / kv_heads.

Source: Dao et al. (2022), FlashAttention, algorithms 1 and 4; Dao (2023), FlashAttention-2, algorithms 1 and 2.
"""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from course.kernels import check_device

__all__ = ["Tile", "attention"]

LOG2_E = tl.constexpr(math.log2(math.e))  # the hardware has 2^x, so scores are multiplied by log₂ e once


class Tile(NamedTuple):
    """How a kernel cuts its work: rows of queries and of keys a tile, warps a program, tiles under way at once."""

    queries: int
    keys: int
    warps: int
    stages: int


# By d_head, the fastest of those that `benchmarks/kernels.py --sweep` tried on an H100.
FORWARD = {64: Tile(64, 128, 4, 3), 128: Tile(64, 64, 4, 3)}
KEY_BACKWARD = {64: Tile(128, 64, 4, 2), 128: Tile(64, 64, 4, 2)}
QUERY_BACKWARD = {64: Tile(128, 64, 8, 3), 128: Tile(128, 64, 8, 3)}


def attention(query: Tensor, key: Tensor, value: Tensor, causal: bool = True) -> Tensor:
    """softmax(QKᵀ/√d_head)V for each head, with gradients.

    Args:
        query: (B, H, T, d_head), torch.bfloat16 or torch.float16, d_head 64 or 128, any T.
        key, value: (B, kv_heads, S, d_head), any S; kv_heads divides H.
        causal: the queries are the last T of the S tokens, and each sees the keys up to its own.

    Returns:
        (B, H, T, d_head), dtype of query. Scores, weights' sums and the output are added up in float32.

    Raises:
        TypeError: if the dtypes differ or are not half precision.
        ValueError: if the shapes do not fit, or the tensors are where no kernel can reach them.
    """
    _check(query, key, value, causal)
    return _forward(query, key, value, causal)[0]


def _check(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> None:
    check_device(query, key, value)
    if {query.dtype, key.dtype, value.dtype} not in ({torch.bfloat16}, {torch.float16}):
        raise TypeError(f"query, key and value must all be bfloat16 or float16, got {query.dtype}, {key.dtype}, {value.dtype}")
    if query.ndim != 4 or key.ndim != 4 or key.shape != value.shape or 0 in query.shape or 0 in key.shape:
        raise ValueError(
            f"query must be (B, H, T, d_head), key and value (B, kv_heads, S, d_head), "
            f"got {tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}"
        )
    (B, H, T, d_head), (B_k, kv_heads, S, d_k) = query.shape, key.shape
    if (B_k, d_k) != (B, d_head):
        raise ValueError(f"query and key must agree in B and d_head, got {tuple(query.shape)} and {tuple(key.shape)}")
    if H % kv_heads:
        raise ValueError(f"{kv_heads} heads of keys do not divide {H} heads of queries: each serves as many queries")
    if d_head not in FORWARD:
        raise ValueError(f"d_head must be one of {', '.join(map(str, FORWARD))}, got {d_head}")
    if causal and T > S:
        raise ValueError(f"{T} queries cannot be the last of {S} keys: a causal query needs the key of its own token")


# ---------------------------------------------------------------- forward


@triton.jit
def _forward_kernel(
    query, key, value, out, lse, scale, H, T, S,
    GROUP: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One program: M queries of one head, which pass over the keys from the left, N at a time."""
    head, block = _place(tl.cdiv(T, M))
    if CAUSAL:
        block = tl.cdiv(T, M) - 1 - block  # late queries see most keys: they start first, so that the end is even
    b, h = head // H, head % H
    start = block * M
    rows = start + tl.arange(0, M)
    q = query.load([b, h, start, 0]).reshape(M, D)

    acc = tl.zeros([M, D], tl.float32)
    top = tl.full([M], float("-inf"), tl.float32)  # the largest score so far
    total = tl.zeros([M], tl.float32)  # Σ exp(score − top), of scaled scores
    # Keys before `clear` are seen by every row of the tile and need no mask; the others, up to `stop`, by some.
    clear, stop = _bounds(start, T, S, M, N, CAUSAL)
    acc, top, total = _pass_keys(q, key, value, b, h // GROUP, rows, 0, clear, T, S, scale, acc, top, total, D, N, CAUSAL, False)
    acc, top, total = _pass_keys(
        q, key, value, b, h // GROUP, rows, clear, stop, T, S, scale, acc, top, total, D, N, CAUSAL, True
    )

    out.store([b, h, start, 0], (acc / total[:, None]).to(out.dtype).reshape(1, 1, M, D))
    at = lse + 2 * (head.to(tl.int64) * T + rows)
    tl.store(at, top, mask=rows < T)
    tl.store(at + 1, tl.log2(total), mask=rows < T)


@triton.jit
def _place(blocks):
    """The head and the tile of this program: all are on the grid's first axis, since the others end at 65,535."""
    return tl.program_id(0) // blocks, tl.program_id(0) % blocks


@triton.jit
def _bounds(start, T, S, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr):
    """For queries from `start` on: where keys begin that not all of them see, in whole tiles, and where those end."""
    if CAUSAL:
        clear = (start + S - T + 1) // N * N
        stop = tl.minimum(start + S - T + M, S)
    else:
        clear = S // N * N
        stop = S
    return clear, stop


@triton.jit
def _pass_keys(
    q, key, value, b, h, rows, start, stop, T, S, scale, acc, top, total,
    D: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The online softmax: whenever a larger score comes, what was added up so far shrinks to the new scale."""
    for n in tl.range(start, stop, N):
        k = key.load([b, h, n, 0]).reshape(N, D)
        scores = tl.dot(q, k.T)  # (M, N)
        if MASKED:
            scores = tl.where(_seen(rows[:, None], n + tl.arange(0, N)[None, :], T, S, CAUSAL), scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2((scores - higher[:, None]) * scale)
        shrink = tl.exp2((top - higher) * scale)
        total = total * shrink + tl.sum(weights, 1)
        v = value.load([b, h, n, 0]).reshape(N, D)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    return acc, top, total


@triton.jit
def _seen(rows, columns, T, S, CAUSAL: tl.constexpr):
    """Which key each query sees. Rows after the last query are never stored, so they may see anything."""
    if CAUSAL:
        return columns <= rows + (S - T)
    else:
        return (columns < S) & (rows >= 0)


# A custom operation, so that torch.compile takes it as it is and plans around it.
@torch.library.custom_op("course::attention", mutates_args=())
def _forward(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """The output and, for the backward pass, of each query its largest product with a key and the log₂ of its sum, (B, H, T, 2) float32."""
    (B, H, T, d_head), (kv_heads, S) = query.shape, key.shape[1:3]
    query, key, value = map(_readable, (query, key, value))
    tile = FORWARD[d_head]
    out = _empty_like(query)
    lse = query.new_empty(B, H, T, 2, dtype=torch.float32)
    _forward_kernel[(triton.cdiv(T, tile.queries) * B * H,)](
        _rows(query, tile.queries), _rows(key, tile.keys), _rows(value, tile.keys), _rows(out, tile.queries), lse,
        math.log2(math.e) / math.sqrt(d_head), H, T, S,
        GROUP=H // kv_heads, D=d_head, M=tile.queries, N=tile.keys, CAUSAL=causal, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out, lse


@_forward.register_fake
def _(query, key, value, causal):
    return _empty_like(query), query.new_empty(*query.shape[:3], 2, dtype=torch.float32)


def _empty_like(tensor: Tensor) -> Tensor:
    """Room for (B, heads, T, d_head), with a token's heads beside each other in memory where they are in `tensor`.

    So a model's projections give them, and so the next one takes them without a copy.
    """
    B, heads, T, d_head = tensor.shape
    if tensor.stride(1) < tensor.stride(2):
        return tensor.new_empty(B, T, heads, d_head).transpose(1, 2)
    return tensor.new_empty(B, heads, T, d_head)


def _rows(tensor: Tensor, rows: int) -> TensorDescriptor:
    """`tensor`, (B, heads, tokens, d_head) with any strides, as the copy engine reads it: `rows` tokens of a head at a time.

    What a tile has beyond the last token is read as zeros and not written.
    """
    return TensorDescriptor.from_tensor(tensor, [1, 1, rows, tensor.shape[-1]])


def _readable(tensor: Tensor) -> Tensor:
    """`tensor`, or a copy where the copy engine cannot read it: it wants rows of neighbours that begin at multiples of 16 bytes."""
    steps = [stride * tensor.itemsize for stride in tensor.stride()]
    if steps[-1] == tensor.itemsize and all(step > 0 and step % 16 == 0 for step in steps[:-1]) and tensor.data_ptr() % 16 == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


# ---------------------------------------------------------------- backward


@triton.jit
def _query_backward_kernel(
    query, key, value, out, grad_out, grad_query, lse, delta, scale, H, T, S,
    GROUP: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One program: M queries of one head, which pass over the keys that they see, as in the forward pass.

    It leaves δ_i = Σ_d O_id G_id for the keys' kernel. That is Σ_j weight_ij · ∂loss/∂weight_ij: what the softmax takes off each gradient.
    """
    head, block = _place(tl.cdiv(T, M))
    if CAUSAL:
        block = tl.cdiv(T, M) - 1 - block
    b, h = head // H, head % H
    start = block * M
    rows = start + tl.arange(0, M)
    q = query.load([b, h, start, 0]).reshape(M, D)
    g = grad_out.load([b, h, start, 0]).reshape(M, D)
    at = head.to(tl.int64) * T + rows
    top = tl.load(lse + 2 * at, mask=rows < T, other=float("inf"))
    rest = tl.load(lse + 2 * at + 1, mask=rows < T, other=0.0)
    mean = tl.sum(out.load([b, h, start, 0]).reshape(M, D).to(tl.float32) * g.to(tl.float32), 1)  # δ
    tl.store(delta + at, mean, mask=rows < T)
    dq = tl.zeros([M, D], tl.float32)
    clear, stop = _bounds(start, T, S, M, N, CAUSAL)
    dq = _pass_keys_again(q, g, key, value, b, h // GROUP, rows, top, rest, mean, 0, clear, T, S, scale, dq, D, N, CAUSAL, False)
    dq = _pass_keys_again(
        q, g, key, value, b, h // GROUP, rows, top, rest, mean, clear, stop, T, S, scale, dq, D, N, CAUSAL, True
    )
    grad_query.store([b, h, start, 0], (dq * (scale / LOG2_E)).to(grad_query.dtype).reshape(1, 1, M, D))


@triton.jit
def _pass_keys_again(
    q, g, key, value, b, h, rows, top, rest, mean, start, stop, T, S, scale, dq,
    D: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    for n in tl.range(start, stop, N):
        k = key.load([b, h, n, 0]).reshape(N, D)
        v = value.load([b, h, n, 0]).reshape(N, D)
        weights = tl.exp2((tl.dot(q, k.T) - top[:, None]) * scale - rest[:, None])  # (M, N)
        if MASKED:
            weights = tl.where(_seen(rows[:, None], n + tl.arange(0, N)[None, :], T, S, CAUSAL), weights, 0.0)
        grad_scores = weights * (tl.dot(g, v.T) - mean[:, None])
        dq = tl.dot(grad_scores.to(k.dtype), k, dq)
    return dq


@triton.jit
def _key_backward_kernel(
    query, key, value, grad_out, grad_key, grad_value, lse, delta, scale, kv_heads, T, S,
    GROUP: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One program: N keys of one head, which pass over the queries that see them, of all heads of their group."""
    head, block = _place(tl.cdiv(S, N))
    start = block * N
    b, kv = head // kv_heads, head % kv_heads
    columns = start + tl.arange(0, N)
    k = key.load([b, kv, start, 0]).reshape(N, D)
    v = value.load([b, kv, start, 0]).reshape(N, D)
    dk = tl.zeros([N, D], tl.float32)
    dv = tl.zeros([N, D], tl.float32)
    if CAUSAL:
        first = tl.maximum(start - (S - T), 0) // M * M  # the tile of the first query that sees any of these keys
        clear = tl.cdiv(tl.maximum(start + N - 1 - (S - T), 0), M) * M  # from here on queries see all of them
    else:
        first = 0
        clear = 0
    for h in range(kv * GROUP, (kv + 1) * GROUP):
        at = (b * kv_heads * GROUP + h) * T
        if CAUSAL:
            dk, dv = _pass_queries(
                k, v, query, grad_out, lse + 2 * at, delta + at, b, h, columns, first, tl.minimum(clear, T), T, S, scale, dk, dv, D, M, True
            )  # fmt: skip
        dk, dv = _pass_queries(
            k, v, query, grad_out, lse + 2 * at, delta + at, b, h, columns, clear, T, T, S, scale, dk, dv, D, M, False
        )
    grad_key.store([b, kv, start, 0], (dk * (scale / LOG2_E)).to(grad_key.dtype).reshape(1, 1, N, D))
    grad_value.store([b, kv, start, 0], dv.to(grad_value.dtype).reshape(1, 1, N, D))


@triton.jit
def _pass_queries(
    k, v, query, grad_out, lse, delta, b, h, columns, start, stop, T, S, scale, dk, dv,
    D: tl.constexpr, M: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """All tiles are transposed, keys × queries: then both sums over queries take their left factor from registers."""
    for m in tl.range(start, stop, M):
        rows = m + tl.arange(0, M)
        q = query.load([b, h, m, 0]).reshape(M, D)
        top = tl.load(lse + 2 * rows, mask=rows < T, other=float("inf"))  # no weight for rows after the last query
        rest = tl.load(lse + 2 * rows + 1, mask=rows < T, other=0.0)
        weights = tl.exp2((tl.dot(k, q.T) - top[None, :]) * scale - rest[None, :])  # (N, M)
        if MASKED:
            weights = tl.where(columns[:, None] <= rows[None, :] + (S - T), weights, 0.0)
        g = grad_out.load([b, h, m, 0]).reshape(M, D)
        dv = tl.dot(weights.to(g.dtype), g, dv)
        grad_weights = tl.dot(v, g.T)  # (N, M)
        grad_scores = weights * (grad_weights - tl.load(delta + rows, mask=rows < T, other=0.0)[None, :])
        dk = tl.dot(grad_scores.to(q.dtype), q, dk)
    return dk, dv


@torch.library.custom_op("course::attention_backward", mutates_args=())
def _backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    (B, H, T, d_head), (kv_heads, S) = query.shape, key.shape[1:3]
    grads = tuple(_empty_like(tensor) for tensor in (query, key, value))
    delta = lse.new_empty(B, H, T)
    query, key, value, grad_out = map(_readable, (query, key, value, grad_out))
    scale = math.log2(math.e) / math.sqrt(d_head)
    same = dict(GROUP=H // kv_heads, D=d_head, CAUSAL=causal)

    tile = QUERY_BACKWARD[d_head]
    q, o, g, grad_q = (_rows(tensor, tile.queries) for tensor in (query, out, grad_out, grads[0]))
    k, v = _rows(key, tile.keys), _rows(value, tile.keys)
    _query_backward_kernel[(triton.cdiv(T, tile.queries) * B * H,)](
        q, k, v, o, g, grad_q, lse, delta, scale, H, T, S,
        M=tile.queries, N=tile.keys, num_warps=tile.warps, num_stages=tile.stages, **same,
    )  # fmt: skip
    tile = KEY_BACKWARD[d_head]
    q, g = _rows(query, tile.queries), _rows(grad_out, tile.queries)
    k, v, grad_k, grad_v = (_rows(tensor, tile.keys) for tensor in (key, value, *grads[1:]))
    _key_backward_kernel[(triton.cdiv(S, tile.keys) * B * kv_heads,)](
        q, k, v, g, grad_k, grad_v, lse, delta, scale, kv_heads, T, S,
        M=tile.queries, N=tile.keys, num_warps=tile.warps, num_stages=tile.stages, **same,
    )  # fmt: skip
    return grads


@_backward.register_fake
def _(grad_out, query, key, value, out, lse, causal):
    return tuple(_empty_like(tensor) for tensor in (query, key, value))


def _remember(ctx, inputs, output):
    query, key, value, ctx.causal = inputs
    ctx.save_for_backward(query, key, value, *output)
    ctx.mark_non_differentiable(output[1])


_forward.register_autograd(
    lambda ctx, grad_out, _: (*_backward(grad_out, *ctx.saved_tensors, ctx.causal), None), setup_context=_remember
)
