"""Which motion the model is evaluated with: measured positions and velocities, and acceleration and jerk by policy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from sensor_msgs.msg import JointState

from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.differentiation import CausalEstimator
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.stamps import Jumped
from rnea_ros.nodes.dynamics.desired_motion import DesiredReader
from rnea_ros.nodes.dynamics.joint_states import Part, StateReader

Motion = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
FITTED = ("motion_source", "missing_velocity", "estimator.window", "estimator.degree")


class MotionSource:
    """Joint states and desired motions in, (q, qd, qdd, qddd) out."""

    def __init__(self, joint_names: Sequence[str], values: Values, joint_types: Sequence[str] = (),
                 clock: Callable[[], int] = time.time_ns):
        """clock() is what this node's clock shows [ns]."""
        self.state = StateReader(joint_names, clock)
        self.desired = DesiredReader(joint_names, clock)
        self._joint_names = tuple(joint_names)
        self._turning = {k for k, kind in enumerate(joint_types) if kind == "continuous"}
        self._zeros = np.zeros(len(joint_names))
        self._fit = np.full((3, len(joint_names)), np.nan)  # qd, qdd, qddd
        self._fitted: tuple[object, ...] = ()
        self.configure(values)

    def configure(self, values: Values) -> None:
        """Parameters changed. A history that still fits is kept."""
        self._values = values
        fitted = tuple(values[name] for name in FITTED)
        if fitted != self._fitted:
            self._fitted = fitted
            self._fit.fill(np.nan)
            for part in self.state.parts:
                part.history = None
        held = [values.get(f"hold_joints.{name}", math.nan) for name in self._joint_names]
        self.state.age, self.state.held = values["joint_age"], np.array(held)
        self.desired.held = frozenset(np.flatnonzero(np.isfinite(held)).tolist())

    def forget(self) -> None:
        """The clock was set, or the input was silent: nothing of the past says anything about now."""
        self.state.forget()
        self.desired.forget()

    def read(self, message: JointState, sender: bytes = b"") -> int:
        """A joint state of a sender. Returns the stamp of the robot's state with it [ns]; raises Rejected."""
        try:
            part = self.state.read(message, sender)
        except Jumped:
            self.desired.clear()
            raise
        if self._values["motion_source"] == "estimated" or not self.state.has_velocity:
            self._follow(part)
        self.state.merge(part)
        return self.state.stamp

    def at_state(self, desired_age: float) -> Motion:
        """The motion at the state just read; desired_age is the time since the last desired motion arrived [s]."""
        values, state = self._values, self.state
        estimated = values["motion_source"] == "estimated"
        if not state.has_velocity and values["missing_velocity"] == "refuse":
            raise Rejected("velocity_missing", f"{state.velocity_gap()} (parameter missing_velocity can differentiate)")
        if not estimated and state.has_velocity:
            return state.q, state.qd, *self._desired(desired_age)
        self._fit[:, state.rests] = 0.0
        qd, qdd, qddd = self._fit
        if np.isnan(qd).any():
            few = [name for name, speed in zip(self._joint_names, qd) if math.isnan(speed)]
            raise Rejected("history_too_short", f"a fit of degree {values['estimator.degree']} needs more joint states of "
                                                f"{some(few)}; this is normal for an instant after the start or a gap",
                           passing=True)
        qd = state.qd if state.has_velocity else np.where(np.isfinite(state.qd), state.qd, qd)
        return (state.q, qd, qdd, qddd) if estimated else (state.q, qd, *self._desired(desired_age))

    def warnings(self, desired_age: float) -> list[str]:
        """What the user should know of the motion in use."""
        values = self._values
        if values["motion_source"] != "desired" or desired_age <= values["desired_timeout"]:
            return []
        if desired_age == math.inf:
            return ["no desired motion yet: acceleration and jerk are taken as zero"]
        jerk = ", jerk taken as zero" if values["on_desired_timeout"] == "zero_jerk" else " with its jerk"
        return [f"no desired motion for {desired_age:.1f} s: the last acceleration is held{jerk}"]

    def _follow(self, part: Part) -> None:
        """The derivatives of what a sender said, from what it said before."""
        history, before = part.history, part.pushed
        if history is None:
            turning = [place for place, joint in enumerate(part.joints) if joint in self._turning]
            history = part.history = CausalEstimator(len(part.joints), self._values["estimator.window"],
                                                     self._values["estimator.degree"], turning)
        elif part.stamp - before > self._values["state_timeout"] * 1e9:  # a polynomial across a gap means nothing
            history.clear()
        part.pushed = part.stamp
        if history.push(part.stamp, part.q, part.qd):
            self._fit[:, part.columns] = history.estimate() if history.ready else np.nan
        elif not history.ready:
            raise Rejected("stamp_stands", f"the stamp of {part.stamp * 1e-9:.6f} s does not advance: nothing can be "
                                           "differentiated")

    def _desired(self, age: float) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration and jerk of the desired motion, or what on_desired_timeout makes of its absence."""
        policy = self._values["on_desired_timeout"]
        chosen = self.desired.at(self.state.stamp)
        late = age > self._values["desired_timeout"]
        if chosen is None and not late:
            raise Rejected("desired_forgotten", "those from before the stamps jumped say nothing about now", passing=True)
        if late and policy == "stop":
            what = "no desired motion yet" if chosen is None else f"the desired motion is {age:.3f} s old"
            raise Rejected("desired_timeout", what)
        if chosen is None:
            return self._zeros, self._zeros
        return chosen[0], self._zeros if late and policy == "zero_jerk" else chosen[1]
