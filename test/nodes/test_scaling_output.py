"""Output of scaling_node: trajectories that end at rest by default, or single points with a warning."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from trajectory_msgs.msg import JointTrajectory

from rnea_ros.nodes.common.parameter_table import SCALING
from support.overspeed_motion import START
from support.ros_helpers import ros_domain
from support.scaling_bench import Bench

pytestmark = pytest.mark.ros
WARNING = "output is points"


def test_default_output_ends_at_rest_and_point_output_logs_a_warning(tmp_path):
    """Every message holds the motion to rest; after a change of the parameter, messages end at speed, and the log warns."""
    default = next(entry.default for entry in SCALING if entry.name == "output")
    assert default == "horizon"
    with ros_domain(tmp_path) as ros:
        bench = Bench(ros, output=default).ready()
        references = ros.listen(JointTrajectory, f"{bench.node}/reference", 5000)
        ros.until(lambda: ros.node.count_publishers(f"{bench.node}/reference"))
        ros.matched(bench.node)
        bench.state(START)
        bench.send()
        bench.end().check()
        assert references and WARNING not in bench.process.log
        for message in references:
            assert len(message.points) > 1
            assert not any(message.points[-1].velocities)
        assert not ros.set(bench.node, output="points")
        ros.until(lambda: WARNING in bench.process.log)
        references.clear()
        bench.send(START[None], first=1.0)
        bench.end()
        assert any(any(message.points[-1].velocities) for message in references)  # they end at speed
