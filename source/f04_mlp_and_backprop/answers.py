"""Other right answers and named wrong answers of chapter f04."""

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f04.count

right("f04.count", 118_282.0)
right("f04.count", cell("parameters = sum((i + 1) * o for i, o in [(784, 128), (128, 128), (128, 10)])"))
wrong(
    "f04.count",
    784 * 128 + 128 * 128 + 128 * 10,
    "Those are the weights. Every unit and every output has a bias as well.",
    see="counting",
)
wrong(
    "f04.count", 785 * 128 + 129 * 10, "One layer is missing: the one from the first hidden layer to the second.", see="counting"
)
wrong(
    "f04.count",
    29 * 128 + 129 * 128 + 129 * 10,
    "An image is 28 rows of 28 numbers: the first layer has 784 inputs.",
    see="counting",
)
wrong(
    "f04.count",
    785 * 129 + 129 * 129 + 129 * 10,
    "A bias needs no bias: the layer has d_l columns, not one more.",
    see="counting",
)

# ---------------------------------------------------------------- f04.xor


def weights(W1, b1, W2, b2) -> cell:
    return cell(f"def xor_weights():\n    return {W1}, {b1}, {W2}, {b2}")


right("f04.xor", weights([[1.0, -1.0], [-1.0, 1.0]], [0.0, 0.0], [[1.0], [1.0]], [0.0]))
right("f04.xor", weights([[-1, 1], [-1, 1]], [1, -1], [[-1], [-1]], [1]))
wrong(
    "f04.xor",
    weights([[1, 1], [1, 1]], [0, -1], [[1], [-1]], [0]),
    "Your tent does not come down: beyond the top the second unit must take away twice as much as the first one adds.",
    see="one-hidden-layer",
)
wrong(
    "f04.xor",
    weights([[1, 1], [1, 1]], [0, 0], [[1], [-2]], [0]),
    "Both units bend at the same place, so together they are one unit. Shift one of them by its bias.",
    see="one-hidden-layer",
)
wrong(
    "f04.xor",
    weights([[1, 1], [1, 1]], [-1, -1], [[1], [-2]], [0]),
    "Both units sleep until the sum exceeds 1, so the rows with one switch on stay dark.",
    see="one-hidden-layer",
)
wrong(
    "f04.xor",
    weights([[0, 0], [0, 0]], [0, 0], [[0], [0]], [0.5]),
    "That is the linear model's answer, one half for each row. The hidden units must look at the inputs.",
    see="a-puzzle-first",
)
wrong(
    "f04.xor",
    weights([[1, 1], [1, 1]], [0, -1], [[-1], [2]], [1]),
    "That is the opposite: your lamp is on when both switches agree.",
    see="a-puzzle-first",
)
wrong(
    "f04.xor",
    weights([[1, 0], [0, 1]], [0, 0], [[1], [1]], [0]),
    "That adds the two inputs, so both switches together give 2. Some unit has to see both inputs at once.",
    see="a-puzzle-first",
)

wrong(
    "f04.xor",
    weights([[1, 1], [1, 1]], [0, -0.5], [[3], [-4]], [0]),
    "The four rows are right, but both bends lie before the sum reaches 1, so between the rows your tent rises above 1.",
    see="one-hidden-layer",
)

# ---------------------------------------------------------------- f04.delta

GIVEN = 'x, y, w1, w2 = sympy.symbols("x y w1 w2", real=True)\na = sympy.tanh(w1 * x)\np = 1 / (1 + sympy.exp(-w2 * a))\n'

right("f04.delta", cell(GIVEN + "slope_w1 = (p - y) * w2 * x / sympy.cosh(w1 * x) ** 2"))
right("f04.delta", cell(GIVEN + "slope_w1 = sympy.diff(-y * sympy.log(p) - (1 - y) * sympy.log(1 - p), w1)"))
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = (p - y) * p * (1 - p) * w2 * (1 - a**2) * x"),
    "You kept the slope of the sigmoid as a factor. For the cross-entropy it cancels; p − y is all that is left.",
    see="backwards-by-hand",
)
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = 2 * (p - y) * w2 * (1 - a**2) * x"),
    "The factor 2 belongs to the squared error, not to the cross-entropy.",
    see="the-loss-and-its-first-slope",
)
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = (p - y) * w2 * x"),
    "The way back through the bend is missing: the slope of tanh is a factor.",
    see="backwards-by-hand",
)
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = (p - y) * (1 - a**2) * x"),
    "The way from the output back to the hidden unit goes through w2, which is a factor.",
    see="backwards-by-hand",
)
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = (y - p) * w2 * (1 - a**2) * x"),
    "The sign is wrong: the slope is the prediction minus the truth.",
    see="backwards-by-hand",
)
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = (p - y) * a"),
    "That is the slope in w2, whose input is a. The question asks for the slope in w1.",
    see="backwards-by-hand",
)
wrong(
    "f04.delta",
    cell(GIVEN + "slope_w1 = (p - y) * w2 * (1 - a**2) * w1"),
    "The slope of w1·x in w1 is x; you took the slope in x.",
    see="backwards-by-hand",
)

