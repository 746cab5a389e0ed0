"""Inverse dynamics controller of equations (37) to (49): closed loop, Lyapunov function, exact rates, section V."""

from __future__ import annotations

import runpy
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Loads, MotorState, Robot, load
from rnea_ros.demo.elastic_control import InverseDynamicsController, accelerations, runge_kutta, simulate_elastic_arm
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import difference, worst
from support.robots import arm, motor_file
from support.rotor_trees import declare, four_joints, polynomial

ROOT = Path(__file__).resolve().parents[2]
GAINS = {"slope": (8.0, 9.0, 10.0, 11.0), "damping": (20.0, 25.0, 30.0, 35.0)}


@cache
def robot_with_friction():
    """Return a robot of four joints, two of them elastic, with friction on both sides of the springs."""
    urdf = arm({"axis": (0, 0, 1), "xyz": (0, 0, 0.2)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)},
               {"kind": "prismatic", "axis": (1, 0, 0.3), "xyz": (0.2, 0.1, 0)}, {"axis": (0, 1, 0.2), "xyz": (0.3, 0, 0)})
    joints = declare(np.random.default_rng(3), None, ["j1", "j2", "j3", "j4"], elastic=0.0,
                     links={"j1": "base", "j2": "l1", "j3": "l2", "j4": "l1"})
    for name, K in (("j3", 900.0), ("j4", 300.0)):
        joints[name] |= {"stiffness": K, "gear_ratio": 15.0, "viscous": 0.3, "coulomb": 0.2}
    terms = {"j2": JointDynamics(viscous=0.5, coulomb=0.4, smoothing=0.1), "j4": JointDynamics(viscous=0.2, offset=0.3)}
    return Robot(TreeDynamics.from_urdf(urdf, joint_dynamics=terms, gravity=(1.0, -2.0, -9.0)), motor_file(joints))


ROBOTS = {"friction": robot_with_friction, "all elastic": lambda: four_joints()[0],
          "rigid": lambda: four_joints(elastic=False)[0]}
each_robot = pytest.mark.parametrize("name", ROBOTS)


def loop(name, seed=0):
    """Return robot, controller, desired motion, a state near it (q, q_motor, qd, qd_motor), and elastic joints."""
    robot = ROBOTS[name]()
    motion, rng = polynomial(seed, 4, 6), np.random.default_rng(seed + 10)
    elastic = [robot.joint_names.index(joint) for joint in robot.elastic_joints]
    q, qd = motion(0.0)[0] + 0.3 * rng.normal(size=4), motion(0.0)[1] + 0.5 * rng.normal(size=4)
    q_motor, qd_motor = q[elastic] + 0.1 * rng.normal(size=len(elastic)), qd[elastic] + rng.normal(size=len(elastic))
    return robot, InverseDynamicsController(robot, **GAINS), motion, (q, q_motor, qd, qd_motor), elastic


def christoffel(robot, q, qd):
    """Return C(q, qd) of the link-side block of M, from differences of M."""
    n = robot.n
    slopes = np.stack([difference(lambda t, e=e: robot.mass_matrix(q + t * e)[:n, :n], 2e-3) for e in np.eye(n)], axis=-1)
    return (slopes @ qd + np.einsum("ikj,k->ij", slopes, qd) - np.einsum("jki,k->ij", slopes, qd)) / 2.0


