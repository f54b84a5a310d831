"""Each step on the way to the fast attention is already right."""

import pytest
import torch

from course.kernels import steps
from course.model import attend


@pytest.mark.parametrize("step", steps.STEPS)
@pytest.mark.parametrize("T", [1, 50, 130])
def test_each_step_gives_what_the_plain_form_gives(step, T, drawn, monkeypatch):
    if T == 50:  # several small tiles, of other heights than widths
        monkeypatch.setattr(steps, "M", 16)
        monkeypatch.setattr(steps, "N", 32)
    inputs = [drawn((1, 2, T, 64), torch.float16, seed) for seed in (1, 2, 3)]
    exact = attend(*(each.double() for each in inputs))
    assert float((steps.attention(*inputs, step).double() - exact).norm() / exact.norm()) < 2e-3


def test_what_the_steps_do_not_take_is_refused(drawn):
    query = drawn((1, 2, 8, 64), torch.float16)
    with pytest.raises(ValueError, match="step must be one of tiles"):
        steps.attention(query, query, query, "fast")
    with pytest.raises(ValueError, match="contiguous"):
        steps.attention(query, query.transpose(1, 2), query, "tiles")
