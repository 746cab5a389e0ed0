"""What a 7R arm's torques are sensitive to along a motion, and how far a first-order prediction from it can be trusted.

    python examples/sensitivities.py [OUT_DIR]

The motion is disturbed by a small wave, size times dq(t). Torques, torque rates and internal joint wrenches of the disturbed
motion are predicted from the sensitivities at the undisturbed one, d tau = dtau_dq dq + dtau_dqd dqd + dtau_dqdd dqdd, and
compared with exact ones: the error must shrink with the square of the size, or a sensitivity is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import Robot
from rnea_ros.output.figures import new_figure

URDF = Path(__file__).parents[1] / "urdf" / "seven_r.urdf"
DURATION = 4.0  # s
SIZES = np.array([1e-3, 3e-3, 1e-2, 3e-2, 1e-1])  # of the disturbance [rad]
SHOWN = 0.1  # rad


def wave(t: np.ndarray, centre: np.ndarray, size: np.ndarray, cycles: np.ndarray) -> np.ndarray:
    """q, qd, qdd, qddd, (4, samples, n), of sines about a centre that make whole cycles in DURATION."""
    w = 2.0 * np.pi * cycles / DURATION
    phase = t[:, None] * w + np.arange(len(w))
    orders = np.arange(4)[:, None, None]
    return size * w**orders * np.sin(phase + orders * (np.pi / 2)) + centre * (orders == 0)


def predicted(sensitivities, disturbance: np.ndarray) -> np.ndarray:
    """Sum of sensitivities times disturbances of q, qd, ...; a leading axis for samples."""
    return sum(np.einsum("s...k,sk->s...", table, change) for table, change in zip(sensitivities, disturbance))


def quantities(robot: Robot, state: np.ndarray) -> dict[str, np.ndarray]:
    tau, tau_rate = robot.torque_and_rate(*state)
    return {"torque": tau, "torque rate": tau_rate, "internal wrench": robot.joint_wrenches(*state[:3]).wrench}


def picture(path: Path, robot: Robot, t: np.ndarray, dtau_dq: np.ndarray, torque: dict[str, np.ndarray],
            errors: dict[str, np.ndarray]) -> None:
    figure = new_figure(13, 7)
    heat, curve, error = figure.subplot_mosaic([["heat", "curve"], ["heat", "error"]], width_ratios=(1.1, 1.0)).values()
    n = robot.n
    largest = np.abs(dtau_dq).max(axis=(0, 2))
    rows = (dtau_dq / np.maximum(largest, 1e-12)[:, None]).reshape(len(t), n * n).T
    middles = np.arange(n * n) + 0.5
    image = heat.pcolormesh(t, middles, rows, cmap="RdBu_r", vmin=-1, vmax=1, shading="nearest", rasterized=True)
    heat.invert_yaxis()
    heat.hlines(np.arange(1, n) * n, t[0], t[-1], color="black", linewidth=0.8)
    heat.yaxis.remove_overlapping_locs = False
    names = [f"torque {k}\n{x:.2g} N m/rad" for k, x in enumerate(largest, start=1)]
    heat.set_yticks(np.arange(n) * n + n / 2, names, fontsize=8)
    heat.set_yticks(middles, [f"q{k % n + 1}" for k in range(n * n)], minor=True, fontsize=5)
    heat.tick_params(axis="y", which="major", length=0, pad=14)
    heat.tick_params(axis="y", which="minor", length=0, pad=2)
    heat.set(xlabel="time [s]", title="d tau / d q, each torque relative to its largest entry")
    figure.colorbar(image, ax=heat, pad=0.01)
    for k, colour in ((1, "tab:blue"), (3, "tab:orange")):
        name = f"joint {k + 1}, undisturbed"
        curve.plot(t, torque["undisturbed"][:, k], color=colour, linewidth=0.8, linestyle=":", label=name)
        curve.plot(t, torque["exact"][:, k], color=colour, linewidth=2.4, alpha=0.5, label="disturbed, exact")
        curve.plot(t, torque["predicted"][:, k], color=colour, linewidth=1.0, linestyle="--", label="disturbed, first order")
    curve.set(xlabel="time [s]", ylabel="torque [N m]", title=f"a motion disturbed by {SHOWN:g} rad")
    curve.legend(fontsize=8, ncols=2)
    curve.grid(alpha=0.3)
    for (name, values), mark in zip(errors.items(), "os^"):
        error.loglog(SIZES, values, marker=mark, label=name)
    error.loglog(SIZES, errors["torque"][0] * 0.2 * (SIZES / SIZES[0]) ** 2, color="gray", linestyle=":", label="slope 2")
    error.set(xlabel="size of the disturbance [rad]", ylabel="error / largest value")
    error.set_title("error of the first-order prediction")
    error.legend(fontsize=8)
    error.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=120)


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF)
    t = np.linspace(0.0, DURATION, 81 if small else 401)
    limits, joints = robot.limits, np.arange(1, robot.n + 1)
    middle, reach = (limits.upper + limits.lower) / 2.0, (limits.upper - limits.lower) / 2.0
    state = wave(t, middle, 0.35 * reach, 1.0 + joints % 2)
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
    disturbed = quantities(robot, state + SHOWN * change)["torque"]
    torque = {"undisturbed": before["torque"], "exact": disturbed, "predicted": before["torque"] + SHOWN * slopes["torque"]}
    picture(Path(out_dir) / "sensitivities.png", robot, t, tables["torque"].dtau_dq, torque,
            {name: np.array(values) for name, values in errors.items()})
    order = {f"order of the error, {name}": float(np.polyfit(np.log(SIZES[:3]), np.log(values[:3]), 1)[0])
             for name, values in errors.items()}
    largest = float(np.abs(tables["torque"].dtau_dq).max())
    return {"largest dtau/dq": largest, "error at 0.01 rad": errors["torque"][2], **order}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:36} {value:.6g}")
