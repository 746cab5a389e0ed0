"""Joint dynamics: torque and torque rate of rotor inertia, friction and offset, added to those of the links.

    tau      = Ia qdd  + Fs tanh(qd / v) + Fv qd  + Fo                   khalil-rne (30), (44), sign smoothed
    tau_rate = Ia qddd + Fs (1 - tanh^2(qd / v)) qdd / v + Fv qdd

Ia is the rotor inertia times the square of the gear ratio. The smoothing makes the rate finite where sign(qd) jumps.
Measured friction needs two terms more: Stribeck's, by which it is higher (or lower) near rest, within the speed vs, and
viscous friction that differs between the two ways:

    + Fr tanh(qd / v) (1 - tanh^2(qd / vs))  +  Fa qd tanh(qd / v)

Friction of gears grows with the torque X that they transmit, which is that of the links and of the rotor; |X| is smoothed
below the torque l. Its rate is as exact as that of X. In the other direction, X follows from the torque T that is left when
all other friction is taken off: a quadratic equation.

    T = X + m sqrt(X^2 + l^2),    m = mu tanh(qd / v)
    X = (T - m sqrt(T^2 + (1 - m^2) l^2)) / (1 - m^2)

A motor of a coupled transmission turns with several joints, at the speed g^T qd for a constant row g (model/tree.py:
CoupledMotor). By virtual work its rotor and its friction, the same terms at that speed, act on the joints as

    tau += g t(g^T qd, g^T qdd)      tau_rate += g t'(g^T qd, g^T qdd, g^T qddd)      M += g J g^T
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..model.tree import NO_COORDINATE


def to_links(model, q, offset=False):
    """Joint variables (or, without the offset, any derivative of them) of links 0..N from the n coordinates."""
    return [0.0 if link.coordinate == NO_COORDINATE
            else q[link.coordinate] * link.multiplier + (link.offset if offset else 0.0) for link in model.links]


def from_links(model, tau):
    """Torques of the n coordinates from those of links 0..N."""
    total = [0.0] * model.n
    for link, t in zip(model.links, tau, strict=True):
        if link.coordinate != NO_COORDINATE:
            total[link.coordinate] = total[link.coordinate] + t * link.multiplier
    return total


def joint_torque(term, load, load_rate, qd, qdd, qddd, offsets=True):
    """(torque, torque rate) of a joint whose links need the torque `load` and its rate; the rest as of joint_dynamics."""
    extra, extra_rate = joint_dynamics(term, qd, qdd, qddd, offsets)
    tau, rate = load + extra, load_rate + extra_rate
    if term.load_dependent:
        X, X_rate = load + qdd * term.armature, load_rate + qddd * term.armature
        share, share_rate, size = load_share(term, X, qd, qdd)
        tau = tau + share * size
        rate = rate + share_rate * size + share * X * X_rate / size
    return tau, rate


def load_share(term, X, qd, qdd):
    """m, its rate, and sqrt(X^2 + l^2)."""
    sign = np.tanh(qd / term.smoothing)
    share_rate = (1.0 - sign * sign) * qdd * (term.load_dependent / term.smoothing)
    return sign * term.load_dependent, share_rate, np.sqrt(X * X + term.load_smoothing**2)


def load_friction(term, T, qd):
    """Return the load-dependent friction T - X, where T is the torque without the other friction."""
    m = np.tanh(qd / term.smoothing) * term.load_dependent
    left = 1.0 - m * m
    return T - (T - m * np.sqrt(T * T + left * term.load_smoothing**2)) / left


def with_motors(motors, tau, rate, qd, qdd, qddd, offsets=True):
    """(torque, torque rate) of the n coordinates with the torques of coupled motors added to tau and rate."""
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
    """(torque, torque rate) of a JointDynamics but friction by load; any scalar. offsets: whether Fo counts."""
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
    """Stribeck's term and asymmetry, with their rates."""
    sign, low = np.tanh(qd / term.smoothing), np.tanh(qd / term.stribeck_velocity)
    sign_rate, bell = (1.0 - sign * sign) * qdd * (1.0 / term.smoothing), 1.0 - low * low
    bell_rate = low * bell * qdd * (-2.0 / term.stribeck_velocity)
    return (sign * bell * term.stribeck + qd * sign * term.asymmetry,
            (sign_rate * bell + sign * bell_rate) * term.stribeck + (qdd * sign + qd * sign_rate) * term.asymmetry)