@each_robot
def test_closed_loop_errors_satisfy_the_published_equations(name):
    """Equations (40) and (50), with accelerations of Algorithm 2 and C by Christoffel symbols."""
    robot, controller, motion, state, elastic = loop(name)
    (q, q_motor, qd, qd_motor), gains, n = state, controller.gains, robot.n
    command = controller(motion(0.0), *state)
    qdd, qdd_motor = np.split(accelerations(robot, q, qd, command.tau, motors=MotorState(q_motor, qd_motor)), [n])
    wanted = motion(0.0)
    e, ed = wanted[0] - q, wanted[1] - qd
    sigma, sigmad = ed + gains.slope * e, wanted[2] - qdd + gains.slope * ed  # (38)
    e_tau = np.zeros(n)
    e_tau[elastic] = robot.stiffness * (command.q_motor - q_motor)
    M = robot.mass_matrix(q)[:n, :n]
    left = M @ sigmad + christoffel(robot, q, qd) @ sigma + gains.damping * sigma
    assert np.abs(left - e_tau).max() < 1e-9 * max(1.0, np.abs(e_tau).max())  # (40)
    e_m, ed_m = command.q_motor - q_motor, command.qd_motor - qd_motor
    sigma_m = ed_m + gains.motor_slope * e_m + sigma[elastic]  # (47)
    sigmad_m = command.qdd_motor - qdd_motor + gains.motor_slope * ed_m + sigmad[elastic]
    B = np.diag(robot.mass_matrix(q))[n:]
    terms = np.array([B * sigmad_m, gains.motor_damping * sigma_m, robot.stiffness * e_m])
    assert np.abs(terms.sum(axis=0)).max(initial=0.0) < 1e-11 * max(1.0, np.abs(terms).max(initial=0.0))  # (50)


def closed_loop(robot, controller, motion, state, times, tau=None):
    """Return states along the closed loop, integrated in small steps."""
    cuts = np.cumsum([len(x) for x in state])[:-1]

    def slope(t, y):
        q, q_motor, qd, qd_motor = np.split(y, cuts)
        command = controller(motion(t), q, q_motor, qd, qd_motor)
        found = accelerations(robot, q, qd, command.tau, motors=MotorState(q_motor, qd_motor))
        return np.concatenate((qd, qd_motor, found))

    return [np.split(y, cuts) for y in runge_kutta(slope, np.concatenate(state), times)]


@pytest.mark.parametrize("name", ["friction", "all elastic"])
def test_rates_of_desired_motor_positions_are_exact(name):
    """The oracle is numerical differentiation along the closed loop."""
    robot, controller, motion, state, _ = loop(name)
    h, fine = 6e-5, 5
    times = np.arange(-3 * fine, 3 * fine + 1) * (h / fine)
    ahead = closed_loop(robot, controller, motion, state, times[times >= -1e-12])
    back = closed_loop(robot, controller, motion, state, times[times <= 1e-12][::-1])
    at = {k: (back if k < 0 else ahead)[abs(k) * fine] for k in range(-3, 4)}
    commands = {k: controller(motion(k * h), *x) for k, x in at.items()}
    for value, rate in (("q_motor", "qd_motor"), ("qd_motor", "qdd_motor")):
        found = difference(lambda t, value=value: getattr(commands[round(t / h)], value), h)
        expected = getattr(commands[0], rate)
        assert np.abs(found - expected).max() < 1e-6 * max(1.0, np.abs(expected).max()), value


@each_robot
def test_lyapunov_function_decreases_at_the_published_rate(name):
    """Equations (51) and (52) along the closed loop."""
    robot, controller, motion, state, elastic = loop(name, seed=1)
    gains, n = controller.gains, robot.n

    def errors(t, x):
        q, q_motor, qd, qd_motor = x
        command, wanted = controller(motion(t), *x), motion(t)
        e, ed = wanted[0] - q, wanted[1] - qd
        e_m = command.q_motor - q_motor
        sigma = ed + gains.slope * e
        return e, ed, sigma, e_m, command.qd_motor - qd_motor + gains.motor_slope * e_m + sigma[elastic]

    def V2(t, x):
        e, _ed, sigma, e_m, sigma_m = errors(t, x)
        A = robot.mass_matrix(x[0])
        kinetic = sigma @ A[:n, :n] @ sigma + sigma_m @ A[n:, n:] @ sigma_m
        return kinetic / 2.0 + e @ (gains.slope * gains.damping * e) + e_m @ (robot.stiffness * e_m) / 2.0

    h, fine = 2e-4, 10
    times = np.arange(3 * fine + 1) * (h / fine)
    ahead = closed_loop(robot, controller, motion, state, times)
    back = closed_loop(robot, controller, motion, state, -times)
    values = {k: V2(k * h, (back if k < 0 else ahead)[abs(k) * fine]) for k in range(-3, 4)}
    e, ed, _, e_m, sigma_m = errors(0.0, state)
    expected = -(ed @ (gains.damping * ed) + e @ (gains.slope**2 * gains.damping * e)
                 + sigma_m @ (gains.motor_damping * sigma_m) + e_m @ (robot.stiffness * gains.motor_slope * e_m))
    assert expected < 0.0
    assert difference(lambda t: values[round(t / h)], h) == pytest.approx(expected, rel=1e-6)


