"""Flexible links in motion: frequencies, deflection, stress at the root, and input shaping, which leaves no vibration.

A robot with `flexible_links` has their modal coordinates among `joint_names`, as joints whose state is an input. Where strain
gauges or cameras measure them, `Robot.solve` takes them as they are. Otherwise `FlexiblePredictor` integrates their equations,
from the equilibrium at the start.

Input shaping: a motion convolved with impulses that leave no vibration at given natural frequencies.
Singer, Seering, "Preshaping command inputs to reduce system vibration", J. of Dynamic Systems, Measurement, and Control 112
(1990). The shaped motion stays on the path of a single joint, is longer by the time of the last impulse, and, as a mean of
delayed copies, keeps every limit of position, velocity, acceleration and jerk of each joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.taylor import SepticHermite
from ..algebra.vectors import Array, cross
from ..errors import InputError
from ..model.beams import FlexibleLink
from ..robots import validation
from ..robots.conditions import Loads
from ..robots.robot import Robot

STEP = 1.0  # of the fastest mode's phase in one step of integration [rad]
MAX_STEPS = 5_000  # between two samples
EQUILIBRIUM_STEPS = 30
AT_REST = 1e-9  # of the largest deflection, or of 1 m
NODES = (0.0, 0.5, 0.5, 1.0)  # of the classical Runge-Kutta method


class FreeVibration(NamedTuple):
    """Free vibration of the flexible links about an equilibrium, with the driven joints held.

    frequency     : natural frequencies (modes,), undamped, lowest first [rad/s]
    damping_ratio : (modes,) [-]
    shapes        : (modes, modes): a column for each vibration, a row for each modal coordinate; modal masses are 1
    """

    frequency: Array
    damping_ratio: Array
    shapes: Array


class RootLoad(NamedTuple):
    """Load at the start of a beam in one bending direction, or of twist, (stages,) or (samples, stages) each.

    moment : bending moment, and its rate where a jerk is given [N m, N m/s]
    stress : moment / section_modulus, and its rate [Pa, Pa/s]; NaN where the section is not known
    """

    moment: Array
    stress: Array


def flexible_links(robot: Robot) -> tuple[FlexibleLink, ...]:
    """Return the flexible links of a robot. InputError where it has none."""
    beams = robot.model.flexible_links
    if not beams:
        raise InputError(f"robot '{robot.name}' has no flexible links; declare them in flexible_links of its robot file")
    return beams


def modal_columns(robot: Robot) -> list[int]:
    """Return the columns of the modal coordinates in `joint_names`."""
    return [robot.joint_names.index(mode.joint) for beam in flexible_links(robot) for mode in beam.modes]


def driven_joints(robot: Robot) -> tuple[str, ...]:
    """Return the joints whose motion is not that of a mode, in the order of `joint_names`."""
    modes = {mode.joint for beam in flexible_links(robot) for mode in beam.modes}
    return tuple(name for name in robot.joint_names if name not in modes)


def free_vibration(robot: Robot, q: ArrayLike) -> FreeVibration:
    """Return the free vibration about a pose q (n,), driven joints and joints with springs held."""
    columns, position = modal_columns(robot), validation.vector("q", q, robot.n)
    modes = [mode for beam in flexible_links(robot) for mode in beam.modes]
    zero, names = np.zeros(robot.n), [robot.joint_names[k] for k in columns]
    rows = [robot.independent.index(name) for name in names]
    M = robot.mass_matrix(position)[np.ix_(rows, rows)]
    K, D = np.diag([mode.stiffness for mode in modes]), np.diag([mode.damping for mode in modes])
    K = K + _load_stiffness(robot, position, zero, columns, rows)
    L = np.linalg.cholesky(M)
    squares, V = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, 0.5 * (K + K.T)).T))
    if squares[0] <= 0.0:
        raise InputError(f"the flexible links of robot '{robot.name}' buckle at this pose: gravity is stronger than the "
                         "stiffness of a mode; correct stiffness, masses or pose")
    shapes, frequency = np.linalg.solve(L.T, V), np.sqrt(squares)
    return FreeVibration(frequency, np.einsum("ki,kl,li->i", shapes, D, shapes) / (2.0 * frequency), shapes)


def _load_stiffness(robot: Robot, q: Array, zero: Array, columns: Sequence[int], rows: Sequence[int]) -> Array:
    """Return the change of gravity's efforts by the deflections (modes, modes), by central differences."""
    found, h = np.zeros((len(columns),) * 2), 1e-6
    for k, column in enumerate(columns):
        ends = []
        for sign in (1.0, -1.0):
            moved = q.copy()
            moved[column] += sign * h
            ends.append(robot.gravity(moved)[rows])
        found[:, k] = (ends[0] - ends[1]) / (2.0 * h)
    return found


