"""Standard Denavit-Hartenberg tables against published values and random tables built directly in Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import ModelError
from rnea_ros.model import dh_table, urdf
from rnea_ros.model.dh_table import StandardRow, thesis_com
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import GOLDEN, PinocchioOracle, worst
from support.robots import random_state, seeds

UPPER = np.triu_indices(3)
THESIS_RR = """joint, type, theta, d, a, alpha, mass, com_x, izz
q1, R, 0, 0, 0.4, 0, 0.5, -0.2, 0.1
q2, R, 0, 0, 0.4, 0, 0.5, -0.2, 0.1
"""
# Tables 4.3 and 4.4 with the errata: a_2 = L_2, as the centre of mass requires, and q_2 = theta_2.
THESIS_PR = """joint,type,theta,d,a,alpha,mass,com_x,com_y,ixx,iyy,izz
q1,P,pi/2,0.4,0,pi/2,0.5,0,-0.2,0.1,0.1,0.1
q2,R,0,0,0.4,0,0.5,-0.2,0,0.1,0.1,0.1
"""


def loaded(source):
    """Model of a table: rows, or the path of a CSV file."""
    if isinstance(source, list):
        return urdf.load(dh_table.standard_to_urdf(source))
    return urdf.load(dh_table.standard_to_urdf(dh_table.read_standard(source), Path(source).stem))


def golden_rows():
    return [StandardRow(f"q{k}", r["type"], r["theta0"], r["d0"], r["a"], r["alpha"], r["m"],
                thesis_com(r["l"], r["dG0"], r["d0"], r["a"], r["alpha"]), np.array(r["I"])[UPPER])
            for k, r in enumerate(GOLDEN["std_dh_sensitivities_barman"]["links"], start=1)]


def random_rows(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(rng.integers(1, 8)):
        V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        a, b, c = rng.uniform(0.01, 0.1, 3)
        inertia = V @ np.diag([a + b, b + c, c + a]) @ V.T
        alpha = rng.choice([0.0, np.pi / 2, -np.pi / 2, np.pi, rng.uniform(-3, 3)])
        rows.append(StandardRow(f"q{k}", str(rng.choice(["R", "P"])), rng.uniform(-3, 3),
                          *rng.normal(size=2) * (rng.random(2) < 0.7),
                        alpha, rng.uniform(0.5, 3.0), rng.normal(size=3) * 0.2, inertia[UPPER]))
    return rows


def transform(row, q):
    """Return the transform of equation (2.8)."""
    theta, d = row.theta + (q if row.type == "R" else 0.0), row.d + (q if row.type == "P" else 0.0)
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(row.alpha), np.sin(row.alpha)
    return np.array([[c, -ca * s, sa * s, row.a * c], [s, ca * c, -sa * c, row.a * s], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]])


def by_hand(rows):
    """Build a Pinocchio model of a table: joint j is in frame j-1, and its link frame coincides with it at zero."""
    model, end = pin.Model(), pin.SE3.Identity()
    for row in rows:
        kind = pin.JointModelRZ() if row.type == "R" else pin.JointModelPZ()
        joint = model.addJoint(len(model.joints) - 1, kind, end, row.joint)
        end = pin.SE3(transform(row, 0.0))
        inertia = np.zeros((3, 3))
        inertia[UPPER] = row.inertia
        inertia = inertia + np.triu(inertia, 1).T
        model.appendBodyToJoint(joint, pin.Inertia(row.mass, np.asarray(row.com), inertia), end)
    return model


def test_sensitivities_equal_published_values():
    golden = GOLDEN["std_dh_sensitivities_barman"]
    robot = TreeDynamics(loaded(golden_rows()), gravity=golden["gravity"])
    state = [golden[name] for name in ("q", "qd", "qdd")]
    assert worst(robot.inverse_dynamics(*state), golden["tau"]) < 1e-13
    for name, ours in robot.sensitivities(*state)._asdict().items():
        assert worst(ours, golden[name]) < 1e-13


@pytest.mark.parametrize("seed", seeds(6))
def test_torques_and_sensitivities_of_random_tables_equal_pinocchio(seed):
    """Frames by equation (2.8); torques, sensitivities and wrenches by a Pinocchio model not made from a URDF."""
    rows = random_rows(seed)
    robot = TreeDynamics(loaded(rows), "reference")
    model = by_hand(rows)
    data, state = model.createData(), random_state(np.random.default_rng(seed), robot.n)[:3]
    oracle, pose = PinocchioOracle(dh_table.standard_to_urdf(rows), robot), np.eye(4)
    for k, (row, q) in enumerate(zip(rows, state[0]), start=1):
        pose = pose @ transform(row, q)
        R, p = oracle.placement(f"frame{k}", state[0])
        assert worst(np.column_stack((R, p)), pose[:3]) < 1e-12
    assert worst(robot.inverse_dynamics(*state), pin.rnea(model, data, *state)) < 1e-11
    assert worst(robot.joint_wrenches(*state).wrench, [f.vector for f in list(data.f)[1:]]) < 1e-11
    dq, dqd, M = (table.copy() for table in pin.computeRNEADerivatives(model, data, *state))
    for ours, truth in zip(robot.sensitivities(*state), (dq, dqd, np.triu(M) + np.triu(M, 1).T)):
        assert worst(ours, truth) < 1e-11


def test_rr_arm_of_the_thesis_equals_published_values(tmp_path):
    """Tables 4.1 and 4.2 are read from a file; the arm moves in a horizontal plane. Figure 4.3: internal forces."""
    path = tmp_path / "rr.csv"
    path.write_text(THESIS_RR, encoding="utf-8")
    robot, golden = TreeDynamics(loaded(path)), GOLDEN["two_link_RR_thesis"]
    assert robot.name == "rr" and robot.joint_names == ("q1", "q2")
    assert all("breaks the triangle inequality" in warning for warning in robot.warnings)  # the thesis states one moment only
    state = [np.array(golden[name]) for name in ("q", "qd", "qdd", "qddd")]
    tau, rate = robot.torque_and_rate(*state)
    assert worst(tau, golden["tau"]) < 1e-12
    assert worst(rate, golden["dtau"]) < 1e-12
    angle, w, wd = (np.cumsum(x) for x in state[:3])
    radial = np.column_stack((np.cos(angle), np.sin(angle)))
    tip = 0.4 * (radial @ [[0, 1], [-1, 0]] * wd[:, None] - radial * w[:, None] ** 2)  # of each link relative to its start
    centres = np.array([tip[0] / 2, tip[0] + tip[1] / 2])
    forces = 0.5 * np.array([centres.sum(axis=0), centres[1]])
    wrench = TreeDynamics(robot.model, gravity=(0, 0, 0)).joint_wrenches(*state[:3]).wrench
    assert worst(np.linalg.norm(wrench[:, :3], axis=1), np.linalg.norm(forces, axis=1)) < 1e-12
    assert worst(wrench[:, 5], golden["tau"]) < 1e-12


def test_pr_arm_of_the_thesis_matches_its_closed_form(tmp_path):
    """M, h and their derivatives are compared."""
    path = tmp_path / "pr.csv"
    path.write_text(THESIS_PR, encoding="utf-8")
    robot = TreeDynamics(loaded(path), gravity=(0, 0, 0))
    m1, m2, lc, I2 = 0.5, 0.5, 0.2, 0.1
    q, qd, qdd, _ = random_state(np.random.default_rng(0), 2)
    c, s = m2 * lc * np.cos(q[1]), m2 * lc * np.sin(q[1])
    M = np.array([[m1 + m2, c], [c, m2 * lc**2 + I2]])
    assert worst(robot.inverse_dynamics(q, qd, qdd), M @ qdd - [s * qd[1] ** 2, 0.0]) < 1e-14
    dq, dqd, dqdd = robot.sensitivities(q, qd, qdd)
    assert worst(dqdd, M) < 1e-14
    assert worst(dqd, [[0.0, -2.0 * s * qd[1]], [0.0, 0.0]]) < 1e-14
    assert worst(dq, [[0.0, -s * qdd[1] - c * qd[1] ** 2], [0.0, -s * qdd[0]]]) < 1e-14


def test_both_columns_for_the_center_of_mass_are_equivalent(tmp_path):
    head = "joint,type,theta,d,a,alpha,mass,"
    for text, name in ((head + "l,d_g\nq,P, -pi/3, 0.2, 0.1, 2*pi/3, 1, 0.3, 0.5\n", "thesis"),
                       (head + "com_x,com_y,com_z\nq,P, -pi/3, 0.2, 0.1, 2*pi/3, 1, {}, {}, {}\n", "frame")):
        point = (0.3 - 0.1, 0.3 * np.sin(2 * np.pi / 3), 0.3 * np.cos(2 * np.pi / 3))
        (tmp_path / name).write_text(text.format(*point), encoding="utf-8")
    thesis, frame = (dh_table.read_standard(tmp_path / name)[0] for name in ("thesis", "frame"))
    assert thesis.com == pytest.approx(frame.com, abs=1e-15)
    assert (thesis.theta, thesis.alpha) == pytest.approx((-np.pi / 3, 2 * np.pi / 3), abs=1e-15)


def test_limits_of_a_table_are_written_to_the_urdf(tmp_path):
    path = tmp_path / "arm.csv"
    path.write_text("joint,type,lower,upper,effort,velocity\na,P,-0.5,0.7,20,3\nb,P,,,,\n", encoding="utf-8")
    limits = TreeDynamics(loaded(path)).limits
    assert (limits.lower[0], limits.upper[0], limits.effort[0], limits.velocity[0]) == (-0.5, 0.7, 20.0, 3.0)
    assert np.isnan([limits.lower[1], limits.upper[1], limits.effort[1], limits.velocity[1]]).all()


@pytest.mark.parametrize(("text", "problems"), (
    ("joint,type,alfa\nq,R,1\n", ["column 'alfa' is unknown; known are joint, type, theta"]),
    ("joint,theta\nq,1\n", ["column 'type' is missing"]),
    ("joint,type\n", ["no rows"]),
    ("", ["no rows"]),
    ("joint,type,theta\nq,R,1,2\n", ["row 1 has more cells"]),
    ("joint,type,theta,d\na,X,1,0\nb,R,pie,nan\n",
     ["row 1: type is 'X'; it must be R", "row 2, column 'theta': 'pie' is not a number", "row 2, column 'd': 'nan'"]),
    ("joint,type,l,com_x\nq,R,1,1\n", ["given twice"]),
))
def test_errors_of_a_table_name_every_cell(tmp_path, text, problems):
    path = tmp_path / "arm.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError) as error:
        loaded(path)
    assert len(error.value.problems) == len(problems)
    for problem in problems:
        assert problem in str(error.value)
    assert str(path) in str(error.value)


def test_tables_that_make_an_invalid_urdf_are_rejected():
    with pytest.raises(ModelError, match="2 joints are named 'q'"):
        loaded([StandardRow("q", "R"), StandardRow("q", "P")])
    with pytest.raises(ModelError, match="mass -1 kg is negative"):
        loaded([StandardRow("q", "R", mass=-1.0)])
    with pytest.raises(ModelError, match="type is 'F'; it must be R"):
        loaded([StandardRow("q", "F")])
    with pytest.raises(ModelError, match="cannot be read"):
        loaded("there is no such file.csv")


def test_special_characters_in_joint_names_are_kept():
    odd = 'a"b<c>&\'\u00e4'
    assert TreeDynamics(loaded([StandardRow(odd, "R", mass=1.0)])).joint_names == (odd,)
