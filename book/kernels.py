"""The page of the fast kernels, drawn from `benchmarks/records`, which `benchmarks/kernels.py` writes on a GPU."""

import io
import json
from pathlib import Path

import matplotlib.pyplot as plt

from book.render import render
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
    forms, tried = records["training"]["forms"], records["training"]["tried"]
    compiled = [one for one in tried if one["form"] == "hugging_face_compiled"]
    return render(
        "kernels.md",
        **records,
        name_of=NAMES,
        compared=list(COLOURS),
        days=sorted(record["when"] for record in records.values()),
        shape_of=shape_of,
        fastest=forms["ours"],
        peer=forms["hugging_face_compiled"],
        like_ours=next(one for one in compiled if one["weights"].startswith("float32")),
    )


def shape_of(result: dict) -> str:
    mask = "causal" if result["causal"] else "full"
    return f"B {result['B']}, H {result['H']}, T {result['T']}, d_head {result['d_head']}, {mask}"


# ---------------------------------------------------------------- figures


def figures(records: dict[str, dict]) -> dict[str, bytes]:
    """The page's figures as SVG, by their place in the book."""
    plots.use()
    drawn = {
        "time": _against_length(records["attention"], lambda form: form["both"]["median"], "milliseconds"),
        "memory": _against_length(records["attention"], lambda form: form["peak_bytes"] / 1e6, "MB beyond the inputs"),
        "roofline": _roofline(records),
    }
    return {f"{FOLDER}/kernels-{name}.svg": svg(figure) for name, figure in drawn.items()}


def svg(figure) -> bytes:
    """A figure as the bytes of an SVG file."""
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
