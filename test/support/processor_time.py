"""Processor time of this process and of all processes that it has started, running or ended."""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from pathlib import Path


def processor_time() -> float:
    """Return the processor time [s] of this process and its descendants, without ended ones that nothing has waited for."""
    own, ended = (resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    tick = os.sysconf("SC_CLK_TCK")
    children: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="latin-1").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children[int(fields[1])].append((int(status.parent.name), sum(map(int, fields[11:15])) / tick))  # and of its children
    waiting = [os.getpid()]
    while waiting:
        for pid, seconds in children[waiting.pop()]:
            total += seconds
            waiting.append(pid)
    return total
