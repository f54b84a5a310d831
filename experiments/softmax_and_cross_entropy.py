"""How much entropy do independent normal logits lose, for several numbers of logits and temperatures?

Writes course/data/records/softmax_and_cross_entropy.json. One CPU core, a few seconds:

    python experiments/softmax_and_cross_entropy.py
"""

import json
import math

import numpy as np

from course import data

SIZES = [16, 64, 256, 1024, 4096, 16384, 65536]
SIGMAS = [0.5, 1.0, 4.0]
RATIOS = [0.125, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0]  # τ/σ
SEEDS = 200


def lost_entropy(logits: np.ndarray, tau: float) -> float:
    """ln n − ℋ(softmax(logits/τ)) in nats; logits (n,) in float64."""
    scaled = logits / tau
    scaled = scaled - scaled.max()
    powers = np.exp(scaled)
    log_sum = math.log(powers.sum())
    h = log_sum - float((powers * scaled).sum() / powers.sum())
    return math.log(len(logits)) - h


def measure() -> list[dict]:
    """One row for each σ, n and τ/σ: the lost entropy over all seeds."""
    rows = []
    for sigma in SIGMAS:
        for n in SIZES:
            lost = np.zeros((SEEDS, len(RATIOS)))
            for seed in range(SEEDS):
                logits = sigma * np.random.default_rng([seed, n, round(10 * sigma)]).normal(size=n)
                lost[seed] = [lost_entropy(logits, ratio * sigma) for ratio in RATIOS]
            for ratio, values in zip(RATIOS, lost.T, strict=True):
                mean, half = data.interval(values)
                rows.append({"sigma": sigma, "n": n, "ratio": ratio, "lost": mean, "half_width": half, "theory": 0.5 / ratio**2})
    return rows


def judge(rows: list[dict]) -> dict:
    """Typical error of the theory and of the null model (the lost fraction of ln n is that of n = 16), τ/σ ≥ 1, n > 16."""
    at_16 = {(r["sigma"], r["ratio"]): r["lost"] / math.log(16) for r in rows if r["n"] == 16}
    judged = [r for r in rows if r["ratio"] >= 1 and r["n"] > 16]
    theory = [r["lost"] - r["theory"] for r in judged]
    null = [r["lost"] - at_16[r["sigma"], r["ratio"]] * math.log(r["n"]) for r in judged]
    return {
        "rms_theory": float(np.sqrt(np.mean(np.square(theory)))),
        "rms_null": float(np.sqrt(np.mean(np.square(null)))),
        "rows": len(judged),
    }


def main() -> None:
    rows = measure()
    judged = judge(rows)
    data.keep_record(
        "softmax_and_cross_entropy",
        {"judged": judged, "rows": [{k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()} for row in rows]},
        settings={"sizes": SIZES, "sigmas": SIGMAS, "ratios": RATIOS, "dtype": "float64"},
        seeds=range(SEEDS),
        interval="95% of the mean over seeds, Student's t",
        packages=("numpy",),
        what="entropy lost by softmax(z/τ) of n independent normal logits of standard deviation σ, in nats",
        prediction="ln n − ℋ = σ²/(2τ²) for τ ≥ σ, whatever n; written down before the run",
        null_model="the lost fraction of ln n is the one measured at n = 16",
    )
    print(json.dumps(judged, indent=1))


if __name__ == "__main__":
    main()
