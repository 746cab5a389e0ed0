"""`rnea retime` and retime_motion: duration compared with another solver, limits checked with the exact torque."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Robot, plan_motion, retime_motion
from rnea_ros.cli import main
from rnea_ros.cli.motions import BLOCKS
from rnea_ros.trajectory.constraints import Constraints
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics
from support.scaling_cases import ROOT, limits_for, urdf, waypoints

STANFORD = str(ROOT / "urdf" / "stanford.urdf")
MOTION = str(ROOT / "test" / "data" / "stanford_motion.csv")
RR = str(ROOT / "urdf" / "rr.urdf")


@cache
def robot(name: str) -> Robot:
    return Robot.from_urdf(urdf(name))


def limited(arm: Robot, points: np.ndarray, swing: float | None = 0.1, **others):
    """Return the limits of the arm with torques and torque rates that bind on the path through the points."""
    found = limits_for(arm, path_through(points), swing)
    return replace(arm.limits, effort=found.effort, effort_rate=found.effort_rate, acceleration=found.acceleration, **others)


def shares(arm: Robot, motion, limits, samples: int = 20_001) -> dict[str, float]:
    """Return the largest utilization of each limit, with the exact torque and rate."""
    state = motion(np.linspace(0.0, motion.duration, samples))
    tau, rate = arm.torque_and_rate(*state)
    values = {"velocity": state[1], "acceleration": state[2], "jerk": state[3], "effort": tau, "effort_rate": rate}
    return {name: float(np.nanmax(np.abs(x) / getattr(limits, name))) for name, x in values.items()
            if np.isfinite(getattr(limits, name)).any()}


@pytest.mark.parametrize(("name", "seed"), [("seven_r", 4), ("stanford", 5)])
def test_retimed_duration_matches_another_solver_inside_all_limits(name, seed):
    pytest.importorskip("casadi")
    from support.scaling_optimum import optimum

    arm, points = robot(name), waypoints(robot(name), seed, 4)
    limits = limited(arm, points)
    motion = retime_motion(arm, points, limits=limits)
    used = shares(arm, motion, limits)
    assert max(used.values()) <= 1.0 and max(used["effort"], used["effort_rate"]) > 0.9
    dynamics = PathDynamics(arm)
    constraints = Constraints(motion.route.path, dynamics, dynamics.limits(limits), arm.joint_names)
    assert motion.duration < 1.015 * optimum(constraints, 240)  # which is without margin, and only right at its nodes
    q, qd, _, _ = motion(np.array([0.0, motion.duration]))
    np.testing.assert_allclose(q, points[[0, -1]], atol=1e-9)
    assert np.abs(qd).max() < 1e-9
    assert motion.route.deviation <= 1e-6 and motion.route.points == 4


def test_retimed_motion_reaches_but_does_not_exceed_jerk_limits():
    arm, points = robot("seven_r"), waypoints(robot("seven_r"), 6, 4)
    limits = limited(arm, points, None, jerk=np.full(7, 300.0))
    motion, free = retime_motion(arm, points, limits=limits), retime_motion(arm, points, limits=limited(arm, points, None))
    used = shares(arm, motion, limits)
    assert max(used.values()) <= 1.0 and used["jerk"] > 0.98
    assert motion.duration > free.duration


def test_retimed_path_does_not_depend_on_the_limits():
    arm, points = robot("seven_r"), waypoints(robot("seven_r"), 4, 4)
    slow = retime_motion(arm, points, limits=limited(arm, points, velocity=np.full(7, 0.3)))
    quick = retime_motion(arm, points, limits=limited(arm, points))
    assert slow.duration > quick.duration
    a, b = (motion(np.linspace(0.0, motion.duration, 3001))[0] for motion in (slow, quick))
    assert max(np.linalg.norm(b - q, axis=1).min() for q in a[::50]) < 5e-3


def test_stops_of_a_recording_are_kept():
    """The recording stops at a corner; without velocities, repeated points mark the stop."""
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    x = np.linspace(0.0, 1.0, 41)
    s = (x**3 * (10.0 - 15.0 * x + 6.0 * x**2))[:, None]
    points = np.concatenate([corner[k] + s * (corner[k + 1] - corner[k]) for k in range(2)])
    speed = (30.0 * x**2 * (1.0 - x) ** 2)[:, None]
    velocities = np.concatenate([speed * (corner[k + 1] - corner[k]) for k in range(2)])
    arm = robot("rr")
    for given in (velocities, None):
        motion = retime_motion(arm, points, given)
        q, qd, _, _ = motion(np.linspace(0.0, motion.duration, 20_001))
        here = np.linalg.norm(q - corner[1], axis=1).argmin()
        assert np.abs(q[here] - corner[1]).max() < 1e-5 and np.abs(qd[here]).max() < 0.05
        assert max(shares(arm, motion, arm.limits).values()) <= 1.0
    assert len(motion.route.path.stops) == 1


def test_noisy_recordings_are_followed_within_the_tolerance():
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 2000)
    clean = np.column_stack((np.sin(2.0 * x), -2.0 + x + 0.3 * np.cos(5.0 * x)))
    noisy = clean + rng.normal(scale=2e-4, size=clean.shape)
    arm = robot("rr")
    motion, smooth = retime_motion(arm, noisy, tolerance=2e-3), retime_motion(arm, clean)
    assert motion.route.deviation <= 2e-3 and motion.route.points < 60
    q = motion(np.linspace(0.0, motion.duration, 20_001))[0]
    assert max(np.linalg.norm(q - point, axis=1).min() for point in clean[::40]) < 3e-3
    assert smooth.duration * 0.97 < motion.duration < 1.3 * smooth.duration


def test_friction_uses_part_of_the_effort_limits():
    arm = Robot.from_urdf(RR, joint_dynamics={"joint1": JointDynamics(coulomb=2.0, viscous=0.3)})
    points = np.array([[0.0, -2.0], [0.6, -2.2], [1.0, -1.0]])
    motion = retime_motion(arm, points)
    assert shares(arm, motion, arm.limits)["effort"] <= 1.0
    assert motion.duration > retime_motion(robot("rr"), points).duration


def test_motions_with_a_payload_keep_the_limits_and_take_longer():
    arm, points = robot("rr"), np.array([[0.0, -2.0], [1.0, -1.0]])
    loaded = arm.with_payload("tool", 1.0)
    motion = retime_motion(loaded, points)
    assert max(shares(loaded, motion, arm.limits).values()) <= 1.0
    assert motion.duration > 1.3 * retime_motion(arm, points).duration


@pytest.mark.parametrize(("given", "message"), [
    ({"points": [[0.0, 0.0]]}, r"points have shape \(1, 2\); .* two points at least"),
    ({"points": [[0.0, 0.0]] * 3}, "the 3 points are all equal; at least two"),
    ({"points": [[0.0], [1.0]]}, r"points has shape \(2, 1\).* joint1, joint2"),
    ({"points": [[0.0, 0.0], [np.nan, 1.0]]}, r"points\[1, 0\] is nan .joint 'joint1'."),
    ({"velocities": [[0.0, 0.0]]}, r"velocities have shape \(1, 2\), points \(2, 2\)"),
    ({"tolerance": -1.0}, "tolerance is -1; a finite number, at least 0"),
    ({"tolerance": np.nan}, "tolerance is nan"),
])
def test_invalid_points_are_rejected(given, message):
    with pytest.raises(InputError, match=message):
        retime_motion(robot("rr"), **{"points": [[0.0, 0.0], [1.0, 1.0]], **given})


def test_missing_limits_of_acceleration_and_torque_are_rejected():
    arm = robot("rr")
    unknown = np.full(2, np.nan)
    nothing = replace(arm.limits, effort=unknown, velocity=unknown)
    with pytest.raises(InputError, match="not one limit is known"):
        retime_motion(arm, [[0.0, 0.0], [1.0, 1.0]], limits=nothing)
    with pytest.raises(InputError, match="only velocity limits are known"):
        retime_motion(arm, [[0.0, 0.0], [1.0, 1.0]], limits=replace(nothing, velocity=np.ones(2)))


def test_path_is_rejected_where_gravity_exceeds_the_torque_limit():
    arm = Robot.from_urdf(RR, gravity=(0.0, -9.81, 0.0))
    weak = replace(arm.limits, effort=np.array([2.0, 10.0]))
    with pytest.raises(InputError, match=r"gravity alone takes .* of joint1 at s = .* no speed is slow enough"):
        retime_motion(arm, [[-np.pi / 2, 0.0], [0.0, 0.0]], limits=weak)


def test_implausible_input_is_noted():
    arm = robot("rr")
    motion = retime_motion(arm, [[0.0, 0.0], [2.0, 4.0]], limits=replace(arm.limits, velocity=np.array([np.nan, 5.0])))
    assert motion.notes[0] == "no limits known, hence not enforced: effort rate; velocity of joint1; acceleration; jerk"
    assert motion.notes[1] == "the path moves joint2 from 0 to 4, outside its limits -3.1416 to 3.1416"


# ---------------------------------------------------------------------- the command


def table(path) -> dict[str, np.ndarray]:
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    numbers = np.array(rows, dtype=float)
    found = {block: numbers[:, [k for k, name in enumerate(header) if re.fullmatch(rf"{block}_joint\d", name)]]
             for block in BLOCKS}
    return found | {"t": numbers[:, header.index("t")]}


def run(tmp_path, *words, urdf=STANFORD, motion=MOTION):
    out = tmp_path / "fast.csv"
    return main.main(["retime", urdf, str(motion), "-o", str(out), *map(str, words)]), out


def recording(tmp_path, rows, header="t,q_joint1,q_joint2"):
    path = tmp_path / "recording.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_retime_command_keeps_the_limits_of_the_urdf(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "fast.png"
    code, out = run(tmp_path, "--rate", 500, "--plot", picture)
    said, found, arm = capsys.readouterr(), table(out), robot("stanford")
    assert code == 0
    tau, rate = arm.torque_and_rate(*(found[block] for block in BLOCKS[:4]))
    np.testing.assert_allclose(found["tau"], tau, atol=1e-9)
    np.testing.assert_allclose(found["tau_rate"], rate, atol=1e-6)
    assert (np.abs(tau) / arm.limits.effort).max() <= 1.0 and (np.abs(found["qd"]) / arm.limits.velocity).max() <= 1.0
    given = np.loadtxt(MOTION, delimiter=",", skiprows=1)
    assert found["t"][-1] < given[-1, 0] - given[0, 0]
    np.testing.assert_allclose(found["q"][[0, -1]], given[[0, -1], 1:7], atol=1e-9)
    assert re.search(r"^2 s -> 1\.2\d+ s through \d+ points, \d+ rows -> ", said.out)
    assert re.search(r"^effort +at most +9\d\.\d\d % of its limit, joint\d$", said.out, flags=re.MULTILINE)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_limits_file_overrides_the_limits_of_the_urdf(tmp_path):
    limits = tmp_path / "limits.yaml"
    limits.write_text("version: 1\nlimits:\n" + "".join(
        f"  joint{k}: {{max_effort_rate: 400.0, max_acceleration: 6.0, max_velocity: 1.0}}\n" for k in range(1, 7)))
    code, out = run(tmp_path, "--limits", limits)
    found = table(out)
    assert code == 0
    assert np.abs(found["tau_rate"]).max() <= 400.0
    assert np.abs(found["qdd"]).max() <= 6.0 and 0.95 < np.abs(found["qd"]).max() <= 1.0


def test_written_motion_can_be_retimed_again(tmp_path, capsys):
    code, out = run(tmp_path)
    first = table(out)["t"][-1]
    again = tmp_path / "again.csv"
    assert code == 0 and main.main(["retime", STANFORD, str(out), "-o", str(again), "--tolerance", "1e-4"]) == 0
    assert table(again)["t"][-1] == pytest.approx(first, rel=0.02)


@pytest.mark.parametrize(("rows", "message"), [
    ([(0, 0, 0), (2, 1, 1), (1, 2, 2)], "times must increase, but row 4 has t = 1 after 2"),
    ([(0, 0, 0), (0, 1, 1), (1, 2, 2)], "times must increase, but row 3 has t = 0 after 0"),
    ([(0, 0, 0), (1, "nan", 1)], "row 3, column 'q_joint1' is 'nan'; a finite number"),
    ([(0, 0, 0)], "one row; a path needs at least two points"),
    ([(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1)], "all equal; at least two"),
    ([], "no rows below the header"),
])
def test_invalid_recordings_are_rejected_with_a_message(tmp_path, capsys, rows, message):
    code, out = run(tmp_path, urdf=RR, motion=recording(tmp_path, rows))
    said = capsys.readouterr().err
    assert code == 2 and re.search(message, said) and said.startswith("rnea retime: ") and not out.exists()


def test_missing_joint_column_is_rejected(tmp_path, capsys):
    path = recording(tmp_path, [(0, 0, 0), (1, 1, 1)], "t,q_joint1,q_elbow")
    assert run(tmp_path, urdf=RR, motion=path)[0] == 2
    assert "no column 'q_joint2'; the header has 't', 'q_joint1', 'q_elbow'" in capsys.readouterr().err


def test_two_points_are_retimed_along_a_line(tmp_path, capsys):
    path = recording(tmp_path, [(0, 0, -2), (1, 1, -1)])
    code, out = run(tmp_path, urdf=RR, motion=path)
    assert code == 0, capsys.readouterr().err
    assert "through 2 points" in capsys.readouterr().out
    assert table(out)["t"][-1] > 0.39185  # not faster than the optimal path


@pytest.mark.parametrize(("words", "message"), [
    (["--tolerance", "-1"], "tolerance is -1"), (["--rate", "-5"], "--rate is -5"), (["--rate", "inf"], "--rate is inf"),
    (["--limits", "none.yaml"], "none.yaml.*cannot be read"),
    (["--base", "floating"], "the base of robot 'stanford' is floating"),
])
def test_invalid_options_are_rejected_with_a_message(tmp_path, capsys, words, message):
    code, out = run(tmp_path, *words)
    assert code == 2 and re.search(message, capsys.readouterr().err) and not out.exists()


@pytest.mark.parametrize(("words", "said"), [
    (["-o", "no/such/folder/fast.csv"], "no/such/folder/fast.csv: cannot be written: no such folder"),
    (["-o", "."], ".: cannot be written: it is a folder"),
    (["-o", "fast.csv", "--plot", "fast.doc"], "fast.doc cannot be drawn: 'doc' is no format of pictures; there are "),
])
def test_unwritable_outputs_are_reported_before_the_computation(words, said, capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rnea_ros.cli.motions.retime_motion", lambda *args: pytest.fail("it worked first"))
    assert main.main(["retime", STANFORD, MOTION, *words]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_unused_columns_are_reported(capsys, tmp_path):
    """Velocities of one joint only do not determine stops."""
    given = tmp_path / "given.csv"
    given.write_text("t,q_joint1,q_joint2,qd_joint1\n0,0,0,0\n1,1,1,0\n")
    assert main.main(["retime", RR, str(given), "-o", str(tmp_path / "fast.csv")]) == 0
    assert "columns not used: 'qd_joint1'" in capsys.readouterr().err


def test_tiny_velocity_limit_gives_a_motion_of_years(tmp_path):
    arm = robot("rr")
    motion = retime_motion(arm, [[0.0, 0.0], [1.0, 1.0]], limits=replace(arm.limits, velocity=np.full(2, 1e-8)))
    assert motion.duration == pytest.approx(1e8, rel=0.02)


def test_robot_without_joints_is_rejected(tmp_path, capsys):
    given, plain = tmp_path / "given.csv", tmp_path / "plain.urdf"
    given.write_text("t,q_j\n0,0\n1,1\n")
    plain.write_text('<robot name="table"><link name="top"/></robot>')
    assert main.main(["retime", str(plain), str(given), "-o", str(tmp_path / "fast.csv")]) == 2
    assert "robot 'table' has no movable joint" in capsys.readouterr().err


def test_joint_names_with_special_characters_are_supported(tmp_path, capsys, recwarn):
    """The names occur in the CSV header, the limits file and the plot, where $ must not start a formula."""
    pytest.importorskip("matplotlib")
    urdf_file, given, limits, out = (tmp_path / name for name in ("odd.urdf", "given.csv", "limits.yaml", "fast.csv"))
    text = (ROOT / "urdf" / "rr.urdf").read_text().replace('"joint1"', '"bras, 1$_x^$ {左"')
    text = text.replace('"joint2"', '"a &quot;b/c&quot;"')
    urdf_file.write_text(text, encoding="utf-8")
    given.write_text('"q_a ""b/c""","q_bras, 1$_x^$ {左",t\n0,0,0\n1,1,1\n', encoding="utf-8")
    limits.write_text("version: 1\nlimits: {'bras, 1$_x^$ {左': {max_effort: 5.0}}", encoding="utf-8")
    picture = tmp_path / "fast.png"
    words = ["-o", str(out), "--limits", str(limits), "--plot", str(picture), "--rate", "100"]
    assert main.main(["retime", str(urdf_file), str(given), *words]) == 0, capsys.readouterr().err
    with open(out, newline="", encoding="utf-8") as file:
        assert next(csv.reader(file))[:3] == ["t", "q_bras, 1$_x^$ {左", 'q_a "b/c"']
    assert picture.read_bytes().startswith(b"\x89PNG") and not [w for w in recwarn if "Glyph" in str(w.message)]


