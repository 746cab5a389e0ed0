"""Arms (example-robot-data) that contacts and payloads are tried on: its hand, where it moves, how it rubs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import Robot, load
from rnea_ros.sim.machines import example_urdf
from support.plant import COULOMB, RANGE, REST, VISCOUS, Motion, Plant, panda

RUBS, NOISE = 0.01, 0.002  # Coulomb friction where none is published, and noise of efforts, by the torque limit
SHARE, LEAST = 0.05, 0.1  # by which every mass is wrong; N m, of noise
ROTOR, GEAR = 0.1, 100.0  # kg m^2 seen behind the gear: without it no joint control holds a wrist of 1e-4 kg m^2


class Arm(NamedTuple):
    """urdf: text; link: its hand; rest, reach: where motions are [rad]; coulomb, viscous: friction [N m, N m s/rad];
    rotor: inertia of each rotor behind its gear [kg m^2].
    """

    urdf: str
    link: str
    rest: np.ndarray
    reach: np.ndarray
    coulomb: np.ndarray
    viscous: np.ndarray
    rotor: float = 0.0

    def robot(self, friction: bool = False) -> Robot:
        """Return the model, with the friction of the plant or without friction."""
        names = load(self.urdf).joint_names
        rubs = {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(names, self.coulomb, self.viscous)}
        drives = {name: {"gear_ratio": GEAR, "rotor_inertia": self.rotor / GEAR**2} for name in names}
        found = load(self.urdf, {"version": 1, "drives": drives, **({"friction": rubs} if friction else {})})
        assert found.is_fixed_tree
        return found

    def plant(self, rng: np.random.Generator, friction: float = 0.0) -> Plant:
        """Every mass is off by SHARE, Coulomb friction by a share."""
        off = (rng.choice([-1.0, 1.0], len(self.rest)) for _ in range(2))
        plant = Plant(self.urdf, 1.0 + SHARE * next(off), self.coulomb * (1.0 + friction * next(off)), self.viscous)
        plant.model.armature = np.full(len(self.rest), self.rotor)
        return plant

    def motion(self, rng: np.random.Generator, brisk: float) -> Motion:
        """Up to about 1.5 rad/s times brisk."""
        n, count = len(self.rest), 3
        w = brisk * rng.uniform(0.5, 2.0, (count, n))
        a = self.reach * rng.uniform(0.5, 1.0, (count, n)) / count
        return Motion(self.rest, a, w, rng.uniform(0.0, 2.0 * np.pi, (count, n)))

    @property
    def noise(self) -> np.ndarray:
        """Standard deviation of measured efforts (n,)."""
        return np.maximum(LEAST, NOISE * load(self.urdf).limits.effort)


def _other(path: str, link: str, rest: list[float]) -> Arm:
    urdf = example_urdf(path).read_text().replace('type="continuous"', 'type="revolute"')  # which Pinocchio has as two numbers
    effort, n = load(urdf).limits.effort, len(rest)
    return Arm(urdf, link, np.array(rest), np.full(n, 0.7), RUBS * effort, 0.2 * RUBS * effort, ROTOR)


def arms() -> dict[str, Arm]:
    return {"Panda": Arm(panda(), "panda_hand", REST, RANGE, COULOMB, VISCOUS),
            "UR5": _other("ur_description/urdf/ur5_robot.urdf", "tool0", [0.0, -1.2, 1.4, -0.6, 0.8, 0.0]),
            "xArm7": _other("xarm_description/urdf/xarm7.urdf", "link_eef", [0.0, -0.4, 0.0, 1.2, 0.0, 1.0, 0.0]),
            "Jaco": _other("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector", [0.0, 2.9, 1.3, 0.0, 2.0, 0.0])}
