"""Commanded effort conventions: robots whose controllers add gravity or friction move as planned; effort rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError, load
from rnea_ros.model.drives import CONTENTS
from rnea_ros.trajectory.sample_torques import CommandedEffort, TorqueStream

URDF = Path(__file__).parents[2] / "urdf"
ARM = URDF / "seven_r.urdf"
NAMES = [f"joint{k}" for k in range(1, 8)]
FRICTION = {name: {"viscous": 0.5 + 0.1 * k, "coulomb": 0.3} for k, name in enumerate(NAMES)}
DRIVES = {name: {"gear_ratio": 50.0 + 10.0 * k, "torque_constant": 0.1} for k, name in enumerate(NAMES)}
PER_UNIT = np.array([5.0 + k for k in range(7)]) * [1, -1, 1, 1, 1, 1, 1]
CURVES = [np.polynomial.Polynomial(c) for c in np.random.default_rng(5).normal(size=(7, 6)) / [1, 2, 4, 8, 16, 32]]


def motion(t: float) -> list[np.ndarray]:
    return [np.array([curve.deriv(k)(t) for curve in CURVES]) for k in range(4)]


def arm(contains: str, quantity: str = "joint_torque"):
    commanded = {"contains": contains, "quantity": quantity, "reversed": ["joint2"] if quantity == "current" else []}
    return load(ARM, {"version": 1, "friction": FRICTION, "drives": DRIVES, "commanded_effort": commanded})


@pytest.mark.parametrize("quantity", ["joint_torque", "current"])
@pytest.mark.parametrize("contains", CONTENTS)
def test_robot_that_adds_the_missing_terms_accelerates_as_planned(contains, quantity):
    """The robot is Pinocchio's forward dynamics; its controller converts the command to torque and adds the missing terms."""
    robot = arm(contains, quantity)
    model = pin.buildModelFromUrdf(str(ARM))
    data, command = model.createData(), CommandedEffort(robot)
    stream = TorqueStream(robot)
    for t in np.linspace(0.0, 1.0, 7):
        q, qd, qdd, qddd = motion(t)
        effort, _ = command(stream(q, qd, qdd, qddd), qd, qdd)
        rubbed = robot.friction(qd)[0]
        given = effort * (PER_UNIT if quantity == "current" else 1.0)
        added = {CONTENTS[0]: 0.0, CONTENTS[1]: pin.computeGeneralizedGravity(model, data, q)}
        torque = given + added.get(contains, added[CONTENTS[1]] + rubbed)
        np.testing.assert_allclose(pin.aba(model, data, q, qd, torque - rubbed), qdd, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("contains", CONTENTS)
def test_rates_of_commanded_efforts_match_differences(contains):
    robot, h = arm(contains, "current"), 1e-4
    command, stream = CommandedEffort(robot), TorqueStream(robot)

    def at(t):
        q, qd, qdd, qddd = motion(t)
        return command(stream(q, qd, qdd, qddd), qd, qdd)

    for t in (0.2, 0.5, 0.9):
        slope = (8.0 * (at(t + h)[0] - at(t - h)[0]) - (at(t + 2 * h)[0] - at(t - 2 * h)[0])) / (12.0 * h)
        np.testing.assert_allclose(at(t)[1], slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["palletiser", "stewart"])
def test_effort_without_gravity_is_supported_for_loops_and_without_friction_rejected(name):
    file = load(URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml")
    command, stream = CommandedEffort(file, "without_gravity"), TorqueStream(file)
    q, *rest = file.home_motion
    still = command(stream(q, *rest), *rest[:2])
    np.testing.assert_allclose(still[0], 0.0, atol=1e-8 * np.abs(stream(q, *rest).tau).max())
    with pytest.raises(InputError, match="use total or without_gravity"):
        CommandedEffort(file, "without_gravity_and_friction")


def test_contents_given_by_argument_keep_the_units_of_the_robot_file():
    robot = arm("total", "current")
    found = CommandedEffort(robot, "without_gravity").convention
    np.testing.assert_allclose(found.per_unit, PER_UNIT)
    assert found.contains == "without_gravity" and CommandedEffort(robot).convention.contains == "total"
