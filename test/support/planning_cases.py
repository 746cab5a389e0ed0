"""Problems for the tests of planning/: a toy without a robot, the thesis's arms in closed form, arms with cached plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from rnea_ros import Robot, plan_motion
from rnea_ros.planning import Cost, EndState, PlannedMotion, PlanningProblem, PlanSettings, Quantity
from rnea_ros.planning.problem import coupled_ends, motion_quantity
from support.scaling_cases import ROOT, urdf  # noqa: F401

RR_START, RR_GOAL, RR_OPTIMUM = (0.0, -2.0), (1.0, -1.0), 0.391854539516
PR_START, PR_GOAL = (0.1, 0.6), (np.pi / 4, -np.pi / 4)


def pendulum_and_slide(lower: float = -9.0, upper: float = 9.0) -> Quantity:
    """Return the torque rates of a pendulum that moves a slide: nonlinear, of order 3, for real and complex numbers."""

    def value(q, qd, qdd, qddd):
        a, b = np.moveaxis(q, -1, 0)
        first = qddd[..., 0] + 5.0 * np.cos(a) * qd[..., 0] + 0.3 * qd[..., 1] * qdd[..., 1]
        return np.stack((first, 2.0 * qddd[..., 1] + np.sin(a) * b * qd[..., 0] ** 2), axis=-1)

    def slope(q, qd, qdd, qddd):
        a, b = np.moveaxis(q, -1, 0)
        o, one = np.zeros_like(a), np.ones_like(a)

        def table(aa, ab, ba, bb):
            return np.stack((np.stack((aa, ab), -1), np.stack((ba, bb), -1)), -2)

        return [table(-5.0 * np.sin(a) * qd[..., 0], o, np.cos(a) * b * qd[..., 0] ** 2, np.sin(a) * qd[..., 0] ** 2),
                table(5.0 * np.cos(a), 0.3 * qdd[..., 1], 2.0 * np.sin(a) * b * qd[..., 0], o),
                table(o, 0.3 * qd[..., 1], o, o), table(one, o, o, 2.0 * one)]

    return Quantity("rate", ("swing", "slide"), 3, value, slope, np.full(2, lower), np.array([upper, np.nan]))


def toy() -> PlanningProblem:
    """Return a problem with a free position, tied velocities, a window, a cost with both weights, and a limit of one joint."""
    rate = pendulum_and_slide()
    early = motion_quantity(1, ("swing", "slide"), np.array([-1.0, -np.inf]), np.array([1.0, np.inf]), windows=[(0.0, 0.3)])
    start = EndState(np.array([0.2, np.nan]), np.zeros(2), np.full(2, np.nan))
    cost = Cost(0.5, np.array([0.1, 0.2]), rate)
    tie = coupled_ends(1, np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.1, 0.2]))
    return PlanningProblem(start, EndState.free(2), [rate, early], cost, coupling=tie)


def rr_torque(q, qd, qdd, cos=np.cos, sin=np.sin):
    """Return the torques of the thesis's two-link arm in closed form, for any scalars: links of 0.4 m, 0.5 kg, 0.1 kg m^2."""
    L, c, m, inertia = 0.4, 0.2, 0.5, 0.1
    h = m * L * c * sin(q[1])
    m22 = m * c**2 + inertia
    m12 = m22 + m * L * c * cos(q[1])
    m11 = m * c**2 + inertia + m22 + m * L**2 + 2.0 * m * L * c * cos(q[1])
    return (m11 * qdd[0] + m12 * qdd[1] - h * (2.0 * qd[0] + qd[1]) * qd[1], m12 * qdd[0] + m22 * qdd[1] + h * qd[0] ** 2)


@cache
def robot(name: str) -> Robot:
    return Robot.from_urdf(urdf(name))


@cache
def rr_plan(rate: float | None = None, spans: int = 12) -> PlannedMotion:
    """Return the fastest motion of the thesis's two-link arm with default settings."""
    arm = robot("rr")
    limits = arm.limits if rate is None else replace(arm.limits, effort_rate=np.full(2, rate))
    return plan_motion(arm, RR_START, RR_GOAL, limits=limits, settings=PlanSettings(spans=spans), time_tolerance=0.0)


def both_sides(plan: PlannedMotion, per_span: int) -> np.ndarray:
    """Return times evenly spread in every span, and just before and after every break."""
    breaks = plan.curve.breaks * plan.duration
    inner = np.linspace(breaks[:-1], breaks[1:], per_span + 1).ravel()
    return np.unique(np.clip(np.concatenate((inner, breaks - 1e-9, breaks + 1e-9)), 0.0, plan.duration))


