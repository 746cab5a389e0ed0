"""Closed loops: a tree whose joint variables must keep the two frames of every cut joint together, and its torques.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", sections 2.2 and 4, (2), (55)-(58), with the
transpose that (57) lacks in print.

    q             variables of the spanning tree, q_tr; qa active (motors), qp passive
    R_k, R_k+B    the two frames of cut joint k, one on each of the links that it connects, z along its axis
    phi(q) = 0    what the cut joints hold together: the loop equations
    G, Gd         d q_tr / d qa, (56), and its rate

Nothing is differentiated by hand: phi is written once, for any scalar, and evaluated on truncated Taylor series (jets). The
linear equations are solved by the caller, which finds the redundant ones.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import Jet, derivative, jets
from ..algebra.vectors import Array, cross, skew
from ..model import mdh
from ..model.tree import NO_COORDINATE
from .kinematics import ORIGIN, within

WORLD = -1  # in place of a link's number in the frame of a cut joint: the world, for a contact

# The components of the pose of R_k+B in R_k that a cut joint holds at zero: three translations, then three rotations.
HELD = {
    "fixed": (0, 1, 2, 3, 4, 5),
    "revolute": (0, 1, 2, 3, 4),  # turns about z
    "prismatic": (0, 1, 3, 4, 5),  # slides along z
    "cylindrical": (0, 1, 3, 4),  # both
    "planar": (2, 3, 4),  # moves in the plane x y and turns about z
    "spherical": (0, 1, 2),
    "point_on_axis": (0, 1),  # the second origin stays on the first z: a pin, where the loop itself is planar
}


class Cut(NamedTuple):
    """A cut joint: name, type (a key of HELD), and its frames, each with .link (number), .R and .P."""

    name: str
    type: str
    first: Any
    second: Any


def gap(joint_type, one, two):
    """Return the constraint violation between the poses of R_k and R_k+B: lengths [m], then rotations [rad], in R_k.

    A rotation by the angle e about an axis u enters as 2 sin(e / 2) u: e u where it is small, and never zero again before
    a full turn, so a loop cannot close with its frames upside down.
    """
    R, p = one[0].T @ two[0], one[0].T @ (two[1] - one[1])
    held = HELD[joint_type]
    rotation = _turn(R) if 5 in held else _tilt(R) if 3 in held else []
    six = [*p, *rotation]
    return [six[k] for k in held]


def _turn(R):
    """2 sin(e / 2) u of the whole rotation; 1 + trace = 4 cos^2(e / 2)."""
    c = np.sqrt(1.0 + R[0, 0] + R[1, 1] + R[2, 2])
    return [(R[2, 1] - R[1, 2]) / c, (R[0, 2] - R[2, 0]) / c, (R[1, 0] - R[0, 1]) / c]


def _tilt(R):
    """Return the vector of the shortest rotation between the z axes; its cosine is R[2, 2], its axis is in the x y plane."""
    c = np.sqrt(0.5 + 0.5 * R[2, 2])
    return [-R[1, 2] / c, R[0, 2] / c]


class Closure:
    """Loop equations phi, cut joint by cut joint; a call returns the gaps of all cut joints, one after the other.

    parts: for each cut joint the variables that its gaps depend on, and the function that returns them.
    """

    def __init__(self, parts):
        self.parts = tuple(parts)

    def __call__(self, *at):
        return [value for _, gaps in self.parts for value in gaps(*at)]


class TreeClosure(Closure):
    """Closure phi(q) of a tree; phi(q, pose) with contacts, the pose of the world in frame 0.

    The poses of both ends of a cut joint are computed from the lowest common ancestor of its two branches: joints that
    move both ends alike do not appear, so the Jacobian has its structural zeros also where loops stand on one another.
    Branches that begin alike share their poses.
    """

    def __init__(self, model, cuts):
        self.model, self.cuts = model, tuple(cuts)
        self._branches = [_branches(model, cut) for cut in self.cuts]
        self.variables = [sorted({model.links[k].coordinate for k in one + two} - {NO_COORDINATE})
                          for one, two in self._branches]
        super().__init__((variables, partial(self._gaps, number)) for number, variables in enumerate(self.variables))

    def __call__(self, q, world=ORIGIN):
        ends = self._ends(q, world)
        return [value for cut, (one, two) in zip(self.cuts, ends, strict=True) for value in gap(cut.type, one[-1], two[-1])]

    def _gaps(self, number, q, world=ORIGIN):
        (one, two), = self._ends(q, world, [number])
        return gap(self.cuts[number].type, one[-1], two[-1])

    def _ends(self, q, world, numbers=None):
        """Return, for each end of each cut joint, the poses along the branch and the pose of the end."""
        made: dict[tuple[int, ...], Any] = {}
        found = []
        for number in range(len(self.cuts)) if numbers is None else numbers:
            cut, ends = self.cuts[number], []
            for branch, frame in zip(self._branches[number], (cut.first, cut.second), strict=True):
                poses, pose = [], world if frame.link == WORLD else ORIGIN
                for i, k in enumerate(branch):
                    if branch[:i + 1] not in made:
                        link = self.model.links[k]
                        variable = link.offset if link.coordinate == NO_COORDINATE else (
                            q[link.coordinate] * link.multiplier + link.offset)
                        made[branch[:i + 1]] = within(pose, mdh.pose(link, variable))
                    pose = made[branch[:i + 1]]
                    poses.append(pose)
                ends.append([*poses, within(pose, (frame.R, frame.P))])
            found.append(ends)
        return found

    def reactions(self, multipliers, q, world=ORIGIN):
        """Return what `exerted` gives, of all cut joints at positions q; multipliers that are plain zeros exert nothing."""
        found, rest = [], list(multipliers)
        for cut, (one, two) in zip(self.cuts, self._ends(q, world), strict=True):
            own, rest = rest[:len(HELD[cut.type])], rest[len(HELD[cut.type]):]
            if any(not isinstance(value, float) or value != 0.0 for value in own):
                found += exerted(cut, one[-1], two[-1], own)
        return found

    def jacobian(self, q, world=ORIGIN, moved=()):
        """Return phi (m,), and for each cut joint its rows by `variables`, then by steps of the world.

        moved: steps of the world, as axes (sigma, z (3,), o (3,)): along z, or about z through the point o

        A joint with axis z through o moves the second end, at p2, by z x (p2 - o), and against the first end by as much; the
        components along an axis e of the first end change by z . ((p2 - o) x e), rotations by `_turn` or `_tilt`.
        """
        values, blocks = [], []
        for cut, branches, variables, ends in zip(self.cuts, self._branches, self.variables, self._ends(q, world),
                                                  strict=True):
            one, two = (poses[-1] for poses in ends)
            values.append(gap(cut.type, one, two))
            columns = {k: np.zeros(len(values[-1])) for k in variables}
            slopes = _slopes(cut.type, one, two)
            for sign, branch, poses in ((-1.0, branches[0], ends[0]), (1.0, branches[1], ends[1])):
                for k, (R, o) in zip(branch, poses, strict=False):
                    link = self.model.links[k]
                    if link.coordinate != NO_COORDINATE:
                        step = slopes(link.sigma, R[:, 2], o) * (sign * link.multiplier)
                        columns[link.coordinate] = columns[link.coordinate] + step
            turned = 1.0 if cut.second.link == WORLD else -1.0
            moves = [*columns.values(), *(slopes(*axis) * turned for axis in moved)]
            blocks.append(np.transpose(moves) if moves else np.zeros((len(values[-1]), 0)))
        return np.concatenate(values), blocks


def closure(model, cuts):
    """Return the TreeClosure of a tree."""
    return TreeClosure(model, cuts)


def _slopes(joint_type, one, two):
    """Return a function of a joint's axis (sigma, z, o): the change of the gaps while it moves the second end."""
    R = one[0].T @ two[0]
    held = HELD[joint_type]
    rotation = _turn if 5 in held else _tilt if 3 in held else None
    moments = []
    if rotation is not None:  # rows of d rotation / d (turn of the second end), along the axes that the poses are seen in
        changes = [rotation(_lifted(R, skew(unit) @ R)) for unit in np.eye(3)]
        moments = [one[0] @ row for row in np.transpose([[x.c[1] if isinstance(x, Jet) else 0.0 for x in change]
                                                         for change in changes])]

    def slopes(sigma, z, o):
        lever, found = two[1] - o, []
        for k in held:
            if k < 3:
                e = one[0][:, k]
                found.append(e @ z if sigma == mdh.PRISMATIC else cross(lever, e) @ z)
            else:
                found.append(0.0 if sigma == mdh.PRISMATIC else moments[k - 3] @ z)
        return np.array(found)

    return slopes


