"""A motion in a file, whatever the format: read piece by piece, and completed by the derivatives that it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..estimation.blocks import Blocks
from ..estimation.differentiation import ORDERS, checked
from ..estimation.recording import estimate_block
from .motion_csv import BLOCKS, RecordedMotion, higher_of

Samples = dict[str, np.ndarray]  # "t" (k,) [s], and blocks (k, n) of those that were asked for: q, qd, .., tau, tau_rate


class Span(NamedTuple):
    """What one pass through a file tells: times of the first and the last sample [s] and how many there are; the stamp of
    t = 0 [ns], None where there are no stamps; and what the reader itself needs in order to find a time again."""

    first: float
    last: float
    samples: int
    origin: int | None
    marks: Any


class Recording(Protocol):
    """One motion of one robot in a file.

    path     : of the file, or of the folder that is a bag
    blocks   : those of the blocks asked for that it has for every joint
    ignored  : what else is in it, by name; ignored_are says what that is
    span     : of the whole file
    left_out : how many samples could not be used so far, by reason
    """

    path: Path
    blocks: tuple[str, ...]
    ignored: tuple[str, ...]
    ignored_are: str
    span: Span
    left_out: Counter[str]

    def pieces(self, edges: Sequence[float]) -> Iterator[Samples]:
        """The samples between each two neighbours of some rising times [s], in one pass; the later edge is the next one's."""


class Wanted(NamedTuple):
    """What is to be read: blocks of these joints; of the blocks, what no recording can do without; and, where a bag tells
    of several robots, the topic of its joint states; rename: parts (old, new) of the names of columns, or joints of a bag."""

    joint_names: tuple[str, ...]
    blocks: tuple[str, ...] = BLOCKS
    needed: tuple[str, ...] = ("q",)
    topic: str | None = None
    rename: tuple[tuple[str, str], ...] = ()


def motions(recording: Recording, joint_types: Sequence[str], window: float | None = None,
            numbers: range | None = None) -> Iterator[RecordedMotion]:
    """The motion, block after block (Blocks), with the derivatives that the file does not have. numbers: of these blocks only.

    window [s], joint_types: as in estimate_recording. Samples so alone that nothing tells their derivatives are left out.
    """
    if set(BLOCKS) - set(recording.blocks):
        checked(np.arange(recording.span.samples), {}, ORDERS)  # enough of them
    blocks = blocks_of(recording)
    numbers = range(blocks.number) if numbers is None else numbers
    edges = [time for k in range(numbers.start, numbers.stop + 1) for time in blocks.around(k)]
    pieces = recording.pieces(edges)
    begin = next(pieces)
    for k in numbers:
        middle, end = next(pieces), next(pieces)
        near = {name: np.concatenate((begin[name], middle[name], end[name])) for name in begin}
        inner = slice(*np.searchsorted(near["t"], (blocks.begin(k), blocks.begin(k + 1))))
        begin = end
        if inner.stop > inner.start:
            motion = _completed(near, inner, joint_types, window)
            known = np.isfinite(motion.qddd).all(axis=1)
            if not known.all():
                recording.left_out["without others near enough to tell derivatives"] += int((~known).sum())
            yield motion.only(known)


def blocks_of(recording: Recording) -> Blocks:
    """The blocks that a recording is estimated by."""
    return Blocks.of(*recording.span[:3])


def _completed(near: Samples, inner: slice, joint_types: Sequence[str], window: float | None) -> RecordedMotion:
    """A block, from the samples near it."""
    own = {name: block[inner] for name, block in near.items()}
    estimated = tuple(name for name in BLOCKS if name not in near)
    if not estimated:
        return RecordedMotion(own["t"], own["q"], own["qd"], own["qdd"], own["qddd"], higher=higher_of(own))
    known = {order: near[name] for order, name in enumerate(BLOCKS[:3]) if name in near}
    guesses = estimate_block(near["t"], known, window, joint_types=joint_types).only(inner)
    own |= {name: getattr(guesses, name) for name in ("q", *estimated)}
    return RecordedMotion(own["t"], own["q"], own["qd"], own["qdd"], own["qddd"], estimated, guesses.how,
                          deviation=guesses.deviation, higher=higher_of(own))
