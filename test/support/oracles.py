"""Independent oracles: Pinocchio on a URDF, with joints mapped by name, and finite differences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")  # without it, the tests that need it are skipped

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "golden.json").read_text(encoding="utf-8"))


def example_urdfs() -> list[Path]:
    """Return all URDFs of the package example-robot-data."""
    prefix = Path(pin.__file__).parents[4]
    found = sorted(prefix.glob("share/example-robot-data/robots/**/*.urdf"))
    assert len(found) > 60, f"example-robot-data is not installed under {prefix}"
    return found


class PinocchioOracle:
    """Torques and torque rates by Pinocchio, in the order of `robot.joint_names`, with mimic joints folded by virtual work.

    Raises ValueError where Pinocchio does not load the file.
    """

    def __init__(self, urdf, robot):
        self.model = pin.buildModelFromXML(urdf) if str(urdf).lstrip().startswith("<") else pin.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()
        self.model.gravity.linear = robot.gravity_vector
        links = [link for link in robot.model.links if link.joint]
        assert set(self.model.names[1:]) == {link.joint for link in links}
        self.neutral, self.upper = pin.neutral(self.model), np.triu(np.ones((self.model.nv, self.model.nv), dtype=bool))
        self.fold = np.zeros((self.model.nv, robot.n))  # v_pinocchio = fold @ qd
        self.offset = np.zeros(self.model.nv)
        for link in links:
            row = self.model.joints[self.model.getJointId(link.joint)].idx_v
            self.fold[row, link.coordinate] = link.multiplier
            self.offset[row] = link.offset

    def configuration(self, q):
        return pin.integrate(self.model, self.neutral, self.fold @ q + self.offset)

    def torque_and_rate(self, q, qd, qdd, qddd):
        q, v, a, j = self.configuration(q), self.fold @ qd, self.fold @ qdd, self.fold @ qddd
        dq, dv, M = pin.computeRNEADerivatives(self.model, self.data, q, v, a)
        M = np.where(self.upper, M, M.T)  # Pinocchio fills the upper triangle only
        return self.fold.T @ self.data.tau, self.fold.T @ (dq @ v + dv @ a + M @ j)

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.configuration(q))
        return self.fold.T @ (np.triu(M) + np.triu(M, 1).T) @ self.fold

    def gravity_and_rate(self, q, qd):
        q = self.configuration(q)
        g = pin.computeGeneralizedGravity(self.model, self.data, q).copy()
        dq = pin.computeGeneralizedGravityDerivatives(self.model, self.data, q)
        return self.fold.T @ g, self.fold.T @ (dq @ self.fold @ qd)

    def energy(self, q, qd):
        """Return kinetic and potential energy [J]."""
        return pin.computeMechanicalEnergy(self.model, self.data, self.configuration(q), self.fold @ qd)

    def torque(self, q, qd, qdd, wrenches):
        """Return torques with wrenches {URDF link: (6,)} by the environment on the link, in the link's frame, force first."""
        loads = pin.StdVec_Force()
        loads.extend([pin.Force.Zero()] * self.model.njoints)
        for link, wrench in wrenches.items():
            frame = self._frame(link)
            loads[frame.parentJoint] = loads[frame.parentJoint] + frame.placement.act(pin.Force(np.asarray(wrench)))
        return self.fold.T @ pin.rnea(self.model, self.data, self.configuration(q), self.fold @ qd, self.fold @ qdd, loads)

    def placement(self, link, q):
        """Return rotation and position of a URDF link in the root link's frame."""
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        placement = self.data.oMf[self._id(link)]
        return placement.rotation.copy(), placement.translation.copy()

    def kinematics(self, link, point, q, qd):
        """Return R, p, Jacobian and its rate of a point of a URDF link, in the root link's frame."""
        found = frame_kinematics(self.model, self._id(link), point, self.configuration(q), self.fold @ qd)
        return *found[:2], *(J @ self.fold for J in found[2:])

    def total_mass(self):
        return sum(inertia.mass for inertia in self.model.inertias)

    def at(self, link, point, q, qd, qdd):
        """Return the quantity OBSERVED of the moving body that carries a URDF link, at a point of that link, in the root
        frame.
        """
        pin.rnea(self.model, self.data, self.configuration(q), self.fold @ qd, self.fold @ qdd)
        pin.forwardKinematics(self.model, self.data, self.configuration(q))  # rnea does not update oMi
        frame = self._frame(link)
        joint, R = frame.parentJoint, self.data.oMi[frame.parentJoint].rotation
        r = frame.placement.act(np.asarray(point))
        v, a, f = self.data.v[joint], self.data.a_gf[joint], self.data.f[joint]
        w, wd = v.angular, a.angular
        acceleration = a.linear + np.cross(w, v.linear) + np.cross(wd, r) + np.cross(w, np.cross(w, r))
        return np.concatenate([R @ x for x in (w, wd, acceleration, f.linear, f.angular - np.cross(r, f.linear))])

    def _id(self, link):
        number = self.model.getFrameId(link, pin.FrameType.BODY)
        assert number < self.model.nframes, link
        return number

    def _frame(self, link):
        return self.model.frames[self._id(link)]


