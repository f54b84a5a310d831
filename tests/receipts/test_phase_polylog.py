"""The evidence behind the formulas of ch21_phase_polylog."""

from course.phase_polylog import log_partition


def test_ch21_double():
    for n in range(1, 9):
        assert abs(float(log_partition(0.0, n).exp()) - n) < 1e-12
