"""Joint states: from messages of one or several senders to the state of the whole robot.

Drivers of an arm and of its gripper often publish separate messages, at different rates, and some joints are never published.
The state of the whole robot is known when every joint was received recently, by the stamps, or is held by a parameter.
"""

from __future__ import annotations

import array
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.filter_bank import MotionEstimate
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.nodes.common.cdr import Decoder, MessageLayout, NumberBlock
from rnea_ros.nodes.common.topics import UNKNOWN_STAMP, Jumped, Timeline

MAX_SENDERS = 32  # senders, and orders of joint names, that are stored
FIELDS = ("position", "velocity", "effort")  # arrays of a JointState
MAX_NAMES = 1000  # joint names in a message whose order is stored


class Layout:
    """Positions of the model's joints in messages that name their joints in one order.

    joints  : their numbers in the model
    columns : the same, to index arrays of the model
    others  : names in the message that are none of the model's
    whole   : whether all needed joints are in the message; every: whether all joints are
    """

    def __init__(self, names: Sequence[str], numbers: Mapping[str, int], needed: int):
        """needed: number of the model's first joints that must be known. Raises Rejected."""
        if not names:
            raise Rejected("empty", "the message names no joints")
        index = {name: k for k, name in enumerate(names)}
        if len(index) < len(names):
            twice = (name for name, count in Counter(names).items() if count > 1)
            raise Rejected("duplicate_joint", f"named more than once: {some(twice)}")
        self.names = list(names)
        known = [name for name in numbers if name in index]
        self.joints = tuple(numbers[name] for name in known)
        self.others = [name for name in names if name not in numbers]
        self.whole = self.joints[:needed] == tuple(range(needed))
        self.every = len(known) == len(numbers)
        self.columns: Any = slice(None) if self.every else np.array(self.joints, dtype=np.intp)
        self.order = np.array([index[name] for name in known], dtype=np.intp)  # of the joints among the names

    def read(self, values: array.array, what: str, out: np.ndarray) -> bool:
        """Copy values of `joints` into out; returns whether all are finite."""
        if len(values) != len(self.names):
            raise Rejected("wrong_size", f"{what} has {len(values)} entries for {len(self.names)} names")
        np.frombuffer(values).take(self.order, out=out, mode="clip")
        return finite(out)


class JointMap:
    """Layouts by the joint names of messages, each computed once."""

    def __init__(self, joint_names: Sequence[str], optional: Sequence[str] = ()):
        """Create a reader. optional: names of further joints, which may be missing."""
        self._needed = len(joint_names)
        self.joint_names = (*joint_names, *optional)
        self._numbers = {name: k for k, name in enumerate(self.joint_names)}
        self._latest: Layout | None = None
        self._known: dict[tuple[str, ...], Layout] = {}

    def locate(self, names: list[str]) -> Layout:
        """Return the layout of a message's joint names. Raises Rejected."""
        latest = self._latest
        if latest is not None and names == latest.names:
            return latest
        key = tuple(names)
        found = self._known.get(key) or Layout(names, self._numbers, self._needed)
        if len(self._known) >= MAX_SENDERS:  # bounds memory where every message has other names
            self._known.clear()
        if len(names) <= MAX_NAMES:
            self._known[key] = found
        self._latest = found
        return found


def finite(values: np.ndarray) -> bool:
    """Return whether all values (n,) are finite; through a list, which takes half of numpy's time for a robot's few joints."""
    numbers = values.tolist()
    return math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers))  # a sum of finite numbers can be infinite


def not_finite(names: Sequence[str], values: np.ndarray) -> str:
    """Return the names with values that are not finite, for a message."""
    return some(f"{name} = {value}" for name, value in zip(names, values) if not math.isfinite(value))


NO_JOINTS = np.zeros((2, 0))
RECENT_NS = 2_000_000_000  # a publisher that sent within this time is reported as a sender
HANDOVER_NS = 500_000_000  # silence of the sender in use after which another sender of the same joints is used


