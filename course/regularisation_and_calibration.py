"""Dropout, label smoothing, calibration and temperature scaling: the reference code of chapter f08."""

import math

import torch

from course.softmax_and_cross_entropy import cross_entropy, softmax

__all__ = [
    "bin_of",
    "dropout",
    "ece",
    "ece_bound",
    "fit_temperature",
    "label_smooth",
    "mlp_logits",
    "nll",
    "noisy_digits",
    "reliability",
    "top_label",
    "train_mlp",
]


def dropout(x: torch.Tensor, rho: float, training: bool = True, generator: torch.Generator | None = None) -> torch.Tensor:
    """x times random factors of mean one, formula f08-dropout; x itself when not training.

    Args:
        x: floats of any shape.
        rho: the probability that an entry becomes 0, at least 0 and below 1.
        training: whether to draw factors at all.
        generator: of the random numbers; None takes torch's own.

    Returns:
        The shape and dtype of x.

    Raises:
        ValueError: if rho is outside [0, 1).

    Source: Srivastava et al. (2014), Dropout. The division at training time is called inverted dropout.
    """
    if not 0 <= rho < 1:
        raise ValueError(f"rho is a probability below 1, got {rho}")
    if not training:
        return x
    kept = torch.rand(x.shape, generator=generator, dtype=x.dtype) >= rho
    return x * kept / (1 - rho)


def label_smooth(classes: torch.Tensor, n: int, eps: float) -> torch.Tensor:
    """(1 − ε) y + ε/n for one-hot y, formula f08-smoothing, as torch's `label_smoothing` has it.

    Args:
        classes: (...) integers from 0 to n − 1.
        n: number of classes.
        eps: weight of the uniform part, from 0 to 1.

    Returns:
        (..., n) float64, rows that sum to one.

    Raises:
        ValueError: if eps is outside [0, 1].

    Source: Szegedy et al. (2016), Rethinking the Inception Architecture for Computer Vision, section 7.
    """
    if not 0 <= eps <= 1:
        raise ValueError(f"eps is a share between 0 and 1, got {eps}")
    return (1 - eps) * torch.nn.functional.one_hot(classes, n).double() + eps / n  # (..., n)


