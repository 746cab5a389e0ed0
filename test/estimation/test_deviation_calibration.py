"""Calibration of standard deviations: 95 % of the errors are inside two of them for any distribution."""

import numpy as np
import pytest

from rnea_ros.estimation.filter_bank import DeviationCalibration


@pytest.mark.parametrize("draw", ["normal", "laplace", "uniform"])
@pytest.mark.parametrize("size", [0.8, 3.0])
def test_calibration_reaches_the_nominal_coverage(draw, size):
    rng, calibration, inside = np.random.default_rng(41), DeviationCalibration(3), []
    for _ in range(4000):
        error = size * (rng.uniform(-1.7, 1.7, (4, 3)) if draw == "uniform" else getattr(rng, draw)(0.0, 1.0, (4, 3)))
        inside.append(np.abs(error) < 2.0 * calibration.scale)
        calibration.update(error, np.ones((4, 3)), np.array([True, True, True]))
    assert np.mean(inside[500:]) == pytest.approx(0.954, abs=0.01)


def test_joints_at_rest_do_not_change_the_calibration():
    calibration = DeviationCalibration(2)
    before = calibration.scale
    for _ in range(100):
        calibration.update(np.zeros((4, 2)), np.ones((4, 2)), np.array([True, False]))
    assert (calibration.scale[:, 0] < before[:, 0]).all() and np.array_equal(calibration.scale[:, 1], before[:, 1])
