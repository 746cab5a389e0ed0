"""The robots of the benchmark, each with the same states for us and for Pinocchio."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin

from rnea_ros import Robot

ROOT = Path(__file__).resolve().parent.parent
REAL = ("ur5_robot", "panda", "talos_reduced", "human")
STATES = 16  # that each loop walks through


def path(name: str) -> Path:
    """Return a URDF of this package, or of example-robot-data."""
    own = ROOT / "urdf" / f"{name}.urdf"
    found = [own] if own.exists() else sorted(Path(pin.__file__).parents[4].glob(
        f"share/example-robot-data/robots/**/{name}.urdf"))
    return found[0]


def chain(n: int) -> str:
    """Return a URDF of n revolute joints in series, without parallel axes or zero parameters."""
    rng = np.random.default_rng(n)

    def three(low: float, high: float) -> str:
        return " ".join(f"{x:.6f}" for x in rng.uniform(low, high, 3))

    def axis() -> str:
        v = rng.normal(size=3)
        return " ".join(f"{x:.9f}" for x in v / np.linalg.norm(v))

    inertia = '<inertia ixx="0.03" iyy="0.04" izz="0.02" ixy="0.001" ixz="0.002" iyz="0.003"/>'
    links = "".join(f'<link name="l{k}"><inertial><origin xyz="{three(-0.1, 0.1)}"/><mass value="1.5"/>{inertia}</inertial>'
                    "</link>" for k in range(n + 1))
    joints = "".join(
        f'<joint name="j{k}" type="revolute"><origin xyz="{three(0.05, 0.2)}" rpy="{three(-1.0, 1.0)}"/><parent link="l{k}"/>'
        f'<child link="l{k + 1}"/><axis xyz="{axis()}"/><limit lower="-3" upper="3" effort="100" velocity="3"/></joint>'
        for k in range(n))
    return f'<robot name="chain{n}">{links}{joints}</robot>'


class Case:
    """A robot and a few states of it: `motion` (4, STATES, n) for us, `pinocchio` (STATES, nq + 3 nv) for them."""

    def __init__(self, name: str, source: str | Path, floating: bool = False):
        self.name, self.source, self.floating = name, source, floating
        given = source.encode() if isinstance(source, str) else source
        self.robot = Robot.from_urdf(given, "floating" if floating else "fixed")
        build = pin.buildModelFromXML if isinstance(source, str) else pin.buildModelFromUrdf
        self.model = build(str(source), pin.JointModelFreeFlyer()) if floating else build(str(source))
        self.data = self.model.createData()
        rng = np.random.default_rng(0)
        self.motion = rng.uniform(-1.0, 1.0, (4, STATES, self.robot.n))
        self.base = rng.uniform(-1.0, 1.0, (3, STATES, 6 if floating else 0))  # velocity, acceleration, jerk

    @property
    def n(self) -> int:
        return self.robot.n

    @cached_property
    def fold(self) -> np.ndarray:
        """(nv, 6 + n or n): a mimic joint of ours is a separate joint there."""
        base = 6 if self.floating else 0
        fold = np.zeros((self.model.nv, base + self.n))
        fold[:base, :base] = np.eye(base)
        for link in (link for link in self.robot.model.links if link.joint):
            fold[self.model.joints[self.model.getJointId(link.joint)].idx_v, base + link.coordinate] = link.multiplier
        return fold

    @cached_property
    def pinocchio(self) -> np.ndarray:
        offset = np.zeros(self.model.nv)
        for link in (link for link in self.robot.model.links if link.joint):
            offset[self.model.joints[self.model.getJointId(link.joint)].idx_v] = link.offset
        zero = np.zeros((STATES, self.base.shape[2]))
        rows = [np.hstack((part, joints)) @ self.fold.T for part, joints in zip((zero, *self.base), self.motion)]
        q = [pin.integrate(self.model, pin.neutral(self.model), row + offset) for row in rows[0]]
        return np.ascontiguousarray(np.hstack((q, *rows[1:])))

    def flat(self, blocks: tuple[str, ...]) -> np.ndarray:
        """(STATES, size): the inputs of one of our kernels."""
        named = {**dict(zip(("q", "qd", "qdd", "qddd"), self.motion)), "tau": self.motion[2],
                 **dict(zip(("base_velocity", "base_acceleration", "base_jerk"), self.base)),
                 "base_gravity": np.tile(self.robot.gravity_vector, (STATES, 1))}
        return np.ascontiguousarray(np.hstack([named[block] for block in blocks]))
