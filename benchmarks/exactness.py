"""How exact the gradients of the fast forms are where half precision is strained, beside torch's own, on one GPU in one run.

    python -m benchmarks.exactness               # benchmarks/records/exactness.json

Attention with larger and larger scores, against the plain form in float64; the loss at the sizes of GPT-2 in float16, whose
gradients of words that no token has as its target are 10⁻⁸ and less. Errors are ‖ours − exact‖ / ‖exact‖.
"""

import argparse
import json
import math
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.kernels import RECORDS, header, normal, torch_attention, write
from course.kernels.attention import attention
from course.kernels.cross_entropy import linear_cross_entropy
from course.model import attend

SCORES = 1, 100, 1_000, 10_000, 100_000  # the largest of each run, about
SEEDS = range(5)


def error(ours: Tensor, exact: Tensor) -> float:
    return float((ours.double() - exact).norm() / exact.norm())


def gradients(f, inputs: list[Tensor], grad: Tensor | None = None) -> tuple[Tensor, ...]:
    leaves = [each.detach().requires_grad_() for each in inputs]
    out = f(*leaves)
    return torch.autograd.grad(out, leaves, None if grad is None else grad.to(out.dtype))


def attention_rows() -> list[dict]:
    """Errors of the gradients of query, key and value by the size of the scores, in bfloat16, causal."""
    rows = []
    for size in SCORES:
        for seed in SEEDS:
            torch.manual_seed(seed)
            query, key, value, grad = (normal(1, 4, 1024, 64) for _ in range(4))
            largest = (query.float() @ key.float().mT).abs().max() / 8
            query = (query.float() * size / largest).bfloat16()
            exact = gradients(attend, [each.double() for each in (query, key, value)], grad)
            row = {"scores": size, "seed": seed}
            for name, form in {"ours": attention, "flash": torch_attention("flash", True)}.items():
                found = gradients(form, [query, key, value], grad)
                row[name] = [error(mine, right) for mine, right in zip(found, exact, strict=True)]
            rows.append(row)
    return rows


def loss_rows() -> list[dict]:
    """Errors of the gradients of x, of the head, and of its rows that are no token's target, with a loss scale or without."""
    n, V, d_model, rows = 2048, 50_257, 768, []
    for dtype in (torch.float16, torch.bfloat16):
        for seed in SEEDS:
            torch.manual_seed(seed)
            x, weight = normal(n, d_model, dtype=dtype), 0.02 * normal(V, d_model, dtype=dtype)
            targets = torch.randint(V // 2, (n,), device="cuda")
            forms = {
                "ours": partial(linear_cross_entropy, targets=targets),
                "torch": partial(torch_loss, targets=targets),
            }
            exact = gradients(forms["torch"], [x.double(), weight.double()])
            for scale in (1.0, 65_536.0):
                row = {"dtype": str(dtype), "scale": scale, "seed": seed}
                for name, form in forms.items():
                    grads = [each.double() / scale for each in gradients(form, [x, weight], torch.tensor(scale, device="cuda"))]
                    pairs = [(grads[0], exact[0]), (grads[1], exact[1]), (grads[1][V // 2 :], exact[1][V // 2 :])]
                    errors = [error(*pair) for pair in pairs]
                    row[name] = [None if math.isnan(x) else x for x in errors]
                    row[f"{name}_zero_rows"] = float((grads[1][V // 2 :] == 0).all(dim=1).float().mean())
                rows.append(row)
    return rows


def torch_loss(x: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(x @ weight.T, targets)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RECORDS, help="folder of the record")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "exactness.json"
    kept = {"cost": json.loads(path.read_text())["cost"]} if path.is_file() else {}  # measured once, with the form before
    record = header() | {"attention": attention_rows(), "loss": loss_rows()} | kept
    write(path, record)
    print(json.dumps(record["attention"][-1]), json.dumps(record["loss"][1]))


if __name__ == "__main__":
    main()
