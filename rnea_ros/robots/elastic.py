"""ElasticRobot: a Robot, the springs in its joints and the motors behind them. Like Robot, the door where input is checked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linalg import pivots
from ..algebra.taylor import derivative
from ..algorithms import mixed_joints, motor_motion
from ..algorithms.mixed_joints import Motor
from ..errors import InputError, some
from ..model.robot_file.robot_file import Source
from . import elastic_parameters
from .inputs import validation
from .inputs.validation import Wrenches
from .kernels import singularity
from .kernels.store import KernelStore, unified
from .link_kinematics import LinkKinematics
from .robot import GRAVITY, Robot


class ElasticMotion(NamedTuple):
    """What the motors do and give while the joints move as asked; (n,) or (samples, n), of motors of elastic joints (.., Ne).

    tau     : torque of every joint's motor, as the joint's side of the gear sees it [N m, N]
    load    : torque on what lies beyond each joint; in an elastic joint the spring's torque [N m, N]
    q_motor, qd_motor, qdd_motor : position, velocity, acceleration of the motors, behind their gears [rad, m]
    """

    tau: np.ndarray
    load: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    qdd_motor: np.ndarray


class ElasticRobot(LinkKinematics):
    """Exact dynamics of a robot whose joints may be elastic and whose motors may sit on any link (Hua et al.).

    Joints are in the order of `joint_names`, motors of elastic joints in that of `elastic_joints`. A spring's torque is
    stiffness (q_motor - q); q_motor is the motor's angle divided by its gear ratio. Arrays, units, wrenches as in Robot.
    """

    def __init__(self, robot: Robot, parameters: Source):
        """parameters: path of a robot file, or its content; see elastic_parameters.py. ModelError says all that is wrong."""
        if robot.model.base != "fixed":
            raise InputError("elastic joints are supported for robots with base='fixed' only")
        self.robot = robot
        (self.motors, rotors), self._parameters = elastic_parameters.motors(robot.model, parameters)
        self.model = unified(robot.model, [*rotors, *robot.payloads.values()])
        self._levels = motor_motion.levels(self.model, self.motors)
        self._compiled = KernelStore(self.model, robot.gravity_vector, robot.backend)
        self._link_kernels = robot._link_kernels

    @classmethod
    def from_urdf(cls, source: str | os.PathLike, parameters: Source | None = None, backend: str = "llvm",
                  gravity: Sequence[float] = GRAVITY, **options: Any) -> ElasticRobot:
        """From a URDF and a robot file that declares its motors and springs: by default robot.robot.yaml beside robot.urdf.

        options: friction, joint_dynamics and allow_xacro, as in Robot.from_urdf.
        """
        robot = Robot.from_urdf(source, "fixed", backend, gravity, **options)
        return cls(robot, elastic_parameters.beside(source) if parameters is None else parameters)

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0),
                     inertia: Any = None) -> ElasticRobot:
        """The same robot carrying a rigid body on a URDF link; arguments as in Robot.with_payload."""
        return ElasticRobot(self.robot.with_payload(link, mass, com, inertia), self._parameters)

    # ------------------------------------------------------------------ what it is

    @property
    def n(self) -> int:
        return self.model.n

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.model.joint_names

    @property
    def elastic_motors(self) -> list[Motor]:
        """Motors of the elastic joints, in the order of q_motor."""
        return mixed_joints.elastic(self.motors)

    @property
    def elastic_joints(self) -> tuple[str, ...]:
        """Names of the elastic joints, in the order of q_motor."""
        return tuple(self.joint_names[motor.coordinate] for motor in self.elastic_motors)

    @property
    def stiffness(self) -> np.ndarray:
        """Of the elastic joints [N m/rad, N/m]."""
        return np.array([motor.stiffness for motor in self.elastic_motors])

    @property
    def order(self) -> int:
        """How many derivatives of q the inverse dynamics needs: 2 if rigid, usually 4; see motor_motion.py."""
        for name, level in zip(self.elastic_joints, self._levels, strict=True):
            if not np.isfinite(level):
                raise InputError(f"the motor of joint '{name}' rides on what its own spring moves, by way of others perhaps: "
                                 "its motion follows from a differential equation, not from q; use forward_dynamics, or "
                                 "declare a motor_link before the joint")
        return 2 + 2 * int(max(self._levels, default=0))

    # ------------------------------------------------------------------ what it computes

    def inverse_dynamics(self, q, qd, qdd, *higher, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> ElasticMotion:
        """Torques and motions of the motors for a motion of the joints, (8)-(29) and (43).

        higher         : third, fourth ... derivative of q, up to `order`: the springs' torques must change with the motion
        wrenches       : {URDF link: (6,)} BY the environment ON the link, about and along its frame, as in Robot
        world_wrenches : the same along the root link's axes, like a weight. Along the motion, both keep their components.
        """
        *parts, _rate = self._motion(self.order, (q, qd, qdd, *higher), wrenches, world_wrenches)
        return ElasticMotion(*parts)

    def torque_and_rate(self, q, qd, qdd, *higher, wrenches: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Torques of the motors and their exact time derivatives; takes one derivative of q more than `order`."""
        tau, *_rest, rate = self._motion(self.order + 1, (q, qd, qdd, *higher), wrenches, world_wrenches)
        return tau, rate

    def forward_dynamics(self, q, q_motor, qd, qd_motor, tau, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(qdd, qdd_motor) under motor torques tau (n,), Algorithm 2. InputError names a joint that moves no mass."""
        state = self.state(q, q_motor, qd, qd_motor) | {"tau": validation.coordinates("tau", tau, self.joint_names)}
        names = (*self.joint_names, *(f"motor of {name}" for name in self.elastic_joints))
        with singularity.nonsingular(lambda: self.mass_matrix(q), names):
            acceleration, felt, locked = self._compiled(self._forward_dynamics, state, wrenches, world_wrenches, masses=False)
        singularity.check_nonsingular(felt, locked, names)
        validation.results("forward_dynamics", [acceleration])
        return acceleration[..., :self.n], acceleration[..., self.n:]

    def mass_matrix(self, q) -> np.ndarray:
        """A = [[M, S], [S^T, B]] (n + Ne, n + Ne) or (samples, ...): joints, then motors of elastic joints, (30), (34)."""
        return self._compiled(self._mass_matrix, {"q": validation.coordinates("q", q, self.joint_names)})[0]

    def bias(self, q, q_motor, qd, qd_motor, wrenches: Wrenches | None = None,
             world_wrenches: Wrenches | None = None) -> np.ndarray:
        """zeta (n + Ne,) of (31)-(33): A [qdd; qdd_motor] + zeta = [torque that reaches each joint; torque of each motor].

        The torque that reaches a rigid joint is its motor's, that of an elastic joint its spring's; motors carry their springs
        in zeta.
        """
        return self._compiled(self._bias, self.state(q, q_motor, qd, qd_motor), wrenches, world_wrenches)[0]

    # ------------------------------------------------------------------ the door

    def state(self, q, q_motor, qd, qd_motor) -> dict[str, np.ndarray]:
        """The state as blocks of a kernel, checked."""
        return {"q": validation.coordinates("q", q, self.joint_names),
                "theta": validation.coordinates("q_motor", q_motor, self.elastic_joints),
                "qd": validation.coordinates("qd", qd, self.joint_names),
                "thetad": validation.coordinates("qd_motor", qd_motor, self.elastic_joints)}

    def _motion(self, order: int, motion: Sequence[Any], wrenches: Wrenches | None,
                world_wrenches: Wrenches | None) -> tuple[np.ndarray, ...]:
        names = ["q" + "d" * k for k in range(order + 1)]
        if len(motion) <= order:
            raise InputError(f"{len(motion) - 1} derivatives of q are given, {order} are needed with "
                             f"{some(self.elastic_joints) or 'no joint'} elastic: {some(names)}")
        blocks = {name: validation.coordinates(name, x, self.joint_names) for name, x in zip(names, motion, strict=False)}
        return self._compiled(self._inverse_motion, blocks, wrenches, world_wrenches)

    def _inverse_motion(self, options, **motion):
        torques, theta = motor_motion.inverse_motion(self.model, self.motors, list(motion.values()), **options)
        rate: Any = derivative(torques.motor, 1) if len(motion) > self.order + 1 else []
        return derivative(torques.motor, 0), derivative(torques.load, 0), *([x[k] for x in theta] for k in range(3)), rate

    def _forward_dynamics(self, options, **state):
        acceleration, A = mixed_joints.forward_dynamics(self.model, self.motors, **state, **options)
        return acceleration, pivots(A), np.diag(A)

    def _mass_matrix(self, options, q):
        return [mixed_joints.mass_matrix(self.model, self.motors, q)]

    def _bias(self, options, **state):
        return [mixed_joints.bias(self.model, self.motors, **state, **options)]
