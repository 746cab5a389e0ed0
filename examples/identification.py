"""A seven-axis arm whose URDF is wrong: excite it, record positions and torques, identify it, and predict another motion.

    python examples/identification.py [OUT_DIR]

The true robot is heavier or lighter than its URDF, link by link, carries a tool that the URDF does not know, and has rotors
and friction. Recorded are positions as an encoder counts them, at 200 Hz, and noisy torques; velocity and acceleration are
estimated. The motion is optimised for the condition number of its equations. Then the nearest possible robot is taken, and
asked for the torques of a motion that was not used to find it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import JointDynamics, Robot
from rnea_ros.identification.excitation import FourierMotion, excite
from rnea_ros.identification.identification import Identification, Measurements, identify
from rnea_ros.identification.physical_consistency import nearest
from rnea_ros.inertial.inertial_parameters import INERTIAL, parameters, values, with_values
from rnea_ros.output.figures import new_figure

ROOT = Path(__file__).resolve().parents[1]
SMOOTHING = 0.02  # rad/s, of Coulomb friction
ENCODER = 2.0 * np.pi / 2**20  # rad per count
NOISE = np.array([0.6, 0.8, 0.4, 0.4, 0.12, 0.12, 0.06])  # of the torque sensors [N m]
RATE, PERIOD = 200.0, 10.0  # samples per second; s
POSES = np.array([[0.0, -0.4, 0.0, -2.0, 0.0, 1.7, 0.8], [1.2, 0.5, 0.4, -1.4, -0.6, 2.1, -0.5],  # of the motion to predict
                  [-0.9, 0.8, -0.7, -1.0, 0.9, 1.4, 1.6], [0.3, 0.1, 1.0, -2.4, 0.4, 2.8, 0.0]])  # [rad]
LEG = 1.2  # s from pose to pose
SHOWN = (1, 3, 5)  # joints in the picture
BEFORE, AFTER, MEASURED = "#c0392b", "#1f4e79", "0.6"
KINDS = {"inertias": "#1f4e79", "first moments": "#2e8b57", "rotors": "#8e44ad", "friction, offset": "#d0731c"}


def true_robot(urdf: Robot) -> Robot:
    """What stands in the laboratory."""
    rng = np.random.default_rng(4)
    listed = parameters(urdf.model)
    bodies = values(urdf.model, listed).reshape(-1, 10) * rng.uniform(0.75, 1.3, (7, 1))
    friction = zip(urdf.joint_names, rng.uniform(0.5, 3.0, 7), rng.uniform(0.3, 2.0, 7), rng.normal(size=7) * 0.3)
    terms = {name: JointDynamics(1e-5, 100.0, coulomb, viscous, offset, SMOOTHING) for name, coulomb, viscous,
             offset in friction}
    model = with_values(urdf.model, listed, bodies.ravel()).with_joint_dynamics(terms)
    return Robot(model).with_payload("link7", 1.2, (0.02, 0.0, 0.12), np.diag([4e-3, 4e-3, 2e-3]))


def record(robot: Robot, motion: FourierMotion, seconds: float, seed: int) -> Measurements:
    """Encoder counts and torques with noise; nothing else."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd, _ = motion(t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    return Measurements(t, np.round(q / ENCODER) * ENCODER, tau + np.random.default_rng(seed).normal(size=tau.shape) * NOISE)


