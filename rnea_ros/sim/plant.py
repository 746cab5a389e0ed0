"""Plant: a robot in MuJoCo, one instant after another, with all that its sensors could know, exact.

An instant is what MuJoCo's forward dynamics finds before it integrates: positions, velocities, the torques of the motors,
the contact forces, and the accelerations that follow from them. All belong to the same time, so they can be compared with
inverse dynamics without any error of integration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..robots.inputs.base_state import BaseState
from .engine import mujoco
from .scene import Scene


class Instant(NamedTuple):
    """t [s]; of all joints of the tree q, qd, qdd (n,); tau of the motors, in the order of the robot's joint_names.

    base          : state of the root link, base_acceleration (6,) the true one of base_state.py; None where it is held
    wrenches      : {link: (6,)} of all feet, and of the tool: BY the environment ON the link, seen in its frame
    accelerometer : (3,) of the IMU, at the origin of the root link and along its axes: acceleration less gravity
    gyro          : (3,) angular velocity
    """

    t: float
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    base: BaseState | None
    base_acceleration: np.ndarray | None
    wrenches: dict[str, np.ndarray]
    accelerometer: np.ndarray
    gyro: np.ndarray


class Plant:
    """A scene that runs: `exert` torques, look at the instant, `advance` by one timestep."""

    def __init__(self, scene: Scene):
        self.scene, self._engine = scene, mujoco()
        self.robot, self.tree, self._model = scene.robot, scene.tree, scene.model
        self.description = scene.description
        self._data = self._engine.MjData(self._model)
        joints = [self._model.joint(name) for name in self.tree.joint_names]
        self._q, self._v = (np.array([int(getattr(joint, name)[0]) for joint in joints], dtype=int)
                            for name in ("qposadr", "dofadr"))
        self._free = self.tree.model.base == "floating"
        self._balls = {self._model.geom(foot.link).id: foot.link for foot in scene.feet}
        self._six = np.zeros(6)

    @property
    def timestep(self) -> float:
        return float(self._model.opt.timestep)

    def place(self, q: ArrayLike, base: BaseState | None = None) -> None:
        """At rest, or a base as it moves, at time zero. q (n,) of all joints of the tree."""
        self._engine.mj_resetData(self._model, self._data)
        self._data.qpos[self._q] = q
        if self._free and base is not None:
            x, y, z, w = base.quaternion
            self._data.qpos[:7] = *base.position, w, x, y, z
            self._data.qvel[:6] = *base.into_world(base.velocity[:3]), *base.velocity[3:]

    @property
    def joints(self) -> tuple[np.ndarray, np.ndarray]:
        """q and qd (n,) of all joints of the tree, as encoders have them."""
        return self._data.qpos[self._q], self._data.qvel[self._v]

    def push(self, force: ArrayLike, body: str = "tool") -> None:
        """A force [N] along the world's axes on a body's centre of mass, until another is given."""
        self._data.body(body).xfrc_applied[:3] = force

    def exert(self, tau: ArrayLike) -> Instant:
        """The torques of the motors act, in the order of the robot's joint_names: what happens."""
        data = self._data
        data.ctrl[:] = tau
        self._engine.mj_forward(self._model, data)
        base, acceleration = self._base() if self._free else (None, None)
        return Instant(data.time, *self.joints, data.qacc[self._v], data.actuator_force.copy(), base, acceleration,
                       self._wrenches(), data.sensor("accelerometer").data.copy(), data.sensor("gyro").data.copy())

    def advance(self) -> None:
        """One timestep on, from the instant that was looked at last (semi-implicit Euler)."""
        self._engine.mj_Euler(self._model, self._data)

    def _base(self) -> tuple[BaseState, np.ndarray]:
        """MuJoCo tells the linear parts along the world's axes, the angular ones along those of the base."""
        w, x, y, z = self._data.qpos[3:7]
        still = BaseState(self._data.qpos[:3], (x, y, z, w))
        velocity, acceleration = (np.concatenate((still.into_base(six[:3]), six[3:6]))
                                  for six in (self._data.qvel, self._data.qacc))
        return BaseState(still.position, still.quaternion, velocity), acceleration

    def _wrenches(self) -> dict[str, np.ndarray]:
        data, found = self._data, {link: np.zeros(6) for link in self._balls.values()}
        for k in range(data.ncon):
            contact = data.contact[k]
            self._engine.mj_contactForce(self._model, data, k, self._six)  # on the second geom, along the contact's axes
            second = int(contact.geom2) in self._balls
            link = self._balls[int(contact.geom2 if second else contact.geom1)]
            force, moment = (1.0 if second else -1.0) * self._six.reshape(2, 3) @ contact.frame.reshape(3, 3)
            body = data.body(link)
            R, arm = body.xmat.reshape(3, 3), contact.pos - body.xpos
            found[link] += np.concatenate((force @ R, (moment + np.cross(arm, force)) @ R))
        if self.scene.tool:  # the sensor tells what the link exerts on the tool
            found[self.scene.tool.link] = -np.concatenate([data.sensor(name).data for name in ("force", "torque")])
        return found
