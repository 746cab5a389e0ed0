"""Flexible links against closed-form frequencies, a fine chain of rigid segments in Pinocchio, the elastica and energy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rnea_ros import BaseState, InputError, Loads, ModelError, load
from rnea_ros.trajectory import vibration
from support.beam_oracle import GRAVITY, LENGTH, MASS, Chain, boom_file, boom_urdf, compare_arm, slew
from support.robots import seeds

STIFFNESS = 60.0
CANTILEVER = np.array([1.875104068711961, 4.694091132974175, 7.854757438237613])  # cos b cosh b = -1
PLANAR = "0 0 1"


def arm(modes=3, stiffness=STIFFNESS, tip_mass=0.5, axis=PLANAR, entry=None, gravity=GRAVITY, **bending):
    file = boom_file(stiffness, modes, **bending)
    file["flexible_links"]["boom"].update(entry or {})
    return load(boom_urdf(tip_mass, axis), file | {"gravity": list(gravity)})


def held_frequencies(robot):
    """Natural frequencies with the motors held [rad/s], by the robot's mass matrix and the declared stiffness."""
    return vibration.free_vibration(robot, np.zeros(robot.n)).frequency


@pytest.mark.parametrize("shapes, errors", [("clamped_free", (1e-9, 1e-5, 1e-3)), ("polynomial", (4e-4, 1e-2, 1.0))])
def test_frequencies_of_a_clamped_free_beam_match_the_closed_form(shapes, errors):
    # the URDF ends with the boom: no wrist and no hand
    urdf = boom_urdf().split("<link name=\"hand\">")[0] + boom_urdf().split("</link>")[-1].split("<joint name=\"wrist\"")[0]
    robot = load(urdf + "</robot>", boom_file(STIFFNESS, 3, shapes=shapes))
    expected = CANTILEVER**2 * np.sqrt(STIFFNESS / (MASS * LENGTH**3))
    assert (np.abs(held_frequencies(robot) / expected - 1.0) < errors).all()


@pytest.mark.parametrize("tip_mass", [0.05, 0.5, 5.0])
def test_frequencies_with_a_tip_mass_match_a_fine_chain(tip_mass):
    coarse, fine = (Chain(count, STIFFNESS, tip_mass).frequencies()[:2] for count in (30, 60))
    expected = (4.0 * fine - coarse) / 3.0  # error of second order in the length of a segment
    found = held_frequencies(arm(tip_mass=tip_mass))[:2]
    assert abs(found[0] / expected[0] - 1.0) < 2e-4 and abs(found[1] / expected[1] - 1.0) < 5e-3


@pytest.mark.parametrize("stiffness, angle, bound", [(60.0, 1.5, 2e-3), (6.0, 2.0, 2.5e-2)])
def test_torque_and_tip_deflection_of_a_slew_match_a_fine_chain(stiffness, angle, bound):
    """The second arm deflects by 0.8 of its length; errors are relative to the largest value."""
    hub, wrist, times = slew(angle, 1.0), slew(-0.8, 1.0), np.linspace(0.0, 1.1, 23)
    coarse, fine = (Chain(count, stiffness).simulate(hub, wrist, times) for count in (8, 16))
    expected = (4.0 * fine - coarse) / 3.0
    robot = arm(stiffness=stiffness)
    motion = np.array([[hub(t), wrist(t)] for t in times]).transpose(2, 0, 1)
    whole = vibration.predict_deflection(robot, times, *motion)
    tau = robot.inverse_dynamics(*whole[:3])
    columns = [robot.joint_names.index(name) for name in ("hub", "wrist")]
    tip = vibration.tip_deflection(robot, whole[0])["boom"] + [LENGTH, 0.0, 0.0]
    found = np.column_stack((tau[:, columns], tip[:, :2]))
    size = np.abs(expected).max(axis=0)
    assert size[3] > (0.05 if stiffness > 10 else 0.7)
    assert (np.abs(found - expected).max(axis=0) < bound * size).all()


