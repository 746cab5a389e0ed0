"""Robots for tests: simple arms, and seeded random trees with every feature of a URDF."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import pairwise
from xml.sax.saxutils import quoteattr

import numpy as np

MOVING = ("revolute", "continuous", "prismatic")
LIMIT = 'effort="1" velocity="1"'
INERTIAL = ('<inertial><origin xyz="0.1 -0.2 0.05" rpy="0.3 -0.4 0.5"/><mass value="1.5"/>'
            '<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.025"/></inertial>')


def rotation(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Return the rotation of URDF's rpy: about the fixed axes x, then y, then z."""
    R = np.eye(3)
    for axis, angle in enumerate((roll, pitch, yaw)):
        R = about(np.eye(3)[axis], angle) @ R
    return R


def about(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return a rotation about an axis by Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)


@dataclass
class LinkSpec:
    name: str
    inertial: str = ""

    def text(self) -> str:
        return f"<link name={quoteattr(self.name)}>{self.inertial}</link>"


@dataclass
class JointSpec:
    """Joint element of a URDF; None omits an element."""

    name: str
    kind: str
    parent: str
    child: str
    xyz: tuple | None = None
    rpy: tuple | None = None
    axis: tuple | None = None
    limit: str | None = None
    mimic: dict | None = None

    def text(self) -> str:
        parts = [f"<parent link={quoteattr(self.parent)}/><child link={quoteattr(self.child)}/>"]
        if self.xyz is not None or self.rpy is not None:
            parts.append(f"<origin{_attribute('xyz', self.xyz)}{_attribute('rpy', self.rpy)}/>")
        if self.axis is not None:
            parts.append(f"<axis{_attribute('xyz', self.axis)}/>")
        if self.limit is not None:
            parts.append(f"<limit {self.limit}/>")
        if self.mimic is not None:
            parts.append(f"<mimic {' '.join(f'{key}={quoteattr(str(value))}' for key, value in self.mimic.items())}/>")
        return f"<joint name={quoteattr(self.name)} type={quoteattr(self.kind)}>{''.join(parts)}</joint>"


def _attribute(name: str, numbers) -> str:
    return "" if numbers is None else f' {name}="{" ".join(repr(float(x)) for x in numbers)}"'


@dataclass
class Tree:
    """Links and joints of a URDF, in the order of the file."""

    name: str
    links: list[LinkSpec] = field(default_factory=list)
    joints: list[JointSpec] = field(default_factory=list)

    def text(self) -> str:
        elements = "\n".join(element.text() for element in [*self.links, *self.joints])
        return f"<robot name={quoteattr(self.name)}>\n{elements}\n</robot>"

    def plain(self) -> str:
        """Return the robot for readers that need limits and reject planar joints."""
        tree = Tree(self.name, list(self.links))
        for joint in self.joints:
            if joint.kind == "planar":
                links, joints = _planar_as_three(joint)
                tree.links += links
                tree.joints += joints
            else:
                tree.joints.append(replace(joint, limit=LIMIT))
        return tree.text()


def _planar_as_three(joint: JointSpec) -> tuple[list[LinkSpec], list[JointSpec]]:
    """Return two prismatic joints in the plane and a continuous joint about its normal, with their links."""
    normal = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0))
    normal = normal / np.linalg.norm(normal)
    x = plane_x(normal)
    between = [f"{joint.child}/x", f"{joint.child}/y"]
    ends = [joint.parent, *between, joint.child]
    rows = (("x", "prismatic", x), ("y", "prismatic", np.cross(normal, x)), ("theta", "continuous", normal))
    joints = [JointSpec(f"{joint.name}/{suffix}", kind, ends[k], ends[k + 1], axis=tuple(axis), limit=LIMIT)
              for k, (suffix, kind, axis) in enumerate(rows)]
    joints[0] = replace(joints[0], xyz=joint.xyz, rpy=joint.rpy)
    return [LinkSpec(name) for name in between], joints


