"""Poses on the way: those that a planned motion passes, and those near which it is looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..model.tree import Limits
from ..planning.bspline import PlannedMotion
from ..planning.planner import InitialPath
from ..planning.problem import EndState, Quantity, motion_quantity
from ..robots.inputs import validation
from ..robots.link_side import LinkSideRobot

APART = 1e-3  # shares of the duration between two waypoints, at least
LOOKS = 100  # at a motion that is a guess


def through(robot: LinkSideRobot, ends: Sequence[EndState], limits: Limits, given: Any) -> InitialPath:
    """Start, waypoints and goal, and when they are passed. given: (k, n) poses, or {share of the duration: pose}."""
    rows = list(given.values()) if isinstance(given, Mapping) else given
    poses = np.concatenate((ends[0].q[None], _poses("waypoints", robot, rows), ends[1].q[None]))
    inner = validation.numbers("shares of waypoints", list(given)) if isinstance(given, Mapping) else _times(poses, limits)
    shares = np.concatenate(([0.0], inner, [1.0]))
    if not (np.diff(shares) >= APART).all():
        raise InputError(f"waypoints are passed at {shares[1:-1].tolist()} of the duration; shares that rise from 0 to 1 are "
                         f"needed, {APART:g} apart")
    return InitialPath(shares, poses)


def passing(robot: LinkSideRobot, way: InitialPath) -> list[Quantity]:
    """The motion is at each of the waypoints at its share of the duration."""
    return [motion_quantity(0, robot.joint_names, pose, pose, f"position at waypoint {k}", [(share, share)])
            for k, (share, pose) in enumerate(zip(way.shares[1:-1], way.poses[1:-1], strict=True))]


def along(robot: LinkSideRobot, ends: Sequence[EndState], given: Any) -> InitialPath:
    """A guess: a motion that is known, or poses from start to goal, evenly passed. The ends are those of the plan."""
    if isinstance(given, PlannedMotion):
        poses = given(np.linspace(0.0, given.duration, LOOKS))[0]
        given = poses[1:-1]
    poses = np.concatenate((ends[0].q[None], _poses("guess", robot, given), ends[1].q[None]))
    return InitialPath(np.linspace(0.0, 1.0, len(poses)), poses)


def _poses(name: str, robot: LinkSideRobot, given: Any) -> np.ndarray:
    return np.atleast_2d(validation.coordinates(name, given, robot.joint_names))


def _times(poses: np.ndarray, limits: Limits) -> np.ndarray:
    """(k,) shares at which they are passed where every leg is gone at the largest speed, and shorter legs at less of it.

    A leg takes as long as its slowest joint does; the square root, because motions start and stop.
    """
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
    legs = np.sqrt((np.abs(np.diff(poses, axis=0)) / speed).max(axis=1))
    if not legs.all():
        raise InputError("two waypoints that follow each other, or one and start or goal, are the same pose; leave one out")
    return np.cumsum(legs)[:-1] / legs.sum()
