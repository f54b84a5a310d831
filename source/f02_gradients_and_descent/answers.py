"""Other right answers and named wrong answers of chapter f02."""

import math

import numpy as np
import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f02.chain

SYMBOLS = 'x, a = sympy.symbols("x a", real=True)\n'

right("f02.chain", cell(SYMBOLS + "slope = 2 * a * x / (1 + sympy.exp(-a * x**2))"))
right("f02.chain", cell(SYMBOLS + "slope = a * x * (1 + sympy.tanh(a * x**2 / 2))"))
wrong(
    "f02.chain",
    cell(SYMBOLS + "slope = 1 / (1 + sympy.exp(a * x**2))"),
    "That is the slope of the logarithm alone. The inside moves with x too, and its slope is a factor.",
    see="the-chain-rule",
)
wrong(
    "f02.chain",
    cell(SYMBOLS + "slope = sympy.exp(a * x**2) / (1 + sympy.exp(a * x**2))"),
    "Two of three: the exponent is itself a function of x, and its slope is missing.",
    see="the-chain-rule",
)
wrong(
    "f02.chain",
    cell(SYMBOLS + "slope = 2 * a * x * sympy.exp(a * x**2)"),
    "The slope of ln u is 1/u. You left that factor out.",
    see="the-chain-rule",
)
wrong(
    "f02.chain",
    cell(SYMBOLS + "slope = 2 * x * sympy.exp(a * x**2) / (1 + sympy.exp(a * x**2))"),
    "A constant factor stays in front when you take a slope: where is the a of the exponent?",
    see="the-slope-of-a-curve",
)
wrong(
    "f02.chain",
    cell(SYMBOLS + "slope = a * x**2 * sympy.exp(a * x**2) / (1 + sympy.exp(a * x**2))"),
    "You multiplied by the exponent itself, not by its slope.",
    see="the-slope-of-a-curve",
)
wrong(
    "f02.chain",
    cell(SYMBOLS + "slope = 2 * a * x"),
    "ln(1 + u) is not ln u: the 1 keeps the logarithm from undoing the exponential.",
    see="the-chain-rule",
)

for same in (", real=False", ""):
    equivalent("f02.chain", f"`x, a = sympy.symbols('x a'{same})`", "letters are known by their names")

# ---------------------------------------------------------------- f02.steps

right("f02.steps", 36)
right(
    "f02.steps",
    cell("""
    x, steps_needed = 3.0, 0
    while x**2 >= 1e-6:
        x, steps_needed = 0.8 * x, steps_needed + 1
    """),
)
wrong("f02.steps", 35, "You rounded down: after that many steps f is still just above the limit.", see="by-hand")
wrong("f02.steps", 67, "You waited for x, not for f(x) = x², to fall below the limit.", see="by-hand")
wrong("f02.steps", math.log(3000) / math.log(1.25), "Steps are whole numbers: round up.", see="by-hand")
wrong(
    "f02.steps",
    31,
    "That is where 0.8^k passes a thousandth: the walk starts at 3, not at 1.",
    see="by-hand",
)
wrong(
    "f02.steps",
    76,
    "A learning rate of 0.1 does not mean a factor of 0.9: the slope is 2x, so each step takes 0.2 x away.",
    see="by-hand",
)

for same in (2999, 3001):
    equivalent("f02.steps", f"`steps_needed = math.ceil(math.log({same}) / math.log(1.25))`", "the same after rounding up")

# ---------------------------------------------------------------- f02.rates

right("f02.rates", "cba")
right("f02.rates", "a, b, c")
right("f02.rates", ["a", "b", "c"])
right("f02.rates", "ABC")
wrong(
    "f02.rates",
    "abcd",
    "At exactly 2 over the curvature the factor is −1: the walk jumps from side to side for ever.",
    see="which-learning-rates-converge",
)
wrong(
    "f02.rates",
    "abcde",
    "The curvature is the slope of the slope. For c x² it is 2c, not c.",
    see="which-learning-rates-converge",
)
wrong(
    "f02.rates",
    "ab",
    "You left out a rate that overshoots and still comes down: with a factor between −1 and 0 the walk converges.",
    see="which-learning-rates-converge",
)
wrong(
    "f02.rates",
    "a",
    "You took only the smallest. Convergence does not need a small rate, only one below 2 over the curvature.",
    see="which-learning-rates-converge",
)
wrong(
    "f02.rates",
    "abcdef",
    "0 < η < 1 is the rule for x², whose curvature is 2. This parabola is steeper.",
    see="which-learning-rates-converge",
)

# ---------------------------------------------------------------- f02.best_step

