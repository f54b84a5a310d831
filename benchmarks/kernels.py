"""The fast forms of `course.kernels` beside the plain ones and torch's own, on one GPU in one run.

    python -m benchmarks.kernels                 # benchmarks/records/{attention,memory_bound,cross_entropy}.json
    python -m benchmarks.kernels --sweep         # times of other tiles for attention: which of them the kernels should use
    python -m benchmarks.kernels --once          # attention forward and backward, for a profiler to look at (see METRICS)

Each time is measured with CUDA events, after the L2 cache was overwritten; a record keeps the median and the quartiles. Clocks
are as they are. Inputs are normal random numbers: on zeros a GPU is faster.
"""

import argparse
import json
import platform
import statistics
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import torch
import triton
from torch import Tensor
from torch._functorch import config as functorch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from course.kernels import attention as fast_attention
from course.kernels import steps
from course.kernels.cross_entropy import linear_cross_entropy
from course.kernels.norm import rms_norm
from course.kernels.rope import rope, rotations
from course.kernels.softmax import softmax
from course.kernels.swiglu import swiglu
from course.model import RMSNorm, attend
from course.position_rope import rope as plain_rope

# ncu --csv --clock-control none --kernel-name-base function --launch-skip 3 --launch-count 3 \
#     -k 'regex:^_(forward|key_backward|query_backward)_kernel$' --metrics $METRICS \
#     --log-file benchmarks/records/attention_profile.csv python -m benchmarks.kernels --once
METRICS = (
    "gpu__time_duration.sum,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active,"
    "sm__inst_issued.avg.pct_of_peak_sustained_active,sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active,"
    "sm__warps_active.avg.pct_of_peak_sustained_active,dram__throughput.avg.pct_of_peak_sustained_elapsed,"
    "lts__t_sector_hit_rate.pct,launch__registers_per_thread,launch__occupancy_limit_shared_mem"
)
RECORDS = Path(__file__).parent / "records"
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
WARM_UP, L2_BYTES = 3, 256 << 20
QUEUE_CYCLES = 2_000_000  # about a millisecond, in which Python queues the work: times are the GPU's, not Python's


# ---------------------------------------------------------------- measuring


def measure(f, repeat: int = 20) -> dict:
    """Milliseconds of f on the GPU: {"median", "quartiles": [lower, upper], "runs"}."""
    other = torch.empty(L2_BYTES, dtype=torch.int8, device="cuda")
    for _ in range(WARM_UP):
        f()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeat)]
    for start, end in pairs:
        other.zero_()
        torch.cuda._sleep(QUEUE_CYCLES)
        start.record()
        f()
        end.record()
    torch.cuda.synchronize()
    times = [start.elapsed_time(end) for start, end in pairs]
    lower, median, upper = statistics.quantiles(times, n=4)
    return {"median": round(median, 5), "quartiles": [round(lower, 5), round(upper, 5)], "runs": repeat}


