"""Makes the installed rclpy behave like Humble's where nodes depend on it.

    python humble_stand_in.py -m rnea_ros.node_commands dynamics_node ...

runs a node for which callbacks are given a message alone, however many they could take, services do not have their name,
and a wait set's numbers add up to new ones.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from rclpy.executors import Executor, await_or_execute
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.waitable import NumberOfEntities


def _take(_executor: Executor, subscription: Any) -> Callable[[], Any] | None:
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    return None if taken is None else lambda: await_or_execute(subscription.callback, taken[0])


def install() -> None:
    """Install the stand-in in this process."""
    Executor._take_subscription = _take
    del Subscription.callback, Subscription.CallbackType, Service.service_name, NumberOfEntities.__iadd__


if __name__ == "__main__":
    install()
    sys.argv = sys.argv[2:]
    sys.exit(importlib.import_module(sys.argv[0]).main())