ABUV = 'a, b, u, v = sympy.symbols("a b u v", positive=True)\n'

right("f02.best_step", cell(ABUV + "g, h = a * u, b * v\nbest_step = (g * g + h * h) / (a * g * g + b * h * h)"))
right("f02.best_step", cell(ABUV + "r = (b * v / (a * u)) ** 2\nbest_step = (1 + r) / (a + b * r)"))
wrong(
    "f02.best_step",
    cell(ABUV + "best_step = (a * u**2 + b * v**2) / (a**2 * u**2 + b**2 * v**2)"),
    "That step brings w as near to the bottom as it can. The question asks for the lowest f, which counts the steep axis more.",
    see="descent-in-many-dimensions",
)
wrong(
    "f02.best_step",
    cell(ABUV + "best_step = 2 / (a + b)"),
    "That is the best rate that stays the same for ever. For a single step it matters where you are.",
    see="descent-in-many-dimensions",
)
wrong(
    "f02.best_step",
    cell(ABUV + "best_step = (a**3 * u**2 + b**3 * v**2) / (a**2 * u**2 + b**2 * v**2)"),
    "Upside down: that is the curvature along the gradient, and the best step is 1 over it.",
    see="which-learning-rates-converge",
)
wrong(
    "f02.best_step",
    cell(ABUV + "best_step = (a**2 * u**2 + b**2 * v**2) / (a * u**2 + b * v**2)"),
    "Above the line you are right. Below it belongs the curvature along the gradient (au, bv), not along (u, v), the way to the bottom.",
    see="descent-in-many-dimensions",
)
wrong(
    "f02.best_step",
    cell(ABUV + "best_step = 1 / b"),
    "That step is perfect for the steep axis alone.",
    see="which-learning-rates-converge",
)
wrong(
    "f02.best_step",
    cell(ABUV + "best_step = 2 * (a**2 * u**2 + b**2 * v**2) / (a**3 * u**2 + b**3 * v**2)"),
    "At that step f is back at the height where it started. The lowest point of a parabola is half way.",
    see="which-learning-rates-converge",
)

for same in (", positive=False", ""):
    equivalent("f02.best_step", f"`a, b, u, v = sympy.symbols('a b u v'{same})`", "letters are known by their names")

# ---------------------------------------------------------------- f02.careful


@right("f02.careful")
def by_while(f, gradient, w, rate, steps):
    path = torch.empty(steps + 1, *w.shape, dtype=w.dtype)
    path[0] = w
    for k in range(steps):
        here, g = path[k].clone(), gradient(path[k].clone())
        value, squared, eta, tried = f(here), float(torch.sum(g * g)), rate, 0
        while tried < 60 and not f(here - eta * g) <= value - eta * squared / 2:
            eta, tried = eta * 0.5, tried + 1
        path[k + 1] = here - eta * g if tried < 60 else here
    return path


@right("f02.careful")
def from_a_list_of_rates(f, gradient, w, rate, steps):
    path = [w.clone()]
    for _ in range(steps):
        here = path[-1]
        g = gradient(here)
        enough = (eta for eta in (rate * 0.5**n for n in range(60)) if f(here - eta * g) <= f(here) - eta / 2 * g.square().sum())
        path.append(here - next(enough, 0.0) * g)
    return torch.stack(path)


@right("f02.careful")
def with_the_length_squared(f, gradient, w, rate, steps):
    points = np.empty((steps + 1, *w.shape))
    points[0] = w.numpy()
    for k in range(steps):
        here = torch.tensor(points[k], dtype=torch.float64)
        g, points[k + 1] = gradient(here), points[k]
        for eta in rate * 0.5 ** np.arange(60):
            there = here - eta * g
            if f(there) <= f(here) - eta / 2 * torch.linalg.vector_norm(g) ** 2:
                points[k + 1] = there.numpy()
                break
    return torch.from_numpy(points)