def elastica(stiffness, force):
    """Return the end (x, y) of a massless clamped beam of unit length under a force along y of constant direction."""
    def slope(s, y):
        return [np.cos(y[2]), np.sin(y[2]), y[3], -force / stiffness * np.cos(y[2])]

    low, high = 0.0, force / stiffness
    for _ in range(80):
        middle = 0.5 * (low + high)
        end = solve_ivp(slope, (0.0, 1.0), [0.0, 0.0, 0.0, middle], rtol=1e-10, atol=1e-12).y[:, -1]
        low, high = (middle, high) if end[3] < 0.0 else (low, middle)
    return end[:2]


@pytest.mark.parametrize("force, bound", [(0.1, 1e-4), (1.0, 2e-3), (3.0, 1e-2)])
def test_tip_position_under_a_force_matches_the_elastica(force, bound):
    """A force of 3 EI / L^2 bends the end by 0.6 of the length; without foreshortening it would be 1.0."""
    robot = arm(stiffness=1.0, tip_mass=1e-6, gravity=(0.0, 0.0, 0.0))
    q, names = np.zeros(robot.n), robot.joint_names
    loads = Loads(world_wrenches={"boom.tip": [0.0, force, 0.0, 0.0, 0.0, 0.0]})
    columns = vibration.modal_columns(robot)
    for _ in range(30):
        def pull(q):
            return robot.bias(q, np.zeros(robot.n), loads=loads)[columns]

        slopes = np.array([(pull(q + 1e-6 * unit) - pull(q - 1e-6 * unit)) / 2e-6 for unit in np.eye(len(names))[columns]]).T
        q[columns] -= np.linalg.solve(slopes, pull(q))
    end = robot.link_pose("boom.tip", q).p
    assert np.linalg.norm(end[:2] - elastica(1.0, force)) < bound


def test_stiff_beam_has_the_torques_of_the_rigid_link():
    rng = np.random.default_rng(1)
    rigid, robot = load(boom_urdf(axis="0 1 0")), arm(axis="0 1 0", entry={"bending": {
        "z": {"direction": [0, 0, 1], "stiffness": 1e9}, "y": {"direction": [0, 1, 0], "stiffness": 1e9}}})
    q, qd, qdd, qddd = rng.normal(size=(4, 2))
    columns = [robot.joint_names.index(name) for name in ("hub", "wrist")]
    whole = np.zeros((4, robot.n))
    whole[:, columns] = q, qd, qdd, qddd
    predictor = vibration.FlexiblePredictor(robot)
    whole[0, predictor.columns] = predictor.equilibrium(whole[:, columns])
    found, expected = robot.solve(*whole), rigid.torque_and_rate(q, qd, qdd, qddd)
    np.testing.assert_allclose(found.torques[0][columns], expected[0], rtol=1e-6)


def spatial(**options):
    """Return a boom that bends in two directions and twists, with a hand on a bracket at its end and a lamp halfway."""
    urdf = boom_urdf(axis="0 1 0").replace('ixx="0" ', 'ixx="0.004" ').replace(
        "</robot>", '<link name="lamp"><inertial><mass value="0.2"/><inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" '
        'izz="0.001"/></inertial></link><joint name="pan" type="continuous"><parent link="boom"/><child link="lamp"/>'
        '<origin xyz="0.5 0.05 0.02" rpy="0.1 0.2 0.3"/><axis xyz="1 0 1"/></joint></robot>')
    bending = {"z": {"direction": [0, 0, 1], "stiffness": 40.0, "modes": 2},
               "y": {"direction": [0, 1, 0], "stiffness": 30.0, "modes": 2}}
    return load(urdf, {"flexible_links": {"boom": {"end": [LENGTH, 0, 0], "damping": 0.02, "bending": bending,
                                                   "twist": {"stiffness": 20.0}}}, **options})


