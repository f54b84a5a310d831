"""What a process that is forked to run notebooks has imported already.

No thread may run when the fork happens: nothing here computes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")

import torch
import torch.nn

import course.checks
import course.device
import course.plots
import course.widgets  # noqa: F401

torch.set_num_threads(1)
