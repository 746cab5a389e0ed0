"""Shares of the limits to plan with, predicted and needed: python benchmark/margins.py > benchmark/margins.md

Motions of arms are retimed with their full limits of torque and torque rate. A plant that differs from the model tracks them
with feed-forward and a PD controller of 50 rad/s, whose torques are held for 1 ms. "Needed" is the share of the limits to plan
with so that the controller's torque, and its torque rate over 20 ms, stay within the full limits. "Predicted" is the result
of `limits_share`, which uses no plant. Each value is the worst of 6 motions.

The start of a motion determines most of the share for the rate. An error of the gravity torque acts from the first instant;
within 1 / bandwidth, here 20 ms, the feedback adds it to the planned rate, which is then at its limit. With all masses 10 %
wrong, 50 N m of gravity cause 5 N m in 20 ms: a quarter of 1000 N m/s. Paths that start with the arm stretched out
therefore need a share of 0.75 for the rate, others 0.89. With other paths the tables change accordingly.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import Robot, load
from rnea_ros.cli.motions import random_motions
from rnea_ros.demo.arms import ARM_SOURCES, EFFORT_SWING_S
from rnea_ros.demo.processes import share_file
from rnea_ros.sim.scene import UnmodelledDynamics, mujoco, scene
from rnea_ros.trajectory.margin import ModelUncertainty, limits_share
from rnea_ros.trajectory.retiming import Retimed, retime_motion
from support.plant import COULOMB, RANGE, REST, VISCOUS, Plant, panda

HAND, BANDWIDTH, STEP, INNER = "panda_hand", 50.0, 1e-3, 4
FINE = 2.0 * np.pi / 2**20
RUBS = 0.01  # Coulomb friction of an arm of which nothing is published, by its torque limit; viscous a fifth of that
BALL = 1e-6  # kg m^2, of a payload that would have none
NONE = ModelUncertainty(masses=0.0, period=STEP)
UNCERTAINTIES = {
    "friction unknown": NONE._replace(friction=1.0), "masses 5 % at random": NONE._replace(masses=0.05),
    "masses 10 % at random": NONE._replace(masses=0.1), "all masses 5 %": NONE._replace(all_masses=0.05),
    "all masses 10 %": NONE._replace(all_masses=0.1), "payload of 1 kg": NONE._replace(payload=1.0, link=HAND),
    "payload of 3 kg": NONE._replace(payload=3.0, link=HAND),
    "encoder 2^-20, velocity 60 Hz": NONE._replace(resolution=FINE, cutoff=60.0)}


class Arm(NamedTuple):
    """urdf: text; link: that may carry; coulomb, viscous: friction that the plant may have [N m, N m s/rad]."""

    urdf: str
    link: str
    coulomb: Any
    viscous: Any

    @property
    def slew(self) -> float:
        """Limit of the torque rate of all joints: the strongest goes from end to end in SWING [N m/s]."""
        return 2.0 * float(load(self.urdf).limits.effort.max()) / EFFORT_SWING_S


PANDA = Arm(panda(), HAND, COULOMB, VISCOUS)


def arm(name: str) -> Arm:
    """Return an arm of SOURCES."""
    source = ARM_SOURCES[name]
    if name == "panda":
        return PANDA
    urdf = share_file(source.urdf).read_text()
    effort = load(urdf).limits.effort
    return Arm(urdf, source.tool, RUBS * effort, 0.2 * RUBS * effort)


def robot(friction: bool, of: Arm = PANDA) -> Robot:
    names = load(of.urdf).joint_names
    rubs = zip(names, of.coulomb, of.viscous, strict=True)
    sections = {"friction": {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in rubs}}
    made = load(of.urdf, {"version": 1, "limits": {name: {"max_effort_rate": of.slew} for name in names},
                          **(sections if friction else {})})
    assert made.is_fixed_tree
    return made


def motions(count: int, seed: int = 0) -> list[Retimed]:
    """Return motions of the Panda near REST."""
    rng, bare = np.random.default_rng(seed), robot(False)
    return [retime_motion(bare, REST + RANGE * rng.uniform(-1.0, 1.0, (4, 7))) for _ in range(count)]


class Mujoco:
    """A Plant of the same face in MuJoCo."""

    def __init__(self, urdf: str, mass_factors: Any = 1.0, coulomb: Any = 0.0, viscous: Any = 0.0):
        self._model = scene(urdf, unmodelled=UnmodelledDynamics(mass_factors, coulomb, viscous), timestep=STEP / INNER).model
        self._data = mujoco().MjData(self._model)

    def step(self, dt: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        data = self._data
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, tau
        mujoco().mj_step(self._model, data)
        return data.qpos.copy(), data.qvel.copy()


def plants(uncertainties: ModelUncertainty, draws: int = 4, of: Arm = PANDA, kind: Any = Plant) -> list[Any]:
    """Robots as they may be."""
    rng, n = np.random.default_rng(99), len(of.coulomb)
    urdf = loaded(of.urdf, uncertainties.link, uncertainties.payload) if uncertainties.payload else of.urdf
    if uncertainties.masses:
        return [kind(urdf, 1.0 + uncertainties.masses * rng.uniform(-1.0, 1.0, n)) for _ in range(draws)]
    return [kind(urdf, 1.0 + sign * uncertainties.all_masses, uncertainties.friction * of.coulomb,
                 uncertainties.friction * of.viscous)
            for sign in ((1.0, -1.0) if uncertainties.all_masses else (1.0,))]


def loaded(urdf: str, link: str, mass: float) -> str:
    """Return a URDF with a ball at the origin of a link."""
    axes = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    moments = " ".join(f'{name}="{BALL if name[1] == name[2] else 0.0}"' for name in axes)
    ball = f'<link name="ball"><inertial><mass value="{mass}"/><inertia {moments}/></inertial></link>'
    fixed = f'<joint name="ball_fixed" type="fixed"><parent link="{link}"/><child link="ball"/></joint>'
    return urdf.replace("</robot>", f"{ball}{fixed}</robot>")


def needed(bare: Robot, motion: Retimed, plant: Any, uncertainties: ModelUncertainty) -> np.ndarray:
    """(2,): shares of torque and rate that keep the whole limits on this plant."""
    ahead = bare.inverse_dynamics(*motion(np.arange(0.0, motion.duration + 0.1, STEP))[:3])
    return np.minimum(use(bare, ahead) / use(bare, commanded(bare, motion, plant, uncertainties)), 1.0)


def commanded(bare: Robot, motion: Retimed, plant: Any, uncertainties: ModelUncertainty) -> np.ndarray:
    """Torques (samples, n) that feed-forward and a PD ask of a plant."""
    t = np.arange(0.0, motion.duration + 0.1, STEP)
    r, rd, rdd, _ = motion(t)
    ahead, M = bare.inverse_dynamics(r, rd, rdd), bare.mass_matrix(r)
    q, v, u = r[0].copy(), rd[0].copy(), np.zeros_like(r)
    before, speed, share = q, np.zeros(bare.n), 1.0 - np.exp(-2.0 * np.pi * min(uncertainties.cutoff, 1e6) * STEP)
    for k in range(len(t)):
        seen, slow = q, v
        if uncertainties.resolution:
            seen = uncertainties.resolution * np.round(q / uncertainties.resolution)
            speed, before = speed + share * ((seen - before) / STEP - speed), seen
            slow = speed
        u[k] = ahead[k] + M[k] @ (BANDWIDTH**2 * (r[k] - seen) + 2.0 * BANDWIDTH * (rd[k] - slow))
        for _ in range(INNER):
            q, v = plant.step(STEP / INNER, q, v, u[k])
    return u


def use(bare: Robot, tau: np.ndarray) -> np.ndarray:
    rate = (tau[20:] - tau[:-20]) / 0.02
    return np.array([(np.abs(tau) / bare.limits.effort).max(), (np.abs(rate) / bare.limits.effort_rate).max()])


def compared(of: Arm, along: list[Retimed], kind: Any, draws: int = 4) -> None:
    """Return the rows of one arm: the worst of some motions."""
    bare, rough = robot(False, of), robot(True, of)
    print("| uncertainty | torque: predicted | torque: needed | rate: predicted | rate: needed |\n|---|---|---|---|---|")
    for name, uncertainties in UNCERTAINTIES.items():
        uncertainties = uncertainties._replace(link=of.link) if uncertainties.payload else uncertainties
        found = limits_share(rough if uncertainties.friction else bare, along, uncertainties).shares
        worst = np.min([needed(bare, motion, plant, uncertainties)
                        for plant in plants(uncertainties, draws, of, kind) for motion in along],
                       axis=0)
        print(f"| {name} | {found.effort:.2f} | {worst[0]:.2f} | {found.effort_rate:.2f} | {worst[1]:.2f} |", flush=True)
    print()


def by_start(of: Arm, along: list[Retimed]) -> None:
    """Return the share that the torque rate needs, motion by motion, and gravity's torque at the start of each."""
    bare, uncertainties = robot(False, of), UNCERTAINTIES["all masses 10 %"]
    (heavier, _) = plants(uncertainties, 1, of, Mujoco)
    print("| gravity torque at the start [N m] | rate: predicted | rate: needed |\n|---|---|---|")
    rows = [(np.abs(bare.gravity(motion(np.zeros(1))[0][0])).max(),
             limits_share(bare, [motion], uncertainties).shares.effort_rate,
             needed(bare, motion, heavier, uncertainties)[1]) for motion in along]
    for row in sorted(rows):
        print("| {:.0f} | {:.2f} | {:.2f} |".format(*row))
    print()


def main() -> None:
    about = (__doc__ or "").partition("\n")[2].strip()
    print(f"# Predicted and required margins\n\n{about}\n\nPanda, limits 87 and 12 N m, 1000 N m/s; 6 paths near its home "
          "pose; plant simulated with Pinocchio (test/support/plant.py).\n")
    compared(PANDA, motions(6), Plant)
    for name in ARM_SOURCES:
        of = arm(name)
        bare = robot(False, of)
        along = random_motions(bare, bare.limits)
        print(f"{name}, torque-rate limit {of.slew:.0f} N m/s; 6 random paths, those of `rnea margin`; plant simulated in "
              "MuJoCo.\n")
        compared(of, along, Mujoco, 2)
        if of is PANDA:
            print("The same arm with all masses 10 % wrong, for each path: the share for the rate depends on the start of the "
                  "motion.\n")
            by_start(of, along + random_motions(bare, bare.limits, seed=1))


if __name__ == "__main__":
    main()
