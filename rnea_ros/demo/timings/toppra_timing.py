"""TOPP-RA's timing of a path, under limits of torque and velocity: it has no row for the torque rate. The only place that
imports toppra."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from ...errors import MissingPackage, RneaError
from ...motion.retime import Retimed
from ...robots.robot import Robot
from ...scaling.law import TimeLaw
from ...scaling.path import Path
from ...scaling.retime import Route

GRID = 1001  # places on the path


def toppra() -> Any:
    """The module. RneaError where it is not installed."""
    try:
        import toppra as found
    except ImportError as error:
        raise MissingPackage(f"TOPP-RA's timing needs toppra ({error})", "sim") from None
    logging.getLogger("toppra").setLevel(logging.ERROR)
    return found


def timed(robot: Robot, route: Route, share: float = 1.0) -> Retimed:
    """The fastest law that it finds, from rest to rest, with a share of the torque limits and all of the velocity limits.

    Raises RneaError where it finds none, and without toppra.
    """
    ta, limits, grid = toppra(), robot.limits, np.linspace(0.0, route.path.length, GRID)
    effort = share * np.stack((-limits.effort, limits.effort), axis=1)
    rules = [ta.constraint.JointTorqueConstraint(robot.inverse_dynamics, effort, np.zeros(robot.n),
                                                 discretization_scheme=ta.constraint.DiscretizationType.Interpolation)]
    if np.isfinite(limits.velocity).all():
        rules.append(ta.constraint.JointVelocityConstraint(np.stack((-limits.velocity, limits.velocity), axis=1)))
    found = ta.algorithm.TOPPRA(rules, _geometry(ta, route.path), gridpoints=grid, solver_wrapper="seidel")
    speed = found.compute_parameterization(0.0, 0.0)[1]
    if speed is None or np.isnan(speed).any():
        raise RneaError("TOPP-RA finds no timing of this path")
    return Retimed(route, _law(grid, speed))


def _law(s: np.ndarray, speed: np.ndarray) -> TimeLaw:
    """Constant acceleration from place to place, as TOPP-RA means it."""
    spans = 2.0 * np.diff(s) / (speed[1:] + speed[:-1])
    coefficients = np.zeros((len(spans), 6))
    coefficients[:, 0], coefficients[:, 1], coefficients[:, 2] = s[:-1], speed[:-1], 0.5 * np.diff(speed) / spans
    return TimeLaw(np.concatenate(([0.0], np.cumsum(spans))), coefficients)


def _geometry(ta: Any, path: Path) -> Any:
    class Geometry(ta.interpolator.AbstractGeometricPath):
        dof = path.n
        path_interval = np.array([0.0, path.length])
        waypoints = (path.breaks, path(path.breaks)[0])

        def __call__(self, s: Any, order: int = 0) -> np.ndarray:
            found = path(np.atleast_1d(s))[order]
            return found[0] if np.ndim(s) == 0 else found

    return Geometry()
