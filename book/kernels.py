"""The page of the fast kernels, drawn from `benchmarks/records`, which `benchmarks/kernels.py` writes on a GPU."""

import io
import json
from pathlib import Path

import matplotlib.pyplot as plt

from course import plots

NAMES = {
    "ours": "course.kernels", "flash": "torch, FlashAttention", "cudnn": "torch, cuDNN", "efficient": "torch, memory-efficient",
    "plain": "plain form", "compiled": "plain form, torch.compile", "torch": "torch's function",
    "hugging_face": "Hugging Face generate",
    "hugging_face_compiled": "Hugging Face GPT-2, torch.compile", "hugging_face_eager": "Hugging Face GPT-2",
}  # fmt: skip
COLOURS = {"ours": "right", "flash": "query", "cudnn": "value", "efficient": "key", "plain": "wrong"}
FOLDER = "reference"


def records(root: Path) -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((root / "benchmarks" / "records").glob("*.json"))}


# ---------------------------------------------------------------- text


def page(records: dict[str, dict]) -> str:
    """The page as Markdown.

    Args:
        records: `attention`, `memory_bound` and `cross_entropy`, as `benchmarks/kernels.py` writes them, `decoding`, `speculative` and
            `training`.
    """
    attention, memory, loss, decoding = (records[name] for name in ("attention", "memory_bound", "cross_entropy", "decoding"))
    training, speculative = records["training"], records["speculative"]
    fastest, peer = (training["forms"][name] for name in ("ours", "hugging_face_compiled"))
    compiled = [one for one in training["tried"] if one["form"] == "hugging_face_compiled"]
    like_ours = next(one for one in compiled if one["weights"].startswith("float32"))
    several = training["several"]
    ceilings, versions = attention["ceilings"], attention["versions"]
    days = sorted(record["when"] for record in records.values())
    head = attention["results"][0]
    ours, flash, cudnn = (head["forms"][name] for name in ("ours", "flash", "cudnn"))
    return f"""# Fast kernels, measured

Beside each plain form of the course stands a fast one in `course/kernels`, written in Triton. Its README tells how the formula becomes
the kernel, step by step. This page shows what they reach. All its figures come from `benchmarks/records`,
measured from {days[0]} to {days[-1]}, where nothing else is said, on one {attention["card"]} with torch {versions["torch"]} and Triton {versions["triton"]};
`python -m benchmarks.kernels` measures your card.

That card copies {ceilings["bytes_per_s"] / 1e12:.2f} TB/s, bytes read and bytes written, and multiplies large bfloat16 matrices with
{ceilings["flop_per_s"] / 1e12:.0f} TFLOP/s. Times are medians, with the L2 cache overwritten before each run.

## Attention

{shape_of(head)}: the kernel runs at {ours["forward_tflops"]:.0f} TFLOP/s forward and {ours["both_tflops"]:.0f} forward and backward. That is
**{ours["forward_tflops"] / flash["forward_tflops"]:.2f} and {ours["both_tflops"] / flash["both_tflops"]:.2f} times** torch's FlashAttention,
and {ours["forward_tflops"] / cudnn["forward_tflops"]:.2f} and {ours["both_tflops"] / cudnn["both_tflops"]:.2f} times cuDNN's kernel.

TFLOP/s, forward / forward and backward, counted as 4 and 14 times B·H·T²·d_head, and half of that with a causal mask:

{_table(["shape", *(NAMES[name] for name in COLOURS)], [[shape_of(one), *(_speeds(one["forms"].get(name)) for name in COLOURS)] for one in attention["results"]])}

![Time of forward and backward pass against the number of tokens, both axes logarithmic. All curves rise with the square of the length at the end; the plain form lies about ten times above the kernels.](kernels-time.svg)

![Memory of forward and backward pass against the number of tokens, both axes logarithmic. The plain form rises with the square of the length, the kernels in a straight line with it.](kernels-memory.svg)

### From the formula to the kernel

The forward pass of the first shape, one step after the other:

{_table(["step", "milliseconds", "quartiles"], [[name, f"{time['median']:.2f}", "{:.2f} to {:.2f}".format(*time["quartiles"])] for name, time in attention["steps"].items()])}

## What memory bounds

These kernels do little arithmetic: the bytes that they must read and write, over the time that they take, against the card's copy.

Share of the copy bandwidth, forward / backward:

{_table(["kernel", "shape", *(NAMES[name] for name in ("ours", "compiled", "torch", "plain"))], [[f"`{one['kernel']}`", " × ".join(map(str, one["shape"])), *(_shares(one["forms"].get(name)) for name in ("ours", "compiled", "torch", "plain"))] for one in memory["results"]])}

## The loss without all logits

`linear_cross_entropy` holds the logits of one chunk of tokens at a time. Forward and backward pass, of x, the head and the targets:

{_table(["tokens × d_model × V", "form", "milliseconds", "memory at most, GB"], [[f"{one['n']} × {one['d_model']} × {one['V']}", NAMES[name], f"{form['both']['median']:.2f}", f"{form['peak_bytes'] / 1e9:.2f}"] for one in loss["results"] for name, form in one["forms"].items()])}

## Decoding

{decoding["model"]}, bfloat16, {decoding["results"][0]["new"]} new tokens after a prompt of {decoding["results"][0]["prompt"]}, the
likeliest each time; by the wall clock, prompt included. The bound is what a copy's bandwidth allows for reading the weights and the cache.

{_table(["sequences", "form", "tokens a second", "share of the bound"], [[str(one["B"]), NAMES[name], f"{form['tokens_per_s']:,}", f"{form['share_of_bound']:.1%}"] for one in decoding["results"] for name, form in one["forms"].items()])}

### Guesses of a small model

A draft guesses some tokens, the target checks all of them in one pass, and what comes out has exactly the target's distribution
(`course.kernels.speculative`). On one {speculative["card"]}, a target of {speculative["models"]["target"]["parameters"] / 1e6:.0f} million parameters and a draft of
{speculative["models"]["draft"]["parameters"] / 1e6:.2f}, both trained for {speculative["training_steps"]} steps; {speculative["new"]} new tokens
after a prompt of {speculative["prompt"]}, {speculative["prompts"]} prompts, of the plain form {len(speculative["results"][-1]["seconds"]["all"])}. Temperature 0 takes the likeliest token:

{_table(["form", "temperature", "guesses", "kept", "tokens a pass", "tokens a second", "against no draft"], [[one["form"], f"{one['temperature']:g}", str(one["guesses"]), "–" if one["kept"] is None else f"{one['kept']:.0%}", f"{one['tokens_per_pass']:.2f}", f"{one['tokens_per_s']:.0f}", f"{one['speed_up']:.2f}"] for one in speculative["results"]])}

## Training

`experiments/train_gpt.py` trains the course's GPT. {training["model"]}, {training["T"]} tokens, {training["windows"]} windows a step, on one
{training["card"]}: **{fastest["tokens_per_s"]:,} tokens a second, {fastest["share_of_peak"]:.1%} of {training["peak_flop_per_s"] / 1e12:.0f} TFLOP/s**, which is
{fastest["tokens_per_s"] / like_ours["tokens_per_s"]:.2f} times Hugging Face's model under torch.compile with float32 weights, as ours are, and
{fastest["tokens_per_s"] / peer["tokens_per_s"]:.2f} times its fastest form, with weights in {peer["weights"]}. Counted are 6 N + 12 n_layers d_model T operations a token, N the
{training["parameters"] / 1e6:.1f} million parameters without positions; the causal mask is not taken off.

{_table(["form", "weights", "windows at once", "milliseconds a step", "tokens a second", "share of the peak"], [[NAMES[one["form"]] if one["form"] != "ours" else "`train_gpt.py`", one["weights"], str(one["micro"]), f"{one['step']['median']:.0f}", f"{one['tokens_per_s']:,}", f"{one['share_of_peak']:.1%}"] for one in training["tried"]])}

A step of {several["windows"]} windows, data-parallel ({several["card"]}): {_parallel(several)}.

## Roofline

![Roofline: speed against operations a byte, both axes logarithmic, under the lines of the card's copy bandwidth and of its matrix products. SwiGLU, RoPE, RMSNorm and softmax lie on the slope, attention on the right below the flat roof.](kernels-roofline.svg)

Operations a byte: what must be computed over what must be read and written. Left of the ridge a kernel can at best be as fast as a copy.
"""


