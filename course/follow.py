"""The small GPT that a page of the book computes with, and what each stage of it does to a sentence: `follow.js` has the same in the page.

Its weights are bytes: each row of a matrix is whole numbers from −127 to 127 times one step. `experiments/follow.py` trains it.
"""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from course.data import HERE
from course.model import GPT, Config
from course.tokens import BYTES, Pair

__all__ = ["LEVELS", "load_follow", "quantised", "save_follow", "stored"]

PATH = HERE / "follow.npz"
LEVELS = 127  # whole numbers on each side of zero


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix as whole numbers and the step of each row: weight (R, C) → int8 (R, C), float32 (R,).

    Their product is within half a step of the matrix.

    Raises:
        ValueError: if it is no matrix, or has a number that is not finite.
    """
    if weight.ndim != 2 or not weight.isfinite().all():
        raise ValueError(f"a matrix of finite numbers is expected, got the shape {tuple(weight.shape)}")
    step = (weight.detach().float().abs().amax(dim=1) / LEVELS).clamp(min=torch.finfo(torch.float32).tiny)  # (R,)
    return (weight.detach() / step[:, None]).round().clamp(-LEVELS, LEVELS).to(torch.int8), step


def save_follow(model: GPT, merges: list[Pair], path: Path = PATH) -> None:
    """Write the model with its matrices in bytes and its norms in float32, its configuration and its tokenizer's merges.

    Raises:
        ValueError: if the vocabulary is not that of the merges and BOS, or a weight is not finite.
    """
    needed = BYTES + len(merges) + 1
    if needed != model.config.V:
        raise ValueError(f"{len(merges)} merges and BOS make {needed} tokens, the model has V = {model.config.V}")
    kept = {}
    for name, parameter in model.named_parameters():  # a tied head is the embedding, and stored once
        if parameter.ndim == 2:
            kept[name], kept[f"{name}.step"] = (each.numpy() for each in quantised(parameter))
        else:
            kept[name] = parameter.detach().numpy()
    config, pairs = json.dumps(asdict(model.config)), np.array(merges, dtype=np.int32).reshape(-1, 2)
    np.savez_compressed(path, config=config, merges=pairs, **kept)


def stored(path: Path = PATH) -> dict[str, np.ndarray]:
    """What the file has: `config` as JSON, `merges` (M, 2), and by its name each norm (C,) and each matrix (R, C), whose steps `<name>.step` are (R,).

    Raises:
        FileNotFoundError: if there is no such file.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no weights {path}: run python experiments/follow.py")
    with np.load(path) as kept:
        return dict(kept)


def load_follow(path: Path = PATH) -> tuple[GPT, list[Pair]]:
    """The model with the weights that its bytes say, in float32 on the CPU and in evaluation mode, and the merges of its tokenizer.

    The token V − 1 is BOS, which comes first in each text.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    kept = stored(path)
    model = GPT(Config(**json.loads(str(kept["config"]))))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            weight = torch.from_numpy(kept[name]).float()
            parameter.copy_(weight * torch.from_numpy(kept[f"{name}.step"])[:, None] if parameter.ndim == 2 else weight)
    return model.eval(), [tuple(pair) for pair in kept["merges"].tolist()]
