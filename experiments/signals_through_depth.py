"""How far do random ReLU networks wander from the expected mean square? And what does loss scaling do for training in 16 bits?

Writes course/data/records/signals_through_depth.json. The first part takes one CPU core under a minute. The second
trains on a GPU if there is one; with --small it trains ten seeds of a small network, two minutes on a CPU:

    python experiments/signals_through_depth.py --small
"""

import argparse
import json
import math

import numpy as np
import torch
from scipy.special import digamma, polygamma
from scipy.stats import binom

from course import data
from course.device import best_device

WIDTHS = [32, 64, 128]
DEPTHS = [10, 20, 50, 100]
SEEDS = 200
WAYS = {
    "float32": (None, 1.0),
    "bfloat16": (torch.bfloat16, 1.0),
    "float16": (torch.float16, 1.0),
    "float16, scaled": (torch.float16, 2.0**24),
}  # autocast's dtype and the first loss scale
TARGETS = 1e-3  # their size: what makes the gradients small


def log_squares(width: int, seed: int) -> np.ndarray:
    """ln of the mean square of the pre-activations after 1 … 100 ReLU layers, less that of the first layer."""
    rng = np.random.default_rng([seed, width])
    z, logs = rng.normal(size=width, scale=math.sqrt(2)), []
    start = math.log(np.mean(z**2))
    for _ in range(max(DEPTHS)):
        z = np.maximum(z, 0) @ rng.normal(size=(width, width), scale=math.sqrt(2 / width))
        logs.append(math.log(np.mean(z**2)) - start)
    return np.array(logs)


def exact_variance(width: int) -> float:
    """Variance of ln of the factor of one ReLU layer: of ln χ² with K degrees of freedom, K binomial (width, 1/2), K > 0."""
    k = np.arange(1, width + 1)
    p = binom(width, 0.5).pmf(k) / (1 - 0.5**width)  # (width,)
    mean = digamma(k / 2)  # of ln χ², less ln 2
    return float(p @ polygamma(1, k / 2) + p @ (mean - p @ mean) ** 2)


def row(width: int, depth: int, values: np.ndarray) -> dict:
    """Variance and mean over seeds, with 95% intervals (the variance's is that of the mean of the squared distances)."""
    mean, mean_half = data.interval(values)
    _, variance_half = data.interval((values - mean) ** 2)
    return {
        "width": width,
        "depth": depth,
        "variance": float(values.var(ddof=1)),
        "variance_half_width": variance_half,
        "mean": mean,
        "mean_half_width": mean_half,
        "theory": 5 * depth / width,
        "exact": depth * exact_variance(width),
        "linear": 2 * depth / width,
        "one_layer": 5 / width,
        "runs": [round(float(x), 4) for x in values],
    }


def train(way: str, seed: int, width: int, steps: int, device: torch.device) -> float:
    """The share of the targets' mean square that a perceptron has not learned after `steps` steps of Adam.

    Targets are TARGETS·sin of a sum of inputs. A step with an infinite gradient is skipped and halves the scale.
    """
    dtype, scale = WAYS[way]
    torch.manual_seed(seed)
    X = torch.randn(2048, 16)  # (N, d)
    y = TARGETS * X[:, :4].sum(dim=1, keepdim=True).sin()  # (N, 1)
    net = torch.nn.Sequential(
        torch.nn.Linear(16, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
    )
    with torch.no_grad():
        net[-1].weight.mul_(TARGETS)
        net[-1].bias.zero_()
    X, y, net = X.to(device), y.to(device), net.to(device)
    groups = [{"params": net[:-1].parameters(), "lr": 1e-2}, {"params": net[-1].parameters(), "lr": 1e-2 * TARGETS}]
    optimiser = torch.optim.Adam(groups, eps=1e-20)
    for _ in range(steps):
        rows = torch.randint(len(X), (512,)).to(device)
        with torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            out = net(X[rows])
        optimiser.zero_grad()
        (scale * (out.float() - y[rows]).square().mean()).backward()
        for parameter in net.parameters():
            parameter.grad /= scale
        if all(parameter.grad.isfinite().all() for parameter in net.parameters()):
            optimiser.step()
        else:
            scale /= 2
    with torch.no_grad():
        return float((net(X) - y).square().mean() / y.square().mean())


def train_all(small: bool) -> dict:
    """All ways, with intervals over seeds."""
    device = torch.device("cpu") if small else best_device()
    settings = (
        {"width": 64, "steps": 300, "seeds": list(range(10))}
        if small
        else {"width": 1024, "steps": 3000, "seeds": list(range(10))}
    )
    rows = []
    for way in WAYS:
        left = [train(way, seed, settings["width"], settings["steps"], device) for seed in settings["seeds"]]
        mean, half = data.interval(left, 4)
        rows.append({"way": way, "left": mean, "half_width": half, "runs": [round(x, 4) for x in left]})
    return {"settings": {**settings, "targets": TARGETS, "device": device.type, "torch": torch.__version__}, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="train a small network on the CPU")
    torch.set_num_threads(1)
    small = parser.parse_args().small
    training = train_all(small)
    rows = []
    for width in WIDTHS:
        logs = np.stack([log_squares(width, seed) for seed in range(SEEDS)])  # (SEEDS, 100)
        rows += [row(width, depth, logs[:, depth - 1]) for depth in DEPTHS]
    ratios = [r["variance"] / r["theory"] for r in rows]
    judged = {"least_ratio": round(min(ratios), 3), "largest_ratio": round(max(ratios), 3)}
    rows = [{k: round(v, 5) if isinstance(v, float) else v for k, v in r.items()} for r in rows]
    data.keep_record(
        "signals_through_depth",
        {"judged": judged, "rows": rows, "training": training},
        settings={"widths": WIDTHS, "depths": DEPTHS, "dtype": "float64"},
        seeds=range(SEEDS),
        interval="95% of the mean over seeds, Student's t",
        small=small,
        packages=("numpy", "torch"),
        what="ln of the mean square after L ReLU layers of width n with He's variance, over random networks and inputs",
        prediction="variance 5 L / n, mean minus half of it",
        null_model="2 L / n, as without ReLU; 5 / n at any depth, as if the layers' errors did not add up",
    )
    print(json.dumps([judged, training["rows"]], indent=1))


if __name__ == "__main__":
    main()
