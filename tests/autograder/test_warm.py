"""The template of `autograder check` has everything and runs no thread."""

import subprocess
import sys


def test_no_thread_runs_and_no_import_is_left_to_a_chapter():
    code = """
import autograder.doors.warm, os, sys, threading
threads = len(os.listdir("/proc/self/task"))
before = set(sys.modules)
import autograder.authoring.answers, autograder.wire.shell, matplotlib.pyplot, sympy
print(threads, sorted(set(sys.modules) - before))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "1 []\n"
