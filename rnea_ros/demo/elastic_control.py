"""Inverse-dynamics control of arms with rigid and elastic joints, and the simulation of such an arm.

Hua, Poursina, Sanfilippo, "Dynamic modelling of mixed rigid-flexible joint robotic manipulator using recursive Newton-Euler
formulation", section IV, (37)-(50). What the paper leaves open is settled without filters:

    C(q, qd) x   the recursion gives c(v) = C(q, v) v only; with the Christoffel form of C, the one of which Mdot - 2C is skew,
                 C(q, v) x is symmetric in v and x, so C(q, qd) x = (c(qd + x) - c(qd - x)) / 4
    qdd, thetadd accelerations that (39) and (49) ask for: those that the model itself predicts, (40) and (50)
    theta_d      (43), with its first and second time derivative from Taylor series of order two of (39)

    theta        position of an elastic joint's motor behind its gear
    e sigma      position error, and error of the reference velocity qd_r = qd_d + Lambda e: sigma = qd_r - qd
    Lambda K_D   gains, diagonal; K stiffness, B inertia of the motors behind their gears, M S C as in (30)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linalg import solve_positive
from ..algebra.taylor import derivative, jets
from ..algebra.vectors import cross
from ..algorithms.equations import EquationsOfMotion, Rates
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError, shown, some
from ..robots import validation
from ..robots.conditions import Loads, MotorState
from ..robots.robot import Robot

DESIRED = tuple(f"desired[{k}]" for k in range(5))  # position to fourth derivative
SECTIONS = {"elastic_joints", "motors"}  # sections of robot files that the control law supports
SMOOTH = dict.fromkeys(("coulomb", "viscous", "offset", "stribeck", "asymmetry"), 0.0)

Desired = Callable[[float], Sequence[Any]]


class MotorCommand(NamedTuple):
    """Torques tau (n,) of the motors [N m, N]; desired motor positions (Ne,) of elastic joints and two time derivatives, (43).
    """

    tau: np.ndarray
    q_motor: np.ndarray
    qd_motor: np.ndarray
    qdd_motor: np.ndarray


class Gains(NamedTuple):
    """Diagonals of the gain matrices: Lambda_q [1/s], K_Dq [N m s/rad] (n,), Lambda_theta, K_Dtheta (Ne,)."""

    slope: Any
    damping: Any
    motor_slope: Any
    motor_damping: Any


class InverseDynamicsController:
    """Controller that returns motor torques for a desired motion and a state.

    The desired motor positions have exact time derivatives: the recursion that gives the torque of a spring is evaluated on
    Taylor series. Nothing is filtered and no acceleration is measured: those in (39) and (49) are predicted by the model under
    this law, (40) and (50).

    robot : model of the controller
    """

    def __init__(self, robot: Robot, slope: Any, damping: Any, motor_slope: Any = None, motor_damping: Any = None):
        """Check robot and gains. Gains: one number for all joints, or one for each.

        slope, damping             : Lambda_q [1/s] and K_Dq [N m s/rad] of the n joints, (37), (39)
        motor_slope, motor_damping : Lambda_theta and K_Dtheta of elastic joints' motors, (45), (49); default as the joints'
        """
        if not SECTIONS.issuperset(robot.sections) or robot.has_moving_base:
            raise InputError(f"robot '{robot.name}' has {some(robot.sections) or 'a moving base'}; this controller is for "
                             "trees on a fixed base with elastic_joints and motors alone")
        state = robot.structure().roles.state
        if robot.order > 5 or state:
            raise InputError("this controller needs the motor of every elastic joint on a link that no other elastic joint "
                             "moves: otherwise (43) defines the desired motor position only implicitly")
        self.robot = robot
        elastic = [robot.joint_names.index(name) for name in robot.elastic_joints]
        slope, damping = (_gains(name, x, robot.n) for name, x in (("slope", slope), ("damping", damping)))
        self.gains = Gains(
            slope, damping,
            slope[elastic] if motor_slope is None else _gains("motor_slope", motor_slope, len(elastic)),
            damping[elastic] if motor_damping is None else _gains("motor_damping", motor_damping, len(elastic)))
        self._law = _Law(robot.structure().equations, self.gains)
        self._names = dict.fromkeys((*DESIRED, "q", "qd"), robot.joint_names)
        self._names |= dict.fromkeys(("q_motor", "qd_motor"), robot.elastic_joints)
        self._kernels: dict[Any, Kernel] = {}

    def __call__(self, desired: Sequence[Any], q: Any, q_motor: Any, qd: Any, qd_motor: Any,
                 loads: Loads | None = None) -> MotorCommand:
        """Return the command.

        desired     : q_d and its first to fourth time derivative, (n,) each
        q, qd       : (n,) state of the joints
        q_motor, qd_motor : (Ne,) state of the motors of elastic joints
        loads       : known loads on the robot; their rates are ignored
        """
        if len(desired) < len(DESIRED):
            raise InputError(f"the desired motion has {len(desired)} arrays; {len(DESIRED)} are needed: position, velocity, "
                             "acceleration, jerk and the derivative of the jerk")
        given = dict(zip(DESIRED, desired)) | {"q": q, "q_motor": q_motor, "qd": qd, "qd_motor": qd_motor}
        blocks = [validation.coordinates(name, value, self._names[name]) for name, value in given.items()]
        if validation.samples(blocks) is not None:
            raise InputError("the controller takes one sample, arrays (n,)")
        known = loads or Loads()
        blocks += [*known.wrenches.values(), *known.world_wrenches.values()]
        found = self._kernel(known.links[0], known.links[2])(np.concatenate(blocks))
        validation.results("the command", list(found))
        return MotorCommand(*found)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without compiled functions: machine code contains addresses of this process."""
        return {**self.__dict__, "_kernels": {}}

    def _kernel(self, links: tuple[str, ...], in_world: tuple[str, ...]) -> Kernel:
        if (links, in_world) not in self._kernels:
            sizes = {name: len(self._names[name]) for name in (*DESIRED, "q", "q_motor", "qd", "qd_motor")}
            sizes |= {f"wrench {link}": 6 for link in links} | {f"world wrench {link}": 6 for link in in_world}
            frames = {link: self.robot.model.frame(link) for link in (*links, *in_world)}

            def evaluate(**x: Any) -> Sequence[Any]:
                known: dict[int, Any] = {}
                for link in links:
                    frame, six = frames[link], x[f"wrench {link}"]
                    f = frame.R @ six[:3]
                    moved = np.concatenate((f, frame.R @ six[3:] + cross(frame.P, f)))
                    known[frame.link] = known[frame.link] + moved if frame.link in known else moved
                world = [(frames[link].link, frames[link].P, x[f"world wrench {link}"]) for link in in_world]
                return self._law([x[name] for name in DESIRED], x["q"], x["q_motor"], x["qd"], x["qd_motor"], known, world)

            self._kernels[links, in_world] = kernel.build(evaluate, sizes, self.robot.tree.backend)
        return self._kernels[links, in_world]


