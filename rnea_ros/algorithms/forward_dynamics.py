"""Mass matrix and forward dynamics of trees on a fixed or floating base.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", sections 3 and 7. Spatial (six-dimensional)
algebra of section 3, linear part first; accelerations are classical accelerations of the origin of the frame, minus gravity:

    T       transforms velocities and accelerations from frame i to frame j; its transpose transforms wrenches back  (17)
    J       spatial inertia of a link about the origin of its frame                                                  (11)
    axis    spatial axis of a joint in its own frame                                                                 (16)
    gamma   velocity-dependent acceleration of a link relative to its antecedent                                     (15)
    beta    external wrench on a link minus its velocity-dependent inertial wrench                                   (33), (90)

Mass matrix: (84) with the composite links of (95); for a fixed base this is the method of Walker and Orin (1982). A unit
acceleration of joint k alone moves the links beyond it as one rigid body, which requires the wrench f = J_k^c a_k; its
component along each joint between link k and the root is an element of column k.

    M  A11  A12   [f_0; tau] = [A11 A12; A12^T M] [Vd_0; qdd] at rest, without gravity

Forward dynamics with the articulated-body algorithm, 3.3.2, (32)-(44), in O(n), with corrections: angular velocities in (34)
are expressed in frame j; accelerations are transformed outwards with T, wrenches inwards with its transpose.

    J* beta*     inertia and bias wrench of the articulated body: the link and all links beyond it, their joints free
    H U          articulated inertia projected on the joint axis, H = a^T J* a + Ia, and U = J* a
    K alpha      the wrench transmitted by the joint is f = K T Vd_i + alpha

Joint dynamics: friction and offset are subtracted from the torque, (44); the rotor inertia Ia is part of H, (36).
The algorithm requires that every joint has its own coordinate. With mimic joints or coupled transmissions, which couple joints
outside the tree, M qdd = tau - H is solved instead as in 3.3.1, from the tips inwards, exploiting the sparsity of M.

Floating bases, section 7, with corrections: beta and J include the base (j = 0); both signs of (96); gravity is added after
(97) and (109). All costs are linear in the number of joints, except for A. Rates are those of torque_rate.py, whose recursion
starts at the base.

    Vd0       (6,) classical acceleration of the base (origin of its frame, then angular), expressed in frame 0
    Vdd0      (6,) classical jerk of the base (derivative in the inertial frame), expressed in frame 0
    J^c beta^c   inertia and bias wrench of the composite link: all links beyond the joint, moving as one body
    w         (3,) angular velocity of the base in frame 0; its linear velocity has no influence
    gravity   (3,) acceleration of free fall in frame 0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.linalg import pivots, solve_positive
from ..algebra.vectors import ZERO, Z, cross, rotate_inertia, shift, skew
from ..model import mdh
from ..model.tree import NO_COORDINATE
from . import torque_rate as newton_euler
from .joint_dynamics import add_motors, from_links, joint_dynamics, load_friction, to_links, without_load_friction
from .torque_rate import RootMotion

# ------------------------------------------------------------------ spatial algebra


class Velocities(NamedTuple):
    """Quantities that depend only on positions and velocities, see the module; lists over links 0..N.

    T and gamma of link 0 are None. w: (3,) angular velocity in the frame of the link [rad/s]
    """

    T: list
    w: list
    gamma: list
    beta: list


def velocity_recursion(model, q, qd, w=ZERO, inertias=None, wrenches=None):
    """Return the results of the first forward recursion of khalil-rne 3.3.2 and 7.2-7.3.

    q, qd    : (n,) coordinates and velocities; any scalar type
    w        : (3,) angular velocity of link 0 in its own frame [rad/s]
    inertias : {link number: (m, ms, J)} that replace those of the model
    wrenches : {link number: (6,)} exerted by the environment on the link, in frame j: -f_e of the paper
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
    """Return mass, first moments (3,) and inertia (3, 3) about the origin of link k, from `inertias` or the model."""
    link = model.links[k]
    return (inertias or {}).get(k, (link.m, link.ms, link.J))


