"""How does the time of a product of two n×n matrices grow with n: three loops, two loops over inner products, one call?

Writes course/data/records/vectors_matrices_shapes.json. One CPU core, two minutes; let nothing else run:

    python experiments/vectors_matrices_shapes.py
"""

import itertools
import json
import math
import time

import numpy as np
import torch

from course import data

SIZES = [8, 16, 32, 64, 128, 256]
LARGE = [32, 64, 128, 256]  # where the n³ multiplications outweigh what is done once an entry or once a call
SEEDS = list(range(7))
ROUNDS = 5  # the best of these counts: what else the machine does can only make a run slower


def three_loops(A: torch.Tensor, B: torch.Tensor) -> list[list[float]]:
    """n³ multiplications, one at a time; A, B (n, n)."""
    A, B, n = A.tolist(), B.tolist(), len(A)
    C = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += A[i][k] * B[k][j]
            C[i][j] = total
    return C


def inner_products(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """n² calls, each an inner product of a row and a column; A, B (n, n)."""
    C = torch.empty(len(A), len(B))
    for i in range(len(A)):
        for j in range(len(B)):
            C[i, j] = A[i] @ B[:, j]
    return C


def one_call(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """One call; A, B (n, n)."""
    return A @ B


WAYS = {"three loops": (three_loops, 1), "inner products": (inner_products, 1), "one call": (one_call, 50)}


def seconds(way: str, n: int, seed: int) -> float:
    """The time of one product of two random float32 matrices (n, n), after one that does not count."""
    multiply, times = WAYS[way]
    generator = torch.Generator().manual_seed(seed)
    A, B = torch.randn(n, n, generator=generator), torch.randn(n, n, generator=generator)
    multiply(A, B)
    start = time.perf_counter()
    for _ in range(times):
        multiply(A, B)
    return (time.perf_counter() - start) / times


def measure() -> dict:
    """The best time of each way, size and seed. Each round goes through all of them: a slow spell hits no size alone."""
    best = {way: {n: [math.inf] * len(SEEDS) for n in SIZES} for way in WAYS}
    for _ in range(ROUNDS):
        for seed, n, way in itertools.product(SEEDS, SIZES, WAYS):
            best[way][n][seed] = min(best[way][n][seed], seconds(way, n, seed))
    return best


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of ln time against ln n."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def typical_error(power: int, sizes: list[int], times: list[float]) -> float:
    """How far a law n^power with the best constant is off, root mean square of ln time."""
    off = np.log(times) - power * np.log(sizes)
    return float(np.sqrt(np.mean((off - off.mean()) ** 2)))


def judge(times: dict) -> dict:
    """Exponents of each way with intervals over seeds, the errors of n³ and n² for the loops, and what one call gains."""
    found = {}
    for name, sizes in [("all", SIZES), ("large", LARGE)]:
        for way in WAYS:
            by_seed = [exponent(sizes, [times[way][n][seed] for n in sizes]) for seed in SEEDS]
            found[f"exponent, {way}, {name}"], found[f"half width, {way}, {name}"] = data.interval(by_seed)
        mean = [float(np.mean(times["three loops"][n])) for n in sizes]
        for power in (2, 3):
            found[f"error of n^{power}, {name}"] = typical_error(power, sizes, mean)
    ratios = [a / b for a, b in zip(times["three loops"][128], times["one call"][128], strict=True)]
    found["gain at 128"], found["half width of the gain"] = data.interval(ratios)
    return found


def main() -> None:
    torch.set_num_threads(1)
    times = measure()
    rows = []
    for way in WAYS:
        for n in SIZES:
            runs = [float(f"{x:.4g}") for x in times[way][n]]
            mean, half = (float(f"{x:.4g}") for x in data.interval(times[way][n]))
            rows.append({"way": way, "n": n, "seconds": mean, "half_width": half, "runs": runs})
    judged = {key: round(value, 4) for key, value in judge(times).items()}
    data.keep_record(
        "vectors_matrices_shapes",
        {"judged": judged, "rows": rows},
        settings={"sizes": SIZES, "rounds": ROUNDS, "dtype": "float32", "threads": 1},
        seeds=SEEDS,
        interval="95% of the mean over seeds, Student's t, of the best of the rounds",
        what="seconds for one product of two random n×n float32 matrices, by three ways of computing it",
        prediction="the three loops take a time in proportion to n³, the number of multiplications",
        null_model="a time in proportion to n², the number of entries",
    )
    print(json.dumps(judged, indent=1))


if __name__ == "__main__":
    main()
