"""Commanded efforts on a simulated robot whose controller may add gravity: it follows the motion by efforts only."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

from support.executor_harness import DT, ExecutorHarness, trajectory
from support.overspeed_motion import POINTS
from support.scaling_cases import urdf


def course(effort: np.ndarray, q: np.ndarray, adds: float) -> np.ndarray:
    """Return positions after efforts (samples, n), DT apart, from rest at q, by the Runge-Kutta rule."""
    model = pin.buildModelFromUrdf(str(urdf("seven_r")))
    data = model.createData()

    def slope(x: np.ndarray, given: np.ndarray) -> np.ndarray:
        torque = given + adds * pin.computeGeneralizedGravity(model, data, x[0])
        return np.stack((x[1], pin.aba(model, data, *x, torque)))

    state = np.stack((q, np.zeros_like(q)))
    for before, after in pairwise(effort):
        k1 = slope(state, before)
        k2 = slope(state + 0.5 * DT * k1, 0.5 * (before + after))
        k3 = slope(state + 0.5 * DT * k2, 0.5 * (before + after))
        state = state + DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(state + DT * k3, after))
    return state[0]


@pytest.mark.parametrize(("convention", "adds"), [("total", 0.0), ("without_gravity", 1.0)])
def test_robot_driven_by_commanded_efforts_only_follows_the_motion(convention, adds):
    sim = ExecutorHarness(commanded_effort=convention)
    sim.take(trajectory())
    sim.play(0.8)
    effort, whole, q = (np.array(values) for values in zip(
        *((sample.commanded_effort, sample.effort, sample.reference.q) for sample in sim.samples)))
    assert np.abs(q[-1] - POINTS[0]).max() > 0.1
    assert np.abs(course(effort, q[0], adds) - q[-1]).max() < 2e-3
    assert np.abs(course(whole, q[0], 0.0) - q[-1]).max() < 2e-3
    assert np.abs(course(effort, q[0], adds + 1.0) - q[-1]).max() > 0.1
