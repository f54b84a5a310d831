"""A student's own GPT: the functions that their answers of chapters ch04 to ch12 define, each tried, then put together."""

import ast
import io
import itertools
import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

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


@dataclass
class Piece:
    """A function of a GPT: its name, the chapter that asks for it, the function, and whose it is, in words."""

    name: str
    chapter: str
    function: Callable
    whose: str
    part: Callable | None = None  # of the GPT that is running: what a call of the piece by other answers means there

    def __call__(self, *given, **named):
        return (self.part or self.function)(*given, **named)


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


def _parts() -> Iterator[tuple[str, str, str, Callable, tuple]]:
    """Of each function: its name, notebook and exercise, the course's own, and arguments to try it on."""

    def heads(x, W_q, W_k, W_v, W_o, H, allowed):
        return merge_heads(masked(*(split_heads(x @ W, H) for W in (W_q, W_k, W_v)), attn_mask=allowed)) @ W_o

    def nucleus(probs, p):
        share, order = probs.sort(descending=True, stable=True)
        return order[share.cumsum(0) - share < p].tolist()

    generator, T = torch.Generator().manual_seed(0), 50  # as many tokens as the text of the chapter
    x, W, narrow = (torch.randn(*s, 12, generator=generator).double() for s in [(2, T), (4, 12), (12,)])
    tiny = GPT(Config(V=9, d_model=12, n_layers=3, n_heads=2, n_kv_heads=1)).double().requires_grad_(False)
    ids, grouped = torch.randint(9, (2, T), generator=generator), (narrow[:, :6], narrow[:, 6:])
    yield "masked_attention", "ch04_attention", "attention", masked, (x, 2 * x, x, torch.ones(2, T, T).tril().bool())
    yield "multi_head_attention", "ch05_multi_head", "multi_head", heads, (x, *W, 3, torch.ones(T, T).tril().bool())
    yield "norm", "ch07_residual_norm", "norms", lambda x, w, _, eps: rms_norm(x, w, eps), (x / 99, x[0, 0], None, 1e-5)
    turn = (x, torch.arange(T), 12, 10_000.0)
    yield "rotate", "ch08_position_rope", "rope", lambda x, t, _, theta: rope(x, t, theta, "interleaved"), turn
    yield "rms_norm", "ch09_block", "parts", rms_norm, (x / 99, x[0, 0], 1e-5)
    yield "swiglu", "ch09_block", "parts", swiglu, (x, *W[:3])
    yield "block", "ch09_block", "pattern", _block, (x, *(lambda h, n=n: n * h.tanh() for n in (1, 2, 3, 4)))
    yield "attention", "ch09_block", "attention", _attention, (x, W[0], *grouped, W[3], 2, 1)
    yield "gpt", "ch09_block", "gpt", _gpt, (ids, weights_of(tiny), 2, 1)
    yield "temper", "ch12_inference", "temperature", lambda z, tau: (z / tau).softmax(-1), (x[0], 0.7)
    yield "nucleus", "ch12_inference", "top_p", nucleus, (torch.tensor([1, 2, 4, 1]).double() / 8, 0.7)


class _TooLong(BaseException): ...  # not an Exception, which an answer may catch


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Stop what takes longer, where the system can: in the main thread, on Linux and macOS."""

    def stop(*_):
        raise _TooLong(f"takes longer than {seconds:g} seconds")

    before = None
    with suppress(AttributeError, ValueError):  # on Windows; in another thread
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _apart(function: Callable) -> Callable:
    """The function, given copies: what an answer changes in place is changed nowhere else."""
    return lambda *given, **named: function(*(x.contiguous().clone() if isinstance(x, Tensor) else x for x in given), **named)


def _cells(path: Path, exercise: str) -> tuple[list[str], str, list[str]]:
    """The cells of code above an exercise's answer, the answer, and those from there to its test; without magics."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    ids = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in cells]
    sources = [re.sub(r"(?m)^\s*[%!]+[a-z].*$", "", "".join(cell["source"])) for cell in cells]
    at = ids.index(f"{exercise}-answer")
    return sources[:at], sources[at], sources[at + 1 : (*ids, exercise).index(exercise)]


def _define(sources: list[str], names: dict) -> None:
    """Run the imports, functions, classes and constants of cells, and nothing else in them."""
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    for source in sources:
        with suppress(SyntaxError):
            for node in ast.parse(source).body:
                if isinstance(node, kinds) or isinstance(getattr(node, "value", None), ast.Constant):
                    with suppress(Exception):
                        exec(compile(ast.Module([node], []), "a cell", "exec"), names)


