"""Fastest motion of a Panda under limits of torque and torque rate, by CasADi and IPOPT.

    python examples/optimal_control.py [OUT_DIR]

The jerk is constant on each interval; positions, velocities and accelerations at the ends of intervals are variables. CasADi
calls the compiled torques and rates of the robot, with exact Jacobians and Hessians, so IPOPT takes Newton's steps.
"""

from __future__ import annotations

import sys
from pathlib import Path

import casadi as ca
import numpy as np

from rnea_ros import STYLE, load, picture
from rnea_ros.interop.casadi import external

URDF = Path(__file__).parents[1] / "urdf" / "panda.urdf"
START, GOAL = np.array([[-0.4, 0.2, -0.3, -1.9, 0.2, 1.5, -0.2], [0.4, -0.2, 0.3, -1.4, -0.2, 2.1, 0.2]])
QUIET = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}


def fastest(arm, intervals: int):
    """Return the duration [s], and positions to jerks (4, intervals, n) at the beginnings of intervals."""
    n, N, dynamics = arm.n, intervals, external(arm)
    x, u, T = ca.MX.sym("x", 3 * n, N + 1), ca.MX.sym("u", n, N), ca.MX.sym("T")
    q, qd, qdd = ca.vertsplit(x[:, :-1], n)
    h = T / N
    ahead = ca.vertcat(q + h * qd + h**2 / 2 * qdd + h**3 / 6 * u, qd + h * qdd + h**2 / 2 * u, qdd + h * u)
    states = [ca.horzcat(x[k * n:(k + 1) * n, :-1], x[k * n:(k + 1) * n, 1:]) for k in range(3)]
    tau, rate = dynamics.map(2 * N)(*states, ca.horzcat(u, u))           # at both ends of each interval
    g = ca.vertcat(ca.vec(x[:, 1:] - ahead), ca.vec(tau / ca.DM(arm.limits.effort)),
                  ca.vec(rate / ca.DM(arm.limits.effort_rate)))
    bound = np.concatenate([np.zeros(3 * n * N), np.ones(4 * n * N)])
    upper = np.full((N + 1, 3 * n), np.inf)
    upper[:, n:2 * n] = arm.limits.velocity
    lower = -upper
    for row, pose in ((0, START), (-1, GOAL)):
        lower[row] = upper[row] = [*pose, *np.zeros(2 * n)]
    guess = np.zeros((N + 1, 3 * n))
    guess[:, :n] = START + np.linspace(0.0, 1.0, N + 1)[:, None] * (GOAL - START)
    free = np.full(n * N, np.inf)
    solver = ca.nlpsol("solver", "ipopt", {"x": ca.vertcat(ca.vec(x), ca.vec(u), T), "g": g,
                                           "f": T + 1e-8 * ca.sumsqr(u) / N}, QUIET)
    found = solver(x0=np.concatenate([guess.ravel(), np.zeros(n * N), [2.0]]), lbg=-bound, ubg=bound,
                   lbx=np.concatenate([lower.ravel(), -free, [0.1]]), ubx=np.concatenate([upper.ravel(), free, [9.0]]))
    if not solver.stats()["success"]:
        raise RuntimeError(solver.stats()["return_status"])
    values = np.array(found["x"]).ravel()
    motion = values[:3 * n * (N + 1)].reshape(N + 1, 3, n)[:-1].swapaxes(0, 1)
    return values[-1], np.concatenate([motion, values[3 * n * (N + 1):-1].reshape(1, N, n)])


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    arm = load(URDF, URDF.with_suffix(".robot.yaml"))
    duration, motion = fastest(arm, 10 if small else 40)
    shares = [part / limit for part, limit in zip(arm.torque_and_rate(*motion), (arm.limits.effort, arm.limits.effort_rate))]
    with picture(Path(out_dir) / "optimal_control.png", (11, 4.6), settings=STYLE) as figure:
        for axes, share, name in zip(figure.subplots(1, 2), shares, ("torque", "torque rate")):
            axes.step(np.linspace(0.0, duration, len(share), endpoint=False), share, where="post")
            axes.set(xlabel="time [s]", ylim=(-1.1, 1.1), title=f"{name} / limit, a line for each joint")
    found = {"duration": duration, "torque": np.abs(shares[0]).max(), "rate": np.abs(shares[1]).max()}
    print(f"{duration:.4f} s; torque up to {found['torque']:.3f}, torque rate up to {found['rate']:.3f} of the limit")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
