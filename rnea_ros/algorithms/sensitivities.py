"""Partial derivatives of the joint torques of a tree in closed form: of tau by q, qd, qdd, and of tau_rate by q, ..., qddd.

Barman, thesis, chapter 3: the derivatives of the forces on links, Steps 2-9, then those of the torques, Step 10. The thesis
differentiates the recursion separately for every joint i. Here the sums over all links beyond a joint are computed once: the
results are equal, with a third of the operations in a tree with 32 joints.

A motion of joint i displaces each point r of the links beyond it along a field u; its material time derivatives are

    u   = l + k x r                                       k = z (revolute) or l = z (prismatic); the other vector is zero
    u'  = l' + k' x r + k x rd
    u'' = l'' + k'' x r + 2 k' x rd + k x rdd

A change of q_i displaces the points by u and their accelerations by u''; one of qd_i changes velocities by u and accelerations
by 2 u'; one of qdd_i, accelerations by u. Summed over the mass points, as force and moment [f; n] in frame j,

    d[f; n]/dq_i   = A [l''; k''] + 2 C k' + W k          (3.68), (3.70), (3.75), (3.83)
    d[f; n]/dqd_i  = 2 A [l'; k'] + 2 C k
    d[f; n]/dqdd_i = A [l; k]

    A    composite inertia m, ms, J of link j and all links beyond it, about the origin of frame j
    C    terms of their motion rd relative to that origin: C k = sum m [k x rd; r x (k x rd)] = [k x h; B k]
    W    loads with a constant direction in the world: W k = [k x F; T k], see torque_rate.py
    S    the field [l; k] of joint i, with its time derivatives S1 = [l'; k'] and S2 = [l''; k'']

Frame j rotates with the link. The term k x rdd therefore rotates the force without changing its components in frame j. The
acceleration a of the origin minus gravity is not part of rdd; relative to frame j it rotates by -k: for a revolute joint, S2
has l'' = a x z.

A motion of joint i changes the forces on the links beyond it. The change is propagated from link i to the root, Step 9, and
its z component is the change of the torque of each joint on that path, Step 10. Conversely, tau_i depends on every joint j
between link i and the root: S_i^T A, S_i^T C and S_i^T W are transformed to frame j and multiplied by the field of joint j.
All other derivatives are zero.

Wrenches transmitted by the joints: internal forces and moments, their rates and sensitivities (thesis, Step 9). The wrench of
a joint is the one that its antecedent exerts on the link, about the origin of the link's URDF frame and seen in that frame,
force first: F_jp and tau_jp of (3.74), (3.82). It contains everything that the mechanism transmits, by bearing and drive.
Friction and rotor inertia act between motor and joint and are not part of it, so its component along the axis is tau without
the joint dynamics. Rates and sensitivities are those of the six numbers.

One row for each joint that moves a link, mimic joints included: see `moving`. The inner joints of a planar joint have no
URDF link; theirs are seen in the MDH frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, Z, cross, skew
from ..model import mdh
from ..model.tree import NO_COORDINATE
from . import torque_rate
from .forward_dynamics import composites, inertia_of
from .joint_dynamics import add_motors, from_links, joint_dynamics, load_share, to_links
from .torque_rate import RootMotion, arm, as_wrenches, seen_from_links, turned


class CompositeBody(NamedTuple):
    """Composite body of a link and all links beyond it, about the origin of the link frame; symbols as in the module."""

    m: Any
    ms: Any
    J: Any
    h: Any
    B: Any
    F: Any
    T: Any


class TreeState(NamedTuple):
    """State of a tree at one instant: the quantities common to all derivatives. Lists are indexed by link, 0..N."""

    links: tuple
    R: list
    P: list
    Pd: list  # time derivative of P in frame i, the frame of the antecedent
    wrench: list  # (6,) force and moment [f; n] exerted by the antecedent on the link
    body: list  # CompositeBody
    S: list  # (S, S1, S2) of the joint of the link


def state(model, q, qd, qdd, gravity=ZERO, base=RootMotion(), inertias=None, wrenches=None, world_wrenches=()):
    """Return the state of a tree (Steps 2-9 without derivatives), for any scalar type.

    q, qd, qdd     : (n,) coordinates, velocities, accelerations
    gravity        : (3,) acceleration of free fall in frame 0 [m/s^2]
    base           : motion of the root
    inertias       : {link number: (m, ms, J)} that replace those of the model
    wrenches       : {link number: (6,)} exerted by the environment on the link, constant in frame j
    world_wrenches : [(link number, P, (6,))] constant in frame 0, see torque_rate.py
    """
    no_jerk = [0.0] * model.n
    motion = torque_rate.kinematics(model, q, qd, qdd, no_jerk, base._replace(a=base.a - gravity))
    seen = seen_from_links(model, motion, world_wrenches)
    total, _rates = as_wrenches(motion, seen, wrenches)
    forces = torque_rate.dynamics(model, motion, qd, qdd, no_jerk, inertias=inertias, wrenches=total)
    speeds, Pd = to_links(model, qd), [ZERO]
    for k, link in enumerate(model.links[1:], start=1):
        slide = motion.R[k] @ Z * speeds[k] if link.sigma == mdh.PRISMATIC else ZERO
        Pd.append(cross(motion.w[link.parent], motion.P[k]) + slide)
    wrench = [np.concatenate(pair) for pair in zip(forces.f, forces.n, strict=True)]
    body = _bodies(model, motion, Pd, inertias, seen)
    S = [_field(link, w, wd, a) for link, w, wd, a in zip(model.links, motion.w, motion.wd, motion.a, strict=True)]
    return TreeState(model.links, motion.R, motion.P, Pd, wrench, body, S)


def _field(link, w, wd, a):
    """Return (S, S1, S2) of a joint about the origin of its frame. The axis z is fixed in the link: z' = w x z."""
    z1, z2 = cross(w, Z), turned(w, wd, Z)
    if link.sigma == mdh.PRISMATIC:
        return np.concatenate((Z, ZERO)), np.concatenate((z1, ZERO)), np.concatenate((z2, ZERO))
    return np.concatenate((ZERO, Z)), np.concatenate((ZERO, z1)), np.concatenate((cross(a, Z), z2))


