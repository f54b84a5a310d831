"""What nbval keeps to while it runs the source notebooks: the limit on a chapter's run time, and how outputs are compared."""

from importlib.util import find_spec
from pathlib import Path

import pytest

# The kernels are tested where there is little else.
pytest_plugins = ["tests.seconds", *(["tests.nbval_plugin"] if find_spec("nbval") else [])]
LIMIT = 40.0  # processor seconds of all cells of one notebook


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker of xdist; the controller has all seconds
        return
    taken = session.config.pluginmanager.get_plugin("stopwatch").seconds
    seconds = {Path(file).stem: sum(parts.values()) for file, parts in taken.items() if file.endswith(".ipynb")}
    for stem, total in sorted(seconds.items()):
        reporter.write_line(f"{stem}: {total:.1f} s of {LIMIT:g} s")
    if any(total > LIMIT for total in seconds.values()):
        reporter.write_line(f"a chapter must run in {LIMIT:g} s", red=True)
        session.exitstatus = 1
