"""The fast softmax against the course's own in float64."""

import math

import pytest
import torch

from course.kernels.softmax import softmax
from course.softmax_and_cross_entropy import softmax as plain

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (3, 5, 48), (70, 129), (2, 9000), (0, 8)], ids=str)
def test_values_and_gradients_are_those_of_the_plain_form(shape, dtype, drawn, agree):
    agree(softmax, plain, [drawn(shape, dtype)])


def test_large_scores_and_excluded_ones(device):
    x = torch.tensor([[1e4, 1e4, -math.inf], [-1e4, -math.inf, -1e4]], device=device)
    assert softmax(x).tolist() == [[0.5, 0.5, 0], [0.5, 0, 0.5]]


def test_a_row_without_scores_is_refused(drawn):
    with pytest.raises(ValueError, match="between 1 and 65536"):
        softmax(drawn((3, 0)))
