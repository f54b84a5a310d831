"""A student's own GPT: the functions that their answers of chapters ch04 to ch12 define, each tried, then put together."""

import ast
import itertools
import json
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from types import FunctionType

import numpy
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as masked

from course.block import weights_of
from course.ffn import swiglu
from course.model import GPT, Config, attend
from course.multi_head import merge_heads, split_heads
from course.position_rope import layout_permutation, rope
from course.residual_norm import rms_norm

__all__ = ["Piece", "assemble", "collect"]


@dataclass(frozen=True)
class Piece:
    """A function of a GPT: its name, the chapter that asks for it, the function, and whose it is, in words."""

    name: str
    chapter: str
    function: Callable
    whose: str


# ---------------------------------------------------------------- the course's own, with which answers are compared


def _heads(x, W_q, W_k, W_v, W_o, H, allowed):
    return merge_heads(masked(*(split_heads(x @ W, H) for W in (W_q, W_k, W_v)), attn_mask=allowed)) @ W_o


def _turned_heads(x, W_q, W_k, W_v, n_heads, n_kv_heads, turn=rope):  # each (B, heads, T, d_head)
    query, key, value = split_heads(x @ W_q, n_heads), split_heads(x @ W_k, n_kv_heads), split_heads(x @ W_v, n_kv_heads)
    return *(turn(each, torch.arange(x.shape[1])) for each in (query, key)), value


def _attention(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    return merge_heads(attend(*_turned_heads(x, W_q, W_k, W_v, n_heads, n_kv_heads))) @ W_o


def _block(x, attention, ffn, norm_1, norm_2):
    x = x + attention(norm_1(x))  # (B, T, d_model)
    return x + ffn(norm_2(x))


def _gpt(ids, p, n_heads, n_kv_heads, block=_block, attention=_attention, swiglu=swiglu, rms_norm=rms_norm):
    x = p["E"][ids]  # (B, T, d_model)
    for b in p["blocks"]:
        branches = (
            lambda h, b=b: attention(h, b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads),
            lambda h, b=b: swiglu(h, b["W_gate"], b["W_up"], b["W_down"]),
        )
        x = block(x, *branches, *(lambda h, w=b[name]: rms_norm(h, w, 1e-5) for name in ("norm_1", "norm_2")))
    return rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)  # (B, T, V)


def _nucleus(probs, p):
    share, order = probs.sort(descending=True, stable=True)
    return order[share.cumsum(0) - share < p].tolist()


def _parts() -> Iterator[tuple[str, str, str, Callable, tuple]]:
    """Of each function: its name, notebook and exercise, the course's own, and arguments to try it on."""
    generator = torch.Generator().manual_seed(0)
    (x, W, narrow), past = (torch.randn(*s, 12, generator=generator).double() for s in [(2, 5), (4, 12), (12,)]), _past(5)
    tiny = GPT(Config(V=9, d_model=12, n_layers=3, n_heads=2, n_kv_heads=1)).double().requires_grad_(False)
    ids, grouped = torch.tensor([[3, 1, 4, 1, 5]]), (narrow[:, :6], narrow[:, 6:])
    branches = [lambda h, n=n: n * h.tanh() for n in (1, 2, 3, 4)]
    yield "masked_attention", "ch04_attention", "attention", masked, (x, 2 * x, x, past)
    yield "multi_head_attention", "ch05_multi_head", "multi_head", _heads, (x, *W, 3, past)
    yield "norm", "ch07_residual_norm", "norms", lambda x, w, _, eps: rms_norm(x, w, eps), (x / 99, x[0, 0], None, 1e-5)
    turn = (x, torch.arange(5), 12, 10_000.0)
    yield "rotate", "ch08_position_rope", "rope", lambda x, t, _, theta: rope(x, t, theta, "interleaved"), turn
    yield "rms_norm", "ch09_block", "parts", rms_norm, (x / 99, x[0, 0], 1e-5)
    yield "swiglu", "ch09_block", "parts", swiglu, (x, *W[:3])
    yield "block", "ch09_block", "pattern", _block, (x, *branches)
    yield "attention", "ch09_block", "attention", _attention, (x, W[0], *grouped, W[3], 2, 1)
    yield "gpt", "ch09_block", "gpt", _gpt, (ids, weights_of(tiny), 2, 1)
    yield "temper", "ch12_inference", "temperature", lambda z, tau: (z / tau).softmax(-1), (x[0], 0.7)
    yield "nucleus", "ch12_inference", "top_p", _nucleus, (torch.tensor([1, 2, 4, 1]).double() / 8, 0.7)


