"""dynamics_node with publish_speed_scaling over DDS: closed-form speed factor, rate limits, off by default."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from std_msgs.msg import Float64

from rnea_ros import Robot
from rnea_ros.trajectory.speed_factor import speed_factor
from support.node_bench import ARM, NODE, Bench
from support.ros_helpers import Diagnostics, ros_domain

pytestmark = pytest.mark.ros
LIMITS = {"turn": (40.0, 100.0), "spin": (np.nan, np.nan), "slide": (60.0, np.nan)}  # effort, from the URDF; effort rate


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        limits = {"has_effort_rate_limits": True, "max_effort_rate": 100.0}
        yield Bench(ros, robot_description=ARM, **{"joint_limits.turn." + k: v for k, v in limits.items()}).ready()


def wanted(robot: Robot, motion: np.ndarray):
    effort, rate = (np.array(column) for column in zip(*LIMITS.values()))
    return speed_factor(*robot.dynamics(*motion), effort, rate)


def motion_with(robot: Robot, seed: int, low: float, high: float) -> np.ndarray:
    """Return a random motion with a speed factor between two bounds."""
    rng = np.random.default_rng(seed)
    while True:
        motion = rng.uniform(-1.0, 1.0, (4, 3)) * rng.uniform(0.3, 8.0) ** np.arange(4)[:, None]
        if low < wanted(robot, motion).factor < high:
            return motion


def listening(bench: Bench, robot: Robot) -> list[Float64]:
    """Enable and record the published factors, one for each result."""
    received: list[Float64] = bench.ros.listen(Float64, f"{NODE}/speed_scaling")
    # no rate limit: the published factor is the closed form
    assert not bench.ros.set(NODE, publish_speed_scaling=True, speed_scaling__fall=100.0, speed_scaling__rise=100.0)
    bench.ros.until(lambda: bench.send(np.zeros((4, 3))) and received)
    seeds = count(5)

    def newest() -> bool:
        """Return whether result and factor of a new motion are the newest: messages arrive in order."""
        motion = motion_with(robot, next(seeds), 0.4, 0.6)
        if not bench.send(motion, attempts=1):
            return False
        bench.ros.until(lambda: received[-1].data == pytest.approx(float(wanted(robot, motion).factor), rel=1e-12))
        return True

    bench.ros.until(newest)
    received.clear()
    bench.results.clear()
    return received


def answered(bench: Bench, received: list[Float64], motion: np.ndarray) -> float:
    """Return the factor that the node publishes with its answer to a motion."""
    result = bench.send(motion)
    assert result
    index = bench.results.index(result)
    bench.ros.until(lambda: len(received) > index)
    return received[index].data


def test_speed_factor_is_off_by_default_and_equals_the_closed_form(bench):
    robot = Robot.from_urdf(ARM)
    assert list(robot.joint_names) == list(LIMITS)
    assert f"{NODE}/speed_scaling" not in dict(bench.ros.node.get_topic_names_and_types())
    received = listening(bench, robot)
    for low, high in ((1.1, 9.0), (0.1, 0.4), (0.5, 0.9), (-1.0, 1e-9), (0.5, 0.9)):
        motion = motion_with(robot, 3, low, high)
        assert answered(bench, received, motion) == pytest.approx(min(1.0, float(wanted(robot, motion).factor)), rel=1e-12)
    status = Diagnostics(bench.ros, NODE)
    bench.ros.until(lambda: bench.send(motion) and "of turn binds at factor" in status.status.message, timeout=120.0)
    assert "no effort rate limit of spin, slide is known: not enforced" in bench.process.log


def test_speed_factor_of_an_executed_motion_settles_within_its_rate_limits(bench):
    """An executed motion is slowed already: the factor settles where the slowed motion meets the limit."""
    robot = Robot.from_urdf(ARM)
    motion = motion_with(robot, 4, 0.3, 0.6)
    target = float(wanted(robot, motion).factor)
    received = listening(bench, robot)
    assert not bench.ros.set(NODE, speed_scaling__motion="executed", speed_scaling__fall=4.0)
    bench.ros.until(lambda: answered(bench, received, np.zeros((4, 3))) == 1.0)
    values, times = [1.0], [bench.clock]
    for _ in range(60):
        values.append(answered(bench, received, motion * values[-1] ** np.arange(4)[:, None]))
        times.append(bench.clock)
    assert (-np.diff(values) <= 4.0 * np.diff(times) + 1e-9).all()
    assert values[-1] == pytest.approx(target, rel=1e-6)
    assert not bench.ros.set(NODE, speed_scaling__motion="planned")
    assert "out of range" in bench.ros.set(NODE, speed_scaling__fall=0.0)
