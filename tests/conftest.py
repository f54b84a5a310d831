"""What all tests need: one thread for small tensors, no window for figures, the same examples in every run."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "agg"

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile("course", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")


@pytest.fixture(autouse=True)
def default_dtype():
    """A chapter that ran in this process may have set it, as is right in a kernel of its own."""
    yield
    torch.set_default_dtype(torch.float32)
