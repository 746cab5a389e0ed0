"""Monitor of the declared payload: reports a mass at the tool that measured torques contain and the model does not.

The latest motion and torques give an estimate of what the tool carries, payload.py, with friction fitted beside it. Its
difference from the declared payload is reported if the mass differs by `threshold` standard deviations in two checks in a row.
The standard deviation contains noise, friction errors and the masses of the links, each wrong by `masses` of itself; the
latter is the largest part, 0.1 to 0.25 kg for arms of 4 to 30 kg, and constant. So a *reference* is taken from the first
motion that contradicts nothing, or from a tare: later differences are compared with it, where the errors of the links cancel
as far as the motions are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..robots.robot import Robot
from .payload import MASSES, MIN_SAMPLES, NAMES, PayloadEstimate, PayloadEstimator, RawPayload

CHECKS = 2  # checks in a row that must agree
MAX_SAMPLES = 250  # samples of a window that are used: friction errors are correlated over many of them


@dataclass(frozen=True)
class PayloadMonitorOptions:
    """Options of the payload monitor.

    windows        : lengths of the latest motion that checks use, shortest first [s]
    reference_time : length of the motion that the reference is taken from [s]
    threshold      : difference of the mass that is reported [standard deviations]
    min_mass       : smallest difference that is reported [kg]
    masses         : relative standard deviation of the masses of the links
    """

    windows: tuple[float, ...] = (10.0, 30.0, 60.0)
    reference_time: float = 30.0
    threshold: float = 5.0
    min_mass: float = 0.1
    masses: float = MASSES


class WrongPayload(NamedTuple):
    """Difference between what the tool carries and the declared payload.

    excess, std     : mass beyond the declared one and its standard deviation [kg]
    payload         : estimate of the whole payload; None if there is none
    since_reference : whether the difference is from the reference, so that the errors of the links cancel
    """

    link: str
    declared: float
    excess: float
    std: float
    payload: PayloadEstimate | None
    since_reference: bool

    @property
    def parameters(self) -> dict[str, object]:
        """Values of the parameters payload.* that remove the difference."""
        if self.payload is None:
            return {"link": self.link, "mass": 0.0}
        is_known = not set(NAMES[4:]) & set(self.payload.unknown)  # a part of an inertia may be that of no body
        inertia = self.payload.values[4:] if is_known else np.zeros(6)
        return {"link": self.link, "mass": round(self.payload.mass, 3), "com": np.round(self.payload.com, 3).tolist(),
                "inertia": [float(f"{value:.3g}") for value in inertia]}

    def __str__(self) -> str:
        estimate = self.payload
        lines = ", ".join(f"payload.{name}: {value}" for name, value in self.parameters.items())
        found = "nothing" if estimate is None else (
            f"{estimate.mass:.2f} kg at {np.round(estimate.com, 3).tolist()} m (+- {np.round(estimate.std[1:4], 3).tolist()})")
        return (f"measured efforts contradict the declared payload: link '{self.link}' carries {self.excess:+.2f} +- "
                f"{self.std:.2f} kg beside the declared {self.declared:.2f} kg, in all {found}. If nothing touches the robot, "
                f"set {lines}")


class PayloadMonitor:
    """Checks of the declared payload of one link, one after another.

    robot      : with its declared payload
    finding    : what the last checks found; None if nothing contradicts the payload
    detectable : smallest difference of the mass that the last check could have reported [kg]; NaN before the first
    """

    def __init__(self, robot: Robot, link: str, options: PayloadMonitorOptions = PayloadMonitorOptions()):
        """robot: with its declared payload. The kernels are compiled by the first check."""
        self.link, self.options = link, options
        self._estimator = PayloadEstimator(robot, link)
        self._reference: RawPayload | None = None  # of the robot without payload
        self._has_tare = False
        self.use(robot)

    def use(self, robot: Robot) -> None:
        """Continue with another declared payload of the same robot. Only a tare stays: the former may have been wrong."""
        if not self._has_tare:
            self._reference = None
        self.robot, self._declared = robot, self._declared_parameters(robot)
        self._agreeing, self.detectable = 0, np.nan
        self.finding: WrongPayload | None = None

    def _declared_parameters(self, robot: Robot) -> np.ndarray:
        """Return m, m com and J about the origin (10,) of the declared payload in the link's URDF frame."""
        found = robot.payloads.get(self.link)
        return np.zeros(10) if found is None else np.linalg.solve(self._estimator.to_mdh, found.parameters)

    def set_tare(self, raw: RawPayload) -> None:
        """Compare with this estimate from now on: it was made without a payload."""
        self._reference, self._has_tare = raw, True

    def check(self, samples: np.ndarray, period: float) -> WrongPayload | None:
        """Return what the latest samples (k, 4, n) of q, qd, qdd and joint torque find, `period` [s] apart; None: nothing.

        Only what two checks in a row agree on is returned.
        """
        best: tuple[float, float, float, RawPayload] | None = None
        if period <= 0.0:  # one sample, or none
            return self.finding
        for window in self.options.windows:
            count = round(window / period)
            if len(samples) < max(count, MIN_SAMPLES):
                break
            raw = self._raw(samples[-count:])
            excess, std = self._excess(raw)
            if best is None or abs(excess) / std > abs(best[0]) / best[1]:
                best = excess, std, abs(excess) / std, raw
        if best is None:
            return self.finding
        excess, std, significance, raw = best
        self.detectable = max(self.options.threshold * std, self.options.min_mass)
        is_wrong = significance > self.options.threshold and abs(excess) > self.options.min_mass
        self._agreeing = self._agreeing + 1 if is_wrong else 0
        self.finding = self._described(raw, excess, std) if self._agreeing >= CHECKS else None
        if self._reference is None and not is_wrong:
            self._take_reference(samples, period)
        return self.finding

    def _raw(self, samples: np.ndarray) -> RawPayload:
        step = -(-len(samples) // MAX_SAMPLES)
        return self._estimator.raw(*np.moveaxis(samples[::step], 1, 0))

    def _excess(self, raw: RawPayload) -> tuple[float, float]:
        """Return the mass beyond the declared one and its standard deviation [kg], the smaller one of both ways."""
        absolute = raw.theta[0] - self._declared[0], _std(raw.covariance, raw.mass_sensitivity, self.options.masses)
        reference = self._reference
        if reference is None:
            return absolute
        relative = absolute[0] - reference.theta[0], _std(
            raw.covariance + reference.covariance, raw.mass_sensitivity - reference.mass_sensitivity, self.options.masses)
        return min(absolute, relative, key=lambda found: found[1])

    def _take_reference(self, samples: np.ndarray, period: float) -> None:
        """Take the reference if the motion determines the mass better than the masses of the links are known."""
        count = round(self.options.reference_time / period)
        if len(samples) < count:
            return
        raw = self._raw(samples[-count:])
        noise = np.sqrt(raw.covariance[0, 0])
        excess, std = self._excess(raw)
        if abs(excess) < self.options.threshold * std and noise < 0.5 * std:
            self._reference = raw._replace(theta=raw.theta - self._declared)

    def _described(self, raw: RawPayload, excess: float, std: float) -> WrongPayload:
        reference = self._reference
        is_relative = reference is not None and _std(raw.covariance, raw.mass_sensitivity, self.options.masses) > std
        try:
            payload = self._estimator.estimate(raw, reference if is_relative else None, self.options.masses)
        except InputError:
            payload = None  # the declared payload is not there
        return WrongPayload(self.link, float(self._declared[0]), float(excess), float(std), payload, is_relative)


def _std(covariance: np.ndarray, sensitivity: np.ndarray, masses: float) -> float:
    """Return the standard deviation of the mass [kg]."""
    return float(np.sqrt(covariance[0, 0] + np.square(masses * sensitivity[0]).sum()))


def tool_link(robot: Robot) -> str:
    """Return the link at the end of the longest chain of joints, of several fingers the hand: the tool."""
    links, depth = robot.model.links, {0: 0}
    for number, link in enumerate(links[1:], 1):
        depth[number] = depth[link.parent] + bool(link.joint)
    deepest = [number for number in depth if links[number].joint and depth[number] == max(depth.values())]
    tool = deepest[0] if len(deepest) == 1 else links[deepest[0]].parent
    return next(name for name, frame in robot.model.frames.items() if frame.link == tool)
