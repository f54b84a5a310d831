"""The page of the γ atlas: our own models, what was asked of them beforehand, and what `experiments/gamma_atlas.py` found."""

import html
from collections.abc import Sequence
from math import log2

import matplotlib.pyplot as plt

from book.kernels import svg
from book.pages import widget
from book.render import render
from course import plots
from course.gamma_atlas import (
    BASE,
    COMPARISONS,
    QUESTIONS,
    SETTING,
    SYNTHETIC,
    answer,
    baseline_compare,
    bootstrap,
    fitted,
    joined,
    setting_of,
    student,
    unfitted,
    variance_shares,
)

FOLDER = "reference"
TEXTS = {
    "austen": "Austen",
    "shakespeare": "Shakespeare",
    "mixture": "both in turns",
    "shuffled": "Austen, words shuffled",
    "copies_0.7": "copies, d^−0.7",
    "copies_1.3": "copies, d^−1.3",
    "copies_geometric": "copies, geometric",
    "lazy_chain": "lazy chain",
}
CORE = {"text": ("text",), "base": ("theta",), "length": ("T",)}
NATURAL = CORE | {"shape": ("n_layers", "d_model", "n_heads"), "training": ("tokens", "rate"), "mark": ("mark",)}
NAMES = {
    "text": "text",
    "theta": "θ",
    "T": "T",
    "n_layers": "blocks",
    "d_model": "width",
    "n_heads": "heads",
    "position": "positions",
}
WORDS = {
    "position": {"rope": "RoPE", "learned": "learned positions"},
    "mark": {True: "a mark at the start", False: "no mark"},
}


# ---------------------------------------------------------------- text


def page(rows: Sequence[dict], record: dict) -> str:
    """The page as Markdown.

    Args:
        rows: the atlas, read in all ways (`course.gamma_atlas.atlas_table(None)`).
        record: of `experiments/gamma_atlas.py`.
    """
    models = joined(rows)
    asked = answers(rows)
    return render(
        "atlas.md",
        record=record,
        base=said(BASE),
        said=said,
        models=models,
        settings=len({setting_of(row) for row in models}),
        texts=TEXTS,
        answers=asked,
        counts={kind: sum(each["verdict"] == kind for _, each, _ in asked) for kind in ("yes", "no", "unknown")},
        apart=sum(each["verdict"] != other["verdict"] for _, each, other in asked),
        share=share,
        comparisons=COMPARISONS,
        predictors=predictors(models),
        core=variance(balanced(models), CORE),
        natural=variance(of_natural_text(models), NATURAL),
        table=table(models),
        choices=choices(models),
        widget=playable(models),
    )


def answers(rows: Sequence[dict]) -> list[tuple]:
    """Each question with its answer, and with what Student's interval of its seeds alone would say."""
    return [(question, answer(rows, question), student(rows, question)) for question in QUESTIONS]


def said(setting: dict) -> str:
    """A setting, or a part of one, in words."""
    told = []
    for name, value in setting.items():
        if name in WORDS:
            told.append(WORDS[name][value])
        elif name == "tokens":
            told.append(f"{value / 2**20:.0f} M tokens")
        elif name == "rate":
            told.append(f"rate {value:g}")
        elif name == "text":
            told.append(TEXTS[value])
        elif name in ("theta", "T"):
            told.append(f"{NAMES[name]} = {value:,.0f}")
        else:
            told.append(f"{NAMES[name]} {value}")
    return ", ".join(told)


def share(value: float) -> str:
    """A share in whole percent, nothing without a sign."""
    return f"{value:.0%}".replace("-0%", "0%").replace("-", "−")


def predictors(models: Sequence[dict]) -> dict[str, dict[str, float]]:
    """What predicts γ of settings left out, on the twelve of base and length."""
    own = {
        "γ_Padé": unfitted(lambda row: row["gamma_pade"]),
        "γ_Padé, slope and offset fitted": fitted(lambda row: row["gamma_pade"]),
        "base and length, fitted (asked afterwards)": fitted(lambda row: log2(row["theta"]), lambda row: log2(row["T"])),
    }
    return baseline_compare(_austen(models), own)