def shape_of(result: dict) -> str:
    mask = "causal" if result["causal"] else "full"
    return f"B {result['B']}, H {result['H']}, T {result['T']}, d_head {result['d_head']}, {mask}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _parallel(several: dict) -> str:
    speeds = [f"{form['tokens_per_s']:,} tokens a second on {n}" for n, form in several["gpus"].items()]
    return f"{', '.join(speeds)}, which is {several['times_one']:.3f} times as many"


def _speeds(form: dict | None) -> str:
    return f"{form['forward_tflops']:.0f} / {form['both_tflops']:.0f}" if form else "–"


def _shares(form: dict | None) -> str:
    return f"{form['share_of_copy']['forward']:.0%} / {form['share_of_copy']['backward']:.0%}" if form else "–"


# ---------------------------------------------------------------- figures


def figures(records: dict[str, dict]) -> dict[str, bytes]:
    """The page's figures as SVG, by their place in the book."""
    plots.use()
    drawn = {
        "time": _against_length(records["attention"], lambda form: form["both"]["median"], "milliseconds"),
        "memory": _against_length(records["attention"], lambda form: form["peak_bytes"] / 1e6, "MB beyond the inputs"),
        "roofline": _roofline(records),
    }
    return {f"{FOLDER}/kernels-{name}.svg": _svg(figure) for name, figure in drawn.items()}