OBSERVED = ("w", "wd", "a", "f", "n")  # what PinocchioOracle.at returns, three numbers each; a without gravity, as felt


def frame_kinematics(model, number, point, q, v):
    """Return R, p, Jacobian (6, nv) and its rate of a frame moved to one of its points, LOCAL_WORLD_ALIGNED."""
    model, frame, axes = model.copy(), model.frames[number], pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    placement = frame.placement * pin.SE3(np.eye(3), np.asarray(point))
    number = model.addFrame(pin.Frame("requested point", frame.parentJoint, number, placement, pin.FrameType.OP_FRAME), False)
    data = model.createData()
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    pin.framesForwardKinematics(model, data, q)
    slopes = [matrix(model, data, number, axes).reshape(6, model.nv).copy()
              for matrix in (pin.getFrameJacobian, pin.getFrameJacobianTimeVariation)]
    return data.oMf[number].rotation.copy(), data.oMf[number].translation.copy(), *slopes


def along(q, qd, qdd, qddd, t):
    """Return the state at time t of a motion of constant jerk."""
    return q + qd * t + qdd * (t * t / 2) + qddd * (t**3 / 6), qd + qdd * t + qddd * (t * t / 2), qdd + qddd * t


def difference(function, h=2e-3):
    """Return the derivative of function(t) at zero by central differences of 6th order."""
    return sum(c * (function(k * h) - function(-k * h)) for k, c in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)


def deviation(ours, truth) -> float:
    """Return the largest error relative to the largest entry of the truth, or to one."""
    ours, truth = np.asarray(ours), np.asarray(truth)
    return float(np.abs(ours - truth).max(initial=0.0) / max(1.0, np.abs(truth).max(initial=0.0)))


def worst(ours, truth) -> float:
    """Return the largest error of all entries, each relative to its own truth, or to one."""
    ours, truth = np.asarray(ours), np.asarray(truth)
    assert ours.shape == truth.shape, (ours.shape, truth.shape)
    errors = np.abs(ours - truth) / np.maximum(1.0, np.abs(truth))
    return float(errors.max(initial=0.0)) if np.isfinite(ours).all() else np.inf


def impossible_bodies(model) -> tuple[str, ...]:
    """Return the names of moving links whose mass or inertia is not physical."""
    found = []
    for link in model.links:
        E = np.eye(3) * np.trace(link.J) / 2.0 - link.J
        sizes = np.linalg.eigvalsh(np.block([[E, link.ms[:, None]], [link.ms[None], np.array([[link.m]])]]))
        if link.joint and sizes[0] < -1e-9 * np.abs(sizes).max():
            found.append(link.name)
    return tuple(found)
