"""The reference code of ch21 against independent oracles."""

import mpmath
import pytest
import torch

from course import phase_polylog as pp


@pytest.mark.parametrize("N", [1, 2, 17, 33, 1000, 10**6 + 7, 10**12])
@pytest.mark.parametrize("gamma", [-2.0, 0.0, 0.5, 1.0, 1.3, 4.0])
def test_partition_function_is_a_difference_of_zetas(N, gamma):
    with mpmath.workdps(40):
        exact = mpmath.harmonic(N) if gamma == 1 else mpmath.zeta(gamma) - mpmath.zeta(gamma, N + 1)
        assert float(pp.log_partition(gamma, N)) == pytest.approx(float(mpmath.log(exact)), rel=1e-13, abs=1e-13)