def _svg(figure) -> bytes:
    buffer = io.BytesIO()
    plots.save(figure, buffer)
    return buffer.getvalue()


def _against_length(record: dict, value, label: str):
    head = record["results"][0]
    same = [one for one in record["results"] if all(one[key] == head[key] for key in ("B", "H", "d_head", "causal"))]
    figure, ax = plt.subplots()
    for name, colour in COLOURS.items():
        points = sorted((one["T"], value(one["forms"][name])) for one in same if name in one["forms"])
        ax.loglog(*zip(*points, strict=True), marker="o", markersize=4, color=plots.COLOURS[colour], label=NAMES[name])
    lengths = sorted(one["T"] for one in same)
    ax.set_xticks(lengths, map(str, lengths), minor=False)
    ax.set_xticks([], minor=True)
    ax.set_xlabel(f"tokens T (B {head['B']}, H {head['H']}, d_head {head['d_head']}, causal)")
    ax.set_ylabel(label)
    ax.legend()
    return figure


def points_of_roofline(records: dict[str, dict]) -> list[tuple[str, float, float]]:
    """Name, operations a byte and TFLOP/s of each kernel's forward pass; of each number 1 to 8 operations where memory bounds."""
    operations = {"swiglu": 4, "rope": 3, "rms_norm": 4, "softmax": 5}  # a number that is written
    written = {"swiglu": 1 / 3, "rope": 1 / 2, "rms_norm": 1 / 2, "softmax": 1 / 2}  # the share of the bytes
    points = []
    for one in records["memory_bound"]["results"]:
        flops = operations[one["kernel"]] * written[one["kernel"]] * one["bytes"]["forward"] / 2
        seconds = one["forms"]["ours"]["forward"]["median"] / 1e3
        points.append((one["kernel"], flops / one["bytes"]["forward"], flops / seconds / 1e12))
    for one in records["attention"]["results"]:
        flops = 4 * one["B"] * one["H"] * one["T"] ** 2 * one["d_head"] * (0.5 if one["causal"] else 1)
        moved = 4 * 2 * one["B"] * one["H"] * one["T"] * one["d_head"]  # query, key, value, output
        points.append(("attention", flops / moved, one["forms"]["ours"]["forward_tflops"]))
    return points


def _roofline(records: dict[str, dict]):
    bytes_per_s, flop_per_s = (records["attention"]["ceilings"][name] for name in ("bytes_per_s", "flop_per_s"))
    figure, ax = plt.subplots()
    intensities = [0.3, flop_per_s / bytes_per_s, 2e4]
    ax.loglog(intensities, [min(x * bytes_per_s, flop_per_s) / 1e12 for x in intensities], color=plots.INK)
    colours = {"swiglu": "query", "rope": "key", "rms_norm": "value", "softmax": "weights", "attention": "right"}
    for name, colour in colours.items():
        points = [point[1:] for point in points_of_roofline(records) if point[0] == name]
        ax.scatter(*zip(*points, strict=True), color=plots.COLOURS[colour], label=name, zorder=3)
    ax.set_xlabel("operations a byte")
    ax.set_ylabel("TFLOP/s")
    ax.legend()
    return figure
