"""Fuzzing of one target: python -m fuzz.campaign TARGET --seconds 10 --seed 1 --folder build/fuzz

It runs in a separate process with limited memory that is filled with a pattern (MALLOC_PERTURB_). Findings are written into
the folder: the input as TARGET-DIGEST, the error as TARGET-DIGEST.txt. TARGET.last has the current input, in case the
process dies. Outcomes of all inputs are printed as JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz import files, motions, nodes, people, policies, robots, senders
from fuzz.mutation import LONGEST, mutated
from fuzz.target import Target, Try, outcome

MODULES = files, robots, nodes, motions, policies, people, senders
TARGETS = {target.name: target for module in MODULES for target in module.TARGETS}
PATIENCE = 10.0  # [s], processor time for one input
MEMORY = 4 << 30  # bytes of address space, beyond what is in use at the start
INPUTS_KEPT = 5  # inputs written for each line that raised
FINDINGS = 5  # findings after which a target is left


class Slow(Exception):
    """Raised if an input takes more than PATIENCE."""


class Campaign:
    """Fuzzing of one target. findings: last line of each failure; became: number of inputs by outcome."""

    def __init__(self, target: Target, seed: int, folder: Path):
        self.target, self.folder = target, folder
        self.became: Counter[str] = Counter()
        self.findings: dict[str, str] = {}
        self._found: Counter[str] = Counter()  # inputs at each line
        self._rng, self._corpus = random.Random(f"{target.name} {seed}"), target.seeds()

    def run(self, seconds: float, count: int) -> None:
        """Try the seeds without change, then mutated inputs."""
        with tempfile.TemporaryDirectory(dir=_memory_folder()) as own, _kept(self.folder / f"{self.target.name}.last") as kept:
            attempt, end = self.target.make(Path(own)), time.monotonic() + seconds
            for data in self._inputs():
                kept[:4 + len(data)] = struct.pack("<I", len(data)) + data
                self.try_one(attempt, data)
                if time.monotonic() > end or self.became.total() >= count or len(self.findings) >= FINDINGS:
                    return

    def try_one(self, attempt: Try, data: bytes) -> None:
        try:
            with _patience():
                self.became[outcome(attempt, data)] += 1
        except BaseException as error:  # any exception is a finding
            if isinstance(error, KeyboardInterrupt):
                raise
            self.became["FOUND"] += 1
            self._find(data, error)

    def _inputs(self) -> Iterator[bytes]:
        yield from self._corpus
        while True:
            yield (self.target.generate(self._rng) if self.target.generate else
                   mutated(self._rng, self._corpus, self.target.words))

    def _find(self, data: bytes, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
        self._found[where] += 1
        if self._found[where] <= INPUTS_KEPT:
            name = f"{self.target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
            (self.folder / name).write_bytes(data)
            text = "".join(traceback.format_exception(error))
            (self.folder / f"{name}.txt").write_text(text, encoding="utf-8", errors="replace")
            self.findings.setdefault(where, f"{name}: {str(error).splitlines()[0][:300] if str(error) else where}")


def _memory_folder() -> str | None:
    """Return a folder in memory, if there is one: on a disk, files of inputs take longer to replace than to read."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def _patience() -> Iterator[None]:
    if signal.getsignal(signal.SIGVTALRM) is not _slow:  # other processes would be ended by the signal
        yield
        return
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _slow(*_: Any) -> None:
    raise Slow(f"more than {PATIENCE:g} s of processor time")


@contextmanager
def _kept(path: Path) -> Iterator[mmap.mmap]:
    """Yield a file for the current input, which remains only if this process dies."""
    path.write_bytes(bytes(LONGEST + 4))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), LONGEST + 4) as kept:
        yield kept
    path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    if "MALLOC_PERTURB_" not in os.environ:
        command = [sys.executable, "-m", "fuzz.campaign", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "MALLOC_PERTURB_": "165", "RNEA_ROS_CACHE": ""})
    signal.signal(signal.SIGVTALRM, _slow)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    given.folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(TARGETS[given.target], given.seed, given.folder)
    campaign.run(given.seconds, given.count)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"became": dict(campaign.became), "found": campaign.findings, "megabytes": megabytes}))
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads of nodes


if __name__ == "__main__":
    main()
