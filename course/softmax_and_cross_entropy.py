"""Softmax, cross-entropy and what belongs to them: chapter f03.

Every function works on the last dimension: logits (..., n) are n scores for each of any number of rows.
"""

import torch

__all__ = ["brier", "cross_entropy", "entropy", "log_softmax", "logsumexp", "softmax", "softmax_jacobian"]


def logsumexp(x: torch.Tensor) -> torch.Tensor:
    """ln Σ_j exp(x_j), formula f03-lse: the largest score is taken out first, so that nothing overflows.

    Args:
        x: (..., n) scores; minus infinity is allowed.

    Returns:
        (...) in the dtype of `x`.

    Raises:
        TypeError: if `x` does not hold floats.

    Source: Blanchard, Higham and Higham (2021), Accurately computing the log-sum-exp and softmax functions.
    """
    _check_floats(x)
    top = _top(x)  # (..., 1)
    return (x - top).exp().sum(dim=-1).log() + top.squeeze(-1)  # (...)


def log_softmax(logits: torch.Tensor, tau: float = 1.0) -> torch.Tensor:
    """ln softmax(z/τ) = z/τ − logsumexp(z/τ), without ever taking the logarithm of a rounded zero.

    The largest score is taken out of both terms, so that what all scores have in common costs no digits.

    Args:
        logits: (..., n).
        tau: temperature, positive.

    Raises:
        TypeError, ValueError: see `softmax`.
    """
    shifted = _shifted(logits, tau)  # (..., n)
    return shifted - shifted.exp().sum(dim=-1, keepdim=True).log()  # (..., n)


def softmax(logits: torch.Tensor, tau: float = 1.0) -> torch.Tensor:
    """p_i = exp(z_i/τ) / Σ_j exp(z_j/τ), formulas f03-softmax and f03-temperature.

    Args:
        logits: (..., n) scores of any size and sign.
        tau: temperature, positive; 1 leaves the scores as they are.

    Returns:
        (..., n) probabilities: each row is not negative and sums to one.

    Raises:
        TypeError: if `logits` does not hold floats.
        ValueError: if `tau` is not positive.

    Source: Bridle (1990), Probabilistic Interpretation of Feedforward Classification Network Outputs; the exponential weights are
    Boltzmann's and Gibbs'. Shifted and divided, as Blanchard, Higham and Higham (2021) advise: exp(z − logsumexp(z)) is less accurate.
    """
    powers = _shifted(logits, tau).exp()  # (..., n)
    return powers / powers.sum(dim=-1, keepdim=True)  # (..., n)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """−Σ_i y_i ln p_i with p = softmax(logits), formula f03-cross-entropy, averaged over all rows; in nats.

    Args:
        logits: (..., n).
        targets: the right classes, integers (...), or probabilities y, floats (..., n).

    Returns:
        A 0-d tensor.

    Raises:
        ValueError: if the shapes do not fit or a class is outside 0 … n − 1.
    """
    log_probs = log_softmax(logits)  # (..., n)
    if targets.is_floating_point():
        if targets.shape != logits.shape:
            raise ValueError(
                f"probabilities as targets need the shape of the logits: {tuple(targets.shape)}, {tuple(logits.shape)}"
            )
        return -(targets * log_probs).sum(dim=-1).mean()
    _check_classes(targets, logits)
    return -log_probs.gather(-1, targets.unsqueeze(-1)).mean()  # (..., 1) before the mean


def softmax_jacobian(probs: torch.Tensor) -> torch.Tensor:
    """∂p_i/∂z_j = p_i (δ_ij − p_j), formula f03-jacobian.

    Args:
        probs: (..., n), a softmax's output.

    Returns:
        (..., n, n): row i tells how p_i answers to each score.
    """
    return torch.diag_embed(probs) - probs.unsqueeze(-1) * probs.unsqueeze(-2)  # (..., n, n)


def entropy(probs: torch.Tensor) -> torch.Tensor:
    """ℋ(p) = −Σ_i p_i ln p_i in nats, formula f03-entropy, with 0 ln 0 = 0.

    Args:
        probs: (..., n), rows that sum to one.

    Returns:
        (...) between 0 and ln n.

    Raises:
        ValueError: if a row is not a probability distribution.

    Source: Shannon (1948), A Mathematical Theory of Communication.
    """
    rounding = probs.shape[-1] * torch.finfo(probs.dtype).eps + 1e-6
    if (probs < 0).any() or ((probs.sum(dim=-1) - 1).abs() > rounding).any():
        raise ValueError("every row of probs must be non-negative and sum to one: did you pass logits?")
    return -torch.special.xlogy(probs, probs).sum(dim=-1)


def brier(probs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Σ_i (p_i − y_i)², formula f03-brier, averaged over all rows.

    Args:
        probs: (..., n) forecasts.
        targets: (...) integers, the classes that came true.

    Returns:
        A 0-d tensor between 0 and 2.

    Raises:
        ValueError: if the shapes do not fit or a class is outside 0 … n − 1.

    Source: Brier (1950), Verification of forecasts expressed in terms of probability.
    """
    _check_classes(targets, probs)
    y = torch.nn.functional.one_hot(targets, probs.shape[-1])  # (..., n)
    return ((probs - y) ** 2).sum(dim=-1).mean()


def _top(x: torch.Tensor) -> torch.Tensor:
    """The largest score of each row, (..., 1), with 0 for an infinite one: inf − inf would be nan."""
    top = x.max(dim=-1, keepdim=True).values  # (..., 1)
    return top.masked_fill(top.isinf(), 0.0)


def _shifted(logits: torch.Tensor, tau: float) -> torch.Tensor:
    """z/τ less its largest entry, (..., n)."""
    _check_floats(logits)
    if not tau > 0:
        raise ValueError(f"the temperature must be positive, got {tau}; for tau → 0 take the largest score instead")
    scaled = logits / tau
    return scaled - _top(scaled)  # (..., n)


def _check_floats(x: torch.Tensor) -> None:
    if not x.is_floating_point():
        raise TypeError(f"scores must be floats, got {x.dtype}: convert them with .float()")


def _check_classes(targets: torch.Tensor, rows: torch.Tensor) -> None:
    if targets.shape != rows.shape[:-1]:
        raise ValueError(f"one class for each row: targets {tuple(rows.shape[:-1])} expected, {tuple(targets.shape)} came")
    if targets.numel() and not (int(targets.min()) >= 0 and int(targets.max()) < rows.shape[-1]):
        raise ValueError(f"classes must be between 0 and {rows.shape[-1] - 1}, got {int(targets.min())} to {int(targets.max())}")