@dataclass(frozen=True)
class PauseOptions:
    """Pauses of an estimator whose estimates are not used."""

    stretch_s: float = 0.5  # time between two pauses, in which noise and sample clock are learned [s],
    stretch_samples: int = 128  # and samples of it at least
    pause_s: float = 60.0  # longest pause [s]
    kept_s: float = 1.0  # time of the samples that are kept in a pause [s]: the slowest filters have settled after it,
    kept_samples: int = 1000  # and most of them
    # kept samples that are passed on with each new one once estimates are used, 0.1 ms each: 1000 of them within 22 messages,
    catch_up: int = 48
    slow_catch_up: int = 2  # and at the end of a pause


PAUSES = PauseOptions()


class PausingEstimator:
    """Estimator of one sender's motion that pauses while its estimates are not used.

    Estimating costs more than all other work on a joint state. In a pause the last samples are kept, from which the estimator
    continues, or begins again if there were more. What it has learned about the sensor is kept.
    """

    def __init__(self, estimator: MotionEstimator, timeout: float):
        """timeout: time without samples after which earlier ones are discarded [s]."""
        self.estimator, self.timeout = estimator, timeout
        self._kept: deque[tuple[int, np.ndarray]] = deque(maxlen=PAUSES.kept_samples)
        self._has_lost = False  # whether samples of the pause were not kept
        self._stamp = self._began = UNKNOWN_STAMP  # of the last sample, of the first one since the last pause [ns]
        self._count = 0  # samples since the last pause

    def push(self, stamp: int, values: np.ndarray, is_used: bool) -> bool:
        """Add positions and velocities (2, k) at a stamp [ns]. Returns whether they are of use: their stamp advances.

        is_used : whether estimates are used at present
        """
        gap, self._stamp = stamp - self._stamp, stamp
        if gap > self.timeout * 1e9:
            self.clear()
        since = stamp - self._began
        if is_used or not 0 <= since < (PAUSES.stretch_s + PAUSES.pause_s) * 1e9:
            self._catch_up(PAUSES.catch_up if is_used else PAUSES.slow_catch_up)
            if self._kept:
                self._kept.append((stamp, values.copy()))
                return True
            self._began, self._count = stamp, 0
        elif self._count >= PAUSES.stretch_samples and since >= PAUSES.stretch_s * 1e9 and self.estimator.ready:
            self._keep(stamp, values)
            return True
        self._count += 1
        return self.estimator.push(stamp, *values) or self.estimator.ready

    def _keep(self, stamp: int, values: np.ndarray) -> None:
        kept = self._kept
        self._has_lost |= len(kept) == PAUSES.kept_samples
        kept.append((stamp, values.copy()))
        while stamp - kept[0][0] > PAUSES.kept_s * 1e9:
            kept.popleft()
            self._has_lost = True

    def _catch_up(self, most: int) -> None:
        """Pass the first of the kept samples on to the estimator."""
        if self._has_lost:
            self.estimator.clear(is_interrupted=False)
            self._has_lost = False
        for _ in range(min(most, len(self._kept))):
            stamp, values = self._kept.popleft()
            self.estimator.push(stamp, *values)

    def estimate(self, stamp: int) -> MotionEstimate | float:
        """Return the motion at a stamp [ns] and its deviations, NaN while they are not known. Raises Rejected."""
        return np.nan if self._kept or not self.estimator.ready else self.estimator.estimate(stamp)

    def clear(self) -> None:
        """Discard all samples after an interruption of the stream."""
        self._kept.clear()
        self._has_lost = False
        self.estimator.clear()


class JointStateSource:
    """Last q and qd (k,) of the joints that one sender names together, NaN where unknown."""

    def __init__(self, layout: Layout, sender: bytes, timeline: Timeline):
        self.layout, self.sender, self.timeline = layout, sender, timeline
        self.joints, self.columns = layout.joints, layout.columns
        self.values = np.zeros((2, len(layout.joints)))
        self.q, self.qd = self.values
        self.stamp, self.arrival = UNKNOWN_STAMP, 0  # arrival of the last message that was used, by the steady clock [ns]
        self.received = 0  # arrival of the last message, used or not [ns]
        self.is_published = False  # whether a message was used
        self.history: PausingEstimator | None = None
        self.conflicting: list[JointStateSource] = []  # of other senders, with joints of this one

    def clear(self) -> None:
        """Discard earlier samples."""
        if self.history is not None:
            self.history.clear()


