"""The fast forms, written in Triton, each beside its plain twin: `attention` beside `course.attention`, and so on.

They run on an NVIDIA GPU, and on a CPU in Triton's interpreter when ``TRITON_INTERPRET=1`` is set before Python starts.
README.md in this folder tells how the plain formula becomes the fast kernel, step by step, and what each step brought.
"""

try:
    import triton  # noqa: F401
except ImportError as error:
    raise ImportError(
        "course.kernels needs Triton, which there is for Linux: pip install triton. The plain forms in course need nothing but torch."
    ) from error

import os

import torch

__all__ = ["check_device", "multiprocessors"]


def check_device(*tensors: torch.Tensor) -> None:
    """Refuse tensors that the kernels cannot reach.

    Raises:
        ValueError: if a tensor is not on a GPU (or, in the interpreter, not on the CPU), or they are on several devices.
    """
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise ValueError(f"all tensors must be on one device, got {', '.join(sorted(map(str, devices)))}")
    (device,) = devices
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if device.type != "cuda" and not interpreted:
        raise ValueError(
            f"the kernels need a GPU, got tensors on {device}: move them, or set TRITON_INTERPRET=1 before Python starts"
        )


def multiprocessors(device: torch.device) -> int:
    """How many programs run side by side at least: the GPU's streaming multiprocessors (2 in the interpreter)."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
