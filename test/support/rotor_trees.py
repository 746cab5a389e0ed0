"""Robots with motors, and their oracle: a Pinocchio tree in which every rotor is a body on a separate joint."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import yaml

from rnea_ros import Robot, load
from support.robots import INERTIAL, JointSpec, LinkSpec, Tree, motor_file

URDF = Path(__file__).resolve().parents[2] / "urdf"


def numbers(values) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def inertial(mass, centre, inertia) -> str:
    """Return an <inertial> with its inertia about the center of mass, in link axes."""
    I = np.asarray(inertia, dtype=float)
    entries = " ".join(f'{name}="{float(x)!r}"' for name, x in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
                                                                   I[np.triu_indices(3)], strict=True))
    return f'<inertial><origin xyz="{numbers(centre)}"/><mass value="{float(mass)!r}"/><inertia {entries}/></inertial>'


def rotor(entry) -> str:
    """Return the inertia of a declared motor's rotor about its center, in the frame of its carrier."""
    z = np.array(entry["axis"], dtype=float)
    z = z / np.linalg.norm(z)
    across = entry["transverse_inertia"]
    return inertial(entry["mass"], (0, 0, 0), across * np.eye(3) + (entry["rotor_inertia"] - across) * np.outer(z, z))


class RotorTree:
    """Torques of joints and motors of a tree, from Pinocchio's rnea of links and rotors; v = fold @ (qd, thetad).

    tree  : the robot without its rotors; joints: its declaration, in which every motor has a mass and a position
    """

    def __init__(self, tree: Tree, joints: dict, robot: Robot):
        self.urdf, self.declared = tree.text(), motor_file(joints)
        whole = Tree(tree.name, list(tree.links), list(tree.joints))
        for name, entry in joints.items():
            whole.links.append(LinkSpec(f"rotor of {name}", rotor(entry)))
            whole.joints.append(JointSpec(f"motor of {name}", "revolute", entry["link"], f"rotor of {name}",
                                          xyz=entry["position"], axis=entry["axis"]))
        self.model = pin.buildModelFromXML(whole.plain())
        self.model.gravity.linear = np.array(robot.gravity_vector)
        self.data = self.model.createData()
        self.n, elastic = robot.n, list(robot.elastic_joints)
        self.fold, self.offset = np.zeros((self.model.nv, self.n + len(elastic))), np.zeros(self.model.nv)
        for link in robot.tree.model.links:
            if link.joint:
                self.fold[self._row(link.joint), link.coordinate] = link.multiplier
                self.offset[self._row(link.joint)] = link.offset
        for name, entry in joints.items():
            column = self.n + elastic.index(name) if name in elastic else robot.joint_names.index(name)
            self.fold[self._row(f"motor of {name}"), column] = entry.get("gear_ratio", 1.0)
        self.stiffness = np.zeros((self.n + len(elastic),) * 2)  # gradient of the spring energy
        for k, name in enumerate(elastic):
            i, K = robot.joint_names.index(name), joints[name]["stiffness"]
            self.stiffness[np.ix_([i, self.n + k], [i, self.n + k])] = K * np.array([[1.0, -1.0], [-1.0, 1.0]])

    def _row(self, joint: str) -> int:
        return self.model.joints[self.model.getJointId(joint)].idx_v

    def configuration(self, x):
        return pin.integrate(self.model, pin.neutral(self.model), self.fold @ x + self.offset)

    def torques(self, x, v, a, wrenches=None):
        """Return A a + zeta (n + Ne,) with springs; x, v, a: joints, motors. wrenches: {joint: pin.Force on its child}."""
        loads = pin.StdVec_Force()
        loads.extend([pin.Force.Zero()] * self.model.njoints)
        for joint, wrench in (wrenches or {}).items():
            loads[self.model.getJointId(joint)] = wrench
        tau = pin.rnea(self.model, self.data, self.configuration(x), self.fold @ v, self.fold @ a, loads)
        return self.fold.T @ tau + self.stiffness @ x

    def mass_matrix(self, x):
        gravity, self.model.gravity.linear = self.model.gravity.linear.copy(), np.zeros(3)
        rest = 0.0 * x
        columns = [self.torques(x, rest, unit) - self.stiffness @ x for unit in np.eye(len(x))]
        self.model.gravity.linear = gravity
        return np.array(columns).T

    def energy(self, x, v):
        """Return kinetic, gravitational and spring energy [J]."""
        mechanical = pin.computeMechanicalEnergy(self.model, self.data, self.configuration(x), self.fold @ v)
        return mechanical + x @ self.stiffness @ x / 2.0


