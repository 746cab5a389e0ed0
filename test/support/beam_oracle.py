"""Oracle for arms with flexible links: a fine chain of rigid segments with springs in Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp
from scipy.linalg import eigh

LENGTH, MASS, TIP_MASS, TIP_COM, TIP_INERTIA = 1.0, 0.8, 0.5, 0.1, 0.004  # of boom and hand
GRAVITY = (0.0, 0.0, -9.81)


def boom_urdf(tip_mass=TIP_MASS, axis="0 0 1"):
    """Return the URDF of a hub, a boom along x, a wrist at its end, and a hand."""
    j = MASS * LENGTH**2 / 12.0
    hand = (f'<inertial><origin xyz="{TIP_COM} 0 0"/><mass value="{tip_mass}"/><inertia ixx="0.002" ixy="0" ixz="0" '
            f'iyy="{TIP_INERTIA}" iyz="0" izz="{TIP_INERTIA}"/></inertial>') if tip_mass else ""
    return (f'<robot name="crane"><link name="base"/><link name="boom"><inertial><origin xyz="{LENGTH / 2} 0 0"/>'
            f'<mass value="{MASS}"/><inertia ixx="0" ixy="0" ixz="0" iyy="{j}" iyz="0" izz="{j}"/></inertial></link>'
            f'<link name="hand">{hand}</link><joint name="hub" type="continuous"><parent link="base"/><child link="boom"/>'
            f'<axis xyz="{axis}"/></joint><joint name="wrist" type="continuous"><parent link="boom"/><child link="hand"/>'
            f'<origin xyz="{LENGTH} 0 0"/><axis xyz="{axis}"/></joint></robot>')


def boom_file(stiffness, modes=3, **bending):
    """Return the robot file of a boom that bends in the plane of the hub."""
    return {"flexible_links": {"boom": {"end": [LENGTH, 0, 0], "bending": {
        "y": {"direction": [0, 1, 0], "stiffness": stiffness, "modes": modes, **bending}}}}}


class Chain:
    """Hub, `count` hinges in the middle of equal segments with springs EI / h, wrist."""

    def __init__(self, count, stiffness, tip_mass=TIP_MASS, gravity=GRAVITY, axis="z"):
        self.n, h = count, LENGTH / count
        self.spring, self.model = stiffness / h, pin.Model()
        self.model.gravity.linear = np.array(gravity, dtype=float)
        joint = {"z": pin.JointModelRZ, "y": pin.JointModelRY}[axis]
        parent, at = 0, 0.0
        for k in range(count + 2):
            pose = pin.SE3(np.eye(3), np.array([at, 0.0, 0.0]))
            parent = self.model.addJoint(parent, joint(), pose, f"joint{k}")
            if k <= count:
                at = 0.5 * h if k in (0, count) else h
                body = pin.Inertia(MASS / LENGTH * at, np.array([0.5 * at, 0.0, 0.0]),
                                   MASS / LENGTH * at**3 / 12.0 * np.diag([0.0, 1.0, 1.0]))
            else:
                body = pin.Inertia(tip_mass, np.array([TIP_COM, 0.0, 0.0]), np.diag([0.002, TIP_INERTIA, TIP_INERTIA]))
            self.model.appendBodyToJoint(parent, body, pin.SE3.Identity())
        self.data = self.model.createData()

    def mass_matrix(self, q):
        M = np.triu(pin.crba(self.model, self.data, q))
        return M + np.triu(M, 1).T

    def frequencies(self):
        """Return natural frequencies [rad/s] of the straight boom at rest with locked motors."""
        inner = slice(1, self.n + 1)
        M = self.mass_matrix(np.zeros(self.n + 2))[inner, inner]
        return np.sqrt(eigh(self.spring * np.eye(self.n), M, eigvals_only=True))

    def accelerations(self, hub, wrist, y):
        """Return q, qd, qdd of all joints. hub, wrist: position, velocity, acceleration; y: angles and rates of hinges."""
        q = np.r_[hub[0], y[:self.n], wrist[0]]
        v = np.r_[hub[1], y[self.n:], wrist[1]]
        a = np.r_[hub[2], np.zeros(self.n), wrist[2]]
        bias = pin.rnea(self.model, self.data, q, v, a)[1:-1]
        a[1:-1] = np.linalg.solve(self.mass_matrix(q)[1:-1, 1:-1], -bias - self.spring * y[:self.n])
        return q, v, a

    def simulate(self, hub, wrist, times):
        """Return torques of hub and wrist and the end of the boom in hub axes (samples, 2 + 2), starting from rest."""
        def slope(t, y):
            return np.r_[y[self.n:], self.accelerations(hub(t), wrist(t), y)[2][1:-1]]

        found = solve_ivp(slope, times[[0, -1]], np.zeros(2 * self.n), method="Radau", t_eval=times, rtol=1e-6, atol=1e-8)
        rows = []
        for t, y in zip(times, found.y.T, strict=True):
            q, v, a = self.accelerations(hub(t), wrist(t), y)
            tau = pin.rnea(self.model, self.data, q, v, a)
            pin.forwardKinematics(self.model, self.data, q)
            root, end = self.data.oMi[1], self.data.oMi[self.n + 2]
            rows.append([tau[0], tau[-1], *(root.rotation.T @ (end.translation - root.translation))[:2]])
        return np.array(rows)


def slew(angle, duration):
    """Return q, qd, qdd, qddd (4,) as a function of time: a cycloid from rest to rest."""
    w = 2.0 * np.pi / duration

    def motion(t):
        if t >= duration:
            return np.array([angle, 0.0, 0.0, 0.0])
        return angle / duration * np.array([t - np.sin(w * t) / w, 1.0 - np.cos(w * t), w * np.sin(w * t),
                                            w * w * np.cos(w * t)])

    return motion
