"""What a task forbids is refused whatever way an answer goes, and nothing else is."""

import copy
import sys

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell

from autograder.authoring.chapters import grade_id
from autograder.authoring.release import release
from autograder.authoring.scoring import score
from autograder.confined.ban import Ban, written_in_python
from autograder.engine.supervisor import run_notebook
from autograder.errors import SandboxError
from autograder.grading.merge import merge
from autograder.limits import Limits
from tests.autograder.conftest import header, make_course, nbgrader, toy_cells

LIMITS = Limits(call=10, cell=30, notebook=90)

TEST = """exercise = Exercise("ch99.{name}", points=3, without=("{without}",))
with exercise.part("the example"):
    check({name}).on(torch.tensor([1.0, 3.0])).agrees_with({reference})
### BEGIN HIDDEN TESTS
with exercise.part("any numbers", points=3):
    for case in draw(2):
        check({name}).on(case.normal(5)).agrees_with({reference})
### END HIDDEN TESTS
exercise.score()"""

SLOPE = "lambda x: 3 * x**2"
NORM = "lambda x: (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt()"
STEP = "lambda x: x - 0.1 * 2 * x"
TASKS = {"slope": ("autograd", SLOPE), "norm": ("layer_norm", NORM), "step": ("torch.optim", STEP)}
BY_HAND = {
    "slope": "w = x.clone()\nw += 0\nreturn torch.vmap(lambda z: 3 * z * z)(w).detach()",
    "norm": "with torch.enable_grad():\n    centred = x - x.mean()\nreturn centred / (centred.square().mean() + 1e-5).sqrt()",
    "step": "return torch._foreach_sub([x], [0.2 * x])[0].requires_grad_(False)",
}

BEFORE = """
import threading, torch
from torch.nn import functional as F
keep_grad, keep_engine, keep_run = torch.autograd.grad, torch._C._ImperativeEngine(), type(torch._C._ImperativeEngine()).run_backward
keep_layer_norm, keep_norm = F.layer_norm, torch.nn.LayerNorm(5)
from torch.optim.sgd import sgd as keep_step
keep_sgd, keep_code = torch.optim.SGD, keep_step.__code__
@torch.jit.script
def scripted(x: torch.Tensor):
    y = (x * x * x).sum()
    return torch.autograd.grad([y], [x])[0]
@torch.jit.script
def scripted_norm(x: torch.Tensor):
    return torch.layer_norm(x, [x.shape[0]])
traced_norm = torch.jit.trace(lambda x: torch.layer_norm(x, (5,)), torch.ones(5))
def leaf(x):
    return x.clone().requires_grad_()
def cube(x):
    return (x**3).sum()
@torch.jit.script
def scripted_rows(x: torch.Tensor):
    return torch.layer_norm(x, [x.shape[-1]])
def caught(f):
    try:
        return f()
    except AttributeError:  # there is none
        return None
static_norm = caught(lambda: torch._C._jit_to_static_module(scripted_rows.graph))
caught(lambda: torch._C._fuse_to_static_module(scripted_rows.graph, 1))
@torch.jit.script
def warm(x: torch.Tensor):
    a = x * x
    return a * x * 1.0
for _ in range(3):
    z = torch.ones(5, requires_grad=True)
    keep_grad(warm(z).sum(), z)
graphs = {}
for n in range(1, 9):
    z = torch.ones(n, requires_grad=True)
    graphs[n] = z, (z**3).sum()
def refilled(x):
    z, y = graphs[len(x)]
    z.data.copy_(x)
    return z, y
import multiprocessing.util, os, sys
STEP = "p = torch.nn.Parameter(torch.tensor({})); p.grad = 2 * p.detach(); torch.optim.SGD([p], lr=0.1).step()"
def program(x):
    r, w = os.pipe()
    os.set_inheritable(w, True)
    text = f"import os, torch; {STEP.format(x.tolist())}; os.write({w}, repr(p.tolist()).encode())"
    given = [b"python", b"-c", text.encode()]
    os.waitpid(multiprocessing.util.spawnv_passfds(os.fsencode(sys.executable), given, [w]), 0)  # Python tells no audit hook of it
    os.close(w)
    return torch.tensor(eval(os.read(r, 10_000)))
def in_thread(f, *given):
    found = []
    one = threading.Thread(target=lambda: found.append(f(*given)))
    one.start()
    one.join()
    return found[0]
def derive(x):
    with torch.enable_grad():
        z = leaf(x)
        return keep_grad(cube(z), z)[0]
def sgd(x):
    with torch.no_grad():
        w = torch.nn.Parameter(x.clone())
        w.grad = 2 * x
        keep_sgd([w], lr=0.1).step()
        return w.detach()
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3
    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g
pending, done = __import__("queue").Queue(), __import__("queue").Queue()
def work():
    while True:
        f, x = pending.get()
        try:
            done.put(f(x))
        except BaseException:
            done.put(None)
threading.Thread(target=work, daemon=True).start()
def asked(f, x):
    pending.put((f, x))
    return done.get()
"""

