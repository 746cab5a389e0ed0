"""The robot as screws: home poses, screw axes, product of exponentials, and inverse dynamics in that form.

"Recursive Newton-Euler Algorithm: Lie Algebra Formulation" (lie-notes), sections 1-4, as corrected: T_{i,i-1} is
exp(-[A_i] theta_i) M_{i,i-1}, the transposes of Term 1 are taken, gravity is vdot_0 = -g. For trees, i-1 is the antecedent.
The notes order 6-vectors (angular, linear); here, as everywhere in this package, the linear part is first.

    M    home pose of a body's frame in the space frame, which is the root's; home is q = 0
    S A  screw axis of a joint in the space frame at home, and in the body's own frame: A = Ad(M^-1) S
    G    inertia of the body in its frame, which sits at its mass centre: mass, and inertia about the centre
    V F  twist and wrench of a body in its frame
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.vectors import ZERO, cross, shift, skew
from ..model import mdh
from .forward_dynamics import inertia
from .joint_dynamics import from_links, joint_dynamics, to_links


class Screws(NamedTuple):
    """Lists over links 0..N. Axes (6,) are zero, and frames stay in place, where no joint or no mass is."""

    S: list
    A: list
    M: list
    G: list


def screws(model):
    """Screws of a model; floats."""
    home, found = [np.eye(4)], Screws([], [], [], [])
    offsets = to_links(model, np.zeros(model.n), offset=True)
    for k, link in enumerate(model.links):
        if k > 0:
            home.append(home[link.parent] @ homogeneous(*mdh.pose(link, offsets[k])))
        z, origin = home[k][:3, 2], home[k][:3, 3]
        S = {mdh.REVOLUTE: np.concatenate((cross(origin, z), z)), mdh.PRISMATIC: np.concatenate((z, ZERO)),
             mdh.FIXED: np.zeros(6)}[link.sigma]
        centre = link.ms / link.m if link.m > 0.0 else ZERO
        J, ms = shift(link.J, link.ms, link.m, -centre)
        M = home[k] @ homogeneous(np.eye(3), centre)
        for column, value in zip(found, (S, Ad(inverse(M)) @ S, M, inertia(link.m, ms, J)), strict=True):  # A: Step 1
            column.append(value)
    return found


def inverse_dynamics(model, s, q, qd, qdd, gravity=ZERO, wrenches=None):
    """tau (n,), Steps 1-6; any scalar. gravity (3,) in frame 0; wrenches: {link number: (6,)} as in torque_rate.py."""
    q, qd, qdd = (to_links(model, x) for x in (q, qd, qdd))
    T, V, Vd = [None], [np.zeros(6)], [np.concatenate((-gravity, ZERO))]
    for k, link in enumerate(model.links[1:], start=1):
        A, i = s.A[k], link.parent
        T.append(exp(A, -q[k]) @ inverse(s.M[k]) @ s.M[i])  # Step 2
        V.append(Ad(T[k]) @ V[i] + A * qd[k])  # Step 3
        Vd.append(Ad(T[k]) @ Vd[i] + ad(V[k]) @ A * qd[k] + A * qdd[k])  # Step 4
    F, tau = [-_at_centre(model, k, s, (wrenches or {}).get(k, np.zeros(6))) for k in range(len(model.links))], [0.0] * len(T)
    for k in range(len(model.links) - 1, 0, -1):
        link = model.links[k]
        F[k] = F[k] + s.G[k] @ Vd[k] - coad(V[k]) @ (s.G[k] @ V[k])  # Step 5
        F[link.parent] = F[link.parent] + coAd(T[k]) @ F[k]
        tau[k] = F[k] @ s.A[k] + joint_dynamics(link.term, qd[k], qdd[k], 0.0)[0]  # Step 6
    return from_links(model, tau)


def _at_centre(model, k, s, wrench):
    """Transform a wrench from the link's MDH frame to the body frame: the moment about the mass centre."""
    link = model.links[k]
    return np.concatenate((wrench[:3], wrench[3:] - cross(link.ms / link.m if link.m > 0.0 else ZERO, wrench[:3])))


# ------------------------------------------------------------------ operators


def homogeneous(R, p):
    """T (4, 4) from a rotation and a position."""
    return np.block([[R, p.reshape(3, 1)], [np.zeros((1, 3)), np.ones((1, 1))]])


def inverse(T):
    """T^-1."""
    return homogeneous(T[:3, :3].T, -(T[:3, :3].T @ T[:3, 3]))


def exp(S, angle):
    """exp([S] angle) of a unit screw: angular part a unit vector, or zero and a translation. One formula serves both."""
    v, w = S[:3], skew(S[3:])
    c, s = np.cos(angle), np.sin(angle)
    R = np.eye(3) + w * s + w @ w * (1.0 - c)
    return homogeneous(R, v * angle + w @ v * (1.0 - c) + w @ w @ v * (angle - s))


def Ad(T):
    """Adjoint (6, 6): takes twists from the frame whose pose is T to the frame that T is expressed in."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def ad(V):
    """Lie bracket (6, 6): ad(V) X = [V, X]."""
    return np.block([[skew(V[3:]), skew(V[:3])], [np.zeros((3, 3)), skew(V[3:])]])


def coAd(T):
    """Ad(T)^T: wrenches the opposite way, so that power F . V is the same in both frames."""
    return Ad(T).T


def coad(V):
    """ad(V)^T, the co-adjoint action on wrenches."""
    return ad(V).T
