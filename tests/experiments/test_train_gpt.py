"""The fast trainer: it computes what the model computes, in parts, in several processes, and after a stop."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from course.model import GPT, Config
from experiments.train_gpt import GPT2, PRESETS, Loss, Place, Settings, Trainer, train, windows

HERE = Path(__file__).parent
CPU = Place(torch.device("cpu"))
TINY = PRESETS["tiny"]
MODELS = {
    "llama": Config(V=50, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2),
    "gpt-2": replace(GPT2, V=50, d_model=24, n_layers=2, n_heads=2, T_max=16),
    "gelu": Config(V=50, d_model=16, n_layers=1, n_heads=2, ffn="gelu", bias=True, tied=True),
}


def random_tokens(V: int, n: int = 500) -> torch.Tensor:
    return torch.randint(V - 1, (n,), generator=torch.Generator().manual_seed(5))


def trained(settings: Settings, steps: int) -> Trainer:
    trainer = Trainer(settings, random_tokens(settings.model.V), CPU)
    for _ in range(steps):
        trainer.take_step()
    return trainer


def distance(a: dict, b: dict) -> float:
    """Of two states of a model, over the length of the second."""
    flat = [torch.cat([state[name].flatten().double() for name in b]) for state in (a, b)]
    return float((flat[0] - flat[1]).norm() / flat[1].norm())


@pytest.fixture(autouse=True)
def as_before():
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_the_loss_is_that_of_the_model(config):
    torch.manual_seed(1)
    model = GPT(config).double()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    ids, targets = torch.randint(50, (2, 3, 16))
    plain = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    expected = torch.autograd.grad(plain, list(model.parameters()))
    loss = Loss(model, torch.float64)(ids, targets)
    assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
    for mine, exact in zip(torch.autograd.grad(loss, list(model.parameters())), expected, strict=True):
        assert float((mine - exact).norm()) <= 1e-5 * float(exact.norm()) + 1e-12  # that of a key's bias is zero


def test_dropout_acts_in_training_and_only_there():
    torch.manual_seed(1)
    loss = Loss(GPT(MODELS["llama"]), torch.float32, dropout=0.5)
    ids, targets = torch.randint(50, (2, 3, 16))
    assert loss(ids, targets).item() != loss(ids, targets).item()
    loss.eval()
    assert loss(ids, targets).item() == pytest.approx(Loss(loss.model, torch.float32)(ids, targets).item(), rel=1e-6)


def test_windows_begin_with_bos_and_ask_for_the_next_token():
    ids, targets = windows(torch.arange(10, 20), torch.tensor([0, 6]), 4, bos=99)
    assert ids.tolist() == [[99, 10, 11, 12], [99, 16, 17, 18]]
    assert targets.tolist() == [[10, 11, 12, 13], [16, 17, 18, 19]]


def test_every_window_of_the_text_can_be_drawn_and_steps_draw_different_ones():
    settings = replace(TINY, T=30, batch=64, micro=64)
    trainer = Trainer(settings, torch.arange(32), CPU)
    first = trainer.batch()[1]
    assert set(first[:, 0].tolist()) == {0, 1, 2} and torch.equal(first, trainer.batch()[1])
    trainer.step += 1
    assert not torch.equal(first, trainer.batch()[1])


def test_accumulated_parts_give_the_step_of_the_whole_batch():
    whole, parts = (trained(replace(TINY, micro=micro), 3).model.state_dict() for micro in (8, 2))
    assert distance(parts, whole) < 1e-5
    assert distance(trained(TINY, 2).model.state_dict(), whole) > 1e-3  # what a step changes is far more


def test_the_rate_rises_and_falls_and_only_matrices_decay():
    trainer = trained(TINY, 5)
    assert [group["lr"] for group in trainer.optimiser.param_groups] == [TINY.peak] * 2
    matrices, vectors = trainer.optimiser.param_groups
    assert matrices["weight_decay"] == 0.1 and vectors["weight_decay"] == 0
    assert {p.ndim for p in matrices["params"]} == {2} and {p.ndim for p in vectors["params"]} == {1}
    trainer.step = TINY.steps - 1
    trainer.take_step()
    assert matrices["lr"] == 0


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_stopped_run_goes_on_to_the_same_bits(dropout, tmp_path):
    settings = replace(TINY, dropout=dropout)
    straight = trained(settings, 7)
    trained(settings, 4).save(tmp_path / "checkpoint.pt")
    torch.manual_seed(77)
    again = Trainer(settings, random_tokens(settings.model.V), CPU)
    again.load(tmp_path / "checkpoint.pt")
    assert again.step == 4
    for _ in range(3):
        again.take_step()
    for name, weight in straight.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name]), name


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    trained(TINY, 1).save(tmp_path / "checkpoint.pt")
    other = trained(replace(TINY, peak=1e-3), 0)
    with pytest.raises(ValueError, match="run with other settings"):
        other.load(tmp_path / "checkpoint.pt")


def test_training_learns_measures_and_saves(tmp_path):
    pattern = torch.arange(7).repeat(60)
    trainer = Trainer(replace(TINY, steps=40, peak=2e-2), pattern, CPU)
    curve = train(trainer, pattern[:70], every=20, path=tmp_path / "checkpoint.pt")
    assert [row["step"] for row in curve] == [20, 40] and all(row["tokens_per_s"] > 0 for row in curve)
    assert curve[-1]["validation"] < 1.0 < 1.9 < curve[0]["training"]  # ln 7 is 1.95, ln 320 is 5.77
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 40


def test_what_does_not_fit_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="micro = 3 windows do not divide the batch of 8"):
        replace(TINY, micro=3)
    with pytest.raises(ValueError, match="longer than the T_max = 16"):
        replace(TINY, model=MODELS["gpt-2"])
    with pytest.raises(ValueError, match="a text of 5 tokens has no window of 32"):
        Trainer(TINY, torch.arange(5), CPU)
    with pytest.raises(ValueError, match="3 processes with 4 windows at once do not divide the batch of 8"):
        Trainer(TINY, torch.arange(50), Place(CPU.device, 0, 3))


def in_processes(path: Path, until: int, world: int = 1) -> dict:
    """The file that take_steps.py writes."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(world):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        env = os.environ | {name: str(value) for name, value in env.items()}
        if world > 1:
            env["CUDA_VISIBLE_DEVICES"] = ""
        command = [sys.executable, str(HERE / "take_steps.py"), str(path), str(until)]
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for process in started:
        out, _ = process.communicate()
        assert process.returncode == 0, out
    return torch.load(path, weights_only=True, map_location="cpu")