SLOPES = {
    "enable_grad": "return derive(x)",
    "vjp": "return torch.func.vjp(cube, x)[1](torch.ones(()))[0]",
    "jvp": "return torch.stack([torch.func.jvp(cube, (x,), (e,))[1] for e in torch.eye(len(x))])",
    "grad of func": "return torch.func.grad(cube)(x)",
    "jacfwd": "return torch.func.jacfwd(cube)(x)",
    "dual numbers": "import torch.autograd.forward_ad as fw\nwith torch.enable_grad(), fw.dual_level():\n"
    "    return torch.stack([fw.unpack_dual(cube(fw.make_dual(x, e))).tangent for e in torch.eye(len(x))])",
    "a thread": "return in_thread(derive, x)",
    "a thread that waited": "return asked(derive, x)",
    "an error that is swallowed": "try:\n    return derive(x)\nexcept Exception:\n    return 3 * x**2",
    "DisableTorchFunction": "with torch._C.DisableTorchFunction():\n    return derive(x)",
    "DisableTorchFunctionSubclass": "with torch._C.DisableTorchFunctionSubclass():\n    return derive(x)",
    "the engine": "with torch.enable_grad():\n    z = leaf(x)\n"
    "    return keep_run(keep_engine, (cube(z),), (torch.ones(()),), False, False, (z,), allow_unreachable=True, accumulate_grad=False)[0]",
    "the operator": "with torch.enable_grad():\n    z = leaf(x)\n    torch.ops.aten._backward(cube(z), [z])\n    return z.grad",
    "TorchScript": "with torch.enable_grad():\n    return scripted(leaf(x))",
    "the nodes of the graph": "with torch.enable_grad():\n    y = leaf(x) ** 3\n    return y.grad_fn(torch.ones_like(x))",
    "a Function of its own": "with torch.enable_grad():\n    z = leaf(x)\n    Cube.apply(z).sum().backward()\n    return z.grad",
    "a formula of torch": "return 3 * torch.ops.aten.tanh_backward(x**2, torch.zeros_like(x))",
    "the same in Python": "from torch._decomp import decompositions\nreturn 3 * decompositions.tanh_backward(x**2, torch.zeros_like(x))",
    "grad mode by torch._C": "torch._C._set_grad_enabled(True)\nreturn derive(x)",
    "TorchScript that derives by itself": "with torch.enable_grad():\n    z = leaf(x)\n"
    "    return keep_run(keep_engine, (warm(z),), (torch.ones_like(x),), False, False, (z,), allow_unreachable=True, accumulate_grad=False)[0]",
    "a graph of an earlier cell": "z, y = refilled(x)\n"
    "return keep_run(keep_engine, (y,), (torch.ones(()),), True, False, (z,), allow_unreachable=True, accumulate_grad=False)[0]",
    "nodes of an earlier cell": "_, y = refilled(x)\nreturn y.grad_fn.next_functions[0][0](y.grad_fn(torch.ones(())))",
    "functorch's own": "from torch._functorch.eager_transforms import grad_impl\nreturn grad_impl(cube, 0, False, (x,), {})",
}
NORMS = {
    "functional": "return F.layer_norm(x, x.shape)",
    "the name that was kept": "return keep_layer_norm(x, x.shape)",
    "a module": "return torch.nn.LayerNorm(len(x))(x).detach()",
    "a thread": "return in_thread(lambda: torch.layer_norm(x, x.shape))",
    "DisableTorchFunction": "with torch._C.DisableTorchFunction():\n    return F.layer_norm(x, x.shape)",
    "torch.ops": "return torch.ops.aten.layer_norm(x, x.shape)",
    "the leaf": "return torch.ops.aten.native_layer_norm(x, x.shape, None, None, 1e-5)[0]",
    "the list of functions": "return torch._C._VariableFunctions.layer_norm(x, x.shape)",
    "vmap": "return torch.vmap(lambda z: torch.layer_norm(z, z.shape))(x[None])[0]",
    "functionalize": "return torch.func.functionalize(lambda z: torch.layer_norm(z, z.shape))(x)",
    "inference mode": "with torch.inference_mode():\n    return torch.layer_norm(x.clone(), x.shape)",
    "TorchScript": "return scripted_norm(x)",
    "kernels without a dispatcher": "return static_norm(x[None])[0]",
    "the same in a script": "return scripted_rows(x[None])[0]",
    "a trace": "return traced_norm(x) if len(x) == 5 else scripted_norm(x)",
    "a reference in Python": "import torch._refs\nreturn torch._refs.native_layer_norm(x, x.shape, None, None, 1e-5)[0]",
    "no dispatch to modes": "with torch.utils._python_dispatch._disable_current_modes():\n    return torch.layer_norm(x, x.shape)",
}
STEPS = {
    "an optimiser": "return sgd(x)",
    "a thread": "return in_thread(sgd, x)",
    "DisableTorchFunction": "with torch._C.DisableTorchFunction():\n    return sgd(x)",
    "the fused form": "w = x.clone()\n"
    "torch._fused_sgd_([w], [2 * x], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=True)\nreturn w",
    "the fused operator": "w = x.clone()\n"
    "torch.ops.aten._fused_sgd_([w], [2 * x], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=True)\nreturn w",
    "the functional form": "w = x.clone()\nfrom torch.optim.sgd import sgd as step\n"
    "step([w], [2 * x], [None], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False)\nreturn w",
    "code that was kept": "import types\nw = x.clone()\nstep = types.FunctionType(keep_code, keep_step.__globals__)\n"
    "step([w], [2 * x], [None], False, False, False, None, None, weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False)\nreturn w",
    "a program": "return program(x)",
    "a module loaded anew": "import importlib, sys\nsys.modules.pop('torch.optim.sgd')\n"
    "mine = importlib.import_module('torch.optim.sgd')\nw = x.clone()\n"
    "mine.sgd([w], [2 * x], [None], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False)\nreturn w",
}


