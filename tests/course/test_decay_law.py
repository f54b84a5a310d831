"""The reference code of ch15 against independent oracles."""

import pytest
import torch

from course import decay_law


@pytest.mark.parametrize("power", [0.3, 1.0, 2.0])
def test_a_power_law_is_told_from_an_exponential(power):
    distance = torch.arange(1001, dtype=torch.float64)
    found = decay_law.decay_fit(distance.clamp_min(1) ** -power)
    assert float(found["power"]) == pytest.approx(power, abs=0.02) and found["R2 of the power law"] > 0.999
    assert found["R2 of the exponential"] < 0.95
    falling = decay_law.decay_fit((-0.01 * distance).exp())
    assert float(falling["rate"]) == pytest.approx(0.01, rel=0.03) and falling["R2 of the exponential"] > 0.99
    assert falling["R2 of the power law"] < 0.95
