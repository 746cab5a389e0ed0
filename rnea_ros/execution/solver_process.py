"""A process of its own that solves for time laws: in a thread, a solver would hold the interpreter that ticks wait for.

Requests are sent over a socket that only the two processes have. It closes when either of them ends, however that comes about:
the solver then ends too, and the executor hears of it. A process that is lost is started again and asked once more; where none
can be started, the thread that waits for answers solves.

concurrent.futures.ProcessPoolExecutor is not used: its process runs the user's main program once more, stays behind when the
program is killed, and goes on with an answer that nobody wants any more.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from ..errors import RneaError
from ..scaling.profile import NoLaw

ATTEMPTS = 2  # at an answer
START = 60.0  # s; that a process is given to begin,
GIVE_UP = 10.0  # and to give up an answer that is no longer wanted
LOOK = 0.01  # s; between looks whether it is
NICE = 5  # ticks come first
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RNEA_ROS_THREADS")  # one: ticks need a processor
CODE = "import sys; sys.path[:] = sys.argv[2:]; from rnea_ros.execution import solver_process as s; s.serve(int(sys.argv[1]))"
NOTHING = b""  # sent instead of a request: the one before is no longer wanted
LOST = (OSError, EOFError)  # what the end of the other process looks like; TimeoutError is an OSError

Work = Callable[..., Any]


class SolverLost(RneaError):
    """The solver's process ended before it answered, more than once."""


class SolverProcess(Executor):
    """Answers the newest request: submit(work), where work can be pickled and is called with progress=.

    An older request that has no answer yet is given up, and fails with NoLaw.

    on_event : called with (whether all is well, a sentence) when a process is lost
    losses   : how many were
    """

    def __init__(self, on_event: Callable[[bool, str], None] = lambda well, sentence: None):
        self._on_event = on_event
        self.losses = 0
        self._newest: Work | None = None
        self._process: _Process | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="solver")

    def submit(self, work: Work, /) -> Future:  # type: ignore[override]  # arguments are in `work`
        self._newest = work
        return self._thread.submit(self._answer, work)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._closed, self._newest = True, None
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(wait=wait, cancel_futures=cancel_futures)

    @property
    def pid(self) -> int | None:
        """Of the process, where there is one."""
        return self._process.pid if self._process is not None else None

    def _answer(self, work: Work) -> Any:
        """In the thread."""

        def wanted(*progress: Any) -> None:
            if work is not self._newest:
                raise NoLaw("another answer was asked for")

        for attempt in range(1, ATTEMPTS + 1):
            wanted()
            try:
                process = self._started()
            except LOST as error:
                self._lose(f"cannot be started ({error!r}): a thread solves, and ticks will be late")
                return work(progress=wanted)
            try:
                return process.answer(work, lambda: work is self._newest)
            except LOST:
                self._lose("ended, is started again" if attempt < ATTEMPTS else "ended again")
        raise SolverLost(f"the solver's process ended {ATTEMPTS} times before it answered")

    def _started(self) -> _Process:
        if self._process is None:
            self._process = _Process()
        if self._closed:
            self._process.kill()
        self._process.begun()
        return self._process

    def _lose(self, how: str) -> None:
        process, self._process = self._process, None
        why = f", {process.end()}" if process is not None else ""
        if self._closed:
            raise NoLaw("the solver is closed")
        self.losses += 1
        self._on_event(False, f"the solver's process {how}{why}")


class _Process:
    """Seen from the executor's side."""

    def __init__(self) -> None:
        self._socket, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable or "", "-c", CODE, str(number), *sys.path], pass_fds=[number], stdin=subprocess.DEVNULL,
                env={**dict.fromkeys(THREADS, "1"), **os.environ}, start_new_session=True)  # Ctrl-C is for the executor
        self.pid = self._process.pid
        self._begun = False

    def begun(self) -> None:
        """Wait until it is. Raises OSError or EOFError."""
        if not self._begun:
            if not self._socket.poll(START):
                raise TimeoutError(f"not begun within {START:g} s")
            self._socket.recv_bytes()
            self._begun = True

    def answer(self, work: Work, wanted: Callable[[], bool]) -> Any:
        """Raises what the work raises, and OSError or EOFError."""
        self._socket.send_bytes(pickle.dumps(work))
        until = 0.0
        while not self._socket.poll(LOOK):
            if not until and not wanted():
                self._socket.send_bytes(NOTHING)
                until = time.monotonic() + GIVE_UP
            elif until and time.monotonic() > until:
                raise TimeoutError("goes on with what is no longer wanted")
        well, found = pickle.loads(self._socket.recv_bytes())
        if well:
            return found
        raise found

    def kill(self) -> None:
        """Whoever waits for an answer gets an EOFError."""
        self._process.kill()

    def end(self) -> str:
        """What became of it."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LOOK)
        self._process.kill()
        code = self._process.wait()
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def serve(number: int) -> None:
    """In the solver's process: answer requests on a socket until it closes."""
    for which in (signal.SIGINT, signal.SIGTERM):  # may be sent to a whole group of processes: the executor's end is ours
        signal.signal(which, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICE)
    with suppress(*LOST), Connection(number) as socket:
        socket.send_bytes(NOTHING)  # begun
        while True:
            if request := socket.recv_bytes():
                socket.send_bytes(_answered(request, socket))


def _answered(request: bytes, socket: Connection) -> bytes:
    def progress(what: str, seconds: float) -> None:
        if socket.poll():  # that it is not wanted any more, or nobody is there
            raise NoLaw("another answer was asked for")

    try:
        return pickle.dumps((True, pickle.loads(request)(progress=progress)))
    except Exception as error:
        with suppress(Exception):
            return pickle.dumps((False, error))
        return pickle.dumps((False, RuntimeError(repr(error))))
