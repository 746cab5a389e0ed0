"""One optimal control problem with limits of torque rate, by the exported library and by CasADi's symbols.

A robot moves from rest to rest in the least time. Its jerk is constant on each of N intervals of equal length; positions,
velocities and accelerations at their ends are variables, as in multiple shooting, and the duration is one. Torques and torque
rates are limited at both ends of each interval. IPOPT solves it, from the same straight line.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from export import SymbolicScalar

from rnea_ros import Robot
from rnea_ros.algorithms import torque_rate
from rnea_ros.codegen.c_compiler import FLAGS

INTERVALS = 30
OPTIONS = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-7, "max_iter": 1000}}
JERK_WEIGHT = 1e-7  # [s^7/rad^2] of the mean square: joints that do not bind have one best motion


class Problem(NamedTuple):
    """Ends of the motion and limits, (n,) each."""

    start: np.ndarray
    goal: np.ndarray
    effort: np.ndarray
    effort_rate: np.ndarray
    velocity: np.ndarray


class Solved(NamedTuple):
    """Result of one way. Seconds of processor time; setup: from the function to a solver."""

    duration: float
    iterations: int
    setup: float
    solve: float
    largest: tuple[float, float]  # shares of the limits of torque and torque rate
    success: bool


def by_symbols(robot: Robot) -> Any:
    """Return torque and torque rate in CasADi's symbols: the recursion on its scalars, differentiated by CasADi."""
    q, qd, qdd, qddd = (ca.SX.sym(name, robot.n) for name in ("q", "qd", "qdd", "qddd"))
    motion = [np.array([SymbolicScalar(x[k]) for k in range(robot.n)], dtype=object) for x in (q, qd, qdd)]
    still = np.zeros(robot.n)
    tau, _ = torque_rate.torque_and_rate(robot.model, *motion, still, robot.gravity_vector)
    torque = ca.vertcat(*(x.x if isinstance(x, SymbolicScalar) else x for x in tau))
    rate = ca.jtimes(torque, ca.vertcat(q, qd, qdd), ca.vertcat(qd, qdd, qddd))
    return ca.Function("torque_and_rate", [q, qd, qdd, qddd], [torque, rate])


def solve(function: Any, problem: Problem, exact: bool) -> Solved:
    """Solve the problem with torque and torque rate by a function of q, qd, qdd, qddd. exact: Newton's method, else L-BFGS."""
    begin = time.process_time()
    n, N = len(problem.start), INTERVALS
    x, u, T = ca.MX.sym("x", 3 * n, N + 1), ca.MX.sym("u", n, N), ca.MX.sym("T")
    h = T / N
    q, qd, qdd = x[:n, :], x[n:2 * n, :], x[2 * n:, :]
    ahead = ca.vertcat(q[:, :-1] + h * qd[:, :-1] + h**2 / 2 * qdd[:, :-1] + h**3 / 6 * u,
                       qd[:, :-1] + h * qdd[:, :-1] + h**2 / 2 * u, qdd[:, :-1] + h * u)
    ends = [ca.horzcat(part[:, :-1], part[:, 1:]) for part in (q, qd, qdd)]
    tau, rate = function.map(2 * N)(*ends, ca.horzcat(u, u))
    g = ca.vertcat(ca.vec(x[:, 1:] - ahead), ca.vec(tau / problem.effort), ca.vec(rate / problem.effort_rate))
    bound = np.concatenate([np.zeros(3 * n * N), np.ones(4 * n * N)])
    fixed = np.tile(np.inf, (N + 1, 3 * n))
    fixed[:, n:2 * n] = problem.velocity
    upper, lower = fixed.copy(), -fixed
    for row, end in ((0, problem.start), (-1, problem.goal)):
        upper[row] = lower[row] = np.concatenate([end, np.zeros(2 * n)])
    free = np.full(n * N, np.inf)
    options = OPTIONS if exact else {**OPTIONS, "ipopt": {**OPTIONS["ipopt"], "hessian_approximation": "limited-memory"}}
    solver = ca.nlpsol("ocp", "ipopt", {"x": ca.vertcat(ca.vec(x), ca.vec(u), T),
                                        "f": T + JERK_WEIGHT / (n * N) * ca.sumsqr(u), "g": g}, options)
    ready = time.process_time()
    line = np.zeros((N + 1, 3 * n))
    line[:, :n] = problem.start + np.linspace(0.0, 1.0, N + 1)[:, None] * (problem.goal - problem.start)
    found = solver(x0=np.concatenate([line.ravel(), np.zeros(n * N), [2.0]]), lbg=-bound, ubg=bound,
                   lbx=np.concatenate([lower.ravel(), -free, [0.05]]), ubx=np.concatenate([upper.ravel(), free, [20.0]]))
    done = time.process_time()
    shares = np.abs(np.array(found["g"]).ravel()[3 * n * N:])
    stats = solver.stats()
    return Solved(float(found["x"][-1]), stats["iter_count"], ready - begin, done - ready,
                  (shares[:2 * n * N].max(), shares[2 * n * N:].max()), bool(stats["success"]))


def compiled(function: Any) -> Any:
    """Return a function of symbols as C that CasADi writes, with its derivatives, compiled as our library is."""
    generator = ca.CodeGenerator("symbols")
    for one in (function, function.jacobian(), function.reverse(1), function.reverse(1).jacobian()):
        generator.add(one)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "symbols.c").write_text(generator.dump())
        subprocess.run(["cc", *FLAGS, "-march=native", "-o", "symbols.so", "symbols.c", "-lm"], cwd=folder, check=True)
        return ca.external(function.name(), str(Path(folder) / "symbols.so"))


def ways(library: Any, symbols: Any, code: Any | None) -> dict[str, tuple[Any, bool]]:
    """Return function and use of exact Hessians by the name of each way."""
    functions = {"exported library": library, "CasADi symbols": symbols, "CasADi symbols, compiled": code}
    return {f"{name}, {method}": (function, method == "exact Hessian") for name, function in functions.items() if function
            for method in ("exact Hessian", "L-BFGS")}
