"""An arm with two rigid joints and an elastic one, its motors far from it: the simulation of hua-mixed-joints, section V.

    python examples/elastic_arm.py [OUT_DIR]

The inverse-dynamics controller (37)-(49) follows sines in all joints for ten seconds; the last joint starts 25 degrees off.
There are four runs: without load; with the paper's payload, which its model does not contain; and with a weight of 3 N at the
tool, not contained and contained in the model.

The paper's payload is f_e = (0, 0, -3) N, in (20) a force BY the last link, so it acts upwards on the arm: motor torques are
lower with it than without, as in the paper; with a weight they are higher. The paper gives neither lengths nor gains. With
urdf/hua_arm.urdf and four chosen gains all six tracking errors are within 6 % of the paper's. That supports the model and does
not prove it. The desired motor position of the elastic joint needs two time derivatives of a torque; they are exact, from the
recursion on Taylor series, not filtered.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, InverseDynamicsController, Loads, picture, simulate_elastic_arm

ROOT = Path(__file__).resolve().parents[1]
GAINS = {"slope": 6.8, "damping": 58.0, "motor_slope": 33.0, "motor_damping": 38.0}  # Lambda [1/s], K_D [N m s/rad]
START = np.array([0.0, 0.0, -0.4363])  # rad, at rest, spring relaxed
DURATION = 10.0  # s
FORCE = np.array([0.0, 0.0, -3.0, 0.0, 0.0, 0.0])  # on the robot, along the root's axes [N, N m]
WEIGHT = Loads(world_wrenches={"tool": FORCE})
F_E = Loads(world_wrenches={"tool": -FORCE})  # the paper's f_e, as a force on the robot
PAPER = {"without payload": (0.0026819, 0.003619, 0.052678), "f_e as printed": (0.0026903, 0.0061066, 0.052422)}  # RMSE, rad


def desired(t: float) -> list[np.ndarray]:
    """0.5 sin(pi t / 2) rad in every joint, and its first to fourth derivative."""
    w = np.pi / 2
    return [np.full(3, 0.5 * w**k * np.sin(w * t + k * np.pi / 2)) for k in range(5)]


def draw(path: Path, runs) -> None:
    """Draw how the elastic joint approaches and tracks its sine, and the motion of motor 2."""
    with picture(path, (11, 7.5), settings=STYLE) as figure:
        error, torque = figure.subplots(2, 1, sharex=True)
        for name, s in runs.items():
            style = "--" if name == "known weight" else "-"
            error.semilogy(s.t, 1e3 * np.maximum(np.abs(s.q_desired - s.q)[:, 2], 1e-9), style, label=name)
            torque.plot(s.t, s.tau[:, 1], style, label=name)
        error.set(title="tracking error of the elastic joint [mrad]", ylim=(1e-5, 1e3))
        torque.set(xlabel="time [s]", title="torque of motor 2 [N m]", ylim=(0.0, 16.0))
        torque.legend(ncols=2, loc="upper right")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    arm = rnea_ros.load(ROOT / "urdf" / "hua_arm.urdf", ROOT / "urdf" / "hua_arm.robot.yaml")
    controller = InverseDynamicsController(arm, **GAINS)
    start = START, START[2:], np.zeros(3), np.zeros(1)
    run = partial(simulate_elastic_arm, arm, desired=desired, start=start, duration=DURATION, step=5e-3 if small else 2e-3)
    runs = {"without payload": run(controller),
            "f_e as printed": run(controller, loads=F_E),
            "unknown weight": run(controller, loads=WEIGHT),
            "known weight": run(partial(controller, loads=WEIGHT), loads=WEIGHT)}
    draw(Path(out_dir) / "elastic_arm.png", runs)
    numbers = {f"RMSE {name}, {joint} [rad]": float(x) for name, simulation in runs.items()
               for joint, x in zip(arm.joint_names, simulation.rmse)}
    for name, s in runs.items():
        numbers[f"largest error after 5 s, {name} [rad]"] = float(np.abs(s.q_desired - s.q)[s.t > 5.0].max())
        numbers[f"torque of motor 2 at 3 s, {name} [N m]"] = float(np.interp(3.0, s.t, s.tau[:, 1]))
    return numbers


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:50} {value:.6g}")
