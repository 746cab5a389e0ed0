"""`rnea watch`: live joint torques of a running dynamics_node, in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from ..demo.processes import MissingRos, recorders
from ..demo.table import LiveTable
from ..errors import RneaError

TYPE = "rnea_msgs/msg/JointDynamics"


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea watch`."""
    parser.add_argument("topic", nargs="?", help=f"topic of type {TYPE}; default: the first one found")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time [s]; default: until Ctrl-C")
    parser.add_argument("--once", action="store_true", help="print one message and exit")
    parser.add_argument("--wait", type=float, default=10.0, help="longest time to wait for the first message [s]; default 10")


def run_watch(args: argparse.Namespace) -> int:
    """Return exit code 0 if a message was received. Raises RneaError if there is no ROS, or no message within --wait."""
    try:
        nodes = recorders()
    except MissingRos as error:
        raise RneaError(f"rnea watch needs ROS 2: {error}; source a ROS 2 installation, or run `make env`") from None
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    tables: dict[tuple[str, ...], LiveTable] = {}
    received = 0

    def show(message: Any, joint_types: list[str]) -> bool:
        nonlocal received
        received += 1
        names = tuple(message.joint_names)
        if names not in tables:
            print(f"joint torques, motion source: {message.motion_source or 'unknown'}", flush=True)
            tables[names] = LiveTable(names, joint_types or ["revolute"] * len(names), sys.stdout)
        tables[names].show(message)
        return not args.once and time.monotonic() < end

    begin = time.monotonic()
    end = begin + args.seconds
    topic, candidates = nodes.watch_dynamics(args.topic, args.wait, args.seconds, show)
    if received:
        return 0
    if topic is None:
        raise RneaError(f"no topic of type {TYPE} within {args.wait:g} s in ROS domain {domain}: start dynamics_node, or set "
                        "ROS_DOMAIN_ID to the domain that it runs in")
    others = f"; other topics of this type: {', '.join(candidates)}" if candidates else ""
    raise RneaError(f"no message on {topic} within {args.wait:g} s: dynamics_node publishes when it receives joint states; "
                    f"see its log and /diagnostics{others}")