def between_poses() -> tuple[np.ndarray, ...]:
    """t, q, qd, qdd: rest to rest from pose to pose."""
    s = np.linspace(0.0, 1.0, 121)[:-1, None]
    shape = (10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / LEG,
             (60 * s - 180 * s**2 + 120 * s**3) / LEG**2)
    legs = list(zip(POSES, np.roll(POSES, -1, axis=0)))
    blocks = [np.concatenate([(a if k == 0 else 0.0) + (b - a) * x for a, b in legs]) for k, x in enumerate(shape)]
    return np.arange(len(blocks[0])) * LEG / len(s), *blocks


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    urdf = Robot.from_urdf(ROOT / "urdf" / "seven_r.urdf")
    true = true_robot(urdf)
    urdf = Robot(urdf.model.with_joint_dynamics({name: JointDynamics(smoothing=SMOOTHING) for name in urdf.joint_names}))
    exciting = excite(urdf, PERIOD, guesses=5 if small else 20, iterations=0 if small else 20)
    found = identify(urdf, record(true, exciting.motion, PERIOD if small else 3 * PERIOD, 0), decimate=4)
    possible = nearest(urdf.model, found.base, found.beta, found.solution.covariance)
    truth = found.base.grouping @ with_tool(true, found)

    t, *motion = between_poses()
    tau = true.inverse_dynamics(*motion)
    measured = tau + np.random.default_rng(9).normal(size=tau.shape) * NOISE
    before, after = (robot.inverse_dynamics(*motion) for robot in (urdf, Robot(possible.model)))
    picture(Path(out_dir) / "identification.png", found, t, measured, before, after)
    rms = [np.sqrt(np.mean((each - tau) ** 2, axis=0)) for each in (before, after)]
    return {"condition number": exciting.condition_number, "condition number of the first guess": exciting.first,
            "base parameters": len(found.base), "equations": found.solution.equations,
            "largest error in standard deviations": float(np.abs((found.beta - truth) / found.std).max()),
            "errors above 3 standard deviations": int(np.sum(np.abs(found.beta - truth) > 3.0 * found.std)),
            "distance to a possible robot [standard deviations]": possible.distance,
            "rms of torque error before [N m]": float(np.sqrt(np.mean(rms[0] ** 2))),
            "rms of torque error after [N m]": float(np.sqrt(np.mean(rms[1] ** 2))),
            "worst joint, error after / before": float(np.max(rms[1] / rms[0]))}


def with_tool(true: Robot, found: Identification) -> np.ndarray:
    """The true parameters, the tool being part of the last link."""
    full = values(true.model, found.base.parameters)
    last = [k for k, (_, kind, owner, _) in enumerate(found.base.parameters) if owner == "link7" and kind in INERTIAL]
    full[last] += true.payloads["link7"].parameters
    return full


def picture(path: Path, found: Identification, t, measured, before, after) -> None:
    """Left: torques of the motion to predict. Right: how well each parameter is known."""
    figure = new_figure(14, 7.6)
    axes = figure.subplot_mosaic([[f"tau{k}", "std"] for k in SHOWN], width_ratios=(1.25, 1.0))
    for k in SHOWN:
        axis = axes[f"tau{k}"]
        axis.plot(t, measured[:, k], ".", color=MEASURED, markersize=2.5, label="measured")
        axis.plot(t, before[:, k], color=BEFORE, linewidth=1.5, label="URDF")
        axis.plot(t, after[:, k], color=AFTER, linewidth=1.8, label="identified")
        axis.set_ylabel(f"joint {k + 1} [N m]")
        axis.margins(x=0.01)
        axis.grid(alpha=0.3)
    top = axes[f"tau{SHOWN[0]}"]
    top.set_title("Torques of another motion", loc="left")
    top.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=9, frameon=False, markerscale=3)
    axes[f"tau{SHOWN[-1]}"].set_xlabel("time [s]")
    uncertainty(axes["std"], found)
    figure.savefig(path, dpi=110)


def uncertainty(axis, found: Identification) -> None:
    """Size of every base parameter over its standard deviation: what is above 3 is known, with its sign."""
    starts = {"J": "inertias", "m": "first moments", "I": "rotors"}
    kinds = [starts.get(name[0], "friction, offset") for name in found.base.names]
    start = 0
    for kind, colour in KINDS.items():
        chosen = np.sort(1.0 / found.relative_std[[k == kind for k in kinds]])[::-1]
        places = start + np.arange(len(chosen))
        axis.bar(places, chosen, color=colour, width=0.8, label=kind)
        start += len(chosen) + 2
    axis.axhline(3.0, color="0.2", linewidth=1.0, linestyle="--")
    axis.text(15.2, 3.3, "below: zero, as far\nas this recording tells", fontsize=8)
    axis.set(yscale="log", ylabel="|value| / standard deviation", xticks=[], xlabel=f"{len(found.base)} base parameters, best "
             f"known first in each group; condition number {found.solution.condition_number:.1f}")
    axis.set_title("How well each base parameter is known", loc="left")
    axis.legend(loc="upper right", fontsize=9)
    axis.grid(alpha=0.3, axis="y")


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:55} {value:.6g}")
