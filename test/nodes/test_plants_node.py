"""dynamics_node with robots simulated by MuJoCo, over DDS: a standing and trotting quadruped, and a five-bar."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("mujoco")

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu
from std_msgs.msg import Header

from rnea_msgs.msg import BaseDynamics, BaseStateStamped
from rnea_ros.demo.nodes import robots
from rnea_ros.sim.machines import machine
from rnea_ros.sim.plant import CHANGE, STANCE, SWING, phases, with_rates
from support.live_bench import URDF, LiveBench
from support.ros_helpers import ros_domain, stamp

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

PERCENT = 0.01  # of the peak torque
EXACT = 1e-6


class TrotRecording:
    """Simulated samples of a quadruped, and the phases of its legs."""

    def __init__(self, seconds):
        self.device = machine("solo12", robot_file=URDF / "solo12.robot.yaml")
        self.rates = list(islice(with_rates(self.device.instants()), round(seconds / self.device.plant.timestep)))
        instants = [rates.instant for rates in self.rates]
        forces = np.array([[np.linalg.norm(six) for six in instant.wrenches.values()] for instant in instants])
        self.phase = phases(np.array([instant.t for instant in instants]), forces)
        self.peak = np.abs([instant.tau for instant in instants]).max(axis=0)


class WalkerBench(LiveBench):
    """Bench that publishes base states and foot forces before the joint states that need them."""

    def __init__(self, ros, walked):
        self.plant = walked.device.plant
        feet = [foot.link for foot in self.plant.scene.feet]
        parameters = {"wrenches.names": feet, **{f"wrenches.{foot}.link": foot for foot in feet},
                      **{f"wrenches.{foot}.timeout": 5.0 for foot in feet}}
        super().__init__(ros, "branched", self.plant.robot.joint_names, robot_description=self.plant.description,
                         robot_file=str(URDF / "solo12.robot.yaml"), **{"base.timeout": 5.0}, **parameters)
        create = ros.node.create_publisher
        self.base = create(BaseStateStamped, f"{self.node}/base_state", 10)
        self.imu = create(Imu, f"{self.node}/base_imu", 10)
        self.feet = {foot: create(WrenchStamped, f"{self.node}/wrench/{foot}", 10) for foot in feet}
        self.reported: list[BaseDynamics] = ros.listen(BaseDynamics, f"{self.node}/base_dynamics")

    def at(self, rates):
        """Return the answer to a sample, and the residual wrench at the base. Late messages are sent again."""
        instant = rates.instant

        def send():
            header = Header(stamp=stamp(self.clock + self.dt), frame_id=self.plant.tree.root_link)
            for foot, six in instant.wrenches.items():
                self.feet[foot].publish(robots.wrench_message(Header(stamp=header.stamp, frame_id=foot), six))
            self.base.publish(robots.base_state_message(header, rates))
            self.ros.spin(0.003)
            found = self.sample((instant.q, instant.qd, instant.qdd, rates.jerk), attempts=1)
            whole = found and self.beside(found.header.stamp)
            same = whole and whole.state.pose.position.x == instant.base.position[0]
            return same and np.abs(residual_wrench(whole)).max() < 1e-3 and (found, residual_wrench(whole))

        return self.ros.until(send, what="no answer", of=self.process)

    def beside(self, when):
        """Return the base message with the stamp of an answer; None before the subscription is matched."""
        for _ in range(50):
            found = next((one for one in reversed(self.reported) if one.header.stamp == when), None)
            if found:
                return found
            self.ros.spin(0.005)
        return None


def residual_wrench(whole):
    """Return the wrench on the base that the foot forces do not balance."""
    f, n = whole.wrench.force, whole.wrench.torque
    return [f.x, f.y, f.z, n.x, n.y, n.z]


@pytest.fixture(scope="module")
def walked():
    return TrotRecording(1.6)


def test_motor_torques_of_a_standing_and_trotting_quadruped_match_mujoco(walked, tmp_path):
    """The feet support the whole weight: no residual wrench remains at the base."""
    with ros_domain(tmp_path) as ros:
        bench = WalkerBench(ros, walked)
        bench.prepared()
        ros.until(lambda: all(one.get_subscription_count() for one in (bench.base, *bench.feet.values())))
        seen = set()
        for k in (*range(100, 900, 200), *range(1010, 1600, 15)):
            rates = walked.rates[k]
            found, lack = bench.at(rates)
            share = np.abs(np.array(found.effort) - rates.instant.tau) / walked.peak
            assert share.max() < EXACT < PERCENT, (k, share)
            assert np.abs(lack).max() < 1e-4
            seen |= set(walked.phase[k])
        assert seen == {STANCE, SWING, CHANGE}
        assert bench.info[-1].kind.startswith("tree on a ")


def test_motor_torques_of_a_five_bar_match_mujoco(tmp_path):
    """The loop is an equality constraint of MuJoCo; the node receives the two motors only."""
    device = machine("five_bar", URDF / "five_bar.urdf", URDF / "five_bar.robot.yaml")
    moved = list(islice(with_rates(device.instants()), 2000))[100::50]
    peak = np.abs([rates.instant.tau for rates in moved]).max(axis=0)
    with ros_domain(tmp_path) as ros:
        bench = LiveBench(ros, "five_bar", device.plant.robot.joint_names)
        bench.prepared()
        for rates in moved:
            instant, motors = rates.instant, device.motors
            motion = *(part[motors] for part in (instant.q, instant.qd, instant.qdd)), rates.jerk[motors]
            found = ros.until(lambda motion=motion: bench.sample(motion), of=bench.process)
            assert (np.abs(np.array(found.effort) - instant.tau) / peak).max() < 1e-4 < PERCENT
