"""Process of one or more nodes: managed lifecycle, real-time settings, worker threads, signals and the end of a node."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import signal
import socket
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, cast

import rclpy
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions, install_signal_handlers
from rclpy.task import Future

from rnea_ros import InputError
from rnea_ros.errors import Rejected, RneaError
from rnea_ros.nodes.common.diagnostics import CallbackFailures
from rnea_ros.nodes.common.executor import LeanExecutor, trigger
from rnea_ros.nodes.common.parameters import Values

ENTITIES = ("publisher", "subscription", "client", "service", "timer", "guard")  # create_... and destroy_... of a node
SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class ManagedNode(LifecycleNode, ABC):
    """Lifecycle node that creates everything but its parameters when it is configured, and destroys it at cleanup.

    is_configured : topics, services and threads exist
    is_active     : inputs are used and results are published
    at_cleanup    : callbacks that undo set_up beyond topics, services and timers: last one first, also after a part of set_up
    """

    def __init__(self, name: str):
        self.is_configured = self.is_active = self._is_starting = False
        self.at_cleanup = ExitStack()
        self._before: dict[str, list[Any]] = {}  # entities that exist while the node is unconfigured
        self._error: Exception | None = None  # of the last configuration
        super().__init__(name, automatically_declare_parameters_from_overrides=True)

    @abstractmethod
    def set_up(self) -> None:
        """Create topics, services, threads, and begin to build the model. Raises RneaError."""

    @abstractmethod
    def wait_for_model(self) -> str:
        """Wait until the model of the present description is built; return why there is none, or nothing. Without a
        description it does not wait: the description arrives on its topic.
        """

    def has_ended(self) -> bool:
        """Return whether nothing moves by this node's commands, so that it can be cleaned up."""
        return True

    def on_activation(self, is_active: bool) -> None:
        """Begin or cease to compute; is_active has changed."""

    def autostart(self, wanted: bool) -> None:
        """Configure and activate, without waiting for the model. Raises what the configuration raised."""
        if not wanted:
            self.get_logger().info("autostart is false: configure and activate this node by its lifecycle services")
            return
        self._is_starting = True
        try:
            self.trigger_configure()
        finally:
            self._is_starting = False
        if self._error is not None:
            raise self._error
        self.trigger_activate()

    def on_clock_set_back(self, act: Callable[[], None]) -> None:
        """Call a function whenever the node's clock is set back or replaced, until cleanup."""
        back = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True)
        jumps = self.get_clock().create_jump_callback(back, post_callback=lambda jump: act())
        self.at_cleanup.callback(jumps.unregister)

    def check_active(self) -> None:
        """Raise Rejected while the node is not active."""
        if not self.is_active:
            raise Rejected("inactive", "this node is not active; activate it by `ros2 lifecycle set "
                                       f"{self.get_fully_qualified_name()} activate`", passing=True)

    # ------------------------------------------------------------------ transitions, called by rclpy

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._error, self._before = None, self._entities()
        try:
            self.set_up()
        except RneaError as error:
            self._error = error
            self._destroy()
            self.get_logger().error(f"not configured: {error}")
            return FAILURE
        except Exception as error:
            self._destroy()
            if self._is_starting:  # rclpy would drop it: it ends the process, as an error of a constructor
                self._error = error
            raise
        self.is_configured = True
        if not self._is_starting and (reason := self.wait_for_model()):
            self._destroy()
            self.get_logger().error(f"not configured: {reason}")
            return FAILURE
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.is_active = True
        self.on_activation(True)
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.is_active = False
        self.on_activation(False)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        if not self.has_ended():
            self.get_logger().error("not cleaned up: a motion is still coming to rest; clean up after it")
            return FAILURE
        self._destroy()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self.is_active:
            self.on_deactivate(state)
        if not self.has_ended():
            self.get_logger().error("not shut down: a motion is coming to rest first; shut down after it")
            return FAILURE
        self._destroy()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to the unconfigured state: what failed is in the log."""
        self._destroy()
        return SUCCESS

    def destroy_node(self) -> None:
        """Stop all threads; rclpy calls this too for a node whose construction failed."""
        self.is_configured = self.is_active = False
        self.at_cleanup.close()
        if hasattr(self, "_state_machine"):  # rclpy leaves it to the end of the interpreter, which can crash then
            self._state_machine.destroy_when_not_in_use()
        super().destroy_node()

    # ------------------------------------------------------------------ entities

    def _entities(self) -> dict[str, list[Any]]:
        return {kind: list(getattr(self, f"{kind}s")) for kind in ENTITIES}

    def _destroy(self) -> None:
        self.is_configured = self.is_active = False
        self.at_cleanup.close()
        for kind, found in self._entities().items():
            destroy = getattr(self, "destroy_guard_condition" if kind == "guard" else f"destroy_{kind}")
            kept = set(map(id, self._before.get(kind, ())))
            for entity in found:
                if id(entity) not in kept:
                    destroy(entity)


_CURRENT_AND_FUTURE = 1 | 2  # MCL_CURRENT | MCL_FUTURE of Linux


def apply_process_settings(values: Values) -> None:
    """Apply process.priority and process.lock_memory before the node starts a thread. Raises InputError."""
    if values["process.lock_memory"]:
        _lock_memory()
    if values["process.priority"]:
        _run_at(values["process.priority"])


def apply_thread_priority(values: Values) -> None:
    """Apply process.priority to the calling thread, started after apply_process_settings()."""
    if values["process.priority"]:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(values["process.priority"]))


def freeze_garbage(values: Values) -> None:
    """Exclude all existing objects, including the model, from garbage collection."""
    if values["process.freeze_gc"]:
        gc.collect()
        gc.freeze()


def return_free_memory() -> None:
    """Return memory that building a model has left free to the system, where the C library can (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _run_at(priority: int) -> None:
    """Set the priority of this thread and of the middleware's threads; later threads, as that for compilation, are normal."""
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


class Worker:
    """One thread; calls run in their order."""

    def __init__(self, node: Node, name: str):
        self._node = node
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._wake = node.create_guard_condition(lambda: None)  # executors do not notice what other threads finish

    def start(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run the function without waiting for it; an error is logged."""
        def run() -> None:
            try:
                function(*arguments)
            except Exception:
                self._node.get_logger().error(traceback.format_exc())

        self._thread.submit(run)

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of the function, or raise its error."""
        job, done = self._thread.submit(function, *arguments), Future(executor=self._node.executor)

        def on_done(_job: Any) -> None:
            done.set_result(None)
            trigger(self._wake)

        job.add_done_callback(on_done)
        await done
        error = job.exception()
        if error is not None and not isinstance(error, Exception):  # no caller handles it, and the node would end
            raise RuntimeError(repr(error)) from error
        return job.result()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


SIGNALS = (signal.SIGINT, signal.SIGTERM)
OBJECTS_PER_COLLECTION = 5_000  # new objects after which garbage is collected; messages leave hardly any cycles behind
# Time for which a callback or a tick waits for the interpreter while another thread runs Python code, as that which builds a
# model [s]; Python's default is 5 ms.
SWITCH_INTERVAL_S = 1e-4


PROFILE = Path("config", "fastdds.xml")
CHOSEN_PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")  # environment variables
LOCAL_PROFILES = ("DEFAULT_FASTDDS_PROFILES.xml", "DEFAULT_FASTRTPS_PROFILES.xml")  # files that Fast DDS reads where it starts


def use_middleware_profile() -> None:
    """Let Fast DDS, from version 3, read config/fastdds.xml, unless the user has a profile; before rclpy.init.

    Other middlewares, and earlier versions, ignore the variable.
    """
    if any(name in os.environ for name in CHOSEN_PROFILES) or any(map(os.path.exists, LOCAL_PROFILES)):
        return
    folders = [Path(sys.prefix, "share", "rnea_ros"), Path(__file__).parents[3]]  # of a wheel, of the sources
    with suppress(PackageNotFoundError, OSError, ValueError):  # OSError: no workspace is sourced
        folders.insert(0, Path(get_package_share_directory("rnea_ros")))
    found = next((file for folder in folders if (file := folder / PROFILE).is_file()), None)
    if found is not None:
        os.environ[CHOSEN_PROFILES[0]] = str(found)


def noted_signals() -> list[int]:
    """Install handlers of signals; none is raised as KeyboardInterrupt, which the middleware would misinterpret.

    Create it before rclpy.init, whose handlers call these and then end the context: that ends the spinning between two
    callbacks.
    """
    came: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: came.append(number))
    return came


class Finishing(Protocol):
    """Node that completes work in progress before the process ends."""

    @property
    def context(self) -> Any: ...

    def create_guard_condition(self, callback: Callable[[], None]) -> Any: ...

    def get_logger(self) -> Any: ...

    def finish(self, then: Callable[[], None]) -> float:
        """Finish work in progress, then call `then`; called by another thread. Returns the longest time needed [s]."""

    def end_now(self) -> None:
        """Send the last messages that the robot needs, at the end of the time to finish; called by another thread."""


@contextmanager
def graceful_shutdown(node: Finishing) -> Iterator[None]:
    """Context in which a signal makes the node finish; then the spinning ends by an ExternalShutdownException."""
    guard = node.create_guard_condition(_end)

    def end() -> None:
        trigger(guard)

    receiving, written = socket.socketpair()
    written.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(node, receiving, end), name="signals", daemon=True)
    # First the descriptor, to which each signal writes a byte, also while the main thread is busy; then handlers instead of
    # rclpy's, which do nothing. In the other order a signal between both would be lost, and the process would not end.
    before = signal.set_wakeup_fd(written.fileno())
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: None)
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


