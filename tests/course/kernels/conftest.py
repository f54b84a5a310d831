"""The kernels run on the GPU where there is one, else in Triton's interpreter, which must be chosen before Triton is imported.

So on a machine without a GPU these files are left to a process of their own, which test_interpreted.py starts.
"""

import os

import pytest
import torch

on_gpu = torch.cuda.is_available()
if on_gpu or os.environ.get("TRITON_INTERPRET") == "1":
    collect_ignore = ["test_interpreted.py"]
else:
    collect_ignore_glob = ["test_[!i]*.py"]


@pytest.fixture
def device() -> str:
    return "cuda" if on_gpu else "cpu"


@pytest.fixture
def drawn(device):
    """Normal numbers that depend on the seed only: drawn(shape, dtype, seed)."""

    def draw(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
        return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(device, dtype)

    return draw


@pytest.fixture
def agree(drawn):
    """Hold a fast form equal to its plain twin in float64, values and gradients, by the length of the error."""
    tolerance = {torch.float32: 3e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}  # two roundings to the dtype

    def check(fast, plain, inputs: list[torch.Tensor], times: float = 1.0):
        dtype = inputs[0].dtype
        ours = _with_gradients(fast, inputs, drawn)
        theirs = _with_gradients(plain, [each.double() for each in inputs], drawn)
        for place, (mine, exact) in enumerate(zip(ours, theirs, strict=True)):
            what = "the result" if place == 0 else f"the gradient of input {place}"
            assert mine.shape == exact.shape and mine.isfinite().all(), what
            error, length = float((mine.double() - exact).norm()), float(exact.norm())
            assert error <= times * tolerance[dtype] * max(length, exact.numel() ** 0.5 * 1e-3), (
                f"{what}: ‖error‖ {error:.2e}, ‖exact‖ {length:.2e}"
            )

    return check


@pytest.fixture(params=["small programs", "own programs"] if on_gpu else ["small programs"])
def small_programs(request, monkeypatch):
    """Of the decoder: several steps of each loop, and few programs, since the interpreter takes one after the other."""
    if request.param == "own programs":
        return
    from course.kernels import decoding

    monkeypatch.setattr(decoding, "PROGRAMS", {32: ((64, 32, 4, 3),) * 3})
    for name, size in {"PROMPT_ROWS": 6, "CHOICES": 16, "KEYS": 4}.items():
        monkeypatch.setattr(decoding, name, size)


def _with_gradients(f, inputs, drawn):
    inputs = [each.detach().clone(memory_format=torch.preserve_format).requires_grad_() for each in inputs]
    out = f(*inputs)
    grad = drawn(out.shape, inputs[0].dtype, seed=99).to(out.dtype)
    return out.detach(), *torch.autograd.grad(out, inputs, grad)
