"""Machines that move by themselves: a plant, what drives it, and where it starts. `machine` makes those that have a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ..errors import InputError, some
from ..robots.floating import FloatingRobot
from ..robots.general import GeneralRobot
from ..robots.inputs.base_state import BaseState
from .plant import Instant, Plant
from .quadrupeds import QUADRUPEDS, Quadruped, example_urdf
from .scene import Tool, scene
from .swing import Swing
from .trot import Trot

ARM = "ur_description/urdf/ur5_robot.urdf"
TOOL = Tool("tool0", 1.2, (0.02, -0.01, 0.06), (4e-3, 5e-3, 2e-3))
PUSHES = ((1.5, (0.0, 25.0, 0.0)), (3.0, (-20.0, 0.0, 15.0)), (4.5, (10.0, 10.0, -30.0)))  # when it peaks [s], which force [N]
PUSH = 0.3  # s; how long one takes


@dataclass(frozen=True)
class Machine:
    """control : torques of the motors at a time, from their q and qd; force : on the tool, along the world's axes [N]."""

    plant: Plant
    control: Callable[[float, np.ndarray, np.ndarray], np.ndarray]
    start: np.ndarray
    base: BaseState | None = None
    force: Callable[[float], np.ndarray] | None = None

    @property
    def motors(self) -> np.ndarray:
        """Numbers of the robot's joint_names among those of the tree."""
        return np.array([self.plant.tree.joint_names.index(name) for name in self.plant.robot.joint_names])

    def instants(self, every: int = 1) -> Iterator[Instant]:
        """From the start on, one after another, for ever; only the first of so many."""
        plant, motors = self.plant, self.motors
        plant.place(self.start, self.base)
        for k in count():
            t = k * plant.timestep
            if self.force:
                plant.push(self.force(t))
            q, qd = plant.joints
            instant = plant.exert(self.control(t, q[motors], qd[motors]))
            if k % every == 0:
                yield instant
            plant.advance()


def machine(name: str, urdf: Any = None, robot_file: Any = None, timestep: float = 1e-3) -> Machine:
    """One of MACHINES. urdf, robot_file : instead of those that it comes with; the five-bar comes with none.

    Raises InputError for a name that is none, RneaError without MuJoCo or example-robot-data.
    """
    if name not in MACHINES:
        raise InputError(f"machine '{name}' is unknown; there are {some(MACHINES)}")
    return MACHINES[name](urdf, robot_file, timestep)


def walking(which: Quadruped, urdf: Any, robot_file: Any, timestep: float) -> Machine:
    """A quadruped that stands for a second, then trots."""
    plant = Plant(scene(urdf or which.urdf, robot_file or which.robot_file, feet=which.contacts, timestep=timestep))
    assert isinstance(plant.robot, FloatingRobot)
    trot = Trot(plant.robot, which)
    return Machine(plant, trot, trot.stance, BaseState((0.0, 0.0, trot.height)))


def five_bar(urdf: Any, robot_file: Any, timestep: float) -> Machine:
    """A closed loop, pulled to and fro by its two motors."""
    plant = Plant(scene(urdf, robot_file, timestep=timestep))
    robot = plant.robot
    assert isinstance(robot, GeneralRobot)
    middle = robot.start[[robot.tree.joint_names.index(joint) for joint in robot.joint_names]]
    return Machine(plant, Swing(robot, middle, (0.3, -0.25), 1.7, 200.0, 10.0), robot.start)


def pushed(urdf: Any, robot_file: Any, timestep: float) -> Machine:
    """An arm with a force-torque sensor at its wrist and a tool beyond it, which moves, and is pushed on its tool."""
    plant = Plant(scene(urdf or example_urdf(ARM), robot_file, tool=TOOL, timestep=timestep))
    middle = np.array([0.0, -1.2, 1.4, -0.6, 0.8, 0.0])
    swing = Swing(plant.robot, middle, (0.5, 0.2, 0.3, 0.4, 0.4, 0.6), 3.0, (2e3, 2e3, 1e3, 2e2, 2e2, 1e2),
                  (100.0, 100.0, 50.0, 10.0, 8.0, 4.0))
    return Machine(plant, swing, middle, force=_pushes)


def _pushes(t: float) -> np.ndarray:
    """Each grows and fades smoothly; again every six seconds."""
    total = np.zeros(3)
    for peak, force in PUSHES:
        s = (t % 6.0 - peak) / PUSH
        if abs(s) < 0.5:
            total += np.array(force) * np.cos(np.pi * s) ** 4
    return total


MACHINES: dict[str, Callable[[Any, Any, float], Machine]] = {
    **{name: partial(walking, which) for name, which in QUADRUPEDS.items()},
    "quadruped": partial(walking, QUADRUPEDS["solo12"]), "five_bar": five_bar, "touched": pushed}
