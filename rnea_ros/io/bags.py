"""ROS 2 bags by rosbags: joint states from mcap and sqlite3 files, torques to mcap files."""

from __future__ import annotations

import json
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, MissingPackage, RneaError, near, some
from .csv_files import Torques
from .recording import BLOCKS, RecordingRequest, RecordingSpan, Samples

JOINT_STATE, STRING = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
METADATA = "metadata.yaml"  # makes a folder one bag
TOPIC, DESCRIPTION = "/joint_states", "/robot_description"
EFFORT, EFFORT_RATE = "/rnea/joint_effort", "/rnea/joint_effort_rate"
# Velocities of drivers are filtered, late, or differences: they are not used
MESSAGE_FIELDS = {"q": "position", "tau": "effort"}
_MAX_BACKWARD_NS = 1_000_000_000  # stamps that decrease by more are of another run [ns]
_SEARCHED_MESSAGES = 1000  # messages among which one must contain all joints
_CLOCK_SET_MESSAGES = 20  # consecutive increasing stamps, all before an earlier one, after which the clock was set back


class RecordingDelay(NamedTuple):
    """Smallest and largest time from the stamp of a message to its recording [ns]."""

    least: int
    most: int


class BagRecording:
    """Recording of the joint states of one topic, timed by their stamps, or by the time of recording where stamps are zero."""

    ignored_are = "joints"

    def __init__(self, path: Path, wanted: RecordingRequest, span: RecordingSpan | None = None):
        self.path, self.wanted, self.left_out = path, wanted, Counter[str]()
        self._joints, self._rename = wanted.names, wanted.reading.rename
        with _reading(path) as bag:
            self._topic = _topic(path, bag, wanted.reading.topic)
            self._has_simulated_clock = _has_simulated_clock(_messages_on(bag, self._topic))
            have = self._first_message(bag)
            self.span = span or self._index(bag)
        available = [block for block, field in MESSAGE_FIELDS.items() if len(getattr(have, field)) == len(have.name)]
        self.blocks = tuple(block for block in wanted.blocks if block in available)
        missing = [MESSAGE_FIELDS.get(block, block) for block in wanted.needed if block not in available]
        if missing:
            raise InputError(f"{path}: the joint states of {self._topic} have no {some(missing)}")
        self.ignored = tuple(name for name in self._named(have) if name not in self._joints)

    def pieces(self, edges: Sequence[float]) -> Iterator[Samples]:
        """Yield samples between edges, see Recording.pieces. Stamps need not be in the order of the recording."""
        skew: RecordingDelay = self.span.marks
        edges = [*np.clip(edges, self.span.first, np.nextafter(self.span.last, np.inf)).tolist()]
        late = skew.most * 1e-9
        rows: list[tuple[Any, ...]] = []
        behind: list[float] = []  # increasing times that are all before the newest
        done, newest, last = 1, -np.inf, -np.inf
        for recorded, stamp, message in self._messages(edges):
            t = self._seconds(stamp)
            if edges[0] <= t < edges[-1] and (row := self._row(message)) is not None:
                rows.append((t, *row))
                behind = [*behind, t] if last < t < newest else []
                if len(behind) == _CLOCK_SET_MESSAGES:
                    raise InputError(f"{self.path}: stamps on {self._topic} go back by {newest - behind[0]:.3g} s and go on "
                                     "from there; one recording of one run is needed")
                newest, last = max(newest, t), t
            while done < len(edges) - 1 and self._seconds(recorded) - late > edges[done] + 1e-9:
                yield self._take_rows(rows, edges[done])
                done += 1
        for edge in edges[done:]:
            yield self._take_rows(rows, edge)

    def _messages(self, edges: Sequence[float]) -> Iterator[tuple[int, int, Any]]:
        """Yield (recorded [ns], stamp [ns], message) from a time interval, in the order of the recording."""
        skew, origin = self.span.marks, self.span.origin or 0
        start, stop = (origin + round(1e9 * edge) for edge in (edges[0], edges[-1]))
        with _reading(self.path) as bag:
            for recorded, data in _messages_on(bag, self._topic, start + skew.least - 1, stop + skew.most + 2):
                yield recorded, self._stamp(recorded, data), _read(JOINT_STATE, data)

    def _row(self, message: Any) -> tuple[np.ndarray, ...] | None:
        """Return the blocks of a message (n,); None if it does not have them."""
        try:
            names = self._named(message)
            order = [names.index(joint) for joint in self._joints]
            row = tuple(getattr(message, MESSAGE_FIELDS[block])[order] for block in self.blocks)
        except (ValueError, IndexError):
            self.left_out["without all joints, or values for them"] += 1
            return None
        if not all(np.isfinite(block).all() for name, block in zip(self.blocks, row) if name in BLOCKS + self.wanted.needed):
            self.left_out["with values that are no finite numbers"] += 1
            return None
        return row

    def _named(self, message: Any) -> list[str]:
        """Return the joint names of a message, renamed."""
        return _renamed(message.name, self._rename)

    def _take_rows(self, rows: list[tuple[Any, ...]], end: float) -> Samples:
        """Remove the rows before a time from the list and return them as samples."""
        taken = sorted((row for row in rows if row[0] < end), key=lambda row: row[0])
        rows[:] = [row for row in rows if row[0] >= end]
        t = np.array([row[0] for row in taken])
        new = np.append(True, np.diff(t) > 0.0)[:len(t)]
        if not new.all():
            self.left_out["with the stamp of another"] += int((~new).sum())
        shape = (len(t), len(self._joints))
        return {"t": t[new], **{block: np.array([row[k] for row in taken]).reshape(shape)[new]
                                for k, block in enumerate(self.blocks, start=1)}}

    def _first_message(self, bag: Any) -> Any:
        """Return the first message with all joints."""
        seen: dict[str, None] = {}
        for count, (_, data) in enumerate(_messages_on(bag, self._topic)):
            message = _read(JOINT_STATE, data)
            if set(self._joints) <= set(names := self._named(message)) and len(message.position) == len(names):
                return message
            seen |= dict.fromkeys(names)
            if count == _SEARCHED_MESSAGES:
                break
        if not seen:
            raise InputError(f"{self.path}: no messages on {self._topic}")
        missing = [joint for joint in self._joints if joint not in seen]
        why = f"no joint {some(missing, 6, quoted=True)}" if missing else "no message with positions of all the joints"
        raise InputError(f"{self.path}: {why} on {self._topic}; its joints are {some(seen, 6, quoted=True)}")

    def _index(self, bag: Any) -> RecordingSpan:
        """Return the span after one pass over stamps and recording times."""
        first, last, count, least, most = 2**63, -2**63, 0, 2**63, -2**63
        for recorded, data in _messages_on(bag, self._topic):
            stamp = self._stamp(recorded, data)
            if stamp < last - _MAX_BACKWARD_NS:
                raise InputError(f"{self.path}: stamps on {self._topic} go back by {(last - stamp) * 1e-9:.6g} s after "
                                 f"{count} messages; one recording of one run is needed")
            first, last, count = min(first, stamp), max(last, stamp), count + 1
            least, most = min(least, recorded - stamp), max(most, recorded - stamp)
        return RecordingSpan(0.0, (last - first) * 1e-9, count, first, RecordingDelay(least, most))

    def _stamp(self, recorded: int, data: bytes) -> int:
        """Return the stamp of a message [ns]; its recording time if it has none."""
        return _stamp(data) or (0 if self._has_simulated_clock else recorded)

    def _seconds(self, stamp: int) -> float:
        return (stamp - (self.span.origin or 0)) * 1e-9


