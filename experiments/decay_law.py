"""How attention falls with distance: curves that compete on held-out text, and nulls.

    python experiments/decay_law.py            # a CPU, about ten minutes if it is idle; a GPU if there is one
    python experiments/decay_law.py --small    # a CPU, under a minute

The course's own GPT reads windows of Austen that it was not trained on, each after its mark for the start. Every second window
trains the curves of `course.decay_law`, the others score them. Nulls: the same windows with their tokens in a random order, the same
weights with each query's keys in a random order, and the same model before training.
"""

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.attention_maps import FIRST, distance_profile, look  # noqa: E402
from course.checkpoint import load_gpt  # noqa: E402
from course.decay_law import decay_fit, gains, permuted_keys, shares  # noqa: E402
from course.model import GPT  # noqa: E402
from course.tokens import bpe_encode  # noqa: E402

READ = {"characters": 60_000, "windows": 12, "T": 512, "low": 4, "high": 150}


def rounded(x: torch.Tensor, digits: int = 4) -> list:
    return [round(v, digits) for v in x.tolist()]


def significant(x: torch.Tensor) -> list:
    return [float(f"{v:.4g}") for v in x.tolist()]


# ---------------------------------------------------------------- the course's GPT


def profiles_of(model: GPT, windows: torch.Tensor, permute: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Profiles (W, heads of all layers, D + 1) and the weight on the first token (W, heads), one window at a time."""
    profiles, sinks, T = [], [], windows.shape[1]
    for w, ids in enumerate(windows):
        layers, first = [], []

        def see(layer, weights, stream, layers=layers, first=first, w=w):
            weights = weights[0].float().cpu()  # (H, T, T)
            first.append(weights[:, T // 10 :, 0].mean(dim=1))
            if permute:
                weights = permuted_keys(weights, FIRST, torch.Generator().manual_seed(100 * w + layer))
            layers.append(distance_profile(weights))

        look(model, ids[None], see)
        profiles.append(torch.cat(layers))
        sinks.append(torch.cat(first))
    return torch.stack(profiles), torch.stack(sinks)


def on_gpt(s: dict, device: str) -> dict:
    model, merges = load_gpt()
    model = model.to(device)
    ids, T, bos = bpe_encode(data.read("austen")[-s["characters"] :], merges), s["T"], model.config.V - 1
    starts = [round(i * (len(ids) - T + 1) / (s["windows"] - 1)) for i in range(s["windows"])]
    windows = torch.tensor([[bos, *ids[start : start + T - 1]] for start in starts], device=device)
    generator = torch.Generator().manual_seed(0)
    order = torch.stack(
        [torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.randperm(T - 1, generator=generator)]) for _ in starts]
    )
    torch.manual_seed(0)
    fresh = GPT(model.config).to(device).eval()
    text, sinks = profiles_of(model, windows)
    nulls = {
        "shuffled tokens": profiles_of(model, windows.gather(1, order.to(device)))[0],
        "keys permuted": profiles_of(model, windows, permute=True)[0],
        "untrained": profiles_of(fresh, windows)[0],
    }
    low, high = s["low"], s["high"]
    train, test = text[0::2].mean(dim=0), text[1::2]  # (heads, D + 1), (W / 2, heads, D + 1)
    of_heads = gains(train.expand_as(test), test, low, high)  # (W / 2, heads)
    whole = gains(train.mean(dim=0).expand(len(test), -1), test.mean(dim=1), low, high)  # (W / 2,)
    slopes = decay_fit(text, low, high)["power"]  # (W, heads)
    mean, half = zip(*(data.interval(column) for column in slopes.T), strict=True)
    alone = {k: v.mean(dim=0) for k, v in of_heads.items() if k != "profile itself"}
    names, table = list(alone), torch.stack(list(alone.values()))  # (curves, heads)
    fits = decay_fit(text.mean(dim=(0, 1)), low, high)
    return {
        "exponent": {k: rounded(decay_fit(v.mean(dim=1), low, high)["power"]) for k, v in {"text": text, **nulls}.items()},
        "R2": {k: round(float(v), 4) for k, v in fits.items() if k.startswith("R2")},
        "heads": {
            "exponent": [round(x, 3) for x in mean],
            "mean log": rounded(shares(text.mean(dim=0), low, high) @ torch.arange(low, high + 1, dtype=torch.float64).log(), 3),
            "half": [round(x, 3) for x in half],
            "R2": rounded(decay_fit(text.mean(dim=0), low, high)["R2 of the power law"], 3),
            "sink": rounded(sinks.mean(dim=0), 4),
            "shuffled": rounded(decay_fit(nulls["shuffled tokens"].mean(dim=0), low, high)["power"], 3),
            "gains": {k: rounded(v.mean(dim=0)) for k, v in of_heads.items()},
            "best": {name: int((table.argmax(dim=0) == i).sum()) for i, name in enumerate(names)},
        },
        "gains": {k: rounded(v, 5) for k, v in whole.items()},
        "profile": {"train": significant(train.mean(dim=0)), "test": significant(test.mean(dim=(0, 1)))},
        "band": {k: [significant(f(v.mean(dim=1), dim=0)) for f in (torch.amin, torch.amax)] for k, v in nulls.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few windows, under a minute on a CPU")
    small = parser.parse_args().small
    read = READ | ({"windows": 4} if small else {})
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)
    gpt = on_gpt(read, device)
    print({k: v for k, v in gpt.items() if k not in ("profile", "band", "heads")}, gpt["heads"]["best"], flush=True)
    data.keep_record(
        "decay_law",
        {"gpt": gpt},
        settings={"gpt": read},
        seeds=[0],
        interval="95% over windows of text, Student's t: `half`",
        device=device,
        small=small,
    )


if __name__ == "__main__":
    main()
