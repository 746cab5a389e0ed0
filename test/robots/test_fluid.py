"""Robots in a fluid: torques, rates and accelerations by Pinocchio with Lamb's terms written anew, energy, buoyancy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import BaseState, ModelError, load
from support.rolling_machines import joint_text, link_text

SMOOTHING, DENSITY = 0.05, 1025.0
STEPS, WEIGHTS = np.arange(-3, 4), np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0
AXES = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1)]  # of joints; the first three are a spherical joint


def eel(base, drag=True):
    """Head, a spherical joint of three turns, a module, and a tail; every module in water, with turned axes."""
    urdf, parent = '<robot name="eel">' + link_text("head", 1.2, (-0.1, 0.01, 0.0), (0.01, 0.02, 0.02)), "head"
    for k, axis in enumerate(AXES):
        solid = k > 1
        urdf += (link_text(f"l{k}", 0.9, (-0.12, 0.0, 0.01), (0.004, 0.012, 0.012)) if solid else f'<link name="l{k}"/>')
        urdf += joint_text(f"j{k}", parent, f"l{k}", (-0.2 if k in (0, 3) else 0.0, 0.0, 0.0), axis)
        parent = f"l{k}"
    rng, links = np.random.default_rng(0), {}
    for name in ("head", "l2", "l3"):
        links[name] = {"center": [-0.1, 0.005, 0.01], "rpy": rng.uniform(-0.5, 0.5, 3).tolist(), "volume": 0.0011,
                       "added_mass": [0.1, 1.1, 0.9], "added_inertia": [0.001, 0.004, 0.006]}
        if drag:
            links[name] |= {"linear_drag": [0.2, 0.5, 0.4], "quadratic_drag": [1.0, 9.0, 7.0],
                            "angular_drag": [0.01, 0.1, 0.2]}
    return urdf + "</robot>", {"base": base, "fluid": {"density": DENSITY, "smoothing": SMOOTHING, "links": links}}


class Truth:
    """Equations of motion of the eel by Pinocchio's kinematics and rigid dynamics."""

    def __init__(self, urdf, file):
        self.model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        self.data, self.links = self.model.createData(), file["fluid"]["links"]
        self.n = self.model.nv - 6

    def _pose(self, base, q):
        return np.concatenate((base.position, base.quaternion, *([np.cos(x), np.sin(x)] for x in q)))

    def efforts(self, base, q, v, a):
        """Efforts (6 + n,) of the base and the joints."""
        at = self._pose(base, q)
        tau = pin.rnea(self.model, self.data, at, v, a)
        pin.forwardKinematics(self.model, self.data, at, v, a)
        pin.computeJointJacobians(self.model, self.data, at)
        pin.updateFramePlacements(self.model, self.data)
        for name, body in self.links.items():
            frame, M = self.model.getFrameId(name), pin.SE3(pin.rpy.rpyToMatrix(*body["rpy"]), np.array(body["center"]))
            spatial = M.actInv(pin.getFrameVelocity(self.model, self.data, frame, pin.LOCAL))
            rate = M.actInv(pin.getFrameAcceleration(self.model, self.data, frame, pin.LOCAL))  # of the six numbers
            A = np.array([*body["added_mass"], *body["added_inertia"]])
            momentum = pin.Force(A * spatial.vector)
            wrench = A * rate.vector + (spatial.cross(momentum)).vector  # V x* (A V)
            V = spatial.vector
            zero = [0.0] * 3
            linear = np.array([*body.get("linear_drag", zero), *zero])
            square = np.array([*body.get("quadratic_drag", zero), *body.get("angular_drag", zero)])
            wrench = wrench + linear * V + square * V * np.sqrt(V**2 + SMOOTHING**2)
            R = self.data.oMf[frame].rotation @ M.rotation
            wrench[:3] -= R.T @ np.array([0.0, 0.0, DENSITY * body["volume"] * 9.81])
            J = M.toActionMatrixInverse() @ pin.getFrameJacobian(self.model, self.data, frame, pin.LOCAL)
            tau = tau + J.T @ wrench
        return tau


def sines(size, count, seed):
    rng = np.random.default_rng(seed)
    A, w, phase = rng.uniform(0.2, size, count), rng.uniform(1.0, 3.0, count), rng.uniform(0.0, 6.0, count)
    return lambda t, k: A * w**k * np.sin(w * t + phase + 0.5 * np.pi * k)


