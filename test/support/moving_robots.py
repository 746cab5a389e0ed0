"""Moving robots of every kind for tests of dynamics_node, with torques of an independent oracle.

Each robot oscillates in all its freedoms with random frequencies and phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rnea_ros import BaseState, PlatformMotion, Robot, load
from rnea_ros.algebra.vectors import rpy
from rnea_ros.model import robot_file
from rnea_ros.robots.base_state import base_motion
from rnea_ros.sim.machines import gough_stewart
from support.free_flyer import FreeFlyer
from support.machines import LoopOracle, PlatformOracle, solve
from support.oracles import PinocchioOracle, difference
from support.parallel_machines import delta
from support.rotor_trees import RotorTree

URDF = Path(__file__).resolve().parents[2] / "urdf"
H = 1e-2  # [s], step of the differences for torque rates


class Sines:
    """Function of time that returns x = center + size sin(w t + phase) and its derivatives."""

    def __init__(self, centre: Any, size: Any, seed: int):
        rng, self.centre = np.random.default_rng(seed), np.asarray(centre, dtype=float)
        self.size = np.broadcast_to(np.asarray(size, dtype=float), self.centre.shape)
        self.w, self.phase = rng.uniform(0.6, 1.8, self.centre.shape), rng.uniform(-np.pi, np.pi, self.centre.shape)

    def __call__(self, t: float, order: int = 3) -> list[np.ndarray]:
        waves = [self.size * self.w**k * np.sin(self.w * t + self.phase + k * np.pi / 2.0) for k in range(order + 1)]
        return [self.centre + waves[0], *waves[1:]]


class MovingRobot:
    """Robot on a moving base with its motion.

    joints: names in desired motions, in the order of their columns; urdf: text; content: of the robot file
    """

    joints: Sequence[str]
    urdf: str
    content: Mapping[str, Any]
    swing: Callable[..., list[np.ndarray]]
    base: Callable[[float], BaseState] | None = None  # with acceleration and jerk, if it moves
    parameters: Mapping[str, Any] = {}  # of the node

    def motion(self, t: float) -> list[np.ndarray]:
        """Return q, qd ... of the joints, as many derivatives as the robot needs."""
        return self.swing(t)

    def beside(self, t: float) -> Mapping[str, Any] | None:
        """Return the motion of other joints in joint states and desired motions, by name."""
        return None

    def torque(self, t: float) -> np.ndarray:
        """Return the torques of the oracle."""
        raise NotImplementedError

    def rate(self, t: float) -> np.ndarray:
        return difference(lambda s: self.torque(t + s), h=H)

    def file(self, folder: Path) -> str:
        """Write the robot file and return its path."""
        path = folder / "moving.robot.yaml"
        path.write_text(yaml.dump({"version": 1, **self.content}, Dumper=PlainDumper))
        return str(path)


class PlainDumper(yaml.SafeDumper):
    """YAML dumper for NumPy numbers that writes no aliases."""

    def ignore_aliases(self, data):
        return True


PlainDumper.add_multi_representer(np.floating, lambda dumper, value: dumper.represent_float(float(value)))


# ---------------------------------------------------------------------- closed loops


def five_bar_pose(qa: np.ndarray) -> np.ndarray:
    """Return all joint positions with elbows outward: the tip is at the intersection of the circles of both forearms."""
    (left, right), (first, second) = (np.array([x, 0.0]) + L * np.array([np.cos(a), np.sin(a)])
                                      for x, L, a in ((0.0, 0.4, qa[0]), (0.3, 0.45, qa[1]))), (0.5, 0.55)
    gap = np.linalg.norm(right - left)
    along = (gap**2 + first**2 - second**2) / (2.0 * gap)
    u = (right - left) / gap
    tip = left + along * u + np.sqrt(first**2 - along**2) * np.array([-u[1], u[0]])
    turns = (np.arctan2(*(tip - corner)[::-1]) - a for corner, a in ((left, qa[0]), (right, qa[1])))
    one, two = ((turn + np.pi) % (2.0 * np.pi) - np.pi for turn in turns)
    return np.array([qa[0], one, qa[1], two])


def palletiser_pose(qa: np.ndarray) -> np.ndarray:
    """Return all joint positions: opposite sides of the parallelograms stay parallel."""
    one, two, four, three = qa
    return np.array([one, two, four, three, three - two, -three, -two, two, three, two - three])


TREE = {"five_bar": ["left_motor", "left_elbow", "right_motor", "right_elbow"],
        "palletiser": ["joint1", "joint2", "joint4", "joint3", "elbow", "wrist_joint", "levelling_plate",
                       "levelling_rod_joint", "fore_rod_joint", "drive_rod_joint"]}
CENTRE = {"five_bar": [1.9, 1.0], "palletiser": [0.4, 0.5, 1.0, -0.3]}
POSE = {"five_bar": five_bar_pose, "palletiser": palletiser_pose}


class MovingLoops(MovingRobot):
    """Loops with poses in closed form and torques by Pinocchio with multipliers."""

    def __init__(self, name: str, seed: int = 0):
        self.urdf = (URDF / f"{name}.urdf").read_text()
        self.content = yaml.safe_load((URDF / f"{name}.robot.yaml").read_text())
        self.tree, self.pose, self.swing = TREE[name], POSE[name], Sines(CENTRE[name], 0.3, seed)
        self.joints = [joint for joint in self.tree if joint in self.content["loops"]["active"]]
        loops = self.content["loops"] | {"active": self.joints}
        self.kkt = LoopOracle(self.urdf, {"loops": loops}, self.tree)

    def state(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return q, qd of all joints."""
        qa, qad, *_ = self.swing(t)
        q = self.pose(qa)
        *_, J, _drift = self.kkt.equations(q, np.zeros(len(q)))
        qd, passive = np.zeros(len(q)), np.setdiff1d(np.arange(len(q)), self.kkt.active)
        qd[self.kkt.active] = qad
        qd[passive] = solve(J[:, passive], -J @ qd)
        return q, qd

    def torque(self, t: float) -> np.ndarray:
        return self.kkt.inverse(*self.state(t), self.swing(t)[2])[0]

    def passive(self, t: float, off: float = 0.0) -> dict[str, tuple[float, float]]:
        """Return measured positions of the passive joints, and velocities that are not used."""
        q = self.state(t)[0]
        return {name: (value + off, 0.0) for name, value in zip(self.tree, q) if name not in self.joints}


