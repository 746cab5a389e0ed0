"""Motion planning for a robot: its limits, torques and sensitivities as the functions that planning/ needs.

plan = plan_motion(robot, start, goal)                            smooth, at most 0.5 % longer than the fastest
plan = plan_motion(robot, start, goal, time_tolerance=0.0)        fastest, inside the limits of the URDF
plan = plan_motion(robot, start, goal, time=0.99, effort=0.01)    thesis (4.18) with u = 0.01
q, qd, qdd, qddd = plan(np.arange(0.0, plan.duration, 1e-3))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError, some
from ..model.drives import TOTAL, VelocityLimits, limit_factors, limited_values
from ..model.tree import JointDynamics, Limits
from ..planning.planner import REMEDY, InitialPath, PlannedMotion, plan
from ..planning.problem import (
    MAX_DURATION,
    MIN_DURATION,
    Cost,
    EndState,
    PlanningProblem,
    PlanSettings,
    Quantity,
    Report,
    SmoothingSettings,
    motion_quantity,
)
from ..robots import validation
from ..robots.base_state import BaseState
from ..robots.conditions import Loads
from ..robots.robot import Robot
from .clearance import Clearance
from .limit_utilization import rate_notes, resolve_limits, velocity_limits
from .path import MAX_COORDINATE
from .path_dynamics import link_side, unenforceable_limits

FORCE = slice(0, 3)  # of a joint wrench
MIN_WAYPOINT_GAP = 1e-3  # share of the duration between two waypoints
GUESS_SAMPLES = 100  # of a motion that is the initial guess
TIME_TOLERANCE = 0.005  # share of the fastest motion's duration that the smoothest one may take longer


def plan_motion(robot: Robot, start: Any, goal: Any, *, time: float = 1.0, effort: Any = 0.0, limits: Limits | None = None,
                joint_force: Mapping[str, float] | None = None, duration: float | tuple[float, float] | None = None,
                loads: Loads | None = None, settings: PlanSettings = PlanSettings(),
                report: Report = lambda progress: None, base: BaseState | None = None, waypoints: Any = None,
                guess: Any = None, clearance: Clearance | None = None, quantities: Sequence[Quantity] = (),
                time_tolerance: float = TIME_TOLERANCE) -> PlannedMotion:
    """Plan the motion from start to goal that minimizes the integral of  time + sum effort_j tau_j^2  inside all known limits.

    The joints with motors are moved; torques are those of trajectory.link_side: where a joint is elastic,
    that of its spring.
    start, goal : (n,) at rest there; or (2, n) with the velocity; or (3, n) with the acceleration too. Where none is given it
                  is the plan's to choose; zero where torque rates are limited, for a torque must not jump at the ends either
    time, effort: weights; effort for all joints or (n,) for each. Time alone: the fastest motion
    limits      : default those of the URDF; dataclasses.replace(robot.limits, effort_rate=...) for more, NaN is unknown.
                  effort_rate limits the rate of the whole torque, commanded_effort_rate that of the torque without what the
                  robot's controller adds. Limits of drives are always the robot's
    joint_force : {joint: largest internal force [N], norm of all that the joint transmits}, names as in robot.moving_joints;
                  of trees alone
    duration    : [s]; given, or (shortest, longest)
    loads       : constant wrenches on links
    report      : called with the progress after each iteration of the solver
    base        : state of a moving base, at rest
    waypoints   : (k, n) poses that the motion passes in this order; or {share of the duration: pose}, where it is known when.
                  Otherwise they are passed when a motion straight from one to the next would
    guess       : (k, n) poses or a PlannedMotion from which the search starts
    clearance   : distances from obstacles and between links
    quantities  : further ones with limits, functions of q and its derivatives
    time_tolerance : where time alone is minimised, the plan is the smoothest motion (least integral of squared jerk over all
                  joints, relative to their velocity limits) that takes at most this share longer than the fastest one found.
                  Where torques have weights: squared jerk is a penalty, which costs a part of this share of the objective.
                  0: the best motion, in which joints that do not bind may oscillate
    Raises InputError for invalid arguments and PlanningError where no motion is found.
    """
    if not robot.n:
        raise InputError(f"robot '{robot.name}' has no joint that moves: there is nothing to plan")
    moved = link_side(robot, base)
    limits = resolve_limits(moved, limits)
    limited, tau = _quantities(moved, limits, loads, joint_force)
    weights = np.broadcast_to(validation.numbers("effort", effort), (moved.n,)) if np.size(effort) in (1, moved.n) else None
    if weights is None:
        raise InputError(f"effort has {np.size(effort)} weights; one, or one for each of {some(moved.joint_names)}")
    smoothing = _smoothing(moved, limits, time_tolerance)
    rates = np.fmin(limits.effort_rate, limits.commanded_effort_rate)
    smooth = np.isfinite(rates).any() or any(limit.effort_rate for limit in moved.drive_limits)
    ends = _state(moved, "start", start, smooth), _state(moved, "goal", goal, smooth)
    way = None if waypoints is None else waypoint_path(moved, ends, limits, waypoints)
    extra = [] if clearance is None else clearance.quantities(moved)
    passed = [] if way is None else waypoint_constraints(moved, way)
    cost = Cost(validation.vector("time", [time], 1)[0], weights, tau if weights.any() else None)
    problem = PlanningProblem(*ends, [*limited, *extra, *quantities, *passed], cost, _durations(duration))
    found = plan(problem, settings, report, way if guess is None else initial_path(moved, ends, guess),
                 _remedy(limited), smoothing)
    return replace(found, notes=(*found.notes, *unenforceable_limits(robot), *rate_notes(moved, limits, trees_only=True)))


def _remedy(limited: Sequence[Quantity]) -> str:
    """Return the advice for a failed plan; it names joints without any limit of velocity, acceleration, jerk or torque.

    At high speed such a joint drives the others by its reaction torque, and the solver uses it as a flywheel.
    """
    moving = [quantity for quantity in limited if quantity.order]
    known = {quantity.labels[k] for quantity in moving for k in quantity.enforced}
    names = dict.fromkeys(label for quantity in moving if quantity.linear for label in quantity.labels)
    free = [name for name in names if name not in known]
    return f"Limits of velocity or torque are unknown for {some(free)}: give one for each. {REMEDY}" if free else REMEDY


def _quantities(robot: Robot, limits: Limits, loads: Loads | None,
                joint_force: Mapping[str, float] | None) -> tuple[list[Quantity], Quantity]:
    """Return all limited quantities, and the torque."""
    tau = torque(robot, limits.effort, loads)
    quantities = [*motion_limits(robot, limits), tau, torque_rate(robot, limits.effort_rate, loads)]
    if np.isfinite(limits.commanded_effort_rate).any():
        quantities.append(torque_rate(commanded(robot), limits.commanded_effort_rate, loads, "commanded torque rate"))
    if (velocity := velocity_limits(robot, limits)) is not None:
        quantities.append(velocity_by_position(robot, velocity))
    if robot.drive_limits:
        quantities.append(drives(robot, loads))
    if joint_force:
        if not robot.is_fixed_tree:
            raise InputError(f"joint_force limits joints of trees; robot '{robot.name}' is a {robot.kind}")
        quantities.append(joint_force_squared(robot, joint_force, loads))
    return quantities, tau


def motion_limits(robot: Robot, limits: Limits) -> list[Quantity]:
    """Return position, velocity, acceleration and jerk as quantities; continuous joints have no position limits."""
    turning = np.array([kind == "continuous" for kind in robot.joint_types])
    lower = np.where(turning & np.isnan(limits.lower), -np.inf, limits.lower)
    upper = np.where(turning & np.isnan(limits.upper), np.inf, limits.upper)
    symmetric = (limits.velocity, limits.acceleration, limits.jerk)
    return [motion_quantity(0, robot.joint_names, lower, upper),
            *(motion_quantity(order, robot.joint_names, -limit, limit) for order, limit in enumerate(symmetric, start=1))]


def torque(robot: Robot, limit: np.ndarray, loads: Loads | None) -> Quantity:
    """Return the joint torques as a quantity that a plan keeps within +-limit (n,) [N m, N]; loads: constant
    wrenches on links.
    """
    return Quantity("torque", robot.joint_names, 2, lambda *motion: robot.inverse_dynamics(*motion, loads=loads),
                    lambda *motion: robot.sensitivities(*motion, loads=loads), -limit, limit, affine=2,
                    lagrangian=robot.is_fixed_tree)


def torque_rate(robot: Robot, limit: np.ndarray, loads: Loads | None, name: str = "torque rate") -> Quantity:
    """Return the torque rate as a quantity with limits (n,)."""
    return Quantity(name, robot.joint_names, 3, lambda *motion: robot.torque_and_rate(*motion, loads=loads)[1],
                    lambda *motion: robot.rate_sensitivities(*motion, loads=loads), -limit, limit, affine=2)


def commanded(robot: Robot) -> Robot:
    """Return a robot whose whole torques have the rates of the commanded torques of this one: the same robot without weight,
    or without weight and friction, where the robot's controller adds these.
    """
    contains = robot.tree.model.efforts.commanded.contains
    if contains == TOTAL.commanded.contains or not robot.is_fixed_tree:
        return robot
    weightless = robot.held(np.zeros(3))
    if contains == "without_gravity":
        return weightless
    terms = {link.joint: JointDynamics(rotor_inertia=link.term.rotor_inertia, gear_ratio=link.term.gear_ratio)
             for link in robot.model.links if link.joint}
    motors = [replace(motor, term=JointDynamics(rotor_inertia=motor.term.rotor_inertia))
              for motor in robot.model.coupled_motors]
    return weightless.with_joint_dynamics(terms).with_coupled_motors(motors)


def velocity_by_position(robot: Robot, limits: VelocityLimits) -> Quantity:
    """Return (qd + o) |qd + o| + 2 a q <= 2 a upper, and the same towards the lower end, as a quantity.

    It is the squared limit, which is differentiable where its root is not, and excludes positions without allowed velocity.
    """
    k, (o, a2, ends) = limits.joints, limits.zones
    pick = np.eye(robot.n)[k]

    def value(q, qd):
        return np.concatenate([(v := sign * qd[:, k] + o) * np.abs(v) + a2 * sign * q[:, k] for sign in (1.0, -1.0)], axis=1)

    def slope(q, qd):
        by_speed = [2.0 * np.abs(sign * qd[:, k] + o) * sign for sign in (1.0, -1.0)]
        by_position = np.broadcast_to(np.concatenate((a2, -a2)), (len(q), 2 * len(k)))
        both = np.concatenate((pick, pick))
        return [by_position[..., None] * both, np.concatenate(by_speed, axis=1)[..., None] * both]

    upper = np.concatenate((a2 * ends[1], -a2 * ends[0]))
    return Quantity("velocity by position", [robot.joint_names[j] for j in (*k, *k)], 1, value, slope,
                    np.full(len(upper), -np.inf), upper)


def drives(robot: Robot, loads: Loads | None) -> Quantity:
    """Return voltage, current, motor speed and power as a quantity, as far as the robot file limits them."""
    limits, by = robot.drive_limits, limit_factors(robot.drive_limits, robot.n)
    lower, upper = (np.array([getattr(limit, end) for limit in limits]) for end in ("lower", "upper"))

    def value(q, qd, qdd, qddd):
        return limited_values(by, *robot.torque_and_rate(q, qd, qdd, qddd, loads=loads), qd)

    def slope(q, qd, qdd, qddd):
        tau = robot.inverse_dynamics(q, qd, qdd, loads=loads)
        rates = robot.rate_sensitivities(q, qd, qdd, qddd, loads=loads)
        torques = (*robot.sensitivities(q, qd, qdd, loads=loads), np.zeros_like(rates[0]))
        found = [by.effort @ dt + by.effort_rate @ dr + by.power @ (qd[..., None] * dt) for dt, dr in zip(torques, rates)]
        found[1] = found[1] + by.velocity + by.power * tau[..., None, :]
        return found

    return Quantity("drive limit", [limit.description for limit in limits], 3, value, slope, lower, upper)


def joint_force_squared(robot: Robot, limits: Mapping[str, float], loads: Loads | None) -> Quantity:
    """Return squared joint forces [N^2] as a quantity: the norm has no derivative where the force vanishes; d F.F = 2 F.dF."""
    unknown = sorted(set(limits) - set(robot.moving_joints))
    if unknown:
        raise InputError(f"joint_force names {some(unknown, quoted=True)}; the joints that move a link are "
                         f"{some(robot.moving_joints)}")
    upper = np.array([float(validation.numbers("joint_force", limits.get(joint, np.inf))) for joint in robot.moving_joints])
    if not (upper > 0.0).all():
        raise InputError(f"joint_force is {dict(limits)}; forces above zero are needed [N]")

    def value(*motion):
        return (robot.joint_wrenches(*motion, loads=loads).wrench[..., FORCE] ** 2).sum(axis=-1)

    def slope(*motion):
        force = 2.0 * robot.joint_wrenches(*motion, loads=loads).wrench[..., FORCE]
        _, *tables = robot.joint_wrench_sensitivities(*motion, loads=loads)
        return [np.einsum("sjc,sjcn->sjn", force, table[..., FORCE, :]) for table in tables]

    return Quantity("squared joint force", robot.moving_joints, 2, value, slope, np.full(len(upper), -np.inf), upper**2)


def _smoothing(robot: Robot, limits: Limits, tolerance: float) -> SmoothingSettings | None:
    """Return the search for the least squared jerk, each joint's relative to its velocity limit; None if it is turned off.

    A joint without a velocity limit counts as one with the mean limit of the others.
    """
    share = float(validation.vector("time_tolerance", [tolerance], 1)[0])
    if not 0.0 <= share <= 1.0:
        raise InputError(f"time_tolerance is {share:g}; a share of the fastest motion's duration from 0 to 1 is needed")
    known = np.isfinite(limits.velocity) & (limits.velocity > 0.0)
    scale = np.where(known, limits.velocity, limits.velocity[known].mean() if known.any() else 1.0)
    unlimited = np.full(robot.n, np.inf)
    jerk = motion_quantity(3, robot.joint_names, -unlimited, unlimited)
    return SmoothingSettings(share, Cost(0.0, 1.0 / scale**2, jerk)) if share else None


def _state(robot: Robot, name: str, given: Any, smooth: bool) -> EndState:
    rows = np.atleast_2d(validation.numbers(name, given))
    if rows.ndim != 2 or len(rows) > 3:
        raise InputError(f"{name} has shape {rows.shape}; ({robot.n},) is needed, or rows q, qd or q, qd, qdd")
    q, *rest = (validation.coordinates(f"{name} {what}", row, robot.joint_names) for what,
                row in zip(("q", "qd", "qdd"), rows))
    if abs(q[k := int(np.abs(q).argmax())]) > MAX_COORDINATE:
        raise InputError(f"{name} q is {q[k]:g} for {robot.joint_names[k]}; motions are planned no further than "
                         f"{MAX_COORDINATE:g} rad or m from zero")
    qd = rest[0] if rest else np.zeros(robot.n)
    return EndState(q, qd, rest[1] if len(rest) > 1 else np.full(robot.n, 0.0 if smooth else np.nan))


def _durations(given: float | tuple[float, float] | None) -> tuple[float, float]:
    if given is None:
        return MIN_DURATION, MAX_DURATION
    limited_values = validation.numbers("duration", given)
    if limited_values.size not in (1, 2):
        raise InputError(f"duration is {given!r:.60}; one number, or shortest and longest [s]")
    shortest, longest = float(limited_values.flat[0]), float(limited_values.flat[-1])
    if longest < shortest:
        raise InputError(f"duration is [{shortest:g}, {longest:g}]: the first is the shortest, the second the longest [s]; "
                         f"give [{longest:g}, {shortest:g}]")
    return shortest, longest


# --------------------------------------------------------------------------------------------------------------- waypoints


def waypoint_path(robot: Robot, ends: Sequence[EndState], limits: Limits, given: Any) -> InitialPath:
    """Return start, waypoints and goal with their shares of the duration.

    given: (k, n) poses, or {share of the duration: pose}
    """
    rows = list(given.values()) if isinstance(given, Mapping) else given
    poses = np.concatenate((ends[0].q[None], _poses("waypoints", robot, rows), ends[1].q[None]))
    inner = validation.numbers("shares of waypoints", list(given)) if isinstance(given, Mapping) else _times(poses, limits)
    shares = np.concatenate(([0.0], inner, [1.0]))
    if not (np.diff(shares) >= MIN_WAYPOINT_GAP).all():
        raise InputError(f"waypoints are passed at {shares[1:-1].tolist()} of the duration; shares that rise from 0 to 1 are "
                         f"needed, {MIN_WAYPOINT_GAP:g} apart")
    return InitialPath(shares, poses)


def waypoint_constraints(robot: Robot, way: InitialPath) -> list[Quantity]:
    """Return the constraints that the motion passes each waypoint at its share of the duration."""
    return [motion_quantity(0, robot.joint_names, pose, pose, f"position at waypoint {k}", [(share, share)])
            for k, (share, pose) in enumerate(zip(way.shares[1:-1], way.poses[1:-1], strict=True))]


def initial_path(robot: Robot, ends: Sequence[EndState], given: Any) -> InitialPath:
    """Return the path that the search starts from: a known motion, or poses, evenly passed, with the ends of the plan."""
    if isinstance(given, PlannedMotion):
        poses = given(np.linspace(0.0, given.duration, GUESS_SAMPLES))[0]
        given = poses[1:-1]
    poses = np.concatenate((ends[0].q[None], _poses("guess", robot, given), ends[1].q[None]))
    return InitialPath(np.linspace(0.0, 1.0, len(poses)), poses)


def _poses(name: str, robot: Robot, given: Any) -> np.ndarray:
    return np.atleast_2d(validation.coordinates(name, given, robot.joint_names))


def _times(poses: np.ndarray, limits: Limits) -> np.ndarray:
    """Return the shares (k,) of the duration at which poses are passed at the largest speed of each leg's slowest joint.

    Times are square roots of these durations, as motions start and stop: short legs are slower.
    """
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
    legs = np.sqrt((np.abs(np.diff(poses, axis=0)) / speed).max(axis=1))
    if not legs.all():
        raise InputError("two waypoints that follow each other, or one and start or goal, are the same pose; leave one out")
    return np.cumsum(legs)[:-1] / legs.sum()
