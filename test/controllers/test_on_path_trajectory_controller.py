"""OnPathTrajectoryController of rnea_controllers: override, pause and stop on the path, with stand-in headers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnea_ros import load
from rnea_ros.cli.main import main
from support.controller_harness import FAILURE, SUCCESS, Controller

ROOT = Path(__file__).resolve().parents[2]
PERIOD, SECOND = 1e-3, 10**9
PLUGIN = "rnea_controllers::OnPathTrajectoryController"
FROM, TO = np.array([0.3, -0.5, 0.2, -1.8, 0.1, 1.5, 0.4]), np.array([1.2, 0.4, -0.6, -1.0, 0.9, 2.2, -0.5])
DURATION, KNOTS = 1.5, 31
START = 5 * SECOND


@pytest.fixture(scope="module")
def panda(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panda")
    urdf, file = (ROOT / "urdf" / f"panda.{kind}" for kind in ("urdf", "robot.yaml"))
    assert main(["export", str(urdf), "--robot-file", str(file), "-o", str(folder), "--shared"]) == 0
    return str(folder / "libpanda.so"), load(urdf, file)


NAMES = [f"panda_joint{k}" for k in range(1, 8)]


@pytest.fixture
def start(code):
    opened = []

    def made(**parameters):
        controller = Controller(code, {"joints": NAMES, **parameters}, plugin=PLUGIN, name="on_path")
        opened.append(controller)
        controller.set_clock(START)
        assert [controller.transition(name) for name in ("init", "configure")] == [SUCCESS, SUCCESS], controller.log
        controller.write(FROM)
        assert controller.transition("activate") == SUCCESS, controller.log
        return controller

    yield made
    for controller in opened:
        controller.close()


def exact(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-12)


def law(t):
    """Return q, qd, qdd (3, 7) from FROM to TO by a polynomial of degree 7 on a curved path."""
    u = np.clip(t / DURATION, 0.0, 1.0)
    s = np.array([35 * u**4 - 84 * u**5 + 70 * u**6 - 20 * u**7,
                  (140 * u**3 - 420 * u**4 + 420 * u**5 - 140 * u**6) / DURATION,
                  (420 * u**2 - 1680 * u**3 + 2100 * u**4 - 840 * u**5) / DURATION**2])
    bend = 0.3 * np.sin(np.arange(7))  # depends on s squared, so that the path is curved
    return np.array([FROM + (TO - FROM) * s[0] + bend * s[0] * (s[0] - 1), (TO - FROM) * s[1] + bend * (2 * s[0] - 1) * s[1],
                     (TO - FROM) * s[2] + bend * ((2 * s[0] - 1) * s[2] + 2 * s[1] ** 2)])


def send(controller, first=0.0, last=DURATION, stamp=START, names=NAMES, columns=slice(None)):
    times = np.linspace(first, last, KNOTS)
    controller.send_trajectory(stamp, names, times, np.array([law(t)[:, columns] for t in times]))


def run(controller, cycles, at=lambda cycle: None):
    """Return q, qd, qdd (cycles, 3, 7) and the rate and the path time (cycles, 2)."""
    found, exported = [], []
    for cycle in range(cycles):
        at(cycle)
        assert controller.update(PERIOD) == 0
        commands, more = controller.read()
        found.append(commands.reshape(3, 7))
        exported.append(more)
    return np.array(found), np.array(exported)


def distance_from_path(q):
    """Return the largest distance of poses (samples, 7) from the path."""
    path = np.array([law(t)[0] for t in np.linspace(0.0, DURATION, 3001)])
    return max(np.abs(path - pose).max(axis=1).min() for pose in q)


def test_trajectory_is_executed_as_planned(start):
    controller = start()
    send(controller)
    found, exported = run(controller, 1600)
    times = PERIOD * np.arange(1, 1601)
    wanted = np.array([law(t) for t in times])
    for order, tolerance in enumerate((1e-5, 1e-3, 0.1)):  # of quintics between knots 50 ms apart
        np.testing.assert_allclose(found[:, order], wanted[:, order], atol=tolerance)
    exact(found[-1], [TO, np.zeros(7), np.zeros(7)])
    assert set(exported[:1400, 0]) == {1.0}


def test_trajectory_joints_may_have_another_order(start):
    controller = start()
    send(controller, names=NAMES[::-1], columns=slice(None, None, -1))
    exact(run(controller, 1600)[0][-1, 0], TO)


@pytest.mark.parametrize("with_robot", [False, True])
def test_pause_starts_at_once_and_stays_on_the_path(start, panda, with_robot):
    controller = start(**({"robot_library": panda[0]} if with_robot else {}))
    send(controller)
    overrides = {600: 0.0, 1800: 0.3, 2600: 1.0}
    found, exported = run(controller, 5000, lambda cycle: cycle in overrides and controller.send_override(overrides[cycle]))
    rate = exported[:, 0]
    assert rate[599] == 1.0 and rate[601] < 1.0  # within two cycles
    assert (np.diff(rate[600:1700]) <= 1e-12).all() and rate[1700] == 0.0  # without overshoot
    exact(found[1700:1800, 1:], np.zeros((100, 2, 7)))
    assert abs(rate[2590] - 0.3) < 1e-3
    assert distance_from_path(found[::20, 0]) < 1e-3
    exact(found[-1, 0], TO)
    # the reference is one motion: velocities and accelerations are the derivatives of positions
    for order, tolerance in ((0, 1e-3), (1, 0.05)):
        central = (found[2:, order] - found[:-2, order]) / (2 * PERIOD)
        np.testing.assert_allclose(found[1:-1, order + 1], central, atol=tolerance * np.abs(found[:, order + 1]).max())


def test_override_changes_keep_torque_and_torque_rate_limits(start, panda):
    """A fast motion is paused abruptly; without the robot model it exceeds the torque rate limit."""
    library, robot = panda
    excess = {}
    for name, given in (("robot", {"robot_library": library}), ("none", {})):
        controller = start(change_time=0.02, **given)
        send(controller)
        moving, _ = run(controller, 700)
        controller.send_override(0.0)
        found = np.concatenate((moving, run(controller, 800)[0]))
        torques = robot.inverse_dynamics(*(found[:, order] for order in range(3)))
        rates = np.diff(torques, axis=0) / PERIOD
        assert (np.abs(torques) <= robot.limits.effort * 1.001).all() or name == "none"
        excess[name] = (np.abs(rates) / robot.limits.effort_rate).max()
        exact(found[-1, 1:], np.zeros((2, 7)))
    assert excess["none"] > 1.5 and excess["robot"] < 1.02, excess


def test_stop_ends_on_the_path_and_a_new_motion_starts_there(start):
    controller = start()
    send(controller)
    run(controller, 500)
    controller.send_trajectory(0, NAMES, [], np.zeros((0, 3, 7)))
    found, _ = run(controller, 700)
    exact(found[-1, 1:], np.zeros((2, 7)))
    assert distance_from_path(found[::50, 0]) < 1e-3
    rest = found[-1, 0]
    times = np.linspace(0.0, 1.0, 11)
    u = times[:, None]
    quintic = [rest + (FROM - rest) * (10 * u**3 - 15 * u**4 + 6 * u**5), (FROM - rest) * (30 * u**2 - 60 * u**3 + 30 * u**4),
               (FROM - rest) * (60 * u - 180 * u**2 + 120 * u**3)]
    controller.send_trajectory(0, NAMES, times, np.stack(quintic, axis=1))
    np.testing.assert_allclose(run(controller, 1100)[0][-1, 0], FROM, atol=1e-12)


def test_consecutive_messages_continue_the_motion_and_the_last_one_ends_at_rest(start):
    """Each message starts with knots of the previous one, as those of scaling_node."""
    controller = start()
    knots = np.linspace(0.0, DURATION, KNOTS)

    def piece(first, count):
        """Knots of the motion, and a stop on its path behind them."""
        times, points = list(knots[first:first + count]), [law(t) for t in knots[first:first + count]]
        begin = times[-1]
        for tau in np.linspace(0.05, 0.4, 8):  # path time that slows down: s = begin + tau - tau^2 / 0.8
            s, s1, s2 = begin + tau - tau**2 / 0.8, 1 - tau / 0.4, -1 / 0.4
            q, qd, qdd = law(s)
            times.append(begin + tau)
            points.append(np.array([q, qd * s1, qdd * s1**2 + qd * s2]))
        points[-1][1:] = 0.0
        controller.send_trajectory(START + round(times[0] * SECOND), NAMES, np.array(times) - times[0], np.array(points))

    piece(0, 11)
    sent = {250: (5, 11), 500: (10, 11)}  # and then nothing: the node has died
    found, _ = run(controller, 2500, lambda cycle: cycle in sent and piece(*sent[cycle]))
    assert not controller.log
    wanted = np.array([law(t)[0] for t in PERIOD * np.arange(1, 1001)])
    np.testing.assert_allclose(found[:990, 0], wanted[:990], atol=1e-5)
    exact(found[-1, 1:], np.zeros((2, 7)))
    assert distance_from_path(found[::50, 0]) < 1e-3 and np.abs(found[-1, 0] - TO).max() > 0.02
    # with a pause in between the same messages are played later
    late = start()
    controller = late
    piece(0, 11)
    overrides = {200: 0.0, 900: 1.0}

    def act(cycle):
        if cycle in overrides:
            late.send_override(overrides[cycle])
        if cycle in sent:
            piece(*sent[cycle])

    again, _ = run(late, 4000, act)
    assert not late.log
    np.testing.assert_allclose(again[-1, 0], found[-1, 0], atol=1e-9)


def test_override_can_be_set_by_a_chained_controller(start):
    controller = start()
    controller.chain()
    assert controller.names("references") == ["on_path/override"]
    assert controller.names("exported") == ["on_path/rate", "on_path/path_time"]
    send(controller)
    controller.write(references=[0.5])
    _, exported = run(controller, 1000)
    assert exported[900, 0] == 0.5 and abs(exported[900, 1] - exported[800, 1] - 0.05) < 1e-9


def test_late_message_is_executed_from_its_start(start):
    controller = start()
    run(controller, 500)
    send(controller)  # stamp 0.5 s in the past
    found, _ = run(controller, 1700)
    assert np.abs(np.diff(found[:, 0], axis=0)).max() < 5e-3
    exact(found[-1, 0], TO)


@pytest.mark.parametrize(("change", "reason"), [
    (lambda times, points: (times, points + np.array([0.5, 0.0, 0.0])[:, None]), "does not continue the reference"),
    (lambda times, points: (times[::-1], points), "times of points do not ascend"),
    (lambda times, points: (times[:10], points[:10]), "the last point moves"),
    (lambda times, points: (times, points * np.where(np.arange(7) == 3, np.nan, 1.0)), "a number is not finite")])
def test_invalid_trajectories_are_rejected_with_the_reason(start, change, reason):
    controller = start()
    times = np.linspace(0.0, DURATION, KNOTS)
    controller.send_trajectory(START, NAMES, *change(times, np.array([law(t) for t in times])))
    found, _ = run(controller, 50)
    assert reason in controller.log
    np.testing.assert_array_equal(found[:, 0], np.broadcast_to(FROM, (50, 7)))
    send(controller, stamp=0)
    exact(run(controller, 1600)[0][-1, 0], TO)


def test_trajectory_without_every_joint_is_rejected(start):
    controller = start()
    send(controller, names=NAMES[:6], columns=slice(6))
    assert "joint panda_joint7 is missing" in controller.log


def test_invalid_parameters_are_rejected(code, panda):
    for parameters in ({}, {"joints": NAMES, "change_time": 0.0}, {"joints": NAMES, "command_joints": ["a"]},
                       {"joints": NAMES[:3], "robot_library": panda[0]}, {"joints": NAMES, "robot_library": "/nowhere"}):
        controller = Controller(code, parameters, plugin=PLUGIN)
        assert (controller.transition("init"), controller.transition("configure")) == (SUCCESS, FAILURE)
        assert "not configured: parameter" in controller.log
        controller.close()
