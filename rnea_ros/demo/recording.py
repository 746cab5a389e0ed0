"""What a demo has heard: the samples of dynamics_node, and the other topics that its checks look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from ..robots.protocol import AnyRobot
from .motion import MotionSample


@dataclass(frozen=True, eq=False)
class DemoRecording:
    """Samples of a motion and of the answer to it: stamps t (samples,) [ns], all else (samples, n) [SI]."""

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
        """Only those samples, by number."""
        return DemoRecording(*(array[samples] for array in vars(self).values()))


class Series(NamedTuple):
    """Messages of one topic: stamps t (samples,) [ns], and of each its numbers in the order of its fields (samples, k)."""

    t: np.ndarray
    values: np.ndarray


Heard = Mapping[str, Series]


def paired(recording: DemoRecording, *others: Series) -> tuple[DemoRecording, list[np.ndarray]]:
    """The samples of which every series has one of the same stamp, and those."""
    stamps = reduce(np.intersect1d, (series.t for series in others), recording.t)
    return (recording.at(np.searchsorted(recording.t, stamps)),
            [series.values[np.searchsorted(series.t, stamps)] for series in others])


def played(robot: AnyRobot, motion: Callable[[float], MotionSample], seconds: float, rate: float) -> DemoRecording:
    """What the robot's library says of a motion, without ROS."""
    t = np.arange(int(seconds * rate)) * round(1e9 / rate)
    samples = MotionSample(*map(np.array, zip(*(motion(time) for time in t * 1e-9))))
    return DemoRecording(t, *samples, *robot.torque_and_rate(*samples))
