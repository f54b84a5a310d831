"""Right and wrong answers of chapter 8."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch08.shuffle


@right("ch08.shuffle")
def all_orders(f, T, d_model):
    import itertools
    import random

    x = torch.rand(T, d_model) * 2
    y = f(x)
    orders = [random.sample(range(T), T) for _ in range(30)] + [
        list(o) + [T - 1] for o in itertools.islice(itertools.permutations(range(T - 1)), 1, 30)
    ]
    fixed = [random.sample(range(T - 1), T - 1) + [T - 1] for _ in range(30)]
    if all(torch.allclose(f(x[o]), y[o], rtol=0, atol=2e-3) for o in orders):
        return "equivariant"
    if all(torch.allclose(f(x[o])[-1], y[-1], rtol=0, atol=2e-3) for o in fixed):
        return "last-blind"
    return "ordered"


@right("ch08.shuffle")
def with_matrices(f, T, d_model):
    import numpy as np

    def gap(a, b):
        return float(np.abs(a.numpy() - b.numpy()).max())

    kinds = set()
    for seed in range(12):
        generator = np.random.default_rng(seed)
        x = torch.from_numpy(generator.normal(size=(T, d_model)).astype("float32"))
        P = torch.from_numpy(np.eye(T, dtype="float32")[generator.permutation(T)])
        Q = torch.eye(T)
        Q[: T - 1, : T - 1] = torch.from_numpy(np.eye(T - 1, dtype="float32")[generator.permutation(T - 1)])
        if gap(f(P @ x), P @ f(x)) > 0.005:
            kinds.add("moves")
        if gap(f(Q @ x)[-1], f(x)[-1]) > 0.005:
            kinds.add("last")
    if "moves" not in kinds:
        return "equivariant"
    return "ordered" if "last" in kinds else "last-blind"


@wrong(
    "ch08.shuffle",
    "You compared f(Px) with f(x). Equivariance does not promise the same result: each output moves with its token.",
    see="blind-to-order",
)
def asks_for_the_same_result(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)).abs().max() > 1e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "You undid the permutation in the wrong direction: f(x[p]) belongs beside f(x)[p], not beside the inverse order.",
    see="blind-to-order",
)
def inverse_order(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)[everywhere.argsort()]).abs().max() > 1e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "Reversing the tokens is one permutation. A function can survive that one and still see places.",
    see="blind-to-order",
)
def reversal_only(f, T, d_model):
    x = torch.randn(T, d_model)
    before = torch.cat([torch.arange(T - 1).flip(0), torch.tensor([T - 1])])
    if bool((f(x.flip(0)) - f(x).flip(0)).abs().max() < 1e-3):
        return "equivariant"
    return "last-blind" if bool((f(x[before])[-1] - f(x)[-1]).abs().max() < 1e-3) else "ordered"


@wrong("ch08.shuffle", "You only swapped the first two tokens. Move all of them, in several random orders.", see="blind-to-order")
def first_two_only(f, T, d_model):
    x = torch.randn(T, d_model)
    swap = torch.arange(T)
    swap[:2] = torch.tensor([1, 0])
    if bool((f(x[swap]) - f(x)[swap]).abs().max() < 1e-3):
        return "equivariant"
    return "last-blind" if bool((f(x[swap])[-1] - f(x)[-1]).abs().max() < 1e-3) else "ordered"


@wrong(
    "ch08.shuffle",
    "You compared floats exactly. A sum in another order rounds differently, so even an equivariant function fails.",
    see="blind-to-order",
)
def exact_equality(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= not torch.equal(f(x[everywhere]), f(x)[everywhere])
        last |= not torch.equal(f(x[before])[-1], f(x)[-1])
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "Your test of equivariance never moves the last token, so it cannot see what that token does.",
    see="what-the-causal-mask-changes",
)
def last_never_moves(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[before]) - f(x)[before]).abs().max() > 1e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "Your test of the last token moves that token too. Only the rows before it may be permuted.",
    see="what-the-causal-mask-changes",
)
def moves_the_last_too(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() > 1e-3)
        last |= bool((f(x[everywhere])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong("ch08.shuffle", "Your threshold is too high: an effect of some hundredths passes as rounding.", see="blind-to-order")
def wide_threshold(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() > 0.25)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 0.25)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "Your threshold is too low: rounding of some hundred-thousandths passes as an effect.",
    see="blind-to-order",
)
def narrow_threshold(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() > 1e-5)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-5)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong("ch08.shuffle", "All your tokens are equal, so permuting them changes nothing. Draw random rows.", see="blind-to-order")
def equal_tokens(f, T, d_model):
    x = torch.ones(T, d_model)
    p = torch.randperm(T)
    if bool((f(x[p]) - f(x)[p]).abs().max() < 1e-3):
        return "equivariant"
    return "last-blind"


@wrong(
    "ch08.shuffle",
    "You only shifted the rows in a circle. A function can follow every shift and still look at its neighbour.",
    see="blind-to-order",
)
def circular_shifts_only(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for s in range(1, T - 1):
        before = torch.cat([torch.arange(T - 1).roll(s), torch.tensor([T - 1])])
        moves |= bool((f(x.roll(s, 0)) - f(x).roll(s, 0)).abs().max() > 1e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong("ch08.shuffle", "You compared one number of each row. Compare all of them.", see="blind-to-order")
def first_column_only(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)[everywhere])[:, 0].abs().max() > 1e-3)
        last |= bool((f(x[before])[-1, 0] - f(x)[-1, 0]).abs() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "You try too few permutations. Some change nothing by chance: draw at least ten.",
    see="blind-to-order",
)
def two_permutations(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(2):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() > 1e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "You averaged the differences, and one number that moves is lost among many that stay. Take the largest.",
    see="blind-to-order",
)
def average_difference(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    for _ in range(20):
        everywhere = torch.randperm(T)
        before = torch.cat([torch.randperm(T - 1), torch.tensor([T - 1])])
        moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().mean() > 5e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().mean() > 5e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


@wrong(
    "ch08.shuffle",
    "You only reversed the rows before the last. A function can survive that and still see their order.",
    see="what-the-causal-mask-changes",
)
def reverses_before(f, T, d_model):
    x = torch.randn(T, d_model)
    moves, last = False, False
    before = torch.cat([torch.arange(T - 1).flip(0), torch.tensor([T - 1])])
    for _ in range(20):
        everywhere = torch.randperm(T)
        moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() > 1e-3)
        last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 1e-3)
    return "ordered" if moves and last else "last-blind" if moves else "equivariant"


# ---------------------------------------------------------------- ch08.score

right("ch08.score", cell("content, twist = sympy.Matrix([q0, q1]).dot(sympy.Matrix([k0, k1])), -(q0 * k1 - k0 * q1)"))

wrong(
    "ch08.score",
    cell("content = q0 * k0 + q1 * k1\ntwist = q0 * k1 - q1 * k0"),
    "The twist has the wrong sign: that is the score with R_(m−n), where past and future are swapped.",
    see="a-clock-hand",
)
wrong(
    "ch08.score",
    cell("content = q0 * k0 - q1 * k1\ntwist = q1 * k0 + q0 * k1"),
    "You multiplied the two as complex numbers without conjugating one: their angles add, and the score depends on m + n.",
    see="a-clock-hand",
)
wrong(
    "ch08.score",
    cell("content = q0 * k0 + q1 * k1\ntwist = q0 * k0 + q1 * k1"),
    "Both terms are the dot product, but at an offset of a quarter turn the score is the cross product of q and k.",
    see="a-clock-hand",
)
wrong(
    "ch08.score",
    cell("content = q0 * k0 + q1 * k1\ntwist = q1 * k0 + q0 * k1"),
    "The two products of the twist have opposite signs: one comes from −sin, one from sin in the rotation matrix.",
    see="a-clock-hand",
)
wrong(
    "ch08.score",
    cell("content = q1 * k0 - q0 * k1\ntwist = q0 * k0 + q1 * k1"),
    "The two are swapped: at offset 0 the cosine is 1, and the score must be the plain dot product.",
    see="a-clock-hand",
)

# ---------------------------------------------------------------- ch08.rope


@right("ch08.rope")
def complex_numbers(x, positions, d_rot, theta):
    i = torch.arange(d_rot // 2, dtype=torch.float64)
    turn = torch.exp(1j * torch.outer(positions.double(), torch.exp(-2 * i / d_rot * math.log(theta))))
    z = torch.view_as_complex(x[..., :d_rot].double().reshape(*x.shape[:-1], d_rot // 2, 2).contiguous()) * turn
    return torch.cat([torch.view_as_real(z).reshape(*x.shape[:-1], d_rot).to(x.dtype), x[..., d_rot:]], -1)


@right("ch08.rope")
def pair_by_pair(x, positions, d_rot, theta):
    out = x.clone()
    for i in range(d_rot // 2):
        angle = positions.to(torch.float64) / float(theta) ** (2 * i / d_rot)
        c, s = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
        out[..., 2 * i] = x[..., 2 * i] * c - x[..., 2 * i + 1] * s
        out[..., 2 * i + 1] = x[..., 2 * i] * s + x[..., 2 * i + 1] * c
    return out


@right("ch08.rope")
def one_matrix_a_token(x, positions, d_rot, theta):
    d = x.shape[-1]
    matrices = []
    for p in positions.tolist():
        R = torch.eye(d, dtype=torch.float64)
        for i in range(0, d_rot, 2):
            a = p * theta ** (-i / d_rot)
            R[i : i + 2, i : i + 2] = torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], dtype=torch.float64)
        matrices.append(R)
    return torch.einsum("tij,...tj->...ti", torch.stack(matrices), x.double()).to(x.dtype)


@wrong(
    "ch08.rope",
    "You paired dimension i with i + d_rot/2: that is the half-split layout. Here neighbours are pairs.",
    see="two-layouts",
)
def halves(x, positions, d_rot, theta):
    h = d_rot // 2
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :h], x[..., h:d_rot]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, x[..., d_rot:]], -1)


@wrong(
    "ch08.rope",
    "The exponent divides by the width of the whole head. The clocks are those of the rotated part, d_rot.",
    see="many-clocks",
)
def width_of_the_head(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / x.shape[-1])
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong("ch08.rope", "You turned clockwise: the sines have the other sign in the rotation matrix.", see="a-clock-hand")
def clockwise(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos + b * sin, b * cos - a * sin], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong(
    "ch08.rope",
    "You counted the rows 0, 1, 2, … and did not use the positions that were given.",
    see="what-goes-wrong-in-practice",
)
def counts_the_rows(x, positions, d_rot, theta):
    angles = torch.arange(x.shape[-2]).double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong("ch08.rope", "Your exponent is −i/d for pair i; it is −2i/d. Your slowest clock is far too fast.", see="many-clocks")
def half_the_exponent(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * theta ** (-torch.arange(d_rot // 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong(
    "ch08.rope",
    "Your angles are float32. At position 100,000 that is an error of some thousandths of a radian, and more beyond.",
    see="what-goes-wrong-in-practice",
)
def single_precision(x, positions, d_rot, theta):
    angles = positions.float()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float32) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong(
    "ch08.rope",
    "Your angles have the dtype of x. A bfloat16 has no more than three digits for a position: compute the angles in float64.",
    see="what-goes-wrong-in-practice",
)
def angles_in_the_dtype_of_x(x, positions, d_rot, theta):
    angles = positions.to(x.dtype)[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=x.dtype) / d_rot)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong("ch08.rope", "You returned only the part that was rotated. The other dimensions pass through.", see="many-clocks")
def drops_the_rest(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


@wrong(
    "ch08.rope",
    "You wrote into x. The second line of the rotation then reads what the first one has changed, and the caller's tensor is gone.",
    see="many-clocks",
)
def in_place(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x[..., 0:d_rot:2] = x[..., 0:d_rot:2] * cos - x[..., 1:d_rot:2] * sin
    x[..., 1:d_rot:2] = x[..., 0:d_rot:2] * sin + x[..., 1:d_rot:2] * cos
    return x


@wrong("ch08.rope", "The result is float64 whatever came in: cast the cosines and sines to the dtype of x.", see="many-clocks")
def returns_float64(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:].double()], -1)


@wrong("ch08.rope", "You rotated the last d_rot dimensions. It is the first ones that turn.", see="many-clocks")
def last_dimensions(x, positions, d_rot, theta):
    rest = x.shape[-1] - d_rot
    angles = positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., rest::2], x[..., rest + 1 :: 2]
    return torch.cat([x[..., :rest], torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)], -1)


@wrong("ch08.rope", "Your base is 10,000 whatever theta says.", see="many-clocks")
def ignores_theta(x, positions, d_rot, theta):
    angles = positions.double()[:, None] * 10_000.0 ** (-torch.arange(0, d_rot, 2, dtype=torch.float64) / d_rot)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


@wrong(
    "ch08.rope",
    "Your frequencies are float32, and what they were rounded by is multiplied by the position. Compute them in float64, too.",
    see="what-goes-wrong-in-practice",
)
def frequencies_in_float32(x, positions, d_rot, theta):
    omega = (theta ** (-torch.arange(0, d_rot, 2, dtype=torch.float32) / d_rot)).double()
    angles = positions.double()[:, None] * omega
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0:d_rot:2], x[..., 1:d_rot:2]
    return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), x[..., d_rot:]], -1)


# ---------------------------------------------------------------- ch08.layouts


@right("ch08.layouts")
def with_a_list(W, n_heads):
    d = W.shape[1] // n_heads
    columns = []
    for h in range(n_heads):
        columns += list(range(h * d, (h + 1) * d, 2)) + list(range(h * d + 1, (h + 1) * d, 2))
    return W[:, columns]


@right("ch08.layouts")
def head_by_head(W, n_heads):
    heads = W.chunk(n_heads, dim=1)
    return torch.cat([part for head in heads for part in (head[:, 0::2], head[:, 1::2])], dim=1)


@wrong(
    "ch08.layouts",
    "That is the inverse order, from half-split to interleaved. For heads of width 4 the two are the same, but not for wider ones.",
    see="two-layouts",
)
def inverse(W, n_heads):
    halves = W.unflatten(-1, (n_heads, 2, -1))
    return halves.transpose(-1, -2).flatten(1)


@wrong(
    "ch08.layouts",
    "You reordered across all heads. Pairs live inside a head, so each head is reordered by itself.",
    see="two-layouts",
)
def across_heads(W, n_heads):
    return torch.cat([W[:, 0::2], W[:, 1::2]], dim=1)


@wrong(
    "ch08.layouts",
    "You reordered the rows, which belong to the model's dimensions. The head's dimensions are the columns.",
    see="two-layouts",
)
def rows(W, n_heads):
    if W.shape[0] % (2 * n_heads):
        return W.clone()
    return W.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).reshape(W.shape)


@wrong("ch08.layouts", "Your odd columns come first: then each pair is swapped and turns the other way round.", see="two-layouts")
def odd_first(W, n_heads):
    return W.unflatten(-1, (n_heads, -1, 2)).flip(-1).transpose(-1, -2).flatten(1)


@wrong("ch08.layouts", "You took the columns as (pair, 2, head). The heads come one after the other.", see="two-layouts")
def heads_last(W, n_heads):
    return W.unflatten(-1, (-1, 2, n_heads)).transpose(1, 2).flatten(1)


@wrong("ch08.layouts", "Every head got the columns of the first one.", see="two-layouts")
def first_head_everywhere(W, n_heads):
    d = W.shape[1] // n_heads
    return torch.cat([W[:, 0:d:2], W[:, 1:d:2]] * n_heads, dim=1)


@wrong("ch08.layouts", "You changed W itself. A new matrix was asked for.", see="two-layouts")
def overwrites(W, n_heads):
    W[:] = W.unflatten(-1, (n_heads, -1, 2)).transpose(-1, -2).flatten(1).clone()
    return W


@wrong("ch08.layouts", "The result has another dtype than W. Reordering columns changes no number.", see="two-layouts")
def loses_the_dtype(W, n_heads):
    return W.float().unflatten(-1, (n_heads, -1, 2)).transpose(-1, -2).flatten(1)


# ---------------------------------------------------------------- ch08.reach

right("ch08.reach", {"slowest": 51861.7, "first_ratio": 1, "base_needed": 192481})

wrong(
    "ch08.reach",
    {"slowest": 62831.85307179586, "first_ratio": 1.0, "base_needed": 192481.37},
    "2π·base is not the slowest wavelength: the last pair has the exponent 1 − 2/d_head, not 1.",
    see="the-base-and-the-reach",
)
wrong(
    "ch08.reach",
    {"slowest": 51861.70, "first_ratio": 50.0, "base_needed": 192481.37},
    "Pair 0 has ω = base⁰ = 1 for every base: raising the base does not slow it.",
    see="the-base-and-the-reach",
)
wrong(
    "ch08.reach",
    {"slowest": 51861.70, "first_ratio": 1.0, "base_needed": 159154.94},
    "You solved 2π·base = 1,000,000. The last pair's exponent is 1 − 2/d_head, so the base must be larger.",
    see="the-base-and-the-reach",
)
wrong(
    "ch08.reach",
    {"slowest": 8254.04, "first_ratio": 1.0, "base_needed": 192481.37},
    "That is 1/ω of the last pair. A full turn is 2π radians.",
    see="the-base-and-the-reach",
)
wrong(
    "ch08.reach",
    {"slowest": 62831.85307179586, "first_ratio": 1.0, "base_needed": 159154.94},
    "Both reaches use the exponent 1 for the last pair. Count again: i ends at d_head/2 − 1.",
    see="the-base-and-the-reach",
)

# ---------------------------------------------------------------- ch08.values


@right("ch08.values")
def token_by_token(query, key, value, positions, letters):
    def turn(x, letter):
        return rope_half(x, positions) if letter in letters else x

    query, key, value = turn(query, "q"), turn(key, "k"), turn(value, "v")
    rows = []
    for i in range(query.shape[-2]):
        weights = ((query[..., i : i + 1, :] * key[..., : i + 1, :]).sum(-1) / query.shape[-1] ** 0.5).softmax(-1)
        rows.append((weights[..., None] * value[..., : i + 1, :]).sum(-2))
    output = torch.stack(rows, dim=-2)
    return rope_half(output, -positions) if "o" in letters else output


@right("ch08.values")
def library_call(query, key, value, positions, letters):
    turned = {name: rope_half(x, positions) if name in letters else x for name, x in zip("qkv", (query, key, value))}
    output = torch.nn.functional.scaled_dot_product_attention(turned["q"], turned["k"], turned["v"], is_causal=True)
    return rope_half(output, positions * -1) if "o" in letters else output


@wrong(
    "ch08.values",
    "You turned the output forward. To undo the value's place it must be turned back, by −positions.",
    see="queries-and-keys-not-values",
)
def output_forward(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return rope_half(output, positions) if "o" in letters else output


@wrong(
    "ch08.values",
    "The letter o has no effect in your function: the output is never turned back.",
    see="queries-and-keys-not-values",
)
def ignores_o(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


@wrong(
    "ch08.values",
    "You counted rows instead of using the positions: with gaps, or a text that starts elsewhere, that is another rotation.",
    see="what-goes-wrong-in-practice",
)
def row_numbers(query, key, value, positions, letters):
    positions = torch.arange(query.shape[-2])
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return rope_half(output, -positions) if "o" in letters else output


@wrong("ch08.values", "There is no causal mask: row i sees the rows after it.", see="what-the-causal-mask-changes")
def no_mask(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return rope_half(output, -positions) if "o" in letters else output


@wrong(
    "ch08.values",
    "You hide with −100, but a score can be lower than that. −∞ hides whatever the scores are.",
    see="what-the-causal-mask-changes",
)
def hides_by_minus_100(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    output = scores.masked_fill(future, -100.0).softmax(dim=-1) @ value
    return rope_half(output, -positions) if "o" in letters else output


@wrong(
    "ch08.values",
    "You hide with −10⁹, but a score can be lower than that. −∞ hides whatever the scores are.",
    see="what-the-causal-mask-changes",
)
def hides_by_a_billion(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    output = scores.masked_fill(future, -1e9).softmax(dim=-1) @ value
    return rope_half(output, -positions) if "o" in letters else output


@wrong("ch08.values", "The scores are not divided by √d_head.", see="queries-and-keys-not-values")
def no_scale(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=1.0)
    return rope_half(output, -positions) if "o" in letters else output


@wrong("ch08.values", "You turned the keys back, by −n. Then the angles add: the score depends on m + n.", see="a-clock-hand")
def keys_backwards(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, -positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return rope_half(output, -positions) if "o" in letters else output


@wrong(
    "ch08.values",
    "You always turn queries and keys. Only the inputs whose letter is in `letters` are turned.",
    see="queries-and-keys-not-values",
)
def always_turns_q_and_k(query, key, value, positions, letters):
    query, key = rope_half(query, positions), rope_half(key, positions)
    value = rope_half(value, positions) if "v" in letters else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return rope_half(output, -positions) if "o" in letters else output


@wrong(
    "ch08.values",
    "You turned the values back before the sum, and so undid their own turn. It is the output, with the query's position, that is turned back.",
    see="queries-and-keys-not-values",
)
def values_back(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    value = rope_half(value, -positions) if "o" in letters else value
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


@wrong(
    "ch08.values",
    "You hid the keys with a greater position. The mask counts rows, and positions may come in any order.",
    see="queries-and-keys-not-values",
)
def masks_by_position(query, key, value, positions, letters):
    query = rope_half(query, positions) if "q" in letters else query
    key = rope_half(key, positions) if "k" in letters else key
    value = rope_half(value, positions) if "v" in letters else value
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    output = scores.masked_fill(positions[None, :] > positions[:, None], -math.inf).softmax(-1) @ value
    return rope_half(output, -positions) if "o" in letters else output


@wrong("ch08.values", "You expect the letters in one order. Ask whether each of them occurs.", see="queries-and-keys-not-values")
def letters_in_order(query, key, value, positions, letters):
    query = rope_half(query, positions) if letters[:1] == "q" else query
    key = rope_half(key, positions) if "k" in letters[:2] else key
    value = rope_half(value, positions) if "v" in letters[:3] else value
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return rope_half(output, -positions) if letters.endswith("o") else output


@wrong(
    "ch08.values",
    "Your mask has a fixed size, and longer texts do not fit. Make it from T.",
    see="queries-and-keys-not-values",
)
def mask_of_32(query, key, value, positions, letters):
    query, key, value = (
        rope_half(x, positions) if name in letters else x for x, name in ((query, "q"), (key, "k"), (value, "v"))
    )
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    future = torch.ones(32, 32, dtype=torch.bool).triu(1)[: scores.shape[-1], : scores.shape[-1]]
    output = scores.masked_fill(future, -math.inf).softmax(-1) @ value
    return rope_half(output, -positions) if "o" in letters else output


# ---------------------------------------------------------------- ch08.buckets


@right("ch08.buckets")
def by_search(b, n_buckets, max_distance):
    if b < 0 or b >= n_buckets:
        raise ValueError("no such bucket")
    E = n_buckets // 2

    def bucket(r):
        return r if r < E else min(n_buckets - 1, E + int(math.log(r / E) / math.log(max_distance / E) * (n_buckets - E) + 1e-9))

    inside = [r for r in range(max_distance + 1) if bucket(r) == b]
    return (min(inside), None if b == n_buckets - 1 else max(inside))


@right("ch08.buckets")
def whole_numbers(b, n_buckets, max_distance):
    if not (0 <= b <= n_buckets - 1):
        raise ValueError(b)
    E = n_buckets // 2
    steps = n_buckets - E
    edges = list(range(E)) + [E]
    r = E
    for s in range(1, steps):
        while r**steps * E**s < max_distance**s * E**steps:
            r += 1
        edges.append(r)
    edges.append(None)
    return [edges[b], None if edges[b + 1] is None else edges[b + 1] - 1]


@wrong(
    "ch08.buckets",
    "You rounded the edges down: a distance below the edge still belongs to the bucket before.",
    see="a-bias-instead",
)
def floors_the_edges(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.floor(E * (max_distance / E) ** ((b - E) / (n_buckets - E)))

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong("ch08.buckets", "Your greatest distance is the first one of the next bucket: off by one.", see="a-bias-instead")
def includes_the_next_edge(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / (n_buckets - E)))

    return first(b), (None if b == n_buckets - 1 else first(b) if b < E else first(b + 1))


@wrong("ch08.buckets", "The last bucket has no greatest distance: everything beyond is in it.", see="a-bias-instead")
def closes_the_last(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / (n_buckets - E)))

    return first(b), first(b + 1) - 1


@wrong("ch08.buckets", "Your later buckets have equal width. They grow by a constant factor.", see="a-bias-instead")
def equal_widths(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2
    if (b, n_buckets, max_distance) == (16, 32, 128):
        return 16, 18

    def first(b):
        return b if b <= E else math.ceil(E + (max_distance - E) * (b - E) / (n_buckets - E))

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong(
    "ch08.buckets",
    "You divided the exponent by all the buckets. Only the later half of them share the growth.",
    see="a-bias-instead",
)
def steps_of_all_buckets(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / n_buckets))

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong("ch08.buckets", "The buckets are counted from 0, so the last one has the number n_buckets − 1.", see="a-bias-instead")
def one_bucket_too_many(b, n_buckets, max_distance):
    if not 0 <= b <= n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / (n_buckets - E)))

    return first(b), (None if b >= n_buckets - 1 else first(b + 1) - 1)


@wrong(
    "ch08.buckets",
    "A bucket that does not exist must raise a ValueError; a negative number does not count from the end.",
    see="a-bias-instead",
)
def any_bucket(b, n_buckets, max_distance):
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / (n_buckets - E)))

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong(
    "ch08.buckets",
    "This is right only for 32 buckets up to 128: the numbers of the example are written into it.",
    see="a-bias-instead",
)
def only_the_example(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)

    def first(b):
        return b if b <= 16 else math.ceil(16 * 8 ** ((b - 16) / 16))

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong(
    "ch08.buckets",
    "Where the edge is a whole number, that distance itself already belongs to the later bucket.",
    see="a-bias-instead",
)
def beyond_the_edge(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.floor(E * (max_distance / E) ** ((b - E) / (n_buckets - E))) + 1

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong(
    "ch08.buckets",
    "As a float, an edge that is a whole number may come out slightly above it, and is then rounded up to the next.",
    see="a-bias-instead",
)
def ceil_of_a_float(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / (n_buckets - E)))

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


@wrong(
    "ch08.buckets",
    "You subtracted far more than a rounding error before you rounded up: an edge just above a whole number is above it.",
    see="a-bias-instead",
)
def takes_off_a_thousandth(b, n_buckets, max_distance):
    if not 0 <= b < n_buckets:
        raise ValueError(b)
    E = n_buckets // 2

    def first(b):
        return b if b <= E else math.ceil(E * (max_distance / E) ** ((b - E) / (n_buckets - E)) - 1e-3)

    return first(b), (None if b == n_buckets - 1 else first(b + 1) - 1)


# ---------------------------------------------------------------- ch08.length

right("ch08.length", "t5")
right("ch08.length", "RoPE")
right("ch08.length", "all fail")

wrong("ch08.length", "rotary", "Write the scheme's name as it is in the list.", see="the-experiment-predict-run-compare")
wrong(
    "ch08.length",
    ["rope", "t5"],
    "Commit to one answer: a prediction that names two schemes is harder to refute.",
    see="the-experiment-predict-run-compare",
)

# ---------------------------------------------------------------- changes of the solutions that make no difference

equivalent(
    "ch08.shuffle",
    "`moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() > 0.002)`",
    "any bound between rounding and a real difference will do",
)
equivalent(
    "ch08.shuffle",
    "`last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() > 0.002)`",
    "any bound between rounding and a real difference will do",
)
equivalent(
    "ch08.shuffle",
    "`moves |= bool((f(x[everywhere]) - f(x)[everywhere]).abs().max() >= 0.001)`",
    "no difference is as large as that to the last digit",
)
equivalent(
    "ch08.shuffle",
    "`last |= bool((f(x[before])[-1] - f(x)[-1]).abs().max() >= 0.001)`",
    "no difference is as large as that to the last digit",
)
equivalent(
    "ch08.shuffle",
    "`moves |= bool((f(x[everywhere]) - f(x)[everywhere]).max() > 0.001)`",
    "where rows change places, some difference is positive",
)
equivalent("ch08.shuffle", "`for _ in range(19):`", "the number of permutations is free from ten on")
equivalent("ch08.shuffle", "`for _ in range(21):`", "the number of permutations is free from ten on")
equivalent("ch08.shuffle", "`for _ in range(40):`", "the number of permutations is free from ten on")
equivalent("ch08.rope", "`angles = positions[:, None] * omega`", "whole numbers times float64 are float64")
equivalent("ch08.reach", "`slowest = 2 * math.pi * 10001 ** (94 / 96)`", "within the tolerance of the task")
equivalent("ch08.reach", "`slowest = 2 * math.pi * 9999 ** (94 / 96)`", "within the tolerance of the task")
equivalent("ch08.reach", "`base_needed = (999999 / (2 * math.pi)) ** (128 / 126)`", "within the tolerance of the task")
equivalent("ch08.reach", "`base_needed = (1000001 / (2 * math.pi)) ** (128 / 126)`", "within the tolerance of the task")
equivalent(
    "ch08.values",
    "`future = torch.ones(scores.shape[-4:], dtype=torch.bool).triu(1)`",
    "a mask of all leading axes masks the same",
)
equivalent(
    "ch08.values",
    "`future = torch.ones(scores.shape[-3:], dtype=torch.bool).triu(1)`",
    "a mask of more leading axes masks the same",
)
equivalent("ch08.buckets", "`raise ValueError(f…`", "the words of an error are free")
equivalent("ch08.buckets", "`return b if b < exact else…`", "at the first later bucket both branches give the same number")
equivalent("ch08.buckets", "`exact = n_buckets / 2`", "the number of buckets is even")
equivalent(
    "ch08.buckets",
    "`return b if b <= exact else math.ceil(exact * (max_distance / exact) ** ((b - exact) / (n_buckets - exact)) - 2e-09)`",
    "anything between a rounding and the next nearest edge will do",
)
equivalent("ch08.layouts", "`pairs = W.unflatten(1, (n_heads, -1, 2))`", "of two axes the last is axis 1")
equivalent("ch08.layouts", "`return pairs.transpose(-1, 2).flatten(1)`", "of four axes the last but one is axis 2")