class _Law:
    """Control law, for any scalar type."""

    def __init__(self, equations: EquationsOfMotion, gains: Gains):
        self.equations, self.gains, self.n = equations, gains, equations.model.n
        self.springs = [motor for motor in equations.motors if motor.stiffness < np.inf]
        self.joint = [motor.coordinate for motor in self.springs]
        smooth = replace(equations.model, links=tuple(replace(link, term=replace(link.term, **SMOOTH))
                                                      for link in equations.model.links))
        motors = [motor._replace(term=replace(motor.term, **SMOOTH)) for motor in equations.motors]
        self.smooth = EquationsOfMotion(smooth, np.zeros(3), motors=motors)

    def __call__(self, desired: Sequence[Any], q: Any, theta: Any, qd: Any, thetad: Any, wrenches: Mapping[int, Any],
                 world_wrenches: Sequence[Any]) -> Sequence[Any]:
        """Return the motor torques, theta_d and its first two time derivatives."""
        loads = wrenches, world_wrenches
        stiffness = np.array([motor.stiffness for motor in self.springs])
        qdd = self.acceleration(desired, q, theta, qd, loads)
        soon = [jets(desired[k], desired[k + 1]) for k in range(3)]
        qddd = derivative(self.acceleration(soon, jets(q, qd), jets(theta, thetad), jets(qd, qdd), loads), 1)
        ahead = [jets(*desired[k:k + 3]) for k in range(3)]
        q2, qd2 = jets(q, qd, qdd), jets(qd, qdd, qddd)
        load = self.torques(ahead, q2, qd2, loads)
        target = [load[i] / k + q2[i] for i, k in zip(self.joint, stiffness, strict=True)]  # (43)
        wanted = [derivative(target, order) for order in range(3)]

        sigma, qdd_r = self.reference(desired, q, qd)
        sigma_e, sigmad_e = sigma[self.joint], (qdd_r - qdd)[self.joint]
        e, ed = wanted[0] - theta, wanted[1] - thetad  # (44)
        sigma_m = ed + e * self.gains.motor_slope + sigma_e  # (45), (47)
        thetadd_r = wanted[2] + ed * self.gains.motor_slope + sigmad_e  # rate of (45)
        push = sigma_m * self.gains.motor_damping
        B = np.array([motor.term.armature for motor in self.springs])
        thetadd = thetadd_r + (push + e * stiffness) / B  # (50)
        tau = self.torques(desired, q, qd, loads, (thetad, thetadd))  # (39)
        behind = self.dynamics(self.equations, (q, qd, qdd), (theta, thetad, thetadd_r), loads)[self.n:]
        for k, i in enumerate(self.joint):
            tau[i] = behind[k] + e[k] * stiffness[k] + push[k]  # (49), K (theta_d - theta) beside K (theta - q)
        return [tau, *wanted]

    def reference(self, desired: Sequence[Any], q: Any, qd: Any) -> tuple[Any, Any]:
        """Return sigma, (38), and the rate of the reference velocity, (37)."""
        e, ed = desired[0] - q, desired[1] - qd
        return ed + e * self.gains.slope, desired[2] + ed * self.gains.slope

    @staticmethod
    def dynamics(equations: EquationsOfMotion, joints: Sequence[Any], motors: Sequence[Any],
                 loads: Sequence[Any]) -> list[Any]:
        """Return the rows of joints and motors of (31); the torque of each spring acts on both."""
        rates = Rates(*(np.concatenate((np.asarray(x, dtype=object), np.asarray(theta, dtype=object)))
                        for x, theta in zip(joints, motors, strict=True)))
        return equations.dynamics(np.eye(3), rates, *loads)

    def coriolis(self, q: Any, qd: Any, x: Any) -> Any:
        """Return C(q, qd) x."""
        zero, still = np.zeros(self.n), np.zeros(len(self.springs))

        def c(v: Any) -> list[Any]:
            return self.dynamics(self.smooth, (q, v, zero), (q[self.joint], still, still), ({}, ()))[:self.n]

        return np.array([(a - b) * 0.25 for a, b in zip(c(qd + x), c(qd - x), strict=True)])

    def torques(self, desired: Sequence[Any], q: Any, qd: Any, loads: Sequence[Any], motors: Sequence[Any] = ()) -> list[Any]:
        """Return tau_qc, (39). motors: velocity and acceleration of the motors, which affect only the torques of rigid joints.
        """
        sigma, qdd_r = self.reference(desired, q, qd)
        turning = motors or [np.zeros(len(self.springs))] * 2
        needed = self.dynamics(self.equations, (q, qd, qdd_r), (q[self.joint], *turning), loads)[:self.n]  # springs relaxed
        return [a + b for a, b in zip(needed, self.coriolis(q, qd, sigma) + sigma * self.gains.damping, strict=True)]

    def acceleration(self, desired: Sequence[Any], q: Any, theta: Any, qd: Any, loads: Sequence[Any]) -> Any:
        """Return the resulting qdd, from (40): e_tau is zero for rigid joints, and the missing spring torque for elastic ones.
        """
        sigma, qdd_r = self.reference(desired, q, qd)
        right = list(-(self.coriolis(q, qd, sigma) + sigma * self.gains.damping))
        lack = self.torques(desired, q, qd, loads)
        for k, motor in enumerate(self.springs):
            i = motor.coordinate
            right[i] = right[i] + lack[i] - (theta[k] - q[i]) * motor.stiffness
        x = np.concatenate((q, q[self.joint]))
        M = self.equations.mass_matrix(x)[:self.n, :self.n]
        return qdd_r - solve_positive(M, right)


