"""Recursive Newton-Euler with one more derivative: tau and d tau / dt of a tree.

Guarino Lo Bianco, "Evaluation of generalized force derivatives by means of a recursive Newton-Euler approach",
(3)-(21), for the trees of Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", (18)-(31).
All vectors of link j are seen in frame j; rates are taken in the inertial frame, then seen in frame j.

    w wd wdd    angular velocity, acceleration, jerk                       paper: omega gamma iota
    a j         acceleration and jerk of the frame's origin; gravity is an acceleration of the base
    F N Fd Nd   force and moment about the origin that move the link, and rates
    f n fd nd   force and moment about the origin that the antecedent exerts on the link, and rates

The mass centre p_c enters as the first moments MS = m p_c and the inertia J about the origin, as in khalil-rne (22)-(23):
this is (7), (9)-(13), (15), (17) with p_c x m a_c taken into N, linear in the inertial parameters, right for a massless link.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import ZERO, Z, cross, skew
from ..model import mdh
from .joint_dynamics import from_links, joint_torque, to_links, with_motors


class RootMotion(NamedTuple):
    """Motion of link 0, in its own frame: w, wd, wdd of the frame, a and j of its origin with gravity taken off."""

    w: Any = ZERO
    wd: Any = ZERO
    wdd: Any = ZERO
    a: Any = ZERO
    j: Any = ZERO


class LinkMotion(NamedTuple):
    """Lists over links 0..N; R and P are the pose of frame j in that of its antecedent. See the module's table."""

    R: list
    P: list
    w: list
    wd: list
    wdd: list
    a: list
    j: list


class LinkForces(NamedTuple):
    """Lists over links 0..N; tau and tau_rate are those of the links' joints, before mimic joints are folded."""

    F: list
    N: list
    Fd: list
    Nd: list
    f: list
    n: list
    fd: list
    nd: list
    tau: list
    tau_rate: list


def kinematics(model, q, qd, qdd, qddd, base=RootMotion()):
    """Forward recursion (3)-(9). q, qd, qdd, qddd: the n coordinates; any scalar. Returns LinkMotion."""
    q, qd, qdd, qddd = to_links(model, q, offset=True), *(to_links(model, x) for x in (qd, qdd, qddd))
    motion = LinkMotion([np.eye(3)], [ZERO], [base.w], [base.wd], [base.wdd], [base.a], [base.j])
    for k, link in enumerate(model.links[1:], start=1):
        i = link.parent
        R, P = mdh.pose(link, q[k])
        w, wd, wdd = R.T @ motion.w[i], R.T @ motion.wd[i], R.T @ motion.wdd[i]
        a = R.T @ (motion.a[i] + turned(motion.w[i], motion.wd[i], P))
        j = R.T @ (motion.j[i] + turned_rate(motion.w[i], motion.wd[i], motion.wdd[i], P))
        z1, z2, z3 = Z * qd[k], Z * qdd[k], Z * qddd[k]
        if link.sigma == mdh.REVOLUTE:
            wdd = wdd + cross(wd, z1) + z3 + cross(w, 2.0 * z2 + cross(w, z1))  # (5)
            wd = wd + cross(w, z1) + z2  # (4)
            w = w + z1  # (3)
        if link.sigma == mdh.PRISMATIC:
            a = a + 2.0 * cross(w, z1) + z2  # (6)
            j = j + z3 + 3.0 * cross(wd, z1) + 3.0 * cross(w, z2 + cross(w, z1))  # (8)
        for values, value in zip(motion, (R, P, w, wd, wdd, a, j), strict=True):
            values.append(value)
    return motion


def turned(w, wd, p):
    """Acceleration of a point at p relative to the origin of a turning frame, as in (6) and (7)."""
    return cross(wd, p) + cross(w, cross(w, p))


def turned_rate(w, wd, wdd, p):
    """Jerk of that point relative to the origin, as in (8) and (9)."""
    return cross(wdd, p) + 2.0 * cross(wd, cross(w, p)) + cross(w, turned(w, wd, p))


def dynamics(model, motion, qd, qdd, qddd, inertias=None, wrenches=None, wrench_rates=None, offsets=True):
    """Backward recursion (10)-(21). Returns LinkForces.

    inertias     : {link number: (m, ms, J)} instead of the model's own
    wrenches     : {link number: (6,)} force and moment about the frame's origin, BY the environment ON the link, in frame j
    wrench_rates : {link number: (6,)} rates of those six components
    offsets      : whether the constant torques of the joint dynamics count
    """
    qd, qdd, qddd = (to_links(model, x) for x in (qd, qdd, qddd))
    forces = LinkForces(*([None] * len(model.links) for _ in LinkForces._fields))
    f, n, fd, nd = ([ZERO] * len(model.links) for _ in range(4))  # collects what the link hands on to its children
    for k in range(len(model.links) - 1, -1, -1):
        link, w, wd, wdd, a, j = model.links[k], *(values[k] for values in motion[2:])
        m, ms, J = (inertias or {}).get(k, (link.m, link.ms, link.J))
        F = a * m + turned(w, wd, ms)  # (10), (7)
        Fd = j * m + turned_rate(w, wd, wdd, ms)  # (12), (9)
        Jw, Jwd = J @ w, J @ wd
        N = Jwd + cross(w, Jw)  # (11)
        Nd = cross(w, Jwd) + J @ cross(wd, w) + J @ wdd + cross(wd, Jw) + cross(w, N)  # (13)
        N, Nd = N + cross(ms, a), Nd + cross(cross(w, ms), a) + cross(ms, j)  # about the origin, khalil-rne (23)
        out_f, out_n, out_fd, out_nd = _environment((wrenches or {}).get(k), (wrench_rates or {}).get(k), w)
        f[k], n[k] = f[k] + F + out_f, n[k] + N + out_n  # (14), (15)
        fd[k], nd[k] = fd[k] + Fd + out_fd, nd[k] + Nd + out_nd  # (16), (17)
        if k > 0:
            _hand_down(link, motion, k, qd[k], f, n, fd, nd)
        axis_load, axis_rate = (f, fd) if link.sigma == mdh.PRISMATIC else (n, nd)
        tau, rate = axis_load[k][2], (axis_rate[k] + cross(axis_load[k], w))[2]  # (18)-(21)
        tau, rate = joint_torque(link.term, tau, rate, qd[k], qdd[k], qddd[k], offsets)
        for values, value in zip(forces, (F, N, Fd, Nd, f[k], n[k], fd[k], nd[k], tau, rate), strict=True):
            values[k] = value
    return forces


