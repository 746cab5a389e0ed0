"""Query services for robots of every kind, called in process: results match Pinocchio, and rejections state the reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pinocchio")

import pinocchio as pin

from rnea_ros import InputError, Robot, load
from rnea_ros.query import REQUESTS, answer_request
from rnea_ros.robots.base_state import quaternion
from rnea_ros.sim.machines import gough_stewart
from support.combined_machines import case
from support.free_flyer import FreeFlyer, random_base
from support.machines import LoopOracle, PlatformOracle, polygon
from support.oracles import PinocchioOracle, difference, worst
from support.parallel_machines import delta
from support.robots import random_tree
from support.rotor_trees import four_joints

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ("position", "velocity", "acceleration", "jerk", "snap", "crackle")
POINT = np.array([0.1, -0.2, 0.3])


def question(robot, name, motion=(), **more):
    """Return the answer to a request of one sample, without the sample axis; motion is q, qd ... in the robot's order."""
    sample = dict(zip(FIELDS, (np.asarray(x).tolist() for x in motion)))
    sample |= more.pop("sample", {})
    request = {"samples": [sample]} if sample else {}
    answer = answer_request(robot, REQUESTS[name], {**request, **more})
    return {key: value[0] if isinstance(value, np.ndarray) else value for key, value in answer.items()}


def same_point(pose, R, p, tolerance=1e-11):
    assert worst(pose[:3], p) < tolerance
    assert abs(abs(pose[3:] @ quaternion(R)) - 1.0) < tolerance


def loop_robot(name):
    if name == "polygon":
        urdf, loops = polygon(((0.0, 0.0), (0.1, 0.25), (0.55, 0.4), (0.5, 0.0)), seed=4).cut_at("j4", active=["j1"])
        return load(urdf, loops, backend="python"), LoopOracle(urdf, loops, ("j1", "j2", "j3"))
    yaml = pytest.importorskip("yaml")
    urdf, file = ROOT / "urdf" / f"{name}.urdf", ROOT / "urdf" / f"{name}.robot.yaml"
    robot = load(urdf, file, backend="python")
    declared = yaml.safe_load(file.read_text())
    loops = {"loops": declared["loops"] | {"active": robot.joint_names}}
    oracle = LoopOracle(urdf.read_text(), loops, robot.tree.joint_names)
    oracle.body.model.gravity.linear = robot.tree.gravity_vector
    return robot, oracle


def loop_motion(robot, seed):
    rng = np.random.default_rng(seed)
    return robot.home_motion[0] + 0.1 * rng.normal(size=robot.n), *rng.uniform(-1.0, 1.0, (3, robot.n))


LOOPS = pytest.mark.parametrize("name", ["five_bar", "palletiser", "polygon"])
MACHINES = {"stewart": gough_stewart, "delta": delta}


# --- link kinematics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 5, 8, 11])
def test_link_poses_twists_and_jacobians_of_random_trees_match_pinocchio(seed):
    text = random_tree(seed).text()
    robot = Robot.from_urdf(text, backend="python")
    oracle = PinocchioOracle(random_tree(seed).plain(), robot)
    links = [link for link in robot.model.frames if oracle.model.existFrame(link, pin.FrameType.BODY)][-4:]
    q, qd = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, robot.n))
    given = {"links": links, "points": [POINT.tolist()] * len(links)}
    kinematics, slopes = (question(robot, name, (q, qd), **given) for name in ("kinematics", "jacobians"))
    assert kinematics["links"] == slopes["links"] == tuple(links) and slopes["coordinates"] == robot.joint_names
    for k, link in enumerate(links):
        R, p, J, Jd = oracle.kinematics(link, POINT, q, qd)
        same_point(kinematics["pose"][k], R, p)
        assert worst(kinematics["twist"][k], J @ qd) < 1e-11
        assert worst(slopes["jacobian"][k], J) < 1e-11 and worst(slopes["jacobian_rate"][k], Jd) < 1e-11


