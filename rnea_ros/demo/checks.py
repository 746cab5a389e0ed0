"""Recording of a demo, and checks of it by laws that are independent of the code under test.

Robots in MuJoCo are checked against the torques of MuJoCo's motors, by contact phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..robots.robot import Robot
from ..sim.plant import CHANGE, STANCE, SWING, phases
from .motion import MotionSample, stanford_motion


@dataclass(frozen=True, eq=False)
class DemoRecording:
    """Motion and computed torques: stamps t (samples,) [ns], all others (samples, n) [SI units]."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray

    @property
    def motion(self) -> MotionSample:
        return MotionSample(self.q, self.qd, self.qdd, self.qddd)

    @property
    def seconds(self) -> np.ndarray:
        return (self.t - self.t[0]) * 1e-9

    def at(self, samples: np.ndarray) -> DemoRecording:
        """Return the samples with these indices."""
        return DemoRecording(*(array[samples] for array in vars(self).values()))


class TopicSeries(NamedTuple):
    """Messages of one topic: stamps t (samples,) [ns], and their numbers in the order of the fields (samples, k)."""

    t: np.ndarray
    values: np.ndarray


Topics = Mapping[str, TopicSeries]


def pair_by_stamp(recording: DemoRecording, *others: TopicSeries) -> tuple[DemoRecording, list[np.ndarray]]:
    """Return the samples for which every series has a message with the same stamp, and the values of these messages."""
    stamps = reduce(np.intersect1d, (series.t for series in others), recording.t)
    return (recording.at(np.searchsorted(recording.t, stamps)),
            [series.values[np.searchsorted(series.t, stamps)] for series in others])


def compute_recording(robot: Robot, motion: Callable[[float], MotionSample], seconds: float, rate: float) -> DemoRecording:
    """Return the recording that the library computes for a motion, without ROS. seconds : duration [s]; rate : [Hz]"""
    t = np.arange(int(seconds * rate)) * round(1e9 / rate)
    samples = MotionSample(*map(np.array, zip(*(motion(time) for time in t * 1e-9))))
    return DemoRecording(t, *samples, *robot.torque_and_rate(*samples))


PAPER_STEP_S = 1e-4
PAPER_MAX_DIFFERENCE = 2.462e-2  # N m/s; Guarino Lo Bianco (2009), section V, joint 1
FINITE_DIFFERENCE_TOL = 2e-3  # of the joint's largest rate, for difference quotients over a few milliseconds
EXACT_TOL = 1e-8  # of the joint's largest torque and rate, between two exact methods
ENERGY_STEP_S = 1e-4
ENERGY_TOL = 1e-6  # of the largest power; the energy rate is a difference quotient
SHORT_STEP_S, REGULAR_STEP = 6e-3, 1.5  # a step below either bound (the second in usual steps) means that no message was lost
MIN_SMOOTH_SHARE = 0.1  # of the samples
SMOOTH_TOL = 2e-4  # of the joint's largest acceleration and jerk


class CheckResult(NamedTuple):
    """Result of one check, with a line of text that holds the numbers."""

    passed: bool
    text: str


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as text in columns: the first one to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    rows = ([cell.rjust(width) for cell, width in zip(line, widths)] for line in lines)
    return "\n".join("  ".join([line[0].ljust(widths[0]), *row[1:]]) for line, row in zip(lines, rows))


def check_bitwise(robot: Robot, motion: MotionSample, tau: np.ndarray, tau_rate: np.ndarray) -> CheckResult:
    """Check that all torques and rates are bitwise those of the library for the received motion q, qd, qdd, qddd."""
    expected = robot.dynamics(*motion)
    wrong = (expected.tau != tau) | (expected.tau_rate != tau_rate)
    samples, joints = tau.shape
    if not wrong.any():
        return CheckResult(True, f"{samples} samples of {joints} joints: identical to the Python library (bitwise)")
    return CheckResult(False, f"{np.count_nonzero(wrong)} of {wrong.size} values differ from the library's")


