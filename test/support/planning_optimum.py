"""The thesis's arms by another formulation: forward dynamics in closed form, multiple shooting, IPOPT through CasADi.

The oracle of planning/: torques are piecewise constant, or, where their rate is limited, piecewise linear; Runge-Kutta steps.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

STEPS = 2  # of Runge-Kutta in each interval


def pr_torque(q, qd, qdd, cos=np.cos, sin=np.sin):
    c, m, inertia = 0.2, 0.5, 0.1
    return (2.0 * m * qdd[0] + m * c * cos(q[1]) * qdd[1] - m * c * sin(q[1]) * qd[1] ** 2,
            m * c * cos(q[1]) * qdd[0] + (m * c**2 + inertia) * qdd[1])


def optimum(torque: Callable, start, goal, rate: float | None = None, u: float = 0.0, count: int = 60) -> tuple[float, float]:
    """(duration, cost) of the motion from rest to rest with |tau| <= 10 that minimises the integral of 1 - u + u tau.tau."""
    acceleration = _forward(torque)
    problem = ca.Opti()
    T, state, tau = problem.variable(), problem.variable(4, count + 1), problem.variable(2, count + 1)
    h = T / count
    for k in range(count):
        slope = (tau[:, k + 1] - tau[:, k]) / h if rate else ca.MX.zeros(2)
        problem.subject_to(state[:, k + 1] == _stepped(acceleration, state[:, k], tau[:, k], slope, h))
        if rate:
            problem.subject_to(problem.bounded(-rate * h, tau[:, k + 1] - tau[:, k], rate * h))
    problem.subject_to(problem.bounded(-10.0, ca.vec(tau), 10.0))
    for k, q in ((0, start), (count, goal)):
        problem.subject_to(state[:, k] == ca.vertcat(*q, 0.0, 0.0))
        if rate:
            problem.subject_to(tau[:, k] == 0.0)
    cost = T * (1.0 - u) + u * h * ca.sumsqr(tau[:, :count])
    problem.subject_to(T >= 0.05)
    problem.minimize(cost)
    problem.set_initial(T, 0.6)
    problem.set_initial(state, np.linspace([*start, 0.0, 0.0], [*goal, 0.0, 0.0], count + 1).T)
    problem.solver("ipopt", {"print_time": False, "expand": True}, {"print_level": 0, "sb": "yes", "max_iter": 1000})
    found = problem.solve()
    return float(found.value(T)), float(found.value(cost))


def _forward(torque):
    """(q, qd, tau) -> qdd, from a torque function that is linear in qdd."""
    q, qd, qdd, tau = (ca.SX.sym(name, 2) for name in ("q", "qd", "qdd", "tau"))
    error = ca.vertcat(*torque(q, qd, qdd, ca.cos, ca.sin)) - tau
    M = ca.jacobian(error, qdd)
    return ca.Function("qdd", [q, qd, tau], [-ca.solve(M, ca.substitute(error, qdd, ca.SX.zeros(2)))])


def _stepped(acceleration, x, tau, slope, h):
    def f(z, t):
        return ca.vertcat(z[2:], acceleration(z[:2], z[2:], tau + slope * t))

    step = h / STEPS
    for k in range(STEPS):
        t = k * step
        k1 = f(x, t)
        k2 = f(x + step / 2 * k1, t + step / 2)
        k3 = f(x + step / 2 * k2, t + step / 2)
        k4 = f(x + step * k3, t + step)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


