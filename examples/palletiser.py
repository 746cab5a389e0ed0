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

from rnea_ros.algorithms.kinematics import base_poses, within
from rnea_ros.output.figures import new_figure
from rnea_ros.robots.closed_loops import ClosedLoopRobot

ROOT = Path(__file__).resolve().parents[1]
STATIONS = np.array([[-0.9, 0.75, 0.55, 0.0], [0.1, -0.15, 0.05, 0.6], [1.1, 0.55, 0.35, 1.1]])  # pick, top, place [rad]
DURATION = 2.4  # s
BOX, SIZE = 60.0, (0.5, 0.4, 0.3)  # kg, m
PINS = {"lower_arm": [(0, 0, 0), (0, 0, 1.0)], "upper_arm": [(-0.35, 0, 0), (1.1, 0, 0)], "crank": [(0, 0, 0), (-0.35, 0, 0)],
        "drive_rod": [(0, 0, 0), (0, 0, 1.0)], "levelling_rod": [(0, 0, 0), (0, 0, 1.0)], "fore_rod": [(0, 0, 0), (1.1, 0, 0)],
        "plate": [(0, 0, 0), (-0.2, 0, 0.05), (0.04, 0, 0.18), (0, 0, 0)],
        "wrist": [(0, 0, 0), (0.04, 0, 0.18), (0.1, 0, -0.08), (0, 0, 0)]}
COLOURS = {"lower_arm": "#d0731c", "upper_arm": "#d0731c", "crank": "#1f4e79", "drive_rod": "#1f4e79", "plate": "0.35",
           "wrist": "0.35"}


def motion(t: np.ndarray) -> list[np.ndarray]:
    """Position .. jerk of the motors: polynomials through the stations, at both ends at rest up to the jerk."""
    T = np.polynomial.Polynomial
    rows = [[T.basis(j).deriv(k)(end) for j in range(9)] for k in range(4) for end in (0.0, 1.0)]
    rows.append([T.basis(j)(0.5) for j in range(9)])
    values = np.concatenate((STATIONS[[0, 2]], np.zeros((6, 4)), STATIONS[[1]]))
    polynomials = [T(coefficients) for coefficients in np.linalg.solve(rows, values).T]
    return [np.column_stack([p.deriv(k)(t / DURATION) / DURATION**k for p in polynomials]) for k in range(4)]


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    empty = ClosedLoopRobot.from_urdf(ROOT / "urdf" / "palletiser.urdf", ROOT / "urdf" / "palletiser.robot.yaml")
    x, y, z = SIZE
    inertia = BOX / 12.0 * np.diag([y**2 + z**2, z**2 + x**2, x**2 + y**2])
    loaded = empty.with_payload("flange", BOX, (0.0, 0.0, -0.08 - 0.5 * z), inertia)
    t = np.linspace(0.0, DURATION, 49 if small else 481)
    qa = motion(t)
    results = {"empty": empty.torque_and_rate(*qa), "with 60 kg": loaded.torque_and_rate(*qa)}
    q = empty.close(qa[0])
    across = [pose(empty, "wrist", sample)[0][:2, 2] for sample in q]
    picture(Path(out_dir) / "palletiser.png", empty, t, qa[0], q, results)
    numbers = {"largest tilt of the wrist [rad]": float(np.abs(across).max())}
    for name, (tau, tau_rate) in results.items():
        peaks = np.abs(tau).max(axis=0)
        numbers |= {f"peak torque {joint}, {name} [N m]": float(peak) for joint, peak in zip(empty.joint_names, peaks)}
        numbers[f"peak torque rate, {name} [N m/s]"] = float(np.abs(tau_rate).max())
    work = np.sum((results["with 60 kg"][0] * qa[1])[1:-1]) * (t[1] - t[0])  # the trapezoids' sum: at rest at both ends
    gain = potential(loaded, q[-1]) - potential(loaded, q[0])
    return numbers | {"work of the motors [J]": float(work), "potential energy gained [J]": float(gain)}


