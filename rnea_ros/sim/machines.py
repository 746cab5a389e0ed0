"""Machines: parametric parallel machines, and simulated ones with plant and controller.

A `Machine`, as the Gough-Stewart platform, has a URDF with all legs, a URDF with the platform, the joints between them, and
the home pose, where all leg joints are at zero; `Machine.robot()` makes the robot. Every frame is given by its pose in the
base frame at home; links are rods of even density, so every inertia is physically possible.

A `SimulatedMachine` is a quadruped, a five-bar linkage or an arm that is pushed; `machine` makes it by name. Quadrupeds are
described by URDFs of the package example-robot-data. Two controllers move them: `SwingController` swings every motor about a
pose, `TrotController` lets a quadruped stand and trot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import rpy_angles
from ..errors import InputError, MissingPackage, some
from ..model import urdf, urdf_reader
from ..model.tree import JointDynamics
from ..robots.base_state import BaseState
from ..robots.load import load
from ..robots.robot import Robot
from .plant import Instant, Plant
from .scene import Foot, Tool, scene

EFFORT, SPEED = 1e4, 10.0  # limits written into the URDFs


class Machine(NamedTuple):
    """legs, platform: URDF texts; loops: section of a robot file; home: position (3,) and rotation (3, 3) of the platform,
    link: its name.
    """

    legs: str
    platform: str
    loops: dict[str, Any]
    home: tuple[Any, Any]
    link: str = "platform"

    def robot(self, joint_dynamics: Mapping[str, JointDynamics] | None = None, **options: Any) -> Robot:
        """Return the machine's robot; options as of rnea_ros.load: gravity, backend, ..."""
        found = load(self.urdf, self.robot_file, **options)
        return found.with_joint_dynamics(joint_dynamics) if joint_dynamics else found

    @property
    def urdf(self) -> str:
        """Legs and platform in one URDF, as rnea_ros.load takes it: the platform is held by a floating joint, at home."""
        legs, platform = (text[text.index(">") + 1:text.rindex("</robot>")].strip() for text in (self.legs, self.platform))
        root = legs.split('"')[1]
        position, rotation = self.home
        origin = f'<origin xyz="{_text(position)}" rpy="{_text(rpy_angles(np.asarray(rotation)))}"/>'
        ends = f'<parent link="{root}"/><child link="{self.link}"/>'
        name = self.legs.split('"')[1].removesuffix("_legs")
        return "\n".join([f'<robot name="{name}">', legs, platform,
                          f'  <joint name="platform_pose" type="floating">{ends}{origin}</joint>', "</robot>"])

    @property
    def robot_file(self) -> dict[str, Any]:
        """Return the content of the robot file that belongs to the URDF."""
        return {"version": 1, "platform": {"link": self.link}, "loops": self.loops}


def gough_stewart(base_radius: float = 1.0, platform_radius: float = 0.6, height: float = 1.2, spread: float = 0.35,
                  platform_mass: float = 40.0, leg_masses: Sequence[float] = (4.0, 2.0)) -> Machine:
    """Hexapod of six legs: universal joint at the base, actuated slide, spherical joint at the platform (6-UPS).

    base_radius, platform_radius : circles of the joints [m]; height : of the platform at home [m]
    spread      : half the angle between the two joints of a pair [rad]
    leg_masses  : cylinder (to the universal joint) and rod (to the platform) of one leg [kg]
    Links cylinder1.., rod1.., platform; joints universal1_x, universal1_y, slide1 ..; the slides are active.
    """
    check_sizes(base_radius=base_radius, platform_radius=platform_radius, height=height, platform_mass=platform_mass)
    urdf = MachineUrdf("gough_stewart_legs", "base")
    loops: dict[str, Any] = {"active": [f"slide{k}" for k in range(1, 7)], "cut_joints": {}}
    for k in range(6):
        pair, side = (k + 1) // 2 * (2.0 * np.pi / 3.0), 1.0 if k % 2 else -1.0
        below = on_circle(base_radius, pair - side * spread, 0.0)
        above = on_circle(platform_radius, pair - side * (np.pi / 3.0 - spread), height)
        R, length = rotation_along(above - below), float(np.linalg.norm(above - below))
        n = k + 1
        urdf.add(f"cross{n}", "base", f"universal{n}_x", "revolute", (1, 0, 0), (R, below))
        urdf.add(f"cylinder{n}", f"cross{n}", f"universal{n}_y", "revolute", (0, 1, 0), (R, below),
                 rod(leg_masses[0], 0.55 * length, 0.04, 0.275 * length))
        urdf.add(f"rod{n}", f"cylinder{n}", f"slide{n}", "prismatic", (0, 0, 1), (R, above),
                 rod(leg_masses[1], 0.55 * length, 0.02, -0.275 * length))
        loops["cut_joints"][f"ball{n}"] = {"type": "spherical", "first": f"rod{n}",
                                       "second": {"link": "platform", "xyz": (above - [0.0, 0.0, height]).tolist()}}
    platform = MachineUrdf("gough_stewart_platform", "platform", disc(platform_mass, 1.1 * platform_radius, 0.08))
    return Machine(urdf.text(), platform.text(), loops, ((0.0, 0.0, height), np.eye(3)))


