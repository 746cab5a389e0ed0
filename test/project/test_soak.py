"""Short run of `make soak`: all nodes, two disturbances, and a report."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from soak.bench import Nodes
from soak.run import Soak, report
from soak.watch import Growth, Use

from support.ros_helpers import ros_domain


@pytest.mark.ros
def test_all_nodes_answer_correctly_after_disturbances(tmp_path):
    with ros_domain(tmp_path) as ros:
        soak = Soak(Nodes(ros), 1)
        soak._all = [soak.payload, soak.clock_back]
        soak.run(600.0, troubles=2)
        reported = report(soak, 1.0)
    assert not soak.found, reported
    assert soak.troubles == {"payload": 1, "clock_back": 1} and min(soak.nodes.answers.values()) >= 9
    assert "0 wrong" in reported and reported.endswith("nothing found")


def test_memory_growth_is_detected():
    growing, steady = Growth(), Growth()
    growing.seen = [Use(100.0 + 4.0 * k, 20, 10) for k in range(60)]
    steady.seen = [Use(300.0 if k < 5 else 100.0, 20, 10) for k in range(60)]
    assert growing.findings("node") == ["node: megabytes grew from 188 to 308"] and not steady.findings("node")
