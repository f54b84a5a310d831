"""The model that ships: it loads, it is the one of the record, and it has read what the record says."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course import data
from course.checkpoint import load_gpt, save_gpt
from course.model import GPT, Config
from course.tokens import bpe_decode, bpe_encode

RECORD = data.record("training")
FOUND = RECORD["results"]


@pytest.fixture(scope="module")
def loaded():
    return load_gpt()


def test_it_is_the_recorded_model(loaded):
    model, merges = loaded
    assert sum(p.numel() for p in model.parameters()) == FOUND["parameters"]
    assert model.config == Config(**RECORD["settings"]["model"]) and 256 + len(merges) + 1 == model.config.V
    assert not model.training and {p.dtype for p in model.parameters()} == {torch.float32}


def test_the_loss_on_held_out_text_is_the_recorded_one(loaded):
    """Two windows of BOS and text; the second half of each and of the window between them is counted."""
    model, merges = loaded
    check, T = FOUND["check"], RECORD["settings"]["T"]
    text = data.read(check["text"])[-FOUND["texts"]["held_out_characters"] :]
    tokens = torch.tensor(bpe_encode(text[:10_000], merges)[: check["tokens"]])
    bos, nats = torch.tensor([model.config.V - 1]), []
    for start in range(0, len(tokens) - T + 1, T // 2):
        ids = torch.cat([bos, tokens[start : start + T - 1]])[None]
        with torch.no_grad():
            logits = model(ids)[0, T // 2 :]
        nats.append(F.cross_entropy(logits, tokens[start + T // 2 : start + T]))
    assert float(torch.stack(nats).mean()) == pytest.approx(check["nats_per_token"], abs=2e-4)


def test_it_knows_what_comes_next(loaded):
    model, merges = loaded
    for prompt, word in {"I am very much obliged to": " you", "**HAMLET**": "  ", "She could not": " be"}.items():
        ids = torch.tensor([[model.config.V - 1, *bpe_encode(prompt, merges)]])
        with torch.no_grad():
            best = model(ids)[0, -1].topk(5).indices.tolist()
        assert word in [bpe_decode([i], merges) for i in best], prompt


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_saved_is_loaded(tied, tmp_path):
    torch.manual_seed(0)
    model = GPT(Config(V=259, d_model=16, n_layers=1, n_heads=2, tied=tied, norm="layer", bias=True))
    save_gpt(model, [(97, 98), (256, 99)], tmp_path / "small.npz")
    again, merges = load_gpt(tmp_path / "small.npz")
    assert merges == [(97, 98), (256, 99)] and again.config == model.config
    for name, parameter in model.named_parameters():
        assert torch.equal(dict(again.named_parameters())[name], parameter.half().float())
    assert (again.head.weight is again.embedding.weight) == tied


def test_what_cannot_be_saved_or_loaded_is_refused_in_a_sentence(tmp_path):
    model = GPT(Config(V=257, d_model=16, n_layers=1, n_heads=2))
    with pytest.raises(ValueError, match="1 merges and BOS make 258 tokens, the model has V = 257"):
        save_gpt(model, [(97, 98)], tmp_path / "small.npz")
    model.head.weight.data[0, 0] = 1e6
    with pytest.raises(ValueError, match=r"head.weight has a weight that float16 does not hold"):
        save_gpt(model, [], tmp_path / "small.npz")
    with pytest.raises(FileNotFoundError, match=r"run python experiments/training.py"):
        load_gpt(tmp_path / "none.npz")


def test_the_file_holds_arrays_only():
    """Nothing that runs when it is read."""
    with np.load(data.HERE / "gpt.npz", allow_pickle=False) as stored:
        assert json.loads(str(stored["config"]))["V"] == 2048 and {stored[name].dtype.kind for name in stored} <= set("fiU")