def top_label(logits: torch.Tensor, classes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How sure a model is of its verdict, and whether the verdict is right.

    Args:
        logits: (N, n).
        classes: (N,) integers, what came true.

    Returns:
        The largest probability of each row and 1.0 or 0.0, both (N,) float64.
    """
    confidence, verdict = softmax(logits.double()).max(dim=-1)  # (N,) each
    return confidence, (verdict == classes).double()


def bin_of(confidence: torch.Tensor, bins: int) -> torch.Tensor:
    """The bin of each forecast among (0, 1/bins], (1/bins, 2/bins], …, (1 − 1/bins, 1], counted from 0; 0 is in the first.

    Args:
        confidence: (N,) between 0 and 1.
        bins: their number, at least 1.

    Raises:
        ValueError: if there are no forecasts, one is outside [0, 1], or bins is not positive.
    """
    if bins < 1:
        raise ValueError(f"at least one bin is needed, got {bins}")
    if confidence.numel() == 0 or not ((confidence >= 0) & (confidence <= 1)).all():
        raise ValueError("a confidence is a probability between 0 and 1, and there must be some: did you pass logits?")
    edges = torch.arange(1, bins, dtype=torch.float64) / bins  # (bins − 1,)
    return torch.bucketize(confidence.double(), edges)  # (N,)


def reliability(confidence: torch.Tensor, correct: torch.Tensor, bins: int = 15) -> tuple[torch.Tensor, ...]:
    """What a reliability diagram shows: for each bin the number of forecasts, their mean confidence, their accuracy.

    Args:
        confidence, correct: (N,), see `top_label`.

    Returns:
        Three tensors (bins,), float64; the means of an empty bin are nan.

    Raises:
        ValueError: see `bin_of`.
    """
    where = bin_of(confidence, bins)  # (N,)

    def total(x):
        return torch.zeros(bins, dtype=torch.float64).index_add(0, where, x.double())  # (bins,)

    count = total(torch.ones_like(confidence))
    return count, total(confidence) / count, total(correct) / count


def ece(confidence: torch.Tensor, correct: torch.Tensor, bins: int = 15) -> float:
    """Expected calibration error, formula f08-ece: Σ_b |Σ_{bin b} (right − confidence)| / N.

    Args:
        confidence, correct: (N,), see `top_label`.

    Raises:
        ValueError: see `bin_of`.

    Source: Naeini, Cooper and Hauskrecht (2015), Obtaining Well Calibrated Probabilities Using Bayesian Binning.
    """
    gap = correct.double() - confidence.double()  # (N,)
    sums = torch.zeros(bins, dtype=torch.float64).index_add(0, bin_of(confidence, bins), gap)  # (bins,)
    return float(sums.abs().sum()) / len(gap)


def ece_bound(confidence: torch.Tensor, bins: int = 15) -> float:
    """What the ECE of an honest model with these confidences is on average at most: formula f08-ece-bound.

    The square root of 2/π times this is what it nearly is, formula f08-ece-noise.

    Args:
        confidence: (N,).

    Raises:
        ValueError: see `bin_of`.
    """
    p = confidence.double()
    variance = torch.zeros(bins, dtype=torch.float64).index_add(0, bin_of(p, bins), p * (1 - p))  # (bins,): of the sums
    return float(variance.sqrt().sum()) / len(p)


def nll(logits: torch.Tensor, classes: torch.Tensor, tau: float = 1.0) -> float:
    """Mean surprise at temperature τ in nats: the cross-entropy of softmax(z/τ). logits (N, n), classes (N,)."""
    return cross_entropy(logits.double() / tau, classes).item()


def fit_temperature(logits: torch.Tensor, classes: torch.Tensor) -> float:
    """The temperature with the least surprise, by halving an interval of ln(1/τ): formulas f08-temperature, f08-tau-slope.

    Args:
        logits: (N, n) on data that the model was not trained on.
        classes: (N,) integers, what came true.

    Raises:
        ValueError: if no positive temperature is best: when every verdict is right, or the logits are no better than chance.

    Source: Guo et al. (2017), On Calibration of Modern Neural Networks; for two classes it is Platt's method.
    """
    z = logits.double()
    true = z.gather(1, classes[:, None]).squeeze(1)  # (N,)
    if (true == z.max(dim=1).values).all():
        raise ValueError("every verdict is right, so the colder the better: use data that the model was not trained on")
    if true.mean() <= z.mean():
        raise ValueError("the logits are no better than chance, so the hotter the better")
    low, high = -40.0, 40.0  # of ln(1/τ)
    for _ in range(100):
        cold = math.exp((low + high) / 2)
        slope = (softmax(cold * z) * z).sum(dim=1).mean() - true.mean()
        low, high = ((low + high) / 2, high) if slope < 0 else (low, (low + high) / 2)
    return math.exp(-(low + high) / 2)


def noisy_digits(noise: float, seed: int = 0, sizes: tuple[int, int] = (300, 500)) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """scikit-learn's 1797 handwritten digits in random order, with normal noise on every pixel.

    Args:
        noise: its standard deviation; a pixel without noise lies between 0 and 1.
        seed: of order and noise.
        sizes: of the first two parts; the third has all others.

    Returns:
        Three pairs X (N, 64) float64 and classes (N,): to train on, to hold out, to test on.
    """
    from sklearn.datasets import load_digits  # takes a second: only for those who want the digits

    pixels, classes = map(torch.from_numpy, load_digits(return_X_y=True))
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pixels), generator=generator).split([*sizes, len(pixels) - sum(sizes)])
    X = pixels / 16 + noise * torch.randn(pixels.shape, generator=generator, dtype=torch.float64)
    return [(X[part], classes[part]) for part in order]


def mlp_logits(X: torch.Tensor, parameters: list, rho: float = 0.0, generator: torch.Generator | None = None) -> torch.Tensor:
    """ReLU perceptron with one hidden layer and dropout after it; with rho = 0 nothing is random.

    Args:
        X: (N, d_in); parameters: W1 (d_in, d_hidden), b1, W2 (d_hidden, n), b2.

    Returns:
        (N, n).
    """
    W1, b1, W2, b2 = parameters
    hidden = dropout((X @ W1 + b1).relu(), rho, generator=generator)  # (N, d_hidden)
    return hidden @ W2 + b2  # (N, n)


def train_mlp(
    X: torch.Tensor, classes: torch.Tensor, steps: int = 300, rho: float = 0.0, eps: float = 0.0, seed: int = 0
) -> list[torch.Tensor]:
    """Plain gradient descent on the cross-entropy of smoothed targets, all examples in every step.

    64 hidden units, He's start, learning rate 0.5.

    Args:
        X: (N, d_in) float64, classes: (N,).
        rho: of the dropout after the hidden layer.
        eps: of the label smoothing.
        seed: of start and dropout.

    Returns:
        The parameters that `mlp_logits` takes.
    """
    generator = torch.Generator().manual_seed(seed)
    n, width = int(classes.max()) + 1, 64
    target = label_smooth(classes, n, eps)  # (N, n)
    parameters = []
    for d_in, d_out in [(X.shape[1], width), (width, n)]:
        W = math.sqrt(2 / d_in) * torch.randn(d_in, d_out, generator=generator, dtype=torch.float64)
        parameters += [W.requires_grad_(), torch.zeros(d_out, dtype=torch.float64, requires_grad=True)]
    for _ in range(steps):
        loss = cross_entropy(mlp_logits(X, parameters, rho, generator), target)
        slopes = torch.autograd.grad(loss, parameters)
        parameters = [(p - 0.5 * slope).detach().requires_grad_() for p, slope in zip(parameters, slopes, strict=True)]
    return [p.detach() for p in parameters]