def plane_x(normal: np.ndarray) -> np.ndarray:
    """Return the documented x of a planar joint: the frame axis closest to the plane, made orthogonal to its normal."""
    major = int(np.abs(normal).argmax())
    following, last = (major + 1) % 3, (major + 2) % 3
    e = np.eye(3)[last if abs(normal[last]) < abs(normal[following]) - 1e-9 else following]
    x = e - normal * normal[np.abs(e).argmax()]
    return x / np.linalg.norm(x)


def arm(*joints: dict, inertial: str = INERTIAL) -> str:
    """Return a chain base, l1, l2 ... of joints j1, j2 ...; dicts may have kind, xyz, rpy, axis, limit, mimic and parent."""
    tree = Tree("arm", [LinkSpec("base", inertial)])
    for k, joint in enumerate(joints, start=1):
        options = {"kind": "revolute", "parent": tree.links[-1].name, "limit": LIMIT} | joint
        tree.links.append(LinkSpec(f"l{k}", inertial))
        tree.joints.append(JointSpec(f"j{k}", child=f"l{k}", **options))
    return tree.text()


# ---------------------------------------------------------------------- random trees

ODD = ("link {}", "Ärm/β{}", "a<b>&{}", "it's \"{}\"", "関節{}", "x:y|{}", "{{{}}}", "__import__('os')#{}",
       "long_" * 16 + "{}")


class _Growth:
    """Generator of a random tree; stores for each link its pose in the moving body, and the joint axis of that body."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.odd = self.rng.random() < 0.2
        self.branching = self.rng.choice([0.0, 0.3, 0.9])
        self.tree = Tree(f"random {seed}", [])
        self.sites: list[tuple[str, np.ndarray, np.ndarray, np.ndarray]] = []

    def name(self, kind: str, k: int) -> str:
        return str(self.rng.choice(ODD)).format(f"{kind}{k}") if self.odd else f"{kind}{k}"

    def direction(self) -> np.ndarray:
        v = np.eye(3)[self.rng.integers(3)] if self.rng.random() < 0.4 else self.rng.normal(size=3)
        return v / np.linalg.norm(v)

    def inertial(self) -> str:
        rng = self.rng
        if rng.random() < 0.2:
            return ""
        m = float(rng.uniform(0.1, 4.0))
        origin = f"<origin{_attribute('xyz', rng.normal(size=3) * 0.2)}"
        origin += (_attribute("rpy", rng.uniform(-3, 3, 3)) if rng.random() < 0.7 else "") + "/>"
        if rng.random() < 0.15:
            origin = ""
        V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        a, b, c = rng.uniform(0.001, 0.1, 3) * (rng.random() > 0.1)  # sometimes a point mass
        J = V @ np.diag([a + b, b + c, c + a]) @ V.T
        values = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), J[np.triu_indices(3)], strict=True)
        numbers = " ".join(f'{name}="{float(value)!r}"' for name, value in values)
        return f'<inertial>{origin}<mass value="{m!r}"/><inertia {numbers}/></inertial>'

    def placement(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Axis line (direction, a point) of a new joint on a body whose own axis is z through zero."""
        rng = self.rng
        relation = rng.choice(["oblique", "square", "parallel", "nearly", "coincident", "intersecting"])
        aside, sign = np.cross(z, self.direction() + 1e-3 * rng.normal(size=3)), rng.choice([-1.0, 1.0])
        aside /= np.linalg.norm(aside)
        point = rng.normal(size=3) * 0.4
        if relation == "oblique":
            return self.direction(), point
        if relation == "square":
            return aside, point * (rng.random() > 0.2)
        if relation == "nearly":
            return about(aside, 10.0 ** -rng.uniform(1, 14.5)) @ z * sign, point
        if relation == "coincident":
            return z * sign, z * rng.choice([0.0, rng.normal()])
        if relation == "intersecting":
            direction = self.direction()
            return direction, z * rng.normal() + direction * rng.choice([0.0, rng.normal()])
        return z * sign, point

    def grow(self, k: int) -> None:
        rng = self.rng
        link = LinkSpec(self.name("l", k), self.inertial())
        self.tree.links.append(link)
        if k == 0:
            self.sites.append((link.name, np.eye(3), np.zeros(3), np.array([0.0, 0.0, 1.0])))
            return
        parent, R, P, z = self.sites[rng.integers(len(self.sites)) if rng.random() < self.branching else -1]
        kind = str(rng.choice([*MOVING, "fixed", "planar"], p=[0.4, 0.2, 0.2, 0.15, 0.05]))
        direction, point = self.placement(z)
        rpy = rng.uniform(-3, 3, 3) * (rng.random(3) < 0.7)
        if rng.random() < 0.3:
            rpy = rng.integers(-2, 3, 3) * (np.pi / 2)
        joint = JointSpec(self.name("j", k), kind, parent, link.name, limit=self.limit(kind))
        if rng.random() < 0.07:  # all defaults: no origin, axis along x
            Rj, Pj, axis = np.eye(3), np.zeros(3), np.array([1.0, 0.0, 0.0])
        else:
            Rj, Pj = rotation(*rpy), R.T @ (point - P)
            axis = (R @ Rj).T @ direction
            length = 1.0 if rng.random() < 0.6 else rng.uniform(0.1, 9.0)
            joint = replace(joint, xyz=tuple(Pj) if Pj.any() else None, rpy=tuple(rpy) if rpy.any() else None,
                            axis=None if kind == "fixed" else tuple(axis * length))
        self.tree.joints.append(joint)
        below = (R @ Rj, P + R @ Pj, z) if kind == "fixed" else (np.eye(3), np.zeros(3), axis)
        self.sites.append((link.name, *below))

    def limit(self, kind: str) -> str | None:
        return str(self.rng.choice(['effort="10" velocity="2" lower="-1" upper="2"', 'effort="0" velocity="3"', ""])) or None

    def mimics(self) -> None:
        """Add chains of mimic joints; a joint follows an earlier one of a random order, so never itself."""
        if self.rng.random() < 0.5:
            return
        moving = [joint for joint in self.tree.joints if joint.kind in MOVING]
        order = self.rng.permutation(len(moving))
        for a, b in pairwise(order):
            if self.rng.random() < 0.35:
                mimic = {"joint": moving[a].name}
                if self.rng.random() < 0.8:
                    mimic["multiplier"] = repr(float(self.rng.choice([-1.0, 1.0]) * self.rng.uniform(0.2, 2.0)))
                if self.rng.random() < 0.6:
                    mimic["offset"] = repr(float(self.rng.normal()))
                moving[b].mimic = mimic


