"""What a process that is forked to check a chapter has imported already.

What is missing here is imported for every chapter anew, which takes seconds. No thread may run
when the fork happens: nothing here computes.
"""

# ruff: noqa: F401

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")

import matplotlib.pyplot
import sympy
import torch
import torch.nn

import autograder.authoring.answers
import autograder.wire.shell
import course.checks
import course.device
import course.plots
import course.widgets

torch.set_num_threads(1)