def balanced(models: Sequence[dict]) -> list[dict]:
    """The core: three texts by two bases by two lengths, all else as in the base."""
    free = {"text": ("austen", "shakespeare", "shuffled"), "theta": (1e2, 1e4), "T": (256, 1024)}
    return [row for row in models if all(row[name] in free.get(name, (BASE[name],)) for name in SETTING)]


def of_natural_text(models: Sequence[dict]) -> list[dict]:
    """All models with RoPE of a text that somebody wrote, shuffled or not."""
    return [row for row in models if row["text"] not in SYNTHETIC and row["position"] == "rope"]


def variance(models: Sequence[dict], factors: dict[str, tuple[str, ...]], draws: int = 300) -> list[tuple]:
    """Of each factor its share of the variance, with an interval by a bootstrap over seeds within settings."""
    names = [*factors, "together", "seeds"]

    def shares(some: Sequence[dict]) -> list[float]:
        told = variance_shares(some, factors)
        return [told[name]["last" if name == "seeds" else "adjusted"] for name in names]

    return list(zip(names, zip(*bootstrap(models, shares, by="within", draws=draws), strict=True), strict=True))


def choices(models: Sequence[dict]) -> dict[str, dict[str, str]]:
    """What the filter offers: classes of the table's lines and their names."""
    columns = {"text": lambda v: TEXTS[v], "theta": lambda v: f"{v:,.0f}", "T": str, "n_layers": str, "d_model": str}
    names = {"text": "text", "theta": "base", "T": "length", "n_layers": "blocks", "d_model": "width"}
    return {
        names[column]: {_class(column, value): show(value) for value in sorted({row[column] for row in models})}
        for column, show in columns.items()
    }


def _class(column: str, value) -> str:
    return f"{column}-{value:g}" if isinstance(value, int | float) else f"{column}-{value.replace('.', '-')}"


def table(models: Sequence[dict]) -> str:
    """All models as a table of HTML, a line each, with the classes that the filter knows."""
    heads = (
        "text",
        "base",
        "T",
        "blocks",
        "width",
        "heads",
        "else",
        "seed",
        "γ 4–128",
        "γ T/64–T/2",
        "R²",
        "first token",
        "bits a byte",
    )
    lines = ["<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"]
    for row in models:
        classes = " ".join(f"is-{_class(column, row[column])}" for column in ("text", "theta", "T", "n_layers", "d_model"))
        words = [
            TEXTS[row["text"]],
            f"{row['theta']:,.0f}",
            row["T"],
            row["n_layers"],
            row["d_model"],
            row["n_heads"],
            _else(row),
            row["seed"],
        ]
        numbers = [f"{row[name]:.3f}" for name in ("gamma", "gamma_relative", "R2_power", "first", "bits")]
        cells = "".join(f"<td>{html.escape(str(cell)).replace('-', '−')}</td>" for cell in (*words, *numbers))
        lines.append(f'<tr class="model {classes}">{cells}</tr>')
    return (
        f'<div class="atlas-table" tabindex="0" role="region" aria-label="All models"><table><thead>{lines[0]}</thead><tbody>\n'
        + "\n".join(lines[1:])
        + "\n</tbody></table></div>"
    )


def _else(row: dict) -> str:
    told = {
        "position": f"{row['position']} positions",
        "mark": "no mark",
        "tokens": f"{row['tokens'] / 2**20:.0f} M tokens",
        "rate": f"rate {row['rate']:g}",
    }
    return ", ".join(what for name, what in told.items() if row[name] != BASE[name])


def playable(models: Sequence[dict]) -> str:
    """The atlas with free axes, as the page's copy of its widget."""
    from course.widgets.gamma_atlas import Atlas

    figure = Atlas(models=list(models))
    return widget({"module": figure.stem, "state": figure.state(), "text": figure.describe()})


# ---------------------------------------------------------------- figures