def _problem(result, expected) -> str:
    if isinstance(expected, Tensor) and not isinstance(result, Tensor):
        return f"gives a value of type {type(result).__name__}"
    result, expected = torch.as_tensor(result), torch.as_tensor(expected)
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return f"gives {result.dtype} {tuple(result.shape)}, not {expected.dtype} {tuple(expected.shape)}"
    gap = float((result - expected).abs().max())
    return "" if gap < 1e-9 else f"differs by {gap:.2g}"


def collect(folder: str | Path, seconds: float = 5.0) -> list[Piece]:
    """The functions of a GPT from the notebooks of a folder, each tried on a small input; else the course's, with the reason.

    The folder has ch04_attention/ch04_attention.ipynb and the others, as last saved. Each answer in them is run, for so many seconds.
    """
    found = []
    for name, stem, exercise, own, given in _parts():
        names, chapter, function = {}, stem.split("_")[0], None
        try:
            above, answer, below = _cells(Path(folder, stem, f"{stem}.ipynb"), f"{chapter}-{exercise}")
            _define(above, names)
            names |= {each.name: each for each in found}
            with _within(seconds), redirect_stdout(io.StringIO()):
                exec(compile(answer, f"{chapter}-{exercise}", "exec"), names)
                _define(below, names)
                function = names.get(name)
                problem = _problem(_apart(function)(*given), own(*given)) if function else "is not there"
        except (NotImplementedError, FileNotFoundError):
            problem = "is not there"
        except _TooLong as late:
            problem = str(late)
        except (Exception, SystemExit) as error:
            problem = f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}".rstrip(": ")
        whose = f"the course's, since yours {problem}" if problem else "yours"
        found.append(Piece(name, chapter, own if problem else function, whose))
    return found


def assemble(pieces: list[Piece], model: GPT) -> Callable[..., Tensor]:
    """A function from ids (B, T), and a cache that it ignores, to logits (B, T, V), by the pieces on the weights of `model`.

    Three chapters asked for attention, which take turns layer by layer: `masked_attention` on rows that `rotate` turned,
    `multi_head_attention` on such rows, and `attention`. `norm` and `rms_norm` take turns, too.
    """
    functions, p, c = {piece.name: piece.function for piece in pieces}, weights_of(model), model.config
    mine = {name: _apart(function) for name, function in functions.items()}
    picks = [torch.eye(3 * c.d_head).roll(i * c.d_head, 0) * (torch.arange(3 * c.d_head) < c.d_head) for i in range(3)]
    picks = [torch.block_diag(*[pick] * c.n_heads).to(p["E"].dtype) for pick in picks]  # each (3 d_model, 3 d_model)
    pairs = layout_permutation(c.d_head).argsort()  # to neighbours: in queries and keys alike, so that no score changes

    def rows(*given):
        turned = _turned_heads(*given, lambda each, places: mine["rotate"](each[..., pairs], places, c.d_head, c.theta))
        return (each.repeat_interleave(c.n_heads // each.shape[1], dim=1) for each in turned)  # each (B, H, T, d_head)

    def by_hand(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
        allowed = torch.ones(len(x), c.n_heads, x.shape[1], x.shape[1]).tril().bool()  # its leading axes are those of the rows
        return merge_heads(mine["masked_attention"](*rows(x, W_q, W_k, W_v, n_heads, n_kv_heads), allowed)) @ W_o

    def in_heads(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):  # projected already: the matrices pick thirds of each head's row
        query, key, value = rows(x, W_q, W_k, W_v, n_heads, n_kv_heads)
        wide = merge_heads(torch.cat([3**0.5 * query, key, value], dim=-1))  # (B, T, 3 d_model)
        allowed, same = torch.ones(x.shape[1], x.shape[1]).tril().bool(), torch.eye(3 * c.d_model).to(x)
        out = mine["multi_head_attention"](wide, *picks, same, c.n_heads, allowed)
        return merge_heads(split_heads(out, c.n_heads)[..., : c.d_head]) @ W_o

    attentions = itertools.cycle([by_hand, in_heads, mine["attention"]])
    norms = itertools.cycle([lambda x, weight, eps: mine["norm"](x, weight, None, eps), mine["rms_norm"]])
    parts = {name: mine[name] for name in ("block", "swiglu")}
    parts["attention"] = lambda *given, **named: next(attentions)(*given, **named)
    parts["rms_norm"] = lambda *given, **named: next(norms)(*given, **named)

    def logits(ids, cache=None):
        for piece in pieces:
            piece.part = parts.get(piece.name)
        return functions["gpt"](ids, p, c.n_heads, c.kv_heads, **(parts if functions["gpt"] is _gpt else {}))

    return logits
