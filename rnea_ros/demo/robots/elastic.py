"""Elastic joints: the simulation of hua-mixed-joints, section V, over ROS. A plant, its controller, dynamics_node beside them.

The arm has two rigid joints and an elastic one, motors on its links. It starts 25 degrees off and follows sines. The node
elastic_controller computes (37)-(49) from a JointTrajectory and the encoders; elastic_plant is the arm, simulated by forward
dynamics, and tells what sensors tell; dynamics_node finds out of that what the motors exert. They know what they did exert.
"""

from __future__ import annotations

import numpy as np

from ...robots.protocol import AnyRobot
from ..checks import EXACT, Verdict, near
from ..recording import DemoRecording, Heard, paired
from ..robot_demo import RobotDemo

START = np.array([0.0, 0.0, -0.4363])  # rad, at rest, spring relaxed
GAINS = {"slope": 6.8, "damping": 58.0, "motor_slope": 33.0, "motor_damping": 38.0}  # Lambda [1/s], K_D [N m s/rad]
DURATION = 10.0  # s; of the paper's run
PAPERS_ERRORS = np.array([0.0026819, 0.003619, 0.052678])  # rad; root of the mean square, without payload
CLOSE = 0.06  # the paper gives neither lengths nor gains
SMOOTH = 1e-5  # of the largest rate; accelerations are differentiated
ROUND = 4.0  # s; of the sines


def desired(t: np.ndarray | float, count: int = 3) -> list[np.ndarray]:
    """0.5 sin(pi t / 2) rad in every joint and its derivatives, (..., 3) each."""
    w = 2.0 * np.pi / ROUND
    angle = np.asarray(t)[..., None] * w + np.zeros(3)
    return [0.5 * w**k * np.sin(angle + k * np.pi / 2) for k in range(count)]


def checks(robot: AnyRobot, recording: DemoRecording, heard: Heard | None) -> list[Verdict]:
    """Applied torques and their rates, and the errors that the paper prints."""
    assert heard is not None
    recording, (states,) = paired(recording, heard["states"])
    names = states.shape[1] // 3  # joints and motors: positions, velocities, efforts
    applied = states[:, 2 * names:2 * names + robot.n]
    moving = np.isfinite(applied).all(axis=1)
    begin = int(moving.argmax())
    run, applied = recording.at(np.arange(begin, len(moving))), applied[begin:]
    t = run.seconds
    whole = len(run.t) > 1 and moving[begin:].all() and t[-1] >= DURATION and np.ptp(np.diff(t)) < 1e-6
    errors = (desired(t)[0] - run.q)[t <= DURATION + 1e-9]
    rmse = np.sqrt(np.mean(errors**2, axis=0))
    off = np.abs(rmse / PAPERS_ERRORS - 1.0).max()
    slope = np.diff(applied, axis=0) / np.diff(t)[:, None]
    tracking = (f"in {t[-1]:.1f} s ({DURATION:g} are needed) the errors' root mean square is "
                f"{', '.join(f'{x:.4g}' for x in rmse)} rad, the paper's to {off:.1%} (allowed {CLOSE:.0%})")
    return [near(run.tau, applied, EXACT, "torques are those that the motors exert"),
            near(run.tau_rate[1:], slope, SMOOTH, "rates are those at which the drives change them"),
            Verdict(bool(whole and off < CLOSE), tracking)]


DEMO = RobotDemo(
    "elastic", "urdf/hua_arm.urdf", "urdf/hua_arm.robot.yaml", None, checks,
    heard={"states": ("sensor_msgs/JointState", "joint_states")},
    nodes=("dynamics_node", "elastic_plant", "elastic_controller"), held="elastic_plant", seconds=11.0, least=DURATION + 0.5,
    instants=(2.5, 3.5, 4.5), settled=1.5, view=(12.0, -75.0))