class RepeatedState:
    """Reader of joint states with one layout of all joints, from one sender: most messages of most robots.

    It does what StateReader.read does for such messages, and nothing for others: bytes of the same layout have the same names
    and numbers of entries, so that only the numbers and the stamp have to be read and checked.
    """

    def __init__(self, block: NumberBlock, source: JointStateSource):
        self.source, self.layout, self.when = source, source.layout, block.when
        self._sender, self._block, self._order = source.sender, block, source.layout.order
        self._flat = source.values.reshape(-1)

    @classmethod
    def of(cls, layout: MessageLayout, source: JointStateSource) -> RepeatedState | None:
        """Return the reader of the messages of a source that have a layout; None if they have no velocities."""
        try:
            return cls(NumberBlock(layout, FIELDS[:2]), source)
        except ValueError:
            return None

    def read(self, data: bytes, sender: bytes, check: Callable[[JointStateSource], None]) -> bool:
        """Read positions and velocities into the source; return False for messages that StateReader.read must read: those of
        other layouts or senders, or with numbers that are not finite.

        check: raises Rejected if another sender of the same joints is in use
        """
        if sender != self._sender or not self._block.read(data):
            return False
        if self.source.conflicting:
            check(self.source)
        self._block.values.take(self._order, axis=1, out=self.source.values, mode="clip")
        return finite(self._flat)