def test_points_beyond_the_coordinate_limit_are_rejected(tmp_path, capsys):
    given = tmp_path / "given.csv"
    for text in ("t,q_joint1,q_joint2\n0,1e300,0\n1,-1e300,1\n", "t,q_joint1,q_joint2\n0,0,0\n1,0,1e10\n"):
        given.write_text(text)
        assert main.main(["retime", RR, str(given), "-o", str(tmp_path / "fast.csv")]) == 2
        assert "a path goes no further than 1e+09 rad or m from zero" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "message"), [
    ({"limits": {"effort": [1.0, 1.0]}}, "Limits are needed"),
    ({"limits": "soft"}, "Limits are needed"),
    ({"limits": {}, "effort": np.ones(3)}, r"limits.effort has shape \(3,\); \(2,\) is needed, in the order of joint1, "),
    ({"limits": {}, "effort": 5.0}, r"limits.effort has shape \(\); \(2,\) is needed"),
    ({"limits": {}, "velocity": "fast"}, "limits.velocity is not an array of numbers"),
    ({"limits": {}, "jerk": np.array([1.0, 0.0])}, "limits.jerk of joint2 is 0; a number above zero is needed"),
    ({"tolerance": "small"}, "tolerance is not an array of numbers"),
])
def test_invalid_arguments_of_retiming_and_planning_are_rejected(given, message):
    """Retiming and planning have the same checks and accept lists."""
    arm, fields = robot("rr"), {name: value for name, value in given.items() if name not in ("limits", "tolerance")}
    options = {"limits": replace(arm.limits, **fields)} if fields else given
    for act in (retime_motion, *([] if "tolerance" in given else [lambda arm, q, **options: plan_motion(arm, *q, **options)])):
        with pytest.raises(InputError, match=message):
            act(arm, [[0.0, 0.0], [1.0, 1.0]], **options)
    retime_motion(arm, [[0.0, 0.0], [1.0, 1.0]], limits=replace(arm.limits, effort=[5.0, 5.0]))


