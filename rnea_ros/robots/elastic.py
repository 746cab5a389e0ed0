"""ElasticRobot: a robot with springs in its joints and motors behind them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algebra.linalg import pivots
from ..algebra.taylor import derivative
from ..algorithms import mixed_joints, motor_motion
from ..algorithms.equations import Motor
from ..errors import InputError, some
from ..model.drive_limits import DriveLimit
from ..model.robot_file.robot_file import Source
from ..model.tree import Limits, Model
from . import elastic_parameters
from .elastic_derivatives import ElasticDerivatives
from .elastic_energy import ElasticEnergetics
from .elastic_rates import OF_MOTORS, ElasticRates, MeasuredMotors
from .inputs import validation
from .inputs.payload import unified
from .inputs.validation import Wrenches
from .kernels import singularity
from .kernels.floating_functions import values_only
from .kernels.kernel_function import KernelFunction
from .kernels.store import KernelStore
from .link_kinematics import LinkKinematics
from .one_tree import OneTree
from .robot import GRAVITY, Dynamics, Robot

STATE = ("q", "qd", "q_motor", "qd_motor")


class ElasticMotion(NamedTuple):
    """What the motors do and give while the joints move as asked; (n,) or (samples, n), of motors of elastic joints (.., Ne).

    tau     : torque of every joint's motor, as the joint's side of the gear sees it [N m, N]
    load    : torque on what lies beyond each joint; in an elastic joint the spring's torque [N m, N]
    q_motor, qd_motor, qdd_motor : position, velocity, acceleration of the motors, behind their gears [rad, m]
    """

    tau: Array
    load: Array
    q_motor: Array
    qd_motor: Array
    qdd_motor: Array


class ElasticResponse(NamedTuple):
    """Accelerations of the joints (n,) and of the motors of elastic joints (Ne,); or (samples, ...)."""

    qdd: Array
    qdd_motor: Array


class ElasticRobot(OneTree, ElasticDerivatives, ElasticEnergetics, LinkKinematics, MeasuredMotors):
    """Exact dynamics of a robot whose joints may be elastic and whose motors may sit on any link (Hua et al.).

    Joints are in the order of `joint_names`, motors of elastic joints in that of `elastic_joints`. A spring's torque is
    stiffness (q_motor - q); q_motor is the motor's angle divided by its gear ratio. A motion is one of the joints, on the
    links' side of the springs: q and its derivatives, as many as `order` says. A state is q, qd of the joints and q_motor,
    qd_motor (Ne,) of the motors. Where rows or columns stand for all that moves, the motors' Ne come last. Arrays, units and
    loads as in Robot.
    """

    def __init__(self, robot: Robot, parameters: Source):
        """parameters: path of a robot file, or its content; see elastic_parameters.py. ModelError says all that is wrong."""
        if robot.model.base != "fixed":
            raise InputError("elastic joints are supported for robots with base='fixed' only")
        validation.only_plain_joints(robot.model, "ElasticRobot")
        self.robot = robot
        (self.motors, rotors), self._parameters = elastic_parameters.motors(robot.model, parameters)
        self.model = unified(robot.model, [*rotors, *robot.payloads.values()])
        self._levels = motor_motion.levels(self.model, self.motors)
        self._stiff = Robot(self.model, robot.backend, robot.gravity_vector)  # the links alone
        columns = dict.fromkeys(OF_MOTORS, self.elastic_joints)
        self._motors = KernelStore(self.model, robot.gravity_vector, robot.backend, columns=columns)
        self._store = robot._store

    @classmethod
    def from_urdf(cls, source: str | os.PathLike[str], parameters: Source | None = None, backend: str = "llvm",
                  gravity: ArrayLike = GRAVITY, **options: Any) -> ElasticRobot:
        """From a URDF and a robot file that declares its motors and springs: by default robot.robot.yaml beside robot.urdf.

        options: friction, joint_dynamics and allow_xacro, as in Robot.from_urdf.
        """
        robot = Robot.from_urdf(source, "fixed", backend, gravity, **options)
        return cls(robot, elastic_parameters.beside(source) if parameters is None else parameters)

    def with_payload(self, link: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0),
                     inertia: ArrayLike | None = None) -> ElasticRobot:
        """The same robot carrying a rigid body on a URDF link; arguments as in Robot.with_payload."""
        return ElasticRobot(self.robot.with_payload(link, mass, com, inertia), self._parameters)

    # ------------------------------------------------------------------ what it is

    @property
    def limits(self) -> Limits:
        """Of the joints, NaN where unknown; effort is that of the motors behind their gears."""
        return self.robot.limits

    @property
    def drive_limits(self) -> tuple[DriveLimit, ...]:
        """Of drives and supplies, as the robot file says."""
        return self.robot.drive_limits

    @property
    def elastic_motors(self) -> list[Motor]:
        """Motors of the elastic joints, in the order of q_motor."""
        return mixed_joints.elastic(self.motors)

    @property
    def elastic_joints(self) -> tuple[str, ...]:
        """Names of the elastic joints, in the order of q_motor."""
        return tuple(self.joint_names[motor.coordinate] for motor in self.elastic_motors)

    @property
    def motor_joints(self) -> dict[str, str]:
        """{elastic joint: name under which joint states report its motor}, as far as the file says."""
        declared = self._parameters.section("elastic_joints")
        return {name: declared[name]["motor_joint"] for name in self.elastic_joints if "motor_joint" in declared[name]}

    @property
    def stiffness(self) -> Array:
        """Of the elastic joints [N m/rad, N/m]."""
        return np.array([motor.stiffness for motor in self.elastic_motors])

    @property
    def order(self) -> int:
        """How many derivatives of q the torque rate needs, one more than the torque: 3 if rigid, usually 5; two more for each
        spring that a motor rides on, one behind the other; see motor_motion.py."""
        for name, level in zip(self.elastic_joints, self._levels, strict=True):
            if not np.isfinite(level):
                raise InputError(f"the motor of joint '{name}' rides on what its own spring moves, by way of others perhaps: "
                                 "its motion follows from a differential equation, not from q; use forward_dynamics, or "
                                 "declare a motor_link before the joint")
        return 3 + 2 * int(max(self._levels, default=0))

    # ------------------------------------------------------------------ torques of a motion

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *higher: ArrayLike,
                         wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Torques (n,) of all motors for a motion of the joints; arguments as of `motor_motion`."""
        return self.motor_motion(q, qd, qdd, *higher, wrenches=wrenches, wrench_rates=wrench_rates,
                                 world_wrenches=world_wrenches).tau

    def motor_motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *higher: ArrayLike, wrenches: Wrenches | None = None,
                     wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> ElasticMotion:
        """Torques and motions of the motors for a motion of the joints, (8)-(29) and (43).

        higher       : third, fourth ... derivative of q, `order` - 1 in all: the springs' torques must change with the motion
        wrench_rates : the motors feel how loads change, too; as far as they are given, wrenches change at these rates
        """
        parts = self._motion(self.order - 1, (q, qd, qdd, *higher), wrenches=wrenches, wrench_rates=wrench_rates,
                                     world_wrenches=world_wrenches)
        return ElasticMotion(*parts[:5])

    def torque_and_rate(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *higher: ArrayLike,
                        wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                        world_wrenches: Wrenches | None = None) -> tuple[Array, Array]:
        """Torques of the motors and their exact time derivatives; takes `order` derivatives of q."""
        found = self.elastic_rates(q, qd, qdd, qddd, *higher, wrenches=wrenches, wrench_rates=wrench_rates,
                                   world_wrenches=world_wrenches)
        return found.tau, found.tau_rate

    def elastic_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *higher: ArrayLike,
                      wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> ElasticRates:
        """Torques on both sides of the springs for a motion of the joints, `order` derivatives of q, and their rates."""
        tau, load, q_motor, qd_motor, _, load_rate, tau_rate = self._motion(
            self.order, (q, qd, qdd, qddd, *higher), wrenches=wrenches, wrench_rates=wrench_rates,
            world_wrenches=world_wrenches)
        return ElasticRates(tau, tau_rate, load, load_rate, self._deflection(q, q_motor), self._deflection(qd, qd_motor))

    def dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *higher: ArrayLike,
                 wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                 world_wrenches: Wrenches | None = None) -> Dynamics:
        """tau, tau_rate; and the torques that hold the robot still against gravity, and their rates."""
        found = self.torque_and_rate(q, qd, qdd, qddd, *higher, wrenches=wrenches, wrench_rates=wrench_rates,
                                     world_wrenches=world_wrenches)
        return Dynamics(*found, *self.gravity_and_rate(q, qd))

    def gravity_and_rate(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
        """Torques (n,) that hold the joints still against gravity, and their rates."""
        rest = np.zeros(self.n)
        found = self._stiff.dynamics(q, qd, rest, rest)
        return found.gravity, found.gravity_rate

    # ------------------------------------------------------------------ the equations of joints and motors

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, q_motor: ArrayLike | None = None,
                         qd_motor: ArrayLike | None = None, wrenches: Wrenches | None = None,
                         world_wrenches: Wrenches | None = None) -> Array:
        """Accelerations (n,) of the joints under motor torques tau (n,); see `motor_response`."""
        return self.motor_response(q, qd, tau, q_motor=q_motor, qd_motor=qd_motor, wrenches=wrenches,
                                   world_wrenches=world_wrenches).qdd

    def motor_response(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, *, q_motor: ArrayLike | None = None,
                       qd_motor: ArrayLike | None = None, wrenches: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> ElasticResponse:
        """Of joints and motors under motor torques tau (n,), Algorithm 2. InputError names a joint that moves no mass."""
        state = self._state(q, qd, q_motor, qd_motor)
        function = KernelFunction("motor_response", self._forward_dynamics, (*STATE, "tau"))
        names = (*self.joint_names, *(f"motor of {name}" for name in self.elastic_joints))
        with singularity.nonsingular(lambda: self.mass_matrix(q), names):
            acceleration, felt, locked = self._motors(function, *state, tau, wrenches=wrenches, world_wrenches=world_wrenches,
                                                      masses=False)
        singularity.check_nonsingular(felt, locked, names)
        validation.results("forward_dynamics", [acceleration])
        return ElasticResponse(acceleration[..., :self.n], acceleration[..., self.n:])

    def mass_matrix(self, q: ArrayLike) -> Array:
        """A = [[M, S], [S^T, B]] (n + Ne, n + Ne) or (samples, ...): joints, then motors of elastic joints, (30), (34)."""
        return self._motors(KernelFunction("mass_matrix", self._mass_matrix, ("q",)), q)[0]

    def bias(self, q: ArrayLike, qd: ArrayLike, *, q_motor: ArrayLike | None = None, qd_motor: ArrayLike | None = None,
             wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Array:
        """zeta (n + Ne,) of (31)-(33): A [qdd; qdd_motor] + zeta = [torque that reaches each joint; torque of each motor].

        The torque that reaches a rigid joint is its motor's, that of an elastic joint its spring's; motors carry their springs
        in zeta.
        """
        state = self._state(q, qd, q_motor, qd_motor)
        return self._motors(KernelFunction("bias", self._bias, STATE), *state, wrenches=wrenches,
                            world_wrenches=world_wrenches)[0]

    def gravity(self, q: ArrayLike) -> Array:
        """Share of gravity in `bias` (n + Ne,): none at the motors. The first n hold the robot still against gravity."""
        tau = self._stiff.gravity(q)
        return np.concatenate((tau, np.zeros((*tau.shape[:-1], len(self.elastic_motors)))), axis=-1)

    # ------------------------------------------------------------------ kernels

    def _state(self, q: ArrayLike, qd: ArrayLike, q_motor: ArrayLike | None,
               qd_motor: ArrayLike | None) -> tuple[ArrayLike, ...]:
        """The blocks of STATE; without elastic joints, motors need not be named."""
        missing = [name for name, value in (("q_motor", q_motor), ("qd_motor", qd_motor)) if value is None]
        if missing and self.elastic_motors:
            raise InputError(f"{some(missing)} is missing: springs pull by where their motors are; give q_motor and qd_motor, "
                             f"a column for each of {some(self.elastic_joints)}, as motor_motion finds them for a motion")
        return q, qd, *(np.zeros(0) if value is None else value for value in (q_motor, qd_motor))

    def given_motion(self, order: int, motion: Sequence[ArrayLike]) -> dict[str, ArrayLike]:
        """By name, as far as the order asks; InputError where there is less."""
        names = ["q" + "d" * k for k in range(order + 1)]
        if len(motion) <= order:
            raise InputError(f"{len(motion) - 1} derivatives of q are given, {order} are needed with "
                             f"{some(self.elastic_joints) or 'no joint'} elastic: {some(names)}")
        return dict(zip(names, motion, strict=False))

    def _motion(self, order: int, motion: Sequence[ArrayLike], **loads: Any) -> tuple[Array, ...]:
        return self._motors(self.motion_function(order), *self.given_motion(order, motion).values(), **loads)

    def motion_function(self, order: int) -> KernelFunction:
        """Motors' torques, loads, the motors' motion and, where the order is that of the rate, the torques' rates."""
        return KernelFunction(("motor_motion", order), self._inverse_motion, tuple("q" + "d" * k for k in range(order + 1)))

    def _inverse_motion(self, model: Model, gravity: Any, options: Any, **motion: Any) -> tuple[Any, ...]:
        torques, theta = motor_motion.inverse_motion(model, self.motors, list(motion.values()), gravity=gravity, **options)
        rates: Any = [derivative(x, 1) if len(motion) > self.order else [] for x in (torques.load, torques.motor)]
        return derivative(torques.motor, 0), derivative(torques.load, 0), *([x[k] for x in theta] for k in range(3)), *rates

    def _forward_dynamics(self, model: Model, gravity: Any, options: Any, q: Any, qd: Any, q_motor: Any, qd_motor: Any,
                          tau: Any) -> tuple[Any, ...]:
        options = values_only(options)
        acceleration, A = mixed_joints.forward_dynamics(model, self.motors, q, q_motor, qd, qd_motor, tau, gravity=gravity,
                                                        **options)
        return acceleration, pivots(A), np.diag(A)

    def _mass_matrix(self, model: Model, gravity: Any, options: Any, q: Any) -> list[Any]:
        return [mixed_joints.mass_matrix(model, self.motors, q)]

    def _bias(self, model: Model, gravity: Any, options: Any, q: Any, qd: Any, q_motor: Any, qd_motor: Any) -> list[Any]:
        return [mixed_joints.bias(model, self.motors, q, q_motor, qd, qd_motor, gravity=gravity, **values_only(options))]
