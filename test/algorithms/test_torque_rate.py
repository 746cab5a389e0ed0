"""Torque and torque rate against Pinocchio, finite differences and complex steps, for all recursions and backends."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from rnea_ros import JointDynamics, Loads, ModelError
from rnea_ros.algebra.vectors import shift
from rnea_ros.algorithms import component_rate, torque_rate
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import OBSERVED, PinocchioOracle, along, deviation, difference, example_urdfs, worst
from support.robots import arm, random_state, random_tree, seeds

TEXTS = {"torque_rate": torque_rate.torque_and_rate, "component_rate": component_rate.torque_and_rate}
TOLERANCE = 1e-11  # 1e-9 is required; about 1e-13 is reached
SEEDS = seeds(50)
FEW = (3, 11, 26, 71, 160)  # with branches, merged links, mimic and planar joints, intermediate frames
EXAMPLES = {"/".join(path.with_suffix("").parts[path.parts.index("robots") + 1:]): path for path in example_urdfs()}
NOT_A_ROBOT = {"ur_description/urdf/ur3"}  # its <robot> is empty


each_text = pytest.mark.parametrize("text", TEXTS)


@lru_cache(100)
def pair(seed):
    """Return a random tree and its oracle."""
    tree = random_tree(seed)
    gravity = (0.0, 0.0, -9.81) if seed % 2 else np.random.default_rng(seed).normal(size=3) * 8.0
    robot = TreeDynamics.from_urdf(tree.text(), gravity=gravity)
    return robot, PinocchioOracle(tree.plain(), robot)


def motion(robot, seed=0):
    return random_state(np.random.default_rng(seed), robot.n)


# ---------------------------------------------------------------------- Pinocchio

@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - NOT_A_ROBOT))
def test_torque_and_rate_of_example_robots_match_pinocchio(name):
    robot = TreeDynamics.from_urdf(EXAMPLES[name])
    oracle = PinocchioOracle(EXAMPLES[name], robot)
    states = [motion(robot, seed) for seed in range(5)]
    tau, rate = robot.torque_and_rate(*(np.array(block).reshape(5, robot.n) for block in zip(*states)))
    for k, state in enumerate(states):
        expected = oracle.torque_and_rate(*state)
        assert worst(tau[k], expected[0]) < TOLERANCE
        assert worst(rate[k], expected[1]) < TOLERANCE


def test_every_example_robot_is_covered():
    assert len(EXAMPLES) == len(example_urdfs())


def test_excluded_example_file_is_rejected():
    for name in NOT_A_ROBOT:
        with pytest.raises(ModelError, match="no <link>"):
            TreeDynamics.from_urdf(EXAMPLES[name])


def test_torque_and_rate_of_random_trees_match_pinocchio():
    for seed in SEEDS:
        robot, oracle = pair(seed)
        for k in range(3):
            state = motion(robot, 1000 * seed + k)
            for ours, truth in zip(robot.torque_and_rate(*state), oracle.torque_and_rate(*state)):
                assert worst(ours, truth) < TOLERANCE, f"seed {seed}"


@each_text
def test_each_recursion_on_plain_numbers_matches_pinocchio(text):
    """The recursions are evaluated without kernels."""
    for seed in SEEDS[:60]:
        robot, oracle = pair(seed)
        state = motion(robot, seed)
        result = TEXTS[text](robot.model, *state, robot.gravity_vector)
        for ours, truth in zip(result, oracle.torque_and_rate(*state)):
            assert worst(ours, truth) < TOLERANCE, f"seed {seed}"


def test_recursions_agree_with_all_loads_and_joint_dynamics():
    for seed in SEEDS[:30]:
        model, rng = pair(seed)[0].model, np.random.default_rng(seed)
        terms = {link.joint: JointDynamics(0.1, 3.0, 0.4, 0.2, 0.7, 0.3) for link in model.links if link.joint}
        k, j = rng.integers(len(model.links), size=2)
        carried = shift(np.diag([0.3, 0.4, 0.5]), np.array([0.1, 0.2, 0.3]), 2.0, np.array([1.0, 0.0, 2.0]))
        options = {"wrenches": {k: rng.normal(size=6), j: rng.normal(size=6)}, "wrench_rates": {k: rng.normal(size=6)},
                   "inertias": {j: (2.0, carried[1], carried[0])}, "offsets": bool(seed % 2)}
        state = random_state(rng, model.n)
        gravity = np.array([1.0, 2.0, -9.0])
        papers, cheaper = (text(model.with_joint_dynamics(terms), *state, gravity, **options) for text in TEXTS.values())
        for a, b in zip(papers, cheaper):
            assert worst(a, b) < 1e-12, f"seed {seed}"


def test_random_trees_contain_every_feature():
    trees = [random_tree(seed) for seed in SEEDS]
    joints = [joint for tree in trees for joint in tree.joints]
    assert {joint.kind for joint in joints} == {"revolute", "continuous", "prismatic", "fixed", "planar"}
    mimics = [joint.mimic for joint in joints if joint.mimic]
    assert any("multiplier" not in m for m in mimics) and any("offset" not in m for m in mimics)
    assert any(float(m.get("multiplier", 1)) < 0 for m in mimics)
    followers = [{joint.name for joint in tree.joints if joint.mimic} for tree in trees]
    assert any(joint.mimic and joint.mimic["joint"] in names for tree, names in zip(trees, followers) for joint in tree.joints)
    assert any(joint.axis is None and joint.kind in ("revolute", "prismatic") for joint in joints)
    assert any(joint.xyz is None for joint in joints) and any(joint.rpy is None for joint in joints)
    assert any(abs(np.linalg.norm(joint.axis) - 1.0) > 0.5 for joint in joints if joint.axis)
    assert any(len({joint.parent for joint in tree.joints}) < len(tree.joints) for tree in trees), "no branch"
    assert any(not link.inertial for tree in trees for link in tree.links)
    names = "".join(link.name for tree in trees for link in tree.links)
    assert all(letter in names for letter in "<&\"'β関{/ ")
    links = [link for seed in SEEDS for link in pair(seed)[0].model.links]
    assert any(link.name.endswith("/frame") for link in links), "no nearly parallel axes"
    assert {link.alpha for link in links} >= {0.0, np.pi}, "no parallel or anti-parallel axes"
    assert any(link.gamma for link in links)


@pytest.mark.parametrize("seed", FEW)
def test_every_stage_of_the_recursion_matches_pinocchio(seed):
    """Quantities are compared link by link; rates with differences of Pinocchio's values."""
    robot, oracle = pair(seed)
    state = motion(robot, seed)
    moved, forces = robot.recursion(*state)
    for k, link in enumerate(robot.model.links):
        if not link.joint or link.name not in robot.model.frames:  # a frame between, or a link inside a planar joint
            continue
        frame = robot.model.frames[link.name]
        origin = -frame.R.T @ frame.P  # of our frame, in the URDF's

        def observed(t, name=link.name, origin=origin):
            return oracle.at(name, origin, *along(*state, t))

        R = oracle.placement(link.name, state[0])[0] @ frame.R.T
        values, rates = observed(0.0).reshape(-1, 3) @ R, difference(observed).reshape(-1, 3) @ R
        ours = {"w": moved.w, "wd": moved.wd, "a": moved.a, "f": forces.f, "n": forces.n}
        ours_rate = {"w": moved.wd, "wd": moved.wdd, "a": moved.j, "f": forces.fd, "n": forces.nd}
        for row, name in enumerate(OBSERVED):
            assert deviation(ours[name][k], values[row]) < 1e-12, (name, link.name)
            assert deviation(ours_rate[name][k], rates[row]) < 1e-8, ("rate of", name, link.name)


