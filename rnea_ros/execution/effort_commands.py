"""Effort commands from the model: gravity compensation, friction compensation, or feed-forward of a desired motion.

The commanded effort excludes the terms that the controller of the robot adds (EffortConvention). It is bounded at every call
and for every input: states that jump, are missing or not finite, a new payload, new limits, a new mode. For the commanded
joint torque u [N m] and the time dt since the last command, at most `max_step_s`,

    |u - u_last| <= R dt, where R is the smallest of the torque rate limits and effort limit / `rise_time`
    |u| and |u + added terms| are within the effort limit

A support factor rises from 0 to 1 within `ramp_time` when commands begin. It falls to 0 when they end, or when states are
older than `timeout`; the last command is zero. A new convention or new joints take effect after such an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from ..model.drives import TOTAL, EffortConvention, two_sided_limits
from ..model.tree import Limits
from ..robots.robot import Robot

MODES = ("none", "gravity", "gravity_friction", "feedforward")


@dataclass(frozen=True)
class CommandTuning:
    """Bounds on jumps of measured states."""

    max_step_s: float = 0.02  # longest time step for the change of a command [s]
    min_sample_s: float = 0.005  # margin for jitter of the arrival of states in the detection of jumps [s]
    # speed above which a velocity, or a change of position, is a measuring error, if the limit is unknown [rad/s, m/s]
    max_speed: float = 50.0
    max_limit_speeds: float = 3.0  # this speed over the velocity limit, if it is known; robots exceed the limits of their URDF
    # speed below which friction compensation is reduced, because the sign of a noisy velocity is uncertain [rad/s, m/s]
    fade_speed: float = 0.05


TUNING = CommandTuning()


@dataclass(frozen=True)
class CommandOptions:
    """Options of effort commands.

    mode           : one of MODES
    ramp_time      : time in which the support factor rises from 0 to 1, and falls back [s]
    rise_time      : shortest time for a change of an effort from zero to its limit [s]
    timeout        : age of the last usable state above which the support factor falls [s]
    friction_share : share of the friction that is compensated at measured velocities; from 1 an arm may move on without a push
    """

    mode: str = "none"
    ramp_time: float = 1.0
    rise_time: float = 0.2
    timeout: float = 0.1
    friction_share: float = 0.8


class JointCommand(NamedTuple):
    """Command of all joints, (n,) each: position [rad, m], velocity [rad/s, m/s], effort in the unit of the convention."""

    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


@dataclass(frozen=True, eq=False)
class _Target:
    """Robot, convention, and limits of its commands, (n,) each.

    lower, upper : limits of the joint torque [N m, N]
    rate         : limit of its rate [N m/s, N/s]
    speed        : speed above which a velocity, or a change of position, is a measuring error [rad/s, m/s]
    is_angle     : whether the position is an angle
    """

    robot: Robot
    convention: EffortConvention
    lower: np.ndarray
    upper: np.ndarray
    rate: np.ndarray
    speed: np.ndarray
    is_angle: np.ndarray

    def is_continued_by(self, other: _Target) -> bool:
        """Return whether commands for `other` have the same joints and the same convention."""
        return self.robot.joint_names == other.robot.joint_names and self.convention == other.convention


class EffortCommander:
    """Computation of the effort commands of a robot from a stream of states. Times are those of one monotonic clock [s].

    joint_names : joints of the commands, in their order
    is_active   : True from the first command to the last one, which is zero
    support     : support factor, 0 to 1
    torque      : (n,) joint torque of the last command [N m, N]
    rejected    : number of rejected states, keyed by reason
    limited     : number of commands that a limit of effort or effort rate changed
    """

    def __init__(self) -> None:
        self.rejected: Counter[str] = Counter()
        self.limited = 0
        self._target: _Target | None = None
        self._next: _Target | None = None
        self._options = CommandOptions()
        self._reset()

    def _reset(self) -> None:
        self.is_active, self.support, self.is_stale = False, 0.0, False
        self._time = self._last_state_time = -np.inf
        self._position: np.ndarray | None = None  # position of the last usable state
        self._goal_torque = self.torque = np.zeros(self._target.robot.n if self._target else 0)
        self._added = np.zeros_like(self.torque)  # torque added by the controller of the robot
        self._desired = self._goal_torque, self._goal_torque  # position and velocity of the command

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self._target.robot.joint_names if self._target else ()

    @property
    def mode(self) -> str:
        return self._options.mode

    @property
    def timeout(self) -> float:
        """Age of the last usable state above which commands end [s]."""
        return self._options.timeout

    # ------------------------------------------------------------------ configuration

    def configure(self, robot: Robot, limits: Limits, options: CommandOptions,
                  convention: EffortConvention = TOTAL.commanded) -> None:
        """Set the robot, its limits and options. Active commands change continuously, see the module.

        robot : tree on a fixed base

        Raises InputError, without any change, if the mode is not none and the robot or its limits do not allow commands.
        """
        target = None if options.mode == "none" else _target(robot, limits, options, convention)
        self._options = options
        if target is None:
            self._next = None
        elif not self.is_active:
            self._target, self._next = target, None
            self._reset()
        elif self._target is not None and self._target.is_continued_by(target):
            self._target, self._next = target, None
        else:
            self._next = target

    @property
    def is_ending(self) -> bool:
        """True if the support factor falls: commands disabled, states too old, or a new robot or convention pending."""
        return self._options.mode == "none" or self._next is not None or self.is_stale

    # ------------------------------------------------------------------ commands

    def compensate(self, now: float, q: np.ndarray, qd: np.ndarray) -> JointCommand | None:
        """Return the command that compensates gravity, and friction in mode gravity_friction, at a measured state.

        now : time [s]
        q   : (n,) positions [rad, m]
        qd  : (n,) velocities [rad/s, m/s]; NaN, or impossible: unknown, friction is not compensated
        """
        target = self._target
        if not self._accept(now, q) or target is None:
            return self.elapse(now)
        robot, convention = target.robot, target.convention
        gravity, friction = robot.gravity(q), self._measured_friction(target, qd)
        added = convention.added(gravity, friction)
        wanted = np.zeros_like(gravity) if convention.contains != "total" else gravity
        if self._options.mode != "gravity" and not convention.needs_friction:
            wanted = wanted + friction
        return self._command(now, wanted, added, q, np.zeros_like(q))

    def feed_forward(self, now: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray,
                     is_measured: bool) -> JointCommand | None:
        """Return the command with the torque tau of a desired motion.

        now         : time [s]
        q, qd       : (n,) position and velocity of the motion
        tau         : (n,) joint torque [N m, N]
        is_measured : True if q and qd are measured: friction is then compensated as in `compensate`, robust to noise
        """
        target = self._target
        if not self._accept(now, q, qd, tau) or target is None:
            return self.elapse(now)
        robot = target.robot
        friction = robot.friction(qd)[0]
        if is_measured:
            compensated = self._measured_friction(target, qd)
            tau, friction = tau - friction + compensated, compensated
        added = target.convention.added(robot.gravity(q), friction)
        return self._command(now, tau - added, added, q, qd)

    def elapse(self, now: float) -> JointCommand | None:
        """Return the command that is due without a new state, while the support factor falls; None if no command is due."""
        if not self.is_active:
            return None
        self.is_stale = now - self._last_state_time > self._options.timeout
        return self._step(now) if self.is_ending else None

    def _measured_friction(self, target: _Target, qd: np.ndarray) -> np.ndarray:
        known = np.where(np.abs(qd) <= target.speed, qd, 0.0)
        return self._options.friction_share * np.tanh(np.abs(known) / TUNING.fade_speed) * target.robot.friction(known)[0]

    def _accept(self, now: float, q: np.ndarray, *others: np.ndarray) -> bool:
        """Return whether a state is usable; count rejected states by reason."""
        target = self._target
        if target is None or (self._options.mode == "none" and not self.is_active):
            return False
        if not all(np.isfinite(values).all() for values in (q, *others)) or len(q) != target.robot.n:
            self.rejected["not_finite"] += 1
            return False
        if self._position is not None:
            change = q - self._position
            # gravity is periodic in angles
            change = np.where(target.is_angle, np.remainder(change + np.pi, 2.0 * np.pi) - np.pi, change)
            if (np.abs(change) > target.speed * (now - self._last_state_time + TUNING.min_sample_s)).any():
                self.rejected["jump"] += 1
                return False
        self._position, self._last_state_time = np.array(q), now
        return True

    def _command(self, now: float, wanted: np.ndarray, added: np.ndarray, *desired: np.ndarray) -> JointCommand | None:
        """Return the next command towards a joint torque (n,).

        wanted  : joint torque to command [N m, N]
        added   : joint torque added by the controller of the robot [N m, N]
        desired : position and velocity of the command
        """
        self._goal_torque, self._added = wanted, added
        self._desired = np.array(desired[0]), np.array(desired[1])
        self.is_stale = False
        if not self.is_active and not self.is_ending:
            self.is_active = True
        return self._step(now)

    def _step(self, now: float) -> JointCommand | None:
        target = self._target
        if target is None or not self.is_active:
            return None
        dt = min(max(now - self._time, 0.0), TUNING.max_step_s) if np.isfinite(self._time) else 0.0
        self._time = now
        change = dt / self._options.ramp_time
        self.support = float(np.clip(self.support + (-change if self.is_ending else change), 0.0, 1.0))
        wanted = self.support * self._goal_torque
        goal = wanted
        if self.support > 0.0:  # at zero, rounding of the difference below would leave a nonzero command
            whole = np.clip(wanted + self._added, target.lower, target.upper)
            goal = np.clip(whole - self._added, target.lower, target.upper)
        step = target.rate * dt
        torque = np.clip(goal, self.torque - step, self.torque + step)
        self.limited += bool((np.abs(torque - wanted) > 1e-9 * target.upper).any())
        self.torque = torque
        per_unit = target.convention.per_unit or 1.0
        command = JointCommand(*self._desired, self.torque / per_unit)
        if self.is_ending and self.support == 0.0 and not self.torque.any():
            self._end()
        return command

    def _end(self) -> None:
        """Apply a pending configuration after the last command, which is zero."""
        if self._next is not None:
            self._target, self._next = self._next, None
        self._reset()

    # ------------------------------------------------------------------ for diagnostics

    def findings(self) -> Mapping[str, object]:
        """Return mode, stage, support factor and counts for diagnostics."""
        stage = "off" if not self.is_active else "ending" if self.is_ending else "active" if self.support == 1.0 else "rising"
        return {"commands": self._options.mode, "commands.stage": stage, "commands.support": f"{self.support:.3f}",
                "commands.limited": self.limited,
                **{f"commands.rejected.{reason}": count for reason, count in sorted(self.rejected.items())}}


def _target(robot: Robot, limits: Limits, options: CommandOptions, convention: EffortConvention) -> _Target:
    """Return robot and limits of commands. Raises InputError for a mode, robot or limit that does not allow commands."""
    if options.mode not in MODES:
        raise InputError(f"mode of effort commands is '{options.mode}'; allowed are {', '.join(MODES)}")
    if not robot.is_fixed_tree:
        raise InputError(f"robot '{robot.name}' is a {robot.kind}; effort commands require a tree on a fixed base")
    unknown = [name for name, limit in zip(robot.joint_names, limits.effort) if not np.isfinite(limit)]
    if unknown:
        raise InputError(f"the effort limit of {some(unknown)} is unknown; effort commands require the limits of all joints. "
                         "Set joint_limits.<joint>.max_effort, or max_effort in section limits of the robot file")
    upper = np.array(limits.effort)
    lower = -upper
    if (sided := two_sided_limits(robot.model, robot.joint_names, limits, "effort")) is not None:
        joints, lower[joints], upper[joints] = sided
    largest = np.maximum(upper, -lower)
    rate = np.fmin(np.fmin(limits.effort_rate, limits.commanded_effort_rate), largest / options.rise_time)
    speed = np.where(np.isfinite(limits.velocity), TUNING.max_limit_speeds * limits.velocity, TUNING.max_speed)
    is_angle = np.array([kind != "prismatic" for kind in robot.joint_types])
    return _Target(robot, convention, lower, upper, rate, np.maximum(speed, 1.0), is_angle)
