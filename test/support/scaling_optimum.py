"""Oracle of trajectory/time_optimal.py: the fastest time law by another formulation and solver.

On a grid of s the unknowns are sd and sdd at the nodes, sddd and the time between them; the motion is exactly one of piecewise
constant sddd; limits hold at the nodes, for sddd from both sides. Solved by IPOPT through CasADi.
"""

from __future__ import annotations

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
