"""`rnea torque` and `rnea query` for recordings of moving bases and of motors behind springs, against Pinocchio.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("pinocchio")

from rnea_ros import MotorState
from rnea_ros.cli.main import main
from rnea_ros.io.recording import BASE
from support.moving_robots import URDF, MovingBase, MovingElastic
from support.oracles import worst
from support.rotor_trees import four_joints, hua_arm

T = np.arange(0.0, 0.6, 0.01)
SEEN = (20, 30, 41)


def coordinates(moving, t):
    """Return x, y, z, roll, pitch, yaw of the base of MovingBase and their derivatives."""
    rows = moving._sway(t)
    rows[0][5] += 0.5 * t
    rows[1][5] += 0.5
    return rows


def files(moving, folder, orders):
    """Write URDF, CSV and robot file; orders: number of q and its derivatives in the CSV."""
    names = list(moving.joints)
    rows = [moving.motion(t)[:orders] for t in T]
    if isinstance(moving, MovingBase):
        names += BASE
        rows = [[*map(np.append, row, coordinates(moving, t))] for row, t in zip(rows, T)]
    elif moving.measured:
        names += [f"{joint}_motor" for joint in moving.robot.elastic_joints]
        rows = [[*map(np.append, row, moving.motors(t))] for row, t in zip(rows, T)]
    header = ["t"] + [f"q{'d' * order}_{name}" for order in range(orders) for name in names]
    (folder / "robot.urdf").write_text(moving.urdf)
    np.savetxt(folder / "motion.csv", np.column_stack((T, np.array(rows).reshape(len(T), -1))), delimiter=",", comments="",
               header=",".join(header), fmt="%.17g")
    return str(folder / "robot.urdf"), str(folder / "motion.csv"), "--robot-file", moving.file(folder)


MOVING = {"base": lambda: (MovingBase(URDF / "branched.urdf"), 4),
          "motors by higher derivatives": lambda: (MovingElastic(*hua_arm(), size=0.4), 6),
          "motors that ride on springs": lambda: (MovingElastic(*four_joints(depth=4), size=0.4), 10),
          "motors measured": lambda: (MovingElastic(*four_joints(depth=4), size=0.4, measured=True), 4)}


@pytest.mark.parametrize("name", MOVING)
def test_torques_and_rates_of_a_recording_match_pinocchio(tmp_path, name):
    moving, orders = MOVING[name]()
    urdf, motion, *file = files(moving, tmp_path, orders)
    assert main(["torque", urdf, motion, *file, "-o", str(tmp_path / "out.csv")]) == 0
    tau, rate = np.split(np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)[:, 1:], 2, axis=1)
    for k in SEEN:
        assert worst(tau[k], moving.torque(T[k])) < 1e-9 and worst(rate[k], moving.rate(T[k])) < 1e-8


def test_motion_of_base_and_motors_is_estimated_from_positions_only(tmp_path):
    for name in ("base", "motors measured"):
        moving, _ = MOVING[name]()
        urdf, motion, *file = files(moving, tmp_path, 1)
        assert main(["torque", urdf, motion, *file, "-o", str(tmp_path / "out.csv")]) == 0
        tau = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)[:, 1:1 + len(moving.joints)]
        for k in SEEN:
            assert worst(tau[k], moving.torque(T[k])) < 1e-4


def test_missing_motor_motion_is_rejected_with_the_remedy(tmp_path, capsys):
    urdf, motion, *file = files(MOVING["motors by higher derivatives"]()[0], tmp_path, 4)
    assert main(["torque", urdf, motion, *file, "-o", str(tmp_path / "out.csv")]) == 2
    assert "It needs columns qdddd_<joint>, qddddd_<joint>, or positions of the motors" in capsys.readouterr().err


def test_query_of_a_recording_uses_base_motors_and_efforts_of_the_file(tmp_path, capsys):
    moving, orders = MOVING["base"]()
    urdf, motion, *file = files(moving, tmp_path, orders)
    assert main(["query", urdf, "floating", "--state", motion, *file]) == 0
    found = json.loads(capsys.readouterr().out)
    free = moving.robot.solve(*moving.motion(T[20]), base=moving.base(T[20]).free)
    assert worst(found["effort"][20], free.torques[0]) < 1e-9
    moving, orders = MOVING["motors measured"]()
    urdf, motion, *file = files(moving, tmp_path, orders)
    assert main(["query", urdf, "energy", "--state", motion, *file]) == 0
    found = json.loads(capsys.readouterr().out)
    total = np.add(found["kinetic_energy"], found["potential_energy"])
    one, other = (moving.oracle.energy(*map(np.append, moving.motion(t)[:2], moving.motors(t)[:2])) for t in T[[20, 40]])
    assert total[20] - total[40] == pytest.approx(one - other, abs=1e-9)  # Pinocchio leaves the root link out
    with open(motion) as file_of_motion:
        header, *rows = file_of_motion.read().splitlines()
    names = [f"tau_{joint}" for joint in moving.joints]
    (tmp_path / "motion.csv").write_text("\n".join([",".join([header, *names]), *(row + ",1" * len(names) for row in rows)]))
    assert main(["query", urdf, "forward", "--state", motion, *file]) == 0
    found = json.loads(capsys.readouterr().out)
    (q, qd, *_), (q_motor, qd_motor, *_) = moving.motion(T[20]), moving.motors(T[20])
    expected = moving.robot.forward_dynamics(q, qd, np.ones(len(q)), motors=MotorState(q_motor, qd_motor))
    assert worst(found["acceleration"][20], expected) < 1e-9
