"""How does a gradient fade on its way back through a recurrence? And how long do recurrence and attention take?

Writes course/data/records/overview.json. The gradients take one CPU core some seconds. The times are of one CPU core and
of a GPU if there is one; with --small of the CPU core only:

    python experiments/overview.py --small
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch

from course import data
from course.device import best_device
from course.overview import fading_rate, gradient_by_distance, layer_work, rnn_scan

GAINS = [0.8, 1.0, 1.5, 2.0, 3.0]
WIDTH = 256
DISTANCE = 100
SEEDS = 20
LENGTHS = [64, 128, 256, 512, 1024, 2048]
REPEATS = 15


def gradient_row(gain: float) -> dict:
    """log10 of the gradient at DISTANCE, over random recurrences, with a 95% interval."""
    ends = [float(gradient_by_distance(gain, DISTANCE + 1, WIDTH, seed)[-1]) for seed in range(SEEDS)]
    mean, half = data.interval(ends, 3)
    theory, rival = round(DISTANCE * fading_rate(gain), 3), round(DISTANCE * rate_by_mean_slope(gain), 3)
    return {
        "gain": gain,
        "log10": mean,
        "half_width": half,
        "theory": theory,
        "by the mean slope": rival,
        "runs": [round(x, 3) for x in ends],
    }


def rate_by_mean_slope(gain: float, input_std: float = 0.5) -> float:
    """The rival of `fading_rate`: log10(gain · E[tanh'(z)]), as if the matrix shrank by the mean slope; z by simulation."""
    h = torch.zeros(1_000_000, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):  # mean field: normal z of the variance that h and the input give
        spread = math.sqrt(gain**2 * float(h.square().mean()) + input_std**2)
        z = spread * torch.randn(len(h), generator=generator, dtype=torch.float64)
        h = torch.tanh(z)
    return math.log10(gain * float((1 - h**2).mean()))


def attention(x: torch.Tensor, projections: list[torch.Tensor]) -> torch.Tensor:
    """One head over all pairs, with its four projections: (T, d) to (T, d)."""
    q, k, v = (x @ W for W in projections[:3])  # (T, d) each
    return ((q @ k.T) / math.sqrt(x.shape[-1])).softmax(dim=-1) @ v @ projections[3]


def milliseconds(run: Callable[[], object], device: torch.device) -> list[float]:
    """The quartiles of REPEATS times, after three that do not count."""
    times = []
    for _ in range(REPEATS + 3):
        if device.type == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return [round(float(x), 3) for x in np.quantile(times[3:], [0.25, 0.5, 0.75])]


def time_row(T: int, device: torch.device) -> dict:
    """Quartiles of the times: a loop in Python and the library's for the recurrence, a loop of width 1, and attention."""
    generator = torch.Generator().manual_seed(T)
    x = torch.randn(T, WIDTH, generator=generator).to(device)
    W, U, *rest = (torch.randn(WIDTH, WIDTH, generator=generator).to(device) / math.sqrt(WIDTH) for _ in range(6))
    b, work = torch.zeros(WIDTH, device=device), layer_work(T, WIDTH)
    library = torch.nn.RNN(WIDTH, WIDTH, batch_first=True).to(device)
    narrow, one = x[:, :1].contiguous(), torch.full((1, 1), 0.5, device=device)
    with torch.no_grad():
        return {
            "T": T,
            "loop": milliseconds(lambda: rnn_scan(x, W, U, b), device),
            "recurrence": milliseconds(lambda: library(x), device),
            "loop of width 1": milliseconds(lambda: rnn_scan(narrow, one, one, b[:1]), device),
            "attention": milliseconds(lambda: attention(x, rest), device),
            "work": [work["recurrence"], work["attention"]],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="take the times of one CPU core only")
    small = parser.parse_args().small
    devices = {torch.device("cpu")} if small else {torch.device("cpu"), best_device()}
    torch.set_num_threads(1)
    results = {
        "gradients": [gradient_row(gain) for gain in GAINS],
        "times": {
            "what": "milliseconds of one layer of width 256 for one sequence of T tokens, forwards: quartiles of the repeats",
            "settings": {"repeats": REPEATS, "torch": torch.__version__, "interval": "the middle half of the repeats"},
            "rows": {
                torch.cuda.get_device_name() if device.type == "cuda" else "one thread of a CPU": [
                    time_row(T, device) for T in LENGTHS
                ]
                for device in sorted(devices, key=str)
            },
        },
    }
    path = data.keep_record(
        "overview",
        results,
        settings={"width": WIDTH, "distance": DISTANCE},
        seeds=range(SEEDS),
        interval="95% of the mean over seeds, Student's t",
        small=small,
        what="log10 of the norm of a gradient 100 steps back through h_t = tanh(x_t + h_{t-1} U), relative to its start",
        prediction="100 times fading_rate(gain)",
        null_model="the gain times the mean slope, instead of the root of the mean squared slope",
    )
    print(path)


if __name__ == "__main__":
    main()