def function(name: str, body: str) -> str:
    return f"def {name}(x):\n" + "\n".join(f"    {line}" for line in body.splitlines())


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    cells = toy_cells()[:3]
    for name, (without, reference) in TASKS.items():
        solution = function(name, f"### BEGIN SOLUTION\n{BY_HAND[name]}\n### END SOLUTION")
        test = TEST.format(name=name, without=without, reference=reference)
        cells += [
            header(name, "3 points", "code"),
            new_code_cell(solution, metadata=nbgrader(f"ch99-{name}-answer", solution=True)),
            new_code_cell(test, metadata=nbgrader(f"ch99-{name}", 3)),
        ]
    made = make_course(tmp_path_factory.mktemp("forbidden"), cells=cells)
    release(made)
    return made


@pytest.fixture
def graded(chapter):
    """graded(bodies): points and what is said, by exercise."""

    def graded(bodies: dict[str, str]) -> dict[str, tuple[float, str]]:
        notebook = nbformat.read(chapter.release, as_version=4)
        for cell in notebook.cells:
            name = (grade_id(cell) or "").removeprefix("ch99-").removesuffix("-answer")
            if (grade_id(cell) or "").endswith("-answer"):
                cell.source = function(name, bodies[name])
        notebook.cells.insert(3, new_code_cell(BEFORE))
        merged = merge(chapter, copy.deepcopy(notebook))
        try:
            run_notebook(merged.notebook, chapter, 1, LIMITS)
        except SandboxError as error:
            pytest.skip(str(error))
        by_name = {grade_id(cell): cell for cell in merged.notebook.cells}
        own = next(cell for cell in merged.notebook.cells if cell.source == BEFORE)
        assert not [output for output in own.outputs if output.output_type == "error"], own.outputs
        return {name: (score(by_name[f"ch99-{name}"]), str(by_name[f"ch99-{name}"].outputs)) for name in TASKS}

    return graded