def potential(robot: ClosedLoopRobot, q: np.ndarray) -> float:
    """Of all links and payloads [J]."""
    return robot.tree.energy(q, 0.0 * q).potential


def pose(robot: ClosedLoopRobot, link: str, q: np.ndarray):
    model = robot.tree.model
    frame = model.frame(link)
    return within(base_poses(model, q)[frame.link], (frame.R, frame.P))


def picture(path: Path, robot: ClosedLoopRobot, t, qa, q, results) -> None:
    figure = new_figure(15, 8.2)
    machine, curves = figure.subfigures(1, 2, width_ratios=(1.0, 1.25))
    draw(machine.subplots(), robot, q)
    axes = curves.subplots(4, 2, sharex=True)
    for k, (joint, row) in enumerate(zip(robot.joint_names, axes)):
        for (name, (tau, tau_rate)), style in zip(results.items(), ({"color": "0.55"}, {"color": "#1f4e79"})):
            row[0].plot(t, tau[:, k], linewidth=1.7, label=name, **style)
            row[1].plot(t, tau_rate[:, k], linewidth=1.7, **style)
        quotients = np.diff(results["with 60 kg"][0][:, k]) / np.diff(t)
        step = max(1, len(t) // 48)
        middle = 0.5 * (t[1:] + t[:-1])
        row[1].plot(middle[::step], quotients[::step], ".", color="0.1", markersize=3, label="difference quotient")
        row[0].set_ylabel(f"{joint}\n[N m]")
        row[1].set_ylabel("[N m/s]")
        for axis in row:
            axis.grid(alpha=0.3)
            axis.margins(x=0.01, y=0.1)
    axes[0, 0].set_title("torque", loc="left")
    axes[0, 1].set_title("its exact rate", loc="left")
    axes[0, 0].legend(fontsize=8)
    axes[0, 1].legend(fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.savefig(path, dpi=105)


def draw(axis, robot: ClosedLoopRobot, q) -> None:
    """The machine from the side, in the plane of its arm, at the pick, over the top and at the place."""
    from matplotlib.patches import Rectangle

    path = []
    for sample in q:
        R, P = pose(robot, "flange", sample)
        path.append([np.hypot(P[0], P[1]), P[2]])
    for moment, strength in ((0, 0.25), (len(q) // 2, 1.0), (len(q) - 1, 0.45)):
        R0, P0 = pose(robot, "column", q[moment])
        for link, pins in PINS.items():
            R, P = pose(robot, link, q[moment])
            points = np.array([R0.T @ (P + R @ np.array(pin) - P0) for pin in pins])
            thick = 9 if link.endswith("arm") else 4
            axis.plot(points[:, 0], points[:, 2] + P0[2], "-o", color=COLOURS.get(link, "0.6"), linewidth=thick, markersize=5,
                      markerfacecolor="white", alpha=strength, solid_capstyle="round", zorder=2 if thick == 4 else 1)
        x, z = path[moment]
        axis.add_patch(Rectangle((x - 0.5 * SIZE[0], z - 0.08 - SIZE[2]), SIZE[0], SIZE[2], facecolor="#c9a26b",
                                 edgecolor="0.2", alpha=strength, zorder=0))
    axis.plot(*np.array(path).T, color="#c0392b", linewidth=1.5, label="path of the flange", zorder=4)
    axis.add_patch(Rectangle((-0.2, 0.0), 0.55, 0.75, facecolor="0.8", edgecolor="0.4", zorder=0))
    axis.axhline(0.0, color="0.4", linewidth=2)
    axis.set(aspect="equal", xlabel="distance from the waist [m]", ylabel="height [m]",
             title="Three parallelograms keep the load level")
    axis.legend(loc="upper right", fontsize=8)
    axis.grid(alpha=0.3)


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:45} {value:.6g}")
