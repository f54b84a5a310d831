"""How far do single random ReLU networks wander from the expected mean square, for several widths and depths?

Writes course/data/records/signals_through_depth.json. One CPU core, under a minute:

    python experiments/signals_through_depth.py
"""

import json
import math
import platform
from pathlib import Path

import numpy as np

RECORD = Path(__file__).parents[1] / "course" / "data" / "records" / "signals_through_depth.json"
WIDTHS = [32, 64, 128]
DEPTHS = [10, 20, 50, 100]
SEEDS = 200


def log_squares(width: int, seed: int) -> np.ndarray:
    """ln of the mean square of the pre-activations behind 1 … 100 ReLU layers, less that of the first layer."""
    rng = np.random.default_rng([seed, width])
    z, logs = rng.normal(size=width, scale=math.sqrt(2)), []
    start = math.log(np.mean(z**2))
    for _ in range(max(DEPTHS)):
        z = np.maximum(z, 0) @ rng.normal(size=(width, width), scale=math.sqrt(2 / width))
        logs.append(math.log(np.mean(z**2)) - start)
    return np.array(logs)


def row(width: int, depth: int, values: np.ndarray) -> dict:
    """Variance and mean over seeds, with 95% intervals (normal approximation; the variance's by its fourth moment)."""
    squares = (values - values.mean()) ** 2
    return {
        "width": width,
        "depth": depth,
        "variance": float(values.var(ddof=1)),
        "variance_half_width": float(1.96 * squares.std(ddof=1) / math.sqrt(len(values))),
        "mean": float(values.mean()),
        "mean_half_width": float(1.96 * values.std(ddof=1) / math.sqrt(len(values))),
        "theory": 5 * depth / width,
    }


def main() -> None:
    rows = []
    for width in WIDTHS:
        logs = np.stack([log_squares(width, seed) for seed in range(SEEDS)])  # (SEEDS, 100)
        rows += [row(width, depth, logs[:, depth - 1]) for depth in DEPTHS]
    ratios = [r["variance"] / r["theory"] for r in rows]
    record = {
        "what": "ln of the mean square behind L ReLU layers of width n with He's variance, over random networks and inputs",
        "prediction": "variance 5 L / n, mean minus half of it",
        "null_model": "variance 0: every network keeps the expected mean square",
        "settings": {"widths": WIDTHS, "depths": DEPTHS, "seeds": list(range(SEEDS)), "dtype": "float64"},
        "interval": "± 1.96 standard errors over seeds",
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "machine": f"one CPU core, {platform.machine()}",
        "judged": {"least_ratio": round(min(ratios), 3), "largest_ratio": round(max(ratios), 3)},
        "rows": [{k: round(v, 5) if isinstance(v, float) else v for k, v in r.items()} for r in rows],
    }
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(record["judged"], indent=1))


if __name__ == "__main__":
    main()
