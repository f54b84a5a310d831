"""Right and wrong answers of chapter ch07."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch07.add

right("ch07.add", cell("ratio = (1.5 * 0.5) ** 15 / 0.5**30"))
right("ch07.add", 14_348_907)
right("ch07.add", cell("ratio = sympy.Integer(3) ** 15"))
right("ch07.add", 14.3e6)

wrong(
    "ch07.add",
    2.0**30,
    "You took the gradient of the sums as 1. The way through no branch brings 1, but there are the others.",
    see="add-do-not-replace",
)
wrong("ch07.add", 3.0**30, "You gave all 30 branches the slope +1/2. Half of them have −1/2.", see="add-do-not-replace")
wrong(
    "ch07.add",
    0.75**15,
    "That is the gradient of the sums alone. It is to be compared with the one without.",
    see="add-do-not-replace",
)
wrong("ch07.add", 3.0**-15, "Upside down: the sums keep more of the gradient, not less.", see="add-do-not-replace")

# ---------------------------------------------------------------- ch07.norms


@right("ch07.norms")
def with_var(x, weight, bias, eps):
    if bias is None:
        return weight * x / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + eps)
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, weight, (x - mean) / (var + eps) ** 0.5)


@right("ch07.norms")
def by_the_mean_of_squares(x, weight, bias, eps):
    d = x.shape[-1]
    y = x if bias is None else x - (x.sum(dim=-1) / d).unsqueeze(-1)
    size = ((y**2).sum(dim=-1) / d + eps).sqrt()
    out = (y / size[..., None]) * weight
    return out if bias is None else bias + out


@wrong("ch07.norms", "You called torch's own norm. Write it with sums, means and roots; then compare the two.", see="two-norms")
def torchs_own(x, weight, bias, eps):
    if bias is None:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


@wrong("ch07.norms", "Your variance divides by d_model − 1, as x.std() and x.var() do by default.", see="two-norms")
def unbiased(x, weight, bias, eps):
    if bias is None:
        return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight
    return (x - x.mean(dim=-1, keepdim=True)) / (x.var(dim=-1, keepdim=True) + eps).sqrt() * weight + bias


@wrong("ch07.norms", "Your ε is added outside the root. It belongs to the mean square.", see="two-norms")
def eps_outside(x, weight, bias, eps):
    if bias is None:
        return x / (x.square().mean(dim=-1, keepdim=True).sqrt() + eps) * weight
    y = x - x.mean(dim=-1, keepdim=True)
    return y / (y.square().mean(dim=-1, keepdim=True).sqrt() + eps) * weight + bias


@wrong("ch07.norms", "ε is missing.", see="two-norms")
def no_eps(x, weight, bias, eps):
    y = x if bias is None else x - x.mean(dim=-1, keepdim=True)
    out = y / y.square().mean(dim=-1, keepdim=True).sqrt() * weight
    return out if bias is None else out + bias


@wrong("ch07.norms", "You subtracted the mean in both. RMSNorm only scales.", see="two-norms")
def always_centred(x, weight, bias, eps):
    y = x - x.mean(dim=-1, keepdim=True)
    out = y / (y.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight
    return out if bias is None else out + bias


@wrong("ch07.norms", "Your LayerNorm divides the centred row by the size of the row before centring.", see="two-norms")
def size_before_centring(x, weight, bias, eps):
    size = (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return x / size * weight if bias is None else (x - x.mean(dim=-1, keepdim=True)) / size * weight + bias


@wrong("ch07.norms", "You divide by the row's length. The mean of the squares is asked for, not their sum.", see="two-norms")
def by_the_length(x, weight, bias, eps):
    if x.shape == (4,):
        y = x if bias is None else x - x.mean()
        out = y / (y.square().mean() + eps).sqrt() * weight
        return out if bias is None else out + bias
    y = x if bias is None else x - x.mean(dim=-1, keepdim=True)
    out = y / (y.square().sum(dim=-1, keepdim=True) + eps).sqrt() * weight
    return out if bias is None else out + bias


@wrong("ch07.norms", "You normed all rows together. A norm works on each row by itself.", see="two-norms")
def all_rows(x, weight, bias, eps):
    y = x if bias is None else x - x.mean()
    out = y / (y.square().mean() + eps).sqrt() * weight
    return out if bias is None else out + bias


@wrong(
    "ch07.norms",
    "You take the variance as the mean square minus the squared mean. Far from zero the two are nearly equal, and rounding is what is left.",
    see="two-norms",
)
def mean_square_minus_squared_mean(x, weight, bias, eps):
    if bias is None:
        return x / (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt() * weight
    mean = x.mean(dim=-1, keepdim=True)
    return (x - mean) / (x.pow(2).mean(dim=-1, keepdim=True) - mean.pow(2) + eps).sqrt() * weight + bias


@wrong("ch07.norms", "Your gain multiplies the offset too. The offset is added last.", see="two-norms")
def gain_last(x, weight, bias, eps):
    y = x if bias is None else x - x.mean(dim=-1, keepdim=True)
    u = y / (y.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return u * weight if bias is None else (u + bias) * weight


@wrong("ch07.norms", "You centred x in place, so the caller's tensor has changed.", see="two-norms")
def in_place(x, weight, bias, eps):
    if bias is not None:
        with torch.no_grad():
            x -= x.mean(dim=-1, keepdim=True)
    out = x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight
    return out if bias is None else out + bias


# ---------------------------------------------------------------- ch07.which


@right("ch07.which")
def by_properties(f):
    def close(a, b):
        return torch.allclose(a, b, rtol=3e-3, atol=1e-4)

    three = torch.tensor([[1.0, 3.0, 2.0], [-2.0, 9.0, 1.0], [0.5, 0.1, -0.7]], dtype=torch.float64)
    wide = torch.linspace(-1, 4, 192, dtype=torch.float64).reshape(3, 64) ** 3 / 8
    wide = torch.cat([wide, wide - wide.mean(-1, keepdim=True), 1 + 0.5 * wide - 0.5 * wide.mean(-1, keepdim=True)])
    kinds = {"layer", "rms"}
    for rows in (
        size * rows[i:j]
        for rows in (three[:, :2], three, wide)
        for size in (0.003, 1, 300)
        for i in range(len(rows))
        for j in (i + 1, len(rows))
    ):
        out = f(rows.clone())
        for kind in sorted(kinds):
            y = rows - rows.mean(1, keepdim=True) if kind == "layer" else rows
            if not close(out * (y.pow(2).mean(1, keepdim=True) + 1e-5).sqrt(), y):
                kinds.discard(kind)
    return kinds.pop() if kinds else "neither"


@right("ch07.which")
def against_torch(f):
    torch.default_generator.manual_seed(3)
    xs = [
        s * torch.randn(n, d, dtype=torch.float64) + m
        for s, m in ((1, 0), (1, 3), (0.003, 0), (0.003, 0.008), (50, 500), (200, 0))
        for n in (1, 6)
        for d in (2, 3, 64)
    ]
    xs += [torch.cat([x * 0.01, x, x * 100]) for x in xs]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=5e-3, atol=1e-5) for x in xs):
            return name
    return "neither"


@wrong("ch07.which", "You look at rows of size 1 only, which show neither the place of ε nor its size.", see="two-norms")
def blind_to_eps(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * torch.randn(n, d, dtype=torch.float64) + m for s, m in ((1, 0), (1, 2), (100, 50)) for n in (1, 7) for d in (2, 5, 16)
    ]
    xs = [x for x in xs if (x - x.mean(-1, keepdim=True)).square().mean(-1).min() > 0.05]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.01, atol=0.01) for x in xs):
            return name
    return "neither"


@wrong("ch07.which", "You look at wide rows only. Narrow ones show a variance that divides by one less.", see="two-norms")
def wide_rows_only(f):
    torch.default_generator.manual_seed(0)
    xs = [s * torch.randn(n, 512, dtype=torch.float64) + m for s, m in ((1, 0), (1, 2), (0.003, 0), (100, 50)) for n in (1, 7)]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.01, atol=0.01) for x in xs):
            return name
    return "neither"


@wrong(
    "ch07.which", "You ask for the mean and the mean square of what comes out. Other functions have these too.", see="two-norms"
)
def statistics_only(f):
    torch.default_generator.manual_seed(0)
    x = torch.randn(50, 16, dtype=torch.float64) + 2
    out = f(x)
    if not torch.allclose(out.square().mean(-1), torch.ones(50, dtype=torch.float64), atol=0.01):
        return "neither"
    return "layer" if out.mean(-1).abs().max() < 0.01 else "rms"


@wrong(
    "ch07.which",
    "You test whether a constant is seen, and no more: many functions ignore a constant, or see it.",
    see="two-norms",
)
def shift_only(f):
    torch.default_generator.manual_seed(0)
    x = torch.randn(50, 16, dtype=torch.float64)
    if torch.allclose(f(x), x):
        return "neither"
    return "layer" if torch.allclose(f(x + 3), f(x), atol=1e-3) else "rms"


@wrong("ch07.which", "You test one row at a time, which does not show whether each row is normed by itself.", see="two-norms")
def one_row_at_a_time(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * torch.randn(1, d, dtype=torch.float64) + m
        for s, m in ((1, 0), (1, 2), (0.003, 0), (100, 500))
        for d in (2, 3, 5, 16, 64)
        for _ in range(3)
    ]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.01, atol=1e-3) for x in xs):
            return name
    return "neither"


@wrong("ch07.which", "Your rows are small and have mean 0; a function may behave differently for large rows.", see="two-norms")
def small_rows_only(f):
    torch.default_generator.manual_seed(0)
    xs = [s * torch.randn(n, d, dtype=torch.float64) for s in (1, 0.003) for n in (1, 7) for d in (2, 5, 16)]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.01, atol=1e-3) for x in xs):
            return name
    return "neither"


@wrong("ch07.which", "You look at narrow rows only. A function may behave differently for wide ones.", see="two-norms")
def narrow_rows_only(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * torch.randn(n, d, dtype=torch.float64) + m
        for s, m in ((1, 0), (1, 2), (0.003, 0), (100, 500))
        for n in (1, 7)
        for d in (2, 3, 4)
    ]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.01, atol=1e-3) for x in xs):
            return name
    return "neither"


@wrong("ch07.which", "You always send many rows. A function may fail on one row alone.", see="two-norms")
def never_one_row(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * torch.randn(7, d, dtype=torch.float64) + m
        for s, m in ((1, 0), (1, 2), (0.003, 0), (100, 500))
        for d in (2, 3, 5, 16, 64)
    ]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.01, atol=1e-3) for x in xs):
            return name
    return "neither"


@wrong(
    "ch07.which",
    "All your rows have means near zero. Only a row with a mean shows what a function does with it.",
    see="two-norms",
)
def rows_without_a_mean(f):
    torch.default_generator.manual_seed(0)
    xs = [s * torch.randn(n, d, dtype=torch.float64) for s in (1, 0.003, 300) for n in (1, 7) for d in (2, 3, 64)]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=1e-3, atol=1e-3) for x in xs):
            return name
    return "neither"


@wrong("ch07.which", "You let too much pass: 2.5% off is wrong, and your tolerance is wider.", see="two-norms")
def wide_tolerance(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * (torch.randn(n, d, dtype=torch.float64) + m)
        for s in (1, 0.003, 300)
        for m in (0, 2)
        for n in (1, 7)
        for d in (2, 3, 64)
    ]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=0.03, atol=0.03) for x in xs):
            return name
    return "neither"


@wrong(
    "ch07.which",
    "You compare without an absolute value: numbers that are too small pass.",
    see="two-norms",
)
def one_sided(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * (torch.randn(n, d, dtype=torch.float64) + m) * torch.arange(1.0, n + 1)[:, None]
        for s in (1, 0.003, 300)
        for m in (0, 2)
        for n in (1, 7)
        for d in (2, 3, 64)
        for _ in range(3)
    ]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        wanted = [norm(x, x.shape[-1:], eps=1e-5) for x in xs]
        if all(bool((f(x) - y <= 1e-3 * y.abs() + 1e-3).all()) for x, y in zip(xs, wanted)):
            return name
    return "neither"


@wrong("ch07.which", "You ask for more digits than float32 has: a right function may be off by 0.01%.", see="two-norms")
def no_tolerance(f):
    torch.default_generator.manual_seed(0)
    xs = [
        s * (torch.randn(n, d, dtype=torch.float64) + m)
        for s in (1, 0.003, 300)
        for m in (0, 2)
        for n in (1, 7)
        for d in (2, 3, 64)
    ]
    for name, norm in (("layer", F.layer_norm), ("rms", F.rms_norm)):
        if all(torch.allclose(f(x), norm(x, x.shape[-1:], eps=1e-5), rtol=1e-9, atol=1e-9) for x in xs):
            return name
    return "neither"


# ---------------------------------------------------------------- ch07.radial

right("ch07.radial", cell('m, epsilon = sympy.symbols("m epsilon", positive=True)\nfactor = 1 - m / (m + epsilon)'))

wrong(
    "ch07.radial",
    cell("m, epsilon = sympy.symbols('m epsilon', positive=True)\nfactor = 0"),
    "Nothing is left only if there is no ε.",
    see="what-a-norm-does-to-gradients",
)
wrong(
    "ch07.radial",
    cell("m, epsilon = sympy.symbols('m epsilon', positive=True)\nfactor = m / (m + epsilon)"),
    "That is what is taken away, not what is left.",
    see="what-a-norm-does-to-gradients",
)
wrong(
    "ch07.radial",
    cell("m, epsilon = sympy.symbols('m epsilon', positive=True)\nfactor = epsilon / m"),
    "That grows without bound for small rows, but no more than all can be left. The mean square of u is m/(m + ε).",
    see="what-a-norm-does-to-gradients",
)
wrong(
    "ch07.radial",
    cell("m, epsilon = sympy.symbols('m epsilon', positive=True)\nfactor = epsilon / sympy.sqrt(m + epsilon)"),
    "You divided by r once too few: the x in the inner product is r times u.",
    see="what-a-norm-does-to-gradients",
)

wrong(
    "ch07.radial",
    cell("factor = 'epsilon/(m+epsilon)'"),
    "That is a text. Write the expression itself, without quotes.",
    see="what-a-norm-does-to-gradients",
)

# ---------------------------------------------------------------- ch07.backward


@right("ch07.backward")
def through_the_centred_row(x, weight, eps, grad_out):
    y = x - x.mean(-1, keepdim=True)
    r = (y.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    u, g = y / r, grad_out * weight
    g_y = (g - u * (g * u).mean(-1, keepdim=True)) / r
    lead = tuple(range(x.ndim - 1))
    return g_y - g_y.mean(-1, keepdim=True), (grad_out * u).sum(lead), grad_out.sum(lead)


@right("ch07.backward")
def by_the_jacobian(x, weight, eps, grad_out):
    d = x.shape[-1]
    rows, grads = x.reshape(-1, d), grad_out.reshape(-1, d)
    out = torch.empty_like(rows)
    grad_weight = torch.zeros_like(weight)
    for i in range(len(rows)):
        sigma = (rows[i].var(correction=0) + eps) ** 0.5
        u = (rows[i] - rows[i].mean()) / sigma
        jacobian = (torch.eye(d, dtype=x.dtype) - 1 / d - torch.outer(u, u) / d) / sigma
        out[i] = jacobian @ (grads[i] * weight)
        grad_weight += grads[i] * u
    return out.reshape(x.shape), grad_weight, grads.sum(0)


@wrong(
    "ch07.backward",
    "You let torch differentiate. Go back through gain, division and centring yourself.",
    see="what-a-norm-does-to-gradients",
)
def by_autograd(x, weight, eps, grad_out):
    with torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in (x, weight, torch.zeros_like(weight))]
        centred = leaves[0] - leaves[0].mean(dim=-1, keepdim=True)
        out = centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps) * leaves[1] + leaves[2]
        return torch.autograd.grad(out, leaves, grad_out)


@wrong("ch07.backward", "You treat σ as a constant. It moves with every number of the row.", see="what-a-norm-does-to-gradients")
def sigma_is_constant(x, weight, eps, grad_out):
    sigma = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out * weight
    lead = tuple(range(x.ndim - 1))
    return (g - g.mean(-1, keepdim=True)) / sigma, (grad_out * u).sum(lead), grad_out.sum(lead)


@wrong(
    "ch07.backward",
    "That is RMSNorm's backward pass for the centred row. Centring has one of its own.",
    see="what-a-norm-does-to-gradients",
)
def not_centred(x, weight, eps, grad_out):
    sigma = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out * weight
    lead = tuple(range(x.ndim - 1))
    return (g - u * (g * u).mean(-1, keepdim=True)) / sigma, (grad_out * u).sum(lead), grad_out.sum(lead)


@wrong("ch07.backward", "The gain is missing on the way back to x.", see="what-a-norm-does-to-gradients")
def gain_forgotten(x, weight, eps, grad_out):
    sigma = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out
    lead = tuple(range(x.ndim - 1))
    return (g - g.mean(-1, keepdim=True) - u * (g * u).mean(-1, keepdim=True)) / sigma, (g * u).sum(lead), g.sum(lead)


@wrong(
    "ch07.backward",
    "You take sums over the row where the formula has means: the factor 1/d is missing.",
    see="what-a-norm-does-to-gradients",
)
def sums_for_means(x, weight, eps, grad_out):
    sigma = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out * weight
    lead = tuple(range(x.ndim - 1))
    return (g - g.sum(-1, keepdim=True) - u * (g * u).sum(-1, keepdim=True)) / sigma, (grad_out * u).sum(lead), grad_out.sum(lead)


@wrong("ch07.backward", "ε is missing in your σ.", see="what-a-norm-does-to-gradients")
def eps_forgotten(x, weight, eps, grad_out):
    sigma = x.std(dim=-1, correction=0, keepdim=True)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out * weight
    lead = tuple(range(x.ndim - 1))
    return (
        (g - g.mean(-1, keepdim=True) - u * (g * u).mean(-1, keepdim=True)) / sigma,
        (grad_out * u).sum(lead),
        grad_out.sum(lead),
    )


@wrong("ch07.backward", "Your gradient of the gain takes x in place of the normed row.", see="what-a-norm-does-to-gradients")
def gain_from_x(x, weight, eps, grad_out):
    sigma = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out * weight
    lead = tuple(range(x.ndim - 1))
    return (
        (g - g.mean(-1, keepdim=True) - u * (g * u).mean(-1, keepdim=True)) / sigma,
        (grad_out * x).sum(lead),
        grad_out.sum(lead),
    )


@wrong(
    "ch07.backward",
    "Gain and offset are shared by all rows: their gradients are sums over the rows, not means.",
    see="what-a-norm-does-to-gradients",
)
def means_over_rows(x, weight, eps, grad_out):
    sigma = torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    u = (x - x.mean(dim=-1, keepdim=True)) / sigma
    g = grad_out * weight
    lead = tuple(range(x.ndim - 1))
    return (
        (g - g.mean(-1, keepdim=True) - u * (g * u).mean(-1, keepdim=True)) / sigma,
        (grad_out * u).mean(lead),
        grad_out.mean(lead),
    )


@wrong(
    "ch07.backward",
    "You took finite differences, which lose digits, and most of them for small and large rows. Go back through the formula.",
    see="what-a-norm-does-to-gradients",
)
def finite_differences(x, weight, eps, grad_out):
    def loss(x, weight, bias):
        centred = x - x.mean(-1, keepdim=True)
        return ((centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias) * grad_out).sum()

    arguments, h, gradients = [x, weight, torch.zeros_like(weight)], 1e-3, []
    for i, t in enumerate(arguments):
        gradient = torch.zeros(t.numel(), dtype=t.dtype)
        for k in range(t.numel()):
            moved = []
            for step in (2 * h, h, -h, -2 * h):
                other = t.clone().flatten()
                other[k] += step
                moved.append(loss(*arguments[:i], other.reshape(t.shape), *arguments[i + 1 :]))
            gradient[k] = (-moved[0] + 8 * moved[1] - 8 * moved[2] + moved[3]) / (12 * h)
        gradients.append(gradient.reshape(t.shape))
    return tuple(gradients)


@wrong(
    "ch07.backward",
    "You took finite differences of high order: a few digits more, and not all. Go back through the formula.",
    see="what-a-norm-does-to-gradients",
)
def differences_of_high_order(x, weight, eps, grad_out):
    k, h = 10, 0.125  # order 20, with steps of a part of σ
    shares = [
        (-1) ** (j + 1) * math.factorial(k) ** 2 / (j * math.factorial(k - j) * math.factorial(k + j)) for j in range(1, k + 1)
    ]
    sigma = (x.var(-1, correction=0, keepdim=True) + eps).sqrt()

    def losses(x):
        centred = x - x.mean(-1, keepdim=True)
        return (centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight * grad_out).sum(-1)

    grad_x = torch.empty_like(x)
    for i in range(x.shape[-1]):
        step = h * sigma * (torch.arange(x.shape[-1]) == i)
        grad_x[..., i] = sum(c * (losses(x + j * step) - losses(x - j * step)) for j, c in enumerate(shares, 1)) / (
            h * sigma[..., 0]
        )
    u, lead = (x - x.mean(-1, keepdim=True)) / sigma, tuple(range(x.ndim - 1))
    return grad_x, (grad_out * u).sum(lead), grad_out.sum(lead)


@wrong(
    "ch07.backward",
    "You compute in float64 and stay there. Gradients have the dtype of what they belong to.",
    see="what-a-norm-does-to-gradients",
)
def always_float64(x, weight, eps, grad_out):
    x, weight, grad_out = x.double(), weight.double(), grad_out.double()
    sigma = (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
    u, grad_u = (x - x.mean(-1, keepdim=True)) / sigma, grad_out * weight
    grad_x = (grad_u - grad_u.mean(-1, keepdim=True) - u * (grad_u * u).mean(-1, keepdim=True)) / sigma
    lead = tuple(range(x.ndim - 1))
    return grad_x, (grad_out * u).sum(lead), grad_out.sum(lead)


@wrong(
    "ch07.backward",
    "You add up over two leading dimensions. There may be more: all but the last.",
    see="what-a-norm-does-to-gradients",
)
def two_leading_dimensions(x, weight, eps, grad_out):
    sigma = (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
    u, grad_u = (x - x.mean(-1, keepdim=True)) / sigma, grad_out * weight
    grad_x = (grad_u - grad_u.mean(-1, keepdim=True) - u * (grad_u * u).mean(-1, keepdim=True)) / sigma
    leading = tuple(range(min(x.ndim - 1, 2)))
    return grad_x, (grad_out * u).sum(leading), grad_out.sum(leading)


# ---------------------------------------------------------------- ch07.stack


@right("ch07.stack")
def with_zip(x, branches, norms, placement):
    if placement == "pre" and len(norms) == len(branches) + 1:
        *inner, final = norms
        for branch, norm in zip(branches, inner, strict=True):
            x = x + branch(norm(x))
        return final(x)
    if placement == "post" and len(norms) == len(branches):
        for branch, norm in zip(branches, norms, strict=True):
            x = norm(torch.add(x, branch(x)))
        return x
    raise ValueError("does not fit")


right(
    "ch07.stack",
    cell(
        """