for same in (", real=False", ""):
    equivalent("f04.delta", f"`x, y, w1, w2 = sympy.symbols('x y w1 w2'{same})`", "letters are known by their names")

# ---------------------------------------------------------------- f04.classifier


@right("f04.classifier")
def by_einsum(X, classes, W1, b1, W2, b2):
    Z1 = torch.einsum("ni,ih->nh", X, W1) + b1
    logits = torch.relu(Z1) @ W2 + b2
    delta2 = (logits - torch.logsumexp(logits, dim=-1, keepdim=True)).exp()
    delta2[torch.arange(len(X)), classes] -= 1
    delta2 = delta2 / X.shape[0]
    delta1 = torch.where(Z1 > 0, delta2 @ W2.T, torch.zeros_like(Z1))
    return torch.einsum("ni,nh->ih", X, delta1), delta1.sum(0), torch.relu(Z1).T @ delta2, delta2.sum(0)


@right("f04.classifier")
def example_by_example(X, classes, W1, b1, W2, b2):
    total = [torch.zeros_like(p) for p in (W1, b1, W2, b2)]
    for x, c in zip(X, classes.tolist(), strict=True):
        z = x @ W1 + b1
        h = z.clamp(min=0)
        d2 = torch.softmax(h @ W2 + b2, dim=-1)
        d2[c] = d2[c] - 1
        d1 = (W2 @ d2) * (z > 0)
        for t, g in zip(total, (torch.outer(x, d1), d1, torch.outer(h, d2), d2), strict=True):
            t += g / len(X)
    return tuple(total)


