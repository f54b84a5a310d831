"""Without a GPU: the tests of the kernels in Triton's interpreter, in a process that chooses it before Triton is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("which", ["decoding", "all others"])  # halves, which two processes share
def test_the_kernels_in_the_interpreter(which):
    pytest.importorskip("triton", reason="Triton is for Linux")
    decoding = HERE / "test_decoding.py"
    chosen = [decoding] if which == "decoding" else [f"--ignore={decoding}", HERE]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *map(str, chosen)],
        env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


def test_without_triton_the_course_is_there_and_the_kernels_say_what_is_missing():
    code = "import sys; sys.modules['triton'] = None; import course.model; import course.kernels"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "course.kernels needs Triton" in run.stderr and "pip install triton" in run.stderr


def test_without_the_interpreter_tensors_on_the_cpu_are_refused():
    pytest.importorskip("triton", reason="Triton is for Linux")
    code = "import torch; from course.kernels.softmax import softmax; softmax(torch.ones(2))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "the kernels need a GPU, got tensors on cpu" in run.stderr