def _hand_down(link, motion, k, qd, f, n, fd, nd):
    """Add the reaction of link k on its antecedent i: the sums over i+1 in (14)-(17)."""
    i, R, P = link.parent, motion.R[k], motion.P[k]
    Rf, Rfd = R @ f[k], R @ fd[k]
    arm_rate = cross(motion.w[i], P)
    if link.sigma == mdh.PRISMATIC:
        arm_rate = arm_rate + (R @ Z) * qd
    f[i], fd[i] = f[i] + Rf, fd[i] + Rfd
    n[i] = n[i] + R @ n[k] + cross(P, Rf)
    nd[i] = nd[i] + R @ nd[k] + cross(arm_rate, Rf) + cross(P, Rfd)


def _environment(wrench, rate, w):
    """Wrench exerted by the link on the environment and its rate in the inertial frame, as the papers count them."""
    if wrench is None:
        return ZERO, ZERO, ZERO, ZERO
    f, n = -wrench[:3], -wrench[3:]
    fd, nd = (ZERO, ZERO) if rate is None else (-rate[:3], -rate[3:])
    return f, n, fd + cross(w, f), nd + cross(w, n)


def torque_and_rate(model, q, qd, qdd, qddd, gravity=ZERO, base=RootMotion(), **options):
    """(tau, tau_rate) of the n coordinates, mimic joints folded. gravity: acceleration (3,) in frame 0 [m/s^2]."""
    falling = base._replace(a=base.a - gravity)  # constant in the inertial frame: no jerk
    forces = dynamics(model, kinematics(model, q, qd, qdd, qddd, falling), qd, qdd, qddd, **options)
    return with_motors(model.coupled_motors, from_links(model, forces.tau), from_links(model, forces.tau_rate), qd, qdd, qddd,
                       options.get("offsets", True))


# ---------------------------------------------------------------------- loads that keep their direction in the world
# External loads whose direction stays while the link that carries them turns (thesis, Step 9 b, d, e). A load (force and
# moment at a point that is fixed in the link) has constant components in frame 0. Seen from the link, a small rotation k of
# the link turns it by -k: its components about the frame's origin change by -(k x F, T k).
#
#     F    force in frame j                                                                   (3.76), by the environment
#     T    T k = P x (k x F) + k x N, with N the moment about the point P of the load         (3.77), (3.85), (3.89)


def arm(r, v):
    """Matrix of k -> r x (k x v)."""
    return np.eye(3) * np.dot(r, v) - np.outer(v, r)


def seen_from_links(model, motion, loads):
    """{link number: (wrench, F, T)} in the link's frame; wrench (6,) about its origin, force first; any scalar.

    loads: [(link number, P, wrench)]: P (3,) in the link's frame; wrench (6,) about P BY the environment ON it, in frame 0
    """
    orientation = [np.eye(3)]  # of frame j in frame 0, (3.62)
    for k, link in enumerate(model.links[1:], start=1):
        orientation.append(orientation[link.parent] @ motion.R[k])
    seen: dict[int, tuple] = {}
    for number, P, wrench in loads:
        R = orientation[number].T
        F, N = R @ wrench[:3], R @ wrench[3:]
        load = np.concatenate((F, N + cross(P, F))), F, arm(P, F) - skew(N)
        seen[number] = tuple(a + b for a, b in zip(seen[number], load, strict=True)) if number in seen else load
    return seen


def as_wrenches(motion, seen, wrenches=None, wrench_rates=None):
    """(wrenches, wrench_rates) for the recursions of tau and tau_rate: those held by the links and those of the world."""
    total, rates = dict(wrenches or {}), dict(wrench_rates or {})
    for k, (wrench, F, T) in seen.items():
        w = motion.w[k]
        total[k] = total.get(k, np.zeros(6)) + wrench
        rates[k] = rates.get(k, np.zeros(6)) - np.concatenate((cross(w, F), T @ w))
    return total, rates


def on_links(model, options, q, qd, w=ZERO):
    """`options` for the recursions of tau and tau_rate, with `world_wrenches` (loads, as above) made wrenches of the links.

    w (3,): angular velocity of link 0, which may turn in the world as well; the loads' components are those in frame 0 now
    """
    rest = dict(options)
    loads = rest.pop("world_wrenches", None)
    if not loads:
        return rest
    motion = kinematics(model, q, qd, q * 0.0, q * 0.0, RootMotion(w))
    total, rates = as_wrenches(motion, seen_from_links(model, motion, loads), rest.get("wrenches"), rest.get("wrench_rates"))
    return rest | {"wrenches": total, "wrench_rates": rates}