def joints_without_effort(path: Path, wanted: RecordingRequest) -> list[str]:
    """Return the joints without a finite effort in any message; none if no joint has one."""
    left, count = set(wanted.names), len(wanted.names)
    with _reading(path) as bag:
        for _, data in _messages_on(bag, _topic(path, bag, wanted.reading.topic)):
            message = _read(JOINT_STATE, data)
            if len(message.effort) == len(message.name):
                names = _renamed(message.name, wanted.reading.rename)
                left -= {name for name, effort in zip(names, message.effort) if np.isfinite(effort)}
                if not left:
                    break
    return [name for name in wanted.names if name in left] if len(left) < count else []


def _renamed(names: Sequence[str], rename: Sequence[tuple[str, str]]) -> list[str]:
    """Return joint names with parts replaced."""
    found = list(names)
    for old, new in rename:
        found = [name.replace(old, new) for name in found]
    return found


def recorded_urdf(path: Path) -> str:
    """Return the URDF that was recorded in a bag."""
    with _reading(path) as bag:
        for _, data in _messages_on(bag, DESCRIPTION):
            return _read(STRING, data).data
    raise InputError(f"{path}: has no {DESCRIPTION}; give a URDF before the recordings")


def write_bag(path: Path, joint_names: Sequence[str], origin: int, parts: Iterator[Torques]) -> None:
    """Write torques as joint states on EFFORT, their rates on EFFORT_RATE, with the stamps of the recording."""
    bags, store = import_rosbags()
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}.") as folder:
        made = Path(folder) / path.stem
        with bags.Writer(made, version=8, storage_plugin=bags.StoragePlugin.MCAP) as bag:
            topics = [bag.add_connection(topic, JOINT_STATE, typestore=store) for topic in (EFFORT, EFFORT_RATE)]
            for part in parts:
                stamps = origin + np.round(1e9 * part.t).astype(np.int64)
                for k, stamp in enumerate(stamps.tolist()):
                    for topic, effort in zip(topics, (part.tau, part.tau_rate)):
                        message = _joint_state(store, stamp, joint_names, part.q[k], part.qd[k], effort[k])
                        bag.write(topic, stamp, store.serialize_cdr(message, JOINT_STATE))
        next(made.glob("*.mcap")).replace(path)