def _bodies(model, motion, Pd, inertias, seen):
    """Return the CompositeBody of every link."""
    inertia = composites(model, list(zip(motion.R, motion.P, strict=True)), inertias)
    rest = []  # (h, B, F, T)
    for k, w in enumerate(motion.w):
        _m, ms, J = inertia_of(model, k, inertias)
        _wrench, F, T = seen.get(k, (None, ZERO, np.zeros((3, 3))))
        B = skew(w) @ (J - np.eye(3) * ((J[0, 0] + J[1, 1] + J[2, 2]) * 0.5))  # for rd = w x r
        rest.append((cross(w, ms), B, F, T))
    for k in range(len(model.links) - 1, 0, -1):
        i, R, P, (m, ms, _J), (h, B, F, T) = model.links[k].parent, motion.R[k], motion.P[k], inertia[k], rest[k]
        h, F = R @ h + Pd[k] * m, R @ F  # transformed to frame i: r -> R r + P, rd -> R rd + Pd
        B, T = R @ B @ R.T + arm(P, h) + arm(R @ ms, Pd[k]), R @ T @ R.T + arm(P, F)
        rest[i] = tuple(a + b for a, b in zip(rest[i], (h, B, F, T), strict=True))
    return [CompositeBody._make((*a, *b)) for a, b in zip(inertia, rest, strict=True)]


def changes(body, S, S1, S2):
    """Return the derivatives of the wrench [f; n] on a body with respect to q_i, qd_i and qdd_i, (6,) each.

    S, S1, S2: field of joint i about the origin of the body, (6,) each
    """
    k, k1 = S[3:], S1[3:]
    dq = inertial(body, S2) + 2.0 * _turning(k1, body.h, body.B) + _turning(k, body.F, body.T)
    return dq, 2.0 * (inertial(body, S1) + _turning(k, body.h, body.B)), inertial(body, S)


