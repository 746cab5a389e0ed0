"""Whether bytes are a message: every count and every length in them is held against what there is, before anybody reads them.

The generated deserializers of ROS trust what they are handed; a few wrong bytes from anywhere in the network end the process
that reads them (a segmentation fault that no Python code can catch). So each type gets a function, made of what the type says
of itself, that walks through the bytes of a message and builds nothing. What it lets pass can be read to the last entry.

The encoding is OMG CDR as all ROS middlewares send it (XCDR1, final types, either byte order): four bytes that name it, then
numbers aligned to their size, strings and sequences behind a count of 32 bits, strings with a zero at their end. Bytes that
nobody reads may follow: rmw_serialize sends as many as it reserved, 8 for an empty float64[] that takes 4.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from struct import Struct, error
from typing import Any

from rnea_ros.errors import Rejected

HEADER, PADDING = 4, 3  # bytes: those that name the encoding, those that fill up the last word
ORDERS = {b"\0\0": ">", b"\0\1": "<"}  # by what a message begins with
SIZES = {"boolean": 1, "octet": 1, "char": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4,
         "uint64": 8, "int64": 8, "float": 4, "double": 8}
UNBOUNDED = 2**32

Walk = Callable[[bytes, int], int]  # (body, where something begins) -> where it ends. Raises Malformed


class Malformed(Rejected):
    """Bytes that are not a message of the type. `reason` is a fixed word to count by, `detail` says what is wrong, where."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"malformed_{reason}", detail)

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"

    def within(self, name: str) -> Malformed:
        """The same, seen from one level further out."""
        self.detail = f"{name}: {self.detail}"
        return self


@cache
def checker(kind: Any) -> Callable[[bytes], None]:
    """A function that raises Malformed unless the bytes are a message of this type. TypeError: of types it does not know."""
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
    """Of what SLOT_TYPES says of a field, told apart by name: rosidl_parser, where the classes are, is not needed to run."""
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
    """Of a string or sequence: (body, at) -> the number. It begins at the next multiple of 4."""
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
    """(how many, body, at) -> where they end."""
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