def _lifted(values, rates):
    """Array of series of order 1."""
    found = np.empty(np.shape(values), dtype=object)
    for index in np.ndindex(found.shape):
        found[index] = Jet([values[index], rates[index]])
    return found


def _branches(model, cut):
    """Links from below the lowest common ancestor to each of the two ends."""
    one, two = _branch(model, cut.first.link), _branch(model, cut.second.link)
    while one and two and one[0] == two[0]:
        one, two = one[1:], two[1:]
    return tuple(one), tuple(two)


def _branch(model, k):
    """Return the numbers of the links from below the root to link k."""
    branch: list[int] = []
    while k > 0:
        branch.insert(0, k)
        k = model.links[k].parent
    return branch


# ---------------------------------------------------------------------- its rates


def jacobian(phi, q):
    """Return phi(q) and d phi / d q.

    phi: any function, or a Closure, whose parts are differentiated along their own variables alone, by series in s along a
    unit step of each coordinate; of a TreeClosure by the axes of its joints.
    """
    if isinstance(phi, TreeClosure):
        gaps, blocks = phi.jacobian(q)
        return gaps, np.concatenate([spread(block, columns, len(q)) for block, columns in
                                     zip(blocks, phi.variables, strict=True)])
    parts = phi.parts if isinstance(phi, Closure) else [(range(len(q)), phi)]
    values, rows = [], []
    for variables, part in parts:
        steps = [{i: Jet([q[i], float(i == k)]) for i in variables} for k in variables]
        outcomes = [part(step if isinstance(phi, Closure) else np.array([*step.values()])) for step in steps]
        values.append(derivative(outcomes[0], 0))
        rows.append(spread(np.transpose([derivative(outcome, 1) for outcome in outcomes]), variables, len(q)))
    return np.concatenate(values), np.concatenate(rows)


