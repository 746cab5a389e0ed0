"""Console commands that start the nodes of the demos."""

from __future__ import annotations

from rnea_ros.nodes.commands import start_module


def demo_robot() -> int:
    return start_module("rnea_ros.demo.nodes.demo_robot")


def demo_plant() -> int:
    return start_module("rnea_ros.demo.nodes.demo_plant")


def demo_follower() -> int:
    return start_module("rnea_ros.demo.nodes.demo_follower")


def demo_policy() -> int:
    return start_module("rnea_ros.demo.nodes.demo_policy")


def elastic_plant() -> int:
    return start_module("rnea_ros.demo.nodes.elastic_plant")


def elastic_controller() -> int:
    return start_module("rnea_ros.demo.nodes.elastic_controller")
