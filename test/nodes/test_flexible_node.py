"""Flexible links in dynamics_node, as a separate process over DDS, against a fine chain of rigid segments in Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from sensor_msgs.msg import JointState

from support.beam_oracle import Chain, boom_file, boom_urdf, slew
from support.moving_bench import MovingBench
from support.moving_robots import MovingRobot
from support.ros_helpers import ros_domain

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

STEP, SAMPLES, DWELL, STIFFNESS = 0.02, 45, 10, 60.0
HUB, WRIST = slew(1.5, 0.8), slew(-0.8, 0.8)


class MovingBoom(MovingRobot):
    """Boom that slews from rest; its deflection is predicted by the node."""

    def __init__(self):
        self.joints, self.urdf, self.content = ("hub", "wrist"), boom_urdf(), boom_file(STIFFNESS)
        self.parameters = {"flexible.deflection": "predicted"}

    def motion(self, t):
        moving = max(0.0, t - DWELL * STEP)  # the prediction begins at rest
        return list(np.column_stack((HUB(moving), WRIST(moving))))


def test_torques_with_predicted_deflection_match_a_fine_rigid_segment_chain(tmp_path):
    times = STEP * np.arange(SAMPLES + 1 - DWELL)
    coarse, fine = (Chain(count, STIFFNESS).simulate(HUB, WRIST, times) for count in (8, 16))
    expected = np.vstack((np.zeros((DWELL, 4)), (4.0 * fine - coarse) / 3.0))  # a row for each step from 0
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, MovingBoom(), tmp_path, step=STEP)
        deflections = ros.listen(JointState, f"{bench.node}/deflection")
        bench.met()
        found = {}
        while len(found) < SAMPLES - 1:
            t, answer = bench.next()
            found[round(t / STEP)] = list(answer.effort)
            assert list(answer.joint_names) == ["hub", "wrist"]
        info = bench.info[-1]
        ros.until(lambda: deflections and deflections[-1].header.stamp == answer.header.stamp, of=bench.process)
    steps = [k for k in found if k <= SAMPLES]
    off = np.array([found[k] for k in steps]) - expected[steps, :2]
    assert len(steps) > SAMPLES // 2 and (np.abs(off).max(axis=0) < 5e-3 * np.abs(expected[:, :2]).max(axis=0)).all()
    assert "flexible links" in info.kind and list(info.joint_names) == ["hub", "wrist"]
    last = deflections[-1]
    assert list(last.name) == ["boom.y1", "boom.y2", "boom.y3"] and len(last.position) == len(last.velocity) == 3
    step = max(steps)
    end = expected[step, 3]  # small deflections: the sum of the shares of the modes
    assert step != max(found) or abs(sum(last.position) - end) < 0.02 * np.abs(expected[:, 3]).max()