@cache
def paper_arm():
    robot = load(ROOT / "urdf" / "hua_arm.urdf", ROOT / "urdf" / "hua_arm.robot.yaml")
    return robot, InverseDynamicsController(robot, 10.0, 30.0)


@pytest.mark.parametrize("known", ["payload", "world_wrenches"])
def test_known_load_causes_no_tracking_error(known):
    robot, controller = paper_arm()
    if known == "payload":
        heavy, loads = robot.with_payload("tool", 0.5, (0.05, 0.0, 0.02)), None
        plant, knowing = heavy, InverseDynamicsController(heavy, 10.0, 30.0)
    else:
        plant, loads = robot, Loads(world_wrenches={"tool": np.array([1.0, 2.0, -3.0, 0.1, 0.0, 0.0])})
        knowing = partial(controller, loads=loads)
    motion = polynomial(0, 3, 6)
    start = [0.1 * x for x in motion(0.0)[:1]]
    slow = lambda t: [0.1 * 0.1**k * x for k, x in enumerate(motion(0.1 * t))]  # noqa: E731
    state = start[0], start[0][2:], np.zeros(3), np.zeros(1)
    known, unknown = (simulate_elastic_arm(plant, law, slow, state, 2.0, 8e-3, loads=loads)
                    for law in (knowing, controller))
    assert np.abs(known.q_desired - known.q)[-1].max() < 1e-7 < 1e-3 < np.abs(unknown.q_desired - unknown.q)[-1].max()


def test_controller_gives_the_same_torques_with_every_backend():
    _, controller = paper_arm()
    motion, state = polynomial(2, 3, 4)(0.0), ([0.1, 0.2, 0.3], [0.4], [0.5, 0.6, 0.7], [0.8])
    slow = load(ROOT / "urdf" / "hua_arm.urdf", ROOT / "urdf" / "hua_arm.robot.yaml", backend="reference")
    for one, two in zip(controller(motion, *state), InverseDynamicsController(slow, 10.0, 30.0)(motion, *state), strict=True):
        assert worst(one, two) < 1e-11


def test_runge_kutta_has_fourth_order_convergence():
    def end(steps):
        times = np.linspace(0.0, 2.0, steps + 1)
        return runge_kutta(lambda t, y: np.array([y[1], t - y[0]]), np.array([1.0, 0.0]), times)[-1]

    exact = np.array([np.cos(2.0) - np.sin(2.0) + 2.0, -np.sin(2.0) - np.cos(2.0) + 1.0])
    assert 13.0 < np.abs(end(20) - exact).max() / np.abs(end(40) - exact).max() < 19.0