def test_links_on_a_moving_base_match_pinocchio_in_the_requested_order():
    file = ROOT / "urdf" / "branched.urdf"
    robot = load(file, base="floating", backend="python")
    oracle, base, names = FreeFlyer(file, robot), random_base(np.random.default_rng(1)), robot.joint_names[::-1]
    q, qd = np.random.default_rng(2).uniform(-1.0, 1.0, (2, robot.n))
    state = {"position": base.position.tolist(), "orientation": base.quaternion.tolist(), "velocity": base.velocity.tolist()}
    given = {"links": ["left_hand"], "points": [POINT.tolist()], "base": [state], "joint_names": list(names)}
    point, slope = (question(robot, name, (q[::-1], qd[::-1]), **given) for name in ("kinematics", "jacobians"))
    R, p, J, Jd = oracle.kinematics(base, q, qd, "left_hand", POINT)
    order = [*range(6), *range(5 + robot.n, 5, -1)]
    same_point(point["pose"][0], R, p)
    assert slope["coordinates"][5:7] == ("base rz", names[0])
    assert worst(slope["jacobian"][0], J[:, order]) < 1e-11 and worst(slope["jacobian_rate"][0], Jd[:, order]) < 1e-11
    assert worst(point["twist"][0], J @ np.concatenate((base.velocity, qd))) < 1e-11
    matrix = question(robot, "matrix", (q[::-1], qd[::-1]), joint_names=list(names), base=[state])
    assert matrix["coordinates"] == slope["coordinates"]
    assert worst(matrix["mass_matrix"], oracle.mass_matrix(base, q)[np.ix_(order, order)]) < 1e-11


@LOOPS
def test_link_poses_and_jacobians_of_closed_loops_match_pinocchio(name):
    robot, oracle = loop_robot(name)
    q, qd, *_ = loop_motion(robot, 1)
    closed = question(robot, "loops", (q, qd))
    _M, _h, J, _drift = oracle.equations(closed["all_positions"], closed["all_velocities"])
    assert worst(J @ closed["active_jacobian"], np.zeros((len(J), robot.n))) < 1e-10
    link = tuple(robot.tree.model.frames)[-1]
    tree = PinocchioOracle(robot_text(robot, name), robot.tree)
    R, p, Jl, _ = tree.kinematics(link, POINT, closed["all_positions"], closed["all_velocities"])
    given = {"links": [link], "points": [POINT.tolist()]}
    same_point(question(robot, "kinematics", (q, qd), **given)["pose"][0], R, p)
    assert worst(question(robot, "jacobians", (q, qd), **given)["jacobian"][0], Jl @ closed["active_jacobian"]) < 1e-10


def robot_text(robot, name):
    if name == "polygon":
        return polygon(((0.0, 0.0), (0.1, 0.25), (0.55, 0.4), (0.5, 0.0)), seed=4).cut_at("j4", active=["j1"])[0]
    return ROOT / "urdf" / f"{name}.urdf"


# --- torques --------------------------------------------------------------------------------------------------------------


@LOOPS
def test_torques_and_mass_matrices_of_closed_loops_match_pinocchio(name):
    """Constraint forces are from Pinocchio, the rates of torque and mass matrix from sixth-order differences."""
    robot, oracle = loop_robot(name)
    motion = loop_motion(robot, 2)
    closed, torque = (question(robot, asked, motion) for asked in ("loops", "torque"))
    tau, qdd = oracle.inverse(closed["all_positions"], closed["all_velocities"], motion[2])
    assert worst(torque["effort"], tau) < 1e-9 and worst(closed["all_accelerations"], qdd) < 1e-9
    matrix, coriolis = (question(robot, asked, motion[:2]) for asked in ("matrix", "coriolis"))
    still = oracle.inverse(closed["all_positions"], np.zeros(robot.tree.n), np.zeros(robot.n))[0]
    moving = oracle.inverse(closed["all_positions"], closed["all_velocities"], np.zeros(robot.n))[0]
    C = coriolis["coriolis_matrix"]
    assert worst(matrix["gravity"], still) < 1e-9 and worst(C @ motion[1], moving - still) < 1e-9
    Md = difference(lambda t: robot.mass_matrix(motion[0] + t * motion[1]), 1e-3)
    assert worst(Md - 2.0 * C, -(Md - 2.0 * C).T) < 1e-8
    forward = question(robot, "forward", motion[:2], sample={"effort": tau.tolist()})
    assert worst(forward["acceleration"], motion[2]) < 1e-8


@LOOPS
def test_regressor_times_parameters_equals_torque_of_closed_loops(name):
    robot, _ = loop_robot(name)
    motion = loop_motion(robot, 3)
    found, torque = (question(robot, asked, motion) for asked in ("regressor", "torque"))
    values = [row["value"] for row in found["parameters"]]
    assert worst(found["regressor"] @ values, torque["effort"]) < 1e-10
    assert worst(found["regressor_rate"] @ values, torque["effort_rate"]) < 1e-9


