"""Accuracy of first-order predictions from sensitivities, on a 7R arm whose motion is disturbed.

    python examples/sensitivities.py [OUT_DIR]

The motion is disturbed by a small wave, size times dq(t). Torques, torque rates and internal joint wrenches of the disturbed
motion are predicted from the sensitivities at the undisturbed one, d tau = dtau_dq dq + dtau_dqd dqd + dtau_dqdd dqdd, and
compared with exact ones: the error must shrink with the square of the size, or a sensitivity is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, Robot, picture

URDF = Path(__file__).parents[1] / "urdf" / "seven_r.urdf"
DURATION = 4.0  # s
SIZES = np.array([1e-3, 3e-3, 1e-2, 3e-2, 1e-1])  # of the disturbance [rad]; the last one is shown
SHOWN = 1  # joint


def wave(t: np.ndarray, centre: np.ndarray, size: np.ndarray, cycles: np.ndarray) -> np.ndarray:
    """q, qd, qdd, qddd, (4, samples, n), of sines about a centre that make whole cycles in DURATION."""
    w, k = 2.0 * np.pi * cycles / DURATION, np.arange(4)[:, None, None]
    return size * w**k * np.sin(t[:, None] * w + np.arange(len(w)) + k * np.pi / 2) + centre * (k == 0)


def predicted(sensitivities, disturbance: np.ndarray) -> np.ndarray:
    """Sum of sensitivities times disturbances of q, qd, ...; a leading axis for samples."""
    return sum(np.einsum("s...k,sk->s...", table, change) for table, change in zip(sensitivities, disturbance))


def quantities(robot: Robot, state: np.ndarray) -> dict[str, np.ndarray]:
    tau, tau_rate = robot.torque_and_rate(*state)
    return {"torque": tau, "torque rate": tau_rate, "internal wrench": robot.joint_wrenches(*state[:3]).wrench}


def draw(path: Path, t: np.ndarray, curves: dict[str, np.ndarray], errors: dict[str, list[float]]) -> None:
    with picture(path, (11, 4.6), settings=STYLE) as figure:
        curve, error = figure.subplots(1, 2)
        for (name, values), style in zip(curves.items(), (":", "-", "--")):
            curve.plot(t, values[:, SHOWN], style, label=name, linewidth=4.0 if style == "-" else 2.0)
        curve.set(xlabel="time [s]", title=f"torque {SHOWN + 1} [N m], motion disturbed by {SIZES[-1]:g} rad")
        curve.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.35))
        for (name, values), mark in zip(errors.items(), "os^"):
            error.loglog(SIZES, values, marker=mark, label=name)
        error.set(xlabel="size of the disturbance [rad]", title="error / largest value: slope 2")
        error.minorticks_off()
        error.legend()


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot, t = Robot.from_urdf(URDF), np.linspace(0.0, DURATION, 81 if small else 401)
    lower, upper, joints = robot.limits.lower, robot.limits.upper, np.arange(1, robot.n + 1)
    state = wave(t, (upper + lower) / 2.0, 0.175 * (upper - lower), 1.0 + joints % 2)
    change = wave(t, np.zeros(robot.n), np.ones(robot.n), 1.0 + joints % 3)
    tables = {"torque": robot.sensitivities(*state[:3]), "torque rate": robot.rate_sensitivities(*state),
              "internal wrench": robot.joint_wrench_sensitivities(*state[:3])[1:]}
    before, slopes = quantities(robot, state), {name: predicted(found, change) for name, found in tables.items()}
    errors: dict[str, list[float]] = {name: [] for name in tables}
    for size in SIZES:
        after = quantities(robot, state + size * change)
        for name, slope in slopes.items():
            wrong = after[name] - before[name] - size * slope
            errors[name].append(float(np.abs(wrong).max() / np.abs(before[name]).max()))
    draw(Path(out_dir) / "sensitivities.png", t, {"undisturbed": before["torque"], "disturbed": after["torque"],
                                                  "predicted": before["torque"] + size * slopes["torque"]}, errors)
    return {"error at 0.01 rad": errors["torque"][2], **{
        f"order of the error, {name}": float(np.polyfit(np.log(SIZES[:3]), np.log(values[:3]), 1)[0])
        for name, values in errors.items()}}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:36} {value:.6g}")
