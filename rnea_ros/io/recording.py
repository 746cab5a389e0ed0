"""Recorded robot motion: data types, what a robot needs from a recording, and completion by estimated derivatives.

A recording of any format is read piece by piece and completed block by block (estimation/smoothing.py), so that it may have
any length. Motors of elastic joints have the names that `motor_joint` of the robot file gives them; their positions are
those behind the gear. A moving base is recorded as six more joints: its position in the world, and roll, pitch and yaw as in
URDFs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError, some
from ..estimation.differentiation import ORDERS, Window, check_times
from ..estimation.smoothing import Blocks, Smoothing, combined_method, estimate_block
from ..robots.base_state import BaseState, from_coordinates
from ..robots.robot import Robot

BLOCKS = ("q", "qd", "qdd", "qddd")  # names of position and derivatives; a block is one quantity of all joints


@dataclass
class RecordedMotion:
    """Motion of a robot from a recording: t (samples,) [s]; q, qd, qdd, qddd (samples, n) [rad, m and their derivatives by s].

    estimated : names of the derivatives that were estimated; how: the method
    ignored   : columns or joints of the file that were not used
    deviation : (4, samples, n) standard deviations of the motion where positions were smoothed, NaN where unknown
    higher    : derivatives above the jerk that were requested and are in the file; they are never estimated
    wrapped   : numbers of the revolute joints whose positions were unwrapped
    tau       : measured efforts (samples, n), if requested and in the file
    notes     : text on what was dropped or estimated, of read_recording
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    estimated: tuple[str, ...] = ()
    how: Window | Smoothing | None = None
    ignored: tuple[str, ...] = field(default=())
    deviation: np.ndarray | None = None
    higher: tuple[np.ndarray, ...] = ()
    wrapped: tuple[int, ...] = ()
    tau: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def only(self, samples: np.ndarray | slice) -> RecordedMotion:
        """Return the motion of some samples."""
        deviation = None if self.deviation is None else self.deviation[:, samples]
        return RecordedMotion(self.t[samples], self.q[samples], self.qd[samples], self.qdd[samples], self.qddd[samples],
                              self.estimated, self.how, self.ignored, deviation,
                              tuple(block[samples] for block in self.higher), self.wrapped,
                              None if self.tau is None else self.tau[samples], self.notes)


class CsvFormat(NamedTuple):
    """Options that describe a CSV file.

    rename    : (old, new) parts of the names in the header
    columns   : names of all columns, instead of a header row
    rate      : sampling rate of a file without times [Hz]; None: column t holds the times
    time_unit : seconds in one unit of column t
    degrees   : positions and derivatives of rotary joints are in degrees
    """

    rename: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rate: float | None = None
    time_unit: float = 1.0
    degrees: bool = False


def derivative_note(estimated: Sequence[str], how: Window | Smoothing) -> str:
    """Return a note on which derivatives were estimated, and how."""
    return f"{some(estimated)} estimated by {how.method}"


