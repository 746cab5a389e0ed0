"""A sensor on a moving base: six signals, whose rates the filter bank of the joints estimates."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from rnea_ros.errors import Rejected, near, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.model.tree import Model
from rnea_ros.nodes.dynamics.bases.base_topic import BaseTopic
from rnea_ros.nodes.dynamics.pairing import check_age
from rnea_ros.robots.sensed_base import Mount, mounts

LATE = 0.1  # s; a joint state may come so long after messages of the sensor that are newer than it


class Sensed(NamedTuple):
    """Two vectors along the axes of the base (6,), and the frame that they were told in."""

    signals: np.ndarray
    mount: Mount


SensedSample = TypeVar("SensedSample", bound="Sensed | Any")


class BaseSensor(BaseTopic[SensedSample]):
    """Samples have `signals` and `mount`, as Sensed."""

    def __init__(self, topic: str, kind: Any, timeout: float):
        super().__init__(topic, kind, timeout)
        self._mounts: dict[str, Mount] = {}
        self._lag, self._estimator = 0.0, MotionEstimator(6, LATE)

    def use(self, model: Model) -> None:
        self._robot, self._root, self._mounts = model.name, model.links[0].name, mounts(model)

    def configure(self, lag: float, tolerance: float) -> None:
        super().configure(lag, tolerance)
        if lag != self._lag:
            self._lag, self._estimator = lag, MotionEstimator(6, lag + LATE)

    def _clear(self) -> None:
        super()._clear()
        self._estimator.clear()

    def _mount(self, frame: str) -> Mount:
        """Of a frame_id. Raises Rejected."""
        found = self._mounts.get(frame or self._root)
        if found is None:
            raise Rejected("unknown_frame", f"frame '{frame:.80}' is no link of robot '{self._robot}' that is fixed in its "
                                            f"base; those are {some(self._mounts, quoted=True)}; an empty one is link "
                                            f"'{self._root}'{near(frame, self._mounts)}")
        return found

    def _keep(self, stamp: int, sample: SensedSample) -> None:
        if self._kept and self._kept[-1][1].mount is not sample.mount:  # another place: no line leads from those signals here
            self._estimator.clear()
        super()._keep(stamp, sample)
        self._estimator.push(stamp, sample.signals)

    def rates(self, stamp: int) -> np.ndarray:
        """(3, 6): the signals at a stamp [ns], their rates and the rates of these, estimated. Raises Rejected."""
        self.check()
        if not self._estimator.ready:
            raise Rejected(f"{self.name}_history_too_short", f"the estimator needs more messages on {self.topic}; this is "
                                                             "normal for an instant after the start or a gap", passing=True)
        self.check_clock(stamp)
        return self._estimator.estimate(stamp).motion[:3]

    def signals(self, stamp: int) -> np.ndarray:
        """Return the signals (6,) at a stamp [ns]: linear between two messages of the same mount, else the nearest."""
        found = self.neighbours(stamp)
        if len(found) == 2 and found[0][1].mount is found[1][1].mount:
            (before, first), (after, second) = found
            share = (stamp - before) / (after - before)
            return np.asarray(first.signals + share * (second.signals - first.signals))
        return np.asarray(self.nearest(stamp)[1].signals)

    def check_clock(self, stamp: int) -> None:
        """Raise Rejected where a stamp [ns] is too long after the messages, or before them: it is by another clock."""
        age = (stamp - self._kept[-1][0]) * 1e-9
        if age < -self._lag - LATE:
            raise Rejected(f"{self.name}_apart", f"the motion is for an instant {-age:.3f} s before the newest message on "
                                                 f"{self.topic}: are stamps of both by the same clock?")
        check_age(self.name, self.topic, max(age, 0.0), self.tolerance)

    def findings(self) -> dict[str, object]:
        """For people: what the estimator has found out."""
        if not self._estimator.ready:
            return {}
        clock, noise = self._estimator.clock, self._estimator.noise
        linear, angular = (np.sqrt(variance.mean()) for variance in np.split(noise.variance(np.zeros(6)), 2))
        return {f"{self.name}.readings_hz": f"{1.0 / clock.period:.6g}", f"{self.name}.stamp_jitter_s": f"{clock.jitter:.2g}",
                f"{self.name}.noise": f"{linear:.2g} {angular:.2g}"}