@pytest.mark.parametrize("form", [
    "/**:\n  ros__parameters:\n    joint_limits:\n      joint1: {max_velocity: 0.5, has_jerk_limits: false, max_jerk: 0}\n",
    "default_velocity_scaling_factor: 0.1\njoint_limits: {joint1: {has_velocity_limits: true, max_velocity: 0.5}}\n",
    "/**:\n  ros__parameters:\n    joint_limits.joint1.max_velocity: 0.5\n    joint_limits.joint2: {max_velocity: 2.0}\n",
    "version: 1\nlimits: {joint1: {max_velocity: 0.5}}\n"], ids=["parameter file", "MoveIt", "joined names", "robot file"])
def test_limits_of_parameter_files_are_applied(form, tmp_path, capsys):
    """Parameter files of scaling_node and MoveIt's joint_limits.yaml have the keys of a robot file."""
    path, limits, out = tmp_path / "path.csv", tmp_path / "limits.yaml", tmp_path / "out.csv"
    path.write_text("q_joint1,q_joint2\n0,0\n0.4,0.2\n1,0.1\n")
    limits.write_text(form)
    assert main.main(["retime", RR, str(path), "--limits", str(limits), "-o", str(out)]) == 0
    with open(out, encoding="utf-8") as file:
        fastest = max(abs(float(row["qd_joint1"])) for row in csv.DictReader(file))
    assert 0.49 < fastest <= 0.5
    assert re.match(r"[0-9.]+ s through 3 points", capsys.readouterr().out)  # the path has no times


@pytest.mark.parametrize(("text", "message"), [
    ("joint_limits: {elbow: {max_velocity: 0.5}}\n", "joint 'elbow' does not exist"),
    ("/**:\n  ros__parameters:\n    joint_limits:\n      joint1: {max_velocity: 1.0}\n      joint2: {max_jerk: -1.0}\n",
     "line 5, column 16: limits.joint2.max_jerk is -1"),
    ("joint_limits: {joint1: {null: false, max_velocity: 0.5}}\n", "limits.joint1 has the key None, which is no text"),
    ("joint_limits: {joint1: {3: false, max_velocity: 0.5}}\n", "limits.joint1 has the key 3, which is no text")])
def test_limits_with_unknown_names_are_rejected(text, message, tmp_path, capsys):
    limits = tmp_path / "limits.yaml"
    limits.write_text(text)
    assert main.main(["retime", RR, MOTION, "--limits", str(limits), "-o", str(tmp_path / "out.csv")]) == 2
    assert message in capsys.readouterr().err
