"""How attention falls with distance: curves that compete on held-out text, nulls, and small models with three bases.

    python experiments/decay_law.py            # a CPU, about ten minutes if it is idle; a GPU if there is one
    python experiments/decay_law.py --small    # a CPU, under a minute

The course's own GPT reads windows of Austen that it was not trained on, each after its mark for the start. Every second window
trains the curves of `course.decay_law`, the others score them. Nulls: the same windows with their tokens in a random order, the same
weights with each query's keys in a random order, and the same model before training.

Then small models of characters, with several bases θ of RoPE, and with the base 1,000 on a text whose words are shuffled (the
course's own record is without these: about three minutes of an idle processor). Models of
one seed have the same start and read the same places of the text. Before it ran: if the base sets the exponent as γ_Padé says, the
exponents rise with it from −0.5 to 1; if it does not matter, they differ less between bases than between seeds.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.attention_maps import FIRST, distance_profile, look  # noqa: E402
from course.checkpoint import load_gpt  # noqa: E402
from course.decay_law import decay_fit, gains, gamma_pade, permuted_keys, shares  # noqa: E402
from course.model import GPT, Config  # noqa: E402
from course.multi_head import descend, next_token_loss  # noqa: E402
from course.tokens import bpe_encode  # noqa: E402

READ = {"characters": 60_000, "windows": 12, "T": 512, "low": 4, "high": 150}
TINY = {"d_model": 64, "n_layers": 2, "n_heads": 4, "T": 128, "B": 16, "lr": 3e-3, "tested": 16, "low": 2, "high": 48}
FULL = {"steps": 400, "seeds": 3, "bases": [30, 1_000, 1_000_000]}
SMALL = {"steps": 30, "seeds": 2, "bases": [30, 1_000_000]}


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


# ---------------------------------------------------------------- small models


def letters(shuffled: bool) -> torch.Tensor:
    """Bytes of Austen, those beyond 127 as blanks; the words in a random order if asked."""
    text = data.read("austen", 1_200_000)
    if shuffled:
        words = text.split(" ")
        text = " ".join(words[i] for i in torch.randperm(len(words), generator=torch.Generator().manual_seed(0)).tolist())
    return torch.tensor([b if b < 128 else 32 for b in text.encode("utf-8")])


def small_model(theta: float, seed: int, ids: torch.Tensor, s: dict, steps: int, device: str) -> dict:
    start = time.perf_counter()
    torch.manual_seed(seed)
    config = Config(V=128, d_model=s["d_model"], n_layers=s["n_layers"], n_heads=s["n_heads"], T_max=s["T"], theta=float(theta))
    model = GPT(config).to(device)
    held = ids[-200_000:]
    tested = torch.stack([held[i * 10_000 : i * 10_000 + s["T"]] for i in range(s["tested"])]).to(device)
    fresh = profiles_of(model, tested)[0].mean(dim=1)
    generator = torch.Generator().manual_seed(1_000 + seed)
    ids = ids.to(device)

    def loss():
        places = torch.randint(len(ids) - 200_000 - s["T"] - 1, (s["B"], 1), generator=generator)
        return next_token_loss(lambda x, edit: model(x), ids[(places + torch.arange(s["T"] + 1)).to(device)])

    descend(model, loss, steps, s["lr"])
    found = profiles_of(model.eval(), tested)[0]  # (windows, heads, D + 1)
    with torch.no_grad():
        nats = float(next_token_loss(lambda x, edit: model(x), tested))
    low, high = s["low"], s["high"]
    fit = decay_fit(found.mean(dim=(0, 1)), low, high)
    half = len(found) // 2
    scored = gains(found[:half].mean(dim=(0, 1)), found[half:].mean(dim=(0, 1)), low, high)
    return {
        "theta": theta,
        "seed": seed,
        "nats": round(nats, 4),
        "exponent": round(float(fit["power"]), 4),
        "R2": round(float(fit["R2 of the power law"]), 4),
        "untrained": round(float(decay_fit(fresh.mean(dim=0), low, high)["power"]), 4),
        "by window": rounded(decay_fit(found.mean(dim=1), low, high)["power"], 3),
        "heads": rounded(decay_fit(found.mean(dim=0), low, high)["power"], 3),
        "gains": {k: round(float(v), 5) for k, v in scored.items()},
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--small", action="store_true", help="few windows, two bases, two seeds and few steps, under a minute on a CPU"
    )
    parser.add_argument(
        "--only", choices=("gpt", "models"), help="one half; the models are added to the record that the other made"
    )
    options = parser.parse_args()
    small, only = options.small, options.only
    run, read = SMALL if small else FULL, READ | ({"windows": 4} if options.small else {})
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)
    if only != "models":
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
    if only == "gpt":
        return
    models, text = [], {shuffled: letters(shuffled) for shuffled in (False, True)}
    for seed in range(run["seeds"]):
        for theta, shuffled in [*((theta, False) for theta in run["bases"]), (1_000, True)]:
            row = small_model(theta, seed, text[shuffled], TINY, run["steps"], device)
            models.append({"text": "words shuffled" if shuffled else "austen"} | row)
            print(models[-1], flush=True)
            told = {"settings": TINY | run, "device": device, "rows": models}
            data.add_to_record("decay_law", small, models=told)
    plain = [row for row in models if row["text"] == "austen"]
    pade = [gamma_pade(row["theta"], TINY["T"]) for row in plain]
    print("correlation with γ_Padé", round(statistics.correlation(pade, [row["exponent"] for row in plain]), 2))


if __name__ == "__main__":
    main()