def seeds(count: int) -> range:
    """Seeds 0 to count - 1 for tests of random machines; RNEA_TEST_SEEDS multiplies the count, as `make campaign` does."""
    return range(count * int(os.environ.get("RNEA_TEST_SEEDS", "1")))


def random_tree(seed: int) -> Tree:
    """Return a tree of 1 to 9 joints; its features depend only on the seed."""
    growth = _Growth(seed)
    for k in range(growth.rng.integers(2, 11)):
        growth.grow(k)
    growth.mimics()
    if growth.rng.random() < 0.5:
        growth.rng.shuffle(growth.tree.joints)
        growth.rng.shuffle(growth.tree.links)
    return growth.tree


def random_state(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Return random q, qd, qdd, qddd."""
    return (rng.uniform(-np.pi, np.pi, n), *rng.normal(size=(3, n)))


MOTOR_SECTIONS = {"elastic_joints": ("stiffness",), "motors": ("link", "axis", "mass", "transverse_inertia", "position")}


def motor_file(joints: dict) -> dict:
    """Return the robot file of {joint: its entries in elastic_joints, motors and drives, in one mapping}."""
    file = {}
    for name, entries in joints.items():
        for key, value in entries.items():
            section = next((section for section, keys in MOTOR_SECTIONS.items() if key in keys), "drives")
            file.setdefault(section, {}).setdefault(name, {})[key] = value
    return file