@pytest.mark.parametrize("seed", FEW)
def test_gravity_torque_and_its_rate_match_pinocchio(seed):
    robot, oracle = pair(seed)
    state = motion(robot, seed)
    result = robot.dynamics(*state)
    for ours, truth in zip(result, (*oracle.torque_and_rate(*state), *oracle.gravity_and_rate(*state[:2]))):
        assert worst(ours, truth) < TOLERANCE
    assert worst(robot.gravity(state[0]), result.gravity) < 1e-14


@pytest.mark.parametrize("seed", FEW)
def test_torque_and_rate_under_a_wrench_on_every_link_match_pinocchio(seed):
    """Links merged by fixed joints are included; the wrench is in the frame of the URDF link."""
    robot, oracle = pair(seed)
    state, rng = motion(robot, seed), np.random.default_rng(seed)
    for link in robot.model.frames:
        wrench, rate = rng.normal(size=(2, 6))

        def torque(t, link=link, wrench=wrench, rate=rate):
            return oracle.torque(*along(*state, t), {link: wrench + rate * t})

        tau, tau_rate = robot.torque_and_rate(*state, loads=Loads({link: wrench}, {link: rate}))
        assert worst(tau, torque(0.0)) < TOLERANCE, link
        assert worst(tau_rate, difference(torque)) < 1e-8, link