def _past(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


# ---------------------------------------------------------------- the student's


class _TooLong(BaseException):
    """Not an Exception, which an answer may catch."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Stop what takes longer, where the system can: in the main thread, on Linux and macOS."""

    def stop(*_):
        raise _TooLong

    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _answer(path: Path, grade_id: str, names: dict) -> dict:
    """`names` and what the answer's cell defines, run after the imports of the notebook's first cell of code."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    first = [line for line in ast.parse("".join(cells[0]["source"])).body if isinstance(line, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(first, []), str(path), "exec"), names)
    for cell in cells:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id:
            exec(compile("".join(cell["source"]), grade_id, "exec"), names)
    return names


def _problem(result, expected) -> str:
    result, expected = (torch.as_tensor(each, dtype=torch.float64) for each in (result, expected))
    if result.shape != expected.shape:
        return f"gives the shape {tuple(result.shape)}, not {tuple(expected.shape)}"
    gap = float((result - expected).abs().max())
    return "" if gap < 1e-6 else f"differs by {gap:.2g}"


def collect(folder: str | Path, seconds: float = 2.0) -> list[Piece]:
    """The functions of a GPT from the notebooks of a folder, each tried on a small input; else the course's, with the reason.

    Args:
        folder: has ch04_attention/ch04_attention.ipynb and the others, as last saved. The answers in them are run.
        seconds: how long one answer may take.
    """
    found = []
    for name, stem, exercise, own, given in _parts():
        names = {"math": math, "np": numpy, "torch": torch, "rope_half": rope} | {each.name: each.function for each in found}
        before, chapter, function = names.get(name), stem.split("_")[0], None
        try:
            with _within(seconds):
                function = _answer(Path(folder, stem, f"{stem}.ipynb"), f"{chapter}-{exercise}-answer", names).get(name)
                copies = [each.clone() if isinstance(each, Tensor) else each for each in given]
                problem = "is not there" if function is before else _problem(function(*copies), own(*given))
        except (NotImplementedError, FileNotFoundError):
            problem = "is not there"
        except _TooLong:
            problem = f"takes longer than {seconds:g} seconds"
        except Exception as error:
            problem = f"raises {type(error).__name__}: {error}"
        found.append(
            Piece(name, chapter, own, f"the course's, since yours {problem}")
            if problem
            else Piece(name, chapter, function, "yours")
        )
    return found


# ---------------------------------------------------------------- put together


def assemble(pieces: list[Piece], model: GPT) -> Callable[..., Tensor]:
    """A function from ids (B, T) to logits (B, T, V) that computes with the pieces, on the weights of `model`.

    Three chapters asked for attention, which take turns layer by layer: `masked_attention` on rows that `rotate` turned,
    `multi_head_attention` on such rows, and `attention`. `norm` and `rms_norm` take turns, too.
    The function takes a second argument, which `course.inference.generate` gives it: no cache.
    """
    mine, p, c = {piece.name: piece.function for piece in pieces}, weights_of(model), model.config
    first = torch.eye(3 * c.d_head)[:, : c.d_head]  # (3 d_head, d_head), rolled so that third i becomes the first
    picks = [torch.nn.functional.pad(first.roll(i * c.d_head, 0), (0, 2 * c.d_head)) for i in range(3)]
    picks = [torch.block_diag(*[pick] * c.n_heads).to(p["E"].dtype) for pick in picks]  # each (3 d_model, 3 d_model)

    def turn(x, positions):  # to pairs of neighbours: in queries and keys alike, so that no score changes
        return mine["rotate"](x[..., layout_permutation(c.d_head).argsort()], positions, c.d_head, c.theta)

    def rows(x, *matrices_and_heads):
        query, *shared = _turned_heads(x, *matrices_and_heads, turn)
        return query, *(each.repeat_interleave(c.n_heads // c.kv_heads, dim=1) for each in shared)

    def by_hand(x, W_q, W_k, W_v, W_o, *heads):
        return merge_heads(mine["masked_attention"](*rows(x, W_q, W_k, W_v, *heads), _past(x.shape[1]))) @ W_o

    def in_heads(x, W_q, W_k, W_v, W_o, *heads):  # the projections are done already: of each head's row, they pick a third
        query, key, value = rows(x, W_q, W_k, W_v, *heads)
        wide = merge_heads(torch.cat([3**0.5 * query, key, value], dim=-1))  # (B, T, 3 d_model)
        out = mine["multi_head_attention"](wide, *picks, torch.eye(3 * c.d_model).to(x), c.n_heads, _past(x.shape[1]))
        return merge_heads(split_heads(out, c.n_heads)[..., : c.d_head]) @ W_o

    attentions = itertools.cycle([by_hand, in_heads, mine["attention"]])
    norms = itertools.cycle([lambda x, weight, eps: mine["norm"](x, weight, None, eps), mine["rms_norm"]])
    parts = {name: mine[name] for name in ("block", "swiglu")}
    parts |= {"attention": lambda *given: next(attentions)(*given), "rms_norm": lambda *given: next(norms)(*given)}
    gpt = mine["gpt"]
    if gpt is _gpt:
        return lambda ids, cache=None: gpt(ids, p, c.n_heads, c.kv_heads, **parts)
    bound = FunctionType(gpt.__code__, gpt.__globals__ | parts, gpt.__name__, gpt.__defaults__, gpt.__closure__)
    return lambda ids, cache=None: bound(ids, p, c.n_heads, c.kv_heads)  # the same code, in which these names mean the parts
