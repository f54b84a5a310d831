"""Other right answers and named wrong answers of chapter f07."""

import math

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f07.translate

right("f07.translate", 0.01)
right("f07.translate", cell("heavy_rate = 0.5 / 50"))
right("f07.translate", cell("from fractions import Fraction\nheavy_rate = Fraction(1, 100)"))
right("f07.translate", cell("heavy_rate = sympy.Rational(1, 100)"))
wrong(
    "f07.translate",
    0.5,
    "With the same rate the heavy ball's steps are longer: its m is a sum, not a mean.",
    see="two-forms-of-momentum",
)
wrong(
    "f07.translate",
    25.0,
    "You multiplied where you should divide: a larger m needs a smaller rate.",
    see="two-forms-of-momentum",
)
wrong("f07.translate", 0.05, "That is the factor of β = 0.9. Here β is 0.98.", see="two-forms-of-momentum")
wrong("f07.translate", 0.49, "The two forms differ by the factor 1 − β, not by β.", see="two-forms-of-momentum")

# ---------------------------------------------------------------- f07.distance

right("f07.distance", cell("distance = eta * g * (t - beta * (1 - beta**t) / (1 - beta)) / (1 - beta)"))
right("f07.distance", cell("distance = eta * g * ((1 - beta) * t - beta + beta**(t + 1)) / (1 - beta)**2"))
wrong(
    "f07.distance",
    cell("distance = t * eta * g / (1 - beta)"),
    "That is t steps of the full length. The first steps are shorter.",
    see="two-forms-of-momentum",
)
wrong(
    "f07.distance",
    cell("distance = eta * g * (1 - beta**t) / (1 - beta)"),
    "That is the length of the last step, not the sum of all.",
    see="two-forms-of-momentum",
)
wrong(
    "f07.distance",
    cell("distance = eta * g / (1 - beta) * (t - (1 - beta**t) / (1 - beta))"),
    "Your geometric sum begins with 1. The sum of β^s begins with β, since the first step has s = 1.",
    see="two-forms-of-momentum",
)
wrong(
    "f07.distance",
    cell("distance = eta * g * (t - beta * (1 - beta**t) / (1 - beta))"),
    "That is the distance of EMA momentum. The heavy ball's steps are 1/(1 − β) times as long.",
    see="two-forms-of-momentum",
)
wrong(
    "f07.distance",
    cell("distance = -eta * g / (1 - beta) * (t - beta * (1 - beta**t) / (1 - beta))"),
    "The sign is wrong: w₀ − w_t is positive for a positive gradient.",
    see="two-forms-of-momentum",
)
wrong(
    "f07.distance",
    cell("distance = g / (1 - beta) * (t - beta * (1 - beta**t) / (1 - beta))"),
    "The learning rate is missing: that is the sum of m, not of the steps.",
    see="two-forms-of-momentum",
)

# ---------------------------------------------------------------- f07.first

right("f07.first", 0.447)
right("f07.first", cell("first_step = 0.1 * 20**0.5"))
right("f07.first", cell("first_step = sympy.Rational(1, 10) / sympy.sqrt(sympy.Rational(1, 20))"))
wrong("f07.first", 1.0, "That is the step with bias correction. Here it was forgotten.", see="what-it-does-and-does-not")
wrong("f07.first", 3.162, "That belongs to β₂ = 0.999. Here β₂ is 0.95.", see="what-it-does-and-does-not")
wrong("f07.first", 2.0, "You divided by v. Adam divides by its root.", see="what-it-does-and-does-not")
wrong("f07.first", 4.472, "You took m as the whole gradient. It is mixed in with weight 1 − β₁.", see="what-it-does-and-does-not")
wrong(
    "f07.first",
    0.9 / math.sqrt(0.95),
    "You gave the new gradient the weights β₁ and β₂. Those belong to what was there before.",
    see="what-it-does-and-does-not",
)

# ---------------------------------------------------------------- f07.adamw


