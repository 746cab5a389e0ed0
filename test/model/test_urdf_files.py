"""Packaged URDFs: published values, physically possible bodies, shapes for RViz."""

import json
import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rnea_ros import JointDynamics, Robot

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "urdf" / f"{name}.urdf" for name in ("stanford", "rr", "pr", "seven_r", "branched")]
GOLDEN = json.loads((ROOT / "test" / "golden" / "golden.json").read_text())
STATE = ("q", "qd", "qdd", "qddd")

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def load(name, **options):
    return Robot.from_urdf(ROOT / "urdf" / f"{name}.urdf", **options)


def state(robot, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, (4, robot.n))


def assert_close(value, expected, tolerance=1e-11):
    scale = np.maximum(1.0, np.abs(expected).max())
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance * scale)


# --- every file ----------------------------------------------------------------------------------------


@each_file
def test_header_states_the_robot_and_the_source_of_its_numbers(path):
    text = path.read_text()
    header = text[text.index("<!--"):text.index("-->")]
    assert text.index("<!--") < text.index("<robot") and len(header) > 300
    assert "chosen here" in header


@each_file
def test_packaged_urdf_causes_no_warnings(path):
    robot = Robot.from_urdf(path)
    assert robot.name == path.stem
    assert robot.warnings == ()
    assert robot.reconstruction_error < 1e-14


@each_file
def test_every_body_is_physically_possible(path):
    for inertia in ElementTree.parse(path).iterfind("link/inertial"):
        assert float(inertia.find("mass").get("value")) > 0
        tensor = [[float(inertia.find("inertia").get("i" + min(a + b, b + a))) for a in "xyz"] for b in "xyz"]
        principal = np.linalg.eigvalsh(tensor)
        assert principal[0] > 0 and principal[0] + principal[1] >= principal[2] * (1 - 1e-9)


@each_file
def test_every_moving_joint_has_limits(path):
    robot = Robot.from_urdf(path)
    assert np.all(robot.limits.effort > 0) and np.all(robot.limits.velocity > 0)
    bounded = [kind != "continuous" for kind in robot.joint_types]
    assert np.all((robot.limits.lower < robot.limits.upper) == bounded)


@each_file
def test_every_body_has_a_shape_that_needs_no_other_file(path):
    robot = ElementTree.parse(path).getroot()
    shapes = {shape.tag for geometry in robot.iterfind("link/visual/geometry") for shape in geometry}
    assert shapes <= {"box", "cylinder", "sphere"}
    materials = {material.get("name") for material in robot.iterfind("material")}
    assert {material.get("name") for material in robot.iterfind("link/visual/material")} <= materials
    for link in robot.iterfind("link"):
        assert link.find("visual") is not None or link.find("inertial") is None, f"{link.get('name')} has mass but no shape"


# --- against the papers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["stanford_arm"]["states"], ids=lambda case: f"t={case['t']}")
def test_stanford_arm_equals_published_torques_and_rates(case):
    tau, tau_rate = load("stanford").torque_and_rate(*(case[name] for name in STATE))
    assert_close(tau, case["tau"])
    assert_close(tau_rate, case["dtau"])


def test_stanford_arm_with_actuator_inertia_equals_published_values():
    golden = GOLDEN["stanford_arm"]["with_actuator_inertia"]
    terms = {f"joint{k}": JointDynamics(rotor_inertia=inertia) for k, inertia in enumerate(golden["Ia"], start=1)}
    robot = load("stanford", joint_dynamics=terms)
    motion = {case["t"]: case for case in GOLDEN["stanford_arm"]["states"]}
    for case in golden["states"]:
        if case["t"] in motion:
            tau, tau_rate = robot.torque_and_rate(*(motion[case["t"]][name] for name in STATE))
            assert_close(tau, case["tau"])
            assert_close(tau_rate, case["dtau"])


def test_rr_arm_equals_published_torques_and_rates():
    golden = GOLDEN["two_link_RR_thesis"]
    tau, tau_rate = load("rr").torque_and_rate(*(golden[name] for name in STATE))
    assert_close(tau, golden["tau"])
    assert_close(tau_rate, golden["dtau"])