def higher_derivatives(known: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the derivatives above the jerk, up to the first that is missing."""
    return tuple(known[name] for name in takewhile(lambda name: name in known, map(block_name, count(len(BLOCKS)))))


def block_name(order: int) -> str:
    """Return the block of a derivative of the position: q, qd, qdd, ..."""
    return "q" + order * "d"


Samples = dict[str, np.ndarray]  # "t" (k,) [s], and the requested blocks (k, n): q, qd, .., tau, tau_rate


class RecordingSpan(NamedTuple):
    """Time span of a recording and an index for reading from it.

    first, last : times of the first and the last sample [s]
    samples     : number of samples
    origin      : stamp of t = 0 [ns]; None without stamps
    marks       : index with which the reader finds a time again
    """

    first: float
    last: float
    samples: int
    origin: int | None
    marks: Any


class Recording(Protocol):
    """Motion of one robot in a file.

    path     : file, or folder of a bag
    wanted   : the request
    blocks   : requested blocks that the file has for every joint
    ignored  : names of further content; ignored_are: what these are, columns or joints
    span     : of the whole file
    left_out : number of samples that could not be used so far, by reason
    """

    path: Path
    wanted: RecordingRequest
    blocks: tuple[str, ...]
    ignored: tuple[str, ...]
    ignored_are: str
    span: RecordingSpan
    left_out: Counter[str]

    def pieces(self, edges: Sequence[float]) -> Iterator[Samples]:
        """Yield the samples between neighbouring edges, increasing times [s], in one pass.

        Samples at an edge belong to the later piece. They contain the recorded joints, without those that are held.
        """


TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class ReadingOptions(NamedTuple):
    """Options on how a recording describes a robot.

    topic     : joint states in a bag; None: /joint_states, or the only one
    rename    : parts (old, new) of the names of columns, or of joints in a bag
    held      : (joint, position): joints that are not recorded and at rest [rad, m]; names may be patterns: wheel_*
    columns   : names of the columns of a CSV without a header
    rate      : sampling rate of a CSV without times [Hz]
    time_unit : unit of the column t of a CSV: one of TIME_UNITS; None: s, rejected if implausible
    unit      : unit of rotary positions in a CSV: rad or deg; None: rad, rejected if implausible
    """

    topic: str | None = None
    rename: tuple[tuple[str, str], ...] = ()
    held: tuple[tuple[str, float], ...] = ()
    columns: tuple[str, ...] = ()
    rate: float | None = None
    time_unit: str | None = None
    unit: str | None = None

    @property
    def csv(self) -> CsvFormat:
        """Options of a CSV file."""
        return CsvFormat(self.rename, self.columns, self.rate, TIME_UNITS[self.time_unit or "s"], self.unit == "deg")

    @property
    def has_csv_options(self) -> bool:
        """True if options are given that bags do not have."""
        return bool(self.columns or self.rate or self.time_unit or self.unit)

    def held_joints(self, joint_names: Sequence[str]) -> dict[str, float]:
        """Return the positions of the held joints by name; later entries replace earlier ones."""
        return {name: position for pattern, position in self.held for name in joint_names if fnmatchcase(name, pattern)}


class RecordingRequest(NamedTuple):
    """Request to a recording: blocks of the named joints.

    needed      : blocks that every recording must have
    joint_types : needed for degrees
    """

    joint_names: tuple[str, ...]
    blocks: tuple[str, ...] = BLOCKS
    needed: tuple[str, ...] = ("q",)
    reading: ReadingOptions = ReadingOptions()
    joint_types: tuple[str, ...] = ()  # needed for degrees

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the recorded joints, where known."""
        return tuple(self.joint_types[k] for k in self.recorded_joints) if self.joint_types else ()

    @property
    def recorded_joints(self) -> list[int]:
        """Numbers of the joints that must be recorded: those that are not held."""
        held = self.reading.held_joints(self.joint_names)
        return [k for k, name in enumerate(self.joint_names) if name not in held]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints that must be recorded."""
        return tuple(self.joint_names[k] for k in self.recorded_joints)

    def with_held_joints(self, block: str, columns: np.ndarray) -> np.ndarray:
        """Return (..., joints) from (..., recorded joints): held joints are at rest, and their torque is NaN."""
        if not self.reading.held:
            return columns
        found = np.full((*columns.shape[:-1], len(self.joint_names)), np.nan if block == "tau" else 0.0)
        found[..., self.recorded_joints] = columns
        for name, position in self.reading.held_joints(self.joint_names).items() if block == "q" else ():
            found[..., self.joint_names.index(name)] = position
        return found


def motions(recording: Recording, joint_types: Sequence[str], window: float | None = None,
            numbers: range | None = None) -> Iterator[RecordedMotion]:
    """Yield the motion block after block, with missing derivatives estimated. numbers: range of blocks.

    window [s], joint_types: as in estimate_recording. Samples without neighbours near enough are dropped.
    """
    if set(BLOCKS) - set(recording.blocks):
        check_times(np.arange(recording.span.samples), {}, ORDERS)  # enough of them
    blocks, types = blocks_of(recording), [joint_types[k] for k in recording.wanted.recorded_joints] if joint_types else ()
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
            motion = _with_held_joints(recording.wanted, _completed(near, inner, types, window))
            known = np.isfinite(motion.qddd).all(axis=1)
            if not known.all():
                recording.left_out["without neighbours near enough to estimate derivatives"] += int((~known).sum())
            yield motion.only(known)


def joined_motion(blocks: Sequence[RecordedMotion]) -> RecordedMotion:
    """Return one motion of consecutive blocks. Raises InputError without any sample."""
    if not blocks:
        raise InputError("the recording has no samples whose derivatives can be estimated")
    t, q, qd, qdd, qddd = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("t", *BLOCKS))
    deviation = None
    if any(block.deviation is not None for block in blocks):
        deviation = np.concatenate([np.full((ORDERS, *block.q.shape), np.nan) if block.deviation is None else block.deviation
                                    for block in blocks], axis=1)
    efforts = [block.tau for block in blocks if block.tau is not None]
    hows = [block.how for block in blocks if block.how]
    how = combined_method(hows) if hows else None
    return RecordedMotion(t, q, qd, qdd, qddd, blocks[0].estimated, how, blocks[0].ignored, deviation,
                          tuple(np.concatenate(rows) for rows in zip(*(block.higher for block in blocks))),
                          tuple(sorted({joint for block in blocks for joint in block.wrapped})),
                          np.concatenate(efforts) if efforts else None)


def blocks_of(recording: Recording) -> Blocks:
    """Return the blocks in which a recording is estimated."""
    return Blocks.of(*recording.span[:3])


def _completed(near: Samples, inner: slice, joint_types: Sequence[str], window: float | None) -> RecordedMotion:
    """Return the motion of a block, with derivatives estimated from the samples near it."""
    own = {name: block[inner] for name, block in near.items()}
    estimated = tuple(name for name in BLOCKS if name not in near)
    if not estimated:
        return RecordedMotion(own["t"], own["q"], own["qd"], own["qdd"], own["qddd"], higher=higher_derivatives(own),
                              tau=own.get("tau"))
    known = {order: near[name] for order, name in enumerate(BLOCKS[:3]) if name in near}
    guesses = estimate_block(near["t"], known, window, joint_types=joint_types).only(inner)
    own |= {name: getattr(guesses, name) for name in ("q", *estimated)}
    return RecordedMotion(own["t"], own["q"], own["qd"], own["qdd"], own["qddd"], estimated, guesses.how,
                          deviation=guesses.deviation, higher=higher_derivatives(own), wrapped=guesses.wrapped,
                          tau=own.get("tau"))


def _with_held_joints(wanted: RecordingRequest, motion: RecordedMotion) -> RecordedMotion:
    """Return the motion with held joints."""
    deviation = None if motion.deviation is None else wanted.with_held_joints("", motion.deviation)
    q, qd, qdd, qddd = (wanted.with_held_joints(name, getattr(motion, name)) for name in BLOCKS)
    return replace(motion, q=q, qd=qd, qdd=qdd, qddd=qddd, deviation=deviation,
                   higher=tuple(wanted.with_held_joints("", block) for block in motion.higher),
                   wrapped=tuple(wanted.recorded_joints[k] for k in motion.wrapped),
                   tau=None if motion.tau is None else wanted.with_held_joints("tau", motion.tau))


BASE = ("base_x", "base_y", "base_z", "base_roll", "base_pitch", "base_yaw")  # [m, rad]
BASE_TYPES = ("prismatic",) * 3 + ("continuous",) * 3


class RecordingSchema(NamedTuple):
    """Joints and derivatives that are read from a recording of a robot.

    names, types : of the joints, those of the robot first
    blocks       : q and as many of its derivatives as the robot can use
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    blocks: tuple[str, ...] = BLOCKS


def recording_schema(robot: Robot) -> RecordingSchema:
    """Return what is read from a recording of a robot."""
    names, types = robot.joint_names, robot.joint_types
    if robot.has_moving_base:
        return RecordingSchema((*names, *BASE), (*types, *BASE_TYPES))
    if not robot.is_fixed_tree:
        if motors := motor_names(robot):
            elastic = [types[names.index(joint)] for joint in robot.elastic_joints]
            return RecordingSchema((*names, *motors), (*types, *elastic))
        return RecordingSchema(names, types, tuple(map(block_name, range(robot.order + 1))))
    return RecordingSchema(names, types)


def motor_names(robot: Robot) -> tuple[str, ...]:
    """Return the names of the motors of all elastic joints; none if the robot file does not name every one."""
    found = robot.motor_joints
    return tuple(found[joint] for joint in robot.elastic_joints) if len(found) == len(robot.elastic_joints) else ()


def joint_motion(robot: Robot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """Return q, qd, qdd, qddd (samples, n) of the robot's own joints."""
    return tuple(block[:, :robot.n] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))


def other_motion(robot: Robot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """Return q, qd, qdd, qddd (samples, k) of the motors or the base."""
    return tuple(block[:, robot.n:] for block in (motion.q, motion.qd, motion.qdd, motion.qddd))


def base_motion(robot: Robot, motion: RecordedMotion) -> BaseState:
    """Return state, acceleration and jerk of the base, one for each sample."""
    return from_coordinates(np.stack(other_motion(robot, motion)))


def flat_motion(robot: Robot, motion: RecordedMotion) -> tuple[np.ndarray, ...]:
    """Return q and as many derivatives as the torque rate takes."""
    given = (*joint_motion(robot, motion), *motion.higher)
    return given[:robot.order + 1]


def check_blocks(robot: Robot, blocks: Sequence[str]) -> None:
    """Raise InputError where the motion of the motors of elastic joints does not follow from these blocks."""
    missing = [block for block in recording_schema(robot).blocks[len(BLOCKS):] if block not in blocks]
    if missing and not robot.is_fixed_tree:
        columns = some(f"{block}_<joint>" for block in missing)
        raise InputError(f"robot '{robot.name}': the motion of the motors of the elastic joints {some(robot.elastic_joints)} "
                         f"is not in the recording. It needs columns {columns}, or positions of the motors under the names "
                         "in the robot file (elastic_joints.<joint>.motor_joint)")
