"""Equations of motion and constraints of a tree on any base, with motors, springs, loops, contacts and wheels.

The coordinates x are six of a moving base, n of the joints, and one for the motor of each elastic joint. Rows, for any scalar:

    dynamics     RNEA(x, x', x''; loads) + friction - known efforts - S tau - J^T lambda = 0      one for each coordinate
    constraints  phi(x) = 0       cut joints of loops, holding contacts with the world            c_i = 2 for rigid robots
                 A(x) x' = 0      wheels that roll without slipping                               c_i = 1
    optimality   W tau = S^T nu,  J nu = 0,  M_U nu + J_U^T kappa = 0                             least tau^T W tau

RNEA is the recursion of khalil-rne (18)-(31) with a moving base, (83)-(88); motors add hua-mixed-joints (23), (27), (29).
J is the Jacobian of both kinds of constraints, khalil-rne section 4 with multipliers instead of the projection (57). Time
derivatives of a row are computed with Taylor series (algebra/taylor.py); structural analysis (elimination.py) determines how
many are needed.

    base         velocity (6,) of its origin and angular velocity, in its own frame; x'': its derivative in that frame
    R, p         pose of the base in the world: R transforms vectors from the base to the world, p is its origin [m]
    lambda       multipliers, one for each constraint row [N, N m]: J^T lambda are the generalized constraint forces
    nu, kappa    adjoint variables of redundant actuation: virtual velocities and virtual forces; M_U, J_U: unknown coordinates

Forces of a fluid at rest on the links of a swimming robot, for any scalar: added mass, drag and buoyancy.

With v and w the velocity of a body's centre and its angular velocity along its axes, A and B its added mass and inertia
(diagonal), Lamb, "Hydrodynamics", ch. 6, and Morison et al., Petroleum Transactions AIME 189 (1950):

    force    = -(A v' + w x A v) - drag(v)          v' : rate of the three numbers of v
    moment   = -(B w' + w x B w + v x A v) - angular_drag(w)
    drag(v)  = linear_drag v + quadratic_drag |v| v, component by component, with |v| = sqrt(v^2 + smoothing^2)

In Khalil, Gallot, Boyer, "Dynamic modeling and simulation of a 3-D serial eel-like robot", IEEE Trans. SMC C 37 (2007), the
modules are slender: A is rho pi r^2 L across and none along, quadratic drag rho C r L. The terms depend on state and
acceleration alone, so that their rates follow from series, as those of all other rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import ZERO, Z, cross, skew
from ..model import mdh
from ..model.tree import JointDynamics, Model
from . import forward_dynamics
from .closed_loops import HELD, WORLD, Cut, closure
from .forward_dynamics import transform
from .joint_dynamics import from_links, joint_dynamics, to_links, with_motors
from .kinematics import ORIGIN, base_poses, link_jacobian
from .sensitivities import in_urdf_frame, moving

# ------------------------------------------------------------------ forces of a fluid


class FluidBody(NamedTuple):
    """Wetted body of one link.

    link         : number of the link; R (3, 3), P (3,): its axes and its centre in the link's frame
    added_mass   : (3,) [kg]; added_inertia (3,) [kg m^2]
    linear_drag  : (3,) [N s/m]; quadratic_drag (3,) [N s^2/m^2]; angular_drag (3,) of the square of w [N m s^2]
    displaced    : mass of the fluid that it displaces [kg]
    smoothing    : speed below which quadratic drag becomes linear [m/s, rad/s]
    """

    link: int
    R: Any
    P: Any
    added_mass: Any
    added_inertia: Any
    linear_drag: Any
    quadratic_drag: Any
    angular_drag: Any
    displaced: float
    smoothing: float


def fluid_wrench(body: FluidBody, v: Any, w: Any, a: Any, wd: Any, fall: Any) -> Any:
    """Return the wrench (6,) BY the fluid ON the link about its frame's origin, along the frame's axes.

    v, a : velocity and true acceleration (3,) of the origin; w, wd: angular velocity and its rate; fall: gravity (3,), all
           along the axes of the link's frame
    """
    turn, arm = np.asarray(body.R, dtype=float).T, body.P
    spin, spin_rate = turn @ w, turn @ wd
    moved = turn @ (v + cross(w, arm))
    rate = turn @ (a + cross(wd, arm) + cross(w, cross(w, arm))) - cross(spin, moved)
    momentum = body.added_mass * moved
    force = -(body.added_mass * rate + cross(spin, momentum)) - body.linear_drag * moved - _square(
        body.quadratic_drag, moved, body.smoothing)
    moment = -(body.added_inertia * spin_rate + cross(spin, body.added_inertia * spin) + cross(moved, momentum)) - _square(
        body.angular_drag, spin, body.smoothing)
    force = turn.T @ force - fall * body.displaced
    return np.concatenate((force, turn.T @ moment + cross(arm, force)))


def _square(coefficients: Any, v: Any, smoothing: float) -> Any:
    """Return coefficient |v| v of each component; components without a coefficient are plain zeros."""
    return np.array([c * x * np.sqrt(x * x + smoothing * smoothing) if c else 0.0
                     for c, x in zip(coefficients, v, strict=True)], dtype=object)


def added_inertias(bodies: Sequence[FluidBody]) -> dict[int, np.ndarray]:
    """Return the added mass and inertia (6, 6) of each wetted link about its frame's origin, by its number."""
    found: dict[int, np.ndarray] = {}
    for body in bodies:
        X = transform(np.asarray(body.R, dtype=float), np.asarray(body.P, dtype=float))
        added = X.T @ np.diag([*body.added_mass, *body.added_inertia]) @ X
        found[body.link] = found.get(body.link, 0.0) + added
    return found