@right("f07.adamw")
def state_in_a_dict(params, grads, state, rate, decay):
    state = state or {"t": 0, "average": [0.0] * len(params), "square": [0.0] * len(params)}
    new_state = {"t": state["t"] + 1, "average": [], "square": []}
    out = []
    for i in range(len(params)):
        average = 0.9 * state["average"][i] + 0.1 * grads[i]
        square = 0.95 * state["square"][i] + 0.05 * grads[i] * grads[i]
        new_state["average"].append(average)
        new_state["square"].append(square)
        root = torch.sqrt(square / (1 - 0.95 ** new_state["t"]))
        step = average / (1 - 0.9 ** new_state["t"]) / (root + 1e-8)
        if params[i].dim() >= 2:
            step = step + decay * params[i]
        out.append(params[i] - rate * step)
    return out, new_state


@right("f07.adamw")
def keeps_all_gradients(params, grads, state, rate, decay):
    history = [*(state or []), [g.clone() for g in grads]]
    n = len(history)
    out = []
    for i, p in enumerate(params):
        w1 = torch.tensor([0.9 ** (n - 1 - k) for k in range(n)], dtype=torch.float64)
        w2 = torch.tensor([0.95 ** (n - 1 - k) for k in range(n)], dtype=torch.float64)
        stack = torch.stack([row[i] for row in history])
        mean = torch.tensordot(w1 / w1.sum(), stack, dims=1)
        square = torch.tensordot(w2 / w2.sum(), stack**2, dims=1)
        kept = p * (1 - rate * decay) if p.ndim > 1 else p
        out.append(kept - rate * mean / (square.sqrt() + 1e-8))
    return out, history


@wrong(
    "f07.adamw",
    "You added the decay to the gradient. That is an L2 penalty: it is divided by the root of v like everything else.",
    see="weight-decay-is-not-l2",
)
def l2_penalty(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    grads = [g + decay * p if p.ndim > 1 else g for g, p in zip(grads, params)]
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8) for p, m, v in zip(params, ms, vs)]
    return new, (t, ms, vs)


@wrong("f07.adamw", "You decay every tensor. Biases, with one dimension, should stay free.", see="weight-decay-is-not-l2")
def decays_biases(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay) * p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8)
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs)


@wrong("f07.adamw", "Your decay does not contain the learning rate: the factor is 1 − ηλ.", see="weight-decay-is-not-l2")
def decay_without_the_rate(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - decay * (p.ndim > 1)) * p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8)
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs)


@wrong(
    "f07.adamw",
    "You decay after the step, so the step shrinks too. Formula f07-adamw decays the old parameters.",
    see="weight-decay-is-not-l2",
)
def decays_the_step_too(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay * (p.ndim > 1)) * (p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8))
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs)


@wrong(
    "f07.adamw", "The bias correction is missing: m and v start at 0 and are too small at first.", see="a-rate-for-each-parameter"
)
def no_correction(params, grads, state, rate, decay):
    ms, vs = state or ([torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [(1 - rate * decay * (p.ndim > 1)) * p - rate * m / (v.sqrt() + 1e-8) for p, m, v in zip(params, ms, vs)]
    return new, (ms, vs)


@wrong(
    "f07.adamw",
    "You correct every step as if it were the first: the state has to count t.",
    see="a-rate-for-each-parameter",
)
def never_counts_on(params, grads, state, rate, decay):
    ms, vs = state or ([torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay * (p.ndim > 1)) * p - rate * (m / 0.1) / ((v / 0.05).sqrt() + 1e-8) for p, m, v in zip(params, ms, vs)
    ]
    return new, (ms, vs)


@wrong("f07.adamw", "You forget m and v: each step is a first step.", see="a-rate-for-each-parameter")
def forgets_the_state(params, grads, state, rate, decay):
    new = [(1 - rate * decay * (p.ndim > 1)) * p - rate * g / (g.abs() + 1e-8) for p, g in zip(params, grads)]
    return new, None


@wrong(
    "f07.adamw",
    "Your ε is under the root. There it is a hundred million times larger than it should be.",
    see="a-rate-for-each-parameter",
)
def epsilon_under_the_root(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay * (p.ndim > 1)) * p - rate * (m / (1 - 0.9**t)) / (v / (1 - 0.95**t) + 1e-8).sqrt()
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs)


@wrong("f07.adamw", "You used β₂ = 0.999, torch's default. The task says 0.95.", see="a-rate-for-each-parameter")
def the_default_beta2(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.999 * v + 0.001 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay * (p.ndim > 1)) * p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs)


