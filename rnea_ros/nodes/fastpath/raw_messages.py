"""Messages as bytes: looked at before they are read; on the hot path read and written where their numbers lie.

The hot path makes no message objects, for messages of std_msgs/Header, then string, string[] and float64[] fields, as CDR lays
them out.
Nothing relies on that: each layout is proved on a message that the middleware itself serialized or deserialized; where the
proof fails, whole messages go through.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from rnea_ros.nodes.fastpath.cdr import Malformed, checker

_TEXT, _TEXTS, _NUMBERS = "string", "sequence<string>", "sequence<double>"
_COUNT = struct.Struct("<I")
_STAMP = struct.Struct("<iI")
_STAMP_AT, _AFTER_STAMP = 4, 12  # four bytes say how the rest is encoded
_LITTLE_ENDIAN, _HEADER, _TEXT_AT = b"\0\1", struct.Struct("<iII"), 16
_FILLED_UP = 3  # bytes that may follow a message
LAYOUTS = 16  # that a decoder remembers: of an arm, a gripper, wheels ...

Span = tuple[int, int]


def _aligned(at: int, size: int) -> int:
    return at + -(at - _STAMP_AT) % size


def spans(data: bytes, kinds: Sequence[str]) -> tuple[list[Span], list[Span]]:
    """Return (start, end) of what determines the layout of a message, texts and counts, and of the numbers of each float64[].

    kinds: of its fields after the header, see `field_kinds`

    What fills up between them is in neither: the middleware sends whatever was in its memory. Raises struct.error if the bytes
    end before.
    """
    fixed, numbers = [(0, _STAMP_AT)], []

    def keep(start: int, end: int) -> int:
        fixed.append((fixed.pop()[0] if fixed[-1][1] == start else start, end))
        return end

    def count(at: int) -> tuple[int, int]:
        at = _aligned(at, 4)
        return _COUNT.unpack_from(data, at)[0], keep(at, at + 4)

    def text(at: int) -> int:
        length, at = count(at)
        return keep(at, at + length)

    at = text(_AFTER_STAMP)
    for kind in kinds:
        if kind == _TEXT:
            at = text(at)
            continue
        size, at = count(at)
        if kind == _TEXTS:
            for _ in range(min(size, len(data))):
                at = text(at)
        else:
            start = _aligned(at, 8) if size else at
            at = start + 8 * size
            numbers.append((start, at))
    return fixed, numbers


def field_kinds(message: Any) -> list[str]:
    """Return the types of the string, string[] and float64[] fields."""
    return [kind for kind in message.get_fields_and_field_types().values() if kind in (_TEXT, _TEXTS, _NUMBERS)]


def float_arrays(message: Any) -> list[str]:
    """Return the names of the float64[] fields."""
    return [name for name, kind in message.get_fields_and_field_types().items() if kind == _NUMBERS]


class Reader:
    """Bytes of a topic -> message. Raises Malformed."""

    def __init__(self, kind: Any):
        self._kind, self._check = kind, checker(kind)

    def __call__(self, data: bytes) -> Any:
        self._check(data)
        try:
            return deserialize_message(data, self._kind)
        except Exception as error:
            raise Malformed("unread", f"the middleware cannot read it: {error}") from None


class StampedNumbers(NamedTuple):
    """Message of a header and floats: its stamp and frame, and the floats in the order of the message definition."""

    stamp: Stamp
    frame_id: str
    numbers: tuple[float, ...]


class Stamp(NamedTuple):
    """Fields of builtin_interfaces/Time."""

    sec: int
    nanosec: int


class NumbersReader:
    """Bytes of a topic -> StampedNumbers, for messages of a header and float64 fields, nested or not. Raises Malformed.

    Reading all numbers at once takes 2 us; the middleware builds a message of them in 50 to 160 us.
    """

    def __init__(self, kind: Any):
        self._read = Reader(kind)
        self._leaves = [operator.attrgetter(name) for name in _float_leaves(kind())]
        self._numbers = struct.Struct(f"<{len(self._leaves)}d")
        self._frame, self._frame_id = b"", ""
        self._is_laid_out = self._is_proved(kind())

    def __call__(self, data: bytes) -> StampedNumbers:
        return (self._is_laid_out and self._quick(data)) or self._slow(data)

    def _quick(self, data: bytes) -> StampedNumbers | None:
        """None where anything is unusual."""
        if len(data) < _TEXT_AT or data[:2] != _LITTLE_ENDIAN:
            return None
        sec, nanosec, length = _HEADER.unpack_from(data, _STAMP_AT)
        start = _aligned(_TEXT_AT + length, 8)
        if not length or not 0 <= len(data) - start - self._numbers.size <= _FILLED_UP:
            return None
        frame = data[_TEXT_AT:_TEXT_AT + length]
        if frame != self._frame:
            if frame.find(0) != length - 1:
                return None
            try:
                self._frame, self._frame_id = frame, frame[:-1].decode()
            except UnicodeDecodeError:
                return None
        return StampedNumbers(Stamp(sec, nanosec), self._frame_id, self._numbers.unpack_from(data, start))

    def _slow(self, data: bytes) -> StampedNumbers:
        message = self._read(data)
        stamp = message.header.stamp
        return StampedNumbers(Stamp(stamp.sec, stamp.nanosec), message.header.frame_id,
                              tuple(leaf(message) for leaf in self._leaves))

    def _is_proved(self, message: Any) -> bool:
        """Return whether the middleware writes numbers where they are read."""
        message.header.frame_id, message.header.stamp.sec, message.header.stamp.nanosec = "frame", 17, 23
        for number, name in enumerate(_float_leaves(message), start=1):
            *path, last = name.split(".")
            setattr(operator.attrgetter(".".join(path))(message) if path else message, last, float(number))
        wanted = StampedNumbers(Stamp(17, 23), "frame", tuple(map(float, range(1, len(self._leaves) + 1))))
        return self._quick(bytes(serialize_message(message))) == wanted


def _float_leaves(message: Any) -> list[str]:
    """Return the dotted names of the float64 fields behind the header."""
    found = []
    for name, kind in message.get_fields_and_field_types().items():
        if name != "header":
            found += [name] if kind == "double" else [f"{name}.{leaf}" for leaf in _float_leaves(getattr(message, name))]
    return found


class Decoder:
    """As Reader, but a message that is laid out as one before is read into that one: what was returned then changes. Only
    `fields` of its arrays are kept up to date, beside the stamp."""

    def __init__(self, kind: Any, fields: Sequence[str]):
        self._read, self._fields = Reader(kind), tuple(fields)
        self._known: dict[int, list[_Layout]] = {}  # by the length of the bytes

    def __call__(self, data: bytes) -> Any:
        for layout in self._known.get(len(data), ()):
            if layout.fits(data):
                return layout.read(data)
        return self._learn(data)

    def _learn(self, data: bytes) -> Any:
        message = self._read(data)
        arrays = float_arrays(message)
        try:
            fixed, numbers = spans(data, field_kinds(message))
            stamp = _STAMP.unpack_from(data, _STAMP_AT)
        except struct.error:
            return message
        proved = stamp == (message.header.stamp.sec, message.header.stamp.nanosec) and all(
            getattr(message, name).tobytes() == data[a:b] for name, (a, b) in zip(arrays, numbers))
        if proved:
            if sum(map(len, self._known.values())) >= LAYOUTS:  # who sends ever other ones is not remembered
                self._known.clear()
            kept = {name: span for name, span in zip(arrays, numbers) if name in self._fields}
            self._known.setdefault(len(data), []).append(_Layout(message, data, fixed, kept))
        return message


class _Layout:
    """Where the numbers of a message are, among bytes that do not change. Such a message is read in 1 us, any other in 20."""

    def __init__(self, message: Any, data: bytes, fixed: Sequence[Span], kept: Mapping[str, Span]):
        """kept: the arrays to be read, by name."""
        ends = [0, *(end for _, end in fixed)]
        self._fixed = struct.Struct("<" + "".join(f"{a - end}x{b - a}s" for (a, b), end in zip(fixed, ends)))
        self._same = self._fixed.unpack_from(data)
        self._copies = [(memoryview(getattr(message, name)).cast("B"), slice(*span)) for name, span in kept.items()
                        if len(getattr(message, name))]
        self._message, self._stamp = message, message.header.stamp

    def fits(self, data: bytes) -> bool:
        """Whether bytes of the same length are laid out like this."""
        return self._fixed.unpack_from(data) == self._same

    def read(self, data: bytes) -> Any:
        self._stamp.sec, self._stamp.nanosec = _STAMP.unpack_from(data, _STAMP_AT)
        for target, place in self._copies:
            target[:] = data[place]
        return self._message


class RawPublisher:
    """A publisher of bytes or messages, asked in the fewest steps."""

    def __init__(self, publisher: Any):
        self._publisher = publisher
        self.has_subscribers = publisher.handle.get_subscription_count  # counting takes a tenth of the time of sending
        self._publish_raw = publisher.handle.publish_raw

    def send(self, data: Any) -> None:
        if type(data) is bytes:
            self._publish_raw(data)
        else:
            self._publisher.publish(data)


class Encoder:
    """A message of n joints, serialized once: `blocks` are its numbers, in place. None: not laid out as expected.

    lengths : how many arrays, one after the other, make each block (arrays, size); default one block of all
    """

    def __init__(self, message: Any, lengths: Sequence[int] = ()):
        arrays = float_arrays(message)
        self._data = memoryview(bytearray(_STAMP_AT) + serialize_message(message))[_STAMP_AT:]  # doubles then lie aligned
        self.blocks: list[np.ndarray] | None = None
        try:
            _, found = spans(bytes(self._data), field_kinds(message))
        except struct.error:
            return
        if found[-1][1] > len(self._data) or not any(len(getattr(message, name)) for name in arrays):
            return
        ends = np.cumsum(lengths or [len(arrays)]).tolist()
        blocks = [block for a, b in zip([0, *ends], ends) if (block := self._block(found[a:b])) is not None]
        if len(blocks) == len(ends) and self._proved(type(message), arrays, blocks):
            self.blocks = blocks

    def _block(self, places: Sequence[Span]) -> np.ndarray | None:
        """The numbers of arrays that are as long as each other, and as far from each other."""
        starts = np.array([a for a, _ in places])
        sizes = {(b - a) // 8 for a, b in places}
        strides = set(np.diff(starts).tolist()) or {0}
        if len(sizes) > 1 or len(strides) > 1:
            return None
        return np.ndarray((len(places), sizes.pop()), float, self._data, int(starts[0]), (strides.pop(), 8))

    def _proved(self, kind: Any, arrays: Sequence[str], blocks: Sequence[np.ndarray]) -> bool:
        """Whether the middleware reads the numbers that were written."""
        before = [block.copy() for block in blocks]
        for number, block in enumerate(blocks, start=1):
            block[:] = number * np.arange(1.0, block.size + 1.0).reshape(block.shape)
        try:
            read = deserialize_message(self.stamped(17, 23), kind)
        except Exception:  # whatever it says of bytes that it does not understand
            return False
        rows = (row for block in blocks for row in block)
        right = (read.header.stamp.sec, read.header.stamp.nanosec) == (17, 23) and all(
            getattr(read, name).tobytes() == row.tobytes() for name, row in zip(arrays, rows))
        for block, numbers in zip(blocks, before):
            block[:] = numbers
        return right

    def stamped(self, sec: int, nanosec: int) -> bytes:
        """The message now, with a stamp: what a publisher takes."""
        _STAMP.pack_into(self._data, _STAMP_AT, sec, nanosec)
        return bytes(self._data)
