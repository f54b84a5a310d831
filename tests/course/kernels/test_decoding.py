"""The fast decoder against the GPT with its cache: the same logits, the same tokens, for all of its parts."""

import pytest
import torch

from course.kernels.decoding import Decoder, _Linear
from course.model import GPT, Config

LLAMA = dict(V=61, d_model=64, n_layers=1, n_heads=4, n_kv_heads=2, d_ff=40)
GPT2 = dict(
    V=61, d_model=48, n_layers=2, n_heads=3, T_max=32, norm="layer", position="learned", ffn="gelu_tanh", tied=True, bias=True
)
pytestmark = pytest.mark.usefixtures("small_programs")

MODELS = {
    "llama": LLAMA, "gpt-2": GPT2, "gelu": GPT2 | {"ffn": "gelu", "tied": False}, "llama with biases": LLAMA | {"bias": True},
}  # fmt: skip


def model_of(config: dict, device, dtype=torch.float16) -> GPT:
    """Weights large enough that the likeliest token is clear."""
    torch.manual_seed(0)
    model = GPT(Config(**config))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.2 * torch.randn(parameter.shape) + (parameter.ndim == 1))
    return model.to(device, dtype).requires_grad_(False)


@pytest.mark.parametrize("B", [1, 3, 5])
@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
def test_logits_and_tokens_are_those_of_the_model(config, B, device):
    model = model_of(config, device)
    ids = torch.randint(61, (B, 6), generator=torch.Generator().manual_seed(1)).to(device)
    decoder = Decoder(model, B, 8)
    tokens = decoder.generate(ids, 2)
    assert tokens.shape == (B, 8) and torch.equal(tokens[:, :6], ids)
    exact = model.double()(tokens[:, :-1])  # (B, 7, V): what the model makes of the decoder's own tokens
    error = (decoder.logits.double() - exact[:, -1]).norm() / exact[:, -1].norm()
    assert float(error) < 4e-3
    best = exact[:, 5:].max(dim=-1).values
    taken = exact[:, 5:].gather(-1, tokens[:, 6:, None])[..., 0]
    assert bool((best - taken <= 1e-2 * exact.std()).all())  # the likeliest, but for a tie within rounding


@pytest.mark.parametrize("new", [2, 5])
@pytest.mark.parametrize("config", [LLAMA, GPT2], ids=["llama", "gpt-2"])
def test_several_new_tokens_are_read_at_once(config, new, device):
    model = model_of(config, device)
    ids = torch.randint(61, (2, 4 + new), generator=torch.Generator().manual_seed(1)).to(device)
    decoder = Decoder(model, 2, 10)
    decoder.tokens[:, : 4 + new] = ids
    decoder.start(ids[:, :5])
    logits = decoder.read(new).double().view(2, new, -1)
    exact = model.double()(ids)[:, 4:]  # (2, new, V)
    assert float((logits - exact).norm() / exact.norm()) < 4e-3


@pytest.mark.parametrize("B", [1, 3, 20])
def test_a_row_with_a_large_mean_is_normed(B, device):
    """Its variance of 3 is 10⁻⁶ of its mean square: the mean of squares less the square of the mean keeps no digit of it."""
    norm, layer = torch.nn.LayerNorm(64), torch.nn.Linear(64, 24)
    x = 2000 + 2 * torch.randint(-1, 2, (B, 64), generator=torch.Generator().manual_seed(2)).to(device, torch.float16)
    norm, layer = norm.to(device, torch.float16), layer.to(device, torch.float16)
    exact = layer.double()(norm.double()(x.double()))
    ours = _Linear([layer.half()], norm.half())(x)
    assert float((ours.double() - exact).detach().norm() / exact.detach().norm()) < 5e-3


def test_a_second_prompt_sees_nothing_of_the_first(device):
    model = model_of(LLAMA, device)
    decoder = Decoder(model, 1, 14)
    first, second = (torch.randint(61, (1, n), generator=torch.Generator().manual_seed(n)).to(device) for n in (12, 1))
    decoder.generate(first, 1)
    assert torch.equal(decoder.generate(second, 2), Decoder(model, 1, 14).generate(second, 2))
    assert torch.equal(decoder.generate(second, 0), second)


def test_what_does_not_fit_is_refused_in_a_sentence(device):
    model = model_of(GPT2, device)
    with pytest.raises(ValueError, match="more than the T_max = 32"):
        Decoder(model, 1, 33)
    with pytest.raises(TypeError, match="bfloat16 or float16"):
        Decoder(model_of(GPT2, device, torch.float32), 1, 8)
    decoder = Decoder(model, 2, 8)
    ids = torch.zeros(2, 6, dtype=torch.int64, device=device)
    with pytest.raises(ValueError, match="do not fit into a length of 8"):
        decoder.generate(ids, 3)
    with pytest.raises(ValueError, match=r"ids must be \(2, T\)"):
        decoder.generate(ids[:1], 1)
