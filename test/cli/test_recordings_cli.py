"""Bags on the command line: same results as from CSV, robot descriptions in bags, folders, rejected recordings."""

from __future__ import annotations

import argparse
import re

import numpy as np
import pytest
import yaml

from rnea_ros import InputError, Robot
from rnea_ros.cli import inputs, main, motions
from rnea_ros.io.recording import ReadingOptions
from support.robots import arm

parquet = pytest.importorskip("pyarrow.parquet")
bags = pytest.importorskip("support.bags", exc_type=ImportError)

URDF = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)})
ROBOT = Robot.from_urdf(URDF, backend="python")
NAMES = ROBOT.joint_names
PYTHON = ("--backend", "python")
OTHERS = ReadingOptions(rename=(("j1", "arm1"),), held=(("j2", 0.5),))


@pytest.fixture
def files(tmp_path):
    """Return URDF, bag and CSV of one motion with torques; the bag contains the robot description."""
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


def test_bag_and_csv_give_the_same_result(files, tmp_path, capsys):
    urdf, bag, csv = files
    for name, words in {"csv": (urdf, csv), "bag": (urdf, bag), "folder": (urdf, bag.parent), "own": (bag,),
                        "own_folder": (bag.parent,)}.items():
        code, out, _ = run(capsys, "torque", *words, "-o", tmp_path / f"{name}.out.csv", *PYTHON)
        assert code == 0 and "500 samples of 2 joints" in out and "Kalman smoothing (125 Hz" in out
        np.testing.assert_allclose(table(tmp_path / f"{name}.out.csv"), table(tmp_path / "csv.out.csv"), atol=1e-9)


def test_results_are_written_as_csv_parquet_or_mcap(files, tmp_path, capsys):
    urdf, bag, _ = files
    for name in ("out.csv", "out.parquet", "out.mcap"):
        assert run(capsys, "torque", urdf, *PYTHON, bag, "-o", tmp_path / name)[0] == 0  # recordings after options, too
    expected = table(tmp_path / "out.csv")
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.column_names == ["stamp", "t", *(f"{kind}_{name}" for kind in ("tau", "tau_rate") for name in NAMES)]
    np.testing.assert_array_equal(np.stack([found[name].to_numpy() for name in found.column_names[1:]], axis=1), expected)
    reported = [message.effort for topic, _, message in bags.messages_in(tmp_path / "out.mcap")
                if topic == "/rnea/joint_effort_rate"]
    np.testing.assert_array_equal(reported, expected[:, 3:])
    assert not list(tmp_path.glob(".*"))


def test_identify_and_retime_read_bags(files):
    _, bag, csv = files
    answers = []
    for recording in (bag, csv):
        held = inputs.read_measurements(recording, ROBOT, ReadingOptions())
        answers.append((held.q, held.tau))
    for ours, theirs in zip(*answers):
        np.testing.assert_array_equal(ours, theirs)
    alone = inputs.read_measurements(bag, Robot.from_urdf(URDF.replace('"j1"', '"arm1"')), OTHERS)
    np.testing.assert_array_equal(alone.q[:, 0], answers[0][0][:, 0])
    assert (alone.q[:, 1] == 0.5).all()
    (t, q, qd), (t_csv, q_csv, _) = (motions.read_path(recording, NAMES) for recording in (bag, csv))
    np.testing.assert_allclose(t, t_csv, atol=1e-12)
    np.testing.assert_array_equal(q, q_csv)
    assert qd is None  # velocities of a driver do not mark stops


def test_every_command_renames_joints_and_holds_missing_ones(files, tmp_path, capsys):
    """The recording has another name for the first joint and lacks the second."""
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
    q = motions.read_path(bag, ("arm1", "j2"), OTHERS)[1]
    np.testing.assert_array_equal(q, inputs.read_measurements(bag, Robot.from_urdf(robot), OTHERS).q)
    assert (q[:, 1] == 0.5).all() and np.ptp(q[:, 0]) > 0.1
    code, _, err = run(capsys, "torque", robot, bag, "-o", tmp_path / "bag.csv", "--hold", "j1", "arm1", *PYTHON)
    assert code == 2 and "--hold j1: no such joint; the joints are arm1, j2" in err
    code, _, err = run(capsys, "torque", robot, bag, "-o", tmp_path / "bag.csv", "--hold", "j2", "arm1", *PYTHON)
    assert code == 2 and "every joint is held" in err


