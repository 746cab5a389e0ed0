"""A demo of one robot: its motion and nodes, the recording of what dynamics_node publishes, checks of it, and a live table.

`catalogue.py` lists the demos. `rnea demo --robot NAME` runs one; launch/NAME_demo.launch.py starts the same nodes. The
checks are laws that are independent of the code under test. Robots in MuJoCo are checked against the torques of MuJoCo's
motors, by contact phase.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.polynomial import Polynomial

from ..algorithms.kinematics import Pose
from ..errors import InputError
from ..model import urdf_reader
from ..robots.base_state import BaseState
from ..robots.load import load
from ..robots.robot import Robot
from ..sim.plant import CHANGE, STANCE, SWING, phases
from .processes import NoMessages, node_session, recorders, share_file, urdf_source

# ---------------------------------------------------------------------- motions


def _with_derivatives(*coefficients: float) -> tuple[Polynomial, ...]:
    return tuple(Polynomial(coefficients).deriv(order) for order in range(4))


# Blends from 0 to 1 for s from 0 to 1, at rest at both ends; each with its first three derivatives.
QUINTIC = _with_derivatives(0, 0, 0, 10, -15, 6)  # Guarino Lo Bianco (2009); its jerk is not zero at the ends
SEPTIC = _with_derivatives(0, 0, 0, 0, 35, -84, 70, -20)  # zero jerk at the ends: the torque rate does not jump

# Guarino Lo Bianco (2009), table III: theta1, theta2, d3, theta4, theta5, theta6, in two seconds
STANFORD_START = (np.pi / 2, 0.0, 0.0, np.pi / 2, np.pi / 4, np.pi / 2)
STANFORD_END = (np.pi / 4, np.pi / 2, 2.0, np.pi / 4, np.pi / 2, 0.0)
STANFORD_DURATION = 2.0

MAX_SWEEP = {"revolute": 1.0, "continuous": 1.0, "prismatic": 0.2}  # rad, m
LIMITS_SHARE = 0.5  # of the limits of velocity, acceleration and jerk, at most
MIN_SWEEP_DURATION_S = 2.0


class MotionSample(NamedTuple):
    """Joint positions and their first three time derivatives, (n,) or (samples, n)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray


