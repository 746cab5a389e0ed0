"""Unexpected inputs: valid ones changed by a seeded generator, and choices read from bytes."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Sequence
from typing import Any

NUMBER = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
ODD_NUMBERS = (b"nan", b"inf", b"-inf", b"0", b"-0.0", b"1e-320", b"1e308", b"-1e400", b"9" * 40, b"1_0", b"0x1F", b"", b"1e9",
               b"-1", b"1", b"2147483648", b"1.5.2", b"\xd9\xa3")
ODD_DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.5, math.pi, 1e-320, 1e-9, 1e9, 1e16, 1e155, 1e308, -1e308, math.inf, -math.inf,
               math.nan)
COUNTS = (0, 1, 2, 3, 7, 8, 255, 256, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
LONGEST = 1 << 17  # bytes of an input


def mutated(rng: random.Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return an input of the corpus with some mutations, mostly few."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5, 9, 20))):
        _change(rng, data, corpus, words)
    return bytes(data[:LONGEST])


def _change(rng: random.Random, data: bytearray, corpus: Sequence[bytes], words: Sequence[bytes]) -> None:
    at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 4, 8, 30, 200))
    what = rng.randrange(9)
    if what == 0:
        data[at:at + 1] = bytes([rng.randrange(256)])
    elif what == 1:
        data[at:at + length] = b""
    elif what == 2:
        data[at:at] = data[at:at + length] * rng.choice((1, 1, 2, 50))
    elif what == 3:
        other = rng.choice(corpus)
        begin = rng.randrange(len(other) + 1)
        data[at:at + length * rng.randrange(2)] = other[begin:begin + length * 4]
    elif what == 4 and words:
        data[at:at + length * rng.randrange(2)] = rng.choice(words)
    elif what == 5 and len(data) >= 4:
        struct.pack_into(rng.choice("<>") + "I", data, rng.randrange(len(data) - 3), rng.choice(COUNTS))
    elif what == 6 and len(data) >= 8:
        struct.pack_into("<d", data, rng.randrange(len(data) - 7), rng.choice(ODD_DOUBLES))
    elif what == 7:
        del data[at:]
    elif found := list(NUMBER.finditer(data)):
        number = rng.choice(found)
        data[number.start():number.end()] = rng.choice(ODD_NUMBERS)


class Choices:
    """Decisions read from bytes (zeros after their end), so that mutations change decisions and results remain well-formed."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.byte() % len(options)]

    def number(self) -> float:
        """Return a number, mostly of the size of robot data."""
        what = self.byte()
        if what < 235:
            return (what - 117) / 60.0
        if what < 252:
            return ODD_DOUBLES[what % len(ODD_DOUBLES)]
        return float(struct.unpack("<d", bytes(self.byte() for _ in range(8)))[0])

    def numbers(self, count: int) -> list[float]:
        """Return numbers, mostly as many as given."""
        return [self.number() for _ in range(max(0, count + self.pick((0,) * 12 + (1, -1, -count, 40))))]
