"""LeanExecutor: serves messages from a persistent wait set; failing callbacks do not end it.

For each callback, rclpy's executor collects all entities of a node, builds a wait set, a task and a coroutine, and wakes
itself twice: most of the cost of a message, and the delay of the next one. This executor waits for subscriptions only, until
the next timer is due, and calls their callbacks directly. A second thread waits for rare events (services, actions, guard
conditions, the first message of a subscription with a true attribute `is_rare`), wakes the executor, and rests while rclpy
serves them: all callbacks still run in one thread, one after another. rmw_fastrtps attaches each entity anew at each wait.

A guard condition can lose a trigger: rmw_fastrtps reads it, then resets it, and a trigger in between is lost. No wait is
therefore unlimited, and work is recorded before it is triggered.

Measured with dynamics_node at 1 kHz on three topics (benchmark/node.py, 2026-11-26): 0.49 ms of processor time per message,
0.92 with rclpy's SingleThreadedExecutor. MultiThreadedExecutor costs more (rclpy issues 1223 and 1452). rclpy.experimental's
EventsExecutor of Kilted's wheels received nothing when a background thread spun it, and ignored SIGTERM.

This uses internals of rclpy's executors, equal from Humble to Kilted but not guaranteed: if one is missing, rclpy's own
executor is used.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation as rcl
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from rclpy.waitable import NumberOfEntities

PATIENCE = 0.2  # s; what was lost is found after no more than this
NANOSECONDS = round(PATIENCE * 1e9)
WITH_INFO = getattr(getattr(Subscription, "CallbackType", None), "WithMessageInfo", "none before Iron")
_RARE = {"service": "services", "client": "clients"}  # beside guard conditions and events
_OFTEN = ("subscriptions", "timers")


def trigger(guard: GuardCondition) -> None:
    """Trigger a guard condition from any thread such that its callback is called: rclpy also serves marked ones."""
    guard._executor_triggered = True  # noqa: SLF001  # rclpy has no public name for it
    guard.trigger()


class LeanExecutor(SingleThreadedExecutor):
    """Executor for nodes whose subscriptions and timers have plain callbacks. Set `lean` before spin()."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.lean = False
        self.on_failure: Callable[[str, Exception], None] | None = None  # (what failed, how); None: a failure ends spin()
        self._rare = GuardCondition(callback=None, callback_group=None, context=self._context)
        self._served = threading.Event()
        self._served.set()
        self._done = False
        self._failure: Exception | None = None  # of the watcher
        self._changed = False  # whether entities were created or destroyed since they were collected
        self._known: list[Any] = []  # subscriptions and timers that are waited for
        self._woken: set[int] = set()  # pointers of rare subscriptions that received a message

    def spin(self) -> None:
        self.lean = self.lean and hasattr(rcl, "WaitSet") and hasattr(self, "_guard") and hasattr(self, "_sigint_gc")
        try:
            if self.lean:
                self._spin_lean()
            while self._context.ok() and not self._is_shutdown:
                with suppress(TimeoutException, ShutdownException):
                    self._serve(PATIENCE)
        except (rcl.RCLError, rcl.InvalidHandle):
            if self._context.ok():
                raise
            raise ExternalShutdownException() from None  # it ended while a wait set was made

    def _spin_lean(self) -> None:
        watcher = threading.Thread(target=self._watch, args=_scheduling(), name="watcher", daemon=True)
        watcher.start()
        try:
            while self._context.ok() and not self._is_shutdown:
                self._spin_until_something_rare()
                if not self._context.ok():
                    raise ExternalShutdownException()
                if self._served.is_set():  # the watcher waits: an action client cannot be in two wait sets
                    continue
                with suppress(TimeoutException, ShutdownException):
                    while True:
                        self._serve(0.0)
                self._served.set()
                failure, self._failure = self._failure, None
                if failure is not None and not self._is_shutdown:
                    self._failed(None, failure)
        finally:
            self._done = True
            self._served.set()
            self.wake()
            watcher.join()

    def _spin_until_something_rare(self) -> None:
        """Serve one message of each subscription, in the order of creation with `served_last` ones at the end; then timers."""
        with ExitStack() as held:  # what a callback destroys stays until this is left: to destroy is rare, too
            self._changed = False
            self._known = self._all(*_OFTEN)
            entities = sorted(self._entities("subscriptions", held), key=lambda entity: getattr(entity, "served_last", False))
            self._woken |= self._ready([entity for entity in entities if self._is_rare(entity)], held)
            handles = [entity.handle for entity in entities if not self._is_rare(entity)]
            timers = self._entities("timers", held)
            guards = self._handles(held, self._rare)
            wait_set = self._wait_set(held, NumberOfEntities(len(handles), len(guards)))
            taking = {one.handle.pointer: (one.handle.take_message, one.msg_type, one.raw, one,
                                           getattr(one, "_callback_type", None) is WITH_INFO) for one in entities}
            while True:
                wait_set.clear_entities()
                for handle in handles:
                    wait_set.add_subscription(handle)
                for guard in guards:
                    wait_set.add_guard_condition(guard)
                left = min([NANOSECONDS, *[_time_left(timer) for timer in timers]])
                due = time.monotonic_ns() + left
                wait_set.wait(left)
                rare = self._changed or not self._served.is_set() or wait_set.get_ready_entities("guard_condition")
                ready = wait_set.get_ready_entities("subscription")
                if (rare or not ready) and not self._context.ok():
                    raise ExternalShutdownException()
                for pointer in ready:  # in the order in which they were added
                    take, kind, is_raw, subscription, has_info = taking[pointer]
                    try:
                        taken = take(kind, is_raw)
                        if taken is not None:  # (message, what is known of it)
                            subscription.callback(*taken if has_info else taken[:1])
                    except Exception as error:
                        self._failed(subscription, error)
                    if self._changed:
                        return
                for timer in timers if time.monotonic_ns() >= due else ():
                    try:
                        if _called(timer):
                            timer.callback()
                    except Exception as error:
                        self._failed(timer, error)
                if rare or self._changed or self._is_shutdown:
                    return

    def wake(self) -> None:
        """Wake this executor because an entity was created or destroyed: a destroyed one is not served again."""
        self._changed = True
        super().wake()

    def _is_rare(self, entity: Any) -> bool:
        """Return whether the watcher waits for the first message of a subscription."""
        return getattr(entity, "is_rare", False) and entity.handle.pointer not in self._woken

    def _ready(self, subscriptions: list[Any], held: ExitStack) -> set[int]:
        """Return the pointers of the subscriptions that have a message."""
        if not subscriptions:
            return set()
        wait_set = self._wait_set(held, NumberOfEntities(len(subscriptions)))
        wait_set.clear_entities()
        for subscription in subscriptions:
            wait_set.add_subscription(subscription.handle)
        wait_set.wait(0)
        return set(wait_set.get_ready_entities("subscription"))

    def can_execute(self, entity: Any) -> bool:
        """Ignore rclpy's request to wake this executor twice per message."""
        return super().can_execute(entity) and not (self.lean and isinstance(entity, (Subscription, Timer)))

    def _serve(self, timeout: float) -> None:
        """Serve one callback by rclpy. Raises TimeoutException if none is ready in time [s]."""
        handler, entity, _ = self.wait_for_ready_callbacks(timeout_sec=timeout)
        handler()
        error = handler.exception()
        if error is not None:
            self._failed(entity, error)

    def _failed(self, entity: Any, error: BaseException) -> None:
        """Handle an exception of a callback, or of rclpy's code around it."""
        if not isinstance(error, Exception) or isinstance(error, ExternalShutdownException) or self.on_failure is None:
            raise error
        if not self._context.ok():  # a signal ended it in the middle of something: that is no failure
            return
        if getattr(entity, "_executor_event", False):  # failed when it was taken: rclpy would never ask for it again,
            entity._executor_event = False  # noqa: SLF001
            entity.callback_group.ending_execution(entity)  # nor for any other of its group
            self.wake()
        self.on_failure(described(entity), error)

    # ------------------------------------------------------------------ in the watcher

    def _watch(self, *scheduling: Any) -> None:
        """Wait in a separate thread, wake the executor, and sleep until it has served.

        The thread has the executor's priority: a thread of lower priority that holds the interpreter would block the executor.
        If it cannot wait, the executor still polls every PATIENCE.
        """
        self._try(lambda: os.sched_setscheduler(0, *scheduling) if scheduling else None)
        while not self._done:
            if self._try(self._wait_for_something_rare) is False and not self._has_unreported_tasks():
                continue
            self._served.clear()
            while not self._done:
                self._rare.trigger()
                if self._served.wait(PATIENCE):
                    break

    def _try(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except Exception as error:  # the executor reports it
            self._failure = error
            time.sleep(PATIENCE)

    def _has_unreported_tasks(self) -> bool:
        """Return whether tasks are ready that no wait reports; true without rclpy's list of tasks.

        Lyrical and recent Jazzy have a list of ready tasks, the others one of all unfinished tasks.
        """
        tasks = getattr(self, "_ready_tasks", getattr(self, "_tasks", True))
        return bool(tasks or self._known != self._all(*_OFTEN)
                    or any(guard._executor_triggered for guard in self._all("guards")))  # noqa: SLF001

    def _wait_for_something_rare(self) -> bool:
        """Wait at most PATIENCE; return whether something is ready."""
        with ExitStack() as held:
            entities = {kind: self._entities(plural, held) for kind, plural in _RARE.items()}
            guards, others = self._entities("guards", held), self._entities("waitables", held)  # events, action servers
            # Fast DDS signals a subscription's events with each of its messages: they are only polled.
            noisy = {id(event) for subscription in self._all("subscriptions") for event in subscription.event_handlers}
            events = [waitable for waitable in others if id(waitable) in noisy]
            others = [waitable for waitable in others if id(waitable) not in noisy]
            rare = [one for one in self._entities("subscriptions", held) if self._is_rare(one)]
            count = NumberOfEntities(len(rare), len(guards) + 2, 0, len(entities["client"]), len(entities["service"]))
            for waitable in others:
                count += waitable.get_num_entities()
            wait_set = self._wait_set(held, count)
            wait_set.clear_entities()
            for kind, found in entities.items():
                for entity in found:
                    getattr(wait_set, f"add_{kind}")(entity.handle)
            for subscription in rare:
                wait_set.add_subscription(subscription.handle)
            # the last two: something was added, removed, is to end; the context ends
            handles = self._handles(held, *guards, self._guard, self._sigint_gc)
            for handle in handles:
                wait_set.add_guard_condition(handle)
            for waitable in others:
                waitable.add_to_wait_set(wait_set)
            began = time.monotonic()
            wait_set.wait(NANOSECONDS)
            for k, guard in enumerate(guards):  # a wait resets a guard condition: set rclpy's flag, as rclpy does
                if wait_set.is_ready("guard_condition", k):
                    guard._executor_triggered = True  # noqa: SLF001
            return (time.monotonic() - began < PATIENCE or bool(wait_set.get_ready_entities("guard_condition"))
                    or self._happened(events, held))

    def _happened(self, events: list[Any], held: ExitStack) -> bool:
        """Return whether one of the entities is ready."""
        if not events:  # rcl refuses to wait for nothing
            return False
        count = NumberOfEntities()
        for event in events:
            count += event.get_num_entities()
        wait_set = self._wait_set(held, count)
        wait_set.clear_entities()
        for event in events:
            event.add_to_wait_set(wait_set)
        wait_set.wait(0)
        return any(event.is_ready(wait_set) for event in events)

    def _all(self, *plurals: str) -> list[Any]:
        """Return the entities of all nodes."""
        return [entity for node in self.get_nodes() for plural in plurals for entity in getattr(node, plural)]

    def _entities(self, plural: str, held: ExitStack) -> list[Any]:
        """Return the existing entities of all nodes, their handles in use until `held` is closed."""
        found = []
        for entity in self._all(plural):
            try:
                held.enter_context(entity if plural == "waitables" else entity.handle)
                found.append(entity)
            except rcl.InvalidHandle:  # is just being destroyed
                continue
        return found

    def _handles(self, held: ExitStack, *guards: Any) -> list[Any]:
        """Keep a handle in use until `held` is closed. None after shutdown()."""
        handles = [guard.handle for guard in guards if guard is not None]
        for handle in handles:
            held.enter_context(handle)
        return handles

    def _wait_set(self, held: ExitStack, count: NumberOfEntities) -> rcl.WaitSet:
        held.enter_context(self._context.handle)
        return rcl.WaitSet(count.num_subscriptions, count.num_guard_conditions, count.num_timers, count.num_clients,
                           count.num_services, count.num_events, self._context.handle)


def _time_left(timer: Timer) -> int:
    """Return the time until a timer is due [ns]; NANOSECONDS if it is cancelled."""
    try:
        left = timer.handle.time_until_next_call()
    except rcl.RCLError:  # Humble's answer for a cancelled timer
        return NANOSECONDS
    return NANOSECONDS if left is None else max(left, 0)


def _called(timer: Timer) -> bool:
    """Return whether a timer is due, and not cancelled or destroyed by an earlier callback; schedules its next time."""
    try:
        with timer.handle:
            ready = timer.handle.is_timer_ready()
            if ready:
                timer.handle.call_timer()
            return ready
    except rcl.InvalidHandle:
        return False


def _scheduling() -> tuple[Any, ...]:
    """Return the scheduling of this thread, for another one."""
    return (os.sched_getscheduler(0), os.sched_getparam(0)) if hasattr(os, "sched_getscheduler") else ()


def described(entity: Any) -> str:
    """Return a name of a subscription, service, timer ... for messages; None is a task."""
    kind = "task" if entity is None else type(entity).__name__.lower()
    for name in ("service_name", "srv_name", "topic_name"):
        with suppress(AttributeError, rcl.InvalidHandle):
            return f"{kind} {getattr(entity, name)}"
    return f"{kind} {getattr(getattr(entity, 'callback', None), '__qualname__', '')}".rstrip()