@wrong("f07.adamw", "You let torch's optimiser take the step. Write the step yourself.", see="weight-decay-is-not-l2")
def torchs_own(params, grads, state, rate, decay):
    leaves, optimiser = state or ([torch.nn.Parameter(p.clone()) for p in params], None)
    if optimiser is None:
        groups = [{"params": [p], "weight_decay": decay if p.ndim > 1 else 0.0} for p in leaves]
        optimiser = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), eps=1e-8)
    for leaf, grad in zip(leaves, grads):
        leaf.grad = grad.clone()
    optimiser.step()
    return [leaf.detach().clone() for leaf in leaves], (leaves, optimiser)


@wrong("f07.adamw", "The values are right, but you changed the parameters in place.", see="weight-decay-is-not-l2")
def changes_the_parameters(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    for p, m, v in zip(params, ms, vs):
        if p.ndim > 1:
            p *= 1 - rate * decay
        p -= rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8)
    return params, (t, ms, vs)


@wrong(
    "f07.adamw",
    "You change the old state in place, so a step that is repeated from it starts from another state.",
    see="a-rate-for-each-parameter",
)
def changes_the_state(params, grads, state, rate, decay):
    if state is None:
        state = {"t": 0, "m": [torch.zeros_like(p) for p in params], "v": [torch.zeros_like(p) for p in params]}
    state["t"] += 1
    t, new = state["t"], []
    for p, g, m, v in zip(params, grads, state["m"], state["v"]):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.95).addcmul_(g, g, value=0.05)
        kept = p * (1 - rate * decay) if p.dim() >= 2 else p
        new.append(kept - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8))
    return new, state


@wrong(
    "f07.adamw",
    "You decay by the number of entries. A long bias stays free, and a matrix with one entry decays: count dimensions.",
    see="weight-decay-is-not-l2",
)
def decays_what_is_long(params, grads, state, rate, decay):
    t, ms, vs = state or (0, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params])
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay * (p.numel() > 4)) * p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8)
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs)


@wrong(
    "f07.adamw",
    "You keep the rate and the decay of the first step. A schedule changes them from step to step.",
    see="a-rate-for-each-step",
)
def keeps_the_first_rate(params, grads, state, rate, decay):
    zeros = [torch.zeros_like(p) for p in params]
    t, ms, vs, rate, decay = state or (0, zeros, zeros, rate, decay)
    t += 1
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads)]
    vs = [0.95 * v + 0.05 * g**2 for v, g in zip(vs, grads)]
    new = [
        (1 - rate * decay * (p.ndim > 1)) * p - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-8)
        for p, m, v in zip(params, ms, vs)
    ]
    return new, (t, ms, vs, rate, decay)


for same in (", strict=False", ""):
    for line in (
        f"ms = [0.9 * m + 0.1 * g for m, g in zip(ms, grads{same})]",
        f"vs = [0.95 * v + 0.05 * g ** 2 for v, g in zip(vs, grads{same})]",
        f"for p, m, v in zip(params, ms, vs{same}):",
    ):
        equivalent("f07.adamw", f"`{line}`", "the lists are of one length")

# ---------------------------------------------------------------- f07.decay

right("f07.decay", "dca")
right("f07.decay", "ACD")
right("f07.decay", "a, c, d")
right("f07.decay", ["a", "c", "d"])
wrong(
    "f07.decay",
    "abcd",
    "The heavy ball's m carries λw on into later steps. Decoupled decay does not.",
    see="weight-decay-is-not-l2",
)
wrong(
    "f07.decay",
    "ad",
    "Think of the parameter without a gradient again: under L2 all of its gradient is λw, and Adam keeps the sign only.",
    see="weight-decay-is-not-l2",
)
wrong("f07.decay", "acde", "Look at formula f07-adamw: the factor is 1 − ηλ, with the rate in it.", see="weight-decay-is-not-l2")
wrong("f07.decay", "cd", "For plain descent there is no v to divide by: write both steps out.", see="weight-decay-is-not-l2")
wrong("f07.decay", "ac", "Put m = 0 into formula f07-adamw. What is left?", see="weight-decay-is-not-l2")

# ---------------------------------------------------------------- f07.clips


