"""Greedy decoding of a `course.model.GPT` at the speed of its memory: the fast twin of calling it with a `KVCache`.

One new token of one sequence needs each weight once and little arithmetic, so the bytes of the weights over the bandwidth bound
it. What costs time in the plain form is that each of some hundred small kernels is started by Python. Here

- a step is five kernels a layer: norm and projections, attention, output projection, norm and first half of the feed-forward
  network, second half; norms, biases, activations and residual additions are inside of them;
- a norm needs no pass of its own: its weight is multiplied into the matrix behind it beforehand, and its mean and scale,
  which are sums over the same inputs as the products, are applied to the sum;
- the cache has its full size from the start, so that addresses never change, and the position is a number on the GPU;
- so all steps are the same work on the same addresses, and a CUDA graph starts one as a whole; another reads a part of the prompts;
- for one sequence, on Hopper, each kernel is started while the one before it still runs: it fetches its first weights, which depend
  on nothing, and then waits (programmatic dependent launch).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from course.kernels import check_device
from course.kernels.rope import rotations
from course.model import GPT

__all__ = ["Decoder", "captured"]

# Of a program of a linear layer: its outputs, how many inputs it has at a time, warps, tiles under way. By rows at most; for a layer
# with more outputs than inputs, for any other, and for the head.
PROGRAMS = {
    1: ((2, 512, 2, 3), (2, 1024, 4, 3), (2, 512, 2, 3)),
    4: ((2, 256, 2, 3), (2, 1024, 4, 3), (2, 256, 2, 3)),
    8: ((2, 128, 2, 3), (1, 512, 4, 3), (2, 128, 2, 3)),
    16: ((32, 128, 2, 3), (16, 256, 2, 3), (32, 128, 2, 3)),
    32: ((32, 128, 4, 3), (16, 256, 2, 3), (128, 64, 4, 3)),
    256: ((32, 128, 4, 3),) * 3,  # not tried; more inputs at a time would not fit into shared memory
}
FEW = 8  # rows up to which a program adds products up itself; the matrix unit takes 16 at least
HEAD = 16  # times as many outputs as inputs has no layer but the head
PROMPT_ROWS = 32  # of all sequences together, while prompts are read
KEYS = 256  # of a step of the attention's loop
CHOICES = 16_384  # of a step over the logits


class Decoder:
    """A GPT that continues B sequences of up to `length` tokens, prompt and new ones together.

    Args:
        model: on a GPU, in bfloat16 or float16; its weights are read when the decoder is made.
        B: how many sequences at a time.
        length: how many tokens the cache has room for.

    Raises:
        TypeError: if the model is not in half precision.
        ValueError: if B or length is not positive, the length is beyond the model's positions, or d_head is no power of two.
    """

    @torch.no_grad()
    def __init__(self, model: GPT, B: int, length: int):
        config, weight = model.config, model.embedding.weight
        check_device(weight)
        if weight.dtype not in (torch.bfloat16, torch.float16):
            raise TypeError(f"the model must be in bfloat16 or float16, got {weight.dtype}: model.bfloat16()")
        if B < 1 or length < 1:
            raise ValueError(f"B and length must be positive, got {B} and {length}")
        if config.position == "learned" and length > config.T_max:
            raise ValueError(f"{length} tokens are more than the T_max = {config.T_max} learned positions")
        if config.qk_norm or config.n_heads * config.d_head != config.d_model:
            raise ValueError("the kernels have no norm of queries and keys, and no head_width of its own: use the plain model")
        if config.d_head & (config.d_head - 1):
            raise ValueError(f"d_head must be a power of two, got {config.d_head}")
        self.model, self.B, self.length = model, B, length
        self.layers = [_Layer(block) for block in model.blocks]
        self.head = _Linear([model.head], model.norm)
        cache = (config.n_layers, B, config.kv_heads, length, config.d_head)
        self.keys, self.values = weight.new_zeros(cache), weight.new_zeros(cache)
        self.tokens = torch.zeros(B, length + 1, dtype=torch.int64, device=weight.device)
        self.position = torch.zeros(1, dtype=torch.int64, device=weight.device)  # of the token that is read next
        self.rotations = None
        if config.position == "rope":
            self.rotations = rotations(torch.arange(length, device=weight.device), config.d_head, config.theta)
        self.part = min(length, max(1, PROMPT_ROWS // B))  # tokens of a prompt that are read at once
        self.graph = self.prompt_graph = None

    @torch.no_grad()
    def generate(self, ids: Tensor, new: int) -> Tensor:
        """The prompts with `new` more tokens each, always the likeliest: ids (B, T) → (B, T + new).

        Raises:
            ValueError: if ids are not (B, T) with at least one token, or there is no room for all tokens.
        """
        if ids.ndim != 2 or ids.shape[0] != self.B or not ids.shape[1]:
            raise ValueError(f"ids must be ({self.B}, T), at least one token each, got {tuple(ids.shape)}")
        T = ids.shape[1]
        if new < 0 or T + new > self.length:
            raise ValueError(f"{T} tokens and {new} new ones do not fit into a length of {self.length}")
        self.start(ids)
        if self.graph is None and ids.is_cuda:
            self.graph = captured(self._step)  # it ran once, and writes the same again
            self.position.fill_(T - 1)
        for _ in range(new):
            self.graph.replay() if self.graph else self._step()
        return self.tokens[:, : T + new].clone()

    @torch.no_grad()
    def start(self, ids: Tensor) -> None:
        """Take the prompts ids (B, T): all but the last token of each is read, a part at a time.

        A part may reach beyond the prompt or begin before the last one's end: tokens are read again when their turn comes.
        """
        T = ids.shape[1]
        self.tokens[:, :T] = ids
        for start in range(0, T - 1, self.part):
            self.position.fill_(min(start, self.length - self.part))
            if self.prompt_graph is None and ids.is_cuda:
                self.prompt_graph = captured(lambda: self.read(self.part))
            self.prompt_graph.replay() if self.prompt_graph else self.read(self.part)
        self.position.fill_(T - 1)

    def _step(self) -> None:
        """Read the token at `position`, write the likeliest next one behind it, go on."""
        self.logits = self.read()  # (B, V)
        early = _starts_early(self.logits.device, self.B)
        _choose_kernel[(self.B,)](
            self.logits, self.tokens, self.position, self.tokens.shape[1], self.model.config.V, EARLY=early,
            BLOCK=CHOICES, num_warps=16, launch_pdl=early,
        )  # fmt: skip
        self.position += 1

    def read(self, new: int = 1) -> Tensor:
        """The logits of what follows each of the `new` tokens from `position` on, (B · new, V). They are in the cache then."""
        config, table = self.model.config, self.model.embedding.weight
        x = table.new_empty(self.B * new, config.d_model)
        learned = config.position == "learned"
        _embed_kernel[(len(x),)](
            self.tokens, self.position, table, self.model.position.weight if learned else table, x, self.tokens.shape[1], config.d_model,
            NEW=new, LEARNED=learned, WIDTH=triton.next_power_of_2(config.d_model),
        )  # fmt: skip
        for index, layer in enumerate(self.layers):
            mixed = self._attend(layer.projections(x), index, new)  # (B new, d_model)
            x = layer.out(mixed, add=x)
            x = layer.down(layer.up(x), add=x)
        return self.head(x)

    def _attend(self, projected: Tensor, layer: int, new: int) -> Tensor:
        config, early = self.model.config, _starts_early(projected.device, len(projected))
        out = projected.new_empty(len(projected), config.d_model)
        table = self.rotations if self.rotations is not None else projected
        _attention_kernel[len(projected), config.kv_heads](
            projected, self.keys[layer], self.values[layer], table, self.position, out, self.length, config.d_head**-0.5, NEW=new,
            H=config.n_heads, KV_HEADS=config.kv_heads, HALF=config.d_head // 2, KEYS=KEYS, ROPE=self.rotations is not None,
            EARLY=early, num_warps=8 if early else 4, launch_pdl=early,
        )  # fmt: skip
        return out


def captured(step, *generators: torch.Generator) -> torch.cuda.CUDAGraph:
    """A CUDA graph of what `step` does, which draws anew from the generators at each replay.

    The step before it compiles the kernels, on a stream of its own, as capturing wants it.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        step()
    return graph


