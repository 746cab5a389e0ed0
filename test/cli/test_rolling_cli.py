"""`rnea rolling`: results of the library along a recording."""

from __future__ import annotations

import csv
import json

import numpy as np

import rnea_ros
from rnea_ros.cli import main
from support.rolling_machines import BICYCLE_FILE, BICYCLE_URDF, VEHICLES, VehicleOracle


def written(folder, urdf, file):
    paths = folder / "car.urdf", folder / "car.robot.yaml"
    paths[0].write_text(urdf)
    paths[1].write_text(json.dumps({"version": 1, **file}))  # JSON is valid YAML
    return [str(path) for path in paths]


def test_forces_margins_and_pose_equal_the_library(tmp_path, capsys):
    urdf, file = VEHICLES["omni"]
    truth, times = VehicleOracle(urdf, file), np.linspace(0.0, 0.5, 51)
    motion = np.array([truth.motion(t) for t in times])
    path, out = tmp_path / "drive.csv", tmp_path / "forces.csv"
    with path.open("w", newline="") as made:
        rows = csv.writer(made)
        rows.writerow(["t", *(f"{head}_{name}" for head in ("q", "qd", "qdd", "qddd") for name in truth.names)])
        rows.writerows([[t, *row.ravel()] for t, row in zip(times.tolist(), motion, strict=True)])
    car, robot_file = written(tmp_path, urdf, file)
    assert main.main(["rolling", car, str(path), "--robot-file", robot_file, "-o", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    with out.open() as made:
        header, *rows = csv.reader(made)
    columns = dict(zip(header, np.array(rows, dtype=float).T, strict=True))
    robot = rnea_ros.load(urdf, file)
    force, moment = truth.ground_reaction(times[20])
    assert abs(sum(columns[f"normal_w{k}"][20] for k in range(3)) / force[2] - 1.0) < 1e-6
    tau = truth.efforts(times[20])
    for name in robot.joint_names:
        assert abs(columns[f"tau_{name}"][20] - tau[truth.names.index(name)]) < 1e-6 * np.abs(tau).max()
    assert found["least_tip_over_margin"] == columns["tip_over_margin"].min() > 0.0
    assert [one["wheel"] for one in found["wheels"]] == ["w0", "w1", "w2"] and len(moment) == 3
    assert found["wheels"][0]["largest_friction_use"] == columns["friction_use_w0"].max() > 0.0


def test_base_with_a_free_lean_angle_is_rejected(tmp_path, capsys):
    car, robot_file = written(tmp_path, BICYCLE_URDF, BICYCLE_FILE)
    path = tmp_path / "ride.csv"
    path.write_text("t,q_rear,q_steer,q_front\n0,0,0,0\n0.1,0,0,0\n")
    assert main.main(["rolling", car, str(path), "--robot-file", robot_file]) == 2
    assert "do not determine base rx" in capsys.readouterr().err
