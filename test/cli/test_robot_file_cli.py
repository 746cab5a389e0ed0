"""Robot files on the command line: every robot command accepts them and states which robots it does not support."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import Robot, load
from rnea_ros.cli import main
from rnea_ros.io import csv_files
from rnea_ros.model import robot_file
from rnea_ros.model.robot_file_schema import SCHEMA
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
URDF = ROOT / "urdf"
STANFORD, MOTION = str(URDF / "stanford.urdf"), str(ROOT / "test" / "data" / "stanford_motion.csv")
TWO = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)})


def beside(name):
    return [str(URDF / f"{name}.urdf"), "--robot-file", str(URDF / f"{name}.robot.yaml")]


def run(capsys, *words):
    """Return (exit code, standard output, standard error)."""
    code = main.main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def written(path, names, q, qd, qdd, qddd):
    """Write a motion as CSV."""
    header = ["t", *(f"{block}_{name}" for block in ("q", "qd", "qdd", "qddd") for name in names)]
    table = np.column_stack((0.01 * np.arange(len(q)), q, qd, qdd, qddd))
    np.savetxt(path, table, fmt="%.17g", delimiter=",", header=",".join(header), comments="")
    return str(path)


def torques(path):
    """Return tau and tau_rate of a CSV."""
    return np.hsplit(np.loadtxt(path, delimiter=",", skiprows=1)[:, 1:], 2)


# --- rnea robot-file ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["branched", "five_bar", "hua_arm", "palletiser", "seven_r", "stanford", "stewart"])
def test_printed_robot_file_is_equivalent(capsys, tmp_path, name):
    urdf, _, file = beside(name)
    for words in ([file], [file, "--urdf", urdf]):
        code, out, err = run(capsys, "robot-file", *words)
        assert (code, err) == (0, "") and out.startswith(f"# {file}")
        (tmp_path / "again.yaml").write_text(out)
        assert robot_file.read(tmp_path / "again.yaml").content == robot_file.read(file).content
        assert ("--urdf" in words) == (load(urdf, file, backend="python").kind in out)


def test_printed_schema_equals_the_published_one(capsys):
    code, out, _ = run(capsys, "robot-file", "--schema")
    assert code == 0 and json.loads(out) == SCHEMA
    assert out == (ROOT / "config" / "robot_file.schema.json").read_text(encoding="utf-8")


def test_invalid_robot_files_are_rejected(capsys, tmp_path):
    (tmp_path / "bad.yaml").write_text("version: 1\ndrives: {j9: {gear_ratio: 0}}\n")
    code, out, err = run(capsys, "robot-file", tmp_path / "bad.yaml")
    assert (code, out) == (2, "") and "line 2, column 15: drives.j9.gear_ratio is 0" in err and "exist" not in err
    assert "joint 'j9' does not exist" in run(capsys, "robot-file", tmp_path / "bad.yaml", "--urdf", STANFORD)[2]
    assert "FILE is missing" in run(capsys, "robot-file")[2]
    (tmp_path / "bad.yaml").write_text("version: 1\nplatform: {link: link6}\n")
    assert "platform without loops" in run(capsys, "robot-file", tmp_path / "bad.yaml", "--urdf", STANFORD)[2]


# --- --robot-file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["model", "check"])
@pytest.mark.parametrize(("name", "said"), [
    ("five_bar", "motion given: left_motor, right_motor"), ("hua_arm", "elastic joints: joint3"),
    ("branched", "payloads: 0.5 kg on left_hand"), ("stewart", "platform: platform, 40 kg"), ("seven_r", "seven_r")])
def test_model_and_check_support_every_kind_of_robot(capsys, command, name, said):
    code, out, err = run(capsys, command, *beside(name))
    assert code in (0, 1) and said in out and not err


def test_model_as_json_contains_the_kind_of_robot(capsys):
    found = json.loads(run(capsys, "model", *beside("five_bar"), "--json")[1])
    assert found["kind"] == "robot on a fixed base with loops"
    assert json.loads(run(capsys, "model", STANFORD, "--json")[1])["kind"] == "tree on a fixed base"


def test_torques_with_a_robot_file_equal_the_library(capsys, tmp_path):
    assert run(capsys, "torque", *beside("stanford"), MOTION, "-o", tmp_path / "out.csv", "--backend", "python")[0] == 0
    robot = load(*map(str, (STANFORD, URDF / "stanford.robot.yaml")), backend="python")
    motion = csv_files.read_motion(MOTION, robot.joint_names)
    expected = robot.torque_and_rate(motion.q, motion.qd, motion.qdd, motion.qddd)
    for found, theirs in zip(torques(tmp_path / "out.csv"), expected, strict=True):
        np.testing.assert_array_equal(found, theirs)
    assert np.abs(expected[0] - Robot.from_urdf(STANFORD, backend="python").inverse_dynamics(motion.q, motion.qd, motion.qdd)
                  ).max() > 0.1  # the rotors count


@pytest.mark.parametrize(("name", "size"), [("five_bar", 0.4), ("stewart", 0.05)])
def test_torques_of_loops_and_platforms_equal_the_library_across_chunks(capsys, tmp_path, monkeypatch, name, size):
    """The motion is computed in chunks; each continues from the end of the previous one."""
    monkeypatch.setattr(csv_files, "CHUNK", 7)
    urdf, _, file = beside(name)
    robot = load(urdf, file, backend="python")
    turn = size * np.sin(0.1 * np.arange(20))[:, None] * np.linspace(1.0, -0.5, robot.n)
    q = robot.home_motion[0] + turn
    motion = [q, *(0.2 * turn, -0.3 * turn, 0.1 * turn)]
    recording = written(tmp_path / "motion.csv", robot.joint_names, *motion)
    words = ["torque", urdf, recording, "--robot-file", file, "-o", tmp_path / "out.csv", "--backend", "python"]
    assert run(capsys, *words)[0] == 0
    for found, expected in zip(torques(tmp_path / "out.csv"), robot.torque_and_rate(*motion), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("content", [
    {"springs": {"j2": {"stiffness": 40.0}}},
    {"motors": {"j2": {"link": "l1", "axis": [0, 0, 1]}}, "drives": {"j2": {"rotor_inertia": 0.1}}}])
def test_torques_with_springs_and_link_mounted_motors_equal_the_library(capsys, tmp_path, content):
    (tmp_path / "two.urdf").write_text(TWO)
    (tmp_path / "two.robot.yaml").write_text(json.dumps({"version": 1, **content}))
    robot = load(TWO, tmp_path / "two.robot.yaml", backend="python")
    assert not robot.is_fixed_tree
    motion = np.random.default_rng(3).uniform(-1.0, 1.0, (4, 9, 2))
    recording = written(tmp_path / "motion.csv", ("j1", "j2"), *motion)
    words = ["torque", tmp_path / "two.urdf", recording, "--robot-file", tmp_path / "two.robot.yaml", "--backend", "python"]
    assert run(capsys, *words, "-o", tmp_path / "out.csv")[0] == 0
    for found, expected in zip(torques(tmp_path / "out.csv"), robot.torque_and_rate(*motion)[:2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_recording_without_motor_columns_is_rejected_for_elastic_joints(capsys, tmp_path):
    code, _, err = run(capsys, "torque", *beside("hua_arm"), MOTION, "-o", tmp_path / "out.csv")
    assert code == 2 and "no column 'q_motor3'" in err  # named in the robot file
    assert not (tmp_path / "out.csv").exists()


ENDS = ["--from", "0", "0", "--to", "1", "1", "-o", "out.csv"]


@pytest.mark.parametrize(("words", "said"), [
    (["identify", *beside("branched"), MOTION], "robot 'branched' is a tree on a floating base; rnea identify serves")])
def test_unsupported_robots_are_rejected_with_the_reason(capsys, words, said):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "") and said in err and "rnea_ros.load" in err


@pytest.mark.parametrize(("words", "said"), [
    (["plan", *beside("branched"), *ENDS],
     "the base of robot 'branched' is floating: the motion of the joints does not determine"),
    (["retime", *beside("hua_arm"), MOTION, "-o", "out.csv"],
     "the motor of elastic joint 'joint3' is mounted on link 'link1'")])
def test_undetermined_motions_are_rejected(capsys, words, said):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "") and said in err


@pytest.mark.parametrize("words", [["retime"], ["plan", "--from", "1.9", "1.0", "--to", "1.7", "1.2", "--spans", "5",
                                                "--refinements", "0"]], ids=lambda words: words[0])
def test_robot_with_loops_is_retimed_and_planned_in_its_active_joints(capsys, tmp_path, words):
    t = np.linspace(0.0, 1.0, 9)
    points = np.column_stack((t, 1.9 - 0.2 * t, 1.0 + 0.2 * t**2))
    np.savetxt(tmp_path / "motion.csv", points, delimiter=",", header="t,q_left_motor,q_right_motor", comments="")
    (tmp_path / "own.yaml").write_text(
        "version: 1\nlimits: {left_motor: {max_acceleration: 4.0}, right_motor: {max_effort: 8.0}}")
    motion = [tmp_path / "motion.csv"] if words[0] == "retime" else []
    code, out, err = run(capsys, words[0], *beside("five_bar"), *motion, *words[1:], "-o", tmp_path / "out.csv", "--rate",
                         "200", "--limits", tmp_path / "own.yaml", "--plot", tmp_path / "out.png")
    assert code == 0 and "acceleration   at most" in out, err
    rows = np.genfromtxt(tmp_path / "out.csv", delimiter=",", names=True)
    robot = load(*[URDF / f"five_bar{ending}" for ending in (".urdf", ".robot.yaml")], backend="python")
    q, qd, qdd, qddd, tau = (np.stack([rows[f"{block}_{name}"] for name in robot.joint_names], axis=-1)
                             for block in ("q", "qd", "qdd", "qddd", "tau"))
    np.testing.assert_allclose(q[[0, -1]], [[1.9, 1.0], [1.7, 1.2]], rtol=0, atol=1e-9)
    np.testing.assert_allclose(tau[::20], robot.torque_and_rate(q, qd, qdd, qddd)[0][::20], rtol=1e-9, atol=1e-9)
    assert 0.97 < max(np.abs(qdd[:, 0]).max() / 4.0, np.abs(tau[:, 1]).max() / 8.0) <= 1.001


def test_query_options_override_the_robot_file(capsys, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps({"position": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}))
    (tmp_path / "s.yaml").write_text("version: 1\ngravity: [0, 0, -1]\npayloads: {link6: {mass: 2.0}}\n")
    words = ["query", STANFORD, "matrix", "--state", tmp_path / "s.json", "--robot-file", tmp_path / "s.yaml"]
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    for more, g in (([], -1.0), (["--gravity", "0", "0", "-9"], -9.0)):
        found = json.loads(run(capsys, *words, *more, "--backend", "python")[1])["gravity"][0]
        robot = Robot.from_urdf(STANFORD, backend="python", gravity=(0, 0, g)).with_payload("link6", 2.0)
        np.testing.assert_allclose(found, robot.gravity(q), rtol=0, atol=1e-12)


def test_query_supports_a_moving_base(capsys, tmp_path):
    robot = load(*[URDF / f"branched{ending}" for ending in (".urdf", ".robot.yaml")], backend="python")
    (tmp_path / "s.json").write_text(json.dumps({"position": [0.1] * robot.n, "base": [{"velocity": [1, 0, 0, 0, 0, 0]}]}))
    code, out, _ = run(capsys, "query", *beside("branched"), "floating", "--state", tmp_path / "s.json", "--backend", "python")
    assert code == 0 and len(json.loads(out)["effort"][0]) == robot.n


def test_limits_of_a_separate_file_override_those_of_the_robot_file(capsys, tmp_path):
    (tmp_path / "motion.csv").write_text("t,q_joint1,q_joint2\n" + "".join(f"{t},{0.1 * t},{-0.2 * t}\n" for t in range(8)))
    (tmp_path / "rr.yaml").write_text("version: 1\nlimits: {joint1: {max_velocity: 0.5}, joint2: {max_velocity: 0.5}}\n")
    (tmp_path / "own.yaml").write_text("version: 1\nlimits: {joint2: {max_velocity: 0.25}}\n")
    file, own, seconds = ["--robot-file", tmp_path / "rr.yaml"], ["--limits", tmp_path / "own.yaml"], []
    for words in (file, [*file, *own]):
        code, out, err = run(capsys, "retime", URDF / "rr.urdf", tmp_path / "motion.csv", "-o", tmp_path / "out.csv", *words)
        assert code == 0, err
        seconds.append(float(out.split()[3]))
    assert seconds[0] > 2.7 and seconds[1] > 5.5  # 1.4 rad at 0.5 and 0.25 rad/s


def test_validators_are_not_imported_without_a_robot_file():
    """Importing jsonschema and yaml takes 0.1 s."""
    code = (f"import sys; from rnea_ros.cli import main; main.main(['model', {STANFORD!r}]); "
            "print(*sorted({'yaml', 'jsonschema'} & set(sys.modules)), file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=240)
    assert done.stderr.strip() == ""
