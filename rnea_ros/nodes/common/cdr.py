"""Serialized messages: validated before they are read; on the hot path read and written in place.

The generated deserializers of ROS trust their input: a few wrong bytes from the network end the process by a segmentation
fault that Python cannot catch. Each message type therefore gets a function, built from its fields, that checks every count and
length against the size of the message without building anything. A message that passes can be deserialized.

The encoding is OMG CDR as all ROS middlewares send it (XCDR1, final types, either byte order): four bytes of header, then
numbers aligned to their size, strings and sequences with a count of 32 bits, strings with a zero at their end. Unused bytes
may follow: rmw_serialize sends as many as it reserved, 8 for an empty float64[] that takes 4.

The hot path creates no message objects, for messages of std_msgs/Header and string, string[] and float64[] fields in CDR
layout. Each layout is verified with a message that the middleware serialized or deserialized; if the verification fails,
complete messages are used.
"""

from __future__ import annotations

import importlib
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from struct import Struct, error
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message

from rnea_ros.errors import Rejected

HEADER, PADDING = 4, 3  # bytes: those that name the encoding, most that fill up the last word
ORDERS = {b"\0\0": ">", b"\0\1": "<"}  # by what a message begins with
SIZES = {"boolean": 1, "octet": 1, "char": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4,
         "uint64": 8, "int64": 8, "float": 4, "double": 8}
UNBOUNDED = 2**32

Walk = Callable[[bytes, int], int]  # (body, where something begins) -> where it ends. Raises Malformed