def _starts_early(device: torch.device, rows: int) -> bool:
    """Whether a kernel is started before the one before it has ended: from Hopper on, for few rows.

    With 32 the programs that wait took the place of those that work: a step was slower by a seventh.
    """
    return rows <= FEW and device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


class _Layer:
    """A block's linear layers as the kernels read them: query, key and value in one matrix, norms folded in."""

    def __init__(self, block: nn.Module):
        attention, ffn = block.attention, block.ffn
        self.projections = _Linear([attention.query, attention.key, attention.value], block.norm_1)
        self.out = _Linear([attention.out])
        self.up = _Linear([ffn.up], block.norm_2, ffn.kind, _Linear([ffn.gate], block.norm_2) if ffn.kind == "swiglu" else None)
        self.down = _Linear([ffn.down])


class _Linear:
    """activation(norm(x) Wᵀ + bias) + add: x (B, K) → (B, N). With SwiGLU, `gate` is the layer that is activated.

    With r = 1/√(variance + eps), and the norm's weight s and bias h:
    Σ_k W_nk ((x_k − mean) r s_k + h_k) = r (Σ_k W'_nk x_k − mean Σ_k W'_nk) + Σ_k W_nk h_k, where W'_nk = W_nk s_k.
    """

    def __init__(
        self, layers: list[nn.Linear], norm: nn.Module | None = None, activation: str = "none", gate: "_Linear | None" = None
    ):
        self.weight = torch.cat([layer.weight for layer in layers])  # (N, K)
        self.bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers]).float()  # (N,)
        self.norm, self.eps, self.activation, self.gate = "none", 0.0, activation, gate
        if norm is not None:
            wide = self.weight.float()
            if isinstance(norm, nn.LayerNorm):
                shift = wide @ norm.bias.float()  # (N,)
                self.bias = shift if self.bias is None else self.bias + shift
            self.weight = (wide * norm.weight.float()).to(self.weight.dtype)
            self.norm, self.eps = "layer" if isinstance(norm, nn.LayerNorm) else "rms", norm.eps
        self.sums = self.weight.float().sum(dim=1)  # (N,), of the rounded weights, so that a mean cancels exactly

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        (B, K), N = x.shape, self.weight.shape[0]
        out = x.new_empty(B, N)
        gate, early, rows = self.gate or self, _starts_early(x.device, B), triton.next_power_of_2(B)
        kind = 2 if N > HEAD * K else 0 if N > K else 1
        columns, width, warps, stages = PROGRAMS[next((most for most in PROGRAMS if rows <= most), max(PROGRAMS))][kind]
        if rows > FEW:
            rows = max(16, rows)
        bias, gate_bias, added = (
            self.sums if each is None else each for each in (self.bias, gate.bias, add)
        )  # unread where None
        _linear_kernel[(triton.cdiv(N, columns),)](
            x, self.weight, bias, self.sums, gate.weight, gate_bias, gate.sums, added, out, B, N, K, self.eps,
            NORM=self.norm, ACTIVATION=self.activation, BIAS=self.bias is not None, ADD=add is not None,
            EARLY=early, FEW=rows <= FEW, ROWS=rows, COLUMNS=columns, WIDTH=width, num_warps=warps, num_stages=stages,
            launch_pdl=early,
        )  # fmt: skip
        return out