def write_bag_metadata(folder: Path, files: Sequence[Path]) -> None:
    """Make one bag of a folder with several files written by write_bag, in order of time."""
    bags, store = import_rosbags()
    written = []
    for file in files:
        with bags.Reader(file) as bag:
            span = {"starting_time": {"nanoseconds_since_epoch": bag.start_time if bag.message_count else 0},
                    "duration": {"nanoseconds": max(bag.duration - 1, 0)}}
            written.append({"path": file.name, **span, "message_count": bag.message_count})
    count = sum(one["message_count"] for one in written)
    start = min((one["starting_time"]["nanoseconds_since_epoch"] for one in written if one["message_count"]), default=0)
    ends = [one["starting_time"]["nanoseconds_since_epoch"] + one["duration"]["nanoseconds"] for one in written]
    end = max(ends, default=0)
    kind = {"type": JOINT_STATE, "serialization_format": "cdr", "offered_qos_profiles": "",
            "type_description_hash": store.hash_rihs01(JOINT_STATE)}
    topics = [{"topic_metadata": {"name": topic, **kind}, "message_count": count // 2} for topic in (EFFORT, EFFORT_RATE)]
    information = {
        "version": 8, "storage_identifier": "mcap", "relative_file_paths": [file.name for file in files],
        "duration": {"nanoseconds": max(end - start, 0)}, "starting_time": {"nanoseconds_since_epoch": start},
        "message_count": count, "topics_with_message_count": topics, "compression_format": "", "compression_mode": "",
        "files": written, "custom_data": {}, "ros_distro": "rosbags"}
    made = folder / ".metadata.partial.yaml"
    made.write_text(json.dumps({"rosbag2_bagfile_information": information}, indent=1) + "\n", encoding="utf-8")  # YAML too
    made.replace(folder / METADATA)


def _joint_state(store: Any, stamp: int, names: Sequence[str], *blocks: np.ndarray) -> Any:
    types = store.types
    header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9)), "")
    return types[JOINT_STATE](header, list(names), *blocks)


# ------------------------------------------------------------------ rosbags

def import_rosbags() -> tuple[ModuleType, Any]:
    """Return rosbag2 and its message types. Raises MissingPackage if rosbags is not installed."""
    try:
        from rosbags import rosbag2
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingPackage("ROS 2 bags need rosbags", "bags") from None
    global _store
    _store = _store or get_typestore(Stores.ROS2_HUMBLE)
    return rosbag2, _store


_store: Any = None


def _read(kind: str, data: bytes) -> Any:
    return import_rosbags()[1].deserialize_cdr(data, kind)


def _stamp(data: bytes) -> int:
    """Return the stamp of a serialized message that begins with a header [ns]."""
    seconds, nanoseconds = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, 4)
    return seconds * 10**9 + nanoseconds


def _has_simulated_clock(messages: Iterator[tuple[int, bytes]]) -> bool:
    """Return whether stamps are those of a simulated clock that begins at zero; a stamp of zero is valid then."""
    stamps = ((recorded, _stamp(data)) for recorded, data in islice(messages, _SEARCHED_MESSAGES))
    return any(0 < stamp < recorded // 2 for recorded, stamp in stamps)


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Open a bag. Any error inside a broken bag becomes an InputError."""
    bags, _ = import_rosbags()
    try:
        with bags.Reader(path) as bag:
            yield bag
    except RneaError:
        raise
    except MemoryError:  # sizes in a broken bag are arbitrary
        raise InputError(f"{path}: cannot be read: it needs more memory than written; `ros2 bag reindex` repairs a "
                         "truncated recording") from None
    except Exception as error:  # each storage has its own error types, and corrupt bytes can cause any of them
        raise InputError(f"{path}: cannot be read: {error or type(error).__name__}; `ros2 bag reindex` repairs a "
                         "truncated recording") from error


def _messages_on(bag: Any, topic: str, start: int | None = None, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (recorded [ns], data) of the messages on a topic."""
    connections = [connection for connection in bag.connections if connection.topic == topic]
    if connections:
        yield from ((recorded, data) for _, recorded, data in bag.messages(connections, start, stop))


def _topic(path: Path, bag: Any, requested: str | None) -> str:
    """Return the topic of joint states: the requested one, or /joint_states, or the only one."""
    kinds = {connection.topic: connection.msgtype for connection in bag.connections}
    states = [topic for topic, kind in kinds.items() if kind == JOINT_STATE]
    if requested is not None:
        if requested in states:
            return requested
        other = f"is of type {kinds[requested]}" if requested in kinds else "is not in it"
        raise InputError(f"{path}: topic {requested} {other}; joint states are on {some(states) or 'none'}"
                         f"{near(requested, states)}")
    if TOPIC in states or len(states) == 1:
        return TOPIC if TOPIC in states else states[0]
    which = f"select one with --topic: {some(states)}" if states else f"its topics are {some(kinds) or 'none'}"
    raise InputError(f"{path}: {'several topics' if states else 'no topic'} of joint states; {which}")
