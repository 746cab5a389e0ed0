"""SIGINT, SIGTERM, and failures of what spins it, for a node that has something to bring to an end before it may go.

rclpy ends the context at once, and with it all publishing. Here the first signal is told to the node, which goes on until it
has finished or its time is up; a second signal ends it there and then. Where nothing spins the node any longer, it finishes
in its own threads.
"""

from __future__ import annotations

import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from rclpy.executors import ExternalShutdownException

from rnea_ros.nodes.fastpath.executor import trigger

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def noted_signals() -> list[int]:
    """Those that come from now on. None is raised as KeyboardInterrupt, which the middleware's code turns into other errors.

    To be called before rclpy.init, whose own handlers call these and then end the context: that ends the spinning, between
    two callbacks.
    """
    came: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: came.append(number))
    return came


class Finishing(Protocol):
    @property
    def context(self) -> Any: ...

    def create_guard_condition(self, callback: Callable[[], None]) -> Any: ...

    def get_logger(self) -> Any: ...

    def finish(self, then: Callable[[], None]) -> float:
        """Called by another thread: bring to an end what is under way, then call `then`; how long that may take [s]."""

    def end_now(self) -> None:
        """Called by another thread: the time to finish is over. Send what the robot needs before the process ends."""


@contextmanager
def graceful_shutdown(node: Finishing) -> Iterator[None]:
    """While it is spun in here, a signal has the node finish, and then the spinning end by an ExternalShutdownException."""
    guard = node.create_guard_condition(_end)

    def end() -> None:
        trigger(guard)

    receiving, written = socket.socketpair()
    written.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(node, receiving, end), name="signals", daemon=True)
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: None)  # instead of rclpy's; what counts is the byte that is written
    before = signal.set_wakeup_fd(written.fileno())  # for each signal, whatever the main thread does
    watcher.start()
    try:
        yield
    except ExternalShutdownException:
        raise
    except Exception as error:
        if node.context.ok():
            node.get_logger().fatal(f"cannot go on, finishes what it does and ends: {error!r:.300}")
            finished = threading.Event()
            if not finished.wait(node.finish(finished.set)):
                with suppress(Exception):  # what is raised below is the cause
                    node.end_now()
        raise
    finally:
        signal.set_wakeup_fd(before)
        written.close()  # which ends the watcher
        watcher.join()
        receiving.close()


def _end() -> None:
    raise ExternalShutdownException()


def _watch(node: Finishing, receiving: socket.socket, end: Callable[[], None]) -> None:
    if not receiving.recv(1):
        return
    patience = 0.0
    try:
        patience = node.finish(end)
    finally:  # a node that fails to finish must not stay for ever
        more, _, _ = select.select([receiving], [], [], patience)
        again = receiving.recv(1) if more else b""
        if again or not more:  # else the spinning has ended
            why = "a second signal came" if again else f"not finished within {patience:g} s"
            node.get_logger().error(f"{why}: ends at once, in the middle of what it does")
            try:
                node.end_now()
            finally:
                end()
