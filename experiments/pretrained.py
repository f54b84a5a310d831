"""What the attention of the trained model does on two texts of other times and kinds, as `course.profile` measures it.

Writes course/data/records/pretrained.json: the numbers of the book's page on the trained model. A CPU, some minutes:

    python experiments/pretrained.py
    python experiments/pretrained.py --small    # few and short windows, a minute
"""

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, pretrained, profile  # noqa: E402
from course.cookbook import parameters  # noqa: E402

NAME = "smollm2-135m"
FULL = {"tokens": 1024, "windows": 8, "texts": ["austen", "shakespeare"]}
SMALL = {"tokens": 128, "windows": 2, "texts": ["austen", "shakespeare"]}


def of_text(model, tokenizer, text: str, tokens: int, windows: int) -> dict:
    """The summary of a text, and what its pictures need: by layer and head, and by layer and distance."""
    written = data.read(text)
    ids = tokenizer.encode(written, errors="ignore")
    found = profile.attention_on(model, profile.windows_of(ids, tokens, windows), lambda step: print(text, step, flush=True))
    told = profile.summary(found, len(written.encode("utf-8")) / len(ids))
    means = found["profile"].mean(dim=(0, 2))  # (L, D + 1)
    distances = sorted({round(2 ** (i / 4)) for i in range(64) if 2 ** (i / 4) < means.shape[1]})
    shown = {"sink": found["sink"].mean(dim=0), "induction": found["induction"], "profile": means[:, distances]}
    rounded = {name: [[float(f"{x:.3g}") for x in row] for row in values.tolist()] for name, values in shown.items()}
    return told | {"text": text, "tokens": tokens, "distances": distances} | rounded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few and short windows")
    small = parser.parse_args().small
    settings = SMALL if small else FULL
    torch.set_num_threads(2)
    model, tokenizer = pretrained.load(NAME), pretrained.tokenizer(NAME)
    sizes = {name: settings[name] for name in ("tokens", "windows")}
    path = data.keep_record(
        "pretrained",
        [of_text(model, tokenizer, text, **sizes) for text in settings["texts"]],
        settings=settings | {"model": NAME, "parameters": parameters(model.config.shape())["all"]},
        seeds=[0],
        interval="95% of the mean over windows of one text, Student's t",
        small=small,
        what="loss, weight on the first token, entropy, decay with distance, heads by score and effective rank, by course.profile",
    )
    print(path)


if __name__ == "__main__":
    main()