def run(kinds: Sequence[Callable[[], Node]], args: Sequence[str] | None = None) -> int:
    """Spin nodes until SIGINT or SIGTERM. Returns the exit code: 0, or 1 for invalid parameters. A failing callback is logged
    and counted and does not end the process.

    Nodes with a true attribute `lean` are spun by LeanExecutor's own loop. A node with a method `finish`, one at most, may
    first complete work in progress.
    """
    came = noted_signals()
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # rclpy's handlers end the context. While a node is made, that made processes crash in the middleware: they come after it.
    use_middleware_profile()
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    nodes: list[Node] = []
    try:
        executor = LeanExecutor()
        for kind in kinds:
            nodes.append(kind())
        install_signal_handlers(SignalHandlerOptions.ALL)
        if came:
            raise ExternalShutdownException
        executor.lean = all(getattr(node, "lean", True) for node in nodes)
        executor.on_failure = CallbackFailures(nodes[0]).add
        for node in nodes:
            executor.add_node(node)
        with ExitStack() as finishing:
            for node in nodes:
                if hasattr(node, "finish"):
                    finishing.enter_context(graceful_shutdown(cast(Finishing, node)))
            executor.spin()
    except ExternalShutdownException:
        pass
    except (RneaError, ParameterException) as error:
        print(f"cannot start: {error}", file=sys.stderr)
        return 1
    except Exception:
        if rclpy.ok() and not came:  # else a signal ended the context in the middle of something: that is no failure
            raise
    finally:
        for number in SIGNALS:  # a second one must not interrupt the cleaning up
            signal.signal(number, signal.SIG_IGN)
        for node in nodes:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
