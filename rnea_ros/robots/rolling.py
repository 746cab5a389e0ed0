"""Robots on wheels: ground forces, slip and tip-over margins, and dead reckoning of the base.

The forces between wheels and ground are the Lagrange multipliers of the rolling constraints; `Robot.solve` returns them with
their rates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import Array
from ..algorithms.equations import BASE, DIRECTIONS, Wheel
from ..algorithms.kinematics import Pose, base_poses
from ..errors import InputError, some
from .base_state import BaseState
from .robot import Robot
from .solution import Solution

RK_STEPS = 4  # Runge-Kutta steps between two samples
COLLINEAR_TOL = 1e-9  # distance below which three points count as collinear [m]


class WheelLoad(NamedTuple):
    """Force of the ground on one wheel.

    point      : (3,) contact point, in the world frame [m]
    force      : (3,) force exerted by the ground on the wheel, in the world frame [N]
    normal     : (2,) component along the ground normal and its rate [N, N/s]; NaN unless `holds` contains normal
    tangential : (2,) magnitude of the component in the ground plane and its rate [N, N/s]
    friction_use : tangential / (friction coefficient times normal), 1 at the limit of slip; NaN if either is unknown, infinite
                   if the normal force is not positive
    """

    point: Array
    force: Array
    normal: Array
    tangential: Array
    friction_use: float


def wheel_loads(robot: Robot, solution: Solution, base: BaseState) -> dict[str, WheelLoad]:
    """Return the load of each wheel, keyed by the name of the wheel.

    solution : solution of one sample
    base     : pose of the base in that sample

    In over-constrained vehicles, for instance on four wheels, the forces are the least-squares (minimum-norm) solution;
    `open_multipliers` of the solution names them. `tip_over_margin` does not depend on that choice.
    """
    wheels = _wheels(robot)
    q = np.array([solution.positions[name][0] for name in robot.tree.joint_names])
    poses = base_poses(robot.model, q, Pose(base.rotation, base.position))
    equations, loads = robot.structure().equations, {}
    for wheel in wheels:
        pose = poses[wheel.link]
        point, directions = equations.touch(wheel, pose.R)
        components = {direction: np.atleast_1d(solution.multipliers[f"{wheel.name}[{direction}]"])[:2]
                      for direction in wheel.holds}
        force = sum(pose.R @ directions[DIRECTIONS.index(direction)] * value[0] for direction, value in components.items())
        normal = components.pop("normal", np.full(2, np.nan))
        sides = np.array(list(components.values())) if components else np.zeros((1, len(normal)))
        size = float(np.linalg.norm(sides[:, 0]))
        slopes = [float(sides[:, 0] @ sides[:, k] / size) if size else 0.0 for k in range(1, sides.shape[1])]
        use = np.nan
        if (friction := robot.roles.friction.get(wheel.name)) is not None and not np.isnan(normal[0]):
            use = size / (friction * normal[0]) if normal[0] > 0.0 else np.inf
        loads[wheel.name] = WheelLoad(pose.p + pose.R @ point, np.asarray(force, dtype=float), normal,
                                      np.array([size, *slopes]), float(use))
    return loads


def tip_over_margin(loads: dict[str, WheelLoad]) -> float:
    """Return the distance of the zero moment point from the nearest edge of the support polygon of the wheels [m].

    The distance is negative outside the polygon: the vehicle tips over. It is zero if all wheels are on one line, and NaN if
    no wheel has `normal` in `holds`, or the wheels do not press on the ground.
    """
    known = [load for load in loads.values() if not np.isnan(load.normal[0])]
    total = sum(load.normal[0] for load in known)
    if not known or total <= 0.0:
        return float("nan")
    points = np.array([load.point[:2] for load in known])
    weights = np.array([load.normal[0] for load in known])
    return _distance_inside(weights @ points / total, points)


def _distance_inside(point: Array, corners: Array) -> float:
    """Return the distance of a point (2,) from the convex hull of corners (k, 2): positive inside, negative outside."""
    hull = _convex_hull(corners)
    if len(hull) < 3:
        return 0.0
    edges = np.roll(hull, -1, axis=0) - hull
    normals = np.column_stack((-edges[:, 1], edges[:, 0])) / np.linalg.norm(edges, axis=1)[:, None]
    return float((normals * (point - hull)).sum(axis=1).min())


def _convex_hull(points: Array) -> Array:
    """Return the corners (h, 2) of the convex hull of points (k, 2), counter-clockwise (Andrew's monotone chain)."""
    def half(ordered: list[list[float]]) -> list[list[float]]:
        chain: list[list[float]] = []
        for point in ordered:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2:]
                if (bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax) > COLLINEAR_TOL**2:
                    break
                chain.pop()
            chain.append(point)
        return chain[:-1]

    ordered = sorted(points.tolist())
    return np.array([*half(ordered), *half(ordered[::-1])])


