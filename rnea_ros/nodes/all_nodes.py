"""dynamics_node, scaling_node and query_node in one process, served by one executor.

One interpreter instead of three saves about two thirds of their memory. A long request to query_node can delay the torques of
dynamics_node: on a robot that needs both at a control rate, use separate processes.
"""

from __future__ import annotations

import sys

from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.dynamics.node import DynamicsNode
from rnea_ros.nodes.query_node import QueryNode
from rnea_ros.nodes.scaling.node import SWITCH_INTERVAL_S, ScalingNode


def main(args: list[str] | None = None) -> int:
    """Run the node; return the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return run([DynamicsNode, ScalingNode, QueryNode], args)


if __name__ == "__main__":
    sys.exit(main())