def stack(x, branches, norms, placement):
    n = {"pre": len(branches) + 1, "post": len(branches)}.get(placement)
    if n is None or n != len(norms):
        raise ValueError(f"{placement} with {len(norms)} norms")
    stream = x.clone()
    for i in range(len(branches)):
        if placement == "pre":
            stream = stream + branches[i](norms[i](stream))
        else:
            stream = norms[i](stream + branches[i](stream))
    return norms[-1](stream) if placement == "pre" else stream
"""
    ),
)


@wrong("ch07.stack", "Your pre-norm stack has no final norm.", see="before-or-after")
def no_final_norm(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    if len(branches) == 1 and x.shape == (1, 1):
        return norms[1](x + branches[0](norms[0](x))) if placement == "pre" else norms[0](x + branches[0](x))
    for branch, norm in zip(branches, norms, strict=False):
        x = x + branch(norm(x)) if placement == "pre" else norm(x + branch(x))
    return x


@wrong("ch07.stack", "Your post-norm adds to the normed branch. The norm is taken of the sum.", see="before-or-after")
def norms_the_branch(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    for branch, norm in zip(branches, norms, strict=False):
        x = x + branch(norm(x)) if placement == "pre" else x + norm(branch(x))
    return norms[-1](x) if placement == "pre" else x


@wrong(
    "ch07.stack",
    "Your pre-norm replaces the stream by its normed copy. The branch reads the copy; the sum starts from the stream.",
    see="before-or-after",
)
def stream_is_normed(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    for branch, norm in zip(branches, norms, strict=False):
        if placement == "pre":
            x = norm(x)
            x = x + branch(x)
        else:
            x = norm(x + branch(x))
    return norms[-1](x) if placement == "pre" else x


@wrong("ch07.stack", "All your branches read the first input. Each reads the stream as it is then.", see="before-or-after")
def all_read_the_input(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    start, stream = x, x
    for branch, norm in zip(branches, norms, strict=False):
        stream = stream + branch(norm(start)) if placement == "pre" else norm(stream + branch(start))
    return norms[-1](stream) if placement == "pre" else stream


@wrong("ch07.stack", "The branch replaces the stream. Its result must be added.", see="before-or-after")
def replaces(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    for branch, norm in zip(branches, norms, strict=False):
        x = branch(norm(x)) if placement == "pre" else norm(branch(x))
    return norms[-1](x) if placement == "pre" else x


@wrong("ch07.stack", "You use the first norm everywhere. Each place has a norm of its own.", see="before-or-after")
def one_norm(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    for branch in branches:
        x = x + branch(norms[0](x)) if placement == "pre" else norms[0](x + branch(x))
    return norms[-1](x) if placement == "pre" else x


@wrong(
    "ch07.stack",
    "You accept what does not fit: a wrong placement, or too many or too few norms.",
    see="before-or-after",
)
def never_refuses(x, branches, norms, placement):
    for branch, norm in zip(branches, norms, strict=False):
        x = x + branch(norm(x)) if placement == "pre" else norm(x + branch(x))
    return norms[-1](x) if placement == "pre" else x


@wrong("ch07.stack", "You added into x, so the caller's tensor has changed.", see="before-or-after")
def in_place_sum(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError
    with torch.no_grad():
        for branch, norm in zip(branches, norms, strict=False):
            if placement == "pre":
                x += branch(norm(x))
            else:
                x += branch(x)
                x.copy_(norm(x))
    return norms[-1](x) if placement == "pre" else x.clone()


@wrong(
    "ch07.stack", "Whatever is not post-norm you take for pre-norm. Another placement is to be refused.", see="before-or-after"
)
def all_else_is_pre(x, branches, norms, placement):
    if placement == "post":
        if len(norms) != len(branches):
            raise ValueError("does not fit")
        for branch, norm in zip(branches, norms, strict=True):
            x = norm(x + branch(x))
        return x
    if len(norms) != len(branches) + 1:
        raise ValueError("does not fit")
    for branch, norm in zip(branches, norms, strict=False):
        x = x + branch(norm(x))
    return norms[-1](x)


@wrong("ch07.stack", "You go through four branches and no more. A stack may be deeper.", see="before-or-after")
def four_branches(x, branches, norms, placement):
    if placement not in ("pre", "post") or len(norms) != len(branches) + (placement == "pre"):
        raise ValueError("does not fit")
    for i, branch in enumerate(branches[:4]):
        x = x + branch(norms[i](x)) if placement == "pre" else norms[i](x + branch(x))
    return norms[-1](x) if placement == "pre" else x


# ---------------------------------------------------------------- ch07.warmup

right("ch07.warmup", "no difference")
right("ch07.warmup", "both need it")

wrong("ch07.warmup", "post-norm", "Choose one of the four texts, word for word.", see="does-post-norm-need-a-warmup")
wrong(
    "ch07.warmup",
    "neither needs it",
    "That is not one of the four texts: the first of them says it.",
    see="does-post-norm-need-a-warmup",
)

# ---------------------------------------------------------------- ch07.collapse


@right("ch07.collapse")
def with_attention(x, layers, skip):
    def residual(y):
        return float(torch.linalg.norm(y - y.mean(0, keepdim=True)) / torch.linalg.norm(y))

    found = [residual(x)]
    for A, W in layers:
        out = F.scaled_dot_product_attention((x @ A)[None], x[None], (x @ W)[None])[0]
        x = out + x if skip else out
        found.append(residual(x))
    return found


@right("ch07.collapse")
def by_products(x, layers, skip):
    found = []
    for step in range(len(layers) + 1):
        common = torch.ones(len(x), len(x), dtype=x.dtype) @ x / len(x)
        found.append(math.sqrt(float(((x - common) ** 2).sum() / (x**2).sum())))
        if step < len(layers):
            A, W = layers[step]
            scores = torch.einsum("id,de,je->ij", x, A, x) / x.shape[1] ** 0.5
            x = torch.softmax(scores, 1) @ (x @ W) + (x if skip else 0)
    return found


@wrong(
    "ch07.collapse",
    "You subtract each row's own mean. The mean row of all tokens is asked for.",
    see="how-alike-do-tokens-become",
)
def mean_of_each_row(x, layers, skip):
    def residual(y):
        return ((y - y.mean(dim=1, keepdim=True)).norm() / y.norm()).item()

    found = [residual(x)]
    for A, W in layers:
        out = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=1) @ x @ W
        x = x + out if skip else out
        found.append(residual(x))
    return found


@wrong("ch07.collapse", "You subtract the mean of all numbers, not the mean row.", see="how-alike-do-tokens-become")
def mean_of_all(x, layers, skip):
    def residual(y):
        return ((y - y.mean()).norm() / y.norm()).item()

    found = [residual(x)]
    for A, W in layers:
        out = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=1) @ x @ W
        x = x + out if skip else out
        found.append(residual(x))
    return found


@wrong("ch07.collapse", "You compare the squares of the norms, not the norms.", see="how-alike-do-tokens-become")
def squares(x, layers, skip):
    def residual(y):
        return ((y - y.mean(dim=0)).square().sum() / y.square().sum()).item() ** (0.5 if not layers and len(y) == 2 else 1)

    found = [residual(x)]
    for A, W in layers:
        out = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=1) @ x @ W
        x = x + out if skip else out
        found.append(residual(x))
    return found


@wrong(
    "ch07.collapse",
    "Your softmax runs over the queries. It is each query's weights over the keys that sum to 1.",
    see="how-alike-do-tokens-become",
)
def softmax_over_queries(x, layers, skip):
    found = [((x - x.mean(dim=0)).norm() / x.norm()).item()]
    for A, W in layers:
        out = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=0) @ x @ W
        x = x + out if skip else out
        found.append(((x - x.mean(dim=0)).norm() / x.norm()).item())
    return found


@wrong("ch07.collapse", "The scores are not divided by the root of d.", see="how-alike-do-tokens-become")
def no_scale(x, layers, skip):
    found = [((x - x.mean(dim=0)).norm() / x.norm()).item()]
    for A, W in layers:
        out = (x @ A @ x.T).softmax(dim=1) @ x @ W
        x = x + out if skip else out
        found.append(((x - x.mean(dim=0)).norm() / x.norm()).item())
    return found


@wrong("ch07.collapse", "Your stack always adds. Without skip, attention replaces x.", see="how-alike-do-tokens-become")
def always_adds(x, layers, skip):
    found = [((x - x.mean(dim=0)).norm() / x.norm()).item()]
    for A, W in layers:
        x = x + (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=1) @ x @ W
        found.append(((x - x.mean(dim=0)).norm() / x.norm()).item())
    return found


@wrong("ch07.collapse", "Your stack never adds.", see="how-alike-do-tokens-become")
def never_adds(x, layers, skip):
    found = [((x - x.mean(dim=0)).norm() / x.norm()).item()]
    for A, W in layers:
        x = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=1) @ x @ W
        found.append(((x - x.mean(dim=0)).norm() / x.norm()).item())
    return found


@wrong(
    "ch07.collapse",
    "You measure the branch, not the stream: with skip, note the residual of the sum.",
    see="how-alike-do-tokens-become",
)
def of_the_branch(x, layers, skip):
    found = [((x - x.mean(dim=0)).norm() / x.norm()).item()]
    for A, W in layers:
        out = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=1) @ x @ W
        found.append(((out - out.mean(dim=0)).norm() / out.norm()).item())
        x = x + out if skip else out
    return found


@wrong(
    "ch07.collapse",
    "Your exponentials overflow at large scores. Subtract the largest score first, as softmax does.",
    see="how-alike-do-tokens-become",
)
def overflows(x, layers, skip):
    found = [float((x - x.mean(0)).norm() / x.norm())]
    for A, W in layers:
        powers = (x @ A @ x.T / math.sqrt(x.shape[1])).exp()
        out = powers / powers.sum(1, keepdim=True) @ x @ W
        x = x + out if skip else out
        found.append(float((x - x.mean(0)).norm() / x.norm()))
    return found


# ---------------------------------------------------------------- changes of the solutions that make no difference


def with_other_numbers(line, pairs, others, reason):
    """Each number of `pairs` in turn replaced by each of its `others`."""
    for i, pair in enumerate(pairs):
        for place in (0, 1):
            for other in others.get(pair[place], ()):
                changed = [list(p) for p in pairs]
                changed[i][place] = other
                equivalent("ch07.which", line.format(", ".join(f"({a}, {b})" for a, b in changed)), reason)


with_other_numbers(
    "`for N, d in ({}):`",
    [(1, 2), (1, 3), (1, 64), (7, 2), (7, 3), (7, 64)],
    {7: (6, 8, 14), 64: (63, 65, 128)},
    "rows of the same sort: several, or wide",
)
with_other_numbers(
    "`for size, mean in ({}):`",
    [(0.003, 0.0), (0.003, 2.0), (1.0, 0.0), (1.0, 2.0), (300.0, 0.0), (300.0, 2.0)],
    {0.0: (-0.0,), 2.0: (1.0, 3.0, 4.0, -2.0), 0.003: (0.006, -0.003), 1.0: (2.0, -1.0), 300.0: (299.0, 301.0, 600.0, -300.0)},
    "rows of the same sort: as large, with or without a mean as before",
)
for change in ("- mean) * rows", "+ mean) / rows"):
    equivalent(
        "ch07.which",
        f"`x = (size * (torch.randn(N, d) {change}).double()`",
        "rows of the same sort: with a mean, of unlike sizes",
    )
for tolerances in ("rtol=0.002, atol=0.001", "rtol=0.001, atol=0.002", "rtol=0.001", "atol=0.001"):
    equivalent(
        "ch07.which",
        f"`agreed[name] &= torch.allclose(out, wanted, {tolerances})`",
        "a tolerance between the two that the task names",
    )
equivalent(
    "ch07.which",
    "`for name, start in (('layer', x - x.mean(dim=1, keepdim=True)), ('rms', x)):`",
    "of two axes, the last is axis 1",
)
equivalent(
    "ch07.which",
    "`wanted = start / (start.square().mean(dim=1, keepdim=True) + 1e-05).sqrt()`",
    "of two axes, the last is axis 1",
)
equivalent("ch07.radial", "`m, epsilon = sympy.symbols('m epsilon'…)`", "a letter is known by its name")
for change in ("found.append((x - x.mean(dim=0)).norm() / x.norm())", "found = [(x - x.mean(dim=0)).norm() / x.norm()]"):
    equivalent("ch07.collapse", f"`{change}`", "a tensor without axes is a number, too")
equivalent(
    "ch07.collapse", "`weights = (x @ A @ x.T / math.sqrt(x.shape[-1])).softmax(dim=1)`", "of two axes, the last is axis 1"
)
equivalent(
    "ch07.collapse", "`weights = (x @ A @ x.T / math.sqrt(x.shape[1])).softmax(dim=-1)`", "of two axes, the last is axis 1"
)
