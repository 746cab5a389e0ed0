"""Process that solves for time laws: a solver thread would hold the interpreter lock, for which ticks would wait.

Requests are sent over a socket between the two processes. It closes when either of them ends, for any reason: the solver then
ends too, and the executor receives an error. A lost process is restarted, and the request repeated; if no process can be
started, the thread that waits for answers solves.

concurrent.futures.ProcessPoolExecutor is not used: its process imports the main program of the user again, survives when the
program is killed, and cannot cancel an answer.
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
from ..trajectory.time_optimal import NoLaw

MAX_ATTEMPTS = 2  # most attempts at an answer
START_TIMEOUT_S = 60.0  # longest wait for the start of a process
CANCEL_TIMEOUT_S = 10.0  # longest wait for the end of a cancelled request
POLL_S = 0.01  # interval between checks for cancellation
NICE = 5  # niceness of the process: ticks have priority
# set to one thread each: ticks need a processor
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RNEA_ROS_THREADS")
CODE = "import sys; sys.path[:] = sys.argv[2:]; from rnea_ros.execution import solver_process as s; s.serve(int(sys.argv[1]))"
CANCEL = b""  # message that cancels the previous request
LOST = (OSError, EOFError)  # errors after the other process has ended; includes TimeoutError

Work = Callable[..., Any]


class SolverLost(RneaError):
    """Error: the solver process ended before it answered, more than once."""


class SolverProcess(Executor):
    """Executor that answers only the newest request: submit(work), where work can be pickled and is called with progress=.

    An older request without an answer is cancelled, and fails with NoLaw.

    on_event : called with (is_ok, message) when a process is lost
    losses   : number of lost processes
    """

    def __init__(self, on_event: Callable[[bool, str], None] = lambda is_ok, message: None):
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
        if (process := self._process) is not None:  # the thread may replace it
            process.kill()
        self._thread.shutdown(wait=wait, cancel_futures=cancel_futures)

    @property
    def pid(self) -> int | None:
        """Process id; None if there is no process."""
        process = self._process
        return process.pid if process is not None else None

    def _answer(self, work: Work) -> Any:
        """Answer a request; runs in the thread."""

        def check_wanted(*progress: Any) -> None:
            if work is not self._newest:
                raise NoLaw("the request was replaced by a newer one")

        for attempt in range(1, MAX_ATTEMPTS + 1):
            check_wanted()
            try:
                process = self._running_process()
            except LOST as error:
                self._report_loss(f"cannot be started ({error!r}): a thread solves instead, and ticks will be late")
                return work(progress=check_wanted)
            try:
                return process.answer(work, lambda: work is self._newest)
            except LOST:
                self._report_loss("ended and is started again" if attempt < MAX_ATTEMPTS else "ended again")
        raise SolverLost(f"the solver process ended {MAX_ATTEMPTS} times before it answered")

    def _running_process(self) -> _Process:
        if self._process is None:
            self._process = _Process()
        if self._closed:
            self._process.kill()
        self._process.wait_started()
        return self._process

    def _report_loss(self, how: str) -> None:
        process, self._process = self._process, None
        why = f", {process.end()}" if process is not None else ""
        if self._closed:
            raise NoLaw("the solver is closed")
        self.losses += 1
        self._on_event(False, f"the solver process {how}{why}")


class _Process:
    """Connection of the executor to a solver process."""

    def __init__(self) -> None:
        self._socket, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable or "", "-c", CODE, str(number), *sys.path], pass_fds=[number], stdin=subprocess.DEVNULL,
                env={**dict.fromkeys(THREADS, "1"), **os.environ}, start_new_session=True)  # Ctrl-C is for the executor
        self.pid = self._process.pid
        self._has_started = False

    def wait_started(self) -> None:
        """Wait until the process has started. Raises OSError or EOFError."""
        if not self._has_started:
            if not self._socket.poll(START_TIMEOUT_S):
                raise TimeoutError(f"not started within {START_TIMEOUT_S:g} s")
            self._socket.recv_bytes()
            self._has_started = True

    def answer(self, work: Work, wanted: Callable[[], bool]) -> Any:
        """Return the answer to a request. Raises the exceptions of the work, and OSError or EOFError."""
        self._socket.send_bytes(pickle.dumps(work))
        until = 0.0
        while not self._socket.poll(POLL_S):
            if not until and not wanted():
                self._socket.send_bytes(CANCEL)
                until = time.monotonic() + CANCEL_TIMEOUT_S
            elif until and time.monotonic() > until:
                raise TimeoutError(f"request not cancelled within {CANCEL_TIMEOUT_S:g} s")
        is_ok, found = pickle.loads(self._socket.recv_bytes())
        if is_ok:
            return found
        raise found

    def kill(self) -> None:
        """Kill the process; a thread that waits for an answer gets an EOFError."""
        self._process.kill()

    def end(self) -> str:
        """End the process, and return its exit status as text."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(POLL_S)
        self._process.kill()
        code = self._process.wait()
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def serve(number: int) -> None:
    """Answer requests on a socket until it closes. Main function of the solver process."""
    for which in (signal.SIGINT, signal.SIGTERM):  # may be sent to a whole process group: this process ends with the executor
        signal.signal(which, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICE)
    with suppress(*LOST), Connection(number) as socket:
        socket.send_bytes(CANCEL)  # has started
        while True:
            if request := socket.recv_bytes():
                socket.send_bytes(_answered(request, socket))


def _answered(request: bytes, socket: Connection) -> bytes:
    def progress(what: str, seconds: float) -> None:
        if socket.poll():  # a cancellation, or the end of the executor
            raise NoLaw("the request was replaced by a newer one")

    try:
        return pickle.dumps((True, pickle.loads(request)(progress=progress)))
    except Exception as error:
        with suppress(Exception):
            return pickle.dumps((False, error))
        return pickle.dumps((False, RuntimeError(repr(error))))
