"""A robot that is watched while it follows a motion: what it cannot follow is slowed, what it loses is stopped.

The tracking error of a joint (tracking.py) is how far it is from all places where its reference was lately, so that a robot
that merely lags has none. From `watch.tolerance` on it takes speed from the motion, in tenths: all but one of them where it
comes near to the path tolerance, beyond which the motion has to stop. So has a tenth to go, moment by moment, while a motor is
saturated and its joint falls back. Speed is given back a tenth at a time, within `watch.recovery` from nothing to all: what a
motor could not do a moment ago it cannot do at the next bend either.

After the last reference a robot is waited for until it is inside the goal's tolerances, or its time is over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..model.tree import Limits
from ..robots.link_side import LinkSideRobot
from ..scaling.reference import Reference
from .goal import Goal, Outcome
from .joint_state_buffer import Measurement
from .saturation import Saturation
from .tolerances import FIELDS, tolerances
from .tracking import SentReferences
from .turns import nearest, turning

PERIOD = 4_000_000  # ns; between two looks
TENTHS, LEAST = 10, 1  # of the speed; that are left to a motion until it is stopped
REACH = 4.0  # times the tolerance, where the least speed is left if no path tolerance is nearer
MOMENT, FALLEN = 50_000_000, 0.1  # ns, for which a motor is saturated; share of tolerance or lag, by which it falls back
FORESEEN, SMOOTH = 0.1, 0.01  # s; over which an error is foreseen; over which its growth is smoothed
AHEAD, BEHIND = 50_000_000, 1_000_000_000  # ns; by which a stamp may be later than now, and earlier
MISSED = "goal_tolerance"  # the reason of a motion whose robot is not at its goal
UNWATCHED = {"watch.tolerance": 0.0, "watch.path_tolerance": 0.0, "watch.goal_tolerance": 0.0, "watch.goal_time": 0.0,
             "watch.lag": 0.1, "watch.recovery": 5.0}  # parameters


class Seen(NamedTuple):
    """What is reported of a robot: the joint that is furthest off, by how much [rad, m], and how late the robot is [s]."""

    error: float = math.nan
    joint: str = ""
    lag: float = math.nan


class Watch:
    """Of one motion.

    share     : of the speed, that is left to it
    violation : why it may not go on; empty if it may
    verdict   : what became of it, once its last reference is sent: the robot is inside the goal's tolerances, or was not in
                time; None as long as it may still come
    trouble   : why nothing can be seen; empty if there is nothing to see, or all is
    """

    def __init__(self, robot: LinkSideRobot, limits: Limits, goal: Goal, values: Mapping[str, Any], lead: float = 0.0):
        """lead: time until a change of the speed is effective [s]."""
        n, self._names = len(robot.joint_names), robot.joint_names
        self._units = ["m" if kind == "prismatic" else "rad" for kind in robot.joint_types]
        self._allowed = tolerances(goal.tolerances, n, values)
        path, tolerance = self._allowed.path[0], values["watch.tolerance"]
        self._slow = np.minimum(tolerance, 0.5 * path) if tolerance else np.full(n, np.inf)
        self._far = np.minimum(path, REACH * self._slow)
        self._lag, self._step, self._lead = values["watch.lag"], values["watch.recovery"] * 1e9 / TENTHS, lead
        self._effort_share = values.get("limits_share.effort", 1.0)
        self._sent, self.seen = SentReferences(n), Seen()
        self._tenths, self._changed, self._looked = TENTHS, 0, 0
        self._off, self._growth = np.zeros((2, n))  # rad, m; rad/s, m/s
        self._strained: tuple[int, np.ndarray, float] | None = None  # since when motors are saturated; errors and lag then
        self._peak, self._worst = 0.0, (0, 0.0, 0.0)  # rad, m; of the errors; a joint, its error now and in a moment
        self._end = 0  # when the last reference was sent
        self.violation = self.trouble = ""
        self.verdict: Outcome | None = None
        self.carry(robot, limits)

    def carry(self, robot: LinkSideRobot, limits: Limits) -> None:
        """Another payload, other limits."""
        self._turns = turning(robot.joint_types, limits)
        self._saturation = Saturation(robot, limits, self._effort_share)

    @property
    def share(self) -> float:
        return self._tenths / TENTHS

    def values(self) -> dict[str, object]:
        """For diagnostics."""
        return {"tracking.error": f"{self.seen.error:.5f}", "tracking.joint": self.seen.joint,
                "tracking.lag_s": f"{self.seen.lag:.4f}", "tracking.peak": f"{self._peak:.5f}",
                "tracking.share": f"{self.share:g}"}

    # ------------------------------------------------------------------ on the way

    def follow(self, reference: Reference, measured: Measurement, now: int) -> Iterator[tuple[bool, str]]:
        """Called with each reference and what joint states told last, at time now [ns]. Yields (whether all is well, what is
        new), to be said of the motion."""
        before = self._tenths
        self._sent.send(now, reference.q, reference.qd)
        self._look(measured, now)
        if before == TENTHS > self._tenths:
            yield False, f"is slowed: {self._cause()}"
        if before < TENTHS == self._tenths:
            yield True, "has its speed again"
        if reference.done:
            self._wait(reference, measured, now)

    def _look(self, measured: Measurement, now: int) -> None:
        newest = int(measured.stamps.max(initial=0))
        self.trouble = self._stamped(newest, now)
        if self.trouble or newest < max(self._looked + PERIOD, self._sent.begin):
            return
        tracking = self._sent.tracking(*measured[:3], self._lag, self._turns)
        if tracking is None:
            return
        off = np.abs(np.nan_to_num(tracking.error))
        coming = self._foreseen(off, newest)
        worst = int(off.argmax())
        self._peak = max(self._peak, float(off[worst]))
        self.seen = Seen(float(off[worst]), self._names[worst], tracking.lag)
        self._check(off, np.abs(np.nan_to_num(tracking.slip)))
        with np.errstate(invalid="ignore"):  # joints without tolerances
            over = np.fmax((coming - self._slow) / (self._far - self._slow), 0.0)
        joint, wanted = int(over.argmax()), TENTHS * (1.0 - float(over.max()))
        self._worst = joint, float(off[joint]), float(coming[joint])
        if self._falls_back(off, measured, newest):
            wanted = min(wanted, self._tenths - 1)
        self._steer(max(math.floor(wanted), LEAST), newest)

    def _foreseen(self, off: np.ndarray, newest: int) -> np.ndarray:
        """How far off the joints will be in a moment, if they go on like this (n,)."""
        dt = (newest - self._looked) * 1e-9
        self._growth += ((off - self._off) / dt - self._growth) * dt / (dt + SMOOTH)
        self._looked, self._off = newest, off
        return off + (FORESEEN + self._lead) * np.maximum(self._growth, 0.0)

    def _cause(self) -> str:
        """Why it was slowed just now."""
        joint, off, coming = self._worst
        unit, allowed = self._units[joint], self._slow[joint]
        if coming <= allowed:
            return "a motor is saturated, and its joint falls back"
        return (f"{self._names[joint]} is {off:.4g} {unit} off and will soon be {coming:.4g} {unit}, {allowed:.4g} are "
                "allowed (watch.tolerance)")

    @staticmethod
    def _stamped(newest: int, now: int) -> str:
        """What is wrong with the stamp of a joint state that came lately [ns]; 0 if none did."""
        ahead = newest - now
        if not newest or -BEHIND < ahead < AHEAD:
            return ""
        side = "ahead of" if ahead > 0 else "behind"
        return f"joint states are stamped {abs(ahead) * 1e-9:.3f} s {side} this node's clock: the robot is not watched"

    def _check(self, *off: np.ndarray) -> None:
        """Positions and velocities (n,)."""
        for row, by, per in zip(range(len(off)), off, ("", "/s")):
            allowed = self._allowed.path[row]
            joint = int((by / allowed).argmax())
            if by[joint] > allowed[joint]:
                unit = self._units[joint] + per
                self.violation = self.violation or (
                    f"the {FIELDS[row]} of {self._names[joint]} is {by[joint]:.4g} {unit} off its path, {allowed[joint]:.4g} "
                    f"{unit} allowed (path_tolerance), and the robot {self.seen.lag:.3f} s behind")

    def _falls_back(self, off: np.ndarray, measured: Measurement, now: int) -> bool:
        """Whether a motor has been saturated for a moment, in which its joint came further off, or all of the robot later."""
        full, lag = self._saturation(measured), self.seen.lag
        if not full.any():
            self._strained = None
        elif self._strained is None:
            self._strained = now, off, lag
        elif now - self._strained[0] >= MOMENT:
            off_more, later = off - self._strained[1], lag - self._strained[2]
            fallen = (full & (off_more > FALLEN * self._slow)).any() or later > FALLEN * self._lag
            self._strained = now, off, lag
            return bool(fallen)
        return False

    def _steer(self, wanted: int, now: int) -> None:
        if now - self._changed < 0.5e9 * self._lead:
            return
        if wanted < self._tenths:
            self._tenths, self._changed = wanted, now
        elif wanted > self._tenths and now - self._changed >= self._step:
            self._tenths, self._changed = self._tenths + 1, now

    # ------------------------------------------------------------------ at its goal

    def _wait(self, reference: Reference, measured: Measurement, now: int) -> None:
        """For the robot to be at the last reference."""
        self._end = self._end or now
        allowed = self._allowed.goal
        with np.errstate(invalid="ignore"):
            off = np.abs(np.stack((nearest(measured.q, reference.q, self._turns) - reference.q, measured.qd)))
            outside = np.isfinite(allowed[:2]) & ~((off <= allowed[:2]) & (measured.stamps > self._end))
        if not outside.any():
            self.verdict = Outcome()
        if self.verdict is not None or now - self._end < self._allowed.time * 1e9:
            return
        row, joint = np.argwhere(outside)[0].tolist()
        by, unit = off[row, joint], self._units[joint] + ("", "/s")[row]
        told = "is not known" if math.isnan(by) else f"is {by:.4g} {unit} off"
        self.verdict = Outcome(MISSED, f"{self._allowed.time:g} s after the last reference the {FIELDS[row]} of "
                               f"{self._names[joint]} {told}, {allowed[row, joint]:.4g} {unit} allowed (goal_tolerance)")