def test_an_answer_by_hand_has_all_points(graded):
    assert {name: points for name, (points, _) in graded(BY_HAND).items()} == dict.fromkeys(TASKS, 3.0)


@pytest.mark.parametrize("number", range(max(map(len, (SLOPES, NORMS, STEPS)))))
def test_no_way_leads_to_points(graded, number):
    ways = {name: list(of.items())[number % len(of)] for name, of in zip(TASKS, (SLOPES, NORMS, STEPS), strict=True)}
    for name, (points, said) in graded({name: body for name, (_, body) in ways.items()}).items():
        assert points == 0.0, (ways[name], said)
        if (
            "the nodes of" not in ways[name][0]
            and "kernels" not in ways[name][0]
            and "program" not in ways[name][0]
            and "functorch" not in ways[name][0]
        ):  # they find nothing to use
            assert "is not allowed in this exercise" in said, (ways[name], said)


# ---------------------------------------------------------------- in one process


@pytest.mark.parametrize("name", TASKS)
def test_each_way_is_right_where_nothing_forbids_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.optim.sgd", sys.modules["torch.optim.sgd"])  # one way loads it anew
    x = torch.randn(5)
    for how, body in {**dict(zip(TASKS, (SLOPES, NORMS, STEPS), strict=True))[name], "by hand": BY_HAND[name]}.items():
        space: dict = {"__name__": "__main__"}
        exec(compile(BEFORE.replace("@torch.jit.script\n", ""), "<before>", "exec"), space)  # TorchScript wants a file
        exec(function(name, body), space)
        if "formula" not in how and "dispatcher" not in how and how != "the same in Python":  # forms of other functions
            torch.testing.assert_close(space[name](x), eval(TASKS[name][1])(x), rtol=1e-4, atol=1e-5)


@pytest.fixture
def ban():
    ban = Ban()
    yield ban
    ban.lift()


def test_what_is_lifted_is_as_before(ban):
    functions = [f for name in ("layer_norm", "grad") for f in written_in_python()[name]]
    codes = [f.__code__ for f in functions]
    x = torch.randn(3, 4)
    normed = torch.layer_norm(x, (4,))
    for names in (("autograd", "layer_norm", "torch.optim"), ("layer_norm",), ()):
        ban.set(names)
    assert [f.__code__ for f in functions] == codes
    assert torch.equal(torch.layer_norm(x, (4,)), normed)
    leaf = x.clone().requires_grad_()
    assert torch.autograd.grad((leaf**2).sum(), leaf)[0].allclose(2 * x)
    assert torch.func.vmap(torch.nn.LayerNorm(4))(x).shape == x.shape
    optimiser = torch.optim.SGD([leaf], lr=0.1)
    leaf.grad = 2 * x
    optimiser.step()
    assert leaf.detach().allclose(0.8 * x)


def test_values_and_views_are_the_same_without_a_record(ban):
    def computed():
        x = torch.arange(12.0).reshape(3, 4)
        y = x.clone()
        y[:, 1].mul_(2)
        z = y.transpose(0, 1).contiguous().view(-1)
        z += 1
        sparse = x.to_sparse()
        found = [
            x,
            y,
            z,
            x.softmax(-1) @ y.T,
            torch.linalg.svdvals(x),
            torch.einsum("ij,kj->ik", x, y),
            torch.sparse.mm(sparse, y.T),
        ]
        found += [torch.vmap(torch.sum)(x), torch.fft.fft(x).abs(), x.double().logsumexp(-1), torch.cat([x, y]).sort(0).values]
        return [value.clone() for value in found]

    before = computed()
    ban.set(("autograd",))
    leaf = torch.ones(3, requires_grad=True)
    assert not (leaf * 2).requires_grad
    for a, b in zip(before, computed(), strict=True):
        assert torch.equal(a, b)


def test_an_error_of_an_answer_stays_its_own(ban):
    ban.set(("autograd",))
    own = ValueError("no")
    assert ban.met(own) is own and ban.met(None) is None
    with pytest.raises(PermissionError) as caught:
        torch.autograd.grad(torch.ones(()), torch.ones(()))
    assert ban.met(caught.value) is caught.value and ban.met(None) is None
    torch.vmap(lambda x: x)(torch.ones(2))
    assert ban.met(None) is None
