"""Parallel robots in dynamics_node, in a process of its own over DDS: forces by multipliers on Pinocchio, and the platform."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

import yaml
from geometry_msgs.msg import PoseStamped, TwistStamped

from rnea_ros import PlatformMotion
from rnea_ros.robots.parallel_machines import delta, gough_stewart
from support.live_bench import LiveBench
from support.machines import PlatformOracle
from support.oracles import difference, worst
from support.ros_helpers import world

pytestmark = pytest.mark.ros

SAMPLES = 40
# how it is made, freedoms of its platform, actuators that no pose of it allows, seen from home
MACHINES = {"gough_stewart": (gough_stewart, range(6), [3.0, 0.0, 0.0, 0.0, 0.0, 0.0]), "delta": (delta, range(3), [10.0] * 3)}


class Swing:
    """The platform swings about its home in all its freedoms; joints of the legs as inverse kinematics has them, whose gaps
    the oracle measures."""

    def __init__(self, name):
        make, freedoms, self.too_far = MACHINES[name]
        self.machine = make()
        self.robot = self.machine.robot()
        self.oracle = PlatformOracle(self.machine, self.robot.legs.joint_names)
        self.active = [self.robot.legs.joint_names.index(joint) for joint in self.robot.joint_names]
        self._a, self._w = 0.05 * np.isin(range(6), freedoms), 1.0 + 0.3 * np.arange(6)

    def platform(self, t):
        a, w = self._a, self._w
        s, c = np.sin(w * t), np.cos(w * t)
        x = [a * s, a * w * c, -a * w**2 * s, -a * w**3 * c]
        return PlatformMotion.from_rpy([self.robot.home[0] + x[0][:3], *(y[:3] for y in x[1:])], [y[3:] for y in x])

    def joints(self, t):
        return self.robot.leg_motion(self.platform(t))

    def actuators(self, t):
        legs = self.joints(t)
        return [part[self.active] for part in legs[:4]]

    def force(self, t):
        found, gap = self.oracle.forces(self.joints(t)[:3], self.platform(t))
        assert gap < 1e-9
        return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MACHINES)
def test_forces_and_rates_of_a_moving_platform(tmp_path, name):
    swing, file = Swing(name), tmp_path / f"{name}.robot.yaml"
    content = swing.machine.robot_file
    file.write_text(yaml.dump(content, Dumper=Plain))
    with world(tmp_path) as ros:
        bench = LiveBench(ros, "stewart", swing.robot.joint_names, robot_description=swing.machine.urdf, robot_file=str(file))
        poses = ros.listen(PoseStamped, f"{bench.node}/platform_pose")
        twists = ros.listen(TwistStamped, f"{bench.node}/platform_twist")
        bench.ready(*swing.actuators(0.0))
        ros.until(lambda: bench.sample(swing.actuators(0.0)) and poses and twists, of=bench.process)
        errors = []
        for t in np.linspace(0.0, 3.0, SAMPLES):
            found = bench.sample(swing.actuators(t))
            rate = difference(lambda s, t=t: swing.force(t + s), h=1e-2)
            errors.append((worst(found.effort, swing.force(t)), worst(found.effort_rate, rate)))
            tells(swing.platform(t), ros, poses, twists, found.header.stamp)
        print(f"{name}: largest errors of force and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info, values = bench.info[-1], bench.diagnostics.next()
        assert info.kind == values["kind"] == "ParallelRobot" and list(info.joint_names) == list(swing.robot.joint_names)
        assert list(info.measured_joints) == list(info.joint_names)
        assert set(info.solved_joints) == set(swing.robot.legs.joint_names) - set(info.joint_names)
        far = [swing.actuators(0.0)[0] + swing.too_far, *np.zeros((3, swing.robot.n))]

        def refused():
            bench.publish(far)
            return bench.diagnostics.dropped("joint_states", "out_of_reach")

        ros.until(refused, of=bench.process)
        assert bench.sample(swing.actuators(0.1)) and bench.process.alive


class Plain(yaml.SafeDumper):
    """Numbers of numpy are numbers."""


Plain.add_multi_representer(np.floating, lambda dumper, value: dumper.represent_float(float(value)))


def tells(platform, ros, poses, twists, stamp):
    """Pose and twist of this stamp are those of the platform."""
    pose, twist = (ros.until(lambda said=said: next((m for m in said if m.header.stamp == stamp), None))
                   for said in (poses, twists))
    assert pose.header.frame_id == twist.header.frame_id == "base"
    p, o, v, w = pose.pose.position, pose.pose.orientation, twist.twist.linear, twist.twist.angular
    x, y, z, s = o.x, o.y, o.z, o.w
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * s), 2 * (x * z + y * s)],
                  [2 * (x * y + z * s), 1 - 2 * (x * x + z * z), 2 * (y * z - x * s)],
                  [2 * (x * z - y * s), 2 * (y * z + x * s), 1 - 2 * (x * x + y * y)]])
    np.testing.assert_allclose([p.x, p.y, p.z], platform.position, atol=1e-10)
    np.testing.assert_allclose(R, platform.rotation, atol=1e-10)
    np.testing.assert_allclose([v.x, v.y, v.z, w.x, w.y, w.z], platform.velocity, atol=1e-9)