class FlexiblePredictor:
    """Deflection of the flexible links of a robot on a fixed base along a motion of its other joints.

    Classical Runge-Kutta steps, each at most STEP of the fastest mode's phase; between two samples the driven joints move as
    the polynomial of seventh degree through their positions, velocities, accelerations and jerks at both.
    """

    def __init__(self, robot: Robot):
        """Create a predictor. Raises InputError for robots without flexible links, or whose base moves."""
        self.robot, self.columns = robot, modal_columns(robot)
        if robot.has_moving_base:
            raise InputError(f"the base of robot '{robot.name}' moves: deflections are predicted on a fixed base; elsewhere "
                             "they are inputs")
        others = [name for name in robot.state_joints if name not in {robot.joint_names[k] for k in self.columns}]
        if others:
            raise InputError(f"{', '.join(others)} of robot '{robot.name}' has no motor: deflections are predicted where "
                             "motors move all other joints; elsewhere they are inputs")
        self.driven = [k for k in range(robot.n) if k not in self.columns]
        self.names = [robot.joint_names[k] for k in self.columns]
        self._fastest: float | None = None
        self._loads: Loads | None = None
        self.time: float | None = None
        self._last = np.zeros((4, len(self.driven)))
        self.state = np.zeros((2, len(self.columns)))  # deflections and their rates

    def restart(self) -> None:
        """Begin anew: the next sample finds the modes in equilibrium."""
        self.time = None

    def continue_from(self, other: FlexiblePredictor) -> None:
        """Continue the prediction of the same links, as of a robot with another payload."""
        self.time, self._last, self.state = other.time, other._last.copy(), other.state.copy()

    def advance(self, time: float, motion: ArrayLike, loads: Loads | None = None) -> Array:
        """Return the motion (4, n) of all joints at the next sample, q to qddd: driven joints as given, modes as predicted.

        time : [s]; the first sample, and one that is not later, begins at the equilibrium
        motion : q, qd, qdd, qddd of the driven joints, (4, driven)
        loads  : on links since the last sample
        """
        now = np.asarray(motion, dtype=float)
        self._loads = loads
        if self.time is None or not time > self.time:
            self.state = np.array([self.equilibrium(now), np.zeros(len(self.columns))])
        else:
            self._integrate(time - self.time, now)
        self.time, self._last = time, now
        whole = self._whole(now, self.state)
        found = self.robot.solve(*whole, multipliers=False, loads=loads)
        for k, (column, name) in enumerate(zip(self.columns, self.names, strict=True)):
            whole[:, column] = found.positions[name][:4]
            whole[:2, column] = self.state[:, k]
        return whole

    def equilibrium(self, motion: ArrayLike) -> Array:
        """Return the deflections (modes,) at which the modes rest while the driven joints move as given, (4, driven)."""
        now, y = np.asarray(motion, dtype=float), np.zeros(len(self.columns))
        for _ in range(EQUILIBRIUM_STEPS):
            at_rest, h = np.array([y, 0.0 * y]), 1e-5
            error = self._acceleration(now, at_rest)
            slopes = np.array([self._acceleration(now, np.array([y + h * unit, 0.0 * y])) - error
                               for unit in np.eye(len(y))]).T / h
            step = np.linalg.solve(slopes, error)
            y = y - step
            if np.abs(step).max() < AT_REST * (1.0 + np.abs(y).max()):
                return y
        raise InputError(f"the flexible links of robot '{self.robot.name}' have no equilibrium at this motion: they buckle; "
                         "correct stiffness, masses or motion")

    def _whole(self, driven: Array, state: Array) -> Array:
        whole = np.zeros((4, self.robot.n))
        whole[:, self.driven] = driven
        whole[:2, self.columns] = state
        return whole

    def _acceleration(self, driven: Array, state: Array) -> Array:
        found = self.robot.solve(*self._whole(driven, state), multipliers=False, loads=self._loads)
        return np.array([found.positions[name][2] for name in self.names])

    def _integrate(self, duration: float, now: Array) -> None:
        count = int(np.ceil(duration * self.fastest / STEP)) or 1
        if count > MAX_STEPS:
            raise InputError(f"{duration:g} s between two samples take {count} steps of integration, at most {MAX_STEPS} are "
                             f"done: the fastest mode has {self.fastest:.4g} rad/s. Give samples closer together, or fewer "
                             "modes")
        path, h = SepticHermite(self._last, now, duration), duration / count
        for step in range(count):
            at = [path((step + node) * h) for node in (0.0, 0.5, 1.0)]
            slopes: list[Array] = []
            for node, driven in zip(NODES, (at[0], at[1], at[1], at[2]), strict=True):
                y = self.state + (node * h * slopes[-1] if slopes else 0.0)
                slopes.append(np.array([y[1], self._acceleration(driven, y)]))
            self.state = self.state + h / 6.0 * (slopes[0] + 2.0 * slopes[1] + 2.0 * slopes[2] + slopes[3])

    @property
    def fastest(self) -> float:
        """Highest natural frequency at the pose of the start [rad/s]."""
        if self._fastest is None:
            pose = self._whole(self._last, np.zeros((2, len(self.columns))))[0]
            self._fastest = float(free_vibration(self.robot, pose).frequency[-1])
        return self._fastest