@pytest.mark.parametrize("name", ["loop, spring", "passive joint"])
def test_regressor_of_joints_without_motors_gives_spring_torque_or_zero(name):
    """The torque of a joint without motor at given accelerations is that of its spring, or zero."""
    robot, _, motion, state = case(name, 0)
    solved = robot.solve(*motion, **state)
    motion = np.array([[solved.positions[joint][k] for joint in robot.joint_names] for k in range(4)])
    near = {"guess": {"joint_names": list(robot.tree.joint_names), "position": state["guess"].tolist()}} if robot.roles.loops \
        else {}
    found = question(robot, "regressor", motion, **near)
    values = [row["value"] for row in found["parameters"]]
    effort, effort_rate = robot.torque_and_rate(*motion, **state)
    assert worst(found["regressor"] @ values, effort) < 1e-10
    assert worst(found["regressor_rate"] @ values, effort_rate) < 1e-9


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_regressor_and_coriolis_matrix_of_random_trees_match_pinocchio(seed):
    robot = Robot.from_urdf(random_tree(seed).text(), backend="python")
    oracle = PinocchioOracle(random_tree(seed).plain(), robot)
    motion = np.random.default_rng(seed).uniform(-1.0, 1.0, (4, robot.n))
    found = question(robot, "regressor", motion)
    values = [row["value"] for row in found["parameters"]]
    for Y, truth in zip((found["regressor"], found["regressor_rate"]), oracle.torque_and_rate(*motion)):
        assert worst(Y @ values, truth) < 1e-9
    C, still = question(robot, "coriolis", motion[:2])["coriolis_matrix"], np.zeros(robot.n)
    truth = oracle.torque(*motion[:2], still, {}) - oracle.torque(motion[0], still, still, {})
    assert worst(C @ motion[1], truth) < 1e-11
    Md = difference(lambda t: oracle.mass_matrix(motion[0] + t * motion[1]), 1e-3)
    assert worst(Md - 2.0 * C, -(Md - 2.0 * C).T) < 1e-9


@pytest.mark.parametrize("seed", [1, 4])
def test_motor_torques_of_elastic_joints_match_pinocchio(seed):
    robot, oracle = four_joints()
    motion = 0.5 * np.random.default_rng(seed).normal(size=(robot.order + 1, robot.n))
    names = (*FIELDS, "pop", "lock")
    sample = dict(zip(names, motion.tolist()))
    found = question(robot, "motors", motion[:2], sample=sample)
    x = np.concatenate((motion[0], found["motor_position"]))
    v = np.concatenate((motion[1], found["motor_velocity"]))
    felt = oracle.torques(x, v, np.concatenate((motion[2], found["motor_acceleration"])))
    n = robot.n
    assert worst(felt[:n], np.zeros(n)) < 1e-8  # springs alone move the links
    assert worst(felt[n:], found["effort"]) < 1e-8
    torque = question(robot, "torque", motion[:2], sample=sample)
    assert worst(torque["effort_rate"], found["effort_rate"]) < 1e-12
    without = question(robot, "motors", motion[:2], sample={k: v for k, v in sample.items() if k != names[robot.order]})
    assert without["effort_rate"] is None and worst(without["effort"], found["effort"]) < 1e-12
    state = {"motor_position": found["motor_position"].tolist(), "motor_velocity": found["motor_velocity"].tolist(),
             "effort": found["effort"].tolist()}
    assert worst(question(robot, "forward", motion[:2], sample=state)["acceleration"], motion[2]) < 1e-8
    with pytest.raises(InputError, match="motors is missing"):
        question(robot, "forward", motion[:2])
    matrix = question(robot, "matrix", motion[:2], sample=state)
    assert worst(matrix["mass_matrix"], oracle.mass_matrix(x)) < 1e-9 and matrix["coordinates"][-1] == "motor of joint4"


