"""Six-dimensional algebra of khalil-rne section 3, shared by the recursions of forward dynamics and of free bases.

    T       moves velocities and accelerations from frame i to frame j; its transpose moves forces back        (17)
    J       inertia of a link about its frame's origin                                                         (11)
    axis    direction of a joint in its own frame                                                              (16)
    gamma   acceleration of a link relative to its antecedent that is due to velocities                        (15)
    beta    external force on a link less the force that its velocities need                                   (33), (90)

Linear part first. An acceleration is that of the frame's origin, the true (classical) one, with gravity taken off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.vectors import ZERO, Z, cross, skew
from ..model import mdh
from .joint_dynamics import to_links


class Velocities(NamedTuple):
    """Lists over links 0..N that depend on positions and velocities only, see above. T and gamma of link 0 are None."""

    T: list
    w: list
    gamma: list
    beta: list


def velocity_recursion(model, q, qd, w=ZERO, inertias=None, wrenches=None):
    """Return the results of the first forward recursion of khalil-rne 3.3.2 and 7.2-7.3.

    q, qd    : the n coordinates; any scalar
    w        : angular velocity (3,) of link 0 in its own frame
    inertias : {link number: (m, ms, J)} instead of the model's own
    wrenches : {link number: (6,)} BY the environment ON the link, in frame j: the papers' -f_e
    """
    q, qd = to_links(model, q, offset=True), to_links(model, qd)
    first = Velocities([None], [w], [None], [_beta(model, 0, w, inertias, wrenches)])
    for k, link in enumerate(model.links[1:], start=1):
        i, (R, P) = link.parent, mdh.pose(link, q[k])
        wi, z1 = R.T @ first.w[i], Z * qd[k]
        linear, angular = R.T @ cross(first.w[i], cross(first.w[i], P)), ZERO
        if link.sigma == mdh.PRISMATIC:
            linear = linear + 2.0 * cross(wi, z1)  # (15)
        if link.sigma == mdh.REVOLUTE:
            angular = cross(wi, z1)
        w = wi + z1 if link.sigma == mdh.REVOLUTE else wi  # (18), (19)
        values = transform(R, P), w, np.concatenate((linear, angular)), _beta(model, k, w, inertias, wrenches)
        for column, value in zip(first, values, strict=True):
            column.append(value)
    return first


def _beta(model, k, w, inertias, wrenches):
    _m, ms, J = inertia_of(model, k, inertias)
    needed = np.concatenate((cross(w, cross(w, ms)), cross(w, J @ w)))
    return (wrenches or {}).get(k, np.zeros(6)) - needed  # (33)


def inertia_of(model, k, inertias=None):
    """(m, ms, J) of link k."""
    link = model.links[k]
    return (inertias or {}).get(k, (link.m, link.ms, link.J))


def transform(R, P):
    """T (6, 6) for frame j at (R, P) in frame i, (17)."""
    return np.block([[R.T, -R.T @ skew(P)], [np.zeros((3, 3)), R.T]])


def inertia(m, ms, J):
    """J (6, 6) from mass, first moments and inertia about the origin, (11)."""
    return np.block([[np.eye(3) * m, -skew(ms)], [skew(ms), J]])


def axis(link):
    """(6,) direction of the joint, (16); zero for a fixed frame."""
    return np.array([0.0, 0.0, float(link.sigma == mdh.PRISMATIC), 0.0, 0.0, float(link.sigma == mdh.REVOLUTE)])


def symmetric(A):
    """Return a symmetric matrix from its upper half, so that a kernel computes each entry once."""
    return np.array([[A[min(i, j)][max(i, j)] for j in range(len(A))] for i in range(len(A))])
