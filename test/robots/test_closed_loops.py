"""Closed loops against published values, Pinocchio with Lagrange multipliers, closed forms and invariants."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pinocchio")

import pinocchio as pin

from rnea_ros import InputError, JointDynamics, Loads, ModelError, Robot, load
from rnea_ros.algorithms import closed_loops
from rnea_ros.algorithms.kinematics import base_poses, within
from support.machines import LoopOracle, Mechanism, bennett, polygon, random_body
from support.oracles import deviation, difference
from support.robots import seeds

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = json.loads((ROOT / "test" / "golden" / "golden.json").read_text())["five_bar_khalil_sec4"]
FIVE_BAR = (ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml")
PALLETISER = (ROOT / "urdf" / "palletiser.urdf", ROOT / "urdf" / "palletiser.robot.yaml")
FOUR_BAR = ((0.0, 0.0), (0.1, 0.25), (0.55, 0.4), (0.5, 0.0))  # corners in x z
SLIDER = ((0.0, 0.0), (0.12, 0.16), (0.55, 0.05), (0.55, 0.05))  # crank, rod, piston


def declaration(path):
    """Return the loops of a robot file."""
    return {"loops": pytest.importorskip("yaml").safe_load(Path(path).read_text())["loops"]}


@pytest.fixture(scope="module")
def five_bar():
    return load(*FIVE_BAR)


@pytest.fixture(scope="module")
def palletiser():
    return load(*PALLETISER)


def four_bar(*cuts, **options):
    urdf, loops = polygon(FOUR_BAR).cut_at(*(cuts or ("j4",)), active=["j1"])
    return load(urdf, loops, **options), urdf, loops


def along(motion, t):
    """Polynomial motion: value and three derivatives of a + b t + c t^2 / 2 + d t^3 / 6, rows of `motion`."""
    a, b, c, d = motion
    return a + b * t + c * t**2 / 2 + d * t**3 / 6, b + c * t + d * t**2 / 2, c + d * t, d


# --- golden and closed forms ------------------------------------------------------------------------------------------


def test_five_bar_motion_and_torques_equal_published_values(five_bar):
    motion = five_bar.motion(GOLDEN["qa"], GOLDEN["qa_d"], GOLDEN["qa_dd"], [0.0, 0.0])
    assert five_bar.tree.joint_names == ("left_motor", "left_elbow", "right_motor", "right_elbow")
    for ours, name in ((motion.q, "q_tree"), (motion.qd, "qd_tree"), (motion.qdd, "qdd_tree")):
        assert deviation(ours, GOLDEN[name]) < 1e-12
    assert deviation(motion.G[[1, 3]], GOLDEN["dqp_dqa"]) < 1e-12
    tau = five_bar.tree.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    assert deviation(tau, GOLDEN["Gamma_tree"]) < 1e-12
    assert deviation(five_bar.inverse_dynamics(GOLDEN["qa"], GOLDEN["qa_d"], GOLDEN["qa_dd"]), GOLDEN["Gamma_c"]) < 1e-12


def test_parallelograms_keep_the_palletisers_wrist_level(palletiser):
    """Opposite sides stay parallel: the map from motors to joints is constant and known at every pose."""
    one, two, four, three = np.eye(4)
    assert palletiser.joint_names == ("joint1", "joint2", "joint4", "joint3")
    expected = {"joint1": one, "joint2": two, "joint3": three, "joint4": four, "elbow": three - two, "wrist_joint": -three,
                "levelling_plate": -two, "levelling_rod_joint": two, "fore_rod_joint": three, "drive_rod_joint": two - three}
    G = np.array([expected[name] for name in palletiser.tree.joint_names])
    qa = np.array([[0.3, 0.9, 1.0, -0.4], [-1.0, -0.5, 0.0, 0.8]])
    motion = palletiser.motion(qa, *np.random.default_rng(1).normal(size=(3, 2, 4)))
    assert np.abs(motion.G - G).max() < 1e-12 and np.abs(motion.Gd).max() < 1e-12
    assert np.abs(motion.q - qa @ G.T).max() < 1e-12


def test_slider_crank_position_and_derivatives_match_the_closed_form():
    """Piston at r cos + sqrt(l^2 - (r sin + offset)^2), by complex step of the formula; velocity, acceleration, jerk."""
    urdf, loops = polygon(SLIDER, sliders=(4,)).cut_at("j2", active=["j1"])
    robot = load(urdf, loops)
    crank, rod = np.hypot(0.12, 0.16), np.hypot(0.43, 0.11)
    phase = np.arctan2(-0.16, 0.12)  # a positive turn about y takes z to x

    def piston(q):
        return crank * np.cos(phase + q) + np.sqrt(rod**2 - (crank * np.sin(phase + q) + 0.05) ** 2) - 0.55

    motion = np.array([[0.7], [1.3], [-0.4], [2.0]])
    slide = robot.tree.joint_names.index("j4")
    result = robot.motion(*along(motion, 0.0))
    sign = np.sign(result.q[slide] * piston(0.7))  # the tree may run through the slide the other way round
    assert sign * result.q[slide] == pytest.approx(piston(0.7), abs=1e-13)
    assert sign * result.qd[slide] == pytest.approx(piston(0.7 + 1.3e-30j).imag * 1e30, rel=1e-12)
    for order, ours in ((1, result.qdd), (2, result.qddd)):
        def lower(t, order=order):
            return robot.motion(*along(motion, t))[order][slide]
        assert ours[slide] == pytest.approx(difference(lower, 1e-2), rel=1e-9)


def test_angles_of_bennett_linkage_match_the_closed_form():
    """Five equations of rank two: a loop of four skew axes, whose angles have a closed form."""
    machine, K = bennett(1.0)
    for cut in ("j1", "j3", "j4"):
        urdf, loops = machine.cut_at(cut, active=["j2"])
        robot = load(urdf, loops)
        theta2 = 2.0 * np.arctan(K / np.tan(0.5)) + 0.6
        theta1 = 2.0 * np.arctan(K / np.tan(0.5 * theta2))
        q = dict(zip(robot.tree.joint_names, robot.close([0.6]), strict=True))
        for name, value in {"j1": theta1 - 1.0, "j3": -(theta1 - 1.0), "j4": -0.6}.items():
            if name != cut:
                assert abs(np.sin(0.5 * (abs(q[name]) - abs(value)))) < 1e-10, name


# --- Pinocchio with multipliers ---------------------------------------------------------------------------------------


def spatial_machine():
    urdf, loops = bennett(1.0)[0].cut_at("j4", active=["j2"])
    return load(urdf, loops), urdf, loops


def slider(cut):
    urdf, loops = polygon(SLIDER, sliders=(4,)).cut_at(cut, active=["j1"])
    return load(urdf, loops), urdf, loops


def from_files(files):
    robot, loops = load(*files), declaration(files[1])
    loops["loops"]["active"] = list(robot.joint_names)  # the order of the oracle's columns
    return robot, files[0].read_text(), loops


MACHINES = {"four_bar": four_bar, "bennett": spatial_machine, "five_bar": lambda: from_files(FIVE_BAR),
            "palletiser": lambda: from_files(PALLETISER), "slide in the tree": lambda: slider("j2"),
            "slide cut": lambda: slider("j4")}
POSES = {"five_bar": [1.9, 1.0], "palletiser": [0.4, 0.5, 1.0, -0.3]}  # joint1, joint2, joint4, joint3


@pytest.mark.parametrize("name", MACHINES)
def test_inverse_and_forward_dynamics_match_pinocchio_with_multipliers(name):
    robot, urdf, loops = MACHINES[name]()
    oracle = LoopOracle(urdf, loops, robot.tree.joint_names)
    rng = np.random.default_rng(2)
    for _ in range(3):
        N = len(robot.joint_names)
        qa, qad, qadd = POSES.get(name, np.zeros(N)) + 0.3 * rng.normal(size=N), *rng.normal(size=(2, N))
        motion = robot.motion(qa, qad, qadd, np.zeros(N))
        tau, qdd = oracle.inverse(motion.q, motion.qd, qadd)
        assert deviation(motion.qdd, qdd) < 1e-10
        assert deviation(robot.inverse_dynamics(qa, qad, qadd), tau) < 1e-10
        push = 5.0 * rng.normal(size=N)
        expected = oracle.forward(motion.q, motion.qd, push)[oracle.active]
        assert deviation(robot.forward_dynamics(qa, qad, push), expected) < 1e-9
        A = robot.mass_matrix(qa)
        assert deviation(A @ qadd + robot.bias(qa, qad), tau) < 1e-10
        assert deviation(A, A.T) < 1e-13 and np.linalg.eigvalsh(A)[0] > 0.0


@pytest.mark.parametrize("name", MACHINES)
def test_torque_rates_and_joint_derivatives_match_differences_along_the_motion(name):
    robot = MACHINES[name]()[0]
    rng = np.random.default_rng(3)
    N = len(robot.joint_names)
    motion = np.array([POSES.get(name, np.zeros(N)), *rng.normal(size=(3, N)) * [[1.0], [2.0], [5.0]]])
    state = robot.motion(*along(motion, 0.0))
    tau_rate = robot.torque_and_rate(*along(motion, 0.0))[1]
    h = 2e-3
    assert deviation(difference(lambda t: robot.torque_and_rate(*along(motion, t))[0], h), tau_rate) < 1e-9
    for order in range(3):
        def lower(t, order=order):
            return robot.motion(*along(motion, t))[order]
        assert deviation(difference(lower, h), state[order + 1]) < 1e-9
    assert deviation(difference(lambda t: robot.motion(*along(motion, t)).G, h), state.Gd) < 1e-9


# --- characteristic lengths -------------------------------------------------------------------------------------------


def chain(rng, joints):
    """Return a loop of joints (kind, point, axis) with bodies between them, and its size, 1e-3 m to 1e3 m."""
    L, machine = 10.0 ** rng.uniform(-3.0, 3.0), Mechanism()
    names = ["base", *(f"b{k}" for k in range(1, len(joints))), "base"]
    for k, (kind, point, axis) in enumerate(joints):
        machine.joints[f"j{k + 1}"] = (names[k], names[k + 1], kind, L * point, axis)
        if k:
            mass, centre, inertia = random_body(rng, point)
            machine.bodies[f"b{k}"] = mass, L * centre, L * L * inertia
    return machine, L


def plane(rng):
    """Return a random plane (3, 2), its normal, and two or more well separated directions in it."""
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    angles = rng.uniform(0.0, 2.0 * np.pi) + np.cumsum(rng.uniform(0.4, 1.2, 3))
    return Q[:, :2], Q[:, 2], [Q[:, :2] @ [np.cos(a), np.sin(a)] for a in angles]


def slides_in_a_plane(rng):
    E, _, along = plane(rng)
    return [("prismatic", E @ rng.uniform(-1, 1, 2) * rng.integers(2), direction) for direction in along]


def slides_and_an_idle_pin(rng):
    """Return slides and a pin that the loop never turns; only the slides move the cut joint if it is the pin."""
    E, normal, along = plane(rng)
    pin, joints = E @ rng.uniform(-1, 1, 2), slides_in_a_plane(rng)
    joints = [("prismatic", pin if rng.integers(2) else point, d) for (_, point, _), d in zip(joints, along)]
    joints.insert(rng.integers(4), ("revolute", pin, normal))
    return joints


def slides_in_space(rng):
    return [("prismatic", point, axis / np.linalg.norm(axis)) for point, axis in rng.normal(size=(4, 2, 3))]


def double_slider(rng):
    """Return the Scott Russell mechanism: a rod with its ends on two slides."""
    E, normal, (one, two, _) = plane(rng)
    a, b = E @ rng.uniform(-1, 1, 2), E @ rng.uniform(-1, 1, 2)
    return [("prismatic", a, one), ("revolute", a, normal), ("revolute", b, normal), ("prismatic", b, two)]


def four_pins(rng):
    E, normal, _ = plane(rng)
    return [("revolute", E @ corner, normal) for corner in rng.uniform(-1, 1, (4, 2))]


LOOPS = (slides_in_a_plane, slides_and_an_idle_pin, slides_in_space, double_slider, four_pins)


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("joints", LOOPS)
def test_torques_of_loops_of_any_size_do_not_depend_on_the_cut_joint(joints, seed):
    """A loop of prismatic joints only has no lever arms that define a characteristic length."""
    rng = np.random.default_rng(seed)
    machine, L = chain(rng, joints(rng))
    idle = joints is slides_and_an_idle_pin
    active = str(rng.choice([name for name, joint in machine.joints.items() if not (idle and joint[2] == "revolute")]))
    size = L if machine.joints[active][2] == "prismatic" else 1.0
    found, motion = [], size * np.array([[0.002], [0.3], [1.0]])
    for cut in machine.joints:
        if cut != active:
            urdf, loops = machine.cut_at(cut, active=[active])
            robot = load(urdf, loops, backend="python")
            found.append(robot.inverse_dynamics(*motion))
    oracle, state = LoopOracle(urdf, loops, robot.tree.joint_names), robot.motion(*motion, [0.0])
    expected = oracle.inverse(state.q, state.qd, motion[2])[0]
    assert max(deviation(tau, found[0]) for tau in found) < 1e-8 and deviation(found[0], expected) < 1e-7


# --- laws -------------------------------------------------------------------------------------------------------------


def test_torque_and_rate_do_not_depend_on_the_cut_joint():
    motion = np.array([[0.3], [1.1], [-0.7], [3.0]])
    results = [four_bar(cut)[0].torque_and_rate(*motion) for cut in ("j2", "j3", "j4")]
    for other in results[1:]:
        assert deviation(other, results[0]) < 1e-12
    sliders = [slider(cut)[0].torque_and_rate(*motion) for cut in ("j2", "j3", "j4")]
    for other in sliders[1:]:
        assert deviation(other, sliders[0]) < 1e-12


def test_torque_and_rate_do_not_depend_on_the_type_of_a_cut_pin():
    """Two equations are enough in a planar loop; the others are redundant and change nothing."""
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j1"])
    expected = load(urdf, loops).torque_and_rate([0.3], [1.1], [-0.7], [3.0])
    for kind in ("spherical", "connect", "point_on_axis", "cylindrical"):
        loops["loops"]["cut_joints"]["j4"]["type"] = kind
        assert deviation(load(urdf, loops).torque_and_rate([0.3], [1.1], [-0.7], [3.0]), expected) < 1e-12


def test_cut_weld_behind_a_joint_gives_the_torques_of_a_cut_joint():
    """The last passive joint is cut as a revolute joint, or kept in the tree with its end welded to the ground."""
    expected = four_bar("j4")[0].torque_and_rate([0.3], [1.1], [-0.7], [3.0])
    machine = polygon(FOUR_BAR)
    machine.bodies["pad"] = (1e-9, np.array([0.5, 0.0, 0.0]), 1e-15 * np.eye(3))
    a, _b, *rest = machine.joints["j4"]
    machine.joints["j4"] = (a, "pad", *rest)
    machine.joints["weld"] = ("base", "pad", "fixed", [0.5, 0.0, 0.0], [0.0, 0.0, 1.0])
    for kind in ("fixed", "weld"):
        urdf, loops = machine.cut_at("weld", active=["j1"])
        loops["loops"]["cut_joints"]["weld"]["type"] = kind
        assert deviation(load(urdf, loops).torque_and_rate([0.3], [1.1], [-0.7], [3.0]), expected) < 1e-7


def test_cut_joint_types_constrain_the_directions_that_they_declare():
    """Small displacements along the free directions of each type leave the gap closed, the others open it."""
    for kind, free in (("fixed", ()), ("revolute", (5,)), ("prismatic", (2,)), ("cylindrical", (2, 5)), ("planar", (0, 1, 5)),
                       ("spherical", (3, 4, 5)), ("point_on_axis", (2, 3, 4, 5))):
        base = pin.SE3.Random()
        for k in range(6):
            step = base * pin.exp6(pin.Motion(0.2 * np.eye(6)[k]))
            gap = closed_loops.gap(kind, (base.rotation, base.translation), (step.rotation, step.translation))
            size = np.abs(np.array(gap, dtype=float)).max()
            assert size < 1e-12 if k in free else size == pytest.approx(0.2 if k < 3 else 2 * np.sin(0.1))


def test_motor_and_wrench_power_equals_the_energy_rate(five_bar):
    """dE/dt = tau . qad, with the energy of the mechanism by Pinocchio; a wrench on the tip adds its power."""
    motion = np.array([[1.9, 1.0], [0.7, -0.4], [0.5, 1.1], [2.0, -1.0]])
    body = LoopOracle(FIVE_BAR[0].read_text(), declaration(FIVE_BAR[1]), five_bar.tree.joint_names).body

    def energy(t):
        state = five_bar.motion(*along(motion, t))
        data = body.model.createData()
        kinetic = pin.computeKineticEnergy(body.model, data, state.q, state.qd)
        return kinetic + pin.computePotentialEnergy(body.model, data, state.q)

    tau = five_bar.inverse_dynamics(*along(motion, 0.0)[:3])
    assert tau @ motion[1] == pytest.approx(difference(energy, 1e-3), rel=1e-9)

    wrench = np.array([3.0, -1.0, 2.0, 0.3, 0.2, -0.5])
    pushed = five_bar.inverse_dynamics(*along(motion, 0.0)[:3], loads=Loads({"left_forearm": wrench}))
    state = five_bar.motion(*along(motion, 0.0))
    data = body.state(state.q, state.qd)
    _R, _p, _J, twist, _a = body.motion(data, body.model.getFrameId("left_forearm"))
    R = data.oMf[body.model.getFrameId("left_forearm")].rotation
    held = {"left_forearm": np.concatenate((R @ wrench[:3], R @ wrench[3:]))}
    assert deviation(five_bar.inverse_dynamics(*along(motion, 0.0)[:3], loads=Loads(world_wrenches=held)), pushed) < 1e-12
    assert (tau - pushed) @ motion[1] == pytest.approx((R @ wrench[:3]) @ twist[:3] + (R @ wrench[3:]) @ twist[3:], rel=1e-10)


def test_friction_rotor_inertia_and_payload_of_every_tree_joint_enter_the_motor_torque():
    """The motors provide the friction of passive joints, by virtual work."""
    terms = {"j1": JointDynamics(rotor_inertia=0.002, gear_ratio=20.0, viscous=0.3),
             "j2": JointDynamics(viscous=0.5, coulomb=0.4),
             "j3": JointDynamics(offset=0.7)}
    bare, urdf, loops = four_bar()
    robot = load(urdf, loops).with_joint_dynamics(terms)
    qa, qad, qadd, qaddd = np.array([[0.3], [1.1], [-0.7], [3.0]])
    motion = bare.motion(qa, qad, qadd, qaddd)
    qd, qdd = (dict(zip(bare.tree.joint_names, x, strict=True)) for x in (motion.qd, motion.qdd))
    G = dict(zip(bare.tree.joint_names, motion.G[:, 0], strict=True))
    extra = (0.8 * qdd["j1"] + 0.3 * qd["j1"] + G["j2"] * (0.5 * qd["j2"] + 0.4 * np.tanh(qd["j2"] / 1e-2)) + G["j3"] * 0.7)
    tau, tau_rate = robot.torque_and_rate(qa, qad, qadd, qaddd)
    assert tau - bare.inverse_dynamics(qa, qad, qadd) == pytest.approx(extra, rel=1e-12)
    rows = np.array([qa, qad, qadd, qaddd])
    assert deviation(difference(lambda t: robot.torque_and_rate(*along(rows, t))[0], 1e-4), tau_rate) < 1e-8

    carrying = robot.with_payload("b2", 2.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3))
    oracle = Robot(robot.tree.with_payload("b2", 2.0, (0.1, 0.0, 0.2), 0.01 * np.eye(3)), loops)
    assert deviation(carrying.torque_and_rate(*rows), oracle.torque_and_rate(*rows)) < 1e-13
    assert abs(carrying.inverse_dynamics(qa, qad, qadd) - tau) > 1.0
    unloaded = robot.with_payload("b2", 0.0).torque_and_rate(*rows, guess=motion.q)
    assert deviation(unloaded, robot.torque_and_rate(*rows, guess=motion.q)) < 1e-15


def test_gravity_of_a_closed_loop_equals_bias_at_rest(palletiser):
    qa = np.array([0.4, 0.5, 1.0, -0.3])
    assert deviation(palletiser.gravity(qa), palletiser.bias(qa, np.zeros(4))) < 1e-13


def test_vectorized_results_of_a_closed_loop_equal_single_samples(five_bar):
    t = np.linspace(0.0, 1.0, 9)[:, None]
    qa, qad = np.array([1.9, 1.0]) + 0.4 * np.sin(t), 0.4 * np.cos(t) * [1.0, 1.0]
    qadd, qaddd = 0.0 * qa + 0.3, -0.1
    tau, tau_rate = five_bar.torque_and_rate(qa, qad, qadd, 0.0 * qa + qaddd)
    assert tau.shape == tau_rate.shape == (9, 2)
    for k in range(9):
        one = five_bar.torque_and_rate(qa[k], qad[k], qadd[k], np.full(2, qaddd))
        assert deviation((tau[k], tau_rate[k]), one) < 1e-12
    assert five_bar.mass_matrix(qa).shape == (9, 2, 2)
    assert deviation(five_bar.forward_dynamics(qa, qad, tau), qadd) < 1e-12


def test_backends_of_a_closed_loop_agree():
    expected = four_bar()[0].torque_and_rate([0.3], [1.1], [-0.7], [3.0])
    for backend in ("python", "reference"):
        assert deviation(four_bar(backend=backend)[0].torque_and_rate([0.3], [1.1], [-0.7], [3.0]), expected) < 1e-12


def test_guess_selects_the_branch_of_a_five_bar(five_bar):
    """A pair of motor angles has two closed poses (elbows mirrored); both satisfy the loop and are kept along a motion."""
    qa = np.array([1.9, 1.0])
    q = five_bar.close(qa)
    left, right = (np.array([x, 0.0]) + L * np.array([np.cos(a), np.sin(a)]) for x, L, a in ((0, 0.4, 1.9), (0.3, 0.45, 1.0)))
    line = np.arctan2(*(right - left)[::-1])  # from elbow to elbow; the forearms may lie on either side of it
    mirrored = np.array([1.9, 2 * line - (1.9 + q[1]) - 1.9, 1.0, 2 * line - (1.0 + q[3]) - 1.0])
    other = five_bar.close(qa, guess=mirrored + [0.0, 0.2, 0.0, -0.1])
    assert np.abs(np.sin(0.5 * (other - mirrored))).max() < 1e-12 and np.abs(other - q).max() > 0.5
    path = qa + 0.3 * np.sin(np.linspace(0.0, 6.0, 60))[:, None]
    for begin in (q, other):
        poses = five_bar.close(path, guess=begin)
        assert np.abs(np.diff(poses, axis=0)).max() < 0.2
        assert np.abs(poses[0] - five_bar.close(path[0], guess=begin)).max() < 1e-12


def test_distant_poses_are_reached_on_the_same_branch():
    """The crank of a Grashof four-bar turns three times; the other joints return to their angles."""
    machine = polygon(((0.0, 0.0), (0.1, 0.0), (0.35, 0.3), (0.4, 0.0)))  # Grashof: the short crank turns through
    urdf, loops = machine.cut_at("j4", active=["j1"])
    robot = load(urdf, loops)
    near, far = robot.close([0.4]), robot.close([0.4 - 6.0 * np.pi])
    wrapped = np.angle(np.exp(1j * (near - far)))
    assert np.abs(wrapped).max() < 1e-10


@pytest.mark.parametrize("excess", [1e-3, 2e-4, 3e-5])
def test_nearly_coincident_branches_are_not_confused(excess):
    """The two branches of a near parallelogram almost meet in the flat pose at pi; the solver stays on one of them."""
    crank, rod, rocker, ground = 0.2, 0.4 + excess, 0.2, 0.4
    robot, corner = _four_bar_of(crank, rod, rocker, ground)
    for angle in (0.5, 3.0, 3.5, 5.0):
        b, d = crank * np.array([np.cos(angle), np.sin(angle)]), np.array([ground, 0.0])
        s = np.linalg.norm(d - b)
        along_line = (rod**2 - rocker**2 + s**2) / (2.0 * s)
        side = np.array([-(d - b)[1], (d - b)[0]]) / s
        c = b + (d - b) * along_line / s + side * np.sqrt(rod**2 - along_line**2)
        at_start = corner - crank * np.array([np.cos(1.0), np.sin(1.0)])
        turned = np.arctan2(*(c - b)[::-1]) - np.arctan2(*at_start[::-1])  # the rod, from x to z
        q = robot.close([1.0 - angle])
        assert abs(np.sin(0.5 * (q[0] + q[1] + turned))) < 1e-9


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_loop_closure_does_not_depend_on_the_size_of_the_mechanism(scale):
    """Tolerances are relative to the characteristic length of the mechanism."""
    urdf, loops = polygon(scale * np.array(SLIDER), sliders=(4,)).cut_at("j2", active=["j1"])
    tiny, usual = load(urdf, loops), slider("j2")[0]
    scales = np.array([scale if name == "j4" else 1.0 for name in usual.tree.joint_names])
    assert deviation(tiny.close([0.7]) / scales, usual.close([0.7])) < 1e-9


@pytest.mark.parametrize("name", MACHINES)
def test_compiled_newton_step_equals_the_step_by_singular_values(name):
    """Compare correction and tangent; the bounds of condition number and margin hold and are not too wide."""
    closure = MACHINES[name]()[0]._closure
    rng, N = np.random.default_rng(7), len(closure.active)
    for _ in range(20):
        q = closure.start + 0.1 * closure.units.unknowns * rng.normal(size=closure.model.n)
        direction = rng.normal(size=N)
        quick, careful = closure._quick_step(q, direction), closure.careful_step(q, direction, closure.passive)
        assert deviation(quick.correction, careful.correction) < 1e-11 and deviation(quick.slope, careful.slope) < 1e-11
        assert quick.gap == pytest.approx(careful.gap, rel=1e-12) and quick.length == pytest.approx(careful.length, rel=1e-10)
        rounding, unknowns = 1.0 + 1e-9, len(closure.passive)
        assert careful.condition <= rounding * quick.condition <= rounding**2 * unknowns * careful.condition
        assert careful.margin >= quick.margin / rounding >= careful.margin / (rounding**2 * np.sqrt(unknowns))


@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_singular_values_are_used_next_to_a_singular_pose(backend):
    """Rod and rocker are almost aligned. Near the dead point the joints move with the square root of the crank angle, so
    that the map G grows with one over that root.
    """
    robot, _, angle = dead_point(backend=backend)
    pose, found = robot.start, []
    for ahead in np.geomspace(1e-2, 1e-12, 51):
        pose = robot.close([1.0 - angle + ahead], guess=pose)
        if ahead < 1e-8:
            state = robot.motion(pose[:1], [ahead], [0.0], [0.0], guess=pose)
            assert deviation(state.G[:, 0] * ahead, state.qd) < 1e-12
            found.append(state.G[1:, 0] * np.sqrt(ahead))
    assert robot._closure._quick_step(pose, np.zeros(1)) is None
    assert np.abs(np.array(found) / found[0] - 1.0).max() < 1e-2 and np.abs(found[0]).min() > 0.1


# --- rejected input --------------------------------------------------------------------------------------------------


def test_unreachable_active_positions_of_a_loop_are_rejected(five_bar):
    with pytest.raises(InputError, match=r"loop 'tip' is open by 0\.\d+ m at best.*guess") as error:
        five_bar.close([3.0, 0.1])
    assert "left_motor = 3" in str(error.value) and "condition number" in str(error.value)
    with pytest.raises(InputError, match="sample 1: no way to"):
        five_bar.torque_and_rate(*np.array([[[2.0, 1.0], [3.0, 0.1]]] * 4))


def test_singular_pose_of_a_loop_is_rejected():
    """Rod and rocker are aligned: the crank does not determine their direction."""
    robot, _corner, angle = dead_point()
    with pytest.raises(InputError, match=r"loop 'j4' is singular at j1 = .*do not determine j2, j3.*condition number"):
        robot.close([1.0 - angle])  # rotation about y is opposite to the angle from x to z
    robot.close([1.0 - angle + 1e-3])


def dead_point(**options):
    """Return a four-bar, its corner, and the crank angle at which rod and rocker are aligned."""
    crank, rod, rocker, ground = 0.15, 0.3, 0.3, 0.5
    angle = np.arccos((crank**2 + ground**2 - (rod + rocker) ** 2) / (2 * crank * ground))
    return *_four_bar_of(crank, rod, rocker, ground, **options), angle


def _four_bar_of(crank, rod, rocker, ground, **options):
    """Return a four-bar with its crank at 1 rad, elbow up, and the joint position of rod and rocker."""
    b = crank * np.array([np.cos(1.0), np.sin(1.0)])
    d = np.array([ground, 0.0]) - b
    s = np.hypot(*d)
    x = (rod**2 - rocker**2 + s**2) / (2 * s)
    c = b + x * d / s + np.sqrt(rod**2 - x**2) * np.array([-d[1], d[0]]) / s
    urdf, loops = polygon(((0.0, 0.0), tuple(b), tuple(c), (ground, 0.0))).cut_at("j4", active=["j1"])
    return load(urdf, loops, **options), c


@pytest.mark.parametrize("change, message", [
    ({"active": []}, "active is empty; at least one entry is needed"),
    ({"active": ["j1", "j9"]}, r"active\.1: joint 'j9' does not exist; the joints are j1, j2, j3"),
    ({"active": ["j1", "j1"]}, "active names a joint twice: j1"),
    ({"active": ["j1", "j2"]}, r"2 active joints \(j1, j2\), but the loops leave 1 of the 3 joints free: name 1 of j1, j2"),
    ({"cut_joints": {}}, "cut_joints is empty; at least one entry is needed"),
    ({"cut_joint": {}}, "cut_joint is not known; allowed are active, cut_joints, start; did you mean 'cut_joints'"),
    ({"start": {"j9": 0.0}}, r"start\.j9: joint 'j9' does not exist"),
    ({"start": {"j1": "up"}}, r"start\.j1 is 'up'; a finite number"),
    ({"start": {"j2": 3.0, "j3": 3.0, "j1": 60.0}}, None),
])
def test_invalid_loop_declarations_are_rejected(change, message):
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j1"])
    if message is None:  # far from closed, but it closes
        load(urdf, {"loops": {**loops["loops"], **change}})
        return
    with pytest.raises(ModelError, match=message):
        load(urdf, {"loops": {**loops["loops"], **change}})


@pytest.mark.parametrize("change, message", [
    ({"type": "ball"}, "type is 'ball'; allowed are fixed, revolute"),
    ({"first": {"link": "b9"}}, r"first\.link: link 'b9' does not exist; the links are base, b1"),
    ({"first": {"xyz": [0, 0, 0]}}, r"first\.link is missing; the name of a link is needed"),
    ({"first": {"link": "b1", "xyz": [0, 0]}}, "xyz is .*; three finite numbers"),
    ({"first": {"link": "b1", "rpy": [0, 0, np.nan]}}, "rpy is .*; three finite numbers"),
    ({"first": {"link": "b1", "xzy": [0, 0, 0]}}, "xzy is not known; allowed are link, xyz, rpy; did you mean 'xyz'"),
    ({"first": {"link": "base"}}, "links 'base' and .* are one rigid body"),
    ({"kind": "pin"}, "kind is not known; allowed are type, first, second"),
])
def test_invalid_cut_joints_are_rejected(change, message):
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j1"])
    loops["loops"]["cut_joints"]["j4"] |= change
    with pytest.raises(ModelError, match=message):
        load(urdf, loops)


def test_all_problems_of_loops_are_reported_at_once():
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j7"])
    loops["loops"]["cut_joints"]["j4"] |= {"type": "ball", "first": "b8"}
    with pytest.raises(ModelError) as error:
        load(urdf, loops)
    assert len(error.value.problems) == 3


def test_unreadable_robot_file_is_rejected(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "a.robot.yaml"
    for content, message in (("active: [", "is not YAML"), ("- 1", "holds list; a robot file is needed there")):
        path.write_text(content)
        with pytest.raises(ModelError, match=message):
            load(FIVE_BAR[0], path)
    with pytest.raises(ModelError, match=r"nowhere\.yaml.*cannot be read"):
        load(FIVE_BAR[0], tmp_path / "nowhere.yaml")


def test_loop_that_does_not_close_is_rejected():
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j1"])
    loops["loops"]["cut_joints"]["j4"]["second"]["xyz"] = [5.0, 0.0, 0.0]
    with pytest.raises(ModelError, match=r"do not close near the pose to start from: loop 'j4' is open by .* m at best"):
        load(urdf, loops)


def test_active_joints_that_do_not_determine_the_pose_are_rejected(palletiser):
    loops = declaration(PALLETISER[1])
    loops["loops"]["active"] = ["joint1", "joint2", "levelling_plate", "joint4"]  # both move the same parallelogram
    with pytest.raises(ModelError, match=r"do not determine .*name other active joints"):
        Robot(palletiser.tree, loops)


def test_active_mimic_joint_is_rejected():
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j3"])
    mimic = urdf.replace('<joint name="j3" type="revolute">', '<joint name="j3" type="revolute"><mimic joint="j1"/>')
    with pytest.raises(ModelError, match=r"'j3' only follows 'j1' \(mimic\)"):
        load(mimic, loops)


def test_rounded_axes_of_a_planar_loop_are_rejected_with_a_remedy():
    """Rounded angles make redundant equations contradictory; the message states it, and point_on_axis solves it."""
    urdf, loops = polygon(FOUR_BAR).cut_at("j4", active=["j1"])
    for tilt in ("3.7e-6", "3.7e-4"):
        tilted = urdf.replace('<axis xyz="0.0 1.0 0.0"/>', f'<axis xyz="0.0 1.0 {tilt}"/>', 1)
        loops["loops"]["cut_joints"]["j4"]["type"] = "revolute"
        with pytest.raises(ModelError, match=r"leave 0 of the 3 joints free: .* parallel written with rounded angles"):
            load(tilted, loops)
        loops["loops"]["cut_joints"]["j4"]["type"] = "point_on_axis"
        load(tilted, loops).close([0.2])


def test_invalid_arrays_for_a_closed_loop_are_rejected(five_bar):
    with pytest.raises(InputError, match=r"q has shape \(4,\).*left_motor, right_motor"):
        five_bar.close(np.zeros(4))
    with pytest.raises(InputError, match="qdd"):
        five_bar.torque_and_rate([1.9, 1.0], [0, 0], [0, 0, 0], [0, 0])
    with pytest.raises(InputError, match=r"guess is .* 4 finite numbers"):
        five_bar.close([1.9, 1.0], guess=[0.0, 0.0])
    with pytest.raises(InputError, match="guess: loop 'tip' is open by"):
        five_bar.close([1.9, 1.0], guess=[3.0, 0.0, 0.1, 0.0])
    with pytest.raises(InputError, match="tau"):
        five_bar.forward_dynamics([1.9, 1.0], [0, 0], [1.0])
    with pytest.raises(InputError, match="the motion comes out too large"):
        five_bar.torque_and_rate([1.9, 1.0], [1e200, 0.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(InputError, match=r"qd\[1\] is inf"):
        five_bar.torque_and_rate([1.9, 1.0], [0.0, np.inf], [0.0, 0.0], [0.0, 0.0])


def test_lists_strided_and_foreign_dtypes_are_accepted(five_bar):
    motion = np.array([[1.9, 1.0], [0.7, -0.4], [0.5, 1.1], [2.0, -1.0]])
    expected, guess = five_bar.torque_and_rate(*motion), five_bar.close(motion[0])
    spread = np.full((4, 4), np.nan)
    spread[:, ::2] = motion
    for given in (motion.tolist(), spread[:, ::2], motion.astype(">f8"), motion.astype(np.longdouble)):
        assert deviation(five_bar.torque_and_rate(*given), expected) < 1e-14
        assert deviation(five_bar.torque_and_rate(*given, guess=np.repeat(guess, 2)[::2]), expected) < 1e-12
    motion.flags.writeable = False
    assert deviation(five_bar.torque_and_rate(*motion, guess=guess.tolist()), expected) < 1e-12


def test_forward_dynamics_of_a_massless_loop_is_rejected():
    urdf = ('<robot name="m"><link name="base"/><link name="b1"/><link name="b2"/>'
            '<joint name="j1" type="continuous"><parent link="base"/><child link="b1"/><axis xyz="0 1 0"/></joint>'
            '<joint name="j2" type="continuous"><parent link="base"/><child link="b2"/><axis xyz="0 1 0"/></joint></robot>')
    loops = {"loops": {"active": ["j1"], "cut_joints": {"glue": {"type": "fixed", "first": "b1", "second": "b2"}}}}
    with pytest.raises(InputError, match="'j1' moves no mass: nothing decides its acceleration"):
        load(urdf, loops).forward_dynamics([0.1], [0.0], [1.0])


def test_robot_with_loops_takes_active_joints_only(five_bar):
    assert not five_bar.is_fixed_tree and five_bar.kind == "robot on a fixed base with loops"
    assert five_bar.joint_names == ("left_motor", "right_motor") and five_bar.passive_joints == ("left_elbow", "right_elbow")
    with pytest.raises(ValueError):
        five_bar.start[0] = 1.0


# --- examples ---------------------------------------------------------------------------------------------------------


def test_five_bar_example_follows_its_figure_eight(tmp_path):
    numbers = runpy.run_path(str(ROOT / "examples" / "five_bar.py"))["main"](tmp_path, small=True)
    assert (tmp_path / "five_bar.png").stat().st_size > 20_000
    assert numbers["largest distance of the tip from the eight [m]"] < 1e-12
    assert abs(numbers["work over one turn [J]"]) < 1e-6
    assert numbers["largest difference of rate and quotient [N m/s]"] < 0.02 * numbers["peak rate [N m/s]"]


def test_palletiser_example_lifts_its_box_with_a_level_wrist(tmp_path):
    numbers = runpy.run_path(str(ROOT / "examples" / "palletiser.py"))["main"](tmp_path, small=True)
    assert (tmp_path / "palletiser.png").stat().st_size > 20_000
    assert numbers["largest tilt of the wrist [rad]"] < 1e-12
    assert numbers["work of the motors [J]"] == pytest.approx(numbers["potential energy gained [J]"], abs=0.05)
    assert numbers["peak torque joint3, with 60 kg [N m]"] > 2.0 * numbers["peak torque joint3, empty [N m]"]


def test_loop_equations_depend_only_on_joints_between_the_ends_of_a_cut(palletiser):
    """A joint that moves both ends of a cut joint (the waist of a palletiser) is no variable of its equations; the gaps equal
    those of poses relative to the base.
    """
    model, cuts = palletiser.tree.model, palletiser.loops.cuts
    closure = closed_loops.closure(model, cuts)
    q = np.random.default_rng(8).normal(size=model.n) * 0.3
    poses = base_poses(model, q)
    for cut, (variables, gaps) in zip(cuts, closure.parts, strict=True):
        assert model.joint_names.index("joint1") not in variables and len(variables) <= 4
        one, two = (within(poses[frame.link], (frame.R, frame.P)) for frame in (cut.first, cut.second))
        assert deviation(gaps(q), closed_loops.gap(cut.type, one, two)) < 1e-13
    _, J = closed_loops.jacobian(closure, q)
    np.testing.assert_array_equal(J[:, model.joint_names.index("joint1")], 0.0)
    turned = [np.array(closure(q + 1e-6 * s * np.eye(model.n)[2]), dtype=float) for s in (1, -1)]
    assert deviation(J[:, 2].astype(float), (turned[0] - turned[1]) / 2e-6) < 1e-8


def test_bias_of_a_loop_is_gravity_plus_coriolis_plus_friction():
    """Friction of passive joints acts on the motors through the loops and is not part of the Coriolis matrix."""
    joints = ("left_motor", "left_elbow", "right_elbow")
    terms = {name: JointDynamics(viscous=0.5 + k, coulomb=0.3) for k, name in enumerate(joints)}
    robot = load(*FIVE_BAR).with_joint_dynamics(terms)
    q, qd = np.array([1.9, 1.0]), np.array([0.7, -0.4])
    motion = robot.motion(q, qd, *np.zeros((2, 2)))
    friction = motion.G.T @ robot.tree.friction(motion.qd)[0]
    assert np.abs(friction).min() > 0.1
    assert deviation(robot.coriolis(q, qd) @ qd + friction, robot.bias(q, qd) - robot.gravity(q)) < 1e-12
