"""Demos by name, for `rnea demo --robot`, demo_robot and launch files.

* Any fixed tree (panda, stanford, or a given URDF): compared with the library bitwise.
* palletiser: closed loops. Four motors, three parallelograms, ten joints, from a conveyor to a pallet and back. The
  parallelograms keep their rods parallel, so the passive joints are integer combinations of the motors; dynamics_node solves
  the loop closure instead. Its torques are compared with those of the open tree by virtual work.
* stewart: a Gough-Stewart platform compensates a swell. dynamics_node receives the leg lengths and computes platform pose and
  actuator forces. At that pose the legs must have their lengths, and inverse kinematics must give the same forces.
* quadruped: solo12 stands and trots in MuJoCo. The base wrench must vanish because the feet carry the robot.
* touched: an arm in MuJoCo with a force-torque sensor at its wrist swings a tool and is pushed at it. The model of
  dynamics_node contains neither tool nor pushes: the measured wrench contains both.
* combinations (combinations.py).

Torques of robots in MuJoCo are compared with those of MuJoCo's motors.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ..algorithms.kinematics import Pose
from ..model.robot_file import located
from ..robots.base_state import BaseState
from ..robots.platform_motion import PlatformMotion
from ..robots.robot import Robot
from ..sim.machines import PUSHED_ARM_URDF, PUSHED_TOOL, QUADRUPEDS
from . import combinations, plots
from .plots import MotorGroup
from .processes import user_path
from .robot_demo import (
    FINITE_DIFFERENCE_TOL,
    CheckResult,
    DemoMotion,
    DemoRecording,
    Harmonics,
    MotionSample,
    PeriodicMotion,
    RobotDemo,
    Topics,
    check_bitwise,
    check_by_phase,
    check_close,
    check_motor_torques,
    check_paper_figure,
    check_power,
    check_rates,
    check_torques,
    choose_motion,
    pair_by_stamp,
    slopes,
    smooth_samples,
    wrench_parameters,
)

TREES = {name: (f"urdf/{name}.urdf", f"urdf/{name}.robot.yaml") for name in ("panda", "stanford")}


def tree_motion(robot: Robot, name: str = "auto", duration: float | None = None) -> DemoMotion:
    """Return the motion `name` of a fixed tree, see choose_motion. Raises InputError."""
    chosen = choose_motion(robot, name, duration)
    about = f"moving the {robot.n} joints of '{robot.name}', {chosen.duration:g} s each way"
    return DemoMotion(about, robot.joint_names, robot.root_link, chosen)


def _check_tree(stanford: bool, robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check against the library bitwise, by difference quotients, and on the Stanford arm against the paper's figure."""
    assert robot.is_fixed_tree
    over_ros = [] if topics is None else [check_bitwise(robot, recording.motion, recording.tau, recording.tau_rate)]
    printed = [check_paper_figure(robot)] if stanford else []
    return [*over_ros, check_rates(recording, robot.joint_names), *printed]


def tree_demo(path: str | None, robot_file: str | None = None, name: str = "panda") -> RobotDemo:
    """Return the demo of a URDF or .xacro file with a robot file or profile; without a path, of the robot `name` of TREES."""

    def make_motion() -> DemoMotion:
        robot = demo.load()
        assert robot.is_fixed_tree
        return tree_motion(robot)

    urdf, file = (user_path(path), None) if path else TREES[name]
    chosen = Path(located(robot_file)) if robot_file else file
    demo = RobotDemo("auto", urdf, chosen, make_motion, partial(_check_tree, not path and name == "stanford"))
    return demo


PALLETISER_MOTORS = ("joint1", "joint2", "joint3", "joint4")
PALLETISER_PASSIVE = {  # derivatives by joint2 and joint3
    "elbow": (-1, 1), "drive_rod_joint": (1, -1), "levelling_rod_joint": (1, 0), "levelling_plate": (-1, 0),
    "fore_rod_joint": (0, 1), "wrist_joint": (0, -1)}
PALLETISER_JOINTS = (*PALLETISER_MOTORS, *PALLETISER_PASSIVE)
# (10, 4): all joints from the motors
PALLETISER_MAP = np.vstack((np.eye(4), np.array([(0, a, b, 0) for a, b in PALLETISER_PASSIVE.values()])))
# One period of 5 s [rad]: down at the conveyor, up and across, down at the pallet, and back
PALLETISER_CYCLE = Harmonics(5.0, np.array([0.1, 0.3, 0.25, 0.575]), (
    (1, np.array([-1.0, 0.1, 0.1, -0.55])),
    (2, np.array([0.0, 0.4, 0.2, -0.025]))))


