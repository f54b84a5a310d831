"""The GPT of the page: its bytes are near its weights, and what is stored is what the record tells of."""

import numpy as np
import pytest
import torch

from course.checkpoint import load_gpt
from course.data import record
from course.follow import LEVELS, load_follow, quantised, save_follow, stored
from course.model import GPT, Config
from course.tokens import BYTES, bpe_encode


def test_a_matrix_is_within_half_a_step_of_its_bytes():
    weight = torch.randn(5, 40, generator=torch.Generator().manual_seed(1)) * torch.tensor([[1e-3], [1.0], [50.0], [0.2], [0.0]])
    whole, step = quantised(weight)
    assert whole.dtype == torch.int8 and step.shape == (5,)
    assert (whole.abs().amax(dim=1)[:4] == LEVELS).all() and (whole[4] == 0).all()
    assert ((whole * step[:, None] - weight).abs() <= 0.5001 * step[:, None]).all()


@pytest.mark.parametrize("weight", [torch.ones(3), torch.tensor([[1.0, torch.inf]])])
def test_what_is_no_matrix_of_numbers_is_refused(weight):
    with pytest.raises(ValueError, match="matrix of finite numbers"):
        quantised(weight)


def test_a_model_comes_back_as_its_bytes_say(tmp_path):
    torch.manual_seed(2)
    model, merges = GPT(Config(V=BYTES + 3, d_model=16, n_layers=2, n_heads=2, tied=True)), [(97, 98), (256, 99)]
    save_follow(model, merges, tmp_path / "a.npz")
    back, pairs = load_follow(tmp_path / "a.npz")
    assert pairs == merges and back.config == model.config and back.head.weight is back.embedding.weight
    for name, parameter in back.named_parameters():
        before = model.get_parameter(name)
        if parameter.ndim == 1:
            assert torch.equal(parameter, before)
        else:
            whole, step = quantised(before)
            assert torch.equal(parameter, whole * step[:, None])
    save_follow(back, merges, tmp_path / "b.npz")  # what is on the grid stays
    assert all(
        np.allclose(a, b, rtol=1e-6, atol=0)
        for a, b in zip(*(list(stored(tmp_path / f"{n}.npz").values())[1:] for n in "ab"), strict=True)
    )
    with pytest.raises(ValueError, match="1 merges and BOS make 258"):
        save_follow(model, merges[:1], tmp_path / "c.npz")
    with pytest.raises(FileNotFoundError, match=r"experiments/follow\.py"):
        load_follow(tmp_path / "d.npz")


def test_the_model_of_the_page_is_that_of_the_record():
    model, merges = load_follow()
    told = record("follow")
    assert told["results"]["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert merges == load_gpt()[1][: len(merges)]
    for scores in told["results"]["held_out"].values():
        assert scores["int8"]["nats_per_token"] == pytest.approx(scores["float32"]["nats_per_token"], abs=0.02)
        assert scores["int8"]["bits_per_byte"] < scores["1-gram"]["bits_per_byte"]
    check = told["results"]["check"]
    ids = torch.tensor([[model.config.V - 1, *bpe_encode(check["text"], merges)]])
    with torch.no_grad():
        nats = torch.nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:])
    assert nats.item() == pytest.approx(check["nats_per_token"], abs=1e-4)
