"""Console commands that start the nodes of the demos."""

from __future__ import annotations

from rnea_ros.nodes.commands import start_module


def demo_robot() -> int:
    """Run demo_robot; return the exit code."""
    return start_module("rnea_ros.demo.nodes.demo_robot")


def demo_plant() -> int:
    """Run demo_plant; return the exit code."""
    return start_module("rnea_ros.demo.nodes.demo_plant")


def demo_follower() -> int:
    """Run demo_follower; return the exit code."""
    return start_module("rnea_ros.demo.nodes.demo_follower")


def demo_policy() -> int:
    """Run demo_policy; return the exit code."""
    return start_module("rnea_ros.demo.nodes.demo_policy")


def elastic_plant() -> int:
    """Run elastic_plant; return the exit code."""
    return start_module("rnea_ros.demo.nodes.elastic_plant")


def elastic_controller() -> int:
    """Run elastic_controller; return the exit code."""
    return start_module("rnea_ros.demo.nodes.elastic_controller")
