"""Torques of many recordings: computed part by part, by local processes or a Dask cluster, with checkpoints.

Each recording is surveyed once (plan_recording) and computed in parts, one file each (compute_part). Both functions run in
other processes or on other machines, so arguments and results can be pickled. A checkpoint file beside the results
records which parts are complete, so that an interrupted run continues where it ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, MissingPackage, RneaError, in_words
from ..robots.load import load
from ..robots.robot import Robot
from ..trajectory.limit_utilization import PeakTracker, PeakUtilization, limit_utilization
from . import bags, files
from .csv_files import Torques, compute_torques, motion_parts, torque_function
from .recording import (
    ReadingOptions,
    Recording,
    RecordingRequest,
    RecordingSpan,
    blocks_of,
    check_blocks,
    motions,
    recording_schema,
)

RESULT_VERSION = 1  # version of the results; results of other versions are discarded
_READ_BYTES = 1 << 20
_MAX_PEAKS = 5  # number of limits whose largest utilization is recorded per part


class BatchJob(NamedTuple):
    """Options common to all recordings.

    robot    : pickled; None: each recording contains its own description
    options  : of rnea_ros.load, in that case
    reading  : how recordings describe the robot
    window   : as in estimate_recording [s]
    kind     : of the results, one of TORQUE_FORMATS
    part     : duration of a recording that becomes one file [s]
    """

    robot: bytes | None
    options: dict[str, Any]
    reading: ReadingOptions
    window: float | None
    kind: str
    part: float


class BatchPlan(NamedTuple):
    """Survey of a recording.

    identity : digest of content, robot and options; results of another identity are discarded
    ranges   : numbers of the blocks of each part
    """

    identity: str
    span: RecordingSpan
    ranges: tuple[range, ...]


class BatchPart(NamedTuple):
    """Completed part: its file, content, and findings."""

    file: str
    rows: int
    bytes: int
    digest: str
    left_out: dict[str, int]
    estimated: str  # method of estimated derivatives
    peaks: tuple[PeakUtilization, ...]


def plan_recording(job: BatchJob, path: Path) -> BatchPlan:
    """Return the plan of a recording. Raises InputError if it cannot be read or is insufficient for torques."""
    robot, recording = _opened(job, path, None)
    torque_function(robot)
    blocks = blocks_of(recording)
    count = blocks.number if not robot.is_fixed_tree else max(1, round(job.part / blocks.length))
    ranges = tuple(range(k, min(k + count, blocks.number)) for k in range(0, blocks.number, count))
    identity = (RESULT_VERSION, recording_digest(path), robot.model_id, robot.tree.backend,
                tuple(job.reading), job.window, job.kind, job.part)
    return BatchPlan(hashlib.sha256(repr(identity).encode()).hexdigest(), recording.span, ranges)


def compute_part(job: BatchJob, path: Path, plan: BatchPlan, number: int, target: Path) -> BatchPart:
    """Compute and write the torques of one part."""
    robot, recording = _opened(job, path, plan.span)
    torque_and_rate, rows = torque_function(robot), 0
    peaks = PeakTracker(limit_utilization(robot))
    how = ""

    def computed() -> Iterator[Torques]:
        nonlocal rows, how
        for block in motions(recording, recording_schema(robot).types, job.window, plan.ranges[number]):
            how = how or (block.how.method if block.how else "")
            files.check_angle_unit(path, job.reading, robot, block.q)
            for motion in motion_parts(block):
                found = compute_torques(torque_and_rate, motion)
                peaks.add(found.t, found.tau, found.tau_rate, found.q, found.qd, found.qdd, found.qddd)
                rows += len(found.t)
                yield found

    files.write_torques(target, job.kind, robot.joint_names, plan.span.origin, computed())
    return BatchPart(target.name, rows, target.stat().st_size, file_digest(target), dict(recording.left_out), how,
                tuple(peaks.ranked()[:_MAX_PEAKS]))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_READ_BYTES):
            found.update(piece)
    return found.hexdigest()


def recording_digest(path: Path) -> str:
    """Return the digest of a recording: of its file, or of all files of a bag."""
    if not path.is_dir():
        return file_digest(path)
    return repr([(file.name, file_digest(file)) for file in sorted(path.iterdir()) if file.is_file()])


def _opened(job: BatchJob, path: Path, span: RecordingSpan | None) -> tuple[Robot, Recording]:
    robot = _unpickled(job.robot) if job.robot else _described(path, job.options)
    read = recording_schema(robot)
    request = RecordingRequest(read.names, read.blocks, reading=job.reading, joint_types=read.types)
    recording = files.open_recording(path, request, span)
    check_blocks(robot, recording.blocks)
    files.check_time_unit(path, job.reading, *recording.span[:3])
    return robot, recording


def _described(path: Path, options: dict[str, Any]) -> Robot:
    """Return the robot that a bag describes."""
    if not files.is_bag(path):
        raise InputError("contains no robot description; give a URDF before the recordings")
    return _loaded(bags.recorded_urdf(path).encode(), pickle.dumps(options))


@lru_cache(maxsize=1)
def _unpickled(robot: bytes) -> Robot:
    return pickle.loads(robot)


@lru_cache(maxsize=4)
def _loaded(urdf: bytes, options: bytes) -> Robot:
    return load(urdf, **pickle.loads(options))


CHECKPOINT_FILE = "result.json"


class Checkpoint:
    """Checkpoint of the results of one recording in their folder.

    A part is complete if it is listed and its file has the recorded size and digest; files appear under their names only once
    they are complete. Results of another content, robot or option are discarded.

    complete : mark all parts as complete
    missing  : numbers of the parts that are not complete
    """

    def __init__(self, recording: Path, folder: Path, plan: BatchPlan, kind: str):
        self._file, self._folder, self._kind = folder / CHECKPOINT_FILE, folder, kind
        self._content: dict[str, Any] = {"recording": str(recording), "identity": plan.identity, "complete": False}
        self._content["parts"] = {}
        self._count = len(plan.ranges)
        folder.mkdir(parents=True, exist_ok=True)
        before = self._before()
        if before.get("identity") == plan.identity:
            self._content["parts"] = {name: part for name, part in before["parts"].items() if self._whole(part)}
        else:
            for part in before.get("parts", {}).values():
                self.target(part["file"]).unlink(missing_ok=True)
        self._write()

    @property
    def missing(self) -> list[int]:
        return [number for number in range(self._count) if str(number) not in self._content["parts"]]

    @property
    def rows(self) -> int:
        return sum(part["rows"] for part in self._parts())

    def target(self, part: int | str) -> Path:
        """Return the file of a part, by number or by name."""
        name = part if isinstance(part, str) else f"{self._folder.name}_{part:04}.{self._kind}"
        return self._folder / Path(name).name

    def add(self, number: int, part: BatchPart) -> None:
        parts = self._content["parts"] | {str(number): {**part._asdict(), "peaks": [peak._asdict() for peak in part.peaks]}}
        self._content["parts"] = dict(sorted(parts.items(), key=lambda entry: int(entry[0])))
        self._write()

    def complete(self) -> None:
        """Record that all parts are complete, with totals."""
        found = self._parts()
        left_out: Counter[str] = sum((Counter(part["left_out"]) for part in found), Counter())
        largest: dict[tuple[str, str], dict[str, Any]] = {}
        for peak in sorted((peak for part in found for peak in part["peaks"]), key=lambda peak: peak["share"]):
            largest[peak["owner"], peak["quantity"]] = peak
        self._content |= {"complete": True, "samples": self.rows, "left_out": left_out,
                          "limits": sorted(largest.values(), key=lambda peak: -peak["share"])}
        if self._kind == files.MCAP:
            bags.write_bag_metadata(self._folder, [self._folder / part["file"] for part in found])
        self._write()

    def _parts(self) -> list[dict[str, Any]]:
        return list(self._content["parts"].values())

    def _whole(self, part: dict[str, Any]) -> bool:
        file = self.target(part["file"])
        return file.is_file() and file.stat().st_size == part["bytes"] and file_digest(file) == part["digest"]

    def _before(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return found if isinstance(found["parts"], dict) and isinstance(found["identity"], str) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _write(self) -> None:
        made = self._file.with_name(f".{CHECKPOINT_FILE}.partial")
        made.write_text(json.dumps(self._content, indent=1) + "\n", encoding="utf-8")
        made.replace(self._file)


TASKS_PER_WORKER = 2  # submitted tasks per worker: one that runs and one that waits


class BatchOutcome(NamedTuple):
    """Outcome of a recording: rows of results, whether they existed before, or the reason of the failure."""

    path: Path
    rows: int = 0
    before: bool = False
    failed: str = ""


@dataclass
class _BatchEntry:
    """State of a recording in progress."""

    path: Path
    folder: Path
    plan: BatchPlan | None = None
    ledger: Checkpoint | None = None
    open: int = 0
    failed: str = ""


def run_batch(job: BatchJob, targets: Mapping[Path, Path], executor: Executor, workers: int,
        watch: Callable[[Path, float], None] = lambda path, share: None) -> Iterator[BatchOutcome]:
    """Yield the outcome of each recording as they complete. targets: folder for the results of each.

    watch(path, share) is called with the share of a recording that was just completed. The number of tasks in flight is
    bounded by the workers, for any number of recordings.
    """
    waiting = deque(_BatchEntry(path, folder) for path, folder in targets.items())
    ready: deque[tuple[_BatchEntry, int]] = deque()
    in_flight: dict[Future[Any], tuple[_BatchEntry, int]] = {}
    while waiting or ready or in_flight:
        while (waiting or ready) and len(in_flight) < TASKS_PER_WORKER * workers:
            entry, number = ready.popleft() if ready else (waiting.popleft(), -1)
            in_flight[_submit(executor, job, entry, number)] = entry, number
        for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
            entry, number = in_flight.pop(future)
            try:
                _add_result(job, entry, number, future.result(), ready)
                watch(entry.path, 1.0 / len(entry.plan.ranges) if entry.plan and number >= 0 else 0.0)
            except Exception as error:  # in a worker or on disk: fails this recording only
                entry.failed = entry.failed or _reason(entry.path, error)
            if entry.failed:
                entry.open -= sum(other is entry for other, _ in ready)
                ready = deque((other, k) for other, k in ready if other is not entry)
            entry.open -= number >= 0
            if not entry.open:
                yield _ended(entry, before=number < 0)


def _submit(executor: Executor, job: BatchJob, entry: _BatchEntry, number: int) -> Future[Any]:
    """Submit a part of an entry; for number -1, its survey."""
    try:
        if entry.plan is None or entry.ledger is None:
            return executor.submit(plan_recording, job, entry.path)
        return executor.submit(compute_part, job, entry.path, entry.plan, number, entry.ledger.target(number))
    except Exception as error:  # the workers are gone
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _add_result(job: BatchJob, entry: _BatchEntry, number: int, found: Any, ready: deque[tuple[_BatchEntry, int]]) -> None:
    """Add the result of a worker: a plan, or a part."""
    if number >= 0:
        assert entry.ledger
        entry.ledger.add(number, found)
        return
    entry.plan = found
    entry.ledger = Checkpoint(entry.path, entry.folder, found, job.kind)
    ready.extend((entry, k) for k in entry.ledger.missing)
    entry.open = len(entry.ledger.missing)


def _ended(entry: _BatchEntry, before: bool) -> BatchOutcome:
    if not entry.failed and entry.ledger:
        try:
            entry.ledger.complete()
            return BatchOutcome(entry.path, entry.ledger.rows, before)
        except Exception as error:
            entry.failed = _reason(entry.path, error)
    return BatchOutcome(entry.path, failed=entry.failed)


def _reason(path: Path, error: Exception) -> str:
    if isinstance(error, BrokenProcessPool):
        return "a worker was terminated, possibly for lack of memory; completed parts are kept"
    message = str(error) if isinstance(error, OSError) else in_words(error)
    return message.removeprefix(f"{path}: ")


# ------------------------------------------------------------------ workers on this machine

class _SerialExecutor(Executor):
    """Executor that runs tasks in this process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as error:
            future.set_exception(error)
        return future


def local_executor(workers: int) -> Executor:
    """Return an executor with so many processes; 1: this process."""
    if workers == 1:
        return _SerialExecutor()
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))  # a fork would inherit threads that are not there


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


SCHEDULER_TIMEOUT_S = 10.0  # largest wait for the Dask scheduler [s]


@contextmanager
def connect_cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to the Dask cluster of a scheduler; yields its executor and the number of its threads.

    Workers need this package, and the same paths for recordings and results.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackage("a Dask cluster needs distributed", "dask") from None
    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT_S)
    except (OSError, ValueError, TypeError) as error:
        raise RneaError(f"{address}: no Dask scheduler answers: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise RneaError(f"{address}: the Dask cluster has no workers")
        yield client.get_executor(pure=False), threads
