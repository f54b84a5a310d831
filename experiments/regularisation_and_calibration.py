"""What do dropout and label smoothing do to a classifier's calibration, and what does a temperature change?

A perceptron learns scikit-learn's digits from 300 of them, at three levels of noise on the pixels: plainly,
with dropout, with smoothed labels. A temperature is fitted on 500 other digits; all figures are of the
997 that are left. Writes course/data/records/regularisation_and_calibration.json. One CPU core, about a minute:

    python experiments/regularisation_and_calibration.py
"""

import json
import math

import torch

from course import data
from course.regularisation_and_calibration import (
    ece,
    ece_bound,
    fit_temperature,
    mlp_logits,
    nll,
    noisy_digits,
    top_label,
    train_mlp,
)

NOISES = [0.0, 0.3, 0.5]
WAYS = {"plain": {}, "dropout": {"rho": 0.5}, "smoothing": {"eps": 0.1}}
SEEDS = list(range(10))
BINS = 15


def calibrate(noise: float, way: str, seed: int) -> dict[str, float]:
    """Train, fit the temperature on the held-out part, judge on the test part, before and after."""
    train, (X_held, held), (X_test, test) = noisy_digits(noise, seed)
    parameters = train_mlp(*train, seed=seed, **WAYS[way])
    tau = fit_temperature(mlp_logits(X_held, parameters), held)
    z = mlp_logits(X_test, parameters)  # (997, 10)
    found = {"tau": tau}
    for when, logits in [("before", z), ("after", z / tau)]:
        confidence, correct = top_label(logits, test)
        found |= {
            f"accuracy {when}": float(correct.mean()),
            f"confidence {when}": float(confidence.mean()),
            f"ece {when}": ece(confidence, correct, BINS),
            f"honest ece {when}": math.sqrt(2 / math.pi) * ece_bound(confidence, BINS),
            f"nll {when}": nll(logits, test),
        }
    return found


def interval(values: list[float]) -> dict:
    """The values over seeds, their mean and the half width of its 95% interval."""
    mean, half = data.interval(values, 4)
    return {"mean": mean, "half_width": half, "runs": [round(x, 4) for x in values]}


def change(runs: dict, one: tuple, other: tuple) -> dict:
    """Mean difference of two figures, each (noise, way, name), seed by seed."""
    return interval([a[one[2]] - b[other[2]] for a, b in zip(runs[one[:2]], runs[other[:2]], strict=True)])


def main() -> None:
    torch.set_num_threads(1)
    runs = {(noise, way): [calibrate(noise, way, seed) for seed in SEEDS] for noise in NOISES for way in WAYS}
    rows = [
        {"noise": noise, "way": way} | {name: interval([run[name] for run in found]) for name in found[0]}
        for (noise, way), found in runs.items()
    ]
    judged = {}
    for noise in NOISES:
        for way in ("smoothing", "dropout"):
            judged[f"ece of {way} less plain, noise {noise}"] = change(
                runs, (noise, way, "ece before"), (noise, "plain", "ece before")
            )
        for name in ("ece", "nll"):
            pair = (noise, "plain", f"{name} after"), (noise, "plain", f"{name} before")
            judged[f"{name} after less before, plain, noise {noise}"] = change(runs, *pair)
        pair = (noise, "plain", "ece after"), (noise, "plain", "honest ece after")
        judged[f"ece after less honest, plain, noise {noise}"] = change(runs, *pair)
    data.keep_record(
        "regularisation_and_calibration",
        {"judged": judged, "rows": rows},
        settings={"noises": NOISES, "ways": WAYS, "bins": BINS, "train": 300, "held_out": 500, "test": 997},
        seeds=SEEDS,
        interval="95% of the mean over seeds, Student's t",
        packages=("torch", "scikit-learn"),
        what="calibration of a perceptron on digits with noise on the pixels, plain, with dropout, with smoothed labels",
        prediction="smoothing lowers the ECE only where the plain network is overconfident",
        null_model="the mean ECE of an honest model with the same confidences",
    )
    print(json.dumps(judged, indent=1))


if __name__ == "__main__":
    main()
