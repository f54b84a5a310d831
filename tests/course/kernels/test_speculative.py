"""Speculative decoding: every sequence has exactly the target's probability, and greedy tokens are the target's."""

from collections import defaultdict
from itertools import product

import pytest
import torch

from course.kernels import speculative
from course.kernels.decoding import Decoder
from course.kernels.speculative import SpeculativeDecoder, generate
from course.model import GPT, Config


def model_of(seed: int, **config) -> GPT:
    """Weights large enough that a target and its draft differ."""
    torch.manual_seed(seed)
    model = GPT(Config(**config)).double()
    for parameter in model.parameters():
        parameter.data += 0.8 * torch.randn_like(parameter)
    return model.requires_grad_(False)


pytestmark = pytest.mark.usefixtures("small_programs")

TARGET = dict(V=3, d_model=8, n_layers=1, n_heads=2)
DRAFT = dict(V=3, d_model=4, n_layers=1, n_heads=1)


class Everything:
    """Takes the place of chance: each run follows one branch of all choices, until all have been taken."""

    def __init__(self):
        self.path, self.at, self.probability = [], 0, 1.0

    def choose(self, probabilities: list[float]) -> int:
        if self.at == len(self.path):
            self.path.append([[i for i, p in enumerate(probabilities) if p > 0], 0])
        options, taken = self.path[self.at]
        self.at += 1
        self.probability *= probabilities[options[taken]]
        return options[taken]

    def next(self) -> bool:
        """Go to the next branch."""
        self.at, self.probability = 0, 1.0
        while self.path and self.path[-1][1] + 1 == len(self.path[-1][0]):
            self.path.pop()
        if self.path:
            self.path[-1][1] += 1
        return bool(self.path)

    def draw(self, weights, generator):
        return torch.tensor([[self.choose((weights[0] / weights[0].sum()).tolist())]], device=weights.device)

    def coins(self, probabilities, generator):
        return torch.tensor([bool(self.choose([1 - p, p])) for p in probabilities.tolist()], device=probabilities.device)


@pytest.mark.parametrize("guesses", [0, 1, 2])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_every_sequence_has_the_probability_that_the_target_gives_it(guesses, temperature, monkeypatch):
    target, draft = model_of(0, **TARGET), model_of(1, **DRAFT)
    chance, found = Everything(), defaultdict(float)
    monkeypatch.setattr(speculative, "_draw", chance.draw)
    monkeypatch.setattr(speculative, "_coins", chance.coins)
    prompt, kept = torch.tensor([[2, 0]]), 0.0
    while True:
        ids, counts = generate(target, draft, prompt, 3, guesses, temperature)
        found[tuple(ids[0, 2:].tolist())] += chance.probability
        kept += chance.probability * counts.kept
        if not chance.next():
            break
    for sequence in product(range(3), repeat=3):
        ids = torch.cat([prompt, torch.tensor([sequence])], dim=1)
        p = (target(ids)[0, 1:-1].float() / temperature).softmax(dim=-1)  # (3, V)
        expected = float(p.gather(1, torch.tensor(sequence)[:, None]).prod())
        assert found[sequence] == pytest.approx(expected, abs=1e-6), sequence
    assert (kept > 0) == (guesses > 0)


