"""A small trained GPT that ships with the course, and the tokenizer that it was trained with.

It is a `course.model.GPT` that has read novels of Jane Austen and plays of Shakespeare. `experiments/training.py` trains it on a GPU
and writes what it measured to `course/data/records/training.json`.
"""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from course.data import HERE
from course.model import GPT, Config
from course.tokens import BYTES, Pair

__all__ = ["load_gpt", "save_gpt"]

PATH = HERE / "gpt.npz"


def load_gpt(path: Path = PATH) -> tuple[GPT, list[Pair]]:
    """The trained model, in float32 on the CPU and in evaluation mode, and the merges of its tokenizer.

    `bpe_encode(text, merges)` of `course.tokens` gives its token ids. The token after all of them, V − 1, is BOS: the model was trained
    on windows that begin with it, so put it first.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no checkpoint {path}: run python experiments/training.py")
    with np.load(path) as stored:
        model = GPT(Config(**json.loads(str(stored["config"]))))
        with torch.no_grad():
            for name, parameter in model.named_parameters():  # a tied head is the embedding, and stored once
                parameter.copy_(torch.from_numpy(stored[name]))
        merges = [tuple(pair) for pair in stored["merges"].tolist()]
    return model.eval(), merges


def save_gpt(model: GPT, merges: list[Pair], path: Path = PATH) -> None:
    """Write the model's weights, rounded to float16, with its configuration and its tokenizer's merges.

    Raises:
        ValueError: if the vocabulary is not that of the merges and BOS, or a weight is too large for float16.
    """
    needed = BYTES + len(merges) + 1
    if needed != model.config.V:
        raise ValueError(f"{len(merges)} merges and BOS make {needed} tokens, the model has V = {model.config.V}")
    weights = {name: parameter.detach().cpu().half() for name, parameter in model.named_parameters()}
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise ValueError(f"{name} has a weight that float16 does not hold")
    config, pairs = json.dumps(asdict(model.config)), np.array(merges, dtype=np.int32).reshape(-1, 2)
    np.savez_compressed(path, config=config, merges=pairs, **{name: weight.numpy() for name, weight in weights.items()})
