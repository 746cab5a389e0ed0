"""Fuzzing targets with motions: retiming of paths and limits; trajectories and interruptions in the executor of scaling_node.

The oracle is Pinocchio: no limit is exceeded, and reported torques are those of the reported motion.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from fuzz.mutation import Choices
from fuzz.nodes import dice
from fuzz.target import Target, Try, WrongNumber
from rnea_msgs.srv import RetimeTrajectory
from rnea_ros import Limits, Robot, retime_motion
from rnea_ros.errors import RneaError
from rnea_ros.execution.goal import TrajectoryPoint, read_goal
from rnea_ros.execution.states import Phase
from rnea_ros.nodes.query_node import SERVICES, fill_response, request_values
from support.executor_harness import DT, ExecutorHarness
from support.node_bench import ARM, NAMES

SLACK = 1e-3  # tolerance relative to a limit
INSTANTS = 400  # checked instants of a motion
MOST_POINTS = 8
LONGEST = 2.0  # [s]; longest motion that is executed to its end
QUANTITIES = ("effort", "effort_rate", "velocity", "acceleration", "jerk")
LEAST = {"effort": 60.0, "effort_rate": 10.0, "velocity": 0.05, "acceleration": 0.1, "jerk": 1.0}  # N m, N, ...
SCALES = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 1e5, np.nan)
ODD = 12  # of 256
AWAY = (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.03, 1.0)


class Judge:
    """Reference torques of an arm by Pinocchio."""

    def __init__(self, urdf: str, robot: Robot):
        from support.oracles import PinocchioOracle

        self._oracle = PinocchioOracle(urdf, robot)

    def check(self, motion: Any, limits: Limits, *reported: Any) -> None:
        """Check a motion q, qd, qdd, qddd (samples, n); reported: its torques and rates (samples, n), if available."""
        if not all(np.isfinite(block).all() for block in motion):
            raise WrongNumber("no number in a motion")
        torques = self.torques(motion)
        for found, expected in zip(reported, torques, strict=False):
            if not np.abs(found - expected).max() <= 1e-9 * max(1.0, np.abs(expected).max()):
                raise WrongNumber(f"torques are off by {np.abs(found - expected).max()}")
        values = *torques, *motion[1:]
        for quantity, value in zip(QUANTITIES, values, strict=True):
            used = np.abs(value) / getattr(limits, quantity)
            if np.nanmax(used, initial=0.0) > 1.0 + SLACK:
                raise WrongNumber(f"{np.nanmax(used)} of the limit of {quantity}, {getattr(limits, quantity)}")

    def torques(self, motion: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return tau and tau_rate (samples, n)."""
        tau, rate = zip(*(self._oracle.torque_and_rate(*sample) for sample in zip(*motion, strict=True)))
        return np.array(tau), np.array(rate)


# --- decisions --------------------------------------------------------------------------------------------------------

def _points(choose: Choices, n: int) -> list[list[float]]:
    """Return random points, some near an earlier one; a few have unusual values or one number too many."""
    points = [_pose(choose, n)]
    for _ in range(1 + choose.byte() % MOST_POINTS):
        near, pose = choose.pick((None, None, None, -1, -1, -2, 0)), _pose(choose, n)
        if near is not None and len(points) >= -near:
            away = choose.pick(AWAY)
            pose = [x + away * y for x, y in zip(points[near], pose, strict=True)]
        points.append(pose)
    if choose.byte() < ODD:
        points[choose.byte() % len(points)][0] = choose.number()
    if choose.byte() < ODD:
        points[choose.byte() % len(points)] = choose.numbers(n)
    return points


def _pose(choose: Choices, n: int) -> list[float]:
    return [(choose.byte() - 128) / 100.0 for _ in range(n)]


def _limits(choose: Choices, like: Limits) -> Limits:
    n = len(like.effort)
    return replace(like, **{quantity: np.array([LEAST[quantity] * choose.pick(SCALES) for _ in range(n)])
                            for quantity in QUANTITIES})


# --- retiming ---------------------------------------------------------------------------------------------------------

def _retime(_folder: Path) -> Try:
    robot = Robot.from_urdf(ARM)
    judge = Judge(ARM, robot)

    def attempt(data: bytes) -> str:
        choose = Choices(data)
        limits, tolerance = _limits(choose, robot.limits), choose.pick((*[1e-6] * 9, 0.0, 1e-3, 0.1, -1.0, np.nan))
        points = _points(choose, robot.n)
        if choose.byte() % 4 == 0:
            return _asked(choose, robot, judge, limits, points)
        motion = retime_motion(robot, points, limits=limits, tolerance=tolerance)
        found = motion(np.linspace(0.0, motion.duration, INSTANTS))
        judge.check(found, limits)
        ends = np.array([found[0][0] - points[0], found[0][-1] - points[-1]])
        if np.abs(ends).max() > max(tolerance, 1e-9) + 1e-9 * np.abs(points).max():
            raise WrongNumber(f"it begins and ends {np.abs(ends).max()} off")
        return "retimed"

    return attempt


