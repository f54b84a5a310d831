"""What all tests need: one thread for small tensors, no window for figures, the same examples in every run."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "agg"

import pytest
from hypothesis import HealthCheck, settings

from autograder.wire.shell import reset_settings

settings.register_profile("course", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")


@pytest.fixture(autouse=True)
def settings_end_with_a_test():
    """A chapter that ran in this process may have set a default dtype or how numbers print."""
    yield
    reset_settings()