def predict_deflection(robot: Robot, t: ArrayLike, *motion: ArrayLike) -> Array:
    """Return the motion (4, samples, n) of all joints: q, qd, qdd, qddd, modal coordinates included.

    t      : (samples,) rising times [s]
    motion : q, qd, qdd, qddd of `driven_joints`, (samples, driven) each
    """
    times = validation.numbers("t", t)
    names = driven_joints(robot)
    arrays = [validation.coordinates(name, value, names) for name, value in
              zip(("q", "qd", "qdd", "qddd"), motion, strict=True)]
    if times.ndim != 1 or any(array.shape != (len(times), len(names)) for array in arrays) or (np.diff(times) <= 0.0).any():
        raise InputError(f"t must rise, with a row of motion for each time: t is {times.shape}, q {arrays[0].shape}, of "
                         f"{len(names)} joints")
    predictor = FlexiblePredictor(robot)
    return np.array([predictor.advance(time, np.array(row))
                     for time, *row in zip(times.tolist(), *arrays, strict=True)]).reshape(-1, 4, robot.n).swapaxes(0, 1)


def root_loads(robot: Robot, *motion: ArrayLike, **options: Any) -> dict[str, dict[str, RootLoad]]:
    """Return loads at the start of every beam by link and bending of a motion q, qd, qdd and, for rates, qddd.

    The accelerations of the modes are those given, as `solve` or `predict_deflection` find them; options as of
    Robot.joint_wrenches.
    """
    wrenches = robot.joint_wrenches(*motion, **options)
    found: dict[str, dict[str, RootLoad]] = {}
    for beam in flexible_links(robot):
        end, begin = np.array(beam.end), np.array(beam.start)
        along = (end - begin) / beam.length
        for bending in beam.bendings:
            axis = along if bending.name == "twist" else cross(along, np.array(bending.direction))
            row = wrenches.joints.index(bending.modes[0].joint)
            moments = [part[..., row, 3:] @ axis for part in (wrenches.wrench, wrenches.rate) if part is not None]
            moment = np.stack(moments, axis=-1)
            found.setdefault(beam.link, {})[bending.name] = RootLoad(moment, moment / bending.section_modulus)
    return found


def tip_deflection(robot: Robot, q: ArrayLike) -> dict[str, Array]:
    """Return by link where the end of its beam is, less where it is without deflection, (3,) or (samples, 3) [m], along the
    axes of the link's frame.
    """
    found = {}
    for beam in flexible_links(robot):
        tip, link = robot.link_pose(beam.tip, q), robot.link_pose(beam.link, q)
        offset = np.einsum("...ji,...j->...i", link.R, tip.p - link.p)
        found[beam.link] = offset - np.array(beam.end)
    return found


