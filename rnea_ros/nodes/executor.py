"""An executor that hands on messages straight from a wait set it keeps.

rclpy's own gathers every entity of a node, makes a wait set, a task and a coroutine anew for each callback, and wakes itself
up twice after it: most of what a message costs. Here the executor waits for the subscriptions alone and calls their callbacks
itself. A second thread waits for what is rare (timers, services, actions, guard conditions, events) and does nothing else: it
wakes the executor, which has rclpy serve them. So every callback still runs in one thread, one after another.

This uses what rclpy's executors are made of, the same from Humble to Kilted but no promise of rclpy's: where a part is
missing, rclpy's own way is taken.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import Any

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.subscription import Subscription
from rclpy.waitable import NumberOfEntities

rcl: Any = rclpy_implementation
FOREVER = -1
_RARE = {"timer": "timers", "service": "services", "client": "clients"}  # beside guard conditions and events


class LeanExecutor(SingleThreadedExecutor):
    """For nodes whose subscriptions have plain callbacks of one argument. `lean` is to be set before spin()."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.lean = False
        self._rare = GuardCondition(callback=None, callback_group=None, context=self._context)
        self._served = threading.Event()
        self._done = False
        self._failure: Exception | None = None

    def spin(self) -> None:
        self.lean = self.lean and hasattr(rcl, "WaitSet") and hasattr(self, "_guard") and hasattr(self, "_sigint_gc")
        if not self.lean:
            super().spin()
            return
        watcher = threading.Thread(target=self._watch, args=_scheduling(), name="watcher", daemon=True)
        watcher.start()
        try:
            while self._context.ok() and not self._is_shutdown:
                self._spin_until_something_rare()
                if self._failure is not None:
                    raise self._failure
                self._serve_what_is_ready()
                self._served.set()
        finally:
            self._done = True
            self._served.set()
            self.wake()
            watcher.join()

    def _spin_until_something_rare(self) -> None:
        """Serve subscriptions, in the order of their creation, one message each."""
        with ExitStack() as held:  # what a callback destroys stays until this is left: to destroy is rare, too
            subscriptions = {entity.handle.pointer: entity for entity in self._entities("subscriptions", held)}
            handles = [entity.handle for entity in subscriptions.values()]
            guards = [self._rare.handle, self._sigint_gc.handle]  # a context that ends triggers one of them
            wait_set = self._wait_set(held, NumberOfEntities(len(handles), len(guards)))
            while True:
                wait_set.clear_entities()
                for handle in handles:
                    wait_set.add_subscription(handle)
                for handle in guards:
                    wait_set.add_guard_condition(handle)
                wait_set.wait(FOREVER)
                rare = wait_set.get_ready_entities("guard_condition")
                if rare and not self._context.ok():
                    raise ExternalShutdownException()
                for pointer in wait_set.get_ready_entities("subscription"):  # in the order in which they were added
                    _take(subscriptions[pointer])
                if rare:
                    return

    def can_execute(self, entity: Any) -> bool:
        """Asked by rclpy, which would answer each message by waking this executor twice."""
        return super().can_execute(entity) and not (self.lean and isinstance(entity, Subscription))

    def _serve_what_is_ready(self) -> None:
        """All that is rare, by rclpy."""
        try:
            while True:
                handler, _, _ = self.wait_for_ready_callbacks(timeout_sec=0.0)
                handler()
                if handler.exception() is not None:
                    raise handler.exception()
        except TimeoutException:
            return

    def _watch(self, *scheduling: Any) -> None:
        """In a thread of its own: wait, wake the executor, sleep until it has served.

        It runs at the executor's priority: whoever holds the interpreter and is not let run keeps the executor waiting.
        """
        try:
            if scheduling:
                os.sched_setscheduler(0, *scheduling)
            while not self._done:
                self._wait_for_something_rare()
                self._served.clear()
                if not self._done:
                    self._rare.trigger()
                    self._served.wait()
        except Exception as error:  # is for the executor to raise
            self._failure = error
            self._rare.trigger()

    def _wait_for_something_rare(self) -> None:
        with ExitStack() as held:
            entities = {kind: self._entities(plural, held) for kind, plural in _RARE.items()}
            guards, others = self._entities("guards", held), self._entities("waitables", held)  # events, action servers
            # Fast DDS wakes who waits for a subscription's events with each of its messages: these are served with the next
            # thing that is rare, a node's timer at the latest.
            noisy = {id(event) for node in self.get_nodes() for subscription in node.subscriptions
                     for event in subscription.event_handlers}
            others = [waitable for waitable in others if id(waitable) not in noisy]
            count = NumberOfEntities(0, len(guards) + 1, *(len(entities[kind]) for kind in ("timer", "client", "service")))
            for waitable in others:
                count += waitable.get_num_entities()
            wait_set = self._wait_set(held, count)
            wait_set.clear_entities()
            for kind, found in entities.items():
                for entity in found:
                    getattr(wait_set, f"add_{kind}")(entity.handle)
            for guard in (*guards, self._guard):  # the last one wakes when something was added or removed, and at the end
                wait_set.add_guard_condition(guard.handle)
            for waitable in others:
                waitable.add_to_wait_set(wait_set)
            wait_set.wait(FOREVER)
            for place, guard in enumerate(guards):  # a wait resets a guard condition: tell rclpy, as it tells itself
                if wait_set.is_ready("guard_condition", place):
                    guard._executor_triggered = True

    def _entities(self, plural: str, held: ExitStack) -> list[Any]:
        """Those of all nodes that still exist, their handles in use until `held` is closed."""
        found = []
        for node in self.get_nodes():
            for entity in getattr(node, plural):
                try:
                    held.enter_context(entity if plural == "waitables" else entity.handle)
                    found.append(entity)
                except rcl.InvalidHandle:  # is just being destroyed
                    continue
        return found

    def _wait_set(self, held: ExitStack, count: NumberOfEntities) -> Any:
        held.enter_context(self._context.handle)
        return rcl.WaitSet(count.num_subscriptions, count.num_guard_conditions, count.num_timers, count.num_clients,
                           count.num_services, count.num_events, self._context.handle)


def _scheduling() -> tuple[Any, ...]:
    """Of this thread, to be given to another."""
    return (os.sched_getscheduler(0), os.sched_getparam(0)) if hasattr(os, "sched_getscheduler") else ()


def _take(subscription: Subscription) -> None:
    taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    if taken is not None:
        subscription.callback(taken[0])