# ------------------------------------------------------------------ equations of motion


BASE = ("base x", "base y", "base z", "base rx", "base ry", "base rz")
DIRECTIONS = ("along", "across", "normal", "roller")


class JointSpring(NamedTuple):
    """Spring and damper at one coordinate: its effort is -stiffness (q - rest) - damping q'.

    coordinate : number of the joint
    stiffness  : [N m/rad, N/m]; rest: position of the relaxed spring [rad, m]; damping: [N m s/rad, N s/m]
    """

    coordinate: int
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0


class Motor(NamedTuple):
    """Motor of one joint: its rotor turns by gear_ratio times phi on its carrier, with phi the position of the motor behind
    its gear where the joint is elastic, else that of the joint.

    coordinate : number of the joint that it drives
    link, axis : link that carries it, and the axis (3,) of its rotor in that link's frame; zero: the rotor counts by its own
                 turns alone
    term       : gear ratio and inertia of the rotor; friction and offset on the motor's side of the spring
    stiffness  : of the spring between gear and joint [N m/rad, N/m]; infinite for a rigid joint
    """

    coordinate: int
    link: int
    axis: Any
    term: JointDynamics
    stiffness: float = math.inf


class Wheel(NamedTuple):
    """Thin disc or sphere that rolls on the plane z = 0 of the world without slipping.

    link, center, axis : number of the link that it is part of; center (3,) [m] and unit axis (3,) in that link's frame
    radius             : [m]
    holds              : of DIRECTIONS, those in which its lowest point has no velocity: along the track of a disc, across it,
                         normal to the ground, along the axis of the roller that touches the ground (mecanum, omni). Along and
                         across of a sphere are the axes x and y of the world
    shape              : "disc" or "sphere"
    roller_angle       : from the axis of the wheel to that of the lowest roller, about the normal [rad]
    """

    name: str
    link: int
    center: Any
    axis: Any
    radius: float
    holds: tuple[str, ...] = ("along", "across")
    shape: str = "disc"
    roller_angle: float = 0.0