def test_pr_arm_matches_the_published_closed_form():
    robot = load("pr")
    (q, qd, qdd, qddd) = state(robot)
    m, lc, inertia = 0.5, 0.2, 0.1
    s, c = np.sin(q[1]), np.cos(q[1])
    tau = [2 * m * qdd[0] + m * lc * (c * qdd[1] - s * qd[1] ** 2), m * lc * c * qdd[0] + (m * lc**2 + inertia) * qdd[1]]
    tau_rate = [
        2 * m * qddd[0] + m * lc * (c * qddd[1] - 3 * s * qd[1] * qdd[1] - c * qd[1] ** 3),
        m * lc * (c * qddd[0] - s * qd[1] * qdd[0]) + (m * lc**2 + inertia) * qddd[1],
    ]
    result = robot.torque_and_rate(q, qd, qdd, qddd)
    assert_close(result[0], tau)
    assert_close(result[1], tau_rate)


@pytest.mark.parametrize("name", ["rr", "pr"])
def test_gravity_does_no_work_in_the_plane_of_rr_and_pr_arms(name):
    robot = load(name)
    assert_close(robot.torque_and_rate(*state(robot)), load(name, gravity=(0.0, 0.0, 0.0)).torque_and_rate(*state(robot)))


# --- against Pinocchio ------------------------------------------------------------------------------------------------


@each_file
def test_torques_and_rates_of_packaged_urdfs_match_pinocchio(path):
    pytest.importorskip("pinocchio")
    from support.oracles import PinocchioOracle, deviation

    robot = Robot.from_urdf(path)
    oracle = PinocchioOracle(path, robot)
    for seed in range(5):
        motion = state(robot, seed)
        for ours, truth in zip(robot.torque_and_rate(*motion), oracle.torque_and_rate(*motion)):
            assert deviation(ours, truth) < 1e-12


def test_branched_urdf_contains_every_supported_feature():
    robot = ElementTree.parse(ROOT / "urdf" / "branched.urdf").getroot()
    assert {joint.get("type") for joint in robot.iterfind("joint")} == {"revolute", "continuous", "prismatic", "fixed"}
    assert robot.find("joint/mimic") is not None
    assert any(origin.get("rpy") for origin in robot.iterfind("link/inertial/origin"))
    axes = [np.array(axis.get("xyz").split(), dtype=float) for axis in robot.iterfind("joint/axis")]
    assert any(np.count_nonzero(axis) > 1 and abs(np.linalg.norm(axis) - 1) > 0.1 for axis in axes)
    children = [joint.find("parent").get("link") for joint in robot.iterfind("joint")]
    assert max(children.count(link) for link in children) >= 3


# The published motion moves the Stanford arm's rod by 2 m; a rod of that length would reach below the floor.
LEAVES_ITS_GUIDE = {("stanford", "joint3")}


# Platforms are connected to their legs by the robot file only.
PLATFORMS = ("stewart", "two_platforms", "four_platforms")
TREES = sorted(path for path in (ROOT / "urdf").glob("*.urdf") if path.stem not in PLATFORMS)


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.stem)
def test_shapes_of_connected_links_touch(path):
    """The joints are at random positions."""
    pin, coal = pytest.importorskip("pinocchio"), pytest.importorskip("coal")
    model = pin.buildModelFromUrdf(str(path))
    shapes = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.VISUAL)
    data, geometry = model.createData(), shapes.createData()
    lower, upper = np.maximum(model.lowerPositionLimit, -3.0), np.minimum(model.upperPositionLimit, 3.0)
    pin.seed(1)

    def of(joint):
        return [(shape.geometry, coal.Transform3s(placement.rotation, placement.translation))
                for shape, placement in zip(shapes.geometryObjects, geometry.oMg) if shape.parentJoint == joint]

    for q in [pin.neutral(model), *(pin.randomConfiguration(model, lower, upper) for _ in range(20))]:
        pin.updateGeometryPlacements(model, data, shapes, geometry, q)
        for joint in range(1, model.njoints):
            gap = min(coal.distance(*one, *two, coal.DistanceRequest(), coal.DistanceResult())
                      for one in of(joint) for two in of(model.parents[joint]))
            assert gap < 1e-6 or (path.stem, model.names[joint]) in LEAVES_ITS_GUIDE, f"{model.names[joint]}: {gap:.3f} m"


def test_generated_urdfs_equal_the_output_of_their_generator():
    robots = runpy.run_path(str(ROOT / "urdf" / "generate.py"))["ROBOTS"]
    for name, make in robots.items():
        assert (ROOT / "urdf" / f"{name}.urdf").read_text(encoding="utf-8") == make().text(), name
