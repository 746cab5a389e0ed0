"""Prescribed base motion: state and derivatives, torques and base wrench along a motion, ground reaction, examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnea_ros import BaseState, InputError, Loads, Robot, load
from rnea_ros.identification.identification import Measurements, Regressor, identify
from rnea_ros.robots.base_state import base_motion, quaternion
from rnea_ros.robots.tree import TreeDynamics
from rnea_ros.sim.free_base import simulate_free_base
from rnea_ros.trajectory.path_dynamics import PathDynamics
from support.free_flyer import CASES, SEEDS, example, loads, oracle, robot, source, state
from support.oracles import difference, worst
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
each_robot = pytest.mark.parametrize("name", [*CASES, *SEEDS])

# ------------------------------------------------------------------ motion


def motion_of_base(t):
    """Return the pose of a smooth base motion."""
    a, b = np.sin(t * 1.3) * 0.7, t * t * 0.8 + 0.4
    Rz = np.array([[np.cos(b), -np.sin(b), 0.0], [np.sin(b), np.cos(b), 0.0], [0.0, 0.0, 1.0]])
    Rx = np.array([[1.0, 0.0, 0.0], [0.0, np.cos(a), -np.sin(a)], [0.0, np.sin(a), np.cos(a)]])
    return np.array([np.cos(t * 2.0), t * t * t - t, np.sin(t * 0.7) * t]), Rz @ Rx


@pytest.mark.parametrize("t", [-0.4, 0.0, 0.9])
def test_base_velocity_acceleration_and_jerk_match_differences_of_the_pose(t):
    base = base_motion(motion_of_base, t)
    p, R = (np.array(part, dtype=float) for part in motion_of_base(t))
    assert worst(base.position, p) < 1e-15 and worst(base.rotation, R) < 1e-14
    assert worst(quaternion(R), base.quaternion) < 1e-14

    def spin(s):
        turn = difference(lambda h: motion_of_base(s + h)[1]) @ motion_of_base(s)[1].T
        return np.array([turn[2, 1], turn[0, 2], turn[1, 0]])

    def linear(s):
        return difference(lambda h: motion_of_base(s + h)[0])

    assert worst(base.into_world(base.velocity), np.concatenate((linear(t), spin(t)))) < 1e-10
    for order, (ours, tolerance) in enumerate(((base.acceleration, 1e-8), (base.jerk, 1e-5)), start=1):
        def rate(f, s, order=order):
            return difference(lambda h: f(s + h) if order == 1 else difference(lambda k: f(s + h + k), 1e-2), 1e-2)
        assert worst(base.into_world(ours), np.concatenate((rate(linear, t), rate(spin, t)))) < tolerance


@each_robot
def test_torque_and_base_wrench_rates_match_differences_of_pinocchio(name):
    """The differences are of sixth order along a prescribed base motion."""
    _, q, qd, qdd, qddd = state(name)
    wrenches, wrench_rates = loads(name, np.random.default_rng(5))

    def forces(t):
        base = base_motion(motion_of_base, t)
        now = (q + qd * t + qdd * (t * t / 2) + qddd * (t**3 / 6), qd + qdd * t + qddd * (t * t / 2), qdd + qddd * t)
        then = {link: wrenches[link] + wrench_rates[link] * t for link in wrenches}
        return oracle(name).forces(base, base.acceleration, *now, then)

    base = base_motion(motion_of_base, 0.0)
    ours = robot(name).solve(q, qd, qdd, qddd, base=base, loads=Loads(wrenches, wrench_rates))
    assert worst(np.concatenate((ours.base_wrench, ours.torques[0])), forces(0.0)) < 1e-10
    assert worst(ours.base_acceleration, base.acceleration) < 1e-12 and worst(ours.base_jerk, base.jerk) < 1e-11
    size = max(1.0, np.abs(ours.torques[1]).max())
    assert worst(np.concatenate((ours.base_wrench_rate, ours.torques[1])) / size, difference(forces) / size) < 1e-8


# ------------------------------------------------------------------ ground


def test_ground_reaction_has_no_moment_at_the_zero_moment_point():
    """The zero-moment point is below the centre of mass at rest."""
    robot_, ground, normal = robot("solo12"), np.array([0.2, 0.1, -0.4]), np.array([0.1, -0.2, 1.0])
    upright = load(source("solo12"), base="prescribed")
    base, q, qd, qdd, _ = state("solo12")
    still, rest = BaseState(base.position, base.quaternion), np.zeros(robot_.n)
    wrench = upright.solve(q, rest, rest, stages=1, base=still).base_wrench
    point = upright.zero_moment_point(wrench, base=still, ground=(0.0, 0.0, -1.0))
    assert worst(point, [*upright.center_of_mass(q, rest, base=still).position[:2], -1.0]) < 1e-12
    base = base.with_motion([1.0, 2.0, 0.5, 3.0, -1.0, 0.2])
    wrench = robot_.solve(q, 0.1 * qd, 0.1 * qdd, stages=1, base=base).base_wrench
    wrench[:3] += base.into_base([0.0, 0.0, 500.0])
    point = robot_.zero_moment_point(wrench, base=base, ground=ground, normal=normal)
    f, n = np.split(robot_.ground_reaction(wrench, base=base), 2)
    assert (point - ground) @ normal == pytest.approx(0.0, abs=1e-12)
    assert np.cross(normal, n - np.cross(point, f)) == pytest.approx(np.zeros(3), abs=1e-9)
    assert np.isnan(robot_.zero_moment_point(0.0 * wrench, base=base)).all()


def test_contact_forces_equal_to_the_base_wrench_give_the_prescribed_base_acceleration():
    """The wrench acts on the root link, or is distributed to four feet."""
    for name, feet in (("g1_29dof_rev_1_0", ()), ("solo12", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"))):
        base, q, qd, qdd, _ = state(name)
        given, r = np.random.default_rng(12).normal(size=6), robot(name)
        wrench = r.solve(q, qd, qdd, stages=1, base=base.with_motion(given)).base_wrench
        poses = [r.link_pose(foot, q, base=BaseState()) for foot in feet]  # in the base frame
        arms = np.hstack([np.vstack((R, np.cross(P, R, axisb=0, axisc=0))) for R, P in poses]) if feet else np.eye(6)
        forces = np.linalg.lstsq(arms, wrench, rcond=None)[0].reshape(-1, 3 if feet else 6)
        loads_ = {link: np.append(force, np.zeros(6 - len(force))) for link, force in
                  zip(feet or (r.tree.root_link,), forces, strict=True)}
        assert worst(r.solve(q, qd, qdd, stages=1, base=base, loads=Loads(loads_)).base_acceleration, given) < 1e-9


# ------------------------------------------------------------------ errors


def test_missing_motion_of_the_base_and_massless_robots_are_rejected():
    text, rest = arm({}, {}), np.zeros(2)
    with pytest.raises(InputError, match="length 2; it must be 1"):
        BaseState(quaternion=(0, 0, 0, 2))
    with pytest.raises(InputError, match=r"base velocity .* \(6,\)"):
        BaseState(velocity=(0, 0, 0))
    two = load(text, base="floating")
    with pytest.raises(InputError, match=r"base jerk .* \(6,\)"):
        two.torque_and_rate(rest, rest, rest, rest, base=BaseState(jerk=np.zeros(5)))
    with pytest.raises(InputError, match=r"base acceleration"):
        two.inverse_dynamics(rest, rest, rest, base=BaseState(acceleration=np.full(6, np.nan)))
    weightless = load(arm({}, {}, inertial=""), base="floating")
    for call in (weightless.inverse_dynamics, weightless.forward_dynamics):
        with pytest.raises(InputError, match="mass"):
            call(rest, rest, rest, base=BaseState())
    with pytest.raises(InputError, match="no mass"):
        weightless.center_of_mass(rest, rest, base=BaseState())


# ------------------------------------------------------------------ drift


def test_thrown_arm_follows_a_parabola_with_constant_angular_momentum():
    """The joints move during the flight of the centre of mass."""
    thrown = load(ROOT / "urdf" / "rr.urdf", base="floating")
    start = BaseState(velocity=(1.0, 0.0, 2.0, 0.3, -0.2, 0.5))

    def joints(t):
        return [np.array([0.4, -0.7]) * 3.0**k * np.sin(3.0 * t + k * np.pi / 2) for k in range(3)]

    found = simulate_free_base(thrown, joints, np.arange(0.0, 0.4, 0.01), start)
    centre = thrown.center_of_mass(found.q, found.qd, base=BaseState.from_vector(found.base))
    parabola = centre.position[0] + np.outer(found.t, centre.velocity[0]) + np.outer(found.t**2, [0.0, 0.0, -9.81 / 2])
    assert np.abs(centre.position - parabola).max() < 1e-7
    assert np.abs(centre.momentum[:, 3:] - centre.momentum[0, 3:]).max() < 1e-6
    assert found.tau.shape == (len(found.t), thrown.n)


# ------------------------------------------------------------------ examples


def test_snake_example_moves_forward_in_its_plane(tmp_path):
    numbers = example("snake").main(tmp_path, small=True)
    assert 0.3 < numbers["distance"] < 1.5 and numbers["out of plane"] < 1e-12
    assert (tmp_path / "snake.png").stat().st_size > 10_000


def test_quadruped_example_conserves_angular_momentum_in_flight(tmp_path):
    numbers = example("quadruped").main(tmp_path, small=True)
    assert numbers["fall of the mass centre"] == pytest.approx(-9.81, rel=1e-4) and numbers["angular momentum kept"] < 1e-6
    assert numbers["widest zero-moment point"] < 0.15 and 0.2 < numbers["flight [s]"] < 0.4
    assert (tmp_path / "quadruped.png").stat().st_size > 10_000


def test_vehicle_arm_example_reports_torques_added_by_the_base_motion(tmp_path):
    numbers = example("vehicle_arm").main(tmp_path, small=True)
    assert 5.0 < numbers["largest torque added"] < 20.0
    assert numbers["rate against differences"] < 0.05 * numbers["largest torque rate"]
    assert (tmp_path / "vehicle_arm.png").stat().st_size > 10_000


def test_functions_of_a_fixed_base_are_rejected_for_a_free_one():
    """These functions assume a fixed base."""
    text = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)})
    robot = TreeDynamics.from_urdf(text, base="floating")
    q = np.zeros(robot.n)
    for ask in (lambda: robot.torque_and_rate(q, q, q, q), lambda: robot.inverse_dynamics(q, q, q), lambda: robot.bias(q, q),
                lambda: robot.dynamics(q, q, q, q), lambda: robot.gravity(q), lambda: robot.forward_dynamics(q, q, q),
                lambda: robot.torque_and_rate(q, q, q, q, loads=Loads({robot.root_link: np.ones(6)})),
                lambda: robot.sensitivities(q, q, q), lambda: robot.rate_sensitivities(q, q, q, q),
                lambda: robot.joint_wrenches(q, q, q), lambda: robot.joint_wrenches(q, q, q, q), robot.kernel, robot.c_source,
                lambda: robot.joint_wrench_sensitivities(q, q, q), lambda: robot.recursion(q, q, q, q),
                lambda: robot.kernel("inertia")):
        with pytest.raises(InputError, match=r"robot '\w+' has a moving base, which"):
            ask()
    held, free = Robot.from_urdf(text), Robot(robot, {"base": "floating"})
    measured = Measurements(np.arange(50.0), np.zeros((50, robot.n)), np.zeros((50, robot.n)))
    for ask in (lambda: PathDynamics(free), lambda: Regressor(free, []), lambda: identify(free, measured)):
        with pytest.raises(InputError, match="base"):
            ask()
    np.testing.assert_allclose(robot.mass_matrix(q), held.mass_matrix(q), atol=1e-14)
    np.testing.assert_allclose(robot.mass_matrix(q), free.mass_matrix(q)[6:, 6:], atol=1e-14)
    assert robot.energy(q, q) == pytest.approx(free.energy(q, q, base=BaseState()))