class Malformed(Rejected):
    """Error: bytes are not a message of the type. `reason` is a fixed word for counters, `detail` names field and cause."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"malformed_{reason}", detail)

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"

    def within(self, name: str) -> Malformed:
        """Return the error with the name of the enclosing field."""
        self.detail = f"{name}: {self.detail}"
        return self


@cache
def checker(kind: Any) -> Callable[[bytes], None]:
    """Return a function that raises Malformed for an invalid message of this type. Raises TypeError for unknown field
    types.
    """
    walks = {start: _structure(kind, order) for start, order in ORDERS.items()}

    def check(data: bytes) -> None:
        walk = walks.get(data[:2])
        if walk is None or len(data) < HEADER:
            raise Malformed("header", f"begins with '{data[:HEADER].hex(' ')}'; plain CDR begins with 00 00 or 00 01")
        body = data[HEADER:len(data) - (data[3] & PADDING)]  # XTypes: the header's last two bits count what was filled up
        end = walk(body, 0)
        if end > len(body):
            raise Malformed("truncated", f"{kind.__name__} needs {end} bytes, there are {len(body)}")
        if len(body) - end > end + PADDING:
            raise Malformed("left_over", f"{kind.__name__} ends after {end} bytes, there are {len(body)}")

    return check


def _structure(kind: Any, order: str) -> Walk:
    walks = [(name, _value(slot, order)) for name, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES)]
    if not walks:  # an empty message is a byte
        return partial(_numbers, 1, 1)

    def walk(body: bytes, at: int) -> int:
        for name, field in walks:
            try:
                at = field(body, at)
            except Malformed as problem:
                raise problem.within(name) from None
        return at

    return walk


def _value(slot: Any, order: str) -> Walk:
    """Return the kind of a field from SLOT_TYPES by class name, which needs no import of rosidl_parser."""
    what = type(slot).__name__
    if what == "BasicType" and slot.typename in SIZES:
        return _boolean if slot.typename == "boolean" else partial(_numbers, SIZES[slot.typename], 1)
    if what == "NamespacedType":
        return _structure(getattr(importlib.import_module(".".join(slot.namespaces)), slot.name), order)
    if what in ("UnboundedString", "BoundedString"):
        return _string(slot.maximum_size if what == "BoundedString" else UNBOUNDED, order)
    if what in ("UnboundedSequence", "BoundedSequence"):
        return _sequence(slot.value_type, slot.maximum_size if what == "BoundedSequence" else UNBOUNDED, order)
    if what == "Array":
        return partial(_several(slot.value_type, order), slot.size)
    raise TypeError(f"{what} {getattr(slot, 'typename', '')}: its encoding differs among middlewares")


def _numbers(size: int, count: int, body: bytes, at: int) -> int:
    return at + -at % size + size * count if count else at


def _boolean(body: bytes, at: int) -> int:
    if body[at:at + 1] > b"\1":
        raise Malformed("boolean", f"{body[at]} is neither 0 nor 1")
    return at + 1


def _count(order: str) -> Walk:
    """Read the length of a string or sequence: (body, at) -> number, aligned to 4."""
    read = Struct(f"{order}I").unpack_from

    def count(body: bytes, at: int) -> int:
        try:
            return read(body, at + -at % 4)[0]
        except error:
            raise Malformed("truncated", f"a count at byte {at} of {len(body)}") from None

    return count


def _string(most: int, order: str) -> Walk:
    count = _count(order)

    def walk(body: bytes, at: int) -> int:
        length = count(body, at)
        end = at + -at % 4 + 4 + length
        if end > len(body):
            raise Malformed("truncated", f"a text of {length} bytes, ending at byte {end} of {len(body)}")
        if length and body[end - 1]:
            raise Malformed("string", "a text without zero at its end")
        if length - 1 > most:
            raise Malformed("bound", f"a text of {length - 1} bytes; at most {most}")
        return end

    return walk


def _sequence(slot: Any, most: int, order: str) -> Walk:
    count, several = _count(order), _several(slot, order)

    def walk(body: bytes, at: int) -> int:
        length = count(body, at)
        start = at + -at % 4 + 4
        if length > most:
            raise Malformed("bound", f"{length} entries; at most {most}")
        if length > len(body) - start:  # each takes a byte at least
            raise Malformed("truncated", f"{length} entries from byte {start} of {len(body)}")
        return several(length, body, start)

    return walk


def _several(slot: Any, order: str) -> Callable[[int, bytes, int], int]:
    """Return a function (count, body, at) -> position behind the elements."""
    one = _value(slot, order)
    if type(slot).__name__ == "BasicType" and slot.typename != "boolean":
        return partial(_numbers, SIZES[slot.typename])

    def walk(length: int, body: bytes, at: int) -> int:
        for k in range(length):
            try:
                at = one(body, at)
            except Malformed as problem:
                raise problem.within(f"[{k}]") from None
            if at > len(body):
                raise Malformed("truncated", f"entry {k} of {length} needs {at} bytes, there are {len(body)}")
        return at

    return walk


_TEXT, _TEXTS, _NUMBERS = "string", "sequence<string>", "sequence<double>"
_COUNT = struct.Struct("<I")
STAMP = struct.Struct("<iI")
STAMP_AT, _AFTER_STAMP = HEADER, HEADER + STAMP.size
_LITTLE_ENDIAN, _HEADER, _TEXT_AT = b"\0\1", struct.Struct("<iII"), 16
LAYOUTS = 16  # that a decoder remembers: of an arm, a gripper, wheels ...

Span = tuple[int, int]


def _aligned(at: int, size: int) -> int:
    return at + -(at - STAMP_AT) % size


def spans(data: bytes, kinds: Sequence[str]) -> tuple[list[Span], list[Span]]:
    """Return (start, end) of the layout bytes, texts and counts, and of the numbers of each float64[].

    kinds : field types after the header, see `field_kinds`

    Padding is in neither: its content is arbitrary. Raises struct.error if the bytes end early.
    """
    fixed, numbers = [(0, STAMP_AT)], []

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
    """Deserializer of a topic. Raises Malformed."""

    def __init__(self, kind: Any):
        self._kind, self._check = kind, checker(kind)

    def __call__(self, data: bytes) -> Any:
        self._check(data)
        try:
            return deserialize_message(data, self._kind)
        except Exception as error:
            raise Malformed("unread", f"the middleware cannot read it: {error}") from None


class StampedNumbers(NamedTuple):
    """Header and floats of a message: stamp, frame, and the floats in the order of the message definition."""

    stamp: Stamp
    frame_id: str
    numbers: tuple[float, ...]


class Stamp(NamedTuple):
    """Fields of builtin_interfaces/Time."""

    sec: int
    nanosec: int


class NumbersReader:
    """Reader of a topic into StampedNumbers, for messages of a header and float64 fields, nested or not. Raises Malformed.

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
        """Return the numbers, or None for an unusual layout."""
        if len(data) < _TEXT_AT or data[:2] != _LITTLE_ENDIAN:
            return None
        sec, nanosec, length = _HEADER.unpack_from(data, STAMP_AT)
        start = _aligned(_TEXT_AT + length, 8)
        if not length or not 0 <= len(data) - start - self._numbers.size <= PADDING:
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
        """Return whether the middleware writes numbers at the positions that are read."""
        message.header.frame_id, message.header.stamp.sec, message.header.stamp.nanosec = "frame", 17, 23
        for number, name in enumerate(_float_leaves(message), start=1):
            *path, last = name.split(".")
            setattr(operator.attrgetter(".".join(path))(message) if path else message, last, float(number))
        wanted = StampedNumbers(Stamp(17, 23), "frame", tuple(map(float, range(1, len(self._leaves) + 1))))
        return self._quick(bytes(serialize_message(message))) == wanted