# ---------------------------------------------------------------------- platforms on legs


MACHINES = {"gough_stewart": (gough_stewart, range(6)), "delta": (delta, range(3))}  # freedoms of the platform


class MovingPlatform(MovingRobot):
    """Platform that oscillates about its home pose in all its freedoms; leg joints are from inverse kinematics, whose gaps
    the oracle measures.
    """

    def __init__(self, name: str, seed: int = 0):
        make, freedoms = MACHINES[name]
        machine = make()
        self.urdf, self.content, self.robot = machine.urdf, machine.robot_file, machine.robot()
        self.joints = self.robot.joint_names
        legs = [name for name in self.robot.tree.joint_names if name in (*self.joints, *self.robot.passive_joints)]
        self._oracle = PlatformOracle(machine, legs)
        self._legs = [self.robot.tree.joint_names.index(joint) for joint in legs]
        self._sway = Sines(np.zeros(6), 0.05 * np.isin(range(6), freedoms), seed)

    def platform(self, t: float) -> PlatformMotion:
        x = self._sway(t)
        return PlatformMotion.from_rpy([self.robot.home[0] + x[0][:3], *(y[:3] for y in x[1:])], [y[3:] for y in x])

    def motion(self, t: float) -> list[np.ndarray]:
        return self.robot.actuator_motion(self.platform(t), None, 3)[0]

    def torque(self, t: float) -> np.ndarray:
        platform = self.platform(t)
        found, gap = self._oracle.forces([part[self._legs] for part in self.robot.tree_motion(platform)[:3]], platform)
        assert gap < 1e-9
        return found


# ---------------------------------------------------------------------- elastic joints, motors on links