class StateReader:
    """Latest joint states: values (2, n), which are q and qd, and whether every velocity is known. Efforts are not read.

    Optional joints are read where they are published; q_all, qd_all have them behind the others.

    stamp, when : stamp of the newest message in use, in nanoseconds, 0 if there is none, and as a message
    spread      : age of the oldest joint relative to that stamp [s]
    age         : largest allowed spread [s]
    held        : positions (n,) of joints that are not published, NaN where unknown
    """

    def __init__(self, joint_names: Sequence[str], clock: Callable[[], int] = time.time_ns, optional: Sequence[str] = ()):
        n = len(joint_names)
        self.age, self.held = math.inf, np.full(n, np.nan)
        self.stamp, self.when, self.spread = 0, Time(), 0.0
        self.has_velocity = False
        self._map, self._clock = JointMap(joint_names, optional), clock
        self._decode = Decoder(JointState, FIELDS)
        self._data = b""  # last message that was read as bytes
        self._last_layout: MessageLayout | None = None  # its layout
        self._repeated: RepeatedState | None = None
        self._tried: tuple[MessageLayout, JointStateSource] | None = None  # of the last try
        self._timelines: dict[tuple[int, ...], Timeline] = {}  # one for all senders: stamps of results never decrease
        self._sources: dict[tuple[tuple[int, ...], bytes], JointStateSource] = {}
        self._values = np.full((2, n + len(optional)), np.nan)
        self.q_all, self.qd_all = self._values
        self.values = self._values[:, :n]
        self.q, self.qd = self.values
        self.q[:], self.qd[:] = 0.0, 0.0
        self._stamps = np.full(n + len(optional), UNKNOWN_STAMP)  # of all joints
        self._since = self._stamps[:n]
        self._unpublished = np.ones(n + len(optional), dtype=bool)
        self.rests = self._unpublished[:n]  # joints that were never published

    def read(self, message: JointState, sender: bytes = b"") -> JointStateSource:
        """Read a message of a sender. Raises Rejected and changes nothing then, unless time jumped: all joints are unknown."""
        layout = self._map.locate(message.name)
        source = self._sources.get((layout.joints, sender)) or self._register_sender(layout, sender)
        if source.conflicting:
            self._check_sender(source)
        if not layout.read(message.position, "position", source.q):
            raise Rejected("position_not_finite", not_finite(self._names(layout.joints), source.q))
        known = len(message.velocity) > 0
        if known:
            known = layout.read(message.velocity, "velocity", source.qd)
        else:
            source.qd.fill(np.nan)
        self._accept(source, layout, message.header.stamp, known)
        return source

    def read_bytes(self, data: bytes, sender: bytes = b"") -> JointStateSource:
        """Read the bytes of a message as `read` does, without a message object if they only repeat the last layout."""
        repeated, self._data = self._repeated, data
        if repeated is not None and repeated.read(data, sender, self._check_sender):
            self._accept(repeated.source, repeated.layout, repeated.when, True)
            return repeated.source
        source = self.read(self._decode(data), sender)
        layout, before = self._decode.layout(data), self._last_layout
        self._last_layout = layout
        if layout is not None and layout is before and self._tried != (layout, source) and source.layout.every:
            self._repeated, self._tried = RepeatedState.of(layout, source), (layout, source)
        return source

    @property
    def message(self) -> JointState:
        """Last message that was read as bytes."""
        return self._decode(self._data)

    def _accept(self, source: JointStateSource, layout: Layout, when: Time, known: bool) -> None:
        """Merge what a source has read. known: whether every velocity is finite. Raises Rejected."""
        try:
            source.stamp = source.timeline.advance(when)
        except Jumped:
            self._stamps.fill(UNKNOWN_STAMP)
            source.clear()
            raise
        source.arrival = source.received = source.timeline.arrival
        columns = source.columns
        self._values[:, columns] = source.values
        self._stamps[columns] = source.stamp
        if source.layout is not layout or not source.is_published:
            self._unpublished[columns], source.is_published = False, True
        source.layout = layout
        if layout.whole:
            self.stamp, self.when, self.spread = source.stamp, when, 0.0
        self.has_velocity = (known and layout.whole) or bool(np.isfinite(self.qd).all())

    def _check_sender(self, source: JointStateSource) -> None:
        """Raise Rejected where another sender of the same joints is in use: messages of two are not mixed into one motion.

        The first sender is used until it has been silent for HANDOVER_NS; one that sends all joints is preferred.
        """
        source.received = now = time.monotonic_ns()
        for other in source.conflicting:
            if other.arrival and now - other.arrival < HANDOVER_NS and (other.layout.whole or not source.layout.whole):
                shared = [joint for joint in source.joints if joint in other.joints]
                raise Rejected("other_sender", f"another sender of {some(self._names(shared))} is in use: stop one of them, "
                                               "or remap its topic joint_states to another name")

    def merge(self, source: JointStateSource) -> None:
        """Complete the state with joints of other senders. Raises Rejected if not every joint is known.

        source: the source that was read last
        """
        if source.layout.whole:
            return
        rests, others = self.rests, source.layout.others
        self.q[rests] = self.held[rests]
        unknown = np.where(rests, np.isnan(self.held), self._since == UNKNOWN_STAMP)
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
        found[:, (self._stamps[n:] == UNKNOWN_STAMP) | (self.stamp - self._stamps[n:] > self.age * 1e9)] = np.nan
        return found

    def _register_sender(self, layout: Layout, sender: bytes) -> JointStateSource:
        """Return a new source. Raises Rejected."""
        if not layout.joints:
            raise Rejected("other_joints", f"none of this robot's joints: {some(layout.others)}; needed are "
                                           f"{some(self._map.joint_names)}. Rename the joints of the URDF, or remap "
                                           "joint_states to this robot's driver", passing=True)
        if len(self._sources) >= MAX_SENDERS:
            self.forget()
            self._sources.clear()
            self._timelines.clear()
            self._repeated = None
        timeline = self._timelines.setdefault(layout.joints, Timeline(self._clock))
        made = self._sources[layout.joints, sender] = JointStateSource(layout, sender, timeline)
        for source in self.sources:
            if source.sender != sender and not set(source.joints).isdisjoint(made.joints):
                source.conflicting.append(made)
                made.conflicting.append(source)
        return made

    @property
    def sources(self) -> Sequence[JointStateSource]:
        return tuple(self._sources.values())

    def recent(self) -> list[JointStateSource]:
        """Return the sources with recent messages."""
        now = time.monotonic_ns()
        return [source for source in self.sources if now - source.arrival < RECENT_NS and source.arrival]

    def conflicting_senders(self) -> tuple[set[bytes], list[str]]:
        """Return the recent senders of the same joints, and these joints."""
        now = time.monotonic_ns()
        recent = [source for source in self.sources if now - source.received < RECENT_NS and source.received]
        pairs = [(source, other) for source in recent for other in source.conflicting if other in recent]
        joints = {joint for source, other in pairs for joint in source.joints if joint in other.joints}
        return {source.sender for source, _ in pairs}, self._names(sorted(joints))

    def velocity_gap(self) -> str:
        """Return the joints without velocity, for a message."""
        return not_finite(self._map.joint_names, self.qd)

    def forget(self) -> None:
        """Discard all samples: the clock was set, or the input was silent."""
        for source in self.sources:
            source.timeline.forget()
            source.clear()
            source.arrival = 0
        self._stamps.fill(UNKNOWN_STAMP)
        self.stamp = 0

    def _names(self, joints: Iterable[int]) -> list[str]:
        return [self._map.joint_names[k] for k in joints]


