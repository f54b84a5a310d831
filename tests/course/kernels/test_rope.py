"""The fast rotation against the course's own in float64."""

import pytest
import torch

from course import position_rope
from course.kernels.rope import rope, rotations

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1, 2), (2, 3, 33, 64), (1, 9, 40, 128)], ids=str)
def test_values_and_gradients_are_those_of_the_plain_form(shape, dtype, drawn, agree, device):
    positions = torch.arange(1000, 1000 + shape[2], device=device)
    table = rotations(positions, shape[3], theta=500.0)
    agree(lambda x: rope(x, table), lambda x: position_rope.rope(x, positions, theta=500.0), [drawn(shape, dtype)])


def test_heads_beside_each_other_in_memory(drawn, agree, device):
    positions = torch.arange(20, device=device)
    x = drawn((2, 20, 5, 16)).transpose(1, 2)
    agree(lambda x: rope(x, rotations(positions, 16)), lambda x: position_rope.rope(x, positions), [x])


def test_far_positions_keep_their_angles(drawn, agree, device):
    positions = torch.arange(10**6, 10**6 + 8, device=device)
    agree(lambda x: rope(x, rotations(positions, 16)), lambda x: position_rope.rope(x, positions), [drawn((1, 1, 8, 16))])


def test_what_does_not_fit_is_refused_in_a_sentence(drawn, device):
    table = rotations(torch.arange(8, device=device), 16)
    with pytest.raises(ValueError, match="power of two"):
        rope(drawn((1, 1, 8, 12)), table)
    with pytest.raises(ValueError, match="make them with"):
        rope(drawn((1, 1, 9, 16)), table)
