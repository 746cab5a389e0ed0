"""Is what the demo received right? Checks for any robot, none of which trusts the code that it judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from . import motion as demo_motion
from .recording import DemoRecording

PAPERS_STEP = 1e-4  # s
PAPERS_FIGURE = 2.462e-2  # N m/s: guarino-gfd section V, joint 1
AGREEMENT = 2e-3  # of the joint's largest rate: what a difference quotient over some milliseconds is good for
EXACT = 1e-8  # of the joint's largest torque and rate: two ways of computing them
MOMENT = 1e-4  # s
ENERGY = 1e-6  # of the largest power; the slope is a difference quotient over two moments
SHORT, REGULAR, ENOUGH = 6e-3, 1.5, 0.1  # s, or times the usual step: no message was lost; of the samples
SMOOTH = 2e-4  # of the joint's largest acceleration and jerk; torques have ten times the curvature at most


class Verdict(NamedTuple):
    passed: bool
    text: str


def same_as_library(robot: AnyRobot, motion: demo_motion.MotionSample, tau: np.ndarray, tau_rate: np.ndarray) -> Verdict:
    """Every received number is the library's for the motion q, qd, qdd, qddd that it came with, to the last bit."""
    expected = robot.dynamics(*motion)
    wrong = (expected.tau != tau) | (expected.tau_rate != tau_rate)
    samples, joints = tau.shape
    if not wrong.any():
        return Verdict(True, f"{samples} samples of {joints} joints: identical to the Python library (bitwise)")
    return Verdict(False, f"{np.count_nonzero(wrong)} of {wrong.size} values differ from the library's")


def near(found: np.ndarray, expected: np.ndarray, allowed: float, what: str) -> Verdict:
    """Two arrays (samples, n) are the same, measured by each column's largest number."""
    if not len(found):
        return Verdict(False, f"{what}: there is no sample to see it from")
    largest = np.abs(expected).max(axis=0).clip(min=1e-6)
    error = float((np.abs(found - expected) / largest).max())
    return Verdict(error < allowed, f"{what} to {error:.1e} of the largest one ({len(found)} samples; allowed {allowed:g})")


def equal(recording: DemoRecording, tau: np.ndarray, tau_rate: np.ndarray, what: str) -> Verdict:
    """Torques and rates are those that another way of computing them gives."""
    received, expected = np.hstack((recording.tau, recording.tau_rate)), np.hstack((tau, tau_rate))
    return near(received, expected, EXACT, f"torques and rates are those of {what}")


def power_is_energy_rate(recording: DemoRecording, energy: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verdict:
    """What the motors give per second is what the energy gains, where there is no friction.

    energy: kinetic and potential (samples,) of q and qd. It is asked for shortly before and after each sample, as the motion
    received with it goes on.
    """
    q, qd, qdd, qddd = recording.motion
    after, before = (energy(q + h * (qd + h / 2 * (qdd + h / 3 * qddd)), qd + h * (qdd + h / 2 * qddd))
                     for h in (MOMENT, -MOMENT))
    power, slope = np.sum(recording.tau * qd, axis=1), (after - before) / (2 * MOMENT)
    return near(power[:, None], slope[:, None], ENERGY, "the motors' power is the slope of the energy")


def slopes(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dx/dt at every sample but the first and the last, from three points at unequal distances."""
    step = np.diff(t)[:, None]
    slope, h, k = np.diff(x, axis=0) / step, step[:-1], step[1:]
    return (k * slope[:-1] + h * slope[1:]) / (h + k)


def smooth(recording: DemoRecording) -> np.ndarray:
    """Indices of samples at which the slope of something received says what its derivative is.

    Only where the received motion itself is smooth: its acceleration the slope of its velocity, its jerk the slope of its
    acceleration. That leaves out jumps of the jerk, where the rate jumps too. Samples beside lost messages are left out: the
    error of a slope grows with the square of the step.
    """
    t, inner = recording.seconds, slice(1, -1)
    step = np.diff(t)
    regular = step < max(SHORT, REGULAR * np.percentile(step, 10))
    found = regular[:-1] & regular[1:]
    for lower, upper in ((recording.qd, recording.qdd), (recording.qdd, recording.qddd)):
        error = np.abs(slopes(t, lower) - upper[inner])
        found &= (error <= SMOOTH * np.abs(upper).max(axis=0)).all(axis=1)
    return np.flatnonzero(found) + 1


def difference_quotients(recording: DemoRecording) -> tuple[np.ndarray, np.ndarray]:
    """d tau / dt from the received torques alone: (indices of samples, quotients there)."""
    where = smooth(recording)
    return where, slopes(recording.seconds, recording.tau)[where - 1]


def rate_is_derivative(recording: DemoRecording, joint_names: tuple[str, ...]) -> Verdict:
    """The received rates are the slopes of the received torques."""
    inner, quotients = difference_quotients(recording)
    if len(inner) < ENOUGH * len(recording.t):
        return Verdict(False, f"only {len(inner)} of {len(recording.t)} samples belong to a smooth motion: messages were lost")
    largest = np.abs(recording.tau_rate).max(axis=0).clip(min=1e-6)
    error = np.abs(quotients - recording.tau_rate[inner]).max(axis=0) / largest
    worst = int(error.argmax())
    return Verdict(bool(error[worst] < AGREEMENT), "torque rate agrees with finite differences of the torque: error "
                   f"{error[worst]:.2g} of the peak ({joint_names[worst]}, {len(inner)} samples; tolerance {AGREEMENT:g})")


def papers_figure(robot: Robot) -> Verdict:
    """guarino-gfd (36): largest difference between the exact rate and a backward difference, on the Stanford arm."""
    motion = demo_motion.stanford()
    steps = round(motion.duration / PAPERS_STEP)  # the last instant already belongs to the way back
    samples = demo_motion.MotionSample(*map(np.array, zip(*(motion(k * PAPERS_STEP) for k in range(steps)))))
    tau, tau_rate = robot.torque_and_rate(*samples)
    largest = np.abs(tau_rate[1:] - np.diff(tau, axis=0) / PAPERS_STEP).max(axis=0)[0]
    agrees = abs(largest - PAPERS_FIGURE) < 0.5e-5  # half of its last digit
    return Verdict(bool(agrees), f"joint 1, exact rate against backward difference at {PAPERS_STEP:g} s: at most "
                   f"{largest:.5e} N m/s; Guarino Lo Bianco (2009) prints {PAPERS_FIGURE:.3e}")
