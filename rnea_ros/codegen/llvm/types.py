"""LLVM types of doubles and of vectors of doubles."""

from __future__ import annotations

import struct


def type_of(lanes: int) -> str:
    """Return the LLVM type of a number, or of a vector of `lanes` numbers."""
    return "double" if lanes == 1 else f"<{lanes} x double>"


def suffix(lanes: int) -> str:
    """Return the suffix of intrinsic function names."""
    return "f64" if lanes == 1 else f"v{lanes}f64"


def splat(value: float, lanes: int) -> str:
    """Return a constant by its bit pattern, since LLVM takes only exactly representable decimals."""
    bits = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return bits if lanes == 1 else f"<{', '.join([f'double {bits}'] * lanes)}>"
