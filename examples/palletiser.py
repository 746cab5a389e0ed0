"""A palletiser stacks a box: four motors, three parallelograms, and what the load costs in torque and in torque rate.

    python examples/palletiser.py [OUT_DIR]

From the conveyor up, across and down to the pallet, at rest at each end, with joint positions that are smooth up to the jerk.
Once with a box of 60 kg on the flange and once without. Nothing drives the wrist: the parallelograms keep it level, which here
is a result.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, Robot, draw_stills, load, picture

ROOT = Path(__file__).resolve().parents[1]
STATIONS = np.array([[-0.9, 0.75, 0.0, 0.55], [0.1, -0.15, 0.6, 0.05], [1.1, 0.55, 1.1, 0.35]])  # pick, top, drop [rad]
DURATION, BOX, SIZE, FORE = 2.4, 60.0, np.array([0.5, 0.4, 0.3]), 3  # s, kg, m; column of joint3
PINS = {"lower_arm": [(0, 0, 0), (0, 0, 1.0)], "upper_arm": [(-0.35, 0, 0), (1.1, 0, 0)], "crank": [(0, 0, 0), (-0.35, 0, 0)],
        "drive_rod": [(0, 0, 0), (0, 0, 1.0)], "levelling_rod": [(0, 0, 0), (0, 0, 1.0)], "fore_rod": [(0, 0, 0), (1.1, 0, 0)],
        "plate": [(0, 0, 0), (-0.2, 0, 0.05), (0.04, 0, 0.18), (0, 0, 0)],
        "wrist": [(0, 0, 0), (0.04, 0, 0.18), (0.1, 0, -0.08), (0, 0, 0)]}
ARM, ROD, LOAD = "#d55e00", "#0072b2", "#e69f00"


def motion(t: np.ndarray) -> list[np.ndarray]:
    """Position .. jerk of the motors: polynomials through the stations, at both ends at rest up to the jerk."""
    (pick, top, drop), s = STATIONS, np.polynomial.Polynomial([0.0, 1.0])
    across, up = s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3), 256.0 * s**4 * (1.0 - s) ** 4
    steps = ((across, drop - pick), (up, top - (pick + drop) / 2.0), (s**0, pick))
    return [sum(np.outer(p.deriv(k)(t / DURATION) / DURATION**k, step) for p, step in steps) for k in range(4)]


def side(robot: Robot, q: np.ndarray, link: str, points) -> np.ndarray:
    """Return (samples, points, 2): points of a link in the plane of the arm, from the column outwards and up."""
    (R, P), (column, foot) = robot.tree.link_pose(link, q), robot.tree.link_pose("column", q)
    positions = (P[:, None] + np.array(points) @ np.swapaxes(R, 1, 2) - foot[:, None]) @ column
    return positions[..., [0, 2]] + foot[:, None, [0, 2]] * [0.0, 1.0]


def draw(path: Path, robot: Robot, t, q, results) -> None:
    corners = [(x * SIZE[0] / 2, 0.0, -0.08 - z * SIZE[2]) for x, z in ((-1, 0), (1, 0), (1, 1), (-1, 1), (-1, 0))]
    with picture(path, (13, 6), settings=STYLE) as figure:
        machine, torque, rate = figure.subplot_mosaic([["m", "t"], ["m", "r"]], width_ratios=(1.0, 1.2)).values()
        for link, pins in PINS.items():
            colour, width = (ARM, 8.0) if link.endswith("arm") else (ROD, 3.0)
            draw_stills(machine, side(robot, q[::len(q) // 2], link, pins), colour, 0.3, marker="o", linewidth=width)
        draw_stills(machine, side(robot, q[::len(q) // 2], "flange", corners), LOAD, 0.3)
        machine.plot(*side(robot, q, "flange", [(0, 0, 0)])[:, 0].T, color="#009e73")
        machine.set(aspect="equal", xlabel="from the waist [m]", ylabel="height [m]", title="the load stays level")
        for (name, (tau, tau_rate)), colour in zip(results.items(), ("0.6", LOAD)):
            torque.plot(t, 1e-3 * tau[:, FORE], color=colour, label=name)
            rate.plot(t, 1e-3 * tau_rate[:, FORE], color=colour)
        torque.set(title=f"torque of {robot.joint_names[FORE]} [kN m]")
        torque.legend()
        rate.set(xlabel="time [s]", title="its exact rate [kN m/s]")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    empty = load(ROOT / "urdf" / "palletiser.urdf", ROOT / "urdf" / "palletiser.robot.yaml")
    inertia = BOX / 12.0 * np.diag(np.sum(SIZE**2) - SIZE**2)
    loaded = empty.with_payload("flange", BOX, (0.0, 0.0, -0.08 - 0.5 * SIZE[2]), inertia)
    qa = motion(t := np.linspace(0.0, DURATION, 49 if small else 481))
    results, q = {"empty": empty.torque_and_rate(*qa), "with 60 kg": loaded.torque_and_rate(*qa)}, empty.close(qa[0])
    draw(Path(out_dir) / "palletiser.png", empty, t, q, results)
    numbers = {f"peak torque joint3, {name} [N m]": float(np.abs(tau[:, FORE]).max()) for name, (tau, _) in results.items()}
    work = np.sum((results["with 60 kg"][0] * qa[1])[1:-1]) * (t[1] - t[0])  # the trapezoids' sum: at rest at both ends
    potential = loaded.tree.energy(q[[0, -1]], 0.0 * q[:2]).potential
    return numbers | {"largest tilt of the wrist [rad]": float(np.abs(empty.tree.link_pose("wrist", q).R[:, :2, 2]).max()),
                      "work of the motors [J]": float(work), "potential energy gained [J]": float(potential[1] - potential[0])}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:45} {value:.6g}")
