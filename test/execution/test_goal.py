"""Validation of trajectory goals, and their start."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rnea_ros.errors import Rejected
from rnea_ros.execution.goal import TrajectoryPoint, anchor_to_start, check_position_limits, read_goal
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.scaling_cases import dynamics

NAN = math.nan
NAMES = ("a", "b", "c")
REST = np.full(3, NAN)
UNKNOWN = np.full(3, NAN)


def test_goal_joints_are_sorted_in_the_order_of_the_model():
    goal = read_goal(NAMES, ["c", "a"], [TrajectoryPoint(0.0, [3.0, 1.0], [0.0, 0.0]),
                                    TrajectoryPoint(2.0, [3.5, 1.5], [0.0, 0.0])], 7)
    assert goal.q.tolist() == [[1.0, 0.0, 3.0], [1.5, 0.0, 3.5]] and goal.v.tolist() == np.zeros((2, 3)).tolist()
    assert (goal.a, goal.unnamed, goal.start, goal.duration) == (None, (1,), 7, 2.0)
    anchored = anchor_to_start(goal, np.array([NAN, 9.0, NAN]), 0.01, "refuse", UNKNOWN)
    assert anchored.q.tolist() == [[1.0, 9.0, 3.0], [1.5, 9.0, 3.5]]
    with pytest.raises(Rejected, match="b: not named in the trajectory, and no joint state") as caught:
        anchor_to_start(goal, np.array([1.0, NAN, 3.0]), 0.01, "refuse", UNKNOWN)
    assert caught.value.reason == "joint_not_named"


TWO = [TrajectoryPoint(0.0, [0.0] * 3), TrajectoryPoint(1.0, [1.0] * 3)]


@pytest.mark.parametrize(("names", "points", "reason", "detail"), [
    ([], [], "empty", "0 points for 0 joints"),
    (NAMES, [], "empty", "0 points for 3"),
    ("aab", TWO, "duplicate_joint", "a"),
    ("abx", TWO, "unknown_joint", "x: the robot has a, b, c"),
    (NAMES, TWO[::-1], "times", "point 1 is at 0 s, point 0 before it at 1 s"),
    (NAMES, [TWO[0], TWO[0]], "times", "must increase"),
    (NAMES, [TrajectoryPoint(-1.0, [0.0] * 3)], "times", "not below zero"),
    (NAMES, [TrajectoryPoint(NAN, [0.0] * 3)], "times", "finite"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [1.0, 2.0])], "wrong_size", "point 1 has 2 positions for 3 joints"),
    (NAMES, [TrajectoryPoint(0.0, []), TrajectoryPoint(1.0, [])], "wrong_size", "no positions"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [])], "wrong_size", "point 1 has no positions, others have"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [1.0] * 3, [0.0] * 3)], "wrong_size", "point 0 has no velocities, others have"),
    (NAMES, [TWO[0], TrajectoryPoint(1.0, [1.0, NAN, math.inf])], "not_finite", "b = nan, c = inf"),
    (NAMES, [point._replace(velocities=[NAN] * 3) for point in TWO], "not_finite", "velocities of point 0"),
])
def test_invalid_goals_are_rejected(names, points, reason, detail):
    with pytest.raises(Rejected, match=detail) as caught:
        read_goal(NAMES, list(names), points)
    assert caught.value.reason == reason


@pytest.mark.parametrize("names", [[f"x{k}" for k in range(10**5)], ["x"] * 10**5, ["x" * 10**6]])
def test_error_messages_abbreviate_long_lists_of_names(names):
    with pytest.raises(Rejected) as caught:
        read_goal(NAMES, names, TWO)
    assert len(str(caught.value)) < 1000


def test_goal_is_anchored_to_the_start_or_rejected():
    def begins(first, start, elsewhere="refuse", points=2, velocities=None):
        rest = [velocities] * 2 if velocities else [(), ()]
        goal = read_goal(NAMES, NAMES, [TrajectoryPoint(first, [0.0] * 3, rest[0]),
                                   TrajectoryPoint(first + 1.0, [1.0] * 3, rest[1])][:points])
        return anchor_to_start(goal, np.array(start), 0.01, elsewhere, np.array([1.0, NAN, 1.0]))

    for first in (0.0, 2.0):  # at the first point, or nothing known: as it is
        for start in ([0.005, 0.0, 0.0], REST):
            assert begins(first, start).q.tolist() == [[0.0] * 3, [1.0] * 3]
    there = begins(2.0, [0.5, 0.0, NAN])  # a later first point is approached
    assert there.times.tolist() == [0.0, 2.0, 3.0] and there.q[0].tolist() == [0.5, 0.0, 0.0]
    with pytest.raises(Rejected, match=r"a is at 0\.5, and at 0 in the first point") as caught:
        begins(0.0, [0.5, 0.0, 0.0])
    assert caught.value.reason == "not_at_start"
    way = begins(0.0, [0.5, 0.1, 0.0], "prepend", velocities=[0.0] * 3)
    np.testing.assert_allclose(way.times, [0.0, 1.875, 1.975, 2.975])  # half of 1 rad/s, at the peak of a quintic
    assert way.q[:, 0].tolist() == [0.5, 0.0, 0.0, 1.0] and way.v.shape == (4, 3)
    alone = begins(1.5, [0.5, 0.0, 0.0], points=1)
    assert alone.times.tolist() == [0.0, 1.5] and alone.q[0].tolist() == [0.5, 0.0, 0.0]
    with pytest.raises(Rejected, match="a single point needs joint states") as caught:
        begins(1.0, REST, points=1)
    assert caught.value.reason == "one_point"


def test_path_outside_position_limits_between_points_is_rejected():
    robot = dynamics("seven_r").robot
    points = np.zeros((4, 7)) + [0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]
    points[:, 1] = 0.5, 1.79, 1.6, 0.0
    check_position_limits(plan_from_waypoints(points[:2], [0.0, 1.0]).path, robot.limits, robot.joint_names)
    with pytest.raises(Rejected, match=r"joint2 would be at 1.8\d* between two points; its limits are -1.8 to 1.8"):
        check_position_limits(plan_from_waypoints(points, [0.0, 1.0, 2.0, 3.0]).path, robot.limits, robot.joint_names)


def test_goal_of_a_continuous_joint_continues_from_the_robots_number_of_turns():
    turns, turn = np.array([True, True, False]), 2.0 * math.pi

    def begins(first, start, points=2, elsewhere="refuse"):
        goal = read_goal(NAMES, NAMES, [TrajectoryPoint(first + k, [3.0 + k, 0.0, 0.0]) for k in range(points)])
        return anchor_to_start(goal, np.array(start), 0.01, elsewhere, UNKNOWN, turns)

    there = begins(0.0, [3.005 - turn, NAN, 0.0])
    np.testing.assert_allclose(there.q, [[3.0 - turn, 0.0, 0.0], [4.0 - turn, 0.0, 0.0]])
    assert begins(0.0, [3.0, 2.0 * turn, 0.0]).q[:, 1].tolist() == [2.0 * turn] * 2
    near = begins(2.0, [-3.0, 0.0, 0.0], points=1)  # the short way
    np.testing.assert_allclose(near.q[:, 0], [-3.0, 3.0 - turn])
    way = begins(0.0, [-3.0, 0.0, 0.0], elsewhere="prepend")
    np.testing.assert_allclose(way.q[:, 0], [-3.0, 3.0 - turn, 3.0 - turn, 4.0 - turn])
    with pytest.raises(Rejected, match=r"a is at -3, and at -3\.28319 in the first point"):
        begins(0.0, [-3.0, 0.0, 0.0])
    with pytest.raises(Rejected, match=r"c is at 6\.28319, and at 0"):  # not continuous
        begins(0.0, [3.0, 0.0, turn])
