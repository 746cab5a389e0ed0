"""Drive limits in planning: sensitivities match finite differences, and the fastest motion reaches the limits."""

import numpy as np
import pytest

from rnea_ros import load
from rnea_ros.model.drives import utilizations
from rnea_ros.trajectory.plan_motion import drives, plan_motion
from support.scaling_cases import urdf

SHEET = {"gear_ratio": -90.0, "torque_constant": 0.1, "resistance": 0.8, "inductance": 4e-3, "supply_voltage": 30.0,
         "max_current": 8.0, "max_power": 60.0, "max_motor_velocity": 200.0, "transmission_stiffness": 900.0,
         "speed_torque_curve": [[0.0, 60.0], [1.5, 50.0], [3.0, 0.0]]}


@pytest.fixture(scope="module")
def arm():
    """Return a planar arm that is limited only by its drives."""
    names = load(urdf("rr")).joint_names
    free = {name: {f"has_{what}_limits": False for what in ("effort", "velocity")} for name in names}
    return load(urdf("rr"), {"version": 1, "gravity": [0.0, -9.81, 0.0], "drives": dict.fromkeys(names, SHEET), "limits": free,
                             "supplies": {"rail": {"max_power": 90.0, "max_braking_power": 20.0}}})


def test_drive_limit_sensitivities_match_finite_differences(arm):
    quantity, rng = drives(arm, None), np.random.default_rng(5)
    motion = rng.normal(size=(4, 3, arm.n))
    tables = quantity.slope(*motion)
    for order in range(4):
        for joint in range(arm.n):
            step = np.zeros((4, 1, arm.n))
            step[order, 0, joint] = 1e-6
            slope = (quantity.value(*(motion + step)) - quantity.value(*(motion - step))) / 2e-6
            np.testing.assert_allclose(tables[order][..., joint], slope, rtol=1e-6, atol=1e-6)


def test_fastest_motion_saturates_its_drives(arm):
    plan = plan_motion(arm, [-0.5, 0.4], [1.2, -0.6], time_tolerance=0.0)
    q, qd, qdd, qddd = plan(np.linspace(0.0, plan.duration, 4000))
    used = utilizations(arm.drive_limits, *arm.torque_and_rate(q, qd, qdd, qddd), qd)
    assert 0.99 < used.max() < 1.002  # limits between nodes have a tolerance