def _asked(choose: Choices, robot: Robot, judge: Judge, limits: Limits, points: list[list[float]]) -> str:
    """Return the same results by query_node's service."""
    service, fast = SERVICES["retime_trajectory"], choose.byte() % 2
    sent = [JointTrajectoryPoint(positions=q, velocities=_pose(choose, robot.n) if fast else []) for q in points]
    request = RetimeTrajectory.Request(trajectory=JointTrajectory(joint_names=NAMES, points=sent), tolerance=1e-6,
                                       rate=choose.pick((1000.0, 1000.0, 100.0, 10.0, 0.1, 1e9, 0.0, -1.0, np.nan)))
    answer = service.answer(robot, request_values(request), limits)
    fill_response(service.kind.Response(), answer)
    trajectory = answer["trajectory"]
    motion = [trajectory[name] for name in ("positions", "velocities", "accelerations")] + [answer["jerk"]]
    few = slice(None, None, max(1, len(motion[0]) // INSTANTS))
    judge.check([block[few] for block in motion], limits, trajectory["effort"][few], answer["effort_rate"][few])
    return "retimed by the service"


# --- goals and interrupts ---------------------------------------------------------------------------------------------

SETTINGS: dict[str, tuple[Any, ...]] = {
    "interpolation": ("positions", "velocities", "accelerations"), "catch_up": (True, False), "solve_first": (False, True),
    "start_mismatch": ("refuse", "prepend"), "on_new_trajectory": ("replace", "refuse"),
    "output": ("points", "points", "trajectory", "horizon")}


def _goals(_folder: Path) -> Try:
    robot = Robot.from_urdf(ARM)
    judge = Judge(ARM, robot)

    def attempt(data: bytes) -> str:
        choose = Choices(data)
        limits = _limits(choose, robot.limits)
        harness = ExecutorHarness(limits, arm=robot, **{name: choose.pick(values) for name, values in SETTINGS.items()})
        harness.settle()
        for _ in range(5):
            if choose:
                with suppress(RneaError):  # rejected inputs change nothing
                    _act(choose, harness)
        harness.executor.resume()
        harness.executor.set_override(1.0)
        harness.play(LONGEST)
        return _kept(harness, judge, limits)

    return attempt


def _act(choose: Choices, harness: ExecutorHarness) -> None:
    """Perform a random user action, and execute for a random time."""
    executor = harness.executor
    acts: tuple[Callable[[], Any], ...] = (
        lambda: harness.take(_goal(choose, harness)), executor.pause, executor.resume, executor.stop,
        lambda: executor.set_override(choose.pick((0.0, 1e-3, 0.1, 0.2, 0.5, 0.8, 0.99, 1.0, 1.0, np.nan, -1.0))),
        lambda: setattr(harness, "measured", np.array([choose.number() for _ in NAMES])))
    choose.pick((*acts[:1] * 4, *acts))()
    harness.play(choose.pick((0.0, 1e-3, 0.02, 0.1, 0.5)))


def _goal(choose: Choices, harness: ExecutorHarness) -> Any:
    names = choose.pick((*[NAMES] * 6, NAMES[::-1], NAMES[:2]))
    n, when, points = len(names), choose.pick((0.0,) * 5 + (0.1,) * 5 + (1.0,) * 5 + (-1.0, np.nan)), []
    moving = choose.pick((0, 0, 1, 2))
    for q in _points(choose, n):
        rates = [_pose(choose, n) for _ in range(moving)]
        points.append(TrajectoryPoint(when, q, *rates))
        when += choose.pick((*(0.3, 1.0, 0.1, 0.03, 0.2, 2.0, 0.5) * 8, 0.01, 1e-3, 1e-6, 1e-9, 100.0, 0.0))
    if choose.byte() > ODD:
        for k in (0, -1):  # from rest to rest
            points[k] = TrajectoryPoint(*points[k][:2], *[[0.0] * n] * moving)
    if choose.byte() % 2 and harness.samples and names is NAMES:  # from where the robot is
        points[0] = points[0]._replace(positions=harness.samples[-1].reference.q.tolist())
    return read_goal(tuple(NAMES), names, points)


def _kept(harness: ExecutorHarness, judge: Judge, limits: Limits) -> str:
    failures = [text for text in harness.events if "failed" in text]
    failures += [str(rejected) for rejected in harness.rejected if rejected.reason == "internal_error"]
    if failures:
        raise AssertionError(failures[0])
    if not harness.samples:
        return f"nothing moved: {harness.rejected[-1].reason if harness.rejected else 'nothing asked'}"
    motion = harness.motion()
    judge.check(motion, limits, *(np.array([getattr(sample, name) for sample in harness.samples])
                                  for name in ("effort", "effort_rate")))
    if harness.executor.phase is Phase.IDLE and np.abs([motion[1][-1], motion[2][-1]]).max() > 1e-6:
        raise WrongNumber(f"it ends at velocities {motion[1][-1]}, accelerations {motion[2][-1]}")
    same = np.diff([sample.reference.t for sample in harness.samples]) > 0.0  # motion
    steps = np.abs(np.diff(motion[0], axis=0))[same].max(axis=0, initial=0.0)
    if (steps > 1.01 * np.abs(motion[1]).max(axis=0) * DT + 1e-9).any():
        raise WrongNumber(f"positions leap by {steps}")
    return "moved"


TARGETS = (Target("retime", dice, _retime), Target("goals", dice, _goals))