def transform(R, P):
    """Return T (6, 6) of frame j with the pose (R, P) in frame i, (17)."""
    return np.block([[R.T, -R.T @ skew(P)], [np.zeros((3, 3)), R.T]])


def inertia(m, ms, J):
    """Return J (6, 6) from mass, first moments (3,) and inertia (3, 3) about the origin, (11)."""
    return np.block([[np.eye(3) * m, -skew(ms)], [skew(ms), J]])


def axis(link):
    """Return the spatial axis (6,) of a joint, (16); zero for a fixed frame."""
    return np.array([0.0, 0.0, float(link.sigma == mdh.PRISMATIC), 0.0, 0.0, float(link.sigma == mdh.REVOLUTE)])


def symmetric(A):
    """Return the symmetric matrix with the upper triangle of A, so that a kernel computes each entry once."""
    return np.array([[A[min(i, j)][max(i, j)] for j in range(len(A))] for i in range(len(A))])


# ------------------------------------------------------------------ composite bodies


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


# ------------------------------------------------------------------ articulated bodies


class Joints(NamedTuple):
    """Lists over links 0..N that the last recursion needs: U and H as above, D = 1 / H, u = tau + a^T beta*."""

    U: list
    H: list
    D: list
    u: list


def forward_dynamics(model, q, qd, tau, gravity=ZERO, inertias=None, wrenches=None):
    """(qdd, H): accelerations of the n coordinates, base at rest, and the inertia that each felt; any scalar.

    H        : that of a joint alone, all joints beyond it free. Where it is zero no mass resists and qdd has no answer.
    gravity  : acceleration (3,) in frame 0 [m/s^2]
    inertias : {link number: (m, ms, J)} instead of the model's own
    wrenches : {link number: (6,)} BY the environment ON the link, in frame j
    """
    tau, model = _unloaded(model, qd, tau), without_load_friction(model)
    if not articulated(model):
        return _by_mass_matrix(model, q, qd, tau, gravity, inertias, wrenches)
    first = velocity_recursion(model, q, qd, ZERO, inertias, wrenches)
    joints, _J, _beta = articulate(model, qd, tau, first, inertias)
    qdd = accelerate(model, first, joints, np.concatenate((-gravity, ZERO)))
    return in_coordinates(model, qdd), in_coordinates(model, joints.H)


def _unloaded(model, qd, tau):
    """Return torques without their load-dependent friction; every joint must have its own coordinate."""
    tau = [tau[k] for k in range(model.n)]
    for link in model.links:
        if link.term.load_dependent:
            k = link.coordinate
            other = joint_dynamics(link.term, qd[k], 0.0, 0.0)[0]
            tau[k] = tau[k] - load_friction(link.term, tau[k] - other, qd[k])
    return np.array(tau)


def articulated(model):
    """Return whether every joint has its own coordinate, and no motor couples several joints."""
    used = [link.coordinate for link in model.links if link.coordinate != NO_COORDINATE]
    return len(used) == len(set(used)) and not model.coupled_motors


def _by_mass_matrix(model, q, qd, tau, gravity, inertias, wrenches):
    """(8). The n-th coordinate is eliminated first: a matrix of a tree then stays as sparse as it is."""
    H, _rate = newton_euler.torque_and_rate(model, q, qd, q * 0.0, q * 0.0, gravity, inertias=inertias, wrenches=wrenches)
    M = mass_matrix(model, q, inertias)[::-1, ::-1]
    qdd = solve_positive(M, [t - h for t, h in zip(tau, H, strict=True)][::-1])
    return qdd[::-1], pivots(M)[::-1]