def test_folder_of_recordings_is_processed_and_errors_are_reported(files, tmp_path, capsys):
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
    assert code == 0 and "2 of them were finished before" in out
    (tmp_path / "in" / "more.csv").write_text("t,q_j1\n0,1\n")
    code, out, err = run(capsys, *words)
    assert code == 1 and out.startswith("2 of 3 recordings") and "more.csv: no column 'q_j2'" in err


@pytest.mark.parametrize(("words", "message"), [
    (("{urdf}",), "no recording after .*robot.urdf"),
    (("{urdf}", "{csv}", "{bag}"), "out.csv: several recordings, and options for many, need a folder as output"),
    (("{urdf}", "{csv}", "--workers", "2", "-o", "{urdf}"), "robot.urdf: cannot be written into: "),
    (("{urdf}", "{csv}", "-o", "{urdf}/out.csv"), "cannot be written: no such folder"),
    (("{urdf}", "{csv}", "-o", "folder", "--workers", "0"), "--workers is 0; a number above zero"),
    (("{urdf}", "{csv}", "-o", "folder", "--workers", "2", "--dask", "tcp://a:1"), "one of them"),
    (("{urdf}", "{csv}", "{bag}", "-o", "folder", "--plot", "a.png"), "--plot is for one recording"),
    (("{bag}", "--topic", "/states"), "topic /states is not in it"),
    (("{empty}",), "no recordings in"),
])
def test_invalid_recordings_are_rejected(files, tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    urdf, bag, csv = files
    given = [word.format(urdf=urdf, bag=bag, csv=csv, empty=tmp_path / "empty") for word in words]
    options = () if "-o" in given else ("-o", "out.csv" if "{empty}" not in words else "out")
    code, _, err = run(capsys, "torque", *given, *options, *PYTHON)
    assert code == 2 and re.search(message, err), err


def test_nan_efforts_of_a_bag_are_treated_as_not_measured(tmp_path, capsys):
    """The measured torques of the other joints are used and compared by `rnea torque`."""
    stamps, q = bags.motion(3, 2, 2.0)
    tau = np.column_stack((ROBOT.gravity(q)[:, 0] + np.sin(q[:, 0]), np.full(len(q), np.nan)))
    entries = [(bags.EPOCH + k, bags.joint_state(bags.EPOCH + k, NAMES, *row)) for k, *row in zip(stamps.tolist(), q, tau)]
    path = bags.bag(tmp_path / "run", {"/joint_states": entries}, URDF)
    found = inputs.read_measurements(path, ROBOT, ReadingOptions())
    np.testing.assert_array_equal(found.tau, tau)
    assert f"no torque of {NAMES[1]}; treated as not measured" in capsys.readouterr().err
    code, out, _ = run(capsys, "torque", path, "-o", tmp_path / "out.csv", *PYTHON)
    assert code == 0 and "RMS" in out


def test_columns_in_several_files_are_merged_by_their_times(files, tmp_path, capsys):
    """Columns with equal times are unchanged; others are interpolated, exactly if linear in time; without times by row."""
    _, _, whole = files
    expected, t, rows = inputs.read_measurements(whole, ROBOT, ReadingOptions()), table(whole)[:, 0], table(whole)

    def part(name, columns, header, rows=rows):
        np.savetxt(tmp_path / name, rows[:, columns], fmt="%.17g", delimiter=",", header=header, comments="")
        return str(tmp_path / name)

    first, second = part("one.csv", [0, 1, 3], "time,q_j1,tau_j1"), part("two.csv", [0, 2, 4], "time,q_j2,tau_j2")
    found = inputs.read_measurements(f"{first}+{second}", ROBOT, ReadingOptions(rename=(("time", "t"),)))
    for name in ("t", "q", "tau"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert capsys.readouterr().err == ""

    later = np.column_stack((t[20:-20] + 0.0011, 3.0 * t[20:-20] + 0.0033, -t[20:-20] - 0.0011))
    later = np.delete(later, np.arange(100, 140), axis=0)  # a gap
    torques = part("tau.csv", [0, 1, 2], "t,tau_j1,tau_j2", later)
    found = inputs.read_measurements(f"{part('q.csv', [0, 1, 2], 't,q_j1,q_j2')}+{torques}", ROBOT, ReadingOptions())
    np.testing.assert_allclose(found.tau, np.column_stack((3.0 * found.t, -found.t)), atol=1e-12)
    np.testing.assert_array_equal(found.q, expected.q[np.isin(expected.t, found.t)])
    assert len(found.t) == len(t) - 40 - 1 - 40 - 1
    said = capsys.readouterr().err
    assert "tau.csv: interpolated at the times of" in said and "82 of 500 samples" in said

    unstamped = part("a.csv", [1, 2], "q_j1,q_j2") + "+" + part("b.csv", [3, 4], "tau_j1,tau_j2")
    np.testing.assert_array_equal(inputs.read_measurements(unstamped, ROBOT, ReadingOptions(rate=125.0)).tau, expected.tau)
    words = (f"{first}+{second}", "--rename", "time=t", "-o", tmp_path / "out.csv")
    assert run(capsys, "torque", files[0], *words, *PYTHON)[0] == 0


@pytest.mark.parametrize(("second", "message"), [
    ("t,q_j1\n0,1\n1,2\n", "columns 'q_j1' are also in another one"),
    ("t,tau_j1\n7,1\n8,2\n", "do not overlap: .*from 7 to 8"),
    ("tau_j1\n7\n8\n", "no column 't'; files are merged by their times"), (None, "no file '.*b.csv'"),
    ("t,tau_j1\n", "no rows of 2 values below the header")])
def test_files_that_cannot_be_merged_are_rejected(tmp_path, second, message):
    (tmp_path / "a.csv").write_text("t,q_j1\n0,1\n1,2\n2,3\n")
    if second is not None:
        (tmp_path / "b.csv").write_text(second)
    with pytest.raises(InputError, match=message):
        inputs.merge_csv_parts(f"{tmp_path / 'a.csv'}+{tmp_path / 'b.csv'}", ReadingOptions())


def test_headerless_and_unstamped_files_are_read_by_options(files, tmp_path):
    rows = table(files[2])
    np.savetxt(tmp_path / "bare.csv", rows[:, 1:], fmt="%.17g", delimiter=",")
    how = ReadingOptions(columns=("q_j1", "q_j2", "tau_j1", "tau_j2"), rate=125.0)
    np.testing.assert_allclose(inputs.read_measurements(tmp_path / "bare.csv", ROBOT, how).t, rows[:, 0], atol=1e-8)


def test_reverse_option_changes_the_sign_of_efforts(files):
    parser = argparse.ArgumentParser()
    inputs.add_robot_arguments(parser)
    inputs.add_torque_recording_arguments(parser)
    inputs.add_friction(parser)
    for words, signs in ((["--reverse", "j2"], [1.0, -1.0]), ([], [1.0, 1.0])):
        args = parser.parse_args([str(files[0]), *words])
        tau = np.array([[2.0, 3.0]])
        np.testing.assert_array_equal(inputs.load_measured_robot(args).measured_torque(tau, 0.0 * tau, 0.0 * tau), tau * signs)
    with pytest.raises(InputError, match="--reverse j3: no such joint; the joints are j1, j2"):
        inputs.load_measured_robot(parser.parse_args([str(files[0]), "--reverse", "j3"]))


def test_contact_thresholds_exclude_joints_without_measured_efforts(files, tmp_path, capsys):
    t = np.arange(2000) / 125.0
    np.savetxt(tmp_path / "free.csv", np.column_stack((t, np.sin(t), np.cos(2.0 * t), ROBOT.gravity(
        np.column_stack((np.sin(t), np.cos(2.0 * t))))[:, 1])), delimiter=",", header="t,q_j1,q_j2,tau_j2", comments="")
    code, _, err = run(capsys, "contact", files[0], tmp_path / "free.csv", "-o", tmp_path / "found.yaml")
    assert code == 0 and "no torque of j1; treated as not measured" in err
    assert list(yaml.safe_load((tmp_path / "found.yaml").read_text())["contact"]) == ["j2"]