def figures(rows: Sequence[dict]) -> dict[str, bytes]:
    """The page's figures as SVG, by their place in the book."""
    plots.use()
    models = joined(rows)
    drawn = {"base": _base(models), "answers": _answers(rows), "pade": _pade(models), "texts": _texts(models)}
    return {f"{FOLDER}/atlas-{name}.svg": svg(figure) for name, figure in drawn.items()}


def _austen(models: Sequence[dict]) -> list[dict]:
    return [row for row in models if all(row[name] == BASE[name] for name in SETTING if name not in ("theta", "T"))]


def _base(models: Sequence[dict]):
    figure, ax = plt.subplots()
    for T, colour in ((256, "query"), (512, "wrong"), (1024, "value")):
        some = [row for row in _austen(models) if row["T"] == T]
        bases = sorted({row["theta"] for row in some})
        ax.plot([row["theta"] for row in some], [row["gamma"] for row in some], ".", color=plots.COLOURS[colour], alpha=0.6)
        means = [_mean([row["gamma"] for row in some if row["theta"] == base]) for base in bases]
        ax.plot(bases, means, color=plots.COLOURS[colour], label=f"T = {T:,}")
        ax.plot(
            bases,
            [_mean([r["gamma_pade"] for r in some if r["theta"] == b]) for b in bases],
            "--",
            color=plots.COLOURS[colour],
            alpha=0.6,
        )
    ax.set(xscale="log", xlabel="base θ", ylabel="γ, distances 4 to 128")
    ax.legend(title="measured; dashed: γ_Padé")
    return figure


def _answers(rows: Sequence[dict]):
    told = [each for each in answers(rows) if each[0].value == "gamma"]
    colours = {"yes": "right", "no": "residual", "unknown": "key"}
    figure, ax = plt.subplots(figsize=(7.2, 0.32 * len(told) + 1.2))
    for i, (_, each, alone) in enumerate(reversed(told)):
        colour = plots.COLOURS[colours[each["verdict"]]]
        ax.plot([alone["low"], alone["high"]], [i, i], color=plots.INK, linewidth=0.8, alpha=0.7)
        ax.plot([each["low"], each["high"]], [i, i], color=colour, linewidth=3)
        ax.plot(each["mean"], i, "o", color=colour)
    ax.axvspan(-0.1, 0.1, color=plots.INK, alpha=0.12)
    ax.axvline(0, color=plots.INK, linewidth=0.8)
    ax.set(yticks=range(len(told)), yticklabels=[question.name for question, *_ in reversed(told)], xlabel="difference of γ")
    return figure


def _pade(models: Sequence[dict]):
    figure, ax = plt.subplots()
    for text, colour in (("austen", "query"), ("shakespeare", "wrong"), ("shuffled", "value")):
        some = [row for row in of_natural_text(models) if row["text"] == text]
        ax.plot(
            [row["gamma_pade"] for row in some],
            [row["gamma"] for row in some],
            ".",
            color=plots.COLOURS[colour],
            label=TEXTS[text],
            alpha=0.7,
        )
    ax.plot([-0.8, 1], [-0.8, 1], "--", color=plots.INK, label="γ = γ_Padé")
    ax.set(xlabel="γ_Padé of base and length", ylabel="γ, distances 4 to 128")
    ax.legend()
    return figure


def _texts(models: Sequence[dict]):
    figure, ax = plt.subplots()
    some = [row for row in models if all(row[name] == BASE[name] for name in SETTING if name != "text")]
    for text, colour in zip(TEXTS, (*plots.SERIES, plots.INK), strict=True):
        profiles = [row["profile_held"] for row in some if row["text"] == text]
        if profiles:
            mean = [_mean(at) for at in zip(*profiles, strict=True)]
            ax.loglog(
                range(1, 257),
                mean[:256],
                color=colour,
                label=TEXTS[text],
                linestyle="--" if text in SYNTHETIC else "-",
                linewidth=1.4,
            )
    ax.set(xlabel="distance in bytes", ylabel="mean weight")
    ax.legend(fontsize=8.5)
    return figure


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
