"""The whole transformer as one drawing, from a text to its next token and back, with the chapters that teach each part.

What is drawn is read from the course's own trained GPT (`course.checkpoint`): its tokens, vectors, scores and probabilities
on one text. Sizes and parameters are those of a `course.model.Config`.
"""

from dataclasses import dataclass, field
from functools import cache
from html import escape

import torch

from course.attention_maps import look
from course.checkpoint import load_gpt
from course.cookbook import PRESETS
from course.cookbook import Config as Shape
from course.model import GPT, Config
from course.plots import COLOURS, INK
from course.tokens import bpe_encode, vocabulary

__all__ = [
    "HEAD",
    "NARROW",
    "PARTS",
    "SMOLLM2",
    "STYLE",
    "TEXT",
    "WIDE",
    "Layout",
    "Part",
    "Seen",
    "TransformerMap",
    "config_of",
    "configs",
    "drawing",
    "parameters",
    "seen",
    "shapes",
]

TEXT = "To be, or not to"
HEAD = (0, 4)  # layer and head that are drawn: its query of the last token finds "be"
# As its config.json has it
SMOLLM2 = Shape(49_152, 30, 576, 9, 3, 64, 1536, gated=True, tied=True, theta=100_000.0, dtype="float32")


@dataclass(frozen=True)
class Part:
    """A part of a transformer and where it is taught."""

    id: str
    name: str
    chapter: str  # that it opens
    more: tuple[str, ...] = ()  # chapters that go on from there
    colour: str = ""  # of `course.plots.COLOURS`


PARTS = {
    part.id: part
    for part in (
        Part("model", "The model", "ch10_architectures", ("ch35_compression", "ch38_receipts", "ch40_safety")),
        Part("text", "Text", "ch01_overview", ("ch30_prompting_icl", "ch31_rag", "ch32_agents")),
        Part("tokens", "Tokens", "ch02_tokens", ("ch33_multimodal",)),
        Part("embedding", "Embedding", "ch03_embeddings", ("f06_high_dimensional_geometry",), "residual"),
        Part(
            "stream",
            "Residual stream",
            "ch07_residual_norm",
            ("f05_signals_through_depth", "ch37_mech_interp", "ch39_collapse_landscape"),
            "residual",
        ),
        Part("block", "Block", "ch09_block", ("ch10_architectures",)),
        Part("norm", "Norm", "ch07_residual_norm", ("f05_signals_through_depth",)),
        Part("query", "Query", "ch04_attention", ("f01_vectors_matrices_shapes",), "query"),
        Part("key", "Key", "ch04_attention", ("ch20_kv_compression",), "key"),
        Part("value", "Value", "ch04_attention", ("ch20_kv_compression",), "value"),
        Part("position", "Position", "ch08_position_rope", ("ch14_aliasing", "ch19_long_context")),
        Part("scores", "Scores", "ch04_attention", ("ch18_taxonomy", "ch34_efficient_attention")),
        Part("mask", "Mask", "ch10_architectures", ("ch04_attention",)),
        Part("softmax", "Softmax", "f03_softmax_and_cross_entropy", ("ch04_attention", "ch17_sinks")),
        Part(
            "weights",
            "Weights",
            "ch13_attention_maps",
            ("ch15_decay_law", "ch16_gamma_atlas", "ch21_phase_polylog", "ch22_thermo_dictionary", "ch23_fractional"),
            "weights",
        ),
        Part("mix", "Weighted mean", "ch04_attention", ("ch17_sinks",), "value"),
        Part("heads", "Heads", "ch05_multi_head", ("ch13_attention_maps",)),
        Part("output", "Output", "ch05_multi_head", ("ch28_peft",)),
        Part("ffn", "Feed-forward", "ch06_ffn", ("f04_mlp_and_backprop", "ch35_compression")),
        Part("logits", "Logits", "ch03_embeddings", ("ch26_classification", "ch37_mech_interp")),
        Part("probabilities", "Probabilities", "f03_softmax_and_cross_entropy", ("f08_regularisation_and_calibration",)),
        Part("sample", "Next token", "ch12_inference", ("ch29_generation", "ch36_serving")),
        Part("loss", "Loss", "ch11_training", ("f03_softmax_and_cross_entropy", "ch25_pretraining", "ch27_alignment")),
        Part(
            "update",
            "Update",
            "f07_optimisers_and_schedules",
            ("f02_gradients_and_descent", "f04_mlp_and_backprop", "ch24_grokking", "ch28_peft"),
        ),
    )
}


