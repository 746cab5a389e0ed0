"""What is done to one recording among many: looked through once, then computed part by part, each part a file of its own.

Both functions are called in other processes, on other machines: what they are given and what they return can be pickled.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..motion.limit_use import Peak, Peaks, limit_use
from ..recordings import bags, files, results
from ..recordings.recording import Reading, Recording, Span, Wanted, blocks_of, motions
from ..recordings.schema import check_blocks, recording_schema
from ..recordings.torques import FOLLOWED, SERVED, Torques, asked, parts, torques
from ..robots.kinds import model_id, tree
from ..robots.load import load
from ..robots.protocol import AnyRobot

LAYOUT = 1  # of what is written; another one makes old results void
_PIECE = 1 << 20  # bytes
_PEAKS = 5  # limits of which a part tells the largest use


class Job(NamedTuple):
    """The same for all recordings.

    robot    : pickled; None: each recording describes its own
    options  : of rnea_ros.load, for those that do
    reading  : how recordings tell of the robot
    window   : as in estimate_recording [s]
    kind     : of the results, one of results.FORMATS
    part     : seconds of a recording that become one file
    """

    robot: bytes | None
    options: dict[str, Any]
    reading: Reading
    window: float | None
    kind: str
    part: float


class Plan(NamedTuple):
    """What looking through a recording has told.

    identity : of its content, the robot and the options: other results for another one
    ranges   : numbers of the blocks (Blocks) of each part
    """

    identity: str
    span: Span
    ranges: tuple[range, ...]


class Part(NamedTuple):
    """A part that is done: its file, what is in it, and what was found on the way."""

    file: str
    rows: int
    bytes: int
    digest: str
    left_out: dict[str, int]
    estimated: str  # how, for people
    peaks: tuple[Peak, ...]


def survey(job: Job, path: Path) -> Plan:
    """InputError where the recording cannot be read, or the robot's torques not be computed from it."""
    robot, recording = _opened(job, path, None)
    asked(robot)
    blocks = blocks_of(recording)
    count = blocks.number if isinstance(robot, FOLLOWED) else max(1, round(job.part / blocks.length))
    ranges = tuple(range(k, min(k + count, blocks.number)) for k in range(0, blocks.number, count))
    said = (LAYOUT, content(path), model_id(robot), tree(robot).backend, tuple(job.reading), job.window, job.kind, job.part)
    return Plan(hashlib.sha256(repr(said).encode()).hexdigest(), recording.span, ranges)


def compute(job: Job, path: Path, plan: Plan, number: int, target: Path) -> Part:
    """Write the torques of one part."""
    robot, recording = _opened(job, path, plan.span)
    torque_and_rate, rows = asked(robot), 0
    peaks = Peaks(limit_use(robot))
    how = ""

    def computed() -> Iterator[Torques]:
        nonlocal rows, how
        for block in motions(recording, recording_schema(robot).types, job.window, plan.ranges[number]):
            how = how or (block.how.method if block.how else "")
            files.check_angle_unit(path, job.reading, robot, block.q)
            for motion in parts(block):
                found = torques(torque_and_rate, motion)
                peaks.see(found.t, found.tau, found.tau_rate, found.q, found.qd, found.qdd, found.qddd)
                rows += len(found.t)
                yield found

    results.write(target, job.kind, robot.joint_names, plan.span.origin, computed())
    return Part(target.name, rows, target.stat().st_size, digest(target), dict(recording.left_out), how,
                tuple(peaks.all()[:_PEAKS]))


def digest(path: Path) -> str:
    """Of a file's content."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def content(path: Path) -> str:
    """Digest of a recording: of its file, or of all files of a bag."""
    if not path.is_dir():
        return digest(path)
    return repr([(file.name, digest(file)) for file in sorted(path.iterdir()) if file.is_file()])


def _opened(job: Job, path: Path, span: Span | None) -> tuple[AnyRobot, Recording]:
    robot = _unpickled(job.robot) if job.robot else _described(path, job.options)
    read = recording_schema(robot)
    recording = files.open_recording(path, Wanted(read.names, read.blocks, reading=job.reading, joint_types=read.types), span)
    check_blocks(robot, recording.blocks)
    files.check_time_unit(path, job.reading, *recording.span[:3])
    return robot, recording


def _described(path: Path, options: dict[str, Any]) -> AnyRobot:
    """The robot that a bag describes."""
    if not files.is_bag(path):
        raise InputError("says nothing of the robot; its URDF is needed before the recordings")
    robot = _loaded(bags.description(path).encode(), pickle.dumps(options))
    if not isinstance(robot, SERVED):
        raise InputError(f"its robot is a {type(robot).__name__}, whose torques a recording of joint states does not tell")
    return robot


@lru_cache(maxsize=1)
def _unpickled(robot: bytes) -> AnyRobot:
    return pickle.loads(robot)


@lru_cache(maxsize=4)
def _loaded(urdf: bytes, options: bytes) -> AnyRobot:
    return load(urdf, **pickle.loads(options))