@wrong(
    "f02.careful",
    "You never shorten a step: at a rate that is too large the walk flies apart.",
    see="which-learning-rates-converge",
)
def plain_descent(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        path.append(path[-1] - rate * gradient(path[-1]))
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You keep the halved rate for the steps that follow. Every step is to start from the full rate again.",
    see="descent-in-many-dimensions",
)
def rate_stays_small(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g = gradient(w)
        for _ in range(60):
            if f(w - rate * g) <= f(w) - rate / 2 * (g**2).sum():
                w = w - rate * g
                break
            rate = rate / 2
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You accept any step that lowers f. The task asks for a drop of at least η/2 times the squared norm of the gradient.",
    see="many-dimensions",
)
def any_drop(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(60):
            if f(w - eta * g) <= f(w):
                w = w - eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "The promised drop uses the norm of the gradient where its square is meant.",
    see="many-dimensions",
)
def norm_not_squared(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(60):
            if f(w - eta * g) <= f(w) - eta / 2 * g.norm():
                w = w - eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You ask for the whole drop that the slope promises. A curved valley never gives all of it, so no step is ever taken.",
    see="many-dimensions",
)
def whole_drop(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(60):
            if f(w - eta * g) <= f(w) - eta * (g**2).sum():
                w = w - eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "After 20 tries you take the step, short enough or not. After 60 failed tries the walk stays where it is.",
    see="descent-in-many-dimensions",
)
def last_try_is_taken(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(20):
            if f(w - eta * g) <= f(w) - eta / 2 * (g**2).sum():
                break
            eta = eta / 2
        w = w - eta * g
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You end the walk where no step is short enough. Stay there instead: the path always has steps + 1 points.",
    see="descent-in-many-dimensions",
)
def gives_up(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(60):
            if f(w - eta * g) <= f(w) - eta / 2 * (g**2).sum():
                break
            eta = eta / 2
        else:
            break
        w = w - eta * g
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You give up too early: there are 60 tries, the first with the full rate.",
    see="descent-in-many-dimensions",
)
def fifty_tries(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(50):
            if f(w - eta * g) <= f(w) - eta / 2 * (g**2).sum():
                w = w - eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You halve 60 times. Of the 60 tries the first has the full rate, so there are 59 halvings.",
    see="descent-in-many-dimensions",
)
def sixty_one_tries(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(61):
            if f(w - eta * g) <= f(w) - eta / 2 * (g**2).sum():
                w = w - eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path)


@wrong(
    "f02.careful",
    "You return the points after the start only: there are steps + 1, the start first.",
    see="descent-in-many-dimensions",
)
def start_left_out(f, gradient, w, rate, steps):
    path = []
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(60):
            if f(w - eta * g) <= f(w) - eta / 2 * (g**2).sum():
                w = w - eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path) if path else torch.empty(0, *w.shape, dtype=w.dtype)


@wrong("f02.careful", "You walk uphill: the step is against the gradient.", see="downhill-on-a-line")
def uphill(f, gradient, w, rate, steps):
    path = [w]
    for _ in range(steps):
        g, eta = gradient(w), rate
        for _ in range(60):
            if f(w + eta * g) <= f(w) - eta / 2 * (g**2).sum():
                w = w + eta * g
                break
            eta = eta / 2
        path.append(w)
    return torch.stack(path)


# ---------------------------------------------------------------- f02.ridge


@right("f02.ridge")
def by_einsum(X, W, b, Y, penalty):
    errors = torch.einsum("ni,io->no", X, W) + b - Y
    return 2 * (torch.einsum("ni,no->io", X, errors) / X.shape[0] + penalty * W), 2 * errors.mean(dim=0)


@right("f02.ridge")
def example_by_example(X, W, b, Y, penalty):
    grad_W, grad_b = torch.zeros_like(W), torch.zeros_like(b)
    for x, y in zip(X, Y, strict=True):
        error = x @ W + b - y
        grad_W = grad_W + 2 / len(X) * torch.outer(x, error)
        grad_b = grad_b + 2 / len(X) * error
    return grad_W + 2 * penalty * W, grad_b


