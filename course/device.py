"""Where tensors live, and how a notebook starts the same way every time."""

import random

import numpy as np
import torch

__all__ = ["best_device", "setup"]


def setup(seed: int = 0) -> torch.device:
    """Seed every generator, use one CPU thread, and return the best device there is.

    Small tensors are faster on one thread than on two, and the order of a sum, hence its last
    digits, does not depend on the number of cores.

    Raises:
        ValueError: if `seed` is negative.
    """
    if seed < 0:
        raise ValueError(f"seed must be zero or more, got {seed}")
    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_printoptions(precision=4, sci_mode=False)
    return best_device()


def best_device() -> torch.device:
    """CUDA if there is a GPU, else Apple's MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
