"""The loss without all logits against the course's own in float64."""

import pytest
import torch
from torch.nn import functional as F

from course.kernels import cross_entropy as kernels
from course.softmax_and_cross_entropy import cross_entropy

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(params=[32, kernels.BLOCK])
def block(request, monkeypatch):
    """A small block takes several steps for a short row."""
    monkeypatch.setattr(kernels, "BLOCK", request.param)


def targets_of(n, V, device):
    return torch.randint(V, (n,), generator=torch.Generator().manual_seed(5)).to(device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n, V, d_model, chunk", [(1, 1, 1, 1), (20, 77, 16, 7), (9, 50, 8, 100)])
def test_values_and_gradients_are_those_of_the_plain_form(n, V, d_model, chunk, dtype, block, drawn, agree, device):
    targets = targets_of(n, V, device)
    agree(
        lambda x, weight: kernels.linear_cross_entropy(x, weight, targets, chunk),
        lambda x, weight: cross_entropy(x @ weight.T, targets),
        [drawn((n, d_model), dtype), drawn((V, d_model), dtype, 1)],
        times=4,  # logits and their gradients are rounded to the dtype, too
    )


def test_no_more_logits_than_those_of_a_chunk(drawn, device, monkeypatch):
    """The largest tensor that a kernel is given has chunk × V numbers, and none of n × V is kept."""
    x, weight = drawn((40, 8)).requires_grad_(), drawn((64, 8), seed=1).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        kernels.linear_cross_entropy(x, weight, targets_of(40, 64, device), 8)
    assert sorted(each.numel() for each in kept) == [1, x.numel(), weight.numel()]  # and how many tokens count


def test_only_what_learns_gets_a_gradient(drawn, device):
    targets = targets_of(6, 10, device)
    x, weight = drawn((6, 4)), drawn((10, 4), seed=1)
    with torch.no_grad():
        loss = kernels.linear_cross_entropy(x, weight, targets)
    learning = kernels.linear_cross_entropy(x, weight.requires_grad_(), targets)
    assert torch.equal(loss, learning.detach())
    learning.backward()
    assert weight.grad is not None and x.grad is None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_token_that_does_not_count_is_left_out(dtype, drawn, agree, device):
    targets = targets_of(12, 30, device)
    targets[[0, 5, 11]] = -100
    agree(
        lambda x, weight: kernels.linear_cross_entropy(x, weight, targets, 5),
        lambda x, weight: F.cross_entropy(x @ weight.T, targets),
        [drawn((12, 8), dtype), drawn((30, 8), dtype, 1)],
        times=4,
    )
    none = torch.full_like(targets, -100)
    assert kernels.linear_cross_entropy(drawn((12, 8), dtype), drawn((30, 8), dtype), none).isnan()  # as torch says of no token


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("scale", [1.0, 65_536.0])
def test_small_shares_of_many_words_and_tokens_are_kept(dtype, scale, drawn, device):
    """At the sizes of GPT-2: rows of words that no token has as its target are learned too, with a scaled loss as well."""
    n, V, d_model = (2048, 50_257, 64) if device == "cuda" else (64, 50_257, 8)
    x, weight, targets = drawn((n, d_model), dtype), drawn((V, d_model), dtype, 1) / 8, targets_of(n, V // 2, device)
    grads = _gradients(lambda x, w: scale * kernels.linear_cross_entropy(x, w, targets), x, weight)
    exact = _gradients(lambda x, w: scale * F.cross_entropy(x @ w.T, targets), x.double(), weight.double())
    for mine, right in zip((grads[0], grads[1], grads[1][V // 2 :]), (exact[0], exact[1], exact[1][V // 2 :]), strict=True):
        least = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps  # what is below is no number of this dtype
        assert mine.isfinite().all()
        assert float((mine.double() - right).norm() / right.norm()) < 8e-3 + float(least * right.numel() ** 0.5 / right.norm())


def _gradients(f, *inputs):
    leaves = [each.detach().requires_grad_() for each in inputs]
    return torch.autograd.grad(f(*leaves), leaves)


def test_a_target_outside_the_vocabulary_is_seen_in_the_loss(drawn, device):
    loss = kernels.linear_cross_entropy(drawn((3, 4)), drawn((10, 4), seed=1), torch.tensor([0, 10, 1], device=device))
    assert loss.isnan()


def test_what_does_not_fit_is_refused_in_a_sentence(drawn, device):
    with pytest.raises(ValueError, match="x must be"):
        kernels.linear_cross_entropy(drawn((3, 4)), drawn((10, 5)), targets_of(3, 10, device))
    with pytest.raises(TypeError, match="integers"):
        kernels.linear_cross_entropy(drawn((3, 4)), drawn((10, 4)), drawn((3,)))
    with pytest.raises(ValueError, match="at least 1 token"):
        kernels.linear_cross_entropy(drawn((3, 4)), drawn((10, 4)), targets_of(3, 10, device), 0)
