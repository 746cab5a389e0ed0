"""Bags on the command line: the same answers as of a CSV, robots that bags describe, folders of results, refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rnea_ros import Robot
from rnea_ros.cli import main, reading, retime
from rnea_ros.recordings.recording import Reading
from support.robots import arm

parquet = pytest.importorskip("pyarrow.parquet")
bags = pytest.importorskip("support.bags", exc_type=ImportError)

URDF = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)})
ROBOT = Robot.from_urdf(URDF, backend="python")
NAMES = ROBOT.joint_names
PYTHON = ("--backend", "python")
OTHERS = Reading(rename=(("j1", "arm1"),), held=(("j2", 0.5),))


@pytest.fixture
def files(tmp_path):
    """urdf, bag and CSV of one motion, with its torques; the bag describes the robot."""
    stamps, q = bags.motion(3, 2, 4.0)
    t, tau = stamps * 1e-9, ROBOT.gravity(q)
    (tmp_path / "robot.urdf").write_text(URDF)
    header = ",".join(["t", *(f"{block}_{name}" for block in ("q", "tau") for name in NAMES)])
    np.savetxt(tmp_path / "run.csv", np.column_stack((t, q, tau)), fmt="%.17g", delimiter=",", header=header, comments="")
    entries = [(bags.EPOCH + k, bags.joint_state(bags.EPOCH + k, NAMES, *row)) for k, *row in zip(stamps.tolist(), q, tau)]
    path = bags.bag(tmp_path / "run", {"/joint_states": entries}, URDF)
    return tmp_path / "robot.urdf", path, tmp_path / "run.csv"


def run(capsys, *words):
    code = main.main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def table(path):
    return np.loadtxt(path, delimiter=",", skiprows=1)


def test_a_bag_says_what_a_csv_says(files, tmp_path, capsys):
    urdf, bag, csv = files
    for name, words in {"csv": (urdf, csv), "bag": (urdf, bag), "folder": (urdf, bag.parent), "own": (bag,),
                        "own_folder": (bag.parent,)}.items():
        code, out, _ = run(capsys, "torque", *words, "-o", tmp_path / f"{name}.out.csv", *PYTHON)
        assert code == 0 and "500 samples of 2 joints" in out and "Kalman smoothing (125 Hz" in out
        np.testing.assert_allclose(table(tmp_path / f"{name}.out.csv"), table(tmp_path / "csv.out.csv"), atol=1e-9)


def test_one_recording_as_parquet_and_mcap(files, tmp_path, capsys):
    urdf, bag, _ = files
    for name in ("out.csv", "out.parquet", "out.mcap"):
        assert run(capsys, "torque", urdf, *PYTHON, bag, "-o", tmp_path / name)[0] == 0  # recordings after options, too
    expected = table(tmp_path / "out.csv")
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.column_names == ["stamp", "t", *(f"{kind}_{name}" for kind in ("tau", "tau_rate") for name in NAMES)]
    np.testing.assert_array_equal(np.stack([found[name].to_numpy() for name in found.column_names[1:]], axis=1), expected)
    told = [message.effort for topic, _, message in bags.told(tmp_path / "out.mcap") if topic == "/rnea/joint_effort_rate"]
    np.testing.assert_array_equal(told, expected[:, 3:])
    assert not list(tmp_path.glob(".*"))


def test_identify_and_retime_read_bags(files):
    _, bag, csv = files
    answers = []
    for recording in (bag, csv):
        held = reading.measurements(recording, ROBOT, Reading())
        answers.append((held.q, held.tau))
    for ours, theirs in zip(*answers):
        np.testing.assert_array_equal(ours, theirs)
    alone = reading.measurements(bag, Robot.from_urdf(URDF.replace('"j1"', '"arm1"')), OTHERS)
    np.testing.assert_array_equal(alone.q[:, 0], answers[0][0][:, 0])
    assert (alone.q[:, 1] == 0.5).all()
    (t, q, qd), (t_csv, q_csv, _) = (retime.read(recording, NAMES) for recording in (bag, csv))
    np.testing.assert_allclose(t, t_csv, atol=1e-12)
    np.testing.assert_array_equal(q, q_csv)
    assert qd is None  # a driver's velocities stop nobody


def test_every_command_reads_other_names_and_holds_joints_that_are_missing(files, tmp_path, capsys):
    """A robot whose first joint the recording calls otherwise, and whose second one it does not have."""
    _, bag, _ = files
    robot, t = tmp_path / "other.urdf", np.linspace(0.0, 1.0, 50)
    robot.write_text(URDF.replace('"j1"', '"arm1"'))
    motion = np.column_stack((np.sin(t), np.cos(t), -np.sin(t), -np.cos(t)))
    blocks, words = ("q", "qd", "qdd", "qddd"), ("--rename", "j1=arm1", "--hold", "j2=0.5")
    for name, joints, columns in (("some.csv", ("j1",), motion), ("all.csv", ("arm1", "j2"), np.column_stack(
            (motion, np.full(len(t), 0.5), np.zeros((len(t), 3)))))):
        header = ",".join(["t", *(f"{block}_{joint}" for joint in joints for block in blocks)])
        np.savetxt(tmp_path / name, np.column_stack((t, columns)), fmt="%.17g", delimiter=",", header=header, comments="")
    assert run(capsys, "torque", robot, tmp_path / "all.csv", "-o", tmp_path / "all.out.csv", *PYTHON)[0] == 0
    for out, more in (("some.out.csv", ()), ("folder", ("--workers", "1", "--format", "csv"))):
        asked = ("torque", robot, tmp_path / "some.csv", "-o", tmp_path / out, *more, *PYTHON, *words)
        assert run(capsys, *asked)[0] == 0
    for found in (tmp_path / "some.out.csv", next((tmp_path / "folder").rglob("*.csv"))):
        np.testing.assert_array_equal(table(found), table(tmp_path / "all.out.csv"))
    assert run(capsys, "torque", robot, bag, "-o", tmp_path / "bag.csv", *PYTHON, *words)[0] == 0  # j2 is in it, and held
    q = retime.read(bag, ("arm1", "j2"), OTHERS)[1]
    np.testing.assert_array_equal(q, reading.measurements(bag, Robot.from_urdf(robot), OTHERS).q)
    assert (q[:, 1] == 0.5).all() and np.ptp(q[:, 0]) > 0.1
    code, _, err = run(capsys, "torque", robot, bag, "-o", tmp_path / "bag.csv", "--hold", "j1", "arm1", *PYTHON)
    assert code == 2 and "--hold j1: no such joint; the joints are arm1, j2" in err
    code, _, err = run(capsys, "torque", robot, bag, "-o", tmp_path / "bag.csv", "--hold", "j2", "arm1", *PYTHON)
    assert code == 2 and "every joint is held" in err


def test_a_folder_of_recordings(files, tmp_path, capsys):
    urdf, bag, csv = files
    (tmp_path / "in").mkdir()
    for file in (bag, csv):
        file.rename(tmp_path / "in" / file.name)
    words = ("torque", urdf, tmp_path / "in", "-o", tmp_path / "in" / "results", "--format", "csv", "--workers", 1, *PYTHON)
    code, out, _ = run(capsys, *words)
    assert code == 0 and out.startswith("2 of 2 recordings, 1000 samples -> ")
    folders = sorted(folder.name for folder in (tmp_path / "in" / "results").iterdir())
    assert len(folders) == 2 and all(folder.startswith("run-") for folder in folders)  # two of one name
    code, out, _ = run(capsys, *words)  # results are no recordings
    assert code == 0 and "2 of them were there already" in out
    (tmp_path / "in" / "more.csv").write_text("t,q_j1\n0,1\n")
    code, out, err = run(capsys, *words)
    assert code == 1 and out.startswith("2 of 3 recordings") and "more.csv: no column 'q_j2'" in err


@pytest.mark.parametrize(("words", "message"), [
    (("{urdf}",), "no recording after .*robot.urdf"),
    (("{urdf}", "{csv}", "{bag}"), "out.csv: of several recordings, or with options for many, results go into a folder"),
    (("{urdf}", "{csv}", "--workers", "2", "-o", "{urdf}"), "robot.urdf: cannot be written into: "),
    (("{urdf}", "{csv}", "-o", "{urdf}/out.csv"), "cannot be written: no such folder"),
    (("{urdf}", "{csv}", "-o", "folder", "--workers", "0"), "--workers is 0; a number above zero"),
    (("{urdf}", "{csv}", "-o", "folder", "--workers", "2", "--dask", "tcp://a:1"), "one of them"),
    (("{urdf}", "{csv}", "{bag}", "-o", "folder", "--plot", "a.png"), "--plot draws one recording"),
    (("{bag}", "--topic", "/states"), "topic /states is not in it"),
    (("{empty}",), "no recordings in"),
])
def test_what_is_refused(files, tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    urdf, bag, csv = files
    given = [word.format(urdf=urdf, bag=bag, csv=csv, empty=tmp_path / "empty") for word in words]
    options = () if "-o" in given else ("-o", "out.csv" if "{empty}" not in words else "out")
    code, _, err = run(capsys, "torque", *given, *options, *PYTHON)
    assert code == 2 and re.search(message, err), err