@wrong(
    "f02.ridge",
    "The factor 2 of the squared error is missing. Only half of this loss would have a gradient without it.",
    see="the-linear-model",
)
def no_two(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return X.T @ errors / len(X) + 2 * penalty * W, errors.sum(dim=0) / len(X)


@wrong(
    "f02.ridge",
    "You divided by all entries of Y, as torch's mse_loss does. Here the mean is over the examples.",
    see="the-linear-model",
)
def mean_over_entries(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return 2 / Y.numel() * X.T @ errors + 2 * penalty * W, 2 / Y.numel() * errors.sum(dim=0)


@wrong("f02.ridge", "A sum where a mean was meant: the part of the errors is N times too large.", see="what-goes-wrong-in-practice")
def sum_over_examples(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return 2 * X.T @ errors + 2 * penalty * W, 2 * errors.sum(dim=0)


@wrong("f02.ridge", "The gradient of the squared Frobenius norm is 2W: the penalty lost its 2.", see="gradients-of-matrices")
def penalty_without_two(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return 2 / len(X) * X.T @ errors + penalty * W, 2 / len(X) * errors.sum(dim=0)


@wrong("f02.ridge", "The penalty is missing from the gradient in W.", see="gradients-of-matrices")
def no_penalty(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return 2 / len(X) * X.T @ errors, 2 / len(X) * errors.sum(dim=0)


@wrong("f02.ridge", "The bias is not in the penalty, so its gradient has no term with λ.", see="the-linear-model")
def penalised_bias(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return 2 / len(X) * X.T @ errors + 2 * penalty * W, 2 / len(X) * errors.sum(dim=0) + 2 * penalty * b


@wrong(
    "f02.ridge",
    "Your errors have the wrong sign: take the prediction minus the target.",
    see="the-linear-model",
)
def wrong_sign(X, W, b, Y, penalty):
    errors = Y - X @ W - b
    return 2 / len(X) * X.T @ errors + 2 * penalty * W, 2 / len(X) * errors.sum(dim=0)


@wrong(
    "f02.ridge",
    "A gradient has the shape of its parameter: for b that is one number for each column, summed over the rows.",
    see="the-linear-model",
)
def bias_not_summed(X, W, b, Y, penalty):
    errors = X @ W + b - Y
    return 2 / len(X) * X.T @ errors + 2 * penalty * W, 2 / len(X) * errors


@wrong("f02.ridge", "You let torch differentiate. Write the two gradients as formulas.", see="the-linear-model")
def by_autograd(X, W, b, Y, penalty):
    W, b = W.clone().requires_grad_(True), b.clone().requires_grad_(True)
    loss = ((X @ W + b - Y) ** 2).sum(dim=-1).mean() + penalty * (W**2).sum()
    loss.backward()
    return W.grad, b.grad


@wrong("f02.ridge", "You forgot the bias in the prediction.", see="the-linear-model")
def bias_not_added(X, W, b, Y, penalty):
    errors = X @ W - Y
    return 2 / len(X) * X.T @ errors + 2 * penalty * W, 2 / len(X) * errors.sum(dim=0)


@wrong("f02.ridge", "You changed an argument: -= works in place on the tensor that you were given.", see="the-linear-model")
def in_place(X, W, b, Y, penalty):
    Y -= X @ W + b
    return -2 / len(X) * X.T @ Y + 2 * penalty * W, -2 / len(X) * Y.sum(dim=0)


# ---------------------------------------------------------------- f02.checker


@right("f02.checker")
def with_a_matrix_of_changes(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    changes = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([(float(f(w + c)) - float(f(w - c))) / 2e-5 for c in changes], dtype=w.dtype).view(w.shape)
    return bool(((claimed - numeric).abs() <= 1e-4 * numeric.abs().max()).all())


@right("f02.checker")
def in_numpy(f, gradient, w):
    claimed = gradient(w).detach().numpy()
    if claimed.shape != tuple(w.shape):
        return False
    numeric = np.zeros(w.shape)
    for index in np.ndindex(*w.shape):
        up, down = w.clone(), w.clone()
        up[index] += 3e-6
        down[index] -= 3e-6
        numeric[index] = float(f(up) - f(down)) / 6e-6
    return bool(np.abs(claimed - numeric).max() <= 1e-4 * np.abs(numeric).max())


@right("f02.checker")
def four_points(f, gradient, w):
    claimed = gradient(w)
    if tuple(claimed.shape) != tuple(w.shape):
        return False
    flat, h, worst, top = w.flatten(), 1e-3, 0.0, 0.0
    for i, g in enumerate(claimed.flatten()):

        def at(t, i=i):
            moved = flat.clone()
            moved[i] += t
            return float(f(moved.view(w.shape)))

        slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
        worst, top = max(worst, abs(slope - float(g))), max(top, abs(slope))
    return worst <= 1e-4 * top


@wrong(
    "f02.checker",
    "You let torch differentiate f. A checker should be independent of the machine it checks: use central differences.",
    see="slopes-without-algebra",
)
def against_autograd(f, gradient, w):
    claimed, leaf = gradient(w), w.clone().requires_grad_(True)
    if claimed.shape != w.shape:
        return False
    f(leaf).backward()
    return bool((claimed - leaf.grad).abs().max() <= 1e-4 * leaf.grad.abs().max())


@wrong(
    "f02.checker",
    "You compared directions only. A gradient with the wrong length, or a factor of 2, points the same way.",
    see="trust-no-gradient-unchecked",
)
def only_the_direction(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool(torch.cosine_similarity(claimed.flatten(), numeric, dim=0) > 1 - 1e-8)


@wrong(
    "f02.checker",
    "You compared the slope along one random direction. A small error in one entry is lost among the others: look at each entry.",
    see="trust-no-gradient-unchecked",
)
def one_random_direction(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    v = torch.randn_like(w)
    slope = float(f(w + 1e-5 * v) - f(w - 1e-5 * v)) / 2e-5
    return abs(float((claimed * v).sum()) - slope) <= 1e-4 * abs(slope)


@wrong(
    "f02.checker",
    "You judged each entry by its own size. Where an entry of the gradient is zero, rounding alone fails that; judge by the largest entry.",
    see="trust-no-gradient-unchecked",
)
def each_by_its_own_size(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool(((claimed.flatten() - numeric).abs() <= 1e-4 * numeric.abs()).all())


@wrong(
    "f02.checker",
    "You moved all entries at once. That tests the sum of the gradient's entries, and errors cancel in a sum.",
    see="trust-no-gradient-unchecked",
)
def all_entries_at_once(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    slope = float(f(w + 1e-5) - f(w - 1e-5)) / 2e-5
    return abs(float(claimed.sum()) - slope) <= 1e-4 * abs(slope)


@wrong(
    "f02.checker",
    "Your tolerance is a fixed number. For a loss in the millions rounding alone can be larger; for one in millionths every error is smaller.",
    see="trust-no-gradient-unchecked",
)
def fixed_tolerance(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool((claimed.flatten() - numeric).abs().max() <= 1e-4)


@wrong(
    "f02.checker",
    "You let an error of 5 percent pass. A gradient with one entry wrong by a thousandth is a wrong gradient.",
    see="trust-no-gradient-unchecked",
)
def far_too_patient(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool((claimed.flatten() - numeric).abs().max() <= 0.05 * numeric.abs().max())


@wrong(
    "f02.checker",
    "A difference to one side is off by h/2 times the curvature: with your h the right gradient fails the tolerance.",
    see="slopes-without-algebra",
)
def one_sided(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-2 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w)) / 1e-2 for c in eye], dtype=w.dtype)
    return bool((claimed.flatten() - numeric).abs().max() <= 1e-4 * numeric.abs().max())


@wrong(
    "f02.checker",
    "Your step is too small: the rounding of f, divided by it, is larger than what you look for.",
    see="slopes-without-algebra",
)
def tiny_step(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-14 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-14 for c in eye], dtype=w.dtype)
    return bool((claimed.flatten() - numeric).abs().max() <= 1e-4 * numeric.abs().max())


@wrong(
    "f02.checker",
    "You compared flat lists and never the shapes: a transposed or flattened gradient has the wrong shape even if its numbers fit.",
    see="many-dimensions",
)
def shape_not_compared(f, gradient, w):
    claimed = gradient(w).flatten()
    if len(claimed) != w.numel():
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool((claimed - numeric).abs().max() <= 1e-4 * numeric.abs().max())


@wrong(
    "f02.checker",
    "You counted the axes and the entries. Two shapes can agree in both and still differ: compare the shapes themselves.",
    see="many-dimensions",
)
def entries_counted(f, gradient, w):
    claimed = gradient(w)
    if claimed.dim() != w.dim() or claimed.numel() != w.numel():
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool((claimed.flatten() - numeric).abs().max() <= 1e-4 * numeric.abs().max())


@wrong(
    "f02.checker",
    "You compare norms, in which one entry is lost among many. The task judges each entry, by the largest.",
    see="trust-no-gradient-unchecked",
)
def norm_of_the_difference(f, gradient, w):
    claimed = gradient(w)
    if claimed.shape != w.shape:
        return False
    eye = 1e-5 * torch.eye(w.numel(), dtype=w.dtype).reshape(w.numel(), *w.shape)
    numeric = torch.tensor([float(f(w + c) - f(w - c)) / 2e-5 for c in eye], dtype=w.dtype)
    return bool((claimed.flatten() - numeric).norm() <= 1e-4 * numeric.norm())


equivalent(
    "f02.checker",
    "`return (claimed - numeric).abs().max() <= 0.0001 * numeric.abs().max()`",
    "a truth value as a tensor is one, too",
)
for name in ("numeric", "change"):
    equivalent(
        "f02.checker",
        f"`{name} = torch.zeros(w.numel())`",
        "float32 is off by a ten-millionth, a thousandth of what is tolerated",
    )

# ---------------------------------------------------------------- f02.prediction

right("f02.prediction", 1)
right("f02.prediction", 10.0)
wrong(
    "f02.prediction",
    0,
    "Zero times smaller is not a size: write 1 if you think that the edge stays where it is.",
    see="an-experiment-where-is-the-edge",
)
wrong(
    "f02.prediction",
    -100,
    'The number of times must be positive; the word "smaller" is already in the question.',
    see="an-experiment-where-is-the-edge",
)
