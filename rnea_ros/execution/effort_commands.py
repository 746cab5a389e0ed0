"""Effort commands from the model: an arm floats by gravity and friction compensation, or gets the torque of a desired motion.

The effort that is commanded is what the robot's own controller does not add (EffortConvention). It is bounded at every call,
for every input: a state that jumps, is missing or not finite, another payload, other limits, another mode. With the
commanded joint torque u [N m] and the time dt since the last command, at most `max_step_s`,

    |u - u_last| <= R dt,  R the smallest of the limits of torque rate and of the effort limit over `rise_time`
    |u| and |u + what the controller adds| stay within the effort limit

A support factor rises from 0 to 1 within `ramp_time` when commands begin, and falls back when they end or the states are
older than `timeout`; then the commands end at zero. Another convention, or other joints, apply after such an end.
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

    max_step_s: float = 0.02  # longest time between two commands that counts for a change [s]
    min_sample_s: float = 0.005  # time between two states below which jitter of their arrival could look like a jump [s]
    max_speed: float = 50.0  # speed above which a change of position is a jump, without a velocity limit [rad/s, m/s]
    max_limit_speeds: float = 3.0  # the same speed in velocity limits: robots exceed those of their URDFs
    # speed below which friction compensation fades: the sign of a noisy velocity is not known [rad/s, m/s]
    fade_speed: float = 0.05


TUNING = CommandTuning()


@dataclass(frozen=True)
class CommandOptions:
    """Options of effort commands.

    mode           : one of MODES
    ramp_time      : time in which the support rises from zero to all of it, and falls back [s]
    rise_time      : shortest time in which an effort changes by its limit [s]
    timeout        : age of the last usable state from which the support falls [s]
    friction_share : share of the friction that is compensated where the velocity is measured; above 1 an arm moves by itself
    """

    mode: str = "none"
    ramp_time: float = 1.0
    rise_time: float = 0.2
    timeout: float = 0.1
    friction_share: float = 0.8


class JointCommand(NamedTuple):
    """Command of all joints, (n,) each: position [rad, m], velocity, effort in the units of the convention."""

    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


@dataclass(frozen=True, eq=False)
class _Target:
    """Robot, convention and limits (n,) of the commanded joint torque that belong together."""

    robot: Robot
    convention: EffortConvention
    lower: np.ndarray
    upper: np.ndarray
    rate: np.ndarray
    speed: np.ndarray
    turns: np.ndarray

    def is_continued_by(self, other: _Target) -> bool:
        """Return whether commands for `other` mean the same as those for this one."""
        return self.robot.joint_names == other.robot.joint_names and self.convention == other.convention


class EffortCommander:
    """Effort commands of a robot, state by state. Times are those of one steady clock [s].

    joint_names : joints of the commands, in their order
    is_active   : whether commands are sent: from the first one until the last, which is zero
    support     : share of the support that is commanded, 0 to 1
    torque      : commanded joint torque (n,) of the last command [N m, N]
    rejected    : number of states that were not used, by reason
    limited     : number of commands in which a limit of effort or of its rate changed the value
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
        self._time = self._seen = -np.inf
        self._position: np.ndarray | None = None  # of the last usable state
        self._wanted = self.torque = np.zeros(self._target.robot.n if self._target else 0)
        self._added = np.zeros_like(self.torque)  # torque that the robot's controller adds
        self._desired = self._wanted, self._wanted  # position and velocity of the command

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self._target.robot.joint_names if self._target else ()

    @property
    def mode(self) -> str:
        return self._options.mode

    @property
    def timeout(self) -> float:
        """Age of a state from which commands end [s]."""
        return self._options.timeout

    # ------------------------------------------------------------------ configuration

    def configure(self, robot: Robot, limits: Limits, options: CommandOptions,
                  convention: EffortConvention = TOTAL.commanded) -> None:
        """Use a robot, its limits and options from now on. While commands are sent nothing jumps, see the module.

        robot : a tree on a fixed base
        Raises InputError, and changes nothing, if commands are wanted and the robot or its limits do not allow them.
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
        """Return whether the support falls to zero: switched off, states too old, or another convention or robot waits."""
        return self._options.mode == "none" or self._next is not None or self.is_stale

    # ------------------------------------------------------------------ commands

    def compensate(self, now: float, q: np.ndarray, qd: np.ndarray) -> JointCommand | None:
        """Return the command that compensates gravity, and friction if the mode has it, at a measured state.

        qd: NaN for joints whose velocity is unknown: their friction is not compensated
        """
        target = self._target
        if not self._accept(now, q, np.nan_to_num(qd)) or target is None:
            return self.elapse(now)
        robot, convention = target.robot, target.convention
        gravity, friction = robot.gravity(q), self._measured_friction(robot, qd)
        added = convention.added(gravity, friction)
        wanted = np.zeros_like(gravity) if convention.contains != "total" else gravity
        if self._options.mode != "gravity" and not convention.needs_friction:
            wanted = wanted + friction
        return self._command(now, wanted, added, q, np.zeros_like(q))

    def feed_forward(self, now: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray,
                     is_measured: bool) -> JointCommand | None:
        """Return the command with the torque tau of a desired motion.

        q, qd       : position and velocity that tau is for
        is_measured : whether these are measured: friction is then compensated as in `compensate`, which noise does not excite
        """
        target = self._target
        if not self._accept(now, q, qd, tau) or target is None:
            return self.elapse(now)
        robot = target.robot
        friction = robot.friction(qd)[0]
        if is_measured:
            soft = self._measured_friction(robot, qd)
            tau, friction = tau - friction + soft, soft
        added = target.convention.added(robot.gravity(q), friction)
        return self._command(now, tau - added, added, q, qd)

    def elapse(self, now: float) -> JointCommand | None:
        """Return the command that is due without a new state: while the support falls. None if none is due."""
        if not self.is_active:
            return None
        self.is_stale = now - self._seen > self._options.timeout
        return self._step(now) if self.is_ending else None

    def _measured_friction(self, robot: Robot, qd: np.ndarray) -> np.ndarray:
        known = np.nan_to_num(qd)
        return self._options.friction_share * np.tanh(np.abs(known) / TUNING.fade_speed) * robot.friction(known)[0]

    def _accept(self, now: float, q: np.ndarray, *others: np.ndarray) -> bool:
        """Return whether a state can be used; count why not."""
        target = self._target
        if target is None or (self._options.mode == "none" and not self.is_active):
            return False
        if not all(np.isfinite(values).all() for values in (q, *others)) or len(q) != target.robot.n:
            self.rejected["not_finite"] += 1
            return False
        if self._position is not None:
            change = q - self._position
            change = np.where(target.turns, np.remainder(change + np.pi, 2.0 * np.pi) - np.pi, change)  # gravity is periodic
            if (np.abs(change) > target.speed * (now - self._seen + TUNING.min_sample_s)).any():
                self.rejected["jump"] += 1
                return False
        self._position, self._seen = np.array(q), now
        return True

    def _command(self, now: float, wanted: np.ndarray, added: np.ndarray, *desired: np.ndarray) -> JointCommand | None:
        """Return the next command towards a commanded joint torque."""
        self._wanted, self._added = wanted, added
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
        wanted = self.support * self._wanted
        goal = wanted
        if self.support > 0.0:  # at zero the rounding of the difference below would never end
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
        """Use what waited for the end, now that the last command, zero, is made."""
        if self._next is not None:
            self._target, self._next = self._next, None
        self._reset()

    # ------------------------------------------------------------------ for diagnostics

    def findings(self) -> Mapping[str, object]:
        """Return mode, support and counts, for diagnostics."""
        stage = "off" if not self.is_active else "ending" if self.is_ending else "active" if self.support == 1.0 else "rising"
        return {"commands": self._options.mode, "commands.stage": stage, "commands.support": f"{self.support:.3f}",
                "commands.limited": self.limited,
                **{f"commands.rejected.{reason}": count for reason, count in sorted(self.rejected.items())}}


def _target(robot: Robot, limits: Limits, options: CommandOptions, convention: EffortConvention) -> _Target:
    """Return the limits of commands. Raises InputError for a mode, robot or limit that does not allow them."""
    if options.mode not in MODES:
        raise InputError(f"mode of effort commands is '{options.mode}'; allowed are {', '.join(MODES)}")
    if not robot.is_fixed_tree:
        raise InputError(f"effort commands serve trees on a fixed base; this robot is a {robot.kind}")
    unknown = [name for name, limit in zip(robot.joint_names, limits.effort) if not np.isfinite(limit)]
    if unknown:
        raise InputError(f"effort commands need the effort limit of every joint, that of {some(unknown)} is unknown: set "
                         "joint_limits.<joint>.max_effort, or max_effort in the robot file's section limits")
    upper = np.array(limits.effort)
    lower = -upper
    if (sided := two_sided_limits(robot.model, robot.joint_names, limits, "effort")) is not None:
        joints, lower[joints], upper[joints] = sided
    largest = np.maximum(upper, -lower)
    rate = np.fmin(np.fmin(limits.effort_rate, limits.commanded_effort_rate), largest / options.rise_time)
    speed = np.where(np.isfinite(limits.velocity), TUNING.max_limit_speeds * limits.velocity, TUNING.max_speed)
    turns = np.array([kind != "prismatic" for kind in robot.joint_types])
    return _Target(robot, convention, lower, upper, rate, np.maximum(speed, 1.0), turns)
