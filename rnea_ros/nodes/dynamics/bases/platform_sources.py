"""Sources of the motion of a platform, selected by the parameters platform.source and platform.motion_source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rnea_ros import BaseState, PlatformMotion, Robot
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.sensed_base import extrapolate_base
from rnea_ros.nodes.common.topics import Topics
from rnea_ros.nodes.dynamics.bases.base_topics import BaseTopic
from rnea_ros.nodes.dynamics.bases.platform_topics import PlatformPoses, PlatformStates, PlatformTwists


class PlatformSource(ABC):
    """Motion of a platform at the latest instant for which all of its measurements have arrived. Subclasses read the topics.

    measured : topics whose messages are answered; each instant once
    desired  : ~/platform_state, of which acceleration and jerk are taken; None where these are estimated
    """

    whole = False  # whether the measured topic has the whole motion

    def __init__(self, measured: Sequence[BaseTopic[Any]], desired: PlatformStates | None):
        self.measured, self._desired = tuple(measured), desired
        self.topics = self.measured if desired is None else (desired, *measured)
        self.streams = [topic.stream for topic in self.topics]
        self._lag, self._answered = 0.0, -1

    def use(self, model: Model) -> None:
        """Set the model; the platform moves in the frame of its root link."""
        for topic in self.topics:
            topic.use(model)

    def configure(self, lag: float, tolerance: float) -> None:
        """Set the time before the measurement for which motions are estimated, and the largest time between an instant and the
        nearest message [s].
        """
        self._lag = 0.0 if self.whole or self._desired else lag
        for topic in self.topics:
            topic.configure(self._lag, tolerance)

    def connect(self, topics: Topics) -> None:
        for topic in self.measured:
            topic.then = partial(self._on_measured, topics.moved, topic.stream)
        for topic in self.topics:
            topic.connect(topics)

    def forget(self) -> None:
        self._answered = -1
        for topic in self.topics:
            topic.forget()

    @abstractmethod
    def at(self, stamp: int) -> PlatformMotion:
        """Return the motion at a stamp [ns]. Raises Rejected."""

    def _on_measured(self, moved: Callable[[Stream, int, int], None], stream: Stream, arrival: int) -> None:
        """Ask for the motion at the last stamp that all measured topics have reached, once for each stamp."""
        stamps = [topic.last for topic in self.measured]
        reached = min(-1 if stamp is None else stamp for stamp in stamps)
        if reached != self._answered and reached >= 0:
            self._answered = reached
            moved(stream, arrival, reached - round(self._lag * 1e9))


class StatePlatformSource(PlatformSource):
    """Motion up to jerk from ~/platform_state."""

    whole = True

    def __init__(self, states: PlatformStates):
        super().__init__([states], None)
        self._states = states

    def at(self, stamp: int) -> PlatformMotion:
        return self._states.motion(stamp)


class PosePlatformSource(PlatformSource):
    """Measured poses; velocity, acceleration and jerk are estimated from them, or desired."""

    def __init__(self, poses: PlatformPoses, desired: PlatformStates | None):
        super().__init__([poses], desired)
        self._poses = poses

    def at(self, stamp: int) -> PlatformMotion:
        if self._desired is None:
            return self._poses.motion(stamp)
        pose = self._poses.nearest(stamp)[1]
        return self._desired.motion(stamp)._replace(position=pose.position, rotation=pose.rotation)


class PoseTwistPlatformSource(PlatformSource):
    """Measured poses and twists; acceleration and jerk are estimated from the twists, or desired."""

    def __init__(self, poses: PlatformPoses, twists: PlatformTwists, desired: PlatformStates | None):
        super().__init__([poses, twists], desired)
        self._poses, self._twists = poses, twists

    def at(self, stamp: int) -> PlatformMotion:
        when, pose = self._poses.nearest(stamp)
        if self._desired is None:
            velocity, acceleration, jerk = self._twists.rates(stamp)
        else:
            *_, acceleration, jerk = self._desired.motion(stamp)
            velocity = self._twists.signals(stamp)
        there = BaseState(pose.position, pose.quaternion, pose.into_base(velocity))
        there = extrapolate_base(there, (stamp - when) * 1e-9)
        return PlatformMotion(there.position, there.rotation, velocity, acceleration, jerk)


def platform_source(robot: Robot, values: Values, reach: Callable[[np.ndarray, np.ndarray], object]) -> PlatformSource:
    """Return the source that the parameters select; reach(position, rotation) raises Rejected for an unreachable pose."""
    root = robot.tree.root_link
    if values["platform.source"] == "state":
        return StatePlatformSource(PlatformStates(root))
    desired = PlatformStates(root, values["base.timeout"]) if values["platform.motion_source"] == "desired" else None
    poses = PlatformPoses(root, np.asarray(robot.home[1]), reach)
    return PosePlatformSource(poses, desired) if values["platform.source"] == "pose" else \
        PoseTwistPlatformSource(poses, PlatformTwists(), desired)
