"""A three-dimensional eel in water, and its efforts by Pinocchio's kinematics with Lamb's terms in spatial vectors."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from rnea_ros import BaseState
from support.rolling_machines import STEPS, WEIGHTS, joint_text, link_text

SMOOTHING, DENSITY = 0.05, 1025.0
AXES = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1)]  # joint axes; the first three form a spherical joint


def eel(base, drag=True):
    """Return head, spherical joint of three revolute joints, module, and tail; all are in water and have rotated axes."""
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

    def __init__(self, truth):
        self.truth, self.joints, self.twist = truth, sines(0.6, truth.n, 1), sines(0.5, 6, 2)

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
