"""Random machines of every combination against Pinocchio and MuJoCo; `benchmark/campaign.py` uses many seeds."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

from support.constrained_motion import NODES, ConstrainedMotion, RandomMachine, derivatives, least
from support.random_combinations import COMBINATIONS, compare
from support.robots import seeds

FIRST_SEED = 900  # not a seed of the campaign
# test_general_robot.py has the others.
PARTS = ("any cut joint", "motors on links", "platform", "standing", "wheels", "tricycle")
NAMES = [name for name in COMBINATIONS if any(part in name for part in PARTS)]
# The others have each of its parts: platforms in series, a platform on a moving base, an arm with springs on a platform.
LARGE = ("platforms in series on a free base, arm with springs",)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.campaign) if name in LARGE else name for name in NAMES])
def test_torques_rates_and_accelerations_match_pinocchio_and_mujoco(name):
    for seed in seeds(1):
        found = compare(COMBINATIONS[name](FIRST_SEED + seed), FIRST_SEED + seed)
        assert found.torque < 1e-11, (seed, found)
        assert found.rate < 1e-9, (seed, found)
        assert found.acceleration < 1e-9, (seed, found)
        assert np.isnan(found.mujoco) or found.mujoco < 1e-11, (seed, found)


def test_oracle_derivatives_at_chebyshev_points_match_the_closed_form():
    times = 0.2 * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)[::-1]
    values = np.sin(3.0 * times + 0.4)
    for order, expected in ((1, 3.0 * np.cos(0.4)), (2, -9.0 * np.sin(0.4))):
        assert derivatives(times, values, order) == pytest.approx(expected, rel=1e-10)


def test_oracle_solution_has_the_least_norm():
    A, b = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), np.array([2.0, 3.0])
    assert least(A, b) == pytest.approx([1.0, 1.0, 1.5])


def test_oracle_of_a_pendulum_matches_the_closed_form():
    """m g l sin(q) + (J + m l^2) q'' about a horizontal axis."""
    urdf = ('<robot name="pendulum"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>'
            '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="hinge" '
            'type="revolute"><parent link="base"/><child link="rod"/><axis xyz="1 0 0"/><limit lower="-9" upper="9" '
            'effort="1" velocity="1"/></joint></robot>')
    motion = ConstrainedMotion(RandomMachine(urdf, {"version": 1}, {"hinge": 0.7}), ["hinge"], 3)
    q, _, a, efforts = motion.equations(0.0, motion.X0)
    assert q[0] == pytest.approx(0.7)
    assert efforts[0] == pytest.approx(2.0 * 9.81 * 0.5 * np.sin(0.7) + (0.1 + 2.0 * 0.25) * a[0], rel=1e-13)
