"""Which motion the model is evaluated with: measured positions and velocities, and acceleration and jerk by policy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_ros.derivatives import CausalEstimator
from rnea_ros.nodes.messages import DesiredReader, Rejected, StateReader
from rnea_ros.nodes.parameters import Values

Motion = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class MotionSource:
    """Joint states and desired motions in, (q, qd, qdd, qddd) out."""

    def __init__(self, joint_names: Sequence[str], values: Values):
        self.state = StateReader(joint_names)
        self.desired = DesiredReader(joint_names)
        self._zeros = np.zeros(len(joint_names))
        self._last = 0  # stamp of the last state
        self.configure(values)

    def configure(self, values: Values) -> None:
        """Parameters changed. A history that still fits is kept."""
        self._values = values
        window, degree = values["estimator.window"], values["estimator.degree"]
        old = getattr(self, "_estimator", None)
        if old is None or (old.window, old.degree) != (window, degree):
            self._estimator = CausalEstimator(len(self._zeros), window, degree)

    def forget(self) -> None:
        """The clock was set, or the input was silent: nothing of the past says anything about now."""
        self.state.map.forget()
        self.desired.forget()
        self._estimator.clear()

    def at_state(self, desired_age: float) -> Motion:
        """The motion at the state just read; desired_age is the time since the last desired motion arrived [s]."""
        values, state = self._values, self.state
        estimated = values["motion_source"] == "estimated"
        if not state.has_velocity and values["missing_velocity"] == "refuse":
            raise Rejected("velocity_missing", f"{state.velocity_gap()} (parameter missing_velocity can differentiate)")
        if not estimated and state.has_velocity:
            return state.q, state.qd, *self._desired(desired_age)
        qd, qdd, qddd = self._estimate()
        qd = state.qd if state.has_velocity else np.where(np.isfinite(state.qd), state.qd, qd)
        return (state.q, qd, qdd, qddd) if estimated else (state.q, qd, *self._desired(desired_age))

    def doubts(self, desired_age: float) -> list[str]:
        """What the user should know of the motion in use."""
        values = self._values
        if values["motion_source"] != "desired" or desired_age <= values["desired_timeout"]:
            return []
        if desired_age == math.inf:
            return ["no desired motion yet: acceleration and jerk are taken as zero"]
        jerk = ", jerk taken as zero" if values["on_desired_timeout"] == "zero_jerk" else " with its jerk"
        return [f"no desired motion for {desired_age:.1f} s: the last acceleration is held{jerk}"]

    def _estimate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        state = self.state
        if state.stamp - self._last > self._values["state_timeout"] * 1e9:  # a polynomial across a gap means nothing
            self._estimator.clear()
        self._last = state.stamp
        self._estimator.push(state.stamp, state.q, state.qd)
        if not self._estimator.ready:
            raise Rejected("history_too_short", f"a fit of degree {self._estimator.degree} needs more joint states; "
                                                "this is normal for an instant after the start or a gap")
        return self._estimator.estimate()

    def _desired(self, age: float) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration and jerk of the desired motion, or what on_desired_timeout makes of its absence."""
        policy = self._values["on_desired_timeout"]
        chosen = self.desired.at(self.state.stamp)
        late = age > self._values["desired_timeout"]
        if late and policy == "stop":
            what = "no desired motion yet" if chosen is None else f"the desired motion is {age:.3f} s old"
            raise Rejected("desired_timeout", what)
        if chosen is None:
            return self._zeros, self._zeros
        return chosen[0], self._zeros if late and policy == "zero_jerk" else chosen[1]
