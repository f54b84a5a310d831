"""All tests, part by part: `python tests/run.py`, or with the names of parts.

A part that fails does not keep the next from running; the exit code is 1 if one failed. The seconds of each are told at the end.
"""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = "pytest --numprocesses 2 --dist loadfile"
NOTEBOOKS = (
    f"{PYTEST} --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg {os.environ.get('NOTEBOOKS') or 'source'}"
)
OLD_PROCESSOR = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}
PARTS = {
    "tools": ["python -m book.tools"],
    "style": ["ruff check", "ruff format --check autograder benchmarks book conftest.py course experiments jupyter tests"],
    "proofs": ["python -m book.proofs --install --check"],
    "code": [f"{PYTEST} --no-loadscope-reorder --ignore tests/book tests"],  # see tests/conftest.py
    "book": [f"{PYTEST} tests/book"],  # alone: a browser's event loop stays in its process
    "notebooks": [NOTEBOOKS],
    "arithmetic": [NOTEBOOKS],  # of an old processor; not among those that run without being named
}
NAMED_ONLY = {"arithmetic"}


def run(names: list[str], parts: dict[str, list[str]] = PARTS) -> int:
    """Run parts, those of all tests if none is named, and tell how long each took; returns the exit code."""
    if unknown := [name for name in names if name not in parts]:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}", file=sys.stderr)
        return 2
    results = {}
    for name in names or [name for name in parts if name not in NAMED_ONLY]:
        environment = os.environ | (OLD_PROCESSOR if name == "arithmetic" else {})
        start, passed = time.monotonic(), True
        for command in parts[name]:
            print(f"\n{name}: {command}", flush=True)
            passed &= subprocess.run(shlex.split(command), cwd=ROOT, env=environment).returncode == 0
        results[name] = passed, time.monotonic() - start
    print(f"\n{'part':<12}{'seconds':>8}")
    for name, (passed, seconds) in results.items():
        print(f"{name:<12}{seconds:8.0f}{'' if passed else '  FAILED'}")
    return 0 if all(passed for passed, _ in results.values()) else 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
