"""One look for all figures: a palette whose colours mean the same everywhere, and readable SVG.

`COLOURS` is shared with the book's style sheet (a test holds the two equal).
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.font_manager import fontManager

__all__ = ["COLOURS", "DARK", "FONT", "INK", "SERIES", "heat_map", "label_lines", "save", "use"]

FONT = Path(__file__).with_name("fonts") / "course-sans.ttf"

COLOURS = {
    "query": "#0072B2",
    "key": "#C08A00",
    "value": "#009E73",
    "residual": "#737985",
    "weights": "#B84C99",
    "right": "#6358D6",
    "wrong": "#C93A2C",
    "one": "#0B7F91",
    "two": "#C05A12",
    "three": "#6E7F16",
    "four": "#8B5E4B",
}  # each at least 3 to 1 against white and against near-black

DARK = {
    "query": "#3FA9F0",
    "key": "#F2B632",
    "value": "#35D0A0",
    "residual": "#A3A9B3",
    "weights": "#F29BD8",
    "right": "#9D8CFF",
    "wrong": "#FF7657",
    "one": "#4CC3D6",
    "two": "#F5955A",
    "three": "#B5C94F",
    "four": "#CDA08C",
}  # the same on a dark page, where the book and the widgets can know that it is dark

INK = "#767676"  # reads on white and on near-black alike: 4.5 to 1 on both

SERIES = [COLOURS[name] for name in ("query", "wrong", "value", "weights", "key", "right", "residual")]


def use() -> None:
    """Set matplotlib to the course's style: SVG, transparent, one ink for light and dark pages."""
    if not any(entry.fname.endswith(FONT.name) for entry in reversed(fontManager.ttflist)):
        fontManager.addfont(FONT)
    mpl.rcParams.update(
        {
            "font.family": ["Course Sans", "DejaVu Sans"],  # the second for signs that the first lacks
            "font.size": 11.5,
            "mathtext.fontset": "cm",  # as formulas are set in the text
            "figure.figsize": (6.4, 3.6),
            "figure.facecolor": "none",
            "figure.constrained_layout.use": True,
            "savefig.facecolor": "none",
            "savefig.transparent": True,
            "axes.facecolor": "none",
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "axes.titlesize": 12.5,
            "axes.labelsize": 11.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": mpl.cycler(color=SERIES),
            "axes.grid": False,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "grid.color": INK,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "legend.fontsize": 10.5,
            "lines.linewidth": 2,
            "image.cmap": "viridis",
            "svg.hashsalt": "course",  # the same figure gives the same bytes
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})


def heat_map(ax, matrix, rows, columns, *, colour: str = "weights", digits: int = 2):
    """Draw a small matrix as a heat map with its numbers written in the cells.

    Args:
        ax: matplotlib axes.
        matrix: (R, C) numbers in [0, 1].
        rows, columns: R and C labels.
        colour: a name of `COLOURS`; the cell's shade goes from near white to it.
        digits: decimals written in each cell; None writes nothing.

    Raises:
        ValueError: if the labels do not fit the matrix.
    """
    if len(rows) != len(matrix) or any(len(row) != len(columns) for row in matrix):
        raise ValueError(f"a matrix of {len(rows)} rows and {len(columns)} columns was expected")
    # Opaque, so that the numbers have the same ground on light and dark pages.
    shades = mpl.colors.LinearSegmentedColormap.from_list(colour, ["#f7f4f7", COLOURS[colour]])
    ax.imshow(matrix, cmap=shades, vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    if digits is not None:
        for i, row in enumerate(matrix):
            for j, x in enumerate(row):
                ax.text(j, i, f"{float(x):.{digits}f}", ha="center", va="center", color="white" if x > 0.7 else "#1f1f1f")
    return ax


def label_lines(ax, *, size: float = 10.5):
    """Write each line's label at its right end, in its colour, in place of a legend; labels that would touch move apart.

    Args:
        ax: matplotlib axes with their final limits and scales.
        size: of the letters, in points.

    Raises:
        ValueError: if no line has a label.
    """
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    if not lines:
        raise ValueError("no line of these axes has a label: give plot(…, label=…)")
    ax.figure.draw_without_rendering()  # the layout decides how far apart ends are
    point = ax.figure.dpi / 72
    ends = [(float(line.get_transform().transform(line.get_xydata())[-1][1]) / point, line) for line in lines]
    ends.sort(key=lambda end: end[0])
    heights = [end for end, _ in ends]
    for _ in range(100):  # two labels that touch give way by half each
        for i in range(len(heights) - 1):
            lacks = max(0.0, 1.3 * size - (heights[i + 1] - heights[i]))
            heights[i] -= lacks / 2
            heights[i + 1] += lacks / 2
    for height, (end, line) in zip(heights, ends, strict=True):
        look = {"color": line.get_color(), "fontsize": size, "va": "center", "annotation_clip": False}
        x, y = line.get_xydata()[-1]
        ax.annotate(line.get_label(), (x, y), (6, height - end), line.get_transform(), "offset points", **look)
    return ax


def save(figure, path) -> None:
    """Write a figure as deterministic SVG."""
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
