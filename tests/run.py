"""All tests, part by part: `python tests/run.py`, or with the names of parts.

A part that fails does not keep the next from running; the exit code is 1 if one failed. At the end come the processor seconds
of each test file and of each chapter's part, which fails if it takes more than its share, and the time of each part.

`--record` keeps the seconds as tests/seconds.json: by them the next run begins with what takes longest.
"""

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.seconds import RECORD, Seconds, scope_of_file  # noqa: E402

PYTEST = "pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder"  # see tests/seconds.py
NBVAL = "--nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg"
SOURCE = os.environ.get("NOTEBOOKS") or "source"
NOTEBOOKS = f"{PYTEST} {NBVAL} {SOURCE}"
OLD_PROCESSOR = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}