def _float_leaves(message: Any) -> list[str]:
    """Return the dotted names of the float64 fields after the header."""
    found = []
    for name, kind in message.get_fields_and_field_types().items():
        if name != "header":
            found += [name] if kind == "double" else [f"{name}.{leaf}" for leaf in _float_leaves(getattr(message, name))]
    return found


class Decoder:
    """Reader that reuses the message of an equal layout: a returned message changes with the next one. Only `fields` of its
    arrays are updated, beside the stamp.
    """

    def __init__(self, kind: Any, fields: Sequence[str]):
        self._read, self._fields = Reader(kind), tuple(fields)
        self._known: dict[int, list[MessageLayout]] = {}  # by the length of the bytes

    def __call__(self, data: bytes) -> Any:
        layout = self.layout(data)
        return self._learn(data) if layout is None else layout.read(data)

    def layout(self, data: bytes) -> MessageLayout | None:
        """Return the layout of a message, if one with that layout was read before."""
        for layout in self._known.get(len(data), ()):
            if layout.fits(data):
                return layout
        return None

    def _learn(self, data: bytes) -> Any:
        message = self._read(data)
        arrays = float_arrays(message)
        try:
            fixed, numbers = spans(data, field_kinds(message))
            stamp = STAMP.unpack_from(data, STAMP_AT)
        except struct.error:
            return message
        proved = stamp == (message.header.stamp.sec, message.header.stamp.nanosec) and all(
            getattr(message, name).tobytes() == data[a:b] for name, (a, b) in zip(arrays, numbers))
        if proved:
            if sum(map(len, self._known.values())) >= LAYOUTS:  # a sender that changes its layout all the time
                self._known.clear()
            kept = {name: span for name, span in zip(arrays, numbers) if name in self._fields}
            self._known.setdefault(len(data), []).append(MessageLayout(message, data, fixed, kept))
        return message


class MessageLayout:
    """Positions of the numbers of a message with constant other bytes. Such a message is read in 1 us, any other in 20."""

    def __init__(self, message: Any, data: bytes, fixed: Sequence[Span], kept: Mapping[str, Span]):
        """kept: names of the arrays that are read."""
        self.spans, self.size = kept, len(data)
        ends = [0, *(end for _, end in fixed)]
        self._fixed = struct.Struct("<" + "".join(f"{a - end}x{b - a}s" for (a, b), end in zip(fixed, ends)))
        self._same = self._fixed.unpack_from(data)
        self._copies = [(memoryview(getattr(message, name)).cast("B"), slice(*span)) for name, span in kept.items()
                        if len(getattr(message, name))]
        self._message, self._stamp = message, message.header.stamp

    def fits(self, data: bytes) -> bool:
        """Return whether bytes have this layout."""
        return len(data) == self.size and self._fixed.unpack_from(data) == self._same

    def read(self, data: bytes) -> Any:
        self._stamp.sec, self._stamp.nanosec = STAMP.unpack_from(data, STAMP_AT)
        for target, source in self._copies:
            target[:] = data[source]
        return self._message


