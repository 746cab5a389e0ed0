"""The inverse-dynamics controller of Hua et al. (37)-(49) for a user's robot, and a simulation to try it in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import mixed_control
from ..errors import InputError, shown
from .elastic import ElasticRobot
from .inputs import validation
from .inputs.validation import Wrenches
from .kernels.floating_functions import values_only
from .kernels.kernel_function import KernelFunction
from .kernels.store import KernelStore

DESIRED = tuple(f"desired[{k}]" for k in range(5))  # position to fourth derivative

Desired = Callable[[float], Sequence[Any]]


class MotorCommand(NamedTuple):
    """tau (n,) of the motors [N m, N]; desired position of the elastic joints' motors (Ne,) and its two derivatives, (43)."""

    tau: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    qdd_motor: np.ndarray


class InverseDynamicsController:
    """Call with the desired motion and the state, get motor torques. Its model is the ElasticRobot that it is made with.

    The desired motor positions get exact rates: the recursion that gives a spring's torque is run on jets. Nothing is filtered
    and no acceleration is measured: those in (39) and (49) are what the model predicts under this law, (40) and (50).
    """

    def __init__(self, robot: ElasticRobot, slope: Any, damping: Any, motor_slope: Any = None, motor_damping: Any = None):
        """Gains: one number for all joints, or one for each.

        slope, damping             : Lambda_q [1/s] and K_Dq [N m s/rad] of the n joints, (37), (39)
        motor_slope, motor_damping : Lambda_theta and K_Dtheta of elastic joints' motors, (45), (49); default as the joints'
        """
        if robot.order > 5:
            raise InputError("this controller needs the motor of every elastic joint on a link that no other elastic joint "
                             "moves: otherwise (43) defines the desired motor position only implicitly")
        self.robot = robot
        elastic = [robot.joint_names.index(name) for name in robot.elastic_joints]
        slope, damping = (_gains(name, x, robot.n) for name, x in (("slope", slope), ("damping", damping)))
        self.gains = mixed_control.Gains(
            slope, damping,
            slope[elastic] if motor_slope is None else _gains("motor_slope", motor_slope, len(elastic)),
            damping[elastic] if motor_damping is None else _gains("motor_damping", motor_damping, len(elastic)))
        columns = dict.fromkeys(("q_motor", "qd_motor"), robot.elastic_joints)
        self._kernels = KernelStore(robot.model, robot.robot.gravity_vector, robot.robot.backend, columns=columns)

    def __call__(self, desired: Sequence[Any], q, q_motor, qd, qd_motor, wrenches: Wrenches | None = None,
                 world_wrenches: Wrenches | None = None) -> MotorCommand:
        """desired: q_d and its first to fourth derivative, (n,) each; q, qd (n,); q_motor, qd_motor (Ne,).

        wrenches, world_wrenches: what is known to act on the robot, as in ElasticRobot.inverse_dynamics.
        """
        if len(desired) < len(DESIRED):
            raise InputError(f"the desired motion has {len(desired)} arrays; {len(DESIRED)} are needed: position, velocity, "
                             "acceleration, jerk and the derivative of the jerk")
        function = KernelFunction("law", self._law, (*DESIRED, "q", "q_motor", "qd", "qd_motor"))
        return MotorCommand(*self._kernels(function, *desired[:len(DESIRED)], q, q_motor, qd, qd_motor, wrenches=wrenches,
                                           world_wrenches=world_wrenches))

    def _law(self, model, gravity, options, q, q_motor, qd, qd_motor, **desired):
        return mixed_control.control(model, self.robot.motors, self.gains, list(desired.values()), q, q_motor, qd, qd_motor,
                                     gravity=gravity, **values_only(options))


def _gains(name: str, value: Any, size: int) -> np.ndarray:
    try:
        array = np.broadcast_to(np.asarray(value, dtype=float), (size,))
    except (TypeError, ValueError, OverflowError):
        array = np.array([np.nan])
    if not (np.isfinite(array) & (array > 0.0)).all():
        raise InputError(f"gain {name} is {shown(value)}; one number above zero, or {size} of them, are needed")
    return array


class Simulation(NamedTuple):
    """A run, a row for each instant of t (samples,): state, torques, and what was wanted. Names as in ElasticRobot."""

    t: np.ndarray
    q: np.ndarray
    q_motor: np.ndarray
    qd: np.ndarray
    qd_motor: np.ndarray
    tau: np.ndarray
    q_desired: np.ndarray
    q_motor_desired: np.ndarray

    @property
    def rmse(self) -> np.ndarray:
        """Root of the mean square of q_desired - q over the run (n,) [rad, m]."""
        return np.sqrt(np.mean((self.q_desired - self.q) ** 2, axis=0))


def simulate(robot: ElasticRobot, controller: Callable[..., MotorCommand], desired: Desired, start: Sequence[Any],
             duration: float,
             step: float = 1e-3, wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> Simulation:
    """The robot under a controller that acts without delay: classical Runge-Kutta of fourth order on Algorithm 2.

    robot    : what moves; the controller may know another one (payload, wrenches)
    desired  : time [s] -> q_d and its first to fourth derivative
    start    : q, q_motor, qd, qd_motor at time zero
    wrenches, world_wrenches : act on the robot during the whole run; the controller is not told
    """
    if not (np.isfinite(duration) and np.isfinite(step) and 0.0 < step <= duration):
        raise InputError(f"duration {duration} and step {step} must be times above zero, the step not the longer one")
    names = (robot.joint_names, robot.elastic_joints) * 2
    parts = [validation.vector(name, x, len(n)) for name, x,
             n in zip(("q", "q_motor", "qd", "qd_motor"), start, names, strict=True)]
    half, cuts = robot.n + len(robot.elastic_joints), np.cumsum([len(n) for n in names])[:-1]

    def command(t: float, y: np.ndarray) -> MotorCommand:
        return controller(desired(t), *np.split(y, cuts))

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        q, q_motor, qd, qd_motor = np.split(y, cuts)
        acceleration = robot.motor_response(q, qd, command(t, y).tau, q_motor=q_motor, qd_motor=qd_motor, wrenches=wrenches,
                                            world_wrenches=world_wrenches)
        return np.concatenate((y[half:], *acceleration))

    t = np.arange(round(duration / step) + 1) * step
    states = runge_kutta(slope, np.concatenate(parts), t)
    commands = [command(*sample) for sample in zip(t, states, strict=True)]
    q, q_motor, qd, qd_motor = np.split(states, cuts, axis=1)
    return Simulation(t, q, q_motor, qd, qd_motor, tau=np.array([c.tau for c in commands]),
                      q_desired=np.array([desired(x)[0] for x in t]), q_motor_desired=np.array([c.q_motor for c in commands]))


def runge_kutta(slope: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, t: np.ndarray) -> np.ndarray:
    """States (samples, size) of y' = slope(t, y) at the times t, a step of fourth order between any two."""
    states = [np.asarray(start, dtype=float)]
    for now, then in pairwise(t):
        y, h = states[-1], then - now
        a = slope(now, y)
        b = slope(now + h / 2, y + a * (h / 2))
        c = slope(now + h / 2, y + b * (h / 2))
        d = slope(then, y + c * h)
        states.append(y + (a + 2.0 * b + 2.0 * c + d) * (h / 6))
    return np.array(states)
