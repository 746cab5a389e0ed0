"""Rolling contact: benchmark bicycle, mecanum, omni and steered wheels, a ball, ground forces, dead reckoning."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import BaseState, InputError, Loads, ModelError, WheelOdometry, load, tip_over_margin, wheel_loads
from support.rolling_machines import (
    BICYCLE_FILE,
    BICYCLE_URDF,
    RADIUS,
    VEHICLES,
    VehicleOracle,
    joint_text,
    link_text,
)

FORWARD = 5.0  # m/s
BICYCLE_MATRICES = (  # M, C1, K0, K2 of the paper's (5.4)
    np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]]),
    np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]]),
    np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]]),
    np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]]))


@pytest.fixture(scope="module")
def bicycle():
    return load(BICYCLE_URDF, BICYCLE_FILE)


def lean_and_steer(robot, lean, lean_rate, steer, steer_rate, torque=0.0):
    """Return the accelerations of lean and steer at speed FORWARD."""
    q, qd, tau = np.zeros((3, robot.n))
    number = robot.joint_names.index
    q[number("steer")], qd[number("steer")], tau[number("steer")] = steer, steer_rate, torque
    qd[number("rear")] = FORWARD / 0.3
    base = BaseState((0.0, 0.0, 0.0), (np.sin(0.5 * lean), 0.0, 0.0, np.cos(0.5 * lean)), (0.0, 0.0, 0.0, lean_rate, 0.0, 0.0))
    found = robot.response(q, qd, tau, base=base)
    return np.array([found.base[1][3], found.positions["steer"][2]])


def test_linearized_bicycle_matches_the_published_benchmark(bicycle):
    """Meijaard, Papadopoulos, Ruina, Schwab, Proc. R. Soc. A 463 (2007), table 1: linearized about straight riding."""
    M, C1, K0, K2 = BICYCLE_MATRICES
    K = 9.81 * K0 + FORWARD**2 * K2
    expected = np.linalg.solve(M, np.column_stack((-K[:, 0], -FORWARD * C1[:, 0], -K[:, 1], -FORWARD * C1[:, 1], [0.0, 1.0])))
    h = 1e-6
    slopes = [(lean_and_steer(bicycle, *(h * unit)) - lean_and_steer(bicycle, *(-h * unit))) / (2.0 * h) for unit in np.eye(5)]
    np.testing.assert_allclose(np.array(slopes).T, expected, rtol=2e-7, atol=1e-7)


def test_bicycle_inverse_dynamics_inverts_its_response_with_consistent_rates(bicycle):
    """Speed and steering change; the remaining motion follows from rolling."""
    robot, number = bicycle, bicycle.joint_names.index
    columns = [number("rear"), number("steer")]

    def joints(t):
        motion = np.zeros((4, robot.n))
        motion[:, number("rear")] = 3.0 * t, 3.0 + 2.0 * t, 2.0, 0.0
        motion[:, number("steer")] = np.array([np.sin(2.0 * t), 2.0 * np.cos(2.0 * t), -4.0 * np.sin(2.0 * t),
                                               -8.0 * np.cos(2.0 * t)]) * 0.2
        return motion

    start = BaseState((0.0, 0.0, 0.0), (np.sin(0.05), 0.0, 0.0, np.cos(0.05)), (0.0, 0.0, 0.0, 0.3, 0.0, 0.0))
    found = robot.solve(*joints(0.0), base=start)
    back = robot.response(*joints(0.0)[:2], found.torques[0], base=start)
    np.testing.assert_allclose(back.base[1], found.base[1], atol=1e-9)
    np.testing.assert_allclose([back.positions[robot.joint_names[k]][2] for k in columns], joints(0.0)[2, columns], atol=1e-9)
    # along the motion: a Taylor step of third order in pose and lean rate, differences of second order
    h = 1e-4
    ends = []
    for sign in (1.0, -1.0):
        t = sign * h
        v, vd = found.base[0] + 0.5 * t * found.base[1], found.base[0] + t * found.base[1] + 0.5 * t * t * found.base[2]
        turn = pin.exp3(t * v[3:] + t**3 / 12.0 * np.cross(found.base[0][3:], found.base[1][3:]))
        rotation = start.rotation @ turn
        quaternion = pin.Quaternion(rotation).coeffs()
        middle = start.rotation @ pin.exp3(0.5 * t * found.base[0][3:])
        state = BaseState(start.position + t * middle @ v[:3], quaternion, vd)
        joint = joints(t)
        joint[0, number("front")] = t * found.positions["front"][1]
        ends.append(robot.solve(*joint, base=state).torques[0])
    slope = (ends[0] - ends[1]) / (2.0 * h)
    np.testing.assert_allclose(found.torques[1][columns], slope[columns], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in VEHICLES if name != "castor"])
def test_torques_and_rates_of_vehicles_match_pinocchio_with_multipliers(name):
    urdf, file = VEHICLES[name]
    truth, robot = VehicleOracle(urdf, file), load(urdf, file)
    order = [truth.names.index(one) for one in robot.joint_names]
    motion = truth.motion(0.4)[:, order]
    found = robot.solve(*motion, base=BaseState())
    for k in range(2):
        np.testing.assert_allclose(found.base[k], truth.base(0.4, k), atol=1e-9)
    tau, rate = robot.torque_and_rate(*motion, base=BaseState())
    expected, slope = truth.sample(0.4)
    np.testing.assert_allclose(tau, expected[order], atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(rate, slope[order], atol=1e-7 * np.abs(slope).max())


def test_wheel_ground_forces_sum_to_the_ground_reaction():
    urdf, file = VEHICLES["four steered wheels"]
    truth, robot = VehicleOracle(urdf, file), load(urdf, file)
    motion = truth.motion(0.4)[:, [truth.names.index(one) for one in robot.joint_names]]
    found = robot.solve(*motion, base=BaseState())
    loads = wheel_loads(robot, found, BaseState())
    force, moment = truth.ground_reaction(0.4)
    total = sum(one.force for one in loads.values())
    np.testing.assert_allclose(total, force, atol=1e-9 * np.linalg.norm(force))
    np.testing.assert_allclose(sum(np.cross(one.point, one.force) for one in loads.values()), moment, atol=1e-7)
    zmp = np.array([-moment[1], moment[0]]) / force[2]
    assert abs(tip_over_margin(loads) - min(0.5 - abs(zmp[0]), 0.4 - abs(zmp[1]))) < 1e-9
    for one in loads.values():
        np.testing.assert_allclose(one.friction_use, np.hypot(*one.force[:2]) / (0.8 * one.force[2]), rtol=1e-9)
        assert abs(one.point[2]) < 1e-12
    assert any("[normal]" in name for name in found.open_multipliers)


def test_tip_over_margin_is_negative_with_an_overhanging_load():
    urdf, file = VEHICLES["differential"]
    robot = load(urdf, file)
    still = np.zeros((4, robot.n))
    steady = tip_over_margin(wheel_loads(robot, robot.solve(*still, base=BaseState()), BaseState()))
    loaded = robot.with_payload("chassis", 200.0, (2.0, 0.0, 0.5))
    tipping = tip_over_margin(wheel_loads(loaded, loaded.solve(*still, base=BaseState()), BaseState()))
    assert steady > 0.0 > tipping


def test_rolling_ball_matches_the_closed_form():
    """A force F at the centre of a ball accelerates it by F / (m + I / r^2)."""
    urdf = ('<robot name="ball">' + link_text("ball", 2.0, (0, 0, 0), (0.05,) * 3)
            + link_text("pin", 1e-9, (0, 0, 0), (1e-12,) * 3)
            + joint_text("j", "ball", "pin", (0, 0, 0), (0, 0, 1)) + "</robot>")
    robot = load(urdf, {"base": "floating", "wheels": {"skin": {
        "link": "ball", "shape": "sphere", "radius": 0.2, "holds": ["along", "across", "normal"], "friction": 0.5}}})
    turned = BaseState((0.0, 0.0, 0.2), np.array([0.5, 0.5, 0.1, 0.7]) / np.linalg.norm([0.5, 0.5, 0.1, 0.7]),
                       (0.0, 0.0, 0.0, 1.0, 2.0, 3.0))
    found = robot.solve(*np.zeros((4, 1)), base=turned, loads=Loads(world_wrenches={"ball": [6.0, 3.0, 0.0, 0.0, 0.0, 0.0]}))
    acceleration = turned.rotation @ found.base_acceleration[:3]
    np.testing.assert_allclose(acceleration, [6.0 / 3.25, 3.0 / 3.25, 0.0], atol=1e-7)
    velocity, turning = turned.rotation @ found.base[0][:3], turned.rotation @ found.base[0][3:]
    np.testing.assert_allclose(velocity, np.cross(turning, [0.0, 0.0, 0.2]), atol=1e-12)
    load_ = wheel_loads(robot, found, turned)["skin"]
    np.testing.assert_allclose(load_.force, [6.0 / 3.25 * 2.0 - 6.0, 3.0 / 3.25 * 2.0 - 3.0, 2.0 * 9.81], atol=1e-6)


def test_dead_reckoning_of_a_differential_drive_at_constant_speeds_is_a_circle():
    urdf, file = VEHICLES["differential"]
    robot = load(urdf, file)
    left, right = (robot.joint_names.index(name) for name in ("left_drive", "right_drive"))
    odometry = WheelOdometry(robot)
    for t in np.linspace(0.0, 2.0, 41):
        motion = np.zeros((4, robot.n))
        motion[:2, left], motion[:2, right] = (4.0 * t, 4.0), (6.0 * t, 6.0)
        state = odometry.advance(t, *motion)
    speed, turning = RADIUS * 5.0, RADIUS * 2.0 / 0.8
    angle, r = turning * 2.0, speed / turning
    np.testing.assert_allclose(state.position, [r * np.sin(angle), r * (1.0 - np.cos(angle)), 0.0], atol=1e-7)
    np.testing.assert_allclose(state.quaternion, [0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle)], atol=1e-8)


def test_castor_velocity_input_is_ignored():
    urdf, file = VEHICLES["castor"]
    robot = load(urdf, file)
    rng = np.random.default_rng(0)
    motion = rng.normal(size=(4, robot.n))
    other = motion.copy()
    columns = [robot.joint_names.index(name) for name in ("swivel", "castor_spin")]
    other[1:, columns] += 3.0
    np.testing.assert_array_equal(robot.torque_and_rate(*motion, base=BaseState())[0],
                                  robot.torque_and_rate(*other, base=BaseState())[0])
    found = robot.solve(*motion, base=BaseState())
    truth = VehicleOracle(urdf, file)
    pose = dict(zip(robot.joint_names, motion[0], strict=True))
    A = truth.rolling(np.array([pose[name] for name in truth.names]))
    v = np.concatenate((found.base[0], [found.positions[name][1] for name in truth.names]))
    np.testing.assert_allclose(A @ v, 0.0, atol=1e-12)
    # Pinocchio's equations of motion: what is left without the motors' torques are ground forces
    a = np.concatenate((found.base[1], [found.positions[name][2] for name in truth.names]))
    angles, h = np.array([pose[name] for name in truth.names]), 1e-6
    drift = (truth.rolling(angles + h * v[6:]) - truth.rolling(angles - h * v[6:])) @ v / (2.0 * h)
    assert np.abs(A @ a + drift).max() < 1e-7 * np.abs(a).max()  # rows are along axes of the level base, which turn with it
    tau = dict(zip(robot.joint_names, found.torques[0], strict=True))
    rest = truth.load(angles, v, a) - np.r_[np.zeros(6), [tau[name] for name in truth.names]]
    held = np.linalg.lstsq(A.T, rest, rcond=None)[0]
    np.testing.assert_allclose(A.T @ held, rest, atol=1e-9 * np.abs(rest).max())


@pytest.mark.parametrize("change, words", [
    ({"shape": "sphere"}, "is of a disc"),
    ({"holds": ["roller"]}, "belong together"),
    ({"roller_angle": 0.8, "holds": ["roller", "across"]}, "holds roller and normal only"),
    ({"axis": [0, 0, 0]}, "turns about an axis"),
])
def test_contradictory_wheel_declarations_are_rejected(change, words):
    urdf, file = VEHICLES["differential"]
    left = file["wheels"]["left"] | change
    with pytest.raises(ModelError, match=words):
        load(urdf, {**file, "wheels": {**file["wheels"], "left": left}})


def test_wheel_odometry_is_rejected_for_free_bases_and_robots_without_wheels(bicycle):
    with pytest.raises(InputError, match="do not determine base rx"):
        WheelOdometry(bicycle)
    with pytest.raises(InputError, match="has no wheels"):
        WheelOdometry(load('<robot name="r">' + "".join(link_text(name, 1.0, (0, 0, 0), (1, 1, 1)) for name in "ab")
                           + joint_text("j", "a", "b", (0, 0, 0), (0, 0, 1)) + "</robot>"))


def test_vehicle_without_normal_contact_is_rejected():
    urdf, file = VEHICLES["differential"]
    wheels = {name: {**wheel, "holds": [way for way in wheel["holds"] if way != "normal"] or ["along"]}
              for name, wheel in file["wheels"].items()}
    with pytest.raises(ModelError, match="nothing decides"):
        load(urdf, {**file, "wheels": wheels})
