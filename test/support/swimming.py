"""A three-dimensional eel in water, and its efforts by Pinocchio's kinematics with Lamb's terms in spatial vectors."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from rnea_ros import BaseState, load
from support.rolling_machines import STEPS, WEIGHTS, joint_text, link_text

SMOOTHING, DENSITY = 0.05, 1025.0
AXES = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1)]  # joint axes; the first three form a spherical joint


def eel(base, drag=True, seed=None):
    """Return head, spherical joint of three revolute joints, modules, and tail; all are in water and have rotated axes.

    seed: draws the number of further modules, their axes, and all coefficients
    """
    rng, axes = np.random.default_rng(seed or 0), list(AXES)
    if seed is not None:
        axes = [*AXES[:3], *rng.normal(size=(rng.integers(1, 5), 3))]

    def about(*values):
        return [float(x) if seed is None else float(x * rng.uniform(0.6, 1.5)) for x in values]

    urdf, parent, solid = '<robot name="eel">', "head", []
    urdf += link_text("head", *about(1.2), (-0.1, 0.01, 0.0), (0.01, 0.02, 0.02))
    for k, axis in enumerate(axes):
        if k > 1:
            solid.append(f"l{k}")
            urdf += link_text(f"l{k}", *about(0.9), (-0.12, 0.0, 0.01), (0.004, 0.012, 0.012))
        else:
            urdf += f'<link name="l{k}"/>'
        urdf += joint_text(f"j{k}", parent, f"l{k}", (-0.2 if k in (0, 3) or k > 3 else 0.0, 0.0, 0.0), axis)
        parent = f"l{k}"
    links = {}
    for name in ("head", *solid):
        links[name] = {"center": [-0.1, 0.005, 0.01], "rpy": rng.uniform(-0.5, 0.5, 3).tolist(), "volume": about(0.0011)[0],
                       "added_mass": about(0.1, 1.1, 0.9), "added_inertia": about(0.001, 0.004, 0.006)}
        if drag:
            links[name] |= {"linear_drag": about(0.2, 0.5, 0.4), "quadratic_drag": about(1.0, 9.0, 7.0),
                            "angular_drag": about(0.01, 0.1, 0.2)}
    return urdf + "</robot>", {"base": base, "fluid": {"density": DENSITY, "smoothing": SMOOTHING, "links": links}}


class EelOracle:
    """Equations of motion of the eel by Pinocchio's kinematics and rigid dynamics."""

    def __init__(self, urdf, file):
        self.model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        self.data, self.links = self.model.createData(), file["fluid"]["links"]
        self.n = self.model.nv - 6

    def _pose(self, base, q):
        return np.concatenate((base.position, base.quaternion, *([np.cos(x), np.sin(x)] for x in q)))

    def efforts(self, base, q, v, a):
        """Return efforts (6 + n,) of base and joints."""
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


class GivenMotion:
    """Motion of base and joints in time, and its efforts. The base is at START at t = 0."""

    START = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.4, 0.5), np.array([0.1, 0.2, 0.3]))

    def __init__(self, truth, seed=1):
        self.truth, self.joints, self.twist = truth, sines(0.6, truth.n, seed), sines(0.5, 6, seed + 1)

    def base(self, t):
        """Return the state at t by many small Magnus steps of fourth order."""
        pose, steps = self.START.copy(), 64
        h = t / steps
        for k in range(steps):
            one, two = (self.twist(h * (k + 0.5 + s * np.sqrt(3.0) / 6.0), 0) for s in (-1.0, 1.0))
            bracket = pin.Motion(two).cross(pin.Motion(one)).vector
            pose = pose * pin.exp6(pin.Motion(0.5 * h * (one + two) - np.sqrt(3.0) / 12.0 * h * h * bracket))
        return BaseState(pose.translation, pin.Quaternion(pose.rotation).coeffs(), self.twist(t, 0))

    def efforts(self, t):
        """Return the efforts (6 + n,) of base and joints at t."""
        v, a = np.r_[self.twist(t, 0), self.joints(t, 1)], np.r_[self.twist(t, 1), self.joints(t, 2)]
        return self.truth.efforts(self.base(t), self.joints(t, 0), v, a)

    def rates(self, t, h=5e-3):
        """Return the rates of the efforts by sixth-order differences."""
        return WEIGHTS @ np.array([self.efforts(t + k * h) for k in STEPS]) / h