def articulate(model, qd, tau, first, inertias=None):
    """Backward recursion (36)-(40). Returns (Joints, J*_0, beta*_0)."""
    qd, tau = to_links(model, qd), to_links(model, tau)
    J, beta = [inertia(*inertia_of(model, k, inertias)) for k in range(len(model.links))], list(first.beta)
    joints = Joints(*([0.0] * len(model.links) for _ in Joints._fields))
    for k in range(len(model.links) - 1, 0, -1):
        link, a, i, T, gamma = model.links[k], axis(model.links[k]), model.links[k].parent, first.T[k], first.gamma[k]
        K, alpha = J[k], J[k] @ gamma - beta[k]  # of a fixed frame
        if link.sigma != mdh.FIXED:
            U = J[k] @ a
            H = a @ U + link.term.armature  # (36)
            D = 1.0 / H
            K = symmetric(J[k] - np.outer(U, U * D))  # (37)
            u = tau[k] - joint_dynamics(link.term, qd[k], 0.0, 0.0)[0] + a @ beta[k]  # (44)
            alpha = K @ gamma + U * (D * u) - beta[k]  # (38)
            joints.U[k], joints.H[k], joints.D[k], joints.u[k] = U, H, D, u
        beta[i] = beta[i] - T.T @ alpha  # (39)
        J[i] = J[i] + symmetric(T.T @ K @ T)  # (40)
    return joints, J[0], beta[0]


def accelerate(model, first, joints, Vd0):
    """Second forward recursion (41), (43): qdd of links 0..N from the acceleration (6,) of link 0, gravity taken off."""
    Vd, qdd = [Vd0], [0.0]
    for k, link in enumerate(model.links[1:], start=1):
        V = first.T[k] @ Vd[link.parent] + first.gamma[k]
        qdd.append(0.0 if link.sigma == mdh.FIXED else joints.D[k] * (joints.u[k] - joints.U[k] @ V))  # (41)
        Vd.append(V + axis(link) * qdd[k])  # (43)
    return qdd


def in_coordinates(model, values):
    """Values of links 0..N as those of the n coordinates, where each joint has its own."""
    found = {link.coordinate: value for link, value in zip(model.links, values, strict=True)}
    return [found[c] for c in range(model.n)]


# ------------------------------------------------------------------ free bases


def free_inverse_dynamics(model, q, qd, qdd, w, gravity, inertias=None, wrenches=None):
    """Return (Vd0, tau): acceleration of the free base and torques (n,) for a motion of the joints; (89)-(100).

    q, qd, qdd : the n coordinates; any scalar
    inertias, wrenches : as in `velocity_recursion`
    """
    first = velocity_recursion(model, q, qd, w, inertias, wrenches)
    qd, qdd = to_links(model, qd), to_links(model, qdd)
    J = [inertia(*body) for body in composites(model, link_poses(model, q), inertias)]  # (95)
    zeta, beta = [None], list(first.beta)
    for k, link in enumerate(model.links[1:], start=1):
        zeta.append(first.gamma[k] + axis(link) * qdd[k])  # (89)
    for k in range(len(model.links) - 1, 0, -1):
        i = model.links[k].parent
        beta[i] = beta[i] + first.T[k].T @ (beta[k] - J[k] @ zeta[k])  # (96)
    Vd = [solve_positive(J[0], beta[0])]  # (97), gravity taken off
    tau = [0.0]
    for k, link in enumerate(model.links[1:], start=1):
        Vd.append(first.T[k] @ Vd[link.parent] + zeta[k])  # (98)
        f = J[k] @ Vd[k] - beta[k]  # (99)
        tau.append(axis(link) @ f + joint_dynamics(link.term, qd[k], qdd[k], 0.0)[0])  # (100)
    return Vd[0] + np.concatenate((gravity, ZERO)), from_links(model, tau)