@pytest.mark.parametrize("options", [{}, {"base": "floating"}], ids=["fixed", "floating"])
def test_motor_power_equals_energy_rate_plus_damping_loss(options):
    robot, rng = spatial(**options), np.random.default_rng(3)
    q, qd, qdd = 0.05 * rng.normal(size=(3, robot.n))
    q[vibration.modal_columns(robot)] *= 0.02
    base = {"base": BaseState((0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0), 0.3 * rng.normal(size=6))} if options else {}
    found = robot.solve(q, qd, 20.0 * qdd, np.zeros(robot.n), **base)
    acceleration = np.array([found.positions[name][2] for name in robot.joint_names])
    damping = {mode.joint: mode.damping for beam in vibration.flexible_links(robot) for mode in beam.modes}
    power = sum(found.torques[0][k] * qd[k] if name not in damping else -damping[name] * qd[k]**2
                for k, name in enumerate(robot.joint_names))
    h = 1e-5

    def energy(t):
        moved = {}
        if options:
            state = base["base"]
            v, w = np.split(state.velocity, 2)
            turn = np.r_[0.5 * t * w, 1.0]
            moved["base"] = BaseState(state.position + t * v, turn / np.linalg.norm(turn),
                                      state.velocity + t * found.base[1])
        return robot.energy(q + t * qd + 0.5 * t * t * acceleration, qd + t * acceleration, **moved).total

    slopes = [(energy(k * h) - energy(-k * h)) / (2.0 * k * h) for k in (1, 2)]
    assert abs((4.0 * slopes[0] - slopes[1]) / 3.0 - power) < 1e-6 * max(1.0, abs(power))
    assert len(vibration.driven_joints(robot)) == 3 and len(damping) == 5


def test_rates_of_torques_and_root_moments_match_differences_along_the_motion():
    robot = spatial()
    rng = np.random.default_rng(4)
    driven = len(vibration.driven_joints(robot))
    amplitude, phase = rng.uniform(0.3, 0.8, driven), rng.uniform(0.0, 6.0, driven)
    h, w = 2e-4, 5.0
    times = 0.05 + h * np.arange(-3, 4)

    def wave(t):
        return np.array([amplitude * w**k * np.sin(w * t + phase + 0.5 * np.pi * k) for k in range(4)])

    predictor = vibration.FlexiblePredictor(robot)
    predictor.advance(0.0, wave(0.0))
    whole = np.array([predictor.advance(t, wave(t)) for t in times]).swapaxes(0, 1)
    tau, rate = robot.torque_and_rate(*whole)
    weights = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / (60.0 * h)
    columns = [k for k in range(robot.n) if k not in predictor.columns]
    np.testing.assert_allclose(weights @ tau[:, columns], rate[3, columns], atol=1e-6 * np.abs(rate[3]).max())
    for load_ in vibration.root_loads(robot, *whole)["boom"].values():
        assert abs(weights @ load_.moment[:, 0] - load_.moment[3, 1]) < 1e-5 * np.abs(load_.moment[:, 1]).max()


def test_root_moment_at_rest_equals_the_gravity_moment_beyond_the_root():
    bending = {"z": {"direction": [0, 0, 1], "stiffness": STIFFNESS, "section_modulus": 2e-6}}
    robot = arm(axis="0 1 0", entry={"bending": bending})
    motion = np.zeros((4, 2))
    whole = vibration.FlexiblePredictor(robot).advance(0.0, motion)
    root = vibration.root_loads(robot, *whole)["boom"]["z"]
    hub = robot.gravity(whole[0])[robot.independent.index("hub")]
    # bending upwards turns about -y: the moment of the weight about the hub, seen along that axis
    assert abs(root.moment[0] + hub) < 1e-9 and abs(root.stress[0] - root.moment[0] / 2e-6) < 1e-3
    tip = vibration.tip_deflection(robot, whole[0])["boom"]
    weight, hand = 9.81 * MASS, 9.81 * 0.5
    small = -(weight / 8.0 + hand * (1.0 / 3.0 + 0.1 / 2.0)) / STIFFNESS  # first order, by the textbook
    assert abs(tip[2] / small - 1.0) < 0.02


