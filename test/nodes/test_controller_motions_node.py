"""scaling_node with an interpolating controller: robot commands at 500 Hz, also after the node has ended."""

from __future__ import annotations

import signal

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from trajectory_msgs.msg import JointTrajectory

from support import control_msgs_stand_in
from support.controller_bench import CONTROLLER, ControllerBench
from support.overspeed_motion import DURATION, POINTS, START
from support.ros_helpers import ros_domain
from support.scaling_bench import message

pytestmark = pytest.mark.ros

ASKED = 1.15  # times the limits, at the controller, where what is planned keeps to them
PATH = 5e-4  # m
JUMP = 0.6  # see CommandedMotion.jump: 1/6 by the jerk within an update, more where an update is late
LATE = {"late_every": 10, "late_by": 0.02}
LEAD = 1.0  # s; half of it is for a message on a machine with too much else to do


@pytest.fixture
def ros(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as made:
        yield made


def check(commanded, points=POINTS):
    effort, rate = commanded.used()
    assert effort < 1.06 and rate < ASKED and commanded.off_the_path(points) < PATH and commanded.jump() < JUMP


def test_controller_completes_the_trajectory_after_the_node_has_ended(ros, tmp_path):
    bench = ControllerBench(ros, tmp_path, "trajectory", LATE, lead=LEAD).ready()
    sent = ros.listen(JointTrajectory, f"{CONTROLLER}/joint_trajectory")
    bench.ros.until(lambda: bench.diagnostics.values.get("joint_states.received", "0") != "0", what="no joint states",
                    of=bench.controller)

    def at(position, what):
        bench.ros.until(lambda: np.abs(bench.position - position).max() < 1e-6, what=f"{what}\n{bench.process.log}",
                        of=bench.controller)

    bench.override(0.4)  # so slow that a busy machine gets all of what follows before the goal
    bench.send()
    bench.moving(0.2)
    bench.serve("pause")
    bench.until("PAUSED")
    bench.serve("resume")
    bench.moving(0.6)
    reported = len(sent)
    bench.override(0.5)
    ros.until(lambda: len(sent) > reported, what="nothing is sent", of=bench.process)
    ros.spin(0.2)  # in the lines that send it, a stop would be too late to be noticed before
    bench.process.send(signal.SIGSTOP)  # what has been sent goes on
    ros.spin(1.0)
    bench.process.send(signal.SIGCONT)
    bench.override(1.0)
    at(POINTS[-1], "never at the goal")
    check(bench.commanded())
    bench.until("IDLE")
    bench.send(POINTS[::-1])
    ros.until(lambda: (bench.received[-1].motion, bench.received[-1].t) > (2, 0.3), what="no second motion", of=bench.process)
    bench.process.send(signal.SIGKILL)
    at(START, "the goal is not reached after the node was killed")
    check(bench.commanded())
    assert "refused" not in bench.controller.log


def test_robot_comes_to_rest_within_the_horizon_when_the_node_is_killed(ros, tmp_path):
    ros.through = [control_msgs_stand_in.__file__]
    bench = ControllerBench(ros, tmp_path, "horizon", LATE, lead=LEAD, horizon=1.5, **{"controller.interface": "action"})
    bench.ready()
    bench.ros.until(lambda: bench.diagnostics.values.get("joint_states.received", "0") != "0", what="no joint states",
                    of=bench.controller)
    bench.send(np.stack((START, START - 0.05, START)), 0.5)
    bench.end()
    bench.until("IDLE")
    bench.logged("ended at its goal")
    assert "goal accepted" in bench.controller.log
    bench.commanded()
    bench.override(0.15)  # so slow that it is not at its goal by then
    bench.send(POINTS)
    ros.until(lambda: np.abs(bench.position - START).max() > 0.02, timeout=120.0, what="does not move", of=bench.process)
    bench.process.send(signal.SIGKILL)
    ros.until(lambda: bench.rests, timeout=120.0, what="does not come to rest")
    assert np.abs(bench.position - START).max() > 0.02 and np.abs(bench.position - POINTS[-1]).max() > 0.02
    check(bench.commanded())


def test_robot_stops_within_the_points_stop_time_when_the_node_hangs(ros, tmp_path):
    """The controller executes the stop behind the last point: velocities fall to zero in 0.6 s, not within one update.

    The node hangs between two points. What it has handed to the middleware before, it cannot call back; suspension within a
    cycle is tested in test_controller_monitoring.py.
    """
    bench = ControllerBench(ros, tmp_path, "points", {"interpolate_from_desired_state": True}, points_stop_time=0.6,
                            control_rate=20.0).ready()
    bench.ros.until(lambda: bench.diagnostics.values.get("joint_states.received", "0") != "0")
    bench.ros.until(lambda: bench.diagnostics.values["controller.state"] == "ok", of=bench.process)
    points = ros.listen(JointTrajectory, f"{CONTROLLER}/joint_trajectory")
    bench.send(POINTS, 4.0 * DURATION)
    bench.moving(0.6)
    ros.until(lambda: points and np.abs(bench.position - POINTS[0]).max() > 0.05, what="does not move", of=bench.controller)
    points.clear()
    ros.until(lambda: points, what="no further point", of=bench.process)
    ros.spin(0.01)
    bench.process.send(signal.SIGSTOP)
    ros.until(lambda: bench.rests, timeout=120.0, what="does not come to rest")
    found = bench.commanded()
    rests = int(np.flatnonzero(np.abs(found.qd).max(axis=1) > 1e-9)[-1])
    last = (found.t > found.t[rests] - 0.5) & (found.t <= found.t[rests] + 0.02)  # of the stop, behind the last point
    qd, t = found.qd[last], found.t[last]
    assert np.abs(qd[0]).max() > 0.05 and len(t) > 50
    assert (np.abs(np.diff(qd, axis=0)) <= 4.0 * np.abs(qd[0]).max() / 0.5 * np.diff(t)[:, None] + 1e-3).all()
    position = bench.position
    bench.process.send(signal.SIGCONT)
    bench.logged("the robot brakes by itself: the motion is given up")
    bench.until("IDLE")
    assert bench.rests and np.abs(bench.position - position).max() < 1e-9


def test_controller_parameters_are_checked_before_a_motion_and_its_tracking_during_it(ros, tmp_path):
    ros.through = [control_msgs_stand_in.__file__]
    watched = {"watch.source": "controller_state", "watch.tolerance": 0.05}
    bench = ControllerBench(ros, tmp_path, controller={"allow_trajectory_replacement": True}, **watched).ready()
    others = ros.node.create_publisher(JointTrajectory, f"{CONTROLLER}/joint_trajectory", 10)
    bench.send()  # arrives before the check is over
    ros.until(lambda: bench.diagnostics.dropped("trajectory", "controller"), of=bench.process)
    bench.logged("trajectory rejected, controller: /joint_trajectory_controller: it would begin a trajectory that starts in")
    ros.set(CONTROLLER, allow_trajectory_replacement=False)
    ros.until(lambda: bench.diagnostics.values["controller.state"] == "ok", of=bench.process)

    bench.send(duration=8.0)
    bench.moving(0.5)
    others.publish(message(START[None], first=0.3))  # of another client
    ros.until(lambda: bench.diagnostics.dropped("trajectory", "controller_strays"), of=bench.process)
    bench.until("IDLE")
    ros.until(lambda: bench.rests, timeout=120.0)
    bench.logged("off what it was sent")
    assert "at its goal" not in bench.process.log
    ros.until(lambda: np.abs(bench.position - START).max() < 0.1)  # where it was halted, and joint states show it
    bench.received.clear()
    ros.set(CONTROLLER, receive_delay=0.5)
    bench.send(np.stack((bench.position, START + 0.1)), 1.0)
    assert bench.end().messages[-1].tracking_joint
    bench.logged("received a change of the motion 0.", "ended at its goal")
    bench.until("IDLE")
    assert np.abs(bench.position - START - 0.1).max() < 0.01