class MovingElastic(MovingRobot):
    """Robot with elastic joints whose rotors are bodies in Pinocchio. Measured motors move independently near their joints;
    others follow the library, and the oracle checks that springs carry their loads.
    """

    def __init__(self, robot: Robot, oracle: RotorTree, size: Any, seed: int = 0, measured: bool = False):
        self.robot, self.oracle, self.measured = robot, oracle, measured
        self.urdf, self.joints = oracle.urdf, robot.joint_names
        self.elastic = [robot.joint_names.index(joint) for joint in robot.elastic_joints]
        self.content = yaml.safe_load(robot_file.draft(oracle.declared).text())
        for joint, entry in self.content["elastic_joints"].items():
            entry.update({"motor_joint": f"{joint}_motor"} if measured else {})
        self.swing = Sines(np.zeros(robot.n), size, seed)
        self._bend = Sines(np.zeros(len(self.elastic)), 0.05, seed + 1)

    def motion(self, t: float) -> list[np.ndarray]:
        return self.swing(t, 3 if self.measured else self.robot.order)

    def motors(self, t: float) -> list[np.ndarray]:
        """Return position, velocity, acceleration of the motors of elastic joints, and the jerk if they are measured."""
        if self.measured:
            return [q[self.elastic] + bend for q, bend in zip(self.swing(t), self._bend(t))]
        found = self.robot.motor_motion(*self.swing(t, self.robot.order - 1))
        return [found.q_motor, found.qd_motor, found.qdd_motor]

    def beside(self, t: float) -> dict[str, np.ndarray] | None:
        """Return the motion of the motors in joint states and desired motion."""
        names = [f"{joint}_motor" for joint in self.robot.elastic_joints]
        return dict(zip(names, np.transpose(self.motors(t)))) if self.measured else None

    def both_sides(self, t: float) -> np.ndarray:
        """Return torques of all motors by Pinocchio, and loads, which springs carry in elastic joints (2, n)."""
        x, v, a = (np.concatenate(pair) for pair in zip(self.swing(t, 2), self.motors(t)))
        found = self.oracle.torques(x, v, a)
        if not self.measured:  # load beyond the spring
            assert np.abs(found[self.elastic]).max() < 1e-10 * max(1.0, np.abs(found).max())
        tau, load = found[:self.robot.n].copy(), found[:self.robot.n].copy()
        tau[self.elastic] = found[self.robot.n:]
        load[self.elastic] = -(self.oracle.stiffness @ x)[self.elastic]
        return np.array([tau, load])

    def torque(self, t: float) -> np.ndarray:
        return self.both_sides(t)[0]


# ---------------------------------------------------------------------- moving bases


class MovingBase(MovingRobot):
    """Tree on a base that rolls, pitches, heaves and drifts; forces by Pinocchio with a free-flyer."""

    def __init__(self, source: Any, size: float = 0.3, seed: int = 0, gravity: Sequence[float] = (0.0, 0.0, -9.81)):
        self.robot, self.gravity = load(source, base="floating", gravity=gravity), gravity
        self.urdf = source if isinstance(source, str) and source.lstrip().startswith("<") else Path(source).read_text()
        self.content = {"base": "floating", "gravity": list(gravity)}
        self.oracle, self.joints = FreeFlyer(source, self.robot), self.robot.joint_names
        self.swing, self._sway = Sines(np.zeros(self.robot.n), size, seed), Sines(np.zeros(6), 0.3, seed + 1)

    def base(self, t: float) -> BaseState:
        """Return state, acceleration, and jerk of the base."""
        sway = self._sway

        def pose(s: Any) -> tuple[Any, Any]:
            x = [size * np.sin(s * w + phase) for size, w, phase in zip(sway.size, sway.w, sway.phase)]
            return np.array(x[:3]), rpy(x[3], x[4], s * 0.5 + x[5])

        return base_motion(pose, t)

    def forces(self, t: float) -> np.ndarray:
        """Return base wrench and torques (6 + n,)."""
        state = self.base(t)
        return self.oracle.forces(state, state.acceleration, *self.swing(t, 2))

    def rates(self, t: float) -> np.ndarray:
        return difference(lambda s: self.forces(t + s), h=H)

    def torque(self, t: float) -> np.ndarray:
        return self.forces(t)[6:]


# ---------------------------------------------------------------------- arms with contact forces


class MovingTouched(MovingRobot):
    """Arm with a wrist sensor; the wrench on `link` is linear in time."""

    content: Mapping[str, Any] = {}

    def __init__(self, urdf: str, link: str, seed: int = 0):
        self.urdf, self.link, self.robot = urdf, link, Robot.from_urdf(urdf)
        self.joints, self._oracle = self.robot.joint_names, PinocchioOracle(urdf, self.robot)
        self.swing, rng = Sines(np.zeros(self.robot.n), 0.4, seed), np.random.default_rng(seed + 1)
        self._start, self._slope = rng.normal(size=(2, 6)) * np.array([[20.0], [5.0]])

    def wrench(self, t: float) -> np.ndarray:
        return self._start + t * self._slope

    def torque(self, t: float) -> np.ndarray:
        return self._oracle.torque(*self.swing(t, 2), {self.link: self.wrench(t)})
