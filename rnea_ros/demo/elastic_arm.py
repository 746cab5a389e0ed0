"""Demo of elastic joints: the simulation of Hua et al., section V, over ROS, and its plant without ROS.

The arm has two rigid joints and an elastic one, with motors on its links. It starts 25 degrees from the reference, a sine in
every joint. elastic_controller computes eqs. (37)-(49) from a JointTrajectory and the encoders; elastic_plant simulates the
arm by forward dynamics and publishes its sensors; dynamics_node computes the motor torques, which are compared with the
applied ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..robots.inputs.conditions import MotorState
from ..robots.robot import Robot
from .checks import EXACT_TOL, CheckResult, DemoRecording, Topics, check_close, pair_by_stamp
from .elastic_control import accelerations, runge_kutta
from .robot_demo import RobotDemo

START = np.array([0.0, 0.0, -0.4363])  # rad, at rest, spring relaxed
GAINS = {"slope": 6.8, "damping": 58.0, "motor_slope": 33.0, "motor_damping": 38.0}  # Lambda [1/s], K_D [N m s/rad]
PAPER_DURATION_S = 10.0
PAPER_RMS_ERRORS = np.array([0.0026819, 0.003619, 0.052678])  # rad, without payload
PAPER_TOL = 0.06  # the paper gives neither lengths nor gains
RATE_TOL = 1e-5  # of the largest rate; accelerations are differentiated numerically
REFERENCE_PERIOD_S = 4.0


def reference(t: np.ndarray | float, count: int = 3) -> list[np.ndarray]:
    """Return the reference 0.5 sin(pi t / 2) rad of every joint and its derivatives, (..., 3) each."""
    w = 2.0 * np.pi / REFERENCE_PERIOD_S
    angle = np.asarray(t)[..., None] * w + np.zeros(3)
    return [0.5 * w**k * np.sin(angle + k * np.pi / 2) for k in range(count)]


def checks(robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check applied torques and their rates, and the tracking errors printed in the paper."""
    assert topics is not None
    recording, (states,) = pair_by_stamp(recording, topics["states"])
    names = states.shape[1] // 3  # joints and motors: positions, velocities, efforts
    applied = states[:, 2 * names:2 * names + robot.n]
    moving = np.isfinite(applied).all(axis=1)
    begin = int(moving.argmax())
    run, applied = recording.at(np.arange(begin, len(moving))), applied[begin:]
    t = run.seconds
    whole = len(run.t) > 1 and moving[begin:].all() and t[-1] >= PAPER_DURATION_S and np.ptp(np.diff(t)) < 1e-6
    errors = (reference(t)[0] - run.q)[t <= PAPER_DURATION_S + 1e-9]
    rmse = np.sqrt(np.mean(errors**2, axis=0))
    off = np.abs(rmse / PAPER_RMS_ERRORS - 1.0).max()
    slope = np.diff(applied, axis=0) / np.diff(t)[:, None]
    tracking = (f"in {t[-1]:.1f} s ({PAPER_DURATION_S:g} are needed) the errors' root mean square is "
                f"{', '.join(f'{x:.4g}' for x in rmse)} rad, the paper's to {off:.1%} (allowed {PAPER_TOL:.0%})")
    return [check_close(run.tau, applied, EXACT_TOL, "torques are those that the motors exert"),
            check_close(run.tau_rate[1:], slope, RATE_TOL, "rates are those at which the drives change them"),
            CheckResult(bool(whole and off < PAPER_TOL), tracking)]


ELASTIC_DEMO = RobotDemo(
    "elastic", "urdf/hua_arm.urdf", "urdf/hua_arm.robot.yaml", None, checks,
    topics={"states": ("sensor_msgs/JointState", "joint_states")},
    nodes=("dynamics_node", "elastic_plant", "elastic_controller"), held="elastic_plant", seconds=11.0,
                         min_seconds=PAPER_DURATION_S + 0.5,
    picture_times=(2.5, 3.5, 4.5), settling_time_s=1.5, view=(12.0, -75.0))


JERK_STEP_S = 3e-5


class ElasticArmState(NamedTuple):
    """State at one time: position, velocity, acceleration and jerk of joints and of the motors of elastic joints (4, n + Ne);
    torques of all motors (n,), linear in time from here on, and their rates.
    """

    motion: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray


class ElasticArm:
    """Arm with elastic joints under linearly interpolated motor torques. Time advances only with commands, so results do not
    depend on the duration of a computation.
    """

    def __init__(self, robot: Robot, start: Sequence[np.ndarray], step: float):
        """start: q, q_motor, qd, qd_motor. step: time between commands [s]."""
        self.robot, self.step = robot, step
        self._x, self._half = np.concatenate(start), robot.n + len(robot.elastic_joints)
        self._tau: np.ndarray | None = None
        self._rate = np.zeros(robot.n)

    @property
    def sensors(self) -> tuple[np.ndarray, ...]:
        """Measured values q, q_motor, qd, qd_motor."""
        n, half = self.robot.n, self._half
        return self._x[:n], self._x[n:half], self._x[half:half + n], self._x[half + n:]

    def command(self, tau: np.ndarray) -> ElasticArmState:
        """Set the motor torques (n,) from this time on and return the state."""
        if self._tau is not None:
            self._rate = (tau - self._tau) / self.step
        self._tau = tau
        slope = self._slope(0.0, self._x)
        after, before = (self._slope(h, self._x + h * slope) for h in (JERK_STEP_S, -JERK_STEP_S))
        jerk = (after - before)[self._half:] / (2 * JERK_STEP_S)
        motion = np.array([self._x[:self._half], self._x[self._half:], slope[self._half:], jerk])
        return ElasticArmState(motion, tau, self._rate)

    def advance(self) -> None:
        """Advance to the next command, by a step of the classical Runge-Kutta method."""
        self._x = runge_kutta(self._slope, self._x, np.array([0.0, self.step]))[-1]

    def _slope(self, since: float, x: np.ndarray) -> np.ndarray:
        """Return dx/dt a time `since` after the command [s]."""
        assert self._tau is not None
        n, half = self.robot.n, self._half
        found = accelerations(self.robot, x[:n], x[half:half + n], self._tau + since * self._rate,
                              MotorState(x[n:half], x[half + n:]))
        return np.concatenate((x[half:], found))
