"""A wheeled base with an arm, and a standing tripod: torques by Pinocchio with multipliers, in time."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from rnea_ros.algebra.vectors import rpy
from rnea_ros.robots.base_state import base_motion
from support.combined_machines import NODES, WEIGHTS, link
from support.machines import Body, text

RADIUS, GAUGE = 0.15, 0.25
STEP = 4e-3  # [s], step of differences
HOLDS = {"left": ["along", "across", "normal"], "right": ["along", "normal"], "castor": ["normal"]}


def _joint(name: str, parent: str, child: str, xyz, axis, rpy=(0.0, 0.0, 0.0)) -> str:
    return (f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{text(xyz)}" rpy="{text(rpy)}"/><axis xyz="{text(axis)}"/>'
            '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>')


def vehicle(seed: int = 0, holds=HOLDS) -> tuple[str, dict]:
    """Return URDF and robot file of a differential drive with a castor and an arm of two joints."""
    rng = np.random.default_rng(seed)
    body = "".join(link(rng, name) for name in ("base", "left_wheel", "right_wheel", "upper", "lower"))
    body += _joint("left", "base", "left_wheel", (0.0, GAUGE, RADIUS), (0.0, 1.0, 0.0))
    body += _joint("right", "base", "right_wheel", (0.0, -GAUGE, RADIUS), (0.0, 1.0, 0.0))
    body += _joint("shoulder", "base", "upper", (0.2, 0.0, 0.3), rng.normal(size=3))
    body += _joint("elbow", "upper", "lower", (0.1, 0.1, 0.4), rng.normal(size=3))
    disc = {"axis": [0.0, 1.0, 0.0], "radius": RADIUS}
    wheels: dict = {name: {"link": f"{name}_wheel", **disc, "holds": holds[name]} for name in ("left", "right")}
    wheels["castor"] = {"link": "base", "center": [-0.3, 0.05, RADIUS], **disc, "holds": holds["castor"]}
    return f'<robot name="vehicle">{body}</robot>', {"version": 1, "base": "floating", "wheels": wheels}


class VehicleOracle:
    """Efforts of the four joints on the level plane z = 0, where the base moves by the closed form of a differential drive.

    v = r (w_left + w_right) / 2 forwards and turns at r (w_right - w_left) / (2 gauge).
    """

    def __init__(self, urdf: str, seed: int = 0):
        self.body, rng = Body(urdf, free=True), np.random.default_rng(seed)
        self.names = ["left", "right", "shoulder", "elbow"]
        self.order = [self.body.number[name] for name in self.names]
        self.A, self.w, self.phase = rng.uniform(0.3, 0.8, 4), rng.uniform(1.0, 3.0, 4), rng.uniform(0.0, 6.0, 4)

    def joints(self, t: float, k: int) -> np.ndarray:
        """Return derivative k of the joint positions."""
        return self.A * self.w**k * np.sin(self.w * t + self.phase + 0.5 * np.pi * k)

    def base(self, t: float, k: int) -> np.ndarray:
        """Return derivative k of the base's velocity (6,) along its axes."""
        left, right = self.joints(t, k + 1)[:2]
        return np.array([0.5 * RADIUS * (left + right), 0.0, 0.0, 0.0, 0.0, 0.5 * RADIUS / GAUGE * (right - left)])

    def efforts(self, t: float) -> np.ndarray:
        """Joint efforts (4,): motors and contact forces balance the equations of motion, wheels' forces at their lowest
        points.
        """
        model = self.body.model
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        q[[k + 1 for k in self.order]] = self.joints(t, 0)
        v[:6], a[:6] = self.base(t, 0), self.base(t, 1)
        v[self.order], a[self.order] = self.joints(t, 1), self.joints(t, 2)
        load = self.body.rnea(q, v, a)
        data = self.body.state(q, v)
        columns = [np.eye(model.nv)[k] for k in self.order]
        for body, point, ways in (("left_wheel", (0.0, GAUGE, 0.0), "xyz"), ("right_wheel", (0.0, -GAUGE, 0.0), "xz"),
                                  ("base", (-0.3, 0.05, 0.0), "z")):
            frame = model.getFrameId(body)
            J = pin.getFrameJacobian(model, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            at_point = J[:3] - pin.skew(np.array(point) - data.oMf[frame].translation) @ J[3:]
            columns += [at_point["xyz".index(way)] for way in ways]
        return np.linalg.solve(np.array(columns).T, load)[:4]

    def sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Return efforts and their rates at t = 0."""
        found = np.array([self.efforts(k * STEP) for k in NODES])
        return found[5], WEIGHTS[0] @ found / STEP


def tripod(seed: int = 0) -> tuple[str, dict, dict[str, float]]:
    """Return URDF, robot file and pose of a body on three legs with three joints each and point feet."""
    rng = np.random.default_rng(seed)
    body, contacts, pose = link(rng, "body"), {}, {}
    for k in range(3):
        angle = 2.0 * np.pi * k / 3.0
        parent, xyz, rpy = "body", (0.3 * np.cos(angle), 0.3 * np.sin(angle), 0.0), (0.0, 0.0, angle)
        for j, axis in enumerate(((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0))):
            child, name = f"leg{k}{j}", f"j{k}{j}"
            body += link(rng, child) + _joint(name, parent, child, xyz, axis, rpy)
            parent, xyz, rpy = child, (0.35, 0.0, 0.0) if j else (0.1, 0.0, 0.0), (0.0, 0.0, 0.0)
            pose[name] = (0.1, 0.3, 0.9)[j] + 0.1 * rng.normal()
        contacts[f"foot{k}"] = {"link": parent, "type": "spherical", "xyz": [0.35, 0.0, 0.0]}
    file = {"version": 1, "base": "prescribed", "ground_contacts": contacts,
            "actuation_weights": {name: float(rng.uniform(0.5, 2.0)) for name in pose}}
    return f'<robot name="tripod">{body}</robot>', file, pose


class TripodOracle:
    """Least efforts of a tripod whose feet stay while its body follows a motion in time; joints by Newton's method."""

    def __init__(self, urdf: str, file: dict, pose: dict[str, float], seed: int = 0):
        self.body, rng = Body(urdf, free=True), np.random.default_rng(seed)
        self.names = list(pose)
        self.order = [self.body.number[name] for name in self.names]
        self.weights = np.array([file["actuation_weights"][name] for name in self.names])
        contacts = file["ground_contacts"].values()
        self.feet = [self.body.frame({"link": entry["link"], "xyz": entry["xyz"]}) for entry in contacts]
        self.A, self.w = rng.uniform(0.02, 0.08, 6), rng.uniform(1.0, 3.0, 6)
        self.q0 = pin.neutral(self.body.model)
        self.q0[[k + 1 for k in self.order]] = list(pose.values())
        self.q0[:7] = self.base(0.0)[0]
        self.positions = self._feet(self.q0)[0]

    def base(self, t: float):
        """Return pose (7,), and velocity (6,) with two rates along the base's axes, by automatic differentiation."""
        def pose(s):
            x = [a * np.sin(w * s + 0.7 * k) for k, (a, w) in enumerate(zip(self.A, self.w, strict=True))]
            return np.array(x[:3]), rpy(*x[3:])

        state = base_motion(pose, t)
        return np.concatenate((state.position, state.quaternion)), state

    def _feet(self, q):
        model = self.body.model
        data = self.body.state(q, np.zeros(model.nv))
        feet_positions = np.concatenate([data.oMf[foot].translation for foot in self.feet])
        J = np.vstack([self.body.motion(data, foot)[2][:3] for foot in self.feet])
        return feet_positions, J

    def at(self, t: float):
        """Return configuration, velocity, acceleration and efforts."""
        model, q = self.body.model, self.q0.copy()
        q[:7], state = self.base(t)
        for _ in range(20):
            feet_positions, J = self._feet(q)
            q[[k + 1 for k in self.order]] += np.linalg.solve(J[:, self.order], self.positions - feet_positions)
        _, J = self._feet(q)
        v, a = np.zeros(model.nv), np.zeros(model.nv)
        v[:6], a[:6] = state.velocity, state.spatial(state.acceleration)
        v[self.order] = np.linalg.solve(J[:, self.order], -J[:, :6] @ v[:6])
        data = self.body.state(q, v)
        drift = np.concatenate([self.body.motion(data, foot)[4][:3] for foot in self.feet])
        a[self.order] = np.linalg.solve(J[:, self.order], -drift - J[:, :6] @ a[:6])
        load, n = self.body.rnea(q, v, a), len(self.order)
        A = np.hstack((np.eye(model.nv)[:, self.order], J.T))
        W = np.concatenate((self.weights, np.zeros(len(J))))
        full = np.block([[np.diag(W), A.T], [A, np.zeros((len(A), len(A)))]])
        return q, v, a, np.linalg.solve(full, np.concatenate((np.zeros(len(W)), load)))[:n]

    def sample(self):
        """Return the motion of the base, joint positions, efforts and their rates at t = 0."""
        efforts = np.array([self.at(k * STEP)[3] for k in NODES])
        q = self.at(0.0)[0]
        return self.base(0.0)[1], q[[k + 1 for k in self.order]], efforts[5], WEIGHTS[0] @ efforts / STEP