@pytest.mark.parametrize("seed", FEW)
def test_wrenches_on_several_links_superpose(seed):
    """Links of the same body are included."""
    robot, oracle = pair(seed)
    state, rng = motion(robot), np.random.default_rng(0)
    wrenches = {link: rng.normal(size=6) for link in robot.model.frames}
    expected = oracle.torque(*state[:3], wrenches)
    assert worst(robot.torque_and_rate(*state, loads=Loads(wrenches))[0], expected) < TOLERANCE
    assert worst(robot.inverse_dynamics(*state[:3], loads=Loads(wrenches)), expected) < TOLERANCE


def test_wrench_on_a_link_reduces_the_force_of_its_drive():
    """Sign convention: an upward force on a vertical slider reduces its drive force."""
    lift = TreeDynamics.from_urdf(arm({"kind": "prismatic", "axis": (0, 0, 1)}))
    still = np.zeros(1)
    assert lift.torque_and_rate(*[still] * 4)[0] == pytest.approx(1.5 * 9.81)
    up = {"l1": (0, 0, 10.0, 0, 0, 0)}
    tau, rate = lift.torque_and_rate(*[still] * 4, loads=Loads(up, {"l1": (0, 0, 3.0, 0, 0, 0)}))
    assert tau == pytest.approx(1.5 * 9.81 - 10.0)
    assert rate == pytest.approx(-3.0)


@pytest.mark.parametrize("seed", FEW)
def test_payload_equals_a_body_fixed_to_the_link(seed):
    robot, _ = pair(seed)
    state, rng = motion(robot, seed), np.random.default_rng(seed)
    com, V = rng.normal(size=3) * 0.3, np.linalg.qr(rng.normal(size=(3, 3)))[0]
    inertia = V @ np.diag([0.02, 0.03, 0.04]) @ V.T
    names = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia[np.triu_indices(3)]))
    body = (f'<link name="PAYLOAD"><inertial><origin xyz="{" ".join(map(repr, com.tolist()))}"/><mass value="2.5"/>'
            f'<inertia {" ".join(f"{k}={chr(34)}{float(v)!r}{chr(34)}" for k, v in names.items())}/></inertial></link>')
    for link in random_tree(seed).links:
        tree = random_tree(seed)
        carrier = link.text().split("name=")[1].split(">")[0].rstrip("/")  # quoted and escaped as in the file
        joint = f'<joint name="PAYLOAD" type="fixed"><parent link={carrier}/><child link="PAYLOAD"/></joint>'
        loaded = TreeDynamics.from_urdf(tree.text(), gravity=robot.gravity_vector).with_payload(link.name, 2.5, com, inertia)
        oracle = PinocchioOracle(tree.plain().replace("</robot>", body + joint + "</robot>"), robot)
        for ours, truth in zip(loaded.torque_and_rate(*state), oracle.torque_and_rate(*state)):
            assert worst(ours, truth) < TOLERANCE, link.name
        assert worst(loaded.mass_matrix(state[0]), oracle.mass_matrix(state[0])) < TOLERANCE
        assert worst(loaded.gravity(state[0]), oracle.gravity_and_rate(*state[:2])[0]) < TOLERANCE
        assert loaded.total_mass == pytest.approx(oracle.total_mass(), rel=1e-14)


# ---------------------------------------------------------------------- rate

