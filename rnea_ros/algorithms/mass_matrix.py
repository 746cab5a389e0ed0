"""Mass matrix from composite inertias: what all links beyond a joint weigh, seen from that joint.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", (84) with the composite links of (95); for a
fixed base this is the method of Walker and Orin (1982). A unit acceleration of joint k alone moves the links beyond it as one
rigid body, with the force f = J_k^c a_k on that body; every joint on the way to the root feels its own component of f.

    M  A11  A12   [f_0; tau] = [A11 A12; A12^T M] [Vd_0; qdd] at rest, without gravity
"""

from __future__ import annotations

import numpy as np

from ..algebra.vectors import rotate_inertia, shift
from ..model import mdh
from ..model.tree import NO_COORDINATE
from .joint_dynamics import add_motors, from_links, to_links
from .spatial import axis, inertia, inertia_of, symmetric, transform


def composites(model, poses, inertias=None):
    """[(m, ms, J)] of the composite links 0..N, each about its frame's origin, (95). poses: [(R, P)], see `link_poses`."""
    bodies = [inertia_of(model, k, inertias) for k in range(len(model.links))]
    for k in range(len(model.links) - 1, 0, -1):
        (m, ms, J), (R, P), i = bodies[k], poses[k], model.links[k].parent
        J, ms = rotate_inertia(R, J, ms)
        J, ms = shift(symmetric(J), ms, m, P)
        bodies[i] = tuple(a + b for a, b in zip(bodies[i], (m, ms, J), strict=True))
    return bodies


def link_poses(model, q):
    """[(R, P)] of links 0..N in their antecedents; the root at identity."""
    q = to_links(model, q, offset=True)
    return [(np.eye(3), np.zeros(3))] + [mdh.pose(link, q[k]) for k, link in enumerate(model.links[1:], start=1)]


def partitions(model, q, inertias=None, added=None):
    """(A11 (6, 6), A12 (6, n), M (n, n)) of (84) with rotor inertias; q: the n coordinates, any scalar.

    A11, A12: the force on link 0 about its origin, in its frame, linear part first.
    added   : {link number: (6, 6)}, inertia of a fluid that moves with the link, about its frame's origin
    """
    links, poses = model.links, link_poses(model, q)
    bodies = [inertia(*body) for body in composites(model, poses, inertias)]
    T = [None] + [transform(*pose) for pose in poses[1:]]
    if added:
        fluid = dict(added)  # of composite links
        for k in range(len(links) - 1, 0, -1):
            if k in fluid:
                moved, i = symmetric(T[k].T @ fluid[k] @ T[k]), links[k].parent
                fluid[i] = fluid[i] + moved if i in fluid else moved
        bodies = [body + fluid[k] if k in fluid else body for k, body in enumerate(bodies)]
    A12 = [[0.0] * 6 for _ in range(model.n)]  # columns
    M = [[0.0] * model.n for _ in range(model.n)]
    for c in range(model.n):
        own = {k: (bodies[k] @ axis(link)) * link.multiplier for k, link in enumerate(links) if link.coordinate == c}
        beyond: dict[int, list] = {}  # forces of the links beyond one, which followers of the same coordinate share
        for k in range(max(own, default=0), 0, -1):
            link, f = links[k], [force for force in (beyond.pop(k, None), own.get(k)) if force is not None]
            if not f:
                continue
            total = f[0] + f[1] if len(f) > 1 else f[0]
            if link.coordinate == c:
                M[c][c] = M[c][c] + link.term.armature * link.multiplier**2 + (axis(link) @ own[k]) * link.multiplier
                if len(f) > 1:  # a follower feels those beyond it, and they feel it
                    M[c][c] = M[c][c] + (axis(link) @ f[0]) * (2.0 * link.multiplier)
            elif link.coordinate != NO_COORDINATE:
                value = (axis(link) @ total) * link.multiplier
                M[c][link.coordinate] = M[c][link.coordinate] + value
                M[link.coordinate][c] = M[link.coordinate][c] + value
            moved, i = T[k].T @ total, link.parent
            beyond[i] = beyond[i] + moved if i in beyond else moved
        A12[c] = list(beyond.get(0, [0.0] * 6))
    add_motors(model.coupled_motors, M, {motor.name: motor.term.armature for motor in model.coupled_motors})
    return bodies[0], np.array(A12).reshape(model.n, 6).T, np.array(M).reshape(model.n, model.n)


def mass_matrix(model, q, inertias=None):
    """M (n, n) [kg m^2, kg m, kg]; arguments as in `partitions`."""
    return partitions(model, q, inertias)[2]


def base_inertia(model, q, inertias=None):
    """A11 (6, 6) alone: the whole robot as one rigid body."""
    return inertia(*composites(model, link_poses(model, q), inertias)[0])


def locked(model, q, inertias=None):
    """([6], [n]): the inertia that the base, in each direction, and each joint move while all (other) joints are locked."""
    bodies = [inertia(*body) for body in composites(model, link_poses(model, q), inertias)]
    alone = [axis(link) @ body @ axis(link) + link.term.armature for link, body in zip(model.links, bodies, strict=True)]
    geared = [x * link.multiplier for x, link in zip(alone, model.links, strict=True)]
    joints = from_links(model, geared)
    for motor in model.coupled_motors:
        for k, ratio in zip(motor.coordinates, motor.ratios, strict=True):
            joints[k] = joints[k] + ratio**2 * motor.term.armature
    return list(np.diag(bodies[0])), joints
