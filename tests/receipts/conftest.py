"""Receipts are evidence: a receipt that is skipped or expected to fail is no evidence, so it fails."""

import pytest


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "receipt(id, kind): this test is the evidence of kind `kind` for the formula `id` of book/reference/formulas.yml",
    )


def refuse(report, what: str, name: str) -> None:
    """Turn a skipped or expectedly failing report into a failure that says why."""
    report.outcome = "failed"
    report.longrepr = (
        f"{name} was {what}: evidence must run and pass. Mend the test, or claim a weaker receipt in book/reference/formulas.yml."
    )
    if hasattr(report, "wasxfail"):
        del report.wasxfail


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if item.get_closest_marker("receipt") is None:
        return
    if hasattr(report, "wasxfail"):
        refuse(report, "expected to fail", item.nodeid)
    elif report.skipped:
        refuse(report, "skipped", item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    report = (yield).get_result()
    if report.skipped:
        refuse(report, "skipped as a whole", report.nodeid)
