"""Joint states, whole or in parts: what each sender says of some joints, merged by joint.

Drivers of an arm and of its gripper often send separate messages, at different rates, and some joints nobody publishes. The
motion of the whole robot is known when every joint was named not long ago, by the stamps, or is held where a parameter says.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.nodes.common.stamps import UNKNOWN, Jumped, Timeline
from rnea_ros.nodes.dynamics.joint_layouts import SENDERS, JointMap, Layout, not_finite

NO_JOINTS = np.zeros((2, 0))
LATELY = 2_000_000_000  # ns; a publisher that sent within this time is reported as a sender
HANDOVER_NS = 500_000_000  # of silence of the sender in use, after which another sender of the same joints is used


class Part:
    """What one sender says of the joints that it names together: the last q and qd (k,), NaN where unknown."""

    def __init__(self, layout: Layout, sender: bytes, timeline: Timeline):
        self.layout, self.sender, self.timeline = layout, sender, timeline
        self.joints, self.columns = layout.joints, layout.columns
        self.values = np.zeros((2, len(layout.joints)))
        self.q, self.qd = self.values
        self.stamp, self.arrival = UNKNOWN, 0  # arrival of the last message that was used, by the steady clock [ns]
        self.received = 0  # arrival of the last message, used or not [ns]
        self.pushed, self.history = UNKNOWN, cast("MotionEstimator | None", None)  # the last stamp in the history
        self.rivals: list[Part] = []  # of other senders, with joints of this one

    def clear(self) -> None:
        """Forget what was before."""
        if self.history is not None:
            self.history.clear()


class StateReader:
    """The latest joint states: q, qd (n,), and whether every velocity is known. Effort is never looked at.

    Optional joints are read where somebody publishes them; q_all, qd_all have them behind the others.

    stamp, when : of the newest message that they come from, in nanoseconds and as it had it
    spread      : how much older than that the oldest joint is [s]
    age         : a joint must not be older than that [s]
    held        : where joints rest that nobody publishes (n,), NaN where that is not known
    """

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = ()):
        n = len(joint_names)
        self.age, self.held = math.inf, np.full(n, np.nan)
        self.stamp, self.when, self.spread = 0, Time(), 0.0
        self.has_velocity = False
        self._map, self._clock = JointMap(joint_names, optional), clock
        self._timelines: dict[tuple[int, ...], Timeline] = {}  # one for all senders: results never go back
        self._parts: dict[tuple[tuple[int, ...], bytes], Part] = {}
        self._values = np.full((2, n + len(optional)), np.nan)
        self.q_all, self.qd_all = self._values
        self.q, self.qd = self._values[:, :n]
        self.q[:], self.qd[:] = 0.0, 0.0
        self._stamps = np.full(n + len(optional), UNKNOWN)  # of all joints
        self._since = self._stamps[:n]
        self._unpublished = np.ones(n + len(optional), dtype=bool)
        self.rests = self._unpublished[:n]  # joints that nobody has published

    def read(self, message: JointState, sender: bytes = b"") -> Part:
        """What was said. Raises Rejected; nothing has changed then, unless time jumped, which makes all joints unknown."""
        layout = self._map.locate(message.name)
        part = self._parts.get((layout.joints, sender)) or self._meet(layout, sender)
        if part.rivals:
            self._check_sender(part)
        if not layout.read(message.position, "position", part.q):
            raise Rejected("position_not_finite", not_finite(self._names(layout.joints), part.q))
        known = len(message.velocity) > 0
        if known:
            known = layout.read(message.velocity, "velocity", part.qd)
        else:
            part.qd.fill(np.nan)
        try:
            part.stamp = part.timeline.advance(message.header.stamp)
        except Jumped:
            self._stamps.fill(UNKNOWN)
            part.clear()
            raise
        part.arrival = part.received = part.timeline.arrival
        self._values[:, part.columns] = part.values
        self._stamps[part.columns] = part.stamp
        self._unpublished[part.columns] = False
        part.layout = layout
        if layout.whole:
            self.stamp, self.when, self.spread = part.stamp, message.header.stamp, 0.0
        self.has_velocity = (known and layout.whole) or bool(np.isfinite(self.qd).all())
        return part

    def _check_sender(self, part: Part) -> None:
        """Raise Rejected where another sender of the same joints is in use: messages of two are never mixed into one motion.

        The first sender is used until it has been silent for HANDOVER_NS; one that sends all joints is preferred.
        """
        part.received = now = time.monotonic_ns()
        for rival in part.rivals:
            if rival.arrival and now - rival.arrival < HANDOVER_NS and (rival.layout.whole or not part.layout.whole):
                shared = [joint for joint in part.joints if joint in rival.joints]
                raise Rejected("other_sender", f"another sender of {some(self._names(shared))} is in use: stop one of them, "
                                               "or remap its topic joint_states to another name")

    def merge(self, part: Part) -> None:
        """Make a state of this, which was read last, and of what others said. Raises Rejected if not every joint is known."""
        if part.layout.whole:
            return
        rests, others = self.rests, part.layout.others
        self.q[rests] = self.held[rests]
        unknown = np.where(rests, np.isnan(self.held), self._since == UNKNOWN)
        if unknown.any():
            strange = f"; not of this robot: {some(others)}" if others else ""
            raise Rejected("joint_missing", f"no message names {some(self._names(np.flatnonzero(unknown)))} (set "
                                            f"hold_joints.<joint> for joints that are not published){strange}", passing=True)
        newest = int(self._stamps.max())
        self.spread = (newest - int(self._since[~rests].min(initial=newest))) * 1e-9
        late = ~rests & (newest - self._since > self.age * 1e9)
        if late.any():
            oldest = (newest - int(self._since[late].min())) * 1e-9
            raise Rejected("joint_too_old", f"{some(self._names(np.flatnonzero(late)))}: up to {oldest:.3f} s before the "
                                            f"newest joint; joint_age is {self.age:g} s")
        self.stamp, self.when = newest, Time(sec=newest // 1_000_000_000, nanosec=newest % 1_000_000_000)

    def optional(self) -> np.ndarray:
        """(2, k): positions and velocities of the optional joints, NaN where they are unknown or too old."""
        n = len(self.q)
        if n == len(self._stamps):
            return NO_JOINTS
        found = self._values[:, n:].copy()
        found[:, (self._stamps[n:] == UNKNOWN) | (self.stamp - self._stamps[n:] > self.age * 1e9)] = np.nan
        return found

    def _meet(self, layout: Layout, sender: bytes) -> Part:
        """Somebody new, or with other joints. Raises Rejected."""
        if not layout.joints:
            raise Rejected("other_joints", f"none of this robot's joints: {some(layout.others)}; needed are "
                                           f"{some(self._map.joint_names)}. Rename the joints of the URDF, or remap "
                                           "joint_states to this robot's driver", passing=True)
        if len(self._parts) >= SENDERS:
            self.forget()
            self._parts.clear()
            self._timelines.clear()
        timeline = self._timelines.setdefault(layout.joints, Timeline(self._clock))
        made = self._parts[layout.joints, sender] = Part(layout, sender, timeline)
        for part in self.parts:
            if part.sender != sender and not set(part.joints).isdisjoint(made.joints):
                part.rivals.append(made)
                made.rivals.append(part)
        return made

    @property
    def parts(self) -> Sequence[Part]:
        return tuple(self._parts.values())

    def lately(self) -> list[Part]:
        """Return the parts that are in use."""
        now = time.monotonic_ns()
        return [part for part in self.parts if now - part.arrival < LATELY and part.arrival]

    def rivals(self) -> tuple[set[bytes], list[str]]:
        """Return the senders that lately named the same joints, and these joints."""
        now = time.monotonic_ns()
        at_it = [part for part in self.parts if now - part.received < LATELY and part.received]
        pairs = [(part, rival) for part in at_it for rival in part.rivals if rival in at_it]
        joints = {joint for part, rival in pairs for joint in part.joints if joint in rival.joints}
        return {part.sender for part, _ in pairs}, self._names(sorted(joints))

    def velocity_gap(self) -> str:
        """For people: the joints without velocity."""
        return not_finite(self._map.joint_names, self.qd)

    def forget(self) -> None:
        """The clock was set, or the input was silent."""
        for part in self.parts:
            part.timeline.forget()
            part.clear()
            part.arrival = 0
        self._stamps.fill(UNKNOWN)

    def _names(self, joints: Iterable[int]) -> list[str]:
        return [self._map.joint_names[k] for k in joints]
