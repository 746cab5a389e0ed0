"""`rnea excite`: the written motion and trajectory are consistent and inside the given limits."""

from __future__ import annotations

import argparse

import numpy as np
import pytest
import yaml

from rnea_ros import InputError
from rnea_ros.cli import motions as excite_cli
from rnea_ros.cli.output import print_outcome
from support.recorded_robot import URDF


def arguments(*words):
    parser = argparse.ArgumentParser()
    excite_cli.add_excite_arguments(parser)
    parser.set_defaults(command="excite")
    return parser.parse_args([str(word) for word in words])


def test_excitation_writes_motion_and_trajectory(tmp_path, capsys):
    (tmp_path / "robot.urdf").write_text(URDF)
    strong = "".join(f"  j{k}: {{max_effort: 200.0}}\n" for k in (1, 2, 3))
    (tmp_path / "robot.yaml").write_text(f"version: 1\nlimits:\n{strong}")
    (tmp_path / "limits.yaml").write_text("version: 1\nlimits: {j2: {max_effort_rate: 100.0, max_velocity: 0.5}}\n")
    given = (tmp_path / "robot.urdf", "--robot-file", tmp_path / "robot.yaml", "-o", tmp_path / "motion.csv")
    given = (*given, "--iterations", 0, "--rate", 100, "--period", 5)
    limited = (*given, "--limits", tmp_path / "limits.yaml", "--trajectory", tmp_path / "motion.yaml", "--periods", 3)
    assert print_outcome(excite_cli.run_excite(arguments(*limited))) == 0
    assert "condition number" in (printed := capsys.readouterr().out) and "collisions are not checked" in printed
    with open(tmp_path / "motion.csv") as file:
        names = file.readline().strip().split(",")
    table = dict(zip(names, np.loadtxt(tmp_path / "motion.csv", delimiter=",", skiprows=1).T))
    assert np.abs(table["tau_rate_j2"]).max() <= 91.0 and np.abs(table["qd_j2"]).max() <= 0.451
    message = yaml.safe_load((tmp_path / "motion.yaml").read_text())
    assert message["joint_names"] == ["j1", "j2", "j3"] and table["t"][-1] >= 15.0
    for point in message["points"][::50]:
        t = point["time_from_start"]["sec"] + 1e-9 * point["time_from_start"]["nanosec"]
        for kind, column in (("positions", "q"), ("velocities", "qd"), ("accelerations", "qdd")):
            there = [np.interp(t, table["t"], table[f"{column}_{joint}"]) for joint in message["joint_names"]]
            assert point[kind] == pytest.approx(there, abs=2e-2)
    with pytest.raises(InputError, match="--periods is 0"):
        excite_cli.run_excite(arguments(*given, "--periods", 0))