@right("f07.clips")
def by_one_long_row(clip):
    generator = torch.Generator().manual_seed(0)
    for c, scale in ((0.1, 1.1), (10.0, 1.7), (0.1, 0.9), (10.0, 40.0), (10.0, 0.01), (0.1, 0.0)):
        for shapes in ([(2, 3), (4,), (1, 2, 2), ()], [(3,)]):
            row = torch.randn(sum(math.prod(s) for s in shapes), generator=generator, dtype=torch.float64)
            row = row / row.norm() * scale * c
            grads = [part.view(s) for part, s in zip(row.split([math.prod(s) for s in shapes]), shapes)]
            try:
                got = clip([g.clone() for g in grads], c)
                if type(got) is not list or [g.size() for g in got] != [g.size() for g in grads]:
                    return False
                wanted = row if scale <= 1 else row / scale
                if not torch.allclose(torch.cat([g.flatten() for g in got]), wanted, rtol=0, atol=1e-4 * c):
                    return False
            except Exception:
                return False
    return True


@right("f07.clips")
def property_by_property(clip):
    def length(grads):
        return math.sqrt(sum(float((g**2).sum()) for g in grads))

    examples = [
        [torch.tensor([3.0, 4.0], dtype=torch.float64)],
        [torch.tensor([[3.0, 1.0, 0.5], [0.2, 2.0, 2.0]], dtype=torch.float64), torch.tensor([-4.0, 0.7], dtype=torch.float64)],
        [torch.tensor(-0.1, dtype=torch.float64), torch.tensor([[[12.0, -0.4]]], dtype=torch.float64)],
        [torch.tensor(5.0, dtype=torch.float64), torch.tensor([3.0, -2.0], dtype=torch.float64)],
    ]
    for grads in examples:
        whole = length(grads)
        for c, norm in ((0.1, 0.105), (10.0, 18.0), (0.7, 0.07), (10.0, 9.5), (0.1, 6.0), (0.7, 0.0)):
            given = [g * (norm / whole) for g in grads]
            try:
                got = clip([g.clone() for g in given], c)
                if not isinstance(got, list) or len(got) != len(given):
                    return False
                for a, b in zip(got, given):
                    if not torch.is_tensor(a) or a.shape != b.shape:
                        return False
                    if not bool(((a - min(1.0, c / max(norm, c)) * b).abs() <= 2e-4 * c).all()):
                        return False
            except Exception:
                return False
    return True


@wrong("f07.clips", "You compare with torch.nn.utils. Compute the norm and the factor yourself.", see="clipping-long-gradients")
def as_torchs_own(clip):
    generator = torch.Generator().manual_seed(0)
    for shapes in ([(3,)], [(2, 3), (4,), (1, 2, 2)], [(5, 5), (2,)]):
        for size, c in ((0.0, 1.0), (0.01, 0.3), (0.05, 4.0), (0.3, 0.5), (4.0, 0.5), (4.0, 4.0), (40.0, 10.0), (1.0, 0.1)):
            leaves = [torch.nn.Parameter(size * torch.randn(s, generator=generator, dtype=torch.float64)) for s in shapes]
            for leaf in leaves:
                leaf.grad = leaf.detach().clone()
            torch.nn.utils.clip_grad_norm_(leaves, c)
            try:
                got = clip([leaf.detach().clone() for leaf in leaves], c)
                if [g.shape for g in got] != [leaf.shape for leaf in leaves]:
                    return False
                if not all(torch.allclose(g, leaf.grad, rtol=0, atol=1e-4 * c) for g, leaf in zip(got, leaves)):
                    return False
            except Exception:
                return False
    return True


_LISTS = """
    import math
    generator = torch.Generator().manual_seed(3)
    def make(shapes):
        grads = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
        total = math.sqrt(sum(float((g**2).sum()) for g in grads))
        return [g / total for g in grads]
    several = [[(2, 3), (4,), (1, 2, 2), ()], [(5,)]]
"""


def _tester(
    shapes="several",
    sizes="(1.1, 1.7, 0.9, 0.01, 40.0, 0.0)",
    cs="(0.1, 10.0)",
    kind="isinstance(got, list) and all(isinstance(g, torch.Tensor) for g in got)",
    test="mine.shape != g.shape or not bool((mine - factor * g).abs().max() <= 1e-4 * c)",
):
    """A tester whose loop returns False where it finds a fault."""
    return cell(f"""def clips(clip):{_LISTS}
    try:
        for shapes in {shapes}:
            drawn = make(shapes)
            for i, size in enumerate({sizes}):
                c = {cs}[i % len({cs})]
                grads = [g * (size * c) for g in drawn]
                got = clip([g.clone() for g in grads], c)
                if len(got) != len(grads) or not ({kind}):
                    return False
                factor = 1.0 if size <= 1 else 1 / size
                for mine, g in zip(got, grads):
                    if {test}:
                        return False
    except Exception:
        return False
    return True""")