def _gains(name: str, value: Any, size: int) -> np.ndarray:
    try:
        array = np.broadcast_to(np.asarray(value, dtype=float), (size,))
    except (TypeError, ValueError, OverflowError):
        array = np.array([np.nan])
    if not (np.isfinite(array) & (array > 0.0)).all():
        raise InputError(f"gain {name} is {shown(value)}; one number above zero, or {size} of them, are needed")
    return array


class Simulation(NamedTuple):
    """Result of a simulation: state, torques and desired motion, with a row for each time of t (samples,) [s]."""

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


def accelerations(robot: Robot, q: Any, qd: Any, tau: Any, motors: MotorState, loads: Loads | None = None) -> np.ndarray:
    """Return the accelerations of the joints, then of the motors of elastic joints, for given motor torques."""
    found = robot.response(q, qd, tau, motors=motors if robot.elastic_joints else None, loads=loads).positions
    return np.array([found[name][2] for name in (*robot.joint_names, *(f"motor of {name}" for name in robot.elastic_joints))])


def simulate_elastic_arm(robot: Robot, controller: Callable[..., MotorCommand], desired: Desired, start: Sequence[Any],
             duration: float,
             step: float = 1e-3, loads: Loads | None = None) -> Simulation:
    """Return the motion under a controller without delay, by the classical Runge-Kutta method on forward dynamics.

    robot    : simulated robot; the model of the controller may differ (payload, loads)
    desired  : function of time [s] that returns q_d and its first to fourth time derivative
    start    : q, q_motor, qd, qd_motor at time zero
    duration : duration [s]
    step     : time step [s]
    loads    : constant wrenches on the robot, which the controller does not receive
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
        return np.concatenate((y[half:], accelerations(robot, q, qd, command(t, y).tau,
                                                       MotorState(q_motor, qd_motor), loads)))

    t = np.arange(round(duration / step) + 1) * step
    states = runge_kutta(slope, np.concatenate(parts), t)
    commands = [command(*sample) for sample in zip(t, states, strict=True)]
    q, q_motor, qd, qd_motor = np.split(states, cuts, axis=1)
    return Simulation(t, q, q_motor, qd, qd_motor, tau=np.array([c.tau for c in commands]),
                      q_desired=np.array([desired(x)[0] for x in t]), q_motor_desired=np.array([c.q_motor for c in commands]))


def runge_kutta(slope: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the states (samples, size) of y' = slope(t, y) at times t, with one fourth-order step between two times."""
    states = [np.asarray(start, dtype=float)]
    for now, then in pairwise(t):
        y, h = states[-1], then - now
        a = slope(now, y)
        b = slope(now + h / 2, y + a * (h / 2))
        c = slope(now + h / 2, y + b * (h / 2))
        d = slope(then, y + c * h)
        states.append(y + (a + 2.0 * b + 2.0 * c + d) * (h / 6))
    return np.array(states)
