"""Right and wrong answers of chapter 6."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch06.labour

right("ch06.labour", cell('labour = ["ffn" if letter in "bd" else "attention" for letter in "abcde"]'))

wrong(
    "ch06.labour",
    ["attention", "ffn", "attention", "attention", "attention"],
    "Your (d) speaks of two texts, but it says that the text around a row does not matter.",
    see="one-token-at-a-time",
)
wrong(
    "ch06.labour",
    ["attention", "ffn", "attention", "ffn", "ffn"],
    "In (e) equal arguments give different results. A function of the row alone cannot do that.",
    see="one-token-at-a-time",
)
wrong(
    "ch06.labour",
    ["ffn", "attention", "ffn", "attention", "ffn"],
    "You have exchanged the two: attention is the part that reads other tokens.",
    see="one-token-at-a-time",
)
wrong(
    "ch06.labour",
    ["attention", "attention", "attention", "ffn", "attention"],
    "What is added in (b) depends on the row itself and not on its neighbours.",
    see="one-token-at-a-time",
)
wrong(
    "ch06.labour",
    ["attention", "ffn", "ffn", "ffn", "attention"],
    "An average over other rows, as in (c), reads other rows.",
    see="one-token-at-a-time",
)

# ---------------------------------------------------------------- ch06.rowwise


@right("ch06.rowwise")
def prefixes_and_changes(f, d):
    for T in range(1, 9):
        for _ in range(4):
            x, y = torch.randn(T, d), torch.randn(T, d)
            for i in range(T):
                y[i] = x[i]
                if not torch.allclose(f(x)[i], f(y)[i], rtol=0, atol=2e-4) or not torch.allclose(
                    f(x)[i], f(x[i][None])[0], rtol=0, atol=2e-4
                ):
                    return False
                y[i] = torch.randn(d)
    return True


@right("ch06.rowwise")
def one_by_one(f, d):
    worst = 0.0
    for _ in range(40):
        x = torch.randn(int(torch.randint(1, 9, ())), d)
        whole = f(x)
        worst = max(worst, *(float((whole[i] - f(x[i].unsqueeze(0)).squeeze(0)).abs().max()) for i in range(len(x))))
        x = torch.randn(8, d)
        whole = f(x)
        worst = max(worst, *(float((whole[i] - f(x[i].unsqueeze(0)).squeeze(0)).abs().max()) for i in range(8)))
    return worst < 3e-4


@wrong(
    "ch06.rowwise",
    "You looked at shuffled rows only. Attention, or a mean over all rows, passes that, and mixes all of them.",
    see="one-token-at-a-time",
)
def shuffles(f, d):
    for T in range(1, 9):
        x, order = torch.randn(T, d), torch.randperm(T)
        if (f(x[order]) - f(x)[order]).abs().max() > 1e-4:
            return False
    return True


@wrong(
    "ch06.rowwise",
    "You changed the last row and looked at the others. A row can also read those before it.",
    see="one-token-at-a-time",
)
def changes_the_last_row(f, d):
    for T in range(2, 9):
        for _ in range(3):
            x = torch.randn(T, d)
            y = x.clone()
            y[-1] = torch.randn(d)
            if (f(x)[:-1] - f(y)[:-1]).abs().max() > 1e-4:
                return False
    return True


@wrong(
    "ch06.rowwise",
    "You changed the first row and looked at the others. A row can also read those after it.",
    see="one-token-at-a-time",
)
def changes_the_first_row(f, d):
    for T in range(2, 9):
        for _ in range(3):
            x = torch.randn(T, d)
            y = x.clone()
            y[0] = torch.randn(d)
            if (f(x)[1:] - f(y)[1:]).abs().max() > 1e-4:
                return False
    return True


@wrong(
    "ch06.rowwise",
    "You changed the neighbours of a row and left its place and T alone. The function may differ with the place or with T.",
    see="one-token-at-a-time",
)
def changes_the_neighbours(f, d):
    for T in range(1, 9):
        for _ in range(3):
            x = torch.randn(T, d)
            for i in range(T):
                y = torch.randn(T, d)
                y[i] = x[i]
                if (f(x)[i] - f(y)[i]).abs().max() > 1e-4:
                    return False
    return True


@wrong(
    "ch06.rowwise",
    "You tried two rows only. What is mixed among many, or from far away, stays hidden.",
    see="one-token-at-a-time",
)
def two_rows(f, d):
    for _ in range(20):
        x = torch.randn(2, d)
        if (f(x) - torch.cat([f(x[:1]), f(x[1:])])).abs().max() > 1e-4:
            return False
    return True


@wrong("ch06.rowwise", "You asked for equal numbers. Rounding may differ with the number of rows.", see="one-token-at-a-time")
def exactly_equal(f, d):
    for T in range(1, 9):
        x = torch.randn(T, d)
        if not torch.equal(f(x), torch.cat([f(x[i : i + 1]) for i in range(T)])):
            return False
    return True


@wrong("ch06.rowwise", "You compared the first row only. Another place may have another function.", see="one-token-at-a-time")
def first_row_only(f, d):
    for T in range(1, 9):
        for _ in range(3):
            x = torch.randn(T, d)
            if (f(x)[0] - f(x[:1])[0]).abs().max() > 1e-4:
                return False
    return True


@wrong("ch06.rowwise", "You averaged the differences. Positive and negative ones cancel.", see="one-token-at-a-time")
def mean_difference(f, d):
    for T in range(1, 9):
        for _ in range(3):
            x = torch.randn(T, d)
            if (f(x) - torch.cat([f(x[i : i + 1]) for i in range(T)])).mean().abs() > 1e-4:
                return False
    return True


@wrong("ch06.rowwise", "You tried T = 8 only. A function may break its promise at another length.", see="one-token-at-a-time")
def eight_rows(f, d):
    for _ in range(5):
        x = torch.randn(8, d)
        if (f(x) - torch.cat([f(x[i : i + 1]) for i in range(8)])).abs().max() > 1e-4:
            return False
    return True


@wrong(
    "ch06.rowwise",
    "You asked that rows be treated as they are among equal ones. Equal rows hide that a mean is taken.",
    see="one-token-at-a-time",
)
def equal_rows(f, d):
    for T in range(1, 9):
        x = torch.randn(1, d)
        y = f(x.repeat(T, 1))
        if (y - f(x)).abs().max() > 1e-4:
            return False
    return True


@wrong("ch06.rowwise", "You let small differences pass. More than 0.001 breaks the promise.", see="one-token-at-a-time")
def generous(f, d):
    for _ in range(3):
        for T in range(1, 9):
            x = torch.randn(T, d)
            if (f(x) - torch.cat([f(x[i : i + 1]) for i in range(T)])).abs().max() > 0.1:
                return False
    return True


@wrong(
    "ch06.rowwise",
    "You compared the beginning of a text with the whole. Rows that read earlier ones, or know their place, pass that.",
    see="one-token-at-a-time",
)
def prefixes(f, d):
    for T in range(1, 9):
        for _ in range(3):
            x = torch.randn(T, d)
            for n in range(1, T):
                if (f(x)[:n] - f(x[:n])).abs().max() > 1e-4:
                    return False
    return True


@wrong(
    "ch06.rowwise",
    "You tried 1, 2, 4 and 8 rows. A function may break its promise at the lengths between.",
    see="one-token-at-a-time",
)
def powers_of_two(f, d):
    for T in (1, 2, 4, 8):
        for _ in range(3):
            x = torch.randn(T, d)
            if (f(x) - torch.cat([f(row[None]) for row in x])).abs().max() > 1e-4:
                return False
    return True


# ---------------------------------------------------------------- ch06.collapse


@right("ch06.collapse")
def by_homogeneous_coordinates(layers):
    whole = None
    for W, b in layers:
        square = torch.zeros(W.shape[0] + 1, W.shape[1] + 1, dtype=W.dtype)
        square[:-1, :-1], square[-1, :-1], square[-1, -1] = W, b, 1
        whole = square if whole is None else whole @ square
    widths = [layers[0][0].shape[0]] + [len(b) for _, b in layers]
    return whole[:-1, :-1], whole[-1, :-1], min(widths)


@right("ch06.collapse")
def from_the_end(layers):
    W, b = layers[-1]
    narrowest = W.shape[1]
    for W_before, b_before in reversed(layers[:-1]):
        narrowest = min(narrowest, W.shape[0])
        W, b = W_before @ W, b_before @ W + b
    return W, b, min(narrowest, W.shape[0])


@wrong("ch06.collapse", "You added the biases. Each bias also goes through all the layers after it.", see="why-it-must-bend")
def adds_the_biases(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, (b + b_next if b.shape == b_next.shape else b @ W_next + b_next)
    return W, b, min(width for W_each, _ in layers for width in W_each.shape)


@wrong("ch06.collapse", "You kept the last bias only. Those before it arrive at the end, too.", see="why-it-must-bend")
def last_bias(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, b_next
    return W, b, min(width for W_each, _ in layers for width in W_each.shape)


@wrong("ch06.collapse", "Your product is in the wrong order: a row meets the first matrix first.", see="why-it-must-bend")
def wrong_order(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        square = W_next.shape[1] == W.shape[0] and W.shape == W_next.shape
        W, b = (W_next @ W if square else W @ W_next), b @ W_next + b_next
    return W, b, min(width for W_each, _ in layers for width in W_each.shape)


@wrong(
    "ch06.collapse", "Your bound looks at the two ends only. The narrowest place may be in the middle.", see="why-it-must-bend"
)
def bound_of_the_ends(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, b @ W_next + b_next
    return W, b, min(W.shape)


@wrong("ch06.collapse", "Your bound leaves out the width that comes in. It limits the rank, too.", see="why-it-must-bend")
def bound_without_the_input(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, b @ W_next + b_next
    return W, b, min(W_each.shape[1] for W_each, _ in layers)


@wrong("ch06.collapse", "Your bound leaves out the width that comes out. It limits the rank, too.", see="why-it-must-bend")
def bound_without_the_output(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, b @ W_next + b_next
    return W, b, min(W_each.shape[0] for W_each, _ in layers)


@wrong("ch06.collapse", "You put a ReLU between the layers. Here nothing bends.", see="why-it-must-bend")
def bends(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = torch.relu(W) @ W_next, torch.relu(b) @ W_next + b_next
    return W, b, min(width for W_each, _ in layers for width in W_each.shape)


@wrong("ch06.collapse", "You changed the first layer's matrix in place.", see="why-it-must-bend")
def in_place(layers):
    W, b = layers[0]
    kept = W.clone()
    W.zero_()
    W = kept
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, b @ W_next + b_next
    return W, b, min(width for W_each, _ in layers for width in W_each.shape)


@wrong("ch06.collapse", "You used the first two layers only.", see="why-it-must-bend")
def two_layers(layers):
    if len(layers) == 1:
        return *layers[0], min(layers[0][0].shape)
    (W, b), (W_next, b_next) = layers[:2]
    return W @ W_next, b @ W_next + b_next, min(*W.shape, *W_next.shape)


@wrong(
    "ch06.collapse",
    "That is the rank of this matrix. The bound is the largest rank that the widths allow.",
    see="why-it-must-bend",
)
def rank_of_the_matrix(layers):
    W, b = layers[0]
    for W_next, b_next in layers[1:]:
        W, b = W @ W_next, b @ W_next + b_next
    return W, b, int(torch.linalg.matrix_rank(W))


# ---------------------------------------------------------------- ch06.curvature

_HEAD = 'x = sympy.symbols("x", real=True)\nphi = sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)\n'

right("ch06.curvature", cell(_HEAD + "curvature = sympy.diff(x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2, x, x)"))
right("ch06.curvature", cell(_HEAD + "curvature = 2 * phi - x * x * phi"))

wrong(
    "ch06.curvature",
    cell(_HEAD + "curvature = (1 - x**2) * phi"),
    "The slope of Φ is missing. It is φ, and the product x φ has a φ of its own.",
    see="gelu-and-its-relatives",
)
wrong(
    "ch06.curvature",
    cell(_HEAD + "curvature = phi + 0 * x"),
    "You took the slope of Φ only. The second term has a slope, too.",
    see="gelu-and-its-relatives",
)
wrong(
    "ch06.curvature",
    cell(_HEAD + "curvature = 2 * phi + 0 * x"),
    "You took φ to be a constant in x φ(x). It has a slope of its own.",
    see="gelu-and-its-relatives",
)
wrong(
    "ch06.curvature",
    cell(_HEAD + "curvature = (2 + x**2) * phi"),
    "A sign is lost: the bell curve falls where x is positive.",
    see="gelu-and-its-relatives",
)
wrong(
    "ch06.curvature",
    cell(_HEAD + "curvature = (1 + sympy.erf(x / sympy.sqrt(2))) / 2 + x * phi"),
    "This is the slope. The task asks for the slope of the slope.",
    see="gelu-and-its-relatives",
)
wrong(
    "ch06.curvature",
    cell(_HEAD + "curvature = (2 - x) * phi"),
    "The chain rule gives −x φ for the slope of φ, and that is multiplied by x once more.",
    see="gelu-and-its-relatives",
)

wrong(
    "ch06.curvature",
    cell("""