def spread(block, columns, count):
    """Return the columns of a block as those of a matrix with `count` columns, zero elsewhere."""
    found = np.zeros((len(block), count), dtype=object)
    found[:, list(columns)] = block
    return found


def jacobian_and_rate(phi, q, qd):
    """d phi / d q and its rate along qd: the same on series in time."""
    _, J = jacobian(phi, jets(q, qd))
    return derivative(J, 0), derivative(J, 1)


def closure_rates(phi, q, qd, qdd, qddd):
    """First, second and third time derivative of phi along a motion that need not keep it at zero."""
    outcome = phi(jets(q, qd, qdd, qddd))
    return [derivative(outcome, order) for order in (1, 2, 3)]


def tree_motion(rates, solve, active_part):
    """(qd, qdd, qddd) of the tree from those of the active joints, on closed loops.

    active_part : the three, with zeros for the passive joints
    rates       : closure_rates at this pose
    solve       : r -> the change of the passive variables whose closure rate is -r
    The rate of order k is J q^(k) plus what lower orders give; so at passive q^(k) = 0 it is what they have to undo.
    """
    motion = [np.zeros_like(part) for part in active_part]
    for k, given in enumerate(active_part):
        motion[k] = given
        motion[k] = given + solve(rates(*motion)[k])
    return motion


def active_map(J, Jd, solve, selection):
    """G (56) and its rate; selection: the unit columns of the active joints, (n, N).

    J G = 0 with its active rows kept at unity; differentiated, J Gd = -Jd G with active rows at zero.
    """
    G = selection + solve(J @ selection)
    return G, solve(Jd @ G)


# ---------------------------------------------------------------------- torques


def active_torque(G: Array, Gd: Array, tau: Array, tau_rate: Array) -> tuple[Array, Array]:
    """Torques of the active joints from those of the tree, and their rates.

    Gamma_c = G^T Gamma_tr = Gamma_a + (d qp / d qa)^T Gamma_p; the second is the product rule.
    """
    return _felt(G, tau), _felt(Gd, tau) + _felt(G, tau_rate)  # (55), (57); its rate


def _felt(G: Array, tau: Array) -> Array:
    """G^T tau, of one sample or of many."""
    return tau @ G if tau.ndim == 1 else (tau[..., None, :] @ G)[..., 0, :]


# ---------------------------------------------------------------------- what cut joints transmit


def exerted(cut, one, two, multipliers):
    """Return what a cut joint exerts on its two links: [(link number, (6,)), ...], force and moment about the origin of the
    link's frame, seen in it; any scalar.

    one, two    : poses of its ends, seen from anywhere
    multipliers : one for each loop equation. Their work along changes of the gaps is that of a force at the second frame's
                  origin, on the second link, and of its opposite on the first, and of two moments alike
    """
    six: list[Any] = [0.0] * 6
    for component, value in zip(HELD[cut.type], multipliers, strict=True):
        six[component] = value
    force, moment = np.array(six[:3]), np.array(six[3:])
    R, p = one[0].T @ two[0], one[0].T @ (two[1] - one[1])
    found = []
    for frame, f, n in ((cut.first, -force, -moment - cross(p, force)), (cut.second, R.T @ force, R.T @ moment)):
        f = frame.R @ f
        found.append((frame.link, np.concatenate((f, frame.R @ n + cross(frame.P, f)))))
    return found