class NumberBlock:
    """Arrays of equal length and distance in messages of one layout, read without a message object.

    values : (arrays, n) numbers of the last message that was read, in memory that the next one overwrites
    when   : its stamp
    """

    def __init__(self, layout: MessageLayout, names: Sequence[str]):
        """Raise ValueError if the arrays are missing, empty, or of different lengths or distances."""
        self._fits = layout.fits
        self._data = memoryview(bytearray(STAMP_AT + layout.size))[STAMP_AT:]  # doubles then lie aligned
        values = block_of(self._data, [layout.spans[name] for name in names if name in layout.spans])
        if values is None or len(values) != len(names) or not values.size:
            raise ValueError(f"{', '.join(names)} are no block of numbers")
        self.values, self.when = values, Time()

    def read(self, data: bytes) -> bool:
        """Read a message; return False, and read nothing, if its layout is another."""
        if not self._fits(data):
            return False
        self._data[:] = data
        self.when.sec, self.when.nanosec = STAMP.unpack_from(data, STAMP_AT)
        return True


def block_of(data: memoryview, spans: Sequence[Span]) -> np.ndarray | None:
    """Return the numbers (arrays, n) at spans of equal length and distance, in place; None for others."""
    starts = np.array([a for a, _ in spans], dtype=int)
    sizes = {(b - a) // 8 for a, b in spans}
    strides = set(np.diff(starts).tolist()) or {0}
    if len(sizes) != 1 or len(strides) != 1:
        return None
    return np.ndarray((len(spans), sizes.pop()), float, data, int(starts[0]), (strides.pop(), 8))


class RawPublisher:
    """Publisher of bytes or messages with few Python calls."""

    def __init__(self, publisher: Any):
        self._publisher = publisher
        self.has_subscribers = publisher.handle.get_subscription_count
        self.send_bytes: Callable[[bytes], None] = publisher.handle.publish_raw

    def send(self, data: Any) -> None:
        if type(data) is bytes:
            self.send_bytes(data)
        else:
            self._publisher.publish(data)


class Encoder:
    """Message of n joints, serialized once in `data`: `blocks` are its numbers, in place; None for an unexpected layout.

    lengths : number of consecutive arrays of each block (arrays, size); default one block of all
    """

    def __init__(self, message: Any, lengths: Sequence[int] = ()):
        arrays = float_arrays(message)
        self.data = memoryview(bytearray(STAMP_AT) + serialize_message(message))[STAMP_AT:]  # doubles then lie aligned
        self.blocks: list[np.ndarray] | None = None
        self.stamp = np.frombuffer(self.data, np.uint64, 1, STAMP_AT)  # its bytes, in place
        try:
            _, found = spans(bytes(self.data), field_kinds(message))
        except struct.error:
            return
        if found[-1][1] > len(self.data) or not any(len(getattr(message, name)) for name in arrays):
            return
        ends = np.cumsum(lengths or [len(arrays)]).tolist()
        blocks = [block for a, b in zip([0, *ends], ends) if (block := block_of(self.data, found[a:b])) is not None]
        if len(blocks) == len(ends) and self._proved(type(message), arrays, blocks):
            self.blocks = blocks

    def _proved(self, kind: Any, arrays: Sequence[str], blocks: Sequence[np.ndarray]) -> bool:
        """Return whether the middleware reads the numbers that were written."""
        before = [block.copy() for block in blocks]
        for number, block in enumerate(blocks, start=1):
            block[:] = number * np.arange(1.0, block.size + 1.0).reshape(block.shape)
        try:
            read = deserialize_message(self.stamped(17, 23), kind)
        except Exception:  # bytes that it does not understand raise errors of any kind
            return False
        rows = (row for block in blocks for row in block)
        right = (read.header.stamp.sec, read.header.stamp.nanosec) == (17, 23) and all(
            getattr(read, name).tobytes() == row.tobytes() for name, row in zip(arrays, rows))
        for block, numbers in zip(blocks, before):
            block[:] = numbers
        return right

    def stamped(self, sec: int, nanosec: int) -> bytes:
        """Return the message with a stamp, for a publisher."""
        STAMP.pack_into(self.data, STAMP_AT, sec, nanosec)
        return bytes(self.data)