@dataclass(frozen=True, eq=False)
class BackAndForth:
    """Motion from `start` to `end` and back, repeated; each way takes `duration` [s] and follows `shape`."""

    start: np.ndarray
    end: np.ndarray
    duration: float
    shape: tuple[Polynomial, ...]

    def __post_init__(self) -> None:
        if not 0 < self.duration < np.inf:
            raise InputError(f"duration of a motion is {self.duration} s; a finite time above zero is needed")

    def __call__(self, t: float) -> MotionSample:
        way, since = divmod(t, self.duration)
        start, end = (self.start, self.end) if way % 2 == 0 else (self.end, self.start)
        s = since / self.duration
        moved, qd, qdd, qddd = [(end - start) * (blend(s) / self.duration**k) for k, blend in enumerate(self.shape)]
        return MotionSample(start + moved, qd, qdd, qddd)


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Periodic motion: middle (n,) plus the sum of amplitudes (n,) times cos(k (2 pi t / period + phase)) over the pairs
    (k, amplitudes) of `terms`.
    """

    period: float
    middle: np.ndarray
    terms: tuple[tuple[int, np.ndarray], ...]
    phase: np.ndarray | float = 0.0

    def derivatives(self, t: float, count: int) -> list[np.ndarray]:
        """Return position and its first derivatives, `count` arrays (n,)."""
        w = 2.0 * np.pi / self.period
        found = [sum((amplitudes * (k * w) ** order * np.cos(k * (w * t + self.phase) + order * np.pi / 2.0)
                      for k, amplitudes in self.terms), np.zeros_like(self.middle)) for order in range(count)]
        return [self.middle + found[0], *found[1:]]

    def __call__(self, t: float) -> MotionSample:
        return MotionSample(*self.derivatives(t, 4))


class PeriodicMotion:
    """Periodic motion through samples of one period, as a Fourier series."""

    def __init__(self, period: float, samples: np.ndarray):
        """Create a motion from samples (N, n) at the times k period / N."""
        kept = len(samples) // 2  # harmonics; the phase of the highest one is not determined
        self._series = np.fft.rfft(samples, axis=0)[:kept] * (2.0 / len(samples))
        self._series[0] /= 2.0
        self._w = 2j * np.pi / period * np.arange(kept)

    def derivatives(self, t: float, count: int) -> np.ndarray:
        """Return position and its first derivatives, (count, n)."""
        turning = np.exp(self._w * t) * self._w ** np.arange(count)[:, None]
        found: np.ndarray = (turning @ self._series).real
        return found

    def __call__(self, t: float) -> MotionSample:
        return MotionSample(*self.derivatives(t, 4))


def stanford_motion(duration: float = STANFORD_DURATION) -> BackAndForth:
    """Return the motion of Guarino Lo Bianco (2009), section V, there and back."""
    return BackAndForth(np.array(STANFORD_START), np.array(STANFORD_END), duration, QUINTIC)


def sweep_motion(joint_types: Sequence[str], limits: Any, duration: float | None = None) -> BackAndForth:
    """Return a motion of every joint through the middle of its range, within the limits of velocity, acceleration and jerk.

    limits : arrays lower, upper, velocity, acceleration, jerk; NaN where unknown. A joint uses the middle half of its range
    and at most 1 rad or 0.2 m; without position limits it moves about zero.
    """
    span = np.array([MAX_SWEEP[joint_type] for joint_type in joint_types])
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    lower, upper = np.where(bounded, limits.lower, -span), np.where(bounded, limits.upper, span)
    reach = np.minimum(span, (upper - lower) / 2)
    start, end = (lower + upper - reach) / 2, (lower + upper + reach) / 2
    if duration is None:
        duration = MIN_SWEEP_DURATION_S
        for order, limit in enumerate((limits.velocity, limits.acceleration, limits.jerk), start=1):
            peak = np.abs(SEPTIC[order](np.linspace(0.0, 1.0, 1001))).max() * reach  # times 1 / duration^order
            needed = (peak / (LIMITS_SHARE * np.asarray(limit, dtype=float))) ** (1.0 / order)
            duration = max([duration, *needed[np.isfinite(needed)]])
    return BackAndForth(start, end, float(duration), SEPTIC)


def choose_motion(robot: Any, name: str = "auto", duration: float | None = None) -> BackAndForth:
    """Return the motion `name` ("stanford", "sweep") for a robot; "auto": the paper's on the Stanford arm, else a sweep."""
    is_stanford = robot.name == "stanford" and robot.n == len(STANFORD_START)
    if name == "stanford" and not is_stanford:
        raise InputError(f"motion 'stanford' is for the robot 'stanford' with 6 joints, not for '{robot.name}'")
    if name == "stanford" or (name == "auto" and is_stanford):
        return stanford_motion(duration or STANFORD_DURATION)
    if name in ("auto", "sweep"):
        return sweep_motion(robot.joint_types, robot.limits, duration)
    raise InputError(f"motion '{name}' is unknown; there are auto, stanford and sweep")


# ---------------------------------------------------------------------- recordings and their checks


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


# ---------------------------------------------------------------------- demos


def no_free_links(t: float) -> dict[str, Pose]:
    """Return the poses of no free links."""
    return {}


class DemoMotion(NamedTuple):
    """Motion that the node demo_robot publishes.

    about       : description, for people
    joint_names : all published joints; may include joints that only visualization needs
    root_link   : root link of the URDF
    motion      : function t [s] -> motion of these joints
    free_links  : function t -> {link: pose (R, p) in the root link} of links without a parent joint, for visualization
    base        : function t -> state, acceleration and jerk of a moving base; None for a fixed one
    """

    about: str
    joint_names: tuple[str, ...]
    root_link: str
    motion: Callable[[float], MotionSample]
    free_links: Callable[[float], dict[str, Pose]] = no_free_links
    base: Callable[[float], BaseState] | None = None

    def for_joints(self, joint_names: Sequence[str]) -> Callable[[float], MotionSample]:
        """Return the motion of some of the joints."""
        columns = [self.joint_names.index(name) for name in joint_names]
        return lambda t: MotionSample(*(part[columns] for part in self.motion(t)))


