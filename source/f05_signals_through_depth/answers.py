"""Other right answers and named wrong answers of chapter f05."""

import math

import numpy as np
import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f05.gain

right("f05.gain", 479)
right("f05.gain", cell("gain = math.sqrt((512 * 0.05**2) ** 50)"))
wrong("f05.gain", 1.28**50, "That is the growth of the second moment; the question is about its root.", see="one-layer")
wrong("f05.gain", 1.28, "That is one layer's factor for the second moment. There are 50 layers.", see="one-layer")
wrong("f05.gain", (512 * 0.05) ** 25, "You used the standard deviation where the variance belongs: square it.", see="one-layer")
wrong("f05.gain", 0.05**50, "You left out that each sum has 512 terms: width times variance is what counts.", see="one-layer")
wrong(
    "f05.gain", (512 * 0.05) ** 50, "You left out the square of the standard deviation, and the root at the end.", see="one-layer"
)
wrong("f05.gain", 50 * math.sqrt(1.28), "Layers multiply: fifty factors, not fifty times the factor.", see="one-layer")

# ---------------------------------------------------------------- f05.leaky

right("f05.leaky", cell("a, n = sympy.symbols('a n', positive=True)\nvariance = 1 / (n * (sympy.Rational(1, 2) + a**2 / 2))"))
wrong(
    "f05.leaky",
    cell("a, n = sympy.symbols('a n', positive=True)\nvariance = 2 / (n * (1 + a))"),
    "The slope is squared with the signal: a second moment has the square of a.",
    see="relu-takes-half",
)
wrong(
    "f05.leaky",
    cell("a, n = sympy.symbols('a n', positive=True)\nvariance = 2 / n"),
    "That is ReLU's variance. The negative side of a leaky ReLU is smaller, but not gone.",
    see="relu-takes-half",
)
wrong(
    "f05.leaky",
    cell("a, n = sympy.symbols('a n', positive=True)\nvariance = sympy.sqrt(2 / (n * (1 + a**2)))"),
    "That is the standard deviation; the task asks for the variance.",
    see="relu-takes-half",
)
wrong(
    "f05.leaky",
    cell("a, n = sympy.symbols('a n', positive=True)\nvariance = 1 / (n * (1 + a**2))"),
    "Each side has only half of the second moment: check that a = 1, which changes nothing, gives 1/n.",
    see="relu-takes-half",
)
wrong(
    "f05.leaky",
    cell("a, n = sympy.symbols('a n', positive=True)\nvariance = (1 + a**2) / (2 * n)"),
    "Upside down: the smaller the signal after the activation, the larger the weights must be.",
    see="relu-takes-half",
)

equivalent("f05.leaky", "`a, n = sympy.symbols('a n')`", "letters are known by their names")
equivalent("f05.leaky", "`a, n = sympy.symbols('a n', positive=False)`", "letters are known by their names")

# ---------------------------------------------------------------- f05.std_for


@right("f05.std_for")
def by_quantiles(activation, n_in):
    z = torch.special.ndtri((torch.arange(2_000_000, dtype=torch.float64) + 0.5) / 2_000_000)  # all equally likely
    return (n_in * (activation(z) ** 2).mean().item()) ** -0.5


@right("f05.std_for")
def trapezoids(activation, n_in):
    z = torch.arange(-9.0, 9.0, 1e-3, dtype=torch.float64)
    values = activation(z) ** 2 * torch.exp(-0.5 * z * z)
    moment = torch.trapezoid(values, z) / math.sqrt(2 * math.pi)
    return float(1 / torch.sqrt(n_in * moment))


