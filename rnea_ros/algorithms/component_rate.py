"""tau and tau_rate again, cheaper: the components of every vector in its own frame are differentiated, not the vectors.

torque_rate.py, the papers' recursion, takes rates in the inertial frame and pays a cross product for each vector that moves
on. Here x' is the rate of the components of x in frame j, for which a vector fixed in a link has no rate at all:

    w al al'       angular velocity, its rate, and the rate of that                  al = w'
    U U'           U = [al] + [w][w], so that U p is the acceleration of a point p beyond the origin's, and its rate
    a a'           acceleration of the origin, gravity taken off, and its rate
    f n f' n'      transmitted force and moment about the origin, and their rates: tau_rate is their z component, as it is

A frame that turns by theta about z has (R^T v)' = R^T v' - qd z x R^T v: the only correction there is. Rotations are done in
steps about z and x, and an arm crosses a force in the frame between them, where it has two components.
Compiled, tau and tau_rate together take at most 0.24 of the time of Pinocchio's C++ rnea (tau alone), and 0.07 of its exact
rate, for up to 32 joints (benchmark/results.md).
E = tr(J)/2 1 - J is the second moment of mass, and the moment of inertia forces is the antisymmetric part of U E.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..algebra.vectors import ZERO, cross, skew
from ..model import mdh
from ..model.tree import JointDynamics
from .joint_dynamics import from_links, joint_torque, to_links, with_motors


def torque_and_rate(model, q, qd, qdd, qddd, gravity=ZERO, inertias=None, wrenches=None, wrench_rates=None, offsets=True):
    """(tau, tau_rate) of the n coordinates; arguments and signs as in torque_rate.py, base at rest; any scalar."""
    motion_of_joints = qd, qdd, qddd
    q, qd, qdd, qddd = to_links(model, q, offset=True), *(to_links(model, x) for x in (qd, qdd, qddd))
    turns = [None] + [_Step(link, q[k]) for k, link in enumerate(model.links[1:], start=1)]
    motion = [(ZERO, ZERO, ZERO, -gravity, ZERO, None, None)]
    for k, link in enumerate(model.links[1:], start=1):
        motion.append(_forward(link, turns[k], motion[link.parent], qd[k], qdd[k], qddd[k]))
    loads = [[ZERO] * 4 for _ in model.links]  # f, n, f', n'
    tau, tau_rate = [0.0] * len(loads), [0.0] * len(loads)
    for k in range(len(model.links) - 1, 0, -1):
        link = model.links[k]
        own = _inertia_forces(motion[k], *(inertias or {}).get(k, (link.m, link.ms, link.J)))
        load = [a + b for a, b in zip(loads[k], own, strict=True)]
        for block, given in ((0, wrenches), (2, wrench_rates)):
            if given and k in given:
                load[block], load[block + 1] = load[block] - given[k][:3], load[block + 1] - given[k][3:]
        passed = _backward(link, turns[k], load, qd[k])
        loads[link.parent] = [a + b for a, b in zip(loads[link.parent], passed, strict=True)]
        along = 0 if link.sigma == mdh.PRISMATIC else 1
        tau[k], tau_rate[k] = joint_torque(link.term, load[along][2], load[along + 2][2], qd[k], qdd[k], qddd[k], offsets)
    return with_motors(model.coupled_motors, from_links(model, tau), from_links(model, tau_rate), *motion_of_joints, offsets)


class _Step:
    """The way between frames i and j: about z by gamma, about x by alpha, about z by theta."""

    def __init__(self, link, q):
        c, s = mdh.cos_sin(link.theta, q if link.sigma == mdh.REVOLUTE else None)
        r = link.r + q if link.sigma == mdh.PRISMATIC else link.r
        ca, sa = mdh.cos_sin(link.alpha)
        self.angles: tuple[tuple, tuple, tuple] = (mdh.cos_sin(link.gamma), (ca, sa), (c, s))
        self.P = link.D + link.C[:, 2] * r  # in frame i
        self.arm = np.array([link.d, sa * link.b, ca * link.b + r])  # in the frame before theta

    def into(self, v):
        """R^T v: from frame i to frame j."""
        (cg, sg), (ca, sa), (c, s) = self.angles
        return _about_z(c, s, _about_x(ca, sa, _about_z(cg, sg, v)))

    def back(self, v):
        """Rotate a vector from the frame before theta to frame i."""
        (cg, sg), (ca, sa), _theta = self.angles
        return _about_z(cg, -sg, _about_x(ca, -sa, v))

    def unturned(self, v):
        """Rotate a vector from frame j to the frame before theta."""
        c, s = self.angles[2]
        return _about_z(c, -s, v)


def _about_z(c, s, v):
    return np.array([v[0] * c + v[1] * s, v[1] * c - v[0] * s, v[2]])


def _about_x(c, s, v):
    return np.array([v[0], v[1] * c + v[2] * s, v[2] * c - v[1] * s])


def _cross_z(v, x):
    """v x (x z)."""
    return np.array([v[1] * x, -(v[0] * x), 0.0])


def _along_z(v, x):
    return np.array([v[0], v[1], v[2] + x])


def _forward(link, step, above, qd, qdd, qddd):
    """(w, al, al', a, a', U, U') of a link from those of its antecedent, and the differences of `_accelerations`."""
    wi, ali, dali, ai, dai, Ui, dUi, *_ = above
    w, al, dal = step.into(wi), step.into(ali), step.into(dali)
    if Ui is not None:
        ai, dai = ai + Ui @ step.P, dai + dUi @ step.P
    a, da = step.into(ai), step.into(dai)
    if link.sigma == mdh.REVOLUTE:
        turned = al + _cross_z(w, qd)
        dal = _along_z(dal + _cross_z(al + turned, qd) + _cross_z(w, qdd), qddd)
        w, al = _along_z(w, qd), _along_z(turned, qdd)
        da = da + _cross_z(a, qd)
    U, spread = _accelerations(al, _products(w))
    dU, spread_rate = _accelerations(dal, _product_rates(al, w))
    if link.sigma == mdh.PRISMATIC:
        da = _along_z(da + U[:, 2] * qd + (_cross_z(al, qd) + _cross_z(w, qdd)) * 2.0, qddd)
        a = _along_z(a + _cross_z(w, qd) * 2.0, qdd)
    return w, al, dal, a, da, U, dU, spread, spread_rate


def _products(w):
    """(xx, yy, zz, xy, xz, yz) of w w^T."""
    return w[0] * w[0], w[1] * w[1], w[2] * w[2], w[0] * w[1], w[0] * w[2], w[1] * w[2]


def _product_rates(al, w):
    """Return the six numbers of (w w^T)' = al w^T + w al^T."""
    twice = w + w
    return (al[0] * twice[0], al[1] * twice[1], al[2] * twice[2],
            al[0] * w[1] + al[1] * w[0], al[0] * w[2] + al[2] * w[0], al[1] * w[2] + al[2] * w[1])


def _accelerations(al, products):
    """[al] + [w][w], which is [al] + w w^T - (w . w) 1, and the differences on its diagonal: z - y, x - z, y - x."""
    xx, yy, zz, xy, xz, yz = products
    U = skew(al) + np.array([[-(yy + zz), xy, xz], [xy, -(xx + zz), yz], [xz, yz, -(xx + yy)]])
    return U, (zz - yy, xx - zz, yy - xx)


def _inertia_forces(motion, m, ms, J):
    """Force and moment about the origin that move a link, and the rates of their components."""
    _w, _al, _dal, a, da, U, dU, spread, spread_rate = motion
    E = _second_moment(J)
    return (a * m + U @ ms, _moment(U, spread, E) + cross(ms, a),
            da * m + dU @ ms, _moment(dU, spread_rate, E) + cross(ms, da))


def _second_moment(J):
    """E = tr(J)/2 1 - J, in the order of sums that leaves exact zeros where a diagonal entry of J is the sum of the others."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = J
    return np.array([[(yy + zz - xx) * 0.5, -xy, -xz], [-xy, (xx + zz - yy) * 0.5, -yz], [-xz, -yz, (xx + yy - zz) * 0.5]])


def _moment(U, spread, E):
    """Return n with [n] = U E - (U E)^T; since E is symmetric, only differences of the diagonal of U enter its corners."""
    return np.array([U[2, 1] * E[1, 1] - U[1, 2] * E[2, 2] + spread[0] * E[1, 2] + U[2, 0] * E[0, 1] - U[1, 0] * E[0, 2],
                     U[0, 2] * E[2, 2] - U[2, 0] * E[0, 0] + spread[1] * E[0, 2] + U[0, 1] * E[1, 2] - U[2, 1] * E[0, 1],
                     U[1, 0] * E[0, 0] - U[0, 1] * E[1, 1] + spread[2] * E[0, 1] + U[1, 2] * E[0, 2] - U[0, 2] * E[1, 2]])


def _backward(link, step, load, qd):
    """Return the load that a link transmits to its antecedent: (f, n, f', n') in frame i."""
    f, n, df, dn = load
    if link.sigma == mdh.REVOLUTE:
        df, dn = df - _cross_z(f, qd), dn - _cross_z(n, qd)
    f, n, df, dn = (step.unturned(v) for v in (f, n, df, dn))
    n, dn = n + cross(step.arm, f), dn + cross(step.arm, df)
    if link.sigma == mdh.PRISMATIC:
        dn = dn - _cross_z(f, qd)  # the arm grows by qd z
    return tuple(step.back(v) for v in (f, n, df, dn))


def link_shares(model, q, qd, qdd, qddd, gravity, inertias=None):
    """(tau, tau_rate): a row (n,) each for every link 1..N in its order, see `bodies`; any scalar."""
    found = []
    for k in bodies(model):
        link = model.links[k]
        own = (inertias or {}).get(k, (link.m, link.ms, link.J))
        alone = {number: (0.0, np.zeros(3), np.zeros((3, 3))) for number in range(1, len(model.links))} | {k: own}
        found.append(torque_and_rate(_bare(model), q, qd, qdd, qddd, gravity, inertias=alone))
    return tuple(np.array(rows).reshape(len(found), model.n) for rows in zip(*found, strict=True)) if found else ()


def bodies(model):
    """Numbers of the links that have mass and move, or may carry something: all but the root and fixed frames."""
    return [k for k, link in enumerate(model.links) if link.joint]


def _bare(model):
    """Return the model without rotors and friction."""
    return replace(model, links=tuple(replace(link, term=JointDynamics()) for link in model.links))
