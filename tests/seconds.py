"""Processor seconds of the tests: what each file and each chapter's part took, and the order of a queue by them.

A plugin of pytest. `--seconds PATH` writes what a run took as JSON: of each file, of each chapter's part of it ("" is the rest).
Processor time is that of the test's process and of all that it started: on a busy machine a test ends later, but takes no more.
"""

import ast
import contextlib
import inspect
import json
import os
import re
import resource
import statistics
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "seconds.json"  # of an earlier run; `python tests/run.py --record` writes it
BUDGET = 150.0  # processor seconds of a chapter's part, on a processor whose yardstick is
YARDSTICK = 0.0235  # seconds; on a slower one the budget is larger
STARTING = "(starting and collecting)"
INTERPRETED = "tests/course/kernels/test_interpreted.py"
NAMED = re.compile(r"\[((?:f|ch)\d\d)(?![0-9])")
Seconds = dict[str, dict[str, float]]  # by file, then by chapter


# ---------------------------------------------------------------- what is measured


def busy() -> float:
    """Processor seconds that this process took, and all that it started, those that still run too."""
    ended = sum(
        used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return ended + sum(_ticks(pid) for pid in descendants(os.getpid())) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int):
    for task in Path(f"/proc/{pid}/task").glob("*/children"):  # only Linux has them
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from descendants(child)


def _ticks(pid: int) -> int:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))  # user and system, its own and those of its children that ended
    return 0


def yardstick() -> float:
    """Processor seconds of a piece of work that is always the same: how fast this machine is now.

    It reads and writes as much memory as tests do, since on a busy machine that is what takes more of the processor.
    """
    source, taken = Path(inspect.__file__).read_text(encoding="utf-8"), []
    for _ in range(5):
        start = time.process_time()
        ast.parse(source)
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def chapter_of(nodeid: str) -> str:
    """The chapter whose part a test is: by its parameter, its module's name or its notebook; "" for none."""
    if named := NAMED.search(nodeid):
        return named[1]
    path = Path(nodeid.partition("::")[0])
    if path.suffix == ".ipynb":
        return path.stem.partition("_")[0]
    if path.parent.as_posix() in ("tests/course", "tests/receipts"):
        return CHAPTERS.get(path.stem.removeprefix("test_"), "")
    return ""


CHAPTERS = {path.name.partition("_")[2]: path.name.partition("_")[0] for path in (ROOT / "source").glob("*_*")}


class Stopwatch:
    """Collects what each test took; the controller of xdist adds up what its workers tell."""

    def __init__(self):
        self.seconds: defaultdict[str, Counter] = defaultdict(Counter)
        self.slowest = 0.0
        self.last = 0.0

    def pytest_sessionstart(self):
        self.slowest = yardstick()

    def stop(self, nodeid: str) -> None:
        """What was taken since the last stop is this test's."""
        now = busy()
        self.seconds[nodeid.partition("::")[0]][chapter_of(nodeid)] += max(now - self.last, 0.0)
        self.last = now

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session):
        if not session.config.pluginmanager.has_plugin("dsession"):  # the workers of a controller tell their own
            self.stop(STARTING)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        result = yield
        self.stop(item.nodeid)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        told = getattr(node, "workeroutput", {}).get("seconds")
        if told is not None:  # a worker that crashed tells nothing
            self.add(told)

    def add(self, told: dict) -> None:
        self.slowest = max(self.slowest, told["yardstick"])
        for file, parts in told["seconds"].items():
            self.seconds[file].update(parts)

    def told(self) -> dict:
        self.slowest = max(self.slowest, yardstick())
        return {"yardstick": self.slowest, "seconds": {file: dict(parts) for file, parts in self.seconds.items()}}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["seconds"] = self.told()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config):
        if (path := config.getoption("seconds")) and not hasattr(config, "workeroutput"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(json.dumps(self.told(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def pytest_addoption(parser):
    parser.addoption("--seconds", metavar="PATH", help="write the processor seconds of each file and chapter to a file")


def pytest_configure(config):
    config.pluginmanager.register(Stopwatch(), "stopwatch")


# ---------------------------------------------------------------- what is told


def joined(paths: list[Path]) -> dict:
    """What several runs took, as one."""
    all_ = Stopwatch()
    for path in paths:
        all_.add(json.loads(path.read_text(encoding="utf-8")))
    return all_.told()


def by_chapter(seconds: Seconds) -> Counter:
    found = Counter()
    for parts in seconds.values():
        found.update(parts)
    return found


def table(taken: dict) -> str:
    """The seconds of each file and of each chapter's part, the largest first."""
    files = Counter({file: sum(parts.values()) for file, parts in taken["seconds"].items()})
    chapters = by_chapter(taken["seconds"])
    if rest := chapters.pop("", 0.0):
        chapters["what is of no chapter"] = rest
    lines = []
    for title, found in (("file", files), ("chapter's part", chapters)):
        if found:
            lines += ["", f"{title:<70}processor seconds", *(f"{name:<70}{spent:8.1f}" for name, spent in found.most_common())]
    return "\n".join(lines)


def over(taken: dict) -> list[str]:
    """A sentence for each chapter's part that takes more than the budget."""
    budget = BUDGET * max(1.0, taken["yardstick"] / YARDSTICK)
    return [
        f"the tests of {chapter} take {seconds:.0f} s of the processor; a chapter's part has {budget:.0f}"
        for chapter, seconds in sorted(by_chapter(taken["seconds"]).items())
        if chapter and seconds > budget
    ]


def keep(taken: dict) -> None:
    """Write the record by which the next run is ordered; files that did not run keep their seconds."""
    record = (json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}) | taken["seconds"]
    record = {
        file: {chapter: round(seconds, 1) for chapter, seconds in parts.items()}
        for file, parts in record.items()
        if (ROOT / file).exists()
    }
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- the order of a queue


def scope(nodeid: str) -> str:
    """What runs in one process, one after the other: a file, or all tests of a chapter's answers, which are checked once."""
    file, named = nodeid.partition("::")[0], NAMED.search(nodeid)
    if file == INTERPRETED and "[" in nodeid:
        return nodeid  # each runs some of the kernels
    return f"[{named[1]}" if named and file.startswith("tests/autograder/") else file


def expected(record: Seconds) -> Counter:
    """The seconds of each scope, by an earlier run."""
    found = Counter()
    for file, parts in record.items():
        for chapter, seconds in parts.items():
            found[f"[{chapter}" if chapter and file.startswith("tests/autograder/") else file] += seconds
    return found


def pytest_collection_modifyitems(items):
    """The longest scope first, so that no process waits long for the last one; what is new may be long."""
    seconds = expected(json.loads(RECORD.read_text()) if RECORD.exists() else {})
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        first.setdefault(scope(item.nodeid), place)
    items.sort(key=lambda item: (-seconds.get(scope(item.nodeid), float("inf")), first[scope(item.nodeid)]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile` the units of work are scopes; with `--no-loadscope-reorder` they come in the order of the items."""
    from xdist.scheduler import LoadFileScheduling

    class ByScope(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope(nodeid)

    return ByScope(config, log) if config.getoption("dist") == "loadfile" else None