@pytest.mark.parametrize("guesses", [1, 3, 8])
def test_greedy_tokens_are_those_of_the_target(guesses):
    sizes = dict(V=20, d_model=16, n_layers=2, n_heads=2)
    target, draft = model_of(0, **sizes), model_of(1, **sizes | {"n_layers": 1})
    prompt = torch.tensor([[5, 7, 1]])
    ids, counts = generate(target, draft, prompt, 25, guesses, temperature=0)
    expected = prompt
    while expected.shape[1] < 28:
        expected = torch.cat([expected, target(expected)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(ids, expected)
    assert counts.passes + counts.kept == 25 and counts.kept < counts.guessed


def test_a_draft_that_is_the_target_is_always_kept():
    target = model_of(0, V=20, d_model=16, n_layers=1, n_heads=2)
    ids, counts = generate(target, model_of(0, V=20, d_model=16, n_layers=1, n_heads=2), torch.tensor([[3]]), 20, 4)
    assert ids.shape == (1, 21) and counts.kept == counts.guessed == 16 and counts.passes == 4


# ---------------------------------------------------------------- the fast form


def halved(model: GPT, device) -> GPT:
    return model.to(device, torch.float16)


@pytest.mark.parametrize("guesses", [0, 1, 2, 3] if torch.cuda.is_available() else [0, 1])
def test_every_sequence_of_the_fast_form_has_the_probability_that_the_target_gives_it(guesses, monkeypatch, device):
    sizes = dict(V=2, d_model=16, n_layers=1, n_heads=1)
    target, draft = halved(model_of(0, **sizes), device), halved(model_of(1, **sizes), device)
    chance, found, kept = Everything(), defaultdict(float), 0.0
    monkeypatch.setattr(speculative, "_draw", chance.draw)
    monkeypatch.setattr(speculative, "_coins", chance.coins)
    monkeypatch.setattr(SpeculativeDecoder, "_captured", lambda self: None)  # a graph would repeat one branch
    decoder = SpeculativeDecoder(target, draft, 4, guesses, temperature=4.0)
    prompt = torch.tensor([[1, 0]], device=device)
    while True:
        ids, counts = decoder.generate(prompt, 2)
        found[tuple(ids[0, 2:].tolist())] += chance.probability
        kept += chance.probability * counts.kept
        if not chance.next():
            break
    for sequence in product(range(2), repeat=2):
        ids = torch.cat([prompt, torch.tensor([sequence], device=device)], dim=1)
        p = (target.double()(ids)[0, 1:-1] / 4.0).softmax(dim=-1)  # (2, V)
        assert found[sequence] == pytest.approx(float(p.gather(1, ids[0, 2:, None]).prod()), abs=2e-3), sequence
    assert (kept > 0.1) == (guesses > 0)


def test_greedy_tokens_of_the_fast_form_are_those_of_the_target(device):
    sizes = dict(V=20, d_model=16, n_layers=1, n_heads=2)
    target, draft = (halved(model_of(seed, **sizes), device) for seed in (0, 1))
    decoder, plain = SpeculativeDecoder(target, draft, 9, guesses=2, temperature=0), Decoder(target, 1, 9)
    for prompt, new in (([3], 4), ([5, 7, 1, 1, 4], 4), ([7, 5], 1)):  # a later prompt sees nothing of those before
        prompt = torch.tensor([prompt], device=device)
        ids, counts = decoder.generate(prompt, new)
        assert torch.equal(ids, plain.generate(prompt, new))
        assert counts.guessed == 2 * counts.passes and counts.passes + counts.kept >= new


def test_a_draft_that_is_the_target_is_always_kept_in_the_fast_form(device):
    target = halved(model_of(0, V=20, d_model=16, n_layers=1, n_heads=2), device)
    _, counts = SpeculativeDecoder(target, target, 7, guesses=2, temperature=0).generate(torch.tensor([[3]], device=device), 6)
    assert (counts.passes, counts.guessed, counts.kept) == (2, 4, 4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: so many runs take a graph")
def test_a_graph_draws_anew_each_time_and_as_the_target_would():
    sizes = dict(V=3, d_model=16, n_layers=1, n_heads=1)
    target, draft = halved(model_of(0, **sizes), "cuda"), halved(model_of(1, **sizes), "cuda")
    prompt, n = torch.tensor([[2, 0]], device="cuda"), 2000
    decoder = SpeculativeDecoder(target, draft, 4, guesses=2, generator=torch.Generator("cuda").manual_seed(0))
    counted = defaultdict(int)
    for _ in range(n):
        counted[tuple(decoder.generate(prompt, 2)[0][0, 2:].tolist())] += 1
    for sequence in product(range(3), repeat=2):
        ids = torch.cat([prompt, torch.tensor([sequence], device="cuda")], dim=1)
        p = float(target.double()(ids)[0, 1:-1].softmax(dim=-1).gather(1, ids[0, 2:, None]).prod())
        target.half()
        assert abs(counted[sequence] - n * p) < 5 * (n * p * (1 - p)) ** 0.5 + 1, sequence


def test_what_does_not_fit_is_refused_in_a_sentence(device):
    target, draft = model_of(0, **TARGET), model_of(1, **DRAFT)
    with pytest.raises(ValueError, match="one vocabulary, got V = 4 and 3"):
        generate(target, model_of(1, **DRAFT | {"V": 4}), torch.tensor([[0]]), 1)
    with pytest.raises(ValueError, match=r"ids must be \(1, T\)"):
        generate(target, draft, torch.zeros(2, 3, dtype=torch.int64), 1)
    with pytest.raises(ValueError, match="must be 0 or more"):
        generate(target, draft, torch.tensor([[0]]), -1)
    with pytest.raises(ValueError, match="guesses and temperature must be 0 or more"):
        SpeculativeDecoder(target, draft, 8, guesses=-1)
    target, draft = (halved(model_of(0, V=3, d_model=16, n_layers=1, n_heads=1), device) for _ in range(2))
    with pytest.raises(ValueError, match="7 tokens and 2 new ones do not fit into a length of 8"):
        SpeculativeDecoder(target, draft, 8).generate(torch.zeros(1, 7, dtype=torch.int64, device=device), 2)
