"""Source of the motion that the model is evaluated with: measured states with a desired acceleration and jerk, an estimate of
the whole motion, or a reference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.topics import Jumped
from rnea_ros.nodes.dynamics.joint_states import JointStateSource, StateReader
from rnea_ros.nodes.dynamics.references import DesiredReader, References

Motion = tuple[np.ndarray, ...]  # q, qd, qdd, qddd, and further derivatives where they are desired
NO_JOINTS = np.zeros((4, 0))
SECOND = 1_000_000_000  # ns
ESTIMATED = ("motion_source", "estimator.lag", "estimator.resolution")
ESTIMATING = ("auto", "estimated")  # values of motion_source with which estimates are made `estimator.lag` before the state


class MotionSource:
    """Joint states and desired motions in, (q, qd, qdd, qddd) and desired higher derivatives out.

    stamp, when : of the motion that was given out last, in nanoseconds and for messages
    deviation   : standard deviations of that motion (4, n), None where it was not estimated
    name        : its source, see JointDynamics.motion_source; empty before the first
    """

    def __init__(self, joint_names: Sequence[str], values: Values, joint_types: Sequence[str] = (),
                 clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = (), order: int = 3):
        """clock() is what this node's clock shows [ns]; optional: joints that are read if they are published; order:
        of the highest derivative that a desired motion may have.
        """
        self.state = StateReader(joint_names, clock, optional)
        self.desired = DesiredReader(joint_names, clock, optional, order)
        self._joint_names = tuple(joint_names)
        self._turning, self._revolute = ({k for k, kind in enumerate(joint_types) if kind == wanted}
                                         for wanted in ("continuous", "revolute"))
        self.references = References(joint_names, self.state, sorted(self._turning), clock, order)
        self._zeros = np.zeros((order - 1, len(joint_names) + len(optional)))
        self._wanted = self._zeros  # of the desired motion in use, all joints
        self._found = np.full((2, 4, len(joint_names) + len(optional)), np.nan)  # motion, and how far off it may be
        self._estimated: tuple[object, ...] = ()
        self.stamp, self.when, self.name = 0, Time(), ""
        self.deviation: np.ndarray | None = None
        self.lateness: Rejected | None = None  # why the desired motion is not that of the last state, but one that is held
        self._desired_until = 0  # stamp of the last motion with a desired acceleration: with `auto` no estimate is before it
        self._standing: Rejected | None = None
        self.configure(values)

    def configure(self, values: Values) -> None:
        """Parameters changed. A history that still fits is kept."""
        self._values = values
        self._lag = values["estimator.lag"] if values["motion_source"] in ESTIMATING else 0.0
        estimated = tuple(values[name] for name in ESTIMATED)
        if estimated != self._estimated:
            self._estimated = estimated
            for part in self.state.sources:
                part.history = None
        held = [values.get(f"hold_joints.{name}", math.nan) for name in self._joint_names]
        self.state.age, self.state.held = values["joint_age"], np.array(held)
        self.desired.held = frozenset(np.flatnonzero(np.isfinite(held)).tolist())

    def forget(self) -> None:
        """Discard the history, after the clock was set or the input was silent."""
        self.state.forget()
        self.desired.forget()
        self.references.forget()
        self._desired_until = 0

    def read(self, message: JointState, sender: bytes = b"") -> int:
        """Read a joint state of a sender; return the stamp of the robot's state with it [ns]. Raises Rejected."""
        try:
            part = self.state.read(message, sender)
        except Jumped:
            self.desired.clear()
            self.references.clear()
            self._desired_until = 0
            raise
        source = self._values["motion_source"]
        if source in ESTIMATING or (source == "desired" and not self.state.has_velocity):
            self._standing = self._follow(part)
            if self._standing and source != "auto":
                raise self._standing
        self.state.merge(part)
        return self.state.stamp

    def at_state(self, desired_age: float) -> Motion:
        """Return the motion at the state just received, or the estimator's lag before it; desired_age is the time since the
        last desired motion arrived [s].
        """
        state, source = self.state, self._values["motion_source"]
        self.stamp, self.when, self.deviation, self.lateness = state.stamp, state.when, None, None
        if source == "reference":
            self.name = "reference"
            return self.references.motion(self._values["reference.source"], self._values["desired_timeout"])
        estimated = source == "estimated" or (source == "auto" and not self._usable(desired_age))
        if not state.has_velocity and self._values["missing_velocity"] == "refuse" and not estimated:
            raise Rejected("velocity_missing", f"{state.velocity_gap()}; motion_source desired needs velocities: publish them "
                                               "in joint_states, set motion_source to auto or estimated, or missing_velocity "
                                               "to differentiate")
        if not estimated:
            wanted = self._desired(desired_age)
            if state.has_velocity:
                self._desired_until = state.stamp
                return state.q, state.qd, *wanted
        elif source == "auto":
            if self._standing is not None:
                raise self._standing
            if state.stamp - round(self._lag * 1e9) <= self._desired_until:  # not back in time
                raise Rejected("motion_source_changed", "the desired motion ended; the estimated one begins estimator.lag, "
                                                        f"{self._lag:g} s, later", passing=True)
        found, deviation = self._estimate(state.stamp - round(self._lag * 1e9))[:, :, :len(self._joint_names)]
        if not estimated:
            return state.q, np.where(np.isfinite(state.qd), state.qd, found[1]), *wanted
        self.name = "estimated"
        if self._lag:
            self.stamp = stamp = state.stamp - round(self._lag * 1e9)
            self.when = Time(sec=stamp // SECOND, nanosec=stamp % SECOND)
        self.deviation = deviation
        return tuple(found)

    def lag(self, desired_age: float) -> int:
        """Return how long before the next joint state the motion will be [ns], as far as that is known beforehand."""
        source = self._values["motion_source"]
        late = source == "auto" and desired_age > self._values["desired_timeout"]
        return round(self._lag * 1e9) if source == "estimated" or late else 0

    def _usable(self, desired_age: float) -> bool:
        """Return whether the state can be completed by a desired motion that is up to date."""
        return (desired_age <= self._values["desired_timeout"] and self.state.has_velocity
                and self.desired.reaches(self.state.stamp, self._values["input_tolerance"],
                                         self._values["desired_timeout"]))

    def _estimate(self, stamp: int) -> np.ndarray:
        """Motion and deviations at a stamp of all joints, (2, 4, n + k), from what each sender said. Raises Rejected."""
        found, state, refused = self._found, self.state, None
        # the latest message counts, not the newest stamp: that may be of a sender that has ended, and of its clock
        for part in sorted(state.sources, key=lambda part: part.arrival) if len(state.sources) > 1 else state.sources:
            history = part.history
            try:
                found[:, :, part.columns] = history.estimate(stamp) if history is not None and history.ready else np.nan
            except Rejected as rejected:  # another sender may have these joints too
                found[:, :, part.columns], refused = np.nan, rejected
        needed = found[:, :, :len(self._joint_names)]
        needed[:, :, state.rests] = 0.0
        needed[0, 0, state.rests] = state.q[state.rests]
        if np.isnan(needed[0, 1]).any():
            if refused is not None:
                raise refused
            few = [name for name, speed in zip(self._joint_names, needed[0, 1]) if math.isnan(speed)]
            raise Rejected("history_too_short", f"the estimator needs more joint states of {some(few)}; this is normal for an "
                                                "instant after the start or a gap", passing=True)
        return found

    @property
    def optional(self) -> np.ndarray:
        """(4, k): position .. jerk of the optional joints at the state just read, NaN where they are unknown."""
        n, measured = len(self._joint_names), self.state.optional()
        if not measured.size:
            return NO_JOINTS
        if self.name == "estimated":
            return np.where(np.isnan(measured[0]), np.nan, self._found[0, :, n:])
        if self.name == "reference":
            return np.concatenate((measured, np.full_like(measured, np.nan)))
        return np.concatenate((measured, self._wanted[:2, n:]))

    def warnings(self, desired_age: float) -> list[str]:
        """Return warnings about the motion in use, each with its remedy."""
        values = self._values
        if values["motion_source"] == "auto" and desired_age <= values["desired_timeout"] and not self.state.has_velocity:
            return [f"desired motion not used: {self.state.velocity_gap()} in joint_states; the motion is estimated. Publish "
                    "velocities to use it"]
        if values["motion_source"] != "desired" or desired_age <= values["desired_timeout"]:
            return []
        if desired_age == math.inf:
            return ["no desired motion yet: acceleration and jerk are taken as zero. Publish ~/desired_motion, or set "
                    "motion_source to auto or estimated"]
        jerk = ", jerk taken as zero" if values["on_desired_timeout"] == "zero_jerk" else " with its jerk"
        return [f"no desired motion for {desired_age:.1f} s: the last acceleration is held{jerk}"]

    def findings(self) -> dict[str, object]:
        """Return results of the estimators for diagnostics: noise, jitter, outliers, unwrapped joints."""
        said: dict[str, object] = {}
        for part in self.state.recent():
            if part.history is not None and part.history.ready:
                said |= self._of(part, part.history)
        return said

    def _of(self, part: JointStateSource, history: MotionEstimator) -> dict[str, object]:
        clock, noise = history.clock, history.noise
        names = [self._joint_names[joint] for joint in part.joints]
        spread = np.sqrt(noise.variance(np.zeros(len(names))))
        return {"estimator.lag_s": f"{self._lag:.4g}", "estimator.readings_hz": f"{1.0 / clock.period:.6g}",
                "estimator.repeated_readings": bool(history.readings.period),
                "estimator.stamp_jitter_s": f"{clock.jitter:.2g}", "estimator.outliers": history.outliers,
                "estimator.diverged": history.diverged,
                **{f"{name}.unwrapped": f"jumps by whole turns removed: {count}; declare the joint as continuous in the URDF"
                   for name, count in zip(names, history.wraps) if count},
                **{f"{name}.position_noise": f"{value:.2g}" for name, value in zip(names, spread)},
                **{f"{name}.position_resolution": f"{value:.3g}" for name, value in zip(names, noise.resolution)}}

    def _follow(self, part: JointStateSource) -> Rejected | None:
        """Pass a sender's positions to its estimator. Returns why they are of no use, if they are not."""
        history, before = part.history, part.pushed
        if history is None:
            turning, revolute = ([k for k, joint in enumerate(part.joints) if joint in kind]
                                 for kind in (self._turning, self._revolute))
            resolution = self._values["estimator.resolution"]
            history = part.history = MotionEstimator(len(part.joints), self._lag, resolution, turning, revolute)
        elif part.stamp - before > self._values["state_timeout"] * 1e9:
            history.clear()
        part.pushed = part.stamp
        if not history.push(part.stamp, part.q, part.qd) and not history.ready:
            return Rejected("stamp_not_advancing", f"the stamp of {part.stamp * 1e-9:.6f} s does not advance: nothing can be "
                                            "differentiated. The driver must stamp every joint state with its own time")
        return None

    def _desired(self, age: float) -> np.ndarray:
        """Return acceleration, jerk ... of the desired motion, or by on_desired_timeout where there is none."""
        policy = self._values["on_desired_timeout"]
        stamp, tolerance, timeout = self.state.stamp, self._values["input_tolerance"], self._values["desired_timeout"]
        late = age > timeout
        try:
            chosen = self.desired.last(stamp) if late else self.desired.at(stamp, tolerance, timeout)
        except Rejected as refusal:
            if policy == "stop":
                raise
            chosen, late, self.lateness = self.desired.last(stamp), True, refusal
        if chosen is None and not late:
            raise Rejected("desired_forgotten", "those from before the stamps jumped say nothing about now", passing=True)
        if late and policy == "stop":
            what = "no desired motion yet" if chosen is None else f"the desired motion is {age:.3f} s old"
            raise Rejected("desired_timeout", what)
        self._wanted = self._zeros if chosen is None else chosen
        self.name = "assumed_zero" if chosen is None else "desired_motion_late" if late else "desired_motion"
        if chosen is not None and late and policy == "zero_jerk":
            self._wanted = np.concatenate((chosen[:1], self._zeros[1:]))
        return self._wanted[:, :len(self._joint_names)]