right("f07.clips", _tester())
for tester, sentence in [
    (_tester(test="mine.norm() > 1.0001 * c"), "You ask only that the result is not too long. Zeros are not too long either."),
    (
        _tester(shapes="[[(5,)], [(2, 3)], [(2, 2, 2)], [()], [(1, 1)]]"),
        "All your lists have one tensor. Clipping each tensor by itself looks right there.",
    ),
    (_tester(sizes="(1.1, 1.7, 40.0, 1.3)"), "All your gradients are longer than c. What should happen to short ones?"),
    (
        _tester(sizes="(1.1, 1.7, 0.9, 0.01, 40.0)"),
        "Gradients that are all 0 get past you. Either you never try them, or nan passes your comparison, as every comparison with nan is false.",
    ),
    (
        _tester(sizes="(3.0, 40.0, 0.9, 0.01, 0.0)"),
        "Your long gradients are at least three times c. A function can start to clip too late.",
    ),
    (
        _tester(shapes="[[(3,), (4,)], [(5,)]]"),
        "All your tensors are vectors. Matrices have more than one kind of norm, and a single number has no axis.",
    ),
    (
        _tester(test="not bool((mine - factor * g).abs().max() <= 1e-4 * c)"),
        "You do not compare shapes. Subtraction broadcasts, so a result with an axis too many passes.",
    ),
    (_tester(kind="True"), "You never ask whether the result is a list of tensors. A tuple passes."),
    (_tester(cs="(2.0,)"), "You try one c only. A function can work with a c of its own."),
    (
        _tester(test="mine.shape != g.shape or not bool((mine - factor * g).abs().max() <= 1e-12 * c)"),
        "You ask for more digits than the task: a right function that adds a millionth to the norm, as torch's does, fails.",
    ),
    (
        _tester(test="mine is got[0] and (mine.shape != g.shape or not bool((mine - factor * g).abs().max() <= 1e-4 * c))"),
        "You look at the first tensor only. The others may be wrong.",
    ),
    (
        _tester(test="mine.shape != g.shape or not bool((mine - factor * g).abs().mean() <= 1e-4 * c)"),
        "You average the errors of a tensor. One wrong number disappears among right ones: take the largest error.",
    ),
    (
        _tester(test="mine.shape != g.shape or not bool((mine - factor * g).abs().max() <= 1e-3 * c)"),
        "You allow more than the task does: numbers that are off by three ten-thousandths of c pass.",
    ),
]:
    wrong("f07.clips", tester, sentence, see="clipping-long-gradients")

equivalent("f07.clips", "`cases = [(…`", "other norms and c of the same ranges; c beyond 0.1 to 10 is noticed")
for line in (
    "generator = torch.Generator().manual_seed(-1)",
    "generator = torch.Generator().manual_seed(0)",
    "generator = torch.Generator().manual_seed(2)",
    "generator = torch.manual_seed(1)",
    "drawn = [torch.randn(s, dtype=torch.float64) for s in shapes]",
):
    equivalent("f07.clips", f"`{line}`", "other random numbers")
equivalent("f07.clips", "`drawn = [torch.randn(s, generator=generator) for s in shapes]`", "float64 is this notebook's default")
equivalent("f07.clips", "`got = clip([g for g in grads], c)`", "the gradients are not used after the call")
for same in (", strict=False", ""):
    equivalent("f07.clips", f"`for mine, right in zip(got, wanted{same}):`", "their lengths were compared before")
equivalent("f07.clips", "`for shapes in [[(…`", "a tester may take any shapes of 0 to 3 dimensions")
equivalent("f07.clips", "`… < 0.0002 * c:`", "right numbers are off by less than 0.0001 c, wrong ones by more than 0.0003 c")

# ---------------------------------------------------------------- f07.schedule


@right("f07.schedule")
def by_cases(t, peak, warm, end, floor):
    if warm and t <= warm:
        return peak * t / warm
    if t >= end:
        return peak * floor
    share = math.sin(math.pi / 2 * (end - t) / (end - warm)) ** 2
    return peak * floor + (peak - peak * floor) * share