def test_forward_dynamics_inverts_inverse_dynamics_with_flexible_links():
    robot, rng = spatial(), np.random.default_rng(5)
    q, qd, qdd = 0.1 * rng.normal(size=(3, robot.n))
    found = robot.solve(q, qd, qdd, np.zeros(robot.n))
    acceleration = np.array([found.positions[name][2] for name in robot.joint_names])
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, found.torques[0]), acceleration, atol=1e-7)


def test_tabulated_mode_shapes_give_bounded_frequencies():
    x = np.linspace(0.0, 1.0, 60)
    table = {"positions": x.tolist(), "deflections": [(x**2).tolist(), (x**3).tolist()]}
    same = arm(modes=2, shapes="polynomial")  # the table spans other cubics; frequencies with more modes are lower bounds
    robot = arm(modes=2, table=table)
    found, finer = held_frequencies(robot), held_frequencies(arm(modes=4))
    assert (found > finer[:2] * (1.0 - 1e-9)).all() and abs(found[0] / finer[0] - 1.0) < 1e-3
    assert robot.joint_names == same.joint_names


def test_residual_vibration_bounds_the_swing_after_the_motion():
    robot, times = arm(), np.linspace(0.0, 1.6, 321)
    motion = np.array([[slew(1.0, 0.6)(t), slew(0.3, 0.6)(t)] for t in times]).transpose(2, 0, 1)
    whole = vibration.predict_deflection(robot, times, *motion)
    end = int(np.searchsorted(times, 0.6)) + 1
    swing = np.abs(vibration.tip_deflection(robot, whole[0, end:])["boom"][:, 1]).max()
    left = vibration.residual_vibration(robot, whole[:, end])["boom"]
    assert swing > 0.01 and swing < left * 1.02 < swing * 1.2


@pytest.mark.parametrize("entry, words", [
    ({"end": [0, 0, 0]}, "another point is needed"),
    ({"mass": 3.0}, "at most 0.8, that of the link"),
    ({"end": [0.7, 0, 0]}, "not in the middle"),
    ({"bending": {"y": {"direction": [1, 0, 0], "stiffness": 1.0}}}, "a direction perpendicular to the beam"),
    ({"twist": {"stiffness": 1.0}}, "the moment of inertia of the beam about its axis is"),
    ({"bending": {"y": {"direction": [0, 1, 0], "stiffness": 1.0, "table": {
        "positions": [0, 0.5, 0.9], "deflections": [[0, 1, 2]]}}}}, "numbers that increase from 0 to 1 are needed"),
    ({"bending": {"y": {"direction": [0, 1, 0], "stiffness": 1.0, "modes": 5}}}, "modes is 5"),
])
def test_invalid_flexible_links_are_rejected(entry, words):
    with pytest.raises(ModelError, match=words):
        arm(entry=entry)


def test_functions_of_flexible_links_reject_rigid_robots_and_moving_bases():
    with pytest.raises(InputError, match="has no flexible links"):
        vibration.free_vibration(load(boom_urdf()), np.zeros(2))
    with pytest.raises(InputError, match="predicted on a fixed base"):
        vibration.FlexiblePredictor(spatial(base="floating"))
    with pytest.raises(ModelError, match="link 'arm' does not exist"):
        load(boom_urdf(), {"flexible_links": {"arm": {"end": [1, 0, 0], "bending": {
            "y": {"direction": [0, 1, 0], "stiffness": 1.0}}}}})


@pytest.mark.parametrize("seed", seeds(1))
def test_torques_and_rates_of_random_flexible_arms_match_pinocchio(seed):
    torque, rate, mode = compare_arm(seed)
    assert torque < 1e-11 and rate < 1e-7 and mode < 1e-9