def test_torques_base_wrench_and_rates_of_a_given_motion_are_pinocchios():
    """The base moves by a twist in time; its pose along the way by the exponential map of high order."""
    urdf, file = eel("prescribed")
    truth, robot = Truth(urdf, file), load(urdf, file)
    joints, twist = sines(0.6, truth.n, 1), sines(0.5, 6, 2)
    start = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.4, 0.5), np.array([0.1, 0.2, 0.3]))

    def base(t):
        """State at t: many small steps of fourth order (Magnus)."""
        pose, steps = start.copy(), 64
        h = t / steps
        for k in range(steps):
            one, two = (twist(h * (k + 0.5 + s * np.sqrt(3.0) / 6.0), 0) for s in (-1.0, 1.0))
            bracket = pin.Motion(two).cross(pin.Motion(one)).vector
            pose = pose * pin.exp6(pin.Motion(0.5 * h * (one + two) - np.sqrt(3.0) / 12.0 * h * h * bracket))
        return BaseState(pose.translation, pin.Quaternion(pose.rotation).coeffs(), twist(t, 0))

    def efforts(t):
        v, a = np.r_[twist(t, 0), joints(t, 1)], np.r_[twist(t, 1), joints(t, 2)]
        return truth.efforts(base(t), joints(t, 0), v, a)

    rates = np.array([twist(0.0, 1), twist(0.0, 2)])
    found = robot.solve(*(joints(0.0, k) for k in range(4)), base=base(0.0).with_motion(rates=rates))
    expected, h = efforts(0.0), 5e-3
    slope = WEIGHTS @ np.array([efforts(k * h) for k in STEPS]) / h
    ours = np.r_[found.base_wrench, found.torques[0]], np.r_[found.base_wrench_rate, found.torques[1]]
    np.testing.assert_allclose(ours[0], expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(ours[1], slope, atol=1e-7 * np.abs(slope).max())


def test_head_of_a_free_eel_accelerates_as_pinocchios_equations_say():
    urdf, file = eel("floating")
    truth, robot = Truth(urdf, file), load(urdf, file)
    joints = sines(0.6, truth.n, 3)
    state = BaseState((0.0, 0.1, 0.2), pin.Quaternion(pin.rpy.rpyToMatrix(0.4, 0.2, -0.9)).coeffs(), 0.4 * np.ones(6))
    found = robot.solve(*(joints(0.0, k) for k in range(4)), base=state)
    v, a = np.r_[state.velocity, joints(0.0, 1)], np.r_[found.base[1], joints(0.0, 2)]
    left = truth.efforts(state, joints(0.0, 0), v, a)
    assert np.abs(left[:6]).max() < 1e-10 * np.abs(left).max()
    np.testing.assert_allclose(found.torques[0], left[6:], atol=1e-11 * np.abs(left).max())
    back = robot.forward_dynamics(joints(0.0, 0), joints(0.0, 1), found.torques[0], base=state)
    np.testing.assert_allclose(back, joints(0.0, 2), atol=1e-9)


def test_energy_of_body_and_water_changes_by_the_power_of_the_motors_alone_without_drag():
    urdf, file = eel("floating", drag=False)
    robot, rng = load(urdf, file), np.random.default_rng(5)
    q, qd, qdd = rng.uniform(-0.5, 0.5, (3, robot.n))
    state = BaseState((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), rng.uniform(-0.5, 0.5, 6))
    found = robot.solve(q, qd, qdd, np.zeros(robot.n), base=state)

    def energy(t):
        pose = pin.exp6(pin.Motion(t * state.velocity + 0.5 * t * t * found.base[1]))
        moved = BaseState(pose.translation, pin.Quaternion(pose.rotation).coeffs(), state.velocity + t * found.base[1])
        return robot.energy(q + t * qd + 0.5 * t * t * qdd, qd + t * qdd, base=moved).total

    h = 1e-3
    slope = (8.0 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12.0 * h)
    assert abs(slope - found.torques[0] @ qd) < 1e-5 * np.abs(found.torques[0]).max()


def test_a_body_of_the_density_of_water_floats_and_sinks_without_buoyancy():
    urdf = '<robot name="r">' + link_text("a", 2.0, (0, 0, 0), (0.1,) * 3) + link_text("b", 1.0, (0, 0, 0), (0.1,) * 3)
    urdf += joint_text("j", "a", "b", (0, 0, 0), (0, 0, 1)) + "</robot>"
    body = {"volume": 0.003, "added_mass": [1.0, 1.0, 1.0]}
    floating = load(urdf, {"base": "floating", "fluid": {"links": {"a": body}}})
    found = floating.solve(*np.zeros((4, 1)), base=BaseState())
    np.testing.assert_allclose(found.base[1], 0.0, atol=1e-9)
    sinking = load(urdf, {"base": "floating", "fluid": {"links": {"a": {**body, "volume": 0.0}}}})
    assert abs(sinking.solve(*np.zeros((4, 1)), base=BaseState()).base[1][2] + 9.81 * 3.0 / 4.0) < 1e-9


def test_sensitivities_are_differences_of_sixth_order():
    urdf, file = eel("prescribed")
    robot, rng = load(urdf, file), np.random.default_rng(6)
    motion = rng.uniform(-0.6, 0.6, (3, robot.n))
    base = {"base": BaseState(velocity=0.3 * np.ones(6), acceleration=np.ones(6))}
    for order, table in enumerate(robot.sensitivities(*motion, **base)):
        for k in range(robot.n):
            moved = [motion + step * 1e-3 * np.eye(3)[order][:, None] * np.eye(robot.n)[k] for step in STEPS]
            slope = WEIGHTS @ np.array([robot.inverse_dynamics(*one, **base) for one in moved]) / 1e-3
            np.testing.assert_allclose(table[:, k], slope, atol=1e-8)


def test_drag_below_zero_is_refused_by_name():
    urdf, file = eel("floating")
    file["fluid"]["links"]["head"]["quadratic_drag"] = [1.0, -1.0, 0.0]
    with pytest.raises(ModelError, match="no number below zero"):
        load(urdf, file)