def inertial(body, S):
    """Return A S, (6,)."""
    l, k = S[:3], S[3:]
    return np.concatenate((l * body.m + cross(k, body.ms), cross(body.ms, l) + body.J @ k))


def _turning(k, h, B):
    """Return C k (6,), or W k for F, T in place of h, B."""
    return np.concatenate((cross(k, h), B @ k))


def transposed(body, S):
    """Return (S^T C, S^T W), (3,) each."""
    l, k = S[:3], S[3:]
    return cross(body.h, l) + k @ body.B, cross(body.F, l) + k @ body.T


def transport_term(S, wrench):
    """Return the term of d[f; n]/dq_i at the antecedent due to the motion of the wrench (6,) with joint i."""
    l, k, f, n = S[:3], S[3:], wrench[:3], wrench[3:]
    return np.concatenate((cross(k, f), cross(k, n) + cross(l, f)))  # (3.73), (3.81), (3.83)


def to_antecedent(R, P, wrench):
    """Return a wrench [f; n] of frame j in frame i, about the origin of frame i, (3.72), (3.80), (3.82)."""
    f = R @ wrench[:3]
    return np.concatenate((f, R @ wrench[3:] + cross(P, f)))


def to_successor(R, P, Pd, S, S1, S2):
    """Return the field [S, S1, S2] of a joint at or before frame i, transformed from frame i to frame j."""
    (l, k), (l1, k1), (l2, k2) = ((x[:3], x[3:]) for x in (S, S1, S2))
    l = l + cross(k, P)
    l1 = l1 + cross(k1, P) + cross(k, Pd)
    l2 = l2 + cross(k2, P) + 2.0 * cross(k1, Pd)
    return [np.concatenate((R.T @ a, R.T @ b)) for a, b in ((l, k), (l1, k1), (l2, k2))]


# ---------------------------------------------------------------------- derivatives of torques and torque rates


def columns(now, i):
    """Yield (j, derivatives of the wrench on link j by q_i, qd_i, qdd_i) for link i, then its antecedents except the root."""
    dq, dqd, dqdd = changes(now.body[i], *now.S[i])
    yield i, (dq, dqd, dqdd)
    dq = dq + transport_term(now.S[i][0], now.wrench[i])
    while now.links[i].parent:
        dq, dqd, dqdd = (to_antecedent(now.R[i], now.P[i], x) for x in (dq, dqd, dqdd))
        i = now.links[i].parent
        yield i, (dq, dqd, dqdd)


def rows(now, i):
    """Yield (j, derivatives of tau_i by q_j, qd_j, qdd_j) for the antecedents of link i except the root."""
    body, S = now.body[i], now.S[i][0]
    SA, (SC, SW) = inertial(body, S), transposed(body, S)  # A is symmetric
    while now.links[i].parent:
        R, P, Pd, i = now.R[i], now.P[i], now.Pd[i], now.links[i].parent
        SA = to_antecedent(R, P, SA)
        SC, SW = R @ SC + cross(Pd, SA[:3]), R @ SW
        S, S1, S2 = now.S[i]
        k, k1 = S[3:], S1[3:]
        yield i, (np.dot(SA, S2) + 2.0 * np.dot(SC, k1) + np.dot(SW, k), 2.0 * (np.dot(SA, S1) + np.dot(SC, k)), np.dot(SA, S))


