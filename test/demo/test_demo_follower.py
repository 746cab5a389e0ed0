"""demo_follower beside scaling_node, both in processes of their own: to and fro for ever, whatever comes between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from std_srvs.srv import Trigger

from rnea_msgs.msg import ScaledMotion
from rnea_ros import Robot
from rnea_ros.demo.task import parameters, too_fast
from support.ros_helpers import world

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[2] / "urdf" / "rr.urdf"


@pytest.fixture
def ros(tmp_path):
    with world(tmp_path) as made:
        yield made


def ends(heard):
    """Where each motion that has ended came to rest, by its number."""
    return {message.motion: np.array(message.position) for message in heard if message.phase == ScaledMotion.ENDED}


def test_goes_to_and_fro_and_on_after_a_stop(ros):
    task = too_fast(Robot.from_urdf(URDF))
    model = {"robot_description": URDF.read_text()}
    heard: list[ScaledMotion] = ros.listen(ScaledMotion, "scaling_node/scaled_motion", 1000)
    node = ros.start("scaling_node", {**model, **parameters(Robot.from_urdf(URDF), task.limits)})
    ros.start("demo_follower", model)
    first, last = task.points[0], task.points[-1]

    def stopped():
        """The number of a motion that was stopped somewhere between; on a busy machine the stop may come too late for one."""
        ros.until(lambda: heard and 0.3 < heard[-1].progress < 0.7, of=node)
        if ros.call(Trigger, "scaling_node/stop", Trigger.Request()).success:
            ros.until(lambda: heard[-1].motion in ends(heard), of=node)
        return next((number for number, place in ends(heard).items()
                     if min(np.abs(place - end).max() for end in (first, last)) > 1e-2), None)

    number = ros.until(stopped)

    def after():
        """Where those that ended since came to rest; a trajectory that is sent again before an answer leaves out a number."""
        return [place for later, place in sorted(ends(heard).items()) if later > number]

    ros.until(lambda: len(after()) >= 3, of=node)
    np.testing.assert_allclose(after()[:3], [first, last, first], atol=1e-6)
