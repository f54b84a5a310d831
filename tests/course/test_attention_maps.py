"""The reference code of ch13 against independent oracles."""

import torch

from course import attention_maps, decay_law
from course.model import Config
from tests.course.test_model import ids_of, llama_of, model_of

SMALL = Config(V=61, d_model=48, n_layers=3, n_heads=6, n_kv_heads=2, d_ff=40, theta=500.0)


def test_the_weights_that_are_shown_are_hugging_faces():
    model, ids = model_of(SMALL), ids_of(2, 19)
    shown = []
    logits = attention_maps.look(model, ids, lambda layer, weights, stream: shown.append((layer, weights, stream)))
    with torch.no_grad():
        theirs = llama_of(model)(ids, output_attentions=True, output_hidden_states=True)
    assert [layer for layer, _, _ in shown] == [0, 1, 2] and torch.equal(logits, model(ids))
    for (_, weights, stream), expected, hidden in zip(shown, theirs.attentions, theirs.hidden_states, strict=False):
        assert torch.allclose(weights.float(), expected.float(), atol=1e-5)
        assert torch.allclose(stream.float(), hidden.float(), atol=1e-4)
    assert not any(block._forward_pre_hooks or block.attention._forward_pre_hooks for block in model.blocks)


def test_a_profile_is_the_mean_weight_at_each_distance():
    weights = torch.rand(2, 30, 30, generator=torch.Generator().manual_seed(0))
    found = attention_maps.distance_profile(weights, first=3, start=0.5)
    expected = [[sum(float(w[i, i - r]) for i in range(15, 30)) / 15 for r in range(13)] for w in weights]
    assert found.shape == (2, 13) and torch.allclose(found, torch.tensor(expected))


def test_even_attention_has_no_slope():
    """Over all queries its mean weight falls with distance, since far keys are seen by late queries only; not over these."""
    T = 200
    even = torch.tril(torch.ones(T, T)) / torch.arange(1, T + 1)[:, None]
    found = attention_maps.distance_profile(even)
    assert torch.allclose(found, found[:1].expand_as(found), rtol=1e-6)
    assert abs(float(decay_law.decay_fit(found)["power"])) < 1e-6
