"""Recurrence and attention side by side: chapter ch01.

Work and critical path of a computation, recurrences step by step and as a scan, pairs of attention, and how far a
gradient has to travel. Vectors are rows: a layer computes xW with x (T, d_in) and W (d_in, d_out).
"""

import math

import numpy as np
import torch

__all__ = [
    "attention_pairs",
    "critical_path",
    "fading_rate",
    "gradient_by_distance",
    "layer_work",
    "layers_to_reach",
    "linear_scan",
    "rnn_scan",
    "rounds",
]


def critical_path(needs: list[list[int]]) -> int:
    """The number of steps that no number of processors can save: the length of the longest chain.

    Args:
        needs: for each operation the earlier operations, by index, whose results it needs.

    Raises:
        ValueError: if an operation needs one that is not earlier.
    """
    done: list[int] = []
    for i, before in enumerate(needs):
        if any(not 0 <= j < i for j in before):
            raise ValueError(f"operation {i} can need earlier operations only, got {before}")
        done.append(1 + max((done[j] for j in before), default=0))
    return max(done, default=0)


def rounds(needs: list[list[int]], processors: int) -> int:
    """Rounds that `processors` take if each does one ready operation a round, and none rests while one is ready.

    Args:
        needs: as in `critical_path`.

    Raises:
        ValueError: if there is no processor, or an operation needs one that is not earlier.
    """
    if processors < 1:
        raise ValueError(f"at least one processor, got {processors}")
    critical_path(needs)
    done: set[int] = set()
    count = 0
    while len(done) < len(needs):
        ready = [i for i, before in enumerate(needs) if i not in done and done.issuperset(before)]
        done.update(ready[:processors])
        count += 1
    return count


def rnn_scan(x: torch.Tensor, W: torch.Tensor, U: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """h_t = tanh(x_t W + h_{t−1} U + b) from h_0 = 0, one token after the other: formula ch01-recurrence.

    Args:
        x: (..., T, d_in), at least one token.
        W, U, b: (d_in, d), (d, d) and (d,).

    Returns:
        (..., T, d), the states h_1 … h_T.

    Source: Elman (1990), Finding Structure in Time.
    """
    inputs = x @ W + b  # (..., T, d): all tokens at once
    h, states = torch.zeros_like(inputs[..., 0, :]), []
    for t in range(x.shape[-2]):
        h = torch.tanh(inputs[..., t, :] + h @ U)  # (..., d): must wait for the h before
        states.append(h)
    return torch.stack(states, dim=-2)  # (..., T, d)


def linear_scan(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """h_t = a_t h_{t−1} + b_t from h_0 = 0 in ⌈log2 T⌉ rounds, by formula ch01-compose.

    Args:
        a, b: (T, ...) factors and addends.

    Returns:
        (T, ...), h_1 … h_T.

    Raises:
        ValueError: if the shapes differ.

    Source: Hillis and Steele (1986), Data Parallel Algorithms; Martin and Cundy (2018) for neural networks.
    """
    if a.shape != b.shape:
        raise ValueError(f"as many factors as addends, got {tuple(a.shape)} and {tuple(b.shape)}")
    distance = 1
    while distance < len(a):
        b = torch.cat([b[:distance], a[distance:] * b[:-distance] + b[distance:]])  # (T, ...)
        a = torch.cat([a[:distance], a[distance:] * a[:-distance]])  # (T, ...)
        distance *= 2
    return b


def attention_pairs(T: int, causal: bool) -> int:
    """How many pairs of a query and a key one head of attention compares: T², or T(T + 1)/2 without the future.

    Raises:
        ValueError: if T is negative.
    """
    if T < 0:
        raise ValueError(f"a length is not negative, got {T}")
    return T * (T + 1) // 2 if causal else T * T


def layer_work(T: int, d: int, k: int = 3) -> dict[str, int]:
    """Multiply-adds of one layer of each kind from T tokens of width d to as many, formulas ch01-recurrence-work to ch01-attention-work.

    Biases, activations and softmax are left out: they grow like Td or T² and not like Td² or T²d.

    Args:
        k: how many tokens a convolution sees.
    """
    return {
        "recurrence": 2 * T * d**2,
        "convolution": k * T * d**2,
        "attention": 4 * T * d**2 + 2 * attention_pairs(T, causal=False) * d,
        "causal attention": 4 * T * d**2 + 2 * attention_pairs(T, causal=True) * d,
    }


def layers_to_reach(layers: list[torch.Tensor]) -> int:
    """After how many layers the last token has heard of the first.

    Args:
        layers: for each layer a boolean (T, T) tensor: row i tells which tokens token i sees. Used again from the
            start when they are at their end.

    Raises:
        ValueError: if it never does.
    """
    T = len(layers[0])
    known = torch.zeros(T, dtype=torch.bool)
    known[0] = True  # which tokens have heard of the first
    for count in range(1, T * len(layers) + 1):
        known = known | (layers[(count - 1) % len(layers)] & known).any(dim=-1)  # (T,)
        if known[-1]:
            return count
    raise ValueError("the last token never hears of the first")


def gradient_by_distance(gain: float, T: int, d: int, seed: int, input_std: float = 0.5) -> torch.Tensor:
    """How large the gradient of a random linear function of h_T is in h_T, h_{T−1} … h_1.

    The recurrence is h_t = tanh(x_t + h_{t−1} U), U with normal entries of standard deviation gain/√d, x_t with
    normal entries of standard deviation `input_std`.

    Returns:
        (T,) float64, log10 of the norm of the gradient divided by the norm at distance 0.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    U, x, G = gain / math.sqrt(d) * normal(d, d), input_std * normal(T, d), normal(d)
    h = rnn_scan(x, torch.eye(d, dtype=torch.float64), U, torch.zeros(d, dtype=torch.float64))  # (T, d)
    norms = [G.norm()]
    for t in range(T - 1, 0, -1):
        G = (G * (1 - h[t] ** 2)) @ U.T  # (d,): back through one step
        norms.append(G.norm())
    return (torch.stack(norms) / norms[0]).log10()


def fading_rate(gain: float, input_std: float = 0.5) -> float:
    """log10 of the factor by which one step of `gradient_by_distance` is expected to multiply the gradient.

    Half of log10(gain² E[tanh'(z)²]) with normal z, whose variance q solves q = gain² E[tanh(z)²] + input_std²:
    formula ch01-fading. It takes z as independent of the gradient.

    Source: Pascanu, Mikolov and Bengio (2013), On the difficulty of training recurrent neural networks, for the product; chapter f05
    for the layer rule.
    """
    nodes = np.linspace(-10, 10, 8001)  # the trapezoidal rule: for gain 3 the slope is too narrow for Gauss and Hermite's
    weights = np.exp(-(nodes**2) / 2)
    weights = weights / weights.sum()  # of a normal number
    q = 1.0
    for _ in range(500):
        q = gain**2 * weights @ np.tanh(math.sqrt(q) * nodes) ** 2 + input_std**2
    slope = 1 - np.tanh(math.sqrt(q) * nodes) ** 2
    return 0.5 * math.log10(gain**2 * weights @ slope**2)
