"""What all tests need: one thread for small tensors, no window for figures, the same examples in every run."""

import os
import re

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile` all tests of a chapter's answers go to one process, which checks them once."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrChapter(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file, chapter = super()._split_scope(nodeid), re.search(r"\[(?:f|ch)\d\d\b", nodeid)
            return chapter[0] if chapter and file.startswith("tests/autograder/") else file

    return ByFileOrChapter(config, log) if config.getoption("dist") == "loadfile" else None
