"""The looks at the trained model: what was recorded is what is seen, with the model and without it."""

import json

import pytest

from course import data, looks, pretrained

RECORD = data.record("looks")["results"]


def alike(seen, recorded) -> bool:
    """The same but for the last digits of floats, which differ between processors."""
    if isinstance(recorded, dict):
        return seen.keys() == recorded.keys() and all(alike(seen[key], value) for key, value in recorded.items())
    if isinstance(recorded, list):
        return len(seen) == len(recorded) and all(map(alike, seen, recorded))
    return seen == pytest.approx(recorded, abs=0.011) if isinstance(recorded, float) else seen == recorded


@pytest.mark.parametrize("name", looks.LOOKS)
def test_a_look_is_what_was_recorded(name):
    assert alike(json.loads(json.dumps(looks.look(name))), RECORD[name])


def test_without_the_model_the_record_is_shown_and_a_command(monkeypatch, capsys):
    monkeypatch.setattr(pretrained, "is_here", lambda name: False)
    monkeypatch.setattr(pretrained, "load", None)
    for name in looks.LOOKS:
        assert looks.look(name) == RECORD[name]
    assert capsys.readouterr().out.count("python -m course.pretrained smollm2-135m") == len(looks.LOOKS)
    with pytest.raises(KeyError):
        looks.look("nothing")


def test_what_is_seen():
    """The numbers that chapters speak of."""
    near = RECORD["neighbours"]["near"]
    assert " queen" in [token for token, _ in near[" king"]] and " Paris" in [token for token, _ in near[" London"]]
    assert all(cosine > 0.58 for found in near.values() for _, cosine in found)
    assert 0.4 < sum(RECORD["neighbours"]["random"]) / 2000 < 0.5  # even strangers point the same way
    scores = RECORD["heads"]["induction"]
    assert max((score, layer, head) for layer, row in enumerate(scores) for head, score in enumerate(row))[1:] == (18, 6)
    assert max(score for row in scores[:16] for score in row) < 0.1
    rope = RECORD["rope_pairs"]
    assert sum(wave <= rope["trained"] for wave in rope["wavelengths"]) == 20
    assert sum(rope["early"][20:]) > 0.6 and sum(rope["late"][20:]) > 0.7
    loss = RECORD["context_loss"]
    gap, half = data.interval([a - b for a, b in zip(loss["theirs"], loss["ours"], strict=True)])
    assert abs(gap) < 0.06 and half < 0.05
    assert loss["theirs by part"][0] > loss["ours by part"][0] + 0.3
    assert RECORD["cached_text"]["cache"]["bytes a token"] == 2 * 30 * 3 * 64 * 4