@triton.jit
def _linear_kernel(
    x, weight, bias, sums, gate, gate_bias, gate_sums, add, out, B, N, K, eps, NORM: tl.constexpr, ACTIVATION: tl.constexpr,
    BIAS: tl.constexpr, ADD: tl.constexpr, EARLY: tl.constexpr, FEW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One program: COLUMNS outputs of all rows."""
    rows = tl.arange(0, ROWS)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    if ROWS == 1:
        acc = tl.zeros([COLUMNS, WIDTH], tl.float32)
        gate_acc = tl.zeros([COLUMNS, WIDTH], tl.float32)
    elif FEW:
        acc = tl.zeros([ROWS, COLUMNS, WIDTH], tl.float32)
        gate_acc = tl.zeros([ROWS, COLUMNS, WIDTH], tl.float32)
    else:
        acc = tl.zeros([ROWS, COLUMNS], tl.float32)
        gate_acc = tl.zeros([ROWS, COLUMNS], tl.float32)
    total = tl.zeros([ROWS, WIDTH], tl.float32)
    squares = tl.zeros([ROWS, WIDTH], tl.float32)
    inputs = tl.arange(0, WIDTH)
    if FEW:  # weights depend on no kernel before: their first tile is under way while that still runs
        w = _tile(weight, columns, inputs, N, K)
        g = _tile(gate, columns, inputs, N, K) if ACTIVATION == "swiglu" else w
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    near = tl.zeros([ROWS], tl.float32)
    if NORM == "layer":  # one number of the row: without it the others have a small mean, and their variance does not cancel
        near = tl.load(x + rows * K, mask=rows < B, other=0.0).to(tl.float32)
    for start in range(0, K, WIDTH):
        values = _tile(x, rows, start + inputs, B, K)  # (ROWS, WIDTH)
        if FEW:
            acc = _add_products(acc, values, w, ROWS, FEW)
            w = _tile(weight, columns, start + WIDTH + inputs, N, K)  # the next; nothing is read beyond the last input
            if ACTIVATION == "swiglu":
                gate_acc = _add_products(gate_acc, values, g, ROWS, FEW)
                g = _tile(gate, columns, start + WIDTH + inputs, N, K)
        else:  # the compiler reads ahead by itself, for the matrix unit
            acc = _add_products(acc, values, _tile(weight, columns, start + inputs, N, K), ROWS, FEW)
            if ACTIVATION == "swiglu":
                gate_acc = _add_products(gate_acc, values, _tile(gate, columns, start + inputs, N, K), ROWS, FEW)
        if NORM != "none":
            wide = tl.where((start + inputs < K)[None, :], values.to(tl.float32) - near[:, None], 0.0)
            total += wide
            squares += wide * wide
    mean = near
    inverse = tl.full([ROWS], 1.0, tl.float32)
    if NORM == "layer":
        off = tl.sum(total, 1) / K
        mean += off
        inverse = tl.rsqrt(tl.sum(squares, 1) / K - off * off + eps)
    elif NORM == "rms":
        inverse = tl.rsqrt(tl.sum(squares, 1) / K + eps)
    acc = _finish(acc, mean, inverse, bias, sums, columns, N, NORM, BIAS, ROWS, FEW)
    if ACTIVATION == "swiglu":
        gate_acc = _finish(gate_acc, mean, inverse, gate_bias, gate_sums, columns, N, NORM, BIAS, ROWS, FEW)
        acc *= gate_acc * tl.sigmoid(gate_acc)
    elif ACTIVATION == "gelu":
        acc = 0.5 * acc * (1 + tl.erf(acc * 0.7071067811865476))
    elif ACTIVATION == "gelu_tanh":
        # ½ (1 + tanh z) = σ(2z), with z = √(2/π) (x + 0.044715 x³)
        acc *= tl.sigmoid(1.5957691216057308 * (acc + 0.044715 * acc * acc * acc))
    at = rows[:, None] * N + columns[None, :]
    inside = (rows < B)[:, None] & (columns < N)[None, :]
    if ADD:
        acc += tl.load(add + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _finish(
    acc, mean, inverse, bias, sums, columns, N, NORM: tl.constexpr, BIAS: tl.constexpr, ROWS: tl.constexpr, FEW: tl.constexpr
):
    """Add up what few rows have kept apart, then what the norm and the bias do to the sums: (ROWS, COLUMNS)."""
    if ROWS == 1:
        acc = tl.sum(acc, 1)[None, :]
    elif FEW:
        acc = tl.sum(acc, 2)
    if NORM != "none":
        acc -= mean[:, None] * tl.load(sums + columns, mask=columns < N, other=0.0)[None, :]
        acc *= inverse[:, None]
    if BIAS:
        acc += tl.load(bias + columns, mask=columns < N, other=0.0)[None, :]
    return acc


@triton.jit
def _tile(matrix, rows, columns, n, d):
    return tl.load(matrix + rows[:, None] * d + columns[None, :], mask=(rows < n)[:, None] & (columns < d)[None, :], other=0.0)


@triton.jit
def _add_products(acc, values, w, ROWS: tl.constexpr, FEW: tl.constexpr):
    """For few rows the products are kept apart, (ROWS, COLUMNS, WIDTH), and added up at the end; one row has two axes, which is faster."""
    if ROWS == 1:
        return acc + w.to(tl.float32) * values.to(tl.float32)
    elif FEW:
        return acc + w.to(tl.float32)[None, :, :] * values.to(tl.float32)[:, None, :]
    else:
        return tl.dot(values, w.T, acc)


@triton.jit
def _attention_kernel(
    projected, keys, values, rotations, position, out, length, scale, NEW: tl.constexpr, H: tl.constexpr, KV_HEADS: tl.constexpr,
    HALF: tl.constexpr, KEYS: tl.constexpr, ROPE: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """One program: one of a sequence's NEW tokens, one head of keys with the queries of its group.

    It writes the token's key and value into the cache. Those of new tokens before it, which other programs write, it takes from `projected`.
    """
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    b, i, kv = tl.program_id(0) // NEW, tl.program_id(0) % NEW, tl.program_id(1)
    S = tl.load(position)  # tokens before the new ones
    pairs, wide = tl.arange(0, HALF), tl.arange(0, 2 * HALF)
    width = (H + 2 * KV_HEADS) * 2 * HALF
    first = projected + b * NEW * width
    keys += (b * KV_HEADS + kv).to(tl.int64) * length * 2 * HALF
    values += (b * KV_HEADS + kv).to(tl.int64) * length * 2 * HALF
    left, right = _rotated(first + i * width + (H + kv) * 2 * HALF, rotations, S + i, length, HALF, ROPE)
    own_value = tl.load(first + i * width + (H + KV_HEADS + kv) * 2 * HALF + wide)
    tl.store(keys + (S + i) * 2 * HALF + pairs, left.to(keys.dtype.element_ty))
    tl.store(keys + (S + i) * 2 * HALF + HALF + pairs, right.to(keys.dtype.element_ty))
    tl.store(values + (S + i) * 2 * HALF + wide, own_value)

    for h in range(kv * (H // KV_HEADS), (kv + 1) * (H // KV_HEADS)):
        a, c = _rotated(first + i * width + h * 2 * HALF, rotations, S + i, length, HALF, ROPE)
        top = tl.sum(a * left + c * right, 0) * scale  # the online softmax starts with the token itself
        total = 1.0
        acc = own_value.to(tl.float32)
        for j in range(0, i):
            k_left, k_right = _rotated(first + j * width + (H + kv) * 2 * HALF, rotations, S + j, length, HALF, ROPE)
            v = tl.load(first + j * width + (H + KV_HEADS + kv) * 2 * HALF + wide)
            score = tl.sum(a * k_left + c * k_right, 0) * scale
            higher = tl.maximum(top, score)
            shrink = tl.exp(top - higher)
            acc = acc * shrink + tl.exp(score - higher) * v.to(tl.float32)
            total = total * shrink + tl.exp(score - higher)
            top = higher
        for start in range(0, S, KEYS):
            seen = start + tl.arange(0, KEYS)
            at = seen[:, None] * 2 * HALF + pairs[None, :]
            inside = (seen < S)[:, None] & (pairs >= 0)[None, :]
            k_left = tl.load(keys + at, mask=inside, other=0.0).to(tl.float32)
            k_right = tl.load(keys + at + HALF, mask=inside, other=0.0).to(tl.float32)
            v = tl.load(
                values + seen[:, None] * 2 * HALF + wide[None, :], mask=(seen < S)[:, None] & (wide >= 0)[None, :], other=0.0
            )
            scores = tl.sum(k_left * a[None, :] + k_right * c[None, :], 1) * scale
            scores = tl.where(seen < S, scores, float("-inf"))
            higher = tl.maximum(top, tl.max(scores, 0))
            weights = tl.exp(scores - higher)
            shrink = tl.exp(top - higher)
            acc = acc * shrink + tl.sum(weights[:, None] * v.to(tl.float32), 0)
            total = total * shrink + tl.sum(weights, 0)
            top = higher
        tl.store(out + ((b * NEW + i) * H + h) * 2 * HALF + wide, (acc / total).to(out.dtype.element_ty))


@triton.jit
def _rotated(row, rotations, at, length, HALF: tl.constexpr, ROPE: tl.constexpr):
    """A head's query or key in two halves, turned by the angles of its position."""
    pairs = tl.arange(0, HALF)
    left = tl.load(row + pairs).to(tl.float32)
    right = tl.load(row + HALF + pairs).to(tl.float32)
    if ROPE:
        cos = tl.load(rotations + at * HALF + pairs)
        sin = tl.load(rotations + (length + at) * HALF + pairs)
        left, right = left * cos - right * sin, left * sin + right * cos
    return left, right


@triton.jit
def _embed_kernel(
    tokens, position, embedding, positions, x, length, d, NEW: tl.constexpr, LEARNED: tl.constexpr, WIDTH: tl.constexpr
):
    row = tl.program_id(0)
    b, at = row // NEW, tl.load(position) + row % NEW
    columns = tl.arange(0, WIDTH)
    token = tl.load(tokens + b * length + at)
    values = tl.load(embedding + token * d + columns, mask=columns < d).to(tl.float32)
    if LEARNED:
        values += tl.load(positions + at * d + columns, mask=columns < d).to(tl.float32)
    tl.store(x + row * d + columns, values.to(x.dtype.element_ty), mask=columns < d)


@triton.jit
def _choose_kernel(logits, tokens, position, length, V, EARLY: tl.constexpr, BLOCK: tl.constexpr):
    """The first of the largest logits of a row becomes the token after `position`."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
    b = tl.program_id(0)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    places = tl.zeros([BLOCK], tl.int32)
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(logits + b * V + columns, mask=columns < V, other=float("-inf")).to(tl.float32)
        places = tl.where(values > best, columns, places)
        best = tl.maximum(best, values)
    first = tl.min(tl.where(best == tl.max(best, 0), places, V), 0)
    tl.store(tokens + b * length + tl.load(position) + 1, first.to(tl.int64))