# ---------------------------------------------------------------------- URDF text


class MachineUrdf:
    """Links and joints, each link's frame given by its pose in the base frame at joint positions zero."""

    def __init__(self, name: str, root: str, inertial: str = ""):
        self.name, self.poses = name, {root: (np.eye(3), np.zeros(3))}
        self.parts = [f'  <link name="{root}">{inertial}</link>']

    def add(self, link: str, parent: str, joint: str, kind: str, axis: Sequence[float], pose: tuple,
            inertial: str = "") -> None:
        (R0, P0), (R, P) = self.poses[parent], pose
        self.poses[link] = pose
        origin = f'<origin xyz="{_text(R0.T @ (P - P0))}" rpy="{_text(rpy_angles(R0.T @ R))}"/>'
        limit = f'<limit lower="-3.14" upper="3.14" effort="{EFFORT}" velocity="{SPEED}"/>'
        self.parts += [f'  <link name="{link}">{inertial}</link>',
                       f'  <joint name="{joint}" type="{kind}"><parent link="{parent}"/><child link="{link}"/>{origin}'
                       f'<axis xyz="{_text(axis)}"/>{limit}</joint>']

    def text(self) -> str:
        return "\n".join([f'<robot name="{self.name}">', *self.parts, "</robot>"])


def inertial_element(mass: float, centre: Sequence[float], moments: Sequence[float]) -> str:
    """Return an <inertial> element: centre of mass and principal moments about it, along the axes of the link."""
    tensor = " ".join(f'i{axis}{axis}="{float(value)!r}" ' for axis, value in zip("xyz", moments, strict=True))
    return (f'<inertial><origin xyz="{_text(centre)}"/><mass value="{float(mass)!r}"/>'
            f'<inertia {tensor}ixy="0" ixz="0" iyz="0"/></inertial>')


def cylinder_element(xyz: Sequence[float], angles: Sequence[float], length: float, radius: float) -> str:
    """Return the visual element of a cylinder, which RViz draws."""
    return (f'<visual><origin xyz="{_text(xyz)}" rpy="{_text(angles)}"/><geometry><cylinder radius="{_text([radius])}" '
            f'length="{_text([length])}"/></geometry></visual>')


def rod(mass: float, length: float, radius: float, middle: float) -> str:
    """Return inertia and shape of a cylinder along z, its middle at z = middle."""
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    inertial = inertial_element(mass, (0.0, 0.0, middle), (across, across, 0.5 * mass * radius**2))
    return inertial + cylinder_element((0.0, 0.0, middle), (0.0, 0.0, 0.0), length, radius)


def disc(mass: float, radius: float, height: float) -> str:
    """Return inertia and shape of a cylinder along z about the origin."""
    return rod(mass, height, radius, 0.0)


def rotation_along(direction: Any) -> np.ndarray:
    """Return the rotation whose z is along a direction and whose y is as level as possible."""
    z = np.array(direction, dtype=float) / np.linalg.norm(direction)
    y = np.cross(z, [1.0, 0.0, 0.0]) if abs(z[2]) > 0.999999 else np.cross([0.0, 0.0, 1.0], z)
    y = y / np.linalg.norm(y)
    return np.column_stack((np.cross(y, z), y, z))


def on_circle(radius: float, angle: float, height: float) -> np.ndarray:
    """Return the point (3,) at an angle on a circle about z [m]."""
    return np.array([radius * np.cos(angle), radius * np.sin(angle), height])


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def check_sizes(**sizes: float) -> None:
    """Raise InputError unless all sizes are above zero."""
    wrong = [f"{name} = {value}" for name, value in sizes.items() if not (np.isfinite(value) and value > 0.0)]
    if wrong:
        raise InputError(f"{', '.join(wrong)}; sizes and masses must be above zero")