def test_motor_torques_of_a_loop_with_elastic_joints_satisfy_motor_equations():
    """Motor torque is load plus rotor inertia times acceleration; load is stiffness times deflection."""
    drive, stiffness = {"gear_ratio": 50.0, "rotor_inertia": 1.0e-5}, 300.0
    file = pytest.importorskip("yaml").safe_load((ROOT / "urdf" / "five_bar.robot.yaml").read_text())
    file |= {"elastic_joints": {"left_motor": {"stiffness": stiffness}}, "drives": {"left_motor": drive}}
    robot, rigid = load(ROOT / "urdf" / "five_bar.urdf", file), loop_robot("five_bar")[0]
    motion = 0.1 * np.random.default_rng(0).normal(size=(robot.order + 1, robot.n))
    motion[0] += robot.home_motion[0]
    sample = dict(zip(FIELDS, motion.tolist()))
    found = question(robot, "motors", motion[:2], sample=sample)
    left, inertia = robot.joint_names.index("left_motor"), drive["rotor_inertia"] * drive["gear_ratio"]**2
    columns = [rigid.joint_names.index(name) for name in robot.joint_names]
    load_alone = rigid.inverse_dynamics(*motion[:3, columns])[columns]
    assert worst(found["load"], load_alone) < 1e-10
    assert worst(found["deflection"], load_alone[[left]] / stiffness) < 1e-10
    assert worst(found["effort"][left], load_alone[left] + inertia * found["motor_acceleration"][0]) < 1e-10
    assert worst(found["effort_rate"], question(robot, "torque", motion[:2], sample=sample)["effort_rate"]) < 1e-12
    without = question(robot, "motors", motion[:2], sample={k: v for k, v in sample.items() if k != FIELDS[robot.order]})
    assert without["effort_rate"] is None and worst(without["effort"], found["effort"]) < 1e-12


def test_joint_with_negligible_stiffness_is_passive():
    """Such a joint is modelled as docs/systems.md describes. Its torque is zero and its acceleration matches Pinocchio.
    """
    file = ROOT / "urdf" / "stanford.urdf"
    robot = load(file, {"version": 1, "springs": {"joint5": {"stiffness": 1e-12}}}, backend="python")
    oracle, motion = PinocchioOracle(file, robot.tree), np.random.default_rng(5).uniform(-1.0, 1.0, (3, robot.n))
    torque = question(robot, "torque", motion)["effort"]
    found = question(robot, "forward", motion[:2], sample={"effort": torque.tolist()})["acceleration"]
    assert abs(torque[4]) < 1e-11 and worst(np.delete(found, 4), np.delete(motion[2], 4)) < 1e-9
    assert worst(oracle.torque(*motion[:2], found, {}), torque) < 1e-9


@pytest.mark.parametrize("name", MACHINES)
def test_platform_poses_and_forces_match_legs_and_platform_as_free_bodies(name):
    """Poses are converted both ways; the oracle for forces joins free bodies by Lagrange multipliers."""
    machine = MACHINES[name]()
    robot = machine.robot(backend="python")
    rng = np.random.default_rng(3)
    motion = robot.home_motion[0] + 0.02 * rng.normal(size=robot.n), *rng.uniform(-0.3, 0.3, (3, robot.n))
    found = question(robot, "platform", motion)
    six = {key: found[key].tolist() for key in ("twist", "platform_acceleration", "platform_jerk")}
    platform = dict(zip(("velocity", "acceleration", "jerk"), six.values()), position=found["pose"][:3].tolist(),
                    orientation=found["pose"][3:].tolist())
    back = question(robot, "platform-joints", platform=[platform])
    for key, given in zip(("position", "velocity", "acceleration", "jerk"), motion):
        assert worst(back[key], given) < 1e-9
    legs = question(robot, "loops", motion)
    assert worst(legs["all_jerks"], back["all_jerks"]) < 1e-8 and legs["all_joints"] == back["all_joints"]
    names = [name for name in robot.tree.joint_names if name in (*robot.joint_names, *robot.passive_joints)]
    columns = [legs["all_joints"].index(name) for name in names]
    oracle = PlatformOracle(machine, names)
    tau, gap = oracle.forces([legs[key][columns] for key in ("all_positions", "all_velocities", "all_accelerations")],
                             robot.platform_motion(*motion))
    assert gap < 1e-9 and worst(question(robot, "torque", motion)["effort"], tau) < 1e-8
    point = question(robot, "kinematics", motion[:2], links=[robot.platforms[0]])
    assert worst(point["pose"][0], found["pose"]) < 1e-12 and worst(point["twist"][0], found["twist"]) < 1e-10


# --- rejected requests -----------------------------------------------------------------------------------------------------


def kind(name):
    return load(ROOT / "urdf" / f"{name}.urdf", ROOT / "urdf" / f"{name}.robot.yaml", backend="python")