def declare(rng, tree: Tree, names, followed=(), elastic=0.5, links=None) -> dict:
    """Return motors with random gears, axes and positions on random links; some joints are elastic."""
    joints = {}
    for name in names:
        across = float(rng.uniform(2e-4, 2e-3))
        joints[name] = {
            "gear_ratio": float(rng.choice([-1.0, 1.0]) * rng.uniform(2.0, 60.0)),
            "rotor_inertia": across * float(rng.uniform(0.2, 1.9)),
            "link": (links or {}).get(name) or str(rng.choice([link.name for link in tree.links])),
            "axis": [float(x) for x in rng.normal(size=3)], "mass": float(rng.uniform(0.1, 1.0)),
            "transverse_inertia": across, "position": [float(x) for x in 0.2 * rng.normal(size=3)]}
        if name not in followed and rng.random() < elastic:
            joints[name]["stiffness"] = float(math.exp(rng.uniform(2.0, 7.0)))
    return joints


@cache
def four_joints(elastic=True, stiffness=300.0, depth=1, springs=("joint1", "joint2", "joint3", "joint4")):
    """Return a robot of four joints and its oracle. depth 1: motors in the base; depth 4: on the link before the joint."""
    tree = Tree("chain", [LinkSpec("link0", INERTIAL)])
    for k, (kind, axis) in enumerate((("revolute", (0, 0, 1)), ("revolute", (0, 1, 0)), ("prismatic", (1, 0, 0.2)),
                                      ("revolute", (0.3, 1, 0)))):
        tree.links.append(LinkSpec(f"link{k + 1}", INERTIAL))
        tree.joints.append(JointSpec(f"joint{k + 1}", kind, f"link{k}", f"link{k + 1}", xyz=(0.1, 0.2, 0.3),
                                     rpy=(0.2, 0.1 * k, 0), axis=axis))
    links = {f"joint{k + 1}": "link0" if depth == 1 else f"link{k}" for k in range(4)}
    joints = declare(np.random.default_rng(7), tree, list(links), elastic=0.0, links=links)
    for name, entry in joints.items():
        entry |= {"gear_ratio": 20.0} | ({"stiffness": stiffness} if elastic and name in springs else {})
    robot = load(tree.text(), motor_file(joints))
    return robot, RotorTree(tree, joints, robot)


class UrdfText(NamedTuple):
    """XML text with the interface of LinkSpec and JointSpec."""

    xml: str

    def text(self) -> str:
        return self.xml


@cache
def hua_arm():
    """Return the arm of urdf/ and its oracle with the rotors of its robot file."""
    text, content = ((URDF / f"hua_arm{ending}").read_text() for ending in (".urdf", ".robot.yaml"))
    file = yaml.safe_load(content)
    joints = {name: {"gear_ratio": drive["gear_ratio"], "rotor_inertia": drive["rotor_inertia"],
                     **file["motors"][name],
                     **({"stiffness": file["elastic_joints"][name]["stiffness"]} if name in file["elastic_joints"] else {})}
              for name, drive in file["drives"].items()}
    tree = Tree("hua_arm", [UrdfText(text[text.index('<robot name="hua_arm">') + 22:text.rindex("</robot>")])])
    robot = load(tree.text(), motor_file(joints))
    return robot, RotorTree(tree, joints, robot)


def polynomial(seed, n, order):
    """Return a function of time with q and its derivatives up to `order`, of a random polynomial motion."""
    rows = np.random.default_rng(seed).normal(size=(order + 1, n))

    def motion(t):
        return [sum(rows[k + d] * t**k / math.factorial(k) for k in range(order + 1 - d)) for d in range(order + 1)]

    return motion
