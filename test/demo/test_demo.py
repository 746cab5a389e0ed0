"""`rnea demo`: checks detect wrong data, processes end with the command, and missing packages are reported."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rnea_ros import InputError, Robot
from rnea_ros.cli import demo as demo_command
from rnea_ros.cli import main
from rnea_ros.demo import catalogue, plots, scaling
from rnea_ros.demo import robot_demo as demo_checks
from rnea_ros.demo import robot_demo as demo_motion
from rnea_ros.demo.catalogue import DEMO_MOTIONS, DEMOS
from rnea_ros.demo.robot_demo import DemoRecording, LiveTable, TopicSeries, compute_recording, pair_by_stamp
from rnea_ros.demo.scaling import limit_parameters, overspeed_task, sample_plan
from rnea_ros.execution.controller import TrajectorySpline
from rnea_ros.trajectory.constraints import Constraints
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.scaled_plan import follow_plan

ROOT = Path(__file__).resolve().parents[2]
STANFORD = ROOT / "urdf" / "stanford.urdf"
FINGER = """<robot name="r"><link name="base"/><link name="upper"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link><link name="tip"/>
<joint name="arm" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="finger" type="continuous"><parent link="upper"/><child link="tip"/></joint></robot>"""


@pytest.fixture(scope="module")
def robot():
    return catalogue.tree_demo(None, name="stanford").load()


@pytest.fixture(scope="module")
def recording(robot):
    return compute_recording(robot, demo_motion.stanford_motion(), seconds=5.0, rate=500.0)


# --- the checks -------------------------------------------------------------------------------------------------------


def test_checks_accept_torques_of_the_library(robot, recording):
    assert demo_checks.check_bitwise(robot, recording.motion, recording.tau, recording.tau_rate).passed
    assert demo_checks.check_rates(recording, robot.joint_names).passed


def test_bitwise_check_detects_one_wrong_bit(robot, recording):
    tau = recording.tau.copy()
    tau[1234, 5] = np.nextafter(tau[1234, 5], np.inf)
    verdict = demo_checks.check_bitwise(robot, recording.motion, tau, recording.tau_rate)
    assert not verdict.passed and "1 of " in verdict.text


@pytest.mark.parametrize("factor", [0.99, 1.01, -1.0])
def test_rate_check_detects_a_wrong_rate_of_one_joint(robot, recording, factor):
    rate = recording.tau_rate.copy()
    rate[:, 3] *= factor
    verdict = demo_checks.check_rates(replace(recording, tau_rate=rate), robot.joint_names)
    assert not verdict.passed and "joint4" in verdict.text


@pytest.mark.parametrize("lost", [0.1, 0.5])
def test_rate_check_accepts_lost_messages(robot, recording, lost):
    kept = np.random.default_rng(2).uniform(size=len(recording.t)) > lost
    some = recording.at(np.flatnonzero(kept))
    assert demo_checks.check_rates(some, robot.joint_names).passed


def test_rate_check_accepts_late_desired_motions(robot, recording):
    qdd, qddd = recording.qdd.copy(), recording.qddd.copy()
    qdd[700:720], qddd[700:720] = qdd[699:719], qddd[699:719]
    late = DemoRecording(recording.t, recording.q, recording.qd, qdd, qddd,
                         *robot.torque_and_rate(recording.q, recording.qd, qdd, qddd))
    assert demo_checks.check_rates(late, robot.joint_names).passed


def test_rate_check_needs_enough_smooth_samples(robot, recording):
    rough = replace(recording, qdd=np.random.default_rng(3).normal(size=recording.qdd.shape))
    assert not demo_checks.check_rates(rough, robot.joint_names).passed


def test_slopes_are_exact_for_parabolas_at_uneven_times():
    t = np.cumsum(np.random.default_rng(4).uniform(0.5, 2.0, 20))
    np.testing.assert_allclose(demo_checks.slopes(t, (3 * t**2 - t + 7)[:, None])[:, 0], (6 * t - 1)[1:-1], rtol=1e-12)


def test_paper_figure_is_met_only_with_actuators(robot):
    assert demo_checks.check_paper_figure(robot).passed
    without = demo_checks.check_paper_figure(Robot.from_urdf(STANFORD))
    assert not without.passed and "2.40222e-02" in without.text


# --- the table --------------------------------------------------------------------------------------------------------


class Terminal(StringIO):
    def isatty(self):
        return True


def message(robot, share):
    values, shares = np.full(robot.n, -12.3456), np.full(robot.n, share)
    return SimpleNamespace(joint_names=list(robot.joint_names), effort=values, effort_utilization=shares,
                           effort_rate=values, effort_rate_utilization=np.full(robot.n, np.nan),
                           commanded_effort_rate_utilization=np.full(robot.n, np.nan))


def test_table_shows_each_joint_with_units_and_limits(robot):
    head, *rows, note = LiveTable(robot.joint_names, robot.joint_types, StringIO()).lines(message(robot, 0.42))
    assert note.startswith("unknown: no limit given")
    assert [row.split()[0] for row in rows] == list(robot.joint_names)
    assert "-12.346 N m " in rows[0] and "-12.346 N/s" in rows[2] and "[####      ]  42%" in rows[0] and "unknown" in rows[0]
    assert head.startswith("joint")
    assert "[##########] 150%" in LiveTable(robot.joint_names, robot.joint_types, StringIO()).lines(message(robot, 1.5))[1]


def test_table_shows_the_commanded_rate_utilization_without_a_total_rate_limit(robot):
    both = message(robot, 0.42)
    both.effort_rate_utilization[1], both.commanded_effort_rate_utilization[:2] = 0.25, 0.31
    _, first, second, third, *_, star, note = LiveTable(robot.joint_names, robot.joint_types, StringIO()).lines(both)
    assert first.endswith(" 31%*") and second.endswith(" 25%") and third.endswith("unknown")
    assert star.startswith("*: rate of the commanded effort") and note.startswith("unknown: no limit given")


def test_table_is_redrawn_in_a_terminal_and_printed_elsewhere(robot, monkeypatch):
    clock = iter(np.arange(0.0, 100.0, 1.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    for out, ups in ((Terminal(), 1), (StringIO(), 0)):
        table = LiveTable(robot.joint_names, robot.joint_types, out)
        table.show(message(robot, 0.1))
        table.show(message(robot, 0.2))
        assert out.getvalue().count(f"\x1b[{robot.n + 2}A") == ups


# --- the command ------------------------------------------------------------------------------------------------------


def test_no_ros_computes_and_checks_the_stanford_demo(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    assert main.main(["demo", "--no-ros", "--robot", "stanford", "--seconds", "3", "--plot", str(picture)]) == 0
    output = capsys.readouterr().out
    assert "2.46201e-02" in output and "Guarino Lo Bianco (2009) prints 2.462e-02" in output and "FAILED" not in output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["panda", "pr", "branched"])
def test_no_ros_computes_any_urdf(name, capsys):
    """Standard output contains only the result with --json."""
    assert main.main(["demo", "--no-ros", "--urdf", str(ROOT / "urdf" / f"{name}.urdf"), "--plot", "", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["robot"] == name and result["picture"] is None and len(result["peak_torque_rate"]) == len(result["joints"])
    assert result["checks"] and all(check["passed"] for check in result["checks"])


def test_robot_file_changes_the_torques_of_the_demo(tmp_path, capsys):
    file, peaks = tmp_path / "heavy.robot.yaml", []
    file.write_text("version: 1\npayloads: {link2: {mass: 20.0, com: [0.5, 0.0, 0.0]}}\n")
    words = ["demo", "--no-ros", "--urdf", str(ROOT / "urdf" / "rr.urdf"), "--plot", "", "--json", "--seconds", "2"]
    for more in ([], ["--robot-file", str(file)]):
        assert main.main([*words, *more]) == 0
        peaks.append(json.loads(capsys.readouterr().out)["peak_torque"])
    assert np.all(np.greater(peaks[1], peaks[0]))
    assert main.main([*words, "--robot-file", str(tmp_path / "missing.yaml")]) == 2
    assert "missing.yaml: cannot be read (No such file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--plot"], ["--scaling", "--plot"], ["--plant", "--plot", "", "--movie"]], ids=len)
def test_unwritable_pictures_are_rejected_before_the_run(words, tmp_path, capsys):
    assert main.main(["demo", *words, str(tmp_path / "no" / "such.png")]) == 2
    assert "no such folder: mkdir -p" in capsys.readouterr().err


def test_missing_ros_is_reported(monkeypatch, capsys):
    ros = ("rclpy", "rnea_ros.nodes", "rnea_ros.demo.nodes")
    for name in [name for name in sys.modules if name.startswith(ros)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rclpy", None)
    assert main.main(["demo", "--plot", ""]) == 1
    error = capsys.readouterr().err
    assert "needs ROS 2" in error and "rclpy" in error and "make env" in error and "--no-ros" in error


def test_robots_without_moving_joints_are_rejected(tmp_path, capsys):
    (tmp_path / "stone.urdf").write_text('<robot name="stone"><link name="stone"/></robot>')
    assert main.main(["demo", "--no-ros", "--urdf", str(tmp_path / "stone.urdf")]) == 2
    assert "no moving joints" in capsys.readouterr().err


# --- robots of other kinds -------------------------------------------------------------------------------------------


# Motions that take longest to solve; others stand on feet, and have platforms in series.
LONG = ("biped", "four_platforms")


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.campaign) if name in LONG else name
                                        for name in DEMO_MOTIONS])
def named(request):
    """Return a named demo, its robot, and the first part of its recording computed by the library."""
    demo, recorded = DEMOS[request.param], None
    robot = demo.load() if demo.simulate else demo.load(backend="python")
    if demo.simulate:
        recording, recorded = demo.simulate(robot, demo.make_motion(), 40.0 / demo.rate, demo.rate)
    else:
        recording = compute_recording(robot, demo.make_motion().for_joints(robot.joint_names), 40.0 / demo.rate, demo.rate)
    return demo, robot, recording, recorded


def failed(named, recording):
    return [verdict for verdict in named[0].checks(named[1], recording, named[3]) if not verdict.passed]


def test_checks_of_named_demos_pass_and_detect_wrong_torques(named):
    recording = named[2]
    assert not failed(named, recording)
    for name, joint in (("tau", 0), ("tau_rate", 2)):
        wrong = getattr(recording, name).copy()
        wrong[:, joint] *= 1.05
        assert failed(named, replace(recording, **{name: wrong})), name


def test_picture_of_named_demos_shows_the_robot(named, tmp_path, monkeypatch):
    """Few rows: drawing one joint takes matplotlib as long as a second of motion takes the robot."""
    pytest.importorskip("matplotlib")
    demo, robot, recording, _ = named
    rows = 2 if robot.n > 6 else plots.MAX_ROWS
    monkeypatch.setattr(plots, "MAX_ROWS", rows)
    shapes = plots.urdf_shapes((ROOT / demo.urdf).read_text())
    modes = sum(len(beam.modes) for beam in robot.model.flexible_links)  # flexible modes have no shapes
    assert len({shape.link for shape in shapes}) > robot.n - modes
    real, drawn = plots._draw_joint, []
    monkeypatch.setattr(plots, "_draw_joint", lambda *args: (drawn.append(args[-1]), real(*args)))
    plots.draw_demo(robot, recording, tmp_path / "a.png", "", demo)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG") and drawn == list(range(min(robot.n, rows)))


@pytest.mark.parametrize("geometry, volume", [
    ('<box size="1 2 3"/>', 6.0), ('<cylinder radius="0.5" length="2"/>', np.pi / 2), ('<sphere radius="0.5"/>', np.pi / 6)])
def test_shapes_are_closed_with_outward_faces(geometry, volume):
    """The volume by Gauss's theorem is compared for a shape in any pose."""
    text = (f'<robot name="r"><link name="l"><visual><origin xyz="3 2 1" rpy="1 2 3"/><geometry>{geometry}</geometry></visual>'
            '</link></robot>')
    (shape,) = plots.urdf_shapes(text)
    found = sum(face[0] @ np.cross(b, c) / 6.0 for face in shape.faces for b, c in pairwise(face[1:]))
    assert found == pytest.approx(volume, rel=0.05)