MAX_JUMPS, JUMP_WINDOW_S = 3, 2.0  # so many jumps of stamps within this time suggest two senders
GID_SIZE = 16  # bytes of a publisher's identity
MAX_LOST = 1000  # consecutive messages of one sender

MessageInfo = Mapping[str, Any]


def with_info(callback: Callable[[bytes, MessageInfo], None]) -> Callable[..., None]:
    """Return a subscription callback with message info; an empty one on Humble, whose rclpy passes the message alone."""
    return callback if hasattr(Subscription, "CallbackType") else lambda data: callback(data, {})


class Senders:
    """Senders on a topic, identified message by message, and named where several publish the same joints.

    Newer versions of rclpy give the identity of a message's sender, those since Iron the sender's sequence number, Humble
    neither.
    """

    def __init__(self, node: Node, topic: str):
        self._node, self._topic = node, topic
        self._jumps: deque[float] = deque(maxlen=MAX_JUMPS)  # times by the steady clock [s]
        self._numbers: list[int] = []  # newest sequence number of each sender, where identities are missing
        self._identified = self._numbered = False  # whether messages have identities, or sequence numbers

    def sender(self, info: MessageInfo) -> bytes:
        """Return the same bytes for messages of the same sender, as far as that is known."""
        gid = info.get("publisher_gid")
        if gid:
            self._identified = True
            return gid["data"]
        number = info.get("publication_sequence_number")
        if number is None:
            return b""
        self._numbered = True
        return bytes([self._by_number(number)])

    def _by_number(self, number: int) -> int:
        """Return the sender whose last sequence number is nearest below this one."""
        if len(self._numbers) == 1 and 0 < number - self._numbers[0] <= MAX_LOST:
            self._numbers[0] = number
            return 0
        steps = [(number - newest, k) for k, newest in enumerate(self._numbers) if 0 < number - newest <= MAX_LOST]
        if steps:
            k = min(steps)[1]
            self._numbers[k] = number
            return k
        if len(self._numbers) >= MAX_SENDERS:
            self._numbers.clear()
        self._numbers.append(number)
        return len(self._numbers) - 1

    def jumped(self) -> None:
        """Record that the stamp of a message did not continue from the one before."""
        self._jumps.append(time.monotonic())

    def warnings(self, state: StateReader) -> list[str]:
        """Return a warning where several senders publish the same joints."""
        senders, joints = state.conflicting_senders()
        if senders:
            return [f"{len(senders)} senders publish {some(joints)} on {self._topic}: {some(self._names(senders))}; the first "
                    "is used, messages of the others are rejected (other_sender): stop them, or remap their topic"]
        jumping = len(self._jumps) == MAX_JUMPS and time.monotonic() - self._jumps[0] < JUMP_WINDOW_S
        unknown = not (self._identified or self._numbered) and len(self._names()) > len(state.recent())
        if len(self._names()) > 1 and (jumping or unknown):
            why = "stamps jump repeatedly" if jumping else "this ROS distribution does not identify the sender of a message"
            return [f"{why}: if more than one of {some(self._names())} publishes the same joints on {self._topic}, their "
                    "messages are mixed and torques are wrong; stop all but one, or remap their topics"]
        return []

    def _names(self, senders: set[bytes] | None = None) -> list[str]:
        """Names of the nodes that publish on the topic, of these senders alone where they are identified."""
        found = self._node.get_publishers_info_by_topic(self._topic)
        return sorted(f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}" for publisher in found
                      if senders is None or not self._identified or bytes(publisher.endpoint_gid[:GID_SIZE]) in senders)
