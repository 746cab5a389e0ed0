"""Inverse-dynamics control of robots with rigid and elastic joints.

Hua, Poursina, Sanfilippo (see mixed_joints.py), section IV, (37)-(50). What the paper leaves open is settled without filters:

    C(q, qd) x   the recursion gives c(v) = C(q, v) v only; with the Christoffel form of C, the one of which Mdot - 2C is skew,
                 C(q, v) x is symmetric in v and x, so C(q, qd) x = (c(qd + x) - c(qd - x)) / 4
    qdd, thetadd accelerations that (39) and (49) ask for: those that the model itself predicts, (40) and (50)
    theta_d      (43), with its first and second time derivative from jets of order two on (39)

    e sigma      position error, and error of the reference velocity qd_r = qd_d + Lambda e: sigma = qd_r - qd
    Lambda K_D   gains, diagonal; K stiffness, B inertia of the motors behind their gears, M S C as in (30)

No elastic joint's motor may be carried beyond an elastic joint: theta_d would then hang on thetadd, (43) being implicit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linalg import solve_positive
from ..algebra.taylor import derivative, jets
from .mixed_joints import elastic, inverse_dynamics, mass_matrix, rows


class Gains(NamedTuple):
    """Diagonals: Lambda_q [1/s], K_Dq [N m s/rad] (n,), Lambda_theta, K_Dtheta (Ne,)."""

    slope: Any
    damping: Any
    motor_slope: Any
    motor_damping: Any


class ControlLaw(NamedTuple):
    """tau (n,) of the motors; theta_d and its first and second derivative (Ne,)."""

    tau: Any
    theta: Any
    thetad: Any
    thetadd: Any


def control(model, motors, gains, desired, q, theta, qd, thetad, **options):
    """Command; any scalar. desired: q_d and its derivatives up to the fourth. options: as in mixed_joints.inverse_dynamics."""
    law = _LoadSide(model, motors, gains, options)
    springs = elastic(motors)
    joint = [m.coordinate for m in springs]
    stiffness = np.array([m.stiffness for m in springs])
    qdd = law.acceleration(desired, q, theta, qd)
    soon = [jets(desired[k], desired[k + 1]) for k in range(3)]
    qddd = derivative(law.acceleration(soon, jets(q, qd), jets(theta, thetad), jets(qd, qdd)), 1)
    ahead = [jets(*desired[k:k + 3]) for k in range(3)]
    q2, qd2 = jets(q, qd, qdd), jets(qd, qdd, qddd)
    load = law.torques(ahead, q2, qd2)
    target = [load[i] / k + q2[i] for i, k in zip(joint, stiffness, strict=True)]  # (43)
    wanted = [derivative(target, order) for order in range(3)]

    sigma, qdd_r = law.reference(desired, q, qd)
    sigma_e, sigmad_e = sigma[joint], (qdd_r - qdd)[joint]
    e, ed = wanted[0] - theta, wanted[1] - thetad  # (44)
    sigma_m = ed + e * gains.motor_slope + sigma_e  # (45), (47)
    thetadd_r = wanted[2] + ed * gains.motor_slope + sigmad_e  # rate of (45)
    push = sigma_m * gains.motor_damping
    B = np.array([m.term.armature for m in springs])
    thetadd = thetadd_r + (push + e * stiffness) / B  # (50)
    tau = law.torques(desired, q, qd, (theta, thetad, thetadd))  # (39)
    motor = inverse_dynamics(model, motors, (q, qd, qdd), (theta, thetad, thetadd_r), **options).motor
    for k, i in enumerate(joint):
        tau[i] = motor[i] + e[k] * stiffness[k] + push[k]  # (49), K (theta_d - theta) beside K (theta - q)
    theta_d, thetad_d, thetadd_d = wanted
    return ControlLaw(tau, theta_d, thetad_d, thetadd_d)


class _LoadSide:
    """Control law of the load side, (37)-(40)."""

    def __init__(self, model, motors, gains, options):
        self.model, self.motors, self.gains, self.options = model, motors, gains, options
        self.springs = elastic(motors)
        bare = dict.fromkeys(("coulomb", "viscous", "offset", "stribeck", "asymmetry"), 0.0)
        self.smooth = replace(model, links=tuple(replace(link, term=replace(link.term, **bare)) for link in model.links))
        self.smooth_motors = [m._replace(term=replace(m.term, **bare)) for m in motors]

    def reference(self, desired, q, qd):
        """sigma, (38), and the rate of the reference velocity, (37)."""
        e, ed = desired[0] - q, desired[1] - qd
        return ed + e * self.gains.slope, desired[2] + ed * self.gains.slope

    def model_torques(self, q, qd, qdd, theta):
        """Left side of the load's rows of (30)."""
        return rows(self.motors, inverse_dynamics(self.model, self.motors, (q, qd, qdd), theta, **self.options))[:self.model.n]

    def coriolis(self, q, qd, x):
        """C(q, qd) x."""
        still = [[0.0] * len(self.springs)] * 3
        zero, inertias = [0.0] * self.model.n, self.options.get("inertias")

        def c(v):
            torques = inverse_dynamics(self.smooth, self.smooth_motors, (q, v, zero), still, inertias=inertias)
            return rows(self.smooth_motors, torques)

        return np.array([(a - b) * 0.25 for a, b in zip(c(qd + x), c(qd - x), strict=True)][:self.model.n])

    def torques(self, desired, q, qd, theta=None):
        """tau_qc, (39), as a list. theta: position and rates of the motors, which only rigid joints' torques feel."""
        sigma, qdd_r = self.reference(desired, q, qd)
        needed = self.model_torques(q, qd, qdd_r, theta or [[0.0] * len(self.springs)] * 3)
        return [a + b for a, b in zip(needed, self.coriolis(q, qd, sigma) + sigma * self.gains.damping, strict=True)]

    def acceleration(self, desired, q, theta, qd):
        """qdd that follows, from (40): rigid joints have e_tau = 0, elastic ones what the springs lack."""
        sigma, qdd_r = self.reference(desired, q, qd)
        right = -(self.coriolis(q, qd, sigma) + sigma * self.gains.damping)
        lack = self.torques(desired, q, qd)
        right = [right[i] for i in range(self.model.n)]
        for k, m in enumerate(self.springs):
            i = m.coordinate
            right[i] = right[i] + lack[i] - (theta[k] - q[i]) * m.stiffness
        n = self.model.n
        M = mass_matrix(self.model, self.motors, q, self.options.get("inertias"))[:n, :n]
        return qdd_r - solve_positive(M, right)