def test_recordings_are_paired_by_stamp(recording):
    some = TopicSeries(recording.t[[3, 5, 9]], np.array([[3.0], [5.0], [9.0]]))
    other = TopicSeries(np.array([1, *recording.t[[5, 9, 11]]]), np.arange(4.0)[:, None])
    both, values = pair_by_stamp(recording, some, other)
    assert (both.tau == recording.tau[[5, 9]]).all()
    assert [x.ravel().tolist() for x in values] == [[5.0, 9.0], [1.0, 2.0]]


def test_named_demos_reject_another_robot(capsys):
    assert main.main(["demo", "--robot", "palletiser", "--urdf", "a.urdf"]) == 2
    assert main.main(["demo", "--robot", "palletiser", "--scaling"]) == 2
    assert capsys.readouterr().err.count("its own robot and motion") == 2


def test_trajectory_spline_reproduces_quintics():
    """All derivatives are compared, also at and beyond the ends."""
    polynomials = [np.polynomial.Polynomial(c) for c in np.random.default_rng(5).normal(size=(3, 6))]
    times = np.array([0.5, 1.0, 1.7, 2.0])

    def motion(t, count):
        return [np.array([p.deriv(k)(t) for p in polynomials]) for k in range(count)]

    course = TrajectorySpline(times, *(np.array([motion(t, 3)[k] for t in times]) for k in range(3)))
    for t in (0.5, 0.6, 1.0, 1.3, 1.9999, 2.0):
        np.testing.assert_allclose(course(t, 5), motion(t, 5), rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(course(3.0, 5), course(2.0, 5))
    for bad in ([0.0, 0.0, 1.0, 2.0], [0.0, np.nan, 1.0, 2.0], [0.0]):
        with pytest.raises(InputError, match="ascending times"):
            TrajectorySpline(np.array(bad), *np.zeros((3, len(bad), 2)))


# --- with scaling -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slowed():
    """Return robot, task and the scaled samples computed by the library."""
    robot = Robot.from_urdf(ROOT / "urdf" / "seven_r.urdf")
    task = overspeed_task(robot)
    dynamics = PathDynamics(robot)
    plan = follow_plan(Constraints(task.plan.path, dynamics, dynamics.limits(task.limits), robot.joint_names), task.plan)
    t = np.arange(0.0, plan.law.duration + 0.01, 0.01)
    state = sample_plan(plan, t)
    s = plan.law(t)[0]
    phase = np.where(np.arange(len(t)) < 3, 2, 1)
    return robot, task, scaling.ScaledSamples(t, s, *state, *robot.dynamics(*state)[:2], phase, np.ones(len(t)))


def test_scaling_task_exceeds_the_limits(slowed):
    robot, task, _ = slowed
    assert task.times[-1] == pytest.approx(task.fastest / 2.0)
    assert (task.points > robot.limits.lower).all() and (task.points < robot.limits.upper).all()
    tau, rate = robot.torque_and_rate(*sample_plan(task.plan, np.linspace(0.0, task.times[-1], 300)))
    assert np.abs(tau / task.limits.effort).max() > 1.5 and np.abs(rate / task.limits.effort_rate).max() > 3.0


def test_scaling_checks_detect_wrong_samples(slowed):
    robot, task, samples = slowed
    checks = (lambda p: scaling.check_limits(robot, task, p), lambda p: scaling.check_path(task, p),
              lambda p: demo_checks.check_bitwise(robot, p.motion, p.tau, p.tau_rate),
              lambda p: scaling.check_goal(task, p))
    assert all(check(samples).passed for check in checks)
    faster = [samples.qd * 1.2, samples.qdd * 1.44, samples.qddd * 1.728]
    beside, wrong, short = samples.q.copy(), samples.tau.copy(), {name: x[:-20] for name, x in samples._asdict().items()}
    beside[100, 2] += 1e-6
    wrong[7, 1] = np.nextafter(wrong[7, 1], np.inf)
    spoilt = (samples._replace(qd=faster[0], qdd=faster[1], qddd=faster[2]), samples._replace(q=beside),
              samples._replace(tau=wrong), scaling.ScaledSamples(**short))
    for check, sample in zip(checks, spoilt):
        assert not check(sample).passed


def test_scaling_picture_is_written(slowed, tmp_path):
    pytest.importorskip("matplotlib")
    scaling.draw_scaling(*slowed, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_scaling_task_gives_massless_joints_no_limits():
    robot = Robot.from_urdf(FINGER, backend="python")
    task = overspeed_task(robot)
    assert np.isnan(task.limits.effort).tolist() == [False, True]
    assert {name.split(".")[1] for name in limit_parameters(robot, task.limits)} == {"arm"}


def test_scaling_demo_rejects_no_ros(capsys):
    assert main.main(["demo", "--scaling", "--no-ros"]) == 2
    assert "not available with --no-ros" in capsys.readouterr().err


# --- with processes ---------------------------------------------------------------------------------------------------


# The command, which gives its nodes more time than a user would wait: imports of a dozen processes on a busy machine.
COMMAND = """
import sys
from rnea_ros.cli.main import main
from rnea_ros.demo import robot_demo, scaling

robot_demo.TIMEOUT_S = scaling.TIMEOUT_S = 240.0
sys.exit(main())
"""


def start(*arguments, cwd):
    pytest.importorskip("rclpy")
    pytest.importorskip("rnea_msgs.msg")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    return subprocess.Popen([sys.executable, "-u", "-c", COMMAND, "demo", *arguments], cwd=cwd, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children(line):
    return [int(number) for number in re.search(r"as processes (\d+) and (\d+)", line).groups()]


@pytest.mark.parametrize("words, said", [
    (("--seconds", "3"), "identical to the Python library"), (("--robot", "palletiser", "--seconds", "3"), "virtual work")])
def test_demo_over_ros_passes_and_leaves_no_process_or_file(tmp_path, words, said):
    process = start("--plot", "", *words, cwd=tmp_path)
    output = process.communicate(timeout=280)[0]
    assert process.returncode == 0, output
    assert output.count("  ok  ") >= 2 and "FAILED" not in output and said in output, output
    assert not any(alive(pid) for pid in children(output))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("names", [None, pytest.param("joint{}", marks=pytest.mark.campaign), "joint_{}.0"])
def test_scaling_demo_ends_and_leaves_no_process_or_file(tmp_path, tmp_path_factory, names):
    """Joint names may contain dots, as those of an Allegro hand."""
    words = []
    if names:
        urdf = tmp_path_factory.mktemp("urdf") / "stanford.urdf"
        urdf.write_text(re.sub(r'joint name="joint(\d)"', lambda found: f'joint name="{names.format(found[1])}"',
                               STANFORD.read_text()))
        words = ["--urdf", str(urdf)]
    process = start("--scaling", "--plot", "", *words, cwd=tmp_path)
    output = process.communicate(timeout=280)[0]
    assert process.returncode == 0, output
    assert output.count("  ok  ") == 4 and "paused, resumed" in output, output
    assert not alive(int(re.search(r"as process (\d+)", output).group(1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_the_demo_and_its_processes(tmp_path, number, code):
    process = start("--seconds", "60", "--plot", "", cwd=tmp_path)
    pids = children(process.stdout.readline())
    assert all(alive(pid) for pid in pids)
    time.sleep(2.0)
    process.send_signal(number)
    process.communicate(timeout=240)
    assert process.returncode == code
    assert not any(alive(pid) for pid in pids)


@pytest.mark.ros
def test_output_of_a_failed_node_is_printed(monkeypatch, capfd):
    pytest.importorskip("rnea_msgs.msg")
    made = replace(catalogue.tree_demo(None), nodes=("no_such_node", "demo_robot"))
    monkeypatch.setattr(catalogue, "tree_demo", lambda *arguments: made)
    assert main.main(["demo", "--plot", ""]) == 1
    error = capfd.readouterr().err
    assert "no_such_node, exit code 1" in error and "there is no node 'no_such_node'; allowed are dynamics_node" in error


@pytest.mark.ros
def test_recording_starts_when_every_topic_has_a_message(monkeypatch):
    """One publisher is discovered long after the other."""
    pytest.importorskip("rnea_msgs.msg")
    from sensor_msgs.msg import JointState

    from rnea_msgs.msg import JointDynamics
    from rnea_ros.demo.nodes import recorders
    from support.ros_helpers import free_domain, stamp
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setattr(recorders, "MAX_SLOWDOWN", 1000.0)
    domain, began, sent = free_domain(), time.monotonic(), {"dynamics": [], "states": []}

    def report():
        while not done:
            t = time.monotonic() - began
            for name, after, publisher in publishers:
                if len(sent["dynamics"]) >= after:
                    message = publisher.msg_type()
                    message.header.stamp = stamp(round(t, 2))
                    sent[name].append(round(1e9 * round(t, 2)))
                    publisher.publish(message)
            time.sleep(0.01)

    done = []
    with recorders.recording_node("teller", domain) as (node, _):
        publishers = [("dynamics", 0, node.create_publisher(JointDynamics, "dynamics_node/joint_dynamics", 10)),
                      ("states", 150, node.create_publisher(JointState, "joint_states", 10))]
        thread = threading.Thread(target=report)
        thread.start()
        try:
            recording, recorded = recorders.record_dynamics(domain, 0.5, 240.0, lambda message: None, lambda: True,
                                                         {"states": ("sensor_msgs/JointState", "joint_states")})
        finally:
            done.append(True)
            thread.join()
    assert sent["dynamics"][0] < sent["states"][0] <= recording.t[0] and recording.t[-1] - recording.t[0] >= 0.5e9
    assert len(np.intersect1d(recording.t, recorded["states"].t))


@pytest.mark.parametrize(("on_path", "own", "expected"), [
    (True, False, ["rnea demo --urdf ROBOT.urdf", "dynamics_node --urdf ROBOT.urdf", "rnea watch"]),
    (False, True, [".venv/bin/dynamics_node --urdf ROBOT.urdf", ".venv/bin/rnea watch"])])
def test_next_commands_are_found_by_the_shell(on_path, own, expected, monkeypatch):
    """No environment is active after `make demo`: `rnea` alone is not found."""
    monkeypatch.setattr(demo_command.sys, "argv", [".venv/bin/rnea", "demo"])
    monkeypatch.setattr(demo_command.shutil, "which", lambda name: f"/usr/bin/{name}" if on_path else None)
    assert list(demo_command.commands_to_try(own)) == expected


@pytest.mark.parametrize("option", ["--scaling", "--plant", "--policy"])
def test_duration_of_demos_with_a_fixed_motion_is_rejected(option, capsys):
    assert main.main(["demo", "--no-ros", option, "--seconds", "3"]) == 2
    assert "--seconds 3 has no effect with --scaling" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--seconds", "-1"), ("--seconds", "nan"), ("--wait", "0"), ("--wait", "soon")])
def test_invalid_times_of_watch_are_rejected(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main.main(["watch", *words])
    assert f"{words[1]} is not between 0.001 and inf seconds" in capsys.readouterr().err