def free_torque_and_rate(model, q, qd, qdd, qddd, w, gravity, inertias=None, wrenches=None, wrench_rates=None):
    """Return (Vd0, Vdd0, tau, tau_rate): acceleration and jerk of the free base, torques and their rates for a joint motion.

    A free base needs no wrench, so the rate of its wrench is zero too. That rate is affine in the jerk of the base, with slope
    A11: the jerk follows, and with it the torque rates. wrench_rates: {link number: (6,)} rates of those six components.
    """
    options = {"inertias": inertias, "wrenches": wrenches, "wrench_rates": wrench_rates}
    Vd0, tau = free_inverse_dynamics(model, q, qd, qdd, w, gravity, inertias, wrenches)

    def carried(Vdd0):
        motion = RootMotion(w, Vd0[3:], Vdd0[3:], Vd0[:3], Vdd0[:3])
        return prescribed(model, q, qd, qdd, qddd, motion, gravity, **options)

    _tau, _rate, _f0, f0_rate = carried(np.zeros(6))
    Vdd0 = -solve_positive(base_inertia(model, q, inertias), f0_rate)
    return Vd0, Vdd0, tau, carried(Vdd0)[1]


def free_forward_dynamics(model, q, qd, tau, w, gravity, inertias=None, wrenches=None):
    """Return (Vd0, qdd, H): accelerations of base and joints under torques (n,), (101)-(112).

    H : (6 + n,) pivots of the base's inertia and inertias of the joints; where one is zero no mass resists
    Mimic joints: as in `forward_dynamics`, here by (88).
    """
    if not articulated(model):
        return _free_by_mass_matrix(model, q, qd, tau, w, gravity, inertias, wrenches)
    first = velocity_recursion(model, q, qd, w, inertias, wrenches)  # (101), (102)
    joints, J, beta = articulate(model, qd, tau, first, inertias)  # (103)-(108)
    Vd0 = solve_positive(J, beta)  # (109), gravity taken off
    qdd = accelerate(model, first, joints, Vd0)  # (110), (112)
    H = pivots(J) + in_coordinates(model, joints.H)
    return Vd0 + np.concatenate((gravity, ZERO)), in_coordinates(model, qdd), H


def _free_by_mass_matrix(model, q, qd, tau, w, gravity, inertias, wrenches):
    """Solve (88) with the mass matrix, the n-th coordinate first and the base last."""
    zero = q * 0.0
    H2, _rate, H1, _rate = prescribed(model, q, qd, zero, zero, RootMotion(w), gravity, inertias=inertias, wrenches=wrenches)
    A = free_mass_matrix(model, q, inertias)[::-1, ::-1]
    forces = [-h for h in H1] + [t - h for t, h in zip(tau, H2, strict=True)]
    x = solve_positive(A, forces[::-1])[::-1]
    return x[:6], x[6:], pivots(A)[::-1]


def free_mass_matrix(model, q, inertias=None):
    """Return A (6+n, 6+n), base first: [0; tau] = A [Vd0; qdd] + H, (83), (84)."""
    A11, A12, A22 = partitions(model, q, inertias)
    return np.block([[A11, A12], [A12.T, A22]])


def prescribed(model, q, qd, qdd, qddd, motion, gravity, **options):
    """Return (tau, tau_rate, f0, f0_rate) for a prescribed motion of the base, as on a vehicle.

    motion  : RootMotion of the base, true acceleration and jerk
    f0      : force and moment (6,) about the base's origin that this motion needs, seen in frame 0; f0_rate: their rates
    options : of the backward recursion (10)-(21)

    With Vd0 and qdd zero, f0 and tau are H of (83).
    """
    links = newton_euler.kinematics(model, q, qd, qdd, qddd, motion._replace(a=motion.a - gravity))
    forces = newton_euler.dynamics(model, links, qd, qdd, qddd, **options)
    f, n, w = forces.f[0], forces.n[0], motion.w
    f_rate, n_rate = forces.fd[0] - cross(w, f), forces.nd[0] - cross(w, n)
    return (from_links(model, forces.tau), from_links(model, forces.tau_rate),
            np.concatenate((f, n)), np.concatenate((f_rate, n_rate)))