@pytest.mark.parametrize(("name", "asked", "words"), [
    ("stanford", "loops", "robot 'stanford' is a tree on a fixed base; this is for robots with loops"),
    ("five_bar", "motors", "motors of elastic joints: robot 'five_bar' is a robot on a fixed base with loops; this is for"),
    ("five_bar", "floating", "a base that moves: robot 'five_bar' has a fixed base"),
    ("branched", "regressor", "robot 'branched' has a moving base"),
    ("hua_arm", "torque", "3 derivatives of q are given; 5 decide the torque rates of robot 'hua_arm' with joint3 elastic"),
    ("hua_arm", "forward", "motors is missing: springs pull by where their motors are"),
    ("five_bar", "platform", "a platform: robot 'five_bar' is a robot on a fixed base with loops")])
def test_requests_without_an_answer_are_rejected_with_the_reason(name, asked, words):
    robot = kind(name)
    with pytest.raises(InputError) as error:
        question(robot, asked, robot.home_motion[:2])
    assert words in str(error.value)


@pytest.mark.parametrize(("name", "more", "words"), [
    ("stanford", {"base": [{}]}, "base is given, but robot 'stanford' (tree on a fixed base) has a fixed base here"),
    ("stanford", {"guess": {"joint_names": ["joint1"], "position": [0.0]}}, "(tree on a fixed base) has no closed loops"),
    ("five_bar", {"guess": {"joint_names": ["left_elbow"], "position": [0.0]}}, "guess lacks 'left_motor', 'right_motor'"),
    ("five_bar", {"guess": {"joint_names": ["left_elbow"]}}, "guess.position has shape (0,); (1,) is needed"),
    ("five_bar", {"guess": {"platform": [{}]}}, "guess.joint_names and guess.position is needed"),
    ("stewart", {"guess": {"platform": [{}, {}]}}, "guess.platform has 2 poses; one is needed"),
    ("stewart", {"guess": {"joint_names": ["slide1"], "position": [0.0]}}, "guess lacks")])
def test_requests_for_another_kind_of_robot_are_rejected(name, more, words):
    robot = kind(name)
    with pytest.raises(InputError) as error:
        question(robot, "torque", robot.home_motion[:2], **more)
    assert words in str(error.value)


def test_points_without_links_and_missing_platforms_are_rejected():
    robot = kind("stanford")
    with pytest.raises(InputError, match="points has 1 entries, links 0; one for each of links is needed, or none"):
        question(robot, "kinematics", robot.home_motion[:2], points=[[0, 0, 0]])
    with pytest.raises(InputError, match="platform is empty"):
        question(kind("stewart"), "platform-joints")
    assert len(question(robot, "kinematics", robot.home_motion[:2])["links"]) == len(robot.model.frames)


def test_guess_selects_the_assembly_mode_of_a_loop():
    """The other mode of the five-bar has its elbows mirrored about the line from motor to tip."""
    robot = kind("five_bar")
    q = robot.home_motion[0]
    one = question(robot, "loops", (q,))["all_positions"]
    names, other = robot.tree.joint_names, one.copy()
    other[names.index("left_elbow")] *= -1.0
    try:
        poses = robot.close(q, guess=other)
    except InputError:
        pytest.skip("no second branch is near")
    guess = {"joint_names": list(names), "position": other.tolist()}
    assert worst(question(robot, "loops", (q,), guess=guess)["all_positions"], poses) < 1e-12


def test_fingerprints_distinguish_robots():
    """Loops and a stiffness change the fingerprint; equal robots have the same."""
    found = [kind(name).model_id for name in ("five_bar", "five_bar", "stewart", "hua_arm", "branched", "seven_r")]
    assert found[0] == found[1] and len(set(found)) == 5
    tree = kind("five_bar").tree
    assert tree.model_id == tree.model_id != found[0]
    content = {"version": 1, "elastic_joints": {"joint3": {"stiffness": 100.0}}, "drives": {"joint3": {"rotor_inertia": 0.1}}}
    ids = set()
    for stiffness in (100.0, 100.0000001):
        content["elastic_joints"]["joint3"]["stiffness"] = stiffness
        ids.add(load(ROOT / "urdf" / "hua_arm.urdf", content, backend="python").model_id)
    assert len(ids) == 2
    assert not kind("stewart").is_fixed_tree and not kind("branched").is_fixed_tree