# ---------------------------------------------------------------- sizes


def config_of(shape: Shape) -> Config:
    """A model of `course.cookbook` as the course's GPT has it: with learned positions, LayerNorm and GELU where it is a GPT-2."""
    return Config(
        V=shape.vocabulary,
        d_model=shape.d_model,
        n_layers=shape.layers,
        n_heads=shape.heads,
        n_kv_heads=shape.kv_heads,
        d_ff=shape.hidden,
        T_max=shape.positions or 1024,
        norm="layer" if shape.norm_biases else "rms",
        position="learned" if shape.positions else "rope",
        ffn="swiglu" if shape.gated else "gelu_tanh",
        tied=shape.tied,
        bias=shape.biases,
        qkv_bias=shape.qkv_biases,
        qk_norm=shape.qk_norms,
        head_width=shape.d_head,
        theta=shape.theta,
    )


def configs() -> dict[str, Config]:
    """The models whose sizes the map tells, by name; the first is the one that is drawn."""
    others = {"SmolLM2 135M": SMOLLM2, "GPT-2": PRESETS["gpt-2"], "Llama 3 8B": PRESETS["llama-3-8b"]}
    return {"The course’s own GPT": load_gpt()[0].config} | {name: config_of(shape) for name, shape in others.items()}


PARAMETERS = {  # where the course's GPT keeps those of a part
    "embedding": "embedding",
    "position": "position",
    "norm_1": "norm",
    "norm_2": "norm",
    "norm": "norm",
    "query": "query",
    "query_norm": "query",
    "key": "key",
    "key_norm": "key",
    "value": "value",
    "out": "output",
    "ffn": "ffn",
    "head": "logits",
}


def parameters(config: Config) -> dict[str, int]:
    """How many parameters each part has, counted in a `GPT` without memory; a head that is the embedding has none of its own."""
    with torch.device("meta"):
        model = GPT(config)
    counted = dict.fromkeys(PARTS, 0)
    for name, parameter in model.named_parameters():
        place = next(step for step in name.split(".") if step in PARAMETERS)
        counted[PARAMETERS[place]] += parameter.numel()
        counted["block"] += parameter.numel() if name.startswith("blocks") else 0
        counted["model"] += parameter.numel()
    return counted


def shapes(config: Config) -> dict[str, str]:
    """The shape of what each part gives on, for B texts of T tokens, with the numbers of a model."""
    stream = f"(B, T, {config.d_model})"
    heads, kv = (f"(B, {count}, T, {config.d_head})" for count in (config.n_heads, config.kv_heads))
    square = f"(B, {config.n_heads}, T, T)"
    scored = f"(B, T, {config.V})"
    turned = f"{heads}, {kv}" if config.position == "rope" else stream
    told = {"model": f"(B, T) → {scored}", "text": "letters", "tokens": "(B, T)", "position": turned, "query": heads}
    told |= dict.fromkeys(("embedding", "stream", "block", "norm", "output", "ffn"), stream)
    told |= {"key": kv, "value": kv, "mix": heads, "heads": f"(B, T, {config.n_heads * config.d_head})"}
    told |= dict.fromkeys(("scores", "mask", "softmax", "weights"), square) | {"mask": "(T, T)"}
    told |= dict.fromkeys(("logits", "probabilities"), scored) | {"sample": "(B, 1)", "loss": "()", "update": "as the parameters"}
    return told


# ---------------------------------------------------------------- what a model does on the text


@dataclass(frozen=True)
class Seen:
    """What the drawing shows of the course's own GPT on `TEXT`."""

    tokens: list[str]
    ids: list[int]
    rows: dict[str, list[list[float]]]  # embedding, query, key, value, mix: a few numbers of each token
    squares: dict[str, list[list[float]]]  # scores, weights: of `HEAD`
    logits: list[float]  # of every so many-th token of the vocabulary, from 0, the least of them, to 1
    next: list[tuple[str, float]]  # the likeliest tokens and their probabilities


