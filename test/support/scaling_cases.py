"""Motions for the tests of trajectory/: arms, random paths, and active limits."""

from __future__ import annotations

import copy
from concurrent.futures import Executor, Future
from functools import cache
from pathlib import Path as File

import numpy as np

from rnea_ros import Robot
from rnea_ros.trajectory.constraints import Constraints, PathLimits
from rnea_ros.trajectory.path import Path, path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.retiming import time_optimal_law
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from rnea_ros.trajectory.trajectory_scaler import Reference, TrajectoryScaler

TOLERANCE = 1e-6  # relative, of every limit
DT = 1e-3
ROOT = File(__file__).resolve().parents[2]


@cache
def urdf(name: str) -> File | None:
    """Return a URDF of this package or of example-robot-data; None if that is not installed."""
    own = ROOT / "urdf" / f"{name}.urdf"
    if own.exists():
        return own
    try:
        import pinocchio
    except ImportError:
        return None
    roots = [parent for parent in File(pinocchio.__file__).parents if (parent / "share" / "example-robot-data").is_dir()]
    return next(roots[0].glob(f"share/example-robot-data/robots/**/{name}.urdf"), None) if roots else None


ARMS = ("seven_r", "stanford", "ur5_robot")


@cache
def dynamics(name: str) -> PathDynamics:
    return PathDynamics(Robot.from_urdf(urdf(name)))


def waypoints(robot: Robot, seed: int, count: int = 7) -> np.ndarray:
    """Return random points well inside the arm's range."""
    low, high = np.maximum(robot.limits.lower, -2.0), np.minimum(robot.limits.upper, 2.0)
    return np.random.default_rng(seed).uniform(low, high, (count, robot.n))


def limits_for(robot: Robot, path: Path, swing: float | None = 0.1, tight: float = 1.4) -> PathLimits:
    """Return limits: gravity uses up to 1 / tight of the torques; torque rates allow a full change in `swing` seconds."""
    gravity = np.abs(robot.gravity(path(np.linspace(0.0, path.length, 1001))[0])).max(axis=0)
    effort = np.maximum(tight * gravity, 0.15 * robot.limits.effort)
    unknown = np.full(robot.n, np.nan)
    rate = unknown if swing is None else 2.0 * effort / swing
    return PathLimits(effort, rate, 1.5 * robot.limits.velocity, np.full(robot.n, 40.0), unknown)


class Motion:
    """Random motion of an arm, planned at a multiple of the speed that its limits allow."""

    def __init__(self, name: str, seed: int, speed: float = 2.0, count: int = 7, swing: float | None = 0.1):
        self.dynamics = dynamics(name)
        self.robot = self.dynamics.robot
        self.points = waypoints(self.robot, seed, count)
        path = path_through(self.points)
        self.limits = limits_for(self.robot, path, swing)
        self.fastest = time_optimal_law(self.constraints(path))
        times = np.array([0.0, *self.fastest.time_at(path.breaks[1:-1]), self.fastest.duration]) / speed
        self.plan = plan_from_waypoints(self.points, times)
        self.path = self.plan.path

    def constraints(self, path: Path, limits: PathLimits | None = None) -> Constraints:
        return Constraints(path, self.dynamics, limits or self.limits, self.robot.joint_names)

    @property
    def here(self) -> Constraints:
        return self.constraints(self.path)


def toy(q, qd, qdd, qddd):
    """Return exact torques and rates without a robot: a pendulum (1 kg m^2, 5 N m by gravity) and a slide (2 kg) with viscous
    friction.
    """
    tau = np.stack((qdd[..., 0] + 5.0 * np.sin(q[..., 0]), 2.0 * qdd[..., 1]), axis=-1) + 0.3 * qd
    rate = np.stack((qddd[..., 0] + 5.0 * np.cos(q[..., 0]) * qd[..., 0], 2.0 * qddd[..., 1]), axis=-1) + 0.3 * qdd
    return tau, rate


class PlayedMotion:
    """References of an executed motion, `between` for each tick, and the limits used by each."""

    def __init__(self, scaler, actions=(), dt=DT, most=40.0, between=1):
        self.references, self.changes = [], []
        waiting = sorted(actions, key=lambda action: action[0])
        steps = iter(dt) if np.iterable(dt) else None
        while not self.references or not (self.references[-1].done or scaler.t > most):
            while waiting and scaler.t >= waiting[0][0] - 1e-9:
                waiting.pop(0)[1](scaler)
                self.changes.append(len(self.references))
            if isinstance(scaler._worker, DelayedExecutor):
                scaler._worker.step()
            self.references += references_within_tick(scaler, dt if steps is None else next(steps), between)
        self.q, self.qd, self.qdd, self.qddd = (np.array([getattr(r, name) for r in self.references])
                                                for name in ("q", "qd", "qdd", "qddd"))
        self.t, self.s, self.rate = (np.array([getattr(r, name) for r in self.references]) for name in ("t", "s", "rate"))
        self.duration, self.done = scaler.t, scaler.done

    def used(self, robot, limits) -> np.ndarray:
        """Return the largest utilizations of torque, torque rate, velocity and acceleration (ticks, 4)."""
        tau, tau_rate = robot.torque_and_rate(self.q, self.qd, self.qdd, self.qddd)
        return np.stack([np.abs(value / limit).max(axis=1) for value, limit in
                         zip((tau, tau_rate, self.qd, self.qdd), limits[:4])], axis=1)


class DelayedExecutor(Executor):
    """Executor whose results arrive after a given number of ticks of a scaler."""

    def __init__(self, delay: int):
        self.delay, self.now, self.jobs = delay, 0, []

    def submit(self, work, /, *args, **kwargs):
        future = Future()
        self.jobs.append((self.now + self.delay, future, work))
        return future

    def step(self) -> None:
        self.now += 1
        due = [job for job in self.jobs if job[0] <= self.now]
        self.jobs = [job for job in self.jobs if job[0] > self.now]
        for _, future, work in due:
            try:
                future.set_result(work())
            except Exception as error:  # a real worker passes on every error, too
                future.set_exception(error)


def references_within_tick(scaler: TrajectoryScaler, dt: float, between: int = 1) -> list[Reference]:
    """Execute one tick and return references at `between` instants within it, the last one at its end."""
    seen, advance = [], scaler.time_scaling.advance

    def advance_in_parts(dt: float) -> None:
        for k in range(between):
            advance(dt / between)
            if k < between - 1:
                seen.append(scaler.reference())

    scaler.time_scaling.advance = advance_in_parts  # type: ignore[method-assign]
    try:
        last = scaler.tick(dt)
    finally:
        del scaler.time_scaling.advance  # type: ignore[method-assign]
    return [*seen, last]


def again(scaler: TrajectoryScaler, worker: Executor | None = None) -> TrajectoryScaler:
    """Return a copy of a scaler in the same state; laws and tables are shared."""
    other = copy.copy(scaler)
    other.restore(scaler.snapshot())
    other._requested, other._worker = [], worker
    return other