def _palletiser_motion() -> DemoMotion:
    return DemoMotion(f"from a conveyor to a pallet and back in {PALLETISER_CYCLE.period:g} s", PALLETISER_JOINTS, "base_link",
                      lambda t: MotionSample(*(PALLETISER_MAP @ part for part in PALLETISER_CYCLE(t))))


def _check_palletiser(robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check by virtual work, power and difference quotients."""
    assert not robot.is_fixed_tree
    tree = robot.tree
    order = [PALLETISER_JOINTS.index(name) for name in tree.joint_names]
    all_of = PALLETISER_MAP[order][:, [PALLETISER_MOTORS.index(name) for name in robot.joint_names]]
    motion = [part @ all_of.T for part in recording.motion]
    tau, tau_rate = (part @ all_of for part in tree.torque_and_rate(*motion))
    return [check_torques(recording, tau, tau_rate, "the tree without its loops, by the parallelograms' virtual work"),
            check_power(recording, lambda q, qd: tree.energy(q @ all_of.T, qd @ all_of.T).total),
            check_rates(recording, robot.joint_names)]


PALLETISER_DEMO = RobotDemo("palletiser", "urdf/palletiser.urdf", "urdf/palletiser.robot.yaml", _palletiser_motion,
                            _check_palletiser, picture_times=(0.0, 1.25, 2.5), view=(18.0, -70.0))


LEG_SAMPLES = 128  # per period; the Fourier series of the legs is then exact to rounding
LEG_LENGTH_TOL_M = 1e-9
# Deviation from home in 6 s: surge, sway, heave [m], roll, pitch, yaw [rad]
SWELL = Harmonics(6.0, np.zeros(6), (
    (1, np.array([0.06, 0.0, 0.05, 0.0, 0.07, 0.1])), (2, np.array([0.0, 0.05, 0.0, 0.16, 0.0, 0.0])),
    (3, np.array([0.0, 0.0, 0.1, 0.0, 0.1, 0.0]))), np.array([0.0, 1.0, 0.0, 0.7, 2.0, 0.5]))


def _platform_motion(robot: Robot, t: float) -> PlatformMotion:
    """Return the motion of the platform at time t [s]."""
    x = SWELL(t)
    return PlatformMotion.from_rpy([robot.home[0] + x.q[:3], *(part[:3] for part in x[1:])], [part[3:] for part in x])


def _stewart_motion() -> DemoMotion:
    robot = STEWART_DEMO.load()
    assert not robot.is_fixed_tree

    times = np.arange(LEG_SAMPLES) * (SWELL.period / LEG_SAMPLES)
    names = tuple(name for name in robot.tree.joint_names if name in (*robot.joint_names, *robot.solved_joints))
    columns = [robot.tree.joint_names.index(name) for name in names]
    joints = np.array([robot.tree_motion(_platform_motion(robot, t), orders=0).q[columns] for t in times])

    def free_links(t: float) -> dict[str, Pose]:
        platform = _platform_motion(robot, t)
        return {robot.platforms[0]: Pose(platform.rotation, platform.position)}

    return DemoMotion(f"a swell with a period of {SWELL.period:g} s",
                      names, robot.tree.root_link, PeriodicMotion(SWELL.period, joints), free_links)


def _check_stewart(robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check leg lengths, forces from the platform's motion, power and difference quotients."""
    assert not robot.is_fixed_tree
    rates = check_rates(recording, robot.joint_names)
    if topics:
        recording, (poses, twists) = pair_by_stamp(recording, topics["pose"], topics["twist"])
        platform = PlatformMotion(poses[:, :3], BaseState(quaternion=poses[:, 3:]).rotation, twists)
    else:
        platform = robot.platform_motion(*recording.motion)
    return [_check_leg_lengths(robot, recording, platform), _check_forces(robot, recording, platform),
            check_power(recording, lambda q, qd: robot.energy(q, qd).total), rates]


def _check_leg_lengths(robot: Robot, recording: DemoRecording, platform: PlatformMotion) -> CheckResult:
    """Check that each leg differs from its home length by its actuator's position."""
    P, R = robot.home
    lengths, home = [], []
    assert robot.loops is not None
    frame = robot.tree.model.frame(robot.platforms[0])
    for leg, joint in enumerate(robot.loops.cuts, start=1):
        foot, ball = robot.tree.link_pose(f"cross{leg}", robot.start)[1], frame.R.T @ (joint.second.P - frame.P)
        lengths.append(np.linalg.norm(platform.position + platform.rotation @ ball - foot, axis=1))
        home.append(np.linalg.norm(P + R @ ball - foot))
    error = np.abs(np.transpose(lengths) - home - recording.q).max()
    return CheckResult(bool(error < LEG_LENGTH_TOL_M),
                       f"at the computed platform pose the legs have their lengths to {error:.1e} m")


def _check_forces(robot: Robot, recording: DemoRecording, platform: PlatformMotion) -> CheckResult:
    """Check the forces against inverse dynamics from pose and twist of the platform and the slope of the twist."""
    where = smooth_samples(recording)
    moving = PlatformMotion(platform.position[where], platform.rotation[where], platform.velocity[where],
                            slopes(recording.seconds, platform.velocity)[where - 1])
    return check_close(recording.tau[where], robot.inverse_dynamics(motion=moving), FINITE_DIFFERENCE_TOL,
                       "forces are those of the platform's motion by inverse kinematics,")


STEWART_DEMO = RobotDemo(
    "stewart", "urdf/stewart.urdf", "urdf/stewart.robot.yaml", _stewart_motion, _check_stewart,
    topics={"pose": ("geometry_msgs/PoseStamped", "dynamics_node/platform_pose"),
            "twist": ("geometry_msgs/TwistStamped", "dynamics_node/platform_twist")},
    picture_times=(0.0, 1.9), view=(16.0, -62.0))


QUADRUPED_FEET = QUADRUPEDS["solo12"].feet


def _check_quadruped(robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check the torques in stance and swing, and the base wrench."""
    assert topics is not None
    return check_by_phase(recording, topics, QUADRUPED_FEET)


QUADRUPED_DEMO = RobotDemo(
    "quadruped", "example-robot-data:robots/solo12.urdf", "urdf/solo12.robot.yaml", None, _check_quadruped,
    topics={"states": ("sensor_msgs/JointState", "joint_states"),
            "base_wrench": ("geometry_msgs/WrenchStamped", "dynamics_node/base_wrench"),
            **{foot: ("geometry_msgs/WrenchStamped", f"dynamics_node/wrench/{foot}") for foot in QUADRUPED_FEET}},
    nodes=("dynamics_node", "demo_plant"), rate=250.0, seconds=5.0,
    draw=partial(plots.draw_plant,
                 [MotorGroup(foot, range(3 * leg, 3 * leg + 3), foot) for leg, foot in enumerate(QUADRUPED_FEET)]),
    parameters=wrench_parameters(QUADRUPED_FEET))


def _check_touched(robot: Robot, recording: DemoRecording, topics: Topics | None) -> list[CheckResult]:
    """Check the torques."""
    assert topics is not None
    return [check_motor_torques(recording, topics["states"])]


TOUCHED_DEMO = RobotDemo(
    "touched", f"example-robot-data:{PUSHED_ARM_URDF}", "urdf/ur5.robot.yaml", None, _check_touched,
    topics={"states": ("sensor_msgs/JointState", "joint_states"),
            PUSHED_TOOL.link: ("geometry_msgs/WrenchStamped", f"dynamics_node/wrench/{PUSHED_TOOL.link}")},
    nodes=("dynamics_node", "demo_plant"), rate=250.0, seconds=6.0,
    draw=partial(plots.draw_plant,
                 [MotorGroup("arm", range(3), PUSHED_TOOL.link), MotorGroup("wrist", range(3, 6), PUSHED_TOOL.link)]),
    parameters=wrench_parameters([PUSHED_TOOL.link]))


DEMOS: dict[str, RobotDemo] = {demo.name: demo for demo in (
    PALLETISER_DEMO, STEWART_DEMO, QUADRUPED_DEMO, TOUCHED_DEMO, *combinations.COMBINATIONS)}
DEMO_MOTIONS = {name: demo.make_motion for name, demo in DEMOS.items() if demo.make_motion is not None}
