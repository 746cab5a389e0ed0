"""Is what the demo received right? Three checks, none of which trusts the code that it judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model.tree import JointDynamics
from ..robots.robot import Robot
from . import motion as demo_motion

# Actuators of the Stanford arm as its joints feel them [kg m^2; joint 3: kg], R. Paul 1981; as in config/stanford.yaml.
STANFORD_TERMS = {f"joint{k}": JointDynamics(rotor_inertia=inertia)
                  for k, inertia in enumerate((0.953, 2.193, 0.782, 0.106, 0.097, 0.020), start=1)}
# Chosen so that the paper's motion uses 60 to 80 percent of them [N m/s; joint 3: N/s]; no source gives any.
STANFORD_RATE_LIMITS = {"joint1": 180.0, "joint2": 320.0, "joint3": 200.0, "joint4": 2.5, "joint5": 4.0, "joint6": 0.4}
PAPERS_STEP = 1e-4  # s
PAPERS_FIGURE = 2.462e-2  # N m/s: guarino-gfd section V, joint 1
AGREEMENT = 2e-3  # of the joint's largest rate: what a difference quotient over some milliseconds is good for
SMOOTH = 2e-4  # of the joint's largest acceleration and jerk; torques have ten times the curvature at most


class Verdict(NamedTuple):
    passed: bool
    text: str


@dataclass(frozen=True, eq=False)
class DemoRecording:
    """Samples of a motion and of the answer to it: stamps t (samples,) [ns], all else (samples, n) [SI]."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray

    @property
    def motion(self) -> demo_motion.MotionSample:
        return demo_motion.MotionSample(self.q, self.qd, self.qdd, self.qddd)

    @property
    def seconds(self) -> np.ndarray:
        return (self.t - self.t[0]) * 1e-9


def played(robot: Robot, motion: demo_motion.BackAndForth, seconds: float, rate: float) -> DemoRecording:
    """What the robot's library says of a motion, without ROS."""
    t = np.arange(int(seconds * rate)) * round(1e9 / rate)
    samples = demo_motion.MotionSample(*map(np.array, zip(*(motion(time) for time in t * 1e-9))))
    return DemoRecording(t, *samples, *robot.torque_and_rate(*samples))


def same_as_library(robot: Robot, motion: demo_motion.MotionSample, tau: np.ndarray, tau_rate: np.ndarray) -> Verdict:
    """Every received number is the library's for the motion q, qd, qdd, qddd that it came with, to the last bit."""
    expected = robot.dynamics(*motion)
    wrong = (expected.tau != tau) | (expected.tau_rate != tau_rate)
    samples, joints = tau.shape
    if not wrong.any():
        return Verdict(True, f"{samples} samples of {joints} joints equal the library's to the last bit")
    return Verdict(False, f"{np.count_nonzero(wrong)} of {wrong.size} values differ from the library's")


def slopes(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dx/dt at every sample but the first and the last, from three points at unequal distances."""
    step = np.diff(t)[:, None]
    slope, h, k = np.diff(x, axis=0) / step, step[:-1], step[1:]
    return (k * slope[:-1] + h * slope[1:]) / (h + k)


def difference_quotients(recording: DemoRecording) -> tuple[np.ndarray, np.ndarray]:
    """d tau / dt from the received torques alone: (indices of samples, quotients there).

    Only where the received motion itself is smooth: its acceleration the slope of its velocity, its jerk the slope of its
    acceleration. That leaves out jumps of the jerk, where the rate jumps too, and messages that were lost on their way.
    """
    t, inner = recording.seconds, slice(1, -1)
    smooth = np.ones(len(t) - 2, dtype=bool)
    for lower, upper in ((recording.qd, recording.qdd), (recording.qdd, recording.qddd)):
        error = np.abs(slopes(t, lower) - upper[inner])
        smooth &= (error <= SMOOTH * np.abs(upper).max(axis=0)).all(axis=1)
    return np.flatnonzero(smooth) + 1, slopes(t, recording.tau)[smooth]


def rate_is_derivative(recording: DemoRecording, joint_names: tuple[str, ...]) -> Verdict:
    """The received rates are the slopes of the received torques."""
    inner, quotients = difference_quotients(recording)
    if len(inner) < len(recording.t) / 2:
        return Verdict(False, f"only {len(inner)} of {len(recording.t)} samples belong to a smooth motion: messages were lost")
    largest = np.abs(recording.tau_rate).max(axis=0).clip(min=1e-6)
    error = np.abs(quotients - recording.tau_rate[inner]).max(axis=0) / largest
    worst = int(error.argmax())
    return Verdict(bool(error[worst] < AGREEMENT), f"rates match difference quotients of the torques to {error[worst]:.1e} "
                   f"of the largest rate ({joint_names[worst]}, {len(inner)} samples; allowed {AGREEMENT:g})")


def papers_figure(robot: Robot) -> Verdict:
    """guarino-gfd (36): largest difference between the exact rate and a backward difference, on the Stanford arm."""
    motion = demo_motion.stanford()
    steps = round(motion.duration / PAPERS_STEP)  # the last instant already belongs to the way back
    samples = demo_motion.MotionSample(*map(np.array, zip(*(motion(k * PAPERS_STEP) for k in range(steps)))))
    tau, tau_rate = robot.torque_and_rate(*samples)
    largest = np.abs(tau_rate[1:] - np.diff(tau, axis=0) / PAPERS_STEP).max(axis=0)[0]
    agrees = abs(largest - PAPERS_FIGURE) < 0.5e-5  # half of its last digit
    return Verdict(bool(agrees), f"joint 1, exact rate against backward difference at {PAPERS_STEP:g} s: at most "
                   f"{largest:.5e} N m/s; guarino-gfd prints {PAPERS_FIGURE:.3e}")
