"""Joint dynamics: torque and torque rate due to rotor inertia, friction and offset, which are added to those of the links.

    tau      = Ia qdd  + Fs tanh(qd / v) + Fv qd  + Fo                   khalil-rne (30), (44), sign smoothed
    tau_rate = Ia qddd + Fs (1 - tanh^2(qd / v)) qdd / v + Fv qdd

Ia is the rotor inertia times the square of the gear ratio. The smoothing makes the rate finite at the
discontinuity of sign(qd). Two further terms describe the Stribeck effect (additional friction Fr near zero velocity, with the
velocity scale vs) and viscous friction that differs between the directions:

    + Fr tanh(qd / v) (1 - tanh^2(qd / vs))  +  Fa qd tanh(qd / v)

Load-dependent friction of gears is proportional to the absolute value of the transmitted torque X, due to links and rotor; it
is smoothed at zero with the torque scale l. For forward dynamics, X is computed from the torque T minus all other friction by
a quadratic equation:

    T = X + m sqrt(X^2 + l^2),    m = mu tanh(qd / v)
    X = (T - m sqrt(T^2 + (1 - m^2) l^2)) / (1 - m^2)

A motor of a coupled transmission turns with several joints at the velocity g^T qd, where g is a constant row (CoupledMotor in
model/tree.py). By virtual work, its rotor and friction terms at that velocity act on the joints as

    tau += g t(g^T qd, g^T qdd)      tau_rate += g t'(g^T qd, g^T qdd, g^T qddd)      M += g J g^T
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..model.tree import NO_COORDINATE


def to_links(model, q, offset=False):
    """Return the joint variables of links 0..N for the n coordinates; with offset=False, any of their time derivatives."""
    return [0.0 if link.coordinate == NO_COORDINATE
            else q[link.coordinate] * link.multiplier + (link.offset if offset else 0.0) for link in model.links]


def from_links(model, tau):
    """Return the torques of the n coordinates for the torques of links 0..N."""
    total = [0.0] * model.n
    for link, t in zip(model.links, tau, strict=True):
        if link.coordinate != NO_COORDINATE:
            total[link.coordinate] = total[link.coordinate] + t * link.multiplier
    return total


def joint_torque(term, load, load_rate, qd, qdd, qddd, offsets=True):
    """Return torque and torque rate of a joint whose links require the torque `load` and its rate; see joint_dynamics."""
    extra, extra_rate = joint_dynamics(term, qd, qdd, qddd, offsets)
    tau, rate = load + extra, load_rate + extra_rate
    if term.load_dependent:
        X, X_rate = load + qdd * term.armature, load_rate + qddd * term.armature
        share, share_rate, size = load_share(term, X, qd, qdd)
        tau = tau + share * size
        rate = rate + share_rate * size + share * X * X_rate / size
    return tau, rate


def load_share(term, X, qd, qdd):
    """Return m, its time derivative, and sqrt(X^2 + l^2)."""
    sign = np.tanh(qd / term.smoothing)
    share_rate = (1.0 - sign * sign) * qdd * (term.load_dependent / term.smoothing)
    return sign * term.load_dependent, share_rate, np.sqrt(X * X + term.load_smoothing**2)


def load_friction(term, T, qd):
    """Return the load-dependent friction T - X, where T is the torque without the other friction."""
    m = np.tanh(qd / term.smoothing) * term.load_dependent
    left = 1.0 - m * m
    return T - (T - m * np.sqrt(T * T + left * term.load_smoothing**2)) / left


def with_motors(motors, tau, rate, qd, qdd, qddd, offsets=True):
    """Return torques and torque rates of the n coordinates: tau and rate plus those of coupled motors."""
    tau, rate = list(tau), list(rate)
    for motor in motors:
        t, t_rate = joint_dynamics(motor.term, motor.motion(qd), motor.motion(qdd), motor.motion(qddd), offsets)
        for k, ratio in zip(motor.coordinates, motor.ratios, strict=True):
            tau[k], rate[k] = tau[k] + t * ratio, rate[k] + t_rate * ratio
    return tau, rate


def add_motors(motors, table, values):
    """Add g x g^T of every coupled motor to the entries table[i][j] of a matrix (n, n), in place; values: x by name."""
    for motor in motors:
        x, pairs = values[motor.name], list(zip(motor.coordinates, motor.ratios, strict=True))
        for i, a in pairs:
            for j, b in pairs:
                table[i][j] = table[i][j] + x * (a * b)


def without_load_friction(model):
    """Return the model without load-dependent friction."""
    if not any(link.term.load_dependent for link in model.links):
        return model
    return replace(model, links=tuple(replace(link, term=replace(link.term, load_dependent=0.0)) for link in model.links))


def joint_dynamics(term, qd, qdd, qddd, offsets=True):
    """Return torque and torque rate of a JointDynamics without load-dependent friction; any scalar type. offsets: include Fo.
    """
    tau = qdd * term.armature + qd * term.viscous + (term.offset if offsets else 0.0)
    rate = qddd * term.armature + qdd * term.viscous
    if term.coulomb:
        smooth_sign = np.tanh(qd / term.smoothing)
        tau = tau + smooth_sign * term.coulomb
        rate = rate + (1.0 - smooth_sign * smooth_sign) * qdd * (term.coulomb / term.smoothing)
    if term.stribeck or term.asymmetry:
        more, more_rate = _measured_friction(term, qd, qdd)
        tau, rate = tau + more, rate + more_rate
    return tau, rate


def _measured_friction(term, qd, qdd):
    """Return the Stribeck and asymmetry terms, and their time derivatives."""
    sign, low = np.tanh(qd / term.smoothing), np.tanh(qd / term.stribeck_velocity)
    sign_rate, bell = (1.0 - sign * sign) * qdd * (1.0 / term.smoothing), 1.0 - low * low
    bell_rate = low * bell * qdd * (-2.0 / term.stribeck_velocity)
    return (sign * bell * term.stribeck + qd * sign * term.asymmetry,
            (sign_rate * bell + sign * bell_rate) * term.stribeck + (qdd * sign + qd * sign_rate) * term.asymmetry)
