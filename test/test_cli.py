"""The `rnea` command as a user meets it: output, exit codes, messages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import Robot, cli, motion_csv

ROOT = Path(__file__).resolve().parents[1]
STANFORD = str(ROOT / "urdf" / "stanford.urdf")
BRANCHED = str(ROOT / "urdf" / "branched.urdf")
MOTION = ROOT / "test" / "data" / "stanford_motion.csv"


def columns(path, prefix):
    names = Path(path).read_text().splitlines()[0].split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return table[:, [k for k, name in enumerate(names) if name.startswith(prefix)]]


def edited_motion(tmp_path, edit):
    """A copy of the motion with its lines (lists of words) changed."""
    lines = [line.split(",") for line in MOTION.read_text().splitlines()]
    path = tmp_path / "motion.csv"
    path.write_text("\n".join(",".join(line) for line in edit(lines)) + "\n")
    return str(path)


def test_model_as_table_names_every_joint_and_follower(capsys):
    assert cli.main(["model", BRANCHED]) == 0
    text = capsys.readouterr().out
    robot = Robot.from_urdf(BRANCHED)
    assert all(name in text for name in robot.joint_names)
    assert "follows left_finger" in text
    assert f"{robot.total_mass:.6g} kg" in text


def test_model_as_json_is_complete(capsys):
    assert cli.main(["model", STANFORD, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    robot = Robot.from_urdf(STANFORD)
    assert [joint["name"] for joint in found["joints"]] == list(robot.joint_names)
    assert found["model_id"] == robot.model_id
    for row, link in zip(found["links"], robot.model.links, strict=True):
        assert (row["gamma"], row["b"], row["alpha"], row["d"], row["theta"], row["r"]) == tuple(link.geometry)
        assert np.array_equal(row["J"], link.J)


def test_check_says_what_is_doubtful(tmp_path, capsys):
    assert cli.main(["check", STANFORD]) == 0
    doubtful = tmp_path / "doubtful.urdf"
    doubtful.write_text(
        '<robot name="d"><link name="a"/><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="c"/>'
        '<joint name="ab" type="revolute"><parent link="a"/><child link="b"/></joint>'
        '<joint name="bc" type="continuous"><parent link="b"/><child link="c"/></joint></robot>')
    assert cli.main(["check", str(doubtful)]) == 1
    text = capsys.readouterr().out
    assert "triangle inequality" in text and "'ab' has no <limit>" in text and "'bc' moves no mass" in text


def test_torque_writes_what_the_library_computes(tmp_path, capsys):
    out, picture = tmp_path / "out.csv", tmp_path / "out.png"
    assert cli.main(["torque", STANFORD, str(MOTION), "-o", str(out), "--plot", str(picture)]) == 0
    motion = [columns(MOTION, f"{block}_joint") for block in ("q", "qd", "qdd", "qddd")]
    tau, tau_rate = Robot.from_urdf(STANFORD).torque_and_rate(*motion)
    assert np.array_equal(columns(out, "tau_joint"), tau)
    assert np.array_equal(columns(out, "tau_rate_joint"), tau_rate)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "201 samples of 6 joints" in capsys.readouterr().out


def test_torque_in_any_column_order_with_extra_columns(tmp_path, capsys):
    words = [["note" if k == 0 else "1"] for k in range(202)]
    shuffled = edited_motion(tmp_path, lambda lines: [line[::-1] + word for line, word in zip(lines, words)])
    out, plain = tmp_path / "out.csv", tmp_path / "plain.csv"
    assert cli.main(["torque", STANFORD, shuffled, "-o", str(out)]) == 0
    assert "columns not used: 'note'" in capsys.readouterr().err
    assert cli.main(["torque", STANFORD, str(MOTION), "-o", str(plain)]) == 0
    assert out.read_text() == plain.read_text()


def test_files_as_people_have_them(tmp_path):
    """From Windows, with a BOM, quoted numbers, spaces, an empty row, commas at the end, and text in a column of no use."""
    header, *rows = MOTION.read_text().splitlines()
    rows = ["".join(f'"{word}", ' for word in row.split(",")) + "slow," for row in rows]
    strange = tmp_path / "strange.csv"
    strange.write_bytes("\r\n".join((header.replace(",", ", ") + ",note", *rows[:7], "", *rows[7:])).encode("utf-8-sig"))
    names = Robot.from_urdf(STANFORD, backend="python").joint_names
    found, expected = (motion_csv.read(path, names) for path in (strange, MOTION))
    assert found.ignored == ("note",) and not found.estimated
    for field in ("t", "q", "qd", "qdd", "qddd"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


@pytest.mark.parametrize("kept, said", [(7, "qd, qdd, qddd"), (13, "qdd, qddd"), (19, "qddd")])
def test_torque_estimates_missing_derivatives_and_says_so(tmp_path, capsys, kept, said):
    out = tmp_path / "out.csv"
    motion = edited_motion(tmp_path, lambda lines: [line[:kept] for line in lines])
    assert cli.main(["torque", STANFORD, motion, "-o", str(out)]) == 0
    assert f"estimated by local polynomials: {said}\n" in capsys.readouterr().err
    exact = Robot.from_urdf(STANFORD).torque_and_rate(*(columns(MOTION, f"{b}_joint") for b in ("q", "qd", "qdd", "qddd")))
    assert np.allclose(columns(out, "tau_joint"), exact[0], atol=1e-6)
    assert np.allclose(columns(out, "tau_rate_joint"), exact[1], atol=1e-4)


@pytest.mark.parametrize("edit, said", [
    (lambda lines: [line[:3] + line[4:] for line in lines], "no column 'q_joint3'"),
    (lambda lines: [line[1:] for line in lines], "no column 't'"),
    (lambda lines: lines[:1], "no rows"),
    (lambda lines: [*lines[:5], ["nan", *lines[5][1:]], *lines[6:]], "row 6, column 't' is 'nan'; a finite number"),
    (lambda lines: [*lines[:5], ["zero", *lines[5][1:]], *lines[6:]], "row 6, column 't' is 'zero'; a finite number"),
    (lambda lines: [*lines[:5], [*lines[5][:3], "", *lines[5][4:]], *lines[6:]], "row 6, column 'q_joint3' is ''"),
    (lambda lines: [*lines[:5], lines[5][:-1], *lines[6:]], "row 6 has 24 values, the header 25 columns"),
    (lambda lines: [["; ".join(line)] for line in lines], "its columns are parted by semicolons; commas are needed"),
    (lambda lines: [["\t".join(line)] for line in lines], "its columns are parted by tabs; commas are needed"),
    (lambda lines: [["# planned"], *lines], "no column 't', 'q_joint1'"),
    (lambda lines: lines[1:], "the first row holds numbers; the names of the columns are needed there"),
    (lambda lines: [["t", *lines[0][1:2], *lines[0][1:-1]], *lines[1:]], "stand twice"),
    (lambda lines: [lines[0][:7], *[line[:7] for line in lines[:0:-1]]], "time must increase"),
    (lambda lines: [line[:7] for line in lines[:4]], "too few"),
])
def test_bad_motions_are_refused_with_the_reason(tmp_path, capsys, edit, said):
    assert cli.main(["torque", STANFORD, edited_motion(tmp_path, edit), "-o", str(tmp_path / "out.csv")]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


@pytest.mark.parametrize("words, said", [
    (["model", "nowhere.urdf"], "nowhere.urdf"),
    (["torque", STANFORD, "nowhere.csv", "-o", "out.csv"], "nowhere.csv"),
    (["torque", STANFORD, str(MOTION), "-o", "no/such/folder/out.csv"], "no/such/folder"),
])
def test_files_that_are_not_there(words, said, capsys):
    assert cli.main(words) == 2
    assert said in capsys.readouterr().err


def test_options_change_the_result(tmp_path):
    out = tmp_path / "out.csv"
    assert cli.main(["torque", STANFORD, str(MOTION), "-o", str(out), "--gravity", "0", "0", "0", "--backend", "python"]) == 0
    motion = [columns(MOTION, f"{block}_joint") for block in ("q", "qd", "qdd", "qddd")]
    tau = Robot.from_urdf(STANFORD, gravity=(0.0, 0.0, 0.0)).torque_and_rate(*motion)[0]
    assert np.allclose(columns(out, "tau_joint"), tau, rtol=1e-12, atol=1e-13)


def test_progress_appears_only_when_the_work_is_long(capsys, monkeypatch):
    progress = cli.Progress()
    progress("computed", 1, 10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "start", progress.start - 5.0)
    monkeypatch.setattr(progress, "last", progress.last - 5.0)
    progress("computed", 5, 10)
    assert "5 of 10 samples, 50 %" in capsys.readouterr().err
