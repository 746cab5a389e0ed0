"""Adaptive waypoints: demands of the quintics between them, by Pinocchio, on random robots and paths."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import Robot
from rnea_ros.trajectory.constraints import Constraints, PathLimits
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.retiming import time_optimal_law
from rnea_ros.trajectory.rolling_trajectory import MAX_EXCESS, WAYPOINT_OPTIONS, adaptive_waypoints, quintic_motion
from rnea_ros.trajectory.time_law import hermite_law, rest_to_rest
from rnea_ros.trajectory.trajectory_scaler import joint_motion
from support.oracles import PinocchioOracle
from support.robots import random_tree

PROMISED = 1.12  # times the planned peak
DENSE = 23  # instants between two points, different from the samples of the check
SEEDS = range(4)


def on(path, law):
    """Return the motion of a path and time law: times (samples,) -> q, qd, qdd, qddd (samples, n)."""

    def motion(t):
        s, *rates = law(t)
        return joint_motion(path(s), *(rate[:, None] for rate in rates))

    return motion


def quantities(robot):
    return lambda *motion: np.concatenate(robot.torque_and_rate(*motion), axis=1)


def between(times):
    """Return instants inside each interval, close to both ends."""
    u = np.linspace(1e-7, 1.0 - 1e-7, DENSE)
    return (times[:-1, None] + np.diff(times)[:, None] * u).ravel()


@pytest.mark.parametrize("seed", SEEDS)
def test_quintics_between_waypoints_exceed_the_planned_peak_by_less_than_12_percent(seed):
    text = random_tree(seed).plain()
    robot = Robot.from_urdf(text)
    path = path_through(np.random.default_rng(seed).uniform(-1.5, 1.5, (5, robot.n)))
    effort = 1.0 + 1.4 * np.abs(robot.gravity(path(np.linspace(0.0, path.length, 501))[0])).max(axis=0)
    every = np.ones(robot.n)
    limits = PathLimits(effort, 20.0 * effort, 3.0 * every, 40.0 * every, np.nan * every)
    law, oracle = time_optimal_law(Constraints(path, PathDynamics(robot), limits)), PinocchioOracle(text, robot)
    corners = np.unique(np.concatenate((law.corners, law.time_at(path.breaks))))
    motion = on(path, law)
    points = adaptive_waypoints(motion, 0.0, law.duration, corners, quantities(robot))
    assert points.excess <= MAX_EXCESS and np.diff(points.times).max() <= WAYPOINT_OPTIONS.max_interval_s + 1e-12
    assert points.times[-1] == law.duration and not np.abs(points.qd[-1]).max() > 1e-9
    t = between(points.times)
    planned, moved = motion(t), quintic_motion(*points[:4])(t)
    assert np.abs(planned[0] - moved[0]).max() < 1.5 * WAYPOINT_OPTIONS.position_tol
    asked, got = (np.abs([np.concatenate(oracle.torque_and_rate(*sample)) for sample in zip(*blocks)])
                  for blocks in (planned, moved))
    peaks = asked.max(axis=0)
    moving = peaks > 1e-3 * peaks.max()
    asked, got, peaks = asked[:, moving], got[:, moving], peaks[moving]
    assert (got.max(axis=0) / peaks).max() <= PROMISED
    # and at its position: no more than a share of the peak above what is planned in the same interval
    asked, got = (x.reshape(-1, DENSE, x.shape[1]).max(axis=1) for x in (asked, got))
    assert ((got - asked) / peaks).max() <= PROMISED - 1.0


def test_waypoints_of_piecewise_constant_jerk_are_at_its_jumps_only():
    """One joint moves on cubics, which the quintics reproduce between the jumps of the jerk."""
    times = np.array([0.0, 0.23, 0.5, 0.77, 1.0])
    jerk = np.array([8.0, -20.0, 20.0, -8.0])
    state = [np.array([2.0, 0.0, 0.0])]
    for h, j in zip(np.diff(times), jerk):
        s, v, a = state[-1]
        state.append(np.array([s + h * (v + h * (a / 2 + h * j / 6)), v + h * (a + h * j / 2), a + h * j]))
    law = hermite_law(times, *np.array(state).T)
    path = path_through(np.array([[0.0], [4.0]]))
    points = adaptive_waypoints(on(path, law), 0.0, 1.0, times, lambda q, qd, qdd, qddd: qddd)
    assert np.abs(points.times[:, None] - times).min(axis=0).max() < 1e-12
    assert len(points.times) < 20 and points.excess < MAX_EXCESS
    without = adaptive_waypoints(on(path, law), 0.0, 1.0, np.zeros(0), lambda q, qd, qdd, qddd: qddd)
    assert len(without.times) > len(points.times)


def test_waypoints_of_a_motion_at_rest_are_its_two_ends():
    path = path_through(np.array([[0.0, 0.0], [1.0, -1.0]]))
    law = rest_to_rest(0.0, path.length, 1.0)
    points = adaptive_waypoints(on(path, law), 1.1, 1.1, np.zeros(0), lambda *motion: motion[2])
    assert len(points.times) == 2 and not points.qd.any() and points.excess < MAX_EXCESS