def check_close(found: np.ndarray, expected: np.ndarray, allowed: float, what: str) -> CheckResult:
    """Check that two arrays (samples, n) agree, relative to the largest number of each column."""
    if not len(found):
        return CheckResult(False, f"{what}: no usable sample")
    largest = np.abs(expected).max(axis=0).clip(min=1e-6)
    error = float((np.abs(found - expected) / largest).max())
    return CheckResult(error < allowed,
                       f"{what} to {error:.1e} of the largest one ({len(found)} samples; allowed {allowed:g})")


def check_torques(recording: DemoRecording, tau: np.ndarray, tau_rate: np.ndarray, what: str) -> CheckResult:
    """Check torques and rates against those of another exact method."""
    received, expected = np.hstack((recording.tau, recording.tau_rate)), np.hstack((tau, tau_rate))
    return check_close(received, expected, EXACT_TOL, f"torques and rates are those of {what}")


def check_power(recording: DemoRecording, energy: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> CheckResult:
    """Check that the power of the motors is the rate of the energy, for robots without friction.

    energy : function (q, qd) -> kinetic plus potential energy (samples,) [J]; evaluated shortly before and after each sample,
    along the received motion
    """
    q, qd, qdd, qddd = recording.motion
    after, before = (energy(q + h * (qd + h / 2 * (qdd + h / 3 * qddd)), qd + h * (qdd + h / 2 * qddd))
                     for h in (ENERGY_STEP_S, -ENERGY_STEP_S))
    power, slope = np.sum(recording.tau * qd, axis=1), (after - before) / (2 * ENERGY_STEP_S)
    return check_close(power[:, None], slope[:, None], ENERGY_TOL, "the motors' power is the slope of the energy")


def slopes(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return dx/dt at every sample but the first and the last, from three points at unequal distances."""
    step = np.diff(t)[:, None]
    slope, h, k = np.diff(x, axis=0) / step, step[:-1], step[1:]
    return (k * slope[:-1] + h * slope[1:]) / (h + k)


def smooth_samples(recording: DemoRecording) -> np.ndarray:
    """Return the indices of samples at which a difference quotient approximates the derivative.

    The received motion must be smooth there: its acceleration is the slope of its velocity, its jerk the slope of its
    acceleration. This excludes jumps of the jerk, where the torque rate jumps too, and the neighbours of lost messages, since
    the error of a difference quotient is quadratic in the step.
    """
    t, inner = recording.seconds, slice(1, -1)
    step = np.diff(t)
    regular = step < max(SHORT_STEP_S, REGULAR_STEP * np.percentile(step, 10))
    found = regular[:-1] & regular[1:]
    for lower, upper in ((recording.qd, recording.qdd), (recording.qdd, recording.qddd)):
        error = np.abs(slopes(t, lower) - upper[inner])
        found &= (error <= SMOOTH_TOL * np.abs(upper).max(axis=0)).all(axis=1)
    return np.flatnonzero(found) + 1


def difference_quotients(recording: DemoRecording) -> tuple[np.ndarray, np.ndarray]:
    """Return d tau / dt from the received torques only: (indices of samples, difference quotients)."""
    where = smooth_samples(recording)
    return where, slopes(recording.seconds, recording.tau)[where - 1]


def check_rates(recording: DemoRecording, joint_names: tuple[str, ...]) -> CheckResult:
    """Check that the received rates are the slopes of the received torques."""
    inner, quotients = difference_quotients(recording)
    if len(inner) < MIN_SMOOTH_SHARE * len(recording.t):
        return CheckResult(False,
                           f"only {len(inner)} of {len(recording.t)} samples belong to a smooth motion: messages were lost")
    largest = np.abs(recording.tau_rate).max(axis=0).clip(min=1e-6)
    error = np.abs(quotients - recording.tau_rate[inner]).max(axis=0) / largest
    worst = int(error.argmax())
    text = (f"torque rate agrees with finite differences of the torque: error {error[worst]:.2g} of the peak "
            f"({joint_names[worst]}, {len(inner)} samples; tolerance {FINITE_DIFFERENCE_TOL:g})")
    return CheckResult(bool(error[worst] < FINITE_DIFFERENCE_TOL), text)


def check_paper_figure(robot: Robot) -> CheckResult:
    """Check the largest difference between the exact rate and a backward difference on the Stanford arm.

    Source: Guarino Lo Bianco (2009), eq. (36).
    """
    motion = stanford_motion()
    steps = round(motion.duration / PAPER_STEP_S)  # the last instant already belongs to the way back
    samples = MotionSample(*map(np.array, zip(*(motion(k * PAPER_STEP_S) for k in range(steps)))))
    tau, tau_rate = robot.torque_and_rate(*samples)
    largest = np.abs(tau_rate[1:] - np.diff(tau, axis=0) / PAPER_STEP_S).max(axis=0)[0]
    agrees = abs(largest - PAPER_MAX_DIFFERENCE) < 0.5e-5  # half a unit of its last digit
    return CheckResult(bool(agrees), f"joint 1, exact rate against backward difference at {PAPER_STEP_S:g} s: at most "
                       f"{largest:.5e} N m/s; Guarino Lo Bianco (2009) prints {PAPER_MAX_DIFFERENCE:.3e}")


PLANT_TIMEOUTS = {"desired_timeout": 1.0, "base.timeout": 1.0}  # of dynamics_node [s]; the plant may run slower than real time
PEAK_SHARE_TOL = 0.01  # of the peak torque of each motor
MIN_COMPLETE_SHARE = 0.98  # of the samples, which had all wrenches in time
MISSING_WRENCH_TOL = 1e-3  # of the largest foot force; a larger base wrench means that a foot force was late


def wrench_parameters(links: Sequence[str]) -> dict[str, Any]:
    """Return parameters of dynamics_node for a plant with external wrenches on links."""
    found: dict[str, Any] = {**PLANT_TIMEOUTS, "wrenches.names": list(links)}
    for link in links:
        found |= {f"wrenches.{link}.link": link, f"wrenches.{link}.timeout": 1.0}
    return found


def motor_torques(states: np.ndarray, n: int) -> np.ndarray:
    """Return the motor torques (samples, n) in joint states: positions, velocities, efforts."""
    return states[:, 2 * n:]


def check_motor_torques(recording: DemoRecording, states: TopicSeries) -> CheckResult:
    """Check all torques, except where a wrench came after its joint state."""
    recording, (states_,) = pair_by_stamp(recording, states)
    share = _peak_share(recording.tau, motor_torques(states_, recording.q.shape[1]))
    good = share.max(axis=1) < PEAK_SHARE_TOL
    text = (f"torques are those of MuJoCo's motors to {share[good].max(initial=0.0):.1e} of their peaks ({good.sum()} "
            f"samples; allowed {PEAK_SHARE_TOL:g}; in {(~good).sum()} a wrench came too late)")
    return CheckResult(bool(good.mean() > MIN_COMPLETE_SHARE), text)


def check_by_phase(recording: DemoRecording, topics: Topics, feet: Sequence[str]) -> list[CheckResult]:
    """Check the torques of a quadruped in stance, in swing and between them, and the base wrench, which must vanish."""
    others = (topics[name] for name in ("states", "base_wrench", *feet))
    recording, (states, base_wrench, *wrenches) = pair_by_stamp(recording, *others)
    forces = np.stack([np.linalg.norm(six[:, :3], axis=1) for six in wrenches], axis=1)
    missing = np.abs(base_wrench).max(axis=1) / forces.max()
    complete = missing < MISSING_WRENCH_TOL
    phase = phases(recording.seconds, forces)
    share = _peak_share(recording.tau, motor_torques(states, recording.q.shape[1]))
    legs = share.reshape(len(share), len(feet), -1).max(axis=2)
    results = []
    for name in (STANCE, SWING, CHANGE):
        shares = legs[complete[:, None] & (phase == name)]
        text = (f"{name}: torques are those of MuJoCo's motors to {shares.max(initial=0.0):.1e} of their peaks ({len(shares)} "
                f"samples of a leg; allowed {PEAK_SHARE_TOL:g})")
        results.append(CheckResult(bool(len(shares) and shares.max() < PEAK_SHARE_TOL), text))
    text = (f"the base wrench vanishes, to {missing[complete].max(initial=0.0):.1e} of the largest foot force "
            f"({(~complete).sum()} of {len(complete)} samples omitted, for which a force came too late)")
    return [*results, CheckResult(bool(complete.mean() > MIN_COMPLETE_SHARE), text)]


def _peak_share(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(found - true) / np.abs(true).max(axis=0))