def test_published_arm_motion_is_lowest_at_three_seconds():
    """Section V states it; the desired motion has its minimum q = -0.5 rad in every joint there."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(ROOT / "urdf" / "hua_arm.urdf"))
    data, tool = model.createData(), model.getFrameId("tool")

    def height(t):
        pin.framesForwardKinematics(model, data, np.full(3, 0.5 * np.sin(0.5 * np.pi * t)))
        return data.oMf[tool].translation[2]

    times = np.linspace(0.0, 4.0, 41)
    assert times[np.argmin([height(t) for t in times])] == pytest.approx(3.0)


def test_elastic_arm_example_reproduces_section_five_of_the_paper(tmp_path):
    """The RMSE is within 6 % of the paper, torques are lower with its payload, and the error vanishes after the start."""
    example = runpy.run_path(str(ROOT / "examples" / "elastic_arm.py"))
    numbers = example["main"](tmp_path, small=True)
    assert (tmp_path / "elastic_arm.png").stat().st_size > 10_000
    for run, printed in example["PAPER"].items():
        found = [numbers[f"RMSE {run}, joint{k} [rad]"] for k in (1, 2, 3)]
        np.testing.assert_allclose(found, printed, rtol=0.06, err_msg=run)
    late, lifting = ({run: numbers[text.format(run)] for run in ("without payload", "f_e as printed", "unknown weight",
                                                                 "known weight")}
                     for text in ("largest error after 5 s, {} [rad]", "torque of motor 2 at 3 s, {} [N m]"))
    assert late["without payload"] < 1e-6 and late["known weight"] < 1e-6
    assert 0.01 < late["f_e as printed"] < 0.05 and 0.01 < late["unknown weight"] < 0.05
    assert lifting["without payload"] == pytest.approx(9.35, abs=0.01)
    assert lifting["f_e as printed"] == pytest.approx(7.7, abs=0.05)  # "the motor torques are lower"
    assert lifting["known weight"] > lifting["without payload"] + 1.0


# ------------------------------------------------------------------ rejected input


@pytest.mark.parametrize(("gains", "message"), [
    ({"slope": -1.0, "damping": 30.0}, "gain slope is -1.0; one number above zero, or 3 of them"),
    ({"slope": 10.0, "damping": (1.0, 0.0, 1.0)}, "gain damping"),
    ({"slope": (1.0, 2.0), "damping": 30.0}, "gain slope"),
    ({"slope": "high", "damping": 30.0}, "gain slope is 'high'"),
    ({"slope": 10.0, "damping": 30.0, "motor_slope": (1.0, 1.0)}, "gain motor_slope is .*or 1 of them"),
    ({"slope": 10.0, "damping": 30.0, "motor_damping": float("nan")}, "gain motor_damping is nan"),
])
def test_invalid_gains_are_rejected(gains, message):
    with pytest.raises(InputError, match=message):
        InverseDynamicsController(paper_arm()[0], **gains)


def test_invalid_motions_and_states_are_rejected():
    robot, controller = paper_arm()
    state = np.zeros(3), np.zeros(1), np.zeros(3), np.zeros(1)
    with pytest.raises(InputError, match="the desired motion has 3 arrays; 5 are needed"):
        controller(np.zeros((3, 3)), *state)
    with pytest.raises(InputError, match=r"desired\[0\] has shape \(2,\)"):
        controller(np.zeros((5, 2)), *state)
    with pytest.raises(InputError, match="q_motor has shape"):
        controller(np.zeros((5, 3)), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(1))
    still = lambda t: np.zeros((5, 3))  # noqa: E731
    with pytest.raises(InputError, match=r"q_motor is .*; 1 finite numbers are needed"):
        simulate_elastic_arm(robot, controller, still, (np.zeros(3), np.zeros(2), np.zeros(3), np.zeros(1)), 1.0)
    with pytest.raises(InputError, match=r"duration 1\.0 and step 2\.0"):
        simulate_elastic_arm(robot, controller, still, state, 1.0, 2.0)


def test_motors_mounted_beyond_elastic_joints_are_rejected():
    with pytest.raises(InputError, match="motor of every elastic joint on a link that no other elastic joint moves"):
        InverseDynamicsController(four_joints(depth=4)[0], 10.0, 30.0)
