"""Oracle: Pinocchio with a free-flyer base; base acceleration and wrench are converted to the conventions of base_state.py."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np

from rnea_ros import load
from rnea_ros.robots.base_state import BaseState
from support.oracles import example_urdfs, frame_kinematics, pin
from support.robots import INERTIAL, LinkSpec, random_state, random_tree


def example(name):
    """Import a module of examples/."""
    path = Path(__file__).resolve().parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FreeFlyer:
    """Dynamics of a tree on a free base, in the robot's joint order, with mimic joints folded."""

    def __init__(self, urdf, robot):
        """robot: tree of the URDF."""
        text = str(urdf)
        build = pin.buildModelFromXML if text.lstrip().startswith("<") else pin.buildModelFromUrdf
        self.model = build(text, pin.JointModelFreeFlyer())
        self.data = self.model.createData()
        self.model.gravity.linear = robot.gravity_vector
        self.fold = np.zeros((self.model.nv, 6 + robot.n))
        self.fold[:6, :6] = np.eye(6)
        self.offset = np.zeros(self.model.nv)
        for link in (link for link in robot.model.links if link.joint):
            row = self.model.joints[self.model.getJointId(link.joint)].idx_v
            self.fold[row, 6 + link.coordinate] = link.multiplier
            self.offset[row] = link.offset

    def configuration(self, base, q):
        start = pin.neutral(self.model)
        start[:7] = np.concatenate((base.position, base.quaternion))
        return pin.integrate(self.model, start, self.fold @ np.concatenate((np.zeros(6), q)) + self.offset)

    def velocity(self, base, qd):
        return self.fold @ np.concatenate((base.velocity, qd))

    def forces(self, base, acceleration, q, qd, qdd, wrenches=None):
        """Return base wrench and torques (6 + n,)."""
        a = self.fold @ np.concatenate((base.spatial(acceleration), qdd))
        q, v = self.configuration(base, q), self.velocity(base, qd)
        return self.fold.T @ pin.rnea(self.model, self.data, q, v, a, self._loads(wrenches))

    def mass_matrix(self, base, q):
        A = pin.crba(self.model, self.data, self.configuration(base, q))
        return self.fold.T @ (np.triu(A) + np.triu(A, 1).T) @ self.fold

    def accelerations(self, base, q, qd, forces, wrenches=None):
        """Return accelerations (6 + n,) under forces (6 + n,) by the articulated-body algorithm, without mimic joints."""
        a = pin.aba(self.model, self.data, self.configuration(base, q), self.velocity(base, qd),
                    np.linalg.pinv(self.fold).T @ forces, self._loads(wrenches))
        a = np.linalg.pinv(self.fold) @ a
        return np.concatenate((base.classical(a[:6]), a[6:]))

    def base_acceleration(self, base, q, qd, qdd, wrenches=None):
        """Return the base acceleration (6,) for a given joint motion from the six equations of the base."""
        n = len(qdd)
        spatial = np.linalg.solve(self.mass_matrix(base, q)[:6, :6],
                                  -self.forces(base, base.classical(np.zeros(6)), q, qd, qdd, wrenches)[:6])
        assert n + 6 == self.fold.shape[1]
        return base.classical(spatial)

    def center_of_mass(self, base, q, qd):
        """Return position and velocity of the center of mass, and the momentum about it (6,), in the world."""
        q, v = self.configuration(base, q), self.velocity(base, qd)
        h = pin.computeCentroidalMomentum(self.model, self.data, q, v).vector.copy()
        c = pin.centerOfMass(self.model, self.data, q, v).copy()
        return c, self.data.vcom[0].copy(), h

    def energy(self, base, q, qd):
        q, v = self.configuration(base, q), self.velocity(base, qd)
        return (pin.computeKineticEnergy(self.model, self.data, q, v), pin.computePotentialEnergy(self.model, self.data, q))

    def link_velocity(self, base, q, qd, link):
        """Return the twist (6,) of a URDF link's frame, in that frame."""
        pin.forwardKinematics(self.model, self.data, self.configuration(base, q), self.velocity(base, qd))
        return pin.getFrameVelocity(self.model, self.data, self._frame(link), pin.ReferenceFrame.LOCAL).vector.copy()

    def kinematics(self, base, q, qd, link, point):
        """Return R, p, Jacobian (6, 6 + n) and its rate of a point of a URDF link, in the world."""
        found = frame_kinematics(self.model, self._frame(link), point, self.configuration(base, q), self.velocity(base, qd))
        return *found[:2], *(J @ self.fold for J in found[2:])

    def _loads(self, wrenches):
        loads = pin.StdVec_Force()
        loads.extend([pin.Force.Zero()] * self.model.njoints)
        for link, wrench in (wrenches or {}).items():
            frame = self.model.frames[self._frame(link)]
            loads[frame.parentJoint] = loads[frame.parentJoint] + frame.placement.act(pin.Force(np.asarray(wrench)))
        return loads

    def _frame(self, link):
        number = self.model.getFrameId(link, pin.FrameType.BODY)
        assert number < self.model.nframes, link
        return number


def random_base(rng):
    q = rng.normal(size=4)
    return BaseState(rng.normal(size=3), q / np.linalg.norm(q), rng.normal(size=6))


# ------------------------------------------------------------------ robots

GRAVITY = (0.3, -0.5, -9.7)  # tilted world
CASES = ("solo12", "g1_29dof_rev_1_0", "panda", "snake")  # quadruped, humanoid, one with mimic joints, 60 links
SEEDS = range(12)


def source(name):
    if isinstance(name, int):
        tree = random_tree(name)
        tree.links = [LinkSpec(link.name, INERTIAL) for link in tree.links]
        return tree.plain()
    if name == "snake":
        return example("snake").urdf(60)
    return next(path for path in example_urdfs() if path.stem == name)


@cache
def robot(name):
    """Return a robot with kernels, except for large ones, whose compilation would take most of the test time."""
    return load(source(name), base="floating", backend="reference" if name in CASES[1::2] else "llvm", gravity=GRAVITY)


@cache
def oracle(name):
    return FreeFlyer(source(name), robot(name).tree)


def state(name):
    rng = np.random.default_rng(len(str(name)))
    return random_base(rng), *random_state(rng, robot(name).n)


def loads(name, rng):
    """Return wrenches and their rates on two links, one of them the base."""
    links = list(robot(name).tree.model.frames)
    return tuple({link: rng.normal(size=6) for link in {robot(name).tree.root_link, links[-1]}} for _ in range(2))