def sensitivities(model, q, qd, qdd, gravity=ZERO, **options):
    """Return dtau_dq, dtau_dqd, dtau_dqdd, (n, n) each: a row for each torque, a column for each coordinate; any scalar type.

    options: base, inertias, wrenches, world_wrenches; see `state`
    """
    now = state(model, q, qd, qdd, gravity, **options)
    speeds, accelerations = to_links(model, qd), to_links(model, qdd)
    tables = [[[0.0] * len(now.links) for _ in now.links] for _ in range(3)]
    for i, link in enumerate(now.links):
        if link.coordinate == NO_COORDINATE:
            continue
        for j, wrenches in columns(now, i):
            for table, wrench in zip(tables, wrenches, strict=True):
                table[j][i] = wrench[2 if now.links[j].sigma == mdh.PRISMATIC else 5]  # (3.93), (3.95)
        for j, values in rows(now, i):
            for table, value in zip(tables, values, strict=True):
                table[i][j] = value
    for i, link in enumerate(now.links):
        if link.coordinate == NO_COORDINATE:
            continue
        if link.term.load_dependent:
            _load_friction(now, tables, i, speeds[i], accelerations[i])
        for table, unit in ((tables[1], (1.0, 0.0)), (tables[2], (0.0, 1.0))):
            # the term's rate is linear in qdd, qddd
            table[i][i] = table[i][i] + joint_dynamics(link.term, speeds[i], *unit)[1]
    matrices = [_from_links(model, table) for table in tables]
    if model.coupled_motors:
        matrices = [matrix.astype(object) for matrix in matrices]  # entries may become symbols
        for table, unit in ((matrices[1], (1.0, 0.0)), (matrices[2], (0.0, 1.0))):
            slopes = {motor.name: joint_dynamics(motor.term, motor.motion(qd), *unit)[1] for motor in model.coupled_motors}
            add_motors(model.coupled_motors, table, slopes)
    return matrices


def _load_friction(now, tables, i, qd, qdd):
    """Add the derivatives of load-dependent friction to row i: d(X + m(qd) sqrt(X^2 + l^2)), where X is the load."""
    term = now.links[i].term
    X = now.wrench[i][2 if now.links[i].sigma == mdh.PRISMATIC else 5] + qdd * term.armature
    m, m_by_qd, size = load_share(term, X, qd, 1.0)
    more = m * X / size
    for table in tables:
        table[i] = [value * (more + 1.0) for value in table[i]]
    tables[1][i][i] = tables[1][i][i] + m_by_qd * size
    tables[2][i][i] = tables[2][i][i] + more * term.armature


def _from_links(model, table):
    """Return the matrix (n, n) over coordinates from a table over links 0..N; mimic joints are added to their leaders."""
    rows = np.array(from_links(model, np.array(table))).reshape(model.n, len(model.links))
    return np.array(from_links(model, rows.T)).reshape(model.n, model.n).T


def rate_sensitivities(model, q, qd, qdd, qddd, gravity=ZERO, wrenches=None, wrench_rates=None, **options):
    """Return the derivatives of tau_rate by q, qd, qdd and qddd, (n, n) each.

    wrench_rates: time derivatives of the components of `wrenches`

    tau_rate is the time derivative of tau(q, qd, qdd) along the motion. Partial and time derivatives commute: by the chain
    rule, d tau_rate / dqd = (dtau_dqd)' + dtau_dq, and so on. `sensitivities` on jets returns all of these terms.
    """
    loads = {k: jets(wrench, (wrench_rates or {}).get(k, np.zeros(6))) for k, wrench in (wrenches or {}).items()}
    tables = sensitivities(model, jets(q, qd), jets(qd, qdd), jets(qdd, qddd), gravity, wrenches=loads, **options)
    dq, dqd, dqdd = (derivative(table, 0) for table in tables)
    dq_rate, dqd_rate, dqdd_rate = (derivative(table, 1) for table in tables)
    return dq_rate, dqd_rate + dq, dqdd_rate + dqd, dqdd


# ------------------------------------------------------------------ wrenches transmitted by the joints


def moving(model):
    """Return the numbers of the links that a joint moves."""
    return [k for k, link in enumerate(model.links) if link.coordinate != NO_COORDINATE]