@each_text
@pytest.mark.parametrize("seed", FEW)
def test_torque_rate_matches_complex_steps_of_the_recursion(seed, text):
    """The imaginary part of tau(t + ih) is the derivative without truncation or cancellation."""
    robot, _ = pair(seed)
    terms = {link.joint: JointDynamics(0.1, 3.0, 0.4, 0.2, 0.7, 0.3) for link in robot.model.links if link.joint}
    model, rng, h = robot.model.with_joint_dynamics(terms), np.random.default_rng(seed), 1e-30
    q, qd, qdd, qddd = random_state(rng, robot.n)
    wrench, rate = rng.normal(size=(2, 6))
    k = len(model.links) - 1
    step = (q + 1j * h * qd, qd + 1j * h * qdd, qdd + 1j * h * qddd, qddd)
    stepped = TEXTS[text](model, *step, robot.gravity_vector, wrenches={k: wrench + 1j * h * rate})[0]
    tau, tau_rate = TEXTS[text](model, q, qd, qdd, qddd, robot.gravity_vector, wrenches={k: wrench}, wrench_rates={k: rate})
    assert worst(np.real(stepped), tau) < 1e-13
    assert worst(tau_rate, np.imag(stepped) / h) < 1e-12


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_rotor_inertia_and_friction_add_their_torques_and_rates(backend):
    """Torques are compared with their formulas, rates with differences."""
    term = JointDynamics(rotor_inertia=2e-3, gear_ratio=-50.0, coulomb=1.5, viscous=0.8, offset=0.3, smoothing=0.2)
    text = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0), "kind": "prismatic"}, {"xyz": (0, 0.1, 0.4)})
    bare = TreeDynamics.from_urdf(text, backend=backend)
    robot = TreeDynamics.from_urdf(text, joint_dynamics={"j2": term}, backend=backend)
    state = motion(robot)
    qd, qdd = state[1][1], state[2][1]
    expected = 2e-3 * 2500.0 * qdd + 0.8 * qd + 1.5 * np.tanh(qd / 0.2) + 0.3
    extra = robot.torque_and_rate(*state)[0] - bare.torque_and_rate(*state)[0]
    assert extra == pytest.approx([0.0, expected, 0.0], abs=1e-13)
    rate = difference(lambda t: robot.inverse_dynamics(*along(*state, t)))
    assert worst(robot.torque_and_rate(*state)[1], rate) < 1e-9
    M = bare.mass_matrix(state[0]) + np.diag([0.0, 5.0, 0.0])
    assert worst(robot.mass_matrix(state[0]), M) < 1e-14
    assert worst(robot.gravity(state[0]), bare.gravity(state[0])) < 1e-14
    assert worst(robot.dynamics(*state).gravity_rate, bare.dynamics(*state).gravity_rate) < 1e-12


def test_joint_dynamics_of_a_mimic_joint_act_through_its_multiplier():
    mimic = {"joint": "j1", "multiplier": "-2", "offset": "0.4"}
    text = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "mimic": mimic})
    term = JointDynamics(rotor_inertia=0.5, viscous=0.8, offset=0.25)
    bare, robot = TreeDynamics.from_urdf(text), TreeDynamics.from_urdf(text, joint_dynamics={"j2": term})
    state = motion(robot)
    extra = np.subtract(robot.torque_and_rate(*state), bare.torque_and_rate(*state))
    _, qd, qdd, qddd = state
    assert extra[0] == pytest.approx(4.0 * (0.5 * qdd + 0.8 * qd) - 2.0 * 0.25)
    assert extra[1] == pytest.approx(4.0 * (0.5 * qddd + 0.8 * qdd))


def test_dynamics_tags_of_the_urdf_are_used_if_requested():
    text = arm({"axis": (0, 0, 1)}).replace("</joint>", '<dynamics damping="0.7" friction="0.4"/></joint>')
    state = (np.zeros(1), np.ones(1), np.full(1, 2.0), np.zeros(1))
    bare, rubbing = TreeDynamics.from_urdf(text), TreeDynamics.from_urdf(text, friction=True)
    plain = TreeDynamics.from_urdf(arm({"axis": (0, 0, 1)}))
    assert worst(bare.torque_and_rate(*state)[0], plain.torque_and_rate(*state)[0]) == 0.0
    extra = np.subtract(rubbing.torque_and_rate(*state), bare.torque_and_rate(*state))
    assert extra[:, 0] == pytest.approx([0.7 + 0.4, 2.0 * 0.7])


# ---------------------------------------------------------------------- backends

@pytest.mark.parametrize("seed", FEW)
def test_backends_agree_on_torque_and_rate(seed):
    text = random_tree(seed).text()
    robots = {backend: TreeDynamics.from_urdf(text, backend=backend) for backend in ("llvm", "python", "reference")}
    robots = {backend: robot.with_payload(next(iter(robot.model.frames)), 1.0, (0.1, 0.2, 0.3))
              for backend, robot in robots.items()}
    state = motion(robots["llvm"], seed)
    load = {next(reversed(robots["llvm"].model.frames)): np.arange(6.0)}
    for call in (lambda r: r.torque_and_rate(*state, loads=Loads(load, load)), lambda r: r.dynamics(*state),
                 lambda r: (r.inverse_dynamics(*state[:3]), r.mass_matrix(state[0]), r.gravity(state[0]))):
        llvm, python, reference = (call(robot) for robot in robots.values())
        for a, b, c in zip(llvm, python, reference):
            assert worst(b, c) < 1e-12
            assert worst(a, b) < 1e-13, "the same operations, but machine code rounds a product and a sum once where it can"
