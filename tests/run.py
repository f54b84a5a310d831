"""All tests, part by part: `python tests/run.py`, or with the names of parts.

A part that fails does not keep the next from running; the exit code is 1 if one failed. At the end come the processor seconds
of each test file and of each chapter's part, which fails if it takes more than its share, and the time of each part.

`--record` keeps the seconds as tests/seconds.json: by them the next run begins with what takes longest.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests import seconds  # noqa: E402

PYTEST = "pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder"  # see tests/seconds.py
SOURCE = f"--nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg {os.environ.get('NOTEBOOKS') or 'source'}"
OLD_PROCESSOR = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}
RECORDED_LOOKS = {"COURSE_LOOKS": "recorded"}  # tests/course/test_looks.py makes each one anew
PARTS = {
    "tools": ["python -m book.tools"],
    "style": ["ruff check", "ruff format --check autograder benchmarks book conftest.py course experiments jupyter tests"],
    "proofs": ["python -m book.proofs --install --check"],
    "code": [f"{PYTEST} --ignore tests/book tests"],
    "book": [f"{PYTEST} tests/book"],  # apart from the code: a browser's event loop stays in its process
    "notebooks": [f"{PYTEST} {SOURCE}"],
    "arithmetic": [f"{PYTEST} {SOURCE}"],  # of an old processor; not among those that run without being named
}
ENVIRONMENTS = {"notebooks": RECORDED_LOOKS, "arithmetic": RECORDED_LOOKS | OLD_PROCESSOR}
NAMED_ONLY = {"arithmetic"}
TOGETHER = {"book", "notebooks"}  # each waits much: for a browser, for kernels


def rounds(names: list[str]) -> list[list[str]]:
    """The parts one after the other, and those of `TOGETHER` that follow each other at the same time."""
    found: list[list[str]] = []
    for name in names:
        if found and {name, *found[-1]} <= TOGETHER:
            found[-1].append(name)
        else:
            found.append([name])
    return found


def run_part(name: str, commands: list[str], folder: Path, told: Path | None = None) -> tuple[bool, float]:
    """Run a part's commands and write its seconds into a folder; returns whether all passed, and the time that it took.

    What they print goes into the file `told`, if there is one.
    """
    start, passed = time.monotonic(), True
    with told.open("w") if told else contextlib.nullcontext() as out:
        for number, command in enumerate(commands):
            print(f"\n{name}: {command}", file=out, flush=True)
            words = shlex.split(command)
            if words[0] == "pytest":
                words += ["--seconds", str(folder / f"{name}{number}")]
            environment = os.environ | ENVIRONMENTS.get(name, {})
            passed &= subprocess.run(words, cwd=ROOT, env=environment, stdout=out, stderr=out).returncode == 0
    return passed, time.monotonic() - start


def run(names: list[str], parts: dict[str, list[str]] = PARTS, record: bool = False) -> int:
    """Run parts, those of all tests if none is named, and tell what they took; returns the exit code."""
    if unknown := [name for name in names if name not in parts]:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}", file=sys.stderr)
        return 2
    results = {}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as told, ThreadPoolExecutor() as pool:
        for first, *others in rounds(names or [name for name in parts if name not in NAMED_ONLY]):
            beside = {name: pool.submit(run_part, name, parts[name], Path(folder), Path(told, name)) for name in others}
            results[first] = run_part(first, parts[first], Path(folder))
            for name in others:
                results[name] = beside[name].result()
                print(Path(told, name).read_text(), flush=True)
        taken = seconds.joined(sorted(Path(folder).iterdir()))
    if record:
        seconds.keep(taken)
    long = seconds.over(taken)
    print(seconds.table(taken))
    print("".join(f"{line}\n" for line in long), end="")
    print(f"\n{'part':<12}{'seconds':>8}")
    for name, (passed, elapsed) in results.items():
        print(f"{name:<12}{elapsed:8.0f}{'' if passed else '  FAILED'}")
    return 0 if all(passed for passed, _ in results.values()) and not long else 1


if __name__ == "__main__":
    sys.exit(run([name for name in sys.argv[1:] if name != "--record"], record="--record" in sys.argv))