def peak_bytes(f) -> int:
    """How much memory f takes at most beyond what is there before it."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    f()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def backward(f, inputs: list[Tensor]):
    """Two functions: the forward pass with the backward pass after it, and the backward pass alone."""
    inputs = [each.detach().requires_grad_() for each in inputs]
    out = f(*inputs)
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(f(*inputs), inputs, grad), lambda: torch.autograd.grad(
        out, inputs, grad, retain_graph=True
    )


def normal(*shape, dtype=torch.bfloat16) -> Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype)


def header() -> dict:
    return {
        "card": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "triton": triton.__version__, "cuda": torch.version.cuda, "python": platform.python_version()},
        "when": date.today().isoformat(),
        "ceilings": ceilings(),
    }  # fmt: skip


def ceilings() -> dict:
    """What this card reaches: bytes a second of a large copy (read and written), bfloat16 FLOP/s of a large product."""
    source = torch.randint(-128, 127, (2 << 30,), dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    copy = measure(lambda: target.copy_(source))
    a, b = normal(8192, 8192), normal(8192, 8192)
    product = measure(lambda: a @ b)
    return {
        "bytes_per_s": 2 * source.numel() / copy["median"] * 1e3, "copy": copy,
        "flop_per_s": 2 * 8192**3 / product["median"] * 1e3, "product": product,
    }  # fmt: skip


# ---------------------------------------------------------------- attention


def attention_flops(B, H, T, d_head, causal) -> float:
    """Forward: two products of T × T × d_head; a causal mask needs half. Forward and backward: 3.5 times as much."""
    return 4 * B * H * T * T * d_head * (0.5 if causal else 1)


def torch_attention(backend, causal):
    def f(query, key, value):
        with sdpa_kernel(BACKENDS[backend]):
            return F.scaled_dot_product_attention(query, key, value, is_causal=causal)

    return f


def forms_of_attention(causal, plain=True) -> dict:
    forms = {"ours": lambda *inputs: fast_attention.attention(*inputs, causal=causal)}
    forms |= {name: torch_attention(name, causal) for name in BACKENDS}
    return forms | ({"plain": attend} if plain and causal else {})


SHAPES = [(2, 16, 8192, 128, True), (1, 16, 16384, 128, False), (2, 16, 8192, 64, True)]
SHAPES += [(2, 16, T, 128, True) for T in (512, 1024, 2048, 4096, 16384)]


def attention_record() -> dict:
    results = []
    for B, H, T, d_head, causal in SHAPES:
        inputs = [normal(B, H, T, d_head) for _ in range(3)]
        flops = attention_flops(B, H, T, d_head, causal)
        result = {"B": B, "H": H, "T": T, "d_head": d_head, "causal": causal, "dtype": "bfloat16", "forms": {}}
        for name, f in forms_of_attention(causal, plain=T <= 8192).items():
            with torch.no_grad():
                forward = measure(lambda f=f, inputs=inputs: f(*inputs))
            both_passes, _ = backward(f, inputs)
            both = measure(both_passes)
            result["forms"][name] = {
                "forward": forward, "both": both,
                "forward_tflops": round(flops / forward["median"] / 1e9, 1), "both_tflops": round(3.5 * flops / both["median"] / 1e9, 1),
                "peak_bytes": peak_bytes(both_passes),
            }  # fmt: skip
        results.append(result)
        print(
            T,
            d_head,
            causal,
            {name: (form["forward_tflops"], form["both_tflops"]) for name, form in result["forms"].items()},
            flush=True,
        )
    return {"tiles": tiles(), "steps": steps_of_attention(), "results": results}


def steps_of_attention() -> dict:
    """The forward pass, (2, 16, 8192, 128) causal, from the plain form on; each step has those before it."""
    inputs = [normal(2, 16, 8192, 128) for _ in range(3)]
    own = fast_attention.FORWARD[128]
    forms = {"plain": lambda: attend(*inputs)} | {step: lambda step=step: steps.attention(*inputs, step) for step in steps.STEPS}
    times = {name: measure(f) for name, f in forms.items()}
    for name, tile in {
        "copy engine": (steps.M, steps.N, steps.WARPS, steps.STAGES),
        "three stages": (128, 128, 8, 3),
        "small tiles": own,
    }.items():
        fast_attention.FORWARD[128] = fast_attention.Tile(*tile)
        times[name] = measure(lambda: fast_attention.attention(*inputs))
    fast_attention.FORWARD[128] = own
    print({name: time["median"] for name, time in times.items()}, flush=True)
    return times


def tiles() -> dict:
    return {name: {d_head: list(tile) for d_head, tile in getattr(fast_attention, name).items()} for name in TABLES}


TABLES = ("FORWARD", "KEY_BACKWARD", "QUERY_BACKWARD")
# (queries, keys, warps, stages)
CANDIDATES = {
    ("FORWARD", 128): [
        (128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 8, 2), (128, 64, 8, 3), (128, 64, 8, 4), (128, 64, 4, 2), (64, 128, 4, 2),
        (64, 64, 4, 2), (64, 64, 4, 3), (128, 32, 4, 3), (128, 32, 8, 4), (256, 64, 8, 2), (128, 128, 4, 2), (64, 128, 4, 1), (64, 32, 4, 3), (64, 32, 4, 4), (64, 32, 4, 5),
    ],
    ("FORWARD", 64): [
        (128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 8, 3), (128, 64, 4, 2), (128, 64, 4, 3), (64, 128, 4, 3), (64, 64, 4, 3),
        (128, 128, 4, 2), (128, 128, 4, 3), (256, 64, 8, 3), (256, 128, 8, 2), (128, 32, 4, 4),
    ],
    ("KEY_BACKWARD", 128): [
        (64, 128, 8, 1), (64, 128, 8, 2), (64, 128, 8, 3), (32, 128, 8, 2), (32, 128, 8, 3), (32, 128, 4, 2), (64, 64, 4, 2), (64, 64, 8, 2),
        (128, 64, 8, 2), (128, 64, 4, 1), (32, 64, 4, 2), (32, 64, 4, 3), (128, 128, 8, 1),
    ],
    ("KEY_BACKWARD", 64): [
        (64, 128, 8, 2), (64, 128, 8, 3), (64, 128, 4, 2), (32, 128, 4, 2), (32, 128, 4, 3), (64, 64, 4, 2), (64, 64, 4, 3), (128, 128, 8, 2),
        (128, 64, 8, 2), (128, 64, 4, 2),
    ],
    ("QUERY_BACKWARD", 128): [
        (128, 64, 8, 1), (128, 64, 8, 2), (128, 64, 8, 3), (128, 128, 8, 1), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 1), (128, 32, 8, 3),
        (128, 32, 4, 2), (64, 32, 4, 3), (64, 128, 8, 2), (128, 64, 4, 1),
    ],
    ("QUERY_BACKWARD", 64): [
        (128, 64, 8, 2), (128, 64, 8, 3), (128, 64, 4, 2), (128, 128, 8, 2), (64, 64, 4, 2), (64, 64, 4, 3), (128, 32, 4, 3), (64, 128, 4, 2),
    ],
}  # fmt: skip


def sweep(causal: bool = True) -> dict:
    """Milliseconds of each candidate at (2, 16, 8192): of the forward pass, or of the backward pass with this one tile changed."""
    jobs = [(*place, tile, causal) for place, candidates in CANDIDATES.items() for tile in candidates]
    with ProcessPoolExecutor(14, mp_context=get_context("spawn")) as pool:  # compiling takes longer than running
        list(pool.map(_time_tile, [(*job, 256, 1) for job in jobs]))
    found = {}
    for table, d_head, tile, _ in jobs:
        found.setdefault(f"{table} {d_head}", {})[str(tile)] = _time_tile((table, d_head, tile, causal, 8192, 8))
    return {name: dict(sorted(times.items(), key=lambda item: item[1])) for name, times in found.items()}


def _time_tile(job) -> float:
    """Infinity where the tile does not fit."""
    table, d_head, tile, causal, T, repeat = job
    usual = getattr(fast_attention, table)[d_head]
    getattr(fast_attention, table)[d_head] = fast_attention.Tile(*tile)
    query, key, value, grad = (normal(2, 16, T, d_head) for _ in range(4))
    try:
        out, lse = fast_attention._forward(query, key, value, causal)
        if table == "FORWARD":
            return measure(lambda: fast_attention._forward(query, key, value, causal), max(repeat, 2))["median"]
        return measure(lambda: fast_attention._backward(grad, query, key, value, out, lse, causal), max(repeat, 2))["median"]
    except Exception as error:
        print(table, d_head, tile, str(error)[:150], flush=True)
        return float("inf")
    finally:
        getattr(fast_attention, table)[d_head] = usual


# ---------------------------------------------------------------- what memory bounds


def plain_rms_norm(x, weight):
    module = RMSNorm(weight.shape[0])
    return torch.func.functional_call(module, {"weight": weight}, x)


def plain_swiglu(gate, up):
    return F.silu(gate) * up


def rows_of_memory_bound():
    """Name, forms by name, inputs, bytes that forward and backward must move at least, shape."""
    n, d_model, d_ff = 16384, 4096, 11008
    x = normal(n, d_model)
    yield (
        "rms_norm", {"ours": rms_norm, "torch": lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), "plain": plain_rms_norm},
        [x, normal(d_model)], 2 * x.nbytes, 3 * x.nbytes, [n, d_model],
    )  # fmt: skip
    x = normal(65536, 768)
    yield (
        "rms_norm", {"ours": rms_norm, "torch": lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), "plain": plain_rms_norm},
        [x, normal(768)], 2 * x.nbytes, 3 * x.nbytes, [65536, 768],
    )  # fmt: skip
    x = normal(n, 8192)
    yield "softmax", {"ours": softmax, "torch": lambda x: x.softmax(-1)}, [x], 2 * x.nbytes, 3 * x.nbytes, [n, 8192]
    gate, up = normal(n, d_ff), normal(n, d_ff)
    yield "swiglu", {"ours": swiglu, "plain": plain_swiglu}, [gate, up], 3 * gate.nbytes, 5 * gate.nbytes, [n, d_ff]
    B, H, T, d_head = 4, 32, 8192, 128
    x, positions = normal(B, T, H, d_head).transpose(1, 2), torch.arange(T, device="cuda")
    table = rotations(positions, d_head)
    yield (
        "rope", {"ours": lambda x: rope(x, table), "plain": lambda x: plain_rope(x, positions)},
        [x], 2 * x.nbytes, 2 * x.nbytes, [B, H, T, d_head],
    )  # fmt: skip


def memory_bound_record(bytes_per_s: float) -> dict:
    results = []
    for name, forms, inputs, forward_bytes, backward_bytes, shape in rows_of_memory_bound():
        result = {
            "kernel": name,
            "shape": shape,
            "dtype": "bfloat16",
            "bytes": {"forward": forward_bytes, "backward": backward_bytes},
            "forms": {},
        }
        if "plain" in forms:
            forms["compiled"] = torch.compile(forms["plain"])
        for form, f in forms.items():
            with torch.no_grad():
                times = {"forward": measure(lambda f=f, inputs=inputs: f(*inputs))}
            times["backward"] = measure(backward(f, inputs)[1])
            share = {p: round(result["bytes"][p] / times[p]["median"] * 1e3 / bytes_per_s, 3) for p in times}
            result["forms"][form] = times | {"share_of_copy": share}
        results.append(result)
        print(name, shape, {form: one["share_of_copy"] for form, one in result["forms"].items()}, flush=True)
    return {"results": results}


# ---------------------------------------------------------------- the loss


def plain_loss(x, weight, targets):
    return F.cross_entropy((x @ weight.T).float(), targets)


def cross_entropy_record() -> dict:
    results = []
    for n, d_model, V in [(16384, 768, 50304), (8192, 4096, 128256)]:
        targets = torch.randint(V, (n,), device="cuda")
        inputs = [normal(n, d_model), normal(V, d_model) * d_model**-0.5]
        result = {"n": n, "d_model": d_model, "V": V, "dtype": "bfloat16", "logits_bytes": 2 * n * V, "forms": {}}
        for name, f in {"ours": linear_cross_entropy, "plain": plain_loss, "compiled": torch.compile(plain_loss)}.items():
            both, _ = backward(lambda x, weight, f=f, targets=targets: f(x, weight, targets), inputs)
            time = measure(both)
            result["forms"][name] = {
                "both": time, "tflops": round(6 * n * d_model * V / time["median"] / 1e9, 1), "peak_bytes": peak_bytes(both),
            }  # fmt: skip
        results.append(result)
        print(
            n,
            d_model,
            V,
            {name: (form["both"]["median"], form["tflops"], form["peak_bytes"] / 1e9) for name, form in result["forms"].items()},
            flush=True,
        )
    return {"results": results}


# ---------------------------------------------------------------- command


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RECORDS, help="folder of the records")
    parser.add_argument("--sweep", action="store_true", help="only time other tiles of attention")
    parser.add_argument("--once", action="store_true", help="only run attention, for a profiler")
    parser.add_argument("--only", nargs="*", default=["attention", "memory_bound", "cross_entropy"], help="which records")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU here that torch can use")
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    functorch.donated_buffer = False  # a compiled backward pass is run many times
    if options.once:
        query, key, value = (normal(2, 16, 8192, 128).requires_grad_() for _ in range(3))
        for _ in range(2):
            fast_attention.attention(query, key, value).backward(normal(2, 16, 8192, 128))
        return torch.cuda.synchronize()
    if options.sweep:
        return write(options.out / "sweep.json", sweep())
    top = header()
    print(top["card"], {name: f"{top['ceilings'][name]:.3g}" for name in ("bytes_per_s", "flop_per_s")}, flush=True)
    makers = {
        "attention": attention_record, "memory_bound": lambda: memory_bound_record(top["ceilings"]["bytes_per_s"]),
        "cross_entropy": cross_entropy_record,
    }  # fmt: skip
    for name in options.only:
        write(options.out / f"{name}.json", top | makers[name]())


def write(path: Path, record: dict):
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
