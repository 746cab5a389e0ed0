"""What a control computer may ask of a process: real-time priority, memory that stays, a garbage collector with less to do.

Everything is off by default. What the system does not allow is refused when the node starts, with what would allow it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import threading
from pathlib import Path

from rnea_ros import InputError
from rnea_ros.nodes.common.parameters import Values

_CURRENT_AND_FUTURE = 1 | 2  # MCL_CURRENT | MCL_FUTURE of Linux


def settle(values: Values) -> None:
    """Apply process.priority and process.lock_memory, before any thread of the node is started. Raises InputError."""
    if values["process.lock_memory"]:
        _lock_memory()
    if values["process.priority"]:
        _run_at(values["process.priority"])


def settle_thread(values: Values) -> None:
    """process.priority for the calling thread, which was made later than settle() was called."""
    if values["process.priority"]:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(values["process.priority"]))


def model_is_ready(values: Values) -> None:
    """Take all that lives now, the model among it, out of the garbage collector's sight."""
    if values["process.freeze_gc"]:
        gc.collect()
        gc.freeze()


def _run_at(priority: int) -> None:
    """This thread and the middleware's. Threads that are made later, such as the one that compiles models, are ordinary."""
    try:
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        python = {thread.native_id for thread in threading.enumerate()} - {threading.get_native_id()}
        for task in Path("/proc/self/task").iterdir():
            if int(task.name) not in python:
                os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))
    except (AttributeError, OSError) as error:
        raise InputError(f"process.priority is {priority}, but this system does not let this process run in real time "
                         f"({error}): give its user an rtprio limit (/etc/security/limits.d, then log in again) or the "
                         "process CAP_SYS_NICE, or leave it at 0") from None


def _lock_memory() -> None:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    hint = "give its user an unlimited memlock limit (/etc/security/limits.d, then log in again), or leave it false"
    if limit != resource.RLIM_INFINITY and os.geteuid() != 0:  # a limit that is met later would end the process
        raise InputError(f"process.lock_memory is true, but this process may lock {limit} bytes only: {hint}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_CURRENT_AND_FUTURE):
        raise InputError("process.lock_memory is true, but this system does not let this process lock its memory "
                         f"({os.strerror(ctypes.get_errno())}): {hint}")
