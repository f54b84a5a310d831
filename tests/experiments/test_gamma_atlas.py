"""Many models as one program are what each is alone; texts, grid and readings of the atlas are what its script says."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course.attention_maps import distance_profile, look
from course.decay_law import decay_fit
from course.gamma_atlas import BASE, QUESTIONS, SYNTHETIC, contrast
from course.model import GPT
from experiments import gamma_atlas as atlas

STEPS, STEP, LENGTH, HELD = 4, 1024, 60_000, 2048
TINY = BASE | {"T": 256, "n_layers": 2, "d_model": 32, "n_heads": 2, "tokens": STEPS * STEP, "seed": 0}


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def windows(model: dict, i: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The batch of step i, by the script's words: BOS and T − 1 bytes, cut where the seed says."""
    T, (ids, _) = model["T"], atlas.text(model["text"], LENGTH)
    place = torch.rand(STEPS, STEP // T, generator=torch.Generator().manual_seed(1_000 + model["seed"]), dtype=torch.float64)[i]
    inputs, targets = [], []
    for start in (1 + (place * (len(ids) - T - 1)).long()).tolist():
        first = [0] if model["mark"] else ids[start - 1 : start].tolist()
        inputs.append(first + ids[start : start + T - 1].tolist())
        targets.append(ids[start : start + T].tolist())
    return torch.tensor(inputs), torch.tensor(targets)


def alone(model: dict) -> tuple[GPT, list[float]]:
    """The model trained as any other: the course's GPT, torch's AdamW, torch's clipping."""
    torch.manual_seed(model["seed"])
    gpt = GPT(atlas.config(model))
    groups = [
        {"params": [p for p in gpt.parameters() if p.ndim == 2], "weight_decay": 0.1},
        {"params": [p for p in gpt.parameters() if p.ndim == 1], "weight_decay": 0},
    ]
    optimiser, losses = torch.optim.AdamW(groups, betas=(0.9, 0.95)), []
    for i in range(STEPS):
        ids, targets = windows(model, i)
        for group in optimiser.param_groups:
            group["lr"] = model["rate"] * atlas.schedule(i, STEPS)
        loss = F.cross_entropy(gpt(ids).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return gpt, losses


STACKS = {
    "rope": [TINY, TINY | {"theta": 1e2, "seed": 1}, TINY | {"text": "copies_1.3", "mark": False}],
    "learned": [TINY | {"position": "learned"}, TINY | {"position": "learned", "text": "shuffled", "seed": 1}],
}


@pytest.mark.parametrize("models", STACKS.values(), ids=STACKS)
def test_a_stack_trains_as_its_models_do_alone(models):
    weights, losses = atlas.train(models, "cpu", LENGTH, STEP)
    for i, model in enumerate(models):
        gpt, expected = alone(model)
        assert losses[:, i].tolist() == pytest.approx(expected, abs=1e-5)
        trained = GPT(atlas.config(model))
        trained.load_state_dict({name: x[i] for name, x in weights.items()})
        ids, targets = atlas.held_out(model["text"], 256, model["mark"], LENGTH, HELD)
        ours, theirs = (atlas.read(each, ids, targets) for each in (trained, gpt))
        assert ours["profile"] == pytest.approx(theirs["profile"], abs=1e-5)
        assert ours["bits"] == pytest.approx(theirs["bits"], abs=1e-4)
        assert ours["first"] == pytest.approx(theirs["first"], abs=1e-5)


def test_models_of_a_stack_do_not_touch_each_other():
    """A model's losses do not depend on what is trained beside it."""
    other = TINY | {"text": "copies_1.3", "theta": 1e2, "seed": 7}
    together = atlas.train([TINY, other], "cpu", LENGTH, STEP)[1][:, 0]
    assert together.tolist() == pytest.approx(atlas.train([TINY], "cpu", LENGTH, STEP)[1][:, 0].tolist(), abs=1e-5)


def test_gradients_are_cut_for_each_model_alone():
    p = torch.zeros(2, 3, 4, requires_grad=True)
    p.grad = torch.stack([torch.full((3, 4), 10.0), torch.full((3, 4), 0.01)])
    atlas.cut([p])
    assert p.grad[0].norm() == pytest.approx(1.0, abs=1e-5) and torch.equal(p.grad[1], torch.full((3, 4), 0.01))


def test_what_is_read_is_the_mean_over_all_windows_layers_and_heads():
    torch.manual_seed(0)
    gpt, seen = GPT(atlas.config(TINY)), []
    for p in gpt.parameters():
        p.data *= 4
    ids, targets = atlas.held_out("austen", 256, True, LENGTH, HELD)
    said = look(gpt, ids, lambda layer, weights, stream: seen.append(weights))
    row, weights = atlas.read(gpt, ids, targets), torch.stack(seen)  # (L, B, H, T, T)
    profiles = distance_profile(weights).mean(dim=(0, 2))[:, 1:]  # (B, D)
    assert row["profile"] == pytest.approx(profiles[:4].mean(dim=0).tolist(), abs=1e-6)
    assert row["profile_held"] == pytest.approx(profiles[4:].mean(dim=0).tolist(), abs=1e-6)
    assert row["gamma"] == pytest.approx(
        float(decay_fit(distance_profile(weights).mean(dim=(0, 1, 2)), 4, 128)["power"]), abs=1e-5
    )
    assert row["first"] == pytest.approx(float(weights[..., 154:, 0].mean()), abs=1e-6)
    entropy = -(weights[..., 154:, :] * weights[..., 154:, :].clamp_min(1e-30).log()).sum(dim=-1).mean()
    assert row["entropy"] == pytest.approx(float(entropy), rel=1e-4)
    assert row["bits"] == pytest.approx(float(F.cross_entropy(said.flatten(0, 1), targets.flatten())) / np.log(2), rel=1e-5)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("name", atlas.FEATURES)
def test_a_law_that_holds_is_found_and_misses_nothing(name):
    d = torch.arange(1, 201, dtype=torch.float64)
    true = {
        "power": d**-0.8,
        "exponential": (-d / 30).exp(),
        "log_normal": (-((d.log() - 3) ** 2)).exp(),
        "cut_off": d**-0.5 * (-d / 50).exp(),
    }
    profile = torch.cat([torch.tensor([9.0], dtype=torch.float64), true[name]])
    nats = atlas.rivals(profile, profile)
    assert nats[name] == pytest.approx(0, abs=1e-9)
    nests = {"power": ["log_normal", "cut_off"], "exponential": ["cut_off"]}.get(name, [])
    assert all(
        nats[other] == pytest.approx(0, abs=1e-9) if other in nests else nats[other] > 1e-4 for other in nats if other != name
    )


def test_the_likeliest_law_is_the_likeliest_of_many():
    random = np.random.default_rng(3)
    p = torch.from_numpy(random.dirichlet(np.ones(60)))
    d = torch.arange(4, 64, dtype=torch.float64)
    ours = float((p * atlas.likeliest(d.log()[:, None], p)).sum())
    others = [float((p * (-a * d.log()).log_softmax(dim=0)).sum()) for a in np.linspace(-3, 3, 6001)]
    assert max(others) <= ours + 1e-12 and max(others) == pytest.approx(ours, abs=1e-6)


# ---------------------------------------------------------------- texts


def test_no_text_has_the_mark_and_held_out_text_is_not_trained_on():
    for name in ("austen", "shakespeare", "mixture", "shuffled", *SYNTHETIC):
        ids, held = atlas.text(name, LENGTH)
        assert not (ids == 0).any() and not (held == 0).any()
        assert (len(ids), len(held)) == (LENGTH * 19 // 20, LENGTH // 20)


@pytest.mark.parametrize("name", ["copies_0.7", "copies_1.3", "copies_geometric"])
def test_the_best_predictor_of_a_copying_text_weighs_distances_by_the_law(name):
    """Least squares of "is it this sign?" on the same of the signs before it gives 0.9 times the law of distances."""
    n, farthest = 150_000, 12
    ids, d = atlas.synthetic(name, n, signs=4, farthest=farthest), np.arange(1, 13)
    law = np.exp(-d / 32) if name == "copies_geometric" else d ** -float(name.partition("_")[2])
    past = np.stack([ids[farthest - k : n - k] == 1 for k in d], axis=1).astype(float)
    weights, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(past)), past]), (ids[farthest:] == 1).astype(float), rcond=None)
    assert weights[1:] == pytest.approx(0.9 * law / law.sum(), abs=0.015)