def residual_vibration(robot: Robot, motion: ArrayLike) -> dict[str, float]:
    """Return by link the largest deflection of its end about the equilibrium [m] that is left when the motion ends.

    motion : (4, n) at the end, driven joints at rest; undamped, to first order, the sum of all vibrations' amplitudes
    """
    now = np.asarray(motion, dtype=float)
    predictor = FlexiblePredictor(robot)
    still = np.zeros((4, len(predictor.driven)))
    still[0] = now[0, predictor.driven]
    y, pose = predictor.equilibrium(still), now[0].copy()
    pose[predictor.columns] = y
    free = free_vibration(robot, pose)
    inverse = np.linalg.inv(free.shapes)
    eta, speed = inverse @ (now[0, predictor.columns] - y), inverse @ now[1, predictor.columns]
    amplitude, found = np.hypot(eta, speed / free.frequency), {}
    for beam in flexible_links(robot):
        total = np.zeros(len(free.frequency))
        for bending in beam.bendings:
            if bending.name != "twist":
                rows = [predictor.names.index(mode.joint) for mode in bending.modes]
                total = np.hypot(total, free.shapes[rows].sum(axis=0))
        found[beam.link] = float(total @ amplitude)
    return found


# ------------------------------------------------------------------ input shaping


KINDS = {"zv": 1, "zvd": 2, "zvdd": 3}  # zeros at each vibration
SAME_TIME = 1e-12  # s


@dataclass(frozen=True, eq=False)
class InputShaper:
    """Impulses at times (k,) [s] with weights (k,), whose sum is 1."""

    times: Array
    weights: Array

    @property
    def duration(self) -> float:
        """Time by which a shaped motion is longer [s]."""
        return float(self.times[-1])

    def shape(self, t: ArrayLike, motion: ArrayLike) -> tuple[Array, Array]:
        """Return times (samples,) and motion (4, samples, n) that is shaped, with the sampling period of the first two times.

        t : (samples,) rising; motion: q, qd, qdd, qddd, (4, samples, n), at rest at both ends
        """
        given, curve = np.asarray(t, dtype=float), np.asarray(motion, dtype=float)
        if given.ndim != 1 or len(given) < 2 or curve.shape[:2] != (4, len(given)) or (np.diff(given) <= 0.0).any():
            raise InputError(f"the motion is {curve.shape} at times {given.shape}; (4, samples, n) at two or more rising "
                             "times is needed")
        spans = [SepticHermite(curve[:, k], curve[:, k + 1], given[k + 1] - given[k]) for k in range(len(given) - 1)]
        step, end = given[1] - given[0], given[-1] + self.duration
        new = given[0] + step * np.arange(int(np.ceil((end - given[0]) / step - SAME_TIME)) + 1)
        total = np.zeros((4, len(new), curve.shape[2]))
        for time, weight in zip(self.times, self.weights, strict=True):
            at = np.clip(new - time, given[0], given[-1])
            span = np.minimum(np.searchsorted(given, at, side="right") - 1, len(spans) - 1)
            total += weight * np.stack([spans[k](at[row] - given[k]) for row, k in enumerate(span)], axis=1)
        return new, total


def input_shaper(frequencies: ArrayLike, damping_ratios: ArrayLike = 0.0, kind: str = "zvd") -> InputShaper:
    """Return the shaper for vibrations.

    frequencies    : undamped natural frequencies [rad/s]; damping_ratios: of each, below 1 [-]
    kind           : "zv": no vibration at the frequency; "zvd", "zvdd": nor near it, with one or two impulses more
    """
    if kind not in KINDS:
        raise InputError(f"the shaper is '{kind}'; allowed are {', '.join(KINDS)}")
    frequency, ratio = np.broadcast_arrays(np.atleast_1d(np.asarray(frequencies, float)), np.asarray(damping_ratios, float))
    if not (frequency > 0.0).all() or not ((ratio >= 0.0) & (ratio < 1.0)).all():
        raise InputError(f"frequencies are {frequency} rad/s with damping ratios {ratio}; frequencies above zero and ratios "
                         "from 0 to below 1 are needed")
    found = InputShaper(np.zeros(1), np.ones(1))
    for w, z in zip(frequency, ratio, strict=True):
        half, decay, order = np.pi / (w * np.sqrt(1.0 - z * z)), np.exp(-z * np.pi / np.sqrt(1.0 - z * z)), KINDS[kind]
        weights = np.array([comb(order, k) * decay**k for k in range(order + 1)]) / (1.0 + decay)**order
        found = _convolved([found, InputShaper(half * np.arange(order + 1.0), weights)])
    return found


def _convolved(shapers: Sequence[InputShaper]) -> InputShaper:
    first, second = shapers
    times = (first.times[:, None] + second.times).ravel()
    weights = (first.weights[:, None] * second.weights).ravel()
    order = np.argsort(times, kind="stable")
    return InputShaper(times[order], weights[order])
