"""A seven-axis arm whose URDF is wrong: excite it, record positions and torques, identify it, and predict another motion.

    python examples/identification.py [OUT_DIR]

The true robot is heavier or lighter than its URDF, link by link, and has rotors and friction. Recorded are positions as an
encoder counts them, at 200 Hz, and noisy torques; velocity and acceleration are estimated. The motion is optimised for the
condition number of its equations. Then the nearest possible robot is taken, and asked for the torques of a motion that was
not used to find it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, JointDynamics, Measurements, Robot, excite, identify, nearest_physical, picture

URDF = Path(__file__).resolve().parents[1] / "urdf" / "seven_r.urdf"
SMOOTHING, ENCODER = 0.02, 2.0 * np.pi / 2**20  # rad/s, of Coulomb friction; rad per count
NOISE = np.array([0.6, 0.8, 0.4, 0.4, 0.12, 0.12, 0.06])  # of the torque sensors [N m]
RATE, PERIOD = 200.0, 10.0  # samples per second; s, of the exciting motion
MIDDLE, SWING = np.array([0.1, 0.2, 0.2, -1.7, 0.2, 2.0, 0.4]), np.array([1.0, 0.6, 0.8, 0.7, 0.7, 0.7, 1.0])  # rad


def true_robot(urdf: Robot) -> Robot:
    """Return the real robot, which differs from the URDF."""
    rng, listed = np.random.default_rng(4), rnea_ros.inertial_parameters(urdf.model)
    bodies = rnea_ros.parameter_values(urdf.model, listed).reshape(-1, 10) * rng.uniform(0.75, 1.3, (7, 1))
    friction = zip(urdf.joint_names, rng.uniform(0.5, 3.0, 7), rng.uniform(0.3, 2.0, 7), rng.normal(size=7) * 0.3)
    terms = {name: JointDynamics(1e-5, 100.0, *term, SMOOTHING) for name, *term in friction}
    return Robot.from_model(rnea_ros.with_parameter_values(urdf.model, listed, bodies.ravel()).with_joint_dynamics(terms))


def record(robot: Robot, motion, seconds: float, seed: int) -> Measurements:
    """Return encoder counts and torques with noise."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd, *_ = motion(t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    return Measurements(t, np.round(q / ENCODER) * ENCODER, tau + np.random.default_rng(seed).normal(size=tau.shape) * NOISE)


def other(t: np.ndarray) -> list[np.ndarray]:
    """q, qd, qdd of the motion to predict: sines of several speeds."""
    w = np.linspace(1.0, 3.5, 7)
    return [SWING * w**k * np.sin(np.outer(t, w) + np.arange(7.0) + k * np.pi / 2) + MIDDLE * (k == 0) for k in range(3)]


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    true = true_robot(urdf := Robot.from_urdf(URDF))
    urdf = urdf.with_joint_dynamics({name: JointDynamics(smoothing=SMOOTHING) for name in urdf.joint_names})
    exciting = excite(urdf, PERIOD, guesses=5 if small else 20, iterations=0 if small else 20)
    found = identify(urdf, record(true, exciting.motion, PERIOD if small else 3 * PERIOD, 0), decimate=4)
    possible = nearest_physical(urdf.model, found.base, found.beta, found.solution.covariance)
    wrong = np.abs(found.beta - found.base.grouping @ rnea_ros.parameter_values(true.model, found.base.parameters)) / found.std
    seen = record(true, other, PERIOD / 2, 9)
    tau, before, after = (robot.inverse_dynamics(*other(seen.t)) for robot in (true, urdf, Robot.from_model(possible.model)))
    with picture(Path(out_dir) / "identification.png", (10, 6.5), settings=STYLE) as figure:
        for joint, axis in zip((1, 3), figure.subplots(2, 1)):
            axis.plot(seen.t, seen.tau[:, joint], ".", color="0.6", label="measured")
            axis.plot(seen.t, before[:, joint], color="#d55e00", label="URDF")
            axis.plot(seen.t, after[:, joint], color="#0072b2", label="identified")
            axis.set(title=f"torque of joint {joint + 1} in another motion [N m]", xlabel="time [s]")
        axis.legend(ncols=3)
    rms = [float(np.sqrt(np.mean((each - tau) ** 2))) for each in (before, after)]
    return {"base parameters": len(found.base), "rms of torque error before [N m]": rms[0],
            "rms of torque error after [N m]": rms[1], "largest error in standard deviations": float(wrong.max()),
            "errors above 3 standard deviations": int(np.sum(wrong > 3.0))}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:55} {value:.6g}")