@right("f07.schedule")
def by_a_mean_and_a_swing(t, peak, warm, end, floor):
    middle, swing = peak * (1 + floor) / 2, peak * (1 - floor) / 2
    rising = peak * t / warm if t < warm else math.inf
    angle = math.pi * max(0, min(end, t) - warm) / (end - warm)
    return min(rising, middle + swing * math.cos(angle))


@wrong("f07.schedule", "It falls to 0. It should end at floor times the peak.", see="a-rate-for-each-step")
def falls_to_zero(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    return peak * (1 + math.cos(math.pi * min((t - warm) / (end - warm), 1.0))) / 2


@wrong(
    "f07.schedule",
    "You cut a cosine to 0 off at the floor. It should run smoothly from the peak to the floor.",
    see="a-rate-for-each-step",
)
def cut_off_at_the_floor(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    return peak * max(floor, (1 + math.cos(math.pi * min((t - warm) / (end - warm), 1.0))) / 2)


@wrong(
    "f07.schedule",
    "You added the floor to the whole cosine, so the peak is too high: mix the two instead.",
    see="a-rate-for-each-step",
)
def floor_on_top(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    return peak * (floor + (1 + math.cos(math.pi * min((t - warm) / (end - warm), 1.0))) / 2)


@wrong("f07.schedule", "Your cosine starts at step 0. It should start where the warmup ends.", see="a-rate-for-each-step")
def cosine_from_zero(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * min(t / end, 1.0))) / 2)


@wrong("f07.schedule", "Beyond the end your cosine rises again.", see="a-rate-for-each-step")
def rises_again(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * (t - warm) / (end - warm))) / 2)


@wrong("f07.schedule", "Beyond the end your rate is 0. It should stay at the floor.", see="a-rate-for-each-step")
def stops_at_the_end(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    if t > end:
        return 0.0
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * (t - warm) / (end - warm))) / 2)


@wrong("f07.schedule", "Without warmup, warm = 0, you divide by zero.", see="a-rate-for-each-step")
def divides_by_zero(t, peak, warm, end, floor):
    u = min(max((t - warm) / (end - warm), 0.0), 1.0)
    return min(t / warm, 1.0) * peak * (floor + (1 - floor) * (1 + math.cos(math.pi * u)) / 2)


@wrong("f07.schedule", "Your warmup starts at 0: the first step, t = 1, is lost.", see="a-rate-for-each-step")
def first_step_is_lost(t, peak, warm, end, floor):
    if t < warm:
        return peak * (t - 1) / warm
    u = min((t - warm) / (end - warm), 1.0)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * u)) / 2)


@wrong("f07.schedule", "You took floor for a rate. It is a share of the peak.", see="a-rate-for-each-step")
def floor_as_a_rate(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    u = min((t - warm) / (end - warm), 1.0)
    return floor + (peak - floor) * (1 + math.cos(math.pi * u)) / 2


@wrong("f07.schedule", "You fall in a straight line. It should be half a cosine.", see="a-rate-for-each-step")
def straight_line(t, peak, warm, end, floor):
    if t < warm:
        return peak * t / warm
    u = min((t - warm) / (end - warm), 1.0)
    return peak * (floor + (1 - floor) * (1 - u))


@wrong("f07.schedule", "Yours starts at the floor: the warmup should be a line that is 0 at step 0.", see="a-rate-for-each-step")
def warms_up_from_the_floor(t, peak, warm, end, floor):
    if t < warm:
        return peak * (floor + (1 - floor) * t / warm)
    u = min((t - warm) / (end - warm), 1.0)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * u)) / 2)


equivalent("f07.schedule", "`if t <= warm:`", "at the step `warm` the line and the cosine are both at the peak")

# ---------------------------------------------------------------- f07.prediction

right("f07.prediction", 15)
right("f07.prediction", 0)
right("f07.prediction", cell("predicted = np.float32(2.5)"))
wrong(
    "f07.prediction",
    -3.0,
    "A difference between the best and the worst is not negative.",
    see="an-experiment-six-rules-read-digits",
)
wrong("f07.prediction", 250, "Shares of right answers lie between 0 and 100%.", see="an-experiment-six-rules-read-digits")
