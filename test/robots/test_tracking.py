"""Loop closure along a stream of samples: branch selection, sensors of passive joints, rejected samples."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import load
from rnea_ros.errors import Rejected
from rnea_ros.robots.platform_motion import PlatformMotion
from rnea_ros.sim.machines import gough_stewart
from support.oracles import deviation
from support.parallel_machines import delta, planar_3rrr

ROOT = Path(__file__).resolve().parents[2]
START = {"five_bar": [1.9, 1.0], "palletiser": [0.4, 0.5, -0.3, 1.0]}


@pytest.fixture(scope="module")
def machines():
    return {name: load(ROOT / "urdf" / f"{name}.urdf", ROOT / "urdf" / f"{name}.robot.yaml")
            for name in START}


@pytest.fixture
def five_bar(machines):
    return machines["five_bar"]


def swing(name, t):
    """Return q, qd, qdd, qddd (N,) of the active joints for a reachable motion about START."""
    start = np.array(START[name])
    w, a = 1.0 + 0.3 * np.arange(len(start)), 0.3
    return start + a * np.sin(w * t), a * w * np.cos(w * t), -a * w**2 * np.sin(w * t), -a * w**3 * np.cos(w * t)


def other_branch(robot, qa):
    """Return the pose of the five-bar with the same motor angles and mirrored elbows."""
    q = robot.close(qa)
    arms = ((0.0, 0.4, qa[0]), (0.3, 0.45, qa[1]))
    left, right = (np.array([x, 0.0]) + L * np.array([np.cos(a), np.sin(a)]) for x, L, a in arms)
    line = np.arctan2(*(right - left)[::-1])
    mirrored = np.array([qa[0], 2 * line - (qa[0] + q[1]) - qa[0], qa[1], 2 * line - (qa[1] + q[3]) - qa[1]])
    return robot.close(qa, guess=mirrored)


@pytest.mark.parametrize("name", START)
def test_tracked_stream_equals_the_vectorized_motion(machines, name):
    robot, tracker = machines[name], machines[name].tracker()
    times = np.arange(0.0, 0.5, 1e-3)
    whole = robot.motion(*np.moveaxis([swing(name, t) for t in times], 1, 0))
    for k, t in enumerate(times):
        found = tracker.follow(*swing(name, t))
        for ours, theirs in zip(found.motion, whole, strict=True):
            assert deviation(ours, theirs[k]) < 1e-12
        if k % 100 == 0:  # with the last pose as a guess, other requests start where it ends
            assert deviation(robot.close(swing(name, t)[0], guess=tracker.last), found.motion.q) < 1e-14
        assert found.agrees and not found.restarted and np.isnan(found.disagreement).all()
        assert tracker.last is found.motion.q
    assert tracker.counts == {"followed": len(times)}


def test_tracker_keeps_its_branch_or_rejects_distant_samples(five_bar):
    """Accepted poses equal those reached in thousands of small steps; the others are rejected."""
    rng, tracker, rest = np.random.default_rng(3), five_bar.tracker(), np.zeros((3, 2))
    begin = tracker.follow(START["five_bar"], *rest).motion.q
    for qa in np.array(START["five_bar"]) + rng.uniform(-1.2, 1.2, (30, 2)):
        try:
            found = tracker.follow(qa, *rest).motion.q
        except Rejected as error:
            assert error.reason in ("out of reach", "singular") and tracker.last is begin
            continue
        pose = begin
        for share in np.linspace(0.0, 1.0, 1000)[1:]:
            pose = five_bar.close(begin[[0, 2]] * (1.0 - share) + qa * share, guess=pose)
        assert np.abs(found - pose).max() < 1e-9
        begin = found
    assert tracker.counts["followed"] > 15 and tracker.counts["out of reach"] > 0


def test_sensors_select_the_branch_at_the_start(five_bar):
    q, rest = np.array(START["five_bar"]), np.zeros((3, 2))
    mirrored = other_branch(five_bar, q)
    tracker = five_bar.tracker()
    found = tracker.follow(q, *rest, measured=mirrored[[1, 3]] + [0.01, -0.02])
    assert np.abs(found.motion.q - mirrored).max() < 1e-12 and found.restarted and found.agrees
    assert found.disagreement == pytest.approx([-0.01, 0.02], abs=1e-12)
    assert np.abs(tracker.follow(q + 0.01, *rest).motion.q - mirrored).max() < 0.1  # stays on this branch without sensors
    tracker.forget()
    assert np.abs(tracker.follow(q, *rest).motion.q - five_bar.close(q)).max() < 1e-12


def test_sensor_disagreement_is_wrapped_to_half_a_turn(five_bar):
    q, rest = np.array(START["five_bar"]), np.zeros((3, 2))
    tracker, truth = five_bar.tracker(), five_bar.close(q)[[1, 3]]
    tracker.follow(q, *rest)
    found = tracker.follow(q, *rest, measured=[truth[0] + 2.0 * np.pi - 0.03, np.nan])
    assert found.disagreement[0] == pytest.approx(0.03, abs=1e-12) and np.isnan(found.disagreement[1])
    assert found.agrees and not found.restarted
    broken = tracker.follow(q, *rest, measured=truth + [0.5, 0.0])  # consistent with no pose
    assert not broken.agrees and not broken.restarted and broken.disagreement == pytest.approx([-0.5, 0.0], abs=1e-12)
    assert five_bar.tracker(tolerance=0.6).follow(q, *rest, measured=truth + [0.5, 0.0]).agrees


def test_sensors_switch_the_branch_after_a_gap(five_bar):
    """The robot has passed a singular pose between two samples."""
    q, rest = np.array(START["five_bar"]), np.zeros((3, 2))
    tracker = five_bar.tracker()
    tracker.follow(q, *rest)
    mirrored = other_branch(five_bar, q)
    found = tracker.follow(q, *rest, measured=[np.nan, mirrored[3]])
    assert found.restarted and found.agrees and np.abs(found.motion.q - mirrored).max() < 1e-12
    assert tracker.counts == {"followed": 2, "restarted": 1}


def test_sensors_locate_a_pose_that_no_straight_path_reaches(five_bar):
    """A singularity is between the two poses, and none near the measured positions."""
    rest, tracker = np.zeros((3, 2)), five_bar.tracker()
    near = np.array([2.2, 0.6])
    pose = five_bar.close(near)
    tracker.follow(np.array(START["five_bar"]), *rest)
    with pytest.raises(Rejected) as error:
        tracker.follow(near + [2.0 * np.pi, 0.0], *rest)
    assert error.value.reason == "out of reach"
    shifted = pose + [2.0 * np.pi, -2.0 * np.pi, 0.0, 0.0]
    found = tracker.follow(near + [2.0 * np.pi, 0.0], *rest, measured=shifted[[1, 3]])
    assert found.restarted and np.abs(found.motion.q - shifted).max() < 1e-12


def test_rejected_samples_are_counted_and_keep_the_last_pose(five_bar):
    rest, tracker = np.zeros((3, 2)), five_bar.tracker()
    q = np.array(START["five_bar"])
    last = tracker.follow(q, *rest).motion.q
    cases = {"out of reach": ([3.0, 0.1], *rest), "bad input": ([np.nan, 1.0], *rest)}
    for reason, sample in cases.items():
        with pytest.raises(Rejected) as error:
            tracker.follow(*sample)
        assert error.value.reason == reason and len(str(error.value)) > 20
        assert tracker.last is last and tracker.counts[reason] == 1
    for sample, measured in (((q, *rest[:2], [0.0]), None), ((q, *rest), [0.0]), ((q, *rest), [np.inf, 0.0]),
                             ((q[None], *rest), None), ((q, [1e200, 0.0], *rest[:2]), None)):
        with pytest.raises(Rejected, match=r"qddd|measured|one sample|too large") as error:
            tracker.follow(*sample, measured=measured)
        assert error.value.reason == "bad input"
    assert tracker.counts["bad input"] == 6 and np.abs(tracker.follow(q, *rest).motion.q - last).max() < 1e-14


def test_threads_can_share_a_tracker(five_bar):
    """Each thread receives the pose of its joints on the common branch."""
    tracker, rest, wrong = five_bar.tracker(), np.zeros((3, 2)), []

    def follow(phase):
        for t in np.linspace(0.0, 1.0, 100):
            q = swing("five_bar", t + phase)[0]
            found = tracker.follow(q, *rest).motion.q
            if np.abs(found[[0, 2]] - q).max() > 0.0 or np.abs(found - five_bar.close(q)).max() > 1e-10:
                wrong.append(q)

    threads = [threading.Thread(target=follow, args=(phase,)) for phase in (0.0, 1.7, 3.1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
        assert not thread.is_alive()
    assert not wrong and tracker.counts["followed"] == 300


# --- platforms --------------------------------------------------------------------------------------------------------


PLATFORMS = {"gough_stewart": (gough_stewart, range(6)), "delta": (delta, range(3)), "planar_3rrr": (planar_3rrr, (0, 1, 5))}


@pytest.fixture(scope="module")
def platforms():
    return {name: make().robot() for name, (make, _) in PLATFORMS.items()}


def platform_ride(robot, name, t):
    """Return a motion of the platform within its degrees of freedom, away from home and back."""
    freedoms, size = list(PLATFORMS[name][1]), np.zeros(6)
    size[freedoms] = 0.04 * (1.0 + 0.3 * np.arange(len(freedoms)))
    x = [size * np.sin(t), size * np.cos(t), -size * np.sin(t), -size * np.cos(t)]
    return PlatformMotion.from_rpy([robot.home[0] + x[0][:3], *(y[:3] for y in x[1:])], [y[3:] for y in x])


def carry(tracker, robot, motion):
    """Return the tree motion for a platform motion, starting from the last pose of a tracker."""
    def moved(near):
        found = robot.tree_motion(motion, guess=near)
        return found, found.q

    return tracker.move(moved)


def platform_of(robot, found):
    return robot.loops.platforms[0].motion(*found.motion[:4])


@pytest.mark.parametrize("name", PLATFORMS)
def test_tracked_forward_kinematics_invert_tracked_inverse_kinematics(platforms, name):
    robot = platforms[name]
    carried, followed = robot.tracker(), robot.tracker()
    active = [robot.tree.joint_names.index(joint) for joint in robot.joint_names]
    for t in np.arange(0.0, 6.3, 0.05):
        motion = platform_ride(robot, name, t)
        there = carry(carried, robot, motion)
        back = followed.follow(*(part[active] for part in there))
        for ours, theirs in zip((*platform_of(robot, back), *back.motion[:4]), (*motion, *there), strict=True):
            assert deviation(ours, theirs) < 1e-9
        forces = robot.torque_and_rate(motion=platform_of(robot, back), guess=back.motion.q)
        assert deviation(forces, robot.torque_and_rate(motion=motion)) < 1e-9
    assert carried.counts == followed.counts == {"followed": 126}


def test_unreachable_platform_motion_is_rejected_with_a_reason(platforms):
    robot, rest = platforms["delta"], np.zeros((3, 3))
    tracker, (P, R) = robot.tracker(), robot.home
    carry(tracker, robot, PlatformMotion(P + [0.02, 0.01, 0.0], R))
    last = tracker.last
    for reason, motion in {"out of reach": PlatformMotion([0.0, 0.0, -1.5], R),
                           "motion that the legs do not allow": PlatformMotion(P, R, velocity=[0, 0, 0, 0.1, 0, 0])}.items():
        with pytest.raises(Rejected) as error:
            carry(tracker, robot, motion)
        assert error.value.reason == reason and tracker.last is last and tracker.counts[reason] == 1
    for reason, sample in {"out of reach": ([0.3, 2.5, -1.0], *rest), "bad input": ([0.0, np.nan, 0.0], *rest)}.items():
        with pytest.raises(Rejected) as error:
            tracker.follow(*sample)
        assert error.value.reason == reason and tracker.last is last and tracker.counts[reason] >= 1
    with pytest.raises(Rejected, match="a tracker requires one sample"):
        tracker.follow(np.zeros((2, 3)), *rest)
    tracker.forget()
    found = tracker.follow(np.zeros(3), *rest)
    assert platform_of(robot, found).position == pytest.approx(P, abs=1e-12)