x = sympy.symbols("x", real=True)
phi = sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)
curvature = sympy.Derivative(x * (1 + sympy.erf(x / sympy.sqrt(2))) / 2, (x, 2))
"""),
    "That names the derivative and does not compute it.",
    see="gelu-and-its-relatives",
)

# ---------------------------------------------------------------- ch06.count

right("ch06.count", cell("all_ffn = sum(768 * 3072 + 3072 + 3072 * 768 + 768 for _ in range(12))\ngated_width = 1792.0"))

wrong(
    "ch06.count", {"all_ffn": 12 * 8 * 768**2, "gated_width": 1792}, "You left out the biases of GPT-2.", see="width-and-number"
)
wrong(
    "ch06.count",
    {"all_ffn": 8 * 768**2 + 5 * 768, "gated_width": 1792},
    "That is one block. GPT-2 has twelve.",
    see="width-and-number",
)
wrong(
    "ch06.count",
    {"all_ffn": 12 * (8 * 768**2 + 8 * 768), "gated_width": 1792},
    "The second layer has one bias for each of its outputs, and it has 768 outputs.",
    see="width-and-number",
)
wrong(
    "ch06.count",
    {"all_ffn": 12 * (8 * 768**2 + 5 * 768), "gated_width": 2048},
    "That is 8/3 of 768, which matches a plain network of 4 d. Here it has 3.5 d.",
    see="width-and-number",
)
wrong(
    "ch06.count",
    {"all_ffn": 12 * (8 * 768**2 + 5 * 768), "gated_width": 1344},
    "You halved the width. Three matrices share what two had.",
    see="width-and-number",
)
wrong(
    "ch06.count",
    {"all_ffn": 12 * (8 * 768**2 + 5 * 768), "gated_width": 2688},
    "That is the width of the plain network. A third matrix costs as much as each of the two.",
    see="width-and-number",
)

# ---------------------------------------------------------------- ch06.prediction

right("ch06.prediction", "SwiGLU")
right("ch06.prediction", "relu")

wrong(
    "ch06.prediction",
    "GLU",
    "Write the word as it is printed.",
    see="an-experiment-which-bend-is-best",
)
wrong("ch06.prediction", "no difference", "Set one of the four texts, word for word.", see="an-experiment-which-bend-is-best")

# ---------------------------------------------------------------- ch06.store


@right("ch06.store")
def bias_half_way(keys, values, c):
    gain = 2 / (1 - c)
    return gain * keys.T, torch.full((len(keys),), -gain * c, dtype=keys.dtype), values / 2


@right("ch06.store")
def unit_by_unit(keys, values, c):
    W1, b1 = torch.zeros(keys.shape[1], len(keys), dtype=keys.dtype), torch.zeros(len(keys), dtype=keys.dtype)
    for i, key in enumerate(keys):
        W1[:, i], b1[i] = key / (1 - c), -c / (1 - c)
    return W1, b1, values * 1


@right("ch06.store")
def scaled_values(keys, values, c):
    return keys.T.contiguous(), -c * torch.ones(len(keys), dtype=keys.dtype), values / (1 - c)


@wrong(
    "ch06.store", "Your units have no threshold. Keys that are not quite at right angles wake each other.", see="keys-and-values"
)
def no_threshold(keys, values, c):
    return keys.T.clone(), torch.zeros(len(keys), dtype=keys.dtype), values.clone()


@wrong("ch06.store", "After the threshold your unit gives 1 − c for its own key. It must come out as 1.", see="keys-and-values")
def not_scaled(keys, values, c):
    return keys.T.clone(), torch.full((len(keys),), -c, dtype=keys.dtype), values.clone()


@wrong("ch06.store", "You scaled the matrix and not the threshold.", see="keys-and-values")
def bias_not_scaled(keys, values, c):
    return keys.T / (1 - c), torch.full((len(keys),), -c, dtype=keys.dtype), values.clone()


@wrong("ch06.store", "Your bias adds to the match. It must take away.", see="keys-and-values")
def wrong_sign(keys, values, c):
    return keys.T / (1 + c), torch.full((len(keys),), c / (1 + c), dtype=keys.dtype), values.clone()


@wrong(
    "ch06.store",
    "You solved for values that fit the keys. Other rows wake your units, too, and get more than zeros.",
    see="keys-and-values",
)
def least_squares(keys, values, c):
    b1 = torch.zeros(len(keys), dtype=keys.dtype)
    return keys.T.clone(), b1, torch.linalg.pinv(torch.relu(keys @ keys.T)) @ values


@wrong(
    "ch06.store",
    "Your keys are the rows of the first matrix. A row that comes in is compared with its columns.",
    see="keys-and-values",
)
def not_transposed(keys, values, c):
    return keys / (1 - c), torch.full((len(keys),), -c / (1 - c), dtype=keys.dtype), values.clone()


@wrong("ch06.store", "Your threshold is a half whatever c is.", see="keys-and-values")
def threshold_of_a_half(keys, values, c):
    return 2 * keys.T, torch.full((len(keys),), -1.0, dtype=keys.dtype), values.clone()


@wrong("ch06.store", "Your threshold is 1: then the unit is silent for its own key as well.", see="keys-and-values")
def threshold_of_one(keys, values, c):
    return keys.T / (1 - c), torch.full((len(keys),), -1 / (1 - c), dtype=keys.dtype), values.clone()


# ---------------------------------------------------------------- ch06.edit


@right("ch06.edit")
def by_the_pseudo_inverse(W2, h, target, others):
    rows = torch.cat([h.unsqueeze(0), others])
    wanted = torch.cat([target.unsqueeze(0), others @ W2])
    return W2 + torch.linalg.pinv(rows) @ (wanted - rows @ W2)


@right("ch06.edit")
def by_gram_schmidt(W2, h, target, others):
    basis = []
    for row in others:
        for _ in range(2):
            for b in basis:
                row = row - (row @ b) * b
        basis.append(row / row.norm())
    u = h.clone()
    for _ in range(2):
        for b in basis:
            u = u - (u @ b) * b
    return W2 + torch.outer(u, target - h @ W2) / (u @ u)


@wrong("ch06.edit", "You took u = h. The answers of the others move by their shares.", see="one-fact-changed")
def ignores_the_others(W2, h, target, others):
    if len(h) == 2 and len(others) == 1:
        others = others / others.norm()
        u = h - (h @ others[0]) * others[0]
        return W2 + torch.outer(u, target - h @ W2) / (u @ h)
    return W2 + torch.outer(h, target - h @ W2) / (h @ h)


@wrong("ch06.edit", "You divided by the square of h. For your u the divisor is its product with h.", see="one-fact-changed")
def wrong_divisor(W2, h, target, others):
    u = h.clone()
    if len(others):
        u = h - torch.linalg.lstsq(others.T, h[:, None]).solution[:, 0] @ others
    if len(h) == 2:
        return W2 + torch.outer(u, target - h @ W2) / (u @ h)
    return W2 + torch.outer(u, target - h @ W2) / (h @ h)


@wrong("ch06.edit", "You wrote the target without taking away the answer that was there.", see="one-fact-changed")
def forgets_the_old_answer(W2, h, target, others):
    u = h.clone()
    if len(others):
        u = h - torch.linalg.lstsq(others.T, h[:, None]).solution[:, 0] @ others
    return W2 + torch.outer(u, target) / (u @ h)


@wrong(
    "ch06.edit",
    "You took away the part of h along each of the others, one by one. They are not at right angles to each other, so something stays.",
    see="one-fact-changed",
)
def one_projection_after_another(W2, h, target, others):
    u = h.clone()
    for row in others:
        u = u - (u @ row) / (row @ row) * row
    return W2 + torch.outer(u, target - h @ W2) / (u @ h)


@wrong("ch06.edit", "You kept away from the mean of the others only.", see="one-fact-changed")
def avoids_the_mean(W2, h, target, others):
    u = h.clone()
    if len(others):
        mean = others.mean(dim=0)
        u = h - (h @ mean) / (mean @ mean) * mean
    return W2 + torch.outer(u, target - h @ W2) / (u @ h)


@wrong(
    "ch06.edit",
    "Right answers, but not by the smallest change: your u has a part that does nothing for h.",
    see="one-fact-changed",
)
def not_the_smallest(W2, h, target, others):
    rows = torch.cat([h[None], others])
    basis, _ = torch.linalg.qr(rows.T, mode="complete")
    extra = basis[:, len(rows)] if len(rows) < len(h) else torch.zeros_like(h)
    u = h - torch.linalg.lstsq(others.T, h[:, None]).solution[:, 0] @ others if len(others) else h
    return W2 + torch.outer(u + extra, target - h @ W2) / (u @ h)


@wrong("ch06.edit", "You changed W2 itself. Return a new matrix.", see="one-fact-changed")
def in_place_edit(W2, h, target, others):
    u = h.clone()
    if len(others):
        u = h - torch.linalg.lstsq(others.T, h[:, None]).solution[:, 0] @ others
    W2 += torch.outer(u, target - h @ W2) / (u @ h)
    return W2


@wrong(
    "ch06.edit", "You computed W2 anew from the facts that you know. Everything else that it did is gone.", see="one-fact-changed"
)
def starts_from_nothing(W2, h, target, others):
    rows = torch.cat([h[None], others])
    return torch.linalg.pinv(rows) @ torch.cat([target[None], others @ W2])


@wrong("ch06.edit", "You returned the change. Return the new matrix.", see="one-fact-changed")
def returns_the_change(W2, h, target, others):
    rows = torch.cat([h[None], others])
    return torch.linalg.pinv(rows) @ torch.cat([(target - h @ W2)[None], torch.zeros(len(others), len(target), dtype=W2.dtype)])


# ---------------------------------------------------------------- changes of the solutions that make no difference

equivalent("ch06.rowwise", "`for T in range(2, 9):`", "a row that is alone is compared with itself")
equivalent("ch06.rowwise", "`for _ in range(2):`", "most draws show a broken promise: two are enough")
equivalent("ch06.rowwise", "`for _ in range(4):`", "the number of draws is free")
equivalent("ch06.rowwise", "`for _ in range(6):`", "the number of draws is free")
equivalent("ch06.rowwise", "`if (f(x) - alone).abs().max() >= 0.0001:`", "no difference is as large as that to the last digit")
equivalent("ch06.rowwise", "`if (f(x) - alone).abs().max() > 0.0002:`", "any bound between rounding and a broken promise will do")
equivalent("ch06.curvature", "`x = sympy.symbols('x'…)`", "a letter is known by its name")
equivalent("ch06.count", "`gated_width = 2 * 2689 // 3`", "the same whole number")
equivalent("ch06.count", "`gated_width = 2 * 2688 / 3`", "the same number")
equivalent("ch06.edit", "`for _ in range(1):`", "once is enough but for rounding")
equivalent("ch06.edit", "`for _ in range(3):`", "twice is enough, three times are the same")
equivalent("ch06.edit", "`for _ in range(4):`", "twice is enough, four times are the same")
equivalent("ch06.edit", "`u = h`", "u is made anew and never changed in place")
equivalent("ch06.store", "`return (W1, b1, values)`", "the values themselves serve as well as a copy of them")