class Rates(NamedTuple):
    """Position x (base entries unused), velocity and acceleration of the coordinates, (N,) each, any scalar."""

    x: Any
    v: Any
    a: Any


class EquationsOfMotion:
    """Rows of one robot.

    model    : tree of links; base "fixed" or "floating" (the six base coordinates are then the first)
    gravity  : acceleration of free fall in the world (3,) [m/s^2]
    cuts     : cut joints; the frame with link WORLD makes one a holding contact with the world
    motors   : motors that are mounted on links, or drive through a spring (these have coordinates, after the joints)
    actuated : names of coordinates with an effort tau
    weights  : {actuated name: W} where the actuation is redundant; None: it is not
    carriers : numbers of links that carry bodies, see `carrying`
    fluid    : wetted bodies of links in a fluid at rest
    """

    def __init__(self, model: Model, gravity: Any, cuts: Sequence[Cut] = (), wheels: Sequence[Wheel] = (),
                 motors: Sequence[Motor] = (), springs: Sequence[JointSpring] = (), actuated: Sequence[str] = (),
                 weights: Mapping[str, float] | None = None, carriers: Sequence[int] = (), fluid: Sequence[FluidBody] = ()):
        self.carriers, self.fluid = tuple(carriers), tuple(fluid)
        self.model, self.gravity = model, np.asarray(gravity, dtype=float)
        self.cuts, self.wheels, self.motors, self.springs = tuple(cuts), tuple(wheels), tuple(motors), tuple(springs)
        self.base = 6 if model.base == "floating" else 0
        self.elastic_joints = tuple(model.joint_names[m.coordinate] for m in motors if m.stiffness < math.inf)
        self.coordinates = (*BASE[:self.base], *model.joint_names, *(f"motor of {name}" for name in self.elastic_joints))
        self.constraints = (*(f"{cut.name}[{k}]" for cut in cuts for k in HELD[cut.type]),
                            *(f"{wheel.name}[{way}]" for wheel in wheels for way in wheel.holds))
        self.holonomic = sum(len(HELD[cut.type]) for cut in cuts)  # constraint rows phi(x) = 0; the others are A(x) x' = 0
        self.actuated = tuple(actuated)
        self.weights = None if weights is None else np.array([weights.get(name, 1.0) for name in actuated])
        self.selection = np.eye(len(self.coordinates))[:, [self.coordinates.index(name) for name in actuated]]
        # Motors behind springs by number in `actuated`: joint, motor, stiffness. Least efforts count the torque of the spring.
        self.sprung_actuators = {self.actuated.index(name): (self.base + motor.coordinate, self.coordinates.index(name),
                                                             motor.stiffness)
                                 for motor in motors if motor.stiffness < math.inf and weights is not None
                                 and (name := f"motor of {model.joint_names[motor.coordinate]}") in self.actuated}
        self.adjoint_selection = self.selection.copy()  # rows of the dynamics in which the weighted efforts are
        for k, (joint, rotor, _) in self.sprung_actuators.items():
            self.adjoint_selection[[joint, rotor], k] = 1.0, 0.0
        n, m, e = len(self.coordinates), len(self.constraints), len(self.actuated)
        ends = np.cumsum([0, n, m, e, *((n, m) if weights is not None else ())]).tolist()
        self.parts = {name: slice(a, b) for name, a, b in zip(("x", "lambda", "tau", "nu", "kappa"), ends, ends[1:])}
        self.size: int = ends[-1]  # number of unknowns and given coordinates together

    @property
    def joints(self) -> slice:
        """Slice of the n joints among the coordinates."""
        return slice(self.base, self.base + self.model.n)

    def carrying(self, block: Any) -> EquationsOfMotion:
        """Return the equations with a rigid body on each of `carriers`; block: ten numbers for each, see `with_bodies`."""
        if not self.carriers:
            return self
        twin, links = copy(self), list(self.model.links)
        for number, (m, ms, J) in with_bodies(self.model, self.carriers, block).items():
            links[number] = replace(links[number], m=m, ms=ms, J=J)
        twin.model = replace(self.model, links=tuple(links))
        return twin

    # ------------------------------------------------------------------ dynamics

    def dynamics(self, R: Any, rates: Rates, wrenches: Mapping[int, Any] | None = None, world_wrenches: Sequence[Any] = (),
                 only_gravity: bool = False, constraint_wrenches: Sequence[Any] = ()) -> list[Any]:
        """Return RNEA + friction - springs of each coordinate, [N, N m]: the efforts of a motion without constraints.

        wrenches       : {link number: (6,)} BY the environment ON the link about its frame's origin, in the link's frame [N,
                         N m]
        world_wrenches : [(link number, point (3,) in the link's frame, (6,) about it along the world's axes)]
        only_gravity   : at rest, without friction, springs and loads
        constraint_wrenches : [(link number, (6,))], as `wrenches`
        """
        model, b = self.model, self.base
        forces, moments, turning = self._link_forces(R, rates, wrenches, world_wrenches, only_gravity, constraint_wrenches)
        qd, qdd = (to_links(model, y[self.joints]) for y in rates[1:])
        efforts: list[Any] = [0.0] * len(forces)
        for k, link in enumerate(model.links[1:], start=1):
            friction = 0.0 if only_gravity else joint_dynamics(link.term, qd[k], qdd[k], 0.0)[0]
            efforts[k] = (forces[k] if link.sigma == mdh.PRISMATIC else moments[k])[2] + friction  # (31)
        own = from_links(model, efforts)
        if not only_gravity:
            rest = [0.0] * model.n
            own, _ = with_motors(model.coupled_motors, own, rest, rates.v[self.joints], rates.a[self.joints], rest)
        rows = [*(np.concatenate((forces[0], moments[0])) if b else ()), *own]
        for motor, _, torque, spring in turning:
            j = b + motor.coordinate
            rows[j] = rows[j] + (torque if motor.stiffness == math.inf else -spring)
            rows += [] if motor.stiffness == math.inf else [torque + spring]
        rows += [0.0] * (len(self.coordinates) - len(rows))
        for spring in () if only_gravity else self.springs:
            j = b + spring.coordinate
            rows[j] = rows[j] + (rates.x[j] - spring.rest) * spring.stiffness + rates.v[j] * spring.damping
        return rows

    def transmitted(self, R: Any, p: Any, rates: Rates, multipliers: Any, anchors: Sequence[Any] = (),
                    wrenches: Mapping[int, Any] | None = None, world_wrenches: Sequence[Any] = ()) -> list[Any]:
        """Return the wrench of every joint that moves a link, (joints, 6), as algorithms/sensitivities.py defines it.

        What cut joints, contacts and wheels exert by their multipliers acts on the links as loads do. Constraints must hold.
        """
        pushed = self._constraint_wrenches(R, p, rates.x, multipliers, anchors)
        forces, moments, _ = self._link_forces(R, rates, wrenches, world_wrenches, constraint_wrenches=pushed)
        return [in_urdf_frame(self.model, k, np.concatenate((forces[k], moments[k]))) for k in moving(self.model)]

    def _constraint_wrenches(self, R, p, x, multipliers, anchors):
        """[(link number, (6,))] that cut joints, contacts and wheels exert, about the frame's origin and seen in it."""
        q, held, pushed = x[self.joints], self.holonomic, []
        if self.cuts:
            phi = closure(self.model, self._anchored(anchors))
            pushed = [(k, six) for k, six in phi.reactions(multipliers[:held], q, self._world(R, p)) if k != WORLD]
        rest = list(multipliers[held:])
        poses = base_poses(self.model, q) if self.wheels else []
        for wheel in self.wheels:
            turn = poses[wheel.link].R
            point, directions = self.touch(wheel, R @ turn if self.base else turn)
            force = sum(directions[DIRECTIONS.index(way)] * rest.pop(0) for way in wheel.holds)
            pushed.append((wheel.link, np.concatenate((force, cross(point, force)))))
        return pushed

    def _link_forces(self, R, rates, wrenches=None, world_wrenches=(), only_gravity=False, constraint_wrenches=()):
        """Force and moment (3,) that each link's antecedent exerts on it, in its frame, (22)-(28), and what `_rotors`
        returns.
        """
        model = self.model
        R = R if self.base else np.eye(3)
        steps, w, wd, acceleration = self._outward(R, rates)
        forces, moments = [ZERO] * len(w), [ZERO] * len(w)
        outside = [*(wrenches or {}).items(), *self._seen(R, steps, world_wrenches), *constraint_wrenches,
                   *(self._fluid_wrenches(R, rates, steps, w, wd, acceleration) if self.fluid else ())]
        turning = [] if only_gravity else self._rotors(rates, w, wd)
        outside += [(motor.link, np.concatenate((ZERO, -momentum_rate))) for motor, momentum_rate, _, _ in turning]
        for k, wrench in outside:
            forces[k], moments[k] = forces[k] - wrench[:3], moments[k] - wrench[3:]
        for k in range(len(w) - 1, -1, -1):
            link = model.links[k]
            f = forces[k] + acceleration[k] * link.m + cross(wd[k], link.ms) + cross(w[k], cross(w[k], link.ms))  # (22)
            moment = moments[k] + link.J @ wd[k] + cross(w[k], link.J @ w[k]) + cross(link.ms, acceleration[k])  # (23)
            forces[k], moments[k] = f, moment
            if k:
                (S, P), i = steps[k], link.parent
                turned = S @ f
                forces[i], moments[i] = forces[i] + turned, moments[i] + S @ moment + cross(P, turned)  # (25)-(28)
        return forces, moments, turning

    def _outward(self, R, rates):
        """Poses (R, P) of the links in their antecedents, and w, wd, a (gravity taken off) in the links' frames, (18)-(21)."""
        x, v, a = rates
        fall = R.T @ self.gravity
        if self.base:
            w, wd = [v[3:6]], [a[3:6]]
            acceleration = [a[:3] + cross(v[3:6], v[:3]) - fall]
        else:
            w, wd, acceleration = [ZERO], [ZERO], [-fall]
        steps: list[Any] = [(np.eye(3), ZERO)]
        q, qd, qdd = (to_links(self.model, y[self.joints], offset=y is x) for y in rates)
        for k, link in enumerate(self.model.links[1:], start=1):
            i, (S, P), z1, z2 = link.parent, mdh.pose(link, q[k]), Z * qd[k], Z * qdd[k]
            moved = S.T @ (acceleration[i] + cross(wd[i], P) + cross(w[i], cross(w[i], P)))
            turn, turn_rate = S.T @ w[i], S.T @ wd[i]
            if link.sigma == mdh.REVOLUTE:
                turn, turn_rate = turn + z1, turn_rate + cross(turn, z1) + z2
            if link.sigma == mdh.PRISMATIC:
                moved = moved + 2.0 * cross(turn, z1) + z2
            for values, value in zip((steps, w, wd, acceleration), ((S, P), turn, turn_rate, moved), strict=True):
                values.append(value)
        return steps, w, wd, acceleration

    def _fluid_wrenches(self, R, rates, steps, w, wd, acceleration):
        """[(link number, (6,))] BY the fluid, about the frame's origin and seen in it."""
        speeds, falls = [rates.v[:3] if self.base else ZERO], [R.T @ self.gravity]
        qd = to_links(self.model, rates.v[self.joints])
        for k, link in enumerate(self.model.links[1:], start=1):
            i, (S, P) = link.parent, steps[k]
            moved = S.T @ (speeds[i] + cross(w[i], P))
            speeds.append(moved + Z * qd[k] if link.sigma == mdh.PRISMATIC else moved)
            falls.append(S.T @ falls[i])
        return [(body.link, fluid_wrench(body, speeds[body.link], w[body.link], acceleration[body.link] + falls[body.link],
                                         wd[body.link], falls[body.link])) for body in self.fluid]

    def _seen(self, R, steps, world_wrenches):
        """[(link number, (6,) about its origin in its frame)] of wrenches that keep their direction in the world."""
        if not world_wrenches:
            return []
        turned = [R]
        for link, (S, _) in zip(self.model.links[1:], steps[1:], strict=True):
            turned.append(turned[link.parent] @ S)
        found = []
        for k, P, wrench in world_wrenches:
            f = turned[k].T @ wrench[:3]
            found.append((k, np.concatenate((f, turned[k].T @ wrench[3:] + cross(P, f)))))
        return found

    def _rotors(self, rates, w, wd):
        """[(Motor, rate of its rotor's momentum in its carrier, torque of the motor, torque of its spring)], hua (23), (27),
        (29).
        """
        found, next_motor = [], self.joints.stop
        for motor in self.motors:
            joint = index = self.base + motor.coordinate
            if motor.stiffness < math.inf:
                index, next_motor = next_motor, next_motor + 1
            geared = motor.term.gear_ratio * motor.term.rotor_inertia
            momentum_rate = (motor.axis * rates.a[index] + cross(w[motor.link], motor.axis) * rates.v[index]) * geared
            own = joint_dynamics(motor.term, rates.v[index], rates.a[index], 0.0)[0]
            torque = (motor.axis @ wd[motor.link]) * geared + own
            spring = (rates.x[index] - rates.x[joint]) * motor.stiffness if index != joint else 0.0
            found.append((motor, momentum_rate, torque, spring))
        return found

    def motor_shares(self, rates: Rates) -> list[Any]:
        """Return what rotor and friction of its motor take of the torque of each joint (n,); zero at elastic joints."""
        model = self.model
        qd, qdd = (to_links(model, y[self.joints]) for y in rates[1:])
        friction = [joint_dynamics(link.term, qd[k], qdd[k], 0.0)[0] for k, link in enumerate(model.links)]
        rest = [0.0] * model.n
        own, _ = with_motors(model.coupled_motors, from_links(model, friction), rest, rates.v[self.joints],
                             rates.a[self.joints], rest)
        own = list(own)
        if self.motors:
            _, w, wd, _ = self._outward(np.eye(3), rates)
            for motor, _, torque, _ in self._rotors(rates, w, wd):
                k = motor.coordinate
                own[k] = own[k] + torque if motor.stiffness == math.inf else 0.0
        return own

    def mass_matrix(self, x: Any) -> np.ndarray:
        """Return M (N, N): d dynamics / d x'', khalil-rne (84) with rotor inertias and hua-mixed-joints (34)."""
        b, q, N = self.base, x[self.joints], len(self.coordinates)
        A11, A12, A22 = forward_dynamics.partitions(self.model, q, added=added_inertias(self.fluid))
        M = np.zeros((N, N), dtype=object)
        M[b:b + self.model.n, b:b + self.model.n] = A22
        if b:
            M[:6, :6], M[:6, self.joints], M[self.joints, :6] = A11, A12, A12.T
        poses, next_motor = base_poses(self.model, q) if self.motors else [], self.joints.stop
        for motor in self.motors:
            index = b + motor.coordinate
            if motor.stiffness < math.inf:
                index, next_motor = next_motor, next_motor + 1
            M[index, index] = M[index, index] + motor.term.armature
            axis = poses[motor.link].R @ motor.axis
            turns = axis @ link_jacobian(self.model, poses, motor.link, ZERO)[3:]
            row = [*((0.0, 0.0, 0.0, *axis) if b else ()), *turns]
            for k, value in enumerate(row):
                coupling = value * (motor.term.gear_ratio * motor.term.rotor_inertia)
                M[index, k] = M[index, k] + coupling
                M[k, index] = M[k, index] + coupling  # twice where the motor's own joint moves its carrier
        return M

    # ------------------------------------------------------------------ constraints

    def constraint_rows(self, R: Any, p: Any, x: Any, v: Any, anchors: Sequence[Any] = ()) -> list[Any]:
        """Return phi of cut joints and contacts [m, rad], then A v of wheels [m/s].

        anchors: poses (R, p) in the world of the contacts' frames, in the order of the cuts that have the link WORLD
        """
        q, world = x[self.joints], self._world(R, p)
        rows = list(closure(self.model, self._anchored(anchors))(q, world)) if self.cuts else []
        if self.wheels:
            rows += list(self._rolling(R, x) @ v)
        return rows

    def constraint_jacobian(self, R: Any, p: Any, x: Any, anchors: Sequence[Any] = ()) -> np.ndarray:
        """Return J (m, N): d phi / d x of cut joints and contacts, then A of wheels. Structural zeros are floats."""
        q, N, b = x[self.joints], len(self.coordinates), self.base
        J = np.zeros((self.holonomic, N), dtype=object)
        row = 0
        if self.cuts:
            phi = closure(self.model, self._anchored(anchors))
            axes = [(sigma, -unit, ZERO) for sigma in (mdh.PRISMATIC, mdh.REVOLUTE) for unit in np.eye(3)] if b else []
            blocks = phi.jacobian(q, self._world(R, p), axes)[1]
            for cut, variables, block in zip(self.cuts, phi.variables, blocks, strict=True):
                held = slice(row, row := row + len(block))
                J[held, [b + k for k in variables]] = block[:, :len(variables)]
                if WORLD in (cut.first.link, cut.second.link):  # the world moves against the base
                    J[held, :b] = block[:, len(variables):]
        return np.concatenate((J, self._rolling(R, x))) if self.wheels else J

    def _anchored(self, anchors):
        """Return the cuts, with frames in the world where `anchors` puts them."""
        waiting, found = iter(anchors), []
        for cut in self.cuts:
            ends = [_Anchor(WORLD, *next(waiting)) if anchors and frame.link == WORLD else frame for frame in cut[2:]]
            found.append(Cut(cut.name, cut.type, *ends))
        return found

    def _world(self, R, p):
        """Pose of the world in the base's frame: cut joints are written in that frame."""
        return (R.T, -(R.T @ p)) if self.base else ORIGIN

    def _rolling(self, R, x):
        """Return A (wheel rows, N) of A(x) x' = 0: velocity of each wheel's lowest point, in its link's frame."""
        poses = base_poses(self.model, x[self.joints])
        rows = []
        for wheel in self.wheels:
            pose = poses[wheel.link]
            point, directions = self.touch(wheel, (R @ pose.R) if self.base else pose.R)
            P = pose.R @ point  # from the link's origin, in the base's axes
            J = link_jacobian(self.model, poses, wheel.link, point)
            for way in wheel.holds:
                along = pose.R @ directions[DIRECTIONS.index(way)]
                free = (*along, *cross(pose.p + P, along)) if self.base else ()
                rows.append([*free, *(along @ J[:3]), *[0.0] * len(self.elastic_joints)])
        return np.array(rows, dtype=object)

    @staticmethod
    def touch(wheel: Wheel, R: Any) -> tuple[Any, tuple[Any, Any, Any, Any]]:
        """Return lowest point (3,) [m] and DIRECTIONS, (3,) each, in the frame of the wheel's link.

        R: of that frame in the world.
        """
        up, axis = R.T @ Z, np.asarray(wheel.axis, dtype=float)
        if wheel.shape == "sphere":
            return wheel.center - up * wheel.radius, (R[0], R[1], up, R[0])
        tilt = up @ axis
        cosine = np.sqrt(1.0 - tilt * tilt)
        along = cross(axis, up) * (1.0 / cosine)
        across = cross(up, along)
        roller = across * math.cos(wheel.roller_angle) - along * math.sin(wheel.roller_angle)
        return wheel.center - (up - axis * tilt) * (wheel.radius / cosine), (along, across, up, roller)

    # ------------------------------------------------------------------ all rows

    def rows(self, R: Any, p: Any, rates: Rates, multipliers: Any, tau: Any, anchors: Sequence[Any] = (),
             **loads: Any) -> list[Any]:
        """Return the dynamics rows with constraint forces and actuation: dynamics - J^T lambda - S tau.

        Constraint forces act on the links as loads do, which is J^T lambda where the constraints hold, and its derivatives are
        those of J^T lambda along motions that keep them.
        """
        pushed = self._constraint_wrenches(R, p, rates.x, multipliers, anchors) if self.constraints else ()
        rows = self.dynamics(R, rates, constraint_wrenches=pushed, **loads)
        for k, name in enumerate(self.actuated):
            j = self.coordinates.index(name)
            rows[j] = rows[j] - tau[k]
        return rows

    def optimality_rows(self, R: Any, p: Any, x: Any, tau: Any, nu: Any, kappa: Any, free: Any,
                        anchors: Sequence[Any] = ()) -> list[Any]:
        """Return rows of least tau^T W tau: derivatives by tau, by lambda, and by x'' of the coordinates `free`.

        The effort of a motor behind a spring counts as the torque of the spring, which the joint receives.
        """
        assert self.weights is not None
        J = self.constraint_jacobian(R, p, x, anchors)
        efforts = list(tau)
        for k, (joint, rotor, stiffness) in self.sprung_actuators.items():
            efforts[k] = (x[rotor] - x[joint]) * stiffness
        found = [t * weight - column @ nu for t, weight, column in zip(efforts, self.weights, self.adjoint_selection.T,
                                                                       strict=True)]
        pulled = self.mass_matrix(x) @ nu + J.T @ kappa if len(J) else self.mass_matrix(x) @ nu
        return [*found, *(J @ nu), *(pulled[j] for j in free)]


