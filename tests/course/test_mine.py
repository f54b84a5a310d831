"""A GPT put together from a student's notebooks: answers that are right, missing, wrong, raise, do not parse, or do not end."""

import shutil
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat import v4

from course.inference import generate
from course.mine import assemble, collect
from course.model import GPT, Config

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "source"
ANSWERED = {
    "masked_attention": "ch04",
    "norm": "ch07",
    "rotate": "ch08",
    "rms_norm": "ch09",
    "swiglu": "ch09",
    "block": "ch09",
    "attention": "ch09",
    "gpt": "ch09",
    "temper": "ch12",
    "nucleus": "ch12",
}
HEADS = """def multi_head_attention(x, W_q, W_k, W_v, W_o, H, allowed=None):
    heads = []
    for h in range(H):
        mine = slice(h * W_q.shape[1] // H, (h + 1) * W_q.shape[1] // H)
        scores = (x @ W_q[:, mine]) @ (x @ W_k[:, mine]).mT / len(range(*mine.indices(10**6))) ** 0.5
        heads.append(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ (x @ W_v[:, mine]))
    return torch.cat(heads, -1) @ W_o
"""


@pytest.fixture
def folder(tmp_path):
    """A copy of the notebooks whose answers are all there."""
    for stem in ("ch04_attention", "ch05_multi_head", "ch07_residual_norm", "ch08_position_rope", "ch09_block", "ch12_inference"):
        (tmp_path / stem).mkdir()
        shutil.copy(SOURCE / stem / f"{stem}.ipynb", tmp_path / stem)
    answer(tmp_path, "ch05_multi_head", "ch05-multi_head-answer", HEADS)
    return tmp_path


def answer(folder: Path, stem: str, grade_id: str, text: str):
    """The notebook with this answer instead of its own."""
    path = folder / stem / f"{stem}.ipynb"
    notebook = nbformat.read(path, 4)
    cells = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
    if not cells:
        cells = [v4.new_code_cell(metadata={"nbgrader": {"grade_id": grade_id}})]
        notebook.cells += cells
    cells[0].source = text
    nbformat.write(notebook, path)


def whose(pieces):
    return {piece.name: piece.whose for piece in pieces}


def agrees(pieces):
    """Whether the GPT that is put together of the pieces computes what the course's does, with shared keys and without."""
    ids = torch.randint(29, (2, 7), generator=torch.Generator().manual_seed(0))
    for kv_heads, tied in ((4, True), (2, False)):
        torch.manual_seed(0)
        model = (
            GPT(Config(V=29, d_model=32, n_layers=4, n_heads=4, n_kv_heads=kv_heads, tied=tied)).double().requires_grad_(False)
        )
        model.initialise(std=0.2)
        mine = assemble(pieces, model)
        for _ in range(2):  # the pieces that take turns begin elsewhere
            assert torch.allclose(mine(ids), model(ids), atol=1e-9)
        assert torch.equal(generate(mine, ids, 5, cached=False), generate(model, ids, 5))


def test_all_pieces_are_theirs(folder):
    pieces = collect(folder)
    assert whose(pieces) == dict.fromkeys(["masked_attention", "multi_head_attention", *list(ANSWERED)[1:]], "yours")
    agrees(pieces)


def test_the_source_answers_every_exercise_that_is_asked_for():
    pieces = collect(SOURCE)
    assert {p.name: p.chapter for p in pieces if p.whose == "yours"}.items() >= ANSWERED.items()


def test_without_notebooks_all_is_the_courses(tmp_path):
    pieces = collect(tmp_path)
    assert set(whose(pieces).values()) == {"the course's, since yours is not there"}
    agrees(pieces)