def test_two_processes_take_the_steps_of_one(tmp_path):
    two = in_processes(tmp_path / "two.pt", 4, world=2)["model"]
    trainer = Trainer(TINY, random_tokens(TINY.model.V, 2000), CPU)
    for _ in range(4):
        trainer.take_step()
    assert distance(two, trainer.model.state_dict()) < 1e-5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_a_new_process_goes_on_to_the_same_bits(tmp_path):
    straight = in_processes(tmp_path / "straight.pt", 8)["model"]
    in_processes(tmp_path / "stopped.pt", 5)
    again = in_processes(tmp_path / "stopped.pt", 8)["model"]
    assert all(torch.equal(weight, again[name]) for name, weight in straight.items())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "config", [replace(GPT2, V=384, n_layers=2, d_model=128, n_heads=2), Config(V=384, d_model=128, n_heads=4)]
)
def test_on_a_gpu_the_compiled_loss_is_that_of_the_model(config):
    torch.manual_seed(1)
    model = GPT(config).cuda()
    ids, targets = torch.randint(384, (2, 4, 200), device="cuda")
    plain = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
    expected = torch.autograd.grad(plain, list(model.parameters()))
    loss = Loss(model, torch.bfloat16, compiled=True)(ids, targets)
    assert loss.item() == pytest.approx(plain.item(), rel=2e-3)
    for mine, exact in zip(torch.autograd.grad(loss, list(model.parameters())), expected, strict=True):
        assert float((mine - exact).norm()) <= 0.05 * float(exact.norm()) + 1e-5