def _wheels(robot: Robot) -> tuple[Wheel, ...]:
    wheels = () if robot.is_fixed_tree else robot.roles.wheels
    if not wheels:
        raise InputError(f"robot '{robot.name}' has no wheels; declare them in wheels of its robot file")
    return wheels


class WheelOdometry:
    """Dead reckoning of the base: integrates the base velocity that the motion of the wheels determines.

    state    : pose and velocity of the base at the last sample
    time     : time of the last sample [s]; None before the first one
    solution : solution of the robot at the last sample passed to `advance`; None before
    """

    def __init__(self, robot: Robot, start: BaseState | None = None):
        """Create the odometry. Raises InputError if the wheels do not determine the motion of the base.

        start: pose of the base at the first sample; default: the origin of the world frame, not rotated
        """
        _wheels(robot)
        if free := [name for name in BASE if name not in robot.roles.posed]:
            raise InputError(f"the wheels of robot '{robot.name}' do not determine {some(free)} of its base; dead reckoning "
                             "is not possible: pass the pose and velocity of the base as inputs")
        self.robot, self.state = robot, BaseState() if start is None else start
        self.time: float | None = None
        self.solution: Solution | None = None
        self._rates = np.zeros((2, 6))

    def predict(self, time: float) -> BaseState:
        """Return the state extrapolated to a time [s] after the last sample at constant acceleration."""
        if self.time is None:
            return self.state
        h = time - self.time
        after = self._rates[0] + h * self._rates[1]
        return self._integrated(h, after, self._rates[1])

    def update(self, time: float, rates: ArrayLike) -> BaseState:
        """Integrate to a sample at a time [s] and return the state.

        rates: (2, 6) `BaseState.velocity` at the sample and its time derivative [m/s, rad/s; m/s^2, rad/s^2]
        """
        now = np.asarray(rates, dtype=float)[:2]
        if self.time is not None and time > self.time:
            self.state = self._integrated(time - self.time, now[0], now[1])
        else:
            self.state = BaseState(self.state.position, self.state.quaternion, now[0])
        self.time, self._rates = time, now.copy()
        return self.state

    def advance(self, time: float, *motion: ArrayLike) -> BaseState:
        """Return the state of the base at the next sample.

        time   : time of the sample [s]
        motion : q, qd, qdd, qddd of the joints, (n,) each
        """
        self.solution = self.robot.solve(*motion, base=self.predict(time))
        return self.update(time, self.solution.base)

    def _integrated(self, h: float, after: Array, after_rate: Array) -> BaseState:
        """Return the state a time h [s] after the last sample; the velocity in between is a cubic Hermite polynomial."""
        (before, rate), p, q = self._rates, self.state.position, self.state.quaternion

        def velocity(s: float) -> Array:
            a, b, c, d = 1 - 3 * s**2 + 2 * s**3, s - 2 * s**2 + s**3, 3 * s**2 - 2 * s**3, s**3 - s**2
            return np.asarray(a * before + b * h * rate + c * after + d * h * after_rate)

        def slope(s: float, q: Array) -> tuple[Array, Array]:
            v, w = np.split(velocity(s), 2)
            turn = 0.5 * np.append(q[3] * w + np.cross(q[:3], w), -q[:3] @ w)
            return BaseState(quaternion=q / np.linalg.norm(q)).rotation @ v, turn

        step = h / RK_STEPS
        for k in range(RK_STEPS):
            s, slopes = k / RK_STEPS, list[tuple[Array, Array]]()
            for node in (0.0, 0.5, 0.5, 1.0):
                at = q + node * step * slopes[-1][1] if slopes else q
                slopes.append(slope(s + node / RK_STEPS, at))
            p = p + step / 6.0 * (slopes[0][0] + 2.0 * slopes[1][0] + 2.0 * slopes[2][0] + slopes[3][0])
            q = q + step / 6.0 * (slopes[0][1] + 2.0 * slopes[1][1] + 2.0 * slopes[2][1] + slopes[3][1])
            q = q / np.linalg.norm(q)
        return BaseState(p, q, after)
