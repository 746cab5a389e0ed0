"""Oracle of trajectory/time_optimal.py: the fastest time law by another formulation and solver.

On a grid of s the unknowns are sd and sdd at the nodes, sddd and the time between them; the motion is exactly one of piecewise
constant sddd; limits hold at the nodes, for sddd from both sides. Solved by IPOPT through CasADi.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from rnea_ros.trajectory import time_law as laws
from rnea_ros.trajectory.constraints import Constraints

END = 0.06  # share of the path at each end with a finer grid


def nodes(length: float, count: int) -> np.ndarray:
    """Return count + 1 values of s, closer at both ends, where the motion is slow."""
    x = np.linspace(0.0, 1.0, 4001)
    density = 1.0 / np.maximum(np.minimum(1.0, np.minimum(x, 1.0 - x) / END) ** 2, 1e-3)
    share = np.concatenate(([0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))))
    return length * np.interp(np.linspace(0.0, 1.0, count + 1), share / share[-1], x)


def optimum(constraints: Constraints, count: int = 400, guess: float = 12.0) -> float:
    """Return the duration of the fastest motion from rest to rest; limits hold at the nodes only, without margin."""
    s = nodes(constraints.path.length, count)
    rows = constraints(s)
    problem = ca.Opti()
    v, a = problem.variable(count + 1), problem.variable(count + 1)
    u, h = problem.variable(count), problem.variable(count)
    problem.subject_to(v[:-1] * h + a[:-1] * h**2 / 2 + u * h**3 / 6 == np.diff(s))
    problem.subject_to(v[1:] == v[:-1] + a[:-1] * h + u * h**2 / 2)
    problem.subject_to(a[1:] == a[:-1] + u * h)
    for end in (0, count):
        problem.subject_to(v[end] == 0.0)
        problem.subject_to(a[end] == 0.0)
    problem.subject_to(h >= 1e-5)
    problem.subject_to(v[1:-1] >= 1e-6)
    for row in range(rows.shape[2]):
        third_order = rows[:, 6, row].any()
        sides = ((slice(0, count), u), (slice(1, count + 1), u)) if third_order else ((slice(0, count + 1), None),)
        for part, jerk in sides:
            weights = [ca.DM(rows[part, k, row]) for k in range(7)]
            speed, bend = v[part], a[part]
            value = (weights[0] + weights[1] * speed + weights[2] * speed**2 + weights[3] * bend + weights[4] * speed**3
                     + weights[5] * speed * bend)
            problem.subject_to(problem.bounded(-1.0, value if jerk is None else value + weights[6] * jerk, 1.0))
    problem.minimize(ca.sum1(h))
    slow = laws.rest_to_rest(0.0, constraints.path.length, guess)
    t = np.concatenate(([0.0], slow.time_at(s[1:-1]), [guess]))
    _, speed, bend, jerk = slow(t)
    for variable, value in ((v, speed), (a, bend), (u, jerk[:-1]), (h, np.maximum(np.diff(t), 1e-4))):
        problem.set_initial(variable, value)
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": 1500})
    return float(np.sum(problem.solve().value(h)))


def continuous_constraints(constraints: Constraints) -> np.ndarray:
    """Return which constraints (constraints,) are continuous in time: those that do not contain sddd."""
    s = np.linspace(0.0, constraints.path.length, 51)
    return np.asarray(~constraints(s)[:, 6].any(axis=0))


def least_excess(constraints: Constraints, law: laws.TimeLaw, sigma: float, rate: float, state: Any = None,
                 begin_rate: float = 1.0, horizon: float = 1.0, count: int = 100) -> float:
    """Return the smallest excess of limits by any motion on the path that begins at time sigma of a law, at least zero.

    The motion ends `horizon` [s] of the law further on, on the law played at a constant rate up to `rate`. A limit counts as
    exceeded where more of it is used than 1 and, if it cannot change suddenly, than at the begin. Limits hold at nodes only.

    state      : sd, sdd at the begin; default those of the law
    begin_rate : at which the law is played there, about
    """
    s = np.interp(np.linspace(0.0, 1.0, count + 1), np.linspace(0.0, 1.0, 401),
                  law(np.linspace(sigma, min(sigma + horizon, law.duration - 0.05), 401))[0])
    now, end = law(np.array([sigma]))[:, 0], law(law.time_at(s[-1:]))[:, 0]
    if state is not None:
        now[1:] = state.sd, state.sdd, 0.0
    rows, continuous = constraints(s), continuous_constraints(constraints)
    used = np.abs(constraints.utilization(now[:, None])[0])
    bound = np.where(continuous, np.maximum(used, 1.0), 1.0)
    problem = ca.Opti()
    v, a = problem.variable(count + 1), problem.variable(count + 1)
    u, h = problem.variable(count), problem.variable(count)
    k, excess = problem.variable(), problem.variable()
    problem.subject_to(v[:-1] * h + a[:-1] * h**2 / 2 + u * h**3 / 6 == np.diff(s))
    problem.subject_to(v[1:] == v[:-1] + a[:-1] * h + u * h**2 / 2)
    problem.subject_to(a[1:] == a[:-1] + u * h)
    problem.subject_to(v[0] == now[1])
    problem.subject_to(a[0] == now[2])
    problem.subject_to(v[-1] == end[1] * k)
    problem.subject_to(a[-1] == end[2] * k**2)
    problem.subject_to(problem.bounded(1e-3, k, rate))
    problem.subject_to(problem.bounded(0.0, excess, 10.0))
    problem.subject_to(h >= 1e-6)
    problem.subject_to(v >= 1e-6)
    for row in range(rows.shape[2]):
        third = bool(rows[:, 6, row].any())
        sides = ((slice(0, count), u), (slice(1, count + 1), u)) if third else ((slice(1, count + 1), None),)
        for part, jerk in sides:
            weights = [ca.DM(rows[part, c, row]) for c in range(7)]
            speed, bend = v[part], a[part]
            value = (weights[0] + weights[1] * speed + weights[2] * speed**2 + weights[3] * bend + weights[4] * speed**3
                     + weights[5] * speed * bend)
            value = value if jerk is None else value + weights[6] * jerk
            problem.subject_to(value <= bound[row] + excess)
            problem.subject_to(value >= -bound[row] - excess)
    problem.minimize(excess + 1e-4 * ca.sum1(h))
    t = law.time_at(s)
    x = np.clip((t - sigma) / 0.3, 0.0, 1.0)
    guess = begin_rate + (rate - begin_rate) * x * x * (3.0 - 2.0 * x)
    _, speed, bend, jerk = law(t)
    for variable, value in ((v, np.maximum(speed * guess, 1e-3)), (a, bend * guess**2), (u, (jerk * guess**3)[:-1]),
                            (h, np.maximum(np.diff(t), 1e-5) / guess[:-1]), (k, rate), (excess, 1.0)):
        problem.set_initial(variable, value)
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": 600, "max_cpu_time": 8.0})
    return float(problem.solve().value(excess))