def test_the_lazy_chain_forgets_at_its_rate():
    ids = atlas.synthetic("lazy_chain", 400_000)
    for d in (1, 10, 30):
        expected = 0.95**d + (1 - 0.95**d) / 64
        assert np.mean(ids[d:] == ids[:-d]) == pytest.approx(expected, abs=0.01)


# ---------------------------------------------------------------- the grid


def test_the_grid_has_what_the_questions_need_and_nothing_twice():
    settings = atlas.cells()
    assert len({tuple(each.values()) for each in settings}) == len(settings) >= 36
    models = [model for stack in atlas.stacks(settings) for model in stack]
    assert len(models) == 5 * len(settings) == len({atlas.key(model) for model in models})
    reads = ("own", "short", "shuffled", "foreign", "untrained")
    values = {"gamma": 0.5, "exponential_gain": 0.0, "first": 0.1}
    rows = [each | values | {"read": read, "seed": seed} for each in settings for read in reads for seed in (0, 1, 2)]
    assert all(len(contrast(rows, question)) == 3 for question in QUESTIONS)


def test_models_of_a_stack_differ_only_in_what_a_stack_may_differ_in():
    for stack in atlas.stacks(atlas.cells()):
        assert len({tuple(v for k, v in model.items() if k not in ("text", "theta", "mark", "seed")) for model in stack}) == 1
        assert len(stack) <= atlas.MOST


def test_a_run_goes_on_where_another_stopped(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(atlas, "train", lambda models, *_: trained.append(models) or ({}, torch.zeros(1, len(models))))
    monkeypatch.setattr(atlas, "readings", lambda model, *_: [model | {"read": "own", "gamma": 0.0}])
    file, sizes = tmp_path / "atlas.jsonl", {"length": 0, "step": 0, "held": 0}
    plan = [[TINY], [TINY | {"seed": 1}, TINY | {"seed": 2}]]
    assert atlas.run(plan[:1], {}, file, "cpu", float("inf"), sizes)
    file.write_text(file.read_text() + '[{"cut o')
    done = atlas.finished([file, tmp_path / "none"])
    assert list(done) == [atlas.key(TINY)]
    assert atlas.run(plan, done, file, "cpu", float("inf"), sizes) and trained == [[TINY], plan[1]]
    assert not atlas.run([[TINY | {"seed": 9}]], done, file, "cpu", 0.0, sizes) and len(trained) == 2
    assert len([line for line in file.read_text().splitlines() if json.loads(line)]) == 3
