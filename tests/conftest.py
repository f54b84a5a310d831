"""What all tests need: one thread for small tensors, no window for figures, the same examples in every run."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MPLBACKEND"] = "agg"

import pytest
from hypothesis import HealthCheck, settings

from autograder.chapters import Chapter
from autograder.shell import reset_settings

settings.register_profile("course", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")


@pytest.fixture(autouse=True)
def settings_end_with_a_test():
    """A chapter that ran in this process may have set a default dtype or how numbers print."""
    yield
    reset_settings()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """All tests of a chapter's answers run in one process, which checks them once; the others by their files."""
    for item in items if config.pluginmanager.hasplugin("xdist") else ():
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        chapter = next((each.id for each in given if isinstance(each, Chapter)), None)
        item.add_marker(pytest.mark.xdist_group(chapter or item.nodeid.split("::")[0]))