@wrong(
    "f04.classifier",
    "The factor 2 belongs to the squared error. The cross-entropy's first slope is p − y, divided by N.",
    see="the-loss-and-its-first-slope",
)
def two_over_n(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    A1 = Z1.clamp(min=0)
    delta2 = 2 * (torch.softmax(A1 @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier",
    "The loss is a mean: the first slope has to be divided by the number of examples.",
    see="the-loss-and-its-first-slope",
)
def not_divided(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    A1 = Z1.clamp(min=0)
    delta2 = torch.softmax(A1 @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier",
    "The error signal of the hidden layer is not sent through the bend: where ReLU is flat, nothing comes back.",
    see="backwards-layer-by-layer",
)
def no_bend(X, classes, W1, b1, W2, b2):
    A1 = (X @ W1 + b1).clamp(min=0)
    delta2 = (torch.softmax(A1 @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong("f04.classifier", "You used the slope of tanh, 1 − a². The hidden units are ReLUs.", see="one-hidden-layer")
def slope_of_tanh(X, classes, W1, b1, W2, b2):
    A1 = (X @ W1 + b1).clamp(min=0)
    delta2 = (torch.softmax(A1 @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (1 - A1**2)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong("f04.classifier", "Your hidden units are tanh, as in the text. This network bends by ReLU.", see="one-hidden-layer")
def hidden_tanh(X, classes, W1, b1, W2, b2):
    A1 = torch.tanh(X @ W1 + b1)
    delta2 = (torch.softmax(A1 @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (1 - A1**2)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier",
    "The mean is over the N examples. You divided by the number of logits as well.",
    see="the-loss-and-its-first-slope",
)
def mean_over_logits(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    A1 = Z1.clamp(min=0)
    probs = torch.softmax(A1 @ W2 + b2, dim=-1)
    delta2 = (probs - torch.eye(len(b2), dtype=X.dtype)[classes]) / probs.numel()
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier",
    "You took the softmax over the examples. Each row of logits is one example's.",
    see="backwards-layer-by-layer",
)
def softmax_over_rows(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    A1 = Z1.clamp(min=0)
    delta2 = (torch.softmax(A1 @ W2 + b2, dim=0) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier",
    "The mean was taken twice for the biases: the error signals are divided by N already, so they are summed.",
    see="backwards-layer-by-layer",
)
def bias_mean(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    A1 = Z1.clamp(min=0)
    delta2 = (torch.softmax(A1 @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.mean(dim=0), A1.T @ delta2, delta2.mean(dim=0)


@wrong(
    "f04.classifier",
    "The exponentials of large logits overflow. Take the largest logit out first, or use torch.softmax.",
    see="backwards-layer-by-layer",
)
def overflows(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    A1 = Z1.clamp(min=0)
    powers = (A1 @ W2 + b2).exp()
    delta2 = (powers / powers.sum(dim=-1, keepdim=True) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.sum(dim=0), A1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier",
    "The gradient of W2 needs what went into that layer, the hidden units after their bend, not before it.",
    see="backwards-layer-by-layer",
)
def input_before_the_bend(X, classes, W1, b1, W2, b2):
    Z1 = X @ W1 + b1
    delta2 = (torch.softmax(Z1.clamp(min=0) @ W2 + b2, dim=-1) - torch.eye(len(b2), dtype=X.dtype)[classes]) / len(X)
    delta1 = delta2 @ W2.T * (Z1 > 0)
    return X.T @ delta1, delta1.sum(dim=0), Z1.T @ delta2, delta2.sum(dim=0)


@wrong(
    "f04.classifier", "You let torch differentiate. Write the backward pass as matrix products.", see="backwards-layer-by-layer"
)
def by_autograd(X, classes, W1, b1, W2, b2):
    with torch.enable_grad():
        leaves = [p.clone().requires_grad_(True) for p in (W1, b1, W2, b2)]
        logits = torch.relu(X @ leaves[0] + leaves[1]) @ leaves[2] + leaves[3]
        torch.nn.functional.cross_entropy(logits, classes).backward()
    return tuple(p.grad for p in leaves)


equivalent("f04.classifier", "`delta1 = delta2 @ W2.T * (Z1 >= 0)`", "no pre-activation is 0, as the task says")
equivalent("f04.classifier", "`probs = torch.softmax(A1 @ W2 + b2, dim=1)`", "dimension 1 is the last")
equivalent("f04.classifier", "`delta2 = (probs - torch.eye(len(b2))[classes]) / len(X)`", "0 and 1 are exact in float32")

# ---------------------------------------------------------------- f04.suspicion

SOME = """
def is_right(backward):
    torch.manual_seed(1)
    for N, d_in, d_hidden, d_out in {sizes}:
        given = [torch.randn(*s, dtype=torch.float64) for s in [(N, d_in), (N, d_out), (d_in, d_hidden), (d_hidden,), (d_hidden, d_out), (d_out,)]]
        leaves = [t.clone().requires_grad_(i > 1) for i, t in enumerate(given)]
        X, Y, W1, b1, W2, b2 = leaves
        (((torch.tanh(X @ W1 + b1) @ W2 + b2 - Y) ** 2).sum() / N).backward()
        {judge}
    return True
"""
JUDGE = """try:
            claimed = backward(*given)
            if {wrong_if}:
                return False
        except Exception:
            return False"""
SHAPES = "len(claimed) != 4 or any(c.shape != l.shape for c, l in zip(claimed, leaves[2:]))"
VALUES = "any(not torch.allclose(c, l.grad, rtol=1e-6, atol=1e-9) for c, l in zip(claimed, leaves[2:]))"
ALL = "[(4, 3, 5, 2), (3, 3, 3, 3), (1, 2, 3, 1)]"


def tester(wrong_if: str, sizes: str = ALL) -> cell:
    return cell(SOME.format(sizes=sizes, judge=JUDGE.format(wrong_if=wrong_if)))


right("f04.suspicion", tester(f"{SHAPES} or {VALUES}"))
right("f04.suspicion", tester(f"{SHAPES} or {VALUES}", sizes="[(5, 4, 4, 4), (2, 3, 4, 5)]"))


@right("f04.suspicion")
def by_differences(backward):
    for N, d_in, d_hidden, d_out in [(3, 2, 4, 3), (2, 3, 3, 3)]:
        shapes = [(N, d_in), (N, d_out), (d_in, d_hidden), (d_hidden,), (d_hidden, d_out), (d_out,)]
        given = [torch.randn(*s, dtype=torch.float64) for s in shapes]

        def loss(X, Y, W1, b1, W2, b2):
            return float(((torch.tanh(X @ W1 + b1) @ W2 + b2 - Y) ** 2).sum() / len(X))

        try:
            claimed = list(backward(*given))
        except Exception:
            return False
        if len(claimed) != 4:
            return False
        for k, gradient in enumerate(claimed, start=2):
            if tuple(gradient.shape) != tuple(given[k].shape):
                return False
            for i in range(given[k].numel()):
                both = []
                for h in (1e-5, -1e-5):
                    moved = [t.clone() for t in given]
                    moved[k].view(-1)[i] += h
                    both.append(loss(*moved))
                if abs((both[0] - both[1]) / 2e-5 - float(gradient.reshape(-1)[i])) > 1e-6:
                    return False
    return True


wrong(
    "f04.suspicion",
    cell("def is_right(backward):\n    return True"),
    "It accepts everything: a test that cannot fail is no test.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or {VALUES}", sizes="[(1, 3, 5, 2)]"),
    "With one example a sum is a mean. Faults in the factor 1/N need more examples than one.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or {VALUES}", sizes="[(4, 3, 5, 2)]"),
    "Some faults have the right shape only where widths are equal, and show only there. Test a square network too.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or {VALUES}", sizes="[(3, 3, 3, 3)]"),
    "Where N and all widths are equal, a pass that divides by a width in place of N looks right. Test unequal sizes too.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    cell(
        SOME.format(sizes=ALL, judge=JUDGE.format(wrong_if=f"{SHAPES} or {VALUES}")).replace(
            "        leaves =",
            "        given[3], given[5] = torch.zeros_like(given[3]), torch.zeros_like(given[5])\n        leaves =",
        )
    ),
    "You tested with biases that are zero. A pass that forgets a bias looks right there: draw them at random.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or any(abs(c.flatten()[0] - l.grad.flatten()[0]) > 1e-9 for c, l in zip(claimed, leaves[2:]))"),
    "You compared one entry of each gradient. A single unit can be wrong while the others are right: compare all entries.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or any(not torch.allclose(c[:1], l.grad[:1], rtol=1e-6, atol=1e-9) for c, l in zip(claimed, leaves[2:]))"),
    "You compared the first row of each gradient. The others can be wrong while it is right: compare all rows.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester("len(claimed) != 4 or any(not torch.allclose(c, l.grad, rtol=1e-6, atol=1e-9) for c, l in zip(claimed, leaves[2:]))"),
    "torch.allclose stretches shapes to fit: a (1, d) gradient passes for a bias of shape (d,). Compare the shapes too.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or any(not torch.allclose(c, l.grad, rtol=1e-6, atol=1e-9) for c, l in zip(claimed[2:], leaves[4:]))"),
    "You compared the output layer only. Most faults sit in the way back to the first layer.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(
        f"{SHAPES} or any(torch.cosine_similarity(c.flatten(), l.grad.flatten(), dim=0) < 1 - 1e-9 for c, l in zip(claimed, leaves[2:]))"
    ),
    "You compared directions. A wrong factor leaves the direction of a gradient as it is.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or any(abs(c.sum() - l.grad.sum()) > 1e-9 for c, l in zip(claimed, leaves[2:]))"),
    "You compared the sums of the entries. Entries in the wrong places have the same sum: compare each.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    tester(f"{SHAPES} or any(not torch.allclose(c, l.grad, rtol=0.02, atol=1e-9) for c, l in zip(claimed, leaves[2:]))"),
    "Your tolerance lets two percent pass; in float64 a right gradient agrees to many digits.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.suspicion",
    cell(
        SOME.format(
            sizes=ALL,
            judge=JUDGE.format(wrong_if=f"{SHAPES} or {VALUES}")
            .replace("return False", "return True", 2)
            .replace("return True", "return False", 1),
        )
    ),
    "A backward pass that raises an error is not right: return False then.",
    see="backwards-layer-by-layer",
)

for place, others in enumerate(((3, 5, 8), (2, 4, 6), (4, 6, 10), (1, 3, 4))):
    for other in others:
        first = [*(4, 3, 5, 2)[:place], other, *(4, 3, 5, 2)[place + 1 :]]
        equivalent(
            "f04.suspicion",
            f"`for N, d_in, d_hidden, d_out in [{tuple(first)}, (3, 3, 3, 3), (1, 2, 3, 1)]:`",
            "N is above 1 and both layers change the width, as before",
        )
for N in (2, 4, 6):
    equivalent(
        "f04.suspicion",
        f"`for N, d_in, d_hidden, d_out in [(4, 3, 5, 2), ({N}, 3, 3, 3), (1, 2, 3, 1)]:`",
        "the widths are equal, as before; N is free",
    )
equivalent(
    "f04.suspicion",
    "`for N, d_in, d_hidden, d_out in [(4, 3, 5, 2), (3, 3, 3, 3), (…, …, …, …)]:`",
    "a third case is free: the first two are those of the hint",
)
equivalent("f04.suspicion", "`if False:`", "zip raises for three gradients, and what raises is wrong")
for same in (", strict=False", ""):
    equivalent("f04.suspicion", f"`for mine, leaf in zip(claimed, leaves[2:]{same}):`", "the lengths have been compared")
for same in ("i > 0", "i >= 1", "i > -1"):
    equivalent(
        "f04.suspicion",
        f"`leaves = [t.clone().requires_grad_({same}) for i, t in enumerate(given)]`",
        "further gradients are not looked at",
    )
equivalent(
    "f04.suspicion", "`leaves = [t.requires_grad_(i > 1) for i, t in enumerate(given)]`", "a backward pass may be given leaves"
)
for same in ("rtol=2e-06, atol=1e-09", "rtol=1e-06, atol=2e-09", "rtol=1e-06", "atol=1e-09"):
    equivalent(
        "f04.suspicion",
        f"`if mine.shape != leaf.shape or not torch.allclose(mine, leaf.grad, {same}):`",
        "faults are a thousandth or more, rounding far less than either",
    )

# ---------------------------------------------------------------- f04.matrix

CLASS = """
class Matrix:
    def __init__(self, data, parents=()):
        self.data, self.parents, self.grad = data, parents, torch.zeros_like(data)

    def __matmul__(self, other):
        return Matrix(self.data @ other.data, ((self, lambda G: {left}), (other, lambda G: {right})))

    def __add__(self, other):
        bias = other.data.dim() < self.data.dim()
        return Matrix(self.data + other.data, ((self, lambda G: G), (other, lambda G: {bias})))

    def __sub__(self, other):
        return Matrix(self.data - other.data, ((self, lambda G: G), (other, lambda G: {minus})))

    def tanh(self):
        t = self.data.tanh()
        return Matrix(t, ((self, lambda G: {tanh}),))

    def mean_square(self):
        N = {count}
        return Matrix((self.data**2).sum() / N, ((self, lambda G: {square}),))

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for parent, _ in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        {clear}
        self.grad = torch.ones_like(self.data)
        for node in reversed(order):
            for parent, pull in node.parents:
                parent.grad = {gather}
"""
PARTS = {
    "left": "G @ other.data.T",
    "right": "self.data.T @ G",
    "bias": "G.sum(dim=0) if bias else G",
    "minus": "-G",
    "tanh": "G * (1 - t**2)",
    "count": "len(self.data)",
    "square": "G * 2 / N * self.data",
    "clear": "for node in order:\n            node.grad = torch.zeros_like(node.data)",
    "gather": "parent.grad + pull(node.grad)",
}


def machine(**changes: str) -> cell:
    return cell(CLASS.format(**(PARTS | changes)))


@right("f04.matrix")
class Matrix:
    def __init__(self, data, back=None, parents=()):
        self.data, self.back, self.parents = data, back, parents
        self.grad = torch.zeros_like(data)

    def __matmul__(self, other):
        def back(G):
            self.grad += G @ other.data.T
            other.grad += self.data.T @ G

        return Matrix(self.data @ other.data, back, (self, other))

    def __add__(self, other):
        def back(G):
            self.grad += G
            other.grad += G if other.data.shape == G.shape else G.sum(0)

        return Matrix(self.data + other.data, back, (self, other))

    def __sub__(self, other):
        def back(G):
            self.grad += G
            other.grad -= G

        return Matrix(self.data - other.data, back, (self, other))

    def tanh(self):
        out = torch.tanh(self.data)

        def back(G):
            self.grad += G * (1 - out * out)

        return Matrix(out, back, (self,))

    def mean_square(self):
        def back(G):
            self.grad += G * 2 * self.data / self.data.shape[0]

        return Matrix(self.data.square().sum(-1).mean(), back, (self,))

    def backward(self):
        stack, order, done = [(self, False)], [], set()
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif id(node) not in done:
                done.add(id(node))
                node.grad = torch.zeros_like(node.data)
                stack.append((node, True))
                stack += [(parent, False) for parent in node.parents]
        self.grad = torch.ones_like(self.data)
        for node in reversed(order):
            if node.back is not None:
                node.back(node.grad)


wrong(
    "f04.matrix",
    machine(gather="pull(node.grad)"),
    "In your class the last path wins: where a matrix is used several times, the paths add up.",
    see="a-machine-for-slopes",
)
wrong(
    "f04.matrix",
    machine(clear="pass"),
    "The gradients of the last walk back are still there when the next one begins. Set them to zero first.",
    see="a-machine-for-slopes",
)
wrong(
    "f04.matrix",
    machine(
        clear="for node in order:\n            if not node.parents:\n                node.grad = torch.zeros_like(node.data)"
    ),
    "You clear only the matrices that you began with. Those made in between keep their old gradients and pass them on again.",
    see="a-machine-for-slopes",
)
wrong(
    "f04.matrix",
    machine(
        clear="for node in order:\n            node.grad = None",
        gather="pull(node.grad) if parent.grad is None else parent.grad.add_(pull(node.grad))",
    ),
    "Two matrices share one gradient tensor, and adding in place for one changes the other's. Begin with zeros of its own for each.",
    see="what-goes-wrong-in-practice",
)
wrong(
    "f04.matrix",
    machine(bias="G"),
    "A bias is added to every row, so its gradient is the sum over the rows, in the shape of the bias.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.matrix",
    machine(bias="G.mean(dim=0) if bias else G"),
    "The gradient of a bias is the sum over the rows, not their mean.",
    see="backwards-layer-by-layer",
)
wrong(
    "f04.matrix",
    machine(bias="G.sum(dim=0) if other.data.dim() == 1 else G"),
    "The sum over the rows is for a bias that was added to every row. Two biases that are added have one shape: pass the gradient on as it is.",
    see="a-machine-for-slopes",
)
wrong("f04.matrix", machine(minus="G"), "In A − B the way back to B carries a minus sign.", see="a-machine-for-slopes")
wrong(
    "f04.matrix",
    machine(tanh="G * (1 - self.data**2)"),
    "The slope of tanh is 1 − tanh² of the pre-activation; you squared the pre-activation itself.",
    see="one-hidden-layer",
)
wrong(
    "f04.matrix",
    machine(square="G / N * self.data"),
    "The slope of a square is twice the number that was squared.",
    see="the-loss-and-its-first-slope",
)
wrong(
    "f04.matrix",
    machine(count="self.data.numel()"),
    "The mean is over the rows, not over all entries.",
    see="the-loss-and-its-first-slope",
)
wrong(
    "f04.matrix",
    cell("""
    class Matrix:
        def __init__(self, data, *parents):
            self.data = data if parents else data.clone().requires_grad_(True)
            self.leaves = [leaf for parent in parents for leaf in parent.leaves] or [self]

        @torch.enable_grad()
        def __matmul__(self, other):
            return Matrix(self.data @ other.data, self, other)

        @torch.enable_grad()
        def __add__(self, other):
            return Matrix(self.data + other.data, self, other)

        @torch.enable_grad()
        def __sub__(self, other):
            return Matrix(self.data - other.data, self, other)

        @torch.enable_grad()
        def tanh(self):
            return Matrix(self.data.tanh(), self)

        @torch.enable_grad()
        def mean_square(self):
            return Matrix((self.data**2).sum() / len(self.data), self)

        def backward(self):
            for leaf in self.leaves:
                leaf.data.grad = None
            self.data.backward(retain_graph=True)

        grad = property(lambda self: self.data.grad)
    """),
    "Your class hands the work to torch's autograd. Keep the parents yourself, and the way back to each.",
    see="a-machine-for-slopes",
)
wrong(
    "f04.matrix",
    cell(
        CLASS.format(**PARTS).replace("visit(self)\n", "visit(self)\n        order = list(reversed(order[:-1])) + order[-1:]\n")
    ),
    "Some gradients were used before all ways into them had been added up. Go back in an order where each matrix comes after all that were made from it.",
    see="a-machine-for-slopes",
)

# ---------------------------------------------------------------- f04.prediction

right("f04.prediction", 16)
right("f04.prediction", 2.0)
wrong("f04.prediction", 0, "The network has 16 hidden units, so there is at least one.", see="an-experiment-sixteen-equal-units")
wrong("f04.prediction", 17, "There are only 16 hidden units.", see="an-experiment-sixteen-equal-units")
