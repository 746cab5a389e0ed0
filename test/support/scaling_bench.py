"""Bench of scaling_node: sent trajectories and joint states, received samples, and checks of path and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_msgs.srv import SetOverride
from rnea_ros.nodes.common.topics import duration as span
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.overspeed_motion import DURATION, LIMITS, POINTS, ROBOT
from support.ros_helpers import Diagnostics, RosDomain, stamp
from support.scaling_cases import urdf

NODE = "/scaling_node"
RATE = 250.0  # [Hz]; reachable on a busy machine
NAMES = list(ROBOT.joint_names)
FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate")
TEXT = urdf("seven_r").read_text()


def limits(given=LIMITS) -> dict[str, Any]:
    """Return limits as parameters."""
    found: dict[str, Any] = {}
    for name, effort, rate in zip(NAMES, given.effort.tolist(), given.effort_rate.tolist()):
        head = f"joint_limits.{name}"
        found |= {f"{head}.max_effort": effort, f"{head}.has_effort_rate_limits": True, f"{head}.max_effort_rate": rate}
    return found


def message(points=POINTS, duration: float = DURATION, first: float = 0.0, names=NAMES, start: float = 0.0,
            **fields: Any) -> JointTrajectory:
    """Return a trajectory through points at even times; fields of the points by name."""
    made = JointTrajectory(joint_names=list(names))
    made.header.stamp = stamp(start)
    times = first + np.linspace(0.0, duration, len(points)) if len(points) > 1 else [first]
    for t, q in zip(times, points):
        made.points.append(JointTrajectoryPoint(positions=list(map(float, q)), time_from_start=span(t)))
    for name, values in fields.items():
        for point, value in zip(made.points, values):
            setattr(point, name, value)
    return made


class Bench:
    """ROS domain with one scaling_node, publishers of its inputs, and received samples."""

    def __init__(self, ros: RosDomain, namespace: str = "", description: bool = True, own: bool = False, **parameters: Any):
        """Start the node. own: whether the parameters define another robot completely."""
        prefix = f"/{namespace}" if namespace else ""
        self.ros, self.node = ros, prefix + NODE
        robot = {} if own else {**({"robot_description": TEXT} if description else {}), **limits()}
        given = {"diagnostics.period": 0.1, "output": "points", "points_stop_time": 0.0, "control_rate": RATE, **robot,
                 **parameters}
        self.process = ros.start("scaling_node", given, namespace)
        self.received: list[ScaledMotion] = ros.listen(ScaledMotion, f"{self.node}/scaled_motion", 5000)
        self.ended = 0  # number of the last motion with received end
        self.diagnostics = Diagnostics(ros, self.node, "scaling")
        self.trajectories = ros.node.create_publisher(JointTrajectory, f"{self.node}/joint_trajectory", 10)
        self.states = ros.node.create_publisher(JointState, f"{prefix}/joint_states", 10)

    def ready(self) -> Bench:
        """Wait for the model and the discovery of all publishers and subscriptions."""
        self.until("IDLE")
        self.ros.until(lambda: all(p.get_subscription_count() for p in (self.trajectories, self.states)))
        self.ros.until(lambda: self.ros.node.count_publishers(f"{self.node}/scaled_motion"))
        self.ros.matched(self.node)
        return self

    def until(self, state: str) -> None:
        self.ros.until(lambda: self.diagnostics.state == state, what=f"never {state}", of=self.process)

    def send(self, *args: Any, **fields: Any) -> None:
        """Publish a trajectory; arguments are those of `message`."""
        self.trajectories.publish(message(*args, **fields))

    def state(self, q, names=NAMES) -> None:
        self.states.publish(JointState(name=list(names), position=list(map(float, q))))

    def stand(self, *states) -> None:
        """Publish joint states, arguments of `state`, until the node has processed them; topics are not synchronized."""
        before = int(self.diagnostics.next()["joint_states.received"])
        while int(self.diagnostics.values["joint_states.received"]) < before + len(states):
            for state in states:
                self.state(*state)
            self.ros.spin(0.2)

    def logged(self, *texts: str) -> None:
        """Wait until all of these texts are in the log, which may be written after the related message."""
        self.ros.until(lambda: all(text in self.process.log for text in texts), what=f"not logged: {texts}", of=self.process)

    def serve(self, name: str) -> str:
        answer = self.ros.call(Trigger, f"{self.node}/{name}", Trigger.Request())
        assert answer.success == (not answer.message)
        return answer.message

    def override(self, share: float) -> str:
        return self.ros.call(SetOverride, f"{self.node}/override", SetOverride.Request(share=share)).message

    def moving(self, seconds: float = 0.3) -> None:
        """Wait until a motion has been executed for some time and has not ended."""
        self.ros.until(lambda: self.received and self.received[-1].motion > self.ended and self.received[-1].t > seconds,
                       what="no motion", of=self.process)

    def pause(self) -> None:
        """Pause the current motion and wait until it is at rest."""
        assert not self.serve("pause")
        self.until("PAUSED")
        self.ros.until(lambda: self.received[-1].phase == ScaledMotion.PAUSED and not np.abs(self.received[-1].velocity).any())

    def end(self) -> Samples:
        """Return the samples of the current motion after its end, without late messages of an earlier one."""
        self.ros.until(lambda: self.received and self.received[-1].phase == ScaledMotion.ENDED
                       and self.received[-1].motion > self.ended, timeout=120.0, what="no end", of=self.process)
        self.ended = self.received[-1].motion
        samples = Samples([m for m in self.received if m.motion == self.ended])
        self.received.clear()
        return samples

    def alive(self) -> bool:
        """Return whether the node executes a short motion to a point and back."""
        assert self.process.alive and not self.received
        here = self.home.copy()
        self.send(np.stack((here, here + 0.02)), 0.3)
        assert np.abs(self.end().position[-1] - here - 0.02).max() < 1e-9
        self.send(np.stack((here + 0.02, here)), 0.3)
        return bool(np.abs(self.end().position[-1] - here).max() < 1e-9)

    home = POINTS[0]


class Samples:
    """Received samples of one or more motions, as arrays."""

    def __init__(self, messages: list[ScaledMotion]):
        self.messages = list(messages)
        self.stamps = np.array([m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in messages])
        self.position, self.velocity, self.acceleration, self.jerk, self.effort, self.effort_rate = (
            np.array([getattr(m, name) for m in messages]) for name in FIELDS)
        self.t, self.s = (np.array([getattr(m, name) for m in messages]) for name in ("t", "s"))

    def used(self, robot=ROBOT, given=LIMITS) -> np.ndarray:
        """Return the largest utilization of effort, effort-rate and velocity limits (samples,)."""
        tau, rate = robot.torque_and_rate(self.position, self.velocity, self.acceleration, self.jerk)
        shares = [np.abs(value / limit).max(axis=1)
                  for value, limit in ((tau, given.effort), (rate, given.effort_rate), (self.velocity, given.velocity))]
        return np.max(shares, axis=0)

    def known(self, robot) -> np.ndarray:
        """Return whether the efforts are those of a robot (samples,)."""
        torque, _ = robot.torque_and_rate(self.position, self.velocity, self.acceleration, self.jerk)
        return np.isclose(self.effort, torque, rtol=1e-9, atol=1e-9).all(axis=1)

    def distance(self, q) -> float:
        """Return the distance of a point from the motion [rad, m], interpolated by cubics through samples and velocities."""
        h, s = np.diff(self.t)[:, None, None], np.linspace(0.0, 1.0, 21)[:, None]
        (a, b), (da, db) = ((x[:-1, None], x[1:, None]) for x in (self.position, self.velocity))
        way = a + s**2 * (3.0 - 2.0 * s) * (b - a) + h * s * (1.0 - s) * ((1.0 - s) * da - s * db)
        return float(np.abs(way - q).max(axis=-1).min())

    def check(self, robot=ROBOT, points=POINTS, duration: float = DURATION) -> None:
        """Check limits, exact path, rest at the end, and efforts of the library."""
        assert self.used(robot).max() <= 1.0 + 1e-6
        path = plan_from_waypoints(points, np.linspace(0.0, duration, len(points))).path
        assert np.abs(self.position - path(self.s)[0]).max() < 1e-9 and (np.diff(self.s) >= -1e-12).all()
        tau, rate = robot.torque_and_rate(self.position, self.velocity, self.acceleration, self.jerk)
        np.testing.assert_allclose(self.effort, tau, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(self.effort_rate, rate, rtol=1e-9, atol=1e-7)
        assert not np.abs(self.velocity[-1]).max() > 1e-9
        # Positions change by the integrated velocities, up to the error of the trapezoidal rule.
        dt = np.diff(self.t)[:, None]
        moved = np.diff(self.position, axis=0) - dt * 0.5 * (self.velocity[1:] + self.velocity[:-1])
        together = dt[:, 0] <= 1.5 * np.median(dt)  # no message was lost between
        assert (dt >= 0.0).all()
        assert (np.abs(moved) <= dt**3 / 6.0 * np.abs(self.jerk).max() + 1e-9)[together].all()
