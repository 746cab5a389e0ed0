"""Modified Denavit-Hartenberg tables against published values and random trees built directly in Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import ModelError
from rnea_ros.model import dh_table, urdf
from rnea_ros.model.dh_table import ModifiedRow
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import GOLDEN, PinocchioOracle, worst
from support.robots import random_state, seeds

UPPER = np.triu_indices(3)
STANFORD = GOLDEN["stanford_arm"]


def loaded(source):
    """Model of a table: rows, or the path of a CSV file."""
    if isinstance(source, list):
        return urdf.load(dh_table.modified_to_urdf(source))
    return urdf.load(dh_table.modified_to_urdf(dh_table.read_modified(source), Path(source).stem))


def golden_rows():
    rows = []
    for k, r in enumerate(STANFORD["links"], start=1):
        rows.append(ModifiedRow(f"q{k}", r["type"], alpha=r["alpha_prev"], d=r["a_prev"], theta=r["theta0"], r=r["d0"],
                                mass=r["m"], com=r["c"], inertia=np.array(r["I"])[UPPER]))
    return rows


def random_rows(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(1, rng.integers(2, 9)):
        V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        a, b, c = rng.uniform(0.01, 0.1, 3)
        inertia = V @ np.diag([a + b, b + c, c + a]) @ V.T
        alpha = rng.choice([0.0, np.pi / 2, -np.pi / 2, np.pi, rng.uniform(-3, 3)])
        lengths = rng.normal(size=3) * (rng.random(3) < 0.7)
        rows.append(ModifiedRow(f"q{k}", str(rng.choice(["R", "P"])), int(rng.integers(-1, k)), rng.uniform(-3, 3), lengths[0],
                                alpha, lengths[1], rng.uniform(-3, 3), lengths[2], rng.uniform(0.5, 3.0),
                                rng.normal(size=3) * 0.2, inertia[UPPER]))
    return rows


def turn(axis, angle):
    return pin.SE3(pin.AngleAxis(angle, np.eye(3)[axis]).matrix(), np.zeros(3))


def along(axis, length):
    return pin.SE3(np.eye(3), np.eye(3)[axis] * length)


def by_hand(rows):
    """Build a Pinocchio model from equation (1), factor by factor, with joint j at frame j."""
    model = pin.Model()
    for k, row in enumerate(rows, start=1):
        carrier = k - 1 if row.antecedent < 0 else row.antecedent
        placement = (turn(2, row.gamma) * along(2, row.b) * turn(0, row.alpha) * along(0, row.d) * turn(2, row.theta)
                 * along(2, row.r))
        joint = model.addJoint(carrier, pin.JointModelRZ() if row.type == "R" else pin.JointModelPZ(), placement, row.joint)
        inertia = np.zeros((3, 3))
        inertia[UPPER] = row.inertia
        inertia = inertia + np.triu(inertia, 1).T
        model.appendBodyToJoint(joint, pin.Inertia(row.mass, np.asarray(row.com), inertia), pin.SE3.Identity())
    return model


def test_torques_of_a_modified_table_equal_published_values():
    robot = TreeDynamics(loaded(golden_rows()), gravity=STANFORD["gravity"])
    for case in STANFORD["states"]:
        tau, rate = robot.torque_and_rate(*(case[name] for name in ("q", "qd", "qdd", "qddd")))
        assert worst(tau, case["tau"]) < 1e-12
        assert worst(rate, case["dtau"]) < 1e-12


@pytest.mark.parametrize("seed", seeds(8))
def test_torques_and_placements_of_random_tables_match_pinocchio(seed):
    rows = random_rows(seed)
    robot, model = TreeDynamics(loaded(rows), "reference"), by_hand(rows)
    data = model.createData()
    order = [model.joints[model.getJointId(name)].idx_q for name in robot.joint_names]
    state = random_state(np.random.default_rng(seed), robot.n)[:3]
    theirs = np.empty((3, robot.n))
    theirs[:, order] = state
    assert worst(robot.inverse_dynamics(*state), pin.rnea(model, data, *theirs)[order]) < 1e-11
    pin.forwardKinematics(model, data, theirs[0])
    oracle = PinocchioOracle(dh_table.modified_to_urdf(rows), robot)
    for k in range(1, len(rows) + 1):
        R, p = oracle.placement(f"frame{k}", state[0])
        assert worst(p, data.oMi[k].translation) < 1e-12 and worst(R, data.oMi[k].rotation) < 1e-12


def test_missing_cells_of_a_table_have_defaults(tmp_path):
    """An empty antecedent is the previous row; other missing cells are zero."""
    path = tmp_path / "tree.csv"
    path.write_text("joint,type,antecedent,alpha,d,theta,r,mass,ixx,iyy,izz,effort\n"
                    "a,R,0,0,0,0,0.3,1,.1,.1,.1,9\nb,R,,-pi/2,0.2,pi/2,0,1,.1,.1,.1,\nc,P,1,pi/2,0,0,0.1,1,.1,.1,.1,\n",
                    encoding="utf-8")
    rows = dh_table.read_modified(path)
    assert [row.antecedent for row in rows] == [0, dh_table.PREVIOUS_ROW, 1]
    robot = TreeDynamics(loaded(path))
    assert robot.name == "tree" and robot.joint_types == ("continuous", "continuous", "prismatic")
    assert robot.limits.effort[0] == 9.0 and np.isnan(robot.limits.effort[1])
    placement = robot.link_pose("frame3", np.array([0.0, 0.7, 0.2]))
    assert worst(placement.p, [0.0, -0.3, 0.3]) < 1e-15  # r = 0.1 + 0.2 along z of frame 3, turned by pi/2 about x


@pytest.mark.parametrize(("text", "problem"), (
    ("joint,type,antecedent\nq,R,1\n", "antecedent is 1; it must be 0, the base, or the number of a row above"),
    ("joint,type,antecedent\nq,R,0.5\n", "antecedent is 0.5"),
    ("joint,type,antecedent\nq,R,x\n", "row 1, column 'antecedent': 'x' is not a number"),
    ("joint,type,a\nq,R,1\n", "column 'a' is unknown"),
))
def test_invalid_modified_tables_are_rejected(tmp_path, text, problem):
    path = tmp_path / "arm.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError) as error:
        loaded(path)
    assert problem in str(error.value)
