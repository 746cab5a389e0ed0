"""Torques of many recordings: a folder of results for each, by workers here or on a cluster."""

from __future__ import annotations

import argparse
import glob
import os
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError, some
from ..io import batch, files, torques
from ..io.batch import BatchOutcome as OneOutcome
from ..model.robot_file import robot_file
from ..robots.robot import Robot
from . import output_files, reading, robots
from .outcome import Outcome
from .progress import ProgressLine

PART = 300.0  # s
FAILED_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("many recordings", "OUT is a folder; what is done already is not done again")
    group.add_argument("--format", choices=files.TORQUE_FORMATS, help="of the results, default parquet")
    group.add_argument("--workers", type=int, metavar="N", help="processes; default: one for each processor")
    group.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster that works instead: tcp://host:8786")
    group.add_argument("--part", type=float, metavar="S", help=f"seconds of a recording in one file, default {PART:g}")


def asked(args: argparse.Namespace) -> bool:
    """Whether the output is a folder, for one recording or many."""
    given, output = args.recordings, args.output
    options = (args.format, args.workers, args.dask, args.part)
    several = len(given) > 1 or (glob.has_magic(given[0]) and not Path(given[0]).exists())
    several = several or (Path(given[0]).is_dir() and not files.is_bag(given[0]))
    folder = output.endswith(os.sep) or os.path.isdir(output)
    if not (several or folder or any(option is not None for option in options)):
        return False
    if Path(output).suffix[1:] in files.TORQUE_FORMATS and not os.path.isdir(output):
        raise InputError(f"-o {output}: of several recordings, or with options for many, results go into a folder")
    return True


def run(args: argparse.Namespace) -> Outcome:
    """Exit code 1 if a recording failed."""
    if args.plot:
        raise InputError("--plot draws one recording")
    for option, value in (("--workers", args.workers), ("--part", args.part)):
        if value is not None and not value > 0:
            raise InputError(f"{option} is {value:g}; a number above zero is needed")
    if args.dask and args.workers:
        raise InputError("--workers is for this machine, --dask for a cluster; one of them")
    kind, folder = args.format or files.PARQUET, Path(args.output)
    files.check_output_format(kind)
    output_files.check_folder(folder)
    found = {path: folder / name for path, name in files.find_recordings(args.recordings).items()
             if folder.resolve() not in path.resolve().parents}
    if not found:
        raise InputError(f"only results, and no recordings, in {some(args.recordings)}")
    work = _job(args, kind)
    progress, bytes_done = ProgressLine(), 0.0
    outcomes: list[OneOutcome] = []
    sizes = {path: _size(path) for path in found}
    total = max(sum(sizes.values()), 1)

    def watch(path: Path, share: float) -> None:
        nonlocal bytes_done
        bytes_done += share * sizes[path]
        failed = sum(bool(outcome.failed) for outcome in outcomes)
        progress(f"{len(outcomes)} of {len(found)} recordings, {100.0 * bytes_done / total:.0f} % of {total / 1e9:.3g} GB"
                 + (f", {failed} failed" if failed else ""))

    with _workers(args) as (executor, count):
        for outcome in batch.run_batch(work, found, executor, count, watch):
            outcomes.append(outcome)
            watch(outcome.path, 0.0)
    progress.close()
    return _report(outcomes, folder)


@contextmanager
def _workers(args: argparse.Namespace) -> Iterator[tuple[Executor, int]]:
    if args.dask:
        with batch.connect_cluster(args.dask) as connected:
            yield connected
        return
    count = args.workers or batch.available_processors()
    executor = batch.local_executor(count)
    try:
        yield executor, count
    finally:
        executor.shutdown(cancel_futures=True)


def _job(args: argparse.Namespace, kind: str) -> batch.BatchJob:
    """With the robot of the command line, or what to make of those that bags describe."""
    robot, options = None, {}
    if args.urdf is None:
        options = {name: getattr(args, name) for name in ("base", "backend", "gravity", "friction")}
        options["robot_file"] = robot_file.draft(args.robot_file) if args.robot_file else None
    else:
        served = robots.served(args, *torques.SUPPORTED_ROBOTS)
        torques.torque_function(served)
        if isinstance(served, Robot):
            served.torque_and_rate(*[[0.0] * served.n] * 4)  # compiled here, once, for all workers of this machine
        robot = pickle.dumps(served)
    return batch.BatchJob(robot, options, reading.asked(args), args.window, kind, args.part or PART)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _report(outcomes: list[OneOutcome], folder: Path) -> Outcome:
    failed = [outcome for outcome in outcomes if outcome.failed]
    before = sum(outcome.before and not outcome.failed for outcome in outcomes)
    rows = sum(outcome.rows for outcome in outcomes)
    for outcome in failed[:FAILED_SHOWN]:
        print(f"failed: {outcome.path}: {outcome.failed}", file=sys.stderr)
    if len(failed) > FAILED_SHOWN:
        print(f"failed: {len(failed) - FAILED_SHOWN} more", file=sys.stderr)
    return Outcome(f"{len(outcomes) - len(failed)} of {len(outcomes)} recordings, {rows} samples -> {folder}"
                   + (f"; {before} of them were there already" if before else ""),
                   {"recordings": len(outcomes), "samples": rows, "folder": folder, "there_already": before,
                    "failed": {str(outcome.path): outcome.failed for outcome in failed}}, int(bool(failed)))