@cache
def seen(width: int = 6, likeliest: int = 4) -> Seen:
    """Read `TEXT` with the course's own GPT, and keep of each vector `width` numbers.

    Raises:
        ValueError: if a number that is asked for is not positive.
    """
    if min(width, likeliest) < 1:
        raise ValueError(f"at least one number and one token, got {width} and {likeliest}")
    model, merges = load_gpt()
    words = vocabulary(merges)
    ids = [model.config.V - 1, *bpe_encode(TEXT, merges)]
    layer, head = HEAD
    kept = {}

    def keep(number: int, weights: torch.Tensor, stream: torch.Tensor):
        if number == layer:
            kept["weights"] = weights[0, head]  # (T, T)

    with torch.no_grad():
        look(model, torch.tensor([ids]), keep)
        block, embedded = model.blocks[layer], model.embedding(torch.tensor([ids]))  # (1, T, d_model): the stream before layer 0
        query, key, value = (
            each[0, head] for each in block.attention.project(block.norm_1(embedded), torch.arange(len(ids)))
        )  # (T, d_head)
        scores = query @ key.mT / model.config.d_head**0.5  # (T, T)
        logits = model(torch.tensor([ids]))[0, -1]  # (V,)
    probabilities, best = logits.softmax(dim=-1).topk(likeliest)
    some = logits[:: model.config.V // 16]
    rows = {"embedding": embedded[0], "query": query, "key": key, "value": value, "mix": kept["weights"] @ value}
    shown = ["start", *(words[id].decode().strip() for id in ids[1:])]
    return Seen(
        shown,
        ids,
        {name: _shades(row[:, :width].abs()) for name, row in rows.items()},
        {"scores": _shades(scores - scores.min()), "weights": kept["weights"].tolist()},
        _shades((some - some.min())[None])[0],
        [(words[id].decode().strip(), p) for id, p in zip(best.tolist(), probabilities.tolist(), strict=True)],
    )


def _shades(numbers: torch.Tensor) -> list[list[float]]:
    """Numbers (R, C) that are not negative, as shares of the largest: (R, C)."""
    return (numbers / numbers.max()).tolist()


# ---------------------------------------------------------------- the drawing


@dataclass(frozen=True)
class Layout:
    """Where each part stands, as x, y, width, height, and what is drawn between them as SVG paths."""

    size: tuple[int, int]
    places: dict[str, list[tuple[float, float, float, float]]]
    frames: dict[str, tuple[float, float, float, float]]
    stream: list[str]
    sums: list[tuple[float, float]]  # where a part adds to the stream
    lines: list[str]
    back: list[str]  # dashed: what training does
    notes: list[tuple[float, float, str, str]] = field(default_factory=list)  # x, y, anchor, words


WIDE = Layout(
    size=(960, 512),
    places={
        "model": [(420, 8, 150, 28)],
        "text": [(8, 64, 142, 44)],
        "tokens": [(8, 140, 76, 230)],
        "embedding": [(88, 140, 58, 230)],
        "stream": [(628, 336, 64, 28)],
        "block": [(192, 56, 92, 28)],
        "norm": [(192, 292, 58, 28), (694, 292, 58, 28), (812, 336, 58, 28)],
        "query": [(240, 98, 58, 48)],
        "key": [(240, 160, 58, 48)],
        "value": [(240, 226, 58, 48)],
        "position": [(308, 107, 30, 30), (308, 169, 30, 30)],
        "scores": [(356, 114, 84, 84)],
        "mask": [(454, 120, 70, 28)],
        "softmax": [(454, 164, 70, 28)],
        "weights": [(540, 114, 84, 84)],
        "mix": [(551, 226, 62, 48)],
        "heads": [(596, 66, 74, 28)],
        "output": [(547, 292, 70, 28)],
        "ffn": [(678, 138, 90, 122)],
        "logits": [(808, 236, 144, 62)],
        "probabilities": [(808, 120, 144, 92)],
        "sample": [(836, 64, 88, 32)],
        "loss": [(808, 440, 144, 56)],
        "update": [(8, 440, 142, 56)],
    },
    frames={"block": (174, 70, 624, 318), "heads": (228, 80, 432, 202)},
    stream=["M153 142v201q0 7 7 7h712"],
    sums=[(582, 350), (776, 350)],
    lines=[
        "M79 110v24",
        "M221 338v-14", "M221 292V122h15", "M221 184h15", "M221 250h15",
        "M298 122h7", "M298 184h7", "M338 122h8q6 0 6 8", "M338 184h8q6 0 6 -8",
        "M440 134h10", "M489 148v12", "M524 178h12",
        "M582 200v22", "M298 250h249", "M582 274v14", "M582 320v18",
        "M723 338v-14", "M723 292v-26", "M723 138v-10q0 -6 6 -6h41q6 0 6 6v210",
        "M870 350h4q6 0 6 -6v-42", "M880 236v-20", "M880 120v-20",
        "M880 64v-34q0 -8 -8 -8h-298", "M420 22H87q-8 0 -8 8v30",
    ],
    back=["M945 214v222", "M808 468H154", "M117 440v-64", "M480 468v-76", "M723 468v-76"],
    notes=[
        (868, 16, "end", "one token longer, and again"),
        (480, 487, "middle", "training: slopes of the loss, back through every part"),
        (938, 424, "end", "the true next token"),
    ],
)  # fmt: skip

NARROW = Layout(
    size=(360, 880),
    places={
        "model": [(232, 8, 96, 30)],
        "text": [(16, 8, 160, 30)],
        "tokens": [(16, 58, 326, 30)],
        "embedding": [(16, 92, 326, 34)],
        "stream": [(20, 340, 28, 60)],
        "block": [(56, 154, 88, 30)],
        "norm": [(60, 200, 58, 30), (60, 530, 58, 30), (60, 636, 58, 30)],
        "query": [(76, 252, 52, 46)],
        "key": [(76, 308, 52, 46)],
        "value": [(76, 386, 52, 46)],
        "position": [(136, 260, 30, 30), (136, 316, 30, 30)],
        "scores": [(180, 264, 66, 66)],
        "mask": [(177, 346, 66, 30)],
        "softmax": [(255, 346, 70, 30)],
        "weights": [(264, 264, 66, 66)],
        "mix": [(259, 386, 62, 46)],
        "heads": [(258, 212, 80, 30)],
        "output": [(255, 462, 70, 30)],
        "ffn": [(150, 512, 130, 66)],
        "logits": [(140, 618, 188, 62)],
        "probabilities": [(140, 698, 188, 88)],
        "sample": [(184, 804, 100, 32)],
        "loss": [(16, 698, 104, 52)],
        "update": [(16, 784, 104, 52)],
    },
    frames={"block": (16, 168, 326, 430), "heads": (66, 234, 272, 208)},
    stream=["M338 133H41q-7 0 -7 7v504q0 7 7 7h17"],
    sums=[(34, 477), (34, 588)],
    lines=[
        "M96 38v16",
        "M42 215h14", "M89 230v6q0 4 -4 4h-11q-6 0 -6 6V409h4", "M68 275h4", "M68 331h4",
        "M128 275h5", "M128 331h5", "M166 275h10", "M166 331h4q6 0 6 -6",
        "M210 332v10", "M243 361h8", "M308 346v-12",
        "M330 297h3q6 0 6 6v96q0 10 -8 10h-6", "M128 409h127", "M290 432v26", "M255 477H46",
        "M42 545h14", "M118 545h28", "M280 545h16q6 0 6 6v31q0 6 -6 6H46",
        "M118 651h18", "M234 680v14", "M234 786v14",
        "M284 820h60q8 0 8 -8V31q0 -8 -8 -8h-12", "M232 23h-52",
    ],
    back=["M138 724h-14", "M68 750v30", "M16 810h-4q-6 0 -6 -6V115q0 -6 4 -6h2", "M6 560h6"],
    notes=[(180, 856, "middle", "solid: one token longer, and again"), (180, 874, "middle", "dashed: training, back through every part")],
)  # fmt: skip

STYLE = (
    f".m-map text {{ fill: {INK}; font: 14px 'Course Sans', 'Source Sans 3', sans-serif; }} .m-map .m-small {{ font-size: 12.5px; }} "
    f".m-map .m-strong {{ font-weight: 600; }} .m-ink {{ fill: {INK}; }} .m-line, .m-frame, .m-box, .m-sheet {{ stroke: {INK}; stroke-width: 1.4; }} "
    ".m-line, .m-frame, .m-stream { fill: none; } .m-box, .m-sheet { fill: #FFFFFF; } .m-sheet { stroke-opacity: 0.6; } "
    f".m-back {{ stroke-dasharray: 5 4; }} .m-stream {{ stroke: {COLOURS['residual']}; stroke-width: 14; stroke-opacity: 0.35; }} "
    ".m-hit { fill-opacity: 0; } .m-bars { fill-opacity: 0.55; } "
    + " ".join(f".m-{name} {{ fill: {colour}; }}" for name, colour in COLOURS.items())
)


def drawing(layout: Layout = WIDE, opens=lambda part, inside: f"<g>{inside}</g>", name: str = "map", style: str = STYLE) -> str:
    """The map as an SVG.

    Args:
        layout: `WIDE` or `NARROW`.
        opens: what is put around the drawing of a part, such as a link to its chapter.
        name: begins the ids of arrow heads, which differ between drawings of one page.
        style: the rules of its classes; empty where the page has its own.
    """
    width, height = layout.size
    stream = "".join(f'<path d="{band}"/>' for band in layout.stream)
    lines = "".join(f'<path d="{line}" marker-end="url(#{name}-head)"/>' for line in layout.lines)
    back = "".join(f'<path d="{line}" marker-end="url(#{name}-head)"/>' for line in layout.back)
    parts = "".join(
        opens(part, _hit(place) + _GLYPHS.get(part.id, _pill)(part, *place))
        for part in PARTS.values()
        for place in layout.places[part.id]
    )
    marker = 'viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"'
    return (
        f'<svg class="m-map" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        + (f"<style>{style}</style>" if style else "")
        + f'<defs><marker id="{name}-head" {marker}><path class="m-ink" d="M0 1l7 3-7 3z"/></marker></defs>'
        + _sheets(layout.frames)
        + f'<g class="m-stream">{stream}</g><g class="m-line">{lines}</g><g class="m-line m-back">{back}</g>'
        + "".join(_sum(x, y) for x, y in layout.sums)
        + "".join(_words(x, y, words, anchor, "m-small") for x, y, anchor, words in layout.notes)
        + parts
        + "</svg>"
    )


def _sheets(frames: dict[str, tuple[float, float, float, float]]) -> str:
    """The frame of the block, and in it one sheet of paper for each of a few heads."""
    x, y, w, h = frames["heads"]
    sheets = "".join(_rect(x + shift, y - shift, w - 10, h, 8, "m-sheet") for shift in (10, 5, 0))
    return _rect(*frames["block"], 14, "m-frame") + sheets


def _rect(x: float, y: float, w: float, h: float, r: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{r:g}"/>'


def _hit(place: tuple[float, float, float, float]) -> str:
    """What can be touched, a little larger than what is drawn."""
    x, y, w, h = place
    return _rect(x - 2, y - 2, w + 4, h + 4, 8, "m-hit")


def _words(x: float, y: float, words: str, anchor: str = "middle", kind: str = "") -> str:
    look = f' class="{kind}"' if kind else ""
    return f'<text{look} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text> '


def _box(x: float, y: float, w: float, h: float, r: float = 7) -> str:
    return _rect(x, y, w, h, r, "m-box")


def _pill(part: Part, x: float, y: float, w: float, h: float) -> str:
    names = {
        "heads": f"{load_gpt()[0].config.n_heads} heads",
        "block": f"{load_gpt()[0].config.n_layers} blocks",
        "model": "the model",
    }
    names |= {"norm": "norm", "mask": "mask", "softmax": "softmax", "output": "output"}
    return _box(x, y, w, h, h / 2) + _words(x + w / 2, y + h / 2 + 5, names[part.id])


def _sum(x: float, y: float) -> str:
    return f'<circle class="m-box" cx="{x:g}" cy="{y:g}" r="8"/><path class="m-line" d="M{x - 4:g} {y:g}h8M{x:g} {y - 4:g}v8"/>'


def _cells(numbers: list[list[float]], x: float, y: float, w: float, h: float, colour: str, lower: bool = False) -> str:
    """A table of numbers between 0 and 1 as shades of a colour, in tenths; with `lower` without what is over the diagonal."""
    down, across = h / len(numbers), w / len(numbers[0])
    cell = f"h{across - 1:.3g}v{down - 1:.3g}h{1 - across:.3g}z"
    shades: dict[float, str] = {}
    for i, row in enumerate(numbers):
        for j, number in enumerate(row[: i + 1] if lower else row):
            shade = round(0.1 + 0.9 * number, 1)
            shades[shade] = shades.get(shade, "") + f"M{x + j * across:.4g} {y + i * down:.4g}{cell}"
    drawn = "".join(f'<path d="{cells}" fill-opacity="{shade:g}"/>' for shade, cells in sorted(shades.items()))
    return f'<g class="m-{colour or "ink"}">{drawn}</g>'


def _matrix(part: Part, x: float, y: float, w: float, h: float) -> str:
    letter = {"query": "Q", "key": "K", "value": "V", "mix": "αV"}[part.id]
    cells = _cells([row[:4] for row in seen().rows[part.id]], x + 24, y + 2, w - 25, h - 4, part.colour)
    return cells + _words(x + 12, y + h / 2 + 5, letter, kind="m-strong")


def _square(part: Part, x: float, y: float, w: float, h: float) -> str:
    cells = _cells(seen().squares[part.id], x + 1, y + 1, w - 1, h - 1, part.colour, lower=part.id == "weights")
    return cells + _words(x + w / 2, y - 5, part.name.lower(), kind="m-small")


def _clock(part: Part, x: float, y: float, w: float, h: float) -> str:
    cx, cy = x + w / 2, y + h / 2
    return f'<circle class="m-box" cx="{cx:g}" cy="{cy:g}" r="11"/><path class="m-line" d="M{cx:g} {cy - 8:g}V{cy:g}l6 4"/>'


def _text(part: Part, x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, w, h) + _words(x + w / 2, y + h / 2 + 5, f"“{TEXT}”")


def _tokens(part: Part, x: float, y: float, w: float, h: float) -> str:
    """One under the other, or side by side where that is wider."""
    tokens = seen().tokens
    drawn = ""
    for i, token in enumerate(tokens):
        if h > w:
            place = (x, y + i * h / len(tokens), w, h / len(tokens) - 4)
        else:
            place = (x + i * w / len(tokens), y, w / len(tokens) - 4, h)
        drawn += _box(*(round(number, 1) for number in place), 4) + _words(
            place[0] + place[2] / 2, place[1] + place[3] / 2 + 5, token
        )
    return drawn


def _embedding(part: Part, x: float, y: float, w: float, h: float) -> str:
    rows = seen().rows["embedding"]
    count = len(rows)
    if h > w:
        places = [(x, y + i * h / count + 4, w, h / count - 12) for i in range(count)]
        return "".join(_cells([row], *place, "residual") for row, place in zip(rows, places, strict=True))
    places = [(x + i * w / count + 12, y, w / count - 28, h) for i in range(count)]
    return "".join(_cells([[number] for number in row], *place, "residual") for row, place in zip(rows, places, strict=True))


def _stream(part: Part, x: float, y: float, w: float, h: float) -> str:
    turn = f' transform="rotate(-90 {x + w / 2:g} {y + h / 2:g})"' if h > w else ""
    return f"<g{turn}>{_words(x + w / 2, y + h / 2 + 5, 'stream', kind='m-small')}</g>"


def _ffn(part: Part, x: float, y: float, w: float, h: float) -> str:
    """Two maps: to a layer that is wider than the stream, and back."""
    if h > w:
        ends, hidden = [(x + 25, y, w - 50, 9), (x + 25, y + h - 9, w - 50, 9)], (x, y + h / 2 - 23, w, 46)
        between = f"M{x + 25} {y + 9}L{x} {y + h / 2 - 23}M{x + w - 25} {y + 9}L{x + w} {y + h / 2 - 23}"
        between += f"M{x + 25} {y + h - 9}L{x} {y + h / 2 + 23}M{x + w - 25} {y + h - 9}L{x + w} {y + h / 2 + 23}"
    else:
        ends, hidden = [(x, y + 16, 9, h - 32), (x + w - 9, y + 16, 9, h - 32)], (x + 25, y, w - 50, h)
        between = f"M{x + 9} {y + 16}L{x + 25} {y}M{x + 9} {y + h - 16}L{x + 25} {y + h}"
        between += f"M{x + w - 9} {y + 16}L{x + w - 25} {y}M{x + w - 9} {y + h - 16}L{x + w - 25} {y + h}"
    boxes = "".join(_box(*end, 3) for end in ends) + _box(*hidden, 5)
    lines = f'<path class="m-line" d="{between}"/>'
    return lines + boxes + _words(x + w / 2, y + h / 2 - 3, "feed-") + _words(x + w / 2, y + h / 2 + 14, "forward")


def _logits(part: Part, x: float, y: float, w: float, h: float) -> str:
    logits = seen().logits
    step = (w - 16) / len(logits)
    bars = "".join(
        f"M{x + 8 + i * step:.4g} {y + 42:g}v{-33 * each - 1:.3g}h{step - 3:.3g}v{33 * each + 1:.3g}z"
        for i, each in enumerate(logits)
    )
    return _box(x, y, w, h) + f'<path class="m-ink m-bars" d="{bars}"/>' + _words(x + w / 2, y + h - 6, "logits", kind="m-small")


def _probabilities(part: Part, x: float, y: float, w: float, h: float) -> str:
    drawn, best = _box(x, y, w, h), seen().next[0][1]
    for i, (token, p) in enumerate(seen().next):
        at = y + 18 + i * (h - 10) / 4
        drawn += _words(x + 52, at, token, "end", kind="m-small") + _words(x + w - 8, at, f"{p:.0%}", "end", kind="m-small")
        drawn += _rect(x + 58, round(at - 10, 1), round((w - 104) * p / best, 1), 11, 0, "m-ink m-bars")
    return drawn


def _sample(part: Part, x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, w, h, 4) + _words(x + w / 2, y + h / 2 + 5, seen().next[0][0], kind="m-strong")


def _loss(part: Part, x: float, y: float, w: float, h: float) -> str:
    return (
        _box(x, y, w, h)
        + _words(x + w / 2, y + h / 2 - 4, "loss", kind="m-strong")
        + _words(x + w / 2, y + h / 2 + 14, "−ln p(next)", kind="m-small")
    )


def _update(part: Part, x: float, y: float, w: float, h: float) -> str:
    return (
        _box(x, y, w, h)
        + _words(x + w / 2, y + h / 2 - 4, "update", kind="m-strong")
        + _words(x + w / 2, y + h / 2 + 14, "of all weights", kind="m-small")
    )


_GLYPHS = {
    **dict.fromkeys(("query", "key", "value", "mix"), _matrix),
    **dict.fromkeys(("scores", "weights"), _square),
    "position": _clock,
    "text": _text,
    "tokens": _tokens,
    "embedding": _embedding,
    "stream": _stream,
    "ffn": _ffn,
    "logits": _logits,
    "probabilities": _probabilities,
    "sample": _sample,
    "loss": _loss,
    "update": _update,
}


class TransformerMap:
    """The map as a notebook shows it."""

    def __repr__(self) -> str:
        best, p = seen().next[0]
        return (
            f"A whole transformer reads “{TEXT}”: tokens, their vectors, blocks of attention and a feed-forward network that add to the "
            f"residual stream, logits, and probabilities of the next token, the largest {p:.0%} for “{best}”, which goes to the end of the "
            "text. Below, the loss and its slopes, which change all parts."
        )

    def _repr_svg_(self) -> str:
        return drawing()