@dataclass(frozen=True)
class RobotDemo:
    """Demo of one robot: motion, nodes, and checks of what dynamics_node publishes.

    name       : in `rnea demo --robot NAME` and launch/NAME_demo.launch.py
    urdf       : name in the package's share folder, after "example-robot-data:" in that package, or any Path
    robot_file : name in the share folder, or any Path
    make_motion : returns what demo_robot publishes; None if other nodes move the robot
    checks     : function (robot, recording, topics) -> results, by laws independent of the node; topics is None without ROS,
                 where the library computes the recording
    topics     : topics recorded besides ~/joint_dynamics: key -> (type as "geometry_msgs/PoseStamped", topic)
    nodes      : nodes that run; each gets robot_description, and robot_file if it reads one. dynamics_node also gets
                 `parameters`, the others `rate` and, as `motion`, the name of the demo
    rate       : joint states per second [Hz]
    seconds    : default duration of a recording [s]
    draw       : own picture, function (robot, recording, topics, path, source)
    simulate   : function (robot, motion, seconds, rate) -> recording and topics without ROS; None: by torque_and_rate
    picture_times : times at which the picture shows the robot [s]; the last pose opaque, the others pale
    view       : elevation and azimuth of the picture [degrees]
    """

    name: str
    urdf: str | Path
    robot_file: str | Path | None
    make_motion: Callable[[], DemoMotion] | None
    checks: Callable[[Robot, DemoRecording, Topics | None], list[CheckResult]]
    topics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("dynamics_node", "demo_robot")
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 500.0
    seconds: float = 8.0
    draw: Callable[[Robot, DemoRecording, Topics | None, str, str], None] | None = None
    simulate: Callable[[Robot, DemoMotion, float, float], tuple[DemoRecording, Topics]] | None = None
    picture_times: tuple[float, ...] = ()
    view: tuple[float, float] = (15.0, -60.0)

    @cached_property
    def description(self) -> str:
        """URDF text, expanded and reduced to what dynamics needs."""
        return urdf_reader.text(urdf_reader.read(urdf_source(self.urdf)).robot)

    def load(self, backend: str = "llvm") -> Robot:
        """Return the robot as dynamics_node loads it."""
        return load(self.description.encode(), self.robot_file and share_file(self.robot_file), backend=backend)

    def parameters_by_node(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of every node for a recorded run."""
        return {node: {"robot_description": self.description, **self.node_parameters(node)} for node in self.nodes}

    def node_parameters(self, node: str) -> dict[str, Any]:
        """Return the parameters of a node besides the URDF."""
        file = {"robot_file": str(share_file(self.robot_file))} if self.robot_file and node != "demo_robot" else {}
        given = {"motion_source": "desired", **self.parameters}  # each state comes with exact derivatives
        return {**file, **(given if node == "dynamics_node" else {"motion": self.name, "rate": self.rate})}


TIMEOUT_S = 60.0  # for the processes to start and find each other, and for a kernel to compile


class DemoRun(NamedTuple):
    """Recording of a demo, the other recorded topics (None without ROS), and a phrase on its origin."""

    recording: DemoRecording
    topics: Topics | None
    origin: str


def compute(demo: RobotDemo, robot: Robot, seconds: float) -> DemoRun:
    """Return the run of a demo with make_motion, computed by the library."""
    assert demo.make_motion is not None
    motion, topics = demo.make_motion(), None
    if demo.simulate:
        recording, topics = demo.simulate(robot, motion, seconds, demo.rate)
    else:
        recording = compute_recording(robot, motion.for_joints(robot.joint_names), seconds, demo.rate)
    origin = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, computed by the library, without ROS"
    return DemoRun(recording, topics, origin)


def record(demo: RobotDemo, robot: Robot, seconds: float, on_message: Callable[[Any], None],
           report: Callable[[str], None]) -> DemoRun:
    """Return the run of a demo, recorded from its nodes in processes.

    on_message : called with each rnea_msgs/JointDynamics; report : called with lines about the processes
    Raises MissingRos without ROS 2, NodesFailed if a topic has no messages, Interrupted after a signal.
    """
    nodes = recorders()
    parameters = {f"/**/{node}": {"ros__parameters": values} for node, values in demo.parameters_by_node().items()}
    with node_session(demo.nodes, lambda folder: parameters, report, f"{robot.name}: ") as session:
        received = nodes.record_dynamics(session.domain, seconds, TIMEOUT_S, on_message, session.is_running, demo.topics)
        if received is None:
            raise NoMessages(f"not all topics were received within {TIMEOUT_S:g} s, or a node ended")
    recording, topics = received
    origin = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, received from dynamics_node over ROS 2"
    return DemoRun(recording, topics, origin)


# ---------------------------------------------------------------------- live table


class LiveTable:
    """Table of the latest torques, their rates and the utilization of both limits.

    It is redrawn in place on a terminal, and printed every 1.7 s elsewhere.
    """

    BAR = 10

    def __init__(self, joint_names: Sequence[str], joint_types: Sequence[str], out: TextIO):
        self._out, self._live = out, out.isatty()
        self._interval = 0.1 if self._live else 1.7  # s; not a divisor of the motion's period, to show different states
        self._next = 0.0
        self._drawn = 0
        self._units = ["N" if kind == "prismatic" else "N m" for kind in joint_types]
        self._width = max(map(len, (*joint_names, "joint")))

    def show(self, message: Any) -> None:
        """Show a rnea_msgs/JointDynamics message."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        lines = self.lines(message)
        up, end = (f"\x1b[{self._drawn}A" if self._drawn else "", "\x1b[K\n") if self._live else ("", "\n")
        self._drawn = len(lines)
        self._out.write(up + "".join(line + end for line in lines) + ("" if self._live else "\n"))
        self._out.flush()

    def lines(self, message: Any) -> list[str]:
        """Return the table as text."""
        head = f"{'joint':<{self._width}}  {'torque':>13}  {'of its limit':<18}  {'rate':>16}  of its limit"
        # A controller that adds gravity limits the rate of the commanded effort: shown if the whole rate has no limit.
        commanded = [math.isnan(whole) and not math.isnan(sent) for whole, sent in
                     zip(message.effort_rate_utilization, message.commanded_effort_rate_utilization)]
        rate_shares = [sent if chosen else whole for whole, sent, chosen in
                       zip(message.effort_rate_utilization, message.commanded_effort_rate_utilization, commanded)]
        rows = zip(message.joint_names, self._units, message.effort, message.effort_utilization,
                   message.effort_rate, rate_shares, commanded)
        notes = []
        if any(commanded):
            notes.append("*: rate of the commanded effort (without what the robot's controller adds), of its limit")
        if any(map(math.isnan, (*message.effort_utilization, *rate_shares))):
            notes.append("unknown: no limit given; URDFs have none for torque rates, a robot file does (docs/robot_file.md)")
        return [head] + [f"{name:<{self._width}}  {tau:>9.3f} {unit:<3}  {self._used(share)}  "
                         f"{rate:>10.3f} {unit + '/s':<5}  {self._used(rate_share, '*' if chosen else ' ')}".rstrip()
                         for name, unit, tau, share, rate, rate_share, chosen in rows] + notes

    def _used(self, share: float, mark: str = " ") -> str:
        if math.isnan(share):
            return f"{'unknown':<{self.BAR + 8}}"
        full = min(round(share * self.BAR), self.BAR)
        return f"[{'#' * full:<{self.BAR}}] {share:>4.0%}{mark}"