def joint_wrenches(model, q, qd, qdd, qddd, gravity=ZERO, base=RootMotion(), inertias=None, wrenches=None, wrench_rates=None,
                   world_wrenches=()):
    """Return wrenches and rates, (joints, 6) each; options as in `state`; any scalar."""
    motion = torque_rate.kinematics(model, q, qd, qdd, qddd, base._replace(a=base.a - gravity))
    loads, rates = as_wrenches(motion, seen_from_links(model, motion, world_wrenches), wrenches, wrench_rates)
    forces = torque_rate.dynamics(model, motion, qd, qdd, qddd, inertias=inertias, wrenches=loads, wrench_rates=rates)
    wrench, rate = [], []
    for k in moving(model):
        f, n, w = forces.f[k], forces.n[k], motion.w[k]
        fd, nd = forces.fd[k] + cross(f, w), forces.nd[k] + cross(n, w)  # of the components
        wrench.append(in_urdf_frame(model, k, np.concatenate((f, n))))
        rate.append(in_urdf_frame(model, k, np.concatenate((fd, nd))))
    return wrench, rate


def joint_wrench_sensitivities(model, q, qd, qdd, gravity=ZERO, **options):
    """Return the sensitivities of `joint_wrenches` to q, qd, qdd: (joints, 6, n) each; any scalar.

    options : as in `state`
    """
    now, row = state(model, q, qd, qdd, gravity, **options), {k: i for i, k in enumerate(moving(model))}
    tables = [[[np.zeros(6)] * model.n for _ in row] for _ in range(3)]

    def add(j, link, wrenches):
        for table, wrench in zip(tables, wrenches, strict=True):
            seen = in_urdf_frame(model, j, wrench) * link.multiplier
            table[row[j]][link.coordinate] = table[row[j]][link.coordinate] + seen

    for i in row:
        link, fields = model.links[i], {i: now.S[i]}
        for j, wrenches in columns(now, i):  # joint i and the joints before it
            if j in row:
                add(j, link, wrenches)
        for j in range(i + 1, len(model.links)):  # the joints beyond it
            if model.links[j].parent in fields:
                fields[j] = to_successor(now.R[j], now.P[j], now.Pd[j], *fields[model.links[j].parent])
                if j in row:
                    add(j, link, changes(now.body[j], *fields[j]))
    return [np.array(table).reshape(len(row), model.n, 6).transpose(0, 2, 1) for table in tables]


def in_urdf_frame(model, k, wrench):
    """Return a wrench [f; n] of frame k about the origin of the URDF link's frame, along its axes."""
    frame = model.frames.get(model.links[k].name)
    if frame is None:
        return wrench
    f, n = wrench[:3], wrench[3:]
    return np.concatenate((frame.R.T @ f, frame.R.T @ (n - cross(frame.P, f))))


def base_wrench(model, q, qd, qdd, gravity=ZERO):
    """Return the wrench (6,) on a base at rest; any scalar. gravity: acceleration (3,) in frame 0."""
    no_jerk = [0.0] * model.n
    motion = torque_rate.kinematics(model, q, qd, qdd, no_jerk, RootMotion(a=-gravity))
    forces = torque_rate.dynamics(model, motion, qd, qdd, no_jerk)
    return np.concatenate((forces.f[0], forces.n[0]))


def base_wrench_sensitivities(model, q, qd, qdd, gravity=ZERO):
    """Return the derivatives of the base wrench by q, qd and qdd: (6, n) each; any scalar."""
    now = state(model, q, qd, qdd, gravity)
    tables = [[np.zeros(6) for _ in range(model.n)] for _ in range(3)]
    for i, link in enumerate(now.links):
        if link.coordinate == NO_COORDINATE:
            continue
        *_, (j, wrenches) = columns(now, i)  # of the first link of the branch
        if j == i:
            wrenches = wrenches[0] + transport_term(now.S[i][0], now.wrench[i]), *wrenches[1:]
        for table, wrench in zip(tables, wrenches, strict=True):
            table[link.coordinate] = table[link.coordinate] + to_antecedent(now.R[j], now.P[j], wrench) * link.multiplier
    return [np.array(table).reshape(model.n, 6).T for table in tables]
