"""`rnea flexible`: results of the library, and files that can be read again."""

from __future__ import annotations

import csv
import json

import numpy as np
import yaml

import rnea_ros
from rnea_ros.cli import main
from support.beam_oracle import boom_file, boom_urdf, slew


def written(folder):
    urdf, file, path = (folder / name for name in ("boom.urdf", "boom.robot.yaml", "slew.csv"))
    urdf.write_text(boom_urdf())
    file.write_text(yaml.safe_dump({"version": 1, **boom_file(60.0, 2, section_modulus=1e-6)}))
    t, hub, wrist = np.linspace(0.0, 0.8, 81), slew(0.8, 0.6), slew(-0.3, 0.6)
    motion = np.array([[hub(x), wrist(x)] for x in t]).transpose(2, 0, 1)
    with path.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["t", *(f"{head}_{name}" for head in ("q", "qd", "qdd", "qddd") for name in ("hub", "wrist"))])
        rows.writerows(np.column_stack((t, *motion)).tolist())
    return str(urdf), str(file), str(path), t, motion


def test_motion_deflection_and_torques_equal_the_library(tmp_path, capsys):
    urdf, file, path, t, motion = written(tmp_path)
    out = str(tmp_path / "out.csv")
    assert main.main(["flexible", urdf, path, "--robot-file", file, "-o", out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    with open(out) as read:
        header, *rows = csv.reader(read)
    columns = dict(zip(header, np.array(rows, dtype=float).T, strict=True))
    robot = rnea_ros.load(urdf, file)
    whole = rnea_ros.predict_deflection(robot, t, *motion)
    tau, rate = robot.torque_and_rate(*whole)
    for k, name in enumerate(robot.joint_names):
        np.testing.assert_allclose(columns[f"tau_{name}"], tau[:, k], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(columns[f"tau_rate_{name}"], rate[:, k], rtol=1e-9, atol=1e-7)
    tip = rnea_ros.tip_deflection(robot, whole[0])["boom"]
    np.testing.assert_allclose(columns["tip_boom_y"], tip[:, 1], atol=1e-12)
    np.testing.assert_allclose(columns["stress_boom_y"], columns["moment_boom_y"] / 1e-6, rtol=1e-12)
    assert found["residual_vibration"]["boom"] > 1e-3 and len(found["frequencies"]) == 2


def test_shape_option_reduces_residual_vibration_and_frequencies_need_no_recording(tmp_path, capsys):
    urdf, file, path, *_ = written(tmp_path)
    assert main.main(["flexible", urdf, path, "--robot-file", file, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert main.main(["flexible", urdf, path, "--robot-file", file, "--shape", "zvd", "--json"]) == 0
    shaped = json.loads(capsys.readouterr().out)
    assert shaped["residual_vibration"]["boom"] < 0.05 * plain["residual_vibration"]["boom"]
    assert shaped["duration"] > plain["duration"]
    assert main.main(["flexible", urdf, "--robot-file", file]) == 0
    _, row, *_ = capsys.readouterr().out.splitlines()
    assert abs(float(row.split()[1]) / plain["frequencies"][0] - 1.0) < 0.01  # with the wrist straight


def test_robot_without_flexible_links_is_rejected(tmp_path, capsys):
    urdf, *_ = written(tmp_path)
    assert main.main(["flexible", urdf]) == 2
    assert "has no flexible links" in capsys.readouterr().err