class _Anchor(NamedTuple):
    """Frame of a contact in the world, of any scalar."""

    link: int
    R: Any
    P: Any


def with_bodies(model: Model, carriers: Sequence[int], block: Any) -> dict[int, tuple[Any, Any, Any]]:
    """Return {link number: (m, ms, J)} of links with rigid bodies, any scalar.

    block: ten numbers for each carrier, of its body: m, m com (3,), Jxx Jxy Jxz Jyy Jyz Jzz, in the link's MDH frame, J about
    its origin
    """
    inertias: dict[int, tuple[Any, Any, Any]] = {}
    for k, number in enumerate(carriers):
        link = model.links[number]
        m, ms, J = inertias.get(number, (link.m, link.ms, link.J))
        p = block[10 * k:10 * k + 10]
        extra = np.array([[p[4], p[5], p[6]], [p[5], p[7], p[8]], [p[6], p[8], p[9]]])
        inertias[number] = (m + p[0], ms + p[1:4], J + extra)
    return inertias


def pose_series(R: Any, p: Any, V: Sequence[Any], order: int) -> tuple[list[Any], list[Any]]:
    """Return derivatives 0 ..

    order of a base's pose: R' = R [w], p' = R v. V: derivatives of its velocity (6,), from order 0.
    """
    turns, positions = [R], [p]
    for k in range(order):
        turns.append(sum(math.comb(k, i) * (turns[i] @ skew(V[k - i][3:])) for i in range(k + 1)))
        positions.append(sum(math.comb(k, i) * (turns[i] @ V[k - i][:3]) for i in range(k + 1)))
    return turns, positions