class SwingController:
    """Joint controller that swings the motors about a pose: gravity compensation at the middle, and a PD towards the
    reference.

    middle : positions (n,) [rad, m]; reach : amplitudes (n,); period : of one oscillation [s], with a phase shift per joint
    stiffness, damping : of the PD, a number or (n,) [N m/rad, N m s/rad]
    """

    def __init__(self, robot: Robot, middle: ArrayLike, reach: ArrayLike, period: float, stiffness: ArrayLike,
                 damping: ArrayLike):
        self._middle, self._reach, self._rate = np.asarray(middle, float), np.asarray(reach, float), 2.0 * np.pi / period
        self._stiffness, self._damping = np.asarray(stiffness, float), np.asarray(damping, float)
        self._gravity, self._phase = robot.gravity(middle), 0.7 * np.arange(robot.n)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the torques (n,) for the motor motion q, qd at time t [s]."""
        grown = 1.0 - np.exp(-2.0 * t)
        angle = self._rate * t + self._phase
        aim, aim_rate = grown * self._reach * np.sin(angle), grown * self._reach * self._rate * np.cos(angle)
        return self._gravity + self._stiffness * (self._middle + aim - q) + self._damping * (aim_rate - qd)


EXAMPLE_PACKAGE = "example-robot-data"


def example_urdf(end: str) -> Path:
    """Return the URDF of example-robot-data whose path ends with `end`. Raises RneaError if the package is not installed."""
    try:
        files = metadata.files(EXAMPLE_PACKAGE) or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.as_posix().endswith(end):
            return Path(str(file.locate()))
    raise MissingPackage(f"{end} comes with the package {EXAMPLE_PACKAGE}", "sim")


class Quadruped(NamedTuple):
    """A robot with four legs of three joints each, in the order of the feet.

    file      : end of the URDF's path in example-robot-data
    feet      : links at the ends of the legs: front left, front right, hind left, hind right
    radius    : of each foot [m]
    legs      : joint positions of the four legs while standing (4, 3) [rad]
    stiffness : of the joint controller [N m/rad]; damping [N m s/rad]
    armature  : rotor inertia at the joint [kg m^2]; viscous : friction [N m s/rad]; both missing in the URDFs
    step      : period [s], length [m] and height [m] of a step of the trot
    """

    file: str
    feet: tuple[str, ...]
    radius: float
    legs: tuple[tuple[float, ...], ...]
    stiffness: float
    damping: float
    armature: float
    viscous: float
    step: tuple[float, float, float]

    @property
    def urdf(self) -> Path:
        """Path of the URDF. Raises RneaError if the package is not installed."""
        return example_urdf(self.file)

    @property
    def robot_file(self) -> dict[str, Any]:
        """Robot file with a floating base and drives with rotor inertia and friction, for the plant and the package."""
        drive = {"rotor_inertia": self.armature, "viscous": self.viscous}
        joints = [joint.name for joint in urdf.load(urdf_reader.read(self.urdf)).joints]
        return {"version": 1, "base": "floating", "drives": dict.fromkeys(joints, drive)}

    @property
    def contacts(self) -> tuple[Foot, ...]:
        return tuple(Foot(link, self.radius) for link in self.feet)


_STANDING_LEGS = ((0.0, 0.8, -1.6),) * 4
QUADRUPEDS = {
    "solo12": Quadruped("robots/solo12.urdf", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"), 0.016, _STANDING_LEGS, 12.0, 0.25,
                        6e-4,
                        0.01, (0.4, 0.06, 0.04)),
    "a1": Quadruped("urdf/a1.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.02, _STANDING_LEGS, 150.0, 4.0, 5e-3, 0.1,
                    (0.5, 0.1, 0.06)),
    "go2": Quadruped("urdf/go2.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.022, _STANDING_LEGS, 150.0, 4.0, 5e-3,
                     0.1,
                     (0.5, 0.1, 0.06)),
    "laikago": Quadruped("urdf/laikago.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.027, _STANDING_LEGS, 300.0, 8.0,
                         2e-2,
                         0.2, (0.5, 0.1, 0.06)),
}


STEP_SAMPLES = 200  # per period
SWING_START = (0.0, 0.5, 0.5, 0.0)  # of each foot, as a fraction of the period: diagonal legs swing together
STAND_DURATION_S = 1.0  # then the steps grow over one period
NEWTON_ITERATIONS = 12
LEVEL = BaseState()


class TrotController:
    """Joint controller of a trot: torques (12,) from the joint motion; `height` is that of the standing base [m]."""

    def __init__(self, robot: Robot, which: Quadruped, start: float = STAND_DURATION_S):
        self._robot, self._which, self._start = robot, which, start
        self.stance = self._pose(which.legs)
        feet = np.array([robot.link_pose(foot, self.stance, base=LEVEL).p for foot in which.feet])
        self.height = which.radius - feet[:, 2].mean()
        self._steps = self._legs(feet[:, None] + _foot_curves(which))
        self._weight = robot.total_mass * np.linalg.norm(robot.gravity_vector)

    def _pose(self, legs: Sequence[Sequence[float]]) -> np.ndarray:
        """Return the positions (12,) for a row per leg; the joints of a leg are those that move its foot."""
        q = np.zeros(self._robot.n)
        self._joints = [np.flatnonzero(np.abs(self._robot.jacobian(foot, q + 0.3, base=LEVEL)[:, 6:]).max(axis=0) > 1e-9)
                        for foot in self._which.feet]
        for joints, leg in zip(self._joints, legs):
            q[joints] = leg
        return q

    def _legs(self, targets: np.ndarray) -> np.ndarray:
        """Return joint positions (STEP_SAMPLES, 12) for foot positions (4, STEP_SAMPLES, 3), by Newton's method."""
        q = np.tile(self.stance, (STEP_SAMPLES, 1))
        for _ in range(NEWTON_ITERATIONS):
            for foot, joints, target in zip(self._which.feet, self._joints, targets):
                away = target - self._robot.link_pose(foot, q, base=LEVEL).p
                J = self._robot.jacobian(foot, q, base=LEVEL)[:, :3, 6 + joints]
                q[:, joints] += np.linalg.solve(J, away[..., None])[..., 0]
        return q

    def reference(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the reference positions and velocities (12,) of the joints."""
        period = self._which.step[0]
        since = max(t - self._start, 0.0) / period
        grown = min(since, 1.0)
        sample = since * STEP_SAMPLES
        k, part = int(sample), sample - int(sample)
        here, there = (self._steps[(k + ahead) % STEP_SAMPLES] - self.stance for ahead in (0, 1))
        slope = (there - here) * (STEP_SAMPLES / period) * (since > 0.0)
        return self.stance + grown * (here + part * (there - here)), grown * slope

    def swinging(self, t: float) -> np.ndarray:
        """Return which feet (4,) are in swing."""
        since = (t - self._start) / self._which.step[0]
        return (since > 0.0) & ((since - np.array(SWING_START)) % 1.0 < 0.5)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the torques (12,) for joint motion q, qd at time t [s]."""
        which, (aim, aim_rate) = self._which, self.reference(t)
        stands = ~self.swinging(t)
        tau = which.stiffness * (aim - q) + which.damping * (aim_rate - qd)
        for foot, joints in zip(np.array(which.feet)[stands], np.array(self._joints)[stands]):
            down = self._robot.jacobian(str(foot), q, base=LEVEL)[2, 6 + joints]
            tau[joints] -= self._weight / stands.sum() * down
        return tau


def _foot_curves(which: Quadruped) -> np.ndarray:
    """Return foot displacements (4, STEP_SAMPLES, 3) in the base: a swing forwards in the first half of the period, a stance
    phase backwards in the second.
    """
    _period, length, lift = which.step
    curves = np.zeros((len(SWING_START), STEP_SAMPLES, 3))
    for curve, begins in zip(curves, SWING_START):
        s = 2.0 * ((np.arange(STEP_SAMPLES) / STEP_SAMPLES - begins) % 1.0)
        swing = s < 1.0
        blend = np.clip(s, 0.0, 1.0)
        forward = blend**3 * (10.0 - 15.0 * blend + 6.0 * blend**2)
        curve[:, 0] = length * np.where(swing, forward - 0.5, 1.5 - s)
        curve[:, 2] = lift * np.where(swing, 64.0 * (blend * (1.0 - blend)) ** 3, 0.0)
    return curves


PUSHED_ARM_URDF = "ur_description/urdf/ur5_robot.urdf"
PUSHED_TOOL = Tool("tool0", 1.2, (0.02, -0.01, 0.06), (4e-3, 5e-3, 2e-3))
PUSHES = ((1.5, (0.0, 25.0, 0.0)), (3.0, (-20.0, 0.0, 15.0)), (4.5, (10.0, 10.0, -30.0)))  # time of the peak [s], force [N]
PUSH_DURATION_S = 0.3


@dataclass(frozen=True)
class SimulatedMachine:
    """A plant with its controller.

    control : function (t, q, qd) -> motor torques
    start   : positions (n,) of all joints of the tree [rad, m]; base : start of a moving base
    force   : function t -> force on the tool, along the world's axes [N]
    """

    plant: Plant
    control: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    start: np.ndarray
    base: BaseState | None = None
    force: Callable[[float], np.ndarray] | None = None

    @property
    def motors(self) -> np.ndarray:
        """Indices of the robot's joint_names among the joints of the tree."""
        return np.array([self.plant.tree.joint_names.index(name) for name in self.plant.robot.joint_names])

    def instants(self, every: int = 1) -> Iterator[Instant]:
        """Yield the instants from the start on, without end; only every `every`-th one."""
        plant, motors = self.plant, self.motors
        plant.set_state(self.start, self.base)
        for k in count():
            t = k * plant.timestep
            if self.force:
                plant.push(self.force(t))
            q, qd = plant.joints
            instant = plant.exert(self.control(t, q[motors], qd[motors]))
            if k % every == 0:
                yield instant
            plant.advance()


def machine(name: str, urdf: Any = None, robot_file: Any = None, timestep: float = 1e-3) -> SimulatedMachine:
    """Return one of MACHINES. urdf, robot_file : replace its files; the five-bar has none.

    Raises InputError for an unknown name, RneaError without MuJoCo or example-robot-data.
    """
    if name not in MACHINES:
        raise InputError(f"machine '{name}' is unknown; there are {some(MACHINES)}")
    return MACHINES[name](urdf, robot_file, timestep)


def walking_quadruped(which: Quadruped, urdf: Any, robot_file: Any, timestep: float) -> SimulatedMachine:
    """Return a quadruped that stands for a second, then trots."""
    plant = Plant(scene(urdf or which.urdf, robot_file or which.robot_file, feet=which.contacts, timestep=timestep))
    assert not plant.robot.is_fixed_tree
    trot = TrotController(plant.robot, which)
    return SimulatedMachine(plant, trot, trot.stance, BaseState((0.0, 0.0, trot.height)))


def five_bar(urdf: Any, robot_file: Any, timestep: float) -> SimulatedMachine:
    """Return a closed loop, swung by its two motors."""
    plant = Plant(scene(urdf, robot_file, timestep=timestep))
    robot = plant.robot
    assert not robot.is_fixed_tree
    middle = robot.start[[robot.tree.joint_names.index(joint) for joint in robot.joint_names]]
    return SimulatedMachine(plant, SwingController(robot, middle, (0.3, -0.25), 1.7, 200.0, 10.0), robot.start)


def pushed_arm(urdf: Any, robot_file: Any, timestep: float) -> SimulatedMachine:
    """Return an arm with a force-torque sensor at its wrist and a tool beyond it, which moves and is pushed at the tool."""
    plant = Plant(scene(urdf or example_urdf(PUSHED_ARM_URDF), robot_file, tool=PUSHED_TOOL, timestep=timestep))
    middle = np.array([0.0, -1.2, 1.4, -0.6, 0.8, 0.0])
    swing = SwingController(plant.robot, middle, (0.5, 0.2, 0.3, 0.4, 0.4, 0.6), 3.0, (2e3, 2e3, 1e3, 2e2, 2e2, 1e2),
                            (100.0, 100.0, 50.0, 10.0, 8.0, 4.0))
    return SimulatedMachine(plant, swing, middle, force=_push_force)


def _push_force(t: float) -> np.ndarray:
    """Return the force of smooth pushes, repeated every PUSH_PERIOD_S."""
    total = np.zeros(3)
    for peak, force in PUSHES:
        s = (t % 6.0 - peak) / PUSH_DURATION_S
        if abs(s) < 0.5:
            total += np.array(force) * np.cos(np.pi * s) ** 4
    return total


MACHINES: dict[str, Callable[[Any, Any, float], SimulatedMachine]] = {
    **{name: partial(walking_quadruped, which) for name, which in QUADRUPEDS.items()},
    "quadruped": partial(walking_quadruped, QUADRUPEDS["solo12"]), "five_bar": five_bar, "touched": pushed_arm}
