"""What tests of models need."""

import pytest
import torch


@pytest.fixture
def full_width(monkeypatch):
    """Hugging Face's Llama computes norms, angles and softmax in float32 whatever the dtype; here float32 means float64."""

    def set_to(dtype: torch.dtype):
        monkeypatch.setattr(torch, "float32", dtype)
        monkeypatch.setattr(torch, "float", dtype)
        monkeypatch.setattr(torch.Tensor, "float", lambda tensor: tensor.to(dtype))

    return set_to
