"""The page of the trained model: what it is, and what `experiments/pretrained.py` measured of its attention."""

import matplotlib.pyplot as plt

from book.kernels import svg
from book.render import render
from course import plots, pretrained
from course.profile import FIRST, LIMITS, QUERIES, roofline, sizes, tables
from course.transformer_map import SMOLLM2

FOLDER = "reference"
MODEL = "smollm2-135m"
ENCODER = "minilm-l6"
SHAPE = SMOLLM2  # the book is built without the model


def page(record: dict) -> str:
    """The page as Markdown.

    Args:
        record: of `experiments/pretrained.py`.
    """
    told = {"sizes": sizes(SHAPE), "cards": roofline(SHAPE)}
    plain = tables(told)
    shown = {text["text"]: tables(told | {"attention": text})[len(plain) :] for text in record["results"]}
    return render(
        "trained.md",
        card=pretrained.CARDS[MODEL],
        encoder=pretrained.CARDS[ENCODER],
        model=MODEL,
        record=record,
        sizes=plain,
        shown=shown,
        limits=LIMITS,
        first=FIRST,
        queries=QUERIES,
    )


def figures(record: dict) -> dict[str, bytes]:
    """The page's figures as SVG, by their place in the book."""
    plots.use()
    drawn = {"sink": _sink(record), "distance": _distance(record), "induction": _induction(record)}
    return {f"{FOLDER}/trained-{name}.svg": svg(figure) for name, figure in drawn.items()}


COLOURS = {"austen": "weights", "shakespeare": "right"}


def _sink(record: dict):
    figure, ax = plt.subplots()
    for told in record["results"]:
        layers = range(len(told["sink"]))
        for layer, heads in enumerate(told["sink"]):
            ax.plot([layer] * len(heads), heads, ".", markersize=4, alpha=0.5, color=plots.COLOURS[COLOURS[told["text"]]])
        means = [sum(heads) / len(heads) for heads in told["sink"]]
        ax.plot(layers, means, color=plots.COLOURS[COLOURS[told["text"]]], label=told["text"])
    ax.set(xlabel="layer", ylabel="weight on the first token", ylim=(0, 1))
    ax.legend(loc="upper left")
    return figure


def _distance(record: dict):
    figure, axes = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.6))
    for ax, told in zip(axes, record["results"], strict=True):
        layers = told["profile"]
        for layer, means in enumerate(layers):
            shade = 0.15 + 0.7 * layer / len(layers)
            ax.loglog(told["distances"], means, linewidth=0.8, alpha=shade, color=plots.COLOURS[COLOURS[told["text"]]])
        ax.set(title=told["text"], xlabel="distance in tokens")
    axes[0].set_ylabel("mean weight")
    return figure


def _induction(record: dict):
    scores = record["results"][0]["induction"]
    figure, ax = plt.subplots(figsize=(7.2, 2.6))
    shown = ax.imshow(list(zip(*scores, strict=True)), aspect="auto", vmin=0, vmax=1)
    ax.set(xlabel="layer", ylabel="head", yticks=range(0, len(scores[0]), 2))
    figure.colorbar(shown, label="induction score")
    return figure