class FreeMotion:
    """Eel whose joints follow sines and whose head follows from the equations of motion, integrated from t = 0."""

    def __init__(self, truth, seed=1):
        self.truth, self.joints = truth, sines(0.6, truth.n, seed)
        start = GivenMotion.START
        self.state = np.r_[start.translation, pin.Quaternion(start.rotation).coeffs(), sines(0.5, 6, seed + 1)(0.0, 0)]

    @staticmethod
    def base(state):
        return BaseState(state[:3], state[3:7] / np.linalg.norm(state[3:7]), state[7:])

    def accelerations(self, t, state):
        """Accelerations (6 + n,) of base and joints: the base needs no effort."""
        base, q, v = self.base(state), self.joints(t, 0), np.r_[state[7:], self.joints(t, 1)]
        a = np.r_[np.zeros(6), self.joints(t, 2)]
        rest = self.truth.efforts(base, q, v, a)[:6]
        M = np.array([self.truth.efforts(base, q, v, a + unit)[:6] - rest for unit in np.eye(6, len(a))]).T
        for _ in range(2):  # the second one takes what rounding left
            a[:6] -= np.linalg.solve(M, self.truth.efforts(base, q, v, a)[:6])
        return v, a

    def slope(self, t, state):
        turn, w = state[3:7] / np.linalg.norm(state[3:7]), state[10:13]
        rate = 0.5 * np.r_[turn[3] * w + np.cross(turn[:3], w), -turn[:3] @ w]
        return np.r_[pin.Quaternion(turn).toRotationMatrix() @ state[7:10], rate, self.accelerations(t, state)[1][:6]]

    def efforts(self, t, state=None, since=0.0):
        """Torques (n,) of the joints at t; state: of the time `since`, else that of t = 0."""
        state = self.state if state is None else state
        if t != since:
            state = solve_ivp(self.slope, (since, t), state, method="DOP853", rtol=1e-13, atol=1e-15).y[:, -1]
        v, a = self.accelerations(t, state)
        return self.truth.efforts(self.base(state), self.joints(t, 0), v, a)[6:]

    def rates(self, h=5e-4):
        return WEIGHTS @ np.array([self.efforts(k * h) for k in STEPS]) / h


def compare_eel(base, seed):
    """Largest errors of torques, their rates and the head's acceleration of a random eel, as shares of the largest."""
    urdf, file = eel(base, seed=seed)
    truth, robot = EelOracle(urdf, file), load(urdf, file)
    if base == "floating":
        moving = FreeMotion(truth, seed)
        state, a = moving.base(moving.state), moving.accelerations(0.0, moving.state)[1]
        expected, slope = moving.efforts(0.0), moving.rates()
        found = robot.solve(*(moving.joints(0.0, k) for k in range(4)), base=state)
        ours, accelerations = found.torques, (found.base[1], a[:6])
    else:
        given = GivenMotion(truth, seed)
        state = given.base(0.0).with_motion(rates=np.array([given.twist(0.0, 1), given.twist(0.0, 2)]))
        expected, slope = given.efforts(0.0), given.rates(0.0, 5e-4)
        found = robot.solve(*(given.joints(0.0, k) for k in range(4)), base=state)
        ours = np.r_[found.base_wrench, found.torques[0]], np.r_[found.base_wrench_rate, found.torques[1]]
        accelerations = np.ones(2), np.ones(2)  # given
    pairs = (ours[0], expected), (ours[1], slope), accelerations
    return tuple(float(np.abs(one - two).max() / np.abs(two).max()) for one, two in pairs)
