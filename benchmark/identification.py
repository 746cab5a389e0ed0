"""Accuracy of `rnea identify` with its defaults: arms with friction that no model here has, and recordings of real ones.

    python -m benchmark.identification [--real FOLDER] [--seeds N]

Simulated: arms of example-robot-data with other masses, rotors, and friction with a Gaussian Stribeck curve that
grows with load; 60 s of an exciting motion at 500 Hz, positions of 2^-17 turn, torques with noise. What is written (URDF and
robot file) foretells another motion. Real: a folder with ur10_exciting_trajectory.csv and panda_exciting_trajectory.csv of
https://github.com/unisa-acg/inverse-dynamics-solver (BSD-3-Clause), which are not part of this repository; fitted on
the first 70 %, and the rest foretold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rnea_ros
from rnea_ros import Robot
from rnea_ros.cli.inputs import read_measurements
from rnea_ros.identification import result_files
from rnea_ros.identification.excitation import FourierMotion
from rnea_ros.identification.fitting import Fit, fit
from rnea_ros.identification.identification import Measurements
from rnea_ros.io.recording import ReadingOptions

SECONDS, RATE, TURN = 60.0, 500.0, 2.0 * np.pi / 2**17
TORQUE_NOISE = 0.01  # of each joint's torque
REAL = {  # published residuals [N m], beside which ours stand
    "ur10": ("ur_description/urdf/ur10_robot.urdf", [], [], (4.2, 4.7, 1.6, 0.75, 0.74, 1.3)),
    "panda": ("panda_description/urdf/panda.urdf", [("fer_", "panda_")], [("panda_finger_joint1", 0.0)],
              (0.72, 0.61, 0.57, 0.81, 0.15, 0.24, 0.08))}
SIMULATED = {"panda": "panda_description/urdf/panda.urdf", "ur5": "ur_description/urdf/ur5_robot.urdf",
             "xarm7": "xarm_description/urdf/xarm7.urdf"}


class Plant(NamedTuple):
    """A robot in a laboratory: bodies and rotors, and friction (n,) each."""

    robot: Robot
    coulomb: np.ndarray
    viscous: np.ndarray
    stribeck: np.ndarray
    speed: np.ndarray
    load: np.ndarray

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torques (samples, n) without noise."""
        rigid = self.robot.inverse_dynamics(q, qd, qdd)
        size = self.coulomb + self.stribeck * np.exp(-(qd / self.speed) ** 2) + self.load * np.abs(rigid)
        return rigid + size * np.tanh(qd / 2e-3) + self.viscous * qd


def plant(urdf: Robot, seed: int) -> Plant:
    """Links 25 % lighter to 30 % heavier, rotors, friction of a few percent of the torques."""
    rng = np.random.default_rng(seed)
    links = [replace(link, m=link.m * s, ms=link.ms * s, J=link.J * s,
                     term=replace(link.term, rotor_inertia=rng.uniform(0.05, 0.5) if link.joint else 0.0))
             for link, s in ((link, rng.uniform(0.75, 1.3)) for link in urdf.model.links)]
    robot, n = Robot.from_model(replace(urdf.model, links=tuple(links))), urdf.n
    size = 0.05 * np.minimum(np.nan_to_num(urdf.limits.effort, nan=50.0), 150.0)
    return Plant(robot, size * rng.uniform(0.5, 1.0, n), size * rng.uniform(0.2, 0.8, n), size * rng.uniform(0.1, 0.5, n),
                 rng.uniform(0.03, 0.2, n), rng.uniform(0.02, 0.08, n))


def motion(robot: Robot, seed: int) -> FourierMotion:
    """Random, with periods of 10 s, within position and velocity limits; a gripper's fingers at rest."""
    rng = np.random.default_rng(seed)
    limits, t = robot.limits, np.linspace(0.0, 10.0, 1001)
    lower, upper = np.maximum(limits.lower, -2.0), np.minimum(limits.upper, 2.0)
    centre, reach = (lower + upper) / 2.0, 0.8 * (upper - lower) / 2.0
    still = FourierMotion(10.0, np.zeros(robot.n), *(rng.normal(size=(2, 5, robot.n))))
    q, qd, *_ = still(t)
    scale = np.minimum(reach / np.abs(q).max(axis=0), 0.6 * limits.velocity / np.abs(qd).max(axis=0))
    scale[[kind == "prismatic" for kind in robot.joint_types]] = 0.0
    return FourierMotion(10.0, centre, still.a * scale, still.b * scale)


def simulated(name: str, seed: int) -> tuple[Fit, np.ndarray, np.ndarray]:
    """Return the fit, and for another motion the RMS of torque and of the prediction error (joints,)."""
    urdf = folder() / SIMULATED[name]
    robot = Robot.from_urdf(urdf)
    true, rng, t = plant(robot, seed), np.random.default_rng(seed + 1000), np.arange(0.0, SECONDS, 1.0 / RATE)
    q, qd, qdd, _ = motion(robot, seed)(t)
    tau = true.torque(q, qd, qdd)
    tau += rng.normal(size=tau.shape) * TORQUE_NOISE * np.std(tau, axis=0)
    tau[:, [kind == "prismatic" for kind in robot.joint_types]] = np.nan
    found = fit(robot, Measurements(t, np.round(q / TURN) * TURN, tau))
    other = motion(robot, seed + 77)(t[:10_000])[:3]
    with tempfile.TemporaryDirectory() as folder_:
        result_files.write(folder_, found, str(urdf), {}, "", pictures=False)
        written = rnea_ros.load(Path(folder_) / result_files.URDF, Path(folder_) / result_files.ROBOT_FILE)
        joints = list(found.joints)
        asked, torque_ = true.torque(*other)[:, joints], written.inverse_dynamics(*other)[:, joints]
    return found, *(np.sqrt(np.mean(x**2, axis=0)) for x in (asked, torque_ - asked))


def real(name: str, recordings: Path) -> Fit:
    urdf, rename, held, _ = REAL[name]
    robot = Robot.from_urdf(folder() / urdf)
    reading = ReadingOptions(rename=tuple(rename), held=tuple(held))
    return fit(robot, read_measurements(recordings / f"{name}_exciting_trajectory.csv", robot, reading))


def folder() -> Path:
    """Return the folder of robots in example-robot-data."""
    import pinocchio

    for folder_ in Path(pinocchio.__file__).parents:
        if (found := folder_ / "share" / "example-robot-data" / "robots").is_dir():
            return found
    raise SystemExit("pip install example-robot-data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real", type=Path, help="folder of the recordings")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", nargs="*", default=list(SIMULATED), metavar="ARM")
    args = parser.parse_args()
    for name in REAL if args.real else ():
        found = real(name, args.real)
        print(f"{name}, recorded: held out {_row(found.validation_error)} N m; published {_row(REAL[name][3])}; explained: "
              f"{found.explained}", flush=True)
    for name in args.arms:
        for seed in range(args.seeds):
            begin = time.perf_counter()
            found, rms, error = simulated(name, seed)
            share = np.sqrt(np.mean(found.validation_error**2) / np.mean(found.rms**2))
            other = np.sqrt(np.mean(error**2) / np.mean(rms**2))
            print(f"{name} {seed}: held out {100 * share:.2f} %, another motion {100 * other:.2f} %, by joint "
                  f"{_row(100 * error / rms)} %; explained: {found.explained}, {time.perf_counter() - begin:.0f} s",
                  flush=True)


def _row(values) -> str:
    return " ".join(f"{x:.3g}" for x in values)


if __name__ == "__main__":
    sys.exit(main())
