"""Labels at the ends of lines: each near its line, none over another."""

from itertools import pairwise

import matplotlib.pyplot as plt
import pytest

from course import plots


@pytest.fixture
def ax():
    plots.use()
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_labels_stand_at_the_ends_in_the_colours_of_their_lines_and_do_not_touch(ax, scale):
    ends = {"low": 1.0, "also low": 1.0, "nearly": 1.01, "high": 50.0}
    for name, y in ends.items():
        ax.plot([0, 1], [2.0, y], label=name)
    ax.plot([0, 1], [3.0, 3.0])  # has no label
    ax.set(yscale=scale)
    plots.label_lines(ax)
    ax.figure.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert boxes.keys() == ends.keys()
    assert {text.get_text(): text.get_color() for text in ax.texts} == {
        line.get_label(): line.get_color() for line in ax.lines[:4]
    }
    letters = 10.5 * ax.figure.dpi / 72  # how high they are
    assert all(above - below > 1.2 * letters for below, above in pairwise(sorted(box.y0 for box in boxes.values())))
    inside = ax.figure.bbox
    for name, box in boxes.items():
        x, y = ax.transData.transform((1, ends[name]))
        assert box.x0 > x and abs((box.y0 + box.y1) / 2 - y) < 40 and box.x1 <= inside.x1 + 1


def test_the_label_of_a_level_line_stands_at_the_edge_of_the_axes(ax):
    ax.plot([0, 1], [0, 1], label="line")
    ax.axhline(0.5, label="level")
    plots.label_lines(ax)
    ax.figure.draw_without_rendering()
    assert {text.get_text() for text in ax.texts} == {"line", "level"}
    level = next(text for text in ax.texts if text.get_text() == "level").get_window_extent()
    assert level.x0 > ax.get_window_extent().x1 and abs((level.y0 + level.y1) / 2 - ax.transData.transform((0, 0.5))[1]) < 3


def test_axes_without_labels_are_refused(ax):
    ax.plot([0, 1], [0, 1])
    with pytest.raises(ValueError, match="no line of these axes has a label"):
        plots.label_lines(ax)