@wrong(
    "f05.std_for",
    "You used the variance of the activations. The layer rule asks for their second moment: the mean counts too.",
    see="relu-takes-half",
)
def variance_of_activations(activation, n_in):
    z = torch.linspace(-10, 10, 20_001, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * 0.001
    mean = (density * activation(z)).sum()
    return 1 / math.sqrt(n_in * ((density * activation(z) ** 2).sum() - mean**2).item())


@wrong("f05.std_for", "That is the variance of the weights; the task asks for their standard deviation.", see="one-layer")
def variance_of_weights(activation, n_in):
    z = torch.linspace(-10, 10, 20_001, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * 0.001
    return 1 / (n_in * (density * activation(z) ** 2).sum().item())


@wrong("f05.std_for", "You took the mean size of the activations, not the mean of their square.", see="one-layer")
def mean_size(activation, n_in):
    z = torch.linspace(-10, 10, 20_001, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * 0.001
    return 1 / (math.sqrt(n_in) * (density * activation(z).abs()).sum().item())


@wrong("f05.std_for", "That is He's rule for ReLU; other activations leave another share of the square.", see="relu-takes-half")
def always_he(activation, n_in):
    return math.sqrt(2 / n_in)


@wrong(
    "f05.std_for",
    "You averaged over an even grid. Normal numbers are dense near 0: weigh with the density.",
    see="relu-takes-half",
)
def even_grid(activation, n_in):
    z = torch.linspace(-math.sqrt(3), math.sqrt(3), 20_001, dtype=torch.float64)
    return 1 / math.sqrt(n_in * (activation(z) ** 2).mean().item())


@wrong(
    "f05.std_for",
    "A few hundred random numbers give the mean only to within a few percent. Sum over a grid with the density instead.",
    see="relu-takes-half",
)
def few_random_numbers(activation, n_in):
    z = torch.randn(300, dtype=torch.float64)
    return 1 / math.sqrt(n_in * (activation(z) ** 2).mean().item())


@wrong(
    "f05.std_for",
    "Your grid ends too early: the tails of the normal distribution count for fast-growing activations.",
    see="relu-takes-half",
)
def short_grid(activation, n_in):
    z = torch.linspace(-3, 3, 6_001, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2)
    return 1 / math.sqrt(n_in * ((density * activation(z) ** 2).sum() / density.sum()).item())


@wrong(
    "f05.std_for",
    "The nodes of Gauss and Hermite are exact for polynomials. An activation with a bend or a jump needs a grid that is fine everywhere.",
    see="relu-takes-half",
)
def few_nodes(activation, n_in):
    z, w = np.polynomial.hermite_e.hermegauss(100)
    moment = float((torch.from_numpy(w) * activation(torch.from_numpy(z)) ** 2).sum()) / math.sqrt(2 * math.pi)
    return (n_in * moment) ** -0.5


@wrong("f05.std_for", "Your grid is too coarse: between its points an activation can jump or swing.", see="relu-takes-half")
def coarse_grid(activation, n_in):
    z = torch.linspace(-10, 10, 41, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return 1 / math.sqrt(n_in * (density * activation(z) ** 2).sum().item() * 0.5)


@wrong("f05.std_for", "The number of inputs is missing: a sum of n terms is n times as large in the square.", see="one-layer")
def without_n(activation, n_in):
    z = torch.linspace(-10, 10, 20_001, dtype=torch.float64)
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * 0.001
    return 1 / math.sqrt((density * activation(z) ** 2).sum().item())


equivalent(
    "f05.std_for", "`second_moment = (density * activation(z) ** 2).sum() * 0.001`", "math.sqrt makes a Python float of a tensor"
)
equivalent(
    "f05.std_for",
    "`z = torch.linspace(-10, 10, 20000, dtype=torch.float64)`",
    "one step in 20,000 changes the sum by less than is asked for",
)
equivalent(
    "f05.std_for",
    "`z = torch.linspace(-10, 10, 20002, dtype=torch.float64)`",
    "one step in 20,000 changes the sum by less than is asked for",
)

# ---------------------------------------------------------------- f05.keeps_size


@right("f05.keeps_size")
def every_pair_of_widths(init):
    for n_in in (50, 250, 500):
        for n_out in (60, 200, 460):
            W = torch.cat([init(n_in, n_out) for _ in range(max(1, 50_000 // (n_in * n_out)))], dim=1)
            for half in (W[: n_in // 2], W[n_in // 2 :]):
                if not 0.88 < half.pow(2).mean() * n_in / 2 < 1.12:
                    return False
            if abs(W.mean()) > 0.2 * W.std():
                return False
    return True


@right("f05.keeps_size")
def blocks_in_numpy(init):
    for n_in, n_out in [(500, 55), (60, 500), (200, 200)]:
        W = np.stack([init(n_in, n_out).numpy() for _ in range(3)])
        blocks = W[:, : n_in // 2], W[:, n_in // 2 :]
        if max(abs(float((block**2).mean()) * n_in / 2 - 1) for block in blocks) > 0.14:
            return False
        if abs(W.mean()) > 0.25 * W.std():
            return False
    return True


@wrong(
    "f05.keeps_size",
    "You try square matrices only: rules that use n_out, or both sizes, look right there.",
    see="backwards",
)
def squares_only(init):
    for n in (50, 200, 500):
        W = torch.cat([init(n, n) for _ in range(max(1, 40_000 // n**2))], dim=1)
        for half in (W[: n // 2], W[n // 2 :]):
            if not 0.88 < half.pow(2).mean() * n / 2 < 1.12:
                return False
        if abs(W.mean()) > 0.2 * W.std():
            return False
    return True


@wrong("f05.keeps_size", "You compare with 2/n_out: that keeps the gradients, not the signal.", see="backwards")
def compares_with_fan_out(init):
    for n_in, n_out in [(500, 50), (50, 500), (300, 300)]:
        W = torch.cat([init(n_in, n_out) for _ in range(4)], dim=1)
        if not 0.9 < W.pow(2).mean() * n_out / 2 < 1.1 or abs(W.mean()) > 0.2 * W.std():
            return False
    return True


@wrong("f05.keeps_size", "You never look at the mean of the weights.", see="one-layer")
def never_the_mean(init):
    for n_in, n_out in [(500, 60), (60, 500), (200, 200), (50, 50)]:
        W = torch.cat([init(n_in, n_out) for _ in range(max(1, 40_000 // (n_in * n_out)))], dim=1)
        for half in (W[: n_in // 2], W[n_in // 2 :]):
            if not 0.88 < half.pow(2).mean() * n_in / 2 < 1.12:
                return False
    return True


@wrong("f05.keeps_size", "You average over the whole matrix: large rows can hide dead ones.", see="one-layer")
def never_the_rows(init):
    for n_in, n_out in [(500, 60), (60, 500), (200, 200), (50, 50)]:
        W = torch.cat([init(n_in, n_out) for _ in range(max(1, 40_000 // (n_in * n_out)))], dim=1)
        if not 0.9 < W.pow(2).mean() * n_in / 2 < 1.1 or abs(W.mean()) > 0.2 * W.std():
            return False
    return True


@wrong("f05.keeps_size", "You compare the standard deviation with 2/n_in, which is the variance.", see="relu-takes-half")
def std_with_variance(init):
    for n_in, n_out in [(500, 60), (60, 500), (400, 400)]:
        if not 0.9 < init(n_in, n_out).std() * n_in / 2 < 1.1:
            return False
    return True


@wrong(
    "f05.keeps_size",
    "You ask for a normal distribution. Only mean and variance matter: uniform weights can be right too.",
    see="one-layer",
)
def normal_only(init):
    for n_in, n_out in [(500, 60), (60, 500), (200, 200), (50, 50)]:
        W = torch.cat([init(n_in, n_out) for _ in range(max(1, 40_000 // (n_in * n_out)))], dim=1)
        for half in (W[: n_in // 2], W[n_in // 2 :]):
            if not 0.88 < half.pow(2).mean() * n_in / 2 < 1.12:
                return False
        if abs(W.mean()) > 0.2 * W.std() or not 2.7 < W.pow(4).mean() / W.pow(2).mean() ** 2 < 3.3:
            return False
    return True


@wrong(
    "f05.keeps_size",
    "Your tolerance is too narrow: random weights of a right rule miss 2/n_in by a percent or so.",
    see="one-layer",
)
def too_narrow(init):
    for n_in, n_out in [(500, 60), (60, 500), (400, 400)]:
        W = init(n_in, n_out)
        if abs(W.pow(2).mean() * n_in / 2 - 1) > 1e-4 or abs(W.mean()) > 1e-4 * W.std():
            return False
    return True


@wrong("f05.keeps_size", "Your tolerance is too wide: a variance that is off by a quarter passes.", see="one-layer")
def too_wide(init):
    for n_in, n_out in [(500, 60), (60, 500), (200, 200), (50, 50)]:
        W = torch.cat([init(n_in, n_out) for _ in range(max(1, 40_000 // (n_in * n_out)))], dim=1)
        for half in (W[: n_in // 2], W[n_in // 2 :]):
            if not 0.65 < half.pow(2).mean() * n_in / 2 < 1.4:
                return False
        if abs(W.mean()) > 0.2 * W.std():
            return False
    return True


@wrong(
    "f05.keeps_size",
    "Your widths leave out the ends of the range: a rule can go wrong for very narrow or very wide layers only.",
    see="one-layer",
)
def not_at_the_ends(init):
    for n_in, n_out in [(400, 80), (80, 400), (200, 200)]:
        W = torch.cat([init(n_in, n_out) for _ in range(2)], dim=1)
        for half in (W[: n_in // 2], W[n_in // 2 :]):
            if not 0.88 < half.pow(2).mean() * n_in / 2 < 1.12:
                return False
        if abs(W.mean()) > 0.2 * W.std():
            return False
    return True


@wrong(
    "f05.keeps_size", "You try only the narrowest and the widest layers: a rule can go wrong for those between.", see="one-layer"
)
def ends_only(init):
    for n_in, n_out in [(500, 50), (50, 500)]:
        W = torch.cat([init(n_in, n_out) for _ in range(3)], dim=1)
        for half in (W[: n_in // 2], W[n_in // 2 :]):
            if not 0.9 < half.pow(2).mean() * n_in / 2 < 1.1:
                return False
        if abs(W.mean()) > 0.2 * W.std():
            return False
    return True


@wrong("f05.keeps_size", "You take the mean of the upper rows only. The lower ones can be off centre as well.", see="one-layer")
def mean_of_the_upper_half(init):
    for n_in, n_out in [(500, 50), (50, 500), (200, 200)]:
        W = torch.cat([init(n_in, n_out) for _ in range(3)], dim=1)
        for half in (W[: n_in // 2], W[n_in // 2 :]):
            if not 0.9 < half.pow(2).mean() * n_in / 2 < 1.1:
                return False
        if abs(W[: n_in // 2].mean()) > 0.2 * W.std():
            return False
    return True


for same in (
    "[(499, 50), (50, 500), (200, 200)]",
    "[(500, 51), (50, 500), (200, 200)]",
    "[(500, 50), (51, 500), (200, 200)]",
    "[(500, 50), (50, 499), (200, 200)]",
    "[(500, 50), (50, 500), (199, 200)]",
    "[(500, 50), (50, 500), (201, 200)]",
    "[(500, 50), (50, 500), (200, 199)]",
    "[(500, 50), (50, 500), (200, 201)]",
):
    equivalent("f05.keeps_size", f"`for n_in, n_out in {same}:`", "other widths of the same three ranges")
for same in ("W[:n_in // -2], W[n_in // 2:]", "W[:n_in // 2], W[n_in // -2:]"):
    equivalent("f05.keeps_size", f"`for rows in ({same}):`", "the same rows, counted from the end")
for same in (
    "W[:n_in // 3], W[n_in // 2:]",
    "W[:n_in // 4], W[n_in // 2:]",
    "W[:n_in // 2], W[n_in // 3:]",
    "W[:n_in // 2], W[n_in // 4:]",
):
    equivalent("f05.keeps_size", f"`for rows in ({same}):`", "20% in half of the rows are 13% or more in this part")
for same in ("", ", dim=0"):
    equivalent(
        "f05.keeps_size",
        f"`W = torch.cat([init(n_in, n_out), init(n_in, n_out)]{same})`",
        "20% in half of the rows are 13% or more in one part",
    )
equivalent("f05.keeps_size", "`W = torch.cat([init(n_in, n_out), init(n_in, n_out)], dim=-1)`", "dimension 1 is the last")
equivalent(
    "f05.keeps_size", "`if abs(rows.square().mean() * n_in / 2 - 1) >= 0.11:`", "random numbers do not hit the limit itself"
)
equivalent("f05.keeps_size", "`if abs(W.mean()) >= 0.2 * W.std():`", "random numbers do not hit the limit itself")

# ---------------------------------------------------------------- f05.prediction

wrong("f05.prediction", 1e6, "No float holds ten to a power as large as this.", see="what-a-float-holds")
wrong("f05.prediction", "tiny", "A prediction that an experiment can refute is a number.", see="an-experiment-one-hundred-layers")
wrong("f05.prediction", -12_345, "Even a float64 ends at about ten to the power of −308.", see="what-a-float-holds")

# ---------------------------------------------------------------- f05.scaler


@right("f05.scaler")
def with_a_streak(largest, start, patience):
    used, streak = [], 0
    scale = float(start)
    for size in largest:
        used.append(scale)
        if size * scale <= 65504.0:
            streak += 1
        else:
            scale, streak = scale * 0.5, 0
        if streak == patience:
            scale, streak = scale * 2.0, 0
    return used


@right("f05.scaler")
def step_by_step(largest, start, patience):
    used, history = [float(start)], []
    for size in largest:
        history.append(used[-1] * size <= 65504)
        if not history[-1]:
            used.append(used[-1] / 2)
            history = []
        elif len(history) == patience:
            used.append(used[-1] * 2)
            history = []
        else:
            used.append(used[-1])
    return used[:-1]


@wrong("f05.scaler", "After an overflow the count of good steps begins anew; yours goes on.", see="mixed-precision")
def count_goes_on(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient * scale > 65504:
            scale = scale / 2
        else:
            good += 1
            if good == patience:
                scale, good = scale * 2, 0
    return used


@wrong(
    "f05.scaler",
    "After a doubling the count begins anew; yours goes on, so every further good step doubles again.",
    see="mixed-precision",
)
def doubles_ever_after(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient * scale > 65504:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good >= patience:
                scale = scale * 2
    return used


@wrong(
    "f05.scaler",
    "You note the scale after its change; the task asks for the one that the step was done with.",
    see="mixed-precision",
)
def noted_afterwards(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        if gradient * scale > 65504:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good == patience:
                scale, good = scale * 2, 0
        used.append(scale)
    return used


@wrong("f05.scaler", "65504 itself is a float16. Only what exceeds it overflows.", see="what-a-float-holds")
def limit_counts_as_overflow(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient * scale >= 65504:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good == patience:
                scale, good = scale * 2, 0
    return used


@wrong(
    "f05.scaler",
    "You halve until the step fits. An overflowing step is skipped, and the scale halved once.",
    see="mixed-precision",
)
def halves_until_it_fits(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient * scale > 65504:
            while gradient * scale > 65504:
                scale, good = scale / 2, 0
        else:
            good += 1
            if good == patience:
                scale, good = scale * 2, 0
    return used


@wrong("f05.scaler", "The scale never grows again: after `patience` good steps it is doubled.", see="mixed-precision")
def never_grows(largest, start, patience):
    scale, used = float(start), []
    for gradient in largest:
        used.append(scale)
        if gradient * scale > 65504:
            scale = scale / 2
    return used


@wrong(
    "f05.scaler",
    "Your scale stops growing at a largest value. After every row of `patience` good steps it is doubled, however large it is.",
    see="mixed-precision",
)
def stops_at_the_largest(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient * scale > 65504:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good == patience:
                scale, good = min(scale * 2, 2.0**24), 0
    return used


@wrong("f05.scaler", "You compare the gradient without its scale with the limit.", see="mixed-precision")
def without_the_scale(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient > 65504:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good == patience:
                scale, good = scale * 2, 0
    return used


@wrong("f05.scaler", "You double one step late: the step that completes the row counts.", see="mixed-precision")
def one_step_late(largest, start, patience):
    scale, good, used = float(start), 0, []
    for gradient in largest:
        used.append(scale)
        if gradient * scale > 65504:
            scale, good = scale / 2, 0
        else:
            good += 1
            if good > patience:
                scale, good = scale * 2, 0
    return used


# ---------------------------------------------------------------- f05.alpha

right("f05.alpha", 0.222)
right("f05.alpha", cell("alpha = sympy.sqrt(10 ** sympy.Rational(1, 48) - 1)"))
right("f05.alpha", cell("alpha = math.sqrt(math.expm1(math.log(10) / 48))"))
wrong(
    "f05.alpha",
    math.sqrt(9 / 48),
    "That is for branches that are normalised first, where each step adds the same amount.",
    see="residuals",
)
wrong("f05.alpha", 10 ** (1 / 48) - 1, "That is α²: take the root.", see="residuals")
wrong("f05.alpha", 1 / math.sqrt(48), "With 1/√L the second moment ends below e, not at ten.", see="residuals")
wrong("f05.alpha", 10 ** (1 / 48), "That is 1 + α², the factor of one step.", see="residuals")
wrong(
    "f05.alpha",
    math.sqrt(100 ** (1 / 48) - 1),
    "You let the root mean square grow tenfold; it is the second moment that should.",
    see="residuals",
)