BROKEN = {
    "missing": ("", "is not there"),
    "a stub": ("def rotate(x, positions, d_rot, theta):\n    raise NotImplementedError", "is not there"),
    "raises": ("def rotate(x, positions, d_rot, theta):\n    return x[99]", "raises IndexError"),
    "wrong": ("def rotate(x, positions, d_rot, theta):\n    return x", "differs by"),
    "shape": (
        "def rotate(x, positions, d_rot, theta):\n    return x[0]",
        "gives torch.float64 (50, 12), not torch.float64 (2, 50, 12)",
    ),
    "none": ("def rotate(x, positions, d_rot, theta):\n    pass", "gives a value of type NoneType"),
    "float32": (
        "def rotate(x, positions, d_rot, theta):\n    return x.float()",
        "gives torch.float32 (2, 50, 12), not torch.float64 (2, 50, 12)",
    ),
    "rounded": (
        "from course.position_rope import rope\n\n"
        "def rotate(x, positions, d_rot, theta):\n    return rope(x.float(), positions, theta, 'interleaved').to(x.dtype)",
        "differs by",
    ),
    "short": (
        "def rotate(x, positions, d_rot, theta):\n    assert len(positions) < 30\n    return rope(x, positions, theta, 'interleaved')",
        "raises AssertionError",
    ),
    "ends": ("import sys\n\nsys.exit()", "raises SystemExit"),
    "ends when called": ("import sys\n\ndef rotate(x, positions, d_rot, theta):\n    sys.exit(1)", "raises SystemExit: 1"),
    "nan": ("def rotate(x, positions, d_rot, theta):\n    return x * float('nan')", "differs by nan"),
    "syntax": ("def rotate(x, positions, d_rot, theta) return x", "raises SyntaxError"),
    "endless": ("def rotate(x, positions, d_rot, theta):\n    while True:\n        pass", "takes longer than 1 second"),
    "endless at once": (
        "while True:\n    try:\n        1 / 0\n    except Exception:\n        pass",
        "takes longer than 1 second",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_piece_that_fails_is_the_courses_and_says_why(folder, fault):
    text, told = BROKEN[fault]
    answer(folder, "ch08_position_rope", "ch08-rope-answer", text)
    pieces = collect(folder, seconds=1)
    found = whose(pieces)
    assert found.pop("rotate").startswith(f"the course's, since yours {told}")
    assert set(found.values()) == {"yours"}
    agrees(pieces)


ROPE = """%%time
def rotate(x, positions, d_rot, theta):
    turn = angles(positions, d_rot, theta)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(turn), turn)).flatten(-2)

print("my answer", rotate(torch.ones(1, 2), torch.arange(1), 2, 3.0))
"""
HELPERS = """ONE = 1.0
raise ValueError("this cell is not run as a whole")

def angles(positions, d_rot, theta):
    return ONE * positions.double()[:, None] * theta ** (-torch.arange(0, d_rot, 2).double() / d_rot)
"""


def beside(folder: Path, stem: str, grade_id: str, text: str, after: bool = False):
    """The notebook with one more cell, before or after this answer."""
    path = folder / stem / f"{stem}.ipynb"
    notebook = nbformat.read(path, 4)
    at = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells].index(grade_id)
    notebook.cells.insert(at + after, v4.new_code_cell(text))
    nbformat.write(notebook, path)


def test_an_answer_may_use_what_other_cells_define(folder, capsys):
    answer(folder, "ch08_position_rope", "ch08-rope-answer", ROPE)
    beside(folder, "ch08_position_rope", "ch08-rope-answer", HELPERS)
    pieces = collect(folder)
    assert whose(pieces)["rotate"] == "yours" and not capsys.readouterr().out
    agrees(pieces)


def test_an_answer_in_the_cell_below_its_own_counts(folder):
    answer(folder, "ch07_residual_norm", "ch07-norms-answer", "def norm(x, weight, bias, eps):\n    raise NotImplementedError")
    text = "def norm(x, weight, bias, eps):\n    return weight * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()"
    beside(folder, "ch07_residual_norm", "ch07-norms-answer", text, after=True)
    assert whose(collect(folder))["norm"] == "yours"


def test_attention_gets_a_mask_with_the_leading_axes_of_the_rows(folder):
    text = """def masked_attention(query, key, value, allowed):
    rows = [t.view(-1, *t.shape[-2:]) for t in (query, key, value, allowed)]
    one = [torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=a) for q, k, v, a in zip(*rows, strict=True)]
    return torch.stack(one).view(*query.shape[:-1], -1)"""
    answer(folder, "ch04_attention", "ch04-attention-answer", text)
    pieces = collect(folder)
    assert whose(pieces)["masked_attention"] == "yours"
    agrees(pieces)


def test_what_an_answer_changes_in_place_is_a_copy(folder):
    text = "def norm(x, weight, bias, eps):\n    x /= (x.square().mean(-1, keepdim=True) + eps).sqrt()\n    x *= weight\n    return x"
    answer(folder, "ch07_residual_norm", "ch07-norms-answer", text)
    agrees(collect(folder))


GPTS = {
    "a function beside it": """def layer(x, b, H, G):
    def attend(h):
        counted.append(1)
        return attention(h, b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads=H, n_kv_heads=G)
    ffn = lambda h: swiglu(h, W_gate=b["W_gate"], W_up=b["W_up"], W_down=b["W_down"])
    norms = (lambda h, name=name: rms_norm(h, b[name], eps=1e-5) for name in ("norm_1", "norm_2"))
    return block(x, attend, ffn, *norms)

def gpt(ids, p, n_heads, n_kv_heads, *, eps=1e-5):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = layer(x, b, n_heads, n_kv_heads)
    return rms_norm(x, p["norm"], eps) @ p.get("W_head", p["E"].T)

counted = []
""",
}
GPTS["a norm of its own"] = (
    GPTS["a function beside it"]
    .replace(
        "def layer",
        "def rms_norm(x, w, *, eps):\n    return w * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()\n\ndef layer",
    )
    .replace('p["norm"], eps)', 'p["norm"], eps=eps)')
)
GPTS["a class"] = GPTS["a function beside it"] + "\nclass Net:\n    __call__ = staticmethod(gpt)\n\ngpt = Net()\n"
GPTS["decorated"] = GPTS["a function beside it"].replace("def gpt", "@torch.no_grad()\ndef gpt")


@pytest.mark.parametrize("form", GPTS)
def test_a_gpt_of_any_form_computes_with_the_parts(folder, form):
    answer(folder, "ch09_block", "ch09-gpt-answer", GPTS[form])
    pieces = collect(folder)
    assert whose(pieces)["gpt"] == "yours"
    agrees(pieces)
    called = []
    for piece in pieces:
        piece.function = (lambda f, name: lambda *a, **k: called.append(name) or f(*a, **k))(piece.function, piece.name)
    model = GPT(Config(V=29, d_model=32, n_layers=3, n_heads=4)).double().requires_grad_(False)
    assemble(pieces, model)(torch.zeros(1, 3, dtype=torch.int64))
    three = {"masked_attention", "multi_head_attention", "attention", "rotate", "swiglu", "block", "gpt"}
    assert set(called) >= three  # the three attentions take turns


def test_an_answer_may_use_an_earlier_one_and_change_its_arguments(folder):
    text = "def block(x, attention, ffn, norm_1, norm_2):\n    swiglu\n    x += attention(norm_1(x))\n    x += ffn(norm_2(x))\n    return x"
    answer(folder, "ch09_block", "ch09-pattern-answer", text)
    assert whose(collect(folder))["block"] == "yours"


def test_a_notebook_that_is_none_does_not_stop_the_others(folder):
    (folder / "ch08_position_rope" / "ch08_position_rope.ipynb").write_text("not a notebook", encoding="utf-8")
    found = whose(collect(folder))
    assert found.pop("rotate").startswith("the course's, since yours raises JSONDecodeError") and set(found.values()) == {"yours"}
