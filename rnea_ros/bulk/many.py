"""The same work for many recordings, by workers of whatever kind: in this process, in others, on a cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import in_words
from .job import Job, Plan, compute, survey
from .ledger import Ledger

AHEAD = 2  # tasks for each worker that are handed over: one to work at, one to go on with


class Outcome(NamedTuple):
    """What became of a recording: rows of results, whether they were there before, or the reason why there are none."""

    path: Path
    rows: int = 0
    before: bool = False
    failed: str = ""


@dataclass
class _Entry:
    """A recording that is being worked at."""

    path: Path
    folder: Path
    plan: Plan | None = None
    ledger: Ledger | None = None
    open: int = 0
    failed: str = ""


def run(job: Job, targets: Mapping[Path, Path], executor: Executor, workers: int,
        watch: Callable[[Path, float], None] = lambda path, share: None) -> Iterator[Outcome]:
    """The outcome of each recording, as they come. targets: the folder for the results of each.

    watch(path, share) hears which share of which recording has been done just now. No more is in hand at any time than
    workers need, however many recordings there are.
    """
    waiting = deque(_Entry(path, folder) for path, folder in targets.items())
    ready: deque[tuple[_Entry, int]] = deque()
    flying: dict[Future[Any], tuple[_Entry, int]] = {}
    while waiting or ready or flying:
        while (waiting or ready) and len(flying) < AHEAD * workers:
            entry, number = ready.popleft() if ready else (waiting.popleft(), -1)
            flying[_submitted(executor, job, entry, number)] = entry, number
        for future in wait(flying, return_when=FIRST_COMPLETED).done:
            entry, number = flying.pop(future)
            try:
                _taken(job, entry, number, future.result(), ready)
                watch(entry.path, 1.0 / len(entry.plan.ranges) if entry.plan and number >= 0 else 0.0)
            except Exception as error:  # of a worker, or of the disk: this recording's alone
                entry.failed = entry.failed or _reason(entry.path, error)
            if entry.failed:
                entry.open -= sum(other is entry for other, _ in ready)
                ready = deque((other, k) for other, k in ready if other is not entry)
            entry.open -= number >= 0
            if not entry.open:
                yield _ended(entry, before=number < 0)


def _submitted(executor: Executor, job: Job, entry: _Entry, number: int) -> Future[Any]:
    """A part of an entry, or, for -1, the look through it."""
    try:
        if entry.plan is None or entry.ledger is None:
            return executor.submit(survey, job, entry.path)
        return executor.submit(compute, job, entry.path, entry.plan, number, entry.ledger.target(number))
    except Exception as error:  # the workers are gone
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _taken(job: Job, entry: _Entry, number: int, found: Any, ready: deque[tuple[_Entry, int]]) -> None:
    """What a worker has found: a plan, or a part."""
    if number >= 0:
        assert entry.ledger
        entry.ledger.add(number, found)
        return
    entry.plan = found
    entry.ledger = Ledger(entry.path, entry.folder, found, job.kind)
    ready.extend((entry, k) for k in entry.ledger.missing)
    entry.open = len(entry.ledger.missing)


def _ended(entry: _Entry, before: bool) -> Outcome:
    if not entry.failed and entry.ledger:
        try:
            entry.ledger.complete()
            return Outcome(entry.path, entry.ledger.rows, before)
        except Exception as error:
            entry.failed = _reason(entry.path, error)
    return Outcome(entry.path, failed=entry.failed)


def _reason(path: Path, error: Exception) -> str:
    if isinstance(error, BrokenProcessPool):
        return "a worker was ended from outside, as happens where memory runs out; what is done stays done"
    said = str(error) if isinstance(error, OSError) else in_words(error)
    return said.removeprefix(f"{path}: ")


# ------------------------------------------------------------------ workers on this machine

class _Here(Executor):
    """A worker in this very process."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as error:
            future.set_exception(error)
        return future


def local(workers: int) -> Executor:
    """So many processes; for 1, none beside this."""
    if workers == 1:
        return _Here()
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))  # a fork would inherit threads that are not there


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
