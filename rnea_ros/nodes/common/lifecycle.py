"""Managed lifecycle of the nodes: configure creates topics, services and the model; activate begins to compute and publish.

A node configures and activates itself at start, unless the parameter `autostart` is false. See
https://design.ros2.org/articles/node_lifecycle.html and docs/lifecycle.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from rnea_ros.errors import Rejected, RneaError

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
