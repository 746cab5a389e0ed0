"""A parallel robot: a Gough-Stewart platform rides out a swell. Six actuators push, platform and legs follow.

dynamics_node hears how long the legs are, and finds where the platform is and what the actuators exert. Where it says the
platform is, the legs must have their lengths; and as that platform moves, forces found the other way round, by inverse
kinematics and the slope of its velocity, must be the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...algorithms.kinematics import Pose
from ...robots.inputs.base_state import BaseState
from ...robots.inputs.platform_motion import PlatformMotion
from ...robots.parallel import ParallelRobot
from ...robots.protocol import AnyRobot
from ..checks import AGREEMENT, Verdict, near, power_is_energy_rate, rate_is_derivative, slopes, smooth
from ..motion import Harmonics, Round
from ..recording import DemoRecording, Heard, paired
from ..robot_demo import Player, RobotDemo

SAMPLES = 128  # of a round, from which the legs' joints follow to rounding
LENGTHS = 1e-9  # m; how well the legs must fit
# Off home in 6 s: surge, sway, heave [m], roll, pitch, yaw [rad]; harmonics that do not come back together
SWELL = Harmonics(6.0, np.zeros(6), (
    (1, np.array([0.06, 0.0, 0.05, 0.0, 0.07, 0.1])), (2, np.array([0.0, 0.05, 0.0, 0.16, 0.0, 0.0])),
    (3, np.array([0.0, 0.0, 0.1, 0.0, 0.1, 0.0]))), np.array([0.0, 1.0, 0.0, 0.7, 2.0, 0.5]))


def pose(robot: ParallelRobot, t: float) -> PlatformMotion:
    """Of the platform as it is played."""
    x = SWELL(t)
    return PlatformMotion.from_rpy([robot.home[0] + x.q[:3], *(part[:3] for part in x[1:])], [part[3:] for part in x])


def player() -> Player:
    robot = DEMO.load()
    assert isinstance(robot, ParallelRobot)

    times = np.arange(SAMPLES) * (SWELL.period / SAMPLES)
    joints = np.array([robot.leg_motion(pose(robot, t), orders=0).q for t in times])

    def free_links(t: float) -> dict[str, Pose]:
        platform = pose(robot, t)
        return {robot.platform.root_link: Pose(platform.rotation, platform.position)}

    return Player(f"a swell that comes back after {SWELL.period:g} s",
                  robot.legs.joint_names, robot.legs.root_link, Round(SWELL.period, joints), free_links)


def checks(robot: AnyRobot, recording: DemoRecording, heard: Heard | None) -> list[Verdict]:
    """Rigid legs, forces from the platform's motion, power, difference quotients."""
    assert isinstance(robot, ParallelRobot)
    rates = rate_is_derivative(recording, robot.joint_names)
    if heard:
        recording, (poses, twists) = paired(recording, heard["pose"], heard["twist"])
        platform = PlatformMotion(poses[:, :3], BaseState(quaternion=poses[:, 3:]).rotation, twists)
    else:
        platform = robot.platform_motion(*recording.motion)
    return [rigid_legs(robot, recording, platform), other_way_round(robot, recording, platform),
            power_is_energy_rate(recording, partial(energy, robot)), rates]


def rigid_legs(robot: ParallelRobot, recording: DemoRecording, platform: PlatformMotion) -> Verdict:
    """From foot to ball each leg is as much longer than at home as its actuator says."""
    P, R = robot.home
    lengths, home = [], []
    for leg, joint in enumerate(robot.loops.cuts, start=1):
        foot = robot.legs.link_pose(f"cross{leg}", robot.start)[1]
        lengths.append(np.linalg.norm(platform.position + platform.rotation @ joint.second.P - foot, axis=1))
        home.append(np.linalg.norm(P + R @ joint.second.P - foot))
    error = np.abs(np.transpose(lengths) - home - recording.q).max()
    return Verdict(bool(error < LENGTHS), f"where the platform is said to be, legs have their lengths to {error:.1e} m")


def other_way_round(robot: ParallelRobot, recording: DemoRecording, platform: PlatformMotion) -> Verdict:
    """Forces by inverse kinematics, from pose and twist of the platform, and the slope of that."""
    where = smooth(recording)
    moving = PlatformMotion(platform.position[where], platform.rotation[where], platform.velocity[where],
                            slopes(recording.seconds, platform.velocity)[where - 1])
    return near(recording.tau[where], robot.inverse_dynamics(motion=moving), AGREEMENT,
                "forces are those of the platform's motion, found by inverse kinematics,")


def energy(robot: ParallelRobot, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Of legs and platform (samples,) [J]."""
    rest = np.zeros(q.shape)
    platform = robot.platform_motion(q, qd, rest, rest)
    legs = robot.leg_motion(platform, orders=1)
    moving = 0.5 * np.einsum("ti,tij,tj->t", platform.velocity, robot.body.mass_matrix(platform), platform.velocity)
    centre = robot.platform.center_of_mass(np.zeros(0)).position
    height = -(platform.position + platform.rotation @ centre) @ robot.legs.gravity_vector
    return np.asarray(robot.legs.energy(legs.q, legs.qd).total + moving + robot.platform.total_mass * height)


DEMO = RobotDemo(
    "stewart", "urdf/stewart.urdf", "urdf/stewart.robot.yaml", player, checks,
    heard={"pose": ("geometry_msgs/PoseStamped", "dynamics_node/platform_pose"),
           "twist": ("geometry_msgs/TwistStamped", "dynamics_node/platform_twist")},
    instants=(0.0, 1.9), view=(16.0, -62.0))
